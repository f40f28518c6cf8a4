"""The study of soft inductive biases: deterministic, cancelable, honest about what it tested."""

from dataclasses import replace

import numpy as np
import pytest

from workbench import steps as work
from workbench.methods.soft_inductive_bias import (
    closed_forms,
    digits,
    experiments,
    findings,
    loaders,
    study,
)
from workbench.methods.soft_inductive_bias.bounds import Bounds
from workbench.methods.soft_inductive_bias.posterior import Gibbs, Validity
from workbench.methods.soft_inductive_bias.representation import Learned
from workbench.parameters import ParameterError

SMALL = {
    "draws": 2, "seeds": 1, "efficiency_draws": 2, "d_grid": [50, 100], "n": 100, "widths": [2, 40],
    "bound_widths": [0], "bound_d": [20], "width": 4, "d": 20, "n_train": [40], "index_n": [40],
    "path_widths": [4, 0], "rho": [0.0, 1.0], "mlp_rho": [],
}  # fmt: skip
PARTS = ["polynomials", "weak", "exact", "symmetry", "validity"]  # seconds even at full size
IDS = {
    "simple", "complex", "noise", "interpolation", "no_hard_order", "evidence_saturates",
    "evidence_falls", "home_ground", "elsewhere", "order_free", "gp_fits", "gp_falls",
    "evidence_order", "gp_chance", "gp_half", "mlp_fits", "mlp_falls", "mlp_chance", "weak_peak",
    "weak_second", "weak_dimension", "relu_peak", "relu_second", "relu_ridge", "exact",
    "width_peak", "width_rise", "width_fall", "width_dimension", "bound", "bound_sound",
    "bound_size", "corrupt_order", "corrupt_vacuous", "corrupt_true", "valid", "vc", "gibbs",
    "gibbs_random", "soft_rotated", "soft_upright", "soft_orient", "soft_beats_none",
    "soft_beats_hard", "pathway_rotated", "pathway_upright", "pathway_orient", "learned",
    "alignment", "few_examples", "connected", "convex",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished():
    return study.run(study.Parameters(**SMALL, parts=PARTS), progress=False)


def claims_of(made):
    return {c.id: c for c in findings.claims(made)}


def test_the_parts_that_were_asked_for_leave_results(finished):
    assert finished.complete and finished.labels is None and finished.connected is None
    assert set(finished.polynomials.evidence) == {1.0, 1.1}
    assert finished.weak.d.tolist() == list(closed_forms.double_descent.WEAK_DIMENSIONS)
    assert {t for t, _ in finished.symmetry.rows} == set(digits.TASKS)
    assert all(np.isfinite(v) for v in finished.values.values())
    assert finished.values["rotated_40_soft"] <= 1


def test_every_claim_of_the_specification_is_there(finished):
    made = claims_of(finished)
    assert set(made) == IDS
    assert made["vc"].verdict == made["valid"].verdict == made["exact"].verdict == "holds"
    for id in ("gp_fits", "bound", "width_peak", "learned", "connected", "gibbs", "relu_peak"):
        assert made[id].verdict == "not tested"
    assert all(c.paper is None for c in made.values())


def test_the_same_seed_gives_the_same_numbers(finished):
    parts = ["polynomials", "symmetry"]
    once, again = (
        study.run(study.Parameters(**SMALL, parts=parts), progress=False) for _ in range(2)
    )
    assert once.values == again.values and once.claims == again.claims
    other = study.run(study.Parameters(**SMALL, parts=parts, seed=1), progress=False)
    assert other.values != once.values


@pytest.mark.slow
def test_what_is_trained_runs_at_a_tiny_size_and_repeats():
    parts = ["labels", "relu", "compression", "corrupted", "universal", "connected", "learned"]
    p = study.Parameters(**{**SMALL, "mlp_rho": [0.0]}, parts=parts)
    made = study.run(p, progress=False)
    assert made.complete and made.labels.mlp_train.shape == (1, 1)
    assert made.labels.train.min() > 0.99 and made.labels.rho.tolist() == [0.0, 1.0]
    assert made.relu.n == 100 and set(made.relu.test) == {0.0, 0.02}
    stored = made.compression[0, 20]
    assert len(stored.bounds) == 1 and stored.bits[0] == len(stored.messages[0])
    assert made.corrupted.bound().shape == (2, 1) and made.corrupted.done
    random = made.corrupted.rows[1.0]
    assert random.test[0] > 0.7 and random.test_true[0] > 0.7
    assert made.corrupted.bound()[1, 0] > made.corrupted.bound()[0, 0]
    assert set(made.connected) == {4, 0} and made.connected[4].plane is not None
    assert made.learned[40].net.shape == (1,)
    again = study.run(study.Parameters(**SMALL, parts=["compression"]), progress=False)
    assert again.compression[0, 20].messages[0].bits == stored.messages[0].bits


@pytest.mark.slow
def test_widths_train_in_batches_and_are_checked_by_lanczos():
    seen = []
    made = work.run(
        experiments.width_steps([8, 2], [0, 1], 0.2, 10.0, check=True, steps=150), seen.append
    )
    assert made.widths.tolist() == [2, 8] and made.test.shape == (2, 2)
    gram, lanczos = made.lanczos[8]
    assert lanczos == pytest.approx(gram, rel=0.02)
    assert len(made.curves[8][0][1]) == 2
    assert (made.dimension > 0).all()
    assert any(s.data is not None and s.done < 1 for s in seen)


def test_a_stopped_study_keeps_what_is_finished():
    made = study.steps(study.Parameters(**SMALL, parts=PARTS))
    with pytest.raises(work.Cancelled) as stopped:
        work.run(made, cancelled=lambda: stopped_at(made))
    partial = stopped.value.data
    assert not partial.complete and partial.polynomials is not None
    assert set(claims_of(partial)) == IDS


def stopped_at(made, counter=iter(range(10_000))):  # noqa: B008
    return next(counter) > 18


def polynomials(test=0.09, noise=0.005, order_29=2000.0, hard=0.9, drop=20.0):
    kinds = {k: np.full(5, v) for k, v in (("simple", test), ("complex", test), ("noise", noise))}
    wild = {k: np.full(5, order_29) for k in kinds}
    steps = np.linspace(0, -1, len(closed_forms.EVIDENCE_ORDERS))
    return closed_forms.Polynomials(
        {findings.MAIN: kinds, closed_forms.hard_name(29): wild},
        {findings.MAIN: {"simple": 0.1, "complex": 0.2}},
        {1.1: 0.01 * steps, 1.0: drop * 3 * steps},
        {3: {"simple": kinds["simple"], "complex": np.full(5, hard), "noise": np.full(5, hard)}},
    )


def test_claims_on_polynomials_follow_the_measurements(finished):
    ids = ["simple", "complex", "noise", "interpolation", "no_hard_order", "evidence_saturates",
           "evidence_falls"]  # fmt: skip
    good = claims_of(replace(finished, polynomials=polynomials()))
    assert [good[i].verdict for i in ids] == ["holds"] * 7
    assert "0.200" in good["complex"].note
    bad = claims_of(replace(finished, polynomials=polynomials(0.13, 0.03, 90.0, 0.05, 0.1)))
    assert [bad[i].verdict for i in ids] == ["fails"] * 5 + ["holds", "fails"]
    other = replace(finished, parameters=study.Parameters(n_points=20), polynomials=polynomials())
    assert claims_of(other)["simple"].verdict == "not tested"


def test_claims_on_labels_and_widths_follow_the_measurements(finished):
    rho = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    test, evidence = np.array([[0.99, 0.9, 0.7, 0.4, 0.1]]), np.array([[3.0, 0, -2, -3, -4]])
    labels = experiments.RandomLabels(rho, np.ones((1, 5)), test, evidence, rho, np.ones((1, 5)),
                                      test)  # fmt: skip
    ids = ["gp_fits", "gp_falls", "evidence_order", "gp_chance", "gp_half", "mlp_fits",
           "mlp_falls", "mlp_chance"]  # fmt: skip
    made = claims_of(replace(finished, labels=labels))
    assert [made[i].verdict for i in ids] == ["holds"] * 8
    labels = replace(labels, train=np.full((1, 5), 0.99), test=test[:, ::-1], evidence=-evidence)
    made = claims_of(replace(finished, labels=labels))
    assert [made[i].verdict for i in ids[:4]] == ["fails"] * 4
    h = np.array([4, 8, 64, 128, 256])
    w = experiments.Widths(h, np.array([[1.5, 5.0, 1.7, 1.4, 1.1]]), np.zeros((1, 5)),
                           np.array([[0.2, 0, 0, 0, 0]]),
                           np.array([[70, 60, 18, 16, 15.0]]))  # fmt: skip
    ids = ["width_peak", "width_rise", "width_fall", "width_dimension"]
    made = claims_of(replace(finished, widths=w, parameters=study.Parameters()))
    assert [made[i].verdict for i in ids] == ["holds"] * 4
    w = replace(w, test=np.array([[5.0, 1.5, 1.7, 1.8, 1.9]]))
    made = claims_of(replace(finished, widths=w, parameters=study.Parameters()))
    assert [made[i].verdict for i in ids] == ["fails"] * 4


def stored(kl, test, n=1):
    from workbench.methods.soft_inductive_bias.compression import Compressed

    each = np.full(n, test)
    return Compressed(64, np.full(n, 100), 9, 1437, *(each,) * 4, np.full(n, 380), [{}] * n,
                      [Bounds(kl + 0.02, kl, kl - 0.01)] * n)  # fmt: skip


def test_claims_on_bounds_follow_the_measurements(finished):
    p = study.Parameters()
    runs = {
        (0, 100): stored(0.53, 0.27),
        (64, 100): stored(0.43, 0.17),
        (256, 100): stored(0.44, 0.2),
    }
    corrupted = experiments.Corrupted({0.0: stored(0.44, 0.1), 1.0: stored(0.98, 0.9)})
    gibbs = Gibbs(*(np.array([1.0, 1.0]) for _ in range(5)), np.array([0.48, 0.95]),
                  np.array([0.5, 1.1]), *(np.ones((2, 5)) for _ in range(2)), 1000)  # fmt: skip
    valid = Validity({"hoeffding": 0.0, "kl": 0.001, "exact": 0.06}, {}, {}, 3000)
    made = claims_of(replace(finished, parameters=p, compression=runs, corrupted=corrupted,
                             posterior=gibbs, validity=valid))  # fmt: skip
    ids = ["bound", "bound_sound", "bound_size", "corrupt_order", "corrupt_vacuous",
           "corrupt_true", "gibbs", "gibbs_random"]  # fmt: skip
    assert [made[i].verdict for i in ids] == ["holds"] * 8
    assert made["valid"].verdict == "fails"
    assert "it saturates: d = 100: 0.440 at 256, 0.430 at 64" in made["bound_size"].note
    worse = {(0, 100): stored(0.5, 0.6), (64, 100): stored(0.56, 0.1)}
    made = claims_of(replace(finished, parameters=p, compression=worse))
    assert [made[i].verdict for i in ids[:3]] == ["fails"] * 3
    other = replace(finished, parameters=study.Parameters(delta=0.5), compression=runs)
    assert claims_of(other)["bound"].verdict == "not tested"
    broken = experiments.Corrupted({0.0: stored(0.44, 0.1), 1.0: stored(0.8, 0.9)})
    made = claims_of(replace(finished, parameters=p, compression=runs, corrupted=broken))
    assert made["bound_sound"].verdict == "fails"


CHANGED = [
    ({"label_noise": 0.1}, ["relu_peak", "relu_second", "relu_ridge", "width_peak", "width_fall"]),
    ({"n": 400}, ["relu_peak", "relu_second", "relu_ridge"]),
    ({"basis": "legendre"}, ["home_ground", "elsewhere", "order_free"]),
    ({"n_train": [50]}, ["soft_rotated", "soft_upright", "soft_orient", "soft_beats_none"]),
    ({"group": "C2"}, ["soft_rotated", "soft_beats_hard"]),
    ({"widths": [4, 64, 256]}, ["width_peak", "width_rise", "width_fall"]),
    ({"alpha": 1.0}, ["width_dimension"]),
    ({"levels": 7}, ["bound", "bound_sound"]),
    ({"noise": 0.1}, ["gp_fits", "evidence_order"]),
]


@pytest.mark.parametrize("values, ids", CHANGED)
def test_a_claim_is_not_tested_when_its_premises_are_changed(finished, values, ids):
    p = study.Parameters(**values)
    d = np.array([100, 200, 450, p.n, 4000])
    ridges = {r: np.array([[0.1, 0.1, 0.5, 0.9, 0.1]]) for r in (0.0, 0.02)}
    sizes = p.n_train if "n_train" in values else [100, 200]
    fields = {
        "relu": closed_forms.Relu(d, p.n, ridges, ridges, np.ones((1, 5))),
        "widths": widths_of(p.widths if "widths" in values else [4, 8, 64, 128, 256]),
        "efficiency": closed_forms.SampleEfficiency({
            (t, n, m): np.ones(3) for t in closed_forms.TRUTHS for n in closed_forms.SIZES
            for m in closed_forms.MODELS_A2
        }),
        "symmetry": closed_forms.Symmetry({
            (t, n): finished.symmetry.rows[t, 40] for t in digits.TASKS for n in sizes
        }),
        "compression": {(64, 100): stored(0.43, 0.17)},
        "labels": experiments.RandomLabels(np.array([0, 0.5, 1.0]),
                                           *(np.array([[0.9, 0.5, 0.1]]) for _ in range(3))),
    }  # fmt: skip
    usual = claims_of(replace(finished, parameters=study.Parameters(), **fields | {
        "widths": widths_of([4, 8, 64, 128, 256]), "symmetry": closed_forms.Symmetry({
            (t, 100): finished.symmetry.rows[t, 40] for t in digits.TASKS}),
        "relu": closed_forms.Relu(np.array([100, 200, 450, 500, 4000]), 500, ridges, ridges,
                                  np.ones((1, 5))),
    }))  # fmt: skip
    other = claims_of(replace(finished, parameters=p, **fields))
    assert "not tested" not in {usual[i].verdict for i in ids}
    assert {other[i].verdict for i in ids} == {"not tested"}


def widths_of(widths):
    k = len(widths)
    return experiments.Widths(np.array(widths), np.linspace(3, 1, k)[None], np.zeros((1, k)),
                              np.zeros((1, k)), np.linspace(70, 15, k)[None])  # fmt: skip


def test_claims_on_features_follow_the_measurements(finished):
    two = np.array([0.1, 0.2])
    learned = {
        1500: Learned(1500, two, np.full(2, 0.37), np.array([0.8, 0.9])),
        200: Learned(200, np.full(2, 0.7), np.full(2, 0.4), two),
    }
    made = claims_of(replace(finished, learned=learned))
    ids = ["learned", "alignment", "few_examples"]
    assert [made[i].verdict for i in ids] == ["holds"] * 3
    learned[200] = Learned(200, two, np.full(2, 0.4), two)
    assert claims_of(replace(finished, learned=learned))["few_examples"].verdict == "fails"


def test_the_two_axes_are_measured_and_between_zero_and_one(finished):
    places = {name: (f, s) for name, f, s in findings.axes(finished)}
    soft, hard, wild = (
        places[n] for n in (findings.MAIN, closed_forms.hard_name(3), closed_forms.hard_name(150))
    )
    assert soft[0] > 0.95 and soft[1] > 0.8
    assert hard[0] < 0.3 and wild[0] > 0.95 and wild[1] < soft[1] - 0.2
    assert all(0 <= v <= 1 for pair in places.values() for v in pair)


@pytest.mark.parametrize(
    "values, says",
    [
        ({"gamma": 0.9}, "gamma = 0.9 is not allowed: a number from 1 to 3"),
        ({"order": -1}, "order = -1 is not allowed: an integer from 0 to 300"),
        ({"sigma2": -1.0}, "sigma2 = -1.0 is not allowed"),
        ({"delta": 0.0}, "delta = 0.0 is not allowed: a number from 0.001 to 0.999"),
        ({"delta": 1.0}, "delta = 1.0 is not allowed"),
        ({"rho": [0.0, 1.5]}, "rho = .* a list of numbers from 0 to 1"),
        ({"levels": 8}, "levels = 8 is not allowed: an odd number .* take 7 or 9"),
        ({"group": "C5"}, "group = 'C5' is not allowed: one of 'C4'"),
        ({"width": 1, "d": 100}, "d = 100 is more than the 85 parameters of width 1"),
        ({"bound_widths": [1], "bound_d": [200]}, "d = 200 is more than the 85"),
        ({"basis": "chebishev"}, "did you mean 'chebyshev'"),
        ({"alpha": 0.0}, "alpha = 0.0 is not allowed"),
    ],
)
def test_bad_parameters_are_one_line(values, says):
    with pytest.raises(ParameterError, match=says) as raised:
        study.Parameters(**values)
    assert "\n" not in str(raised.value)


def test_presets_and_defaults_are_those_of_the_specification():
    p = study.Parameters()
    assert (p.order, p.gamma, p.sigma2, p.basis) == (150, 1.1, 0.01, "chebyshev")
    assert (p.length_scale, p.noise, p.n, len(p.d_grid), p.label_noise) == (1, 0.01, 500, 14, 0.2)
    assert (p.alpha, p.d, p.levels, p.width, p.delta, p.group) == (10, 100, 9, 64, 0.05, "C4")
    quick, full = (study.Parameters.preset(n) for n in ("quick", "full"))
    assert quick.bound_widths == [16] and quick.bound_d == [50] and not quick.mlp_rho
    assert len(full.widths) == 16 and full.networks == 3 and full.parts == study.PARTS


def test_labels_that_are_corrupted_share_one_factor_and_its_curves():
    s = digits.split(120, 0)
    train, test, evidence = experiments.label_process(s, [0.0, 1.0], 0, 1.0, 0.01)
    alone = experiments.label_process(s, [1.0], 0, 1.0, 0.01)
    assert (train[1], test[1], evidence[1]) == pytest.approx((alone[0][0], alone[1][0],
                                                              alone[2][0]))  # fmt: skip
    assert evidence[0] > evidence[1] and test[0] > test[1]


def test_a_refit_is_the_fit_of_each_kind_alone():
    found = closed_forms.refit(20, 1.2, 0.01, "legendre", 15, 3)
    for kind in closed_forms.polynomials.KINDS:
        alone = closed_forms.polynomials.fit(found.x, found.y[kind], 20, 1.2, 0.01, "legendre")
        np.testing.assert_allclose(found.weights[kind], alone.weights, atol=1e-10)
        at = closed_forms.PLOT[np.abs(closed_forms.PLOT) <= closed_forms.INSIDE]
        truth = closed_forms.polynomials.structure(kind, at)
        low = closed_forms.polynomials.fit(found.x, found.y[kind], 10, 1.2, 0.01, "legendre")
        error = np.sqrt(((low.predict(at) - truth) ** 2).mean())
        place = closed_forms.EVIDENCE_ORDERS.index(10)
        assert found.evidence[kind][place] == pytest.approx(float(low.evidence))
        assert found.by_order[kind][place] == pytest.approx(error)
    scattered = closed_forms.refit(20, 1.2, 0.01, "legendre", 15, 3, scattered=True)
    assert np.ptp(np.diff(scattered.x)) > 0.01 and np.isnan(scattered.test["noise"])


def test_other_images_take_the_same_path(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 30)), np.arange(60) % 10
    s = digits.split(40, 0, 0.5, data=(x, y))
    assert s.train_x.shape == (40, 30) and (s.train_y != s.clean_y).any()
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        loaders.load_images("mnits")
    try:
        import torchvision  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="needs torchvision"):
            loaders.load_images("mnist", tmp_path)
    else:
        with pytest.raises(FileNotFoundError, match="download=True"):
            loaders.load_images("mnist", tmp_path)


@pytest.mark.slow
def test_true_labels_are_stored_once_for_both_tables():
    values = {**SMALL, "bound_widths": [4], "bound_rho": [0.0, 0.5]}
    made = study.run(study.Parameters(**values, parts=["compression", "corrupted"]), progress=False)
    assert made.corrupted.rows[0.0].messages[0] is made.compression[4, 20].messages[0]
    assert made.corrupted.bound()[0, 0] == made.compression[4, 20].of("kl")[0]
    only = {**values, "bound_rho": [0.0]}
    made = study.run(study.Parameters(**only, parts=["compression", "corrupted"]), progress=False)
    assert made.corrupted.rho.tolist() == [0.0] and made.corrupted.done


def test_experiments_are_shared_out_and_none_is_lost():
    seen = []
    made = work.run(study.steps(study.Parameters(**SMALL, parts=PARTS)), seen.append)
    assert made.complete and all(getattr(made, name) is not None for name in PARTS)
    assert not made.running and made.values and made.claims
    done = [step.done for step in seen]
    assert done == sorted(done) and done[-1] == 1.0


def test_results_do_not_depend_on_how_experiments_are_shared_out(monkeypatch, finished):
    monkeypatch.setattr(study, "LANES", 1)
    alone = study.run(study.Parameters(**SMALL, parts=PARTS), progress=False)
    assert alone.values == finished.values


def test_a_study_keeps_linear_algebra_to_one_thread_and_gives_it_back():
    from threadpoolctl import threadpool_info

    def threads():
        return {p["num_threads"] for p in threadpool_info() if p["internal_api"] == "openblas"}

    before, inside = threads(), []
    made = study.steps(study.Parameters(**SMALL, parts=["weak", "exact"]))
    work.run(made, lambda step: inside.append(threads()))
    assert {1} in inside[1:-1] and threads() == before
    with closed_forms.one_blas_thread():
        assert closed_forms.single(threads) == {1} == threads()
    assert threads() == before
