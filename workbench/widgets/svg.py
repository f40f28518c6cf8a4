"""Charts as SVG text: pure functions that take about a millisecond, for pictures behind sliders.

A HoloViews chart costs 50 ms a drawing or more. This needs no script in the page, so the same text
serves the live view, a notebook and the still of a report. For charts of results use HoloViews:
these have no tools. Lines differ in dashes and points in shape, not only in color; the picture says
itself in words.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.theme import FONT, Html

LEFT, RIGHT, TOP, BOTTOM = 56, 20, 10, 36  # pixels around the field of a chart
LARGEST = 400  # points of a line; of a longer one, one point a pixel


@dataclass(frozen=True)
class Line:
    """x, y (k,), in a band between low and high (k,) if given; dash: of the stroke, as in SVG."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: str
    dash: str = ""
    width: float = 2.0
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True)
class Dots:
    """x, y (k,); shape: "disc", "ring", "square" or "cross"; titles: of each under the mouse."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: str
    shape: str = "disc"
    size: float = 3.0
    titles: Sequence[str] = ()


@dataclass(frozen=True)
class Band:
    """The area between low and high (k,) over x (k,)."""

    name: str
    x: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    color: str
    opacity: float = 0.25


@dataclass(frozen=True)
class Bars:
    """One bar from 0 to y (k,) for each x (k,), which are whole numbers."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    color: str


@dataclass(frozen=True)
class Mark:
    """A straight line at a value of an axis, "x" or "y", with its name beside it."""

    name: str
    at: float
    axis: str = "y"


@dataclass(frozen=True)
class Raster:
    """A picture that fills x (low, high) by y (low, high) of the field; address: of a PNG.

    It is stretched evenly over the page, so on a logarithmic axis its rows are even in the log.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    address: str
    name: str = ""


Part = Line | Dots | Band | Bars | Mark | Raster


@dataclass(frozen=True)
class Scale:
    """Where values lie on the page: low..high at start..stop, linear or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, values: Sequence[float] | float) -> np.ndarray:
        """Pixels of values, of the shape of values; nan for what is not finite or has no log."""
        values, low, high = np.asarray(values, float), self.low, self.high
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.log:
                values, low, high = np.log(values), np.log(low), np.log(high)
            share = (values - low) / (high - low)
        # What is far outside is not seen: short numbers do.
        share = np.where(np.isfinite(share), np.clip(share, -3, 4), np.nan)
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """A handful of round values; powers of ten if logarithmic over more than two."""
        low, high = self.low * (1 - 1e-9), self.high * (1 + 1e-9)
        if self.log:
            first, last = np.ceil(np.log10(low)), np.floor(np.log10(high))
            every = max(1, int(np.ceil((last - first + 1) / 7)))
            powers = 10.0 ** (every * np.arange(np.ceil(first / every), last // every + 1))
            if len(powers) >= 3:
                return powers.tolist()
            found = [m * 10.0**k for k in np.arange(first - 1, last + 1) for m in (1, 2, 5)]
            found = [value for value in found if low <= value <= high]
            if len(found) >= 2:
                return found
        raw = (self.high - self.low) / 6
        power = 10.0 ** np.floor(np.log10(raw))
        step = power * next(m for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
        first, last = np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)
        return (step * np.arange(first, last + 1)).tolist()


def number(value: float) -> str:
    """A short finite number, for axes: 0.05, 300, 12,000, 10⁶, 2.5×10⁻⁴."""
    mantissa, exponent = f"{value:.5e}".split("e")
    if -4 < int(exponent) < 5:
        return f"{value + 0.0:,.6g}"  # -0.0 + 0.0 is 0.0
    mantissa = mantissa.rstrip("0").rstrip(".")
    factor = {"1": "", "-1": "-"}.get(mantissa, f"{mantissa}×")
    return f"{factor}10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


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
    words: str = "",
    width: int = 380,
    height: int = 230,
) -> Html:
    """The parts over common axes, later ones on top, with title and legend.

    words: what is seen, for those who do not see it; when not given, the labels and the names of
    all parts. Parts with an empty name have no key. A value that is not finite, or <= 0 on a
    logarithmic axis, is a gap. Ranges that are not given fit the parts but for marks of x; a linear
    y axis then has 0.
    """
    x = Scale(*_range(x_range, parts, "x", log_x), LEFT, width - RIGHT, log_x)
    y = Scale(*_range(y_range, parts, "y", log_y), height - BOTTOM, TOP, log_y)
    bands = [
        Band("", part.x, part.low, part.high, part.color, 0.2)
        for part in parts
        if isinstance(part, Line) and part.low is not None and part.high is not None
    ]
    inside = "".join(_drawn(part, x, y) for part in (*bands, *parts))
    keys = "".join(
        _key(part) for part in parts if part.name and not isinstance(part, Mark | Raster)
    )
    names = ", ".join(part.name for part in parts if part.name)
    spoken = html.escape(words or f"{title}: {y_label} over {x_label}. {names}")
    # A picture within the picture cuts off what leaves the field, but for half a stroke.
    edge = 3
    box = f"{LEFT - edge} {TOP - edge} {x.stop - LEFT + 2 * edge} {y.start - TOP + 2 * edge}"
    field = 'x="{}" y="{}" width="{}" height="{}"'.format(*box.split())
    return Html(
        f'<figure style="margin:0 0 6px;width:{width}px;max-width:100%;font:12px/1.4 {FONT};'
        f'color:var(--jp-ui-font-color1, #1F2933)"><figcaption style="font-weight:600">'
        f"{html.escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{spoken}" '
        f'style="width:100%;height:auto;display:block;font:10.5px {FONT};fill:currentColor">'
        f"{_axes(x, y, x_label, y_label)}"
        f'<svg {field} viewBox="{box}" class="field">{inside}</svg></svg>'
        f'<div style="display:flex;flex-wrap:wrap;gap:0 12px;padding-left:{LEFT // 2}px">{keys}'
        "</div></figure>"
    )


def _range(
    given: tuple[float, float] | None, parts: Sequence[Part], axis: str, log: bool
) -> tuple[float, float]:
    low, high = given or _span(parts, axis, log)
    if log:
        return (low, high) if high > 1.01 * low else (low / 2, high * 2)
    flat = high - low < 1e-12 * max(1.0, abs(high))
    return (low - 0.5, high + 0.5) if flat else (low, high)


def _span(parts: Sequence[Part], axis: str, log: bool) -> tuple[float, float]:
    values = np.concatenate([np.zeros(0), *(_along(part, axis) for part in parts)])
    values = values[np.isfinite(values) & (values > 0 if log else True)]
    if not len(values):
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if axis == "y" and not log:
        low, high = min(low, 0.0), max(high, 0.0)
        room = 0.04 * (high - low)
        low, high = low - room * (low < 0), high + room * (high > 0)
    return low, high


def _along(part: Part, axis: str) -> np.ndarray:
    if isinstance(part, Mark):
        return np.array([part.at] if axis == part.axis == "y" else [], float)
    if isinstance(part, Raster):
        return np.asarray(getattr(part, axis), float)
    if axis == "x":
        x = np.asarray(part.x, float)
        return np.concatenate([x - 0.5, x + 0.5]) if isinstance(part, Bars) else x
    found = [getattr(part, name, None) for name in ("y", "low", "high")]
    return np.concatenate([np.asarray(values, float) for values in found if values is not None])


def _axes(x: Scale, y: Scale, x_label: str, y_label: str) -> str:
    left, right, base, top = x.start, x.stop, y.start, y.stop
    thin = 'stroke="currentColor" stroke-opacity="0.12"'
    lines = [
        f'<path d="M{left} {at:.1f}H{right}" {thin}/>'
        f'<text x="{left - 5}" y="{at + 3.5:.1f}" text-anchor="end">{number(value)}</text>'
        for value, at in zip(y.ticks(), y(y.ticks()), strict=True)
    ] + [
        f'<path d="M{at:.1f} {top}V{base}" {thin}/>'
        f'<text x="{at:.1f}" y="{base + 14}" text-anchor="middle">{number(value)}</text>'
        for value, at in zip(x.ticks(), x(x.ticks()), strict=True)
    ]
    return (
        f'{"".join(lines)}<path d="M{left} {top}V{base}H{right}" fill="none" '
        'stroke="currentColor" stroke-opacity="0.6"/>'
        f'<text x="{(left + right) / 2}" y="{base + 30}" text-anchor="middle">'
        f"{html.escape(x_label)}</text>"
        f'<text transform="translate(11 {(top + base) / 2}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(y_label)}</text>"
    )


def _drawn(part: Part, x: Scale, y: Scale) -> str:
    if isinstance(part, Line):
        across, up = x(part.x), y(part.y)
        if len(across) > LARGEST:
            kept = np.diff(across.round(), prepend=np.nan) != 0
            kept[-1] = True
            across, up = across[kept], up[kept]
        return (
            f'<path d="{_path(across, up)}" {_stroke(part)} stroke-linejoin="round">'
            f"<title>{html.escape(part.name)}</title></path>"
        )
    if isinstance(part, Band):
        across, low, high = x(part.x), y(_grounded(part.low, y)), y(part.high)
        known = np.isfinite(across + low + high)
        across, low, high = across[known], low[known], high[known]
        corners = zip([*across, *across[::-1]], [*high, *low[::-1]], strict=True)
        return (
            f'<polygon points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}" '
            f'fill="{part.color}" fill-opacity="{part.opacity}"/>'
        )
    if isinstance(part, Bars):
        values = np.asarray(part.x, float)
        floor = float(y(_grounded(0.0, y)))
        outline = "".join(
            f"M{a:.1f} {floor:.1f}H{b:.1f}V{top:.1f}H{a:.1f}Z"
            for a, b, top in zip(x(values - 0.4), x(values + 0.4), y(part.y), strict=True)
            if np.isfinite(a + b + top)
        )
        return f'<path d="{outline}" fill="{part.color}"/>'
    if isinstance(part, Mark):
        return _marked(part, x, y)
    if isinstance(part, Raster):
        (left, right), (base, top) = x(part.x), y(part.y)
        return (
            f'<image href="{part.address}" x="{left:.1f}" y="{top:.1f}" '
            f'width="{right - left:.1f}" height="{base - top:.1f}" preserveAspectRatio="none" '
            f'style="image-rendering:pixelated"><title>{html.escape(part.name)}</title></image>'
        )
    titles = part.titles or [""] * len(part.x)
    return "".join(
        _shape(part.shape, a, b, part.size, part.color, title)
        for a, b, title in zip(x(part.x), y(part.y), titles, strict=True)
        if np.isfinite(a + b)
    )


def _path(x: np.ndarray, y: np.ndarray) -> str:
    pen, words = False, []
    for a, b, known in zip(x, y, np.isfinite(x + y), strict=True):
        if known:
            words.append(f"{'L' if pen else 'M'}{a:.1f} {b:.1f}")
        pen = known
    return "".join(words)


def _grounded(values: Sequence[float] | float, y: Scale) -> np.ndarray:
    """What an area stands on; on a logarithmic axis, where there is no 0, the bottom."""
    return np.maximum(values, y.low) if y.log else np.asarray(values, float)


def _stroke(line: Line) -> str:
    dash = f' stroke-dasharray="{line.dash}"' if line.dash else ""
    return f'fill="none" stroke="{line.color}" stroke-width="{line.width}"{dash}'


def _marked(mark: Mark, x: Scale, y: Scale) -> str:
    at = float((x if mark.axis == "x" else y)(mark.at))
    if not np.isfinite(at):
        return ""
    if mark.axis == "x":
        left = at > x.start + 0.6 * (x.stop - x.start)
        line = f"M{at:.1f} {y.stop}V{y.start}"
        place = f'x="{at + (-5 if left else 5):.1f}" y="{y.start - 6}"'
    else:
        left = True
        line = f"M{x.start} {at:.1f}H{x.stop}"
        place = f'x="{x.stop - 4}" y="{at + (13 if at < y.stop + 14 else -4):.1f}"'
    text = (
        f'<text {place} text-anchor="{"end" if left else "start"}">{html.escape(mark.name)}</text>'
    )
    return (
        f'<path d="{line}" stroke="currentColor" stroke-opacity="0.7" stroke-dasharray="4 3"/>'
        f"{text if mark.name else ''}"
    )


def _shape(shape: str, a: float, b: float, r: float, color: str, title: str = "") -> str:
    if title:
        return f"<g><title>{html.escape(title)}</title>{_shape(shape, a, b, r, color)}</g>"
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


def _key(part: Line | Dots | Band | Bars) -> str:
    if isinstance(part, Line):
        sign = f'<path d="M0 5H22" {_stroke(part)}/>'
    elif isinstance(part, Dots):
        sign = _shape(part.shape, 11, 5, 3.2, part.color)
    else:
        opacity = f' fill-opacity="{part.opacity}"' if isinstance(part, Band) else ""
        sign = f'<rect y="1" width="22" height="8" fill="{part.color}"{opacity}/>'
    return (
        '<span style="white-space:nowrap"><svg width="22" height="10" aria-hidden="true" '
        f'style="margin-right:4px">{sign}</svg>{html.escape(part.name)}</span>'
    )
