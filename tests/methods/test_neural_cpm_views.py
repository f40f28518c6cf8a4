"""Pictures of NeuralCPM: pure functions of results that draw, with labels and units."""

from dataclasses import replace

import holoviews as hv
import numpy as np
import pytest
from bokeh.models import Axis
from helpers import small_study

from workbench import theme
from workbench.methods.neural_cpm import landscape, views
from workbench.methods.neural_cpm.speed import Speed

theme.set_defaults()


@pytest.fixture(scope="module")
def finished():
    return small_study()


def labels(element):
    """Draw with bokeh (what does not draw raises here) and return the labels of all axes."""
    state = hv.renderer("bokeh").get_plot(element).state
    return {axis.axis_label for axis in state.select({"type": Axis})}


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
        "prices": (views.first_order_chart(poles.exact, poles.first_order), "exact ΔH"),
        "training": (views.training_chart(trained.trainings), "mean energy"),
        "toy": (views.price_scatter(20), "first-order ΔH"),
    }
    judged = replace(trained.trainings[0], metrics=[(10, 9.0), (20, 7.5)])
    charts["validation"] = (views.training_chart([judged]), "RMSE of moments [sites²]")
    for name, (chart, label) in charts.items():
        assert label in labels(chart), name
    labels(views.bipolar_gallery(poles))


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
    assert "fitted" in table


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
    table = views.speed_table([Speed("a", 4e7, 2e7), Speed("b", 4e7, None)])
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
