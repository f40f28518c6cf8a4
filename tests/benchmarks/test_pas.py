"""Speed of PAS: ratios to a loop over ppi_py, time of a split, growth with the number of items."""

import time
import tracemalloc

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from workbench.methods.pas import live, moments, peers, study
from workbench.methods.pas.estimators import estimate
from workbench.methods.pas.problems import Problems
from workbench.methods.pas.trials import Setting, run_chunk

pytestmark = pytest.mark.benchmark
SLOWER = 3.0  # how much slower a machine may be, at its worst, than the one of the targets


def seconds(function, rounds=7):
    """Median processor time of one thread; the first call is not counted."""
    function()
    spent = []
    with threadpool_limits(1):
        for _ in range(rounds):
            started = time.thread_time()
            function()
            spent.append(time.thread_time() - started)
    return float(np.median(spent))


def test_forty_times_faster_than_a_loop_over_ppi_py():
    """Summaries and PT of 200 problems, 20,000 items, from flat arrays."""
    pytest.importorskip("ppi_py")
    y, f, f_u = peers.items(200, 0)
    flat = (np.repeat(np.arange(200), 20), y.ravel(), f.ravel(), np.repeat(np.arange(200), 80),
            f_u.ravel())  # fmt: skip

    def ours():
        p = Problems.of(*flat)
        return estimate(p, "per_problem", ["pt"])["pt"].theta

    own, peer = seconds(ours, 15), seconds(lambda: peers.one_by_one(y, f, f_u), 3)
    print(
        f"\nours {1e3 * own:.2f} ms, loop over ppi_py {1e3 * peer:.0f} ms, ratio {peer / own:.0f}"
    )
    assert peer / own >= 40


@pytest.mark.parametrize("setting", [Setting(), Setting(data="synthetic", m=50)])
def test_a_split_of_five_thousand_items_takes_sixty_milliseconds(setting):
    """Drawing it, all estimators, and on real data two further regimes of PAS."""
    took = seconds(lambda: run_chunk(setting, setting.rows, [0]), 15)
    print(f"\n{setting.data}: {1e3 * took:.1f} ms a split")
    assert took <= 0.06


def flat_items(m, items):
    """Items of m problems of equal size, a fifth of them labelled."""
    rng = np.random.default_rng(0)
    code = np.arange(items) % m
    level = rng.standard_normal(m)[code]
    y, f = level + rng.standard_normal((2, items))
    cut = items // 5
    return code[:cut], y[:cut], f[:cut], code[cut:], f[cut:]


def everything(arrays):
    return estimate(Problems.of(*arrays))


def test_a_million_items_take_less_than_a_second_and_200_megabytes():
    arrays = flat_items(10_000, 1_000_000)
    took = seconds(lambda: everything(arrays), 3)
    tracemalloc.start()
    everything(arrays)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    print(f"\n10^6 items, 10^4 problems: {took:.2f} s, {peak:.0f} MB at most")
    assert took < 1.0 and peak < 200


def test_time_is_linear_in_the_number_of_items():
    few, many = (flat_items(1000, n) for n in (100_000, 800_000))
    ratio = min(
        seconds(lambda: moments.pooled_within(Problems.of(*many)), 3)
        / seconds(lambda: moments.pooled_within(Problems.of(*few)), 3)
        for _ in range(3)
    )
    print(f"\n8 times the items take {ratio:.1f} times the time")
    assert ratio <= 8 * 1.5


def test_pictures_answer_within_their_time():
    """One problem and the line of omega in 50 ms, another split in 100 ms, drawing included."""
    bench = live.Bench(study.Parameters())
    places = iter(np.linspace(0.3, 0.7, 100))
    moved = seconds(lambda: setattr(bench.cure, "at", next(places)))
    one, split = seconds(bench._draw_one), seconds(bench.another)
    print(
        f"\nomega {1e3 * moved:.0f} ms, one problem {1e3 * one:.1f} ms, split {1e3 * split:.0f} ms"
    )
    assert moved <= 0.05 and one <= 0.05 and split <= 0.1


def test_a_quick_study_takes_less_than_its_ten_seconds():
    found = study.run(study.Parameters.preset("quick"), progress=False)
    print(f"\nquick study {found.seconds:.1f} s")
    assert found.seconds <= 10 * SLOWER
