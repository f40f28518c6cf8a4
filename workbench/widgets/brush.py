"""Brush: an SVG chart on which the reader drags a vertical line or draws a box.

The Python half of `brush.js`. Positions are shares of the chart's field, from the lower left
corner; whoever listens turns them into values and draws anew. With keys: arrows move the line or
the box, Shift and arrows move the line further or resize the box, Home and End go to the ends,
Escape takes the box away.
"""

from __future__ import annotations

from typing import Any, ClassVar

import param

from .drawing import Drawing
from .svg import BOTTOM, LEFT, RIGHT, TOP


class Brush(Drawing):
    """Shows `html`, a chart of `svg.chart` with this width and height, and hears the pointer.

    kind: "line", whose place is `at` (0 to 1), or "box", [] or [left, low, right, high].
    """

    _esm = "brush.js"
    _priority_changes: ClassVar[list[str]] = ["html", "at", "box"]

    kind = param.Selector(default="line", objects=["line", "box"])
    at = param.Number(0.5, bounds=(0, 1), doc="Where the line is, as a share of the field")
    box = param.List([], doc="The box, as shares of the field")
    frame = param.List([], doc="The field, as shares of the picture: left, top, right, bottom")
    caption = param.String("Chart", doc="What is moved, for screen readers")
    words = param.String("", doc="The value at the line, for screen readers")

    def __init__(self, width: int, height: int, html: str = "", **settings: Any):
        frame = [LEFT / width, TOP / height, 1 - RIGHT / width, 1 - BOTTOM / height]
        super().__init__(html, frame=frame, **settings)
