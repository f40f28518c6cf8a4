"""The live pictures as SVG text, each a pure function of results; see `widgets/svg.py`.

Pictures of the study, as HoloViews elements, are in `views.py`; both have the same styles.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from workbench.theme import FONT, GRID, INK, MUTED, OKABE_ITO, Html
from workbench.widgets.svg import Band, Bars, Dots, Line, Mark, chart
from workbench.widgets.tree_view import STATUSES, Tree

from .branch_and_bound import BRANCHED, FIXED, OPEN, PRUNED, Search
from .problem import Problem
from .prox import Pooling, weights
from .relaxation import Relaxed, statuses

# Color and dashes of each variant and solver.
STYLES = {
    "restart": (OKABE_ITO["vermillion"], ""),
    "no restart": (OKABE_ITO["blue"], "6 3"),
    "no momentum": (INK, "2 3"),
    "Clarabel": (OKABE_ITO["green"], "8 3 2 3"),
    "SCS": (OKABE_ITO["purple"], "4 2 1 2"),
}
BOX_NOTE = "the box is active: this is the optimum of the boxed problem"
STATUS_OF = {OPEN: "open", BRANCHED: "branched", PRUNED: "pruned", FIXED: "decided"}
MOST_ROWS = 20


def sorted_picture(found: Pooling, tau: float, k: int, M: float, step: int | None = None) -> Html:
    """|v| / tau in decreasing order, each element's own solution, and the block after `step`."""
    p = len(found.u)
    x = np.arange(1, p + 1)
    parts: list = [Bars("|v| / τ, sorted", x, found.u, "#CBD5E1")]
    parts.append(Dots("each alone", x, found.single, OKABE_ITO["blue"], "ring", 4))
    blocks = found.blocks if step is None else found.blocks[:step]
    top = float(max(found.u.max(initial=0), 1e-9)) * 1.08
    if blocks:
        first, last, value = blocks[-1]
        ends = np.array([first + 0.55, last + 0.45])
        parts.append(Band("", ends, np.zeros(2), np.full(2, value), OKABE_ITO["vermillion"], 0.15))
        parts.append(Line("pooled block", ends, [value, value], OKABE_ITO["vermillion"], width=4))
    parts.append(Mark(f"border k = {k}", k + 0.5, "x"))
    if M < top:
        parts.append(Mark("ν = M: above it the box binds", M))
    violated = 0 < k < p and found.single[k - 1] < found.single[k]
    if not violated:
        told = "In order at the border: nothing is pooled."
    elif not blocks:
        told = f"At the border {found.single[k - 1]:.3g} < {found.single[k]:.3g}: out of order."
    else:
        first, last, value = blocks[-1]
        told = f"Block of {last - first} elements, {k - first} among the first k, value {value:.4g}"
        told += ", finished." if len(blocks) == len(found.blocks) else ", still growing."
    drawn = chart(
        "Sorted: the isotonic problem", parts, "place in the order of |v|", "ν", height=230,
        width=390, y_range=(0, top), x_range=(0.4, p + 0.6), words=f"Sorted picture. {told}",
    )  # fmt: skip
    return Html(drawn + _note(told))


def prox_picture(v: Sequence[float], found: Pooling) -> Html:
    """The result b beside v, and the weights z."""
    x = np.arange(1, len(found.b) + 1)
    parts = [
        Bars("b, the prox", x, found.b, OKABE_ITO["sky"]),
        Dots("v", x, v, INK, "cross", 4),
    ]
    most = 1.05 * float(max(np.abs(v).max(initial=0), 1e-9))
    left = chart("Result: b = prox(v)", parts, "element", "b", width=390, height=210,
                 y_range=(-most, most))  # fmt: skip
    z = [Bars("z", x, found.z, OKABE_ITO["green"])]
    right = chart(f"Weights z, sum {found.z.sum():.3g}", z, "element", "z", width=390, height=170,
                  y_range=(0, 1.05))  # fmt: skip
    return Html(left + right)


def race_picture(runs: dict[str, Relaxed], conic: dict[str, float], axis: str = "iterations",
                 log_x: bool = True) -> Html:  # fmt: skip
    """Relative gap of each variant over iterations or CPU seconds; conic solvers as lines."""
    parts: list = []
    told = []
    for name, run in runs.items():
        if not run.bounds:
            continue
        iteration, seconds, value, lower = np.array(run.bounds, float).T
        gap = np.maximum((value - lower) / np.maximum(1, np.abs(value)), 1e-12)
        x = iteration if axis == "iterations" else np.maximum(1e3 * seconds, 1e-3)
        color, dash = STYLES[name]
        parts.append(Line(name, x, gap, color, dash, 2.4 if name == "restart" else 1.8))
        told.append(f"{name} {iteration[-1]:.0f} iterations to a gap of {gap[-1]:.1e}")
        if run.restarts.any():
            at = np.flatnonzero(run.restarts) + 1
            where = np.interp(at, iteration, x)
            height = np.exp(np.interp(at, iteration, np.log(gap)))
            parts.append(Dots(f"its {len(at)} restarts", where, height, color, "cross", 3))
    if axis != "iterations":
        for name, seconds in conic.items():
            parts.append(Mark(name, 1e3 * seconds, "x"))
    if not parts:
        return Html("")
    if axis == "iterations":
        ends = (10.0, float(max(part.x[-1] for part in parts if isinstance(part, Line))))
    else:
        known = [float(part.x[-1]) for part in parts if isinstance(part, Line)]
        first = min(float(part.x[0]) for part in parts if isinstance(part, Line))
        ends = (first, 1.3 * max([*known, *(1e3 * s for s in conic.values())]))
    label = {"iterations": "iteration", "seconds": "CPU time [ms]"}[axis]
    return chart(
        "Race: relative duality gap", parts, label, "gap", log_y=True, log_x=log_x,
        width=560, height=300, x_range=(ends[0], max(ends[1], 1.1 * ends[0])),
        words=f"Race. {'; '.join(told)}.",
    )  # fmt: skip


def squeeze_picture(search: Search) -> Html:
    """Upper and lower bound over time, and the number of open nodes."""
    history = history_of(search)
    if not len(history):
        return Html("")
    seconds, upper, lower, open_nodes = history.T
    upper = np.where(np.isfinite(upper), upper, np.nan)
    known = np.r_[upper[np.isfinite(upper)], lower[lower > 0], search.lower]
    low, high = float(known.min()), float(known.max())
    room = 0.06 * max(high - low, 1e-9 * abs(high))
    x, upper, lower, open_nodes = _stairs(seconds, upper, lower, open_nodes)
    told = f"best value {search.upper:.8g}, lower bound {search.lower:.8g}"
    bounds = chart(
        "Bounds squeeze the optimum",
        [Band("not decided", x, lower, upper, OKABE_ITO["sky"], 0.2),
         Line("best value", x, upper, OKABE_ITO["vermillion"]),
         Line("lower bound", x, lower, OKABE_ITO["blue"], "6 3")],
        "seconds", "objective", width=390, height=230, y_range=(low - room, high + room),
        words=f"Bounds: {told}.",
    )  # fmt: skip
    nodes = chart("Open nodes", [Line("", x, open_nodes, INK)], "seconds", "nodes", width=390,
                  height=150, words=f"Open nodes: {history[-1, 3]:.0f}")  # fmt: skip
    return Html(bounds + nodes)


def history_of(search: Search, most: int = 400) -> np.ndarray:
    """(m, 4) seconds, upper, lower, open nodes of a search, at most `most` rows of it."""
    history = np.array(list(search.history), float).reshape(-1, 4)
    if len(history) > most:
        history = history[np.unique(np.linspace(0, len(history) - 1, most).astype(int))]
    return history


def _stairs(x: np.ndarray, *rows: np.ndarray) -> tuple[np.ndarray, ...]:
    """Each value holds until the next time."""
    return (np.repeat(x, 2)[1:], *(np.repeat(row, 2)[:-1] for row in rows))


def tree_of(search: Search) -> Tree:
    """The tree of a search as arrays."""
    nodes = list(search.nodes)  # as many as there are now: the search may go on
    names = [STATUS_OF[v.status] for v in nodes]
    columns = (
        [v.parent for v in nodes], [v.depth for v in nodes], [v.feature for v in nodes],
        [v.included for v in nodes], [v.lower for v in nodes],
        [STATUSES.index(name) for name in names], [v.iterations for v in nodes],
    )  # fmt: skip
    return Tree(*(np.array(column) for column in columns))


def node_picture(search: Search, picked: int) -> Html:
    """The relaxed z of a node: what is in, what is out, and what is shared by the rest."""
    if not 0 <= picked < len(search.nodes):
        return _note("Click a node of the tree: its relaxed z is drawn here.")
    visited, problem = search.nodes[picked], search.problem
    if visited.indices is None:
        return _note(f"Node {picked} is open: it has not been solved yet.")
    status, free, k = statuses(problem, visited.node)
    z = np.where(status == 1, 1.0, 0.0)
    beta = visited.beta(problem.p)
    z[free] = weights(beta[free], k)
    rows = [(name_of(problem, j), float(z[j]), "in" if status[j] == 1 else "")
            for j in np.argsort(-z, kind="stable")[:MOST_ROWS] if z[j] > 0]  # fmt: skip
    out = ", ".join(name_of(problem, j) for j in visited.node.outside) or "none"
    title = f"Relaxed z of node {picked}: bound {visited.lower:.6g}, value {visited.value:.6g}"
    return Html(rows_picture(title, rows, 1.0, OKABE_ITO["green"]) + _note(f"Out: {out}"))


def coefficients_picture(problem: Problem, beta: np.ndarray, title: str) -> Html:
    """Coefficients by feature; bars that touch the box are flagged."""
    used = [j for j in np.argsort(-np.abs(beta), kind="stable") if beta[j] != 0]
    at_box = [j for j in used if abs(beta[j]) >= problem.M * (1 - 1e-9)]
    rows = [(name_of(problem, j), float(beta[j]), "at the box" if j in at_box else "")
            for j in used[:MOST_ROWS]]  # fmt: skip
    drawn = rows_picture(title, rows, problem.M, OKABE_ITO["blue"], flag=OKABE_ITO["vermillion"])
    if at_box:
        drawn += _note(f"⚑ |β| = M for {len(at_box)} of {len(used)}: {BOX_NOTE}.")
    return Html(drawn)


def name_of(problem: Problem, j: int) -> str:
    """A feature's name with its number."""
    return f"{j} {problem.names[j]}" if problem.names else str(j)


def rows_picture(
    title: str, rows: Sequence[tuple[str, float, str]], most: float, color: str, flag: str = ""
) -> Html:
    """Horizontal bars: (name, value, remark) each, between -most and most (from 0 if none is
    negative). A remark colors the bar with `flag` and is written beside it.
    """
    signed = any(value < 0 for _, value, _ in rows)
    left, width, height = 150, 330, 20
    start = left + (70 if signed else 0)
    scale = (70 if signed else 150) / max(most, 1e-300)
    drawn = []
    for i, (name, value, remark) in enumerate(rows):
        y = i * height
        size = min(abs(value), most) * scale
        x = start - size if value < 0 else start
        fill = flag if remark and flag else color
        text = f"{value:.4g}" + (f" ⚑ {remark}" if remark and flag else f" {remark}")
        end = left + (140 if signed else size) + 6
        drawn.append(
            f'<text x="{left - 6}" y="{y + 14}" text-anchor="end">{html.escape(name[:24])}</text>'
            f'<rect x="{x:.1f}" y="{y + 4}" width="{max(size, 1):.1f}" height="12" '
            f'fill="{fill}"/><text x="{end:.1f}" y="{y + 14}">{html.escape(text)}</text>'
        )
    total = max(1, len(rows)) * height + 4
    spoken = ", ".join(f"{name} {value:.4g} {remark}".strip() for name, value, remark in rows)
    spoken = html.escape(f"{title}: {spoken or 'none'}")
    axis = f'<path d="M{start} 0V{total}" stroke="currentColor" stroke-opacity="0.5"/>'
    if not rows:
        drawn = [f'<text x="{left}" y="14">none</text>']
    return Html(
        f'<figure style="margin:0 0 6px;width:{width + 60}px;max-width:100%;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, #1F2933)"><figcaption style="font-weight:600">'
        f'{html.escape(title)}</figcaption><svg viewBox="0 0 {width + 60} {total}" role="img" '
        f'aria-label="{spoken}" style="width:100%;'
        f'height:auto;display:block;font:11px {FONT};fill:currentColor">{axis}{"".join(drawn)}'
        "</svg></figure>"
    )


def _note(text: str) -> Html:
    return Html(f'<p style="font:12px/1.4 {FONT};color:{MUTED};margin:0 0 8px">'
                f"{html.escape(text)}</p>")  # fmt: skip


def dual_picture(optimum: float, relaxed: float, value: float, best: float) -> Html:
    """A ruler: the optimum, the relaxation, D(w) of this w, and the best one so far."""
    low = max(min(0.0, value, -0.15 * optimum), -2.0 * optimum)
    span = optimum * 1.15 - low
    width = 560

    def x(at: float) -> float:
        return 20 + (width - 40) * (np.clip(at, low, optimum * 1.15) - low) / span

    marks = [
        ("optimum P*", optimum, OKABE_ITO["vermillion"], 26, 5),
        ("relaxation", relaxed, OKABE_ITO["green"], 46, 4),
        ("best D(w) so far", best, OKABE_ITO["blue"], 66, 3),
        ("D(w)", value, INK, 86, 6),
    ]
    lines = "".join(
        f'<path d="M{x(v):.1f} {y - 12}V112" stroke="{c}" stroke-width="2"/>'
        f'<circle cx="{x(v):.1f}" cy="112" r="{r}" fill="{c}"/>'
        f'<text x="{x(v) + (-6 if x(v) > 0.55 * width else 6):.1f}" y="{y - 2}" '
        f'text-anchor="{"end" if x(v) > 0.55 * width else "start"}">{name} = {v:.5g}</text>'
        for name, v, c, y, r in marks
    )
    spoken = ", ".join(f"{name} {v:.5g}" for name, v, *_ in marks)
    safe = "D(w) ≤ P*, as always." if value <= optimum else "D(w) is above P*: report this!"
    return Html(
        f'<figure style="margin:0;width:{width}px;max-width:100%;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, #1F2933)"><figcaption style="font-weight:600">'
        f'{safe}</figcaption><svg viewBox="0 0 {width} 140" role="img" aria-label="Bounds: '
        f'{spoken}" style="width:100%;height:auto;display:block;font:11px {FONT};'
        f'fill:currentColor"><path d="M20 112H{width - 20}" stroke="{GRID}" stroke-width="4"/>'
        f'{lines}<text x="{x(0.0):.1f}" y="134" text-anchor="middle">0</text></svg></figure>'
    )


def still_search(search: Search) -> Html:
    """Bounds, coefficients and the root's z of a finished search, for reports."""
    result = search.result()
    title = f"Certified β: {search.problem.name}" if result.certified else "Best β found"
    drawn = (
        squeeze_picture(search),
        coefficients_picture(search.problem, result.beta, title) + node_picture(search, 0),
    )
    return Html('<div style="display:flex;flex-wrap:wrap;gap:16px">'
                + "".join(f"<div>{part}</div>" for part in drawn) + "</div>")  # fmt: skip


def verdict(search: Search) -> str:
    """How a search stands, in words."""
    found = search.result()
    rate = found.nodes / max(found.seconds, 1e-9)
    what = f"✓ certified to {100 * search.gap_wanted:g} %" if found.certified else found.ending
    return (
        f"{what}: {found.lower:.8g} ≤ optimum ≤ {found.upper:.8g}, gap {100 * found.gap:.3g} %, "
        f"{found.nodes:,} nodes in {found.seconds:.2f} s ({rate:.0f} a second)"
        + (f", {len(found.box_active)} at the box" if found.box_active else "")
    )
