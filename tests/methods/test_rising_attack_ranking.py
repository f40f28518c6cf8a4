"""Ordered targets: the ranking matrix, the judge of an order, random targets, bad input."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.methods.rising_attack.ranking import (
    achieved,
    gaps,
    non_targets,
    random_targets,
    rank_matrix,
    row_classes,
    strongest_rivals,
)


def random_order(rng: np.random.Generator, n_classes: int, K: int) -> list[int]:
    return rng.permutation(n_classes)[:K].tolist()


@settings(max_examples=60)
@given(st.integers(2, 9), st.data())
def test_rows_sum_to_zero_and_hold_iff_the_sorted_first_k_are_the_targets(n_classes, data):
    K = data.draw(st.integers(1, n_classes))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    order = random_order(rng, n_classes, K)
    matrix = rank_matrix(order, n_classes)
    assert matrix.shape == (n_classes - 1, n_classes)
    assert (matrix.sum(1) == 0).all() and (np.abs(matrix).sum(1) == 2).all()
    logits = rng.normal(size=(50, n_classes))
    logits[0, order] = 10 + np.arange(K)[::-1]  # at least one row obeys the order
    sorted_first = np.argsort(-logits, axis=1)[:, :K]
    obeys = (sorted_first == order).all(1)
    assert obeys[0]
    np.testing.assert_array_equal((logits @ matrix.T > 0).all(1), obeys)
    targets = torch.tensor([order] * 50)
    np.testing.assert_array_equal(achieved(torch.from_numpy(logits), targets).numpy(), obeys)


def test_the_last_place_of_a_complete_order_adds_nothing():
    order = [3, 0, 4, 1, 2]
    np.testing.assert_array_equal(rank_matrix(order, 5), rank_matrix(order[:-1], 5))


def test_rivals_keep_only_their_rows():
    full, kept = rank_matrix([2, 0], 6), rank_matrix([2, 0], 6, rivals=[5, 3])
    np.testing.assert_array_equal(kept, full[[0, 4, 2]])


def test_a_tie_is_not_an_order():
    assert not achieved(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[0, 1]])).any()
    assert not achieved(torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0, 1]])).any()


def test_gaps_are_the_ranking_matrix_times_logits():
    logits = torch.randn(3, 7, generator=torch.Generator().manual_seed(0))
    targets = random_targets([0, 1, 2], 3, 7)
    rows = row_classes(targets, non_targets(targets, 7))
    for image in range(3):
        expected = rank_matrix(targets[image].tolist(), 7) @ logits[image].double().numpy()
        np.testing.assert_allclose(gaps(logits, *rows)[image], expected, atol=1e-6)


def test_strongest_rivals_are_the_highest_non_targets():
    logits = torch.tensor([[5.0, 4.0, 3.0, 2.0, 1.0]])
    assert strongest_rivals(logits, torch.tensor([[1, 3]]), 2).tolist() == [[0, 2]]
    assert strongest_rivals(logits, torch.tensor([[1, 3]]), 99).tolist() == [[0, 2, 4]]


def test_random_targets_are_distinct_uniform_without_the_label_and_nested():
    labels = torch.arange(10).repeat(300)
    targets = random_targets(labels, 4, 10, seed=3)
    assert targets.shape == (3000, 4) and not (targets == labels[:, None]).any()
    assert all(len(set(order)) == 4 for order in targets.tolist())
    counts = torch.bincount(targets[labels == 7, 0], minlength=10)
    assert counts[7] == 0
    # Each of 9 classes is drawn 33 times of 300 on average, standard deviation 5.4.
    assert ((counts[counts > 0] - 300 / 9).abs() < 5 * 5.4).all() and (counts > 0).sum() == 9
    assert torch.equal(random_targets(labels, 9, 10, seed=3)[:, :4], targets)
    assert not torch.equal(random_targets(labels, 4, 10, seed=4), targets)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_matrix([1, 1], 4), "names class 1 twice.*nearest unused is 0"),
        (lambda: rank_matrix([1, 7], 4), "= 7; allowed are classes 0..3, the nearest is 3"),
        (lambda: rank_matrix([0, -1], 4), "= -1; allowed are classes 0..3, the nearest is 0"),
        (lambda: rank_matrix([0, 1], 4, rivals=[1]), r"rivals holds 1; allowed .* \[2, 3\]"),
        (lambda: rank_matrix([0, 1, 2, 3, 4], 4), "K = 5 targets for 4 classes"),
        (lambda: random_targets([0], 4, 4), "K = 4; allowed is 1..3, the nearest is 3"),
        (lambda: random_targets([0], 0, 4), "K = 0; allowed is 1..3, the nearest is 1"),
        (lambda: random_targets([9], 2, 4), "label = 9; allowed is 0..3"),
    ],
)
def test_bad_orders_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
