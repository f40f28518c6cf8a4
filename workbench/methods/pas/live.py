"""The live part: one split under the microscope, shrinkage to drag, trials that accumulate.

`Bench` connects the parameters, a few sliders and two charts that hear the pointer to the drawings.
Everything about one split answers at once; trials, the quality curve and the regret are jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import panel as pn

from workbench import theme
from workbench.explorer import Explorer, problem
from workbench.jobs import Latest
from workbench.steps import Step
from workbench.widgets.brush import Brush
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Faders

from . import drawings, study
from .estimators import Estimates
from .experiments import Quality, Regret, quality_steps, regret_steps
from .shrinkage import RiskCurve
from .trials import TITLES, Outcome, Setting, Split, setting_of, trial_steps

# What acts on the live split, in the order of the form.
LIVE = (
    "data", "predictor", "q", "shift", "frac", "moments", "official", "m", "n", "N", "psi", "c",
    "file", "seed",
)  # fmt: skip
AT_ONCE = 400_000  # items of a draw up to which a change is shown at once
SHOWN = ("classical", "prediction", "pas")  # estimators in the scatter at first
CURVE_TRIALS, REGRET_TRIALS = 20, 50
SCATTER = (drawings.WIDTH, 360)
DRAG = "Drag the line, or use the arrow keys on it: every tab follows."
NOISY_TRUTH = (
    "With real data the truth is the mean label of the unlabelled items, itself noisy: the true "
    "loss then lies above CURE, less so at the prediction mean, which has the same items."
)


class Bench:
    """The tabs and what they show; `panel()` is the layout."""

    def __init__(self, parameters: study.Parameters):
        self.parameters = parameters
        self.trial = 0
        self.split: Split | None = None
        self.outcome: Outcome | None = None
        self.quality: Quality | None = None
        self.regret: Regret | None = None
        self._omega: float | None = None  # None: what CURE chooses
        self._quiet = self._seen = False
        self.tabs: pn.Tabs | None = None
        self._stale: dict[int, Callable[[], None]] = {}  # tabs to draw anew when they are seen
        self.jobs = Latest(self._tell)
        self._build()
        self.new_split()
        parameters.param.watch(self._on_parameters, list(LIVE))

    # The page --------------------------------------------------------------------------------

    def _build(self) -> None:
        def button(label: str, action: Callable[[], None], width: int, **more: Any) -> Any:
            made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
            made.on_click(lambda event: action())
            return made

        self.split_button = button("Another split", self.another, 120)
        self.trials_button = button("Run the trials", self.run_trials, 120, color="primary")
        self.stop_button = button("Stop", self.jobs.stop, 70, disabled=True)
        self.auto_button = button("ω that CURE chooses", self.let_cure_choose, 160)
        self.clear_button = button("All problems", self.clear, 110)
        self.curve_button = button("Measure the curve", self.measure_quality, 150)
        self.regret_button = button("Measure the regret", self.measure_regret, 150)
        self.status = pn.pane.HTML(
            "", sizing_mode="stretch_width", min_height=22, margin=(0, 0, 4, 0),
            styles={"font-family": theme.FONT},
        )  # fmt: skip
        self.sliders = Faders(
            names=["Place of ω, %", "Problem"], values=[50.0, 1.0],
            notes=["0: predictions, 100: PT", "of those chosen"],
            lows=[0.0, 1.0], highs=[100.0, 2.0], steps=[0.5, 1], caption="Shrinkage and problem",
        )  # fmt: skip
        self.sliders.param.watch(lambda event: self._on_sliders(), "values")
        self.shown = pn.widgets.CheckBoxGroup(
            label="Estimators shown", inline=True, value=list(SHOWN), margin=(4, 0),
            options={TITLES[key]: key for key in (
                "classical", "prediction", "ppi", "pt", "unipt", "shrink_classical",
                "shrink_average", "pas", "unipas", "eb_ppi")},
        )  # fmt: skip
        self.shown.param.watch(lambda event: self._draw_all(), "value")
        self.cloud = Brush(
            *SCATTER, kind="box",
            caption="Truth and estimates: drag a box around problems; arrows move it, Shift and "
            "arrows resize it, Escape takes it away",
        )  # fmt: skip
        self.cloud.param.watch(lambda event: self._on_box(), "box")
        self.cure = Brush(
            drawings.WIDTH, drawings.HEIGHT, kind="line",
            caption="Amount of shrinkage omega, from 0 (prediction mean) to infinity (PT)",
        )  # fmt: skip
        self.cure.param.watch(lambda event: self._on_line(), "at")
        self.pictures = {name: Drawing() for name in (
            "One problem", "Segments", "Errors", "Trials", "Quality", "Regret")}  # fmt: skip
        self.pictures["Quality"].html = _waiting("Press Measure the curve.")
        self.pictures["Regret"].html = _waiting("Press Measure the regret.")

    def panel(self) -> pn.viewable.Viewable:
        """Buttons, sliders, status and the tabs."""

        def tab(*parts: Any) -> pn.viewable.Viewable:
            return pn.Column(*parts, sizing_mode="stretch_width", margin=(8, 0), max_width=660)

        pictures = self.pictures
        contents = {
            "One problem": tab(pictures["One problem"]),
            "All problems": tab(self.shown, self.cloud, pictures["Segments"]),
            "CURE": tab(_note(DRAG), self.cure, _note(NOISY_TRUTH)),
            "Errors": tab(pictures["Errors"], pictures["Trials"]),
            "Quality": tab(self.curve_button, pictures["Quality"]),
            "Regret": tab(self.regret_button, pictures["Regret"]),
        }
        # All tabs are on the page from the start, so that each drawing can be sent to.
        self.tabs = pn.Tabs(*contents.items(), sizing_mode="stretch_width", margin=(6, 0))
        self.tabs.param.watch(lambda event: self._draw_stale(), "active")
        buttons = pn.FlexBox(
            self.split_button, self.trials_button, self.stop_button, self.auto_button,
            self.clear_button, margin=0,
        )  # fmt: skip
        sliders = pn.Column(self.sliders, max_width=660, sizing_mode="stretch_width", margin=0)
        return pn.Column(
            buttons, self.status, sliders, self.tabs, sizing_mode="stretch_width", margin=0
        )

    # One split -------------------------------------------------------------------------------

    def another(self) -> None:
        """The next random split or draw."""
        self.trial += 1
        self.new_split()

    def new_split(self) -> None:
        """Split and estimate anew, and draw everything that shows it; errors go to the page."""
        try:
            split = self._setting().draw(self.trial)
            found = split.estimates()
        except Exception as error:  # a file that cannot be read, moments that cannot be had
            self.status.object = problem(error).object
            return
        fresh = self.split is None or len(self.split.problems) != len(split.problems)
        self.split, self._found = split, found
        pas = found["pas"]
        self._loss = RiskCurve.loss(pas.variance, pas.start - split.truth, pas.start - pas.target)
        if fresh:
            self._chosen = np.ones(len(split.problems), bool)
            self.cloud.box = []
        self._select()
        self._follow_omega()
        self.status.object = ""
        self._draw_split()

    def _setting(self) -> Setting:
        """The setting of the form; ParameterError for values that do not go together."""
        self.parameters.check()
        return setting_of(self.parameters)

    @property
    def omega(self) -> float:
        """The amount of shrinkage on the page."""
        return self._found["pas"].omega if self._omega is None else self._omega

    @property
    def pas(self) -> Any:
        """PAS with that amount."""
        found = self._found["pas"]
        return found if self._omega is None else drawings.moved(found, self._omega)

    def let_cure_choose(self) -> None:
        """Back to the omega that CURE chooses."""
        self._omega = None
        self._follow_omega()
        self._draw_split()

    def clear(self) -> None:
        """Choose all problems again."""
        self.cloud.box = []

    def set_omega(self, share: float) -> None:
        """Put omega at a place of the axis from 0 to 1."""
        self._omega = drawings.omega_at(share, float(self._found["pas"].variance.max()))
        self._follow_omega()
        self._draw_split()

    def _follow_omega(self) -> None:
        """Slider and line show the present omega without being heard."""
        share = drawings.share_of(self.omega, float(self._found["pas"].variance.max()))
        self._quiet = True
        try:
            self.sliders.move([100 * share, self.sliders.values[1]])
            self.cure.param.update(at=share, words=f"omega {drawings.omega_text(self.omega)}")
        finally:
            self._quiet = False

    # What is heard ---------------------------------------------------------------------------

    def _on_parameters(self, *events: Any) -> None:
        p = self.parameters
        changed = {event.name for event in events}
        if changed & {"data", "predictor", "moments", "file", "seed"}:
            self._omega = None
        if p.data == "synthetic" and p.m * (p.n + p.N) > AT_ONCE:
            self.status.object = _waiting("Large problems: press Another split.")
            return
        self.new_split()

    def _on_sliders(self) -> None:
        if self._quiet or self.split is None:
            return
        amount, number = self.sliders.values
        share = drawings.share_of(self.omega, float(self._found["pas"].variance.max()))
        if abs(amount / 100 - share) > 1e-3:
            self.set_omega(amount / 100)
        if self._members[int(number) - 1] != self._looked:
            self._looked = int(self._members[int(number) - 1])
            self._stale[0] = self._draw_one
            self._draw_stale()

    def _on_line(self) -> None:
        if not self._quiet and self.split is not None:
            self.set_omega(self.cure.at)

    def _on_box(self) -> None:
        if self.split is None:
            return
        self._select()
        self._draw_split()

    def _select(self) -> None:
        """Which problems are in the box: by truth and by any of the estimates shown."""
        split, box = self.split, self.cloud.box
        inside = np.ones(len(split.problems), bool)
        if len(box) == 4:
            low, high = drawings.truth_range(split)
            left, bottom, right, top = low + np.array(box) * (high - low)
            across = (split.truth >= left) & (split.truth <= right)
            keys = self.shown.value or ["pas"]
            # One problem alone has no average to shrink to.
            thetas = [self._theta(key) for key in keys if key in self._found]
            up = [(t >= bottom) & (t <= top) for t in thetas or [self.pas.theta]]
            inside = across & np.any(up, axis=0)
        self._chosen = inside if inside.any() else np.ones(len(inside), bool)
        self._members = np.flatnonzero(self._chosen)
        before = getattr(self, "_looked", -1)
        place = int(np.searchsorted(self._members, before).clip(0, len(self._members) - 1))
        self._looked = int(self._members[place])
        self._quiet = True
        try:
            self.sliders.set(
                highs=[100.0, float(max(len(self._members), 1))],
                values=[self.sliders.values[0], place + 1.0],
            )
        finally:
            self._quiet = False

    def _theta(self, key: str) -> np.ndarray:
        return self.pas.theta if key == "pas" else self._found[key].theta

    # What is shown ---------------------------------------------------------------------------

    def _draw_split(self) -> None:
        """Draw the tab that is seen now, the others when they are."""
        self._stale = {0: self._draw_one, 1: self._draw_all, 2: self._draw_cure,
                       3: self._draw_errors}  # fmt: skip
        self._draw_stale()

    def _draw_stale(self) -> None:
        seen = range(4) if self.tabs is None else [self.tabs.active]
        for number in seen:
            self._stale.pop(number, lambda: None)()

    def _with_pas(self) -> dict:
        return {**self._found, "pas": self.pas}

    def _draw_one(self) -> None:
        self.pictures["One problem"].html = str(
            drawings.microscope(self.split, self._with_pas(), self._looked)
        )

    def _draw_all(self) -> None:
        found = self._with_pas()
        keys = [key for key in self.shown.value if key in found]
        self.cloud.html = str(drawings.scatter(self.split, found, keys, self._chosen, *SCATTER))
        self.pictures["Segments"].html = str(drawings.segments(self.split, self.pas, self._chosen))

    def _draw_cure(self) -> None:
        pas, chosen = self._found["pas"], None
        if not self._chosen.all():
            i, d = self._chosen, pas.start - pas.target
            chosen = RiskCurve.cure(pas.variance[i], pas.covariance[i], d[i])
        self.cure.html = str(drawings.cure_drawing(pas.curve, self._loss, self.omega, chosen))

    def _draw_errors(self) -> None:
        i, truth = self._chosen, self.split.truth
        mse = {
            key: float(np.mean((made.theta[i] - truth[i]) ** 2))
            for key, made in self._with_pas().items()
        }
        which = "all problems" if i.all() else f"{i.sum()} chosen problems"
        note = f"Moments: {self.split.setting.regime}; PAS at ω = {drawings.omega_text(self.omega)}"
        best = self._found["pas"].omega
        note += "." if self._omega is None else f" (CURE chose {drawings.omega_text(best)})."
        for line in Estimates(self.split.problems, {"pas": self._found["pas"]}).cautions():
            note += f" {line[0].upper()}{line[1:]}."
        self.pictures["Errors"].html = str(drawings.bars(
            f"This split: MSE x 1000, {which}", mse, note=note
        ))  # fmt: skip

    # Jobs ------------------------------------------------------------------------------------

    def run_trials(self) -> None:
        """All trials of the parameters; the bars grow exact as they come."""
        trials = self.parameters.trials
        self._start(lambda: trial_steps(self._setting(), trials), self._take_outcome)

    def measure_quality(self) -> None:
        """Errors from noise to the tuned predictor, on the data of the form."""
        qualities = np.linspace(0, 1, 11)
        trials = min(self.parameters.trials, CURVE_TRIALS)
        self._start(lambda: quality_steps(self._setting(), trials, qualities), self._take_quality)

    def measure_regret(self) -> None:
        """The regret for up to `regret_m` problems, synthetic data."""
        values = {"trials": min(self.parameters.trials, REGRET_TRIALS),
                  "regret_m": max(self.parameters.regret_m, 20)}  # fmt: skip
        # Whatever data the form has, its other values are those of synthetic problems.
        given = self.parameters.to_papermill() | values
        given |= {"data": "nyt", "moments": "auto", "m": 2}  # m is that of the regret's own sizes
        self._start(lambda: regret_steps(study.Parameters(**given)), self._take_regret)

    def _start(self, make: Callable[[], Any], take: Callable[[Any], None]) -> None:
        self.stop_button.disabled = False
        self.jobs.start(make, take)

    def _tell(self, what: Step | str | Exception) -> None:
        if isinstance(what, Step):
            here = bool(self.cloud._models)
            if self._seen and not here:  # the page is gone
                self.jobs.stop()
            self._seen = here
            self.status.object = theme.progress_html(what.done, what.message)
            return
        self.stop_button.disabled = True
        words = {"done": "Done.", "stopped": "Stopped; what was finished is shown."}
        self.status.object = words[what] if isinstance(what, str) else problem(what).object

    def _take_outcome(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.pictures["Trials"].html = str(drawings.outcome_bars(outcome))

    def _take_quality(self, quality: Quality) -> None:
        self.quality = quality
        p = self.parameters
        now = p.q if p.predictor == "mix" else None
        self.pictures["Quality"].html = str(drawings.quality_drawing(quality, now))

    def _take_regret(self, regret: Regret) -> None:
        self.regret = regret
        self.pictures["Regret"].html = str(drawings.regret_drawing(regret))


def _waiting(words: str) -> str:
    return f'<div style="font:13px {theme.FONT};color:{theme.MUTED};margin:6px 0">{words}</div>'


def _note(words: str) -> pn.viewable.Viewable:
    return pn.pane.HTML(_waiting(words), margin=0)


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new bench that follows `parameters`."""
    made = Bench(parameters)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> str:
    """For reports: one split: its first problem, the risk estimate, the errors, as HTML."""
    setting = setting_of(parameters)
    if setting.data == "synthetic":
        setting = replace(setting, m=min(setting.m, 200))
    split = setting.draw(0)
    found = split.estimates()
    pas = found["pas"]
    loss = RiskCurve.loss(pas.variance, pas.start - split.truth, pas.start - pas.target)
    mse = {k: float(np.mean((e.theta - split.truth) ** 2)) for k, e in found.items()}
    return "<br>".join(map(str, (
        drawings.microscope(split, found, 0),
        drawings.cure_drawing(pas.curve, loss, pas.omega),
        drawings.bars(f"One split: MSE x 1000, {setting.titled()}", mse,
                      note=f"Moments: {setting.regime}."),
    )))  # fmt: skip


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of shrinkage; `pieces` are further arguments of `Explorer`."""
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, live=live, still=still, only=[*LIVE, *rest], **pieces)
