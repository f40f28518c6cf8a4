"""The warm-up: two constants of UCB1 on Bernoulli bandits.

The "published" index is mean + sqrt(2 ln T / N), the "refined" one mean + sqrt(ln t / (2 N)): N
pulls of the arm, t pulls of all, T in the end. Each arm is pulled once first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from workbench.numerics.checks import choice

from .learning import spaced

INDICES = ("published", "refined")


@njit(cache=True, nogil=True)
def _pull(means, T, refined, rng, rounds, regret, pulls):
    rewards = np.zeros(len(means))
    best, lost, noted = means.max(), 0.0, 0
    for t in range(1, T + 1):
        width = 0.5 * np.log(t) if refined else 2.0 * np.log(T)
        chosen, highest = 0, -np.inf
        for a in range(len(means)):
            if pulls[a] == 0:
                chosen = a
                break
            index = rewards[a] / pulls[a] + np.sqrt(width / pulls[a])
            if index > highest:
                chosen, highest = a, index
        rewards[chosen] += rng.random() < means[chosen]
        pulls[chosen] += 1
        lost += best - means[chosen]
        if rounds[noted] == t:
            regret[noted] = lost
            noted += 1


@dataclass(frozen=True)
class Pulls:
    """Pseudo-regret (n,) after `rounds` (n,) pulls, and pulls of each arm (A,) in the end."""

    rounds: np.ndarray
    regret: np.ndarray
    pulls: np.ndarray
    means: np.ndarray


def arms(A: int, seed: int) -> np.ndarray:
    """Means (A,) of Bernoulli arms, uniform in [0, 1]."""
    return np.random.RandomState(seed).rand(A)


def pull(means: np.ndarray, T: int, index: str = "refined", seed: int = 0) -> Pulls:
    """Pull arms with `means` (A,) T times by an index, "published" or "refined".

    Raises ValueError for means outside [0, 1], an unknown index, or fewer rounds than arms.
    """
    choice("index", index, INDICES)
    means = np.asarray(means, float)
    if means.ndim != 1 or not len(means) or not ((means >= 0) & (means <= 1)).all():
        raise ValueError("means must be a list of probabilities, one for each arm")
    if T < len(means):
        raise ValueError(f"T = {T}: {len(means)} arms need at least as many rounds")
    rounds = spaced(T, 400)
    regret, pulls = np.zeros(len(rounds)), np.zeros(len(means), np.int64)
    rng = np.random.Generator(np.random.SFC64(seed))
    _pull(means, T, index == "refined", rng, rounds, regret, pulls)
    return Pulls(rounds, regret, pulls, means)
