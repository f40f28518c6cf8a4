"""Effective dimension: how many directions the data determine, and the identities it is part of.

N_eff(A, alpha) = sum_i lambda_i / (lambda_i + alpha). For a two-layer network the curvature is the
generalized Gauss-Newton matrix of the summed loss; its eigenvalues come from a Gram matrix over
(example, class) pairs, which never forms a matrix over the parameters.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky

from . import _checks


def effective_dimension(eigenvalues: np.ndarray, alpha: float) -> np.ndarray | float:
    """sum over the last axis of eigenvalues / (eigenvalues + alpha); ValueError for alpha <= 0."""
    alpha = _checks.number("alpha", alpha, 0, np.inf, open_ends=True)
    eigenvalues = np.maximum(np.asarray(eigenvalues, float), 0)
    total = (eigenvalues / (eigenvalues + alpha)).sum(-1)
    return float(total) if total.ndim == 0 else total


def gauss_newton_gram(
    x: np.ndarray, W1: np.ndarray, b1: np.ndarray, W2: np.ndarray, b2: np.ndarray
) -> np.ndarray:
    """Lambda^1/2 J J^T Lambda^1/2 of a ReLU network with one hidden layer, (n C, n C).

    x: (n, d). W1: (d, h), b1: (h,), W2: (h, C), b2: (C,). Its nonzero eigenvalues are those of the
    Gauss-Newton matrix of the summed cross-entropy.
    """
    before = x @ W1 + b1
    mask = (before > 0).astype(float)
    hidden = before * mask
    logits = hidden @ W2 + b2
    logits -= logits.max(1, keepdims=True)
    p = np.exp(logits)
    p /= p.sum(1, keepdims=True)
    n, C = p.shape
    outer = x @ x.T + 1  # <x_bar, x_bar'> with x_bar = (x, 1)
    # sum_k m_ik m_jk W_ck W_dk: rows (i, c), columns (j, d)
    paths = (mask[:, None, :] * W2.T[None]).reshape(n * C, -1)
    gram = (paths @ paths.T).reshape(n, C, n, C) * outer[:, None, :, None]
    last = hidden @ hidden.T + 1
    for c in range(C):
        gram[:, c, :, c] += last
    root = _root(p)
    half = np.einsum("iab,ibjd->iajd", root, gram, optimize=True)
    both = np.einsum("iajb,jbd->iajd", half, root, optimize=True).reshape(n * C, n * C)
    return 0.5 * (both + both.T)


def _root(p: np.ndarray) -> np.ndarray:
    """Symmetric square roots of diag(p) - p p^T, (n, C, C)."""
    cov = -p[:, :, None] * p[:, None, :]
    i = np.arange(p.shape[1])
    cov[:, i, i] += p
    values, vectors = np.linalg.eigh(cov)
    roots = np.sqrt(np.maximum(values, 0))
    return (vectors * roots[:, None]) @ vectors.transpose(0, 2, 1)


def network_eigenvalues(x: np.ndarray, layers: list[np.ndarray], n: int) -> np.ndarray:
    """Curvatures of a two-layer network from the examples x, scaled to a sum over n of them.

    layers: W1, b1, W2, b2 as `gauss_newton_gram` takes them. Those that are not zero, for
    `effective_dimension` at any alpha.
    """
    gram = gauss_newton_gram(np.asarray(x, float), *(np.asarray(a, float) for a in layers))
    return np.linalg.eigvalsh(gram) * (n / len(x))


def network_dimension(x: np.ndarray, layers: list[np.ndarray], alpha: float, n: int) -> float:
    """N_eff of the same."""
    return effective_dimension(network_eigenvalues(x, layers, n), alpha)


def lanczos_dimension(
    x: np.ndarray, layers: list[np.ndarray], alpha: float, n: int, rank: int = 600, seed: int = 0
) -> float:
    """The same by Lanczos on products J^T Lambda J v with automatic differentiation: a check."""
    import torch
    from scipy.sparse.linalg import LinearOperator, eigsh

    parts = [torch.tensor(np.asarray(a), dtype=torch.float64) for a in layers]
    sizes = [p.numel() for p in parts]
    point = torch.tensor(np.asarray(x), dtype=torch.float64)

    def logits(flat: torch.Tensor) -> torch.Tensor:
        W1, b1, W2, b2 = (
            piece.view(p.shape) for piece, p in zip(flat.split(sizes), parts, strict=True)
        )
        return torch.relu(point @ W1 + b1) @ W2 + b2

    flat = torch.cat([p.reshape(-1) for p in parts])
    out, pull = torch.func.vjp(logits, flat)
    p = torch.softmax(out, 1)

    def product(v: np.ndarray) -> np.ndarray:
        _, moved = torch.func.jvp(logits, (flat,), (torch.from_numpy(v.ravel()),))
        curved = p * moved - p * (p * moved).sum(1, keepdim=True)
        return pull(curved)[0].numpy() * (n / len(x))

    size = len(flat)
    operator = LinearOperator((size, size), matvec=product, dtype=float)
    k = min(rank, size - 2, out.numel())
    start = np.random.default_rng(seed).standard_normal(size)
    return effective_dimension(eigsh(operator, k, v0=start, return_eigenvectors=False), alpha)


def linear_gaussian(
    phi: np.ndarray, y: np.ndarray, prior_variance: float, noise_variance: float
) -> dict[str, float]:
    """A Bayesian linear model in closed form: both sides of two identities.

    phi: (n, d), y: (n,). Returns `evidence` = log p(D), `fit` = E_Q[-log p(D | w)] and `divergence`
    = KL(Q || P), with -evidence = fit + divergence; and `dimension` = sum lambda / (lambda + 1 /
    prior variance), which is `trace` = d - tr(Sigma) / prior variance.
    """
    n, d = phi.shape
    precision = phi.T @ phi / noise_variance + np.eye(d) / prior_variance
    lower = cholesky(precision, lower=True)
    covariance = cho_solve((lower, True), np.eye(d))
    mean = covariance @ (phi.T @ y) / noise_variance
    residual = y - phi @ mean
    expected = residual @ residual + np.trace(phi @ covariance @ phi.T)
    fit = 0.5 * n * np.log(2 * np.pi * noise_variance) + 0.5 * expected / noise_variance
    log_det = -2 * np.log(np.diag(lower)).sum()
    divergence = 0.5 * (
        np.trace(covariance) / prior_variance + mean @ mean / prior_variance - d
        + d * np.log(prior_variance) - log_det
    )  # fmt: skip
    marginal = prior_variance * phi @ phi.T + noise_variance * np.eye(n)
    root = cholesky(marginal, lower=True)
    log_evidence = (
        -0.5 * y @ cho_solve((root, True), y)
        - np.log(np.diag(root)).sum()
        - 0.5 * n * np.log(2 * np.pi)
    )
    eigenvalues = np.linalg.eigvalsh(phi.T @ phi / noise_variance)
    return {
        "evidence": float(log_evidence), "fit": float(fit), "divergence": float(divergence),
        "dimension": effective_dimension(eigenvalues, 1 / prior_variance),
        "trace": float(d - np.trace(covariance) / prior_variance),
    }  # fmt: skip
