"""ppi_py, the package of prediction-powered inference, as an outside check of PPI and PT.

Optional (`pip install workbench[peers]`). It takes one problem at a time, so there is no shrinkage
to compare with.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from .estimators import estimate
from .moments import per_problem
from .problems import Problems


def ppi_py() -> ModuleType:
    """The package; ImportError with the way to install it."""
    try:
        import ppi_py as package
    except ImportError as error:
        raise ImportError(
            f"ppi_py, a check of PPI, cannot be imported ({error}): pip install workbench[peers]"
        ) from error
    return package


def available() -> bool:
    """Whether ppi_py is installed."""
    try:
        ppi_py()
    except ImportError:
        return False
    return True


def items(m: int, seed: int, n: int = 20, N: int = 80) -> tuple[np.ndarray, ...]:
    """Labels (m, n), their predictions (m, n) and further predictions (m, N) to compare on."""
    rng = np.random.default_rng(seed)
    level = rng.standard_normal((m, 1))
    y = level + rng.standard_normal((m, n))
    f = 0.2 + y + rng.standard_normal((m, n))
    return y, f, level + 1.5 * rng.standard_normal((m, N))


def problems_of(y: np.ndarray, f: np.ndarray, f_u: np.ndarray) -> Problems:
    """The same items as `Problems`."""
    code = np.arange(len(y))
    return Problems.of(
        np.repeat(code, y.shape[1]), y.ravel(), f.ravel(), np.repeat(code, f_u.shape[1]),
        f_u.ravel(),
    )  # fmt: skip


def tuned_as_theirs(p: Problems) -> np.ndarray:
    """PT with the lambda of ppi_py, whose covariance has 1/n: clip((n - 1) / n lambda)."""
    own = per_problem(p)
    unclipped = p.N / (p.n + p.N) * own.gamma / own.tau2
    lam = np.clip((p.n - 1) / p.n * unclipped, 0, 1)
    return p.y_bar + lam * (p.z_tilde - p.z_bar)


def one_by_one(y: np.ndarray, f: np.ndarray, f_u: np.ndarray, lam: float | None = None):
    """Their point estimate of each problem (m,); lam None: tuned."""
    package = ppi_py()
    found = [
        package.ppi_mean_pointestimate(*arrays, lam=lam) for arrays in zip(y, f, f_u, strict=True)
    ]
    return np.array(found, float).ravel()


def agreement(seed: int, m: int = 200) -> tuple[float, float]:
    """Largest differences from ppi_py over m problems: with lambda = 1, and tuned."""
    arrays = items(m, seed)
    problems = problems_of(*arrays)
    plain = estimate(problems, "per_problem", ["ppi"])["ppi"].theta
    return (
        float(np.abs(plain - one_by_one(*arrays, lam=1.0)).max()),
        float(np.abs(tuned_as_theirs(problems) - one_by_one(*arrays)).max()),
    )
