"""Charts as SVG text: for pictures that are redrawn at the speed of a slider.

A HoloViews chart costs 50 ms a drawing; this costs about one, and needs no script in the page, so
the same text serves the live view and the still of a report. For charts of results use HoloViews.
Lines differ in dashes and points in shape, not only in color; the picture says itself in words.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.theme import FONT, Html

LEAST = 1e-16  # zero on a logarithmic axis
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 8, 34
LARGEST = 400  # points of a line; more would not be seen


@dataclass(frozen=True)
class Line:
    """x, y (k,); dash: of the stroke, as SVG has it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: str
    dash: str = ""
    width: float = 2.0


@dataclass(frozen=True)
class Dots:
    """x, y (k,); shape: "disc", "ring", "square" or "cross"."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: str
    shape: str = "disc"
    size: float = 3.0


@dataclass(frozen=True)
class Band:
    """The area between low and high (k,) over x (k,)."""

    name: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    color: str


@dataclass(frozen=True)
class Bars:
    """One bar of height y (k,) for each x (k,)."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: str


Part = Line | Dots | Band | Bars


class _Axis:
    def __init__(self, low: float, high: float, start: float, end: float, log: bool):
        self.log = log
        if log:
            low, high = (np.log10(max(value, LEAST)) for value in (low, high))
        if high - low < 1e-12 * max(1.0, abs(high)):
            low, high = low - 0.5, high + 0.5
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, values: Sequence[float]) -> np.ndarray:
        values = np.asarray(values, float)
        if self.log:
            values = np.log10(np.maximum(values, LEAST))
        share = np.where(np.isfinite(values), values - self.low, np.nan) / (self.high - self.low)
        return self.start + np.clip(share, -3, 4) * (self.end - self.start)

    def ticks(self, count: int) -> list[tuple[float, str]]:
        """Positions and labels of about `count` round numbers."""
        step = _round_step((self.high - self.low) / count)
        if self.log:
            step = max(1.0, np.ceil(step))
        first = np.ceil(self.low / step - 1e-9)
        marks = step * np.arange(first, np.floor(self.high / step + 1e-9) + 1)
        place = self.start + (marks - self.low) / (self.high - self.low) * (self.end - self.start)
        words = [_power(mark) if self.log else f"{mark:.6g}" for mark in marks + 0.0]
        return list(zip(place, words, strict=True))


def _round_step(raw: float) -> float:
    power = 10 ** np.floor(np.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= 0.999 * raw)


def _power(exponent: float) -> str:
    k = round(exponent)
    small = "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(c)] if c.isdigit() else "⁻" for c in str(k))
    return f"{10**k:g}" if 0 <= k <= 3 else f"10{small}"


def _span(parts: Sequence[Part], along_x: bool, log: bool) -> tuple[float, float]:
    found = []
    for part in parts:
        if along_x:
            found.append(part.x)
        elif isinstance(part, Band):
            found += [part.low, part.high]
        else:
            found += [part.y, [0.0]] if isinstance(part, Bars) else [part.y]
    values = np.concatenate([np.asarray(values, float) for values in found] or [np.zeros(0)])
    values = values[np.isfinite(values) & (values > 0 if log else True)]
    return (float(values.min()), float(values.max())) if len(values) else (0.1, 1.0)


def _path(x: np.ndarray, y: np.ndarray) -> str:
    good = np.isfinite(x) & np.isfinite(y)
    pen, words = False, []
    for a, b, ok in zip(x, y, good, strict=True):
        if ok:
            words.append(f"{'L' if pen else 'M'}{a:.1f} {b:.1f}")
        pen = ok
    return "".join(words)


def _thin(part: Line) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(part.x, float), np.asarray(part.y, float)
    if len(x) > LARGEST:
        kept = np.unique(np.linspace(0, len(x) - 1, LARGEST).round().astype(int))
        x, y = x[kept], y[kept]
    return x, y


def _shape(shape: str, a: float, b: float, r: float, color: str) -> str:
    if shape == "cross":
        return (
            f'<path d="M{a - r:.1f} {b - r:.1f}l{2 * r} {2 * r}m0 {-2 * r}l{-2 * r} {2 * r}" '
            f'stroke="{color}" stroke-width="1.6"/>'
        )
    if shape == "square":
        return (
            f'<rect x="{a - r:.1f}" y="{b - r:.1f}" width="{2 * r}" height="{2 * r}" '
            f'fill="{color}"/>'
        )
    hollow = f'fill="none" stroke="{color}" stroke-width="1.4"'
    look = hollow if shape == "ring" else f'fill="{color}"'
    return f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{r}" {look}/>'


def _drawn(part: Part, x: _Axis, y: _Axis) -> str:
    if isinstance(part, Line):
        xs, ys = _thin(part)
        dash = f' stroke-dasharray="{part.dash}"' if part.dash else ""
        return (
            f'<path d="{_path(x(xs), y(ys))}" fill="none" stroke="{part.color}" '
            f'stroke-width="{part.width}" stroke-linejoin="round"{dash}/>'
        )
    if isinstance(part, Band):
        across, low, high = x(part.x), y(part.low), y(part.high)
        outline = _path(np.r_[across, across[::-1]], np.r_[low, high[::-1]])
        return f'<path d="{outline}Z" fill="{part.color}" fill-opacity="0.25"/>'
    if isinstance(part, Bars):
        across, tops, floor = x(part.x), y(part.y), float(y([0.0])[0])
        width = max(1.0, 0.8 * (x.end - x.start) / max(len(across), 2))
        outline = "".join(
            f"M{a - width / 2:.1f} {floor:.1f}h{width:.1f}V{b:.1f}h{-width:.1f}Z"
            for a, b in zip(across, tops, strict=True)
            if np.isfinite(b)
        )
        return f'<path d="{outline}" fill="{part.color}"/>'
    return "".join(
        _shape(part.shape, a, b, part.size, part.color)
        for a, b in zip(x(part.x), y(part.y), strict=True)
        if np.isfinite(a) and np.isfinite(b)
    )


def _key(part: Part) -> str:
    if isinstance(part, Line):
        dash = f' stroke-dasharray="{part.dash}"' if part.dash else ""
        sign = f'<path d="M0 5H20" stroke="{part.color}" stroke-width="{part.width}"{dash}/>'
    elif isinstance(part, Dots):
        sign = _shape(part.shape, 10, 5, 3.2, part.color)
    else:
        opacity = ' fill-opacity="0.25"' if isinstance(part, Band) else ""
        sign = f'<rect y="1" width="20" height="8" fill="{part.color}"{opacity}/>'
    return (
        '<span style="white-space:nowrap"><svg width="20" height="10" aria-hidden="true" '
        f'style="margin-right:4px">{sign}</svg>{html.escape(part.name)}</span>'
    )


def chart(
    title: str,
    parts: Sequence[Part],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    at: float | None = None,
    words: str = "",
    width: int = 380,
    height: int = 230,
) -> Html:
    """The parts over common axes, with title and legend.

    at: an x that is marked by a thin line. words: what is seen, for those who do not see it. Parts
    with an empty name have no key. A value that is not finite is a gap.
    """
    low, high = x_range or _span(parts, True, log_x)
    x = _Axis(low, high, LEFT, width - RIGHT, log_x)
    low, high = y_range or _span(parts, False, log_y)
    if not y_range and not log_y:
        room = 0.04 * (high - low)
        low, high = low - room * (low != 0), high + room
    y = _Axis(low, high, height - BOTTOM, TOP, log_y)
    grid = "".join(
        f'<path d="M{LEFT} {b:.1f}H{width - RIGHT}" stroke="currentColor" stroke-opacity="0.14"/>'
        f'<text x="{LEFT - 5}" y="{b + 3.5:.1f}" text-anchor="end">{text}</text>'
        for b, text in y.ticks(5)
    ) + "".join(
        f'<path d="M{a:.1f} {TOP}V{height - BOTTOM}" stroke="currentColor" '
        f'stroke-opacity="0.07"/><text x="{a:.1f}" y="{height - BOTTOM + 13}" '
        f'text-anchor="middle">{text}</text>'
        for a, text in x.ticks(6)
    )
    mark = ""
    if at is not None:
        mark = (
            f'<path d="M{float(x([at])[0]):.1f} {TOP}V{height - BOTTOM}" stroke="currentColor" '
            'stroke-opacity="0.5" stroke-dasharray="2 2"/>'
        )
    middle = (TOP + height - BOTTOM) / 2
    labels = (
        f'<text x="{(LEFT + width - RIGHT) / 2}" y="{height - 5}" text-anchor="middle">'
        f"{html.escape(x_label)}</text>"
        f'<text transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(y_label)}</text>"
    )
    clip = f"c{abs(hash((title, width, height))) % 10**8}"
    inside = "".join(_drawn(part, x, y) for part in parts)
    keys = "".join(_key(part) for part in parts if part.name)
    spoken = html.escape(words or f"{title}: {', '.join(p.name for p in parts if p.name)}")
    return Html(
        f'<figure style="margin:0;width:{width}px;max-width:100%;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, #1F2933)"><figcaption style="font-weight:600">'
        f"{html.escape(title)}</figcaption>"
        f'<div style="display:flex;flex-wrap:wrap;gap:0 12px;font-size:11px">{keys}</div>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{spoken}" '
        f'style="width:100%;height:auto;display:block;font:10.5px {FONT};fill:currentColor">'
        f'<clipPath id="{clip}"><rect x="{LEFT}" y="{TOP - 3}" width="{width - RIGHT - LEFT + 3}" '
        f'height="{height - BOTTOM - TOP + 6}"/></clipPath>{grid}{labels}'
        f'<g clip-path="url(#{clip})">{inside}{mark}</g></svg></figure>'
    )
