"""One image under attack, as steps that keep every iterate: what the live attack bench is made of.

`subject_steps` fetches a network with images it reads correctly; `trial_steps` attacks one of them
and remembers the whole way; `compare_steps` sends all methods after the same order. No widget.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from workbench.numerics.checks import choice
from workbench.steps import Step, Steps, part, run

from . import digits, glyphs
from ._checks import as_images, as_labels, as_logits, ready_to_attack
from .attacks import attack, attack_steps
from .jacobian import forward
from .networks import attackable
from .records import AttackResult, Snapshot

DATA = ("digits", "glyphs")
N_IMAGES = 24
_SUBJECTS: dict[tuple[str, int], Subject] = {}


@dataclass(frozen=True)
class Subject:
    """A network with images (n, C, H, W) in [0, 1] and their labels (n,); `data` names them."""

    data: str
    model: nn.Module
    images: Tensor
    labels: Tensor
    class_names: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)


def own_subject(
    model: nn.Module,
    images: Tensor,
    labels: Tensor | None = None,
    class_names: Sequence[str] = (),
    data: str = "own images",
) -> Subject:
    """The user's own model in evaluation mode, with images (n, C, H, W) in [0, 1], C 1 or 3.

    labels (n,): the model's predictions if not given; class_names: numbers if not given. "quad"
    and "ad" need `feats` and `head` (`loaders.wrap_model` finds them). Raises ValueError or
    TypeError in one line for what cannot be attacked.
    """
    images = as_images(model, images)
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise ValueError(
            f"images has shape {tuple(images.shape)}; allowed are (n, 1, H, W) and (n, 3, H, W)"
        )
    ready_to_attack(model)
    logits = as_logits(forward(model, images), len(images))
    n_classes = logits.shape[1]
    labels = logits.argmax(1) if labels is None else as_labels(labels, len(images), n_classes)
    names = tuple(class_names) or tuple(str(k) for k in range(n_classes))
    if len(names) != n_classes:
        raise ValueError(f"class_names has {len(names)} names; the model has {n_classes} classes")
    return Subject(data, model, images, labels, names)


def subject_steps(data: str, seed: int = 0) -> Steps[Subject]:
    """The network of `seed` for "digits" or "glyphs" with 24 images; trained on the first call.

    Kept for the life of the process: networks are read only, so all sessions share them.
    """
    choice("data", data, DATA)
    if (data, seed) not in _SUBJECTS:
        module = digits if data == "digits" else glyphs
        train = digits.digits_model_steps if data == "digits" else glyphs.glyph_model_steps
        yield Step(0.0, f"fetching the network that reads {data}")
        model = yield from part(train(seed), 0.0, 0.95, f"network that reads {data}")
        yield Step(0.95, f"fetching {data} that it has not seen")
        held_out = digits.held_out_digits if data == "digits" else glyphs.held_out_glyphs
        images, labels = held_out()
        chosen = attackable([model], images, labels, N_IMAGES, seed)
        yield Step(
            0.97, "loading what an attack needs"
        )  # the first vmap of vjp imports for seconds
        other = (labels[chosen[:1]] + 1) % len(module.CLASS_NAMES)
        attack(model, images[chosen[:1]], other[:, None], iters=1, margin=0)
        _SUBJECTS[data, seed] = Subject(
            data, model, images[chosen], labels[chosen], module.CLASS_NAMES
        )
    return _SUBJECTS[data, seed]


def subject(data: str, seed: int = 0) -> Subject:
    """`subject_steps`, run to the end."""
    return run(subject_steps(data, seed))


@dataclass(eq=False)
class Trial:
    """An attack on one image, finished, stopped or under way; `snapshots` grows while it runs.

    image (C, H, W); order: the wanted classes, first first. seconds: so far.
    """

    method: str
    image: Tensor
    label: int
    order: tuple[int, ...]
    snapshots: list[Snapshot] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def result(self) -> AttackResult:
        """The best so far, measured; a failure while nothing reached the order."""
        last = self.snapshots[-1]
        numbers = [snapshot.numbers() for snapshot in self.snapshots]
        return AttackResult.of(last.best_delta, last.found, numbers, self.seconds)

    @property
    def best(self) -> int:
        """Number of the snapshot with the smallest successful perturbation, the last if none."""
        norms = [float(s.norm) if s.success else float("inf") for s in self.snapshots]
        shortest = min(norms)
        return norms.index(shortest) if shortest < float("inf") else len(norms) - 1


def trial_steps(
    subject: Subject, index: int, order: Sequence[int], method: str, options: Mapping[str, Any]
) -> Steps[Trial]:
    """Attack image `index` of a subject so that `order` ranks first; each step's data is the trial.

    options: those of `attack`. Raises ValueError in one line, before any work, for an order or an
    option that is not allowed.
    """
    if not order:
        raise ValueError("the order is empty: choose at least one class")
    image, label = subject.images[index], int(subject.labels[index])
    trial = Trial(method, image, label, tuple(order))
    steps = attack_steps(
        subject.model, image[None], torch.tensor([list(order)]), method, labels=[label], **options
    )
    return _follow(trial, steps)


def run_trial(
    subject: Subject, index: int, order: Sequence[int], method: str = "rising", **options: Any
) -> Trial:
    """`trial_steps`, run to the end."""
    return run(trial_steps(subject, index, order, method, options))


def _follow(trial: Trial, steps: Steps[AttackResult]) -> Steps[Trial]:
    start = time.perf_counter()
    try:
        for step in steps:
            trial.snapshots.append(step.data)
            trial.seconds = time.perf_counter() - start
            yield Step(step.done, step.message, trial)
    finally:
        steps.close()
    return trial


def compare_steps(
    subject: Subject, index: int, order: Sequence[int], options: Mapping[str, Mapping[str, Any]]
) -> Steps[list[Trial]]:
    """Several methods on the same image and order; data and result: the trials so far.

    options: the methods in their order, each with its options.
    """
    trials: list[Trial] = []
    for k, (method, chosen) in enumerate(options.items()):
        steps = trial_steps(subject, index, order, method, chosen)
        share = k / len(options), (k + 1) / len(options)
        trial = yield from part(steps, *share, method, partial(_with, tuple(trials)))
        trials.append(trial)
        yield Step(share[1], f"{method} is done", list(trials))
    return trials


def _with(done: tuple[Trial, ...], running: Trial) -> list[Trial]:
    return [*done, running]
