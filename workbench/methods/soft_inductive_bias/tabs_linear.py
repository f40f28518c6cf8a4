"""Tabs of linear models, all in closed form: polynomials, sample size, least squares, two axes."""

from __future__ import annotations

import numpy as np
import panel as pn

from workbench.widgets.drawing import Drawing

from . import closed_forms, drawings, factored, polynomials, study
from .closed_forms import Polynomials as Errors
from .closed_forms import single
from .tabs import Tab, log10, narrow

PLAIN_RIDGE = 1e-7  # the left end of a ridge slider, where it counts as none


def ridge_of(place: float) -> float:
    """The ridge at a place of its slider, which shows powers of ten."""
    return 0.0 if place <= log10(PLAIN_RIDGE) + 1e-9 else float(10.0**place)


class Polynomials(Tab):
    """A: three kinds of data, one prior."""

    title = "Polynomials"
    hears = frozenset({"order", "gamma", "sigma2", "basis", "n_points", "seed"})

    def build(self) -> None:
        self.samples: np.ndarray | None = None
        self.sliders = self.faders("Polynomial", self._moved, *self._rows())
        self.sample_button = self.button("Samples of the prior", self.toggle_samples, 150)
        # A group, since a single checkbox of Panel has no name for screen readers.
        self.scattered = pn.widgets.CheckBoxGroup(
            label="Examples", options=["Random x instead of the grid"], margin=(4, 0)
        )
        self.scattered.param.watch(lambda event: self.redraw(), "value")
        self.fits, self.coefficients = Drawing(), Drawing()
        self.redraw()

    def layout(self) -> list:
        top = pn.Row(self.sample_button, self.scattered, margin=0)
        return [top, narrow(self.sliders), self.fits, self.coefficients]

    def changed(self, names: set[str]) -> None:
        self.follow(self.sliders, [row[1] for row in self._rows()])
        self.redraw()

    def toggle_samples(self) -> None:
        """Show five functions drawn from the prior, or hide them."""
        p, shown = self.parameters, self.samples is not None
        self.samples = None if shown else polynomials.prior_samples(
            closed_forms.PLOT, p.order, p.gamma, p.basis, np.random.default_rng()
        )  # fmt: skip
        self.redraw()

    def redraw(self) -> None:
        """Refit all three kinds of data and draw them."""
        p = self.parameters

        def fits() -> str:
            self.fit = closed_forms.refit(
                p.order, p.gamma, p.sigma2, p.basis, p.n_points, p.seed, bool(self.scattered.value)
            )
            return drawings.fits(self.fit, self.samples)

        if self.draw(self.fits, fits):
            self.coefficients.html = str(drawings.row(
                drawings.coefficients(self.fit, p.gamma),
                drawings.error_by_order(self.fit, p.order),
                drawings.evidence_curve(self.fit, p.order),
            ))  # fmt: skip

    def _rows(self) -> list[tuple]:
        p = self.parameters
        return [
            ("Order J", float(p.order), 0.0, 300.0, 1),
            ("log10(γ − 1)", log10(p.gamma - 1, 1e-3), -3.0, log10(2), 0.01),
            ("log10 σ²", log10(p.sigma2), -10.0, 0.0, 0.05),
            ("Points n", float(p.n_points), 3.0, 60.0, 1),
        ]  # fmt: skip

    def _moved(self) -> None:
        order, gamma, sigma2, n = self.sliders.values
        self.parameters.param.update(
            order=int(order), gamma=1.0 if gamma <= -2.999 else min(1 + 10.0**gamma, 3.0),
            sigma2=float(np.clip(10.0**sigma2, 1e-10, 1)), n_points=int(n),
        )  # fmt: skip


class SampleSize(Tab):
    """A2: hard and soft models on more and more examples, soft ones chosen by evidence."""

    title = "Sample size"
    hears = frozenset({"basis", "seed"})

    def build(self) -> None:
        self.truth = pn.widgets.RadioButtonGroup(
            options=list(closed_forms.TRUTHS), value="cosine", label="Truth", margin=(0, 0, 6, 0)
        )
        self.truth.param.watch(lambda event: self.redraw(), "value")
        self.sliders = self.faders(
            "Sample", self.redraw, ("Examples n", 16.0, 4.0, 128.0, 1),
            ("Noise σ", closed_forms.EFFICIENCY_NOISE, 0.02, 1.0, 0.01),
        )  # fmt: skip
        self.fits = Drawing()

    def layout(self) -> list:
        return [self.truth, narrow(self.sliders), self.fits]

    def open(self) -> None:
        if not self.fits.html:
            self.redraw()

    def changed(self, names: set[str]) -> None:
        if self.fits.html:
            self.redraw()

    def redraw(self) -> None:
        """Refit all four models at every sample size."""
        n, noise = self.sliders.values
        p = self.parameters
        self.draw(self.fits, lambda: drawings.sample_fits(
            single(factored.sample, self.truth.value, int(n), float(noise), p.seed, p.basis)
        ))  # fmt: skip


class LeastSquares(Tab):
    """C1 and C4: double descent of minimum-norm least squares, simulated and exact."""

    title = "Least squares"
    hears = frozenset({"seed"})

    def build(self) -> None:
        self.weak: factored.Weak | None = None
        self.isotropic: factored.Isotropic | None = None
        self.sliders = self.faders(
            "Weak features", self.redraw_weak,
            ("Examples n", 80.0, 10.0, float(factored.WEAK_N), 1),
            ("Signal in a feature", 1.0, 0.0, 2.0, 0.01),
            ("log10 ridge", -7.0, -7.0, 3.0, 0.05), ("log10 α / n", -3.0, -9.0, 1.0, 0.1),
        )  # fmt: skip
        self.exact_sliders = self.faders(
            "Isotropic design", self.redraw_exact, ("Examples n", 50.0, 10.0, 80.0, 1),
            ("Noise σ", 0.5, 0.0, 2.0, 0.01), ("Size of θ", 1.0, 0.0, 3.0, 0.01),
        )  # fmt: skip
        self.weak_picture, self.exact_picture = Drawing(), Drawing()

    def layout(self) -> list:
        return [narrow(self.sliders), self.weak_picture, narrow(self.exact_sliders),
                narrow(self.exact_picture)]  # fmt: skip

    def open(self) -> None:
        if self.weak is None:
            self._draw_anew()

    def changed(self, names: set[str]) -> None:
        if self.weak is not None:
            self._draw_anew()

    def _draw_anew(self) -> None:
        self.weak, self.isotropic = factored.Weak(self.parameters.seed), None
        self.redraw_weak()
        self.redraw_exact()

    def redraw_weak(self) -> None:
        """C1 at these sliders, from the draw at hand."""
        n, signal, ridge, alpha = self.sliders.values
        self.weak = self.weak or factored.Weak(self.parameters.seed)
        self.draw(self.weak_picture, lambda: drawings.weak_descent(
            single(self.weak.errors, int(n), float(signal), ridge_of(ridge), 10.0**alpha)
        ))  # fmt: skip

    def redraw_exact(self) -> None:
        """C4 at these sliders; another n is simulated anew."""
        n, sigma, norm = self.exact_sliders.values
        if self.isotropic is None or self.isotropic.n != int(n):
            self.isotropic = single(factored.Isotropic, int(n), self.parameters.seed)
        self.exact_picture.html = str(drawings.exact_descent(self.isotropic, sigma, norm))


class TwoAxes(Tab):
    """I: common models, and the polynomial of the form, on both axes."""

    title = "Two axes"
    hears = frozenset({"order", "gamma", "sigma2", "basis", "n_points", "seed"})

    def build(self) -> None:
        self.picture = Drawing()
        self._others: tuple[tuple, Errors | None] = ((), None)

    def layout(self) -> list:
        return [narrow(self.picture)]

    def open(self) -> None:
        self.redraw()

    def changed(self, names: set[str]) -> None:
        if self.bench.shown is self:
            self.redraw()

    def redraw(self) -> None:
        """Place the polynomial of the form among the models, which change with their data only."""
        p = self.parameters
        key = (p.sigma2, p.n_points, p.seed)
        if self._others[0] != key:
            plain = study.Parameters(sigma2=p.sigma2, n_points=p.n_points, seed=p.seed)
            self._others = (key, single(closed_forms.few_polynomials, plain))
        self.picture.html = str(single(_axes, p, self._others[1]))


def own_name(p: study.Parameters) -> str:
    """What the polynomial of the form is called."""
    return closed_forms.soft_name(p.gamma, p.order, p.basis)


def _axes(p: study.Parameters, others: Errors) -> str:
    from . import findings

    finished, own = study.SoftBiasStudy(p), own_name(p)
    mine = closed_forms.few_polynomials(p, only=own)
    finished.polynomials = Errors(others.errors | mine.errors, others.edge | mine.edge)
    places = findings.axes(finished)
    return drawings.axes_chart(
        [row for row in places if row[0] != own],
        [(f"yours: {name}", f, s) for name, f, s in places if name == own],
    )
