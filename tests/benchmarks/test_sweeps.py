"""What a sweep costs beyond the runs of its notebook, and what a second worker gains.

Run with `pytest -m benchmark -s` to see the figures. The notebook burns a fixed amount of
processor time on one thread, so that points that fight for cores show.
"""

import json
import os
import time

import dask
import distributed  # noqa: F401  (its settings must be there before some are changed)
import pytest
from helpers import RECORD, notebook_text

from workbench import grids, steps, sweeps

pytestmark = pytest.mark.benchmark

BURN = "import time\nend = time.process_time() + 6.0\nwhile time.process_time() < end:\n    pass"


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """`sweep(cells, seeds, workers)`: seconds of all, of each report and of each notebook."""

    def run(cells, seeds, workers):
        folder = tmp_path_factory.mktemp("sweep")
        (folder / "neural_cpm.ipynb").write_text(notebook_text(*cells), encoding="utf-8")
        preload = folder / "preload.py"
        preload.write_text(
            "from pathlib import Path\nfrom workbench import catalog\n"
            f"catalog.notebooks_folder = lambda: Path({str(folder)!r})\n"
        )
        points = grids.points("neural_cpm", None, seeds, "quick")
        start = time.perf_counter()
        with dask.config.set({"distributed.worker.preload": [str(preload)]}):
            made = steps.run(sweeps.sweep_steps(points, folder / "out", workers=workers))
        seconds = time.perf_counter() - start
        assert made.finished == seeds
        notebooks = [
            json.loads(path.read_text())["metadata"]["papermill"]["duration"]
            for path in (folder / "out" / "points").glob("*/neural_cpm.ipynb")
        ]
        return seconds, list(sweeps.load(folder / "out").seconds), notebooks

    return run


def test_a_point_costs_less_than_three_seconds_beyond_its_notebook(sweep):
    seconds, reports, notebooks = sweep((RECORD,), seeds=8, workers=1)
    each = (sum(reports) - sum(notebooks)) / len(reports)
    whole = (seconds - sum(notebooks)) / len(reports)
    print(
        f"\nbeyond the notebook's own run: {each:.2f} s a point; with the start of the cluster, "
        f"writing and the page, over {len(reports)} points: {whole:.2f} s a point"
    )
    assert each < 3
    assert whole < 3


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_two_workers_are_at_least_1_7_times_as_fast_as_one(sweep):
    one, two = (sweep((BURN, RECORD), seeds=8, workers=n)[0] for n in (1, 2))
    print(f"\neight points of 6 s: one worker {one:.1f} s, two {two:.1f} s, ratio {one / two:.2f}")
    assert one / two >= 1.7
