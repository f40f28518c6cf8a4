"""Problems that several tests of certified sparse models use."""

import warnings

import numpy as np

from workbench.methods.sparse_glm import datasets
from workbench.methods.sparse_glm.problem import make_problem


def synthetic(loss, n, k=10, lambda2=1.0, M=2.0, p=None, seed=0):
    """Data of the paper's type, as wide as long unless p is given."""
    made = datasets.synthetic(n, p or n, k, loss, seed=seed)
    return _quietly(made.X, made.y, loss, k, lambda2, M)


def small(seed, loss=None):
    """A random problem that brute force can solve."""
    rng = np.random.default_rng(seed)
    loss = loss or ("linear", "logistic")[seed % 2]
    n, p = int(rng.integers(15, 41)), int(rng.integers(8, 14))
    X = rng.standard_normal((n, p))
    y = X[:, :2] @ [1.0, -1.0] + rng.standard_normal(n)
    y = np.where(y > np.median(y), 1.0, -1.0) if loss == "logistic" else y - y.mean()
    k, lambda2 = int(rng.integers(1, 5)), 10.0 ** rng.uniform(-2, 0.5)
    return make_problem(X, y, loss, k, lambda2, rng.uniform(0.3, 2.5))


def table(name, k, lambda2, M, **options):
    """A problem on one of the tables."""
    made = datasets.load(name, **options)
    return _quietly(made.X, made.y, made.loss, k, lambda2, M, made.name, made.names)


def _quietly(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_problem(*arguments)
