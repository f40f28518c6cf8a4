"""Benches of the live part that train networks: accuracy, attack, survival, the forget button.

Each has a `panel()` for its tab. Training is a job of the common `Desk`, streams its curves and can
be stopped. Pictures are pure functions in `curves.py` and `drawings.py`.
"""

from __future__ import annotations

import time

import numpy as np
import panel as pn

from workbench.desk import Desk, button, narrow, tab
from workbench.steps import Steps
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Sliders
from workbench.widgets.picker import Picker

from . import comparison, curves, drawings, forgetting, memory, study
from .comparison import Accuracy
from .forgetting import Forgetting
from .mechanisms import TITLES, TWINS
from .memory import Membership, Survival

SHOWN = 40  # images in a grid
ATTACK_STEPS = 160
PACE_S = 0.4  # a noisy step on the page, so that the clock can be watched and stopped
FIRST = ("retrain", "retrain_tuned", "op", "gc", "mc")  # methods shown at first
FORGET_METHODS = {"gradient clipping": "gc", "model clipping": "mc"}


class AccuracyBench:
    """All methods at each budget, with their twins that start from nothing."""

    def __init__(self, parameters: study.Parameters, desk: Desk):
        self.parameters, self.desk = parameters, desk
        self.found: Accuracy | None = None
        self.seeds = Sliders("Networks", lambda place, value: None, ("Seeds", 8, 2, 24, 1))
        self.run_button = button("Train and compare", self.run, 150, color="primary")
        # A group, since a single checkbox of Panel has no name for screen readers.
        self.twins = pn.widgets.CheckBoxGroup(
            label="Twins", value=[], margin=(4, 0),
            options={"Show the twins that start from 0 instead of the old model": True},
        )  # fmt: skip
        self.twins.param.watch(lambda event: self.draw(), "value")
        self.shown = pn.widgets.CheckBoxGroup(
            label="Methods shown", inline=True, value=list(FIRST), margin=(4, 0),
            stylesheets=[".bk-input-group { flex-wrap: wrap; }"], max_width=620,
            options={
                title: key for key, title in TITLES.items()
                if key in comparison.METHODS and key not in TWINS.values()
            },
        )  # fmt: skip
        self.shown.param.watch(lambda event: self.draw(), "value")
        self.pictures = {name: Drawing() for name in ("curve", "forest", "path")}
        self.pictures["curve"].html = str(drawings.note(
            "Press Train and compare: all seeds of a method train in one batch, the curves stream. "
            "Predict first: does starting from the old model help?"
        ))  # fmt: skip

    def panel(self) -> pn.viewable.Viewable:
        """The tab."""
        s = self.pictures
        return tab(
            narrow(self.seeds), self.run_button, self.twins, self.shown,
            narrow(s["curve"], s["forest"], s["path"]),
        )  # fmt: skip

    def run(self) -> None:
        """Train all methods with the parameters of the form."""
        p, seeds = self.parameters, int(self.seeds.values[0])
        self.desk.start(lambda: comparison.accuracy_steps(p, seeds, trials=1), self.take)

    def take(self, found: Accuracy) -> None:
        """Show what has been measured so far."""
        self.found = found
        self.draw()

    def draw(self) -> None:
        """Curves, differences at the second budget, and the way within one run."""
        found = self.found
        if found is None:
            return
        # Copies: the job may add a method while this draws.
        test, path, noisy = dict(found.test), dict(found.path), dict(found.noisy)
        longest, s = max(noisy.values(), default=0), self.pictures
        shown = {"twins": bool(self.twins.value), "only": self.shown.value}
        s["curve"].html = str(curves.accuracy_chart(found.budget, test, longest, **shown))
        column = min(1, len(found.budget) - 1)
        s["forest"].html = str(curves.forest(test, column, int(found.budget[column])))
        shown["original"] = float(np.nanmean(found.original))
        s["path"].html = str(curves.path_chart(path, noisy, **shown)) if path else ""


class AttackBench:
    """Membership inference on a network that learned wrong labels by heart."""

    def __init__(self, parameters: study.Parameters, desk: Desk):
        self.parameters, self.desk = parameters, desk
        self.found: Membership | None = None
        self.run_button = button("Memorize, unlearn, attack", self.run, 190, color="primary")
        self.users = Picker(single=True, caption="Deleted users: choose one to see its loss")
        self.users.param.watch(lambda event: self.draw(), "chosen")
        self.pictures = {name: Drawing() for name in ("losses", "user")}
        self.pictures["losses"].html = str(drawings.note(
            "Press the button: a network learns the wrong labels of 125 users by heart, then these "
            "users ask to be deleted. Predict: which of the four attacks still tells them apart?"
        ))  # fmt: skip

    def panel(self) -> pn.viewable.Viewable:
        """The tab."""
        s = self.pictures
        return tab(self.run_button, s["losses"], narrow(self.users), s["user"])

    def run(self) -> None:
        """Train one network and each method on it."""
        p = self.parameters
        self.desk.start(lambda: memory.membership_steps(p, 1, steps=(ATTACK_STEPS,)), self.take)

    def take(self, found: Membership) -> None:
        """Show losses and users."""
        fresh = self.found is None or len(self.found.images) != len(found.images)
        self.found = found
        if fresh:
            self.users.set(
                pictures=[curves.digit_url(i) for i in found.images[:SHOWN]],
                names=[
                    f"{true} as {given}"
                    for true, given in zip(found.true[:SHOWN], found.given[:SHOWN], strict=True)
                ],
                chosen=[0],
            )  # fmt: skip
        self.draw()

    def draw(self) -> None:
        """Histograms with the chosen user in them, and the user's own loss."""
        found = self.found
        if found is None or not found.losses:
            return
        user = self.users.chosen[0] if self.users.chosen else None
        s = self.pictures
        s["losses"].html = str(curves.loss_histograms(found.losses, curves.areas(found), user))
        s["user"].html = "" if user is None else str(curves.user_chart(
            found.images[user], int(found.true[user]), int(found.given[user]), found.path, user
        ))  # fmt: skip


class SurvivalBench:
    """How little of the old model can survive, and where it begins to."""

    def __init__(self, parameters: study.Parameters, desk: Desk):
        self.parameters, self.desk = parameters, desk
        self.found: Survival | None = None
        self.size = Sliders("Size of the network", lambda place, value: self.draw(),
                            ("log10 of the parameters d", np.log10(385), 1, 9, 0.05))  # fmt: skip
        self.run_button = button("Measure on one network", self.run, 170, color="primary")
        self.picture = Drawing()

    def panel(self) -> pn.viewable.Viewable:
        """The tab."""
        return tab(narrow(self.size), self.run_button, self.picture)

    def run(self) -> None:
        """Output perturbation of a memorizing network at epsilons up to 100,000."""
        p = self.parameters
        self.desk.start(lambda: memory.survival_steps(p, 1), self.take)

    def take(self, found: Survival) -> None:
        """Show what has been measured."""
        self.found = found
        self.draw()

    def draw(self) -> None:
        """The bound at this d, beside what was measured."""
        p, found = self.parameters, self.found
        d = round(10 ** self.size.values[0])
        measured = None
        if found is not None:
            measured = (found.epsilon, *(np.nanmean(v, 0) for v in (found.accuracy, found.auc)))
        self.picture.html = str(drawings.survival_bound(d, p.epsilon, p.delta, measured))


class ForgetBench:
    """Pick images, press the button, watch the certificate clock and the accuracy."""

    def __init__(self, parameters: study.Parameters, desk: Desk):
        self.parameters, self.desk = parameters, desk
        self.page = self.requests = 0
        self.forgotten: list[int] = []  # training images, by their place
        self.found: Forgetting | None = None
        self.method = pn.widgets.RadioButtonGroup(
            label="Method",
            options=FORGET_METHODS,
            value="gc",
            margin=(0, 8, 6, 0),
            sizing_mode="fixed",
            width=250,
        )
        self.forget_button = button("Forget these", self.forget, 120, color="primary")
        self.more_button = button("Other images", self.turn, 110)
        self.again_button = button("New model", self.restart, 100)
        self.grid = Picker(caption="Training images: choose those to forget", marked="forgotten")
        self.state = Drawing()
        self.pictures = Drawing()

    def panel(self) -> pn.viewable.Viewable:
        """The tab."""
        buttons = pn.FlexBox(
            self.forget_button, self.more_button, self.again_button, self.method, margin=0
        )
        return tab(buttons, self.state, self.pictures, narrow(self.grid))

    def open(self) -> None:
        """Show the training images when the tab is first seen."""
        if not self.grid.pictures:
            self.restart()

    def on_parameters(self, changed: set[str]) -> None:
        """Another split or another network is another model."""
        if changed & {"seed", "hidden"} and self.grid.pictures:
            self.restart()

    def restart(self) -> None:
        """Back to a model that remembers everybody."""
        self.found, self.forgotten, self.page, self.requests = None, [], 0, 0
        self.images, self.labels = forgetting.training_images(self.parameters)
        self.pictures.html = ""
        self.state.html = str(drawings.said(
            "The model is trained when you first press <b>Forget these</b>. Choose some images."
        ))  # fmt: skip
        self._show_page()

    def turn(self) -> None:
        """The next images of the training set."""
        self.page += 1
        self._show_page()

    def _show_page(self) -> None:
        n = len(self.images)
        start = self.page * SHOWN % n
        self.places = [i % n for i in range(start, start + SHOWN)]
        self.grid.set(
            pictures=[curves.digit_url(self.images[i]) for i in self.places],
            names=[str(self.labels[i]) for i in self.places], chosen=[],
            marks=[k for k, i in enumerate(self.places) if i in self.forgotten],
        )  # fmt: skip

    def forget(self) -> None:
        """Unlearn the chosen images, from the model as it now is."""
        wanted = [self.places[k] for k in self.grid.chosen if self.places[k] not in self.forgotten]
        if not wanted:
            self.desk.say("Choose at least one image that is still remembered.")
            return
        p, gone, method = self.parameters, [*self.forgotten, *wanted], self.method.value
        model = None if self.found is None else self.found.model
        request, self.requests = self.requests, self.requests + 1
        self.desk.start(
            lambda: paced(forgetting.forget_steps(p, gone, method, model, request)),
            lambda found: self.take(found, gone), self._ended,
        )  # fmt: skip

    def take(self, found: Forgetting, gone: list[int]) -> None:
        """Clock, accuracy, and what the model may be called now."""
        self.found = found
        if found.certified and self.forgotten != gone:
            self.forgotten = gone
            self.grid.set(
                chosen=[], marks=[k for k, i in enumerate(self.places) if i in self.forgotten]
            )
        clock = curves.clock_chart(list(found.epsilon), self.parameters.epsilon, found.T)
        run = curves.run_chart(list(found.step), list(found.accuracy), found.T, found.budget)
        self.pictures.html = str(drawings.row(clock, run))
        self.state.html = str(drawings.said(found.words, found.certified))

    def _ended(self, how: str) -> None:
        """Stopped in the noisy phase, the model is what it is: uncertified."""
        if self.found is not None and not self.found.certified:
            self.state.html = str(drawings.said(self.found.words, False))


def paced(steps: Steps[Forgetting]) -> Steps[Forgetting]:
    """The same steps, with a rest after each of the noisy phase."""
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            yield step
            if step.data is not None and step.data.epsilon and step.data.certified is None:
                time.sleep(PACE_S)
    finally:
        steps.close()
