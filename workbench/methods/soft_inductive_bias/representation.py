"""F, G and H: what is rather special to networks: learned features, connected solutions, reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import cho_solve, cholesky
from torch import Tensor

from workbench.steps import Step, Steps, part

from . import digits, networks, processes
from .networks import Trained

INPUTS, HIDDEN = 20, 64
SIZES = (INPUTS, HIDDEN, 1)
LENGTHS = (1.5, 2.5, 4.0, 6.0, 10.0)
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1)
GRID = 25  # points on a side of the loss plane


# F: one direction in twenty ---------------------------------------------------------------------


def single_index(n: int, seed: int, n_test: int = 1000) -> tuple[np.ndarray, ...]:
    """x (n, 20), y = sin 2z + z/2 with z = u^T x, tests likewise, and the direction u."""
    rng = np.random.default_rng([seed, 6])
    u = rng.standard_normal(INPUTS)
    u /= np.linalg.norm(u)
    tx, x = rng.standard_normal((n_test, INPUTS)), rng.standard_normal((n, INPUTS))

    def truth(points: np.ndarray) -> np.ndarray:
        z = points @ u
        return np.sin(2 * z) + z / 2

    return x, truth(x), tx, truth(tx), u


@dataclass(frozen=True)
class Learned:
    """Relative squared test errors and the alignment of the network, each (seeds,)."""

    n: int
    net: np.ndarray
    kernel: np.ndarray
    alignment: np.ndarray


def alignment(w: Tensor, directions: np.ndarray) -> np.ndarray:
    """Share of sum_k |a_k|^2 |W_k|^2 in direction u of each network w (B, D), (B,)."""
    (W, _), (a, _) = networks.unflatten(w, (INPUTS, HIDDEN, 1))
    weight = (a[:, :, 0] ** 2)[:, None]  # (B, 1, h)
    along = torch.einsum("bd,bdh->bh", networks.tensor(directions), W) ** 2
    return ((weight[:, 0] * along).sum(1) / (weight * W**2).sum((1, 2))).numpy()


def kernel_error(x: np.ndarray, y: np.ndarray, tx: np.ndarray, ty: np.ndarray) -> float:
    """Relative test error of RBF ridge regression with the best of 20 settings on the test set.

    An oracle: no choice on training data could be better.
    """
    best = np.inf
    mean = y.mean()
    for length in LENGTHS:
        kernel, cross = processes.rbf(x, x, length), processes.rbf(tx, x, length)
        for ridge in RIDGES:
            lower = cholesky(kernel + ridge * np.eye(len(x)), lower=True)
            guess = mean + cross @ cho_solve((lower, True), y - mean)
            best = min(best, float(((guess - ty) ** 2).mean() / ty.var()))
    return best


def network_steps(
    drawn: Sequence[tuple[np.ndarray, ...]], seeds: Sequence[int], steps: int = 1500,
    lr: float = 1e-2,
) -> Steps[Trained]:  # fmt: skip
    """A network of 64 units on each of the data sets drawn by `single_index`, in one batch."""
    X, Y = (torch.stack([networks.tensor(d[i]) for d in drawn]) for i in (0, 1))

    def loss(w: Tensor, rows: Tensor, step: int) -> Tensor:
        residual = networks.forward(w, X, SIZES)[..., 0] - Y  # none leaves the batch
        return (residual**2).mean(1) + 0.5e-3 * (w * w).sum(1)

    title = f"{X.shape[1]} examples"
    return (
        yield from networks.train_steps(
            networks.initial(SIZES, seeds), loss, steps=steps, lr=lr, cosine=True, title=title
        )
    )


def network_errors(w: Tensor, drawn: Sequence[tuple[np.ndarray, ...]]) -> np.ndarray:
    """Relative squared test error of each network w (B, D), (B,)."""
    T = torch.stack([networks.tensor(d[2]) for d in drawn])
    with torch.no_grad():
        guess = networks.forward(w, T, SIZES)[..., 0].numpy()
    truth = np.stack([d[3] for d in drawn])
    return ((guess - truth) ** 2).mean(1) / truth.var(1)


def learned_steps(n: int, seeds: Sequence[int], steps: int = 1500) -> Steps[Learned]:
    """A network for each seed, in one batch, against the kernel with an oracle."""
    drawn = [single_index(n, seed) for seed in seeds]
    trained = yield from part(network_steps(drawn, seeds, steps), 0, 0.7)
    kernel = []
    for i, d in enumerate(drawn):
        kernel.append(kernel_error(*d[:4]))
        yield Step(0.7 + 0.3 * (i + 1) / len(drawn), "kernel with an oracle")
    turned = alignment(trained.w, np.stack([d[4] for d in drawn]))
    return Learned(n, network_errors(trained.w, drawn), np.array(kernel), turned)


# G: solutions are connected ---------------------------------------------------------------------


def bezier(w1: Tensor, middle: Tensor, w2: Tensor, t: float | Tensor) -> Tensor:
    """(1 - t)^2 w1 + 2 t (1 - t) middle + t^2 w2."""
    return (1 - t) ** 2 * w1 + 2 * t * (1 - t) * middle + t**2 * w2


@dataclass
class Paths:
    """Losses and errors between two solutions of each pair: (pairs, 41) along t.

    ends: weights (2, pairs, D), middle: (pairs, D). ensemble: test error of the mean prediction
    along the curve, single: of the two ends on average, (pairs,). plane: losses (GRID, GRID).
    """

    sizes: tuple[int, ...]
    t: np.ndarray
    line: np.ndarray
    line_error: np.ndarray
    curve: np.ndarray
    curve_error: np.ndarray
    ends: Tensor
    middle: Tensor
    single: np.ndarray
    ensemble: np.ndarray
    plane: Plane | None = None


@dataclass(frozen=True)
class Plane:
    """Losses on a grid over the plane through both ends and the middle of the first pair.

    x, y: (GRID,) coordinates; loss: (GRID, GRID), rows along y, nan where not yet computed.
    ends: (2, 2), curve: (41, 2) in these coordinates.
    """

    x: np.ndarray
    y: np.ndarray
    loss: np.ndarray
    ends: np.ndarray
    curve: np.ndarray


def connected_steps(
    width: int, seeds: Sequence[int], n: int = 1200, ends: tuple[int, float] | None = None,
    steps: int = 600, lr: float = 3e-3, plane: bool = True,
) -> Steps[Paths]:  # fmt: skip
    """Two independent solutions for each seed, then the curve between them; width 0: no hidden."""
    sizes = (64, width, width, 10) if width else (64, 10)
    # A convex loss has no exact minimum here: both ends run all their steps.
    ends, stop = ends or ((1500, 1e-2) if width else (400, 1e-2)), 0.0017 if width else 0.0
    pairs = len(seeds)
    splits = [digits.split(n, seed) for seed in seeds]
    X = torch.stack([networks.tensor(s.train_x) for s in splits])
    Y = torch.stack([networks.tensor(s.train_y) for s in splits])
    both, Yb = X.repeat(2, 1, 1), Y.repeat(2, 1)
    start = networks.initial(sizes, [*(2 * s for s in seeds), *(2 * s + 1 for s in seeds)])

    trained: Trained = yield from part(
        networks.train_steps(
            start, networks.supervised(both, Yb, sizes), steps=ends[0], lr=ends[1], stop=stop,
            title=f"width {width}, two solutions",
        ), 0, 0.5,
    )  # fmt: skip
    w1, w2 = trained.w[:pairs], trained.w[pairs:]
    generator = torch.Generator().manual_seed(13)
    times = torch.rand(steps, generator=generator)

    fit = networks.supervised(X, Y, sizes)

    def curve_loss(theta: Tensor, rows: Tensor, step: int) -> Tensor:
        return fit(bezier(w1[rows], theta, w2[rows], times[step]), rows, step)

    bent: Trained = yield from part(
        networks.train_steps(0.5 * (w1 + w2), curve_loss, steps=steps, lr=lr,
                             title=f"width {width}, curve"), 0.5, 0.85,
    )  # fmt: skip
    t = np.linspace(0, 1, 41)
    rows: dict[str, list] = {"line": [], "line_error": [], "curve": [], "curve_error": []}
    probabilities = 0
    test_x = torch.stack([networks.tensor(s.test_x) for s in splits])
    test_y = np.stack([s.test_y for s in splits])
    single = []
    with torch.no_grad():
        for at in t.tolist():
            for name, w in (
                ("line", (1 - at) * w1 + at * w2), ("curve", bezier(w1, bent.w, w2, at)),
            ):  # fmt: skip
                logits = networks.forward(w, X, sizes)
                rows[name].append(networks.cross_entropy(logits, Y).numpy())
                rows[f"{name}_error"].append((logits.argmax(-1) != Y).float().mean(1).numpy())
            guess = torch.softmax(networks.forward(w, test_x, sizes), -1)
            probabilities = probabilities + guess
            if at in (0.0, 1.0):
                single.append((guess.argmax(-1).numpy() != test_y).mean(1))
    ensemble = (probabilities.argmax(-1).numpy() != test_y).mean(1)
    found = Paths(
        sizes, t, *(np.stack(rows[k], 1) for k in rows), torch.stack([w1, w2]), bent.w,
        np.mean(single, 0), ensemble,
    )  # fmt: skip
    if plane:
        found.plane = yield from part(
            plane_steps(found, X[0], Y[0]), 0.85, 1, data=lambda p: _with_plane(found, p)
        )
    return found


def _with_plane(paths: Paths, plane: Plane) -> Paths:
    paths.plane = plane
    return paths


def plane_steps(paths: Paths, x: Tensor, y: Tensor, grid: int = GRID) -> Steps[Plane]:
    """Losses on the plane through w1, w2 and the middle of the curve; a row a step."""
    w1, w2, middle = paths.ends[0, 0], paths.ends[1, 0], paths.middle[0]
    u = w2 - w1
    length = u.norm()
    u = u / length
    v = middle - w1
    v = v - (v @ u) * u
    height = v.norm().clamp_min(1e-9)
    v = v / height

    def place(w: Tensor) -> tuple[float, float]:
        return float((w - w1) @ u), float((w - w1) @ v)

    curve = np.array([place(bezier(w1, middle, w2, at)) for at in paths.t.tolist()])
    corners = np.array([place(w1), place(w2)])
    room = 0.25 * float(length)
    top = float(curve[:, 1].max())
    gx = np.linspace(-room, float(length) + room, grid)
    gy = np.linspace(-room, max(top, 0.4 * float(length)) + room, grid)
    loss = np.full((grid, grid), np.nan)
    for row, b in enumerate(gy):
        w = w1 + networks.tensor(gx)[:, None] * u + float(b) * v
        with torch.no_grad():
            logits = networks.forward(w, x, paths.sizes)
            loss[row] = networks.cross_entropy(logits, y.expand(grid, -1)).numpy()
        yield Step((row + 1) / grid, "loss plane", Plane(gx, gy, loss.copy(), corners, curve))
    return Plane(gx, gy, loss, corners, curve)


# H: the same learner everywhere -----------------------------------------------------------------


@dataclass(frozen=True)
class Universal:
    """Scores of one network and one GP, one setting each: accuracy, or R^2 for diabetes."""

    names: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]  # training examples, inputs
    measure: tuple[str, ...]
    net: np.ndarray
    process: np.ndarray
    constant: np.ndarray


def universal_steps(seed: int = 0, steps: int = 400) -> Steps[Universal]:
    """A 64-unit network and a GP on digits, breast cancer and diabetes, nothing tuned to any."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    cancer, diabetes = load_breast_cancer(), load_diabetes()
    images, labels = digits.load()
    rows = []
    for i, (name, x, y, classes) in enumerate((
        ("digits", images, labels, 10), ("breast cancer", cancer.data, cancer.target, 2),
        ("diabetes", diabetes.data, diabetes.target, 0),
    )):  # fmt: skip
        order = np.random.default_rng([seed, 8]).permutation(len(x))
        cut = int(0.7 * len(x))
        train, test = order[:cut], order[cut:]
        spread = x[train].std(0)
        x = (x - x[train].mean(0)) / np.where(spread > 0, spread, 1)
        if classes:
            targets = np.eye(classes)[y] - 1 / classes
        else:
            targets = ((y - y[train].mean()) / y[train].std())[:, None]
        sizes = (x.shape[1], 64, targets.shape[1])
        X, T = networks.tensor(x[train])[None], networks.tensor(targets[train])[None]

        def loss(w: Tensor, rows: Tensor, step: int, X=X, T=T, sizes=sizes) -> Tensor:
            fit = (networks.forward(w, X, sizes) - T) ** 2
            return fit.mean((1, 2)) + 0.5e-3 * (w * w).sum(1)

        trained = yield from part(
            networks.train_steps(networks.initial(sizes, [seed]), loss, steps=steps, lr=1e-2,
                                 cosine=True, title=name), i / 3, (i + 1) / 3,
        )  # fmt: skip
        with torch.no_grad():
            net = networks.forward(trained.w, networks.tensor(x[test]), sizes)[0].numpy()
        length = x.shape[1] ** 0.5
        gp = processes.regression(processes.rbf(x[train], x[train], length), targets[train], 0.1)
        process = gp.predict(processes.rbf(x[test], x[train], length))
        guesses = (net, process, np.repeat(targets[train].mean(0, keepdims=True), len(test), 0))
        if classes:
            scores = [(g.argmax(1) == y[test]).mean() for g in guesses]
        else:
            truth = targets[test]
            total = ((truth - truth.mean()) ** 2).sum()
            scores = [1 - ((g - truth) ** 2).sum() / total for g in guesses]
        rows.append((name, (cut, x.shape[1]), "accuracy" if classes else "R²", *scores))
    columns = list(zip(*rows, strict=True))
    return Universal(*columns[:3], *(np.array(c, float) for c in columns[3:]))
