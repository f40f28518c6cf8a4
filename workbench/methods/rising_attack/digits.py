"""Real images that are always at hand: scikit-learn's 8 x 8 digits, and a small network for them.

1,797 scanned digits; 500 are held out, the same for every seed, and 1,297 train. Most pixels are
0, at the edge of the box: an attack may only add ink there.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn

from workbench.steps import Steps, run

from . import networks
from .networks import Classifier, kept_steps, seeded, train_steps

N_CLASSES = 10
N_HELD_OUT = 500
FEATURES = 64
EPOCHS = 25
CLASS_NAMES = tuple("0123456789")


@cache
def _split() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training and held-out images and labels."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.from_numpy(data.images).float().unsqueeze(1) / 16  # ink is counted 0 to 16
    labels = torch.from_numpy(data.target).long()
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    train, held = order[N_HELD_OUT:], order[:N_HELD_OUT]
    return images[train], labels[train], images[held], labels[held]


def training_digits() -> tuple[Tensor, Tensor]:
    """The 1,297 digits (n, 1, 8, 8) in [0, 1] that train, and their labels (n,)."""
    images, labels, _, _ = _split()
    return images.clone(), labels.clone()


def held_out_digits() -> tuple[Tensor, Tensor]:
    """The 500 digits (n, 1, 8, 8) in [0, 1] that no network is trained on, and labels (n,)."""
    _, _, images, labels = _split()
    return images.clone(), labels.clone()


def digits_network(seed: int = 0) -> Classifier:
    """The untrained network: three convolutions, two average pools, 64 features."""
    with seeded(seed):
        body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.GELU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.GELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1),
            nn.GELU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(128, FEATURES),
            nn.GELU(),
        )
        return Classifier(body, FEATURES, N_CLASSES)


def digits_model_steps(seed: int = 0) -> Steps[Classifier]:
    """A trained network: 25 epochs (4-5 s), or its kept weights; a generator of steps."""

    def train() -> Steps[nn.Module]:
        return train_steps(digits_network(seed), *training_digits(), EPOCHS, seed=seed)

    depends = [Path(__file__), Path(networks.__file__), seed]
    return kept_steps(f"digits-{seed}", digits_network(seed), train, depends)


def load_digits_model(seed: int = 0) -> Classifier:
    """`digits_model_steps`, run to the end: about 97 % of the held-out digits are read."""
    return run(digits_model_steps(seed))
