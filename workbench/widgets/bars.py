"""Bars that are dragged: a short vector set by hand, with a second one marked on top.

The Python half of `bars.js`. Each bar is a slider for keyboard and screen reader. Knows nothing of
what the numbers mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import param
from panel.custom import AnyWidgetComponent


class DragBars(AnyWidgetComponent):
    """Vertical bars from 0 to `values`, between low < 0 < high; `marks` are shown as lines.

    names: one for each bar (numbers when not given). Raises ValueError when lists differ in
    length.
    """

    _esm = "bars.js"
    _priority_changes: ClassVar[list[str]] = ["values"]  # no 50 ms wait: dragging feels immediate

    values = param.List([], doc="Heights of the bars")
    marks = param.List([], doc="A second value for each bar, or empty")
    names = param.List([], item_type=str, doc="Names of the bars")
    low = param.Number(-1.0, doc="Lower end")
    high = param.Number(1.0, doc="Upper end")
    caption = param.String("Bars", doc="What they are, for screen readers")

    def __init__(self, values: Sequence[float], **settings: Any):
        values = [float(v) for v in values]
        settings.setdefault("names", [str(j + 1) for j in range(len(values))])
        super().__init__(values=values, **({"sizing_mode": "stretch_width"} | settings))
        self._check({})

    def set(self, **settings: Any) -> None:
        """Change several settings at once; ValueError when lists have unequal lengths."""
        self._check(settings)
        self.param.update(**settings)

    def _check(self, settings: dict[str, Any]) -> None:
        n = len(settings.get("values", self.values))
        for name in ("names", "marks"):
            found = settings.get(name, getattr(self, name))
            if len(found) != n and not (name == "marks" and not found):
                raise ValueError(f"{name} has {len(found)} entries: there are {n} bars")
