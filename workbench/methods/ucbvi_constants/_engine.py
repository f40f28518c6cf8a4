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


# A call would count references of all arrays in the tuples, and so would each use of a field in a
# loop: more time than the work itself. Hence inlined functions, and names for arrays before loops.
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
    than N for doubling; backup: R + P_hat V of the last plan, Q before bonus and minimum;
    reached (H + 1, S): N'; policy (H, S) first maximizers, tied: all of them,
    n_tied (H, S); value (H + 1, S) of the policy; weights (S,) scratch. inverse (S, A): 1 / n,
    of_pair (S, A): the part of the bonus that only n decides.
    totals: pseudo-regret, realized regret. marks: replans, next record, next snapshot, replan due.
    """

    Q: np.ndarray
    V: np.ndarray
    backup: np.ndarray
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
    inverse: np.ndarray
    of_pair: np.ndarray
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
    backup: np.ndarray
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
def _choose(Q, V, policy, tied, n_tied, h, s, random_ties):
    """Greedy actions from Q[h, s]; True if they are others than before."""
    best, chosen = Q[h, s, 0], 0
    for a in range(1, Q.shape[2]):
        if Q[h, s, a] > best:
            best, chosen = Q[h, s, a], a
    V[h, s] = best
    changed = policy[h, s] != chosen
    policy[h, s] = chosen
    if random_ties:
        count = 0
        for a in range(Q.shape[2]):
            equal = Q[h, s, a] >= best - TIE
            changed = changed or equal != tied[h, s, a]
            tied[h, s, a] = equal
            count += equal
        n_tied[h, s] = count
    return changed


@inlined
def _plan(problem, r, m):
    """Backward induction with bonuses; True if the greedy policy has changed."""
    horizon, n_states, n_actions = m.Q.shape
    Q, V, bonus, P_hat, visits, weights = m.Q, m.V, m.bonus, m.P_hat, m.n, m.weights
    policy, tied, n_tied, reached = m.policy, m.tied, m.n_tied, m.reached
    backup, inverse, of_pair = m.backup, m.inverse, m.of_pair
    R, H, kind = problem.R, float(horizon), r.kind
    changed = False
    for h in range(horizon - 1, -1, -1):
        if kind == BERNSTEIN:
            for y in range(n_states):
                weights[y] = min(r.rare / max(reached[h + 1, y], 1), H * H)
        scale = r.scale if h < horizon - 1 or r.last_step_bonus else 0.0
        for s in range(n_states):
            for a in range(n_actions):
                if visits[s, a] == 0 and kind != DOUBLING:
                    continue  # never tried: Q stays at H
                mean, square, seldom = 0.0, 0.0, 0.0
                if kind == BERNSTEIN:
                    for y in range(n_states):
                        p, v = P_hat[s, a, y], V[h + 1, y]
                        mean += p * v
                        square += p * v * v
                        seldom += p * weights[y]
                else:
                    for y in range(n_states):
                        p, v = P_hat[s, a, y], V[h + 1, y]
                        mean += p * v
                        square += p * v * v
                b = 0.0
                if scale > 0:
                    if kind == CHERNOFF:
                        b = of_pair[s, a]
                    elif kind == PRACTITIONER:
                        b = min(np.sqrt(inverse[s, a]) + (H - h) * inverse[s, a], H - h)
                    else:
                        spread = max(square - mean * mean, 0.0)
                        if r.official_variance:
                            spread = official_variance(P_hat, s, a, V[h + 1])
                        b = np.sqrt(r.variance * spread * inverse[s, a]) + of_pair[s, a]
                        if kind == BERNSTEIN:
                            b += np.sqrt(r.correction * seldom * inverse[s, a])
                    b *= scale
                backup[h, s, a] = R[s, a] + mean
                bonus[h, s, a] = b
                q = min(backup[h, s, a] + b, H)
                Q[h, s, a] = q if kind == DOUBLING else min(q, Q[h, s, a])
            changed = _choose(Q, V, policy, tied, n_tied, h, s, r.random_ties) or changed
    return changed


@inlined
def _evaluate(problem, r, m):
    """The exact value of the policy, which draws uniformly among tied actions if told so."""
    P, R, policy, tied, n_tied, value = problem.P, problem.R, m.policy, m.tied, m.n_tied, m.value
    for h in range(policy.shape[0] - 1, -1, -1):
        for s in range(policy.shape[1]):
            total = 0.0
            for a in range(tied.shape[2]):
                if r.random_ties:
                    if not tied[h, s, a]:
                        continue
                elif a != policy[h, s]:
                    continue
                q = R[s, a]
                for y in range(policy.shape[1]):
                    q += P[s, a, y] * value[h + 1, y]
                total += q
            value[h, s] = total / n_tied[h, s]


@inlined
def _note(problem, m, records, i):
    """Write down how things stand after an episode, in row i."""
    records.pseudo[i], records.realized[i] = m.totals[0], m.totals[1]
    records.promised[i] = m.V[0, problem.start]
    below = 0
    for h in range(m.Q.shape[0]):
        for s in range(m.Q.shape[1]):
            below += m.V[h, s] < problem.V_star[h, s] - SLACK
    records.violated[i] = below / (m.Q.shape[0] * m.Q.shape[1])


@njit(cache=True, nogil=True)
def play(problem, r, m, records, rng, first, last):
    """Episodes first..last, counted from 1."""
    horizon, n_states, n_actions = m.Q.shape
    R, cumulative, start = problem.R, problem.cumulative, problem.start
    policy, tied, n_tied, value = m.policy, m.tied, m.n_tied, m.value
    counts, P_hat, N, n, reached = m.counts, m.P_hat, m.N, m.n, m.reached
    inverse, of_pair, totals, marks = m.inverse, m.of_pair, m.totals, m.marks
    episodes, looks, kind = records.episodes, records.looks, r.kind
    best = problem.V_star[0, start]
    learns = kind != RANDOM and kind != CONSTANT
    for episode in range(first, last + 1):
        changed = episode == 1
        if marks[3] if kind == DOUBLING else learns:
            changed = _plan(problem, r, m) or changed
            marks[0] += 1
            marks[3] = 0
        if changed:
            _evaluate(problem, r, m)
        i = marks[2]
        if i < len(looks) and looks[i] == episode:  # the tables it is about to be played with
            records.Q[i], records.N[i] = m.Q, N
            records.backup[i], records.bonus[i] = m.backup, m.bonus
            marks[2] += 1
        s, gained = start, 0.0
        for h in range(horizon):
            reached[h, s] += 1
            a = policy[h, s]
            if r.random_ties and n_tied[h, s] > 1:
                left = int(rng.random() * n_tied[h, s])
                for a in range(n_actions):
                    if tied[h, s, a]:
                        if left == 0:
                            break
                        left -= 1
            u, y = rng.random(), 0
            while y < n_states - 1 and u >= cumulative[s, a, y]:
                y += 1
            gained += R[s, a]
            counts[s, a, y] += 1
            N[s, a] += 1
            if kind != DOUBLING:
                n[s, a] = N[s, a]
                for x in range(n_states):
                    P_hat[s, a, x] = counts[s, a, x] / n[s, a]
            elif not N[s, a] & (N[s, a] - 1):  # a power of two: what came since the last one
                n[s, a] = 0
                for x in range(n_states):
                    n[s, a] += counts[s, a, x]
                for x in range(n_states):
                    P_hat[s, a, x] = counts[s, a, x] / n[s, a]
                    counts[s, a, x] = 0
                marks[3] = 1
            inverse[s, a] = 1.0 / n[s, a]
            if kind == CHERNOFF:
                of_pair[s, a] = r.leading / np.sqrt(n[s, a])
            else:
                of_pair[s, a] = r.lower / max(n[s, a] - r.less, 1)
            s = y
        totals[0] += best - value[0, start]
        totals[1] += best - gained
        i = marks[1]
        if i < len(episodes) and episodes[i] == episode:
            _note(problem, m, records, i)
            marks[1] += 1
