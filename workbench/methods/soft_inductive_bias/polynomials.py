"""A: polynomials of high order whose coefficients cost more the higher their order.

Minimizes sum_i (y_i - f(x_i))^2 / sigma2 + sum_j gamma^j w_j^2 over f = sum_j w_j phi_j, in the
dual form: K = Phi D Phi^T with D = diag(gamma^-j) is n x n, and Phi^T Phi, whose condition is
hopeless, is never formed. So the model is a Gaussian process with the kernel K.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev, legendre
from scipy.linalg import LinAlgError, cho_solve, cholesky

from workbench.numerics.checks import choice

from . import _checks

BASES = ("chebyshev", "legendre", "monomial")
KINDS = ("simple", "complex", "noise")
NOISE = 0.1  # standard deviation of the noise on the two structures


def features(x: np.ndarray, order: int, basis: str = "chebyshev") -> np.ndarray:
    """phi_0 .. phi_J at x (...,): (..., J + 1); legendre is scaled by sqrt(2 j + 1)."""
    order = _checks.count("order", order, 0)
    x = np.asarray(x, float)
    if choice("basis", basis, BASES) == "chebyshev":
        return chebyshev.chebvander(x, order)
    if basis == "legendre":
        return legendre.legvander(x, order) * np.sqrt(2 * np.arange(order + 1) + 1)
    return x[..., None] ** np.arange(order + 1)


def prior_variances(order: int, gamma: float, amplitude: float = 1.0) -> np.ndarray:
    """amplitude gamma^-j, the prior variance of each coefficient (J + 1,)."""
    gamma = _checks.number(
        "gamma", gamma, 1, why="below 1 high orders would be preferred: anti-regularization"
    )
    return amplitude * gamma ** -np.arange(_checks.count("order", order, 0) + 1.0)


def monomial_kernel(a: np.ndarray, b: np.ndarray, order: int, gamma: float) -> np.ndarray:
    """The kernel of monomials in closed form: a geometric sum. a (n,), b (m,): (n, m)."""
    ratio = np.multiply.outer(np.asarray(a, float), np.asarray(b, float)) / gamma
    near = np.abs(1 - ratio) < 1e-9  # where the sum has J + 1 equal terms
    safe = np.where(near, 0.0, ratio)
    return np.where(near, order + 1.0, (1 - safe ** (order + 1)) / (1 - safe))


@dataclass(frozen=True)
class Fit:
    """A fit to one or more sets of labels at the same x.

    weights: (J + 1,) or (J + 1, m). evidence: log marginal likelihood, () or (m,).
    """

    order: int
    basis: str
    weights: np.ndarray
    evidence: np.ndarray | float

    def predict(self, x: np.ndarray) -> np.ndarray:
        """f at x (k,): (k,) or (k, m)."""
        return features(x, self.order, self.basis) @ self.weights


def fit(
    x: np.ndarray,
    y: np.ndarray,
    order: int = 150,
    gamma: float = 1.1,
    sigma2: float = 0.01,
    basis: str = "chebyshev",
    amplitude: float = 1.0,
) -> Fit:
    """The penalized fit to y (n,) or (n, m) at x (n,), with its evidence.

    Raises ValueError for gamma < 1, order < 0, sigma2 < 0, and for sigma2 = 0 when the kernel is
    singular.
    """
    sigma2 = _checks.number("sigma2", sigma2, 0)
    variances = prior_variances(order, gamma, amplitude)
    phi = features(x, order, basis)
    y = np.asarray(y, float)
    kernel = (phi * variances) @ phi.T
    lower = factor(kernel, sigma2)
    dual = cho_solve((lower, True), y)
    return Fit(order, basis, variances[:, None] * (phi.T @ dual) if y.ndim > 1
               else variances * (phi.T @ dual), evidence(lower, y, dual))  # fmt: skip


def factor(kernel: np.ndarray, noise: float) -> np.ndarray:
    """Lower Cholesky factor of kernel + noise I; ValueError when that is singular."""
    try:
        lower = cholesky(kernel + noise * np.eye(len(kernel)), lower=True)
        if noise == 0 and np.diag(lower).min() ** 2 < 1e-14 * np.diag(kernel).max():
            raise LinAlgError
    except LinAlgError:
        raise ValueError(
            f"noise variance {noise:g} with a singular kernel: add a jitter, for example "
            f"{1e-8 * np.diag(kernel).mean():.1e}"
        ) from None
    return lower


def evidence(lower: np.ndarray, y: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """Log marginal likelihood from a Cholesky factor, labels y (n, ...) and dual = A^-1 y."""
    fit_term = -0.5 * (y * dual).sum(0)
    return fit_term - np.log(np.diag(lower)).sum() - 0.5 * len(y) * np.log(2 * np.pi)


def least_squares(x: np.ndarray, y: np.ndarray, order: int, basis: str = "chebyshev") -> Fit:
    """Plain least squares of minimum norm: a hard bound on the order, and no preference below it.

    The evidence is nan: there is no prior.
    """
    weights = np.linalg.lstsq(features(x, order, basis), np.asarray(y, float), rcond=None)[0]
    return Fit(order, basis, weights, np.full(np.shape(y)[1:], np.nan))


def structure(kind: str, x: np.ndarray) -> np.ndarray:
    """The function behind the data: a cubic, a wavy one, or nothing at all."""
    x = np.asarray(x, float)
    if choice("kind", kind, KINDS) == "simple":
        return 0.5 - x + 1.2 * x**3
    if kind == "complex":
        return np.cos(9 * x) * np.exp(-x) + 0.5 * np.sin(4 * x)
    return np.zeros_like(x)


def draw(kind: str, x: np.ndarray, rng: np.random.Generator, size: int = 1) -> np.ndarray:
    """Labels at x (n,), (n, size): the structure with noise of 0.1, or unit normal noise."""
    scale = 1.0 if kind == "noise" else NOISE
    return structure(kind, x)[:, None] + scale * rng.standard_normal((size, len(x))).T


def prior_samples(
    x: np.ndarray, order: int, gamma: float, basis: str, rng: np.random.Generator, size: int = 5
) -> np.ndarray:
    """Functions drawn from the prior, at x (k,): (k, size)."""
    scales = np.sqrt(prior_variances(order, gamma))
    return features(x, order, basis) @ (scales[:, None] * rng.standard_normal((order + 1, size)))
