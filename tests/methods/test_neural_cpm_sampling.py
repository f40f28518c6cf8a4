"""The parallel kernel: prices, acceptance, hard rules, reproducibility, and what it is not."""

import numpy as np
import pytest
import torch

from workbench.methods.neural_cpm import _parallel, sampling
from workbench.methods.neural_cpm.closure import OFFSET_SCALE, CellSorting, Hybrid
from workbench.methods.neural_cpm.energy import border, volumes
from workbench.methods.neural_cpm.ensemble import Ensemble, permute_identities
from workbench.methods.neural_cpm.generators import simulate
from workbench.methods.neural_cpm.hamiltonian import NeuralHamiltonian
from workbench.methods.neural_cpm.measures import price_agreement
from workbench.methods.neural_cpm.weights import load_weights

KIND = np.array([0, 1, 1, 1, 2, 2, 2])
N_LABELS = len(KIND)
J = np.array([[0, 4, 5], [4, 2, 6], [5, 6, 3.0]])


def aggregates(n: int, size: int = 24, seed: int = 0) -> np.ndarray:
    """Six square cells of 5 x 5 sites, close to each other, identities permuted."""
    rng = np.random.default_rng(seed)
    frames = np.zeros((n, size, size), np.int32)
    for frame in frames:
        for cell, place in zip(rng.permutation(6) + 1, np.ndindex(2, 3), strict=True):
            row, column = 5 + 5 * place[0], 4 + 5 * place[1]
            frame[row : row + 5, column : column + 5] = cell
    return frames


def energy_models() -> dict:
    basis = CellSorting.from_values(J, 0.5, 25.0)
    network = NeuralHamiltonian(24, stride=4)
    field = CellSorting(V_target=25.0, field_size=24)
    with torch.no_grad():
        field.field.copy_(torch.from_numpy(np.random.default_rng(0).normal(size=(24, 24))))
    return {
        "basis": basis,
        "field": field,
        "network": network,
        "closure": Hybrid(basis, network, 0.25, 2.0),
        "closure without interactions": Hybrid(
            basis, NeuralHamiltonian(24, stride=4, interactions=False)
        ),
        "plain network path": Hybrid(basis, NeuralHamiltonian(24, stride=2, widths=(12, 12))),
    }


@pytest.mark.parametrize("name", energy_models())
def test_exact_prices_are_differences_of_the_energy(name):
    model, frames = energy_models()[name], aggregates(3)
    sampler = sampling.ParallelSampler(model, frames, KIND, 15, "exact", seed=1)
    target, label, delta = sampler.proposals()
    delta = delta + sampler.neural_delta(target, label, "exact")
    with torch.no_grad():
        before = model(frames, KIND)
        for chain, copy in np.argwhere(label.numpy() >= 0):
            changed = frames[chain].copy()
            changed.flat[target[chain, copy]] = label[chain, copy]
            difference = model(changed[None], KIND)[0] - before[chain]
            assert delta[chain, copy].item() == pytest.approx(difference.item(), abs=2e-3)


def test_sources_are_different_border_sites_and_targets_unlike_neighbors():
    frames = aggregates(4)
    sampler = sampling.ParallelSampler(CellSorting(), frames, KIND, 30, seed=2)
    target, label, _ = sampler.proposals()
    at_border = border(frames)
    for chain in range(4):
        padded = np.pad(frames[chain], 1, mode="wrap")
        for site, new in zip(target[chain], label[chain], strict=True):
            row, column = divmod(int(site), 24)
            assert at_border[chain, row, column]
            assert frames[chain, row, column] != new
            assert (padded[row : row + 3, column : column + 3] == int(new)).any()
        sources = sampler.state.index[chain, 0, :30]
        assert len(set(sources.tolist())) == 30


def test_proposals_are_uniform_over_border_sites():
    sampler = sampling.ParallelSampler(CellSorting(), aggregates(1), KIND, 10, seed=3)
    n_border, rounds = int(border(aggregates(1)).sum()), 4000
    counts = np.zeros(26 * 26)
    for _ in range(rounds):
        sampler.proposals()
        np.add.at(counts, sampler.state.index[0, 0, :10], 1)
    counts, expected = counts[counts > 0], 10 * rounds / n_border
    assert len(counts) == n_border
    # Without replacement counts vary less than binomially: a bound on their chi-square statistic.
    assert ((counts - expected) ** 2).sum() / expected < n_border + 5 * np.sqrt(2 * n_border)


@pytest.mark.parametrize("delta", sampling.DELTAS)
def test_volumes_borders_and_halo_stay_in_step_with_the_labels(delta):
    model = energy_models()["closure"]
    sampler = sampling.ParallelSampler(model, aggregates(3), KIND, 25, delta, seed=4)
    for _ in range(20):
        sampler.step()
    frames = sampler.frames
    np.testing.assert_array_equal(sampler.state.volume, volumes(frames, N_LABELS))
    np.testing.assert_array_equal(sampler.state.listed, border(frames).sum((1, 2)))
    halo = np.pad(frames, ((0, 0), (1, 1), (1, 1)), mode="wrap")
    np.testing.assert_array_equal(sampler.state.label.reshape(halo.shape), halo)


def test_the_same_seed_gives_the_same_samples_on_any_number_of_threads():
    model, frames = energy_models()["closure"], aggregates(20)
    first, again = (
        sampling.sample(model, frames, KIND, 30, 20, seed=5, workers=workers) for workers in (1, 3)
    )
    other = sampling.sample(model, frames, KIND, 30, 20, seed=6)
    np.testing.assert_array_equal(first.frames, again.frames)
    assert not np.array_equal(first.frames, other.frames)


def test_a_constant_offset_changes_no_sample():
    model, frames = energy_models()["closure"], aggregates(3)
    before = sampling.sample(model, frames, KIND, 20, 20, seed=7).frames
    with torch.no_grad():
        model.basis.offset += 123.0 / OFFSET_SCALE
        model.neural.head[-1].bias += 5.0
    np.testing.assert_array_equal(
        sampling.sample(model, frames, KIND, 20, 20, seed=7).frames, before
    )


def test_one_proposal_a_step_is_the_serial_border_source_rule():
    basis, frames = CellSorting.from_values(J, 0.3, 25.0), np.repeat(aggregates(1), 400, 0)
    parallel = sampling.sample(basis, frames, KIND, steps=576, n_parallel=1, seed=8)
    serial = Ensemble(
        frames, KIND, J, 0.3, 25.0, proposal="border_source", seed=9
    )  # one MCS of this rule is 24 x 24 attempts
    serial.step(1)
    energies = [basis(f, KIND).detach().numpy() for f in (parallel.frames, serial.frames)]
    error = np.sqrt(sum(e.var() / len(e) for e in energies))
    assert abs(energies[0].mean() - energies[1].mean()) < 4 * error


def test_acceptance_follows_metropolis():
    chains, rounds, cost = 500, 16, 1.2
    frames = np.repeat(aggregates(1), chains, 0)
    sampler = sampling.ParallelSampler(CellSorting(), frames, KIND, 1, seed=10)
    site, accepted = 5 * 24 + 3, 0  # a medium site left of a cell
    label = np.full((chains, 1), frames[0].ravel()[site + 1], np.int64)
    target, delta = np.full((chains, 1), site), np.full((chains, 1), cost)
    for _ in range(rounds):
        sampler.refresh(frames)
        _parallel.accept(sampler.state, sampler.compiled, 0, chains, target, label, delta)
        accepted += int(sampler.state.counts[:, 0].sum())
    p, n = np.exp(-cost), chains * rounds
    assert abs(accepted / n - p) < 4 * np.sqrt(p * (1 - p) / n)


def test_the_last_accepted_copy_onto_a_target_wins():
    sampler = sampling.ParallelSampler(CellSorting(), aggregates(1), KIND, 3, seed=0)
    target, label = np.full((1, 3), 0), np.array([[1, 2, 3]])
    _parallel.accept(sampler.state, sampler.compiled, 0, 1, target, label, np.full((1, 3), -9.0))
    assert sampler.frames[0, 0, 0] == 3


def test_the_last_site_of_a_label_is_never_overwritten():
    frames = aggregates(1)
    frames[frames == 1] = 0
    frames[0, 20, 20:22] = 1  # two sites, both attacked in one step
    sampler = sampling.ParallelSampler(CellSorting(), frames, KIND, 2, seed=0)
    target = np.array([[20 * 24 + 20, 20 * 24 + 21]])
    _parallel.accept(
        sampler.state, sampler.compiled, 0, 1, target, np.zeros((1, 2), int), np.full((1, 2), -9.0)
    )
    assert (sampler.frames == 1).sum() == 1
    dissolving = CellSorting.from_values(10 * J, 0.0, 25.0)  # without volume every cell shrinks
    with pytest.warns(UserWarning, match="border sites"):
        end = sampling.sample(dissolving, aggregates(2), KIND, 600, 40, seed=1).frames
    assert (volumes(end, N_LABELS) >= 1).all()
    assert volumes(end, N_LABELS)[:, 1:].sum() < 30


def test_more_proposals_than_border_sites_are_clipped_with_a_warning():
    with pytest.warns(UserWarning, match="n_parallel = 5000"):
        samples = sampling.sample(CellSorting(), aggregates(2), KIND, 3, 5000)
    assert samples.steps == 3


def test_chains_without_a_border_are_finished():
    frames = np.ones((2, 6, 6), np.int32)
    samples = sampling.sample(CellSorting(n_kinds=1, V_target=36.0), frames, [0, 1], 50)
    assert samples.steps == 0
    np.testing.assert_array_equal(samples.frames, frames)


def test_steps_report_progress_and_record_frames():
    steps = sampling.sample_steps(
        energy_models()["basis"], aggregates(2), KIND, 20, 10, record_every=5
    )
    reports = []
    while True:
        try:
            reports.append(next(steps))
        except StopIteration as stop:
            samples = stop.value
            break
    assert [step.done for step in reports] == [(i + 1) / 20 for i in range(20)]
    assert samples.recorded.tolist() == [0, 5, 10, 15, 20]
    np.testing.assert_array_equal(samples.record[-1], samples.frames)
    np.testing.assert_array_equal(samples.record[0], aggregates(2))
    assert 0 < samples.acceptance < 1


def test_first_order_sampling_accepts_nearly_as_often_as_exact():
    model = energy_models()["closure"]
    acceptances = [
        sampling.sample(model, aggregates(8), KIND, 60, 20, delta).acceptance
        for delta in sampling.DELTAS
    ]
    assert acceptances[0] == pytest.approx(acceptances[1], abs=0.03)


def test_first_order_prices_of_the_stored_network_are_as_large_as_the_exact_ones():
    """Figures of a trained network at the teaching scale: correlation .999, slope 1.00 to 1.02."""
    pictures = simulate("bipolar", 8, seed=1)
    starts = permute_identities(pictures.frames, np.random.default_rng(0))
    sampler = sampling.ParallelSampler(load_weights(), starts, pictures.kind, 40, seed=2)
    for _ in range(20):
        sampler.step()
    target, label, analytic = sampler.proposals()
    assert (label >= 0).all()
    exact, first = (sampler.neural_delta(target, label, how) for how in ("exact", "first_order"))
    found = price_agreement(exact.detach(), first.detach(), analytic)
    assert found["correlation"] > 0.99
    assert 0.95 < found["slope"] < 1.05
    assert found["rms"] < 0.3 and found["acceptance_change"] < 0.03


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": "first order"}, "did you mean 'first_order'"),
        ({"n_parallel": 0}, "n_parallel = 0"),
        ({"frames": aggregates(2).astype(float)}, "integer identities"),
        ({"frames": aggregates(2)[:, :20]}, "but the network"),
        ({"frames": aggregates(2) + 1}, "identity 7"),
        ({"frames": np.minimum(aggregates(2), 5)}, "cell 6"),
        ({"model": "cell sorting"}, "model is a str"),
    ],
)
def test_bad_input_is_named_in_one_line(options, message):
    model = energy_models()["closure"]
    with pytest.raises(ValueError, match=message) as caught:
        sampling.ParallelSampler(
            **{"model": model, "frames": aggregates(2), "kind": KIND, **options}
        )
    assert "\n" not in str(caught.value)
