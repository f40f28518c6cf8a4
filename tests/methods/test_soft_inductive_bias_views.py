"""Pictures of the study: of results, of none, and drawings that follow a slider."""

import io
from xml.etree import ElementTree

import holoviews as hv
import numpy as np
import pytest

from workbench.methods.soft_inductive_bias import (
    closed_forms,
    drawings,
    drawings_bounds,
    drawings_digits,
    drawings_networks,
    factored,
    study,
    tables,
    views,
)
from workbench.methods.soft_inductive_bias.compression import Message, encode
from workbench.methods.soft_inductive_bias.experiments import Corrupted, RandomLabels, Widths
from workbench.methods.soft_inductive_bias.posterior import Gibbs, validity
from workbench.methods.soft_inductive_bias.processes import MIXTURES, Choice
from workbench.methods.soft_inductive_bias.representation import Learned, Universal, connected_steps
from workbench.methods.soft_inductive_bias.symmetry import PathwayNetworks
from workbench.steps import run
from workbench.theme import Html, set_defaults

set_defaults()


@pytest.fixture(scope="module")
def finished():
    """A study whose closed forms ran at a small size; what is trained is made up."""
    parts = ["polynomials", "efficiency", "weak", "exact", "relu", "symmetry"]
    p = study.Parameters(draws=2, seeds=1, d_grid=[50, 100], n=100, n_train=[40],
                         efficiency_draws=2, parts=parts)  # fmt: skip
    made = study.run(p, progress=False)
    rho = np.array([0.0, 0.5, 1.0])
    three = np.array([[0.9, 0.5, 0.1]])
    made.labels = RandomLabels(
        rho, np.ones((1, 3)), three, 4 * three - 3, rho, np.ones((1, 3)), three
    )
    made.widths = Widths(np.array([4, 16]), *(np.array([[1.0, 2.0]]) for _ in range(4)),
                         {16: [(0, np.ones(1)), (5, np.ones(1) / 2)]},
                         {8: (60.0, 59.9)})  # fmt: skip
    made.compression = {(64, 50): stored()}
    made.corrupted = Corrupted({0.0: stored(), 1.0: stored()}, [(0, np.ones(2)), (9, np.ones(2))])
    two = np.array([0.5, 0.95])
    spread = np.ones((2, 5))
    made.posterior = Gibbs(two, 100 * two, *(two,) * 5, spread, spread, 1000)
    made.validity = validity(datasets=50)
    made.pathways = PathwayNetworks(
        {"rotated": {k: np.array([0.9]) for k in ("hard", "none", "soft")}}, {"rotated": [0.01]}
    )
    made.learned = {200: Learned(200, two, two, two)}
    made.connected = {4: run(connected_steps(4, [0], n=40, ends=(20, 1e-2), steps=10))}
    made.universal = Universal(("digits",), ((10, 64),), ("accuracy",), *(np.ones(1),) * 3)
    return made


def stored(n=1):
    from workbench.methods.soft_inductive_bias import bounds
    from workbench.methods.soft_inductive_bias.compression import Compressed

    message = encode(np.arange(50) % 9, 9, 100)
    each = np.full(n, 0.2)
    made = bounds.occam(0.2, 1437, len(message) * bounds.LOG2, 0.05)
    return Compressed(64, np.full(n, 50), 9, 1437, *(each,) * 4, np.full(n, len(message)),
                      [message.parts] * n, [made] * n, [message] * n,
                      [(0, np.ones(n)), (9, np.ones(n) / 3)])  # fmt: skip


NEEDS = [
    (tables.polynomial_table, "polynomials"), (views.evidence_chart, "polynomials"),
    (views.efficiency_charts, "efficiency"), (views.label_charts, "labels"),
    (views.weak_charts, "weak"), (views.relu_charts, "relu"), (views.width_charts, "widths"),
    (tables.width_table, "widths"), (tables.exact_table, "exact"),
    (tables.compression_table, "compression"), (tables.compression_scatter, "compression"),
    (tables.bits_view, "compression"), (tables.corrupted_table, "corrupted"),
    (tables.posterior_table, "posterior"), (tables.validity_table, "validity"),
    (tables.symmetry_table, "symmetry"), (tables.pathway_table, "pathways"),
    (tables.learned_table, "learned"), (views.path_view, "connected"),
    (tables.universal_table, "universal"),
]  # fmt: skip


@pytest.mark.parametrize("view, name", NEEDS, ids=lambda v: getattr(v, "__name__", v))
def test_each_view_draws_results_and_says_so_when_there_are_none(finished, view, name):
    made = view(getattr(finished, name))
    if isinstance(made, Html):
        ElementTree.fromstring(f"<div>{made}</div>".replace("&nbsp;", " "))
    else:
        hv.render(made)
    assert "has not run" in view(None) and "has not run" not in str(made)


def test_tabs_and_monitor_take_whole_and_empty_studies(finished):
    empty = study.SoftBiasStudy(finished.parameters)
    for made in (finished, empty):
        for view in views.VIEWS.values():
            assert view(made) is not None
        assert views.monitor(made) is not None
    assert "has not run" in views.axes_view(empty)


@pytest.mark.parametrize("name", views.MONITORED)
def test_the_monitor_shows_the_newest_experiment(finished, name):
    partial = study.SoftBiasStudy(finished.parameters)
    setattr(partial, name, getattr(finished, name))
    assert views.monitor(partial) is not None


def test_tables_say_what_the_numbers_are(finished):
    bits = tables.compression_table(finished.compression)
    parts = finished.compression[64, 50].parts[0]
    assert f"{parts['symbols']} + {parts['counts']} + 8 + {parts['header']}" in bits
    assert "pay 2 bits more" in bits
    corrupted = tables.corrupted_table(finished.corrupted)
    assert "chance is .9" in corrupted and "test, labels as random" in corrupted
    assert "test, true labels" in corrupted
    assert "labels as random" in tables.posterior_table(finished.posterior)
    assert "by Lanczos" in tables.width_table(finished.widths)
    assert "1.33" in tables.vc_table()
    assert finished.compression[64, 50].messages[0].bits in tables.bits_view(finished.compression)


def svg(text):
    """The pictures in a piece of HTML; raises when the text is not well formed."""
    root = ElementTree.fromstring(f"<div>{text}</div>")
    return [e for e in root.iter("svg") if e.get("role") == "img"]


@pytest.fixture(scope="module")
def fit():
    return closed_forms.refit(60, 1.1, 0.01, "chebyshev", 30, 0)


def test_three_fits_with_data_truth_and_samples(fit):
    plain = drawings.fits(fit)
    assert len(svg(plain)) == 3 and "Noise: train RMSE" in plain
    assert f"train RMSE {fit.train['complex']:.3f}, test {fit.test['complex']:.3g}" in plain
    assert len(list(svg(plain)[0].iter("circle"))) >= 30
    more = drawings.fits(fit, np.zeros((301, 5)))
    assert "prior samples" in more and "prior samples" not in plain


def test_coefficients_evidence_and_curves_are_drawn(fit):
    for text in (
        drawings.coefficients(fit, 1.1), drawings.error_by_order(fit, 60),
        drawings.evidence_curve(fit, 60),
        drawings_digits.label_curves(np.linspace(0, 1, 5), np.ones(5), np.linspace(1, 0, 5),
                              -np.arange(5.0), 0.3),
        drawings.descent(np.array([10, 50, 200]), np.zeros(3), np.array([0.1, 0.8, 0.2]),
                         np.ones(3), 50, np.ones(3) / 2),
        drawings_networks.training([(0, np.ones(2)), (10, np.ones(2) / 2)]),
        drawings_networks.width_chart(np.array([4, 8]), np.ones(2), np.ones(2), np.zeros(2)),
        drawings_digits.symmetry_bars({"rotated": (0.9, 0.7, 0.9)}),
        drawings.axes_chart([("a", 0.1, 0.9)], [("yours", 0.9, 0.9)]),
    ):  # fmt: skip
        assert svg(text)
    assert "No step yet" in drawings_networks.training([])
    assert "J = 60" in drawings.evidence_curve(fit, 60)


def test_the_calculator_shows_its_bounds_and_where_they_are_vacuous():
    text = drawings_bounds.calculator(0.1, 1000, 100 / np.log(2), 0.05)
    (picture,) = svg(text)
    words = [e.text for e in picture.iter("text")]
    assert {"0.3269", "0.2857", "0.2826", "vacuous, ≥ 0.9"} <= set(words)
    assert "kl 0.286" in picture.get("aria-label")


def test_runs_lie_among_curves_of_equal_bound():
    text = drawings_bounds.iso_bounds([("width 64", 0.15, 372.0)], 1437, 0.05, (0.2, 300.0))
    assert "vacuous, bound ≥ 0.9" in text and "width 64" in text and "calculator" in text
    svg(text)


def test_the_bar_of_bits_adds_up():
    message = encode(np.arange(40) % 5, 5, 3)
    assert isinstance(message, Message)
    text = drawings_bounds.bit_bar(message.parts)
    assert f"{len(message)} bits" in text
    widths = [float(e.get("width")) for e in svg(text)[0].iter("rect")]
    assert sum(widths) == pytest.approx(drawings.WIDE - 20, abs=0.5)


def test_digits_in_a_row_are_named_and_one_is_chosen():
    pictures = np.random.default_rng(0).random((3, 64))
    text = drawings_digits.digit_row(pictures, ["1 as 7", "2 as 3", "4"], 1, "Wrong")
    (picture,) = svg(text)
    assert len(list(picture.iter("image"))) == 3 and len(list(picture.iter("rect"))) == 1
    assert picture.get("aria-label") == "Wrong: 1 as 7, 2 as 3, 4"


def test_the_curve_of_r_marks_what_the_evidence_chose():
    evidence = -np.abs(np.arange(10)[:, None] - 3.0) * np.ones((10, 5))
    choice = Choice(evidence, np.linspace(0.5, 0.9, 10), MIXTURES[3], 0.1)
    text = drawings_digits.mixture_curve(choice, 0.1, "orient")
    assert "chosen by the evidence" in text and f"accuracy {choice.soft:.3f}" in text


def test_the_loss_plane_shows_line_and_curve(finished):
    paths = finished.connected[4]
    (picture,) = svg(drawings_networks.plane_picture(paths.plane))
    assert len(list(picture.iter("circle"))) == 2 and len(list(picture.iter("path"))) == 2
    assert svg(drawings_networks.path_chart(paths))
    at = drawings_networks.place_of(paths, 0.31)
    assert paths.t[at] == pytest.approx(0.3)
    assert "t = 0.3" in drawings_networks.path_chart(paths, t=0.31)
    (marked,) = svg(drawings_networks.plane_picture(paths.plane, 0.3))
    assert len(list(marked.iter("circle"))) == 3 and len(list(marked.iter("rect"))) == 1
    assert f"{paths.curve[0, at]:.3g}" in drawings_networks.path_words(paths, 0.3)


def test_the_shaded_region_is_one_rule_everywhere():
    (picture,) = svg(drawings_bounds.calculator(0.1, 1000, 100, 0.05))
    shade = next(picture.iter("rect"))
    chance = 150 + (560 - 150) * 0.9 / 1.2
    assert float(shade.get("x")) == pytest.approx(chance, abs=0.1)


def test_figures_of_the_page_in_closed_form_are_drawn():
    sample = factored.sample("cosine", 20, 0.2, 0, "chebyshev")
    assert len(svg(drawings.sample_fits(sample))) == 3
    weak = factored.Weak(0).errors(20, 1.0, 0.0, 0.001)
    assert len(svg(drawings.weak_descent(weak))) == 2
    assert svg(drawings.exact_descent(factored.Isotropic(12, 0), 0.5, 1.0))
    learner = factored.Learner(50, [(0, 1.0, 0.05), (9, 0.1, 0.8)], np.zeros(61), 0.3)
    assert len(svg(drawings_networks.turning(learner))) == 2
    flat = np.zeros(61)
    for who in (None, learner):
        text = drawings_networks.learned_function(factored.ALONG, flat, flat, who)
        assert svg(text) and ("network" in text) == (who is not None)
    text = drawings_networks.learned_errors(factored.INDEX_SIZES, np.ones(6), {50: 0.3}, 50)
    assert svg(text) and "network" in text


def test_the_thumbnail_is_a_small_png():
    from PIL import Image

    image = Image.open(io.BytesIO(views.thumbnail()))
    assert image.size == (800, 400) and image.format == "PNG"
