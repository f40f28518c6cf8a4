"""Data to try the method on: tables of scikit-learn, the paper's type of synthetic data, own ones.

All columns are standardized to mean 0 and standard deviation 1, the response of the linear tasks
too. Nothing here touches the network; `loaders.py` has what comes from outside.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from workbench.numerics.checks import choice

TABLES = ("diabetes", "diabetes2", "diabetes3", "breast_cancer", "digits", "synthetic", "npz")


@dataclass(frozen=True)
class Data:
    """X (n, p), y (n,), the loss that fits y, names of the columns; true_beta (p,) if known."""

    name: str
    X: np.ndarray
    y: np.ndarray
    loss: str
    names: tuple[str, ...]
    true_beta: np.ndarray | None = None


def standardize(X: ArrayLike) -> np.ndarray:
    """Columns with mean 0 and standard deviation 1; constant ones become 0."""
    X = np.asarray(X, float)
    offset, scale = center_and_scale(X)
    return (X - offset) / scale


def center_and_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over the first axis, for numbers of any size.

    What is constant but for rounding gets its first value and a positive scale.
    """
    # A power of two near the largest, so that squares neither overflow nor vanish.
    size = np.ldexp(1.0, np.frexp(np.abs(values).max(0))[1] - 1)
    unit = values / size
    deviation = unit.std(0)
    varies = deviation > 1e-12
    return np.where(varies, size * unit.mean(0), values[0]), size * np.where(varies, deviation, 1.0)


def from_arrays(
    X: ArrayLike, y: ArrayLike, loss: str | None = None, name: str = "own data"
) -> Data:
    """Own data, standardized; the loss is logistic for two labels -1/1 or 0/1, else linear."""
    names = tuple(str(column) for column in getattr(X, "columns", ()))
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != X.shape[:1] or 0 in X.shape:
        raise ValueError(f"X has shape {X.shape} and y {y.shape}: needed are (n, p) and (n,)")
    found = set(np.unique(y)) if np.isfinite(y).all() else {np.nan}
    two = found <= {-1.0, 1.0} or found <= {0.0, 1.0}
    loss = choice("loss", loss or ("logistic" if two else "linear"), ["linear", "logistic"])
    if loss == "logistic" and two:
        y = np.where(y > 0, 1.0, -1.0)
    elif loss == "linear":
        y = standardize(y)
    names = names or tuple(f"x{j}" for j in range(X.shape[1]))
    return Data(name, standardize(X), y, loss, names)


def diabetes(degree: int = 1) -> Data:
    """The diabetes table, 442 x 10, with products up to `degree`: 65 and 285 columns for 2, 3."""
    from sklearn.datasets import load_diabetes
    from sklearn.preprocessing import PolynomialFeatures

    bunch = load_diabetes()
    X, names = standardize(bunch.data), list(bunch.feature_names)
    if degree > 1:
        expand = PolynomialFeatures(degree, include_bias=False)
        X = standardize(expand.fit_transform(X))
        names = list(expand.get_feature_names_out(names))
    y = (bunch.target - bunch.target.mean()) / bunch.target.std()
    return Data(f"diabetes{degree if degree > 1 else ''}", X, y, "linear", tuple(names))


def breast_cancer() -> Data:
    """Breast cancer in Wisconsin, 569 x 30; y = +1 for benign (target 1)."""
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer()
    y = np.where(bunch.target == 1, 1.0, -1.0)
    return Data("breast cancer", standardize(bunch.data), y, "logistic",
                tuple(map(str, bunch.feature_names)))  # fmt: skip


def digits(a: int = 3, b: int = 8) -> Data:
    """Two digits of 8 x 8 pixels, constant pixels dropped; y = +1 for a. 3, 8: 357 x 54."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    if not (0 <= a <= 9 and 0 <= b <= 9 and a != b):
        raise ValueError(f"digits {a} and {b}: allowed are two different ones from 0 to 9")
    chosen = (bunch.target == a) | (bunch.target == b)
    X = bunch.data[chosen]
    kept = np.flatnonzero(np.ptp(X, axis=0) > 0)
    names = tuple(f"pixel {j // 8},{j % 8}" for j in kept)
    y = np.where(bunch.target[chosen] == a, 1.0, -1.0)
    return Data(f"digits {a}/{b}", standardize(X[:, kept]), y, "logistic", names)


def synthetic(
    n: int, p: int, k: int = 10, loss: str = "linear", rho: float = 0.5, snr: float = 5.0,
    seed: int = 0,
) -> Data:  # fmt: skip
    """The paper's type: columns correlated by rho^distance, k coefficients of 1, evenly spaced.

    snr: variance of X beta over that of the noise (linear). Not standardized.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    beta = np.zeros(p)
    beta[[int(i * p / k) for i in range(k)]] = 1.0
    u = X @ beta
    if choice("loss", loss, ["linear", "logistic"]) == "linear":
        y = u + np.sqrt(u.var() / snr) * rng.standard_normal(n)
    else:
        y = np.where(rng.random(n) < 1 / (1 + np.exp(-u)), 1.0, -1.0)
    return Data(f"synthetic {loss} {n} x {p}", X, y, loss, tuple(f"x{j}" for j in range(p)), beta)


def load_npz(path: str | Path, loss: str | None = None) -> Data:
    """Own data from an .npz file with arrays X (n, p) and y (n,), standardized."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no .npz file of numbers: {error}") from None
    if not {"X", "y"} <= set(arrays):
        raise ValueError(f"{path} holds {list(arrays)}; needed are X and y")
    return from_arrays(arrays["X"], arrays["y"], loss, path.stem)


def load(
    name: str, *, loss: str | None = None, n: int = 500, p: int = 500, k: int = 10,
    rho: float = 0.5, snr: float = 5.0, digits_pair: Sequence[int] = (3, 8), file: str = "",
    seed: int = 0,
) -> Data:  # fmt: skip
    """The data set called `name`, one of `TABLES`; ValueError when the loss does not fit it."""
    choice("data", name, TABLES)
    if name == "synthetic":
        return synthetic(n, p, k, loss or "linear", rho, snr, seed)
    if name == "npz":
        return load_npz(file, loss)
    makers = {"breast_cancer": breast_cancer, "digits": lambda: digits(*digits_pair)}
    made = makers.get(name, lambda: diabetes(int(name[8:] or 1)))()
    if loss == "logistic" and made.loss == "linear":
        raise ValueError(f"{name} has a continuous response: use loss = 'linear'")
    if loss == "linear" and made.loss == "logistic":
        y = (made.y - made.y.mean()) / made.y.std()
        return Data(made.name, made.X, y, "linear", made.names)
    return made
