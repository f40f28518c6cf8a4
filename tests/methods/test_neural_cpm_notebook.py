"""The recipes that the notebook of NeuralCPM prints for a reader's own data run as they stand."""

import re

import numpy as np
import pytest

from workbench import catalog, notebooks
from workbench.methods import neural_cpm


@pytest.fixture(scope="module")
def recipes():
    """The Python blocks of the section on own data."""
    cells = notebooks.read(catalog.find("neural_cpm").notebook)["cells"]
    (text,) = (s for s in map(notebooks.source, cells) if "## On your own data" in s)
    return re.findall(r"```python\n(.*?)```", text, re.S)


def shortened(recipe, **numbers):
    """The recipe with other values for arguments that it names."""
    for name, value in numbers.items():
        recipe, found = re.subn(rf"\b{name}=[\d.]+", f"{name}={value}", recipe)
        assert found == 1, name
    return recipe


def test_the_recipe_for_own_pictures_trains_the_closure_of_the_notebook(
    recipes, tmp_path, monkeypatch
):
    pictures = neural_cpm.simulate("bipolar", 8, seed=0)
    np.save(tmp_path / "cells.npy", pictures.frames)
    np.save(tmp_path / "kinds.npy", pictures.kind)
    monkeypatch.chdir(tmp_path)
    made = {"neural_cpm": neural_cpm, "np": np}
    exec(shortened(recipes[0], iterations=2, steps=3), made)
    model = made["model"]
    assert (model.w_b.item(), model.w_n.item()) == (1, 1) and not model.w_b.requires_grad
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained and all(n.startswith("neural.") or n == "basis.offset" for n in trained)
    samples = made["samples"]
    assert samples.shape == pictures.frames.shape
    assert (samples != made["starts"]).any()
    starts, kind = made["starts"], made["kind"]
    assert np.array_equal(starts > 0, made["frames"] > 0)
    assert (kind[starts] != kind[made["frames"]]).any()


def test_the_recipe_for_the_digits_of_the_paper_simulates_at_its_size(recipes, monkeypatch):
    images = np.zeros((3, 28, 28), np.float32)
    images[:, 8:20, 12:16] = 1
    monkeypatch.setattr(neural_cpm, "load_mnist", lambda: (images, np.arange(3)), raising=False)
    made = {"neural_cpm": neural_cpm}
    exec(shortened(recipes[1], n=1), made)
    assert made["digits"].frames.shape == (1, 100, 100)
    assert len(made["digits"].kind) == 51
