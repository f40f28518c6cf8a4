"""The experiments of the study, each a generator of steps that returns plain arrays.

One MDP under the planners, the exact facts on random MDPs, sweeps over discount and branching,
failure modes and real networks, and learning. What the numbers mean for the claims is in
`findings.py`, how they look in `views.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence

from workbench.numerics import mdp as tables
from workbench.numerics.mdp import MDP
from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part

from . import learning
from .planning import (
    PLANNERS,
    Plan,
    bracket,
    error_bound,
    error_matrix,
    extrapolated,
    growing,
    optimal_actions,
    rank_one_value_iteration,
    value_iteration,
)

# Seeds of independent parts are this far apart, so that no two parts share random numbers.
RATES, FACTS, LEARNING = 10_000, 20_000, 30_000
MOST = 5_000  # iterations; longer tails of VI are extrapolated
KEPT = 80  # first iterates whose values are kept for pictures
BRANCHING, RATE_STATES = (2, 3, 5, 10, 20, 50), 100
RATE_GAMMA = 0.9  # near 1, rounding reaches into the range of errors
RATE_RANGE = (1e-11, 1e-3)  # errors between which the local rate is fitted
SWEPT = ("VI", "anchored VI", "NVI", "AVI-1", "AVI-5", "R1-VI", "R1-VI (uniform d)", "midpoint",
         "MPI-20", "PI")  # fmt: skip
SLOWEST = ("PI", "R1-VI", "AVI-5", "midpoint", "R1-VI (uniform d)", "MPI-20", "AVI-1", "NVI",
           "anchored VI", "VI")  # fmt: skip
MANY, LEADING = 600, 30  # states for which all eigenvalues take seconds; how many are found then
COMPUTED = 150  # states up to which the spectrum of R1-VI's errors takes 10 ms at most
SLOW = 0.995  # above this discount, the slow planners are left out of the sweep
SHORT = 1_500  # iterations there
FAST = ("VI", "AVI-5", "R1-VI", "R1-VI (uniform d)", "midpoint", "MPI-20", "PI")
FEW = 30  # states of the MDPs of facts D, equal rows of E, and F, which need dense tables


def problem(p: Parameters) -> MDP:
    """The MDP that the hyperparameters describe."""
    return tables.teleport(without_teleport(p), p.teleport)


def without_teleport(p: Parameters) -> MDP:
    """The same before any probability is given to a uniform draw."""
    if p.family == "npz":
        return own_problem(p.file)
    if p.family == "garnet":
        return tables.garnet(p.n, p.m, p.b, p.seed)
    if p.family == "graph6":
        return tables.graph6()
    if p.family in tables.NETWORKS:
        return tables.network(p.family)
    return tables.gymnasium_table(p.family, p.closure)


def own_problem(file: str) -> MDP:
    """The MDP of an .npz file, read again when it has changed; ValueError in one line."""
    path = Path(file).expanduser()
    return _read(file, path.stat().st_mtime_ns if path.is_file() else 0)


@lru_cache(maxsize=1)
def _read(file: str, changed: int) -> MDP:
    return tables.load_npz(file)


@dataclass(frozen=True)
class Solved:
    """An MDP with its exact solution: optimum (n,), policy (n,), best (n, m) optimal actions."""

    mdp: MDP
    gamma: float
    optimum: np.ndarray
    policy: np.ndarray
    best: np.ndarray

    @cached_property
    def chain(self) -> np.ndarray:
        """(n, n) transition matrix of the optimal policy."""
        P, _ = tables.chain(self.mdp, self.policy)
        return P.toarray() if self.mdp.is_sparse else P

    @cached_property
    def eigenvalues(self) -> np.ndarray:
        """Of that chain, (n,) complex, the first is 1; above `MANY` states the leading ones."""
        try:
            return tables.eigenvalues(self.chain, LEADING if self.mdp.n > MANY else None)
        except ArpackNoConvergence:  # a long cycle, say: very many of equal modulus
            return tables.eigenvalues(self.chain)

    @cached_property
    def stationary(self) -> np.ndarray:
        """(n,) stationary distribution of that chain."""
        return tables.stationary_distribution(self.chain)

    @property
    def computed(self) -> bool:
        """Whether `error_eigenvalues` are computed, not taken from fact D."""
        return self.mdp.n <= COMPUTED

    def error_eigenvalues(self, d: np.ndarray) -> np.ndarray:
        """Of R1-VI's error matrix with d (n,), complex; those of fact D above `COMPUTED` states."""
        if not self.computed:
            return np.r_[0, self.gamma * self.eigenvalues[1:]]
        return tables.eigenvalues(error_matrix(self.chain, d, self.gamma))

    @property
    def rate(self) -> float:
        """gamma |lambda_2|."""
        return self.gamma * float(abs(self.eigenvalues[1])) if self.mdp.n > 1 else 0.0

    def growing(
        self, name: str, tolerance: float, p: Parameters | None = None, **options: Any
    ) -> Iterator[Plan]:
        """A planner by name from v = 0; R1-VI with the d of `p`. The tail of VI is extrapolated."""
        more = {"power_steps": p.power_steps, "d_mode": p.d_mode} if p and name == "R1-VI" else {}
        planner = PLANNERS[name](self.mdp, self.gamma, np.zeros(self.mdp.n), **more)
        options = {"most": MOST, **options}
        for found in growing(
            planner, self.optimum, self.best, name=name, tolerance=tolerance, **options
        ):
            ended = name == "VI" and len(found.errors) > options["most"]
            yield extrapolated(found, self.gamma, tolerance) if ended else found

    def follow(self, name: str, tolerance: float, **options: Any) -> Plan:
        """`growing` with the same arguments, run to the end."""
        *_, last = self.growing(name, tolerance, **options)
        return last


def solve(mdp: MDP, gamma: float) -> Solved:
    """Solve an MDP exactly by policy iteration."""
    optimum, policy, _ = tables.policy_iteration(mdp, gamma)
    return Solved(mdp, gamma, optimum, policy, optimal_actions(mdp, optimum, gamma))


@dataclass
class Comparison:
    """All chosen planners on one MDP: plans by name; low, high (k, n): MacQueen's bracket."""

    solved: Solved
    plans: dict[str, Plan]
    low: np.ndarray
    high: np.ndarray


def comparison_steps(p: Parameters) -> Steps[Comparison]:
    """The reader's own MDP under the chosen planners, from v = 0; data: the comparison so far."""
    yield Step(0.0, "exact solution")
    solved = solve(problem(p), p.gamma)
    made = Comparison(solved, {}, *brackets(solved))
    yield from curves_steps(made, p)
    return made


def brackets(solved: Solved, iterates: int = KEPT) -> tuple[np.ndarray, np.ndarray]:
    """MacQueen's bounds low, high (iterates - 1, n) from value iteration, for k = 1, 2, ..."""
    plain = value_iteration(solved.mdp, solved.gamma, np.zeros(solved.mdp.n))
    values = [iterate.value for iterate in itertools.islice(plain, iterates)]
    bounds = [bracket(*pair, solved.gamma) for pair in itertools.pairwise(values)]
    low, high = (np.array(side) for side in zip(*bounds, strict=True))
    return low, high


def curves_steps(made: Comparison, p: Parameters) -> Steps[None]:
    """Fill in the curves of the chosen planners, those that are slow last."""
    names = sorted(p.methods, key=SLOWEST.index)
    for number, name in enumerate(names):
        beyond = 10 if name == "R1-VI" else 0
        for so_far in made.solved.growing(name, p.tol, p, keep=KEPT, beyond=beyond):
            made.plans[name] = so_far
            share = min(1.0, len(so_far.errors) / MOST)
            yield Step(
                (number + share) / len(names), f"{name}, {len(so_far.errors) - 1} iterations", made
            )
    made.plans = {name: made.plans[name] for name in p.methods}


@dataclass(frozen=True)
class Facts:
    """The exact facts on random MDPs, one value for each.

    span: greatest spread of R1-VI minus VI over iterates, relative to the value (fact A, several
    choices of d). outside: values outside MacQueen's bracket (B). above: errors above their bound
    (C). deflation: coefficients of the characteristic polynomial of R1-VI's error matrix for the
    optimal policy and a random d, minus those with the roots 0 and gamma lambda_i, greatest (D).
    one_step: error after one step from v = 0 with constant rewards, two_step: after two steps with
    equal rows (E), both relative. shift: spread of R1-QL minus QL, relative (F).
    """

    span: np.ndarray
    outside: np.ndarray
    above: np.ndarray
    deflation: np.ndarray
    one_step: np.ndarray
    two_step: np.ndarray
    shift: np.ndarray


def facts_steps(p: Parameters, iterates: int = 60) -> Steps[Facts]:
    """Check facts A to F on random MDPs for each seed, at the reader's discount."""
    rows = []
    for number in range(p.seeds):
        seed = p.seed + FACTS + number
        rng = np.random.default_rng(seed)
        mdp = tables.garnet(p.n, p.m, p.b, seed)
        small = tables.garnet(min(p.n, FEW), p.m, min(p.b, FEW), seed)
        rows.append((*_facts(mdp, p.gamma, rng, iterates), *_small_facts(small, p.gamma, rng)))
        yield Step((number + 1) / p.seeds, f"MDP {number + 1} of {p.seeds}")
    return Facts(*np.array(rows, float).T)


def _facts(mdp: MDP, gamma: float, rng: np.random.Generator, iterates: int) -> tuple[float, ...]:
    """span, outside, above of `Facts`."""
    n, start = mdp.n, np.zeros(mdp.n)
    solved = solve(mdp, gamma)
    plain = _values(value_iteration(mdp, gamma, start), iterates)
    fast = {
        mode: _values(rank_one_value_iteration(mdp, gamma, start, **options), iterates)
        for mode, options in {
            "power": {}, "uniform": {"d_mode": "uniform"}, "point": {"d_mode": "point"},
            "random": {"power_steps": 0, "d": rng.dirichlet(np.ones(n))},
        }.items()
    }  # fmt: skip
    scale = max(1.0, np.abs(solved.optimum).max())
    span = max(np.ptp(values - plain, axis=1).max() for values in fast.values()) / scale
    slack, outside, above = 1e-12 * scale, 0, 0
    for k in range(1, iterates):
        low, high = bracket(plain[k - 1], plain[k], gamma)
        for value in (solved.optimum, fast["power"][k]):
            outside += int(((value < low - slack) | (value > high + slack)).sum())
        error = np.abs(fast["power"][k] - solved.optimum).max()
        above += int(error > error_bound(plain[k - 1], plain[k], gamma) + slack)
    return span, outside, above


def _small_facts(mdp: MDP, gamma: float, rng: np.random.Generator) -> tuple[float, ...]:
    """deflation, one_step, two_step, shift of `Facts`."""
    n, start = mdp.n, np.zeros(mdp.n)
    solved = solve(mdp, gamma)
    # Coefficients, since the roots themselves may be multiple, and then hardly determined.
    M = error_matrix(solved.chain, rng.dirichlet(np.ones(n)), gamma)
    roots = np.r_[0, gamma * solved.eigenvalues[1:]]
    deflation = np.abs(np.poly(np.linalg.eigvals(M)) - np.poly(roots)).max()
    c = rng.uniform(-1, 1)
    constant = MDP(mdp.P, np.full(mdp.R.shape, c))
    after_one = _values(rank_one_value_iteration(constant, gamma, start), 2)[1]
    one = np.abs(after_one * (1 - gamma) / c - 1).max()
    row = rng.dirichlet(np.ones(n))
    same = MDP(np.broadcast_to(row, (n, mdp.m, n)), mdp.R)
    after_two = _values(rank_one_value_iteration(same, gamma, start), 3)[2]
    value = solve(same, gamma).optimum
    two = np.abs(after_two - value).max() / max(1.0, np.abs(value).max())
    return deflation, one, two, _shift(mdp, gamma, rng)


def _values(planner, count: int) -> np.ndarray:
    return np.array([iterate.value for iterate in itertools.islice(planner, count)])


def _shift(mdp: MDP, gamma: float, rng: np.random.Generator, steps: int = 100) -> float:
    uniforms = rng.random((steps, mdp.n * mdp.m))
    plain, fast = (learning.Learner(mdp, gamma, kind) for kind in ("QL", "R1-QL"))
    for learner in (plain, fast):
        learner.advance(uniforms, 0)
    return float(np.ptp(fast.q - plain.q) / max(1.0, np.abs(fast.q).max()))


@dataclass(frozen=True)
class Sweep:
    """Iterations to the tolerance on Garnets: iterations[gamma][name] (seeds,), nan: not reached.

    extrapolated: (gamma, name) whose numbers are extrapolated. branching (B,), fitted (B,) and
    predicted (B,): the local rate of R1-VI from a fit of its errors, and gamma |lambda_2|, both at
    the discount `RATE_GAMMA`.
    """

    iterations: dict[float, dict[str, np.ndarray]]
    extrapolated: set[tuple[float, str]]
    branching: np.ndarray
    fitted: np.ndarray
    predicted: np.ndarray


def sweep_steps(p: Parameters) -> Steps[Sweep]:
    """Every planner on a Garnet for each seed and discount; then the local rate over branching."""
    found: dict[float, dict[str, np.ndarray]] = {}
    tails: set[tuple[float, str]] = set()
    share = 0.9 / len(p.gammas)
    for number, gamma in enumerate(p.gammas):
        names = SWEPT if gamma <= SLOW else FAST
        rows = {name: [] for name in names}
        for index in range(p.seeds):
            solved = solve(tables.garnet(p.n, p.m, p.b, p.seed + index), gamma)
            for name in names:
                one = solved.follow(name, p.tol, most=longest(gamma))
                rows[name].append(np.nan if one.iterations is None else one.iterations)
                if one.extrapolated:
                    tails.add((gamma, name))
            done = share * (number + (index + 1) / p.seeds)
            yield Step(done, f"discount {gamma:g}, MDP {index + 1} of {p.seeds}")
        found[gamma] = {name: np.array(values, float) for name, values in rows.items()}
    branching = np.array(BRANCHING)
    rates = []
    for number, b in enumerate(BRANCHING):
        solved = solve(tables.garnet(RATE_STATES, 5, b, p.seed + RATES), RATE_GAMMA)
        rates.append((fitted_rate(solved), solved.rate))
        yield Step(0.9 + 0.1 * (number + 1) / len(branching), f"local rate, {b} successors")
    fitted, predicted = np.array(rates).T
    return Sweep(found, tails, branching, fitted, predicted)


def longest(gamma: float) -> int:
    """Iterations after which a planner of the sweep is given up."""
    return SHORT if gamma > SLOW else MOST


def rounding(gamma: float) -> float:
    """About the error that rounding leaves in R1-VI's values when rewards are at most 1."""
    return np.finfo(float).eps / (1 - gamma) ** 2


def fitted_rate(solved: Solved) -> float:
    """Geometric rate of R1-VI's error between the limits of `RATE_RANGE`."""
    found = solved.follow("R1-VI", RATE_RANGE[0])
    low, high = RATE_RANGE
    k = np.flatnonzero((found.errors > low) & (found.errors < high))
    if len(k) < 2:
        return np.nan
    return float(np.exp(np.polyfit(k, np.log(found.errors[k]), 1)[0]))


@dataclass(frozen=True)
class Case:
    """One named MDP: iterations by planner (nan: not reached within `MOST`) and |lambda_2|.

    allowed: iterations of R1-VI after which 2 gamma^k / (1 - gamma) max |T v_0 - v_0|, which fact C
    and the paper's theorem guarantee to bound its error, is at most the tolerance.
    """

    title: str
    gamma: float
    iterations: dict[str, float]
    second: float
    allowed: float = np.nan


FAMILIES = {
    "frozenlake8 absorbing": 0.99, "frozenlake8 restart": 0.99, "cliff restart": 0.99,
    "karate": 0.99, "lesmis": 0.99, "graph6": 0.99,
}  # fmt: skip
MORE_FAMILIES = {
    "frozenlake4 absorbing": 0.99, "frozenlake4 restart": 0.99, "cliff absorbing": 0.99,
    "taxi restart": 0.99, "taxi absorbing": 0.99, "garnet500": 0.99,
}  # fmt: skip
CASE_PLANNERS = SWEPT


def named(key: str) -> MDP:
    """The MDP of a key of `FAMILIES`: a network, the small graph, or a table and its closure."""
    if key == "graph6":
        return tables.graph6()
    if key == "garnet500":
        return tables.garnet(500, 10, 10)
    if key in tables.NETWORKS:
        return tables.network(key)
    return tables.gymnasium_table(*key.split())


def family_steps(p: Parameters) -> Steps[dict[str, Case]]:
    """Failure modes and real networks; by key, and "graph6 at .9" where Anderson wins."""
    keys = {**FAMILIES, **(MORE_FAMILIES if p.all_families else {})}
    runs = [(key, key, gamma) for key, gamma in keys.items()] + [("graph6 at .9", "graph6", 0.9)]
    found: dict[str, Case] = {}
    for number, (label, key, gamma) in enumerate(runs):
        yield Step(number / len(runs), label, dict(found))
        solved = solve(named(key), gamma)
        iterations = {}
        for name in CASE_PLANNERS:
            one = solved.follow(name, p.tol)
            iterations[name] = np.nan if one.iterations is None else float(one.iterations)
            yield Step(number / len(runs), f"{label}, {name}")
        second = abs(solved.eigenvalues[1])
        change = np.abs(solved.mdp.R.max(1)).max()  # T v_0 - v_0 for v_0 = 0
        allowed = np.ceil(np.log(2 * change / (1 - gamma) / p.tol) / -np.log(gamma))
        found[label] = Case(solved.mdp.name, gamma, iterations, second, float(allowed))
    return found


def learning_steps(p: Parameters) -> Steps[dict[tuple[str, float], dict[str, learning.Learning]]]:
    """All learners on Garnet(20, 3, 5), one for each seed, and on the graph of six nodes."""
    seeds = [p.seed + LEARNING + number for number in range(p.ql_seeds)]
    garnets = [tables.garnet(20, 3, 5, seed) for seed in seeds]
    problems: dict[str, MDP | Sequence[MDP]] = {"garnet": garnets}
    if p.families:
        problems["graph6"] = tables.graph6()
    runs = list(itertools.product(problems, p.ql_gammas))
    found = {}
    for number, (name, gamma) in enumerate(runs):
        steps = learning.learn_steps(
            problems[name], gamma, steps=p.ql_steps, seeds=seeds, rule=p.step_rule
        )
        at, end = number / len(runs), (number + 1) / len(runs)

        def so_far(partial: dict[str, learning.Learning], key: tuple = (name, gamma)) -> dict:
            return {**found, key: partial}

        found[name, gamma] = yield from part(
            steps, at, end, f"{name}, discount {gamma:g}", data=so_far
        )
        yield Step(end, f"{name}, discount {gamma:g}", dict(found))
    return found
