"""The study of bonuses: deterministic, cancelable, honest about what it did not test."""

from dataclasses import replace

import numpy as np
import pytest

from workbench import steps as work
from workbench.claims import interval
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
    assert {k: (c.sizes.S, c.sizes.H) for k, c in finished.long_river.items()} == {
        "first": (10, 25), "random": (10, 25), "short_random": (5, 10)
    }  # fmt: skip
    ties = {k: c.runs["BF"][0].ties for k, c in finished.long_river.items()}
    assert ties == {"first": "first", "random": "random", "short_random": "random"}
    assert (finished.long.sizes.H, finished.long_taller.sizes.H) == (5, 10)
    assert finished.long_taller.sizes.K == 400
    assert len(finished.grid) == len(experiments.GRID) == 18
    assert finished.scan.regret["MVP"].shape == (9, 1)
    assert not np.isnan(finished.scan.regret["CH"]).any()
    assert finished.main.runs["BF"][0].snapshots and not finished.main.runs["BF"][1].snapshots
    assert finished.bandits.curves[10, "refined"].shape == (1, len(finished.bandits.rounds))
    assert all(np.isfinite(v) for v in finished.values.values())
    values = finished.values
    assert values["regret_bf_i"] == finished.main.mean("BF-I")
    assert values["no_last_bonus_regret_bf_i"] == finished.switches.last_step.mean("BF-I")
    assert values["official_variance_regret_mvp"] == finished.switches.official.mean("MVP")
    assert values["long_river_short_random_regret_mvp"] == finished.long_river["short_random"].mean(
        "MVP"
    )
    assert values["grid_10_3_5_regret_bf"] == finished.grid[6].mean("BF")
    assert values["long_second_horizon_regret_ch"] == finished.long_taller.mean("CH")


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
    many = {
        "K": 100_000, "runs": 10, "second_H": 10, "long_K": 10**6, "long_runs": 3, "river_runs": 3,
        "scan_runs": 3, "long_river_runs": 3, "grid_runs": 3,
    }  # fmt: skip
    p = study.Parameters(**{**SMALL, **many, **changes})
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
        ch = np.mean([r.N.sum(0).max() / r.N.sum() for r in found.main.runs["CH"]])
        assert f"CH took the same action in {ch:.0%} of all steps" in claims["order_5"].note
    few = {c.id: c.verdict for c in findings.claims(at_scale(found, runs=9))}
    assert few["order_5"] == few["last_step"] == "not tested"
    assert few["constants_bf_5"] == verdicts[0]
    elsewhere = at_scale(found, scale=0.5)
    assert {c.id: c.verdict for c in findings.claims(elsewhere)}["order_5"] == "not tested"


def test_the_order_of_means_is_judged_by_its_largest_ratio_with_an_interval_over_mdps(finished):
    found = at_scale(finished)
    ch, ch_i = np.array([1600.0, 1200.0]), np.array([800.0, 1200.0])
    found.main = with_regret(
        found.main, 100_000, BF=(100, 100), BFI=(50, 60), CH=ch, CHI=ch_i, MVP=(1500, 1500)
    )
    claims = {c.id: c for c in findings.claims(found)}
    order = claims["order_5"]
    assert order.measured == ch_i.mean() / ch.mean() and (order.n, order.over) == (2, "MDPs")
    # Of the first MDP twice the largest is CH-I / MVP, of the second CH-I / CH.
    assert (order.low, order.high) == pytest.approx((800 / 1500, 1200 / 1200))
    assert order.threshold == "largest ≤ 1"
    assert "BF-I / BF 0.55, BF / CH-I 0.10, CH-I / CH 0.71, CH-I / MVP 0.67." in order.note
    assert "CH has 14.0 times the regret of BF" in claims["bound_order"].note


def test_no_claim_about_each_run_is_judged_on_fewer_than_three(finished):
    ends = {"BF": 100.0, "BFI": 55.0, "CH": 1500.0, "CHI": 1200.0, "MVP": 1600.0}

    def measured(comparison, K=100_000):
        n = len(comparison.runs["BF-I"])
        return with_regret(comparison, K, **{a: [v] * n for a, v in ends.items()})

    found = replace(finished)
    found.main, found.taller = measured(found.main), measured(found.taller)
    found.river, found.long = measured(found.river), measured(found.long, 10**6)
    found.long_river = {name: measured(c) for name, c in found.long_river.items()}
    found.grid = [measured(c) for c in found.grid]
    scale = {"runs": 3, "long_runs": 3, "river_runs": 3, "scan_runs": 3, "long_river_runs": 3,
             "grid_runs": 3}  # fmt: skip
    claims = {c.id: c.verdict for c in findings.claims(at_scale(found, **scale))}
    always = {"constants_bf_short", "practitioners", "bound_ch", "bound_bf", "bound_order"}
    more = {"order_5", "order_10", "last_step", "bandits"}  # need more than three
    judged = set(claims) - always - more
    assert all(claims[name] != "not tested" for name in judged)
    two = at_scale(found, **{name: 2 for name in scale})
    claims = {c.id: c.verdict for c in findings.claims(two)}
    assert {name for name, verdict in claims.items() if verdict != "not tested"} == always


def test_what_an_interrupt_left_is_not_judged_as_the_whole(finished):
    found = at_scale(finished, bandit_runs=20)
    found.grid = [with_regret(c, 100_000, BF=[100.0], BFI=[55.0], MVP=[1600.0]) for c in found.grid]
    curves = {key: np.repeat(c, 20, 0) for key, c in found.bandits.curves.items()}
    found.bandits = replace(found.bandits, curves=curves)
    whole = {c.id: c for c in findings.claims(found)}
    assert whole["grid"].n == 18 and whole["bandits"].n == 20
    found.grid = found.grid[:17]
    found.bandits = replace(found.bandits, curves={key: c[:19] for key, c in curves.items()})
    stopped = {c.id: c.verdict for c in findings.claims(found)}
    assert stopped["grid"] == stopped["bandits"] == "not tested"


def test_the_interval_of_the_bandits_is_over_sets_of_arms(finished):
    found = at_scale(finished, bandit_runs=20)
    lost = np.random.default_rng(0).uniform(50, 150, 20)
    curves = {
        key: (0.3 if key[1] == "refined" else 1.0) * lost[:, None] for key in found.bandits.curves
    }
    found.bandits = replace(found.bandits, curves=curves)
    claim = {c.id: c for c in findings.claims(found)}["bandits"]
    assert (claim.low, claim.measured, claim.high) == pytest.approx((0.3, 0.3, 0.3))
    curves[3, "refined"] = curves[3, "refined"][::-1]  # sets differ, their means do not
    claim = {c.id: c for c in findings.claims(found)}["bandits"]
    assert claim.measured == pytest.approx(0.3) and claim.low < 0.295 and claim.high > 0.305
    assert (claim.n, claim.over) == (20, "sets of arms")


def test_practitioners_are_judged_on_all_five_mdps(finished):
    claim = {c.id: c for c in findings.claims(finished)}["practitioners"]
    ratio = finished.short.ratio("practitioner", "BF-I", "realised")
    assert claim.n == 5 and claim.measured == ratio.mean() and claim.low == interval(ratio)[0]


def test_the_switches_are_judged_on_each_mdp(finished):
    found = at_scale(finished)
    s = found.switches
    violated = [replace(run, violated=np.array([v])) for run, v in zip(
        s.last_step.runs["BF-I"], (0.0, 0.2), strict=True)]  # fmt: skip
    last_step = with_regret(s.last_step, 100_000, BFI=(80.0, 90.0))
    runs = {"BF-I": [
        replace(run, violated=v.violated)
        for run, v in zip(last_step.runs["BF-I"], violated, strict=True)
    ]}  # fmt: skip
    found.switches = replace(
        s,
        plain=with_regret(s.plain, 100_000, BFI=(100.0, 100.0)),
        last_step=replace(last_step, runs=runs),
        official=with_regret(s.official, 100_000, BF=(100, 90), BFI=(50, 60), MVP=(100, 900)),
    )
    claims = {c.id: c for c in findings.claims(found)}
    assert (claims["last_step_optimism"].verdict, claims["last_step_optimism"].n) == ("fails", 2)
    assert claims["official_variance"].measured == pytest.approx((1.0 + 60 / 90) / 2)
    assert claims["official_variance"].n == 2
    assert (claims["last_step"].low, claims["last_step"].high) == pytest.approx((0.8, 0.9))


@pytest.mark.parametrize(
    "without, verdict", [((80.0, 110.0), "holds"), ((99.0, 99.0), "fails"), ((70, 60), "fails")]
)
def test_the_last_bonus_is_judged_by_the_ratio_of_means(finished, without, verdict):
    found = at_scale(finished)
    s = found.switches
    plain = with_regret(s.plain, 100_000, BFI=(100.0, 100.0))
    found.switches = replace(
        s, plain=plain, last_step=with_regret(s.last_step, 100_000, BFI=without)
    )
    claim = {c.id: c for c in findings.claims(found)}["last_step"]
    assert (claim.verdict, claim.measured) == (verdict, np.mean(without) / 100)
    assert f"Means 100 with and {np.mean(without):,.0f} without it" in claim.note
    if without[1] == 110:
        assert "ratios 0.80 to 1.10, above 1 on 1 of 2" in claim.note


def test_ratios_pair_only_runs_that_have_ended_on_both_sides(finished):
    some = finished.main.runs["CH"][0]
    ended = [replace(some, episodes=np.array([1, 9]), pseudo=np.array([0.0, v])) for v in range(9)]
    early = replace(some, episodes=np.array([1, 5]), pseudo=np.array([0.0, 1000.0]))
    one = [None, ended[2], ended[6]]
    other = [ended[1], ended[4], ended[3]]
    found = experiments.Comparison(
        "stopped", bonuses.Sizes(3, 3, 5, 9), {"BF": one, "CH": other, "MVP": [early, *other[1:]]}
    )
    np.testing.assert_array_equal(found.ratio("BF", "CH"), [2 / 4, 6 / 3])
    np.testing.assert_array_equal(found.ratio("CH", "BF"), [4 / 2, 3 / 6])
    np.testing.assert_array_equal(found.ratio("CH", "MVP"), [1, 1])
    assert found.final("MVP").tolist() == [4, 3] and found.mean("BF") == 4


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
        ({"env": "frozenlake"}, "H = 5 is too short for FrozenLake.*set H to 6 or more"),
        ({"env": "frozenlake", "H": 20, "second_H": 5}, "H = 5 is too short for FrozenLake"),
        ({"env": "npz", "file": "/nowhere.npz"},
         "file = '/nowhere.npz' does not serve: no file /nowhere.npz"),
        ({"scala": 1}, "unknown parameter 'scala'.*did you mean 'scale'"),
    ],
)  # fmt: skip
def test_bad_parameters_are_one_line(values, words):
    with pytest.raises(ParameterError, match=words) as caught:
        study.Parameters(**values)
    assert "\n" not in str(caught.value)


def test_files_and_horizons_are_refused_before_a_run(tmp_path):
    def refused(words, **arrays):
        np.savez(tmp_path / "own.npz", **arrays)
        with pytest.raises(ParameterError, match=words) as caught:
            study.Parameters(env="npz", file=str(tmp_path / "own.npz"), K=2_000_000, H=50)
        assert "\n" not in str(caught.value)

    P = experiments.random_mdps(1, 0, 4, 2)[0].P
    refused("no reward can ever be reached", P=P, R=np.zeros((4, 2)))
    refused("own.npz' does not serve: .*lacks the array R", P=P)
    refused("own.npz' does not serve: rewards go from 0 to 2", P=P, R=np.eye(4)[:, :2] * 2)
    refused("one state; give start=, or in a file an array start that is 1 for one state",
            P=P, R=np.eye(4)[:, :2], start=np.full(4, 0.25))  # fmt: skip
    large = np.full((20, 2, 20), 1 / 20)
    refused("would take one run about 23 minutes", P=large, R=np.ones((20, 2)))
    with pytest.raises(ParameterError, match="set H to 6 or more; 20 is usual"):
        study.Parameters(env="frozenlake", H=5)


def test_other_problems_run_through_the_study(tmp_path):
    mdp = experiments.random_mdps(1, 0, 4, 2)[0]
    np.savez(tmp_path / "own.npz", P=mdp.P, R=mdp.R)
    few = {
        "K": 100, "runs": 1, "second_H": 0, "river_runs": 0, "scan_runs": 0, "bandit_runs": 0,
        "baselines": False, "switches": False,
    }  # fmt: skip
    for env, shape in (("riverswim", (3, 2)), ("frozenlake", (16, 4)), ("npz", (4, 2))):
        p = study.Parameters(env=env, H=6, file=str(tmp_path / "own.npz"), **few)
        found = study.run(p, progress=False)
        assert found.main.runs["BF"][0].N.shape == shape
        assert found.taller is found.scan is found.river is None


def test_presets_are_those_of_the_paper_and_the_limit_of_work_is_light():
    default = study.Parameters()
    assert (default.S, default.A, default.H, default.K, default.runs) == (3, 3, 5, 100_000, 10)
    quick, full = study.Parameters.preset("quick"), study.Parameters.preset("full")
    assert (quick.K, quick.runs) == (10_000, 5)
    assert full.long_K == 1_000_000 and full.grid_runs == full.long_river_runs == 4
    assert default.standard and not study.Parameters(ties="random").standard
    assert study.ALGORITHMS == list(bonuses.ALGORITHMS)
    limits.check_work(3, 3, 5, 100_000)
    assert all("=" not in row["doc"] for row in study.Parameters.describe())
