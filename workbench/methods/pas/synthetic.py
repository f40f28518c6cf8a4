"""The paper's synthetic problems, with second moments in closed form.

eta_j ~ U(-1, 1); X | eta ~ N(eta, psi^2); Y | X, eta ~ N(2 eta X - eta^2, c); the target is
theta_j = E[Y] = eta_j^2. The good predictor is x^2, the bad one |x|. The official program estimates
the moments by simulation; here they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .moments import Moments
from .problems import Problems, summarize

NOISE_SD = 1.5  # of the predictor that is noise, as on real data


@dataclass(frozen=True)
class Model:
    """m problems of n labelled and N unlabelled items; psi: spread of X; c: noise variance of Y.

    predictor: "good", "bad", "noise", "adversarial" (minus the good one), or "mix", which is
    q good + (1 - q) noise; "tuned" and "base", names on real data, mean good and bad. shift: added
    to all predictions.
    """

    m: int = 200
    n: int = 20
    N: int = 80
    psi: float = 0.1
    c: float = 0.05
    predictor: str = "good"
    q: float = 1.0
    shift: float = 0.0

    def draw(self, rng: np.random.Generator) -> tuple[Problems, np.ndarray, Moments]:
        """Problems, the truth theta (m,), and the exact moments."""
        eta = rng.uniform(-1, 1, self.m)
        x = eta[:, None] + self.psi * rng.standard_normal((self.m, self.n + self.N))
        labelled = x[:, : self.n]
        noise = np.sqrt(self.c) * rng.standard_normal(labelled.shape)
        y = 2 * eta[:, None] * labelled - eta[:, None] ** 2 + noise
        f = self.predict(x, rng)
        code = np.arange(self.m)
        code_l, code_u = np.repeat(code, self.n), np.repeat(code, self.N)
        problems = summarize(
            code, code_l, y.ravel(), f[:, : self.n].ravel(), code_u, f[:, self.n :].ravel()
        )
        return problems, eta**2, self.moments(eta)

    @property
    def kind(self) -> tuple[str, float]:
        """Name of the predictor here, and its share of signal."""
        name = {"tuned": "good", "base": "bad"}.get(self.predictor, self.predictor)
        if name == "mix":
            return "good", self.q
        return ("good", 0.0) if name == "noise" else (name, 1.0)

    def predict(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Predictions for x, of the shape of x."""
        name, q = self.kind
        f = np.abs(x) if name == "bad" else -(x**2) if name == "adversarial" else x**2
        if q < 1:
            f = q * f + (1 - q) * NOISE_SD * rng.standard_normal(x.shape)
        return f + self.shift

    def moments(self, eta: np.ndarray) -> Moments:
        """sigma2, tau2, gamma (m,) of problems with these eta."""
        name, q = self.kind
        psi2 = self.psi**2
        common = 4 * eta**2 * psi2
        if name == "bad":
            mean = folded_mean(eta, self.psi)
            tau2 = eta**2 + psi2 - mean**2
            gamma = 2 * eta * psi2 * (1 - 2 * _normal_cdf(-eta / self.psi))
        else:
            sign = -1 if name == "adversarial" else 1
            tau2, gamma = common + 2 * psi2**2, sign * common
        tau2 = q**2 * tau2 + (1 - q) ** 2 * NOISE_SD**2
        return Moments.known(common + self.c, tau2, q * gamma)


def folded_mean(eta: np.ndarray, psi: float) -> np.ndarray:
    """E|X| of X ~ N(eta, psi^2)."""
    return psi * np.sqrt(2 / np.pi) * np.exp(-(eta**2) / (2 * psi**2)) + eta * (
        1 - 2 * _normal_cdf(-eta / psi)
    )


def _normal_cdf(z: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(z)
