"""Trials: one draw or split, all estimators on it, their squared errors; thousands of them.

Trial t uses `default_rng(seed + t)` and nothing else that is random, so trials may run anywhere, in
chunks of 25 on dask for example, with results that are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workbench.steps import Step, Steps

from .estimators import NAMES, Estimate, Options, estimate
from .moments import Moments
from .problems import Problems
from .ratings import SMALLEST_GROUP, Ratings, embedded, predicted
from .synthetic import Model

OURS = Options()
CHUNK = 25  # trials that a worker gets at once
AT_ONCE = 2  # trials between two steps


@dataclass(frozen=True)
class Row:
    """One line of a table: an estimator with a regime of moments ("auto": that of the setting)."""

    key: str
    estimator: str
    regime: str = "auto"
    title: str = ""
    options: Options = OURS


PLAIN = tuple(Row(name, name, title=title) for name, title in NAMES.items())
OFFICIAL = Row("pas_official", "pas", "pooled_total", "PAS, official moments")
NOISY = Row("pas_per_problem", "pas", "per_problem", "PAS, moments of each problem")
WITHIN = Row("shrink_average_within", "shrink_average", "pooled_within",
             "shrink average, pooled within")  # fmt: skip
# As in the table that thresholds were measured with, and shrink average with the moments of PAS,
# with which it is better.
REAL = (
    *(Row(r.key, r.estimator, "pooled_total" if r.key == "shrink_average" else "auto", r.title)
      for r in PLAIN),
    WITHIN,
    OFFICIAL,
    NOISY,
)  # fmt: skip
# Where the official program differs, one switch at a time.
SWITCHED = (
    Row("pas_official_search", "pas", title="PAS, official search",
        options=Options(official_search=True)),
    Row("unipas_official", "unipas", title="UniPAS, official covariance",
        options=Options(official_covariance=True)),
    Row("shrink_average_official", "shrink_average", "pooled_total",
        "shrink average, official target", Options(official_target=True)),
)  # fmt: skip
ROWS = {row.key: row for row in (*PLAIN, WITHIN, OFFICIAL, NOISY, *SWITCHED)}
TITLES = {key: row.title for key, row in ROWS.items()}
LIKE_OFFICIAL = Options(official_search=True, official_target=True, official_covariance=True)


@dataclass(frozen=True)
class Setting:
    """Where trials come from: names and values as in `study.Parameters`."""

    data: str = "nyt"
    predictor: str = "tuned"
    q: float = 1.0
    shift: float = 0.0
    m: int = 200
    n: int = 20
    N: int = 80
    psi: float = 0.1
    c: float = 0.05
    frac: float = 0.4
    moments: str = "auto"
    official: bool = False
    seed: int = 42
    file: str = ""

    @property
    def regime(self) -> str:
        """The moments that "auto" means here."""
        if self.moments != "auto":
            return self.moments
        return "known" if self.data == "synthetic" else "pooled_within"

    @property
    def rows(self) -> tuple[Row, ...]:
        """What is compared: on real data with automatic moments, some with other moments too."""
        return REAL if self.data != "synthetic" and self.moments == "auto" else PLAIN

    def ratings(self) -> Ratings:
        """The labelled items that are split, for data that are not synthetic."""
        if self.data == "frame":
            path = Path(self.file)
            changed = path.stat().st_mtime if path.exists() else 0.0
            return _from_file(self.file, changed, self.predictor, self.q, self.shift, self.seed)
        return embedded(self.data, self.predictor, self.q, self.shift, self.seed)

    def draw(self, trial: int) -> Split:
        """The problems of one trial."""
        rng = np.random.default_rng(self.seed + trial)
        if self.data == "synthetic":
            shape = {"m": self.m, "n": self.n, "N": self.N, "psi": self.psi, "c": self.c}
            model = Model(**shape, predictor=self.predictor, q=self.q, shift=self.shift)
            return Split(self, *model.draw(rng))
        return Split(self, *self.ratings().split(self.frac, rng))

    def titled(self) -> str:
        """A few words for a caption."""
        predictor = f"mix, q = {self.q:g}" if self.predictor == "mix" else self.predictor
        shift = f", {self.shift:+g}" if self.shift else ""
        where = {"amazon": "Amazon", "nyt": "NYT", "frame": "your file"}.get(self.data, self.data)
        share = "" if self.data == "synthetic" else f", {self.frac:.0%} labelled"
        return f"{where}, {predictor}{shift}{share}"


@dataclass(frozen=True)
class Split:
    """One trial: the problems, the truth (m,), and moments if they are known."""

    setting: Setting
    problems: Problems
    truth: np.ndarray
    known: Moments | None = None

    def moments(self, regime: str = "auto") -> str | Moments:
        """What `estimate` takes for a regime."""
        regime = self.setting.regime if regime == "auto" else regime
        if regime != "known":
            return regime
        if self.known is None:
            raise ValueError("moments = 'known' needs synthetic data: real ones have none known")
        return self.known

    def estimates(self, rows: Sequence[Row] | None = None) -> dict[str, Estimate]:
        """`Estimate` of each row by its key."""
        rows = self.setting.rows if rows is None else rows
        if len(self.problems) < 2:
            rows = [r for r in rows if r.estimator not in ("shrink_average", "eb_ppi")]
        found: dict[str, Estimate] = {}
        for regime, options in dict.fromkeys((row.regime, row.options) for row in rows):
            same = [row for row in rows if (row.regime, row.options) == (regime, options)]
            used = LIKE_OFFICIAL if self.setting.official else options
            names = sorted({row.estimator for row in same})
            made = estimate(self.problems, self.moments(regime), names, used, warn=False)
            found |= {row.key: made[row.estimator] for row in same}
        return {row.key: found[row.key] for row in rows}


@lru_cache(maxsize=8)
def _from_file(
    path: str, changed: float, predictor: str, q: float, shift: float, seed: int
) -> Ratings:
    """`changed`, when the file was, only tells the cache that it is another one."""
    from .loaders import read

    ratings = read(path)
    return predicted(ratings, ratings.f, predictor, q, shift, seed)


@dataclass(frozen=True)
class Outcome:
    """Trials so far: mse[row] (k,); weight, omega (k,) of PAS; floored[row]: variances raised.

    left_out: groups of a file that are too small to be problems.
    """

    setting: Setting
    mse: dict[str, np.ndarray] = field(default_factory=dict)
    weight: np.ndarray = field(default_factory=lambda: np.zeros(0))
    omega: np.ndarray = field(default_factory=lambda: np.zeros(0))
    floored: dict[str, np.ndarray] = field(default_factory=dict)
    problems: int = 0
    left_out: int = 0

    @property
    def trials(self) -> int:
        """How many trials are in it."""
        return len(self.weight)

    def counted(self) -> str:
        """The number of problems, and of groups that are none, for captions."""
        groups = f"{self.left_out} group{'s' if self.left_out > 1 else ''}"
        small = f", {groups} of fewer than {SMALLEST_GROUP} labels left out"
        return f"{self.problems} problems" + (small if self.left_out else "")

    def mean(self, key: str) -> float:
        """Mean of the squared error of a row over trials."""
        return float(self.mse[key].mean())

    def error(self, key: str) -> float:
        """Standard error of that mean; nan of a single trial."""
        values = self.mse[key]
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan

    def regime(self, key: str) -> str:
        """Moments that a row used, for tables."""
        if key in ("classical", "prediction", "ppi"):
            return "none"
        if ROWS[key].estimator in ("unipt", "unipas"):
            return "per_problem"
        row = next((r for r in self.setting.rows if r.key == key), ROWS[key])
        return self.setting.regime if row.regime == "auto" else row.regime


def run_chunk(setting: Setting, rows: Sequence[Row], trials: Sequence[int]) -> Outcome:
    """The outcome of some trials; a pure function, so that it may run on any worker."""
    found: list[dict[str, Any]] = []
    splits = 0
    for trial in trials:
        split = setting.draw(trial)
        splits = len(split.problems)
        found.append({"split": split, **split.estimates(rows)})
    keys = [key for key in found[0] if key != "split"] if found else []
    mse = {
        key: np.array([np.mean((f[key].theta - f["split"].truth) ** 2) for f in found])
        for key in keys
    }
    floored = {
        key: np.array([f[key].floored for f in found], float)
        for key in keys
        if found[0][key].variance is not None
    }
    main = "pas" if "pas" in keys else next((k for k in keys if k.startswith("pas")), None)
    weight = np.array([f[main].weight.mean() for f in found]) if main else np.zeros(len(found))
    omega = np.array([f[main].omega for f in found]) if main else np.zeros(len(found))
    left_out = setting.ratings().left_out if setting.data == "frame" else 0
    return Outcome(setting, mse, weight, omega, floored, splits, left_out)


def joined(parts: Sequence[Outcome]) -> Outcome:
    """Outcomes of the same setting, one after the other."""
    first = parts[0]
    return Outcome(
        first.setting,
        {key: np.concatenate([part.mse[key] for part in parts]) for key in first.mse},
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.omega for part in parts]),
        {key: np.concatenate([part.floored[key] for part in parts]) for key in first.floored},
        first.problems,
        first.left_out,
    )


def trial_steps(
    setting: Setting, trials: int, rows: Sequence[Row] | None = None, client: Any = None
) -> Steps[Outcome]:
    """Trials 0 to trials - 1; data of a step: the `Outcome` so far.

    client: of dask.distributed, whose workers take chunks of 25 trials; None runs them here.
    """
    rows = setting.rows if rows is None else rows
    parts: list[Outcome] = []
    made = _on_workers(setting, rows, trials, client) if client else _here(setting, rows, trials)
    for part in made:
        parts.append(part)
        so_far = joined(parts)
        # Few parts, so that joining them does not grow with the number of trials.
        parts = [so_far] if len(parts) > 8 else parts
        yield Step(so_far.trials / trials, f"trial {so_far.trials} of {trials}", so_far)
    return joined(parts)


def _here(setting: Setting, rows: Sequence[Row], trials: int) -> Iterator[Outcome]:
    for first in range(0, trials, AT_ONCE):
        yield run_chunk(setting, rows, range(first, min(first + AT_ONCE, trials)))


def _on_workers(
    setting: Setting, rows: Sequence[Row], trials: int, client: Any
) -> Iterator[Outcome]:
    chunks = [range(k, min(k + CHUNK, trials)) for k in range(0, trials, CHUNK)]
    futures = [client.submit(run_chunk, setting, rows, chunk, pure=False) for chunk in chunks]
    try:
        for future in futures:  # in order, so that the outcome does not depend on who is faster
            yield future.result()
    finally:
        client.cancel(futures)


def setting_of(parameters: Any, **changes: Any) -> Setting:
    """The setting that the parameters of a study describe, with changes."""
    return Setting(**{**{name: getattr(parameters, name) for name in asdict(Setting())}, **changes})
