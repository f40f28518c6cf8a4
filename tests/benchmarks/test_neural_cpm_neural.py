"""Neural copy attempts per second, as ratios in the same run: first order, exact, dense, batched.

Absolute figures are printed and depend on the machine; what must hold are the ratios that make
training on two cores possible.
"""

import time

import numpy as np
import pytest
import torch

from workbench.methods.neural_cpm.closure import CellSorting, Hybrid
from workbench.methods.neural_cpm.generators import simulate
from workbench.methods.neural_cpm.hamiltonian import NeuralEnergy, NeuralHamiltonian
from workbench.methods.neural_cpm.sampling import ParallelSampler
from workbench.methods.neural_cpm.training import train_many
from workbench.numerics.threads import one_thread

pytestmark = pytest.mark.benchmark
CHAINS, PROPOSALS = 8, 40


@pytest.fixture(scope="module")
def data():
    return simulate("bipolar", CHAINS)


def closure(seed: int = 0) -> Hybrid:
    J = np.array([[0, 4.9, 5.0], [4.9, 2.6, 6.3], [5.0, 6.3, 2.9]])
    basis = CellSorting.from_values(J, 0.68, 36.0)
    return Hybrid(basis, NeuralHamiltonian(36, seed=seed), 1.0, 1.0, False, False)


def seconds(function, budget_s: float = 2.0) -> float:
    """Median time of a call, over at least five calls."""
    function()
    times, start = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < budget_s:
        before = time.perf_counter()
        function()
        times.append(time.perf_counter() - before)
    return float(np.median(times))


def test_first_order_prices_eight_times_as_many_copies_as_exact_ones(data):
    cost = {}
    for delta in ("first_order", "exact"):
        sampler = ParallelSampler(closure(), data.frames, data.kind, PROPOSALS, delta)
        cost[delta] = seconds(sampler.step)
        print(f"{delta}: {CHAINS * PROPOSALS / cost[delta]:,.0f} copy attempts/s")
    assert cost["exact"] > 8 * cost["first_order"]  # 14 on an idle core


def test_dense_matrices_beat_convolutions_on_a_small_map(data):
    network, kind = NeuralHamiltonian(36), torch.from_numpy(data.kind).long()
    frames = torch.from_numpy(data.frames)
    target = torch.zeros((CHAINS, PROPOSALS), dtype=torch.int64)
    with one_thread(), torch.no_grad():
        fast = network.prepared()
        dense = seconds(lambda: fast.first_order(frames, kind, target, target))
        plain = seconds(lambda: NeuralEnergy.first_order(network, frames, kind, target, target))
    print(f"gradient pass: dense {1e3 * dense:.1f} ms, convolutions {1e3 * plain:.1f} ms")
    assert plain > 2 * dense


def test_two_trainings_on_threads_take_less_than_twice_one(data):
    def trained(n: int) -> float:
        models = [closure(seed) for seed in range(n)]
        start = time.perf_counter()
        train_many(models, data.frames, data.kind, range(n), iterations=30)
        return time.perf_counter() - start

    trained(1)
    one, two = trained(1), trained(2)
    print(f"30 iterations: one training {one:.1f} s, two on threads {two:.1f} s")
    assert two < 1.8 * one
