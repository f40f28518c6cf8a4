"""Picker: choose one or several of a grid of small pictures, by mouse, touch or keyboard.

The Python half of `picker.js`. `chosen` is the list of places, in order; watch it to hear of a
change. Each picture is a button that says whether it is pressed. Knows nothing of what they show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import param
from panel.custom import AnyWidgetComponent


class Picker(AnyWidgetComponent):
    """Pictures (addresses) with names below; `chosen` are places from 0, at most one if single.

    marks: places that carry a mark as well, in a shape of its own, with `marked` as its meaning.
    Raises ValueError for places that are not there, or lists of unequal length.
    """

    _esm = "picker.js"
    _priority_changes: ClassVar[list[str]] = ["chosen"]  # no 50 ms wait: it feels immediate

    pictures = param.List([], item_type=str, doc="Addresses of the pictures")
    names = param.List([], item_type=str, doc="Names of the pictures")
    chosen = param.List([], doc="Places of those chosen")
    marks = param.List([], doc="Places of those marked")
    marked = param.String("marked", doc="What a mark means")
    single = param.Boolean(False, doc="Whether at most one is chosen")
    caption = param.String("Pictures", doc="What they are, for screen readers")

    def __init__(self, pictures: Sequence[str] = (), names: Sequence[str] = (), **settings: Any):
        settings = {"sizing_mode": "stretch_width"} | settings
        super().__init__(pictures=list(pictures), names=list(names), **settings)
        self._check({})

    def set(self, **settings: Any) -> None:
        """Change several settings at once; ValueError for what does not fit together."""
        self._check(settings)
        self.param.update(**settings)

    def _check(self, settings: dict[str, Any]) -> None:
        n = len(settings.get("pictures", self.pictures))
        if (named := len(settings.get("names", self.names))) != n:
            raise ValueError(f"names has {named} entries: there are {n} pictures")
        for name in ("chosen", "marks"):
            for place in settings.get(name, getattr(self, name)):
                if not 0 <= place < n:
                    raise ValueError(f"{name} holds {place}: allowed are 0 to {n - 1}")
        if settings.get("single", self.single) and len(settings.get("chosen", self.chosen)) > 1:
            raise ValueError("chosen has several places: at most one is allowed here")
