"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

import numpy as np

from workbench.exercises import Exercise


def _acceptance(answer) -> None:
    assert answer(-3.0, 1.0) == 1, "a copy that lowers the energy is always accepted"
    assert answer(0.0, 1.0) == 1, "a copy that changes nothing is accepted"
    assert np.isclose(answer(2.0, 4.0), np.exp(-0.5)), "at delta = 2 and T = 4 it is exp(-1/2)"
    assert answer(1.0, 0.0) == 0, "at T = 0 only downhill copies are accepted"
    assert answer(-1.0, 0.0) == 1, "at T = 0 downhill copies are accepted"


def _contrastive_gradient(answer) -> None:
    from .energy import contact_counts

    rng = np.random.default_rng(0)
    kind = np.array([0, 1, 2])
    data, chains = rng.integers(0, 3, (2, 4, 6, 6))
    data_counts, chain_counts = contact_counts(data, kind), contact_counts(chains, kind)
    wanted = 0.25 * (data_counts.mean(0) - chain_counts.mean(0))
    given = np.asarray(answer(data_counts, chain_counts, 0.25))
    assert given.shape == (3, 3), "the answer has one number for each pair of kinds: shape (3, 3)"
    assert np.allclose(given, wanted), "it is c times (mean over data - mean over chains)"


def _invariant_energy(answer) -> None:
    # Cells of unequal size in two touching pairs of one kind each, far apart: an exchange of kinds
    # makes two mixed pairs, which contact energies and sums over a kind must notice.
    cell = np.zeros((12, 12), np.int64)
    cell[1:4, 1:4], cell[1:5, 4:8] = 1, 2
    cell[7:9, 3:6], cell[7:11, 6:9] = 3, 4
    kind = np.array([0, 1, 1, 2, 2])
    first = float(answer(cell, kind))
    assert np.isfinite(first), "the energy must be a finite number"
    for turn in (1, 2, 3):  # several: one renaming may leave a wrong energy as it was by chance
        order = np.r_[0, 1 + np.roll(np.arange(4), turn)]
        renamed_kind = np.empty_like(kind)
        renamed_kind[order] = kind
        renamed = float(answer(order[cell], renamed_kind))
        assert np.isclose(first, renamed), "renaming cells (with their kinds) must change nothing"
    moved = float(answer(np.roll(cell, (3, 5), (0, 1)), kind))
    assert np.isclose(first, moved), "moving everything around the torus must change nothing"
    # Every way to deal the kinds: an energy may happen to be the same for one of them.
    dealt = [(1, 2, 1, 2), (1, 2, 2, 1), (2, 1, 1, 2), (2, 1, 2, 1), (2, 2, 1, 1)]
    others = [float(answer(cell, np.array([0, *kinds]))) for kinds in dealt]
    assert not np.allclose(first, others), "the energy must depend on who has which kind"


acceptance = Exercise(
    "Metropolis test",
    _acceptance,
    "Treat delta <= 0 and T = 0 before dividing by the temperature.",
)
contrastive_gradient = Exercise(
    "Gradient of contrastive divergence",
    _contrastive_gradient,
    "The energy is linear in J, so its derivative is the contact count times c.",
)
invariant_energy = Exercise(
    "An energy that keeps the symmetries",
    _invariant_energy,
    "Build it from kind[cell] and numpy.roll, so that identities only decide what is unlike.",
)
