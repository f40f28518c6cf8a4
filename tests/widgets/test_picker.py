"""The grid of pictures to choose from, in Python: places that are there, one or several."""

import pytest

from workbench.widgets.picker import Picker

PICTURES, NAMES = ["data:,a", "data:,b", "data:,c"], ["a", "b", "c"]


def test_places_are_chosen_and_heard_once_with_the_rest():
    made, heard = Picker(PICTURES, NAMES), []
    made.param.watch(lambda event: heard.append((event.new, made.marks)), "chosen")
    made.set(chosen=[0, 2], marks=[1])
    assert heard == [([0, 2], [1])]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"chosen": [3]}, "chosen holds 3: allowed are 0 to 2"),
        ({"marks": [-1]}, "marks holds -1: allowed are 0 to 2"),
        ({"names": ["a"]}, "names has 1 entries: there are 3 pictures"),
        ({"chosen": [0, 1], "single": True}, "at most one"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(settings, says):
    made = Picker(PICTURES, NAMES, chosen=[1])
    with pytest.raises(ValueError, match=says):
        made.set(**settings)
    assert made.chosen == [1] and made.names == NAMES and not made.marks
