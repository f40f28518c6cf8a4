"""A search tree as arrays: paths, cells for large trees, and what is sent."""

import numpy as np

from workbench.widgets.tree_view import LARGEST, Tree, TreeView, cells


def tree(size):
    """A binary tree in order of creation, all open."""
    number = np.arange(size)
    parent = np.where(number > 0, (number - 1) // 2, -1)
    depth = np.floor(np.log2(number + 1)).astype(int)
    value = 10.0 + depth
    zeros = np.zeros(size, int)
    return Tree(parent, depth, number % 7, number % 2, value, zeros, zeros)


def test_a_node_knows_what_is_decided():
    assert tree(7).decided(0) == ([], [])
    inside, outside = tree(7).decided(4)  # 0 -> 1 (in) -> 4 (out)
    assert (inside, outside) == ([1], [4])


def test_a_small_tree_is_sent_node_by_node():
    view = TreeView()
    view.show(tree(9), 10, 12, ["a"] * 7)
    sent = np.frombuffer(view.nodes, np.float32).reshape(-1, 7)
    assert len(sent) == view.count == 9 and sent[4, 0] == 1 and sent[4, 4] == 12
    assert view.cells == b"" and view.names == ["a"] * 7


def test_a_large_tree_is_sent_as_cells_that_hold_all_of_it():
    large = tree(LARGEST + 1)
    found = cells(large)
    assert found[:, 2].sum() == len(large) and found[:, 3].min() == 10
    view = TreeView(picked=3)
    view.show(large, 10, 20)
    assert view.nodes == b"" and len(view.cells) == found.size * 4
    view.show(tree(2), 10, 20)
    assert view.picked == -1, "that node is not there any more"
    assert view.cells == b"" and view.nodes
