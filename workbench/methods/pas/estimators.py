"""All estimators of the comparison, each a few lines on the sums of the problems.

`estimate(problems)` computes every one in one go. Which moments an estimator used is recorded with
it: UniPT and UniPAS always take unbiased moments of each problem, the others what was asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from workbench.numerics.checks import choice
from workbench.theme import Html, table_html

from . import moments as second
from .moments import FLOOR, Moments, moments_of
from .problems import Problems
from .shrinkage import CUTOFF, GRID, RiskCurve, bounded_minimum, weights

NAMES = {
    "classical": "classical",
    "prediction": "prediction mean",
    "ppi": "PPI",
    "pt": "PT",
    "unipt": "UniPT",
    "shrink_classical": "shrink classical",
    "shrink_average": "shrink average",
    "pas": "PAS",
    "unipas": "UniPAS",
    "eb_ppi": "EB-PPI",
}
FEW_LABELS = 10  # below this the variance of a problem's own labels is too noisy to plug in
PLUG_IN = ("pt", "shrink_classical", "shrink_average", "pas")
NEED_TWO = ("shrink_average", "eb_ppi")  # problems
NEED_OWN = ("unipt", "unipas")  # moments estimated from two labels in one problem at least


@dataclass(frozen=True)
class Options:
    """Switches. omega: of PAS, if it is not to be chosen by CURE; blind: CURE without covariances.

    official_search, cutoff: see `RiskCurve.minimize`. official_target: tune with the grand mean,
    then pull to the prediction mean. official_covariance: gamma / (n N) in UniPAS in place of
    lambda tau2 / N. eb_lambda: of EB-PPI.
    """

    omega: float | None = None
    blind: bool = False
    official_search: bool = False
    cutoff: float = CUTOFF
    official_target: bool = False
    official_covariance: bool = False
    eb_lambda: float = 1.0

    def __post_init__(self) -> None:
        if self.omega is not None and not (isinstance(self.omega, Real) and self.omega >= 0):
            raise ValueError(f"omega = {self.omega!r}: it must be from 0 to infinity")
        if not (isinstance(self.eb_lambda, Real) and np.isfinite(self.eb_lambda)):
            raise ValueError(f"eb_lambda = {self.eb_lambda!r}: it must be a finite number")


@dataclass(frozen=True)
class Estimate:
    """theta (m,) of one estimator, and how it came about.

    regime: of the second moments, empty if none are used. lam: power tuning (m,). start, target,
    weight (m,): theta = weight start + (1 - weight) target. variance: of start, 1e-12 where it came
    out as 0 or less (not in UniPAS, which uses their mean alone); floored: in how many problems.
    curve: the risk estimate that chose omega.
    """

    name: str
    theta: np.ndarray
    regime: str = ""
    lam: np.ndarray | None = None
    start: np.ndarray | None = None
    target: np.ndarray | None = None
    weight: np.ndarray | None = None
    omega: float | None = None
    variance: np.ndarray | None = None
    covariance: np.ndarray | None = None
    floored: int = 0
    curve: RiskCurve | None = None


@dataclass(frozen=True)
class Estimates:
    """Estimates by name, of the same problems."""

    problems: Problems
    found: dict[str, Estimate]

    def __getitem__(self, name: str) -> Estimate:
        choice("estimator", name, self.found)
        return self.found[name]

    def mse(self, truth: np.ndarray) -> dict[str, float]:
        """The compound mean squared error of each against the truth (m,)."""
        truth = np.asarray(truth, float)
        if truth.shape != (len(self.problems),):
            raise ValueError(
                f"truth has shape {truth.shape}: it must be ({len(self.problems)},), one entry a "
                "problem"
            )
        return {name: float(np.mean((e.theta - truth) ** 2)) for name, e in self.found.items()}

    def cautions(self) -> list[str]:
        """What should make one doubt these estimates, a line each; often nothing."""
        found = []
        plugged = [e for e in self.found.values() if e.name in PLUG_IN]
        labels = float(np.median(self.problems.n))
        if labels < FEW_LABELS and any(e.regime == "per_problem" for e in plugged):
            found.append(
                f"moments of each problem from {labels:g} labels (median) are too noisy to plug "
                "in: take moments = 'pooled_within', or UniPAS, which only uses their sums"
            )
        floored = max((e.floored for e in plugged), default=0)
        if floored:
            found.append(
                f"{floored} of {len(self.problems)} variances were not positive and were raised "
                f"to {FLOOR:g}: these problems are not shrunk"
            )
        return found

    def _repr_html_(self) -> Html:
        rows = [
            [NAMES[e.name], e.regime or "–", "–" if e.omega is None else f"{e.omega:.4g}",
             "–" if e.weight is None else f"{e.weight.mean():.3f}",
             str(e.floored) if e.variance is not None else "–",
             ", ".join(f"{v:.4g}" for v in e.theta[:4]) + (", …" if len(e.theta) > 4 else "")]
            for e in self.found.values()
        ]  # fmt: skip
        header = ["estimator", "moments", "omega", "mean weight", "variances floored", "estimates"]
        caption = ". ".join([f"{len(self.problems)} problems", *self.cautions()])
        return table_html(header, rows, caption)


def estimate(
    problems: Problems,
    moments: str | Moments = "pooled_within",
    names: Sequence[str] | str | None = None,
    options: Options | None = None,
    warn: bool = True,
) -> Estimates:
    """Estimate the mean label of every problem with the named estimators (None: all that can be).

    moments: a regime, or `Moments.known(...)`. warn: tell `cautions()` as warnings.
    Raises ValueError, in one line, for unknown names, moments that cannot be had, and fewer than 2
    problems where an estimator needs them.
    """
    options = options or Options()
    names = [names] if isinstance(names, str) else names
    for name in names or ():
        choice("estimator", name, NAMES)
    if not isinstance(problems, Problems):
        raise ValueError(
            f"problems is of type {type(problems).__name__}: make it with Problems.of or from_frame"
        )
    if names is None:
        left_out = NEED_TWO if len(problems) < 2 else ()
        if isinstance(moments, Moments) and problems.n.max() < 2:  # known: PAS needs no others
            left_out = (*left_out, *NEED_OWN)
        names = [n for n in NAMES if n not in left_out]
    for name in names:
        if name in NEED_TWO and len(problems) < 2:
            raise ValueError(
                f"{NAMES[name]} learns from the other problems: it needs 2 or more, got "
                f"{len(problems)}"
            )
    used = moments_of(problems, moments)
    found = Estimates(problems, {name: _MAKERS[name](problems, used, options) for name in names})
    for line in found.cautions() if warn else ():
        warnings.warn(line, stacklevel=2)
    return found


def _classical(p: Problems, moments: Moments, options: Options) -> Estimate:
    return Estimate("classical", p.y_bar)


def _prediction(p: Problems, moments: Moments, options: Options) -> Estimate:
    return Estimate("prediction", p.z_tilde)


def _ppi(p: Problems, moments: Moments, options: Options) -> Estimate:
    return Estimate("ppi", p.y_bar + (p.z_tilde - p.z_bar))


def _tuned(p: Problems, lam: np.ndarray) -> np.ndarray:
    return p.y_bar + lam * (p.z_tilde - p.z_bar)


def _floored(variance: np.ndarray) -> tuple[np.ndarray, int]:
    low = variance <= 0
    return np.where(low, FLOOR, variance), int(low.sum())


def _pt(p: Problems, moments: Moments, options: Options) -> Estimate:
    lam = second.power(p, moments)
    variance, floored = _floored(second.variance(p, moments, lam))
    theta = _tuned(p, lam)
    return Estimate("pt", theta, moments.regime, lam, variance=variance, floored=floored)


def _unbiased(p: Problems) -> Moments:
    """Moments of each problem; where one has a single label, pooled ones."""
    return second.per_problem(p) if p.n.min() > 1 else second.pooled_within(p)


def _unipt(p: Problems, moments: Moments, options: Options) -> Estimate:
    own = _unbiased(p)
    lam = np.full(len(p), second.common_power(p, own))
    return Estimate("unipt", _tuned(p, lam), own.regime, lam)


def _pas(
    p: Problems, moments: Moments, options: Options, name: str = "pas", tune: bool = True
) -> Estimate:
    lam = second.power(p, moments) if tune else np.zeros(len(p))
    start = _tuned(p, lam)
    variance, floored = _floored(second.variance(p, moments, lam))
    covariance = second.covariance(p, moments, lam)
    d = start - p.z_tilde
    curve = RiskCurve.cure(variance, 0 * covariance if options.blind else covariance, d)
    omega = options.omega
    if omega is None:
        omega = curve.minimize(options.official_search, options.cutoff)
    weight = weights(omega, variance)
    return Estimate(
        name, _between(weight, start, p.z_tilde), moments.regime, lam, start, p.z_tilde, weight,
        omega, variance, covariance, floored, curve,
    )  # fmt: skip


def _between(weight: np.ndarray, start: np.ndarray, target: np.ndarray) -> np.ndarray:
    """weight start + (1 - weight) target; exact at both ends."""
    return weight * start + (1 - weight) * target


def _shrink_classical(p: Problems, moments: Moments, options: Options) -> Estimate:
    return _pas(p, moments, options, "shrink_classical", tune=False)


def _shrink_average(p: Problems, moments: Moments, options: Options) -> Estimate:
    lam = second.power(p, moments)
    start = _tuned(p, lam)
    variance, floored = _floored(second.variance(p, moments, lam))
    mean = np.full(len(p), start.mean())
    curve = RiskCurve.sure(variance, start - mean)
    omega = curve.minimize(options.official_search, options.cutoff)
    weight, target = weights(omega, variance), p.z_tilde if options.official_target else mean
    return Estimate(
        "shrink_average", _between(weight, start, target), moments.regime, lam, start, target,
        weight, omega, variance, None, floored, curve,
    )  # fmt: skip


def _unipas(p: Problems, moments: Moments, options: Options) -> Estimate:
    own = _unbiased(p)
    lam = np.full(len(p), second.common_power(p, own))
    start = _tuned(p, lam)
    # Single variances may be negative here: only their mean is used, which must stay unbiased.
    variance = second.variance(p, own, lam)
    covariance = second.covariance(p, own, lam)
    if options.official_covariance:
        covariance = own.gamma / (p.n * p.N)
    d = start - p.z_tilde
    below, above = float(np.sum(d * d)), float(variance.sum() - covariance.sum())
    # All d = 0: there is nothing to shrink.
    pull = float(np.clip(above / below, 0, 1)) if below > 0 else 0.0
    weight = np.full(len(p), 1 - pull)
    return Estimate(
        "unipas", _between(weight, start, p.z_tilde), own.regime, lam, start, p.z_tilde, weight,
        None, variance, covariance,
    )  # fmt: skip


def _eb_ppi(p: Problems, moments: Moments, options: Options) -> Estimate:
    """Bias of the model shrunk to a common bias; in the official repository, after the paper."""
    lam = options.eb_lambda
    b = p.y_bar - lam * p.z_bar
    v, floored = _floored(second.residual_variance(p, moments, lam))
    spread = _spread(b, v)
    precision = 1 / (v + spread)
    center = np.full(len(p), (precision @ b) / precision.sum())
    weight = spread * precision
    start, target = b + lam * p.z_tilde, center + lam * p.z_tilde
    return Estimate(
        "eb_ppi", _between(weight, start, target), moments.regime, np.full(len(p), lam), start,
        target, weight, spread, v, None, floored,
    )  # fmt: skip


def _spread(b: np.ndarray, v: np.ndarray) -> float:
    """Maximum likelihood of t in b ~ N(mu, t + v), with mu profiled out."""

    def loss(t: float) -> float:
        precision = 1 / (v + t)
        mu = (precision @ b) / precision.sum()
        return float((precision * (b - mu) ** 2 - np.log(precision)).sum())

    top = float(max(v.max(), b.var()))
    grid = np.concatenate([[0.0], GRID[::4] * top])
    risks = [loss(t) for t in grid]
    best = int(np.argmin(risks))
    if best == 0:
        return 0.0
    low, high = grid[best - 1] or grid[best] * 1e-3, grid[min(best + 1, len(grid) - 1)]
    return float(np.exp(bounded_minimum(lambda t: loss(np.exp(t)), np.log(low), np.log(high))))


_MAKERS = {
    "classical": _classical, "prediction": _prediction, "ppi": _ppi, "pt": _pt, "unipt": _unipt,
    "shrink_classical": _shrink_classical, "shrink_average": _shrink_average, "pas": _pas,
    "unipas": _unipas, "eb_ppi": _eb_ppi,
}  # fmt: skip
