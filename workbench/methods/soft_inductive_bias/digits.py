"""Data that is always at hand: scikit-learn's 8 x 8 digits, random labels, and symmetric tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from workbench.numerics.checks import choice

from . import _checks

CLASSES = 10
CHANCE = 1 - 1 / CLASSES  # error of guessing: a bound that is not below it is vacuous
TASKS = ("rotated", "upright", "orient")
GROUPS = ("C4", "C2", "flip", "D4", "none")
TRAIN_STREAM, TEST_STREAM = 2, 12  # of random numbers, for labels


@cache
def load() -> tuple[np.ndarray, np.ndarray]:
    """All 1,797 images (n, 64) in [0, 1] and labels (n,), read-only."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images, labels = data.data / 16, data.target.astype(np.int64)
    images.flags.writeable = labels.flags.writeable = False
    return images, labels


@dataclass(frozen=True)
class Split:
    """Training and test images, flat, with labels.

    train_y and noisy_test_y are corrupted alike, clean_y and test_y are not.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    clean_y: np.ndarray
    noisy_test_y: np.ndarray


def split(
    n_train: int, seed: int, corrupt: float = 0.0, n_test: int | None = None,
    data: tuple[np.ndarray, np.ndarray] | None = None,
) -> Split:  # fmt: skip
    """A random split; each training label is replaced by a uniform class with that probability.

    What is corrupted at one probability is corrupted at every larger one, with the same label.
    data: other flat images in [0, 1] and their labels, ten classes; None for the digits.
    """
    images, labels = load() if data is None else data
    n_train = _checks.count("n_train", n_train, 1, len(images) - 1)
    order = np.random.default_rng([seed, 1]).permutation(len(images))
    train = order[:n_train]
    test = order[n_train : None if n_test is None else n_train + n_test]
    clean = labels[train]
    return Split(
        images[train], corrupted(clean, corrupt, seed), images[test], labels[test], clean,
        corrupted(labels[test], corrupt, seed, TEST_STREAM),
    )  # fmt: skip


def corrupted(
    labels: np.ndarray, corrupt: float, seed: int, stream: int = TRAIN_STREAM
) -> np.ndarray:
    """Labels replaced by uniform random classes with probability `corrupt` in [0, 1].

    stream: of random numbers; what is independent has one of its own.
    """
    corrupt = _checks.number("rho", corrupt, 0, 1, why="share of labels replaced")
    rng = np.random.default_rng([seed, stream])
    u, random = rng.random(len(labels)), rng.integers(0, CLASSES, len(labels))
    return np.where(u < corrupt, random, labels)


def centered_one_hot(labels: np.ndarray) -> np.ndarray:
    """0.9 for the class and -0.1 for others, (n, 10)."""
    return np.eye(CLASSES)[labels] - 1 / CLASSES


def permutations(group: str = "C4", side: int = 8) -> np.ndarray:
    """The group as permutations of the pixels of a side x side image, (|G|, side^2)."""
    grid = np.arange(side * side).reshape(side, side)
    turns = {"C4": (0, 1, 2, 3), "C2": (0, 2), "none": (0,), "flip": (0,), "D4": (0, 1, 2, 3)}
    images = [np.rot90(grid, k) for k in turns[choice("group", group, GROUPS)]]
    if group in ("flip", "D4"):
        images += [np.fliplr(image) for image in images]
    return np.stack([image.ravel() for image in images])


def rotations(angles: list[float], side: int = 8) -> np.ndarray:
    """Rotations by these angles in degrees, as permutations of pixels.

    Raises ValueError for an angle that does not map the grid to itself, and when the rotations
    are no group.
    """
    for angle in angles:
        if angle % 90:
            raise ValueError(
                f"a rotation by {angle:g} degrees does not map the grid of {side} x {side} pixels "
                f"to itself; allowed are multiples of 90, the nearest is {90 * round(angle / 90):g}"
            )
    grid = np.arange(side * side).reshape(side, side)
    return as_group(
        np.stack([np.rot90(grid, round(angle / 90)).ravel() for angle in angles]), side * side
    )


def as_group(maps: np.ndarray, pixels: int) -> np.ndarray:
    """Check that maps (g, pixels) permute the pixels and are closed; ValueError if not."""
    maps = np.asarray(maps)
    if maps.ndim != 2 or maps.shape[1] != pixels or maps.dtype.kind not in "iu":
        raise ValueError(f"a group is an integer array (g, {pixels}), not {maps.shape}")
    if not (np.sort(maps, axis=1) == np.arange(pixels)).all():
        raise ValueError("a map of the group does not map the image grid to itself: pixels repeat")
    known = {m.tobytes() for m in maps}
    if any(a[b].tobytes() not in known for a in maps for b in maps):
        raise ValueError("the maps are no group: two of them in a row give another map")
    return maps


def task(name: str, n_train: int, seed: int, n_test: int = 600) -> Split:
    """A task with a symmetry: exact ("rotated"), approximate ("upright") or broken ("orient").

    rotated: every image is turned by a random multiple of 90 degrees. orient: turned likewise, and
    images turned by 180 or 270 degrees have their label shifted by five classes.
    """
    choice("task", name, TASKS)
    s = split(n_train, seed, n_test=n_test)
    if name == "upright":
        return s
    maps = permutations("C4")
    rng = np.random.default_rng([seed, 3])
    turned = []
    for x, y in ((s.train_x, s.train_y), (s.test_x, s.test_y)):
        k = rng.integers(0, 4, len(x))
        moved = np.take_along_axis(x, maps[k], axis=1)
        turned += [moved, (y + 5 * (k >= 2)) % CLASSES if name == "orient" else y]
    return Split(*turned, clean_y=turned[1], noisy_test_y=turned[3])
