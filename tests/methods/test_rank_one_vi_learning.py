"""Learners of rank_one_vi: hand recursions, the shift identity, policy iteration as a limit."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.methods.rank_one_vi import learning
from workbench.numerics import mdp as tables

SEEDS = st.integers(0, 2**32 - 1)


def deterministic(seed=0, n=5, m=2):
    return tables.garnet(n, m, 1, seed)


def reference(problem, gamma, kind, rates, uniforms, rule=None):
    """The recursions as the text has them, one pair at a time."""
    n, m = problem.R.shape
    cumulative = np.cumsum(problem.dense().P, axis=-1)
    q, before = np.zeros((n, m)), np.zeros((n, m))
    d, A = np.full((n, m), 1 / (n * m)), np.eye(n * m)
    for k, rate in enumerate(rates):
        successor = np.empty((n, m), int)
        for s, a in itertools.product(range(n), range(m)):
            drawn = np.searchsorted(cumulative[s, a], uniforms[k, s * m + a], side="right")
            successor[s, a] = min(drawn, n - 1)
        greedy = q.argmax(1)
        delta = problem.R + gamma * q[successor, greedy[successor]] - q
        if kind == "SQL":
            old = problem.R + gamma * before.max(1)[successor]
            new = problem.R + gamma * q.max(1)[successor]
            q, before = q + rate * (old - q) + (1 - rate) * (new - old), q
        elif kind == "Zap":
            S = np.eye(n * m)
            for s, a in itertools.product(range(n), range(m)):
                y = successor[s, a]
                S[s * m + a, y * m + greedy[y]] -= gamma
            A = A + learning.zap_rate(k) * (S - A)
            q = q + rate * np.linalg.solve(A, delta.ravel()).reshape(n, m)
        else:
            shift = 0.0
            if kind != "QL":
                if kind == "R1-QL":
                    f = np.zeros((n, m))
                    for s, a in itertools.product(range(n), range(m)):
                        f[successor[s, a], greedy[successor[s, a]]] += d[s, a]
                    d = (1 - rate) * d + rate * f
                    d = d / d.sum()
                shift = gamma / (1 - gamma) * (d * delta).sum()
            q = q + rate * (delta + shift)
    return q


@pytest.mark.parametrize("kind", learning.KINDS)
@pytest.mark.parametrize("rule", learning.STEP_RULES)
def test_compiled_learners_follow_the_recursions(kind, rule):
    problem, gamma = tables.garnet(5, 3, 3, 7), 0.9
    uniforms = np.random.default_rng(1).random((40, 15))
    learner = learning.Learner(problem, gamma, kind, rule)
    learner.advance(uniforms[:17], 0)
    learner.advance(uniforms[17:], 17)  # in pieces: the schedule goes on
    rates = learning.step_size(rule, np.arange(40), gamma)
    assert learner.q == pytest.approx(reference(problem, gamma, kind, rates, uniforms), abs=1e-10)


@settings(max_examples=20)
@given(SEEDS, st.floats(0.5, 0.99), st.sampled_from(learning.STEP_RULES))
def test_fact_f_rank_one_shifts_q_learning_by_a_constant(seed, gamma, rule):
    problem = tables.garnet(6, 2, 3, seed)
    uniforms = np.random.default_rng(seed).random((60, 12))
    plain, *shifted = (
        learning.Learner(problem, gamma, kind, rule)
        for kind in ("QL", "R1-QL", "R1-QL (uniform d)")
    )
    for k in range(0, 60, 5):
        plain.advance(uniforms[k : k + 5], k)
        for learner in shifted:
            learner.advance(uniforms[k : k + 5], k)
            scale = max(1.0, np.abs(learner.q).max())
            assert np.ptp(learner.q - plain.q) < 1e-11 * scale
            assert (learner.d >= 0).all() and learner.d.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_zap_with_full_steps_on_a_deterministic_problem_is_policy_iteration(seed, monkeypatch):
    problem, gamma = deterministic(seed), 0.9
    monkeypatch.setattr(learning, "zap_rate", lambda k: np.ones(len(k)))
    learner = learning.Learner(problem, gamma, "Zap", rates=lambda k: np.ones(len(k)))
    for k in range(6):
        policy = learner.q.argmax(1)
        learner.advance(np.random.default_rng(k).random((1, 10)), k)
        v = tables.evaluate(problem, policy, gamma)
        assert learner.q == pytest.approx(tables.action_values(problem, v, gamma), abs=1e-8)


def test_speedy_learning_on_one_state_follows_a_scalar_recursion():
    problem, gamma = tables.MDP(np.ones((1, 1, 1)), np.ones((1, 1))), 0.8
    learner = learning.Learner(problem, gamma, "SQL")
    learner.advance(np.full((9, 1), 0.5), 0)
    q, before = 0.0, 0.0
    for k in range(9):
        rate, old, new = 1 / (k + 1), 1 + gamma * before, 1 + gamma * q
        q, before = q + rate * (old - q) + (1 - rate) * (new - old), q
    assert learner.q[0, 0] == pytest.approx(q, abs=1e-12)


def test_draws_have_the_frequencies_of_the_chain():
    problem = tables.garnet(4, 2, 3, 5)
    total = learning.cumulative(problem)
    uniforms = np.random.default_rng(0).random((20_000, 8))
    counts, out = np.zeros((8, 4)), np.empty(8, np.int64)
    for row in uniforms:
        learning._draw(total, row, out)
        counts[np.arange(8), out] += 1
    assert counts / len(uniforms) == pytest.approx(problem.rows, abs=0.015)
    assert (counts[problem.rows == 0] == 0).all()


def test_runs_repeat_do_not_depend_on_company_and_report_often():
    problem = tables.garnet(6, 2, 3, 0)
    steps = learning.learn_steps(problem, 0.9, ("QL (rescaled)", "R1-QL"), 600, seeds=(3, 4))
    seen = []
    while True:
        try:
            seen.append(next(steps))
        except StopIteration as end:
            both = end.value
            break
    assert len(seen) > 50 and all(0 <= step.done <= 1 for step in seen)
    alone = learning.learn(problem, 0.9, ("R1-QL",), 600, seeds=(4,))
    assert (alone["R1-QL"].q[0] == both["R1-QL"].q[1]).all()
    assert both["R1-QL"].errors.shape == (2, len(learning.checkpoints(600)))
    assert (both["R1-QL"].errors[:, -1] < both["QL (rescaled)"].errors[:, 0]).all()
    assert (both["R1-QL"].spread <= both["R1-QL"].errors + 1e-12).all()
    assert (both["R1-QL"].seconds >= 0).all()


def test_every_learner_comes_close_to_the_optimum_but_harmonic_q_learning():
    problem, gamma = tables.garnet(10, 2, 4, 1), 0.9
    found = learning.learn(problem, gamma, steps=3000, seeds=(0, 1, 2))
    start = np.abs(tables.policy_iteration(problem, gamma)[0]).max()  # of q = 0, about
    for name, result in found.items():
        limit = 1.0 if name == "QL (harmonic)" else 0.1
        assert (result.errors[:, -1] < limit * start).all(), name
    assert (found["R1-QL"].wrong[:, -1] <= 1).all()


def test_the_clock_starts_once_everything_is_compiled(monkeypatch):
    events, advance, clock = [], learning.Learner.advance, learning.time.thread_time

    def noted(self, *arguments):
        events.append(self.kind)
        return advance(self, *arguments)

    monkeypatch.setattr(learning.Learner, "advance", noted)
    monkeypatch.setattr(learning.time, "thread_time", lambda: (events.append("clock"), clock())[1])
    learning.learn(tables.garnet(4, 2, 2), 0.9, steps=2)
    assert events[: events.index("clock")] == [kind for kind, _ in learning.METHODS.values()]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: learning.Learner(p, 0.9, "R1QL"), "did you mean 'R1-QL'"),
        (lambda p: learning.Learner(p, 0.9, "QL", "harmonc"), "did you mean 'harmonic'"),
        (lambda p: learning.Learner(p, 1.0, "QL"), "relative value iteration"),
        (lambda p: learning.learn(p, 0.9, ("Zapp",)), "did you mean 'Zap'"),
        (
            lambda p: learning.Learner(tables.garnet(121, 5, 2), 0.9, "Zap"),
            r"n x m = 605 unknowns in each step, about .* s: at most 600",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call(deterministic())
    assert "\n" not in str(caught.value)
