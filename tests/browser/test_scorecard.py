"""The scorecard's page in a browser without a network."""

import pytest

from workbench import scorecard
from workbench.files import write


@pytest.mark.parametrize("width", [1280, 800])
def test_the_page_asks_for_nothing_and_fits_the_window(offline_page, tmp_path, width):
    stored = scorecard.stored()
    page = write(tmp_path / "scorecard.html", scorecard.as_html(stored, tmp_path))
    offline_page.set_viewport_size({"width": width, "height": 900})
    offline_page.goto(page.as_uri())
    assert offline_page.requests == []
    claims = sum(len(record["claims"]) for record in stored)
    assert offline_page.locator("section.claims tbody tr").count() == claims
    offline_page.get_by_role("link", name="NeuralCPM", exact=True).click()
    assert offline_page.get_by_role("heading", name="NeuralCPM").is_visible()
    assert offline_page.evaluate("document.documentElement.scrollWidth") <= width
