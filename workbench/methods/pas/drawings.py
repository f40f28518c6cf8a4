"""Pictures that follow a slider, as text (SVG): the live part, stills and the notebook show them.

Each is a pure function that takes a few milliseconds. Charts of finished studies are in `views.py`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets.svg import Dots, Line, Mark, Scale, chart, number

from .estimators import Estimate
from .experiments import Quality, Regret
from .shrinkage import RiskCurve, weights
from .trials import TITLES, Outcome, Split

_C = OKABE_ITO
DASHED, DOTTED = "7 4", "2 3"
# Color and dash: what shrinks to predictions warm, what does not shrink cool.
STYLES = {
    "classical": (INK, ""), "prediction": (_C["orange"], ""), "ppi": (_C["sky"], DASHED),
    "pt": (_C["blue"], ""), "unipt": (_C["blue"], DOTTED), "shrink_classical": (_C["green"], ""),
    "shrink_average": (_C["purple"], ""), "pas": (_C["vermillion"], ""),
    "unipas": (_C["vermillion"], DASHED), "eb_ppi": (MUTED, DASHED),
    "pas_official_search": (_C["vermillion"], DOTTED), "unipas_official": (_C["sky"], DOTTED),
    "shrink_average_official": (_C["purple"], DOTTED),
    "shrink_average_within": (_C["purple"], DASHED),
    "pas_official": (_C["vermillion"], DOTTED), "pas_per_problem": (_C["green"], DOTTED),
}  # fmt: skip
SHAPES = {"classical": "ring", "prediction": "square", "pt": "cross", "shrink_average": "square"}
WIDTH, HEIGHT = 600, 320
SPAN = 5  # decades of omega on each side of the largest variance; beyond are the two ends
SEGMENTS = 120  # problems in the picture of segments


def omega_at(share: float, top: float) -> float:
    """omega at a place of the axis of the CURE picture, 0 to 1; its ends are 0 and infinity."""
    if share <= 0.02:
        return 0.0
    return np.inf if share >= 0.98 else float(top * 10 ** (SPAN * (2 * share - 1)))


def share_of(omega: float, top: float) -> float:
    """The place of an omega on that axis."""
    if omega <= 0:
        return 0.0
    if not np.isfinite(omega):
        return 1.0
    return float(np.clip(0.5 + np.log10(omega / top) / (2 * SPAN), 0.021, 0.979))


def omega_text(omega: float) -> str:
    """`0`, `∞` or a short number."""
    return "∞" if not np.isfinite(omega) else number(float(f"{omega:.3g}"))


def moved(pas: Estimate, omega: float) -> Estimate:
    """PAS with another omega: only the weights change."""
    from dataclasses import replace

    weight = weights(omega, pas.variance)
    theta = weight * pas.start + (1 - weight) * pas.target
    return replace(pas, omega=omega, weight=weight, theta=theta)


def microscope(split: Split, found: Mapping[str, Estimate], j: int) -> Html:
    """One problem on a number line: labels, predictions, the de-bias step, the shrink step."""
    p, pas = split.problems, found["pas"]
    lam, w = float(pas.lam[j]), float(pas.weight[j])
    y, z, zt = float(p.y_bar[j]), float(p.z_bar[j]), float(p.z_tilde[j])
    pt, ppi, end, truth = (
        float(pas.start[j]), y + zt - z, float(pas.theta[j]), float(split.truth[j])
    )  # fmt: skip
    values = [y, z, zt, pt, ppi, end, truth]
    room = 0.12 * (max(values) - min(values)) or 0.5
    x = Scale(min(values) - room, max(values) + room, 150, WIDTH - 16)
    note = f"n = {p.n[j]}, N = {p.N[j]}, λ = {lam:.3f}, weight on PT = {w:.3f}"
    rows = [
        ("labels", [("Ȳ", y, "classical")], None),
        ("predictions", [("Z̄ labelled", z, "ppi"), ("Z̃ rest", zt, "prediction")], None),
        ("de-bias by λ(Z̃ − Z̄)", [("PPI", ppi, "ppi"), ("PT", pt, "pt")], (y, pt, "pt")),
        ("shrink to Z̃", [("Z̃", zt, "prediction"), ("PAS", end, "pas")], (pt, end, "pas")),
    ]
    row, top = 46, 14
    base = top + row * len(rows)
    parts = [
        f'<path d="M{float(x(v)):.1f} {top}V{base}" stroke="#E4E7EB"/><text x="{float(x(v)):.1f}" '
        f'y="{base + 16}" text-anchor="middle">{number(v)}</text>'
        for v in x.ticks()
    ]
    at = float(x(truth))
    parts.append(
        f'<path d="M{at:.1f} {top - 8}V{base}" stroke="{INK}" stroke-width="2" '
        f'stroke-dasharray="4 3"/><text x="{at + 5:.1f}" y="{top}">truth</text>'
    )
    for k, (title, points, arrow) in enumerate(rows):
        middle = top + row * k + 27
        parts.append(f'<text x="8" y="{middle + 4}" fill="currentColor">{title}</text>')
        if arrow:
            parts.append(_arrow(float(x(arrow[0])), float(x(arrow[1])), middle, arrow[2]))
        places = [float(x(v)) for _, v, _ in points]
        for i, (name, value, key) in enumerate(points):
            crowded = i > 0 and abs(places[i] - places[0]) < 5 + 4 * len(name + points[0][0])
            above = middle + (19 if crowded else -9)
            parts.append(
                f'<g><title>{name} = {value:.4g}; {note}</title><circle cx="{places[i]:.1f}" '
                f'cy="{middle}" r="5" fill="{STYLES[key][0]}"/><text x="{places[i]:.1f}" '
                f'y="{above}" text-anchor="middle" font-weight="600">{name}</text></g>'
            )
    title = f"Problem {p.names[j]}"
    spoken = (
        f"{title}: mean label {y:.3g}, mean prediction {zt:.3g}, PPI {ppi:.3g}, PT {pt:.3g}, PAS "
        f"{end:.3g}, truth {truth:.3g}; {note}"
    )
    errors = ", ".join(
        f"{name} {v - truth:+.3f}"
        for name, v in (("Ȳ", y), ("Z̃", zt), ("PPI", ppi), ("PT", pt), ("PAS", end))
    )
    return _figure(
        title, f"{''.join(parts)}", spoken, base + 22,
        f"{note}. Errors: {errors}.",
    )  # fmt: skip


def _arrow(start: float, stop: float, y: float, key: str) -> str:
    color = STYLES[key][0]
    if abs(stop - start) < 2:
        return ""
    tip = 8 if stop > start else -8
    stop -= np.sign(tip) * 5  # the point itself is there
    return (
        f'<path d="M{start:.1f} {y}H{stop - tip / 2:.1f}" stroke="{color}" stroke-width="2.5"/>'
        f'<path d="M{stop:.1f} {y}l{-tip} -5v10z" fill="{color}"/>'
    )


def _figure(title: str, inside: str, spoken: str, height: float, note: str) -> Html:
    return Html(
        f'<figure style="margin:0 0 8px;max-width:{WIDTH}px;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">'
        f'{html.escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{html.escape(spoken)}" style="width:100%;height:auto;display:block;'
        f'font:11px {FONT};fill:currentColor">{inside}</svg>'
        f'<div style="color:{MUTED}">{html.escape(note)}</div></figure>'
    )


def truth_range(split: Split) -> tuple[float, float]:
    """Both axes of the scatter: what the truths and the estimates of most problems span."""
    values = np.concatenate([split.truth, split.problems.y_bar, split.problems.z_tilde])
    low, high = np.quantile(values, [0.005, 0.995])
    room = 0.08 * (high - low) or 0.5
    return float(low - room), float(high + room)


def scatter(
    split: Split,
    found: Mapping[str, Estimate],
    shown: Sequence[str],
    chosen: np.ndarray,
    width: int = WIDTH,
    height: int = 360,
) -> Html:
    """Truth against estimate of all problems, one color and shape an estimator; chosen (m,): mask.

    Problems that are not chosen are pale.
    """
    limits = truth_range(split)
    parts: list[Line | Dots] = [Line("", limits, limits, MUTED, DOTTED, 1.2)]
    rest = ~chosen
    for key in shown:
        color, shape, theta = STYLES[key][0], SHAPES.get(key, "disc"), found[key].theta
        if rest.any():
            parts.append(Dots("", split.truth[rest], theta[rest], f"{color}22", shape, 2.2))
        parts.append(
            Dots(TITLES[key], split.truth[chosen], theta[chosen], f"{color}B0", shape, 2.8)
        )
    count = f"{chosen.sum()} of {len(chosen)} problems" if rest.any() else f"{len(chosen)} problems"
    return chart(
        f"Truth and estimates ({count})", parts, "truth θ", "estimate", x_range=limits,
        y_range=limits, width=width, height=height,
    )  # fmt: skip


def segments(split: Split, pas: Estimate, chosen: np.ndarray) -> Html:
    """From PT (blue) to the mean prediction (orange), with PAS on the way, by the truth."""
    order = np.flatnonzero(chosen)
    order = order[np.argsort(split.truth[order], kind="stable")]
    if len(order) > SEGMENTS:
        order = order[np.linspace(0, len(order) - 1, SEGMENTS).round().astype(int)]
    x = np.arange(1, len(order) + 1)
    gap = np.full(len(order), np.nan)
    path = np.column_stack([pas.start[order], pas.target[order], gap]).ravel()
    lines = [
        Line("", np.repeat(x, 3), path, f"{MUTED}90", width=1.0),
        Dots("PT", x, pas.start[order], _C["blue"], "cross", 2.2),
        Dots("prediction mean", x, pas.target[order], _C["orange"], "square", 2.0),
        Dots("PAS", x, pas.theta[order], _C["vermillion"], "disc", 2.6),
        Line("truth", x, split.truth[order], INK, DASHED, 1.2),
    ]
    low = float(np.nanmin([path[np.isfinite(path)].min(), split.truth[order].min()]))
    high = float(np.nanmax([path[np.isfinite(path)].max(), split.truth[order].max()]))
    title = f"Each on its way from PT to the prediction mean ({len(order)} problems shown)"
    return chart(
        title, lines, "problems in the order of their truth", "θ",
        x_range=(0, len(order) + 1), y_range=(low, high), width=WIDTH, height=280,
    )  # fmt: skip


def cure_drawing(
    cure: RiskCurve,
    loss: RiskCurve | None,
    omega: float,
    chosen: RiskCurve | None = None,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Html:
    """CURE and the true loss over omega, both ends included; the vertical line is at omega.

    chosen: CURE of the chosen problems alone.
    """
    top = float(cure.s.max())
    inside = top * np.geomspace(10.0**-SPAN, 10.0**SPAN, 121)[3:-3]
    omegas = np.concatenate([[0.0], inside, [np.inf]])
    place = np.concatenate([[0.0], [share_of(o, top) for o in inside], [1.0]])
    x = top * 10 ** (SPAN * (2 * place - 1))
    curves = [("CURE, from the data alone", cure, _C["vermillion"], "")]
    if chosen is not None:
        curves.append(("CURE of the chosen problems", chosen, _C["green"], DOTTED))
    if loss is not None:
        curves.append(("true loss", loss, INK, DASHED))
    parts: list[Line | Dots | Mark] = []
    for name, curve, color, dash in curves:
        risks = curve(omegas)
        parts += [
            Line(name, x[1:-1], risks[1:-1], color, dash),
            Dots("", x[[0, -1]], risks[[0, -1]], color, "disc", 4),
        ]
    best = cure.minimize()
    spots = [("ω̂ of CURE", best, cure, _C["vermillion"], "square")]
    if loss is not None:
        spots.append(("oracle ω", loss.minimize(), loss, INK, "ring"))
    for name, at, curve, color, shape in spots:
        there = top * 10 ** (SPAN * (2 * share_of(at, top) - 1))
        risk = float(curve(at))
        label = f"{name} = {omega_text(at)}: {number(float(f'{risk:.4g}'))}"
        parts.append(Dots(label, [there], [risk], color, shape, 5))
    line = top * 10 ** (SPAN * (2 * share_of(omega, top) - 1))
    ends = (float(x[0]), float(x[-1]))
    parts += [Mark("0", ends[0], "x"), Mark("∞", ends[1], "x")]
    parts.append(Mark(f"ω = {omega_text(omega)}", line, "x"))
    every = np.concatenate([c(omegas) for _, c, _, _ in curves])
    low, high = min(float(every.min()), 0.0), float(np.quantile(every, 0.97))
    return chart(
        "Risk estimate" + (" and true loss" if loss is not None else ""), parts,
        "ω (left end 0: prediction mean, right end ∞: PT)",
        "mean squared error", log_x=True, x_range=ends, y_range=(low, 1.08 * high),
        width=width, height=height,
        words=f"CURE over omega, least {float(cure(best)):.4g} at {omega_text(best)}; the line is "
        f"at {omega_text(omega)} with CURE {float(cure(omega)):.4g}",
    )  # fmt: skip


def bars(
    title: str,
    means: Mapping[str, float],
    errors: Mapping[str, float] | None = None,
    regimes: Mapping[str, str] | None = None,
    note: str = "",
) -> Html:
    """MSE x 1000 of each row as a bar with its standard error; the least is marked.

    A bar that would leave the picture is cut and ends in an arrow; its number stands beside it.
    """
    keys = list(means)
    values = 1e3 * np.array([means[k] for k in keys])
    spread = 1e3 * np.array([(errors or {}).get(k, np.nan) for k in keys])
    longest = min(float(values.max()), 3.2 * float(np.median(values))) or 1.0
    x = Scale(0, longest, 190, WIDTH - 140)
    row = 21
    parts, said = [], []
    best = int(np.argmin(values))
    for k, (key, value, error) in enumerate(zip(keys, values, spread, strict=True)):
        y, color = 6 + row * k, STYLES[key][0]
        cut = value > longest * 1.001
        end = float(x(min(value, longest)))
        known = np.isfinite(error)
        text = f"{value:.4g}" + (f" ± {error:.2g}" if known else "")
        text += " ◀ least" if k == best else ""
        regime = (regimes or {}).get(key, "")
        dashed = f' stroke="{color}" stroke-dasharray="4 3"' if STYLES[key][1] else ""
        opacity = 0.35 if STYLES[key][1] else 0.85
        tip = f'<path d="M{end} {y + 2}l9 6.5l-9 6.5z" fill="{color}"/>' if cut else ""
        whisker = ""
        if known and not cut:
            a, b = (float(v) for v in x([max(value - error, 0), value + error]))
            whisker = f'<path d="M{a:.1f} {y + 8.5}H{b:.1f}" stroke="{INK}" stroke-width="2"/>'
        parts.append(
            f"<g><title>{html.escape(TITLES[key])}: {text}"
            f"{f' (moments: {regime})' if regime else ''}</title>"
            f'<text x="184" y="{y + 12}" text-anchor="end">{html.escape(TITLES[key])}</text>'
            f'<rect x="{x.start}" y="{y + 2}" width="{max(end - x.start, 0.5):.1f}" height="13" '
            f'fill="{color}" fill-opacity="{opacity}"{dashed}/>{tip}{whisker}'
            f'<text x="{end + (14 if cut else 6) + (_ahead(x, error) if known else 0):.1f}" '
            f'y="{y + 12}">{text}</text></g>'
        )
        said.append(f"{TITLES[key]} {value:.4g}")
    return _figure(title, "".join(parts), f"{title}: {', '.join(said)}", 12 + row * len(keys), note)


def _ahead(x: Scale, error: float) -> float:
    return float(x(error) - x(0))


def outcome_bars(outcome: Outcome, title: str = "") -> Html:
    """Bars of the trials so far, with the moments that each row used."""
    keys = list(outcome.mse)
    return bars(
        title or f"MSE x 1000: {outcome.setting.titled()}, {outcome.trials} trials",
        {k: outcome.mean(k) for k in keys}, {k: outcome.error(k) for k in keys},
        {k: outcome.regime(k) for k in keys},
        f"{outcome.counted()}; moments {outcome.setting.regime} unless a row says "
        f"otherwise; UniPT and UniPAS: per_problem. Mean weight of PAS on PT "
        f"{outcome.weight.mean():.2f}.",
    )  # fmt: skip


def quality_drawing(quality: Quality, now: float | None = None) -> Html:
    """MSE x 1000 against the quality q of the predictor, logarithmic."""
    keys = [k for k in quality.mse if k not in ("pas_official", "pas_per_problem", "unipt")]
    lines: list[Line | Mark] = []
    for key in sorted(keys, key=lambda k: k == "pas"):  # PAS on top
        color, dash = STYLES[key]
        mean, half = 1e3 * quality.mse[key], 1e3 * quality.error[key]
        width = 3.2 if key == "pas" else 1.8
        lines.append(
            Line(TITLES[key], quality.q, mean, color, dash, width, mean - half, mean + half)
        )
    if now is not None:
        lines.append(Mark(f"q = {now:g}", now, "x"))
    return chart(
        f"From noise to the tuned predictor ({quality.data})", lines, "quality q", "MSE x 1000",
        log_y=True, x_range=(0, 1), width=WIDTH, height=HEIGHT,
    )  # fmt: skip


def regret_drawing(regret: Regret) -> Html:
    """Regret against the number of problems, log-log, with a guide of slope -1."""
    parts: list[Line | Dots] = []
    for predictor, color, shape in (("good", _C["blue"], "disc"), ("bad", _C["orange"], "square")):
        sizes, means = regret.done(predictor)
        parts += [
            Line(f"{predictor} predictor", sizes, 1e3 * means, color),
            Dots("", sizes, 1e3 * means, color, shape, 4),
        ]
    sizes, means = regret.done("good")
    if len(sizes):
        guide = 1e3 * means[0] * sizes[0] / sizes
        parts.append(Line("slope −1, a guide", sizes, guide, INK, DASHED, 1.3))
    return chart(
        "What it costs not to know the best ω", parts, "problems m", "regret x 1000",
        log_x=True, log_y=True, width=WIDTH, height=HEIGHT,
    )  # fmt: skip
