"""The regularizer g: closed values, Fenchel-Young without a solver, and what a prox must obey."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.methods.sparse_glm import prox

V = np.array([3, 2, 1.5, 0.2, -1.4])


def array(*values):
    return np.array(values, float)


def test_values_of_g():
    """Head 3, tail 2^2 / 1: (9 + 4) / 2; and four equal numbers of which two may be used."""
    assert prox.value(array(3, 1, 1), 2, 10.0) == 6.5
    assert prox.value(array(1, 1, 1, 1), 2, 10.0) == 4
    sparse = array(0, -2, 0, 1, 0)
    assert prox.value(sparse, 2, 10.0) == 2.5 == prox.value(sparse, 4, 10.0)


def test_g_is_infinite_outside_its_domain():
    assert prox.value(array(2, 0), 1, 1.0) == np.inf
    assert prox.value(array(1, 1, 1), 2, 1.0) == np.inf
    assert prox.value(array(1, 0.5, 0.5), 2, 1.0) < np.inf
    assert prox.value(array(0, 0), 0, 1.0) == 0 and prox.value(array(1, 0), 0, 1.0) == np.inf


def test_the_conjugate_is_the_sum_of_the_largest_hubers():
    assert prox.conjugate(array(3, -1, 0.5), 2, 1.0) == 3.0
    assert prox.conjugate(array(3, -1, 0.5), 3, 100.0) == pytest.approx(0.5 * (9 + 1 + 0.25))


def test_without_sparsity_and_box_it_is_a_ridge():
    beta = array(1, -4, 2)
    assert prox.value(beta, 3, 1e9) == pytest.approx(0.5 * beta @ beta)
    assert prox.prox(beta, 0.7, 3, 1e9) == pytest.approx(beta / 1.7)


def test_with_one_feature_it_is_half_the_squared_l1_norm():
    beta = array(1, -4, 2)
    assert prox.value(beta, 1, 1e9) == pytest.approx(0.5 * 49)


@pytest.mark.parametrize(
    ("v", "tau", "k", "M", "b"),
    [
        (V, 1.0, 2, 10.0, [1.5, 0.775, 0.275, 0, -0.175]),
        (V, 1.0, 2, 0.8, [0.8, 19 / 30, 2 / 15, 0, -1 / 30]),
        (array(1, 1, 1), 0.5, 1, 5.0, [0.4, 0.4, 0.4]),
    ],
)
def test_prox_of_the_worked_examples(v, tau, k, M, b):
    assert prox.prox(v, tau, k, M) == pytest.approx(b, abs=1e-12)
    assert prox.pooling(v, tau, k, M).b == pytest.approx(b, abs=1e-12)


def test_weights_of_the_worked_example():
    b = prox.prox(V, 1.0, 2, 10.0)
    expected = [1, 0.6326530612, 0.2244897959, 0, 0.1428571429]
    assert prox.weights(b, 2) == pytest.approx(expected)


def cases(count, seed=0):
    """Random (v, tau, k, M) with ties, k = 1, k = p, tiny and huge tau and M."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        p = int(rng.integers(1, 40))
        k = int(rng.choice([1, p, rng.integers(1, p + 1)]))
        v = rng.standard_normal(p) * 10.0 ** rng.uniform(-2, 2)
        if number % 3 == 0:
            v = np.round(v, 1)
        if number % 7 == 0:
            v[rng.random(p) < 0.5] = 0.0
        yield v, 10.0 ** rng.uniform(-4, 4), k, 10.0 ** rng.uniform(-3, 3)


def test_fenchel_young_holds_with_equality_on_ten_thousand_cases():
    """b = prox(v) exactly when (v - b) / tau is a subgradient of g at b."""
    worst = 0.0
    for v, tau, k, M in cases(10_000):
        b = prox.prox(v, tau, k, M)
        a = (v - b) / tau
        left, right = prox.value(b, k, M) + prox.conjugate(a, k, M), a @ b
        # (v - b) / tau loses digits where b nearly equals v: an error of 1e-16 |v| / tau in a.
        scale = max(abs(right), 1e-7 * np.abs(v).max() * np.abs(b).sum() / tau, 1e-300)
        worst = max(worst, abs(left - right) / scale)
    assert worst <= 1e-9


def test_sorting_a_few_and_sorting_all_pool_alike():
    for v, tau, k, M in cases(3_000, seed=1):
        whole = prox.pooling(v, tau, k, M)
        few = prox.prox(v, tau, k, M)
        assert few == pytest.approx(whole.b, rel=1e-9, abs=1e-12 * np.abs(v).max())
        assert (np.diff(whole.nu) <= 1e-12 * max(1, whole.u[0])).all(), "isotonic"


def test_the_block_grows_from_the_border_one_element_a_step():
    found = prox.pooling(V, 1.0, 2, 10.0)
    sizes = [last - first for first, last, _ in found.blocks]
    assert sizes == list(range(2, 2 + len(sizes))) and found.blocks[0][:2] == (1, 3)
    first, last, value = found.blocks[-1]
    assert np.allclose(found.nu[first:last], value)


numbers = st.floats(-50, 50).map(lambda x: round(x, 3))
vectors = st.lists(numbers, min_size=2, max_size=12)


@given(vectors, st.floats(0.01, 50), st.integers(1, 12), st.floats(0.05, 20), st.randoms())
def test_the_prox_follows_permutations_and_signs(v, tau, k, M, random):
    v, k = np.array(v), min(k, len(v))
    order = list(range(len(v)))
    random.shuffle(order)
    signs = np.array([random.choice([-1, 1]) for _ in v])
    plain = prox.prox(v, tau, k, M)
    moved = prox.prox((signs * v)[order], tau, k, M)
    assert moved == pytest.approx((signs * plain)[order], abs=1e-9)


@given(vectors, vectors, st.floats(0.01, 50), st.integers(1, 12), st.floats(0.05, 20))
def test_the_prox_is_firmly_nonexpansive(v, w, tau, k, M):
    size = min(len(v), len(w))
    v, w, k = np.array(v[:size]), np.array(w[:size]), min(k, size)
    moved = prox.prox(v, tau, k, M) - prox.prox(w, tau, k, M)
    assert moved @ moved <= moved @ (v - w) + 1e-8


@given(vectors, st.floats(0.1, 10), st.integers(1, 12), st.floats(0.5, 20))
def test_g_scales_with_its_box(beta, c, k, M):
    beta, k = np.array(beta), min(k, len(beta))
    one, other = prox.value(c * beta, k, M), c**2 * prox.value(beta, k, M / c)
    assert one == pytest.approx(other) or np.isinf([one, other]).any()


@given(vectors, st.integers(1, 12), st.floats(0.05, 20))
def test_weights_attain_g(beta, k, M):
    beta, k = np.array(beta), min(k, len(beta))
    z = prox.weights(beta, k)
    if np.isfinite(prox.value(beta, k, M)) and np.abs(beta).max() > 1e-6:
        used = np.abs(beta) > 0
        assert z.sum() <= k + 1e-9 and (z <= 1).all()
        attained = 0.5 * (beta[used] ** 2 / z[used]).sum()
        assert attained == pytest.approx(prox.value(beta, k, M), rel=1e-9)


@given(vectors, vectors, st.integers(1, 12), st.floats(0.05, 20))
def test_fenchel_youngs_inequality(alpha, beta, k, M):
    size = min(len(alpha), len(beta))
    alpha, beta, k = np.array(alpha[:size]), np.array(beta[:size]), min(k, size)
    # Scaled into the domain, well inside its slack.
    beta = beta * min(1, M / max(np.abs(beta).max(), 1e-9), k * M / max(np.abs(beta).sum(), 1e-9))
    total = prox.value(beta, k, M) + prox.conjugate(alpha, k, M)
    assert total >= alpha @ beta - 1e-9 * (1 + abs(alpha @ beta))
