"""What several tests use: small notebooks, and whether a process is still there."""

import os
from pathlib import Path

from workbench.methods.neural_cpm.study import Parameters
from workbench.notebooks import canonical

RECORD = """
from workbench.claims import Claims, judge
from workbench.methods.neural_cpm.study import Parameters
from workbench.results import Study, record
parameters = Parameters.from_notebook(globals())
tested = judge("a", "x < y & so on", [1.0, 2.0], at_most=3)
claims = Claims([tested, judge("b", "t", None, at_most=1)])
record(Study(parameters, claims, {"rmse": 1.5}, seconds=0.1))
"""


def notebook_text(*cells: str) -> str:
    """A notebook with the parameters cell of neural_cpm and `cells` (markdown after '#md')."""
    made = [
        {"cell_type": "code", "source": "", "metadata": {"tags": ["parameters"]}, "outputs": []}
    ]
    for source in cells:
        if source.startswith("#md"):
            made.append({"cell_type": "markdown", "source": source[4:], "metadata": {}})
        else:
            made.append({"cell_type": "code", "source": source, "metadata": {}, "outputs": []})
    return canonical({"cells": made}, Parameters.cell())


def alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


SMALL = {
    "size": 40, "n_cells": 8, "V_target": 60.0, "mcs": 20, "simulations": 4, "recovery_iters": 20,
    "bipolar_simulations": 4, "iters": 3, "chains": 2, "chain_steps": 2, "samples": 2,
    "sample_steps": 10,
}  # fmt: skip


def small_parameters(**changes) -> Parameters:
    """The quick preset of neural_cpm at a size that runs in a few seconds."""
    return Parameters.preset("quick", **{**SMALL, **changes})


def small_study(**changes):
    """A finished study of that size."""
    from workbench.methods.neural_cpm.study import run

    return run(small_parameters(**changes), progress=False)


def write_sweep(out, points, claims_at, failed=()):
    """A finished sweep in folder `out` without running it: `claims_at(parameters)` are measured."""
    from workbench import results, sweep_store

    store = sweep_store.Store(out)
    manifest = {**sweep_store.manifest_of(points), "versions": results.versions()}
    store.write(sweep_store.MANIFEST, sweep_store.to_json(manifest))
    for number, point in enumerate(points):
        folder = f"points/{point.name}"
        if number in failed:
            store.write(f"{folder}/{sweep_store.ERROR}", b"cell 3 failed: ValueError: a < b\n\nall")
            continue
        study = results.Study(point.parameters, claims_at(point.parameters), {"rmse": 1.5})
        record = {**results.to_record(study), "report_seconds": 20.0 + number}
        store.write(f"{folder}/{points.slug}.html", f"<h1>report {number}</h1>".encode())
        store.write(f"{folder}/{points.slug}.json", sweep_store.to_json(record))
    return store
