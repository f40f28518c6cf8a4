"""RisingAttacK as sequential quadratic programming: linearize, solve, step, repeat.

Reconstruction from the paper's abstract and first principles: program, box and line search (with
its penalized length) are ours. Each iteration linearizes A_T f >= margin at the present image,
finds the shortest total perturbation that obeys it (`least_distance.py`), and moves toward it as
far as the true logits say is good. It goes on after the first success, toward a smaller
perturbation. All images of a batch share the Jacobian and the line search; only the small program
is solved one by one.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from workbench.numerics.checks import choice

from ._checks import number, whole
from .jacobian import adversarial_jacobian, forward
from .least_distance import DIRECTIONS, BoxedSolution, boxed_least_distance
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

    Returns the best delta (B, C, H, W), zeros where none reaches the order, and success (B,). An
    image on which the logits do not depend ends as a failure, with a warning that names it;
    ValueError when that leaves none to attack.
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
        goals, multipliers, dead = [], [], []
        free_pixels, active_rows = free_pixels.clone(), active_rows.clone()
        solutions = linear_programs(model, here, start, logits[moving], targets[moving], options)
        for image, solution in zip(moving.tolist(), solutions, strict=True):
            if iteration == 0 and not solution.singular_values.any() and solution.free.all():
                dead.append(image)
            goals.append(solution.delta)
            multipliers.append(solution.lam.max())
            free_pixels[image] = int(solution.free.sum())
            active_rows[image] = int(solution.active.sum())
        _tell_dead(dead, len(moving))
        goal = torch.tensor(np.array(goals), dtype=x.dtype, device=x.device).view_as(here)
        multiplier = torch.tensor(multipliers, dtype=x.dtype, device=x.device)
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
        penalized = tried.flatten(2).square().sum(2) / 2 + penalty[moving] * total
        score = torch.where(violation[moving].sum(1) > 0, total, penalized)
        score = torch.where(torch.isfinite(answers).all(2), score, torch.inf)
        lowest, choice_ = score.min(0)
        each = torch.arange(len(moving), device=x.device)
        # A zero Jacobian, or logits that overflow everywhere, end an image where it is.
        usable = torch.isfinite(lowest) & ~torch.isin(moving, moving.new_tensor(dead))
        running[moving[~usable]] = False
        moved, chosen = moving[usable], choice_[usable]
        new = tried[chosen, each[usable]]
        change = (new - start[usable]).flatten(1).norm(dim=1)

        delta, logits = delta.index_copy(0, moved, new), logits.clone()
        logits[moved] = answers[chosen, each[usable]]
        alpha = torch.zeros_like(alpha).index_copy(0, moved, alphas[chosen])
        small[moved] = change < SMALL_STEP * start[usable].flatten(1).norm(dim=1)
    return best_delta, torch.isfinite(best_norm)


def linear_programs(
    model: nn.Module,
    x: Tensor,
    delta: Tensor,
    logits: Tensor,
    targets: Tensor,
    options: RisingOptions,
) -> Iterator[BoxedSolution]:
    """The solved program of each image linearized at x + delta, where the model says `logits`.

    Its singular values, right singular vectors and coefficients span what the next step may be.
    """
    if options.rivals is None:
        rivals = non_targets(targets, logits.shape[1])
    else:
        rivals = strongest_rivals(logits, targets, options.rivals)
    above, below = row_classes(targets, rivals)
    missing = options.margin - gaps(logits.detach(), above, below).double()
    missing = torch.where(missing > 0, options.tau * missing, missing).cpu().numpy()
    group = max(1, GROUP_BYTES // (above.shape[1] * x[0].numel() * x.element_size()))
    for begin in range(0, len(x), group):
        part = slice(begin, begin + group)
        G = adversarial_jacobian(
            model, x[part] + delta[part], above[part], below[part], options.chunk
        )
        for i, rows in enumerate(G, begin):
            matrix = rows.double().cpu().numpy()
            now, clean = (t[i].flatten().double().cpu().numpy() for t in (delta, x))
            lo, hi = (-clean, 1 - clean) if options.box == "active" else (-np.inf, np.inf)
            # Demands are on the total perturbation, not on the change of it.
            h = missing[i] + matrix @ now
            yield boxed_least_distance(
                matrix, h, lo, hi, options.rank, options.directions, options.seed
            )


def _tell_dead(dead: list[int], n_attacked: int) -> None:
    """Name the images without a gradient; ValueError when no other is attacked."""
    if not dead:
        return
    names = ", ".join(map(str, dead[:8])) + (", ..." if len(dead) > 8 else "")
    message = (
        f"zero Jacobian: the model's logits do not depend on image{'s' * (len(dead) > 1)} {names} "
        "(a model that rounds, thresholds or saturates has no gradient to attack with)"
    )
    if len(dead) == n_attacked:
        raise ValueError(message)
    warnings.warn(f"{message}; counted as failed", stacklevel=3)


def _per_image(values: Tensor, x: Tensor) -> Tensor:
    return values.view(-1, *[1] * (x.ndim - 1))
