"""The study of soft inductive biases: hyperparameters, the run, and the claims as measured.

`run(parameters)` is the whole experiment, `steps(parameters)` the same as a generator with
progress; the numerical work itself is in `experiments.py`, imported when a run starts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from workbench import results
from workbench.parameters import (
    Choice,
    Choices,
    Integer,
    Integers,
    Number,
    Numbers,
    ParameterError,
)
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps, part, together

if TYPE_CHECKING:
    from . import closed_forms as c
    from . import experiments as e
    from .compression import Compressed
    from .posterior import Gibbs, Validity
    from .representation import Learned, Paths, Universal
    from .symmetry import PathwayNetworks

PARTS = [
    "polynomials", "efficiency", "labels", "weak", "exact", "relu", "widths", "compression",
    "corrupted", "posterior", "validity", "symmetry", "pathways", "learned", "connected",
    "universal",
]  # fmt: skip
BASES = ["chebyshev", "legendre", "monomial"]
GROUPS = ["C4", "C2", "flip", "D4", "none"]
LANES = 2  # threads that share out the experiments
UNIT = {"corrupted": "compression"}  # experiments that stay together
D_GRID = [25, 50, 100, 200, 300, 400, 450, 500, 550, 600, 800, 1000, 2000, 4000]


class Parameters(BaseParameters):
    """Hyperparameters of the nine sections, by the letter of their group."""

    slug = "soft_inductive_bias"

    # fmt: off
    order = Integer(150, bounds=(0, 300), group="A polynomials",
        doc="Order J of the polynomial")
    gamma = Number(1.1, bounds=(1, 3), softbounds=(1, 2), group="A polynomials",
        doc="How much dearer each order is than the one below, 1 is uniform ridge")
    sigma2 = Number(0.01, bounds=(1e-10, 1), group="A polynomials",
        doc="Noise variance that the model assumes")
    basis = Choice("chebyshev", objects=BASES, group="A polynomials",
        doc="Functions whose coefficients are penalized")
    n_points = Integer(30, bounds=(3, 60), unit="points", group="A polynomials",
        doc="Data points, on a regular grid")

    rho = Numbers([0.0, 0.25, 0.5, 0.75, 1.0], each=(0, 1), group="B random labels",
        doc="Shares of labels replaced by random ones")
    mlp_rho = Numbers([0.0, 0.5, 1.0], each=(0, 1), empty=True, group="B random labels",
        doc="The same for networks of 512 units, [] leaves them out")
    length_scale = Number(1.0, bounds=(0.2, 5), unit="pixel values", group="B random labels",
        doc="Length scale of the RBF kernel")
    noise = Number(0.01, bounds=(1e-6, 1), group="B random labels",
        doc="Noise variance of the Gaussian process")

    n = Integer(500, bounds=(50, 1200), unit="digits", group="C double descent",
        doc="Training digits of the random-feature model")
    d_grid = Integers(D_GRID, each=(1, 4000), group="C double descent",
        doc="Numbers of random features")
    label_noise = Number(0.2, bounds=(0, 1), group="C double descent",
        doc="Share of labels replaced by random ones, for features and networks")
    ridge = Number(0.0, bounds=(0, 10), softbounds=(0, 0.1), group="C double descent",
        doc="Ridge of the random-feature model, 0 and 0.02 are always measured")
    widths = Integers([2, 4, 6, 8, 12, 24, 64, 256], each=(1, 1024), group="C double descent",
        doc="Hidden units of the networks")
    alpha = Number(10.0, bounds=(1e-6, 1e6), softbounds=(0.1, 100), group="C double descent",
        doc="Curvature below which a direction of a network counts as undetermined")

    d = Integer(100, bounds=(10, 400), unit="coordinates", group="D bounds",
        doc="Dimension of the random subspace in which networks are trained")
    levels = Integer(9, bounds=(3, 33), unit="levels", group="D bounds",
        doc="Quantization levels, an odd number")
    width = Integer(64, bounds=(0, 1024), softbounds=(0, 256), unit="units", group="D bounds",
        doc="Hidden units of the network that is compressed, 0 is softmax regression")
    delta = Number(0.05, bounds=(0.001, 0.999), softbounds=(0.001, 0.5), group="D bounds",
        doc="Probability with which a bound may be wrong")
    bound_rho = Numbers([0.0, 1.0], each=(0, 1), group="D bounds",
        doc="Shares of random labels at which its bound is measured")
    bound_widths = Integers([0, 64], each=(0, 1024), group="D bounds",
        doc="Widths whose bounds are compared")
    bound_d = Integers([100], each=(10, 400), group="D bounds",
        doc="Subspace dimensions at which they are compared")

    group = Choice("C4", objects=GROUPS, group="E symmetry",
        doc="Symmetry that the prior knows, tasks are made with C4")
    n_train = Integers([100, 200], each=(20, 800), group="E symmetry",
        doc="Training digits")
    r = Number(0.1, bounds=(0, 1), group="E symmetry",
        doc="Share of the prior without symmetry in the live picture, the study learns it")

    index_n = Integers([200, 800, 1500], each=(20, 3000), group="F G networks",
        doc="Examples of one direction in twenty")
    path_widths = Integers([64, 0], each=(0, 512), group="F G networks",
        doc="Hidden units of networks whose solutions are connected, 0 is softmax regression")

    parts = Choices([part for part in PARTS if part not in ("posterior", "pathways", "learned")],
        objects=PARTS, group="Run", doc="Experiments of the study")
    draws = Integer(50, bounds=(2, 1000), unit="draws", group="Run",
        doc="Data sets in closed form, a fifth of them in C1 and E")
    efficiency_draws = Integer(20, bounds=(2, 200), unit="draws", group="Run",
        doc="Data sets of sample efficiency")
    seeds = Integer(3, bounds=(1, 50), unit="seeds", group="Run",
        doc="Seeds of the Gaussian process, of random features and of learned features")
    networks = Integer(1, bounds=(1, 20), unit="seeds", group="Run",
        doc="Seeds of every other trained network, all in one batch")

    presets = {
        "quick": {
            "parts": ["polynomials", "labels", "weak", "exact", "compression", "validity",
                      "symmetry"],
            "draws": 15, "seeds": 1, "n_train": [100], "bound_widths": [16], "bound_d": [50],
            "mlp_rho": [],
        },
        "default": {},
        "full": {
            "parts": PARTS, "efficiency_draws": 60, "seeds": 5, "networks": 3,
            "widths": [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 128, 256, 512],
            "bound_widths": [0, 16, 64, 256], "bound_d": [50, 100], "path_widths": [64, 8, 0],
            "mlp_rho": [0.0, 0.25, 0.5, 0.75, 1.0],
            "bound_rho": [0.0, 0.25, 0.5, 0.75, 1.0],
        },
    }
    # fmt: on

    def check(self) -> None:
        """An odd number of levels, and a subspace no larger than the network."""
        if self.levels % 2 == 0:
            raise ParameterError(
                f"levels = {self.levels} is not allowed: an odd number from 3 to 33, so that zero "
                f"is a level; take {self.levels - 1} or {self.levels + 1}"
            )
        for d, widths in ((self.d, [self.width]), (max(self.bound_d), self.bound_widths)):
            for width in widths:
                most = 65 * width + 10 * (width + 1) if width else 650
                if d > most:
                    raise ParameterError(
                        f"d = {d} is more than the {most} parameters of width {width}: allowed "
                        f"are at most {most}"
                    )


@dataclass
class SoftBiasStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims.

    Claims leave out the experiment that is still running.
    """

    polynomials: c.Polynomials | None = None
    efficiency: c.SampleEfficiency | None = None
    labels: e.RandomLabels | None = None
    weak: c.Weak | None = None
    exact: c.Exact | None = None
    relu: c.Relu | None = None
    widths: e.Widths | None = None
    compression: dict[tuple[int, int], Compressed] | None = None
    corrupted: e.Corrupted | None = None
    posterior: Gibbs | None = None
    validity: Validity | None = None
    symmetry: c.Symmetry | None = None
    pathways: PathwayNetworks | None = None
    learned: dict[int, Learned] | None = None
    connected: dict[int, Paths] | None = None
    universal: Universal | None = None


def run(parameters: Parameters | None = None, progress: bool = True) -> SoftBiasStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("Soft inductive biases", made, findings, progress)


def steps(p: Parameters) -> Steps[SoftBiasStudy]:
    """The study as steps; data of a step: the study so far.

    Experiments are shared out to two threads: torch and LAPACK let go of Python while they work.
    None sees another, so what they find does not depend on it.
    """
    p.check()
    study = SoftBiasStudy(p, complete=False)
    yield Step(0.0, "loading digits", study)

    from workbench.numerics.threads import one_thread

    from . import findings
    from .closed_forms import one_blas_thread

    started = time.perf_counter()
    lanes = [replace(study) for _ in range(LANES)]
    plans = [[] for _ in lanes]
    # The dearest first, each to the lane with least to do; corrupted labels go where D is.
    units = {k: [row for row in _plan(study) if UNIT.get(row[0], row[0]) == k] for k in PARTS}
    for unit in sorted(filter(None, units.values()), key=lambda rows: -_cost(rows)):
        plans[min(range(LANES), key=lambda i: _cost(plans[i]))] += unit
    for lane, plan in zip(lanes, plans, strict=True):
        wanted = {name for name, *_ in plan}
        plan[:] = [row for row in _plan(lane) if row[0] in wanted]

    def so_far(_: Any = None) -> SoftBiasStudy:
        study.running = " ".join(lane.running for lane in lanes if lane.running)
        for lane, plan in zip(lanes, plans, strict=True):
            for name, *_ in plan:
                setattr(study, name, getattr(lane, name))
        return study

    jobs = [
        lambda lane=lane, plan=plan: results.plan_steps(lane, plan, findings)
        for lane, plan in zip(lanes, plans, strict=True) if plan
    ]  # fmt: skip
    with one_thread(), one_blas_thread():  # threads of their own would only wait for each other
        yield from part(together(jobs, names=[""] * len(jobs)), 0, 1, data=so_far)
    so_far()
    study.complete, study.seconds = True, time.perf_counter() - started
    study.claims, study.values = findings.claims(study), findings.values(study)
    yield Step(1.0, "done", study)
    return study


def _cost(plan: list[tuple[str, float, Any]]) -> float:
    return sum(cost for _, cost, _ in plan)


def _plan(study: SoftBiasStudy) -> list[tuple[str, float, Any]]:
    """The experiments to run: name in the study, rough seconds of one core, generator of steps."""
    from . import closed_forms as c
    from . import experiments as e

    p = study.parameters
    mlp_rho = sorted(p.mlp_rho)
    compressed = sum(0.004 * (300 + w) * len(p.bound_d) for w in p.bound_widths)
    seeds = [p.seed + i for i in range(p.networks)]
    check = p.networks >= 3
    every = [
        ("polynomials", 0.2, lambda: c.polynomial_steps(p)),
        ("efficiency", 0.15 * p.efficiency_draws,
         lambda: c.efficiency_steps(p, p.efficiency_draws)),
        ("labels", 0.6 * p.seeds + 6 * len(mlp_rho) * p.networks,
         lambda: e.label_steps(p, mlp_rho)),
        ("weak", p.draws / 17, lambda: c.weak_steps(p)),
        ("exact", 1, lambda: c.exact_steps(p)),
        ("relu", 2.4 * p.seeds, lambda: c.relu_steps(p)),
        ("widths", 1.3 * len(p.widths) * p.networks,
         lambda: e.width_steps(p.widths, seeds, p.label_noise, p.alpha, check)),
        ("compression", compressed * p.networks, lambda: e.compression_steps(p)),
        ("corrupted", 3 * len(p.bound_rho) * p.networks,
         lambda: e.corrupted_steps(p, p.bound_rho, study.compression)),
        ("posterior", 15, lambda: e.posterior_steps(p)),
        ("validity", 1, lambda: e.validity_steps(p)),
        ("symmetry", p.draws / 25 * len(p.n_train), lambda: c.symmetry_steps(p)),
        ("pathways", 40 * p.networks, lambda: e.pathway_steps(p)),
        ("learned", 10 * p.seeds, lambda: e.learned_steps(p)),
        ("connected", 5.5 * len(p.path_widths) * p.networks, lambda: e.connected_steps(p)),
        ("universal", 3, lambda: e.universal_steps(p)),
    ]  # fmt: skip
    return [(name, cost, make) for name, cost, make in every if name in p.parts]
