"""The networks that the Neural Hamiltonian is compared with (official code).

`ConvolutionalHamiltonian` has no symmetry of identities: each label is its own input channel. The
other two are corners of the Neural Hamiltonian's architecture: one NH layer followed by a CNN on
the summed map, and a graph network in which a cell is one flat vector. All are `NeuralEnergy`s, so
they sample and train like the Neural Hamiltonian.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .hamiltonian import (
    NeuralEnergy,
    NeuralHamiltonian,
    convolution_block,
    energy_head,
    map_sizes,
    pair,
)


class ConvolutionalHamiltonian(NeuralEnergy):
    """A plain CNN on the stacked one-hot identities and kinds of all cells (official baseline).

    n_cells: number of cells without medium; the network is bound to it. widths, pools: blocks of
    two 3x3 convolutions. Exchanging two identities changes the energy.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        n_cells: int,
        n_kinds: int = 2,
        stride: int = 3,
        widths: Sequence[int] = (16, 16, 32, 32, 64, 64, 128),
        pools: Sequence[int] = (1, 2, 1, 2, 1, 2, 1),
        padding: str = "zeros",
        seed: int = 0,
    ):
        super().__init__(size, n_kinds)
        if len(widths) != len(pools):
            raise ValueError(f"widths and pools differ in length: {len(widths)} and {len(pools)}")
        map_sizes(self.size, pair(stride), pools, padding)
        self.n_labels = n_cells + 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            channels = self.n_labels + n_kinds + 1
            self.embedding = nn.Conv2d(channels, widths[0], stride, stride)
            blocks = zip((widths[0], *widths), widths, pools, strict=False)
            self.blocks = nn.Sequential(*(convolution_block(*sizes, padding) for sizes in blocks))
            self.collect = nn.Conv2d(widths[-1], 64, 1)
            self.head = energy_head(64)

    def energy(self, own: Tensor, kind: Tensor) -> Tensor:
        """Energies (batch,) of relaxed masks own (batch, cells + 1, H, W)."""
        if own.shape[1] != self.n_labels:
            raise ValueError(
                f"this CNN was built for {self.n_labels - 1} cells, not {own.shape[1] - 1}"
            )
        kinds = torch.einsum("bnhw,nk->bkhw", own, F.one_hot(kind, self.n_kinds + 1).to(own))
        maps = self.collect(self.blocks(self.embedding(torch.cat([own, kinds], 1))))
        return self.head(maps.sum((-2, -1)))[:, 0]


def one_layer_hamiltonian(
    size: int | Sequence[int],
    n_kinds: int = 2,
    stride: int = 3,
    width: int = 8,
    pool: int = 3,
    tail_widths: Sequence[int] = (32, 64, 128),
    tail_pools: Sequence[int] = (1, 2, 2),
    padding: str = "zeros",
    seed: int = 0,
) -> NeuralHamiltonian:
    """One NH layer, then a CNN on the map summed over cells (official, experiment 1)."""
    return NeuralHamiltonian(
        size,
        n_kinds,
        stride,
        (width,),
        pools=(pool,),
        padding=padding,
        tail_widths=tail_widths,
        tail_pools=tail_pools,
        seed=seed,
    )


def graph_hamiltonian(
    size: int | Sequence[int],
    n_kinds: int = 2,
    widths: Sequence[int] = (32, 32, 16, 8),
    seed: int = 0,
) -> NeuralHamiltonian:
    """The graph network: a cell is its whole lattice as one vector (official, experiment 1).

    An embedding patch as large as the lattice is that linear map, and layers with 1x1 kernels on
    the one remaining site are message passing between all cells.
    """
    return NeuralHamiltonian(
        size, n_kinds, pair(size), widths, padding="zeros", kernel=1, seed=seed
    )
