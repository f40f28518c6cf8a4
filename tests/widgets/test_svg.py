"""Charts as SVG text: what is drawn where, gaps, keys, ticks, and words for screen readers."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from workbench.widgets.drawing import Drawing
from workbench.widgets.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Band,
    Bars,
    Dots,
    Line,
    Mark,
    Raster,
    Scale,
    chart,
    number,
)

K = np.arange(1, 6)
COLOR = "#0072B2"
PARTS = [
    Line("falls", K, 10.0**-K, COLOR),
    Dots("measured", K, 10.0**-K, "#D55E00", "cross"),
    Band("bracket", K, 0.1 * 10.0**-K, 10.0**-K, "#009E73"),
    Mark("now", 2, "x"),
]


def picture(text):
    """The SVG of the chart; raises when the text is not well formed."""
    (found,) = [e for e in ElementTree.fromstring(text).iter("svg") if e.get("role") == "img"]
    return found


def field(text):
    """What stands for data, without axes and legend."""
    (found,) = [e for e in picture(text).iter("svg") if e.get("class") == "field"]
    return found


def path(text, color=COLOR):
    """The one line of a color."""
    (found,) = [e for e in field(text).iter("path") if e.get("stroke") == color]
    return found.get("d")


def texts(element):
    return [e.text for e in element.iter("text")]


@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("log_x", [False, True])
def test_a_chart_is_well_formed_and_has_title_labels_and_keys(log_x, log_y):
    text = chart("Errors & more", PARTS, "iteration", "error", log_x=log_x, log_y=log_y)
    figure = ElementTree.fromstring(text)
    assert figure.find("figcaption").text == "Errors & more"
    assert {"iteration", "error", "now"} <= set(texts(picture(text)))
    keys = ["".join(e.itertext()) for e in figure.iter("span")]
    assert keys == ["falls", "measured", "bracket"], "a mark has its name beside it"
    assert "nan" not in text and "inf" not in text


def test_the_label_names_everything_and_words_are_escaped():
    x = np.array([1.0, 2.0])
    parts = [Line("fast", x, x, COLOR, "7 4"), Band("var", x, 0 * x, x, "#222222"),
             Mark("H = 5", 1.5), Mark("now", 1.2, "x")]  # fmt: skip
    text = chart("A <b>", parts, "N & M", "regret")
    assert 'aria-label="A &lt;b&gt;: regret over N &amp; M. fast, var, H = 5, now"' in text
    assert "<b>" not in text
    assert text.count('"7 4"') == 2  # in the chart and in the legend: not by color alone
    said = chart("T", parts, "N", "regret", words='falls to "0"')
    assert picture(said).get("aria-label") == 'falls to "0"'


def test_lines_go_where_the_scales_say():
    text = chart("T", [Line("a", [0, 10], [0, 4], COLOR)], "x", "y", y_range=(0, 4), width=200,
                 height=100)  # fmt: skip
    assert path(text) == f"M{LEFT}.0 {100 - BOTTOM}.0L{200 - RIGHT}.0 {TOP}.0"


def test_a_line_on_a_logarithmic_axis_is_straight_and_decades_are_its_ticks():
    text = chart("", PARTS[:1], "k", "error", log_y=True)
    y = [float(b) for b in re.findall(r"[ML][\d.]+ ([\d.]+)", path(text))]
    assert len(y) == 5 and np.ptp(np.diff(y)) < 0.2 and y == sorted(y)
    assert [t for t in texts(picture(text)) if t in ("0.1", "0.01", "0.001", "10⁻⁴", "10⁻⁵")] == [
        "10⁻⁵", "10⁻⁴", "0.001", "0.01", "0.1",
    ]  # fmt: skip


def test_what_an_axis_cannot_show_is_a_gap():
    line = chart("", [Line("a", K, [1, np.nan, 2, np.inf, 3], COLOR)], "x", "y")
    assert (path(line).count("M"), path(line).count("L")) == (3, 0)
    values = [1, np.nan, 0, 10, 100]
    line = chart("", [Line("a", K, values, COLOR)], "x", "y", log_y=True)
    assert (path(line).count("M"), path(line).count("L")) == (2, 1)
    dots = chart("", [Dots("a", K, values, COLOR)], "x", "y", log_y=True)
    assert len(list(field(dots).iter("circle"))) == 3
    bars = chart("", [Bars("a", K, values, COLOR)], "x", "y")
    assert field(bars).find("path").get("d").count("M") == 4


def test_without_ranges_all_is_in_view_and_a_linear_y_axis_has_zero():
    text = chart("", [Line("a", K, K + 10, COLOR), Mark("limit", 30), Mark("", 99, "x")], "x", "y")
    assert {"0", "10", "20", "30"} <= set(texts(picture(text))) and "99" not in texts(picture(text))
    text = chart("", [Line("flat", K, np.ones(5), COLOR)], "x", "y", y_range=(1, 1))
    assert path(text).count("L") == 4 and "nan" not in text


def test_bands_are_areas_and_those_of_lines_lie_under_all():
    x = np.array([1.0, 2.0, 3.0])
    parts = [Dots("d", x, x, "#333333"), Line("a", x, x, COLOR, low=x - 1, high=x + 1)]
    assert [e.tag for e in field(chart("T", parts, "x", "y"))][:2] == ["polygon", "circle"]
    plain = chart("T", [Line("a", x, x, COLOR)], "x", "y")
    assert not list(field(plain).iter("polygon"))


def test_an_area_that_begins_at_nothing_stands_on_the_bottom_of_a_logarithmic_axis():
    x = np.array([1.0, 2.0, np.nan, 3.0])
    text = chart("T", [Band("b", x, np.zeros(4), x, COLOR)], "x", "y", log_y=True, height=200)
    (area,) = field(text).iter("polygon")
    corners = [point.split(",") for point in area.get("points").split()]
    assert len(corners) == 6 and {y for _, y in corners[3:]} == {f"{200 - BOTTOM}.0"}
    assert area.get("fill-opacity") == "0.25"


def test_bars_stand_on_zero_and_parts_without_a_name_have_no_key():
    text = chart("", [Bars("", K, [0.1, 0.3, 0.2, 0.3, 0.1], "#56B4E9")], "state", "share")
    assert "white-space:nowrap" not in text
    outline = field(text).find("path").get("d")
    floors, edges = re.findall(r"M[\d.]+ ([\d.]+)H", outline), re.findall(r"[MH]([\d.]+)", outline)
    assert len(floors) == 5 and len(set(floors)) == 1
    assert min(map(float, edges)) > LEFT and max(map(float, edges)) < 380 - RIGHT, "none is cut"


def test_long_lines_are_thinned_and_keep_their_ends_and_gaps():
    n = 100_000
    y = np.arange(float(n))
    y[n // 2 : n // 2 + n // 100] = np.nan
    text = chart("", [Line("long", np.arange(n), y, COLOR)], "x", "y", y_range=(0, n - 1))
    assert len(text) < 12_000
    first, last = re.findall(r"[ML]([\d.]+ [\d.]+)", path(text))[:: path(text).count("L") + 1]
    assert first == f"{LEFT}.0 {230 - BOTTOM}.0" and last == f"{380 - RIGHT}.0 {TOP}.0"
    assert path(text).count("M") == 2


def test_what_leaves_the_field_is_cut_off_by_it():
    line = Line("a", [0, 1], [0, 1000], COLOR)
    inside = field(chart("T", [line], "x", "y", y_range=(0, 1)))
    left, top, width, height = (float(v) for v in inside.get("viewBox").split())
    assert LEFT - 5 < left < LEFT and left + width < 380 and 0 < top and top + height < 230
    assert [float(inside.get(n)) for n in ("x", "y", "width", "height")] == [
        left, top, width, height,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "shape, tag, look",
    [
        ("disc", "circle", {"fill": COLOR}),
        ("ring", "circle", {"fill": "none", "stroke": COLOR}),
        ("square", "rect", {"fill": COLOR}),
        ("cross", "path", {"stroke": COLOR}),
    ],
)
def test_every_shape_is_drawn(shape, tag, look):
    text = chart("", [Dots("d", [0, 1], [0, 1], COLOR, shape)], "x", "y")
    (key,) = ElementTree.fromstring(text).iter("span")
    for drawn in (list(field(text)), list(key.find("svg"))):
        assert {e.tag for e in drawn} == {tag}
        assert all(look.items() <= e.attrib.items() for e in drawn)
    assert len(field(text)) == 2


@pytest.mark.parametrize("axis", ["x", "y"])
def test_a_mark_is_a_line_across_the_field_with_its_name(axis):
    text = chart("", [Mark("limit <", 3.0, axis)], "x", "y", x_range=(0, 4), y_range=(0, 4))
    line, name = field(text)
    x, y = Scale(0, 4, LEFT, 380 - RIGHT), Scale(0, 4, 230 - BOTTOM, TOP)
    across = {"x": f"M{x(3):.1f} {TOP}V{230 - BOTTOM}", "y": f"M{LEFT} {y(3):.1f}H{380 - RIGHT}"}
    assert line.get("d") == across[axis] and name.text == "limit <"
    assert name.get("text-anchor") == "end", "where there is room for it"
    assert [e.tag for e in field(chart("", [Mark("", 3.0, axis)], "x", "y"))] == ["path"]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("parts", [[], [Line("", [], [], COLOR)], [Line("", [1], [np.nan], COLOR)]])
def test_a_chart_of_nothing_has_axes_and_no_data(parts, log):
    text = chart("T", parts, "time", "value", log_x=log, log_y=log)
    assert {"time", "value", "1"} <= set(texts(picture(text)))
    grid = [e.get("d") for e in picture(text).findall("path")]
    assert sum("H" in d for d in grid) > 2 and sum("V" in d for d in grid) > 2
    assert all(not e.get("d") for e in field(text).iter("path"))
    assert "nan" not in text


@pytest.mark.parametrize(
    "low, high, log, ticks",
    [
        (0, 10, False, [0, 2, 4, 6, 8, 10]),
        (-0.1, 0.32, False, [-0.1, 0, 0.1, 0.2, 0.3]),
        (1, 1e4, True, [1, 10, 100, 1000, 10_000]),
        (1e-11, 10, True, [1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1]),
        (2, 30, True, [2, 5, 10, 20]),
        (3.1, 3.9, True, [3.2, 3.4, 3.6, 3.8]),
    ],
)
def test_ticks_are_round(low, high, log, ticks):
    np.testing.assert_allclose(Scale(low, high, 0, 1, log).ticks(), ticks, rtol=1e-9, atol=1e-15)


def test_numbers_are_short():
    values = (0, -0.0, 0.05, 0.1 + 0.2, 300, -12_000, 1e6, 1e-4, 2.5e6, 1e5, -1e5, -2e-7)
    assert [number(v) for v in values] == [
        "0", "0", "0.05", "0.3", "300", "-12,000", "10⁶", "10⁻⁴", "2.5×10⁶", "10⁵", "-10⁵",
        "-2×10⁻⁷",
    ]  # fmt: skip


def test_a_drawing_takes_text():
    drawing = Drawing(chart("T", [], "x", "y"), width=300, sizing_mode=None)
    assert drawing.html.startswith("<figure") and type(drawing.html) is str
    drawing.html = "<p>next</p>"
    assert drawing.hello == ""


def test_a_raster_fills_its_part_of_the_field_and_has_no_key():
    raster = Raster((1, 100), (0, 2), "data:image/png;base64,AA", "noise")
    text = chart("Map", [raster, Dots("now", [10], [1], COLOR)], "a", "b", log_x=True,
                 x_range=(1, 100), y_range=(0, 2), width=400, height=300)  # fmt: skip
    (image,) = field(text).iter("image")
    assert float(image.get("x")) == LEFT and float(image.get("y")) == TOP
    assert float(image.get("width")) == 400 - LEFT - RIGHT
    assert float(image.get("height")) == 300 - TOP - BOTTOM
    assert image.find("title").text == "noise" and image.get("href").startswith("data:")
    keys = ["".join(e.itertext()) for e in ElementTree.fromstring(text).iter("span")]
    assert keys == ["now"]


def test_dots_say_their_titles_under_the_mouse():
    text = chart("T", [Dots("a", [1, 2], [1, np.nan], COLOR, titles=["x < 1", "gone"])], "x", "y")
    assert [e.text for e in field(text).iter("title")] == ["x < 1"]
