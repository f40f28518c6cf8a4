"""The energy landscape of neural_cpm in a browser: clicks exchange cells, the table answers."""

import re
from pathlib import Path

import numpy as np
import pytest

from workbench.methods.neural_cpm import landscape, study

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def url(serve):
    return serve(Path(__file__).parent / "neural_cpm_page.py")


@pytest.fixture
def aggregate(page, url):
    """The page, ready, with `choose(identity)`: a click on a cell as it is at the start."""
    page.goto(url)
    page.locator(".lv[data-live=true]").wait_for(timeout=180_000)
    cell = landscape.EnergyLandscape(seed=study.Parameters().seed).aggregate.cell

    def choose(identity):
        sites = np.argwhere(cell == identity)
        row, column = sites[len(sites) // 2]
        box = page.locator(".lv canvas").bounding_box()
        page.mouse.click(
            box["x"] + (column + 0.5) / cell.shape[1] * box["width"],
            box["y"] + (row + 0.5) / cell.shape[0] * box["height"],
        )

    page.choose = choose
    return page


def numbers(page, part):
    """The numbers in a row of the table of energies: now, and before and change if known."""
    row = page.get_by_role("row").filter(has_text=part).inner_text()
    return [float(text) for text in re.findall(r"[+-]?\d+\.\d+", row.replace("−", "-"))]


def test_two_clicks_exchange_two_cells_and_the_table_shows_before_and_change(aggregate):
    expect(aggregate.get_by_text("Click a cell.", exact=True)).to_be_visible()
    assert len(numbers(aggregate, "network")) == 1
    aggregate.choose(1)
    expect(aggregate.get_by_text("Cell 1 (kind 1) is chosen")).to_be_visible()
    assert aggregate.get_by_role("columnheader", name="before").count() == 0
    aggregate.get_by_role("combobox", name="Color by").select_option("field")
    expect(aggregate.locator(".legend").get_by_text("price for cell 1")).to_be_visible()
    start = numbers(aggregate, "sum")[0]
    aggregate.choose(12)  # of kind 2
    expect(aggregate.get_by_role("columnheader", name="before")).to_be_visible()
    for part in ("cell sorting", "network", "sum"):
        now, before, change = numbers(aggregate, part)
        assert now - before == pytest.approx(change, abs=0.02)
    assert before == start and change != 0


def test_permuted_kinds_show_in_the_picture_and_in_the_table(aggregate):
    picture = aggregate.locator(".lv canvas")
    before = picture.evaluate("canvas => canvas.toDataURL()")
    start = numbers(aggregate, "sum")[0]
    aggregate.get_by_role("button", name="Permute kinds").click()
    expect(aggregate.get_by_role("columnheader", name="before")).to_be_visible()
    assert numbers(aggregate, "sum")[1] == start
    assert picture.evaluate("canvas => canvas.toDataURL()") != before
