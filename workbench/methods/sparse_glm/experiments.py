"""The experiments of the study, each a generator of steps that returns plain arrays.

The prox against a sort, the race on the root relaxation, certificates on problems with known
optima, heuristics against brute force, and sweeps. What the numbers mean for the claims is in
`findings.py`, how they look in `views.py`.
"""

from __future__ import annotations

import itertools
import time
import warnings
from dataclasses import dataclass, field

import numpy as np

from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part

from . import baselines, datasets, prox
from .branch_and_bound import Result, Search
from .certificate import Verification, verify
from .problem import Problem, column_remarks, make_problem
from .relaxation import Relaxed, relax, relaxation_steps
from .supports import Fit, Refits

# Seeds of independent parts are this far apart, so that no two parts share random numbers.
PROX, INSTANCES = 10_000, 20_000
VARIANTS = {
    "restart": {}, "no restart": {"restart": False},
    "no momentum": {"restart": False, "momentum": False},
}  # fmt: skip
GAPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
RACE = {"k": 10, "lambda2": 1.0, "M": 2.0}  # recalled as the paper's setting, unverified
RACE_ITERATIONS = 20_000
LARGE = 1000  # sizes from which one seed is run
SWEPT = {
    "k": (1, 2, 3, 5, 8), "lambda2": (0.3, 1.0, 2.0, 5.0, 10.0), "M": (0.3, 0.6, 1.0, 1.5, 2.0),
}  # fmt: skip
SWEEP_NODES = 150


@dataclass(frozen=True)
class Prox:
    """Fenchel-Young gaps (cases,), relative; and times by size [s], medians.

    prox_seconds: few features may be used, k = 10; half_seconds: half of them; sort_seconds:
    numpy's argsort of the same numbers.
    """

    gaps: np.ndarray
    sizes: np.ndarray
    prox_seconds: np.ndarray
    half_seconds: np.ndarray
    sort_seconds: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """Time of the prox over that of a sort, by size, k = 10."""
        return self.prox_seconds / self.sort_seconds

    @property
    def half_ratios(self) -> np.ndarray:
        """The same for k = p / 2."""
        return self.half_seconds / self.sort_seconds


def prox_steps(p: Parameters, cases: int = 2000) -> Steps[Prox]:
    """Random vectors: is it the prox, and how long does it take beside a sort?"""
    rng = np.random.default_rng(p.seed + PROX)
    gaps = []
    for number in range(cases):
        size = int(rng.integers(2, 60))
        k, M = int(rng.integers(1, size + 1)), 10.0 ** rng.uniform(-1, 1)
        tau, v = 10.0 ** rng.uniform(-2, 2), rng.standard_normal(size)
        b = prox.prox(v, tau, k, M)
        a = (v - b) / tau
        gap = prox.value(b, k, M) + prox.conjugate(a, k, M) - a @ b
        gaps.append(abs(gap) / max(abs(a @ b), 1e-300))
        if number % 500 == 0:
            yield Step(0.3 * number / cases, "Fenchel-Young")
    sizes, medians = [10**power for power in range(3, p.prox_power + 1)], []
    for number, size in enumerate(sizes):
        times: tuple[list[float], ...] = ([], [], [])
        for _ in range(3 if size >= 10**6 else 9):
            v = rng.standard_normal(size)
            inner = max(1, 20_000 // size)
            for kept, action in zip(
                times,
                (
                    lambda v: prox.prox(v, 1.0, 10, 1.0),
                    lambda v: prox.prox(v, 1.0, len(v) // 2, 1.0),
                    np.argsort,
                ),
                strict=True,
            ):
                started = time.thread_time()
                for _ in range(inner):
                    action(v)
                kept.append((time.thread_time() - started) / inner)
        medians.append([np.median(kept) for kept in times])
        yield Step(0.3 + 0.7 * (number + 1) / len(sizes), f"{size:,} numbers")
    return Prox(np.array(gaps), np.array(sizes), *np.array(medians).T)


@dataclass(frozen=True)
class Entry:
    """One race: variants on one data set, and conic solvers where they ran.

    two_products: seconds of X b and X'w, for comparison with an iteration.
    """

    loss: str
    size: int
    seed: int
    runs: dict[str, Relaxed]
    conic: dict[str, baselines.Conic]
    two_products: float

    @property
    def per_iteration(self) -> float:
        """Seconds of an iteration of the restarted method over those of two products."""
        fast = self.runs["restart"]
        return fast.seconds / fast.iterations / self.two_products


Race = list[Entry]


def race_problem(loss: str, size: int, seed: int) -> Problem:
    """Synthetic data of the paper's type with as many columns as rows, k = 10."""
    made = datasets.synthetic(size, size, RACE["k"], loss, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_problem(made.X, made.y, loss, **RACE, name=made.name)


def race_steps(p: Parameters) -> Steps[Race]:
    """Restart, no restart, no momentum and conic solvers on the root relaxation."""
    grid = [
        (loss, size, p.seed + number)
        for size in p.sizes
        for loss in ("linear", "logistic")
        for number in range(p.race_seeds if size < LARGE else 1)
        if size <= LARGE or loss == "linear"
    ]
    found: Race = []
    for number, (loss, size, seed) in enumerate(grid):
        problem = race_problem(loss, size, seed)
        runs, conic, at = {}, {}, number / len(grid)
        for name, options in VARIANTS.items():
            if size > LARGE and name != "restart":
                continue
            runs[name] = yield from part(
                relaxation_steps(problem, max_iter=RACE_ITERATIONS, trace=True, **options),
                at, at, f"{loss} {size}, {name}",
            )  # fmt: skip
        if size in p.conic_sizes and baselines.available("cvxpy"):
            yield Step(at, f"{loss} {size}, Clarabel", found)
            conic["Clarabel"] = baselines.conic_relaxation(problem)
            if p.scs and size == min(p.conic_sizes) and seed == p.seed:
                yield Step(at, f"{loss} {size}, SCS", found)
                conic["SCS"] = baselines.conic_relaxation(problem, "SCS")
        found.append(Entry(loss, size, seed, runs, conic, two_products(problem)))
        yield Step((number + 1) / len(grid), f"{loss} {size}", list(found))
    return found


def two_products(problem: Problem, rounds: int = 15) -> float:
    """Median seconds of X b and X'w together, dense."""
    rng = np.random.default_rng(0)
    b, w = rng.standard_normal(problem.p), rng.standard_normal(problem.n)
    inner = max(1, int(2e6 / problem.X.size))
    times = []
    for _ in range(rounds):
        started = time.thread_time()
        for _ in range(inner):
            np.dot(problem.X, b)
            np.dot(problem.XT, w)
        times.append((time.thread_time() - started) / inner)
    return float(np.median(times))


@dataclass(frozen=True)
class Known:
    """A problem with a known answer: value, support (ties allowed), root value, nodes needed.

    group: the presets that run it: few, most or all. check: "brute force" or how it is known.
    """

    data: str
    k: int
    lambda2: float
    M: float
    optimum: float
    root: float
    nodes: int
    support: tuple[int, ...] | None = None
    group: str = "most"
    check: str = "prototype"
    synthetic: dict[str, object] = field(default_factory=dict)

    def problem(self) -> Problem:
        """The problem itself."""
        options = {"k": self.k, **self.synthetic} if self.data == "synthetic" else {}
        made = datasets.load(self.data, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return make_problem(
                made.X, made.y, made.loss, self.k, self.lambda2, self.M, made.name, made.names
            )


def _known() -> dict[str, Known]:
    brute = {"check": "brute force"}
    big = {"n": 1000, "p": 1000, "loss": "linear"}
    wide = {"n": 2000, "p": 500, "loss": "logistic"}
    largest = {"n": 4000, "p": 4000, "loss": "linear"}
    true = "true support"
    return {
        "diabetes, k 3": Known("diabetes", 3, 1, 2, 230.081033, 214.321453, 11, (2, 3, 8), "few",
                               **brute),
        "diabetes, k 5": Known("diabetes", 5, 1, 2, 217.468542, 213.918062, 13, (1, 2, 3, 6, 8),
                               "few", **brute),
        "breast cancer, k 3": Known("breast_cancer", 3, 5, 1, 135.961295, 131.716822, 34,
                                    (20, 22, 27), "few", **brute),
        "breast cancer, k 3, loose box": Known("breast_cancer", 3, 1, 2, 87.673507, 74.233619, 192,
                                               (13, 20, 27), **brute),
        "breast cancer, k 5": Known("breast_cancer", 5, 2, 1, 88.912614, 84.125137, 170,
                                    (7, 20, 21, 23, 27)),
        "breast cancer, k 10": Known("breast_cancer", 10, 2, 1, 62.335165, 60.771800, 153),
        "digits 3/8, k 5": Known("digits", 5, 1, 1, 48.959528, 40.345183, 145,
                                 (17, 23, 35, 36, 39)),
        "digits 3/8, k 8": Known("digits", 8, 1, 1, 33.869220, 26.522344, 1405, group="all"),
        "linear 1000 x 1000": Known("synthetic", 10, 1, 1.5, 2308.331479, 1583.945156, 46,
                                    tuple(range(0, 1000, 100)), check=true, synthetic=big),
        "logistic 2000 x 500": Known("synthetic", 10, 1, 1.5, 667.518059, 581.436940, 56,
                                     tuple(range(0, 500, 50)), check=true, synthetic=wide),
        "linear 4000 x 4000": Known("synthetic", 10, 1, 1.5, np.nan, np.nan, 20,
                                    tuple(range(0, 4000, 400)), "all", true, largest),
    }  # fmt: skip


KNOWN = _known()
# Where the method reaches its limits: k, lambda2, M, most nodes; the looser box does not close.
LIMITS = {
    "breast cancer, M 1.5": (Known("breast_cancer", 5, 1, 1.5, np.nan, np.nan, 0), 1000),
    "breast cancer, M 2": (Known("breast_cancer", 5, 1, 2, np.nan, np.nan, 0), 235),
    "diabetes3": (Known("diabetes3", 5, 20, 0.4, np.nan, np.nan, 0, group="all"), 3500),
}


@dataclass(frozen=True)
class Case:
    """A certified problem: result, root relaxation, verification, brute force where it ran."""

    known: Known
    result: Result
    root: Relaxed
    verification: Verification
    nbytes: int
    brute: float | None = None

    @property
    def root_gap(self) -> float:
        """What the root relaxation alone leaves open, relative to the optimum."""
        return (self.result.upper - self.root.lower) / self.result.upper


def certify_steps(
    problem: Problem, known: Known, brute: bool = False, **options: object
) -> Steps[Case]:
    """Root relaxation, search, certificate, verification, and brute force if wanted."""
    root = yield from part(relaxation_steps(problem), 0.0, 0.1, "root")
    search = Search(problem, **options)
    result = yield from part(search.steps(), 0.1, 0.9)
    certificate = result.certificate()
    verification = verify(certificate, problem.X, problem.y)
    best = None
    if brute:
        yield Step(0.9, "brute force")
        best = baselines.brute_force(problem).value
    return Case(known, result, root, verification, certificate.nbytes, best)


def cases_steps(p: Parameters) -> Steps[dict[str, Case]]:
    """Certify the problems with known optima that the preset runs, then show the limits."""
    groups = {"few": ("few",), "most": ("few", "most"), "all": ("few", "most", "all")}[p.cases]
    runs = [(name, known, {}) for name, known in KNOWN.items() if known.group in groups]
    if p.cases != "few":
        runs += [(name, known, {"max_nodes": nodes})
                 for name, (known, nodes) in LIMITS.items() if known.group in groups]  # fmt: skip
    found: dict[str, Case] = {}
    options = {"time_limit": p.time_limit, "gap": 1e-4}
    for number, (name, known, more) in enumerate(runs):
        steps = certify_steps(
            known.problem(), known, known.check == "brute force", **options, **more
        )
        at, end = number / len(runs), (number + 1) / len(runs)
        found[name] = yield from part(steps, at, end, name)
        yield Step(end, name, dict(found))
    return found


@dataclass(frozen=True)
class Heuristics:
    """Small random problems: the optimum by brute force, bounds of the search, heuristics.

    brute, upper, lower (n,); values[name] (n,) of each heuristic, refitted in the box.
    """

    brute: np.ndarray
    upper: np.ndarray
    lower: np.ndarray
    valid: np.ndarray
    values: dict[str, np.ndarray]


def small_problem(seed: int) -> Problem:
    """A random problem that brute force solves: n 15-40, p 8-13, k 1-4, both losses."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(15, 41)), int(rng.integers(8, 14))
    X = datasets.standardize(rng.standard_normal((n, p)) + 0.7 * rng.standard_normal((n, 1)))
    y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.4)) + rng.standard_normal(n)
    loss = ("linear", "logistic")[seed % 2]
    y = y - y.mean() if loss == "linear" else np.where(y > np.median(y), 1.0, -1.0)
    k, M = int(rng.integers(1, 5)), float(rng.uniform(0.3, 2.5))
    return make_problem(X, y, loss, k, float(10 ** rng.uniform(-2, np.log10(3))), M)


def heuristics_steps(p: Parameters) -> Steps[Heuristics]:
    """Brute force, the certified search to gap 0, and every heuristic on small problems."""
    rows: list[tuple[float, ...]] = []
    names = [n for n in baselines.HEURISTICS if n != "abess" or baselines.available("abess")]
    values: dict[str, list[float]] = {name: [] for name in names}
    for number in range(p.instances):
        problem = small_problem(p.seed + INSTANCES + number)
        refits = Refits(problem)
        best = baselines.brute_force(problem, refits).value
        search = Search(problem, gap=0.0, time_limit=20.0)
        result = yield from part(search.steps(), number / p.instances, number / p.instances)
        check = verify(result.certificate(), problem.X, problem.y)
        rows.append((best, result.upper, result.lower, float(check.valid)))
        for name in names:
            values[name].append(baselines.HEURISTICS[name](problem, refits).value)
        yield Step((number + 1) / p.instances, f"problem {number + 1} of {p.instances}")
    brute, upper, lower, valid = np.array(rows).T
    return Heuristics(brute, upper, lower, valid > 0, {n: np.array(v) for n, v in values.items()})


@dataclass(frozen=True)
class Point:
    """One problem of a sweep: root gap, nodes, gap proven after them, best value."""

    at: float
    root_gap: float
    nodes: int
    gap: float
    upper: float


Sweep = dict[str, list[Point]]


def sweep_steps(p: Parameters) -> Steps[Sweep]:
    """Root gap and nodes on breast cancer over k, lambda2 and M, the others at 5, 2, 1."""
    made = datasets.breast_cancer()
    base = make_problem(made.X, made.y, made.loss, 5, 2.0, 1.0, made.name, made.names)
    runs = list(itertools.chain(*([(name, at) for at in ats] for name, ats in SWEPT.items())))
    found: Sweep = {name: [] for name in SWEPT}
    for number, (name, at) in enumerate(runs):
        problem = base.with_numbers(**{name: at})
        root = relax(problem)
        steps = Search(problem, max_nodes=SWEEP_NODES, time_limit=p.time_limit).steps()
        done = number / len(runs)
        result = yield from part(steps, done, done, f"{name} {at:g}")
        gap = (result.upper - root.lower) / result.upper
        found[name].append(Point(at, gap, result.nodes, result.gap, result.upper))
        yield Step(
            (number + 1) / len(runs), f"{name} {at:g}", {n: list(v) for n, v in found.items()}
        )
    return found


@dataclass(frozen=True)
class Main:
    """The reader's problem: search, result, root relaxation, heuristics, verification.

    remarks: what makes ties possible, a sentence each.
    """

    problem: Problem
    search: Search
    result: Result
    root: Relaxed
    heuristics: dict[str, Fit]
    verification: Verification
    nbytes: int
    remarks: list[str] = field(default_factory=list)


def main_steps(p: Parameters) -> Steps[Main]:
    """Certify the problem that the hyperparameters describe."""
    problem = p.problem()
    root = yield from part(
        relaxation_steps(problem, tol=p.tol, max_iter=p.max_iter, restart=p.restart,
                         momentum=p.momentum, trace=True),
        0.0, 0.1, "root",
    )  # fmt: skip
    search = p.search(problem)
    result = yield from part(search.steps(), 0.1, 0.9)
    found = {}
    for name, heuristic in baselines.HEURISTICS.items():
        yield Step(0.95, name)
        fit = heuristic(problem, Refits(problem))
        if fit is not None:
            found[name] = fit
    certificate = result.certificate()
    check = verify(certificate, problem.X, problem.y)
    remarks = column_remarks(problem.X)
    return Main(problem, search, result, root, found, check, certificate.nbytes, remarks)
