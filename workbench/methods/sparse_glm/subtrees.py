"""One search on many machines: the subtrees of the first branchings, as dask tasks.

The tree is grown until it has as many open nodes as wanted; each becomes a task, and tasks share
the best value found so far, so that what one finds prunes the others. The parts are put together
into one certificate. A sweep over (k, lambda2, M) needs none of this: see `workbench sweep`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .branch_and_bound import OPEN, Search
from .certificate import Certificate
from .problem import Problem
from .relaxation import Node
from .supports import Refits, upper_bound

SHARED = "sparse-glm-incumbent"


class SharedValue:
    """The best value that any task has found, kept by the dask scheduler."""

    def __init__(self, name: str, every: int = 20):
        self.name, self.every, self._asked, self._known = name, every, 0, np.inf

    def _variable(self) -> Any:
        from distributed import Variable

        return Variable(self.name)

    def get(self) -> float:
        """The best value; asks the scheduler once in a while."""
        if self._asked % self.every == 0:
            self._known = min(self._known, float(self._variable().get(timeout="10s")))
        self._asked += 1
        return self._known

    def offer(self, value: float) -> None:
        """Tell the others, if it is better than what they know."""
        # Two tasks may cross: a lost update costs pruning only, never correctness.
        if value < float(self._variable().get(timeout="10s")):
            self._variable().set(float(value))
        self._known = min(self._known, value)


@dataclass(frozen=True)
class Parted:
    """What a parted search found; certificate proves lower <= optimum <= upper."""

    certificate: Certificate
    nodes: int
    tasks: int

    @property
    def gap(self) -> float:
        """Relative to upper."""
        c = self.certificate
        return (c.upper - c.lower) / max(c.upper, 1e-300)


def _task(problem: Problem, node: Node, name: str, options: dict[str, Any]) -> dict[str, Any]:
    from workbench.steps import run

    search = Search(problem, node=node, incumbent=SharedValue(name), **options)
    run(search.steps())
    leaves = [v for v in search.nodes if v.status != "branched"]
    return {
        "leaves": [(v.node, v.lower, v.w) for v in leaves],
        "support": search.best.support if search.best else (),
        "nodes": search.solved,
    }


def solve_parted(problem: Problem, client: Any, depth: int = 2, **options: Any) -> Parted:
    """Search with about 2^depth dask tasks of `client` (dask.distributed); options of `Search`.

    Raises what a task raised.
    """
    import uuid

    from distributed import Variable

    first = Search(problem, **options)
    while not first.done and len(first._heap) < 2**depth and not first._limit():
        for _ in first._advance():
            pass
    name = f"{SHARED}-{uuid.uuid4().hex}"
    variable = Variable(name, client=client)
    variable.set(float(first.upper))
    leaves = [(v.node, v.lower, v.w) for v in first.nodes if v.status not in (OPEN, "branched")]
    open_nodes = [v for v in first.nodes if v.status == OPEN]
    data = client.scatter(problem, broadcast=True)
    futures = [client.submit(_task, data, v.node, name, options, pure=False) for v in open_nodes]
    answers = client.gather(futures)
    variable.delete()
    supports = [first.best.support if first.best else ()]
    for visited, answer in zip(open_nodes, answers, strict=True):
        # What was known of the node before the task also bounds what the task left.
        leaves += [
            (node, lower, w) if lower >= visited.lower else (node, visited.lower, visited.w)
            for node, lower, w in answer["leaves"]
        ]
        supports.append(answer["support"])
    refits = Refits(problem)
    best = min((refits(s) for s in supports), key=lambda fit: fit.value)
    upper = upper_bound(problem, best)
    lower = min(upper, *(lower for _, lower, _ in leaves))
    certificate = Certificate(
        problem.loss, problem.k, problem.lambda2, problem.M,
        tuple((node.inside, node.outside) for node, _, _ in leaves),
        np.array([w for _, _, w in leaves]), best.support, best.b, upper, lower,
    )  # fmt: skip
    nodes = first.solved + sum(answer["nodes"] for answer in answers)
    return Parted(certificate, nodes, len(open_nodes))
