"""Pictures: each from results and from None, the explorer, the still, the thumbnail."""

import holoviews as hv
import numpy as np
import panel as pn
import pytest
from sparse_glm_problems import table

from workbench import steps, theme
from workbench.explorer import picture
from workbench.methods.sparse_glm import drawings, experiments, prox, study, views
from workbench.methods.sparse_glm.branch_and_bound import Search
from workbench.theme import Html

theme.set_defaults()

TINY = {
    "data": "diabetes", "k": 3, "lambda2": 1.0, "M": 2.0, "sizes": [40, 60], "conic_sizes": [],
    "race_seeds": 1, "prox_power": 3, "cases": "few", "instances": 4, "sweeps": True,
}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiments, "SWEPT", {"k": (1, 2), "lambda2": (5.0, 10.0), "M": (0.3, 0.5)})
        patch.setattr(experiments, "SWEEP_NODES", 10)
        return study.run(study.Parameters(**TINY), progress=False)


NEEDS = {
    "main": [views.squeeze_chart, views.tree_chart, views.coefficients, views.main_table],
    "race": [views.race_charts, views.race_table, views.scaling_chart, views.gaps_table],
    "prox": [views.prox_chart],
    "cases": [views.cases_table],
    "heuristics": [views.heuristics_table],
    "sweep": [views.sweep_charts, views.sweep_table],
}
EVERY = [(name, view) for name, found in NEEDS.items() for view in found]


@pytest.mark.parametrize(("name", "view"), EVERY, ids=lambda x: getattr(x, "__name__", x))
def test_a_picture_shows_its_result_or_says_that_there_is_none(made, name, view):
    shown = view(getattr(made, name))
    if isinstance(shown, Html):
        assert "<" in shown and "nan" not in shown
    else:
        hv.render(shown)
    nothing = view(None)
    assert isinstance(nothing, Html) and "has not run" in nothing


def test_all_tabs_can_be_shown_on_a_page(made):
    shown = views.results_of(made)
    assert next(iter(shown)) == "Claims" and len(shown) == 7
    for view in shown.values():
        picture(view)


def test_what_is_finished_is_shown_while_the_rest_runs(made):
    empty = study.SparseStudy(made.parameters)
    assert isinstance(views.monitor(empty), pn.Spacer)
    for name in ("main", "race", "cases", "sweep"):
        setattr(empty, name, getattr(made, name))
        assert not isinstance(views.monitor(empty), pn.Spacer)


def test_the_table_of_the_readers_problem_says_who_knows(made):
    shown = views.main_table(made.main)
    assert "230.081033" in shown and "no proof" in shown and "verified" in shown


def test_a_heuristic_that_beats_an_unfinished_search_is_not_called_the_same(made):
    import dataclasses

    assert "above the optimum" in views.main_table(made.main)
    open_end = dataclasses.replace(made.main.result, upper=240.0, gap=0.1)
    shown = views.main_table(dataclasses.replace(made.main, result=open_end))
    assert "above the search&#x27;s best" in shown or "above the search's best" in shown
    assert "-4.13 %" in shown and "same" not in shown and "above the optimum" not in shown


def test_what_makes_ties_possible_is_said_below_the_table(made):
    import dataclasses

    remarks = ["X has 1 constant columns, first [4]: ties are possible"]
    shown = views.main_table(dataclasses.replace(made.main, remarks=remarks))
    assert "ms. X has 1 constant columns" in shown
    assert "ties are possible" not in views.main_table(made.main)


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_a_race_without_a_whole_entry_of_a_loss_is_drawn(made, loss):
    """As when it is interrupted, or with sizes beyond 1,000 only, where one variant runs."""
    some = [entry for entry in made.race if entry.loss == loss]
    assert len(views.race_charts(some)) == 1
    import dataclasses

    alone = [dataclasses.replace(e, runs={"restart": e.runs["restart"]}) for e in made.race]
    assert "all three variants" in views.race_charts(alone)
    hv.render(views.scaling_chart(alone))
    assert "restart" in views.gaps_table(alone) and "<table" in views.race_table(alone)


def test_an_active_box_is_flagged_in_words_and_not_by_color_alone():
    problem = table("breast_cancer", 3, 5.0, 1.0)
    search = Search(problem)
    result = steps.run(search.steps())
    shown = drawings.coefficients_picture(problem, result.beta, "Certified β")
    assert shown.count("⚑ at the box") == 3 and drawings.BOX_NOTE in shown
    assert "3 at the box" in drawings.verdict(search)
    free = drawings.coefficients_picture(problem, 0.5 * result.beta, "β")
    assert "⚑" not in free
    assert "none" in drawings.coefficients_picture(problem, 0 * result.beta, "β")


def test_a_search_is_drawn_before_during_and_after():
    search = Search(table("breast_cancer", 3, 5.0, 1.0))
    assert drawings.squeeze_picture(search) == ""
    assert len(drawings.tree_of(search)) == 1
    assert "has not been solved yet" in drawings.node_picture(search, 0)
    for _ in search.steps():
        assert "lower bound" in drawings.squeeze_picture(search) or not search.history
        break
    steps.run(search.steps())
    tree = drawings.tree_of(search)
    assert len(tree) == len(search.nodes)
    inside, outside = tree.decided(len(tree) - 1)
    assert tuple(inside) == search.nodes[-1].node.inside
    assert tuple(outside) == search.nodes[-1].node.outside
    shown = drawings.node_picture(search, 0)
    assert "Relaxed z of node 0" in shown and isinstance(shown, Html)
    assert "Click a node" in drawings.node_picture(search, -1)
    assert "certified to 0.01 %" in drawings.verdict(search)


def test_the_sorted_picture_shows_each_step_of_the_block():
    v = np.array([3, 2, 1.5, 0.2, -1.4])
    found = prox.pooling(v, 1.0, 2, 10.0)
    assert "out of order" in drawings.sorted_picture(found, 1.0, 2, 10.0, 0)
    assert "still growing" in drawings.sorted_picture(found, 1.0, 2, 10.0, 1)
    whole = drawings.sorted_picture(found, 1.0, 2, 10.0)
    assert "finished" in whole and isinstance(whole, Html), "a notebook shows it as a picture"
    flat = prox.pooling(np.array([5, 0.1, 0.1]), 1.0, 1, 10.0)
    assert "nothing is pooled" in drawings.sorted_picture(flat, 1.0, 1, 10.0)
    boxed = prox.pooling(v, 1.0, 2, 0.8)
    assert "the box binds" in drawings.sorted_picture(boxed, 1.0, 2, 0.8)
    assert "sum 2" in drawings.prox_picture(v, found)


def test_the_ruler_has_every_bound_in_words():
    shown = drawings.dual_picture(3.0, 2.5, -40.0, 1.0)
    for words in ("optimum P* 3", "relaxation 2.5", "D(w) -40", "as always"):
        assert words in shown
    assert "report this" in drawings.dual_picture(3.0, 2.5, 3.1, 3.1)


def test_names_of_features_are_escaped():
    shown = drawings.rows_picture("t", [("<b>", 1.0, "")], 1.0, "#000000")
    assert "<b>" not in shown and "&lt;b&gt;" in shown


def test_a_large_tree_is_drawn_up_to_two_thousand_nodes(made):
    from types import SimpleNamespace

    nodes = made.main.search.nodes * 300
    search = SimpleNamespace(nodes=nodes, history=made.main.search.history)
    large = SimpleNamespace(search=search, result=made.main.result)
    shown = views.tree_chart(large)
    assert f"first 2,000 of {len(nodes):,} nodes" in str(hv.Store.lookup_options(
        "bokeh", shown, "plot").kwargs.get("title"))  # fmt: skip


def test_the_still_and_the_explorer_and_the_thumbnail():
    p = study.Parameters.preset("quick")
    still = views.live.still(p)
    assert still.count("<figure") == 4 and "certified" in still
    explorer = views.explorer(p)
    explorer.__panel__()
    assert {row["name"] for row in explorer.controls.rows} == set(p.names())
    assert views.thumbnail().startswith(b"\x89PNG")
