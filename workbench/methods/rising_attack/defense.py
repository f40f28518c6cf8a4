"""What a perturbation budget means: two defenses, what they certify, and how attacks fare on them.

Adversarial training teaches a network on images that PGD has perturbed within an l2 ball (Madry et
al., 2018). Randomized smoothing classifies by the majority under Gaussian noise, and certifies a
radius inside which the answer cannot change (Cohen, Rosenfeld, Kolter, ICML 2019). The certificate
is a lower bound, and an attack an upper bound, of the true robust radius: the smallest of several
attacks is reported, never one of them alone. An order whose first target is not the certified class
needs a perturbation beyond the certified radius, at every K.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import betaincinv
from scipy.stats import binomtest, norm
from torch import Tensor, nn

from workbench.numerics.checks import choice
from workbench.steps import Step, Steps, part, run

from . import digits, networks
from ._checks import number, whole
from .networks import Classifier, kept_steps, train_steps

ABSTAIN = -1
DEFENSES = ("plain", "adversarial", "noise")
ADVERSARIAL_EPOCHS, PGD_STEPS = 12, 2  # about the time of the plain network's 25 epochs
EPS, SIGMA = 0.5, 0.25  # l2 budget of adversarial training, and standard deviation of the noise
# The same attacks on every network; the smallest success of an image counts. A perturbation just
# good enough for a few noise draws loses the vote on fresh ones: measured at K = 1 on 8 digits,
# margin .05 holds for 1 of them, .3 for 5, 1 for 7. With the small margin alone the smoothed
# network would look robust when it is not.
ATTACKS = {
    "rising, margin 0.05": {"method": "rising", "iters": 8, "margin": 0.05},
    "rising, margin 0.3": {"method": "rising", "iters": 8, "margin": 0.3},
    "rising, margin 1": {"method": "rising", "iters": 8, "margin": 1.0},
    "cw": {"method": "cw", "lr": 0.05, "iters": 60},
}
NETWORKS = {"plain": "plain", "adversarially trained": "adversarial", "smoothed": "noise"}


def pgd(
    model: nn.Module, x: Tensor, labels: Tensor, eps: float, steps: int, step: float | None = None
) -> Tensor:
    """Images (B, C, H, W) in [0, 1] within l2 distance eps of x that raise the loss of labels (B,).

    Projected gradient ascent on the cross entropy from x itself; step: 2.5 eps / steps by default.
    """
    step = 2.5 * eps / steps if step is None else step
    delta = torch.zeros_like(x)
    shape = (-1, *[1] * (x.ndim - 1))
    for _ in range(steps):
        with torch.enable_grad():
            point = delta.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(
                F.cross_entropy(model(x + point), labels, reduction="sum"), [point]
            )
        length = gradient.flatten(1).norm(dim=1).clamp(min=1e-12).view(shape)
        delta = (x + delta + step * gradient / length).clamp(0, 1) - x
        length = delta.flatten(1).norm(dim=1).clamp(min=1e-12).view(shape)
        delta = delta * (eps / length).clamp(max=1)
    return x + delta


def defended_steps(
    defense: str, seed: int = 0, eps: float = EPS, sigma: float = SIGMA
) -> Steps[Classifier]:
    """A digits network trained with a defense, or its kept weights; a generator of steps.

    defense: "plain"; "adversarial": on PGD images within eps; "noise": on images with
    Gaussian noise of standard deviation sigma, the base of a smoothed classifier.
    """
    choice("defense", defense, DEFENSES)
    number("eps", eps, 0, above=True)
    number("sigma", sigma, 0, above=True)
    if defense == "plain":
        return digits.digits_model_steps(seed)

    def train() -> Steps[nn.Module]:
        model = digits.digits_network(seed)
        generator = torch.Generator().manual_seed(seed)

        def harden(x: Tensor, labels: Tensor) -> Tensor:
            return pgd(model, x, labels, eps, PGD_STEPS)

        def noisy(x: Tensor, labels: Tensor) -> Tensor:
            return x + sigma * torch.randn(x.shape, generator=generator)

        hard = defense == "adversarial"
        change, epochs = (harden, ADVERSARIAL_EPOCHS) if hard else (noisy, digits.EPOCHS)
        return train_steps(model, *digits.training_digits(), epochs, seed=seed, change=change)

    strength = eps if defense == "adversarial" else sigma
    files = [Path(m.__file__) for m in (digits, networks)] + [Path(__file__)]
    name = f"digits-{defense}-{strength:g}-{seed}"
    return kept_steps(name, digits.digits_network(seed), train, [*files, defense, strength, seed])


def load_defended(defense: str, seed: int = 0, **options: float) -> Classifier:
    """`defended_steps` with the same options, run to the end."""
    return run(defended_steps(defense, seed, **options))


class Smoothed(nn.Module):
    """The mean class probabilities of a model under Gaussian noise, as logits (their logarithm).

    The noise draws are fixed by the seed, the same for every image: an attack sees a
    deterministic, differentiable model, and its gradient is the expectation over these draws
    (EOT: Athalye et al., 2018). Judge what it finds with another seed and more draws.
    """

    def __init__(
        self,
        model: nn.Module,
        shape: Sequence[int],
        sigma: float = SIGMA,
        n: int = 16,
        seed: int = 0,
    ):
        super().__init__()
        self.model, self.sigma = model, number("sigma", sigma, 0, above=True)
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn((whole("n", n, 1), *shape), generator=generator)
        self.register_buffer("noise", sigma * noise)

    def forward(self, x: Tensor) -> Tensor:
        n = len(self.noise)
        logits = self.model((x.unsqueeze(1) + self.noise).flatten(0, 1))
        return logits.log_softmax(1).view(len(x), n, -1).logsumexp(1) - np.log(n)


@dataclass(frozen=True)
class Certificate:
    """classes (B,): the certified class, or ABSTAIN. radius (B,): l2 radius, 0 where it abstains.

    lower (B,): lower confidence bound of the probability of the class under noise.
    """

    classes: np.ndarray
    radius: np.ndarray
    lower: np.ndarray


def lower_bound(successes: np.ndarray, n: int, alpha: float) -> np.ndarray:
    """Clopper-Pearson: with probability 1 - alpha, the true share is at least this."""
    successes = np.asarray(successes)
    bound = betaincinv(np.maximum(successes, 1), n - successes + 1, alpha)
    return np.where(successes > 0, bound, 0.0)


@torch.no_grad()
def certify(
    model: nn.Module,
    x: Tensor,
    sigma: float = SIGMA,
    n0: int = 64,
    n: int = 512,
    alpha: float = 0.001,
    seed: int = 0,
) -> Certificate:
    """Certify the majority class under noise (Cohen et al., CERTIFY) for images x (B, C, H, W).

    model: trained on noise of standard deviation sigma. n0 draws choose the class, n others bound
    its probability from below by p; the radius is sigma * Phi^-1(p), with probability 1 - alpha
    for each image, and the classifier abstains where p <= 1/2.
    """
    guess = _votes(model, x, sigma, whole("n0", n0, 1), seed, stream=0).argmax(1)
    votes = _votes(model, x, sigma, whole("n", n, 1), seed, stream=1)
    number("alpha", alpha, 0, 1, above=True)
    lower = lower_bound(votes[np.arange(len(x)), guess], n, alpha)
    sure = lower > 0.5
    radius = np.where(sure, sigma * norm.ppf(np.where(sure, lower, 0.5)), 0.0)
    return Certificate(np.where(sure, guess, ABSTAIN), radius, lower)


@torch.no_grad()
def predict(
    model: nn.Module,
    x: Tensor,
    sigma: float = SIGMA,
    n: int = 128,
    alpha: float = 0.001,
    seed: int = 0,
) -> np.ndarray:
    """The smoothed class of images x (B, C, H, W), or ABSTAIN where the vote is too close (B,).

    Cohen et al., PREDICT: a two-sided binomial test of the first against the second class.
    """
    number("alpha", alpha, 0, 1, above=True)
    votes = _votes(model, x, sigma, whole("n", n, 1), seed, stream=2)
    order = np.argsort(-votes, 1, kind="stable")[:, :2]
    first, second = np.take_along_axis(votes, order, 1).T
    values = [binomtest(a, a + b).pvalue for a, b in zip(first, second, strict=True)]
    return np.where(np.array(values) <= alpha, order[:, 0], ABSTAIN)


def _votes(
    model: nn.Module, x: Tensor, sigma: float, n: int, seed: int, stream: int, chunk: int = 1024
) -> np.ndarray:
    """How often each class wins under n noise draws: (B, classes) counts. Streams never overlap."""
    number("sigma", sigma, 0, above=True)
    seeds = np.random.SeedSequence([seed, stream]).generate_state(1)
    generator = torch.Generator().manual_seed(int(seeds[0]))
    counts = None
    size = max(1, chunk // len(x))
    for begin in range(0, n, size):
        noise = torch.randn((min(size, n - begin), *x.shape), generator=generator).to(x)
        logits = model((x + sigma * noise).flatten(0, 1))
        winners = F.one_hot(logits.argmax(1), logits.shape[1]).view(len(noise), len(x), -1).sum(0)
        counts = winners if counts is None else counts + winners
    return counts.cpu().numpy()


def reached_within(norms: np.ndarray, success: np.ndarray, eps: np.ndarray) -> np.ndarray:
    """Share of images whose best attack has norm <= eps, for each eps: (n_eps,).

    norms, success (attacks, images): the smallest success of an image over the attacks counts, an
    upper bound of its robust radius; images that no attack reached count at no budget.
    """
    radii = np.where(success, norms, np.inf).min(0)
    return (radii[None] <= np.asarray(eps)[:, None]).mean(1)


def ordered_vote(
    model: nn.Module,
    x: Tensor,
    targets: Tensor,
    sigma: float = SIGMA,
    n: int = 512,
    alpha: float = 0.001,
    seed: int = 0,
) -> np.ndarray:
    """Whether the classes with most votes under noise are targets (B, K), in this order: (B,) bool.

    The vote that `certify` bounds, on draws of its own. As in PREDICT, each place must win against
    the next by a two-sided binomial test at alpha: at K = 1 it is `predict(...) == targets[:, 0]`.
    """
    number("alpha", alpha, 0, 1, above=True)
    votes = _votes(model, x, sigma, whole("n", n, 1), seed, stream=2)
    places = min(targets.shape[1] + 1, votes.shape[1])
    order = np.argsort(-votes, 1, kind="stable")[:, :places]
    sorted_votes = np.take_along_axis(votes, order, 1)
    sure = [
        all(binomtest(int(a), int(a + b)).pvalue <= alpha for a, b in pairwise(row) if a + b)
        and (row[:-1] > row[1:]).all()
        for row in sorted_votes
    ]
    K = targets.shape[1]
    return np.array(sure) & (order[:, :K] == targets.cpu().numpy()).all(1)


@dataclass(frozen=True)
class Curve:
    """How a network fares.

    clean: accuracy on held-out digits; abstaining counts as wrong. reached (n_eps,): share of
    images for which some attack finds the order within eps. radii: name of the attack -> l2 norms
    of its successes (images,), inf for none. certified (n_eps,): share of images whose right class
    is certified at eps; radius (images,): how far, 0 where another class is certified or none;
    None without a certificate.
    """

    clean: float
    reached: np.ndarray
    radii: dict[str, np.ndarray]
    certified: np.ndarray | None = None
    radius: np.ndarray | None = None

    @property
    def smallest(self) -> np.ndarray:
        """(images,) the smallest norm over the attacks, inf where none reached the order."""
        return np.stack(list(self.radii.values())).min(0)


def networks_steps(
    seed: int = 0, train_eps: float = EPS, sigma: float = SIGMA
) -> Steps[dict[str, Classifier]]:
    """The three digits networks by name, trained or kept: plain, adversarially trained, smoothed.

    The last is the base of a smoothed classifier, to be put into `Smoothed`.
    """
    models = {}
    for number_, (name, defense) in enumerate(NETWORKS.items()):
        steps = defended_steps(defense, seed, train_eps, sigma)
        models[name] = yield from part(steps, number_ / 3, (number_ + 1) / 3, name)
    return models


def curves_steps(
    models: Mapping[str, Classifier],
    x: Tensor,
    labels: Tensor,
    targets: Tensor,
    eps: np.ndarray,
    attacks: Mapping[str, Mapping[str, Any]] = ATTACKS,
    *,
    seed: int = 0,
    sigma: float = SIGMA,
    draws: int = 16,
    vote_draws: int = 512,
) -> Steps[dict[str, Curve]]:
    """Attack networks of `networks_steps` with the same attacks; name -> `Curve`.

    x (B, 1, 8, 8), labels (B,), targets (B, K) without the labels; eps (n,) budgets. attacks: a
    name -> parameters of `attack`, with its method. The network named "smoothed" is attacked
    through `draws` fixed noise draws (EOT) and judged by the majority vote of `vote_draws` fresh
    ones, which is what its certificate is about. An order that these attacks do not find may
    exist: long ones rarely survive fresh noise. Each `Step` carries the curves so far.
    """
    from .attacks import attack_steps

    eps = np.asarray(eps, float)
    if not attacks:
        raise ValueError("attacks must name at least one attack")
    held, held_labels = digits.held_out_digits()
    curves: dict[str, Curve] = {}
    for number_, (name, base) in enumerate(models.items()):
        begin, size = number_ / len(models), 1 / len(models)
        smooth = name == "smoothed"
        attacked = Smoothed(base, x.shape[1:], sigma, draws, seed).eval() if smooth else base
        radii = {}
        for count, (title, params) in enumerate(attacks.items()):
            steps = attack_steps(attacked, x, targets, labels=labels, **params)
            start, share = begin + size * count / (len(attacks) + 1), size / (len(attacks) + 1)
            result = yield from part(steps, start, start + share, f"{name}, {title}")
            good = result.success
            if smooth:
                good = good & ordered_vote(
                    base, x + result.delta, targets, sigma, vote_draws, seed=seed
                )
            radii[title] = np.where(good, result.l2, np.inf)
            message = f"{name}: {title} {100 * good.mean():.0f} %"
            yield Step(start + share, message)
        norms = np.stack(list(radii.values()))
        reached = reached_within(norms, np.isfinite(norms), eps)
        if smooth:
            certificate = certify(base, x, sigma, n=vote_draws, seed=seed)
            right = certificate.classes == labels.numpy()
            radius = np.where(right, certificate.radius, 0.0)
            certified = np.array([(right & (radius >= e)).mean() for e in eps])
            votes = predict(base, held, sigma, n=64, seed=seed)
            clean = float((votes == held_labels.numpy()).mean())
            curves[name] = Curve(clean, reached, radii, certified, radius)
        else:
            curves[name] = Curve(networks.accuracy(base, held, held_labels), reached, radii)
        yield Step(begin + size, name, dict(curves))
    return curves


def curves(models: Mapping[str, Classifier], *args: Any, **options: Any) -> dict[str, Curve]:
    """`curves_steps` with the same arguments, run to the end."""
    return run(curves_steps(models, *args, **options))
