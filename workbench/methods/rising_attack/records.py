"""What an attack reports: a snapshot per iteration, and the result with its norms.

Both the SQP and the baselines report in these terms, so that a live view, a progress bar, a trace
and a figure of merit need not know which method they look at. Nothing is computed here but norms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Snapshot:
    """Where an attack on B images stands after an iteration; nothing in it changes later.

    iteration: 0 for the start. delta (B, C, H, W): present perturbation. logits (B, classes) at it.
    violation (B, rows): (margin - A_T f)_+ for each inequality, where CW^K and AD demand no margin.
    norm (B,): l2 norm of delta. success (B,): whether delta reaches the order, judged without
    margin. best_delta (B, C, H, W) and best_norm (B,): the smallest successful perturbation so far;
    zeros and inf without one.
    Only the SQP knows: alpha (B,) the fraction of the step that led here (0 at the start and for
    images that are finished), free_pixels (B,) entries not fixed at a bound, active_rows (B,)
    inequalities with a positive multiplier.
    """

    iteration: int
    delta: Tensor
    logits: Tensor
    violation: Tensor
    norm: Tensor
    success: Tensor
    best_delta: Tensor
    best_norm: Tensor
    alpha: Tensor | None = None
    free_pixels: Tensor | None = None
    active_rows: Tensor | None = None

    @property
    def found(self) -> Tensor:
        """(B,) whether any perturbation so far reaches the order."""
        return torch.isfinite(self.best_norm)

    def numbers(self) -> dict[str, np.ndarray]:
        """The numbers of a trace: each (B,), violation summed over rows, missing ones nan."""
        n = len(self.norm)

        def values(tensor: Tensor | None) -> np.ndarray:
            return np.full(n, np.nan) if tensor is None else tensor.double().cpu().numpy()

        return {
            "norm": values(self.norm),
            "violation": values(self.violation.sum(1)),
            "success": values(self.success),
            "best_norm": values(self.best_norm),
            "alpha": values(self.alpha),
            "free_pixels": values(self.free_pixels),
            "active_rows": values(self.active_rows),
        }


@dataclass(frozen=True)
class AttackResult:
    """The outcome of an attack on B images.

    delta (B, C, H, W): the smallest perturbation found that reaches the order; zeros where none
    did. success (B,) bool. l1, l2, linf (B,) float64: norms of `delta` as returned, so 0 for
    failures: average over `success` only. trace: name -> (iterations + 1, B) numbers of
    `Snapshot.numbers`. seconds: wall time.
    """

    delta: Tensor
    success: np.ndarray
    l1: np.ndarray
    l2: np.ndarray
    linf: np.ndarray
    trace: dict[str, np.ndarray]
    seconds: float

    @classmethod
    def of(
        cls,
        delta: Tensor,
        success: Tensor,
        numbers: Sequence[dict[str, np.ndarray]],
        seconds: float,
    ) -> AttackResult:
        """Measure `delta`, zeroed where `success` is false; `numbers`: one entry an iteration."""
        delta = torch.where(success.view(-1, *[1] * (delta.ndim - 1)), delta, 0.0).detach()
        flat = delta.double().flatten(1).abs()
        l1, l2, linf = flat.sum(1), flat.square().sum(1).sqrt(), flat.amax(1)
        trace = {name: np.stack([n[name] for n in numbers]) for name in numbers[0]}
        found = success.cpu().numpy().astype(bool)
        return cls(delta, found, *(n.cpu().numpy() for n in (l1, l2, linf)), trace, seconds)

    @property
    def asr(self) -> float:
        """Attack success rate, 0 to 1."""
        return float(self.success.mean())

    def __repr__(self) -> str:
        if not self.success.any():
            return f"AttackResult(0 of {len(self.success)} reached, {self.seconds:.2f} s)"
        l1, l2, linf = (n[self.success].mean() for n in (self.l1, self.l2, self.linf))
        return (
            f"AttackResult({self.success.sum()} of {len(self.success)} reached, mean l1 {l1:.3g}, "
            f"l2 {l2:.3g}, linf {linf:.3g}, {self.seconds:.2f} s)"
        )
