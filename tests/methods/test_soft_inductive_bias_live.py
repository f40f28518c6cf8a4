"""The live bench: closed forms follow sliders, tabs compute when opened, training is a job."""

import asyncio

import numpy as np
import pytest

from workbench.methods.soft_inductive_bias import digits, live, networks, processes, study, views


@pytest.fixture
def bench():
    made = live.Bench(study.Parameters(n=60, width=4, d=20))
    made.panel()
    return made


def test_the_first_tab_is_drawn_and_others_wait(bench):
    assert bench.pictures["fits"].html.count("<figure") == 3
    assert "vacuous" in bench.pictures["calculator"].html
    assert bench.pictures["labels"].html == "" and not bench.features and not bench.choices


def test_sliders_of_the_polynomial_set_the_parameters_and_redraw(bench):
    before = bench.pictures["fits"].html
    order, gamma, sigma2, n = bench.poly.values
    assert (order, n) == (150, 30) and gamma == pytest.approx(-1)
    bench.poly.values = [10, -3.0, sigma2, 12]
    p = bench.parameters
    assert (p.order, p.gamma, p.n_points) == (10, 1.0, 12)
    assert bench.pictures["fits"].html != before
    assert len(bench.fit.x) == 12


def test_the_form_moves_the_sliders(bench):
    bench.parameters.param.update(gamma=1.01, order=77)
    assert bench.poly.values[0] == 77 and bench.poly.values[1] == pytest.approx(-2)
    bench.parameters.delta = 0.01
    assert bench.calculator.values[3] == pytest.approx(-2)


def test_prior_samples_come_and_go_and_x_may_be_random(bench):
    bench.toggle_samples()
    assert "prior samples" in bench.pictures["fits"].html
    bench.toggle_samples()
    assert "prior samples" not in bench.pictures["fits"].html
    bench.scattered.value = True
    assert np.ptp(np.diff(bench.fit.x)) > 0.01


def test_random_labels_are_solved_for_any_share_and_neighbors_follow_the_click(bench, monkeypatch):
    monkeypatch.setattr(live.experiments, "LABEL_DIGITS", 200)
    bench.open("Random labels")
    s = bench.labels.split
    assert len(s.train_x) == 200
    few = len(bench.mistakes[0])
    bench.rho.values = [0.9]
    assert len(bench.mistakes[0]) > few
    before = bench.pictures["neighbors"].html
    bench.wrong.at = 0.99
    assert bench.pictures["neighbors"].html != before and "(is " in bench.pictures["neighbors"].html
    kernel = processes.AMPLITUDE * processes.rbf(s.train_x, s.train_x)
    labels = digits.corrupted(s.clean_y, 0.9, 0)
    gp = processes.regression(kernel, digits.centered_one_hot(labels), 0.01)
    guess = gp.predict(bench.labels.cross).argmax(1)
    np.testing.assert_array_equal(np.flatnonzero(guess != s.test_y), bench.mistakes[0])
    old = bench.labels
    bench.parameters.noise = 0.1
    assert bench.labels is not old


def test_a_little_ridge_removes_the_peak_from_the_factors_at_hand(bench, monkeypatch):
    monkeypatch.setattr(live.factored, "LIVE_D", (20, 60, 200))
    bench.open("Double descent")
    assert [f.d for f in bench.features] == [20, 60, 200]
    factors = bench.features
    plain = bench.pictures["descent"].html
    bench.ridge.values = [-1.5, 0.2, -3.0]
    assert bench.parameters.ridge == pytest.approx(10**-1.5)
    assert bench.features is factors and bench.pictures["descent"].html != plain
    assert "test without ridge" in bench.pictures["descent"].html
    bench.ridge.values = [-7.0, 0.2, -3.0]
    assert bench.parameters.ridge == 0.0
    bench.ridge.values = [-7.0, 0.6, -3.0]
    assert bench.parameters.label_noise == 0.6
    before = bench.pictures["descent"].html
    bench.ridge.values = [-7.0, 0.6, -6.0]
    assert bench.pictures["descent"].html != before and bench.parameters.label_noise == 0.6


def test_symmetry_is_chosen_by_evidence_and_r_is_dragged(bench, monkeypatch):
    monkeypatch.setattr(live.factored, "SYMMETRY_SIZE", 40)
    bench.open("Symmetry")
    assert set(bench.choices) == set(digits.TASKS)
    bench.mixture.at = 1.0
    assert bench.parameters.r == 1.0 and "r = 1:" in bench.mixture.html
    bench.task.value = "rotated"
    assert "task rotated" in bench.mixture.html
    old = bench.choices
    bench.parameters.group = "flip"
    assert bench.choices is not old and "group flip" in bench.pictures["bars"].html


def test_the_calculator_follows_its_sliders(bench):
    bench.calculator.values = [3.0, 100 / np.log(2), 0.1, np.log10(0.05)]
    assert "0.2857" in bench.pictures["calculator"].html


def test_a_stored_network_joins_the_runs_and_the_calculator(bench):
    bench.store()
    ((name, error, bits),) = bench.runs
    assert name == "width 4, d = 20" and bench.calculator.values[1] == bits
    assert "Where the bits go" in bench.pictures["stored"].html
    assert "free, then quantized" in bench.pictures["storing"].html
    assert 0 < error < 1 and "width 4" in bench.pictures["calculator"].html


def test_a_second_width_on_the_same_data_costs_a_bit(bench):
    bench.store()
    assert "choices" not in bench.pictures["stored"].html
    bench.parameters.width = 5
    bench.store()
    assert "choices" in bench.pictures["stored"].html and bench.tried == {(0, 0.0): {4, 5}}


def test_a_width_is_trained_and_joins_the_chart(bench):
    bench.hidden.values = [3.0]
    bench.run_width()
    assert set(bench.widths) == {3} and "Effective dimension" in bench.pictures["widths"].html
    assert "3 hidden units" in bench.pictures["training"].html


def test_points_of_other_labels_are_another_curve(bench):
    bench.hidden.values = [3.0]
    bench.run_width()
    bench.parameters.label_noise = 0.4
    assert not bench.widths and not bench.pictures["widths"].html


@pytest.mark.slow
def test_the_convex_contrast_has_a_line_that_does_not_rise(bench):
    bench.parameters.width = 0
    bench.connect()
    assert "Softmax regression: largest loss on the line" in bench.pictures["path"].html


def test_your_own_polynomial_is_on_the_axes(bench):
    bench.parameters.gamma = 1.4
    bench.open("Two axes")
    assert "yours: order 150, γ = 1.4" in bench.pictures["axes"].html


def test_paths_are_drawn_with_their_plane(bench, monkeypatch):
    monkeypatch.setattr(
        live, "connected_steps",
        lambda *a, **more: connected(*a, n=40, ends=(20, 1e-2), steps=10, **more),
    )  # fmt: skip
    bench.connect()
    assert "Loss plane" in bench.pictures["path"].html


connected = live.connected_steps


def test_training_streams_and_stops(bench, monkeypatch):
    monkeypatch.setattr(networks, "SHARE_S", 0.0)

    async def scenario():
        bench.run_width()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if "hidden units: training loss" in bench.pictures["training"].html:
                break
        assert not bench.stop_button.disabled
        bench.jobs.stop()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if not bench.jobs.busy:
                break
        assert "Stopped" in bench.status.object and not bench.widths

    asyncio.run(scenario())


def test_an_error_is_one_line_on_the_page(bench):
    bench.parameters.param.update(width=1, d=100)
    bench.store()
    assert "d = 100; allowed are at most 85" in bench.status.object


def test_each_visitor_has_a_bench_of_their_own_and_a_still_for_reports():
    p = study.Parameters()
    one, two = live.live(p), live.live(study.Parameters())
    assert one.bench is not two.bench
    made = live.still(p)
    assert made.count("<figure") == 7 and "Bounds: training error" in made
    explorer = views.explorer(p)
    assert "Still" not in repr(explorer) and "Settings" in explorer.still_html()
