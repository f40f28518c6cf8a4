"""Tabs of networks that are trained while one looks: widths, bounds, paths, learned features.

One network trains at a time: a new wish stops the one before.
"""

from __future__ import annotations

import numpy as np

from workbench.widgets.drawing import Drawing

from . import drawings, drawings_bounds, drawings_networks, experiments, factored
from .closed_forms import single
from .compression import Compressed, offset_code
from .dimension import effective_dimension
from .experiments import Widths as Trained
from .representation import Paths as Connected
from .representation import connected_steps
from .tabs import Tab, log10, narrow


class Widths(Tab):
    """C3: networks by width. Alpha is dragged; another width is trained."""

    title = "Widths"
    hears = frozenset({"alpha", "label_noise", "seed"})

    def build(self) -> None:
        self._forget()
        self.hidden = self.faders("Network", lambda: None, ("Hidden units", 12.0, 2.0, 128.0, 1))
        self.run_button = self.button("Run this width", self.run, 120, color="primary")
        self.alpha = self.faders(
            "Curvature", self._moved, ("log10 α", log10(self.parameters.alpha), -6.0, 6.0, 0.05)
        )
        self.training = Drawing(
            drawings.note(
                "Eight widths were trained beforehand, with seed 0 and a label noise of 0.2. "
                "Press Run this width: the loss curve streams, the point joins below."
            )
        )
        self.picture = Drawing()

    def layout(self) -> list:
        return [narrow(self.hidden), self.run_button, self.training, narrow(self.alpha),
                self.picture]  # fmt: skip

    def open(self) -> None:
        self.redraw()

    def changed(self, names: set[str]) -> None:
        self.follow(self.alpha, [log10(self.parameters.alpha)])
        if names & {"label_noise", "seed"}:  # points of other data are another curve
            self._forget()
        self.redraw()

    def _forget(self) -> None:
        # By width: loss, curvatures, error.
        self.found = factored.cached_widths(self.parameters.seed, self.parameters.label_noise)

    def _moved(self) -> None:
        self.parameters.alpha = float(np.clip(10.0 ** self.alpha.values[0], 1e-6, 1e6))

    def run(self) -> None:
        """Train a network of the width on the slider; its point joins the chart."""
        p, width = self.parameters, int(self.hidden.values[0])
        data = (p.seed, p.label_noise)

        def take(found: Trained) -> None:
            if data == (self.parameters.seed, self.parameters.label_noise):
                self._take(found)

        self.start(
            lambda: experiments.width_steps([width], [p.seed], p.label_noise, p.alpha), take,
            self.bench.training,
        )  # fmt: skip

    def _take(self, found: Trained) -> None:
        width = int(found.widths[0])
        if width in found.curves:
            title = f"{width} hidden units: training loss"
            self.training.html = str(drawings_networks.training(found.curves[width], title))
        if width in found.eigenvalues:
            self.found[width] = (
                float(found.test[0, 0]), found.eigenvalues[width][0], float(found.train_error[0, 0])
            )  # fmt: skip
            self.redraw()

    def redraw(self) -> None:
        """Loss, effective dimension at this alpha, and error of the widths trained so far."""
        if not self.found:
            self.picture.html = ""
            return
        order, alpha = sorted(self.found), self.parameters.alpha
        rows = [
            (loss, effective_dimension(values, alpha), error)
            for loss, values, error in (self.found[h] for h in order)
        ]
        self.picture.html = str(drawings_networks.width_chart(np.array(order), *np.array(rows).T))


class Bounds(Tab):
    """D: the calculator, and networks that are stored in bits."""

    title = "Bounds"
    hears = frozenset({"delta", "width", "seed"})

    def build(self) -> None:
        p = self.parameters
        # What the page was opened with is what was fixed before the data; the rest is in the bits.
        self.fixed = (p.width, p.seed)
        self.runs: list[tuple[str, float, float]] = []
        self.calculator = self.faders(
            "Bound calculator", self.redraw, ("log10 n", log10(1437), 1.0, 6.0, 0.01),
            ("Bits of the code", 372.0, 0.0, 5000.0, 1), ("Training error", 0.15, 0.0, 1.0, 0.001),
            ("log10 δ", log10(p.delta), -6.0, -0.02, 0.01),
        )  # fmt: skip
        self.corrupt = self.faders("Labels of the network", lambda: None,
                                   ("Share of random labels", 0.0, 0.0, 1.0, 0.05))  # fmt: skip
        self.store_button = self.button("Store a network", self.store, 130, color="primary")
        self.picture, self.stored, self.price = Drawing(), Drawing(), Drawing()
        self.training = Drawing(
            drawings.note("Press Store a network: it is trained, quantized, written and decoded.")
        )
        self.redraw()
        self._say_price()

    def layout(self) -> list:
        return [
            narrow(self.calculator), narrow(self.picture), narrow(self.training),
            narrow(self.corrupt), self.store_button, narrow(self.price), narrow(self.stored),
        ]  # fmt: skip

    def changed(self, names: set[str]) -> None:
        if "delta" in names:
            self.follow(
                self.calculator, [*self.calculator.values[:3], log10(self.parameters.delta)]
            )
            self.redraw()
        self._say_price()

    @property
    def more_bits(self) -> int:
        """Bits that say which width was chosen; the seed is in the header of the message."""
        return len(offset_code(self.parameters.width - self.fixed[0]))

    def _say_price(self) -> None:
        p, (width, seed) = self.parameters, self.fixed
        bits = [
            f"{k} bit{'s' * (k > 1)}" for k in (self.more_bits, len(offset_code(p.seed - seed)))
        ]
        self.price.html = str(drawings.note(
            f"Fixed before the data, as this page was opened: width {width} and seed {seed}. Now "
            f"width {p.width} costs {bits[0]} and seed {p.seed} costs {bits[1]}; another seed is "
            "another projection and another split of the digits. So bounds of all widths and seeds "
            "tried here hold at once; other shares of random labels are other questions."
        ))  # fmt: skip

    def redraw(self) -> None:
        """The three bounds at the numbers of the calculator, among the runs."""
        log_n, bits, risk, log_delta = self.calculator.values
        n, delta = round(10.0**log_n), float(10.0**log_delta)
        self.picture.html = str(drawings_bounds.calculator(risk, n, bits, delta)) + str(
            drawings_bounds.iso_bounds(self.runs, n, delta, (risk, bits))
        )

    def store(self) -> None:
        """Train, quantize, write and decode a network with these parameters."""
        p, rho = self.parameters, float(self.corrupt.values[0])
        seed, more = p.seed, self.more_bits
        self.start(
            lambda: experiments.compressed_steps(
                p, p.width, p.d, [seed], [rho], more, [self.fixed[1]]
            ),
            lambda found: self._take(found, rho, seed), self.bench.training,
        )  # fmt: skip

    def _take(self, found: Compressed, rho: float, seed: int) -> None:
        title = "Training loss: free, then quantized"
        self.training.html = str(drawings_networks.training(found.curves, title))
        if not found.bounds:
            return
        self.stored.html = str(drawings_bounds.stored(found))
        name = f"width {found.width}, d = {found.d[0]}"
        name += f", seed {seed}" if seed != self.fixed[1] else ""
        name += f", ρ = {rho:g}" if rho else ""
        self.runs = [*self.runs, (name, float(found.train[0]), float(found.bits[0]))][-8:]
        delta = self.calculator.values[3]
        self.follow(self.calculator, [log10(found.n), float(found.bits[0]), float(found.train[0]),
                                      delta])  # fmt: skip
        self.redraw()


class Paths(Tab):
    """G: two solutions, the line and the curve between them."""

    title = "Paths"

    def build(self) -> None:
        self.found: Connected | None = None
        self.run_button = self.button("Connect two solutions", self.connect, 160, color="primary")
        self.place = self.faders("Place between the solutions", self.redraw,
                                 ("t", 0.5, 0.0, 1.0, 0.025))  # fmt: skip
        self.picture = Drawing(
            drawings.note("Press Connect two solutions (about five seconds), then drag t.")
        )

    def layout(self) -> list:
        return [self.run_button, narrow(self.place), self.picture]

    def connect(self) -> None:
        """Two solutions of a network, the curve between them, and the plane through it."""
        width, seed = self.parameters.width, self.parameters.seed
        # Without hidden units both solutions and the curve are nearly on one line: no plane.
        self.start(lambda: connected_steps(width, [seed], plane=width > 0), self._take,
                   self.bench.training)  # fmt: skip

    def _take(self, found: Connected) -> None:
        self.found = found
        self.redraw()

    def redraw(self) -> None:
        """Losses along both ways and the plane, with the place t on them."""
        found = self.found
        if found is None:
            return
        t = float(self.place.values[0])
        figures = [drawings_networks.path_chart(found, t=t)]
        if found.plane is not None:
            figures.append(drawings_networks.plane_picture(found.plane, t))
        hidden = len(found.sizes) > 2
        words = drawings.note(
            f"{f'Width {found.sizes[1]}' if hidden else 'Softmax regression'}: largest loss on the "
            f"line {found.line.max():.3g}, on the curve {found.curve.max():.3g}. Test error of one "
            f"end {found.single.mean():.3f}, of the ensemble along the curve "
            f"{found.ensemble.mean():.3f}."
        )
        at = drawings_networks.path_words(found, t)
        self.picture.html = f"{words}{at}{drawings.row(*figures)}"


class LearnedFeatures(Tab):
    """F: one direction in twenty. The kernel is a closed form; a network turns to the direction."""

    title = "Features"
    hears = frozenset({"seed"})

    def build(self) -> None:
        self.direction: factored.Direction | None = None
        self.learner: factored.Learner | None = None
        self.errors: dict[int, float] = {}
        low, *_, high = map(float, factored.INDEX_SIZES)
        self.sliders = self.faders(
            "Kernel ridge regression", self.redraw, ("Examples n", 400.0, low, high, 1),
            ("Length scale", 4.0, 0.5, 12.0, 0.1), ("log10 ridge", -2.0, -5.0, 1.0, 0.05),
        )  # fmt: skip
        self.run_button = self.button(
            "Train a network on as many", self.train, 190, color="primary"
        )
        self.picture = Drawing()
        self.training = Drawing(
            drawings.note("Press Train: its function, loss and alignment stream.")
        )

    def layout(self) -> list:
        return [narrow(self.sliders), self.picture, self.run_button, self.training]

    def open(self) -> None:
        if self.direction is None:
            self._draw_anew()

    def changed(self, names: set[str]) -> None:
        if self.direction is not None:
            self._draw_anew()

    def _draw_anew(self) -> None:
        self.direction = factored.Direction(self.parameters.seed)
        self.learner, self.errors = None, {}
        self.redraw()

    def redraw(self) -> None:
        """The kernel at these sliders, and the network that was trained last."""
        if self.direction is None:
            self.direction = factored.Direction(self.parameters.seed)
        n, length, log_ridge = self.sliders.values
        curve, errors = single(self.direction.kernel, int(n), float(length), 10.0**log_ridge)
        self.picture.html = str(drawings.row(
            drawings_networks.learned_function(factored.ALONG, self.direction.truth, curve,
                                               self.learner),
            drawings_networks.learned_errors(factored.INDEX_SIZES, errors, self.errors, int(n)),
        ))  # fmt: skip

    def train(self) -> None:
        """Train the network of F on as many examples as the slider says."""
        n, seed = int(self.sliders.values[0]), self.parameters.seed

        def take(found: factored.Learner) -> None:
            if seed == self.parameters.seed:
                self._take(found)

        self.start(lambda: factored.learner_steps(n, seed), take, self.bench.training)

    def _take(self, found: factored.Learner) -> None:
        self.learner = found
        if np.isfinite(found.error):
            self.errors[found.n] = found.error
        self.training.html = str(drawings_networks.turning(found))
        self.redraw()
