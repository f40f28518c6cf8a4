"""`workbench app` in a real browser: from the gallery to a living tissue that obeys its sliders."""

import time

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
    page.locator(".lv[data-live=true]").wait_for(timeout=60_000)
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


def test_two_visitors_share_nothing(tissue, browser, app_url):
    other = browser.new_page()
    other.goto(app_url + "neural_cpm")
    other.locator(".lv[data-live=true]").wait_for(timeout=60_000)
    enter(tissue, "temperature", 5)
    tissue.get_by_role("button", name="Play").click()
    time.sleep(1)
    assert int(other.locator(".lv").get_attribute("data-frames")) == 1
    value = other.get_by_role("spinbutton", name="temperature", exact=True).input_value()
    assert value == "1"
    other.close()
