"""Certified unlearning of a model of one's own: any torch module and arrays.

The certificate covers the steps that are made here: plain SGD on the retain set, clipped over the
whole parameter vector, with Gaussian noise. The deleted examples are dropped at the start and never
read again.
"""

from __future__ import annotations

import copy
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
from .certificates import (
    MAX_STEPS,
    GradientClipping,
    ModelClipping,
    OutputPerturbation,
    above_zero,
    not_negative,
)
from .clock import Clock
from .mechanisms import certified_phase, descend, one_cycle
from .settings import check_budget

CALIBRATIONS = ("exact", "classical")
PLAIN_SGD = "the certificate covers plain SGD steps only"
# Layers whose training output depends on other examples or on a running average of them.
NORMS = (nn.modules.batchnorm._BatchNorm,)


@dataclass(frozen=True)
class Certificate:
    """What was guaranteed by what ran, by the exact accountant whichever one set the noise.

    words: one line; spent: epsilon after each noisy step. With noise from a seed certified is
    False, and epsilon what the same steps would guarantee with secret noise.
    """

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

    mechanism: `GradientClipping`, `ModelClipping`, `NoiseFirst` or `OutputPerturbation`. epsilon,
    delta: target. budget: SGD steps in all, noisy ones included. T: noisy steps of gradient
    clipping (None: automatic). seed: None draws secret noise, as a guarantee needs; a number
    repeats a run, for tests, and is certified as nothing. optimizer, momentum: refused unless plain
    SGD, since nothing else is certified. calibration: of output perturbation, "exact" or
    "classical" (warns above epsilon 1). schedule: of the noise of gradient clipping, "constant" or
    "decreasing". ValueError in one line for what does not fit.

        unlearner = Unlearner(GradientClipping(0.03, 3, 0.001, 100), budget=160)
        model, certificate = unlearner.run(model, X, y, forget=[3, 17])

    The theorems are of real numbers. Here weights are rounded, and secret noise is of a good
    pseudo-random generator: 256 secret bits, not cryptographic.
    """

    def __init__(
        self, mechanism: GradientClipping | ModelClipping | OutputPerturbation, *,
        epsilon: float = 1.0, delta: float = 1e-5, accountant: str = "exact", budget: int = 160,
        T: int | None = None, lr: float = 1.0, batch: int = 32, wd: float = 5e-4,
        seed: int | None = None,
        optimizer: Any = "sgd", momentum: float = 0.0, calibration: str = "exact",
        schedule: str = "constant",
        loss: Callable[[Tensor, Tensor], Tensor] = functional.cross_entropy,
        device: str | torch.device = "cpu",
    ):  # fmt: skip
        _check_optimizer(optimizer, momentum)
        if not isinstance(mechanism, GradientClipping | ModelClipping | OutputPerturbation):
            raise ValueError(
                f"mechanism = {mechanism!r}; allowed are GradientClipping, ModelClipping and "
                "OutputPerturbation"
            )
        choice("calibration", calibration, CALIBRATIONS)
        above_zero(lr=lr)
        not_negative(wd=wd)
        for name, value, most in (("budget", budget, None), ("batch", batch, None),
                                  ("T", T, MAX_STEPS)):  # fmt: skip
            _check_count(name, value, most)
        self.mechanism, self.epsilon, self.delta, self.budget = mechanism, epsilon, delta, budget
        self.accountant, self.lr, self.batch, self.wd, self.seed = accountant, lr, batch, wd, seed
        self.loss, self.device = loss, torch.device(device)
        mu = float(mu_of(epsilon, delta, accountant))
        if isinstance(mechanism, GradientClipping):
            noisy = mechanism.steps() if T is None else T
            self.sigmas = mechanism.schedule(mu, noisy, schedule).tolist()
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
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} examples and y has {len(y)}: one label for each")
        rows = check_retain(len(X), forget, retain)
        inputs, targets = self._tensors(model, np.asarray(X)[rows], np.asarray(y)[rows])
        del X, y  # from here on nothing of the forget set can be read
        model = copy.deepcopy(model).to(self.device)
        weights = list(model.parameters())
        modes = {layer: layer.training for layer in model.modules()}
        rng = np.random.default_rng(self.seed or 0)  # of batches, which are public

        @torch.enable_grad()
        def gradient(w: Tensor, t: int) -> Tensor:
            vector_to_parameters(w[0], weights)
            model.train()
            chosen = torch.from_numpy(rng.integers(0, len(rows), min(self.batch, len(rows))))
            chosen = chosen.to(self.device)
            loss = self.loss(model(inputs[chosen]), targets[chosen])
            if not torch.isfinite(loss):
                raise ValueError(f"the loss is {loss.item()} at step {t}: take smaller steps")
            # Weights that the loss does not use have gradient 0, and get their noise all the same.
            parts = torch.autograd.grad(loss, weights, allow_unused=True, materialize_grads=True)
            return parameters_to_vector(parts)[None]

        clock = Clock(self.mechanism, self.epsilon, self.delta, max(len(self.sigmas), 1),
                      self.accountant, secret=self.seed is None)  # fmt: skip
        generator = None
        if self.seed is not None:
            generator = torch.Generator(self.device).manual_seed(self.seed)
        w = parameters_to_vector(weights).detach()[None]

        def so_far() -> tuple[nn.Module, Certificate]:
            vector_to_parameters(w[0], weights)
            for layer, mode in modes.items():
                layer.training = mode
            return model, Certificate.of(clock)

        for made, now in certified_phase(clock, w, self.sigmas, gradient, generator):
            w = now
            yield Step(made / self.budget, f"noisy step {made}: {clock}", so_far())
        rates = one_cycle(self.budget - self.noisy, self.lr)
        for t, now in descend(w, rates, gradient, self.wd, self.noisy):
            w = now
            if t % 10 == 0:
                yield Step(t / self.budget, f"fine-tuning step {t}", so_far())
        if not clock.enough:
            warnings.warn(str(clock), stacklevel=2)
        return so_far()

    def _tensors(self, model: nn.Module, X: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
        """Examples and labels as the model takes them: in its precision, tokens as integers."""
        precision = next(model.parameters()).dtype
        tokens = any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in model.modules())
        found = []
        for values, whole in ((X, tokens), (y, True)):
            kept = whole and values.dtype.kind in "iu"
            dtype = torch.int64 if kept else precision
            found.append(torch.as_tensor(values).to(self.device, dtype))
        return found[0], found[1]


def _check_optimizer(optimizer: Any, momentum: float) -> None:
    """ValueError for all but plain SGD: a name, a class, or an instance with its settings."""
    kind = optimizer if isinstance(optimizer, type) else type(optimizer)
    name = optimizer if isinstance(optimizer, str) else kind.__name__
    for group in getattr(optimizer, "param_groups", ()):
        momentum = momentum or group.get("momentum", 0.0)
    if name.lower() != "sgd" or momentum != 0:
        got = f"momentum = {momentum:g}" if momentum != 0 else f"optimizer = {name}"
        raise ValueError(f"{got}: {PLAIN_SGD}")


def _check_count(name: str, value: Any, most: int | None) -> None:
    """ValueError unless an integer from 1, or None for T."""
    if value is None and most:
        return
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1 or (most and value > most):
        upper = f" to {most}" if most else ""
        raise ValueError(f"{name} = {value}; allowed are integers from 1{upper}")


def check_model(model: nn.Module) -> None:
    """ValueError for a model that carries more than its weights, or has none to train."""
    norm = any(isinstance(layer, NORMS) for layer in model.modules())
    if norm or next(model.buffers(), None) is not None:
        raise ValueError(
            "buffers carry information about the deleted data: use a model without them"
        )
    for layer in model.modules():
        for name, value in vars(layer).items():
            if isinstance(value, Tensor | np.ndarray):
                raise ValueError(
                    f"{type(layer).__name__}.{name} is an array that is not trained: it may carry "
                    "information about the deleted data"
                )
    frozen = [name for name, w in model.named_parameters() if not w.requires_grad]
    if frozen:
        raise ValueError(
            f"weights that are not trained keep what they know of the deleted data: {frozen[0]}"
        )
    kinds = {w.dtype for w in model.parameters()}
    if not kinds:
        raise ValueError("the model has no weights to train")
    if len(kinds) > 1:
        raise ValueError(
            f"weights of {len(kinds)} types; allowed is one, for example torch.float32"
        )


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
