"""The small quadratic program of an attack: the nearest point that obeys linear inequalities.

min |delta| s.t. G delta >= h, solved exactly as non-negative least squares (least-distance
programming: Lawson and Hanson, Solving Least Squares Problems, 1974, chapter 23). Its solution is
G' lam with lam >= 0, so it lies in the row space of G: delta = V z with the right singular vectors
V of G. With G = U S V', only U and S (from the small Gram matrix G G') are needed, and the program
shrinks from pixels to rank. Box limits are met by a growing set of fixed pixels (reconstruction).
Everything in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from workbench.numerics.checks import choice

EIGENVALUE_CUT = 1e-10  # of the largest of G G'; below it a direction is rounding
LEAST_SQUARES_CUT = 1e-2  # of the largest singular value, where the program is infeasible
INFEASIBLE = 1e-10  # residual below which no point obeys the inequalities
BOX_ROUNDS = 12
DIRECTIONS = ("singular", "random")


def least_distance(G: ArrayLike, h: ArrayLike) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """The shortest delta (D,) with G delta >= h, and its multipliers lam (m,): delta = G' lam.

    G (m, D), h (m,). Returns (None, None) when no point obeys the inequalities. RuntimeError if the
    solver does not settle.
    """
    G, h = _system(G, h)
    left, singular_values = left_vectors(G @ G.T)
    z, lam = _solve(left * singular_values, h)
    if z is None:
        return None, None
    return left @ (z / singular_values) @ G, lam


def least_squares(G: np.ndarray, h: np.ndarray) -> np.ndarray:
    """What takes the place of a solution where no delta obeys G delta >= h: |G delta - h| least.

    Directions below `LEAST_SQUARES_CUT` of the largest singular value are left out.
    """
    return np.linalg.lstsq(G, h, rcond=LEAST_SQUARES_CUT)[0]


def left_vectors(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U (m, r) and singular values (r,), largest first, of G, from its Gram matrix G G' (m, m)."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    kept = eigenvalues > EIGENVALUE_CUT * max(eigenvalues[0], 0.0)
    return vectors[:, kept], np.sqrt(eigenvalues[kept])


@dataclass(frozen=True)
class BoxedSolution:
    """The solution of a boxed program; unpacks as (delta, lam, feasible).

    delta (D,). lam (m,): multipliers of the rows, zeros where infeasible. feasible: whether delta
    obeys all inequalities. free (D,) bool: pixels not fixed at a bound. singular_values (r,),
    coefficients (r,): z of delta on the free pixels, `right_vectors @ z`. rounds: programs solved.
    G (m, D), h (m,): the inequalities that were to be obeyed.
    """

    delta: np.ndarray
    lam: np.ndarray
    feasible: bool
    free: np.ndarray
    singular_values: np.ndarray
    coefficients: np.ndarray
    rounds: int
    G: np.ndarray
    h: np.ndarray
    _left: np.ndarray
    _directions: np.ndarray | None = None

    def __iter__(self) -> Iterator:
        return iter((self.delta, self.lam, self.feasible))

    @property
    def active(self) -> np.ndarray:
        """(m,) bool: rows with a positive multiplier."""
        return self.lam > 0

    @cached_property
    def right_vectors(self) -> np.ndarray:
        """V (free pixels, r): right singular vectors of G on free pixels (or the random ones)."""
        if self._directions is not None:
            return self._directions
        return self.G[:, self.free].T @ self._left / self.singular_values


def boxed_least_distance(
    G: ArrayLike,
    h: ArrayLike,
    lo: ArrayLike,
    hi: ArrayLike,
    rank: int | None = None,
    directions: str = "singular",
    seed: int = 0,
) -> BoxedSolution:
    """A short delta (D,) with G delta >= h and lo <= delta <= hi (reconstruction).

    Solves without the box on the free pixels, fixes the pixels that leave it at their bound, and
    repeats until none does. Pixels are never freed again, so the result may be slightly longer
    than the exact optimum (at most 1.2 % on random problems). Where the inequalities have no
    solution the least-squares one is taken and `feasible` is False.

    G (m, D), h (m,), lo and hi (D,) or numbers with lo <= 0 <= hi; infinite bounds are allowed.
    rank: keep only the leading singular vectors. directions: "random" puts as many random
    orthonormal directions (from `seed`) in their place, an ablation.
    """
    G, h = _system(G, h)
    choice("directions", directions, DIRECTIONS)
    n_rows, n_pixels = G.shape
    lo, hi = (np.broadcast_to(np.asarray(b, float), n_pixels) for b in (lo, hi))
    if (lo > 0).any() or (hi < 0).any():
        raise ValueError("the box must contain 0: allowed are lo <= 0 <= hi")
    delta, free = np.zeros(n_pixels), np.ones(n_pixels, bool)
    gram, wanted = G @ G.T, h
    for round_ in range(1, BOX_ROUNDS + 1):
        left, sigma = left_vectors(gram)
        left, sigma, basis = left[:, :rank], sigma[:rank], None
        if directions == "random":
            rng = np.random.default_rng(seed)
            basis = np.linalg.qr(rng.normal(size=(free.sum(), len(sigma))))[0]
            matrix = G[:, free] @ basis
        else:
            matrix = left * sigma
        z, lam = _solve(matrix, wanted)
        if z is None:
            lam = np.zeros(n_rows)
            z = least_squares(matrix, wanted)
        found = left @ (z / sigma) @ G if basis is None else _scatter(basis @ z, free)
        delta = np.where(free, found, delta)
        leaving = free & ((delta < lo) | (delta > hi))
        if round_ == BOX_ROUNDS or not leaving.any():
            break
        delta = np.clip(delta, lo, hi)
        free = free & ~leaving
        fixed = G[:, leaving]
        gram = gram - fixed @ fixed.T
        wanted = wanted - fixed @ delta[leaving]
    delta = np.clip(delta, lo, hi)
    feasible = bool((G @ delta >= h - 1e-8 * (1 + np.abs(h))).all())
    return BoxedSolution(delta, lam, feasible, free, sigma, z, round_, G, h, left, basis)


def _system(G: ArrayLike, h: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    G, h = np.asarray(G, float), np.asarray(h, float)
    if G.ndim != 2 or h.shape != G.shape[:1] or 0 in G.shape:
        raise ValueError(f"G must be (m, D) and h (m,), got {G.shape} and {h.shape}")
    if not (np.isfinite(G).all() and np.isfinite(h).all()):
        raise ValueError("G and h must be finite")
    return G, h


def _scatter(values: np.ndarray, free: np.ndarray) -> np.ndarray:
    full = np.zeros(len(free))
    full[free] = values
    return full


def _solve(matrix: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """min |z| s.t. matrix z >= h, by u = argmin_{u >= 0} |[matrix'; h'] u - e_last|.

    With residual rho: z = -rho_first / rho_last and lam = -u / rho_last; no solution exists where
    rho_last vanishes. Rows are scaled to length 1, and h so that |z| is at least 1 (the distance
    to the farthest half-space), which makes that test independent of units.
    """
    if (h <= 0).all():
        return np.zeros(matrix.shape[1]), np.zeros(len(h))
    length = np.sqrt(np.square(matrix).sum(1))
    if (h[length == 0] > 0).any():
        return None, None
    length[length == 0] = 1.0
    scale = (h / length).max()
    system = np.vstack([(matrix / length[:, None]).T, h / (length * scale)])
    unit = np.zeros(len(system))
    unit[-1] = 1.0
    u = non_negative(system, unit)
    residual = system @ u - unit
    if -residual[-1] < INFEASIBLE:
        return None, None
    return -scale * residual[:-1] / residual[-1], -scale * u / (length * residual[-1])


def non_negative(system: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """argmin_{u >= 0} |system u - wanted|; RuntimeError when the solver does not settle.

    On nearly dependent columns rounding may send scipy's active set in a circle: it is then given
    more iterations, and at last columns that are changed in their tenth digit.
    """
    rng = np.random.default_rng(0)
    for iterations, change in ((30, 0.0), (300, 0.0), (300, 1e-12), (300, 1e-10)):
        tried = system + change * rng.normal(size=system.shape) if change else system
        try:
            return nnls(tried, wanted, maxiter=iterations * system.shape[1])[0]
        except RuntimeError:
            continue
    rows = system.shape[1]
    raise RuntimeError(f"the program of {rows} inequalities was not solved: nnls does not settle")
