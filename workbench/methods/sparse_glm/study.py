"""The study of certified sparse models: hyperparameters, the run, and the claims as measured.

`run(parameters)` is the whole experiment, `steps(parameters)` the same as a generator with
progress; the numerical work itself is in `experiments.py`, imported when a run starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench import results
from workbench.parameters import (
    Boolean,
    Choice,
    Integer,
    Integers,
    Number,
    ParameterError,
    Text,
)
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps

if TYPE_CHECKING:
    from .branch_and_bound import Search
    from .experiments import Case, Heuristics, Main, Prox, Race, Sweep
    from .problem import Problem

FEW_ROWS = 40  # up to which random labels may be of one class only
DATA = ["breast_cancer", "diabetes", "diabetes2", "diabetes3", "digits", "synthetic", "npz"]


class Penalty(Number):
    """lambda2; at zero or below, why that cannot be is said."""

    __slots__ = []

    def hint(self, value: Any) -> str:
        """Why it must be positive."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return "; the perspective bound needs lambda2 > 0" if number and value <= 0 else ""


class Parameters(BaseParameters):
    """Hyperparameters of the problem, of the solver, and of the study."""

    slug = "sparse_glm"

    # fmt: off
    data = Choice("breast_cancer", objects=DATA, group="Problem",
        doc="Table, synthetic data, or a file")
    file = Text("", group="Problem",
        doc="Path of an .npz file with arrays X and y, for the data npz")
    digits = Integers([3, 8], each=(0, 9), bounds=(2, 2), group="Problem",
        doc="The two digits of the data digits")
    loss = Choice("auto", objects=["auto", "linear", "logistic"], group="Problem",
        doc="Loss, auto is what the response asks for, linear for synthetic data")
    k = Integer(5, bounds=(1, 50), softbounds=(1, 15), unit="features", group="Problem",
        doc="Features that may be used, at most the columns of the data")
    lambda2 = Penalty(2.0, bounds=(1e-6, 1e4), softbounds=(0.05, 20), group="Problem",
        doc="Ridge penalty, bounds degenerate as it goes to 0")
    M = Number(1.0, bounds=(1e-3, 1e3), softbounds=(0.05, 3), group="Problem",
        doc="Box, the largest size of a coefficient")
    n = Integer(500, bounds=(10, 20_000), softbounds=(50, 1000), unit="rows", group="Synthetic",
        doc="Rows of synthetic data")
    p = Integer(500, bounds=(2, 20_000), softbounds=(20, 1000), unit="columns", group="Synthetic",
        doc="Columns of synthetic data")
    rho = Number(0.5, bounds=(0, 0.99), group="Synthetic",
        doc="Correlation of neighboring columns")
    snr = Number(5.0, bounds=(0.01, 1000), softbounds=(0.5, 20), group="Synthetic",
        doc="Variance of the signal over that of the noise, linear loss")

    restart = Boolean(True, group="Relaxation",
        doc="Restart the momentum when the objective rises")
    momentum = Boolean(True, group="Relaxation",
        doc="Extrapolate, without it this is proximal gradient")
    tol = Number(1e-6, bounds=(1e-10, 0.1), group="Relaxation",
        doc="Relative gap at which the root relaxation is done")
    max_iter = Integer(5000, bounds=(10, 100_000), softbounds=(100, 10_000), unit="iterations",
        group="Relaxation", doc="Most iterations at the root")
    node_tol = Number(1e-5, bounds=(1e-10, 0.1), group="Relaxation",
        doc="Relative gap at which the relaxation of another node is done")
    node_max_iter = Integer(300, bounds=(10, 100_000), softbounds=(10, 1000), unit="iterations",
        group="Relaxation", doc="Most iterations at another node")

    width = Integer(3, bounds=(1, 50), softbounds=(1, 10), unit="supports", group="Search",
        doc="Supports that the beam search keeps")
    child = Integer(6, bounds=(1, 50), softbounds=(1, 12), unit="features", group="Search",
        doc="Features by which it grows each support")
    gap = Number(1e-4, bounds=(0, 0.5), group="Search",
        doc="Relative gap to prove")
    time_limit = Number(60.0, bounds=(0.1, 36_000), softbounds=(1, 120), unit="s", group="Search",
        doc="Longest search")
    max_nodes = Integer(100_000, bounds=(1, 10_000_000), softbounds=(10, 5000), unit="nodes",
        group="Search", doc="Most nodes of a search")

    sizes = Integers([100, 200, 500], each=(20, 5000), group="Study",
        doc="Rows and columns of the race")
    conic_sizes = Integers([100, 200, 500], each=(20, 2000), empty=True, group="Study",
        doc="Sizes at which Clarabel runs too, if cvxpy is installed")
    scs = Boolean(False, group="Study",
        doc="Let SCS run at the smallest of those sizes too")
    race_seeds = Integer(3, bounds=(1, 10), unit="seeds", group="Study",
        doc="Data sets of each size in the race, one from 1,000 on")
    prox_power = Integer(5, bounds=(3, 6), unit="powers of ten", group="Study",
        doc="Largest size at which the prox is timed")
    cases = Choice("most", objects=["few", "most", "all"], group="Study",
        doc="Problems with known optima to certify, all takes minutes")
    instances = Integer(20, bounds=(4, 200), unit="problems", group="Study",
        doc="Small random problems that brute force checks")
    sweeps = Boolean(True, group="Study",
        doc="Measure root gap and nodes over k, lambda2 and M")

    presets = {
        "quick": {
            "k": 3, "lambda2": 5.0, "sizes": [100, 200], "conic_sizes": [100], "race_seeds": 1,
            "prox_power": 4, "cases": "few", "instances": 8, "sweeps": False, "time_limit": 10.0,
        },
        "default": {},
        "full": {
            "sizes": [100, 200, 500, 1000, 2000, 4000], "conic_sizes": [100, 200, 500, 1000],
            "scs": True, "prox_power": 6, "cases": "all", "instances": 60, "time_limit": 120.0,
        },
    }
    # fmt: on

    def check(self) -> None:
        """The data npz needs a file that serves, two different digits, synthetic data k columns."""
        if self.data == "npz" and not self.file:
            raise ParameterError("data = 'npz' needs file = the path of an .npz with X and y")
        if self.digits[0] == self.digits[1]:
            raise ParameterError(f"digits = {self.digits}: two different ones are needed")
        columns = {"diabetes": 10, "breast_cancer": 30, "synthetic": self.p}
        if self.k > columns.get(self.data, self.k):
            raise ParameterError(
                f"k = {self.k}: allowed are 1 to the {columns[self.data]} columns of {self.data}"
            )
        if self.loss == "logistic" and self.data.startswith("diabetes"):
            raise ParameterError(f"loss = 'logistic': {self.data} has a continuous response")
        if self.data == "npz":
            self._check_problem(f"file = '{self.file}' does not serve")
        elif self.data == "synthetic" and self.n * self.p > 1e7:
            self._check_memory()
        elif self.data == "synthetic" and self.loss == "logistic" and self.n <= FEW_ROWS:
            self._check_problem(f"n = {self.n}, seed = {self.seed}")

    def _check_problem(self, what: str) -> None:
        try:
            made = self.problem()
            if not made.y.any():
                raise ValueError("y is constant: there is nothing to explain")
            if not made.X.any():
                raise ValueError("all columns of X are constant")
        except ValueError as error:
            raise ParameterError(f"{what}: {error}") from None

    def _check_memory(self) -> None:
        import psutil

        from .problem import fits

        try:
            fits(self.n * self.p, psutil.virtual_memory().available)
        except ValueError as error:
            raise ParameterError(f"n = {self.n}, p = {self.p}: {error}") from None

    def problem(self) -> Problem:
        """The problem that they describe; ValueError in one line when a file does not fit."""
        import warnings

        from . import datasets
        from .problem import make_problem

        made = datasets.load(
            self.data, loss=None if self.loss == "auto" else self.loss, n=self.n, p=self.p,
            k=self.k, rho=self.rho, snr=self.snr, digits_pair=self.digits, file=self.file,
            seed=self.seed,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_problem(
                made.X, made.y, made.loss, self.k, self.lambda2, self.M, made.name, made.names
            )

    def search(self, problem: Problem) -> Search:
        """A search on a problem with their options."""
        from .branch_and_bound import Search

        return Search(
            problem, gap=self.gap, time_limit=self.time_limit, max_nodes=self.max_nodes,
            width=self.width, child=self.child, tol=self.tol, max_iter=self.max_iter,
            node_tol=self.node_tol, node_max_iter=self.node_max_iter, restart=self.restart,
            momentum=self.momentum,
        )  # fmt: skip


@dataclass
class SparseStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims."""

    prox: Prox | None = None
    main: Main | None = None
    race: Race | None = None
    heuristics: Heuristics | None = None
    cases: dict[str, Case] | None = None
    sweep: Sweep | None = None


def run(parameters: Parameters | None = None, progress: bool = True) -> SparseStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("sparse GLM study", made, findings, progress)


def steps(p: Parameters) -> Steps[SparseStudy]:
    """The study as steps; data of a step: the study so far, with claims on what is finished."""
    p.check()
    study = SparseStudy(p, complete=False)
    yield Step(0.0, "compiling (first run only)", study)

    from threadpoolctl import threadpool_limits

    from . import experiments, findings
    from .branch_and_bound import warm_up

    warm_up()
    heavy = {"few": 0.3, "most": 3, "all": 20}[p.cases]
    plan: list[tuple[str, float, Any]] = [
        ("main", 1, partial(experiments.main_steps, p)),
        ("prox", 0.5, partial(experiments.prox_steps, p)),
        ("race", 0.2 * len(p.sizes) * p.race_seeds, partial(experiments.race_steps, p)),
        ("heuristics", 0.3, partial(experiments.heuristics_steps, p)),
        ("cases", heavy, partial(experiments.cases_steps, p)),
    ]
    if p.sweeps:
        plan.append(("sweep", 2, partial(experiments.sweep_steps, p)))
    # One thread: times are those of one core, and small products gain nothing from two.
    with threadpool_limits(1, "blas"):
        return (yield from results.plan_steps(study, plan, findings))
