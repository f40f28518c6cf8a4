"""Adam and AdamW that are ready at once: torch's arithmetic without torch's optimizer classes.

The first `torch.optim` object of a process imports torch's compiler, which takes one to two
seconds: as long as a small training here. One learning rate for all parameters, no groups.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Adam (Kingma and Ba 2015) on torch's fused kernel.

    parameters: tensors that require gradients, changed in place. lr may be set between steps.
    weight_decay: decoupled, as in AdamW (Loshchilov and Hutter 2019). Raises ValueError when
    nothing is to be trained.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        self.parameters = [p for p in parameters if p.requires_grad]
        if not self.parameters:
            raise ValueError("parameters hold nothing that requires gradients")
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.reset()

    def reset(self) -> None:
        """Forget all averages, as a new optimizer would."""
        self._means = [torch.zeros_like(p) for p in self.parameters]
        self._squares = [torch.zeros_like(p) for p in self.parameters]
        self._steps = [torch.zeros(()) for _ in self.parameters]

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step along the present gradients; parameters without one stay."""
        state = zip(self.parameters, self._means, self._squares, self._steps, strict=True)
        present = [row for row in state if row[0].grad is not None]
        if not present:
            return
        parameters, means, squares, steps = map(list, zip(*present, strict=True))
        adam(
            parameters, [p.grad for p in parameters], means, squares, [], steps, fused=True,
            decoupled_weight_decay=True, amsgrad=False, beta1=self.betas[0], beta2=self.betas[1],
            lr=self.lr, weight_decay=self.weight_decay, eps=self.eps, maximize=False,
        )  # fmt: skip
