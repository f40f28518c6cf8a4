"""Many small ReLU networks as one tensor program, with gradients by hand.

A batch of S networks of layer sizes `sizes` is one matrix w (S, d) of flat parameters; each sees
its own examples x (S, B, inputs) and labels y (S, B). The gradient is written out because this is
the hot loop: a forward and a backward pass are six products and no graph. Noise, clipping and the
projection act on rows of w, that is, on the whole parameter vector of a network.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from workbench.numerics.checks import choice

from . import streams

CLASSES = 10
KINDS = ("lecun", "torch")
TRUNCATED = 0.87962566  # standard deviation of a unit normal that is cut at -2 and 2


def count(sizes: Sequence[int]) -> int:
    """Number d of parameters of layers of these sizes."""
    return sum((i + 1) * o for i, o in itertools.pairwise(sizes))


def layers(w: Tensor, sizes: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Views of w (S, d) as layers: weights (S, in, out) and biases (S, 1, out)."""
    found, at = [], 0
    for i, o in itertools.pairwise(sizes):
        weight = w[:, at : at + i * o].unflatten(1, (i, o))
        found.append((weight, w[:, at + i * o : at + (i + 1) * o].unsqueeze(1)))
        at += (i + 1) * o
    return found


def initial(
    sizes: Sequence[int],
    seeds: Sequence[int],
    scale: float = 1.0,
    kind: str = "lecun",
    dtype: torch.dtype | None = None,
    stream: int = 0,
) -> Tensor:
    """Starting weights (S, d) times `scale`.

    kind: "lecun", the default of Flax and so of the paper: normal with variance 1 / inputs, cut at
    two standard deviations, biases zero; "torch", the default of PyTorch: uniform in
    +-1 / sqrt(inputs), biases too, which is narrower by 1.7.
    """
    choice("kind", kind, KINDS)
    w = torch.zeros(len(seeds), count(sizes), dtype=dtype or torch.float32)
    for row, seed in enumerate(seeds):
        generator = streams.generator(streams.INITIAL, seed, stream)
        for (weight, bias), fan_in in zip(layers(w[row : row + 1], sizes), sizes, strict=False):
            if kind == "torch":
                for part in (weight, bias):
                    part.uniform_(-(fan_in**-0.5), fan_in**-0.5, generator=generator)
            else:
                truncated_normal_(weight, fan_in**-0.5, generator)
    return w * scale


def truncated_normal_(weight: Tensor, deviation: float, generator: torch.Generator) -> None:
    """Fill with normal numbers of this standard deviation, cut at about twice of it."""
    nn.init.trunc_normal_(weight, 0, 1, -2, 2, generator=generator)
    weight.mul_(deviation / TRUNCATED)


def forward(w: Tensor, x: Tensor, sizes: Sequence[int]) -> Tensor:
    """Logits (S, n, classes) on x (n, inputs), or (S, n, inputs), one data set each."""
    if x.dim() == 2:
        x = x.expand(len(w), -1, -1)
    *hidden, last = layers(w, sizes)
    for weight, bias in hidden:
        x = torch.baddbmm(bias, x, weight).relu_()
    return torch.baddbmm(last[1], x, last[0])


def gradient(
    w: Tensor,
    x: Tensor,
    y: Tensor,
    sizes: Sequence[int],
    clip: float | None = None,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradient (S, d) of the mean cross-entropy on x (S, B, inputs), y (S, B), and losses (S, B).

    clip: with it, the sum over examples of gradients that are each clipped to this norm (DP-SGD),
    from the norms of their factors and without a gradient per example. weights (S, B): of the
    examples in that sum, 0 for padding.
    """
    stack = layers(w, sizes)
    inputs = [x]
    for weight, bias in stack[:-1]:
        inputs.append(torch.baddbmm(bias, inputs[-1], weight).relu_())
    logits = torch.baddbmm(stack[-1][1], inputs[-1], stack[-1][0])
    log_p = functional.log_softmax(logits, 2)
    picked = y.unsqueeze(2)
    losses = -log_p.gather(2, picked).squeeze(2)
    back = log_p.exp_()
    back.scatter_add_(2, picked, torch.full_like(losses, -1.0).unsqueeze(2))
    if clip is None:
        back /= x.shape[1]
    backs = [back]
    for i in range(len(stack) - 1, 0, -1):
        back = torch.bmm(back, stack[i][0].transpose(1, 2))
        back *= inputs[i] > 0
        backs.insert(0, back)
    if clip is not None:
        norms = sum(
            (h.square().sum(2) + 1) * b.square().sum(2) for h, b in zip(inputs, backs, strict=True)
        ).sqrt_()
        factors = (clip / norms.clamp_min(1e-30)).clamp_max(1.0).unsqueeze(2)
        if weights is not None:
            factors *= weights.unsqueeze(2)
        backs = [b * factors for b in backs]
    g = torch.empty_like(w)
    for (weight, bias), h, b in zip(layers(g, sizes), inputs, backs, strict=True):
        weight.copy_(torch.bmm(h.transpose(1, 2), b))
        bias.copy_(b.sum(1, keepdim=True))
    return g, losses


def pick(images: Tensor, index: Tensor) -> Tensor:
    """images[index] as (S, B, inputs): copies whole rows, several times faster than indexing."""
    return images.index_select(0, index.flatten()).view(*index.shape, -1)


def clip(v: Tensor, radius: float) -> Tensor:
    """Rows of v (S, d) scaled back to norm `radius` where they are longer; zero stays zero."""
    norms = v.norm(dim=1, keepdim=True)
    return v * (radius / norms.clamp_min(1e-30)).clamp_max(1.0)


def losses(w: Tensor, x: Tensor, y: Tensor, sizes: Sequence[int]) -> np.ndarray:
    """Cross-entropy of each example (S, n): x (n, inputs) or (S, n, inputs), y (n,) or (S, n)."""
    logits = forward(w, x, sizes)
    y = y.expand(len(w), -1)
    return functional.cross_entropy(logits.transpose(1, 2), y, reduction="none").numpy()


def accuracy(w: Tensor, x: Tensor, y: Tensor, sizes: Sequence[int]) -> np.ndarray:
    """Share of right answers (S,); x and y as in `losses`."""
    return (forward(w, x, sizes).argmax(2) == y).float().mean(1).numpy()
