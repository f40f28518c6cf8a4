"""Learning with a generative model: R1-QL [reconstructed] and its peers, on common random numbers.

At each step one successor is drawn for every pair (s, a); all methods see the same draws. All are
compiled, one call per step schedule; runs over seeds go side by side.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from workbench.numerics import mdp as tables
from workbench.numerics.checks import choice
from workbench.numerics.mdp import MDP, discount
from workbench.steps import Step, Steps, run, together

STEP_RULES = ("harmonic", "rescaled", "poly")
LARGEST_ZAP = 600  # pairs; each step solves a dense system of that size
CHUNK_STEPS = 250  # between two reports of progress


def step_size(rule: str, k: np.ndarray | int, gamma: float) -> np.ndarray | float:
    """lambda_k: "harmonic" 1 / (k + 1), "rescaled" 1 / (1 + (1 - gamma) k), "poly" (k + 1)^-0.7."""
    choice("step_rule", rule, STEP_RULES)
    k = np.asarray(k, float)
    if rule == "harmonic":
        return 1 / (k + 1)
    return 1 / (1 + (1 - gamma) * k) if rule == "rescaled" else (k + 1) ** -0.7


@njit(cache=True, nogil=True)
def _draw(cumulative, uniform, out):
    """Successor of each pair: the first state whose cumulative probability exceeds the number."""
    for pair in range(len(uniform)):
        low, high = 0, cumulative.shape[1] - 1
        while low < high:
            middle = (low + high) // 2
            if cumulative[pair, middle] > uniform[pair]:
                high = middle
            else:
                low = middle + 1
        out[pair] = low


@njit(cache=True, nogil=True)
def _targets(R, gamma, q, successor, delta, following):
    """delta = R + gamma max q(s', .) - q, and the pair (s', greedy action) that follows each."""
    m = R.shape[1]
    flat, reward, change = q.ravel(), R.ravel(), delta.ravel()
    for pair in range(len(successor)):
        first = successor[pair] * m
        best, chosen = flat[first], first
        for other in range(first + 1, first + m):
            if flat[other] > best:
                best, chosen = flat[other], other
        change[pair] = reward[pair] + gamma * best - flat[pair]
        following[pair] = chosen


@njit(cache=True, nogil=True)
def _q_learning(R, gamma, cumulative, uniforms, rates, q, correct, power, d):
    """Q-learning; with `correct` the rank-one correction, with `power` its d is learned."""
    pairs, factor = R.size, gamma / (1 - gamma)
    successor, following = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    delta, arrived = np.empty_like(R), np.empty(pairs)
    flat, change = q.ravel(), delta.ravel()
    for k in range(len(rates)):
        _draw(cumulative, uniforms[k], successor)
        _targets(R, gamma, q, successor, delta, following)
        shift = 0.0
        if correct:
            if power:
                arrived[:] = 0.0
                for pair in range(pairs):
                    arrived[following[pair]] += d[pair]
                total = 0.0
                for pair in range(pairs):
                    d[pair] = (1 - rates[k]) * d[pair] + rates[k] * arrived[pair]
                    total += d[pair]
                for pair in range(pairs):
                    d[pair] /= total
            for pair in range(pairs):
                shift += d[pair] * change[pair]
        for pair in range(pairs):
            flat[pair] += rates[k] * (change[pair] + factor * shift)


@njit(cache=True, nogil=True)
def _speedy(R, gamma, cumulative, uniforms, rates, q, before):
    pairs = R.size
    successor, following = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    now, then = np.empty_like(R), np.empty_like(R)
    for k in range(len(rates)):
        _draw(cumulative, uniforms[k], successor)
        _targets(R, gamma, q, successor, now, following)
        _targets(R, gamma, before, successor, then, following)
        for s in range(R.shape[0]):
            for a in range(R.shape[1]):
                new, old = now[s, a] + q[s, a], then[s, a] + before[s, a]  # the operators
                before[s, a] = q[s, a]
                q[s, a] += rates[k] * (old - q[s, a]) + (1 - rates[k]) * (new - old)


@njit(cache=True, nogil=True)
def _zap(R, gamma, cumulative, uniforms, rates, fast, q, A):
    pairs = R.size
    successor, following = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    delta = np.empty_like(R)
    flat = q.ravel()
    for k in range(len(rates)):
        _draw(cumulative, uniforms[k], successor)
        _targets(R, gamma, q, successor, delta, following)
        A *= 1 - fast[k]
        for pair in range(pairs):
            A[pair, pair] += fast[k]
            A[pair, following[pair]] -= fast[k] * gamma
        flat += rates[k] * np.linalg.solve(A, delta.ravel())


class Learner:
    """One method on one problem: `advance(uniforms, k)` takes steps k, k + 1, ... in place.

    q: (n, m) the present estimate. d: (n * m,) of R1-QL.
    """

    def __init__(
        self,
        mdp: MDP,
        gamma: float,
        kind: str,
        rule: str = "harmonic",
        rates: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        choice("method", kind, KINDS)
        choice("step_rule", rule, STEP_RULES)
        pairs = mdp.n * mdp.m
        if kind == "Zap" and pairs > LARGEST_ZAP:
            seconds = (pairs / 60) ** 3 * 4e-4
            raise ValueError(
                f"Zap Q-learning solves a system of n x m = {pairs} unknowns in each step, about "
                f"{seconds:.2g} s: at most {LARGEST_ZAP} are allowed"
            )
        self.R, self.gamma, self.kind = mdp.R, discount(gamma), kind
        self.rates = rates or partial(step_size, rule, gamma=gamma)
        self.cumulative = cumulative(mdp)
        self.q = np.zeros(mdp.R.shape)
        self.d = np.full(pairs, 1 / pairs)
        self._before, self._A = np.zeros(mdp.R.shape), np.eye(pairs if kind == "Zap" else 1)

    def advance(self, uniforms: np.ndarray, k: int) -> None:
        """Steps k .. k + len(uniforms) - 1 with uniform numbers (steps, n * m)."""
        times = k + np.arange(len(uniforms))
        rates = np.asarray(self.rates(times), float)
        common = (self.R, self.gamma, self.cumulative, uniforms, rates)
        if self.kind == "SQL":
            _speedy(*common, self.q, self._before)
        elif self.kind == "Zap":
            _zap(*common, zap_rate(times), self.q, self._A)
        else:
            correct, power = self.kind != "QL", self.kind == "R1-QL"
            _q_learning(*common, self.q, correct, power, self.d)


KINDS = ("QL", "SQL", "Zap", "R1-QL", "R1-QL (uniform d)")


def zap_rate(k: np.ndarray) -> np.ndarray:
    """Step size of Zap's matrix, (k + 1)^-0.85."""
    return (np.asarray(k) + 1.0) ** -0.85


def cumulative(mdp: MDP) -> np.ndarray:
    """Cumulative transition probabilities (n * m, n), to draw successors from."""
    total = np.cumsum(mdp.dense().rows, axis=1)
    total[:, -1] = np.inf  # a sum of 1 - 1e-16 must not send anyone outside
    return total


# Name: kind of learner, its step sizes (None: those that the reader chose).
METHODS: dict[str, tuple[str, str | None]] = {
    "QL (harmonic)": ("QL", "harmonic"),
    "QL (rescaled)": ("QL", "rescaled"),
    "SQL": ("SQL", "harmonic"),
    "Zap": ("Zap", "harmonic"),
    "R1-QL": ("R1-QL", None),
    "R1-QL (uniform d)": ("R1-QL (uniform d)", None),
}


@dataclass
class Learning:
    """One method over seeds, looked at after `steps` (points,).

    errors (seeds, points): max-norm distance of q from q*. spread (seeds, points): the same after
    the best constant is taken off (half the span). wrong (seeds, points): states whose greedy
    action is not optimal. seconds (seeds,): CPU time of the updates. q (seeds, n, m): the last
    estimates. rule: its step sizes.
    """

    name: str
    rule: str
    steps: np.ndarray
    errors: np.ndarray
    spread: np.ndarray
    wrong: np.ndarray
    seconds: np.ndarray
    q: np.ndarray


def checkpoints(steps: int, points: int = 60) -> np.ndarray:
    """About `points` step counts from 1 to `steps`, evenly spaced in their logarithm."""
    return np.unique(np.geomspace(1, steps, points).round().astype(int))


def learn_steps(
    problems: MDP | Sequence[MDP],
    gamma: float,
    methods: Sequence[str] = tuple(METHODS),
    steps: int = 2000,
    seeds: Sequence[int] = (0,),
    rule: str = "harmonic",
) -> Steps[dict[str, Learning]]:
    """Run learners by name over seeds; all see the same draws of a seed.

    problems: one for each seed (equal shapes), or one for all. rule: step sizes of the R1-QL
    methods. Data of a step: the result so far. Raises ValueError for unknown names and for Zap on
    too many pairs.
    """
    for name in methods:
        choice("method", name, METHODS)
    of_seed = [problems] * len(seeds) if isinstance(problems, MDP) else list(problems)
    at = checkpoints(steps)

    def learners(mdp: MDP) -> dict[str, Learner]:
        return {
            name: Learner(mdp, gamma, METHODS[name][0], METHODS[name][1] or rule)
            for name in methods
        }

    for learner in learners(of_seed[0]).values():  # complains before anything runs
        learner.advance(np.full((1, of_seed[0].R.size), 0.5), 0)  # compiles before the clock runs

    def one(mdp: MDP, seed: int) -> Steps[dict[str, tuple]]:
        optimum, _, _ = tables.policy_iteration(mdp, gamma)
        best = tables.action_values(mdp, optimum, gamma)
        rng, running = np.random.default_rng(seed), learners(mdp)
        rows = {name: [] for name in methods}
        spent = dict.fromkeys(methods, 0.0)

        def seen() -> dict[str, tuple]:
            return {
                name: (np.array(rows[name]), spent[name], running[name].q.copy())
                for name in methods
            }

        for k, until in zip([0, *at[:-1]], at, strict=True):
            for first in range(k, until, CHUNK_STEPS):
                uniforms = rng.random((min(CHUNK_STEPS, until - first), mdp.n * mdp.m))
                for name, learner in running.items():
                    started = time.thread_time()
                    learner.advance(uniforms, first)
                    spent[name] += time.thread_time() - started
                yield Step(first / steps, f"{first} of {steps} steps")
            for name, learner in running.items():
                rows[name].append(_look(learner.q, best))
            yield Step(until / steps, f"{until} of {steps} steps", seen())
        return seen()

    jobs = [partial(one, *pair) for pair in zip(of_seed, seeds, strict=True)]
    names = [f"seed {seed}" for seed in seeds]
    running = together(jobs, os.cpu_count(), names)
    try:
        while True:
            try:
                step = next(running)
            except StopIteration as end:
                return _gathered(methods, rule, at, end.value)
            started = step.data is not None and all(seed is not None for seed in step.data)
            so_far = _gathered(methods, rule, at, step.data) if started else None
            yield Step(step.done, step.message, so_far)
    finally:
        running.close()


def _gathered(
    methods: Sequence[str], rule: str, at: np.ndarray, seeds: Sequence[dict[str, tuple]]
) -> dict[str, Learning]:
    """What is known of all seeds, up to the look that all of them have had."""
    points = min(len(seed[name][0]) for seed in seeds for name in methods)
    result = {}
    for name in methods:
        rows, spent, q = zip(*(seed[name] for seed in seeds), strict=True)
        errors, spread, wrong = np.moveaxis(np.array([r[:points] for r in rows]), -1, 0)
        result[name] = Learning(
            name, METHODS[name][1] or rule, at[:points], errors, spread, wrong, np.array(spent),
            np.array(q),
        )  # fmt: skip
    return result


def coinciding(found: dict[str, Learning]) -> str:
    """Name of the Q-learning that R1-QL equals up to a constant (fact F): of its step sizes."""
    own = found["R1-QL"].rule if "R1-QL" in found else None
    return next((name for name in found if name.startswith("QL ") and found[name].rule == own), "")


def _look(q: np.ndarray, best: np.ndarray) -> tuple[float, float, int]:
    """Error of q (n, m), the same up to a constant, and states with a wrong greedy action."""
    off = q - best
    chosen = best[np.arange(len(q)), q.argmax(1)]
    wrong = chosen < best.max(1) - 1e-9 * max(1.0, np.abs(best).max())
    return np.abs(off).max(), (off.max() - off.min()) / 2, int(wrong.sum())


def learn(
    problems: MDP | Sequence[MDP], gamma: float, *rest: Any, **options: Any
) -> dict[str, Learning]:
    """`learn_steps` with the same arguments, run to the end."""
    return run(learn_steps(problems, gamma, *rest, **options))


def warm_up() -> None:
    """Compile planners and learners into the cache on disk, so that no first call waits."""
    problem = tables.garnet(4, 2, 2)
    v, d = np.zeros(4), np.full(4, 0.25)
    for kind in (problem, problem.sparse()):
        _, policy, _ = tables.bellman_push(kind, v, 0.9, d)
        tables.bellman(kind, v, 0.9)
        tables.push(kind, policy, d)
    learn(problem, 0.9, steps=2)
