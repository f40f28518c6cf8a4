"""E2: hard, no and soft symmetry in networks: an invariant path, a residual path, or both.

logits = A mean_g relu(W_e g x) + B relu(W_r x) + b. The soft network has both paths, and a larger
weight decay on the residual one, chosen on a validation split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from workbench.steps import Steps

from . import digits, networks

HIDDEN = 64
DECAY = 1e-3
RESIDUAL_DECAYS = (1e-3, 1e-2, 3e-2)
MODELS = ("hard", "none", *(f"soft {decay:g}" for decay in RESIDUAL_DECAYS))
VALIDATION = 0.25  # share of the training data that chooses the decay


@dataclass(frozen=True)
class PathwayNetworks:
    """Test accuracies by task, (seeds,) each: hard, none, and soft with the decay it chose."""

    accuracy: dict[str, dict[str, np.ndarray]]
    decay: dict[str, list[float]]

    def shortfall(self, task: str) -> np.ndarray:
        """The better of hard and none, minus soft; positive where softness lost."""
        a = self.accuracy[task]
        return np.maximum(a["hard"], a["none"]) - a["soft"]


def _outputs(w: Tensor, x: Tensor, maps: Tensor, uses: Tensor) -> Tensor:
    """w (B, D): both paths, flat; x (B, n, 64); uses (B, 2): which paths a network has."""
    classes = digits.CLASSES
    first = networks.count((64, HIDDEN))
    out = HIDDEN * classes
    We, be = networks.unflatten(w[:, :first], (64, HIDDEN))[0]
    Wr, br = networks.unflatten(w[:, first : 2 * first], (64, HIDDEN))[0]
    A = w[:, 2 * first : 2 * first + out].view(-1, HIDDEN, classes)
    R = w[:, 2 * first + out : 2 * first + 2 * out].view(-1, HIDDEN, classes)
    bias = w[:, 2 * first + 2 * out :].view(-1, 1, classes)
    # relu(W g x) is relu((W g) x): turning the weights is cheaper than turning the data. Examples
    # are the last axis, as in `networks.forward`.
    x, inverse = x.transpose(1, 2), maps.argsort(1)
    turned = (We[:, g].transpose(1, 2) for g in inverse)
    invariant = sum(torch.relu(torch.baddbmm(be.transpose(1, 2), W, x)) for W in turned) / len(maps)
    residual = torch.relu(torch.baddbmm(br.transpose(1, 2), Wr.transpose(1, 2), x))
    found = (
        torch.bmm(A.transpose(1, 2), invariant) * uses[:, :1, None]
        + torch.bmm(R.transpose(1, 2), residual) * uses[:, 1:, None]
        + bias.transpose(1, 2)
    )
    return found.transpose(1, 2)


def pathway_steps(
    seeds: Sequence[int], n_train: int = 400, steps: int = 600, lr: float = 1e-2,
    tasks: Sequence[str] = digits.TASKS,
) -> Steps[PathwayNetworks]:  # fmt: skip
    """All tasks, models and seeds in one batch: those that choose on 3/4 of the data, and finals.

    Every model is trained twice: on three quarters, for the choice of the decay, and on all.
    """
    cells = [(t, m, s, part) for t in tasks for m in MODELS for s in seeds for part in (0, 1)]
    splits = {(t, s): digits.task(t, n_train, s) for t in tasks for s in seeds}
    X = torch.stack([networks.tensor(splits[t, s].train_x) for t, _, s, _ in cells])
    Y = torch.stack([networks.tensor(splits[t, s].train_y) for t, _, s, _ in cells])
    held = int(VALIDATION * n_train)
    weight = torch.ones(len(cells), n_train)
    for row, cell in enumerate(cells):
        if cell[3] == 0:
            weight[row, :held] = 0
    uses = torch.tensor([
        {"hard": (1.0, 0.0), "none": (0.0, 1.0)}.get(m, (1.0, 1.0)) for _, m, _, _ in cells
    ])  # fmt: skip
    first, out = networks.count((64, HIDDEN)), HIDDEN * digits.CLASSES
    decays = torch.full((len(cells), 2 * first + 2 * out + digits.CLASSES), DECAY)
    for row, (_, m, _, _) in enumerate(cells):
        if m.startswith("soft"):
            residual = float(m.split()[1])
            decays[row, first : 2 * first] = residual
            decays[row, 2 * first + out : 2 * first + 2 * out] = residual
    w0 = torch.cat([_start(s) for _, _, s, _ in cells])
    maps = torch.from_numpy(digits.permutations("C4"))

    def loss(w: Tensor, rows: Tensor, step: int) -> Tensor:
        logits = _outputs(w, X, maps, uses)  # none leaves the batch: rows are all
        each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), Y, reduction="none")
        return (each * weight).sum(1) / weight.sum(1) + 0.5 * (decays * w * w).sum(1)

    trained = yield from networks.train_steps(
        w0, loss, steps=steps, lr=lr, cosine=True, title="pathways"
    )
    accuracy: dict[str, dict[str, list]] = {t: {"hard": [], "none": [], "soft": []} for t in tasks}
    chosen: dict[str, list[float]] = {t: [] for t in tasks}

    def right(cell: tuple, x: np.ndarray, y: np.ndarray) -> float:
        row = cells.index(cell)
        with torch.no_grad():
            logits = _outputs(
                trained.w[row : row + 1], networks.tensor(x)[None], maps, uses[row : row + 1]
            )
        return float((logits[0].argmax(1).numpy() == y).mean())

    for t in tasks:
        for s in seeds:
            data = splits[t, s]
            seen = (data.train_x[:held], data.train_y[:held])
            soft = max(MODELS[2:], key=lambda m, t=t, s=s, seen=seen: right((t, m, s, 0), *seen))
            chosen[t].append(float(soft.split()[1]))
            for name, model in (("hard", "hard"), ("none", "none"), ("soft", soft)):
                accuracy[t][name].append(right((t, model, s, 1), data.test_x, data.test_y))
    return PathwayNetworks(
        {t: {k: np.array(v) for k, v in row.items()} for t, row in accuracy.items()}, chosen
    )


def _start(seed: int) -> Tensor:
    invariant = networks.initial((64, HIDDEN), [2 * seed])
    residual = networks.initial((64, HIDDEN), [2 * seed + 1])
    last = networks.initial((2 * HIDDEN, digits.CLASSES), [seed])
    return torch.cat([invariant, residual, last], 1)
