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

from workbench.steps import Steps, part
from workbench.theme import FONT, INK, MUTED, OKABE_ITO
from workbench.widgets.faders import Faders
from workbench.widgets.images import tint

from .subspace import Plane

SLICE_NAMES = {"the QP solution": "solution", "the clean image": "image"}
CELL_COLOR, PARTIAL, NONE = tint(OKABE_ITO["green"], 0.25), OKABE_ITO["sky"], "#F4F4F1"
WAY, ACTIVE, LIMIT = OKABE_ITO["vermillion"], OKABE_ITO["blue"], OKABE_ITO["purple"]
CLOSE_UP = 5  # powers of 2: the wanted cell is small where many inequalities are active


def place_colors(K: int) -> list[str]:
    """Colors of 0..K first places right: paper, ever more blue, and green for the whole order."""
    between = [tint(PARTIAL, 0.8 - 0.8 * k / max(K - 1, 1)) for k in range(1, K)]
    return [NONE, *between, CELL_COLOR]


def segments_inside(
    lines: np.ndarray, window: tuple[float, float, float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Which lines (m, 3) come near a window, (m,) bool, and a segment (n, 4) of each of them."""
    left, bottom, right, top = window
    middle, radius = (
        np.array([left + right, bottom + top]) / 2,
        np.hypot(right - left, top - bottom),
    )
    length = np.hypot(lines[:, 0], lines[:, 1])
    scaled = lines / np.where(length > 0, length, 1)[:, None]
    distance = scaled[:, 2] - scaled[:, :2] @ middle
    seen = (length > 0) & (np.abs(distance) < radius)
    normal = scaled[seen, :2]
    foot, along = middle + distance[seen, None] * normal, normal[:, ::-1] * (-radius, radius)
    return seen, np.hstack([foot - along, foot + along])


def polytope_chart(plane: Plane, title: str = "") -> hv.Overlay:
    """Cells of the network, half-planes of the program, limits of the box, and the iterates.

    Colors and lines as in `legend_html`.
    """
    names = [f"coefficient of vector {k + 1} [l2]" for k in plane.axes]
    left, bottom, right, top = plane.window
    half = (right - left) / (len(plane.a) - 1) / 2
    bounds = (left - half, bottom - half, right + half, top + half)
    cells = hv.Image(plane.places[::-1].astype(float), names, "first places right", bounds=bounds)
    # All strokes are one element, all circles another: each further one takes a tenth of a second.
    seen, edges = segments_inside(plane.lines, plane.window)
    active = plane.active[seen]
    strokes = [
        *_strokes(edges[~active], MUTED, 0.7),
        *_strokes(edges[active], ACTIVE, 1.6),
        *_strokes(_around(plane.box, plane.window), LIMIT, 3.0),
        *_strokes(_around(plane.cell, plane.window), ACTIVE, 4.0),
        *_strokes(np.hstack([plane.iterates[:-1], plane.iterates[1:]]), WAY, 1.5),
    ]
    circles = [(*point, WAY, WAY, 6) for point in plane.iterates] + [(0.0, 0.0, "white", INK, 14)]
    return hv.Overlay([
        cells.opts(
            cmap=place_colors(plane.K), clim=(-0.5, plane.K + 0.5), colorbar=False, tools=["hover"]
        ),
        hv.Segments(strokes, [*names, "end a", "end b"], ["color", "width"]).opts(
            color="color", line_width="width"
        ),
        hv.Points(circles, names, ["color", "edge", "size"]).opts(
            color="color", line_color="edge", size="size", tools=[]
        ),
        hv.Points([tuple(plane.solution)], names).opts(
            marker="star", color=OKABE_ITO["yellow"], line_color=INK, size=15, tools=[]
        ),
    ]).opts(
        title=title, width=400, height=390, xlim=(left, right), ylim=(bottom, top),
        show_grid=False, show_legend=False, toolbar=None,
        fontsize={"title": 12, "labels": 11, "ticks": 9},
    )  # fmt: skip


def _strokes(edges: np.ndarray, color: str, width: float) -> list[tuple]:
    return [(*edge, color, width) for edge in edges.reshape(-1, 4)]


def _around(corners: np.ndarray, window: tuple[float, float, float, float]) -> np.ndarray:
    """The edges (n, 4) of a polygon (p, 2), without those that only follow the window."""
    edges = np.hstack([corners, np.roll(corners, -1, axis=0)])
    sides = np.array(window)
    small = 1e-6 * (window[2] - window[0])
    starts, ends = edges[:, [0, 1, 0, 1]], edges[:, [2, 3, 2, 3]]
    along = (np.abs(starts - sides) < small) & (np.abs(ends - sides) < small)
    return edges[~along.any(1)]


def legend_html(K: int) -> str:
    """The signs of the chart: cells by places right, lines and points."""

    def swatch(color: str) -> str:
        return (
            f'<svg width="16" height="12" role="presentation"><rect width="16" height="12" '
            f'fill="{color}" stroke="{MUTED}"/></svg>'
        )

    def line(color: str, width: float) -> str:
        return (
            f'<svg width="24" height="12" role="presentation"><path d="M0 6H24" stroke="{color}" '
            f'stroke-width="{width}"/></svg>'
        )

    colors = place_colors(K)
    some = [0, *range(1, K)] if K <= 6 else [0, 1, K // 2, K - 1]
    star = "M8 0L10 6L16 6L11 9.5L13 15L8 11.5L3 15L5 9.5L0 6L6 6Z"
    entries = [
        *((swatch(colors[k]), f"{k} of {K} first places right") for k in some),
        (swatch(colors[K]), "the wanted order"),
        (line(MUTED, 1), "inequality"),
        (line(ACTIVE, 2), "active inequality"),
        (line(ACTIVE, 4), "linearized cell"),
        (line(LIMIT, 3), "pixels in [0, 1]"),
        (line(WAY, 2), "the attack's way"),
        (
            f'<svg width="14" height="14" role="presentation"><circle cx="7" cy="7" r="5.5" '
            f'fill="white" stroke="{INK}" stroke-width="1.5"/></svg>',
            "clean image",
        ),
        (
            f'<svg width="16" height="16" role="presentation"><path d="{star}" '
            f'fill="{OKABE_ITO["yellow"]}" stroke="{INK}"/></svg>',
            "QP solution",
        ),
    ]
    items = "".join(
        f'<span style="white-space:nowrap">{sign} {words}</span>' for sign, words in entries
    )
    return (
        f'<div style="font:12px/1.5 {FONT};display:flex;flex-wrap:wrap;gap:2px 16px">{items}</div>'
    )


def plane_words(plane: Plane, close_up: Plane) -> str:
    """What the pictures say, in words, with how much of the close-up is the wanted cell."""
    share = float((close_up.places == plane.K).mean())
    n_active = int(plane.active.sum())
    if plane.through == "solution":
        where = (
            "All other coefficients are kept at the solution; the clean image and the iterates are "
            "projected onto the plane."
        )
    else:
        where = "All other coefficients are 0; the solution and iterates are projected."
    found = (
        f"In the close-up the wanted order holds on {100 * share:.2g} % of the plane."
        if share
        else "In the close-up the wanted order holds nowhere."
    )
    corner = (
        f" {n_active} inequalities are active at the solution: it is a corner of the polytope, of "
        "which a plane cuts little."
        if n_active > 2 and plane.through == "solution"
        else ""
    )
    return f"{where} {found}{corner}"


class PolytopePanel:
    """Two charts, whole and close-up, with their choices; `ask()` when other planes are wanted."""

    def __init__(self, ask: Callable[[], None]):
        self.planes: tuple[Plane, Plane] | None = None
        self.slice = pn.widgets.RadioButtonGroup(
            label="Plane through", options=SLICE_NAMES, value="solution", width=250,
            margin=(0, 20, 0, 0),
        )  # fmt: skip
        self.zoom = Faders(
            names=["Close-up, powers of 2"], values=[CLOSE_UP], lows=[1], highs=[8], steps=[1],
            width=190, sizing_mode=None, caption="Magnification of the close-up",
        )  # fmt: skip
        empty = {"sizing_mode": "fixed", "width": 400, "height": 390, "margin": (6, 8, 0, 0)}
        self.charts = [pn.pane.HoloViews(None, linked_axes=False, **empty) for _ in range(2)]
        self.words = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 0))
        self.legend = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 0))
        self.slice.param.watch(lambda event: ask(), "value")
        self.zoom.param.watch(lambda event: ask(), "values")

    def panel(self) -> pn.viewable.Viewable:
        """Choices, words, charts and legend."""
        title = pn.pane.HTML(
            f'<div style="font:13px {FONT}">Plane through</div>', width=95, margin=(6, 0)
        )
        choices = pn.FlexBox(title, self.slice, self.zoom, flex_wrap="wrap", margin=(8, 0, 0, 0))
        charts = pn.FlexBox(*self.charts, flex_wrap="wrap", margin=0)
        return pn.Column(
            choices, self.words, charts, self.legend, sizing_mode="stretch_width", margin=0
        )

    def plane_steps(self, steps: Callable[..., Steps[Plane]]) -> Steps[tuple[Plane, Plane]]:
        """Both planes as they are chosen now; `steps(through=..., zoom=...)` makes one."""
        through, power = self.slice.value, self.zoom.values[0]
        whole = yield from part(steps(through=through, zoom=1.0), 0.0, 0.5)
        close_up = yield from part(steps(through=through, zoom=2.0**power), 0.5, 1.0)
        return whole, close_up

    def show(self, planes: tuple[Plane, Plane]) -> None:
        """Draw the whole way and the close-up."""
        self.planes = planes
        center = "QP solution" if planes[0].through == "solution" else "clean image"
        power = round(
            np.log2((planes[0].a[-1] - planes[0].a[0]) / (planes[1].a[-1] - planes[1].a[0]))
        )
        titles = "The attack's whole way", f"Close-up of the {center}, {2**power} times"
        for pane, plane, title in zip(self.charts, planes, titles, strict=True):
            pane.object = polytope_chart(plane, title)
        self.words.object = f'<div style="font:13px/1.45 {FONT}">{plane_words(*planes)}</div>'
        self.legend.object = legend_html(planes[0].K)
