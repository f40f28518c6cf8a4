"""Speed of certified sparse GLMs as ratios, in processor time of one thread.

To a sort, to two products with X, to conic solvers and best-subset solvers. Numbers of okridge,
which needs NumPy below 2, are stored.
"""

import time

import numpy as np
import pytest
from sparse_glm_problems import synthetic, table
from threadpoolctl import threadpool_limits

from workbench.methods.sparse_glm import baselines, prox, study
from workbench.methods.sparse_glm.benches import ProxBench
from workbench.methods.sparse_glm.branch_and_bound import Search, warm_up
from workbench.methods.sparse_glm.certificate import verify
from workbench.methods.sparse_glm.experiments import race_problem, two_products
from workbench.methods.sparse_glm.relaxation import relax
from workbench.methods.sparse_glm.supports import Refits
from workbench.steps import run

pytestmark = pytest.mark.benchmark
SLOWER = 3.0  # how much slower a machine may be, at its worst, than the one of the targets
OKRIDGE_NODES_A_SECOND = 67 / 60  # the better of two runs of okridge on the 65 columns of diabetes2


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1, "blas"):
        warm_up()
        yield


@pytest.mark.parametrize("size", [10_000, 100_000, 1_000_000])
def test_the_prox_takes_at_most_two_and_a_half_sorts(size):
    v = np.random.default_rng(0).standard_normal(size)
    times = {"prox": [], "argsort": []}
    for _ in range(5):
        for name, action in (("prox", lambda: prox.prox(v, 1.0, 10, 1.0)),
                             ("argsort", lambda: np.argsort(v))):  # fmt: skip
            started = time.thread_time()
            action()
            times[name].append(time.thread_time() - started)
    ratio = min(times["prox"]) / min(times["argsort"])
    print(f"\n{size:,} numbers: prox over argsort {ratio:.2f}")
    assert ratio <= 2.5


@pytest.mark.parametrize(("size", "limit"), [(500, 3.0), (1000, 1.6)])
@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_an_iteration_costs_little_more_than_its_two_products(loss, size, limit):
    problem = race_problem(loss, size, 0)
    ratios = []
    for _ in range(3):  # other work on the machine can only make a ratio worse
        found = relax(problem)
        ratios.append(found.seconds / found.iterations / two_products(problem))
    print(f"\n{loss} {size}: an iteration over two products {min(ratios):.2f}")
    assert min(ratios) <= limit


@pytest.mark.parametrize(("size", "least"), [(200, 5), (500, 10)])
@pytest.mark.parametrize("loss", ["linear", "logistic"])
def test_root_bounds_are_many_times_faster_than_clarabel(loss, size, least):
    pytest.importorskip("cvxpy")
    problem = race_problem(loss, size, 0)
    fast, conic = relax(problem), baselines.conic_relaxation(problem)
    ratio = conic.cpu_seconds / fast.seconds
    print(f"\n{loss} {size}: Clarabel over ours {ratio:.0f}")
    assert fast.value == pytest.approx(conic.value, rel=1e-6) and ratio >= least


def test_scs_takes_longer_still():
    pytest.importorskip("cvxpy")
    problem = race_problem("linear", 100, 0)
    fast, conic = relax(problem), baselines.conic_relaxation(problem, "SCS")
    print(f"\nlinear 100: SCS over ours {conic.cpu_seconds / fast.seconds:.0f}")
    assert conic.cpu_seconds >= 5 * fast.seconds


def searched(problem, **options):
    search, started = Search(problem, **options), time.thread_time()
    result = run(search.steps())
    return search, result, result.nodes / (time.thread_time() - started)


@pytest.mark.parametrize(
    ("name", "k", "lambda2", "M", "target"),
    [("diabetes2", 5, 1.0, 2.0, 300), ("breast_cancer", 5, 2.0, 1.0, 100)],
)
def test_nodes_a_second(name, k, lambda2, M, target):
    rates = [searched(table(name, k, lambda2, M), max_nodes=300)[2] for _ in range(2)]
    print(f"\n{name}: {max(rates):.0f} nodes a second of CPU, target {target}")
    assert max(rates) >= target / SLOWER


@pytest.mark.parametrize("k", [5, 8])
def test_diabetes2_is_certified_where_okridge_leaves_a_gap_of_percents(k):
    _, result, rate = searched(table("diabetes2", k, 2.0, 0.5))
    print(f"\ndiabetes2, k {k}: gap {result.gap:.1e} after {result.nodes} nodes, "
          f"{rate / OKRIDGE_NODES_A_SECOND:.0f} times the nodes a second of okridge")  # fmt: skip
    assert result.certified and rate >= 20 * OKRIDGE_NODES_A_SECOND


def test_abess_is_instant_finds_the_same_and_proves_nothing():
    pytest.importorskip("abess")
    problem = table("diabetes2", 5, 1.0, 2.0)
    started = time.thread_time()
    fit = baselines.abess_fit(problem, Refits(problem))
    quick = time.thread_time() - started
    _, result, _ = searched(problem)
    print(f"\nabess {1000 * quick:.0f} ms, {fit.value:.6f}; certified {result.upper:.6f} in "
          f"{result.seconds:.2f} s")  # fmt: skip
    assert result.certified and result.upper <= fit.value * (1 + 1e-9)


def test_a_certificate_is_checked_in_a_fraction_of_the_search():
    problem = table("breast_cancer", 5, 2.0, 1.0)
    _, result, _ = searched(problem)
    checked = verify(result.certificate(), problem.X, problem.y)
    print(f"\nsearch {result.seconds:.2f} s, check {checked.seconds:.3f} s")
    assert checked.valid and checked.seconds <= 0.5 * result.seconds


@pytest.mark.slow
def test_four_thousand_features_are_certified_in_fifty_megabytes_of_nodes():
    problem = synthetic("linear", 4000, k=10, M=1.5)
    search, result, _ = searched(problem)
    print(f"\n4000 x 4000: {result.nodes} nodes, {result.seconds:.1f} s, "
          f"{search.held / 1e6:.1f} MB")  # fmt: skip
    assert result.certified and result.support == tuple(range(0, 4000, 400))
    assert search.held <= 50e6


def test_the_prox_playground_answers_within_thirty_milliseconds():
    bench, times = ProxBench(), []
    bench.throw()
    for number in range(20):
        started = time.thread_time()
        bench.bars.values = [*bench.bars.values[:-1], number / 10 - 1]
        times.append(time.thread_time() - started)
    print(f"\na move of a bar: {1000 * np.median(times):.1f} ms")
    assert np.median(times) <= 0.03


def test_a_quick_study_takes_less_than_its_ten_seconds():
    p = study.Parameters.preset("quick")
    study.run(p, progress=False)
    seconds = study.run(p, progress=False).seconds
    print(f"\nquick study {seconds:.1f} s")
    assert seconds <= 10
