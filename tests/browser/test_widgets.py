"""The widgets in a real browser: the canvas plays, obeys, takes keys, and stays a still."""

import base64
import re
import time

import nbformat
import numpy as np
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from playwright.sync_api import expect

from workbench.widgets.player import FramePlayer

COLORS_OF_ROW = """canvas => {
  const image = canvas.getContext('2d').getImageData(0, canvas.height >> 1, canvas.width, 1).data;
  return Array.from(image).join();
}"""


@pytest.fixture(scope="session")
def lattice_url(serve):
    from pathlib import Path

    return serve(Path(__file__).parent / "lattice_page.py")


@pytest.fixture
def lattice(page, lattice_url):
    """The page of `lattice_page.py`, loaded, with the view ready."""
    page.goto(lattice_url)
    page.locator("canvas[aria-label]").wait_for()
    page.locator(".lv[data-live=true]").wait_for()
    return page


def frames(page):
    return int(page.locator(".lv").get_attribute("data-frames"))


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def click_site(page, row, column, to=None):
    box = page.locator("canvas").bounding_box()
    place = [
        box["x"] + (column + 0.5) * box["width"] / 256,
        box["y"] + (row + 0.5) * box["height"] / 256,
    ]
    page.mouse.move(*place)
    page.mouse.down()
    if to:
        page.mouse.move(
            box["x"] + (to[1] + 0.5) * box["width"] / 256,
            box["y"] + (to[0] + 0.5) * box["height"] / 256,
            steps=2,
        )
    page.mouse.up()


def test_play_moves_the_picture_at_a_good_rate_and_pause_stops_it(lattice, capsys):
    before = lattice.locator("canvas").evaluate(COLORS_OF_ROW)
    lattice.get_by_role("button", name="Play", exact=True).click()
    time.sleep(3)
    rate = int(lattice.locator(".lv").get_attribute("data-rate"))
    lattice.get_by_role("button", name="Pause", exact=True).click()
    with capsys.disabled():
        print(f"\nLatticeView 256 x 256: {rate} frames/s")
    assert rate >= 10  # about 45 on an idle machine; the benchmark says how fast, this that it runs
    assert lattice.locator("canvas").evaluate(COLORS_OF_ROW) != before
    expect(lattice.get_by_role("button", name="Play", exact=True)).to_be_visible()
    time.sleep(0.3)
    count = frames(lattice)
    time.sleep(0.4)
    assert frames(lattice) == count


def test_a_parameter_changes_the_running_simulation(lattice):
    lattice.get_by_role("button", name="Play", exact=True).click()
    wait_until(lambda: frames(lattice) > 5)
    lattice.get_by_label("share").fill("0")
    lattice.get_by_label("share").press("Enter")

    def frozen():
        one = lattice.locator("canvas").evaluate(COLORS_OF_ROW)
        count = frames(lattice)
        time.sleep(0.3)
        return frames(lattice) > count and lattice.locator("canvas").evaluate(COLORS_OF_ROW) == one

    wait_until(frozen)  # frames go on, and nothing moves any more


def test_the_keyboard_plays_steps_resets_and_points(lattice):
    canvas = lattice.locator("canvas")
    canvas.focus()
    canvas.press("ArrowRight")
    expect(lattice.get_by_text("1 steps", exact=True)).to_be_visible()
    canvas.press("Home")
    expect(lattice.get_by_text("0 steps", exact=True)).to_be_visible()
    canvas.press("Shift+ArrowUp")
    expect(
        lattice.get_by_text(re.compile(r"\(127, 128\) cell \d+ · \w+ · volume 1024"))
    ).to_be_visible()
    canvas.press(" ")
    expect(lattice.get_by_role("button", name="Pause", exact=True)).to_be_visible()
    canvas.press(" ")
    expect(lattice.get_by_role("button", name="Play", exact=True)).to_be_visible()


def test_everything_that_can_be_used_has_a_name(lattice):
    for role, name in [
        ("button", "Step"), ("button", "Reset"), ("spinbutton", "Seed"), ("slider", "Speed"),
        ("combobox", "Color by"), ("combobox", "Pointer"),
    ]:  # fmt: skip
        assert lattice.get_by_role(role, name=name).count() == 1, name
    label = lattice.locator("canvas").get_attribute("aria-label")
    assert label.startswith("Cell lattice: 256 by 256 sites") and "32 dark, 32 light" in label
    assert lattice.locator("canvas").get_attribute("role") == "img"


def test_pointing_tells_cell_type_volume_and_perimeter(lattice):
    box = lattice.locator("canvas").bounding_box()
    lattice.mouse.move(box["x"] + box["width"] / 2 + 4, box["y"] + box["height"] / 2 + 4)
    told = lattice.locator(".info").inner_text()
    # An undisturbed block of 32 x 32 sites: 4 x 32 sides with 3 pairs each, less the 4 corners.
    assert re.fullmatch(r"\(13\d, 13\d\) cell 37 · dark · volume 1024 · perimeter 380", told)


def test_killing_erasing_and_drawing_change_the_lattice(lattice):
    lattice.get_by_role("combobox", name="Pointer").select_option("kill")
    click_site(lattice, 100, 100)
    expect(lattice.get_by_text("dark (31)").or_(lattice.get_by_text("light (31)"))).to_be_visible()
    lattice.get_by_role("combobox", name="Pointer").select_option("erase")
    click_site(lattice, 200, 20, to=(200, 60))
    for column in (20, 37, 60):  # no gaps in a quick drag
        box = lattice.locator("canvas").bounding_box()
        lattice.mouse.move(
            box["x"] + (column + 0.5) * box["width"] / 256, box["y"] + 200.5 * box["height"] / 256
        )
        lattice.locator(".info", has_text=f"(200, {column}) medium").wait_for()


def test_errors_are_said_in_the_view(lattice):
    lattice.get_by_role("combobox", name="Pointer").select_option("kill")
    click_site(lattice, 50, 150)  # cell 13
    expect(
        lattice.get_by_role("alert").get_by_text("ValueError: cell 13 cannot be killed")
    ).to_be_visible()


def test_a_narrow_page_still_shows_all_of_it(lattice):
    lattice.set_viewport_size({"width": 380, "height": 900})
    wait_until(lambda: lattice.locator("canvas").bounding_box()["width"] <= 380)
    assert lattice.evaluate("document.documentElement.scrollWidth") <= 380


STILL_CELL = """
import numpy as np
from workbench.widgets.lattice_view import Frame, LatticeView
class Still:
    kinds = ("medium", "dark")
    def frame(self):
        cell = np.zeros((32, 32), int)
        cell[8:24, 8:24] = 1
        return Frame(cell, np.array([0, 1]), 12)
LatticeView(Still(), time_unit="MCS")
"""


def test_an_exported_notebook_keeps_the_last_frame_and_asks_for_nothing(offline_page, tmp_path):
    cells = ["from workbench import theme\ntheme.notebook()", STILL_CELL]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    kernel = AsyncKernelManager(transport="ipc", connection_file=str(tmp_path / "kernel.json"))
    NotebookClient(notebook, km=kernel, timeout=90).execute()
    elsewhere = ("require_js_url", "mathjax_url", "jquery_url", "mermaid_js_url")
    page, _ = HTMLExporter(**dict.fromkeys(elsewhere, "")).from_notebook_node(notebook)
    path = tmp_path / "page.html"
    path.write_text(page)
    offline_page.goto(path.as_uri())
    canvas = offline_page.locator("canvas[aria-label]")
    canvas.wait_for()
    assert "32 by 32 sites after 12 MCS" in canvas.get_attribute("aria-label")
    offline_page.get_by_text("Still picture").wait_for()
    assert not offline_page.get_by_role(
        "button", name="Play", exact=True
    ).is_visible()  # no dead controls
    middle = canvas.evaluate(
        "c => Array.from(c.getContext('2d')"
        ".getImageData(c.width / 2 + 3, c.height / 2 + 3, 1, 1).data)"
    )
    assert middle[:3] == [0xE6, 0x9F, 0x00]
    assert offline_page.requests == []


def test_the_player_replays_offline_and_prints_its_last_frame(offline_page, tmp_path):
    cells = np.stack([np.full((8, 8), k) for k in range(5)])
    kind = np.array([0, 1, 2, 1, 2])
    players = [FramePlayer(cells, kind, unit="MCS", caption=c, frames_per_second=20) for c in "AB"]
    path = tmp_path / "page.html"
    path.write_text("<meta charset=utf-8>" + "".join(p._repr_html_() for p in players))
    offline_page.goto(path.as_uri())
    first, second = (offline_page.get_by_role("group", name=n) for n in "AB")
    first.get_by_role("slider").fill("1")
    expect(first.get_by_text("1 MCS")).to_be_visible()
    assert second.get_by_text("4 MCS").is_visible()  # players do not disturb each other

    def shown(player):
        return base64.b64decode(player.get_by_role("img").get_attribute("src").split(",")[1])

    assert shown(first) == players[0].images[1] and shown(second) == players[1].images[4]
    first.get_by_role("button").click()
    expect(first.get_by_text("4 MCS")).to_be_visible()
    first.get_by_role("slider").fill("0")
    offline_page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert shown(first) == players[0].images[4]
    assert offline_page.requests == []


def test_the_player_works_inside_a_panel_page(lattice):
    replay = lattice.get_by_role("group", name="Replay")
    replay.get_by_role("slider").fill("1")
    expect(replay.get_by_text("1 frames")).to_be_visible()
    replay.get_by_role("button").click()
    expect(replay.get_by_text("2 frames")).to_be_visible()
