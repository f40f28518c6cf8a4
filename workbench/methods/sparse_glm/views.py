"""Pictures of the study of certified sparse models, pure functions of results, and the explorer.

Charts are HoloViews elements. Nothing is computed here beyond what a picture needs. Live pictures,
drawn at the speed of a slider, are in `drawings.py` and `live.py`; styles are common to both.
"""

from __future__ import annotations

import html
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import (
    FIELD_MAP,
    INK,
    MUTED,
    OKABE_ITO,
    VERDICTS,
    Html,
    needs_result,
    table_html,
)

from . import drawings, live, study
from .branch_and_bound import Search
from .drawings import STYLES
from .experiments import GAPS, Case, Entry, Heuristics, Main, Prox, Race, Sweep
from .findings import faster, same_support
from .relaxation import Relaxed


def _curve(x: Any, y: Any, axes: tuple[str, str], name: str, **options: Any) -> hv.Curve:
    color, dash = STYLES.get(name, (MUTED, ""))
    look = {"color": color, "line_dash": [int(n) for n in dash.split()] or "solid"}
    return hv.Curve((x, y), *axes, label=name).opts(**(look | options))


def _overlay(parts: list[hv.Element]) -> hv.Overlay:
    return hv.Overlay(parts).opts(shared_axes=False)  # charts of one page are about other things


# The reader's problem


@needs_result
def squeeze_chart(main: Main) -> hv.Layout:
    """Best value and lower bound over time, and the number of open nodes."""
    history = drawings.history_of(main.search, 1000)
    seconds, upper, lower, open_nodes = np.repeat(history, 2, axis=0)[:-1].T
    seconds = np.repeat(history[:, 0], 2)[1:]
    axes = ("seconds", "objective")
    band = hv.Area((seconds, lower, upper), axes[0], [axes[1], "high"]).opts(
        color=OKABE_ITO["sky"], alpha=0.2, line_width=0
    )
    curves = [
        hv.Curve((seconds, upper), *axes, label="best value").opts(color=OKABE_ITO["vermillion"]),
        hv.Curve((seconds, lower), *axes, label="lower bound").opts(
            color=OKABE_ITO["blue"], line_dash="dashed"
        ),
    ]
    low, high = float(lower[lower > 0].min(initial=upper.min())), float(upper.max())
    room = 0.05 * max(high - low, 1e-9)
    left = _overlay([band, *curves]).opts(
        title="Bounds squeeze the optimum", width=480, height=300, ylim=(low - room, high + room),
        legend_position="right",
    )  # fmt: skip
    right = hv.Curve((seconds, open_nodes), "seconds", "open nodes").opts(
        title="Open nodes", color=INK, width=320, height=300, shared_axes=False
    )
    return hv.Layout([left, right]).opts(shared_axes=False, toolbar=None)


@needs_result
def tree_chart(main: Main) -> hv.Overlay:
    """The search tree: order of creation by depth, colored by lower bound."""
    tree = drawings.tree_of(main.search)
    names = [v.status for v in main.search.nodes]
    order = np.arange(len(tree))
    kept = order[:2000]
    up = tree.parent[kept][1:].astype(int)
    edges = hv.Segments(
        (up, tree.depth[up], kept[1:], tree.depth[kept][1:]), ["x", "y", "x2", "y2"]
    ).opts(color="#B8C0CA", line_width=0.8)
    markers = {"open": "circle_dot", "branched": "circle", "pruned": "x", "all decided": "square"}
    parts: list[hv.Element] = [edges]
    shade = "bound, at most the optimum"
    low = float(tree.value.min())
    # Not up to the brightest color, which is hard to see on white.
    high = low + 1.25 * max(main.result.upper - low, 1e-9)
    for status, marker in markers.items():
        some = [k for k in kept if names[k] == status]
        if not some:
            continue
        sides = [main.search.nodes[k].node for k in some]
        table = {
            "order of creation": some, "depth": tree.depth[some], "bound": tree.value[some],
            shade: np.minimum(tree.value[some], main.result.upper),
            "in": [", ".join(map(str, s.inside)) for s in sides],
            "out": [", ".join(map(str, s.outside)) for s in sides],
            "iterations": tree.work[some],
        }  # fmt: skip
        points = hv.Points(
            table, ["order of creation", "depth"], [shade, "bound", "in", "out", "iterations"],
            label=status,
        )  # fmt: skip
        look = {"color": shade, "cmap": FIELD_MAP, "clim": (low, high), "size": 7}
        parts.append(points.opts(
            **look, marker=marker, line_width=1.5, colorbar=status == "branched"
        ))  # fmt: skip
    more = f", first {len(kept):,} of {len(tree):,} nodes" if len(kept) < len(tree) else ""
    return _overlay(parts).opts(
        title=f"Search tree, color: lower bound{more}", width=820, height=340, invert_yaxis=True,
        legend_position="right", xlabel="order of creation", ylabel="depth",
    )  # fmt: skip


@needs_result
def coefficients(main: Main) -> Html:
    """Certified coefficients; those at the box are flagged."""
    title = "Certified β" if main.result.certified else "Best β found, not certified"
    return drawings.coefficients_picture(main.problem, main.result.beta, title)


@needs_result
def main_table(main: Main) -> Html:
    """The certified optimum beside what heuristics find."""
    upper = main.result.upper
    rows = [
        ["<b>branch and bound</b>", f"<b>{upper:.6f}</b>", "–", _names(main, main.result.support),
         f"{main.result.lower:.6f}"],
        ["root relaxation", "–", "–", "", f"{main.root.lower:.6f}"],
    ]  # fmt: skip
    for name, fit in main.heuristics.items():
        excess = fit.value / upper - 1
        text = "same" if abs(excess) < 1e-9 else f"{100 * excess:+.3g} %"
        rows.append([name, f"{fit.value:.6f}", text, _names(main, fit.support), "no proof"])
    above = "the optimum" if main.result.certified else "the search's best"
    header = ["method", "objective", f"above {above}", "features", "lower bound"]
    r, v = main.result, main.verification
    caption = (
        f"{main.problem.name}: {r.ending}, gap {100 * r.gap:.2g} %, {r.nodes} nodes; certificate "
        f"of {len(main.search.nodes) // 2 + 1} leaves, {main.nbytes / 1000:.0f} kB, "
        f"{'verified' if v.valid else 'REJECTED: ' + v.reason} in {1000 * v.seconds:.0f} ms"
    )
    caption = ". ".join([caption, *main.remarks])
    return table_html(header, rows, caption=caption)


def _names(main: Main, support: tuple[int, ...]) -> str:
    return html.escape(", ".join(str(j) for j in support))


# Relaxation


@needs_result
def convergence_chart(runs: dict[str, Relaxed], title: str = "Root relaxation") -> hv.Overlay:
    """Relative duality gap of each variant over iterations, restarts as crosses."""
    axes = ("iteration", "relative duality gap")
    parts: list[hv.Element] = []
    for name, run in runs.items():
        iteration, _, value, lower = np.array(run.bounds, float).T
        gap = np.maximum((value - lower) / np.maximum(1, np.abs(value)), 1e-12)
        parts.append(_curve(iteration, gap, axes, name))
        at = np.flatnonzero(run.restarts) + 1
        if len(at):
            height = np.exp(np.interp(at, iteration, np.log(gap)))
            parts.append(
                hv.Scatter((at, height), *axes, label="restarts").opts(
                    marker="x", color=STYLES[name][0], size=7
                )
            )
    return _overlay(parts).opts(
        title=title, width=620, height=330, logy=True, legend_position="right"
    )


def race_pick(race: Race, loss: str = "linear") -> Entry | None:
    """The largest race of a loss in which all variants ran; None if there is none."""
    whole = [e for e in race if e.loss == loss and len(e.runs) == 3]
    return max(whole, key=lambda e: (e.size, -e.seed), default=None)


@needs_result
def race_charts(race: Race) -> hv.Layout | Html:
    """Convergence on the largest problem of each loss that all variants solved."""
    made = []
    for loss in ("linear", "logistic"):
        entry = race_pick(race, loss)
        if entry is None:
            continue
        chart = convergence_chart(entry.runs, f"{loss}, n = p = {entry.size}")
        made.append(chart.opts(width=440, height=300, legend_position="top_right"))
    if not made:
        return Html("<p><em>No size in this race was run by all three variants.</em></p>")
    return hv.Layout(made).opts(shared_axes=False, toolbar=None)


def _cells(race: Race) -> dict[tuple[str, int], list[Entry]]:
    found: dict[tuple[str, int], list[Entry]] = {}
    for entry in race:
        found.setdefault((entry.loss, entry.size), []).append(entry)
    return found


@needs_result
def race_table(race: Race) -> Html:
    """CPU seconds and iterations to a gap of 1e-6, means over seeds, and ratios."""
    rows = []
    for (loss, size), entries in _cells(race).items():
        cells = []
        for name in STYLES:
            if name in ("Clarabel", "SCS"):
                times = [e.conic[name].cpu_seconds for e in entries if name in e.conic]
                cells.append(f"{np.mean(times):.2f} s" if times else "–")
                continue
            runs = [e.runs[name] for e in entries if name in e.runs]
            cells.append(
                f"{np.mean([r.seconds for r in runs]):.3f} s / "
                f"{np.mean([r.iterations for r in runs]):.0f}" if runs else "–"
            )  # fmt: skip
        ratios = [ratio for ratio in map(faster, entries) if ratio is not None]
        per = np.mean([e.per_iteration for e in entries])
        rows.append([f"{loss} {size}", *cells, f"<b>{np.mean(ratios):.0f}×</b>" if ratios else "–",
                     f"{per:.1f}"])  # fmt: skip
    header = ["loss, n = p", *(f"{name}" for name in STYLES), "Clarabel / restart",
              "iteration / two products"]  # fmt: skip
    caption = (
        "CPU time / iterations to a relative gap of 1e-6, one thread, means over seeds; conic "
        "solvers through cvxpy, Clarabel to its own tolerance of 1e-8, SCS to 1e-6; –: not run"
    )
    return table_html(header, rows, caption=caption)


@needs_result
def scaling_chart(race: Race) -> hv.Overlay:
    """CPU time against size, a line each, log-log."""
    axes = ("n = p", "CPU seconds")
    parts = []
    for loss, wide in (("linear", 2), ("logistic", 1)):
        cells = {size: entries for (own, size), entries in _cells(race).items() if own == loss}
        for name in STYLES:
            points = []
            for size, entries in sorted(cells.items()):
                times = [e.runs[name].seconds for e in entries if name in e.runs]
                times += [e.conic[name].cpu_seconds for e in entries if name in e.conic]
                if times:
                    points.append((size, float(np.mean(times))))
            if points:
                color, dash = STYLES[name]
                look = {"color": color, "line_width": wide + 0.5,
                        "line_dash": [int(n) for n in dash.split()] or "solid"}  # fmt: skip
                curve = hv.Curve(points, *axes, label=f"{name}, {loss}").opts(**look)
                parts += [curve, hv.Scatter(points, *axes).opts(color=color, size=6)]
    ticks = [(size, str(size)) for size in sorted({e.size for e in race})]
    return _overlay(parts).opts(
        title="Time to a relative gap of 1e-6", width=620, height=330, logx=True, logy=True,
        legend_position="right", xticks=ticks, xlim=(0.9 * min(ticks)[0], 1.1 * max(ticks)[0]),
    )  # fmt: skip


@needs_result
def gaps_table(race: Race) -> Html:
    """Iterations to reach each gap, with and without restarts, means over seeds."""
    rows = []
    for (loss, size), entries in _cells(race).items():
        for name in ("restart", "no restart"):
            runs = [e.runs[name] for e in entries if name in e.runs]
            if runs:
                counts = [[run.reached(gap) or np.nan for run in runs] for gap in GAPS]
                rows.append([f"{loss} {size}", name, *(f"{np.mean(c):.0f}" for c in counts)])
    header = ["loss, n = p", "variant", *(f"{gap:g}" for gap in GAPS)]
    return table_html(header, rows, caption="Iterations until the relative gap is at most ...")


@needs_result
def prox_chart(prox: Prox) -> hv.Overlay:
    """Time of the prox and of a sort against the number of entries, log-log."""
    axes = ("numbers", "CPU seconds")
    parts = []
    for name, seconds, color, dash in (
        ("prox of g, k = 10", prox.prox_seconds, OKABE_ITO["vermillion"], "solid"),
        ("prox of g, k = p/2", prox.half_seconds, OKABE_ITO["blue"], [6, 3]),
        ("argsort", prox.sort_seconds, INK, "dashed"),
    ):
        curve = hv.Curve((prox.sizes, seconds), *axes, label=name)
        parts.append(curve.opts(color=color, line_dash=dash))
        parts.append(hv.Scatter((prox.sizes, seconds), *axes).opts(color=color, size=7))
    few, half = (", ".join(f"{r:.2g}" for r in some) for some in (prox.ratios, prox.half_ratios))
    return _overlay(parts).opts(
        title=f"Prox over sort, k = 10: {few}; k = p/2: {half}", width=620, height=300,
        logx=True, logy=True, legend_position="top_left",
        xticks=[(int(size), f"{size:,}") for size in prox.sizes],
    )  # fmt: skip


# Certificates


@needs_result
def cases_table(cases: dict[str, Case]) -> Html:
    """Certified problems: optimum, root bound, nodes, and what the checker says."""
    rows = []
    for name, case in cases.items():
        known, found, v = case.known, case.result, case.verification
        color, sign = VERDICTS["holds" if found.certified else "fails"]
        gap = f'<span style="color:{color}">{sign} {100 * found.gap:.2g} %</span>'
        support = ", ".join(map(str, found.support))
        if found.box_active:
            support += f" ({len(found.box_active)} at the box)"
        check = known.check
        if not known.nodes:
            check = "this proof" if found.certified else "no proof in these nodes"
        if case.brute is not None:
            check = f"brute force {case.brute:.6f}"
        elif known.nodes and same_support(case) is False:
            check += ": other features"
        rows.append([
            html.escape(name), f"{known.k}, {known.lambda2:g}, {known.M:g}", f"{found.upper:.6f}",
            f"{case.root.lower:.4f} ({100 * case.root_gap:.2g} %)",
            f"{found.nodes} ({known.nodes or '–'})", f"{found.cpu_seconds:.2f} s", gap,
            f"{'✓' if v.valid else '✗'} {100 * v.gap:.2g} %, {case.nbytes / 1000:.0f} kB, "
            f"{1000 * v.seconds:.0f} ms", support, html.escape(check),
        ])  # fmt: skip
    header = ["problem", "k, λ₂, M", "best value", "root bound (gap)", "nodes (prototype)", "CPU",
              "gap", "verified", "features", "known by"]  # fmt: skip
    return table_html(header, rows, caption="Branch and bound to a gap of 0.01 %")


@needs_result
def heuristics_table(found: Heuristics) -> Html:
    """How often each heuristic misses the optimum on small random problems, and by how much."""
    rows = [[
        "<b>branch and bound</b>", f"{(found.upper > found.brute * (1 + 1e-9)).sum()}",
        f"{100 * np.abs(found.upper / found.brute - 1).max():.1e} %", "yes",
    ]]  # fmt: skip
    for name, values in found.values.items():
        excess = values / found.brute - 1
        missed = excess > 1e-9
        rows.append([name, f"{missed.sum()}", f"{100 * max(excess.max(), 0):.3g} %", "no"])
    header = ["method", f"missed, of {len(found.brute)}", "worst excess", "knows it"]
    return table_html(header, rows, caption="Against brute force, all refitted in the same box")


SWEEP_LABELS = {"k": "k", "lambda2": "λ₂", "M": "M"}


@needs_result
def sweep_charts(sweep: Sweep) -> hv.Layout:
    """Root gap and nodes over k, lambda2 and M on breast cancer."""
    made = []
    for name, points in sweep.items():
        if not points:
            continue
        x = [p.at for p in points]
        label = SWEEP_LABELS[name]
        gaps = _marked(x, [100 * p.root_gap for p in points], label, "root gap [%]")
        nodes = _marked(x, [p.nodes for p in points], label, "nodes")
        logged = {"logx": name == "lambda2", "width": 300, "height": 220, "shared_axes": False}
        made += [gaps.opts(title=f"Root gap over {label}", **logged),
                 nodes.opts(title=f"Nodes over {label}", **logged)]  # fmt: skip
    order = made[::2] + made[1::2]
    return hv.Layout(order).opts(shared_axes=False, toolbar=None).cols(max(1, len(made) // 2))


def _marked(x: list[float], y: list[float], label: str, name: str) -> hv.Overlay:
    ticks = [(at, f"{at:g}") for at in x]
    line = hv.Curve((x, y), label, name).opts(color=OKABE_ITO["blue"], xticks=ticks)
    dots = hv.Scatter((x, y), label, name).opts(color=OKABE_ITO["blue"], size=7)
    return _overlay([line, dots])


@needs_result
def sweep_table(sweep: Sweep) -> Html:
    """The numbers of the sweeps."""
    rows = [
        [SWEEP_LABELS[name], f"{p.at:g}", f"{p.upper:.4f}", f"{100 * p.root_gap:.2f} %",
         f"{p.nodes}", f"{100 * p.gap:.2g} %"]
        for name, points in sweep.items() for p in points
    ]  # fmt: skip
    header = ["varied", "value", "best value", "root gap", "nodes", "gap left"]
    return table_html(header, rows, caption="Breast cancer, the others at k = 5, λ₂ = 2, M = 1")


def _column(*parts: Any) -> pn.Column:
    return pn.Column(*(pn.pane.HTML(part) if isinstance(part, str) else part for part in parts))


VIEWS = {
    "Claims": lambda s: pn.pane.HTML(s.claims._repr_html_()),
    "Your problem": lambda s: _column(
        main_table(s.main), squeeze_chart(s.main), tree_chart(s.main), coefficients(s.main)
    ),
    "Race": lambda s: _column(
        race_charts(s.race), race_table(s.race), scaling_chart(s.race), gaps_table(s.race)
    ),
    "Prox": lambda s: _column(prox_chart(s.prox)),
    "Certificates": lambda s: _column(cases_table(s.cases)),
    "Heuristics": lambda s: _column(heuristics_table(s.heuristics)),
    "Sweeps": lambda s: _column(sweep_charts(s.sweep), sweep_table(s.sweep)),
}


def results_of(finished: study.SparseStudy) -> dict[str, Any]:
    """Title -> picture of everything that the study measured."""
    return {title: view(finished) for title, view in VIEWS.items()}


def monitor(partial: study.SparseStudy) -> Any:
    """What is known while the study runs: the newest table or picture."""
    if partial.sweep:
        return pn.pane.HTML(sweep_table(partial.sweep))
    if isinstance(partial.cases, dict) and partial.cases:
        return pn.pane.HTML(cases_table(partial.cases))
    if isinstance(partial.race, list) and partial.race:
        return pn.pane.HTML(race_table(partial.race))
    if isinstance(partial.main, Main):
        return pn.pane.HTML(main_table(partial.main))
    return pn.Spacer()


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: a search to watch, benches, and the study behind its Run button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: the tree of a search, colored by lower bound (PNG, 800 x 272)."""
    from workbench.steps import run
    from workbench.widgets import images

    p = study.Parameters(k=5, lambda2=2.0, M=1.0)
    search: Search = p.search(p.problem())
    run(search.steps())
    tree = drawings.tree_of(search)
    sheet = np.full((272, 800), np.nan)
    x = 20 + np.arange(len(tree)) * 760 / (len(tree) - 1)
    y = 18 + tree.depth * 236 / tree.depth.max()
    for k in range(1, len(tree)):
        up = int(tree.parent[k])
        share = np.linspace(0, 1, 400)
        rows = np.round(y[up] + share * (y[k] - y[up])).astype(int)
        columns = np.round(x[up] + share * (x[k] - x[up])).astype(int)
        sheet[rows, columns] = tree.value[up]
    grid_y, grid_x = np.mgrid[:272, :800]
    for k in range(len(tree)):
        sheet[(grid_x - x[k]) ** 2 + (grid_y - y[k]) ** 2 < 14] = tree.value[k]
    low, high = float(tree.value.min()), float(search.upper)
    indices, palette = images.field_image(sheet, low, high, scale=1)
    return images.png(indices, [*palette[:-1], "#FFFFFF"])
