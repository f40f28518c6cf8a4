"""The page of a sweep in Chromium: drawn without a network, linked hover, a click to the report."""

import pytest
from helpers import write_sweep

from workbench import grids, sweeps
from workbench.claims import Claims, judge


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """A sweep of temperature with two seeds and two tested claims."""
    folder = tmp_path_factory.mktemp("sweep")
    points = grids.points("neural_cpm", {"temperature": [0.5, 1, 2]}, 2, "quick")

    def measured(parameters):
        heat = parameters.temperature + 0.2 * parameters.seed
        return Claims(
            [
                judge("error", "The error is small", [heat], at_most=1.5, unit="sites"),
                judge("gain", "The gain is large", [heat**2], at_least=1),
            ]
        )

    sweeps._conclude(write_sweep(folder, points, measured))
    return folder / "index.html"


# The charts and the reports that each draws; the place of report `row` in chart `chart`, in pixels
# of the page; the rows that are marked in each chart.
CHARTS = """() => {
  window.charts = Bokeh.index.roots.filter((view) => view.model.type === "Figure")
  window.reports = charts.map((v) => v.model.renderers.find((r) => "about" in r.data_source.data))
  return charts.length
}"""
PLACE = """([chart, row]) => {
  const {data_source, glyph} = reports[chart], {x_scale, y_scale} = charts[chart].frame
  const box = charts[chart].el.getBoundingClientRect()
  return [box.x + x_scale.compute(data_source.data.x[row]),
          box.y + y_scale.compute(data_source.data[glyph.y.field][row])]
}"""
MARKED = "() => reports.map((r) => [...r.data_source.inspected.indices].join()).join('; ')"


def test_charts_are_drawn_offline_with_linked_hover_and_a_click_opens_the_report(
    offline_page, index
):
    page = offline_page
    page.goto(index.as_uri())
    page.wait_for_function(f"window.Bokeh && ({CHARTS})() === 2")
    assert page.requests == []
    page.locator("figure").first.scroll_into_view_if_needed()
    x, y = page.evaluate(PLACE, [0, 5])
    page.mouse.move(x, y)
    page.wait_for_function(f"({MARKED})() === '5; 5'")
    page.get_by_text("temperature = 2.0, seed = 1").first.wait_for()
    page.get_by_text("✗ fails: 2.2 sites").first.wait_for()
    with page.context.expect_page() as opened:
        page.mouse.click(x, y)
    opened.value.wait_for_load_state()
    assert opened.value.url.endswith("/points/5_temperature=2.0,seed=1/neural_cpm.html")
    assert opened.value.inner_text("h1") == "report 5"
