"""The experiments A to H of the study, each a generator of steps that returns plain results.

What can be solved in closed form is stacked over seeds; what is trained runs as one batch of
networks for all seeds and settings of an experiment. They measure; what the numbers mean for the
claims is in `findings.py`, and how they look in `views.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part

from . import compression, digits, double_descent, networks, polynomials, posterior, processes
from . import representation, symmetry
from .compression import Compressed
from .dimension import network_dimension

INSIDE = 0.95  # test points of A lie within; beyond, at the edge, order-dependent fits err more
HARD_ORDERS = (2, 3, 12, 29, 150)
EVIDENCE_ORDERS = (1, 2, 3, 5, 10, 20, 30, 50, 75, 100, 150, 200, 250, 300)
TRUTHS = ("quadratic", "order 15", "cosine")
SIZES = (8, 16, 32, 64, 128)  # examples in A2
CHOICES = tuple((g, a) for g in (1.0, 1.3, 2.0, 4.0, 10.0) for a in (0.1, 1.0, 10.0))
FULL_DIGITS, C3_DIGITS, LABEL_DIGITS = 1437, 400, 1200
SOFT_RIDGE = 0.02
MLP_WIDTH = 512


def single(function, *arguments, **options):
    """Call a function whose linear algebra uses one thread: as fast here, and it repeats."""
    with threadpool_limits(1):
        return function(*arguments, **options)


# A: polynomials ----------------------------------------------------------------------------------


@dataclass
class Polynomials:
    """Errors of each model, (draws,) each: test RMSE on two structures, train RMSE on noise.

    edge: median test RMSE on the whole of [-1, 1]. evidence: gamma -> mean log marginal likelihood
    over EVIDENCE_ORDERS on complex data. hard: order -> the same errors for orders 0 to 12.
    """

    errors: dict[str, dict[str, np.ndarray]]
    edge: dict[str, dict[str, float]]
    evidence: dict[float, np.ndarray] = field(default_factory=dict)
    hard: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)


def soft_name(gamma: float, order: int, basis: str = "chebyshev") -> str:
    """What a fit with order-dependent penalties is called in tables."""
    ending = "" if basis == "chebyshev" else f", {basis}"
    return f"order {order}, γ = {gamma:g}{ending}"


def hard_name(order: int) -> str:
    """What plain least squares is called in tables."""
    return f"least squares, order {order}"


def polynomial_errors(model, x: np.ndarray, labels: dict[str, np.ndarray]) -> tuple[dict, dict]:
    """Errors of `model(x, y)` on each kind of labels, inside, and up to the edge of [-1, 1]."""
    errors, edge = {}, {}
    inside, whole = np.linspace(-INSIDE, INSIDE, 400), np.linspace(-1, 1, 421)
    for kind, y in labels.items():
        fitted = model(x, y)
        if kind == "noise":
            errors[kind] = np.sqrt(((fitted.predict(x) - y) ** 2).mean(0))
            continue
        for points, store in ((inside, errors), (whole, edge)):
            truth = polynomials.structure(kind, points)[:, None]
            store[kind] = np.sqrt(((fitted.predict(points) - truth) ** 2).mean(0))
        edge[kind] = float(np.median(edge[kind]))
    return errors, edge


def polynomial_steps(p: Parameters) -> Steps[Polynomials]:
    """A and A3: all draws of labels are columns of one system, since x is a fixed grid."""
    x = np.linspace(-1, 1, p.n_points)
    rng = np.random.default_rng([p.seed, 9])
    labels = {kind: polynomials.draw(kind, x, rng, p.draws) for kind in polynomials.KINDS}
    soft = [(p.gamma, p.order, p.basis), *((g, 150, "chebyshev") for g in (1.1, 1.05, 1.2, 1.0)),
            (1.1, 150, "legendre"), (1.1, 150, "monomial")]  # fmt: skip
    models = {
        soft_name(g, J, basis): partial(
            polynomials.fit, order=J, gamma=g, sigma2=p.sigma2, basis=basis
        )
        for g, J, basis in dict.fromkeys(soft)
    }
    for order in HARD_ORDERS:
        models[hard_name(order)] = partial(polynomials.least_squares, order=order)
    found = Polynomials({}, {})
    for i, (name, model) in enumerate(models.items()):
        found.errors[name], found.edge[name] = single(polynomial_errors, model, x, labels)
        yield Step((i + 1) / (len(models) + 2), name, found)
    for order in range(13):
        model = partial(polynomials.least_squares, order=order)
        found.hard[order] = single(polynomial_errors, model, x, labels)[0]
    for gamma in (1.0, 1.1):
        found.evidence[gamma] = np.array([
            single(polynomials.fit, x, labels["complex"], J, gamma, p.sigma2).evidence.mean()
            for J in EVIDENCE_ORDERS
        ])  # fmt: skip
    yield Step(1.0, "evidence", found)
    return found


@dataclass
class SampleEfficiency:
    """A2: RMSE (seeds,) by truth, number of examples and model."""

    rmse: dict[tuple[str, int, str], np.ndarray]

    def median(self, truth: str, n: int, model: str) -> float:
        """Median over seeds."""
        return float(np.median(self.rmse[truth, n, model]))


MODELS_A2 = ("order 2", "order 15", "soft 15", "soft 100")


def efficiency_steps(p: Parameters, seeds: int) -> Steps[SampleEfficiency]:
    """A2: x uniform on [-1, 1], noise 0.2; gamma and amplitude of the soft ones by evidence."""
    found = SampleEfficiency({})
    cells = [(t, n) for t in TRUTHS for n in SIZES]
    test = np.linspace(-1, 1, 400)
    for i, (truth, n) in enumerate(cells):
        rows = [_efficiency(truth, n, [p.seed, s], test, p.basis) for s in range(seeds)]
        for model in MODELS_A2:
            found.rmse[truth, n, model] = np.array([row[model] for row in rows])
        yield Step((i + 1) / len(cells), f"{truth}, {n} examples", found)
    return found


def _efficiency(
    truth: str, n: int, seed: list[int], test: np.ndarray, basis: str
) -> dict[str, float]:
    rng = np.random.default_rng([*seed, 10])
    degree = {"quadratic": 2, "order 15": 15}.get(truth)
    if degree:
        spread = np.ones(3) if degree == 2 else 0.8 ** np.arange(16)
        weights = spread * rng.standard_normal(degree + 1)

        def f(x: np.ndarray) -> np.ndarray:
            return np.polynomial.legendre.legval(x, weights)
    else:

        def f(x: np.ndarray) -> np.ndarray:
            return np.cos(1.5 * np.pi * x)

    x = rng.uniform(-1, 1, n)
    y = f(x) + 0.2 * rng.standard_normal(n)
    with threadpool_limits(1):
        guesses = {
            f"order {J}": polynomials.least_squares(x, y, J, "legendre").predict(test)
            for J in (2, 15)
        }
        for J in (15, 100):
            tried = [
                polynomials.fit(x, y, J, g, 0.04, basis, amplitude=a) for g, a in CHOICES
            ]  # fmt: skip
            best = max(tried, key=lambda fitted: fitted.evidence)
            guesses[f"soft {J}"] = best.predict(test)
    return {k: float(np.sqrt(((g - f(test)) ** 2).mean())) for k, g in guesses.items()}


# B: random labels ----------------------------------------------------------------------------------


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
        supervised(X, Y, sizes), steps=3000, lr=1e-2, stop=0.01, title="networks",
    )  # fmt: skip
    shape = (p.networks, len(rho))
    found.mlp_rho = np.array(rho)
    found.mlp_train = 1 - networks.errors(trained.w, X, Y, sizes).reshape(shape)
    found.mlp_test = 1 - networks.errors(trained.w, T, TY, sizes).reshape(shape)


def stacked(splits: Sequence[digits.Split]) -> tuple[torch.Tensor, ...]:
    """Training and test images and labels of many splits as tensors (B, n, ...)."""
    names = ("train_x", "train_y", "test_x", "test_y")
    return tuple(networks.tensor(np.stack([getattr(s, k) for s in splits])) for k in names)


def supervised(X: torch.Tensor, Y: torch.Tensor, sizes: Sequence[int]) -> networks.Loss:
    """Cross-entropy of each network on its own data, for `networks.train_steps`."""

    def loss(w: torch.Tensor, rows: torch.Tensor, step: int) -> torch.Tensor:
        x, y = (X, Y) if len(rows) == len(X) else (X[rows], Y[rows])
        return networks.cross_entropy(networks.forward(w, x, sizes), y)

    return loss


# C: double descent ---------------------------------------------------------------------------------


@dataclass
class Weak:
    """C1: one result for each number of features."""

    rows: list[double_descent.WeakFeatures]
    n: int = double_descent.N_WEAK

    @property
    def d(self) -> np.ndarray:
        """Numbers of features."""
        return np.array([row.d for row in self.rows])

    def of(self, name: str) -> np.ndarray:
        """Mean over seeds of test, train, dimension or undetermined, for each d."""
        return np.array([getattr(row, name).mean() for row in self.rows])


def weak_steps(p: Parameters) -> Steps[Weak]:
    """C1: weak features of one signal."""
    seeds = p.seed + np.arange(max(p.draws // 5, 2))
    found = Weak([])
    for i, d in enumerate(double_descent.WEAK_DIMENSIONS):
        found.rows.append(single(double_descent.weak_features, d, seeds))
        yield Step((i + 1) / len(double_descent.WEAK_DIMENSIONS), f"{d} features", found)
    return found


@dataclass
class Relu:
    """C2: errors by ridge, (seeds, d) each, and N_eff; d that has not run is nan."""

    d: np.ndarray
    n: int
    train: dict[float, np.ndarray]
    test: dict[float, np.ndarray]
    dimension: np.ndarray


def relu_steps(p: Parameters) -> Steps[Relu]:
    """C2: random ReLU features of digits with noisy labels, ridge 0, the chosen one, and 0.02."""
    d = np.array(sorted(p.d_grid))
    ridges = tuple(dict.fromkeys((0.0, p.ridge, SOFT_RIDGE)))
    shape = (p.seeds, len(d))
    found = Relu(d, p.n, *({r: np.full(shape, np.nan) for r in ridges} for _ in range(2)),
                 np.full(shape, np.nan))  # fmt: skip
    cells = [(i, j) for j in range(len(d)) for i in range(p.seeds)]
    for k, (i, j) in enumerate(cells):
        made = single(double_descent.relu_features, int(d[j]), p.seed + i, p.n)
        for ridge in ridges:
            errors = single(made.errors, ridge, p.label_noise)
            found.train[ridge][i, j], found.test[ridge][i, j] = errors
        found.dimension[i, j] = made.dimension()
        yield Step((k + 1) / len(cells), f"{d[j]} features", found)
    return found


@dataclass
class Widths:
    """C3: networks by width, (seeds, widths) each; nan where not yet trained.

    curves: width -> rows (step, training losses of the seeds).
    """

    widths: np.ndarray
    test: np.ndarray
    test_error: np.ndarray
    train_error: np.ndarray
    dimension: np.ndarray
    curves: dict[int, list[tuple[int, np.ndarray]]] = field(default_factory=dict)
    lanczos: dict[int, tuple[float, float]] = field(default_factory=dict)


def width_steps(
    widths: Sequence[int], seeds: Sequence[int], label_noise: float, alpha: float,
    check: bool = False, steps: int = 3000,
) -> Steps[Widths]:  # fmt: skip
    """C3: all widths of a similar size and all seeds in one batch; pixels centered (ours)."""
    widths = sorted(set(widths))
    splits = [digits.split(C3_DIGITS, seed, label_noise) for seed in seeds]
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
        sizes = (64, max(own), digits.CLASSES)
        cells = [(i, k) for i in group for k in range(len(seeds))]
        which = torch.tensor([k for _, k in cells])
        start = networks.initial(sizes, [seeds[k] for _, k in cells], [widths[i] for i, _ in cells])
        share = costs[group].sum() / costs.sum()

        def so_far(trained: networks.Trained, cells=cells) -> Widths:
            _keep_curves(found, trained, cells)
            return found

        title = f"width {own[0]}" + (f" to {own[-1]}" if len(own) > 1 else "")
        trained = yield from part(
            networks.train_steps(start, supervised(X[which], Y[which], sizes), steps=steps,
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
            found.dimension[k, i] = single(network_dimension, points, layers, alpha, C3_DIGITS)
            if check and k == 0 and widths[i] in (8, 64):
                from .dimension import lanczos_dimension

                own_way = single(lanczos_dimension, points, layers, alpha, C3_DIGITS)
                found.lanczos[widths[i]] = (float(found.dimension[k, i]), own_way)
            yield Step(done + share * (0.9 + 0.1 * (row + 1) / len(cells)), title, found)
        done += share
    return found


def _keep_curves(found: Widths, trained: networks.Trained, cells: list[tuple[int, int]]) -> None:
    for i in {i for i, _ in cells}:
        rows = [row for row, (j, _) in enumerate(cells) if j == i]
        found.curves[int(found.widths[i])] = [(s, v[rows]) for s, v in trained.curves]


@dataclass
class Exact:
    """C4: simulated squared distances (draws,) and the exact expectation, by d."""

    n: int
    sigma: float
    draws: dict[int, np.ndarray]
    exact: dict[int, float]

    def z(self) -> np.ndarray:
        """Differences of the means in standard errors."""
        return np.array([
            (v.mean() - self.exact[d]) / (v.std(ddof=1) / len(v) ** 0.5)
            for d, v in self.draws.items()
        ])  # fmt: skip


def exact_steps(p: Parameters, draws: int = 400) -> Steps[Exact]:
    """C4: an isotropic design, against the closed form."""
    found = Exact(50, 0.5, {}, {})
    for i, d in enumerate(double_descent.EXACT_DIMENSIONS):
        found.draws[d] = single(double_descent.simulated_error, 50, d, 0.5, draws, p.seed)
        found.exact[d] = double_descent.exact_error(50, d, 0.5)
        yield Step((i + 1) / len(double_descent.EXACT_DIMENSIONS), f"{d} features", found)
    return found


# D: bounds -----------------------------------------------------------------------------------------


def compressed_steps(
    p: Parameters, width: int, d: int, seeds: Sequence[int], rho: Sequence[float] = (0.0,)
) -> Steps[Compressed]:
    """Networks stored in bits, for all seeds and all corruptions rho in one batch, rho first."""
    splits = [digits.split(FULL_DIGITS, seed, share) for share in rho for seed in seeds]
    arrays = (
        np.stack([getattr(s, k) for s in splits])
        for k in ("train_x", "train_y", "test_x", "test_y")
    )
    return (
        yield from compression.compress_steps(
            *arrays, width=width, d=d, levels=p.levels, seeds=list(seeds) * len(rho),
            delta=p.delta,
        )
    )  # fmt: skip


def compression_steps(p: Parameters) -> Steps[dict[tuple[int, int], Compressed]]:
    """D and D3: every width at every dimension d, each seed of a batch with its own projection."""
    cells = [(w, d) for d in p.bound_d for w in p.bound_widths]
    seeds = [p.seed + i for i in range(p.networks)]
    costs = np.array([(30 + w) * (50 + d) for w, d in cells], float)
    ends = np.cumsum(costs) / costs.sum()
    found: dict[tuple[int, int], Compressed] = {}
    for (w, d), begin, end in zip(cells, [0.0, *ends[:-1]], ends, strict=True):
        found[w, d] = yield from part(
            compressed_steps(p, w, d, seeds), begin, end, f"width {w}, d = {d}",
            data=lambda partial, key=(w, d): {**found, key: partial},
        )  # fmt: skip
    return found


@dataclass
class Corrupted:
    """D2: the same pipeline with random labels; `result` has a row for each rho and seed."""

    rho: np.ndarray
    seeds: int
    result: Compressed

    def bound(self, kind: str = "kl") -> np.ndarray:
        """(rhos, seeds)."""
        return self.result.of(kind).reshape(len(self.rho), self.seeds)


def corrupted_steps(p: Parameters, rho: Sequence[float]) -> Steps[Corrupted]:
    """D2 at the main width and dimension, all rhos and seeds in one batch."""
    rho = sorted(rho)
    seeds = [p.seed + i for i in range(p.networks)]

    def wrap(partial: Compressed) -> Corrupted:
        return Corrupted(np.array(rho), len(seeds), partial)

    made = yield from part(compressed_steps(p, p.width, p.d, seeds, rho), 0, 1, data=wrap)
    return wrap(made)


def posterior_steps(p: Parameters) -> Steps[posterior.Gibbs]:
    """D4: softmax regression on true and on random labels, one batch."""
    splits = [digits.split(FULL_DIGITS, p.seed, share) for share in (0.0, 1.0)]
    arrays = (
        np.stack([getattr(s, k) for s in splits])
        for k in ("train_x", "train_y", "test_x", "test_y")
    )
    return (yield from posterior.gibbs_steps(*arrays, seed=p.seed, delta=p.delta))


def validity_steps(p: Parameters, datasets: int = 3000) -> Steps[posterior.Validity]:
    """How often the bounds are broken on simulated data."""
    yield Step(0.0, f"{datasets:,} data sets")
    return posterior.validity(datasets, delta=p.delta, seed=p.seed)


# E to H ----------------------------------------------------------------------------------------------


@dataclass
class Symmetry:
    """E: test accuracies (seeds,) and chosen r by task and number of examples."""

    rows: dict[tuple[str, int], list[processes.Choice]]

    def of(self, task: str, n: int, name: str) -> np.ndarray:
        """hard, none, soft or r of each seed."""
        return np.array([getattr(c, name) for c in self.rows[task, n]])


def symmetric_choice(task: str, n: int, seed: int, group: str = "C4") -> processes.Choice:
    """One task, one seed: kernels, and what the evidence chooses."""
    s = digits.task(task, n, seed)
    maps = digits.permutations(group)
    pairs = [
        (processes.invariant_kernel(x, s.train_x, maps),
         processes.rbf(x, s.train_x, processes.SYMMETRY_LENGTH))
        for x in (s.train_x, s.test_x)
    ]  # fmt: skip
    return processes.choose_symmetry(*pairs, digits.centered_one_hot(s.train_y), s.test_y)


def symmetry_steps(p: Parameters) -> Steps[Symmetry]:
    """E: three tasks, hard, no and soft symmetry, r by evidence."""
    seeds = max(p.draws // 5, 2)
    cells = [(t, n, s) for n in p.n_train for t in digits.TASKS for s in range(seeds)]
    found = Symmetry({(t, n): [] for n in p.n_train for t in digits.TASKS})
    for i, (t, n, s) in enumerate(cells):
        found.rows[t, n].append(single(symmetric_choice, t, n, p.seed + s, p.group))
        yield Step((i + 1) / len(cells), f"{t}, {n} examples", found)
    return found


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
        # A convex loss has no exact minimum here: both ends run all their steps.
        options = {"ends": (400, 1e-2), "stop": 0.0} if width == 0 else {}
        found[width] = yield from part(
            representation.connected_steps(width, seeds, plane=i == 0, **options),
            i / len(widths), (i + 1) / len(widths),
        )  # fmt: skip
        yield Step((i + 1) / len(widths), f"width {width}", dict(found))
    return found


def universal_steps(p: Parameters) -> Steps[representation.Universal]:
    """H: one setting, three data sets."""
    return (yield from representation.universal_steps(p.seed))


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Rank correlation of two sequences without ties."""
    ranks = [np.argsort(np.argsort(v)) for v in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])


def pairs_of(values: Sequence) -> Iterator[tuple]:
    """Neighbors of a sequence."""
    return zip(values[:-1], values[1:], strict=True)
