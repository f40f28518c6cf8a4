"""PerturbationView: clean image, perturbation and attacked image, with the order of the classes.

The Python half of `perturbation_view.js`. It knows no attack: `show` takes arrays and logits, at
the end or while an attack runs, packs them into one buffer and keeps few of them unacknowledged.
Zoom, gain and pointer need no Python, so they work in an exported page too. Not a store of
iterations: the last one shown is what `still` draws for a report.
"""

from __future__ import annotations

import html
import io
import json
import struct
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import param
from panel.custom import AnyWidgetComponent
from PIL import Image

from workbench.theme import FONT, INK, MUTED, OKABE_ITO, Html
from workbench.widgets import images
from workbench.widgets.attempts import Attempt, attempt, ranking, said, signed

# Unacknowledged frames: unpaced ones are lost silently on the way to the browser. After the
# patience one more is sent, because the page may be hidden or gone.
AHEAD, PATIENCE_S = 2, 2.0
MAX_GAIN = 1024
IN_PLACE, ASTRAY = OKABE_ITO["green"], OKABE_ITO["vermillion"]


def _buffer(head: dict[str, Any], body: np.ndarray) -> bytes:
    text = json.dumps(head).encode()
    return struct.pack("<I", len(text)) + text + body.tobytes()


def pack_image(shown: Attempt, number: int) -> bytes:
    """The clean image for the browser: header length (uint32), JSON header, uint16 of [0, 1]."""
    codes = np.rint(np.clip(shown.clean, 0, 1) * 65535).astype("<u2")
    return _buffer({"id": number, "shape": shown.clean.shape}, codes)


def pack(shown: Attempt, number: int, image: int, n_rows: int) -> bytes:
    """One frame: header length (uint32), JSON header, perturbation as int16 of +-its peak.

    16 bits are finer than any color and than the digits that the pointer shows. Not deflated:
    perturbations are noise, which hardly shrinks.
    """
    peak = shown.norms[2]
    head = {
        "id": number,
        "image": image,
        "peak": peak,
        "norms": shown.norms,
        "status": shown.status,
        "iteration": shown.iteration,
        "iterations": shown.iterations,
        "achieved": shown.achieved,
        "n_targets": len(shown.targets),
        "label": shown.label,
        "n_classes": len(shown.logits),
        "rows": ranking(shown, n_rows),
    }
    codes = np.rint(shown.perturbation * (32767 / peak if peak else 0)).astype("<i2")
    return _buffer(head, codes)


def number(x: float) -> str:
    """Three significant digits, with a true minus sign."""
    return f"{x:.3g}".replace("-", "−")


class PerturbationView(AnyWidgetComponent):
    """Three pictures with one zoom, the norms, and the predicted beside the wanted order.

    `show(...)` may be called as often as an attack iterates: what the browser has no time for is
    skipped, the last state never. class_names: one for each class; numbers when not given.
    """

    _esm = "perturbation_view.js"
    # Panel holds back what the browser says by 50 ms: that would halve the frame rate.
    _priority_changes: ClassVar[list[str]] = ["acknowledged"]

    image = param.Bytes(b"", doc="The packed clean image")
    frame = param.Bytes(b"", doc="The packed last state")
    acknowledged = param.Integer(0, doc="Number of the last frame drawn by the browser")
    class_names = param.List([], item_type=str, doc="Names of the classes")
    gain = param.Number(
        4.0, bounds=(1, MAX_GAIN), doc="The colors of the perturbation span ±1/gain"
    )
    channel = param.String("largest", doc="What is shown of a perturbation with three channels")
    n_rows = param.Integer(10, bounds=(1, None), doc="Places of the predicted order shown")
    caption = param.String("Attack", doc="What is seen, for screen readers")
    colors = param.List([], doc="256 colors of the perturbation")

    def __init__(self, class_names: Sequence[str] = (), **settings: Any):
        fit = {"sizing_mode": "stretch_width", "max_width": 1100}
        super().__init__(
            class_names=list(class_names),
            colors=images.colormap("diverging"),
            **(fit | settings),
        )
        self.last: Attempt | None = None
        self._pending = False
        self._sent = self._image = 0
        self._sent_at = 0.0
        self._clean: np.ndarray | None = None
        self.param.watch(self._acknowledge, "acknowledged")
        self.param.watch(lambda event: self._send() if self.last else None, "n_rows")

    def show(
        self,
        clean: Any,
        perturbation: Any,
        logits: Any,
        targets: Sequence[int] = (),
        *,
        label: int | None = None,
        iteration: int | None = None,
        iterations: int | None = None,
        running: bool = False,
    ) -> None:
        """Show one state of an attack, from the thread of the event loop.

        clean, perturbation: (H, W), (1, H, W) or (3, H, W) arrays or tensors, clean in [0, 1].
        logits: (C,) of clean + perturbation. targets: wanted classes, the first most wanted.
        Whether the order is found is read off the logits. Raises ValueError as `attempt` does.
        """
        shown = attempt(
            clean,
            perturbation,
            logits,
            targets,
            label=label,
            iteration=iteration,
            iterations=iterations,
            running=running,
        )
        if self.class_names and len(self.class_names) != len(shown.logits):
            raise ValueError(
                f"logits has {len(shown.logits)} entries: there are {len(self.class_names)} "
                "class_names"
            )
        self.last, self._pending = shown, True
        self._flush()

    def _flush(self) -> None:
        late = time.monotonic() - self._sent_at > PATIENCE_S
        # Without a page nobody acknowledges, and what is displayed or exported later is the last.
        alone = not self._models
        if self._pending and (alone or late or self._sent - self.acknowledged < AHEAD):
            self._send()

    def _acknowledge(self, event: param.parameterized.Event) -> None:
        self._flush()

    def _send(self) -> None:
        self._pending = False
        self._sent += 1
        self._sent_at = time.monotonic()
        changed = {}
        # The clean image goes only when it is another one.
        if self._clean is None or not np.array_equal(self._clean, self.last.clean):
            self._clean = self.last.clean.copy()
            self._image += 1
            changed["image"] = pack_image(self.last, self._image)
        self.param.update(frame=pack(self.last, self._sent, self._image, self.n_rows), **changed)

    def name_of(self, k: int) -> str:
        """Name of class `k`, its number when no names are given."""
        return self.class_names[k] if self.class_names else str(k)

    # The still -------------------------------------------------------------------------------

    def still(self, width: int = 160) -> Html:
        """The last state without script: pictures `width` pixels wide, norms, order of classes.

        Raises ValueError when nothing was shown yet.
        """
        if self.last is None:
            raise ValueError("nothing to draw: call show(clean, perturbation, logits) first")
        shown, limit = self.last, 1 / self.gain
        scale = max(1, -(-2 * width // shown.clean.shape[-1]))  # sharp in print: two pixels a pixel
        delta = images.field_image(
            signed(shown.perturbation, self.channel), -limit, limit, colors="diverging", scale=scale
        )
        legend = _ramp(self.colors, limit, width)
        if shown.clean.ndim == 3:
            legend += f"channel: {self.channel}"
        pictures = [
            ("Clean", "values 0 to 1", picture_png(shown.clean, scale)),
            ("Perturbation", legend, images.png(*delta)),
            (
                "Attacked",
                "clean + perturbation",
                picture_png(shown.clean + shown.perturbation, scale),
            ),
        ]
        figures = "".join(
            f'<figure style="margin:0;width:{width}px;break-inside:avoid"><b>{title}</b>'
            f'<img alt="{html.escape(self.caption)}: {title.lower()}" '
            f'src="{images.data_url(png)}" '
            f'style="width:{width}px;display:block;border:1px solid {INK};'
            f'image-rendering:pixelated"><figcaption style="color:{MUTED};font-size:12px">'
            f"{below}</figcaption></figure>"
            for title, below, png in pictures
        )
        norms = " &nbsp; ".join(
            f"ℓ<sub>{p}</sub> = {number(x)}" for p, x in zip("12∞", shown.norms, strict=True)
        )
        return Html(
            f'<div role="group" aria-label="{html.escape(self.caption)}" style="display:flex;'
            f"flex-wrap:wrap;align-items:flex-start;gap:14px 24px;font:13px/1.4 {FONT};"
            f'color:{INK};margin:.6em 0">'
            f'<div><div style="display:flex;flex-wrap:wrap;gap:12px">{figures}</div>'
            f'<p style="margin:.6em 0"><b>{said(shown)}</b><br>{norms}</p></div>'
            f"{self._table()}</div>"
        )

    def _table(self) -> str:
        rows = ranking(self.last, self.n_rows)
        low = min(0.0, *(row["logit"] for row in rows))
        high = max(0.0, *(row["logit"] for row in rows))
        span = (high - low) or 1.0
        cell = 'style="padding:1px 8px 1px 0;text-align:left;border:0;background:none"'
        lines, place = [], -1
        for row in rows:
            if row["place"] > place + 1:
                lines.append(f"<tr><td {cell} colspan=4>⋯</td></tr>")
            place, wanted = row["place"], row["wanted"]
            name = html.escape(self.name_of(row["class"]))
            if row["class"] == self.last.label:
                name += f' <span style="color:{MUTED}">true class</span>'
            start = 110 * (min(row["logit"], 0) - low) / span
            color = "#B8C0CA" if wanted is None else OKABE_ITO["blue"]
            bar = (
                f'<svg width="110" height="11" role="presentation"><rect x="{start:.1f}" width="'
                f'{110 * abs(row["logit"]) / span:.1f}" height="11" fill="{color}"/></svg>'
            )
            lines.append(
                f"<tr><td {cell}>{place + 1}</td><td {cell}>{name}</td>"
                f"<td {cell}>{_wanted(place, wanted)}</td>"
                f"<td {cell}>{bar} {row['logit']:.2f}</td></tr>".replace(" -", " −")
            )
        wanted = ", ".join(html.escape(self.name_of(t)) for t in self.last.targets)
        caption = "Predicted order of the attacked image"
        caption += f'<br><span style="font-weight:400">Wanted: {wanted}</span>' if wanted else ""
        head = "".join(
            f'<th scope="col" {cell}>{h}</th>' for h in ("Place", "Class", "Wanted", "Logit")
        )
        return (
            '<table style="border-collapse:collapse;font-size:13px;margin:0;break-inside:avoid;'
            'font-variant-numeric:tabular-nums"><caption style="text-align:left;font-weight:600;'
            f'color:{INK};max-width:340px">{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        )


def _wanted(place: int, wanted: int | None) -> str:
    """The wanted place with a sign that says how far away it is: never color alone."""
    if wanted is None:
        return ""
    if place == wanted:
        sign, color = "✓", IN_PLACE
    else:
        sign, color = f"{'↑' if place > wanted else '↓'}{abs(place - wanted)}", ASTRAY
    return (
        f'<span style="border-left:4px solid {color};padding-left:5px">{wanted + 1} {sign}</span>'
    )


def _ramp(colors: Sequence[str], limit: float, width: int) -> str:
    """The legend of the perturbation as SVG (backgrounds of HTML are not printed)."""
    stops = "".join(
        f'<rect x="{k * width / 32:.1f}" width="{width / 32 + 0.5:.1f}" height="9" '
        f'fill="{colors[k * 8 + k // 4]}"/>'
        for k in range(32)
    )
    return (
        f'<svg width="{width}" height="9" style="display:block;margin-top:4px" role="presentation">'
        f'{stops}</svg><span style="display:flex;justify-content:space-between">'
        f"<span>−{number(limit)}</span><span>0</span><span>+{number(limit)}</span></span>"
    )


def picture_png(picture: np.ndarray, scale: int = 1) -> bytes:
    """PNG of an (H, W) or (3, H, W) picture with values in [0, 1], clipped; pixels repeated."""
    codes = np.rint(255 * np.clip(picture, 0, 1)).astype(np.uint8)
    codes = codes.repeat(scale, axis=-2).repeat(scale, axis=-1)
    stream = io.BytesIO()
    image = Image.fromarray(codes if codes.ndim == 2 else np.moveaxis(codes, 0, -1).copy())
    image.save(stream, "PNG", compress_level=6)
    return stream.getvalue()
