"""The bi-polar experiment: can a model of still pictures make aggregates with two poles?

Experiment 2 of the paper at teaching scale. Models are trained on final pictures, then sampled
from pictures whose kinds were permuted over the cells, and judged by the second moments of their
cell centers. One generator of steps returns everything as plain arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part, together

from .baselines import ConvolutionalHamiltonian, graph_hamiltonian, one_layer_hamiltonian
from .closure import CellSorting, Hamiltonian, Hybrid
from .energy import volumes
from .ensemble import permute_identities
from .experiments import ANALYTIC_FIT, DATA, HELD_OUT, NETWORK, SAMPLING, STARTS
from .generators import Scenario, Simulation, simulate_steps
from .hamiltonian import NeuralEnergy, NeuralHamiltonian
from .measures import (
    fragmented,
    moment_rmse,
    moment_rmse_interval,
    moments,
    stability,
    touches_edge,
    variance_fraction,
)
from .recovery import fit_cellsort_steps
from .sampling import ParallelSampler, sample_steps
from .starts import BIPOLAR_RADIUS
from .training import Training, train_many_steps

CELL_SORTING, FIELD = "cell sorting", "cell sorting + field"
CLOSURE, ALONE, BLIND = "NH + closure", "NH alone", "NH + closure, no interactions"
SAME_RULE = "cell sorting, border source"
NOISE_GROUPS, SHOWN_GROUPS = 8, 4  # of fresh data, each as large as the samples of a model
ANALYTIC_FITS = 3
# A permuted start needs this long to forget itself, and its mean this many samples (claim 4).
JUDGED_STEPS, JUDGED_SAMPLES = 400, 16
RECORDED = 40  # frames kept of each sampled aggregate


@dataclass
class Model:
    """Samples of one model, over its S training seeds.

    record (m, n, H, W): aggregates of the first seed after `recorded` (m,) parallel steps; frames
    (S, n, H, W): final ones. moments (S, 2, 2): second moments of the cell centers, kind by (along,
    across) the axis, in sites^2, mean over samples; rmse (S,) against the data, rmse_interval
    (S, 2) 95 % over the samples of each seed; fraction (S, 2): share of variance along the axis
    for each kind; fragmented (S,): mean number of cells in pieces;
    stable (S,): share of frames that look like tissue; at_edge (S,): share that touch the edge;
    volumes (S, 2): least and greatest volume of a cell, in sites.
    model: the first one; trainings: how they were trained (none for an analytic fit).
    """

    name: str
    recorded: np.ndarray
    record: np.ndarray
    frames: np.ndarray
    moments: np.ndarray
    rmse: np.ndarray
    rmse_interval: np.ndarray
    fraction: np.ndarray
    fragmented: np.ndarray
    stable: np.ndarray
    at_edge: np.ndarray
    volumes: np.ndarray
    model: Hamiltonian
    trainings: list[Training] = field(default_factory=list)


@dataclass
class Bipolar:
    """What the experiment returns.

    data (n, H, W), kind (N + 1,), scenario: how they were made; moments (n, 2, 2) of the data;
    noise_floor (k,): RMSE of groups of fresh data, as many as samples; starts_rmse: that of the
    kind-permuted starts; data_fragmented: cells in pieces in the data; basis: the fitted
    cell-sorting energy; models by name; exact and first_order (chains, P): neural energy changes
    of the same copy attempts, NaN where a chain had fewer than P, and analytic (chains, P) those of
    the known energy; training: name and state of what is being trained.
    """

    data: np.ndarray
    kind: np.ndarray
    scenario: Scenario
    moments: np.ndarray
    noise_floor: np.ndarray
    starts_rmse: float
    data_fragmented: float
    basis: CellSorting
    models: dict[str, Model] = field(default_factory=dict)
    exact: np.ndarray | None = None
    first_order: np.ndarray | None = None
    analytic: np.ndarray | None = None
    training: tuple[str, list[Training]] | None = None


def network(p: Parameters, interactions: bool, seed: int) -> NeuralHamiltonian:
    """The Neural Hamiltonian that the hyperparameters describe."""
    return NeuralHamiltonian(
        p.bipolar_size, 2, p.stride, p.widths, pools=p.pools, padding=p.padding,
        interactions=interactions, seed=seed,
    )  # fmt: skip


def closure(basis: CellSorting, neural: NeuralEnergy) -> Hybrid:
    """Fitted cell-sorting energy, frozen and with weight 1, plus a network (teaching scale)."""
    copy = CellSorting.from_values(
        basis.J.detach().numpy(), basis.lam.detach().numpy(), basis.V_target.detach().numpy(),
        basis.contact_norm,
    )  # fmt: skip
    return Hybrid(copy, neural, 1.0, 1.0, train_basis=False, train_weights=False)


def main_model(p: Parameters) -> str:
    """Name of the model that the hyperparameters describe."""
    if not p.closure:
        return ALONE if p.interactions else "NH alone, no interactions"
    return CLOSURE if p.interactions else BLIND


Maker = Callable[[CellSorting, int], Hamiltonian]


def plan(p: Parameters) -> dict[str, Maker]:
    """The networks to train, by name: the reader's own first, then what it is compared with."""

    def maker(with_basis: bool, interactions: bool) -> Maker:
        def make(basis: CellSorting, seed: int) -> Hamiltonian:
            neural = network(p, interactions, seed)
            return closure(basis, neural) if with_basis else neural

        return make

    size = p.bipolar_size
    models = {main_model(p): maker(p.closure, p.interactions)}
    if p.ablations:
        others = {CLOSURE: maker(True, True), BLIND: maker(True, False), ALONE: maker(False, True)}
        models = {**models, **{k: v for k, v in others.items() if k not in models}}
    if p.other_networks:
        models["one NH layer + CNN"] = lambda basis, seed: one_layer_hamiltonian(size, seed=seed)
        models["plain CNN"] = lambda basis, seed: ConvolutionalHamiltonian(
            size, p.bipolar_cells, seed=seed
        )
        models["graph network"] = lambda basis, seed: graph_hamiltonian(size, seed=seed)
    return models


def enough_samples(p: Parameters) -> bool:
    """Whether samples are long and many enough to judge a model by them."""
    return p.sample_steps >= JUDGED_STEPS and p.samples >= JUDGED_SAMPLES


def bipolar_steps(p: Parameters) -> Steps[Bipolar]:
    """Data, the analytic fits, training of every network asked for, samples and metrics."""
    data = yield from part(_pictures(p, p.bipolar_simulations, DATA), 0.0, 0.05, "bi-polar data")
    kind, half = data.kind, len(data.frames) // 2
    train, validation = data.frames, None
    if p.select_every:
        train, validation = data.frames[:half], data.frames[half:]
    seeds = [p.seed + number for number in range(p.train_seeds)]
    # Samples that are shown and not judged need no close estimate of the noise, and one fit.
    groups, n_fits = (NOISE_GROUPS, ANALYTIC_FITS) if enough_samples(p) else (SHOWN_GROUPS, 1)
    independent = together(
        [lambda: _pictures(p, groups * p.samples, HELD_OUT), lambda: _fits(p, train, kind, n_fits)],
        names=("fresh data", "cell-sorting fit"),
    )
    fresh, bases = yield from part(independent, 0.05, 0.12)
    with warnings.catch_warnings():
        # An aggregate at the edge is counted in `Model.at_edge`; one warning each would be noise.
        warnings.filterwarnings("ignore", message="cells touch the edge")
        # Every model starts from the same pictures: fresh data with permuted kinds.
        rng = np.random.default_rng(p.seed + STARTS)
        starts = permute_identities(fresh.frames[: p.samples], rng)
        result = _start(data, fresh, groups, starts, bases[0])
        result.models[CELL_SORTING] = yield from part(
            _sampled(CELL_SORTING, bases, starts, p, result), 0.12, 0.14, "sampling cell sorting"
        )
        if p.ablations:
            # The basis is fitted with the uniform rule and sampled with border_source: does it
            # matter? Their MCS differ in length, the fit's number of them does not.
            others = {FIELD: {"fit_field": True}, SAME_RULE: {"proposal": "border_source"}}
            for number, (name, options) in enumerate(others.items()):
                at = 0.14 + 0.025 * number
                fits = _fits(p, train, kind, n_fits, **options)
                fits = yield from part(fits, at, at + 0.015, f"fit of {name}")
                sampling = _sampled(name, fits, starts, p, result)
                result.models[name] = yield from part(
                    sampling, at + 0.015, at + 0.025, f"sampling {name}"
                )
        yield Step(0.19, "cell sorting", result)
        networks = plan(p)
        for number, (name, make) in enumerate(networks.items()):
            at, share = 0.19 + 0.8 * number / len(networks), 0.8 / len(networks)
            models = [make(bases[0], seed + NETWORK) for seed in seeds]
            training = train_many_steps(
                models, train, kind, [seed + NETWORK for seed in seeds],
                **_options(p, validation, kind),
            )  # fmt: skip

            def in_training(trainings: list[Training | None], name: str = name) -> Bipolar:
                result.training = (name, [t for t in trainings if t])
                return result

            trainings = yield from part(
                training, at, at + 0.7 * share, f"training {name}", data=in_training
            )
            if name == main_model(p) and p.weights == "stored":
                from .weights import load_weights

                models = [load_weights()]
            sampling = _sampled(name, models, starts, p, result)
            model = yield from part(sampling, at + 0.7 * share, at + share, f"sampling {name}")
            model.trainings = trainings
            result.models[name] = model
            yield Step(at + share, name, result)
    model = result.models[main_model(p)].model
    result.exact, result.first_order, result.analytic = _deltas(p, model, starts, kind)
    return result


def _pictures(p: Parameters, n: int, offset: int) -> Steps[Simulation]:
    rules = {"poles": "bipolar", "motion": "bipolar-motion"}
    return simulate_steps(
        rules[p.bipolar_rule], n, p.seed + offset, size=p.bipolar_size,
        n_cells=p.bipolar_cells, V_target=p.bipolar_V_target,
        radius=BIPOLAR_RADIUS * p.bipolar_size,
    )  # fmt: skip


def _fits(
    p: Parameters, frames: np.ndarray, kind: np.ndarray, n: int, **options: Any
) -> Steps[list[CellSorting]]:
    """n analytic energies, each fitted from its own seed; options of `fit_cellsort_steps`."""
    fits = []
    for number in range(n):
        steps = fit_cellsort_steps(
            frames, kind, p.bipolar_V_target, seed=p.seed + number, **ANALYTIC_FIT, **options
        )
        fit = yield from part(steps, number / n, (number + 1) / n)
        fits.append(
            CellSorting.from_values(
                fit.J, fit.lam, fit.V_target, field=fit.field, coupling=fit.coupling
            )
        )
    return fits


def _start(
    data: Simulation, fresh: Simulation, groups: int, starts: np.ndarray, basis: CellSorting
) -> Bipolar:
    reference = moments(data.frames, data.kind)
    each = np.split(fresh.frames, groups)
    floor = [moment_rmse(moments(group, data.kind), reference) for group in each]
    permuted = moment_rmse(moments(starts, data.kind), reference)
    broken = float(fragmented(data.frames).mean())
    return Bipolar(
        data.frames, data.kind, data.scenario, reference, np.array(floor), permuted, broken, basis
    )


def _options(p: Parameters, validation: np.ndarray | None, kind: np.ndarray) -> dict[str, Any]:
    """Options of a training; with a validation half, the checkpoint that samples it best."""
    options: dict[str, Any] = {
        "iterations": p.iters, "lr": p.lr, "reg": p.reg, "chains": p.chains,
        "steps": p.chain_steps, "n_parallel": p.n_parallel, "p_reset": p.p_reset, "delta": p.delta,
        "negatives": p.negatives,
    }  # fmt: skip
    if validation is None:
        return options
    starts = permute_identities(validation[:16], np.random.default_rng(p.seed + STARTS + 1))
    wanted = moments(validation, kind)

    def metric(model: Hamiltonian) -> Steps[float]:
        found = yield from sample_steps(
            model, starts, kind, p.sample_steps, p.n_parallel, p.delta, p.seed
        )
        return moment_rmse(moments(found.frames, kind), wanted)

    return {**options, "metric": metric, "metric_every": p.select_every}


def _sampled(
    name: str, models: Sequence[Hamiltonian], starts: np.ndarray, p: Parameters, so_far: Bipolar
) -> Steps[Model]:
    runs = []
    for number, model in enumerate(models):
        steps = sample_steps(
            model, starts, so_far.kind, p.sample_steps, p.n_parallel, p.delta,
            seed=p.seed + SAMPLING + number, record_every=max(1, p.sample_steps // RECORDED),
        )  # fmt: skip
        runs.append((yield from part(steps, number / len(models), (number + 1) / len(models))))
    frames = np.array([run.frames for run in runs])
    found = [moments(f, so_far.kind) for f in frames]
    return Model(
        name, runs[0].recorded, runs[0].record, frames,
        moments=np.array([m.mean(0) for m in found]),
        rmse=np.array([moment_rmse(m, so_far.moments) for m in found]),
        rmse_interval=np.array([moment_rmse_interval(m, so_far.moments) for m in found]),
        fraction=np.array([variance_fraction(m).mean(0) for m in found]),
        fragmented=np.array([fragmented(f).mean() for f in frames]),
        stable=np.array([stability(f, so_far.data) for f in frames]),
        at_edge=np.array([np.mean([touches_edge(one) for one in f]) for f in frames]),
        volumes=np.array([_volume_range(f, len(so_far.kind)) for f in frames]),
        model=models[0],
    )  # fmt: skip


def _volume_range(frames: np.ndarray, n_labels: int) -> tuple[int, int]:
    sizes = volumes(frames, n_labels)[:, 1:]
    return int(sizes.min()), int(sizes.max())


def _deltas(
    p: Parameters, model: Hamiltonian, starts: np.ndarray, kind: np.ndarray, steps: int = 20
) -> tuple[np.ndarray, ...]:
    """Exact and first-order neural, and analytic, energy changes (chains, P) of the same copies."""
    sampler = ParallelSampler(model, starts[:8], kind, p.n_parallel, "first_order", p.seed)
    for _ in range(steps):
        sampler.step()
    target, label, analytic = sampler.proposals()
    missing = (label < 0).numpy()
    with torch.no_grad():
        prices = [sampler.neural_delta(target, label, how) for how in ("exact", "first_order")]
    prices.append(analytic)
    return tuple(np.where(missing, np.nan, price.double().numpy()) for price in prices)
