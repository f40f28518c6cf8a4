"""Learners with bonuses: exact regret on a deterministic chain, a slow twin, and invariants."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ucbvi_reference import Reference

from workbench import steps as work
from workbench.methods.ucbvi_constants import limits, problems
from workbench.methods.ucbvi_constants.bonuses import ALGORITHMS, OURS, PAPER
from workbench.methods.ucbvi_constants.learning import Learner, learn, learn_steps
from workbench.numerics.mdp import (
    MDP,
    backward_induction,
    evaluate_stages,
    river_swim,
    uniform_random,
)
from workbench.steps import together

UCBVI = ("CH", "CH-I", "BF", "BF-I")

# Total regret and visits N, row by row, of 20,000 episodes of 4 steps on the chain: made by an
# independent program; with `official_variance` it is the authors' released program, exactly.
CHAIN = [
    ("CH", False, 37721.8, (62782, 17218, 0, 0, 0, 0)),
    ("CH-I", False, 30707.6, (33002, 19772, 3575, 14041, 7184, 2426)),
    ("BF", False, 2446.4, (1990, 20104, 439, 19523, 37450, 494)),
    ("BF-I", False, 1244.4, (1004, 20055, 227, 19756, 38704, 254)),
    ("MVP", False, 38457.6, (52288, 17952, 8192, 1568, 0, 0)),
    ("BF", True, 3202.7, None),
    ("BF-I", True, 1623.5, None),
    ("MVP", True, 37952.0, None),
]


@pytest.mark.parametrize("algorithm, official, regret, visits", CHAIN)
def test_regret_and_visits_on_the_deterministic_chain_are_exact(
    algorithm, official, regret, visits
):
    found = learn(problems.chain(), algorithm, H=4, K=20_000, official_variance=official)
    one_episode = 2.2
    assert found.pseudo[-1] == pytest.approx(regret, abs=one_episode)
    assert found.realized[-1] == pytest.approx(found.pseudo[-1])
    if visits:
        assert np.abs(found.N.ravel() - visits).max() <= 4


def test_the_optimal_value_of_the_chain():
    _, V = backward_induction(problems.chain(), 4)
    np.testing.assert_allclose(V[0], [2.2, 3.2, 4.0])


@pytest.mark.parametrize("algorithm", PAPER)
def test_the_engine_is_its_slow_twin_on_a_random_mdp(algorithm):
    mdp, H, K = uniform_random(4, 3, seed=7), 6, 300
    learner = Learner(mdp, algorithm, H=H, K=K, seed=3, scale=0.02)
    slow = Reference(mdp, algorithm, H, K, seed=3, scale=0.02)
    for _ in range(K):
        learner.advance(1)
        slow.episode()
        np.testing.assert_allclose(learner.memory.Q, slow.Q, rtol=1e-12)
    np.testing.assert_array_equal(learner.memory.N, slow.N)
    np.testing.assert_array_equal(learner.memory.reached, slow.reached)


def test_backward_induction_is_the_best_of_all_deterministic_policies():
    for seed, (S, A, H) in enumerate([(2, 2, 3), (3, 2, 2), (2, 3, 2), (3, 3, 1)]):
        mdp = uniform_random(S, A, seed)
        policies = itertools.product(range(A), repeat=S * H)
        best = np.max([evaluate_stages(mdp, np.reshape(p, (H, S)))[0] for p in policies], axis=0)
        np.testing.assert_allclose(backward_induction(mdp, H)[1][0], best, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["random policy", "first action"])
def test_the_exact_value_of_a_policy_is_its_mean_return(algorithm):
    found = learn(uniform_random(3, 3, 1), algorithm, H=5, K=20_000, seed=2)
    per_episode = (found.realized - found.pseudo)[-1] / 20_000
    assert abs(per_episode) < 4 * 1.0 / np.sqrt(20_000)  # a return of 5 steps has deviation < 1


def test_the_value_of_a_policy_that_draws_among_ties_is_exact():
    mdp = uniform_random(3, 3, 1)
    found = learn(mdp, "random policy", H=5, K=10)
    uniform = MDP(mdp.P.mean(1, keepdims=True), mdp.R.mean(1, keepdims=True))
    assert found.value == pytest.approx(backward_induction(uniform, 5)[1][0, 0])


def test_the_regret_of_the_learned_policy_is_that_of_an_exact_evaluation():
    mdp = river_swim(5)
    learner = Learner(mdp, "BF-I", H=10, K=2000, seed=1)
    learner.advance(2000)
    V = evaluate_stages(mdp, learner.memory.Q.argmax(-1))
    assert learner.result().value == pytest.approx(V[0, 0])
    assert learner.result().gap == pytest.approx(backward_induction(mdp, 10)[1][0, 0] - V[0, 0])


@given(
    st.sampled_from(UCBVI), st.integers(2, 4), st.integers(2, 3), st.integers(1, 6),
    st.integers(0, 10_000), st.sampled_from([0.0, 0.01, 1.0]),
    st.sampled_from(["first", "random"]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_invariants_of_the_ucbvi_variants(algorithm, S, A, H, seed, scale, ties):
    learner = Learner(
        uniform_random(S, A, seed), algorithm, H=H, K=200, seed=seed, scale=scale, ties=ties
    )
    before, regret = learner.memory.Q.copy(), 0.0
    for k in range(1, 60):
        learner.advance(1)
        m = learner.memory
        assert (m.Q <= before).all() and (m.Q <= H).all()
        assert (m.bonus >= 0).all()
        assert m.N.sum() == H * k
        assert (m.reached[:H].sum(1) == k).all() and not m.reached[H].any()
        np.testing.assert_array_equal(m.counts.sum(-1), m.N)
        seen = m.N > 0
        np.testing.assert_allclose(m.P_hat.sum(-1)[seen], 1)
        assert m.totals[0] >= regret - 1e-9  # no policy is better than the best
        before, regret = m.Q.copy(), m.totals[0]


def test_optimism_holds_at_every_recorded_episode_of_50_random_mdps():
    broken = [learn(uniform_random(3, 3, s), "greedy", H=5, K=2000, seed=s) for s in range(50)]
    assert np.mean([run.violated.any() for run in broken]) > 0.9  # the test can see a violation
    for seed in range(50):
        mdp = uniform_random(3, 3, seed)
        for algorithm in UCBVI:
            found = learn(mdp, algorithm, H=5, K=2000, seed=seed)
            assert not found.violated.any()
            assert (found.promised >= found.V_star[0, 0] - 1e-9).all()


def test_without_bonus_it_is_certainty_equivalence():
    mdp = uniform_random(3, 3, 5)
    learner = Learner(mdp, "BF", H=4, K=500, scale=0.0, seed=1)
    for _ in range(50):
        m = learner.memory
        P_hat, N, old = m.P_hat.copy(), m.N.copy(), m.Q.copy()
        learner.advance(1)
        V = np.zeros(3)
        for h in reversed(range(4)):
            q = np.where(N > 0, np.minimum(old[h], np.minimum(mdp.R + P_hat @ V, 4)), 4)
            np.testing.assert_allclose(m.Q[h], q)
            V = q.max(-1)
    same = learn(mdp, "greedy", H=4, K=500, seed=1)
    assert same.pseudo[-1] == learn(mdp, "CH", H=4, K=500, scale=0.0, seed=1).pseudo[-1]


@pytest.mark.parametrize("seed", range(5))
def test_without_bonus_and_with_one_step_each_action_is_tried_at_most_once(seed):
    mdp = uniform_random(3, 4, seed)
    learner = Learner(mdp, "BF-I", H=1, K=100, scale=0.0)
    learner.advance(100)
    N, gaps = learner.memory.N[0], mdp.R[0].max() - mdp.R[0]
    best = mdp.R[0].argmax()
    tried = np.flatnonzero(N)
    assert (N[tried[tried != best]] == 1).all() and N[best] == 100 - (len(tried) - 1)
    assert learner.result().pseudo[-1] == pytest.approx(gaps[tried].sum())


def test_doubling_refreshes_at_powers_of_two_with_the_visits_since():
    learner = Learner(uniform_random(3, 3, 0), "MVP", H=5, K=2000, seed=0)
    seen, m = {}, learner.memory
    for _ in range(2000):
        before, N = m.P_hat.copy(), m.N.copy()
        learner.advance(1)
        for s, a in np.argwhere((m.P_hat != before).any(-1)):
            # In one episode of 5 steps a pair may pass a power of two that it does not end on.
            powers = [2**j for j in range(15) if N[s, a] < 2**j <= m.N[s, a]]
            assert powers
            seen.setdefault((s, a), {})[powers[-1]] = m.n[s, a]
        np.testing.assert_array_equal(
            m.n[m.N > 0], np.maximum(2 ** np.floor(np.log2(m.N[m.N > 0])) / 2, 1)
        )
    assert len(seen) >= 3
    assert learner.result().replans <= 9 * (np.log2(5 * 2000) + 1)


def test_after_visits_1_2_4_8_doubling_rests_on_1_1_2_4():
    learner = Learner(MDP(np.ones((1, 1, 1)), np.ones((1, 1))), "MVP", H=1, K=8)
    behind = []
    for _ in range(8):
        learner.advance(1)
        behind.append(int(learner.memory.n[0, 0]))
    assert [behind[n - 1] for n in (1, 2, 4, 8)] == [1, 1, 2, 4]
    assert behind == [1, 1, 1, 2, 2, 2, 2, 4]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_same_seed_gives_the_same_run_however_it_is_cut(algorithm):
    mdp, options = uniform_random(3, 2, 4), {"H": 4, "K": 500, "seed": 9, "ties": "random"}
    whole = learn(mdp, algorithm, **options)
    learner = Learner(mdp, algorithm, **options)
    for n in (1, 7, 92, 400):
        learner.advance(n)
    np.testing.assert_array_equal(whole.pseudo, learner.result().pseudo)
    np.testing.assert_array_equal(whole.N, learner.result().N)
    other = learn(mdp, algorithm, **{**options, "seed": 10})
    assert algorithm == "first action" or other.realized[-1] != whole.realized[-1]


def test_runs_side_by_side_equal_runs_one_after_the_other():
    mdp = uniform_random(3, 3, 0)
    jobs = [
        lambda a=a, s=s: learn_steps(mdp, a, H=5, K=3000, seed=s)
        for a, s in itertools.product(PAPER, range(3))
    ]
    side_by_side = work.run(together(jobs, 4))
    for job, found in zip(jobs, side_by_side, strict=True):
        np.testing.assert_array_equal(work.run(job()).pseudo, found.pseudo)


def test_steps_carry_the_curve_so_far_and_can_be_stopped():
    curves = []

    def on_step(step):
        curves.append((step.done, step.data))

    options = {"H": 5, "K": 100_000}
    with pytest.raises(work.Cancelled) as stopped:
        work.run(
            learn_steps(uniform_random(3, 3, 0), "BF-I", **options), on_step,
            lambda: len(curves) >= 4,
        )  # fmt: skip
    partial = stopped.value.data
    assert 0 < len(partial.episodes) < 1000
    assert (np.diff(partial.pseudo) >= -1e-9).all()
    done = [d for d, _ in curves]
    assert done == sorted(done) and done[-1] < 1


def test_records_are_few_and_snapshots_hold_the_tables():
    found = learn(uniform_random(3, 3, 0), "BF", H=5, K=30_000, snapshots=200)
    assert len(found.episodes) <= 1000 and found.episodes[[0, -1]].tolist() == [1, 30_000]
    shots = found.snapshots
    assert len(shots.episodes) <= 200 and shots.episodes[[0, -1]].tolist() == [1, 30_000]
    assert (shots.Q[0] == 5).all() and not shots.N[0].any()
    np.testing.assert_array_equal(shots.Q[-1], found.Q)
    np.testing.assert_array_equal(shots.N.sum((1, 2)), 5 * (shots.episodes - 1))
    assert (np.diff(shots.Q, axis=0) <= 0).all()
    tried = np.broadcast_to(shots.N[:, None] > 0, shots.Q.shape)
    assert (shots.Q <= np.minimum(5, shots.backup + shots.bonus) + 1e-12)[tried].all()
    assert not shots.backup[~tried].any() and (shots.Q[~tried] == 5).all()
    # At the last stage nothing is promised: the backup is the reward.
    rewards = np.broadcast_to(uniform_random(3, 3, 0).R, shots.Q[:, -1].shape)
    np.testing.assert_array_equal(shots.backup[:, -1][tried[:, -1]], rewards[tried[:, -1]])
    assert learn(uniform_random(3, 3, 0), "BF", H=5, K=100).snapshots is None


def test_the_last_step_needs_no_bonus():
    with_it = Learner(uniform_random(3, 3, 0), "BF-I", H=5, K=100, seed=0)
    without = Learner(uniform_random(3, 3, 0), "BF-I", H=5, K=100, seed=0, last_step_bonus=False)
    for learner in (with_it, without):
        learner.advance(100)
    seen = without.memory.N > 0
    assert not without.memory.bonus[-1].any() and without.memory.bonus[0][seen].all()
    assert with_it.memory.bonus[-1][with_it.memory.N > 0].all()
    assert not without.result().violated.any()


def test_random_ties_are_uniform_and_first_ties_take_the_first():
    mdp = MDP(np.ones((1, 4, 1)), np.full((1, 4), 0.5))
    spread = learn(mdp, "MVP", H=2, K=4000, ties="random").N[0]
    assert (np.abs(spread - 2000) < 4 * np.sqrt(8000 * 3 / 16)).all()
    assert learn(mdp, "MVP", H=2, K=50).N[0].tolist() == [100, 0, 0, 0]


@pytest.mark.parametrize("algorithm", PAPER)
def test_values_with_random_ties_are_those_of_a_uniform_choice(algorithm):
    mdp = river_swim(4)
    learner = Learner(mdp, algorithm, H=6, K=400, ties="random", seed=2)
    for _ in range(80):
        learner.advance(5)
        m, V = learner.memory, np.zeros(4)
        for h in reversed(range(6)):
            weights = m.Q[h] >= m.Q[h].max(-1, keepdims=True) - 1e-12
            q = mdp.R + mdp.P @ V
            V = (weights * q).sum(-1) / weights.sum(-1)
        assert m.value[0, 0] == pytest.approx(V[0])


def test_a_run_knows_how_its_ties_were_broken():
    def ties(algorithm, **more):
        return learn(uniform_random(2, 2, 0), algorithm, H=2, K=10, **more).ties

    assert (ties("BF"), ties("MVP", ties="random")) == ("first", "random")
    assert ties("random policy") == "random"
    assert ties("first action", ties="random") == "first"


def test_a_learner_can_start_elsewhere():
    found = learn(problems.chain(), "BF-I", H=4, K=50, start=2)
    assert found.V_star[0, found.start] == 4 and found.reached[0].tolist() == [0, 0, 50]


@pytest.mark.parametrize("algorithm", OURS)
def test_our_baselines_run_on_every_problem(algorithm):
    for mdp in (problems.make("frozenlake"), problems.make("riverswim", S=4)):
        found = learn(mdp, algorithm, H=6, K=200)
        assert found.N.sum() == 1200 and np.isfinite(found.pseudo).all()


def bad(mdp=None, algorithm="BF-I", **options):
    return lambda: Learner(mdp or uniform_random(3, 3, 0), algorithm, **options)


def with_rewards(R):
    return MDP(uniform_random(3, 3, 0).P, np.full((3, 3), R))


@pytest.mark.parametrize(
    "make, words",
    [
        (bad(with_rewards(2.0)), r"all rewards are 2: the bonuses assume \[0, 1\], and where"),
        (bad(with_rewards(-0.5)), r"all rewards are -0.5: the bonuses assume \[0, 1\]"),
        (bad(MDP(np.full((2, 2, 2), 0.5), 3 * np.eye(2))),
         r"rewards go from 0 to 3: the bonuses assume \[0, 1\]; rescale R"),
        (bad(K=0), "K = 0: allowed are whole numbers of at least 1"),
        (bad(K=100.5), "K = 100.5: allowed are whole numbers"),
        (bad(K=True), "K = True: allowed are whole numbers"),
        (bad(H=0), "H = 0: allowed"),
        (bad(H=2.0), "H = 2.0: allowed"),
        (bad(snapshots=-1), "snapshots = -1: allowed"),
        (bad(delta=0), "delta = 0: allowed are 0 < delta <= 1"),
        (bad(delta=1.5), "delta = 1.5: allowed"),
        (bad(delta=float("nan")), "delta = nan: allowed"),
        (bad(scale=-1), "scale = -1: allowed"),
        (bad(scale=float("inf")), "scale = inf: allowed"),
        (bad(algorithm="BFI"), "algorithm = 'BFI'.*did you mean 'BF"),
        (bad(ties="last"), "ties = 'last'; allowed are first, random"),
        (bad(start=3), "start = 3: allowed are the states 0 to 2"),
        (bad(start=-1), "start = -1: allowed"),
        (bad(K=10**9, H=50), r"S\^2 A H K = 1.4e\+12 would take one run about 382 minutes"),
        (
            lambda: MDP(np.full((5, 3, 3, 3), 1 / 3), np.zeros((3, 3))),
            "stage-dependent dynamics are not covered",
        ),
        (lambda: MDP(np.full((3, 3, 3), 0.3), np.zeros((3, 3))), r"P\[0, 0\] sums to 0.9"),
        (lambda: problems.make("river"), "env = 'river'.*did you mean 'riverswim'"),
        (lambda: problems.make("npz"), "env = 'npz' needs `file`"),
        (lambda: problems.make("npz", file="/nowhere.npz"), "no file /nowhere.npz"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(make, words):
    with pytest.raises(ValueError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_random_start_is_refused_and_an_npz_is_read(tmp_path):
    mdp = uniform_random(3, 2, 0)
    np.savez(tmp_path / "m.npz", P=mdp.P, R=mdp.R)
    np.testing.assert_array_equal(problems.make("npz", file=str(tmp_path / "m.npz")).P, mdp.P)
    np.savez(tmp_path / "s.npz", P=mdp.P, R=mdp.R, start=np.full(3, 1 / 3))
    with pytest.raises(ValueError, match="the start is random"):
        problems.make("npz", file=str(tmp_path / "s.npz"))
    np.savez(tmp_path / "r.npz", P=mdp.P, R=3 * mdp.R)
    with pytest.raises(ValueError, match="the bonuses assume"):
        problems.make("npz", file=str(tmp_path / "r.npz"))


def test_the_largest_work_is_allowed_and_a_little_more_is_not():
    limits.check_work(100, 100, 50, 1000)
    with pytest.raises(ValueError, match="at most K = 1000"):
        limits.check_work(100, 100, 50, 1001)
