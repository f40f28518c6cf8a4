"""Pictures of the study, each a pure function of results, and the explorer.

Charts are HoloViews elements; what follows a slider is in `drawings.py`, the live part in
`live.py`. Nothing is computed here beyond what a picture needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import INK, MUTED, NOT_RUN, OKABE_ITO, Html, needs_result, table_html

from . import drawings, drawings_networks, findings, live, study, tables
from .closed_forms import (
    EVIDENCE_ORDERS,
    SIZES,
    TRUTHS,
    Polynomials,
    Relu,
    SampleEfficiency,
    Weak,
    refit,
)
from .compression import Compressed
from .experiments import Corrupted, RandomLabels, Widths
from .representation import Paths

DASHED, DOTTED = "dashed", "dotted"
C = OKABE_ITO


def _curve(x: Any, y: Any, axes: tuple[str, str], name: str, color: str, dash: str = "solid"):
    return hv.Curve((x, y), *axes, label=name).opts(color=color, line_dash=dash)


def _layout(*charts: Any) -> hv.Layout:
    return hv.Layout(list(charts)).opts(shared_axes=False, toolbar=None).cols(2)


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
        figures = [drawings_networks.path_chart(paths)]
        if paths.plane is not None:
            figures.append(drawings_networks.plane_picture(paths.plane))
        parts += [drawings.note(words), drawings.row(*figures)]
    return Html("".join(map(str, parts)))


def axes_view(finished: study.SoftBiasStudy) -> Html:
    """I: what has run, on the two axes, as picture and table."""
    places = findings.axes(finished)
    if not places:
        return NOT_RUN
    rows = [[name, f"{f:.2f}", f"{s:.2f}"] for name, f, s in places]
    table = table_html(["model", "flexibility", "simplicity bias"], rows)
    return Html(str(drawings.axes_chart(places)) + str(table))


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
    if isinstance(found, Corrupted):
        return drawings_networks.training(found.curves, "True and random labels: training loss")
    newest = list(found.values())[-1]
    title = f"Width {newest.width}, d = {newest.d[0]}: training loss"
    return drawings_networks.training(newest.curves, title)


def _widths_so_far(found: Widths) -> Html:
    width, curves = list(found.curves.items())[-1]
    return Html(drawings_networks.training(curves, f"Width {width}: training loss")
                + drawings_networks.width_chart(found.widths, *(v.mean(0) for v in (
                    found.test, found.dimension, found.train_error))))  # fmt: skip


MONITORED: dict[str, Callable[[Any], Any]] = {
    "polynomials": tables.polynomial_table, "labels": label_charts, "widths": _widths_so_far,
    "compression": _compressing, "corrupted": _compressing, "symmetry": tables.symmetry_table,
    "connected": path_view,
}  # fmt: skip


def _html(shown: Any) -> Any:
    return pn.pane.HTML(str(shown)) if isinstance(shown, str) else shown


def _column(*shown: Any) -> pn.Column:
    return pn.Column(*map(_html, shown))


VIEWS = {
    "Claims": lambda s: pn.pane.HTML(s.claims._repr_html_()),
    "Polynomials": lambda s: _column(
        tables.polynomial_table(s.polynomials),
        evidence_chart(s.polynomials),
        efficiency_charts(s.efficiency),
    ),
    "Random labels": lambda s: _column(label_charts(s.labels)),
    "Double descent": lambda s: _column(
        weak_charts(s.weak),
        relu_charts(s.relu),
        width_charts(s.widths),
        tables.width_table(s.widths),
        tables.exact_table(s.exact),
    ),
    "Bounds": lambda s: _column(
        tables.compression_table(s.compression),
        tables.compression_scatter(s.compression),
        tables.corrupted_table(s.corrupted),
        tables.posterior_table(s.posterior),
        tables.validity_table(s.validity),
        tables.vc_table(),
    ),
    "Symmetry": lambda s: _column(
        tables.symmetry_table(s.symmetry), tables.pathway_table(s.pathways)
    ),
    "Networks": lambda s: _column(
        tables.learned_table(s.learned), path_view(s.connected), tables.universal_table(s.universal)
    ),
    "Two axes": lambda s: _column(axes_view(s)),
}


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
