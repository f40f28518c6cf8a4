"""The study of certified unlearning: deterministic, cancelable, honest about what it tested."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from workbench import steps as work
from workbench.methods.certified_unlearning import (
    accounting,
    comparison,
    experiments,
    fan_out,
    findings,
    memory,
    protocol,
    sizes,
    streams,
    study,
)
from workbench.methods.certified_unlearning.settings import settings_of
from workbench.parameters import ParameterError

IDS = {
    "automatic_steps", "few_steps", "released_noise", "audit_sound", "audit_label", "audit_chain",
    "whitebox_clear", "whitebox_hidden", "mia_original", "mia_finetune", "mia_gc", "mia_clip",
    "gc_retrain", "mc_retrain", "gc_op", "mc_op", "mc_steps", "dp_worse",
    "control_40", "control_160", "collapse", "survival_attack",
    "survival_accuracy", "size_free", "dp_grows",
}  # fmt: skip
SMALL = {"seeds": 2, "budget": [12, 20], "audit_n": 1000, "mia_seeds": 0}
TRAIN = 60  # steps of original models


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    shorten(monkeypatch)


def shorten(patch):
    for function in (comparison.original_steps, memory.whitebox_steps):
        patch.setattr(function, "__defaults__", tuple(
            TRAIN if value == 4000 else value for value in function.__defaults__
        ))  # fmt: skip


@pytest.fixture(scope="module")
def finished():
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        return study.run(study.Parameters(**SMALL), progress=False)


def claims_of(made):
    return {c.id: c for c in findings.claims(made)}


def test_the_experiments_leave_results(finished):
    assert finished.complete and finished.membership is None and finished.sweep is None
    a = finished.accuracy
    assert a.budget.tolist() == [12, 20] and a.seeds == 2 and a.d == 385
    assert set(a.test) == set(a.exact) == set(comparison.METHODS) and a.test["gc"].shape == (2, 2)
    assert a.noisy["gc"] == 7 and a.noisy["mc"] == 3 and a.noisy["op"] == a.noisy["retrain"] == 0
    steps, curve = a.path["gc"]
    assert steps[0] == 0 and steps[-1] == 20 and curve.shape == (2, len(steps))
    assert curve[:, -1] == pytest.approx(a.test["gc"][:, 1])
    assert a.excluded["gc"] == 0 and np.isfinite(list(finished.values.values())).all()
    assert len(finished.audit.cases) == 6 and finished.whitebox.names[0] == "no noise"
    assert a.chosen["gc_noinfo", 20].sigmas == a.chosen["gc", 20].sigmas


def test_every_claim_of_the_specification_is_there(finished):
    made = claims_of(finished)
    assert set(made) == IDS
    for id in ("audit_sound", "audit_chain", "mc_steps", "automatic_steps", "released_noise"):
        assert made[id].verdict == "holds", made[id]
    for id in ("gc_retrain", "mia_gc", "survival_attack", "control_40", "collapse", "audit_label"):
        assert made[id].verdict == "not tested"


def test_an_interval_that_reaches_zero_fails_whatever_its_mean(finished):
    rng = np.random.default_rng(0)
    for spread, verdict in ((0.5, "fails"), (0.01, "holds")):
        differences = 0.08 + spread * rng.standard_normal((24, 1))
        differences += 0.08 - differences.mean()
        test = {key: np.full((24, 1), 0.3) for key in comparison.METHODS}
        test["gc"] = test["retrain"] + differences
        a = replace(finished.accuracy, budget=np.array([40]), original=np.ones(24), test=test)
        made = claims_of(replace(finished, accuracy=a))
        assert made["gc_retrain"].verdict == verdict
        assert made["mc_retrain"].verdict == "fails"
        assert "of 24 seeds" in made["gc_retrain"].note


def test_runs_that_are_not_finite_are_left_out_and_counted(finished):
    test = {key: np.full((24, 1), 0.3) for key in comparison.METHODS}
    test["gc"] = test["gc"] + 0.1
    test["gc"][:3] = np.nan
    a = replace(
        finished.accuracy, budget=np.array([40]), original=np.ones(24), test=test,
        excluded={"gc": 3},
    )  # fmt: skip
    claim = claims_of(replace(finished, accuracy=a))["gc_retrain"]
    assert claim.n == 21 and "3 runs were not finite and are left out" in claim.note


def test_claims_are_not_judged_at_other_settings(finished):
    other = study.Parameters(**SMALL, epsilon=2.0)
    made = claims_of(replace(finished, parameters=other))
    assert made["whitebox_hidden"].verdict == made["collapse"].verdict == "not tested"
    assert made["released_noise"].verdict == "not tested"


def test_the_same_seed_gives_the_same_numbers(finished):
    again = study.run(study.Parameters(**SMALL), progress=False)
    assert again.values == finished.values and again.claims == finished.claims
    other = work.run(comparison.accuracy_steps(study.Parameters(**SMALL, seed=5)))
    assert not np.array_equal(other.test["gc"], finished.accuracy.test["gc"])


def test_a_stopped_study_keeps_what_is_finished():
    made = study.steps(study.Parameters(**SMALL))
    with pytest.raises(work.Cancelled) as stopped:
        work.run(made, cancelled=lambda: stopped_at(made))
    partial = stopped.value.data
    assert not partial.complete and partial.calculator is not None
    assert set(claims_of(partial)) == IDS


def stopped_at(made, counter=iter(range(10_000))):  # noqa: B008
    return next(counter) > 6


def test_the_calculator_has_the_numbers_of_the_specification(finished):
    c = finished.calculator
    assert c.automatic == 7 and c.sigma[6] == pytest.approx(0.111101, abs=1e-6)
    assert c.final[6] == pytest.approx(0.223838, abs=1e-6)
    assert c.epsilon_T[6] == pytest.approx(1.0) and c.best_T == (10, 10)
    assert c.plain_final == pytest.approx(4 * 0.03 / settings_of(study.Parameters()).mu)
    assert c.T_delta[0.5][[0, 2]].tolist() == [2, 3] and c.T_delta[2.0][2] == 40
    assert c.noise_ratio == pytest.approx(5.27, abs=0.01)
    assert c.cascades[0.5].steps == 3
    rows = {row.name: row for row in c.released}
    assert {row.name: row.T for row in protocol.RELEASED} == {n: r.T for n, r in rows.items()}
    assert rows["GC, MNIST"].survival == pytest.approx(0.0062, abs=1e-4)
    assert rows["GC, CIFAR-10, large steps"].survival == pytest.approx(0.0002, abs=5e-5)
    assert rows["MC, CIFAR-10"].survival == pytest.approx(1 / 20042**0.5)
    assert rows["GC, MNIST"].epsilon == pytest.approx(6.56, abs=0.01)


def test_requests_of_any_size_are_hidden_by_the_same_noise(finished):
    w = finished.whitebox
    assert sorted(w.size_auc) == [6, 125, 628] and w.runs == 20
    assert w.size_distance[6] > 0 and w.size_limit == pytest.approx(0.575, abs=1e-3)
    loud = replace(w, size_auc={6: 0.5, 125: 0.55, 628: 0.7})
    claim = claims_of(replace(finished, whitebox=loud))["size_free"]
    assert claim.verdict == "fails" and "628 examples, starts" in claim.note
    quiet = replace(w, size_auc={6: 0.5, 125: 0.55, 628: 0.58})
    assert claims_of(replace(finished, whitebox=quiet))["size_free"].verdict == "holds"


def test_claims_of_the_calculator_can_fail(finished):
    c = finished.calculator
    slow = {2.0: np.array([4, *[9] * 8, 17])}
    made = claims_of(replace(finished, calculator=replace(c, best_T=(10, 12), T_delta=slow)))
    assert made["automatic_steps"].verdict == made["mc_steps"].verdict == "fails"
    rounded = study.Parameters(**SMALL, C0=0.025, C1=10.0)  # T = 3 is 2.5, rounded up
    found = work.run(experiments.calculator_steps(rounded))
    made = claims_of(replace(finished, parameters=rounded, calculator=found))
    assert found.best_T in {(3, 2), (3, 3)} and made["automatic_steps"].verdict == "holds"
    assert made["few_steps"].verdict == "holds"


def test_that_two_are_equal_is_judged_by_the_interval(finished):
    rng = np.random.default_rng(0)
    for spread, verdict in ((0.2, "fails"), (0.01, "holds")):
        test = {key: np.full((24, 1), 0.5) for key in comparison.METHODS}
        noise = rng.standard_normal((24, 1))
        test["gc"] = test["gc"] + spread * (noise - noise.mean())
        a = replace(finished.accuracy, budget=np.array([40]), original=np.ones(24), test=test)
        assert claims_of(replace(finished, accuracy=a))["control_40"].verdict == verdict
    after = {key: np.full(24, 0.1) for key in comparison.METHODS}
    after["mc"] = np.where(np.arange(24) < 4, 0.6, 0.05)
    a = replace(a, after=after)
    assert claims_of(replace(finished, accuracy=a))["collapse"].verdict == "fails"
    after["mc"] = np.full(24, 0.11)
    assert claims_of(replace(finished, accuracy=a))["collapse"].verdict == "holds"


def test_dp_sgd_and_output_perturbation_are_judged(finished):
    f = replace(
        finished.forget_size, accuracy={1: np.full(24, 0.7), 12: np.full(24, 0.5)},
        gc_accuracy=np.linspace(0.6, 0.8, 24),
    )  # fmt: skip
    claim = claims_of(replace(finished, forget_size=f))["dp_worse"]
    assert claim.verdict == "holds" and "0.500 for 12" in claim.note
    test = {key: np.full((24, 1), 0.3) for key in comparison.METHODS}
    test["gc"] = test["op"] + np.linspace(-0.1, 0.12, 24)[:, None]
    a = replace(finished.accuracy, budget=np.array([40]), original=np.ones(24), test=test)
    made = claims_of(replace(finished, accuracy=a))
    assert made["gc_op"].verdict == made["mc_op"].verdict == "fails"
    assert "ten times C0" in made["gc_op"].note


def test_the_label_is_only_judged_at_its_settings(finished):
    many = [replace(case, n=200_000, lower=1.04) for case in finished.audit.cases]
    audit = replace(finished.audit, cases=many)
    assert claims_of(replace(finished, audit=audit))["audit_label"].verdict == "fails"
    other = study.Parameters(**SMALL, delta=0.1)
    made = claims_of(replace(finished, audit=audit, parameters=other))
    assert made["audit_label"].verdict == "not tested"


def test_streams_of_random_numbers_are_apart(monkeypatch):
    keys = []
    right = streams.generator
    monkeypatch.setattr(streams, "generator", lambda *key: keys.append(key) or right(*key))
    study.run(study.Parameters(**{**SMALL, "budget": [11, 12]}), progress=False)
    assert len({right(*key).initial_seed() for key in keys}) == len(set(keys))
    purposes = {key[0] for key in keys}
    assert {streams.INITIAL, streams.NOISE, streams.WHITE_BOX} <= purposes
    for purpose in purposes:  # keys of a purpose have one length, so no two are padded to the same
        assert len({len(key) for key in keys if key[0] == purpose}) == 1


def test_accountants_have_the_same_names_everywhere():
    assert set(study.ACCOUNTANTS) == set(accounting.ACCOUNTANTS)


def test_membership_and_survival_at_a_tiny_size():
    p = study.Parameters(**SMALL)
    seen = []
    m = work.run(memory.membership_steps(p, 2, (10, 20), train=TRAIN), seen.append)
    assert m.shown == 20 and m.auc["original", 0].shape == (2,)
    assert set(m.losses) == {"original", *memory.MIA_METHODS}
    assert m.images.shape == (125, 64) and (m.given != m.true).all()
    steps, losses = m.path["gc"]
    assert losses.shape == (len(steps), 125) and steps[-1] == 20
    assert any(s.data is not None and s.done < 1 for s in seen)
    s = work.run(memory.survival_steps(p, 2, (1.0, 1e5), train=TRAIN, budget=10))
    assert s.accuracy.shape == s.auc.shape == (2, 2) and s.d == 4810 and s.excluded == 0
    assert s.bound[1] > s.bound[0] == pytest.approx(0.26805 / (2 * 4810**0.5), rel=1e-4)


def test_trials_are_the_same_for_all_methods_and_hold_the_guarantee():
    p = study.Parameters(**SMALL, trials=5)
    tried = comparison.candidates(p, settings_of(p), 12)
    assert {len(v) for v in tried.values()} == {5} and "op_wide" not in tried
    assert [r.scale for r in tried["retrain_tuned"]][:4] == list(comparison.SCALES)
    assert len(comparison.candidates(study.Parameters(**SMALL), settings_of(p), 12)["gc"]) == 1
    for recipe in tried["gc"]:
        found = recipe.mechanism.certificate(recipe.sigmas)
        assert found.mu == pytest.approx(settings_of(p).mu) and recipe.noisy <= 12
    for recipe in tried["mc"]:
        deltas = recipe.mechanism.cascade(1.0, 1e-5, recipe.noisy).deltas
        assert deltas[-1] <= 1e-5
    made = work.run(comparison.accuracy_steps(p))
    assert made.trials == 5 and made.chosen["gc", 12] in tried["gc"]
    assert made.exact["gc"] <= 1 + 1e-9 and made.exact["finetune"] == made.exact["clip"] == np.inf
    assert made.exact["gc_noinfo"] == made.exact["retrain"] == 0


def test_settings_with_a_guarantee_are_chosen_without_the_old_model(monkeypatch):
    p = study.Parameters(**SMALL, trials=3)
    starts: dict = {}
    right = comparison.Task.path

    def recorded(task, recipe, *arguments):
        starts.setdefault(recipe.key.removesuffix("_noinfo"), set()).add(recipe.start)
        return right(task, recipe, *arguments)

    monkeypatch.setattr(comparison.Task, "path", recorded)
    task = comparison.task_of(p, range(2), p.hidden)
    poisoned = torch.full((2, task.d), torch.nan)  # who looks at the old model gets nothing else
    found = comparison.Accuracy(np.array([12]), task.d, 3, np.ones(2))
    work.run(
        comparison._search(p, task, settings_of(p), poisoned, [12], comparison.CERTIFIED, found)
    )
    assert starts == {key: {"zero"} for key in comparison.CERTIFIED}
    assert set(found.chosen) == {(key, 12) for key in comparison.CERTIFIED}
    assert all(recipe.start == "original" for recipe in found.chosen.values())


def test_the_classical_calibration_warns_and_its_exact_epsilon_is_told():
    p = study.Parameters(**SMALL, epsilon=10.0)
    with pytest.warns(UserWarning, match="proven for epsilon <= 1 only"):
        found = work.run(comparison.accuracy_steps(p, methods=("op", "op_classical")))
    assert found.exact["op"] == pytest.approx(10.0) and found.exact["op_classical"] > 10.3


def test_sweeps_and_widths():
    p = study.Parameters(**SMALL, epsilons=[1.0, 100.0], widths=[8], forget_frac=0.05)
    found = work.run(comparison.sweep_steps(p))
    assert found.budget == 20 and found.test["gc"].shape == (2, 2)
    assert np.all(np.diff(found.noise["mc"]) < 0) and np.all(np.diff(found.noise["gc"]) < 0)
    widths = work.run(comparison.widths_steps(p))
    assert widths[8].d == 610 and widths[8].seeds == 2


@pytest.mark.slow
def test_jobs_on_a_cluster_give_the_results_of_jobs_here():
    values = [comparison.plain(study.Parameters(epsilon=e)) for e in (1.0, 2.0)]
    jobs = {p.epsilon: (experiments.calculator_steps, (p,)) for p in values}
    here, there = (work.run(fan_out.steps(jobs, workers)) for workers in (0, 1))
    assert list(here) == list(there) == [1.0, 2.0]
    for epsilon in here:
        assert np.array_equal(here[epsilon].sigma, there[epsilon].sigma)


def test_original_models_are_trained_once():
    p = study.Parameters(**SMALL)
    task = comparison.task_of(p, [31], p.hidden)
    first = work.run(comparison.original_steps(task, 20))
    seen = []
    again = work.run(
        comparison.original_steps(comparison.task_of(p, [31], p.hidden), 20), seen.append
    )
    assert np.array_equal(first, again) and len(seen) == 1
    other = work.run(comparison.original_steps(comparison.task_of(p, [31], p.hidden, True), 20))
    assert not np.array_equal(first, other)


@pytest.mark.slow
def test_dp_sgd_is_trained_when_asked_for():
    p = study.Parameters(**{**SMALL, "budget": [20]}, dp_sgd=True)
    found = work.run(sizes.forget_size_steps(p))
    assert set(found.accuracy) == {1, 2, 6, 12} and found.gc_accuracy.shape == (2,)
    assert found.dp == pytest.approx([0.87, 1.43, 3.71, 7.22], abs=0.01)
    assert found.own[0] == 125 and found.own[1] > 50
    assert set(found.chosen.values()) == {(sizes.DP_LR, sizes.DP_C)}
    searched = work.run(sizes.forget_size_steps(study.Parameters(**SMALL, dp_sgd=True, trials=2)))
    assert set(searched.chosen) == {1, 2, 6, 12} and searched.dp == pytest.approx(found.dp)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gamma": 0.01, "lam": 120.0}, r"gamma\*lambda = 1.2 must be below 1: the step would"),
        ({"T": 53, "budget": [40]}, "T = 53 noisy steps exceed the budget of 40"),
        ({"budget": [2, 40]}, "T = 7 noisy steps exceed the budget of 2"),
        ({"C1": 0.0}, "C1 = 0 needs an explicit T"),
        ({"sigma_mc": 0.02}, "sigma/C2 too small: per-step factor"),
        ({"epsilon": 0.0}, "epsilon = 0.0 is not allowed"),
        ({"delta": 0.5}, "delta = 0.5 is not allowed"),
        ({"accountant": "renyi"}, "accountant = 'renyi' is not allowed"),
        ({"hidden": [8, 8, 8]}, "hidden = "),
        ({"epsilon": 1e-3, "accountant": "released"}, "the released accounting reports at least"),
    ],
)
def test_bad_parameters_are_one_line(changes, words):
    with pytest.raises(ParameterError, match=words) as error:
        study.Parameters(**changes)
    assert "\n" not in str(error.value)


def test_parameters_are_those_of_the_specification():
    names = study.Parameters.names()
    spec = [
        "epsilon", "delta", "accountant", "hidden", "C0", "C1", "gamma", "lam", "C2", "sigma_mc",
        "gamma_mc", "C0_op", "T", "budget", "lr_ft", "batch", "wd", "forget_frac", "seeds",
        "trials", "audit_n", "seed",
    ]  # fmt: skip
    assert set(spec) <= set(names)
    assert set(study.Parameters.presets) == {"quick", "default", "full"}
    s = settings_of(study.Parameters())
    assert (s.T, s.T_mc) == (7, 3) and s.sigma == pytest.approx(0.111101, abs=1e-6)
    assert study.Parameters(T=12, C1=0.0).T == 12
    assert settings_of(study.Parameters(T=12)).sigma != s.sigma


def test_an_audit_case_is_consistent():
    s = settings_of(study.Parameters())
    case = experiments.audit_case(s.gc, s.T, "released", 1.0, 1e-5, 20_000)
    assert case.label == 1 and case.certified == pytest.approx(6.56, abs=0.01)
    assert case.lower <= case.exact + 0.2 and case.exact <= case.certified
    assert case.boxes.shape == (len(case.type1), 4)
