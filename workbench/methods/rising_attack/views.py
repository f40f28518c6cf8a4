"""Pictures of RisingAttacK's study, each a pure function of results, and the explorer.

Charts are HoloViews elements, pictures of attacks the stills of `PerturbationView`. Nothing is
computed here beyond what a picture needs. The attack bench and its company are in `live.py`.
"""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import holoviews as hv
import numpy as np
import panel as pn
import torch
from torch import nn

from workbench import theme
from workbench.explorer import Explorer
from workbench.steps import run
from workbench.theme import CYCLE, INK, MUTED, OKABE_ITO, Html, table_html
from workbench.widgets import images
from workbench.widgets.perturbation_view import PerturbationView, picture_png

from . import live, study
from .ablations import FULL, Ablations, Nested, Widths
from .attacks import TITLES
from .experiments import Anchor, Bench, EqualTime, TunedBench
from .jacobian import forward
from .merit import figure_of_merit, merit_text
from .mixer import spectrum_chart
from .polytope import legend_html, polytope_chart
from .ranking import achieved
from .records import AttackResult
from .sqp import RisingOptions
from .subspace import Program, linearize, plane_steps
from .trials import Subject, Trial

if TYPE_CHECKING:
    from .defense import Curve  # scipy.stats takes a second to import

COLORS = {
    "rising": OKABE_ITO["vermillion"], "quad": OKABE_ITO["blue"], "cw": OKABE_ITO["green"],
    "ad": OKABE_ITO["purple"],
}  # fmt: skip
MARKERS = {"rising": "circle", "quad": "square", "cw": "triangle", "ad": "diamond"}
NORMS = {"l1": "ℓ1", "l2": "ℓ2", "linf": "ℓ∞"}
NUMBERS = ("success", *NORMS.values(), "seconds")  # columns of a table
PERCENT = "success rate [%]"
ATTACK = RisingOptions()  # the attack as it is


def needs_result(view: Callable[..., Any]) -> Callable[..., Any]:
    """As that of all methods; a comparison without a finished length is nothing either."""
    checked = theme.needs_result(view)

    @functools.wraps(view)
    def shown(result: Any, *options: Any, **more: Any) -> Any:
        empty = isinstance(result, Bench) and not result.K
        return checked(None if empty else result, *options, **more)

    return shown


def norms_of(bench: Bench, method: str, K: int, norm: str, paired: bool = False) -> np.ndarray:
    """Norms of the successes; paired: of the images where RisingAttacK and `method` succeed."""
    result = bench.all(method, K)
    kept = result.success & bench.all("rising", K).success if paired else result.success
    return getattr(result, norm)[kept]


def _lines(
    points: dict[str, tuple[Sequence, Sequence]], x: str, y: str, legend: str = "", **options: Any
) -> hv.Overlay:
    """A line with markers for each method that has a point; legend: where it is, if anywhere.

    Without a legend all lines are one element: each element costs as much as a small chart.
    """
    points = {method: found for method, found in points.items() if len(found[0])}
    if legend:
        lines = [
            hv.Curve(found, x, y, label=TITLES[method]).opts(color=COLORS[method])
            for method, found in points.items()
        ]
    else:
        pieces = [
            (xs[k], ys[k], xs[k + 1], ys[k + 1], COLORS[method])
            for method, (xs, ys) in points.items()
            for k in range(len(xs) - 1)
        ]
        lines = [
            hv.Segments(pieces, [x, y, "next", "value"], "color").opts(
                color="color", line_width=2, show_grid=True
            )
        ]
    rows = [
        (a, b, COLORS[method], MARKERS[method])
        for method, (xs, ys) in points.items()
        for a, b in zip(xs, ys, strict=True)
    ]
    dots = hv.Scatter(rows, x, [y, "color", "marker"])
    dots = dots.opts(color="color", marker="marker", size=7)
    clear = {"background_fill_alpha": 0.4}  # lines stay visible under it
    place = {"legend_position": legend, "legend_opts": clear} if legend else {}
    return hv.Overlay([*lines, dots]).opts(width=280, height=250, padding=0.06, **place, **options)


def success_chart(bench: Bench) -> hv.Overlay:
    """Success rate of every method against K."""
    rates = {m: (bench.K, [100 * bench.all(m, K).asr for K in bench.K]) for m in TITLES}
    return _lines(rates, "K", PERCENT, "bottom_left", title="Success rate", ylim=(-4, 104))


def norm_chart(bench: Bench, norm: str, paired: bool = False) -> hv.Overlay:
    """Mean norm ("l1", "l2" or "linf") against K, over own or (paired) common successes."""
    points = {}
    for method in TITLES:
        means = [(K, norms_of(bench, method, K, norm, paired)) for K in bench.K]
        means = [(K, values.mean()) for K, values in means if len(values)]
        points[method] = ([K for K, _ in means], [mean for _, mean in means])
    over = "common successes" if paired else "own successes"
    return _lines(points, "K", f"mean {NORMS[norm]} of the perturbation",
                  title=f"{NORMS[norm]} over {over}")  # fmt: skip


def merit_chart(bench: Bench, paired: bool = False) -> hv.Overlay:
    """Figure of merit of RisingAttacK against each baseline; above the line it is better."""
    points = {}
    for method in [m for m in TITLES if m != "rising"]:
        values = [
            (K, figure_of_merit(bench.all("rising", K), bench.all(method, K), paired))
            for K in bench.K
        ]
        values = [(K, value) for K, value in values if math.isfinite(value)]
        points[method] = ([K for K, _ in values], [value for _, value in values])
    chart = _lines(points, "K", "figure of merit")
    return (chart * hv.HLine(1.0)).opts(
        title="Merit against each", width=280, height=250, ylim=(0, None)
    )


def time_chart(bench: Bench) -> hv.Overlay:
    """Processor seconds of one core for all images of one network, against K."""
    n = len(bench.problem.models)
    times = {m: (bench.K, [bench.all(m, K).seconds / n for K in bench.K]) for m in TITLES}
    return _lines(times, "K", "time a network [s, one core]", title="Time", ylim=(0, None))


@needs_result
def k_curve(bench: Bench, paired: bool = False) -> hv.Layout:
    """Success, the three norms, figure of merit and time against K, for all methods."""
    charts = [
        success_chart(bench),
        *(norm_chart(bench, norm, paired) for norm in NORMS),
        merit_chart(bench, paired),
        time_chart(bench),
    ]
    return hv.Layout(charts).opts(shared_axes=False, toolbar=None).cols(3)


@needs_result
def bench_table(bench: Bench) -> Html:
    """Success rate, norms over own successes, figure of merit and time, for each method and K.

    Where baselines were tuned, their settings too.
    """
    rows = []
    for K in bench.K:
        own = bench.all("rising", K)
        for method, title in TITLES.items():
            result, settings = bench.all(method, K), bench.settings.get((method, K))
            rows.append([
                f"{K}", title, *([_settings(method, settings)] if bench.settings else []),
                *_numbers(result), "" if method == "rising" else _merit(own, result),
            ])  # fmt: skip
    n, models = len(bench.problem.x), len(bench.problem.models)
    caption = (
        f"{bench.problem.data.capitalize()}: {n} images, {models} network"
        f"{'s' if models > 1 else ''}; norms over own successes"
        f"{'; baselines tuned for each K on network 0' if bench.settings else ''}"
    )
    header = ["K", "method", *(["setting"] if bench.settings else []), *NUMBERS,
              "merit of RisingAttacK"]  # fmt: skip
    return table_html(header, rows, caption=caption)


def _settings(method: str, settings: dict[str, Any] | None, iterations: bool = True) -> str:
    """What a baseline was set to, as a cell of a table."""
    if settings is None:
        return "as is"
    parts = [f"lr {settings['lr']:g}", f"coef {settings['coef']:g}"]
    parts += [f"{settings['iters']} iterations"] if iterations else []
    parts += [f"margin {settings['margin']:g}"] if method == "quad" else []
    rounds = settings.get("search_steps", 1)
    if rounds > 1:
        each = f"rounds of {settings['iters']} iterations"
        parts += [f"{rounds} rounds" if iterations else each]
    return ", ".join(parts)


def _merit(own: AttackResult, their: AttackResult) -> str:
    """The figure of merit of RisingAttacK against another, as a cell of a table."""
    return merit_text(figure_of_merit(own, their)).replace("B fails", "it fails")


def _numbers(result: AttackResult) -> list[str]:
    """Success, the three norms and seconds, as cells of a table."""
    if not result.success.any():
        return ["0 %", "–", "–", "–", f"{result.seconds:.2f}"]
    norms = [f"{getattr(result, norm)[result.success].mean():.3g}" for norm in NORMS]
    return [f"{100 * result.asr:.0f} %", *norms, f"{result.seconds:.2f}"]


def mean_step(alpha: np.ndarray) -> np.ndarray:
    """Mean fraction of the step (n,) over the images that moved; nan where none did.

    alpha (n, images): 0 stands for an image that is finished.
    """
    moved = (alpha > 0).sum(1)
    return np.where(moved > 0, alpha.sum(1) / np.maximum(moved, 1), np.nan)


@needs_result
def iteration_charts(bench: Bench, K: int | None = None) -> hv.Layout:
    """One attack from inside: violation, norm, step fraction, free pixels, active rows.

    A line an image, network 0; K: the longest by default.
    """
    K = bench.K[-1] if K is None else K
    trace = bench.results["rising", K][0].trace
    charts = [
        ("violation", "total violation [logits]", "Violation", True),
        ("norm", "ℓ2 of the perturbation", "Length", False),
        ("alpha", "mean fraction of the step", "Line search, mean", False),
        ("free_pixels", "free pixels", "Free pixels", False),
        ("active_rows", "active inequalities", "Active rows", False),
    ]
    drawn = []
    for (name, label, title, log), color in zip(charts, CYCLE, strict=False):
        values = trace[name][1:] if name in ("alpha", "free_pixels", "active_rows") else trace[name]
        start = len(trace[name]) - len(values)
        floor = 1e-3 if log else -np.inf  # a violation of 0 has no place on a logarithmic axis
        if name == "alpha":  # a few values each: single lines would hide each other
            values = mean_step(values)[:, None]
        x = np.arange(start, start + len(values))
        paths = [np.c_[x, np.maximum(values[:, i], floor)] for i in range(values.shape[1])]
        options = {"color": color, "line_width": 1.2, "alpha": 0.7, "logy": log}
        drawn.append(
            hv.Path(paths, ["iteration", label]).opts(
                title=f"{title}, K = {K}", width=280, height=230, show_grid=True, **options
            )
        )
    return hv.Layout(drawn).opts(shared_axes=False, toolbar=None).cols(3)


@needs_result
def gallery(bench: Bench, K_list: Sequence[int] = (1, 20), image: int = 0) -> Html:
    """The same image and first target for a short and a long order: clean, perturbation, attacked.

    K_list: the nearest lengths that were run are shown.
    """
    chosen = list(dict.fromkeys(min(bench.K, key=lambda have: abs(have - K)) for K in K_list))
    problem, parts = bench.problem, []
    for K in chosen:
        result = bench.results["rising", K][0]
        still = _attack_still(
            problem.models[0], problem.x[image], result.delta[image],
            bench.targets[K][image].tolist(), int(problem.labels[image]), problem.names,
            f"Attack with K = {K}",
        )  # fmt: skip
        failed = "" if result.success[image] else " (order not reached: no perturbation kept)"
        parts.append(f"<h4>K = {K}{failed}</h4>{still}")
    return Html("".join(parts))


def _attack_still(
    model: nn.Module, image: torch.Tensor, delta: torch.Tensor, order: list[int], label: int,
    names: Sequence[str], caption: str,
) -> str:  # fmt: skip
    logits = forward(model, (image + delta)[None])[0]
    view = PerturbationView(names, n_rows=min(len(order), 8) + 1, caption=caption)
    view.show(image, delta, logits, order, label=label)
    return view.still()


def compare_deltas(
    subject: Subject, image: int, order: Sequence[int], deltas: Mapping[str, np.ndarray]
) -> Html:
    """Several perturbations (C, H, W) of one image by their names, with what each changes."""
    parts = []
    for name, values in deltas.items():
        delta = torch.as_tensor(values)
        size = np.abs(np.asarray(values, float))
        still = _attack_still(
            subject.model, subject.images[image], delta, list(order), int(subject.labels[image]),
            subject.class_names, name,
        )  # fmt: skip
        logits = forward(subject.model, (subject.images[image] + delta)[None])
        reached = bool(achieved(logits, torch.tensor([list(order)]))[0])
        parts.append(
            f"<h4>{html.escape(name)}: {(size > 1e-6).sum()} of {size.size} pixels changed"
            f"{'' if reached else ' (order not reached)'}</h4>{still}"
        )
    return Html("".join(parts))


@needs_result
def ablation_panel(ablations: Ablations) -> hv.Layout:
    """Success and l2 for each changed setting; the dashed line is the attack as it is."""
    whole = ablations.results[""][FULL]
    parts = {p: s for p, s in ablations.results.items() if p in ("rank", "margin", "rivals")}
    charts = [_setting_chart(part, settings, whole) for part, settings in parts.items() if settings]
    others = [
        (f"{part}: {setting}", 100 * result.asr)
        for part, settings in ablations.results.items() if part and part not in parts
        for setting, result in settings.items()
    ]  # fmt: skip
    bars = hv.Bars([(FULL, 100 * whole.asr), *others], "changed", PERCENT).opts(
        title="Parts taken away", width=420, height=300, ylim=(0, 104), xrotation=25
    )
    title = f"{ablations.data}, K = {ablations.K}, {len(whole.success)} images"
    return hv.Layout([*charts, bars]).opts(title=title, shared_axes=False, toolbar=None).cols(2)


def _setting_chart(part: str, settings: dict[str, AttackResult], whole: AttackResult) -> hv.Overlay:
    """Success rate against the values of one setting, with l2 where there is a success."""
    rates = [(name, 100 * result.asr) for name, result in settings.items()]
    marks = [
        (name, 100 * result.asr, f"{result.l2[result.success].mean():.2f}")
        for name, result in settings.items() if result.success.any()
    ]  # fmt: skip
    names = {"rank": "singular vectors kept", "margin": "margin [logits]",
             "rivals": "rivals kept"}  # fmt: skip
    label, n = names[part], len(next(iter(settings.values())).success)
    layers = [
        hv.Curve(rates, label, PERCENT).opts(color=OKABE_ITO["vermillion"]),
        hv.Scatter(rates, label, PERCENT).opts(color=OKABE_ITO["vermillion"], size=7),
    ]
    more = ""
    if n == len(whole.success):
        layers.append(hv.HLine(100 * whole.asr))
    else:  # other images: a line would compare what cannot be compared
        more = f", {n} images"
    if marks:
        text = hv.Labels(marks, [label, PERCENT], "ℓ2")
        layers.append(text.opts(text_font_size="8pt", text_color=MUTED, yoffset=-8))
    return hv.Overlay(layers).opts(
        title=f"{part.capitalize()}{more} (numbers: mean ℓ2)", width=420, height=300,
        ylim=(-14, 108),
    )  # fmt: skip


@needs_result
def width_chart(widths: Widths) -> hv.Layout:
    """How long an order a network can be made to say, and how well it reads, by feature width.

    A star is the deeper network. Longest order: of the K tried, the longest that at least half of
    the images are made to say, 0 if none.
    """
    charts = [_longest_chart(widths), _accuracy_chart(widths)]
    charts += [_width_success(widths, method) for method in widths.asr]
    return hv.Layout(charts).opts(shared_axes=False, toolbar=None).cols(2)


def longest_orders(asr: np.ndarray, K: np.ndarray) -> np.ndarray:
    """The longest K (k,) with success of at least half, for each row of asr (n, k); 0 if none."""
    return (np.where(asr >= 0.5, K, 0)).max(1)


def _by_width(widths: Widths) -> dict[str, Any]:
    """Options of a chart over the widths."""
    ticks = [int(w) for w in widths.widths]
    every = [*ticks, *([widths.deep_width] if widths.deep else [])]
    limits = 0.8 * min(every), 1.25 * max(every)  # room for markers
    return {"logx": True, "xticks": ticks, "xlim": limits, "width": 440, "height": 290}


def _star(x: int, y: float, color: str, *axes: str) -> hv.Scatter:
    return hv.Scatter([(x, y)], *axes).opts(color=color, marker="star", size=15, line_color=INK)


def _longest_chart(widths: Widths) -> hv.Overlay:
    axes, layers = ("features", "longest order K"), []
    for method, asr in widths.asr.items():
        points, color = (widths.widths, longest_orders(asr, widths.K)), COLORS[method]
        layers.append(hv.Curve(points, *axes, label=TITLES[method]).opts(color=color))
        layers.append(hv.Scatter(points, *axes).opts(color=color, marker=MARKERS[method], size=7))
        if widths.deep:
            (longest,) = longest_orders(widths.deep[method][None], widths.K)
            layers.append(_star(widths.deep_width, longest, color, *axes))
    return hv.Overlay(layers).opts(
        title="Longest order that half of the images say",
        yticks=[0, *widths.K.tolist()], ylim=(-1.5, 1.08 * widths.K.max()),
        legend_position="right", **_by_width(widths),
    )  # fmt: skip


def _accuracy_chart(widths: Widths) -> hv.Overlay:
    axes, points = ("features", "accuracy [%]"), (widths.widths, 100 * widths.accuracy)
    layers = [
        hv.Curve(points, *axes).opts(color=INK),
        hv.Scatter(points, *axes).opts(size=7, color=INK),
    ]
    if widths.deep:
        layers.append(_star(widths.deep_width, 100 * widths.deep_accuracy, MUTED, *axes))
    return hv.Overlay(layers).opts(
        title="How well the networks read (star: the deeper)", padding=0.1, **_by_width(widths)
    )


def _width_success(widths: Widths, method: str) -> hv.Overlay:
    """Success of an attack against the width, a line for each K; stars: the deeper network."""
    axes, layers = ("features", PERCENT), []
    for column, (K, color) in enumerate(zip(widths.K, CYCLE, strict=False)):
        rates = 100 * widths.asr[method][:, column]
        layers.append(hv.Curve((widths.widths, rates), *axes, label=f"K = {K}").opts(color=color))
        if widths.deep:
            layers.append(_star(widths.deep_width, 100 * widths.deep[method][column], color, *axes))
    return hv.Overlay(layers).opts(
        title=f"{TITLES[method]}: success", ylim=(-6, 106), legend_position="right",
        **_by_width(widths),
    )  # fmt: skip


@needs_result
def tuned_table(tuned: TunedBench) -> Html:
    """RisingAttacK beside every baseline at the best setting of its grid."""
    rows = []
    for K in tuned.K:
        own = tuned.rising.get(("rising", K))
        for (name, of_K), result in tuned.rising.items():
            if of_K == K:
                rivals = name.removeprefix("rising").strip()
                settings = f"{rivals} rivals" if rivals else "as is"
                rows.append([f"{K}", TITLES["rising"], settings, *_numbers(result), ""])
        for (method, of_K), found in tuned.tuned.items():
            if of_K == K:
                rows.append([f"{K}", TITLES[method], _settings(method, found.settings),
                             *_numbers(found.result),
                             _merit(own, found.result) if own else ""])  # fmt: skip
    header = ["K", "method", "setting", *NUMBERS, "merit of RisingAttacK"]
    return table_html(header, rows, caption="Baselines at their best setting, on these images")


@needs_result
def equal_time_table(found: EqualTime) -> Html:
    """Every attack with the processor time that RisingAttacK took."""
    rows = []
    for (method, K), result in found.results.items():
        own = found.results["rising", K]
        settings = _settings(method, found.settings.get((method, K)), iterations=False)
        merit = "" if method == "rising" else _merit(own, result)
        rows.append([f"{K}", TITLES[method], settings, f"{found.iterations[method, K]}",
                     *_numbers(result), merit])  # fmt: skip
    rows.sort(key=lambda row: int(row[0]))
    header = ["K", "method", "setting", "iterations", *NUMBERS, "merit of RisingAttacK"]
    chosen = "tuned on these images" if found.tuned else "with the settings of the parameters"
    return table_html(header, rows, caption=f"The same processor time for each; baselines {chosen}")


@needs_result
def anchor_table(anchor: Anchor) -> Html:
    """K = 1 beside foolbox's attacks."""
    rows = [[html.escape(title), *_numbers(r)] for title, r in anchor.results.items()]
    caption = f"K = 1, digits. {anchor.missing}".strip()
    return table_html(["attack", *NUMBERS], rows, caption=caption)


@needs_result
def nested_chart(nested: Nested) -> hv.Overlay:
    """Optimal length against K for nested orders of a linear model: a line an image never falls."""
    K = np.arange(1, nested.norms.shape[1] + 1)
    paths = hv.Path([np.c_[K, norms] for norms in nested.norms], ["K", "optimal ℓ2"])
    mean = hv.Curve((K, nested.norms.mean(0)), "K", "optimal ℓ2")
    return (
        paths.opts(color=MUTED, line_width=1, alpha=0.5) * mean.opts(color=INK, line_width=3)
    ).opts(title="Nested orders, linear model (mean bold)", width=420, height=290)


@needs_result
def defense_chart(curves: dict[int, dict[str, Curve]]) -> hv.Layout:
    """Share of images reached within a budget, and what is certified out of reach, for each K."""
    from .ablations import DEFENSE_EPS

    charts = [_budget_chart(K, of_K, DEFENSE_EPS) for K, of_K in curves.items()]
    first = next(iter(curves.values()))
    clean = ", ".join(f"{name} {100 * curve.clean:.0f} %" for name, curve in first.items())
    return hv.Layout(charts).opts(title=f"Clean accuracy: {clean}", toolbar=None).cols(1)


def _budget_chart(K: int, curves: dict[str, Curve], eps: np.ndarray) -> hv.Overlay:
    axes, lines = ("budget ε [ℓ2]", "share of images [%]"), []
    for (name, curve), color in zip(curves.items(), CYCLE, strict=False):
        reached = hv.Curve((eps, 100 * curve.reached), *axes, label=f"{name}: reached")
        lines.append(reached.opts(color=color))
        if curve.certified is not None:
            limit = (eps, 100 * (1 - curve.certified))
            limit = hv.Curve(limit, *axes, label=f"{name}: limit by the certificate")
            lines.append(limit.opts(color=color, line_dash="dashed"))
    n = max((len(curve.smallest) for curve in curves.values()), default=0)
    return hv.Overlay(lines).opts(
        title=f"Orders of K = {K}, {n} digits", width=760, height=270, legend_position="right",
        ylim=(-4, 104),
    )  # fmt: skip


def singular_vectors(program: Program, n: int = 12) -> hv.Layout:
    """Spectrum, coefficients z, and the first n right singular vectors as images.

    The box acts on the solution, so the vectors are those on the pixels that it leaves free.
    """
    solution = program.solution
    side, shown = program.image.shape[-1], min(n, program.rank)
    columns = min(6, shown)
    sheet = np.full((-(-shown // columns) * (side + 1), columns * (side + 1)), np.nan)
    for k in range(shown):
        vector = np.where(solution.free, program.direction(k), np.nan)
        tile = vector.reshape(program.image.shape).sum(0)  # of several channels their sum
        row, column = divmod(k, columns)
        top, left = row * (side + 1), column * (side + 1)
        sheet[top : top + side, left : left + side] = tile / np.nanmax(np.abs(tile))
    height, width = sheet.shape
    tiles = hv.Image(sheet, ["column", "row"], "share of the largest entry",
                     bounds=(0, 0, width, height)).opts(
        cmap=images.colormap("diverging"), clim=(-1, 1), clipping_colors={"NaN": images.MISSING},
        width=600, height=40 + 560 * height // width, xaxis=None, yaxis=None, tools=[],
        title=f"First {shown} right singular vectors (orange +, blue −, gray: at a bound)",
    )  # fmt: skip
    charts = hv.Layout([*spectrum_chart(program), tiles])
    return charts.opts(shared_axes=False, toolbar=None).cols(2)


@needs_result
def first_step(
    bench: Bench, K: int | None = None, image: int = 0, options: RisingOptions = ATTACK
) -> hv.Layout:
    """Singular vectors of the first step on an image, for an order of K (default: the longest).

    options: those of the attack, `RisingOptions(**parameters.options("rising"))`.
    """
    problem, K = bench.problem, bench.K[-1] if K is None else K
    x, order = problem.x[image], bench.targets[K][image].tolist()
    program = linearize(problem.models[0], x, torch.zeros_like(x), order, options)
    return singular_vectors(program)


def attack_plane(
    model: nn.Module, trial: Trial, close_up: float = 16.0, options: RisingOptions = ATTACK
) -> pn.viewable.Viewable:
    """The way of a finished attack, in a plane through the solution of its last program.

    options: those with which the attack ran.
    """
    last = trial.snapshots[trial.best].delta[0]
    program = linearize(model, trial.image, last, trial.order, options)
    deltas = [snapshot.delta[0] for snapshot in trial.snapshots]
    titles = {1.0: "The attack's whole way", close_up: f"Its end, {close_up:g} times closer"}
    charts = [
        polytope_chart(run(plane_steps(model, program, deltas, zoom=zoom)), title)
        for zoom, title in titles.items()
    ]
    both = hv.Layout(charts).opts(shared_axes=False, toolbar=None)
    return pn.Column(both, pn.pane.HTML(legend_html(len(trial.order))))


def monitor(partial: study.RisingAttackStudy) -> Any:
    """What is known while the study runs: the comparison so far."""
    bench = partial.digits or partial.bench
    if bench is None or not bench.K:
        return pn.Spacer()
    return pn.Row(success_chart(bench), norm_chart(bench, "l2"))


def results_of(finished: study.RisingAttackStudy) -> dict[str, Any]:
    """Title -> picture of everything that the study measured."""
    return {title: view(finished) for title, view in VIEWS.items()}


def _html(view: Any) -> Any:
    return pn.pane.HTML(view) if isinstance(view, str) else view


def _column(*views: Any) -> pn.Column:
    return pn.Column(*map(_html, views))


def _orders(bench: Bench | None) -> pn.viewable.Viewable:
    """The comparison over own or over common successes, one tab each, above the table."""
    if bench is None or not bench.K:
        return _html(k_curve(bench))
    curves = pn.Tabs(
        ("Norms over own successes", pn.Column(k_curve(bench))),
        ("Norms over common successes", pn.Column(k_curve(bench, paired=True))),
        dynamic=True,
    )
    return _column(curves, bench_table(bench))


def _attack_of(study_: study.RisingAttackStudy) -> RisingOptions:
    return RisingOptions(**study_.parameters.options("rising"))


VIEWS = {
    "Claims": lambda s: pn.pane.HTML(s.claims._repr_html_()),
    "Orders of length K": lambda s: _orders(s.bench),
    "One attack": lambda s: _column(gallery(s.bench), iteration_charts(s.bench)),
    "Singular vectors": lambda s: _column(
        first_step(s.bench, options=_attack_of(s)), nested_chart(s.nested)
    ),
    "Ablations": lambda s: _column(ablation_panel(s.ablations), ablation_panel(s.long_ablations)),
    "Fair comparison": lambda s: _column(
        equal_time_table(s.equal_time), tuned_table(s.tuned), anchor_table(s.anchor)
    ),
    "Networks": lambda s: _column(
        bench_table(s.digits),
        bench_table(s.digits_tuned),
        width_chart(s.widths),
        defense_chart(s.defense),
    ),
}


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: an attack bench to play with, and the study behind its Run button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: clean, perturbation and attacked glyph at K = 10 (PNG, 800 x 272)."""
    from .attacks import attack
    from .glyphs import N_CLASSES, held_out_glyphs, load_glyph_model
    from .ranking import random_targets

    model, (x, labels) = load_glyph_model(0), held_out_glyphs()
    first = int((model(x).argmax(1) == labels).nonzero()[200, 0])
    x, labels = x[[first]], labels[[first]]
    delta = attack(model, x, random_targets(labels, 10, N_CLASSES), iters=25).delta
    clean, change = x[0, 0].numpy(), delta[0, 0].numpy()
    codes, palette = images.field_image(change, -0.25, 0.25, colors="diverging", scale=1)
    colors = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in palette], np.uint8)
    both = np.rint(255 * np.stack([clean, clean + change])).astype(np.uint8)
    gray = both[..., None].repeat(3, 3)
    tiles = [t.repeat(9, 0).repeat(9, 1) for t in (gray[0], colors[codes], gray[1])]
    sheet = np.full((272, 800, 3), 255, np.uint8)
    for number, tile in enumerate(tiles):
        left = 8 + number * 266
        sheet[10 : 10 + len(tile), left : left + tile.shape[1]] = tile
    return picture_png(np.moveaxis(sheet, 2, 0) / 255)
