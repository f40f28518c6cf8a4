"""Tabular Markov decision processes: the type, Bellman operators, exact solvers and examples.

P is dense, (n, m, n), or sparse, CSR of shape (n * m, n) with row s * m + a; R is (n, m); rewards
are maximized. Discounted functions take `gamma`, finite-horizon ones `horizon`. Loops over states
are compiled. Ties are broken in favor of the first action unless said otherwise.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import lapack

from .checks import AVERAGE_REWARD, choice

ROW_TOLERANCE = 1e-8
LARGEST_DENSE_BYTES = 1_000_000_000
TIE = 1e-12  # relative: an old action this close to the best is kept by policy iteration


@dataclass(frozen=True, eq=False)
class MDP:
    """A finite MDP with n states and m actions; checked when made.

    P: (n, m, n), or CSR (n * m, n). R: (n, m) expected rewards. start: (n,) distribution of the
    first state (default: state 0). grid: (rows, columns) if states are the cells of a grid.
    terminal: (n,) states where an episode ended before `gymnasium_table` closed the table.
    Raises ValueError, in one line, for shapes, a dense P above a gigabyte, rows that are no
    distributions, and rewards that are not finite.
    """

    P: np.ndarray | sparse.csr_array
    R: np.ndarray
    start: np.ndarray | None = None
    name: str = ""
    grid: tuple[int, int] | None = None
    terminal: np.ndarray | None = None

    def __post_init__(self):
        R = np.ascontiguousarray(self.R, float)
        P = self.P
        if sparse.issparse(P):
            P = sparse.csr_array(P, dtype=float)
        else:
            P = np.asarray(P)
        _check_shapes(P, R)
        if not sparse.issparse(P):
            check_dense_size(*R.shape)  # before it is copied
            P = np.ascontiguousarray(P, float)
        _check_rows(P, R.shape)
        if not np.isfinite(R).all():
            s, a = np.argwhere(~np.isfinite(R))[0]
            raise ValueError(f"R[{s}, {a}] = {R[s, a]}: rewards must be finite")
        start = np.eye(1, len(R))[0] if self.start is None else np.asarray(self.start, float)
        if start.shape != (len(R),) or (start < 0).any() or abs(start.sum() - 1) > ROW_TOLERANCE:
            raise ValueError(f"start must be a distribution over {len(R)} states")
        for name, value in (("P", P), ("R", R), ("start", start)):
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """Number of states."""
        return self.R.shape[0]

    @property
    def m(self) -> int:
        """Number of actions."""
        return self.R.shape[1]

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.P)

    @cached_property
    def rows(self) -> np.ndarray | sparse.csr_array:
        """P as a matrix (n * m, n)."""
        return self.P if self.is_sparse else self.P.reshape(self.n * self.m, self.n)

    def dense(self) -> MDP:
        """The same MDP with a dense P; ValueError above a gigabyte."""
        if not self.is_sparse:
            return self
        check_dense_size(self.n, self.m)
        return replace(self, P=self.P.toarray().reshape(self.n, self.m, self.n))

    def sparse(self) -> MDP:
        """The same MDP with P in CSR form."""
        return self if self.is_sparse else replace(self, P=sparse.csr_array(self.rows))


def check_dense_size(n: int, m: int) -> None:
    """ValueError if a dense P of n states and m actions takes more than a gigabyte."""
    size = 8 * n * n * m
    if size > LARGEST_DENSE_BYTES:
        raise ValueError(
            f"a dense P of {n} states and {m} actions takes {size / 1e9:.1f} GB, more than "
            f"{LARGEST_DENSE_BYTES / 1e9:g} GB: give P in CSR form, (n * m, n)"
        )


def discount(gamma: float) -> float:
    """gamma if it lies in (0, 1), or ValueError."""
    if not 0 < gamma < 1:
        hint = f"; {AVERAGE_REWARD}" if gamma >= 1 else ""
        raise ValueError(f"gamma = {gamma}: allowed are 0 < gamma < 1{hint}")
    return float(gamma)


def _check_shapes(P: np.ndarray | sparse.csr_array, R: np.ndarray) -> None:
    if R.ndim != 2 or 0 in R.shape:
        raise ValueError(f"R has shape {R.shape}: expected (states, actions)")
    n, m = R.shape
    if sparse.issparse(P):
        if P.shape != (n * m, n):
            raise ValueError(
                f"sparse P has shape {P.shape}: expected ({n * m}, {n}) with row s * m + a"
            )
        return
    if P.ndim == 4:
        raise ValueError(
            f"P has shape {P.shape}: stage-dependent dynamics are not covered; one P for all stages"
        )
    if P.shape == (n, m, n):
        return
    if P.ndim == 3 and P.shape[1] == P.shape[2]:
        m, n = P.shape[:2]
        raise ValueError(
            f"P has shape {P.shape}, actions first: give P.transpose(1, 0, 2), "
            f"of shape ({n}, {m}, {n}), and R of shape ({n}, {m})"
        )
    raise ValueError(f"P has shape {P.shape}: with R of shape {R.shape} expected ({n}, {m}, {n})")


def _check_rows(P: np.ndarray | sparse.csr_array, shape: tuple[int, int]) -> None:
    values = P.data if sparse.issparse(P) else P
    sums = np.asarray(P.sum(-1)).reshape(shape)
    negative = np.zeros(shape, bool)
    if values.size and values.min() < 0:
        least = P.min(1).toarray() if sparse.issparse(P) else P.min(-1)
        negative = np.asarray(least).reshape(shape) < 0
    bad = negative | ~(np.abs(sums - 1) <= ROW_TOLERANCE)
    if bad.any():
        s, a = np.argwhere(bad)[0]
        signs = "has negative entries and " if negative[s, a] else ""
        what = f"{signs}sums to {sums[s, a]:.10g}"
        raise ValueError(f"P[{s}, {a}] {what}: every row must be a distribution (sum 1)")


# Discounted problems ---------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _csr_backup(indptr, indices, data, R, gamma, v, t, policy):
    n, m = R.shape
    for s in range(n):
        best, chosen = -np.inf, 0
        for a in range(m):
            total = 0.0
            for k in range(indptr[s * m + a], indptr[s * m + a + 1]):
                total += data[k] * v[indices[k]]
            q = R[s, a] + gamma * total
            if q > best:
                best, chosen = q, a
        t[s], policy[s] = best, chosen


@njit(cache=True, nogil=True)
def _csr_backup_push(indptr, indices, data, R, gamma, v, d, t, policy, out):
    n, m = R.shape
    out[:] = 0.0
    for s in range(n):
        best, chosen = -np.inf, 0
        for a in range(m):
            total = 0.0
            for k in range(indptr[s * m + a], indptr[s * m + a + 1]):
                total += data[k] * v[indices[k]]
            q = R[s, a] + gamma * total
            if q > best:
                best, chosen = q, a
        t[s], policy[s] = best, chosen
        for k in range(indptr[s * m + chosen], indptr[s * m + chosen + 1]):
            out[indices[k]] += d[s] * data[k]


@njit(cache=True, nogil=True)
def _greedy(q, t, policy):
    for s in range(q.shape[0]):
        best, chosen = q[s, 0], 0
        for a in range(1, q.shape[1]):
            if q[s, a] > best:
                best, chosen = q[s, a], a
        t[s], policy[s] = best, chosen


@njit(cache=True, nogil=True)
def _csr_push(indptr, indices, data, m, policy, d, out):
    out[:] = 0.0
    for s in range(len(d)):
        row = s * m + policy[s]
        for k in range(indptr[row], indptr[row + 1]):
            out[indices[k]] += d[s] * data[k]


@njit(cache=True, nogil=True)
def _dense_push(P, policy, d, out):
    out[:] = 0.0
    for s in range(len(d)):
        row, weight = P[s, policy[s]], d[s]
        for y in range(len(d)):
            out[y] += weight * row[y]


def action_values(mdp: MDP, v: np.ndarray, gamma: float) -> np.ndarray:
    """q = R + gamma P v, (n, m), of v (n,)."""
    return mdp.R + gamma * (mdp.rows @ v).reshape(mdp.R.shape)


def bellman(mdp: MDP, v: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """The Bellman operator: T v (n,) and its greedy policy (n,), the first maximizer."""
    t, policy = np.empty(mdp.n), np.empty(mdp.n, np.int64)
    if mdp.is_sparse:
        P = mdp.P
        _csr_backup(P.indptr, P.indices, P.data, mdp.R, gamma, v, t, policy)
    else:
        _greedy(action_values(mdp, v, gamma), t, policy)
    return t, policy


def push(mdp: MDP, policy: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The distribution d (n,) one step later under `policy` (n,): P_policy' d."""
    out = np.empty(mdp.n)
    if mdp.is_sparse:
        _csr_push(mdp.P.indptr, mdp.P.indices, mdp.P.data, mdp.m, policy, d, out)
    else:
        _dense_push(mdp.P, policy, d, out)
    return out


def bellman_push(
    mdp: MDP, v: np.ndarray, gamma: float, d: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`bellman` of v, and d (n,) one step later under its greedy policy, in one pass over P."""
    if not mdp.is_sparse:
        t, policy = bellman(mdp, v, gamma)
        return t, policy, push(mdp, policy, d)
    t, policy, out = np.empty(mdp.n), np.empty(mdp.n, np.int64), np.empty(mdp.n)
    P = mdp.P
    _csr_backup_push(P.indptr, P.indices, P.data, mdp.R, gamma, v, d, t, policy, out)
    return t, policy, out


def chain(mdp: MDP, policy: np.ndarray) -> tuple[np.ndarray | sparse.csr_array, np.ndarray]:
    """Transition matrix (n, n), dense or CSR as P is, and rewards (n,) of a policy (n,)."""
    states = np.arange(mdp.n)
    return mdp.rows[states * mdp.m + policy], mdp.R[states, policy]


def evaluate(mdp: MDP, policy: np.ndarray, gamma: float) -> np.ndarray:
    """The value (n,) of a policy (n,): the solution of (I - gamma P) v = r."""
    P, r = chain(mdp, policy)
    if not mdp.is_sparse:
        return np.linalg.solve(np.eye(mdp.n) - gamma * P, r)
    A = (sparse.eye_array(mdp.n, format="csr") - gamma * P).tocsc()
    # Random sparse chains fill up under elimination; Krylov methods need a few dozen products.
    v, _ = sparse.linalg.gmres(A, r, rtol=1e-14, atol=0.0, restart=60, maxiter=20)
    residual = np.abs(A @ v - r).max()
    return v if residual <= 1e-12 * max(1.0, np.abs(r).max()) else sparse.linalg.spsolve(A, r)


def policy_iteration(
    mdp: MDP, gamma: float, policy: np.ndarray | None = None, most: int = 1000
) -> tuple[np.ndarray, np.ndarray, int]:
    """Howard's policy iteration: optimal value (n,), policy (n,), number of evaluations.

    Starts at `policy` (default: greedy for rewards) and keeps an old action on ties.
    """
    discount(gamma)
    states = np.arange(mdp.n)
    policy = mdp.R.argmax(1) if policy is None else np.array(policy)
    for count in range(1, most + 1):
        v = evaluate(mdp, policy, gamma)
        q = action_values(mdp, v, gamma)
        improved = q.max(1) > q[states, policy] + TIE * max(1.0, np.abs(q).max())
        if not improved.any():
            return v, policy, count
        policy = np.where(improved, q.argmax(1), policy)
    raise RuntimeError(f"policy iteration did not settle within {most} evaluations")


def stationary_distribution(P: ArrayLike) -> np.ndarray:
    """d (n,) with d P = d of a dense chain (n, n); of several, the one of least norm."""
    P = np.asarray(P, float)
    # Regular with one recurrent class; with several a pivot is zero but for rounding.
    factors = lapack.dgetrf(np.eye(len(P)) - P.T + 1.0)
    if np.abs(np.diag(factors[0])).min() > 1e-9:
        d = np.maximum(lapack.dgetrs(*factors[:2], np.ones(len(P)))[0], 0)
        return d / d.sum()
    equations = np.vstack([P.T - np.eye(len(P)), np.ones(len(P))])
    d = np.linalg.lstsq(equations, np.eye(1, len(P) + 1, len(P))[0], rcond=None)[0]
    d = np.maximum(d, 0)
    return d / d.sum()


def eigenvalues(P: ArrayLike, leading: int | None = None) -> np.ndarray:
    """Eigenvalues of a dense chain (n, n), complex, by falling modulus: the first is 1.

    leading: only about so many, the largest, by Arnoldi's method.
    """
    if leading is None:
        found = np.linalg.eigvals(np.asarray(P, float)).astype(complex)
    else:
        start = np.random.default_rng(0).random(len(P))  # the answer repeats
        found = sparse.linalg.eigs(
            sparse.csr_array(P), leading, v0=start, return_eigenvectors=False, maxiter=20 * len(P)
        )
    # Of several with modulus 1, the eigenvalue 1 itself comes first.
    order = np.lexsort((np.abs(found - 1), -np.round(np.abs(found), 12)))
    return found[order]


def teleport(mdp: MDP, share: float, to: ArrayLike | None = None) -> MDP:
    """With probability `share` the next state is drawn from `to` (n,), uniform by default.

    Scales all eigenvalues but the first of every policy's chain by 1 - share. The result is dense.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"teleport = {share}: allowed are 0 to 1")
    if share == 0:
        return mdp
    base = mdp.dense()
    target = np.full(mdp.n, 1 / mdp.n) if to is None else np.asarray(to, float)
    return replace(base, P=(1 - share) * base.P + share * target)


# Finite horizon --------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _backward(P, R, Q, V):
    n, m = R.shape
    for h in range(Q.shape[0] - 1, -1, -1):
        for s in range(n):
            best = -np.inf
            for a in range(m):
                total = R[s, a]
                for y in range(n):
                    total += P[s, a, y] * V[h + 1, y]
                Q[h, s, a] = total
                best = max(best, total)
            V[h, s] = best


@njit(cache=True, nogil=True)
def _evaluate_stages(P, R, policy, V):
    for h in range(policy.shape[0] - 1, -1, -1):
        for s in range(R.shape[0]):
            a = policy[h, s]
            total = R[s, a]
            for y in range(R.shape[0]):
                total += P[s, a, y] * V[h + 1, y]
            V[h, s] = total


def backward_induction(mdp: MDP, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    """Optimal Q (horizon, n, m) and V (horizon + 1, n) with V[horizon] = 0, undiscounted."""
    mdp = mdp.dense()
    Q, V = np.empty((horizon, mdp.n, mdp.m)), np.zeros((horizon + 1, mdp.n))
    _backward(mdp.P, mdp.R, Q, V)
    return Q, V


def evaluate_stages(mdp: MDP, policy: np.ndarray) -> np.ndarray:
    """V (horizon + 1, n) of a policy (horizon, n) that may depend on the stage, undiscounted."""
    mdp, policy = mdp.dense(), np.ascontiguousarray(policy, np.int64)
    V = np.zeros((len(policy) + 1, mdp.n))
    _evaluate_stages(mdp.P, mdp.R, policy, V)
    return V


# Examples --------------------------------------------------------------------------------------


def garnet(n: int, m: int, b: int, seed: int = 0) -> MDP:
    """Garnet(n, m, b): b random successors of each pair, uniform weights and rewards.

    The reward is uniform per (s, a, s'), R its expectation. CSR when a dense P were mostly zeros.
    """
    if not 1 <= b <= n:
        raise ValueError(f"b = {b}: allowed are 1 to n = {n} successors")
    rng = np.random.default_rng(seed)
    keys = rng.random((n * m, n)) if n * n * m <= 10_000_000 else None
    if keys is not None:
        successors = np.argpartition(keys, b - 1, axis=1)[:, :b]
    else:
        successors = np.array([rng.choice(n, b, replace=False) for _ in range(n * m)])
    weights = rng.random((n * m, b))
    weights /= weights.sum(1, keepdims=True)
    R = (weights * rng.random((n * m, b))).sum(1).reshape(n, m)
    P = sparse.csr_array(
        (weights.ravel(), successors.ravel(), np.arange(0, n * m * b + 1, b)), shape=(n * m, n)
    )
    found = MDP(P, R, name=f"Garnet({n}, {m}, {b})")
    return found if n >= 1000 and 4 * b < n else found.dense()


def uniform_random(n: int, m: int, seed: int = 0) -> MDP:
    """Rows of P normalized uniform numbers, R uniform, drawn as in Drago et al., 2025."""
    rng = np.random.RandomState(seed)
    P = rng.uniform(size=(n, m, n))
    return MDP(P / P.sum(-1, keepdims=True), rng.uniform(size=(n, m)), name=f"random {n} x {m}")


def river_swim(n: int) -> MDP:
    """RiverSwim: against the stream to the large reward (Strehl & Littman, as in Drago et al.)."""
    if n < 2:
        raise ValueError(f"n = {n}: the river needs at least 2 states")
    P, R = np.zeros((n, 2, n)), np.zeros((n, 2))
    states = np.arange(n)
    P[states, 0, np.maximum(states - 1, 0)] = 1
    P[0, 1, :2] = 0.7, 0.3
    for s in range(1, n - 1):
        P[s, 1, s - 1 : s + 2] = 0.1, 0.6, 0.3
    P[n - 1, 1, n - 2 :] = 0.7, 0.3
    R[0, 0], R[n - 1, 1] = 0.005 / 0.3, 1.0
    return MDP(P, R, name=f"RiverSwim {n}", grid=(1, n))


GRAPH6 = {0: (0, 4), 1: (1, 3, 5), 2: (2, 3), 3: (1, 2, 3, 4), 4: (0, 3, 4, 5), 5: (1, 4, 5)}


def graph6() -> MDP:
    """The 6-state graph of the Zap Q-learning paper; action a wants to move to node a."""
    P, R = np.zeros((6, 6, 6)), np.full((6, 6), -0.05)
    for s, allowed in GRAPH6.items():
        for a in allowed:
            P[s, a, list(allowed)] = 0.2 / (len(allowed) - 1)
            P[s, a, a] = 0.8
        R[s, s] = 0.0
        if 5 in allowed:
            R[s, 5] = 1.0
    R[3, 4] = -1.0
    for s, allowed in GRAPH6.items():
        for a in set(range(6)) - set(allowed):  # a move that is not there stays
            P[s, a], R[s, a] = P[s, s], R[s, s]
    return MDP(P, R, name="graph of 6 nodes")


NETWORKS = {"karate": ("karate club", 33), "lesmis": ("Les Misérables", 0)}


def network(name: str, success: float = 0.8) -> MDP:
    """Walks to a goal on a real network of `networkx`: 'karate' (34 nodes) or 'lesmis' (77).

    Actions: stay, or move to a neighbor, in sorted order; the rest of the probability goes to the
    other options; surplus actions stay. R: 1 in the goal, -0.05 a move, 0 for staying.
    """
    import networkx as nx

    choice("network", name, NETWORKS)
    title, goal = NETWORKS[name]
    graph = nx.karate_club_graph() if name == "karate" else nx.les_miserables_graph()
    graph = nx.convert_node_labels_to_integers(graph)
    n = len(graph)
    options = [[s, *sorted(graph.neighbors(s))] for s in range(n)]
    m = max(map(len, options))
    P, R = np.zeros((n, m, n)), np.zeros((n, m))
    for s, allowed in enumerate(options):
        for a in range(m):
            wanted = allowed[a] if a < len(allowed) else s
            P[s, a, allowed] = (1 - success) / (len(allowed) - 1)
            P[s, a, wanted] = success
            R[s, a] = 1.0 if s == goal else -0.05 * (wanted != s)
    return MDP(P, R, name=title)


TABLES = {
    "frozenlake4": ("FrozenLake-v1", {"map_name": "4x4"}),
    "frozenlake8": ("FrozenLake-v1", {"map_name": "8x8"}),
    "cliff": ("CliffWalking-v1", {}),
    "taxi": ("Taxi-v4", {}),
}
CLOSURES = ("restart", "absorbing")


def gymnasium_table(name: str, closure: str = "restart") -> MDP:
    """A table of Gymnasium as an MDP without an end.

    name: of `TABLES`. closure: what follows a terminal state: the start distribution ("restart") or
    itself ("absorbing"), both without reward.
    """
    import gymnasium

    choice("table", name, TABLES)
    choice("closure", closure, CLOSURES)
    known, options = TABLES[name]
    table = gymnasium.make(known, **options).unwrapped
    n, m = int(table.observation_space.n), int(table.action_space.n)
    P, R, terminal = np.zeros((n, m, n)), np.zeros((n, m)), np.zeros(n, bool)
    for s, actions in table.P.items():
        for a, outcomes in actions.items():
            for chance, y, reward, ends in outcomes:
                P[s, a, y] += chance
                R[s, a] += chance * reward
                terminal[y] |= ends
    start = np.asarray(table.initial_state_distrib, float)
    start = start / start.sum()
    P[terminal] = start if closure == "restart" else np.eye(n)[terminal][:, None]
    R[terminal] = 0.0
    shape = {"FrozenLake-v1": lambda: table.desc.shape, "CliffWalking-v1": lambda: table.shape}
    grid = tuple(map(int, shape[known]())) if known in shape else None
    return MDP(P, R, start, f"{known.split('-')[0]}, {closure}", grid, terminal)


def load_npz(path: str | Path) -> MDP:
    """An MDP from an .npz file with arrays P (n, m, n), R (n, m) or (n, m, n), maybe start (n,)."""
    path = Path(path).expanduser()
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ValueError(f"no file {path}") from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no .npz file of plain arrays: {error}") from None
    missing = [name for name in ("P", "R") if name not in found]
    if missing:
        have = ", ".join(found) or "none"
        raise ValueError(f"{path} lacks the array {missing[0]}: it needs P and R and has {have}")
    P, R = found["P"], found["R"]
    if R.ndim == 3 and R.shape == P.shape:  # rewards of transitions: their expectation
        R = (P * R).sum(-1)
    return MDP(P, R, found.get("start"), path.stem)
