"""The live views of NeuralCPM: a running tissue, and one copy attempt under the lens.

Pictures here are pure functions; `LiveTissue` connects them to a `Tissue`, to the lattice view and
to the parameters, which act on the running simulation. Nothing is fitted or trained here.
"""

from __future__ import annotations

import base64
import html
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import panel as pn

from workbench import theme
from workbench.explorer import Explorer
from workbench.widgets import images
from workbench.widgets.lattice_view import Frame, LatticeView
from workbench.widgets.traces import Chart, Series, Traces

from . import study
from .tissue import Tissue

# What acts on the running tissue, in the order of the form.
LIVE = (
    "temperature", "proposal", "J01", "J02", "J11", "J12", "J22", "lam", "V_target", "connected",
    "field", "lam_act", "max_act", "lam_ch", "lam_P", "P_target", "contact_norm", "size", "n_cells",
)  # fmt: skip
KINDS = ("medium", "kind 1", "kind 2")
TRACE_S = 0.2  # least time between two points of the traces

_COLOR = theme.OKABE_ITO
CHARTS = (
    Chart("Energy by term", "energy", (
        Series("contact", _COLOR["blue"]),
        Series("volume", _COLOR["vermillion"]),
        Series("perimeter", _COLOR["purple"], optional=True),
        Series("field", _COLOR["green"], optional=True),
    )),
    Chart("Accepted copies", "%", (
        Series("accepted", _COLOR["blue"]),
    ), low=0),
    Chart("Mean cell volume", "sites", (
        Series("kind 1", images.KIND_COLORS[1]),
        Series("kind 2", images.KIND_COLORS[2]),
        Series("target", "#616E7C", dashed=True),
    )),
)  # fmt: skip


def traced(tissue: Tissue) -> dict[tuple[str, str], float]:
    """The numbers of `CHARTS` for a tissue now, by (chart, series)."""
    model = tissue.model
    volume, kind = model.volumes(), model.kind
    values = {("Energy by term", term): e for term, e in model.energy(terms=True).items()}
    if model.time > 0:
        values["Accepted copies", "accepted"] = 100 * model.acceptance
    values["Mean cell volume", "target"] = tissue.parameters.V_target
    for k in (1, 2):
        alive = (kind == k) & (volume > 0)
        if alive.any():
            values["Mean cell volume", f"kind {k}"] = float(volume[alive].mean())
    return values


def patch_png(cell: np.ndarray, kind: np.ndarray) -> bytes:
    """A small patch of a lattice as PNG: white lines between sites, black ones between cells."""
    scale = 28
    padded = np.pad(cell, ((0, 1), (0, 1)), mode="edge")  # no line against the other side
    indices, palette = images.lattice_image(padded, kind, scale=scale, thickness=3)
    indices = indices[: cell.shape[0] * scale, : cell.shape[1] * scale].copy()
    for lines in (indices[scale::scale], indices.T[scale::scale]):
        lines[lines != len(palette) - 1] = len(palette)
    return images.png(indices, [*palette, "#FFFFFF"])


def lens_html(
    cell: np.ndarray,
    kind: np.ndarray,
    site: Sequence[int],
    copies: Sequence[Mapping[str, Any]],
    temperature: float,
) -> str:
    """One copy attempt under the lens: the 3 x 3 patch before and after, Delta H term by term.

    cell: (H, W) lattice; site: (row, column) of the target; copies: what `Tissue.copies_onto`
    found, the cheapest first. Says so when the site is not at a border.
    """
    row, column = site
    around = np.arange(-1, 2)
    height, width = cell.shape
    before = cell[np.ix_((row + around) % height, (column + around) % width)]

    def name(identity: int) -> str:
        return "the medium" if identity == 0 else f"cell {identity} ({KINDS[kind[identity]]})"

    def picture(patch: np.ndarray, caption: str) -> str:
        data = base64.b64encode(patch_png(patch, kind)).decode()
        return (
            f'<figure style="margin:0"><img alt="{caption}: 3 by 3 sites" width="84" height="84" '
            f'src="data:image/png;base64,{data}" style="border:1px solid {theme.INK};'
            f'border-radius:4px"><figcaption>{caption}</figcaption></figure>'
        )

    style = f"font:13px/1.4 {theme.FONT};color:{theme.INK};max-width:520px"
    owner = int(cell[row, column])
    head = f"<b>Site ({row}, {column})</b> of {html.escape(name(owner))}"
    if not copies:
        return (
            f'<div style="{style}">{head}: all eight neighbors belong to it too, so nothing can be '
            "copied here. Click a site at a border.</div>"
        )
    after = before.copy()
    after[1, 1] = copies[0]["identity"]
    used = [
        t
        for t in copies[0]["terms"]
        if t in ("contact", "volume") or any(abs(c["terms"][t]) > 1e-12 for c in copies)
    ]
    rows = [[t, *(f"{c['terms'][t]:+.2f}" for c in copies)] for t in used]
    rows.append(["<b>ΔH</b>", *(f"<b>{c['delta']:+.2f}</b>" for c in copies)])
    rows.append(
        [f"accepted at T = {temperature:g}", *(f"{100 * c['acceptance']:.1f} %" for c in copies)]
    )
    header = ["copy of", *(name(c["identity"]) for c in copies)]
    return (
        f'<div style="{style}"><div style="margin-bottom:6px">{head}</div>'
        f'<div style="display:flex;gap:16px;align-items:center">{picture(before, "before")}'
        f'<span aria-hidden="true" style="font-size:20px">→</span>'
        f"{picture(after, 'after the cheapest copy')}</div>{theme.table_html(header, rows)}</div>"
    )


class TissueSource:
    """A `Tissue` as a `Source` of frames for a lattice view."""

    kinds = KINDS

    def __init__(self, tissue: Tissue):
        self.tissue = tissue
        self.prices = False  # whether frames carry the map of the cheapest copies
        self.paint, self.kill = tissue.paint, tissue.kill

    def frame(self) -> Frame:
        """The lattice now, with the map of least Delta H when it is looked at."""
        model = self.tissue.model
        field = model.lowest_delta() if self.prices else None
        span = None
        if field is not None:
            finite = np.abs(field[np.isfinite(field)])
            # Symmetric about zero, in powers of two, so that colors keep their meaning.
            reach = np.quantile(finite, 0.95) if finite.size else 1.0
            reach = float(2.0 ** np.ceil(np.log2(max(reach, 0.5))))
            span = (-reach, reach)
        return Frame(model.cell, model.kind, model.time, field, "least ΔH", "energy", span)

    def advance(self, n: int) -> Frame:
        """`n` MCS on."""
        self.tissue.model.step(n)
        return self.frame()

    def reset(self, seed: int) -> Frame:
        """A fresh start."""
        self.tissue.reset(seed)
        return self.frame()


class LiveTissue:
    """The running tissue with its charts and its lens; parameters act on it at once.

    `view` is the lattice view, `panel()` the whole layout.
    """

    def __init__(self, parameters: study.Parameters):
        self.tissue = Tissue(parameters)
        self.source = TissueSource(self.tissue)
        self.traces = Traces(CHARTS, time_unit="MCS")
        self.view = LatticeView(
            self.source,
            field_colors="diverging",
            colorings=["kind", "cell", "field"],
            tools=["inspect", "paint:1", "paint:2", "erase", "kill"],
            time_unit="MCS",
            caption="Tissue of cells",
            seed=parameters.seed,
            max_width=420,
        )
        self._drawn = 0.0
        self._lens = pn.pane.HTML(
            f'<div style="font:13px {theme.FONT};color:{theme.MUTED}">Click a site at a border to '
            "put one copy attempt under the lens.</div>",
            margin=(8, 0),
        )
        self.traces.note(0.0, traced(self.tissue))
        self.view.on_frame.append(self._on_frame)
        self.view.param.watch(self._on_colors, "color_by")
        self.view.param.watch(lambda event: self._look(), "selected")
        parameters.param.watch(lambda *events: self.view.do(self.tissue.obey), list(LIVE))
        parameters.param.watch(lambda event: self.view.param.update(seed=event.new), "seed")

    def panel(self) -> pn.viewable.Viewable:
        """Lattice and lens, with the charts beside them, or below where the page is narrow."""
        permute = pn.widgets.Button(label="Permute kinds", width=130, margin=(8, 0, 0, 0))
        permute.on_click(lambda event: self.view.do(self.tissue.permute_kinds))
        left = pn.Column(
            self.view, permute, self._lens, width=430, margin=(0, 20, 0, 0), styles={"flex": "none"}
        )
        right = pn.Column(self.traces, width=340, margin=0, styles={"flex": "none"})
        return pn.FlexBox(left, right, flex_wrap="wrap", margin=0, sizing_mode="stretch_width")

    def _on_frame(self, frame: Frame) -> None:
        now = time.monotonic()
        if now - self._drawn < TRACE_S and self.view.playing:
            return
        self._drawn = now
        self.traces.note(frame.time, traced(self.tissue))
        if self.view.selected:
            self._look()

    def _on_colors(self, event: Any) -> None:
        self.source.prices = event.new == "field"
        self.view.do(lambda: None)  # the next frame carries the map, or no longer does

    def _look(self) -> None:
        row, column = self.view.selected
        size = self.tissue.parameters.size
        if max(row, column) >= size:  # the lattice has shrunk since the click
            self.view.param.update(selected=[], marks=[])
            return
        self.view.marks = [[row - 1, column - 1, 3, 3]]
        model = self.tissue.model
        self._lens.object = lens_html(
            model.cell, model.kind, (row, column), self.tissue.copies_onto(row, column), model.T
        )


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new tissue that follows `parameters`."""
    tissue = LiveTissue(parameters)
    layout = tissue.panel()
    layout.tissue = tissue  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> bytes:
    """The tissue after `parameters.mcs` MCS as PNG, for reports."""
    tissue = Tissue(parameters)
    tissue.model.step(parameters.mcs)
    scale = max(2, 480 // parameters.size)
    return images.png(*images.lattice_image(tissue.model.cell, tissue.model.kind, scale=scale))


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of NeuralCPM; `pieces` are further arguments of `Explorer`, such as `views`."""
    parameters = parameters or study.Parameters()
    of_the_study = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, live=live, still=still, only=[*LIVE, *of_the_study], **pieces)
