"""Polynomials, processes, symmetry and double descent against closed forms and plain programs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.methods.soft_inductive_bias import (
    closed_forms,
    digits,
    double_descent,
    polynomials,
    processes,
)
from workbench.methods.soft_inductive_bias.dimension import effective_dimension, linear_gaussian

GRID = np.linspace(-1, 1, 30)


@pytest.mark.parametrize("gamma, order", [(1.0, 7), (1.1, 20), (2.0, 150)])
def test_the_kernel_of_monomials_is_a_geometric_sum(gamma, order):
    phi = polynomials.features(GRID, order, "monomial")
    made = (phi * polynomials.prior_variances(order, gamma)) @ phi.T
    closed = polynomials.monomial_kernel(GRID, GRID, order, gamma)
    np.testing.assert_allclose(closed, made, atol=1e-12 * max(1, np.abs(made).max()))


@pytest.mark.parametrize("basis", polynomials.BASES)
def test_dual_weights_are_those_of_primal_ridge(basis):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(30)
    phi = polynomials.features(GRID, 5, basis)
    costs = 1 / polynomials.prior_variances(5, 1.3)
    primal = np.linalg.solve(phi.T @ phi / 0.04 + np.diag(costs), phi.T @ y / 0.04)
    made = polynomials.fit(GRID, y, 5, 1.3, 0.04, basis)
    np.testing.assert_allclose(made.weights, primal, atol=1e-10)


def test_without_preference_and_noise_the_fit_is_that_of_minimum_norm():
    y = np.random.default_rng(1).standard_normal(30)
    made = polynomials.fit(GRID, y, 150, 1.0, 1e-10)
    plain = polynomials.least_squares(GRID, y, 150)
    np.testing.assert_allclose(made.weights, plain.weights, atol=1e-6)
    np.testing.assert_allclose(plain.predict(GRID), y, atol=1e-9)


def test_evidence_is_the_density_of_a_normal_and_columns_are_independent():
    from scipy.stats import multivariate_normal

    y = np.random.default_rng(2).standard_normal((30, 3))
    phi = polynomials.features(GRID, 12)
    covariance = (phi * polynomials.prior_variances(12, 1.1)) @ phi.T + 0.01 * np.eye(30)
    wanted = multivariate_normal(np.zeros(30), covariance).logpdf(y.T)
    together = polynomials.fit(GRID, y, 12)
    np.testing.assert_allclose(together.evidence, wanted, rtol=1e-9)
    alone = polynomials.fit(GRID, y[:, 1], 12)
    np.testing.assert_allclose(together.weights[:, 1], alone.weights, rtol=1e-9)


def test_structures_and_bases_are_those_of_the_definition():
    x = np.array([-0.3, 0.7])
    np.testing.assert_allclose(polynomials.structure("simple", x), 0.5 - x + 1.2 * x**3)
    np.testing.assert_allclose(
        polynomials.structure("complex", x), np.cos(9 * x) * np.exp(-x) + 0.5 * np.sin(4 * x)
    )
    np.testing.assert_allclose(
        polynomials.features(x, 2, "legendre")[:, 2], np.sqrt(5) * (3 * x**2 - 1) / 2
    )
    np.testing.assert_allclose(polynomials.features(x, 3)[:, 3], 4 * x**3 - 3 * x)
    assert polynomials.draw("noise", GRID, np.random.default_rng(0), 4).shape == (30, 4)
    sample = polynomials.prior_samples(GRID, 9, 1.1, "chebyshev", np.random.default_rng(0), 7)
    assert sample.shape == (30, 7)


def test_a_monomial_kernel_is_too_smooth_to_fit_noise():
    y = polynomials.draw("noise", GRID, np.random.default_rng(0), 20)
    left = {
        basis: np.sqrt(((polynomials.fit(GRID, y, basis=basis).predict(GRID) - y) ** 2).mean())
        for basis in polynomials.BASES
    }
    assert left["monomial"] > 0.6 and max(left["chebyshev"], left["legendre"]) < 0.02


@pytest.mark.parametrize(
    "values, says",
    [
        ({"gamma": 0.9}, "gamma = 0.9; allowed are numbers from 1 .*anti-regularization"),
        ({"order": -1}, "order = -1; allowed are integers from 0"),
        ({"sigma2": -0.1}, "sigma2 = -0.1; allowed are numbers from 0"),
        ({"order": 5, "sigma2": 0.0}, "singular kernel: add a jitter"),
        ({"basis": "monomials"}, "did you mean 'monomial'"),
    ],
)
def test_bad_polynomials_are_one_line(values, says):
    with pytest.raises(ValueError, match=says) as raised:
        polynomials.fit(GRID, np.zeros(30), **values)
    assert "\n" not in str(raised.value)


def test_the_gaussian_process_is_that_of_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    s = digits.split(150, 0, n_test=50)
    y = digits.centered_one_hot(s.train_y)
    own = processes.regression(0.1 * processes.rbf(s.train_x, s.train_x), y, 0.01)
    peer = GaussianProcessRegressor(ConstantKernel(0.1) * RBF(1.0), alpha=0.01, optimizer=None)
    peer.fit(s.train_x, y)
    made = own.predict(0.1 * processes.rbf(s.test_x, s.train_x))
    np.testing.assert_allclose(made, peer.predict(s.test_x), atol=1e-6)
    assert own.evidence.sum() == pytest.approx(peer.log_marginal_likelihood(), rel=1e-9)


def test_both_sides_of_the_identities_of_a_linear_model_are_equal():
    rng = np.random.default_rng(3)
    for n, d in ((5, 3), (12, 20)):
        found = linear_gaussian(rng.standard_normal((n, d)), rng.standard_normal(n), 0.7, 0.2)
        assert -found["evidence"] == pytest.approx(found["fit"] + found["divergence"], abs=1e-9)
        assert found["dimension"] == pytest.approx(found["trace"], abs=1e-9)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_effective_dimension_is_between_zero_and_rank_and_falls_with_alpha(values, alpha):
    made = effective_dimension(np.array(values), alpha)
    assert 0 <= made <= np.count_nonzero(values)
    assert effective_dimension(np.array(values), 2 * alpha) <= made


def test_alpha_must_be_positive():
    with pytest.raises(ValueError, match=r"alpha = 0; allowed are numbers above 0"):
        effective_dimension(np.ones(3), 0)


def test_the_invariant_kernel_does_not_see_rotations():
    x, _ = digits.load()
    a, b = x[:4], x[4:9]
    for group in digits.GROUPS:
        maps = digits.permutations(group)
        made = processes.invariant_kernel(a, b, maps)
        for g in maps:
            np.testing.assert_allclose(
                processes.invariant_kernel(a[:, g], b, maps), made, atol=1e-12
            )
            np.testing.assert_allclose(
                processes.invariant_kernel(a, b[:, g], maps), made, atol=1e-12
            )
        assert digits.as_group(maps, 64) is maps
    turned = x[0].reshape(8, 8)
    np.testing.assert_array_equal(x[0][digits.permutations("C4")[1]], np.rot90(turned).ravel())


def test_soft_symmetry_has_hard_and_none_as_its_ends():
    s = digits.task("upright", 40, 0, n_test=60)
    maps = digits.permutations("C4")
    hard = processes.invariant_kernel(s.train_x, s.train_x, maps)
    none = processes.rbf(s.train_x, s.train_x, 1.5)
    np.testing.assert_array_equal(processes.soft_kernel(hard, none, 0.0), hard)
    np.testing.assert_array_equal(processes.soft_kernel(hard, none, 1.0), none)
    cross = (
        processes.invariant_kernel(s.test_x, s.train_x, maps),
        processes.rbf(s.test_x, s.train_x, 1.5),
    )
    y = digits.centered_one_hot(s.train_y)
    found = processes.choose_symmetry((hard, none), cross, y, s.test_y)
    gp = processes.regression(0.2 * hard, y, processes.SYMMETRY_NOISE)
    amplitude = processes.AMPLITUDES.index(0.2)
    assert found.evidence[0, amplitude] == pytest.approx(gp.evidence.sum(), rel=1e-8)
    best = processes.AMPLITUDES[int(found.evidence[0].argmax())]
    gp = processes.regression(best * hard, y, processes.SYMMETRY_NOISE)
    assert found.hard == (gp.predict(best * cross[0]).argmax(1) == s.test_y).mean()
    with pytest.raises(ValueError, match=r"r = 1.5; allowed are numbers from 0 to 1"):
        processes.soft_kernel(hard, none, 1.5)


def test_a_group_must_map_the_grid_to_itself():
    with pytest.raises(ValueError, match=r"45 degrees does not map the grid.*nearest is 0"):
        digits.rotations([0, 45])
    with pytest.raises(ValueError, match="no group"):
        digits.rotations([0, 90])
    assert digits.rotations([0, 90, 180, 270]).shape == (4, 64)
    with pytest.raises(ValueError, match="does not map the image grid to itself"):
        digits.as_group(np.zeros((2, 64), int), 64)
    with pytest.raises(ValueError, match="integer array"):
        digits.as_group(np.zeros((2, 5)), 64)
    with pytest.raises(ValueError, match="did you mean 'flip'"):
        digits.permutations("flips")


def test_a_group_of_your_own_reaches_the_kernel():
    s = digits.task("upright", 40, 0, n_test=60)
    turned = closed_forms.choice_of(s, digits.rotations([0, 90, 180, 270]))
    np.testing.assert_allclose(turned.evidence, closed_forms.choice_of(s, "C4").evidence)
    transposed = np.stack([np.arange(64), np.arange(64).reshape(8, 8).T.ravel()])
    own = closed_forms.choice_of(s, transposed)
    assert not np.allclose(own.evidence[0], turned.evidence[0])
    np.testing.assert_allclose(own.evidence[-1], turned.evidence[-1])  # r = 1: no symmetry
    with pytest.raises(ValueError, match="no group"):
        closed_forms.choice_of(s, transposed[1:])
    with pytest.raises(ValueError, match="does not map the image grid to itself"):
        closed_forms.symmetric_choice("upright", 40, 0, np.zeros((1, 64), int))


def test_corruption_replaces_the_share_that_was_asked_for_and_grows():
    _, labels = digits.load()
    one, two = (digits.corrupted(labels, rho, 7) for rho in (0.3, 0.6))
    assert (one != labels).mean() == pytest.approx(0.27, abs=0.04)
    changed = one != labels
    np.testing.assert_array_equal(one[changed], two[changed])
    np.testing.assert_array_equal(digits.corrupted(labels, 0.0, 7), labels)
    with pytest.raises(ValueError, match=r"rho = 1.2; allowed are numbers from 0 to 1"):
        digits.corrupted(labels, 1.2, 7)


def test_tasks_are_exact_approximate_and_broken():
    upright = digits.task("upright", 100, 1)
    for name in ("rotated", "orient"):
        s = digits.task(name, 100, 1)
        assert (np.sort(s.train_x, 1) == np.sort(upright.train_x, 1)).all()
        shifted = (s.train_y - upright.train_y) % 10
        assert set(shifted) == ({0, 5} if name == "orient" else {0})
    assert len(upright.test_x) == 600
    assert not {x.tobytes() for x in upright.train_x} & {x.tobytes() for x in upright.test_x}


@pytest.mark.parametrize("d", double_descent.EXACT_DIMENSIONS)
def test_isotropic_designs_have_the_error_of_the_closed_form(d):
    drawn = double_descent.simulated_error(50, d, 0.5, 400, 0)
    exact = double_descent.exact_error(50, d, 0.5)
    assert abs(drawn.mean() - exact) < 4 * drawn.std(ddof=1) / 20


def test_the_closed_form_has_the_values_of_the_specification():
    wanted = {10: 0.0641, 30: 0.395, 45: 2.81, 60: 1.556, 100: 0.755, 200: 0.834}
    for d, value in wanted.items():
        assert double_descent.exact_error(50, d, 0.5) == pytest.approx(value, rel=2e-3)
    assert double_descent.exact_error(50, 50, 0.5) == np.inf


@pytest.mark.parametrize("n, d", [(20, 8), (20, 20), (8, 30)])
def test_minimum_norm_is_lstsq_and_ridge_is_ridge(n, d):
    rng = np.random.default_rng(n + d)
    x, y = rng.standard_normal((n, d)), rng.standard_normal((n, 2))
    singular = np.linalg.svd(x, full_matrices=False)
    plain = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(double_descent.minimum_norm(singular, y), plain, atol=1e-8)
    ridge = np.linalg.solve(x.T @ x + 0.3 * np.eye(d), x.T @ y)
    np.testing.assert_allclose(double_descent.minimum_norm(singular, y, 0.3), ridge, atol=1e-9)


def test_weak_features_peak_at_the_number_of_examples():
    found = {d: double_descent.weak_features(d, np.arange(3), n=40) for d in (10, 40, 320)}
    assert found[40].test.mean() > 3 * found[10].test.mean() > found[320].test.mean()
    assert found[320].train.max() < 1e-9
    again = double_descent.weak_features(40, np.arange(3), n=40)
    np.testing.assert_array_equal(again.test, found[40].test)


def test_random_features_are_nested_and_answer_ridge_from_one_factor():
    made = double_descent.relu_features(120, 0, n=100)
    plain, soft = made.errors(0.0)[1], made.errors(0.02)[1]
    assert soft < plain
    assert made.errors(0.0, 0.0)[0] == 0.0 and made.errors(0.0, 0.9)[1] > plain
    u, s, vt = double_descent.relu_features(60, 0, n=100).singular
    U, S, VT = made.singular
    np.testing.assert_allclose(
        ((u * s) @ vt) * 60**0.5, (((U * S) @ VT) * 120**0.5)[:, :60], atol=1e-9
    )
    with pytest.raises(ValueError, match=r"d = 5000; allowed are integers from 1 to 4000"):
        double_descent.relu_features(5000, 0)
