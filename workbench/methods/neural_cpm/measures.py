"""What the experiments measure on lattices: fragments, moments of cell centers, scores, stability.

Pure functions of label arrays. Metrics as in the paper and its official code (second moments of
cell centers, variance fraction, inception score, stability); the fragment count is ours in its
implementation: components are counted on the torus, where the official code cuts at the edges.
"""

import warnings

import numpy as np
from numpy.typing import ArrayLike

from ._checks import as_frames, as_kind
from ._prices import compiled
from .energy import volumes


@compiled
def _root(parent, site):
    while parent[site] != site:
        site = parent[site]
    return site


@compiled
def _pieces(frame, reach, parent, pieces):
    """Join sites of a cell at most `reach` apart (larger of rows and columns); count the pieces."""
    height, width = frame.shape
    for site in range(height * width):
        parent[site] = site
    for row in range(height):
        for column in range(width):
            own = frame[row, column]
            if own == 0:
                continue
            pieces[own] += 1
            for down in range(reach + 1):
                for right in range(-reach if down else 1, reach + 1):
                    other_row, other_column = (row + down) % height, (column + right) % width
                    if frame[other_row, other_column] == own:
                        a = _root(parent, row * width + column)
                        b = _root(parent, other_row * width + other_column)
                        if a != b:
                            parent[max(a, b)] = min(a, b)
                            pieces[own] -= 1


def fragmented(cell: ArrayLike, order: int = 4) -> int | np.ndarray:
    """Number of cells in more than one piece, in (H, W), or (n,) of them for (n, H, W).

    A piece is an 8-connected component of the cell's mask dilated order / 2 times by a 3 x 3 square
    (claim 7: order 4, twice), on the torus: sites at most order + 1 apart belong together.
    Raises ValueError for a lattice that is not integer.
    """
    frames = as_frames(cell)
    pieces = np.zeros((len(frames), int(frames.max()) + 1), np.int64)
    parent = np.zeros(frames[0].size, np.int64)
    for frame, count in zip(frames, pieces, strict=True):
        _pieces(frame, order + 1, parent, count)
    broken = (pieces > 1).sum(1)
    return int(broken[0]) if np.ndim(cell) == 2 else broken


def centers(cell: ArrayLike, n_labels: int) -> np.ndarray:
    """(n, N, 2) or (N, 2): mean (row, column) of cells 1..N, not wrapped; nan for dead cells."""
    frames = as_frames(cell)
    key = (frames + np.arange(len(frames))[:, None, None] * n_labels).ravel()
    sizes = np.maximum(volumes(frames, n_labels), np.finfo(float).tiny)
    sums = [
        np.bincount(key, np.broadcast_to(axis, frames.shape).ravel(), minlength=sizes.size).reshape(
            sizes.shape
        )
        for axis in np.indices(frames.shape[1:])
    ]
    means = np.where(volumes(frames, n_labels) > 0, np.stack(sums) / sizes, np.nan)
    means = np.moveaxis(means, 0, -1)[:, 1:]
    return means[0] if np.ndim(cell) == 2 else means


def touches_edge(cell: ArrayLike) -> bool:
    """Does any cell reach the edge, so that centers without wrapping may be wrong?"""
    frames = as_frames(cell)
    return bool(frames[:, [0, -1]].any() or frames[:, :, [0, -1]].any())


def moments(cell: ArrayLike, kind: ArrayLike, axis_kind: int = 2) -> np.ndarray:
    """Second central moments of the cell centers of each kind, along and across the polar axis.

    cell (H, W) or (n, H, W); the axis is the first principal axis of the centers of `axis_kind` in
    each frame; moments are about each kind's own mean, in sites^2. Returns (K - 1, 2) or
    (n, K - 1, 2): row k - 1 holds kind k's (along, across). Claim 3 averages them over samples.
    Warns if cells touch the edge; raises ValueError if `axis_kind` has fewer than two cells.
    """
    frames, kind = as_frames(cell), as_kind(kind)
    if (kind == axis_kind).sum() < 2:
        raise ValueError(f"axis_kind = {axis_kind} has {(kind == axis_kind).sum()} cells; needs 2")
    if touches_edge(frames):
        warnings.warn("cells touch the edge: centers do not wrap around the torus", stacklevel=2)
    points = centers(frames, len(kind))

    def covariance(k):
        own = points[:, kind[1:] == k]
        own = own - np.nanmean(own, 1, keepdims=True)
        alive = np.isfinite(own).all(-1, keepdims=True)
        own = np.where(alive, own, 0.0)
        return own.swapaxes(1, 2) @ own / alive.sum(1, keepdims=True)

    axes = np.linalg.eigh(covariance(axis_kind))[1][:, :, ::-1]  # largest eigenvalue first
    values = np.stack(
        [
            np.einsum("nia,nij,nja->na", axes, covariance(k), axes)
            for k in range(1, int(kind.max()) + 1)
        ],
        axis=1,
    )
    return values[0] if np.ndim(cell) == 2 else values


def variance_fraction(moments_: ArrayLike) -> np.ndarray:
    """Share of the variance along the axis, for the moments (..., K - 1, 2) of `moments`."""
    moments_ = np.asarray(moments_)
    return moments_[..., 0] / moments_.sum(-1)


def moment_rmse(sample: ArrayLike, reference: ArrayLike) -> float:
    """RMSE over the numbers of two `moments` (n, K - 1, 2), each first averaged over samples."""
    return float(np.sqrt(np.mean((np.mean(sample, 0) - np.mean(reference, 0)) ** 2)))


def moment_rmse_interval(
    sample: ArrayLike, reference: ArrayLike, resamples: int = 2_000, seed: int = 0
) -> tuple[float, float]:
    """95 % percentile bootstrap interval of `moment_rmse` over the samples; reference as it is."""
    sample = np.asarray(sample)
    chosen = np.random.default_rng(seed).integers(len(sample), size=(resamples, len(sample)))
    off = sample[chosen].mean(1) - np.mean(reference, 0)
    low, high = np.quantile(np.sqrt((off**2).mean((1, 2))), [0.025, 0.975])
    return float(low), float(high)


def price_agreement(
    exact: ArrayLike, first_order: ArrayLike, analytic: ArrayLike = 0.0
) -> dict[str, float]:
    """How well first-order prices of copies stand for the exact ones; nan prices are left out.

    correlation; slope of first_order on exact; rms of their difference; acceptance_change: mean
    absolute change of min(1, exp(-Delta H)) with Delta H = analytic + network price, at T = 1.
    """
    exact, first_order, analytic = np.broadcast_arrays(exact, first_order, analytic)
    real = np.isfinite(exact) & np.isfinite(first_order)
    exact, first_order, analytic = exact[real], first_order[real], analytic[real]
    (variance, covariance), (_, other) = np.cov(exact, first_order)
    accepted = [np.exp(-np.maximum(0.0, analytic + price)) for price in (exact, first_order)]
    return {
        "correlation": float(covariance / np.sqrt(variance * other)),
        "slope": float(covariance / variance),
        "rms": float(np.sqrt(np.mean((first_order - exact) ** 2))),
        "acceptance_change": float(np.abs(accepted[1] - accepted[0]).mean()),
    }


def inception_score(probs: ArrayLike) -> float:
    """exp of the mean Kullback-Leibler divergence of p(y|x), rows of (n, classes), from p(y).

    Between 1 and the number of classes. Raises ValueError if rows are no distributions.
    """
    probs = np.asarray(probs, float)
    if probs.ndim != 2 or (probs < 0).any() or not np.allclose(probs.sum(1), 1, atol=1e-4):
        raise ValueError("probs must be (samples, classes) with rows that sum to 1")
    ratio = np.where(probs > 0, probs, 1.0) / np.maximum(probs.mean(0), 1e-300)
    return float(np.exp((probs * np.log(ratio)).sum(1).mean()))


def stability(
    frames: ArrayLike, data: ArrayLike, margin: float = 15, max_fragmented: int = 3
) -> float:
    """Share of frames that look like tissue (claim 7, official code).

    Every volume lies within [least in the data - margin, greatest + margin] and at most
    `max_fragmented` cells are in pieces. frames (n, H, W) and data (m, H, W) hold the same cells.
    """
    frames, data = as_frames(frames), as_frames(data)
    n_labels = int(max(frames.max(), data.max())) + 1
    allowed, sizes = volumes(data, n_labels)[:, 1:], volumes(frames, n_labels)[:, 1:]
    inside = (sizes >= allowed.min() - margin) & (sizes <= allowed.max() + margin)
    return float((inside.all(1) & (fragmented(frames) <= max_fragmented)).mean())
