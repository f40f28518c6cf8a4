"""The relaxation of a node: losses, values known from a conic solver, convergence, safe bounds."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sparse_glm_problems import small, synthetic

from workbench.methods.sparse_glm import _engine as engine
from workbench.methods.sparse_glm import baselines
from workbench.methods.sparse_glm.problem import make_problem
from workbench.methods.sparse_glm.relaxation import (
    ROOT,
    Node,
    dual_bound,
    relax,
    relaxation_steps,
)
from workbench.methods.sparse_glm.supports import Refits, beam_search, upper_bound


@pytest.mark.parametrize("kind", [engine.LINEAR, engine.LOGISTIC])
def test_gradients_against_finite_differences(kind):
    rng = np.random.default_rng(0)
    u, y, h = rng.standard_normal(7) * 2, np.where(rng.random(7) < 0.5, 1.0, -1.0), 1e-6
    gradient = np.empty(7)
    engine.slope(kind, u, y, gradient)
    for i in range(7):
        step = h * np.eye(7)[i]
        slope = (engine.loss(kind, u + step, y) - engine.loss(kind, u - step, y)) / (2 * h)
        assert gradient[i] == pytest.approx(slope, abs=1e-7)


def test_the_logistic_loss_is_stable_far_out():
    u, y, gradient = np.array([1e3, -1e3, 1e3]), np.array([1.0, 1.0, -1.0]), np.empty(3)
    assert engine.loss(engine.LOGISTIC, u, y) == pytest.approx(2000)
    engine.slope(engine.LOGISTIC, u, y, gradient)
    assert gradient == pytest.approx([0, -1, 1])
    ordinary = np.array([0.3, -2.0, 5.0])
    expected = np.logaddexp(0, -y * ordinary).sum()
    assert engine.loss(engine.LOGISTIC, ordinary, y) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("loss", "n", "value"),
    [("linear", 100, 78.3705620), ("linear", 200, 128.2833208),
     ("logistic", 100, 22.9223514), ("logistic", 200, 60.7258325)],
)  # fmt: skip
def test_root_values_are_those_of_a_conic_solver(loss, n, value):
    """Clarabel through cvxpy, stored; the gap closes and the bound is below."""
    found = relax(synthetic(loss, n), tol=1e-9, max_iter=20_000)
    assert found.value == pytest.approx(value, rel=2e-8)
    assert found.lower <= found.value and found.gap < 1e-8


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_a_conic_solver_agrees(loss):
    pytest.importorskip("cvxpy")
    problem = synthetic(loss, 60, k=5)
    conic = baselines.conic_relaxation(problem)
    assert relax(problem, tol=1e-9, max_iter=20_000).value == pytest.approx(conic.value, rel=1e-6)


def test_without_sparsity_and_box_the_relaxation_is_ridge_regression():
    problem = make_problem(*_ridge_data(), "linear", 6, 3.0, 100.0)
    X, y = problem.X, problem.y
    beta = np.linalg.solve(X.T @ X + 3 * np.eye(6), X.T @ y)
    found = relax(problem, tol=1e-10)
    assert found.beta == pytest.approx(beta, abs=1e-5)
    assert found.value == pytest.approx(((X @ beta - y) ** 2).sum() + 3 * beta @ beta)
    assert found.z == pytest.approx(np.ones(6))


def _ridge_data():
    rng = np.random.default_rng(3)
    y = rng.standard_normal(40)
    return rng.standard_normal((40, 6)), y - y.mean()


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_the_relaxation_falls_with_k_and_with_the_box(loss):
    problem = synthetic(loss, 60, k=4)
    for name, grown in (("k", [1, 2, 4, 8]), ("M", [0.2, 0.5, 1.0, 3.0])):
        values = [relax(problem.with_numbers(**{name: x}), tol=1e-8).value for x in grown]
        assert (np.diff(values) <= 1e-6).all()
    risen = [relax(problem.with_numbers(lambda2=x), tol=1e-8).value for x in (0.1, 1.0, 10.0)]
    assert (np.diff(risen) > 0).all()


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_restart_needs_fewer_iterations_and_never_stalls(loss):
    problem = synthetic(loss, 100)
    fast = relax(problem, trace=True)
    slow = relax(problem, restart=False, trace=True)
    plain = relax(problem, restart=False, momentum=False)
    assert fast.ending == slow.ending == plain.ending == "converged"
    assert fast.iterations <= 0.5 * slow.iterations < plain.iterations
    assert fast.restarts.any() and not slow.restarts.any()
    assert (np.diff(fast.values[~fast.restarts]) <= 1e-9 * fast.values[0]).all(), "it descends"
    # Guarded restarts go on to a gap where rounding would make it restart for ever.
    assert relax(problem, tol=1e-10, max_iter=20_000).ending == "converged"


def test_steps_show_how_far_it_is_and_can_be_left():
    problem = synthetic("linear", 100)
    seen = []
    for step in relaxation_steps(problem, chunk=10):
        seen.append((step.data.iterations, step.data.lower))
        if len(seen) == 5:
            break
    assert [iterations for iterations, _ in seen] == [10, 20, 30, 40, 50]
    assert (np.diff([lower for _, lower in seen]) >= 0).all()


def test_a_node_fixes_what_it_says():
    problem = synthetic("linear", 60, k=4)
    found = relax(problem, Node((2, 7), (0, 5)), tol=1e-7)
    assert found.beta[[0, 5]].tolist() == [0, 0] and found.z[[2, 7]].tolist() == [1, 1]
    assert found.z.sum() <= 4 + 1e-6
    assert found.value >= relax(problem, tol=1e-7).value - 1e-6


@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_projected_newton_solves_the_boxed_problem_on_a_support(loss):
    """Against a bounded quasi-Newton method, boxes active and not."""
    from scipy.optimize import minimize

    for M in (0.1, 0.5, 5.0):
        problem = synthetic(loss, 60, k=4, M=M)
        fit = Refits(problem)((0, 15, 30, 31))
        X, y = problem.X[:, fit.support], problem.y

        def objective(b, X=X, y=y, problem=problem):
            u, out = X @ b, np.empty(len(y))
            engine.slope(problem.kind, u, y, out)
            value = engine.loss(problem.kind, u, y) + problem.lambda2 * b @ b
            return value, X.T @ out + 2 * problem.lambda2 * b

        box = [(-M, M)] * 4
        known = minimize(objective, np.zeros(4), jac=True, bounds=box, method="L-BFGS-B",
                         options={"ftol": 1e-15, "gtol": 1e-10})  # fmt: skip
        assert fit.value == pytest.approx(known.fun, rel=1e-9) and fit.value <= known.fun + 1e-9
        assert np.abs(fit.b).max() <= M


# The certificate is never wrong


@pytest.mark.parametrize("seed", range(16))
def test_no_bound_of_any_dual_vector_is_above_brute_force(seed):
    problem = small(seed)
    optimum = baselines.brute_force(problem).value
    rng = np.random.default_rng(seed)
    converged = relax(problem, tol=1e-12, max_iter=20_000)
    candidates = [converged.w, converged.w.astype(np.float32), np.zeros(problem.n)]
    for size in 10.0 ** rng.uniform(-4, 4, 40):
        candidates += [size * rng.standard_normal(problem.n), converged.w * size,
                       converged.w + size * rng.standard_normal(problem.n)]  # fmt: skip
    for w in candidates:
        for scaled in (False, True):
            assert 0 <= dual_bound(problem, w, maximize_scale=scaled) <= optimum
    assert converged.lower <= min(optimum, converged.value)


def test_scaling_a_dual_vector_never_hurts():
    problem = small(4)
    w = 100 * relax(problem).w
    assert dual_bound(problem, w, maximize_scale=True) >= dual_bound(problem, w)


@pytest.mark.parametrize("seed", range(6))
def test_the_linear_bound_is_below_the_dual_function_in_exact_arithmetic(seed):
    """D(w) in rational numbers, from the same floats: rounding is on the safe side, and little."""
    problem = small(2 * seed)
    w = relax(problem, tol=1e-3 if seed % 2 else 1e-12, max_iter=20_000).w
    exact_w = [Fraction(float(x)) for x in w]
    lambda2, M = Fraction(problem.lambda2), Fraction(problem.M)
    heights = []
    for column in problem.XT:
        q = abs(sum(Fraction(float(x)) * b for x, b in zip(column, exact_w, strict=True)))
        a = q / (2 * lambda2)
        heights.append(a * a / 2 if a <= M else M * a - M * M / 2)
    conjugate = sum(
        a * a / 4 + a * Fraction(float(b)) for a, b in zip(exact_w, problem.y, strict=True)
    )
    exact = -conjugate - 2 * lambda2 * sum(sorted(heights)[-problem.k :])
    found = Fraction(dual_bound(problem, w))
    assert found <= exact
    assert float(exact - found) <= 1e-10 * float(exact)


def test_the_logistic_conjugate_is_rounded_up():
    """Against 40 digits."""
    from decimal import Decimal, getcontext

    getcontext().prec = 40
    rng = np.random.default_rng(0)
    for _ in range(50):
        y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
        w = -y * np.clip(rng.beta(0.3, 0.3, 30), 0, 1)
        exact = Decimal(0)
        for p in (Decimal(float(-a * b)) for a, b in zip(w, y, strict=True)):
            exact += sum((x * x.ln() for x in (p, 1 - p) if x > 0), Decimal(0))
        above = engine.conjugate_above(engine.LOGISTIC, w, y)
        assert exact <= Decimal(above) <= exact + Decimal("1e-10")


@pytest.mark.parametrize("seed", range(6))
def test_the_value_of_a_point_is_rounded_up(seed):
    problem = small(2 * seed)
    fit = beam_search(Refits(problem))
    exact, point = Fraction(0), list(zip(fit.support, map(float, fit.b), strict=True))
    for row, y in zip(problem.X, problem.y, strict=True):
        u = sum(Fraction(float(row[j])) * Fraction(b) for j, b in point)
        exact += (u - Fraction(float(y))) ** 2
    exact += Fraction(problem.lambda2) * sum(Fraction(float(b)) ** 2 for b in fit.b)
    above = Fraction(upper_bound(problem, fit))
    assert exact <= above <= exact * (1 + Fraction(1, 10**11))


@given(st.integers(0, 10_000), st.floats(-6, 6))
def test_bounds_of_nodes_never_pass_the_best_of_the_node(seed, power):
    problem = small(seed % 40)
    rng = np.random.default_rng(seed)
    fixed = rng.permutation(problem.p)[:4].tolist()
    count = min(problem.k, int(rng.integers(0, 3)))
    node = Node(tuple(fixed[:count]), tuple(fixed[count:]))
    free = [j for j in range(problem.p) if j not in fixed]
    refits = Refits(problem)
    point = refits((*node.inside, *free[: problem.k - count]))
    w = 10.0**power * rng.standard_normal(problem.n)
    assert dual_bound(problem, w, node) <= point.value
    assert relax(problem, node, max_iter=30).lower <= point.value


def test_a_dual_vector_that_is_no_number_proves_nothing():
    problem = small(0)
    assert dual_bound(problem, np.full(problem.n, np.nan)) == 0
    assert dual_bound(problem, np.full(problem.n, 1e200)) == 0
    with pytest.raises(ValueError, match="w has shape"):
        dual_bound(problem, np.zeros(3), ROOT)
