"""The live part: a search tree that grows, beside the benches for prox, race and dual vectors.

`SearchBench` follows the parameters of the form. A search runs in a thread, can be stopped at any
time and goes on where it stopped. Pictures are pure functions in `drawings.py`, the other tabs are
in `benches.py`.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import panel as pn
from threadpoolctl import threadpool_limits

from workbench import theme
from workbench.explorer import Explorer
from workbench.steps import Step, Steps, run
from workbench.widgets.tree_view import Tree, TreeView

from . import drawings, study
from .benches import FLOW, Desk, DualBench, ProxBench, RaceBench, button, drawing, status_line
from .branch_and_bound import Result, Search

# What acts on the search, in the order of the form.
LIVE = (
    "data", "k", "lambda2", "M", "loss", "digits", "file", "n", "p", "rho", "snr", "width", "child",
    "gap", "time_limit", "max_nodes", "restart", "momentum", "node_tol", "node_max_iter", "tol",
    "max_iter", "seed",
)  # fmt: skip
READY = "Ready. A search can be stopped at any time and goes on from there."
DRAW_S = 0.15  # least time between two drawings of a growing tree


class SearchBench:
    """Branch and bound on the problem of the form: tree, bounds, coefficients."""

    def __init__(self, parameters: study.Parameters):
        self.parameters = parameters
        self.search: Search | None = None
        self._due = 0.0
        self._forgotten = False  # what still runs has been reset: none of it is wanted
        self.status = status_line()
        self.run_button = button("Run the search", self.start, 130, color="primary")
        self.stop_button = button("Stop", self.stop, 70, disabled=True)
        self.again = button("From the start", self.reset, 120)
        self.tree = TreeView(caption="Search tree")
        self.tree.param.watch(lambda event: self._draw_node(), "picked")
        self.bounds, self.node, self.coefficients = drawing(), drawing(), drawing()
        self.desk = Desk(
            self.status, self.stop_button, lambda: bool(self.bounds._models), self._ended
        )
        parameters.param.watch(self._on_parameters, list(LIVE))
        self.reset()

    def panel(self) -> pn.viewable.Viewable:
        """Buttons, the tree, and the pictures below."""
        return pn.Column(
            pn.FlexBox(self.run_button, self.stop_button, self.again, **FLOW), self.status,
            self.tree, pn.FlexBox(self.bounds, self.coefficients, self.node, **FLOW),
            sizing_mode="stretch_width", margin=(8, 0),
        )  # fmt: skip

    def reset(self) -> None:
        """Forget the tree."""
        self._forgotten = self.desk.jobs.busy
        self.desk.stop()
        self.search = None
        self.run_button.label = "Run the search"
        self.tree.show(_no_tree(), 0.0, 1.0)
        self.bounds.html = self.coefficients.html = self.node.html = ""
        self.status.object = READY

    def start(self) -> None:
        """Run the search, or go on with it."""
        self._forgotten = False
        self.desk.start(self._steps, self._take)

    def stop(self) -> None:
        """Stop; the gap proven so far stands."""
        self.desk.stop()

    def _on_parameters(self, *events: Any) -> None:
        if self.search is not None or self.desk.jobs.busy:
            self.reset()

    def _steps(self) -> Steps[Result]:
        p = type(self.parameters)(**self.parameters.to_papermill())  # as they are now
        if self.search is None or self.search.done:
            yield Step(0.0, "reading the data; compiling the first time")
            search = p.search(p.problem())
        else:
            search = self.search
            search.time_limit = search.seconds + p.time_limit
            search.max_nodes = search.solved + p.max_nodes
        with threadpool_limits(1, "blas"):
            yield Step(0.0, "root", search)
            return (yield from search.steps())

    def _take(self, data: Search | Result) -> None:
        if self._forgotten:
            return
        self.search = data.search if isinstance(data, Result) else data
        started = time.monotonic()
        if started > self._due:
            self.draw()
            took = time.monotonic() - started
            self._due = started + max(DRAW_S, 5 * took)  # a large tree takes a while to gather

    def _ended(self, how: str) -> None:
        if self._forgotten:
            self._forgotten, self.status.object = False, READY
            return
        if self.search is None:
            self.status.object = "Stopped before there was anything to show."
            return
        self.draw()
        self.status.object = drawings.verdict(self.search)
        self.run_button.label = "Run the search" if self.search.done else "Go on"

    def draw(self) -> None:
        """All pictures of the search as it is."""
        search = self.search
        found = search.result()
        top = found.upper if np.isfinite(found.upper) else 1.0
        low = max(search.nodes[0].lower, 0.0)
        self.tree.show(
            drawings.tree_of(search), low, top, [name[:24] for name in search.problem.names]
        )
        self.bounds.html = str(drawings.squeeze_picture(search))
        title = "Certified β" if found.certified else "Best β so far"
        picture = drawings.coefficients_picture(search.problem, found.beta, title)
        self.coefficients.html = str(picture)
        self._draw_node()

    def _draw_node(self) -> None:
        if self.search is not None:
            self.node.html = str(drawings.node_picture(self.search, self.tree.picked))


def _no_tree() -> Tree:
    return Tree(*(np.zeros(0) for _ in range(7)))


class Bench:
    """All tabs."""

    def __init__(self, parameters: study.Parameters):
        self.search, self.prox = SearchBench(parameters), ProxBench()
        self.race, self.dual = RaceBench(), DualBench()

    def panel(self) -> pn.viewable.Viewable:
        """The tabs."""
        return pn.Tabs(
            ("Search", self.search.panel()), ("Prox", self.prox.panel()),
            ("Race", self.race.panel()), ("Any dual vector", self.dual.panel()),
            sizing_mode="stretch_width", margin=0,
        )  # fmt: skip


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: new benches that follow `parameters`."""
    made = Bench(parameters)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> str:
    """The finished search of the parameters as HTML, for reports."""
    search = parameters.search(parameters.problem())
    with threadpool_limits(1, "blas"):
        run(search.steps())
    words = f'<p style="font:13px {theme.FONT}">{drawings.verdict(search)}</p>'
    return f"{drawings.still_search(search)}{words}"


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of sparse_glm; `pieces` are further arguments of `Explorer`."""
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, **({"live": live, "still": still, "only": [*LIVE, *rest]} | pieces))
