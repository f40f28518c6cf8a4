"""Pictures of the study, each a pure function of results, and the explorer.

Charts are HoloViews elements; what follows a slider is in `drawings.py`, the live part in
`live.py`. Nothing is computed here beyond what a picture needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import INK, MUTED, NOT_RUN, OKABE_ITO, Html, needs_result, table_html
from workbench.widgets.svg import Scale, number

from . import drawings, live, study
from .bonuses import BOUNDS, NO_TABLE, Sizes, regret_bound
from .drawings import DASHED, DOTTED, STYLES
from .experiments import Bandits, Comparison, Scan, Switches

# Of the experiments in a study, as they run.
ORDER = (
    "main", "short", "bandits", "taller", "baselines", "river", "switches", "scan", "long",
    "long_taller", "long_river", "grid",
)  # fmt: skip


def _curve(
    x: np.ndarray, y: np.ndarray, axes: tuple[str, str], name: str, color: str, dash: str
) -> hv.Curve:
    return hv.Curve((x, y), *axes, label=name).opts(color=color, line_dash=dash or "solid")


def regret_chart(
    comparison: Comparison,
    kind: str = "pseudo",
    x_log: bool = False,
    y_log: bool = False,
    legend: bool = True,
) -> hv.Overlay:
    """Summed regret, mean and 95 % band over runs, with H K and the order of the lower bound."""
    axes, sizes = ("episode", f"{kind} regret, summed"), comparison.sizes
    curves, bands, top = [], [], 1.0
    for algorithm in comparison.algorithms:
        episodes, found = comparison.curve(algorithm, kind)
        if not len(episodes):
            continue
        mean = found.mean(0)
        top = max(top, float(mean[-1]))
        color, dash = STYLES[algorithm]
        positive = np.maximum(mean, 1e-3) if y_log else mean
        curves.append(_curve(episodes, positive, axes, algorithm, color, dash))
        if len(found) > 1:
            half = 1.96 * found.std(0, ddof=1) / np.sqrt(len(found))
            low = np.maximum(mean - half, 1e-3 if y_log else 0)
            band = hv.Area((episodes, low, mean + half), axes[0], [axes[1], "upper"])
            bands.append(band.opts(color=color, alpha=0.15, line_width=0))
    K = np.unique(np.geomspace(1, sizes.K, 100).round())
    references = [
        _curve(K, sizes.H * K, axes, "H K", INK, DOTTED),
        _curve(K, sizes.H * np.sqrt(sizes.S * sizes.A * K), axes, "√(HSAT)", INK, DASHED),
    ]
    lines = [line.opts(line_width=1) for line in references]
    return hv.Overlay([*bands, *curves, *lines]).opts(
        title=comparison.name, width=540 if legend else 400, height=330, logx=x_log, logy=y_log,
        xlim=(1, sizes.K), ylim=(0.5, 2 * sizes.trivial) if y_log else (0, 1.1 * top),
        legend_position="right", show_legend=legend,
        **{} if x_log else {"xformatter": "%d"}, **{} if y_log else {"yformatter": "%d"},
    )  # fmt: skip


@needs_result
def regret_pair(comparison: Comparison, kind: str = "pseudo") -> hv.Layout:
    """The same curves on linear and on logarithmic axes."""
    linear = regret_chart(comparison, kind, legend=False)
    both = linear + regret_chart(comparison, kind, x_log=True, y_log=True)
    return both.opts(shared_axes=False, toolbar=None)


@needs_result
def regret_table(comparison: Comparison) -> Html:
    """Pseudo and realised regret, its spread over runs, how the last policy does, and what it was.

    "same action" is the share of steps with the most frequent action, a mean over runs.
    """
    rows = []
    for a in comparison.algorithms:
        runs = list(comparison.ended(a).values())
        if not runs:
            continue
        pseudo, realized = comparison.final(a), comparison.final(a, "realised")
        error = pseudo.std(ddof=1) / np.sqrt(len(pseudo)) if len(pseudo) > 1 else np.nan
        spread = "" if np.isnan(error) else f" ± {error:,.0f}"
        lost = np.mean([run.gap for run in runs])
        violated = drawings.share_text(max(float(run.violated.max()) for run in runs))
        rows.append([
            a, f"<b>{pseudo.mean():,.0f}</b>{spread}",
            f"{pseudo.min():,.0f} to {pseudo.max():,.0f}",
            f"{realized.mean():,.0f}", f"{lost:.3f}", "–" if a in NO_TABLE else violated,
            f"{100 * np.mean([run.most_taken for run in runs]):.0f} %",
            f"{np.mean([run.seconds for run in runs]):.2f}",
        ])  # fmt: skip
    header = [
        "algorithm", "pseudo-regret, mean ± error", "over runs", "realised", "of the last episode",
        "largest share V < V*", "same action", "processor seconds",
    ]  # fmt: skip
    return table_html(header, rows, comparison.name)


def against_baselines(finished: study.UCBVIStudy) -> Html:
    """Saturated tables against random play, and BF-I against the practitioner's bonus, in words."""
    main, ours, kind = finished.main, finished.baselines, finished.parameters.regret
    if not main or not ours:
        return NOT_RUN
    found = []
    for a, b, words in (
        ("CH", "random policy", "{:.2f} times the regret of the random policy"),
        ("MVP", "random policy", "{:.2f} times the regret of the random policy"),
        ("BF-I", "practitioner", "{:.0f} times the regret of the practitioner's bonus"),
    ):
        if a in main.runs and main.mean(a, kind) >= 0 and ours.mean(b, kind) > 0:
            ratio = main.mean(a, kind) / ours.mean(b, kind)
            found.append(f"{a} has {words.format(ratio)}.")
    return Html(f"<p>{' '.join(found)}</p>") if found else NOT_RUN


@needs_result
def ratio_chart(comparison: Comparison) -> Any:
    """Regret of the improved over the original version on each MDP, one dot an MDP."""
    pairs = [("BF-I", "BF"), ("CH-I", "CH"), ("BF", "MVP")]
    rows = [
        (f"{a} / {b}", ratio)
        for a, b in pairs
        if a in comparison.runs and b in comparison.runs
        for ratio in comparison.ratio(a, b)
        if np.isfinite(ratio)
    ]
    if not rows:
        return NOT_RUN
    dots = hv.Scatter(rows, "pair", "ratio of regret").opts(
        color=OKABE_ITO["blue"], size=8, jitter=0.25, alpha=0.8
    )
    top = max(1.1, 1.1 * max(ratio for _, ratio in rows))
    return (dots * hv.HLine(1.0)).opts(
        title="On each MDP", width=380, height=300, ylim=(0, top),
    )  # fmt: skip


@needs_result
def scan_pair(scan: Scan) -> hv.Layout:
    """Regret and broken optimism against the multiplier of the bonus, on one axis."""
    positive = scan.scales[scan.scales > 0]
    zero = float(positive.min()) / 3
    x = np.where(scan.scales > 0, scan.scales, zero)
    order = np.argsort(x)
    regret, share = [], []
    for a in scan.regret:
        color, dash = STYLES[a]
        axes = ("multiplier of the bonus", "median regret")
        regret.append(_curve(x[order], scan.median(a)[order], axes, a, color, dash))
        axes = (axes[0], "share of (h, s) with V < V*")
        share.append(_curve(x[order], scan.share(a)[order], axes, a, color, dash))
    ticks = [(zero, "0")] + [(float(s), f"{s:g}") for s in positive[np.argsort(positive)]]
    common = {
        "logx": True, "xticks": ticks, "xlim": (zero / 1.3, 1.3 * x.max()), "height": 310,
        "xrotation": 40,
    }  # fmt: skip
    return (
        hv.Overlay(regret).opts(
            title=f"Regret after {scan.K:,} episodes", logy=True, show_legend=False, width=420,
            **common,
        )
        + hv.Overlay(share).opts(
            title="Optimism broken in the end", ylim=(-0.02, 1), legend_position="right", width=500,
            **common,
        )
    ).opts(toolbar=None)  # fmt: skip


@needs_result
def microscope(comparison: Comparison, algorithm: str = "BF-I", stage: int = 1) -> Html:
    """The first run of an algorithm early, halfway (on a log axis) and late, at the start state."""
    run = comparison.runs.get(algorithm, [None])[0]
    if run is None or run.snapshots is None:
        return NOT_RUN
    m = len(run.snapshots.episodes)
    looks = [drawings.microscope(run, at, stage, run.start) for at in (m // 3, 2 * m // 3, m - 1)]
    return Html("<br>".join(looks))


@needs_result
def visits(comparison: Comparison) -> Html:
    """Share of visits of each pair in the first run of every algorithm."""
    return drawings.visits_drawing([comparison.runs[a][0] for a in comparison.algorithms])


@needs_result
def bandit_chart(bandits: Bandits) -> hv.Overlay:
    """Regret of both indices, mean and 95 % band over sets of arms."""
    axes = ("round", "pseudo-regret, summed")
    curves, bands = [], []
    fewest = min(A for A, _ in bandits.curves)
    for (A, index), found in bandits.curves.items():
        mean = found.mean(0)
        color = OKABE_ITO["blue" if fewest == A else "vermillion"]
        dash = "" if index == "published" else DASHED
        curves.append(_curve(bandits.rounds, mean, axes, f"{A} arms, {index}", color, dash))
        if len(found) > 1:
            half = 1.96 * found.std(0, ddof=1) / np.sqrt(len(found))
            band = hv.Area((bandits.rounds, mean - half, mean + half), axes[0], [axes[1], "upper"])
            bands.append(band.opts(color=color, alpha=0.15, line_width=0))
    return hv.Overlay([*bands, *curves]).opts(
        title="Two constants of UCB1", width=540, height=320, logx=True, legend_position="top_left"
    )


def bounds_chart(
    sizes: Sizes, measured: Sequence[Comparison | None] = (), kind: str = "pseudo"
) -> hv.Overlay:
    """Published bounds, H K and measured regret over the number of episodes, log-log.

    Of the measurements, those of the same S, A and H.
    """
    K, axes = np.geomspace(100, 1e12, 120), ("episodes K", "regret")
    lines = [
        _curve(K, regret_bound(a, K, sizes), axes, f"bound of {a}", *STYLES[a]).opts(line_width=3)
        for a in BOUNDS
    ]
    order = sizes.H * np.sqrt(sizes.S * sizes.A * K)
    lines += [
        _curve(K, sizes.H * K, axes, "H K, trivial", INK, DOTTED),
        _curve(K, order, axes, "√(HSAT)", INK, DASHED).opts(line_width=1),
    ]
    same = [
        c for c in measured
        if c and (c.sizes.S, c.sizes.A, c.sizes.H) == (sizes.S, sizes.A, sizes.H)
    ]  # fmt: skip
    for comparison in same:
        for a in comparison.algorithms:
            episodes, curves = comparison.curve(a, kind)
            late = episodes >= 100
            name = f"{a}, measured to {number(comparison.sizes.K)}"
            if late.any():
                lines.append(_curve(episodes[late], curves.mean(0)[late], axes, name, *STYLES[a]))
    return hv.Overlay(lines).opts(
        title=f"What is promised and what happens (S = {sizes.S}, A = {sizes.A}, H = {sizes.H})",
        width=720, height=380, logx=True, logy=True,
        legend_position="right",
    )  # fmt: skip


@needs_result
def switches_table(switches: Switches) -> Html:
    """BF-I without its last bonus, and all with the variance of the released program."""
    plain = switches.plain.mean("BF-I")
    rows = [["as published, BF-I", f"{plain:,.0f}", ""]]
    last = switches.last_step.mean("BF-I")
    rows.append(["no bonus at the last step, BF-I", f"{last:,.0f}", f"{last / plain:.2f} of it"])
    for a in switches.official.algorithms:
        rows.append([f"official variance, {a}", f"{switches.official.mean(a):,.0f}", ""])
    return table_html(["setting", "mean regret", ""], rows, f"K = {switches.plain.sizes.K:,}")


@needs_result
def long_river_table(found: dict[str, Comparison]) -> Html:
    """RiverSwim of ten states under both rules for ties, and of five with random ones."""
    rows = []
    for comparison in found.values():
        for a in comparison.algorithms:
            final = comparison.final(a)
            realized = comparison.mean(a, "realised")
            rows.append([comparison.name, a, f"{final.mean():,.0f}", f"{realized:,.0f}"])
    return table_html(["problem", "algorithm", "pseudo-regret", "realised"], rows)


@needs_result
def grid_table(grid: list[Comparison]) -> Html:
    """Mean regret for each size of the paper, and the two ratios."""
    rows = []
    for c in grid:
        s = c.sizes
        rows.append([
            str(s.S), str(s.A), str(s.H), *(f"{c.mean(a):,.0f}" for a in c.algorithms),
            f"{c.mean('BF-I') / c.mean('BF'):.2f}", f"{c.mean('BF') / c.mean('MVP'):.2f}",
        ])  # fmt: skip
    header = ["S", "A", "H", *(grid[0].algorithms if grid else ()), "BF-I / BF", "BF / MVP"]
    return table_html(header, rows, "Mean pseudo-regret")


def monitor(partial: study.UCBVIStudy) -> Any:
    """What is known while the study runs: the picture of the newest experiment."""
    newest = next((r for n in reversed(ORDER) if (r := getattr(partial, n)) is not None), None)
    if isinstance(newest, dict):
        newest = list(newest.values())
    if isinstance(newest, list):
        newest = newest[-1]
    if newest is None:
        return pn.Spacer()
    if isinstance(newest, Scan):
        return pn.pane.HTML(drawings.scan_drawing(newest))
    if isinstance(newest, Bandits):
        return pn.pane.HTML(drawings.bandit_drawing(newest))
    if isinstance(newest, Switches):
        return pn.pane.HTML(switches_table(newest))
    return pn.pane.HTML(drawings.regret_drawing(newest, partial.parameters.regret, True, True))


def _html(shown: Any) -> Any:
    return pn.pane.HTML(str(shown)) if isinstance(shown, Html) else shown


def _regret_view(finished: study.UCBVIStudy) -> Any:
    kind, parts = finished.parameters.regret, []
    for comparison in (finished.main, finished.taller, finished.baselines, finished.river):
        if comparison is not None:
            parts += [
                regret_chart(comparison, kind, True, True), _html(regret_table(comparison))
            ]  # fmt: skip
    return pn.Column(*parts, _html(regret_table(finished.short)))


def _tables_view(finished: study.UCBVIStudy) -> Any:
    runs = finished.main.runs if finished.main else {}
    shown = [a for a in ("BF-I", "MVP") if a in runs] or list(runs)[:1] or ["BF-I"]
    return pn.Column(*(_html(microscope(finished.main, a)) for a in shown))


def _extras_view(finished: study.UCBVIStudy) -> Any:
    main, measured = finished.main, [finished.main, finished.long]
    kind = finished.parameters.regret
    return pn.Column(
        _html(bounds_chart(main.sizes, measured, kind) if main else NOT_RUN),
        _html(switches_table(finished.switches)),
        _html(visits(finished.river)),
        _html(regret_table(finished.long)),
        _html(regret_table(finished.long_taller)),
        _html(long_river_table(finished.long_river)),
        _html(grid_table(finished.grid)),
    )


VIEWS = {
    "Claims": lambda finished: pn.pane.HTML(finished.claims._repr_html_()),
    "Regret": _regret_view,
    "Q-tables": _tables_view,
    "Scan": lambda finished: _html(scan_pair(finished.scan)),
    "Bandits": lambda finished: _html(bandit_chart(finished.bandits)),
    "Bounds and rivers": _extras_view,
}


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: runs, bonuses and tables to play with, and the study behind its button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: regret of the paper's five algorithms, log-log (PNG, 800 x 400)."""
    import io

    from PIL import Image, ImageDraw, ImageFont

    from workbench.steps import run

    from .experiments import compare_steps, random_mdps

    made = run(compare_steps(random_mdps(3, 0), ("CH", "CH-I", "BF", "BF-I", "MVP"), 5, 100_000))
    fine = 2  # drawn twice as large, then made smaller: smooth lines
    sheet = Image.new("RGB", (800 * fine, 400 * fine), "white")
    draw = ImageDraw.Draw(sheet)
    x = Scale(10, 100_000, 70 * fine, 680 * fine, log=True)
    y = Scale(20, 400_000, 350 * fine, 20 * fine, log=True)
    small, large = (ImageFont.load_default(size=size * fine) for size in (15, 20))
    draw.line([(x(10), y(400_000)), (x(10), y(20)), (x(100_000), y(20))], MUTED, 2 * fine)
    for value in x.ticks():
        draw.text((x(value), 364 * fine), f"{value:,.0f}", MUTED, small, anchor="mm")
    draw.text((375 * fine, 387 * fine), "episodes", MUTED, small, anchor="mm")
    draw.text((70 * fine, 12 * fine), "regret", MUTED, small, anchor="mm")
    ends = {}
    for a in made.algorithms:
        episodes, curves = made.curve(a)
        mean = np.maximum(curves.mean(0), 20)[episodes >= 10]
        points = list(zip(x(episodes[episodes >= 10]), y(mean), strict=True))
        pieces = _dashes(points, 9 * fine) if STYLES[a][1] else [points]
        for piece in pieces:
            draw.line(piece, STYLES[a][0], 4 * fine, joint="curve")
        ends[a] = float(y(mean[-1]))
    above = 400.0 * fine
    for a, at in sorted(ends.items(), key=lambda pair: -pair[1]):
        above = min(at, above - 22 * fine)  # names of neighbors do not overlap
        draw.text((692 * fine, above), a, STYLES[a][0], large, anchor="lm")
    stream = io.BytesIO()
    sheet.resize((800, 400), Image.Resampling.LANCZOS).save(stream, format="png", optimize=True)
    return stream.getvalue()


def _dashes(points: list[tuple[float, float]], length: float) -> list[list[tuple[float, float]]]:
    """Every other stretch of about `length` pixels of a line."""
    ways = np.cumsum([0.0, *np.hypot(*np.diff(points, axis=0).T)])
    finer = np.arange(0, ways[-1], length / 4)
    line = [(float(np.interp(w, ways, [p[0] for p in points])),
             float(np.interp(w, ways, [p[1] for p in points]))) for w in finer]  # fmt: skip
    return [line[k : k + 5] for k in range(0, len(line) - 5, 8)]
