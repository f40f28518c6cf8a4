"""The energy of whole lattices, counted anew: contacts, volumes, perimeters, external fields.

This is the definition of H on the torus with the Moore neighborhood (each unordered pair once), for
one lattice or a batch. The engine never calls it while it moves; it prices single copies instead
(`_prices`), and the tests hold the two against each other.
"""

import numpy as np
from numpy.typing import ArrayLike

from ._checks import as_frames, as_kind, contact_matrix, per_kind
from ._prices import compiled


@compiled
def _count(frames, kind, contacts, perimeters):
    """Fill contacts (n, K, K), upper triangle, and perimeters (n, N + 1) of unlike pairs."""
    n, height, width = frames.shape
    for frame in range(n):
        for row in range(height):
            below = row + 1 if row + 1 < height else 0
            for column in range(width):
                right = column + 1 if column + 1 < width else 0
                left = column - 1 if column > 0 else width - 1
                own = frames[frame, row, column]
                for step in range(4):
                    other = frames[
                        frame,
                        row if step == 0 else below,
                        (right, left, column, right)[step],
                    ]
                    if other != own:
                        a, b = kind[own], kind[other]
                        contacts[frame, min(a, b), max(a, b)] += 1
                        perimeters[frame, own] += 1
                        perimeters[frame, other] += 1


def _counts(cell: ArrayLike, kind: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    frames, kind = as_frames(cell), as_kind(kind)
    if frames.max() >= len(kind):
        raise ValueError(
            f"kind is too short: it has {len(kind)} entries but cell holds identity {frames.max()}"
        )
    n_kinds = int(kind.max()) + 1
    contacts = np.zeros((len(frames), n_kinds, n_kinds), np.int64)
    perimeters = np.zeros((len(frames), len(kind)), np.int64)
    _count(frames, kind, contacts, perimeters)
    if np.ndim(cell) == 2:
        return contacts[0], perimeters[0]
    return contacts, perimeters


def contact_counts(cell: ArrayLike, kind: ArrayLike) -> np.ndarray:
    """Unlike neighbor pairs by the kinds of their cells, each unordered pair once.

    cell: (H, W) or (n, H, W) identities; kind: (N + 1,). Returns (K, K) or (n, K, K) int64, filled
    in the upper triangle: entry (k, l), k <= l, multiplies J[k, l]. Raises ValueError (bad input).
    """
    return _counts(cell, kind)[0]


def perimeters(cell: ArrayLike, kind: ArrayLike) -> np.ndarray:
    """(N + 1,) or (n, N + 1): pairs of a site of the cell and one of its 8 neighbors outside it."""
    return _counts(cell, kind)[1]


def volumes(cell: ArrayLike, n_labels: int) -> np.ndarray:
    """(n_labels,) or (n, n_labels) int64: number of sites of each identity."""
    frames = as_frames(cell)
    chain = np.arange(len(frames))[:, None, None] * n_labels
    counts = np.bincount((frames + chain).ravel(), minlength=len(frames) * n_labels)
    return counts.reshape((n_labels,) if np.ndim(cell) == 2 else (len(frames), n_labels))


def border(cell: ArrayLike) -> np.ndarray:
    """(H, W) or (n, H, W) bool: sites with at least one neighbor of another identity."""
    frames = np.asarray(cell)
    unlike = np.zeros(frames.shape, bool)
    for shift in ((0, 1), (1, 0), (1, 1), (1, -1)):
        pair = frames != np.roll(frames, shift, (-2, -1))
        unlike |= pair | np.roll(pair, (-shift[0], -shift[1]), (-2, -1))
    return unlike


def energy_terms(
    cell: ArrayLike,
    kind: ArrayLike,
    J: ArrayLike,
    lam: ArrayLike,
    V_target: ArrayLike,
    *,
    contact_norm: float = 0.25,
    lam_P: ArrayLike = 0.0,
    P_target: ArrayLike = 0.0,
    fields: ArrayLike | None = None,
) -> dict[str, np.ndarray]:
    """The terms of H by name; their sum is the energy.

    cell (H, W) or (n, H, W); kind (N + 1,); J (K, K); the others a number or one per kind, medium
    ignored; fields None, (K, H, W) or (n, K, H, W). Cells without a site are no part of the system.
    Each term is a number for one lattice and (n,) for a batch (H: contact, volume,
    perimeter and external field of the paper and its official code).
    """
    J = contact_matrix(J)
    frames, kind = as_frames(cell), as_kind(kind, len(J))
    contacts, outlines = _counts(frames, kind)
    used = contacts.shape[-1]
    sizes = volumes(frames, len(kind))
    alive = (sizes > 0) & (kind > 0)

    def elastic(counts, weight_name, weight, target_name, target):
        weight = per_kind(weight_name, weight, len(J), 0)[kind]
        target = per_kind(target_name, target, len(J), 0)[kind]
        return (alive * weight * (counts - target) ** 2).sum(-1)

    terms = {
        "contact": contact_norm * (contacts * J[:used, :used]).sum((-2, -1)),
        "volume": elastic(sizes, "lam", lam, "V_target", V_target),
        "perimeter": elastic(outlines, "lam_P", lam_P, "P_target", P_target),
        "field": np.zeros(len(frames)),
    }
    if fields is not None:
        kinds = kind[frames][:, None]
        own = np.take_along_axis(
            np.broadcast_to(fields, (len(frames), *np.shape(fields)[-3:])), kinds, 1
        )
        terms["field"] = (own * (kinds > 0)).sum((1, 2, 3))
    return {name: term[0] if np.ndim(cell) == 2 else term for name, term in terms.items()}
