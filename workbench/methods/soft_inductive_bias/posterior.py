"""D4 and the check of the bounds themselves: PAC-Bayes for softmax regression, and simulated data.

Q is a Gaussian over the weights of softmax regression, mean and log-variances trained on a
quadratic form of the bound; P is N(0, scale^2). The scale comes from a grid that is paid for by a
union bound. The Gibbs error is measured on weights that were really drawn, with a correction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from workbench.steps import Steps

from . import _checks, bounds, networks

SCALES = tuple(float(s) for s in np.geomspace(0.1, 10, 8))
DRAWS = 1000  # weights drawn from Q to measure its error
DRAW_SHARE = 0.2  # of delta, spent on the error of that measurement


@dataclass(frozen=True)
class Gibbs:
    """PAC-Bayes for each problem of a batch, each (B,): the best scale, KL in nats, errors, bounds.

    train, test: mean error over the draws, test on labels drawn like those of training and
    test_true on true ones. bound: kl form with all corrections; root: McAllester's.
    mean, std (B, D): the posterior that was sampled.
    """

    scale: np.ndarray
    divergence: np.ndarray
    train: np.ndarray
    test: np.ndarray
    test_true: np.ndarray
    bound: np.ndarray
    root: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    draws: int


def divergence_of(mean: Tensor, log_std: Tensor, scale: Tensor) -> Tensor:
    """KL(N(mean, std^2) || N(0, scale^2)) summed over the last axis, in nats."""
    ratio = log_std - scale.log()
    return 0.5 * ((2 * ratio).exp() + (mean / scale) ** 2 - 1 - 2 * ratio).sum(-1)


def gibbs_steps(
    x: np.ndarray,
    labels: np.ndarray,
    test_x: np.ndarray,
    test_labels: np.ndarray,
    *,
    true_test_labels: np.ndarray | None = None,
    seed: int = 0,
    delta: float = 0.05,
    scales: Sequence[float] = SCALES,
    steps: int = 800,
    lr: float = 0.02,
    draws: int = DRAWS,
) -> Steps[Gibbs]:
    """Train Q for B problems x (B, n, d) times all prior scales in one batch, and bound each."""
    delta = _checks.number("delta", delta, 0, 1, open_ends=True)
    for_draws = DRAW_SHARE * delta
    left = delta - for_draws
    B, n, inputs = x.shape
    sizes = (inputs, int(labels.max()) + 1)
    D, S = networks.count(sizes), len(scales)
    X, Y = networks.tensor(x), networks.tensor(labels)
    of = torch.arange(B).repeat_interleave(S)
    XS, YS = X[of], Y[of]
    scale = torch.tensor(scales).repeat(B)[:, None]
    start = torch.cat([torch.zeros(B * S, D), (scale / 2).log().expand(-1, D)], 1)
    generator = torch.Generator().manual_seed(seed)
    union = float(np.log(S))
    noises: dict[int, Tensor] = {}

    def loss(packed: Tensor, rows: Tensor, step: int) -> Tensor:
        # One draw of noise a step, the same for all: a problem does not depend on its neighbors.
        if step not in noises:
            noises.clear()
            noises[step] = torch.randn(1, D, generator=generator)
        mean, log_std = packed[:, :D], packed[:, D:]
        w = mean + log_std.exp() * noises[step]
        images, labels = (XS, YS) if len(rows) == B * S else (XS[rows], YS[rows])
        logits = networks.forward(w, images, sizes)
        # Any surrogate may train Q: the bound is for the 0-1 error that is measured below.
        risk = networks.cross_entropy(logits, labels)
        kl = divergence_of(mean, log_std, scale[rows]) + union
        half = (kl + np.log(2 * np.sqrt(n) / delta)) / (2 * n)
        return ((risk + half).sqrt() + half.sqrt()) ** 2

    trained = yield from networks.train_steps(
        start, loss, steps=steps, lr=lr, cosine=True, title="training posteriors"
    )
    mean, std = trained.w[:, :D], trained.w[:, D:].exp()
    kls = divergence_of(mean, trained.w[:, D:], scale).numpy()
    gibbs = np.zeros(B * S)
    few = 100  # to choose the scale; the chosen one is measured anew
    for b in range(B * S):
        gibbs[b] = _draw_errors(mean[b], std[b], X[of[b]], Y[of[b]], sizes, few, seed + 1).mean()
    guess = np.array([
        bounds.pac_bayes_kl(min(g, 1), k + union, n, left)
        for g, k in zip(gibbs, kls, strict=True)
    ]).reshape(B, S)  # fmt: skip
    chosen = guess.argmin(1)
    T, TY = networks.tensor(test_x), networks.tensor(test_labels)
    truth = TY if true_test_labels is None else networks.tensor(true_test_labels)
    rows = []
    for b, s in enumerate(chosen):
        at = b * S + int(s)
        train, test, test_true = (
            _draw_errors(mean[at], std[at], x[b], y[b], sizes, draws, seed + 2).mean()
            for x, y in ((X, Y), (T, TY), (T, truth))
        )
        # True Gibbs error from the draws, then true risk from it: two bounds, delta shared out.
        worst = float(bounds.kl_inverse(train, np.log(2 / for_draws) / draws))
        rows.append((
            scales[int(s)], kls[at], train, test, test_true,
            bounds.pac_bayes_kl(worst, kls[at] + union, n, left),
            bounds.mcallester(worst, kls[at] + union, n, left), mean[at].numpy(), std[at].numpy(),
        ))  # fmt: skip
    return Gibbs(*(np.array(column) for column in zip(*rows, strict=True)), draws)


def _draw_errors(
    mean: Tensor, std: Tensor, x: Tensor, y: Tensor, sizes: Sequence[int], draws: int, seed: int
) -> np.ndarray:
    generator = torch.Generator().manual_seed(seed)
    found = []
    for begin in range(0, draws, 100):
        size = min(100, draws - begin)
        w = mean + std * torch.randn(size, len(mean), generator=generator)
        found.append(networks.errors(w, x, y.expand(size, -1), sizes))
    return np.concatenate(found)


@dataclass(frozen=True)
class Validity:
    """How often each bound was broken over simulated data sets, and how loose it was."""

    broken: dict[str, float]
    mean: dict[str, float]
    risk: dict[str, float]
    datasets: int


def validity(
    datasets: int = 3000, n: int = 100, thresholds: int = 200, noise: float = 0.2,
    delta: float = 0.05, seed: int = 0,
) -> Validity:  # fmt: skip
    """Penalized risk minimization over thresholds with a geometric prior, on simulated data.

    x is uniform, y = 1 for x > 0.37, flipped with probability `noise`, so true risks are known.
    Each bound is minimized over all thresholds on each data set: the hardest case for it.
    """
    rng = np.random.default_rng([seed, 5])
    order = np.array(sorted(range(1, thresholds + 1), key=lambda k: int(f"{k:08b}"[::-1], 2)))
    cuts = order / (thresholds + 1)  # coarse thresholds first: they are the simple ones
    complexity = (1 + np.arange(thresholds)) * bounds.LOG2
    true = noise + (1 - 2 * noise) * np.abs(cuts - 0.37)
    table = {name: np.ones((n + 1, thresholds)) for name in ("hoeffding", "kl", "exact")}
    k = np.arange(n + 1) / n
    for j, c in enumerate(complexity):
        table["hoeffding"][:, j] = k + np.sqrt((c + np.log(1 / delta)) / (2 * n))
        table["kl"][:, j] = bounds.kl_inverse(k, (c + np.log(1 / delta)) / n)
        table["exact"][:, j] = [bounds.binomial_tail(q, c, n, delta) for q in k]
    x = rng.random((datasets, n))
    y = (x > 0.37) ^ (rng.random((datasets, n)) < noise)
    mistakes = np.stack([((x > cut) != y).sum(1) for cut in cuts], 1)
    broken, mean, risk = {}, {}, {}
    for name, values in table.items():
        each = values[mistakes, np.arange(thresholds)]
        chosen = each.argmin(1)
        bound = each[np.arange(datasets), chosen]
        broken[name] = float((true[chosen] > bound).mean())
        mean[name], risk[name] = float(bound.mean()), float(true[chosen].mean())
    return Validity(broken, mean, risk, datasets)
