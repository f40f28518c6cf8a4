"""Pictures of A, C and I, and what all of them share: text (SVG) that follows a slider.

Each is a pure function of results that takes a few milliseconds; live part, stills and notebook
show them. Charts of finished studies are in `views.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets.svg import Dots, Line, Mark, chart

from . import polynomials
from .closed_forms import AMPLITUDES, EVIDENCE_ORDERS, GAMMAS, PLOT, Refit
from .factored import SAMPLE_SIZES, Errors, Isotropic, Sample

_C = OKABE_ITO
KINDS = {  # color and dash of each kind of data
    "simple": (_C["blue"], ""), "complex": (_C["vermillion"], "7 4"), "noise": (MUTED, "2 3"),
}  # fmt: skip
WIDE = 600


def row(*figures: str) -> Html:
    """Figures side by side, below each other where there is no room."""
    return Html(
        '<div style="display:flex;flex-wrap:wrap;gap:0 10px;align-items:flex-start">'
        f"{''.join(map(str, figures))}</div>"
    )


def note(words: str) -> Html:
    """A line of small text."""
    return Html(f'<div style="font:13px {FONT};color:{MUTED};margin:4px 0">{words}</div>')


def style(i: int) -> tuple[str, str]:
    """Color and dash of the i-th of many curves."""
    colors = [_C["blue"], _C["vermillion"], _C["green"], _C["orange"], _C["purple"], INK]
    return colors[i % 6], ("", "6 3", "2 3")[i // 6 % 3]


# A ----------------------------------------------------------------------------------------------


def fits(found: Refit, samples: np.ndarray | None = None) -> Html:
    """Data, truth and fit of the three kinds of data; samples (301, k): functions of the prior."""
    figures = []
    for kind in polynomials.KINDS:
        y = found.y[kind]
        low, high = float(y.min()), float(y.max())
        room = 0.25 * (high - low) or 1.0
        parts: list = []
        if samples is not None:
            parts += [Line("" if i else "prior samples", PLOT, s, f"{MUTED}88", "", 1.0)
                      for i, s in enumerate(samples.T)]  # fmt: skip
        if kind != "noise":
            parts.append(Line("truth", PLOT, polynomials.structure(kind, PLOT), INK, "5 3", 1.4))
        parts.append(Line("fit", PLOT, found.curve[kind], KINDS[kind][0]))
        parts.append(Dots("data", found.x, y, INK, "ring", 3))
        test = found.test[kind]
        words = f"train RMSE {found.train[kind]:.3f}"
        words += f", test {test:.3g}" if np.isfinite(test) else ""
        figures.append(chart(
            f"{kind.capitalize()}: {words}", parts, "x", "y", x_range=(-1, 1),
            y_range=(low - room, high + room), width=268, height=210,
        ))  # fmt: skip
    return row(*figures)


def coefficients(found: Refit, gamma: float) -> Html:
    """|w_j| of each fit on a logarithmic axis, and the prior scale gamma^(-j/2)."""
    order = np.arange(len(found.weights["simple"]))
    parts: list = [
        Dots(kind, order, np.abs(found.weights[kind]), color, shape, 2.2)
        for (kind, (color, _)), shape in zip(KINDS.items(), ("disc", "square", "cross"),
                                             strict=True)
    ]  # fmt: skip
    parts.append(Line("prior scale γ^(−j/2)", order, gamma ** (-order / 2), INK, "5 3", 1.6))
    return chart(
        "Coefficients |w|", parts, "order j", "|w|", log_y=True, y_range=(1e-5, 20), width=400,
        height=240,
    )  # fmt: skip


def evidence_curve(found: Refit, order: int) -> Html:
    """Log marginal likelihood against the order, above that at the best order of each."""
    parts: list = [
        Line(kind, EVIDENCE_ORDERS, found.evidence[kind] - found.evidence[kind].max(), color, dash)
        for kind, (color, dash) in KINDS.items()
    ]
    parts.append(Mark(f"J = {order}", order, "x"))
    low = min(float((v - v.max())[9:].min()) for v in found.evidence.values())
    return chart(
        "Evidence, from its best", parts, "order J", "nats", y_range=(1.15 * low - 1, 2),
        x_range=(0, 300), width=400, height=240,
    )  # fmt: skip


def error_by_order(found: Refit, order: int) -> Html:
    """Test RMSE of the two structures against the order: double descent, or none."""
    kinds = ("simple", "complex")
    parts: list = [Line(k, EVIDENCE_ORDERS, found.by_order[k], *KINDS[k]) for k in kinds]
    parts += [
        Mark(f"J + 1 = n = {len(found.x)}", len(found.x) - 1, "x"),
        Dots("now", [order] * 2, [found.test[k] for k in kinds], INK, "ring", 5),
    ]
    return chart(
        "Test RMSE by order", parts, "order J", "RMSE", log_x=True, log_y=True, x_range=(1, 300),
        y_range=(0.02, 50), width=400, height=240,
    )  # fmt: skip


MODELS = {  # of A2: color and dash
    "order 2": (_C["orange"], "6 3"), "order 15": (_C["sky"], "2 3"), "soft 15": (_C["blue"], ""),
    "soft 100": (_C["vermillion"], "7 4"),
}  # fmt: skip


def sample_fits(found: Sample) -> Html:
    """A2: the four models on one draw, their errors by sample size, and what the evidence chose."""
    low, high = float(found.y.min()), float(found.y.max())
    room = 0.3 * (high - low) or 1.0
    parts: list = [Line("truth", PLOT, found.truth, INK, "5 3", 1.4)]
    parts += [Line(name, PLOT, found.fits[name], *look) for name, look in MODELS.items()]
    parts.append(Dots("data", found.x, found.y, INK, "ring", 3))
    left = chart(f"Fits to {len(found.x)} examples", parts, "x", "y", x_range=(-1, 1),
                 y_range=(low - room, high + room), width=400, height=260)  # fmt: skip
    parts = [Line(k, SAMPLE_SIZES, found.errors[k], *look) for k, look in MODELS.items()]
    parts.append(Mark(f"n = {len(found.x)}", len(found.x), "x"))
    middle = chart("Test RMSE by sample size, the same draw", parts, "examples n", "RMSE",
                   log_x=True, log_y=True, x_range=(SAMPLE_SIZES[0], SAMPLE_SIZES[-1]),
                   y_range=(0.01, 10), width=400, height=260)  # fmt: skip
    above = found.evidence - found.evidence.max()
    looks = ((_C["sky"], "2 3"), (_C["blue"], ""), (_C["purple"], "6 3"))
    parts = [
        Line(f"amplitude {a:g}", GAMMAS, values, *look)
        for a, values, look in zip(AMPLITUDES, above.T, looks, strict=True)
    ]
    row_, column = np.unravel_index(above.argmax(), above.shape)
    chosen = f"chosen: γ = {GAMMAS[row_]:g}, amplitude {AMPLITUDES[column]:g}"
    parts.append(Dots(chosen, [GAMMAS[row_]], [0.0], _C["vermillion"], "square", 6))
    bottom = float(np.sort(above.ravel())[len(above.ravel()) // 3])  # the worst are far below
    right = chart("Evidence of γ, order 15", parts, "γ", "nats from the best", log_x=True,
                  x_range=(1, 10), y_range=(1.1 * bottom - 1, 1 - 0.05 * bottom), width=400,
                  height=260)  # fmt: skip
    return row(left, middle, right)


# C ----------------------------------------------------------------------------------------------


def descent(
    d: np.ndarray, train: np.ndarray, test: np.ndarray, undetermined: np.ndarray, n: int,
    plain: np.ndarray | None = None,
) -> Html:  # fmt: skip
    """Errors of random features against their number, with undetermined directions below."""
    parts: list = [Line("train", d, train, _C["sky"], "6 3"), Line("test", d, test, _C["blue"])]
    if plain is not None:
        parts.insert(0, Line("test without ridge", d, plain, f"{MUTED}99", "2 3", 1.4))
    edge = Mark("interpolation: d = n", n, "x")
    top = chart("Random ReLU features of digits", [*parts, edge], "features d", "error rate",
                log_x=True, y_range=(0, 1), width=WIDE, height=260)  # fmt: skip
    below = chart(
        "Directions that the data leave open: min(n, d) − N_eff",
        [Line("undetermined", d, undetermined, _C["vermillion"]), edge], "features d",
        "directions", log_x=True, width=WIDE, height=180,
    )  # fmt: skip
    return Html(top + below)


def weak_descent(found: Errors) -> Html:
    """C1: errors of least squares on weak features, and the directions that are left open."""
    edge = Mark(f"d = n = {found.n}", found.n, "x")
    left = chart(
        "Weak features: relative error",
        [Line("train", found.d, found.train, _C["sky"], "6 3"),
         Line("test", found.d, found.test, _C["blue"]), edge],
        "features d", "relative error", log_x=True, log_y=True, y_range=(0.01, 30), width=400,
        height=250,
    )  # fmt: skip
    right = chart(
        "Directions that the data leave open: min(n, d) − N_eff",
        [Line("undetermined", found.d, found.undetermined, _C["vermillion"]), edge], "features d",
        "directions", log_x=True, width=400, height=250,
    )  # fmt: skip
    return row(left, right)


def exact_descent(found: Isotropic, sigma: float, norm: float) -> Html:
    """C4: the expected error in closed form, its two terms, and a simulation."""
    d, bias, variance = found.terms()
    n = found.n
    simulated = norm**2 * found.bias + sigma**2 * found.variance
    top = max(2.0 * norm**2, 8 * sigma**2, 0.1)
    parts = [
        Line("closed form", d, norm**2 * bias + sigma**2 * variance, _C["blue"]),
        Line("of it, what is not seen: |θ|² (1 − n/d)", d, norm**2 * bias, _C["green"], "6 3", 1.5),
        Line("of it, noise", d, sigma**2 * variance, _C["orange"], "2 3", 1.5),
        Dots(f"mean of {found.bias.shape[1]} draws", found.d, simulated.mean(1), INK, "ring", 4),
        Mark(f"d = n = {n}", n, "x"),
    ]
    return chart(
        "Isotropic design: E|θ̂ − θ|²", parts, "features d", "squared distance", log_x=True,
        y_range=(0, top), width=WIDE, height=270,
    )  # fmt: skip


# I ----------------------------------------------------------------------------------------------


def axes_chart(
    places: Sequence[tuple[str, float, float]], own: Sequence[tuple[str, float, float]] = ()
) -> Html:
    """The two axes: flexibility against simplicity bias; own: the reader's runs, crosses."""
    shapes = ("disc", "square", "ring")
    parts = [
        Dots(name, [flexible], [simple], style(i)[0], shapes[i // 6 % 3], 5)
        for i, (name, flexible, simple) in enumerate(places)
    ]
    parts += [Dots(name, [f], [s], _C["vermillion"], "cross", 7) for name, f, s in own]
    return chart(
        "Flexible and simple are two axes", parts, "flexibility: share of pure noise fitted",
        "simplicity bias: structure found", x_range=(-0.03, 1.05), y_range=(-0.05, 1.05),
        width=WIDE, height=330,
    )  # fmt: skip
