"""The living tissue and its views: parameters act while it runs, one copy attempt at hand."""

import asyncio

import numpy as np
import pytest

from workbench.methods.neural_cpm import live
from workbench.methods.neural_cpm.study import Parameters
from workbench.methods.neural_cpm.tissue import Tissue, acceptance, grown_disc

SMALL = {"size": 40, "n_cells": 8, "V_target": 60.0}


@pytest.fixture
def tissue():
    made = Tissue(Parameters(**SMALL))
    made.model.step(20)
    return made


@pytest.mark.parametrize(
    ("size", "n_cells", "volume"), [(40, 8, 60), (100, 40, 100), (8, 2, 4), (20, 300, 1)]
)
def test_a_start_has_all_cells_alive_and_half_of_them_of_each_kind(size, n_cells, volume):
    cell, kind = grown_disc(size, n_cells, volume, np.random.default_rng(0))
    assert cell.shape == (size, size)
    assert np.array_equal(np.unique(cell[cell > 0]), np.arange(1, n_cells + 1))
    assert kind[0] == 0 and abs((kind == 1).sum() - (kind == 2).sum()) <= 1


def test_a_start_is_the_same_for_the_same_seed():
    one, two = Tissue(Parameters(**SMALL, seed=3)), Tissue(Parameters(**SMALL, seed=3))
    one.model.step(10), two.model.step(10)
    assert np.array_equal(one.model.cell, two.model.cell)


def test_every_live_parameter_reaches_the_running_lattice(tissue):
    p, model = tissue.parameters, tissue.model
    p.param.update(
        temperature=3.0, J12=7.0, lam=0.7, lam_P=0.2, connected=True, field=1.5, lam_act=9.0,
        max_act=11, lam_ch=2.0, proposal="edges", contact_norm=0.5, V_target=50.0, P_target=40.0,
    )  # fmt: skip
    tissue.obey()
    assert tissue.model is model and model.time == 20
    assert model.T == 3 and model.J[1, 2] == 7 and model.proposal == "edges"
    assert model.lam[1] == 0.7 and model.V_target[2] == 50 and model.P_target[1] == 40
    assert model.connected[1] == 1 and model.lam_act[1] == 9 and model.max_act[1] == 11
    assert model.lam_ch.tolist()[1:] == [0, 2] and model.concentration.any()
    assert model.contact_norm == 0.5 and model.lam_P[1] == 0.2
    assert model.energy(terms=True)["field"] > 0
    model.step(2)
    assert model.time == 22


def test_a_new_size_starts_again(tissue):
    tissue.parameters.size = 50
    tissue.obey()
    assert tissue.model.shape == (50, 50) and tissue.model.time == 0


def test_the_field_pulls_kind_2_to_the_middle():
    from workbench.methods.neural_cpm.tissue import distance_to_middle

    def radius(field):
        tissue = Tissue(Parameters(**SMALL, field=field, temperature=4.0))
        tissue.model.step(300)
        owner = tissue.model.kind[tissue.model.cell]
        return distance_to_middle(40)[owner == 2].mean()

    assert radius(2.0) < radius(-2.0) - 2


def test_a_stroke_of_the_brush_is_one_new_cell_and_the_eraser_makes_medium(tissue):
    n = len(tissue.model.kind)
    tissue.paint(np.array([[2, 2]]), 1, "a")
    tissue.paint(np.array([[2, 5]]), 1, "a")
    model = tissue.model
    assert len(model.kind) == n + 1 and model.kind[-1] == 1
    assert (model.cell == n).sum() == 18
    tissue.paint(np.array([[2, 2]]), 2, "b")
    assert tissue.model.kind[-1] == 2
    tissue.paint(np.array([[2, 2], [2, 5]]), 0, "c")
    assert (tissue.model.cell[1:4, 1:7] == 0).all()


def test_killing_and_permuting_keep_the_rest(tissue):
    before = tissue.model.cell
    tissue.kill(3)
    assert (tissue.model.cell == 3).sum() == 0
    assert np.array_equal(tissue.model.cell[before != 3], before[before != 3])
    outlines = tissue.model.cell > 0
    tissue.permute_kinds()
    assert np.array_equal(tissue.model.cell > 0, outlines)


def test_the_copies_onto_a_site_are_the_energy_differences_cheapest_first(tissue):
    lowest = tissue.model.lowest_delta()
    sites = np.argwhere(np.isfinite(lowest))[:40]
    for row, column in sites:
        copies = tissue.copies_onto(row, column)
        assert [c["delta"] for c in copies] == sorted(c["delta"] for c in copies)
        assert copies[0]["delta"] == pytest.approx(lowest[row, column])
        before, cell = tissue.model.energy(), tissue.model.cell
        painted = tissue.model.copy()
        painted.paint([row], [column], copies[0]["identity"])
        if (cell == cell[row, column]).sum() > 1:
            assert painted.energy() - before == pytest.approx(copies[0]["delta"])
    inside = np.argwhere(np.isnan(lowest))[0]
    assert tissue.copies_onto(*inside) == []


def test_acceptance_is_metropolis():
    assert acceptance(-1, 2) == 1 == acceptance(0, 0)
    assert acceptance(2, 2) == pytest.approx(np.exp(-1))
    assert acceptance(1e-9, 0) == 0


def test_the_lens_shows_terms_that_add_up_and_says_when_there_is_nothing(tissue):
    lowest = tissue.model.lowest_delta()
    row, column = np.argwhere(np.isfinite(lowest))[0]
    copies = tissue.copies_onto(row, column)
    page = live.lens_html(tissue.model.cell, tissue.model.kind, (row, column), copies, 1.0)
    assert f"{copies[0]['delta']:+.2f}" in page and "accepted at T = 1" in page
    assert page.count("data:image/png") == 2
    row, column = np.argwhere(np.isnan(lowest))[0]
    page = live.lens_html(tissue.model.cell, tissue.model.kind, (row, column), [], 1.0)
    assert "nothing can be copied here" in page


def test_moving_a_slider_changes_the_running_tissue_within_a_frame():
    async def play():
        parameters = Parameters(**SMALL)
        made = live.LiveTissue(parameters)
        view = made.view
        obeyed = []

        def draw(frame):
            view.acknowledged = view._sent
            if made.tissue.model.T == 9.0:
                obeyed.append(view._sent)

        view.on_frame.append(draw)
        view.playing = True
        await asyncio.sleep(0.2)
        frames = view._sent
        parameters.temperature = 9.0
        await asyncio.sleep(0.2)
        view.playing = False
        await asyncio.sleep(0.05)
        return view.fault, obeyed[0] - frames, made

    fault, frames, made = asyncio.run(play())
    assert fault == "" and 1 <= frames <= 2 and made.tissue.model.time > 0
    assert len(made.traces.rows) > 1


def test_the_map_of_prices_travels_only_while_it_is_looked_at():
    made = live.LiveTissue(Parameters(**SMALL))
    assert made.view.last.field is None
    made.view.color_by = "field"
    low, high = made.view.last.field_range
    assert made.view.last.field is not None and low == -high
    made.view.color_by = "kind"
    assert made.view.last.field is None


def test_a_click_puts_the_site_under_the_lens_until_the_lattice_shrinks():
    parameters = Parameters(**SMALL)
    made = live.LiveTissue(parameters)
    made.view.selected = [39, 20]
    assert made.view.marks == [[38, 19, 3, 3]] and "Site (39, 20)" in made._lens.object
    parameters.size = 30
    assert made.view.selected == [] and made.view.marks == []


def test_the_still_is_the_tissue_after_its_run():
    parameters = Parameters(**SMALL, mcs=5)
    assert live.still(parameters).startswith(b"\x89PNG")
    assert live.still(parameters) == live.still(parameters)


def test_the_explorer_offers_what_acts_on_the_tissue_first_and_then_the_study():
    explorer = live.explorer()
    explorer.__panel__()
    names = [row["name"] for row in explorer.controls.rows]
    assert tuple(names[: len(live.LIVE)]) == live.LIVE
    assert set(names) == set(explorer.parameters.names())
