"""The live view of rank_one_vi: planners and learners that follow the sliders.

The first iterates of value iteration, midpoint and R1-VI are computed at once; slower planners run
in a thread, whose curves grow in the picture and which the next wish replaces. Pictures are pure
functions in `charts.py`, the numerical work is in `closeup.py` and `experiments.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import panel as pn
from threadpoolctl import threadpool_limits

from workbench import theme
from workbench.explorer import Explorer, problem
from workbench.jobs import Job
from workbench.numerics import mdp as tables
from workbench.numerics.mdp import MDP
from workbench.steps import Cancelled, Step, Steps, run
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Faders

from . import charts, study
from .closeup import Closeups
from .experiments import Comparison, curves_steps
from .learning import METHODS, Learning, learn_steps

# What acts on the pictures, in the order of the form.
LIVE = (
    "family", "closure", "n", "m", "b", "gamma", "teleport", "power_steps", "d_mode", "methods",
    "tol", "seed", "file",
)  # fmt: skip
WATCH_S = 0.1
PAUSE_S = 0.02  # changes that come together are drawn once
LEARNERS = {"Garnet(20, 3, 5)": "garnet", "graph of six nodes": "graph6", "this problem": "own"}
LARGEST_ZAP = 150  # pairs for which a step of Zap is quick enough to watch
WIDE, NARROW = 390, 8


class PlannerBench:
    """One MDP under planners, pictures 1 to 7, and learners, picture 8; `panel()` is the layout."""

    def __init__(self, parameters: study.Parameters):
        self.parameters, self.closeups = parameters, Closeups()
        self.made: Comparison | None = None
        self.learned: dict[str, Learning] = {}
        self._wish = self._job = self._task = self._timer = None
        self._quiet = self._seen = False
        self._build()
        self.refresh(start=False)
        parameters.param.watch(self._on_parameters, list(LIVE))
        # What is sent before the page is there may be lost, so slow curves wait for it.
        self.drawings["errors"].param.watch(lambda event: self.start(), "hello")

    # The page --------------------------------------------------------------------------------

    def _build(self) -> None:
        def button(label: str, action: Callable[[], None], width: int, **more: Any) -> Any:
            made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
            made.on_click(lambda event: action())
            return made

        self.faders = Faders(
            names=["log₁₀ 1/(1 − γ)", "Iteration k", "State shown"],
            values=[2.0, 5.0, 0.0], lows=[0.302, 1, 0], highs=[4.0, 60, 1], steps=[0, 1, 1],
            notes=["", "", ""], caption="Discount, iteration, state", margin=(4, 0, 0, 0),
        )  # fmt: skip
        self.faders.param.watch(self._on_faders, "values")
        self.axis = pn.widgets.Select(
            label="Errors over", value="iterations", width=170, margin=(0, 12, 6, 0),
            options={words: name for name, words in charts.AXES.items()},
        )  # fmt: skip
        self.axis.param.watch(lambda event: self._draw(), "value")
        self.dice = button("Throw the dice: another seed", self.throw, 210)
        self.stop_button = button("Stop", self.stop, 70, disabled=True)
        self.status = pn.pane.HTML(
            "", sizing_mode="stretch_width", min_height=22, margin=(0, 0, 4, 0),
            styles={"font-family": theme.FONT},
        )  # fmt: skip
        names = ("errors", "bracket", "policies", "spectrum", "distribution", "gains", "tracking")
        self.drawings = {
            name: Drawing(width=WIDE, sizing_mode=None, margin=(6, NARROW, 6, 0)) for name in names
        }
        self.drawings["grid"] = Drawing(margin=(6, 0))
        self.drawings["learning"] = Drawing(margin=(6, 0))
        self.on = pn.widgets.Select(
            label="Learn on", options=LEARNERS, value="garnet", width=190, margin=(0, 12, 6, 0)
        )
        self.subtract = pn.widgets.Select(  # a checkbox of Panel has no accessible name
            label="Errors of q", value=False, width=220, margin=(0, 12, 6, 0),
            options={"as they are": False, "with the best constant subtracted": True},
        )  # fmt: skip
        self.subtract.param.watch(lambda event: self._draw_learning(), "value")
        self.learn_button = button("Learn", self.learn, 80, color="primary", align="end")

    def panel(self) -> pn.viewable.Viewable:
        """Sliders and buttons above tabs with the pictures."""
        flow = {"flex_wrap": "wrap", "margin": 0, "sizing_mode": "stretch_width"}
        buttons = pn.FlexBox(self.axis, self.dice, self.stop_button, align_items="flex-end", **flow)
        d = self.drawings
        planning = pn.FlexBox(
            d["errors"], d["bracket"], d["policies"], d["spectrum"],
            pn.Column(d["distribution"], d["tracking"], width=WIDE + NARROW, margin=0), d["gains"],
            **flow,
        )  # fmt: skip
        hint = pn.pane.HTML(
            f'<div style="font:13px {theme.FONT};color:{theme.MUTED}">All learners see the same '
            "draws. Steps, seeds and step sizes: group Learning of the form.</div>",
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip
        learning = pn.Column(
            pn.FlexBox(self.on, self.learn_button, self.subtract, align_items="flex-end", **flow),
            hint, d["learning"], sizing_mode="stretch_width", margin=(8, 0),
        )  # fmt: skip
        self.tabs = pn.Tabs(
            ("Planning", planning), ("Grid", d["grid"]), ("Learning", learning),
            sizing_mode="stretch_width", margin=(6, 0),
        )  # fmt: skip
        self.tabs.param.watch(lambda event: self._draw(), "active")
        return pn.Column(
            self.faders, buttons, self.status, self.tabs, sizing_mode="stretch_width", margin=0
        )

    # Wishes ----------------------------------------------------------------------------------

    def refresh(self, start: bool = True) -> None:
        """Compute and draw what the parameters ask for now; then start the slow planners."""
        self._timer = None
        try:
            if self.closeups.fast(self.parameters):
                self._take(self.closeups(self.parameters))
            else:
                self.made = None
                self.status.object = "A large problem: computing."
        except Exception as error:
            self.made, self._wish = None, None
            self.status.object = problem(error).object
            return
        if start:
            self.start()

    def start(self) -> None:
        """Run the slow planners of the present problem in place of what runs."""
        self._start(self._curve_steps, self._follow_curves, self._finish_curves)

    def learn(self) -> None:
        """Run the learners in place of what runs."""
        self.learned = {}
        self._say(Step(0.0, "starting"))
        self._start(self._learn_steps, self._follow_learning, self._finish_learning)

    def throw(self) -> None:
        """Another seed, so another Garnet."""
        self.parameters.seed = (self.parameters.seed + 1) % 2**31

    def stop(self) -> None:
        """Stop what runs; curves stay as far as they have come."""
        self._wish = None
        if self._job:
            self._job.cancel()

    def _curve_steps(self) -> Steps[Comparison]:
        p = type(self.parameters)(**self.parameters.to_papermill())  # as they are now
        first = self.made
        if first is None:
            yield Step(0.0, "exact solution")
            first = self.closeups(p)
            yield Step(0.0, "first iterates", first)
        made = Comparison(first.solved, dict(first.plans), first.low, first.high)
        with threadpool_limits(1, "blas"):
            yield from curves_steps(made, p)
        return made

    def _learn_steps(self) -> Steps[dict[str, Learning]]:
        p, chosen = self.parameters, self.on.value
        seeds = [p.seed + number for number in range(p.ql_seeds)]
        problems: MDP | Sequence[MDP] = tables.graph6()
        if chosen == "garnet":
            problems = [tables.garnet(20, 3, 5, seed) for seed in seeds]
        elif chosen == "own":
            problems = tables.teleport(self.closeups.base(p), p.teleport)
        first = problems if isinstance(problems, MDP) else problems[0]
        names = [name for name in METHODS if name != "Zap" or first.n * first.m <= LARGEST_ZAP]
        with threadpool_limits(1, "blas"):
            return (
                yield from learn_steps(problems, p.gamma, names, p.ql_steps, seeds, p.step_rule)
            )

    # Jobs ------------------------------------------------------------------------------------

    def _start(
        self, make: Callable[[], Steps], follow: Callable[[Step], None], finish: Callable[..., None]
    ) -> None:
        self._wish = (make, follow, finish)
        if self._job:
            self._job.cancel()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no page: nobody waits, so here and now
            self._wish = None
            try:
                finish(run(make(), follow))
            except Exception as error:
                self.status.object = problem(error).object
            return
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())

    async def _work(self) -> None:
        while self._wish:
            (make, follow, finish), self._wish = self._wish, None
            self.stop_button.disabled = False
            try:
                self._job = Job(make())
                result = await self._job.watch(partial(self._noticed, follow), WATCH_S)
                if not self._wish:  # else the result is that of other parameters
                    finish(result)
            except Cancelled as stopped:
                if not self._wish:
                    if stopped.data is not None:
                        finish(stopped.data)
                    self.status.object = "Stopped; what was finished is shown."
            except Exception as error:
                self.status.object = problem(error).object
            finally:
                self._job = None
        self.stop_button.disabled = True

    def _noticed(self, follow: Callable[[Step], None], step: Step) -> None:
        here = bool(self.drawings["errors"]._models)
        if self._seen and not here:  # the page is gone
            self.stop()
        self._seen = here
        if not self._wish:
            follow(step)

    def _say(self, step: Step) -> None:
        self.status.object = theme.progress_html(step.done, step.message)

    # What is heard ---------------------------------------------------------------------------

    def _on_parameters(self, *events: Any) -> None:
        if self._job:  # its curves are those of other parameters
            self._job.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.refresh()
            return
        if self._timer is None:
            self._timer = loop.call_later(PAUSE_S, self.refresh)

    def _on_faders(self, event: Any) -> None:
        if self._quiet:
            return
        gap = float(f"{10.0 ** -event.new[0]:.3g}")  # a number that one can read
        gamma = round(float(np.clip(1 - gap, 0.5, 0.9999)), 8)
        if abs(gamma - self.parameters.gamma) > 1e-6 and event.new[0] != event.old[0]:
            self.parameters.gamma = gamma
        else:
            self._draw()

    # What is shown ---------------------------------------------------------------------------

    def _take(self, made: Comparison) -> None:
        self.made = made
        solved, p = made.solved, self.parameters
        _, k, state = self.faders.values
        last = max(1, max(len(plan.values) for plan in made.plans.values()) - 1)
        self._quiet = True
        try:
            self.faders.set(
                values=[float(-np.log10(1 - p.gamma)), min(k, last), min(state, solved.mdp.n - 1)],
                highs=[4.0, last, max(1, solved.mdp.n - 1)],
                notes=[f"γ = {p.gamma:.7g}", "the dotted line", f"of {solved.mdp.n}"],
            )  # fmt: skip
        finally:
            self._quiet = False
        self._draw()

    def _draw(self) -> None:
        if self.made is None:
            return
        made, d = self.made, self.drawings
        _, k, state = (int(value) for value in self.faders.values)
        state = min(state, made.solved.mdp.n - 1)  # a slider has two ends, one state has not
        if getattr(self, "tabs", None) is not None and self.tabs.active == 1:
            d["grid"].html = str(charts.grid(made, k))
            return
        self._draw_curves()
        d["bracket"].html = str(charts.bracket(made, state, k))
        d["spectrum"].html = str(charts.spectrum(made))
        d["distribution"].html = str(charts.distribution(made, k))
        d["tracking"].html = str(charts.tracking(made, k))
        d["gains"].html = str(charts.gains(made))

    def _draw_curves(self) -> None:
        k = int(self.faders.values[1])
        chosen = [name for name in self.parameters.methods if name in self.made.plans]
        plans = {name: self.made.plans[name] for name in chosen}
        shown = Comparison(self.made.solved, plans, self.made.low, self.made.high)
        self.drawings["errors"].html = str(charts.errors(shown, self.axis.value, k))
        self.drawings["policies"].html = str(charts.policies(shown, k))

    def _draw_learning(self) -> None:
        drawn = charts.learning(self.learned, self.subtract.value)
        self.drawings["learning"].html = str(drawn)

    def _follow_curves(self, step: Step) -> None:
        self._say(step)
        if step.data is not None:
            self._show_curves(step.data)

    def _show_curves(self, grown: Comparison) -> None:
        if self.made is None or self.made.solved is not grown.solved:
            self._take(grown)
            return
        # With the first iterates of planners that have not run yet.
        plans = {**self.made.plans, **grown.plans}
        self.made = Comparison(grown.solved, plans, grown.low, grown.high)
        self._draw_curves()

    def _finish_curves(self, made: Comparison) -> None:
        self._show_curves(made)
        self.status.object = verdict(made, self.parameters.tol)

    def _follow_learning(self, step: Step) -> None:
        self._say(step)
        if step.data:
            self.learned = step.data
            self._draw_learning()

    def _finish_learning(self, found: dict[str, Learning]) -> None:
        self.learned = found
        self._draw_learning()
        ends = sorted((float(np.median(run.errors[:, -1])), name) for name, run in found.items())
        missing = "" if "Zap" in found else " Zap is left out: too many pairs to watch."
        self.status.object = f"Learned. Least error: {ends[0][1]}, {ends[0][0]:.3g}.{missing}"


def verdict(made: Comparison, tolerance: float) -> str:
    """How many iterations each planner needed, in words; extrapolated ones with a sign."""
    words = []
    for name, plan in made.plans.items():
        if plan.iterations is None:
            words.append(f"{name} not within {len(plan.errors) - 1:,}")
        else:
            sign = "≈ " if plan.extrapolated else ""
            words.append(f"{name} {sign}<b>{plan.iterations:,}</b>")
    return f"Iterations to an error of {tolerance:g}: " + ", ".join(words) + "."


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new bench that follows `parameters`."""
    made = PlannerBench(parameters)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> str:
    """Pictures 1 to 6 of the parameters as HTML, for reports."""
    made = Closeups()(parameters)
    steps = curves_steps(made, parameters)
    with threadpool_limits(1, "blas"):
        run(steps)
    drawn = [
        charts.errors(made), charts.bracket(made), charts.policies(made),
        charts.spectrum(made), charts.distribution(made, 5), charts.gains(made),
    ]  # fmt: skip
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:16px">'
        + "".join(drawn)
        + f'</div><p style="font:13px {theme.FONT}">{verdict(made, parameters.tol)}</p>'
    )


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of rank_one_vi; `pieces` are further arguments of `Explorer`."""
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, **({"live": live, "still": still, "only": [*LIVE, *rest]} | pieces))
