"""The experiments of the study, each a generator of steps that returns plain arrays.

Engine law, a tissue, recovery of the energy (the paper's experiment 0), bi-polar aggregates
(experiment 2 at teaching scale) and cellular digits (experiment 1). They measure; what the numbers
mean for the claims is in `study.py`, and how they look in `views.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part

from .digits import accuracy, train_classifier_steps
from .energy import contact_counts
from .ensemble import Ensemble, permute_identities
from .exact_chain import LAWS, stationary
from .generators import SCENARIOS, Scenario, Simulation, simulate_steps
from .measures import inception_score
from .recovery import Recovery, fit_cellsort_steps, rmse, rmse_after_scalar
from .starts import RECOVERY_RADIUS, scatter
from .tissue import Tissue

# Seeds of independent parts are this far apart, so that no two parts share random numbers.
DATA, HELD_OUT, STARTS, NETWORK, SAMPLING = 0, 10_000, 20_000, 30_000, 40_000
PAPER_SCENARIOS = {"A": "cellsort-a", "B": "cellsort-b", "D": "cellsort-d", "F": "cellsort-f"}
TISSUE_FRAMES = 60
RELAXATION_MCS = 1500.0  # of the pictures to recover from (teaching scale)
# Start and length of the fits to patterned data (bi-polar, digits): claim 3.
ANALYTIC_FIT = {"J_start": 3.0, "lam_start": 0.5, "iters": 300, "mcs": 5}
TINY = {"H": 3, "W": 4, "J": 2.0, "lam": 0.5, "V_target": 5.0, "T": 2.0}  # one cell and medium


@dataclass(frozen=True)
class Law:
    """Mean volume of one cell on a 3 x 4 torus, exactly and by the engine.

    exact: mean volume for each copy rule and for the Boltzmann law. sampled (rules, runs): means of
    independent runs of the engine. distribution: P(volume), 0..12 sites, exact, for each of them.
    """

    exact: dict[str, float]
    distribution: dict[str, np.ndarray]
    sampled: dict[str, np.ndarray]


def law_steps(seed: int, runs: int = 40, samples: int = 1_000) -> Steps[Law]:
    """Compare the engine with the exact chain of each copy rule (claim 1)."""
    laws = {rule: stationary(**TINY, proposal=rule) for rule in LAWS}
    rules = [rule for rule in LAWS if rule != "boltzmann"]
    start = np.zeros((runs, TINY["H"], TINY["W"]), np.int32)
    start[:, 1, 1:3] = 1
    J = np.array([[0.0, TINY["J"]], [TINY["J"], 0.0]])
    sampled = {}
    for number, rule in enumerate(rules):
        cells = Ensemble(
            start, [0, 1], J, TINY["lam"], TINY["V_target"], T=TINY["T"], proposal=rule,
            seed=seed + DATA + number,
        )  # fmt: skip
        cells.step(100)  # from the start to the stationary law: 1,200 attempts on 12 sites
        total = np.zeros(runs)
        for _ in range(samples):
            cells.step(1)
            total += cells.volumes()[:, 1]
        sampled[rule] = total / samples
        yield Step((number + 1) / len(rules), f"copy rule {rule}")
    return Law(
        {rule: float(law["mean_volume"]) for rule, law in laws.items()},
        {rule: law["p"] for rule, law in laws.items()},
        sampled,
    )


@dataclass(frozen=True)
class TissueRun:
    """One simulated tissue: frames (m, H, W) at `mcs` (m,), kinds, and what was measured on them.

    energy: each term of H (m,); acceptance (m,), share of attempts between unlike sites; volumes
    (m, N + 1); sorting_index (m,): share of contacts between cells that join unlike kinds.
    """

    frames: np.ndarray
    kind: np.ndarray
    mcs: np.ndarray
    energy: dict[str, np.ndarray]
    acceptance: np.ndarray
    volumes: np.ndarray
    sorting_index: np.ndarray


def sorting_index(counts: np.ndarray) -> np.ndarray:
    """Share of cell-cell contacts between unlike kinds, from contact counts (..., 3, 3)."""
    between = counts[..., 1, 1] + counts[..., 1, 2] + counts[..., 2, 2]
    return counts[..., 1, 2] / np.maximum(between, 1)


def tissue_steps(parameters: Parameters) -> Steps[TissueRun]:
    """Simulate a tissue with all the study's hyperparameters for `parameters.mcs`."""
    tissue = Tissue(parameters)
    model = tissue.model
    times = np.unique(np.linspace(0, parameters.mcs, TISSUE_FRAMES + 1).round())
    frames, energies, acceptance, volumes = [], [], [], []
    for number, time in enumerate(times):
        model.step(time - model.time)
        frames.append(model.cell)
        energies.append(model.energy(terms=True))
        acceptance.append(model.acceptance)
        volumes.append(model.volumes())
        yield Step((number + 1) / len(times), f"{time:.0f} of {parameters.mcs} MCS")
    frames = np.array(frames)
    return TissueRun(
        frames,
        model.kind,
        times,
        {name: np.array([e[name] for e in energies]) for name in energies[0]},
        np.array(acceptance),
        np.array(volumes),
        sorting_index(contact_counts(frames, model.kind)),
    )


@dataclass(frozen=True)
class Recovered:
    """Energies recovered from pictures of one scenario, over S seeds.

    truth (6,) and estimates (S, 6): J01, J02, J11, J12, J22, lambda. rmse and rmse_scaled (S,):
    as they are, and after the best common factor. fits: the recoveries with their histories.
    """

    name: str
    truth: np.ndarray
    estimates: np.ndarray
    rmse: np.ndarray
    rmse_scaled: np.ndarray
    fits: list[Recovery]

    @property
    def worst_relative_error(self) -> np.ndarray:
        """(S,) largest relative error among the six parameters (absolute where the truth is 0)."""
        scale = np.where(self.truth == 0, 1.0, np.abs(self.truth))
        return (np.abs(self.estimates - self.truth) / scale).max(1)


def own_scenario(p: Parameters) -> Scenario:
    """The cell-sorting scenario that the hyperparameters describe; the defaults are scenario B.

    Its pictures and their fit know contacts and volumes only: perimeters, the field, motility and
    connectivity act on the tissue alone.
    """
    return Scenario(
        (p.J01, p.J02, p.J11, p.J12, p.J22), p.lam, p.size, p.n_cells, p.V_target,
        radius=RECOVERY_RADIUS * p.size, stages=((p.temperature, RELAXATION_MCS),),
        proposal=p.proposal,
    )  # fmt: skip


def scenarios(p: Parameters) -> dict[str, Scenario]:
    """The scenarios to recover: the reader's own, or the paper's four in the reader's size."""
    own = own_scenario(p)
    if not p.all_scenarios:
        return {"own": own}
    sizes = {"size": own.size, "n_cells": own.n_cells, "V_target": own.V_target}
    return {
        letter: replace(SCENARIOS[name], **sizes, radius=own.radius)
        for letter, name in PAPER_SCENARIOS.items()
    }


def recovery_steps(p: Parameters, scenario: Scenario, name: str, **options) -> Steps[Recovered]:
    """Simulate pictures of a scenario and fit the energy to them, for each seed (claim 2)."""
    truth = np.array([*scenario.J, scenario.lam])
    # The generator's contact sum has the factor 1/4 built in.
    pictured = replace(scenario, J=tuple(4 * p.contact_norm * J for J in scenario.J))
    temperature = scenario.stages[-1][0] or 1.0  # pictures tell H / T only; T itself is known
    estimates, fits = [], []
    for number in range(p.recovery_seeds):
        seed, at = p.seed + number, number / p.recovery_seeds
        middle, end = at + 0.4 / p.recovery_seeds, at + 1 / p.recovery_seeds
        data = yield from part(
            simulate_steps("cellsort-b", p.simulations, seed + DATA, **vars(pictured)),
            at, middle, "pictures",
        )  # fmt: skip
        fit = yield from part(
            fit_cellsort_steps(
                data.frames, data.kind, scenario.V_target, iters=p.recovery_iters, seed=seed,
                contact_norm=p.contact_norm,
                    proposal=scenario.proposal, **options,
            ),
            middle, end, "fit",
        )  # fmt: skip
        fits.append(fit)
        estimates.append(temperature * fit.values)
    return Recovered(
        name, truth, np.array(estimates), np.array([rmse(e, truth) for e in estimates]),
        np.array([rmse_after_scalar(e, truth) for e in estimates]), fits,
    )  # fmt: skip


@dataclass
class Digits:
    """Cellular digits: aggregates of the generator and of a fitted cell-sorting energy.

    data (n, H, W), label (n,): held-out ones; starts (n, H, W): the same with their kinds dealt
    anew; samples and scattered (n, H, W): what the first fit makes of the starts, and of single
    sites at random; accuracy of the classifier on the data; scores: inception scores of "data" (1,)
    and, a number a fit, of "starts", "cell sorting" and "cell sorting, scattered".
    """

    data: np.ndarray
    kind: np.ndarray
    label: np.ndarray
    starts: np.ndarray
    samples: np.ndarray
    scattered: np.ndarray
    accuracy: float
    scores: dict[str, np.ndarray] = field(default_factory=dict)


def digits_steps(parameters: Parameters, n: int = 500, held_out: int = 100) -> Steps[Digits]:
    """Experiment 1 at teaching scale: can a cell-sorting energy write digits?

    n: digits simulated, of which the first `held_out` are kept from classifier and fit. The starts
    of the samples still have the outline of a digit; single sites at random, under the schedule of
    temperatures that made the data, have nothing of it.
    """
    seed = parameters.seed
    data: Simulation = yield from part(simulate_steps("digits", n, seed + DATA), 0, 0.3, "digits")
    train, test = slice(held_out, None), slice(0, held_out)
    classifier = yield from part(
        train_classifier_steps(data.frames[train], data.kind, data.label[train], seed=seed),
        0.3, 0.8, "classifier",
    )  # fmt: skip
    scenario, fits = data.scenario, parameters.train_seeds
    made: dict[str, list[np.ndarray]] = {"starts": [], "cell sorting": []}
    made["cell sorting, scattered"] = []
    for number in range(fits):
        at, share = 0.8 + 0.2 * number / fits, 0.2 / fits
        fit = yield from part(
            fit_cellsort_steps(
                data.frames[train], data.kind, scenario.V_target, seed=seed + number,
                **ANALYTIC_FIT,
            ),
            at, at + 0.4 * share, "cell-sorting fit",
        )  # fmt: skip
        rng = np.random.default_rng(seed + number + STARTS)
        starts = permute_identities(data.frames[test], rng)
        sites = scatter(scenario.size, data.kind, held_out, scenario.radius, rng)
        runs = (
            ("cell sorting", starts, ((1.0, 300.0),), 0.4, 0.6),
            ("cell sorting, scattered", sites, scenario.stages, 0.6, 1.0),
        )
        made["starts"].append(starts)
        for name, frames, stages, first, last in runs:
            sampling = _digits_sampled(frames, data.kind, fit, stages, seed + number + SAMPLING)
            first, last = at + first * share, at + last * share
            made[name].append((yield from part(sampling, first, last, name)))

    def score(frames: np.ndarray) -> float:
        return inception_score(classifier.probabilities(frames, data.kind))

    scores = {"data": np.array([score(data.frames[test])])}
    scores |= {name: np.array([score(frames) for frames in many]) for name, many in made.items()}
    right = accuracy(classifier, data.frames[test], data.kind, data.label[test])
    firsts = (many[0] for many in made.values())
    return Digits(data.frames[test], data.kind, data.label[test], *firsts, right, scores)


def _digits_sampled(
    frames: np.ndarray,
    kind: np.ndarray,
    fit: Recovery,
    stages: Sequence[tuple[float, float]],
    seed: int,
) -> Steps[np.ndarray]:
    """What a fitted cell-sorting energy makes of `frames` (n, H, W) in stages (T, MCS)."""
    cells = Ensemble(frames, kind, fit.J, fit.lam, fit.V_target, seed=seed)
    total = sum(mcs for _, mcs in stages)
    for T, mcs in stages:
        cells.T = T
        for _ in range(int(mcs) // 10):
            cells.step(10)
            yield Step(cells.time / total, f"{cells.time:.0f} of {total:.0f} MCS")
    return cells.frames
