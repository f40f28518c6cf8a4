"""The figure of merit: hand values, pairing, and attacks that fail everywhere."""

import math

import numpy as np
import pytest
import torch

from workbench.methods.rising_attack.merit import figure_of_merit, merit_text
from workbench.methods.rising_attack.records import AttackResult


def result(success, l1, l2, linf) -> AttackResult:
    success = np.array(success, bool)
    norms = [np.where(success, np.broadcast_to(n, len(success)), 0.0) for n in (l1, l2, linf)]
    return AttackResult(torch.zeros(len(success), 1, 1, 1), success, *norms, {}, 0.0)


A = result([True] * 8, 27, 1.43, 0.223)
B = result([True] * 7 + [False], 38.5, 1.762, 0.168)


def test_an_attack_against_itself_has_merit_one():
    assert figure_of_merit(A, A) == pytest.approx(1)
    assert figure_of_merit(B, B, paired=True) == pytest.approx(1)


def test_the_hand_value():
    # (1 / .875) * (38.5/27 + 1.762/1.43 + .168/.223) / 3 = 1.2996
    assert figure_of_merit(A, B) == pytest.approx(1.2996, abs=1e-4)
    assert f"{figure_of_merit(A, B):.2f}" == merit_text(figure_of_merit(A, B)) == "1.30"


def test_pairing_compares_the_same_images():
    hard = result([True, True], [1.0, 9.0], [1.0, 9.0], [1.0, 9.0])
    easy = result([True, False], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0])
    assert figure_of_merit(hard, easy) == pytest.approx(2 * 2 / 5)
    assert figure_of_merit(hard, easy, paired=True) == pytest.approx(2 * 2 / 1)


def test_failures_everywhere_are_reported_as_such():
    none = result([False] * 8, 0, 0, 0)
    assert figure_of_merit(A, none) == math.inf and merit_text(math.inf) == "B fails"
    assert figure_of_merit(none, A) == 0 and merit_text(0.0) == "A fails"
    assert math.isnan(figure_of_merit(none, none))


def test_without_a_common_image_the_paired_merit_is_unknown():
    first, second = result([True, False], 1, 1, 1), result([False, True], 1, 1, 1)
    value = figure_of_merit(first, second, paired=True)
    assert math.isnan(value) and merit_text(value) == "no common success"
    assert figure_of_merit(first, second) == pytest.approx(1)


def test_images_that_needed_nothing_count_as_equal():
    nothing = result([True, True], 0, 0, 0)
    assert figure_of_merit(nothing, nothing) == 1
    assert figure_of_merit(nothing, result([True, True], 1, 1, 1)) == math.inf


def test_different_images_cannot_be_compared():
    with pytest.raises(ValueError, match="a has 8 images but b 2"):
        figure_of_merit(A, result([True, True], 1, 1, 1))
