"""What the copy rules converge to, exactly, on lattices small enough to list every state.

One cell and medium on an H x W torus: the transition matrix between all states is written down for
a proposal rule and its stationary law iterated to, weighted by the time the rule's clock spends in
each state. None of the rules obeys detailed balance, so the law differs from exp(-H/T), which is
here for comparison. Nothing is sampled. Construction ours; rules as in the paper, its code and
Artistoo.
"""

import numpy as np
from scipy import sparse

from workbench.numerics.checks import choice

from ._checks import number
from ._kernels import RULES
from ._prices import RING

MAX_SITES = 16  # 65,536 states
LAWS = [*RULES, "boltzmann"]


def stationary(
    H: int, W: int, J: float, lam: float, V_target: float, T: float, proposal: str = "uniform"
) -> dict[str, float | np.ndarray]:
    """Exact stationary law of a rule for one cell and medium, both kept alive, contact_norm 1/4.

    J: energy of the cell-medium contact; lam, V_target: volume; T > 0; proposal: one of the four
    rules, or "boltzmann" for exp(-H/T) over the same states. Returns mean_volume, mean_energy and p
    (H W + 1,), the probability of each volume. Raises ValueError for sides below 3 or more than 16
    sites, and for a rule or a temperature that is not allowed.
    """
    if min(H, W) < 3 or H * W > MAX_SITES:
        raise ValueError(f"H x W = {H} x {W}; allowed are sides >= 3 and at most {MAX_SITES} sites")
    number("T", T, 0, above=True)
    choice("proposal", proposal, LAWS)
    bits = (np.arange(2 ** (H * W))[:, None] >> np.arange(H * W)) & 1
    unlike = _unlike(bits.reshape(-1, H, W)).reshape(len(bits), 8, H * W)
    volume = bits.sum(1)
    energy = 0.25 * J * unlike.sum((1, 2)) / 2 + lam * (volume - V_target) ** 2
    alive = np.flatnonzero((volume > 0) & (volume < H * W))
    if proposal == "boltzmann":
        weight = np.exp(-(energy[alive] - energy[alive].min()) / T)
    else:
        flips, dwell = _proposals(unlike[alive].astype(float), proposal, H, W)
        weight = dwell * _invariant(alive, flips, energy, volume, T)
    weight /= weight.sum()
    return {
        "mean_volume": float(weight @ volume[alive]),
        "mean_energy": float(weight @ energy[alive]),
        "p": np.bincount(volume[alive], weight, minlength=H * W + 1),
    }


def _unlike(states: np.ndarray) -> np.ndarray:
    """(S, 8, H, W) bool: does the neighbor in each direction of RING differ?"""
    shifted = [states != np.roll(states, (-row, -column), (1, 2)) for row, column in RING.tolist()]
    return np.stack(shifted, axis=1)


def _proposals(unlike: np.ndarray, proposal: str, H: int, W: int) -> tuple[np.ndarray, np.ndarray]:
    """(S, H W) chance that an attempt proposes to flip each site, and (S,) MCS an attempt takes."""
    towards = unlike.sum(1)  # unlike neighbors of each site
    n_border = (towards > 0).sum(1)
    if proposal == "uniform":
        return towards / 8 / (H * W), np.ones(len(unlike))
    if proposal == "edges":
        n_edges = towards.sum(1)
        return towards / n_edges[:, None], 8 / n_edges
    if proposal == "border_target":
        return towards / 8 / n_border[:, None], 1 / n_border
    share = np.divide(1, towards, out=np.zeros_like(towards), where=towards > 0).reshape(-1, H, W)
    flips = np.zeros(share.shape)
    for d, (row, column) in enumerate(RING.tolist()):
        source = np.roll(share, (-row, -column), (1, 2))
        flips += unlike[:, d].reshape(-1, H, W) * source
    return flips.reshape(len(unlike), -1) / n_border[:, None], np.ones(len(unlike))


def _invariant(
    alive: np.ndarray, flips: np.ndarray, energy: np.ndarray, volume: np.ndarray, T: float
) -> np.ndarray:
    """Invariant law of the chain of attempts, by power iteration."""
    n_sites = flips.shape[1]
    after = alive[:, None] ^ (1 << np.arange(n_sites))
    accepted = np.exp(-np.maximum(energy[after] - energy[alive][:, None], 0) / T)
    rate = flips * accepted * np.isin(after, alive)
    place = np.zeros(len(energy), int)
    place[alive] = np.arange(len(alive))
    rows = np.repeat(np.arange(len(alive)), n_sites)
    moves = sparse.csr_array(
        (rate.ravel(), (place[after].ravel(), rows)), shape=(len(alive), len(alive))
    )
    stay = 1 - rate.sum(1)
    law = np.full(len(alive), 1 / len(alive))
    for _ in range(200_000):
        moved = moves @ law + stay * law
        if np.abs(moved - law).max() < 1e-16:
            return moved
        law = moved
    raise ValueError(f"the chain mixes too slowly at T = {T:g}; choose a higher temperature")
