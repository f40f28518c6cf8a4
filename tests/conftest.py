"""Fixtures for tests that run a notebook: small ones written on the spot, kernels of their own."""

import os

import pytest
from helpers import notebook_text
from hypothesis import settings

from workbench import catalog

settings.register_profile("shared", deadline=None)  # the machine may be busy with other tests
settings.load_profile("shared")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # workers of pytest-xdist do not fight for cores


@pytest.fixture
def write_notebook(tmp_path, monkeypatch):
    """Replace the notebook of neural_cpm, for this test, by one made of the given cells."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    monkeypatch.setattr(catalog, "notebooks_folder", lambda: folder)

    def write(*cells: str):
        path = folder / "neural_cpm.ipynb"
        path.write_text(notebook_text(*cells), encoding="utf-8")
        return path

    return write
