"""Certificates: how much noise unlearning needs, and what a noisy phase has guaranteed so far.

Two runs of the same noisy fine-tuning, one from the model that saw the deleted data and one from a
point of the same ball that did not, become hard to tell apart. Gradient clipping counts this by
shifted divergence, model clipping by the contraction of a clipped Gaussian step; neither assumes
anything of the loss. Symbols as in the paper: radius C0 of the start, C1 of a gradient, C2 of the
model; step size gamma, regularization lam, rho = 1 - gamma lam; noise sigma; T noisy steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, inf, log
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import log_ndtr, ndtr

from workbench.numerics.checks import choice

from .accounting import check_delta, check_epsilon, epsilon_of, mu_of, theta

KINDS = ("constant", "decreasing")
MAX_STEPS = 10_000  # of gradient clipping, when given
LIMIT = 100_000  # steps in which model clipping must reach delta


def above_zero(**values: Any) -> None:
    """ValueError in one line unless all are finite and above 0."""
    for name, value in values.items():
        if not (np.all(np.asarray(value) > 0) and np.all(np.isfinite(value))):
            raise ValueError(f"{name} = {value}; allowed are finite numbers above 0")


def not_negative(**values: Any) -> None:
    """ValueError in one line unless all are finite and at least 0."""
    for name, value in values.items():
        if not (np.all(np.asarray(value) >= 0) and np.all(np.isfinite(value))):
            raise ValueError(f"{name} = {value}; allowed are finite numbers from 0")


def _check_overshoot(gamma: Any, lam: Any) -> None:
    product = np.max(np.asarray(gamma) * lam)
    if product >= 1:
        raise ValueError(
            f"gamma*lambda = {product:g} must be below 1: the step would overshoot the regulariser"
        )


def _check_steps(T: Any) -> Any:
    T = np.asarray(T)
    if not (np.all(T == np.round(T)) and np.all(T >= 1)):
        raise ValueError(f"T = {T}; allowed are integers from 1 to {MAX_STEPS}")
    return T.astype(float)


def _geometric(x: Any, T: Any) -> Any:
    """Sum of (1 - x)^k for k < T, exact as x goes to 0."""
    x = np.asarray(x, float)
    safe = np.where(x > 0, x, 1.0)
    with np.errstate(divide="ignore"):
        powers = -np.expm1(T * np.log1p(-np.minimum(safe, 1.0)))
    return np.where(x > 0, powers / safe, T)[()]


@dataclass(frozen=True)
class GradientClipping:
    """Noisy fine-tuning with clipped gradients, from a start clipped to C0; fields may be arrays.

    x <- x - gamma (clip(gradient, C1) + lam x) + N(0, sigma^2 I), T times.
    """

    C0: Any
    C1: Any
    gamma: Any
    lam: Any

    title: ClassVar[str] = "gradient clipping"

    def __post_init__(self) -> None:
        above_zero(C0=self.C0, gamma=self.gamma)
        not_negative(C1=self.C1, lam=self.lam)
        _check_overshoot(self.gamma, self.lam)

    @property
    def rho(self) -> Any:
        """How much of a distance a step keeps."""
        return 1 - np.asarray(self.gamma) * self.lam

    def steps(self) -> Any:
        """The automatic T: C0 / (gamma C1) steps, or fewer with regularization; at least 1."""
        C0, C1, gamma, lam = (
            np.asarray(v, float) for v in (self.C0, self.C1, self.gamma, self.lam)
        )
        if np.any(C1 == 0):
            raise ValueError("C1 = 0 needs an explicit T: nothing pushes the two runs apart")
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = C0 / (gamma * C1)
            short = np.log(2 * lam * C0 / C1) / (gamma * lam)
        found = np.where((short > 0) & (short < plain), short, plain)
        found = np.maximum(np.ceil(found - 1e-9), 1)  # rounding must not add a step
        return int(found) if found.ndim == 0 else found.astype(int)

    def shift(self, T: Any = None) -> Any:
        """Delta_T: how far apart two runs with the same noise can be after T steps."""
        T = _check_steps(self.steps() if T is None else T)
        x = np.asarray(self.gamma) * self.lam
        return 2 * np.asarray(self.C0) * (1 - x) ** T + 2 * np.asarray(
            self.gamma
        ) * self.C1 * _geometric(x, T)

    def noise_sum(self, T: Any = None) -> Any:
        """S_T: variance of the final noise over sigma^2, the sum of rho^(2k) for k < T."""
        T = _check_steps(self.steps() if T is None else T)
        x = np.asarray(self.gamma) * self.lam
        return _geometric(x * (2 - x), T)

    def mu(self, sigma: Any, T: Any = None) -> Any:
        """The released model is mu-GDP with Delta_T / (sigma sqrt(S_T))."""
        with np.errstate(divide="ignore"):
            return self.shift(T) / (np.asarray(sigma, float) * np.sqrt(self.noise_sum(T)))

    def final_noise(self, mu: Any, T: Any = None) -> Any:
        """Standard deviation of the noise in a coordinate of the released model, Delta_T / mu."""
        return self.shift(T) / mu

    def sigma(self, mu: Any, T: Any = None) -> Any:
        """Noise of each step that makes the released model mu-GDP."""
        return self.final_noise(mu, T) / np.sqrt(self.noise_sum(T))

    def schedule(self, mu: float, T: int | None = None, kind: str = "constant") -> np.ndarray:
        """Noise of each of T steps (T,): constant, or decreasing as rho^-(T-1-t).

        The decreasing one gives each step the same part of the final variance. It is scaled by
        its own certificate (`per_step`), so that the guarantee is exactly mu.
        """
        choice("kind", kind, KINDS)
        T = int(self.steps() if T is None else T)
        if kind == "constant":
            return np.full(T, float(self.sigma(mu, T)))
        shape = float(self.rho) ** -np.arange(T - 1, -1, -1.0)
        return shape * (self.certificate(shape).mu / mu)

    def certificate(self, sigmas: Sequence[float]) -> PerStep:
        """The certificate of steps with these noises (T,), the rest as it is."""
        T = len(sigmas)
        return per_step(
            2 * self.C0, [float(self.rho)] * T, [2 * self.gamma * self.C1] * T, sigmas
        )  # fmt: skip

    def distances(self, T: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The proof in two lines: shifts z (T + 1,) from 2 C0 down to 0, and a (T,) absorbed.

        z[t + 1] = rho z[t] + 2 gamma C1 - a[t], with a[t] proportional to rho^(T - t).
        """
        T = int(self.steps() if T is None else T)
        rho = float(self.rho)
        weights = rho ** np.arange(T - 1, -1, -1.0)
        absorbed = float(self.shift(T)) * weights / float(self.noise_sum(T))
        z = [2 * float(self.C0)]
        for a in absorbed:
            z.append(rho * z[-1] + 2 * float(self.gamma) * float(self.C1) - a)
        return np.array(z), absorbed

    def survival(self, mu: Any, d: Any, T: Any = None) -> Any:
        """Old model over noise in the released model: C0 rho^T / (sqrt(d) Delta_T / mu).

        Of what steps leave of the start itself; with what gradients may carry on, at most
        `survival_bound`.
        """
        T = self.steps() if T is None else T
        return np.asarray(self.C0) * self.rho**T / (np.sqrt(d) * self.final_noise(mu, T))


def survival_bound(mu: Any, d: Any) -> Any:
    """Signal-to-noise ratio that what is left of the old model never exceeds, mu / (2 sqrt(d)).

    Of gradient clipping and output perturbation: with the same noise and batches, two runs end at
    most Delta_T apart, so whatever the start was, directly or through the gradients, moves the
    model by Delta_T / 2 about the middle, against noise of length sqrt(d) Delta_T / mu. Model
    clipping has a ratio of its own, `ModelClipping.survival`.
    """
    return np.asarray(mu) / (2 * np.sqrt(d))


class PerStep(NamedTuple):
    """Certificate of steps that differ. shift: Delta; noise_sum: S; mu: the guarantee.

    mu is Delta / sqrt(S), unless noise comes before there is distance to absorb: then more.
    """

    shift: float
    noise_sum: float
    mu: float


def per_step(
    start: float, rho: Sequence[float], shifts: Sequence[float], sigmas: Sequence[float]
) -> PerStep:
    """The certificate of T steps with own contraction, shift and noise, each (T,).

    start: distance before the first step, 2 C0. shifts: 2 gamma C1 of each step.
    A step can absorb only distance that is there, so what is absorbed by step t is at most what was
    added by then; where the straight split would break this, the best allowed one is the greatest
    convex minorant of the distances over the noise.
    """
    rho, shifts, sigmas = (np.asarray(v, float) for v in (rho, shifts, sigmas))
    if not len(rho) == len(shifts) == len(sigmas):
        raise ValueError("rho, shifts and sigmas must have one value for each step")
    if len(rho) == 0:
        return PerStep(start, 0.0, inf if start > 0 else 0.0)
    later = np.append(np.cumprod(rho[::-1])[::-1][1:], 1.0)  # product of the rho after each step
    added = start * rho.prod() + np.cumsum(shifts * later)
    variance = np.cumsum((sigmas * later) ** 2)
    total, noise = float(added[-1]), float(variance[-1])
    x, y = [0.0], [0.0]
    for v, a in zip(variance, added, strict=True):
        while len(x) > 1 and (y[-1] - y[-2]) * (v - x[-1]) >= (a - y[-1]) * (x[-1] - x[-2]):
            x.pop()
            y.pop()
        x.append(float(v))
        y.append(float(a))
    squares = 0.0
    for width, rise in zip(np.diff(x), np.diff(y), strict=True):
        squares += rise**2 / width if width > 0 else (inf if rise > 0 else 0.0)
    return PerStep(total, noise, float(np.sqrt(squares)))


# Model clipping -----------------------------------------------------------------------------------


class Cascade(NamedTuple):
    """deltas (T + 1,), delta_0 first; epsilons (T,): the local epsilon of each step; weak (T + 1,):
    the bound by total variation alone."""

    deltas: np.ndarray
    epsilons: np.ndarray
    weak: np.ndarray

    @property
    def steps(self) -> int:
        """T."""
        return len(self.epsilons)


def cascade(
    C2: float, sigma: float, epsilon: float, delta: float, C0: float | None = None,
    sigma0: float | None = None, limit: int = LIMIT, steps: int | None = None,
) -> Cascade:  # fmt: skip
    """delta_t of model clipping at epsilon, to the first that is at most delta, or after `steps`.

    Each step multiplies delta_t by theta of the local epsilon ln(1 + (e^epsilon - 1) / delta_t).
    C0, sigma0: of a clipped and noised start, else delta_0 is 1. Raises ValueError if delta is not
    reached within `limit` steps.
    """
    above_zero(C2=C2, sigma=sigma)
    check_epsilon(epsilon)
    check_delta(delta)
    r = 2 * C2 / sigma
    first = 1.0
    if C0 is not None or sigma0 is not None:
        above_zero(C0=C0 or 0, sigma0=sigma0 or 0)
        first = float(theta(epsilon, 2 * C0 / sigma0))
    factor = float(2 * ndtr(r / 2) - 1)
    log_excess = epsilon + log(-expm1(-epsilon))  # ln(e^epsilon - 1)
    deltas, epsilons = [first], []
    for _ in range(limit if steps is None else steps):
        now = deltas[-1]
        if steps is None and (now <= delta or factor == 1.0):
            break
        if now == 0.0:
            local, after = inf, 0.0
        else:
            x = log_excess - log(now)
            local = x + np.log1p(exp(-x)) if x > 0 else np.log1p(exp(x))
            above, below = log_ndtr(r / 2 - local / r), local + log_ndtr(-r / 2 - local / r)
            after = now * -exp(above) * expm1(min(below - above, 0.0))
        deltas.append(after)
        epsilons.append(float(local))
    if steps is None and deltas[-1] > delta:
        raise ValueError(
            f"sigma/C2 too small: per-step factor {factor:.5f} (delta = {delta:g} is not reached "
            f"within {limit:,} steps at sigma/C2 = {sigma / C2:g})"
        )
    weak = first * factor ** np.arange(len(deltas))
    return Cascade(np.array(deltas), np.array(epsilons), weak)


def cascade_path(
    ratio: Any, epsilon: float, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cascade of a fixed number of steps from delta_0 = 1 for many ratios C2 / sigma (k,).

    deltas (steps + 1, k), local epsilons (steps, k), weak bounds (steps + 1, k).
    """
    above_zero(ratio=ratio)
    check_epsilon(epsilon)
    r = 2 * np.atleast_1d(np.asarray(ratio, float))
    log_excess = epsilon + log(-expm1(-epsilon))
    deltas, epsilons = [np.ones_like(r)], []
    for _ in range(steps):
        with np.errstate(divide="ignore"):
            epsilons.append(np.logaddexp(0.0, log_excess - np.log(deltas[-1])))
        deltas.append(deltas[-1] * theta(epsilons[-1], r))
    weak = (2 * ndtr(r / 2) - 1) ** np.arange(steps + 1)[:, None]
    return np.array(deltas), np.array(epsilons).reshape(steps, len(r)), weak


@dataclass(frozen=True)
class ModelClipping:
    """Noisy fine-tuning with a clipped model: x <- clip(x - gamma (g + lam x), C2) + noise sigma.

    C0, sigma0: of the optional clipped and noised start.
    """

    C2: float
    sigma: float
    gamma: float = 1.0
    lam: float = 0.0
    C0: float | None = None
    sigma0: float | None = None

    title: ClassVar[str] = "model clipping"

    def __post_init__(self) -> None:
        above_zero(C2=self.C2, sigma=self.sigma, gamma=self.gamma)
        not_negative(lam=self.lam)
        if (self.C0 is None) != (self.sigma0 is None):
            raise ValueError("C0 and sigma0 describe a noised start together: give both or none")

    @property
    def radius(self) -> float:
        """Of the ball in which a step leaves the model before its noise."""
        return self.C2

    def cascade(self, epsilon: float, delta: float, T: int | None = None) -> Cascade:
        """delta_t to the first that is at most delta, or of exactly T steps."""
        return cascade(self.radius, self.sigma, epsilon, delta, self.C0, self.sigma0, steps=T)

    def steps(self, epsilon: float, delta: float) -> int:
        """The least T whose model is (epsilon, delta)-unlearned."""
        return self.cascade(epsilon, delta).steps

    def epsilon(self, delta: float, T: int) -> float:
        """The least epsilon that T steps guarantee at delta; infinite for none."""
        check_delta(delta)
        if T == 0 and self.C0 is None:
            return inf
        # One step alone, or the start alone, guarantees no less than all of them.
        r = 2 * self.radius / self.sigma if T else 2 * self.C0 / self.sigma0
        low, high = 0.0, float(epsilon_of(r, delta))
        for _ in range(50):
            middle = (low + high) / 2
            if middle < 1e-12:
                break
            enough = self.cascade(middle, delta, T).deltas[-1] <= delta
            low, high = (low, middle) if enough else (middle, high)
        return high

    def survival(self, d: Any) -> Any:
        """Old model over noise in the released model: at most C2 against sigma sqrt(d).

        For noise before the projection it is the ratio there.
        """
        return self.radius / (self.sigma * np.sqrt(d))

    @classmethod
    def calibrated(cls, C2: float, epsilon: float, delta: float, T: int, **rest: float) -> Self:
        """The least noise with which T steps are enough; `rest` are the other fields."""
        made = cls(C2, 1.0, **rest)
        # One step of this much noise is enough.
        low, high = 0.0, 2 * made.radius / float(mu_of(epsilon, delta))
        for _ in range(60):
            middle = (low + high) / 2
            enough = replace(made, sigma=middle).cascade(epsilon, delta, T).deltas[-1] <= delta
            low, high = (low, middle) if enough else (middle, high)
        return replace(made, sigma=high)


@dataclass(frozen=True)
class NoiseFirst(ModelClipping):
    """Model clipping as in the official code: gradient clipped to C1, noise before the projection.

    x <- clip(x - gamma (clip(g, C1) + lam x) + noise, C2), from a start clipped to C2. Before the
    noise the model is in a ball of radius C2 + gamma C1.
    """

    C1: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        above_zero(C1=self.C1)
        if self.C0 is not None:
            raise ValueError(f"C0 = {self.C0}; with noise first the start is clipped to C2 alone")
        _check_overshoot(self.gamma, self.lam)

    @property
    def radius(self) -> float:
        """C2 + gamma C1."""
        return self.C2 + self.gamma * self.C1


@dataclass(frozen=True)
class OutputPerturbation:
    """Clip the model to C0 and add Gaussian noise once."""

    C0: float

    title: ClassVar[str] = "output perturbation"

    def __post_init__(self) -> None:
        above_zero(C0=self.C0)

    def sigma(self, mu: Any) -> Any:
        """Noise that makes the released model mu-GDP, 2 C0 / mu."""
        return 2 * np.asarray(self.C0) / mu

    def mu(self, sigma: Any) -> Any:
        """2 C0 / sigma."""
        with np.errstate(divide="ignore"):
            return 2 * np.asarray(self.C0) / np.asarray(sigma, float)
