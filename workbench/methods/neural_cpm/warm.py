"""Compile every kernel of the method once, into the cache on disk.

The explorer's sliders and rules reach all of them, and a compilation stops a running tissue for
seconds. Which kernels there are is decided in `Ensemble._prepare`.
"""

from __future__ import annotations

import numpy as np

from .closure import CellSorting, Hybrid
from .energy import contact_counts
from .hamiltonian import NeuralHamiltonian
from .lattice import CPM
from .measures import fragmented
from .sampling import sample

FIELDS = {"kind_fields": np.zeros((2, 12, 12))}
# Proposal and optional terms of each kernel of the engine; all listed rules share theirs.
KERNELS = (
    ("uniform", {}), ("uniform", FIELDS), ("uniform", {"lam_P": 0.1}),
    ("uniform", {"lam_P": 0.1, **FIELDS}), ("uniform", {"lam_act": 1.0}),
    ("edges", {}), ("edges", {"lam_act": 1.0}),
)  # fmt: skip


def warm_up() -> None:
    """Compile the kernels of the engine, the sampler and the measures, or load them from the cache.

    Run once at set-up.
    """
    cell = np.zeros((12, 12), np.int32)
    cell[2:5, 2:5] = 1
    for proposal, terms in KERNELS:
        model = CPM(cell, [0, 1], [[0, 1], [1, 1]], 1, 9, proposal=proposal, **terms)
        model.delta((1, 1), (2, 2))
        model.lowest_delta()
        model.step(1)
    contact_counts(cell, [0, 1])
    fragmented(cell)
    network = NeuralHamiltonian(12, n_kinds=1)
    sample(Hybrid(CellSorting(1), network), cell[None], [0, 1], steps=1, n_parallel=2)
    sample(CellSorting(1, field_size=12), cell[None], [0, 1], steps=1, n_parallel=2)
