"""R1-VI beside its peers on one MDP: time, iterations and the true error of what each returns.

QuantEcon, pymdptoolbox and mdpsolver come with the extra `peers`, jaxdp (by a co-author of the
paper) with the extra `jax`; a library that is absent is left out of the times and says so. All are
asked for the same tolerance, by the stopping rule that each has; making their problem is not timed.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from workbench.numerics import mdp as tables
from workbench.numerics.checks import choice
from workbench.numerics.mdp import MDP

from . import planning

# What a solver returns: the value (n,), the policy (n,), iterations if it says so.
Answer = tuple[np.ndarray, np.ndarray, int | None]
LIBRARIES = {
    "QuantEcon": "quantecon.markov", "pymdptoolbox": "mdptoolbox.mdp", "mdpsolver": "mdpsolver",
    "jaxdp": "jaxdp",
}  # fmt: skip
NOT_TIMED = (
    "Not timed: relative value iteration (it leaves a constant out by design) and Gauss-Seidel "
    "sweeps (which take seconds) of pymdptoolbox, and madupite, which pip alone does not install."
)


@dataclass(frozen=True)
class Peer:
    """One solver: CPU seconds (median), iterations, greatest error of V, share of right actions.

    All None if the library is not installed; iterations None if the solver does not tell them.
    """

    library: str
    algorithm: str
    seconds: float | None = None
    iterations: int | None = None
    error: float | None = None
    right: float | None = None


def compare_peers(
    problem: MDP | None = None, gamma: float = 0.99, tolerance: float = 1e-6, rounds: int = 5
) -> list[Peer]:
    """Every solver on `problem` (default: a dense Garnet(300, 5, 10)), in turns on one core."""
    problem = tables.garnet(300, 5, 10) if problem is None else problem
    optimum, _, _ = tables.policy_iteration(problem, gamma)
    best = planning.optimal_actions(problem, optimum, gamma)
    rows, times = {}, {}
    ready = {key: make(problem.dense(), gamma, tolerance) for key, make in _solvers().items()}
    with threadpool_limits(1, "blas"):
        for number in range(rounds + 1):  # the first one compiles
            for key, solve in ready.items():
                started = time.process_time()
                rows[key] = solve()
                if number:
                    times.setdefault(key, []).append(time.process_time() - started)
    found = []
    for (library, algorithm), (value, policy, iterations) in rows.items():
        error = float(np.abs(value - optimum).max())
        right = float(best[np.arange(problem.n), policy].mean())
        seconds = float(np.median(times[library, algorithm]))
        found.append(Peer(library, algorithm, seconds, iterations, error, right))
    return found + [Peer(name, "not installed") for name in LIBRARIES if load(name) is None]


def load(library: str) -> ModuleType | None:
    """A peer by the name in `LIBRARIES`, None if it is not installed."""
    choice("library", library, LIBRARIES)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old syntax in pymdptoolbox
            return importlib.import_module(LIBRARIES[library])
    except ImportError:
        return None


def _solvers() -> dict[tuple[str, str], Callable[[MDP, float, float], Callable[[], Answer]]]:
    every = {
        ("this package", "R1-VI"): _own,
        ("this package", "VI, midpoint of the bracket"): _own_midpoint,
        ("this package", "modified PI, 20 sweeps"): _own_modified,
        ("QuantEcon", "modified PI"): partial(quantecon, "mpi"),
        ("QuantEcon", "VI"): partial(quantecon, "vi"),
        ("QuantEcon", "PI"): partial(quantecon, "pi"),
        ("pymdptoolbox", "VI"): partial(toolbox, "ValueIteration"),
        ("pymdptoolbox", "modified PI"): partial(toolbox, "PolicyIterationModified"),
        ("pymdptoolbox", "PI"): partial(toolbox, "PolicyIteration"),
        ("mdpsolver", "modified PI"): partial(mdpsolver, "mpi"),
        ("mdpsolver", "VI"): partial(mdpsolver, "vi"),
        ("jaxdp", "R1-VI"): _jaxdp,
    }
    return {key: make for key, make in every.items() if key[0] not in LIBRARIES or load(key[0])}


def _own(problem: MDP, gamma: float, tolerance: float) -> Callable[[], Answer]:
    def solve() -> Answer:
        found = planning.solve(problem, gamma, tolerance)
        return found.value, found.policy, found.iterations

    return solve


def _own_midpoint(problem: MDP, gamma: float, tolerance: float) -> Callable[[], Answer]:
    def solve() -> Answer:
        planner, k = planning.value_iteration(problem, gamma, np.zeros(problem.n)), 0
        before = next(planner)
        while True:
            now, k = next(planner), k + 1
            low, high = planning.bracket(before.value, now.value, gamma)
            if (high - low)[0] / 2 <= tolerance:
                return (low + high) / 2, now.policy, k
            before = now

    return solve


def _own_modified(problem: MDP, gamma: float, tolerance: float) -> Callable[[], Answer]:
    def solve() -> Answer:
        planner = planning.modified_policy_iteration(problem, gamma, np.zeros(problem.n))
        for k, now in enumerate(planner):
            t, _ = tables.bellman(problem, now.value, gamma)
            low, high = planning.bracket(now.value, t, gamma)
            if (high - low)[0] / 2 <= tolerance:
                return (low + high) / 2, now.policy, k
        raise AssertionError("planners never end")

    return solve


def quantecon(method: str, problem: MDP, gamma: float, tolerance: float) -> Callable[[], Answer]:
    """`DiscreteDP` of QuantEcon with method "mpi", "vi" or "pi"."""
    process = load("QuantEcon").DiscreteDP(problem.R, problem.P, gamma)

    def solve() -> Answer:
        found = process.solve(method=method, epsilon=tolerance, max_iter=100_000)
        return found.v, found.sigma, int(found.num_iter)

    return solve


def toolbox(name: str, problem: MDP, gamma: float, tolerance: float) -> Callable[[], Answer]:
    """A class of pymdptoolbox by name."""
    P = np.ascontiguousarray(problem.P.transpose(1, 0, 2))
    options = {} if name == "PolicyIteration" else {"epsilon": tolerance}

    def solve() -> Answer:
        with contextlib.redirect_stdout(io.StringIO()):
            run = getattr(load("pymdptoolbox"), name)(P, problem.R, gamma, **options)
            run.run()
        return np.array(run.V), np.array(run.policy), int(run.iter)

    return solve


def mdpsolver(method: str, problem: MDP, gamma: float, tolerance: float) -> Callable[[], Answer]:
    """mdpsolver with algorithm "mpi" or "vi"; it does not tell its iterations."""
    model = load("mdpsolver").model()
    model.mdp(discount=gamma, rewards=problem.R.tolist(), tranMatWithZeros=problem.P.tolist())
    start = [0.0] * problem.n  # it would start at its last answer

    def solve() -> Answer:
        model.solve(algorithm=method, tolerance=tolerance, parallel=False, initValueVector=start)
        return np.array(model.getValueVector()), np.array(model.getPolicy()), None

    return solve


def _jaxdp(problem: MDP, gamma: float, tolerance: float) -> Callable[[], Answer]:
    steps = jaxdp_steps(problem, gamma)

    def solve() -> Answer:
        before = np.zeros(problem.n)
        for k, value in enumerate(steps(), 1):
            if planning.error_bound(before, value, gamma) <= tolerance:
                return value, tables.bellman(problem, value, gamma)[1], k
            before = value
        raise AssertionError("planners never end")

    return solve


def jaxdp_steps(problem: MDP, gamma: float) -> Callable[[], Any]:
    """`steps()` yields v_1, v_2, ... (n,) of jaxdp's `RankOneValueIteration` in 64 bits from 0."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jaxdp = load("jaxdp")
    P = np.moveaxis(problem.P, (0, 1, 2), (2, 0, 1))  # (action, next state, state)
    R = np.broadcast_to(problem.R.T[:, :, None], P.shape)  # (action, state, next state)
    made = jaxdp.MDP(
        transition=jax.numpy.asarray(P), reward=jax.numpy.asarray(R),
        initial=jax.numpy.asarray(problem.start), terminal=jax.numpy.zeros(problem.n),
    )  # fmt: skip
    planner = jaxdp.RankOneValueIteration(gamma=gamma)
    chexify = importlib.import_module("chex").chexify  # it checks values, which jit alone refuses
    update = chexify(jax.jit(planner.update), async_check=False)

    def steps() -> Any:
        state = planner.init(made)
        while True:
            state = update(made, state)
            yield np.asarray(state.v_val)

    return steps
