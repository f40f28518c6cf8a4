"""The study of R1-VI: its hyperparameters, the run, and the paper's claims as measured.

`run(parameters)` is the whole experiment, `steps(parameters)` the same as a generator with
progress; the numerical work itself is in `experiments.py`, imported when a run starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench import results
from workbench.numerics.checks import AVERAGE_REWARD
from workbench.parameters import (
    Boolean,
    Choice,
    Choices,
    Integer,
    Number,
    Numbers,
    ParameterError,
    Text,
)
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps

if TYPE_CHECKING:
    from .experiments import Case, Comparison, Facts, Sweep
    from .learning import Learning

FAMILIES = ["garnet", "graph6", "karate", "lesmis", "frozenlake4", "frozenlake8", "cliff", "taxi",
            "npz"]  # fmt: skip
METHODS = ["VI", "R1-VI", "R1-VI (uniform d)", "midpoint", "NVI", "AVI-1", "AVI-5", "anchored VI",
           "MPI-20", "PI"]  # fmt: skip


class Discount(Number):
    """A discount; from 1 on, where the correction has no meaning, what to use instead is said."""

    __slots__ = []

    def hint(self, value: Any) -> str:
        """What there is for the average reward."""
        return f"; {AVERAGE_REWARD}" if isinstance(value, float) and value >= 1 else ""


class Parameters(BaseParameters):
    """Hyperparameters of the MDPs, of the planners and learners, and of the study."""

    slug = "rank_one_vi"

    # fmt: off
    family = Choice("garnet", objects=FAMILIES, group="Problem",
        doc="MDP to plan in, random, a graph, a network, a Gymnasium table, or a file")
    closure = Choice("restart", objects=["restart", "absorbing"], group="Problem",
        doc="What follows a terminal state of a Gymnasium table")
    file = Text("", group="Problem",
        doc="Path of an .npz file with arrays P and R, for the family npz")
    n = Integer(100, bounds=(2, 2000), softbounds=(2, 300), unit="states", group="Problem",
        doc="States of a Garnet")
    m = Integer(5, bounds=(1, 20), unit="actions", group="Problem",
        doc="Actions of a Garnet")
    b = Integer(10, bounds=(1, 2000), softbounds=(1, 50), unit="states", group="Problem",
        doc="Possible successors of each state and action of a Garnet, at most n")
    gamma = Discount(0.99, bounds=(0.5, 0.9999), group="Problem",
        doc="Discount, below 1, for the average reward use relative value iteration")
    teleport = Number(0.0, bounds=(0, 1), group="Problem",
        doc="Probability that the next state is drawn uniformly instead")

    methods = Choices(["VI", "R1-VI", "midpoint", "NVI", "AVI-5", "PI"], objects=METHODS,
        group="Planning", doc="Planners to compare")
    power_steps = Integer(1, bounds=(0, 50), unit="steps", group="Planning",
        doc="Steps of the power method in each iteration of R1-VI, 0 freezes d")
    d_mode = Choice("power", objects=["power", "uniform", "exact", "point"], group="Planning",
        doc="Distribution d of R1-VI, tracked, uniform, stationary, or all on state 0")
    tol = Number(1e-6, bounds=(1e-12, 0.1), group="Planning",
        doc="Greatest distance from the optimal value at which a planner is done")

    seeds = Integer(10, bounds=(1, 50), unit="MDPs", group="Sweep",
        doc="Garnets in the sweep over discounts, and random MDPs for the exact facts")
    gammas = Numbers([0.9, 0.99, 0.999], each=(0.5, 0.9999), group="Sweep",
        doc="Discounts of the sweep")
    families = Boolean(True, group="Sweep",
        doc="Run the failure modes and the real networks too")
    all_families = Boolean(False, group="Sweep",
        doc="Run every Gymnasium table and a Garnet of 500 states too")

    ql_steps = Integer(2000, bounds=(100, 50000), unit="steps", group="Learning",
        doc="Synchronous steps of the learners")
    ql_seeds = Integer(20, bounds=(1, 50), unit="seeds", group="Learning",
        doc="Repetitions of learning, each with a Garnet of its own")
    ql_gammas = Numbers([0.95, 0.99], each=(0.5, 0.9999), group="Learning",
        doc="Discounts of learning")
    step_rule = Choice("harmonic", objects=["harmonic", "rescaled", "poly"], group="Learning",
        doc="Step sizes of R1-QL")

    presets = {
        "quick": {
            "n": 50, "gammas": [0.9, 0.99], "seeds": 3, "families": False,
            "ql_steps": 500, "ql_seeds": 3, "ql_gammas": [0.95],
        },
        "default": {},
        "full": {
            "seeds": 20, "all_families": True, "ql_steps": 10_000,
            "ql_gammas": [0.9, 0.95, 0.99],
        },
    }
    # fmt: on

    def check(self) -> None:
        """Successors must exist, and the family npz needs a file that holds an MDP."""
        if self.b > self.n:
            raise ParameterError(f"b = {self.b} successors: allowed are 1 to n = {self.n}")
        if self.family == "npz" and not self.file:
            raise ParameterError("family = 'npz' needs file = the path of an .npz with P and R")
        if self.family == "npz":
            from .experiments import own_problem

            try:
                own_problem(self.file)
            except ValueError as error:
                raise ParameterError(str(error)) from None


@dataclass
class RankOneStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims."""

    comparison: Comparison | None = None
    facts: Facts | None = None
    sweep: Sweep | None = None
    cases: dict[str, Case] | None = None
    learning: dict[tuple[str, float], dict[str, Learning]] | None = None


def run(parameters: Parameters | None = None, progress: bool = True) -> RankOneStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("R1-VI study", made, findings, progress)


def steps(p: Parameters) -> Steps[RankOneStudy]:
    """The study as steps; data of a step: the study so far, with claims on what is finished."""
    p.check()
    study = RankOneStudy(p, complete=False)
    yield Step(0.0, "loading", study)

    from threadpoolctl import threadpool_limits

    from . import experiments, findings

    plan: list[tuple[str, float, Any]] = [
        ("comparison", 1, partial(experiments.comparison_steps, p)),
        ("facts", 1, partial(experiments.facts_steps, p)),
        ("sweep", 4, partial(experiments.sweep_steps, p)),
        ("learning", 4, partial(experiments.learning_steps, p)),
    ]
    if p.families:
        plan.insert(3, ("cases", 3, partial(experiments.family_steps, p)))
    # Products are small: two threads would only wait for each other on a busy machine.
    with threadpool_limits(1, "blas"):
        return (yield from results.plan_steps(study, plan, findings))
