"""The app without a browser: pages, gallery, and ports that cannot be used."""

import dataclasses
import socket
import subprocess
import sys

import pytest

from workbench import app, catalog, gallery
from workbench.cli import main
from workbench.widgets.controls import Controls


def test_there_is_a_gallery_and_a_page_for_each_method():
    pages = app.pages()
    assert pages["/"] is app.gallery
    assert set(pages) - {"/"} == {m.slug for m in catalog.methods()}


SLUGS = ["neural_cpm", "pas", "rank_one_vi", "rising_attack", "sparse_glm"]


@pytest.mark.parametrize("slug", SLUGS)
def test_every_methods_page_holds_its_explorer(slug):
    page = app.explorer(slug)
    shown = page.select(lambda part: 'role="alert"' in str(getattr(part, "object", "")))
    assert not shown and page.select(Controls)


def test_pages_are_made_at_once_and_say_that_a_method_opens():
    """In a process of its own: no library of a method is imported until its page is there."""
    code = """
import sys
from unittest import mock
from workbench import app, catalog
with mock.patch.object(type(app.pn.state), "onload") as onload:  # once the browser has the page
    for slug in app.pages():
        page = app.pages()[slug]()
        said = page.select(lambda p: "Opening" in str(getattr(p, "object", "")))
        assert bool(said) == (slug != "/"), slug
assert onload.call_count == len(catalog.methods())
views = {f"workbench.methods.{m.slug}.views" for m in catalog.methods()}
print(sorted(({"torch", "numba", "sklearn", "scipy"} | views) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_one_method_alone_is_also_the_first_page():
    assert set(app.pages("neural-cpm")) == {"/", "neural_cpm"}


def test_an_unknown_method_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'neural_cpm'"):
        app.pages("neural_cmp")


def test_the_gallery_links_to_every_method_and_escapes_what_it_shows():
    method = dataclasses.replace(catalog.find("neural_cpm"), title="<A> & B")
    page = gallery.cards([method], lambda m: m.slug)
    assert 'href="neural_cpm"' in page and "&lt;A&gt; &amp; B" in page and "<A>" not in page


def test_each_session_gets_an_explorer_of_its_own(monkeypatch):
    built = []

    class Method:
        @staticmethod
        def explorer():
            built.append(object())
            return "explorer"

    monkeypatch.setattr(catalog, "load", lambda slug: Method)
    page = app.pages()["neural_cpm"]
    page(), page()  # without a session they are filled at once
    assert len(built) == 2


def test_an_explorer_that_cannot_be_built_says_so_on_its_page(monkeypatch):
    monkeypatch.setattr(catalog, "load", lambda slug: object())
    page = app.explorer("neural_cpm")
    assert any(
        "AttributeError" in pane.object for pane in page.select(lambda p: hasattr(p, "object"))
    )


def test_a_taken_port_is_said_in_one_line():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} on 127.0.0.1 is taken"):
            app.serve(port=port)


@pytest.mark.parametrize("port", [-1, 70_000])
def test_a_port_that_does_not_exist_is_refused(port):
    with pytest.raises(ValueError, match=rf"port = {port} is not allowed: use 0"):
        app.serve(port=port)


@pytest.fixture
def served(monkeypatch):
    """What `app.serve` would serve: the server, stopped before it answers anything."""
    servers = []

    def serve(*args, **kwargs):
        server = panel_serve(*args, **kwargs)
        monkeypatch.setattr(server, "run_until_shutdown", server.stop)
        servers.append(server)
        return server

    panel_serve = app.pn.serve
    monkeypatch.setattr(app.pn, "serve", serve)
    return servers


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_on_this_machine_alone_nothing_is_warned_of(served, capsys, address):
    assert main(["app", "--no-browser", "--address", address]) == 0
    out, err = capsys.readouterr()
    assert f"http://{address}:{served[0].port}/" in out and err == ""
    assert served[0]._tornado.websocket_origins == {
        f"{host}:{served[0].port}" for host in ("localhost", address)
    }, "no origin but its own"


def test_an_address_that_others_reach_is_warned_of_in_one_line(served, capsys):
    assert main(["app", "--no-browser", "--address", "0.0.0.0"]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "0.0.0.0 can be reached from other machines" in err


def test_allowed_origins_are_added(served):
    words = ["--allow-origin", "Lab.example.org:8443", "--allow-origin", "example.org"]
    assert main(["app", "--no-browser", *words]) == 0
    found = served[0]._tornado.websocket_origins
    assert {"lab.example.org:8443", "example.org:80"} <= found and len(found) == 4


@pytest.mark.parametrize(
    "text",
    ["*", "*.example.org", "https://example.org", "example.org/lab", "a b", "", ":80", "a:0",
     "a:70000", "a:b"],
)  # fmt: skip
def test_an_origin_that_is_none_is_refused(capsys, text):
    assert main(["app", "--no-browser", "--allow-origin", text]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert f"origin '{text}' is not allowed: use HOST or HOST:PORT" in err


@pytest.mark.parametrize("address", ["", "not an address", "127.0.0.1:80", "http://127.0.0.1"])
def test_an_address_that_is_none_is_refused(capsys, monkeypatch, address):
    monkeypatch.setattr(socket, "getaddrinfo", no_such_name)  # no question to a network
    assert main(["app", "--no-browser", "--address", address]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and f"address = '{address}' is not allowed" in err


def no_such_name(*args, **kwargs):
    raise socket.gaierror(socket.EAI_NONAME, "unknown")


def test_an_address_of_another_machine_is_refused(capsys):
    assert main(["app", "--no-browser", "--address", "192.0.2.1"]) == 2  # for documentation only
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "this machine does not have that address" in err
