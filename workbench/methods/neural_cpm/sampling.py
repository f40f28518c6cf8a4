"""The parallel approximate kernel: many copies a step, priced by a network, for batches of chains.

Per step and chain, P border sites without replacement are sources, each with one unlike neighbor as
target. All changes of H are computed against the same state, accepted independently, and written
(official code). The analytic part is always exact; the network's part is exact or to first order.
The error against the serial rule grows with P over the number of border sites. The serial rules
are in `lattice.py`; neither this kernel nor they obey detailed balance.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from workbench.numerics.checks import choice
from workbench.numerics.threads import one_thread
from workbench.steps import Step, Steps, run, together

from . import _parallel
from ._checks import number
from .closure import CellSorting, Hamiltonian, parts
from .ensemble import Ensemble
from .fast import is_small
from .hamiltonian import NeuralHamiltonian, as_kind

DELTAS = ("first_order", "exact")
CHUNK = 8  # chains that move together; fixed, so that results do not depend on the threads


def analytic_values(basis: CellSorting | None, weight: float, n_kinds: int) -> dict[str, Any]:
    """`weight` times the basis energy as parameters of `Ensemble`; zeros without a basis."""
    if basis is None:
        return {"J": np.zeros((n_kinds + 1, n_kinds + 1)), "lam": 0.0, "V_target": 1.0}
    with torch.no_grad():
        fields = basis.kind_fields
        return {
            "J": weight * basis.contact_norm * basis.J.double().numpy(),
            "lam": weight * basis.lam.double().numpy(),
            "V_target": basis.V_target.expand(n_kinds + 1).double().numpy(),
            "kind_fields": None if fields is None else weight * fields.double().numpy(),
        }


class ParallelSampler:
    """Chains that move by the parallel kernel under a model whose weights may change meanwhile.

    model: `CellSorting`, a neural energy or `Hybrid`. frames (n, H, W): one start for each chain,
    cells with kinds `kind` (cells + 1,). n_parallel: proposals P. delta: "first_order" or "exact"
    network prices. Each chain has its own random stream, so a seed gives the same samples for any
    number of threads. Call `refresh` after a change of weights. Temperature is 1, absorbed in H.
    """

    def __init__(
        self,
        model: Hamiltonian,
        frames: np.ndarray,
        kind: Sequence[int],
        n_parallel: int = 40,
        delta: str = "first_order",
        seed: int | Sequence[int] = 0,
    ):
        self.delta = choice("delta", delta, DELTAS)
        number("n_parallel", n_parallel, 1)
        self.model = model
        basis, self.network, w_b, self.w_n = parts(model)
        self.n_kinds = (basis or self.network).n_kinds
        self.kind = as_kind(kind, self.n_kinds)
        values = analytic_values(basis, w_b, self.n_kinds)
        # The weights carry contact_norm already.
        self.chains = Ensemble(
            frames,
            self.kind.numpy(),
            contact_norm=1.0,
            proposal="border_source",
            seed=seed,
            **values,
        )
        if self.network is not None and self.chains.shape != self.network.size:
            raise ValueError(f"frames are {self.chains.shape} but the network {self.network.size}")
        n = self.chains.n_chains
        self._target = np.zeros((n, n_parallel), np.int64)
        self._label = np.zeros((n, n_parallel), np.int64)
        self._delta = np.zeros((n, n_parallel))
        self._warned = False
        self.refresh()

    def refresh(self, frames: np.ndarray | None = None, weights: bool = True) -> None:
        """Take over changed weights, unless told that they are the same, and other frames (n, H, W)
        if given.
        """
        if weights:
            basis, _, w_b, self.w_n = parts(self.model)
            for name, value in analytic_values(basis, w_b, self.n_kinds).items():
                setattr(self.chains, name, value)
        if frames is not None:
            self.chains.restart(frames)
        if self.network is not None and weights:
            with torch.no_grad():
                self.prepared = self.network.prepared()
        self.state, self.compiled = self.chains._prepare()
        self.state.counts[:] = 0
        # The chains' labels as the network reads them: a view, so it is always up to date.
        height, width = self.chains.shape
        labels = torch.from_numpy(self.state.label).view(-1, height + 2, width + 2)
        self._seen = labels[:, 1:-1, 1:-1]

    @property
    def small(self) -> bool:
        """True if the network is small enough to run on one thread."""
        return not isinstance(self.network, NeuralHamiltonian) or is_small(self.network)

    @property
    def frames(self) -> np.ndarray:
        """A copy of the present frames (n, H, W), int32."""
        return self.chains.frames

    @property
    def acceptance(self) -> float:
        """Accepted share of all proposals since the last `refresh`."""
        return self.chains.acceptance

    def proposals(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Draw proposals: target (n, P) flat sites, label (n, P) or -1, analytic delta (n, P)."""
        n, most = self._target.shape
        least = int(self.state.listed.min())
        if least < most and not self._warned:
            self._warned = True
            message = (
                f"n_parallel = {most} is more than the {least} border sites: taking all of them"
            )
            warnings.warn(message, stacklevel=3)
        _parallel.propose(self.state, self.compiled, 0, n, self._target, self._label, self._delta)
        return tuple(torch.from_numpy(x) for x in (self._target, self._label, self._delta))

    def neural_delta(self, target: torch.Tensor, label: torch.Tensor, delta: str) -> torch.Tensor:
        """Weighted network price (n, P), by "exact" or "first_order"; 0 without a network."""
        if self.network is None:
            return torch.zeros(target.shape)
        price = self.prepared.exact if delta == "exact" else self.prepared.first_order
        return self.w_n * price(self._seen, self.kind, target, label.clamp(min=0))

    def step(self) -> bool:
        """One parallel step of every chain; False when no chain has a border left."""
        if not self.state.listed.any():
            return False
        target, label, delta = self.proposals()
        if self.network is not None:
            with one_thread(self.small):
                delta += self.neural_delta(target, label, self.delta)
        n = len(self._target)
        _parallel.accept(self.state, self.compiled, 0, n, self._target, self._label, self._delta)
        return True


@dataclass
class Samples:
    """What `sample` returns.

    frames (n, H, W): the last state of each chain. record (m, n, H, W): states after `recorded`
    (m,) steps, the start included. acceptance: accepted share of all proposals. steps: steps done,
    fewer than asked if no border was left.
    """

    frames: np.ndarray
    record: np.ndarray
    recorded: np.ndarray
    acceptance: float
    steps: int


def _chunk_steps(sampler: ParallelSampler, steps: int, record_every: int) -> Steps[Samples]:
    """Advance the chains of one sampler."""
    record, recorded, done = [sampler.frames], [0], 0
    with one_thread(sampler.small):
        sampler.refresh()
    while done < steps and sampler.step():
        done += 1
        if record_every and done % record_every == 0:
            record.append(sampler.frames)
            recorded.append(done)
        yield Step(done / steps, f"step {done} of {steps}")
    return Samples(sampler.frames, np.array(record), np.array(recorded), sampler.acceptance, done)


def sample_steps(
    model: Hamiltonian,
    frames: np.ndarray,
    kind: Sequence[int],
    steps: int = 400,
    n_parallel: int = 40,
    delta: str = "first_order",
    seed: int = 0,
    record_every: int = 0,
    workers: int | None = None,
) -> Steps[Samples]:
    """Advance a chain from each of `frames` (n, H, W) by `steps` parallel steps.

    record_every: keep the frames each that many steps (0: the start only). workers: threads for
    the chunks of `CHUNK` chains (None: one each); they change no result. See `ParallelSampler`.
    """
    number("steps", steps, 0)
    samplers = [
        ParallelSampler(model, frames[i : i + CHUNK], kind, n_parallel, delta, (seed, i))
        for i in range(0, len(frames), CHUNK)
    ]
    jobs = [partial(_chunk_steps, sampler, steps, record_every) for sampler in samplers]
    chunks = yield from together(jobs, workers)
    longest = max(chunks, key=lambda chunk: chunk.steps)
    missing = [len(longest.record) - len(chunk.record) for chunk in chunks]
    records = [
        np.concatenate([chunk.record, np.repeat(chunk.frames[None], n, 0)])
        for chunk, n in zip(chunks, missing, strict=True)
    ]
    counts = sum(sampler.state.counts.sum(0) for sampler in samplers)
    return Samples(
        np.concatenate([chunk.frames for chunk in chunks]),
        np.concatenate(records, axis=1),
        longest.recorded,
        float(counts[0] / max(1, counts[1])),
        longest.steps,
    )


def sample(
    model: Hamiltonian, frames: np.ndarray, kind: Sequence[int], *rest: Any, **options: Any
) -> Samples:
    """`sample_steps` with the same arguments, run to the end."""
    return run(sample_steps(model, frames, kind, *rest, **options))
