"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

import itertools

import numpy as np

from workbench.exercises import Exercise
from workbench.numerics import mdp as tables

from . import planning


def _problems(count: int = 3):
    for seed in range(count):
        yield tables.garnet(12, 3, 4, seed), (0.6, 0.9, 0.99)[seed]


def _one_step(answer) -> None:
    rng = np.random.default_rng(1)
    for problem, gamma in _problems():
        v, d = rng.normal(size=problem.n), rng.dirichlet(np.ones(problem.n))
        given = answer(problem.P.copy(), problem.R.copy(), gamma, v.copy(), d.copy())
        assert isinstance(given, tuple | list) and len(given) == 2, (
            "return the pair: next v, next d"
        )
        new_v, new_d = (np.asarray(x, float) for x in given)
        assert new_d.shape == d.shape and np.isclose(new_d.sum(), 1), "d stays a distribution"
        t, policy = tables.bellman(problem, v, gamma)
        pushed = tables.push(problem, policy, d)
        assert np.allclose(new_d, pushed), "d moves one step with the greedy chain: P_pi' d"
        assert np.allclose(new_v - new_v[0], t - t[0]), "up to a constant the next v is T v"
        wanted = t + gamma / (1 - gamma) * (pushed @ (t - v))
        assert np.allclose(new_v, wanted), (
            "the constant is gamma / (1 - gamma) <d, T v - v> with the new d"
        )


def _repair(answer) -> None:
    for problem, gamma in _problems():
        optimum, _, _ = tables.policy_iteration(problem, gamma)
        plain = planning.value_iteration(problem, gamma, np.zeros(problem.n))
        before, value = (next(itertools.islice(plain, k, None)).value for k in (38, 0))
        low, high = planning.bracket(before, value, gamma)
        given = np.asarray(answer(before.copy(), value.copy(), gamma), float)
        assert given.shape == value.shape, "the answer is a value for every state"
        assert np.allclose(given - value, (given - value)[0]), (
            "the policy is right already: add one constant to all states"
        )
        assert ((given >= low - 1e-9) & (given <= high + 1e-9)).all(), (
            "the repaired value must lie in MacQueen's bracket"
        )
        far, wrong = (np.abs(x - optimum).max() for x in (given, value))
        assert far < 0.05 * wrong, f"the error should all but vanish: it is {far:.3g}"


def _iterations(answer) -> None:
    for rate, error, tolerance in (
        (0.35, 50.0, 1e-6), (0.9, 1.0, 1e-3), (0.99, 100.0, 1e-6), (0.5, 1e-3, 1e-2),
    ):  # fmt: skip
        given = answer(rate, error, tolerance)
        assert given == int(given), "a number of iterations is whole"
        k = int(given)
        assert k >= 0, f"{k} iterations: an error that is small enough needs none"
        assert error * rate**k <= tolerance * (1 + 1e-9), f"after {k} iterations it is not there"
        assert k == 0 or error * rate ** (k - 1) > tolerance, f"{k} are more than needed"


def _useless(answer) -> None:
    for n in (4, 7):
        P = np.asarray(answer(n), float)
        assert P.shape == (n, n), f"for {n} states return a matrix of shape ({n}, {n})"
        assert (P >= 0).all() and np.allclose(P.sum(1), 1), "every row must be a distribution"
        values = np.sort(np.abs(np.linalg.eigvals(P)))[::-1]
        assert values[1] > 1 - 1e-9, (
            f"|lambda_2| = {values[1]:.3g} of {n} states: R1-VI would still gain"
        )


one_step = Exercise(
    "One step of R1-VI",
    _one_step,
    "q = R + gamma * (P @ v); greedy actions; push d through their rows; then add the constant.",
)
repair = Exercise(
    "Repairing a value",
    _repair,
    "The last change is almost the same in every state: its mean, times gamma / (1 - gamma).",
)
iterations = Exercise(
    "How many iterations",
    _iterations,
    "Solve error * rate^k = tolerance for k, and round up; no less than 0.",
)
useless = Exercise(
    "A chain that defeats it",
    _useless,
    "A second eigenvalue of modulus 1: two classes that never meet, or a chain that is periodic.",
)
