"""One look everywhere: colors, chart defaults, small tables and progress.

Okabe-Ito colors (distinguishable with color blindness) for up to eight classes, cividis for
fields. Nothing here is specific to a method; heavy libraries are imported when first used.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Sequence, Sized
from typing import Any

OKABE_ITO = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "sky": "#56B4E9",
    "purple": "#CC79A7",
    "yellow": "#F0E442",
    "black": "#000000",
}
CYCLE = list(OKABE_ITO.values())
FIELD_MAP = "cividis"
INK, MUTED, GRID, PAPER = "#1F2933", "#616E7C", "#E4E7EB", "#FFFFFF"
VERDICTS = {  # color, sign: never color alone
    "holds": (OKABE_ITO["green"], "✓"),
    "fails": (OKABE_ITO["vermillion"], "✗"),
    "not tested": (MUTED, "–"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def notebook() -> None:
    """Load the one chart extension of a notebook and set the defaults of all charts."""
    from workbench import _fast_import  # noqa: F401  isort: skip
    import holoviews as hv
    import panel as pn
    import panel.custom  # before the extension: its script is then stored inline with it

    pn.config.inline = True  # style sheets too: without this, Panel asks a CDN for them
    pn.config.sizing_mode = "stretch_width"
    # Loads Panel's extension too; a further call would store all scripts again.
    hv.extension("bokeh", logo=False, inline=True)
    set_defaults()


def set_defaults() -> None:
    """HoloViews options shared by every chart: size, fonts, grid, colors, tools."""
    import holoviews as hv
    from holoviews import opts

    if "bokeh" not in hv.Store.loaded_backends():  # the app: no notebook extension came before
        import holoviews.plotting.bokeh  # registers the backend

        hv.Store.set_current_backend("bokeh")
    common = {"fontsize": {"title": 12, "labels": 11, "ticks": 9, "legend": 9}, "toolbar": "above"}
    xy = {**common, "show_grid": True, "gridstyle": {"grid_line_color": GRID}}
    cycle = hv.Cycle(CYCLE)
    hv.opts.defaults(
        opts.Curve(**xy, width=420, height=280, line_width=2, color=cycle, tools=["hover"]),
        opts.Scatter(**xy, width=420, height=280, size=6, color=cycle, tools=["hover"]),
        opts.Points(**xy, width=420, height=280, size=6, color=cycle, tools=["hover"]),
        opts.Bars(**xy, width=420, height=280, color=OKABE_ITO["blue"], tools=["hover"]),
        opts.ErrorBars(color=INK, line_width=1.5),
        opts.HLine(color=INK, line_dash="dashed", line_width=1.5),
        opts.Image(**common, width=320, height=320, cmap=FIELD_MAP, tools=["hover"]),
        opts.RGB(**common, width=240, height=240, xaxis=None, yaxis=None),
    )


class Html(str):
    """A piece of HTML that a notebook shows as such."""

    def _repr_html_(self) -> str:
        return str(self)


NOT_RUN = Html("<em>This experiment has not run: there is nothing to show.</em>")


def needs_result(view: Callable[..., Any]) -> Callable[..., Any]:
    """A view of an experiment that did not run says so in words: of None, or of nothing in it."""

    @functools.wraps(view)
    def shown(result: Any, *options: Any, **more: Any) -> Any:
        if result is None or (isinstance(result, Sized) and not len(result)):
            what = html.escape(view.__doc__.splitlines()[0])
            return Html(f"<p><em>This experiment has not run, so there is no: {what}</em></p>")
        return view(result, *options, **more)

    return shown


def progress_html(share: float, message: str) -> Html:
    """A bar that is filled to a share of 1, the percentage and the message, escaped."""
    percent = round(100 * share)
    return Html(
        f'<div role="status"><progress max="100" value="{percent}" aria-label="Progress" '
        f'style="width:150px;vertical-align:middle;accent-color:{OKABE_ITO["blue"]}"></progress> '
        f"{percent} % · {html.escape(message)}</div>"
    )


def table_html(
    header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", raw: bool = True
) -> Html:
    """An HTML table in the common look. Cells are HTML when `raw`; otherwise they are escaped."""

    def cell(x: object) -> str:
        return str(x) if raw else html.escape(str(x))

    head = "".join(
        f'<th scope="col" style="text-align:left;padding:.35em .8em">{html.escape(h)}</th>'
        for h in header
    )
    body = "".join(
        f'<tr style="border-top:1px solid {GRID}">'
        + "".join(
            f'<td style="text-align:left;padding:.35em .8em;vertical-align:top">{cell(c)}</td>'
            for c in row
        )
        + "</tr>"
        for row in rows
    )
    title = (
        f'<caption style="text-align:left;color:{MUTED}">{html.escape(caption)}</caption>'
        if caption
        else ""
    )
    return Html(
        f'<table class="workbench" style="border-collapse:collapse;font-family:{FONT};'
        f'font-size:13px;margin:.6em 0">{title}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
