"""One number for two attacks: success rate and the norms of the perturbations together.

Reconstruction: the paper's figure of merit joins success rate and l1, l2, linf, but its formula was
not available to us. Ours is the ratio of success rates times the mean ratio of mean norms.
"""

from __future__ import annotations

import math

import numpy as np

from .records import AttackResult


def figure_of_merit(a: AttackResult, b: AttackResult, paired: bool = False) -> float:
    """FoM(A|B) = ASR_A / ASR_B * mean over p in (1, 2, inf) of mean l_p(B) / mean l_p(A).

    Above 1: A is better. Norms are averaged over each attack's own successes, or, `paired`, over
    the images where both succeed, which removes the effect of who succeeds on the hard ones (nan
    without a common image). inf: B fails on every image; 0: A does; nan: both do. Reconstruction.
    """
    if len(a.success) != len(b.success):
        raise ValueError(f"a has {len(a.success)} images but b {len(b.success)}; attack the same")
    if not b.success.any():
        return math.inf if a.success.any() else math.nan
    if not a.success.any():
        return 0.0
    both = a.success & b.success
    own_a, own_b = (both, both) if paired else (a.success, b.success)
    if not own_a.any():
        return math.nan
    ratios = [_ratio(b_norm[own_b].mean(), a_norm[own_a].mean()) for a_norm, b_norm in _norms(a, b)]
    return float(a.success.mean() / b.success.mean() * np.mean(ratios))


def merit_text(value: float) -> str:
    """A figure of merit for a table: "1.30", "B fails", "A fails", or "no common success"."""
    if math.isnan(value):
        return "no common success"
    return "B fails" if math.isinf(value) else "A fails" if value == 0 else f"{value:.2f}"


def _norms(a: AttackResult, b: AttackResult) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(a.l1, b.l1), (a.l2, b.l2), (a.linf, b.linf)]


def _ratio(b: float, a: float) -> float:
    """b / a, where images that needed no perturbation count as equal."""
    return b / a if a > 0 else 1.0 if b == 0 else math.inf
