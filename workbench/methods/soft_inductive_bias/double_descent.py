"""C: double descent without a network: minimum-norm least squares as the model grows.

C1 has many weak features of one signal, C2 random ReLU features of digits, and C4 an isotropic
design whose expected error has a closed form, in stacks of factorizations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import _checks, digits
from .dimension import effective_dimension

WEAK_DIMENSIONS = (5, 25, 50, 100, 150, 180, 190, 200, 210, 220, 250, 300, 400, 800, 1600)
RELU_DIMENSIONS = (
    25, 50, 100, 200, 300, 400, 450, 500, 550, 600, 800, 1000, 2000, 4000,
)  # fmt: skip
N_WEAK, ALPHA_WEAK = 200, 0.001  # examples, and alpha over the number of examples
EXACT_DIMENSIONS = (10, 30, 45, 60, 100, 200)
RCOND = 1e-11
EIGEN_RCOND = 1e-13  # of eigenvalues of a Gram matrix, which squares singular values


def minimum_norm(
    singular: tuple[np.ndarray, np.ndarray, np.ndarray], y: np.ndarray, ridge: float = 0.0
) -> np.ndarray:
    """Least squares weights of minimum norm, or ridge, from a thin SVD (u, s, vt), stacked or not.

    y: (..., n, m); returns (..., d, m). Directions below 1e-11 of the largest count as absent.
    """
    u, s, vt = singular
    keep = s > RCOND * s[..., :1]
    gain = np.where(keep, s / np.where(keep, s * s + ridge, 1.0), 0.0)
    return np.swapaxes(vt, -1, -2) @ (gain[..., None] * (np.swapaxes(u, -1, -2) @ y))


def ridge_weights(x: np.ndarray, y: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of the smaller Gram matrix of x (n, d), and the weights (d,) that fit y (n,).

    Faster than an SVD and less exact: for pictures. ridge 0: minimum norm, as `minimum_norm`.
    """
    tall = x.shape[1] < x.shape[0]
    values, vectors = np.linalg.eigh(x.T @ x if tall else x @ x.T)
    keep = values > EIGEN_RCOND * values[-1]
    shares = vectors.T @ (x.T @ y if tall else y)
    found = vectors @ np.where(keep, shares / np.where(keep, values + ridge, 1.0), 0.0)
    return values, found if tall else x.T @ found


@dataclass(frozen=True)
class WeakFeatures:
    """C1 for one number of features: test and train error, N_eff, each (seeds,)."""

    d: int
    test: np.ndarray
    train: np.ndarray
    dimension: np.ndarray

    @property
    def undetermined(self) -> np.ndarray:
        """Directions that n examples leave open: min(n, d) - N_eff."""
        return min(N_WEAK, self.d) - self.dimension


def weak_features(
    d: int, seeds: np.ndarray, n: int = N_WEAK, n_test: int = 500, alpha: float = ALPHA_WEAK
) -> WeakFeatures:
    """y ~ N(0, 1), every feature y + N(0, 1); minimum-norm fit, relative error |f - y| / |y|."""
    rows = [_weak_errors(int(seed), d, n, n_test, alpha) for seed in seeds]
    return WeakFeatures(d, *np.array(rows).T)


def _weak_errors(
    seed: int, d: int, n: int, n_test: int, alpha: float
) -> tuple[float, float, float]:
    rng = np.random.default_rng([seed, d])
    y, ty = rng.standard_normal(n), rng.standard_normal(n_test)
    x = y[:, None] + rng.standard_normal((n, d))
    tx = ty[:, None] + rng.standard_normal((n_test, d))
    singular = np.linalg.svd(x, full_matrices=False)
    w = minimum_norm(singular, y[:, None])[:, 0]
    return (
        float(np.linalg.norm(tx @ w - ty) / np.linalg.norm(ty)),
        float(np.linalg.norm(x @ w - y) / np.linalg.norm(y)),
        effective_dimension(singular[1] ** 2, alpha * n),
    )


@dataclass(frozen=True)
class ReluFeatures:
    """C2 for one seed and one d, factored once: errors for any ridge and any label noise at once.

    singular: thin SVD of the training features (n, d). rotated: test features times vt^T.
    """

    d: int
    singular: tuple[np.ndarray, np.ndarray, np.ndarray]
    rotated: np.ndarray  # (k, min(n, d))
    split: digits.Split
    seed: int

    def errors(self, ridge: float = 0.0, label_noise: float = 0.2) -> tuple[float, float]:
        """Train error on the noisy labels and test error, in a few milliseconds."""
        labels = digits.corrupted(self.split.clean_y, label_noise, self.seed)
        u, s, _ = self.singular
        keep = s > RCOND * s[0]
        shares = u.T @ digits.centered_one_hot(labels)
        gain = np.where(keep, s / np.where(keep, s * s + ridge, 1.0), 0.0)[:, None]
        train = u @ (s[:, None] * gain * shares)
        test = self.rotated @ (gain * shares)
        return (
            float((train.argmax(1) != labels).mean()),
            float((test.argmax(1) != self.split.test_y).mean()),
        )

    def dimension(self, alpha: float = ALPHA_WEAK) -> float:
        """N_eff of the features, alpha times the number of examples."""
        return effective_dimension(self.singular[1] ** 2, alpha * len(self.split.train_x))


def relu_features(d: int, seed: int, n: int = 500, n_test: int | None = None) -> ReluFeatures:
    """relu(W x) / sqrt(d) of centered digits, W ~ N(0, (2/8)^2) and the same for every larger d."""
    s = digits.split(n, seed, n_test=n_test)
    mean = s.train_x.mean(0)
    largest = max(RELU_DIMENSIONS)
    d = _checks.count("d", d, 1, largest)
    W = np.random.default_rng([seed, 4]).normal(0, 2 / 8, (largest, 64))[:d]

    def features(x: np.ndarray) -> np.ndarray:  # in place: tens of megabytes
        made = (x - mean) @ W.T
        np.maximum(made, 0, out=made)
        made /= np.sqrt(d)
        return made

    singular = np.linalg.svd(features(s.train_x), full_matrices=False)
    pieces = np.array_split(s.test_x, 4)
    rotated = np.concatenate([features(x) @ singular[2].T for x in pieces])
    return ReluFeatures(d, singular, rotated, s, seed)


def exact_error(n: int, d: int, sigma: float, norm: float = 1.0) -> float:
    """E |theta_hat - theta|^2 for an isotropic Gaussian design and minimum-norm least squares.

    inf for d = n - 1, n, n + 1, where it does not exist.
    """
    if d < n - 1:
        return sigma**2 * d / (n - d - 1)
    if d > n + 1:
        return norm**2 * (1 - n / d) + sigma**2 * n / (d - n - 1)
    return np.inf


def simulated_error(n: int, d: int, sigma: float, draws: int, seed: int) -> np.ndarray:
    """The same by simulation with |theta| = 1: (draws,) squared distances."""
    rng = np.random.default_rng([seed, d])
    x = rng.standard_normal((draws, n, d))
    theta = np.full(d, d**-0.5)
    y = x @ theta + sigma * rng.standard_normal((draws, n))
    errors = []
    for begin in range(0, draws, 50):  # the factors of all would need as much memory again
        some = slice(begin, begin + 50)
        singular = np.linalg.svd(x[some], full_matrices=False)
        errors.append(((minimum_norm(singular, y[some, :, None])[..., 0] - theta) ** 2).sum(1))
    return np.concatenate(errors)
