"""Pictures that follow a slider, as text (SVG): the live part, stills and the notebook show them.

Each is a pure function that takes a few milliseconds. Charts of finished studies are in `views.py`.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html, table_html
from workbench.widgets.svg import Band, Line, Mark, chart, number

from ._engine import TIE
from .bonuses import (
    BERNSTEIN,
    BOUNDS,
    NO_TABLE,
    PAPER,
    Sizes,
    bonus,
    rare,
    regret_bound,
    terms,
    visits_to_inform,
)
from .experiments import Bandits, Comparison, Scan
from .learning import Run

_C = OKABE_ITO
DASHED, DOTTED, DASHDOT = "7 4", "2 3", "8 3 2 3"
# Color of the family, dash of the version.
STYLES = {
    "CH": (_C["orange"], ""), "CH-I": (_C["orange"], DASHED),
    "BF": (_C["blue"], ""), "BF-I": (_C["blue"], DASHED),
    "MVP": (_C["vermillion"], ""), "tight CH": (_C["green"], ""),
    "practitioner": (_C["purple"], ""), "greedy": (MUTED, DASHED),
    "random policy": (MUTED, DOTTED), "first action": (MUTED, DASHDOT),
}  # fmt: skip
TERM_COLORS = {"lower order": _C["sky"], "correction": _C["green"], "variance": _C["purple"]}
NEVER, FEW = "–", 1e-12
WIDTH, HEIGHT = 620, 340


def regret_drawing(
    comparison: Comparison, kind: str = "pseudo", x_log: bool = False, y_log: bool = False
) -> Html:
    """Summed regret over episodes, mean and 95 % band, H K, order of the lower bound."""
    sizes = comparison.sizes
    lines = []
    for algorithm in comparison.algorithms:
        episodes, curves = comparison.curve(algorithm, kind)
        if not len(episodes):
            continue
        mean = curves.mean(0)
        half = 1.96 * curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else None
        color, dash = STYLES[algorithm]
        band = (None, None) if half is None else (mean - half, mean + half)
        lines.append(Line(f"{algorithm} {mean[-1]:,.0f}", episodes, mean, color, dash, 2.0, *band))
    K = np.unique(np.geomspace(1, sizes.K, 200).round())
    top = max((float(line.y.max()) for line in lines), default=sizes.trivial)
    lines += [
        Line("H K, trivial", K, sizes.H * K, INK, DOTTED, width=1.3),
        Line(
            "√(HSAT), order of the lower bound", K, sizes.H * np.sqrt(sizes.S * sizes.A * K),
            INK, DASHED, width=1.3,
        ),
    ]  # fmt: skip
    least = max(0.5, 1e-6 * top)
    return chart(
        f"Regret, {kind}: {comparison.name}", lines, "episode", "summed regret",
        x_range=(1, sizes.K) if x_log else (0, sizes.K),
        y_range=(least, max(1.3 * sizes.trivial, 10 * least)) if y_log else (0, 1.1 * top),
        log_x=x_log, log_y=y_log, width=WIDTH, height=HEIGHT,
    )  # fmt: skip


def anatomy(
    sizes: Sizes,
    algorithm: str = "BF-I",
    variance: float = 1.0,
    reached: float = 1.0,
    N: float = 1000.0,
    scale: float = 1.0,
) -> Html:
    """The terms of BF or BF-I against N, other bonuses as lines, and H, above which all is void.

    variance: Var of the next value, at most H^2 / 4. reached: N'. N: where the terms are read off.
    """
    visits = np.geomspace(1, max(10.0 * sizes.K, 1e4), 120)
    rest = {"variance": variance, "scale": scale}
    parts = terms(algorithm, visits, sizes, reached=reached, **rest)
    areas, below = [], np.zeros_like(visits)
    for name, color in TERM_COLORS.items():
        above = below + parts[name]
        areas.append(Band(f"{algorithm}: {name}", visits, below, above, color, 0.75))
        below = above
    lines = [
        Line(a, visits, bonus(a, visits, sizes, **rest), STYLES[a][0], STYLES[a][1])
        for a in ("CH", "CH-I", "MVP", "tight CH")
    ]
    marks = [
        Mark(f"H = {sizes.H}: above it a bonus says nothing", sizes.H),
        Mark(f"N = {number(round(N))}", N, "x"),
    ]
    picture = chart(
        f"Anatomy of the {algorithm} bonus (S = {sizes.S}, A = {sizes.A}, H = {sizes.H}, "
        f"K = {number(sizes.K)})",
        [*areas, *lines, *marks], "visits N of the pair (s, a)", "bonus", log_x=True, log_y=True,
        x_range=(1, float(visits[-1])), y_range=(max(1e-3 * sizes.H, FEW), 1e4 * sizes.H),
        width=WIDTH, height=HEIGHT,
    )  # fmt: skip
    return Html(f"{picture}{anatomy_table(sizes, algorithm, variance, reached, N, scale)}")


def anatomy_table(
    sizes: Sizes, algorithm: str, variance: float, reached: float, N: float, scale: float
) -> Html:
    """The terms at N, the visits until each bonus is below H, and what caps the third term."""
    here = terms(algorithm, N, sizes, variance=variance, reached=reached, scale=scale)
    total = sum(map(float, here.values())) or 1.0
    largest = max(here, key=lambda name: float(here[name]))
    rows = [
        [name, f"{float(value):.3g}", f"{100 * float(value) / total:.0f} %"
         + (" (largest)" if name == largest else "")]
        for name, value in here.items()
    ]  # fmt: skip
    left = table_html(["term", f"at N = {number(round(N))}", "share"], rows)
    informs = []
    for a in (*PAPER, "tight CH"):
        value = visits_to_inform(a, sizes, variance=variance, reached=reached, scale=scale)
        informs.append([a, f"{value:,}" if value else "more than 10¹⁵"])
    right = table_html(["bonus", "visits until it is below H"], informs)
    c = rare(algorithm, sizes)
    capped = "at its cap H²" if c / max(reached, 1) >= sizes.H**2 else "below its cap H²"
    root = f"{BERNSTEIN[algorithm][4]:.0f}² H³ S² A L²"
    note = (
        f"L = {sizes.L:.2f}, ℓ = {sizes.ell:.2f}. Inside the correction, {root} = {c:.2g}; divided "
        f"by N′ = {number(round(max(reached, 1)))} it is {capped} = {sizes.H**2}. MVP counts only "
        "the visits of its last epoch."
    )
    return Html(
        f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start;gap:0 28px">'
        f"{left}{right}"
        f"</div>"
        f'<div style="font:12px {FONT};color:{MUTED};max-width:620px">{html.escape(note)}</div>'
    )


def bounds_drawing(sizes: Sizes, measured: Sequence[Comparison] = (), kind: str = "pseudo") -> Html:
    """Published bounds, H K, the order of the lower bound and measured regret over K, log-log."""
    K = np.geomspace(100, 1e12, 160)
    lines = [
        Line(f"bound of {a}", K, regret_bound(a, K, sizes), STYLES[a][0], STYLES[a][1], width=2.6)
        for a in BOUNDS
    ]
    order = sizes.H * np.sqrt(sizes.S * sizes.A * K)
    lines += [
        Line("H K, trivial", K, sizes.H * K, INK, DOTTED, width=1.4),
        Line("√(HSAT), order of the lower bound", K, order, INK, DASHED, width=1.4),
    ]
    for comparison in measured:
        for algorithm in comparison.algorithms:
            episodes, curves = comparison.curve(algorithm, kind)
            late = episodes >= 100
            if late.any():
                color, dash = STYLES[algorithm]
                mean = curves.mean(0)[late]
                lines.append(
                    Line(f"{algorithm}, measured", episodes[late], mean, color, dash, width=1.3)
                )
    return chart(
        f"Bounds and reality (S = {sizes.S}, A = {sizes.A}, H = {sizes.H})",
        lines, "episodes K", "regret", x_range=(100, 1e12), y_range=(1, 1e14),
        log_x=True, log_y=True, width=WIDTH, height=HEIGHT,
    )  # fmt: skip


def microscope(run: Run, look: int, h: int, s: int) -> Html:
    """Q of one state and stage before an episode: backup and bonus of each action, Q* as a mark.

    look: index of `run.snapshots.episodes`. h from 1. Blue: R + P_hat V, which holds the bonuses of
    later stages; orange: the rest of Q, the bonus of this stage. Never tried: only an outline.
    """
    shots = run.snapshots
    H, _, A = run.Q.shape
    Q, N = shots.Q[look, h - 1, s], shots.N[look, s]
    # The minimum with H and with the last table may eat all of the bonus and some of the backup.
    backup = np.minimum(Q, shots.backup[look, h - 1, s])
    best, has_table = run.Q_star[h - 1, s], run.algorithm not in NO_TABLE
    equal = np.flatnonzero(Q >= Q.max() - (TIE if run.ties == "random" else 0.0))
    drawn = equal if run.ties == "random" else equal[:1]
    word = "taken" if len(drawn) == 1 else f"drawn, one of {len(drawn)}"
    left, wide, row = 72, 290, 34
    unit = wide / H
    parts = [
        f'<path d="M{left + v * unit:.1f} 8V{A * row + 10}" stroke="#E4E7EB"/><text '
        f'x="{left + v * unit:.1f}" y="{A * row + 24}" text-anchor="middle" fill="{MUTED}">'
        f"{v:g}</text>"
        for v in np.unique(np.linspace(0, H, min(H, 5) + 1).round())
    ]
    said = []
    for a in range(A):
        y = 10 + a * row
        if not has_table:
            bars, text = "", f"{int(N[a]):,} visits"
        elif not N[a]:
            bars, text = _bar(left, y, Q[a] * unit, _OUTLINE), f"never tried, Q = {Q[a]:.3g}"
        else:
            bars = _bar(left, y, backup[a] * unit, f'fill="{_C["blue"]}"') + _bar(
                left + backup[a] * unit, y, (Q[a] - backup[a]) * unit, f'fill="{_C["orange"]}"'
            )
            text = f"{int(N[a]):,} visits"
        parts.append(
            f'<text x="{left - 8}" y="{y + 16}" text-anchor="end" fill="{INK}">action {a}</text>'
            f'{bars}<path d="M{left + best[a] * unit:.1f} {y - 4}v30" stroke="{INK}" '
            f'stroke-width="3"/><text x="{left + wide + 10}" y="{y + 16}" fill="{INK}">'
            f"{text}{f' ◀ {word}' if a in drawn else ''}</text>"
        )
        said.append(
            f"action {a}: {text}, Q {Q[a]:.2f}, without its bonus {backup[a]:.2f}, Q* {best[a]:.2f}"
        )
    title = f"{run.algorithm}, episode {int(shots.episodes[look]):,}, stage {h}, state {s}"
    if has_table:
        note = f"{int((Q >= H - FEW).sum())} of {A} actions are at the cap H = {H}."
        if len(equal) > 1:
            choice = "one is drawn at random" if run.ties == "random" else "the first one is taken"
            note += f" Among equals {choice}."
    else:
        note = "This policy keeps no table; the marks are Q*, the truth."
    keys = [
        (f'fill="{_C["blue"]}"', "reward plus promised future (bonuses of later stages included)"),
        (f'fill="{_C["orange"]}"', "bonus of this stage"), (_OUTLINE, "never tried"),
        (f'fill="{INK}"', "Q*, the truth"),
    ]  # fmt: skip
    legend = "".join(
        f'<span><svg width="14" height="12" aria-hidden="true"><rect x="1" y="1" width="11" '
        f'height="10" {paint}/></svg> {text}</span>'
        for paint, text in keys
        if has_table
    )
    return Html(
        f'<figure style="margin:0 0 14px;max-width:620px;font:13px/1.4 {FONT};color:{INK}">'
        f'<figcaption style="font-weight:600">{html.escape(title)}</figcaption>'
        f'<svg viewBox="0 0 620 {A * row + 32}" role="img" aria-label="{html.escape(title)}: '
        f'{"; ".join(said)}" style="width:100%;height:auto;display:block;font:12px {FONT}">'
        f'{"".join(parts)}</svg><div style="display:flex;flex-wrap:wrap;gap:2px 16px">{legend}'
        f'</div><div style="color:{MUTED}">{note}</div></figure>'
    )  # fmt: skip


_OUTLINE = f'fill="none" stroke="{MUTED}" stroke-dasharray="4 3"'


def _bar(x: float, y: float, width: float, paint: str) -> str:
    return f'<rect x="{x:.1f}" y="{y}" width="{max(width, 0):.1f}" height="22" {paint}/>'


def visits_drawing(runs: Sequence[Run]) -> Html:
    """Who explores what: share of all visits of each pair (s, a), one heat map an algorithm."""
    shown = "".join(_heat_map(run) for run in runs if run)
    return Html(
        f'<div style="display:flex;flex-wrap:wrap;gap:14px 26px;font:13px/1.35 {FONT};'
        f'color:{INK}">{shown}</div><div style="font:12px {FONT};color:{MUTED}">Each number: '
        "percent of all visits. Darker is more, on a logarithmic scale. Rows: actions, columns: "
        "states.</div>"
    )


def _heat_map(run: Run) -> str:
    share = run.N.T / max(run.N.sum(), 1)  # (A, S)
    A, S = share.shape
    cell = min(58, max(26, 300 // S))
    parts = []
    for a in range(A):
        for s in range(S):
            level = float(np.clip(1 + np.log10(max(share[a, s], FEW)) / 5, 0, 1))
            # White to blue; words switch to white where the ground is dark.
            red, green, blue = (round(255 + (c - 255) * level) for c in (0, 74, 128))
            text = _percent(share[a, s])
            parts.append(
                f'<rect x="{20 + s * cell}" y="{a * 26}" width="{cell - 2}" height="24" '
                f'fill="rgb({red},{green},{blue})" stroke="#B8C0CA"/>'
                f'<text x="{20 + s * cell + cell / 2 - 1}" y="{a * 26 + 16}" text-anchor="middle" '
                f'fill="{"white" if level > 0.55 else INK}">{text}</text>'
            )
        parts.append(f'<text x="12" y="{a * 26 + 16}" text-anchor="end" fill="{MUTED}">{a}</text>')
    parts += [
        f'<text x="{20 + s * cell + cell / 2 - 1}" y="{A * 26 + 12}" text-anchor="middle" '
        f'fill="{MUTED}">{s}</text>'
        for s in range(S)
    ]
    width, height = 22 + S * cell, A * 26 + 18
    label = f"{run.algorithm}: percent of visits by action and state"
    return (
        f'<figure style="margin:0;max-width:100%;overflow-x:auto"><figcaption><b>'
        f"{html.escape(run.algorithm)}</b> regret "
        f"{run.pseudo[-1] if len(run.pseudo) else 0:,.0f}</figcaption>"
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{label}" style="font:11px {FONT}">{"".join(parts)}</svg></figure>'
    )


def _percent(share: float) -> str:
    if share == 0:
        return NEVER
    percent = 100 * share
    return f"{percent:.0f}" if percent >= 9.5 else f"{percent:.1f}" if percent >= 0.05 else "&lt;.1"


def share_text(share: float) -> str:
    """`7 %`; what is above 0 never looks like 0."""
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def scan_drawing(scan: Scan) -> Html:
    """Regret and share of violations against the multiplier, log x; 0 stands at the left end."""
    positive = scan.scales[scan.scales > 0]
    zero = positive.min() / 3 if len(positive) else 1e-3
    x = np.where(scan.scales > 0, scan.scales, zero)
    order = np.argsort(x)
    regret, violated = [], []
    for a in scan.regret:
        color, dash = STYLES[a]
        regret.append(Line(a, x[order], scan.median(a)[order], color, dash))
        violated.append(Line(a, x[order], scan.share(a)[order], color, dash))
    limits = (float(zero * 0.8), float(x.max() * 1.1))
    at_zero = [Mark("no bonus", zero, "x")] if (scan.scales == 0).any() else []
    upper = chart(
        f"Median regret after {scan.K:,} episodes", [*regret, *at_zero], "multiplier of the bonus",
        "regret", log_x=True, log_y=True, x_range=limits, width=WIDTH, height=270,
    )  # fmt: skip
    lower = chart(
        "Optimism broken: share of (h, s) with V below V*", [*violated, *at_zero],
        "multiplier of the bonus", "share", log_x=True, x_range=limits, y_range=(0, 1),
        width=WIDTH, height=220,
    )  # fmt: skip
    return Html(f"{upper}{lower}")


def bandit_drawing(bandits: Bandits) -> Html:
    """Regret of both indices on bandits of several arms, mean and 95 % band."""
    lines = []
    for (A, index), curves in bandits.curves.items():
        mean = curves.mean(0)
        half = 1.96 * curves.std(0, ddof=1) / np.sqrt(len(curves)) if len(curves) > 1 else None
        color = _C["blue"] if A == min(a for a, _ in bandits.curves) else _C["vermillion"]
        dash = "" if index == "published" else DASHED
        name = f"{A} arms, {index}: {mean[-1]:,.0f}"
        band = (None, None) if half is None else (mean - half, mean + half)
        lines.append(Line(name, bandits.rounds, mean, color, dash, 2.0, *band))
    return chart(
        f"Bandits: two constants ({len(next(iter(bandits.curves.values())))} sets of arms)",
        lines, "round", "summed regret", log_x=True, width=WIDTH, height=HEIGHT,
    )  # fmt: skip
