"""A search tree as it grows: one dot for each node, colored by a number, with a choice of one.

The Python half of `tree_view.js`. x is the order of creation, y the depth; shapes tell the status.
Hover and arrow keys read a node, a click or Enter picks it. Above `LARGEST` nodes cells are drawn
instead, each with how many nodes it holds. Knows nothing of what is searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import param
from panel.custom import AnyWidgetComponent

LARGEST = 2_000
COLUMNS = 160  # of the cells
STATUSES = ("open", "branched", "pruned", "decided")


@dataclass(frozen=True)
class Tree:
    """Nodes in the order of creation, (m,) each.

    parent: number of the parent, -1 for the root. feature: what the branch decided (-1: none),
    included: in (1) or out (0). value: the number that colors it; status: index into `STATUSES`;
    work: whatever it cost, shown on hover.
    """

    parent: np.ndarray
    depth: np.ndarray
    feature: np.ndarray
    included: np.ndarray
    value: np.ndarray
    status: np.ndarray
    work: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    def decided(self, number: int) -> tuple[list[int], list[int]]:
        """Features that are in and out at a node."""
        sides: tuple[list[int], list[int]] = ([], [])
        while number >= 0 and self.parent[number] >= 0:
            sides[0 if self.included[number] else 1].append(int(self.feature[number]))
            number = int(self.parent[number])
        return sides[0][::-1], sides[1][::-1]


def cells(tree: Tree) -> np.ndarray:
    """(c, 5): column, depth, nodes, least value, share pruned, for trees too large to draw."""
    column = np.arange(len(tree)) * COLUMNS // max(1, len(tree))
    keys, index = np.unique(np.stack([column, tree.depth]), axis=1, return_inverse=True)
    index = np.ravel(index)
    count = np.bincount(index)
    least = np.full(len(count), np.inf)
    np.minimum.at(least, index, tree.value)
    pruned = np.bincount(index, tree.status == STATUSES.index("pruned")) / count
    return np.column_stack([keys.T, count, least, pruned])


class TreeView(AnyWidgetComponent):
    """Draws what `show(tree)` gives it; `picked` is the number of the chosen node, -1 for none."""

    _esm = "tree_view.js"
    _priority_changes: ClassVar[list[str]] = ["picked"]

    nodes = param.Bytes(b"", doc="float32, 7 numbers a node")
    cells = param.Bytes(b"", doc="float32, 5 numbers a cell, when there are too many nodes")
    count = param.Integer(0, doc="How many nodes there are")
    low = param.Number(0.0, doc="Value of the darkest color")
    high = param.Number(1.0, doc="Value of the lightest color")
    names = param.List([], item_type=str, doc="Names of features")
    caption = param.String("Search tree", doc="What it is, for screen readers")
    picked = param.Integer(-1, doc="The chosen node")

    def __init__(self, **settings: Any):
        super().__init__(**({"sizing_mode": "stretch_width"} | settings))

    def show(self, tree: Tree, low: float, high: float, names: Sequence[str] | None = None) -> None:
        """Draw a tree, with colors from low to high."""
        rows = (tree.parent, tree.depth, tree.feature, tree.included, tree.value, tree.status,
                tree.work)  # fmt: skip
        large = len(tree) > LARGEST
        settings = {
            "nodes": b"" if large else np.array(rows, np.float32).T.tobytes(),
            "cells": cells(tree).astype(np.float32).tobytes() if large else b"",
            "count": len(tree), "low": float(low), "high": float(max(high, low + 1e-12)),
        }  # fmt: skip
        if names is not None and list(names) != self.names:
            settings["names"] = list(names)
        if self.picked >= len(tree):
            settings["picked"] = -1
        self.param.update(**settings)
