"""Sliders in Python: lists of one length, which one the reader moved, following in silence."""

import pytest

from workbench.widgets.faders import Faders, Sliders


def two(**more):
    return Faders(
        **{"names": ["a", "b"], "values": [1, 2], "lows": [0, 0], "highs": [10, 10], **more}
    )


def test_sliders_tell_which_one_moved_and_follow_in_silence():
    heard = []
    made = Sliders("Two", lambda place, value: heard.append((place, value)),
                   ("a", 1, 0, 10, 1), ("b", 2, 0, 10, 1))  # fmt: skip
    made.values = [1.0, 5.0]
    made.follow([9.0, 99.0])
    assert heard == [(1, 5.0)] and made.values == [9.0, 10.0]
    made.values = [8.0, 4.0]  # heard again, each by itself
    assert heard[1:] == [(0, 8.0), (1, 4.0)]


def test_move_puts_numbers_and_set_changes_lists_of_another_length_at_once():
    made, seen = two(marks=[3, None]), []
    made.param.watch(lambda event: seen.append((event.new, list(made.names))), "values")
    made.move(range(3, 5))
    assert made.values == [3.0, 4.0] and all(type(v) is float for v in made.values)
    made.set(names=["c"], values=[0.5], lows=[0], highs=[1], marks=[])
    assert seen == [([3.0, 4.0], ["a", "b"]), ([0.5], ["c"])]


@pytest.mark.parametrize("name", ["values", "lows", "highs"])
@pytest.mark.parametrize("entries", [[], [1], [1, 2, 3]])
def test_each_slider_needs_a_value_and_two_ends(name, entries):
    words = f"{name} has {len(entries)} entries: there are 2 names, allowed are 2$"
    with pytest.raises(ValueError, match=words):
        two(**{name: entries})


@pytest.mark.parametrize("name", ["steps", "marks", "pictures", "notes"])
def test_what_a_slider_may_lack_has_an_entry_for_each_or_none(name):
    assert getattr(two(**{name: []}), name) == []
    entries = [1, 0] if name in ("steps", "marks") else ["x", ""]
    assert getattr(two(**{name: entries}), name) == entries
    for wrong in (entries[:1], entries * 2):
        with pytest.raises(ValueError, match=f"{name} has .* allowed are 2 or none"):
            two(**{name: wrong})


def test_a_change_that_does_not_fit_changes_nothing():
    made = two(notes=["x", "y"])
    with pytest.raises(ValueError, match="values has 3 entries"):
        made.move([1, 2, 3])
    with pytest.raises(ValueError, match="notes has 2 entries: there are 1 names"):
        made.set(names=["c"], values=[0], lows=[0], highs=[1])  # the old notes stay behind
    assert (made.names, made.values) == (["a", "b"], [1, 2])
