"""Compiled heart: losses, the accelerated method on one node, its safe bound, and refits.

A node of the tree is `status` (p,): FREE, IN (z = 1) or OUT (coefficient 0), the indices `free`
and the number k of free features that may be used. Arrays are changed in place; `problem.py` and
`relaxation.py` allocate, check and report.

Bounds are safe: rounding errors are bounded from above (Higham, Accuracy and Stability of
Numerical Algorithms, section 3.1, in any order of summation) and taken off, so that what is
returned is below the exact value of the dual function, hence below the optimum.
"""

from __future__ import annotations

import numpy as np

from .prox import compiled, huber, prox_into, top_sum, value

LINEAR, LOGISTIC = 0, 1
FREE, IN, OUT = 0, 1, -1
GOING, CONVERGED, PRUNED, HOPELESS = range(4)
VALUE, LOWER, MOMENTUM, RESTARTED, ITERATION, CHECKED = range(6)  # of `numbers` in `descend`
EPS = 1.2e-16  # above the unit roundoff 2^-53


@compiled
def loss(kind: int, u: np.ndarray, y: np.ndarray) -> float:
    """f(u) of u, y (n,): squared error, or logistic loss in a form that does not overflow."""
    total = 0.0
    if kind == LINEAR:
        for i in range(len(u)):
            total += (u[i] - y[i]) ** 2
        return total
    for i in range(len(u)):
        m = y[i] * u[i]
        total += np.log1p(np.exp(-abs(m))) + max(0.0, -m)
    return total


@compiled
def slope(kind: int, u: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    """Write the gradient of f at u into out (n,)."""
    if kind == LINEAR:
        for i in range(len(u)):
            out[i] = 2 * (u[i] - y[i])
        return
    for i in range(len(u)):
        m = y[i] * u[i]
        e = np.exp(-abs(m))
        out[i] = -y[i] * (e if m >= 0 else 1.0) / (1 + e)


@compiled
def product(X: np.ndarray, XT: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Write X b into out (n,): from the columns that count when those are few."""
    p = len(b)
    used = 0
    for j in range(p):
        used += b[j] != 0
    if 3 * used > p:
        out[:] = np.dot(X, b)
        return
    out[:] = 0.0
    for j in range(p):
        if b[j] != 0:
            column, factor = XT[j], b[j]
            for i in range(len(out)):
                out[i] += factor * column[i]


@compiled
def regularizer(b: np.ndarray, status: np.ndarray, free: np.ndarray, k: int, M: float) -> float:
    """The g of a node: b^2 / 2 of what is in, g_k of what is free."""
    total = 0.0
    for j in range(len(b)):
        if status[j] == IN:
            total += 0.5 * b[j] * b[j]
    return total + value(b[free], k, M)


@compiled
def node_prox(
    v: np.ndarray, tau: float, status: np.ndarray, free: np.ndarray, k: int, M: float,
    out: np.ndarray,
) -> None:  # fmt: skip
    """Write the prox of tau times the g of a node into out (p,)."""
    shared = np.empty(len(free))
    prox_into(v[free], tau, k, M, shared)
    for j in range(len(v)):
        out[j] = max(-M, min(M, v[j] / (1 + tau))) if status[j] == IN else 0.0
    out[free] = shared


@compiled
def admissible(kind: int, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    """w (n,), clipped to where f* is finite: for the logistic loss 0 <= -w y <= 1."""
    out = w.copy()
    if kind == LOGISTIC:
        for i in range(len(w)):
            out[i] = -y[i] * min(1.0, max(0.0, -w[i] * y[i]))
    return out


@compiled
def _x_log_x(x: float) -> float:
    return x * np.log(x) if x > 0 else 0.0


@compiled
def conjugate_above(kind: int, w: np.ndarray, y: np.ndarray) -> float:
    """f*(w) of an admissible w (n,), rounded up: sum plus a bound of its error."""
    total, size = 0.0, 0.0
    for i in range(len(w)):
        if kind == LINEAR:
            a, b = 0.25 * w[i] * w[i], w[i] * y[i]
            total += a + b
            size += a + abs(b)
        else:
            p = -w[i] * y[i]
            a = _x_log_x(p) + _x_log_x(1 - p)
            total += a
            # A logarithm is off by a few units in the last place, 1 - p by half of one.
            size += 2 * abs(a) + 2
    return total + (len(w) + 12) * EPS * size


@compiled
def lower_bound(
    kind: int, XT: np.ndarray, y: np.ndarray, lam2: float, M: float, status: np.ndarray,
    free: np.ndarray, k: int, norms: np.ndarray, w: np.ndarray,
) -> float:  # fmt: skip
    """D(w) of a node, rounded down: below every value that a point of the node can have.

    w (n,) admissible, else anything. norms (p,): upper bounds of the norms of the columns.
    """
    n = len(w)
    share = (n + 4) * EPS
    size = np.sqrt((w * w).sum()) * (1 + share)
    q = np.dot(XT, w)
    heights = np.empty(len(free))
    for i in range(len(free)):
        j = free[i]
        heights[i] = huber((abs(q[j]) + share * norms[j] * size) / (2 * lam2) * (1 + 4 * EPS), M)
    total = top_sum(heights, k)
    for j in range(len(q)):
        if status[j] == IN:
            total += huber((abs(q[j]) + share * norms[j] * size) / (2 * lam2) * (1 + 4 * EPS), M)
    total *= 2 * lam2 * (1 + (len(q) + 12) * EPS)
    above = conjugate_above(kind, w, y)
    found = -above - total - 4 * EPS * (abs(above) + total)
    # Losses and penalty are never negative, so neither is the optimum.
    return found if found > 0 else 0.0


@compiled
def descend(
    kind: int, X: np.ndarray, XT: np.ndarray, y: np.ndarray, lam2: float, M: float,
    status: np.ndarray, free: np.ndarray, k: int, L: float, norms: np.ndarray,
    b: np.ndarray, u: np.ndarray, z: np.ndarray, uz: np.ndarray, w: np.ndarray,
    numbers: np.ndarray, values: np.ndarray, restart: bool, momentum: bool, steps: int,
    every: int, tol: float, target: float, upper: float,
) -> int:  # fmt: skip
    """Up to `steps` iterations of FISTA with restart on a node; the reason for which it ended.

    b, z (p,) iterate and extrapolation, u, uz (n,) = X b, X z; w (n,) the dual vector of the best
    bound; numbers: value, bound, momentum, whether the last step was a restart, iterations, and
    when the bound was last computed. values (iterations + steps, 2): objective and whether
    restarted, by iteration; may be empty. The bound is computed every `every` iterations; then it
    ends when value and bound are within tol (relative above 1), when the bound is at least
    `target`, or when the node has a value so far below `upper` that it cannot be pruned.
    """
    p, n, tau = len(b), len(y), 2 * lam2 / L
    gradient, nb, nu = np.empty(n), np.empty(p), np.empty(n)
    F, t = numbers[VALUE], numbers[MOMENTUM]
    reason = GOING
    for _ in range(steps):
        slope(kind, uz, y, gradient)
        node_prox(z - np.dot(XT, gradient) / L, tau, status, free, k, M, nb)
        product(X, XT, nb, nu)
        nF = loss(kind, nu, y) + 2 * lam2 * regularizer(nb, status, free, k, M)
        at = int(numbers[ITERATION])
        numbers[ITERATION] += 1
        # Without both guards rounding noise restarts for ever near a relative gap of 1e-7.
        again = restart and nF > F + 1e-12 * abs(F) and numbers[RESTARTED] == 0
        if at < len(values):
            values[at, 0] = F if again else nF
            values[at, 1] = again
        numbers[RESTARTED] = again
        if again:
            z[:] = b
            uz[:] = u
            t = 1.0
        else:
            t_next = 0.5 * (1 + np.sqrt(1 + 4 * t * t))
            c = (t - 1) / t_next if momentum else 0.0
            for j in range(p):
                z[j] = nb[j] + c * (nb[j] - b[j])
                b[j] = nb[j]
            for i in range(n):
                uz[i] = nu[i] + c * (nu[i] - u[i])
                u[i] = nu[i]
            F, t = nF, t_next
        if numbers[ITERATION] - numbers[CHECKED] >= every:
            numbers[CHECKED] = numbers[ITERATION]
            slope(kind, u, y, gradient)
            found = lower_bound(kind, XT, y, lam2, M, status, free, k, norms, gradient)
            if found > numbers[LOWER]:
                numbers[LOWER] = found
                w[:] = gradient
            lower = numbers[LOWER]
            if lower >= target:
                reason = PRUNED
            elif F < upper and upper < np.inf and F - lower <= 0.1 * (upper - F):
                reason = HOPELESS
            elif F - lower <= tol * max(1.0, abs(F)):
                reason = CONVERGED
            if reason != GOING:
                break
    numbers[VALUE], numbers[MOMENTUM] = F, t
    return reason


@compiled
def refit(
    kind: int, A: np.ndarray, y: np.ndarray, lam2: float, M: float, b: np.ndarray, u: np.ndarray
) -> float:
    """Minimize f(A' b) + lam2 |b|^2 over the box by projected Newton steps; the minimum.

    A (s, n): rows of the support. b (s,) start and result, u (n,) result A' b. Ends at a gradient
    of 1e-9 on the coordinates that can move, relative to the penalty's above 1.
    """
    n, s = len(y), len(b)
    gradient, curvature = np.empty(n), np.empty(n)
    u[:] = np.dot(b, A)
    best = loss(kind, u, y) + lam2 * (b * b).sum()
    for _ in range(60):
        slope(kind, u, y, gradient)
        g = np.dot(A, gradient) + 2 * lam2 * b
        movable = np.empty(s, np.int64)
        count, largest = 0, 0.0
        for j in range(s):
            if not ((b[j] >= M and g[j] < 0) or (b[j] <= -M and g[j] > 0)):
                movable[count] = j
                count += 1
                largest = max(largest, abs(g[j]))
        if largest <= 1e-9 * max(1.0, 2 * lam2 * M):
            break
        for i in range(n):
            p = abs(gradient[i])
            curvature[i] = 2.0 if kind == LINEAR else p * (1 - p)
        some = movable[:count]
        part = A[some]
        H = np.dot(part * curvature, part.T.copy()) + 2 * lam2 * np.eye(count)
        d = np.zeros(s)
        d[some] = -np.linalg.solve(H, g[some])
        # Close to the minimum rounding hides the decrease; the full step is right there.
        slack = 1e-12 * best
        size, moved = 1.0, False
        while size > 1e-10:
            nb = np.minimum(M, np.maximum(-M, b + size * d))
            nu = np.dot(nb, A)
            new = loss(kind, nu, y) + lam2 * (nb * nb).sum()
            if new <= best + 1e-4 * (g * (nb - b)).sum() + slack:
                moved = True
                break
            size *= 0.5
        if not moved:  # at the limit of rounding
            break
        b[:] = nb
        u[:] = nu
        best = new
    return best
