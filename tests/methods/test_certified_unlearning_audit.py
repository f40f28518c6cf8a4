"""Audits of certified unlearning: exact adversaries never beat a certificate, samples agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binomtest, norm

from workbench.methods.certified_unlearning import audit
from workbench.methods.certified_unlearning.accounting import delta_of, epsilon_of, mu_of
from workbench.methods.certified_unlearning.certificates import GradientClipping, cascade

DEFAULT = GradientClipping(0.03, 3, 0.001, 100)
PLAIN = GradientClipping(1, 1, 0.1, 0)


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_two_point_chain_is_below_the_cascade_and_equal_for_one_step(T, epsilon):
    C2, sigma = 0.5, 0.5
    value = audit.two_point_chain(C2, sigma, T, epsilon)
    bound = cascade(C2, sigma, epsilon, 1e-5, steps=T).deltas[-1]
    assert value <= bound + 1e-15
    if T == 1:
        assert value == pytest.approx(bound, rel=1e-10)
    p = norm.cdf(-C2 / sigma)
    q = (1 - (1 - 2 * p) ** (T - 1)) / 2

    def excess(x):
        right, left = norm.pdf(x, C2, sigma), norm.pdf(x, -C2, sigma)
        first, second = (1 - q) * right + q * left, q * right + (1 - q) * left
        return max(first - np.exp(epsilon) * second, 0.0)

    by_quadrature, _ = quad(excess, -6, 6, limit=400, points=[0.0])
    assert value == pytest.approx(by_quadrature, abs=1e-6)


@pytest.mark.parametrize(("certificate", "T"), [(DEFAULT, 7), (PLAIN, 10), (DEFAULT, 2)])
@pytest.mark.parametrize("label", [0.5, 1.0, 4.0])
def test_the_sign_adversary_never_beats_the_exact_delta(certificate, T, label):
    sigma = float(certificate.sigma(mu_of(label, 1e-5), T))
    mu = float(certificate.mu(sigma, T))
    for epsilon in (0.1, 1.0, label):
        shown = audit.sign_adversary(certificate, sigma, T, epsilon)
        assert 0 <= shown <= delta_of(mu, epsilon) * (1 + 1e-9)
    assert audit.adversary_epsilon(certificate, sigma, T, 1e-5) <= label + 1e-9


@pytest.mark.parametrize("certificate", [DEFAULT, PLAIN])
def test_the_sign_adversary_meets_the_certificate_for_one_step(certificate):
    sigma = float(certificate.sigma(mu_of(1.0, 1e-5), 1))
    for epsilon in (0.0, 0.5, 1.0):
        shown = audit.sign_adversary(certificate, sigma, 1, epsilon)
        assert shown == pytest.approx(delta_of(mu_of(1.0, 1e-5), epsilon), rel=1e-5)
    assert audit.adversary_epsilon(certificate, sigma, 1, 1e-3) == pytest.approx(
        epsilon_of(mu_of(1.0, 1e-5), 1e-3), abs=1e-3
    )


def test_quadrature_agrees_with_samples():
    sigma = 0.05
    plus, minus = audit.scalar_adversary(DEFAULT, sigma, 7, 200_000, 3)
    shown = max((plus > c).mean() - np.e * (minus > c).mean() for c in np.linspace(0, 0.3, 60))
    assert shown == pytest.approx(audit.sign_adversary(DEFAULT, sigma, 7, 1.0), abs=0.01)


def test_samples_are_of_the_two_starts_and_repeat():
    plus, minus = audit.scalar_adversary(DEFAULT, 0.0, 7, 5)
    # Without noise the two runs are apart by exactly Delta_T: the bound is met.
    assert plus - minus == pytest.approx(np.full(5, DEFAULT.shift(7)))
    again = audit.scalar_adversary(DEFAULT, 0.1, None, 1000, 4)
    assert np.array_equal(again, audit.scalar_adversary(DEFAULT, 0.1, 7, 1000, 4))
    many = audit.scalar_adversary(DEFAULT, 0.1, 1, audit.CHUNK + 10, 4)
    assert len(many[0]) == audit.CHUNK + 10 and np.isfinite(many).all()


def test_lower_bounds_refute_the_released_label_and_respect_the_exact_one():
    for certificate in (DEFAULT, PLAIN):
        T = certificate.steps()
        for accountant, label in (("released", 1.0), ("exact", 1.0), ("exact", 4.0)):
            mu = float(mu_of(label, 1e-5, accountant))
            samples = audit.scalar_adversary(
                certificate, float(certificate.sigma(mu, T)), T, 200_000
            )
            lower = audit.lower_bound(*samples, 1e-5)
            assert lower <= epsilon_of(mu, 1e-5)
            if accountant == "released":
                assert lower > 1.5


@given(st.integers(0, 50), st.integers(0, 50))
def test_clopper_pearson_agrees_with_scipy(k, extra):
    n = k + extra + 1
    low, high = audit.clopper_pearson(k, n)
    peer = binomtest(k, n).proportion_ci(method="exact")
    assert low == pytest.approx(peer.low, abs=1e-9) and high == pytest.approx(peer.high, abs=1e-9)


def test_a_lower_bound_rarely_exceeds_the_truth():
    rng = np.random.default_rng(0)
    truth = float(epsilon_of(1.0, 0.05))
    wrong = 0
    for _ in range(100):
        plus, minus = rng.normal(1, 1, 2000), rng.normal(0, 1, 2000)
        wrong += audit.lower_bound(plus, minus, 0.05) > truth
    assert wrong <= 5
    same = rng.normal(size=(2, 2000))
    assert audit.lower_bound(*same, 1e-5) < 0.5


def test_operating_points_lie_on_the_trade_off_curve_and_boxes_hold_them():
    rng = np.random.default_rng(1)
    plus, minus = rng.normal(1, 1, 50_000), rng.normal(0, 1, 50_000)
    type1, type2, boxes = audit.operating_points(plus, minus)
    assert len(type1) == len(type2) == len(boxes) == 18
    assert type2 == pytest.approx(norm.cdf(norm.ppf(1 - type1) - 1), abs=0.01)
    assert np.all((boxes[:, 0] <= type1) & (type1 <= boxes[:, 1]))
    assert np.all((boxes[:, 2] <= type2) & (type2 <= boxes[:, 3]))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20),
       st.lists(st.integers(0, 5), min_size=1, max_size=20))  # fmt: skip
@settings(max_examples=50)
def test_the_area_is_the_share_of_pairs_in_order(a, b):
    a, b = np.array(a, float), np.array(b, float)
    pairs = (a[:, None] > b) + 0.5 * (a[:, None] == b)
    assert audit.auc(a, b) == pytest.approx(pairs.mean())
    low, high = audit.auc_interval(audit.auc(a, b), len(a), len(b))
    assert 0 <= low <= audit.auc(a, b) + 1e-12 and audit.auc(a, b) - 1e-12 <= high <= 1


def test_the_interval_of_an_area_covers_it():
    rng = np.random.default_rng(2)
    truth, inside = norm.cdf(1 / np.sqrt(2)), 0
    for _ in range(200):
        area = audit.auc(rng.normal(1, 1, 60), rng.normal(0, 1, 90))
        low, high = audit.auc_interval(area, 60, 90)
        inside += low <= truth <= high
    assert inside >= 180
