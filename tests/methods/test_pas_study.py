"""The study of shrinkage: deterministic, cancelable, honest about what it did not test."""

from dataclasses import replace

import numpy as np
import pytest

from workbench import steps as work
from workbench.methods.pas import drawings, experiments, findings, peers, study, trials, views
from workbench.methods.pas.trials import Outcome, Setting, run_chunk, trial_steps
from workbench.parameters import ParameterError

SMALL = {"trials": 3, "m": 30, "regret_m": 20}
IDS = {
    "good_prediction", "good_pt", "bad_pt", "bad_average", "unipas_close", "unbiased",
    "tuning_best", "tuning_safe", "best_weight", "best_risk", "blind", "regret",
    "real_nyt_tuned", "real_nyt_base", "real_amazon_tuned", "real_amazon_base", "pas_close",
    "never_worse", "ppi_hurts", "ingredients", "beats_all", "grand_mean_wins", "plug_in_costs",
    "shift_harmless", "shift_ruins", "shift_noticed", "agrees_plain", "agrees_tuned",
    "official_covariance", "official_base", "official_tuned", "official_galaxy",
}  # fmt: skip
ALWAYS = {"tuning_best", "tuning_safe"}
WITH_PEER = {"agrees_plain", "agrees_tuned"}


@pytest.fixture(scope="module")
def finished():
    return study.run(study.Parameters(**SMALL), progress=False)


def test_every_experiment_leaves_results(finished):
    assert finished.complete
    assert finished.main.trials == 3 and finished.main.problems == 451
    assert set(finished.main.mse) == {row.key for row in trials.REAL}
    assert set(finished.synthetic) == {"good", "bad"}
    assert finished.synthetic["good"].problems == 30
    assert finished.unbiased.draws == 12 and set(finished.unbiased.z) == {"good", "bad"}
    assert set(finished.real) == set(experiments.REAL_ROWS)
    assert len(finished.plug_in) == 8 and finished.real["amazon", "base"].problems == 147
    assert finished.regret.done("bad")[0].tolist() == [10, 20]
    assert finished.quality.q.tolist() == list(experiments.QUALITIES)
    assert finished.shifted.shifted["amazon"].setting.shift == 2.0
    assert all(np.isfinite(v) for v in finished.values.values())
    assert finished.values["mse_pas"] == 1e3 * finished.main.mean("pas")
    assert finished.values["nyt_base_mse_ppi"] == 1e3 * finished.real["nyt", "base"].mean("ppi")


def test_the_same_seed_gives_the_same_numbers(finished):
    again = study.run(study.Parameters(**SMALL), progress=False)
    assert again.values == finished.values and again.claims == finished.claims
    other = study.run(study.Parameters(**SMALL, seed=1), progress=False)
    assert other.values != finished.values


def test_every_row_of_the_claims_is_there_and_small_runs_test_only_what_is_fixed(finished):
    verdicts = {c.id: c.verdict for c in finished.claims}
    assert set(verdicts) == IDS
    tested = ALWAYS | (WITH_PEER if peers.available() else set())
    assert {id for id, verdict in verdicts.items() if verdict != "not tested"} == tested
    assert all(verdicts[id] == "holds" for id in tested)
    papers = {c.id for c in finished.claims if c.paper}
    assert papers == {"official_base", "official_tuned", "official_galaxy"}


def outcome(setting=None, n=100, **means):
    """An outcome with these mean errors, the same in all trials."""
    keys = {row.key: 1.0 for row in trials.REAL} | means
    mse = {key: np.full(n, value) for key, value in keys.items()}
    return Outcome(setting or Setting(), mse, np.full(n, 0.5), np.ones(n), {}, 451)


def judged(finished, **results):
    """Verdicts and notes of a study with these results at the size that claims are judged at."""
    changed = replace(finished, parameters=study.Parameters(regret_m=20), **results)
    return {c.id: c for c in findings.claims(changed)}


@pytest.mark.parametrize(
    "good, bad, verdicts",
    [
        ({"pas": 0.1, "prediction": 0.1, "unipas": 0.1}, {"pas": 0.9, "unipas": 0.9}, "hhhhh"),
        ({"pas": 0.12, "prediction": 0.1, "unipas": 0.12}, {"pas": 0.97, "unipas": 0.97}, "fhfhh"),
        ({"pas": 0.16, "prediction": 0.2, "unipas": 0.16}, {"pas": 0.99, "unipas": 0.8}, "hffff"),
    ],
)
def test_synthetic_claims_follow_the_measurements(finished, good, bad, verdicts):
    found = judged(finished, synthetic={"good": outcome(**good), "bad": outcome(**bad)})
    ids = ("good_prediction", "good_pt", "bad_pt", "bad_average", "unipas_close")
    assert "".join(found[i].verdict[0] for i in ids) == verdicts
    assert "PAS" in found["bad_pt"].note and "PT 1000" in found["bad_pt"].note


def real(**means):
    return {key: outcome(**means.get("_".join(key), {})) for key in experiments.REAL_ROWS}


def test_claims_on_real_data_follow_the_measurements(finished):
    good = {"pas": 0.8, "unipas": 0.8, "shrink_average": 0.9}
    rows = {f"{d}_{k}": dict(good) for d, k in experiments.REAL_ROWS[:4]}
    rows |= {f"nyt_{k}": {"ppi": 4.0, "unipas": 1.02} for k in ("noise", "adversarial")}
    found = judged(finished, real=real(**rows), synthetic={k: outcome() for k in ("good", "bad")})
    ids = ["real_nyt_tuned", "real_amazon_base", "pas_close", "never_worse", "ppi_hurts",
           "beats_all", "ingredients"]  # fmt: skip
    assert [found[i].verdict for i in ids] == ["holds"] * 7
    assert found["grand_mean_wins"].verdict == "fails"
    rows["nyt_base"] = {"pas": 0.95, "unipas": 0.95, "shrink_average": 0.7}
    rows["nyt_noise"] = {"ppi": 2.0, "unipas": 1.1, "pas": 1.2, "shrink_average": 0.7}
    found = judged(finished, real=real(**rows), synthetic={k: outcome() for k in ("good", "bad")})
    assert found["real_nyt_base"].verdict == found["beats_all"].verdict == "fails"
    assert "Not so: base on NYT by shrink average." in found["beats_all"].note
    assert found["never_worse"].verdict == found["ppi_hurts"].verdict == "fails"
    assert found["ingredients"].verdict == "fails" and found["grand_mean_wins"].verdict == "holds"
    rows["nyt_base"] = dict(good)
    rows["amazon_base"] = good | {"shrink_average_within": 0.75}  # better than with other moments
    found = judged(finished, real=real(**rows))
    assert found["beats_all"].verdict == "fails"
    assert "Not so: base on Amazon by shrink average, pooled within." in found["beats_all"].note
    few = {key: replace(o, weight=o.weight[:99]) for key, o in real(**rows).items()}
    assert judged(finished, real=few)["beats_all"].verdict == "not tested"


def test_claims_on_theory_follow_the_measurements(finished):
    z = np.array([0.1, -3.6, 0.2, 0.3])
    broken = replace(finished.unbiased, z={"good": z, "bad": z / 2})
    h = replace(finished.homogeneous, weight=np.array([0.65]), risk=np.array([0.0449]),
                blind_risk=np.array([0.0448]), blind_weight=np.array([0.6]))  # fmt: skip
    found = judged(finished, unbiased=broken, homogeneous=h)
    assert found["unbiased"].verdict == "fails" and found["unbiased"].measured < 3.6
    assert found["best_weight"].verdict == "fails" and found["best_risk"].verdict == "holds"
    assert found["blind"].verdict == "fails"
    falls = experiments.Regret((20, 500), {
        (k, m): np.full(4, v) for k in ("good", "bad") for m, v in ((20, 1.0), (500, 0.1))
    })  # fmt: skip
    assert judged(finished, regret=falls)["regret"].verdict == "holds"
    falls.excess["bad", 500] = np.full(4, 0.2)
    assert judged(finished, regret=falls)["regret"].verdict == "fails"


def test_a_claim_of_the_paper_is_judged_only_on_its_data(finished, tmp_path):
    path = tmp_path / "galaxy_test_prediction.csv"
    path.write_text("true_label,pred_label,WVT_BIN\n" + "3,4,1\n" * 3)
    p = study.Parameters(data="frame", file=str(path), frac=0.2)
    found = {}
    for problems, verdict in ((451, "not tested"), (102, "holds")):
        main = replace(outcome(pas=0.5), problems=problems)
        changed = replace(finished, parameters=p, main=main)
        found = {c.id: c for c in findings.claims(changed)}
        assert found["official_galaxy"].verdict == verdict
    assert found["official_base"].verdict == "not tested"
    assert found["official_galaxy"].n == 10 and found["official_galaxy"].low is not None
    # Both names mean the predictions of the file as they are; two points added are others.
    for changes, verdict in (({"predictor": "base"}, "holds"), ({"shift": 2.0}, "not tested"),
                             ({"predictor": "noise"}, "not tested")):  # fmt: skip
        other = replace(changed, parameters=study.Parameters(**p.to_papermill() | changes))
        verdicts = {c.id: c.verdict for c in findings.claims(other)}
        assert verdicts["official_galaxy"] == verdict
    assert findings.official_name("x/amazon_tuned.h5") == "tuned"
    assert findings.official_name("x/mine.csv") is None


def test_the_effect_of_the_official_covariance_is_judged(finished):
    near, far = ({"unipas_official": v} for v in (0.93, 1.09))
    for means, verdict in (([near] * 4, "holds"), ([near] * 3 + [far], "fails")):
        made = {key: outcome(n=50, **m)
                for key, m in zip(experiments.REAL_ROWS[:4], means, strict=True)}  # fmt: skip
        assert judged(finished, switches=made)["official_covariance"].verdict == verdict


def test_the_official_switches_act_on_every_row():
    plain, official = (
        Setting(data="amazon", official=on).draw(0).estimates() for on in (False, True)
    )
    assert official["pas"].omega == pytest.approx(plain["pas"].omega, rel=1e-3)
    assert official["pas"].omega != plain["pas"].omega
    assert official["unipas"].weight[0] != plain["unipas"].weight[0]
    average = official["shrink_average"]
    np.testing.assert_array_equal(average.target, official["prediction"].theta)
    one = Setting(data="amazon").draw(0).estimates(trials.SWITCHED)
    np.testing.assert_allclose(one["shrink_average_official"].theta, average.theta, atol=1e-6)
    np.testing.assert_array_equal(one["unipas_official"].theta, official["unipas"].theta)
    assert one["pas_official_search"].omega == official["pas"].omega


def test_the_switch_leaves_the_synthetic_claims_to_the_same_estimators():
    plain, official = (
        work.run(experiments.synthetic_steps(study.Parameters(trials=2, m=20, official=on)))
        for on in (False, True)
    )
    for predictor in ("good", "bad"):
        for key, values in plain[predictor].mse.items():
            np.testing.assert_array_equal(official[predictor].mse[key], values)


def test_batches_have_the_ratio_of_means_as_their_mean():
    rng = np.random.default_rng(0)
    made = outcome()
    made = replace(
        made, mse={"a": rng.uniform(1, 2, 100), "b": np.ones(100), "c": np.full(100, 9.0)}
    )
    found = findings.batches(made, "a", ("b", "c"))
    assert len(found) == 10 and found.mean() == pytest.approx(findings.ratio(made, "a", ("b", "c")))


def test_trials_are_the_same_wherever_and_in_whatever_chunks_they_run():
    setting = Setting(predictor="mix", q=0.5)
    whole = run_chunk(setting, setting.rows, range(7))
    parts = trials.joined([run_chunk(setting, setting.rows, r) for r in (range(2), range(2, 7))])
    stepped = work.run(trial_steps(setting, 7))
    for other in (parts, stepped):
        for key in whole.mse:
            np.testing.assert_array_equal(other.mse[key], whole.mse[key])
        np.testing.assert_array_equal(other.weight, whole.weight)


@pytest.mark.slow
def test_dask_gives_the_same_numbers_to_the_last_bit():
    alone = study.run(study.Parameters(trials=30, regret_m=0), progress=False)
    shared = study.run(study.Parameters(trials=30, regret_m=0, workers=2), progress=False)
    assert shared.values == alone.values
    for key, made in alone.real.items():
        for row, values in made.mse.items():
            np.testing.assert_array_equal(shared.real[key].mse[row], values)


def test_cure_is_unbiased_at_fixed_omega_and_the_regret_is_never_negative(finished):
    found = work.run(experiments.unbiased_steps(study.Parameters(trials=60, m=60)))
    z = np.abs([*found.z["good"], *found.z["bad"]])
    assert z.shape == (8,) and z.max() < 4
    for values in finished.regret.excess.values():
        assert (values > -1e-15).all() and values.mean() > 0
    tuning = finished.tuning
    assert tuning.gain.max() <= 1e-12 and 0.5 < tuning.ratio.mean() < tuning.ratio.max() <= 1


def test_a_row_uses_its_own_moments():
    setting = Setting(data="amazon")
    found = setting.draw(0).estimates()
    assert found["pas"].regime == "pooled_within" and found["unipas"].regime == "per_problem"
    assert found["pas_official"].regime == found["shrink_average"].regime == "pooled_total"
    assert found["pas_per_problem"].regime == "per_problem"
    assert found["shrink_average_within"].regime == "pooled_within"
    made = run_chunk(setting, setting.rows, range(1))
    for key, one in found.items():
        assert made.regime(key) == (one.regime or "none")
    synthetic = Setting(data="synthetic", m=20)
    assert synthetic.draw(0).estimates()["pas"].regime == "known"
    pooled = replace(synthetic, moments="pooled_total").draw(0).estimates()
    assert pooled["pas"].regime == "pooled_total"


def test_a_stopped_study_keeps_what_is_finished():
    made = study.steps(study.Parameters(**SMALL))
    with pytest.raises(work.Cancelled) as stopped:
        count = iter(range(10_000))
        work.run(made, cancelled=lambda: next(count) > 8)
    partial = stopped.value.data
    assert not partial.complete and partial.main is not None and partial.real is None
    assert {c.id for c in findings.claims(partial)} == IDS
    assert findings.values(partial)


def test_a_table_of_the_user_is_studied(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "mine.csv"
    rows = [f"{k % 12},{k % 12 + rng.normal():.3f},{k % 12 + rng.normal():.3f}" for k in range(240)]
    path.write_text("group,y,pred\n" + "\n".join(rows))
    p = study.Parameters(**SMALL, data="frame", file=str(path))
    made = work.run(experiments.main_steps(p))
    assert made.problems == 12 and made.mean("pas") < made.mean("classical")
    assert made.counted() == "12 problems"


def test_groups_of_a_table_that_are_too_small_are_told(tmp_path):
    path = tmp_path / "mine.csv"
    rows = [f"{k % 5},{k},{k}" for k in range(20)] + ["x,1,2", "y,3,4"]
    path.write_text("group,y,pred\n" + "\n".join(rows))
    made = run_chunk(Setting(data="frame", file=str(path)), trials.PLAIN, range(2))
    says = "5 problems, 2 groups of fewer than 3 labels left out"
    assert made.counted() == trials.joined([made, made]).counted() == says
    assert says in views.error_table(made) and says in drawings.outcome_bars(made)


def test_a_table_that_does_not_serve_is_told_before_the_run(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("group,y,pred\na,1,2\n")
    with pytest.raises(ParameterError, match=r"mine\.csv' does not serve: mine: no group has 3"):
        study.Parameters(data="frame", file=str(path))


@pytest.mark.parametrize(
    "values, says",
    [
        ({"data": "frame"}, "data = 'frame' needs `file`"),
        ({"data": "frame", "file": "gone.csv"}, "file = 'gone.csv' is not there"),
        ({"moments": "known"}, "moments = 'known' needs data = 'synthetic'"),
        ({"frac": 0.01}, "frac = 0.01 is not allowed: a number from 0.05 to 0.9"),
        ({"predictor": "tunde"}, "did you mean 'tuned'"),
        ({"data": "synthetic", "m": 20_000, "N": 10_000}, "do not fit: allowed are 2e7"),
        # Synthetic problems are drawn whatever the data.
        ({"m": 20_000, "N": 10_000}, r"m \(n \+ N\) = 2.0e\+08 items of one synthetic draw"),
        ({"n": 10_000, "N": 10_000, "regret_m": 2000}, r"regret_m \(n \+ N\) = 4.0e\+07 items"),
        ({"n": 1}, "n = 1 is not allowed: an integer from 2 to 10000"),
    ],
)
def test_bad_parameters_are_one_line(values, says):
    with pytest.raises(ParameterError, match=says) as raised:
        study.Parameters(**values)
    assert "\n" not in str(raised.value)


def test_presets_are_those_of_the_specification():
    quick, default, full = (study.Parameters.preset(n) for n in ("quick", "default", "full"))
    assert (quick.trials, quick.m) == (10, 100)
    assert (default.trials, default.m, default.seed) == (100, 200, 42)
    assert (full.trials, full.m, full.regret_m) == (1000, 200, 2000)
    assert default.standard and not quick.standard
