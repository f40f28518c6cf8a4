"""The adversarial Jacobian G = A_T J: how each inequality of the order changes with each pixel.

One vector-Jacobian product for each row of A_T, batched over rows and images: `vmap` of `vjp`, in
chunks. J itself (classes x pixels) is never formed. Of the exact ways (vmap of vjp, autograd's
is_grads_batched, an expanded batch, a loop) vmap of vjp with detached weights was the fastest we
measured; detached, because then autograd keeps nothing for the weights, whose `.grad` stays as it
is whatever they require.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from ._checks import fits_memory


def forward(model: nn.Module, x: Tensor, chunk: int = 256) -> Tensor:
    """Logits (B, classes) of images (B, C, H, W), without a graph, at most `chunk` at a time."""
    with torch.no_grad():
        answers = [model(part) for part in x.split(chunk)]
    return torch.cat(answers) if len(answers) > 1 else answers[0]


def adversarial_jacobian(
    model: nn.Module, x: Tensor, above: Tensor, below: Tensor, chunk: int = 256
) -> Tensor:
    """G (B, m, pixels) at images x (B, C, H, W), in their dtype.

    above, below (B, m): the two classes of each row of A_T (`ranking.row_classes`). chunk: rows
    of all images together for one backward pass. Where logits do not
    depend on the image G is zero. Raises MemoryError when the rows of an image do not fit.
    """
    n_images, n_rows = above.shape
    fits_memory(n_rows, x[0].numel(), x.element_size())
    rows_at_once = max(1, chunk // n_images)
    pieces = list(zip(above.T.split(rows_at_once), below.T.split(rows_at_once), strict=True))
    try:
        try:
            G = _by_vmap(model, x, pieces)
        except RuntimeError as error:
            if _is_memory(error):
                raise
            # A custom autograd function or scripted code that torch.func cannot transform.
            G = _by_expansion(model, x, pieces)
    except (RuntimeError, MemoryError) as error:
        if not _is_memory(error):
            raise
        raise MemoryError(
            f"no memory for {rows_at_once} rows x {n_images} images in one backward pass; "
            f"lower chunk = {chunk}, or keep fewer rows with rivals"
        ) from error
    return G.transpose(0, 1).flatten(2).detach()


def _by_vmap(model: nn.Module, x: Tensor, pieces: list[tuple[Tensor, Tensor]]) -> Tensor:
    """(m, B, C, H, W): one forward pass, then all rows of a piece in one backward pass."""
    weights = dict(model.named_parameters()) | dict(model.named_buffers())
    weights = {name: w.detach() for name, w in weights.items()}
    with torch.enable_grad():
        logits, pull = vjp(lambda images: functional_call(model, weights, (images,)), x)
        return torch.cat([vmap(lambda v: pull(v)[0])(_cotangents(logits, *p)) for p in pieces])


def _by_expansion(model: nn.Module, x: Tensor, pieces: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The same by plain autograd, with a copy of the images for each row."""
    parts = []
    for upper, lower in pieces:
        copies = x.expand(len(upper), *x.shape).flatten(0, 1).clone().requires_grad_()
        with torch.enable_grad():
            logits = model(copies)
        cotangent = _cotangents(logits[: len(x)], upper, lower).flatten(0, 1)
        G = None
        if logits.requires_grad:
            (G,) = torch.autograd.grad(logits, copies, cotangent, allow_unused=True)
        G = torch.zeros_like(copies) if G is None else G
        parts.append(G.view(len(upper), *x.shape))
    return torch.cat(parts)


def _cotangents(logits: Tensor, upper: Tensor, lower: Tensor) -> Tensor:
    """Rows of A_T as (rows, B, classes): +1 at the upper class, -1 at the lower one."""
    cotangent = logits.new_zeros(len(upper), *logits.shape)
    cotangent.scatter_(2, upper[..., None], 1.0)
    return cotangent.scatter_(2, lower[..., None], -1.0)


def _is_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "memory" in str(error).lower()
