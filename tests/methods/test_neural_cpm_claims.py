"""Every claim of NeuralCPM can hold and can fail: made-up results on either side of its limit."""

from types import SimpleNamespace

import numpy as np
import pytest

from workbench.methods.neural_cpm import bipolar, findings
from workbench.methods.neural_cpm.experiments import Recovered
from workbench.methods.neural_cpm.study import NeuralCPMStudy, Parameters

TRUTH = np.array([2.5, 1.0, 1.0, 4.5, 1.0, 0.5])
SCENARIOS = "ABDF"


def recovered(rmse=0.05, factor=1.0, rmse_scaled=0.05, estimates=None) -> Recovered:
    estimates = [factor * TRUTH] * 2 if estimates is None else estimates
    both = np.full(2, rmse), np.full(2, rmse_scaled)
    return Recovered("B", TRUTH, np.array(estimates), *both, [])


def model(rmse=(22.0, 22.0, 22.0), fragmented=0.5, stable=1.0) -> SimpleNamespace:
    rmse = np.array(rmse, float)
    n = len(rmse)
    return SimpleNamespace(
        rmse=rmse, rmse_interval=np.stack([rmse - 1, rmse + 1], axis=1), at_edge=np.zeros(n),
        fragmented=np.full(n, fragmented), stable=np.full(n, stable), frames=np.zeros((n, 32)),
    )  # fmt: skip


def finished(changes=None, **parameters) -> NeuralCPMStudy:
    """A study of the full preset in which every claim holds, but for `changes` by name."""
    changes = changes or {}
    exact = np.random.default_rng(0).normal(size=(8, 40))
    models = {
        bipolar.CELL_SORTING: model(), bipolar.CLOSURE: model((8.0, 8.0, 8.0)),
        bipolar.BLIND: model(), bipolar.ALONE: model(fragmented=4.0),
    }  # fmt: skip
    for name in set(changes) & set(models):
        models[name] = changes[name]
    study = NeuralCPMStudy(Parameters.preset("full", **parameters))
    study.law = SimpleNamespace(
        exact={"uniform": 3.19, "boltzmann": changes.get("boltzmann", 4.96)},
        sampled={"uniform": np.full(4, changes.get("engine", 3.2))},
    )
    study.recovered = {letter: changes.get(letter, recovered()) for letter in SCENARIOS}
    study.persistent = changes.get("persistent", recovered(0.5))
    study.bipolar = SimpleNamespace(
        models=models, noise_floor=np.array([1.0, 2.0, 3.0]), exact=exact,
        first_order=changes.get("first_order", lambda x: 1.01 * x)(exact),
        analytic=np.zeros_like(exact),
    )  # fmt: skip
    scores = {"data": np.array([8.0]), "cell sorting": changes.get("digits", np.array([4.0]))}
    study.digits = SimpleNamespace(scores=scores, accuracy=0.8)
    return study


def verdicts(study: NeuralCPMStudy) -> dict[str, str]:
    return {claim.id: claim.verdict for claim in findings.claims(study)}


def noisy(exact):
    return exact + 0.3 * np.random.default_rng(1).normal(size=exact.shape)


# What breaks each claim, just beyond its limit and with all else as it was.
BROKEN = {
    "engine_law": {"engine": 3.25},
    "no_detailed_balance": {"boltzmann": 4.1},
    "recovery_order": {"B": recovered(estimates=[TRUTH, TRUTH[[3, 1, 2, 0, 4, 5]]])},
    "recovery_error": {"B": recovered(factor=1.13)},
    "recovery_scaled": {"B": recovered(rmse_scaled=0.11)},
    "recovery_A": {"A": recovered(0.13)},
    "recovery_B": {"B": recovered(0.13)},
    "recovery_D": {"D": recovered(0.61)},
    "recovery_F": {"F": recovered(0.13)},
    "persistent_worse": {"persistent": recovered(0.04)},
    "analytic_fails": {bipolar.CELL_SORTING: model((22, 22, 4.9))},  # limit: 2 + 3 x 1 = 5
    "closure_works": {bipolar.CLOSURE: model((14.5, 14.5, 14.5))},
    "interactions_matter": {bipolar.BLIND: model((18, 18, 18))},
    "closure_matters": {bipolar.ALONE: model(fragmented=1.9)},
    "stability": {bipolar.CLOSURE: model((8, 8, 8), stable=0.85)},
    "first_order": {"first_order": noisy},
    "first_order_slope": {"first_order": lambda x: 2 * x},
    "digits": {"digits": np.array([4.9])},
}
# A wrong order of energies is a large error too; the other claim is then not tested.
ALSO = {"recovery_order": {"recovery_error"}, "closure_works": {"interactions_matter"}}


def test_every_claim_holds_when_the_measurements_say_so():
    found = verdicts(finished())
    assert set(found) == set(BROKEN)
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize("claim", BROKEN)
def test_each_claim_fails_beyond_its_limit_and_no_other_one_does(claim):
    found = verdicts(finished(BROKEN[claim]))
    assert found.pop(claim) == "fails"
    others = {name for name, verdict in found.items() if verdict != "holds"}
    assert others == ALSO.get(claim, set())


def test_seeds_must_all_stay_below_the_limit_of_each():
    mixed = finished({bipolar.CLOSURE: model((4, 4, 19))})
    found = {c.id: c for c in findings.claims(mixed)}["closure_works"]
    assert found.measured == pytest.approx(9 / 22) and found.verdict == "fails"


def test_interactions_are_judged_only_where_the_closure_works():
    assert verdicts(finished(BROKEN["closure_works"]))["interactions_matter"] == "not tested"


@pytest.mark.parametrize(
    ("small", "untested"),
    [
        ({"samples": 15}, {"analytic_fails", "closure_works", "stability"}),
        ({"sample_steps": 399}, {"analytic_fails", "closure_works", "stability"}),
        ({"iters": 299}, {"closure_works", "interactions_matter", "closure_matters", "stability"}),
        ({"weights": "stored"}, {"closure_works", "closure_matters", "stability"}),
        ({"simulations": 23}, {"recovery_A", "recovery_B", "recovery_D", "persistent_worse"}),
        ({"recovery_iters": 399}, {"recovery_A", "recovery_F", "persistent_worse"}),
        ({"simulations": 15}, {"recovery_error", "recovery_scaled"}),
        ({"recovery_iters": 119}, {"recovery_order", "recovery_error"}),
    ],
)
def test_runs_too_small_to_count_are_not_judged(small, untested):
    found = verdicts(finished(**small))
    assert all(found[claim] == "not tested" for claim in untested)
    assert found["engine_law"] == found["first_order"] == "holds"


def test_one_network_shows_the_interval_over_its_samples():
    one = finished({bipolar.CLOSURE: model([8.0])})
    found = {c.id: c for c in findings.claims(one)}["closure_works"]
    assert (found.low, found.measured, found.high) == pytest.approx((7 / 22, 8 / 22, 9 / 22))
    assert (found.n, found.over) == (32, "samples of one network")
