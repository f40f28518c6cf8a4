"""Bars that are dragged: lists of equal length, changed together, heard."""

import pytest

from workbench.widgets.bars import DragBars


def test_lists_of_unequal_length_are_refused_and_change_nothing():
    bars = DragBars([1, -2], low=-3, high=3)
    assert bars.values == [1.0, -2.0] and bars.names == ["1", "2"]
    with pytest.raises(ValueError, match="names has 2 entries: there are 3 bars"):
        bars.set(values=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="marks has 1 entries: there are 2 bars"):
        bars.set(marks=[1.0])
    assert bars.values == [1.0, -2.0]


def test_a_new_vector_is_heard_once_with_all_of_it_in_place():
    bars, heard = DragBars([1, 2]), []
    bars.param.watch(lambda event: heard.append((event.new, bars.names)), "values")
    bars.set(values=[3.0], names=["a"], marks=[])
    assert heard == [([3.0], ["a"])]
