"""Faders: a few labeled sliders in one native view, with a picture above each if there is one.

The Python half of `faders.js`. `values` is the whole truth, set as one list, by the user or by
Python. A mark below a slider shows a value of interest. Knows nothing of what the values do; for
the parameters of a method use `controls.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import param
from panel.custom import AnyWidgetComponent


class Faders(AnyWidgetComponent):
    """Sliders from `lows` to `highs`; those lists, `values` and `names` have one entry for each.

    steps: 1 for whole numbers, 0 or missing moves finely. marks: values shown by a mark, None or
    missing for none. Set several of these at once with `set`.
    """

    _esm = "faders.js"
    _priority_changes: ClassVar[list[str]] = ["values"]  # no 50 ms wait: they feel immediate

    names = param.List([], item_type=str, doc="Names of the sliders")
    values = param.List([], doc="Where the sliders stand")
    lows = param.List([], doc="Left ends")
    highs = param.List([], doc="Right ends")
    steps = param.List([], doc="Step of each slider, 0 for 200 steps from end to end")
    marks = param.List([], doc="A value of interest for each")
    pictures = param.List([], doc="Address of a picture for each, empty for none")
    notes = param.List([], doc="A few words below each name")
    caption = param.String("Sliders", doc="What they are, for screen readers")

    def __init__(self, **settings: Any):
        super().__init__(**({"sizing_mode": "stretch_width"} | settings))
        self._check({})

    def set(self, **settings: Any) -> None:
        """Change several settings at once; ValueError when the lists have unequal lengths."""
        self._check(settings)
        self.param.update(**settings)

    def move(self, values: Sequence[float]) -> None:
        """Put the sliders at `values`."""
        self.set(values=[float(v) for v in values])

    def _check(self, settings: dict[str, Any]) -> None:
        n = len(settings.get("names", self.names))
        for name in ("values", "lows", "highs"):
            if (found := len(settings.get(name, getattr(self, name)))) != n:
                raise ValueError(f"{name} has {found} entries: there are {n} names")
