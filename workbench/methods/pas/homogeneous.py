"""Problems that are all alike but for their means: the best weight in closed form.

With one variance s of the estimate, one covariance g with the mean prediction and the mean squared
error B of the latter, the risk of weight w is w^2 s + (1 - w)^2 B + 2 w (1 - w) g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .moments import Moments
from .problems import Problems, summarize


def best_weight(s: float, g: float, B: float) -> float:
    """w* = (B - g) / (s + B - 2 g)."""
    return (B - g) / (s + B - 2 * g)


def best_risk(s: float, g: float, B: float) -> float:
    """R* = (s B - g^2) / (s + B - 2 g), at most min(s, B) where w* is in [0, 1]."""
    return (s * B - g * g) / (s + B - 2 * g)


def risk(w: float, s: float, g: float, B: float) -> float:
    """w^2 s + (1 - w)^2 B + 2 w (1 - w) g."""
    return w * w * s + (1 - w) ** 2 * B + 2 * w * (1 - w) * g


@dataclass(frozen=True)
class Alike:
    """m problems; sigma, tau: standard deviations of label and prediction; rho: correlation.

    bias_mean, bias_sd: of the bias of the prediction over problems.
    """

    m: int = 40_000
    sigma: float = 1.0
    tau: float = 0.8
    rho: float = 0.7
    n: int = 10
    N: int = 40
    bias_mean: float = 0.1
    bias_sd: float = 0.3

    @property
    def moments(self) -> Moments:
        """The same exact moments for all problems."""
        ones = np.ones(self.m)
        gamma = self.rho * self.sigma * self.tau
        return Moments.known(self.sigma**2 * ones, self.tau**2 * ones, gamma * ones)

    @property
    def parts(self) -> tuple[float, float, float]:
        """s, g and B of the power-tuned estimate and the mean prediction."""
        gamma, total = self.rho * self.sigma * self.tau, self.n + self.N
        ratio = gamma / self.tau**2  # lambda is N / total times this, below 1 for these numbers
        s = self.sigma**2 / self.n - self.N / (self.n * total) * gamma * ratio
        B = self.tau**2 / self.N + self.bias_sd**2 + self.bias_mean**2
        return s, gamma / total, B

    def draw(self, rng: np.random.Generator) -> tuple[Problems, np.ndarray]:
        """Problems and the truth (m,)."""
        theta = rng.standard_normal(self.m)
        bias = self.bias_mean + self.bias_sd * rng.standard_normal(self.m)
        code = np.arange(self.m)
        code_l, code_u = np.repeat(code, self.n), np.repeat(code, self.N)
        first = rng.standard_normal(len(code_l))
        second = self.rho * first + np.sqrt(1 - self.rho**2) * rng.standard_normal(len(code_l))
        y = theta[code_l] + self.sigma * first
        f = (theta + bias)[code_l] + self.tau * second
        f_u = (theta + bias)[code_u] + self.tau * rng.standard_normal(len(code_u))
        return summarize(code, code_l, y, f, code_u, f_u), theta
