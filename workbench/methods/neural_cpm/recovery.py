"""Fit the hand-written cell-sorting energy to still pictures by contrastive divergence.

The energy is linear in J and lambda, so its gradient is a difference of counts: contacts and volume
deviations in the data minus those in chains that start from the data and move for a few Monte Carlo
steps with the current parameters (CD-k; experiment 0 of the paper). Optionally V* and an external
field, one value a site times a coupling per kind, are learned too (the paper's second baseline).
Networks are trained elsewhere (`training`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...steps import Step, Steps, run
from ._checks import all_alive, as_frames, as_kind, contact_matrix, number
from .energy import contact_counts, volumes
from .ensemble import Ensemble


@dataclass(frozen=True)
class Recovery:
    """What a fit found, and how it got there.

    J (K, K), lam, V_target: mean of the last iterations. field (H, W) and coupling (K,) or None.
    names (P,): the scalar parameters, J01 .. lam (and V_target); parameters (iterations, P) along
    the way; data_statistics and chain_statistics (iterations, P): means of dH/dparameter, whose
    difference is the gradient (for a J: contact_norm times its contact count).
    """

    J: np.ndarray
    lam: float
    V_target: float
    field: np.ndarray | None
    coupling: np.ndarray | None
    names: tuple[str, ...]
    parameters: np.ndarray
    data_statistics: np.ndarray
    chain_statistics: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """The estimated J entries and lam, in the order of `names`."""
        return np.append(self.J[_pairs(len(self.J))], self.lam)


class Adam:
    """Adam on one array, with the learning rate given at each step (Kingma and Ba 2015)."""

    def __init__(self, betas: tuple[float, float]):
        self.betas, self.n, self.mean, self.square = betas, 0, 0.0, 0.0

    def step(self, gradient: np.ndarray, rate: float) -> np.ndarray:
        """The change of the parameters that descends along `gradient`."""
        first, second = self.betas
        self.n += 1
        self.mean = first * self.mean + (1 - first) * gradient
        self.square = second * self.square + (1 - second) * gradient**2
        scale = np.sqrt(self.square / (1 - second**self.n)) + 1e-8
        return -rate * self.mean / (1 - first**self.n) / scale


def fit_cellsort(frames: ArrayLike, kind: ArrayLike, V_target: float, **options) -> Recovery:
    """Fit J and lam to pictures; see `fit_cellsort_steps` for the options."""
    return run(fit_cellsort_steps(frames, kind, V_target, **options))


def fit_cellsort_steps(
    frames: ArrayLike,
    kind: ArrayLike,
    V_target: float,
    *,
    iters: int = 400,
    chains: int = 8,
    mcs: float = 10,
    persistent: bool = False,
    lr: float = 0.05,
    lr_end: float = 0.005,
    betas: tuple[float, float] = (0.9, 0.99),
    J_start: ArrayLike = 2.0,
    lam_start: float = 1.0,
    average: int = 40,
    fit_V_target: bool = False,
    fit_field: bool = False,
    contact_norm: float = 0.25,
    proposal: str = "uniform",
    seed: int = 0,
) -> Steps[Recovery]:
    """Contrastive divergence as steps; data of a step: the `Recovery` so far.

    frames (n, H, W) with the same cells of kinds `kind` (N + 1,); V_target: fixed, or the start
    with fit_V_target. Per iteration `chains` chains start from random frames (persistent: go on
    from where they were) and move for `mcs` MCS; Adam's rate falls geometrically from lr to lr_end.
    J starts at J_start + U(-1, 1), or at a matrix J_start, lam at lam_start; the estimate is the
    mean of the last `average` iterations. fit_field adds field[i] * coupling[kind], start 0 and 1.
    Defaults: claim 2.
    Raises ValueError for dead cells and bad settings; warns if a J cannot be identified.
    """
    frames, kind = as_frames(frames, "frames"), as_kind(kind)
    all_alive(frames, kind)
    at_least_one = {"iters": iters, "chains": chains, "average": average, "V_target": V_target}
    for name, value in at_least_one.items():
        number(name, value, 1)
    for name, value in {"mcs": mcs, "lr": lr, "lr_end": lr_end, "lam_start": lam_start}.items():
        number(name, value, 0, above=True)
    n_kinds = int(kind.max()) + 1
    _warn_of_lonely_kinds(kind, n_kinds)
    pairs = _pairs(n_kinds)
    names = (*(f"J{k}{m}" for k, m in zip(*pairs, strict=True)), "lam")
    names += ("V_target",) if fit_V_target else ()
    n_J = len(pairs[0])
    rng = np.random.default_rng(seed)
    if np.ndim(J_start) == 0:
        J_values = J_start + rng.uniform(-1, 1, n_J)
    else:
        J_values = contact_matrix(J_start)[pairs]
    values = np.concatenate([J_values, [lam_start, V_target]])
    field, coupling = np.zeros(frames.shape[1:]), np.ones(n_kinds)
    coupling[0] = 0.0
    adam, adam_field, adam_coupling = (Adam(betas) for _ in range(3))

    def statistics(lattices):
        """Means over lattices of dH/dparameter, of dH/dfield and of dH/dcoupling."""
        off = volumes(lattices, len(kind))[:, 1:] - values[-1]
        contacts = contact_norm * contact_counts(lattices, kind)[:, pairs[0], pairs[1]].mean(0)
        scalars = [*contacts, (off**2).sum(1).mean(), -2 * values[n_J] * off.sum(1).mean()]
        if not fit_field:
            return np.array(scalars), 0.0, 0.0
        share = np.stack([(kind[lattices] == k).mean(0) for k in range(n_kinds)])
        return np.array(scalars), np.tensordot(coupling, share, 1), (share * field).sum((1, 2))

    def result(last):
        J, first = np.zeros((n_kinds, n_kinds)), max(0, last - average)
        mean = history[first:last].mean(0)
        J[pairs] = J.T[pairs] = mean[:n_J]
        return Recovery(
            J, float(mean[n_J]), float(mean[-1]) if fit_V_target else float(V_target),
            field.copy() if fit_field else None, coupling.copy() if fit_field else None,
            names, *(series[:last, : len(names)] for series in (history, data, model)),
        )  # fmt: skip

    history, data, model = (np.zeros((iters, n_J + 2)) for _ in range(3))
    start = frames[rng.integers(len(frames), size=chains)]
    ensemble = Ensemble(
        start, kind, np.zeros((n_kinds, n_kinds)), lam_start, V_target,
        contact_norm=contact_norm, proposal=proposal, seed=seed,
    )  # fmt: skip
    for i in range(iters):
        batch = frames[rng.integers(len(frames), size=chains)]
        if not persistent:
            ensemble.restart(batch)
        J = np.zeros((n_kinds, n_kinds))
        J[pairs] = J.T[pairs] = values[:n_J]
        ensemble.J, ensemble.lam, ensemble.V_target = J, values[n_J], values[-1]
        if fit_field:
            ensemble.coupling, ensemble.field = coupling, field
        ensemble.step(mcs)
        data[i], data_field, data_coupling = statistics(batch)
        model[i], model_field, model_coupling = statistics(ensemble.frames)
        rate = lr * (lr_end / lr) ** (i / max(1, iters - 1))
        change = adam.step(data[i] - model[i], rate)
        values[: n_J + 1] += change[: n_J + 1]
        values[n_J] = max(values[n_J], 1e-4)  # a negative lambda would let cells evaporate
        if fit_V_target:  # steps in log V*, whose scale is that of the other parameters
            values[-1] = max(values[-1] * np.exp(change[-1]), 1.0)
        if fit_field:
            field = field + adam_field.step(data_field - model_field, rate)
            coupling = coupling + adam_coupling.step(data_coupling - model_coupling, rate)
            coupling[0] = 0.0
        history[i] = values
        yield Step((i + 1) / iters, f"iteration {i + 1} of {iters}", result(i + 1))
    return result(iters)


def rmse(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Root mean squared error over parameters, as they are (the paper's T = 1)."""
    return float(np.sqrt(np.mean((np.asarray(estimate) - truth) ** 2)))


def rmse_after_scalar(estimate: ArrayLike, truth: ArrayLike) -> float:
    """The same after the best common factor, since only H / T is seen (the paper's T = T*)."""
    estimate, truth = np.asarray(estimate, float), np.asarray(truth, float)
    return rmse(estimate * (estimate @ truth) / (estimate @ estimate), truth)


def _pairs(n_kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column indices of the free entries of J: the upper triangle without J00."""
    rows, columns = np.triu_indices(n_kinds)
    return rows[1:], columns[1:]


def _warn_of_lonely_kinds(kind: np.ndarray, n_kinds: int) -> None:
    counts = np.bincount(kind, minlength=n_kinds)
    for k in range(1, n_kinds):
        if counts[k] < 2:
            what = f"J of kind {k}" if counts[k] == 0 else f"J{k}{k}"
            warnings.warn(
                f"kind {k} has {counts[k]} cells in the data: {what} cannot be identified",
                stacklevel=4,
            )
