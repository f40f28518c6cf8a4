"""Exercises: a check says in one line what is wrong and never raises."""

import pytest

from workbench.exercises import Exercise, check


def square_test(answer):
    assert answer(3) == 9, "the square of 3 is 9"


SQUARE = Exercise("Square", square_test, "Multiply x by itself.")


def not_implemented(x):
    raise NotImplementedError


def broken(x):
    return undefined_name  # noqa: F821


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (lambda x: x * x, "solved", "Square"),
        (not_implemented, "not attempted yet", "Hint: Multiply"),
        (None, "not attempted yet", "Hint"),
        (..., "not attempted yet", "Hint"),
        (lambda x: x + x, "not yet", "the square of 3 is 9"),
        (broken, "not yet", "NameError"),
    ],
)
def test_outcomes(answer, status, words):
    outcome = check(SQUARE, answer)
    assert outcome.status == status
    assert words in outcome.message
    assert status in outcome._repr_html_()
