"""Pictures of the study: of results, of none, and drawings that follow a slider."""

import io
from xml.etree import ElementTree

import holoviews as hv
import numpy as np
import panel as pn
import pytest

from workbench.methods.certified_unlearning import (
    accounting,
    audit,
    comparison,
    curves,
    drawings,
    experiments,
    memory,
    study,
    tables,
    views,
)
from workbench.methods.certified_unlearning.certificates import GradientClipping
from workbench.steps import run
from workbench.theme import Html, set_defaults

set_defaults()
MU = float(accounting.mu_of(1.0, 1e-5))
GC = GradientClipping(0.03, 3, 0.001, 100)


@pytest.fixture(scope="module")
def finished(monkeypatch_module):
    """Every experiment at the smallest size."""
    monkeypatch_module.setattr(comparison, "TRAIN_STEPS", 60)
    p = study.Parameters(seeds=2, budget=[10, 12], audit_n=1000, mia_seeds=2, epsilons=[1.0, 10.0])
    made = study.UnlearningStudy(p)
    made.calculator = run(experiments.calculator_steps(p))
    made.audit = run(experiments.audit_steps(p))
    made.whitebox = run(memory.whitebox_steps(p, runs=30, train=60))
    made.accuracy = tiny_accuracy()
    made.membership = run(memory.membership_steps(p, 2, steps=(10, 20), train=60))
    made.survival = run(memory.survival_steps(p, 2, epsilons=(1.0, 1e4), train=60, budget=10))
    made.forget_size = experiments.forget_size(p)
    made.forget_size.accuracy[1] = np.array([0.5, 0.6])
    made.forget_size.gc_accuracy = np.array([0.7, 0.8])
    made.widths = {16: tiny_accuracy()}
    made.sweep = comparison.Sweep(
        np.array([1.0, 10.0]), 40, {k: np.full((2, 2), 0.5) for k in comparison.SWEPT}, {}
    )
    return made


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def tiny_accuracy():
    """Made up: three seeds, two budgets, every method; the twins equal their siblings."""
    rng = np.random.default_rng(0)
    found = comparison.Accuracy(np.array([20, 40]), 385, 1, np.array([0.9, 0.8, 0.9]))
    for key in comparison.METHODS:
        found.test[key] = rng.uniform(0.2, 0.4, (3, 2))
        found.excluded[key] = 0
        found.exact[key] = 0.0 if key in ("retrain", "gc_noinfo") else np.inf
    for key in ("gc", "mc"):
        found.test[key] = found.test["retrain"] + 0.2 + 0.01 * rng.random((3, 2))
        found.test[f"{key}_noinfo"] = found.test[key].copy()
        found.noisy[key], found.after[key], found.exact[key] = 7, np.full(3, 0.1), 1.0
        found.path[key] = (np.arange(5), rng.random((3, 5)))
    return found


NEEDS = [
    (tables.accountant_table, "calculator"), (tables.released_table, "calculator"),
    (views.calculator_charts, "calculator"), (tables.audit_table, "audit"),
    (views.audit_charts, "audit"), (tables.whitebox_table, "whitebox"),
    (views.whitebox_charts, "whitebox"), (views.accuracy_charts, "accuracy"),
    (views.path_view, "accuracy"), (views.forest_view, "accuracy"),
    (tables.accuracy_table, "accuracy"), (tables.widths_table, "widths"),
    (tables.membership_table, "membership"), (views.membership_chart, "membership"),
    (views.losses_view, "membership"), (views.survival_view, "survival"),
    (views.size_view, "forget_size"), (views.sweep_chart, "sweep"),
]  # fmt: skip


@pytest.mark.parametrize("view, name", NEEDS, ids=lambda v: getattr(v, "__name__", v))
def test_each_view_draws_results_and_says_so_when_there_are_none(finished, view, name):
    made = view(getattr(finished, name))
    if isinstance(made, Html):
        ElementTree.fromstring(f"<div>{made}</div>")
    else:
        hv.render(made)
    assert "has not run" in view(None) and "has not run" not in str(made)


def test_tabs_take_whole_and_empty_studies(finished):
    empty = study.UnlearningStudy(finished.parameters)
    for made in (finished, empty):
        for name, view in views.VIEWS.items():
            shown = view(made)
            assert isinstance(shown, pn.viewable.Viewable), name
            texts = [p.object for p in shown.select(pn.pane.HTML)] + [
                shown.object if isinstance(shown, pn.pane.HTML) else ""
            ]
            if name != "Claims":
                assert any("has not run" in t for t in texts) == (made is empty), name
    assert isinstance(views.monitor(empty), pn.Spacer)


WORDS = {"calculator": "zCDP", "audit": "attacker shows", "whitebox": "largest allowed",
         "accuracy": "Within one run", "membership": "original model", "survival": "Accuracy and",
         "forget_size": "multiplier z", "widths": "64-16-10"}  # fmt: skip


@pytest.mark.parametrize("name", views.MONITORED)
def test_the_monitor_shows_the_running_experiment(finished, name):
    partial = study.UnlearningStudy(finished.parameters, running=name)
    setattr(partial, name, getattr(finished, name))
    shown = views.monitor(partial)
    assert isinstance(shown, pn.pane.HTML) and WORDS[name] in shown.object


def test_tables_show_the_right_figure_beside_the_printed_one(finished):
    released = tables.released_table(finished.calculator)
    assert "6.559" in released and "as we read it" in released
    rows = tables.audit_table(finished.audit)
    assert "6.559" in rows and "1,000 runs a side" in rows
    accountants = tables.accountant_table(finished.calculator)
    assert "<b>6.573</b>" in accountants and "5.27 times" in accountants
    assert "For 125 examples: z = 106" in tables.size_table(finished.forget_size)


def test_the_accuracy_table_says_chance_after_the_noisy_phase_and_what_was_excluded(finished):
    text = tables.accuracy_table(finished.accuracy)
    assert "no guarantee" in text and "never saw them" in text
    row = next(r for r in ElementTree.fromstring(text).iter("tr") if r[0].text == "model clipping")
    assert [c.text for c in row][3:] == ["7", "0.100", "1", "0"]


def test_the_papers_figures_stand_in_their_columns():
    rows = [[c.text for c in r] for r in ElementTree.fromstring(tables.paper_table()).iter("tr")]
    assert rows[1] == ["MNIST, epoch 1", "0.677", "0.573", "0.702", "0.700", "–"]
    assert rows[-1] == ["CIFAR-100, transfer, epoch 50", "0.619", "–", "0.630", "–", "0.166"]


# Drawings ----------------------------------------------------------------------------------------


def svg(text):
    """The pictures in a piece of HTML; raises when the text is not well formed."""
    root = ElementTree.fromstring(f"<div>{text}</div>")
    return [e for e in root.iter("svg") if e.get("role") == "img"]


def test_the_promised_curve_is_that_of_epsilon_and_delta():
    a = np.array([0.0, 0.1, 0.5, 1.0])
    np.testing.assert_allclose(drawings.promised(0.0, 0.0, a), 1 - a)
    assert drawings.promised(1.0, 1e-5, np.array([0.1]))[0] == pytest.approx(1 - 1e-5 - 0.1 * np.e)
    assert drawings.promised(1e6, 1e-5, a).max() == 1 - 1e-5, "no overflow"
    below = drawings.promised(1.0, 1e-5, a) <= accounting.tradeoff(MU, a) + 1e-12
    assert below.all(), "the exact curve of the noise lies above what epsilon and delta allow"


def test_clouds_and_errors_are_drawn_with_threshold_and_boxes():
    plus, minus = audit.scalar_adversary(GC, float(GC.sigma(MU)), None, 2000, 0)
    text = drawings.clouds(plus, minus, 0.1)
    assert len(svg(text)) == 1 and "attacker's threshold" in ElementTree.fromstring(
        f"<div>{text}</div>"
    ).find(".//svg").get("aria-label")
    points = audit.operating_points(plus, minus)
    with_points = drawings.tradeoff(1.0, 1e-5, MU, points)
    assert svg(with_points) and len(with_points) > len(drawings.tradeoff(1.0, 1e-5, MU))
    x, y = drawings.steps_of(plus, np.linspace(-1, 1, 21))
    assert np.trapezoid(y, x) == pytest.approx(np.mean(np.abs(plus) <= 1), abs=1e-9)


@pytest.mark.parametrize(
    ("accountant", "bound", "says"),
    [("released", 2.4, "the printed figure is refuted"), ("exact", 0.3, "no contradiction")],
)
def test_the_verdict_compares_the_printed_figure_with_what_was_shown(accountant, bound, says):
    mu = float(accounting.mu_of(1.0, 1e-5, accountant))
    text = drawings.verdict(1.0, float(accounting.epsilon_of(mu, 1e-5)), bound, accountant, 9999)
    assert says in text and "9,999" in text
    assert ("6.559" in text) == (accountant == "released")


def test_the_landscape_marks_the_automatic_steps_and_compares_with_output_perturbation():
    text = drawings.landscape(0.03, 3, 0.001, 100, 7, mu=MU, delta=1e-5, op=0.01)
    (picture,) = svg(text)
    assert len(list(picture.iter("image"))) == 1 and "automatic T" in text
    assert "above: less than output perturbation of radius 0.01" in text
    spent = drawings.landscape(0.03, 3, 0.001, 100, 7, mu=MU, delta=1e-5, op=0.01, sigma=0.1)
    assert "ε of noise σ = 0.1" in spent and "output perturbation" not in spent
    bare = drawings.landscape(0.03, 0, 0.001, 100, 7, mu=MU, delta=1e-5, op=0.01)
    assert "automatic T" not in bare, "with C1 = 0 no number of steps is automatic"


def test_places_on_the_lambda_axis_and_back():
    for share in (0.0, 0.3, 1.0):
        lam = drawings.lam_at(share, 0.001)
        assert drawings.share_of(lam, 0.001) == pytest.approx(share, abs=2e-3)
        assert lam * 0.001 < 1
    assert drawings.share_of(0.0, 0.001) == 0.0


def test_the_words_of_a_certificate_are_its_numbers():
    text = drawings.certificate_words(GC, 7, MU, 0.01)
    for figure in ("0.06", "0.1111", "<b>0.2238</b>", "0.07461, less", "T = 7 steps (7 is"):
        assert figure in text
    explicit = drawings.certificate_words(GradientClipping(0.03, 0, 0.001, 0), 5, MU, 0.01)
    assert "automatic" not in explicit and "λμ" not in explicit


def test_shifts_end_at_nothing_left_to_hide():
    text = drawings.shift_chart(GC, 7)
    assert "still to be hidden: z" in text and svg(text)
    assert len(drawings.shift_chart(GC, 700)) < 60_000


def test_the_cascade_says_where_it_ends_and_the_local_epsilon_of_each_step():
    text = drawings.cascade(0.1, 0.2, 1.0, 1e-5)
    titles = [e.text for e in svg(text)[0].iter("title") if e.text]
    assert any("step 1: δ = 0.1269, local ε of the step 1" in t for t in titles)
    assert "δ = 1e-05: T = 3" in text and "weak bound" in text
    assert "not within 40 steps" in drawings.cascade(5.0, 1.0, 1.0, 1e-5)
    assert text.count("C2/σ = 0.5") == drawings.cascade(0.2, 0.4, 1.0, 1e-5).count("C2/σ = 0.5")


def test_accountants_are_ordered_and_the_present_noise_is_marked():
    text = drawings.accountants(1.0, 1e-5)
    assert svg(text) and all(title in text for title, *_ in drawings.ACCOUNTANTS.values())


def test_what_survives_is_the_bound_and_a_second_chart_of_measurements():
    assert len(svg(drawings.survival_bound(385, 1.0, 1e-5))) == 1
    found = (np.array([1.0, 1e4]), np.array([0.8, 0.9]), np.array([0.5, 0.6]))
    text = drawings.survival_bound(385, 1.0, 1e-5, found)
    assert len(svg(text)) == 2 and "d = 385" in text


# Curves ------------------------------------------------------------------------------------------


def test_twins_come_and_go_and_methods_are_chosen():
    found = tiny_accuracy()
    keys = curves.shown_methods(found.test, twins=False)
    assert "gc" in keys and "gc_noinfo" not in keys
    assert curves.shown_methods(found.test, True, ["gc"]) == ["gc", "gc_noinfo"]
    text = curves.accuracy_chart(found.budget, found.test, 7, twins=True)
    assert "gradient clipping from 0" in text and "noisy phase" in text and svg(text)
    assert "from 0" not in curves.accuracy_chart(found.budget, found.test, 7)


def test_methods_that_start_from_the_old_model_are_drawn_from_its_accuracy():
    curve = np.array([0, 7]), np.full((2, 2), 0.1)
    path = dict.fromkeys(("gc", "retrain", "gc_noinfo"), curve)
    starts = {}
    for original in (np.nan, 0.9):
        (picture,) = svg(curves.path_chart(path, {"gc": 7}, True, None, original))
        for line in picture.iter("path"):
            if (title := line.find("title")) is not None:
                starts[title.text, original] = line.get("d")
    assert starts["gradient clipping", 0.9] != starts["gradient clipping", np.nan]
    for same in ("gradient clipping from 0", "retrain, standard start"):
        assert starts[same, 0.9] == starts[same, np.nan]


def test_other_deltas_and_epsilons_move_the_printed_curve_and_the_mark(finished):
    one, other = (views.survival_view(finished.survival, e, 1e-5) for e in (1.0, 10.0))
    assert one != other
    charts = [hv.render(views.audit_charts(finished.audit, d)) for d in (1e-5, 0.4)]
    assert len(charts) == 2


def test_mean_and_error_leave_out_what_is_not_finite():
    mean, error = curves.mean_and_error(np.array([[1.0, np.nan], [3.0, np.nan]]))
    assert mean[0] == 2 and error[0] == 1
    assert np.isnan(mean[1]) and np.isnan(error[1])


def test_paired_differences_have_an_interval_and_count_the_seeds_won():
    assert curves.paired([2.0, 3.0, np.nan], [1.0, 1.0, 0.0]) == pytest.approx(
        (1.5, 1.96 * 0.5, 2, 2)
    )
    text = curves.forest(tiny_accuracy().test, 1, 40)
    (picture,) = svg(text)
    words = [e.text for e in picture.iter("text")]
    assert "gradient clipping − retrain, standard start" in words and "3 of 3" in words
    assert "gradient clipping − gradient clipping from 0 +0.000 ± 0.000" in picture.get(
        "aria-label"
    )
    assert "No pair" in curves.forest({"gc": np.zeros((2, 2))}, 0, 20)


def test_losses_of_one_user_and_of_all(finished):
    found = finished.membership
    shown = curves.areas(found)
    assert set(shown) == set(found.losses) and all(low <= a <= high for a, low, high in
                                                   shown.values())  # fmt: skip
    text = curves.loss_histograms(found.losses, shown, 3)
    assert len(svg(text)) == len(found.losses) and "chosen" in text
    user = curves.user_chart(found.images[3], int(found.true[3]), int(found.given[3]),
                             found.path, 3)  # fmt: skip
    assert f"trained with label {found.given[3]} (it is a {found.true[3]})" in user
    ElementTree.fromstring(f"<div>{user}</div>")


def test_the_clock_runs_down_to_what_was_asked():
    text = curves.clock_chart([40.0, 6.0, 1.0], 1.0, 7)
    assert "3 of 7 steps, asked ε = 1" in text
    titles = [e.text for e in svg(text)[0].iter("title") if e.text]
    assert "after step 2: ε = 6" in titles
    assert svg(curves.clock_chart([], 1.0, 7)) and svg(curves.run_chart([0, 1], [0.9, 0.1], 7, 160))


def test_the_thumbnail_is_a_small_png():
    from PIL import Image

    image = Image.open(io.BytesIO(views.thumbnail()))
    assert image.size == (800, 400) and image.format == "PNG"
