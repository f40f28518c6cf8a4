"""The explorer of soft inductive biases in a browser: every tab, keys, clicks, quick answers."""

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
    return serve(Path(__file__).parent / "soft_inductive_bias_page.py")


@pytest.fixture
def bench(page, url):
    """The page with the first fits drawn."""
    page.set_viewport_size({"width": 1300, "height": 1200})
    page.goto(url)
    expect(page.get_by_role("img", name="Simple: train RMSE")).to_be_visible(timeout=180_000)
    return page


def open_tab(page, name):
    page.locator(".bk-tab").get_by_text(name, exact=True).click()


def picture(page, name):
    return page.locator(".wd").filter(has=page.get_by_role("img", name=name)).first


def test_every_tab_draws_its_picture_when_it_is_opened(bench):
    for tab, name in (
        ("Sample size", "Fits to 16 examples"), ("Random labels", "Gaussian process: accuracy"),
        ("Least squares", "Weak features"), ("Least squares", "Isotropic design"),
        ("Double descent", "Random ReLU features of digits"), ("Bounds", "Bounds: training error"),
        ("Symmetry", "Evidence of r, task orient"), ("Features", "Along the direction u"),
        ("Two axes", "Flexible and simple"),
    ):  # fmt: skip
        open_tab(bench, tab)
        expect(bench.get_by_role("img", name=name).first).to_be_visible(timeout=180_000)


def test_the_examples_are_scattered_by_a_switch_with_a_name(bench):
    shown = picture(bench, "Simple: train RMSE")
    before = shown.inner_html()
    bench.get_by_role("checkbox", name="Random x instead of the grid").check()
    bench.wait_for_function(
        "([shown, before]) => shown.innerHTML !== before", arg=[shown.element_handle(), before]
    )
    assert "- checkbox [" not in bench.locator("body").aria_snapshot()  # none is nameless


def test_keys_move_the_order_and_the_fit_follows(bench):
    slider = bench.get_by_role("slider", name="Order J").first
    slider.press("Home")
    expect(bench.get_by_role("img", name="Evidence, from its best")).to_contain_text("J = 0")


def test_a_wrong_digit_is_chosen_by_click_and_key(bench):
    open_tab(bench, "Random labels")
    wrong = bench.get_by_role("slider", name="Digits read wrongly")
    expect(wrong).to_be_visible(timeout=180_000)
    near = picture(bench, "Its nearest training digits")
    before = near.inner_html()
    box = wrong.bounding_box()
    bench.mouse.click(box["x"] + 0.55 * box["width"], box["y"] + 0.5 * box["height"])
    expect(near).not_to_have_js_property("innerHTML", before, timeout=60_000)


def test_a_network_is_stored_in_bits(bench):
    open_tab(bench, "Bounds")
    bench.get_by_role("button", name="Store a network").click()
    expect(bench.get_by_role("img", name="Where the bits go")).to_be_visible(timeout=180_000)
    expect(bench.get_by_text("decoded").first).to_be_visible()


def test_a_width_streams_its_loss_and_stop_ends_it(bench):
    open_tab(bench, "Widths")
    bench.get_by_role("button", name="Run this width").click()
    expect(bench.get_by_role("img", name="12 hidden units: training loss")).to_be_visible(
        timeout=60_000
    )
    bench.get_by_role("button", name="Stop").click()
    expect(bench.get_by_text("Stopped; what was finished is shown.")).to_be_visible(timeout=60_000)


def test_t_is_dragged_along_two_solutions(bench):
    open_tab(bench, "Paths")
    bench.get_by_role("button", name="Connect two solutions").click()
    expect(bench.get_by_role("img", name="Loss on the plane")).to_be_visible(timeout=180_000)
    expect(bench.get_by_text("Done.")).to_be_visible(timeout=180_000)
    bench.get_by_role("slider", name="t", exact=True).press("Home")
    expect(bench.get_by_text("At t = 0:")).to_be_visible()


def test_a_network_turns_to_the_direction(bench):
    open_tab(bench, "Features")
    bench.get_by_role("slider", name="Examples n").locator("visible=true").first.press("Home")
    bench.get_by_role("button", name="Train a network").click()
    expect(bench.get_by_role("img", name="Alignment: share of weights")).to_be_visible(
        timeout=180_000
    )
    expect(bench.get_by_text("network, 25 examples").last).to_be_visible(timeout=180_000)


@pytest.mark.parametrize(
    "tab, slider, name, by",
    [
        ("Polynomials", "Order J", "Simple: train RMSE", -5),
        ("Sample size", "Noise σ", "Fits to 16 examples", 0.1),
        ("Random labels", "log10 noise", "Gaussian process: accuracy", 0.5),
        ("Least squares", "Signal in a feature", "Weak features", -0.2),
        ("Least squares", "Size of θ", "Isotropic design", 0.5),
        ("Bounds", "Bits of the code", "Bounds: training error", 40),
        ("Features", "Length scale", "Along the direction u", 1.0),
        ("Double descent", "log10 ridge", "Random ReLU features", 0.2),
    ],
)
def test_pictures_answer_a_slider(bench, tab, slider, name, by):
    open_tab(bench, tab)
    shown = picture(bench, name)
    expect(shown).to_be_visible(timeout=180_000)
    if tab == "Double descent":
        expect(bench.get_by_text("Done.")).to_be_visible(timeout=180_000)
    moved = bench.get_by_role("slider", name=slider, exact=True).locator("visible=true").first
    took = sorted(
        bench.evaluate(ANSWER, [moved.element_handle(), shown.element_handle(), by])
        for _ in range(5)
    )
    print(f"{tab}: {took[2]:.0f} ms from slider to picture, median of 5")
    assert took[2] < 1000  # that it answers; how fast is for the benchmarks
