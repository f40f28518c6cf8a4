"""What the method is compared with: conic solvers, heuristics without a proof, brute force.

The conic form of the relaxation goes through cvxpy (extra `peers`); abess is optional too. Each
heuristic returns a `Fit`, refitted exactly in the same box, so that only supports are compared.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
import time
import warnings
from dataclasses import dataclass

import numpy as np

from . import _engine as engine
from .problem import Problem
from .supports import Fit, Refits, beam_search

MOST_SUBSETS = 20_000
PATH_POINTS, PATH_ITERATIONS = 40, 150


def available(name: str) -> bool:
    """Whether an optional library is installed."""
    return importlib.util.find_spec(name) is not None


@dataclass(frozen=True)
class Conic:
    """A conic solver's answer: value of the relaxation, seconds as the caller waits and on CPU."""

    solver: str
    value: float
    seconds: float
    cpu_seconds: float
    status: str


def conic_relaxation(problem: Problem, solver: str = "CLARABEL", eps: float = 1e-6) -> Conic:
    """The root relaxation as a second-order (logistic: and exponential) cone program.

    solver: CLARABEL or SCS (to eps). Raises ImportError in one line when cvxpy is absent.
    """
    if not available("cvxpy"):
        raise ImportError("cvxpy is not installed: pip install 'workbench[peers]'")
    import cvxpy as cp

    p = problem.p
    b, z, s = cp.Variable(p), cp.Variable(p), cp.Variable(p)
    u = problem.X @ b
    if problem.loss == "linear":
        f = cp.sum_squares(u - problem.y)
    else:
        f = cp.sum(cp.logistic(cp.multiply(-problem.y, u)))
    rows = cp.vstack([2 * b, s - z])
    rules = [cp.SOC(s + z, rows, axis=0), cp.abs(b) <= problem.M * z, z >= 0, z <= 1,
             cp.sum(z) <= problem.k]  # fmt: skip
    task = cp.Problem(cp.Minimize(f + problem.lambda2 * cp.sum(s)), rules)
    options = {"eps": eps, "max_iters": 200_000} if solver == "SCS" else {}
    started, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        task.solve(solver=solver, **options)
    return Conic(solver, float(task.value), time.perf_counter() - started,
                 time.process_time() - used, task.status)  # fmt: skip


def brute_force(problem: Problem, refits: Refits | None = None) -> Fit:
    """The best of all supports; ValueError when there are more than 20,000."""
    count = math.comb(problem.p, problem.k)
    if count > MOST_SUBSETS:
        raise ValueError(
            f"{count:,} supports of {problem.k} of {problem.p} features: brute force stops at "
            f"{MOST_SUBSETS:,}"
        )
    refits = refits or Refits(problem)
    best = None
    for support in itertools.combinations(range(problem.p), problem.k):
        fit = refits._solve(support)  # not remembered: each is asked for once
        if best is None or fit.value < best.value:
            best = fit
    return best


def greedy(problem: Problem, refits: Refits | None = None) -> Fit:
    """Forward selection: a beam of width 1."""
    return beam_search(refits or Refits(problem), 1, 1)


def lasso_path(problem: Problem, refits: Refits | None = None) -> Fit:
    """The best of the k largest coefficients along the path of l1 penalties, refitted.

    The path is walked by accelerated proximal gradient from the penalty where all are zero.
    """
    refits = refits or Refits(problem)
    X, XT, y, L = problem.X, problem.XT, problem.y, problem.L
    gradient = np.empty(problem.n)
    b, supports = np.zeros(problem.p), set()
    engine.slope(problem.kind, X @ b, y, gradient)
    largest = float(np.abs(XT @ gradient).max())
    if largest == 0:  # nothing is worth using
        return refits(())
    for penalty in np.geomspace(largest, 1e-3 * largest, PATH_POINTS)[1:]:
        a, t = b.copy(), 1.0
        for _ in range(PATH_ITERATIONS):
            engine.slope(problem.kind, X @ a, y, gradient)
            v = a - XT @ gradient / L
            new = np.sign(v) * np.maximum(np.abs(v) - penalty / L, 0)
            t_next = 0.5 * (1 + math.sqrt(1 + 4 * t * t))
            a = new + (t - 1) / t_next * (new - b)
            moved, b, t = np.abs(new - b).max(), new, t_next
            if moved < 1e-6:
                break
        used = np.flatnonzero(b)
        supports.add(tuple(sorted(used[np.argsort(-np.abs(b[used]))[: problem.k]].tolist())))
    return min((refits(support) for support in supports), key=lambda fit: fit.value)


def abess_fit(problem: Problem, refits: Refits | None = None) -> Fit | None:
    """The support that splicing finds (abess), refitted.

    None when abess is not installed or has nothing to choose from: it takes no constant columns,
    and on two rows, where all columns are multiples of each other, it never ends.
    """
    varying = np.flatnonzero(np.ptp(problem.X, axis=0) > 0)
    if not available("abess") or problem.n < 3 or not len(varying):
        return None
    import abess

    kinds = {"linear": abess.LinearRegression, "logistic": abess.LogisticRegression}
    model = kinds[problem.loss](
        path_type="seq", support_size=min(problem.k, len(varying)), fit_intercept=False, alpha=0.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = problem.y if problem.loss == "linear" else (problem.y > 0).astype(int)
        model.fit(problem.X[:, varying], y)
    support = varying[np.flatnonzero(np.ravel(model.coef_))]
    return (refits or Refits(problem))(support[: problem.k])


HEURISTICS = {
    "greedy": greedy,
    "beam 3 x 6": lambda problem, refits=None: beam_search(refits or Refits(problem), 3, 6),
    "lasso path": lasso_path,
    "abess": abess_fit,
}
