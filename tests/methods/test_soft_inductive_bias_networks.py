"""Networks in one tensor program: independent of each other, curvature, paths, pathways."""

import numpy as np
import pytest
import torch

from workbench.methods.soft_inductive_bias import digits, dimension, networks, representation
from workbench.methods.soft_inductive_bias import symmetry as pathways
from workbench.methods.soft_inductive_bias.experiments import stacked
from workbench.methods.soft_inductive_bias.networks import supervised
from workbench.steps import Cancelled, run

SIZES = (64, 12, 10)


@pytest.fixture(scope="module")
def data():
    return [digits.split(80, seed, 0.2, n_test=100) for seed in (0, 1, 2)]


def train(splits, seeds, widths=None, sizes=SIZES, **options):
    X, Y, _, _ = stacked(splits)
    start = networks.initial(sizes, seeds, widths)
    options = {"steps": 40, "lr": 1e-2} | options
    return run(networks.train_steps(start, supervised(X, Y, sizes), **options))


@pytest.fixture
def double():
    """Double precision: what rounding is, and what is not, can be told apart."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_a_batch_trains_each_network_as_if_alone(data, double):
    # Networks that stop at different steps, so that the others go on in a smaller batch.
    both = train(data, [0, 1, 2], steps=150, stop=0.35, cosine=True)
    assert len(set(both.taken)) > 1 and min(both.taken) < 150
    for i in range(3):
        alone = train(data[i : i + 1], [i], steps=150, stop=0.35, cosine=True)
        assert alone.taken[0] == both.taken[i]
        torch.testing.assert_close(both.w[i], alone.w[0], atol=1e-9, rtol=1e-9)
    other = train([data[0], data[2], data[1]], [0, 2, 1], steps=150, stop=0.35, cosine=True)
    torch.testing.assert_close(other.w[1], both.w[2], atol=1e-9, rtol=1e-9)


def test_it_is_the_arithmetic_of_torchs_adam(data):
    X, Y, _, _ = stacked(data[:1])
    w = networks.initial(SIZES, [0]).requires_grad_()
    peer = torch.optim.Adam([w], lr=1e-2)
    for step in range(20):
        peer.zero_grad()
        supervised(X, Y, SIZES)(w, torch.arange(1), step).sum().backward()
        peer.step()
    own = train(data[:1], [0], steps=20)
    torch.testing.assert_close(own.w, w.detach(), atol=1e-5, rtol=1e-4)


def test_padding_stays_zero_and_changes_nothing(data):
    padded = train(data[:1], [5], [4], sizes=(64, 12, 10))
    tight = train(data[:1], [5], [4], sizes=(64, 4, 10))
    for a, b in zip(networks.layers_of(padded.w[0], (64, 12, 10), 4),
                    networks.layers_of(tight.w[0], (64, 4, 10)), strict=True):  # fmt: skip
        np.testing.assert_allclose(a, b, atol=1e-4)
    (W1, b1), (W2, _) = networks.unflatten(padded.w, (64, 12, 10))
    assert not W1[..., 4:].any() and not b1[..., 4:].any() and not W2[:, 4:].any()


def test_those_at_their_goal_leave_and_keep_what_they_had(data):
    made = train(data, [0, 1, 2], steps=600, stop=0.5)
    assert (made.loss <= 0.5).all() and (made.taken < 600).all() and made.done
    X, Y, _, _ = stacked(data)
    now = supervised(X, Y, SIZES)(made.w, torch.arange(3), 0)
    np.testing.assert_allclose(now.numpy(), made.loss, rtol=1e-5)
    assert len(set(made.taken)) > 1


def test_the_same_seeds_give_the_same_weights_to_the_last_bit(data):
    assert torch.equal(train(data, [0, 1, 2]).w, train(data, [0, 1, 2]).w)


def test_training_streams_its_curves_and_stops_on_request(data, monkeypatch):
    monkeypatch.setattr(networks, "SHARE_S", 0.0)
    X, Y, _, _ = stacked(data)
    made = networks.train_steps(
        networks.initial(SIZES, [0, 1, 2]), supervised(X, Y, SIZES), steps=500, lr=1e-2
    )
    seen = []
    with pytest.raises(Cancelled) as stopped:
        run(made, seen.append, lambda: len(seen) >= 12)
    partial = stopped.value.data
    assert len(seen) == 12 and not partial.done and partial.taken.max() == 12
    assert partial.curves[-1][1].shape == (3,) and torch.isfinite(partial.w).all()


def gauss_newton(x, layers):
    """The Gauss-Newton matrix of the summed loss by automatic differentiation, (D, D)."""
    parts = [torch.tensor(a, dtype=torch.float64) for a in layers]
    point = torch.tensor(x, dtype=torch.float64)

    def logits(W1, b1, W2, b2):
        return torch.relu(point @ W1 + b1) @ W2 + b2

    jacobians = torch.func.jacrev(logits, argnums=(0, 1, 2, 3))(*parts)
    n, C = logits(*parts).shape
    J = torch.cat([j.reshape(n, C, -1) for j in jacobians], 2)
    p = torch.softmax(logits(*parts), 1)
    curvature = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    return torch.einsum("ncp,ncd,ndq->pq", J, curvature, J).numpy()


def test_eigenvalues_of_the_gram_matrix_are_those_of_gauss_newton():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 6))
    layers = [rng.standard_normal(s) for s in ((6, 3), (3,), (3, 4), (4,))]
    gram = np.linalg.eigvalsh(dimension.gauss_newton_gram(x, *layers))
    full = np.linalg.eigvalsh(gauss_newton(x, layers))
    k = min(len(gram), len(full))
    np.testing.assert_allclose(np.sort(gram)[-k:], np.sort(full)[-k:], atol=1e-6)
    own = dimension.network_dimension(x, layers, 0.5, 10)
    assert own == pytest.approx(dimension.effective_dimension(2 * full, 0.5), abs=1e-6)
    assert 0 <= own <= np.linalg.matrix_rank(gauss_newton(x, layers))


def test_lanczos_agrees_with_the_gram_matrix():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((8, 6))
    layers = [rng.standard_normal(s) for s in ((6, 9), (9,), (9, 4), (4,))]
    own = dimension.network_dimension(x, layers, 1.0, 8)
    assert dimension.lanczos_dimension(x, layers, 1.0, 8) == pytest.approx(own, rel=1e-3)


def test_the_curve_ends_where_its_ends_are():
    w1, middle, w2 = torch.randn(3, 7)
    assert torch.equal(representation.bezier(w1, middle, w2, 0.0), w1)
    assert torch.equal(representation.bezier(w1, middle, w2, 1.0), w2)
    half = representation.bezier(w1, middle, w2, 0.5)
    torch.testing.assert_close(half, (w1 + 2 * middle + w2) / 4)


def test_paths_between_solutions_and_the_plane_through_them():
    made = run(representation.connected_steps(8, [0, 1], n=120, ends=(150, 1e-2), steps=60))
    assert made.line.shape == made.curve.shape == (2, 41)
    np.testing.assert_allclose(made.line[:, [0, -1]], made.curve[:, [0, -1]], rtol=1e-5)
    plane = made.plane
    assert np.isfinite(plane.loss).all() and plane.loss.shape == (25, 25)
    np.testing.assert_allclose(plane.ends[0], [0, 0], atol=1e-5)
    np.testing.assert_allclose(plane.curve[[0, -1]], plane.ends, atol=1e-4)
    assert ((made.single >= 0) & (made.ensemble <= 1)).all()


def test_the_line_of_a_convex_loss_never_rises():
    made = run(representation.connected_steps(0, [0], n=100, ends=(80, 1e-2), steps=20,
                                              plane=False))  # fmt: skip
    assert made.line[0].max() <= max(made.line[0, 0], made.line[0, -1]) + 1e-6


def test_alignment_is_one_for_a_network_in_that_direction():
    u = np.zeros(20)
    u[3] = 1
    w = torch.zeros(1, networks.count((20, 64, 1)))
    (W, _), (a, _) = networks.unflatten(w, (20, 64, 1))
    W[0, 3], a[0] = torch.randn(64), torch.randn(64, 1)
    assert representation.alignment(w, u[None])[0] == pytest.approx(1)
    W[0, 4] = W[0, 3]
    assert representation.alignment(w, u[None])[0] == pytest.approx(0.5)


def test_single_index_data_and_its_learners():
    x, y, _, _, u = representation.single_index(50, 0)
    z = x @ u
    np.testing.assert_allclose(y, np.sin(2 * z) + z / 2)
    assert np.linalg.norm(u) == pytest.approx(1)
    made = run(representation.learned_steps(60, [0, 1], steps=30))
    assert made.net.shape == made.kernel.shape == made.alignment.shape == (2,)
    assert (made.kernel < 1.2).all() and ((made.alignment > 0) & (made.alignment < 1)).all()


def test_one_setting_reads_three_data_sets():
    made = run(representation.universal_steps(steps=60))
    assert made.names == ("digits", "breast cancer", "diabetes")
    assert (made.process > made.constant).all() and (made.net[:2] > 0.8).all()


def test_an_invariant_path_does_not_see_rotations():
    maps = torch.from_numpy(digits.permutations("C4"))
    w = pathways._start(0)
    x = networks.tensor(digits.load()[0][:5])[None]
    hard, none = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    for g in maps:
        torch.testing.assert_close(
            pathways._outputs(w, x[:, :, g], maps, hard), pathways._outputs(w, x, maps, hard),
            atol=1e-5, rtol=1e-4,
        )  # fmt: skip
    turned = pathways._outputs(w, x[:, :, maps[1]], maps, none)
    assert not torch.allclose(turned, pathways._outputs(w, x, maps, none), atol=1e-3)


def test_pathways_choose_their_decay_on_a_validation_split():
    made = run(pathways.pathway_steps([0], n_train=60, steps=40, tasks=("rotated",)))
    assert set(made.accuracy["rotated"]) == {"hard", "none", "soft"}
    assert made.decay["rotated"][0] in pathways.RESIDUAL_DECAYS
    assert made.shortfall("rotated").shape == (1,)
