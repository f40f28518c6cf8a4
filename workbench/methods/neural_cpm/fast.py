"""The Neural Hamiltonian on lattices of identities, fast (ours; it makes CPU training possible).

The embedding reads identities without masks, and since the change of its output by one copy is
known in closed form, a backward pass ends there and never touches the lattice. On small maps, a
3x3 convolution is faster as one dense matrix, and affine maps in a row are one matrix. This is not
another model: `hamiltonian.NeuralHamiltonian` holds the weights, and a test holds both equal.

Maps are flattened to (batch, cells, channels * sites).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._embedding import embed_labels, price_copies
from .hamiltonian import NeuralEnergy, NeuralHamiltonian, as_kind

LARGEST_MATRIX = 600  # sites * channels up to which dense matrices won (measured, one core)
LARGEST_CHUNK = 4_000_000  # numbers in the maps that one forward pass of `exact` holds


def is_small(model: NeuralHamiltonian) -> bool:
    """True if dense matrices are the faster form of this network."""
    sites = int(np.prod(model.map_sizes[0]))
    widest = max(layer.psi2.out_channels for layer in model.layers)
    return sites * widest <= LARGEST_MATRIX and not len(model.tail)


@lru_cache(32)
def shift_matrices(size: tuple[int, int], kernel: int, padding: str) -> Tensor:
    """(kernel * kernel, sites, sites): entry (k, p, q) counts how often tap k at p reads q."""
    rows, columns = size
    row, column = np.divmod(np.arange(rows * columns), columns)
    taps = np.arange(kernel * kernel)
    down, right = taps // kernel - kernel // 2, taps % kernel - kernel // 2
    r, c = row + down[:, None], column + right[:, None]
    inside = (r >= 0) & (r < rows) & (c >= 0) & (c < columns)
    inside |= padding == "circular"
    shift = np.zeros((len(taps), len(row), len(row)), np.float32)
    tap, site = np.nonzero(inside)
    shift[tap, site, (r % rows * columns + c % columns)[inside]] = 1.0
    return torch.from_numpy(shift)


@lru_cache(32)
def patches(
    size: tuple[int, int], map_size: tuple[int, int], stride: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """For each site of the lattice, flat: its patch (map site), and its place in the patch.

    Sites that zero padding cuts off have the extra place sh * sw, where all weights are zero.
    """
    (h, w), (sh, sw) = map_size, stride
    row, column = np.divmod(np.arange(np.prod(size)), size[1])
    seen = (row < h * sh) & (column < w * sw)
    patch = np.where(seen, row // sh * w + column // sw, 0)
    place = np.where(seen, row % sh * sw + column % sw, sh * sw)
    return torch.from_numpy(patch), torch.from_numpy(place)


class Affine:
    """x -> matrix x + bias on flattened maps: matrix (C_out * sites, C_in * sites)."""

    def __init__(self, matrix: Tensor, bias: Tensor):
        self.matrix, self.bias = matrix, bias

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.matrix, self.bias)


def dense(weight: Tensor, bias: Tensor | None, shifts: Tensor, before: nn.Module | None = None):
    """A convolution as an `Affine`, after the 1x1 convolution `before` if there is one.

    weight (out, in, k, k); shifts of `shift_matrices`. Exact for both paddings: of the bias of
    `before`, a tap outside a zero-padded map reads nothing.
    """
    n_taps, sites, _ = shifts.shape
    taps = weight.flatten(2)
    constant = taps.new_zeros(len(taps), 1) if bias is None else bias[:, None]
    if before is not None:
        outside = torch.einsum("oik,i->ok", taps, before.bias)
        constant = constant + outside @ shifts.sum(-1)
        taps = torch.einsum("oik,ij->ojk", taps, before.weight.flatten(1))
    matrix = (taps @ shifts.view(n_taps, -1)).view(*taps.shape[:2], sites, sites)
    matrix = matrix.transpose(1, 2).reshape(len(taps) * sites, -1)
    return Affine(matrix, constant.expand(-1, sites).flatten())


class FastLayer:
    """One NH layer as affine maps; built again after each change of weights."""

    def __init__(self, layer: nn.Module, size: tuple[int, int], shifts: Tensor):
        self.layer, self.size, self.edge = layer, size, bool(layer.edge_width)
        weight, width = layer.psi1.weight, layer.psi1.in_channels - layer.edge_width
        own = dense(weight[:, :width], layer.psi1.bias, shifts)
        self.psi2 = dense(layer.psi2.weight, layer.psi2.bias, shifts)
        self.first, self.n_told = own, 0
        if self.edge:
            told = dense(layer.phi1.weight, layer.phi1.bias, shifts, layer.down)
            # phi and psi read the same maps: one product for both.
            self.first = Affine(
                torch.cat([told.matrix, own.matrix]), torch.cat([told.bias, own.bias])
            )
            self.n_told = len(told.bias)
            self.phi2 = dense(layer.phi2.weight, layer.phi2.bias, shifts)
            self.meet = dense(weight[:, width:], None, shifts, layer.up)

    def hidden(self, x: Tensor) -> Tensor:
        """silu of psi1, (batch, cells, sites * C), of flattened maps x of the same form."""
        told, q = self.first(x).tensor_split((self.n_told,), -1)
        if self.edge:
            q = q + self.meet(F.silu(self.phi2(F.silu(told))).sum(1, keepdim=True))
        return F.silu(q)

    def skip(self, x: Tensor) -> Tensor:
        if isinstance(self.layer.skip, nn.Identity):
            return x
        maps = x.view(*x.shape[:-1], self.layer.skip.in_channels, -1)
        y = self.layer.skip.weight.flatten(1) @ maps + self.layer.skip.bias[:, None]
        return y.flatten(-2)

    def __call__(self, x: Tensor) -> Tensor:
        y = self.psi2(self.hidden(x)) + self.skip(x)
        if self.layer.pool == 1:
            return y
        maps = y.view(*x.shape[:2], -1, *self.size).flatten(0, 1)
        return F.max_pool2d(maps, self.layer.pool).view(*x.shape[:2], -1)

    def summed(self, x: Tensor) -> Tensor:
        """The same, summed over cells: psi2 is affine, so it runs once for each lattice."""
        if self.layer.pool != 1:
            return self(x).sum(1)
        y = F.linear(self.hidden(x).sum(1), self.psi2.matrix, x.shape[1] * self.psi2.bias)
        return y + self.skip(x).sum(1)


class FastHamiltonian(NeuralEnergy):
    """`NeuralHamiltonian` with its present weights, in dense matrices if that is faster.

    Differentiable in the weights. Takes frames only (no relaxed masks): `first_order` and `exact`
    as in `NeuralEnergy`.
    """

    def __init__(self, model: NeuralHamiltonian):
        super().__init__(model.size, model.n_kinds)
        self._model = [model]  # in a list, so that its parameters are not registered twice
        kernel = model.layers[0].psi1.kernel_size[0]
        self.fast_layers, shifts, last = [], None, None
        layers = model.layers if is_small(model) else ()
        for layer, size in zip(layers, model.map_sizes, strict=False):
            if size != last:
                shifts, last = shift_matrices(size, kernel, model.padding), size
            self.fast_layers.append(FastLayer(layer, size, shifts))
        self.patch, self.place = patches(self.size, model.map_sizes[0], model.stride)
        weight = model.embedding.weight.flatten(2).permute(1, 2, 0)
        self.own = F.pad(weight[0], (0, 0, 0, 1))  # (places + 1, C), the last row is zero
        self.kinds = F.pad(weight[1:], (0, 0, 0, 1))  # (K, places + 1, C)
        self.n_sites = int(np.prod(model.map_sizes[0]))
        tables = (self.patch, self.place, self.own, self.kinds, model.embedding.bias)
        self._tables = (*(table.detach().numpy() for table in tables), model.interactions)

    def embed(self, frames: Tensor, kind: Tensor) -> Tensor:
        """Embedded frames (batch, cells + 1, C * sites): a sum over the sites of each patch."""
        model = self._model[0]
        (h, w), (sh, sw) = model.map_sizes[0], model.stride
        labels = frames[:, : h * sh, : w * sw].reshape(-1, h, sh, w, sw)
        labels = labels.transpose(2, 3).reshape(len(frames), 1, h * w, sh * sw)
        places = sh * sw
        own = torch.zeros(len(frames), len(kind), h * w, places)
        own.scatter_(1, labels.long(), 1.0)
        if model.interactions:
            id_to_kind = F.one_hot(kind, self.n_kinds + 1).float()
            kinds = (id_to_kind.T @ own.flatten(2)).view(len(frames), -1, h * w, places)
            seen = (kinds @ self.kinds[:, :places]).sum(1, keepdim=True)
            x = own @ self.own[:places] + (seen + model.embedding.bias)
        else:
            x = own @ (self.own + self.kinds[kind])[:, :places] + model.embedding.bias
        return x.transpose(2, 3).flatten(2)

    def energy_of_maps(self, x: Tensor) -> Tensor:
        """Energies (batch,) of embedded frames."""
        model, n_cells = self._model[0], x.shape[1]
        if not self.fast_layers:
            return model.energy_of_maps(x.view(*x.shape[:2], -1, *model.map_sizes[0]))
        for layer in self.fast_layers[:-1]:
            x = layer(x)
        total = self.fast_layers[-1].summed(x)
        width = model.collect.in_channels
        sites = total.shape[-1] // width
        features = F.linear(
            total.view(len(total), width, sites).sum(2),
            model.collect.weight.flatten(1),
            n_cells * sites * model.collect.bias,
        )
        return model.head(features)[:, 0]

    def forward(self, frames: np.ndarray | Tensor, kind: Tensor) -> Tensor:
        """Energies (batch,) of frames (batch, H, W)."""
        frames, kind = torch.as_tensor(frames), as_kind(kind, self.n_kinds)
        if tuple(frames.shape[1:]) != self.size:
            raise ValueError(
                f"frames are {tuple(frames.shape)}: this model takes (n, *{self.size})"
            )
        return self.energy_of_maps(self.embed(frames, kind))

    def _maps(self, x: Tensor) -> np.ndarray:
        """Flattened maps (batch, cells, C * sites) as (batch, cells, C, sites), the same memory."""
        return x.view(*x.shape[:2], -1, self.n_sites).numpy()

    def _slope(self, x: Tensor) -> Tensor:
        """dH/dx of embedded frames x: one backward pass."""
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(self.energy_of_maps(x).sum(), x)[0].contiguous()

    @torch.no_grad()
    def gradient(self, frames: np.ndarray | Tensor, kind: Tensor) -> Tensor:
        """dH/d own (batch, cells + 1, H, W), see `NeuralEnergy.gradient`."""
        slope = self._slope(self.embed(torch.as_tensor(frames), kind))
        slope = slope.view(*slope.shape[:2], -1, self.n_sites).transpose(2, 3)[:, :, self.patch]
        own = (slope * self.own[self.place]).sum(-1)
        seen = slope.sum(1, keepdim=True) if self._model[0].interactions else slope
        own = own + (seen * self.kinds[kind][:, self.place]).sum(-1)
        return own.view(*own.shape[:2], *self.size)

    @torch.no_grad()
    def first_order(self, frames: Tensor, kind: Tensor, target: Tensor, label: Tensor) -> Tensor:
        """First-order change of H (batch, P); the gradient is read at the P targets only."""
        labels, kinds = frames.flatten(1).numpy(), kind.numpy()
        x = torch.empty(len(frames), len(kind), self.own.shape[1] * self.n_sites)
        embed_labels(
            labels, kinds, *self._tables, np.empty((self.own.shape[1], self.n_sites), np.float32),
            self._maps(x),
        )  # fmt: skip
        slope = self._slope(x)
        total, change = slope.sum(1, keepdim=True), torch.empty(target.shape)
        patch, place, own, of_kind, _, together = self._tables
        price_copies(
            self._maps(slope), self._maps(total)[:, 0], labels, kinds, patch, place, own, of_kind,
            together, target.numpy(), label.numpy(), change.numpy(),
        )  # fmt: skip
        return change

    @torch.no_grad()
    def exact(self, frames: Tensor, kind: Tensor, target: Tensor, label: Tensor) -> Tensor:
        """Exact change of H (batch, P): each copy changes one site of the embedded maps."""
        batch, copies = target.shape
        x = self.embed(frames, kind)
        chunk = max(1, min(64, LARGEST_CHUNK // x[0].numel()))
        old = frames.flatten(1).gather(1, target).long().flatten()
        patch, place = self.patch[target].flatten(), self.place[target].flatten()
        label, chain = label.flatten(), torch.arange(batch).repeat_interleave(copies)
        gain, loss = self.own[place], -self.own[place]
        of_new, of_old = self.kinds[kind[label], place], self.kinds[kind[old], place]
        shared = of_new - of_old
        if not self._model[0].interactions:
            gain, loss, shared = gain + of_new, loss - of_old, torch.zeros_like(gain)
        after = []
        for part in torch.arange(batch * copies).split(chunk):
            maps = x[chain[part]].view(len(part), x.shape[1], gain.shape[1], -1)
            row = torch.arange(len(part))
            maps[row, :, :, patch[part]] += shared[part][:, None]
            maps[row, label[part], :, patch[part]] += gain[part]
            maps[row, old[part], :, patch[part]] += loss[part]
            after.append(self.energy_of_maps(maps.flatten(2)))
        return torch.cat(after).view(batch, copies) - self.energy_of_maps(x)[:, None]
