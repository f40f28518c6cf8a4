"""The explorer in a real browser, served by Panel: form, run, cancel, errors, two visitors."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect


@pytest.fixture(scope="session")
def explorer_url(serve):
    return serve(Path(__file__).parent / "explorer_page.py")


@pytest.fixture
def explorer(page, explorer_url):
    page.goto(explorer_url)
    page.get_by_role("slider", name="frequency slider").wait_for()
    return page


def test_a_slider_changes_number_and_picture_and_reset_takes_it_back(explorer):
    slider = explorer.get_by_role("slider", name="frequency slider")
    slider.focus()
    for _ in range(8):
        slider.press("ArrowRight")
    number = explorer.get_by_role("spinbutton", name="frequency")
    expect(number).to_have_value("1.4")
    expect(explorer.get_by_text("It waves at 1.4 Hz")).to_be_visible()
    explorer.get_by_role("button", name="Reset").click()
    expect(explorer.get_by_text("It waves at 1 Hz")).to_be_visible()
    expect(number).to_have_value("1")


def test_a_refused_number_is_explained_where_it_was_entered(explorer):
    number = explorer.get_by_role("spinbutton", name="frequency")
    number.fill("9")
    number.press("Enter")
    said = explorer.get_by_role("alert").filter(has_text="frequency = 9.0 is not allowed")
    expect(said).to_contain_text("a number from 0 to 5 [Hz]")
    number.fill("2")
    number.press("Enter")
    expect(said).to_be_hidden()


def test_every_control_has_a_name_and_is_reached_by_tab(explorer):
    names = set()
    for _ in range(40):
        explorer.keyboard.press("Tab")
        names.add(
            explorer.evaluate("""() => {
              let e = document.activeElement;
              while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
              const label = e && e.labels && e.labels[0];
              return e ? e.getAttribute('aria-label') || (label && label.innerText) || '' : '';
            }""").split("\n")[0]
        )
    wanted = {"frequency slider", "frequency", "amplitude", "shape", "dotted", "pieces", "seed"}
    assert wanted <= names


def test_a_run_shows_progress_then_its_picture(explorer):
    explorer.get_by_role("button", name="Run the study").click()
    expect(explorer.get_by_role("progressbar", name="Progress")).to_be_visible()
    expect(explorer.get_by_text(re.compile(r"Done in \d"))).to_be_visible(timeout=60_000)
    expect(explorer.get_by_text("Wave", exact=True).last).to_be_visible()


def test_cancel_ends_a_long_run_and_shows_what_is_finished(explorer):
    number = explorer.get_by_role("spinbutton", name="pieces")
    number.fill("200")
    number.press("Enter")
    explorer.get_by_role("button", name="Run the study").click()
    expect(explorer.get_by_text(re.compile(r"piece [3-9]$")).first).to_be_visible()
    explorer.get_by_role("button", name="Cancel").click()
    cancelled = explorer.get_by_text("Cancelled; what was finished is shown.")
    expect(cancelled).to_be_visible(timeout=2_000)
    expect(explorer.get_by_text(re.compile(r"piece \d+ is done"))).to_be_visible()


def test_an_error_of_the_work_is_on_the_page(explorer):
    explorer.get_by_role("checkbox", name="fail").check()
    explorer.get_by_role("button", name="Run the study").click()
    said = explorer.get_by_role("alert").filter(has_text="RuntimeError: the toy broke <here>")
    expect(said).to_be_visible(timeout=60_000)


def test_two_visitors_share_nothing(explorer, browser, explorer_url):
    other = browser.new_page()
    other.goto(explorer_url)
    theirs = other.get_by_role("spinbutton", name="pieces")
    theirs.wait_for()
    mine = explorer.get_by_role("spinbutton", name="pieces")
    mine.fill("7")
    mine.press("Enter")
    explorer.get_by_role("button", name="Run the study").click()
    explorer.get_by_text(re.compile(r"Done in \d")).wait_for(timeout=60_000)
    expect(theirs).to_have_value("20")
    assert not other.get_by_text(re.compile(r"Done in \d")).is_visible()
    other.close()


def test_the_page_asks_for_nothing_from_elsewhere(page, explorer_url):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(explorer_url)
    page.get_by_role("slider", name="frequency slider").wait_for()
    outside = [u for u in asked if not u.startswith(("http://127.0.0.1", "data:", "blob:"))]
    assert outside == [] and asked
