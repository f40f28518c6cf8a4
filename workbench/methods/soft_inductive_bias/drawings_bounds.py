"""Pictures of D: the bound calculator, runs among curves of equal bound, and where bits go.

Text (SVG) from pure functions that take a few milliseconds, as in `drawings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets.svg import Band, Dots, Line, chart

from . import bounds, digits
from .compression import Compressed
from .drawings import WIDE, note, style

_C = OKABE_ITO
FORMS = {  # of a bound: title, color
    "hoeffding": ("Hoeffding", _C["sky"]), "kl": ("kl", _C["blue"]),
    "exact": ("exact binomial", _C["green"]),
}  # fmt: skip


def calculator(risk: float, n: int, bits: float, delta: float) -> Html:
    """Three bounds as bars, the training error and, shaded, where a bound is vacuous: chance on."""
    complexity = bounds.complexity_of_code(bits)
    found = bounds.occam(risk, n, complexity, delta)
    size = bounds.occam(risk, n, bounds.complexity_of_size(max(bits, 1)), delta)
    row_height, left, right = 30, 150, 560
    span = 1.2

    def x(value: float) -> float:
        return left + (right - left) * min(value, span) / span

    rows = [("training error", risk, MUTED)]
    rows += [(title, getattr(found, name), color) for name, (title, color) in FORMS.items()]
    rows.append(("kl, size prior", size.kl, f"{_C['blue']}88"))
    parts = [
        f'<rect x="{x(digits.CHANCE):.1f}" y="6" width="{right - x(digits.CHANCE):.1f}" '
        f'height="{row_height * len(rows)}" fill="{_C["vermillion"]}" fill-opacity="0.14"/>'
        f'<text x="{x(digits.CHANCE) + 4:.1f}" y="18">vacuous, ≥ {digits.CHANCE:g}</text>'
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
    vacuous = np.minimum(bounds.bits_for(digits.CHANCE, risk, n, delta), most)
    parts.append(Band(f"vacuous, bound ≥ {digits.CHANCE:g}", risk, np.clip(vacuous, 0, None),
                      np.full(len(risk), most), _C["vermillion"], 0.14))  # fmt: skip
    for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        bits = bounds.bits_for(value, risk, n, delta)
        bits = np.where((risk <= value) & (bits >= 0), bits, np.nan)
        parts.append(Line(f"bound {value}" if value in (0.2, 0.5) else "", risk, bits,
                          INK if value == 0.5 else f"{MUTED}AA",
                          {0.5: "", 0.2: "6 3"}.get(value, "2 3"), 1.2))  # fmt: skip
    shapes = ("disc", "square", "cross", "ring")
    for i, (name, error, bits) in enumerate(runs):
        parts.append(Dots(name, [error], [bits], style(i)[0], shapes[i % 4], 5))
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
        f"Width {found.width}, d = {found.d[i]}, {found.levels} levels. Training error "
        f"{found.plain[i]:.3f} before quantization, <b>{found.train[i]:.3f} decoded</b>; test "
        f"{found.test[i]:.3f} on labels as random as those, {found.test_true[i]:.3f} on true ones; "
        f"bounds: Hoeffding {b.hoeffding:.3f}, <b>kl {b.kl:.3f}</b>, exact "
        f"{b.exact:.3f}."
    )
    return Html(
        str(bit_bar(found.parts[i]))
        + str(note(words))
        + f'<div style="font:11px monospace;overflow-wrap:anywhere;max-width:{WIDE}px" '
        f'role="img" aria-label="The message, {len(message)} bits">{message}</div>'
    )
