"""Accuracy against compute: all methods with the same trials, batches, noise and budgets.

With one trial every method runs at its defaults. With more, each is searched at random as often as
the others, and for each budget the configuration with the best validation accuracy over at most
SEARCH_SEEDS seeds is run on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from torch import Tensor

from workbench.steps import Step, Steps, part

from . import data, dp_sgd, experiments, fan_out
from .certificates import GradientClipping, ModelClipping, OutputPerturbation
from .mechanisms import TITLES, Recipe, Task, Watch, descend, drive, finite, one_cycle
from .settings import Settings, settings_of

METHODS = (
    "retrain", "retrain_tuned", "retrain_torch", "finetune", "clip", "op", "op_classical", "gc",
    "mc", "op_noinfo", "gc_noinfo", "mc_noinfo",
)  # fmt: skip
SCALES = (0.1, 0.3, 1.0, 2.0)  # of initializations
TRAIN_STEPS, TRAIN_LR = 4000, 0.5  # of original models
SEARCH_SEEDS = 24
DP_C, DP_LR = 1.0, 0.5
KEPT = 6  # batches of original models


def task_of(p: Any, seeds: Sequence[int], hidden: Sequence[int], mislabel: bool = False) -> Task:
    """The task of some seeds, with networks of these hidden layers."""
    splits = data.split(seeds, p.forget_frac, mislabel)
    sizes = (splits.images.shape[1], *hidden, 10)
    return Task(splits, sizes, tuple(seeds), p.batch, p.wd)


def plain(p: Any) -> SimpleNamespace:
    """The values of parameters, to send to another process."""
    return SimpleNamespace(**p.to_papermill()) if hasattr(p, "to_papermill") else p


def original_steps(task: Task, steps: int = TRAIN_STEPS, constant: bool = False) -> Steps[Tensor]:
    """Train the model that is to forget, on retain and forget set: weights (S, d).

    constant: keep the learning rate, with which wrong labels are learned by heart; else one cycle.
    What was trained on the digits is kept, since several experiments start from the same models.
    """
    key = None
    if task.splits.images is data.digits():
        seen = task.splits.train.numpy().tobytes(), task.splits.own.numpy().tobytes()
        key = (*map(hash, seen), task.sizes, task.seeds, task.batch, task.wd, steps, constant)
    if key in _TRAINED:
        yield Step(1.0, "original model")
        return _TRAINED[key].clone()
    rates = [TRAIN_LR] * steps if constant else one_cycle(steps, TRAIN_LR)
    path = descend(task.initial(), rates, task.gradients("train", steps, stream=9), task.wd)
    w = yield from drive(path, steps, "original model,")
    if key is not None:
        while len(_TRAINED) >= KEPT:
            _TRAINED.pop(next(iter(_TRAINED)), None)
        _TRAINED[key] = w.clone()
    return w


_TRAINED: dict[tuple, Tensor] = {}


def recipes(s: Settings, lr: float, scale: float = 1.0, keys: Sequence[str] = METHODS) -> list:
    """The methods as recipes. scale: of the initialization of "retrain_tuned"."""
    gc, silent = (s.sigma,) * s.T, (0.0,) * s.T
    made = [
        Recipe("retrain", "fresh", lr=lr),
        Recipe("retrain_tuned", "fresh", scale, lr=lr),
        Recipe("retrain_torch", "torch", lr=lr),
        Recipe("finetune", lr=lr),
        Recipe("clip", mechanism=s.gc, sigmas=silent, lr=lr),
        Recipe("op", mechanism=s.op, sigmas=(s.sigma_op,), lr=lr),
        Recipe("op_classical", mechanism=s.op, sigmas=(s.sigma_classical,), lr=lr),
        Recipe("gc", mechanism=s.gc, sigmas=gc, lr=lr),
        Recipe("mc", mechanism=s.mc, sigmas=(s.mc.sigma,) * s.T_mc, lr=lr),
    ]
    made += [r.twin() for r in made if f"{r.key}_noinfo" in TITLES]
    return [r for r in made if r.key in keys]


def candidates(p: Any, s: Settings, budget: int) -> dict[str, list[Recipe]]:
    """What is tried for each method: the defaults, and p.trials - 1 random ones.

    The tuned start also has its four scales at the default rate, which favors that baseline.
    """
    base = {r.key: r for r in recipes(s, p.lr_ft)}
    found = {key: [r] for key, r in base.items() if not key.endswith("_noinfo")}
    found["retrain_tuned"] = [replace(base["retrain_tuned"], scale=x) for x in SCALES]
    for trial in range(1, p.trials):
        rng = np.random.default_rng([p.seed, 6, trial])
        lr = _log_uniform(rng, 0.1, 4)
        scale = float(rng.choice(SCALES))
        gamma = _log_uniform(rng, 1e-4, 1e-2)
        gc = GradientClipping(
            _log_uniform(rng, 3e-3, 0.3), _log_uniform(rng, 0.3, 30), gamma,
            _log_uniform(rng, 0.01, 0.3) / gamma,
        )  # fmt: skip
        T, T_mc = min(gc.steps(), budget), int(rng.integers(1, 7))
        mc = ModelClipping.calibrated(
            _log_uniform(rng, 0.01, 1), s.epsilon, s.delta, min(T_mc, budget),
            _log_uniform(rng, 0.05, 2), p.wd,
        )  # fmt: skip
        op = OutputPerturbation(_log_uniform(rng, 1e-3, 0.3))
        drawn = replace(
            s, gc=gc, T=T, sigma=float(gc.sigma(s.mu, T)), mc=mc,
            T_mc=min(T_mc, budget), op=op, sigma_op=float(op.sigma(s.mu)),
            sigma_classical=s.sigma_classical * op.C0 / s.op.C0,
        )  # fmt: skip
        for recipe in recipes(drawn, lr, scale):
            if recipe.key in found:
                found[recipe.key].append(recipe)
    return found


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


@dataclass
class Accuracy:
    """Experiment 4. budget (K,): SGD steps in all. test[method] (S, K): accuracy, nan excluded.

    validation[method] (S, K): of the configuration that was run; after[method] (S,): accuracy right
    after the noisy phase, at the largest budget. noisy[method]: steps of that phase there.
    path[method]: steps (t,) and accuracy (S, t) at the largest budget. excluded[method]: runs that
    were not finite. chosen[method, budget]: the recipe that was run. original (S,): accuracy of the
    models that were asked to forget. d: parameters of a network. trials: tried for each method.
    """

    budget: np.ndarray
    d: int
    trials: int
    original: np.ndarray
    test: dict[str, np.ndarray] = field(default_factory=dict)
    validation: dict[str, np.ndarray] = field(default_factory=dict)
    after: dict[str, np.ndarray] = field(default_factory=dict)
    noisy: dict[str, int] = field(default_factory=dict)
    path: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    excluded: dict[str, int] = field(default_factory=dict)
    chosen: dict[tuple[str, int], Recipe] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        """S."""
        return len(self.original)

    def at(self, method: str, budget: int) -> np.ndarray | None:
        """Accuracy (S,) of a method at a budget; None if it was not measured."""
        place = np.flatnonzero(self.budget == budget)
        if method not in self.test or len(place) == 0:
            return None
        values = self.test[method][:, place[0]]
        return values if np.isfinite(values).any() else None

    def paired(self, above: str, below: str, budget: int) -> np.ndarray | None:
        """Differences (S',) of two methods on the seeds where both are finite."""
        a, b = self.at(above, budget), self.at(below, budget)
        if a is None or b is None:
            return None
        differences = a - b
        return differences[np.isfinite(differences)]


def accuracy_steps(
    p: Any, seeds: int | None = None, hidden: Sequence[int] | None = None,
    methods: Sequence[str] = METHODS, trials: int | None = None,
) -> Steps[Accuracy]:  # fmt: skip
    """Experiment 4; data of a step: the result so far."""
    trials = p.trials if trials is None else trials
    own = range(p.seed, p.seed + (seeds or p.seeds))
    task = task_of(p, own, hidden or p.hidden)
    s = settings_of(p)
    original = yield from part(original_steps(task), 0, 0.3)
    budgets = sorted(set(p.budget))
    shape = (len(own), len(budgets))
    found = Accuracy(np.array(budgets), task.d, trials, task.accuracy(original))
    for key in methods:
        found.test[key], found.validation[key] = np.full(shape, np.nan), np.full(shape, np.nan)
        found.excluded[key] = 0
    yield Step(0.3, "original models", found)
    search = SimpleNamespace(**{**vars(plain(p)), "trials": trials})
    work, done, meter = sum(budgets) * len(methods), 0.0, task.meter()
    for k in reversed(range(len(budgets))):  # the picture is of the largest
        budget = budgets[k]
        tried = candidates(search, s, budgets[0])
        for key in methods:
            if key.endswith("_noinfo"):
                recipe = found.chosen[key.removesuffix("_noinfo"), budget].twin()
            else:
                share = 0.3 + 0.7 * done / work, 0.3 + 0.7 * (done + 0.9 * budget) / work
                recipe = yield from part(
                    _choose(task, tried[key], original, budget), *share, TITLES[key]
                )
            found.chosen[key, budget] = recipe
            watch, every = None, k == len(budgets) - 1
            if every:
                watch = Watch(meter, budget, recipe.noisy)
            path = task.path(recipe, original, budget)
            title = f"{TITLES[key]}, budget {budget}"
            w = yield from part(
                drive(path, budget, watch=_streaming(found, key, watch, recipe)),
                0.3 + 0.7 * (done + 0.9 * budget) / work, 0.3 + 0.7 * (done + budget) / work, title,
                lambda _: found,
            )  # fmt: skip
            found.test[key][:, k] = meter(w)
            found.validation[key][:, k] = task.accuracy(w, "validation")
            found.excluded[key] += int((~finite(w)).sum())
            if watch is not None:
                steps, values = watch.arrays
                found.path[key], found.noisy[key] = (steps, values.T), recipe.noisy
                found.after[key] = values[list(steps).index(recipe.noisy)]
            done += budget
            yield Step(0.3 + 0.7 * done / work, title, found)
    return found


def _streaming(
    found: Accuracy, key: str, watch: Watch | None, recipe: Recipe
) -> Callable[[int, Tensor], Any] | None:
    """A watch that keeps the curve in the result while it grows."""
    if watch is None:
        return None

    def seen(t: int, w: Tensor) -> bool:
        before = len(watch.steps)
        watch(t, w)
        if len(watch.steps) > before:
            steps, values = watch.arrays
            found.path[key], found.noisy[key] = (steps, values.T), recipe.noisy
        return True

    return seen


def _choose(task: Task, tried: list[Recipe], original: Tensor, budget: int) -> Steps[Recipe]:
    """The recipe with the best mean validation accuracy; a run that is not finite counts as 0."""
    if len(tried) == 1:
        return tried[0]
    rows = range(min(SEARCH_SEEDS, len(task.seeds)))
    small = replace(task, splits=task.splits.rows(rows), seeds=task.seeds[: len(rows)])
    scores = []
    for k, recipe in enumerate(tried):
        path = small.path(recipe, original[: len(rows)], budget)
        w = yield from part(
            drive(path, budget), k / len(tried), (k + 1) / len(tried), f"trial {k + 1}"
        )
        scores.append(np.nan_to_num(small.accuracy(w, "validation")).mean())
    return tried[int(np.argmax(scores))]


def widths_steps(p: Any) -> Steps[dict[int, Accuracy]]:
    """Experiment 4 with other hidden layers, at the defaults; data: so far."""
    jobs = {width: (_width_job, (plain(p), width)) for width in p.widths}
    return (yield from fan_out.steps(jobs, p.workers))


def _width_job(p: Any, width: int) -> Steps[Accuracy]:
    return accuracy_steps(p, min(p.seeds, SEARCH_SEEDS), (width,), trials=1)


@dataclass(frozen=True)
class Sweep:
    """Accuracy (S, E) of each method at epsilons (E,), with a budget of SGD steps."""

    epsilon: np.ndarray
    budget: int
    test: dict[str, np.ndarray]
    noise: dict[str, np.ndarray]


SWEPT = ("retrain", "op", "gc", "mc", "op_noinfo", "gc_noinfo", "mc_noinfo")


def sweep_steps(p: Any) -> Steps[Sweep]:
    """Accuracy against epsilon at the defaults; noise[method] (E,): of each step."""
    epsilons = sorted(set(p.epsilons))
    budget = 40 if 40 in p.budget else max(p.budget)
    jobs = {e: (_sweep_job, (plain(p), e, budget)) for e in epsilons}
    rows = yield from fan_out.steps(jobs, p.workers)
    settings = [settings_of(p, e, [budget]) for e in epsilons]
    return Sweep(
        np.array(epsilons), budget,
        {key: np.stack([rows[e][key] for e in epsilons], 1) for key in SWEPT},
        {
            "gc": np.array([s.sigma for s in settings]),
            "mc": np.array([s.mc.sigma for s in settings]),
            "op": np.array([s.sigma_op for s in settings]),
        },
    )  # fmt: skip


def _sweep_job(p: Any, epsilon: float, budget: int) -> Steps[dict[str, np.ndarray]]:
    task = task_of(p, range(p.seed, p.seed + p.seeds), p.hidden)
    original = yield from part(original_steps(task), 0, 0.5)
    made = recipes(settings_of(p, epsilon, [budget]), p.lr_ft, keys=SWEPT)
    found = {}
    for k, recipe in enumerate(made):
        begin, end = 0.5 + k / len(made) / 2, 0.5 + (k + 1) / len(made) / 2
        w = yield from part(drive(task.path(recipe, original, budget), budget), begin, end)
        found[recipe.key] = task.accuracy(w)
    return found


def forget_size_steps(p: Any) -> Steps[experiments.ForgetSize]:
    """Experiment 6: noise against forget size; with p.dp_sgd networks are trained too."""
    yield Step(0.0, "multipliers")
    found = experiments.forget_size(p)
    if not p.dp_sgd:
        return found
    task = task_of(p, range(p.seed, p.seed + p.seeds), p.hidden)
    rates = one_cycle(found.steps, DP_LR)
    for k, (size, z) in enumerate(zip(found.size, found.dp, strict=True)):
        made: Iterator = dp_sgd.train_path(
            task.initial(), task.splits, task.sizes, z=z, C=DP_C, batch=found.batch, rates=rates,
            seed=p.seed,
        )  # fmt: skip
        w = yield from part(
            drive(made, found.steps), k / 8, (k + 1) / 8, f"DP-SGD, {size} to forget"
        )
        found.accuracy[int(size)] = task.accuracy(w)
        yield Step((k + 1) / 8, f"DP-SGD, {size} to forget", found)
    original = yield from part(original_steps(task), 0.5, 0.9)
    s = settings_of(p, found.epsilon, [found.steps])
    gc = recipes(s, p.lr_ft, keys=["gc"])[0]
    w = yield from part(drive(task.path(gc, original, found.steps), found.steps), 0.9, 1.0)
    found.gc_accuracy = task.accuracy(w)
    return found
