"""The chart that hears the pointer, in Python: its field, its kinds, what it starts with."""

import pytest

from workbench.widgets.brush import Brush
from workbench.widgets.svg import BOTTOM, LEFT, RIGHT, TOP


def test_the_frame_is_the_field_of_a_chart_of_that_size():
    made = Brush(600, 360, kind="box")
    left, top, right, bottom = made.frame
    assert (left * 600, right * 600) == (LEFT, 600 - RIGHT)
    assert (top * 360, bottom * 360) == (TOP, pytest.approx(360 - BOTTOM))
    assert made.box == [] and made.html == "" and made.sizing_mode == "stretch_width"


def test_a_line_starts_in_the_middle_and_stays_in_the_field():
    made = Brush(600, 300, "<p>chart</p>")
    assert made.kind == "line" and made.at == 0.5 and made.html == "<p>chart</p>"
    with pytest.raises(ValueError, match="at"):
        made.at = 1.2
    with pytest.raises(ValueError, match="kind"):
        Brush(600, 300, kind="circle")
