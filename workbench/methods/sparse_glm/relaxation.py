"""The perspective relaxation of a node: accelerated gradient with restart, and safe bounds.

`relax` solves one node, `relaxation_steps` does so a few iterations at a time and shows how far it
is, for pictures and large problems. Whatever it is stopped at, `lower` is a true lower bound: any
dual vector gives one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from workbench.steps import Step, Steps, run

from . import _engine as engine
from . import prox
from .problem import Problem

EVERY = 10  # iterations between two bounds
WORK = 4e7  # products of numbers between two steps: a few hundredths of a second
ENDINGS = ("running", "converged", "pruned", "cannot be pruned", "iteration limit")


@dataclass(frozen=True)
class Node:
    """A part of the search: features that are in (z = 1) and features that are out (0)."""

    inside: tuple[int, ...] = ()
    outside: tuple[int, ...] = ()


ROOT = Node()


@dataclass
class Relaxed:
    """The relaxation of a node as far as it has come.

    value: F of beta (p,); lower: safe bound, attained by w (n,); seconds: CPU time. values, bounds
    and times follow the iterations: values (t,), restarts (t,) bool; bounds (c, 3): iteration,
    seconds, bound at each check.
    """

    problem: Problem
    node: Node
    beta: np.ndarray
    w: np.ndarray
    value: float = np.inf
    lower: float = 0.0
    iterations: int = 0
    seconds: float = 0.0
    ending: str = "running"
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))
    restarts: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    bounds: list[tuple[int, float, float, float]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """value - lower, relative to max(1, value)."""
        return (self.value - self.lower) / max(1.0, abs(self.value))

    @property
    def z(self) -> np.ndarray:
        """(p,) relaxed indicators: 1 for what is in, those that attain g for what is free."""
        status, free, k = statuses(self.problem, self.node)
        z = np.where(status == engine.IN, 1.0, 0.0)
        z[free] = prox.weights(self.beta[free], k)
        return z

    def reached(self, gap: float) -> int | None:
        """Iterations until the gap, relative to the last value, was at most `gap`; None: never."""
        for iteration, _, value, lower in self.bounds:
            if value - lower <= gap * max(1.0, abs(value)):
                return iteration
        return None


def statuses(problem: Problem, node: Node) -> tuple[np.ndarray, np.ndarray, int]:
    """(status (p,) int8, indices of free features, how many of them may be used)."""
    status = np.zeros(problem.p, np.int8)
    status[list(node.inside)] = engine.IN
    status[list(node.outside)] = engine.OUT
    return status, np.flatnonzero(status == engine.FREE), problem.k - len(node.inside)


def dual_bound(
    problem: Problem, w: np.ndarray, node: Node = ROOT, maximize_scale: bool = False
) -> float:
    """D(w), a lower bound of all values in the node, valid for any w (n,) also in rounding.

    w is clipped to where it is finite. maximize_scale: the best D(c w), 0 < c <= 1, by golden
    section (D is concave in c).
    """
    w = np.ascontiguousarray(w, dtype=float)
    if w.shape != problem.y.shape:
        raise ValueError(f"w has shape {w.shape}: needed is {problem.y.shape}")
    if not np.isfinite(w).all():
        return 0.0
    status, free, k = statuses(problem, node)
    w = engine.admissible(problem.kind, w, problem.y)

    def bound(c: float) -> float:
        return engine.lower_bound(
            problem.kind, problem.XT, problem.y, problem.lambda2, problem.M, status, free, k,
            problem.norms, c * w,
        )  # fmt: skip

    best = bound(1.0)
    if maximize_scale:
        golden = (np.sqrt(5) - 1) / 2
        low, high = 0.0, 1.0
        for _ in range(40):
            a, b = high - golden * (high - low), low + golden * (high - low)
            at_a, at_b = bound(a), bound(b)
            best = max(best, at_a, at_b)
            low, high = (low, b) if at_a >= at_b else (a, high)
    return best


def dual_value(problem: Problem, w: np.ndarray) -> float:
    """D(w) of the root as floating point has it, not rounded down; may be negative. For pictures.

    w (n,) is clipped as in `dual_bound`.
    """
    w = engine.admissible(problem.kind, np.ascontiguousarray(w, float), problem.y)
    alpha = -problem.XT @ w / (2 * problem.lambda2)
    penalty = 2 * problem.lambda2 * prox.conjugate(alpha, problem.k, problem.M)
    return 0.0 - engine.conjugate_above(problem.kind, w, problem.y) - penalty


def relaxation_steps(
    problem: Problem,
    node: Node = ROOT,
    beta: np.ndarray | None = None,
    tol: float = 1e-6,
    max_iter: int = 5000,
    restart: bool = True,
    momentum: bool = True,
    target: float = np.inf,
    upper: float = np.inf,
    trace: bool = False,
    chunk: int | None = None,
) -> Steps[Relaxed]:
    """Solve the relaxation of a node from beta (p,), zero if not given; a step now and then.

    Ends at a relative gap of tol, after max_iter iterations, when the bound reaches `target`
    (pruned), or when the value is so far below `upper` that pruning is impossible. trace: keep
    values by iteration. chunk: iterations between two steps.
    """
    kind, p, n = problem.kind, problem.p, problem.n
    status, free, k = statuses(problem, node)
    b = np.zeros(p) if beta is None else np.where(status == engine.OUT, 0.0, beta)
    u = problem.X @ b
    made = Relaxed(problem, node, b, np.zeros(n))
    z, uz = b.copy(), u.copy()
    made.value = engine.loss(kind, u, problem.y) + 2 * problem.lambda2 * engine.regularizer(
        b, status, free, k, problem.M
    )
    numbers = np.array([made.value, 0.0, 1.0, 0.0, 0.0, 0.0])
    values = np.zeros((max_iter if trace else 0, 2))
    chunk = chunk or (EVERY if trace else EVERY * max(1, round(WORK / (EVERY * 2 * n * p))))
    L, norms = problem.L, problem.norms
    reason = engine.GOING
    while reason == engine.GOING and made.iterations < max_iter:
        started = time.thread_time()
        reason = engine.descend(
            kind, problem.X, problem.XT, problem.y, problem.lambda2, problem.M, status, free, k,
            L, norms, b, u, z, uz, made.w, numbers, values, restart, momentum,
            min(chunk, max_iter - made.iterations), EVERY, tol, target, upper,
        )  # fmt: skip
        made.seconds += time.thread_time() - started
        made.value, made.lower = float(numbers[engine.VALUE]), float(numbers[engine.LOWER])
        made.iterations = int(numbers[engine.ITERATION])
        if trace:
            made.bounds.append((made.iterations, made.seconds, made.value, made.lower))
            made.values = values[: made.iterations, 0]
            made.restarts = values[: made.iterations, 1] > 0
        made.ending = ENDINGS[reason]
        yield Step(
            min(1.0, made.iterations / max_iter),
            f"{made.iterations} iterations, gap {made.gap:.1e}", made,
        )  # fmt: skip
    if made.ending == "running":
        made.ending = "iteration limit"
    return made


def relax(problem: Problem, node: Node = ROOT, **options: object) -> Relaxed:
    """The same at one go."""
    return run(relaxation_steps(problem, node, **options))
