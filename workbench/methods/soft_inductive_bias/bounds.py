"""D: bounds on the risk that hold for every hypothesis at once, and one that does not help.

A prior P over hypotheses, fixed before the data are seen, buys R(h) <= bound(h) for all h together
with probability 1 - delta. What is paid is log 1/P(h), the length of h's code, and not the size of
the hypothesis space. Logarithms are natural; lengths of codes are in bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainccinv, gammaln, logsumexp, xlog1py, xlogy

from . import _checks

LOG2 = float(np.log(2))
SMALLEST_LOG = -650.0  # smaller probabilities go through their logarithm


def complexity_of_code(bits: float) -> float:
    """log 1/P(h) of a message of a prefix code with that many bits."""
    return _checks.number("bits", bits, 0) * LOG2


def complexity_of_size(bits: float) -> float:
    """log 1/P(h) from a plain compressed size of K >= 1 bits, in nats.

    K log 2 + 2 log K, and log(pi^2 / 6) more: the 2^K strings of each length K share 1 / K^2, and
    those sum to pi^2 / 6.
    """
    bits = _checks.number("bits", bits, 1)
    return bits * LOG2 + 2 * np.log(bits) + np.log(np.pi**2 / 6)


def kl(q: np.ndarray | float, p: np.ndarray | float) -> np.ndarray | float:
    """kl(q || p) of two coins, in nats."""
    q, p = np.asarray(q, float), np.asarray(p, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = xlogy(q, q) + xlog1py(1 - q, -q) - xlogy(q, p) - xlog1py(1 - q, -p)
    return np.maximum(value, 0.0)


def kl_inverse(q: np.ndarray | float, c: np.ndarray | float) -> np.ndarray | float:
    """The largest p with kl(q || p) <= c, elementwise, by bisection to machine precision."""
    q, c = np.broadcast_arrays(np.asarray(q, float), np.asarray(c, float))
    low, high = q.copy(), np.ones(q.shape)
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = kl(q, middle) <= c
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    # For q = 0 in closed form: bisection around tiny c would lose digits.
    value = np.where(q == 0, -np.expm1(-c), low)
    return float(value) if value.ndim == 0 else value


def hoeffding(risk: float, complexity: float, n: int, delta: float, width: float = 1.0) -> float:
    """Occam's bound by Hoeffding; `width` is the length of the interval that losses lie in."""
    n, delta = _sample(n, delta)
    return risk + width * float(np.sqrt((complexity + np.log(1 / delta)) / (2 * n)))


def chernoff(risk: float, complexity: float, n: int, delta: float) -> float:
    """The kl form: the largest p with kl(risk || p) <= (log 1/P + log 1/delta) / n."""
    n, delta = _sample(n, delta)
    return kl_inverse(_risk(risk), (complexity + np.log(1 / delta)) / n)


def binomial_tail(risk: float, complexity: float, n: int, delta: float) -> float:
    """The largest p with Pr[Bin(n, p) <= n risk] >= delta P(h): exact, 0-1 loss only."""
    n, delta = _sample(n, delta)
    mistakes = int(np.floor(n * _risk(risk) + 1e-9))
    if mistakes >= n:
        return 1.0
    target = -complexity + np.log(delta)
    if target > SMALLEST_LOG:  # Pr[Bin(n, p) <= k] is an incomplete beta function of p
        return float(betainccinv(mistakes + 1, n - mistakes, np.exp(target)))
    return tail_root(mistakes, n, target)


def tail_root(mistakes: int, n: int, target: float) -> float:
    """The p at which log Pr[Bin(n, p) <= mistakes] is `target`: tails below what floats hold."""
    # Terms more than 20,000 below the largest carry nothing at any n that is used here.
    k = np.arange(max(0, mistakes - 20_000), mistakes + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)

    def excess(p: float) -> float:
        return float(logsumexp(ways + k * np.log(p) + (n - k) * np.log1p(-p))) - target

    if mistakes == 0:
        return float(-np.expm1(target / n))
    low, high = mistakes / n, 1 - 1e-15
    return float(brentq(excess, low, high, xtol=1e-14)) if excess(high) < 0 else 1.0


@dataclass(frozen=True)
class Bounds:
    """The three Occam bounds of one hypothesis; from 1 on a bound says nothing."""

    hoeffding: float
    kl: float
    exact: float


def occam(risk: float, n: int, complexity: float, delta: float = 0.05) -> Bounds:
    """All three for a 0-1 risk on n examples and log 1/P(h) nats. ValueError for bad numbers."""
    _risk(risk)
    complexity = _checks.number("complexity", complexity, 0, why="nats, log 1/P")
    given = (risk, complexity, n, delta)
    return Bounds(hoeffding(*given), float(chernoff(*given)), binomial_tail(*given))


def catoni(risk: float, complexity: float, n: int, delta: float, C: float) -> float:
    """Catoni's bound at a constant C > 0 that must not depend on data; its least is `chernoff`."""
    n, delta = _sample(n, delta)
    return float(-np.expm1(-C * risk - (complexity + np.log(1 / delta)) / n) / -np.expm1(-C))


def pac_bayes_kl(gibbs: float, divergence: float, n: int, delta: float = 0.05) -> float:
    """Bound on the risk of a random hypothesis of Q: kl form, Maurer's constant.

    gibbs: its expected training error. divergence: KL(Q || P) in nats.
    """
    n, delta = _sample(n, delta)
    return float(kl_inverse(_risk(gibbs), pac_bayes_penalty(divergence, n, delta)))


def mcallester(gibbs: float, divergence: float, n: int, delta: float = 0.05) -> float:
    """The square-root form of the same."""
    n, delta = _sample(n, delta)
    return float(_risk(gibbs) + np.sqrt(pac_bayes_penalty(divergence, n, delta) / 2))


def pac_bayes_penalty(divergence: float, n: int, delta: float) -> float:
    """(KL + log(2 sqrt(n) / delta)) / n."""
    divergence = _checks.number("divergence", divergence, 0, why="KL(Q || P) in nats")
    return float((divergence + np.log(2 * np.sqrt(n) / delta)) / n)


def vc(risk: float, dimension: int, n: int, delta: float = 0.05) -> float:
    """The bound by Vapnik and Chervonenkis: pays for the size of the space of hypotheses."""
    n, delta = _sample(n, delta)
    v = _checks.count("dimension", dimension)
    growth = v * np.log(2 * np.e * n / v) + np.log(4 / delta)
    return float(risk + np.sqrt(8 / n * growth))


def bits_for(bound: np.ndarray | float, risk: np.ndarray | float, n: int, delta: float = 0.05):
    """Bits at which the kl form has that value, for iso-bound curves; negative: out of reach."""
    return (n * kl(risk, bound) - np.log(1 / delta)) / LOG2


def _sample(n: int, delta: float) -> tuple[int, float]:
    return (
        _checks.count("n", int(n) if isinstance(n, float) and n == int(n) else n),
        _checks.number("delta", delta, 0, 1, open_ends=True),
    )


def _risk(risk: float) -> float:
    return _checks.number("risk", risk, 0, 1, why="a training error")
