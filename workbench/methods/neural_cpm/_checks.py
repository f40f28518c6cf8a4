"""Checks of what people hand to the cellular Potts functions: one clear line per mistake.

Every function returns the checked value in the form the engine uses, or raises ValueError naming
the thing, its value and what is allowed. Nothing is repaired silently.
"""

import numpy as np
from numpy.typing import ArrayLike


def as_frames(cell: ArrayLike, name: str = "cell") -> np.ndarray:
    """(H, W) or (n, H, W) integer labels as (n, H, W) int32: sides at least 3, none negative."""
    frames = np.asarray(cell)
    if frames.ndim not in (2, 3):
        raise ValueError(f"{name} must be (H, W) or (n, H, W), got shape {frames.shape}")
    if frames.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integer identities, got {frames.dtype}")
    frames = frames[None] if frames.ndim == 2 else frames
    if len(frames) == 0 or min(frames.shape[1:]) < 3:
        raise ValueError(f"{name} needs at least one lattice of 3 x 3 sites, got {frames.shape}")
    if frames.min() < 0:
        raise ValueError(f"{name} holds identity {frames.min()}; allowed are 0 (medium) and up")
    return frames.astype(np.int32)


def as_kind(kind: ArrayLike, n_kinds: int | None = None) -> np.ndarray:
    """(N + 1,) integer kinds, 0 for medium alone, below n_kinds, as int32."""
    kind = np.asarray(kind)
    if kind.ndim != 1 or len(kind) < 2 or kind.dtype.kind not in "iu":
        raise ValueError(f"kind must be integers, one per identity from 0, got {kind!r:.80}")
    if kind[0] != 0:
        raise ValueError(f"kind[0] is the medium and must be 0, got {kind[0]}")
    if kind[1:].min() < 1:
        at = 1 + int(kind[1:].argmin())
        raise ValueError(f"kind[{at}] = {kind[at]}: a cell needs a kind of at least 1")
    if n_kinds is not None and kind.max() >= n_kinds:
        at = int(kind.argmax())
        raise ValueError(f"kind[{at}] = {kind[at]} but J has kinds 0..{n_kinds - 1} only")
    return kind.astype(np.int32)


def all_alive(frames: np.ndarray, kind: np.ndarray) -> None:
    """Raise unless the identities of every frame are exactly 1..N, with or without medium."""
    n_labels = len(kind)
    if frames.max() >= n_labels:
        raise ValueError(
            f"kind is too short: it has {n_labels} entries but cell holds identity {frames.max()}"
        )
    chain = np.arange(len(frames))[:, None, None] * n_labels
    found = np.bincount((frames + chain).ravel(), minlength=len(frames) * n_labels)
    dead = np.argwhere(found.reshape(-1, n_labels)[:, 1:] == 0)
    if len(dead):
        frame, identity = dead[0]
        raise ValueError(
            f"identities must be 0..{n_labels - 1}: {len(dead)} cells have no site, the first is "
            f"cell {identity + 1} in frame {frame}; relabel consecutively or leave the frame out"
        )


def contact_matrix(J: ArrayLike) -> np.ndarray:
    """(K, K) finite symmetric contact energies with J[0, 0] = 0, read-only float64."""
    J = np.array(J, float)
    if J.ndim != 2 or J.shape[0] != J.shape[1] or len(J) < 2:
        raise ValueError(f"J must be square with a row for medium and each kind, got {J.shape}")
    if not np.isfinite(J).all():
        raise ValueError("J must be finite")
    if not np.allclose(J, J.T):
        row, column = np.argwhere(~np.isclose(J, J.T))[0]
        raise ValueError(
            f"J must be symmetric: J[{row}, {column}] = {J[row, column]:g} but "
            f"J[{column}, {row}] = {J[column, row]:g}"
        )
    if J[0, 0] != 0:
        raise ValueError(f"J[0, 0] is medium against itself and must be 0, got {J[0, 0]:g}")
    J.setflags(write=False)
    return J


def per_kind(name: str, value: ArrayLike, n_kinds: int, minimum: float = -np.inf) -> np.ndarray:
    """A number or one per kind as (K,) float64 with 0 for medium, whose entry is ignored."""
    values = np.array(value, float)
    if values.ndim == 0:
        values = np.full(n_kinds, values)
    if values.shape != (n_kinds,):
        raise ValueError(
            f"{name} must be a number or have {n_kinds} entries (medium first), got {values.shape}"
        )
    values[0] = 0.0
    bad = ~np.isfinite(values[1:]) | (values[1:] < minimum)
    if bad.any():
        at = 1 + int(bad.argmax())
        raise ValueError(
            f"{name}[{at}] = {values[at]:g}; allowed are finite numbers >= {minimum:g}"
        )
    values.setflags(write=False)
    return values


def number(name: str, value: float, minimum: float = -np.inf, above: bool = False) -> float:
    """A number of at least `minimum` (greater, if `above`); infinity is let through."""
    value = float(value)
    if np.isnan(value) or value < minimum or (above and value == minimum):
        raise ValueError(f"{name} = {value:g}; allowed is {'>' if above else '>='} {minimum:g}")
    return value


def array_of(name: str, value: ArrayLike, *shapes: tuple[int, ...]) -> np.ndarray:
    """Finite floats of one of the given shapes."""
    values = np.array(value, float)
    if values.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"{name} must have shape {allowed}, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite")
    return values
