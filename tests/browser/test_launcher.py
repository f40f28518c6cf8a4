"""The app inside JupyterLab: its card in the launcher, and the pages behind the proxy's prefix."""

import http.client
import re
import urllib.request
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect


@pytest.fixture(scope="module")
def jupyter(lab, tmp_path_factory):
    """Root address and token of a Jupyter server."""
    url = urlsplit(lab(tmp_path_factory.mktemp("root")).format(""))
    return f"{url.scheme}://{url.netloc}/", parse_qs(url.query)["token"][0]


def fetch(url, token=None):
    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"token {token}")
    with urllib.request.urlopen(request, timeout=90) as answer:
        return answer.read().decode()


def test_the_gallery_is_behind_the_prefix_and_the_login(jupyter):
    root, token = jupyter
    page = fetch(f"{root}workbench/", token)
    assert "<title>Workbench</title>" in page
    assert not re.findall(r'(?:src|href)="/(?!/)', page), "addresses that would miss the prefix"
    assert "Password or token" in fetch(f"{root}workbench/"), "sent to the login page instead"


def handshake(root, cookies, origin):
    """Status of a websocket's opening from a page of `origin`, in a browser with these cookies."""
    connection = http.client.HTTPConnection(urlsplit(root).netloc, timeout=90)
    headers = {
        "Cookie": cookies, "Origin": origin, "Connection": "Upgrade",
        "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "bokeh",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    connection.request("GET", "/workbench/neural_cpm/ws", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_websockets_of_other_origins_are_refused(jupyter):
    root, token = jupyter
    with urllib.request.urlopen(f"{root}api/me?token={token}", timeout=30) as answer:
        given = answer.headers.get_all("Set-Cookie")
    cookies = "; ".join(cookie.split(";")[0] for cookie in given)
    assert handshake(root, cookies, root.rstrip("/")) == 101
    for other in ("http://example.org", "http://127.0.0.1:1"):
        assert handshake(root, cookies, other) == 403
    assert handshake(root, "", root.rstrip("/")) in (302, 403), "and without a login"


def test_the_card_opens_the_gallery_and_a_living_explorer(page, jupyter):
    root, token = jupyter
    page.goto(f"{root}lab?token={token}")
    card = page.locator(".jp-LauncherCard", has_text="Workbench")
    expect(card).to_be_visible(timeout=180_000)
    assert card.locator("img, svg").count() == 1
    card.click()
    app = page.frame_locator("iframe[src*='/workbench/']")
    app.get_by_role("link", name="NeuralCPM").click(timeout=180_000)
    app.locator(".lv[data-live=true]").wait_for(timeout=180_000)
    frames = int(app.locator(".lv").get_attribute("data-frames"))
    app.get_by_role("button", name="Play").click()
    expect(app.locator(".lv")).not_to_have_attribute("data-frames", str(frames))
    page.wait_for_timeout(2_000)
    assert int(app.locator(".lv").get_attribute("data-frames")) > frames + 5
    app.get_by_role("link", name="all methods").click()
    expect(app.get_by_role("link", name="RisingAttacK")).to_be_visible()
