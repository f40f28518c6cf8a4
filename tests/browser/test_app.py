"""`workbench app` in a real browser: from the gallery to a living tissue that obeys its sliders."""

import re
import time
from pathlib import Path
from statistics import median

import pytest
from playwright.sync_api import expect


@pytest.fixture(scope="session")
def app_url(serve):
    return serve(command=["-m", "workbench", "app", "--no-browser"])


@pytest.fixture
def tissue(page, app_url):
    """The page of neural_cpm, reached through the gallery."""
    page.goto(app_url)
    page.get_by_role("link", name="NeuralCPM").click()
    page.locator(".lv[data-live=true]").wait_for(timeout=180_000)
    return page


def rate(page):
    return int(page.locator(".lv").get_attribute("data-rate"))


def pixels(page):
    return page.locator(".lv canvas").evaluate("canvas => canvas.toDataURL()")


def enter(page, name, value):
    field = page.get_by_role("spinbutton", name=name, exact=True)
    field.fill(str(value))
    field.press("Enter")


def test_the_tissue_plays_and_a_slider_acts_on_it(tissue):
    before = pixels(tissue)
    tissue.get_by_role("button", name="Play").click()
    time.sleep(1)
    slider = tissue.get_by_role("slider", name="temperature slider")
    slider.focus()
    for _ in range(60):
        slider.press("ArrowRight")
    # Heat shows: at this temperature far more copies are accepted than the 40 % at the start.
    chart = tissue.get_by_role("img", name="Accepted copies")
    end = time.monotonic() + 30
    accepted = 0.0
    while accepted <= 55 and time.monotonic() < end:
        time.sleep(0.3)
        accepted = float(chart.get_attribute("aria-label").rsplit(" ", 1)[1])
    assert accepted > 55
    assert pixels(tissue) != before


def test_a_large_tissue_stays_fluent(tissue, capsys):
    tissue.get_by_text("Lattice", exact=True).click()
    enter(tissue, "size", 200)
    enter(tissue, "n cells", 160)
    tissue.get_by_role("slider", name="Speed").fill("5")  # 2^5 MCS a frame
    expect(tissue.get_by_text("32 MCS/frame")).to_be_visible()
    tissue.get_by_role("button", name="Play").click()
    time.sleep(4)
    with capsys.disabled():
        print(f"\ntissue of 200 x 200 sites, 32 MCS a frame: {rate(tissue)} frames/s")
    assert rate(tissue) >= 5  # about 30 on an idle machine


def test_a_click_puts_a_copy_attempt_under_the_lens(tissue):
    box = tissue.locator(".lv canvas").bounding_box()
    tissue.mouse.click(box["x"] + 3, box["y"] + 3)
    expect(tissue.get_by_text("nothing can be copied here")).to_be_visible()
    tissue.get_by_role("combobox", name="Color by").select_option("field")
    expect(tissue.get_by_text("least ΔH", exact=True)).to_be_visible()
    border = tissue.evaluate("""() => {
      const find = (root) => { for (const e of root.querySelectorAll('*')) {
        if (e.matches('canvas[role=img]')) return e;
        const inside = e.shadowRoot && find(e.shadowRoot);
        if (inside) return inside; } };
      const canvas = find(document), n = canvas.width;
      const row = canvas.getContext('2d').getImageData(0, canvas.height >> 1, n, 1).data;
      for (let x = 0; x < n; x++) if (row[4 * x] < 40) return x / n; }""")
    tissue.mouse.click(box["x"] + border * box["width"], box["y"] + box["height"] / 2)
    expect(tissue.get_by_text("after the cheapest copy")).to_be_visible()
    expect(tissue.get_by_text("accepted at T = 1")).to_be_visible()


def test_permuted_kinds_change_the_picture_and_not_the_time(tissue):
    before, legend = pixels(tissue), tissue.locator(".lv .legend").inner_text()
    tissue.get_by_role("button", name="Permute kinds").click()
    expect(tissue.locator(".lv")).to_have_attribute("data-frames", "2")
    assert pixels(tissue) != before
    assert tissue.locator(".lv .legend").inner_text() == legend  # as many cells of each kind
    expect(tissue.get_by_text("0 MCS", exact=True)).to_be_visible()


def test_two_visitors_share_nothing(tissue, browser, app_url):
    other = browser.new_page()
    other.goto(app_url + "neural_cpm")
    other.locator(".lv[data-live=true]").wait_for(timeout=180_000)
    enter(tissue, "temperature", 5)
    tissue.get_by_role("button", name="Play").click()
    time.sleep(1)
    assert int(other.locator(".lv").get_attribute("data-frames")) == 1
    value = other.get_by_role("spinbutton", name="temperature", exact=True).input_value()
    assert value == "1"
    other.close()


def waits_s(page, seconds):
    """The times from presses of Step to the frames they ask for, during `seconds`."""
    frames = page.locator(".lv")
    waits, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        before, start = int(frames.get_attribute("data-frames")), time.monotonic()
        page.get_by_role("button", name="Step", exact=True).click()
        while int(frames.get_attribute("data-frames")) == before:
            assert time.monotonic() - start < 30, "the page is frozen"
            time.sleep(0.01)
        waits.append(time.monotonic() - start)
    return waits


@pytest.mark.slow
@pytest.mark.parametrize("slug", ["neural_cpm", "rising_attack"])
def test_a_long_run_of_one_visitor_leaves_the_page_of_another_alive(
    tissue, browser, app_url, slug, capsys
):
    idle = waits_s(tissue, 3)
    other = browser.new_page()
    other.goto(app_url + slug)
    other.get_by_role("button", name="Run the study").click(timeout=180_000)
    expect(other.get_by_role("status").filter(has_text="%")).to_be_visible()
    busy = waits_s(tissue, 20)
    assert other.get_by_role("button", name="Cancel").is_visible(), "it ran all the while"
    other.get_by_role("button", name="Cancel").click()
    expect(other.get_by_text(re.compile("Cancelled"))).to_be_visible()
    other.close()
    with capsys.disabled():
        for name, waits in ((f"beside the study of {slug}", busy), ("alone", idle)):
            print(f"\n{name} a click waits {median(waits):.2f} s, {max(waits):.2f} s at most")
    # A page that had to wait for the study would stand still for all of the 20 seconds.
    assert median(busy) < 1.5 and max(busy) < 8


# A toy method: slow to open, and its run writes to a file how it ended ----------------------------


@pytest.fixture
def toy(serve, tmp_path):
    """Address of the page of a toy method, on a server of its own, and the folder of endings."""
    script = Path(__file__).with_name("app_page.py")
    return serve(command=[str(script), str(tmp_path)]) + "toy", tmp_path


def ending(folder, name, seconds):
    """How the run called `name` ended: waits for it up to `seconds`."""
    end = time.monotonic() + seconds
    while not (folder / name).exists() and time.monotonic() < end:
        time.sleep(0.1)
    return (folder / name).read_text() if (folder / name).exists() else "still running"


def test_a_page_says_that_it_opens_while_libraries_load(page, toy):
    url, _ = toy
    page.goto(url)
    expect(page.get_by_text("Opening Toy")).to_be_visible(timeout=2_500)
    assert page.get_by_role("button", name="Run the study").count() == 0
    expect(page.get_by_role("button", name="Run the study")).to_be_visible()
    assert page.get_by_text("Opening Toy").count() == 0
    field = page.get_by_role("spinbutton", name="frequency", exact=True)
    field.fill("3")
    field.press("Enter")
    expect(page.get_by_text("It waves at 3 Hz")).to_be_visible()


@pytest.mark.slow
def test_a_run_ends_with_the_session_of_its_page_and_no_other(page, browser, toy):
    url, folder = toy
    leaving = browser.new_page()
    for visitor, frequency in ((leaving, 2), (page, 3)):
        visitor.goto(url)
        enter(visitor, "frequency", frequency)
        visitor.get_by_role("button", name="Run the study").click()
        expect(visitor.get_by_role("status").filter(has_text="%")).to_be_visible()
    leaving.close()
    assert ending(folder, "2 Hz", 25) == "cancelled"
    assert ending(folder, "3 Hz", 60) == "finished"
