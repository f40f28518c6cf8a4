"""A small digit classifier on kind maps, for the inception score of cellular digits.

It sees which kind holds each site and nothing of identities. It judges samples; it is not part of
any Hamiltonian. The architecture is the teaching-scale one of this study, not the official one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.numerics.optimizers import Adam
from workbench.steps import Step, Steps, run

from ._checks import as_frames, as_kind

N_DIGITS = 10


def kind_maps(frames: np.ndarray, kind: Sequence[int]) -> Tensor:
    """One-hot kinds of frames (n, H, W): (n, K, H, W) float32, K including medium."""
    kind = as_kind(kind)
    kinds = torch.from_numpy(kind[as_frames(frames, "frames")]).long()
    return F.one_hot(kinds, int(kind.max()) + 1).permute(0, 3, 1, 2).float()


def block(in_width: int, width: int) -> nn.Sequential:
    """Two 3x3 convolutions and a max-pool."""
    return nn.Sequential(
        nn.Conv2d(in_width, width, 3, padding=1),
        nn.SiLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.SiLU(),
        nn.MaxPool2d(2),
    )


class DigitClassifier(nn.Module):
    """(n, K, H, W) one-hot kind maps -> (n, 10) logits; any size from 8 x 8.

    SiLU as in the Hamiltonians: with ReLU some runs collapsed to a constant answer.
    """

    def __init__(self, n_kinds: int = 2, seed: int = 0):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.features = nn.Sequential(
                nn.MaxPool2d(2), block(n_kinds + 1, 32), block(32, 64), nn.AdaptiveAvgPool2d(1)
            )
            self.head = nn.Sequential(
                nn.Flatten(),
                nn.Linear(64, 256),
                nn.SiLU(),
                nn.Linear(256, 32),
                nn.SiLU(),
                nn.Linear(32, N_DIGITS),
            )

    def forward(self, maps: Tensor) -> Tensor:
        return self.head(self.features(maps))

    @torch.no_grad()
    def probabilities(self, frames: np.ndarray, kind: Sequence[int], chunk: int = 64) -> np.ndarray:
        """p(digit | frame) (n, 10) of frames (n, H, W), for `measures.inception_score`."""
        parts = kind_maps(frames, kind).split(chunk)
        return torch.cat([self(part).softmax(1) for part in parts]).double().numpy()


def train_classifier_steps(
    frames: np.ndarray,
    kind: Sequence[int],
    digits: Sequence[int],
    epochs: int = 60,
    batch: int = 32,
    lr: float = 2e-3,
    weight_decay: float = 1e-3,
    seed: int = 0,
) -> Steps[DigitClassifier]:
    """Fit a classifier to frames (n, H, W) showing `digits` (n,), by AdamW; a generator of steps.

    Yields after each batch; each `Step` carries the classifier so far. Raises ValueError for
    digits outside 0..9 or not one for each frame.
    """
    maps, digits = kind_maps(frames, kind), torch.as_tensor(np.asarray(digits)).long()
    if len(digits) != len(maps):
        raise ValueError(f"{len(digits)} digits for {len(maps)} frames: one for each is needed")
    if digits.min() < 0 or digits.max() >= N_DIGITS:
        wrong = digits[(digits < 0) | (digits >= N_DIGITS)][0]
        raise ValueError(f"digits hold {wrong}: allowed are 0 to {N_DIGITS - 1}")
    model = DigitClassifier(maps.shape[1] - 1, seed)
    optimizer = Adam(model.parameters(), lr, weight_decay=weight_decay)
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        order = torch.from_numpy(rng.permutation(len(maps))).split(batch)
        for number, chosen in enumerate(order, 1):
            loss = F.cross_entropy(model(maps[chosen]), digits[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done = (epoch + number / len(order)) / epochs
            yield Step(done, f"epoch {epoch + 1} of {epochs}, loss {loss.item():.3f}", model)
    return model


def train_classifier(
    frames: np.ndarray, kind: Sequence[int], digits: Sequence[int], **options: Any
) -> DigitClassifier:
    """`train_classifier_steps` with the same options, run to the end."""
    return run(train_classifier_steps(frames, kind, digits, **options))


def accuracy(
    classifier: DigitClassifier, frames: np.ndarray, kind: Sequence[int], digits: Sequence[int]
) -> float:
    """Share of frames (n, H, W) whose most probable digit is the true one."""
    guesses = classifier.probabilities(frames, kind).argmax(1)
    return float((guesses == np.asarray(digits)).mean())
