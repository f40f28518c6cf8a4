"""Keeps notebooks in line with the package and their diffs readable.

`sync` rewrites the parameters cell from the method's class, the scorecard in gallery and README
from the stored runs, and stores every notebook in one canonical form: stable cell ids, sorted
keys, no outputs but the small text of compared cells (`# NBVAL_CHECK_OUTPUT`). Notebooks are read
as plain JSON: nbformat is slow to import.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from workbench import catalog, scorecard
from workbench.files import write as write_file

COMPARED = "NBVAL_CHECK_OUTPUT"
GENERATED_TAGS = {"parameters", "scorecard"}
README_BEGIN, README_END = "<!-- scorecard: `workbench sync` -->", "<!-- end of scorecard -->"
LIMIT_BYTES = 150_000


def read(path: Path) -> dict[str, Any]:
    """The notebook as parsed JSON; ValueError in one line when it is not one."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        notebook["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} is not a notebook: {error}") from None
    return notebook


def source(cell: dict[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def tags(cell: dict[str, Any]) -> list[str]:
    """The tags of a cell."""
    return cell.get("metadata", {}).get("tags", [])


def canonical(notebook: dict[str, Any], generated: str | None = None) -> str:
    """The text of a notebook as it is stored; `generated` replaces the cell that is generated."""
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        kind, text = cell["cell_type"], source(cell)
        if generated is not None and GENERATED_TAGS & set(tags(cell)):
            text = generated
        kept: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{number:02}",
            "metadata": {"tags": tags(cell)} if tags(cell) else {},
            "source": text.splitlines(keepends=True),
        }
        if kind == "code":
            compared = COMPARED in text
            kept["outputs"] = [_output(o) for o in cell["outputs"]] if compared else []
            kept["execution_count"] = 1 if compared and cell["outputs"] else None
        cells.append(kept)
    stored = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(stored, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _output(output: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in output.items() if k != "metadata" or output["output_type"] != "stream"}
    if isinstance(kept.get("text"), str):
        kept["text"] = kept["text"].splitlines(keepends=True)
    if "execution_count" in kept:
        kept["execution_count"] = 1
    return kept


def generated_source(slug: str) -> str:
    """The generated cell of a notebook: the parameters of `slug`, or the index's scorecard."""
    if slug == "index":
        return f"## Scorecard\n\n{scorecard.as_markdown(scorecard.stored())}"
    return catalog.load(slug).Parameters.cell()


def readme_with_scorecard(text: str) -> str:
    """The README with the scorecard of the stored runs between its two marks."""
    table = scorecard.as_markdown(scorecard.stored(), notebooks="notebooks/")
    marked = re.compile(f"{re.escape(README_BEGIN)}.*{re.escape(README_END)}", re.DOTALL)
    return marked.sub(lambda found: f"{README_BEGIN}\n{table}\n{README_END}", text)


def store_outputs(slug: str) -> None:
    """Run a notebook with its quick preset and store the outputs of its compared cells."""
    import tempfile

    from workbench import kernels

    path = catalog.find(slug).notebook
    parameters = catalog.load(slug).Parameters.preset("quick").to_papermill()
    with tempfile.TemporaryDirectory() as folder:
        executed = Path(folder) / path.name
        with kernels.started() as kernel:
            kernels.execute(path, executed, parameters, kernel)
        outputs = {cell["id"]: cell.get("outputs", []) for cell in read(executed)["cells"]}
    notebook = read(path)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and COMPARED in source(cell):
            cell["outputs"] = outputs[cell["id"]]
    write_file(path, canonical(notebook, generated_source(slug)))


def sync(write: bool = True) -> list[str]:
    """Rewrite what is out of line; returns one line for each file that was (or would be)."""
    folder = catalog.notebooks_folder()
    kept = {p: canonical(read(p), generated_source(p.stem)) for p in sorted(folder.glob("*.ipynb"))}
    readme = folder.parent / "README.md"
    if readme.exists():  # not in an installed package
        kept[readme] = readme_with_scorecard(readme.read_text(encoding="utf-8"))
    stale = []
    for path, wanted in kept.items():
        if wanted == path.read_text(encoding="utf-8"):
            continue
        stale.append(f"{path.name} {'rewritten' if write else 'is out of line: workbench sync'}")
        if write:
            write_file(path, wanted)
    return stale
