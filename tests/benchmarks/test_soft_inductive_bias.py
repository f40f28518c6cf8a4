"""Speed of the soft biases: refits, one Cholesky against scikit-learn, batches against loops.

Times are processor seconds of one thread; what is measured is printed. Targets are for a free
core, so limits in seconds are relaxed by SLOWER; ratios are measured in one run.
"""

import os
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from workbench.methods.soft_inductive_bias import (
    closed_forms,
    digits,
    drawings,
    experiments,
    live,
    networks,
    polynomials,
    processes,
    representation,
    study,
)
from workbench.steps import run

pytestmark = pytest.mark.benchmark
SLOWER = 3.0  # how much slower a machine may be, at its worst, than the one of the targets
RHO = [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def seconds_of(function, repeats: int = 5) -> float:
    """The least processor time of this thread over some calls."""
    times = []
    for _ in range(repeats):
        before = time.thread_time()
        function()
        times.append(time.thread_time() - before)
    return min(times)


def test_a_refit_of_order_150_takes_five_milliseconds():
    x = np.linspace(-1, 1, 60)
    y = polynomials.draw("complex", x, np.random.default_rng(0), 3)
    seconds = seconds_of(lambda: polynomials.fit(x, y).predict(x), 20)
    print(f"refit of three data sets, n = 60: {1e3 * seconds:.2f} ms")
    assert seconds < 0.005


def test_five_shares_of_random_labels_take_two_seconds():
    s = digits.split(1200, 0)
    seconds = seconds_of(lambda: experiments.label_process(s, RHO, 0, 1.0, 0.01), 2)
    print(f"1,200 digits, 5 shares, 10 outputs: {seconds:.2f} s")
    assert seconds < 2.0


def test_one_cholesky_for_all_outputs_is_not_slower_than_scikit_learn():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    s = digits.split(1200, 0)
    y = digits.centered_one_hot(s.train_y)

    def ours():
        gp = processes.regression(0.1 * processes.rbf(s.train_x, s.train_x), y, 0.01)
        return gp.predict(0.1 * processes.rbf(s.test_x, s.train_x))

    def theirs():
        kernel = ConstantKernel(0.1, "fixed") * RBF(1.0, "fixed")
        peer = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(s.train_x, y)
        return peer.predict(s.test_x)

    np.testing.assert_allclose(ours(), theirs(), atol=1e-6)
    own, peer = seconds_of(ours, 3), seconds_of(theirs, 3)
    print(f"ours {own:.2f} s, scikit-learn {peer:.2f} s: ratio {peer / own:.2f}")
    assert own < peer * 1.1


def test_twelve_networks_in_one_batch_are_faster_than_one_after_the_other():
    splits = [digits.split(100, seed, 0.2) for seed in range(12)]
    sizes = (64, 8, 10)
    X, Y, _, _ = experiments.stacked(splits)

    def together():
        run(networks.train_steps(
            networks.initial(sizes, range(12)), networks.supervised(X, Y, sizes), steps=100,
            lr=1e-2,
        ))  # fmt: skip

    def alone():
        for i in range(12):
            model = torch.nn.Sequential(
                torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10)
            )
            peer = torch.optim.Adam(model.parameters(), lr=1e-2)
            for _ in range(100):
                peer.zero_grad()
                torch.nn.functional.cross_entropy(model(X[i]), Y[i]).backward()
                peer.step()

    alone()
    batch, loop = seconds_of(together, 2), seconds_of(alone, 2)
    print(f"batch {batch:.2f} s, loop of torch networks {loop:.2f} s: {loop / batch:.1f} times")
    assert loop / batch > 1.5


def test_pictures_in_closed_form_answer_within_100_ms():
    """Times `SLOWER`, since machines differ."""
    bench = live.Bench(study.Parameters())
    bench.panel()
    for tab in bench.tabs:
        bench.open(tab.title)
    paths = run(representation.connected_steps(16, [0], n=200, ends=(60, 1e-2), steps=20))
    bench["Paths"]._take(paths)
    bench["Widths"].found = {h: (1.0, np.ones(1000), 0.0) for h in (4, 8, 64)}
    bench.parameters.ridge = 0.02
    weak, exact = bench["Least squares"].redraw_weak, bench["Least squares"].redraw_exact

    def other_n():
        bench["Least squares"].isotropic = None
        exact()

    def own_polynomial():
        bench.parameters.gamma = 1.2 if bench.parameters.gamma != 1.2 else 1.3
        bench["Two axes"].redraw()

    titles = ("Polynomials", "Sample size", "Random labels", "Double descent", "Widths", "Bounds",
              "Symmetry", "Features", "Paths")  # fmt: skip
    answers = {title: bench[title].redraw for title in titles} | {
        "weak": weak, "exact": exact, "exact, another n": other_n, "axes": own_polynomial,
    }  # fmt: skip
    for name, draw in answers.items():
        seconds = seconds_of(draw)
        print(f"{name}: {1e3 * seconds:.1f} ms")
        assert seconds < 0.1 * SLOWER, name
    refit = seconds_of(
        lambda: drawings.fits(closed_forms.refit(150, 1.1, 0.01, "chebyshev", 30, 0))
    )
    print(f"refit of three panels with evidence of 14 orders, and drawing: {1e3 * refit:.1f} ms")


def test_dimensions_in_one_batch_are_not_slower_than_one_after_the_other():
    p = study.Parameters(width=64)

    def together():
        run(experiments.compressed_steps(p, 64, [50, 100], [0]))

    def alone():
        for d in (50, 100):
            run(experiments.compressed_steps(p, 64, d, [0]))

    batch, loop = seconds_of(together, 1), seconds_of(alone, 1)
    print(f"two dimensions: batch {batch:.1f} s, one after the other {loop:.1f} s")
    assert batch < 1.15 * loop


MEASURED = """
import resource, time
from workbench.methods import soft_inductive_bias as bias
before = time.process_time()
made = bias.run(bias.Parameters(), progress=False)
print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


@pytest.mark.slow
def test_the_default_study_takes_a_minute_and_few_megabytes():
    output = subprocess.run(
        [sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ).stdout  # fmt: skip
    seconds, megabytes = map(float, output.split())
    print(f"default study: {seconds:.0f} processor seconds, {megabytes:.0f} MB at most")
    assert seconds < 60 * SLOWER
    # 556 to 607 on two free cores (600 aimed at); 1,077 where other work decides what meets what.
    assert megabytes < 1200
