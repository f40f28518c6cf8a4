"""The stored weights: made by their command, read back, and better than the energy they close."""

import numpy as np
import pytest

from workbench.methods.neural_cpm.ensemble import permute_identities
from workbench.methods.neural_cpm.generators import simulate
from workbench.methods.neural_cpm.measures import moment_rmse, moments
from workbench.methods.neural_cpm.sampling import sample
from workbench.methods.neural_cpm.weights import PATH, blank, load_weights, make_weights_steps
from workbench.steps import run


@pytest.mark.filterwarnings("ignore:cells touch the edge")
def test_the_stored_weights_make_two_poles_where_their_basis_does_not():
    model, data = load_weights(), simulate("bipolar", 16, seed=77)
    starts = permute_identities(data.frames, np.random.default_rng(0))
    wanted = moments(data.frames, data.kind)
    rmse = [
        moment_rmse(moments(sample(energy, starts, data.kind, 400).frames, data.kind), wanted)
        for energy in (model, model.basis)
    ]
    assert rmse[0] < 0.7 * rmse[1]


def test_the_file_is_small():
    assert PATH.stat().st_size < 60_000


def test_the_command_stores_what_can_be_loaded(tmp_path):
    path = tmp_path / "weights.npz"
    changes = {"weights": "train", "select_every": 2, "iters": 2, "samples": 2, "sample_steps": 3}
    figure = run(make_weights_steps(path, "quick", **changes))
    assert np.isfinite(figure)
    assert not np.allclose(load_weights(path).basis.J.detach(), blank().basis.J.detach())


def test_weights_of_another_shape_are_refused(tmp_path):
    path = tmp_path / "weights.npz"
    state = {name: value.numpy() for name, value in blank().state_dict().items()}
    np.savez(path, **{**state, "w_b": np.zeros(3)})
    with pytest.raises(ValueError, match="does not fit"):
        load_weights(path)
