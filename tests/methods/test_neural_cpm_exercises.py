"""The exercise on symmetric energies takes every energy with the symmetries, and no other one."""

import numpy as np
import pytest

from workbench.exercises import check
from workbench.methods.neural_cpm.energy import contact_counts, volumes
from workbench.methods.neural_cpm.exercises import invariant_energy


def contact_energy(cell, kind):
    J = np.array([[0, 2.5, 1.0], [2.5, 1.0, 4.5], [1.0, 4.5, 1.0]])
    return (J * contact_counts(cell, kind)).sum()


def mixing(cell, kind):
    return contact_counts(cell, kind)[1, 2]


def outlines(cell, kind):
    counts = contact_counts(cell, kind)
    return 2.0 * counts[0, 1] + counts[0, 2]


def stiffness(cell, kind):
    lam = np.array([0.0, 1.0, 3.0])[kind[1:]]
    return (lam * (volumes(cell[None], len(kind))[0, 1:] - 10.0) ** 2).sum()


def sites_of_kind_1(cell, kind):
    return (kind[cell] == 1).sum()


@pytest.mark.parametrize(
    "energy", [contact_energy, mixing, outlines, stiffness, sites_of_kind_1],
    ids=lambda energy: energy.__name__,
)  # fmt: skip
def test_energies_of_the_chapter_pass(energy):
    assert check(invariant_energy, energy).status == "solved"


@pytest.mark.parametrize(
    ("energy", "says"),
    [
        (lambda cell, kind: np.sum(cell * kind[cell]), "renaming cells"),
        (lambda cell, kind: np.sum((kind[cell] == 1)[0:6]), "moving everything"),
        (lambda cell, kind: np.sum(cell > 0), "who has which kind"),
        (lambda cell, kind: np.nan, "finite"),
    ],
)
def test_energies_without_the_symmetries_are_refused(energy, says):
    outcome = check(invariant_energy, energy)
    assert outcome.status == "not yet" and says in outcome.message
