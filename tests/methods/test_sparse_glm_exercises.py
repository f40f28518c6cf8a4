"""Checks of the exercises: right answers of another kind pass, likely mistakes do not."""

import numpy as np
import pytest

from workbench.exercises import SOLVED, WRONG, check
from workbench.methods.sparse_glm import datasets, exercises, make_problem, prox
from workbench.methods.sparse_glm.relaxation import dual_bound


def penalty(alpha, k, M):
    return prox.conjugate(alpha, k, M)


def right(X, y, k, lambda2, M, w):
    return -(w @ w / 4 + w @ y) - 2 * lambda2 * penalty(-X.T @ w / (2 * lambda2), k, M)


def never_negative(X, y, k, lambda2, M, w):
    return max(0.0, right(X, y, k, lambda2, M, w))


def by_the_library(X, y, k, lambda2, M, w):
    return dual_bound(make_problem(X, y, "linear", k, lambda2, M), w)


def huber_by_hand(X, y, k, lambda2, M, w):
    a = np.sort(np.abs(X.T @ w))[::-1][:k] / (2 * lambda2)
    heights = np.where(a <= M, a**2 / 2, M * a - M**2 / 2)
    return -0.25 * w @ w - w @ y - 2 * lambda2 * heights.sum()


@pytest.mark.parametrize("answer", [right, never_negative, by_the_library, huber_by_hand])
def test_a_right_dual_function_is_accepted(answer):
    assert check(exercises.dual, answer).status == SOLVED


def without_lambda2(X, y, k, lambda2, M, w):
    return right(X, y, k, 1.0, M, w)


def without_a_box(X, y, k, lambda2, M, w):
    return right(X, y, k, lambda2, 1e9, w)


def with_all_features(X, y, k, lambda2, M, w):
    return right(X, y, X.shape[1], lambda2, M, w)


def another_sign(X, y, k, lambda2, M, w):
    return -(w @ w / 4 - w @ y) - 2 * lambda2 * penalty(X.T @ w / (2 * lambda2), k, M)


def nothing(X, y, k, lambda2, M, w):
    return 0.0


@pytest.mark.parametrize(
    "answer", [without_lambda2, without_a_box, with_all_features, another_sign, nothing]
)
def test_a_wrong_dual_function_is_not_accepted(answer):
    assert check(exercises.dual, answer).status == WRONG


def test_the_conjugate_by_any_way_and_not_without_its_box():
    def heap(alpha, k, M):
        import heapq

        return sum(heapq.nlargest(k, (prox.huber(a, M) for a in alpha)))

    assert check(exercises.conjugate, heap).status == SOLVED
    assert check(exercises.conjugate, lambda alpha, k, M: prox.conjugate(alpha, k, 1e9)).status == (
        WRONG
    )


def test_greedy_is_fooled_by_other_data_and_not_by_easy_ones():
    def easy():
        X = np.random.default_rng(0).standard_normal((60, 5))
        return X, X[:, 1] + X[:, 3], 2

    def sum_of_two():
        rng = np.random.default_rng(0)
        X = rng.standard_normal((80, 4))
        y = X[:, 0] + X[:, 1]
        X[:, 2] = y + 0.6 * rng.standard_normal(80)
        return X, y, 2

    assert check(exercises.fool, easy).status == WRONG
    assert check(exercises.fool, sum_of_two).status == SOLVED
    k_too_large = check(exercises.fool, lambda: (*sum_of_two()[:2], 9))
    assert k_too_large.status == WRONG and "k = 9" in k_too_large.message


def test_the_lasso_path_of_what_explains_nothing_is_empty():
    from workbench.methods.sparse_glm import baselines

    X = datasets.standardize(np.random.default_rng(0).standard_normal((20, 4)))
    nothing_to_do = make_problem(X, np.zeros(20), "linear", 2)
    assert baselines.lasso_path(nothing_to_do).support == ()
