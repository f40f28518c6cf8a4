"""Upper bounds: exact refits on a support, beam search (OKRidge's rule), a safe upper value.

Any k features with the best coefficients on them are a feasible point. `Refits` remembers what it
has solved: branch and bound asks for the same supports again and again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from . import _engine as engine
from .problem import Problem

KEPT_SCORES = 500  # columns up to which the scores of a support are remembered


@dataclass(frozen=True)
class Fit:
    """The best coefficients b (s,) on support (s,), ascending; value of the objective."""

    support: tuple[int, ...]
    b: np.ndarray
    value: float

    def beta(self, p: int) -> np.ndarray:
        """(p,) with zeros elsewhere."""
        beta = np.zeros(p)
        beta[list(self.support)] = self.b
        return beta


class Refits:
    """Refits of one problem, by support."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self._fits: dict[tuple[int, ...], Fit] = {}
        self._scores: dict[tuple[int, ...], np.ndarray] = {}

    def __len__(self) -> int:
        return len(self._fits)

    def __call__(self, support: Iterable[int]) -> Fit:
        """The fit on a support."""
        key = tuple(sorted(int(j) for j in support))
        found = self._fits.get(key)
        if found is None:
            found = self._fits[key] = self._solve(key)
        return found

    def _solve(self, support: tuple[int, ...]) -> Fit:
        p = self.problem
        b, u = np.zeros(len(support)), np.zeros(p.n)
        if not support:
            return Fit((), b, engine.loss(p.kind, u, p.y))
        value = engine.refit(p.kind, p.XT[list(support)], p.y, p.lambda2, p.M, b, u)
        return Fit(support, b, value)

    def gradient(self, fit: Fit) -> np.ndarray:
        """(n,) gradient of f at X b."""
        p = self.problem
        u = fit.b @ p.XT[list(fit.support)] if fit.support else np.zeros(p.n)
        out = np.empty(p.n)
        engine.slope(p.kind, u, p.y, out)
        return out

    def scores(self, fit: Fit) -> np.ndarray:
        """(p,) how promising each further feature is: gradient; linear: what it could gain."""
        known = self._scores.get(fit.support)
        if known is not None:
            return known
        slopes = self.problem.XT @ self.gradient(fit)
        if self.problem.loss == "linear":
            slopes = slopes**2 / (self.problem.norms**2 + self.problem.lambda2)
        found = np.abs(slopes)
        if self.problem.p <= KEPT_SCORES:
            self._scores[fit.support] = found
        return found


def beam_search(
    refits: Refits,
    width: int = 3,
    child: int = 6,
    inside: Iterable[int] = (),
    outside: Iterable[int] = (),
) -> Fit:
    """The best fit that a beam of `width` supports finds, each grown by its `child` best features.

    Starts from `inside`, never uses `outside`; greedy for width = child = 1.
    """
    k = refits.problem.k
    banned = list(outside)
    parents = [refits(inside)]
    best = parents[0]
    for _ in range(len(parents[0].support), min(k, refits.problem.p - len(banned))):
        found: dict[tuple[int, ...], Fit] = {}
        for parent in parents:
            scores = refits.scores(parent).copy()
            scores[banned] = -1.0
            scores[list(parent.support)] = -1.0
            count = min(child, len(scores))
            for j in np.argpartition(-scores, count - 1)[:count]:
                if scores[j] >= 0:
                    fit = refits((*parent.support, j))
                    found[fit.support] = fit
        if not found:
            break
        parents = sorted(found.values(), key=lambda fit: (fit.value, fit.support))[:width]
        best = parents[0]
    return best


def upper_bound(problem: Problem, fit: Fit) -> float:
    """The objective of a fit, rounded up: above its exact value, hence above the optimum."""
    rows = problem.XT[list(fit.support)]
    u = fit.b @ rows if fit.support else np.zeros(problem.n)
    share = (len(fit.b) + 4) * engine.EPS
    off = share * (np.abs(fit.b) @ np.abs(rows)) if fit.support else np.zeros(problem.n)
    if problem.loss == "linear":
        total = ((np.abs(u - problem.y) + off) ** 2).sum()
    else:
        total = np.logaddexp(0, off - problem.y * u).sum()  # increasing in what is off
    total += problem.lambda2 * (fit.b @ fit.b)
    return float(total * (1 + (problem.n + len(fit.b) + 20) * engine.EPS))
