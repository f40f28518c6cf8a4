"""Pictures of the study of R1-VI, each a pure function of results, and the explorer.

Charts are HoloViews elements. Nothing is computed here beyond what a picture needs. Live pictures,
drawn at the speed of a slider, are in `charts.py` and `live.py`; styles are common to both.
"""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import FIELD_MAP, INK, MUTED, OKABE_ITO, Html, needs_result, table_html

from . import charts, live, study
from .charts import AXES, STYLES
from .experiments import Case, Comparison, Facts, Sweep
from .learning import Learning, coinciding
from .planning import gain_matrices
from .speed import NOT_TIMED, Peer

COSTLY = ("MPI-20", "PI")  # an iteration costs many of the others


def _curve(x: Any, y: Any, axes: tuple[str, str], name: str, **options: Any) -> hv.Curve:
    color, dash = STYLES.get(name, (MUTED, ""))
    look = {"color": color, "line_dash": [int(n) for n in dash.split()] or "solid"}
    return hv.Curve((x, y), *axes, label=name).opts(**(look | options))


def _overlay(parts: list[hv.Element]) -> hv.Overlay:
    return hv.Overlay(parts).opts(shared_axes=False)  # charts of one page are about other things


@needs_result
def error_chart(made: Comparison, axis: str = "iterations") -> hv.Overlay:
    """Distance from v* of every planner over iterations, Bellman evaluations or CPU time."""
    axes = (AXES[axis], "max |v − v*|")
    curves, longest, first = [], 2, 1.0
    for name, plan in made.plans.items():
        x, y = charts.against(plan, axis), plan.errors
        kept = (
            np.unique(np.geomspace(1, len(y) - 1, 300).round().astype(int)) if len(y) > 2 else [1]
        )
        longest, first = max(longest, len(y) - 1), max(first, float(y[0]))
        wide = 3 if name == "R1-VI" else 2
        curves.append(_curve(x[kept], np.maximum(y[kept], 1e-14), axes, name, line_width=wide))
    if axis == "iterations":
        k = np.geomspace(1, longest, 100)
        for name, rate, color in (
            ("slope γᵏ", made.solved.gamma, MUTED),
            ("slope (γ|λ₂|)ᵏ", made.solved.rate, OKABE_ITO["vermillion"]),
        ):
            slope = first * rate**k
            shown = slope > 1e-12
            line = {"color": color, "line_dash": "dotted", "line_width": 1.5}
            curves.append(_curve(k[shown], slope[shown], axes, name, **line))
    return _overlay(curves).opts(
        title="Distance from the optimal value", width=640, height=360, logx=True, logy=True,
        legend_position="right",
    )  # fmt: skip


@needs_result
def error_charts(made: Comparison) -> hv.Layout:
    """Error curves over Bellman evaluations and over CPU time."""
    pair = [
        error_chart(made, axis).opts(width=430, height=300, show_legend=False, title=title)
        for axis, title in (("operators", "What it costs"), ("seconds", "On this machine"))
    ]
    return hv.Layout(pair).opts(shared_axes=False, toolbar=None)


@needs_result
def bracket_chart(made: Comparison, state: int = 0) -> hv.Overlay:
    """MacQueen's bracket of one state, and the values that planners report for it."""
    axes = ("iteration k", f"value of state {state}")
    low, high = made.low[:, state], made.high[:, state]
    width = high - low
    shown = max(8, int((width > 1e-3 * max(width[0], 1e-12)).sum()) + 2)
    k = np.arange(1, len(low) + 1)[:shown]
    band = hv.Area((k, low[:shown], high[:shown]), axes[0], [axes[1], "high"], label="bracket")
    parts = [band.opts(color=OKABE_ITO["green"], alpha=0.25, line_width=0)]
    for name in ("VI", "midpoint", "R1-VI"):
        plan = made.plans.get(name)
        if plan is not None and plan.values is not None:
            values = plan.values[1 : shown + 1, state]
            parts.append(_curve(np.arange(1, len(values) + 1), values, axes, name))
    optimum = float(made.solved.optimum[state])
    below, above = (float(np.max(s[2:], initial=1e-9)) for s in (optimum - low, high - optimum))
    least = 0.1 * max(below, above)
    limits = (optimum - 1.6 * max(below, least), optimum + 1.6 * max(above, least))
    return _overlay([*parts, hv.HLine(optimum)]).opts(
        title="MacQueen's bracket; dashed: v*", width=520, height=320, ylim=limits,
        legend_position="right",
    )  # fmt: skip


@needs_result
def spectrum_chart(made: Comparison) -> hv.Overlay:
    """Eigenvalues of gamma P of the optimal policy, and of the error matrix of R1-VI."""
    axes, solved = ("real part", "imaginary part"), made.solved
    chain = solved.gamma * solved.eigenvalues
    kept = solved.error_eigenvalues(charts.last_d(made))
    turn = np.linspace(0, 2 * np.pi, 90)
    circles = [
        hv.Curve((radius * np.cos(turn), radius * np.sin(turn)), *axes).opts(
            color=color, line_dash=dash, line_width=1.2
        )
        for radius, color, dash in (
            (1.0, MUTED, "dotted"), (solved.rate, OKABE_ITO["vermillion"], "dashed"),
        )
    ]  # fmt: skip
    jump = hv.Curve([(solved.gamma, 0), (0, 0)], *axes).opts(
        color=OKABE_ITO["vermillion"], line_dash="dotted", line_width=1.5
    )
    plain = hv.Points((chain.real, chain.imag), list(axes), label="γP: value iteration").opts(
        fill_color=None, line_color=INK, size=9, line_width=1.5
    )
    fast = hv.Points((kept.real, kept.imag), list(axes), label=charts.dots_of(solved)).opts(
        color=OKABE_ITO["vermillion"], size=4
    )
    return _overlay([*circles, jump, plain, fast]).opts(
        title=f"Spectrum; dashed: modulus γ|λ₂| = {solved.rate:.4g}", width=440, height=400,
        xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), legend_position="bottom_left",
    )  # fmt: skip


def spectrum_at(made: Comparison, teleport: float) -> hv.Overlay:
    """The spectrum if the next state is drawn uniformly with probability `teleport`, for a toy."""
    moved = made.solved.eigenvalues.copy()
    moved[1:] *= 1 - teleport
    solved = replace(made.solved)
    # Where the cached properties look.
    solved.__dict__["eigenvalues"] = moved
    solved.__dict__["chain"] = (1 - teleport) * made.solved.chain + teleport / solved.mdp.n
    return spectrum_chart(replace(made, solved=solved))


@needs_result
def gain_maps(made: Comparison) -> Any:
    """Gain matrices of VI, R1-VI and PI as heat maps with one color scale (at most 60 states)."""
    solved, n = made.solved, made.solved.mdp.n
    if n > charts.LARGEST_GAIN:
        return Html(f"<p><em>Gain matrices are drawn for at most 60 states; here are {n}.</em></p>")
    matrices = gain_matrices(solved.chain, charts.last_d(made), solved.gamma)
    top = float(max(matrix.max() for matrix in matrices.values()))
    titles = {"VI": "VI: I", "R1-VI": "R1-VI: I + γ/(1−γ) 1dᵀ", "PI": "PI: (I − γP)⁻¹"}
    maps = [
        hv.Image(matrix[::-1], ["to state", "from state"], "gain", bounds=(0, 0, n, n)).opts(
            title=titles[name], cmap=FIELD_MAP, clim=(0, top), width=285 if name != "PI" else 345,
            height=275, colorbar=name == "PI", invert_yaxis=True, shared_axes=False,
        )
        for name, matrix in matrices.items()
    ]  # fmt: skip
    return hv.Layout(maps).opts(shared_axes=False, toolbar=None).cols(3)


@needs_result
def policy_chart(made: Comparison, iterations: int = 40) -> hv.Overlay:
    """States whose greedy action is not optimal, by iteration: VI and R1-VI coincide."""
    axes = ("iteration k", "states with a wrong action")
    curves = []
    for name in sorted(made.plans, key=lambda name: name != "VI"):
        wrong = made.plans[name].wrong[:iterations]
        wide = {"line_width": 7, "color": "#B8C0CA"} if name == "VI" else {}
        curves.append(_curve(np.arange(len(wrong)), wrong, axes, name, **wide))
    return _overlay(curves).opts(
        title="Wrong greedy actions", width=520, height=300, legend_position="right"
    )


@needs_result
def distribution_chart(made: Comparison, at: int = 3) -> Any:
    """The distribution d of one iteration against the stationary one, and their distance."""
    plan, solved = made.plans.get("R1-VI"), made.solved
    if plan is None or plan.d is None or len(plan.d) < 2:
        return Html("<p><em>R1-VI is not among the methods, so there is no d.</em></p>")
    at = int(np.clip(at, 1, len(plan.d) - 1))
    order = np.argsort(-solved.stationary, kind="stable")[:60]
    x = np.arange(len(order))
    axes = ("state, most visited first", "probability")
    bars = hv.Bars((x, plan.d[at][order]), *axes, label=f"d of iteration {at}").opts(
        color=OKABE_ITO["sky"], line_color=None, xaxis="bare"
    )
    crosses = hv.Scatter((x, solved.stationary[order]), *axes, label="stationary").opts(
        marker="x", color=INK, size=6
    )
    far = np.maximum(charts.distances(made), 1e-16)
    distance = _curve(
        np.arange(1, len(far) + 1), far, ("iteration k", "total variation"), "R1-VI"
    ).opts(
        logy=True, title="Distance of d from stationary", shared_axes=False, width=380, height=300
    )
    left = _overlay([bars, crosses]).opts(
        title="d against the stationary distribution", width=520, height=300,
        legend_position="top_right",
    )  # fmt: skip
    return hv.Layout([left, distance]).opts(shared_axes=False, toolbar=None)


@needs_result
def grid_view(made: Comparison, at: int = 20) -> Html:
    """Values and greedy arrows of VI and R1-VI over the cells of a grid world."""
    return charts.grid(made, at)


@needs_result
def learning_chart(found: dict[str, Learning], subtract: bool = False, title: str = "") -> Any:
    """Errors of the learners, median and 10 to 90 % over seeds, or errors up to a constant."""
    what = "half the span of q − q*" if subtract else "max |q − q*|"
    axes = ("steps", what)
    bands, curves = [], []
    for name, learned in found.items():
        rows = learned.spread if subtract else learned.errors
        if len(rows) > 2:
            low, high = np.maximum(np.quantile(rows, [0.1, 0.9], axis=0), 1e-14)
            outline = np.r_[learned.steps, learned.steps[::-1]], np.r_[low, high[::-1]]
            bands.append({**dict(zip(axes, outline, strict=True)), "color": STYLES[name][0]})
        wide = 6 if subtract and name == coinciding(found) else 2
        median = np.median(rows, axis=0)
        curves.append(_curve(learned.steps, median, axes, name, line_width=wide))
    # One element for all bands: each costs as much as a small chart.
    areas = hv.Polygons(bands, list(axes), "color").opts(
        color="color", alpha=0.13, line_alpha=0, tools=[]
    )
    return _overlay([areas, *curves]).opts(
        title=title or what, width=470, height=340, logx=True, logy=True,
        legend_position="bottom_left", legend_opts={"background_fill_alpha": 0.5},
    )  # fmt: skip


@needs_result
def learning_charts(runs: dict[tuple[str, float], dict[str, Learning]]) -> hv.Layout:
    """Learning curves of every problem and discount, beside the same up to a constant."""
    made = [
        learning_chart(found, subtract, f"{name}, γ = {gamma:g}{tail}")
        for (name, gamma), found in runs.items()
        for subtract, tail in ((False, ""), (True, ", best constant subtracted"))
    ]
    return hv.Layout(made).opts(shared_axes=False, toolbar=None).cols(2)


@needs_result
def learning_table(runs: dict[tuple[str, float], dict[str, Learning]]) -> Html:
    """Errors of the learners after the last step, median (10 to 90 %), and time per step."""
    rows = []
    for (name, gamma), found in runs.items():
        for method, learned in found.items():
            low, middle, high = np.quantile(learned.errors[:, -1], [0.1, 0.5, 0.9])
            each = 1e6 * np.median(learned.seconds) / learned.steps[-1]
            rows.append([
                name, f"{gamma:g}", method, f"{middle:.3g} ({low:.3g} to {high:.3g})",
                f"{np.median(learned.wrong[:, -1]):.0f}", f"{each:.1f} µs",
            ])  # fmt: skip
    header = ["problem", "γ", "method", "max |q − q*|", "wrong actions", "time a step"]
    return table_html(header, rows, caption="Medians over seeds (10 to 90 %), after the last step")


@needs_result
def sweep_table(sweep: Sweep) -> Html:
    """Iterations to the tolerance on Garnets, median (least to greatest) over MDPs."""
    names = list(next(iter(sweep.iterations.values())))
    names += [n for found in sweep.iterations.values() for n in found if n not in names]
    rows = []
    for name in dict.fromkeys(names):
        cells = []
        for gamma, found in sweep.iterations.items():
            if name not in found:
                cells.append("–")
            elif not np.isfinite(counts := found[name]).all():
                cells.append("not reached")
            else:
                sign = "≈ " if (gamma, name) in sweep.extrapolated else ""
                text = f"{np.median(counts):,.0f} ({counts.min():,.0f} to {counts.max():,.0f})"
                cells.append(sign + text)
        rows.append([name, *cells])
    header = ["planner", *(f"γ = {gamma:g}" for gamma in sweep.iterations)]
    caption = "≈: not run to the end, extrapolated by the contraction with γ; –: not run"
    return table_html(header, rows, caption=caption)


@needs_result
def sweep_chart(sweep: Sweep) -> hv.Overlay:
    """Median iterations against the effective horizon 1/(1 - gamma), a line a planner."""
    axes = ("horizon 1/(1 − γ)", "iterations")
    points: dict[str, list[tuple[float, float]]] = {}
    for gamma, found in sweep.iterations.items():
        for name, counts in found.items():
            if np.isfinite(counts).all():
                points.setdefault(name, []).append((1 / (1 - gamma), float(np.median(counts))))
    curves = [_curve(*np.array(found).T, axes, name) for name, found in points.items()]
    # One element for all dots: each costs as much as a small chart.
    rows = [(*point, STYLES[name][0]) for name, found in points.items() for point in found]
    curves.append(hv.Scatter(rows, axes[0], [axes[1], "color"]).opts(color="color", size=6))
    ticks = [(1 / (1 - gamma), f"{1 / (1 - gamma):.4g}") for gamma in sweep.iterations]
    return _overlay(curves).opts(
        title="Iterations against the horizon", width=480, height=320, logx=True, logy=True,
        legend_position="right", xticks=ticks,
    )  # fmt: skip


@needs_result
def rate_chart(sweep: Sweep) -> hv.Overlay:
    """The fitted local rate of R1-VI against gamma |lambda_2|, by successors of the Garnet."""
    axes = ("successors b", "rate of the error")
    predicted = hv.Curve((sweep.branching, sweep.predicted), *axes, label="γ|λ₂|").opts(
        color=INK, line_dash="dashed"
    )
    fitted = hv.Scatter((sweep.branching, sweep.fitted), *axes, label="fitted").opts(
        color=OKABE_ITO["vermillion"], size=9
    )
    return _overlay([predicted, fitted]).opts(
        title="Local rate", width=400, height=320, logx=True, ylim=(0, 1),
        legend_position="top_right", xticks=sweep.branching.tolist(),
    )  # fmt: skip


@needs_result
def sweep_charts(sweep: Sweep) -> hv.Layout:
    """Iterations against the horizon, and the local rate."""
    return (sweep_chart(sweep) + rate_chart(sweep)).opts(shared_axes=False, toolbar=None)


@needs_result
def case_table(cases: dict[str, Case]) -> Html:
    """Iterations to the tolerance on tables, networks and failure modes, with |lambda_2|."""
    names = list(next(iter(cases.values())).iterations)
    rows = []
    for case in cases.values():
        best = np.nanmin([case.iterations[n] for n in names if n not in COSTLY])
        cells = []
        for name in names:
            count = case.iterations[name]
            text = f"{count:,.0f}" if np.isfinite(count) else "not reached"
            cells.append(f"<b>{text}</b>" if count == best and name not in COSTLY else text)
        rows.append([html.escape(case.title), f"{case.gamma:g}", f"{case.second:.4f}", *cells])
    header = ["problem", "γ", "|λ₂|", *names]
    caption = "Iterations; bold: the fewest, MPI-20 and PI aside, whose iterations cost more"
    return table_html(header, rows, caption=caption)


@needs_result
def facts_table(facts: Facts) -> Html:
    """Facts A to F on random MDPs: the worst of what was measured."""
    n = len(facts.span)
    rows = [
        ["A", "spread of R1-VI minus VI, any d", f"{facts.span.max():.1e}", "0 but for rounding"],
        ["B", "values outside MacQueen's bracket", f"{facts.outside.sum():.0f}", "0"],
        ["C", "errors above their bound", f"{facts.above.sum():.0f}", "0"],
        ["D", "coefficients of R1-VI's spectrum minus the deflated ones, any d",
         f"{facts.deflation.max():.1e}", "0 but for rounding"],
        ["E", "error after one step from v = 0, constant rewards", f"{facts.one_step.max():.1e}",
         "0 but for rounding"],
        ["E", "error after two steps, equal rows", f"{facts.two_step.max():.1e}",
         "0 but for rounding"],
        ["F", "spread of R1-QL minus QL", f"{facts.shift.max():.1e}", "0 but for rounding"],
    ]  # fmt: skip
    caption = f"Worst of {n} random MDPs; spreads and errors relative to the value"
    return table_html(["fact", "quantity", "measured", "must be"], rows, caption=caption)


def peers_table(peers: list[Peer]) -> Html:
    """R1-VI and solvers of other libraries on one MDP: time, iterations, true error, policy."""
    rows = []
    for peer in peers:
        if peer.seconds is None:
            rows.append([peer.library, peer.algorithm, "–", "–", "–", "–"])
            continue
        wrong = peer.error > 1e-3
        error = f"{peer.error:.2g}"
        rows.append([
            peer.library, html.escape(peer.algorithm), f"{1e3 * peer.seconds:.2f} ms",
            "–" if peer.iterations is None else f"{peer.iterations:,}",
            f'<b style="color:{OKABE_ITO["vermillion"]}">✗ {error}</b>' if wrong else error,
            f"{100 * peer.right:.0f} %",
        ])  # fmt: skip
    header = ["library", "algorithm", "time", "iterations", "max |V − v*|", "right actions"]
    table = table_html(header, rows, caption="One core, median of rounds in turns")
    return Html(f'{table}<p style="font-size:13px;color:{MUTED}">{NOT_TIMED}</p>')


def monitor(partial: study.RankOneStudy) -> Any:
    """What is known while the study runs: the newest of learning, families and curves."""
    if partial.learning:
        (name, gamma), found = list(partial.learning.items())[-1]
        return learning_chart(found, title=f"{name}, γ = {gamma:g}")
    if partial.cases:
        return pn.pane.HTML(case_table(partial.cases))
    if partial.comparison and any(len(p.errors) > 2 for p in partial.comparison.plans.values()):
        return error_chart(partial.comparison)
    return pn.Spacer()


def results_of(finished: study.RankOneStudy) -> dict[str, Any]:
    """Title -> picture of everything that the study measured."""
    return {title: view(finished) for title, view in VIEWS.items()}


def _column(*views: Any) -> pn.Column:
    return pn.Column(*(pn.pane.HTML(view) if isinstance(view, str) else view for view in views))


VIEWS = {
    "Claims": lambda s: pn.pane.HTML(s.claims._repr_html_()),
    "Curves": lambda s: _column(error_chart(s.comparison), error_charts(s.comparison)),
    "Bracket and policies": lambda s: _column(
        bracket_chart(s.comparison), policy_chart(s.comparison), distribution_chart(s.comparison)
    ),
    "Spectrum and gains": lambda s: _column(spectrum_chart(s.comparison), gain_maps(s.comparison)),
    "Facts": lambda s: _column(facts_table(s.facts)),
    "Sweep": lambda s: _column(sweep_charts(s.sweep), sweep_table(s.sweep)),
    "Families": lambda s: _column(case_table(s.cases)),
    "Learning": lambda s: _column(learning_charts(s.learning), learning_table(s.learning)),
}


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: planners and learners to play with, and the study behind its Run button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: the gains of VI, R1-VI and PI on a Garnet (PNG, 800 x 272)."""
    from workbench.numerics import mdp as tables
    from workbench.widgets import images

    from .experiments import solve

    solved = solve(tables.garnet(34, 4, 3, 2), 0.95)
    tiles = list(gain_matrices(solved.chain, solved.stationary, solved.gamma).values())
    top = 0.8 * max(tile.max() for tile in tiles)
    sheet = np.full((272, 800), np.nan)
    for number, tile in enumerate(tiles):
        big = np.kron(tile, np.ones((7, 7)))  # 34 states: 238 pixels
        left = 17 + number * 264
        sheet[17 : 17 + len(big), left : left + len(big)] = big
    indices, palette = images.field_image(sheet, 0, top, scale=1)
    return images.png(indices, [*palette[:-1], "#FFFFFF"])
