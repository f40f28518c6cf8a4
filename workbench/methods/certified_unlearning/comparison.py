"""Accuracy against compute: all methods with the same trials, batches, noise and budgets.

With one trial every method runs at its defaults. With more, each is searched at random as often as
the others, and for each budget the configuration with the best validation accuracy over at most
SEARCH_SEEDS seeds is run on all of them. Methods with a guarantee are searched on their twin from
0, which has not seen the forget set: a setting that was chosen by looking at the old model would
not be covered by the certificate, which holds for fixed settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.steps import Step, Steps, part

from . import data, fan_out
from .accounting import classical_sigma
from .certificates import GradientClipping, ModelClipping, OutputPerturbation
from .mechanisms import TITLES, TWINS, Recipe, Task, Watch, descend, drive, finite, one_cycle
from .networks import CLASSES
from .settings import Settings, settings_of

METHODS = (
    "retrain", "retrain_tuned", "retrain_torch", "finetune", "clip", "op", "op_wide",
    "op_classical", "gc", "mc", "op_noinfo", "gc_noinfo", "mc_noinfo",
)  # fmt: skip
CERTIFIED = ("op", "op_classical", "gc", "mc")  # searched without the old model
WIDER = 10  # radius of "op_wide" over that of "op"
SCALES = (0.1, 0.3, 1.0, 2.0)  # of initializations
TRAIN_STEPS, TRAIN_LR = 4000, 0.5  # of original models
SEARCH_SEEDS = 24
KEPT = 6  # batches of original models


def task_of(p: Any, seeds: Sequence[int], hidden: Sequence[int], mislabel: bool = False) -> Task:
    """The task of some seeds, with networks of these hidden layers."""
    splits = data.split(seeds, p.forget_frac, mislabel)
    sizes = (splits.images.shape[1], *hidden, CLASSES)
    return Task(splits, sizes, tuple(seeds), p.batch, p.wd)


def plain(p: Any) -> SimpleNamespace:
    """The values of parameters, to send to another process."""
    return SimpleNamespace(**p.to_papermill()) if hasattr(p, "to_papermill") else p


def original_steps(
    task: Task, steps: int = TRAIN_STEPS, constant: bool = False, also: Sequence[Tensor] = ()
) -> Steps[Tensor]:
    """Train the model that is to forget, on retain and forget set: weights (S, d).

    constant: keep the learning rate, with which wrong labels are learned by heart; else one cycle.
    also: indices of other training sets of the first seed, each for one more network (S + more, d).
    What was trained on the digits is kept, since several experiments start from the same models.
    """
    key = None
    if task.splits.images is data.digits():
        seen = task.splits.train.numpy().tobytes(), task.splits.own.numpy().tobytes()
        key = (*map(hash, seen), task.sizes, task.seeds, task.batch, task.wd, steps, constant)
    wanted = (key, tuple(map(len, also)))
    if key is not None and wanted in _TRAINED:
        yield Step(1.0, "original model")
        return _TRAINED[wanted].clone()
    rates = [TRAIN_LR] * steps if constant else one_cycle(steps, TRAIN_LR)
    rows = [*range(len(task.seeds)), *[0] * len(also)]
    index = torch.cat([
        data.batches(part, task.batch, steps, seeds, stream=9)
        for part, seeds in (
            (task.splits.train, task.seeds), *((part[None], task.seeds[:1]) for part in also)
        )
    ], 1)  # fmt: skip
    both = replace(task, splits=task.splits.rows(rows))
    path = descend(task.initial()[rows], rates, both.gradients_on(index), task.wd)
    w = yield from drive(path, steps, "original model,")
    if key is not None:
        while len(_TRAINED) >= KEPT:
            _TRAINED.pop(next(iter(_TRAINED)), None)
        _TRAINED[wanted] = w.clone()
        _TRAINED[key, ()] = w[: len(task.seeds)].clone()
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
        Recipe(
            "op_wide",
            mechanism=OutputPerturbation(WIDER * s.op.C0),
            sigmas=(WIDER * s.sigma_op,),
            lr=lr,
        ),
        Recipe("op_classical", mechanism=s.op, sigmas=(s.sigma_classical,), lr=lr),
        Recipe("gc", mechanism=s.gc, sigmas=gc, lr=lr),
        Recipe("mc", mechanism=s.mc, sigmas=(s.mc.sigma,) * s.T_mc, lr=lr),
    ]
    made += [r.twin() for r in made if r.key in TWINS]
    return [r for r in made if r.key in keys]  # fmt: skip


def candidates(p: Any, s: Settings, budget: int) -> dict[str, list[Recipe]]:
    """What is tried for each method: the defaults, and p.trials - 1 random ones.

    The tuned start begins with its four scales at the default rate, so with fewer than four trials
    it has more than the others, which favors that baseline. Output perturbation with the wider
    ball is a fixed setting: with more than one trial the radius is searched anyway.
    """
    base = {r.key: r for r in recipes(s, p.lr_ft)}
    found = {key: [r] for key, r in base.items() if key not in TWINS.values()}
    if p.trials > 1:
        del found["op_wide"]
    for trial in range(1, p.trials):
        rng = np.random.default_rng([p.seed, 6, trial])
        lr = log_uniform(rng, 0.1, 4)
        scale = float(rng.choice(SCALES))
        gamma = log_uniform(rng, 1e-4, 1e-2)
        gc = GradientClipping(
            log_uniform(rng, 3e-3, 0.3), log_uniform(rng, 0.3, 30), gamma,
            log_uniform(rng, 0.01, 0.3) / gamma,
        )  # fmt: skip
        T, T_mc = min(gc.steps(), budget), int(rng.integers(1, 7))
        mc = ModelClipping.calibrated(
            log_uniform(rng, 0.01, 1), s.epsilon, s.delta, min(T_mc, budget),
            gamma=log_uniform(rng, 0.05, 2), lam=p.wd,
        )  # fmt: skip
        op = OutputPerturbation(log_uniform(rng, 1e-3, 0.3))
        drawn = replace(
            s, gc=gc, T=T, sigma=float(gc.sigma(s.mu, T)), mc=mc,
            T_mc=min(T_mc, budget), op=op, sigma_op=float(op.sigma(s.mu)),
            sigma_classical=s.sigma_classical * op.C0 / s.op.C0,
        )  # fmt: skip
        for recipe in recipes(drawn, lr, scale):
            if recipe.key in found:
                found[recipe.key].append(recipe)
    scales = [replace(base["retrain_tuned"], scale=x) for x in SCALES]
    drawn_starts = found["retrain_tuned"][1:][: max(p.trials - len(SCALES), 0)]
    found["retrain_tuned"] = [*scales, *drawn_starts]
    return found


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


@dataclass
class Accuracy:
    """Experiment 4. budget (K,): SGD steps in all. test[method] (S, K): accuracy, nan excluded.

    validation[method] (S, K): of the configuration that was run; after[method] (S,): accuracy right
    after the noisy phase, at the largest budget. noisy[method]: steps of that phase there.
    path[method]: steps (t,) and accuracy (S, t) at the largest budget. excluded[method]: runs that
    were not finite. chosen[method, budget]: the recipe that was run. exact[method]: exact epsilon
    of its noise at the largest budget, infinite for none: above the target it is not certified.
    original (S,): accuracy of the models that were asked to forget. d: parameters of a network.
    trials: tried for each method.
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
    exact: dict[str, float] = field(default_factory=dict)

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
        return None if a is None or b is None else differences(a, b)


def differences(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above - below (S',), of seeds where both are finite."""
    found = np.asarray(above, float) - np.asarray(below, float)
    return found[np.isfinite(found)]


def half_width(values: np.ndarray) -> float:
    """Of the 95 % interval of a mean: 1.96 standard errors; nan for fewer than two values."""
    return float(1.96 * values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else np.nan


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
    if "op_classical" in methods:
        classical_sigma(1.0, s.epsilon, s.delta)  # warns where it is not proven
    budgets = sorted(set(p.budget))
    shape = (len(own), len(budgets))
    found = Accuracy(np.array(budgets), task.d, trials, task.accuracy(original))
    methods = [key for key in methods if key != "op_wide" or trials == 1]
    for key in methods:
        found.test[key], found.validation[key] = np.full(shape, np.nan), np.full(shape, np.nan)
        found.excluded[key] = 0
    yield Step(0.3, "original models", found)
    search = SimpleNamespace(**{**vars(plain(p)), "trials": trials})
    begin = 0.3 + 0.4 * (1 - 1 / trials)
    yield from part(
        _search(search, task, s, original, budgets, methods, found), 0.3, begin, "search",
        lambda _: found,
    )  # fmt: skip
    work, done, meter = sum(budgets) * len(methods), 0.0, task.meter()

    def share(of: float) -> float:
        return begin + (1 - begin) * of / work

    for k in reversed(range(len(budgets))):  # the picture is of the largest
        budget = budgets[k]
        for key in methods:
            if key in TWINS.values():
                sibling = key.removesuffix("_noinfo")
                found.chosen[key, budget] = found.chosen[sibling, budget].twin()
            recipe, watch = found.chosen[key, budget], None
            if k == len(budgets) - 1:
                watch = Watch(meter, budget, recipe.noisy)
                found.exact[key] = recipe.epsilon(p.delta)
            path = task.path(recipe, original, budget)
            title = f"{TITLES[key]}, budget {budget}"
            w = yield from part(
                drive(path, budget, watch=_streaming(found, key, watch, recipe)),
                share(done), share(done + budget), title, lambda _: found,
            )  # fmt: skip
            found.test[key][:, k] = meter(w)
            found.validation[key][:, k] = task.accuracy(w, "validation")
            found.excluded[key] += int((~finite(w)).sum())
            if watch is not None:
                steps, values = watch.arrays
                found.path[key], found.noisy[key] = (steps, values.T), recipe.noisy
                found.after[key] = values[list(steps).index(recipe.noisy)]
            done += budget
            yield Step(share(done), title, found)
    return found


def _search(
    p: Any, task: Task, s: Settings, original: Tensor, budgets: Sequence[int],
    methods: Sequence[str], found: Accuracy,
) -> Steps[None]:  # fmt: skip
    """Choose the recipe of each method at each budget, on p.workers processes."""
    jobs = {}
    small, start = few(task), original[:SEARCH_SEEDS]
    for budget in budgets:
        tried = candidates(p, s, budgets[0])
        for key in (key for key in methods if key in tried):
            found.chosen[key, budget] = tried[key][0]
            if len(tried[key]) > 1:
                jobs[key, budget] = choose, (small, tried[key], start, budget)
    if jobs:
        titles = {job: f"{TITLES[job[0]]}, budget {job[1]}" for job in jobs}
        chosen = yield from fan_out.steps({titles[job]: jobs[job] for job in jobs}, p.workers)
        found.chosen |= {job: chosen[titles[job]] for job in jobs}


def few(task: Task) -> Task:
    """The task on the seeds of a search."""
    rows = range(min(SEARCH_SEEDS, len(task.seeds)))
    return replace(task, splits=task.splits.rows(rows), seeds=task.seeds[: len(rows)])


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


def choose(task: Task, tried: list[Recipe], original: Tensor, budget: int) -> Steps[Recipe]:
    """The recipe with the best mean validation accuracy; a run that is not finite counts as 0."""

    def run(recipe: Recipe) -> Iterator[tuple[int, Tensor]]:
        unseen = recipe.twin() if recipe.key in CERTIFIED else recipe
        return task.path(unseen, original, budget)

    return (yield from best(task, tried, run, budget))


def best(
    task: Task, tried: Sequence[Any], run: Callable[[Any], Iterator[tuple[int, Tensor]]], total: int
) -> Steps[Any]:
    """The trial whose path has the best mean validation accuracy at its end."""
    scores = []
    for k, one in enumerate(tried):
        w = yield from part(
            drive(run(one), total), k / len(tried), (k + 1) / len(tried), f"trial {k + 1}"
        )
        scores.append(np.nan_to_num(task.accuracy(w, "validation")).mean())
    return tried[int(np.argmax(scores))]


def widths_steps(p: Any) -> Steps[dict[int, Accuracy]]:
    """Experiment 4 with other hidden layers, at the defaults; data: so far."""
    jobs = {width: (_width_job, (plain(p), width)) for width in p.widths}
    return (yield from fan_out.steps(jobs, p.workers))


def _width_job(p: Any, width: int) -> Steps[Accuracy]:
    return accuracy_steps(p, min(p.seeds, SEARCH_SEEDS), (width,), trials=1)


@dataclass(frozen=True)
class Sweep:
    """Accuracy (S, E) of each method at epsilons (E,), with a budget of SGD steps.

    noise[method] (E,): of each step. Model clipping has the least noise that its T steps need, at
    every epsilon, so at that of the parameters a little less than `sigma_mc` in `Accuracy`.
    """

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
