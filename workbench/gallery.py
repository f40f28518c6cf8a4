"""The gallery: a card for each method, by theme, from the catalog and from results files.

Used by the index notebook and by the app. What it shows of claims is read from results files; it
runs nothing.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workbench import catalog, scorecard, theme
from workbench.theme import Html

STYLE = f"""
.wb-cards {{ display: grid; gap: 20px; font-family: {theme.FONT}; color: {theme.INK};
  grid-template-columns: repeat(auto-fill, minmax(260px, 1fr)); max-width: 1200px; }}
.wb-cards a.wb-card {{ display: block; border: 1px solid {theme.GRID}; border-radius: 10px;
  overflow: hidden; text-decoration: none; color: inherit; background: {theme.PAPER}; }}
.wb-cards a.wb-card:hover {{ border-color: {theme.OKABE_ITO["blue"]}; }}
.wb-card:focus-visible {{ outline: 2px solid {theme.OKABE_ITO["blue"]}; outline-offset: 2px; }}
.wb-card img {{ width: 100%; aspect-ratio: 2 / 1; object-fit: contain; display: block;
  border-bottom: 1px solid {theme.GRID}; }}
.wb-card div {{ padding: 12px 16px 14px; }}
.wb-card .wb-theme {{ color: {theme.OKABE_ITO["blue"]}; margin: 0 0 3px; }}
.wb-card b {{ font-size: 16px; display: block; margin: 0 0 6px; }}
.wb-card p {{ margin: 0 0 8px; font-size: 14px; line-height: 1.45; }}
.wb-card small {{ color: {theme.MUTED}; display: block; font-size: 12px; line-height: 1.5; }}
"""


def cards(
    methods: list[catalog.Method],
    link: Callable[[catalog.Method], str],
    records: Sequence[dict[str, Any]] = (),
) -> Html:
    """Methods as linked cards with thumbnail, summary, minutes and the claims in `records`."""
    known = scorecard.latest(records)
    parts = []
    for method in methods:
        picture = ""
        if method.thumbnail.exists():
            data = base64.b64encode(method.thumbnail.read_bytes()).decode()
            picture = f'<img alt="" src="data:image/png;base64,{data}">'
        minutes = method.minutes
        claims = "Claims: no report yet"
        if method.slug in known:
            claims = f"Claims: {scorecard.in_short(known[method.slug])}"
        parts.append(
            f'<a class="wb-card" href="{html.escape(link(method))}">{picture}<div>'
            f'<small class="wb-theme">{html.escape(method.theme)}</small>'
            f"<b>{html.escape(method.title)}</b><p>{html.escape(method.summary)}</p>"
            f"<small>{html.escape(method.level)} · reading {minutes.reading:g} min · running "
            f"{minutes.default:g} min (full {minutes.full:g})<br>{html.escape(claims)}</small>"
            "</div></a>"
        )
    return Html(f'<style>{STYLE}</style><div class="wb-cards">{"".join(parts)}</div>')


def records(reports: str | Path | None = None) -> list[dict[str, Any]]:
    """The newest record of each method: of a report in the folder, or else the stored run.

    The folder is by default `reports` beside the notebooks' folder.
    """
    folder = Path(reports) if reports else catalog.notebooks_folder().parent / "reports"
    try:
        own = scorecard.read(folder)
    except ValueError:  # no reports yet
        own = []
    return list(scorecard.latest([*scorecard.stored(), *own]).values())


def show(reports: str | Path | None = None) -> Html:
    """The cards, linking to the notebooks beside this one, with the claims of `records`."""
    return cards(catalog.methods(), lambda m: f"{m.slug}.ipynb", records(reports))
