"""RisingAttacK as sequential quadratic programming: linearize, solve, step, repeat.

Reconstruction from the paper's abstract and first principles: program, box, line search and merit
rule are ours. Each iteration linearizes A_T f >= margin at the present image, finds the shortest
total perturbation that obeys it (`least_distance.py`), and moves toward it as far as the true
logits say is good. It goes on after the first success, toward a smaller perturbation. All images
of a batch share the Jacobian and the line search; only the small program is solved one by one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ._checks import choice, number, whole
from .jacobian import adversarial_jacobian, dependent, forward
from .least_distance import DIRECTIONS, boxed_least_distance
from .ranking import gaps, non_targets, row_classes, strongest_rivals
from .records import Snapshot

BOXES = ("active", "none")
GROUP_BYTES = 500_000_000  # Jacobians of more images than this are computed one group after another
SMALL_STEP = 1e-4  # of the perturbation's norm: an image that has succeeded stops below it


@dataclass(frozen=True)
class RisingOptions:
    """The options of the attack, checked when made.

    iters: SQP steps. margin: logits by which each inequality is demanded. rivals: only the so many
    highest non-targets get a row (None: all). rank: leading singular vectors kept (None: all).
    box: "active" keeps the program inside [0, 1], "none" only clips its steps. line_search: False
    takes full steps. alphas: step fractions tried, in one forward pass. tau: fraction of each
    violation demanded a step. trust: longest step (l2; None: any). chunk: rows of a backward pass,
    and images of a forward one. early_stop: finish an image that has succeeded once its steps are
    small. directions: "random" puts random directions, from seed, for the singular vectors.
    """

    iters: int = 30
    margin: float = 0.05
    rivals: int | None = None
    rank: int | None = None
    box: str = "active"
    line_search: bool = True
    alphas: Sequence[float] = (1.0, 0.5, 0.25, 0.1)
    tau: float = 1.0
    trust: float | None = None
    chunk: int = 256
    early_stop: bool = True
    directions: str = "singular"
    seed: int = 0

    def __post_init__(self) -> None:
        whole("iters", self.iters, 1, 500)
        number("margin", self.margin, 0, 5)
        for name in ("rivals", "rank"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
        choice("box", self.box, BOXES)
        choice("directions", self.directions, DIRECTIONS)
        if len(self.alphas) == 0:
            raise ValueError("alphas is empty; allowed are step fractions > 0 and <= 1")
        for alpha in self.alphas:
            number("alphas", alpha, 0, 1, above=True)
        number("tau", self.tau, 0, 1, above=True)
        if self.trust is not None:
            number("trust", self.trust, 0, above=True)
        whole("chunk", self.chunk, 1)
        whole("seed", self.seed, 0)


def rising_steps(
    model: nn.Module, x: Tensor, targets: Tensor, options: RisingOptions
) -> Generator[Snapshot, None, tuple[Tensor, Tensor]]:
    """Attack checked images x (B, C, H, W) with checked targets (B, K): a `Snapshot` an iteration.

    Returns the best delta (B, C, H, W), zeros where none reaches the order, and success (B,).
    """
    margin, chunk = options.margin, options.chunk
    alphas = options.alphas if options.line_search else (1.0,)
    alphas = torch.tensor(alphas, dtype=x.dtype, device=x.device)
    n_pixels = x[0].numel()
    logits = forward(model, x, chunk)
    rows = row_classes(targets, non_targets(targets, logits.shape[1]))
    delta, best_delta = torch.zeros_like(x), torch.zeros_like(x)
    best_norm = torch.full_like(x.flatten(1)[:, 0], torch.inf)
    penalty = torch.zeros_like(best_norm)
    alpha, small = torch.zeros_like(best_norm), torch.zeros_like(best_norm, dtype=torch.bool)
    free_pixels = torch.full_like(best_norm, n_pixels, dtype=torch.long)
    active_rows = torch.zeros_like(free_pixels)

    for iteration in range(options.iters + 1):
        gap = gaps(logits, *rows)
        violation = (margin - gap).clamp(min=0)
        norm = delta.flatten(1).norm(dim=1)
        success = (gap > 0).all(1)
        better = success & (norm < best_norm)
        best_delta = torch.where(_per_image(better, x), delta, best_delta)
        best_norm = torch.where(better, norm, best_norm)
        yield Snapshot(
            iteration, delta, logits, violation, norm, success, best_delta, best_norm,
            alpha, free_pixels, active_rows,
        )  # fmt: skip
        if iteration == 0:
            running = ~success  # nothing is shorter than no perturbation
        elif options.early_stop:
            running = running & ~(success & small)
        if iteration == options.iters or not running.any():
            break

        moving = running.nonzero()[:, 0]
        start, here = delta[moving], x[moving]
        subset = targets[moving]
        if options.rivals is None:
            kept = non_targets(subset, logits.shape[1])
        else:
            kept = strongest_rivals(logits[moving], subset, options.rivals)
        goal, multiplier, free, active = _solve_all(
            model, here, start, logits[moving], row_classes(subset, kept), options, iteration == 0
        )
        step = goal - start
        if options.trust is not None:
            length = step.flatten(1).norm(dim=1)
            step = step * _per_image((options.trust / length.clamp(min=1e-30)).clamp(max=1), x)
        tried = start + alphas.view(-1, *[1] * x.ndim) * step
        tried = (here + tried).clamp(0, 1) - here
        answers = forward(model, (here + tried).flatten(0, 1), chunk)
        answers = answers.view(len(alphas), len(moving), -1)

        penalty[moving] = torch.maximum(penalty[moving] / 2, 1.5 * multiplier)
        upper, lower = (r[moving].expand(len(alphas), -1, -1) for r in rows)
        total = (margin - (answers.gather(2, upper) - answers.gather(2, lower))).clamp(min=0).sum(2)
        merit = tried.flatten(2).square().sum(2) / 2 + penalty[moving] * total
        score = torch.where(violation[moving].sum(1) > 0, total, merit)
        score = torch.where(torch.isfinite(answers).all(2), score, torch.inf)
        lowest, choice_ = score.min(0)
        each = torch.arange(len(moving), device=x.device)
        usable = torch.isfinite(lowest)  # logits that overflow everywhere end an image where it is
        running[moving[~usable]] = False
        moved, chosen = moving[usable], choice_[usable]
        new = tried[chosen, each[usable]]
        change = (new - start[usable]).flatten(1).norm(dim=1)

        delta, logits = delta.index_copy(0, moved, new), logits.clone()
        logits[moved] = answers[chosen, each[usable]]
        alpha, free_pixels, active_rows = (
            torch.zeros_like(alpha),
            free_pixels.clone(),
            active_rows.clone(),
        )
        alpha[moved] = alphas[chosen]
        free_pixels[moving], active_rows[moving] = free, active
        small[moved] = change < SMALL_STEP * start[usable].flatten(1).norm(dim=1)
    return best_delta, torch.isfinite(best_norm)


def _solve_all(
    model: nn.Module,
    x: Tensor,
    delta: Tensor,
    logits: Tensor,
    rows: tuple[Tensor, Tensor],
    options: RisingOptions,
    first: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Each image's program: solution, largest multiplier, free pixels, active rows."""
    goals, numbers = [], []
    bytes_each = rows[0].shape[1] * x[0].numel() * x.element_size()
    group = max(1, GROUP_BYTES // bytes_each)
    missing = options.margin - gaps(logits, *rows).double()
    missing = torch.where(missing > 0, options.tau * missing, missing).cpu().numpy()
    for begin in range(0, len(x), group):
        part = slice(begin, begin + group)
        G = adversarial_jacobian(
            model, x[part] + delta[part], rows[0][part], rows[1][part], options.chunk
        )
        if first and not (known := dependent(G)).all():
            image = begin + int((~known).nonzero()[0])
            raise ValueError(
                f"zero Jacobian: the model's logits do not depend on image {image} (a model that "
                "rounds, thresholds or saturates has no gradient to attack with)"
            )
        now = delta[part].flatten(1).double().cpu().numpy()
        clean = x[part].flatten(1).double().cpu().numpy()
        lo, hi = (
            (-clean, 1 - clean)
            if options.box == "active"
            else (-np.inf + 0 * clean, np.inf + 0 * clean)
        )
        for i, g in enumerate(G.double().cpu().numpy()):
            h = missing[begin + i] + g @ now[i]
            solution = boxed_least_distance(
                g, h, lo[i], hi[i], options.rank, options.directions, options.seed
            )
            goals.append(solution.delta)
            numbers.append((solution.lam.max(), solution.free.sum(), solution.active.sum()))
    multiplier, free, active = torch.tensor(np.array(numbers, float), device=x.device).T
    goal = torch.tensor(np.array(goals), dtype=x.dtype, device=x.device).view_as(x)
    return goal, multiplier.to(x.dtype), free.long(), active.long()


def _per_image(values: Tensor, x: Tensor) -> Tensor:
    return values.view(-1, *[1] * (x.ndim - 1))
