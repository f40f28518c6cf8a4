"""Many small ReLU networks trained as one tensor program.

A batch of B networks of the same layer sizes is one matrix w (B, D) of flat parameters; narrower
ones are padded with hidden units whose weights are zero, and whose gradients then stay zero. Each
network sees its own data, labels and seed, and none sees another: what a network becomes does not
depend on what it is trained with. Those that reach the wanted loss leave the batch.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from workbench.numerics.threads import one_thread
from workbench.steps import Step, Steps

BETAS, EPSILON = (0.9, 0.999), 1e-8
SHARE_S = 0.1  # least seconds between two reports of progress


def count(sizes: Sequence[int]) -> int:
    """Number D of parameters of layers of these sizes."""
    return sum((i + 1) * o for i, o in itertools.pairwise(sizes))


def unflatten(w: Tensor, sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Views of w (B, D) as layers: weights (B, in, out) and biases (B, 1, out)."""
    layers, at, B = [], 0, w.shape[0]
    for i, o in itertools.pairwise(sizes):
        weight = w[:, at : at + i * o].view(B, i, o)
        bias = w[:, at + i * o : at + (i + 1) * o].view(B, 1, o)
        layers.append((weight, bias))
        at += (i + 1) * o
    return layers


def forward(w: Tensor, x: Tensor, sizes: Sequence[int]) -> Tensor:
    """Outputs (B, n, out) of networks w (B, D) on x (n, in), or (B, n, in), one data set each.

    Inside, examples are the last axis: products with few outputs and their gradients are several
    times as fast that way. The result is a view.
    """
    x = (x.expand(len(w), -1, -1) if x.dim() == 2 else x).transpose(1, 2)
    layers = [
        (weight.transpose(1, 2), bias.transpose(1, 2)) for weight, bias in unflatten(w, sizes)
    ]
    for weight, bias in layers[:-1]:
        x = torch.relu(torch.baddbmm(bias, weight, x))
    weight, bias = layers[-1]
    return torch.baddbmm(bias, weight, x).transpose(1, 2)


def initial(
    sizes: Sequence[int], seeds: Sequence[int], widths: Sequence[int] | None = None
) -> Tensor:
    """Starting weights (B, D), uniform in +-1/sqrt(inputs) as torch's linear layers.

    widths: of the hidden layers of each network (None: as in `sizes`); further units are zero.
    """
    rows = []
    widths = widths if widths is not None else [max(sizes)] * len(seeds)
    for seed, width in zip(seeds, widths, strict=True):
        own = [sizes[0], *(min(width, s) for s in sizes[1:-1]), sizes[-1]]
        generator = torch.Generator().manual_seed(1_000_003 * int(seed) + 7)
        row = torch.zeros(1, count(sizes))
        for (weight, bias), i, o in zip(unflatten(row, sizes), own[:-1], own[1:], strict=True):
            limit = i**-0.5
            weight[0, :i, :o] = torch.empty(i, o).uniform_(-limit, limit, generator=generator)
            bias[0, 0, :o] = torch.empty(o).uniform_(-limit, limit, generator=generator)
        rows.append(row)
    return torch.cat(rows)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy of each network: logits (B, n, C), labels (B, n) -> (B,)."""
    return functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none").mean(1)


def errors(w: Tensor, x: Tensor, labels: Tensor, sizes: Sequence[int]) -> np.ndarray:
    """Share of mistakes of each network, (B,)."""
    with torch.no_grad():
        wrong = forward(w, x, sizes).argmax(-1) != labels
    return wrong.sum(1).numpy() / labels.shape[-1]


@dataclass
class Trained:
    """What a batch has become.

    w: (B, D). loss: last training loss of each, (B,). taken: steps of each, (B,). curves: rows
    (step, losses (B,)) for pictures. done: False while it trains.
    """

    w: Tensor
    loss: np.ndarray
    taken: np.ndarray
    curves: list[tuple[int, np.ndarray]] = field(default_factory=list)
    done: bool = False


Loss = Callable[[Tensor, Tensor, int], Tensor]


def supervised(X: Tensor, Y: Tensor, sizes: Sequence[int]) -> Loss:
    """Cross-entropy of each network on its own images X (B, n, in) and labels Y (B, n)."""

    def loss(w: Tensor, rows: Tensor, step: int) -> Tensor:
        x, y = (X, Y) if len(rows) == len(X) else (X[rows], Y[rows])
        return cross_entropy(forward(w, x, sizes), y)

    return loss


def train_steps(
    w: Tensor,
    loss: Loss,
    *,
    steps: int,
    lr: float,
    stop: float = 0.0,
    cosine: bool = False,
    title: str = "training",
) -> Steps[Trained]:
    """Adam on all networks at once, full batch; a generator of steps that returns `Trained`.

    loss: `loss(w, rows, step)` -> (b,), the loss of the networks `rows` (b,) of the batch with
    weights w (b, D). A network whose loss is at most `stop` is finished and leaves the batch.
    """
    B = len(w)
    final = w.clone()
    last, taken = np.full(B, np.nan), np.zeros(B, int)
    rows = torch.arange(B)
    live = w.clone()
    mean, square = torch.zeros_like(live), torch.zeros_like(live)
    found = Trained(final, last, taken)
    shown = time.perf_counter()
    every = max(1, steps // 150)  # points of a curve
    for step in range(steps):
        with one_thread():
            live.requires_grad_()
            losses = loss(live, rows, step)
            (gradient,) = torch.autograd.grad(losses.sum(), live)
            live = live.detach()
            values = losses.detach()
            last[rows.numpy()] = values.numpy()
            finished = values <= stop
            if finished.any():
                final[rows[finished]] = live[finished]
                keep = ~finished
                rows, live, gradient = rows[keep], live[keep], gradient[keep]
                mean, square = mean[keep], square[keep]
            if len(rows) == 0:
                break
            rate = lr * 0.5 * (1 + np.cos(np.pi * step / steps)) if cosine else lr
            mean.lerp_(gradient, 1 - BETAS[0])
            square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
            scale = rate / (1 - BETAS[0] ** (step + 1))
            root = (square / (1 - BETAS[1] ** (step + 1))).sqrt_().add_(EPSILON)
            live.addcdiv_(mean, root, value=-scale)
            taken[rows.numpy()] = step + 1
        if step % every == 0:
            found.curves.append((step, last.copy()))
        now = time.perf_counter()
        if now - shown > SHARE_S:
            shown = now
            final[rows] = live
            words = f"{title}, step {step + 1:,}, {B - len(rows)} of {B} at their goal"
            yield Step((step + 1) / steps, words, found)
    final[rows] = live
    found.curves.append((int(taken.max()), last.copy()))
    found.done = True
    return found


def in_groups(widths: Sequence[int], limits: Sequence[int] = (32, 64, 128)) -> Iterator[list]:
    """Indices of networks of similar width, which share a padded batch."""
    edges = [0, *limits, 10**9]
    for low, high in itertools.pairwise(edges):
        group = [i for i, width in enumerate(widths) if low < width <= high]
        if group:
            yield group


def tensor(array: np.ndarray) -> Tensor:
    """A float or integer array as a torch tensor of torch's default precision or long."""
    made = torch.from_numpy(np.array(array))
    return made.long() if array.dtype.kind in "iu" else made.to(torch.get_default_dtype())


def layers_of(w: Tensor, sizes: Sequence[int], width: int | None = None) -> list[np.ndarray]:
    """W1, b1, W2, b2 of one network w (D,) as arrays, without the padding."""
    (W1, b1), (W2, b2) = unflatten(w[None], sizes)
    width = width or sizes[1]
    return [
        W1[0, :, :width].numpy(), b1[0, 0, :width].numpy(), W2[0, :width].numpy(), b2[0, 0].numpy()
    ]  # fmt: skip
