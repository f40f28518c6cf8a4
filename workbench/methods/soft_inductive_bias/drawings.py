"""Pictures that follow a slider, as text (SVG): the live part, stills and the notebook show them.

Each is a pure function of results that takes a few milliseconds. Charts of finished studies are in
`views.py`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets import images
from workbench.widgets.svg import LEFT, RIGHT, Band, Dots, Line, Mark, chart

from . import bounds, polynomials
from .closed_forms import EVIDENCE_ORDERS, PLOT, Refit
from .compression import Compressed
from .networks import Trained
from .processes import MIXTURES, Choice
from .representation import Paths, Plane

_C = OKABE_ITO
KINDS = {  # color and dash of each kind of data
    "simple": (_C["blue"], ""), "complex": (_C["vermillion"], "7 4"), "noise": (MUTED, "2 3"),
}  # fmt: skip
FORMS = {  # of a bound: title, color
    "hoeffding": ("Hoeffding", _C["sky"]), "kl": ("kl", _C["blue"]),
    "exact": ("exact binomial", _C["green"]),
}  # fmt: skip
PRIORS = {"hard": _C["orange"], "none": _C["sky"], "soft": _C["vermillion"]}
DIGITS_WIDTH, DIGITS_HEIGHT, SHOWN = 600, 96, 12  # the row of wrong digits
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
        "Coefficients |w|", parts, "order j", "|w|", log_y=True, y_range=(1e-5, 20), width=440,
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
        x_range=(0, 300), width=440, height=240,
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
        y_range=(0.02, 50), width=440, height=240,
    )  # fmt: skip


# B ----------------------------------------------------------------------------------------------


def label_curves(
    rho: np.ndarray, train: np.ndarray, test: np.ndarray, evidence: np.ndarray, now: float
) -> Html:
    """Accuracies and evidence per example against the share of random labels, (k,) each."""
    mark = Mark(f"ρ = {now:.2f}", now, "x")
    left = chart(
        "Gaussian process: accuracy",
        [Line("train, on its labels", rho, train, _C["sky"], "6 3"),
         Line("test", rho, test, _C["blue"]), Mark("chance", 0.1), mark],
        "share of random labels ρ", "accuracy", y_range=(0, 1.04), width=300,
    )  # fmt: skip
    right = chart(
        "Evidence per example", [Line("log marginal likelihood / n", rho, evidence,
                                      _C["vermillion"]), mark],
        "share of random labels ρ", "nats", width=300,
        y_range=(float(evidence.min()) - 0.3, float(evidence.max()) + 0.3),
    )  # fmt: skip
    return row(left, right)


def _picture(image: np.ndarray, size: int, x: float, y: float, title: str) -> str:
    pixels = (255 * (1 - np.clip(image, 0, 1))).astype(np.uint8).reshape(8, 8)
    address = images.data_url(images.png(pixels, [f"#{v:02X}{v:02X}{v:02X}" for v in range(256)]))
    return (
        f'<image href="{address}" x="{x:.1f}" y="{y:.1f}" width="{size}" height="{size}" '
        f'style="image-rendering:pixelated"><title>{html.escape(title)}</title></image>'
    )


def digit_row(
    pictures: np.ndarray, below: Sequence[str], chosen: int | None = None, title: str = ""
) -> Html:
    """Up to twelve digits in a row with words below; the field is that of a chart, for `Brush`."""
    step = (DIGITS_WIDTH - LEFT - RIGHT) / SHOWN
    size = int(step) - 6
    parts = []
    for i, (image, words) in enumerate(zip(pictures[:SHOWN], below, strict=False)):
        x = LEFT + i * step + 3
        parts.append(_picture(image, size, x, 16, words))
        parts.append(
            f'<text x="{x + size / 2:.1f}" y="{size + 32}" text-anchor="middle">'
            f"{html.escape(words)}</text>"
        )
        if i == chosen:
            parts.append(
                f'<rect x="{x - 2:.1f}" y="14" width="{size + 4}" height="{size + 4}" fill="none" '
                f'stroke="{_C["vermillion"]}" stroke-width="3"/>'
            )
    spoken = html.escape(f"{title}: {', '.join(below)}")
    return Html(
        f'<figure style="margin:0 0 6px;width:{DIGITS_WIDTH}px;max-width:100%;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">'
        f'{html.escape(title)}</figcaption><svg viewBox="0 0 {DIGITS_WIDTH} {DIGITS_HEIGHT}" '
        f'role="img" aria-label="{spoken}" style="width:100%;height:auto;display:block;'
        f'font:10.5px {FONT};fill:currentColor">{"".join(parts)}</svg></figure>'
    )


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


def training(trained: Trained | Sequence, title: str = "Training loss") -> Html:
    """Loss curves of a batch of networks while it trains."""
    curves = trained.curves if isinstance(trained, Trained) else list(trained)
    if not curves:
        return note("No step yet.")
    steps, values = np.array([s for s, _ in curves]), np.array([v for _, v in curves])
    lines = [
        Line(f"network {i + 1}" if values.shape[1] < 9 else "", steps, v, color, dash, 1.6)
        for i, v in enumerate(values.T)
        for color, dash in [_style(i)]
    ]
    return chart(title, lines, "step", "cross-entropy", log_y=True, width=440)


def _style(i: int) -> tuple[str, str]:
    colors = [_C["blue"], _C["vermillion"], _C["green"], _C["orange"], _C["purple"], INK]
    return colors[i % 6], ("", "6 3", "2 3")[i // 6 % 3]


def width_chart(
    widths: np.ndarray, test: np.ndarray, dimension: np.ndarray, train_error: np.ndarray
) -> Html:
    """C3: test loss, N_eff and train error of networks by width, (k,) each."""
    first = chart("Networks: test loss", [Line("", widths, test, _C["blue"]),
                  Dots("test cross-entropy", widths, test, _C["blue"])],
                  "hidden units", "nats", log_x=True, width=300)  # fmt: skip
    second = chart(
        "Effective dimension", [Line("", widths, dimension, _C["vermillion"]),
                                Dots("N_eff", widths, dimension, _C["vermillion"], "square")],
        "hidden units", "directions", log_x=True, width=300,
    )  # fmt: skip
    third = chart("Train error", [Line("", widths, train_error, _C["sky"]),
                  Dots("mistakes on noisy labels", widths, train_error, _C["sky"], "ring")],
                  "hidden units", "share", log_x=True, width=300)  # fmt: skip
    return row(first, second, third)


# D ----------------------------------------------------------------------------------------------


def calculator(risk: float, n: int, bits: float, delta: float) -> Html:
    """Three bounds as bars, the training error and where nothing is said any more."""
    complexity = bounds.complexity_of_code(bits)
    found = bounds.occam(risk, n, complexity, delta)
    size = bounds.occam(risk, n, bounds.complexity_of_size(bits), delta)
    row_height, left, right = 30, 150, 560
    span = 1.2

    def x(value: float) -> float:
        return left + (right - left) * min(value, span) / span

    rows = [("training error", risk, MUTED)]
    rows += [(title, getattr(found, name), color) for name, (title, color) in FORMS.items()]
    rows.append(("kl, size prior", size.kl, f"{_C['blue']}88"))
    parts = [
        f'<rect x="{x(1):.1f}" y="6" width="{right - x(1):.1f}" '
        f'height="{row_height * len(rows)}" fill="{_C["vermillion"]}" fill-opacity="0.14"/>'
        f'<text x="{x(1) + 4:.1f}" y="18">vacuous</text>'
    ]
    for i, (title, value, color) in enumerate(rows):
        y = 8 + row_height * i
        parts.append(
            f'<text x="{left - 6}" y="{y + 16}" text-anchor="end">{title}</text>'
            f'<rect x="{left}" y="{y + 4}" width="{x(value) - left:.1f}" height="16" '
            f'fill="{color}"/><text x="{min(x(value) + 5, right - 40):.1f}" y="{y + 16}">'
            f"{value:.4f}</text>"
        )
    height = 12 + row_height * len(rows)
    words = ", ".join(f"{title} {value:.3f}" for title, value, _ in rows)
    head = f"With probability {1 - delta:g}: n = {n:,}, {bits:,.0f} bits, training error {risk:.3f}"
    return Html(
        f'<figure style="margin:0 0 6px;max-width:{WIDE}px;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">{head}'
        f'</figcaption><svg viewBox="0 0 {WIDE} {height}" role="img" aria-label="Bounds: {words}" '
        f'style="width:100%;height:auto;display:block;font:11px {FONT};fill:currentColor">'
        f"{''.join(parts)}</svg></figure>"
    )


def iso_bounds(
    runs: Sequence[tuple[str, float, float]], n: int, delta: float,
    now: tuple[float, float] | None = None,
) -> Html:  # fmt: skip
    """Bits against training error with curves of equal kl bound; runs: (name, error, bits)."""
    risk = np.linspace(0, 0.95, 96)
    most = max([900.0, *(1.15 * b for _, _, b in runs)] + ([1.15 * now[1]] if now else []))
    parts: list = []
    vacuous = np.minimum(bounds.bits_for(0.9, risk, n, delta), most)
    parts.append(Band("bound ≥ 0.9, chance", risk, np.clip(vacuous, 0, None),
                      np.full(len(risk), most), _C["vermillion"], 0.14))  # fmt: skip
    for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        bits = bounds.bits_for(value, risk, n, delta)
        bits = np.where((risk <= value) & (bits >= 0), bits, np.nan)
        parts.append(Line(f"bound {value}" if value in (0.2, 0.5) else "", risk, bits,
                          INK if value == 0.5 else f"{MUTED}AA",
                          {0.5: "", 0.2: "6 3"}.get(value, "2 3"), 1.2))  # fmt: skip
    shapes = ("disc", "square", "cross", "ring")
    for i, (name, error, bits) in enumerate(runs):
        parts.append(Dots(name, [error], [bits], _style(i)[0], shapes[i % 4], 5))
    if now:
        parts.append(Dots("calculator", [now[0]], [now[1]], _C["vermillion"], "cross", 6))
    return chart(
        "Runs: training error and bits, with curves of equal bound", parts, "training error",
        "bits of the code", x_range=(0, 0.95), y_range=(0, most), width=WIDE, height=300,
    )  # fmt: skip


def bit_bar(parts: Mapping[str, int], title: str = "Where the bits go") -> Html:
    """One bar of the message: header, step, counts, symbols, further choices."""
    total = sum(parts.values())
    colors = {"header": INK, "step": _C["orange"], "counts": _C["sky"], "symbols": _C["blue"],
              "choices": _C["vermillion"]}  # fmt: skip
    at, pieces = 10.0, []
    for name, bits in parts.items():
        width = (WIDE - 20) * bits / max(total, 1)
        pieces.append(
            f'<rect x="{at:.1f}" y="6" width="{width:.1f}" height="26" fill="{colors[name]}" '
            f'stroke="white"><title>{name}: {bits} bits</title></rect>'
        )
        at += width
    keys = "".join(
        f'<span style="white-space:nowrap"><span aria-hidden="true" style="display:inline-block;'
        f'width:11px;height:11px;background:{colors[name]};margin-right:4px"></span>{name} {bits}'
        "</span>"
        for name, bits in parts.items()
    )
    spoken = ", ".join(f"{name} {bits}" for name, bits in parts.items())
    return Html(
        f'<figure style="margin:0 0 6px;max-width:{WIDE}px;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">{title}: '
        f'{total} bits</figcaption><svg viewBox="0 0 {WIDE} 38" role="img" aria-label="{title}: '
        f'{spoken}" style="width:100%;height:auto;display:block">{"".join(pieces)}</svg>'
        f'<div style="display:flex;flex-wrap:wrap;gap:0 14px">{keys}</div></figure>'
    )


def stored(found: Compressed, row_number: int = 0) -> Html:
    """What a stored network is worth: its errors, its bits, its bounds, and the start of them."""
    i = row_number
    b = found.bounds[i]
    message = found.messages[i].bits
    words = (
        f"Width {found.width}, d = {found.d}, {found.levels} levels. Training error "
        f"{found.plain[i]:.3f} before quantization, <b>{found.train[i]:.3f} decoded</b>; test "
        f"{found.test[i]:.3f}; bounds: Hoeffding {b.hoeffding:.3f}, <b>kl {b.kl:.3f}</b>, exact "
        f"{b.exact:.3f}."
    )
    return Html(
        str(bit_bar(found.parts[i]))
        + str(note(words))
        + f'<div style="font:11px monospace;overflow-wrap:anywhere;max-width:{WIDE}px" '
        f'role="img" aria-label="The message, {len(message)} bits">{message}</div>'
    )


# E ----------------------------------------------------------------------------------------------


def symmetry_bars(accuracy: Mapping[str, tuple[float, float, float]], at: str = "") -> Html:
    """Accuracy of hard, no and soft symmetry (three numbers) for each task, as bars."""
    left, right, step = 130, 540, 20
    parts, spoken, y = [], [], 4
    for task, numbers in accuracy.items():
        for (name, color), value in zip(PRIORS.items(), numbers, strict=True):
            parts.append(
                f'<text x="{left - 6}" y="{y + 12}" text-anchor="end">{task}, {name}</text>'
                f'<rect x="{left}" y="{y + 1}" width="{(right - left) * value:.1f}" height="14" '
                f'fill="{color}"/><text x="{left + 5 + (right - left) * value:.1f}" '
                f'y="{y + 12}">{value:.3f}</text>'
            )
            spoken.append(f"{task}, {name} {value:.3f}")
            y += step
        y += 8
    return Html(
        f'<figure style="margin:0 0 6px;max-width:{WIDE}px;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">Test '
        f'accuracy{at}</figcaption><svg viewBox="0 0 {WIDE} {y}" role="img" aria-label="Test '
        f'accuracy: {"; ".join(spoken)}" style="width:100%;height:auto;display:block;'
        f'font:11px {FONT};fill:currentColor">{"".join(parts)}</svg></figure>'
    )


def mixture_curve(found: Choice, r: float, task: str, width: int = WIDE, height: int = 230) -> Html:
    """Log marginal likelihood against r, the best amplitude for each, and what it chose."""
    best = found.evidence.max(1)
    parts = [
        Line("evidence", MIXTURES, best - best.max(), _C["blue"]),
        Dots("", MIXTURES, best - best.max(), _C["blue"]),
        Dots("chosen by the evidence", [found.r], [0], _C["vermillion"], "square", 6),
        Mark(f"r = {r:.3g}: accuracy {np.interp(r, MIXTURES, found.accuracy):.3f}", r, "x"),
    ]
    low = float((best - best.max()).min())
    return chart(
        f"Evidence of r, task {task}", parts, "share r of the prior without symmetry",
        "nats from the best", x_range=(0, 1), y_range=(1.1 * low - 1, 0.08 * -low),
        width=width, height=height,
    )  # fmt: skip


# G and I ------------------------------------------------------------------------------------------


def path_chart(paths: Paths, pair: int = 0) -> Html:
    """Training loss along the line and along the curve."""
    return chart(
        "Between two solutions", [
            Line("straight line", paths.t, paths.line[pair], _C["vermillion"], "6 3"),
            Line("quadratic Bezier curve", paths.t, paths.curve[pair], _C["blue"]),
        ], "t", "training loss", log_y=True, width=300, height=270,
    )  # fmt: skip


def plane_picture(plane: Plane) -> Html:
    """Loss on the plane through both ends and the middle of the curve; bright is high."""
    shown = np.log10(np.maximum(plane.loss, 1e-4))
    known = shown[np.isfinite(shown)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    pixels, colors = images.field_image(shown[::-1], low, high, scale=1)
    address = images.data_url(images.png(pixels, colors))
    size, edge = 250, 8

    def place(points: np.ndarray) -> list[tuple[float, float]]:
        x = (points[:, 0] - plane.x[0]) / (plane.x[-1] - plane.x[0])
        y = (points[:, 1] - plane.y[0]) / (plane.y[-1] - plane.y[0])
        return [(edge + size * a, edge + size * (1 - b)) for a, b in zip(x, y, strict=True)]

    ends, curve = place(plane.ends), place(plane.curve)
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in curve)
    (a, b), (c, d) = ends
    parts = (
        f'<image href="{address}" x="{edge}" y="{edge}" width="{size}" height="{size}" '
        'preserveAspectRatio="none" style="image-rendering:pixelated"/>'
        f'<path d="M{a:.1f} {b:.1f}L{c:.1f} {d:.1f}" stroke="{_C["vermillion"]}" '
        'stroke-width="3" stroke-dasharray="6 4"/>'
        f'<path d="{path}" stroke="white" stroke-width="3" fill="none"/>'
        + "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="white" stroke="black"/>'
                  for x, y in ends)
    )  # fmt: skip
    return Html(
        f'<figure style="margin:0 0 6px;width:{size + 2 * edge}px;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">Loss plane'
        f'</figcaption><svg viewBox="0 0 {size + 2 * edge} {size + 2 * edge}" role="img" '
        'aria-label="Loss on the plane through two solutions and the middle of the curve: the '
        f'dashed line crosses a ridge, the white curve goes around it" style="width:100%">{parts}'
        f"</svg><div>log10 loss from {low:.1f} (dark) to {high:.1f} (bright); dashed the line, "
        "white the curve</div></figure>"
    )


def axes_chart(
    places: Sequence[tuple[str, float, float]], own: Sequence[tuple[str, float, float]] = ()
) -> Html:
    """The two axes: flexibility against simplicity bias; own: the reader's runs, crosses."""
    shapes = ("disc", "square", "ring")
    parts = [
        Dots(name, [flexible], [simple], _style(i)[0], shapes[i // 6 % 3], 5)
        for i, (name, flexible, simple) in enumerate(places)
    ]
    parts += [Dots(name, [f], [s], _C["vermillion"], "cross", 7) for name, f, s in own]
    return chart(
        "Flexible and simple are two axes", parts, "flexibility: share of pure noise fitted",
        "simplicity bias: structure found", x_range=(-0.03, 1.05), y_range=(-0.05, 1.05),
        width=WIDE, height=330,
    )  # fmt: skip
