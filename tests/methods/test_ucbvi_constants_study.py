"""The study of bonuses: deterministic, cancelable, honest about what it did not test."""

from dataclasses import replace

import numpy as np
import pytest

from workbench import steps as work
from workbench.methods.ucbvi_constants import bonuses, experiments, findings, limits, study
from workbench.parameters import ParameterError

SMALL = {
    "K": 300, "runs": 2, "second_H": 3, "river_runs": 1, "scan_runs": 1, "bandit_runs": 1,
    "long_runs": 1, "long_K": 400, "long_river_runs": 1, "grid_runs": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def finished():
    return study.run(study.Parameters(**SMALL), progress=False)


def test_every_experiment_leaves_results(finished):
    assert finished.complete
    assert finished.main.algorithms == list(bonuses.PAPER)
    assert finished.baselines.algorithms == list(bonuses.OURS)
    assert finished.taller.sizes.H == 3 and finished.main.sizes.H == 5
    assert finished.river.sizes.S == 5 and finished.river.sizes.H == 10
    assert set(finished.long_river) == {"first", "random"}
    assert len(finished.grid) == len(experiments.GRID) == 18
    assert finished.scan.regret["MVP"].shape == (9, 1)
    assert not np.isnan(finished.scan.regret["CH"]).any()
    assert finished.main.runs["BF"][0].snapshots and not finished.main.runs["BF"][1].snapshots
    assert finished.bandits.curves[10, "refined"].shape == (1, len(finished.bandits.rounds))
    assert all(np.isfinite(v) for v in finished.values.values())
    assert finished.values["regret_bf_i"] == finished.main.mean("BF-I")


def test_the_same_seed_gives_the_same_numbers(finished):
    again = study.run(study.Parameters(**SMALL), progress=False)
    assert again.values == finished.values and again.claims == finished.claims
    other = study.run(study.Parameters(**SMALL, seed=1), progress=False)
    assert other.values != finished.values


def test_all_algorithms_see_the_same_mdps_and_each_run_another(finished):
    runs = finished.main.runs
    for i in range(2):
        for a in bonuses.PAPER[1:]:
            np.testing.assert_array_equal(runs[a][i].V_star, runs["CH"][i].V_star)
    assert (runs["CH"][0].V_star != runs["CH"][1].V_star).any()


def test_every_row_of_the_claims_is_there_and_small_runs_test_only_what_is_fixed(finished):
    verdicts = {c.id: c.verdict for c in finished.claims}
    assert set(verdicts) == {
        "constants_bf_5", "bernstein_mvp_5", "order_5", "constants_bf_10", "bernstein_mvp_10",
        "order_10", "constants_bf_short", "practitioners", "long_chi", "long_mvp",
        "river_constants", "river_mvp", "long_river_first", "long_river_random", "scan_falls",
        "scan_optimism", "last_step", "last_step_optimism", "official_variance", "bound_ch",
        "bound_bf", "bound_order", "bandits", "grid",
    }  # fmt: skip
    tested = {"constants_bf_short", "practitioners", "bound_ch", "bound_bf", "bound_order"}
    assert {id for id, verdict in verdicts.items() if verdict != "not tested"} == tested
    assert all(verdicts[id] == "holds" for id in tested)
    assert all(claim.paper is None for claim in finished.claims)


def at_scale(finished, **changes):
    """The same results under parameters of the size that claims are judged at."""
    p = study.Parameters(**{**SMALL, "K": 100_000, "second_H": 10, "long_K": 10**6, **changes})
    return replace(finished, parameters=p)


def with_regret(comparison, K, **finals):
    """A comparison whose last regrets are those given, by algorithm."""
    runs = {}
    for a in comparison.algorithms:
        values = finals[a.replace("-", "")]
        runs[a] = [
            replace(run, episodes=np.array([1, K]), pseudo=np.array([0.0, v]))
            for run, v in zip(comparison.runs[a], values, strict=True)
        ]
    return replace(comparison, sizes=replace(comparison.sizes, K=K), runs=runs)


@pytest.mark.parametrize(
    "bfi, ch, verdicts",
    [
        ((56.0, 50.0), (1600.0, 1500.0), ("holds", "holds", "holds")),
        ((56.0, 75.0), (1600.0, 1500.0), ("fails", "holds", "holds")),
        ((40.0, 50.0), (1600.0, 1500.0), ("fails", "holds", "holds")),
        ((56.0, 50.0), (1100.0, 1100.0), ("holds", "holds", "fails")),
    ],
)
def test_main_claims_follow_the_measurements(finished, bfi, ch, verdicts):
    found = at_scale(finished)
    found.main = with_regret(
        found.main, 100_000, BF=(100, 100), BFI=bfi, CH=ch, CHI=(1200, 1300), MVP=(1500, 1500)
    )
    claims = {c.id: c for c in findings.claims(found)}
    names = ("constants_bf_5", "bernstein_mvp_5", "order_5")
    assert tuple(claims[name].verdict for name in names) == verdicts
    if ch[0] == 1100:
        assert "On 2 of 2 MDPs CH-I loses to CH" in claims["order_5"].note
    elsewhere = at_scale(found, scale=0.5)
    assert {c.id: c.verdict for c in findings.claims(elsewhere)}["order_5"] == "not tested"


def test_scan_claims_follow_the_measurements(finished):
    found = at_scale(finished)
    falling = np.array([9.0, 5, 3, 2, 1, 0.5, 9, 9, 9])[:, None]
    violated = np.array([0.0, 0, 0, 0, 0, 0, 0.2, 0.5, 0.8])[:, None]
    regret = {a: falling for a in found.scan.regret}
    found.scan = replace(found.scan, regret=regret, violated={a: violated for a in regret})
    claims = {c.id: c.verdict for c in findings.claims(found)}
    assert claims["scan_falls"] == claims["scan_optimism"] == "holds"
    falling[4], violated[5] = 2.2, 0.1
    claims = {c.id: c.verdict for c in findings.claims(found)}
    assert claims["scan_falls"] == claims["scan_optimism"] == "fails"


def test_a_stopped_study_keeps_what_is_done():
    seen = []

    def stop():
        return bool(seen) and seen[-1].data is not None and seen[-1].data.short is not None

    with pytest.raises(work.Cancelled) as caught:
        work.run(study.steps(study.Parameters(**SMALL)), seen.append, stop)
    partial = caught.value.data
    assert partial.main is not None and partial.grid is None and not partial.complete
    assert len(findings.claims(partial)) == 24
    assert [s.done for s in seen] == sorted(s.done for s in seen)


def test_partial_comparisons_draw_as_far_as_all_runs_are():
    curves = []
    steps = experiments.compare_steps(
        experiments.random_mdps(2, 0), ["CH", "BF-I"], 5, 60_000, seed=0
    )
    work.run(steps, lambda step: curves.append(step.data))
    partial = next(c for c in curves if c.runs["CH"][0] and len(c.curve("CH")[0]))
    episodes, regret = partial.curve("CH")
    assert regret.shape[1] == len(episodes) and regret.shape[0] in (1, 2)
    episodes, regret = curves[-1].curve("BF-I")
    assert episodes[-1] == 60_000 and regret.shape == (2, len(episodes))


@pytest.mark.parametrize(
    "values, words",
    [
        ({"K": 10}, "K = 10 is not allowed: an integer from 100 to 2000000"),
        ({"K": 100.5}, "K = 100.5 is not allowed"),
        ({"delta": 0}, "delta = 0.0 is not allowed: a number from 1e-12 to 1"),
        ({"delta": 2}, "delta = 2.0 is not allowed"),
        ({"algs": ["BFI"]}, "one or more of 'CH', 'CH-I', 'BF', 'BF-I', 'MVP'"),
        ({"env": "river"}, "env = 'river' is not allowed: one of 'random', 'riverswim'"),
        ({"env": "npz"}, "env = 'npz' needs `file`"),
        ({"S": 20, "A": 10, "H": 50, "K": 2_000_000}, "about 113 minutes: allowed are 5e"),
        ({"scala": 1}, "unknown parameter 'scala'.*did you mean 'scale'"),
    ],
)
def test_bad_parameters_are_one_line(values, words):
    with pytest.raises(ParameterError, match=words) as caught:
        study.Parameters(**values)
    assert "\n" not in str(caught.value)


def test_other_problems_run_through_the_study(tmp_path):
    mdp = experiments.random_mdps(1, 0, 4, 2)[0]
    np.savez(tmp_path / "own.npz", P=mdp.P, R=mdp.R)
    few = {
        "K": 100, "runs": 1, "second_H": 0, "river_runs": 0, "scan_runs": 0, "bandit_runs": 0,
        "baselines": False, "switches": False,
    }  # fmt: skip
    for env, shape in (("riverswim", (3, 2)), ("frozenlake", (16, 4)), ("npz", (4, 2))):
        p = study.Parameters(env=env, file=str(tmp_path / "own.npz"), **few)
        found = study.run(p, progress=False)
        assert found.main.runs["BF"][0].N.shape == shape
        assert found.taller is found.scan is found.river is None
    with pytest.raises(ValueError, match="the bonuses assume"):
        np.savez(tmp_path / "bad.npz", P=mdp.P, R=5 + mdp.R)
        study.run(study.Parameters(env="npz", file=str(tmp_path / "bad.npz"), **few), False)


def test_presets_are_those_of_the_paper_and_the_limit_of_work_is_light():
    default = study.Parameters()
    assert (default.S, default.A, default.H, default.K, default.runs) == (3, 3, 5, 100_000, 10)
    quick, full = study.Parameters.preset("quick"), study.Parameters.preset("full")
    assert (quick.K, quick.runs) == (10_000, 5)
    assert full.long_K == 1_000_000 and full.grid_runs and full.long_river_runs == 2
    assert default.standard and not study.Parameters(ties="random").standard
    assert study.ALGORITHMS == list(bonuses.ALGORITHMS)
    limits.check_work(3, 3, 5, 100_000)
    assert all("=" not in row["doc"] for row in study.Parameters.describe())
