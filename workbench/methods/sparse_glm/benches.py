"""Benches of the live part that have controls of their own: prox, race, and dual vectors.

Long work goes through one `Desk` at a time, in a thread, and can be stopped. Pictures are pure
functions in `drawings.py`; the search is in `live.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn
from threadpoolctl import threadpool_limits

from workbench import theme
from workbench.explorer import problem
from workbench.jobs import Latest
from workbench.steps import Step, Steps
from workbench.widgets.bars import DragBars
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Faders

from . import baselines, drawings
from .experiments import RACE_ITERATIONS, VARIANTS, race_problem
from .problem import make_problem
from .prox import pooling
from .relaxation import Relaxed, dual_bound, dual_value, relax, relaxation_steps

WATCH_S = 0.05
FIRST_V = (3.0, 2.0, 1.5, 0.2, -1.4)
WIDE = 395
FLOW = {"flex_wrap": "wrap", "margin": 0, "sizing_mode": "stretch_width"}


class Desk:
    """One long work at a time, in a thread, with a line that tells of it and a button to stop it.

    shown: whether a page still shows it, else it stops. ended: called with "done" or "stopped".
    """

    def __init__(
        self, status: pn.pane.HTML, stop_button: Any, shown: Callable[[], bool],
        ended: Callable[[str], None],
    ):  # fmt: skip
        self.status, self.stop_button = status, stop_button
        self._shown, self._ended, self._seen = shown, ended, False
        self.jobs = Latest(self._tell, WATCH_S)

    def start(self, make: Callable[[], Steps], take: Callable[[Any], None]) -> None:
        """Run `make()` in place of what runs; `take` gets its data, also at the end."""
        self.stop_button.disabled = False
        self.jobs.start(make, take)

    def stop(self) -> None:
        """Stop what runs; what it has is kept."""
        self.jobs.stop()

    def _tell(self, said: Step | str | Exception) -> None:
        self.stop_button.disabled = not isinstance(said, Step)
        if isinstance(said, Step):
            here = self._shown()
            if self._seen and not here:  # the page is gone
                self.stop()
            self._seen = here
            self.status.object = theme.progress_html(said.done, said.message)
        elif isinstance(said, Exception):
            self.status.object = problem(said).object
        else:
            self._ended(said)


def button(label: str, action: Callable[[], Any], width: int, **more: Any) -> Any:
    """A button that does `action`."""
    made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
    made.on_click(lambda event: action())
    return made


def status_line() -> Any:
    """A line for progress and results."""
    return pn.pane.HTML(
        "", sizing_mode="stretch_width", min_height=22, margin=(0, 0, 4, 0),
        styles={"font-family": theme.FONT},
    )  # fmt: skip


def drawing() -> Drawing:
    """A place for a picture, two of them side by side."""
    return Drawing(width=WIDE, sizing_mode=None, margin=(6, 14, 6, 0))


def wide_drawing() -> Drawing:
    """A place for a picture as wide as there is room for."""
    return Drawing(max_width=620, margin=(6, 0))


def words_pane(text: str) -> Any:
    """A sentence of instruction."""
    return pn.pane.HTML(
        f'<div style="font:13px {theme.FONT};color:{theme.MUTED};max-width:60em">{text}</div>',
        sizing_mode="stretch_width", margin=(0, 0, 6, 0),
    )  # fmt: skip


class ProxBench:
    """The prox by hand: drag v, move tau, k and M, watch the block grow."""

    def __init__(self) -> None:
        self.bars = DragBars(FIRST_V, low=-4, high=4, caption="The vector v; dashed: its prox b")
        self.bars.param.watch(lambda event: self.draw(), "values")
        self.faders = Faders(
            names=["log₁₀ τ", "k", "M"], values=[0.0, 2, 4.0], lows=[-1.5, 1, 0.1],
            highs=[1.5, 5, 4.0], steps=[0, 1, 0], caption="Step, sparsity, box",
            margin=(4, 0, 0, 0),
        )  # fmt: skip
        self.faders.param.watch(lambda event: self.draw(), "values")
        self.step: int | None = None
        self.step_button = button("Grow the block one step", self.grow, 180)
        self.all_button = button("All steps", self.finish, 90)
        self.more = button("Eight random values", self.throw, 160)
        self.sorted, self.result = drawing(), drawing()
        self._rng = np.random.default_rng(0)
        self.draw()

    def panel(self) -> pn.viewable.Viewable:
        """Bars, sliders, and what comes of them."""
        words = (
            "Drag the bars of v, or focus one and use the arrow keys. The orange marks are "
            "b = prox(v). Below, |v| / τ sorted: rings are each element's own solution; where the "
            "order breaks at the border, one block is pooled to a plateau."
        )
        return pn.Column(
            words_pane(words), self.bars, self.faders,
            pn.FlexBox(self.step_button, self.all_button, self.more, **FLOW),
            pn.FlexBox(self.sorted, self.result, **FLOW), sizing_mode="stretch_width",
            margin=(8, 0),
        )  # fmt: skip

    def pooled(self) -> Any:
        """The prox of what is set, with its steps."""
        log_tau, k, M = self.faders.values
        return pooling(np.array(self.bars.values), 10.0**log_tau, int(k), float(M))

    def draw(self) -> None:
        """Both pictures."""
        found = self.pooled()
        log_tau, k, M = self.faders.values
        if self.step is not None:
            self.step = min(self.step, len(found.blocks))
        self.bars.marks = [float(b) for b in found.b]
        picture = drawings.sorted_picture(found, 10.0**log_tau, int(k), float(M), self.step)
        self.sorted.html = str(picture)
        self.result.html = str(drawings.prox_picture(self.bars.values, found))

    def grow(self) -> None:
        """Show one more step of the block; from the finished one, begin again."""
        steps = len(self.pooled().blocks)
        self.step = 0 if self.step is None or self.step >= steps else self.step + 1
        self.draw()

    def finish(self) -> None:
        """Show the block as it ends."""
        self.step = None
        self.draw()

    def throw(self) -> None:
        """Another v, of eight numbers."""
        values = (np.round(self._rng.standard_normal(8) * 1.5, 2)).clip(-4, 4).tolist()
        self.bars.set(values=values, names=[str(j + 1) for j in range(8)], marks=[])
        self.faders.set(highs=[1.5, 8, 4.0])
        self.draw()


class RaceBench:
    """The root relaxation by three variants, live, and by a conic solver."""

    def __init__(self) -> None:
        def select(label: str, options: Any, value: Any, width: int) -> Any:
            return pn.widgets.Select(
                label=label, options=options, value=value, width=width, margin=(0, 12, 6, 0)
            )

        self.loss = select("Loss", ["linear", "logistic"], "linear", 110)
        self.size = select("n = p", [100, 200, 500, 1000], 200, 90)
        self.axis = select("Gap over", {"iterations": "iterations", "CPU time": "seconds"},
                           "iterations", 120)  # fmt: skip
        self.axis.param.watch(lambda event: self.draw(), "value")
        solver = {"no": "", "Clarabel": "CLARABEL", "SCS (slow)": "SCS"}
        self.conic_solver = select("Conic solver", solver, "", 120)
        self.conic_solver.visible = baselines.available("cvxpy")
        self.run_button = button("Race", self.start, 80, color="primary", align="end")
        self.stop_button = button("Cancel", self.stop, 80, disabled=True, align="end")
        self.status, self.chart = status_line(), wide_drawing()
        self.desk = Desk(
            self.status, self.stop_button, lambda: bool(self.chart._models), self._ended
        )
        self.runs: dict[str, Relaxed] = {}
        self.conic: dict[str, float] = {}

    def panel(self) -> pn.viewable.Viewable:
        """Menus, buttons and the curves."""
        words = (
            "Synthetic data, k = 10, λ₂ = 1, M = 2, to a relative gap of 10⁻⁶. Crosses: restarts. "
            "Over CPU time, a conic solver is a vertical line: it has nothing to show before."
        )
        menus = pn.FlexBox(
            self.loss, self.size, self.conic_solver, self.axis, self.run_button, self.stop_button,
            align_items="flex-end", **FLOW,
        )  # fmt: skip
        return pn.Column(words_pane(words), menus, self.status, self.chart,
                         sizing_mode="stretch_width", margin=(8, 0))  # fmt: skip

    def start(self) -> None:
        """Run all variants, one after the other."""
        self.runs, self.conic = {}, {}
        self.desk.start(self._steps, self._take)

    def stop(self) -> None:
        """Stop; curves stay."""
        self.desk.stop()

    def _steps(self) -> Steps[tuple[dict, dict]]:
        made = race_problem(self.loss.value, self.size.value, 0)
        runs: dict[str, Relaxed] = {}
        conic: dict[str, float] = {}
        with threadpool_limits(1, "blas"):
            for number, (name, options) in enumerate(VARIANTS.items()):
                for step in relaxation_steps(made, max_iter=RACE_ITERATIONS, trace=True, **options):
                    runs[name] = step.data
                    share = 1 - np.log10(max(step.data.gap, 1e-6)) / -6
                    yield Step((number + 1 - share) / 4, f"{name}: {step.message}", (runs, conic))
            if self.conic_solver.value:
                yield Step(0.8, f"{self.conic_solver.value}: nothing to show yet", (runs, conic))
                answer = baselines.conic_relaxation(made, self.conic_solver.value)
                conic[answer.solver.replace("CLARABEL", "Clarabel")] = answer.cpu_seconds
        return runs, conic

    def _take(self, data: tuple[dict, dict]) -> None:
        self.runs, self.conic = dict(data[0]), dict(data[1])
        self.draw()

    def _ended(self, how: str) -> None:
        words = [f"{name} <b>{run.iterations}</b> iterations, {1e3 * run.seconds:.0f} ms"
                 for name, run in self.runs.items()]  # fmt: skip
        words += [f"{name} {1e3 * seconds:.0f} ms" for name, seconds in self.conic.items()]
        self.status.object = ("Cancelled. " if how == "stopped" else "") + "; ".join(words)

    def draw(self) -> None:
        """The curves as far as they have come."""
        if self.runs:
            shown = drawings.race_picture(self.runs, self.conic, self.axis.value)
            self.chart.html = str(shown)


class DualBench:
    """Any dual vector gives a true bound: ten rows, w to be dragged."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        X = rng.standard_normal((10, 8))
        y = X[:, 0] - X[:, 3] + 0.5 * rng.standard_normal(10)
        self.problem = make_problem(X, y - y.mean(), "linear", 2, 0.5, 1.5)
        self.optimum = baselines.brute_force(self.problem).value
        self.relaxed = relax(self.problem, tol=1e-10)
        self.bars = DragBars(
            [0.0] * 10, low=-6, high=6, caption="The dual vector w; dashed: the best one",
            marks=[float(x) for x in self.relaxed.w.clip(-6, 6)],
        )  # fmt: skip
        self.bars.param.watch(lambda event: self.draw(), "values")
        self.best_button = button("Set w to the best one", self.best, 160)
        self.noise_button = button("Random w", self.noise, 100)
        self.chart, self.reached = wide_drawing(), 0.0
        self._rng = rng
        self.draw()

    def panel(self) -> pn.viewable.Viewable:
        """Bars and the ruler."""
        words = (
            "Ten rows, eight features, k = 2. Drag w anywhere: D(w) never passes the optimum, "
            "which is why an unfinished solver, or a rounded w, still proves something."
        )
        return pn.Column(
            words_pane(words), self.bars, pn.FlexBox(self.best_button, self.noise_button, **FLOW),
            self.chart, sizing_mode="stretch_width", margin=(8, 0),
        )  # fmt: skip

    def draw(self) -> None:
        """The ruler for the present w."""
        w = np.array(self.bars.values)
        self.reached = max(self.reached, dual_bound(self.problem, w))
        value = dual_value(self.problem, w)
        shown = drawings.dual_picture(self.optimum, self.relaxed.value, value, self.reached)
        self.chart.html = str(shown)

    def best(self) -> None:
        """The gradient at the solution of the relaxation."""
        self.bars.set(values=[float(x) for x in self.relaxed.w.clip(-6, 6)])

    def noise(self) -> None:
        """Some w."""
        self.bars.set(values=[float(x) for x in self._rng.uniform(-6, 6, 10).round(2)])
