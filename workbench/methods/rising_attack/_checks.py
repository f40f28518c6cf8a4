"""Checks of what people hand to the attacks: one clear line per mistake, nothing repaired silently.

Every function returns the checked value in the form the attack uses, or raises ValueError or
TypeError naming the thing, its value and what is allowed.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

# The most that the adversarial Jacobian of one image may take; nothing is split within an image.
MEMORY_LIMIT_BYTES = 2_000_000_000


def number(
    name: str, value: float, low: float = -np.inf, high: float = np.inf, above: bool = False
) -> float:
    """A number from low to high (greater than low, if `above`)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{name} = {value!r}; allowed is a number")
    if not low <= value <= high or (above and value == low):
        limits = f"{'>' if above else '>='} {low:g}"
        limits += f" and <= {high:g}" if high < np.inf else ""
        raise ValueError(f"{name} = {value:g}; allowed is {limits}")
    return float(value)


def whole(name: str, value: int, low: int, high: int | None = None) -> int:
    """A whole number from low to high."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} = {value!r}; allowed is a whole number")
    if value < low or (high is not None and value > high):
        nearest = low if value < low else high
        limits = f">= {low}" if high is None else f"{low}..{high}"
        raise ValueError(f"{name} = {value}; allowed is {limits}, the nearest is {nearest}")
    return int(value)


def as_images(model: nn.Module, x: Tensor) -> Tensor:
    """Images (B, C, H, W) in [0, 1], detached and in the model's floating dtype and device."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    x = torch.as_tensor(x).detach()
    if x.ndim < 2 or len(x) == 0 or x[0].numel() == 0:
        raise ValueError(f"x must be a batch of images (B, C, H, W), got shape {tuple(x.shape)}")
    if not x.is_floating_point() or x.max() > 1.5:
        scale = "divide by 255" if x.max() > 1 else "convert to floating point"
        raise ValueError(
            f"x is {x.dtype} from {x.min().item():g} to {x.max().item():g}; allowed are floats in "
            f"[0, 1]: {scale} (preprocessing belongs inside the model)"
        )
    if not torch.isfinite(x).all():
        raise ValueError("x holds values that are not finite; allowed are floats in [0, 1]")
    if x.min() < 0 or x.max() > 1:
        raise ValueError(
            f"x runs from {x.min().item():g} to {x.max().item():g}; allowed is [0, 1] "
            "(preprocessing such as normalization belongs inside the model)"
        )
    return like_weights(model, x)


def like_weights(model: nn.Module, x: Tensor) -> Tensor:
    """x in the floating dtype and on the device of the model; as it is if that has no weights."""
    return x.to(next((p for p in model.parameters() if p.is_floating_point()), x))


def ready_to_attack(model: nn.Module) -> None:
    """Raise for a model of which any part is in training mode: it may answer at random.

    Any part: dropout and the like may be functions in `forward`, which no list of layers shows.
    """
    for name, module in model.named_modules():
        if module.training:
            part = f"{type(module).__name__} {name!r}" if name else type(module).__name__
            raise ValueError(f"the model is in training mode ({part}); call model.eval() first")


def as_logits(logits: Tensor, n_images: int) -> Tensor:
    """The model's first answer: (B, classes), finite; warns when it looks like probabilities."""
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != n_images:
        got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"the model must return logits ({n_images}, classes), got {got}")
    if logits.shape[1] < 2:
        raise ValueError(f"the model has {logits.shape[1]} class; an order needs at least 2")
    if not logits.is_floating_point():
        raise ValueError(f"the model returns {logits.dtype}; allowed are floating-point logits")
    finite = torch.isfinite(logits).all(1)
    if not finite.all():
        first = int((~finite).nonzero()[0])
        raise ValueError(f"the model's logits for image {first} are not finite (NaN or infinite)")
    if (logits >= 0).all() and torch.allclose(logits.sum(1), torch.ones(()).to(logits), atol=1e-4):
        warnings.warn(
            "the model's outputs sum to 1, so they look like probabilities: margins are meant in "
            "logits; leave the softmax out of the model",
            stacklevel=4,
        )
    return logits


def as_targets(targets: Any, n_images: int, n_classes: int, complete: bool = False) -> Tensor:
    """Targets (B, K) int64, distinct and in range; K = n_classes only when `complete`."""
    targets = torch.as_tensor(targets)
    if targets.ndim != 2 or len(targets) != n_images or targets.shape[1] == 0:
        raise ValueError(f"targets must be ({n_images}, K), got shape {tuple(targets.shape)}")
    if targets.is_floating_point() or targets.dtype == torch.bool:
        raise TypeError(f"targets must be whole class numbers, got {targets.dtype}")
    targets = targets.long()
    K, most = targets.shape[1], n_classes if complete else n_classes - 1
    if K > most:
        raise ValueError(
            f"K = {K} targets for {n_classes} classes; allowed are 1..{most} "
            f"({n_classes - 1} targets fix the whole order)"
        )
    for image, order in enumerate(targets.tolist()):
        for place, target in enumerate(order):
            if not 0 <= target < n_classes:
                nearest = min(max(target, 0), n_classes - 1)
                raise ValueError(
                    f"targets[{image}, {place}] = {target}; allowed are classes "
                    f"0..{n_classes - 1}, the nearest is {nearest}"
                )
            if target in order[:place]:
                unused = sorted(set(range(n_classes)) - set(order))
                nearest = f", the nearest unused is {min(unused, key=lambda c: abs(c - target))}"
                raise ValueError(
                    f"targets[{image}] names class {target} twice; allowed are distinct classes"
                    f"{nearest if unused else ''}"
                )
    return targets


def without_label(targets: Tensor, labels: Tensor, source: str, skip: Tensor | None = None) -> None:
    """Raise when the targets (B, K) of an image not in `skip` (B,) contain its label."""
    named = (targets == labels.view(-1, 1)).any(1)
    if skip is not None:
        named &= ~skip
    if named.any():
        image = int(named.nonzero()[0])
        raise ValueError(
            f"targets[{image}] = {targets[image].tolist()} contains class {int(labels[image])}, "
            f"{source} of that image; choose others, or pass allow_label=True"
        )


def as_labels(labels: Any, n_images: int, n_classes: int) -> Tensor:
    """True labels (B,) int64 in range."""
    labels = torch.as_tensor(labels).reshape(-1)
    if len(labels) != n_images:
        raise ValueError(f"labels must be ({n_images},), got {len(labels)} of them")
    for label in labels.tolist():
        whole("label", label, 0, n_classes - 1)
    return labels.long()


def fits_memory(n_rows: int, n_pixels: int, itemsize: int) -> None:
    """Raise when the Jacobian of one image is beyond the limit at its worst moment.

    While it is made, its pieces and their concatenation are there; while its program is solved, it
    and two copies in float64 (whole, and the columns of some pixels).
    """
    entry = max(2 * itemsize, itemsize + 16)
    size = n_rows * n_pixels * entry
    if size > MEMORY_LIMIT_BYTES:
        fitting = MEMORY_LIMIT_BYTES // (n_pixels * entry)
        raise MemoryError(
            f"the adversarial Jacobian of one image, {n_rows} rows x {n_pixels} pixels, takes with "
            f"its copies {size / 1e9:.1f} GB; allowed are {MEMORY_LIMIT_BYTES / 1e9:.1f} GB: keep "
            f"fewer rows with rivals (about {fitting} rows fit), and lower chunk if the passes "
            "run out too"
        )
