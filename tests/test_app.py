"""The app without a browser: pages, gallery, and ports that cannot be used."""

import dataclasses
import socket

import pytest

from workbench import app, catalog, gallery
from workbench.widgets.controls import Controls


def test_there_is_a_gallery_and_a_page_for_each_method():
    pages = app.pages()
    assert pages["/"] is app.gallery
    assert set(pages) - {"/"} == {m.slug for m in catalog.methods()}


@pytest.mark.parametrize("slug", ["neural_cpm", "rising_attack"])
def test_every_methods_page_holds_its_explorer(slug):
    page = app.pages()[slug]()
    shown = page.select(lambda part: 'role="alert"' in str(getattr(part, "object", "")))
    assert not shown and page.select(Controls)


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
    page(), page()
    assert len(built) == 2


def test_an_explorer_that_cannot_be_built_says_so_on_its_page(monkeypatch):
    monkeypatch.setattr(catalog, "load", lambda slug: object())
    page = app.method_page("neural_cpm")
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
