"""Fragments, moments, scores and stability on lattices made by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from workbench.methods.neural_cpm.measures import (
    centers,
    fragmented,
    inception_score,
    moment_rmse,
    moment_rmse_interval,
    moments,
    price_agreement,
    stability,
    touches_edge,
    variance_fraction,
)

KIND = np.repeat([0, 1, 2], [1, 6, 6])


def row_of_cells(order):
    """Twelve 2 x 2 cells in a row on a 10 x 54 lattice, identities in the given order."""
    cell = np.zeros((10, 54), int)
    for place, identity in enumerate(order):
        cell[4:6, 3 + 4 * place : 5 + 4 * place] = identity
    return cell


def test_a_row_of_cells_varies_along_its_axis_only():
    values = moments(row_of_cells(range(1, 13)), KIND)
    assert variance_fraction(values) == pytest.approx([1, 1])
    assert values[:, 0] == pytest.approx(np.var(4 * np.arange(6)))


def test_moments_do_not_change_under_a_quarter_turn_or_a_swap_of_identities():
    rng = np.random.default_rng(0)
    cell = np.zeros((40, 40), int)
    for identity in range(1, 13):
        row, column = rng.integers(1, 36, 2)
        cell[row : row + 3, column : column + 3] = identity
    expected = moments(cell, KIND)
    assert moments(np.rot90(cell).copy(), KIND) == pytest.approx(expected)
    swap = np.array([0, 2, 1, 3, 4, 6, 5, 12, 8, 9, 11, 10, 7])
    assert moments(swap[cell], KIND) == pytest.approx(expected)
    assert moments(np.stack([cell, cell]), KIND)[1] == pytest.approx(expected)


def test_moments_are_taken_in_the_frame_of_kind_two():
    """Kind 1 spreads along columns by 1 and along rows by 4; kind 2 lies along a row."""
    cell = np.zeros((30, 30), int)
    for identity, (row, column) in enumerate([(10, 14), (18, 14), (14, 12), (14, 16)], 1):
        cell[row, column] = identity
    values = moments(cell, [0, 1, 1, 2, 2])
    assert values == pytest.approx(np.array([[0, 16], [4, 0]]))


def test_moments_warn_at_the_edge_and_need_an_axis():
    cell = row_of_cells(range(1, 13))
    cell[0, 0] = 1
    assert touches_edge(cell)
    with pytest.warns(UserWarning, match="touch the edge"):
        moments(cell, KIND)
    with pytest.raises(ValueError, match="axis_kind = 2 has 0 cells"):
        moments(np.ones((5, 5), int), [0, 1])


def test_centers_are_means_of_sites_and_nan_for_dead_cells():
    cell = np.zeros((6, 6), int)
    cell[1, 1:4] = 1
    cell[4, 5] = 3
    found = centers(cell, 4)
    assert found[[0, 2]] == pytest.approx(np.array([[1, 2], [4, 5]]))
    assert np.isnan(found[1]).all()


def test_pieces_up_to_five_sites_apart_belong_together_at_order_four():
    cell = np.zeros((20, 20), int)
    cell[5, 5] = cell[5, 10] = 1
    assert fragmented(cell) == 0 and fragmented(cell, order=2) == 1
    cell[5, 10], cell[5, 11] = 0, 1
    assert fragmented(cell) == 1


def test_a_cell_across_the_edge_of_the_torus_is_in_one_piece():
    cell = np.zeros((20, 20), int)
    cell[:3, :3] = cell[-3:, -3:] = 1
    assert fragmented(cell, order=0) == 0
    assert fragmented(np.stack([cell, np.roll(cell, 7, 0)]), order=0).tolist() == [0, 0]


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), order=st.sampled_from([0, 2, 4]))
def test_fragments_are_the_components_of_the_dilated_masks(seed, order):
    """Away from the edges: SciPy's dilation and labelling, as the official code does it."""
    rng = np.random.default_rng(seed)
    cell = np.zeros((34, 34), int)
    cell[8:26, 8:26] = rng.choice(5, (18, 18), p=[0.9, 0.04, 0.03, 0.02, 0.01])
    expected = 0
    for identity in range(1, cell.max() + 1):
        mask = cell == identity
        if order:
            mask = ndimage.binary_dilation(mask, np.ones((3, 3)), iterations=order // 2)
        expected += ndimage.label(mask, np.ones((3, 3)))[1] > 1
    assert fragmented(cell, order) == expected


def test_inception_score_is_one_for_equal_rows_and_the_number_of_classes_for_sure_ones():
    assert inception_score(np.tile([0.2, 0.3, 0.5], (7, 1))) == pytest.approx(1)
    assert inception_score(np.eye(10)) == pytest.approx(10)
    probs = np.array([[0.9, 0.1], [0.4, 0.6]])
    divergence = (probs * np.log(probs / probs.mean(0))).sum(1).mean()
    assert inception_score(probs) == pytest.approx(np.exp(divergence))
    with pytest.raises(ValueError, match="sum to 1"):
        inception_score([[0.5, 0.6]])


def test_stability_asks_for_volumes_and_for_few_fragments():
    data = np.zeros((1, 60, 60), int)
    for identity in range(1, 5):
        data[0, 2:12, 14 * identity - 12 : 14 * identity - 2] = identity  # volume 100
    good, shrunken, broken = data[0].copy(), data[0].copy(), data[0].copy()
    shrunken[2:4, 2:12] = 0  # volume 80 < 100 - 15
    for identity in range(1, 5):
        broken[40, 14 * identity] = identity
    almost = broken.copy()
    almost[40, 56] = 0
    assert stability(np.stack([good, shrunken, broken, almost]), data) == 0.5
    assert stability([shrunken], data, margin=20) == 1


def test_moment_rmse_compares_means_over_samples():
    sample = np.array([[[1.0, 2], [3, 4]], [[3, 4], [5, 6]]])
    assert moment_rmse(sample, sample[:1]) == pytest.approx(1)


def test_the_interval_of_the_moments_narrows_with_more_samples_and_covers_the_error():
    rng = np.random.default_rng(0)
    reference = np.full((50, 2, 2), 10.0)
    widths = []
    for n in (8, 128):
        sample = 20 + rng.normal(size=(n, 2, 2))
        low, high = moment_rmse_interval(sample, reference)
        assert low < moment_rmse(sample, reference) < high
        widths.append(high - low)
    assert widths[0] > 2 * widths[1]


def test_agreement_of_prices_tells_a_wrong_size_from_noise():
    exact = np.random.default_rng(0).normal(size=(4, 50))
    double = price_agreement(exact, 2 * exact)
    assert (double["correlation"], double["slope"]) == pytest.approx((1, 2))
    assert double["rms"] == pytest.approx(np.sqrt((exact**2).mean()))
    missing = np.where(np.arange(50) < 10, np.nan, exact)
    same = price_agreement(missing, exact)
    assert same == pytest.approx({"correlation": 1, "slope": 1, "rms": 0, "acceptance_change": 0})
    # Where the known energy refuses a copy, the network's price changes nothing.
    refused = price_agreement(exact, 2 * exact, analytic=100.0)
    assert refused["acceptance_change"] < 1e-9 < double["acceptance_change"]
    one = price_agreement([0.0, 1.0], [0.0, 2.0])["acceptance_change"]
    assert one == pytest.approx((np.exp(-1) - np.exp(-2)) / 2)
