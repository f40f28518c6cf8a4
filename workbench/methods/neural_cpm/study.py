"""The study of NeuralCPM: its hyperparameters, the run, and the paper's claims as measured.

`run(parameters)` is the whole experiment, `steps(parameters)` the same as a generator with
progress; the numerical work itself is in `experiments.py`, imported when a run starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench import results
from workbench.parameters import (
    Boolean,
    Choice,
    Integer,
    Integers,
    Number,
    ParameterError,
)
from workbench.parameters import Parameters as BaseParameters
from workbench.steps import Step, Steps, part, together

from .starts import BIPOLAR_RADIUS, RECOVERY_RADIUS, sites_within

if TYPE_CHECKING:
    from .bipolar import Bipolar
    from .experiments import Digits, Law, Recovered, TissueRun


# What the stored weights were trained with; they fit nothing else.
STORED_FOR = (
    "bipolar_rule", "bipolar_size", "bipolar_cells", "bipolar_V_target", "stride", "widths",
    "pools", "padding", "closure", "interactions",
)  # fmt: skip


class Parameters(BaseParameters):
    """Hyperparameters of the Cellular Potts engine, of the Neural Hamiltonian and of the study."""

    slug = "neural_cpm"

    # fmt: off
    size = Integer(100, bounds=(8, 1024), softbounds=(30, 256), unit="sites", group="Lattice",
        doc="Side of the torus")
    n_cells = Integer(40, bounds=(2, 65000), softbounds=(2, 200), unit="cells", group="Lattice",
        doc="Cells at the start, half of each kind")

    J01 = Number(2.5, bounds=(-50, 50), softbounds=(0, 10), unit="energy", group="Contact energies",
        doc="Contact energy medium - kind 1")
    J02 = Number(1.0, bounds=(-50, 50), softbounds=(0, 10), unit="energy", group="Contact energies",
        doc="Contact energy medium - kind 2")
    J11 = Number(1.0, bounds=(-50, 50), softbounds=(0, 10), unit="energy", group="Contact energies",
        doc="Contact energy kind 1 - kind 1")
    J12 = Number(4.5, bounds=(-50, 50), softbounds=(0, 10), unit="energy", group="Contact energies",
        doc="Contact energy kind 1 - kind 2")
    J22 = Number(1.0, bounds=(-50, 50), softbounds=(0, 10), unit="energy", group="Contact energies",
        doc="Contact energy kind 2 - kind 2")
    contact_norm = Number(0.25, bounds=(0.01, 4), softbounds=(0.05, 1), group="Contact energies",
        doc="Factor of the contact sum, 1/4 in the paper and 1 in CompuCell3D")

    lam = Number(0.5, bounds=(0, 50), softbounds=(0, 3), unit="energy/site²", group="Shape",
        doc="Volume stiffness lambda")
    V_target = Number(100.0, bounds=(1, 10000), softbounds=(10, 300), unit="sites", group="Shape",
        doc="Target volume of a cell")
    lam_P = Number(0.0, bounds=(0, 10), softbounds=(0, 1), unit="energy/pair²", group="Shape",
        doc="Perimeter stiffness, 0 turns the term off")
    P_target = Number(110.0, bounds=(1, 10000), softbounds=(20, 300), unit="pairs", group="Shape",
        doc="Target perimeter, in site - neighbor pairs")
    connected = Boolean(False, group="Shape",
        doc="Refuse copies that would tear a cell apart")

    lam_act = Number(0.0, bounds=(0, 500), softbounds=(0, 60), unit="energy", group="Motion",
        doc="Strength of the Act model of protrusions")
    max_act = Integer(20, bounds=(1, 200), softbounds=(1, 80), unit="MCS", group="Motion",
        doc="How long a new site stays active")
    lam_ch = Number(0.0, bounds=(-100, 100), softbounds=(-10, 10), unit="energy", group="Motion",
        doc="Chemotaxis of kind 2 towards the middle")
    field = Number(0.0, bounds=(-10, 10), softbounds=(-2, 2), unit="energy/site",
        group="Motion",
        doc="External field that holds kind 2 in the middle")

    temperature = Number(1.0, bounds=(0, 100), softbounds=(0, 12), unit="energy", group="Copy rule",
        doc="Temperature of the Metropolis test, 0 means only downhill")
    proposal = Choice("uniform", objects=["uniform", "edges", "border_target", "border_source"],
        group="Copy rule", doc="How a copy attempt is proposed")
    mcs = Integer(600, bounds=(1, 100000), softbounds=(1, 3000), unit="MCS", group="Copy rule",
        doc="Length of the tissue simulation")

    simulations = Integer(16, bounds=(2, 128), unit="simulations", group="Recovery",
        doc="Training pictures for the recovery of the energy")
    recovery_iters = Integer(300, bounds=(10, 5000), unit="iterations", group="Recovery",
        doc="Iterations of contrastive divergence")
    recovery_seeds = Integer(2, bounds=(1, 20), unit="seeds", group="Recovery",
        doc="Repetitions of the recovery")
    all_scenarios = Boolean(False, group="Recovery",
        doc="Recover the scenarios A, B, D and F of the paper too")

    stride = Integer(6, bounds=(1, 36), unit="sites", group="Neural Hamiltonian",
        doc="Stride of the embedding, stride x pools divides bipolar_size")
    widths = Integers([8, 8], group="Neural Hamiltonian",
        doc="Channels of the NH layers")
    pools = Integers([1, 1], group="Neural Hamiltonian",
        doc="Max-pooling after each NH layer")
    padding = Choice("circular", objects=["circular", "zeros"], group="Neural Hamiltonian",
        doc="Padding of the convolutions, zeros in the official code")
    closure = Boolean(True, group="Neural Hamiltonian",
        doc="Add the network to the fitted cell-sorting energy")
    interactions = Boolean(True, group="Neural Hamiltonian",
        doc="Let cells see each other in the network")

    bipolar_size = Integer(36, bounds=(12, 256), unit="sites", group="Training",
        doc="Side of the torus of the bi-polar aggregates")
    bipolar_cells = Integer(12, bounds=(4, 256), unit="cells", group="Training",
        doc="Cells of a bi-polar aggregate, half of each kind")
    bipolar_V_target = Number(36.0, bounds=(4, 1000), unit="sites", group="Training",
        doc="Target volume of a cell of the aggregates")
    bipolar_simulations = Integer(64, bounds=(4, 512), unit="simulations", group="Training",
        doc="Bi-polar aggregates to learn from")
    bipolar_rule = Choice("poles", objects=["poles", "motion"], group="Training",
        doc="What makes the two poles, external fields or the motion rule of the paper")
    iters = Integer(300, bounds=(1, 10000), unit="iterations", group="Training",
        doc="Training iterations of the Neural Hamiltonian")
    train_seeds = Integer(1, bounds=(1, 10), unit="seeds", group="Training",
        doc="Networks trained, each from its own seed")
    select_every = Integer(0, bounds=(0, 10000), unit="iterations", group="Training",
        doc="Pick weights on a validation half this often, 0 keeps the last")
    lr = Number(0.003, bounds=(1e-05, 0.1), group="Training",
        doc="Learning rate of Adam at the start, cosine to 5 %")
    reg = Number(0.0005, bounds=(0, 0.001), group="Training",
        doc="Weight rho of the energy penalty")
    chains = Integer(8, bounds=(1, 128), unit="chains", group="Training",
        doc="Persistent chains, and pictures a batch")
    chain_steps = Integer(8, bounds=(1, 1000), unit="steps", group="Training",
        doc="Parallel steps of the chains an iteration")
    n_parallel = Integer(40, bounds=(1, 2000), unit="attempts", group="Training",
        doc="Copy attempts P of one parallel step")
    p_reset = Number(0.025, bounds=(0, 1), group="Training",
        doc="Probability that a chain restarts from data, an iteration")
    negatives = Choice("chains", objects=["chains", "data", "noise"], group="Training",
        doc="What energy is pushed up on, persistent chains, chains from data, or shuffled sites")
    delta = Choice("first_order", objects=["first_order", "exact"], group="Training",
        doc="Neural energy change of a copy, exact or by one gradient")
    weights = Choice("train", objects=["train", "stored"], group="Training",
        doc="Sample what this run trains, or the stored weights of a full run")

    samples = Integer(16, bounds=(2, 256), unit="samples", group="Sampling",
        doc="Aggregates sampled from each model")
    sample_steps = Integer(400, bounds=(1, 100000), unit="steps", group="Sampling",
        doc="Parallel steps of each sample")
    ablations = Boolean(False, group="Sampling",
        doc="Train the ablations and baselines too")
    other_networks = Boolean(False, group="Sampling",
        doc="Train the plain CNN, one NH layer and CNN, and graph network too")
    digits = Boolean(False, group="Sampling",
        doc="Run the cellular digits with their classifier")
    # fmt: on

    # fmt: off
    presets = {
        "quick": {
            "size": 60, "n_cells": 16, "mcs": 200,
            "simulations": 8, "recovery_iters": 120, "recovery_seeds": 1,
            "bipolar_simulations": 8, "iters": 6, "train_seeds": 1, "weights": "stored",
            "samples": 4, "sample_steps": 80,
        },
        "default": {},
        "full": {
            "simulations": 24, "recovery_iters": 400, "recovery_seeds": 3, "train_seeds": 3,
            "all_scenarios": True,
            "iters": 600, "select_every": 100, "samples": 32, "ablations": True, "digits": True,
        },
        # The official sizes (experiment 0 and 2): days on two cores, see `caution`.
        "paper": {
            "size": 200, "n_cells": 100, "V_target": 200.0, "simulations": 128,
            "bipolar_rule": "motion", "bipolar_size": 149, "bipolar_cells": 40,
            "bipolar_V_target": 150.0,
            "stride": 5, "widths": [16, 32, 32, 64, 64, 64], "pools": [2, 1, 2, 1, 2, 1],
            "padding": "zeros", "iters": 10_000, "lr": 1e-3, "chains": 16, "chain_steps": 444,
            "n_parallel": 50, "delta": "exact", "samples": 128, "sample_steps": 40_000,
        },
    }
    # fmt: on

    def check(self) -> None:
        """Cells must fit on the lattices, and the strides must divide the side of the map."""
        self._fit("n_cells", "V_target", "size", RECOVERY_RADIUS)
        self._fit("bipolar_cells", "bipolar_V_target", "bipolar_size", BIPOLAR_RADIUS)
        if len(self.widths) != len(self.pools):
            raise ParameterError(
                f"widths = {self.widths} and pools = {self.pools} must have the same length"
            )
        total, side = self.stride * int(np.prod(self.pools)), self.bipolar_size
        if total > side or (self.padding == "circular" and side % total):
            allowed = [d for d in range(1, side + 1) if side % d == 0]
            raise ParameterError(
                f"stride x pools = {total} does not divide bipolar_size = {side}: allowed products "
                f"are {', '.join(map(str, allowed))}"
            )

        teaching = {n: self.param[n].default for n in STORED_FOR}
        differ = [n for n in STORED_FOR if getattr(self, n) != teaching[n]]
        if self.weights == "stored" and differ:
            raise ParameterError(
                f"weights = 'stored' are for the default network, but {differ[0]} = "
                f"{getattr(self, differ[0])} (default {teaching[differ[0]]}): use weights = 'train'"
            )

    def _fit(self, cells: str, target: str, side: str, share: float) -> None:
        """Cells of the target volume must fit on the lattice, and single sites where they start."""
        n, volume, size = (getattr(self, name) for name in (cells, target, side))
        if n * volume > size**2:
            raise ParameterError(
                f"{cells} = {n} cells of {target} = {volume:g} sites do not fit on {side} = "
                f"{size}: at most {int(size**2 // volume)} do"
            )
        starts = len(sites_within(size, share * size))
        if n > starts:
            raise ParameterError(
                f"{cells} = {n} do not fit where they start, within {share * size:g} sites of the "
                f"middle of {side} = {size}: at most {starts} do"
            )

    def caution(self) -> str:
        """A warning for settings that two cores cannot finish; empty for all others."""
        if self.bipolar_size > 64 or (self.delta == "exact" and self.iters > 1_000):
            return "these settings are those of the paper: they need an accelerator and hours"
        return ""

    def contact_energies(self) -> np.ndarray:
        """The symmetric matrix J, (3, 3), with J[0, 0] = 0."""
        return np.array([
            [0.0, self.J01, self.J02],
            [self.J01, self.J11, self.J12],
            [self.J02, self.J12, self.J22],
        ])  # fmt: skip


@dataclass
class NeuralCPMStudy(results.Study):
    """What a run leaves: one result per experiment (None while it has not run), and the claims."""

    law: Law | None = None
    tissue: TissueRun | None = None
    recovered: dict[str, Recovered] | None = None
    persistent: Recovered | None = None
    bipolar: Bipolar | None = None
    digits: Digits | None = None

    @property
    def own(self) -> Recovered | None:
        """The recovery shown first: of the reader's own scenario, or of scenario B."""
        found = self.recovered or {}
        return found.get("own", found.get("B"))


def run(parameters: Parameters | None = None, progress: bool = True) -> NeuralCPMStudy:
    """The whole study with a progress bar; stopped by an interrupt, it returns what is finished."""
    from . import findings

    made = steps(parameters or Parameters())
    return results.run_study("NeuralCPM study", made, findings, progress)


def steps(p: Parameters) -> Steps[NeuralCPMStudy]:
    """The study as steps; data of a step: the study so far, with claims on what is finished.

    What is simulated and fitted and what is learned need nothing of each other: they run side by
    side, the one mostly in compiled loops, the other mostly in torch.
    """
    from . import findings

    p.check()
    started = time.perf_counter()
    study = NeuralCPMStudy(p, complete=False)

    def so_far() -> NeuralCPMStudy:
        study.seconds = time.perf_counter() - started
        study.claims, study.values = findings.claims(study), findings.values(study)
        return study

    yield Step(0.0, "compiling the engine (first run only)", so_far())
    halves = together(
        [lambda: _analytic_steps(p, study, so_far), lambda: _neural_steps(p, study, so_far)],
        names=("engine", "network"),
    )
    yield from part(halves, 0.0, 1.0, data=lambda _: study)
    study.complete = True
    return so_far()


Judge = Callable[[], NeuralCPMStudy]


def _analytic_steps(p: Parameters, study: NeuralCPMStudy, so_far: Judge) -> Steps[None]:
    from . import experiments

    study.law = yield from part(experiments.law_steps(p.seed), 0.0, 0.1)
    yield Step(0.1, "law", so_far())
    study.tissue = yield from part(experiments.tissue_steps(p), 0.1, 0.2, "tissue")
    yield Step(0.2, "tissue", so_far())
    study.recovered = {}
    scenarios = experiments.scenarios(p)
    end = 0.5 if p.digits else 1.0
    span = (end - 0.2) / (len(scenarios) + p.all_scenarios)
    for number, (name, scenario) in enumerate(scenarios.items()):
        recovery = experiments.recovery_steps(p, scenario, name)
        at = 0.2 + number * span
        study.recovered[name] = yield from part(recovery, at, at + span, f"recovery {name}")
        yield Step(at + span, f"recovery {name}", so_far())
    if p.all_scenarios:
        recovery = experiments.recovery_steps(p, scenarios["B"], "B", persistent=True)
        study.persistent = yield from part(recovery, end - span, end, "persistent chains")
        yield Step(end, "persistent chains", so_far())
    if p.digits:
        study.digits = yield from part(experiments.digits_steps(p), end, 1.0, "digits")
        yield Step(1.0, "digits", so_far())


def _neural_steps(p: Parameters, study: NeuralCPMStudy, so_far: Judge) -> Steps[None]:
    from . import bipolar

    def with_bipolar(partial: Bipolar) -> NeuralCPMStudy:
        study.bipolar = partial
        return study

    study.bipolar = yield from part(bipolar.bipolar_steps(p), 0.0, 1.0, data=with_bipolar)
    yield Step(1.0, "bi-polar", so_far())
