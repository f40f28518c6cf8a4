"""What the attack needs, and what its target needs: experiments that take something away.

Parts of the attack (rank, margin, line search, box, rivals), the order's length (nested orders of a
linear model, exactly), the network's features (width), and the network's innocence (defenses).
Generators of steps like those of `experiments.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor, nn

from workbench.numerics.threads import one_thread
from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part

from . import digits, glyphs
from .experiments import (
    DIGITS_IMAGES,
    DIGITS_ITERS,
    TITLES,
    Problem,
    attack_job,
    attacks_steps,
    job_limits,
    problem_steps,
    with_random_targets,
)
from .least_distance import least_distance
from .networks import accuracy, attackable
from .ranking import random_targets, rank_matrix
from .records import AttackResult
from .sqp import RisingOptions, linear_programs, rising_steps

if TYPE_CHECKING:
    from .defense import Curve

ABLATION_K, LONG_K = 5, 20
RANKS = (1, 2, 3, 4, 6, 8, 9)
MARGINS = (0.5, 0.2, 0.05, 0.01, 0.001)
RIDGE = 1.0  # of the linear classifier fitted to the digits, whose pixels are in [0, 1]
WIDTHS = (98, 196, 392, 784, 3136)
WIDTH_K = (5, 10, 20, 30)
SPAN_ITERATIONS = (0, 1, 2, 4, 8)  # of an attack, whose programs are held against their span
DEFENSE_K = (1, 3)  # each place of an order needs votes that are surely more than the next one's
DEFENSE_EPS = np.linspace(0, 3, 61)  # the longest found are 2.7


@dataclass(frozen=True)
class Ablations:
    """The attack with parts taken away: results[part][setting]; results[""][FULL] is ours.

    All on the same images, but those of the part "margin" may be more, the first of them the same.
    residuals (2, iterates, n): share of the program's solution outside the span of the right
    singular vectors, without the box, and with it on the free pixels; `SPAN_ITERATIONS`.
    """

    data: str
    K: int
    results: dict[str, dict[str, AttackResult]]
    residuals: np.ndarray | None = None


FULL = "as is"


def digits_ablation_settings() -> dict[str, dict[str, dict[str, Any]]]:
    """Part -> setting -> changed options, for digits."""
    ranks = {str(rank): {"rank": rank} for rank in RANKS}
    margins = {f"{margin:g}": {"margin": margin} for margin in MARGINS}
    return {
        "rank": ranks,
        "margin": margins,
        "directions": {"random": {"directions": "random"}},
        "line search": {"full steps": {"line_search": False}},
        "box": {"clipped only": {"box": "none"}},
        "rivals": {str(n): {"rivals": n} for n in (1, 2, 3, 4)},
    }


def long_ablation_settings() -> dict[str, dict[str, dict[str, Any]]]:
    """The same for long orders on glyphs."""
    return {
        "tau": {
            f"{tau:g}, full steps": {"tau": tau, "line_search": False} for tau in (1.0, 0.5, 0.3)
        },
        "rivals": {str(n): {"rivals": n} for n in (10, 20, 40)},
    }


def ablation_steps(
    p: Parameters,
    problem: Problem,
    K: int,
    iters: int,
    settings: dict[str, dict[str, dict[str, Any]]],
    many: Problem | None = None,
) -> Steps[Ablations]:
    """Attack network 0 as is and with each changed setting; many: the images for margins."""
    model, targets = problem.models[0], problem.targets(K, p)
    wide = many or problem
    on = {"margin": (wide.x, wide.targets(K, p))}
    own = {**p.options("rising"), "iters": iters}
    flat = {
        ("", FULL): {},
        **{(a, b): o for a, found in settings.items() for b, o in found.items()},
    }
    jobs = {
        key: partial(
            attack_job,
            key,
            model,
            *on.get(key[0], (problem.x, targets)),
            "rising",
            **{**own, **changes},
        )
        for key, changes in flat.items()
    }
    names = [f"{problem.data}, K = {K}, {' '.join(key).strip()}" for key in flat]

    def make(found: dict) -> Ablations:
        results = {
            part_: {b: found[part_, b] for b in inner if (part_, b) in found}
            for part_, inner in {"": {FULL: {}}, **settings}.items()
        }
        return Ablations(problem.data, K, results)

    ablations = yield from attacks_steps(jobs, names, make)
    return replace(ablations, residuals=off_span(model, problem.x, targets, p.margin))


def digits_ablations_steps(p: Parameters) -> Steps[Ablations]:
    """Experiments 5 and 6 on 24 digits at K = 5, margins on as many as the parameters say."""
    p = with_random_targets(p)
    problem = yield from part(problem_steps(p, "digits", 1, DIGITS_IMAGES), 0, 0.1)
    many = yield from part(problem_steps(p, "digits", 1, p.margin_images), 0.1, 0.1)
    settings = digits_ablation_settings()
    steps = ablation_steps(p, problem, ABLATION_K, DIGITS_ITERS, settings, many)
    return (yield from part(steps, 0.1, 1, data=lambda partial: partial))


def long_ablations_steps(p: Parameters, images: int = 8) -> Steps[Ablations]:
    """Experiment 6 on glyphs, K = 20: a fraction of the violation a step, and few rivals."""
    p = with_random_targets(p)
    problem = yield from part(problem_steps(p, "glyphs", 1, images), 0, 0.1)
    steps = ablation_steps(p, problem, LONG_K, p.iters, long_ablation_settings())
    return (yield from part(steps, 0.1, 1, data=lambda partial: partial))


def off_span(model: nn.Module, x: Tensor, targets: Tensor, margin: float) -> np.ndarray:
    """(2, iterates, n) share |delta - V V' delta| / |delta| of a program's solution outside span V.

    The programs of an attack at `SPAN_ITERATIONS` (as many as it takes), first without the box,
    then with it on the pixels that are not at a bound. V from a direct SVD of the Jacobian, not
    from the Gram matrix with which the program was solved.
    """
    options = RisingOptions(iters=max(SPAN_ITERATIONS) + 1, margin=margin, early_stop=False)
    with one_thread():
        snapshots = list(rising_steps(model, x, targets, options))
        chosen = [s for s in snapshots if s.iteration in SPAN_ITERATIONS]
        shares = np.zeros((2, len(chosen), len(x)))
        for number, box in enumerate(("none", "active")):
            boxed = replace(options, box=box)
            for row, s in enumerate(chosen):
                programs = linear_programs(model, x, s.delta, s.logits, targets, boxed)
                for image, solution in enumerate(programs):
                    delta = solution.delta[solution.free]
                    V = np.linalg.svd(solution.G[:, solution.free], full_matrices=False)[2].T
                    rest = np.linalg.norm(delta - V @ (V.T @ delta))
                    shares[number, row, image] = rest / max(np.linalg.norm(delta), 1e-300)
    return shares


def ridge_classifier() -> tuple[np.ndarray, np.ndarray]:
    """A linear classifier of the digits, by least squares on one-hot labels.

    W (10, 64), b (10,).
    """
    images, labels = digits.training_digits()
    design = np.c_[images.flatten(1).double().numpy(), np.ones(len(images))]
    wanted = np.eye(digits.N_CLASSES)[labels.numpy()]
    penalty = RIDGE * np.diag([*np.ones(design.shape[1] - 1), 0.0])
    solution = np.linalg.solve(design.T @ design + penalty, design.T @ wanted)
    return solution[:-1].T, solution[-1]


@dataclass(frozen=True)
class Nested:
    """Optimal l2 norms (n, 9) for the prefixes K = 1..9 of one order of digits, linear model."""

    norms: np.ndarray


def nested_steps(p: Parameters, margin: float = 0.05, images: int = 24) -> Steps[Nested]:
    """Experiment 7, exact part: on a linear model, without a box, the program is the optimum."""
    W, b = ridge_classifier()
    x, labels = digits.held_out_digits()
    x, labels = x[:images].flatten(1).double().numpy(), labels[:images]
    orders = random_targets(labels, digits.N_CLASSES - 1, digits.N_CLASSES, p.seed).tolist()
    norms = np.zeros((images, digits.N_CLASSES - 1))
    for i, order in enumerate(orders):
        for K in range(1, digits.N_CLASSES):
            A = rank_matrix(order[:K], digits.N_CLASSES)
            delta, _ = least_distance(A @ W, margin - A @ (W @ x[i] + b))
            norms[i, K - 1] = np.linalg.norm(delta)
        yield Step((i + 1) / images, f"linear model, image {i + 1} of {images}")
    return Nested(norms)


@dataclass(frozen=True)
class Widths:
    """Success by feature width: asr[method] (widths, K), accuracy (widths,).

    deep[method] (K,): the same for the deeper network, whose features are `deep_width`; None while
    it has not been attacked. deep_accuracy: of that network.
    """

    widths: np.ndarray
    K: np.ndarray
    accuracy: np.ndarray
    asr: dict[str, np.ndarray]
    deep: dict[str, np.ndarray] | None = None
    deep_width: int = glyphs.DEEP_FEATURES
    deep_accuracy: float = np.nan


def width_steps(p: Parameters, images: int = 8) -> Steps[Widths]:
    """How many features an order needs: the glyph network at several widths (rising and CW^K).

    At last the deeper network, which has fewer features than most and reads better.
    """
    methods = ("rising", "cw")
    networks = [(width, False) for width in WIDTHS] + [(glyphs.DEEP_FEATURES, True)]
    rates = np.full((len(networks), len(methods), len(WIDTH_K)), np.nan)
    right = np.full(len(networks), np.nan)

    def so_far() -> Widths:
        done = ~np.isnan(right[:-1])
        asr = {m: rates[:-1, i][done] for i, m in enumerate(methods)}
        deep = {m: rates[-1, i] for i, m in enumerate(methods)} if right[-1] >= 0 else None
        return Widths(np.array(WIDTHS)[done], np.array(WIDTH_K), right[:-1][done], asr, deep,
                      deep_accuracy=float(right[-1]))  # fmt: skip

    for row, (width, deep) in enumerate(networks):
        begin, size = row / len(networks), 1 / len(networks)
        middle, name = begin + size / 3, f"{width} features{', deeper' if deep else ''}"
        training = glyphs.glyph_model_steps(p.seed, width, deep)
        model = yield from part(training, begin, middle, name)
        x, labels = glyphs.held_out_glyphs()
        chosen = attackable([model], x, labels, images, p.seed)
        jobs = {
            (m, column): partial(
                attack_job, (m, column), model, x[chosen],
                random_targets(labels[chosen], K, glyphs.N_CLASSES, p.seed), m, **p.options(m),
            )
            for column, K in enumerate(WIDTH_K) for m in methods
        }  # fmt: skip
        names = [f"{name}, K = {WIDTH_K[c]}, {TITLES[m]}" for m, c in jobs]
        found = yield from part(attacks_steps(jobs, names, dict), middle, begin + size)
        for (m, column), result in found.items():
            rates[row, methods.index(m), column] = result.asr
        right[row] = accuracy(model, x, labels)
        yield Step(begin + size, name, so_far())
    return so_far()


def defense_steps(p: Parameters) -> Steps[dict[int, dict[str, Curve]]]:
    """What a budget means: K -> a plain, an adversarially trained and a smoothed network.

    The same attacks (`defense.ATTACKS`, whatever the attack's parameters) for nested orders on the
    same images, which all three networks read correctly.
    """
    from . import defense  # scipy.stats takes a second to import

    models = yield from part(defense.networks_steps(p.seed), 0, 0.3)
    x, labels = digits.held_out_digits()
    smoothed = defense.Smoothed(models["smoothed"], x.shape[1:], seed=p.seed).eval()
    readers = [models["plain"], models["adversarially trained"], smoothed]
    chosen = attackable(readers, x, labels, p.defense_images, p.seed)
    x, labels = x[chosen], labels[chosen]

    def curves_job(K: int) -> Steps[tuple[int, dict[str, Curve]]]:
        targets = random_targets(labels, K, digits.N_CLASSES, p.seed)
        with one_thread(), job_limits():
            steps = defense.curves_steps(models, x, labels, targets, DEFENSE_EPS, seed=p.seed)
            found = yield from part(steps, 0, 1, data=lambda partial: (K, partial))
        return K, found

    jobs = {K: partial(curves_job, K) for K in DEFENSE_K}
    names = [f"defense, K = {K}" for K in jobs]
    return (yield from part(attacks_steps(jobs, names, dict), 0.3, 1, data=lambda found: found))
