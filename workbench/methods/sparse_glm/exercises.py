"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

import warnings

import numpy as np

from workbench.exercises import Exercise

from . import datasets, prox
from .baselines import brute_force, greedy
from .problem import make_problem
from .relaxation import dual_value, relax
from .supports import Refits


def _conjugate(answer) -> None:
    rng = np.random.default_rng(0)
    for p, k, M in ((5, 2, 0.7), (8, 8, 1.0), (40, 3, 2.0)):
        alpha = 2 * rng.standard_normal(p)
        given = float(answer(alpha.copy(), k, M))
        wanted = prox.conjugate(alpha, k, M)
        assert np.isclose(given, wanted), (
            f"for p = {p}, k = {k}, M = {M:g} it is {wanted:.4f}, not {given:.4f}: the k largest "
            "of the Huber values"
        )


def _dual(answer) -> None:
    made = datasets.diabetes()
    rng = np.random.default_rng(1)
    for k, lambda2, M in ((3, 1.0, 2.0), (5, 4.0, 0.5), (2, 0.3, 0.2)):
        problem = make_problem(made.X, made.y, "linear", k, lambda2, M)
        w = relax(problem).w
        for point in (w, 0.5 * w, w + rng.standard_normal(len(w))):
            wanted = dual_value(problem, point)
            given = float(answer(problem.X, problem.y, k, lambda2, M, point.copy()))
            # 0 in place of a negative D(w) is a bound too, the one that `dual_bound` gives.
            right = np.isclose([wanted, max(wanted, 0.0)], given, rtol=1e-6, atol=1e-9).any()
            assert right, (
                f"for k = {k}, lambda2 = {lambda2:g}, M = {M:g} D(w) is {wanted:.4f}, not "
                f"{given:.4f}"
            )


def _fool(answer) -> None:
    X, y, k = answer()
    X, y = np.asarray(X, float), np.asarray(y, float)
    assert X.ndim == 2 and y.shape == X.shape[:1], "return X (n, p), y (n,) and k"
    y = y - y.mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = make_problem(datasets.standardize(X), y, "linear", int(k), 0.01, 100.0)
    best, quick = brute_force(problem, Refits(problem)), greedy(problem)
    assert quick.value > best.value * (1 + 1e-6), (
        f"greedy found the best support {best.support} too: make two features useful only together"
    )


conjugate = Exercise(
    "The conjugate of g",
    _conjugate,
    "Huber: a^2 / 2 up to M, beyond it M |a| - M^2 / 2. Then np.partition or a sort, and a sum.",
)
dual = Exercise(
    "A lower bound from any dual vector",
    _dual,
    "-f*(w) - 2 lambda2 g*(-X'w / (2 lambda2)), and f*(w) = |w|^2 / 4 + w'y for the linear loss.",
)
fool = Exercise(
    "Fool the greedy choice",
    _fool,
    "Let y = x1 - x2 with x1 and x2 almost equal, and x3 correlated with y a little.",
)
