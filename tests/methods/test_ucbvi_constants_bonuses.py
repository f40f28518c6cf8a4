"""Closed forms: bonuses against the engine and by hand, bounds, and the bandits of the warm-up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.methods.ucbvi_constants import bandits
from workbench.methods.ucbvi_constants.bonuses import (
    ALGORITHMS,
    PAPER,
    Sizes,
    bernstein_below_hoeffding_from,
    bonus,
    meaningful_from,
    rare,
    regret_bound,
    terms,
    visits_to_inform,
)
from workbench.methods.ucbvi_constants.learning import Learner
from workbench.numerics.mdp import uniform_random

SIZES = Sizes(3, 3, 5, 100_000)


@pytest.mark.parametrize("algorithm", [*PAPER, "tight CH", "practitioner", "greedy"])
def test_the_engine_adds_the_bonus_of_the_closed_form(algorithm):
    mdp, H, K = uniform_random(3, 3, 2), 4, 400
    learner = Learner(mdp, algorithm, H=H, K=K, scale=0.5, seed=1)
    learner.advance(399)
    m = learner.memory
    P_hat, n, reached = m.P_hat.copy(), m.n.copy(), m.reached.copy()
    if algorithm == "MVP":
        m.marks[3] = 1  # a replan is due
    learner.advance(1)
    for h in range(H):
        for s, a in np.argwhere(n > 0):
            p, v = P_hat[s, a], m.V[h + 1]
            spread = p @ v**2 - (p @ v) ** 2
            if algorithm.startswith("BF"):  # the mean over next states of what N' leaves
                c = rare(algorithm, Sizes(3, 3, H, K))
                weights = np.minimum(c / np.maximum(reached[h + 1], 1), H**2)
                same = c / max(p @ weights, 1e-9)  # one N' for all that gives the same mean
            else:
                same = 0.0
            wanted = bonus(
                algorithm, n[s, a], Sizes(3, 3, H, K), variance=max(spread, 0), reached=same,
                h=h + 1, scale=0.5,
            )  # fmt: skip
            assert m.bonus[h, s, a] == pytest.approx(float(wanted), abs=1e-12)


def test_the_numbers_of_the_table_by_hand():
    L = np.log(5 * 3 * 3 * 100_000 * 5)
    assert SIZES.L == pytest.approx(L)
    assert Sizes(3, 3, 5, 100_000, 0.05).L == pytest.approx(L + np.log(20))
    assert SIZES.ell == pytest.approx(np.log(200 * 9 * 25 * 1e10 * 1e5))
    assert Sizes(3, 3, 5, 100_000, mvp_delta=0.5).ell == pytest.approx(
        np.log(200 * 9 * 25 * 1e10 * 2)
    )
    assert float(bonus("CH", 100, SIZES)) == pytest.approx(7 * 5 * L / 10)
    assert float(bonus("CH-I", 100, SIZES)) == pytest.approx(2 * 5 * L / 10)
    assert float(bonus("tight CH", 100, SIZES)) == pytest.approx(5 * np.sqrt(L / 200))
    own = {name: float(term) for name, term in terms("BF-I", 100, SIZES, 2.0).items()}
    assert own["variance"] == pytest.approx(np.sqrt(4 * L * 2 / 100))
    assert own["lower order"] == pytest.approx(7 * 5 * L / (3 * 99))
    assert own["correction"] == pytest.approx(2 * 5 / 10)
    assert float(terms("BF", 1, SIZES)["lower order"]) == pytest.approx(14 * 5 * L / 3)
    assert float(terms("BF-I", 1, SIZES)["lower order"]) == pytest.approx(7 * 5 * L / 3)
    assert float(terms("BF", 100, SIZES)["correction"]) == pytest.approx(np.sqrt(8) * 5 / 10)
    assert float(bonus("practitioner", 100, SIZES, h=2)) == pytest.approx(0.1 + 4 / 100)
    assert float(bonus("practitioner", 1, SIZES, h=2)) == 4


def test_the_third_term_is_at_its_cap_for_a_whole_run():
    assert rare("BF-I", SIZES) == pytest.approx(6.8e9, rel=0.05)
    capped = terms("BF-I", 10, SIZES, reached=100_000)["correction"]
    assert float(capped) == pytest.approx(2 * 5 / np.sqrt(10))
    assert float(terms("BF-I", 10, SIZES, reached=1e10)["correction"]) < float(capped)


def test_visits_until_a_bonus_says_something():
    L = SIZES.L
    assert visits_to_inform("CH", SIZES) == int(49 * L**2) + 1 == pytest.approx(14_000, rel=0.03)
    assert visits_to_inform("CH-I", SIZES) == int(4 * L**2) + 1 == pytest.approx(1140, rel=0.03)
    assert visits_to_inform("MVP", SIZES) == int(544 / 9 * SIZES.ell) + 1
    assert visits_to_inform("greedy", SIZES) == 1
    assert visits_to_inform("CH", SIZES, scale=1e9) is None


def test_ratios_of_the_improvements():
    N = np.geomspace(1, 1e6, 30)
    np.testing.assert_allclose(bonus("CH", N, SIZES) / bonus("CH-I", N, SIZES), 3.5)
    ratio = bonus("BF", 1e14, SIZES, variance=2.0) / bonus("BF-I", 1e14, SIZES, variance=2.0)
    assert float(ratio) == pytest.approx(np.sqrt(2), rel=1e-4)


@given(
    st.sampled_from(ALGORITHMS), st.integers(1, 10**6), st.floats(0, 6), st.integers(1, 5),
    st.floats(0, 1e9),
)  # fmt: skip
def test_a_bonus_falls_with_the_visits_and_is_the_sum_of_its_terms(algorithm, N, var, h, reached):
    more = {"variance": var, "h": h, "reached": reached}
    here, next_ = (float(bonus(algorithm, n, SIZES, **more)) for n in (N, N + 1))
    assert 0 <= next_ <= here
    parts = terms(algorithm, N, SIZES, **more)
    assert sum(map(float, parts.values())) == pytest.approx(here)


def test_published_bounds_are_vacuous_at_every_simulated_length():
    assert 1e7 < meaningful_from("CH", SIZES) < 1e8
    assert 1e8 < meaningful_from("BF", SIZES) < 1e9
    assert float(regret_bound("CH", 1e5, SIZES)) == pytest.approx(5.2e7, rel=0.02)
    assert float(regret_bound("BF", 1e5, SIZES)) == pytest.approx(4.9e8, rel=0.02)
    assert SIZES.trivial == 5e5
    assert SIZES.lower_order == pytest.approx(np.sqrt(5 * 3 * 3 * 5e5))
    assert bernstein_below_hoeffding_from(SIZES) > 1e10
    for algorithm in ("CH", "BF"):
        K = meaningful_from(algorithm, SIZES)
        assert float(regret_bound(algorithm, K, SIZES)) == pytest.approx(5 * K, rel=1e-6)


def test_the_refined_bounds_are_unknown_and_not_invented():
    with pytest.raises(ValueError, match="algorithm = 'BF-I'; allowed are CH, BF"):
        regret_bound("BF-I", 1e5, SIZES)
    with pytest.raises(ValueError, match="did you mean 'CH"):
        bonus("CHI", 10, SIZES)


@pytest.mark.parametrize(
    "A, published, refined", [(3, (185.8, 21.7), (64.5, 11.6)), (10, (639.0, 40.0), (206.0, 24.0))]
)
def test_the_refined_bandit_index_loses_a_third_as_much(A, published, refined):
    found = {
        index: np.mean([
            bandits.pull(bandits.arms(A, s), 100_000, index, seed=s).regret[-1] for s in range(20)
        ])
        for index in bandits.INDICES
    }  # fmt: skip
    # Mean over 20 sets of arms and its standard error, of an independent program.
    for index, (mean, error) in (("published", published), ("refined", refined)):
        assert found[index] == pytest.approx(mean, abs=4 * error)
    assert 0.2 < found["refined"] / found["published"] < 0.5


@pytest.mark.parametrize("index", bandits.INDICES)
def test_bandits_pull_each_arm_first_and_then_the_highest_index(index):
    means, T = np.array([0.2, 0.9, 0.5]), 400
    found = bandits.pull(means, T, index, seed=3)
    rng = np.random.Generator(np.random.SFC64(3))
    pulls, wins, lost = np.zeros(3), np.zeros(3), 0.0
    for t in range(1, T + 1):
        width = 2 * np.log(T) if index == "published" else np.log(t) / 2
        a = t - 1 if t <= 3 else int(np.argmax(wins / pulls + np.sqrt(width / pulls)))
        wins[a] += rng.random() < means[a]
        pulls[a] += 1
        lost += 0.9 - means[a]
    np.testing.assert_array_equal(found.pulls, pulls)
    assert found.regret[-1] == pytest.approx(lost) and found.rounds[-1] == T


@pytest.mark.parametrize(
    "means, T, index, words",
    [
        ([0.5, 1.2], 10, "refined", "means must be a list of probabilities"),
        ([], 10, "refined", "means must be"),
        ([0.5] * 5, 4, "refined", "T = 4: 5 arms need at least as many rounds"),
        ([0.5], 4, "refine", "did you mean 'refined'"),
    ],
)
def test_bad_bandits_are_refused(means, T, index, words):
    with pytest.raises(ValueError, match=words):
        bandits.pull(means, T, index)
