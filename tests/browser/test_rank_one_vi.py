"""R1-VI's explorer in a real browser: sliders move all pictures, tabs, learning, narrow pages."""

import re
from pathlib import Path

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

VERDICT = re.compile("Iterations to an error of 1e-06")


@pytest.fixture(scope="module")
def url(serve):
    return serve(Path(__file__).parent / "rank_one_vi_page.py")


@pytest.fixture
def bench(page, url):
    """The page with all curves."""
    page.set_viewport_size({"width": 1280, "height": 1500})
    page.goto(url)
    expect(page.get_by_text(VERDICT)).to_be_visible(timeout=180_000)
    return page


def picture(page, start):
    return page.get_by_role("img", name=re.compile(f"^{start}"))


def open_tab(page, name):
    page.locator(".bk-tab").get_by_text(name, exact=True).click()


def test_all_pictures_have_words_and_the_discount_moves_them(bench):
    for start in ("Distance from v", "Bracket of state 0", "States whose greedy", "Eigenvalues",
                  "The distribution d", "Total variation", "Gain matrix of PI"):  # fmt: skip
        expect(picture(bench, start)).to_be_visible()
    before = picture(bench, "Eigenvalues").get_attribute("aria-label")
    slider = bench.get_by_role("slider", name="log₁₀ 1/(1 − γ)")
    slider.focus()
    for _ in range(12):
        slider.press("ArrowLeft")
    expect(picture(bench, "Eigenvalues")).not_to_have_attribute("aria-label", before)
    expect(bench.get_by_text(VERDICT)).to_be_visible()
    gamma = bench.get_by_role("spinbutton", name="gamma", exact=True)
    assert 0.9 < float(gamma.input_value()) < 0.99
    gamma.fill("0.9")
    gamma.press("Enter")
    expect(picture(bench, "Eigenvalues")).to_have_attribute(
        "aria-label", re.compile(r"the one at 0\.9 ")
    )


def test_iteration_and_state_are_chosen_by_keys(bench):
    state = bench.get_by_role("slider", name="State shown", exact=True)
    state.focus()
    state.press("ArrowRight")
    expect(picture(bench, "Bracket of state 1")).to_be_visible()
    iteration = bench.get_by_role("slider", name="Iteration k", exact=True)
    iteration.focus()
    iteration.press("Home")
    expect(picture(bench, "The distribution d of iteration 1")).to_be_visible()


def test_teleporting_shrinks_the_spectrum_and_the_axis_can_be_changed(bench):
    def rate():
        words = picture(bench, "Eigenvalues").get_attribute("aria-label")
        return float(re.search(r"modulus ([\d.e-]+)\.$", words)[1])

    before = rate()
    teleport = bench.get_by_role("spinbutton", name="teleport", exact=True)
    teleport.fill("0.5")
    teleport.press("Enter")
    bench.wait_for_timeout(300)
    expect(bench.get_by_text(VERDICT)).to_be_visible()
    assert rate() == pytest.approx(before / 2, rel=0.5) and rate() < before
    bench.get_by_label("Errors over").select_option("Bellman evaluations")
    expect(picture(bench, "Distance from v").get_by_text("Bellman evaluations")).to_be_visible()


def test_grid_and_learning_have_their_tabs(bench):
    bench.get_by_label("family").select_option("frozenlake4")
    expect(bench.get_by_text(VERDICT)).to_be_visible()
    open_tab(bench, "Grid")
    expect(picture(bench, "R1-VI, iteration")).to_be_visible()
    open_tab(bench, "Learning")
    bench.get_by_role("button", name="Learn", exact=True).click()
    expect(bench.get_by_text(re.compile("Learned. Least error"))).to_be_visible(timeout=180_000)
    expect(picture(bench, "Errors of the learners")).to_be_visible()
    before = picture(bench, "Errors of the learners").get_attribute("aria-label")
    bench.get_by_label("Errors of q").select_option("with the best constant subtracted")
    expect(picture(bench, "Errors of the learners")).not_to_have_attribute("aria-label", before)


def test_a_narrow_page_shows_all_of_it(bench):
    bench.set_viewport_size({"width": 420, "height": 900})
    for name in ("Grid", "Learning", "Planning"):
        open_tab(bench, name)
        bench.wait_for_timeout(500)
        assert bench.evaluate("document.documentElement.scrollWidth") <= 420, name


CELLS = (
    "from workbench import theme\ntheme.notebook()",
    "from workbench.methods.rank_one_vi import live, study\n"
    "live.explorer(study.Parameters.preset('quick'), report=False)",
)


def test_in_jupyterlab_the_slow_curves_arrive_and_sliders_act(page, run_in_lab):
    page.set_viewport_size({"width": 1500, "height": 1300})
    run_in_lab(*CELLS)
    expect(page.get_by_text(VERDICT)).to_be_visible(timeout=180_000)
    before = picture(page, "Eigenvalues").get_attribute("aria-label")
    slider = page.get_by_role("slider", name="log₁₀ 1/(1 − γ)")
    slider.focus()
    for _ in range(5):
        slider.press("ArrowLeft")
    expect(picture(page, "Eigenvalues")).not_to_have_attribute("aria-label", before)
    expect(page.get_by_text(VERDICT)).to_be_visible()
