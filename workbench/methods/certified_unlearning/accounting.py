"""From noise to a guarantee: mu of Gaussian differential privacy to (epsilon, delta) and back.

A mechanism is mu-GDP when telling its two outputs apart is no easier than telling N(0, 1) from
N(mu, 1). Four accountants turn mu into epsilon at a given delta; all functions take arrays.
rho_z = mu^2 / 2 is the constant of zero-concentrated differential privacy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from workbench.numerics.checks import choice

ACCOUNTANTS = {
    "exact": "exact: the trade-off curve of two Gaussians",
    "rdp": "Renyi: the best order",
    "zcdp": "zCDP: rho + 2 sqrt(rho ln 1/delta)",
    "released": "accounting used in the released scripts, as we read it: rho without its order",
}
MAX_EPSILON = 1e6
# Orders up to here reproduce what the released scripts report (1.004 at rho_z = 1); the text that
# we have does not state the range.
RELEASED_MAX_ORDER = 1000.0


def theta(epsilon: Any, r: Any) -> Any:
    """Hockey-stick divergence of two unit Gaussians at distance r >= 0, at e^epsilon; in [0, 1].

    Phi(-epsilon / r + r / 2) - e^epsilon Phi(-epsilon / r - r / 2), through logarithms.
    """
    epsilon, r = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(r, float))
    safe = np.where((r > 0) & np.isfinite(r), r, 1.0)
    finite = np.isfinite(epsilon)
    ratio = np.where(finite, epsilon, 0.0) / safe
    above = log_ndtr(safe / 2 - ratio)
    below = np.where(finite, epsilon, 0.0) + log_ndtr(-safe / 2 - ratio)
    with np.errstate(under="ignore"):
        value = -np.exp(above) * np.expm1(np.minimum(below - above, 0.0))
    value = np.where(finite, value, 0.0)
    return np.where(r > 0, np.where(np.isfinite(r), value, 1.0), 0.0)[()]


def delta_of(mu: Any, epsilon: Any) -> Any:
    """The exact delta of a mu-GDP mechanism at epsilon."""
    return theta(epsilon, mu)


def epsilon_of(mu: Any, delta: float, accountant: str = "exact") -> Any:
    """Epsilon of a mu-GDP mechanism at delta; infinite mu gives infinite epsilon."""
    check_delta(delta)
    choice("accountant", accountant, ACCOUNTANTS)
    mu = np.asarray(mu, float)
    finite = np.isfinite(mu) & (mu > 0)
    safe = np.where(finite, mu, 1.0)
    found = np.maximum(_EPSILON[accountant](safe, delta), 0.0)
    return np.where(finite, found, np.where(mu > 0, np.inf, 0.0))[()]


def mu_of(epsilon: Any, delta: float, accountant: str = "exact") -> Any:
    """The largest mu whose epsilon at delta is at most `epsilon`, the inverse of `epsilon_of`."""
    check_epsilon(epsilon)
    check_delta(delta)
    choice("accountant", accountant, ACCOUNTANTS)
    return np.asarray(_MU[accountant](np.asarray(epsilon, float), delta))[()]


def tradeoff(mu: Any, type1: Any) -> Any:
    """G_mu: the least type II error of any test with this type I error, Phi(Phi^-1(1 - a) - mu)."""
    return ndtr(-ndtri(np.asarray(type1, float)) - mu)


def largest_auc(mu: Any) -> Any:
    """The area under the curve that no test of a mu-GDP mechanism exceeds, Phi(mu / sqrt(2))."""
    return ndtr(np.asarray(mu, float) / np.sqrt(2))


def classical_sigma(sensitivity: Any, epsilon: Any, delta: float, warn: bool = True) -> Any:
    """Noise of the textbook's Gaussian mechanism, sensitivity sqrt(2 ln(1.25 / delta)) / epsilon.

    Proven for epsilon <= 1 only, and too small above 8.42 at delta = 1e-5: warns there.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if warn and np.any(np.asarray(epsilon) > 1):
        warnings.warn(
            "the classical calibration is proven for epsilon <= 1 only, and too small for large "
            "epsilon: use the exact one",
            stacklevel=2,
        )
    return sensitivity * np.sqrt(2 * np.log(1.25 / delta)) / epsilon


def check_epsilon(epsilon: Any) -> None:
    """ValueError unless all are above 0 and at most 1e6."""
    values = np.asarray(epsilon, float)
    if not (np.all(values > 0) and np.all(values <= MAX_EPSILON)):
        raise ValueError(f"epsilon = {epsilon}; allowed are numbers above 0 up to 1e6")


def check_delta(delta: float) -> None:
    """ValueError unless between 0 and 0.5."""
    if not 0 < delta < 0.5:
        raise ValueError(f"delta = {delta}; allowed are numbers between 0 and 0.5")


# mu -> epsilon -----------------------------------------------------------------------------------


def _exact_epsilon(mu: np.ndarray, delta: float) -> np.ndarray:
    # log delta(epsilon) is concave and falls, so Newton's steps from above the root come down to
    # it and never pass it: a bracket that needs no halving. The start has Phi(-e/mu + mu/2) = delta
    # and so lies above.
    epsilon = np.maximum(mu * mu / 2 - mu * ndtri(delta), 0.0)
    for _ in range(60):
        ratio = epsilon / mu
        above, below = log_ndtr(mu / 2 - ratio), epsilon + log_ndtr(-mu / 2 - ratio)
        log_delta = above + np.log(-np.expm1(np.minimum(below - above, -1e-300)))
        step = (log_delta - np.log(delta)) * np.exp(log_delta - below)
        step = np.minimum(np.where(np.isfinite(step), step, 0.0), 0.0)
        after = np.maximum(epsilon + step, 0.0)
        done = np.all(epsilon - after <= 1e-14 * np.maximum(epsilon, 1e-12))
        epsilon = after
        if done:
            break
    return epsilon


def _renyi_epsilon(mu: np.ndarray, delta: float) -> np.ndarray:
    rho = mu * mu / 2
    order = _renyi_order(rho, delta)
    return order * rho + _conversion(order, delta)


def _renyi_order(rho: np.ndarray, delta: float) -> np.ndarray:
    """The best order: the derivative vanishes where rho (a - 1)^2 = ln(1 / (delta a))."""
    low, high = np.full(np.shape(rho), 1e-12), np.full(np.shape(rho), 1 / delta)
    for _ in range(100):
        middle = np.sqrt(low * high)
        small = rho * middle**2 < -np.log(delta * (1 + middle))
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return 1 + high


def _conversion(order: Any, delta: float) -> Any:
    """What a Renyi divergence of this order gains on its way to epsilon."""
    return np.log1p(-1 / order) - (np.log(delta) + np.log(order)) / (order - 1)


def _zcdp_epsilon(mu: np.ndarray, delta: float) -> np.ndarray:
    rho = mu * mu / 2
    return rho + 2 * np.sqrt(rho * np.log(1 / delta))


def _released_epsilon(mu: np.ndarray, delta: float) -> np.ndarray:
    # Without the order the sum falls up to order 1 / delta.
    return mu * mu / 2 + _conversion(min(RELEASED_MAX_ORDER, 1 / delta), delta)


# epsilon -> mu -----------------------------------------------------------------------------------


def _increasing_root(f: Callable[[np.ndarray], np.ndarray], low: np.ndarray) -> np.ndarray:
    """The root of an increasing f with f(low) <= 0, low > 0, by bracketing."""
    high = 2 * low
    while np.any(outside := f(high) < 0):
        high = np.where(outside, 2 * high, high)
    for _ in range(80):
        middle = np.sqrt(low * high)
        below = f(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def _exact_mu(epsilon: np.ndarray, delta: float) -> np.ndarray:
    # At this mu the first term of theta alone is delta, so the root is above it.
    q = -ndtri(delta)
    low = 2 * epsilon / (np.sqrt(q * q + 2 * epsilon) + q)
    return _increasing_root(lambda mu: theta(epsilon, mu) - delta, low)


def _renyi_mu(epsilon: np.ndarray, delta: float) -> np.ndarray:
    # Renyi's epsilon is at most zCDP's.
    low = _zcdp_mu(epsilon, delta)
    return _increasing_root(lambda mu: _renyi_epsilon(mu, delta) - epsilon, low)


def _zcdp_mu(epsilon: np.ndarray, delta: float) -> np.ndarray:
    log = np.log(1 / delta)
    return np.sqrt(2) * epsilon / (np.sqrt(log + epsilon) + np.sqrt(log))


def _released_mu(epsilon: np.ndarray, delta: float) -> np.ndarray:
    rho = epsilon - _conversion(min(RELEASED_MAX_ORDER, 1 / delta), delta)
    if np.any(rho <= 0):
        least = float(np.max(epsilon - rho))
        raise ValueError(
            f"epsilon = {epsilon}; the released accounting reports at least {least:.4g} at "
            f"delta = {delta:g}"
        )
    return np.sqrt(2 * rho)


_EPSILON = {
    "exact": _exact_epsilon, "rdp": _renyi_epsilon, "zcdp": _zcdp_epsilon,
    "released": _released_epsilon,
}  # fmt: skip
_MU = {
    "exact": _exact_mu, "rdp": _renyi_mu, "zcdp": _zcdp_mu, "released": _released_mu,
}  # fmt: skip
