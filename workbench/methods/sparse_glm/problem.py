"""The problem: data, loss and the numbers k, lambda2, M, checked once.

    minimize f(X beta) + lambda2 |beta|_2^2   over   max |beta_j| <= M,  at most k non-zeros

Linear: f(u) = |u - y|^2, without a half. Logistic: f(u) = sum log(1 + exp(-y u)), y in {-1, +1}.
No intercept: center and standardize first, or use the estimators, which do.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.numerics.checks import choice

from . import _engine as engine

LOSSES = ("linear", "logistic")
EXACT_EIGENVALUE = 800  # smaller side up to which the largest eigenvalue is computed exactly
POWER_ITERATIONS, POWER_SAFETY = 60, 1.01
LARGEST = 1e100  # size of a number whose products still are numbers
PAIRS = 4_000  # columns up to which duplicates are looked for


@dataclass(frozen=True)
class Problem:
    """X (n, p) float64, y (n,), loss, k, lambda2, M; make one with `make_problem`.

    X is kept both row- and column-contiguous: each direction is one pass over memory.
    """

    X: np.ndarray
    y: np.ndarray
    loss: str
    k: int
    lambda2: float
    M: float
    name: str = "own data"
    names: Sequence[str] = ()
    XT: np.ndarray = field(repr=False, default=None)

    @property
    def n(self) -> int:
        """Rows."""
        return self.X.shape[0]

    @property
    def p(self) -> int:
        """Columns."""
        return self.X.shape[1]

    @property
    def kind(self) -> int:
        """The loss as the compiled code knows it."""
        return LOSSES.index(self.loss)

    @cached_property
    def norms(self) -> np.ndarray:
        """(p,) norms of the columns, rounded up."""
        return np.sqrt((self.XT**2).sum(1)) * (1 + (self.n + 4) * engine.EPS)

    @cached_property
    def largest_eigenvalue(self) -> float:
        """Of X'X: exact for small problems, else by the power method, with one percent on top."""
        if min(self.n, self.p) <= EXACT_EIGENVALUE:
            gram = self.XT @ self.X if self.p <= self.n else self.X @ self.XT
            return float(np.linalg.eigvalsh(gram)[-1])
        v = np.random.default_rng(0).standard_normal(self.p)
        for _ in range(POWER_ITERATIONS):
            v = self.XT @ (self.X @ (v / np.linalg.norm(v)))
        return float(np.linalg.norm(v) * POWER_SAFETY)

    @cached_property
    def L(self) -> float:
        """Lipschitz constant of the gradient of beta -> f(X beta)."""
        factor = 2.0 if self.loss == "linear" else 0.25
        return max(factor * self.largest_eigenvalue, 1e-12)

    def value(self, beta: np.ndarray) -> float:
        """The objective of beta (p,), as floating point has it."""
        beta = np.asarray(beta, float)
        return engine.loss(self.kind, self.X @ beta, self.y) + self.lambda2 * float(beta @ beta)

    def with_numbers(self, **numbers: Any) -> Problem:
        """The same data with other k, lambda2 or M; what was computed of X is kept."""
        values = {"k": self.k, "lambda2": self.lambda2, "M": self.M} | numbers
        check_numbers(self.p, **values)
        made = Problem(self.X, self.y, self.loss, **values, name=self.name, names=self.names,
                       XT=self.XT)  # fmt: skip
        for known in ("norms", "largest_eigenvalue", "L"):
            if known in self.__dict__:
                made.__dict__[known] = self.__dict__[known]
        return made


def check_numbers(p: int, k: int, lambda2: float, M: float) -> None:
    """ValueError in one line unless 1 <= k <= p, lambda2 > 0 and M > 0."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= p:
        raise ValueError(f"k = {k!r} is not allowed: a whole number from 1 to the {p} columns of X")
    for name, number, why in (
        ("lambda2", lambda2, "the perspective bound needs lambda2 > 0"),
        ("M", M, "the box needs M > 0"),
    ):
        if not (np.isscalar(number) and np.isreal(number) and 0 < number < np.inf):
            raise ValueError(f"{name} = {number!r} is not allowed: {why}")


def make_problem(
    X: ArrayLike,
    y: ArrayLike,
    loss: str = "linear",
    k: int = 5,
    lambda2: float = 2.0,
    M: float = 1.0,
    name: str = "own data",
    names: Sequence[str] | None = None,
) -> Problem:
    """A checked problem from arrays or a DataFrame X (n, p) and y (n,).

    Raises ValueError in one line: wrong shapes, values that are not finite, labels that are not
    two classes {-1, 1} or {0, 1}, numbers out of range, data too large for memory. Warns of labels
    0/1 (they become -1/+1), constant or equal columns, a response that is not centered.
    """
    choice("loss", loss, LOSSES)
    if names is None:
        names = [str(column) for column in getattr(X, "columns", ())]
    X = _matrix(X)
    n, p = X.shape
    y = _real("y", np.asarray(y))
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}: X has {n} rows, so needed is ({n},)")
    y = _labels(y) if loss == "logistic" else _response(y)
    check_numbers(p, k, lambda2, M)
    for remark in column_remarks(X):
        warnings.warn(remark, UserWarning, stacklevel=2)
    return Problem(X, y, loss, int(k), float(lambda2), float(M), name, tuple(names or ()),
                   np.ascontiguousarray(X.T))  # fmt: skip


def _matrix(X: ArrayLike) -> np.ndarray:
    import psutil

    if hasattr(X, "toarray"):
        fits(np.prod(X.shape), psutil.virtual_memory().available)
        X = X.toarray()
    try:
        X = _real("X", np.asarray(X))
        fits(X.size, psutil.virtual_memory().available)
        X = np.ascontiguousarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "memory" in str(error) or "complex" in str(error):
            raise
        raise ValueError(f"X must hold numbers only: {error}") from None
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}: needed is (n, p), rows by columns, none empty")
    if not np.isfinite(X).all():
        bad = np.flatnonzero(~np.isfinite(X).all(0))[:3].tolist()
        raise ValueError(f"X has values that are NaN or infinite, first in columns {bad}")
    _not_huge("X", X)
    return X


def _real(name: str, values: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(values):
        raise ValueError(f"{name} has complex values: real numbers are needed")
    return values


def _not_huge(name: str, values: np.ndarray) -> None:
    if np.abs(values).max() > LARGEST:
        raise ValueError(f"{name} has values beyond {LARGEST:g}: standardize it first")


def fits(entries: int, available: int) -> None:
    """ValueError in one line if X with so many entries needs more than the available bytes."""
    needed = 16 * int(entries)  # both orders, float64
    if needed > available:
        raise ValueError(
            f"X with {int(entries):,} entries is too large: both orders in memory take "
            f"{needed / 1e9:.1f} GB, {available / 1e9:.1f} GB are free"
        )


def _labels(y: np.ndarray) -> np.ndarray:
    try:
        found = np.unique(np.asarray(y, float))
    except (TypeError, ValueError):
        raise ValueError("y of the logistic loss must be -1/+1 or 0/1, not text") from None
    if not np.isfinite(found).all():
        raise ValueError("y has values that are NaN or infinite")
    if len(found) == 1:
        raise ValueError(f"y has one class only ({found[0]:g}): the logistic loss needs two")
    if not set(found) <= {-1.0, 1.0} and not set(found) <= {0.0, 1.0}:
        shown = ", ".join(f"{value:g}" for value in found[:5])
        raise ValueError(f"y has the values {shown}: the logistic loss needs -1/+1 or 0/1")
    if 0.0 in found:
        warnings.warn("y has labels 0 and 1: taken as -1 and +1", UserWarning, stacklevel=4)
        return np.where(np.asarray(y, float) > 0, 1.0, -1.0)
    return np.asarray(y, float)


def _response(y: np.ndarray) -> np.ndarray:
    try:
        y = np.ascontiguousarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("y of the linear loss must hold numbers only") from None
    if not np.isfinite(y).all():
        raise ValueError("y has values that are NaN or infinite")
    _not_huge("y", y)
    if abs(y.mean()) > 1e-6 * max(1e-12, np.abs(y).max()):
        warnings.warn(
            f"y is not centered (mean {y.mean():.3g}) and the model has no intercept: subtract "
            "the mean, or use the estimators", UserWarning, stacklevel=4,
        )  # fmt: skip
    return y


def column_remarks(X: np.ndarray) -> list[str]:
    """What makes ties possible, a sentence each: constant columns and multiples of each other."""
    remarks = []
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0)
    if len(constant):
        first = constant[:3].tolist()
        remarks.append(f"X has {len(constant)} constant columns, first {first}: ties are possible")
    if X.shape[1] > PAIRS:
        return remarks
    size = np.where((norms := np.linalg.norm(X, axis=0)) > 0, norms, 1)
    # Equal up to sign and scale: two projections that agree are compared entry by entry.
    unit = X / size * np.where(X[np.abs(X).argmax(0), np.arange(X.shape[1])] < 0, -1, 1)
    probe = np.random.default_rng(0).standard_normal(X.shape[0]) @ unit
    order = np.argsort(probe, kind="stable")
    pairs = [
        tuple(sorted((int(a), int(b))))
        for a, b in itertools.pairwise(order)
        if norms[a] > 0 and norms[b] > 0 and abs(probe[a] - probe[b]) < 1e-9
        and np.abs(unit[:, a] - unit[:, b]).max() < 1e-9
    ]  # fmt: skip
    if pairs:
        remarks.append(
            f"X has {len(pairs)} pairs of columns that are multiples of each other, first "
            f"{pairs[0]}: ties are possible"
        )
    return remarks
