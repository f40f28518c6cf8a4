"""The explorers as web pages: a gallery at / and one page for each method, on loopback.

Each visitor gets an explorer of their own, built when their page opens; nothing is shared between
sessions. Not a public server: it listens on this machine unless told otherwise.
"""

from __future__ import annotations

import errno
import html
from collections.abc import Callable
from typing import Any

import panel as pn

from workbench import catalog, theme
from workbench.explorer import problem
from workbench.gallery import cards as cards_of_methods
from workbench.gallery import stored_records

STYLE = f"""
.wb-top {{ font-family: {theme.FONT}; color: {theme.INK}; box-sizing: border-box;
  max-width: 1232px; margin: 0 auto; }}
.wb-page {{ max-width: 1232px; margin: 0 auto; padding: 8px 16px 40px; }}
.wb-top {{ padding: 22px 16px 4px; }}
.wb-top h1 {{ font-size: 26px; margin: 0 0 4px; font-weight: 650; }}
.wb-top p {{ margin: 0 0 4px; color: {theme.MUTED}; font-size: 15px; line-height: 1.5; }}
.wb-top a {{ color: {theme.OKABE_ITO["blue"]}; text-decoration: none; }}
"""


def gallery() -> pn.viewable.Viewable:
    """The page at /."""
    cards = cards_of_methods(catalog.methods(), lambda m: m.slug, stored_records())
    page = (
        f'<style>{STYLE}</style><header class="wb-top"><h1>Workbench</h1>'
        "<p>New machine-learning methods to play with: move a slider, watch what happens, "
        f'run the study, and make a report of your settings.</p></header><main class="wb-page">'
        f"{cards}</main>"
    )
    return pn.pane.HTML(page, sizing_mode="stretch_width", margin=0)


def method_page(slug: str) -> pn.viewable.Viewable:
    """The page of a method, with a new explorer: one for each session."""
    method = catalog.find(slug)
    head = pn.pane.HTML(
        f'<style>{STYLE}</style><header class="wb-top" style="padding:22px 0 12px">'
        '<p><a href="./">← all methods</a></p>'
        f"<h1>{html.escape(method.title)}</h1><p>{html.escape(method.summary)} "
        f'<a href="{html.escape(method.link)}">{html.escape(method.paper)}</a></p></header>',
        sizing_mode="stretch_width",
        margin=0,
    )
    try:
        theme.set_defaults()
        body = pn.panel(catalog.load(method.slug).explorer())
    except Exception as error:  # said on the page: a visitor does not read the server's log
        body = problem(error)
    # One centered column, so that the edges of header and explorer agree.
    return pn.Column(
        head, body, max_width=1240, sizing_mode="stretch_width", margin=0,
        styles={"margin": "0 auto", "padding": "0 20px"},
    )  # fmt: skip


def pages(slug: str | None = None) -> dict[str, Callable[[], Any]]:
    """Path -> function that builds the page; all methods, or `slug` alone and as the first page."""
    if slug is not None:
        slug = catalog.find(slug).slug
        return {"/": _builder(slug), slug: _builder(slug)}
    return {"/": gallery, **{m.slug: _builder(m.slug) for m in catalog.methods()}}


def _builder(slug: str) -> Callable[[], Any]:
    # Panel calls plain functions once for each session, but not functools.partial.
    return lambda: method_page(slug)


def serve(
    slug: str | None = None,
    port: int = 0,
    address: str = "127.0.0.1",
    open_browser: bool = False,
) -> None:
    """Serve the pages until interrupted; port 0 takes a free one.

    Raises ValueError, in one line, for an unknown method and a port that cannot be used.
    """
    if not 0 <= port <= 65_535:
        raise ValueError(f"port = {port} is not allowed: use 0 (any free port) to 65535")
    titles = {"/": "Workbench", **{m.slug: m.title for m in catalog.methods()}}
    chosen = pages(slug)
    try:
        server = pn.serve(
            chosen,
            port=port,
            address=address,
            title={path: titles[path] for path in chosen},
            show=False,
            start=False,
            verbose=False,
            # What ran for a page that was closed ends 15 to 18 s later (Bokeh's default: 15 to 32).
            check_unused_sessions_milliseconds=3_000,
        )
    except OSError as error:
        reason = {
            errno.EADDRINUSE: "is taken by another program; choose another, or 0 for a free one",
            errno.EACCES: "needs more rights; choose one above 1023",
        }.get(error.errno or 0, f"cannot be used: {error.strerror}")
        raise ValueError(f"port {port} on {address} {reason}") from None
    url = f"http://{address}:{server.port}/"
    print(f"Workbench at {url} (Ctrl-C ends it)", flush=True)
    if open_browser:
        import webbrowser

        server.io_loop.add_callback(webbrowser.open, url)
    try:
        server.run_until_shutdown()
    except KeyboardInterrupt:
        pass
