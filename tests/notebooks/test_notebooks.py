"""Every notebook: runs with its quick preset, matches its stored outputs, keeps the contract."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import papermill
import pytest

from workbench import catalog, exercises, notebooks

HERE = Path(__file__).parent
SLUGS = [method.slug for method in catalog.methods()]
# Section headings that every method's notebook has, in this order.
SECTIONS = [
    "The question, the idea, the surprise", "Parameters", "See it", "Understand it", "Measure it",
    "Claims", "Exercises", "On your own data and the paper's", "Limits", "References",
]  # fmt: skip


def cells_of(slug):
    return notebooks.read(catalog.notebooks_folder() / f"{slug}.ipynb")["cells"]


def run_with_nbval(path: Path) -> str:
    """Run a notebook and compare the cells marked for it; the text that pytest printed."""
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "nbval_patience", "-p", "no:cacheprovider",
         "-p", "no:xdist", "--nbval-lax", "--nbval-current-env", "--nbval-kernel-name=python3",
         "-c", os.devnull, "--rootdir", str(path.parent), "-q", str(path)],
        capture_output=True, text=True, cwd=path.parent,
        env={**os.environ, "PYTHONPATH": str(HERE)},
    )  # fmt: skip
    assert process.returncode == 0, process.stdout[-8000:] + process.stderr[-2000:]
    return process.stdout


@pytest.mark.notebook
@pytest.mark.parametrize("slug", SLUGS)
def test_the_notebook_runs_with_its_quick_preset_and_matches_its_stored_outputs(slug, tmp_path):
    prepared = tmp_path / f"{slug}.ipynb"
    papermill.execute_notebook(
        str(catalog.notebooks_folder() / f"{slug}.ipynb"),
        str(prepared),
        catalog.load(slug).Parameters.preset("quick").to_papermill(),
        prepare_only=True,
        progress_bar=False,
        kernel_name="python3",
    )
    assert "passed" in run_with_nbval(prepared)


@pytest.mark.notebook
def test_the_gallery_runs(tmp_path):
    copy = tmp_path / "index.ipynb"
    copy.write_text((catalog.notebooks_folder() / "index.ipynb").read_text(encoding="utf-8"))
    assert "passed" in run_with_nbval(copy)


@pytest.mark.parametrize("slug", SLUGS)
def test_the_notebook_has_the_sections_in_order(slug):
    markdown = "\n".join(
        notebooks.source(c) for c in cells_of(slug) if c["cell_type"] == "markdown"
    )
    headings = re.findall(r"(?m)^## (.+)$", markdown)
    assert headings == SECTIONS
    assert len(re.findall(r"(?m)^# ", markdown)) == 1
    assert "![](" not in markdown, "images have alternative texts"
    assert catalog.find(slug).link in markdown


@pytest.mark.parametrize("slug", SLUGS)
def test_cells_are_short_and_some_output_is_compared(slug):
    code = [c for c in cells_of(slug) if c["cell_type"] == "code"]
    long = [c["id"] for c in code if notebooks.source(c).count("\n") > 40]
    assert set(long) <= {c["id"] for c in code if "parameters" in notebooks.tags(c)}
    compared = [c for c in code if notebooks.COMPARED in notebooks.source(c)]
    assert compared and all(c["outputs"] for c in compared)
    assert sum("measure" in notebooks.tags(c) for c in code) == 1


@pytest.mark.parametrize("slug", SLUGS)
def test_papermill_reads_every_parameter_of_the_notebook(slug):
    found = papermill.inspect_notebook(str(catalog.notebooks_folder() / f"{slug}.ipynb"))
    assert list(found) == catalog.load(slug).Parameters.names()


def exercises_of(slug):
    """(stub cell, solution) of each exercise, as sources."""
    cells = cells_of(slug)
    for number, cell in enumerate(cells):
        if "exercise" in notebooks.tags(cell):
            following = notebooks.source(cells[number + 1])
            yield (
                notebooks.source(cell),
                re.search(r"```python\n(.*?)```", following, re.S).group(1),
            )


@pytest.mark.parametrize("slug", SLUGS)
def test_exercises_fail_politely_as_stubs_and_are_solved_by_their_solutions(slug):
    imports = next(
        notebooks.source(c) for c in cells_of(slug) if "from_notebook" in notebooks.source(c)
    )
    lines = [line for line in imports.splitlines() if line.startswith(("import ", "from "))]
    found = list(exercises_of(slug))
    assert 3 <= len(found) <= 5
    for stub, solution in found:
        namespace: dict = {}
        exec("\n".join(lines), namespace)
        *definition, question = ast.parse(stub).body
        exec(compile(ast.Module(definition, []), "stub", "exec"), namespace)
        ask = compile(ast.Expression(question.value), "check", "eval")
        outcome = eval(ask, namespace)
        assert outcome.status == exercises.UNSOLVED, stub
        assert "Hint" in outcome.message
        exec(solution, namespace)
        outcome = eval(ask, namespace)
        assert outcome.status == exercises.SOLVED, f"{outcome}\n{solution}"
