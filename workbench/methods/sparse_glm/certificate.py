"""Certificates: the leaves of a finished or unfinished tree, and a checker that trusts nothing.

`verify` shares no code with the solver: it rebuilds the partition, recomputes every bound from X,
y and the stored dual vectors, and the value of the point. Any dual vector gives a valid bound, so
float32 will do to store them: it costs tightness only.
"""

from __future__ import annotations

import time
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

ROUNDOFF = np.finfo(float).eps  # twice the unit roundoff: generous on purpose
SLACK = 1e-9  # relative difference to what is claimed that is blamed on rounding
AT_ONCE = 4e6  # numbers of dual vectors looked at together


@dataclass(frozen=True)
class Certificate:
    """The claim lower <= optimum <= upper, and its proof.

    leaves: (features in, features out) of each leaf; w (leaves, n): its dual vector, float32 unless
    that costs too much.
    support, coefficients: the point that has the value upper.
    """

    loss: str
    k: int
    lambda2: float
    M: float
    leaves: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    w: np.ndarray
    support: tuple[int, ...]
    coefficients: np.ndarray
    upper: float
    lower: float

    @property
    def nbytes(self) -> int:
        """Size of what is stored, in bytes."""
        decided = sum(len(inside) + len(outside) for inside, outside in self.leaves)
        return self.w.nbytes + 4 * decided + 12 * len(self.support)

    def save(self, path: str | Path) -> None:
        """Write an .npz file."""
        flat = [(leaf, j, side) for leaf, (inside, outside) in enumerate(self.leaves)
                for side, features in ((1, inside), (0, outside)) for j in features]  # fmt: skip
        np.savez_compressed(
            path, loss=self.loss, k=self.k, lambda2=self.lambda2, M=self.M, w=self.w,
            decided=np.array(flat, np.int32).reshape(-1, 3), support=np.array(self.support, int),
            coefficients=self.coefficients, bounds=[self.lower, self.upper],
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read what `save` wrote; ValueError in one line for another file."""
        try:
            with np.load(path, allow_pickle=False) as file:
                stored = {name: file[name] for name in file.files}
            sides: list[tuple[list[int], list[int]]] = [([], []) for _ in stored["w"]]
            for leaf, j, side in stored["decided"].tolist():
                sides[leaf][1 - side].append(j)
            return cls(
                str(stored["loss"]), int(stored["k"]), float(stored["lambda2"]),
                float(stored["M"]), tuple((tuple(a), tuple(b)) for a, b in sides), stored["w"],
                tuple(stored["support"].tolist()), stored["coefficients"],
                float(stored["bounds"][1]), float(stored["bounds"][0]),
            )  # fmt: skip
        except FileNotFoundError:
            raise ValueError(f"there is no file {path}") from None
        except (
            KeyError, IndexError, AttributeError, TypeError, ValueError, OSError,
            zipfile.BadZipFile,
        ) as error:  # fmt: skip
            raise ValueError(f"{path} is no certificate: {error}") from None


@dataclass(frozen=True)
class Verification:
    """What a check found: lower <= optimum <= upper is proven, or why the claim is rejected."""

    valid: bool
    reason: str
    lower: float
    upper: float
    leaves: int
    seconds: float

    @property
    def gap(self) -> float:
        """The proven gap, relative to upper."""
        return (self.upper - self.lower) / max(self.upper, 1e-300)


def verify(certificate: Certificate, X: ArrayLike, y: ArrayLike) -> Verification:
    """Check a certificate against the data X (n, p) and y (n,) and nothing else.

    Rejects, with the reason: leaves that do not partition all choices of k features; a bound
    claimed above what the leaves prove; a value of the point other than the one claimed, or a
    point outside the box or with too many features.
    """
    started = time.perf_counter()
    X, y = np.asarray(X, float), np.asarray(y, float)
    if certificate.loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    found: dict[str, Any] = {"lower": 0.0, "upper": np.inf}
    reason = _shape_problem(certificate, X, y)
    if not reason:
        found["upper"], reason = _point(certificate, X, y)
    if not reason:
        reason = _partition_problem(certificate)
    if not reason:
        # A point that is better than all the leaves prove nothing against: its value bounds too.
        safe, plain = _bounds(certificate, X, y)
        found["lower"] = min(found["upper"], max(0.0, float(safe.min())))
        # What is proven is rounded down; a claim is blamed only if it is wrong without that.
        least = max(0.0, float(plain.min()))
        if not least >= certificate.lower - SLACK * certificate.upper:
            reason = f"the leaves prove {least:.8g} only, claimed is {certificate.lower:.8g}"
    return Verification(
        not reason, reason or "proven", found["lower"], found["upper"], len(certificate.leaves),
        time.perf_counter() - started,
    )  # fmt: skip


def _shape_problem(c: Certificate, X: np.ndarray, y: np.ndarray) -> str:
    if c.loss not in ("linear", "logistic"):
        return f"the loss '{c.loss}' is unknown"
    if X.ndim != 2 or y.shape != X.shape[:1]:
        return f"X of shape {X.shape} and y of shape {y.shape} do not belong together"
    if c.w.shape != (len(c.leaves), len(y)) or not np.isfinite(c.w).all():
        return f"dual vectors of shape {c.w.shape} for {len(c.leaves)} leaves and {len(y)} rows"
    named = [j for inside, outside in c.leaves for j in (*inside, *outside)] + list(c.support)
    if named and not 0 <= min(named) <= max(named) < X.shape[1]:
        return f"features are named that the {X.shape[1]} columns do not have"
    if not (1 <= c.k <= X.shape[1] and c.lambda2 > 0 and c.M > 0):
        return "k, lambda2 or M is out of range"
    return ""


def _point(c: Certificate, X: np.ndarray, y: np.ndarray) -> tuple[float, str]:
    """The value of the point, rounded up, and what is wrong with it."""
    b = np.asarray(c.coefficients, float)
    if len(b) != len(c.support) or len(set(c.support)) > c.k or len(set(c.support)) < len(b):
        return np.inf, f"the point has {len(c.support)} features, allowed are {c.k} different ones"
    if len(b) and not np.abs(b).max() <= c.M:
        return np.inf, "the point is outside the box"
    columns = X[:, list(c.support)]
    fit = columns @ b
    error = ROUNDOFF * (len(b) + 2) * (np.abs(columns) @ np.abs(b))
    plain, value = (_value(c, y, fit, off) for off in (0.0, error))
    value = float(value * (1 + ROUNDOFF * (len(y) + len(b) + 16)))
    if not abs(plain - c.upper) <= SLACK * plain + 2 * (value - plain):
        return value, f"the point has the value {plain:.8g}, claimed is {c.upper:.8g}"
    return value, ""


def _value(c: Certificate, y: np.ndarray, fit: np.ndarray, off: np.ndarray | float) -> float:
    """The objective if each entry of fit is off by that much, to the worse side."""
    if c.loss == "linear":
        loss = np.sum((np.abs(y - fit) + off) ** 2)
    else:
        loss = np.sum(np.logaddexp(0.0, off - y * fit))
    return float(loss + c.lambda2 * np.sum(np.asarray(c.coefficients, float) ** 2))


def _partition_problem(c: Certificate) -> str:
    """Rebuild a binary tree from its leaves: each choice of features must be in exactly one."""
    sides = [dict.fromkeys(inside, 1) | dict.fromkeys(outside, 0) for inside, outside in c.leaves]
    for (inside, outside), decided in zip(c.leaves, sides, strict=True):
        if len(decided) < len(inside) + len(outside) or len(inside) > c.k:
            return "a leaf decides a feature twice or takes too many in"
    todo = [(list(range(len(sides))), frozenset())]
    while todo:
        group, path = todo.pop()
        if not group:
            return "the leaves leave out a part of the search space"
        if len(group) == 1 and len(sides[group[0]]) == len(path):
            continue
        # In a tree, the feature of the first branching is decided in every leaf below.
        fewest = min(group, key=lambda leaf: len(sides[leaf]))
        common = next((j for j in sides[fewest] if j not in path
                       and all(j in sides[leaf] for leaf in group)), None)  # fmt: skip
        if common is None:
            return "the leaves are no partition of the search space"
        for side in (0, 1):
            part = [leaf for leaf in group if sides[leaf][common] == side]
            todo.append((part, path | {common}))
    return ""


def _bounds(c: Certificate, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(leaves,) what each dual vector proves for its leaf, all rounding taken off, and without."""
    n, p = X.shape
    length = np.sqrt(np.sum(X**2, axis=0)) * (1 + ROUNDOFF * n)
    safe, plain = np.empty(len(c.leaves)), np.empty(len(c.leaves))
    rows = max(1, int(AT_ONCE / max(n, p)))
    for first in range(0, len(safe), rows):
        W = np.asarray(c.w[first : first + rows], float)
        if c.loss == "linear":
            terms = np.stack([W**2 / 4, W * y])
            conjugate = terms.sum((0, 2))
            slack = ROUNDOFF * (n + 6) * np.abs(terms).sum((0, 2))
        else:
            P = np.clip(-W * y, 0.0, 1.0)
            W = -P * y
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(P > 0, P * np.log(P), 0.0)
                terms = terms + np.where(P < 1, (1 - P) * np.log(1 - P), 0.0)
            conjugate = terms.sum(1)
            slack = ROUNDOFF * (n + 6) * (2 * np.abs(terms) + 2).sum(1)
        error = ROUNDOFF * (n + 2) * np.sqrt((W**2).sum(1))[:, None] * length * (1 + 1e-12)
        slopes = np.abs(W @ X)
        for row in range(len(W)):
            leaf = first + row
            plain[leaf] = -conjugate[row] - _penalty(c, leaf, slopes[row])
            penalty = _penalty(c, leaf, slopes[row] + error[row]) * (1 + ROUNDOFF * (p + 10))
            size = abs(conjugate[row]) + slack[row] + penalty
            safe[leaf] = -conjugate[row] - slack[row] - penalty - 4 * ROUNDOFF * size
    return safe, plain


def _penalty(c: Certificate, leaf: int, slopes: np.ndarray) -> float:
    """2 lambda2 times the conjugate of a leaf's g, of slopes = |X'w| (p,)."""
    alpha = slopes / (2 * c.lambda2)
    heights = np.where(alpha <= c.M, alpha**2 / 2, c.M * alpha - c.M**2 / 2)
    inside, outside = (list(side) for side in c.leaves[leaf])
    left = np.delete(heights, inside + outside)
    best = np.sort(left)[len(left) - min(c.k - len(inside), len(left)) :]
    return float(2 * c.lambda2 * (heights[inside].sum() + best.sum()))
