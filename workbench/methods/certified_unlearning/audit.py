"""Audits: adversaries that try to break a certificate, sampled and exact, and a white-box test.

A certificate can be wrong. Here two runs start at the two ends of the ball and follow legal
gradients that push them as far apart as clipping allows; how well a threshold tells their outputs
apart is a lower bound of epsilon that no correct certificate may be below. All in one dimension:
what is true of a number is true of a direction in the space of weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr

from .certificates import GradientClipping

CANDIDATES = 400  # thresholds tried on the first half
CAREFUL = 0.9999  # confidence with which one of them is chosen
CHUNK = 200_000


def scalar_adversary(
    certificate: GradientClipping, sigma: float, T: int | None, n: int,
    rng: np.random.Generator | int = 0,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """n outputs each of the runs from +C0 and from -C0 with g(x) = -C1 sign(x).

    Such a gradient has norm C1, so clipping leaves it, and it pushes the two runs apart.
    """
    rng = np.random.default_rng(rng)
    c = certificate
    T = int(c.steps() if T is None else T)
    rho, push = float(c.rho), float(c.gamma * c.C1)
    found = np.empty((2, n))
    for begin in range(0, n, CHUNK):
        x = np.empty((2, min(CHUNK, n - begin)))
        x[0], x[1] = c.C0, -c.C0
        for _ in range(T):
            x = rho * x + np.copysign(push, x) + sigma * rng.standard_normal(x.shape)
        found[:, begin : begin + x.shape[1]] = x
    return found[0], found[1]


def clopper_pearson(k: Any, n: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Exact interval of a probability after k successes in n trials, (low, high)."""
    k, n = np.asarray(k, float), np.asarray(n, float)
    tail = (1 - confidence) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail), 1.0)
    return low[()], high[()]


def _above(sample: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """How many of a sorted sample are above each threshold."""
    return len(sample) - np.searchsorted(sample, thresholds, side="right")


def lower_bound(plus: np.ndarray, minus: np.ndarray, delta: float) -> float:
    """A 95 % lower bound of epsilon from two samples, ln((TPR - delta) / FPR); at least 0.

    The threshold is chosen on one half of each sample, the rates and their Clopper-Pearson bounds
    are of the other half.
    """
    return float(bound_with_threshold(plus, minus, delta)[0])


def bound_with_threshold(plus: np.ndarray, minus: np.ndarray, delta: float) -> tuple[float, float]:
    """`lower_bound` and the threshold above which a run is said to come from +C0."""
    half, other = len(plus) // 2, len(minus) // 2
    first, second = np.sort(plus[:half]), np.sort(minus[:other])
    both = np.sort(np.concatenate([first, second]))
    places = np.linspace(0, len(both) - 1, CANDIDATES + 2).astype(int)[1:-1]
    # The best threshold lies where few of the other sample are left: look there more closely.
    tail = second[len(second) - np.unique(np.geomspace(1, len(second) / 2, CANDIDATES).astype(int))]
    thresholds = np.unique(np.concatenate([both[places], tail]))
    # Chosen by a more careful bound than the one reported: the best of hundreds is partly luck.
    bounds = _bounds(
        _above(first, thresholds), half, _above(second, thresholds), other, delta, CAREFUL
    )
    threshold = thresholds[int(np.argmax(bounds))]
    hits, alarms = int((plus[half:] > threshold).sum()), int((minus[other:] > threshold).sum())
    value = _bounds(hits, len(plus) - half, alarms, len(minus) - other, delta)
    return float(max(value, 0.0)), float(threshold)


def _bounds(hits: Any, n: int, alarms: Any, m: int, delta: float, confidence: float = 0.95) -> Any:
    low = clopper_pearson(hits, n, confidence)[0] - delta
    high = clopper_pearson(alarms, m, confidence)[1]
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low, 0.0)) - np.log(high)


def operating_points(
    plus: np.ndarray, minus: np.ndarray, count: int = 9
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors of threshold tests: type1 (k,), type2 (k,), boxes (k, 4) = low1, high1, low2, high2.

    Type I: "from +C0" is said of a run from -C0. Boxes by Clopper-Pearson, 95 % a side.
    """
    plus, minus = np.sort(plus), np.sort(minus)
    levels = np.linspace(0, 1, count + 2)[1:-1]
    thresholds = np.unique(np.concatenate([np.quantile(plus, levels), np.quantile(minus, levels)]))
    alarms, misses = _above(minus, thresholds), len(plus) - _above(plus, thresholds)
    low1, high1 = clopper_pearson(alarms, len(minus))
    low2, high2 = clopper_pearson(misses, len(plus))
    boxes = np.stack([low1, high1, low2, high2], 1)
    return alarms / len(minus), misses / len(plus), boxes


# Exact adversaries -------------------------------------------------------------------------------


def sign_adversary(certificate: GradientClipping, sigma: float, T: int | None, epsilon: Any) -> Any:
    """Exact delta at epsilon that the best threshold shows of the sign adversary, by quadrature.

    At most the certified delta, and equal to it for T = 1.
    """
    return _best(*_rates(certificate, sigma, T), epsilon)


def adversary_epsilon(
    certificate: GradientClipping, sigma: float, T: int | None, delta: float
) -> float:
    """Epsilon that the sign adversary shows at delta with infinitely many runs, by quadrature."""
    hits, alarms = _rates(certificate, sigma, T)
    use = (hits > delta) & (alarms > 1e-290)
    return float(max(np.log((hits[use] - delta) / alarms[use]).max(initial=0.0), 0.0))


def _rates(
    certificate: GradientClipping, sigma: float, T: int | None, nodes: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """P(x_T > threshold) on a fine grid of thresholds, from +C0 and from -C0.

    The densities are carried from step to step on Gauss-Legendre nodes of each half line, since
    the gradient jumps at 0; the last step is in closed form.
    """
    c = certificate
    T = int(c.steps() if T is None else T)
    rho, push = float(c.rho), float(c.gamma * c.C1)
    reach = c.C0 + T * push + 12 * sigma * np.sqrt(float(c.noise_sum(T)))
    x, weights = np.polynomial.legendre.leggauss(nodes)
    x = np.concatenate([(x - 1) / 2, (x + 1) / 2]) * reach
    weights = np.tile(weights, 2) * reach / 2
    thresholds = np.linspace(-reach, reach, 100_001 if T == 1 else 1201)

    def tails(start: float) -> np.ndarray:
        if T == 1:
            return ndtr((rho * start + np.copysign(push, start) - thresholds) / sigma)
        p = _normal(x - rho * start - np.copysign(push, start), sigma)
        moved = rho * x + np.copysign(push, x)
        if T > 2:
            kernel = _normal(x[:, None] - moved, sigma) * weights
            for _ in range(T - 2):
                p = kernel @ p
        return ndtr(np.maximum((moved - thresholds[:, None]) / sigma, -37.0)) @ (p * weights)

    return tails(c.C0), tails(-c.C0)


def _normal(x: np.ndarray, sigma: float) -> np.ndarray:
    # No denormal numbers, with which products are many times slower.
    exponent = np.minimum((x / sigma) ** 2 / 2, 700.0)
    return np.where(exponent < 690, np.exp(-exponent), 0.0) / (sigma * np.sqrt(2 * np.pi))


def _best(hits: np.ndarray, alarms: np.ndarray, epsilon: Any) -> Any:
    """Largest hits - e^epsilon alarms over thresholds, for each epsilon; at least 0."""
    epsilon = np.asarray(epsilon, float)
    values = hits - np.exp(epsilon)[..., None] * alarms
    return np.maximum(values.max(-1), 0.0)[()]


def two_point_chain(C2: float, sigma: float, T: int, epsilon: float) -> float:
    """Exact delta at epsilon of the worst chain of model clipping, x -> C2 sign(x), after T steps.

    From +C2 the output is N(C2, sigma^2), or with probability q N(-C2, sigma^2): q counts an odd
    number of sign flips in T - 1 steps. At most delta_T of the cascade, and equal for T = 1.
    """
    p = float(ndtr(-C2 / sigma))
    q = (1 - (1 - 2 * p) ** (T - 1)) / 2
    e = np.exp(epsilon)
    if 1 - q <= q * e:  # the ratio of the mixtures never reaches e^epsilon
        return 0.0
    # The ratio is e^epsilon where exp(2 C2 x / sigma^2) = ((1 - q) e - q) / (1 - q - q e).
    x = sigma**2 / (2 * C2) * np.log(((1 - q) * e - q) / (1 - q - q * e))
    right, left = ndtr((C2 - x) / sigma), ndtr((-C2 - x) / sigma)
    return float((1 - q) * right + q * left - e * (q * right + (1 - q) * left))


# White box and areas -----------------------------------------------------------------------------


def auc(positives: np.ndarray, negatives: np.ndarray) -> float:
    """Probability that a positive has the higher score, ties for a half (Mann-Whitney)."""
    scores = np.concatenate([positives, negatives])
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    k, m = len(positives), len(negatives)
    return float((ranks[inverse[:k]].sum() - k * (k + 1) / 2) / (k * m))


def auc_interval(area: float, k: int, m: int, z: float = 1.96) -> tuple[float, float]:
    """95 % interval of an area from k positives and m negatives (Hanley and McNeil, 1982)."""
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (k - 1) * (q1 - area**2) + (m - 1) * (q2 - area**2)
    width = z * np.sqrt(max(variance, 0.0) / (k * m))
    return max(area - width, 0.0), min(area + width, 1.0)
