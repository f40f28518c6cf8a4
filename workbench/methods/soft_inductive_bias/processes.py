"""B and E: Gaussian-process regression on images, with one Cholesky for all outputs; symmetry.

A kernel k on images, invariant under a group G of pixel permutations (the RBF kernel is), gives
the invariant kernel kbar(x, x') = mean over g of k(x, g x'). Hard symmetry is kbar, none is k, and
the soft prior (1 - r) kbar + r k lets the evidence choose r.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve

from . import _checks
from .polynomials import evidence, factor

AMPLITUDE = 0.1
AMPLITUDES = (0.02, 0.05, 0.1, 0.2, 0.5)
MIXTURES = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
SYMMETRY_LENGTH, SYMMETRY_NOISE = 1.5, 1e-3


def rbf(a: np.ndarray, b: np.ndarray, length_scale: float = 1.0) -> np.ndarray:
    """exp(-|a - b|^2 / (2 length^2)) between rows of a (n, d) and b (m, d): (n, m)."""
    length_scale = _checks.number("length_scale", length_scale, 0, np.inf, open_ends=True)
    made = a @ b.T  # and all else in place: these are the largest arrays
    made *= -2
    made += (a * a).sum(1)[:, None]
    made += (b * b).sum(1)
    np.maximum(made, 0, out=made)
    made /= -2 * length_scale**2
    return np.exp(made, out=made)


@dataclass(frozen=True)
class Regression:
    """A GP after its labels: `lower` factor (n, n), `dual` (n, m), `evidence` of each output (m,).

    One factor serves all outputs and all corruptions of the labels.
    """

    lower: np.ndarray
    dual: np.ndarray
    evidence: np.ndarray

    def predict(self, cross: np.ndarray) -> np.ndarray:
        """Posterior means (k, m) from the kernel (k, n) between new inputs and training inputs."""
        return cross @ self.dual


def regression(kernel: np.ndarray, y: np.ndarray, noise: float) -> Regression:
    """Exact GP regression with kernel (n, n), outputs y (n, m) and noise variance.

    Raises ValueError for noise < 0 and for noise 0 with a singular kernel.
    """
    lower = factor(kernel, _checks.number("noise", noise, 0))
    return solved(lower, y)


def solved(lower: np.ndarray, y: np.ndarray) -> Regression:
    """The same from a factor that is there already."""
    dual = cho_solve((lower, True), y)
    return Regression(lower, dual, evidence(lower, y, dual))


def invariant_kernel(
    a: np.ndarray, b: np.ndarray, maps: np.ndarray, length_scale: float = SYMMETRY_LENGTH
) -> np.ndarray:
    """kbar (n, m): the mean of k(a, g b) over the group maps (|G|, d)."""
    return np.mean([rbf(a, b[:, g], length_scale) for g in maps], axis=0)


def soft_kernel(hard: np.ndarray, none: np.ndarray, r: float) -> np.ndarray:
    """(1 - r) kbar + r k, the residual pathway prior in function space; r in [0, 1]."""
    r = _checks.number("r", r, 0, 1)
    return (1 - r) * hard + r * none


@dataclass(frozen=True)
class Choice:
    """What the evidence chose, and what it was worth.

    evidence: (10 mixtures, 5 amplitudes), log marginal likelihood. accuracy: on test data, (10,),
    each with its best amplitude. hard, none, soft: test accuracy; r, amplitude: of the soft prior.
    """

    evidence: np.ndarray
    accuracy: np.ndarray
    r: float
    amplitude: float

    @property
    def hard(self) -> float:
        """Test accuracy at r = 0."""
        return float(self.accuracy[0])

    @property
    def none(self) -> float:
        """Test accuracy at r = 1."""
        return float(self.accuracy[-1])

    @property
    def soft(self) -> float:
        """Test accuracy at the r that the evidence chose."""
        return float(self.accuracy[MIXTURES.index(self.r)])


def choose_symmetry(
    train: tuple[np.ndarray, np.ndarray],
    cross: tuple[np.ndarray, np.ndarray],
    y: np.ndarray,
    test_labels: np.ndarray,
    noise: float = SYMMETRY_NOISE,
) -> Choice:
    """Mixture and amplitude by evidence: one eigendecomposition for each mixture.

    train, cross: (kbar, k) among training inputs (n, n) and from test to training inputs (k, n).
    y: (n, 10) centered one-hot labels.
    """
    found = np.zeros((len(MIXTURES), len(AMPLITUDES)))
    accuracy = np.zeros(len(MIXTURES))
    for i, r in enumerate(MIXTURES):
        values, vectors = np.linalg.eigh(soft_kernel(*train, r))
        values = np.maximum(values, 0)
        turned = vectors.T @ y
        spread = np.multiply.outer(AMPLITUDES, values) + noise  # (5, n)
        found[i] = -0.5 * (
            (turned**2).sum(1) / spread + y.shape[1] * np.log(2 * np.pi * spread)
        ).sum(1)
        best = int(found[i].argmax())
        dual = vectors @ (turned / spread[best][:, None])
        means = soft_kernel(*cross, r) @ dual
        accuracy[i] = (means.argmax(1) == test_labels).mean()
    i, j = np.unravel_index(found.argmax(), found.shape)
    return Choice(found, accuracy, MIXTURES[i], AMPLITUDES[j])
