"""Pictures of the study, each a pure function of results, and the explorer.

Charts are HoloViews elements; what follows a slider is in `drawings.py`, pictures of networks that
train in `curves.py`, the live part in `live.py`. Nothing is computed here beyond what a picture
needs.
"""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import INK, MUTED, OKABE_ITO, Html, needs_result

from . import accounting, curves, drawings, live, study, tables
from .comparison import Accuracy, Sweep
from .curves import mean_and_error, shown_methods
from .drawings import METHODS
from .experiments import Audit, Calculator, ForgetSize
from .mechanisms import TWINS
from .memory import Membership, Survival, WhiteBox

DASHED, DOTTED = "dashed", "dotted"
C = OKABE_ITO
# Of the experiments in a study, as they run.
ORDER = ("calculator", "audit", "whitebox", "accuracy", "membership", "survival", "forget_size",
         "widths", "sweep")  # fmt: skip


def _curve(x: Any, y: Any, axes: tuple[str, str], name: str, color: str, dash: str = "solid"):
    return hv.Curve((x, y), *axes, label=name).opts(color=color, line_dash=dash)


def _layout(*charts: Any) -> hv.Layout:
    return hv.Layout(list(charts)).opts(shared_axes=False, toolbar=None).cols(2)


def _style(key: str) -> tuple[str, str, str]:
    title, color, dash = METHODS[key]
    return title, color, {"": "solid", "2 3": DOTTED}.get(dash, DASHED)


@needs_result
def calculator_charts(found: Calculator) -> hv.Layout:
    """Epsilon against steps and noise, noise against lambda, OP, steps of MC against delta."""
    at = hv.VLine(found.automatic).opts(color=INK, line_dash=DASHED, line_width=1)
    asked = hv.HLine(found.target).opts(color=MUTED, line_dash=DOTTED)
    # An epsilon without end has no place on an axis.
    spent = np.where(found.epsilon_T < 1e6, found.epsilon_T, np.nan)
    positive = found.lam > 0
    return _layout(
        (_curve(found.T, spent, ("noisy steps T", "ε"), "", C["blue"]) * at * asked).opts(
            title="ε with the noise of the automatic T", logy=True, width=420, height=270),
        (_curve(found.sigmas, found.epsilon_sigma, ("σ of a step", "ε"), "", C["blue"])
         * asked).opts(title="ε at the automatic T", logx=True, logy=True, width=420, height=270),
        _curve(found.lam[positive], found.final_lam[positive],
               ("regularization λ", "noise of the released model"), "", C["vermillion"]).opts(
            title="Final noise for this ε", logx=True, logy=True, width=420, height=270),
        (_curve(found.epsilons, found.classical, ("ε", "noise / sensitivity"), "classical",
                C["purple"], DOTTED)
         * _curve(found.epsilons, found.exact, ("ε", "noise / sensitivity"), "exact", C["blue"])
         ).opts(title="Output perturbation", logx=True, logy=True, width=420, height=270,
                legend_position="top_right"),
        hv.Overlay([
            _curve(found.deltas, T, ("δ", "noisy steps T"), f"C2/σ = {ratio:g}", color, dash)
            for (ratio, T), color, dash in zip(
                found.T_delta.items(), list(C.values()), ["solid", DASHED, DOTTED, "dotdash"],
                strict=False,
            )
        ]).opts(title="Steps of model clipping", logx=True, invert_xaxis=True, width=420,
                height=270, legend_position="right", xticks=[1e-3, 1e-6, 1e-9, 1e-12]),
    )  # fmt: skip


def _accountant(name: str) -> str:
    return "released, as we read it," if name == "released" else name


@needs_result
def audit_charts(found: Audit, delta: float = 1e-5) -> hv.Layout:
    """Errors of the attacker against the printed curve and that of the noise, first setting.

    delta: the one that was printed.
    """
    charts = []
    first = found.cases[0]
    for c in found.cases:
        if (c.C0, c.C1, c.gamma, c.lam) != (first.C0, first.C1, first.gamma, first.lam):
            continue
        a = np.concatenate([np.logspace(-6, -1, 60), np.linspace(0.1, 1, 60)])
        axes = ("type I error", "type II error")
        floor = drawings.promised(c.label, delta, a)
        charts.append((
            hv.Area((a, floor), *axes).opts(color=MUTED, alpha=0.25, line_width=0)
            * _curve(a, floor, axes, "printed", INK, DASHED)
            * _curve(a, accounting.tradeoff(c.mu, a), axes, "exact for the noise", C["blue"])
            * hv.Scatter((c.type1, c.type2), *axes, label="attacker").opts(
                color=C["vermillion"], size=6)
        ).opts(
            title=f"{_accountant(c.accountant)} prints {c.label:g}; exact {c.certified:.3f}",
            width=420, height=310, xlim=(0, 1), ylim=(0, 1), legend_position="top_right",
        ))  # fmt: skip
    return _layout(*charts)


@needs_result
def accuracy_charts(found: Accuracy) -> hv.Layout:
    """Mean test accuracy against SGD steps: all methods, then each beside its twin from 0."""
    plain = shown_methods(found.test, twins=False)
    paired = [key for key in shown_methods(found.test, twins=True)
              if key in TWINS or key in TWINS.values()]  # fmt: skip
    look = {"width": 760, "height": 360, "legend_position": "right", "ylim": (0, 1),
            "legend_limit": 60, "xlim": (0, 1.03 * float(found.budget.max()))}  # fmt: skip
    charts = [
        _accuracy(found, plain).opts(title="All methods", **look),
        _accuracy(found, paired).opts(title="From the old model, or from 0 (dashed)", **look),
    ]
    return hv.Layout(charts).opts(shared_axes=False, toolbar=None).cols(1)


def _accuracy(found: Accuracy, keys: list[str]) -> hv.Overlay:
    axes = ("SGD steps, noisy ones included", "test accuracy")
    longest = max(found.noisy.values(), default=0)
    parts = [hv.VSpan(0, longest).opts(color=MUTED, alpha=0.15)] if longest else []
    for key in keys:
        title, color, dash = _style(key)
        mean, error = mean_and_error(found.test[key])
        if np.isfinite(error).all():
            parts.append(hv.Spread((found.budget, mean, 2 * error), axes[0], [axes[1], "error"])
                         .opts(color=color, alpha=0.12, line_width=0))  # fmt: skip
        parts.append(_curve(found.budget, mean, axes, title, color, dash))
        parts.append(hv.Scatter((found.budget, mean), *axes).opts(color=color, size=4))
    parts.append(hv.HLine(0.1).opts(color=MUTED, line_dash=DOTTED))
    return hv.Overlay(parts).opts(xlabel=axes[0], ylabel=axes[1])  # the span has other names


@needs_result
def path_view(found: Accuracy) -> Html:
    """Accuracy within one run at the largest budget: the fall to chance, and the way back."""
    return curves.path_chart(found.path, found.noisy, True, None, float(np.nanmean(found.original)))


@needs_result
def forest_view(found: Accuracy) -> Html:
    """Paired differences at 40 steps, or the budget nearest to it."""
    column = int(np.argmin(np.abs(found.budget - 40)))
    return curves.forest(found.test, column, int(found.budget[column]))


@needs_result
def size_view(found: ForgetSize) -> Html:
    """Noise against the size of the forget set: constant for two methods, growing for DP-SGD."""
    picture = drawings.noise_by_size(found.size, found.gc, found.mc, found.dp)
    return Html(str(picture) + str(tables.size_table(found)))


@needs_result
def sweep_chart(found: Sweep) -> hv.Overlay:
    """Accuracy against epsilon, methods and their twins from 0 (dashed)."""
    axes = ("ε", "test accuracy")
    parts = []
    for key in shown_methods(found.test, twins=True):
        title, color, dash = _style(key)
        mean, error = mean_and_error(found.test[key])
        parts.append(_curve(found.epsilon, mean, axes, title, color, dash))
        if np.isfinite(error).all():
            parts.append(hv.Spread((found.epsilon, mean, 2 * error), axes[0], [axes[1], "error"])
                         .opts(color=color, alpha=0.1, line_width=0))  # fmt: skip
    return hv.Overlay(parts).opts(title=f"After {found.budget} steps", logx=True, width=640,
                                  height=340, ylim=(0, 1), legend_position="right",
                                  legend_limit=60, xlabel=axes[0], ylabel=axes[1])  # fmt: skip


@needs_result
def whitebox_charts(found: WhiteBox) -> hv.Layout:
    """Projections of the runs from both models on their clipped difference."""
    charts = []
    for name, (ours, other) in found.scores.items():
        both = np.concatenate([ours, other])
        edges = np.linspace(float(both.min()) - 1e-9, float(both.max()) + 1e-9, 41)
        parts, top = [], 0.0
        for label, values, color, dash in (
            ("from the old model", ours, C["vermillion"], "solid"),
            ("from the retrained one", other, C["blue"], DASHED),
        ):
            x, y = drawings.steps_of(values, edges)
            parts.append(_curve(x, y, ("projection", "density"), label, color, dash))
            top = max(top, float(y.max()))
        auc = found.auc[found.names.index(name)]
        charts.append(hv.Overlay(parts).opts(
            title=f"{name.replace('epsilon', 'ε =')}: AUC {auc:.3f}", width=420, height=270,
            ylim=(0, 1.7 * top), xticks=4, legend_position="top_right",
        ))  # fmt: skip
    return _layout(*charts)


@needs_result
def membership_chart(found: Membership) -> hv.Overlay:
    """AUC of the attack against steps after the request; one half is guessing."""
    axes = ("SGD steps", "AUC of the loss attack")
    keys = [key for key in METHODS if any(k == key for k, _ in found.auc)]
    parts = []
    if ("original", 0) in found.auc:
        parts.append(hv.HLine(float(np.nanmean(found.auc["original", 0]))))
    for key in keys:
        title, color, dash = _style(key)
        steps = sorted(s for k, s in found.auc if k == key)
        means, errors = zip(
            *(mean_and_error(found.auc[key, s][:, None]) for s in steps), strict=True
        )
        mean, error = np.concatenate(means), np.concatenate(errors)
        parts.append(_curve(steps, mean, axes, title, color, dash))
        parts.append(hv.Scatter((steps, mean), *axes).opts(color=color, size=6))
        if np.isfinite(error).all():
            parts.append(hv.Spread((steps, mean, 2 * error), axes[0], [axes[1], "error"])
                         .opts(color=color, alpha=0.12, line_width=0))  # fmt: skip
    parts.append(hv.HLine(0.5).opts(color=MUTED, line_dash=DOTTED))
    return hv.Overlay(parts).opts(
        title="Who was deleted? (upper dashed line: original model)", logx=True, width=640,
        height=330, ylim=(0.35, 1.03), legend_position="right", xlabel=axes[0], ylabel=axes[1],
        xticks=sorted({s for _, s in found.auc if s}),
    )  # fmt: skip


@needs_result
def losses_view(found: Membership) -> Html:
    """Losses of deleted and of never seen examples after each method, first seed."""
    return curves.loss_histograms(found.losses, curves.areas(found))


@needs_result
def survival_view(found: Survival, epsilon: float = 1.0, delta: float = 1e-5) -> Html:
    """Accuracy and attack against epsilon, with the bound on what can survive.

    epsilon: marked on the bound, which is for this delta.
    """
    means = tuple(np.nanmean(v, 0) for v in (found.accuracy, found.auc))
    picture = drawings.survival_bound(found.d, epsilon, delta, (found.epsilon, *means))
    return Html(str(picture) + str(tables.survival_table(found)))


def monitor(partial: study.UnlearningStudy) -> Any:
    """What is known while the study runs: the picture of the newest experiment."""
    name = partial.running or next(
        (n for n in reversed(ORDER) if getattr(partial, n) is not None), ""
    )
    found = getattr(partial, name, None)
    if name not in MONITORED or found is None:
        return pn.Spacer()
    try:
        shown = MONITORED[name](found)
    except (IndexError, ValueError, StopIteration):  # too little of it yet
        return pn.Spacer()
    return pn.pane.HTML(str(shown)) if isinstance(shown, str) else shown


def _accuracy_so_far(found: Accuracy) -> Html:
    noisy, path, test = dict(found.noisy), dict(found.path), dict(found.test)  # it grows
    longest = max(noisy.values(), default=0)
    whole = {key: v for key, v in test.items() if np.isfinite(v).any()}
    original = float(np.nanmean(found.original))
    return Html(curves.path_chart(path, noisy, True, None, original)
                + curves.accuracy_chart(found.budget, whole, longest, twins=True))  # fmt: skip


MONITORED = {
    "calculator": tables.accountant_table, "audit": tables.audit_table,
    "whitebox": tables.whitebox_table, "accuracy": _accuracy_so_far,
    "membership": tables.membership_table, "survival": survival_view, "forget_size": size_view,
    "widths": tables.widths_table,
}  # fmt: skip


def _column(*shown: Any) -> pn.Column:
    return pn.Column(*(pn.pane.HTML(str(s)) if isinstance(s, str) else s for s in shown))


VIEWS = {
    "Claims": lambda s: pn.pane.HTML(s.claims._repr_html_()),
    "Certificate": lambda s: _column(
        tables.accountant_table(s.calculator), tables.released_table(s.calculator),
        calculator_charts(s.calculator),
    ),
    "Audit": lambda s: _column(
        tables.audit_table(s.audit), audit_charts(s.audit, s.parameters.delta),
        tables.whitebox_table(s.whitebox), whitebox_charts(s.whitebox),
    ),
    "Accuracy": lambda s: _column(
        accuracy_charts(s.accuracy), path_view(s.accuracy), forest_view(s.accuracy),
        tables.accuracy_table(s.accuracy), tables.widths_table(s.widths),
    ),
    "Membership": lambda s: _column(
        tables.membership_table(s.membership), membership_chart(s.membership),
        losses_view(s.membership),
    ),
    "Survival": lambda s: _column(
        survival_view(s.survival, s.parameters.epsilon, s.parameters.delta)
    ),
    "Forget set and ε": lambda s: _column(size_view(s.forget_size), sweep_chart(s.sweep)),
}  # fmt: skip


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: certificates to drag and to attack, and the study behind its button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: outputs of two runs that are both labelled 1 (PNG, 800 x 400)."""
    import io

    from PIL import Image, ImageDraw, ImageFont

    from workbench.widgets.svg import Scale

    from .audit import scalar_adversary
    from .certificates import GradientClipping

    fine = 2  # drawn twice as large, then made smaller: smooth lines
    sheet = Image.new("RGB", (800 * fine, 400 * fine), "white")
    font = ImageFont.load_default(size=19 * fine)
    made = GradientClipping(0.03, 3, 0.001, 100)
    for side, accountant in enumerate(("released", "exact")):
        mu = float(accounting.mu_of(1.0, 1e-5, accountant))
        clouds = scalar_adversary(made, float(made.sigma(mu)), None, 200_000, 0)
        reach = float(np.quantile(np.abs(clouds[0]), 0.999))
        edges = np.linspace(-reach, reach, 46)
        left = (20 + 390 * side) * fine
        across = Scale(-reach, reach, left, left + 370 * fine)
        outlines = [drawings.steps_of(cloud, edges) for cloud in clouds]
        top = 1.1 * max(float(y.max()) for _, y in outlines)
        up = Scale(0, top, 370 * fine, 60 * fine)
        for (x, y), color in zip(outlines, (C["vermillion"], C["blue"]), strict=True):
            corners = [(float(a), float(b)) for a, b in zip(across(x), up(y), strict=True)]
            corners = [(corners[0][0], 370 * fine), *corners, (corners[-1][0], 370 * fine)]
            layer = Image.new("L", sheet.size, 0)
            ImageDraw.Draw(layer).polygon(corners, fill=70)
            sheet.paste(color, mask=layer)
            ImageDraw.Draw(sheet).line(corners, color, 3 * fine, joint="curve")
        draw = ImageDraw.Draw(sheet)
        epsilon = float(accounting.epsilon_of(mu, 1e-5))
        words = f"as we read the label 1: exactly {epsilon:.2f}" if side == 0 else "exactly 1"
        draw.text((left + 8 * fine, 26 * fine), words, INK, font, anchor="lm")
        draw.line([(left, 370 * fine), (left + 370 * fine, 370 * fine)], INK, 2 * fine)
    draw.line([(400 * fine, 30 * fine), (400 * fine, 385 * fine)], MUTED, fine)
    stream = io.BytesIO()
    sheet.resize((800, 400), Image.Resampling.LANCZOS).save(stream, format="png", optimize=True)
    return stream.getvalue()
