"""The attack widgets in a real browser: zoom, gain, pointer, drag, keys, and a narrow page."""

import re
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbconvert import HTMLExporter

expect = pytest.importorskip("playwright.sync_api").expect

PIXELS = "canvas => canvas.toDataURL()"


@pytest.fixture(scope="session")
def perturbation_url(serve):
    return serve(Path(__file__).parent / "perturbation_page.py")


@pytest.fixture
def attack(page, perturbation_url):
    """The page of `perturbation_page.py` with everything drawn."""
    page.goto(perturbation_url)
    page.locator(".pv[data-frames]").nth(1).wait_for()
    page.locator(".rl[data-live=true]").nth(1).wait_for()
    return page


def view(page, n=0):
    return page.locator(".pv").nth(n)


def pixels(page, n=0):
    return [c.evaluate(PIXELS) for c in view(page, n).locator("canvas[role=img]").all()]


def center(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, source, target, below=0.0):
    page.mouse.move(*center(source))
    page.mouse.down()
    x, y = center(target)
    page.mouse.move(x, y + below, steps=6)
    page.mouse.up()


def order(page, n=0):
    return page.locator(".rl").nth(n).locator("li .name").all_inner_texts()


def test_the_gain_changes_the_perturbation_and_nothing_else(attack):
    before = pixels(attack)
    slider = view(attack).get_by_role("slider", name="Gain")
    slider.focus()
    for _ in range(4):
        slider.press("ArrowRight")
    expect(view(attack).get_by_text("×8", exact=True)).to_be_visible()
    expect(view(attack).get_by_text("+0.125")).to_be_visible()
    after = pixels(attack)
    assert [a == b for a, b in zip(after, before, strict=True)] == [True, False, True]


def test_fit_lets_the_strongest_pixel_span_the_colors(attack):
    view(attack).get_by_role("button", name="Fit").click()
    label = view(attack).locator("canvas[role=img]").nth(1)
    expect(label).to_have_attribute("aria-label", re.compile(r"size (\S+), .* plus minus \1$"))


def test_wheel_drag_keys_and_reset_move_all_three_pictures_together(attack):
    whole = pixels(attack)
    canvas = view(attack).locator("canvas[role=img]").nth(2)
    attack.mouse.move(*center(canvas))
    attack.mouse.wheel(0, -200)
    expect(view(attack).get_by_text("×1", exact=True)).to_be_visible()  # not clicked: the page's
    attack.mouse.click(*center(canvas))
    attack.mouse.wheel(0, -200)
    expect(view(attack).get_by_text("×2", exact=True)).to_be_visible()
    attack.mouse.move(0, 0)
    zoomed = pixels(attack)
    assert all(a != b for a, b in zip(zoomed, whole, strict=True))
    x, y = center(canvas)
    attack.mouse.move(x, y)
    attack.mouse.down()
    attack.mouse.move(x + 60, y + 60, steps=4)
    attack.mouse.up()
    attack.mouse.move(0, 0)
    panned = pixels(attack)
    assert all(a != b for a, b in zip(panned, zoomed, strict=True))
    stage = view(attack).get_by_role("group", name=re.compile("three pictures"))
    stage.focus()
    stage.press("0")
    expect(view(attack).get_by_text("×1", exact=True)).to_be_visible()
    assert pixels(attack) == whole
    stage.press("+")
    expect(view(attack).get_by_text("×1.5", exact=True)).to_be_visible()
    view(attack).get_by_role("button", name="Reset zoom").click()
    expect(view(attack).get_by_text("×1", exact=True)).to_be_visible()


def test_pointing_reads_the_three_values_by_mouse_and_by_keys(attack):
    box = view(attack).locator("canvas[role=img]").first.bounding_box()
    attack.mouse.move(box["x"] + box["width"] * 5.5 / 8, box["y"] + box["height"] * 2.5 / 8)
    told = view(attack).locator(".told")
    expect(told).to_contain_text("Row 2, column 5: clean 0.650 · perturbation ")
    clean, delta, attacked = re.search(
        r"clean (\S+) · perturbation (\S+) · attacked (\S+)", told.inner_text()
    ).groups()
    signed = float(delta.replace("−", "-"))
    assert float(clean) + signed == pytest.approx(float(attacked), abs=0.0011) and signed != 0
    attack.mouse.move(0, 0)
    stage = view(attack).get_by_role("group", name=re.compile("three pictures"))
    stage.focus()
    stage.press("Shift+ArrowLeft")
    expect(told).to_contain_text("Row 4, column 3: clean 0.650")
    stage.press("Escape")
    expect(told).to_contain_text("Point at a pixel")


def test_a_colored_picture_has_three_values_and_channels(attack):
    canvas = view(attack, 1).locator("canvas[role=img]").nth(1)
    before = canvas.evaluate(PIXELS)
    view(attack, 1).get_by_role("combobox", name="Channel").select_option("red")
    attack.wait_for_function(
        "([c, before]) => c.toDataURL() !== before", arg=[canvas.element_handle(), before]
    )
    canvas.hover()
    expect(view(attack, 1).locator(".told")).to_contain_text(
        re.compile(r"Row 11\d, column 11\d: clean \((\d\.\d{3}(, )?){3}\)")
    )


def test_the_predicted_order_says_what_is_wanted_and_reached(attack):
    table = view(attack).get_by_role("table")
    first = table.get_by_role("row").nth(1)
    expect(first).to_contain_text("digit 7")
    expect(first).to_contain_text("1 ✓")
    expect(view(attack).get_by_text("✓ found, iteration 20 of 20")).to_be_visible()
    # Of 94 classes the wanted ones are shown even if far down, after a mark of omission.
    far = view(attack, 1).get_by_role("table")
    expect(far.get_by_text("⋯").first).to_be_visible()
    assert far.locator("tr.wanted").count() == 5
    expect(view(attack, 1).get_by_text("✗ not found, iteration 30")).to_be_visible()


def test_an_attack_is_seen_while_it_runs_and_its_last_state_stays(attack):
    before = int(view(attack).get_attribute("data-frames"))
    attack.get_by_role("button", name="Attack").click()
    expect(view(attack).get_by_text(re.compile(r"running, iteration \d+ of 20"))).to_be_visible()
    expect(view(attack).get_by_text("✓ found, iteration 20 of 20")).to_be_visible()
    frames = int(view(attack).get_attribute("data-frames")) - before
    assert 3 <= frames <= 21


def test_dragging_adds_reorders_and_removes_and_the_view_follows(attack):
    ranking = attack.locator(".rl").first
    items = ranking.locator("li[data-class]")
    pictures = pixels(attack)
    drag(attack, ranking.get_by_role("button", name="Add digit 5"), items.nth(1), below=-8)
    expect(attack.get_by_text("heard 7 5 1")).to_be_visible()
    assert order(attack) == ["digit 7", "digit 5", "digit 1"]
    expect(view(attack).locator("tr.wanted").nth(1)).to_contain_text("digit 5")
    drag(attack, items.nth(0).locator(".name"), items.nth(2), below=8)
    expect(attack.get_by_text("heard 5 1 7")).to_be_visible()
    drag(attack, items.nth(1).locator(".name"), ranking.locator(".chips"))
    expect(attack.get_by_text("heard 5 7")).to_be_visible()
    assert pixels(attack) == pictures  # same image and perturbation: only the order is another


def test_keys_and_buttons_do_what_a_drag_can(attack):
    ranking = attack.locator(".rl").first
    items, said = ranking.locator("li[data-class]"), ranking.locator("[aria-live]")
    items.first.focus()
    items.first.press("Shift+ArrowDown")
    expect(attack.get_by_text("heard 1 7")).to_be_visible()
    expect(said).to_have_text("digit 7 is now 2 of 2")
    expect(items.nth(1)).to_be_focused()
    items.nth(1).press("Delete")
    expect(attack.get_by_text("heard 1", exact=True)).to_be_visible()
    add = ranking.get_by_role("button", name="Add digit 8")
    add.focus()
    add.press("Enter")
    expect(attack.get_by_text("heard 1 8")).to_be_visible()
    expect(ranking.get_by_role("button", name="Add digit 9")).to_be_focused()
    ranking.get_by_role("button", name="Move up: digit 8").click()
    expect(attack.get_by_text("heard 8 1")).to_be_visible()
    ranking.get_by_role("button", name="Remove: digit 8").click()
    expect(attack.get_by_text("heard 1", exact=True)).to_be_visible()
    ranking.get_by_role("button", name="Clear").click()
    expect(ranking.get_by_text("Click a class or drag it here")).to_be_visible()


def test_the_true_class_and_one_too_many_are_refused_with_the_reason(attack):
    ranking = attack.locator(".rl").first
    truth = ranking.get_by_role("button", name="digit 3, the true class: it cannot be chosen")
    truth.click(force=True)
    drag(attack, truth, ranking.locator("li[data-class]").first)
    assert order(attack) == ["digit 7", "digit 1"]
    for k in (0, 2, 4):
        ranking.get_by_role("button", name=f"Add digit {k}").click()
    expect(attack.get_by_text("heard 7 1 0 2 4")).to_be_visible()
    ranking.get_by_role("button", name="digit 5, the order is full").click(force=True)
    expect(
        ranking.get_by_text("The order is full with 5: remove a class first").first
    ).to_be_visible()
    assert len(order(attack)) == 5


def test_a_search_finds_one_of_94_classes_by_its_exact_name(attack):
    ranking = attack.locator(".rl").nth(1)
    search = ranking.get_by_role("searchbox", name="Search classes")
    search.fill("a")
    expect(ranking.locator(".chips button")).to_have_text(["a"])  # "A" is in the order already
    search.fill("q")
    expect(ranking.locator(".chips button")).to_have_text(["Q", "q"])
    search.press("Enter")
    expect(ranking.locator("li .name").last).to_have_text("q")
    expect(search).to_be_focused()
    search.fill("nothing")
    search.press("Enter")
    expect(ranking.get_by_text('No class to choose is called "nothing"').first).to_be_visible()


def test_a_narrow_page_still_shows_all_of_it(attack):
    attack.set_viewport_size({"width": 380, "height": 900})
    attack.wait_for_timeout(300)
    assert attack.evaluate("document.documentElement.scrollWidth") <= 380


CELL = """
import numpy as np
import panel as pn
from workbench.widgets.perturbation_view import PerturbationView
from workbench.widgets.ranking_list import RankingList
view = PerturbationView("abc")
for k in range(9):
    view.show(np.full((8, 8), 0.5), np.eye(8) / 10, [3.0, 2.0, k], [0, 1], iteration=k)
pn.Column(view, RankingList("abc", value=[0, 1]))
"""


def test_an_exported_notebook_still_zooms_and_asks_for_nothing(offline_page, tmp_path):
    cells = ["from workbench import theme\ntheme.notebook()", CELL]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    kernel = AsyncKernelManager(transport="ipc", connection_file=str(tmp_path / "kernel.json"))
    NotebookClient(notebook, km=kernel, timeout=90).execute()
    elsewhere = ("require_js_url", "mathjax_url", "jquery_url", "mermaid_js_url")
    exported, _ = HTMLExporter(**dict.fromkeys(elsewhere, "")).from_notebook_node(notebook)
    path = tmp_path / "page.html"
    path.write_text(exported)
    offline_page.goto(path.as_uri())
    expect(offline_page.get_by_text("✗ not found, iteration 8")).to_be_visible()
    before = pixels(offline_page)
    offline_page.get_by_role("button", name="Zoom in").click()
    expect(offline_page.get_by_text("×1.5", exact=True)).to_be_visible()
    assert pixels(offline_page)[1] != before[1]
    expect(offline_page.get_by_text("Still picture: run the notebook")).to_be_visible()
    assert offline_page.requests == []
