"""RisingAttacK's explorer in a real browser: order, attack, walk back, mix, and all its tabs."""

import os
import re
from pathlib import Path

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

PIXELS = "canvas => canvas.toDataURL()"
REACHED = re.compile(r"RisingAttacK reached the order")


@pytest.fixture(scope="module")
def url(serve):
    return serve(Path(__file__).parent / "rising_attack_page.py")


@pytest.fixture
def bench(page, url):
    """The page with the first attack finished."""
    page.set_viewport_size({"width": 1280, "height": 1400})
    page.goto(url)
    expect(page.get_by_text(REACHED)).to_be_visible(timeout=180_000)
    page.locator(".rl[data-live=true]").wait_for()
    return page


def attacked(page):
    return page.locator(".pv canvas[role=img]").nth(2)


def changed(page, before):
    page.wait_for_function(
        "([canvas, before]) => canvas.toDataURL() !== before",
        arg=[attacked(page).element_handle(), before],
    )
    return attacked(page).evaluate(PIXELS)


def first_places(page, n):
    rows = page.locator(".pv").get_by_role("table").get_by_role("row")
    return [rows.nth(k + 1).locator("td").nth(1).inner_text() for k in range(n)]


def move(slider, key, times):
    slider.focus()
    for _ in range(times):
        slider.press(key)


def drag(page, source, target):
    for locator, act in ((source, page.mouse.down), (target, page.mouse.up)):
        box = locator.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=6)
        act()


def open_tab(page, name):
    page.locator(".bk-tab").get_by_text(name, exact=True).click()


def test_an_order_made_by_keys_and_drag_is_attacked_and_reached(bench):
    before = attacked(bench).evaluate(PIXELS)
    ranking = bench.locator(".rl")
    ranking.get_by_role("button", name="Clear").click()
    expect(bench.get_by_role("alert")).to_contain_text("the order is empty")
    for name in ("8", "3"):
        add = ranking.get_by_role("button", name=f"Add {name}", exact=True)
        add.focus()
        add.press("Enter")
    expect(bench.get_by_text("Wanted order: 2 of 2 in place")).to_be_visible()
    first = changed(bench, before)
    assert first_places(bench, 2) == ["8", "3"]
    items = ranking.locator("li[data-class]")
    items.first.focus()
    items.first.press("Shift+ArrowDown")
    changed(bench, first)
    expect(bench.locator(".pv tr.wanted").first.locator("td").nth(1)).to_have_text("3")
    expect(bench.get_by_text("Wanted order: 2 of 2 in place")).to_be_visible()
    drag(bench, ranking.get_by_role("button", name="Add 5", exact=True), items.first)
    expect(ranking.locator("li .name")).to_have_count(3)
    order = ranking.locator("li .name").all_inner_texts()
    assert "5" in order
    expect(bench.get_by_text("Wanted order: 3 of 3 in place")).to_be_visible()
    expect(bench.locator(".pv .status")).to_contain_text("found, iteration")
    assert first_places(bench, 3) == order
    found = attacked(bench).evaluate(PIXELS)
    iteration = bench.get_by_role("slider", name="Iteration", exact=True)
    iteration.focus()
    iteration.press("Home")
    changed(bench, found)  # the clean image, until the button attacks it
    bench.get_by_role("button", name="Attack", exact=True).click()
    expect(bench.get_by_text(REACHED)).to_be_visible()
    same = "([canvas, found]) => canvas.toDataURL() === found"  # one question, one answer
    bench.wait_for_function(same, arg=[attacked(bench).element_handle(), found])


def test_stop_ends_a_long_attack_and_keeps_its_best(bench):
    baselines = bench.locator("details").filter(has=bench.locator("summary", has_text="Baselines"))
    if baselines.get_attribute("open") is None:
        baselines.locator("summary").click()
    iterations = baselines.get_by_role("spinbutton", name="cw iters", exact=True)
    iterations.fill("10000")
    iterations.press("Enter")
    expect(bench.get_by_text(REACHED)).to_be_visible()
    stop = bench.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_disabled()
    menu = bench.get_by_role("combobox").filter(has=bench.locator("option", has_text="QuadAttacK"))
    menu.select_option("CW^K")
    # Three digits: the attack that the change of the form started anew does not get that far.
    expect(bench.locator(".pv .status")).to_contain_text(re.compile(r"running, iteration \d{3}"))
    stop.click()
    stopped = bench.get_by_text(re.compile(r"Stopped\. .* CW\^K .*\((\d+) iterations"))
    expect(stopped).to_be_visible()
    expect(stop).to_be_disabled()
    done = int(re.search(r"\((\d+) iterations", stopped.inner_text())[1])
    assert 0 < done < 9_000


def test_the_iterations_are_walked_back_and_another_image_is_attacked(bench):
    found = attacked(bench).evaluate(PIXELS)
    iteration = bench.get_by_role("slider", name="Iteration", exact=True)
    iteration.focus()
    iteration.press("Home")
    changed(bench, found)
    expect(bench.get_by_text(re.compile(r"not found, iteration 0 of"))).to_be_visible()
    clean, now = (bench.locator(".pv canvas[role=img]").nth(k).evaluate(PIXELS) for k in (0, 2))
    assert clean == now
    move(bench.get_by_role("slider", name="Image", exact=True), "ArrowRight", 1)
    changed(bench, now)
    expect(bench.get_by_text(re.compile("RisingAttacK (reached|did not)"))).to_be_visible()


def test_a_fader_moves_picture_and_logits_and_the_qp_solution_brings_them_back(bench):
    open_tab(bench, "Singular vectors")
    expect(bench.locator(".wf img")).to_have_count(9)
    expect(bench.get_by_text(re.compile("Linearized at iteration"))).to_be_visible()
    fader = bench.get_by_role("slider", name="z1", exact=True)
    bench.get_by_role("button", name="Zero").click()
    expect(fader).to_have_value(re.compile(r"^-?0(\.0+)?$|e-"))
    clean = bench.locator(".pv canvas[role=img]").first.evaluate(PIXELS)
    same = "([canvas, wanted]) => canvas.toDataURL() === wanted"
    canvas = attacked(bench).element_handle()
    bench.wait_for_function(same, arg=[canvas, clean])
    bench.get_by_role("button", name="QP solution").click()
    solution = changed(bench, clean)
    expect(bench.locator(".pv .status")).to_contain_text("✓ found")
    move(fader, "ArrowRight", 12)
    changed(bench, solution)
    bench.get_by_role("button", name="QP solution").click()
    bench.wait_for_function(same, arg=[canvas, solution])


def test_polytope_and_comparison_appear_in_their_tabs(bench):
    open_tab(bench, "Polytope")
    expect(bench.get_by_text(re.compile("In the close-up the wanted order holds"))).to_be_visible()
    open_tab(bench, "Compare")
    bench.get_by_role("button", name="Compare all attacks").click()
    expect(bench.get_by_role("row", name=re.compile("^QuadAttacK"))).to_be_visible()
    expect(bench.get_by_text("Compared.")).to_be_visible(timeout=180_000)
    assert bench.get_by_role("row").filter(has_text=re.compile("reached|failed")).count() >= 4


def test_a_narrow_page_shows_all_of_it(bench):
    bench.set_viewport_size({"width": 420, "height": 900})
    for name in ("Singular vectors", "Polytope", "Order"):
        open_tab(bench, name)
        bench.wait_for_timeout(500)
        assert bench.evaluate("document.documentElement.scrollWidth") <= 420, name


CELLS = (
    "from workbench import theme\ntheme.notebook()",
    "from workbench.methods.rising_attack import live, study\n"
    "live.explorer(study.Parameters.preset('quick', K=2), report=False)",
)


def test_in_jupyterlab_an_attack_runs_and_faders_move_the_picture(page, run_in_lab):
    page.set_viewport_size({"width": 1500, "height": 1300})
    run_in_lab(*CELLS)
    expect(page.get_by_text(REACHED)).to_be_visible(timeout=180_000)
    open_tab(page, "Singular vectors")
    fader = page.get_by_role("slider", name="z1", exact=True)
    expect(page.get_by_text(re.compile("Linearized at iteration"))).to_be_visible()
    page.wait_for_timeout(500)
    before = attacked(page).evaluate(PIXELS)
    move(fader, "ArrowRight", 12)
    changed(page, before)
    open_tab(page, "Polytope")
    expect(page.get_by_text(re.compile("In the close-up the wanted order"))).to_be_visible()
    if folder := os.environ.get("SHOTS"):
        page.wait_for_timeout(1500)
        page.screenshot(path=f"{folder}/live_lab.png")
