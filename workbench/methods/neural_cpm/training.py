"""Maximum likelihood for Hamiltonians: energy down on data, up on the model's own samples.

The gradient of -log L is E_data[dH] - E_model[dH] at temperature 1. Samples come from persistent
chains of the parallel kernel; no gradient runs through the sampler. One loop serves the
cell-sorting energy, every network and the closure. What the result can do is measured elsewhere.
"""

from __future__ import annotations

import queue
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from workbench.steps import Step, Steps, run

from ._checks import all_alive, as_frames, as_kind, choice
from .closure import OFFSET_SCALE, Hamiltonian, parts
from .ensemble import permute_identities
from .sampling import ParallelSampler

NEGATIVES = ("chains", "data", "noise")
COLUMNS = ("energy_data", "energy_chains", "gap", "acceptance", "learning_rate")


@dataclass
class Training:
    """The state of a training and, at its end, its result.

    model: its weights are the selected ones once the training ends or is cancelled. history: arrays
    over iterations: energy_data, energy_chains, gap (their difference), acceptance, learning_rate.
    chains (n, H, W): the present samples. metrics: (iteration, value) of each evaluation.
    best_iteration: the iteration whose weights were selected. stopped: why it ended early, or "".
    """

    model: Hamiltonian
    history: dict[str, np.ndarray] = field(default_factory=dict)
    chains: np.ndarray | None = None
    metrics: list[tuple[int, float]] = field(default_factory=list)
    best_iteration: int = 0
    stopped: str = ""
    seconds: float = 0.0


def rotated(frame: np.ndarray, angle: float) -> np.ndarray:
    """frame (H, W) turned about its center by `angle` radians, nearest site, medium outside.

    The frame itself where a cell would lose its last site.
    """
    height, width = frame.shape
    row, column = np.indices(frame.shape) - np.array([height - 1, width - 1])[:, None, None] / 2
    cosine, sine = np.cos(angle), np.sin(angle)
    r = np.rint(cosine * row + sine * column + (height - 1) / 2).astype(int)
    c = np.rint(cosine * column - sine * row + (width - 1) / 2).astype(int)
    inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
    turned = np.where(inside, frame[r % height, c % width], 0)
    return turned if np.array_equal(np.unique(turned), np.unique(frame)) else frame


class Positives:
    """Draws data frames, with replacement and optionally at random angles, and starts of chains."""

    def __init__(self, frames: np.ndarray, rotate: bool, rng: np.random.Generator):
        self.frames, self.rotate, self.rng = frames, rotate, rng

    def draw(self, n: int) -> np.ndarray:
        """n frames (n, H, W) as they are in the data."""
        chosen = self.frames[self.rng.integers(len(self.frames), size=n)]
        if self.rotate:
            angles = self.rng.uniform(0, 2 * np.pi, n)
            chosen = np.stack([rotated(*pair) for pair in zip(chosen, angles, strict=True)])
        return chosen

    def restarts(self, n: int) -> np.ndarray:
        """n frames whose kinds are permuted over the cells (official restarts)."""
        return permute_identities(self.draw(n), self.rng)

    def noise(self, n: int) -> np.ndarray:
        """n frames whose sites are shuffled: all cells keep their volume, nothing else is left."""
        frames = self.draw(n)
        return self.rng.permuted(frames.reshape(n, -1), axis=1).reshape(frames.shape)


def center(model: Hamiltonian, frames: np.ndarray, kind: Sequence[int]) -> None:
    """Set the offset so that the mean energy of `frames` is 0 (ours; a network alone has none).

    The regulariser pulls energies to 0. Started there, it does not first push all of them down.
    """
    basis, _, w_b, _ = parts(model)
    if basis is not None and w_b:
        with torch.no_grad():
            basis.offset -= model(frames, kind).mean() / (w_b * OFFSET_SCALE)


def train_steps(
    model: Hamiltonian,
    frames: np.ndarray,
    kind: Sequence[int],
    *,
    iterations: int = 300,
    lr: float = 3e-3,
    final_lr: float = 0.05,
    reg: float = 5e-4,
    chains: int = 8,
    steps: int = 8,
    n_parallel: int = 40,
    p_reset: float = 0.025,
    delta: str = "first_order",
    negatives: str = "chains",
    rotate: bool = False,
    ema: float = 0.0,
    metric: Callable[[Hamiltonian], float] | None = None,
    metric_every: int = 100,
    seed: int = 0,
) -> Steps[Training]:
    """Train `model` in place on frames (n, H, W) of cells with kinds `kind`; a generator of steps.

    iterations, lr: Adam, learning rate with cosine decay to final_lr x lr (1 = constant, official).
    reg: weight rho of the mean squared energies. chains: data frames and samples an iteration.
    steps, n_parallel, delta: parallel steps an iteration, see `ParallelSampler`. p_reset:
    probability that a chain restarts from a data frame with permuted kinds. negatives: "chains"
    (persistent), "data" (restart from data in each iteration: CD-k) or "noise" (shuffled sites
    instead of samples, for comparison). rotate: turn data by random angles. ema: decay of averaged
    weights, which are then the ones evaluated and returned (0 = last weights, official). metric:
    called with the model every `metric_every` iterations and at the end; the weights with the
    lowest value are kept. A non-finite energy ends the training with the last good weights and a
    warning. Closing the generator keeps the best weights so far. Each `Step` carries a `Training`.
    Raises ValueError for bad input.
    """
    for name, value, least, most in (
        ("iterations", iterations, 1, np.inf),
        ("reg", reg, 0.0, 1.0),
        ("p_reset", p_reset, 0.0, 1.0),
        ("ema", ema, 0.0, 1.0),
        ("chains", chains, 1, np.inf),
        ("steps", steps, 1, np.inf),
    ):
        if not least <= value <= most:
            raise ValueError(f"{name} = {value}: allowed are {least:g} to {most:g}")
    choice("negatives", negatives, NEGATIVES)
    frames = as_frames(frames, "frames")
    all_alive(frames, as_kind(kind))
    rng = np.random.default_rng(seed)
    data = Positives(frames, rotate, rng)
    center(model, frames, kind)
    sampler = ParallelSampler(
        model, data.restarts(chains), kind, n_parallel, delta, seed=int(rng.integers(2**32))
    )
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(trained, lr, fused=True)
    result = Training(model, history={name: np.empty(0) for name in COLUMNS})
    rows, started = [], time.perf_counter()
    average = good = parameters_to_vector(trained).detach()
    best: tuple[float, Tensor] | None = None

    def evaluate(iteration: int, weights: Tensor) -> None:
        nonlocal best
        present = parameters_to_vector(trained).detach()
        vector_to_parameters(weights, trained)
        value = float(metric(model))
        vector_to_parameters(present, trained)
        result.metrics.append((iteration, value))
        if np.isfinite(value) and (best is None or value < best[0]):
            best, result.best_iteration = (value, weights), iteration

    def summary() -> Training:
        columns = np.array(rows).reshape(-1, len(COLUMNS)).T
        result.history = dict(zip(COLUMNS, columns, strict=True))
        result.chains, result.seconds = sampler.frames, time.perf_counter() - started
        return result

    try:
        for iteration in range(1, iterations + 1):
            rate = 0.5 * (1 + np.cos(np.pi * (iteration - 1) / iterations))
            rate = lr * (final_lr + (1 - final_lr) * rate)
            optimizer.param_groups[0]["lr"] = rate
            positive = data.draw(chains)
            if negatives == "chains":
                renewed = rng.random(chains) < p_reset
                start = None
                if renewed.any():
                    start = sampler.frames
                    start[renewed] = data.restarts(int(renewed.sum()))
            else:
                start = data.draw(chains) if negatives == "data" else data.noise(chains)
            sampler.refresh(start)
            if negatives != "noise":
                for _ in range(steps):
                    if not sampler.step():
                        break
            energy = model(np.concatenate([positive, sampler.frames]), kind)
            on_data, on_chains = energy[:chains], energy[chains:]
            gap = on_data.mean() - on_chains.mean()
            loss = gap + reg * ((on_data**2).mean() + (on_chains**2).mean())
            if not torch.isfinite(loss):
                result.stopped = f"non-finite energy in iteration {iteration}"
                warnings.warn(f"{result.stopped}: keeping the last good weights", stacklevel=2)
                break
            good = parameters_to_vector(trained).detach()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            now = parameters_to_vector(trained).detach()
            average = torch.lerp(now, average, ema)
            rows.append((on_data.mean().item(), on_chains.mean().item(), gap.item()))
            rows[-1] += (sampler.acceptance, rate)
            if metric is not None and (iteration % metric_every == 0 or iteration == iterations):
                evaluate(iteration, average)
            message = f"iteration {iteration} of {iterations}, gap {rows[-1][2]:+.2f}"
            yield Step(iteration / iterations, message, summary())
    finally:
        if best is not None:
            chosen = best[1]
        else:
            chosen = good if result.stopped else average
            result.best_iteration = len(rows)
        vector_to_parameters(chosen, trained)
    return summary()


def train(model: Hamiltonian, frames: np.ndarray, kind: Sequence[int], **options: Any) -> Training:
    """`train_steps` with the same options, run to the end."""
    return run(train_steps(model, frames, kind, **options))


def train_many_steps(
    models: Sequence[Hamiltonian],
    frames: np.ndarray,
    kind: Sequence[int],
    seeds: Sequence[int],
    workers: int = 2,
    **options: Any,
) -> Steps[list[Training]]:
    """Train each model with its seed, `workers` at a time on threads; options of `train_steps`.

    Results do not depend on `workers`: every training has its own random numbers and one thread.
    Each `Step` carries the list of trainings so far. Closing the generator stops them all.
    """
    if len(models) != len(seeds) or not models:
        raise ValueError(f"need one seed for each model: {len(models)} models, {len(seeds)} seeds")
    reports: queue.SimpleQueue = queue.SimpleQueue()
    stopping = threading.Event()

    def work(number: int) -> Training:
        torch.set_num_threads(1)  # of this thread, and the default of threads to come
        steps = train_steps(models[number], frames, kind, seed=seeds[number], **options)
        return run(steps, lambda step: reports.put((number, step)), stopping.is_set)

    latest: list[Training | None] = [None] * len(models)
    done, threads = np.zeros(len(models)), torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, "neural_cpm_training")
    try:
        futures = [pool.submit(work, number) for number in range(len(models))]
        while not all(future.done() for future in futures):
            try:
                number, step = reports.get(timeout=0.05)
            except queue.Empty:
                continue
            done[number], latest[number] = step.done, step.data
            yield Step(float(done.mean()), f"training {number + 1}: {step.message}", list(latest))
        return [future.result() for future in futures]
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def train_many(
    models: Sequence[Hamiltonian],
    frames: np.ndarray,
    kind: Sequence[int],
    seeds: Sequence[int],
    workers: int = 2,
    **options: Any,
) -> list[Training]:
    """`train_many_steps`, run to the end."""
    return run(train_many_steps(models, frames, kind, seeds, workers, **options))
