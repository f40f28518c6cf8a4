"""Exercises of RisingAttacK: checks know right from wrong; a digit attacked in few pixels."""

import numpy as np
import pytest
import torch
from scipy.optimize import nnls

from workbench.exercises import SOLVED, UNSOLVED, WRONG, check
from workbench.methods.rising_attack import exercises, trials
from workbench.methods.rising_attack.least_distance import boxed_least_distance, least_distance
from workbench.methods.rising_attack.ranking import achieved, rank_matrix


def sqp_step(A, J, logits, delta, margin):
    """As the notebook's solution: the non-negative least squares written out."""
    G = A @ J
    h = margin - A @ logits + G @ delta
    system = np.vstack([G.T, h])
    e = np.zeros(len(system))
    e[-1] = 1
    rho = system @ nnls(system, e)[0] - e
    return -rho[:-1] / rho[-1]


def step_of_the_change(A, J, logits, delta, margin):
    return least_distance(A @ J, margin - A @ logits)[0]  # forgets that delta is there already


def too_long(A, J, logits, delta, margin):
    G = A @ J
    return np.linalg.pinv(G) @ np.maximum(margin - A @ logits + G @ delta, 0) * 1.5


def shortest_l2(G, h, lo, hi):
    return boxed_least_distance(G, h, lo, hi).delta


def sparse_but_longer(G, h, lo, hi):
    """A perturbation in few pixels that the l2 optimum exceeds in l1, yet not of least l1."""
    weight = np.linspace(1, 1.5, G.shape[1])
    return exercises.least_l1(G / weight, h, lo * weight, hi * weight) / weight


@pytest.mark.parametrize(
    ("exercise", "solution", "mistake", "words"),
    [
        (exercises.ranking_rows, rank_matrix, lambda t, n: -rank_matrix(t, n), "all rows"),
        (exercises.sqp_step, sqp_step, step_of_the_change, "the total one is wanted"),
        (exercises.sqp_step, sqp_step, too_long, "hold|shorter"),
        (exercises.few_pixels, exercises.least_l1, shortest_l2, "the least is"),
        (exercises.few_pixels, exercises.least_l1, sparse_but_longer, "the least is"),
        (
            exercises.few_pixels, exercises.least_l1,
            lambda G, h, lo, hi: exercises.least_l1(G, h, 9 * lo, 9 * hi), "lo <= delta <= hi",
        ),
    ],
)  # fmt: skip
def test_exercises_know_right_from_wrong_and_from_unsolved(exercise, solution, mistake, words):
    assert check(exercise, solution).status == SOLVED, check(exercise, solution).message
    outcome = check(exercise, mistake)
    assert outcome.status == WRONG
    assert any(word in outcome.message for word in words.split("|")), outcome.message
    assert check(exercise, None).status == UNSOLVED


def test_the_linear_program_is_that_of_a_hand_example():
    # 2 a + b >= 1: the first pixel alone is the cheapest, until its bound stops it.
    G, h = np.array([[2.0, 1.0]]), np.array([1.0])
    assert exercises.least_l1(G, h, np.full(2, -1), np.ones(2)) == pytest.approx([0.5, 0])
    assert exercises.least_l1(G, h, np.full(2, -1), np.full(2, 0.4)) == pytest.approx([0.4, 0.2])
    with pytest.raises(ValueError, match="no perturbation in the box"):
        exercises.least_l1(G, h, np.full(2, -0.1), np.full(2, 0.1))


def test_a_digit_is_attacked_in_few_pixels():
    subject = trials.subject("digits")
    image, order = subject.images[0], [4, 5, 2]
    sparse = exercises.attack_with(exercises.least_l1, subject.model, image, order)
    dense = exercises.attack_with(shortest_l2, subject.model, image, order)
    for delta in (sparse, dense):
        attacked = image + torch.from_numpy(delta)
        assert attacked.min() >= 0 and attacked.max() <= 1
        with torch.no_grad():
            assert achieved(subject.model(attacked[None]), torch.tensor([order]))[0]
    changed = [int((np.abs(d) > 1e-6).sum()) for d in (sparse, dense)]
    assert changed[0] < 0.7 * changed[1], changed
    assert np.abs(sparse).sum() < np.abs(dense).sum()


def test_a_program_without_a_solution_gives_way_to_least_squares():
    subject = trials.subject("digits")
    image, order = subject.images[0], [4, 5, 2]

    def none(G, h, lo, hi):
        raise ValueError("no perturbation in the box obeys G delta >= h")

    delta = exercises.attack_with(none, subject.model, image, order)
    again = exercises.attack_with(shortest_l2, subject.model, image, order)
    assert np.array_equal(delta, again) and delta.any()
    still = exercises.attack_with(lambda G, *_: np.zeros(G.shape[1]), subject.model, image, order)
    assert not still.any()
