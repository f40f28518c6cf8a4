"""Membership inference by the loss: are deleted examples fitted better than others like them?

A high area says that the model remembers; an area of one half says only that this attack fails.
A failed attack is not a certificate.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from .audit import auc
from .mechanisms import Task


def attack(task: Task, w: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss-threshold attack on networks w (S, d): areas (S,), member losses, non-member losses.

    Members: the forget set (S, m); non-members: the validation set (S, k), of equal distribution.
    Members are expected to have the lower loss. nan where a network is not finite.
    """
    members, others = task.losses(w, "forget"), task.losses(w, "validation")
    areas = [
        auc(-a, -b) if np.isfinite(a).all() and np.isfinite(b).all() else np.nan
        for a, b in zip(members, others, strict=True)
    ]
    return np.array(areas), members, others
