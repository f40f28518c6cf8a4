"""Pictures of the study, each a pure function of results, and the explorer.

Charts are HoloViews elements; what follows a slider is in `drawings.py`, the live part in
`live.py`. Nothing is computed here beyond what a picture needs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import INK, MUTED, OKABE_ITO, Html, table_html

from . import bounds, drawings, findings, live, study
from .closed_forms import (
    EVIDENCE_ORDERS,
    SIZES,
    TRUTHS,
    Exact,
    Polynomials,
    Relu,
    SampleEfficiency,
    Symmetry,
    Weak,
    refit,
)
from .compression import Compressed
from .experiments import Corrupted, RandomLabels, Widths
from .posterior import Gibbs, Validity
from .representation import Learned, Paths, Universal
from .symmetry import PathwayNetworks

NOT_RUN = Html("<em>This experiment has not run at this preset: there is nothing to show.</em>")
DASHED, DOTTED = "dashed", "dotted"
C = OKABE_ITO


def needs_result(view: Callable[..., Any]) -> Callable[..., Any]:
    """A view of an experiment that did not run (None or empty) says so in words."""

    @functools.wraps(view)
    def shown(result: Any, *options: Any, **more: Any) -> Any:
        empty = result is None or (isinstance(result, dict) and not result)
        return NOT_RUN if empty else view(result, *options, **more)

    return shown


def _curve(x: Any, y: Any, axes: tuple[str, str], name: str, color: str, dash: str = "solid"):
    return hv.Curve((x, y), *axes, label=name).opts(color=color, line_dash=dash)


def _layout(*charts: Any) -> hv.Layout:
    return hv.Layout(list(charts)).opts(shared_axes=False, toolbar=None).cols(2)


@needs_result
def polynomial_table(found: Polynomials) -> Html:
    """RMSE of each model on both structures and on noise, medians over the draws."""
    rows = []
    for name, e in found.errors.items():
        edge = found.edge[name]
        rows.append([
            name, *(f"{np.median(e[k]):.3g}" for k in ("simple", "complex")),
            f"{e['noise'].mean():.2g}", *(f"{edge[k]:.3g}" for k in ("simple", "complex")),
        ])  # fmt: skip
    header = ["model", "simple, test", "complex, test", "noise, train", "simple, to the edge",
              "complex, to the edge"]  # fmt: skip
    draws = len(next(iter(found.errors.values()))["noise"])
    return table_html(
        header, rows, f"RMSE, {draws} draws; test points in [-.95, .95], then [-1, 1]"
    )


@needs_result
def evidence_chart(found: Polynomials) -> hv.Overlay:
    """A3: mean log marginal likelihood on complex data against the order."""
    axes = ("order J", "log marginal likelihood")
    lines = [
        _curve(EVIDENCE_ORDERS, e, axes, f"γ = {g:g}", color, dash)
        for (g, e), color, dash in zip(found.evidence.items(), (C["vermillion"], C["blue"]),
                                       (DASHED, "solid"), strict=True)
    ]  # fmt: skip
    return hv.Overlay(lines).opts(title="More coefficients: free, or not", width=520, height=300,
                                  ylim=(-150, -30), legend_position="top_right")  # fmt: skip


@needs_result
def efficiency_charts(found: SampleEfficiency) -> hv.Layout:
    """A2: median RMSE against the number of examples, one chart a truth."""
    styles = {"order 2": (C["orange"], DASHED), "order 15": (C["sky"], DOTTED),
              "soft 15": (C["blue"], "solid"), "soft 100": (C["vermillion"], DASHED)}  # fmt: skip
    charts = []
    for truth in TRUTHS:
        sizes = [n for n in SIZES if (truth, n, "soft 100") in found.rmse]
        lines = [
            _curve(sizes, [found.median(truth, n, model) for n in sizes],
                   ("examples", "median RMSE"), model, color, dash)
            for model, (color, dash) in styles.items()
        ]  # fmt: skip
        charts.append(hv.Overlay(lines).opts(
            title=truth, logx=True, logy=True, ylim=(0.02, 3), width=420, height=280,
            xticks=list(SIZES), legend_position="top_right",
        ))  # fmt: skip
    return _layout(*charts)


@needs_result
def label_charts(found: RandomLabels) -> hv.Layout:
    """B: accuracies of process and networks, and the evidence, against the share rho."""
    axes = ("share of random labels", "accuracy")
    lines = [
        _curve(found.rho, found.train.mean(0), axes, "GP, train", C["sky"], DASHED),
        _curve(found.rho, found.test.mean(0), axes, "GP, test", C["blue"]),
    ]
    if len(found.mlp_rho):
        lines += [
            _curve(found.mlp_rho, found.mlp_train.mean(0), axes, "network, train", C["orange"],
                   DOTTED),
            _curve(found.mlp_rho, found.mlp_test.mean(0), axes, "network, test", C["vermillion"],
                   DASHED),
        ]  # fmt: skip
    right = _curve(found.rho, found.evidence.mean(0), (axes[0], "nats an example"), "", C["purple"])
    right = right.opts(title="Log marginal likelihood", width=420, height=300)
    left = hv.Overlay(lines).opts(title="Random labels", ylim=(0, 1.05), width=480, height=300,
                                  legend_position="bottom_left")  # fmt: skip
    return _layout(left, right)


@needs_result
def weak_charts(found: Weak) -> hv.Layout:
    """C1: test error and undetermined directions against the number of features."""
    left = _curve(found.d, found.of("test"), ("features d", "relative test error"), "", C["blue"])
    right = _curve(found.d, found.of("undetermined"), ("features d", "undetermined directions"),
                   "", C["vermillion"])  # fmt: skip
    edge = hv.VLine(found.n).opts(color=INK, line_dash=DASHED, line_width=1)
    return _layout(
        (left * edge).opts(title="Least squares, weak features", logx=True, logy=True),
        (right * edge).opts(title="min(n, d) − N_eff", logx=True),
    )  # fmt: skip


@needs_result
def relu_charts(found: Relu) -> hv.Layout:
    """C2: test error of random features by ridge, and N_eff."""
    axes = ("features d", "test error rate")
    styles = [(C["blue"], "solid"), (C["vermillion"], DASHED), (C["green"], DOTTED)]
    lines = [
        _curve(found.d, test.mean(0), axes, f"ridge {ridge:g}", *style)
        for (ridge, test), style in zip(found.test.items(), styles, strict=False)
    ]
    edge = hv.VLine(found.n).opts(color=INK, line_dash=DASHED, line_width=1)
    dimension = _curve(found.d, found.dimension.mean(0), ("features d", "N_eff"), "", C["purple"])
    return _layout(
        hv.Overlay([*lines, edge]).opts(title="Random ReLU features", logx=True, ylim=(0, 1),
                                        legend_position="top_right"),
        (dimension * edge).opts(title="Effective dimension", logx=True),
    )  # fmt: skip


@needs_result
def width_charts(found: Widths) -> hv.Layout:
    """C3: test loss and effective dimension of networks against the width."""
    done = np.isfinite(found.test).all(0)
    if not done.any():
        return NOT_RUN
    h = found.widths[done]
    left = _curve(
        h, found.test.mean(0)[done], ("hidden units", "test cross-entropy"), "", C["blue"]
    )
    right = _curve(h, found.dimension.mean(0)[done], ("hidden units", "N_eff"), "", C["vermillion"])
    fitted = _curve(h, found.train_error.mean(0)[done], ("hidden units", "train error"), "",
                    C["sky"])  # fmt: skip
    return _layout(
        left.opts(title="Test loss", logx=True), right.opts(title="Effective dimension", logx=True),
        fitted.opts(title="Mistakes on the noisy training labels", logx=True),
    )  # fmt: skip


@needs_result
def width_table(found: Widths) -> Html:
    """C3 in numbers."""
    rows = [
        [str(h), *(f"{v[:, i].mean():.3g}" for v in (found.train_error, found.test,
                                                     found.test_error, found.dimension))]
        for i, h in enumerate(found.widths)
    ]  # fmt: skip
    checks = "; ".join(f"width {h}: {a:.1f} by Gram matrix, {b:.1f} by Lanczos"
                       for h, (a, b) in found.lanczos.items())  # fmt: skip
    header = ["hidden units", "train error", "test loss", "test error", "N_eff"]
    return table_html(header, rows, f"{len(found.test)} seeds in one batch. {checks}".strip())


@needs_result
def exact_table(found: Exact) -> Html:
    """C4: simulation beside the closed form."""
    rows = [
        [str(d), f"{v.mean():.4g} ± {v.std(ddof=1) / len(v) ** 0.5:.2g}", f"{found.exact[d]:.4g}",
         f"{z:+.1f}"]
        for (d, v), z in zip(found.draws.items(), found.z(), strict=True)
    ]  # fmt: skip
    return table_html(["d", "simulated", "exact", "z"], rows,
                      f"E|θ̂ − θ|², n = {found.n}, σ = {found.sigma}, |θ| = 1")  # fmt: skip


@needs_result
def compression_table(found: dict[tuple[int, int], Compressed]) -> Html:
    """D and D3: errors, bits and bounds of the stored networks, means over seeds."""
    rows = []
    for (width, d), c in found.items():
        if not len(c.bounds):
            continue
        parts = c.parts[0]
        rows.append([
            str(d), str(width), f"{c.plain.mean():.3f}", f"{c.train.mean():.3f}",
            f"{c.test.mean():.3f}", f"{c.bits.mean():.0f}",
            f"{parts['symbols']} + {parts['counts']} + {parts['step']} + {parts['header']}",
            f"{c.of('hoeffding').mean():.3f}", f"<b>{c.of('kl').mean():.3f}</b>",
            f"{c.of('exact').mean():.3f}",
        ])  # fmt: skip
    header = ["d", "width", "train", "decoded", "test", "bits", "symbols + counts + step + header",
              "Hoeffding", "kl", "exact"]  # fmt: skip
    note = "Each bound is for a width fixed in advance; to pick the best of four, pay 2 bits more"
    return table_html(header, rows, note)


@needs_result
def compression_scatter(found: dict[tuple[int, int], Compressed], delta: float = 0.05) -> Html:
    """The same runs among curves of equal bound."""
    runs = [
        (f"width {w}, d = {d}", float(c.train.mean()), float(c.bits.mean()))
        for (w, d), c in found.items() if len(c.bounds)
    ]  # fmt: skip
    n = next(iter(found.values())).n
    return drawings.iso_bounds(runs, n, delta)


@needs_result
def bits_view(found: dict[tuple[int, int], Compressed]) -> Html:
    """Where the bits of the first network of the last setting go."""
    c = list(found.values())[-1]
    return drawings.stored(c) if c.messages else NOT_RUN


@needs_result
def corrupted_table(found: Corrupted) -> Html:
    """D2: the bound as labels become random."""
    if not len(found.result.bounds):
        return NOT_RUN
    shape = (len(found.rho), found.seeds)
    rows = [
        [f"{rho:g}", *(f"{v.reshape(shape)[i].mean():.3f}" for v in (
            found.result.train, found.result.test, found.result.of("kl"),
            found.result.of("exact"))),
         "vacuous" if found.bound()[i].mean() >= 0.9 else ""]
        for i, rho in enumerate(found.rho)
    ]  # fmt: skip
    return table_html(["random labels", "train, decoded", "test, true labels", "kl bound",
                       "exact bound", ""], rows, f"width {found.result.width}, d = "
                      f"{found.result.d}; chance is .9")  # fmt: skip


@needs_result
def posterior_table(found: Gibbs) -> Html:
    """D4: PAC-Bayes for softmax regression."""
    rows = [
        [name, f"{found.scale[i]:.2g}", f"{found.divergence[i]:.1f}", f"{found.train[i]:.3f}",
         f"{found.test[i]:.3f}", f"{found.root[i]:.3f}", f"<b>{found.bound[i]:.3f}</b>"]
        for i, name in enumerate(("true labels", "random labels"))
    ]  # fmt: skip
    header = ["", "prior scale", "KL, nats", "Gibbs train", "Gibbs test", "McAllester", "kl bound"]
    return table_html(header, rows, f"{found.draws:,} draws of the posterior")


@needs_result
def validity_table(found: Validity) -> Html:
    """How often each bound was broken on simulated data."""
    rows = [
        [drawings.FORMS[name][0], f"{share:.4f}", f"{found.mean[name]:.3f}",
         f"{found.risk[name]:.3f}"]
        for name, share in found.broken.items()
    ]  # fmt: skip
    header = ["bound", "broken", "mean bound", "mean true risk"]
    return table_html(header, rows, f"{found.datasets:,} data sets of 100, delta .05")


@needs_result
def symmetry_table(found: Symmetry) -> Html:
    """E: accuracies by task, and the r that the evidence chose."""
    rows = []
    for (task, n), choices in found.rows.items():
        if not choices:
            continue
        values = {k: found.of(task, n, k) for k in ("hard", "none", "soft", "r")}
        best = max(values[k].mean() for k in ("hard", "none", "soft"))
        cells = [
            f"<b>{v:.3f}</b>" if v >= best - 0.005 else f"{v:.3f}"
            for v in (values[k].mean() for k in ("hard", "none", "soft"))
        ]
        rows.append([task, str(n), *cells, f"{np.median(values['r']):.2g}",
                     f"{(values['r'] == 0).sum()} of {len(choices)}"])  # fmt: skip
    header = ["task", "examples", "hard", "none", "soft", "median r", "r = 0 chosen"]
    return table_html(header, rows, "Test accuracy of Gaussian processes; r by evidence")


@needs_result
def pathway_table(found: PathwayNetworks) -> Html:
    """E2: the same with networks."""
    rows = [
        [task, *(f"{a[k].mean():.3f}" for k in ("hard", "none", "soft")),
         ", ".join(f"{v:g}" for v in found.decay[task])]
        for task, a in found.accuracy.items()
    ]  # fmt: skip
    header = ["task", "invariant path", "residual path", "both", "decay chosen, by seed"]
    return table_html(header, rows, "Test accuracy of networks, 400 examples")


@needs_result
def learned_table(found: dict[int, Learned]) -> Html:
    """F: a network against a kernel with an oracle."""
    rows = [
        [f"{n:,}", f"{f.net.mean():.3f} ± {f.net.std():.2g}",
         f"{f.kernel.mean():.3f} ± {f.kernel.std():.2g}", f"{f.alignment.mean():.2f}"]
        for n, f in found.items()
    ]  # fmt: skip
    header = ["examples", "network", "kernel with an oracle", "alignment"]
    return table_html(header, rows, "Relative squared test error; mean ± spread over seeds")


@needs_result
def path_view(found: dict[int, Paths]) -> Html:
    """G: loss between solutions for each width, and the loss plane of the first."""
    parts = []
    for width, paths in found.items():
        name = f"{width} units" if width else "Softmax regression"
        words = (
            f"<b>{name}</b>: largest loss on the line {paths.line.max():.3g} (train error "
            f"{paths.line_error.max():.3f}), on the curve {paths.curve.max():.3g} (train error "
            f"{paths.curve_error.max():.3f}); test error of the ends {paths.single.mean():.3f}, of "
            f"the ensemble along the curve {paths.ensemble.mean():.3f}."
        )
        figures = [drawings.path_chart(paths)]
        if paths.plane is not None:
            figures.append(drawings.plane_picture(paths.plane))
        parts += [drawings.note(words), drawings.row(*figures)]
    return Html("".join(map(str, parts)))


@needs_result
def universal_table(found: Universal) -> Html:
    """H: one setting, three data sets."""
    rows = [
        [name, f"{n:,} x {d}", measure, f"{a:.3f}", f"{b:.3f}", f"{c:.3f}"]
        for name, (n, d), measure, a, b, c in zip(
            found.names, found.sizes, found.measure, found.net, found.process, found.constant,
            strict=True,
        )
    ]  # fmt: skip
    header = ["data", "examples x inputs", "score", "network", "Gaussian process", "constant"]
    return table_html(header, rows, "The same network and the same process, nothing tuned to any")


def axes_view(finished: study.SoftBiasStudy) -> Html:
    """I: what has run, on the two axes, as picture and table."""
    places = findings.axes(finished)
    if not places:
        return NOT_RUN
    rows = [[name, f"{f:.2f}", f"{s:.2f}"] for name, f, s in places]
    table = table_html(["model", "flexibility", "simplicity bias"], rows)
    return Html(str(drawings.axes_chart(places)) + str(table))


def vc_table(n: int = 1437, delta: float = 0.05) -> Html:
    """D5: the penalty of the VC bound for linear classifiers of more and more inputs."""
    rows = [[str(v - 1), f"{bounds.vc(0.0, v, n, delta):.2f}"] for v in (3, 9, 17, 33, 65)]
    return table_html(["inputs", "penalty"], rows, f"VC bound, binary linear, n = {n:,}")


def monitor(partial: study.SoftBiasStudy) -> Any:
    """What is known while the study runs: the picture of the newest experiment."""
    for name, draw in reversed(list(MONITORED.items())):
        found = getattr(partial, name)
        if found is None or (isinstance(found, dict) and not found):
            continue
        try:
            shown = draw(found)
        except (IndexError, ValueError, StopIteration):  # too little of it yet
            continue
        return pn.pane.HTML(str(shown)) if isinstance(shown, str) else shown
    return pn.Spacer()


def _compressing(found: dict[tuple[int, int], Compressed] | Corrupted) -> Html:
    newest = found.result if isinstance(found, Corrupted) else list(found.values())[-1]
    return drawings.training(newest.curves, f"Width {newest.width}, d = {newest.d}: training loss")


def _widths_so_far(found: Widths) -> Html:
    width, curves = list(found.curves.items())[-1]
    return Html(drawings.training(curves, f"Width {width}: training loss")
                + drawings.width_chart(found.widths, *(v.mean(0) for v in (
                    found.test, found.dimension, found.train_error))))  # fmt: skip


MONITORED: dict[str, Callable[[Any], Any]] = {
    "polynomials": polynomial_table, "labels": label_charts, "widths": _widths_so_far,
    "compression": _compressing, "corrupted": _compressing, "symmetry": symmetry_table,
    "connected": path_view,
}  # fmt: skip


def _html(shown: Any) -> Any:
    return pn.pane.HTML(str(shown)) if isinstance(shown, str) else shown


def _column(*shown: Any) -> pn.Column:
    return pn.Column(*map(_html, shown))


VIEWS = {
    "Claims": lambda s: pn.pane.HTML(s.claims._repr_html_()),
    "Polynomials": lambda s: _column(polynomial_table(s.polynomials),
                                     evidence_chart(s.polynomials),
                                     efficiency_charts(s.efficiency)),
    "Random labels": lambda s: _column(label_charts(s.labels)),
    "Double descent": lambda s: _column(weak_charts(s.weak), relu_charts(s.relu),
                                        width_charts(s.widths), width_table(s.widths),
                                        exact_table(s.exact)),
    "Bounds": lambda s: _column(compression_table(s.compression),
                                compression_scatter(s.compression),
                                corrupted_table(s.corrupted), posterior_table(s.posterior),
                                validity_table(s.validity), vc_table()),
    "Symmetry": lambda s: _column(symmetry_table(s.symmetry), pathway_table(s.pathways)),
    "Networks": lambda s: _column(learned_table(s.learned), path_view(s.connected),
                                  universal_table(s.universal)),
    "Two axes": lambda s: _column(axes_view(s)),
}  # fmt: skip


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: every figure to drag, and the study behind its button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: one prior fits a structure and pure noise (PNG, 800 x 400)."""
    import io

    from PIL import Image, ImageDraw, ImageFont

    from workbench.widgets.svg import Scale

    from .closed_forms import PLOT

    found = refit(150, 1.1, 0.01, "chebyshev", 30, 3)
    fine = 2  # drawn twice as large, then made smaller: smooth lines
    sheet = Image.new("RGB", (800 * fine, 400 * fine), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=18 * fine)
    for k, (kind, color) in enumerate((("complex", C["blue"]), ("noise", C["vermillion"]))):
        left = (20 + 390 * k) * fine
        y = found.y[kind]
        room = 0.2 * float(np.ptp(y))
        across = Scale(-1, 1, left, left + 370 * fine)
        up = Scale(float(y.min()) - room, float(y.max()) + room, 380 * fine, 40 * fine)
        points = zip(across(PLOT), np.clip(up(found.curve[kind]), 35 * fine, 390 * fine),
                     strict=True)  # fmt: skip
        draw.line([(float(a), float(b)) for a, b in points], color, 4 * fine, joint="curve")
        for a, b in zip(across(found.x), up(y), strict=True):
            r = 4 * fine
            draw.ellipse([a - r, b - r, a + r, b + r], INK)
        words = "structure: found" if kind == "complex" else "pure noise: fitted"
        draw.text((left + 8 * fine, 20 * fine), words, color, font, anchor="lm")
    draw.line([(400 * fine, 30 * fine), (400 * fine, 385 * fine)], MUTED, fine)
    stream = io.BytesIO()
    sheet.resize((800, 400), Image.Resampling.LANCZOS).save(stream, format="png", optimize=True)
    return stream.getvalue()
