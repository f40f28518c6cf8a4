"""The explorers as web pages: a gallery at / and one page for each method, on loopback.

Each visitor gets an explorer of their own, built when their page opens; nothing is shared between
sessions. A method's libraries are imported when its first page opens. Not a public server: it
listens on this machine unless told otherwise, and asks nobody for a password.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import html
import ipaddress
import re
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
import panel.custom  # before a page is made: its script is then part of every page

from workbench import catalog, theme
from workbench.explorer import problem
from workbench.gallery import cards as cards_of_methods
from workbench.gallery import records

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
    cards = cards_of_methods(catalog.methods(), lambda m: m.slug, records("reports"))
    page = (
        f'<style>{STYLE}</style><header class="wb-top"><h1>Workbench</h1>'
        "<p>New machine-learning methods to play with: move a slider, watch what happens, "
        f'run the study, and make a report of your settings.</p></header><main class="wb-page">'
        f"{cards}</main>"
    )
    return pn.pane.HTML(page, sizing_mode="stretch_width", margin=0)


def explorer(slug: str) -> pn.viewable.Viewable:
    """A new explorer of a method: one for each session. What goes wrong is said in its place."""
    try:
        theme.set_defaults()
        return pn.panel(catalog.load(slug).explorer())
    except Exception as error:  # a visitor does not read the server's log
        return problem(error)


def method_page(slug: str) -> pn.viewable.Viewable:
    """The page of a method: at once its head, then an explorer of this session's own."""
    method = catalog.find(slug)
    body = pn.Column(_opening(method), sizing_mode="stretch_width", margin=0)

    async def open_explorer() -> None:
        # Seconds, the first time: other pages go on meanwhile.
        await asyncio.to_thread(_prepare, method.slug)
        body.objects = [explorer(method.slug)]

    pn.state.onload(open_explorer)
    head = pn.pane.HTML(
        f'<style>{STYLE}</style><header class="wb-top" style="padding:22px 0 12px">'
        '<p><a href="./">← all methods</a></p>'
        f"<h1>{html.escape(method.title)}</h1><p>{html.escape(method.summary)} "
        f'<a href="{html.escape(method.link)}">{html.escape(method.paper)}</a></p></header>',
        sizing_mode="stretch_width",
        margin=0,
    )
    # One centered column, so that the edges of header and explorer agree.
    return pn.Column(
        head, body, max_width=1240, sizing_mode="stretch_width", margin=0,
        styles={"margin": "0 auto", "padding": "0 20px"},
    )  # fmt: skip


def _opening(method: catalog.Method) -> pn.viewable.Viewable:
    title = html.escape(method.title.split(":")[0])
    return pn.pane.HTML(
        f'<div role="status" style="font:15px {theme.FONT};color:{theme.MUTED};padding:12px 0">'
        f'<progress aria-label="Opening" style="width:150px;accent-color:'
        f'{theme.OKABE_ITO["blue"]};vertical-align:middle;margin-right:10px"></progress>'
        f"Opening {title} … the first time takes a few seconds.</div>",
        sizing_mode="stretch_width",
        margin=0,
    )


@functools.cache
def _prepare(slug: str) -> None:
    """Import what the explorer of a method needs, and load or compile its hot loops."""
    try:
        theme.set_defaults()
        package = catalog.load(slug)
        _ = package.explorer
        getattr(package, "warm_up", lambda: None)()
    except Exception:
        return  # said on the page, by the explorer that cannot be built


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
    allow_origins: Sequence[str] = (),
    open_browser: bool = False,
) -> None:
    """Serve the pages until interrupted; port 0 takes a free one.

    allow_origins: further hosts (`host` or `host:port`) whose pages may talk to this server, for
    one that is reached under another name. Raises ValueError, in one line, for an unknown method,
    a port or address that cannot be used, and an origin that is none.
    """
    if not 0 <= port <= 65_535:
        raise ValueError(f"port = {port} is not allowed: use 0 (any free port) to 65535")
    origins = [_origin(text) for text in allow_origins]
    local = _is_loopback(address)
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
            errno.EADDRNOTAVAIL: "cannot be used: this machine does not have that address",
        }.get(error.errno or 0, f"cannot be used: {error.strerror}")
        raise ValueError(f"port {port} on {address} {reason}") from None
    # Only now is the port known. Bokeh's own list holds localhost alone.
    host = f"[{address}]" if ":" in address else address
    server._tornado.websocket_origins.update([f"{host}:{server.port}", *origins])
    if not local:
        print(
            f"workbench: note: {address} can be reached from other machines, without a password: "
            "whoever reaches it can run studies here",
            file=sys.stderr,
        )
    url = f"http://{host}:{server.port}/"
    print(f"Workbench at {url} (Ctrl-C ends it)", flush=True)
    if open_browser:
        import webbrowser

        server.io_loop.add_callback(webbrowser.open, url)
    try:
        server.run_until_shutdown()
    except KeyboardInterrupt:
        pass


def _is_loopback(address: str) -> bool:
    """Whether only this machine can reach `address`; ValueError when there is no such address."""
    try:
        found = socket.getaddrinfo(address or " ", None)
    except OSError:
        raise ValueError(
            f"address = '{address}' is not allowed: use an address or name of this machine, "
            "such as 127.0.0.1 or 0.0.0.0"
        ) from None
    return all(ipaddress.ip_address(entry[4][0].split("%")[0]).is_loopback for entry in found)


def _origin(text: str) -> str:
    """`host:port` as Bokeh compares it; ValueError when `text` is no host with or without port."""
    found = re.fullmatch(r"([a-z0-9][a-z0-9.-]*)(?::([0-9]{1,5}))?", text.lower())
    if not found or not 0 < int(found[2] or 80) < 65_536:
        raise ValueError(
            f"origin '{text}' is not allowed: use HOST or HOST:PORT as in the browser's address "
            "bar, without http:// and path, such as lab.example.org:8443"
        )
    # Browsers leave out the usual ports; Bokeh then puts 80, for https too.
    return f"{found[1]}:{80 if found[2] in (None, '443') else int(found[2])}"
