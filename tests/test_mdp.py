"""Tabular MDPs: known values, brute force, invariants, and one clear line for bad input."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from workbench.numerics import mdp

SEEDS = st.integers(0, 2**32 - 1)
TWO_STATES = mdp.MDP(np.array([[[0.9, 0.1]], [[0.2, 0.8]]]), np.array([[1.0], [0.0]]))


def test_two_states_have_the_value_of_the_linear_system():
    v, policy, _ = mdp.policy_iteration(TWO_STATES, 0.9)
    assert v == pytest.approx([7.5675675676, 4.8648648649], abs=1e-9)
    assert policy.tolist() == [0, 0]
    assert mdp.stationary_distribution(TWO_STATES.P[:, 0]) == pytest.approx([2 / 3, 1 / 3])
    assert mdp.eigenvalues(TWO_STATES.P[:, 0]) == pytest.approx([1, 0.7])


@pytest.mark.parametrize(
    ("gamma", "value"),
    [
        (0.9, (8.3859, 9.6622, 7.3413, 8.4303, 9.6201, 9.7693)),
        (0.99, (95.6786, 96.998, 94.4679, 95.7238, 96.9498, 97.1194)),
    ],
)
def test_the_graph_of_six_nodes_has_its_known_value_and_policy(gamma, value):
    graph = mdp.graph6()
    v, policy, _ = mdp.policy_iteration(graph, gamma)
    assert v == pytest.approx(value, abs=1e-4)
    assert mdp.bellman(graph, v, gamma)[0] == pytest.approx(v, abs=1e-9)
    assert policy.tolist() == [4, 5, 3, 1, 5, 0]
    best = mdp.action_values(graph, v, gamma)
    assert best[range(6), policy] == pytest.approx(v, abs=1e-9)
    chain, _ = mdp.chain(graph, policy)
    assert abs(mdp.eigenvalues(chain)[1]) == pytest.approx(0.42511, abs=1e-5)


@settings(max_examples=25)
@given(SEEDS, st.integers(2, 12), st.integers(1, 4), st.floats(0.1, 0.99))
def test_dense_and_sparse_agree_and_policy_iteration_is_a_fixed_point(seed, n, m, gamma):
    dense = mdp.garnet(n, m, min(n, 3), seed)
    thin = dense.sparse()
    v = np.random.default_rng(seed).normal(size=n)
    t, policy = mdp.bellman(dense, v, gamma)
    t_sparse, policy_sparse = mdp.bellman(thin, v, gamma)
    assert t == pytest.approx(t_sparse, abs=1e-12) and (policy == policy_sparse).all()
    assert t == pytest.approx(mdp.action_values(dense, v, gamma).max(1), abs=1e-12)
    d = np.random.default_rng(seed).dirichlet(np.ones(n))
    pushed = mdp.push(dense, policy, d)
    assert pushed == pytest.approx(mdp.push(thin, policy, d), abs=1e-14)
    assert pushed == pytest.approx(d @ mdp.chain(dense, policy)[0], abs=1e-14)
    assert pushed.sum() == pytest.approx(1, abs=1e-12)
    for problem in (dense, thin):  # both in one pass
        t_too, policy_too, pushed_too = mdp.bellman_push(problem, v, gamma, d)
        assert t_too == pytest.approx(t, abs=1e-12) and (policy_too == policy).all()
        assert pushed_too == pytest.approx(pushed, abs=1e-14)
    best, _, _ = mdp.policy_iteration(dense, gamma)
    scale = 1e-9 / (1 - gamma)
    assert mdp.bellman(dense, best, gamma)[0] == pytest.approx(best, abs=scale)
    assert mdp.policy_iteration(thin, gamma)[0] == pytest.approx(best, abs=scale)


@pytest.mark.parametrize("seed", range(3))
def test_backward_induction_is_the_best_of_all_deterministic_policies(seed):
    horizon, problem = 3, mdp.uniform_random(2, 2, seed)
    Q, V = mdp.backward_induction(problem, horizon)
    found = [
        mdp.evaluate_stages(problem, np.array(flat).reshape(horizon, 2))[0]
        for flat in itertools.product(range(2), repeat=2 * horizon)
    ]
    assert V[0] == pytest.approx(np.max(found, axis=0), abs=1e-12)
    assert V[:-1] == pytest.approx(Q.max(-1), abs=1e-12) and (V[-1] == 0).all()
    assert mdp.evaluate_stages(problem, Q.argmax(-1)) == pytest.approx(V, abs=1e-12)


def test_evaluation_of_stages_agrees_with_simulated_episodes():
    problem, horizon, episodes = mdp.uniform_random(3, 2, 5), 4, 20_000
    rng = np.random.default_rng(0)
    policy = rng.integers(2, size=(horizon, 3))
    state, total = np.zeros(episodes, int), np.zeros(episodes)
    for h in range(horizon):
        action = policy[h, state]
        total += problem.R[state, action]
        steps = problem.P[state, action].cumsum(1)
        state = (rng.random((episodes, 1)) > steps).sum(1)
    error = total.std() / np.sqrt(episodes)
    assert abs(total.mean() - mdp.evaluate_stages(problem, policy)[0, 0]) < 4 * error


def test_a_deterministic_chain_has_its_known_value():
    P, R = np.zeros((3, 2, 3)), np.array([[0.1, 0], [0, 0.2], [1, 0]])
    for s, a, y in [(0, 0, 0), (0, 1, 1), (1, 0, 0), (1, 1, 2), (2, 0, 2), (2, 1, 0)]:
        P[s, a, y] = 1
    assert mdp.backward_induction(mdp.MDP(P, R), 4)[1][0] == pytest.approx([2.2, 3.2, 4])


@pytest.mark.parametrize(("n", "horizon", "value"), [(5, 10, 0.342103), (10, 25, 0.427830)])
def test_the_river_has_its_known_value(n, horizon, value):
    river = mdp.river_swim(n)
    assert mdp.backward_induction(river, horizon)[1][0, 0] == pytest.approx(value, abs=1e-6)
    left = mdp.evaluate_stages(river, np.zeros((horizon, n)))[0, 0]
    assert left == pytest.approx(horizon * 0.005 / 0.3)


def test_garnets_have_b_successors_and_repeat():
    problem = mdp.garnet(50, 3, 7, seed=1)
    assert ((problem.P > 0).sum(-1) == 7).all()
    assert (problem.R > 0).all() and (problem.R < 1).all()
    assert (problem.P == mdp.garnet(50, 3, 7, seed=1).P).all()
    assert (problem.P != mdp.garnet(50, 3, 7, seed=2).P).any()
    large = mdp.garnet(2000, 2, 4)
    assert large.is_sparse and large.P.nnz == 2000 * 2 * 4


@settings(max_examples=10)
@given(SEEDS, st.floats(0, 1))
def test_teleporting_scales_all_eigenvalues_but_the_first(seed, share):
    problem = mdp.garnet(8, 2, 4, seed)
    moved = mdp.teleport(problem, share)
    before, after = (mdp.eigenvalues(p.P[:, 0])[1:] for p in (problem, moved))
    assert np.sort(np.abs(after)) == pytest.approx((1 - share) * np.sort(np.abs(before)), abs=1e-6)


def test_of_several_stationary_distributions_the_one_of_least_norm_is_given():
    apart = np.kron(np.eye(2), np.array([[0.5, 0.5], [0.25, 0.75]]))  # two classes
    found = mdp.stationary_distribution(apart)
    assert found == pytest.approx([1 / 6, 1 / 3, 1 / 6, 1 / 3])
    assert mdp.stationary_distribution(np.roll(np.eye(5), 1, 1)) == pytest.approx(np.full(5, 0.2))


def test_leading_eigenvalues_are_the_first_of_all():
    chain = mdp.garnet(80, 1, 6, 3).P[:, 0]
    every, few = mdp.eigenvalues(chain), mdp.eigenvalues(chain, 8)
    assert np.abs(few[:6]) == pytest.approx(np.abs(every[:6]), abs=1e-8)
    assert (mdp.eigenvalues(chain, 8) == few).all(), "the answer repeats"


@pytest.mark.parametrize(("name", "n"), [("karate", 34), ("lesmis", 77)])
def test_networks_reward_their_goal_only(name, n):
    problem = mdp.network(name)
    assert problem.n == n
    assert (np.argmax(problem.R, axis=0) == mdp.NETWORKS[name][1]).all()
    v, _, _ = mdp.policy_iteration(problem, 0.99)
    assert v.argmax() == mdp.NETWORKS[name][1]


@pytest.mark.parametrize(
    ("name", "n", "grid"), [("frozenlake4", 16, (4, 4)), ("frozenlake8", 64, (8, 8)),
                            ("cliff", 48, (4, 12)), ("taxi", 500, None)],
)  # fmt: skip
def test_gymnasium_tables_are_closed_in_both_ways(name, n, grid):
    absorbing = mdp.gymnasium_table(name, "absorbing")
    restart = mdp.gymnasium_table(name, "restart")
    assert absorbing.n == n and absorbing.grid == grid
    ended = np.flatnonzero(absorbing.terminal)
    assert len(ended) and (absorbing.R[ended] == 0).all()
    assert (absorbing.P[ended, :, ended] == 1).all()
    assert restart.P[ended[0], 0] == pytest.approx(restart.start)
    if name == "frozenlake4":  # the start leads to the goal with the known chance
        goal = mdp.policy_iteration(absorbing, 0.9999999)[0][0]
        assert goal == pytest.approx(0.8235, abs=1e-3)


def test_arrays_from_a_file(tmp_path):
    problem = mdp.garnet(5, 2, 3)
    np.savez(tmp_path / "mine.npz", P=problem.P, R=problem.R)
    assert mdp.load_npz(tmp_path / "mine.npz").P == pytest.approx(problem.P)
    transitions = np.random.default_rng(0).random(problem.P.shape)
    np.savez(tmp_path / "three.npz", P=problem.P, R=transitions)
    read = mdp.load_npz(tmp_path / "three.npz")
    assert read.R == pytest.approx((problem.P * transitions).sum(-1))
    np.savez(tmp_path / "half.npz", P=problem.P)
    with pytest.raises(ValueError, match=r"lacks the array R: it needs P and R and has P"):
        mdp.load_npz(tmp_path / "half.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ValueError, match=r"no \.npz file"):
        mdp.load_npz(tmp_path / "text.npz")
    with pytest.raises(ValueError, match="no file"):
        mdp.load_npz(tmp_path / "absent.npz")


def bad(change) -> tuple[np.ndarray, np.ndarray]:
    problem = mdp.garnet(4, 2, 2)
    P, R = problem.P.copy(), problem.R.copy()
    return change(P, R) or (P, R)


def _set(array, where, value):
    array[where] = value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda P, R: _set(P, (1, 1), 0.2), r"P\[1, 1\] sums to 0.8"),
        (
            lambda P, R: _set(P, (2, 0), [1.5, -0.5, 0, 0]),
            r"P\[2, 0\] has negative entries and sums to 1:",
        ),
        (lambda P, R: _set(P, (2, 0), [1.5, -0.7, 0, 0]), "has negative entries and sums to 0.8:"),
        (lambda P, R: _set(P, (0, 1, 0), np.nan), r"P\[0, 1\] sums to nan"),
        (lambda P, R: _set(R, (3, 1), np.inf), r"R\[3, 1\] = inf: rewards must be finite"),
        (lambda P, R: _set(R, (2, 0), np.nan), r"R\[2, 0\] = nan: rewards must be finite"),
        (lambda P, R: (P.transpose(1, 0, 2), R), r"actions first: give P.transpose\(1, 0, 2\)"),
        (lambda P, R: (np.stack([P] * 3), R), "stage-dependent dynamics are not covered"),
        (lambda P, R: (P, R[:3]), r"P has shape \(4, 2, 4\)"),
        (lambda P, R: (P, R[:, 0]), r"R has shape \(4,\): expected \(states, actions\)"),
        (lambda P, R: (sparse.csr_array(P[:, 0]), R), r"expected \(8, 4\) with row s \* m \+ a"),
    ],
)
def test_bad_arrays_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        mdp.MDP(*bad(change))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mdp.discount(1.0),
            "the correction divides by 1 - gamma: for the average reward use relative value iter",
        ),
        (lambda: mdp.discount(0.0), "allowed are 0 < gamma < 1"),
        (lambda: mdp.policy_iteration(TWO_STATES, 1.5), "gamma = 1.5"),
        (lambda: mdp.garnet(3, 2, 4), "b = 4: allowed are 1 to n = 3"),
        (lambda: mdp.teleport(TWO_STATES, 1.1), "teleport = 1.1"),
        (lambda: mdp.network("karat"), "did you mean 'karate'"),
        (lambda: mdp.gymnasium_table("taxxi"), "did you mean 'taxi'"),
        (lambda: mdp.gymnasium_table("taxi", "end"), "allowed are restart, absorbing"),
        (lambda: mdp.river_swim(1), "at least 2 states"),
        (lambda: mdp.check_dense_size(20_000, 5), r"16.0 GB.*CSR"),
        (lambda: mdp.MDP(TWO_STATES.P, TWO_STATES.R, [0.5, 0.6]), "distribution over 2 states"),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda thin: mdp.MDP(thin.P.toarray().reshape(8, 2, 8), thin.R),
        lambda thin: mdp.MDP(np.broadcast_to(np.full(8, 1 / 8), (8, 2, 8)), thin.R),
        lambda thin: thin.dense(),
        lambda thin: mdp.teleport(thin, 0.1),
    ],
    ids=["array", "view", "dense", "teleport"],
)
def test_a_dense_table_above_the_cap_is_refused_and_its_sparse_form_taken(make, monkeypatch):
    thin = mdp.garnet(8, 2, 2).sparse()
    assert make(thin).P.nbytes == 8 * 8 * 2 * 8
    monkeypatch.setattr(mdp, "LARGEST_DENSE_BYTES", 1000)  # of 1024 bytes
    with pytest.raises(
        ValueError, match=r"of 8 states and 2 actions .*: give P in CSR form"
    ) as bad:
        make(thin)
    assert "\n" not in str(bad.value)
    assert mdp.MDP(thin.P, thin.R).n == 8 and mdp.teleport(thin, 0) is thin
