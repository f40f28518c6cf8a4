"""Pictures of NeuralCPM: pure functions of results that draw, with labels and units."""

from dataclasses import replace

import holoviews as hv
import numpy as np
import pytest
from bokeh.models import Axis, Title
from helpers import small_study

from workbench import theme
from workbench.methods.neural_cpm import landscape, views
from workbench.methods.neural_cpm.experiments import Digits
from workbench.methods.neural_cpm.generators import SCENARIOS
from workbench.methods.neural_cpm.speed import Speed

theme.set_defaults()


@pytest.fixture(scope="module")
def finished():
    return small_study()


def drawn(element):
    """The bokeh model of an element; what does not draw raises here."""
    return hv.renderer("bokeh").get_plot(element).state


def labels(element):
    """The labels of all axes of an element."""
    return {axis.axis_label for axis in drawn(element).select({"type": Axis})}


def titles(element):
    """The titles of an element."""
    return {title.text for title in drawn(element).select({"type": Title})}


def test_every_chart_draws_and_its_axes_are_named(finished):
    recovered = finished.recovered["own"]
    poles = finished.bipolar
    trained = next(m for m in poles.models.values() if m.trainings)
    charts = {
        "law": (views.law_chart(finished.law), "mean volume [sites]"),
        "volumes": (views.volume_laws(finished.law), "volume [sites]"),
        "tissue": (views.tissue_chart(finished.tissue), "time [MCS]"),
        "recovery": (views.recovery_chart(recovered), "estimate [energy]"),
        "rescaled": (views.recovery_chart(recovered, rescaled=True), "estimate [energy]"),
        "contacts": (views.contact_chart(recovered, 0), "c × number of contacts"),
        "errors": (views.recovery_errors({"A": recovered, "B": recovered}), "RMSE [energy]"),
        "rmse": (views.rmse_chart(poles), "RMSE of second moments [sites²]"),
        "prices": (views.price_chart(poles), "exact ΔH"),
        "training": (views.training_chart(trained.trainings), "mean energy"),
        "toy": (views.price_scatter(20), "first-order ΔH"),
    }
    judged = replace(trained.trainings[0], metrics=[(10, 9.0), (20, 7.5)])
    charts["validation"] = (views.training_chart([judged]), "RMSE of moments [sites²]")
    for name, (chart, label) in charts.items():
        assert label in labels(chart), name


def test_all_rows_of_the_gallery_show_as_many_aggregates(finished):
    poles = finished.bipolar
    data = np.concatenate([poles.data, poles.data])
    rows = views.bipolar_gallery(replace(poles, data=data), n=5).traverse(None, [hv.RGB])
    sides = {row.bounds.lbrt()[2] for row in rows}
    samples = min(model.frames.shape[1] for model in poles.models.values())
    assert sides == {samples * data.shape[2]} and samples < 5


def test_replays_and_tables_show_every_model(finished):
    poles = finished.bipolar
    html = views.bipolar_replay(poles)._repr_html_()
    table = views.consistency_table(poles)
    for name in poles.models:
        assert name in html and name in table
    assert "MCS" in views.tissue_replay(finished.tissue)._repr_html_()


def test_the_fitted_energy_stands_beside_the_one_that_made_the_pictures(finished):
    table = views.basis_table(finished.bipolar)
    made_with = table.split("made with")[1].split("</tr>")[0]
    assert [f"{value:.3g}</td>" in made_with for value in (6, 3, 7, 0.974)] == 4 * [True]
    assert "fitted" in table and "a field" in table


def test_pictures_of_the_motion_rule_are_not_said_to_have_a_field(finished):
    motion = replace(finished.bipolar, scenario=SCENARIOS["bipolar-motion"])
    table = views.basis_table(motion)
    assert "a rule of motion" in table and "field" not in table
    assert "over T = 2" in table and ">10.7</td>" in table  # 64 / 3 at T = 2


def test_every_error_has_its_interval_over_samples(finished):
    poles = finished.bipolar
    name, model = next(iter(poles.models.items()))
    wide = replace(model, rmse_interval=np.array([[0.0, 5 * poles.starts_rmse]]))
    chart = views.rmse_chart(replace(poles, models={**poles.models, name: wide}))
    assert drawn(chart).y_range.end > 5 * poles.starts_rmse
    lines = chart.traverse(lambda element: element, [hv.Segments])[0].dframe()
    assert lines.iloc[0].tolist() == [name, 0.0, name, 5 * poles.starts_rmse]
    assert len(lines) == sum(len(m.rmse) for m in poles.models.values())


def test_the_chart_of_prices_tells_slope_and_change_of_acceptance():
    exact = np.linspace(-2, 2, 9)
    (title,) = titles(views.first_order_chart(exact, 2 * exact, np.full(9, 100.0)))
    assert "correlation 1.0000" in title and "slope 2.000" in title
    assert "acceptance off by 0.0000" in title  # the known energy refuses all of them


def test_the_digits_show_their_starts_and_how_well_the_classifier_reads():
    frames = np.ones((2, 6, 6), int)
    frames[:, :3] = 2
    names = ("data", "starts", "cell sorting", "cell sorting, scattered")
    scores = {name: np.array([number + 1.0]) for number, name in enumerate(names)}
    kind = np.array([0, 1, 2])
    digits = Digits(frames, kind, np.array([3, 4]), frames, frames, frames, 0.79, scores)
    assert titles(views.digits_gallery(digits)) == {
        "data (the classifier reads 79 % right): inception score 1.0",
        "starts: data with kinds dealt anew: inception score 2.0",
        "cell sorting, from these starts: inception score 3.0",
        "cell sorting, from single sites: inception score 4.0",
    }


def test_the_monitor_shows_whatever_is_there_yet(finished):
    empty = type(finished)(finished.parameters)
    assert views.monitor(empty) is not None
    empty.law = finished.law
    labels(views.monitor(empty))
    empty.recovered = finished.recovered
    labels(views.monitor(empty))
    empty.bipolar = finished.bipolar
    training, chains = views.monitor(empty)
    assert "mean energy" in labels(training.object)
    assert "Path" in repr(chains.object)


def test_the_ellipse_of_a_spread_is_two_standard_deviations_along_its_axes():
    points = np.array([[0.0, -3], [0, 3], [1, 0], [-1, 0]]) + 10  # spread .5 down, 4.5 across
    outline = views.spread_ellipse(points) - 10.5
    assert np.abs(outline).max(0) == pytest.approx([2 * 0.5**0.5, 2 * 4.5**0.5], rel=1e-2)
    assert views.spread_ellipse(points[:1]) is None


def test_the_thumbnail_is_a_png():
    assert views.thumbnail().startswith(b"\x89PNG")


def test_the_speed_table_says_when_the_peer_is_missing():
    table = views.speed_table([Speed("a", 4e7, 2e7, 2.0), Speed("b", 4e7)])
    assert "2.0" in table and "not installed" in table


def test_exchanging_two_cells_of_different_kinds_changes_both_parts_of_the_energy():
    explorer = landscape.EnergyLandscape(seed=1)
    source = explorer.aggregate
    cell, kind = source.cell, source.kind
    first, second = (int(np.flatnonzero(kind == k)[0]) for k in (1, 2))
    source.click(*np.argwhere(cell == first)[0])
    assert source.chosen == first and source.before is None
    assert np.isnan(source.frame().field[cell == first]).all()
    source.click(*np.argwhere(cell == second)[0])
    assert source.chosen == 0
    swapped = source.cell
    assert np.array_equal(swapped == first, cell == second)
    now = landscape.energies(source.model, swapped, kind)
    assert now["sum"] == pytest.approx(now["cell sorting"] + now["network"])
    assert now["network"] != pytest.approx(source.before["network"])
    html = explorer.still()
    assert "before" in html and "<img alt=" in html


def test_the_price_map_is_the_first_order_price_of_the_sampler():
    source = landscape.Aggregate(landscape.load_weights(), seed=2)
    prices = landscape.price_map(source.model, source.cell, source.kind, 3)
    import torch

    target = torch.tensor([[40, 600, 900]])
    label = torch.full_like(target, 3)
    frames = torch.as_tensor(source.cell[None])
    kinds = torch.as_tensor(source.kind)
    wanted = source.model.neural.first_order(frames, kinds, target, label)[0].detach().numpy()
    got = prices.ravel()[target[0].numpy()]
    other = source.cell.ravel()[target[0].numpy()] != 3
    assert got[other] == pytest.approx(float(source.model.w_n) * wanted[other], abs=1e-4)
