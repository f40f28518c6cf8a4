"""Pictures of R1-VI: pure functions of results that draw, with labels, signs and words."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import holoviews as hv
import numpy as np
import pytest
from bokeh.models import Axis

from workbench import steps as work
from workbench import theme
from workbench.methods.rank_one_vi import charts, closeup, experiments, learning, study, views
from workbench.methods.rank_one_vi.speed import Peer

theme.set_defaults()
SMALL = {"n": 12, "m": 2, "b": 3, "seeds": 2, "ql_steps": 100, "ql_seeds": 3}


@pytest.fixture(scope="module")
def finished():
    return study.run(study.Parameters.preset("quick", **SMALL), progress=False)


@pytest.fixture(scope="module")
def made(finished):
    return finished.comparison


@pytest.fixture(scope="module")
def frozen():
    return closeup.Closeups()(study.Parameters(family="frozenlake4", gamma=0.9))


@pytest.fixture(scope="module")
def cases():
    iterations = {"VI": 150.0, "NVI": np.nan, "MPI-20": 8.0, "PI": 3.0}
    return {"graph6": experiments.Case("graph", 0.9, iterations, 0.5)}


def labels(element):
    """Draw with bokeh (what does not draw raises here) and return the labels of all axes."""
    state = hv.renderer("bokeh").get_plot(element).state
    return {axis.axis_label for axis in state.select({"type": Axis})}


def words(svg):
    """The description of every picture in the text; raises when it is not well formed."""
    tree = ElementTree.fromstring(f"<div>{svg}</div>")
    return " ".join(e.get("aria-label") or "" for e in tree.iter() if e.get("role") == "img")


def test_every_chart_draws_and_its_axes_are_named(finished, made):
    drawn = {
        "errors": (views.error_chart(made), "max |v − v*|"),
        "costs": (views.error_charts(made), "Bellman evaluations"),
        "seconds": (views.error_charts(made), "CPU time [ms]"),
        "bracket": (views.bracket_chart(made, 3), "value of state 3"),
        "spectrum": (views.spectrum_chart(made), "imaginary part"),
        "toy": (views.spectrum_at(made, 0.5), "real part"),
        "gains": (views.gain_maps(made), "from state"),
        "policies": (views.policy_chart(made), "states with a wrong action"),
        "distribution": (views.distribution_chart(made), "total variation"),
        "learning": (views.learning_charts(finished.learning), "max |q − q*|"),
        "spread": (views.learning_charts(finished.learning), "half the span of q − q*"),
        "sweep": (views.sweep_charts(finished.sweep), "horizon 1/(1 − γ)"),
        "rate": (views.sweep_charts(finished.sweep), "rate of the error"),
    }
    for name, (chart, label) in drawn.items():
        assert label in labels(chart), name


def test_the_error_chart_has_the_reference_slopes_and_every_planner(finished, made):
    names = {curve.label for curve in views.error_chart(made).traverse(lambda c: c, [hv.Curve])}
    assert names == {*finished.parameters.methods, "slope γᵏ", "slope (γ|λ₂|)ᵏ"}
    curves = views.error_chart(made).traverse(lambda c: c, [hv.Curve])
    (slope,) = [c for c in curves if c.label.startswith("slope (")]
    k, y = slope.dimension_values(0), slope.dimension_values(1)
    assert (y[1] / y[0]) ** (1 / (k[1] - k[0])) == pytest.approx(made.solved.rate)


def test_a_teleported_spectrum_keeps_one_eigenvalue_and_shrinks_the_rest(made):
    before = made.solved.eigenvalues.copy()
    points = views.spectrum_at(made, 0.5).traverse(lambda e: e, [hv.Points])[0]
    moved = points.dimension_values(0) + 1j * points.dimension_values(1)
    assert moved[0] == pytest.approx(made.solved.gamma)
    assert np.abs(moved[1:]) == pytest.approx(0.5 * made.solved.gamma * np.abs(before[1:]))
    assert (made.solved.eigenvalues == before).all(), "the picture changes nothing"


def dots(element, number):
    points = element.traverse(lambda e: e, [hv.Points])[number]
    return points.dimension_values(0) + 1j * points.dimension_values(1)


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_dots_of_rank_one_are_computed_from_its_error_matrix(made, share, monkeypatch):
    plain, fast = (dots(views.spectrum_at(made, share), number) for number in (0, 1))
    assert np.poly(fast) == pytest.approx(np.poly(np.r_[0, plain[1:]]), abs=1e-8)  # fact D
    monkeypatch.setattr(experiments, "error_matrix", lambda P, d, gamma: gamma * P)
    unchanged = dots(views.spectrum_at(made, share), 1)
    assert np.poly(unchanged) == pytest.approx(np.poly(plain), abs=1e-8), "no assumption"
    first = charts.spectrum(made)
    monkeypatch.undo()
    assert charts.spectrum(made) != first


def test_of_many_states_the_dots_are_those_of_the_fact_and_say_so(made, monkeypatch):
    assert "by fact D" not in charts.spectrum(made)
    monkeypatch.setattr(experiments, "COMPUTED", made.solved.mdp.n - 1)
    assert "by fact D" in charts.spectrum(made)
    overlay = views.spectrum_chart(made)
    assert dots(overlay, 1)[1:] == pytest.approx(dots(overlay, 0)[1:]) and dots(overlay, 1)[0] == 0


def test_pictures_show_what_they_say(made):
    policies = made.plans["VI"].wrong[:12], made.plans["R1-VI"].wrong[:12]
    assert policies[0].tolist() == policies[1].tolist()
    assert (np.diff(charts.distances(made))[-3:] <= 1e-12).all()
    assert charts.last_d(made).sum() == pytest.approx(1)


@pytest.mark.parametrize("at", [0, 1, 5, 500])
def test_live_pictures_are_well_formed_and_say_themselves(made, at):
    svg = {
        "errors": charts.errors(made, "iterations", at), "bracket": charts.bracket(made, 2, at),
        "policies": charts.policies(made, at), "spectrum": charts.spectrum(made),
        "distribution": charts.distribution(made, at), "tracking": charts.tracking(made, at),
    }  # fmt: skip
    said = {name: words(text) for name, text in svg.items()}
    assert "R1-VI needs" in said["errors"] and "optimum" in said["bracket"]
    assert "coincide" in said["policies"] and "moves to 0" in said["spectrum"]
    assert "total variation" in said["distribution"].lower() and said["tracking"]
    assert not any(re.search(r"\bnan\b", text) for text in svg.values())


@pytest.mark.parametrize("axis", list(charts.AXES))
def test_errors_are_drawn_over_every_axis(made, axis):
    assert charts.AXES[axis] in charts.errors(made, axis)
    assert words(charts.errors(made, axis))


def test_the_grid_shows_arrows_terminal_cells_and_how_wrong_they_are(frozen):
    text = charts.grid(frozen, 3)
    said = words(text)
    assert said.count("wrong actions") == 3 and "VI, iteration 3" in said
    assert text.count("<rect") == 3 * 16 and text.count(">□<") == 3 * 5
    signs = re.findall(r">([←↓→↑])</text>", text)
    assert len(signs) == 3 * 11 and len(set(signs)) > 1
    assert "optimum: 0 wrong actions" in said
    assert views.grid_view(frozen, 3) == text


def test_cliff_walking_has_arrows_of_its_own():
    cliff = closeup.Closeups()(study.Parameters(family="cliff", gamma=0.9))
    text = charts.grid(cliff, 1)
    signs = re.findall(r">([←↓→↑□])</text>", text[text.index("<b>optimum") :])
    assert signs[36] == "↑", "from the start up, along the cliff, and down at its end"
    assert signs[24:36] == ["→"] * 11 + ["↓"]


def test_problems_without_cells_and_large_gains_say_so(made, frozen):
    assert "Only FrozenLake" in charts.grid(made)
    large = closeup.Closeups()(study.Parameters(n=80))
    assert "at most 60" in charts.gains(large) and "80" in charts.gains(large)
    assert "at most 60" in views.gain_maps(large)
    text = charts.gains(frozen)
    assert text.count("<img alt=") == 3 and "(I − γP)⁻¹" in text


def test_learning_up_to_a_constant_makes_q_learning_and_rank_one_coincide(finished):
    (found,) = finished.learning.values()
    plain, fast = found["QL (harmonic)"], found["R1-QL"]
    assert plain.spread == pytest.approx(fast.spread, abs=1e-9)
    assert not np.allclose(plain.errors[:, -1], fast.errors[:, -1])
    assert "R1-QL" in words(charts.learning(found)) and words(charts.learning(found, True))
    assert charts.learning(None) == "" == charts.learning({})


def test_the_wide_curve_is_the_q_learning_with_the_step_sizes_of_rank_one(finished):
    (found,) = finished.learning.values()
    for rule, name in (("harmonic", "QL (harmonic)"), ("rescaled", "QL (rescaled)"), ("poly", "")):
        runs = {**found, "R1-QL": replace(found["R1-QL"], rule=rule)}
        curves = views.learning_chart(runs, True).traverse(lambda c: c, [hv.Curve])
        widths = {c.label: hv.Store.lookup_options("bokeh", c, "style").kwargs["line_width"]
                  for c in curves}  # fmt: skip
        assert [label for label, width in widths.items() if width > 2] == ([name] if name else [])
        assert charts.learning(runs, True).count('stroke-width="5') == 2 * bool(name), "and its key"
    assert learning.coinciding({name: run for name, run in found.items() if name != "R1-QL"}) == ""


def test_tables_show_every_row_and_mark_what_is_extrapolated(finished, cases):
    table = views.sweep_table(finished.sweep)
    assert all(name in table for name in experiments.SWEPT)
    sweep = finished.sweep
    guessed = experiments.Sweep(
        sweep.iterations, {(0.99, "VI")}, sweep.branching, sweep.fitted, sweep.predicted
    )
    assert "≈ 1" in views.sweep_table(guessed) and "extrapolated" in table
    rows = views.case_table(cases)
    assert "not reached" in rows and "0.5000" in rows
    assert re.findall("<b>(.*?)</b>", rows) == ["150"], "of those whose iterations cost alike"
    facts = views.facts_table(finished.facts)
    assert all(f">{fact}</td>" in facts for fact in "ABCDEF")
    learned = views.learning_table(finished.learning)
    assert "Zap" in learned and "µs" in learned


def test_the_table_of_peers_marks_a_wrong_value_with_a_sign():
    rows = [Peer("ours", "R1-VI", 0.005, 19, 1e-9, 1.0), Peer("other", "VI", 0.01, None, 52.0, 1.0),
            Peer("jaxdp", "not installed")]  # fmt: skip
    table = views.peers_table(rows)
    assert "5.00 ms" in table and "✗ 52" in table and "not installed" in table
    assert "✗ 1e-09" not in table
    below = table[table.index("</table>") :]
    assert all(name in below for name in ("Not timed", "Gauss-Seidel", "relative", "madupite"))


def test_views_of_what_did_not_run_say_so():
    empty = study.RankOneStudy(study.Parameters())
    for title, view in views.VIEWS.items():
        shown = view(empty)
        if title != "Claims":
            assert "has not run" in " ".join(str(pane.object) for pane in shown)
    assert "has not run" in views.learning_chart({}) and "has not run" in views.grid_view(None)
    assert set(views.results_of(empty)) == set(views.VIEWS)


def test_the_monitor_shows_whatever_is_there_yet(finished, cases):
    partial = study.RankOneStudy(finished.parameters)
    assert views.monitor(partial) is not None
    partial.comparison = finished.comparison
    assert "iteration k" in labels(views.monitor(partial))
    partial.cases = cases
    assert "graph" in views.monitor(partial).object
    partial.learning = finished.learning
    assert "steps" in labels(views.monitor(partial))


def test_one_method_alone_is_drawn_too():
    p = study.Parameters.preset("quick", **SMALL, methods=["PI"])
    made = work.run(experiments.comparison_steps(p))
    assert labels(views.error_chart(made)) and labels(views.policy_chart(made))
    assert "no d" in views.distribution_chart(made)
    assert charts.distribution(made) == "" == charts.tracking(made)
    assert words(charts.bracket(made)) and words(charts.errors(made))


def test_every_planner_and_learner_has_a_look_of_its_own():
    assert set(study.METHODS) <= set(charts.STYLES)
    planners = [charts.STYLES[name] for name in study.METHODS]
    assert len(set(planners)) == len(planners)


def test_the_thumbnail_is_a_png():
    assert views.thumbnail().startswith(b"\x89PNG")
