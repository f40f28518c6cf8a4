"""The explorer of the constants in a browser: runs, every tab, sliders by key, quick answers."""

from pathlib import Path

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

# Moves a native slider and waits for its picture; how long that took, in milliseconds.
ANSWER = """
async ([slider, picture, by]) => {
  const before = picture.innerHTML, start = performance.now();
  slider.value = String(+slider.value + by);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  while (picture.innerHTML === before && performance.now() - start < 5000)
    await new Promise((done) => requestAnimationFrame(done));
  return performance.now() - start;
}
"""


@pytest.fixture(scope="module")
def url(serve):
    return serve(Path(__file__).parent / "ucbvi_constants_page.py")


@pytest.fixture
def bench(page, url):
    """The page with the first runs finished."""
    page.set_viewport_size({"width": 1200, "height": 1100})
    page.goto(url)
    expect(page.get_by_role("img", name="Regret, pseudo: random 3 x 3")).to_be_visible(
        timeout=180_000
    )
    expect(page.get_by_text("Done.")).to_be_visible(timeout=180_000)
    return page


def open_tab(page, name):
    page.locator(".bk-tab").get_by_text(name, exact=True).click()


def picture(page, name):
    return page.locator(".wd").filter(has=page.get_by_role("img", name=name)).first


def test_every_tab_has_its_picture_and_keys_move_the_microscope(bench):
    for tab, name in (
        ("Bonus", "Anatomy of the BF-I bonus"), ("Bounds", "Bounds and reality"),
        ("Visits", "MVP: percent of visits"), ("Q-table", "BF-I, episode 2,000, stage 1, state 0"),
    ):  # fmt: skip
        open_tab(bench, tab)
        expect(bench.get_by_role("img", name=name).first).to_be_visible()
    bench.get_by_role("slider", name="Stage h").press("ArrowRight")
    expect(bench.get_by_role("img", name="stage 2, state 0")).to_be_visible()
    bench.get_by_role("slider", name="Snapshot").press("Home")
    expect(bench.get_by_role("img", name="BF-I, episode 1, stage 2")).to_be_visible()


def test_a_change_of_the_form_runs_anew_and_optimism_breaks(bench):
    expect(bench.get_by_text("BF-I ✓ optimistic")).to_be_visible()
    scale = bench.get_by_label("scale", exact=True)
    scale.fill("0")
    scale.press("Enter")
    expect(bench.get_by_text("BF-I ✗ V < V* in")).to_be_visible(timeout=60_000)


def test_both_axes_are_switches_with_names(bench):
    shown = picture(bench, "Regret, pseudo")
    before = shown.inner_html()
    expect(bench.get_by_role("checkbox", name="Log regret")).to_be_checked()
    bench.get_by_role("checkbox", name="Log episodes").uncheck()
    bench.wait_for_function(
        "([shown, before]) => shown.innerHTML !== before", arg=[shown.element_handle(), before]
    )
    tree = bench.locator("body").aria_snapshot()
    assert '- checkbox "Log episodes"' in tree and "- checkbox [" not in tree  # none is nameless


def test_bandits_answer_a_click(bench):
    open_tab(bench, "Bandits")
    bench.get_by_role("button", name="Pull the arms").click()
    expect(bench.get_by_role("img", name="Bandits: two constants")).to_be_visible(timeout=60_000)


@pytest.mark.parametrize(
    "tab, slider, name, by",
    [("Bonus", "Var", "Anatomy", 0.03), ("Q-table", "Snapshot", "stage 1, state 0", -3)],
)
def test_pictures_answer_a_slider(bench, tab, slider, name, by):
    open_tab(bench, tab)
    shown = picture(bench, name)
    moved = bench.get_by_role("slider", name=slider).first
    took = sorted(
        bench.evaluate(ANSWER, [moved.element_handle(), shown.element_handle(), by])
        for _ in range(5)
    )
    print(f"{tab}: {took[2]:.0f} ms from slider to picture, median of 5")
    assert took[2] < 1000  # that it answers; how fast is for the benchmarks
