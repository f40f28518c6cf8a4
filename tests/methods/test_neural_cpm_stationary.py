"""Exact stationary laws of the copy rules, and the engine against each of them."""

import numpy as np
import pytest

from workbench.methods.neural_cpm.exact_chain import LAWS, stationary
from workbench.methods.neural_cpm.lattice import Ensemble

CASE = {"H": 3, "W": 4, "J": 2, "lam": 0.5, "V_target": 5, "T": 2}
RULES = LAWS[:-1]


def test_uniform_rule_has_the_exact_stationary_law():
    """Oracle: the 4,096-state chain, built independently of this code."""
    law = stationary(**CASE, proposal="uniform")
    assert law["mean_volume"] == pytest.approx(3.190103, abs=5e-7)
    assert law["mean_energy"] == pytest.approx(11.845712, abs=5e-7)
    assert law["p"][3:8] == pytest.approx([0.16092, 0.13704, 0.10756, 0.07273, 0.03886], abs=5e-6)
    assert law["p"].sum() == pytest.approx(1) and law["p"][[0, 12]].sum() == 0


def test_boltzmann_law_over_the_same_states_is_another_one():
    law = stationary(**CASE, proposal="boltzmann")
    assert law["mean_volume"] == pytest.approx(4.958274, abs=5e-7)
    assert law["mean_energy"] == pytest.approx(12.541673, abs=5e-7)


@pytest.mark.parametrize("proposal", ["edges", "border_target"])
def test_rules_that_differ_by_their_clock_share_the_law(proposal):
    uniform, other = stationary(**CASE), stationary(**CASE, proposal=proposal)
    assert other["p"] == pytest.approx(uniform["p"], abs=1e-9)
    assert other["mean_energy"] == pytest.approx(uniform["mean_energy"], abs=1e-8)


def test_border_source_is_a_different_process():
    assert stationary(**CASE, proposal="border_source")["mean_volume"] < 2


@pytest.mark.parametrize("proposal", RULES)
def test_engine_samples_the_exact_law_of_each_rule(proposal):
    law = stationary(**CASE, proposal=proposal)
    cell = np.zeros((1000, 3, 4), int)
    cell[:, 1, 1:3] = 1
    ensemble = Ensemble(cell, [0, 1], [[0, 2], [2, 0]], 0.5, 5, T=2, proposal=proposal, seed=1)
    ensemble.step(60)
    volumes, energies = [], []
    for _ in range(40):
        ensemble.step(25)
        volumes.append(ensemble.volumes()[:, 1])
        energies.append(ensemble.energy())
    for sampled, exact in ((volumes, law["mean_volume"]), (energies, law["mean_energy"])):
        of_chains = np.mean(sampled, axis=0)  # chains are independent, their samples are not
        error = of_chains.std() / np.sqrt(len(of_chains))
        assert abs(of_chains.mean() - exact) < 4 * error
    found = np.bincount(np.ravel(volumes), minlength=13) / 40_000
    assert np.abs(found - law["p"]).max() < 0.015


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"H": 2}, "2 x 4"),
        ({"H": 5}, "at most 16 sites"),
        ({"T": 0}, "T = 0"),
        ({"proposal": "edge"}, "did you mean 'edges'"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        stationary(**{**CASE, **change})
