"""The study of shrinkage: hyperparameters, the run, and the claims as measured.

`run(parameters)` is the whole experiment, `steps(parameters)` the same as a generator with
progress; the numerical work itself is in `experiments.py`, imported when a run starts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import results
from workbench.cluster import local_cluster
from workbench.parameters import Boolean, Choice, Integer, Number, ParameterError, Text
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps

if TYPE_CHECKING:
    from .experiments import (
        Agreement,
        Homogeneous,
        Quality,
        Regret,
        Shifted,
        Tuning,
        Unbiased,
    )
    from .trials import Outcome

PREDICTORS = ["tuned", "base", "noise", "adversarial", "mix", "good", "bad"]
REGIMES = ["auto", "known", "per_problem", "pooled_within", "pooled_total"]


class Parameters(BaseParameters):
    """Hyperparameters of the data, of the estimators and of the study."""

    slug = "pas"

    # fmt: off
    data = Choice("nyt", objects=["synthetic", "amazon", "nyt", "frame"], group="Data",
        doc="Problems to estimate, frame reads a table from `file`")
    predictor = Choice("tuned", objects=PREDICTORS, group="Data",
        doc="The black box, good and bad are the synthetic names of tuned and base")
    q = Number(1.0, bounds=(0, 1), group="Data",
        doc="Quality of the predictor mix, 0 is noise and 1 is tuned")
    shift = Number(0.0, bounds=(-5, 5), group="Data",
        doc="Added to every prediction, our switch for a constant bias")
    m = Integer(200, bounds=(2, 20000), softbounds=(2, 1000), unit="problems", group="Data",
        doc="Synthetic problems")
    n = Integer(20, bounds=(2, 10000), softbounds=(2, 100), unit="items", group="Data",
        doc="Labelled items of a synthetic problem")
    N = Integer(80, bounds=(2, 10000), softbounds=(2, 400), unit="items", group="Data",
        doc="Unlabelled items of a synthetic problem")
    psi = Number(0.1, bounds=(1e-3, 10), softbounds=(0.01, 1), group="Data",
        doc="Spread of X within a synthetic problem")
    c = Number(0.05, bounds=(1e-6, 100), softbounds=(0.001, 1), group="Data",
        doc="Noise variance of synthetic labels")
    frac = Number(0.4, bounds=(0.05, 0.9), group="Data",
        doc="Share of the items of real data that is labelled, at least two of each problem")
    file = Text("", group="Data",
        doc="Path of a CSV file with columns group, y, pred, or of an official file, for frame")

    moments = Choice("auto", objects=REGIMES, group="Estimators",
        doc="Second moments, auto means known for synthetic and pooled_within for real data")
    official = Boolean(False, group="Estimators",
        doc="The authors' search, their covariance in UniPAS, their target of shrink average")

    trials = Integer(100, bounds=(1, 2000), unit="trials", group="Experiments",
        doc="Random splits or repetitions of each experiment")
    regret_m = Integer(500, bounds=(0, 2000), unit="problems", group="Experiments",
        doc="Most problems in the study of the regret, none below 10")
    workers = Integer(0, bounds=(0, 64), unit="processes", group="Experiments",
        doc="Processes of a local dask cluster that share the trials, 0 runs them here")
    seed = Integer(42, bounds=(0, 2**31 - 1), group="Run",
        doc="Seed of all random numbers, trial t uses seed plus t")

    presets = {
        "quick": {"trials": 10, "m": 100, "regret_m": 100},
        "default": {},
        "full": {"trials": 1000, "regret_m": 2000},
    }
    # fmt: on

    def check(self) -> None:
        """A file for frame that can be read, moments that there are, and draws that fit."""
        if self.data == "frame" and not self.file:
            raise ParameterError(
                "data = 'frame' needs `file`, the path of a CSV file with columns group, y, pred"
            )
        if self.data == "frame" and not Path(self.file).exists():
            raise ParameterError(f"file = '{self.file}' is not there: give the path of a table")
        if self.data == "frame":
            self._read()
        if self.moments == "known" and self.data != "synthetic":
            raise ParameterError(
                "moments = 'known' needs data = 'synthetic', since real data have no known ones: "
                "take 'pooled_within'"
            )
        # Whatever the data, some experiments draw m synthetic problems, one up to regret_m.
        name = "m" if self.m >= self.regret_m else "regret_m"
        items = getattr(self, name) * (self.n + self.N)
        if items > 2e7:
            raise ParameterError(
                f"{name} (n + N) = {items:.1e} items of one synthetic draw do not fit: allowed are "
                "2e7, whatever `data` is"
            )

    def _read(self) -> None:
        from .trials import setting_of

        try:
            setting_of(self).ratings()
        except (ValueError, ImportError) as error:
            raise ParameterError(f"file = '{self.file}' does not serve: {error}") from None

    @property
    def standard(self) -> bool:
        """Whether the synthetic problems are those that the thresholds were measured with."""
        return (self.m, self.n, self.N, self.psi, self.c) == (200, 20, 80, 0.1, 0.05)


@dataclass
class PASStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims."""

    main: Outcome | None = None
    synthetic: dict[str, Outcome] | None = None
    tuning: Tuning | None = None
    unbiased: Unbiased | None = None
    homogeneous: Homogeneous | None = None
    real: dict[tuple[str, str], Outcome] | None = None
    plug_in: dict[tuple[str, str, float], Outcome] | None = None
    shifted: Shifted | None = None
    switches: dict[tuple[str, str], Outcome] | None = None
    quality: Quality | None = None
    regret: Regret | None = None
    agreement: Agreement | None = None


def run(parameters: Parameters | None = None, progress: bool = True) -> PASStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("PAS study", made, findings, progress)


def steps(p: Parameters) -> Steps[PASStudy]:
    """The study as steps; data of a step: the study so far, with claims on what is finished."""
    p.check()
    study = PASStudy(p, complete=False)
    yield Step(0.0, "loading data", study)

    from . import findings

    with _cluster(p.workers) as client:
        return (yield from results.plan_steps(study, _plan(p, client), findings))


@contextlib.contextmanager
def _cluster(workers: int) -> Iterator[Any]:
    """A client of a dask cluster of processes on this machine, or None."""
    if not workers:
        yield None
        return
    from distributed import Client

    with (
        local_cluster(workers) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _plan(p: Parameters, client: Any) -> list[tuple[str, float, Any]]:
    """The experiments to run: name in the study, rough seconds, generator of steps."""
    from . import experiments as e
    from .trials import setting_of

    t = p.trials / 100
    data = p.data if p.data != "synthetic" else "nyt"
    dial = setting_of(p, data=data, moments=p.moments if p.moments != "known" else "auto")
    every = [
        (True, "main", 2 * t, lambda: e.main_steps(p, client)),
        (True, "synthetic", 3 * t, lambda: e.synthetic_steps(p, client)),
        (True, "tuning", 0.1, lambda: e.tuning_steps(p)),
        (True, "unbiased", 4 * t, lambda: e.unbiased_steps(p)),
        (True, "homogeneous", 2, lambda: e.homogeneous_steps(p)),
        (True, "real", 9 * t, lambda: e.real_steps(p, client)),
        (True, "plug_in", 4 * t, lambda: e.plug_in_steps(p, client)),
        (True, "shifted", 3 * t, lambda: e.shift_steps(p, client)),
        (True, "switches", 2 * t, lambda: e.switches_steps(p, client)),
        (True, "quality", 3 * t,
         lambda: e.quality_steps(dial, max(p.trials // 4, 2), client=client)),
        (p.regret_m >= 10, "regret", 3 * t * p.regret_m / 500, lambda: e.regret_steps(p)),
        (True, "agreement", 0.5, lambda: e.agreement_steps(p)),
    ]  # fmt: skip
    return [(name, cost, make) for wanted, name, cost, make in every if wanted]
