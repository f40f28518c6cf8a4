"""The live part: every figure of the argument, to drag. Closed forms answer a slider at once.

`Bench` connects the parameters, sliders of each tab and charts that hear the pointer to the
drawings. Tabs compute what they need when they are first opened; training is a job that streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn

from workbench import theme
from workbench.explorer import Explorer, problem
from workbench.jobs import Latest
from workbench.steps import Step, Steps
from workbench.widgets.brush import Brush
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Faders

from . import (
    closed_forms,
    digits,
    double_descent,
    drawings,
    experiments,
    factored,
    polynomials,
    processes,
    study,
)
from .closed_forms import single
from .compression import Compressed
from .experiments import Widths
from .representation import Paths, connected_steps

# What acts on the live pictures, in the order of the form.
LIVE = (
    "order", "gamma", "sigma2", "basis", "n_points", "length_scale", "noise", "n",
    "label_noise", "ridge", "alpha", "d", "levels", "width", "delta", "group", "r", "seed",
)  # fmt: skip
TABS = ("Polynomials", "Random labels", "Double descent", "Widths", "Bounds", "Symmetry", "Paths",
        "Two axes")  # fmt: skip
PLAIN_RIDGE = 1e-7  # the left end of the ridge slider, where it counts as none


class Bench:
    """The tabs and what they show; `panel()` is the layout."""

    def __init__(self, parameters: study.Parameters):
        self.parameters = parameters
        self._quiet = self._seen = False
        self.jobs = Latest(self._tell)  # training
        self.factoring, self.choosing = Latest(self._tell), Latest(self._tell)
        self.samples: np.ndarray | None = None
        self.labels: factored.Labels | None = None
        self.features: list[double_descent.ReluFeatures] = []
        self.widths: dict[int, tuple[float, float, float]] = {}
        self._plain: tuple = (None, np.zeros((0, 2)))
        self.runs: list[tuple[str, float, float]] = []
        self.tried: dict[tuple[int, float], set[int]] = {}  # widths, by the data they were seen on
        self.choices: dict[str, processes.Choice] = {}
        self._build()
        self.draw_polynomials()
        self.draw_bounds()
        parameters.param.watch(self._on_parameters, list(LIVE))

    # The page --------------------------------------------------------------------------------

    def _build(self) -> None:
        def button(label: str, action: Callable[[], None], width: int, **more: Any) -> Any:
            made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
            made.on_click(lambda event: action())
            return made

        def faders(caption: str, on_move: Callable[[], None], *rows: tuple) -> Faders:
            names, values, lows, highs, steps = (list(c) for c in zip(*rows, strict=True))
            made = Faders(names=names, values=values, lows=lows, highs=highs, steps=steps,
                          caption=caption)  # fmt: skip
            made.param.watch(lambda event: None if self._quiet else on_move(), "values")
            return made

        p = self.parameters
        self.stop_button = button("Stop", self.stop, 70, disabled=True)
        self.status = pn.pane.HTML(
            "", sizing_mode="stretch_width", min_height=22, margin=(0, 0, 4, 0),
            styles={"font-family": theme.FONT},
        )  # fmt: skip
        self.pictures = {name: Drawing() for name in (
            "fits", "coefficients", "labels", "neighbors", "descent", "widths", "training",
            "calculator", "stored", "storing", "bars", "path", "axes")}  # fmt: skip
        self.poly = faders(
            "Polynomial", self._on_poly, *self._poly_rows(),
        )  # fmt: skip
        self.sample_button = button("Samples of the prior", self.toggle_samples, 150)
        self.scattered = pn.widgets.Checkbox(label="Random x instead of the grid", value=False,
                                             margin=(4, 0))  # fmt: skip
        self.scattered.param.watch(lambda event: self.draw_polynomials(), "value")
        self.rho = faders("Random labels", self.draw_labels, ("Share of random labels ρ", 0.5, 0.0,
                                                              1.0, 0.01))  # fmt: skip
        self.wrong = Brush(
            drawings.DIGITS_WIDTH, drawings.DIGITS_HEIGHT, kind="line", at=0.02,
            caption="Digits read wrongly: click one, or use the arrow keys, to see its neighbors",
        )  # fmt: skip
        self.wrong.param.watch(lambda event: self.draw_neighbors(), "at")
        self.ridge = faders(
            "Ridge and label noise", self._on_ridge,
            ("log10 ridge", float(np.log10(max(p.ridge, PLAIN_RIDGE))), -7.0, 1.0,
             0.05),
            ("Label noise", p.label_noise, 0.0, 1.0, 0.01),
            ("log10 α / n", -3.0, -9.0, 0.0, 0.1),
        )  # fmt: skip
        self.hidden = faders("Network", lambda: None, ("Hidden units", 12.0, 2.0, 128.0, 1))
        self.width_button = button("Run this width", self.run_width, 120, color="primary")
        self.calculator = faders(
            "Bound calculator", self.draw_bounds,
            ("log10 n", float(np.log10(1437)), 1.0, 6.0, 0.01),
            ("Bits of the code", 372.0, 0.0, 5000.0, 1),
            ("Training error", 0.15, 0.0, 1.0, 0.001),
            ("log10 δ", float(np.log10(p.delta)), -6.0, -0.02, 0.01),
        )  # fmt: skip
        self.corrupt = faders("Labels of the network", lambda: None,
                              ("Share of random labels", 0.0, 0.0, 1.0, 0.05))  # fmt: skip
        self.store_button = button("Store a network", self.store, 130, color="primary")
        self.task = pn.widgets.RadioButtonGroup(
            options=list(digits.TASKS), value="orient", label="Task", margin=(0, 0, 6, 0)
        )
        self.task.param.watch(lambda event: self.draw_symmetry(), "value")
        self.mixture = Brush(drawings.WIDE, 230, kind="line", at=0.5,
                             caption="Share r of the prior without symmetry")  # fmt: skip
        self.mixture.param.watch(lambda event: self._on_mixture(), "at")
        self.path_button = button("Connect two solutions", self.connect, 160, color="primary")

    def panel(self) -> pn.viewable.Viewable:
        """Status, Stop and the tabs."""

        def tab(*parts: Any) -> pn.viewable.Viewable:
            return pn.Column(*parts, sizing_mode="stretch_width", margin=(8, 0), max_width=960)

        def narrow(part: Any) -> pn.viewable.Viewable:
            return pn.Column(part, max_width=640, sizing_mode="stretch_width", margin=0)

        s = self.pictures
        contents = {
            "Polynomials": tab(
                pn.Row(self.sample_button, self.scattered, margin=0), narrow(self.poly),
                s["fits"], s["coefficients"],
            ),
            "Random labels": tab(narrow(self.rho), s["labels"], narrow(self.wrong),
                                 narrow(s["neighbors"])),
            "Double descent": tab(narrow(self.ridge), narrow(s["descent"])),
            "Widths": tab(narrow(self.hidden), self.width_button, s["training"], s["widths"]),
            "Bounds": tab(narrow(self.calculator), narrow(s["calculator"]), narrow(s["storing"]),
                          narrow(self.corrupt), self.store_button, narrow(s["stored"])),
            "Symmetry": tab(self.task, narrow(self.mixture), narrow(s["bars"])),
            "Paths": tab(self.path_button, s["path"]),
            "Two axes": tab(narrow(s["axes"])),
        }  # fmt: skip
        for name, words in (
            ("training", "Press Run this width: the loss curve streams, the point joins below."),
            ("storing", "Press Store a network: it is trained, quantized, written and decoded."),
            ("path", "Press Connect two solutions (about five seconds)."),
        ):
            s[name].html = str(drawings.note(words))
        # All tabs are on the page from the start, so that each drawing can be sent to.
        self.tabs = pn.Tabs(*contents.items(), sizing_mode="stretch_width", margin=(6, 0))
        self.tabs.param.watch(lambda event: self.open(TABS[event.new]), "active")
        top = pn.Row(self.stop_button, self.status, margin=0, sizing_mode="stretch_width")
        return pn.Column(top, self.tabs, sizing_mode="stretch_width", margin=0)

    def open(self, tab: str) -> None:
        """Compute what a tab needs, if it has not yet."""
        if tab == "Random labels" and self.labels is None:
            self.draw_labels()
        elif tab == "Double descent" and not self.factoring.busy:
            if len(self.features) < len(factored.LIVE_D):
                self.factor_features()
        elif tab == "Symmetry" and not self.choosing.busy:
            if len(self.choices) < len(digits.TASKS):
                self.choose()
        elif tab == "Two axes":
            self.draw_axes()

    # What is heard ---------------------------------------------------------------------------

    def _poly_rows(self) -> list[tuple]:
        p = self.parameters
        return [
            ("Order J", float(p.order), 0.0, 300.0, 1),
            ("log10(γ − 1)", float(np.log10(max(p.gamma - 1, 1e-3))), -3.0,
             float(np.log10(2)), 0.01),
            ("log10 σ²", float(np.log10(p.sigma2)), -10.0, 0.0, 0.05),
            ("Points n", float(p.n_points), 3.0, 60.0, 1),
        ]  # fmt: skip

    def _on_poly(self) -> None:
        order, gamma, sigma2, n = self.poly.values
        self.parameters.param.update(
            order=int(order), gamma=1.0 if gamma <= -2.999 else min(1 + 10.0**gamma, 3.0),
            sigma2=float(np.clip(10.0**sigma2, 1e-10, 1)), n_points=int(n),
        )  # fmt: skip

    def _on_ridge(self) -> None:
        p = self.parameters
        before = (p.ridge, p.label_noise)
        ridge, noise, _ = self.ridge.values
        ridge = 0.0 if ridge <= np.log10(PLAIN_RIDGE) + 1e-9 else float(10.0**ridge)
        if np.allclose(before, (ridge, noise), rtol=1e-9, atol=0):
            self.draw_descent()  # only alpha has moved
        else:
            p.param.update(ridge=ridge, label_noise=float(noise))

    def _on_mixture(self) -> None:
        if self._quiet:
            return
        self.parameters.r = float(self.mixture.at)

    def _on_parameters(self, *events: Any) -> None:
        changed = {event.name for event in events}
        if changed & {"order", "gamma", "sigma2", "basis", "n_points", "seed"}:
            self._follow(self.poly, [row[1] for row in self._poly_rows()])
            self.draw_polynomials()
        if changed & {"length_scale", "noise", "seed"} and self.labels is not None:
            self.labels = None
            self.draw_labels()
        if changed & {"n", "seed"} and self.features:
            self.factor_features()
        elif changed & {"ridge", "label_noise"}:
            p = self.parameters
            ridge = float(np.log10(max(p.ridge, PLAIN_RIDGE)))
            self._follow(self.ridge, [ridge, p.label_noise, self.ridge.values[2]])
            self.draw_descent()
        if changed & {"seed", "label_noise", "alpha"} and self.widths:
            self.widths = {}  # points of other data, or of another curvature, are another curve
            self.pictures["widths"].html = ""
        if changed & {"delta"}:
            values = [*self.calculator.values[:3], float(np.log10(self.parameters.delta))]
            self._follow(self.calculator, values)
            self.draw_bounds()
        if changed & {"group", "seed"} and self.choices:
            self.choose()
        elif changed & {"r"} and self.choices:
            self.draw_symmetry()

    def _follow(self, sliders: Faders, values: list[float]) -> None:
        """Put sliders where the parameters are, without being heard."""
        if np.allclose(sliders.values, values, atol=1e-6):
            return
        self._quiet = True
        try:
            sliders.move(np.clip(values, sliders.lows, sliders.highs))
        finally:
            self._quiet = False

    # Pictures in closed form -------------------------------------------------------------------

    def toggle_samples(self) -> None:
        """Show five functions drawn from the prior, or hide them."""
        if self.samples is not None:
            self.samples = None
        else:
            self._draw_samples()
        self.draw_polynomials()

    def _draw_samples(self) -> None:
        p, rng = self.parameters, np.random.default_rng()
        self.samples = polynomials.prior_samples(closed_forms.PLOT, p.order, p.gamma, p.basis, rng)

    def draw_polynomials(self) -> None:
        """Refit all three kinds of data and draw them."""
        p = self.parameters
        try:
            self.fit = closed_forms.refit(
                p.order, p.gamma, p.sigma2, p.basis, p.n_points, p.seed, self.scattered.value
            )
        except (ValueError, np.linalg.LinAlgError) as error:  # singular at this noise
            self.status.object = problem(error).object
            return
        self.pictures["fits"].html = str(drawings.fits(self.fit, self.samples))
        self.pictures["coefficients"].html = str(drawings.row(
            drawings.coefficients(self.fit, p.gamma), drawings.error_by_order(self.fit, p.order),
            drawings.evidence_curve(self.fit, p.order),
        ))  # fmt: skip

    def draw_labels(self) -> None:
        """Accuracies and evidence at this share of random labels, and the digits read wrongly."""
        if self.labels is None:
            p = self.parameters
            self.labels = single(factored.Labels, p.seed, p.length_scale, p.noise)
        rho = float(self.rho.values[0])
        self.pictures["labels"].html = str(
            drawings.label_curves(factored.RHO, *self.labels.curves, rho)
        )
        self.mistakes = single(self.labels.mistakes, rho)
        self.draw_neighbors()

    def draw_neighbors(self) -> None:
        """The wrong digits, and the training digits that the chosen one is nearest to."""
        if self.labels is None:
            return
        found, (wrong, guess, labels) = self.labels, self.mistakes
        if not len(wrong):
            self.wrong.html = str(drawings.note("Every test digit is read rightly."))
            self.pictures["neighbors"].html = ""
            return
        shown = wrong[: drawings.SHOWN]
        chosen = min(int(self.wrong.at * drawings.SHOWN), len(shown) - 1)
        s = found.split
        words = [f"{s.test_y[i]} as {guess[i]}" for i in shown]
        title = f"{len(wrong)} of {len(s.test_y)} test digits are read wrongly; click one"
        self.wrong.html = str(drawings.digit_row(s.test_x[shown], words, chosen, title))
        near = np.argsort(-found.cross[shown[chosen]])[: drawings.SHOWN]
        words = [
            f"{labels[j]}" if labels[j] == s.clean_y[j] else f"{labels[j]} (is {s.clean_y[j]})"
            for j in near
        ]
        self.pictures["neighbors"].html = str(drawings.digit_row(
            s.train_x[near], words, None, "Its nearest training digits, with the labels given"
        ))  # fmt: skip

    def factor_features(self) -> None:
        """Factor the random features of each size, a job of a second or two."""
        p = self.parameters
        self.features = []
        self._start(
            lambda: factored.feature_steps(p.seed, p.n), self._take_features, self.factoring
        )

    def _take_features(self, features: list[double_descent.ReluFeatures]) -> None:
        self.features = list(features)
        self.draw_descent()

    def draw_descent(self) -> None:
        """Errors at this ridge and label noise, from the factors that are there."""
        if not self.features:
            return
        p = self.parameters
        if self._plain[0] != (p.label_noise, len(self.features), p.seed, p.n):
            key = (p.label_noise, len(self.features), p.seed, p.n)
            errors = [single(f.errors, 0.0, p.label_noise) for f in self.features]
            self._plain = (key, np.array(errors))
        plain = self._plain[1]
        d = np.array([f.d for f in self.features])
        rows = plain
        if p.ridge:
            rows = np.array([single(f.errors, p.ridge, p.label_noise) for f in self.features])
        alpha = 10.0 ** self.ridge.values[2]
        left_open = np.minimum(p.n, d) - [f.dimension(alpha) for f in self.features]
        without = plain[:, 1] if p.ridge else None
        self.pictures["descent"].html = str(drawings.descent(d, *rows.T, left_open, p.n, without))

    def draw_bounds(self) -> None:
        """The three bounds at the numbers of the calculator, among the runs."""
        log_n, bits, risk, log_delta = self.calculator.values
        n, delta = round(10.0**log_n), float(10.0**log_delta)
        self.pictures["calculator"].html = str(drawings.calculator(risk, n, bits, delta)) + str(
            drawings.iso_bounds(self.runs, n, delta, (risk, bits))
        )

    def choose(self) -> None:
        """Hard, none and soft on one draw of each task."""
        p = self.parameters
        self._start(
            lambda: factored.choice_steps(p.seed, p.group), self._take_choices, self.choosing
        )

    def _take_choices(self, choices: dict[str, processes.Choice]) -> None:
        self.choices = dict(choices)
        self.draw_symmetry()

    def draw_symmetry(self) -> None:
        """The evidence of r on the task shown, and accuracies on all."""
        found = self.choices.get(self.task.value)
        if found is None:
            return
        r = self.parameters.r
        self._quiet = True
        try:
            self.mixture.param.update(
                html=str(drawings.mixture_curve(found, r, self.task.value)), at=r,
                words=f"r = {r:.3g}",
            )  # fmt: skip
        finally:
            self._quiet = False
        bars = {t: (c.hard, c.none, c.soft) for t, c in self.choices.items()}
        where = f", {factored.SYMMETRY_SIZE} digits, group {self.parameters.group}"
        self.pictures["bars"].html = str(drawings.symmetry_bars(bars, where))

    def draw_axes(self) -> None:
        """Common models on both axes, and the reader's present polynomial."""
        p = self.parameters
        self.pictures["axes"].html = str(single(axes_of, p))

    # Jobs ------------------------------------------------------------------------------------

    def run_width(self) -> None:
        """Train a network of the width on the slider; its point joins the chart."""
        p, width = self.parameters, int(self.hidden.values[0])
        self._start(
            lambda: experiments.width_steps([width], [p.seed], p.label_noise, p.alpha),
            self._take_width,
        )

    def _take_width(self, found: Widths) -> None:
        width = int(found.widths[0])
        if width in found.curves:
            title = f"{width} hidden units: training loss"
            self.pictures["training"].html = str(drawings.training(found.curves[width], title))
        if not np.isfinite(found.dimension).all():
            return
        self.widths[width] = tuple(float(v[0, 0]) for v in (
            found.test, found.dimension, found.train_error))  # fmt: skip
        order = sorted(self.widths)
        columns = np.array([self.widths[h] for h in order]).T
        self.pictures["widths"].html = str(drawings.width_chart(np.array(order), *columns))

    def store(self) -> None:
        """Train, quantize, write and decode a network with these parameters.

        The width is no part of the message: each further one tried on the same data is paid for.
        """
        p, rho = self.parameters, float(self.corrupt.values[0])
        widths = self.tried.setdefault((p.seed, rho), set())
        widths.add(p.width)
        choice = (len(widths) - 1).bit_length()
        self._start(
            lambda: experiments.compressed_steps(p, p.width, p.d, [p.seed], [rho], choice),
            lambda found: self._take_stored(found, rho),
        )

    def _take_stored(self, found: Compressed, rho: float) -> None:
        title = "Training loss: free, then quantized"
        self.pictures["storing"].html = str(drawings.training(found.curves, title))
        if not found.bounds:
            return
        self.pictures["stored"].html = str(drawings.stored(found))
        name = f"width {found.width}, d = {found.d}" + (f", ρ = {rho:g}" if rho else "")
        self.runs = [*self.runs, (name, float(found.train[0]), float(found.bits[0]))][-8:]
        delta = self.calculator.values[3]
        self._follow(self.calculator, [float(np.log10(found.n)), float(found.bits[0]),
                                       float(found.train[0]), delta])  # fmt: skip
        self.draw_bounds()

    def connect(self) -> None:
        """Two solutions of a network, the curve between them, and the plane through it."""
        width, seed = self.parameters.width, self.parameters.seed
        # Without hidden units both solutions and the curve are nearly on one line: no plane.
        self._start(lambda: connected_steps(width, [seed], plane=width > 0), self._take_paths)

    def _take_paths(self, paths: Paths) -> None:
        figures = [drawings.path_chart(paths)]
        if paths.plane is not None:
            figures.append(drawings.plane_picture(paths.plane))
        hidden = len(paths.sizes) > 2
        words = drawings.note(
            f"{f'Width {paths.sizes[1]}' if hidden else 'Softmax regression'}: "
            f"largest loss on the line {paths.line.max():.3g}, on the curve "
            f"{paths.curve.max():.3g}. Test error of one end {paths.single.mean():.3f}, of the "
            f"ensemble along the curve {paths.ensemble.mean():.3f}."
        )
        self.pictures["path"].html = str(words) + str(drawings.row(*figures))

    def stop(self) -> None:
        """Stop everything that runs; what is finished is kept."""
        for jobs in (self.jobs, self.factoring, self.choosing):
            jobs.stop()

    def _start(
        self, make: Callable[[], Steps], take: Callable[[Any], None], jobs: Latest | None = None
    ) -> None:
        self.stop_button.disabled = False
        (jobs or self.jobs).start(make, take)

    def _tell(self, what: Step | str | Exception) -> None:
        if isinstance(what, Step):
            here = bool(self.poly._models)
            if self._seen and not here:  # the page is gone
                self.stop()
            self._seen = here
            self.status.object = theme.progress_html(what.done, what.message)
            return
        # The one that tells still counts itself as busy.
        busy = sum(jobs.busy for jobs in (self.jobs, self.factoring, self.choosing))
        self.stop_button.disabled = busy <= 1
        words = {"done": "Done.", "stopped": "Stopped; what was finished is shown."}
        self.status.object = words[what] if isinstance(what, str) else problem(what).object


def axes_of(p: study.Parameters) -> theme.Html:
    """Models of A on the two axes, the polynomial of these parameters as the reader's own."""
    from . import findings

    finished = study.SoftBiasStudy(p)
    finished.polynomials = closed_forms.few_polynomials(p)
    own = closed_forms.soft_name(p.gamma, p.order, p.basis)
    places = findings.axes(finished)
    return drawings.axes_chart(
        [row for row in places if row[0] != own],
        [(f"yours: {name}", f, s) for name, f, s in places if name == own],
    )


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new bench that follows `parameters`."""
    made = Bench(parameters)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> str:
    """For reports: the fits, their coefficients and evidence, and the calculator, as HTML."""
    p = parameters
    found = closed_forms.refit(p.order, p.gamma, p.sigma2, p.basis, p.n_points, p.seed)
    return "<br>".join(map(str, (
        drawings.fits(found),
        drawings.row(drawings.coefficients(found, p.gamma),
                     drawings.error_by_order(found, p.order),
                     drawings.evidence_curve(found, p.order)),
        drawings.calculator(0.15, 1437, 372, p.delta),
    )))  # fmt: skip


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of soft inductive biases; `pieces` are further arguments of `Explorer`."""
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, live=live, still=still, only=[*LIVE, *rest], **pieces)
