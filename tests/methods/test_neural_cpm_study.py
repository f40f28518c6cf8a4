"""The study of NeuralCPM: deterministic, cancelable, honest about what it did not test."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helpers import small_parameters

from workbench import steps as work
from workbench.methods.neural_cpm import bipolar, experiments, findings, study
from workbench.methods.neural_cpm.closure import CellSorting
from workbench.methods.neural_cpm.generators import simulate
from workbench.methods.neural_cpm.training import train
from workbench.parameters import ParameterError


@pytest.fixture(scope="module")
def finished():
    return study.run(small_parameters(), progress=False)


def test_the_same_seed_gives_the_same_numbers(finished):
    again = study.run(small_parameters(), progress=False)
    assert again.values == finished.values
    assert again.claims == finished.claims
    other = study.run(small_parameters(seed=5), progress=False)
    assert other.values != finished.values


def test_every_experiment_of_the_quick_study_leaves_results(finished):
    assert finished.complete
    assert finished.law.sampled["uniform"].shape == (40,)
    assert finished.tissue.frames.shape[1:] == (40, 40)
    assert set(finished.recovered) == {"own"}
    assert set(finished.bipolar.models) == {bipolar.CELL_SORTING, bipolar.CLOSURE}
    assert finished.bipolar.exact.shape == finished.bipolar.first_order.shape
    assert np.isfinite(finished.bipolar.exact).sum() > 10
    assert all(np.isfinite(v) for v in finished.values.values())


def test_a_claim_whose_experiment_did_not_run_is_not_tested(finished):
    verdicts = {c.id: c.verdict for c in finished.claims}
    assert set(verdicts) == {
        "engine_law", "no_detailed_balance", "recovery_order", "recovery_error", "recovery_scaled",
        "recovery_A", "recovery_B", "recovery_D", "recovery_F", "persistent_worse",
        "analytic_fails", "closure_works", "interactions_matter", "closure_matters", "stability",
        "first_order", "first_order_slope", "digits",
    }  # fmt: skip
    assert verdicts["engine_law"] == verdicts["no_detailed_balance"] == "holds"
    for claim in ("recovery_error", "closure_works", "interactions_matter", "digits"):
        assert verdicts[claim] == "not tested"
    assert all(c.note.startswith("Threshold ours.") for c in finished.claims)


def test_the_paper_figures_are_unknown_and_not_invented(finished):
    assert all(claim.paper is None for claim in finished.claims)


def test_recovery_counts_the_order_of_the_two_largest_energies():
    truth = np.array([2.5, 1.0, 1.0, 4.5, 1.0, 0.5])
    estimates = np.array([[2.4, 1, 1, 4.4, 1, 0.5], [4.4, 1, 1, 2.4, 1, 0.5]])
    recovered = experiments.Recovered("own", truth, estimates, np.zeros(2), np.zeros(2), [])
    assert findings._right_order(recovered) == [1.0, 0.0]
    tied = replace(recovered, truth=np.array([4.5, 1.0, 1.0, 4.5, 1.0, 0.5]))
    assert findings._right_order(tied) == [1.0, 1.0], "equal energies have no order"
    below = replace(tied, estimates=np.array([[2.4, 2.6, 1, 4.4, 1, 0.5]]))
    assert findings._right_order(below) == [0.0]
    assert findings._right_order(replace(recovered, truth=np.ones(6))) is None
    assert recovered.worst_relative_error == pytest.approx([0.04, 0.76])


def test_a_cancelled_study_keeps_and_judges_what_is_finished():
    seen = []

    def stop() -> bool:
        return seen[-1].message == "engine: tissue"

    with pytest.raises(work.Cancelled) as stopped:
        work.run(study.steps(small_parameters()), on_step=seen.append, cancelled=stop)
    partial = stopped.value.data
    assert not partial.complete
    assert partial.tissue is not None and not partial.recovered
    verdicts = {c.id: c.verdict for c in partial.claims}
    assert verdicts["engine_law"] == "holds" and verdicts["recovery_order"] == "not tested"


def test_progress_never_goes_back_and_steps_come_often():
    seen = []
    work.run(study.steps(small_parameters()), on_step=seen.append)
    done = [step.done for step in seen]
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(done))
    assert done[-1] == pytest.approx(1.0)
    assert len(seen) > 100


def test_the_full_preset_trains_every_ablation_and_the_option_all_networks():
    full = study.Parameters.preset("full")
    assert set(bipolar.plan(full)) == {bipolar.CLOSURE, bipolar.BLIND, bipolar.ALONE}
    more = study.Parameters.preset("full", other_networks=True)
    assert {"one NH layer + CNN", "plain CNN", "graph network"} < set(bipolar.plan(more))
    assert set(experiments.scenarios(full)) == {"A", "B", "D", "F"}


@pytest.mark.slow
def test_ablations_baselines_scenarios_and_selection_run_at_a_tiny_size():
    tiny = small_parameters(
        weights="train", ablations=True, other_networks=True, all_scenarios=True, select_every=2,
        recovery_seeds=2, train_seeds=2,
    )  # fmt: skip
    result = study.run(tiny, progress=False)
    assert set(result.recovered) == {"A", "B", "D", "F"} and result.persistent is not None
    models = result.bipolar.models
    assert len(models) == 9 and bipolar.SAME_RULE in models
    seeds = {name: len(m.rmse) for name, m in models.items()}
    fits = (bipolar.CELL_SORTING, bipolar.FIELD, bipolar.SAME_RULE)
    assert seeds == {name: 1 if name in fits else 2 for name in models}
    # All of it was measured, and none of it is large enough to be judged.
    assert {
        "recovery_D_rmse", "recovery_B_persistent_rmse", "bipolar_NH_alone_fragmented",
        "bipolar_NH_closure_no_interactions_rmse", "bipolar_cell_sorting_border_source_rmse",
    } <= set(result.values)  # fmt: skip
    tested = {c.id for c in result.claims if c.verdict != "not tested"}
    assert tested == {"engine_law", "no_detailed_balance", "first_order", "first_order_slope"}


def test_the_contact_norm_changes_pictures_and_fit_alike():
    """With c four times as large and J a quarter, the pictures are the same."""
    own = experiments.own_scenario(small_parameters())
    quarter = small_parameters(contact_norm=1.0, **{n: getattr(small_parameters(), n) / 4 for n in
                                         ("J01", "J02", "J11", "J12", "J22")})  # fmt: skip
    first = work.run(experiments.recovery_steps(small_parameters(), own, "own"))
    second = work.run(experiments.recovery_steps(quarter, experiments.own_scenario(quarter), "own"))
    assert np.array_equal(
        first.fits[0].data_statistics[0, 5:], second.fits[0].data_statistics[0, 5:]
    )
    assert second.fits[0].data_statistics[0, :5] == pytest.approx(
        4 * first.fits[0].data_statistics[0, :5]
    )


def test_temperature_scales_the_recovered_energy_back():
    hot = small_parameters(temperature=2.0, recovery_iters=10)
    result = work.run(experiments.recovery_steps(hot, experiments.own_scenario(hot), "own"))
    assert result.estimates[0] == pytest.approx(2.0 * result.fits[0].values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"n_cells": 5000}, "do not fit on size = 60"),
        (
            {"size": 100, "n_cells": 5000, "V_target": 1.0},
            "n_cells = 5000 do not fit where they start, within 30 sites of the middle of "
            "size = 100: at most 2828 do",
        ),
        (
            {"bipolar_size": 12, "bipolar_cells": 50, "weights": "train"},
            "bipolar_cells = 50 cells of bipolar_V_target = 36 sites do not fit on "
            "bipolar_size = 12: at most 4 do",
        ),
        (
            {"bipolar_size": 24, "bipolar_cells": 130, "bipolar_V_target": 4.0, "weights": "train"},
            "bipolar_cells = 130 do not fit where they start, within 6 sites",
        ),
        ({"stride": 5, "weights": "train"}, "does not divide bipolar_size = 36"),
        ({"widths": [8], "weights": "train"}, "must have the same length"),
        ({"widths": [4, 4]}, "weights = 'stored' are for the default network, but widths"),
        ({"closure": False}, "use weights = 'train'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(values, words):
    with pytest.raises(ParameterError, match=words):
        study.Parameters.preset("quick", **values)


def test_the_paper_preset_is_announced_as_long_and_builds_its_network():
    paper = study.Parameters.preset("paper")
    assert "need an accelerator" in paper.caution()
    assert study.Parameters().caution() == ""
    network = bipolar.network(paper, True, 0)
    assert network.size == (149, 149)


@pytest.mark.slow
def test_the_paper_preset_trains_its_first_iteration():
    paper = study.Parameters.preset("paper", chain_steps=1, chains=2)  # 16 take minutes
    pictures = simulate(
        "bipolar-motion", 2, size=paper.bipolar_size, n_cells=paper.bipolar_cells,
        V_target=paper.bipolar_V_target, stages=((2.0, 20.0),),
    )  # fmt: skip
    basis = CellSorting.from_values(pictures.scenario.matrix, 1.0, paper.bipolar_V_target)
    model = bipolar.plan(paper)[bipolar.CLOSURE](basis, paper.seed)
    before = model(pictures.frames, pictures.kind).detach()
    options = {**bipolar._options(paper, None, pictures.kind), "iterations": 1}
    trained = train(model, pictures.frames, pictures.kind, **options)
    assert len(trained.history["gap"]) == 1 and not trained.stopped
    assert trained.chains.shape == (2, 149, 149)
    assert not np.allclose(model(pictures.frames, pictures.kind).detach(), before)
