"""The stored weights of one full training of NH + closure, and the command that makes them.

`python -m workbench.methods.neural_cpm.weights` trains as the `full` preset does (600 iterations, a
checkpoint every 100 judged on a validation half, three seeds), keeps the network with the best
validation figure, and writes weights.npz next to this module. It takes a few minutes. The quick
preset samples these weights; nothing else depends on them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from workbench.steps import Progress, Steps, part, run

from .bipolar import CLOSURE, bipolar_steps, closure
from .closure import CellSorting, Hybrid
from .hamiltonian import NeuralHamiltonian
from .study import Parameters

PATH = Path(__file__).with_name("weights.npz")
SIZE = 36  # sites; the teaching-scale aggregates


def blank() -> Hybrid:
    """The model the stored weights belong to, with weights of its own."""
    basis = CellSorting.from_values(np.zeros((3, 3)), np.zeros(3), 36.0)
    return closure(basis, NeuralHamiltonian(SIZE))


def load_weights(path: Path = PATH) -> Hybrid:
    """The stored NH + closure for 36 x 36 lattices with two kinds, frozen basis included.

    Raises ValueError if the file does not fit the architecture.
    """
    model = blank()
    with np.load(path) as stored:
        state = {name: torch.from_numpy(stored[name]) for name in stored.files}
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"{path.name} does not fit: {str(error).splitlines()[-1]}") from error
    return model


def make_weights_steps(path: Path = PATH, preset: str = "full", **changes: object) -> Steps[float]:
    """Train by the preset, store the network with the best validation figure and return that."""
    parameters = Parameters.preset(preset, ablations=False, digits=False, **changes)
    result = yield from part(bipolar_steps(parameters), 0.0, 1.0)
    trainings = result.models[CLOSURE].trainings
    figures = [min(value for _, value in training.metrics) for training in trainings]
    best = int(np.argmin(figures))
    state = trainings[best].model.state_dict()
    np.savez(path, **{name: value.numpy() for name, value in state.items()})
    return figures[best]


if __name__ == "__main__":
    with Progress("training the stored weights") as progress:
        figure = run(make_weights_steps(), progress)
    print(f"{PATH.name}: RMSE of the moments on the validation half {figure:.2f}")
