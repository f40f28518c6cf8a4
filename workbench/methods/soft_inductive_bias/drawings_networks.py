"""Pictures of what is trained: C3 by width, F along its direction, G between two solutions.

Text (SVG) from pure functions that take a few milliseconds, as in `drawings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workbench.theme import FONT, INK, OKABE_ITO, Html
from workbench.widgets import images
from workbench.widgets.svg import Dots, Line, Mark, chart

from .drawings import note, row, style
from .factored import Learner
from .networks import Trained
from .representation import Paths, Plane

_C = OKABE_ITO


def training(trained: Trained | Sequence, title: str = "Training loss") -> Html:
    """Loss curves of a batch of networks while it trains."""
    curves = trained.curves if isinstance(trained, Trained) else list(trained)
    if not curves:
        return note("No step yet.")
    steps, values = np.array([s for s, _ in curves]), np.array([v for _, v in curves])
    lines = [
        Line(f"network {i + 1}" if values.shape[1] < 9 else "", steps, v, color, dash, 1.6)
        for i, v in enumerate(values.T)
        for color, dash in [style(i)]
    ]
    return chart(title, lines, "step", "cross-entropy", log_y=True, width=440)


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


def path_chart(paths: Paths, pair: int = 0, t: float | None = None) -> Html:
    """Training loss along the line and along the curve, marked at a place t of `paths.t`."""
    parts: list = [
        Line("straight line", paths.t, paths.line[pair], _C["vermillion"], "6 3"),
        Line("quadratic Bezier curve", paths.t, paths.curve[pair], _C["blue"]),
    ]
    if t is not None:
        i = place_of(paths, t)
        parts.append(Mark(f"t = {paths.t[i]:.3g}", paths.t[i], "x"))
        for shape, losses in (("square", paths.line), ("disc", paths.curve)):
            parts.append(Dots("", [paths.t[i]], [losses[pair, i]], INK, shape, 5))
    return chart("Between two solutions", parts, "t", "training loss", log_y=True, width=340,
                 height=270)  # fmt: skip


def place_of(paths: Paths, t: float) -> int:
    """Which of the places along the path is nearest to t."""
    return int(np.abs(paths.t - t).argmin())


def path_words(paths: Paths, t: float) -> Html:
    """What the network at t is worth, on the line and on the curve."""
    i = place_of(paths, t)
    return note(
        f"At t = {paths.t[i]:.3g}: on the line a loss of {paths.line[0, i]:.3g} and "
        f"{paths.line_error[0, i]:.1%} of the training digits wrong (square); on the curve "
        f"{paths.curve[0, i]:.3g} and {paths.curve_error[0, i]:.1%} (disc)."
    )


def learned_function(
    places: np.ndarray, truth: np.ndarray, kernel: np.ndarray, learner: Learner | None
) -> Html:
    """F: truth, kernel and network along the one direction that matters."""
    parts = [
        Line("truth", places, truth, INK, "5 3", 1.4),
        Line("kernel", places, kernel, _C["orange"], "2 3"),
    ]
    if learner is not None:
        parts.append(Line(f"network, {learner.n} examples", places, learner.along, _C["blue"]))
    return chart("Along the direction u", parts, "z = uᵀx", "f", x_range=(-3, 3),
                 y_range=(-3.5, 3.5), width=400, height=250)  # fmt: skip


def learned_errors(
    sizes: Sequence[int], kernel: np.ndarray, points: Mapping[int, float], n: int
) -> Html:
    """F: errors of the kernel by sample size, and of the networks that were trained."""
    parts: list = [Line("kernel", sizes, kernel, _C["orange"], "2 3")]
    if points:
        parts.append(Dots("network", list(points), list(points.values()), _C["blue"], "square", 5))
    parts.append(Mark(f"n = {n}", n, "x"))
    return chart("Relative test error by sample size", parts, "examples n", "error", log_x=True,
                 log_y=True, y_range=(0.005, 5), x_range=(sizes[0], max(sizes[-1], 1500)),
                 width=400, height=250)  # fmt: skip


def turning(learner: Learner) -> Html:
    """F: the loss of the network while it trains, and how far it has turned to the direction."""
    steps, loss, turned = (np.array(c) for c in zip(*learner.curves, strict=True))
    return row(
        chart("Training loss", [Line("", steps, loss, _C["blue"])], "step", "loss", log_y=True,
              width=400, height=200),
        chart("Alignment: share of weights in direction u", [Line("", steps, turned,
              _C["vermillion"])], "step", "share", y_range=(0, 1), width=400, height=200),
    )  # fmt: skip


def plane_picture(plane: Plane, t: float | None = None) -> Html:
    """Loss on the plane through both ends and the middle of the curve; bright is high.

    t: a place that is marked, by a square on the line and a disc on the curve.
    """
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
    if t is not None:
        x, y = a + t * (c - a), b + t * (d - b)
        u, v = curve[round(t * (len(curve) - 1))]
        parts += (
            f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" '
            f'fill="{_C["vermillion"]}" stroke="black"/><circle cx="{u:.1f}" cy="{v:.1f}" r="6" '
            f'fill="{_C["sky"]}" stroke="black"/>'
        )
    return Html(
        f'<figure style="margin:0 0 6px;width:{size + 2 * edge}px;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, {INK})"><figcaption style="font-weight:600">Loss plane'
        f'</figcaption><svg viewBox="0 0 {size + 2 * edge} {size + 2 * edge}" role="img" '
        'aria-label="Loss on the plane through two solutions and the middle of the curve: the '
        f'dashed line crosses a ridge, the white curve goes around it" style="width:100%">{parts}'
        f"</svg><div>log10 loss from {low:.1f} (dark) to {high:.1f} (bright); dashed the line, "
        "white the curve</div></figure>"
    )
