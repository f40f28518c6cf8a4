"""Charts as SVG text: well formed, labeled, with gaps, keys and words."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from workbench.widgets.svg import Band, Bars, Dots, Line, chart

K = np.arange(5)
PARTS = [
    Line("falls", K, 10.0**-K, "#0072B2"),
    Dots("measured", K, 10.0**-K, "#D55E00", "cross"),
    Band("bracket", K, 0.1 * 10.0**-K, 10.0**-K, "#009E73"),
]


def tree(text):
    return ElementTree.fromstring(text)


@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("log_x", [False, True])
def test_a_chart_is_well_formed_and_says_itself(log_x, log_y):
    text = chart("Errors & more", PARTS, "iteration", "error", log_x=log_x, log_y=log_y, at=2)
    figure = tree(text)
    assert figure.find("figcaption").text == "Errors & more"
    (picture,) = [e for e in figure.iter("svg") if e.get("role") == "img"]
    assert all(name in picture.get("aria-label") for name in ("falls", "measured", "bracket"))
    words = {e.text for e in picture.iter("text")}
    assert {"iteration", "error"} <= words
    assert "nan" not in text and "inf" not in text


def test_a_line_on_a_logarithmic_axis_is_straight_and_decades_are_its_ticks():
    text = chart("", PARTS[:1], "k", "error", log_y=True)
    path = re.search(r'<path d="(M[^"]*)" fill="none" stroke="#0072B2"', text)[1]
    y = [float(b) for b in re.findall(r"[ML][\d.]+ ([\d.]+)", path)]
    assert len(y) == 5 and np.ptp(np.diff(y)) < 0.2 and y == sorted(y)
    assert ">10⁻⁴<" in text and ">10⁻²<" in text and ">1<" in text


def test_values_that_are_not_finite_are_gaps_and_zero_stays_on_a_logarithmic_axis():
    text = chart("", [Line("a", K, [1, np.nan, 2, np.inf, 3], "#000")], "x", "y")
    assert re.search(r'd="(M[^"]*)" fill="none"', text)[1].count("M") == 3
    tree(chart("", [Line("a", K, [1, 0, 2, 0, 3], "#000")], "x", "y", log_y=True))
    tree(chart("", [], "x", "y"))
    tree(chart("", [Line("flat", K, np.ones(5), "#000")], "x", "y"))


def test_long_lines_are_thinned_and_keep_their_ends():
    n = 100_000
    text = chart("", [Line("long", np.arange(n), np.arange(n), "#000")], "x", "y")
    assert len(text) < 12_000
    tree(text)


def test_bars_stand_on_zero_and_parts_without_a_name_have_no_key():
    text = chart("", [Bars("", K, [0.1, 0.3, 0.2, 0.3, 0.1], "#56B4E9")], "state", "share")
    assert text.count("white-space:nowrap") == 0
    floors = set(re.findall(r"M[\d.]+ ([\d.]+)h", text))
    assert len(floors) == 1


@pytest.mark.parametrize("shape", ["disc", "ring", "square", "cross"])
def test_every_shape_is_drawn(shape):
    tree(chart("", [Dots("d", [0, 1], [0, 1], "#000", shape)], "x", "y"))
