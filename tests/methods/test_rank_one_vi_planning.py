"""Planners of rank_one_vi: known iterates, the exact facts A to E, invariances."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.methods.rank_one_vi import planning
from workbench.numerics import mdp as tables

SEEDS = st.integers(0, 2**32 - 1)
GAMMAS = st.floats(0.5, 0.99)
TWO_STATES = tables.MDP(np.array([[[0.9, 0.1]], [[0.2, 0.8]]]), np.array([[1.0], [0.0]]))


def first(planner, count):
    return [iterate.value for iterate in itertools.islice(planner, count)]


def solved(problem, gamma):
    optimum, policy, _ = tables.policy_iteration(problem, gamma)
    return optimum, policy, planning.optimal_actions(problem, optimum, gamma)


def test_two_states_give_the_known_iterates():
    v = first(planning.rank_one_value_iteration(TWO_STATES, 0.9, np.zeros(2)), 4)
    assert v[1] == pytest.approx([5.95, 4.95], abs=1e-12)
    assert v[2] == pytest.approx([6.74695, 5.11695], abs=1e-12)
    assert v[3] == pytest.approx([7.13809495, 5.11119495], abs=1e-12)
    plain = first(planning.value_iteration(TWO_STATES, 0.9, np.zeros(2)), 5)
    assert plain[4] == pytest.approx([3.051649, 0.774702], abs=1e-12)
    exact = first(
        planning.rank_one_value_iteration(TWO_STATES, 0.9, np.zeros(2), d_mode="exact"), 8
    )
    assert exact[1] == pytest.approx([7, 6]) and exact[2] == pytest.approx([7.21, 5.58])
    assert exact[3] == pytest.approx([7.3423, 5.3154])
    errors = [np.abs(value - [7.5675675676, 4.8648648649]).max() for value in exact[1:]]
    ratios = np.array(errors[1:5]) / errors[:4]
    assert ratios == pytest.approx(0.63, abs=1e-6)


@pytest.mark.parametrize(("name", "count"), [("VI", 1830), ("R1-VI", 18), ("midpoint", 23)])
def test_the_graph_of_six_nodes_needs_the_known_iterations(name, count):
    problem = tables.graph6()
    optimum, _, best = solved(problem, 0.99)
    planner = planning.PLANNERS[name](problem, 0.99, np.zeros(6))
    assert planning.plan(planner, optimum, best).iterations == count


@settings(max_examples=40)
@given(SEEDS, GAMMAS, st.integers(2, 12), st.integers(1, 4))
def test_fact_a_any_distributions_shift_value_iteration_by_a_constant(seed, gamma, n, m):
    rng = np.random.default_rng(seed)
    problem, start = tables.garnet(n, m, min(n, 4), seed), rng.normal(size=n)
    plain = list(itertools.islice(planning.value_iteration(problem, gamma, start), 12))
    factor, v = gamma / (1 - gamma), start
    for k in range(1, 12):
        d = rng.dirichlet(np.ones(n))
        t, _ = tables.bellman(problem, v, gamma)
        v = t + factor * (d @ (t - v))
        change = plain[k].value - plain[k - 1].value
        scale = max(1.0, np.abs(v).max())
        assert v == pytest.approx(plain[k].value + factor * (d @ change), abs=1e-12 * scale)
        assert np.ptp(v) == pytest.approx(np.ptp(plain[k].value), abs=1e-12 * scale)
    modes = [dict(d_mode="power"), dict(d_mode="uniform"), dict(d_mode="point"),
             dict(d_mode="exact"), dict(power_steps=10), dict(power_steps=0)]  # fmt: skip
    for options in modes:
        planner = planning.rank_one_value_iteration(problem, gamma, start, **options)
        for k, iterate in enumerate(itertools.islice(planner, 12)):
            off = iterate.value - plain[k].value
            assert np.ptp(off) <= 1e-12 * max(1.0, np.abs(iterate.value).max())
            if k:
                assert (iterate.d >= 0).all() and iterate.d.sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=30)
@given(SEEDS, GAMMAS)
def test_facts_b_and_c_the_bracket_holds_and_bounds_the_error(seed, gamma):
    problem = tables.garnet(10, 3, 4, seed)
    optimum, _, _ = solved(problem, gamma)
    start = np.random.default_rng(seed).normal(size=10)
    plain = first(planning.value_iteration(problem, gamma, start), 20)
    fast = first(planning.rank_one_value_iteration(problem, gamma, start), 20)
    middle = first(planning.midpoint(problem, gamma, start), 20)
    slack = 1e-9 / (1 - gamma)
    for k in range(1, 20):
        low, high = planning.bracket(plain[k - 1], plain[k], gamma)
        assert (low <= optimum + slack).all() and (optimum <= high + slack).all()
        assert (low <= fast[k] + slack).all() and (fast[k] <= high + slack).all()
        assert middle[k] == pytest.approx((low + high) / 2)
        bound = planning.error_bound(plain[k - 1], plain[k], gamma)
        assert np.abs(fast[k] - optimum).max() <= bound + slack
        residual = np.abs(plain[1] - plain[0]).max()
        assert bound <= 2 * gamma**k / (1 - gamma) * residual + slack


@settings(max_examples=20)
@given(SEEDS, GAMMAS)
def test_fact_d_errors_follow_the_matrix_whose_spectrum_is_deflated(seed, gamma):
    problem = tables.garnet(8, 1, 5, seed)  # one action: the policy has settled
    P = problem.P[:, 0]
    d = np.random.default_rng(seed).dirichlet(np.ones(8))
    M = planning.error_matrix(P, d, gamma)
    expected = np.concatenate([[0], gamma * tables.eigenvalues(P)[1:]])
    assert np.poly(M) == pytest.approx(np.real(np.poly(expected)), abs=1e-8)
    stationary = tables.stationary_distribution(P)
    assert planning.error_matrix(P, stationary, gamma) == pytest.approx(
        gamma * (P - stationary[None, :]), abs=1e-10
    )
    optimum = tables.evaluate(problem, np.zeros(8, int), gamma)
    v = np.random.default_rng(seed + 1).normal(size=8)
    t, _ = tables.bellman(problem, v, gamma)
    after = t + gamma / (1 - gamma) * (d @ (t - v))
    assert after - optimum == pytest.approx(M @ (v - optimum), abs=1e-9 / (1 - gamma))


@settings(max_examples=20)
@given(SEEDS, GAMMAS, st.floats(-3, 3))
def test_fact_e_one_step_and_two_step_problems(seed, gamma, c):
    rng, problem = np.random.default_rng(seed), tables.garnet(6, 2, 3, seed)
    constant = tables.MDP(problem.P, np.full((6, 2), c))
    v = first(planning.rank_one_value_iteration(constant, gamma, np.zeros(6)), 2)
    assert v[1] == pytest.approx(np.full(6, c / (1 - gamma)), abs=1e-10 / (1 - gamma))
    same = tables.MDP(np.broadcast_to(rng.dirichlet(np.ones(6)), (6, 2, 6)), problem.R)
    v = first(planning.rank_one_value_iteration(same, gamma, np.zeros(6)), 3)
    assert v[2] == pytest.approx(solved(same, gamma)[0], abs=1e-10 / (1 - gamma))


@settings(max_examples=15)
@given(SEEDS, GAMMAS, st.floats(-2, 2), st.floats(0.1, 5))
def test_shifted_scaled_and_permuted_problems(seed, gamma, c, scale):
    problem, zero = tables.garnet(7, 3, 3, seed), np.zeros(7)
    v = np.array(first(planning.rank_one_value_iteration(problem, gamma, zero), 6))
    near = 1e-9 / (1 - gamma)
    shifted = tables.MDP(problem.P, problem.R + c)
    w = np.array(first(planning.rank_one_value_iteration(shifted, gamma, zero), 6))
    assert w[1:] == pytest.approx(v[1:] + c / (1 - gamma), abs=near)
    scaled = tables.MDP(problem.P, scale * problem.R)
    w = np.array(first(planning.rank_one_value_iteration(scaled, gamma, zero), 6))
    assert w == pytest.approx(scale * v, abs=near)
    order = np.random.default_rng(seed).permutation(7)
    moved = tables.MDP(problem.P[order][:, :, order], problem.R[order])
    w = np.array(first(planning.rank_one_value_iteration(moved, gamma, zero), 6))
    assert w == pytest.approx(v[:, order], abs=near)


def test_the_power_method_finds_the_stationary_distribution():
    problem = tables.garnet(30, 3, 8, 4)
    planner = planning.rank_one_value_iteration(problem, 0.9, np.zeros(30))
    last = next(itertools.islice(planner, 200, None))
    P, _ = tables.chain(problem, last.policy)
    assert np.abs(last.d @ P - last.d).sum() < 1e-12


@settings(max_examples=10)
@given(SEEDS, GAMMAS)
def test_action_values_are_shifted_too(seed, gamma):
    problem = tables.garnet(6, 3, 3, seed)
    q = np.zeros((6, 3))
    planner = planning.rank_one_q_iteration(problem, gamma, q)
    next(planner)
    for fast, d in itertools.islice(planner, 8):
        q = tables.action_values(problem, q.max(1), gamma)
        assert np.ptp(fast - q) < 1e-10 / (1 - gamma)
        assert d.sum() == pytest.approx(1) and (d >= 0).all()


@pytest.mark.parametrize("name", list(planning.PLANNERS))
@pytest.mark.parametrize("thin", [False, True])
def test_every_planner_finds_the_optimum_of_dense_and_sparse_problems(name, thin):
    gamma, problem = 0.9, tables.garnet(40, 4, 6, 3)
    optimum, _, best = solved(problem, gamma)
    planner = planning.PLANNERS[name](problem.sparse() if thin else problem, gamma, np.zeros(40))
    found = planning.plan(planner, optimum, best, most=400, keep=3)
    assert found.iterations is not None and found.errors[-1] <= 1e-6
    assert found.wrong[-1] == 0 and found.values.shape == (3, 40)
    assert (np.diff(found.operators) >= 1).all() and (np.diff(found.seconds) >= 0).all()
    if name == "VI":  # contracts with gamma
        start = found.errors[0]
        assert (found.errors <= gamma ** np.arange(len(found.errors)) * start + 1e-9).all()


def test_rank_one_has_the_greedy_policies_of_value_iteration():
    problem = tables.garnet(60, 5, 6, 11)
    optimum, _, best = solved(problem, 0.99)
    plans = [
        planning.plan(planning.PLANNERS[name](problem, 0.99, np.zeros(60)), optimum, best, most=12)
        for name in ("VI", "R1-VI")
    ]
    assert plans[0].wrong[:12].tolist() == plans[1].wrong[:12].tolist()
    assert plans[0].wrong[0] > 0


def test_a_plan_grows_to_the_same_end():
    problem = tables.garnet(20, 3, 4, 1)
    optimum, _, best = solved(problem, 0.95)
    make = lambda: planning.value_iteration(problem, 0.95, np.zeros(20))  # noqa: E731
    grown = list(planning.growing(make(), optimum, best, every=50, keep=5, beyond=3))
    lengths = [len(plan.errors) for plan in grown]
    assert lengths[:2] == [50, 100] and lengths == sorted(lengths)
    whole = planning.plan(make(), optimum, best, keep=5, beyond=3)
    assert (grown[-1].errors == whole.errors).all() and grown[-1].iterations == whole.iterations
    assert len(whole.errors) == whole.iterations + 4
    assert all(plan.iterations is None for plan in grown[:-1])


def test_gains_lie_between_value_and_policy_iteration():
    P = tables.garnet(6, 1, 4, 0).P[:, 0]
    d = tables.stationary_distribution(P)
    gains = planning.gain_matrices(P, d, 0.9)
    assert gains["PI"] @ np.ones(6) == pytest.approx(np.full(6, 10))
    assert gains["R1-VI"] @ np.ones(6) == pytest.approx(np.full(6, 10))
    rank_one = np.broadcast_to(d, (6, 6))  # Sherman-Morrison
    assert gains["R1-VI"] == pytest.approx(np.linalg.inv(np.eye(6) - 0.9 * rank_one))


def test_the_safeguard_keeps_nesterov_from_running_away():
    problem = tables.gymnasium_table("cliff", "restart")  # a periodic chain, where momentum fails
    optimum, _, best = solved(problem, 0.9)
    planner = planning.nesterov_value_iteration(problem, 0.9, np.zeros(problem.n))
    found = planning.plan(planner, optimum, best, most=600, tolerance=1e-4)
    assert found.errors[-1] < found.errors[0] / 10
    assert found.operators[-1] > len(found.errors)  # the trials are counted


def operator(problem, v, gamma):
    """T v and the greedy policy, written out."""
    q = problem.R + gamma * np.einsum("say,y->sa", problem.P, v)
    return q.max(1), q.argmax(1)


def test_nesterov_follows_a_hand_recursion_and_falls_back_on_value_iteration():
    problem, gamma = tables.gymnasium_table("cliff", "restart"), 0.9
    alpha, beta = 1 / (1 + gamma), (1 - np.sqrt(1 - gamma**2)) / gamma
    v = [np.zeros(problem.n)]
    v.append(operator(problem, v[0], gamma)[0])
    first_residual, accepted = np.abs(v[1] - v[0]).max(), []
    for k in range(1, 12):
        z = v[k] + beta * (v[k] - v[k - 1])
        proposed = z + alpha * (operator(problem, z, gamma)[0] - z)
        residual = np.abs(operator(problem, proposed, gamma)[0] - proposed).max()
        accepted.append(residual <= ((1 + gamma) / 2) ** (k + 1) * first_residual)
        v.append(proposed if accepted[-1] else operator(problem, v[k], gamma)[0])
    assert set(accepted) == {True, False}, "both branches of the safeguard run"
    found = first(planning.nesterov_value_iteration(problem, gamma, np.zeros(problem.n)), 13)
    assert np.array(found) == pytest.approx(np.array(v), abs=1e-11)


@pytest.mark.parametrize("memory", [1, 5])
def test_anderson_follows_a_hand_recursion(memory):
    problem, gamma = tables.garnet(12, 3, 4, 2), 0.9
    start = np.random.default_rng(0).normal(size=12)
    v, images, residuals = [start], [], []
    for _ in range(10):
        t, _ = operator(problem, v[-1], gamma)
        images.append(t)
        residuals.append(t - v[-1])
        # The weights, of sum 1, that make the combined residual least: a constrained
        # least-squares problem, solved by its Lagrangian.
        D = np.array(residuals[-memory - 1 :])
        count = len(D)
        gram = D @ D.T
        gram += 1e-12 * np.trace(gram) * np.eye(count)
        system = np.block([[gram, np.ones((count, 1))], [np.ones((1, count)), np.zeros((1, 1))]])
        weights = np.linalg.solve(system, np.r_[np.zeros(count), 1])[:-1]
        v.append(weights @ np.array(images[-memory - 1 :]))
    found = first(planning.anderson_value_iteration(problem, gamma, start, memory), 11)
    assert np.array(found) == pytest.approx(np.array(v), abs=1e-6)
    near = found[1:6], v[1:6]  # before the systems are singular
    assert np.array(near[0]) == pytest.approx(np.array(near[1]), abs=1e-10)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_anchored_value_iteration_follows_the_plain_formula(gamma):
    problem = tables.garnet(12, 3, 4, 2)
    start = np.random.default_rng(0).normal(size=12)
    v = [start]
    for k in range(1, 15):
        beta = 1 / sum(gamma ** (-2 * i) for i in range(k + 1))
        v.append(beta * start + (1 - beta) * operator(problem, v[-1], gamma)[0])
    found = first(planning.anchored_value_iteration(problem, gamma, start), 15)
    assert np.array(found) == pytest.approx(np.array(v), abs=1e-12)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_anchored_value_iteration_goes_on_for_thousands_of_iterates(gamma):
    problem = tables.garnet(12, 3, 4, 2)  # gamma^(-2 k) overflows long before
    planner = planning.anchored_value_iteration(problem, gamma, np.full(12, 3.0))
    last = next(itertools.islice(planner, 2000, None))
    assert last.value == pytest.approx(solved(problem, gamma)[0], abs=1e-9)


@pytest.mark.parametrize("sweeps", [1, 20])
def test_modified_policy_iteration_follows_a_hand_recursion(sweeps):
    problem, gamma = tables.garnet(12, 3, 4, 2), 0.9
    start = np.random.default_rng(0).normal(size=12)
    v = [start]
    for _ in range(10):
        value, policy = operator(problem, v[-1], gamma)
        for _ in range(sweeps):
            value = np.array([
                problem.R[s, a] + gamma * problem.P[s, a] @ value for s, a in enumerate(policy)
            ])  # fmt: skip
        v.append(value)
    planner = planning.modified_policy_iteration(problem, gamma, start, sweeps)
    assert np.array(first(planner, 11)) == pytest.approx(np.array(v), abs=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 1.5, -0.2])
@pytest.mark.parametrize("name", [*planning.PLANNERS, "R1-QI"])
def test_every_planner_refuses_a_discount_outside_zero_and_one(name, gamma):
    make, start = planning.PLANNERS.get(name), np.zeros(2)
    planner = (
        make(TWO_STATES, gamma, start) if make
        else planning.rank_one_q_iteration(TWO_STATES, gamma, start[:, None])
    )  # fmt: skip
    with pytest.raises(ValueError, match=f"gamma = {gamma}: allowed are 0 < gamma < 1") as caught:
        next(planner)
    average = "the correction divides by 1 - gamma: for the average reward use relative value iter"
    assert (average in str(caught.value)) == (gamma >= 1) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d": [0.5, 0.6]}, "d must be a distribution over 2 states"),
        ({"d": [1.5, -0.5]}, "no negative entry"),
        ({"d": [1.0]}, "over 2 states"),
        ({"d_mode": "powr"}, "did you mean 'power'"),
    ],
)
def test_bad_distributions_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        next(planning.rank_one_value_iteration(TWO_STATES, 0.9, np.zeros(2), **options))
