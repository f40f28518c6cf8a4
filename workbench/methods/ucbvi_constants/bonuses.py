"""Bonuses, logarithms and regret bounds in closed form: what each constant costs.

Sources: Azar, Osband, Munos 2017 (CH, BF); Drago, Mussi, Metelli 2025 (CH-I, BF-I, read in their
program); Zhang, Chen, Lee, Du 2024 (MVP); rlberry's "simplified_bernstein" (practitioner). N is the
number of visits of a pair (s, a), H the horizon, Var the variance of the next value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.numerics.checks import choice

PAPER = ("CH", "CH-I", "BF", "BF-I", "MVP")
OURS = ("tight CH", "practitioner", "greedy", "random policy", "first action")
ALGORITHMS = (*PAPER, *OURS)
NO_TABLE = ("random policy", "first action")  # they plan nothing: their Q stays at H

C1, C3 = 460 / 9, 544 / 9  # of MVP
LEADING = {"CH": 7.0, "CH-I": 2.0}  # b = c H L / sqrt(N)
# BF: variance, lower order, what is taken off N there, correction, and the root of its constant.
BERNSTEIN = {"BF": (8.0, 14 / 3, 0, 8.0, 100.0), "BF-I": (4.0, 7 / 3, 1, 4.0, 84.0)}


@dataclass(frozen=True)
class Sizes:
    """S states, A actions, horizon H, K episodes; delta None: 1, mvp_delta None: 1 / K."""

    S: int
    A: int
    H: int
    K: float
    delta: float | None = None
    mvp_delta: float | None = None

    @property
    def L(self) -> float:
        """ln(5 S A K H / delta) of UCBVI."""
        return float(np.log(5 * self.S * self.A * self.K * self.H / (self.delta or 1.0)))

    @property
    def ell(self) -> float:
        """ln(200 S A H^2 K^2 / delta) of MVP."""
        product = 200.0 * self.S * self.A * self.H**2 * self.K**2
        return float(np.log(product / (self.mvp_delta or 1 / self.K)))

    @property
    def trivial(self) -> float:
        """H K: no regret is larger."""
        return float(self.H * self.K)

    @property
    def lower_order(self) -> float:
        """sqrt(H S A T) with T = H K: the order, not the constant, of the lower bound."""
        return float(self.H * np.sqrt(self.S * self.A * self.K))


def rare(algorithm: str, sizes: Sizes) -> float:
    """c^2 H^3 S^2 A L^2 of the third Bernstein term, with c = 100 for BF and 84 for BF-I."""
    c = BERNSTEIN[algorithm][4]
    return c**2 * sizes.H**3 * sizes.S**2 * sizes.A * sizes.L**2


def terms(
    algorithm: str,
    N: ArrayLike,
    sizes: Sizes,
    variance: ArrayLike = 0.0,
    reached: ArrayLike = 0.0,
    h: int = 1,
    scale: float = 1.0,
) -> dict[str, np.ndarray]:
    """The summands of the bonus b_h, each of the shape of N, by name.

    variance: Var of the next value. reached: N' of every next state, visits at the next stage.
    h: stage from 1, which only the practitioner's bonus looks at. Baselines have no bonus: {}.
    """
    choice("algorithm", algorithm, ALGORITHMS)
    N = np.maximum(np.asarray(N, float), 1.0)
    H, L = sizes.H, sizes.L
    variance, reached = np.asarray(variance, float), np.maximum(np.asarray(reached, float), 1.0)
    if algorithm in LEADING:
        found = {"Hoeffding": LEADING[algorithm] * H * L / np.sqrt(N)}
    elif algorithm == "tight CH":
        found = {"Hoeffding": H * np.sqrt(L / (2 * N))}
    elif algorithm in BERNSTEIN:
        of_variance, lower, less, correction, _ = BERNSTEIN[algorithm]
        seldom = np.minimum(rare(algorithm, sizes) / reached, H**2)
        found = {
            "variance": np.sqrt(of_variance * L * variance / N),
            "lower order": lower * H * L / np.maximum(N - less, 1.0),
            "correction": np.sqrt(correction * seldom / N),
        }
    elif algorithm == "MVP":
        found = {
            "variance": C1 * np.sqrt(variance * sizes.ell / N),
            "lower order": C3 * H * sizes.ell / N,
        }
    elif algorithm == "practitioner":
        root, rest, cap = np.sqrt(1 / N), (H - h + 1) / N, H - h + 1
        share = np.minimum(1.0, cap / (root + rest))
        found = {"Hoeffding": root * share, "lower order": rest * share}
    else:
        found = {}
    return {name: scale * np.broadcast_to(term, N.shape) for name, term in found.items()}


def bonus(algorithm: str, N: ArrayLike, sizes: Sizes, **rest: float) -> np.ndarray:
    """b_h, the sum of `terms`; zeros for baselines without a bonus."""
    return sum(terms(algorithm, N, sizes, **rest).values(), np.zeros(np.shape(N)))


def visits_to_inform(algorithm: str, sizes: Sizes, **rest: float) -> int | None:
    """The least N with a bonus below H, above which it says nothing; None beyond 10^15.

    For CH it is 49 L^2, for CH-I 4 L^2, rounded up.
    """
    low, high = 1, 10**15
    below = lambda N: float(bonus(algorithm, N, sizes, **rest)) < sizes.H  # noqa: E731
    if not below(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if below(middle) else (middle + 1, high)
    return low


TERMS = ("variance", "lower order", "correction")  # of the Bernstein bonuses
BOUNDS = ("CH", "BF")


def regret_bound(algorithm: str, K: ArrayLike, sizes: Sizes) -> np.ndarray:
    """The published bound on the regret of CH or BF after K episodes (Azar et al., Theorems 1-2).

    The log holds the same K. From memory of the theorems: the constants of their refined analysis
    are not known here, so CH-I and BF-I have none.
    """
    choice("algorithm", algorithm, BOUNDS)
    K = np.asarray(K, float)
    S, A, H = sizes.S, sizes.A, sizes.H
    L = np.log(5 * H * S * A * K / (sizes.delta or 1.0))
    root, rest = np.sqrt(S * A * K), H**2 * S**2 * A * L**2
    if algorithm == "CH":
        return 20 * H**1.5 * L * root + 250 * rest
    return 30 * H * L * root + 2500 * rest + 4 * H**1.5 * np.sqrt(K * L)


def meaningful_from(algorithm: str, sizes: Sizes) -> float:
    """The K from which the published bound is below H K, the trivial one (bisection in log K)."""
    return _crossing(lambda K: regret_bound(algorithm, K, sizes) < sizes.H * K)


def bernstein_below_hoeffding_from(sizes: Sizes) -> float:
    """The K from which the bound of BF is below that of CH; infinity beyond 10^30."""
    return _crossing(lambda K: regret_bound("BF", K, sizes) < regret_bound("CH", K, sizes))


def _crossing(below, low: float = 1.0, high: float = 1e30) -> float:
    if not below(high):
        return float("inf")
    for _ in range(200):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if below(middle) else (middle, high)
    return float(high)
