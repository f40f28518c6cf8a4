"""The experiments that train networks, and B: generators of steps that return plain results.

What is trained runs as one batch of networks for all seeds and settings of an experiment; what has
a closed form is in `closed_forms.py`. They measure; what the numbers mean for the
claims is in `findings.py`, and how they look in `views.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part

from . import (
    compression,
    digits,
    networks,
    posterior,
    processes,
    representation,
    symmetry,
)
from .closed_forms import single
from .compression import Compressed
from .dimension import effective_dimension, network_eigenvalues

FULL_DIGITS, C3_DIGITS, LABEL_DIGITS = 1437, 400, 1200
MLP_WIDTH = 512


# B: random labels -------------------------------------------------------------------------------


@dataclass
class RandomLabels:
    """Accuracies and evidence at each share rho of random labels, (seeds, rhos) each.

    mlp: the same for networks, at their own rhos; empty while they have not run.
    """

    rho: np.ndarray
    train: np.ndarray
    test: np.ndarray
    evidence: np.ndarray
    mlp_rho: np.ndarray = field(default_factory=lambda: np.zeros(0))
    mlp_train: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    mlp_test: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))


def label_process(
    s: digits.Split, rho: Sequence[float], seed: int, length_scale: float, noise: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train and test accuracy and evidence per example for each rho: one factor for all."""
    kernel = processes.AMPLITUDE * processes.rbf(s.train_x, s.train_x, length_scale)
    cross = processes.AMPLITUDE * processes.rbf(s.test_x, s.train_x, length_scale)
    labels = [digits.corrupted(s.clean_y, share, seed) for share in rho]
    targets = np.concatenate([digits.centered_one_hot(y) for y in labels], 1)
    gp = processes.regression(kernel, targets, noise)
    # On training inputs the mean is y - noise A^-1 y: no second product with the kernel.
    train, test = targets - noise * gp.dual, gp.predict(cross)
    shape = (-1, len(rho), digits.CLASSES)
    fits = train.reshape(shape).argmax(2).T == np.array(labels)
    hits = test.reshape(shape).argmax(2).T == s.test_y
    return fits.mean(1), hits.mean(1), gp.evidence.reshape(len(rho), -1).sum(1) / len(targets)


def label_steps(p: Parameters, mlp_rho: Sequence[float] = ()) -> Steps[RandomLabels]:
    """GP regression for each seed, then all networks in one batch until each fits its labels."""
    rho = np.array(sorted(p.rho))
    rows = []
    share = 0.4 if len(mlp_rho) else 1.0
    found = None
    for i in range(p.seeds):
        s = digits.split(LABEL_DIGITS, p.seed + i)
        rows.append(single(label_process, s, rho, p.seed + i, p.length_scale, p.noise))
        found = RandomLabels(rho, *(np.array(column) for column in zip(*rows, strict=True)))
        yield Step(share * (i + 1) / p.seeds, f"Gaussian process, seed {i + 1}", found)
    if len(mlp_rho):
        yield from part(_label_networks(p, found, mlp_rho), share, 1, data=lambda _: found)
    return found


def _label_networks(p: Parameters, found: RandomLabels, rho: Sequence[float]) -> Steps[None]:
    sizes = (64, MLP_WIDTH, digits.CLASSES)
    cells = [(p.seed + i, share) for i in range(p.networks) for share in rho]
    splits = [digits.split(LABEL_DIGITS, seed, share) for seed, share in cells]
    X, Y, T, TY = stacked(splits)
    trained = yield from networks.train_steps(
        networks.initial(sizes, [seed for seed, _ in cells]),
        networks.supervised(X, Y, sizes), steps=3000, lr=1e-2, stop=0.01, title="networks",
    )  # fmt: skip
    shape = (p.networks, len(rho))
    found.mlp_rho = np.array(rho)
    found.mlp_train = 1 - networks.errors(trained.w, X, Y, sizes).reshape(shape)
    found.mlp_test = 1 - networks.errors(trained.w, T, TY, sizes).reshape(shape)


def stacked(splits: Sequence[digits.Split]) -> tuple[torch.Tensor, ...]:
    """Training and test images and labels of many splits as tensors (B, n, ...)."""
    names = ("train_x", "train_y", "test_x", "test_y")
    return tuple(networks.tensor(np.stack([getattr(s, k) for s in splits])) for k in names)


# C: double descent ------------------------------------------------------------------------------


@dataclass
class Widths:
    """C3: networks by width, (seeds, widths) each; nan where not yet trained.

    curves: width -> rows (step, training losses of the seeds). eigenvalues: width -> curvatures of
    each seed, of which `dimension` is one sum.
    """

    widths: np.ndarray
    test: np.ndarray
    test_error: np.ndarray
    train_error: np.ndarray
    dimension: np.ndarray
    curves: dict[int, list[tuple[int, np.ndarray]]] = field(default_factory=dict)
    lanczos: dict[int, tuple[float, float]] = field(default_factory=dict)
    eigenvalues: dict[int, list[np.ndarray]] = field(default_factory=dict)


def width_steps(
    widths: Sequence[int], seeds: Sequence[int], label_noise: float, alpha: float,
    check: bool = False, steps: int = 3000, data: tuple[np.ndarray, np.ndarray] | None = None,
) -> Steps[Widths]:  # fmt: skip
    """C3: all widths of a similar size and all seeds in one batch; pixels centered (ours).

    data: other images than the digits, as `digits.split` takes them.
    """
    widths = sorted(set(widths))
    splits = [digits.split(C3_DIGITS, seed, label_noise, data=data) for seed in seeds]
    means = [s.train_x.mean(0) for s in splits]
    X, Y, T, TY = stacked(splits)
    center = networks.tensor(np.stack(means))[:, None]
    X, T = X - center, T - center
    empty = [np.full((len(seeds), len(widths)), np.nan) for _ in range(4)]
    found = Widths(np.array(widths), *empty)
    costs = np.array([max(w, 8) ** 0.5 for w in widths])
    done = 0.0
    for group in networks.in_groups(widths):
        own = [widths[i] for i in group]
        sizes = (X.shape[-1], max(own), digits.CLASSES)
        cells = [(i, k) for i in group for k in range(len(seeds))]
        which = torch.tensor([k for _, k in cells])
        start = networks.initial(sizes, [seeds[k] for _, k in cells], [widths[i] for i, _ in cells])
        share = costs[group].sum() / costs.sum()

        def so_far(trained: networks.Trained, cells=cells) -> Widths:
            _keep_curves(found, trained, cells)
            return found

        title = f"width {own[0]}" + (f" to {own[-1]}" if len(own) > 1 else "")
        trained = yield from part(
            networks.train_steps(start, networks.supervised(X[which], Y[which], sizes), steps=steps,
                                 lr=1e-2, stop=1e-3, cosine=True, title=title),
            done, done + 0.9 * share, data=so_far,
        )  # fmt: skip
        _keep_curves(found, trained, cells)
        with torch.no_grad():
            losses = networks.cross_entropy(
                networks.forward(trained.w, T[which], sizes), TY[which]
            ).numpy()
        train_error = networks.errors(trained.w, X[which], Y[which], sizes)
        test_error = networks.errors(trained.w, T[which], TY[which], sizes)
        for row, (i, k) in enumerate(cells):
            found.test[k, i], found.test_error[k, i] = losses[row], test_error[row]
            found.train_error[k, i] = train_error[row]
            layers = networks.layers_of(trained.w[row], sizes, widths[i])
            points = splits[k].train_x[:100] - means[k]
            curvature = single(network_eigenvalues, points, layers, C3_DIGITS)
            found.eigenvalues.setdefault(widths[i], []).append(curvature)
            found.dimension[k, i] = effective_dimension(curvature, alpha)
            if check and k == 0 and widths[i] in (8, 64):
                from .dimension import lanczos_dimension

                # The curvature of a wide network is in few directions; all would take long.
                rank = 600 if widths[i] == 8 else 200
                own_way = single(lanczos_dimension, points, layers, alpha, C3_DIGITS, rank)
                found.lanczos[widths[i]] = (float(found.dimension[k, i]), own_way)
            yield Step(done + share * (0.9 + 0.1 * (row + 1) / len(cells)), title, found)
        done += share
    return found


def _keep_curves(found: Widths, trained: networks.Trained, cells: list[tuple[int, int]]) -> None:
    for i in {i for i, _ in cells}:
        rows = [row for row, (j, _) in enumerate(cells) if j == i]
        found.curves[int(found.widths[i])] = [(s, v[rows]) for s, v in trained.curves]


# D: bounds --------------------------------------------------------------------------------------


def compressed_steps(
    p: Parameters, width: int, d: int | Sequence[int], seeds: Sequence[int],
    rho: Sequence[float] = (0.0,), more_bits: int = 0, prior_seeds: Sequence[int] | None = None,
) -> Steps[Compressed]:  # fmt: skip
    """Networks stored in bits: all dimensions d, corruptions rho and seeds in one batch.

    Rows are in that order, seeds last. more_bits: for choices that saw the data. prior_seeds: what
    was fixed before them, if that is not `seeds`.
    """
    cells = [(own, r, i) for own in np.atleast_1d(d) for r in rho for i in range(len(seeds))]
    splits = [digits.split(FULL_DIGITS, seeds[i], r) for _, r, i in cells]
    arrays = _tested(splits)
    return (
        yield from compression.compress_steps(
            *arrays[:4], true_test_labels=arrays[4], width=width,
            d=[int(own) for own, _, _ in cells],
            levels=p.levels, seeds=[seeds[i] for _, _, i in cells],
            prior_seeds=prior_seeds and [prior_seeds[i] for _, _, i in cells],
            delta=p.delta, more_bits=more_bits,
        )
    )  # fmt: skip


def _tested(splits: Sequence[digits.Split]) -> list[np.ndarray]:
    """Training images and labels, test images, their labels as noisy as those, and true ones."""
    names = ("train_x", "train_y", "test_x", "noisy_test_y", "test_y")
    return [np.stack([getattr(s, k) for s in splits]) for k in names]


def compression_steps(p: Parameters) -> Steps[dict[tuple[int, int], Compressed]]:
    """D and D3: every width at every dimension d, each seed of a batch with its own projection.

    Dimensions and seeds are one batch. Widths are not: of 16 units, padded to 64, a network takes
    twice its time (0.5 s instead of 0.25 s for 200 steps, measured).
    """
    seeds = [p.seed + i for i in range(p.networks)]
    costs = np.array([30 + w for w in p.bound_widths], float)
    ends = np.cumsum(costs) / costs.sum()
    found: dict[tuple[int, int], Compressed] = {}

    def by_d(made: Compressed, width: int) -> dict[tuple[int, int], Compressed]:
        k = len(seeds)
        return {(width, d): made.rows(range(i * k, i * k + k)) for i, d in enumerate(p.bound_d)}

    for w, begin, end in zip(p.bound_widths, [0.0, *ends[:-1]], ends, strict=True):
        made = yield from part(
            compressed_steps(p, w, p.bound_d, seeds), begin, end, f"width {w}",
            data=lambda partial, w=w, before=dict(found): before | by_d(partial, w),
        )  # fmt: skip
        found |= by_d(made, w)
    return found


@dataclass
class Corrupted:
    """D2: the same pipeline with random labels; rho -> a row for each seed.

    curves: of the training of all, as in `Compressed`.
    """

    rows: dict[float, Compressed]
    curves: list[tuple[int, np.ndarray]] = field(default_factory=list)

    @property
    def rho(self) -> np.ndarray:
        """Shares of random labels."""
        return np.array(list(self.rows))

    @property
    def done(self) -> bool:
        """Whether all have their bounds."""
        return all(len(c.bounds) for c in self.rows.values())

    def bound(self, kind: str = "kl") -> np.ndarray:
        """(rhos, seeds)."""
        return np.stack([c.of(kind) for c in self.rows.values()])


def corrupted_steps(
    p: Parameters, rho: Sequence[float], stored: dict[tuple[int, int], Compressed] | None = None
) -> Steps[Corrupted]:
    """D2 at the main width and dimension, all rhos and seeds in one batch.

    stored: what D has made; its networks are those of rho = 0, and are not trained a second time.
    """
    seeds = [p.seed + i for i in range(p.networks)]
    clean = (stored or {}).get((p.width, p.d))
    rho = sorted(set(rho))
    trained = [share for share in rho if share or clean is None]

    def wrap(partial: Compressed) -> Corrupted:
        k = len(seeds)
        rows = {share: partial.rows(range(i * k, i * k + k)) for i, share in enumerate(trained)}
        known = {} if len(trained) == len(rho) else {0.0: clean}
        return Corrupted(known | rows, partial.curves)

    if not trained:
        return Corrupted({0.0: clean})
    made = yield from part(compressed_steps(p, p.width, p.d, seeds, trained), 0, 1, data=wrap)
    return wrap(made)


def posterior_steps(p: Parameters) -> Steps[posterior.Gibbs]:
    """D4: softmax regression on true and on random labels, one batch."""
    arrays = _tested([digits.split(FULL_DIGITS, p.seed, share) for share in (0.0, 1.0)])
    return (
        yield from posterior.gibbs_steps(
            *arrays[:4], true_test_labels=arrays[4], seed=p.seed, delta=p.delta
        )
    )


def validity_steps(p: Parameters, datasets: int = 3000) -> Steps[posterior.Validity]:
    """How often the bounds are broken on simulated data."""
    yield Step(0.0, f"{datasets:,} data sets")
    return posterior.validity(datasets, delta=p.delta, seed=p.seed)


# E to H -----------------------------------------------------------------------------------------


def pathway_steps(p: Parameters) -> Steps[symmetry.PathwayNetworks]:
    """E2: all networks of all tasks in one batch."""
    return (yield from symmetry.pathway_steps([p.seed + i for i in range(p.networks)]))


def learned_steps(p: Parameters) -> Steps[dict[int, representation.Learned]]:
    """F: a network against a kernel with an oracle, by number of examples."""
    sizes, found = sorted(p.index_n), {}
    costs = np.cumsum([n**1.5 for n in sizes]) / sum(n**1.5 for n in sizes)
    seeds = [p.seed + i for i in range(p.seeds)]
    for n, begin, end in zip(sizes, [0.0, *costs[:-1]], costs, strict=True):
        inner = representation.learned_steps(n, seeds)
        found[n] = yield from part(inner, begin, end, f"{n} examples")
        yield Step(end, f"{n} examples", dict(found))
    return found


def connected_steps(p: Parameters) -> Steps[dict[int, representation.Paths]]:
    """G: paths between solutions for each width; 0 is softmax regression, the convex contrast."""
    seeds = [p.seed + i for i in range(p.networks)]
    found: dict[int, representation.Paths] = {}
    widths = p.path_widths
    for i, width in enumerate(widths):
        found[width] = yield from part(
            representation.connected_steps(width, seeds, plane=i == 0),
            i / len(widths), (i + 1) / len(widths),
        )  # fmt: skip
        yield Step((i + 1) / len(widths), f"width {width}", dict(found))
    return found


def universal_steps(p: Parameters) -> Steps[representation.Universal]:
    """H: one setting, three data sets."""
    return (yield from representation.universal_steps(p.seed))
