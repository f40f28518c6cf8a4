"""The energy of one aggregate, by hand: exchange two cells, see what each energy says.

An interactive picture of a trained NH + closure: a click chooses a cell, a second one exchanges
the kinds of both; colors show the network's first-order price of giving a site to the chosen cell.
It uses the stored weights of a full run, so it needs no training first.
"""

from __future__ import annotations

import base64
import html
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import panel as pn
import torch

from workbench.reports import STILL
from workbench.theme import Html, table_html
from workbench.widgets.lattice_view import Frame, LatticeView

from .closure import Hybrid
from .ensemble import permute_identities
from .generators import simulate
from .hamiltonian import NeuralEnergy
from .sampling import ParallelSampler
from .weights import load_weights

KINDS = ("medium", "kind 1", "kind 2")


def energies(
    model: Hybrid, cell: np.ndarray, kind: np.ndarray, network: NeuralEnergy | None = None
) -> dict[str, float]:
    """Cell-sorting part, network part and sum of H for one lattice (H, W).

    network: that of the model, ready for many evaluations.
    """
    with torch.no_grad():
        basis = float(model.w_b * model.basis(cell[None], kind))
        neural = float(model.w_n * (network or model.neural)(cell[None], kind))
    return {"cell sorting": basis, "network": neural, "sum": basis + neural}


def price_map(model: Hybrid, cell: np.ndarray, kind: np.ndarray, identity: int) -> np.ndarray:
    """(H, W) first-order network price of giving each site to `identity`; nan where it has it."""
    kinds = torch.as_tensor(kind, dtype=torch.int64)
    slope = model.neural.gradient(torch.as_tensor(cell[None]), kinds)[0].detach().numpy()
    prices = float(model.w_n) * (
        slope[identity] - np.take_along_axis(slope, cell[None].astype(np.int64), 0)[0]
    )
    return np.where(cell == identity, np.nan, prices)


class Aggregate:
    """One bi-polar aggregate under a model, as a source of frames: sampled, clicked, exchanged."""

    kinds: Sequence[str] = KINDS

    def __init__(self, model: Hybrid, n_parallel: int = 40, seed: int = 0):
        self.model, self.n_parallel = model, n_parallel
        self.chosen = 0
        self.reset(seed)

    def reset(self, seed: int) -> Frame:
        """A fresh aggregate of the generator, with two poles."""
        data = simulate("bipolar", 1, seed)
        self.kind = data.kind
        self._sampler = ParallelSampler(
            self.model, data.frames, self.kind, self.n_parallel, "first_order", seed
        )
        self._rng = np.random.default_rng(seed)
        self.steps, self.chosen, self.before = 0, 0, None
        return self.frame()

    @property
    def cell(self) -> np.ndarray:
        """(H, W) identities now."""
        return self._sampler.frames[0]

    def energies(self) -> dict[str, float]:
        """The parts of H now."""
        return energies(self.model, self.cell, self.kind, self._sampler.prepared)

    def frame(self) -> Frame:
        """The lattice, with the price map of the chosen cell."""
        field = None
        if self.chosen:
            field = price_map(self.model, self.cell, self.kind, self.chosen)
        return Frame(
            self.cell, self.kind, self.steps, field,
            field_name=f"price for cell {self.chosen}", field_unit="energy",
            field_range=None if field is None else _symmetric(field),
        )  # fmt: skip

    def advance(self, n: int) -> Frame:
        """`n` parallel steps of the model's own dynamics."""
        for _ in range(n):
            self._sampler.step()
        self.steps += n
        return self.frame()

    def permute(self) -> None:
        """Deal the kinds anew over the cells."""
        self.before = self.energies()
        self._sampler.refresh(permute_identities(self._sampler.frames, self._rng), weights=False)

    def click(self, row: int, column: int) -> None:
        """Choose the cell there; if one of the other kind was chosen, exchange the two."""
        cell = self.cell
        identity = int(cell[row, column])
        if identity == 0:
            self.chosen = 0
        elif self.chosen and self.kind[self.chosen] != self.kind[identity]:
            self.before = self.energies()
            names = np.arange(len(self.kind), dtype=np.int32)
            names[[self.chosen, identity]] = identity, self.chosen
            self._sampler.refresh(names[cell][None], weights=False)
            self.chosen = 0
        else:
            self.chosen = identity


def _symmetric(field: np.ndarray) -> tuple[float, float]:
    reach = float(np.nanmax(np.abs(field))) or 1.0
    return -reach, reach


def energy_table(now: dict[str, float], before: dict[str, float] | None) -> Html:
    """H by part now, and before the last exchange if there was one."""
    header = ["part of H", "now"] + (["before", "change"] if before else [])
    rows = [
        [html.escape(part), f"{value:.2f}"]
        + ([f"{before[part]:.2f}", f"<b>{value - before[part]:+.2f}</b>"] if before else [])
        for part, value in now.items()
    ]
    return table_html(header, rows)


class EnergyLandscape(pn.viewable.Viewer):
    """Picture 5: what each part of H says about exchanging two cells."""

    def __init__(self, seed: int = 0):
        super().__init__()
        self.aggregate = Aggregate(load_weights(), seed=seed)
        self.view = LatticeView(
            self.aggregate, field_colors="diverging", colorings=["kind", "field"], seed=seed,
            caption="Bi-polar aggregate: click two cells of different kinds to exchange them",
            time_unit="parallel steps", speed=2,
        )  # fmt: skip
        self.table = pn.pane.HTML(min_height=150, sizing_mode="stretch_width")
        self.hint = pn.pane.HTML(sizing_mode="stretch_width")
        self.permute = pn.widgets.Button(label="Permute kinds", width=130)
        self.permute.on_click(lambda event: self.view.do(self.aggregate.permute))
        self.view.param.watch(self._clicked, "selected")
        self.view.on_frame.append(lambda frame: self._refresh())
        self._refresh()

    def _clicked(self, event: Any) -> None:
        if self.view.selected:
            row, column = self.view.selected
            self.view.do(lambda: self.aggregate.click(row, column))

    def _refresh(self) -> None:
        source = self.aggregate
        now = source.energies()
        self.table.object = str(energy_table(now, source.before))
        self.hint.object = (
            f"Cell {source.chosen} ({KINDS[source.kind[source.chosen]]}) is chosen. Click a cell "
            "of the other kind to exchange them. The last choice of <em>Color by</em> maps prices."
            if source.chosen
            else "Click a cell."
        )

    def __panel__(self) -> pn.viewable.Viewable:
        side = pn.Column(self.hint, self.table, self.permute, width=400)
        return pn.FlexBox(pn.Column(self.view, width=400), side, flex_wrap="wrap")

    def still(self) -> Html:
        """For a report: the aggregate, its energies, and what exchanging two cells does to them."""
        source = self.aggregate
        first, second = (int(np.flatnonzero(source.kind == k)[0]) for k in (1, 2))
        picture = self.view.still(scale=8)
        for identity in (first, second):
            row, column = np.argwhere(source.cell == identity)[0]
            source.click(int(row), int(column))
        now = source.energies()
        return Html(
            f"{_image(picture, 'A bi-polar aggregate')}"
            f"<p>Energies after cells {first} and {second} exchanged their kinds:</p>"
            f"{energy_table(now, source.before)}"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if os.environ.get(STILL):
            return {"text/html": str(self.still()), "text/plain": "Energy landscape"}
        return super()._repr_mimebundle_(include, exclude)


def _image(png: bytes, text: str) -> str:
    data = base64.b64encode(png).decode()
    return f'<img alt="{text}" src="data:image/png;base64,{data}" style="max-width:100%">'


def prices(n_parallel: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Exact and first-order network prices, and analytic ones, of `n_parallel` proposals."""
    source = Aggregate(load_weights(), n_parallel, seed)
    target, label, analytic = source._sampler.proposals()
    real = (label >= 0).numpy()
    found = [source._sampler.neural_delta(target, label, how) for how in ("exact", "first_order")]
    return tuple(price.detach().double().numpy()[real] for price in (*found, analytic))
