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
        return torch.cat([model(part) for part in x.split(chunk)])


def adversarial_jacobian(
    model: nn.Module, x: Tensor, above: Tensor, below: Tensor, chunk: int = 256
) -> Tensor:
    """G (B, m, pixels) at images x (B, C, H, W), in their dtype.

    above, below (B, m): the two classes of each row of A_T (`ranking.row_classes`). chunk: rows
    of all images together for one backward pass. Raises ValueError when the logits do not depend
    on an image (zero Jacobian), MemoryError when the rows of an image do not fit.
    """
    n_images, n_rows = above.shape
    fits_memory(n_rows, x[0].numel(), x.element_size())
    weights = {name: p.detach() for name, p in model.named_parameters()}
    weights |= {name: b.detach() for name, b in model.named_buffers()}
    rows_at_once = max(1, chunk // n_images)
    try:
        with torch.enable_grad():
            logits, pull = vjp(lambda images: functional_call(model, weights, (images,)), x)
            images = torch.arange(n_images, device=x.device)
            parts = []
            for upper, lower in zip(
                above.T.split(rows_at_once), below.T.split(rows_at_once), strict=True
            ):
                cotangent = logits.new_zeros(len(upper), *logits.shape)
                row = torch.arange(len(upper), device=x.device)[:, None]
                cotangent[row, images, upper] = 1
                cotangent[row, images, lower] = -1
                parts.append(vmap(lambda v: pull(v)[0])(cotangent).flatten(2))
    except (RuntimeError, MemoryError) as error:
        if "memory" in str(error).lower():
            raise MemoryError(
                f"no memory for {rows_at_once} rows x {n_images} images in one backward pass; "
                f"lower chunk = {chunk}, or keep fewer rows with rivals"
            ) from error
        raise
    return torch.cat(parts).transpose(0, 1).detach()


def dependent(G: Tensor) -> Tensor:
    """(B,) whether the logits of each image move with it at all, from G (B, m, pixels)."""
    return (G != 0).flatten(1).any(1)
