"""PAS and its relatives as a scikit-learn estimator, for arrays and data frames."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from .estimators import NAMES, Options, estimate
from .moments import Moments
from .problems import Problems, group_array


class PAS(RegressorMixin, BaseEstimator):
    """Means of many small problems from few labels and many predictions.

    `PAS().fit(X, y, groups)`: a column of X holds the predictions of a model trained elsewhere, y
    the labels, nan where there is none, and groups the problem of each item. `theta_` are then the
    estimated means, `predict(X, groups)` gives each item that of its problem.

    estimator: "pas", or another name of `NAMES`. moments: "per_problem", "pooled_within",
    "pooled_total", or (sigma2, tau2, gamma) if they are known. prediction: number of the column of
    X with the predictions. omega: amount of shrinkage, from 0 (the mean prediction) to infinity
    (no shrinkage); None lets CURE choose. official_search: as the authors' program searches.

    Attributes: groups_ (m,) sorted, theta_ (m,), n_labelled_ and n_unlabelled_ (m,); omega_,
    weights_ (m,), lambda_ (m,), variance_ (m,) and floored_, None where the estimator has none;
    regime_, the moments used.

    Without a single missing label nothing is prediction-powered: theta_ are the means of the
    labels, with a warning. A single problem without unlabelled items among others is an error.
    """

    def __init__(
        self,
        estimator: str = "pas",
        moments: str | tuple[ArrayLike, ArrayLike, ArrayLike] | Moments = "pooled_within",
        prediction: int = 0,
        omega: float | None = None,
        official_search: bool = False,
    ):
        self.estimator = estimator
        self.moments = moments
        self.prediction = prediction
        self.omega = omega
        self.official_search = official_search

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # it predicts means of problems, not of items
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Estimate the means: X (n_items, n_columns), y (n_items,), groups (n_items,).

        groups: numbers or words; None means one problem. Raises ValueError for bad input.
        """
        if y is None:
            raise ValueError(
                "requires y to be passed, but the target y is None: labels, nan where unknown"
            )
        X = validate_data(self, X, dtype=np.float64)
        y = column_or_1d(y, dtype=np.float64, warn=True)
        check_consistent_length(X, y)
        if np.isinf(y).any():
            raise ValueError("Input y contains infinity: labels are finite, or nan where unknown")
        groups, f = self._groups(groups, X), self._predictions(X)
        known = ~np.isnan(y)
        if not known.any():
            raise ValueError("Input y contains NaN only: at least one label is needed")
        if known.all():
            return self._fit_labelled(y, groups)
        problems = Problems.of(groups[known], y[known], f[known], groups[~known], f[~known])
        moments = self.moments
        if not isinstance(moments, str | Moments):
            if not hasattr(moments, "__len__") or len(moments) != 3:
                raise ValueError(
                    f"moments = {moments!r}: it must be a regime such as 'pooled_within', or "
                    "(sigma2, tau2, gamma)"
                )
            moments = Moments.known(*moments)
        options = Options(omega=self.omega, official_search=self.official_search)
        found = estimate(problems, moments, [self.estimator], options)[self.estimator]
        self.groups_, self.theta_ = problems.names, found.theta
        self.n_labelled_, self.n_unlabelled_ = problems.n, problems.N
        self.omega_, self.weights_, self.lambda_ = found.omega, found.weight, found.lam
        self.variance_, self.floored_, self.regime_ = found.variance, found.floored, found.regime
        return self

    def predict(self, X: ArrayLike, groups: ArrayLike | None = None) -> np.ndarray:
        """The estimated mean of the problem of each item (n_items,).

        Raises ValueError for a group that was not there when fitted.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        groups = self._groups(groups, X)
        kinds = ["words" if a.dtype.kind in "US" else "numbers" for a in (groups, self.groups_)]
        if kinds[0] != kinds[1]:
            raise ValueError(f"groups are {kinds[0]}, but were {kinds[1]} when fitted")
        place = np.searchsorted(self.groups_, groups).clip(max=len(self.groups_) - 1)
        strange = groups[self.groups_[place] != groups]
        if len(strange):
            raise ValueError(
                f"group {str(strange[0])!r} was not there when fitted; there are "
                f"{len(self.groups_)}, from {str(self.groups_[0])!r} to {str(self.groups_[-1])!r}"
            )
        return self.theta_[place]

    def _groups(self, groups: ArrayLike | None, X: np.ndarray) -> np.ndarray:
        groups = np.zeros(len(X), int) if groups is None else np.asarray(groups)
        if groups.shape != (len(X),):
            raise ValueError(
                f"groups has shape {groups.shape}: it must be ({len(X)},), one entry a row of X"
            )
        groups = group_array(groups, "groups")
        return groups.astype(str) if groups.dtype.kind == "O" else groups

    def _predictions(self, X: np.ndarray) -> np.ndarray:
        if self.estimator not in NAMES:  # before the labels are looked at
            estimate(None, names=[self.estimator])
        columns = X.shape[1]
        number = isinstance(self.prediction, Integral)
        if not number or not -columns <= self.prediction < columns:
            raise ValueError(
                f"prediction = {self.prediction!r}: X has {columns} columns, so it must be a "
                f"number from 0 to {columns - 1}"
            )
        return X[:, self.prediction]

    def _fit_labelled(self, y: np.ndarray, groups: np.ndarray) -> Self:
        warnings.warn(
            "no label is missing, so there is nothing that predictions could add: the estimates "
            "are the means of the labels. Mark unlabelled items by y = nan.",
            stacklevel=3,
        )
        self.groups_, code = np.unique(groups, return_inverse=True)
        m = len(self.groups_)
        self.n_labelled_ = np.bincount(code, minlength=m)
        self.n_unlabelled_ = np.zeros(m, int)
        self.theta_ = np.bincount(code, y, m) / self.n_labelled_
        self.omega_ = self.weights_ = self.lambda_ = self.variance_ = None
        self.floored_, self.regime_ = 0, ""
        return self
