"""The study of RisingAttacK: deterministic, cancelable, honest about what it did not test."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from workbench import steps as work
from workbench.methods.rising_attack import ablations, experiments, findings, study
from workbench.methods.rising_attack.merit import figure_of_merit
from workbench.methods.rising_attack.records import AttackResult
from workbench.parameters import ParameterError

TINY = {
    "images": 2, "K_list": [1, 3], "iters": 3, "quad_iters": 12, "cw_iters": 12, "ad_iters": 12,
}  # fmt: skip


def small(**changes):
    return study.Parameters.preset("quick", **{**TINY, **changes})


def result(success, l2):
    """A result with the given successes and l2 norms; the other norms are the same numbers."""
    found, norms = np.array(success, bool), np.array(l2, float)
    norms = np.where(found, norms, 0.0)
    return AttackResult(torch.zeros(len(found), 1, 1, 1), found, norms, norms, norms, {}, 1.0)


def timeless(values):
    return {name: value for name, value in values.items() if "seconds" not in name}


def verdicts(finished):
    return {claim.id: claim.verdict for claim in findings.claims(finished)}


@pytest.fixture(scope="module")
def finished():
    return study.run(small(), progress=False)


def test_the_same_seed_gives_the_same_numbers(finished):
    again = study.run(small(), progress=False)
    assert timeless(again.values) == timeless(finished.values)
    assert again.claims == finished.claims
    other = study.run(small(seed=5), progress=False)
    assert timeless(other.values) != timeless(finished.values)


def test_every_method_attacks_the_same_images_towards_the_same_nested_orders(finished):
    bench = finished.bench
    assert finished.complete and bench.K == [1, 3]
    assert set(bench.results) == {(m, K) for m in experiments.TITLES for K in (1, 3)}
    assert torch.equal(bench.targets[3][:, :1], bench.targets[1])
    assert not (bench.targets[3] == bench.problem.labels[:, None]).any()
    for results in bench.results.values():
        assert [len(r.success) for r in results] == [2]
    assert all(np.isfinite(value) for value in finished.values.values())


def test_a_claim_whose_experiment_did_not_run_is_not_tested(finished):
    found = verdicts(finished)
    for claim in (
        "long_orders", "longer_than_quad", "shorter_than_quad", "shorter_than_cw", "merit_tuned",
        "anchor", "anchor_speed", "span", "rank_needed", "random_directions", "line_search", "box",
        "partial_steps", "rivals", "width", "adversarial_training", "certificate", "success_tuned",
        "equal_time", "digits_success_tuned", "adversarial_training_ordered",
    ):  # fmt: skip
        assert found[claim] == "not tested", claim
    assert found["nested_linear"] == "holds"
    assert found["digits_success"] != "not tested" and found["merit_quad"] != "not tested"
    assert set(verdicts(study.RisingAttackStudy(small())).values()) == {"not tested"}


def test_the_paper_figures_are_unknown_and_not_invented(finished):
    assert all(claim.paper is None for claim in finished.claims)


@pytest.mark.parametrize(
    ("rising", "quad", "shorter", "merit"),
    [
        (([1, 1], [1.0, 1.0]), ([1, 1], [2.0, 2.0]), "holds", "holds"),
        (([1, 1], [1.8, 1.8]), ([1, 1], [2.0, 2.0]), "fails", "holds"),
        (([1, 1], [3.0, 3.0]), ([1, 1], [2.0, 2.0]), "fails", "fails"),
        (([1, 0], [1.0, 0.0]), ([0, 1], [0.0, 2.0]), "not tested", "holds"),
        (([0, 0], [0.0, 0.0]), ([1, 1], [2.0, 2.0]), "not tested", "fails"),
        (([1, 1], [1.0, 1.0]), ([0, 0], [0.0, 0.0]), "not tested", "holds"),
    ],
)
def test_claims_fail_when_the_measurements_say_so(finished, rising, quad, shorter, merit):
    results = {(m, K): [result(*quad)] for m in experiments.TITLES for K in (1, 3)}
    results |= {("rising", K): [result(*rising)] for K in (1, 3)}
    made_up = study.RisingAttackStudy(small(), bench=replace(finished.bench, results=results))
    found = verdicts(made_up)
    assert (found["digits_shorter"], found["merit_quad"]) == (shorter, merit)


def of_networks(bench, K, **results):
    """The bench with made-up results at one K: method -> a result for each network."""
    empty = [result([0, 0], [0.0, 0.0])] * len(results["rising"])
    made_up = {(m, K): results.get(m, empty) for m in experiments.TITLES}
    models = bench.problem.models[:1] * len(results["rising"])
    problem = replace(bench.problem, models=models)
    return replace(bench, problem=problem, targets={K: bench.targets[K]}, results=made_up)


def test_norms_are_compared_on_images_where_both_succeed(finished):
    bench = of_networks(
        finished.bench, 1, rising=[result([1, 1], [1.0, 9.0])], quad=[result([1, 0], [2.0, 0])]
    )
    assert findings.by_length(bench, findings.ratio_to("quad")) == pytest.approx(0.5)
    assert findings.by_length(bench, findings.merit_over("quad")) == pytest.approx(2 * 2 / 5)


def test_several_networks_give_a_mean_and_an_interval_over_them(finished):
    bench = of_networks(
        finished.bench, 3,
        rising=[result([1, 1], [1.0, 1.0]), result([1, 0], [3.0, 0.0])],
        quad=[result([1, 1], [2.0, 2.0]), result([1, 1], [4.0, 2.0])],
    )  # fmt: skip
    ratios = findings.by_length(bench, findings.ratio_to("quad"))
    assert ratios.tolist() == [[0.5, 0.75]]
    assert findings.by_length(bench, findings.ratio_to("quad"), most=2).shape == (0, 2)
    claim = findings.judge("ratio", "", ratios, each_at_most=0.7, over="lengths K")
    assert (claim.verdict, claim.measured, claim.n, claim.over) == ("holds", 0.625, 2, "networks")
    assert 0.5 <= claim.low < claim.high <= 0.75
    alone = findings.judge("ratio", "", ratios[:, :1], each_at_most=0.7, over="lengths K")
    assert (alone.measured, alone.n, alone.over) == (0.5, 1, "lengths K")


def test_a_mean_whose_interval_holds_the_threshold_says_so():
    def note(values, **rule):
        return findings.judge("gap", "", values, note="Ours.", **rule).note

    unsure = "Ours. Not distinguishable from the threshold at this size."
    assert note([0.0] * 22 + [1.0] * 2, at_least=0.05) == unsure
    assert note([0.0] * 224 + [1.0] * 16, at_most=0.05) == unsure
    assert note([0.0] * 22 + [1.0] * 2, at_least=0.5) == "Ours."
    assert note([1.0, 1.1, 1.2], each_at_least=1.1) == "Ours."  # each counts, not the mean
    assert note(None, at_least=0.05) == note([0.1], at_least=0.05) == "Ours."


def test_each_length_is_judged_by_itself(finished):
    values = np.array([[0.3, 0.3], [0.1, 0.12], [np.nan, np.nan]])  # the mean would pass
    claim = findings.judge("gap", "", values, each_at_least=0.15, over="lengths K")
    assert claim.verdict == "fails" and claim.measured == pytest.approx(0.205)


def test_a_tie_with_a_tuned_baseline_holds_and_a_worse_rate_fails():
    def verdict(own, their):
        settings = {"lr": 1, "coef": 1, "iters": 1, "search_steps": 1, "margin": 1}
        tuned = experiments.TunedBench(
            [20], {("quad", 20): experiments.baselines.Tuned(settings, result(their, their), [])},
            {("rising", 20): result(own, own)},
        )  # fmt: skip
        return verdicts(study.RisingAttackStudy(small(), tuned=tuned))["success_tuned"]

    assert verdict([1, 0], [0, 1]) == "holds" and verdict([1, 0], [1, 1]) == "fails"


def test_equal_time_gives_baselines_the_seconds_of_the_attack(finished, monkeypatch):
    bench, parameters = finished.bench, small()

    def equal(seconds):
        own = replace(bench.results["rising", 3][0], seconds=seconds)
        changed = replace(bench, results={**bench.results, ("rising", 3): [own]})
        return work.run(experiments.equal_time_steps(parameters, changed))

    found = equal(0.5)
    assert found.K == [3] and not found.tuned
    assert set(found.results) == {(m, 3) for m in experiments.TITLES} == set(found.iterations)
    for method in findings.BASELINES:
        assert 0.5 <= found.results[method, 3].seconds < 1.0
        assert 12 < found.iterations[method, 3] < experiments.MOST_ITERATIONS
        own = bench.results[method, 3][0]  # its first 12 iterations are those of the comparison
        trace = found.results[method, 3].trace["norm"][:13]
        np.testing.assert_allclose(trace, own.trace["norm"], atol=1e-5)
    made_up = study.RisingAttackStudy(parameters, equal_time=found)
    claim = {c.id: c for c in findings.claims(made_up)}["equal_time"]
    assert f"{found.iterations['quad', 3]} iterations" in claim.note
    assert "their settings as set" in claim.note
    monkeypatch.setattr(experiments, "MOST_ITERATIONS", 9)
    assert equal(1e6).iterations["cw", 3] == 9


def test_equal_time_takes_the_images_and_the_settings_that_tuning_has_found(finished):
    problem, p = finished.bench.problem, small()
    own = replace(finished.bench.results["rising", 3][0], seconds=0.3)
    settings = {
        "quad": {"lr": 0.1, "coef": 5.0, "iters": 4, "margin": 0.05, "search_steps": 3, "seed": 0},
        "cw": {"lr": 0.02, "coef": 7.0, "iters": 4, "margin": 0.2, "search_steps": 1, "seed": 0},
        "ad": {"lr": 0.05, "coef": 20.0, "iters": 4, "margin": 0.2, "search_steps": 1, "seed": 0},
    }
    tuned = experiments.TunedBench(
        [3], {(m, 3): experiments.baselines.Tuned(s, own, []) for m, s in settings.items()},
        {("rising", 3): own}, problem,
    )  # fmt: skip
    nothing = replace(finished.bench, results={})
    found = work.run(experiments.equal_time_steps(p, nothing, tuned))
    assert found.tuned and found.K == [3] and found.results["rising", 3] is own
    assert {m: found.settings[m, 3] for m in settings} == settings
    assert found.iterations["quad", 3] == 3 * 4  # bisection ends by itself
    for method, chosen in settings.items():
        again = work.run(experiments.attack_steps(
            problem.models[0], problem.x, problem.targets(3, p), method, **chosen))  # fmt: skip
        trace = found.results[method, 3].trace["norm"][: len(again.trace["norm"])]
        np.testing.assert_allclose(trace, again.trace["norm"], atol=1e-5)
    made_up = study.RisingAttackStudy(p, equal_time=found)
    claim = {c.id: c for c in findings.claims(made_up)}["equal_time"]
    assert "settings tuned without a limit of time" in claim.note
    assert findings.values(made_up)["equal_time_quad_K3_iterations"] == 12


def test_the_certificate_is_judged_image_by_image():
    from workbench.methods.rising_attack.defense import Curve

    def verdict(norms, radius):
        curve = Curve(0.9, np.zeros(1), {"a": np.array(norms)}, np.zeros(1), np.array(radius))
        other = replace(curve, radii={"a": np.array(norms) + 1})
        defense = {1: {"smoothed": other}, 3: {"smoothed": curve}}  # each K counts
        return verdicts(study.RisingAttackStudy(small(), defense=defense))["certificate"]

    assert verdict([0.5, 0.9, np.inf], [0.4, 0.0, 0.3]) == "holds"
    assert verdict([0.5, 5.0, np.inf], [0.4, 5.1, 0.3]) == "fails"  # the means would hide it
    assert verdict([np.inf, 0.1], [0.4, 0.0]) == "not tested"


def test_an_image_that_needs_no_attack_does_not_divide_by_zero():
    from workbench.methods.rising_attack.defense import Curve

    plain, hard = (Curve(0.9, np.zeros(1), {"a": np.array(n)}) for n in ([0.0, 1.0], [0.5, 2.0]))
    of_K = {"plain": plain, "adversarially trained": hard}
    for K, id in ((1, "adversarial_training"), (3, "adversarial_training_ordered")):
        made_up = study.RisingAttackStudy(small(), defense={K: of_K})
        claims = {c.id: c for c in findings.claims(made_up) if c.verdict != "not tested"}
        assert set(claims) == {id} and (claims[id].measured, claims[id].n) == (2.0, 1)
        assert f"defense_plain_K{K}_reached" in findings.values(made_up)


def test_a_merit_beyond_the_cap_is_judged_as_the_cap_and_shown_as_it_is(finished):
    rare = result([1, 0], [20.0, 0.0])
    bench = of_networks(finished.bench, 3, rising=[result([1, 1], [1.0, 1.0])], quad=[rare])
    made_up = study.RisingAttackStudy(small(), bench=bench)
    claims = {c.id: c for c in findings.claims(made_up)}
    assert claims["merit_quad"].measured == findings.FOM_CAP
    assert claims["merit_quad"].note.startswith("K = 3: 40.00. On digits. Judged as 10 where")
    bench = of_networks(finished.bench, 3, rising=[result([1, 1], [1.0, 1.0])])
    claims = {c.id: c for c in findings.claims(replace(made_up, bench=bench))}
    assert claims["merit_all"].measured == findings.FOM_CAP
    assert claims["merit_all"].note.startswith("K = 3: ∞.")


def test_notes_tell_success_by_what_was_kept(finished):
    rates = {"3": result([1, 0], [1.0, 0.0]), "9": result([1, 1], [1.0, 1.0])}
    made_up = study.RisingAttackStudy(
        small(), ablations=ablations.Ablations("digits", 5, {"": {}, "rank": rates}),
        long_ablations=ablations.Ablations("glyphs", 20, {"": {}, "rivals": rates}),
    )  # fmt: skip
    claims = {c.id: c for c in findings.claims(made_up)}
    for id in ("rank_needed", "rivals"):
        assert "Success by how many are kept: 3: 50 %, 9: 100 %." in claims[id].note


def test_every_note_says_whose_threshold_it_is_and_no_statement_leans_on_another(finished):
    for claim in finished.claims:
        assert ("hreshold ours" in claim.note) != (findings.PILOT in claim.note), claim.id
        assert claim.statement.split()[0] not in ("And", "There", "Nor", "In"), claim.statement


def test_limits_of_jobs_end_with_the_last_job_even_if_nobody_takes_the_result(finished):
    import warnings

    from threadpoolctl import threadpool_info

    def state():
        blas = [m["num_threads"] for m in threadpool_info() if m["user_api"] == "blas"]
        return blas, list(warnings.filters), experiments._jobs

    before = state()
    steps = study.steps(small())
    while not (step := next(steps)).data or not step.data.bench or not step.data.bench.results:
        pass
    with experiments.job_limits(), experiments.job_limits():
        assert set(state()[0]) == {1}
    steps.close()
    assert state() == before


def test_attacks_that_all_fail_leave_nothing_to_compare(finished):
    nothing = result([0, 0], [0.0, 0.0])
    results = {(m, K): [nothing] for m in experiments.TITLES for K in (1, 3)}
    settings = {"lr": 1, "coef": 1, "iters": 1, "search_steps": 1, "margin": 1}
    tuned = experiments.TunedBench(
        [20], {("quad", 20): experiments.baselines.Tuned(settings, nothing, [])},
        {("rising", 20): nothing},
    )  # fmt: skip
    anchor = experiments.Anchor(dict.fromkeys(
        ("RisingAttacK", experiments.peers.TITLES["cw"]), nothing))  # fmt: skip
    made_up = study.RisingAttackStudy(
        small(), bench=replace(finished.bench, results=results), tuned=tuned, anchor=anchor
    )
    found = verdicts(made_up)
    for claim in ("merit_quad", "merit_all", "digits_shorter", "merit_tuned", "anchor"):
        assert found[claim] == "not tested", claim
    assert all(np.isfinite(value) for value in findings.values(made_up).values())


def test_falls_of_nested_norms_are_counted_over_common_successes(finished):
    results = dict(finished.bench.results)
    results["rising", 1] = [result([1, 1], [1.0, 2.0])]
    results["rising", 3] = [result([1, 1], [0.9, 2.5])]
    shares, over = findings.falls(replace(finished.bench, results=results))
    assert shares.tolist() == [1.0, 0.0] and over == "steps of K"
    results["rising", 3] = [result([0, 1], [0.0, 2.5])]
    assert findings.falls(replace(finished.bench, results=results))[0].tolist() == [0.0]
    twice = {key: found * 2 for key, found in results.items()}
    twice["rising", 3] = [result([1, 1], [0.9, 2.5]), result([0, 1], [0.0, 2.5])]
    problem = replace(finished.bench.problem, models=finished.bench.problem.models * 2)
    shares, over = findings.falls(replace(finished.bench, problem=problem, results=twice))
    assert shares.tolist() == [0.5, 0.0] and over == "networks"


def test_an_own_order_is_used_for_every_image_and_avoids_their_labels():
    parameters = small(targets=[7, 2, 4], K_list=[1, 2, 3], K=3)
    problem = work.run(experiments.problem_steps(parameters, "digits", 1, 6))
    assert problem.targets(2, parameters).tolist() == 6 * [[7, 2]]
    assert not set(problem.labels.tolist()) & {7, 2, 4}


def test_joined_results_keep_every_image_of_every_network():
    pair = [result([1, 0], [1.0, 0.0]), result([1, 1], [2.0, 3.0])]
    both = experiments.joined(pair)
    assert both.success.tolist() == [True, False, True, True]
    assert both.l2.tolist() == [1.0, 0.0, 2.0, 3.0] and both.seconds == 2.0
    assert figure_of_merit(both, both) == pytest.approx(1.0)


def test_a_cancelled_study_keeps_and_judges_what_is_finished():
    parameters = small(quad_iters=400, cw_iters=400, ad_iters=400)
    seen, asked = [], []

    def stop() -> bool:
        bench = seen[-1].data and seen[-1].data.bench
        if bench and ("rising", 1) in bench.results:
            asked.append(time.perf_counter())
        return bool(asked)

    with pytest.raises(work.Cancelled) as stopped:
        work.run(study.steps(parameters), on_step=seen.append, cancelled=stop)
    assert time.perf_counter() - asked[0] < 1.0
    partial = stopped.value.data
    assert not partial.complete and partial.bench.K == [] and partial.nested is None
    assert set(verdicts(partial).values()) == {"not tested"}
    assert findings.values(partial)["accuracy_0"] > 0.9


def test_progress_never_goes_back_and_steps_come_often(finished):
    seen = []
    work.run(study.steps(small()), on_step=seen.append)
    done = [step.done for step in seen]
    assert all(b >= a - 1e-9 for a, b in itertools.pairwise(done))
    assert done[-1] == pytest.approx(1.0)
    assert len(seen) > 100


def test_waiting_passes_on_result_and_error_and_can_be_left():
    assert work.run(experiments.waiting_steps(lambda stopped: 3)) == 3
    with pytest.raises(ZeroDivisionError):
        work.run(experiments.waiting_steps(lambda stopped: 1 / 0))
    begin = time.perf_counter()
    with pytest.raises(work.Cancelled):
        work.run(experiments.waiting_steps(lambda stopped: time.sleep(5)), cancelled=lambda: True)
    assert time.perf_counter() - begin < 1.0


def test_what_is_waited_for_is_told_to_stop_when_nobody_waits():
    ended = []

    def work_on(stopped):
        while not stopped():
            time.sleep(0.01)
        ended.append(True)

    with pytest.raises(work.Cancelled):
        work.run(experiments.waiting_steps(work_on), cancelled=lambda: True)
    assert ended


def test_a_study_stopped_at_a_peer_leaves_no_attack_running(monkeypatch):
    looks, ended = [], []

    def peer(model, x, targets, method, seed, stopped):
        try:
            while not stopped():
                looks.append(method)
                time.sleep(0.005)
        finally:
            ended.append(method)

    monkeypatch.setattr(experiments.peers, "available", lambda: True)
    monkeypatch.setattr(experiments.peers, "peer", peer)
    with pytest.raises(work.Cancelled) as error:
        work.run(experiments.anchor_steps(small(), images=2), cancelled=lambda: bool(looks))
    assert ended == ["cw"] and set(error.value.data.results) == {"RisingAttacK"}


def test_ablations_change_one_part_each_and_solutions_stay_in_the_span():
    parameters = small()
    problem = work.run(experiments.problem_steps(parameters, "digits", 1, 3))
    settings = {
        "rank": {"1": {"rank": 1}}, "directions": {"random": {"directions": "random"}},
    }  # fmt: skip
    found = work.run(ablations.ablation_steps(parameters, problem, 3, 6, settings))
    assert set(found.results) == {"", "rank", "directions"}
    whole = found.results[""][ablations.FULL]
    assert whole.asr > found.results["rank"]["1"].asr
    assert whole.asr > found.results["directions"]["random"].asr
    assert found.residuals.shape == (2, len(ablations.SPAN_ITERATIONS), 3)
    assert found.residuals.max() < 1e-8


def test_margins_are_compared_on_as_many_digits_as_asked_for(monkeypatch):
    settings = {"margin": {"0.05": {"margin": 0.05}}, "rivals": {"3": {"rivals": 3}}}
    monkeypatch.setattr(ablations, "digits_ablation_settings", lambda: settings)
    monkeypatch.setattr(ablations, "DIGITS_IMAGES", 3)
    monkeypatch.setattr(ablations, "DIGITS_ITERS", 4)
    found = work.run(ablations.digits_ablations_steps(small(margin_images=7, margin=0.05)))
    assert {part: len(r.success) for part, rs in found.results.items() for r in rs.values()} == {
        "": 3, "margin": 7, "rivals": 3,
    }  # fmt: skip
    same = found.results["margin"]["0.05"].l2[:3]  # the first images are those of the others
    np.testing.assert_allclose(same, found.results[""][ablations.FULL].l2, atol=1e-5)


def test_the_share_outside_the_span_is_seen_where_there_is_one(monkeypatch):
    problem = work.run(experiments.problem_steps(small(), "digits", 1, 2))
    solve = ablations.linear_programs

    def bent(*args):
        for solution in solve(*args):
            yield replace(solution, delta=solution.delta + 1e-3)

    targets = problem.targets(3, small())
    monkeypatch.setattr(ablations, "linear_programs", bent)
    shares = ablations.off_span(problem.models[0], problem.x, targets, 0.05)
    assert (shares > 1e-4).all()


def test_the_optimum_of_nested_orders_never_falls_on_a_linear_model():
    nested = work.run(ablations.nested_steps(small(), images=5))
    assert nested.norms.shape == (5, 9)
    assert (np.diff(nested.norms, axis=1) >= -1e-9).all() and np.ptp(nested.norms) > 0.1


def test_the_linear_model_reads_digits():
    from workbench.methods.rising_attack.digits import held_out_digits

    W, b = ablations.ridge_classifier()
    x, labels = held_out_digits()
    predicted = (x.flatten(1).double().numpy() @ W.T + b).argmax(1)
    assert (predicted == labels.numpy()).mean() > 0.9


def test_the_plan_follows_the_switches():
    def plan(parameters):
        return [name for name, _, _ in study._plan(parameters, None)]

    assert plan(study.Parameters.preset("full")) == [
        "bench", "ablations", "nested", "digits", "digits_tuned", "long_ablations", "tuned",
        "equal_time", "widths", "anchor", "defense",
    ]  # fmt: skip
    assert plan(study.Parameters()) == ["bench", "ablations", "nested", "defense"]
    assert plan(small()) == ["bench", "nested"]


def test_zero_means_all_or_none_for_the_attack():
    options = study.Parameters().options("rising")
    assert (options["rivals"], options["rank"], options["trust"]) == (None, None, None)
    options = study.Parameters(rivals=40, rank=3, trust=1.5).options("rising")
    assert (options["rivals"], options["rank"], options["trust"]) == (40, 3, 1.5)
    assert study.Parameters(cw_iters=7).options("cw")["iters"] == 7


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"K_list": [1, 10]}, "K_list holds 10, too long for data = 'digits' with 10 classes"),
        ({"K_list": [1, 94]}, "a list of integers from 1 to 93"),
        ({"K": 10}, "K = 10 is too long for data = 'digits' with 10 classes: allowed are 1 to 9"),
        ({"targets": [1, 1, 2, 3, 4]}, "repeats a class"),
        ({"targets": [1, 12, 2, 3, 4]}, "targets holds 12, but data = 'digits' with 10 classes"),
        ({"targets": [1, 2]}, "targets names 2 classes, but K and K_list go up to 5"),
        ({"alphas": []}, "a list of numbers from 0.001 to 1"),
        ({"box": "activ"}, "one of 'active', 'none'"),
        ({"iter": 5}, "did you mean 'iters'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(values, words):
    with pytest.raises(ParameterError) as error:
        small(**values)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_without_foolbox_the_anchor_says_so(monkeypatch):
    monkeypatch.setattr(experiments.peers, "available", lambda: False)
    anchor = work.run(experiments.anchor_steps(small(), images=2))
    assert set(anchor.results) == {"RisingAttacK"} and "pip install" in anchor.missing
    made_up = study.RisingAttackStudy(small(), anchor=anchor)
    claim = {c.id: c for c in findings.claims(made_up)}["anchor"]
    assert claim.verdict == "not tested" and "foolbox is not installed" in claim.note


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:margin = ")
def test_the_experiments_of_the_full_preset_run_at_a_tiny_size(monkeypatch):
    grid = {
        "lrs": (0.01, 0.03), "coefs": (20,), "iterations": (5,), "margins": (0.2,), "rounds": 2,
    }  # fmt: skip
    monkeypatch.setattr(experiments, "GRIDS", dict.fromkeys(experiments.GRIDS, grid))
    monkeypatch.setattr(experiments, "DIGITS_GRID", grid)
    monkeypatch.setattr(experiments, "DIGITS_IMAGES", 2)
    monkeypatch.setattr(experiments, "DIGITS_K", (1, 2))
    monkeypatch.setattr(experiments, "DIGITS_TUNED_K", (2,))
    monkeypatch.setattr(ablations, "WIDTHS", (98, 196))
    monkeypatch.setattr(ablations, "WIDTH_K", (2, 10))
    monkeypatch.setattr(ablations, "DIGITS_IMAGES", 2)
    monkeypatch.setattr(experiments.peers, "PEERS", ("ddn",))
    p = small(iters=2, cw_iters=4)
    tuned = work.run(experiments.tuned_steps(p, (20,), images=1))
    assert set(tuned.tuned) == {("quad", 20), ("cw", 20), ("ad", 20)}
    assert set(tuned.rising) == {("rising", 20), ("rising 40", 20)}
    assert len(tuned.tuned["quad", 20].scores) == 3
    equal = work.run(experiments.equal_time_steps(p, None, tuned))
    assert equal.tuned and set(equal.results) == {(m, 20) for m in experiments.TITLES}
    widths = work.run(ablations.width_steps(p, images=1))
    assert widths.asr["cw"].shape == (2, 2) and (widths.accuracy > 0.5).all()
    assert widths.deep["rising"].shape == (2,) and widths.deep_accuracy > 0.5
    on_digits = work.run(experiments.digits_bench_steps(p))
    digits_tuned = work.run(experiments.tuned_digits_steps(p, on_digits))
    assert digits_tuned.K == [2] and len(digits_tuned.results["cw", 2]) == 3
    assert digits_tuned.results["rising", 2] is on_digits.results["rising", 2]
    assert set(digits_tuned.settings) == {(m, 2) for m in findings.BASELINES}
    found = study.RisingAttackStudy(
        p, tuned=tuned, widths=widths, digits=on_digits, digits_tuned=digits_tuned,
        equal_time=equal,
        ablations=work.run(ablations.digits_ablations_steps(p)),
        long_ablations=work.run(ablations.long_ablations_steps(p, images=1)),
        anchor=work.run(experiments.anchor_steps(p, images=2)),
        defense=work.run(ablations.defense_steps(p)),
    )  # fmt: skip
    assert len(found.digits.problem.models) == 3 and found.digits.K == [1, 2]
    assert set(found.long_ablations.results) == {"", "tau", "rivals"}
    judged = {claim for claim, verdict in verdicts(found).items() if verdict != "not tested"}
    assert {
        "width", "adversarial_training", "partial_steps", "rivals", "digits_success", "span",
        "digits_success_tuned",
    } <= judged  # fmt: skip
    assert all(np.isfinite(value) for value in findings.values(found).values())
