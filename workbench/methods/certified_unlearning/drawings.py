"""Pictures that follow a slider, as text (SVG): the live part, stills and the notebook show them.

Each is a pure function of numbers that takes a few milliseconds. Pictures of trained networks are
in `curves.py`, charts of finished studies in `views.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets import images
from workbench.widgets.svg import Band, Dots, Line, Mark, Raster, chart

from . import accounting, certificates
from .mechanisms import TITLES

_C = OKABE_ITO
STYLES = {  # color and dash of each method; a twin without information has the same color
    "retrain": (INK, ""), "retrain_torch": (MUTED, "2 3"), "retrain_tuned": (MUTED, "7 4"),
    "finetune": (_C["sky"], "2 3"),
    "clip": (_C["orange"], "2 3"), "op": (_C["purple"], ""), "op_classical": (_C["purple"], "2 3"),
    "op_wide": (_C["purple"], "10 3 2 3"),
    "gc": (_C["vermillion"], ""), "mc": (_C["blue"], ""), "op_noinfo": (_C["purple"], "6 3"),
    "gc_noinfo": (_C["vermillion"], "6 3"), "mc_noinfo": (_C["blue"], "6 3"),
    "dp_sgd": (_C["green"], ""),
}  # fmt: skip
METHODS = {key: (title, *STYLES[key]) for key, title in TITLES.items()}  # title, color, dash
ACCOUNTANTS = {  # title, color, dash
    "exact": ("exact", _C["blue"], ""), "rdp": ("Renyi", _C["green"], "7 4"),
    "zcdp": ("zCDP", _C["purple"], "2 3"),
    "released": ("released scripts, as we read them", _C["vermillion"], "10 3 2 3"),
}  # fmt: skip
WIDE, NARROW = 620, 300
GRID = 100  # points a side of the landscape
LONGEST = 1000  # steps, its upper edge


def row(*figures: str) -> Html:
    """Figures side by side, below each other where there is no room."""
    return Html(
        '<div style="display:flex;flex-wrap:wrap;gap:0 10px;align-items:flex-start">'
        f"{''.join(map(str, figures))}</div>"
    )


def note(words: str) -> Html:
    """A line of small text."""
    return Html(f'<div style="font:13px {FONT};color:{MUTED};margin:4px 0">{words}</div>')


def said(words: str, good: bool | None = None) -> Html:
    """A line of text that matters; good: with a sign and a color for it."""
    color, sign = {True: (_C["green"], "✓ "), False: (_C["vermillion"], "✗ ")}.get(good, (INK, ""))
    return Html(
        f'<div role="status" style="font:13.5px/1.5 {FONT};border-left:3px solid {color};'
        f'padding:2px 10px;margin:6px 0"><b style="color:{color}">{sign}</b>{words}</div>'
    )


def steps_of(values: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The outline of a histogram, as density: x (2k,), y (2k,) for k bins."""
    counts, _ = np.histogram(values, edges)
    heights = counts / max(len(values), 1) / np.diff(edges)
    return np.repeat(edges, 2)[1:-1], np.repeat(heights, 2)


# The audit --------------------------------------------------------------------------------------


def clouds(plus: np.ndarray, minus: np.ndarray, threshold: float | None = None) -> Html:
    """Densities of the outputs of the two runs (n,) each, and the attacker's threshold."""
    both = np.concatenate([plus, minus])
    low, high = np.quantile(both, [0.0005, 0.9995])
    edges = np.linspace(low, high, 61)
    parts: list = []
    for name, values, color, dash in (
        ("trained without the deleted data, then the same steps", minus, _C["blue"], "6 3"),
        ("trained with it, then unlearned", plus, _C["vermillion"], ""),
    ):
        x, y = steps_of(values, edges)
        parts += [Band("", x, 0 * y, y, color, 0.18), Line(name, x, y, color, dash)]
    if threshold is not None:
        parts.append(Mark("attacker's threshold", threshold, "x"))
    return chart(
        f"Two clouds: {len(plus):,} outputs each", parts, "output x after T steps", "density",
        x_range=(float(low), float(high)), width=WIDE, height=200,
    )  # fmt: skip


def promised(epsilon: float, delta: float, type1: np.ndarray) -> np.ndarray:
    """The least type II error that (epsilon, delta) allows at each type I error (k,)."""
    growth = np.exp(min(epsilon, 700.0))
    return np.maximum(0, np.maximum(1 - delta - growth * type1, (1 - delta - type1) / growth))


def tradeoff(
    epsilon: float, delta: float, mu: float,
    points: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> Html:  # fmt: skip
    """Type II against type I error: what is printed, what the noise gives, what the attacker got.

    epsilon, delta: the printed guarantee; mu: the exact one of the noise; points: type I, type II
    (k,) and their confidence boxes (k, 4).
    """
    # Dense at both ends, where the curves turn.
    a = np.sort(np.concatenate([np.logspace(-6, -1, 60), np.linspace(0.1, 1, 60)]))
    floor = promised(epsilon, delta, a)
    parts: list = [
        Band("ruled out by the printed ε, δ", a, 0 * a, floor, MUTED, 0.28),
        Line("printed: ε, δ", a, floor, INK, "6 3", 1.6),
        Line("exact for the noise: G_μ", a, accounting.tradeoff(mu, a), _C["blue"]),
    ]
    if points is not None:
        type1, type2, boxes = points
        parts += [Band("", [b[0], b[1]], [b[2]] * 2, [b[3]] * 2, _C["vermillion"], 0.35)
                  for b in boxes]  # fmt: skip
        parts.append(Dots("attacker, 95 % boxes", type1, type2, _C["vermillion"], "disc", 3.2))
    return chart(
        "Errors of the attacker", parts, "type I error (false alarms)", "type II error (misses)",
        x_range=(0, 1), y_range=(0, 1), width=WIDE, height=290,
    )  # fmt: skip


def verdict(epsilon: float, exact: float, bound: float, accountant: str, n: int) -> Html:
    """One sentence: what is printed, what is right, what the attacker showed."""
    title = ACCOUNTANTS[accountant][0]
    words = (
        f"Accountant <b>{title}</b> prints ε = {epsilon:.4g}; exact for this noise: "
        f"<b>{exact:.4g}</b>. The attacker shows ε ≥ <b>{max(bound, 0):.3g}</b> ({n:,} runs a "
        "side, 95 %)"
    )
    if bound > epsilon:
        return said(f"{words}: the printed figure is refuted.", False)
    return said(f"{words}: no contradiction.", True)


@lru_cache(maxsize=8)
def _accountant_curves(delta: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    x = np.logspace(-3, 2, 90)
    mu = np.sqrt(2 * x)
    return x, {key: accounting.epsilon_of(mu, delta, key) for key in ACCOUNTANTS}


def accountants(rho: float, delta: float) -> Html:
    """Epsilon by each accountant against rho_z = mu^2 / 2, and the present one."""
    x, curves = _accountant_curves(delta)
    parts: list = [
        Line(title, x, curves[key], *look) for key, (title, *look) in ACCOUNTANTS.items()
    ]
    now = float(accounting.epsilon_of(np.sqrt(2 * rho), delta, "exact"))
    parts += [Mark("", rho, "x"), Dots("now", [rho], [now], INK, "ring", 5)]
    return chart(
        f"Four ways from ρ = μ²/2 to ε, δ = {delta:g}", parts, "ρ = μ²/2", "ε", log_x=True,
        log_y=True, y_range=(0.02, 300), width=WIDE, height=270,
    )  # fmt: skip


# The certificate --------------------------------------------------------------------------------


def lam_range(gamma: float) -> tuple[float, float]:
    """Ends of the lambda axis of the landscape: from 1/1000 of the largest, where rho is 0."""
    return 0.00099 / gamma, 0.99 / gamma


def lam_at(share: float, gamma: float) -> float:
    """Lambda at a place of that axis from 0 to 1, to three digits."""
    low, high = lam_range(gamma)
    return float(f"{low * (high / low) ** share:.3g}")


def share_of(lam: float, gamma: float) -> float:
    """The place of a lambda on that axis."""
    low, high = lam_range(gamma)
    return float(np.clip(np.log(max(lam, low) / low) / np.log(high / low), 0, 1))


def landscape(
    C0: float, C1: float, gamma: float, lam: float, T: int, *, mu: float, delta: float,
    op: float, sigma: float | None = None,
) -> Html:  # fmt: skip
    """Final noise at mu, or with `sigma` the epsilon of that noise, over lambda and T.

    op: the radius of output perturbation whose noise is compared.
    """
    low, high = lam_range(gamma)
    lams = np.geomspace(low, high, GRID)
    every = np.round(np.geomspace(1, LONGEST, GRID))[:, None]  # even in the logarithm
    certificate = certificates.GradientClipping(C0, C1, gamma, lams[None, :])
    if sigma is None:
        values = certificate.final_noise(mu, every)
        title, unit = f"Noise of the released model at μ = {mu:.3g}, a coordinate", "noise"
    else:
        values = accounting.epsilon_of(certificate.mu(sigma, every), delta, "exact")
        title, unit = f"ε of noise σ = {sigma:.3g} in every step, δ = {delta:g}", "ε"
    shown = np.log10(np.maximum(values, 1e-12))
    ends = float(shown.min()), float(shown.max())
    pixels, colors = images.field_image(shown[::-1], *ends, scale=1)
    address = images.data_url(images.png(pixels, colors))
    parts: list = [Raster((low, high), (1, LONGEST), address, unit)]
    if C1:  # else nothing pushes the runs apart, and no number of steps is the best
        automatic = certificates.GradientClipping(C0, C1, gamma, lams).steps()
        parts += [Line("", lams, automatic, "white", "", 4),
                  Line("automatic T", lams, automatic, INK, "", 1.6)]  # fmt: skip
    if sigma is None:
        less = values < 2 * op / mu
        edge = np.where(less.any(0), every[np.argmax(less, axis=0), 0], np.nan)
        parts += [Line("", lams, edge, "white", "", 4),
                  Line(f"above: less than output perturbation of radius {op:g}", lams, edge,
                       _C["vermillion"], "6 3", 2)]  # fmt: skip
    parts += [Mark("", lam, "x"), Dots("", [lam], [T], "white", "disc", 7),
              Dots("now", [lam], [T], _C["vermillion"], "disc", 4.5)]  # fmt: skip
    figure = chart(title, parts, "regularization λ", "noisy steps T", log_x=True, log_y=True,
                   x_range=(low, high), y_range=(1, LONGEST), width=WIDE, height=330)  # fmt: skip
    return Html(str(figure) + _color_bar(ends, unit, colors))


def _color_bar(ends: tuple[float, float], unit: str, colors: Sequence[str]) -> str:
    stops = ", ".join(colors[k] for k in (0, 63, 127, 190, 254))
    low, high = (f"{10**end:.3g}" for end in ends)
    return (
        f'<div style="font:12px {FONT};display:flex;gap:8px;align-items:center;'
        f'margin:0 0 8px 28px">'
        f'<span>{unit} {low}</span><span aria-hidden="true" style="width:180px;height:10px;'
        f'background:linear-gradient(90deg,{stops})"></span><span>{high}</span></div>'
    )


def certificate_words(
    certificate: certificates.GradientClipping, T: int, mu: float, op: float
) -> Html:
    """The numbers of gradient clipping at mu, beside output perturbation of radius `op`."""
    c = certificate
    final, other = float(c.final_noise(mu, T)), 2 * op / mu
    automatic = f" ({c.steps()} is automatic)" if c.C1 else ""
    limit = f" (2 C1 / (λμ) = {2 * c.C1 / c.lam / mu:.4g} after many steps)" if c.lam else ""
    return said(
        f"T = {T} steps{automatic}, ρ = 1 − γλ = {c.rho:.4g}. Two runs end at most Δ = "
        f"{float(c.shift(T)):.4g} apart before noise. Noise σ = {float(c.sigma(mu, T)):.4g} a "
        f"step, <b>{final:.4g}</b> a coordinate at the end{limit}. Output perturbation of radius "
        f"{op:g}: {other:.4g}, {'more' if other > final else 'less'}."
    )


def shift_chart(certificate: certificates.GradientClipping, T: int) -> Html:
    """The proof as a picture: distance of two coupled runs, and what is absorbed by the noise."""
    t = np.arange(T + 1)
    apart = np.concatenate([[2 * certificate.C0], certificate.shift(t[1:])])
    left, absorbed = certificate.distances(T)
    few = T <= 60
    parts = [
        Line("apart without noise, at most", t, apart, _C["vermillion"], "6 3"),
        Line("still to be hidden: z", t, np.maximum(left, 0), _C["blue"]),
        Line("absorbed by the noise of the step", t[1:], absorbed, _C["green"], "2 3"),
    ]
    if few:
        parts += [
            Dots("", t, np.maximum(left, 0), _C["blue"]),
            Dots("", t[1:], absorbed, _C["green"], "square"),
        ]
    return chart(
        "Shifts: what the noise of each step hides", parts, "step t", "distance", width=WIDE,
        height=220,
    )  # fmt: skip


# Model clipping ---------------------------------------------------------------------------------

RATIOS = (0.25, 0.5, 1.0, 1.5)


def cascade(C2: float, sigma: float, epsilon: float, delta: float, steps: int = 40) -> Html:
    """delta_t of model clipping, for this C2/sigma and others, with the weak bound of this one."""
    ratio = C2 / sigma
    deltas, local, weak = certificates.cascade_path([*RATIOS, ratio], epsilon, steps)
    t = np.arange(steps + 1)
    low = delta / 30
    parts: list = []
    styles = zip(RATIOS, ("2 3", "5 3", "9 3", "12 3 2 3"), strict=True)
    for k, (r, dash) in enumerate(styles):
        if abs(r - ratio) < 1e-9:
            continue  # it is the blue one
        end = _first_below(deltas[:, k], low)
        parts.append(Line(f"C2/σ = {r:g}", t[:end], deltas[:end, k], MUTED, dash, 1.4))
    end = _first_below(deltas[:, -1], low)
    own, near = deltas[:end, -1], local[: end - 1, -1]
    titles = ["start: δ = 1"] + [
        f"step {k + 1}: δ = {d:.4g}, local ε of the step {e:.4g}"
        for k, (d, e) in enumerate(zip(own[1:], near, strict=True))
    ]
    done = np.flatnonzero(deltas[:, -1] <= delta)
    reached = f"T = {done[0]}" if len(done) else f"not within {steps} steps"
    parts += [
        Line("weak bound, 2Φ(C2/σ) − 1 a step", t, weak[:, -1], _C["orange"], "6 3"),
        Line(f"C2/σ = {ratio:.3g}", t[:end], own, _C["blue"]),
        Dots("", t[:end], own, _C["blue"], "disc", 3.5, titles),
        Mark(f"δ = {delta:g}: {reached}", delta),
    ]
    return chart(
        f"Model clipping: δ after t steps, for ε = {epsilon:g}", parts, "noisy steps t", "δ",
        log_y=True, y_range=(low, 1.3), x_range=(0, _room(done, steps)), width=WIDE, height=290,
        words=f"delta falls ever faster: {'; '.join(titles[:8])}. {reached}",
    )  # fmt: skip


def _first_below(values: np.ndarray, low: float) -> int:
    """How many values to draw: to the first below `low`."""
    below = np.flatnonzero(values < low)
    return int(below[0]) + 1 if len(below) else len(values)


def _room(done: np.ndarray, steps: int) -> int:
    return int(min(steps, max(8, 1.5 * done[0]))) if len(done) else steps


# What survives ----------------------------------------------------------------------------------


def survival_bound(
    d: int, epsilon: float, delta: float, found: tuple[np.ndarray, ...] | None = None
) -> Html:
    """Old model over noise, at most mu / (2 sqrt d) for GC and OP, against epsilon; two charts.

    found: epsilons (K,), test accuracy (K,) and attack AUC (K,) as measured, if there are some.
    """
    x = np.logspace(-1, 5, 80)
    mu = accounting.mu_of(x, delta)
    snr = certificates.survival_bound(mu, d)
    now = float(certificates.survival_bound(accounting.mu_of(epsilon, delta), d))
    figures = [chart(
        f"What can survive, d = {d:,}",
        [Line("old model / noise ≤ μ / (2 √d)", x, snr, _C["blue"]),
         Mark("as large as the noise", 1.0), Dots("now", [epsilon], [now], INK, "ring", 5)],
        "ε", "signal / noise", log_x=True, log_y=True, x_range=(0.1, 1e5),
        width=NARROW + 20, height=270,
    )]  # fmt: skip
    if found is not None and len(found[0]):
        epsilons, accuracy, auc = found
        figures.append(chart(
            "Accuracy and attack, output perturbation",
            [Line("", epsilons, accuracy, _C["blue"]),
             Dots("test accuracy", epsilons, accuracy, _C["blue"], "disc", 4),
             Line("", epsilons, auc, _C["vermillion"], "6 3"),
             Dots("AUC of the attack", epsilons, auc, _C["vermillion"], "square", 4),
             Mark("guessing", 0.5)],
            "ε", "share", log_x=True, x_range=(0.1, 2e5), y_range=(0.4, 1.02),
            width=NARROW + 20, height=270,
        ))  # fmt: skip
    return row(*figures)


def noise_by_size(
    size: Sequence[int], gc: Sequence[float], mc: Sequence[float], dp: Sequence[float]
) -> Html:
    """Noise against the number of deleted examples (K,), over that for the first: flat, or not."""
    x = np.asarray(size, float)
    gc, mc, dp = (np.asarray(v, float) / v[0] for v in (gc, mc, dp))
    parts = [
        Line("gradient clipping, σ", x, gc, _C["vermillion"]),
        Line("model clipping, σ", x, mc, _C["blue"], "6 3"),
        Line("", x, dp, _C["green"]),
        Dots("DP-SGD, multiplier z", x, dp, _C["green"], "square", 4),
    ]
    return chart("Noise against the size of the forget set, over that for one example", parts,
                 "deleted examples", "relative noise", width=WIDE, height=230)  # fmt: skip
