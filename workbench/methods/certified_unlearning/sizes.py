"""Noise against the number of deleted examples: DP-SGD trained, beside gradient clipping.

With more than one trial DP-SGD is searched as often as gradient clipping, for each number of
examples; what its search would cost in privacy is not counted, which favors that baseline.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch import Tensor

from workbench.steps import Step, Steps, part

from . import dp_sgd, experiments, fan_out
from .comparison import (
    best,
    candidates,
    choose,
    few,
    log_uniform,
    original_steps,
    plain,
    task_of,
)
from .mechanisms import Task, drive, one_cycle
from .settings import settings_of

DP_C, DP_LR = 1.0, 0.5


def forget_size_steps(p: Any) -> Steps[experiments.ForgetSize]:
    """Experiment 6: noise against forget size; with p.dp_sgd networks are trained too."""
    yield Step(0.0, "multipliers")
    found = experiments.forget_size(p)
    if not p.dp_sgd:
        return found
    task = task_of(p, range(p.seed, p.seed + p.seeds), p.hidden)
    original = yield from part(original_steps(task), 0, 0.1)
    values = plain(p)
    jobs: dict = {
        f"DP-SGD, {size} to forget": (_dp_sgd, (values, found.steps, found.batch, float(z)))
        for size, z in zip(found.size, found.dp, strict=True)
        if np.isfinite(z)
    }
    jobs["gradient clipping"] = _gradient_clipping, (values, found.epsilon, found.steps, original)
    done = yield from part(fan_out.steps(jobs, p.workers), 0.1, 1.0)
    found.gc_accuracy, _ = done.pop("gradient clipping")
    for size in map(int, found.size):
        if f"DP-SGD, {size} to forget" in done:
            found.accuracy[size], found.chosen[size] = done[f"DP-SGD, {size} to forget"]
    return found


def _dp_sgd(p: Any, steps: int, batch: int, z: float) -> Steps[tuple]:
    """Accuracy (S,) of DP-SGD with multiplier z, and its learning rate and clipping norm."""
    task = task_of(p, range(p.seed, p.seed + p.seeds), p.hidden)
    tried = [(DP_LR, DP_C)]
    for trial in range(1, p.trials):
        rng = np.random.default_rng([p.seed, 7, trial])
        tried.append((log_uniform(rng, 0.1, 4), log_uniform(rng, 0.1, 4)))

    def run(task: Task, setting: tuple[float, float]) -> Iterator[tuple[int, Tensor]]:
        lr, C = setting
        return dp_sgd.train_path(
            task.initial(), task.splits, task.sizes, z=z, C=C, batch=batch,
            rates=one_cycle(steps, lr), seed=p.seed,
        )  # fmt: skip

    chosen, begin = tried[0], 0.0
    if len(tried) > 1:
        small, begin = few(task), 0.8
        chosen = yield from part(best(small, tried, lambda one: run(small, one), steps), 0, begin)
    w = yield from part(drive(run(task, chosen), steps), begin, 1.0)
    return task.accuracy(w), chosen


def _gradient_clipping(p: Any, epsilon: float, steps: int, original: Tensor) -> Steps[tuple]:
    """Accuracy (S,) of gradient clipping at the same epsilon and steps, and its recipe."""
    task = task_of(p, range(p.seed, p.seed + p.seeds), p.hidden)
    tried = candidates(p, settings_of(p, epsilon, [steps]), steps)["gc"]
    chosen, begin = tried[0], 0.0
    if len(tried) > 1:
        begin = 0.8
        small = few(task)
        chosen = yield from part(
            choose(small, tried, original[: len(small.seeds)], steps), 0, begin
        )
    w = yield from part(drive(task.path(chosen, original, steps), steps), begin, 1.0)
    return task.accuracy(w), chosen
