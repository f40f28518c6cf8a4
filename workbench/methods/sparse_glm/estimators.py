"""scikit-learn estimators: the best k features of your table, with a proof.

    SparseGLMRegressor(k=5).fit(X, y)     SparseGLMClassifier(k=5).fit(X, y)

Columns are standardized and the response of the regression is centered and scaled inside, so
lambda2 and M act on that scale; `coef_` and `intercept_` are those of the data as given.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .branch_and_bound import solve
from .datasets import center_and_scale
from .problem import make_problem

DEFAULT_K = 5


class _SparseGLM(BaseEstimator):
    """What both have in common.

    k: features to use at most (None: 5, or all if there are fewer). lambda2: ridge penalty. M: box
    of the coefficients on the standardized scale. gap: relative gap to prove. time_limit [s] and
    max_nodes: when reached, the fit keeps what it has and says so in `gap_`. width, child: beam
    search.

    Learned: coef_, intercept_, support_ (indices), objective_, lower_bound_, gap_, certified_,
    n_nodes_, box_active_ (features at the box: the optimum is then that of the boxed problem),
    certificate_, offset_ and scale_ of the columns.
    """

    _loss = "linear"

    def __init__(
        self, k: int | None = None, *, lambda2: float = 2.0, M: float = 2.0, gap: float = 1e-4,
        time_limit: float = 60.0, max_nodes: int = 100_000, width: int = 3, child: int = 6,
    ):  # fmt: skip
        self.k, self.lambda2, self.M, self.gap = k, lambda2, M, gap
        self.time_limit, self.max_nodes = time_limit, max_nodes
        self.width, self.child = width, child

    def _solve(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Coefficients of the columns as given; sets what is learned."""
        self.offset_, self.scale_ = center_and_scale(X)
        k = min(DEFAULT_K, X.shape[1]) if self.k is None else self.k
        problem = make_problem(
            (X - self.offset_) / self.scale_, y, self._loss, k, self.lambda2, self.M
        )
        found = solve(
            problem, gap=self.gap, time_limit=self.time_limit, max_nodes=self.max_nodes,
            width=self.width, child=self.child,
        )  # fmt: skip
        self.support_ = np.array(found.support, int)
        self.box_active_ = np.array(found.box_active, int)
        self.objective_, self.lower_bound_, self.gap_ = found.upper, found.lower, found.gap
        self.certified_, self.n_nodes_ = found.certified, found.nodes
        self.certificate_ = found.certificate()
        if not found.certified:
            warnings.warn(
                f"not certified ({found.ending}): the gap proven is {found.gap:.2%}, asked was "
                f"{self.gap:.2%}", UserWarning, stacklevel=3,
            )  # fmt: skip
        return found.beta / self.scale_


class SparseGLMRegressor(RegressorMixin, _SparseGLM):
    """Certified best-subset ridge regression in a box; see `_SparseGLM` for parameters."""

    def fit(self, X: Any, y: Any) -> SparseGLMRegressor:
        """Fit to X (n, p) and y (n,)."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        mean, scale = center_and_scale(y)
        y = (y - mean) / scale
        self.coef_ = scale * self._solve(X, y - y.mean())
        self.intercept_ = float(mean - self.offset_ @ self.coef_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """(n,) predictions of X (n, p)."""
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64) @ self.coef_ + self.intercept_


class SparseGLMClassifier(ClassifierMixin, _SparseGLM):
    """Certified best-subset logistic regression of two classes in a box."""

    _loss = "logistic"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> SparseGLMClassifier:
        """Fit to X (n, p) and y (n,) with two different labels."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            raise ValueError("y has one class only: the logistic loss needs two classes")
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{len(self.classes_)} classes."
            )
        coefficients = self._solve(X, np.where(y == self.classes_[1], 1.0, -1.0))
        self.coef_ = coefficients[None]
        self.intercept_ = np.array([-self.offset_ @ coefficients])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """(n,) log odds of the second class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return X @ self.coef_[0] + self.intercept_[0]

    def predict(self, X: Any) -> np.ndarray:
        """(n,) labels."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, 2) probabilities, columns in the order of `classes_`."""
        u = self.decision_function(X)
        second = np.exp(-np.logaddexp(0, -u))
        return np.column_stack([1 - second, second])
