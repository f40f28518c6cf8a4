"""Data that the experiments learn from, simulated: cell sorting, bi-polar aggregates, digits.

Each generator is a schedule of temperatures for an ordinary cellular Potts model, some with an
external field per picture that the learner is not told about. Sizes are those of the teaching
scale; `PAPER` holds the overrides for the paper's sizes. Settings of cell sorting and of the
paper's sizes: official code. Bi-polar fields and teaching scale: ours. `bipolar-motion` rebuilds
the paper's motion rule on our engine. Loading other people's data is in `loaders`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from workbench.numerics.checks import choice

from ...steps import Step, Steps, run
from .ensemble import Ensemble
from .measures import centers
from .starts import scatter

ATTEMPTS_A_STEP = 1_500_000  # about 30 ms on one core: the time between two reports of progress


@dataclass(frozen=True)
class Scenario:
    """How one kind of picture is made; every field may be overridden in `simulate`.

    size: side of the torus. n_cells: of both kinds together, half each. J: (J01, J02, J11, J12,
    J22), contact_norm 1/4. stages: (temperature, MCS) in turn. radius: cells start as single sites
    at random within it. guide: what else acts on the cells (none, poles, digit or motion).
    strength: factor of the guide.
    """

    J: tuple[float, float, float, float, float]
    lam: float
    size: int = 100
    n_cells: int = 40
    V_target: float = 100
    radius: float = 30
    stages: tuple[tuple[float, float], ...] = ((1.0, 1500.0),)
    proposal: str = "uniform"
    guide: str = "none"
    strength: float = 1.0

    @property
    def matrix(self) -> np.ndarray:
        """(3, 3) contact energies."""
        J01, J02, J11, J12, J22 = self.J
        return np.array([[0, J01, J02], [J01, J11, J12], [J02, J12, J22]], float)


_QUENCH = tuple((float(T), 200.0) for T in np.geomspace(2.5, 1, 12))
# The paper's code hands its volume weight over as .5 before softplus: log(1 + exp(.5)) = .974.
_POLAR = Scenario((6, 6, 3, 7, 3), 0.974, 36, 12, 36, 9, (*_QUENCH, (1.0, 300.0)), guide="poles")
SCENARIOS = {
    "cellsort-a": Scenario((0.5, 0.5, 1 / 3, 0.2, 0.266667), 0.1),
    "cellsort-b": Scenario((2.5, 1, 1, 4.5, 1), 0.5),
    "cellsort-d": Scenario((7.5, 4, 3.5, 2.25, 0.5), 0.1),
    "cellsort-f": Scenario((0.1, 0.8, 0.7, 0.55, 0.2), 0.04),
    "bipolar": _POLAR,
    "digits": replace(
        _POLAR, size=60, n_cells=32, V_target=40, radius=15, guide="digit",
        stages=((2.0, 300.0), (1.5, 300.0), (1.0, 300.0)),
    ),
    # The Morpheus model of experiment 2. Its contacts of 16 and 6 are per length of border, which
    # it measures on a larger neighborhood; a straight border of length 1 has 3 Moore pairs, so
    # that contact_norm 1/4 times 4/3 of them gives the same energy.
    "bipolar-motion": Scenario(
        (64 / 3, 64 / 3, 8, 64 / 3, 8), 1.0, 149, 40, 150, 149 / 6, ((2.0, 2000.0),),
        "edges", "motion", 0.2,
    ),
}  # fmt: skip
_ATTEMPTS = 1.0 / 100**2  # MCS of one border attempt on the paper's 100 x 100 lattice
PAPER = {
    "cellsort": {
        "size": 200, "n_cells": 100, "V_target": 200, "radius": 60, "proposal": "border_source",
        "stages": ((1.0, 20e6 / 200**2),),
    },
    "digits": {
        "size": 100, "n_cells": 50, "V_target": 100, "radius": 25, "proposal": "border_source",
        "J": (6, 6, 3, 8, 3), "strength": 10.0, "stages": ((1.0, 20 * 8000 * _ATTEMPTS),),
    },
}  # fmt: skip


@dataclass(frozen=True)
class Simulation:
    """Final pictures of n simulations that share their cells.

    frames (n, H, W) int32; kind (N + 1,); scenario: how they were made; angle (n,): axis of the
    poles in radians from the column axis towards the rows, if there are any; label (n,): digit.
    """

    frames: np.ndarray
    kind: np.ndarray
    scenario: Scenario
    angle: np.ndarray | None = None
    label: np.ndarray | None = None


def scenario(name: str, **overrides: object) -> Scenario:
    """A scenario by name with other settings; ValueError for an unknown name or setting."""
    choice("name", name, SCENARIOS)
    for key in overrides:
        choice("setting", key, [field.name for field in fields(Scenario)])
    return replace(SCENARIOS[name], **overrides)


def simulate(
    name: str,
    n: int,
    seed: int = 0,
    *,
    images: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    **overrides: object,
) -> Simulation:
    """Simulate n pictures of a scenario (see `SCENARIOS`) and return the final ones.

    images (m, h, w) with ink >= .5 and labels (m,): shapes for "digits", drawn at random; without
    them the digits of scikit-learn. Overrides: any field of `Scenario`, for example
    simulate("cellsort-b", 8, size=60, n_cells=16) or
    simulate("cellsort-b", 128, **PAPER["cellsort"]).
    Raises ValueError for unknown names, settings and cells that do not fit.
    """
    return run(simulate_steps(name, n, seed, images=images, labels=labels, **overrides))


def simulate_steps(
    name: str,
    n: int,
    seed: int = 0,
    *,
    images: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    **overrides: object,
) -> Steps[Simulation]:
    """`simulate` as steps; data of a step: the frames so far."""
    settings = scenario(name, **overrides)
    if n < 1:
        raise ValueError(f"n = {n}; allowed is at least 1 simulation")
    rng = np.random.default_rng(seed)
    kind = kinds_of(settings.n_cells)
    angle = label = guide = None
    if settings.guide == "poles":
        angle = rng.uniform(0, np.pi, n)
        guide = np.stack([poles(settings.size, theta) for theta in angle])
    elif settings.guide == "digit":
        images, labels = digit_images() if images is None else (np.asarray(images), labels)
        chosen = rng.choice(len(images), n, replace=n > len(images))
        label = None if labels is None else np.asarray(labels)[chosen]
        guide = np.stack([digit_fields(images[i], settings.size) for i in chosen])
    chains = Ensemble(
        scatter(settings.size, kind, n, settings.radius, rng),
        kind, settings.matrix, settings.lam, settings.V_target, proposal=settings.proposal,
        kind_fields=guide, field_strength=settings.strength, seed=seed,
    )  # fmt: skip
    total = sum(mcs for _, mcs in settings.stages)
    # every attempt of a listed rule is an unlike one and costs about ten uniform ones
    attempts = ATTEMPTS_A_STEP / (1 if settings.proposal == "uniform" else 10)
    chunk = max(attempts / chains.frames.size, 1e-3)
    if settings.guide == "motion":
        chains.mu, chunk = settings.strength, min(chunk, 1.0)
    for T, mcs in settings.stages:
        chains.T = T
        end = chains.time + mcs
        while chains.time < end - 1e-9:
            if settings.guide == "motion":
                chains.center, chains.direction = motion(chains.frames, kind)
            chains.step(min(chunk, end - chains.time))
            yield Step(min(1.0, chains.time / total), f"{name}: T = {T:.2f}")
    return Simulation(chains.frames, kind, settings, angle, label)


def kinds_of(n_cells: int | Sequence[int]) -> np.ndarray:
    """(N + 1,) kinds: half of the cells of kind 1 and the rest of kind 2, or the numbers given."""
    counts = [n_cells // 2, n_cells - n_cells // 2] if np.ndim(n_cells) == 0 else list(n_cells)
    return np.repeat(np.arange(len(counts) + 1), [1, *counts])


def poles(size: int, angle: float) -> np.ndarray:
    """(3, size, size) fields that drive kind 2 to two poles and keep kind 1 between them (ours)."""
    row, column = np.indices((size, size)) - (size - 1) / 2
    along = np.abs(column * np.cos(angle) + row * np.sin(angle)) / size
    across = np.abs(row * np.cos(angle) - column * np.sin(angle)) / size

    def above(x, start):
        return size * np.maximum(0, x - start)

    middle = 0.5 * above(along, 0.1) + 0.1 * above(across, 0.2)
    ends = 0.5 * size * np.maximum(0, 0.24 - along) + 0.1 * above(across, 0.12)
    return np.stack([np.zeros_like(middle), middle, ends + 0.3 * above(along, 0.34)])


@cache
def digit_images() -> tuple[np.ndarray, np.ndarray]:
    """(1797, 12, 12) digits of scikit-learn with values 0..1, padded by 2, and their labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    # ink is a value of at least 8 of 16, here at least .5
    return np.pad(digits.images, ((0, 0), (2, 2), (2, 2))) / 16, digits.target


def digit_fields(image: np.ndarray, size: int) -> np.ndarray:
    """(3, size, size): the distance to ink (>= .5) for kind 2, nothing for the others.

    Small images are resized bilinearly first (teaching scale); from 28 pixels on, it is the
    distance map that is resized, with cubic splines and without a change of unit (official code).
    """
    scale = size / image.shape[0]
    if image.shape[0] < 28:
        image = ndimage.zoom(image, scale, order=1, mode="nearest", grid_mode=True)
        distance = ndimage.distance_transform_edt(image < 0.5)
    else:
        distance = ndimage.distance_transform_edt(image < 0.5)
        distance = ndimage.zoom(distance, scale, order=3)
    if distance.shape != (size, size):
        raise ValueError(f"images must be square, got {image.shape} for size {size}")
    return np.stack([np.zeros_like(distance), np.zeros_like(distance), distance])


def motion(frames: np.ndarray, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n, N + 1, 2) centers of the cells and directions of the paper's motion rule, along columns.

    Kind 1 outside 40-60 % of the width moves to the middle, kind 2 inside it moves outwards.
    """
    place = np.zeros((len(frames), len(kind), 2))
    place[:, 1:] = centers(frames, len(kind))
    off = place[:, 1:, 1] / frames.shape[2] - 0.5
    push = np.where(kind[1:] == 1, -np.sign(off) * (np.abs(off) > 0.1), 0.0)
    push += np.where(kind[1:] == 2, np.sign(off) * (np.abs(off) < 0.1), 0.0)
    direction = np.zeros_like(place)
    direction[:, 1:, 1] = push
    return place, direction
