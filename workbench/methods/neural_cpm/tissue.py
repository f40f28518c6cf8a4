"""A living tissue: the engine with the study's hyperparameters, as a source of frames to watch.

Builds one lattice from `Parameters`, obeys them while it runs, takes paint, and looks at single
copies. It draws nothing: `live.py` shows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from .lattice import CPM

SHAPE = ("size", "n_cells")  # these need a new lattice; all others act on the running one
BRUSH = 1  # sites around the pointer that it paints too


def distance_to_middle(size: int) -> np.ndarray:
    """(size, size) distance of each site to the middle of the lattice, in sites."""
    line = np.arange(size) - (size - 1) / 2
    return np.hypot(line[:, None], line[None, :])


def grown_disc(
    size: int, n_cells: int, volume: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Cells of about `volume` sites that fill a disc: (size, size) identities and (N+1,) kinds.

    Voronoi regions of random points in the disc, evened out; half of the cells of each kind, dealt
    at random. Where cells are so small that one gets no site, all start from one site each.
    """
    radius = min(np.sqrt(n_cells * volume / np.pi), 0.48 * size)
    sites = np.argwhere(distance_to_middle(size) <= radius)
    if len(sites) < n_cells:
        sites = np.argwhere(np.ones((size, size), bool))
    points = sites[rng.choice(len(sites), n_cells, replace=False)]
    centers = points.astype(float)
    for _ in range(3):  # Lloyd's algorithm: cells of similar size, as after division
        owner = cKDTree(centers).query(sites)[1]
        count = np.maximum(np.bincount(owner, minlength=n_cells), 1)
        for axis in (0, 1):
            centers[:, axis] = np.bincount(owner, sites[:, axis], minlength=n_cells) / count
    cell = np.zeros((size, size), np.int32)
    cell[tuple(sites.T)] = owner + 1
    if len(np.unique(owner)) < n_cells:
        cell[:] = 0
        cell[tuple(points.T)] = np.arange(1, n_cells + 1)
    kind = np.r_[0, 1 + rng.permutation(np.arange(n_cells) % 2)]
    return cell, kind.astype(np.int32)


class Tissue:
    """One lattice that follows `parameters` (the study's `Parameters`) and can be painted on.

    Every change of a parameter acts on the running simulation at the next call of `obey`; a new
    size or number of cells starts again.
    """

    kinds = ("medium", "kind 1", "kind 2")

    def __init__(self, parameters: Any):
        self.parameters = parameters
        self.reset(parameters.seed)

    def reset(self, seed: int) -> None:
        """A fresh start: a disc of cells, kinds dealt at random."""
        p = self.parameters
        self._rng = np.random.default_rng(seed)
        cell, kind = grown_disc(p.size, p.n_cells, p.V_target, self._rng)
        self._away = np.zeros((3, p.size, p.size))
        # Grows to 1 at the nearest edge: `field` is the price of one site there.
        self._away[2] = distance_to_middle(p.size) / (p.size / 2)
        self.model = CPM(cell, kind, p.contact_energies(), p.lam, p.V_target, seed=seed)
        self._strokes: dict[str, int] = {}
        self._shape = [getattr(p, name) for name in SHAPE]
        self.obey()

    def obey(self) -> None:
        """Take over the present values of all parameters."""
        p = self.parameters
        if self._shape != [getattr(p, name) for name in SHAPE]:
            self.reset(p.seed)
            return
        wanted = {
            "J": p.contact_energies(), "contact_norm": p.contact_norm, "lam": p.lam,
            "V_target": p.V_target, "lam_P": p.lam_P, "P_target": p.P_target,
            "connected": p.connected, "lam_act": p.lam_act, "max_act": p.max_act,
            "lam_ch": [0.0, 0.0, p.lam_ch], "T": p.temperature, "proposal": p.proposal,
            # Without a strength there is no field at all, and the kernel without it is faster.
            "field_strength": p.field, "kind_fields": self._away if p.field else None,
        }  # fmt: skip
        if p.lam_ch and not self.model.lam_ch.any():
            self.model.concentration = -distance_to_middle(p.size)
        for name, value in wanted.items():
            setattr(self.model, name, value)

    def paint(self, sites: np.ndarray, kind: int, stroke: str) -> None:
        """Paint (k, 2) sites and their neighbors: one new cell of `kind` for each stroke, 0 erases.

        A cell that loses its last site dies.
        """
        offsets = np.arange(-BRUSH, BRUSH + 1)
        grid = np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2)
        rows, columns = (sites[:, None] + grid).reshape(-1, 2).T % self.parameters.size
        identity = 0 if kind == 0 else self._strokes.get(stroke)
        if identity is None:
            self._strokes = {stroke: self.model.add_cell(kind, rows, columns)}
        else:
            self.model.paint(rows, columns, identity)

    def kill(self, identity: int) -> None:
        """Turn a cell into medium."""
        self.model.kill(identity)

    def permute_kinds(self) -> None:
        """Deal the kinds anew over the cells."""
        self.model.permute_kinds(self._rng)

    def copies_onto(self, row: int, column: int) -> list[dict[str, Any]]:
        """The copies that could land on a site, the cheapest first; empty away from a border.

        Each has `identity` (the label copied), `source` (row, column), `terms` (name -> share of
        Delta H), `delta` (their sum) and `acceptance`, min(1, exp(-Delta H / T)).
        """
        cell, size = self.model.cell, self.parameters.size
        found: dict[int, dict[str, Any]] = {}
        for down, right in np.argwhere(np.ones((3, 3))) - 1:
            source = (int(row + down) % size, int(column + right) % size)
            identity = int(cell[source])
            if identity == cell[row, column]:
                continue
            terms = self.model.delta((row, column), source, terms=True)
            delta = sum(terms.values())
            if identity not in found or delta < found[identity]["delta"]:
                found[identity] = {
                    "identity": identity, "source": source, "terms": terms, "delta": delta,
                    "acceptance": acceptance(delta, self.model.T),
                }  # fmt: skip
        return sorted(found.values(), key=lambda copy: copy["delta"])


def acceptance(delta: float, temperature: float) -> float:
    """Metropolis: min(1, exp(-Delta H / T)); at T = 0 uphill copies are refused."""
    if delta <= 0:
        return 1.0
    return float(np.exp(-delta / temperature)) if temperature > 0 else 0.0
