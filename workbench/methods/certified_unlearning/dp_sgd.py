"""DP-SGD from the start, the baseline whose noise grows with the number of deleted examples.

Poisson batches with rate q, each example's gradient clipped to C, noise z C on their sum. The
accountant is Renyi differential privacy of the sampled Gaussian mechanism at integer orders 2 to
256; a group of k examples needs epsilon / k for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import torch
from scipy.special import gammaln, logsumexp
from torch import Tensor

from . import networks, streams
from .accounting import check_delta, check_epsilon
from .data import Splits

ORDERS = np.arange(2, 257)


@cache
def _log_binomials() -> tuple[np.ndarray, np.ndarray]:
    """j (orders, 257) as floats and ln of a over j, minus infinity beyond j = a."""
    j = np.arange(ORDERS[-1] + 1.0)[None]
    a = ORDERS[:, None].astype(float)
    inside = j <= a
    k = np.where(inside, a - j, 0.0)
    return k, np.where(inside, gammaln(a + 1) - gammaln(j + 1) - gammaln(k + 1), -np.inf)


def renyi(z: float, q: float) -> np.ndarray:
    """Renyi divergence of one step at ORDERS (orders,), for multiplier z and rate q in (0, 1]."""
    a = ORDERS.astype(float)
    if q == 1.0:
        return a / (2 * z**2)
    k, log_binomial = _log_binomials()
    j = np.arange(ORDERS[-1] + 1.0)
    terms = log_binomial + k * np.log1p(-q) + j * np.log(q) + j * (j - 1) / (2 * z**2)
    return logsumexp(terms, axis=1) / (a - 1)


def epsilon_of(z: float, q: float, steps: int, delta: float) -> float:
    """Epsilon at delta of so many steps: the best integer order."""
    check_delta(delta)
    a = ORDERS.astype(float)
    values = steps * renyi(z, q) + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1)
    return float(max(values.min(), 0.0))


def of_one(epsilon: float, delta: float, group: int) -> tuple[float, float]:
    """(epsilon, delta) of one example with which a group of this size has (epsilon, delta)."""
    one = epsilon / group
    # (e^one - 1) / (e^epsilon - 1), without overflow.
    ratio = np.exp(one - epsilon) * np.expm1(-one) / np.expm1(-epsilon)
    return one, float(delta * ratio)


def multiplier(epsilon: float, delta: float, q: float, steps: int, group: int = 1) -> float:
    """The least z with which a group of examples has (epsilon, delta).

    ValueError where integer orders cannot certify it with any noise.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    one, small = of_one(epsilon, delta, group)
    low, high = 0.0, 1.0
    while small <= 0 or epsilon_of(high, q, steps, small) > one:
        low, high = high, 2 * high
        if small <= 0 or high > 1e6:
            raise ValueError(
                f"epsilon = {epsilon:g} for a group of {group} examples is beyond the accountant "
                f"of DP-SGD: epsilon = {one:.3g} and delta = {small:.3g} for each"
            )
    for _ in range(40):
        middle = (low + high) / 2
        enough = epsilon_of(middle, q, steps, small) <= one
        low, high = (low, middle) if enough else (middle, high)
    return high


def train_path(
    w: Tensor, splits: Splits, sizes: tuple[int, ...], *, z: float, C: float, batch: int,
    rates: np.ndarray, seed: int = 0,
) -> Iterator[tuple[int, Tensor]]:  # fmt: skip
    """DP-SGD on all training examples from w (S, d): yields (step, w) after each.

    Batches are Poisson with rate batch / n, and the sum is divided by the expected size: noise per
    coordinate of the mean gradient is z C / batch.
    """
    index = splits.train
    S, n = index.shape
    q = batch / n
    generator = streams.generator(streams.DP_SGD, seed)
    for t, rate in enumerate(rates):
        mask = torch.rand(S, n, generator=generator) < q
        most = max(int(mask.sum(1).max()), 1)
        # Chosen examples first; those of smaller batches that follow have weight 0.
        weights, order = mask.float().topk(most, dim=1)
        chosen = index.gather(1, order)
        x, y = networks.pick(splits.images, chosen), splits.own.gather(1, chosen)
        g, _ = networks.gradient(w, x, y, sizes, clip=C, weights=weights)
        noise = torch.randn(w.shape, generator=generator) * (z * C)
        w = w - float(rate) / batch * (g + noise)
        yield t + 1, w
