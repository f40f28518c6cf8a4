"""The cell-sorting Hamiltonian with trained parameters, and the closure: its sum with a network.

Contact and volume energies are linear in counts of the lattice, so their energy here is a product
of counted statistics with parameters: exact, cheap, differentiable in the parameters and not in
the lattice (the sampler prices copies of this part exactly, see `sampling.py`). Contrastive
divergence fits of this energy alone are in `recovery.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._checks import contact_matrix, per_kind
from .energy import contact_counts, volumes
from .hamiltonian import SOFTPLUS_ONE, NeuralEnergy, as_kind, pair

OFFSET_SCALE = 1000.0  # official code: lets Adam's small steps move the constant far enough


def softplus_inverse(value: float | np.ndarray) -> Tensor:
    """x with softplus(x) = value, for value >= 0 (0 becomes a number whose softplus is 1e-9)."""
    value = torch.as_tensor(np.maximum(value, 1e-9), dtype=torch.float64)
    return (value + torch.log(-torch.expm1(-value))).float()


class CellSorting(nn.Module):
    """Contact and volume energy in the paper's parametrisation, with an optional external field.

    J = softplus(gamma) (J0 + J0^T) / 2 + b with J[0, 0] = 0, lambda = softplus(l), V*, and an
    offset 1000 o that lets a regulariser center energies and never changes the dynamics. Start:
    J0 uniform in [-1, 1], b = 2, softplus(gamma) = 1, lambda = lam, o = 0. Arguments take plain
    values, not values before softplus. lam and V_target: one number, or one for each kind with an
    ignored entry for medium. field_size: adds field[i] * coupling[kind], start 0 and 1 (official
    baseline). Raises ValueError for a negative lam or a V_target below 1.
    """

    def __init__(
        self,
        n_kinds: int = 2,
        V_target: float | Sequence[float] = 97.0,
        lam: float | Sequence[float] = 0.05,
        bias: float = 2.0,
        contact_norm: float = 0.25,
        field_size: int | Sequence[int] | None = None,
        seed: int = 0,
    ):
        super().__init__()
        per_kind("lam", lam, n_kinds + 1, 0.0)
        per_kind("V_target", V_target, n_kinds + 1, 1.0)
        self.n_kinds, self.contact_norm = n_kinds, float(contact_norm)
        draw = np.random.default_rng(seed).uniform(-1, 1, (n_kinds + 1, n_kinds + 1))
        self.J0 = nn.Parameter(torch.tensor(draw, dtype=torch.float32))
        self.gamma = nn.Parameter(torch.tensor(SOFTPLUS_ONE))
        self.bias = nn.Parameter(torch.tensor(float(bias)))
        self.raw_lam = nn.Parameter(softplus_inverse(np.asarray(lam, float)))
        self.V_target = nn.Parameter(torch.as_tensor(V_target, dtype=torch.float32))
        self.offset = nn.Parameter(torch.tensor(0.0))
        self.field = nn.Parameter(torch.zeros(pair(field_size))) if field_size else None
        self.coupling = nn.Parameter(torch.ones(n_kinds + 1)) if field_size else None

    @classmethod
    def from_values(
        cls,
        J: np.ndarray,
        lam: float | Sequence[float],
        V_target: float | Sequence[float],
        contact_norm: float = 0.25,
        field: np.ndarray | None = None,
        coupling: np.ndarray | None = None,
    ) -> CellSorting:
        """The energy with given J (K, K), lambda, V*, and field (H, W) with coupling (K,), if any.

        Raises ValueError, which names the pair, for an asymmetric J.
        """
        J = contact_matrix(J)
        size = None if field is None else np.shape(field)
        model = cls(len(J) - 1, V_target, lam, 0.0, contact_norm, field_size=size)
        with torch.no_grad():
            model.J0.copy_(torch.tensor(J))
            if field is not None:
                model.field.copy_(torch.as_tensor(field))
                model.coupling.copy_(torch.as_tensor(1.0 if coupling is None else coupling))
        return model

    @property
    def J(self) -> Tensor:
        """Contact energies (K, K), symmetric, J[0, 0] = 0."""
        J = F.softplus(self.gamma) * (self.J0 + self.J0.T) / 2 + self.bias
        corner = torch.zeros_like(J)
        corner[0, 0] = 1.0
        return J * (1 - corner)

    @property
    def lam(self) -> Tensor:
        """Volume weights (K,)."""
        return F.softplus(self.raw_lam).expand(self.n_kinds + 1)

    @property
    def kind_fields(self) -> Tensor | None:
        """External field of each kind (K, H, W), 0 for medium, or None."""
        if self.field is None:
            return None
        # A coupling of medium would only add a constant and shift the others.
        cells = (torch.arange(self.n_kinds + 1) > 0).float()
        return (cells * self.coupling)[:, None, None] * self.field

    def forward(self, frames: np.ndarray | Tensor, kind: Sequence[int] | Tensor) -> Tensor:
        """Energies (batch,) of frames (batch, H, W) with kinds `kind` (cells + 1,)."""
        frames, kind = np.asarray(frames), as_kind(kind, self.n_kinds)
        pairs = torch.from_numpy(contact_counts(frames, kind)).float()
        contact = (self.J[: pairs.shape[1], : pairs.shape[2]] * pairs).sum((1, 2))
        of_cell, V_target = kind[1:], self.V_target.expand(self.n_kinds + 1)
        excess = torch.from_numpy(volumes(frames, len(kind))[:, 1:]) - V_target[of_cell]
        energy = self.contact_norm * contact + (self.lam[of_cell] * excess**2).sum(1)
        if self.field is not None:
            kinds = kind[torch.from_numpy(frames).long()]
            energy = energy + self.kind_fields.gather(0, kinds).sum((1, 2))
        return energy + OFFSET_SCALE * self.offset


class Hybrid(nn.Module):
    """NH + closure: H = w_b H_basis + w_n H_neural (official start w_b = .25, w_n = 1).

    basis: a `CellSorting`; neural: any `NeuralEnergy`. train_basis=False freezes the parameters of
    the basis except its offset; train_weights=False freezes w_b and w_n.
    """

    def __init__(
        self,
        basis: CellSorting,
        neural: NeuralEnergy,
        w_b: float = 0.25,
        w_n: float = 1.0,
        train_basis: bool = True,
        train_weights: bool = True,
    ):
        super().__init__()
        if basis.n_kinds != neural.n_kinds:
            raise ValueError(f"basis has {basis.n_kinds} kinds but the network {neural.n_kinds}")
        self.basis, self.neural = basis, neural
        self.w_b = nn.Parameter(torch.tensor(float(w_b)), requires_grad=train_weights)
        self.w_n = nn.Parameter(torch.tensor(float(w_n)), requires_grad=train_weights)
        basis.requires_grad_(train_basis)
        basis.offset.requires_grad_(True)

    def forward(self, frames: np.ndarray | Tensor, kind: Sequence[int] | Tensor) -> Tensor:
        """Energies (batch,) of frames (batch, H, W) with kinds `kind` (cells + 1,)."""
        return self.w_b * self.basis(frames, kind) + self.w_n * self.neural(frames, kind)


Hamiltonian = CellSorting | NeuralEnergy | Hybrid


def parts(model: Hamiltonian) -> tuple[CellSorting | None, NeuralEnergy | None, float, float]:
    """(basis, network, weight of the basis, weight of the network) of any of the three models."""
    if isinstance(model, Hybrid):
        return model.basis, model.neural, model.w_b.item(), model.w_n.item()
    if isinstance(model, CellSorting):
        return model, None, 1.0, 0.0
    if isinstance(model, NeuralEnergy):
        return None, model, 0.0, 1.0
    raise ValueError(
        f"model is a {type(model).__name__}: allowed are CellSorting, Hybrid, NeuralEnergy"
    )
