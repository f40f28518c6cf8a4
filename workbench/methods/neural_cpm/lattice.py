"""One cellular Potts lattice that can be watched, questioned and painted on while it runs.

`CPM` adds to `Ensemble` (where the dynamics and all parameters are) what makes sense for a single
lattice: the price of one copy attempt term by term, a map of the cheapest copies, a brush. It draws
nothing itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._kernels import lowest_price, price_at
from ._prices import RING, State
from .ensemble import Ensemble, permute_identities

__all__ = ["CPM", "PRICE_TERMS", "Ensemble", "permute_identities"]

PRICE_TERMS = ("contact", "volume", "perimeter", "field", "chemotaxis", "act", "motion")


class CPM(Ensemble):
    """One cellular Potts lattice: takes what `Ensemble` takes, with `cell` (H, W) for frames.

    `.cell` is the lattice now; `.delta` and `.lowest_delta` look at single copies; `.paint`,
    `.kill` and `.add_cell` edit it between steps.
    """

    def __init__(
        self,
        cell: ArrayLike,
        kind: ArrayLike,
        J: ArrayLike,
        lam: ArrayLike,
        V_target: ArrayLike,
        **options: Any,
    ):
        if np.ndim(cell) != 2:
            raise ValueError(f"cell must be (H, W), got shape {np.shape(cell)}; see Ensemble")
        super().__init__(cell, kind, J, lam, V_target, **options)

    @property
    def cell(self) -> np.ndarray:
        """(H, W) int32: a copy of the lattice now."""
        return self.frames[0]

    def volumes(self) -> np.ndarray:
        """(N + 1,) int64: sites of each identity."""
        return self._volume[0].copy()

    def perimeters(self) -> np.ndarray:
        """(N + 1,) int64: pairs of a site of the cell and a neighbor outside it."""
        return super().perimeters()[0]

    def border_count(self) -> int:
        """Number of sites with a neighbor of another identity."""
        return int(super().border_count()[0])

    def energy(self, terms: bool = False) -> float | dict[str, float]:
        """H, or its contact, volume, perimeter and field terms by name, counted anew."""
        values = {name: float(value[0]) for name, value in super().energy(terms=True).items()}
        return values if terms else sum(values.values())

    def delta(
        self, target: tuple[int, int], source: tuple[int, int], terms: bool = False
    ) -> float | dict[str, float]:
        """Price of copying the label at `source` onto its neighbor `target`, both (row, column).

        With terms=True by name: the terms of H, then chemotaxis, act and motion, which are prices
        of the copy only. 0 where the labels are equal. Raises ValueError for sites that are outside
        the lattice or no neighbors on the torus.
        """
        size = np.array(self.shape)
        for name, site in (("target", target), ("source", source)):
            if (
                np.shape(site) != (2,)
                or (np.array(site) < 0).any()
                or (np.array(site) >= size).any()
            ):
                raise ValueError(f"{name} = {site}; allowed is (row, column) within {self.shape}")
        away = (np.array(source) - target + 1) % size - 1
        ring = np.flatnonzero((away == RING).all(axis=1))
        if len(ring) != 1:
            raise ValueError(f"source {source} is not one of the 8 neighbors of target {target}")
        state, model = self._prepare()
        flat = (target[0] + 1) * (size[1] + 2) + target[1] + 1
        prices = np.zeros(len(PRICE_TERMS))
        if self._label[0, flat] != self._label[0, flat + model.offset[ring[0]]]:
            prices[:] = price_at(_unlisted(state), model, 0, int(flat), int(ring[0]))
        values = dict(zip(PRICE_TERMS, prices.tolist(), strict=True))
        return values if terms else sum(values.values())

    def lowest_delta(self) -> np.ndarray:
        """(H, W) least price of a copy onto each site over its neighbors' labels; nan in a bulk."""
        state, model = self._prepare()
        lowest = np.full(self.shape, np.nan)
        lowest_price(_unlisted(state), model, 0, lowest)
        return lowest

    def paint(self, rows: ArrayLike, columns: ArrayLike, identity: int) -> None:
        """Give sites to a cell (0 erases); indices wrap around. Other cells may die of it."""
        if not 0 <= identity < len(self.kind):
            raise ValueError(f"identity = {identity}; allowed are 0..{len(self.kind) - 1}")
        frames = self.frames
        frames[0, np.mod(rows, self.shape[0]), np.mod(columns, self.shape[1])] = identity
        self._relabel(frames)

    def kill(self, identity: int) -> None:
        """Turn a cell into medium; its identity stays, without sites, and may be used again."""
        if not 1 <= identity < len(self.kind):
            raise ValueError(f"identity = {identity}; allowed are 1..{len(self.kind) - 1}")
        frames = self.frames
        self._relabel(np.where(frames == identity, 0, frames))

    def add_cell(self, kind: int, rows: ArrayLike, columns: ArrayLike) -> int:
        """Paint a new cell of a kind and return its identity, that of a dead cell if any."""
        if not 1 <= kind < self.n_kinds:
            raise ValueError(f"kind = {kind}; allowed are 1..{self.n_kinds - 1}")
        dead = np.flatnonzero(self._volume[0, 1:] == 0)
        identity = int(dead[0]) + 1 if len(dead) else len(self.kind)
        kinds = self.kind if len(dead) else np.append(self.kind, np.int32(kind))
        kinds = kinds.copy()
        kinds[identity] = kind
        object.__setattr__(self, "kind", kinds)
        if not len(dead):
            for name in ("_direction", "_center"):
                if (vectors := getattr(self, name)) is not None:
                    setattr(self, name, np.pad(vectors, ((0, 0), (0, 1), (0, 0))))
        self.paint(rows, columns, identity)
        return identity


def _unlisted(state: State) -> State:
    """The state without its list, which no price reads: one kernel then prices for all rules."""
    return state._replace(index=None)
