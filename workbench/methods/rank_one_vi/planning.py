"""Planning: Rank-One Modified Value Iteration (Kolarijani et al., 2025, Algorithm 1) and its peers.

Every planner is v <- v + G (T v - v) with a gain matrix G of its own: I for value iteration,
(I - gamma P)^-1 for policy iteration, I + gamma / (1 - gamma) 1 d' for R1-VI. A planner here is a
generator of `Iterate`s v_0, v_1, ... that never ends by itself; `plan` follows it to a tolerance.
Its first iterate raises ValueError unless 0 < gamma < 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from workbench.numerics import mdp as tables
from workbench.numerics.checks import choice
from workbench.numerics.mdp import MDP, bellman

D_MODES = ("power", "uniform", "exact", "point")


@dataclass(frozen=True)
class Iterate:
    """One iterate: value (n,) as reported, greedy policy (n,) of it, Bellman evaluations spent.

    d: (n,) the distribution that made it (R1-VI), None before the first step and elsewhere.
    """

    value: np.ndarray
    policy: np.ndarray
    operators: int
    d: np.ndarray | None = None


Planner = Iterator[Iterate]


def value_iteration(mdp: MDP, gamma: float, v: np.ndarray) -> Planner:
    """v <- T v."""
    tables.discount(gamma)
    operators = 0
    while True:
        t, policy = bellman(mdp, v, gamma)
        yield Iterate(v, policy, operators)
        v, operators = t, operators + 1


def midpoint(mdp: MDP, gamma: float, v: np.ndarray) -> Planner:
    """Value iteration that reports the middle of MacQueen's bracket (1966)."""
    before = None
    for iterate in value_iteration(mdp, gamma, v):
        value = iterate.value
        if before is not None:
            low, high = bracket(before, value, gamma)
            yield Iterate((low + high) / 2, iterate.policy, iterate.operators)
        else:
            yield iterate
        before = value


def bracket(before: np.ndarray, value: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Elementwise bounds (n,), (n,) on v* from two successive iterates of VI (fact B)."""
    change, factor = value - before, gamma / (1 - gamma)
    return value + factor * change.min(), value + factor * change.max()


def rank_one_value_iteration(
    mdp: MDP,
    gamma: float,
    v: np.ndarray,
    power_steps: int = 1,
    d_mode: str = "power",
    d: np.ndarray | None = None,
) -> Planner:
    """R1-VI: v <- T v + gamma / (1 - gamma) <d, T v - v> 1.

    d (n,) starts uniform, or as given. d_mode: it takes `power_steps` steps of the power method
    with the greedy chain before each update ("power", paper: 1), stays uniform, is that chain's
    stationary distribution ("exact"), or the point mass on state 0. ValueError for a bad d.
    """
    tables.discount(gamma)
    choice("d_mode", d_mode, D_MODES)
    d = _distribution(d, mdp.n)
    if d_mode == "point":
        d = np.eye(1, mdp.n)[0]
    operators, factor, used, before = 0, gamma / (1 - gamma), None, None
    moving = d_mode == "power" and power_steps > 0
    while True:
        if moving:
            t, policy, pushed = tables.bellman_push(mdp, v, gamma, d)
        else:
            t, policy = bellman(mdp, v, gamma)
        yield Iterate(v, policy, operators, used)
        if moving:
            d = pushed / pushed.sum()  # rounding only
            for _ in range(power_steps - 1):
                d = tables.push(mdp, policy, d)
                d /= d.sum()
        elif d_mode == "exact" and not np.array_equal(policy, before):
            P, _ = tables.chain(mdp, policy)
            d = tables.stationary_distribution(P.toarray() if sparse.issparse(P) else P)
            before = policy
        v, used, operators = t + factor * (d @ (t - v)), d, operators + 1


def rank_one_q_iteration(
    mdp: MDP, gamma: float, q: np.ndarray, power_steps: int = 1
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """R1-VI on action values: yields q (n, m) and d (n, m), the first ones first.

    The chain moves (s, a) -> (s', greedy action of s'); its matrix is never built.
    """
    tables.discount(gamma)
    d, factor, states = np.full(q.shape, 1 / q.size), gamma / (1 - gamma), np.arange(mdp.n)
    while True:
        yield q, d
        policy = q.argmax(1)
        for _ in range(power_steps):
            arrived = mdp.rows.T @ d.ravel()
            d = np.zeros_like(q)
            d[states, policy] = arrived / arrived.sum()
        t = tables.action_values(mdp, q.max(1), gamma)
        q = t + factor * np.vdot(d, t - q)


def policy_iteration(mdp: MDP, gamma: float, v: np.ndarray) -> Planner:
    """Howard's policy iteration from the greedy policy of v; keeps old actions on ties.

    An exact evaluation is counted as one Bellman evaluation, which flatters it.
    """
    tables.discount(gamma)
    states, operators = np.arange(mdp.n), 0
    _, policy = bellman(mdp, v, gamma)
    yield Iterate(v, policy, operators)
    while True:
        v, operators = tables.evaluate(mdp, policy, gamma), operators + 1
        q = tables.action_values(mdp, v, gamma)
        better = q.max(1) > q[states, policy] + tables.TIE * max(1.0, np.abs(q).max())
        policy = np.where(better, q.argmax(1), policy)
        yield Iterate(v, policy, operators)


def modified_policy_iteration(mdp: MDP, gamma: float, v: np.ndarray, sweeps: int = 20) -> Planner:
    """One greedy step, then `sweeps` evaluations of that policy (counted like Bellman ones)."""
    tables.discount(gamma)
    operators = 0
    while True:
        t, policy = bellman(mdp, v, gamma)
        yield Iterate(v, policy, operators)
        P, r = tables.chain(mdp, policy)
        v, operators = t, operators + 1 + sweeps
        for _ in range(sweeps):
            v = r + gamma * (P @ v)


def nesterov_value_iteration(mdp: MDP, gamma: float, v: np.ndarray) -> Planner:
    """Accelerated VI with a safeguard (Goyal & Grand-Clément); its extra operators are counted."""
    tables.discount(gamma)
    alpha, beta = 1 / (1 + gamma), (1 - np.sqrt(1 - gamma**2)) / gamma
    t, policy = bellman(mdp, v, gamma)
    yield Iterate(v, policy, 0)
    first = np.abs(t - v).max()
    operators, k, before = 1, 0, v
    v = t
    t, policy = bellman(mdp, v, gamma)
    while True:
        yield Iterate(v, policy, operators)
        k += 1
        operators += 1  # t, which the fall-back and the residual of v need
        z = v + beta * (v - before)
        proposed = z + alpha * (bellman(mdp, z, gamma)[0] - z)
        proposed_t, proposed_policy = bellman(mdp, proposed, gamma)
        operators += 1
        before = v
        if np.abs(proposed_t - proposed).max() <= ((1 + gamma) / 2) ** (k + 1) * first:
            v, t, policy = proposed, proposed_t, proposed_policy
        else:
            operators += 1
            v = t
            t, policy = bellman(mdp, v, gamma)


def anderson_value_iteration(mdp: MDP, gamma: float, v: np.ndarray, memory: int = 5) -> Planner:
    """Anderson acceleration with `memory` earlier residuals."""
    tables.discount(gamma)
    operators, images, residuals = 0, [], []
    while True:
        t, policy = bellman(mdp, v, gamma)
        yield Iterate(v, policy, operators)
        operators += 1
        images, residuals = [*images[-memory:], t], [*residuals[-memory:], t - v]
        D = np.array(residuals)
        gram = D @ D.T
        gram += 1e-12 * np.trace(gram) * np.eye(len(D))
        # Singular at convergence, where any weights will do.
        alpha = np.linalg.lstsq(gram, np.ones(len(D)), rcond=None)[0]
        total = alpha.sum()
        v = (alpha / total) @ np.array(images) if total and np.isfinite(total) else t


def anchored_value_iteration(mdp: MDP, gamma: float, v: np.ndarray) -> Planner:
    """v_k = beta_k v_0 + (1 - beta_k) T v_{k-1} with beta_k = 1 / sum_{i <= k} gamma^(-2 i)."""
    tables.discount(gamma)
    start, k = v, 0
    while True:
        t, policy = bellman(mdp, v, gamma)
        yield Iterate(v, policy, k)
        k += 1
        # The sum in closed form: its terms overflow after a few hundred iterates.
        beta = (1 - gamma**2) * gamma ** (2 * k) / (1 - gamma ** (2 * k + 2))
        v = beta * start + (1 - beta) * t


PLANNERS: dict[str, Callable[..., Planner]] = {
    "VI": value_iteration,
    "R1-VI": rank_one_value_iteration,
    "R1-VI (uniform d)": partial(rank_one_value_iteration, d_mode="uniform"),
    "midpoint": midpoint,
    "NVI": nesterov_value_iteration,
    "AVI-1": partial(anderson_value_iteration, memory=1),
    "AVI-5": anderson_value_iteration,
    "anchored VI": anchored_value_iteration,
    "MPI-20": modified_policy_iteration,
    "PI": policy_iteration,
}


@dataclass
class Plan:
    """How a planner went, over its iterates k = 0 .. K.

    errors (K + 1,): max-norm distance from v*; operators (K + 1,): Bellman evaluations spent;
    seconds (K + 1,): CPU time of the thread, without the bookkeeping; wrong (K + 1,): states
    whose greedy action is not optimal (ties aside); values (K + 1, n) and d (K + 1, n; NaN where
    there is none) if kept.
    iterations: the first k with an error of at most the tolerance, None if it was not reached;
    extrapolated: that k follows from the last error and the contraction by gamma, not from a run.
    """

    name: str
    errors: np.ndarray
    operators: np.ndarray
    seconds: np.ndarray
    wrong: np.ndarray
    iterations: int | None
    extrapolated: bool = False
    values: np.ndarray | None = None
    d: np.ndarray | None = None


def growing(
    planner: Planner,
    optimum: np.ndarray,
    best: np.ndarray,
    *,
    name: str = "",
    tolerance: float = 1e-6,
    most: int = 10_000,
    keep: int = 0,
    beyond: int = 0,
    every: int = 200,
) -> Iterator[Plan]:
    """Follow a planner until its error is at most `tolerance`, `beyond` iterates more, or `most`.

    At least one iteration is made. Yields the plan so far after each `every` iterates, and at the
    end. optimum (n,): v*. best (n, m): which actions are optimal, see `optimal_actions`. keep:
    values and d of that many first iterates are kept.
    """
    states = np.arange(len(optimum))
    rows, values, ds, reached, spent = [], [], [], None, 0.0
    for k in range(most + 1):
        started = time.thread_time()
        iterate = next(planner)
        spent += time.thread_time() - started
        error = np.abs(iterate.value - optimum).max()
        wrong = int((~best[states, iterate.policy]).sum())
        rows.append((error, iterate.operators, spent, wrong))
        if k < keep:
            values.append(iterate.value)
            ds.append(np.full(len(optimum), np.nan) if iterate.d is None else iterate.d)
        if reached is None and error <= tolerance:
            reached = k
        ended = k == most or (reached is not None and k >= max(reached + beyond, 1))
        if ended or k % every == every - 1:
            errors, operators, seconds, wrongs = np.array(rows).T
            yield Plan(
                name, errors, operators, seconds, wrongs.astype(int), reached,
                values=np.array(values) if keep else None, d=np.array(ds) if keep else None,
            )  # fmt: skip
        if ended:
            break
    planner.close()


def plan(planner: Planner, optimum: np.ndarray, best: np.ndarray, **options: Any) -> Plan:
    """`growing` with the same arguments, run to the end."""
    *_, last = growing(planner, optimum, best, **options)
    return last


def extrapolated(plan: Plan, gamma: float, tolerance: float) -> Plan:
    """A plan of VI that stopped early, with the iterations that its error has yet to fall.

    VI's last error is a constant over states (up to gamma |lambda_2|, long gone) that falls by
    gamma in each iteration. If it no longer falls, rounding is all that is left: the same plan.
    """
    if plan.iterations is not None or plan.errors[-1] > np.sqrt(gamma) * plan.errors[-2]:
        return plan
    more = np.ceil(np.log(tolerance / plan.errors[-1]) / np.log(gamma))
    return replace(plan, iterations=len(plan.errors) - 1 + int(more), extrapolated=True)


def optimal_actions(mdp: MDP, optimum: np.ndarray, gamma: float) -> np.ndarray:
    """(n, m) booleans: actions that are optimal, ties within rounding included."""
    q = tables.action_values(mdp, optimum, gamma)
    return q >= q.max(1, keepdims=True) - 1e-9 * max(1.0, np.abs(q).max())


def error_bound(before: np.ndarray, value: np.ndarray, gamma: float) -> float:
    """gamma / (1 - gamma) sp(v_k - v_{k-1}) of VI or R1-VI iterates: a stopping rule (fact C)."""
    change = value - before
    return gamma / (1 - gamma) * float(change.max() - change.min())


@dataclass(frozen=True)
class Solution:
    """value (n,) within `bound` of the optimum, a greedy policy (n,) of it, iterations spent."""

    value: np.ndarray
    policy: np.ndarray
    iterations: int
    bound: float


def solve(
    mdp: MDP,
    gamma: float,
    tolerance: float = 1e-6,
    start: np.ndarray | None = None,
    most: int = 100_000,
    **options: Any,
) -> Solution:
    """R1-VI until its computable error bound (fact C) is at most `tolerance`.

        solve(garnet(300, 5, 10), 0.99).value  # (300,)

    start: (n,), zeros by default. options: of `rank_one_value_iteration`. Raises ValueError for a
    bad gamma, start or d, RuntimeError after `most` iterations.
    """
    start = np.zeros(mdp.n) if start is None else np.asarray(start, float)
    if start.shape != (mdp.n,) or not np.isfinite(start).all():
        what = "not finite" if start.shape == (mdp.n,) else f"of shape {start.shape}"
        raise ValueError(f"start is {what}: expected {mdp.n} finite numbers, one for each state")
    planner = rank_one_value_iteration(mdp, gamma, start, **options)
    before = next(planner).value
    for k in range(1, most + 1):
        iterate = next(planner)
        bound = error_bound(before, iterate.value, gamma)
        if bound <= tolerance:
            return Solution(iterate.value, iterate.policy, k, bound)
        before = iterate.value
    raise RuntimeError(
        f"R1-VI is within {bound:.2g} after {most} iterations, not within {tolerance:g}: "
        "rounding, a periodic chain or several recurrent classes"
    )


def gain_matrices(P: np.ndarray, d: np.ndarray, gamma: float) -> dict[str, np.ndarray]:
    """Gains (n, n) of VI, of R1-VI with distribution d (n,) and of PI for one chain P (n, n)."""
    identity = np.eye(len(P))
    return {
        "VI": identity,
        "R1-VI": identity + gamma / (1 - gamma) * d[None, :],
        "PI": np.linalg.inv(identity - gamma * P),
    }


def error_matrix(P: np.ndarray, d: np.ndarray, gamma: float) -> np.ndarray:
    """M (n, n) with e_{k+1} = M e_k for R1-VI once the policy has settled (fact D)."""
    return gamma * P + gamma / (1 - gamma) * (d @ (gamma * P - np.eye(len(P))))[None, :]


def local_rate(mdp: MDP, policy: np.ndarray, gamma: float) -> float:
    """gamma |lambda_2| of the chain of a policy: the asymptotic rate of R1-VI (fact D)."""
    P, _ = tables.chain(mdp, policy)
    P = P.toarray() if sparse.issparse(P) else P
    return gamma * float(abs(tables.eigenvalues(P)[1])) if len(P) > 1 else 0.0


def _distribution(d: np.ndarray | None, n: int) -> np.ndarray:
    if d is None:
        return np.full(n, 1 / n)
    d = np.asarray(d, float)
    if d.shape != (n,) or not (d >= 0).all() or abs(d.sum() - 1) > tables.ROW_TOLERANCE:
        raise ValueError(f"d must be a distribution over {n} states: no negative entry, sum 1")
    return d
