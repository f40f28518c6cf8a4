"""What networks remember: the white-box test, membership inference, and where knowledge survives.

Networks here are wider than in `comparison.py` where they must learn wrong labels by heart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor
from torch.nn import functional

from workbench.steps import Step, Steps, part

from . import data, networks, streams
from .accounting import largest_auc, mu_of
from .audit import auc, auc_interval
from .certificates import OutputPerturbation, survival_bound
from .comparison import TRAIN_STEPS, original_steps, recipes, task_of
from .data import batches
from .mechanisms import TITLES, Recipe, Task, Watch, drive, noisy_phase
from .membership import attack
from .settings import settings_of

RUNS = 1000  # of the white-box test at most, from each of the two models
RUN_SHARE = 50  # runs of the scalar adversary for each of them
WHITE_BOX = (None, 1.0, 10.0)  # epsilons; None is no noise
SHARES = (0.005, 0.1, 0.5)  # of the training set, for requests of different size
SIZE_EPSILON = 1.0
WIDTH = 64  # of the network that memorizes
MEMORY_LR, SURVIVAL_LR = 0.5, 0.2  # of what follows its original training
MIA_STEPS = (40, 160, 640)
MIA_METHODS = ("finetune", "clip", "gc", "retrain")
SURVIVAL_EPSILONS = (1.0, 1e2, 1e3, 1e4, 1e5)
SURVIVAL_C0, SURVIVAL_STEPS = 10.0, 160


@dataclass
class WhiteBox:
    """Experiment 2b: telling the two models' noisy phases apart, knowing everything.

    names (K,); epsilon (K,): infinite without noise; auc, low, high (K,): area with its 95 %
    interval; limit (K,): that of the certificate, Phi(mu / sqrt(2)). scores[name]: projections of
    the runs from the original and from the retrained model, (runs,) each. size_auc[k]: area at
    epsilon 1 for a request of k examples, all with the same noise; size_distance[k]: of the two
    starts after clipping; size_limit: that of the certificate.
    """

    runs: int
    d: int
    names: list[str] = field(default_factory=list)
    epsilon: list[float] = field(default_factory=list)
    auc: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    limit: list[float] = field(default_factory=list)
    scores: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    size_auc: dict[int, float] = field(default_factory=dict)
    size_distance: dict[int, float] = field(default_factory=dict)
    size_limit: float = np.nan


def whitebox_steps(
    p: Any, runs: int | None = None, train: int = TRAIN_STEPS
) -> Steps[WhiteBox]:  # fmt: skip
    """Experiment 2b with the first seed: gradient clipping from the model and from a retrained one.

    The statistic is the projection on the difference of the two starts after clipping. Both runs of
    a pair see the same public batches, with independent noise. Then the same for requests of other
    sizes; the original model is that of all, since a request only takes from its training set.
    runs: None for one to 50 of the scalar adversary, 1,000 at most.
    """
    runs = min(RUNS, max(p.audit_n // RUN_SHARE, 2)) if runs is None else runs
    every = task_of(p, range(p.seed, p.seed + p.seeds), p.hidden)
    shares = (p.forget_frac, *(share for share in SHARES if share != p.forget_frac))
    splits = [data.split([p.seed], share) for share in shares]
    w = yield from part(original_steps(every, train, also=[s.retain[0] for s in splits]), 0, 0.7)
    s = settings_of(p)
    pairs = [networks.clip(w[[0, k - len(splits)]], s.gc.C0) for k in range(len(splits))]
    found = WhiteBox(runs, every.d)
    total, done = len(WHITE_BOX) + len(splits), 0

    def test(k: int, epsilon: float | None) -> Steps[tuple[np.ndarray, np.ndarray]]:
        """Scores of the runs from both models, for the request of `splits[k]`."""
        direction = functional.normalize(pairs[k][0] - pairs[k][1], dim=0)
        sigma = 0.0
        if epsilon is not None:
            sigma = float(s.gc.sigma(float(mu_of(epsilon, p.delta)), s.T))
        task = replace(every, splits=splits[k])
        rows = range(p.seed * runs, (p.seed + 1) * runs)
        index = batches(splits[k].retain.expand(runs, -1), task.batch, s.T, rows, 4)
        gradient, scores = task.gradients_on(index), []
        for side in range(2):
            noise = streams.generator(streams.WHITE_BOX, p.seed, done, side)
            path = noisy_phase(
                pairs[k][side].expand(runs, -1), s.gc, [sigma] * s.T, gradient, noise
            )
            begin = 0.7 + 0.3 * (2 * done + side) / (2 * total)
            w_T = yield from part(drive(path, s.T), begin, begin + 0.15 / total, "white box")
            scores.append((w_T @ direction).numpy())
        return scores[0], scores[1]

    for epsilon in WHITE_BOX:
        name = "no noise" if epsilon is None else f"epsilon {epsilon:g}"
        scores = yield from test(0, epsilon)
        area = auc(*scores)
        low, high = auc_interval(area, runs, runs)
        found.names.append(name)
        found.epsilon.append(np.inf if epsilon is None else epsilon)
        found.auc.append(area)
        found.low.append(low)
        found.high.append(high)
        found.limit.append(_limit(epsilon, p.delta))
        found.scores[name] = scores
        done += 1
        yield Step(0.7 + 0.3 * done / total, name, found)
    found.size_limit = _limit(SIZE_EPSILON, p.delta)
    for k, split in enumerate(splits):
        size = split.forget.shape[1]
        found.size_distance[size] = float((pairs[k][0] - pairs[k][1]).norm())
        found.size_auc[size] = auc(*(yield from test(k, SIZE_EPSILON)))
        done += 1
        yield Step(0.7 + 0.3 * done / total, f"{size} to forget", found)
    return found


def _limit(epsilon: float | None, delta: float) -> float:
    return 1.0 if epsilon is None else float(largest_auc(mu_of(epsilon, delta)))


@dataclass
class Membership:
    """Experiment 3. auc, accuracy[method, steps] (S,): of the attack, and on test images.

    "original" has steps 0. Of the first seed: losses[method]: of members (m,) and of non-members
    (k,) at `shown` steps; path[method]: steps (t,) and losses of members (t, m) along that run;
    images (m, 64), given and true labels (m,) of the members. excluded[method]: runs that were not
    finite.
    """

    d: int
    shown: int
    auc: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    accuracy: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    losses: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    path: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    excluded: dict[str, int] = field(default_factory=dict)
    images: np.ndarray = field(default_factory=lambda: np.zeros((0, 64)))
    given: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    true: np.ndarray = field(default_factory=lambda: np.zeros(0, int))


def memorizing_steps(p: Any, seeds: int | None = None, train: int = TRAIN_STEPS):
    """The networks that learned wrong labels by heart: their task and weights."""
    own = range(p.seed, p.seed + (seeds or p.mia_seeds))
    task = task_of(p, own, (WIDTH,), mislabel=True)
    trained = yield from original_steps(task, train, constant=True)
    return task, trained


def membership_steps(
    p: Any, seeds: int | None = None, steps: tuple[int, ...] = MIA_STEPS,
    methods: tuple[str, ...] = MIA_METHODS, train: int = TRAIN_STEPS,
) -> Steps[Membership]:  # fmt: skip
    """Experiment 3; data of a step: the result so far."""
    task, original = yield from part(memorizing_steps(p, seeds, train), 0, 0.5)
    shown = 160 if 160 in steps else max(steps)
    found = Membership(task.d, shown)
    forget = task.splits.forget[0]
    found.images = task.splits.images[forget].numpy()
    found.given, found.true = task.splits.own[0, forget].numpy(), task.splits.labels[forget].numpy()
    _keep(found, task, "original", 0, original)
    yield Step(0.5, "original model", found)
    made = recipes(settings_of(p, budgets=[min(steps)]), MEMORY_LR, keys=methods)
    work, done = sum(steps) * len(made), 0.0
    for budget in steps:
        for recipe in made:
            watch = None
            if budget == shown:
                watch = Watch(lambda w: task.losses(w, "forget")[0], budget, recipe.noisy)
            share = 0.5 + done / work / 2, 0.5 + (done + budget) / work / 2
            title = f"{TITLES[recipe.key]}, {budget} steps"
            w = yield from part(
                drive(task.path(recipe, original, budget, 1), budget, watch=watch), *share, title
            )
            if watch is not None:
                found.path[recipe.key] = watch.arrays
            _keep(found, task, recipe.key, budget, w)
            done += budget
            yield Step(share[1], title, found)
    return found


def _keep(found: Membership, task: Task, key: str, steps: int, w: Tensor) -> None:
    areas, members, others = attack(task, w)
    found.auc[key, steps], found.accuracy[key, steps] = areas, task.accuracy(w)
    found.excluded[key] = found.excluded.get(key, 0) + int((~np.isfinite(areas)).sum())
    if steps in (0, found.shown):
        found.losses[key] = (members[0], others[0])


@dataclass
class Survival:
    """Experiment 5. epsilon (E,); accuracy, auc (S, E): of output perturbation with radius C0, then
    fine-tuning; bound (E,): signal-to-noise ratio mu / (2 sqrt(d)) that the start cannot exceed."""

    d: int
    C0: float
    epsilon: np.ndarray
    accuracy: np.ndarray
    auc: np.ndarray
    bound: np.ndarray

    @property
    def excluded(self) -> int:
        """Finished runs that were not finite."""
        return int(np.isnan(self.accuracy).sum())


def survival_steps(
    p: Any, seeds: int | None = None, epsilons: tuple[float, ...] = SURVIVAL_EPSILONS,
    train: int = TRAIN_STEPS, budget: int = SURVIVAL_STEPS,
) -> Steps[Survival]:  # fmt: skip
    """Experiment 5, at epsilons that mean nothing as guarantees; data: the epsilons so far."""
    task, original = yield from part(memorizing_steps(p, seeds, train), 0, 0.5)
    epsilon = np.array(epsilons, float)
    mu = np.asarray(mu_of(epsilon, p.delta))
    op = OutputPerturbation(SURVIVAL_C0)
    accuracy, area = np.full((2, len(task.seeds), len(epsilon)), np.nan)

    def so_far(k: int) -> Survival:
        return Survival(
            task.d, op.C0, epsilon[:k], accuracy[:, :k], area[:, :k], survival_bound(mu[:k], task.d)
        )

    for k in range(len(epsilon)):
        recipe = Recipe("op", mechanism=op, sigmas=(float(op.sigma(mu[k])),), lr=SURVIVAL_LR)
        share = 0.5 + k / len(epsilon) / 2, 0.5 + (k + 1) / len(epsilon) / 2
        path = task.path(recipe, original, budget, 1)
        w = yield from part(drive(path, budget), *share, f"epsilon {epsilon[k]:g}")
        accuracy[:, k], area[:, k] = task.accuracy(w), attack(task, w)[0]
        yield Step(share[1], f"epsilon {epsilon[k]:g}", so_far(k + 1))
    return so_far(len(epsilon))
