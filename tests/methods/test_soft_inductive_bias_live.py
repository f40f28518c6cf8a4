"""The live bench: closed forms follow sliders, tabs compute when opened, training is a job."""

import asyncio

import numpy as np
import pytest

from workbench.methods.soft_inductive_bias import (
    bounds,
    closed_forms,
    digits,
    dimension,
    double_descent,
    experiments,
    factored,
    live,
    networks,
    processes,
    representation,
    study,
    tabs_trained,
    views,
)
from workbench.methods.soft_inductive_bias.compression import decode
from workbench.steps import run


@pytest.fixture
def bench():
    made = live.Bench(study.Parameters(n=60, width=4, d=20))
    made.panel()
    return made


def test_the_first_tab_is_drawn_and_others_wait(bench):
    assert bench["Polynomials"].fits.html.count("<figure") == 3
    assert "vacuous" in bench["Bounds"].picture.html
    assert bench["Random labels"].labels is None and not bench["Double descent"].features
    assert not bench["Symmetry"].choices and not bench["Sample size"].fits.html


def test_sliders_of_the_polynomial_set_the_parameters_and_redraw(bench):
    tab = bench["Polynomials"]
    before = tab.fits.html
    order, gamma, sigma2, n = tab.sliders.values
    assert (order, n) == (150, 30) and gamma == pytest.approx(-1)
    tab.sliders.values = [10, -3.0, sigma2, 12]
    p = bench.parameters
    assert (p.order, p.gamma, p.n_points) == (10, 1.0, 12)
    assert tab.fits.html != before and len(tab.fit.x) == 12


def test_the_form_moves_the_sliders(bench):
    bench.parameters.param.update(gamma=1.01, order=77)
    assert bench["Polynomials"].sliders.values[0] == 77
    assert bench["Polynomials"].sliders.values[1] == pytest.approx(-2)
    bench.parameters.param.update(delta=0.01, noise=0.1, alpha=1.0)
    assert bench["Bounds"].calculator.values[3] == pytest.approx(-2)
    assert bench["Random labels"].sliders.values[1] == pytest.approx(-1)
    assert bench["Widths"].alpha.values[0] == pytest.approx(0)


def test_prior_samples_come_and_go_and_x_may_be_random(bench):
    tab = bench["Polynomials"]
    tab.toggle_samples()
    assert "prior samples" in tab.fits.html
    tab.toggle_samples()
    assert "prior samples" not in tab.fits.html
    tab.scattered.value = tab.scattered.options
    assert np.ptp(np.diff(tab.fit.x)) > 0.01


def test_sample_size_noise_and_truth_are_dragged(bench):
    bench.open("Sample size")
    tab = bench["Sample size"]
    assert "Fits to 16 examples" in tab.fits.html and "chosen: γ" in tab.fits.html
    tab.sliders.values = [40.0, 0.5]
    assert "Fits to 40 examples" in tab.fits.html
    before = tab.fits.html
    tab.truth.value = "quadratic"
    assert tab.fits.html != before


def test_models_of_a_sample_are_those_of_the_study():
    made = factored.sample("order 15", 32, 0.2, 3, "chebyshev")
    assert len(made.x) == 32 and made.evidence.shape == (5, 3)
    guess, evidence = closed_forms.best_by_evidence(
        made.x, made.y, closed_forms.PLOT, 15, "chebyshev"
    )
    np.testing.assert_allclose(made.fits["soft 15"], guess)
    np.testing.assert_allclose(made.evidence.ravel(), evidence)
    error = np.sqrt(((guess - made.truth) ** 2).mean())
    assert made.errors["soft 15"][factored.SAMPLE_SIZES.index(32)] == pytest.approx(error)
    k = int(evidence.argmax())
    gamma, amplitude = closed_forms.CHOICES[k]
    alone = closed_forms.polynomials.fit(made.x, made.y, 15, gamma, 0.04, amplitude=amplitude)
    assert float(alone.evidence) == pytest.approx(evidence[k])


def test_random_labels_are_solved_for_any_share_and_noise_and_neighbors_follow_the_click(bench):
    tab = bench["Random labels"]
    tab.size.values = [200.0]
    s = tab.labels.split
    assert len(s.train_x) == 200
    few = len(tab.mistakes[0])
    tab.sliders.values = [0.9, -2.0]
    assert len(tab.mistakes[0]) > few
    before = tab.neighbors.html
    tab.wrong.at = 0.99
    assert tab.neighbors.html != before and "(is " in tab.neighbors.html
    old = tab.labels
    for noise in (0.01, 0.1):
        tab.sliders.values = [0.9, np.log10(noise)]
        assert bench.parameters.noise == pytest.approx(noise) and tab.labels is old
        kernel = processes.AMPLITUDE * processes.rbf(s.train_x, s.train_x)
        labels = digits.corrupted(s.clean_y, 0.9, 0)
        gp = processes.regression(kernel, digits.centered_one_hot(labels), noise)
        guess = gp.predict(tab.labels.cross).argmax(1)
        np.testing.assert_array_equal(np.flatnonzero(guess != s.test_y), tab.mistakes[0])
    bench.parameters.length_scale = 2.0
    assert tab.labels is not old


def test_curves_of_the_page_are_those_of_the_study():
    from workbench.methods.soft_inductive_bias.experiments import label_process

    made = factored.Labels(3, 1.3, 150)
    for noise in (0.01, 0.3):
        wanted = label_process(made.split, factored.RHO, 3, 1.3, noise)
        for own, peer in zip(made.curves(noise), wanted, strict=True):
            np.testing.assert_allclose(own, peer, atol=1e-8)


def test_least_squares_follow_examples_signal_and_ridge(bench):
    bench.open("Least squares")
    tab = bench["Least squares"]
    assert "d = n = 80" in tab.weak_picture.html and "d = n = 50" in tab.exact_picture.html
    seen = {tab.weak_picture.html}
    for values in ([40.0, 1.0, -7.0, -3.0], [40.0, 0.5, -7.0, -3.0], [40.0, 0.5, 0.0, -3.0],
                   [40.0, 0.5, 0.0, -1.0]):  # fmt: skip
        tab.sliders.values = values
        seen.add(tab.weak_picture.html)
    assert len(seen) == 5 and "d = n = 40" in tab.weak_picture.html
    same = tab.isotropic
    tab.exact_sliders.values = [50.0, 1.0, 2.0]
    assert tab.isotropic is same
    tab.exact_sliders.values = [20.0, 1.0, 2.0]
    assert tab.isotropic.n == 20 and "d = n = 20" in tab.exact_picture.html


def test_weak_features_of_the_page_are_least_squares_and_ridge():
    bench = factored.Weak(0)
    for ridge in (0.0, 0.3):
        made = bench.errors(30, 0.7, ridge, 0.001)
        assert 30 in made.d.tolist()
        for d in (10, 110):
            x = 0.7 * bench.y[:30, None] + bench._noise[:30, :d]
            singular = np.linalg.svd(x, full_matrices=False)
            w = double_descent.minimum_norm(singular, bench.y[:30, None], ridge)[:, 0]
            guess = (0.7 * bench.test_y[:, None] + bench._test_noise[:, :d]) @ w
            wanted = np.linalg.norm(guess - bench.test_y) / np.linalg.norm(bench.test_y)
            assert made.test[made.d.tolist().index(d)] == pytest.approx(wanted, rel=1e-6)
    assert made.test[made.d.tolist().index(30)] < bench.errors(30, 0.7, 0.0, 0.001).test.max()


def test_a_simulated_isotropic_design_is_the_closed_form():
    made = factored.Isotropic(20, 0, draws=400)
    error = 4 * made.bias + 0.25 * made.variance
    exact = np.array([double_descent.exact_error(20, int(d), 0.5, 2.0) for d in made.d])
    assert (abs(error.mean(1) - exact) < 4 * error.std(1) / 20).all()
    d, bias, variance = made.terms()
    at = {int(v): 4 * b + 0.25 * s for v, b, s in zip(d, bias, variance, strict=True)}
    assert at[40] == pytest.approx(double_descent.exact_error(20, 40, 0.5, 2.0))
    assert np.isnan(at[20])


def test_a_little_ridge_removes_the_peak_from_the_factors_at_hand(bench, monkeypatch):
    monkeypatch.setattr(factored, "LIVE_D", (20, 60, 200))
    bench.open("Double descent")
    tab = bench["Double descent"]
    assert [f.d for f in tab.features] == [20, 60, 200]
    factors, plain = tab.features, tab.picture.html
    tab.sliders.values = [-1.5, 0.2, -3.0]
    assert bench.parameters.ridge == pytest.approx(10**-1.5)
    assert tab.features is factors and tab.picture.html != plain
    assert "test without ridge" in tab.picture.html
    tab.sliders.values = [-7.0, 0.2, -3.0]
    assert bench.parameters.ridge == 0.0
    tab.sliders.values = [-7.0, 0.6, -3.0]
    assert bench.parameters.label_noise == 0.6
    before = tab.picture.html
    tab.sliders.values = [-7.0, 0.6, -6.0]
    assert tab.picture.html != before and bench.parameters.label_noise == 0.6


def test_symmetry_is_chosen_by_evidence_and_r_and_n_are_dragged(bench):
    tab = bench["Symmetry"]
    tab.size.values = [40.0]
    assert set(tab.choices) == set(digits.TASKS) and "40 digits" in tab.bars.html
    tab.mixture.at = 1.0
    assert bench.parameters.r == 1.0 and "r = 1:" in tab.mixture.html
    tab.task.value = "rotated"
    assert "task rotated" in tab.mixture.html
    old = tab.choices
    bench.parameters.group = "flip"
    assert tab.choices is not old and "group flip" in tab.bars.html


def test_the_calculator_follows_its_sliders_to_their_ends(bench):
    tab = bench["Bounds"]
    tab.calculator.values = [3.0, 100 / np.log(2), 0.1, np.log10(0.05)]
    assert "0.2857" in tab.picture.html
    for ends in (tab.calculator.lows, tab.calculator.highs):
        tab.calculator.values = [float(v) for v in ends]
    assert "100.0" not in bench.status.object


def test_a_stored_network_joins_the_runs_and_the_calculator(bench):
    tab = bench["Bounds"]
    tab.store()
    ((name, error, bits),) = tab.runs
    assert name == "width 4, d = 20" and tab.calculator.values[1] == bits
    assert "Where the bits go" in tab.stored.html
    assert "free, then quantized" in tab.training.html
    assert 0 < error < 1 and "width 4" in tab.picture.html


def test_another_width_or_seed_is_paid_for_as_the_page_says(bench):
    tab = bench["Bounds"]
    assert "width 4 costs 1 bit and seed 0 costs 1 bit;" in tab.price.html
    bench.parameters.param.update(width=6, seed=3)
    # Elias' gamma codes of 2 * 2 and 2 * 3.
    assert "width 6 costs 5 bits and seed 3 costs 5 bits;" in tab.price.html
    seen = []
    keep = tab._take
    tab._take = lambda found, rho, seed: (seen.append(found), keep(found, rho, seed))
    tab.store()
    (found,) = [made for made in seen if made.bounds]
    assert found.parts[0]["choices"] == 5
    assert found.bits[0] == len(found.messages[0]) + 5
    assert decode(found.messages[0].bits).seed_offset == 3
    complexity = bounds.complexity_of_code(float(found.bits[0]))
    assert found.bounds[0] == bounds.occam(float(found.train[0]), found.n, complexity, 0.05)
    assert tab.runs[0][0] == "width 6, d = 20, seed 3"


def test_codes_of_all_widths_and_seeds_are_a_prior():
    from workbench.methods.soft_inductive_bias.compression import offset_code

    assert sum(2.0 ** -len(offset_code(k)) for k in range(-3000, 3000)) <= 1


def test_a_width_is_trained_and_alpha_is_dragged_without_training(bench):
    tab = bench["Widths"]
    tab.hidden.values = [3.0]
    tab.run()
    assert 3 in tab.found and "Effective dimension" in tab.picture.html
    assert "3 hidden units" in tab.training.html
    before = tab.picture.html
    tab.alpha.values = [3.0]
    assert bench.parameters.alpha == pytest.approx(1000) and tab.picture.html != before
    assert 3 in tab.found


def test_points_of_other_labels_are_another_curve(bench):
    tab = bench["Widths"]
    tab.hidden.values = [3.0]
    tab.run()
    bench.parameters.label_noise = 0.4
    assert not tab.found and not tab.picture.html
    bench.parameters.label_noise = 0.2
    assert set(tab.found) == set(study.Parameters().widths)


@pytest.mark.slow
def test_the_convex_contrast_has_a_line_that_does_not_rise(bench):
    bench.parameters.width = 0
    bench["Paths"].connect()
    assert "Softmax regression: largest loss on the line" in bench["Paths"].picture.html


def test_your_own_polynomial_moves_on_the_axes_while_they_are_shown(bench):
    tab = bench["Two axes"]
    bench.parameters.gamma = 1.3
    assert not tab.picture.html
    bench.open("Two axes")
    assert "yours: order 150, γ = 1.3" in tab.picture.html
    bench.parameters.gamma = 1.4
    assert "yours: order 150, γ = 1.4" in tab.picture.html
    bench.open("Polynomials")
    bench.parameters.gamma = 1.5
    assert "yours: order 150, γ = 1.4" in tab.picture.html


def test_paths_are_drawn_with_their_plane_and_t_is_dragged(bench, monkeypatch):
    monkeypatch.setattr(
        tabs_trained, "connected_steps",
        lambda *a, **more: representation.connected_steps(*a, n=40, ends=(20, 1e-2), steps=10,
                                                          **more),
    )  # fmt: skip
    tab = bench["Paths"]
    tab.redraw()
    tab.connect()
    assert "Loss plane" in tab.picture.html and "At t = 0.5" in tab.picture.html
    tab.place.values = [0.25]
    i = 10
    assert tab.found.t[i] == pytest.approx(0.25)
    assert f"At t = 0.25: on the line a loss of {tab.found.line[0, i]:.3g}" in tab.picture.html


def test_the_kernel_of_one_direction_is_dragged_and_a_network_turns(bench, monkeypatch):
    monkeypatch.setattr(networks, "SHARE_S", 0.0)
    tab = bench["Features"]
    bench.open("Features")
    before = tab.picture.html
    tab.sliders.values = [60.0, 2.0, -1.0]
    assert tab.picture.html != before and "n = 60" in tab.picture.html
    tab.train()
    assert list(tab.errors) == [60] and "network, 60 examples" in tab.picture.html
    assert len(tab.learner.curves) > 100 and "Alignment" in tab.training.html
    bench.parameters.seed = 1
    assert not tab.errors and tab.learner is None


def test_the_kernel_of_the_page_is_kernel_ridge_regression():
    made = factored.Direction(2, 100)
    x, y, tx, ty, u = representation.single_index(100, 2)
    curve, _ = factored.Direction(2).kernel(100, 3.0, 0.01)
    kernel = processes.rbf(x, x, 3.0) + 0.01 * np.eye(100)
    dual = np.linalg.solve(kernel, y - y.mean())
    wanted = y.mean() + processes.rbf(factored.ALONG[:, None] * u, x, 3.0) @ dual
    np.testing.assert_allclose(curve, wanted, atol=1e-8)
    np.testing.assert_allclose(made.truth, np.sin(2 * factored.ALONG) + factored.ALONG / 2)
    _, errors = factored.Direction(2).kernel(100, 3.0, 0.01)
    guess = y.mean() + processes.rbf(tx, x, 3.0) @ dual
    error = ((guess - ty) ** 2).mean() / ty.var()
    assert errors[factored.INDEX_SIZES.index(100)] == pytest.approx(error)


def test_training_streams_and_stops(bench, monkeypatch):
    monkeypatch.setattr(networks, "SHARE_S", 0.0)
    tab = bench["Widths"]
    before = dict(tab.found)

    async def scenario():
        tab.run()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if "hidden units: training loss" in tab.training.html:
                break
        assert not bench.stop_button.disabled
        bench.stop()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if not bench.training.busy:
                break
        assert "Stopped" in bench.status.object and 12 in tab.found and before == tab.found

    asyncio.run(scenario())


def test_an_error_is_one_line_on_the_page(bench):
    bench.parameters.param.update(width=1, d=100)
    bench["Bounds"].store()
    assert "d = 100; allowed are at most 85" in bench.status.object


def test_each_visitor_has_a_bench_of_their_own_and_a_still_for_reports():
    p = study.Parameters()
    one, two = live.live(p), live.live(study.Parameters())
    assert one.bench is not two.bench
    made = live.still(p)
    assert made.count("<figure") == 7 and "Bounds: training error" in made
    explorer = views.explorer(p)
    assert "Still" not in repr(explorer) and "Settings" in explorer.still_html()


@pytest.mark.slow
def test_widths_that_were_trained_beforehand_are_those_of_the_study():
    cached = factored.cached_widths(0, 0.2)
    assert sorted(cached) == study.Parameters().widths and not factored.cached_widths(1, 0.2)
    made = run(experiments.width_steps([2, 4], [0], 0.2, 10.0))
    for i, h in enumerate((2, 4)):
        loss, values, error = cached[h]
        assert loss == pytest.approx(made.test[0, i], rel=0.02)
        assert error == pytest.approx(made.train_error[0, i], abs=0.02)
        own = dimension.effective_dimension(values, 10.0)
        assert own == pytest.approx(made.dimension[0, i], rel=0.05)
