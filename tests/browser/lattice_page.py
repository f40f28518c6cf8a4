"""A page with a LatticeView of 256 x 256 sites on a toy simulation, and a small replay."""

import numpy as np
import panel as pn

from workbench.widgets.lattice_view import Frame, LatticeView
from workbench.widgets.player import FramePlayer

SIZE, CELLS = 256, 64


class Voters:
    """A voter model: each step, a random tenth of the sites copy the label to their right."""

    kinds = ["medium", "dark", "light"]
    kind = np.r_[0, 1 + np.arange(CELLS) % 2]

    def __init__(self):
        self.share = 0.1
        self.reset(0)

    def frame(self):
        return Frame(self.cell.copy(), self.kind, self.time)

    def reset(self, seed):
        self.random, self.time = np.random.default_rng(seed), 0
        side = SIZE // 8
        blocks = 1 + np.arange(CELLS).reshape(8, 8)
        self.cell = blocks.repeat(side, 0).repeat(side, 1)
        self.cell[:8] = 0
        return self.frame()

    def advance(self, n):
        for _ in range(n):
            copies = self.random.random(self.cell.shape, dtype=np.float32) < self.share
            source = np.roll(self.cell, self.random.integers(-1, 2, 2), (0, 1))
            self.cell = np.where(copies, source, self.cell)
            self.time += 1
        return self.frame()

    def paint(self, sites, kind, stroke):
        self.cell[sites[:, 0], sites[:, 1]] = 0 if kind == 0 else kind

    def kill(self, identity):
        if identity == 13:
            raise ValueError("cell 13 cannot be killed")
        self.cell[self.cell == identity] = 0


def build():
    source = Voters()
    view = LatticeView(
        source, speed=1, tools=["inspect", "paint:1", "erase", "kill"], time_unit="steps"
    )
    share = pn.widgets.FloatInput(name="share", value=0.1, start=0, end=1)
    share.param.watch(lambda event: view.do(lambda: setattr(source, "share", event.new)), "value")
    cells = np.stack([np.full((8, 8), k) for k in range(3)])
    replay = FramePlayer(cells, np.array([0, 1, 2]), unit="frames")
    return pn.Column(view, share, pn.pane.HTML(replay._repr_html_()))


build().servable()
