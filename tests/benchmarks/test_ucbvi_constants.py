"""Speed of the learners: ratios to a plain program and to rlberry, and the drawings of the page.

The plain program is the slow twin of the tests: one object an episode after the other, as the
released program is, which needs an older numpy and is not measured here. Times are processor
seconds of one thread; what is measured is printed.
"""

import time

import pytest
from ucbvi_reference import Reference

from workbench.methods.ucbvi_constants import bonuses, drawings, experiments, learning
from workbench.methods.ucbvi_constants.learning import learn
from workbench.numerics.mdp import uniform_random
from workbench.steps import run

pytestmark = pytest.mark.benchmark
SLOWER = 3.0  # how much slower a machine may be, at its worst, than the one of the targets


@pytest.fixture(scope="module")
def mdp():
    learning.warm_up()
    return uniform_random(3, 3, 0)


def seconds_of(function, repeats: int = 3) -> float:
    """The least processor time of this thread over some calls."""
    times = []
    for _ in range(repeats):
        before = time.thread_time()
        function()
        times.append(time.thread_time() - before)
    return min(times)


@pytest.mark.parametrize("algorithm", bonuses.PAPER)
def test_a_hundred_times_as_fast_as_a_plain_program(mdp, algorithm):
    # The same stretch of both, later than the first episodes, in which MVP plans most often.
    K, before, few = 50_000, 1_000, 300

    def own():
        learner = learning.Learner(mdp, algorithm, H=5, K=K)
        learner.advance(before)
        return seconds_of(lambda: learner.advance(few), 1)

    slow = Reference(mdp, algorithm, 5, K)
    for _ in range(before):
        slow.episode()
    plain = seconds_of(lambda: [slow.episode() for _ in range(few)], 1)
    quick = min(own() for _ in range(5))
    print(f"{algorithm}: {1e6 * quick / few:.2f} us an episode, {plain / quick:.0f} times as fast")
    assert plain / quick > 100


def test_a_run_of_the_main_figure_takes_less_than_a_second(mdp):
    seconds = learn(mdp, "BF-I", H=5, K=100_000).seconds
    print(f"BF-I, 3/3/5, 10^5 episodes: {seconds:.2f} s")
    assert seconds < 1.0 * SLOWER


def test_twenty_times_as_fast_as_rlberry(mdp):
    # Not in the extra "peers": it pins old libraries.
    pytest.importorskip(
        "rlberry_scool",
        reason="in an environment of its own: pip install rlberry-scool, then this package",
    )
    from rlberry.envs import FiniteMDP
    from rlberry_scool.agents import UCBVIAgent

    own = learn(mdp, "practitioner", H=5, K=50_000).seconds / 50_000
    few = 300
    agent = UCBVIAgent(FiniteMDP(mdp.R, mdp.P), horizon=5, gamma=1.0)
    their = seconds_of(lambda: agent.fit(budget=few), 1) / few
    print(f"rlberry {1e6 * their:.0f} us an episode, ours {1e6 * own:.1f}: {their / own:.0f} times")
    assert their / own > 20


def test_closed_form_pictures_answer_within_50_ms(mdp):
    sizes = bonuses.Sizes(3, 3, 5, 100_000)
    measured = run(experiments.compare_steps([mdp], bonuses.PAPER, 5, 10_000))
    for name, draw in (
        ("bonus", lambda: drawings.anatomy(sizes)),
        ("bounds", lambda: drawings.bounds_drawing(sizes, [measured])),
    ):
        seconds = seconds_of(draw)
        print(f"{name}: {1e3 * seconds:.1f} ms")
        assert seconds < 0.05


def test_the_microscope_answers_within_100_ms_and_short_runs_within_a_release(mdp):
    watched = learn(mdp, "BF-I", H=5, K=10_000, snapshots=200)
    seconds = seconds_of(lambda: drawings.microscope(watched, 100, 1, 0))
    print(f"microscope {1e3 * seconds:.2f} ms, run of 10^4 episodes {1e3 * watched.seconds:.0f} ms")
    assert seconds < 0.1 and watched.seconds < 0.04 * SLOWER
