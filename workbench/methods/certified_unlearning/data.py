"""The digits of scikit-learn, split anew for each seed: test, validation, retain, forget.

Digits have no writers, so a "user" is a random image. In the memorization variant the labels of
the forget set and of the validation set are wrong: what the model then knows of the forget set it
has learned by heart, and validation images are non-members of the same distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from workbench.numerics.checks import choice

from .networks import CLASSES, pick

TEST, VALIDATION = 360, 180
PARTS = ("test", "validation", "retain", "forget")


@cache
def load() -> tuple[np.ndarray, np.ndarray]:
    """All 1,797 images (n, 64) in [0, 1] and labels (n,), read-only."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images, labels = (found.data / 16).astype(np.float32), found.target.astype(np.int64)
    images.flags.writeable = labels.flags.writeable = False
    return images, labels


@cache
def digits() -> Tensor:
    """The images of `load` as a tensor, one for all."""
    return torch.tensor(load()[0])


@dataclass(frozen=True)
class Splits:
    """Splits of one data set for S seeds.

    images (n, inputs); labels (n,) as given by nature; own (S, n): the labels that each seed trains
    and is attacked with. test, validation, retain, forget: indices (S, k) into images.
    """

    images: Tensor
    labels: Tensor
    own: Tensor
    test: Tensor
    validation: Tensor
    retain: Tensor
    forget: Tensor

    @property
    def train(self) -> Tensor:
        """Indices of all that the original model saw, (S, k)."""
        return torch.cat([self.retain, self.forget], 1)

    def of(self, part: str, true: bool = False) -> tuple[Tensor, Tensor]:
        """Images (S, k, inputs) and labels (S, k) of a part; `true`: the labels of nature."""
        index = getattr(self, choice("part", part, PARTS))
        labels = self.labels[index] if true else self.own.gather(1, index)
        return pick(self.images, index), labels

    def rows(self, rows: Sequence[int]) -> Splits:
        """The splits of some of the seeds."""
        keep = torch.as_tensor(rows)
        parts = {name: getattr(self, name)[keep] for name in ("own", *PARTS)}
        return Splits(self.images, self.labels, **parts)


def split(
    seeds: Sequence[int], forget_frac: float = 0.1, mislabel: bool = False,
    data: tuple[np.ndarray, np.ndarray] | None = None,
    test: int = TEST, validation: int = VALIDATION,
) -> Splits:  # fmt: skip
    """Random splits, one for each seed; `forget_frac` of the training images is to be forgotten.

    data: other flat images in [0, 1] and labels 0 to 9. Raises ValueError if a part is empty.
    """
    images, labels = load() if data is None else data
    n = len(images)
    train = n - test - validation
    forget = int(train * forget_frac)
    if forget < 1 or forget >= train:
        raise ValueError(
            f"forget_frac = {forget_frac:g} of {train} training examples leaves {forget} to forget "
            f"and {train - forget} to retain; at least one of each is needed"
        )
    ends = np.cumsum([test, validation, train - forget])
    orders = np.stack([np.random.default_rng([s, 1]).permutation(n) for s in seeds])
    parts = [torch.from_numpy(part.copy()) for part in np.split(orders, ends, axis=1)]
    own = np.tile(labels, (len(seeds), 1))
    if mislabel:
        for row, seed in enumerate(seeds):
            wrong = np.concatenate([parts[1][row], parts[3][row]])
            rng = np.random.default_rng([seed, 2])
            own[row, wrong] = (own[row, wrong] + rng.integers(1, CLASSES, len(wrong))) % CLASSES
    return Splits(
        digits() if data is None else torch.tensor(images, dtype=torch.float32),
        torch.tensor(labels), torch.from_numpy(own), *parts,
    )  # fmt: skip


def batches(index: Tensor, batch: int, steps: int, seeds: Sequence[int], stream: int = 0) -> Tensor:
    """Indices (steps, S, batch) of mini-batches: each epoch is a new order of `index` (S, k).

    The order is public randomness: it depends on the seed and on `stream` alone, and so is the
    same for all methods and for both models of a comparison.
    """
    S, k = index.shape
    batch = min(batch, k)
    epochs = -(-steps * batch // k)
    found = np.empty((S, steps, batch), np.int64)
    for row, seed in enumerate(seeds):
        rng = np.random.default_rng([seed, 3, stream])
        order = rng.permuted(np.tile(np.arange(k), (epochs, 1)), axis=1).ravel()
        found[row] = order[: steps * batch].reshape(steps, batch)
    chosen = torch.from_numpy(found).flatten(1)
    return index.gather(1, chosen).view(S, steps, batch).transpose(0, 1)
