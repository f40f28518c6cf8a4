"""Grids: the points of a sweep, every one checked before anything runs.

A grid gives some parameters several values each; its points are all combinations, once per seed.
Knows the declarations of `Parameters` and nothing of how points are run.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import catalog
from workbench.parameters import ParameterError, Parameters

MOST_POINTS = 10_000
FORM = "NAME=V1,V2,... or NAME=low:high:count[:log]"


@dataclass(frozen=True)
class Point:
    """One run of a sweep: the name of its folder, and its parameters."""

    name: str
    parameters: Parameters


class Points(list[Point]):
    """The points of a sweep, and what they were made from.

    grid: values of the swept parameters by name, in the order given. seeds: runs per combination.
    changes: parameters that differ from the preset in all points.
    """

    def __init__(
        self,
        points: Sequence[Point],
        slug: str,
        preset: str,
        grid: dict[str, list],
        seeds: int,
        changes: dict[str, Any],
    ):
        super().__init__(points)
        self.slug, self.preset, self.grid = slug, preset, grid
        self.seeds, self.changes = seeds, changes

    def words(self) -> str:
        """For example `temperature = 0.5, 1.0, 2.0; seeds 0 to 2; preset quick`."""
        parts = [f"{name} = {', '.join(map(str, self.grid[name]))}" for name in self.grid]
        first, last = self[0].parameters.seed, self[-1].parameters.seed
        parts.append(f"seeds {first} to {last}" if self.seeds > 1 else f"seed {first}")
        parts.append(f"preset {self.preset}")
        parts += [f"{name} = {value}" for name, value in self.changes.items() if name != "seed"]
        return "; ".join(parts)


def parse(declared: type[Parameters], texts: Sequence[str]) -> dict[str, list]:
    """The grid that words like `temperature=0.5,1,2` or `lam=0.1:10:3:log` mean.

    `K_list=[5],[5,10]` gives lists; ranges of integers are rounded and each value is taken once.
    Raises ValueError in one line for a wrong form, name or value, and for a value given twice.
    """
    types = {row["name"]: row["type"] for row in declared.describe()}
    grid: dict[str, list] = {}
    for text in texts:
        name, equals, words = text.partition("=")
        name = name.strip()
        if not equals or not name or not words.strip():
            raise ValueError(f"-g {text} is not allowed: give {FORM}")
        if name in grid:
            raise ValueError(f"{name} is swept twice: put all its values into one -g")
        grid[name] = []
        for item in _split(words):
            if ":" in item and types.get(name) in ("float", "int"):
                found: Sequence[Any] = _range(f"{name}={item}", item, types[name] == "int")
            else:
                found = [item]
            grid[name] += [declared.parse(name, value) for value in found]
    return grid


def points(
    slug: str,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int = 1,
    preset: str = "default",
    **changes: Any,
) -> Points:
    """All points of a sweep: every combination of the values in `grid`, with `seeds` seeds each.

    `points("neural_cpm", {"temperature": [0.5, 1, 2]}, seeds=3, preset="quick", lam=0.7)` has nine.
    Seeds count up from that of the preset or of `changes`. Raises ValueError, in one line, for
    whatever is unknown, not allowed, given twice, or no sweep at all.
    """
    declared = catalog.load(slug).Parameters
    slug, first = declared.slug, declared.preset(preset, **changes).seed
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise ValueError(f"seeds = {seeds} is not allowed: an integer of at least 1")
    found = {name: _checked(declared, name, values) for name, values in (grid or {}).items()}
    if "seed" in found:
        raise ValueError("seed is not swept by a grid: take --seeds N, and -p seed S for the first")
    for name in found:
        if name in changes:
            raise ValueError(f"{name} is both swept and set to {changes[name]}: drop one of them")
    count = seeds * math.prod(len(values) for values in found.values())
    if count == 1:
        raise ValueError(f"one point is a report, not a sweep: give -g {FORM}, or --seeds N")
    if count > MOST_POINTS:
        raise ValueError(f"{count} points are too many for one sweep: at most {MOST_POINTS}")
    made = []
    for values in itertools.product(*found.values()):
        chosen = dict(zip(found, values, strict=True))
        for seed in range(first, first + seeds):
            where = ", ".join(f"{k} = {v}" for k, v in {**chosen, "seed": seed}.items())
            try:
                parameters = declared.preset(preset, **{**changes, **chosen, "seed": seed})
            except ParameterError as error:
                raise ParameterError(f"{error} (at {where})") from None
            made.append(Point(_folder(len(made), count, {**chosen, "seed": seed}), parameters))
    return Points(made, slug, preset, found, seeds, dict(changes))


def _checked(declared: type[Parameters], name: str, values: Any) -> list[Any]:
    """Values as the declaration of `name` wants them, none twice."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise ValueError(f"{name} = {values!r} is not allowed in a grid: a list of values")
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    checked = [declared.parse(name, value) for value in plain]
    if not checked:
        raise ValueError(f"no value is given for {name}")
    for k, value in enumerate(checked):
        if value in checked[:k]:
            raise ValueError(f"{name} = {value} is given twice")
    return checked


def _split(words: str) -> Iterator[str]:
    """The items between commas that are not inside brackets."""
    depth, item = 0, ""
    for letter in f"{words},":
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth <= 0:
            if not item.strip():
                raise ValueError(f"a value is missing in '{words}': give {FORM}")
            yield item.strip()
            item = ""
        else:
            item += letter
    if item.strip(","):
        raise ValueError(f"a bracket is not closed in '{words}'")


def _range(text: str, item: str, whole: bool) -> list[float] | list[int]:
    """`low:high:count[:log]` as equally spaced values, rounded and unique when `whole`."""
    words = item.split(":")
    try:
        low, high, count = float(words[0]), float(words[1]), int(words[2])
    except (ValueError, IndexError):
        raise ValueError(f"{text} is not allowed: a range is low:high:count[:log]") from None
    if words[3:] not in ([], ["log"]):
        raise ValueError(f"{text} is not allowed: after low:high:count only ':log' may follow")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{text} is not allowed: low must be below high")
    if not 2 <= count <= MOST_POINTS:
        raise ValueError(f"{text} is not allowed: a count from 2 to {MOST_POINTS}")
    if words[3:] and low <= 0:
        raise ValueError(f"{text} is not allowed: with ':log' low must be above 0")
    spaced = (np.geomspace if words[3:] else np.linspace)(low, high, count)
    if whole:
        return list(dict.fromkeys(round(value) for value in spaced))
    return [float(f"{value:.12g}") for value in spaced]  # 0.3, not 0.30000000000000004


def _folder(number: int, count: int, values: Mapping[str, Any]) -> str:
    """A name that sorts, that is unique, and that every file system and address takes."""
    texts = {k: str(v).strip("[]").replace(", ", "-") for k, v in values.items()}
    safe = re.sub(r"[^\w.=,+-]+", "-", ",".join(f"{k}={v}" for k, v in texts.items()), flags=re.A)
    return f"{number:0{len(str(count - 1))}d}_{safe[:80]}"
