"""Pictures of the study: of results, of none, and drawings that follow a slider."""

import re
from xml.etree import ElementTree

import holoviews as hv
import numpy as np
import pytest

from workbench.methods.pas import drawings, study, views
from workbench.methods.pas.experiments import curves_of
from workbench.methods.pas.trials import Setting
from workbench.theme import Html, set_defaults

set_defaults()


@pytest.fixture(scope="module")
def finished():
    return study.run(study.Parameters(trials=2, m=20, regret_m=20), progress=False)


@pytest.fixture(scope="module")
def split():
    return Setting(data="amazon").draw(0)


@pytest.fixture(scope="module")
def found(split):
    return split.estimates()


NEEDS = [
    (views.error_bars, "main"), (views.error_table, "main"), (views.side_by_side, "synthetic"),
    (views.side_by_side, "real"), (views.cure_curves, "unbiased"),
    (views.unbiased_table, "unbiased"), (views.homogeneous_table, "homogeneous"),
    (views.regret_chart, "regret"), (views.quality_chart, "quality"),
    (views.plug_in_table, "plug_in"), (views.shift_table, "shifted"),
    (views.switches_table, "switches"),
]  # fmt: skip


@pytest.mark.parametrize("view, name", NEEDS)
def test_each_view_draws_results_and_says_so_when_there_are_none(finished, view, name):
    made = view(getattr(finished, name))
    if not isinstance(made, Html):
        hv.render(made)
    assert "has not run" in view(None)


def test_tables_say_which_moments_each_row_used(finished):
    for text in (views.error_table(finished.main), views.side_by_side(finished.real)):
        assert text.count("pooled_within") >= 4 and text.count("pooled_total") >= 2
        assert "per_problem" in text
    assert "known" in views.side_by_side(finished.synthetic)
    assert "pooled_within" in views.plug_in_table(finished.plug_in)
    assert "per_problem" in views.shift_table(finished.shifted)


def test_tabs_and_monitor_take_whole_and_empty_studies(finished):
    empty = study.PASStudy(finished.parameters)
    for made in (finished, empty):
        for view in views.VIEWS.values():
            assert view(made) is not None
        assert views.monitor(made) is not None


def svg(text):
    """The picture; raises when the text is not well formed."""
    root = ElementTree.fromstring(f"<div>{text}</div>")
    return next(e for e in root.iter("svg") if e.get("role") == "img")


def test_the_microscope_shows_each_point_and_says_its_numbers(split, found):
    text = drawings.microscope(split, found, 3)
    picture = svg(text)
    p, pas = split.problems, found["pas"]
    note = f"n = {p.n[3]}, N = {p.N[3]}, λ = {pas.lam[3]:.3f}, weight on PT = {pas.weight[3]:.3f}"
    titles = [e.text for e in picture.iter("title")]
    assert all(note in t for t in titles)
    assert [t.split(" = ")[0] for t in titles] == [
        "Ȳ",
        "Z̄ labelled",
        "Z̃ rest",
        "PPI",
        "PT",
        "Z̃",
        "PAS",
    ]
    assert f"PAS = {pas.theta[3]:.4g}" in titles[-1]
    assert f"truth {split.truth[3]:.3g}" in picture.get("aria-label")
    assert len([e for e in picture.iter("path") if "v10z" in (e.get("d") or "")]) == 2  # arrows


def test_moving_omega_moves_only_weights(split, found):
    pas = found["pas"]
    for omega, end in ((0.0, pas.target), (np.inf, pas.start)):
        moved = drawings.moved(pas, omega)
        np.testing.assert_array_equal(moved.theta, end)
        assert moved.lam is pas.lam
    again = drawings.moved(pas, pas.omega)
    np.testing.assert_array_equal(again.theta, pas.theta)


def test_places_on_the_axis_of_omega_go_forth_and_back():
    for omega in (0.0, 1e-4, 0.3, 40.0, np.inf):
        share = drawings.share_of(omega, 2.0)
        assert drawings.omega_at(share, 2.0) == pytest.approx(omega)
    assert drawings.omega_at(0.02, 1.0) == 0.0 and drawings.omega_at(0.98, 1.0) == np.inf
    assert drawings.omega_at(0.5, 7.0) == pytest.approx(7.0)


def test_the_curve_has_both_ends_both_minima_and_the_line(split, found):
    cure, loss = curves_of(split)
    text = drawings.cure_drawing(cure, loss, 0.5)
    svg(text)
    assert "ω̂ of CURE" in text and "oracle ω" in text and "ω = 0.5" in text and "∞" in text
    assert ">0<" in text
    alone = drawings.cure_drawing(cure, None, 0.0)
    assert "true loss" not in alone and "ω = 0<" in alone


def test_scatter_and_segments_show_the_chosen_problems(split, found):
    m = len(split.problems)
    every = np.ones(m, bool)
    text = drawings.scatter(split, found, ["pas", "classical"], every)
    assert f"{m} problems" in text and "classical" in text
    few = np.arange(m) < 10
    some = drawings.scatter(split, found, ["pas"], few)
    assert f"10 of {m} problems" in some
    assert len(list(svg(some).iter("circle"))) == m + 0
    assert "(10 problems shown)" in drawings.segments(split, found["pas"], few)
    assert "(120 problems shown)" in drawings.segments(split, found["pas"], every)
    # Every segment is in the path, none is thinned away.
    picture = svg(drawings.segments(split, found["pas"], few))
    pale = [e for e in picture.iter("path") if (e.get("stroke") or "").endswith("90")]
    path = max((e.get("d") for e in pale), key=len)
    assert len(re.findall("M", path)) == 10


def test_bars_name_values_the_least_and_cut_what_is_too_long():
    text = drawings.bars("Errors", {"classical": 1.0, "pas": 0.5, "ppi": 50.0, "pt": 0.9},
                         {"pas": 0.01})  # fmt: skip
    picture = svg(text)
    words = [e.text for e in picture.iter("text")]
    assert "500 ± 10 ◀ least" in words and "1000" in words and "5e+04" in words
    assert "l9 6.5l-9 6.5z" in text  # the arrow of the bar that is cut


def test_the_thumbnail_is_a_small_png():
    import io

    from PIL import Image

    image = Image.open(io.BytesIO(views.thumbnail()))
    assert image.size == (800, 400) and image.format == "PNG"
