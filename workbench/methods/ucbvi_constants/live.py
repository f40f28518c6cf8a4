"""The live part: runs that stream, a bonus taken apart, Q-tables under the microscope.

`Bench` connects the parameters and a few sliders to the drawings. Closed forms answer at once;
runs go through one job at a time in a thread, and the latest wish replaces what runs.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import panel as pn

from workbench import theme
from workbench.explorer import Explorer, problem
from workbench.jobs import Job
from workbench.steps import Cancelled, Step, Steps, run
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Faders

from . import drawings, study
from .bonuses import BERNSTEIN, NO_TABLE, Sizes
from .experiments import (
    Bandits,
    Comparison,
    Scan,
    bandit_steps,
    compare_steps,
    options,
    problems_of,
    scan_steps,
)
from .learning import MOST_SNAPSHOTS, Run

# What acts on the live runs, in the order of the form.
LIVE = (
    "env", "S", "A", "H", "K", "file", "algs", "scale", "delta", "mvp_delta", "last_step_bonus",
    "ties", "official_variance", "regret", "seed",
)  # fmt: skip
TABS = ("Regret", "Bonus", "Bounds", "Q-table", "Visits", "Scan", "Bandits")
SETTLE_S = 0.15  # a slider that still moves starts nothing
AT_ONCE = 2e7  # S^2 A H K up to which a change is run at once: half a second an algorithm
SNAPSHOT_CELLS = 400_000  # of all snapshots of a run: H S A a snapshot
SCAN_K, SCAN_RUNS, BANDITS = 10_000, 2, 20
EARLY = (1_000, 10_000)  # episodes at which the regret is printed


def sizes_of(p: study.Parameters, comparison: Comparison | None = None) -> Sizes:
    """The sizes that the closed forms of the page use; those of a file once it has been read."""
    S, A = p.sizes
    if p.env == "npz" and comparison is not None:
        S, A = comparison.sizes.S, comparison.sizes.A
    return Sizes(S, A, p.H, p.K, p.delta, p.mvp_delta or None)


def at_once(p: study.Parameters) -> bool:
    """Whether a change of the parameters is run without being asked for."""
    S, A = p.sizes
    return p.env != "npz" and S**2 * A * p.H * p.K <= AT_ONCE


def live_steps(p: study.Parameters) -> Steps[Comparison]:
    """One run of each chosen algorithm, with snapshots for the microscope."""
    yield Step(0.0, "compiling the engine (first run only)")
    mdps = problems_of(p, 1, p.H)
    cells = p.H * mdps[0].n * mdps[0].m
    snapshots = int(np.clip(SNAPSHOT_CELLS // cells, 20, MOST_SNAPSHOTS))
    name = f"{mdps[0].name}, H = {p.H}, K = {p.K:,}, one run"
    return (
        yield from compare_steps(
            mdps, p.algs, p.H, p.K, p.seed, name=name, snapshots=snapshots, **options(p)
        )
    )


def optimism_text(comparison: Comparison) -> str:
    """How optimistic each algorithm has been, in words: the largest share of V < V*."""
    found = []
    for a in comparison.algorithms:
        done = comparison.runs[a][0]
        if a in NO_TABLE:
            found.append(f"{a} – keeps no table")
        elif done and len(done.episodes):
            worst = float(done.violated.max())
            share = drawings.share_text(worst)
            sign, word = ("✓", "optimistic") if worst == 0 else ("✗", f"V < V* in {share}")
            found.append(f"{a} {sign} {word}")
    return "; ".join(found)


def early_text(comparison: Comparison, kind: str = "pseudo") -> str:
    """Regret after 1,000 and 10,000 episodes, as far as they are played, in words."""
    found = []
    for at in EARLY:
        curves = [(a, *comparison.curve(a, kind)) for a in comparison.algorithms]
        reached = [
            f"{a} {np.interp(at, episodes, regret.mean(0)):,.0f}"
            for a, episodes, regret in curves
            if len(episodes) and episodes[-1] >= at
        ]
        if reached:
            found.append(f"Regret after {at:,} episodes: {', '.join(reached)}.")
    return " ".join(found)


class Bench:
    """The tabs and what they show; `panel()` is the layout."""

    def __init__(self, parameters: study.Parameters):
        self.parameters = parameters
        self.comparison: Comparison | None = None
        self.scan: Scan | None = None
        self.bandits: Bandits | None = None
        self._wish = self._job = self._task = None
        self._seen = False
        self._build()
        parameters.param.watch(self._on_parameters, list(LIVE))

    # The page --------------------------------------------------------------------------------

    def _build(self) -> None:
        def button(label: str, action: Callable[[], None], width: int, **more: Any) -> Any:
            made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
            made.on_click(lambda event: action())
            return made

        def select(label: str, names: list[str], action: Callable[[], None]) -> Any:
            made = pn.widgets.Select(
                label=label, options=names, value=names[0], width=140, margin=(0, 12, 6, 0)
            )
            made.param.watch(lambda event: action(), "value")
            return made

        self.run_button = button("Run", self.run, 80, color="primary")
        self.stop_button = button("Stop", self.stop, 80, disabled=True)
        self.status = pn.pane.HTML(
            "Waiting for the page.", sizing_mode="stretch_width", min_height=22,
            margin=(0, 0, 6, 0), styles={"font-family": theme.FONT},
        )  # fmt: skip
        # A group, since a single checkbox of Panel has no name for screen readers.
        self.log_axes = pn.widgets.CheckBoxGroup(
            label="Axes", options=["Log episodes", "Log regret"], inline=True, margin=(4, 0),
            value=["Log episodes", "Log regret"],
        )  # fmt: skip
        self.log_axes.param.watch(lambda event: self._draw_regret(), "value")
        self.term_algorithm = select("Taken apart", list(reversed(BERNSTEIN)), self._draw_bonus)
        self.bonus_sliders = Faders(
            names=["log10 N, visits", "Var / (H²/4)", "log10 N′, visits of y at stage h + 1"],
            values=[3.0, 0.2, 0.0], lows=[0.0, 0.0, 0.0], highs=[7.0, 1.0, 12.0], steps=[0, 0, 0],
            caption="Where the bonus is looked at",
        )  # fmt: skip
        self.bonus_sliders.param.watch(lambda event: self._draw_bonus(), "values")
        self.looked_at = select("Algorithm", list(self.parameters.algs), self._fit_table)
        self.table_sliders = Faders(
            names=["Snapshot", "Stage h", "State s"], values=[1, 1, 0], lows=[0, 1, 0],
            highs=[1, 1, 1], steps=[1, 1, 1], caption="Where the table is looked at",
        )  # fmt: skip
        self.table_sliders.param.watch(lambda event: self._draw_table(), "values")
        if "BF-I" in self.parameters.algs:
            self.looked_at.value = "BF-I"
        self.scan_button = button(f"Scan (K = {SCAN_K:,})", self.scan_constants, 160)
        self.bandit_button = button("Pull the arms", self.pull, 130)
        self.pictures = {name: Drawing() for name in TABS}
        # Not before the page is there: what is sent to it too early is lost.
        self.pictures["Regret"].param.watch(self._on_hello, "hello")
        self._draw_closed_forms()

    def panel(self) -> pn.viewable.Viewable:
        """Buttons, status and the tabs."""

        def tab(name: str, *above: Any) -> pn.viewable.Viewable:
            row = [pn.FlexBox(*above, align_items="center", margin=0)] if above else []
            return pn.Column(
                *row, self.pictures[name], sizing_mode="stretch_width", margin=(8, 0),
                max_width=660,
            )  # fmt: skip

        contents = {
            "Regret": tab("Regret", self.log_axes),
            "Bonus": tab("Bonus", self.term_algorithm, self.bonus_sliders),
            "Bounds": tab("Bounds"),
            "Q-table": tab("Q-table", self.looked_at, self.table_sliders),
            "Visits": tab("Visits"),
            "Scan": tab("Scan", self.scan_button),
            "Bandits": tab("Bandits", self.bandit_button),
        }
        # All tabs are on the page from the start, so that each drawing can be sent to.
        self.tabs = pn.Tabs(*contents.items(), sizing_mode="stretch_width", margin=(6, 0))
        buttons = pn.FlexBox(self.run_button, self.stop_button, margin=0)
        return pn.Column(buttons, self.status, self.tabs, sizing_mode="stretch_width", margin=0)

    # Wishes ----------------------------------------------------------------------------------

    def run(self) -> None:
        """Run every chosen algorithm once on the problem of the parameters."""
        self._start(lambda: live_steps(self.parameters), self._take_runs)

    def scan_constants(self) -> None:
        """Multiply the bonus by ever smaller numbers, on 3 x 3 random MDPs."""
        seed = self.parameters.seed
        self._start(partial(scan_steps, SCAN_K, SCAN_RUNS, seed), self._take_scan)

    def pull(self) -> None:
        """Twenty bandits of 3 and of 10 arms with both indices."""
        self._start(partial(bandit_steps, BANDITS, self.parameters.seed), self._take_bandits)

    def stop(self) -> None:
        """Stop what runs; what it has so far stays."""
        self._wish = None
        if self._job:
            self._job.cancel()

    # Jobs ------------------------------------------------------------------------------------

    def _start(self, make: Callable[[], Steps], take: Callable[[Any], None]) -> None:
        """Run the steps that `make()` gives in place of what runs; `take` gets all their data."""
        self._wish = (make, take)
        if self._job:
            self._job.cancel()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no page: nobody waits, so here and now
            self._wish = None
            try:
                take(run(make()))
            except Exception as error:
                self._show_problem(error)
            return
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())

    async def _work(self) -> None:
        while self._wish:
            wish = self._wish
            await asyncio.sleep(SETTLE_S)
            if self._wish is not wish:
                continue
            (make, take), self._wish = wish, None
            self.stop_button.disabled = False
            try:
                self._job = Job(make())
                take(await self._job.watch(partial(self._noticed, take)))
                self.status.object = "Done."
            except Cancelled as stopped:
                if not self._wish:
                    self.status.object = "Stopped; what was finished is shown."
                    if stopped.data is not None:
                        take(stopped.data)
            except Exception as error:
                self._show_problem(error)
            finally:
                self._job = None
        self.stop_button.disabled = True

    def _noticed(self, take: Callable[[Any], None], step: Step) -> None:
        shown = bool(self.pictures["Regret"]._models)
        if self._seen and not shown:  # the page is gone
            self.stop()
        self._seen = shown
        self.status.object = theme.progress_html(step.done, step.message)
        if step.data is not None:
            take(step.data)

    def _show_problem(self, error: BaseException) -> None:
        self.status.object = problem(error).object

    # What is heard ---------------------------------------------------------------------------

    def _on_hello(self, event: Any) -> None:
        if self.comparison is None and self._job is None:
            self._run_or_wait()

    def _on_parameters(self, *events: Any) -> None:
        changed = {event.name for event in events}
        self._draw_closed_forms()
        if changed <= {"regret"}:
            self._draw_regret()
        elif self.pictures["Regret"].hello:
            self._run_or_wait()

    def _run_or_wait(self) -> None:
        if at_once(self.parameters):
            self.run()
        else:
            self.stop()
            self.status.object = "These settings take longer: press Run."

    # What is shown ---------------------------------------------------------------------------

    def _take_runs(self, comparison: Comparison) -> None:
        self.comparison = comparison
        self._draw_regret()
        names = comparison.algorithms
        if self.looked_at.options != names:
            kept = self.looked_at.value if self.looked_at.value in names else names[-1]
            self.looked_at.param.update(options=names, value=kept)
        self._fit_table()
        self.pictures["Visits"].html = str(
            drawings.visits_drawing([first for (first,) in comparison.runs.values() if first])
        )
        self._draw_bounds()

    def _take_scan(self, scan: Scan) -> None:
        self.scan = scan
        self.pictures["Scan"].html = str(drawings.scan_drawing(scan))

    def _take_bandits(self, bandits: Bandits) -> None:
        self.bandits = bandits
        self.pictures["Bandits"].html = str(drawings.bandit_drawing(bandits))

    def _draw_closed_forms(self) -> None:
        self._draw_bonus()
        self._draw_bounds()

    def _draw_regret(self) -> None:
        if self.comparison is None:
            return
        logs = ("Log episodes" in self.log_axes.value, "Log regret" in self.log_axes.value)
        chart = drawings.regret_drawing(self.comparison, self.parameters.regret, *logs)
        notes = [
            early_text(self.comparison, self.parameters.regret), optimism_text(self.comparison)
        ]  # fmt: skip
        style = f"font:13px {theme.FONT};color:{theme.MUTED};margin-top:6px"
        below = "".join(f'<div style="{style}">{html.escape(note)}</div>' for note in notes if note)
        self.pictures["Regret"].html = f"{chart}{below}"

    def _draw_bonus(self) -> None:
        p, (N, share, reached) = self.parameters, self.bonus_sliders.values
        self.pictures["Bonus"].html = str(
            drawings.anatomy(
                sizes_of(p, self.comparison), self.term_algorithm.value, share * p.H**2 / 4,
                10.0**reached, 10.0**N, p.scale,
            )
        )  # fmt: skip

    def _draw_bounds(self) -> None:
        p, c = self.parameters, self.comparison
        sizes = sizes_of(p, c)
        same = c is not None and (c.sizes.S, c.sizes.A, c.sizes.H) == (sizes.S, sizes.A, sizes.H)
        self.pictures["Bounds"].html = str(
            drawings.bounds_drawing(sizes, [c] if same else [], p.regret)
        )

    def _fit_table(self) -> None:
        """The sliders of the microscope span the present run."""
        looked = self._looked_at()
        if looked is None:
            return
        (H, S, _), last = looked.Q.shape, len(looked.snapshots.episodes) - 1
        look, h, s = self.table_sliders.values
        at_end = look >= self.table_sliders.highs[0]
        values = [last if at_end else min(look, last), min(h, H), min(s, S - 1)]
        self.table_sliders.set(highs=[last, H, S - 1], values=values)
        self._draw_table()

    def _draw_table(self) -> None:
        looked = self._looked_at()
        if looked is None:
            return
        look, h, s = (int(v) for v in self.table_sliders.values)
        (H, S, _), last = looked.Q.shape, len(looked.snapshots.episodes) - 1
        self.pictures["Q-table"].html = str(
            drawings.microscope(looked, min(look, last), min(h, H), min(s, S - 1))
        )

    def _looked_at(self) -> Run | None:
        """The run under the microscope, once it has a snapshot."""
        found = self.comparison.runs.get(self.looked_at.value) if self.comparison else None
        begun = found and found[0] and len(found[0].snapshots.episodes)
        return found[0] if begun else None


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new bench that follows `parameters`."""
    made = Bench(parameters)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> str:
    """For reports: one short run of every algorithm, and the bonus taken apart, as HTML."""
    p = study.Parameters(**{**parameters.to_papermill(), "K": min(parameters.K, 10_000)})
    regret = drawings.regret_drawing(run(live_steps(p)), p.regret, True, True)
    variance = parameters.H**2 / 20
    bonus = drawings.anatomy(sizes_of(parameters), variance=variance, scale=parameters.scale)
    return f"{regret}<br>{bonus}"


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of the constants; `pieces` are further arguments of `Explorer`."""
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, live=live, still=still, only=[*LIVE, *rest], **pieces)
