"""Sliders in Python: which one the reader moved, and following in silence."""

from workbench.widgets.faders import Sliders


def test_sliders_tell_which_one_moved_and_follow_in_silence():
    heard = []
    made = Sliders("Two", lambda place, value: heard.append((place, value)),
                   ("a", 1, 0, 10, 1), ("b", 2, 0, 10, 1))  # fmt: skip
    made.values = [1.0, 5.0]
    made.follow([9.0, 99.0])
    assert heard == [(1, 5.0)] and made.values == [9.0, 10.0]
