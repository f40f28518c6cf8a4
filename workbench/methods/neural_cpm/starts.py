"""Where simulated cells start: single sites at random within a radius of the middle.

Light to import, so that hyperparameters can be checked against it before anything is compiled.
"""

from __future__ import annotations

import numpy as np

# Share of the lattice's side within which cells start.
RECOVERY_RADIUS, BIPOLAR_RADIUS = 0.3, 0.25


def sites_within(size: int, radius: float) -> np.ndarray:
    """(m,) flat sites of a lattice (size, size) at most `radius` sites from its middle."""
    away = np.hypot(*(np.indices((size, size)) - (size - 1) / 2))
    return np.flatnonzero(away <= radius)


def scatter(
    size: int, kind: np.ndarray, n: int, radius: float, rng: np.random.Generator
) -> np.ndarray:
    """(n, size, size) starts: every cell one site, at random within `radius` of the middle.

    Raises ValueError if there are more cells than such sites.
    """
    sites = sites_within(size, radius)
    if len(sites) < len(kind) - 1:
        raise ValueError(
            f"n_cells = {len(kind) - 1} do not fit on {len(sites)} sites within radius {radius:g}"
        )
    frames = np.zeros((n, size * size), np.int32)
    for frame in frames:
        frame[rng.choice(sites, len(kind) - 1, replace=False)] = rng.permutation(len(kind) - 1) + 1
    return frames.reshape(n, size, size)
