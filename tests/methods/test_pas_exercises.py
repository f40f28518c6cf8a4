"""Checks of the exercises: other right answers pass, near misses do not."""

import numpy as np
import pytest

from workbench.exercises import SOLVED, WRONG, check
from workbench.methods.pas import exercises


def tuned(clip, ddof=1):
    """PT with another way to cut lambda, or another covariance."""

    def answer(y, f, f_u):
        n, N = len(y), len(f_u)
        tau2 = np.var([*f, *f_u], ddof=1)
        raw = N / (n + N) * np.cov(y, f, ddof=ddof)[0, 1] / tau2 if tau2 else 0.0
        return np.mean(y) + clip(raw) * (np.mean(f_u) - np.mean(f))

    return answer


@pytest.mark.parametrize(
    "answer, status, says",
    [
        (tuned(lambda raw: min(max(raw, 0), 1)), SOLVED, ""),
        (tuned(lambda raw: max(raw, 0)), WRONG, "lambda is clipped"),
        (tuned(lambda raw: min(raw, 1)), WRONG, "with n = 4, N = 6"),
        (tuned(lambda raw: np.clip(raw, 0, 1), ddof=0), WRONG, "divides by n - 1"),
        (tuned(lambda raw: 1.0), WRONG, "with n = 4, N = 6"),
    ],
)
def test_power_tuning_is_checked_at_both_ends(answer, status, says):
    found = check(exercises.power_tuned, answer)
    assert found.status == status and says in found.message


def test_cure_may_be_a_loop_over_problems_but_not_without_the_covariance():
    def loop(w, s, g, d):
        return [(2 * w - 1) * a + 2 * (1 - w) * b + ((1 - w) * c) ** 2
                for a, b, c in zip(s, g, d, strict=True)]  # fmt: skip

    assert check(exercises.cure_of, loop).status == SOLVED
    blind = check(exercises.cure_of, lambda w, s, g, d: (2 * w - 1) * s + (1 - w) ** 2 * d**2)
    assert blind.status == WRONG and "the covariance is missing" in blind.message


@pytest.mark.parametrize(
    "exercise, right, wrong",
    [
        (exercises.poor_quality, (0.35, 0.5), (0.1, 0.7, 2.0)),
        (exercises.enough_labels, (0.7, 0.9), (0.05, 0.4, 1.0)),
        (
            exercises.constant_bias,
            (lambda f: f - 2, lambda f: f + 50),
            (lambda f: f, lambda f: f + 0.5, lambda f: 3 * f),
        ),
    ],
)
def test_every_right_answer_passes(exercise, right, wrong):
    assert [check(exercise, answer).status for answer in right] == [SOLVED] * len(right)
    assert [check(exercise, answer).status for answer in wrong] == [WRONG] * len(wrong)
