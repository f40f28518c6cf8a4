"""The study of certified unlearning: hyperparameters, the run, and the claims as measured.

`run(parameters)` is the whole experiment, `steps(parameters)` the same as a generator with
progress; the numerical work itself is in `experiments.py`, imported when a run starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench import results
from workbench.parameters import (
    Boolean,
    Choice,
    Integer,
    Integers,
    Number,
    Numbers,
    ParameterError,
)
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps

if TYPE_CHECKING:
    from . import comparison as c
    from . import experiments as e
    from . import memory as m

ACCOUNTANTS = ["exact", "rdp", "zcdp", "released"]


class Parameters(BaseParameters):
    """Hyperparameters of the guarantee, of the three mechanisms and of the study."""

    slug = "certified_unlearning"

    # fmt: off
    epsilon = Number(1.0, bounds=(1e-6, 1e6), softbounds=(0.1, 20), group="Guarantee",
        doc="Target epsilon")
    delta = Number(1e-5, bounds=(1e-300, 0.49999), softbounds=(1e-8, 0.1), group="Guarantee",
        doc="Target delta")
    accountant = Choice("exact", objects=ACCOUNTANTS, group="Guarantee",
        doc="How noise becomes epsilon, for GC and OP, released as we read the scripts")

    C0 = Number(0.03, bounds=(1e-9, 1e6), softbounds=(0.001, 1), group="Gradient clipping",
        doc="Norm to which GC clips the model at its start")
    C1 = Number(3.0, bounds=(0, 1e6), softbounds=(0, 30), group="Gradient clipping",
        doc="Norm to which GC clips the batch gradient, 0 needs T")
    gamma = Number(0.001, bounds=(1e-9, 1e6), softbounds=(1e-4, 0.01), group="Gradient clipping",
        doc="Step size of GC")
    lam = Number(100.0, bounds=(0, 1e9), softbounds=(0, 500), group="Gradient clipping",
        doc="L2 regularization of GC, times gamma below 1")
    T = Integer(0, bounds=(0, 10000), softbounds=(0, 100), unit="steps", group="Gradient clipping",
        doc="Noisy steps of GC, 0 means automatic")

    C2 = Number(0.1, bounds=(1e-9, 1e6), softbounds=(0.01, 1), group="Model clipping",
        doc="Norm to which MC clips the model at each step")
    sigma_mc = Number(0.2, bounds=(1e-9, 1e6), softbounds=(0.01, 2), group="Model clipping",
        doc="Noise of each step of MC, T follows")
    gamma_mc = Number(0.5, bounds=(1e-9, 1e6), softbounds=(0.01, 2), group="Model clipping",
        doc="Step size of MC")

    C0_op = Number(0.01, bounds=(1e-9, 1e6), softbounds=(0.001, 1), group="Output perturbation",
        doc="Norm to which OP clips the model")

    hidden = Integers([5], each=(1, 256), bounds=(1, 2), unit="units", group="Network",
        doc="Hidden layers of the ReLU network between 64 pixels and 10 classes")
    budget = Integers([20, 40, 80, 160], each=(1, 5000), unit="steps", group="Network",
        doc="Total SGD steps after the request, noisy ones included")
    lr_ft = Number(1.0, bounds=(1e-6, 100), softbounds=(0.1, 4), group="Network",
        doc="Peak learning rate of fine-tuning and retraining, one-cycle")
    batch = Integer(32, bounds=(1, 1000), unit="examples", group="Network",
        doc="Examples of a batch")
    wd = Number(5e-4, bounds=(0, 1), softbounds=(0, 0.01), group="Network",
        doc="Weight decay of fine-tuning and training")
    forget_frac = Number(0.1, bounds=(0.005, 0.5), group="Network",
        doc="Share of the training digits to forget")

    seeds = Integer(24, bounds=(1, 200), unit="seeds", group="Experiments",
        doc="Splits and networks, all in one batch")
    trials = Integer(1, bounds=(1, 64), unit="trials", group="Experiments",
        doc="Random search for each method, the same number for all, 1 is the defaults")
    audit_n = Integer(200_000, bounds=(1000, 10_000_000), unit="runs", group="Experiments",
        doc="Runs of the scalar adversary on each side")
    mia_seeds = Integer(8, bounds=(0, 200), unit="seeds", group="Experiments",
        doc="Seeds of membership inference and of the survival curve, 0 for none")
    epsilons = Numbers([], each=(1e-6, 1e6), empty=True, group="Experiments",
        doc="Epsilons of a sweep of the accuracy, [] for none")
    widths = Integers([], each=(1, 256), empty=True, unit="units", group="Experiments",
        doc="Other hidden layers for which accuracy is measured, [] for none")
    dp_sgd = Boolean(False, group="Experiments",
        doc="Whether networks are trained with DP-SGD too")
    workers = Integer(0, bounds=(0, 64), unit="processes", group="Experiments",
        doc="Processes of a local dask cluster for searches, sweeps and widths, 0 runs them here")

    presets = {
        "quick": {"seeds": 6, "budget": [40], "audit_n": 20_000, "mia_seeds": 0},
        "default": {},
        "full": {
            "seeds": 100, "trials": 24, "dp_sgd": True, "widths": [16, 64],
            "epsilons": [0.1, 1.0, 10.0, 100.0, 1e3, 1e4],
        },
    }
    # fmt: on

    def check(self) -> None:
        """A step that does not overshoot, and noisy phases that end and fit into the budget."""
        from .settings import settings_of

        try:
            settings_of(self)
        except ValueError as error:
            raise ParameterError(str(error)) from None

    @property
    def standard(self) -> bool:
        """Whether guarantee, mechanisms and network are those of the thresholds."""
        free = {
            "seeds", "seed", "trials", "audit_n", "mia_seeds", "epsilons", "widths", "dp_sgd",
            "workers", "budget", "T",
        }  # fmt: skip
        return self.T == 0 and all(
            getattr(self, n) == self.param[n].default for n in self.names() if n not in free
        )


@dataclass
class UnlearningStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims."""

    calculator: e.Calculator | None = None
    audit: e.Audit | None = None
    whitebox: m.WhiteBox | None = None
    accuracy: c.Accuracy | None = None
    membership: m.Membership | None = None
    survival: m.Survival | None = None
    forget_size: e.ForgetSize | None = None
    widths: dict[int, c.Accuracy] | None = None
    sweep: c.Sweep | None = None


def run(parameters: Parameters | None = None, progress: bool = True) -> UnlearningStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("Certified unlearning", made, findings, progress)


def steps(p: Parameters) -> Steps[UnlearningStudy]:
    """The study as steps; data of a step: the study so far, with claims on what is finished."""
    p.check()
    study = UnlearningStudy(p, complete=False)
    yield Step(0.0, "loading digits", study)

    from . import findings

    return (yield from results.plan_steps(study, _plan(p), findings))


def _plan(p: Parameters) -> list[tuple[str, float, Any]]:
    """The experiments to run: name in the study, rough seconds, generator of steps."""
    from . import comparison as c
    from . import experiments as e
    from . import memory as m
    from . import sizes

    def cost(seeds: int) -> float:
        return 0.2 + seeds / 24 * sum(p.budget) / 300

    networks, search = cost(p.seeds), (p.trials - 1) * cost(min(p.seeds, c.SEARCH_SEEDS))
    trained = p.mia_seeds / 8
    every = [
        (True, "calculator", 0.1, lambda: e.calculator_steps(p)),
        (True, "audit", 0.3 + p.audit_n / 1e5, lambda: e.audit_steps(p)),
        (True, "whitebox", 5 + p.seeds / 8, lambda: m.whitebox_steps(p)),
        (True, "accuracy", 8 * networks + 3.6 * search, lambda: c.accuracy_steps(p)),
        (p.mia_seeds > 0, "membership", 12 * trained, lambda: m.membership_steps(p)),
        (p.mia_seeds > 0, "survival", 6 * trained, lambda: m.survival_steps(p)),
        (True, "forget_size", 1 + 5 * p.dp_sgd * (4 * p.seeds / 100 + p.trials),
         lambda: sizes.forget_size_steps(p)),
        (bool(p.widths), "widths", 8 * networks * len(p.widths), lambda: c.widths_steps(p)),
        (bool(p.epsilons), "sweep", networks * len(p.epsilons), lambda: c.sweep_steps(p)),
    ]  # fmt: skip
    return [(name, cost, make) for wanted, name, cost, make in every if wanted]
