"""RankingList: put some of many classes into a wanted order, by mouse, touch or keyboard.

The Python half of `ranking_list.js`. `value` is the list of class indices, the most wanted first;
watch it to hear of a change. Knows nothing of what the order is for.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, ClassVar

import param
from panel.custom import AnyWidgetComponent


def check_order(
    value: Sequence[int], n_classes: int, label: int | None = None, max_length: int | None = None
) -> list[int]:
    """The order as list of int; ValueError for what is no class, repeated, the label, too long."""
    try:
        order = [operator.index(k) for k in value]
    except TypeError:
        raise ValueError(f"value = {list(value)!r} is not allowed: use class indices") from None
    for k in order:
        if not 0 <= k < n_classes:
            raise ValueError(f"value holds {k}: allowed are 0 to {n_classes - 1}")
    if len(set(order)) < len(order):
        raise ValueError(f"value = {order} repeats a class")
    if label is not None and label in order:
        raise ValueError(f"value = {order} holds {label}, the true class: leave it out")
    if max_length is not None and len(order) > max_length:
        raise ValueError(f"value has {len(order)} classes: allowed are at most {max_length}")
    return order


def _check_label(label: int | None, n_classes: int) -> None:
    if label is not None and not 0 <= label < n_classes:
        raise ValueError(f"label = {label} is not a class: allowed are 0 to {n_classes - 1}")


class RankingList(AnyWidgetComponent):
    """An ordered choice of classes; the true class `label` is shown but cannot be chosen.

    A refused `value` raises ValueError and leaves the order as it was. When `label`,
    `max_length` or the names change, what is no longer allowed leaves the order.
    """

    _esm = "ranking_list.js"
    _priority_changes: ClassVar[list[str]] = ["value"]

    class_names = param.List([], item_type=str, doc="Names of the classes")
    value = param.List([], doc="The chosen classes, the most wanted first")
    label = param.Integer(None, allow_None=True, doc="The true class, which cannot be chosen")
    max_length = param.Integer(None, bounds=(1, None), allow_None=True, doc="How many at most")
    caption = param.String("Wanted order", doc="Title of the list")
    hello = param.String("", doc="A view asks whether Python is there")
    answer = param.String("", doc="Python's answer: the name of the view that asked")

    def __init__(self, class_names: Sequence[str], **settings: Any):
        if len(class_names) < 1:
            raise ValueError("class_names is empty: an order needs at least one class")
        label, n = settings.get("label"), len(class_names)
        _check_label(label, n)
        settings["value"] = check_order(
            settings.get("value", []), n, label, settings.get("max_length")
        )
        fit = {"sizing_mode": "stretch_width", "max_width": 560}
        super().__init__(class_names=list(class_names), **(fit | settings))
        self.param.watch(self._check, "value")
        self.param.watch(lambda event: self.param.update(answer=event.new), "hello")
        self.param.watch(self._prune, ["label", "max_length", "class_names"])

    def names(self) -> list[str]:
        """Names of the chosen classes, in order."""
        return [self.class_names[k] for k in self.value]

    def _check(self, event: param.parameterized.Event) -> None:
        try:
            check_order(event.new, len(self.class_names), self.label, self.max_length)
        except ValueError:
            self.value = event.old
            raise

    def _prune(self, *events: param.parameterized.Event) -> None:
        _check_label(self.label, len(self.class_names))
        allowed = [k for k in self.value if k < len(self.class_names) and k != self.label]
        self.value = allowed[: self.max_length]
