"""Claims: what a paper says, what was measured here, and whether it holds.

A claim is measured over seeds; its interval is a bootstrap over them and its verdict compares the
mean with a threshold that was fixed before measuring. A claim is never edited to pass: one that
does not hold says so, and one that a preset cannot test says that.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from workbench.theme import MUTED, VERDICTS, table_html

RESAMPLES = 9_999  # of the bootstrap
HOLDS, FAILS, NOT_TESTED = "holds", "fails", "not tested"


@dataclass(frozen=True)
class Claim:
    """One claim with its measurement.

    measured, low, high: mean over `n` repetitions and its 95 % interval (None: not measured, or
    only one repetition). threshold: the rule in words; limits: its numbers, for charts.
    paper: the paper's figure, None if unknown. over: what the interval is taken over (training
    seeds, simulations ...).
    """

    id: str
    statement: str
    paper: str | None
    measured: float | None
    low: float | None
    high: float | None
    threshold: str
    verdict: str
    unit: str = ""
    n: int = 0
    over: str = "seeds"
    note: str = ""
    limits: list[float] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain values only, as stored in results files."""
        return asdict(self)


def interval(
    values: Sequence[float], confidence: float = 0.95, seed: int = 0
) -> tuple[float | None, float | None]:
    """Percentile bootstrap interval of the mean; (None, None) for fewer than two values."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return None, None
    if np.ptp(values) == 0:
        return float(values[0]), float(values[0])
    # As scipy.stats.bootstrap, whose import alone costs a second of a quick report.
    resampled = np.random.default_rng(seed).choice(values, (RESAMPLES, len(values))).mean(1)
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)


def judge(
    id: str,
    statement: str,
    values: Sequence[float] | None,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    each_at_most: float | None = None,
    each_at_least: float | None = None,
    threshold: str = "",
    paper: str | None = None,
    unit: str = "",
    over: str = "seeds",
    note: str = "",
) -> Claim:
    """Measure a claim: mean of `values`, interval over them, verdict against the threshold.

    The claim holds when the mean is within `at_most` / `at_least` and every single value within
    `each_at_most` / `each_at_least`. `values=None` means that this preset does not test it.
    `threshold` replaces the words made from the numbers. Raises ValueError without any threshold
    or when a value is not finite.
    """
    rules = [
        (at_most, "mean ≤", lambda v, limit: v.mean() <= limit),
        (at_least, "mean ≥", lambda v, limit: v.mean() >= limit),
        (each_at_most, "each ≤", lambda v, limit: v.max() <= limit),
        (each_at_least, "each ≥", lambda v, limit: v.min() >= limit),
    ]
    active = [(limit, words, test) for limit, words, test in rules if limit is not None]
    if not active:
        raise ValueError(f"claim '{id}' has no threshold")
    threshold = threshold or ", ".join(f"{words} {limit:.4g}" for limit, words, _ in active)
    fixed = {"threshold": threshold, "paper": paper, "unit": unit, "over": over, "note": note}
    fixed["limits"] = [float(limit) for limit, _, _ in active]
    if values is None:
        return Claim(id, statement, measured=None, low=None, high=None, verdict=NOT_TESTED, **fixed)
    array = np.asarray(values, float).ravel()
    if array.size == 0 or not np.isfinite(array).all():
        raise ValueError(f"claim '{id}': measured values must be finite, got {array.tolist()}")
    verdict = HOLDS if all(test(array, limit) for limit, _, test in active) else FAILS
    low, high = interval(array)
    measured = float(array.mean())
    return Claim(
        id, statement, measured=measured, low=low, high=high, verdict=verdict, n=array.size, **fixed
    )


class Claims(list[Claim]):
    """A list of claims that shows itself as a table in a notebook and as text in a terminal."""

    def held(self) -> str:
        """For example `5 of 7 hold (2 not tested)`; the seven are those tested."""
        tested = [c for c in self if c.verdict != NOT_TESTED]
        rest = len(self) - len(tested)
        text = f"{sum(c.verdict == HOLDS for c in tested)} of {len(tested)} hold"
        return text + (f" ({rest} not tested)" if rest else "")

    def _repr_html_(self) -> str:
        rows = [
            [
                html.escape(c.statement) + _small(c.note),
                html.escape(c.paper or "unknown"),
                f"<b>{format_measured(c)}</b>" + _small(_count(c)),
                html.escape(c.threshold),
                badge(c.verdict),
            ]
            for c in self
        ]
        header = ["claim", "paper's figure", "measured here [95 %]", "threshold", "verdict"]
        return table_html(header, rows)

    def __repr__(self) -> str:
        rows = [(VERDICTS[c.verdict][1], c.verdict, c.id, format_measured(c), c) for c in self]
        return "\n".join(f"{r[0]} {r[1]:10}  {r[2]:24} {r[3]}  ({r[4].threshold})" for r in rows)


def _count(claim: Claim) -> str:
    """`3 seeds`, `1 seed`, or nothing for what was not measured."""
    one = claim.over.removesuffix("s") if claim.n == 1 else claim.over
    return f"{claim.n} {one}" if claim.n else ""


def _small(text: str) -> str:
    return f'<br><small style="color:{MUTED}">{html.escape(text)}</small>' if text else ""


def badge(verdict: str) -> str:
    """The verdict as colored HTML with a sign, so that it can be read without color."""
    color, sign = VERDICTS[verdict]
    return f'<span style="color:{color};font-weight:600;white-space:nowrap">{sign} {verdict}</span>'


def format_measured(claim: Claim) -> str:
    """`7.4 [6.1, 8.9] unit`, or a dash when not measured."""
    if claim.measured is None:
        return "–"
    text = f"{claim.measured:.4g}"
    if claim.low is not None and claim.high is not None:
        text += f" [{claim.low:.3g}, {claim.high:.3g}]"
    return f"{text} {claim.unit}".strip()
