"""Charts as text: what is drawn where, gaps, legends, and words for screen readers."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from workbench.widgets.drawing import Drawing
from workbench.widgets.line_chart import Area, Line, Mark, Scale, line_chart, number


def parsed(chart):
    return ElementTree.fromstring(str(chart).replace("&", "&amp;"))


def paths(chart, color):
    return re.findall(rf'<path d="([^"]*)" fill="none" stroke="{color}"', str(chart))


def test_lines_go_where_the_scales_say():
    line = Line("a", np.array([0.0, 10.0]), np.array([0.0, 4.0]), "#111111")
    chart = line_chart("T", "x", "y", [line], width=200, height=100)
    assert paths(chart, "#111111") == ["M62.0 56.0L176.0 12.0"]
    parsed(chart)


def test_gaps_and_values_that_a_log_axis_cannot_show():
    y = np.array([1.0, np.nan, 0.0, 10.0, 100.0])
    chart = line_chart("T", "x", "y", [Line("a", np.arange(1.0, 6.0), y, "#111111")], y_log=True)
    path = paths(chart, "#111111")[0]
    assert path.count("M") == 2 and path.count("L") == 1


def test_the_label_names_everything_and_words_are_escaped():
    x = np.array([1.0, 2.0])
    chart = line_chart(
        "A <b>", "N & M", "regret", [Line("fast", x, x, "#111111", dash="dashed")],
        [Area("var", x, 0 * x, x, "#222222")], [Mark("H = 5", 1.5), Mark("now", 1.2, "x")],
    )  # fmt: skip
    assert 'aria-label="A &lt;b&gt;: regret over N &amp; M. fast, var, H = 5, now"' in chart
    assert "<b>" not in chart
    assert chart.count("7 4") == 2  # in the chart and in the legend: not by color alone
    parsed(chart)


def test_bands_and_areas_are_polygons():
    x = np.array([1.0, 2.0, 3.0])
    line = Line("a", x, x, "#111111", low=x - 1, high=x + 1)
    assert line_chart("T", "x", "y", [line]).count("<polygon") == 1
    area = Area("b", x, np.zeros(3), x, "#222222")
    log = line_chart("T", "x", "y", [], [area], y_log=True)
    assert "nan" not in log and log.count("<polygon") == 1


def test_a_chart_of_nothing_is_still_a_chart():
    for log in (False, True):
        parsed(line_chart("T", "x", "y", x_log=log, y_log=log))
        parsed(line_chart("T", "x", "y", [Line("a", np.ones(1), np.ones(1), "#111111")]))


@pytest.mark.parametrize(
    "low, high, log, ticks",
    [
        (0, 10, False, [0, 2, 4, 6, 8, 10]),
        (-0.1, 0.32, False, [-0.1, 0, 0.1, 0.2, 0.3]),
        (1, 1e4, True, [1, 10, 100, 1000, 10_000]),
        (2, 30, True, [2, 5, 10, 20]),
    ],
)
def test_ticks_are_round(low, high, log, ticks):
    np.testing.assert_allclose(Scale(low, high, 0, 1, log).ticks(), ticks, atol=1e-12)


def test_numbers_are_short():
    values = (0, 0.05, 300, 12_000, 1e6, 1e-4, 2.5e6, 1e5)
    assert [number(v) for v in values] == [
        "0", "0.05", "300", "12,000", "10⁶", "10⁻⁴", "2.5e+06", "10⁵",
    ]  # fmt: skip


def test_a_drawing_takes_text():
    drawing = Drawing(line_chart("T", "x", "y"), width=300, sizing_mode=None)
    assert drawing.html.startswith("<figure") and type(drawing.html) is str
    drawing.html = "<p>next</p>"
    assert drawing.hello == ""
