"""Accountants of certified unlearning: the oracles of its specification, and what must be true."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from workbench.methods.certified_unlearning import accounting
from workbench.methods.certified_unlearning.accounting import (
    ACCOUNTANTS,
    classical_sigma,
    delta_of,
    epsilon_of,
    largest_auc,
    mu_of,
    theta,
    tradeoff,
)

RHO = [0.1, 1, 5, 10, 50, 100]


def test_theta_is_the_hockey_stick_divergence_of_two_gaussians():
    assert theta(1, 1) == pytest.approx(0.12693674, abs=1e-8)
    for epsilon, r in ((0.5, 2.0), (3.0, 1.5)):

        def excess(x, e=epsilon, r=r):
            return max(norm.pdf(x - r) - np.exp(e) * norm.pdf(x), 0.0)

        value, _ = quad(excess, -10, 15, points=[epsilon / r + r / 2])
        assert theta(epsilon, r) == pytest.approx(value, abs=1e-9)


def test_theta_at_zero_is_total_variation_and_has_its_limits():
    r = np.array([0.1, 1.0, 5.0])
    assert theta(0, r) == pytest.approx(2 * ndtr(r / 2) - 1, rel=1e-12)
    assert theta(1, 0) == 0 and theta(1, np.inf) == 1 and theta(np.inf, 3) == 0
    assert np.all(np.diff(theta(np.linspace(0, 20, 50), 2.0)) < 0)
    assert 0 < theta(1e5, 440.0) < 1  # e^epsilon itself overflows


def test_delta_and_epsilon_at_mu_one():
    assert epsilon_of(1.0, 1e-5) == pytest.approx(4.377178, abs=1e-6)
    assert delta_of(1.0, 4.377178) == pytest.approx(1e-5, rel=1e-5)
    assert epsilon_of(1.0, 1e-5, "rdp") == pytest.approx(4.72839, abs=1e-5)


def test_mu_of_epsilon():
    epsilon = np.array([0.1, 0.5, 1, 2, 5, 10, 50])
    known = [0.03252078, 0.14221056, 0.26805112, 0.50155169, 1.12124182, 2.00044562, 6.67732334]
    assert mu_of(epsilon, 1e-5) == pytest.approx(known, abs=1e-8)
    # To hold epsilon = 1 exactly: rho_z = 0.0359 and 5.28 times the noise of rho_z = 1.
    assert mu_of(1.0, 1e-5) ** 2 / 2 == pytest.approx(0.0359, abs=5e-5)
    assert np.sqrt(2) / mu_of(1.0, 1e-5) == pytest.approx(5.28, abs=0.005)


def test_the_four_accountants_agree_with_their_oracles_and_in_their_order():
    mu = np.sqrt(2 * np.array(RHO))
    found = {name: epsilon_of(mu, 1e-5, name) for name in ACCOUNTANTS}
    exact = [1.760, 6.573, 17.857, 28.374, 91.817, 159.442]
    assert found["exact"] == pytest.approx(exact, abs=1e-3)
    assert found["released"][1] == pytest.approx(1.004, abs=5e-4)
    assert found["rdp"][1] == pytest.approx(7.077, abs=5e-4)
    assert found["zcdp"][1] == pytest.approx(7.786, abs=5e-4)
    for small, large in (("released", "exact"), ("exact", "rdp"), ("rdp", "zcdp")):
        assert np.all(found[small] <= found[large])


@given(st.floats(0.01, 1000), st.floats(-10, -0.5), st.sampled_from(sorted(ACCOUNTANTS)))
def test_epsilon_and_mu_invert_each_other(epsilon, exponent, accountant):
    delta = 10**exponent
    try:
        mu = mu_of(epsilon, delta, accountant)
    except ValueError as error:
        assert accountant == "released" and "reports at least" in str(error)
        return
    if delta < 0.2:  # above, epsilon may be 0 for a positive mu
        assert epsilon_of(mu, delta, accountant) == pytest.approx(epsilon, rel=1e-6, abs=1e-9)


@given(st.floats(1e-3, 50), st.floats(1e-12, 0.3))
def test_the_exact_epsilon_gives_back_delta(mu, delta):
    epsilon = epsilon_of(mu, delta)
    if epsilon > 0:
        assert delta_of(mu, epsilon) == pytest.approx(delta, rel=1e-7)
    else:
        assert delta_of(mu, 0.0) <= delta * (1 + 1e-9)


def test_epsilon_has_the_shape_of_mu_and_its_limits():
    grid = np.linspace(0, 3, 12).reshape(3, 4)
    assert epsilon_of(grid, 1e-5).shape == (3, 4)
    assert epsilon_of(0.0, 1e-5) == 0 and epsilon_of(np.inf, 1e-5) == np.inf


def test_the_trade_off_curve_and_the_area_under_it():
    assert tradeoff(0.0, 0.3) == pytest.approx(0.7)
    assert tradeoff(1.0, 0.05) == pytest.approx(norm.cdf(norm.ppf(0.95) - 1))
    area, _ = quad(lambda a: 1 - tradeoff(1.0, a), 0, 1)
    assert largest_auc(1.0) == pytest.approx(area, abs=1e-6)
    assert largest_auc(mu_of(1.0, 1e-5)) + 0.03 == pytest.approx(0.605, abs=5e-4)


def test_the_classical_calibration_and_where_it_becomes_too_small():
    assert classical_sigma(1, 1, 1e-5) == pytest.approx(4.844805, abs=1e-6)
    assert 1 / mu_of(1.0, 1e-5) == pytest.approx(3.730632, abs=1e-6)
    crossing = 8.41977
    assert classical_sigma(1, crossing, 1e-5, warn=False) * mu_of(crossing, 1e-5) == pytest.approx(
        1, abs=1e-6
    )
    assert classical_sigma(1, 9, 1e-5, warn=False) < 1 / mu_of(9.0, 1e-5)
    with pytest.warns(UserWarning, match="proven for epsilon <= 1 only"):
        classical_sigma(1, 1.5, 1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classical_sigma(1, 1.0, 1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mu_of(0.0, 1e-5), "epsilon = 0.0; allowed are numbers above 0"),
        (lambda: mu_of(2e6, 1e-5), "up to 1e6"),
        (lambda: mu_of(float("nan"), 1e-5), "epsilon = nan"),
        (lambda: epsilon_of(1.0, 0.5), "delta = 0.5; allowed are numbers between 0 and 0.5"),
        (lambda: epsilon_of(1.0, 0.0), "delta = 0.0"),
        (lambda: epsilon_of(1.0, 1e-5, "renyi"), "allowed are exact, rdp, zcdp, released"),
        (lambda: mu_of(1e-3, 1e-5, "released"), "reports at least 0.003609"),
    ],
)
def test_bad_input_is_one_line(call, words):
    with pytest.raises(ValueError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


def test_renyi_minimizes_over_all_orders():
    orders = 1 + np.geomspace(1e-3, 1e5, 200_000)
    for rho in RHO:
        values = orders * rho + accounting._conversion(orders, 1e-5)
        assert epsilon_of(np.sqrt(2 * rho), 1e-5, "rdp") == pytest.approx(values.min(), abs=1e-6)


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_renyi_agrees_with_opacus(delta):
    rdp = pytest.importorskip("opacus.accountants.analysis.rdp")
    orders = 1 + np.geomspace(1e-2, 1e4, 20_000)
    for rho in RHO:
        theirs, _ = rdp.get_privacy_spent(orders=orders, rdp=rho * orders, delta=delta)
        assert epsilon_of(np.sqrt(2 * rho), delta, "rdp") == pytest.approx(theirs, abs=1e-5)
