"""Faders: a few labeled sliders in one native view, with a picture above each if there is one.

The Python half of `faders.js`. `values` is the whole truth, set as one list, by the user or by
Python. A mark below a slider shows a value of interest. Knows nothing of what the values do; for
the parameters of a method use `controls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import param
from panel.custom import AnyWidgetComponent

NEEDED, OPTIONAL = ("values", "lows", "highs"), ("steps", "marks", "pictures", "notes")


class Faders(AnyWidgetComponent):
    """Sliders from `lows` to `highs`; those lists, `values` and `names` have one entry for each.

    The other lists have one for each, or are empty. steps: 1 for whole numbers, 0 moves finely.
    marks: values shown by a mark, None for none. Set several of these at once with `set`;
    ValueError when the lists have unequal lengths.
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
        for name in (*NEEDED, *OPTIONAL):
            found = len(settings.get(name, getattr(self, name)))
            if found != n and (found or name in NEEDED):
                allowed = n if name in NEEDED else f"{n} or none"
                raise ValueError(
                    f"{name} has {found} entries: there are {n} names, allowed are {allowed}"
                )


class Sliders(Faders):
    """Sliders that tell `on_move(place, value)` which one the reader moved; `follow` is silent.

    rows: (name, value, low, high, step) of each.
    """

    def __init__(self, caption: str, on_move: Callable[[int, float], None], *rows: tuple):
        names, values, lows, highs, steps = (list(column) for column in zip(*rows, strict=True))
        super().__init__(
            names=names, values=[float(v) for v in values], lows=lows, highs=highs, steps=steps,
            caption=caption,
        )  # fmt: skip
        self._quiet, self._on_move = False, on_move
        self.param.watch(self._heard, "values")

    def _heard(self, event: Any) -> None:
        if self._quiet:
            return
        for place, (old, new) in enumerate(zip(event.old, event.new, strict=True)):
            if old != new:
                self._on_move(place, new)

    def follow(self, values: list[float]) -> None:
        """Put the sliders where something else is, as far as they reach."""
        values = np.clip(values, self.lows, self.highs)
        if np.allclose(self.values, values, rtol=0, atol=1e-6):
            return
        self._quiet = True
        try:
            self.move(values)
        finally:
            self._quiet = False
