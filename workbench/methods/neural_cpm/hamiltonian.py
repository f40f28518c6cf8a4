"""The Neural Hamiltonian, the cell-sorting Hamiltonian as a torch module, and their sum.

A Hamiltonian maps lattices of cell identities to energies, one number per lattice. The
`NeuralHamiltonian` is a network that cannot tell identities apart: the same weights see every
cell, and cells only meet through a sum over all of them. This module holds the networks as the
paper writes them; `fast.py` has the same network as dense matrices, for small maps, and
`sampling.py` the copy rule. Nothing here samples or trains.

Conventions: `frames` (batch, height, width) integer identities with 0 for medium; `kind`
(cells + 1,) with kind[0] = 0; `own` (batch, cells + 1, height, width) relaxed identity masks, one
per label, medium included. K = n_kinds + 1 counts medium.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import _checks

SOFTPLUS_ONE = math.log(math.e - 1.0)  # softplus of this is 1
PADDINGS = ("circular", "zeros")

# Architectures of the official code. Zero padding and sides that the strides do not divide are
# theirs: the last rows and columns are then cut off, and translation symmetry is approximate.
PAPER_ARCHITECTURES = {
    "digits": {
        "size": 100,
        "stride": 3,
        "widths": (8, 16, 32, 32),
        "pools": (3, 2, 1, 1),
        "padding": "zeros",
    },
    "bipolar": {
        "size": 149,
        "stride": 5,
        "widths": (16, 32, 32, 64, 64, 64),
        "pools": (2, 1, 2, 1, 2, 1),
        "padding": "zeros",
    },
}


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """(rows, columns) from one number or two."""
    rows, columns = (value, value) if isinstance(value, int | np.integer) else value
    return int(rows), int(columns)


def as_kind(kind: Sequence[int] | Tensor, n_kinds: int) -> Tensor:
    """`kind` as a checked int64 tensor (cells + 1,); ValueError names the first wrong entry."""
    checked = _checks.as_kind(kind)
    if checked.max() > n_kinds:
        cell = int(checked.argmax())
        raise ValueError(f"kind[{cell}] = {checked[cell]}: this model has kinds 1 to {n_kinds}")
    return torch.from_numpy(checked.astype(np.int64))


def identity_masks(frames: np.ndarray | Tensor, n_labels: int) -> Tensor:
    """One-hot identities: frames (batch, H, W) -> masks (batch, n_labels, H, W), float32."""
    frames = torch.as_tensor(frames)
    return (frames[:, None] == torch.arange(n_labels)[:, None, None]).float()


class NeuralEnergy(nn.Module):
    """What every neural energy shares: labels to masks, gradients, energy changes of copies.

    A subclass writes `energy(own, kind)`. `forward(frames, kind)` takes whole lattices.
    """

    def __init__(self, size: int | Sequence[int], n_kinds: int):
        super().__init__()
        self.size, self.n_kinds = pair(size), n_kinds

    def energy(self, own: Tensor, kind: Tensor) -> Tensor:
        """Energies (batch,) of relaxed masks own (batch, cells + 1, H, W)."""
        raise NotImplementedError

    def masks(self, frames: np.ndarray | Tensor, kind: Tensor) -> Tensor:
        """Checked identity masks of frames (batch, H, W). ValueError for a wrong size."""
        if tuple(frames.shape[1:]) != self.size:
            raise ValueError(
                f"frames are {tuple(frames.shape)}: this model takes (n, *{self.size})"
            )
        return identity_masks(frames, len(kind))

    def forward(self, frames: np.ndarray | Tensor, kind: Sequence[int] | Tensor) -> Tensor:
        """Energies (batch,) of frames (batch, H, W) of cells with kinds `kind` (cells + 1,)."""
        kind = as_kind(kind, self.n_kinds)
        return self.energy(self.masks(frames, kind), kind)

    def prepared(self) -> NeuralEnergy:
        """The same function, ready for many evaluations with the present weights."""
        return self

    def gradient(self, frames: np.ndarray | Tensor, kind: Tensor) -> Tensor:
        """dH/d own (batch, cells + 1, H, W).

        Kind masks are linear in the identity masks, so this is G_id[n] + G_kind[kind[n]] of the
        first-order sampler: one field per label instead of two.
        """
        own = self.masks(frames, kind).requires_grad_()
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(self.energy(own, kind).sum(), own)
        return slope

    @torch.no_grad()
    def first_order(self, frames: Tensor, kind: Tensor, target: Tensor, label: Tensor) -> Tensor:
        """First-order change of H (batch, P) when site target[c, p] takes label[c, p] (ours).

        target: flat site numbers (batch, P). One backward pass serves all P copies.
        """
        slope = self.gradient(frames, kind).flatten(2)
        old = frames.flatten(1).gather(1, target).long()
        chain = torch.arange(len(frames))[:, None]
        return slope[chain, label, target] - slope[chain, old, target]

    @torch.no_grad()
    def exact(
        self, frames: Tensor, kind: Tensor, target: Tensor, label: Tensor, chunk: int = 16
    ) -> Tensor:
        """Exact change of H (batch, P) for the same copies, each made alone: P forward passes."""
        batch, copies = target.shape
        changed = frames.flatten(1).repeat_interleave(copies, 0)
        changed.scatter_(1, target.reshape(-1, 1), label.reshape(-1, 1).to(changed.dtype))
        changed = changed.view(batch * copies, *self.size)
        after = torch.cat([self(part, kind) for part in changed.split(chunk)])
        return after.view(batch, copies) - self(frames, kind)[:, None]


def convolution(in_width: int, out_width: int, kernel: int, padding: str) -> nn.Conv2d:
    """A convolution that keeps the size of the map."""
    return nn.Conv2d(in_width, out_width, kernel, padding=kernel // 2, padding_mode=padding)


def per_cell(function: nn.Module, x: Tensor) -> Tensor:
    """Apply a map-to-map module to every cell: (batch, cells, C, h, w) -> the same form."""
    y = function(x.flatten(0, 1))
    return y.view(*x.shape[:2], *y.shape[1:])


class NHLayer(nn.Module):
    """One Neural Hamiltonian layer (official code): phi cell by cell, a sum, psi cell by cell.

    (batch, cells, in_width, h, w) -> (batch, cells, width, h / pool, w / pool). edge_width 0 takes
    the sum away: cells no longer meet.
    """

    def __init__(self, in_width: int, width: int, edge_width: int, pool: int, kernel: int, padding):
        super().__init__()
        self.edge_width, self.pool = edge_width, pool
        if edge_width:
            self.down = nn.Conv2d(in_width, edge_width, 1)
            self.phi1 = convolution(edge_width, edge_width, kernel, padding)
            self.phi2 = convolution(edge_width, edge_width, kernel, padding)
            self.up = nn.Conv2d(edge_width, edge_width, 1)
        self.psi1 = convolution(in_width + edge_width, width, kernel, padding)
        self.psi2 = convolution(width, width, kernel, padding)
        self.skip = nn.Identity() if in_width == width else nn.Conv2d(in_width, width, 1)

    def phi(self, z: Tensor) -> Tensor:
        """What one cell tells the others: (b, in_width, h, w) -> (b, edge_width, h, w)."""
        return F.silu(self.phi2(F.silu(self.phi1(self.down(z)))))

    def forward(self, x: Tensor) -> Tensor:
        if self.edge_width:
            told = self.up(per_cell(self.phi, x).sum(1))
            seen = torch.cat([x, told[:, None].expand(-1, x.shape[1], -1, -1, -1)], 2)
        else:
            seen = x
        y = per_cell(lambda z: self.psi2(F.silu(self.psi1(z))), seen) + per_cell(self.skip, x)
        return per_cell(nn.MaxPool2d(self.pool), y) if self.pool > 1 else y


class ResidualBlock(nn.Module):
    """silu(f(x)) + skip(x), where skip is the identity or a linear change of width."""

    def __init__(self, function: nn.Module, skip: nn.Module):
        super().__init__()
        self.function, self.skip = function, skip

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(self.function(x)) + self.skip(x)


def convolution_block(in_width: int, width: int, pool: int, padding: str) -> nn.Module:
    """Two 3x3 convolutions with a skip, then a max-pool (official CNN and one-layer variant)."""
    inner = nn.Sequential(
        convolution(in_width, width, 3, padding), nn.SiLU(), convolution(width, width, 3, padding)
    )
    skip = nn.Identity() if in_width == width else nn.Conv2d(in_width, width, 1)
    return nn.Sequential(ResidualBlock(inner, skip), nn.MaxPool2d(pool))


def energy_head(in_width: int, width: int = 32) -> nn.Sequential:
    """Two residual blocks and a linear map to one energy: (batch, in_width) -> (batch, 1)."""
    change = nn.Identity() if in_width == width else nn.Linear(in_width, width)
    return nn.Sequential(
        ResidualBlock(nn.Linear(in_width, width), change),
        ResidualBlock(nn.Linear(width, width), nn.Identity()),
        nn.Linear(width, 1),
    )


def map_sizes(
    size: tuple[int, int], stride: tuple[int, int], pools: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Map sizes after the embedding and after each pool; ValueError if something does not fit."""
    sizes = [size]
    for step in (stride, *[(pool, pool) for pool in pools]):
        rows, columns = sizes[-1]
        if padding == "circular" and (rows % step[0] or columns % step[1]):
            raise ValueError(
                f"stride {stride} x pools {tuple(pools)} does not divide size {size}: circular "
                'padding needs that for exact translation symmetry (padding="zeros" does not)'
            )
        sizes.append((rows // step[0], columns // step[1]))
    if min(sizes[-1]) < 1:
        raise ValueError(f"stride {stride} and pools {tuple(pools)} leave nothing of size {size}")
    return sizes[1:]


class NeuralHamiltonian(NeuralEnergy):
    """The Neural Hamiltonian (paper section 4, official code).

    size: lattice, one number or (rows, columns). n_kinds: kinds without medium. stride: side of
    the embedded patches. widths, edge_widths, pools: one entry for each layer; edge_widths default
    to widths. padding: "circular" (ours: exact symmetry under shifts by stride x pools) or "zeros"
    (official). interactions=False: no sum over cells, and each cell sees only its own kind.
    tail_widths, tail_pools: convolutions on the summed map (the one-layer variant). seed: initial
    weights. Raises ValueError for sizes that do not fit.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        n_kinds: int = 2,
        stride: int | Sequence[int] = 6,
        widths: Sequence[int] = (8, 8),
        edge_widths: Sequence[int] | None = None,
        pools: Sequence[int] | None = None,
        padding: str = "circular",
        interactions: bool = True,
        kernel: int = 3,
        tail_widths: Sequence[int] = (),
        tail_pools: Sequence[int] | None = None,
        seed: int = 0,
    ):
        super().__init__(size, n_kinds)
        if padding not in PADDINGS:
            raise ValueError(f"padding = {padding!r}: allowed are {', '.join(PADDINGS)}")
        pools = tuple(pools) if pools is not None else (1,) * len(widths)
        edge_widths = tuple(edge_widths) if edge_widths is not None else tuple(widths)
        if not len(widths) == len(edge_widths) == len(pools) > 0:
            raise ValueError(
                "widths, edge_widths and pools need one entry for each layer: got "
                f"{tuple(widths)}, {edge_widths}, {pools}"
            )
        tail_pools = tuple(tail_pools) if tail_pools is not None else (1,) * len(tail_widths)
        self.stride, self.padding, self.interactions = pair(stride), padding, interactions
        self.map_sizes = map_sizes(self.size, self.stride, pools + tail_pools, padding)
        if not interactions:
            edge_widths = (0,) * len(widths)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Conv2d(2 + n_kinds, widths[0], self.stride, self.stride)
            self.layers = nn.ModuleList(
                NHLayer(*sizes, kernel, padding)
                for sizes in zip((widths[0], *widths), widths, edge_widths, pools, strict=False)
            )
            self.collect = nn.Conv2d(widths[-1], 32, 1)
            tail = zip((32, *tail_widths), tail_widths, tail_pools, strict=False)
            self.tail = nn.Sequential(*(convolution_block(*sizes, padding) for sizes in tail))
            self.head = energy_head(tail_widths[-1] if tail_widths else 32)

    def inputs(self, own: Tensor, kind: Tensor) -> Tensor:
        """Network input (batch, cells + 1, 1 + K, H, W): own mask, then one mask for each kind.

        Kind masks are own masks times the constant id-to-kind matrix, so gradients reach identity.
        Without interactions each is multiplied by the own mask: on a lattice, own x [kind matches].
        """
        id_to_kind = F.one_hot(kind, self.n_kinds + 1).to(own)
        if self.interactions:
            kinds = torch.einsum("bnhw,nk->bkhw", own, id_to_kind)
            kinds = kinds[:, None].expand(-1, own.shape[1], -1, -1, -1)
        else:
            kinds = own[:, :, None] * id_to_kind[:, :, None, None]
        return torch.cat([own[:, :, None], kinds], 2)

    def energy(self, own: Tensor, kind: Tensor) -> Tensor:
        """Energies (batch,) of relaxed masks own (batch, cells + 1, H, W)."""
        return self.energy_of_maps(per_cell(self.embedding, self.inputs(own, kind)))

    def energy_of_maps(self, x: Tensor) -> Tensor:
        """Energies (batch,) of embedded cells (batch, cells + 1, C, h, w)."""
        for layer in self.layers:
            x = layer(x)
        # The 1x1 map is linear, so cells are summed first and its bias counts once for each.
        total = F.conv2d(x.sum(1), self.collect.weight, x.shape[1] * self.collect.bias)
        return self.head(self.tail(total).sum((-2, -1)))[:, 0]

    def prepared(self) -> NeuralEnergy:
        """`fast.FastHamiltonian`: reads identities without masks, small maps by dense matrices."""
        from .fast import FastHamiltonian

        return FastHamiltonian(self)

    def forward(self, frames: np.ndarray | Tensor, kind: Sequence[int] | Tensor) -> Tensor:
        """Energies (batch,) of frames (batch, H, W), by the fast form."""
        return self.prepared()(frames, kind)
