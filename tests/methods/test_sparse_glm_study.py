"""The study: parameters refuse nonsense, every experiment measures, claims are judged."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from workbench import results, steps
from workbench.claims import FAILS, HOLDS, NOT_TESTED
from workbench.methods.sparse_glm import baselines, experiments, findings, study
from workbench.parameters import ParameterError

TINY = {
    "data": "diabetes", "k": 2, "lambda2": 1.0, "M": 2.0, "sizes": [60, 200], "conic_sizes": [],
    "race_seeds": 1, "prox_power": 4, "cases": "few", "instances": 4, "sweeps": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    return study.run(study.Parameters(**TINY), progress=False)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"lambda2": 0.0}, "lambda2 = 0.0 is not allowed.*; the perspective bound needs lambda2 >"),
        ({"lambda2": -1}, "the perspective bound needs lambda2 > 0"),
        ({"M": 0}, "M = 0.0 is not allowed: a number from 0.001 to 1000"),
        ({"k": 0}, "k = 0 is not allowed: an integer from 1 to 50"),
        ({"k": 31}, "k = 31: allowed are 1 to the 30 columns of breast_cancer"),
        ({"data": "synthetic", "p": 4}, "k = 5: allowed are 1 to the 4 columns of synthetic"),
        ({"data": "npz"}, "data = 'npz' needs file"),
        ({"data": "npz", "file": "absent.npz"}, "file = 'absent.npz' does not serve: there is no"),
        ({"data": "diabetis"}, "did you mean 'diabetes"),
        ({"data": "diabetes2", "loss": "logistic"}, "diabetes2 has a continuous response"),
        ({"digits": [3, 3]}, r"digits = \[3, 3\]: two different ones are needed"),
        ({"digits": [3, 10]}, "digits = "),
        ({"digits": [3]}, "digits = "),
        ({"lamda2": 1.0}, "unknown parameter 'lamda2'.*did you mean 'lambda2'"),
    ],
)
def test_parameters_are_refused_in_one_line(values, words):
    with pytest.raises(ParameterError, match=words) as error:
        study.Parameters(**values)
    assert "\n" not in str(error.value)


def test_own_files_are_read_before_the_run(tmp_path):
    path, rng = tmp_path / "mine.npz", np.random.default_rng(0)
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    for arrays, more, words in (
        ({"X": X, "y": y[:3]}, {}, "needed are"),
        ({"X": X, "y": y}, {"k": 9}, "k = 9 is not allowed: a whole number from 1 to the 4 col"),
        ({"X": X, "y": np.ones(20)}, {"loss": "logistic"}, "one class only"),
        ({"X": X * np.nan, "y": y}, {}, "NaN or infinite"),
        ({"X": X, "y": np.full(20, 3.0)}, {"loss": "linear"}, "y is constant: there is nothing to"),
        ({"X": np.ones((20, 4)), "y": y}, {}, "all columns of X are constant"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(ParameterError, match=words):
            study.Parameters(**{"data": "npz", "file": str(path), "k": 2, **more})


def test_random_labels_of_one_class_are_refused_before_the_run():
    few = {"data": "synthetic", "loss": "logistic", "n": 10, "p": 20}
    assert study.Parameters(**few, seed=86).problem().n == 10
    with pytest.raises(ParameterError, match="n = 10, seed = 87: y has one class only"):
        study.Parameters(**few, seed=87)


def test_synthetic_data_too_large_for_memory_are_refused_before_they_are_made(monkeypatch):
    import psutil

    class Full:
        available = 1000

    monkeypatch.setattr(psutil, "virtual_memory", Full)
    with pytest.raises(ParameterError, match="n = 20000, p = 20000: X with 400,000,000 entries"):
        study.Parameters(data="synthetic", n=20_000, p=20_000)


def test_defaults_are_those_of_the_specification():
    p = study.Parameters()
    assert (p.data, p.k, p.lambda2, p.M) == ("breast_cancer", 5, 2.0, 1.0)
    assert (p.n, p.p, p.rho, p.snr, p.seed) == (500, 500, 0.5, 5.0, 0)
    assert (p.tol, p.max_iter, p.node_tol, p.node_max_iter) == (1e-6, 5000, 1e-5, 300)
    assert (p.width, p.child, p.gap, p.time_limit, p.max_nodes) == (3, 6, 1e-4, 60.0, 100_000)
    assert p.restart and p.momentum
    quick = study.Parameters.preset("quick")
    assert (quick.data, quick.k, quick.lambda2) == ("breast_cancer", 3, 5.0)
    assert set(study.Parameters.presets) == {"quick", "default", "full"}


def test_every_experiment_leaves_its_result(made):
    assert made.complete and made.seconds > 0
    assert made.main.result.certified and made.main.verification.valid
    assert set(made.main.heuristics) >= {"greedy", "beam 3 x 6", "lasso path"}
    assert len(made.race) == 4 and set(made.race[0].runs) == set(experiments.VARIANTS)
    assert list(made.cases) == ["diabetes, k 3", "diabetes, k 5", "breast cancer, k 3"]
    assert len(made.heuristics.brute) == 4 and made.sweep is None


def test_claims_that_were_tested_hold_and_the_others_say_so(made):
    verdicts = {claim.id: claim.verdict for claim in made.claims}
    assert len(verdicts) == len(made.claims) == 21
    not_tested = {"clarabel_200", "clarabel_500", "same_values", "two_products_500",
                  "two_products_1000", "greedy_fails",
                  "linear_rate", "bends"}  # one race only  # fmt: skip
    assert {name for name, verdict in verdicts.items() if verdict == NOT_TESTED} == not_tested
    timed = {"prox_time", "prox_time_half"}  # the machine may be busy
    rest = set(verdicts) - not_tested - timed
    assert {name: verdicts[name] for name in rest} == dict.fromkeys(rest, HOLDS)


def test_the_record_holds_plain_numbers(made):
    record = results.to_record(made)
    assert record["slug"] == "sparse_glm" and record["complete"]
    assert made.values["gap"] <= 1e-4 and made.values["nodes"] >= 1
    assert all(np.isfinite(value) for value in record["values"].values())


def test_steps_can_be_stopped_and_what_is_finished_is_judged():
    asked = []

    def enough(step):
        asked.append(step.message)

    with pytest.raises(steps.Cancelled) as stopped:
        steps.run(
            study.steps(study.Parameters(**TINY)), enough,
            lambda: any(message.startswith("race") for message in asked),
        )  # fmt: skip
    partial = stopped.value.data
    assert not partial.complete and partial.main.result.certified and partial.cases is None
    judged = {claim.id: claim.verdict for claim in findings.claims(partial)}
    assert judged["prox_exact"] == HOLDS and judged["certified"] == NOT_TESTED
    assert "nodes" in findings.values(partial)


def test_a_study_without_anything_is_not_tested_at_all():
    empty = study.SparseStudy(study.Parameters())
    assert {claim.verdict for claim in findings.claims(empty)} == {NOT_TESTED}
    assert findings.values(empty) == {}


def test_a_failing_claim_fails(made):
    wrong = dataclasses.replace(made.heuristics, lower=made.heuristics.brute * 1.01)
    changed = dataclasses.replace(made, heuristics=wrong)
    assert {c.id: c.verdict for c in findings.claims(changed)}["bounds_true"] == FAILS


def verdict_of(found, name):
    return {claim.id: claim for claim in findings.claims(found)}[name]


def raced(first, middle, last, most=20_000):
    """An entry whose runs reach 1e-2, 1e-4 and 1e-6 at these iterations (None: never)."""
    reached = {1e-2: first, 1e-4: middle, 1e-6: last}
    run = SimpleNamespace(bounds=[1], reached=reached.get, iterations=last or most, seconds=1.0)
    return SimpleNamespace(loss="linear", size=200, runs={"restart": run}, conic={})


def test_a_race_that_never_ends_counts_against_linear_convergence():
    """Such runs were left out, so that a method that stalls could keep its claim."""
    straight = raced(100, 200, 300)
    for entries, wanted in (
        ([straight] * 3, HOLDS),
        ([straight] * 3 + [raced(100, 200, None)], FAILS),
        ([straight] * 3 + [raced(100, None, None)], FAILS),
        ([straight] * 3 + [raced(None, None, None)], FAILS),
        ([straight] * 2, NOT_TESTED),
    ):
        empty = study.SparseStudy(study.Parameters(), race=entries)
        assert verdict_of(empty, "linear_rate").verdict == wanted


def test_only_known_features_are_counted_and_ties_are_seen_in_six_decimals(made):
    cases = dict(made.cases)
    name, case = next(iter(cases.items()))
    unknown = dataclasses.replace(case, known=dataclasses.replace(case.known, support=None))
    changed = dataclasses.replace(made, cases={**cases, "no features known": unknown})
    assert verdict_of(changed, "supports").n == len(cases), "what is unknown is no success"
    # The true value lies up to half a unit of the last decimal from the one that is stored.
    for off, wanted in ((4e-7, HOLDS), (2e-6, FAILS)):
        other = dataclasses.replace(case.result, support=(0, 1, 2), upper=case.known.optimum + off)
        tied = dataclasses.replace(made, cases={name: dataclasses.replace(case, result=other)})
        assert verdict_of(tied, "supports").verdict == wanted


def test_the_prox_is_timed_in_its_easy_and_in_its_hard_case(made):
    assert made.prox.ratios.shape == made.prox.half_ratios.shape == made.prox.sizes.shape
    slow = dataclasses.replace(made.prox, half_seconds=4 * made.prox.sort_seconds)
    changed = dataclasses.replace(made, prox=slow)
    assert verdict_of(changed, "prox_time_half").verdict == FAILS
    assert verdict_of(changed, "prox_time_half").n == 1, "sizes from 10,000 on"


def test_own_data_with_an_empty_column_or_two_rows_are_studied(tmp_path):
    """abess raises at the first and never ends at the second."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 4)), rng.standard_normal(20)
    for rows, k in ((20, 5), (2, 2)):
        table = np.c_[X, np.ones(20)][:rows]
        np.savez(tmp_path / "mine.npz", X=table, y=y[:rows])
        file = str(tmp_path / "mine.npz")
        p = study.Parameters(**{**TINY, "data": "npz", "file": file, "k": k})
        main = steps.run(experiments.main_steps(p))
        assert main.result.certified and 4 not in main.result.support
        assert any("1 constant columns, first [4]" in remark for remark in main.remarks)
        abess = main.heuristics.get("abess")
        if baselines.available("abess"):
            assert (abess is not None) == (rows > 2) and (rows == 2 or 4 not in abess.support)


def test_the_known_problems_are_those_of_the_specification():
    known = experiments.KNOWN
    assert len(known) == 11 and [k.group for k in known.values()].count("all") == 2
    assert known["digits 3/8, k 8"].optimum == 33.869220
    assert known["linear 1000 x 1000"].problem().X.shape == (1000, 1000)
    assert experiments.LIMITS["diabetes3"][0].problem().p == 285


def test_race_problems_have_the_recalled_setting():
    problem = experiments.race_problem("logistic", 50, 3)
    assert (problem.k, problem.lambda2, problem.M, problem.n, problem.p) == (10, 1.0, 2.0, 50, 50)


def test_the_same_seed_gives_the_same_study(made):
    again = study.run(study.Parameters(**TINY), progress=False)
    same = {name for name in made.values if "seconds" not in name and "second" not in name}
    assert {n: again.values[n] for n in same} == {n: made.values[n] for n in same}


def test_own_data_are_studied(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    np.savez(tmp_path / "mine.npz", X=X, y=X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(40))
    p = study.Parameters(**{**TINY, "data": "npz", "file": str(tmp_path / "mine.npz")})
    main = steps.run(experiments.main_steps(p))
    assert main.result.support == (1, 4) and main.problem.name == "mine"


def test_a_sweep_point_says_root_gap_and_nodes(monkeypatch):
    monkeypatch.setattr(experiments, "SWEPT", {"k": (1, 2), "M": (0.3,)})
    monkeypatch.setattr(experiments, "SWEEP_NODES", 20)
    sweep = steps.run(experiments.sweep_steps(study.Parameters(**TINY)))
    assert [point.at for point in sweep["k"]] == [1, 2]
    assert all(0 <= point.gap <= point.root_gap + 1e-9 for point in sweep["k"] + sweep["M"])
