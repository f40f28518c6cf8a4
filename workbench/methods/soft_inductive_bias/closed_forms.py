"""The experiments in closed form: A, A2, A3, C1, C2, C4 and E, stacked over seeds.

Generators of steps that return plain results, and the refits behind the sliders of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial

import numpy as np
from threadpoolctl import ThreadpoolController

from workbench.numerics.checks import choice
from workbench.parameters import Parameters
from workbench.steps import Step, Steps

from . import digits, double_descent, polynomials, processes

INSIDE = 0.95  # test points of A lie within; beyond, at the edge, order-dependent fits err more
HARD_ORDERS = (2, 3, 12, 29, 150)
EVIDENCE_ORDERS = (1, 2, 3, 5, 10, 20, 25, 29, 35, 50, 75, 100, 150, 200, 250, 300)
TRUTHS = ("quadratic", "order 15", "cosine")
SIZES = (8, 16, 32, 64, 128)  # examples in A2
GAMMAS, AMPLITUDES = (1.0, 1.3, 2.0, 4.0, 10.0), (0.1, 1.0, 10.0)
CHOICES = tuple((g, a) for g in GAMMAS for a in AMPLITUDES)
EFFICIENCY_NOISE = 0.2
SOFT_RIDGE = 0.02
PLOT = np.linspace(-1, 1, 301)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looking for them takes milliseconds


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside, linear algebra uses one thread: as fast here, and it repeats.

    The limit is that of the process. Of several threads the first sets and lifts it.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


def single(function, *arguments, **options):
    """Call a function inside `one_blas_thread`."""
    with one_blas_thread():
        return function(*arguments, **options)


# A: polynomials ---------------------------------------------------------------------------------


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


def models_of(p: Parameters) -> dict:
    """The models of A by name: the chosen one, the others of the argument, and least squares."""
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
    return models


def labels_of(p: Parameters, x: np.ndarray, draws: int) -> dict[str, np.ndarray]:
    """Labels of each kind at x, (n, draws)."""
    rng = np.random.default_rng([p.seed, 9])
    return {kind: polynomials.draw(kind, x, rng, draws) for kind in polynomials.KINDS}


def few_polynomials(p: Parameters, draws: int = 10, only: str = "") -> Polynomials:
    """The errors of all models, or of one, on a few draws: for the picture of the two axes."""
    x = np.linspace(-1, 1, p.n_points)
    labels = labels_of(p, x, draws)
    models = {k: model for k, model in models_of(p).items() if only in ("", k)}
    both = {name: polynomial_errors(model, x, labels) for name, model in models.items()}
    return Polynomials(*({name: pair[i] for name, pair in both.items()} for i in (0, 1)))


def polynomial_steps(p: Parameters) -> Steps[Polynomials]:
    """A and A3: all draws of labels are columns of one system, since x is a fixed grid."""
    x = np.linspace(-1, 1, p.n_points)
    labels, models = labels_of(p, x, p.draws), models_of(p)
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


@dataclass(frozen=True)
class Refit:
    """What the page shows of A at one setting, of one draw of each kind of data.

    x: (n,). y, curve, weights: kind -> (n,), (301,), (J + 1,). test, train: RMSE by kind, test nan
    for noise. evidence, by_order: kind -> log marginal likelihood and test RMSE over
    EVIDENCE_ORDERS.
    """

    x: np.ndarray
    y: dict[str, np.ndarray]
    curve: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]
    test: dict[str, float]
    train: dict[str, float]
    evidence: dict[str, np.ndarray]
    by_order: dict[str, np.ndarray]


def refit(
    order: int, gamma: float, sigma2: float, basis: str, n: int, seed: int, scattered: bool = False
) -> Refit:
    """One draw of each kind of data, fitted; x on a regular grid, or uniform if `scattered`."""
    rng = np.random.default_rng([seed, 11])
    x = np.sort(rng.uniform(-1, 1, n)) if scattered else np.linspace(-1, 1, n)
    y = np.concatenate([polynomials.draw(kind, x, rng) for kind in polynomials.KINDS], 1)
    fitted = single(polynomials.fit, x, y, order, gamma, sigma2, basis)
    evidence, guesses = single(_by_order, x, y, gamma, sigma2, basis)
    curve, at = fitted.predict(PLOT), fitted.predict(x)
    inside = np.abs(PLOT) <= INSIDE
    names = ("y", "curve", "weights", "test", "train", "evidence", "by_order")
    found: dict[str, dict] = {name: {} for name in names}
    for i, kind in enumerate(polynomials.KINDS):
        truth = polynomials.structure(kind, PLOT)
        error = np.sqrt(((curve[:, i] - truth)[inside] ** 2).mean())
        found["test"][kind] = float(error) if kind != "noise" else np.nan
        found["train"][kind] = float(np.sqrt(((at[:, i] - y[:, i]) ** 2).mean()))
        found["y"][kind], found["curve"][kind] = y[:, i], curve[:, i]
        found["weights"][kind], found["evidence"][kind] = fitted.weights[:, i], evidence[:, i]
        misses = (guesses[:, inside, i] - truth[inside]) ** 2
        found["by_order"][kind] = np.sqrt(misses.mean(1))
    return Refit(x, **found)


def _by_order(
    x: np.ndarray, y: np.ndarray, gamma: float, sigma2: float, basis: str
) -> tuple[np.ndarray, np.ndarray]:
    """Evidence (orders, m) and predictions at PLOT (orders, 301, m), all orders in one stack."""
    largest = max(EVIDENCE_ORDERS)
    scales = np.sqrt(polynomials.prior_variances(largest, gamma))
    at, plot = (polynomials.features(points, largest, basis) * scales for points in (x, PLOT))
    parts = [(at[:, : J + 1], plot[:, : J + 1]) for J in EVIDENCE_ORDERS]  # nested in the order
    covariance = np.stack([a @ a.T for a, _ in parts]) + sigma2 * np.eye(len(x))
    lower = np.linalg.cholesky(covariance)
    dual = np.linalg.solve(covariance, np.broadcast_to(y, (len(parts), *y.shape)))
    logs = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1)[:, None]
    evidence = -0.5 * (y * dual).sum(1) - logs - 0.5 * len(x) * np.log(2 * np.pi)
    guesses = [b @ (a.T @ v) for (a, b), v in zip(parts, dual, strict=True)]
    return evidence, np.stack(guesses)


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
        rows = [single(_efficiency, truth, n, [p.seed, s], test, p.basis) for s in range(seeds)]
        for model in MODELS_A2:
            found.rmse[truth, n, model] = np.array([row[model] for row in rows])
        yield Step((i + 1) / len(cells), f"{truth}, {n} examples", found)
    return found


def _efficiency(
    truth: str, n: int, seed: list[int], test: np.ndarray, basis: str
) -> dict[str, float]:
    rng = np.random.default_rng([*seed, 10])
    f = truth_of(truth, rng)
    x = rng.uniform(-1, 1, n)
    y = f(x) + EFFICIENCY_NOISE * rng.standard_normal(n)
    guesses, _ = guesses_of(x, y, test, basis)
    return {k: float(np.sqrt(((g - f(test)) ** 2).mean())) for k, g in guesses.items()}


def truth_of(name: str, rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
    """A truth of A2: a cosine, or Legendre polynomials with random coefficients."""
    if name == "cosine":
        return lambda x: np.cos(1.5 * np.pi * x)
    spread = np.ones(3) if choice("truth", name, TRUTHS) == "quadratic" else 0.8 ** np.arange(16)
    weights = spread * rng.standard_normal(len(spread))
    return lambda x: np.polynomial.legendre.legval(x, weights)


def guesses_of(
    x: np.ndarray, y: np.ndarray, test: np.ndarray, basis: str, noise: float = EFFICIENCY_NOISE
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Predictions of the four models at test points, and the evidence of soft 15.

    evidence: (gammas, amplitudes), log marginal likelihood of each of CHOICES.
    """
    guesses = {
        f"order {J}": polynomials.least_squares(x, y, J, "legendre").predict(test) for J in (2, 15)
    }
    guesses["soft 15"], evidence = best_by_evidence(x, y, test, 15, basis, noise)
    guesses["soft 100"], _ = best_by_evidence(x, y, test, 100, basis, noise)
    return guesses, evidence.reshape(len(GAMMAS), len(AMPLITUDES))


def best_by_evidence(
    x: np.ndarray, y: np.ndarray, test: np.ndarray, order: int, basis: str,
    noise: float = EFFICIENCY_NOISE,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Predictions with the gamma and amplitude of most evidence, and the evidence of all (15,).

    All are tried in one stack.
    """
    phi, at = (polynomials.features(points, order, basis) for points in (x, test))
    variances = np.array([polynomials.prior_variances(order, g, a) for g, a in CHOICES])
    covariance = (phi * variances[:, None]) @ phi.T + noise**2 * np.eye(len(x))
    lower = np.linalg.cholesky(covariance)
    dual = np.linalg.solve(covariance, np.broadcast_to(y[:, None], (len(CHOICES), len(y), 1)))
    logs = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(1)
    found = -0.5 * (dual[..., 0] @ y) - logs - 0.5 * len(y) * np.log(2 * np.pi)
    best = int(found.argmax())
    return (at * variances[best]) @ (phi.T @ dual[best, :, 0]), found


# C: double descent ------------------------------------------------------------------------------


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


# E: symmetry ------------------------------------------------------------------------------------


@dataclass
class Symmetry:
    """E: test accuracies (seeds,) and chosen r by task and number of examples."""

    rows: dict[tuple[str, int], list[processes.Choice]]

    def of(self, task: str, n: int, name: str) -> np.ndarray:
        """hard, none, soft or r of each seed."""
        return np.array([getattr(c, name) for c in self.rows[task, n]])


def symmetric_choice(
    task: str, n: int, seed: int, group: str | np.ndarray = "C4"
) -> processes.Choice:
    """One task, one seed: what the evidence chooses. group: as in `choice_of`."""
    return choice_of(digits.task(task, n, seed), group)


def choice_of(s: digits.Split, group: str | np.ndarray) -> processes.Choice:
    """Hard, no and soft symmetry on square images of your own, r by evidence.

    group: a name, or pixel permutations (g, pixels) that form a group. ValueError if they do not.
    """
    pixels = s.train_x.shape[1]
    named = isinstance(group, str)
    maps = (
        digits.permutations(group, round(pixels**0.5)) if named else digits.as_group(group, pixels)
    )
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


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Rank correlation of two sequences without ties."""
    ranks = [np.argsort(np.argsort(v)) for v in (a, b)]
    return float(np.corrcoef(*ranks)[0, 1])
