"""The experiments of the study, each a generator of steps that returns plain arrays.

What the numbers mean for the claims is in `findings.py`, how they look in `views.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.steps import Step, Steps, part

from . import homogeneous, peers
from .estimators import Options, estimate
from .moments import Moments, power, variance
from .problems import Problems
from .shrinkage import GRID, RiskCurve
from .trials import NOISY, PLAIN, REAL, SWITCHED, Outcome, Setting, Split, setting_of, trial_steps

BOTH = ("good", "bad")  # predictors of synthetic data
OMEGAS = (0.0, 1e-3, 1e-2, 1e-1)  # at which CURE is compared with the loss
DRAWS_A_TRIAL = 4
MOST_DRAWS = 400  # for each number of problems
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000)  # of the regret
REAL_ROWS = (
    ("nyt", "tuned"), ("nyt", "base"), ("amazon", "tuned"), ("amazon", "base"), ("nyt", "noise"),
    ("nyt", "adversarial"),
)  # fmt: skip
FRACS = (0.2, 0.4)  # labelled, where moments of each problem are tried
SHIFT = 2.0
QUALITIES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def main_steps(p: Any, client: Any = None) -> Steps[Outcome]:
    """All estimators on the chosen data."""
    return trial_steps(setting_of(p), p.trials, client=client)


def synthetic_steps(p: Any, client: Any = None) -> Steps[dict[str, Outcome]]:
    """All estimators on the paper's synthetic problems, with both predictors and known moments."""
    found: dict[str, Outcome] = {}
    for k, predictor in enumerate(BOTH):
        setting = synthetic(p, predictor=predictor)
        made = trial_steps(setting, p.trials, PLAIN, client)
        found[predictor] = yield from part(
            made, k / 2, (k + 1) / 2, predictor,
            lambda so_far, name=predictor: {**found, name: so_far},
        )  # fmt: skip
    return found


def synthetic(p: Any, **changes: Any) -> Setting:
    """The synthetic setting of the parameters, whatever data and switches they choose."""
    fixed = {"data": "synthetic", "moments": "known", "q": 1.0, "shift": 0.0, "official": False}
    return setting_of(p, **{**fixed, **changes})


@dataclass(frozen=True)
class Unbiased:
    """CURE and the true loss of fixed amounts of shrinkage, by predictor.

    z[predictor] (4,): mean difference at OMEGAS over its standard error. omegas (k,): of the
    curves, (k,) each: of the first draw, and the mean over all. chosen, oracle: omega of the first
    draw.
    """

    draws: int
    omegas: np.ndarray
    z: dict[str, np.ndarray] = field(default_factory=dict)
    curves: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    chosen: dict[str, float] = field(default_factory=dict)
    oracle: dict[str, float] = field(default_factory=dict)


def curves_of(split: Split) -> tuple[RiskCurve, RiskCurve]:
    """CURE and the true loss of a split, as functions of omega."""
    pas = estimate(split.problems, split.moments(), ["pas"], warn=False)["pas"]
    loss = RiskCurve.loss(pas.variance, pas.start - split.truth, pas.start - pas.target)
    return pas.curve, loss


def unbiased_steps(p: Any) -> Steps[Unbiased]:
    """Many draws at fixed omega: the mean of CURE minus loss, and both as curves."""
    draws, found = DRAWS_A_TRIAL * p.trials, None
    for k, predictor in enumerate(BOTH):
        setting = synthetic(p, predictor=predictor)
        differences = np.empty((draws, len(OMEGAS)))
        sums: dict[str, np.ndarray] = {}
        for draw in range(draws):
            cure, loss = curves_of(setting.draw(draw))
            if draw == 0:
                omegas = np.concatenate([[0.0], GRID[::4] * cure.s.max(), [np.inf]])
                found = found or Unbiased(draws, omegas)
                first = {"cure": cure(found.omegas), "loss": loss(found.omegas)}
                found.chosen[predictor], found.oracle[predictor] = cure.minimize(), loss.minimize()
            differences[draw] = cure(np.array(OMEGAS)) - loss(np.array(OMEGAS))
            if draw < p.trials:
                for name, curve in (("cure", cure), ("loss", loss)):
                    sums[name] = sums.get(name, 0) + curve(found.omegas)
            if draw % 10 == 9:
                yield Step((k + (draw + 1) / draws) / 2, f"{predictor}, draw {draw + 1}")
        spread = differences.std(0, ddof=1) / np.sqrt(draws)
        found.z[predictor] = differences.mean(0) / spread
        found.curves[predictor] = {
            **first, **{f"mean_{name}": total / p.trials for name, total in sums.items()},
        }  # fmt: skip
    return found


@dataclass(frozen=True)
class Regret:
    """Loss of the omega that CURE chose minus that of the best one: excess[predictor, m] (k,)."""

    sizes: tuple[int, ...]
    excess: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)

    def mean(self, predictor: str, m: int) -> float:
        """The mean over draws; nan where none are finished."""
        values = self.excess.get((predictor, m), np.zeros(0))
        return float(values.mean()) if len(values) else np.nan

    def done(self, predictor: str) -> tuple[np.ndarray, np.ndarray]:
        """Sizes that are finished and the mean regret there."""
        sizes = [m for m in self.sizes if (predictor, m) in self.excess]
        return np.array(sizes), np.array([self.mean(predictor, m) for m in sizes])


def excess_of(split: Split) -> float:
    """Regret of one split: never negative, for the best omega is found as CURE's is."""
    cure, loss = curves_of(split)
    return float(loss(cure.minimize()) - loss(loss.minimize()))


def regret_steps(p: Any) -> Steps[Regret]:
    """The regret for more and more problems."""
    sizes = tuple(m for m in SIZES if m <= p.regret_m)
    draws = min(2 * p.trials, MOST_DRAWS)
    found = Regret(sizes)
    work, done = sum(len(BOTH) * (50 + m) for m in sizes), 0.0
    for m in sizes:
        for predictor in BOTH:
            setting, values = synthetic(p, predictor=predictor, m=m), []
            for draw in range(draws):
                values.append(excess_of(setting.draw(draw)))
                if draw % 10 == 9:
                    share = (done + (50 + m) * (draw + 1) / draws) / work
                    yield Step(share, f"{m} problems, {predictor}")
            found.excess[predictor, m] = np.array(values)
            done += 50 + m
            yield Step(done / work, f"{m} problems, {predictor}", found)
    return found


@dataclass(frozen=True)
class Homogeneous:
    """Problems that are all alike: weights and realized risks (k,) over draws, and closed forms."""

    parts: tuple[float, float, float]
    weight: np.ndarray
    risk: np.ndarray
    blind_weight: np.ndarray
    blind_risk: np.ndarray

    @property
    def best_weight(self) -> float:
        """w* in closed form."""
        return homogeneous.best_weight(*self.parts)

    @property
    def best_risk(self) -> float:
        """R* in closed form."""
        return homogeneous.best_risk(*self.parts)


def homogeneous_steps(p: Any, draws: int = 5) -> Steps[Homogeneous]:
    """CURE with and without the covariance where the best weight is known."""
    model = homogeneous.Alike(m=min(400 * p.trials, 40_000))
    found = []
    for draw in range(draws):
        problems, truth = model.draw(np.random.default_rng(p.seed + draw))
        row = []
        for blind in (False, True):
            made = estimate(problems, model.moments, ["pas"], Options(blind=blind))["pas"]
            row += [made.weight[0], np.mean((made.theta - truth) ** 2)]
        found.append(row)
        yield Step((draw + 1) / draws, f"draw {draw + 1}")
    return Homogeneous(model.parts, *np.array(found).T)


@dataclass(frozen=True)
class Tuning:
    """Power tuning on problems with random known moments.

    gain: by how much any lambda of a grid has less variance, relative, (m,); ratio: variance over
    that of the classical mean, (m,).
    """

    gain: np.ndarray
    ratio: np.ndarray


def tuning_steps(p: Any, m: int = 1000) -> Steps[Tuning]:
    """Whether lambda* minimizes the variance, and what it costs at most."""
    rng = np.random.default_rng(p.seed)
    sigma2, tau2 = rng.uniform(0.1, 3, (2, m))
    moments = Moments.known(sigma2, tau2, rng.uniform(-1, 1, m) * np.sqrt(sigma2 * tau2))
    zeros = np.zeros(m)
    problems = Problems(
        np.arange(m), rng.integers(2, 100, m), rng.integers(1, 500, m), *[zeros] * 7
    )
    tuned = variance(problems, moments, power(problems, moments))
    grid = np.array([variance(problems, moments, lam) for lam in np.linspace(0, 1, 1001)])
    yield Step(1.0, "variances")
    return Tuning((tuned - grid.min(0)) / tuned, tuned / (sigma2 / problems.n))


def real_steps(p: Any, client: Any = None) -> Steps[dict[tuple[str, str], Outcome]]:
    """All estimators on the embedded data, two sources and four predictors."""
    found: dict[tuple[str, str], Outcome] = {}
    total = len(REAL_ROWS)
    for k, key in enumerate(REAL_ROWS):
        setting = Setting(data=key[0], predictor=key[1], seed=p.seed)
        found[key] = yield from part(
            trial_steps(setting, p.trials, client=client), k / total, (k + 1) / total,
            " ".join(key), lambda so_far, key=key: {**found, key: so_far},
        )  # fmt: skip
    return found


def plug_in_steps(p: Any, client: Any = None) -> Steps[dict[tuple[str, str, float], Outcome]]:
    """PAS with pooled moments and with those of each problem, few labels and fewer."""
    found: dict[tuple[str, str, float], Outcome] = {}
    rows = [row for row in PLAIN if row.key == "pas"] + [NOISY]
    keys = [(*key, frac) for key in REAL_ROWS[:4] for frac in FRACS]
    for k, (data, predictor, frac) in enumerate(keys):
        setting = Setting(data=data, predictor=predictor, frac=frac, seed=p.seed)
        found[data, predictor, frac] = yield from part(
            trial_steps(setting, p.trials, rows, client), k / len(keys), (k + 1) / len(keys),
            f"{data} {predictor}, {frac:.0%} labelled",
        )  # fmt: skip
        yield Step((k + 1) / len(keys), data, dict(found))
    return found


def switches_steps(p: Any, client: Any = None) -> Steps[dict[tuple[str, str], Outcome]]:
    """What each difference of the official program changes, on real data."""
    rows = [row for row in REAL if row.key in ("pas", "unipas", "shrink_average")]
    found: dict[tuple[str, str], Outcome] = {}
    for k, key in enumerate(REAL_ROWS[:4]):
        setting = Setting(data=key[0], predictor=key[1], seed=p.seed)
        made = trial_steps(setting, max(p.trials // 2, 2), [*rows, *SWITCHED], client)
        found[key] = yield from part(made, k / 4, (k + 1) / 4, " ".join(key))
    return found


@dataclass(frozen=True)
class Quality:
    """Mean squared errors against the quality of the predictor: mse[row] (len(q),)."""

    data: str
    q: np.ndarray
    mse: dict[str, np.ndarray]
    error: dict[str, np.ndarray]


def quality_steps(
    setting: Setting, trials: int, qualities: Sequence[float] = QUALITIES, client: Any = None
) -> Steps[Quality]:
    """From noise to the tuned predictor; data of a step: the `Quality` so far."""
    outcomes: list[Outcome] = []

    def so_far() -> Quality:
        keys = outcomes[0].mse
        return Quality(
            setting.data, np.array(qualities[: len(outcomes)]),
            {key: np.array([o.mean(key) for o in outcomes]) for key in keys},
            {key: np.array([o.error(key) for o in outcomes]) for key in keys},
        )  # fmt: skip

    for k, q in enumerate(qualities):
        at = replace(setting, predictor="mix", q=float(q))
        share = (k / len(qualities), (k + 1) / len(qualities))
        outcomes.append(
            (yield from part(trial_steps(at, trials, client=client), *share, f"q = {q:.1f}"))
        )
        yield Step(share[1], f"q = {q:.1f}", so_far())
    return so_far()


@dataclass(frozen=True)
class Shifted:
    """The tuned predictor as it is and with a constant added, by source."""

    plain: dict[str, Outcome]
    shifted: dict[str, Outcome]


def shift_steps(p: Any, client: Any = None) -> Steps[Shifted]:
    """What a large constant bias of the predictor does to each estimator."""
    found: tuple[dict, dict] = ({}, {})
    for k, data in enumerate(("nyt", "amazon")):
        for j, shift in enumerate((0.0, SHIFT)):
            setting = Setting(data=data, shift=shift, seed=p.seed)
            begin = (2 * k + j) / 4
            made = trial_steps(setting, max(p.trials // 2, 2), client=client)
            found[j][data] = yield from part(made, begin, begin + 0.25, setting.titled())
    return Shifted(*found)


@dataclass(frozen=True)
class Agreement:
    """ppi_py, one problem at a time, on the problems of one synthetic draw.

    plain: largest difference of PPI and their estimate with lam = 1; tuned: of our formula with
    their lambda, clip((n - 1) / n lambda), and their tuned estimate. None: not installed.
    """

    plain: float | None = None
    tuned: float | None = None


def agreement_steps(p: Any) -> Steps[Agreement]:
    """Compare with ppi_py where it is installed."""
    yield Step(0.0, "ppi_py")
    return Agreement(*peers.agreement(p.seed)) if peers.available() else Agreement()
