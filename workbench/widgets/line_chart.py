"""Line charts as SVG text: pure functions that take milliseconds, for pictures behind sliders.

A HoloViews chart costs a tenth of a second to build anew; this costs a few milliseconds, and the
same text stands in a report. For charts of finished results use HoloViews: these have no tools.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.theme import FONT, GRID, INK, MUTED, Html

DASHES = {"solid": "none", "dashed": "7 4", "dotted": "2 3", "dashdot": "8 3 2 3"}
LEFT, RIGHT, TOP, BOTTOM = 62, 24, 12, 44


@dataclass(frozen=True)
class Line:
    """A named line through x (n,), y (n,); low and high (n,) are a band around it."""

    name: str
    x: np.ndarray
    y: np.ndarray
    color: str
    dash: str = "solid"
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    width: float = 2.0


@dataclass(frozen=True)
class Area:
    """A named area between low (n,) and high (n,) over x (n,)."""

    name: str
    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    color: str


@dataclass(frozen=True)
class Mark:
    """A straight line at a value of x or of y, with a few words."""

    text: str
    at: float
    axis: str = "y"


@dataclass(frozen=True)
class Scale:
    """Where values lie on the page: low..high to start..stop, linear or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, values: np.ndarray | float) -> np.ndarray:
        """Pixels of values; what is outside stays at the edge."""
        low, high = self.low, self.high
        values = np.clip(np.asarray(values, float), low, high)
        if self.log:
            values, low, high = np.log(values), np.log(low), np.log(high)
        return self.start + (self.stop - self.start) * (values - low) / (high - low)

    def ticks(self) -> list[float]:
        """A handful of round values; powers of ten if logarithmic over more than one."""
        if self.log:
            first, last = np.ceil(np.log10(self.low) - 1e-9), np.floor(np.log10(self.high) + 1e-9)
            every = max(1, int(np.ceil((last - first + 1) / 7)))
            powers = [10.0**k for k in np.arange(first, last + 1, every)]
            if len(powers) >= 3:
                return powers
            found = [m * 10.0**k for k in np.arange(first - 1, last + 1) for m in (1, 2, 5)]
            return [v for v in found if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]
        raw = (self.high - self.low) / 5
        power = 10.0 ** np.floor(np.log10(raw))
        step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
        first = np.ceil(self.low / step - 1e-9)
        count = int(np.floor(self.high / step + 1e-9) - first) + 1
        return [float((first + k) * step) for k in range(count)]


def number(value: float) -> str:
    """A short number for axes: 0.05, 300, 12,000, 10⁶."""
    if value == 0:
        return "0"
    power = np.log10(abs(value))
    if (power >= 5 or power <= -3) and abs(power - round(power)) < 1e-9:
        digits = str(round(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{digits}"
    if 3 <= power < 5:
        return f"{value:,.0f}"
    return f"{value:.4g}" if power < 5 else f"{value:.3g}"


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    lines: Sequence[Line] = (),
    areas: Sequence[Area] = (),
    marks: Sequence[Mark] = (),
    *,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    x_log: bool = False,
    y_log: bool = False,
    width: int = 620,
    height: int = 340,
) -> Html:
    """One chart with a legend as HTML; values that are not finite, or <= 0 on a log axis, are gaps.

    Ranges that are not given fit the lines, the areas and the marks of y.
    """
    all_x = [item.x for item in (*lines, *areas)]
    all_y = [line.y for line in lines] + [edge for a in areas for edge in (a.low, a.high)]
    all_y += [edge for line in lines for edge in (line.low, line.high) if edge is not None]
    all_y += [np.array([mark.at]) for mark in marks if mark.axis == "y"]
    x = Scale(*(x_range or _extent(all_x, x_log)), LEFT, width - RIGHT, x_log)
    y = Scale(*(y_range or _extent(all_y, y_log)), height - BOTTOM, TOP, y_log)
    parts = [*_axes(x, y, x_label, y_label, width, height)]
    for area in areas:
        parts.append(_filled(x, y, area.x, area.low, area.high, area.color, 0.75))
    for line in lines:
        if line.low is not None and line.high is not None:
            parts.append(_filled(x, y, line.x, line.low, line.high, line.color, 0.18))
    for line in lines:
        path = _path(x, y, line.x, line.y)
        parts.append(
            f'<path d="{path}" fill="none" stroke="{line.color}" stroke-width="{line.width}" '
            f'stroke-dasharray="{DASHES[line.dash]}"><title>{html.escape(line.name)}</title></path>'
        )
    parts += [_marked(x, y, mark, width, height) for mark in marks]
    said = ", ".join(item.name for item in (*lines, *areas, *(_Named(m.text) for m in marks)))
    label = html.escape(f"{title}: {y_label} over {x_label}. {said}")
    return Html(
        f'<figure style="margin:0;max-width:{width}px;font:13px/1.35 {FONT};color:{INK}">'
        f'<figcaption style="font-weight:600">{html.escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}" '
        f'style="width:100%;height:auto;display:block;font:11px {FONT}">{"".join(parts)}</svg>'
        f"{_legend(lines, areas)}</figure>"
    )


@dataclass(frozen=True)
class _Named:
    name: str


def _extent(values: Sequence[np.ndarray], log: bool) -> tuple[float, float]:
    flat = np.concatenate([np.ravel(v) for v in values]) if values else np.zeros(0)
    flat = flat[np.isfinite(flat) & (flat > 0 if log else True)]
    if not len(flat):
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = float(flat.min()), float(flat.max())
    if log:
        return (low, high) if high > 1.01 * low else (low / 2, high * 2)
    low = min(low, 0.0) if low > -0.2 * abs(high) else low  # a chart of sums starts at 0
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _shown(x: Scale, y: Scale, xs: np.ndarray, *ys: np.ndarray) -> np.ndarray:
    known = np.isfinite(xs) & (xs > 0 if x.log else True)
    for values in ys:
        known = known & np.isfinite(values) & (values > 0 if y.log else True)
    return known


def _path(x: Scale, y: Scale, xs: np.ndarray, ys: np.ndarray) -> str:
    xs, ys = np.asarray(xs, float), np.asarray(ys, float)
    known = _shown(x, y, xs, ys)
    at = zip(known, x(np.where(known, xs, x.low)), y(np.where(known, ys, y.low)), strict=True)
    text, pen = [], False
    for ok, px, py in at:
        if ok:
            text.append(f"{'L' if pen else 'M'}{px:.1f} {py:.1f}")
        pen = ok
    return "".join(text)


def _filled(
    x: Scale, y: Scale, xs: np.ndarray, low: np.ndarray, high: np.ndarray, color: str, alpha: float
) -> str:
    xs, low, high = (np.asarray(v, float) for v in (xs, low, high))
    known = np.isfinite(low) & np.isfinite(high) & (high > 0 if y.log else True)
    known &= xs > 0 if x.log else np.isfinite(xs)
    # On a log axis an area may begin at nothing: the bottom of the chart.
    low = np.where(low > 0, low, y.low) if y.log else low
    px, top, bottom = x(xs[known]), y(high[known]), y(low[known])
    points = [*zip(px, top, strict=True), *zip(px[::-1], bottom[::-1], strict=True)]
    corners = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    return f'<polygon points="{corners}" fill="{color}" fill-opacity="{alpha}"/>'


def _axes(x: Scale, y: Scale, x_label: str, y_label: str, width: int, height: int) -> list[str]:
    parts, base = [], height - BOTTOM
    for value in y.ticks():
        at = float(y(value))
        parts.append(
            f'<path d="M{LEFT} {at:.1f}H{width - RIGHT}" stroke="{GRID}"/><text x="{LEFT - 6}" '
            f'y="{at + 4:.1f}" text-anchor="end" fill="{MUTED}">{number(value)}</text>'
        )
    for value in x.ticks():
        at = float(x(value))
        parts.append(
            f'<path d="M{at:.1f} {TOP}V{base}" stroke="{GRID}"/><text x="{at:.1f}" '
            f'y="{base + 15}" text-anchor="middle" fill="{MUTED}">{number(value)}</text>'
        )
    middle = (LEFT + width - RIGHT) / 2
    parts.append(
        f'<path d="M{LEFT} {TOP}V{base}H{width - RIGHT}" fill="none" stroke="{MUTED}"/>'
        f'<text x="{middle}" y="{height - 8}" text-anchor="middle" fill="{INK}">'
        f"{html.escape(x_label)}</text>"
        f'<text transform="translate(13 {(TOP + base) / 2}) rotate(-90)" text-anchor="middle" '
        f'fill="{INK}">{html.escape(y_label)}</text>'
    )
    return parts


def _marked(x: Scale, y: Scale, mark: Mark, width: int, height: int) -> str:
    text = html.escape(mark.text)
    if mark.axis == "y":
        at = float(y(mark.at))
        below = at < TOP + 14
        return (
            f'<path d="M{LEFT} {at:.1f}H{width - RIGHT}" stroke="{INK}" stroke-dasharray="5 3"/>'
            f'<text x="{width - RIGHT - 4}" y="{at + (13 if below else -4):.1f}" text-anchor="end" '
            f'fill="{INK}">{text}</text>'
        )
    at = float(x(mark.at))
    left = at > (LEFT + width) * 0.6
    return (
        f'<path d="M{at:.1f} {TOP}V{height - BOTTOM}" stroke="{INK}" stroke-dasharray="5 3"/>'
        f'<text x="{at + (-5 if left else 5):.1f}" y="{height - BOTTOM - 6}" '
        f'text-anchor="{"end" if left else "start"}" fill="{INK}">{text}</text>'
    )


def _legend(lines: Sequence[Line], areas: Sequence[Area]) -> str:
    entries = [
        f'<svg width="24" height="12" aria-hidden="true" style="margin-right:5px"><path '
        f'd="M0 6H24" stroke="{line.color}" stroke-width="{line.width + 0.5}" '
        f'stroke-dasharray="{DASHES[line.dash]}"/></svg>{html.escape(line.name)}'
        for line in lines
    ] + [
        f'<svg width="16" height="12" aria-hidden="true" style="margin-right:5px"><rect width="16" '
        f'height="12" fill="{area.color}" fill-opacity=".75"/></svg>{html.escape(area.name)}'
        for area in areas
    ]
    items = "".join(f'<span style="white-space:nowrap">{entry}</span>' for entry in entries)
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:2px 16px;padding-left:{LEFT // 2}px">'
        f"{items}</div>"
    )
