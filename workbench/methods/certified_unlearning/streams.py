"""Streams of random numbers that repeat, for experiments: one for each purpose, never shared."""

from __future__ import annotations

import numpy as np
import torch

INITIAL, NOISE, WHITE_BOX, DP_SGD = range(10, 14)  # numpy's own streams have numbers below 10


def generator(purpose: int, *key: int) -> torch.Generator:
    """The stream of a purpose and a key, which has the same length for the whole purpose."""
    seed = np.random.SeedSequence([purpose, *map(int, key)]).generate_state(1)[0]
    return torch.Generator().manual_seed(int(seed))
