"""The regularizer g of the perspective relaxation: value, conjugate, weights z and prox.

g hides p auxiliary variables and as many cones, yet each of these costs O(p) and a sort of a few
numbers. `prox` is compiled and sorts only what can be pooled; `pooling` is the same procedure in
plain Python with the whole sort, step by step, for pictures and as its test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True)
# Relative slack of the two tests of g's domain: the prox returns points on the boundary.
SLACK = 1e-7


@compiled
def huber(a: float, M: float) -> float:
    """H_M(a) = a^2 / 2 for abs(a) <= M, else M abs(a) - M^2 / 2."""
    a = abs(a)
    return 0.5 * a * a if a <= M else M * (a - 0.5 * M)


@compiled
def top_sum(values: np.ndarray, k: int) -> float:
    """Sum of the k largest of values (p,)."""
    p = len(values)
    if k <= 0:
        return 0.0
    if k >= p:
        return values.sum()
    return np.partition(values, p - k)[p - k :].sum()


@compiled
def conjugate(alpha: np.ndarray, k: int, M: float) -> float:
    """g*(alpha) of alpha (p,): the sum of the k largest H_M(alpha_j)."""
    values = np.empty(len(alpha))
    for j in range(len(alpha)):
        values[j] = huber(alpha[j], M)
    return top_sum(values, k)


@compiled
def _split(b: np.ndarray, k: int) -> tuple[int, float, float]:
    """(t, sum of the t largest squared, sum of the rest): where the head of b >= 0 ends."""
    p = len(b)
    head = np.sort(b if k >= p else np.partition(b, p - k)[p - k :])[::-1]
    rest, squares = b.sum(), 0.0
    for t in range(len(head)):
        if t >= k or head[t] * (k - t) <= rest:
            return t, squares, rest
        squares += head[t] * head[t]
        rest -= head[t]
    return len(head), squares, 0.0


@compiled
def value(beta: np.ndarray, k: int, M: float) -> float:
    """g(beta) of beta (p,): half the squared k-support norm inside the box, else infinity."""
    b = np.abs(beta)
    if len(b) == 0:
        return 0.0
    if b.max() > M * (1 + SLACK) or b.sum() > k * M * (1 + SLACK):
        return np.inf
    if k <= 0:
        return 0.0
    t, squares, rest = _split(b, k)
    if t >= k or rest <= 0.0:
        return 0.5 * squares
    return 0.5 * (squares + rest * rest / (k - t))


@compiled
def weights(beta: np.ndarray, k: int) -> np.ndarray:
    """The relaxed indicators z (p,) that attain g(beta): min(1, abs(beta_j) / s)."""
    b = np.abs(beta)
    z = np.zeros(len(b))
    if len(b) == 0 or k <= 0:
        return z
    t, _, rest = _split(b, k)
    s = rest / (k - t) if t < k else 0.0
    for j in range(len(b)):
        if b[j] > 0:
            z[j] = 1.0 if s <= 0 else min(1.0, b[j] / s)
    return z


@compiled
def _left(a: float, tau: float, M: float) -> float:
    """Solution of one element among the k largest, a = abs(v): nu, the prox of H_M."""
    nu = a / (1 + tau)
    return nu if nu <= M else (a - M) / tau


@compiled
def plateau(a: np.ndarray, tau: float, k: int, M: float) -> tuple[float, float]:
    """(c, t): the k-th largest of a (p,) >= 0, k < p, and the common value of the pooled block.

    t is negative when nothing is pooled. Both parts of the isotonic problem are sorted as they
    are, so only the border k | k + 1 can be violated, and only elements between the two values
    there can join the block: those alone are sorted.
    """
    p = len(a)
    c = np.partition(a, p - k)[p - k]
    above, following, ties = 0, -1.0, 0
    for j in range(p):
        if a[j] > c:
            above += 1
        elif a[j] == c:
            ties += 1
        elif a[j] > following:
            following = a[j]
    ties_left = k - above
    if ties > ties_left:
        following = c
    low, high = _left(c, tau, M), following / tau
    if low >= high:
        return c, -1.0
    left, right = np.empty(k), np.empty(p - k)
    n_left = n_right = equal = 0
    for j in range(p):
        first = a[j] > c
        if a[j] == c:
            first = equal < ties_left
            equal += 1
        if first and _left(a[j], tau, M) < high:
            left[n_left] = a[j]
            n_left += 1
        elif not first and a[j] / tau > low:
            right[n_right] = a[j]
            n_right += 1
    left, right = np.sort(left[:n_left]), np.sort(right[:n_right])[::-1]
    i = j = 1
    total = left[0] + right[0]
    while True:
        t = total / ((i + j) * tau + i)
        if t > M:
            t = (total - i * M) / ((i + j) * tau)
        if j < n_right and right[j] / tau > t:
            total += right[j]
            j += 1
        elif i < n_left and _left(left[i], tau, M) < t:
            total += left[i]
            i += 1
        else:
            return c, t


@compiled
def prox_into(v: np.ndarray, tau: float, k: int, M: float, out: np.ndarray) -> None:
    """Write prox_{tau g}(v) into out, both (p,)."""
    p = len(v)
    if k <= 0:
        out[:] = 0.0
        return
    c, t = -1.0, -1.0
    if k < p:
        c, t = plateau(np.abs(v), tau, k, M)
    for j in range(p):
        a = abs(v[j])
        # The single-element and pooled solutions, written without the cancellation of Moreau's
        # v - tau nu: M and a / (1 + tau) are exact.
        if a >= c and _left(a, tau, M) >= t:
            b = min(a / (1 + tau), M)
        elif t >= 0 and a > tau * t:
            b = min(a - tau * t, M)
        else:
            b = 0.0
        out[j] = b if v[j] >= 0 else -b


@compiled
def prox(v: np.ndarray, tau: float, k: int, M: float) -> np.ndarray:
    """prox_{tau g}(v) = argmin_b |b - v|^2 / 2 + tau g(b), of v (p,)."""
    out = np.empty(len(v))
    prox_into(v, tau, k, M, out)
    return out


@dataclass(frozen=True)
class Pooling:
    """The prox of tau g by pooling, with every step of the block.

    order (p,): indices by decreasing abs(v). u (p,): abs(v) / tau in that order. single (p,): nu of
    each element alone. blocks: (first, last + 1, value) after each absorption, first empty of all
    when nothing is violated. nu (p,): the result in that order; b, z (p,): prox and weights in the
    order of v.
    """

    order: np.ndarray
    u: np.ndarray
    single: np.ndarray
    blocks: list[tuple[int, int, float]]
    nu: np.ndarray
    b: np.ndarray
    z: np.ndarray


def pooling(v: np.ndarray, tau: float, k: int, M: float) -> Pooling:
    """The prox as the paper's pooling does it (reconstructed): sort, grow one block, undo."""
    v = np.asarray(v, float)
    order = np.argsort(-np.abs(v), kind="stable")
    rho, p = 1 / tau, len(v)
    u = np.abs(v)[order] / tau
    left = np.where(u / (1 + rho) <= M, u / (1 + rho), u - rho * M)
    single = np.where(np.arange(p) < k, left, u)
    nu, blocks = single.copy(), []
    if 0 < k < p and single[k - 1] < single[k]:
        first, last = k - 1, k + 1
        while True:
            a, total = k - first, u[first:last].sum()
            t = total / (last - first + a * rho)
            if t > M:
                t = (total - a * rho * M) / (last - first)
            blocks.append((first, last, float(t)))
            if last < p and single[last] > t:
                last += 1
            elif first > 0 and single[first - 1] < t:
                first -= 1
            else:
                break
        nu[first:last] = t
    b = np.zeros(p)
    b[order] = (u - nu) * tau
    b = np.copysign(np.clip(b, 0, M), v)
    return Pooling(order, u, single, blocks, nu, b, weights(b, k))
