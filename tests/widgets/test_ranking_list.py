"""The Python half of the ranking list: what may be chosen, and what leaves when rules change."""

import numpy as np
import pytest

from workbench.widgets.ranking_list import RankingList, check_order

NAMES = ["cat", "dog", "cow", "hen"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0, 4], "value holds 4: allowed are 0 to 3"),
        ([-1], "value holds -1"),
        ([1, 1], r"value = \[1, 1\] repeats a class"),
        ([1, 2], r"value = \[1, 2\] holds 2, the true class: leave it out"),
        ([0, 1, 3], "value has 3 classes: allowed are at most 2"),
        (["cat"], r"value = \['cat'\] is not allowed: use class indices"),
        ([0.5], "use class indices"),
    ],
)
def test_what_is_no_order_is_refused_and_the_order_stays(value, message):
    ranking = RankingList(NAMES, label=2, max_length=2, value=[3, 0])
    with pytest.raises(ValueError, match=message):
        ranking.value = value
    assert ranking.value == [3, 0]
    with pytest.raises(ValueError, match=message):
        RankingList(NAMES, label=2, max_length=2, value=value)


def test_listeners_hear_orders_and_no_refused_one():
    ranking, heard = RankingList(NAMES, label=2), []
    ranking.param.watch(lambda event: heard.append(event.new), "value")
    ranking.value = [1, 0]
    with pytest.raises(ValueError, match="true class"):
        ranking.value = [1, 2]
    assert all(2 not in order for order in heard) and heard[0] == [1, 0]
    assert ranking.names() == ["dog", "cat"]


def test_numpy_indices_become_plain_ones():
    order = check_order(np.array([2, 0]), 3)
    assert order == [2, 0] and all(type(k) is int for k in order)


def test_what_new_rules_forbid_leaves_the_order():
    ranking = RankingList(NAMES, value=[3, 1, 0])
    ranking.label = 1
    assert ranking.value == [3, 0]
    ranking.max_length = 1
    assert ranking.value == [3]
    ranking.class_names = NAMES[:3]
    assert ranking.value == []


def test_names_and_label_and_order_can_change_together():
    ranking = RankingList(NAMES, value=[3, 1], label=0)
    ranking.param.update(class_names=["a", "b"], label=1, value=[0])
    assert ranking.value == [0]


def test_a_list_without_classes_and_a_label_that_is_none_of_them_are_refused():
    with pytest.raises(ValueError, match="class_names is empty"):
        RankingList([])
    for given in ({"label": 4}, {"label": -1}):
        with pytest.raises(ValueError, match="is not a class: allowed are 0 to 3"):
            RankingList(NAMES, **given)
    ranking = RankingList(NAMES, label=2)
    with pytest.raises(ValueError, match="label = 4 is not a class: allowed are 0 to 3"):
        ranking.label = 4


def test_a_browser_that_asks_gets_an_answer_by_name():
    ranking = RankingList(NAMES)
    ranking.hello = "abc"
    assert ranking.answer == "abc"
