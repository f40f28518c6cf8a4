"""Training: what the loop does, what it keeps, and that it learns what it is shown."""

import numpy as np
import pytest
import torch

from workbench.methods.neural_cpm import training
from workbench.methods.neural_cpm.baselines import ConvolutionalHamiltonian
from workbench.methods.neural_cpm.closure import CellSorting, Hybrid
from workbench.methods.neural_cpm.energy import contact_counts
from workbench.methods.neural_cpm.ensemble import Ensemble
from workbench.methods.neural_cpm.hamiltonian import PAPER_ARCHITECTURES, NeuralHamiltonian
from workbench.methods.neural_cpm.training import Pictures, rotated, train, train_many, train_steps
from workbench.numerics.threads import one_thread
from workbench.steps import Cancelled, Step, run, together

KIND = np.array([0, 1, 1, 1, 2, 2, 2])
J = np.array([[0, 4, 5], [4, 2, 6], [5, 6, 3.0]])
QUICK = {"iterations": 4, "chains": 3, "steps": 2, "n_parallel": 10}


def pictures(n: int = 6, J: np.ndarray = J, mcs: float = 150, seed: int = 0) -> np.ndarray:
    """Six cells of 16 sites on 24 x 24, from the engine with a known energy."""
    rng = np.random.default_rng(seed)
    frames = np.zeros((n, 24, 24), np.int32)
    for frame in frames:
        for cell, place in zip(rng.permutation(6) + 1, np.ndindex(2, 3), strict=True):
            row, column = 6 + 5 * place[0], 5 + 5 * place[1]
            frame[row : row + 4, column : column + 4] = cell
    cells = Ensemble(frames, KIND, J, 0.5, 16.0, seed=seed)
    cells.step(mcs)
    return cells.frames


def closure(seed: int = 0, **options) -> Hybrid:
    basis = CellSorting.from_values(J, 0.5, 16.0)
    return Hybrid(basis, NeuralHamiltonian(24, stride=4, seed=seed), 1.0, 1.0, False, **options)


def weights(model: torch.nn.Module) -> np.ndarray:
    return torch.cat([p.detach().flatten() for p in model.parameters()]).numpy().copy()


def test_training_moves_only_what_is_not_frozen():
    model = closure(train_weights=False)
    network = weights(model.neural)
    contact = model.basis.J.detach().clone()
    train(model, pictures(), KIND, **QUICK)
    assert torch.equal(model.basis.J, contact)
    assert not np.allclose(weights(model.neural), network)
    assert (model.w_b.item(), model.w_n.item()) == (1, 1)


def test_the_same_seed_gives_the_same_weights():
    first, again, other = closure(), closure(), closure()
    for model, seed in ((first, 1), (again, 1), (other, 2)):
        train(model, pictures(), KIND, seed=seed, **QUICK)
    np.testing.assert_array_equal(weights(first), weights(again))
    assert not np.array_equal(weights(first), weights(other))


def test_many_trainings_on_threads_are_the_single_ones():
    models = [closure(seed) for seed in range(3)]
    results = train_many(models, pictures(), KIND, [5, 6, 7], **QUICK)
    alone = closure(1)
    train(alone, pictures(), KIND, seed=6, **QUICK)
    assert [result.model for result in results] == models
    np.testing.assert_array_equal(weights(models[1]), weights(alone))


def test_the_history_holds_each_iteration():
    result = train(closure(), pictures(), KIND, **QUICK)
    history = result.history
    assert set(history) == set(training.COLUMNS)
    assert all(len(column) == 4 for column in history.values())
    np.testing.assert_allclose(
        history["gap"], history["energy_data"] - history["energy_chains"], atol=1e-4
    )
    assert history["learning_rate"][0] == pytest.approx(3e-3)
    assert (np.diff(history["learning_rate"]) < 0).all()
    assert result.chains.shape == (3, 24, 24)
    assert (result.best_iteration, result.stopped) == (4, "")


def test_a_constant_rate_is_an_option():
    result = train(closure(), pictures(), KIND, final_lr=1.0, **QUICK)
    assert result.history["learning_rate"] == pytest.approx(3e-3)


def test_the_regularizer_starts_with_data_at_zero_energy():
    model, data = closure(), pictures()
    training.center(model, data, KIND)
    assert model(data, KIND).mean().item() == pytest.approx(0, abs=1e-2)


def test_the_weights_with_the_lowest_metric_are_kept():
    seen, values = [], iter([3.0, 1.0, 2.0])

    def metric(model):
        seen.append(weights(model))
        return next(values)

    options = {**QUICK, "iterations": 6, "metric_every": 2}
    model = closure()
    result = train(model, pictures(), KIND, metric=metric, **options)
    assert result.metrics == [(2, 3.0), (4, 1.0), (6, 2.0)]
    assert result.best_iteration == 4
    np.testing.assert_array_equal(weights(model), seen[1])


def test_a_metric_may_be_a_generator_of_steps():
    def metric(model):
        yield Step(0.5, "half")
        return 1.5

    messages = [
        step.message
        for step in train_steps(closure(), pictures(), KIND, metric=metric, metric_every=4, **QUICK)
    ]
    assert "validation: half" in messages


def test_judging_does_not_disturb_the_training():
    plain, judged = closure(), closure()
    train(plain, pictures(), KIND, ema=0.9, **QUICK)
    train(judged, pictures(), KIND, ema=0.9, metric=lambda model: 1.0, metric_every=1, **QUICK)
    assert not np.allclose(weights(plain), weights(judged))  # the first of equals is kept
    last = closure()
    falling = iter([4.0, 3.0, 2.0, 1.0])
    train(
        last, pictures(), KIND, ema=0.9, metric=lambda model: next(falling), metric_every=1, **QUICK
    )
    np.testing.assert_allclose(weights(plain), weights(last), rtol=1e-4, atol=1e-7)


def test_averaged_weights_stay_closer_to_the_start():
    start = weights(closure().neural)
    moved = []
    for ema in (0.0, 0.99):
        model = closure()
        train(model, pictures(), KIND, ema=ema, **QUICK)
        moved.append(np.linalg.norm(weights(model.neural) - start))
    assert moved[1] < 0.2 * moved[0]


def test_cancelling_keeps_the_best_weights():
    seen = []

    def metric(model):
        seen.append(weights(model))
        return len(seen)  # the first is the best

    model = closure()
    steps = train_steps(
        model, pictures(), KIND, metric=metric, metric_every=1, **{**QUICK, "iterations": 50}
    )
    with pytest.raises(Cancelled) as caught:
        run(steps, cancelled=lambda: len(seen) >= 3)
    assert caught.value.data.best_iteration == 1
    np.testing.assert_array_equal(weights(model), seen[0])


def test_a_non_finite_energy_stops_and_keeps_the_last_good_weights():
    model = closure()
    steps = train_steps(model, pictures(), KIND, **{**QUICK, "iterations": 9})
    with pytest.warns(UserWarning, match="non-finite energy in iteration 3"):
        while True:
            try:
                step = next(steps)
            except StopIteration as stop:
                result = stop.value
                break
            if step.data is not None and len(step.data.history["gap"]) == 2:
                with torch.no_grad():
                    model.neural.head[-1].weight.fill_(float("nan"))
    assert result.stopped == "non-finite energy in iteration 3"
    assert len(result.history["gap"]) == 2
    assert np.isfinite(weights(model)).all()


def test_chains_persist_and_restarts_permute_kinds():
    rng = np.random.default_rng(0)
    source = Pictures(pictures(), False, rng)
    chains = source.draw(50)
    assert source.starts("chains", chains.copy(), 0.0) is None
    renewed = source.starts("chains", chains.copy(), 0.5)
    changed = (renewed != chains).any((1, 2))
    assert 10 < changed.sum() < 40
    kinds = [np.sort(np.bincount(frame.ravel(), minlength=7)[1:]) for frame in renewed]
    shapes = {tuple(np.sort(np.bincount(f.ravel(), minlength=7)[1:])) for f in pictures()}
    assert {tuple(sizes) for sizes in kinds} <= shapes


def test_contrastive_divergence_starts_each_iteration_from_data():
    source = Pictures(pictures(), False, np.random.default_rng(0))
    starts = source.starts("data", source.draw(20), 0.0)
    assert all(any(np.array_equal(start, frame) for frame in pictures()) for start in starts)


def test_noise_negatives_keep_volumes_and_nothing_else():
    source = Pictures(pictures(), False, np.random.default_rng(0))
    noise, data = source.shuffled(20), pictures()
    sizes = {tuple(np.bincount(frame.ravel(), minlength=7)) for frame in data}
    assert {tuple(np.bincount(frame.ravel(), minlength=7)) for frame in noise} <= sizes
    assert (
        contact_counts(noise, KIND).sum((1, 2)).min()
        > 2 * contact_counts(data, KIND).sum((1, 2)).max()
    )


def test_rotation_by_a_right_angle_is_exact_and_never_loses_a_cell():
    frame = pictures(1)[0]
    np.testing.assert_array_equal(rotated(frame, np.pi / 2), np.rot90(frame, 1))
    np.testing.assert_array_equal(rotated(frame, np.pi), frame[::-1, ::-1])
    corner = np.zeros((9, 9), np.int32)
    corner[0, 0] = 1
    assert (rotated(corner, np.pi / 4) == 1).sum() == 1


def test_the_loop_recovers_a_cell_sorting_energy():
    truth = CellSorting.from_values(J, 0.5, 16.0)
    model = CellSorting(V_target=16.0, lam=0.2, seed=3)
    model.V_target.requires_grad_(False)
    data = pictures(32, mcs=400)
    start = np.abs((model.J - truth.J).detach().numpy()).max()
    train(
        model, data, KIND, iterations=300, lr=0.05, reg=0.0, chains=16, steps=20, n_parallel=10,
        negatives="data",
    )  # fmt: skip
    error = np.abs((model.J - truth.J).detach().numpy()).max()
    assert start > 2
    assert error < 0.35 * start
    assert np.argmax(model.J.detach().numpy()) == 5  # J12 is the largest


def test_a_network_learns_to_prefer_data_over_noise():
    model, data = NeuralHamiltonian(24, stride=4), pictures(16)
    train(model, data, KIND, iterations=80, negatives="noise", chains=8)
    noise = Pictures(pictures(8, seed=9), False, np.random.default_rng(1)).shuffled(8)
    with torch.no_grad():
        fresh, shuffled = model(pictures(8, seed=9), KIND), model(noise, KIND)
    assert (fresh[:, None] < shuffled).float().mean() > 0.9


def test_baselines_train_too():
    model = ConvolutionalHamiltonian(24, 6, widths=(8, 8), pools=(1, 2))
    before = weights(model)
    result = train(model, pictures(), KIND, **{**QUICK, "iterations": 2})
    assert np.isfinite(result.history["gap"]).all()
    assert not np.array_equal(weights(model), before)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", PAPER_ARCHITECTURES)
def test_the_paper_sizes_run_their_first_iteration(experiment):
    network = NeuralHamiltonian(**PAPER_ARCHITECTURES[experiment])
    rng = np.random.default_rng(0)
    size, n_cells = network.size[0], 8
    frames = np.zeros((2, size, size), np.int32)
    frames[:, size // 4 : size // 2, size // 4 : size // 2] = rng.integers(
        1, n_cells + 1, (2, size // 2 - size // 4, size // 2 - size // 4)
    )
    kind = np.array([0] + [1, 2] * (n_cells // 2))
    result = train(
        Hybrid(CellSorting(), network), frames, kind, iterations=1, chains=2, steps=1,
        n_parallel=50, rotate=True,
    )  # fmt: skip
    assert np.isfinite(result.history["gap"]).all()


def test_one_thread_restores_the_number_of_threads():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_an_error_in_one_of_several_jobs_is_raised():
    def good():
        yield Step(0.5)
        return 1

    def bad():
        yield Step(0.5)
        raise ArithmeticError("broken")

    with pytest.raises(ArithmeticError, match="broken"):
        run(together([good, bad]))
    assert run(together([good, good, good])) == [1, 1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations = 0"),
        ({"reg": -1e-3}, "reg = -0.001"),
        ({"p_reset": 1.5}, "p_reset = 1.5"),
        ({"negatives": "chain"}, "did you mean 'chains'"),
        ({"delta": "exactly"}, "did you mean 'exact'"),
        ({"kind": KIND[:5]}, "kind is too short"),
        ({"frames": np.where(pictures() == 4, 0, pictures())}, "cell 4"),
        ({"frames": pictures()[:, :20]}, "frames are"),
    ],
)
def test_bad_input_is_named_in_one_line(options, message):
    with pytest.raises(ValueError, match=message) as caught:
        train(**{"model": closure(), "frames": pictures(), "kind": KIND, **QUICK, **options})
    assert "\n" not in str(caught.value)


def test_many_trainings_need_a_seed_each():
    with pytest.raises(ValueError, match="2 models, 1 seeds"):
        train_many([closure(), closure()], pictures(), KIND, [1], **QUICK)
