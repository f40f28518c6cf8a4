"""Contrastive divergence of the cell-sorting energy: gradients, recovery, warnings."""

import warnings

import numpy as np
import pytest

from workbench.methods.neural_cpm.energy import contact_counts, energy_terms
from workbench.methods.neural_cpm.generators import Simulation, simulate
from workbench.methods.neural_cpm.recovery import (
    Adam,
    fit_cellsort,
    fit_cellsort_steps,
    rmse,
    rmse_after_scalar,
)
from workbench.steps import Cancelled, run

SMALL = {"size": 60, "n_cells": 16, "radius": 18}
TRUTH = np.array([2.5, 1, 1, 4.5, 1, 0.5])


@pytest.fixture(scope="module")
def pictures() -> Simulation:
    """The quick preset of scenario B: 8 simulations of 16 cells on 60 x 60."""
    return simulate("cellsort-b", 8, seed=1, **SMALL)


def test_statistics_are_the_derivatives_of_the_energy(pictures):
    """Finite differences of the counted energy in every parameter, on one frame."""
    frame, kind, V_target = pictures.frames[:1], pictures.kind, 90.0
    fit = fit_cellsort(
        frame, kind, V_target, iters=1, chains=1, mcs=1, fit_V_target=True,
        J_start=pictures.scenario.matrix, lam_start=0.5,
    )  # fmt: skip
    values = np.append(TRUTH, V_target)

    def energy(values):
        J = np.zeros((3, 3))
        rows, columns = np.triu_indices(3)
        J[rows[1:], columns[1:]] = J[columns[1:], rows[1:]] = values[:5]
        return sum(energy_terms(frame[0], kind, J, *values[5:]).values())

    for i, name in enumerate(fit.names):
        up, down = values.copy(), values.copy()
        up[i], down[i] = up[i] + 1e-4, down[i] - 1e-4
        slope = (energy(up) - energy(down)) / 2e-4
        assert fit.data_statistics[0, i] == pytest.approx(slope, rel=1e-6), name
    counts = contact_counts(frame, kind)[0]
    assert fit.data_statistics[0, :5] == pytest.approx(0.25 * counts[np.triu_indices(3)][1:])


def test_mean_gradient_vanishes_at_the_truth_for_data_from_the_model():
    """Data long relaxed at the truth; the fit is held there by a learning rate of nearly 0."""
    settings = {"size": 24, "n_cells": 6, "V_target": 40, "radius": 7, "stages": ((1.0, 1000.0),)}
    data = simulate("cellsort-f", 300, seed=2, **settings)
    fit = fit_cellsort(
        data.frames, data.kind, 40, iters=40, chains=8, mcs=10, lr=1e-12, lr_end=1e-12,
        J_start=data.scenario.matrix, lam_start=data.scenario.lam,
    )  # fmt: skip
    gradient = fit.data_statistics - fit.chain_statistics
    error = gradient.std(0) / np.sqrt(len(gradient))
    assert (np.abs(gradient.mean(0)) < 3 * error).all()
    assert error.min() > 0
    wrong = fit_cellsort(
        data.frames, data.kind, 40, iters=40, chains=8, mcs=10, lr=1e-12, lr_end=1e-12,
        J_start=1.5 * data.scenario.matrix, lam_start=data.scenario.lam,
    )  # fmt: skip
    gradient = wrong.data_statistics - wrong.chain_statistics
    assert (np.abs(gradient.mean(0)) > 3 * gradient.std(0) / np.sqrt(len(gradient))).any()


def test_quick_recovery_finds_the_order_of_the_contact_energies(pictures):
    fit = fit_cellsort(pictures.frames, pictures.kind, 100, iters=120, seed=1)
    J01, J02, J11, J12, J22, lam = fit.values
    assert J12 > J01 > max(J02, J11, J22) and lam > 0
    assert fit.parameters.shape == fit.chain_statistics.shape == (120, 6)
    assert fit.values == pytest.approx(fit.parameters[-40:].mean(0))
    assert np.array_equal(fit.J, fit.J.T) and fit.J[0, 0] == 0
    assert rmse(fit.values, TRUTH) < 0.5 * rmse(fit.parameters[0], TRUTH)


def test_same_seed_same_fit_and_another_start_for_another_seed(pictures):
    fits = [fit_cellsort(pictures.frames, pictures.kind, 100, iters=3, seed=s) for s in (5, 5, 6)]
    assert np.array_equal(fits[0].parameters, fits[1].parameters)
    assert not np.array_equal(fits[0].parameters, fits[2].parameters)


def test_persistent_chains_go_on_and_others_restart_from_data(pictures):
    soft = {"iters": 40, "mcs": 1, "lr": 1e-12, "lr_end": 1e-12, "lam_start": 0.01}
    away = []
    for persistent in (False, True):
        fit = fit_cellsort(pictures.frames, pictures.kind, 100, persistent=persistent, **soft)
        away.append((fit.chain_statistics - fit.data_statistics)[-10:, 5].mean())
    assert away[1] > 2 * away[0] > 0


def test_target_volume_can_be_learned_with_the_rest(pictures):
    fit = fit_cellsort(pictures.frames, pictures.kind, 80, iters=150, fit_V_target=True)
    assert fit.names[-1] == "V_target" and len(fit.values) == 6
    assert fit.V_target == pytest.approx(fit.parameters[-40:, -1].mean())
    assert fit.V_target == pytest.approx(100, abs=3)
    fixed = fit_cellsort(pictures.frames, pictures.kind, 97, iters=2)
    assert fixed.V_target == 97 and fixed.field is None


def test_learned_field_is_low_where_a_kind_was_held():
    """Kind 2 sits at one fixed digit in all pictures, so its coupled field must find the digit."""
    image = np.zeros((1, 28, 28))
    image[0, 6:22, 12:16] = 1
    settings = {"size": 40, "n_cells": 12, "V_target": 40, "radius": 12}
    data = simulate("digits", 24, images=image, stages=((2.0, 200.0), (1.0, 100.0)), **settings)
    fit = fit_cellsort(
        data.frames, data.kind, 40, iters=150, mcs=5, J_start=3, lam_start=0.5, fit_field=True
    )
    share = np.stack([(data.kind[data.frames] == k).mean(0) for k in (1, 2)])
    energy = fit.coupling[1:, None, None] * fit.field
    held, free = share[1] > 0.5, share[0] > 0.3
    assert fit.coupling[0] == 0 and fit.field.shape == (40, 40)
    assert (energy[1] - energy[0])[held].mean() < (energy[1] - energy[0])[free].mean()


def test_a_cancelled_fit_keeps_what_it_found(pictures):
    steps = fit_cellsort_steps(pictures.frames, pictures.kind, 100, iters=50)
    seen = []
    with pytest.raises(Cancelled) as stopped:
        run(steps, seen.append, lambda: len(seen) == 7)
    assert stopped.value.data.parameters.shape == (7, 6)
    assert np.isfinite(stopped.value.data.values).all()


def test_best_scalar_removes_a_common_factor():
    assert rmse(TRUTH + 0.3, TRUTH) == pytest.approx(0.3)
    assert rmse_after_scalar(1.7 * TRUTH, TRUTH) == pytest.approx(0, abs=1e-12)
    noisy = TRUTH + np.array([0.1, -0.2, 0.1, 0, 0.1, 0])
    scales = np.linspace(0.9, 1.1, 2001)
    best = min(rmse(scale * noisy, TRUTH) for scale in scales)
    assert rmse_after_scalar(noisy, TRUTH) == pytest.approx(best, abs=1e-6)


def test_adam_is_the_textbook_one():
    torch = pytest.importorskip("torch")
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimizer = torch.optim.Adam([weight], lr=0.05, betas=(0.9, 0.99))
    own, adam = np.array([1.0, -2.0]), Adam((0.9, 0.99))
    for gradient in np.random.default_rng(0).normal(size=(20, 2)):
        weight.grad = torch.tensor(gradient)
        optimizer.step()
        own = own + adam.step(gradient, 0.05)
    assert own == pytest.approx(weight.detach().numpy(), abs=1e-9)


def test_kinds_that_cannot_be_identified_are_warned_of(pictures):
    one_cell = np.where(np.arange(17) == 16, 2, 1) * (np.arange(17) > 0)
    with pytest.warns(UserWarning, match="kind 2 has 1 cells in the data: J22 cannot"):
        fit_cellsort(pictures.frames, one_cell, 100, iters=1)
    gap = np.where(pictures.kind == 2, 3, pictures.kind)
    with pytest.warns(UserWarning, match="kind 2 has 0 cells in the data: J of kind 2"):
        fit_cellsort(pictures.frames, gap, 100, iters=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_cellsort(pictures.frames, pictures.kind, 100, iters=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"iters": 0}, "iters = 0"),
        ({"chains": 0}, "chains = 0"),
        ({"lr": 0}, "lr = 0"),
        ({"V_target": 0}, "V_target = 0"),
        ({"kind": [0, 1, 2]}, "kind is too short"),
        ({"J_start": [[0, 1, 2], [1, 1, 1], [3, 1, 1]]}, "J\\[0, 2\\] = 2 but J\\[2, 0\\] = 3"),
    ],
)
def test_bad_settings_are_refused(pictures, change, message):
    settings = {"frames": pictures.frames, "kind": pictures.kind, "V_target": 100, "iters": 1}
    with pytest.raises(ValueError, match=message):
        fit_cellsort(**{**settings, **change})


def test_a_training_frame_with_a_dead_cell_is_refused(pictures):
    frames = pictures.frames.copy()
    frames[3][frames[3] == 5] = 0
    with pytest.raises(ValueError, match="cell 5 in frame 3"):
        fit_cellsort(frames, pictures.kind, 100, iters=1)
