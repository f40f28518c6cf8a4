"""Ordered top-K attacks that came before: QuadAttacK, CW^K and Adversarial Distillation (AD).

All three move the perturbation by AdamW along the gradient of c * loss + |perturbation|^2 and
differ in the loss alone. Loop, losses and constants follow QuadAttacK's official code (Paniagua,
Grainger, Wu, NeurIPS 2023), with four differences that can only help them: the start is inside
[0, 1], the point after the last step is judged too, an image that already obeys the order costs
nothing, and QuadAttacK's quadratic program is solved exactly instead of to 1e-2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.numerics.checks import choice
from workbench.numerics.optimizers import Adam
from workbench.steps import Step, Steps, part, run

from ._checks import number, whole
from .jacobian import forward
from .least_distance import least_distance, least_squares, left_vectors
from .ranking import achieved, gaps, non_targets, row_classes
from .records import AttackResult, Snapshot

BASELINES = ("quad", "cw", "ad")
START_NOISE = 2e-3
WEIGHT_DECAY = 0.01  # torch's default for AdamW, of which the official code sets nothing but lr
WARM_UP = 5  # iterations after which the optimizer forgets what it gathered at the start
SOFTENING = 0.75  # of the loss weight c of an image each time its best norm improves
AD_TOP, AD_STEP = 10.0, 0.3  # target logits of AD: 10, 9.7, 9.4, ...

Loss = Callable[[Tensor, Tensor], Tensor]  # logits (B, C), features (B, F) -> (B,)


def cw_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """CW^K: how far the order of logits (B, C) is from targets (B, K); (B,), 0 iff it holds weakly.

    For each i: the highest logit outside the first i targets, minus the lowest inside, if positive;
    summed and divided by K. The official code has an empty first term, dropped here.
    """
    K = targets.shape[1]
    lowest = logits.gather(1, targets).cummin(1).values
    outside, total = logits, 0.0
    for i in range(K):
        outside = outside.scatter(1, targets[:, i : i + 1], -torch.inf)
        total = total + (outside.amax(1) - lowest[:, i]).clamp(min=0)
    return total / K


def ad_distribution(targets: Tensor, weight: Tensor) -> Tensor:
    """AD's target probabilities (B, C): softmax of 10, 9.7, 9.4, ... for targets (B, K).

    The others get their mean cosine similarity to the targets. Official: of GloVe vectors of the
    class names. Replacement here: of the rows of weight (C, F), the last linear layer. Beyond
    K = 30 the last targets fall among the other classes, a flaw of the original.
    """
    rows = F.normalize(weight.detach(), dim=1)
    logits = rows[targets].mean(1) @ rows.T
    ladder = AD_TOP - AD_STEP * torch.arange(targets.shape[1]).to(logits)
    return logits.scatter(1, targets, ladder.expand(len(targets), -1)).softmax(1)


class TargetFeatures:
    """QuadAttacK's goal: the nearest features whose logits obey the order with a margin.

    min |goal - phi| s.t. A_T (W goal + b) >= margin, with head (W, b) and targets (B, K). Only the
    right side changes while an attack runs: Gram matrices are made once, and each solution starts
    from the multipliers of the one before.
    """

    def __init__(self, head: nn.Linear, targets: Tensor, margin: float = 0.2):
        self.rows = row_classes(targets, non_targets(targets, head.out_features))
        self.margin = margin
        weight = head.weight.detach().double()
        above, below = (rows.cpu().numpy() for rows in self.rows)
        weight = weight.cpu().numpy()
        self._G = [weight[a] - weight[b] for a, b in zip(above, below, strict=True)]
        self._gram = [G @ G.T for G in self._G]
        self._factor = [left * sigma for left, sigma in map(left_vectors, self._gram)]
        self._lam = [np.zeros(len(G)) for G in self._G]

    def __call__(self, logits: Tensor, phi: Tensor) -> Tensor:
        """The goal (B, F) for features phi (B, F) with these logits (B, C).

        Where no features obey the order, the least-squares ones, as for the SQP.
        """
        h = self.margin - gaps(logits.detach(), *self.rows).double().cpu().numpy()
        moves = np.stack([self._move(image, row) for image, row in enumerate(h)])
        return phi.detach() + torch.from_numpy(moves).to(phi)

    def _move(self, image: int, h: np.ndarray) -> np.ndarray:
        if (h <= 0).all():
            return np.zeros(self._G[image].shape[1])
        lam = warm_multipliers(self._gram[image], h, self._lam[image])
        if lam is None:
            _, lam = least_distance(self._factor[image], h)
        if lam is None:  # infeasible
            return least_squares(self._G[image], h)
        self._lam[image] = lam
        return lam @ self._G[image]


def warm_multipliers(gram: np.ndarray, h: np.ndarray, lam: np.ndarray) -> np.ndarray | None:
    """The multipliers of min |G' lam| s.t. G G' lam >= h, from those of a similar h.

    gram (m, m) = G G', h (m,), lam (m,) >= 0. An active set on the dual min lam' gram lam / 2 -
    h' lam over lam >= 0 (non-negative least squares on normal equations: Bro and de Jong, 1997),
    which takes a few small solves where a cold start takes one for each active row. None when it
    does not settle, as when the inequalities have no solution.
    """
    lam, scale = lam.copy(), np.abs(h).max()
    active = lam > 0
    for _ in range(3 * len(h)):
        wanted = np.zeros(len(h))
        try:
            wanted[active] = np.linalg.solve(gram[np.ix_(active, active)], h[active])
        except np.linalg.LinAlgError:
            return None
        falling = active & (wanted < 0)
        if falling.any():  # go as far as signs allow, and drop the row that stops the way
            ratios = lam[falling] / (lam[falling] - wanted[falling])
            first = np.flatnonzero(falling)[ratios.argmin()]
            lam += ratios.min() * (wanted - lam)
            lam[first], active[first] = 0.0, False
            continue
        lam = wanted
        missing = h - gram @ lam
        if missing.max() <= 1e-9 * scale:
            return lam
        active[missing.argmax()] = True
    return None


def make_loss(model: nn.Module, targets: Tensor, method: str, margin: float) -> Loss:
    """The loss of a baseline for targets (B, K); ValueError if it needs a linear head."""
    choice("method", method, BASELINES)
    if method == "cw":
        return lambda logits, _: cw_loss(logits, targets)
    head = linear_head(model, method)
    if method == "ad":
        wanted = ad_distribution(targets, head.weight)
        return lambda logits, _: F.kl_div(
            logits.log_softmax(1), wanted.to(logits), reduction="none"
        ).sum(1)
    goal = TargetFeatures(head, targets, margin)
    # Goal held fixed: the derivative of a squared distance to a convex set is 2 (phi - goal).
    return lambda logits, phi: (phi - goal(logits.detach(), phi.detach())).square().sum(1)


def fits(model: nn.Module, method: str) -> bool:
    """Whether the model has what the method needs: for "quad" and "ad" features, a linear head."""
    linear = isinstance(getattr(model, "head", None), nn.Linear)
    return method not in ("quad", "ad") or (linear and callable(getattr(model, "feats", None)))


def linear_head(model: nn.Module, method: str) -> nn.Linear:
    """The model's `head`, which must be linear and come with `feats(x)`."""
    head = getattr(model, "head", None)
    if not fits(model, method):
        found = "no head" if head is None else f"a head of type {type(head).__name__}"
        raise ValueError(
            f"method = {method!r} needs a model with `feats(x)` and a linear `head` "
            f"(torch.nn.Linear) on them; {type(model).__name__} has {found}; "
            "allowed without are 'rising' and 'cw'"
        )
    return head


def check_options(
    model: nn.Module,
    method: str,
    iters: int,
    lr: float,
    coef: float,
    search_steps: int,
    margin: float,
    chunk: int,
    seed: int,
) -> None:
    """Raise ValueError or TypeError in one line for arguments of `baseline_steps` it cannot use."""
    choice("method", method, BASELINES)
    whole("iters", iters, 1)
    whole("search_steps", search_steps, 1)
    number("lr", lr, 0, above=True)
    number("coef", coef, 0, above=True)
    number("margin", margin, 0)
    whole("chunk", chunk, 1)
    whole("seed", seed, 0)
    if method != "cw":
        linear_head(model, method)


def baseline_steps(
    model: nn.Module,
    x: Tensor,
    targets: Tensor,
    method: str,
    *,
    iters: int = 60,
    lr: float = 0.01,
    coef: float = 20.0,
    search_steps: int = 1,
    margin: float = 0.2,
    chunk: int = 256,
    seed: int = 0,
) -> Generator[Snapshot, None, tuple[Tensor, Tensor]]:
    """Attack all images at once; yields a `Snapshot` an iteration, returns (best delta, success).

    model: as for `attack`. x (B, C, H, W) in [0, 1], targets (B, K). method: "quad", "cw" or "ad".
    lr: of AdamW. coef: twice the weight c of the loss at the start; with search_steps > 1 rounds, c
    is bisected: success lowers the upper end, failure raises the lower. margin: in logits, for the
    target features of "quad". chunk: images of a forward and backward pass. seed: start noise.
    Failures return zeros.
    """
    check_options(model, method, iters, lr, coef, search_steps, margin, chunk, seed)
    pieces = [slice(begin, begin + chunk) for begin in range(0, len(x), chunk)]
    losses = [make_loss(model, targets[piece], method, margin) for piece in pieces]
    feats = model.feats if method != "cw" else None
    demanded = margin if method == "quad" else 0.0
    rows = None
    generator = torch.Generator().manual_seed(seed)
    n = len(x)
    per_image = (-1, *[1] * (x.ndim - 1))
    best, best_norm = torch.zeros_like(x), x.new_full((n,), torch.inf)
    lower, upper = x.new_zeros(n), x.new_full((n,), coef)
    best_norm[achieved(forward(model, x, chunk), targets)] = 0.0  # nothing to do
    for search in range(search_steps):
        weight = (lower + upper) / 2
        start = weight.clone()
        reached = torch.zeros(n, dtype=torch.bool, device=x.device)
        round_norm = torch.full_like(best_norm, torch.inf)
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
        p = ((x + START_NOISE * noise).clamp(0, 1) - x).requires_grad_()
        optimizer = Adam([p], lr, weight_decay=WEIGHT_DECAY)
        for i in range(iters + 1):
            answers, gradients = [], []
            for piece, loss_of in zip(pieces, losses, strict=True):
                with torch.enable_grad():
                    moved = p.detach()[piece].requires_grad_()
                    phi = feats(x[piece] + moved) if feats else None
                    logits = model(x[piece] + moved) if phi is None else model.head(phi)
                    # Weights of the user's model may require gradients: only p gets one.
                    value = (weight[piece] * loss_of(logits, phi)).sum() + moved.square().sum()
                    gradients += torch.autograd.grad(value, [moved])
                answers.append(logits.detach())
            p.grad = torch.cat(gradients)
            logits, delta = torch.cat(answers), p.detach().clone()
            norm = delta.flatten(1).norm(dim=1)
            success = achieved(logits, targets)
            improved = success & (norm <= round_norm)
            round_norm = torch.where(improved, norm, round_norm)
            weight = torch.where(improved, SOFTENING * weight, weight)
            reached |= success
            better = success & (norm < best_norm)
            best = torch.where(better.view(per_image), delta, best)
            best_norm = torch.where(better, norm, best_norm)
            if rows is None:
                rows = row_classes(targets, non_targets(targets, logits.shape[1]))
            violation = (demanded - gaps(logits, *rows)).clamp(min=0)
            yield Snapshot(
                search * iters + i, delta, logits, violation, norm, success, best, best_norm
            )
            if i == iters:
                break
            if i == WARM_UP:
                optimizer.reset()
            optimizer.step()
            with torch.no_grad():
                p.copy_((x + p).clamp(0, 1) - x)
        upper = torch.where(reached, start, upper)
        lower = torch.where(reached, lower, start)
    return best, torch.isfinite(best_norm)


@dataclass(frozen=True)
class Tuned:
    """The best settings of a baseline, with its result and the scores of the whole grid."""

    settings: dict[str, Any]
    result: AttackResult
    scores: list[tuple[dict[str, Any], float]]


def score(result: AttackResult) -> float:
    """The official choice rule: 100 times the success rate minus the mean l2 of successes."""
    return 100 * result.asr - (float(result.l2[result.success].mean()) if result.asr else 0.0)


def tune_steps(
    model: nn.Module,
    x: Tensor,
    targets: Tensor,
    method: str,
    *,
    lrs: Iterable[float] = (0.003, 0.01, 0.03),
    coefs: Iterable[float] = (5.0, 20.0),
    iterations: Iterable[int] = (60, 200),
    margins: Iterable[float] = (0.05, 0.2),
    rounds: int = 1,
    seed: int = 0,
) -> Steps[Tuned]:
    """Give a baseline its due: every setting of the grid on these images; a generator of steps.

    Learning rates for digits: .02, .05, .1. margins: tried for "quad" alone. rounds: the best
    learning rate, weight and margin are tried once more with so many rounds of bisection, each of
    the fewest `iterations`. The setting is chosen on the images it is reported on, in the
    baseline's favor. Each `Step` carries the best so far.
    """
    from .attacks import attack_steps

    margins = tuple(margins) if method == "quad" else (0.2,)
    iterations = tuple(iterations)
    names = "lr", "coef", "iters", "margin"
    grid = [dict(zip(names, values, strict=True)) | {"search_steps": 1, "seed": seed}
            for values in product(lrs, coefs, iterations, margins)]  # fmt: skip
    best, scores = None, []
    fewest = min(iterations)
    cost, total = 0, sum(s["iters"] for s in grid) + (rounds * fewest if rounds > 1 else 0)

    def tries() -> Iterator[dict[str, Any]]:
        yield from grid
        if rounds > 1:
            yield {**best.settings, "iters": fewest, "search_steps": rounds}

    for settings in tries():
        steps = attack_steps(model, x, targets, method, allow_label=True, **settings)
        begin, cost = cost / total, cost + settings["iters"] * settings["search_steps"]
        result = yield from part(steps, begin, cost / total, method)
        scores.append((settings, score(result)))
        if best is None or score(result) > score(best.result):
            best = Tuned(settings, result, scores)
        message = (
            f"{method}: lr {settings['lr']:g}, coef {settings['coef']:g}, "
            f"{settings['search_steps']} x {settings['iters']} iterations: {100 * result.asr:.0f} %"
        )
        yield Step(cost / total, message, best)
    return best


def tune(model: nn.Module, x: Tensor, targets: Tensor, method: str, **options: Any) -> Tuned:
    """`tune_steps` with the same options, run to the end."""
    return run(tune_steps(model, x, targets, method, **options))
