"""Tabs of closed forms on digits: random labels, random features, symmetry.

What is factored once is a job, and what follows a slider is products with the factors.
"""

from __future__ import annotations

import numpy as np
import panel as pn

from workbench.widgets.brush import Brush
from workbench.widgets.drawing import Drawing

from . import digits, double_descent, drawings, drawings_digits, experiments, factored, processes
from .closed_forms import single
from .tabs import Tab, log10, narrow
from .tabs_linear import PLAIN_RIDGE, ridge_of


class RandomLabels(Tab):
    """B: a Gaussian process fits any labels; the evidence tells them apart."""

    title = "Random labels"
    hears = frozenset({"length_scale", "noise", "seed"})

    def build(self) -> None:
        self.labels: factored.Labels | None = None
        self.sliders = self.faders(
            "Random labels", self._moved, ("Share of random labels ρ", 0.5, 0.0, 1.0, 0.01),
            ("log10 noise", log10(self.parameters.noise), -6.0, 0.0, 0.05),
        )  # fmt: skip
        self.size = self.faders(
            "Digits", self.factor,
            ("Training digits n", float(experiments.LABEL_DIGITS), 50.0, 1200.0, 50),
        )  # fmt: skip
        self.curves, self.neighbors = Drawing(), Drawing()
        self.wrong = Brush(
            drawings_digits.DIGITS_WIDTH, drawings_digits.DIGITS_HEIGHT, kind="line", at=0.02,
            caption="Digits read wrongly: click one, or use the arrow keys, to see its neighbors",
        )  # fmt: skip
        self.wrong.param.watch(lambda event: self.redraw_neighbors(), "at")

    def layout(self) -> list:
        return [narrow(self.sliders), narrow(self.size), self.curves, narrow(self.wrong),
                narrow(self.neighbors)]  # fmt: skip

    def open(self) -> None:
        if self.labels is None and not self.jobs.busy:
            self.factor()

    def changed(self, names: set[str]) -> None:
        self.follow(self.sliders, [self.sliders.values[0], log10(self.parameters.noise)])
        if self.labels is None:
            return
        if names & {"length_scale", "seed"}:
            self.factor()
        else:
            self.redraw()

    def _moved(self) -> None:
        noise = float(np.clip(10.0 ** self.sliders.values[1], 1e-6, 1))
        if np.isclose(noise, self.parameters.noise, rtol=1e-9, atol=0):
            self.redraw()  # only the share has moved
        else:
            self.parameters.noise = noise

    def factor(self) -> None:
        """Eigenvectors of the kernel of these digits, a job of a second."""
        p, n = self.parameters, int(self.size.values[0])
        self.start(lambda: factored.label_steps(p.seed, p.length_scale, n), self._take)

    def _take(self, labels: factored.Labels) -> None:
        self.labels = labels
        self.redraw()

    def redraw(self) -> None:
        """Accuracies and evidence at this share and noise, and the digits read wrongly."""
        if self.labels is None:
            return
        rho, noise = float(self.sliders.values[0]), self.parameters.noise
        found = single(self.labels.curves, noise)
        self.curves.html = str(drawings_digits.label_curves(factored.RHO, *found, rho))
        self.mistakes = single(self.labels.mistakes, rho, noise)
        self.redraw_neighbors()

    def redraw_neighbors(self) -> None:
        """The wrong digits, and the training digits that the chosen one is nearest to."""
        if self.labels is None:
            return
        found, (wrong, guess, labels) = self.labels, self.mistakes
        if not len(wrong):
            self.wrong.html = str(drawings.note("Every test digit is read rightly."))
            self.neighbors.html = ""
            return
        most = drawings_digits.SHOWN
        shown = wrong[:most]
        chosen = min(int(self.wrong.at * most), len(shown) - 1)
        s = found.split
        words = [f"{s.test_y[i]} as {guess[i]}" for i in shown]
        title = f"{len(wrong)} of {len(s.test_y)} test digits are read wrongly; click one"
        self.wrong.html = str(drawings_digits.digit_row(s.test_x[shown], words, chosen, title))
        near = np.argsort(-found.cross[shown[chosen]])[:most]
        words = [
            f"{labels[j]}" if labels[j] == s.clean_y[j] else f"{labels[j]} (is {s.clean_y[j]})"
            for j in near
        ]
        self.neighbors.html = str(drawings_digits.digit_row(
            s.train_x[near], words, None, "Its nearest training digits, with the labels given"
        ))  # fmt: skip


class DoubleDescent(Tab):
    """C2: random ReLU features of digits; ridge, label noise and alpha from factors at hand."""

    title = "Double descent"
    hears = frozenset({"n", "seed", "ridge", "label_noise"})

    def build(self) -> None:
        p = self.parameters
        self.features: list[double_descent.ReluFeatures] = []
        self._plain: tuple[tuple, np.ndarray] = ((), np.zeros((0, 2)))
        self.sliders = self.faders(
            "Ridge and label noise", self._moved,
            ("log10 ridge", log10(p.ridge, PLAIN_RIDGE), -7.0, 1.0, 0.05),
            ("Label noise", p.label_noise, 0.0, 1.0, 0.01), ("log10 α / n", -3.0, -9.0, 0.0, 0.1),
        )  # fmt: skip
        self.picture = Drawing()

    def layout(self) -> list:
        return [narrow(self.sliders), narrow(self.picture)]

    def open(self) -> None:
        if len(self.features) < len(factored.LIVE_D) and not self.jobs.busy:
            self.factor()

    def changed(self, names: set[str]) -> None:
        p = self.parameters
        ridge = log10(p.ridge, PLAIN_RIDGE)
        self.follow(self.sliders, [ridge, p.label_noise, self.sliders.values[2]])
        if names & {"n", "seed"} and self.features:
            self.factor()
        else:
            self.redraw()

    def _moved(self) -> None:
        p = self.parameters
        place, noise, _ = self.sliders.values
        ridge = ridge_of(place)
        if np.allclose((p.ridge, p.label_noise), (ridge, noise), rtol=1e-9, atol=0):
            self.redraw()  # only alpha has moved
        else:
            p.param.update(ridge=ridge, label_noise=float(noise))

    def factor(self) -> None:
        """Factor the random features of each size, a job of a second or two."""
        p = self.parameters
        self.features = []
        self.start(lambda: factored.feature_steps(p.seed, p.n), self._take)

    def _take(self, features: list[double_descent.ReluFeatures]) -> None:
        self.features = list(features)
        self.redraw()

    def redraw(self) -> None:
        """Errors at this ridge and label noise, from the factors that are there."""
        if not self.features:
            return
        p = self.parameters
        key = (p.label_noise, len(self.features), p.seed, p.n)
        if self._plain[0] != key:
            self._plain = (key, single(factored.relu_errors, self.features, 0.0, p.label_noise))
        plain = self._plain[1]
        rows = plain
        if p.ridge:
            rows = single(factored.relu_errors, self.features, p.ridge, p.label_noise)
        d = np.array([f.d for f in self.features])
        alpha = 10.0 ** self.sliders.values[2]
        left_open = np.minimum(p.n, d) - [f.dimension(alpha) for f in self.features]
        without = plain[:, 1] if p.ridge else None
        self.picture.html = str(drawings.descent(d, *rows.T, left_open, p.n, without))


class Symmetry(Tab):
    """E: the evidence chooses the share r of the prior without symmetry."""

    title = "Symmetry"
    hears = frozenset({"group", "r", "seed"})

    def build(self) -> None:
        self.choices: dict[str, processes.Choice] = {}
        self.task = pn.widgets.RadioButtonGroup(
            options=list(digits.TASKS), value="orient", label="Task", margin=(0, 0, 6, 0)
        )
        self.task.param.watch(lambda event: self.redraw(), "value")
        self.size = self.faders(
            "Digits", self.choose,
            ("Training digits n", float(factored.SYMMETRY_SIZE), 20.0, 200.0, 1),
        )  # fmt: skip
        self.mixture = Brush(drawings.WIDE, 230, kind="line", at=0.5,
                             caption="Share r of the prior without symmetry")  # fmt: skip
        self.mixture.param.watch(lambda event: self._moved(), "at")
        self.bars = Drawing()

    def layout(self) -> list:
        return [self.task, narrow(self.size), narrow(self.mixture), narrow(self.bars)]

    def open(self) -> None:
        if len(self.choices) < len(digits.TASKS) and not self.jobs.busy:
            self.choose()

    def changed(self, names: set[str]) -> None:
        if not self.choices:
            return
        if names & {"group", "seed"}:
            self.choose()
        else:
            self.redraw()

    def _moved(self) -> None:
        if not self._quiet:
            self.parameters.r = float(self.mixture.at)

    def choose(self) -> None:
        """Hard, none and soft on one draw of each task."""
        p, n = self.parameters, int(self.size.values[0])
        self.start(lambda: factored.choice_steps(p.seed, p.group, n), self._take)

    def _take(self, choices: dict[str, processes.Choice]) -> None:
        if len(choices) == len(digits.TASKS):  # not some of these data beside some of the last
            self.choices = dict(choices)
            self.redraw()

    def redraw(self) -> None:
        """The evidence of r on the task shown, and accuracies on all."""
        found = self.choices.get(self.task.value)
        if found is None:
            return
        r = self.parameters.r
        self._quiet = True
        try:
            self.mixture.param.update(
                html=str(drawings_digits.mixture_curve(found, r, self.task.value)), at=r,
                words=f"r = {r:.3g}",
            )  # fmt: skip
        finally:
            self._quiet = False
        bars = {t: (c.hard, c.none, c.soft) for t, c in self.choices.items()}
        where = f", {int(self.size.values[0])} digits, group {self.parameters.group}"
        self.bars.html = str(drawings_digits.symmetry_bars(bars, where))
