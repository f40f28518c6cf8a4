"""Inline toys and drawings in JupyterLab: a slider changes the text and the chart below it."""

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

CELLS = (
    "import holoviews as hv\nfrom workbench import theme\nfrom workbench.widgets.toy import toy\n"
    "theme.notebook()",
    'toy(lambda power: theme.Html(f"<p>two to the {power:g}</p>"), power=(3.0, 0.0, 9.0, 1.0))',
    'toy(lambda n: hv.Curve([1, n]).opts(title=f"up to {n:g}"), n=(4.0, 2.0, 9.0, 1.0))',
    "from workbench.methods.ucbvi_constants import live, study\n"
    'explorer = live.explorer(study.Parameters.preset("quick", K=1000))\nexplorer',
)


@pytest.fixture
def notebook(page, run_in_lab):
    """The cells above in JupyterLab, run."""
    page.set_viewport_size({"width": 1400, "height": 1400})
    return run_in_lab(*CELLS)


def test_toys_follow_their_sliders_and_the_bench_runs(notebook):
    # Text, then a chart, as the two kinds of things that a toy's function returns.
    expect(notebook.get_by_text("two to the 3")).to_be_visible(timeout=180_000)
    sliders = notebook.get_by_role("slider")
    sliders.nth(0).focus()
    sliders.nth(0).press("ArrowRight")
    expect(notebook.get_by_text("two to the 4")).to_be_visible(timeout=60_000)
    charts = notebook.locator(".jp-OutputArea .bk-Figure")
    expect(charts.first).to_be_visible(timeout=180_000)
    cell = notebook.locator(".jp-Cell").nth(2)
    slider = cell.get_by_role("slider").first
    slider.focus()
    slider.press("ArrowRight")
    expect(cell.locator(".bk-Figure")).to_have_count(1, timeout=60_000)
    expect(notebook.get_by_role("img", name="Regret, pseudo: random 3 x 3")).to_be_visible(
        timeout=180_000
    )
