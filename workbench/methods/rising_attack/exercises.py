"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook.

And what the last one leads to: the attack with another small program inside, in few pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor, nn

from workbench.exercises import Exercise

from .jacobian import adversarial_jacobian, forward
from .least_distance import boxed_least_distance, least_distance
from .ranking import gaps, non_targets, rank_matrix, row_classes


def _ranking_rows(answer) -> None:
    rng = np.random.default_rng(0)
    for n_classes, targets in ((4, [2, 0]), (6, [5]), (5, [3, 1, 4, 0])):
        rows = np.asarray(answer(targets, n_classes), float)
        wanted = (n_classes - 1, n_classes)
        assert rows.shape == wanted, f"{n_classes} classes need a matrix of shape {wanted}"
        assert np.allclose(rows.sum(1), 0), "each row compares two logits, so it sums to 0"
        for _ in range(200):
            logits = rng.normal(size=n_classes)
            if rng.random() < 0.5:  # half of the trials obey the order
                logits[targets] = 5 - np.arange(len(targets))
            obeyed = np.argsort(-logits)[: len(targets)].tolist() == targets
            assert bool((rows @ logits > 0).all()) == obeyed, (
                "all rows must be positive exactly when the targets come first, in their order"
            )


def _sqp_step(answer) -> None:
    rng = np.random.default_rng(1)
    A = rank_matrix([2, 0], 5)
    for n_pixels, margin in ((3, 0.1), (20, 0.05), (64, 0.5)):  # at 3 not every order is possible
        J, b = rng.normal(size=(5, n_pixels)), rng.normal(size=5)
        for delta in (np.zeros(n_pixels), 0.3 * rng.normal(size=n_pixels)):
            logits = J @ delta + b  # a linear model, so the answer does not depend on delta
            G, h = A @ J, margin - A @ b
            wanted, _ = least_distance(G, h)
            if wanted is None:
                continue
            given = np.asarray(answer(A, J, logits, delta, margin), float)
            assert given.shape == (n_pixels,), "the answer is a perturbation, (pixels,)"
            first = "from no perturbation" if not delta.any() else (
                "from a perturbation delta: the total one is wanted, not the change of it"
            )  # fmt: skip
            assert (G @ given >= h - 1e-6).all(), f"G delta >= h must hold {first}"
            assert np.linalg.norm(given) <= np.linalg.norm(wanted) + 1e-6, (
                f"there is a shorter one {first}"
            )


def _few_pixels(answer) -> None:
    rng = np.random.default_rng(2)
    for n_rows, n_pixels in ((1, 12), (4, 30), (9, 64)):
        G, clean = rng.normal(size=(n_rows, n_pixels)), rng.random(n_pixels)
        lo, hi = -clean, 1 - clean
        h = G @ (lo + (hi - lo) * rng.random(n_pixels))  # what some image obeys
        given = np.asarray(answer(G, h, lo, hi), float)
        assert given.shape == (n_pixels,), "the answer is a perturbation, one number for each pixel"
        assert (G @ given >= h - 1e-6).all(), "the linearized order G delta >= h must hold"
        assert ((given >= lo - 1e-9) & (given <= hi + 1e-9)).all(), "lo <= delta <= hi must hold"
        least = np.abs(least_l1(G, h, lo, hi)).sum()
        assert np.abs(given).sum() <= least + 1e-6, (
            f"its l1 is {np.abs(given).sum():.4f}; the least is {least:.4f}"
        )


def least_l1(G: np.ndarray, h: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """The delta (D,) of least l1 with G delta >= h and lo <= delta <= hi, by linear programming.

    G (m, D), h (m,), lo <= 0 <= hi (D,). ValueError where no delta obeys them.
    """
    # delta = p - q with p, q >= 0; at the optimum one of the two is 0 in each pixel.
    found = linprog(
        np.ones(2 * G.shape[1]), A_ub=np.hstack([-G, G]), b_ub=-h,
        bounds=np.column_stack([np.zeros(2 * len(lo)), [*hi, *-lo]]),
    )  # fmt: skip
    if found.x is None:
        raise ValueError("no perturbation in the box obeys G delta >= h")
    return found.x[: len(lo)] - found.x[len(lo) :]


def attack_with(
    program: Callable[..., np.ndarray],
    model: nn.Module,
    image: Tensor,
    order: Sequence[int],
    margin: float = 0.05,
    iters: int = 30,
) -> np.ndarray:
    """The notebook's loop around any small program, until it reaches the order: delta (C, H, W).

    program(G, h, lo, hi): the delta (D,) of the linearized problem, as `least_l1`; where it raises
    ValueError, since there is none, the least-squares one is taken. image (C, H, W) in [0, 1]. The
    last delta where the order is not reached in `iters` steps.
    """
    targets = torch.tensor([list(order)])
    delta = torch.zeros_like(image)
    for _ in range(iters):
        logits = forward(model, (image + delta)[None])
        rows = row_classes(targets, non_targets(targets, logits.shape[1]))
        gap = gaps(logits, *rows)[0]
        if (gap > 0).all():
            break
        G = adversarial_jacobian(model, (image + delta)[None], *rows)[0].double().numpy()
        clean, now = image.double().numpy().ravel(), delta.double().numpy().ravel()
        h = margin - gap.double().numpy() + G @ now
        try:
            goal = program(G, h, -clean, 1 - clean)
        except ValueError:
            goal = boxed_least_distance(G, h, -clean, 1 - clean).delta
        goal = torch.from_numpy(goal).to(image).view_as(image)
        tried = [delta + alpha * (goal - delta) for alpha in (1, 0.5, 0.25, 0.1)]
        answers = forward(model, torch.stack([(image + d).clamp(0, 1) for d in tried]))
        upper, lower = (r.expand(len(tried), -1) for r in rows)
        missing = (margin - gaps(answers, upper, lower)).clamp(min=0).sum(1)
        delta = (image + tried[int(missing.argmin())]).clamp(0, 1) - image
    return delta.numpy()


ranking_rows = Exercise(
    "Ranking matrix",
    _ranking_rows,
    "K - 1 rows compare neighbors in the order, the others the last target with each non-target.",
)
sqp_step = Exercise(
    "One SQP step",
    _sqp_step,
    "G = A J and h = margin - A logits + G delta. The least squares hold for B = G as for B = U S; "
    "scipy.optimize.nnls solves them.",
)
few_pixels = Exercise(
    "An attack in few pixels",
    _few_pixels,
    "Write delta = p - q with 0 <= p <= hi and 0 <= q <= -lo: least l1 is then a linear program "
    "for scipy.optimize.linprog.",
)
