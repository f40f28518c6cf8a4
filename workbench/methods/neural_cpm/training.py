"""Maximum likelihood for Hamiltonians: energy down on data, up on the model's own samples.

The gradient of -log L is E_data[dH] - E_model[dH] at temperature 1. Samples come from persistent
chains of the parallel kernel; no gradient runs through the sampler. One loop serves the
cell-sorting energy, every network and the closure. What the result can do is measured elsewhere.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import parameters_to_vector

from workbench.numerics.checks import choice
from workbench.numerics.optimizers import Adam
from workbench.numerics.threads import one_thread
from workbench.steps import Step, Steps, part, run, together

from ._checks import all_alive, as_frames, as_kind
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
    history: dict[str, np.ndarray]
    chains: np.ndarray
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


class Pictures:
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

    def permuted(self, n: int) -> np.ndarray:
        """n frames whose kinds are permuted over the cells (official restarts)."""
        return permute_identities(self.draw(n), self.rng)

    def shuffled(self, n: int) -> np.ndarray:
        """n frames whose sites are shuffled: all cells keep their volume, nothing else is left."""
        frames = self.draw(n)
        return self.rng.permuted(frames.reshape(n, -1), axis=1).reshape(frames.shape)

    def starts(self, negatives: str, chains: np.ndarray, p_reset: float) -> np.ndarray | None:
        """Frames from which the chains (n, H, W) go on, None if from where they are."""
        if negatives == "data":
            return self.draw(len(chains))
        if negatives == "noise":
            return self.shuffled(len(chains))
        renewed = self.rng.random(len(chains)) < p_reset
        if not renewed.any():
            return None
        chains[renewed] = self.permuted(int(renewed.sum()))
        return chains


class Weights:
    """The trained parameters of a model as vectors: last good ones, their average, the best."""

    def __init__(self, model: Hamiltonian, ema: float):
        self.trained, self.ema = [p for p in model.parameters() if p.requires_grad], ema
        self.average = self.good = self.present()
        self.best: Tensor | None = None
        self.best_value = np.inf

    def present(self) -> Tensor:
        return parameters_to_vector(self.trained).detach()

    def load(self, vector: Tensor) -> None:
        # In place: parameters moved to other addresses would round otherwise.
        with torch.no_grad():
            pieces = vector.split([p.numel() for p in self.trained])
            for parameter, piece in zip(self.trained, pieces, strict=True):
                parameter.copy_(piece.view_as(parameter))

    def updated(self) -> None:
        """Follow the parameters after a step of the optimizer."""
        self.average = torch.lerp(self.present(), self.average, self.ema)

    def judged(self, value: float) -> bool:
        """Keep the average as the best if its metric is the lowest so far; True if so."""
        if not value < self.best_value:
            return False
        self.best, self.best_value = self.average, value
        return True


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
    metric: Callable[[Hamiltonian], float | Steps[float]] | None = None,
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
    weights, which are then the ones judged and returned (0 = last weights, official). metric:
    called with the model every `metric_every` iterations and at the end, returns a number or a
    generator of steps that does; the weights with the lowest value are kept. A non-finite energy
    ends the training with the last good weights and a warning. Closing the generator keeps the
    best weights so far. Data of a step: the `Training` so far. Raises ValueError for bad input.
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
    pictures = Pictures(frames, rotate, rng)
    center(model, frames, kind)
    sampler = ParallelSampler(
        model, pictures.permuted(chains), kind, n_parallel, delta, seed=int(rng.integers(2**32))
    )
    weights = Weights(model, ema)
    optimizer = Adam(weights.trained, lr)
    result = Training(model, {name: np.empty(0) for name in COLUMNS}, pictures.frames[:0])
    rows, started = [], time.perf_counter()

    def summary() -> Training:
        columns = np.array(rows).reshape(-1, len(COLUMNS)).T
        result.history = dict(zip(COLUMNS, columns, strict=True))
        result.chains, result.seconds = sampler.frames, time.perf_counter() - started
        return result

    try:
        for iteration in range(1, iterations + 1):
            before, done = (iteration - 1) / iterations, iteration / iterations
            decay = 0.5 * (1 + np.cos(np.pi * before))
            rate = optimizer.lr = lr * (final_lr + (1 - final_lr) * decay)
            positive = pictures.draw(chains)
            with one_thread(sampler.small):
                sampler.refresh(pictures.starts(negatives, sampler.frames, p_reset))
            for _ in range(steps if negatives != "noise" else 0):
                if not sampler.step():
                    break
                yield Step(before, f"iteration {iteration} of {iterations}")
            with one_thread(sampler.small):
                energy = model(np.concatenate([positive, sampler.frames]), kind)
                data, samples = energy[:chains], energy[chains:]
                gap = data.mean() - samples.mean()
                loss = gap + reg * ((data**2).mean() + (samples**2).mean())
                if not torch.isfinite(loss):
                    result.stopped = f"non-finite energy in iteration {iteration}"
                    warnings.warn(f"{result.stopped}: keeping the last good weights", stacklevel=2)
                    break
                weights.good = weights.present()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                weights.updated()
            means = (data.mean().item(), samples.mean().item(), gap.item())
            rows.append((*means, sampler.acceptance, rate))
            yield Step(
                done, f"iteration {iteration} of {iterations}, gap {means[2]:+.2f}", summary()
            )
            if metric is not None and (iteration % metric_every == 0 or iteration == iterations):
                present = weights.present()
                weights.load(weights.average)
                value = metric(model)
                if inspect.isgenerator(value):
                    value = yield from part(value, done, done, "validation")
                weights.load(present)
                result.metrics.append((iteration, float(value)))
                if weights.judged(float(value)):
                    result.best_iteration = iteration
    finally:
        chosen = weights.best
        if chosen is None:
            chosen = weights.good if result.stopped else weights.average
            result.best_iteration = len(rows)
        weights.load(chosen)
    return summary()


def train(model: Hamiltonian, frames: np.ndarray, kind: Sequence[int], **options: Any) -> Training:
    """`train_steps` with the same options, run to the end."""
    return run(train_steps(model, frames, kind, **options))


def train_many_steps(
    models: Sequence[Hamiltonian],
    frames: np.ndarray,
    kind: Sequence[int],
    seeds: Sequence[int],
    workers: int | None = None,
    **options: Any,
) -> Steps[list[Training]]:
    """Train each model with its seed, `workers` at a time (None: all); options of `train_steps`.

    Results do not depend on `workers`: every training has its own random numbers. Each `Step`
    carries the list of trainings so far. Closing the generator stops them all.
    """
    if len(models) != len(seeds) or not models:
        raise ValueError(f"need one seed for each model: {len(models)} models, {len(seeds)} seeds")
    jobs = [
        partial(train_steps, model, frames, kind, seed=seed, **options)
        for model, seed in zip(models, seeds, strict=True)
    ]
    return (yield from together(jobs, workers))


def train_many(
    models: Sequence[Hamiltonian],
    frames: np.ndarray,
    kind: Sequence[int],
    seeds: Sequence[int],
    workers: int | None = None,
    **options: Any,
) -> list[Training]:
    """`train_many_steps`, run to the end."""
    return run(train_many_steps(models, frames, kind, seeds, workers, **options))
