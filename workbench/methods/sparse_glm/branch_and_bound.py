"""Branch and bound: the best k features, with a proof.

A tree of nodes, each with features forced in and out; the relaxation bounds a node from below, a
beam search in it gives points, hence an upper bound. `Search` can be stopped after any node and
go on later; whatever it is stopped at, `lower` is a true bound and `certificate()` proves it.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from workbench.steps import Step, Steps, run

from . import _engine as engine
from .certificate import Certificate
from .problem import Problem
from .relaxation import ROOT, Node, Relaxed, relaxation_steps, statuses
from .supports import Fit, Refits, beam_search, upper_bound

OPEN, BRANCHED, PRUNED, FIXED = "open", "branched", "pruned", "all decided"
SHOW_S = 0.05  # least time between two steps
FLOAT32_LOSS = 1e-6  # of a bound, relative, for which a dual vector is stored in half the space


@dataclass
class Visited:
    """A node of the tree, in the order of creation.

    feature: what was decided to make it from its parent (-1 for the root), included: in or out.
    lower: its bound, that of the parent until it is solved; value: of its relaxation; at: order in
    which it was solved (-1: not yet); indices, entries: the relaxed coefficients that are not zero.
    """

    number: int
    parent: int
    depth: int
    feature: int
    included: bool
    node: Node
    lower: float
    status: str = OPEN
    value: float = np.inf
    iterations: int = 0
    at: int = -1
    indices: np.ndarray | None = None
    entries: np.ndarray | None = None
    w: np.ndarray | None = None  # (n,), as a rule float32: proves `lower`; dropped once branched

    def beta(self, p: int) -> np.ndarray:
        """Its relaxed coefficients (p,)."""
        beta = np.zeros(p)
        if self.indices is not None:
            beta[self.indices] = self.entries
        return beta


@dataclass(frozen=True)
class Result:
    """What a search knows: the best point, bounds on the optimum, and how it ended.

    beta (p,) with `support`; upper: its value; lower: no point in the box with k features is
    better; gap: relative to upper. Both are rounded to the safe side. box_active: features at the
    box, so that the optimum is that of the boxed problem.
    """

    beta: np.ndarray
    support: tuple[int, ...]
    upper: float
    lower: float
    gap: float
    ending: str
    nodes: int
    seconds: float
    cpu_seconds: float
    box_active: tuple[int, ...]
    search: Search

    @property
    def certified(self) -> bool:
        """Whether the gap that was asked for is proven."""
        return self.gap <= self.search.gap_wanted

    def certificate(self) -> Certificate:
        """The proof, to be kept and verified without the search."""
        return self.search.certificate()


class Search:
    """Branch and bound on one problem.

    gap: relative gap at which it is done. time_limit [s] counts time spent in `steps`, memory_mb
    what nodes hold. width, child: beam search in each node. tol and max_iter: of the root's
    relaxation, node_tol and node_max_iter: of the others; restart, momentum: of all.
    incumbent: an object with `get()` and `offer(value)`, the best value that others have found
    (see `subtrees.py`). node: the subtree.
    """

    def __init__(
        self, problem: Problem, *, gap: float = 1e-4, time_limit: float = 60.0,
        max_nodes: int = 100_000, memory_mb: float = 1000.0, width: int = 3, child: int = 6,
        tol: float = 1e-6, max_iter: int = 5000, node_tol: float = 1e-5, node_max_iter: int = 300,
        restart: bool = True, momentum: bool = True, incumbent: object | None = None,
        node: Node = ROOT,
    ):  # fmt: skip
        _check_numbers(gap=gap, time_limit=time_limit, max_nodes=max_nodes, memory_mb=memory_mb,
                       tol=tol, node_tol=node_tol)  # fmt: skip
        _check_counts(width=width, child=child, max_iter=max_iter, node_max_iter=node_max_iter)
        self.problem, self.refits = problem, Refits(problem)
        self.gap_wanted, self.time_limit, self.max_nodes = gap, time_limit, max_nodes
        self.memory_limit = memory_mb * 1e6
        self.width, self.child = width, child
        rules = {"restart": restart, "momentum": momentum}
        self.root_options = {"tol": tol, "max_iter": max_iter, **rules}
        self.node_options = {"tol": node_tol, "max_iter": node_max_iter, **rules}
        self.incumbent = incumbent
        # Any dual vector is valid: zero proves that nothing is below zero.
        root = Visited(0, -1, 0, -1, True, node, 0.0, w=np.zeros(problem.n, np.float32))
        self.nodes: list[Visited] = [root]
        self.best: Fit | None = None
        self.upper = np.inf
        # No point of the subtree is below this: the least bound over open and closed leaves.
        # Written between nodes only, so that another thread reads a true bound at any moment.
        self.lower = 0.0
        self.solved = 0
        self.seconds = self.cpu_seconds = 0.0
        self.ending = "not started"
        # Seconds, upper, lower and number of open nodes, after each node.
        self.history: list[tuple[float, float, float, int]] = []
        self._heap: list[tuple[float, int]] = [(0.0, 0)]
        self._closed = np.inf
        self._current: Visited | None = None

    # What is known ---------------------------------------------------------------------------

    @property
    def gap(self) -> float:
        """(upper - lower) / upper; infinite before there is a point."""
        if not np.isfinite(self.upper):
            return np.inf
        return (self.upper - self.lower) / max(self.upper, 1e-300)

    @property
    def done(self) -> bool:
        """Whether the gap is reached or nothing is left to branch on."""
        return self.gap <= self.gap_wanted or not (self._heap or self._current)

    @property
    def held(self) -> int:
        """Bytes that the nodes hold: relaxed coefficients and dual vectors, shared ones once."""
        duals = {id(v.w): v.w.nbytes for v in self.nodes if v.w is not None}
        sparse = sum(12 * len(v.indices) for v in self.nodes if v.indices is not None)
        return sum(duals.values()) + sparse

    def result(self) -> Result:
        """What is known now."""
        best = self.best or self.refits(())
        beta = best.beta(self.problem.p)
        at_box = tuple(j for j in best.support if abs(beta[j]) >= self.problem.M * (1 - 1e-9))
        upper = self.upper if self.best else upper_bound(self.problem, best)
        support = tuple(j for j in best.support if beta[j] != 0)
        gap = (upper - min(self.lower, upper)) / max(upper, 1e-300)
        return Result(beta, support, upper, min(self.lower, upper), gap, self.ending, self.solved,
                      self.seconds, self.cpu_seconds, at_box, self)  # fmt: skip

    def certificate(self) -> Certificate:
        """The proof of `lower` and `upper` as they are now, also of an unfinished search.

        Between two steps, not from another thread while one is made.
        """
        p, found = self.problem, self.result()
        leaves = [v for v in self.nodes if v.status != BRANCHED]
        return Certificate(
            p.loss, p.k, p.lambda2, p.M,
            tuple((v.node.inside, v.node.outside) for v in leaves),
            np.array([v.w for v in leaves]), found.support,
            found.beta[list(found.support)], found.upper, found.lower,
        )  # fmt: skip

    # The work --------------------------------------------------------------------------------

    def steps(self) -> Steps[Result]:
        """Go on until the gap, a limit or the caller ends it; data of a step: this search."""
        mark, shown, first = time.perf_counter(), 0.0, self.solved
        used = time.thread_time()
        begun = self.seconds
        self.ending = "stopped"
        while not self.done:
            limit = self._limit()
            if limit:
                self.ending = limit
                break
            for step in self._advance():
                now = time.perf_counter()
                self.seconds += now - mark
                self.cpu_seconds += time.thread_time() - used
                mark, used = now, time.thread_time()
                if step is not None or now - shown > SHOW_S:
                    shown = now
                    rate = (self.solved - first) / max(self.seconds - begun, 1e-9)
                    yield Step(self._share(), self._said(rate, step), self)
                    mark, used = time.perf_counter(), time.thread_time()
                if self.seconds > self.time_limit and self._current is not None:
                    break
        if self.done:
            self.ending = "certified" if self.gap <= self.gap_wanted else "nothing left to branch"
        self._note()
        return self.result()

    def _limit(self) -> str:
        if self.seconds >= self.time_limit:
            return f"time limit of {self.time_limit:g} s"
        if self.solved >= self.max_nodes:
            return f"limit of {self.max_nodes:,} nodes"
        if self.solved % 100 == 0 and self.held > self.memory_limit:
            return f"memory limit of {self.memory_limit / 1e6:g} MB"
        return ""

    def _share(self) -> float:
        """How far it is, by the logarithm of the gap, as nobody knows how many nodes remain."""
        if not 0 < self.gap < np.inf or not 0 < self.gap_wanted < 1:
            return 0.0
        return float(np.clip(np.log(self.gap) / np.log(self.gap_wanted), 0, 1))

    def _said(self, rate: float, step: Step | None) -> str:
        open_nodes = len(self._heap) + (self._current is not None)
        gap = f"gap {100 * self.gap:.3g} %" if np.isfinite(self.gap) else "no bound yet"
        text = f"{self.solved} nodes, {open_nodes} open, {gap}, {rate:.0f} nodes a second"
        return f"{text}; node: {step.message}" if step is not None and step.message else text

    def _advance(self) -> Iterable[Step | None]:
        """Solve the open node with the least bound; may be left between two steps."""
        visited = self._current
        if visited is None:
            visited = self.nodes[heapq.heappop(self._heap)[1]]
            if visited.lower >= self._target():
                self._close(visited, PRUNED)
                self._settle()
                yield None
                return
            self._current = visited
        node = visited.node
        _, free, k = statuses(self.problem, node)
        if k == 0 or len(free) <= k:
            self._decide(visited, free)
        else:
            relaxed = yield from self._relax(visited)
            self._bound(visited, relaxed)
            fit = beam_search(self.refits, self.width, self.child, *_sides(node))
            self._offer(fit)
            if visited.lower >= self._target():
                self._close(visited, PRUNED)
            else:
                self._branch(visited, fit, free)
        visited.at = self.solved
        self.solved += 1
        self._current = None
        self._settle()
        self._note()
        yield None

    def _relax(self, visited: Visited) -> Steps[Relaxed]:
        root = visited.parent < 0
        parent = self.nodes[max(visited.parent, 0)]
        if root:  # a point from the start, so that a search stopped here has one
            self._offer(beam_search(self.refits, self.width, self.child, *_sides(visited.node)))
        known = visited if visited.indices is not None or root else parent
        start = known.beta(self.problem.p)
        steps = relaxation_steps(
            self.problem, visited.node, start, target=self._target(),
            upper=np.inf if root else self.upper,
            **(self.root_options if root else self.node_options),
        )  # fmt: skip
        while True:
            try:
                step = next(steps)
            except StopIteration as stop:
                return stop.value
            if step.data.ending == "running":
                self._bound(visited, step.data)
                self._settle()
                yield step

    def _target(self) -> float:
        upper = self.upper
        if self.incumbent is not None:
            upper = min(upper, self.incumbent.get())
        return upper - self.gap_wanted * upper if np.isfinite(upper) else np.inf

    def _bound(self, visited: Visited, relaxed: Relaxed) -> None:
        visited.value, visited.iterations = relaxed.value, relaxed.iterations
        visited.indices = np.flatnonzero(relaxed.beta).astype(np.int32)
        visited.entries = relaxed.beta[visited.indices]
        self._prove(visited, relaxed.w)

    def _prove(self, visited: Visited, w: np.ndarray) -> None:
        """Take the bound that w proves as it is stored, if it is better than the parent's.

        float32, unless that costs more than a millionth, as it may when lambda2 is tiny.
        """
        p = self.problem
        status, free, k = statuses(p, visited.node)

        def proven(w: np.ndarray) -> float:
            w = engine.admissible(p.kind, w.astype(float), p.y)
            return engine.lower_bound(
                p.kind, p.XT, p.y, p.lambda2, p.M, status, free, k, p.norms, w
            )

        stored = w.astype(np.float32)
        lower, whole = proven(stored), proven(w)
        if whole - lower > FLOAT32_LOSS * whole:
            stored, lower = w.copy(), whole
        if lower > visited.lower:
            visited.lower, visited.w = lower, stored

    def _decide(self, visited: Visited, free: np.ndarray) -> None:
        """All is decided: one convex problem is left, whose own dual vector bounds it."""
        inside = visited.node.inside
        use = free if len(inside) < self.problem.k else ()
        fit = self.refits((*inside, *use))
        self._offer(fit)
        visited.value = fit.value
        visited.indices = np.array(fit.support, np.int32)
        visited.entries = fit.b
        self._prove(visited, self.refits.gradient(fit))
        self._close(visited, FIXED)

    def _offer(self, fit: Fit) -> None:
        if self.best is None or fit.value < self.best.value:
            upper = upper_bound(self.problem, fit)
            if upper < self.upper:
                self.best, self.upper = fit, upper
                if self.incumbent is not None:
                    self.incumbent.offer(upper)

    def _close(self, visited: Visited, status: str) -> None:
        visited.status = status
        self._closed = min(self._closed, visited.lower)

    def _branch(self, visited: Visited, fit: Fit, free: np.ndarray) -> None:
        j = self._branching_feature(visited, fit, free)
        inside, outside = visited.node.inside, visited.node.outside
        visited.status = BRANCHED
        for included, node in (
            (False, Node(inside, (*outside, j))), (True, Node((*inside, j), outside))
        ):  # fmt: skip
            made = Visited(len(self.nodes), visited.number, visited.depth + 1, j, included, node,
                           visited.lower, w=visited.w)  # fmt: skip
            self.nodes.append(made)
            if len(node.inside) == self.problem.k:  # one refit, at once
                self._decide(made, np.zeros(0, int))
                made.at = self.solved
            else:
                heapq.heappush(self._heap, (made.lower, made.number))
        visited.w = None

    def _branching_feature(self, visited: Visited, fit: Fit, free: np.ndarray) -> int:
        """The undecided feature of the node's point whose removal raises the loss most."""
        p = self.problem
        undecided = [i for i, j in enumerate(fit.support)
                     if j not in visited.node.inside and fit.b[i] != 0]  # fmt: skip
        if not undecided:
            relaxed = np.abs(visited.beta(p.p)[free])
            return int(free[relaxed.argmax()])
        rows = p.XT[list(fit.support)]
        u = fit.b @ rows
        losses = [engine.loss(p.kind, u - fit.b[i] * rows[i], p.y) - p.lambda2 * fit.b[i] ** 2
                  for i in undecided]  # fmt: skip
        return int(fit.support[undecided[int(np.argmax(losses))]])

    def _settle(self) -> None:
        found = min(self._closed, self.upper)
        if self._heap:
            found = min(found, self._heap[0][0])
        if self._current is not None:
            found = min(found, self._current.lower)
        self.lower = found

    def _note(self) -> None:
        open_nodes = len(self._heap) + (self._current is not None)
        self.history.append((self.seconds, self.upper, self.lower, open_nodes))


def _check_numbers(**numbers: float) -> None:
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not value >= 0:
            raise ValueError(f"{name} = {value!r} is not allowed: a number of at least 0")


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} = {value!r} is not allowed: a whole number of at least 1")


def _sides(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return node.inside, node.outside


def solve(problem: Problem, **options: object) -> Result:
    """The best k features of a problem with a proof; `options` are those of `Search`.

    A limit that is reached gives a result with an honest gap, never an error.
    """
    return run(Search(problem, **options).steps())


def warm_up() -> None:
    """Compile everything that is compiled, on two tiny problems."""
    from .problem import make_problem

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((12, 5)), rng.standard_normal(12)
    for loss, response in (("linear", y - y.mean()), ("logistic", np.where(y > 0, 1.0, -1.0))):
        solve(make_problem(X, response, loss, 2, 0.1, 1.0), gap=0.0)
