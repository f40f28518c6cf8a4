"""How much to shrink: risk estimates as functions of one number, and their minimum.

Every estimate here is theta_hat - u (theta_hat - target) with u_j = 1 - w_j = s_j / (omega + s_j),
s_j the variance of theta_hat_j. CURE, the SURE of Xie, Kou and Brown (2012) and the true loss are
all quadratics in u_j, so one `RiskCurve` serves the three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

POINTS, DECADES = 200, 6  # of the grid of omega, around the largest variance
GRID = np.geomspace(10.0**-DECADES, 10.0**DECADES, POINTS)
CUTOFF = 0.999  # of the official search: the largest weight of the problem with most variance
TOLERANCE = 1e-10  # relative, of omega
CHUNK = 2_000_000  # numbers that one evaluation of many omega holds at once


def cure(
    weight: np.ndarray | float, variance: np.ndarray, covariance: np.ndarray, d: np.ndarray
) -> np.ndarray:
    """CURE_j(w) = (2w - 1) s + 2 (1 - w) g + (1 - w)^2 d^2, for weights on the estimate.

    s: variance of the estimate; g: covariance with its target; d: estimate minus target; all (m,).
    Its expectation is the squared error, for every w that does not depend on the data.
    """
    return (2 * weight - 1) * variance + 2 * (1 - weight) * covariance + (1 - weight) ** 2 * d**2


def weights(omega: float, variance: np.ndarray) -> np.ndarray:
    """omega / (omega + s_j): the weights on the estimate; exactly 0 at 0 and 1 at infinity."""
    return 1 - _pull(omega, variance)


def _pull(omega: float, variance: np.ndarray) -> np.ndarray:
    return variance / (omega + variance)


@dataclass(frozen=True)
class RiskCurve:
    """R(omega) = mean over j of c_j - 2 u_j b_j + u_j^2 q_j with u_j = s_j / (omega + s_j).

    s > 0 (m,); c, b, q (m,).
    """

    s: np.ndarray
    c: np.ndarray
    b: np.ndarray
    q: np.ndarray
    constant: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", float(self.c.mean()))

    @staticmethod
    def cure(variance: np.ndarray, covariance: np.ndarray, d: np.ndarray) -> RiskCurve:
        """The risk estimate of shrinking to a target with that covariance."""
        return RiskCurve(variance, variance, variance - covariance, d * d)

    @staticmethod
    def sure(variance: np.ndarray, d: np.ndarray) -> RiskCurve:
        """The risk estimate of shrinking to the mean of all estimates, d = estimate - mean."""
        return RiskCurve(variance, variance, variance * (1 - 1 / len(d)), d * d)

    @staticmethod
    def loss(variance: np.ndarray, error: np.ndarray, d: np.ndarray) -> RiskCurve:
        """The true loss, error = estimate - truth, d = estimate - target."""
        return RiskCurve(variance, error * error, error * d, d * d)

    def __call__(self, omega: np.ndarray | float) -> np.ndarray | float:
        """The risk at one omega or at several (k,), 0 and infinity included."""
        if np.ndim(omega) == 0:
            u = _pull(float(omega), self.s)
            return self.constant + float(np.mean(u * (u * self.q - 2 * self.b)))
        omega = np.asarray(omega, float)
        rows = max(1, CHUNK // len(self.s))
        return np.concatenate([self._many(omega[k : k + rows]) for k in range(0, len(omega), rows)])

    def _many(self, omega: np.ndarray) -> np.ndarray:
        u = self.s / (omega[:, None] + self.s)
        # einsum, not a matrix product, whose last bit depends on the number of threads.
        linear = np.einsum("km,m->k", u, self.b)
        u *= u
        return self.constant + (np.einsum("km,m->k", u, self.q) - 2 * linear) / len(self.s)

    def slope(self, omega: float) -> float:
        """The derivative of R with respect to log omega, which has the sign of that in omega."""
        u = _pull(omega, self.s)
        return float(np.mean(2 * (1 - u) * u * (self.b - u * self.q)))

    def minimize(self, official: bool = False, cutoff: float = CUTOFF) -> float:
        """omega in [0, infinity] with the least risk: both ends, a grid, then the best bracket.

        official: one bounded Brent search up to omega = cutoff / (1 - cutoff) max(s), as in the
        official program, which never returns an end and may stay in a local minimum.
        """
        top = float(self.s.max())
        if official:
            if not 0 < cutoff < 1:
                raise ValueError(f"cutoff = {cutoff}: it must be between 0 and 1")
            return bounded_minimum(self, 0.0, cutoff / (1 - cutoff) * top)
        omegas = np.concatenate([[0.0], GRID * top, [np.inf]])
        risks = self(omegas)
        best = int(np.argmin(risks))
        if best in (0, POINTS + 1):  # an end, whose only neighbor is far out on the grid
            return float(omegas[best])
        inner = _inner(self, *_bracket(omegas, best))
        return min((inner, float(omegas[best])), key=self)


def _bracket(omegas: np.ndarray, best: int) -> tuple[float, float]:
    low = omegas[best - 1] or omegas[best] * 1e-3
    high = omegas[best + 1] if np.isfinite(omegas[best + 1]) else omegas[best] * 1e3
    return float(low), float(high)


def _inner(curve: RiskCurve, low: float, high: float) -> float:
    """The minimum between two points: a zero of the slope, or Brent's search without one."""
    from scipy.optimize import brentq

    def slope(log_omega: float) -> float:
        return curve.slope(np.exp(log_omega))

    a, b = np.log(low), np.log(high)
    if slope(a) < 0 < slope(b):
        # A zero is sharper than a minimum, which is flat to the root of the machine precision.
        return float(np.exp(brentq(slope, a, b, xtol=TOLERANCE)))
    return float(np.exp(bounded_minimum(lambda log_omega: curve(float(np.exp(log_omega))), a, b)))


def bounded_minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function of one number is least between two bounds, by Brent's search."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        function, bounds=(low, high), method="bounded", options={"xatol": TOLERANCE}
    )
    return float(found.x)
