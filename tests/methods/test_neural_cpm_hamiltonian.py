"""The networks and the closure: symmetries, gradients, the dense form, statistics, bad input."""

import numpy as np
import pytest
import torch

from workbench.methods.neural_cpm.baselines import (
    ConvolutionalHamiltonian,
    graph_hamiltonian,
    one_layer_hamiltonian,
)
from workbench.methods.neural_cpm.closure import CellSorting, Hybrid
from workbench.methods.neural_cpm.energy import contact_counts, energy_terms
from workbench.methods.neural_cpm.fast import FastHamiltonian
from workbench.methods.neural_cpm.hamiltonian import (
    PAPER_ARCHITECTURES,
    NeuralEnergy,
    NeuralHamiltonian,
    identity_masks,
)

KIND = np.array([0, 1, 1, 1, 2, 2, 2])
N_LABELS = len(KIND)
J = np.array([[0, 4, 5], [4, 2, 6], [5, 6, 3.0]])


def random_frames(n: int, size: int | tuple[int, int] = 24, seed: int = 0) -> np.ndarray:
    rows, columns = (size, size) if isinstance(size, int) else size
    rng = np.random.default_rng(seed)
    return rng.integers(0, N_LABELS, (n, rows, columns)).astype(np.int32)


def random_copies(frames: np.ndarray, n: int, seed: int = 1):
    rng = np.random.default_rng(seed)
    target = torch.from_numpy(rng.integers(0, frames[0].size, (len(frames), n)))
    label = torch.from_numpy(rng.integers(0, N_LABELS, (len(frames), n)))
    return torch.from_numpy(frames), torch.from_numpy(KIND), target, label


def small_model(**options) -> NeuralHamiltonian:
    return NeuralHamiltonian(**{"size": 24, "stride": 4, **options})


ARCHITECTURES = [
    {},
    {"interactions": False},
    {"padding": "zeros"},
    {"padding": "zeros", "size": 26, "interactions": False},
    {"widths": (8, 12), "edge_widths": (4, 6), "pools": (2, 1)},
    {"size": (24, 36), "stride": (4, 6)},
    {"size": 25, "stride": 2, "padding": "zeros", "pools": (2, 1)},
    {"stride": 2, "interactions": False, "tail_widths": (16,), "tail_pools": (2,)},
]


@pytest.mark.parametrize("options", [{}, {"interactions": False}, {"pools": (2, 1)}])
def test_relabelling_cells_with_their_kinds_changes_nothing(options):
    model, frames = small_model(**options), random_frames(3)
    name = np.concatenate([[0], 1 + np.random.default_rng(3).permutation(N_LABELS - 1)])
    kind = np.empty_like(KIND)
    kind[name] = KIND
    before, after = model(frames, KIND), model(name[frames].astype(np.int32), kind)
    torch.testing.assert_close(after, before, rtol=1e-4, atol=0)


def test_exchanging_the_kinds_of_two_cells_changes_the_energy():
    model, frames = small_model(), random_frames(3)
    kind = KIND[[0, 4, 2, 3, 1, 5, 6]]
    assert not torch.allclose(model(frames, kind), model(frames, KIND), rtol=1e-4)


@pytest.mark.parametrize(("pools", "total_stride"), [((1, 1), 4), ((2, 1), 8)])
def test_shifts_by_the_total_stride_change_nothing_and_shorter_ones_do(pools, total_stride):
    model, frames = small_model(pools=pools), random_frames(3)
    before = model(frames, KIND)
    for shift in ((total_stride, 0), (0, -total_stride), (2 * total_stride, total_stride)):
        after = model(np.roll(frames, shift, (1, 2)), KIND)
        torch.testing.assert_close(after, before, rtol=1e-4, atol=0)
    assert not torch.allclose(model(np.roll(frames, 1, 1), KIND), before, rtol=1e-4)


def test_zero_padding_breaks_translation_symmetry():
    model, frames = small_model(padding="zeros"), random_frames(3)
    shifted = model(np.roll(frames, 4, 1), KIND)
    assert not torch.allclose(shifted, model(frames, KIND), rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"interactions": False}])
def test_the_gradient_agrees_with_finite_differences_on_relaxed_masks(options):
    model = small_model(**options).double()
    own = identity_masks(random_frames(1), N_LABELS).double()
    own = (own + 0.1 * torch.rand(own.shape, generator=torch.Generator().manual_seed(0))) / 1.7
    own.requires_grad_()
    kind = torch.from_numpy(KIND)
    (slope,) = torch.autograd.grad(model.energy(own, kind).sum(), own)
    rng, h = np.random.default_rng(2), 1e-5
    with torch.no_grad():
        for _ in range(10):
            at = (0, *(rng.integers(0, side) for side in own.shape[1:]))
            up, down = own.clone(), own.clone()
            up[at] += h
            down[at] -= h
            difference = (model.energy(up, kind) - model.energy(down, kind)).item() / (2 * h)
            assert difference == pytest.approx(slope[at].item(), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("options", ARCHITECTURES)
def test_the_fast_form_is_the_network_on_masks(options):
    model = small_model(**options)
    frames, kind, target, label = random_copies(random_frames(3, model.size), 20)
    fast = FastHamiltonian(model)
    reference = NeuralEnergy.forward(model, frames, kind)
    close = {"rtol": 2e-5, "atol": 2e-5}
    torch.testing.assert_close(fast(frames, kind), reference, **close)
    torch.testing.assert_close(fast.gradient(frames, kind), model.gradient(frames, kind), **close)
    for name in ("first_order", "exact"):
        expected = getattr(NeuralEnergy, name)(model, frames, kind, target, label)
        torch.testing.assert_close(
            getattr(fast, name)(frames, kind, target, label), expected, rtol=1e-3, atol=1e-4
        )


def test_the_fast_form_gives_the_same_gradient_of_every_weight():
    model, frames = small_model(), random_frames(3)
    slopes = []
    for energy in (model(frames, KIND), NeuralEnergy.forward(model, frames, KIND)):
        slopes.append(torch.autograd.grad(energy.sum(), list(model.parameters())))
    for fast, reference in zip(*slopes, strict=True):
        torch.testing.assert_close(fast, reference, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"interactions": False}])
def test_first_order_prices_follow_the_exact_ones(options):
    model = small_model(**options)
    copies = random_copies(random_frames(4), 50)
    exact, first = (getattr(model.prepared(), name)(*copies) for name in ("exact", "first_order"))
    assert np.corrcoef(exact.flatten(), first.flatten())[0, 1] > 0.99
    slope = (exact * first).sum() / (first * first).sum()
    assert 0.9 < slope < 1.1


@pytest.mark.parametrize("interactions", [True, False])
def test_cells_see_the_kinds_of_others_only_with_interactions(interactions):
    model = small_model(interactions=interactions)
    own = identity_masks(random_frames(1), N_LABELS).requires_grad_()
    seen = model.inputs(own, torch.from_numpy(KIND))[0, 2]
    (slope,) = torch.autograd.grad(seen.sum(), own)
    others = slope[0, [0, 1, 3, 4, 5, 6]].abs().sum()
    assert slope[0, 2].abs().sum() > 0
    assert (others > 0) == interactions


def test_the_default_architecture_has_the_papers_parts():
    assert sum(p.numel() for p in NeuralHamiltonian(36).parameters()) == 9705


def test_the_plain_cnn_is_not_permutation_invariant():
    model = ConvolutionalHamiltonian(24, 6, widths=(8, 8), pools=(1, 2))
    frames = random_frames(3)
    name = np.array([0, 2, 1, 3, 4, 5, 6], np.int32)  # cells 1 and 2 have the same kind
    assert not torch.allclose(model(name[frames], KIND), model(frames, KIND), rtol=1e-4)


@pytest.mark.parametrize("build", [one_layer_hamiltonian, graph_hamiltonian])
def test_variants_of_the_architecture_are_permutation_invariant(build):
    model, frames = build(36), random_frames(2, 36)
    name = np.array([0, 2, 3, 1, 6, 5, 4], np.int32)
    torch.testing.assert_close(model(name[frames], KIND), model(frames, KIND), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("experiment", PAPER_ARCHITECTURES)
def test_official_architectures_take_official_lattices(experiment):
    model = NeuralHamiltonian(**PAPER_ARCHITECTURES[experiment])
    frames = random_frames(1, model.size)
    with torch.no_grad():
        assert torch.isfinite(model(frames, KIND)).all()


def test_cell_sorting_is_the_energy_of_the_engine():
    frames, lam, V_target = random_frames(4), [0, 0.7, 0.3], [0, 80.0, 90.0]
    model = CellSorting.from_values(J, lam, V_target)
    expected = sum(energy_terms(frames, KIND, J, lam, V_target).values())
    np.testing.assert_allclose(model(frames, KIND).detach(), expected, rtol=1e-5)


def test_the_learned_field_is_the_external_field_of_the_engine():
    frames = random_frames(4)
    field = np.random.default_rng(0).normal(size=(24, 24))
    coupling = np.array([0.0, 2.0, -1.0])
    model = CellSorting.from_values(J, 0.05, 97.0, field=field, coupling=coupling)
    fields = coupling[:, None, None] * field
    expected = energy_terms(frames, KIND, J, 0.05, 97.0, fields=fields)
    np.testing.assert_allclose(model(frames, KIND).detach(), sum(expected.values()), rtol=1e-4)


def test_the_external_field_starts_at_zero_with_equal_couplings():
    frames, model = random_frames(2), CellSorting(field_size=24)
    torch.testing.assert_close(model(frames, KIND), CellSorting()(frames, KIND))
    model(frames, KIND).sum().backward()
    assert model.field.grad.abs().sum() > 0


def test_cell_sorting_starts_where_the_paper_starts():
    model = CellSorting(seed=5)
    contact = model.J.detach()
    assert contact[0, 0] == 0
    assert torch.equal(contact, contact.T)
    others = contact[~torch.eye(3, dtype=bool) | (torch.arange(3) > 0)]
    assert 1 <= others.min() and others.max() <= 3
    assert model.lam.detach().numpy() == pytest.approx(0.05)
    assert model.V_target.item() == 97


def test_the_loss_gradient_of_the_analytic_part_is_a_difference_of_mean_statistics():
    data, chains = random_frames(5, seed=1), random_frames(5, seed=2)
    model = CellSorting.from_values(J, 0.5, 90.0)
    loss = model(data, KIND).mean() - model(chains, KIND).mean()
    loss.backward()
    counts = [contact_counts(frames, KIND).mean(0) for frames in (data, chains)]
    expected = 0.25 * (counts[0] - counts[1])
    expected = (expected + expected.T) / 2
    expected[0, 0] = 0.0
    np.testing.assert_allclose(model.J0.grad, expected, rtol=1e-4, atol=1e-4)
    sizes = [
        np.stack([(frames == c).sum((1, 2)) for c in range(1, 7)], 1) for frames in (data, chains)
    ]
    squares = [((size - 90.0) ** 2).sum(1).mean() for size in sizes]
    slope = 1 - np.exp(-0.5)  # d softplus(l) / dl where softplus(l) = 0.5
    assert model.raw_lam.grad.item() == pytest.approx((squares[0] - squares[1]) * slope, rel=1e-3)


def test_the_closure_is_the_weighted_sum_of_its_parts():
    frames, basis, network = random_frames(3), CellSorting.from_values(J, 0.5, 90.0), small_model()
    hybrid = Hybrid(basis, network, w_b=0.25, w_n=2.0)
    expected = 0.25 * basis(frames, KIND) + 2 * network(frames, KIND)
    torch.testing.assert_close(hybrid(frames, KIND), expected)


def test_a_frozen_basis_trains_nothing_but_its_offset():
    hybrid = Hybrid(CellSorting(), small_model(), train_basis=False, train_weights=False)
    trained = {name for name, p in hybrid.named_parameters() if p.requires_grad}
    assert {name for name in trained if not name.startswith("neural.")} == {"basis.offset"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NeuralHamiltonian(35), "does not divide size"),
        (lambda: NeuralHamiltonian(36, pools=(4, 1)), "does not divide size"),
        (lambda: NeuralHamiltonian(4, padding="zeros"), "leave nothing of size"),
        (lambda: NeuralHamiltonian(36, padding="reflect"), "allowed are circular, zeros"),
        (lambda: NeuralHamiltonian(36, widths=(8, 8, 8), pools=(1, 1)), "one entry for each layer"),
        (lambda: CellSorting.from_values([[0, 1, 2], [1, 3, 4], [2, 5, 6]], 1, 9), r"J\[1, 2\]"),
        (lambda: CellSorting(lam=-1.0), "lam"),
        (lambda: CellSorting(V_target=0.0), "V_target"),
        (lambda: Hybrid(CellSorting(n_kinds=3), NeuralHamiltonian(36)), "kinds"),
        (lambda: NeuralHamiltonian(36)(random_frames(1), KIND), "this model takes"),
        (lambda: small_model()(random_frames(1), [0, 1, 3, 1, 1, 1, 1]), r"kind\[2\] = 3"),
        (lambda: small_model()(random_frames(1), [1, 1, 1, 1, 1, 1, 1]), r"kind\[0\]"),
        (lambda: ConvolutionalHamiltonian(24, 3)(random_frames(1), KIND), "built for 3 cells"),
    ],
)
def test_bad_input_is_named_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
