"""The notebook of neural_cpm in JupyterLab as a learner meets it, and its report offline."""

import papermill
import pytest

from workbench import catalog, reports
from workbench.methods.neural_cpm.study import Parameters

pytestmark = pytest.mark.notebook

PIXELS = """() => {
  const find = (node) => {
    for (const e of node.querySelectorAll('*')) {
      if (e.tagName === 'CANVAS' && e.getAttribute('aria-label')) return e;
      const inside = e.shadowRoot && find(e.shadowRoot);
      if (inside) return inside;
    }
  };
  return find(document)?.toDataURL();
}"""


@pytest.fixture
def notebook(run_in_lab, tmp_path):
    """The real notebook with its quick preset, run from top to bottom."""
    papermill.execute_notebook(
        str(catalog.notebooks_folder() / "neural_cpm.ipynb"),
        str(tmp_path / "neural_cpm.ipynb"),
        Parameters.preset("quick").to_papermill(),
        prepare_only=True,
        progress_bar=False,
        kernel_name="python3",
    )
    return run_in_lab()


def test_the_notebook_runs_in_jupyterlab_and_its_tissue_obeys_the_slider(notebook):
    notebook.locator(".lv[data-live=true]").first.wait_for(timeout=180_000)
    notebook.get_by_text("python 3.").last.wait_for(timeout=180_000)  # the last cell has printed
    assert notebook.locator('[data-mime-type="application/vnd.jupyter.error"]').count() == 0
    view = notebook.locator(".lv").first
    view.scroll_into_view_if_needed()
    before = notebook.evaluate(PIXELS)
    view.get_by_role("button", name="Play").click()
    notebook.wait_for_function(f"old => ({PIXELS})() !== old", arg=before)
    slider = notebook.get_by_role("slider", name="temperature slider")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowRight")
    value = notebook.get_by_role("spinbutton", name="temperature").input_value()
    assert float(value) > 1
    moved = notebook.evaluate(PIXELS)
    notebook.wait_for_function(f"old => ({PIXELS})() !== old", arg=moved)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of the quick preset with one change."""
    parameters = Parameters.preset("quick", temperature=2.0)
    return reports.make(parameters, tmp_path_factory.mktemp("report"))


def test_the_report_is_one_small_file_that_asks_for_nothing(offline_page, report):
    errors = []
    offline_page.on("pageerror", lambda error: errors.append(str(error)))
    assert report.html.stat().st_size < 5_000_000
    offline_page.goto(report.html.as_uri())
    offline_page.locator("canvas").first.wait_for(timeout=60_000)
    offline_page.wait_for_timeout(1500)
    assert offline_page.requests == []
    assert errors == []
    assert offline_page.locator("canvas").count() >= 8, "charts are interactive, not pictures"
    assert offline_page.locator("tr.changed").inner_text().split()[0] == "temperature"
    assert offline_page.get_by_text("✓ holds").count() >= 3
    assert offline_page.locator("math").count() > 20


def test_a_replay_in_the_report_can_be_scrubbed(offline_page, report):
    offline_page.goto(report.html.as_uri())
    player = offline_page.locator("figure[data-player]").first
    player.wait_for()
    picture = player.locator("img")
    last = picture.get_attribute("src")
    player.locator("input").fill("0")
    assert picture.get_attribute("src") != last
    assert player.locator("output").inner_text() == "0 MCS"
