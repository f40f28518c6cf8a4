"""Certified unlearning of a model of one's own: any torch module and arrays.

The certificate covers the steps that are made here: plain SGD on the retain set, clipped over the
whole parameter vector, with Gaussian noise. The deleted examples are dropped at the start and never
read again.
"""

from __future__ import annotations

import copy
import secrets
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from workbench import steps as work
from workbench.numerics.checks import choice
from workbench.steps import Step, Steps

from .accounting import classical_sigma, mu_of
from .certificates import Clock, GradientClipping, ModelClipping, OutputPerturbation
from .mechanisms import check_budget, descend, noisy_phase, one_cycle

CALIBRATIONS = ("exact", "classical")
PLAIN_SGD = "the certificate covers plain SGD steps only"
# Layers whose training output depends on other examples or on a running average of them.
NORMS = (nn.modules.batchnorm._BatchNorm,)


@dataclass(frozen=True)
class Certificate:
    """What was guaranteed by what ran. words: one line; spent: epsilon after each noisy step."""

    certified: bool
    epsilon: float
    delta: float
    steps: int
    sigma: float
    spent: tuple[float, ...]
    words: str

    @classmethod
    def of(cls, clock: Clock) -> Certificate:
        """The certificate that a clock stands at."""
        sigma = clock.sigmas[-1] if clock.sigmas else 0.0
        return cls(
            clock.certified, clock.now, clock.delta, clock.made, sigma, tuple(clock.spent),
            str(clock),
        )  # fmt: skip

    def __str__(self) -> str:
        return self.words


class Unlearner:
    """Make a trained model forget examples, with a guarantee.

    mechanism: `GradientClipping`, `ModelClipping` or `OutputPerturbation`. epsilon, delta: target.
    budget: SGD steps in all, noisy ones included. T: noisy steps of gradient clipping (None:
    automatic). seed: None draws secret noise, as a guarantee needs; a number repeats a run, for
    tests. optimizer, momentum: refused unless plain SGD, since nothing else is certified.
    calibration: of output perturbation, "exact" or "classical" (warns above epsilon 1).

        unlearner = Unlearner(GradientClipping(0.03, 3, 0.001, 100), budget=160)
        model, certificate = unlearner.run(model, X, y, forget=[3, 17])
    """

    def __init__(
        self, mechanism: GradientClipping | ModelClipping | OutputPerturbation, *,
        epsilon: float = 1.0, delta: float = 1e-5, accountant: str = "exact", budget: int = 160,
        T: int | None = None, lr: float = 1.0, batch: int = 32, wd: float = 5e-4,
        seed: int | None = None,
        optimizer: Any = "sgd", momentum: float = 0.0, calibration: str = "exact",
        loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
        device: str | torch.device = "cpu",
    ):  # fmt: skip
        name = optimizer if isinstance(optimizer, str) else getattr(
            optimizer, "__name__", type(optimizer).__name__
        )  # fmt: skip
        if name.lower() != "sgd" or momentum != 0:
            got = f"momentum = {momentum:g}" if momentum != 0 else f"optimizer = {name}"
            raise ValueError(f"{got}: {PLAIN_SGD}")
        if not isinstance(mechanism, GradientClipping | ModelClipping | OutputPerturbation):
            raise ValueError(
                f"mechanism = {mechanism!r}; allowed are GradientClipping, ModelClipping and "
                "OutputPerturbation"
            )
        choice("calibration", calibration, CALIBRATIONS)
        self.mechanism, self.epsilon, self.delta, self.budget = mechanism, epsilon, delta, budget
        self.accountant, self.lr, self.batch, self.wd, self.seed = accountant, lr, batch, wd, seed
        self.loss, self.device = loss, torch.device(device)
        mu = float(mu_of(epsilon, delta, accountant))
        if isinstance(mechanism, GradientClipping):
            noisy = mechanism.steps() if T is None else T
            self.sigmas = [float(mechanism.sigma(mu, noisy))] * noisy
        elif isinstance(mechanism, ModelClipping):
            self.sigmas = [mechanism.sigma] * mechanism.steps(epsilon, delta)
        elif calibration == "exact":
            self.sigmas = [float(mechanism.sigma(mu))]
        else:
            self.sigmas = [float(classical_sigma(2 * mechanism.C0, epsilon, delta))]
        self.noisy = 0 if isinstance(mechanism, OutputPerturbation) else len(self.sigmas)
        check_budget(self.noisy, budget)

    def run(
        self, model: nn.Module, X: Any, y: Any, forget: Sequence[int],
        retain: Sequence[int] | None = None, progress: bool = False,
    ) -> tuple[nn.Module, Certificate]:  # fmt: skip
        """The unlearned copy of the model, and its certificate.

        X (n, ...), y (n,): the training data; forget, retain: places in them (retain None: all
        others). Interrupted in the noisy phase, it returns the model as it is, uncertified.
        """
        made = self.steps(model, X, y, forget, retain)
        try:
            if not progress:
                return work.run(made)
            with work.Progress("unlearning") as bar:
                return work.run(made, on_step=bar)
        except work.Cancelled as stopped:
            if stopped.data is None:
                raise
            return stopped.data

    def steps(
        self, model: nn.Module, X: Any, y: Any, forget: Sequence[int],
        retain: Sequence[int] | None = None,
    ) -> Steps[tuple[nn.Module, Certificate]]:  # fmt: skip
        """The same as a generator; data of a step: the model and the certificate so far."""
        check_model(model)
        rows = check_retain(len(X), forget, retain)
        inputs = torch.as_tensor(np.asarray(X)[rows], dtype=torch.float32, device=self.device)
        targets = torch.as_tensor(np.asarray(y)[rows], device=self.device)
        del X, y  # from here on nothing of the forget set can be read
        model = copy.deepcopy(model).to(self.device).train()
        weights = [w for w in model.parameters() if w.requires_grad]
        rng = np.random.default_rng(self.seed or 0)  # of batches, which are public

        @torch.enable_grad()
        def gradient(w: Tensor, t: int) -> Tensor:
            vector_to_parameters(w[0], weights)
            chosen = torch.from_numpy(rng.integers(0, len(rows), min(self.batch, len(rows))))
            chosen = chosen.to(self.device)
            loss = self.loss(model(inputs[chosen]), targets[chosen])
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss.item()} at step {t}: take smaller steps")
            return parameters_to_vector(torch.autograd.grad(loss, weights))[None]

        clock = Clock(self.mechanism, self.epsilon, self.delta, max(len(self.sigmas), 1),
                      self.accountant)  # fmt: skip
        seed = secrets.randbits(63) if self.seed is None else self.seed
        generator = torch.Generator(self.device).manual_seed(seed)
        w = parameters_to_vector(weights).detach()[None]

        def so_far() -> tuple[nn.Module, Certificate]:
            vector_to_parameters(w[0], weights)
            return model, Certificate.of(clock)

        with_steps = not isinstance(self.mechanism, OutputPerturbation)
        path = noisy_phase(w, self.mechanism, self.sigmas, gradient, generator)
        for made, now in _without_gradient(path):
            w = now
            if made or not with_steps:
                clock.tick(self.sigmas[max(made - 1, 0)])
            yield Step(made / self.budget, f"noisy step {made}: {clock}", so_far())
        rates = one_cycle(self.budget - self.noisy, self.lr)
        for t, now in _without_gradient(descend(w, rates, gradient, self.wd, self.noisy)):
            w = now
            if t % 10 == 0:
                yield Step(t / self.budget, f"fine-tuning step {t}", so_far())
        if not clock.certified:
            warnings.warn(str(clock), stacklevel=2)
        return so_far()


def _without_gradient(path: Any) -> Any:
    while True:
        with torch.no_grad():
            item = next(path, None)
        if item is None:
            return
        yield item


def check_model(model: nn.Module) -> None:
    """ValueError for a model that carries more than its weights, or has none to train."""
    norm = any(isinstance(layer, NORMS) for layer in model.modules())
    if norm or next(model.buffers(), None) is not None:
        raise ValueError(
            "buffers carry information about the deleted data: use a model without them"
        )
    frozen = [name for name, w in model.named_parameters() if not w.requires_grad]
    if frozen:
        raise ValueError(
            f"weights that are not trained keep what they know of the deleted data: {frozen[0]}"
        )
    if not list(model.parameters()):
        raise ValueError("the model has no weights to train")


def check_retain(n: int, forget: Sequence[int], retain: Sequence[int] | None) -> np.ndarray:
    """Places to retain (k,), sorted; ValueError in one line for ids that do not fit together."""
    forget = np.unique(np.asarray(forget))
    if len(forget) == 0:
        raise ValueError("nothing to forget: give at least one id")
    rest = np.setdiff1d(np.arange(n), forget) if retain is None else np.unique(np.asarray(retain))
    for name, ids in (("forget", forget), ("retain", rest)):
        if len(ids) and ids.dtype.kind not in "iu":
            raise ValueError(f"{name} ids must be integers from 0 to {n - 1}")
        unknown = ids[(ids < 0) | (ids >= n)]
        if len(unknown):
            raise ValueError(f"unknown id {unknown[0]} to {name}: allowed are 0 to {n - 1}")
    if len(rest) == 0:
        raise ValueError("the retain set is empty: at least one example must stay")
    both = np.intersect1d(forget, rest)
    if len(both):
        raise ValueError(f"forget and retain ids overlap, for example {both[0]}")
    return rest
