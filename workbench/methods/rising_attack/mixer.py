"""The mixer: right singular vectors of the adversarial Jacobian as faders of an image.

Picture 2 of the method. A `Program` says which vectors there are and which coefficients z solve its
small quadratic program; every position of the faders is a perturbation, shown at once. Pictures
are pure functions; nothing is attacked here.
"""

from __future__ import annotations

from collections.abc import Callable

import holoviews as hv
import numpy as np
import panel as pn

from workbench.theme import FONT, MUTED, OKABE_ITO
from workbench.widgets import images
from workbench.widgets.faders import Faders

from .subspace import Program

SHOWN = 12
REACH = 1.5  # faders go so far beyond the largest coefficient of the solution
REST, FIXED = "other vectors", "fixed pixels"


def vector_png(program: Program, k: int, scale: int = 4) -> bytes:
    """Right singular vector k as PNG: blue below 0, white at 0, orange above, fixed pixels gray.

    Of an image with three channels, their sum.
    """
    vector = np.where(program.solution.free, program.direction(k), np.nan)
    picture = vector.reshape(program.image.shape).sum(0)
    limit = np.nanmax(np.abs(picture), initial=1e-12)
    return images.png(*images.field_image(picture, -limit, limit, colors="diverging", scale=scale))


def spectrum_chart(program: Program) -> hv.Layout:
    """Singular values, and the solution's coefficient of each vector."""
    sigma, z = program.solution.singular_values, program.solution.coefficients
    number = np.arange(1, len(z) + 1)
    ticks = np.unique(np.linspace(1, len(z), min(len(z), 9)).astype(int)).tolist()
    common = {"width": 330, "height": 230, "toolbar": None, "xticks": ticks}
    common["fontsize"] = {"title": 12, "labels": 11, "ticks": 9}
    low = 10 ** np.floor(np.log10(sigma.min()))
    spectrum = hv.Scatter((number, sigma), "singular vector", "singular value [logits per l2]")
    spectrum = spectrum.opts(title="Spectrum", logy=True, ylim=(low, 2 * sigma.max()), **common)
    solution = hv.Spikes((number, z), "singular vector", "coefficient z [l2]").opts(
        title="QP solution", color=OKABE_ITO["vermillion"], line_width=3, show_grid=True,
        tools=["hover"], **common,
    )  # fmt: skip
    return (spectrum + solution).opts(shared_axes=False, toolbar=None)


class Mixer:
    """Faders for the first 12 coefficients, one for all others together, one for fixed pixels.

    show: called with each perturbation (C, H, W) that the faders make. `panel()` is the layout.
    """

    def __init__(self, show: Callable[[np.ndarray], None]):
        self.program: Program | None = None
        self._show, self._quiet = show, False
        self.faders = Faders(caption="Coefficients z of the right singular vectors")
        self.faders.param.watch(lambda event: self._mix(), "values")
        self.words = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 0))
        self.charts = [
            pn.pane.HoloViews(
                None, linked_axes=False, sizing_mode="fixed", width=330, height=230, margin=0
            )
            for _ in range(2)
        ]
        solution = pn.widgets.Button(label="QP solution", color="primary", width=110, margin=0)
        zero = pn.widgets.Button(label="Zero", width=80, margin=(0, 0, 0, 8))
        solution.on_click(lambda event: self.to_solution())
        zero.on_click(lambda event: self.to_zero())
        self._buttons = pn.Row(solution, zero, margin=(4, 0, 8, 0))

    def panel(self) -> pn.viewable.Viewable:
        """Words, buttons, faders and charts."""
        return pn.Column(
            self.words, self._buttons, self.faders, pn.FlexBox(*self.charts, margin=0),
            sizing_mode="stretch_width", margin=(8, 0),
        )  # fmt: skip

    def load(self, program: Program, iteration: int) -> None:
        """Take the vectors of another program and put the faders at its solution."""
        self.program = program
        z, sigma = program.solution.coefficients, program.solution.singular_values
        n = min(SHOWN, len(z))
        reach = REACH * max(np.abs(z).max(initial=0), 0.1)
        extra = [REST] * (len(z) > n) + [FIXED] * bool((~program.solution.free).any())
        n_fixed = int((~program.solution.free).sum())
        notes = {REST: f"share of {len(z) - n} more", FIXED: f"share of {n_fixed} at a bound"}
        self._quiet = True
        try:
            self.faders.set(
                names=[*(f"z{k + 1}" for k in range(n)), *extra],
                notes=[*(f"σ = {s:.3g}" for s in sigma[:n]), *(notes[e] for e in extra)],
                lows=[-reach] * n + [0.0] * len(extra),
                highs=[reach] * n + [1.5 if e == REST else 1.0 for e in extra],
                values=self._at_solution(),
                marks=self._at_solution(),
                pictures=[images.data_url(vector_png(program, k)) for k in range(n)]
                + [""] * len(extra),
            )
        finally:
            self._quiet = False
        what = "obeys all its inequalities" if program.solution.feasible else (
            "cannot obey all its inequalities: this is the least-squares one"
        )  # fmt: skip
        self.words.object = (
            f'<div style="font:13px/1.45 {FONT}">Linearized at iteration {iteration}: '
            f"{len(program.solution.G)} inequalities, {program.rank} right singular vectors in a "
            f"space of {program.image.size} pixels. The solution of the quadratic program {what}. "
            f'Marks: its coefficients. <span style="color:{MUTED}">The network itself is asked at '
            "every position of the faders.</span></div>"
        )
        for pane, chart in zip(self.charts, spectrum_chart(program), strict=True):
            pane.object = chart
        self._mix()

    def to_solution(self) -> None:
        """Faders to the solution of the program."""
        if self.program:
            self.faders.move(self._at_solution())

    def to_zero(self) -> None:
        """Faders to zero: the clean image."""
        if self.program:
            self.faders.move([0.0] * len(self.faders.names))

    def perturbation(self) -> np.ndarray:
        """(C, H, W) of the faders as they stand."""
        program, faders = self.program, self.faders
        place = dict(zip(faders.names, faders.values, strict=True))
        n = min(SHOWN, program.rank)
        z = program.solution.coefficients * place.get(REST, 1.0)
        z[:n] = faders.values[:n]
        return program.perturbation(z, place.get(FIXED, 1.0))

    def _at_solution(self) -> list[float]:
        z = self.program.solution.coefficients
        extra = (len(z) > SHOWN) + bool((~self.program.solution.free).any())
        return [*z[:SHOWN].tolist(), *[1.0] * extra]

    def _mix(self) -> None:
        if self.program and not self._quiet:
            self._show(self.perturbation())
