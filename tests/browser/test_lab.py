"""The live tissue in JupyterLab: play, move a slider, see the canvas change."""

import json
import time

import pytest


def write(path, *cells):
    made = [
        {"cell_type": "code", "id": f"c{k}", "source": source, "metadata": {}, "outputs": [],
         "execution_count": None}
        for k, source in enumerate(cells)
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3"}
    text = {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(text))


@pytest.fixture
def notebook(page, lab, tmp_path):
    """A notebook with the explorer of neural_cpm, open in JupyterLab and run."""
    write(
        tmp_path / "live.ipynb",
        "from workbench import theme\ntheme.notebook()",
        "from workbench.methods.neural_cpm import live\nexplorer = live.explorer()\nexplorer",
        "explorer.parameters.temperature",
    )
    page.goto(lab(tmp_path).format("live.ipynb"))
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
    page.get_by_text("Python 3", exact=False).first.wait_for(timeout=60_000)
    page.get_by_role("menuitem", name="Run").click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.locator(".lv[data-live=true]").wait_for(timeout=90_000)
    return page


def test_the_tissue_plays_and_a_slider_acts_on_it(notebook, capsys):
    canvas = notebook.locator(".lv canvas")
    notebook.get_by_role("button", name="Play").click()
    time.sleep(3)
    rate = int(notebook.locator(".lv").get_attribute("data-rate"))
    with capsys.disabled():
        print(f"\nJupyterLab, 100 x 100, 4 MCS a frame: {rate} frames/s")
    assert rate >= 5
    pixels = "c => c.toDataURL()"
    one = canvas.evaluate(pixels)
    notebook.wait_for_function(
        "old => { const find = (n) => { for (const e of n.querySelectorAll('*')) {"
        " if (e.tagName === 'CANVAS' && e.getAttribute('aria-label')) return e;"
        " if (e.shadowRoot) { const f = find(e.shadowRoot); if (f) return f; } } };"
        " return find(document).toDataURL() !== old; }",
        arg=one,
    )
    slider = notebook.get_by_role("slider", name="temperature slider")
    slider.focus()
    for _ in range(20):
        slider.press("ArrowRight")
    wanted = notebook.get_by_role("spinbutton", name="temperature").input_value()
    assert float(wanted) > 1
    notebook.get_by_role("button", name="Pause").click()
    cell = notebook.locator(".jp-Cell").nth(2)
    said = cell.locator(".jp-OutputArea-output")
    deadline = time.monotonic() + 60
    while wanted not in "".join(said.all_inner_texts()):  # the kernel hears of it later
        assert time.monotonic() < deadline
        cell.locator(".cm-content").click()
        notebook.keyboard.press("Shift+Enter")
        time.sleep(2)
