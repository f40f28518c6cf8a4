"""States of an attack on a classifier: checked arrays, and what a picture says of them.

The pure functions under `PerturbationView`: norms, the place of each class, which wanted places
are reached, rows to list, one signed value for each pixel. No widget here, and no attack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

CHANNELS = ("largest", "red", "green", "blue")


@dataclass(frozen=True)
class Attempt:
    """One state of an attack, checked by `attempt`.

    clean, perturbation: (H, W) or (3, H, W) float64. logits: (C,) of the attacked image.
    targets: the wanted classes, most wanted first; label: the true class or None.
    """

    clean: np.ndarray
    perturbation: np.ndarray
    logits: np.ndarray
    targets: tuple[int, ...] = ()
    label: int | None = None
    iteration: int | None = None
    iterations: int | None = None
    running: bool = False

    @property
    def norms(self) -> tuple[float, float, float]:
        """The l1, l2 and l-infinity norm of the perturbation over all pixels and channels."""
        size = np.abs(self.perturbation)
        return float(size.sum()), float(np.sqrt((size**2).sum())), float(size.max(initial=0))

    @property
    def places(self) -> np.ndarray:
        """(C,) place of each class in the descending sort of the logits, 0 for the largest."""
        places = np.empty(len(self.logits), dtype=int)
        places[np.argsort(-self.logits, kind="stable")] = np.arange(len(self.logits))
        return places

    @property
    def achieved(self) -> int:
        """How many targets stand at their wanted place."""
        return sum(int(self.places[t]) == k for k, t in enumerate(self.targets))

    @property
    def status(self) -> str:
        """`running`, `found` or `not found`; empty when nothing is wanted."""
        if self.running:
            return "running"
        if not self.targets:
            return ""
        return "found" if self.achieved == len(self.targets) else "not found"


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):  # a tensor, wherever it lives and whether or not it has gradients
        values = values.detach().cpu()
    return np.asarray(values, dtype=np.float64)


def attempt(
    clean: Any, perturbation: Any, logits: Any, targets: Sequence[int] = (), **rest: Any
) -> Attempt:
    """An `Attempt` from arrays or tensors: clean in [0, 1], (H, W), (1, H, W) or (3, H, W).

    Raises ValueError for other shapes or values, logits that are not finite, and targets that
    are repeated or no classes.
    """
    clean, perturbation, logits = _array(clean), _array(perturbation), _array(logits)
    shape = clean.shape
    if not (clean.ndim == 2 or (clean.ndim == 3 and shape[0] in (1, 3))) or not clean.size:
        raise ValueError(f"clean has shape {shape}: use (H, W), (1, H, W) or (3, H, W)")
    if perturbation.shape != shape:
        raise ValueError(f"perturbation has shape {perturbation.shape}: clean has {shape}")
    if shape[0] == 1 and clean.ndim == 3:
        clean, perturbation = clean[0], perturbation[0]
    low, high = clean.min(), clean.max()
    if not (low >= -1e-6 and high <= 1 + 1e-6):  # also when one is NaN
        hint = ": divide by 255" if 1 < high <= 255 and low >= 0 else ""
        raise ValueError(f"clean has values {low:g} to {high:g}, allowed are 0 to 1{hint}")
    if not np.isfinite(perturbation).all():
        raise ValueError("perturbation has values that are not finite")
    if logits.ndim != 1 or not np.isfinite(logits).all():
        raise ValueError(f"logits of shape {logits.shape} must be (C,) finite numbers")
    targets = tuple(int(t) for t in targets)
    for t in targets:
        if not 0 <= t < len(logits):
            raise ValueError(f"targets holds {t}: allowed are 0 to {len(logits) - 1}")
    if len(set(targets)) < len(targets):
        raise ValueError(f"targets = {list(targets)} repeats a class")
    label = rest.pop("label", None)
    if label is not None and not 0 <= label < len(logits):
        raise ValueError(f"label = {label} is not a class: allowed are 0 to {len(logits) - 1}")
    label = None if label is None else int(label)
    return Attempt(clean, perturbation, logits, targets, label, **rest)


def ranking(shown: Attempt, n_rows: int) -> list[dict[str, Any]]:
    """The rows of the predicted order: the first `n_rows` places, all targets, the true class.

    Each row has class, place (from 0), logit, and wanted: its wanted place or None.
    """
    wanted = {t: k for k, t in enumerate(shown.targets)}
    places = shown.places
    keep = [
        c for c, p in enumerate(places) if p < n_rows or c in wanted or c == shown.label
    ]  # fmt: skip
    return [
        {
            "class": c,
            "place": int(places[c]),
            "logit": float(shown.logits[c]),
            "wanted": wanted.get(c),
        }
        for c in sorted(keep, key=lambda c: places[c])
    ]


def signed(perturbation: np.ndarray, channel: str = "largest") -> np.ndarray:
    """(H, W) of a (3, H, W) perturbation: one channel, or at each pixel the largest in size."""
    if channel not in CHANNELS:
        raise ValueError(f"channel = {channel!r} is not allowed: use {', '.join(CHANNELS)}")
    if perturbation.ndim == 2:
        return perturbation
    if channel != "largest":
        return perturbation[CHANNELS.index(channel) - 1]
    largest = np.abs(perturbation).argmax(axis=0)
    return np.take_along_axis(perturbation, largest[None], axis=0)[0]


def said(shown: Attempt) -> str:
    """The status in words, with the iteration and the number of targets in place."""
    at = "" if shown.iteration is None else f"iteration {shown.iteration}"
    if at and shown.iterations is not None:
        at += f" of {shown.iterations}"
    right = f"{shown.achieved} of {len(shown.targets)} in place" if shown.targets else ""
    sign = {"found": "✓ found", "not found": "✗ not found", "running": "running"}
    return ", ".join(part for part in (sign.get(shown.status), at, right) if part)
