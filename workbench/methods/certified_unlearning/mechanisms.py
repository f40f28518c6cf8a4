"""The noisy phases that erase, and the fine-tuning that follows, for all seeds at once.

A recipe says where a method starts and what it does before ordinary fine-tuning; `path` runs it
with a budget of SGD steps, noisy ones included. After the start nothing reads the deleted examples:
all batches are of the retain set. Methods that are compared get the same batches and, step for
step, the same noise.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.numerics.threads import one_thread
from workbench.steps import Step, Steps

from . import networks, streams
from .certificates import GradientClipping, NoiseFirst, OutputPerturbation
from .clock import Clock, Mechanism
from .data import Splits, batches
from .settings import check_budget

SHARE_S = 0.1  # longest work between two reports of progress
WARM_UP, WARM_FROM = 0.3, 25.0  # one-cycle: this part of the steps rises, from the peak over this
TITLES = {
    "retrain": "retrain, standard start",
    "retrain_tuned": "retrain, tuned start",
    "retrain_torch": "retrain, PyTorch's start",
    "finetune": "fine-tune, no guarantee",
    "clip": "clip without noise",
    "op": "output perturbation",
    "op_wide": "output perturbation, ten times C0",
    "op_classical": "output perturbation, classical",
    "gc": "gradient clipping",
    "mc": "model clipping",
    "op_noinfo": "output perturbation from 0",
    "gc_noinfo": "gradient clipping from 0",
    "mc_noinfo": "model clipping from 0",
    "dp_sgd": "DP-SGD",
}
TWINS = {"gc": "gc_noinfo", "mc": "mc_noinfo", "op": "op_noinfo"}
GradientOf = Callable[[Tensor, int], Tensor]


@dataclass(frozen=True)
class Recipe:
    """A method. start: "original", "zero" or "fresh" (an initialization times
    `scale`) or "torch" (that of PyTorch).

    mechanism, sigmas: the noisy phase, one sigma a step (output perturbation: one, and no step);
    None: no such phase. Noise 0 is the ablation "clip without noise".
    """

    key: str
    start: str = "original"
    scale: float = 1.0
    mechanism: Mechanism | None = None
    sigmas: tuple[float, ...] = ()
    lr: float = 1.0

    @property
    def noisy(self) -> int:
        """SGD steps that the noisy phase takes from the budget."""
        return 0 if isinstance(self.mechanism, OutputPerturbation) else len(self.sigmas)

    def epsilon(self, delta: float) -> float:
        """Exact epsilon of its noise at delta; infinite for none, 0 if it never saw the old model.

        As a guarantee it needs secret noise; that of experiments repeats.
        """
        if self.start != "original":
            return 0.0
        if self.mechanism is None:
            return float("inf")
        clock = Clock(self.mechanism, 1.0, delta, len(self.sigmas))
        for sigma in self.sigmas:
            clock.tick(sigma)
        return clock.now

    def twin(self) -> Recipe:
        """The same procedure from 0: the control that knows nothing of the old model."""
        return replace(self, key=TWINS.get(self.key, self.key), start="zero")


def one_cycle(steps: int, peak: float) -> np.ndarray:
    """Learning rates (steps,): linear rise from peak / 25 in the first 30 %, linear fall to 0."""
    if steps < 1:
        return np.zeros(0)
    rise = max(1, round(WARM_UP * steps))
    up = np.linspace(peak / WARM_FROM, peak, rise + 1)[:-1]
    return np.concatenate([up, np.linspace(peak, 0, steps - rise + 1)[:-1]])[:steps]


def secret_noise() -> np.random.Generator:
    """A source of noise with 256 secret bits: torch's own keeps only 32 bits of a seed."""
    seed = np.random.SeedSequence(secrets.randbits(256), pool_size=8)
    return np.random.Generator(np.random.PCG64(seed))


@torch.no_grad()
def noisy_phase(
    w: Tensor, mechanism: Mechanism, sigmas: Sequence[float], gradient: GradientOf,
    generator: torch.Generator | None = None,
) -> Iterator[tuple[int, Tensor]]:  # fmt: skip
    """The phase that erases, from w (S, d): yields (noisy steps made, w), first after the start.

    gradient: `gradient(w, t)` -> (S, d) of batch t of the retain set. generator: of noise that
    repeats, for experiments; None draws secret noise, as a guarantee needs.
    """
    secret = secret_noise() if generator is None else None

    def noise(sigma: float) -> Tensor:
        if secret is not None:
            return torch.from_numpy(sigma * secret.standard_normal(tuple(w.shape))).to(w)
        drawn = torch.randn(w.shape, generator=generator, dtype=w.dtype, device=w.device)
        return drawn.mul_(sigma)

    m = mechanism
    if isinstance(m, OutputPerturbation):
        yield 0, networks.clip(w, m.C0) + noise(sigmas[0])
        return
    if isinstance(m, GradientClipping):
        w = networks.clip(w, m.C0)
    elif isinstance(m, NoiseFirst):
        w = networks.clip(w, m.C2)
    elif m.C0 is not None:
        w = networks.clip(w, m.C0) + noise(m.sigma0)
    yield 0, w
    for t, sigma in enumerate(sigmas):
        g = gradient(w, t)
        if isinstance(m, GradientClipping):
            w = w - m.gamma * (networks.clip(g, m.C1) + m.lam * w) + noise(sigma)
        elif isinstance(m, NoiseFirst):
            w = w - m.gamma * (networks.clip(g, m.C1) + m.lam * w) + noise(sigma)
            w = networks.clip(w, m.C2)
        else:
            w = networks.clip(w - m.gamma * (g + m.lam * w), m.C2) + noise(sigma)
        yield t + 1, w


def certified_phase(
    clock: Clock, w: Tensor, sigmas: Sequence[float], gradient: GradientOf,
    generator: torch.Generator | None = None,
) -> Iterator[tuple[int, Tensor]]:  # fmt: skip
    """`noisy_phase` of a clock's mechanism; at each w the clock says what has been guaranteed."""
    at_once = isinstance(clock.mechanism, OutputPerturbation)
    for made, now in noisy_phase(w, clock.mechanism, sigmas, gradient, generator):
        if made or at_once:
            clock.tick(sigmas[max(made - 1, 0)])
        yield made, now


@torch.no_grad()
def descend(
    w: Tensor, rates: Sequence[float], gradient: GradientOf, wd: float = 0.0, first: int = 0
) -> Iterator[tuple[int, Tensor]]:
    """Plain SGD with weight decay on batches `first`, `first` + 1 ...: yields (step, w) after each.

    It is post-processing: whatever guarantee w has, it keeps.
    """
    for t, rate in enumerate(rates):
        g = gradient(w, first + t)
        w = w.mul(1 - float(rate) * wd).sub_(g, alpha=float(rate))
        yield first + t + 1, w


@dataclass(frozen=True)
class Task:
    """What all methods of a comparison share: splits, network, fine-tuning."""

    splits: Splits
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    batch: int = 32
    wd: float = 5e-4

    @property
    def d(self) -> int:
        """Parameters of a network."""
        return networks.count(self.sizes)

    def gradients(self, part: str, steps: int, stream: int = 0) -> GradientOf:
        """The batch gradients of `steps` steps on a part of the data."""
        index = getattr(self.splits, part)
        return self.gradients_on(batches(index, self.batch, steps, self.seeds, stream))

    def gradients_on(self, index: Tensor) -> GradientOf:
        """The batch gradients on batches of given images (steps, S, batch)."""
        images, own = self.splits.images, self.splits.own

        def gradient(w: Tensor, t: int) -> Tensor:
            chosen = index[t]
            x = networks.pick(images, chosen)
            labels = own.expand(len(chosen), -1).gather(1, chosen)
            return networks.gradient(w, x, labels, self.sizes)[0]

        return gradient

    def initial(self, scale: float = 1.0, stream: int = 0, kind: str = "lecun") -> Tensor:
        """Fresh networks (S, d)."""
        return networks.initial(self.sizes, self.seeds, scale, kind, stream=stream)

    def accuracy(self, w: Tensor, part: str = "test", true: bool = True) -> np.ndarray:
        """Accuracy (S,) on a part; nan where a network is not finite."""
        return self.meter(part, true)(w)

    def meter(self, part: str = "test", true: bool = True) -> Callable[[Tensor], np.ndarray]:
        """`accuracy` on a part as a function of w, for many calls."""
        x, y = self.splits.of(part, true)

        def measure(w: Tensor) -> np.ndarray:
            return np.where(finite(w), networks.accuracy(w, x, y, self.sizes), np.nan)

        return measure

    def losses(self, w: Tensor, part: str) -> np.ndarray:
        """Loss of each example of a part (S, k), with the labels that were trained with."""
        x, y = self.splits.of(part)
        return networks.losses(w, x, y, self.sizes)

    def path(
        self, recipe: Recipe, original: Tensor, budget: int, stream: int = 0
    ) -> Iterator[tuple[int, Tensor]]:
        """A method with a budget of SGD steps: yields (steps made, w).

        The start is first, clipped if the noisy phase begins so. ValueError if that phase does not
        fit into the budget.
        """
        check_budget(recipe.noisy, budget)
        w = self.start_of(recipe, original)
        gradient = self.gradients("retain", budget, stream)
        if recipe.mechanism is None:
            yield 0, w
        else:
            noise = streams.generator(streams.NOISE, self.seeds[0], stream, budget)
            for made, now in noisy_phase(w, recipe.mechanism, recipe.sigmas, gradient, noise):
                w = now
                yield made, w
        rates = one_cycle(budget - recipe.noisy, recipe.lr)
        yield from descend(w, rates, gradient, self.wd, recipe.noisy)

    def start_of(self, recipe: Recipe, original: Tensor) -> Tensor:
        """Where a method starts (S, d)."""
        if recipe.start == "original":
            return original
        if recipe.start == "zero":
            return torch.zeros_like(original)
        return self.initial(recipe.scale, 1, "torch" if recipe.start == "torch" else "lecun")


def finite(w: Tensor) -> np.ndarray:
    """Which networks (S,) have only finite weights."""
    return torch.isfinite(w).all(1).numpy()


def drive(
    path: Iterator[tuple[int, Tensor]], total: int, title: str = "",
    watch: Callable[[int, Tensor], Any] | None = None,
) -> Steps[Tensor]:  # fmt: skip
    """Run a path to its end, reporting often; returns the last w. `watch(step, w)` sees each.

    What `watch` returns is the data of the next report.
    """
    w, t, data, done = torch.empty(0), 0, None, False
    while not done:
        until = time.perf_counter() + SHARE_S
        with one_thread(), torch.no_grad():
            done = True
            for t, w in path:
                seen = watch(t, w) if watch else None
                data = data if seen is None else seen
                if time.perf_counter() > until:
                    done = False
                    break
        yield Step(min(t / max(total, 1), 1.0), f"{title} step {t:,}".strip(), data)
    return w


@dataclass
class Watch:
    """Records what `measure(w)` says of a path at about `points` of its steps.

    steps (t,), values (t, ...): so far; the noisy phase is recorded at every step.
    """

    measure: Callable[[Tensor], np.ndarray]
    budget: int
    noisy: int = 0
    points: int = 24
    steps: list[int] = field(default_factory=list)
    values: list[np.ndarray] = field(default_factory=list)

    def __call__(self, t: int, w: Tensor) -> None:
        every = max(1, self.budget // self.points)
        if t <= self.noisy or t == self.budget or (t - self.noisy) % every == 0:
            self.steps.append(t)
            self.values.append(self.measure(w))

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """(t,) and (t, ...)."""
        return np.array(self.steps), np.array(self.values)
