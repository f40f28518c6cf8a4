"""Real data with labels for all items, to be split at random: human ratings and predictions.

Embedded: mean human sentiment of sentences in product reviews and newspaper editorials, with the
score of the rule-based model VADER as the prediction (see data/README.md for origin and license).
A problem is one review or editorial.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from workbench.numerics.checks import choice

from .problems import Problems, summarize

FOLDER = Path(__file__).parent / "data"
SMALLEST = {"amazon": 10, "nyt": 8}  # items of a group that is a problem
SMALLEST_GROUP = 3  # labelled items that a group of another table needs to be split
SCALE = 4.0  # human ratings are from -4 to 4, VADER's from -1 to 1
NOISE_SD = 1.5
PREDICTORS = ("tuned", "base", "noise", "adversarial", "mix", "good", "bad")


@dataclass(frozen=True)
class Ratings:
    """Items in the order of their problems: code (items,) from 0 to m - 1, label y, prediction f.

    names (m,): of the problems. left_out: groups too small to be split.
    """

    name: str
    names: np.ndarray
    code: np.ndarray
    y: np.ndarray
    f: np.ndarray
    left_out: int = 0

    @property
    def sizes(self) -> np.ndarray:
        """Items of each problem, (m,)."""
        return np.bincount(self.code, minlength=len(self.names))

    def split(
        self, frac: float, rng: np.random.Generator, at_least: int = 2
    ) -> tuple[Problems, np.ndarray]:
        """Label a random part of each problem: problems, and the truth (m,).

        Of n items max(at_least, floor(frac n)) are labelled. The truth is the mean label of the
        others, as in the official program. Raises ValueError where that leaves fewer than 2 with
        or none without a label.
        """
        sizes = self.sizes
        labelled = np.maximum(at_least, np.floor(frac * sizes + 1e-9).astype(int))
        for bad, what in ((labelled < 2, "fewer than 2 labelled items"),
                          (labelled >= sizes, "no unlabelled item")):  # fmt: skip
            if bad.any():
                j = int(np.argmax(bad))
                raise ValueError(
                    f"frac = {frac:g} leaves problem '{self.names[j]}' of {sizes[j]} items "
                    f"{what}: take another frac, or larger problems"
                )
        order = np.lexsort((rng.random(len(self.code)), self.code))
        rank = np.arange(len(self.code)) - (sizes.cumsum() - sizes)[self.code]
        first = rank < labelled[self.code]
        one, rest = order[first], order[~first]
        code_l, code_u = self.code[one], self.code[rest]
        problems = summarize(self.names, code_l, self.y[one], self.f[one], code_u, self.f[rest])
        truth = np.bincount(code_u, self.y[rest], len(sizes)) / problems.N
        return problems, truth


def of_arrays(
    name: str, group: np.ndarray, y: np.ndarray, f: np.ndarray, smallest: int = SMALLEST_GROUP
) -> Ratings:
    """Ratings from arrays of items; groups of fewer than `smallest` items are left out.

    Raises ValueError when no group is left.
    """
    names, code, sizes = np.unique(group, return_inverse=True, return_counts=True)
    kept = sizes >= smallest
    if not kept.any():
        raise ValueError(f"{name}: no group has {smallest} labelled items, which a split needs")
    items = np.flatnonzero(kept[code])
    items = items[np.argsort(code[items], kind="stable")]
    new = (kept.cumsum() - 1)[code[items]]
    return Ratings(
        name, names[kept], new, np.asarray(y, float)[items], np.asarray(f, float)[items],
        int((~kept).sum()),
    )  # fmt: skip


@lru_cache
def table(source: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """group, human rating and VADER score of all items of "amazon" or "nyt"."""
    choice("source", source, SMALLEST)
    read = np.loadtxt(FOLDER / f"vader_{source}.csv", delimiter=",", skiprows=1)
    return read[:, 0].astype(int), read[:, 2], read[:, 3]


def tuning_line(source: str) -> tuple[float, float, int]:
    """Slope and intercept of the least-squares line of human on VADER scores, and its items.

    Fitted on groups too small to be problems, so that no problem has been seen.
    """
    group, human, vader = table(source)
    outside = np.bincount(group)[group] < SMALLEST[source]
    slope, intercept = np.polyfit(vader[outside], human[outside], 1)
    return float(slope), float(intercept), int(outside.sum())


@lru_cache(maxsize=32)
def embedded(
    source: str, predictor: str = "tuned", q: float = 1.0, shift: float = 0.0, seed: int = 0
) -> Ratings:
    """The problems of "amazon" (147) or "nyt" (451) with a predictor; see `predicted`."""
    group, human, vader = table(source)
    slope, intercept, _ = tuning_line(source)
    base = of_arrays(source, group, human, vader, SMALLEST[source])
    tuned = intercept + slope * base.f
    return predicted(replace(base, f=SCALE * base.f), tuned, predictor, q, shift, seed)


def predicted(
    ratings: Ratings,
    tuned: np.ndarray,
    predictor: str,
    q: float = 1.0,
    shift: float = 0.0,
    seed: int = 0,
) -> Ratings:
    """Ratings with a predictor: "base" as they are; "tuned"; "noise", N(0, 1.5^2); "adversarial",
    minus base; "mix", q tuned + (1 - q) noise. "good" and "bad" mean tuned and base.
    """
    choice("predictor", predictor, PREDICTORS)
    noise = NOISE_SD * np.random.default_rng([seed, 1]).standard_normal(len(ratings.f))
    f = {
        "tuned": tuned, "good": tuned, "base": ratings.f, "bad": ratings.f, "noise": noise,
        "adversarial": -ratings.f, "mix": q * tuned + (1 - q) * noise,
    }[predictor]  # fmt: skip
    return replace(ratings, f=f + shift)
