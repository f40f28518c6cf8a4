"""Pictures of RisingAttacK: pure functions of results that draw, with labels and units."""

import re
from dataclasses import fields, replace

import holoviews as hv
import numpy as np
import panel as pn
import pytest
import torch
from bokeh.models import Axis, LinearColorMapper

from workbench import catalog, notebooks, results, theme
from workbench import steps as work
from workbench.explorer import picture
from workbench.methods.rising_attack import (
    ablations,
    baselines,
    experiments,
    study,
    subspace,
    trials,
    views,
)
from workbench.methods.rising_attack.defense import Curve
from workbench.methods.rising_attack.sqp import RisingOptions
from workbench.widgets import images

theme.set_defaults()
pytestmark = pytest.mark.filterwarnings("ignore:margin = ")  # three iterations are few


@pytest.fixture(scope="module")
def finished():
    parameters = study.Parameters.preset(
        "quick", images=2, K_list=[1, 3], iters=3, quad_iters=12, cw_iters=12, ad_iters=12
    )
    found = study.run(parameters, progress=False)
    problem = found.bench.problem
    settings = {
        part: dict(list(inner.items())[:2])
        for part, inner in ablations.digits_ablation_settings().items()
    }
    found.ablations = work.run(ablations.ablation_steps(parameters, problem, 3, 3, settings))
    return found


# Success of two attacks at two widths, and of a deeper network, for K = 5 and 10.
WIDTHS = ablations.Widths(
    np.array([98, 784]), np.array([5, 10]), np.array([0.9, 0.93]),
    {"rising": np.array([[0.6, 0], [1, 0.9]]), "cw": np.array([[0.1, 0], [1, 0.2]])},
    {"rising": np.array([1, 0.75]), "cw": np.array([1, 0.0])}, 128, 0.95,
)  # fmt: skip


def labels(element):
    """Draw with bokeh (what does not draw raises here) and return the labels of all axes."""
    state = hv.renderer("bokeh").get_plot(element).state
    return {axis.axis_label for axis in state.select({"type": Axis})}


def test_every_chart_draws_and_its_axes_are_named(finished):
    bench = finished.bench
    success = "success rate [%]"
    eps = ablations.DEFENSE_EPS
    curve = Curve(0.9, np.clip(eps / 3, 0, 1), {"a": np.array([1.0])}, np.clip(1 - eps, 0, 1))
    charts = {
        "success": (views.success_chart(bench), success),
        "norms": (views.norm_chart(bench, "linf", paired=True), "mean ℓ∞ of the perturbation"),
        "merit": (views.merit_chart(bench), "figure of merit"),
        "time": (views.time_chart(bench), "time a network [s, one core]"),
        "K": (views.k_curve(bench, paired=True), "K"),
        "iterations": (views.iteration_charts(bench), "total violation [logits]"),
        "pixels": (views.iteration_charts(bench, 1), "free pixels"),
        "ablations": (views.ablation_panel(finished.ablations), "singular vectors kept"),
        "margins": (views.ablation_panel(finished.ablations), "margin [logits]"),
        "widths": (views.width_chart(WIDTHS), "longest order K"),
        "accuracy": (views.width_chart(WIDTHS), "accuracy [%]"),
        "nested": (views.nested_chart(finished.nested), "optimal ℓ2"),
        "defense": (views.defense_chart({1: {"smoothed": curve}}), "budget ε [ℓ2]"),
        "vectors": (views.first_step(bench), "coefficient z [l2]"),
        "spectrum": (views.first_step(bench, 1), "singular value [logits per l2]"),
    }
    for name, (chart, label) in charts.items():
        assert label in labels(chart), name


def test_the_first_step_is_that_of_the_options_given(finished):
    def values(**options):
        chart = views.first_step(finished.bench, options=RisingOptions(**options))
        return chart[0, 0].dimension_values(1)

    p = finished.parameters
    assert len(values()) == 9 and np.array_equal(values(), values(**p.options("rising")))
    assert len(values(rank=2)) == 2
    p.rank = 2
    try:
        tab = views.VIEWS["Singular vectors"](finished)
    finally:
        p.rank = 0
    assert "First 2 right singular vectors" in str(tab[0].object[1, 0].opts.get("plot").kwargs)


def test_the_plane_of_an_attack_is_that_of_its_options(finished):
    subject = trials.subject("digits")
    trial = trials.run_trial(subject, 0, [4, 5, 2], iters=4)
    assert views.attack_plane(subject.model, trial).get_root() is not None
    with pytest.raises(ValueError, match="a plane needs 2"):
        views.attack_plane(subject.model, trial, options=RisingOptions(rank=1))


def test_signed_images_have_the_one_palette_of_the_workbench(finished):
    figure = views.singular_vectors(subspace.linearize(
        finished.bench.problem.models[0], finished.bench.problem.x[0],
        torch.zeros_like(finished.bench.problem.x[0]), finished.bench.targets[3][0].tolist(),
        RisingOptions(),
    ))  # fmt: skip
    state = hv.renderer("bokeh").get_plot(figure).state
    maps = [m.palette for m in state.select({"type": LinearColorMapper}) if len(m.palette) > 9]
    assert maps and all(list(m) == images.colormap("diverging") for m in maps)


def test_norms_are_those_of_own_or_of_common_successes(finished):
    bench = finished.bench
    own = bench.all("quad", 1)
    assert np.array_equal(views.norms_of(bench, "quad", 1, "l2"), own.l2[own.success])
    both = own.success & bench.all("rising", 1).success
    assert np.array_equal(views.norms_of(bench, "quad", 1, "l1", paired=True), own.l1[both])


def test_tables_hold_every_method_and_say_who_fails(finished):
    table = views.bench_table(finished.bench)
    assert all(title in table for title in experiments.TITLES.values())
    assert "Digits: 2 images, 1 network;" in table
    rising = finished.bench.all("rising", 1)
    settings = {"lr": 0.02, "coef": 5.0, "iters": 60, "margin": 0.05, "seed": 0}
    tuned = baselines.Tuned(settings, finished.bench.all("quad", 1), [])
    table = views.tuned_table(experiments.TunedBench(
        [1], {("quad", 1): tuned}, {("rising", 1): rising, ("rising 40", 1): rising}
    ))  # fmt: skip
    assert "lr 0.02, coef 5, 60 iterations, margin 0.05" in table and "40 rivals" in table
    anchor = experiments.Anchor({"RisingAttacK": rising}, "foolbox is not installed")
    assert "foolbox is not installed" in views.anchor_table(anchor)


def test_the_gallery_shows_the_nearest_lengths_with_the_same_first_target(finished):
    shown = views.gallery(finished.bench)
    assert shown.count("<h4>") == 2 and "K = 1" in shown and "K = 3" in shown
    assert shown.count("<img alt=") == 6
    only = views.gallery(finished.bench, (1,))
    assert only.count("<h4>") == 1


def test_the_mean_step_is_over_images_that_still_move(finished):
    alpha = np.array([[0.5, 1.0], [0.25, 0.0], [0.0, 0.0]])  # the second image stops early
    np.testing.assert_array_equal(views.mean_step(alpha), [0.75, 0.25, np.nan])
    bench = finished.bench
    (result,) = bench.results["rising", 3]
    trace = dict(result.trace)
    trace["alpha"] = np.array([[0, 0], [1.0, 0.5], [0.25, 0], [0, 0]])
    changed = dict(bench.results) | {("rising", 3): [replace(result, trace=trace)]}
    chart = views.iteration_charts(replace(bench, results=changed))[0, 2]
    np.testing.assert_array_equal(chart.data[0], [[1, 0.75], [2, 0.25], [3, np.nan]])
    labels(views.iteration_charts(replace(bench, results=changed)))


def test_the_longest_order_of_a_width_is_that_of_half_of_the_images():
    K = np.array([5, 10])
    np.testing.assert_array_equal(views.longest_orders(WIDTHS.asr["rising"], K), [5, 10])
    np.testing.assert_array_equal(views.longest_orders(WIDTHS.asr["cw"], K), [0, 5])
    chart = views.width_chart(WIDTHS)[0, 0]
    stars = [
        tuple(layer.dimension_values(k)[0] for k in (0, 1))
        for layer in chart if layer.opts.get().kwargs.get("marker") == "star"
    ]  # fmt: skip
    assert stars == [(128, 10), (128, 5)]
    accuracy = views.width_chart(WIDTHS)[0, 1]
    np.testing.assert_allclose(next(iter(accuracy)).dimension_values(1), [90, 93])
    without = replace(WIDTHS, deep=None, deep_accuracy=np.nan)
    assert "star" not in str([layer.opts.get() for layer in views.width_chart(without)[0, 0]])


def test_a_setting_tried_on_more_images_says_so_and_has_no_line_of_the_others(finished):
    found = finished.ablations
    wide = experiments.joined(2 * [found.results["margin"]["0.5"]])
    more = replace(found, results=found.results | {"margin": {"0.5": wide, "0.2": wide}})
    for ablation, title, lines in (
        (found, "Margin (numbers: mean ℓ2)", 1), (more, "Margin, 4 images (numbers: mean ℓ2)", 0),
    ):  # fmt: skip
        charts = {c.opts.get("plot").kwargs["title"]: c for c in views.ablation_panel(ablation)}
        assert sum(isinstance(layer, hv.HLine) for layer in charts[title]) == lines


def test_defenses_are_drawn_for_every_length_of_order():
    eps = ablations.DEFENSE_EPS
    plain = Curve(0.97, np.clip(eps, 0, 1), {"a": np.ones(24)})
    smoothed = Curve(0.9, np.clip(eps / 3, 0, 1), {"a": np.ones(24)}, np.clip(1 - eps, 0, 1))
    shown = views.defense_chart({K: {"plain": plain, "smoothed": smoothed} for K in (1, 3)})
    titles = [chart.opts.get("plot").kwargs["title"] for chart in shown]
    assert titles == ["Orders of K = 1, 24 digits", "Orders of K = 3, 24 digits"]
    assert shown.opts.get("plot").kwargs["title"] == "Clean accuracy: plain 97 %, smoothed 90 %"
    for chart in shown:
        assert [curve.label for curve in chart] == [
            "plain: reached", "smoothed: reached", "smoothed: limit by the certificate",
        ]  # fmt: skip


def test_tables_of_a_fair_comparison_name_the_settings(finished):
    bench = finished.bench
    quad = {"lr": 0.02, "coef": 5.0, "iters": 60, "margin": 0.05, "search_steps": 9, "seed": 0}
    cw = quad | {"search_steps": 1}
    tuned = replace(bench, settings={("quad", K): quad for K in bench.K})
    table = views.bench_table(tuned)
    assert table.count("lr 0.02, coef 5, 60 iterations, margin 0.05, 9 rounds") == 2
    assert "Digits: 2 images, 1 network; norms over own successes; baselines tuned" in table
    assert "tuned" not in views.bench_table(bench) and "setting" not in views.bench_table(bench)
    results = {(m, K): bench.results[m, K][0] for K in (1, 3) for m in ("rising", "quad", "cw")}
    settings = {(m, K): s for K in (1, 3) for m, s in (("quad", quad), ("cw", cw))}
    found = experiments.EqualTime([1, 3], results, settings, True)
    table = views.equal_time_table(found)
    rounds = "lr 0.02, coef 5, margin 0.05, rounds of 60 iterations"
    assert table.count(rounds) == table.count("lr 0.02, coef 5<") == 2
    assert "baselines tuned on these images" in table
    found = experiments.EqualTime([1, 3], results, settings, False)
    assert "with the settings of the parameters" in views.equal_time_table(found)


def test_perturbations_of_one_image_are_compared_by_what_they_change(finished):
    subject = trials.subject("digits")
    reached = trials.run_trial(subject, 0, [4, 5], iters=8).result.delta[0].numpy()
    one = np.zeros_like(reached)
    one[0, 3, 3] = 0.5 - float(subject.images[0, 0, 3, 3])
    shown = views.compare_deltas(subject, 0, [4, 5], {"all": reached, "<one>": one})
    changed = int((np.abs(reached) > 1e-6).sum())
    assert f"all: {changed} of 64 pixels changed" in shown
    assert "&lt;one&gt;: 1 of 64 pixels changed" in shown
    assert shown.count("order not reached") == 1


def test_everything_that_a_study_measures_is_drawn_in_the_notebook():
    path = catalog.find("rising_attack").notebook
    code = "\n".join(
        notebooks.source(c) for c in notebooks.read(path)["cells"] if c["cell_type"] == "code"
    )
    inherited = {field.name for field in fields(results.Study)}
    measured = [f.name for f in fields(study.RisingAttackStudy) if f.name not in inherited]
    missing = [n for n in measured if not re.search(rf"views\.\w+\(study\.{n}\b", code)]
    assert measured and not missing


def test_what_did_not_run_is_said_in_words(finished):
    for view in (views.k_curve, views.width_chart, views.tuned_table, views.anchor_table,
                 views.defense_chart, views.nested_chart, views.ablation_panel):  # fmt: skip
        assert "has not run" in view(None)
    empty = study.RisingAttackStudy(finished.parameters)
    assert set(views.results_of(empty)) == set(views.VIEWS)
    begun = experiments.Bench(finished.bench.problem, {1: finished.bench.targets[1]}, {})
    assert "has not run" in views.gallery(begun)


def test_every_tab_of_the_explorer_draws(finished):
    for title, view in views.results_of(finished).items():
        assert view.get_root() is not None, title


def test_orders_are_compared_over_own_and_over_common_successes(finished):
    shown = picture(views.VIEWS["Orders of length K"](finished))
    tabs = next(iter(shown.select(pn.Tabs)))
    assert tabs._names == ["Norms over own successes", "Norms over common successes"]
    titles = [
        [pane.object.opts.get("plot").kwargs["title"] for pane in tab.select(pn.pane.HoloViews)]
        for tab in tabs
    ]
    assert "ℓ2 over own successes" in titles[0] and "ℓ2 over common successes" in titles[1]


def test_a_page_of_960_pixels_holds_the_charts_of_a_row(finished):
    for layout in (views.k_curve(finished.bench), views.iteration_charts(finished.bench)):
        widths = [chart.opts.get("plot").kwargs["width"] for chart in layout]
        columns = layout._max_cols
        assert max(sum(widths[i : i + columns]) + 20 * columns for i in range(len(widths))) <= 960


def test_the_monitor_shows_whatever_is_there_yet(finished):
    assert views.monitor(study.RisingAttackStudy(finished.parameters)) is not None
    row = views.monitor(finished)
    assert "success rate [%]" in labels(row[0].object)
