"""Many small estimation problems at once, as flat arrays reduced to sums of each problem.

`Problems.of` takes labelled and unlabelled items with the problem each belongs to and checks them;
everything later needs only its means and centered sums. No loop over problems anywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Problems:
    """m problems in the order of `names`; every array is (m,).

    n, N: labelled and unlabelled items. y_bar, z_bar: means of labels and predictions of labelled
    items; z_tilde: mean of predictions of unlabelled ones. s_yy, s_yf, s_ff, s_uu: sums of products
    of deviations from these means.
    """

    names: np.ndarray
    n: np.ndarray
    N: np.ndarray
    y_bar: np.ndarray
    z_bar: np.ndarray
    z_tilde: np.ndarray
    s_yy: np.ndarray
    s_yf: np.ndarray
    s_ff: np.ndarray
    s_uu: np.ndarray

    def __len__(self) -> int:
        return len(self.n)

    @property
    def s_all(self) -> np.ndarray:
        """Sum of squared deviations of all predictions of a problem from their common mean."""
        between = self.n * self.N / (self.n + self.N) * (self.z_bar - self.z_tilde) ** 2
        return self.s_ff + self.s_uu + between

    @staticmethod
    def of(
        group_l: ArrayLike, y_l: ArrayLike, f_l: ArrayLike, group_u: ArrayLike, f_u: ArrayLike
    ) -> Problems:
        """Problems from flat arrays: group, label and prediction of each labelled item (n_items,),
        group and prediction of each unlabelled one; groups are numbers or words.

        Raises ValueError, in one line, for arrays of unequal length, values that are not finite
        numbers, and groups without labelled or without unlabelled items.
        """
        group_l, group_u = group_array(group_l, "group_l"), group_array(group_u, "group_u")
        y_l, f_l = numbers(y_l, "y_l", group_l), numbers(f_l, "f_l", group_l)
        f_u = numbers(f_u, "f_u", group_u)
        names, code_l, code_u = _coded(group_l, group_u)
        m = len(names)
        for code, other, what in ((code_l, "unlabelled", "labelled"),
                                  (code_u, "labelled", "unlabelled")):  # fmt: skip
            missing = names[np.bincount(code, minlength=m) == 0]
            if len(missing):
                more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
                raise ValueError(
                    f"problem {_said(missing[0])}{more} has {other} but no {what} items: each "
                    "problem needs at least one of both"
                )
        return summarize(names, code_l, y_l, f_l, code_u, f_u)


def summarize(
    names: np.ndarray,
    code_l: np.ndarray,
    y: np.ndarray,
    f: np.ndarray,
    code_u: np.ndarray,
    f_u: np.ndarray,
) -> Problems:
    """`Problems` from checked arrays whose groups are numbered 0 to m - 1, by segment sums."""
    m = len(names)

    def sums(code: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.bincount(code, values, m)

    n, N = np.bincount(code_l, minlength=m), np.bincount(code_u, minlength=m)
    y_bar, z_bar, z_tilde = sums(code_l, y) / n, sums(code_l, f) / n, sums(code_u, f_u) / N
    # Deviations, not sums of squares: the latter lose all digits when means are large.
    dy, df, du = y - y_bar[code_l], f - z_bar[code_l], f_u - z_tilde[code_u]
    return Problems(
        names, n, N, y_bar, z_bar, z_tilde,
        sums(code_l, dy * dy), sums(code_l, dy * df), sums(code_l, df * df), sums(code_u, du * du),
    )  # fmt: skip


def from_frame(df: Any, group: str, y: str, pred: str) -> Problems:
    """Problems from a DataFrame: columns of groups, labels and predictions.

    A row whose label is missing is unlabelled. Raises ValueError for a column that is not there.
    """
    return Problems.of(*split_frame(df, group, y, pred))


def split_frame(df: Any, group: str, y: str, pred: str) -> tuple[np.ndarray, ...]:
    """The five arrays of `Problems.of` from the columns of a DataFrame."""
    from difflib import get_close_matches

    if not hasattr(df, "columns"):
        raise ValueError(f"a DataFrame is needed, not {type(df).__name__}: see Problems.of")
    for column in (group, y, pred):
        if list(df.columns).count(column) > 1:
            raise ValueError(f"column {column!r} is there more than once in the frame")
        if column not in df.columns:
            near = get_close_matches(str(column), [str(c) for c in df.columns], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            there = ", ".join(repr(c) for c in df.columns)
            raise ValueError(f"no column {column!r} in the frame; there are {there}{hint}")
    labelled = df[y].notna().to_numpy()
    groups, labels, f = df[group].to_numpy(), _values(df[y])[labelled], _values(df[pred])
    return groups[labelled], labels, f[labelled], groups[~labelled], f[~labelled]


def _values(column: Any) -> np.ndarray:
    """A column as an array; missing numbers are nan, in pandas' nullable types too."""
    if column.dtype.kind in "iuf":
        return column.to_numpy(float, na_value=np.nan)
    return column.to_numpy()


def numbers(values: ArrayLike, name: str, groups: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Finite floats, one for each entry of groups; ValueError names the first that is none.

    Booleans are taken as 0 and 1, with a warning.
    """
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != len(groups):
        raise ValueError(
            f"{name} has shape {array.shape}: it must be ({len(groups)},), one entry an item"
        )
    objects = list(array) if array.dtype.kind == "O" else []
    if array.dtype == bool or (objects and all(isinstance(v, bool | np.bool_) for v in objects)):
        warnings.warn(f"{name} is boolean: taken as 0 and 1", stacklevel=3)
    words = any(isinstance(v, str) for v in objects)
    if words or array.dtype.kind in "USMmc":  # numbers written as text are a mistake too
        raise ValueError(f"{name} holds {_kind(array)}: it must hold numbers")
    try:
        array = array.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} holds text or objects: it must hold numbers") from None
    bad = np.flatnonzero(~np.isfinite(array))
    if len(bad):
        where = f"item {bad[0]} of problem {_said(groups[bad[0]])}"
        raise ValueError(
            f"{name} is {array[bad[0]]} for {where}: all values must be finite"
            + (f" ({len(bad)} are not)" if len(bad) > 1 else "")
        )
    return array


def _kind(array: np.ndarray) -> str:
    return {"c": "complex numbers", "M": "dates", "m": "times"}.get(array.dtype.kind, "text")


def group_array(values: ArrayLike, name: str) -> np.ndarray:
    """Groups of items (n_items,), numbers or words; ValueError where one is missing."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: it must be one-dimensional")
    missing = np.zeros(len(array), bool)
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    elif array.dtype.kind in "mM":
        missing = np.isnat(array)
    elif array.dtype.kind == "O":
        missing = np.array([_missing(v) for v in array], bool)
    if missing.any():
        raise ValueError(f"{name} is missing for item {np.argmax(missing)}")
    if array.dtype.kind == "O":
        array = array.astype(str) if all(isinstance(v, str) for v in array) else array
    return array


def _missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True


def _coded(group_l: np.ndarray, group_u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted names, and the number of each item's group among them."""
    if "O" in (group_l.dtype.kind, group_u.dtype.kind) or (
        (group_l.dtype.kind in "US") != (group_u.dtype.kind in "US")
    ):
        group_l, group_u = group_l.astype(str), group_u.astype(str)
    both = np.concatenate([group_l, group_u])
    if not len(both):
        raise ValueError("there are no items")
    names, code = _dense(both) or np.unique(both, return_inverse=True)
    return names, code[: len(group_l)], code[len(group_l) :]


def _dense(group: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The same as `np.unique` without sorting, for whole numbers that are close together."""
    if group.dtype.kind not in "iu":
        return None
    if group.dtype.kind == "i":
        group = group.astype(np.int64)  # differences of small types may not fit them
    low = group.min()
    if int(group.max()) - int(low) > 2 * len(group):
        return None
    code = (group - low).astype(np.intp)
    there = np.bincount(code) > 0
    if there.all():
        return np.arange(len(there)).astype(group.dtype) + low, code
    return np.flatnonzero(there).astype(group.dtype) + low, (there.cumsum() - 1)[code]


def _said(name: Any) -> str:
    return repr(str(name) if isinstance(name, str) else name.item() if hasattr(name, "item")
                else name)  # fmt: skip
