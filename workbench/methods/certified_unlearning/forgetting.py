"""One request to forget, as a live run: the clock of the certificate, the accuracy, the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.steps import Step, Steps, part

from . import data
from .clock import Clock
from .comparison import original_steps, plain, recipes, task_of
from .mechanisms import Task, certified_phase, descend, drive, one_cycle
from .settings import check_budget, settings_of
from .unlearner import check_retain

FIRST_STREAM = 100  # of the batches of requests
EVERY = 4  # fine-tuning steps between two points of the curve


@dataclass
class Forgetting:
    """A request so far.

    epsilon (noisy steps made,): guaranteed after each; T: steps of the noisy phase. step,
    accuracy (t,): test accuracy, noisy phase first. certified: None while the noisy phase runs.
    words: the guarantee in one line. model (1, d): where the next request starts.
    """

    T: int
    budget: int
    epsilon: list[float] = field(default_factory=list)
    step: list[int] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    words: str = ""
    certified: bool | None = None
    model: Tensor | None = None


def training_images(p: Any) -> tuple[np.ndarray, np.ndarray]:
    """All images (n, 64) that the model of p.seed was trained with, and their labels (n,)."""
    splits = data.split([p.seed], p.forget_frac)
    index = splits.train[0]
    return splits.images[index].numpy(), splits.labels[index].numpy()


def original_model(p: Any) -> Steps[Tensor]:
    """The model (1, d) that saw them all."""
    return (yield from original_steps(task_of(p, [p.seed], p.hidden)))


def forget_steps(
    p: Any, gone: Sequence[int], method: str = "gc", model: Tensor | None = None, request: int = 0,
) -> Steps[Forgetting]:  # fmt: skip
    """Forget the training images at places `gone` of `training_images(p)`; data: the run so far.

    gone: all that must be forgotten by now, of earlier requests too, since none may be in a batch.
    method: "gc" or "mc". model: to start from; None trains the original first. request: how many
    came before; each has its own public batches, and secret noise that nothing repeats. Raises
    ValueError for unknown places, none, or all.
    """
    p = plain(p)
    task = task_of(p, [p.seed], p.hidden)
    task = _without(task, gone)
    if model is None:
        model = yield from part(original_model(p), 0, 0.4)
    s = settings_of(p)
    recipe = recipes(s, p.lr_ft, keys=[method])[0]
    budget = max(p.budget)
    check_budget(recipe.noisy, budget)
    clock = Clock(recipe.mechanism, p.epsilon, p.delta, recipe.noisy, p.accountant)
    found = Forgetting(recipe.noisy, budget, model=model, words=str(clock))
    for _ in _measured(found, task, [(0, model)]):
        yield Step(0.4, "the model as it is", found)
    # Batches may not depend on who is deleted, only on how many requests there were.
    gradient = task.gradients("retain", budget, FIRST_STREAM + request)
    phase = certified_phase(clock, model, recipe.sigmas, gradient)
    for made, w in _measured(found, task, phase):
        found.epsilon, found.words = clock.spent[1:], str(clock)
        found.model = w
        yield Step(0.4 + 0.1 * made / max(recipe.noisy, 1), f"noisy step {made}", found)
    found.certified = clock.certified
    rates = one_cycle(budget - recipe.noisy, p.lr_ft)
    path = descend(found.model, rates, gradient, p.wd, recipe.noisy)

    def watch(t: int, w: Tensor) -> Forgetting:
        if (t - recipe.noisy) % EVERY == 0 or t == budget:
            found.step.append(t)
            found.accuracy.append(float(task.accuracy(w)[0]))
        found.model = w
        return found

    yield from part(drive(path, budget, "fine-tuning,", watch), 0.5, 1.0, data=lambda _: found)
    return found


def _measured(
    found: Forgetting, task: Task, path: Sequence | Iterator
) -> Iterator[tuple[int, Tensor]]:
    """The points of a path, with the accuracy of each noted."""
    for made, w in path:
        found.step.append(made)
        found.accuracy.append(float(task.accuracy(w)[0]))
        yield made, w


def _without(task: Task, gone: Sequence[int]) -> Task:
    """The task whose retain set lacks these places of the training set."""
    train = task.splits.train[0]
    keep = check_retain(len(train), gone, None)
    places = np.unique(np.asarray(gone))
    splits = replace(
        task.splits, retain=train[torch.from_numpy(keep)][None],
        forget=train[torch.from_numpy(places)][None],
    )  # fmt: skip
    return replace(task, splits=splits)
