"""The explorer of certified sparse GLMs in a browser: the tree, its keys, bars, race, narrow."""

import re
from pathlib import Path

import pytest

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def url(serve):
    return serve(Path(__file__).parent / "sparse_glm_page.py")


@pytest.fixture
def bench(page, url):
    """The page, ready to search."""
    page.set_viewport_size({"width": 1280, "height": 1300})
    page.goto(url)
    expect(page.get_by_text("Ready. A search can be stopped")).to_be_visible(timeout=180_000)
    return page


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def open_tab(page, name):
    page.locator(".bk-tab").get_by_text(name, exact=True).click()


def picture(page, start):
    return page.get_by_role("img", name=re.compile(f"^{start}"))


def test_a_search_grows_its_tree_and_a_node_is_read_and_picked_by_keys(bench):
    button(bench, "Run the search").click()
    expect(bench.get_by_text(re.compile("certified to 0.01 %"))).to_be_visible(timeout=180_000)
    expect(picture(bench, "Bounds: best value 87.67")).to_be_visible()
    expect(picture(bench, "Certified β: ").first).to_have_attribute(
        "aria-label", re.compile("at the box")
    )
    tree = bench.get_by_role("application")
    tree.focus()
    tree.press("Home")
    expect(bench.locator(".wtree .told")).to_contain_text("Node 0, branched: bound 74.2")
    tree.press("ArrowDown")
    expect(bench.locator(".wtree .told")).to_contain_text("Out: ")
    tree.press("Enter")
    expect(picture(bench, r"Relaxed z of node 1")).to_be_visible()
    tree.press("ArrowUp")
    tree.press("Enter")
    expect(picture(bench, r"Relaxed z of node 0")).to_be_visible()


def test_a_click_picks_the_node_under_the_pointer(bench):
    button(bench, "Run the search").click()
    expect(bench.get_by_text(re.compile("certified to 0.01 %"))).to_be_visible(timeout=180_000)
    tree = bench.get_by_role("application")
    tree.click(position={"x": 16, "y": 16})
    expect(picture(bench, r"Relaxed z of node 0")).to_be_visible()


def test_a_long_search_is_stopped_with_its_gap_and_goes_on(bench):
    k = bench.get_by_role("spinbutton", name="k", exact=True)
    k.fill("10")
    k.press("Enter")
    lambda2 = bench.get_by_role("spinbutton", name="lambda2", exact=True)
    lambda2.fill("0.5")
    lambda2.press("Enter")
    button(bench, "Run the search").click()
    expect(
        bench.get_by_text(re.compile(r"\d+ nodes, \d+ open, gap .* nodes a second"))
    ).to_be_visible()
    bench.wait_for_timeout(600)
    button(bench, "Stop").click()
    expect(bench.get_by_text(re.compile("stopped: .* ≤ optimum ≤ .*gap"))).to_be_visible()
    button(bench, "Go on").click()
    expect(bench.get_by_text(re.compile(r"nodes a second"))).to_be_visible()
    button(bench, "Stop").click()
    expect(button(bench, "Go on")).to_be_visible()
    button(bench, "From the start").click()
    expect(bench.get_by_text("Ready. A search can be stopped")).to_be_visible()


def test_bars_are_dragged_and_take_keys_and_the_block_grows(bench):
    open_tab(bench, "Prox")
    bar = bench.get_by_role("slider", name="1", exact=True)
    expect(bar).to_have_attribute("aria-valuenow", "3.00")
    before = picture(bench, "Result: b").first.inner_html()
    bar.focus()
    bar.press("ArrowDown")
    expect(bar).to_have_attribute("aria-valuenow", "2.80")
    bench.wait_for_timeout(300)
    assert picture(bench, "Result: b").first.inner_html() != before
    box = bar.locator(".hit").bounding_box()
    bench.mouse.move(box["x"] + 10, box["y"] + 10)
    bench.mouse.down()
    bench.mouse.move(box["x"] + 10, box["y"] + box["height"] / 2, steps=5)
    bench.mouse.up()
    assert abs(float(bar.get_attribute("aria-valuenow"))) < 0.3
    bar.press("End")
    button(bench, "Grow the block one step").click()
    expect(bench.get_by_text(re.compile("out of order|nothing is pooled"))).to_be_visible()
    button(bench, "Eight random values").click()
    expect(bench.get_by_role("slider", name="8", exact=True)).to_be_visible()


def test_a_race_draws_its_curves_and_changes_the_axis(bench):
    open_tab(bench, "Race")
    bench.get_by_label("n = p").select_option("100")
    button(bench, "Race").click()
    expect(bench.get_by_text(re.compile(r"no momentum \d+ iterations"))).to_be_visible()
    expect(picture(bench, "Race. restart")).to_be_visible()
    bench.get_by_label("Gap over").select_option("CPU time")
    expect(picture(bench, "Race. restart").get_by_text("CPU time [ms]")).to_be_visible()


def test_any_dual_vector_stays_below(bench):
    open_tab(bench, "Any dual vector")
    for _ in range(3):
        button(bench, "Random w").click()
        bench.wait_for_timeout(200)
        expect(bench.get_by_text("D(w) ≤ P*, as always.")).to_be_visible()
    button(bench, "Set w to the best one").click()
    expect(
        picture(bench, "Bounds: optimum").get_by_text("D(w) = 2.9", exact=False).first
    ).to_be_visible()


def test_a_narrow_page_shows_all_of_it(bench):
    bench.set_viewport_size({"width": 420, "height": 900})
    for name in ("Search", "Prox", "Race", "Any dual vector"):
        open_tab(bench, name)
        bench.wait_for_timeout(500)
        assert bench.evaluate("document.documentElement.scrollWidth") <= 420, name


CELLS = (
    "from workbench import theme\ntheme.notebook()",
    "from workbench.methods.sparse_glm import live, study\n"
    "live.explorer(study.Parameters.preset('quick'), report=False)",
)


def test_in_jupyterlab_a_search_runs_and_its_tree_is_read(page, run_in_lab):
    page.set_viewport_size({"width": 1500, "height": 1300})
    run_in_lab(*CELLS)
    expect(page.get_by_text("Ready. A search can be stopped")).to_be_visible(timeout=180_000)
    button(page, "Run the search").click()
    expect(page.get_by_text(re.compile("certified to 0.01 %"))).to_be_visible(timeout=180_000)
    tree = page.get_by_role("application", name=re.compile("^Search tree"))
    tree.click(position={"x": 16, "y": 16})
    expect(picture(page, "Relaxed z of node 0")).to_be_visible()
    open_tab(page, "Prox")
    bar = page.get_by_role("slider", name="1", exact=True)
    bar.focus()
    bar.press("ArrowDown")
    expect(bar).to_have_attribute("aria-valuenow", "2.80")
