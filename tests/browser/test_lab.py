"""The live tissue in JupyterLab: play, move a slider, see the canvas change."""

import time

import pytest


@pytest.fixture
def notebook(run_in_lab):
    """A notebook with the explorer of neural_cpm, open in JupyterLab and run."""
    page = run_in_lab(
        "from workbench import theme\ntheme.notebook()",
        "from workbench.methods.neural_cpm import live\nexplorer = live.explorer()\nexplorer",
        "explorer.parameters.temperature",
    )
    page.locator(".lv[data-live=true]").wait_for(timeout=180_000)
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
    deadline = time.monotonic() + 180
    while wanted not in "".join(said.all_inner_texts()):  # the kernel hears of it later
        assert time.monotonic() < deadline
        cell.locator(".cm-content").click()
        notebook.keyboard.press("Shift+Enter")
        time.sleep(2)
