"""Pictures of B and E: random labels on digits, and the share of a symmetry.

Text (SVG) from pure functions that take a few milliseconds, as in `drawings.py`.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.theme import FONT, INK, OKABE_ITO, Html
from workbench.widgets import images
from workbench.widgets.svg import LEFT, RIGHT, Dots, Line, Mark, chart

from .drawings import WIDE, row
from .processes import MIXTURES, Choice

_C = OKABE_ITO
PRIORS = {"hard": _C["orange"], "none": _C["sky"], "soft": _C["vermillion"]}
DIGITS_WIDTH, DIGITS_HEIGHT, SHOWN = 600, 96, 12  # the row of wrong digits


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
