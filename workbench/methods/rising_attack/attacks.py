"""The ordered top-K attack on a user's model and images: one call, or a generator of steps.

    result = attack(model, x, targets)                    # RisingAttacK, the SQP
    result = attack(model, x, targets, "cw", iters=200)   # a first-order baseline

For testing models that you own or may test. The generator `attack_steps` is the same work for a
live view or a progress bar; both stop on request and keep the best found so far.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator
from dataclasses import fields
from typing import Any

import numpy as np
from torch import Tensor, nn

from workbench.numerics.checks import choice
from workbench.numerics.threads import one_thread
from workbench.steps import Cancelled, Step, Steps, run

from . import _checks, baselines
from .jacobian import forward
from .ranking import achieved
from .records import AttackResult, Snapshot
from .sqp import RisingOptions, rising_steps

TITLES = {"rising": "RisingAttacK", "quad": "QuadAttacK", "cw": "CW^K", "ad": "AD"}
METHODS = tuple(TITLES)
# The margin of "quad" is that of its target features.
BASELINE_DEFAULTS: dict[str, Any] = {
    "iters": 60, "lr": 0.01, "coef": 20.0, "search_steps": 1, "margin": 0.2, "chunk": 256,
    "seed": 0,
}  # fmt: skip
# Pixels up to which threads cost more than they help: measured ten times as much.
SMALL_IMAGE = 4096
MARGIN_SHORT = 0.1  # share of the margin that inequalities may lack where it counts as reached


def attack(
    model: nn.Module,
    x: Tensor,
    targets: Tensor,
    method: str = "rising",
    *,
    on_step: Callable[[Step], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    **params: Any,
) -> AttackResult:
    """Make the model rank `targets` first, in this order, with a small l2 perturbation in [0, 1].

    model: any nn.Module in eval mode from images to logits, preprocessing inside. x (B, C, H, W)
    in [0, 1]. targets (B, K): ordered classes without the true label. method: "rising", or the
    baselines "quad", "cw", "ad". Success is judged without margin. `on_step` sees every step;
    when `cancelled` answers True, the best so far is returned.

    params of "rising": iters, margin, rivals, rank, box, line_search, alphas, tau, trust, chunk,
    early_stop, directions, seed (`sqp.RisingOptions`); of the others: iters, lr, coef,
    search_steps, margin, chunk, seed (`baselines.baseline_steps`). Of all: labels (B,), the true
    classes, which targets may not contain (None: the model's predictions), and allow_label=True,
    which lifts that.

    Raises ValueError, TypeError or MemoryError in one line for input that cannot be attacked.
    """
    follow = _Follow(time.perf_counter(), on_step)
    stopped = False

    def stop() -> bool:
        nonlocal stopped
        stopped = cancelled()
        return stopped

    try:
        return run(attack_steps(model, x, targets, method, **params), follow, stop)
    except Cancelled:
        if not stopped:  # the interrupt key, meant for whatever runs this attack
            raise
        latest = follow.latest
        return AttackResult.of(latest.best_delta, latest.found, follow.numbers, follow.seconds)


def attack_steps(
    model: nn.Module,
    x: Tensor,
    targets: Tensor,
    method: str = "rising",
    *,
    labels: Tensor | None = None,
    allow_label: bool = False,
    **params: Any,
) -> Steps[AttackResult]:
    """The attack as steps, one an iteration with its `Snapshot` as data; parameters of `attack`.

    Input is checked at once, before the first step. The last snapshot of work that was stopped
    holds the best so far.
    """
    choice("method", method, METHODS)
    x = _checks.as_images(model, x)
    _checks.ready_to_attack(model)
    rising = method == "rising"
    names = [field.name for field in fields(RisingOptions)] if rising else list(BASELINE_DEFAULTS)
    for name in params:
        choice(f"parameter of method {method!r}", name, names)
    options = RisingOptions(**params) if rising else {**BASELINE_DEFAULTS, **params}
    if not rising:
        baselines.check_options(model, method, **options)
    chunk = options.chunk if rising else options["chunk"]
    logits = _checks.as_logits(forward(model, x, chunk), len(x))
    n_classes = logits.shape[1]
    targets = _checks.as_targets(targets, len(x), n_classes, complete=allow_label).to(x.device)
    if not allow_label:
        if labels is None:
            source, given = "the model's own prediction", logits.argmax(1)
            _checks.without_label(targets, given, source, skip=achieved(logits, targets))
        else:
            given = _checks.as_labels(labels, len(x), n_classes).to(x.device)
            _checks.without_label(targets, given, "the label")
    if rising:
        return _steps(model, x, targets, rising_steps(model, x, targets, options), options.iters,
                      chunk, options.margin)  # fmt: skip
    snapshots = baselines.baseline_steps(model, x, targets, method, **options)
    return _steps(model, x, targets, snapshots, options["iters"] * options["search_steps"],
                  chunk)  # fmt: skip


def _steps(
    model: nn.Module,
    x: Tensor,
    targets: Tensor,
    snapshots: Generator[Snapshot, None, tuple[Tensor, Tensor]],
    total: int,
    chunk: int,
    margin: float | None = None,
) -> Steps[AttackResult]:
    follow = _Follow(time.perf_counter())
    met = False
    small = x[0].numel() <= SMALL_IMAGE
    try:
        while True:
            try:
                with one_thread(small):
                    snapshot = next(snapshots)
            except StopIteration as end:
                delta, success = end.value
                break
            if margin:
                enough = snapshot.violation.amax(1) <= MARGIN_SHORT * margin
                enough |= snapshot.success & (snapshot.norm == 0)  # obeyed from the start
                met = met or bool(enough.any())
            step = Step(min(1.0, snapshot.iteration / total), _message(snapshot), snapshot)
            follow(step)
            yield step
    finally:
        snapshots.close()
    # What is returned is what counts: judged once more, as it will be by whoever checks it.
    success = success & achieved(forward(model, x + delta, chunk), targets)
    # An order out of reach is a failure like others; that only the margin is, nothing else shows.
    if margin and not met and success.any():
        warnings.warn(
            f"margin = {margin:g} logits was not reached on any image ({int(success.sum())} of "
            f"{len(x)} reached the order without it); lower margin or raise iters",
            stacklevel=2,
        )
    return AttackResult.of(delta, success, follow.numbers, follow.seconds)


class _Follow:
    """Gathers the numbers of a trace from steps, and passes the steps on."""

    def __init__(self, start: float, then: Callable[[Step], None] | None = None):
        self.start, self.then = start, then
        self.latest: Snapshot | None = None
        self.numbers: list[dict[str, np.ndarray]] = []

    def __call__(self, step: Step) -> None:
        self.latest = step.data
        self.numbers.append(step.data.numbers())
        if self.then:
            self.then(step)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.start


def _message(snapshot: Snapshot) -> str:
    found = snapshot.found
    text = f"iteration {snapshot.iteration}: {int(found.sum())} of {len(found)} reached"
    return f"{text}, mean l2 {snapshot.best_norm[found].mean():.3g}" if found.any() else text
