"""The polytope: where the wanted order holds on a plane that two singular vectors span.

Picture 3 of the method: the network's own cells from a grid of forward passes, the half-planes of
the linearized program, and the attack's way. `polytope_chart` is a pure function of a `Plane`;
`PolytopePanel` is its thin skin and asks for planes, which are computed elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import holoviews as hv
import numpy as np
import panel as pn

from workbench.theme import FONT, INK, MUTED, OKABE_ITO
from workbench.widgets.faders import Faders
from workbench.widgets.images import tint

from .subspace import Plane

SLICE_NAMES = {"the QP solution": "solution", "the clean image": "image"}
CELL_COLOR, PARTIAL = tint(OKABE_ITO["green"], 0.25), OKABE_ITO["sky"]


def place_colors(K: int) -> list[str]:
    """Colors of 0..K first places right: paper, ever more blue, and green for the whole order."""
    between = [tint(PARTIAL, 0.85 - 0.6 * k / max(K - 1, 1)) for k in range(1, K)]
    return ["#F4F4F1", *between, CELL_COLOR]


def _inside(lines: np.ndarray, window: tuple[float, float, float, float]) -> np.ndarray:
    """The segments (n, 4) that lines (m, 3) cut from a window; lines that miss it are left out."""
    left, bottom, right, top = window
    middle, radius = np.array([left + right, bottom + top]) / 2, np.hypot(right - left, top - bottom)
    length = np.hypot(lines[:, 0], lines[:, 1])
    normal = lines[:, :2] / np.where(length > 0, length, 1)[:, None]
    distance = lines[:, 2] / np.where(length > 0, length, 1) - normal @ middle
    seen = (length > 0) & (np.abs(distance) < radius)
    foot, along = middle + distance[:, None] * normal, normal[:, ::-1] * (-1, 1)
    segments = np.hstack([foot - radius * along, foot + radius * along])
    segments[~seen] = np.nan
    return segments


def polytope_chart(plane: Plane) -> hv.Overlay:
    """Cells of the network, half-planes of the program, limits of the box, and the iterates."""
    names = [f"coefficient of vector {k + 1} [l2]" for k in plane.axes]
    left, bottom, right, top = plane.window
    step = (right - left) / (len(plane.a) - 1) / 2
    bounds = (left - step, bottom - step, right + step, top + step)
    cells = hv.Image(
        plane.places[::-1].astype(float), names, "first places right", bounds=bounds
    ).opts(
        cmap=place_colors(plane.K), clim=(-0.5, plane.K + 0.5), colorbar=True, tools=["hover"],
        colorbar_opts={"title": "first places right", "title_text_font_style": "normal"},
    )  # fmt: skip
    if plane.K > 12:
        cells = cells.opts(colorbar=True)
    segments = _inside(plane.lines, plane.window)
    pieces = []
    for active, label, color, width in (
        (False, "inequality", MUTED, 0.7), (True, "active inequality", OKABE_ITO["blue"], 2.0),
    ):  # fmt: skip
        rows = segments[(plane.active == active) & np.isfinite(segments[:, 0])]
        path = [[row[:2], row[2:]] for row in rows]
        pieces.append(hv.Path(path, names, label=label).opts(color=color, line_width=width))
    for corners, label, color, dash in (
        (plane.cell, "linearized cell", OKABE_ITO["blue"], "solid"),
        (plane.box, "pixels in [0, 1]", OKABE_ITO["purple"], "dashed"),
    ):
        closed = [np.vstack([corners, corners[:1]])] if len(corners) else []
        pieces.append(
            hv.Path(closed, names, label=label).opts(color=color, line_dash=dash, line_width=3)
        )
    if len(plane.iterates):
        pieces.append(hv.Curve(plane.iterates, *names, label="the attack's way").opts(
            color=OKABE_ITO["vermillion"], line_width=1.5, tools=[]))  # fmt: skip
        pieces.append(hv.Points(plane.iterates, names).opts(
            color=OKABE_ITO["vermillion"], size=5, tools=[]))  # fmt: skip
    start = hv.Points([(0.0, 0.0)], names, label="clean image").opts(
        marker="circle", size=11, color="white", line_color=INK, line_width=2
    )
    end = hv.Points([tuple(plane.solution)], names, label="QP solution").opts(
        marker="star", size=17, color=OKABE_ITO["yellow"], line_color=INK
    )
    what = "the QP solution" if plane.through == "solution" else "the clean image"
    return hv.Overlay([cells, *pieces, start, end]).opts(
        title=f"Plane through {what}: green is the wanted order", width=720, height=500,
        legend_position="right", xlim=(left, right), ylim=(bottom, top), show_grid=False,
        toolbar="above",
    )  # fmt: skip


def plane_words(plane: Plane) -> str:
    """What the picture says, in words, with the number of grid points in the wanted cell."""
    n = int((plane.places == plane.K).sum())
    found = (
        f"The wanted order holds at {n} of {plane.places.size} points of this grid."
        if n
        else "The wanted order holds nowhere on this grid."
    )
    other = (
        "All other coefficients are those of the solution; the clean image and the iterates are "
        "projected onto the plane."
        if plane.through == "solution"
        else "All other coefficients are 0; the solution and the iterates are projected onto the "
        "plane."
    )
    linear = "" if len(plane.cell) else " The linearized cell does not meet this window."
    return f"{found} {other}{linear}"


class PolytopePanel:
    """The chart with its choices; `ask()` is called when another plane is wanted."""

    def __init__(self, ask: Callable[[], None]):
        self.plane: Plane | None = None
        self.slice = pn.widgets.RadioButtonGroup(
            label="Plane through", options=SLICE_NAMES, value="solution", width=250,
            margin=(0, 20, 0, 0),
        )  # fmt: skip
        self.zoom = Faders(
            names=["Zoom, powers of 2"], values=[0], lows=[0], highs=[6], steps=[1], width=190,
            sizing_mode="fixed", caption="Zoom",
        )  # fmt: skip
        self.chart = pn.pane.HoloViews(None, sizing_mode="fixed", margin=(6, 0))
        self.words = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 0))
        self.slice.param.watch(lambda event: ask(), "value")
        self.zoom.param.watch(lambda event: ask(), "values")

    def panel(self) -> pn.viewable.Viewable:
        """Choices, chart and words."""
        title = pn.pane.HTML(
            f'<div style="font:13px {FONT}">Plane through</div>', width=95, margin=(6, 0)
        )
        choices = pn.Row(title, self.slice, self.zoom, margin=(8, 0))
        return pn.Column(choices, self.words, self.chart, sizing_mode="stretch_width", margin=0)

    @property
    def settings(self) -> dict[str, object]:
        """Arguments of `plane_steps`."""
        return {"through": self.slice.value, "zoom": 2.0 ** self.zoom.values[0]}

    def show(self, plane: Plane) -> None:
        """Draw a plane."""
        self.plane = plane
        self.chart.object = polytope_chart(plane)
        self.words.object = f'<div style="font:13px/1.45 {FONT}">{plane_words(plane)}</div>'
