"""What a sweep costs beyond the runs of its notebook, and what a second worker gains.

Run with `pytest -m benchmark -s` to see the figures. The notebook burns a fixed amount of
processor time on one thread, so that points that fight for cores show.
"""

import json
import os
import subprocess
import sys
import time

import dask
import distributed  # noqa: F401  (its settings must be there before some are changed)
import pytest
from helpers import RECORD, notebook_text

from workbench import grids, steps, sweeps

pytestmark = pytest.mark.benchmark

BURN = "import time\nend = time.process_time() + 15.0\nwhile time.process_time() < end:\n    pass"


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


def burners(count):
    """Seconds that `count` plain processes take that burn side by side, without any sweep."""
    start = time.perf_counter()
    running = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    for process in running:
        process.wait()
    return time.perf_counter() - start


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_two_workers_are_at_least_1_7_times_as_fast_as_one(sweep):
    """1.7 where two plain processes are twice as fast as one after the other; else in proportion:
    on a machine that does other work, a second worker cannot gain more than it gives."""
    given, seconds = [], {}
    for workers in (1, 2):
        given.append(2 * burners(1) / burners(2))
        seconds[workers] = sweep((BURN, RECORD), seeds=8, workers=workers)[0]
    given.append(2 * burners(1) / burners(2))
    ratio, share = seconds[1] / seconds[2], min(1.0, sum(given) / len(given) / 2)
    # Where other work takes a core, what the machine gives is known to a tenth only.
    least = 1.7 * share * (1.0 if share > 0.9 else 0.9)
    print(
        f"\neight points of 15 s: one worker {seconds[1]:.1f} s, two {seconds[2]:.1f} s, ratio "
        f"{ratio:.2f}; plain processes {', '.join(f'{g:.2f}' for g in given)}, needed {least:.2f}"
    )
    assert ratio >= least
