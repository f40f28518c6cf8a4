"""Controls: one native form for the parameters of a method, derived from their declaration.

The Python half of `controls.js`. Panel's own sliders have no accessible name and take a view each;
here thirty parameters are one view with labelled native inputs. What the user enters is checked by
the `Parameters` class itself and refused in its words. Knows nothing of what parameters do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import param
from panel.custom import AnyWidgetComponent

from workbench.parameters import ParameterError, Parameters


def rows(declared: type[Parameters], only: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """What the form needs of each parameter, in declaration order or in that of `only`.

    Sliders span the soft bounds of a number where they are declared, else its bounds.
    """
    described = {row["name"]: row for row in declared.describe()}
    found = []
    for name in only if only is not None else declared.names():
        row, p = described[name], declared.param[name]
        low, high = row["bounds"] or (None, None)
        if row["type"] in ("int", "float"):
            soft = p.softbounds or (None, None)
            low, high = (s if s is not None else b for s, b in zip(soft, (low, high), strict=True))
            # No slider over a range in which a pixel would be millions.
            if high is not None and low is not None and high - low > 1e6:
                low = high = None
        found.append(
            {
                "name": name,
                "label": name.replace("_", " "),
                "type": row["type"],
                "unit": row["unit"] or "",
                "group": row["group"] or "Other",
                "doc": row["doc"] or "",
                "choices": row["choices"],
                "low": low,
                "high": high,
                "allowed": "" if row["choices"] or row["type"] in ("bool", "str") else p.allowed(),
            }
        )
    return found


class Controls(AnyWidgetComponent):
    """A form for `parameters` that changes them as the user moves, and follows their changes.

    only: names to show, all when not given. open_groups: groups unfolded at the start; when not
    given, all of a short form and the first two of a long one.
    """

    _esm = "controls.js"
    _priority_changes: ClassVar[list[str]] = ["values"]  # no 50 ms wait: sliders feel immediate

    rows = param.List([], doc="What there is to set")
    values = param.Dict({}, doc="All values, by name")
    base = param.Dict({}, doc="Values that do not count as changed")
    errors = param.Dict({}, doc="Refused values: the reason, by name")
    open = param.List([], doc="Groups unfolded at the start")
    caption = param.String("Parameters", doc="Name of the form for screen readers")

    def __init__(
        self,
        parameters: Parameters,
        only: Sequence[str] | None = None,
        open_groups: Sequence[str] | None = None,
        **settings: Any,
    ):
        shown = rows(type(parameters), only)
        groups = list(dict.fromkeys(row["group"] for row in shown))
        if open_groups is None:
            open_groups = groups if len(shown) <= 14 else groups[:2]
        self.parameters = parameters
        self._names = [row["name"] for row in shown]
        values = self._present()
        super().__init__(
            rows=shown, values=values, base=dict(values), open=list(open_groups), **settings
        )
        self.param.watch(self._take, "values")
        parameters.param.watch(self._follow, self._names)

    def _present(self) -> dict[str, Any]:
        return {name: getattr(self.parameters, name) for name in self._names}

    def _take(self, event: param.parameterized.Event) -> None:
        errors, before = {}, self._present()
        changes = {n: v for n, v in event.new.items() if n in before and v != before[n]}
        if not changes:  # our own answer coming back
            return
        for name, value in changes.items():
            if isinstance(before[name], int) and isinstance(value, float) and value.is_integer():
                value = int(value)  # the browser knows only one type of number
            try:
                # On a copy first, so that nobody who listens sees values that are refused.
                type(self.parameters)(**{**self.parameters.to_papermill(), name: value})
                setattr(self.parameters, name, value)
            except ParameterError as error:
                errors[name] = str(error)
        self.errors = errors
        self._follow()

    def _follow(self, *events: param.parameterized.Event) -> None:
        self.values = self._present()
