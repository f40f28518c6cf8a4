"""The cellular Potts model on n lattices at once: copy a neighbor's label, Metropolis test, repeat.

Lattices of one shape move independently, on threads, each with its own random numbers. Parameters
are plain attributes: set one, and the running simulation obeys it from its next step. The sampler
is part of the model: no proposal rule obeys detailed balance, so the stationary law is not
exp(-H/T) (see `stationary`). Sources: energy, hard rules and proposal rules of the paper and its
official code; Act model of Niculescu, Textor and de Boer (2015). Looking at single copies and
painting belong to one lattice: see `lattice.CPM`.
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.numerics.checks import choice

from . import energy as counted
from ._checks import (
    all_alive,
    array_of,
    as_frames,
    as_kind,
    contact_matrix,
    number,
    per_kind,
)
from ._kernels import RULES, advance, relist_all
from ._prices import N_THREADS, RING, Model, State, ring_table

# least values of what may be given once per kind (None: any finite number)
PER_KIND = {
    "lam": 0, "V_target": 1, "lam_P": 0, "P_target": 0, "lam_act": 0, "max_act": 1,
    "lam_ch": None, "mu": None, "secretion": None, "coupling": None, "connected": 0,
}  # fmt: skip
# stands for temperature 0: finite, as the kernels assume, and so large against rounding errors
# that a copy without a price is still accepted
COLD = 1e-9
ATTEMPTS_WORTH_A_THREAD = 5_000


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(N_THREADS, "neural_cpm")


class Ensemble:
    """n independent cellular Potts lattices that share kinds and parameters.

    frames: (n, H, W) identities, 0 = medium and 1..N; kind: (N + 1,) with kind[0] = 0; J: (K, K)
    symmetric with J[0, 0] = 0; lam, V_target: a number or one per kind (entry of medium ignored, as
    for every per-kind value). T: temperature, 0 = only downhill. contact_norm c: 1/4 (paper) or 1.
    lam_P, P_target: perimeter. field (H, W) with coupling per kind, and kind_fields (K, H, W) or
    (n, K, H, W), add up to the external field, all scaled by field_strength. connected: per kind,
    local connectivity. proposal: uniform, edges, border_target or border_source.
    Prices of a copy that are no part of H: lam_act and max_act (Act model); lam_ch with
    concentration (H, W) or (n, H, W), which per MCS diffuses, decays and is secreted;
    mu with direction d (N + 1, 2) or (n, N + 1, 2) in (row, column), -mu d . (target - source) for
    the extending cell; with center, of the same shapes, instead -mu d . (target - center) for the
    cell that gains the site and + for the one that loses it (Morpheus, experiment 2).
    Raises ValueError for bad input, in one line, at construction and at assignment.
    """

    def __init__(
        self,
        frames: ArrayLike,
        kind: ArrayLike,
        J: ArrayLike,
        lam: ArrayLike,
        V_target: ArrayLike,
        *,
        T: float = 1.0,
        contact_norm: float = 0.25,
        lam_P: ArrayLike | None = None,
        P_target: ArrayLike | None = None,
        field: ArrayLike | None = None,
        coupling: ArrayLike | None = None,
        kind_fields: ArrayLike | None = None,
        field_strength: float = 1.0,
        connected: ArrayLike = False,
        proposal: str = "uniform",
        lam_act: ArrayLike = 0.0,
        max_act: ArrayLike = 20,
        lam_ch: ArrayLike = 0.0,
        concentration: ArrayLike | None = None,
        diffusion: float = 0.0,
        decay: float = 0.0,
        secretion: ArrayLike = 0.0,
        mu: ArrayLike = 0.0,
        direction: ArrayLike | None = None,
        center: ArrayLike | None = None,
        seed: int = 0,
    ):
        frames, J = as_frames(frames), contact_matrix(J)
        kind = as_kind(kind, len(J))
        all_alive(frames, kind)
        set_plainly = super().__setattr__
        set_plainly("kind", kind)
        set_plainly("n_kinds", len(J))
        set_plainly("n_chains", len(frames))
        set_plainly("shape", frames.shape[1:])
        self.J, self.lam, self.V_target, self.T = J, lam, V_target, T
        self.contact_norm, self.connected, self.proposal = contact_norm, connected, proposal
        self.lam_P = 0.0 if lam_P is None else lam_P
        self.P_target = 0.0 if P_target is None else P_target
        self.field, self.kind_fields, self.field_strength = field, kind_fields, field_strength
        self.coupling = 1.0 if coupling is None else coupling
        self.lam_act, self.max_act, self.lam_ch, self.mu = lam_act, max_act, lam_ch, mu
        self.diffusion, self.decay, self.secretion = diffusion, decay, secretion
        self.time = 0.0
        self._relabel(frames)
        self._random = np.random.SeedSequence(seed).generate_state(self.n_chains, np.uint64)
        self._activity = self._concentration = self._direction = self._center = None
        if concentration is not None:
            self.concentration = concentration
        if direction is not None:
            self.direction = direction
        if center is not None:
            self.center = center

    def __setattr__(self, name: str, value: Any) -> None:
        """Check a parameter as it is set; the next use of the kernels sees it."""
        if not name.startswith("_") and name != "time":
            value = self._checked(name, value)
            super().__setattr__("_stale", True)
        super().__setattr__(name, value)

    def _checked(self, name: str, value: Any) -> Any:
        n, shape, n_kinds = self.n_chains, self.shape, self.n_kinds
        if name in PER_KIND:
            least = -np.inf if PER_KIND[name] is None else PER_KIND[name]
            return per_kind(name, value, n_kinds, least)
        if name == "J":
            J = contact_matrix(value)
            if len(J) != n_kinds:
                raise ValueError(f"J must stay ({n_kinds}, {n_kinds}), got {J.shape}")
            return J
        if name in ("T", "diffusion", "decay"):
            return number(name, value, 0)
        if name == "contact_norm":
            return number(name, value, 0, above=True)
        if name == "field_strength":
            return number(name, value)
        if name == "proposal":
            return choice(name, value, RULES)
        if name == "field":
            return None if value is None else array_of(name, value, shape, (n, *shape))
        if name == "kind_fields":
            allowed = (n_kinds, *shape), (n, n_kinds, *shape)
            return None if value is None else array_of(name, value, *allowed)
        if name == "concentration":
            return array_of(name, value, shape, (n, *shape))
        if name in ("direction", "center"):
            return array_of(name, value, (len(self.kind), 2), (n, len(self.kind), 2))
        known = [*PER_KIND, "J", "T", "diffusion", "decay", "contact_norm", "field_strength"]
        known += ["proposal", "field", "kind_fields", "concentration", "direction", "center"]
        choice("parameter", name, known)

    @property
    def frames(self) -> np.ndarray:
        """(n, H, W) int32: a copy of the lattices now."""
        height, width = self.shape
        return self._label.reshape(-1, height + 2, width + 2)[:, 1:-1, 1:-1].copy()

    @property
    def concentration(self) -> np.ndarray:
        """(n, H, W) float64: the chemical now; assign to replace it."""
        height, width = self.shape
        self._prepare()
        if self._concentration is None:
            return np.zeros((self.n_chains, height, width))
        return self._concentration[:, 0].reshape(-1, height + 2, width + 2)[:, 1:-1, 1:-1].copy()

    @concentration.setter
    def concentration(self, value: np.ndarray) -> None:
        value = np.broadcast_to(value, (self.n_chains, *self.shape))
        self._concentration = np.stack([_with_halo(value)] * 2, axis=1)

    @property
    def direction(self) -> np.ndarray | None:
        """(n, N + 1, 2) (row, column) vectors along which cells push; assign to replace them."""
        return self._direction

    @direction.setter
    def direction(self, value: np.ndarray) -> None:
        shape = (self.n_chains, len(self.kind), 2)
        # C order, or every other layout gets kernels of its own
        self._direction = np.array(np.broadcast_to(value, shape), order="C")

    @property
    def center(self) -> np.ndarray | None:
        """(n, N + 1, 2) (row, column) that motion is about; assign to keep up with the cells."""
        return self._center

    @center.setter
    def center(self, value: np.ndarray) -> None:
        shape = (self.n_chains, len(self.kind), 2)
        self._center = np.array(np.broadcast_to(value, shape), order="C")

    @property
    def acceptance(self) -> float:
        """Accepted copies per attempt between unlike sites in the last step (0 if none)."""
        accepted, unlike = self._counts.sum(axis=0)
        return accepted / unlike if unlike else 0.0

    def step(self, mcs: float = 1.0) -> None:
        """Move every lattice on by `mcs` Monte Carlo steps (fractions allowed).

        One MCS is H W attempts for `uniform` and `border_source` (the official code's count), and
        the equivalent of it for the other rules: 8 / #edges, or 1 / #border MCS per attempt. A
        lattice without border left is finished: its clock moves, nothing else.
        """
        state, model = self._prepare()
        self.time += number("mcs", mcs, 0)
        self._counts[:] = 0
        n, rule = self.n_chains, RULES[self.proposal]
        few = self.frames.size * mcs < ATTEMPTS_WORTH_A_THREAD
        workers = 1 if few else min(n, N_THREADS)
        if workers == 1:
            advance(state, model, rule, self.time, 0, n)
            return
        edges = np.linspace(0, n, workers + 1).astype(int).tolist()
        parts = [
            _threads().submit(advance, state, model, rule, self.time, first, last)
            for first, last in pairwise(edges)
        ]
        for part in parts:
            part.result()

    def volumes(self) -> np.ndarray:
        """(n, N + 1) int64: sites of each identity, kept up by the kernels."""
        return self._volume.copy()

    def perimeters(self) -> np.ndarray:
        """(n, N + 1) int64: pairs of a site of the cell and a neighbor outside it."""
        return counted.perimeters(self.frames, self.kind)

    def border_count(self) -> np.ndarray:
        """(n,) number of sites with a neighbor of another identity."""
        return counted.border(self.frames).sum((1, 2))

    def energy(self, terms: bool = False) -> np.ndarray | dict[str, np.ndarray]:
        """(n,) H, or its contact, volume, perimeter and field terms by name, counted anew."""
        values = counted.energy_terms(
            self.frames, self.kind, self.J, self.lam, self.V_target,
            contact_norm=self.contact_norm, lam_P=self.lam_P, P_target=self.P_target,
            fields=self._fields(),
        )  # fmt: skip
        return values if terms else sum(values.values())

    def copy(self) -> Ensemble:
        """An independent simulation in the same state, with the same random numbers to come."""
        return copy.deepcopy(self)

    def permute_kinds(self, rng: np.random.Generator) -> None:
        """Deal the kinds anew over the living cells of each lattice, by exchanging identities."""
        self._relabel(permute_identities(self.frames, rng, len(self.kind)))

    def restart(self, frames: ArrayLike) -> None:
        """Put other lattices of the same shape and cells in place; time and randomness go on."""
        frames = as_frames(frames, "frames")
        if frames.shape != (self.n_chains, *self.shape):
            raise ValueError(
                f"frames must have shape {(self.n_chains, *self.shape)}, got {frames.shape}"
            )
        all_alive(frames, self.kind)
        self._relabel(frames)

    def _relabel(self, frames: np.ndarray) -> None:
        """Put other labels on the lattices and count everything derived from them anew."""
        self._label = _with_halo(frames.astype(np.int32))
        self._volume = counted.volumes(frames, len(self.kind))
        if not hasattr(self, "_clock"):
            self._clock = np.zeros(self.n_chains)
            self._finished = np.zeros(self.n_chains, np.int64)
            self._counts = np.zeros((self.n_chains, 2), np.int64)
        self._listed_for = None
        self._stale = True

    def _fields(self) -> np.ndarray | None:
        """(1 or n, K, H, W) external energies, zero for medium, or None."""
        total = 0.0
        if self.field is not None:
            total = self.coupling[:, None, None] * self.field[..., None, :, :]
        if self.kind_fields is not None:
            total = total + self.kind_fields
        if np.ndim(total) == 0:
            return None
        total = self.field_strength * total.reshape(-1, self.n_kinds, *self.shape)
        total[:, 0] = 0.0
        return total

    def _prepare(self) -> tuple[State, Model]:
        """The kernels' view of labels and parameters, rebuilt after a change.

        Few combinations of optional arrays, so few kernels to compile: a motility term, or any
        optional term under a listed rule (whose time goes into its list), turns on every array.
        `warm.warm_up` compiles them all.
        """
        if not self._stale:
            return self._state, self._model
        (height, width), n, n_labels = self.shape, self.n_chains, len(self.kind)
        fields = self._fields()
        flow = self.diffusion, self.decay, *self.secretion
        listed = self.proposal != "uniform"
        rich = any(flow) or any(x.any() for x in (self.lam_act, self.lam_ch, self.mu))
        rich = rich or (listed and (fields is not None or self.lam_P.any()))
        outlined = rich or self.lam_P.any()
        if fields is None and rich:
            fields = np.zeros((1, self.n_kinds, height, width))
        if rich:
            if self._activity is None:
                self._activity = np.zeros(self._label.shape, np.int32)
            if self._concentration is None:
                self.concentration = np.zeros(self.shape)
            if self._direction is None:
                self.direction = np.zeros((n_labels, 2))
        about_center = np.full(self.n_kinds, self._center is not None)
        center = np.zeros((n, n_labels, 2)) if self._center is None else self._center
        sub_steps = max(1.0, np.ceil(4 * self.diffusion + self.decay)) if any(flow) else 0.0
        chemistry = np.array([self.diffusion, self.decay, sub_steps, *self.secretion])
        model = Model(
            shape=(height, width),
            offset=RING[:, 0] * (width + 2) + RING[:, 1],
            kind=self.kind,
            contact=self.contact_norm * self.J,
            volume=np.stack([self.lam, self.V_target]),
            perimeter=np.stack([self.lam_P, self.P_target]) if outlined else None,
            motility=np.stack(
                [self.lam_act, np.maximum(self.max_act, 1), self.lam_ch, self.mu, about_center]
            )
            if rich
            else None,
            chemistry=chemistry if rich else None,
            connected=self.connected > 0,
            loose=_LOOSE,
            inverse_T=1.0 / max(self.T, COLD),
        )
        size = (8 if self.proposal == "edges" else 1) * self._label.shape[1]
        if not listed:
            self._index = None
        elif self._listed_for != self.proposal:
            self._index = np.full((n, 2, size), -1, np.int32)
        state = State(
            label=self._label,
            volume=self._volume,
            perimeter=self.perimeters().reshape(n, -1) if outlined else None,
            activity=self._activity if rich else None,
            concentration=self._concentration if rich else None,
            direction=self._direction if rich else None,
            center=center if rich else None,
            fields=None if fields is None else _with_halo(fields),
            index=self._index,
            listed=np.zeros(n, np.int64) if self._listed_for != self.proposal else self._listed,
            random=self._random,
            clock=self._clock,
            finished=self._finished,
            counts=self._counts,
        )
        self._listed = state.listed
        if listed and self._listed_for != self.proposal:
            relist_all(state, model, RULES[self.proposal])
        self._listed_for = self.proposal
        self._state, self._model, self._stale = state, model, False
        return state, model


def permute_identities(
    frames: np.ndarray, rng: np.random.Generator, n_labels: int | None = None
) -> np.ndarray:
    """(n, H, W) or (H, W) lattices with the living cells' identities exchanged at random.

    With fixed kinds this deals the kinds anew over the cells (restart of chains in the paper).
    """
    lattices = frames[None] if frames.ndim == 2 else frames
    n_labels = int(frames.max()) + 1 if n_labels is None else n_labels
    dealt = np.empty_like(lattices)
    for i, lattice in enumerate(lattices):
        alive = np.flatnonzero(np.bincount(lattice.ravel(), minlength=n_labels)[1:]) + 1
        name = np.arange(n_labels, dtype=frames.dtype)
        name[alive] = rng.permutation(alive)
        dealt[i] = name[lattice]
    return dealt.reshape(frames.shape)


def _with_halo(values: np.ndarray) -> np.ndarray:
    """(..., H, W) to (..., (H + 2)(W + 2)) with mirrored borders."""
    pad = [(0, 0)] * (values.ndim - 2) + [(1, 1), (1, 1)]
    return np.pad(values, pad, mode="wrap").reshape(*values.shape[:-2], -1)


_LOOSE = ring_table()
