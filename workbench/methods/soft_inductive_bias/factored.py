"""What the live page computes once, so that its sliders are answered by products alone.

Closed forms of the figures that are dragged: A2, B, C1, C2, C4, E and the kernel of F.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from scipy.linalg import cho_solve, cholesky, eigh

from workbench.steps import Step, Steps, part, run

from . import (
    closed_forms,
    digits,
    double_descent,
    experiments,
    networks,
    processes,
    representation,
)
from .closed_forms import PLOT, single
from .dimension import effective_dimension

LIVE_D = (25, 50, 100, 200, 300, 400, 450, 500, 550, 600, 800, 1200, 2000)
LIVE_TEST = 500  # test digits of the live double descent
RHO = np.linspace(0, 1, 11)
SYMMETRY_SIZE = 100  # training digits of the live symmetry tasks, at first
SAMPLE_SIZES = (4, 8, 16, 32, 64, 128)
WEAK_D = (2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 140, 170, 220, 300, 500, 800)
WEAK_N = 120  # largest number of examples of C1
RATIOS = (0.2, 0.6, 0.9, 1.2, 2.0, 4.0)  # d / n of the simulation of C4
INDEX_SIZES = (25, 50, 100, 200, 400, 800)
ALONG = np.linspace(-3, 3, 61)  # places along the direction of F
CACHED = Path(__file__).parent / "data" / "widths.npz"
CACHED_DATA = (0, 0.2)  # seed and label noise
CACHED_WIDTHS = (2, 4, 6, 8, 12, 24, 64, 256)  # those of the default study


# A2 ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """A2 on one draw. x, y: (n,). truth, fits: at PLOT. errors: test RMSE at SAMPLE_SIZES.

    evidence: of soft 15, (gammas, amplitudes).
    """

    x: np.ndarray
    y: np.ndarray
    truth: np.ndarray
    fits: dict[str, np.ndarray]
    errors: dict[str, np.ndarray]
    evidence: np.ndarray


def sample(truth: str, n: int, noise: float, seed: int, basis: str) -> Sample:
    """The four models on the first n examples of one draw, and on as many as SAMPLE_SIZES say."""
    rng = np.random.default_rng([seed, 14])
    f = closed_forms.truth_of(truth, rng)
    x = rng.uniform(-1, 1, SAMPLE_SIZES[-1])
    y = f(x) + noise * rng.standard_normal(len(x))
    fits, evidence = closed_forms.guesses_of(x[:n], y[:n], PLOT, basis, noise)
    at = f(PLOT)
    by_size = [closed_forms.guesses_of(x[:k], y[:k], PLOT, basis, noise)[0] for k in SAMPLE_SIZES]
    errors = {
        name: np.array([np.sqrt(((found[name] - at) ** 2).mean()) for found in by_size])
        for name in fits
    }
    return Sample(x[:n], y[:n], at, fits, errors, evidence)


# B ----------------------------------------------------------------------------------------------


class Labels:
    """The Gaussian process of the page: eigenvectors once, then any noise and any labels at once.

    cross: the kernel (k, n) from test to training images.
    """

    def __init__(self, seed: int, length_scale: float, n: int = experiments.LABEL_DIGITS):
        self.seed = seed
        self.split = digits.split(n, seed)
        kernel, self.cross = (
            processes.AMPLITUDE * processes.rbf(x, self.split.train_x, length_scale)
            for x in (self.split.train_x, self.split.test_x)
        )
        values, self._vectors = eigh(kernel, overwrite_a=True, check_finite=False)
        self._values = np.maximum(values, 0)
        self._test = self.cross @ self._vectors
        clean = self.split.clean_y
        self._labels = np.array([digits.corrupted(clean, rho, seed) for rho in RHO])
        self._targets = np.concatenate([digits.centered_one_hot(y) for y in self._labels], 1)
        self._shares = self._vectors.T @ self._targets

    def curves(self, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Train and test accuracy and evidence per example at the shares RHO."""
        spread = self._values + noise
        dual = self._shares / spread[:, None]
        # On training inputs the mean is y - noise A^-1 y.
        train = self._targets - noise * (self._vectors @ dual)
        test = self._test @ dual
        shape = (-1, len(RHO), digits.CLASSES)
        fits = train.reshape(shape).argmax(2).T == self._labels
        hits = test.reshape(shape).argmax(2).T == self.split.test_y
        each = -0.5 * ((self._shares * dual).sum(0) + np.log(2 * np.pi * spread).sum())
        evidence = each.reshape(len(RHO), -1).sum(1) / len(spread)
        return fits.mean(1), hits.mean(1), evidence

    def mistakes(self, rho: float, noise: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Test digits read wrongly (k,), what is read of all, and the training labels given."""
        labels = digits.corrupted(self.split.clean_y, rho, self.seed)
        shares = self._vectors.T @ digits.centered_one_hot(labels)
        guess = (self._test @ (shares / (self._values + noise)[:, None])).argmax(1)
        return np.flatnonzero(guess != self.split.test_y), guess, labels


def label_steps(seed: int, length_scale: float, n: int) -> Steps[Labels]:
    """The process of the page, factored."""
    yield Step(0.0, f"eigenvectors of {n} digits")
    return single(Labels, seed, length_scale, n)


# C ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """Errors of least squares by number of features d, with min(n, d) - N_eff, (k,) each."""

    n: int
    d: np.ndarray
    train: np.ndarray
    test: np.ndarray
    undetermined: np.ndarray


class Weak:
    """C1: one draw of the largest size, of which any n examples and d features are used."""

    def __init__(self, seed: int, n_test: int = 300):
        rng = np.random.default_rng([seed, 15])
        self.y, self.test_y = rng.standard_normal(WEAK_N), rng.standard_normal(n_test)
        self._noise = rng.standard_normal((WEAK_N, WEAK_D[-1]))
        self._test_noise = rng.standard_normal((n_test, WEAK_D[-1]))

    def errors(self, n: int, signal: float, ridge: float, alpha: float) -> Errors:
        """Relative errors with features signal * y + N(0, 1); alpha: over n, as in the study."""
        y, ty = self.y[:n], self.test_y
        x = signal * y[:, None] + self._noise[:n]
        tx = signal * ty[:, None] + self._test_noise
        dimensions = sorted({*WEAK_D, n})
        rows = []
        for d in dimensions:
            values, w = double_descent.ridge_weights(x[:, :d], y, ridge)
            train, test = x[:, :d] @ w - y, tx[:, :d] @ w - ty
            left = min(n, d) - effective_dimension(values, alpha * n)
            rows.append((np.linalg.norm(train) / np.linalg.norm(y),
                         np.linalg.norm(test) / np.linalg.norm(ty), left))  # fmt: skip
        return Errors(n, np.array(dimensions), *np.array(rows).T)


class Isotropic:
    """C4 for n examples: simulated terms of the error, of which sigma and |theta| are factors.

    d: (k,). bias, variance: (k, draws); the error is |theta|^2 bias + sigma^2 variance, since what
    the data do not see is orthogonal to what noise does.
    """

    def __init__(self, n: int, seed: int, draws: int = 30):
        self.n = n
        rng = np.random.default_rng([seed, 16])
        self.d = np.array([round(n * ratio) for ratio in RATIOS])
        bias, variance = [], []
        for d in self.d:
            x = rng.standard_normal((draws, n, d))
            noise = rng.standard_normal((draws, n, 1))
            if d < n:
                square = x.transpose(0, 2, 1)
                found = np.linalg.solve(square @ x, square @ noise)
                bias.append(np.zeros(draws))
                variance.append((found**2).sum((1, 2)))
            else:
                seen = x[:, :, :1]  # any direction of theta is as good as the first
                both = np.linalg.solve(
                    x @ x.transpose(0, 2, 1), np.concatenate([seen, noise], 2)
                )  # fmt: skip
                bias.append(1 - (seen[..., 0] * both[..., 0]).sum(1))
                variance.append((noise[..., 0] * both[..., 1]).sum(1))
        self.bias, self.variance = np.array(bias), np.array(variance)

    def terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """d from 1 to 5 n, and the two terms of the closed form; nan where it does not exist."""
        d = np.unique(np.geomspace(1, 5 * self.n, 300).round())
        exact = [double_descent.exact_error(self.n, int(v), 1.0, 0.0) for v in d]
        noise = np.where(np.isfinite(exact), exact, np.nan)
        return d, np.where(d > self.n, 1 - self.n / d, 0.0), noise


def cached_widths(seed: int, label_noise: float) -> dict[int, tuple[float, np.ndarray, float]]:
    """C3 as trained beforehand, by width: test loss, curvatures and train error; {} for other data.

    `write_cached_widths` has made the file.
    """
    if (seed, label_noise) != CACHED_DATA:
        return {}
    with np.load(CACHED) as file:
        rows = zip(*(file[k] for k in ("test", "eigenvalues", "train_error")), strict=True)
        return {
            int(h): (float(t), v.astype(float), float(e))
            for h, (t, v, e) in zip(file["widths"], rows, strict=True)
        }


def write_cached_widths() -> None:
    """Train the networks of the default study and keep what the page draws of them."""
    seed, label_noise = CACHED_DATA
    made = run(experiments.width_steps(CACHED_WIDTHS, [seed], label_noise, alpha=10.0))
    curvatures = np.array([made.eigenvalues[h][0] for h in made.widths], np.float32)
    np.savez_compressed(
        CACHED, widths=made.widths, test=made.test[0], train_error=made.train_error[0],
        eigenvalues=np.maximum(curvatures, 0),
    )  # fmt: skip


def feature_steps(seed: int, n: int) -> Steps[list[double_descent.ReluFeatures]]:
    """C2: random features of each size of the page, factored."""
    made: list[double_descent.ReluFeatures] = []
    for i, d in enumerate(LIVE_D):
        made.append(single(double_descent.relu_features, d, seed, n, LIVE_TEST))
        yield Step((i + 1) / len(LIVE_D), f"{d} features", list(made))
    return made


def relu_errors(
    features: list[double_descent.ReluFeatures], ridge: float, label_noise: float
) -> np.ndarray:
    """Train and test errors of all sizes, (k, 2)."""
    return np.array([f.errors(ridge, label_noise) for f in features])


# E ----------------------------------------------------------------------------------------------


def choice_steps(
    seed: int, group: str, n: int = SYMMETRY_SIZE
) -> Steps[dict[str, processes.Choice]]:
    """One draw of each task with this group in the prior."""
    found: dict[str, processes.Choice] = {}
    for i, task in enumerate(digits.TASKS):
        found[task] = single(closed_forms.symmetric_choice, task, n, seed, group)
        yield Step((i + 1) / len(digits.TASKS), task, dict(found))
    return found


# F ----------------------------------------------------------------------------------------------


class Direction:
    """F: data that depend on one direction of twenty; kernel ridge at any setting at once."""

    def __init__(self, seed: int, n: int = INDEX_SIZES[-1]):
        x, self.y, tx, self.test_y, self.u = representation.single_index(n, seed)
        self._along = ALONG[:, None] * self.u
        self.truth = np.sin(2 * ALONG) + ALONG / 2
        self._squares = [_squares(a, x) for a in (x, tx, self._along)]

    def kernel(self, n: int, length: float, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """The function along u with n examples (61,), and relative test errors at INDEX_SIZES."""
        inner, cross, along = (np.exp(s / (-2 * length**2)) for s in self._squares)

        def dual(k: int) -> np.ndarray:
            lower = cholesky(inner[:k, :k] + ridge * np.eye(k), lower=True, check_finite=False)
            return cho_solve((lower, True), self.y[:k] - self.y[:k].mean())

        def error(k: int) -> float:
            guess = self.y[:k].mean() + cross[:, :k] @ dual(k)
            return float(((guess - self.test_y) ** 2).mean() / self.test_y.var())

        curve = self.y[:n].mean() + along[:, :n] @ dual(n)
        return curve, np.array([error(k) for k in INDEX_SIZES])


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * a @ b.T, 0)


@dataclass
class Learner:
    """F: a network while it turns to the direction; rows of curves: step, loss, alignment.

    along: its function at ALONG. error: relative test error, nan until it is trained.
    """

    n: int
    curves: list[tuple[int, float, float]] = field(default_factory=list)
    along: np.ndarray = field(default_factory=lambda: np.full(len(ALONG), np.nan))
    error: float = np.nan


def learner_steps(n: int, seed: int) -> Steps[Learner]:
    """Train the network of F on n examples, with its function and alignment as it goes."""
    drawn = representation.single_index(n, seed)
    found, u = Learner(n), drawn[4]
    places = networks.tensor(ALONG[:, None] * u)[None]
    sizes = representation.SIZES

    def look(trained: networks.Trained) -> Learner:
        with torch.no_grad():
            found.along = networks.forward(trained.w, places, sizes)[0, :, 0].numpy()
        at, losses = trained.curves[-1]
        turned = float(representation.alignment(trained.w, u[None])[0])
        found.curves.append((at, float(losses[0]), turned))
        return found

    trained = yield from part(representation.network_steps([drawn], [seed]), 0, 1, data=look)
    look(trained)
    found.error = float(representation.network_errors(trained.w, [drawn])[0])
    return found
