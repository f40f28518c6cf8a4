"""What a notebook run leaves behind: one record that reports, sweeps and the scorecard read.

`record(study)` stores the record in the executed notebook as an output of its own MIME type;
`read(notebook)` gets it back without running anything.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from workbench import steps as work
from workbench.claims import Claims
from workbench.parameters import Parameters
from workbench.steps import Step, Steps, part

RECORD_MIME = "application/vnd.workbench+json"
LIBRARIES = ("workbench", "numpy", "scipy", "numba", "torch", "scikit-learn", "panel", "holoviews")


@dataclass
class Study:
    """Base of every method's study: what was asked, what was claimed, and headline numbers.

    values: plain numbers by name, for sweeps. seconds: time of the run. complete: False when the
    run was cancelled and only part of it was measured. running: the experiment whose result is
    still partial, if any.
    """

    parameters: Parameters
    claims: Claims = field(default_factory=Claims)
    values: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    complete: bool = True
    running: str = ""


def run_study(title: str, steps: Steps[Study], findings: Any, progress: bool = True) -> Study:
    """Run the steps of a study with a progress bar; stopped by an interrupt, what is finished.

    findings: a method's module with `claims(study)` and `values(study)`, which judge that.
    """
    if not progress:
        return work.run(steps)
    try:
        with work.Progress(title) as bar:
            return work.run(steps, on_step=bar)
    except work.Cancelled as stopped:
        partial = stopped.data
        partial.claims, partial.values = findings.claims(partial), findings.values(partial)
        return partial


Plan = Sequence[tuple[str, float, Callable[[], Steps[Any]]]]


def plan_steps(study: Study, plan: Plan, findings: Any, titled: bool = True) -> Steps[Study]:
    """Run the experiments of a plan in turn; data of a step: the study so far, judged.

    plan: for each experiment the field of its result, its rough cost in any unit, and what makes
    its steps, whose data are its partial result. titled: its name goes before their messages.
    """
    started, done = time.perf_counter(), 0.0
    total = sum(cost for _, cost, _ in plan)
    for name, cost, make in plan:

        def so_far(partial: Any, name: str = name) -> Study:
            study.running = name  # first: nobody may take what is partial for finished
            setattr(study, name, partial)
            return study

        begin, done, title = done, done + cost, name.replace("_", " ")
        result = yield from part(
            make(), begin / total, done / total, title if titled else "", so_far
        )
        setattr(study, name, result)
        study.running, study.seconds = "", time.perf_counter() - started
        study.claims, study.values = findings.claims(study), findings.values(study)
        yield Step(done / total, title, study)
    study.complete = True
    return study


def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that decide the numbers."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def to_record(study: Study) -> dict[str, Any]:
    """The record of a study as plain JSON values."""
    parameters = study.parameters
    preset, changed = parameters.nearest_preset()
    return {
        "slug": parameters.slug,
        "preset": preset,
        "changed": changed,
        "parameters": parameters.to_papermill(),
        "seed": parameters.seed,
        "versions": versions(),
        "seconds": round(study.seconds, 3),
        "complete": study.complete,
        "claims": [claim.to_json() for claim in study.claims],
        "values": {name: float(value) for name, value in study.values.items()},
    }


def record(study: Study) -> None:
    """Store the record of `study` in the outputs of the running notebook cell."""
    from IPython.display import display

    text = f"recorded: {len(study.claims)} claims, {len(study.values)} values"
    display({RECORD_MIME: to_record(study), "text/plain": text}, raw=True)


def read(notebook: str | Path | dict[str, Any]) -> dict[str, Any]:
    """The record in an executed notebook (path or parsed JSON).

    Raises ValueError, in one line, when the file is no notebook or holds no record.
    """
    name = "this notebook"
    if not isinstance(notebook, dict):
        name = str(notebook)
        try:
            notebook = json.loads(Path(notebook).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ValueError(f"{name} is not a readable notebook: {error}") from None
    for cell in reversed(notebook.get("cells", [])):
        for output in cell.get("outputs", []):
            if RECORD_MIME in output.get("data", {}):
                return output["data"][RECORD_MIME]
    raise ValueError(f"{name} holds no record: it was not run to its end")


def read_json(path: str | Path) -> dict[str, Any]:
    """A results file written beside a report; ValueError in one line when it is not one."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a results file: {error}") from None
    if not isinstance(found, dict) or not {"slug", "claims", "parameters"} <= found.keys():
        raise ValueError(f"{path} is not a results file: no slug, claims or parameters in it")
    return found
