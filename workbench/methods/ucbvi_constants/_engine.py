"""Compiled heart of all learners: plan, follow the greedy policy for an episode, count.

One function for every algorithm, so that they differ in nothing but the bonus and the moment of
planning. Works on the arrays of `Memory` in place and allocates nothing; `learning.py` checks,
allocates and reports. Stages count from 0 here, from 1 in texts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

CHERNOFF, BERNSTEIN, DOUBLING, PRACTITIONER, RANDOM, CONSTANT = range(6)
TIE = 1e-12  # Q values this close to the largest are equal
SLACK = 1e-9  # rounding is no violation of optimism


# A call would count references of all arrays in the tuples: more time than the work itself.
inlined = njit(nogil=True, inline="always")


class Problem(NamedTuple):
    """What does not change. P (S, A, S), its cumulative sums, R (S, A), V_star (H + 1, S)."""

    P: np.ndarray
    cumulative: np.ndarray
    R: np.ndarray
    V_star: np.ndarray
    start: int


class Rules(NamedTuple):
    """Numbers of an algorithm: b = scale (sqrt(variance Var / N) + lower / max(N - less, 1)
    + sqrt(correction / N sum_y P(y) min(rare / N'(y), H^2)) + leading / sqrt(N)).
    """

    kind: int
    variance: float
    lower: float
    less: int
    correction: float
    rare: float
    leading: float
    scale: float
    last_step_bonus: bool
    official_variance: bool
    random_ties: bool


class Memory(NamedTuple):
    """What is learned, (H, S, A) unless said otherwise.

    V (H + 1, S); counts (S, A, S), P_hat (S, A, S), N (S, A); n (S, A): visits behind P_hat, fewer
    than N for doubling; reached (H + 1, S): N'; policy (H, S) first maximizers, tied: all of them,
    n_tied (H, S); value (H + 1, S) of the policy; weights (S,) scratch.
    totals: pseudo-regret, realized regret. marks: replans, next record, next snapshot, replan due.
    """

    Q: np.ndarray
    V: np.ndarray
    bonus: np.ndarray
    counts: np.ndarray
    P_hat: np.ndarray
    N: np.ndarray
    n: np.ndarray
    reached: np.ndarray
    policy: np.ndarray
    tied: np.ndarray
    n_tied: np.ndarray
    value: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    marks: np.ndarray


class Records(NamedTuple):
    """What is written down at `episodes` (n,), and in full at `looks` (m,): both start at 1."""

    episodes: np.ndarray
    pseudo: np.ndarray
    realized: np.ndarray
    promised: np.ndarray
    violated: np.ndarray
    looks: np.ndarray
    Q: np.ndarray
    bonus: np.ndarray
    N: np.ndarray


@njit(cache=True, nogil=True)
def official_variance(P_hat, s, a, v):
    """Variance of the vector P_hat v with equal weights, as in the released program: no Var."""
    mean, square, n = 0.0, 0.0, len(v)
    for y in range(n):
        x = P_hat[s, a, y] * v[y]
        mean += x
        square += x * x
    return max(square / n - (mean / n) ** 2, 0.0)


@inlined
def _choose(m, h, s, random_ties):
    """Greedy actions from Q[h, s]; True if they are others than before."""
    best, chosen = m.Q[h, s, 0], 0
    for a in range(1, m.Q.shape[2]):
        if m.Q[h, s, a] > best:
            best, chosen = m.Q[h, s, a], a
    m.V[h, s] = best
    changed = m.policy[h, s] != chosen
    m.policy[h, s] = chosen
    if random_ties:
        count = 0
        for a in range(m.Q.shape[2]):
            tied = m.Q[h, s, a] >= best - TIE
            changed = changed or tied != m.tied[h, s, a]
            m.tied[h, s, a] = tied
            count += tied
        m.n_tied[h, s] = count
    return changed


@inlined
def _plan(problem, r, m):
    """Backward induction with bonuses; True if the greedy policy has changed."""
    horizon, n_states, n_actions = m.Q.shape
    Q, V, bonus, P_hat, visits, weights = m.Q, m.V, m.bonus, m.P_hat, m.n, m.weights
    R, H, kind = problem.R, float(horizon), r.kind
    changed = False
    for h in range(horizon - 1, -1, -1):
        following = V[h + 1]
        if kind == BERNSTEIN:
            for y in range(n_states):
                weights[y] = min(r.rare / max(m.reached[h + 1, y], 1), H * H)
        scale = r.scale if h < horizon - 1 or r.last_step_bonus else 0.0
        for s in range(n_states):
            for a in range(n_actions):
                if visits[s, a] == 0 and kind != DOUBLING:
                    continue  # never tried: Q stays at H
                n = float(max(visits[s, a], 1))
                mean, square, seldom = 0.0, 0.0, 0.0
                if kind == BERNSTEIN:
                    for y in range(n_states):
                        p, v = P_hat[s, a, y], following[y]
                        mean += p * v
                        square += p * v * v
                        seldom += p * weights[y]
                else:
                    for y in range(n_states):
                        p, v = P_hat[s, a, y], following[y]
                        mean += p * v
                        square += p * v * v
                b = 0.0
                if scale > 0:
                    if kind == CHERNOFF:
                        b = r.leading / np.sqrt(n)
                    elif kind == PRACTITIONER:
                        b = min(np.sqrt(1 / n) + (H - h) / n, H - h)
                    else:
                        spread = max(square - mean * mean, 0.0)
                        if r.official_variance:
                            spread = official_variance(P_hat, s, a, following)
                        b = np.sqrt(r.variance * spread / n) + r.lower / max(n - r.less, 1.0)
                        if kind == BERNSTEIN:
                            b += np.sqrt(r.correction * seldom / n)
                    b *= scale
                bonus[h, s, a] = b
                q = min(R[s, a] + mean + b, H)
                Q[h, s, a] = q if kind == DOUBLING else min(q, Q[h, s, a])
            changed = _choose(m, h, s, r.random_ties) or changed
    return changed


@inlined
def _evaluate(problem, r, m):
    """The exact value of the policy, which draws uniformly among tied actions if told so."""
    for h in range(m.policy.shape[0] - 1, -1, -1):
        for s in range(m.policy.shape[1]):
            total = 0.0
            for a in range(m.tied.shape[2]):
                if r.random_ties:
                    if not m.tied[h, s, a]:
                        continue
                elif a != m.policy[h, s]:
                    continue
                q = problem.R[s, a]
                for y in range(m.policy.shape[1]):
                    q += problem.P[s, a, y] * m.value[h + 1, y]
                total += q
            m.value[h, s] = total / m.n_tied[h, s]


@inlined
def _count(r, m, s, a, y):
    """One more visit of (s, a) that led to y."""
    m.counts[s, a, y] += 1
    m.N[s, a] += 1
    if r.kind != DOUBLING:
        m.n[s, a] = m.N[s, a]
    elif m.N[s, a] & (m.N[s, a] - 1):  # not a power of two
        return
    else:
        m.n[s, a] = m.counts[s, a].sum()
        m.marks[3] = 1
    for x in range(m.P_hat.shape[2]):
        m.P_hat[s, a, x] = m.counts[s, a, x] / m.n[s, a]
    if r.kind == DOUBLING:
        m.counts[s, a, :] = 0


@inlined
def _note(problem, m, records, episode):
    """Write down episode `episode` (from 1), after it was played, where that is due."""
    i = m.marks[1]
    if i < len(records.episodes) and records.episodes[i] == episode:
        records.pseudo[i], records.realized[i] = m.totals[0], m.totals[1]
        records.promised[i] = m.V[0, problem.start]
        below = 0
        for h in range(m.Q.shape[0]):
            for s in range(m.Q.shape[1]):
                below += m.V[h, s] < problem.V_star[h, s] - SLACK
        records.violated[i] = below / (m.Q.shape[0] * m.Q.shape[1])
        m.marks[1] += 1


@inlined
def _look(m, records, episode):
    """Keep the tables with which episode `episode` is about to be played, where that is due."""
    i = m.marks[2]
    if i < len(records.looks) and records.looks[i] == episode:
        records.Q[i], records.bonus[i], records.N[i] = m.Q, m.bonus, m.N
        m.marks[2] += 1


@njit(cache=True, nogil=True)
def play(problem, r, m, records, rng, first, last):
    """Episodes first..last, counted from 1."""
    horizon, n_states, n_actions = m.Q.shape
    best = problem.V_star[0, problem.start]
    learns = r.kind != RANDOM and r.kind != CONSTANT
    for episode in range(first, last + 1):
        changed = episode == 1
        if m.marks[3] if r.kind == DOUBLING else learns:
            changed = _plan(problem, r, m) or changed
            m.marks[0] += 1
            m.marks[3] = 0
        if changed:
            _evaluate(problem, r, m)
        _look(m, records, episode)
        s, gained = problem.start, 0.0
        for h in range(horizon):
            m.reached[h, s] += 1
            a = m.policy[h, s]
            if r.random_ties and m.n_tied[h, s] > 1:
                left = int(rng.random() * m.n_tied[h, s])
                for a in range(n_actions):
                    if m.tied[h, s, a]:
                        if left == 0:
                            break
                        left -= 1
            u, y = rng.random(), 0
            while y < n_states - 1 and u >= problem.cumulative[s, a, y]:
                y += 1
            gained += problem.R[s, a]
            _count(r, m, s, a, y)
            s = y
        m.totals[0] += best - m.value[0, problem.start]
        m.totals[1] += best - gained
        _note(problem, m, records, episode)
