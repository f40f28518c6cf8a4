"""The order an attacker asks for, as inequalities on logits, and whether logits obey it.

Ordered targets T = (t_1 .. t_K) of C classes stand for f[t_1] > .. > f[t_K] > f[j], j not in T. The
ranking matrix A_T has a row e_above - e_below for each inequality. Most code needs only the two
class numbers of a row, `row_classes`; the matrix itself is for reading and tests.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ._checks import as_targets, whole


def rank_matrix(
    targets: Sequence[int], n_classes: int, rivals: Sequence[int] | None = None
) -> np.ndarray:
    """The ranking matrix A_T, (K - 1 + rivals, n_classes) float64 of -1, 0, 1; rows sum to 0.

    targets: K distinct classes, the first to rank first. rivals: the non-targets to keep a row
    for; None means all, which gives n_classes - 1 rows. `A_T @ logits > 0` in every row if and
    only if the first K of a descending sort are the targets. Raises ValueError for targets that
    repeat or are out of range, and for rivals that are targets.

    >>> rank_matrix([2, 0], 4)
    array([[-1.,  0.,  1.,  0.],
           [ 1., -1.,  0.,  0.],
           [ 1.,  0.,  0., -1.]])
    """
    order = as_targets([targets], 1, n_classes, complete=True)
    kept = non_targets(order, n_classes) if rivals is None else torch.as_tensor([list(rivals)])
    for rival in kept[0].tolist():
        if rival in order or not 0 <= rival < n_classes:
            free = non_targets(order, n_classes)[0].tolist()
            raise ValueError(f"rivals holds {rival}; allowed are the non-targets {free}")
    above, below = row_classes(order, kept.long())
    identity = np.eye(n_classes)
    return identity[above[0].numpy()] - identity[below[0].numpy()]


def non_targets(targets: Tensor, n_classes: int) -> Tensor:
    """The classes not in targets (B, K), ascending: (B, n_classes - K)."""
    free = torch.ones(len(targets), n_classes, dtype=torch.bool, device=targets.device)
    free.scatter_(1, targets, False)
    return free.nonzero()[:, 1].view(len(targets), -1)


def strongest_rivals(logits: Tensor, targets: Tensor, n: int) -> Tensor:
    """The n non-targets with the highest logits, highest first: (B, n), fewer if there are."""
    n = min(n, logits.shape[1] - targets.shape[1])
    return logits.scatter(1, targets, -torch.inf).topk(n, dim=1).indices


def row_classes(targets: Tensor, rivals: Tensor) -> tuple[Tensor, Tensor]:
    """The upper and the lower class of each row of A_T: targets (B, K), rivals (B, R) to (B, m).

    The m = K - 1 + R rows are the K - 1 neighbors in the order, then t_K against each rival.
    """
    last = targets[:, -1:].expand(-1, rivals.shape[1])
    above = torch.cat([targets[:, :-1], last], 1)
    return above, torch.cat([targets[:, 1:], rivals], 1)


def gaps(logits: Tensor, above: Tensor, below: Tensor) -> Tensor:
    """A_T f: how far each upper logit is above the lower one. (B, C) and (B, m) to (B, m)."""
    return logits.gather(1, above) - logits.gather(1, below)


def achieved(logits: Tensor, targets: Tensor) -> Tensor:
    """Whether the first K of a descending sort of logits (B, C) equal targets (B, K): (B,) bool.

    Without margin, but strictly: a tie does not count, so that every sort agrees.
    """
    targets = targets.to(logits.device)
    rows = row_classes(targets, non_targets(targets, logits.shape[1]))
    return (gaps(logits, *rows) > 0).all(1)


def random_targets(labels: ArrayLike | Tensor, K: int, n_classes: int, seed: int = 0) -> Tensor:
    """K distinct targets for each label, uniform over all classes but the label: (B, K) int64.

    The first K of the targets for a larger K and the same seed are the targets for K, so that
    orders of several lengths are nested.
    """
    labels = torch.as_tensor(labels).cpu().reshape(-1).tolist()
    K = whole("K", K, 1, n_classes - 1)
    for label in labels:
        whole("label", label, 0, n_classes - 1)
    rng = np.random.default_rng(seed)
    orders = np.stack([rng.permutation(n_classes - 1) for _ in labels])
    orders += orders >= np.array(labels)[:, None]  # skip the label
    return torch.from_numpy(orders[:, :K].copy())
