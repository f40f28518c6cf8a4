"""The floors of the house: each module imports only from below, and the top stays light."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workbench"
INTERFACE = {"panel", "holoviews", "bokeh", "ipywidgets", "anywidget", "matplotlib", "IPython"}
HEAVY = INTERFACE | {"torch", "numba", "papermill", "nbformat", "nbconvert", "sklearn", "scipy"}
MODULES = sorted(PACKAGE.rglob("*.py"))
METHOD_MODULES = [m for m in MODULES if m.parent.parent.name == "methods"]
UPSTAIRS = {"reports", "sweeps", "app", "cli", "kernels", "explorer", "scorecard", "doctor"}
STUDY = {"study.py", "findings.py", "weights.py"}  # the floor of the study
VIEWS = {
    "views.py", "live.py", "landscape.py", "mixer.py", "polytope.py", "benches.py", "tabs.py",
    "tabs_digits.py", "tabs_linear.py", "tabs_trained.py",
}  # fmt: skip


def imported(path: Path, everywhere: bool = False) -> set[str]:
    """Full names of modules that a file imports, at its top or anywhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ".".join(path.relative_to(ROOT).with_suffix("").parts[:-1])
    found = set()
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parent, base]).rstrip(".")
            found |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return found


def tops(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("path", METHOD_MODULES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_methods_import_no_interface_below_their_views_and_no_other_method(path):
    everywhere = imported(path, everywhere=True)
    if path.name not in VIEWS:
        assert not tops(everywhere) & INTERFACE
        assert not {n.split(".")[1] for n in everywhere if n.startswith("workbench.")} & UPSTAIRS
    others = {
        n.split(".")[2]
        for n in everywhere
        if n.startswith("workbench.methods.") and len(n.split(".")) > 2
    }
    assert others <= {path.parent.name}


def test_algorithms_do_not_import_the_study_and_views_do_not_reach_upstairs():
    for path in METHOD_MODULES:
        names = imported(path, everywhere=True)
        own = {n.rsplit(".", 1)[-1] for n in names if n.startswith("workbench.methods.")}
        if path.name not in VIEWS | STUDY | {"__init__.py"}:
            assert not own & {"study", "views", "live", "landscape"}, path
        if path.name == "study.py":
            assert not own & {"views", "live", "landscape"}, path


def test_numerics_import_nothing_of_the_workbench_but_themselves():
    for path in (PACKAGE / "numerics").glob("*.py"):
        ours = {n for n in imported(path, everywhere=True) if n.startswith("workbench")}
        assert all(n.startswith("workbench.numerics") for n in ours), path


@pytest.mark.parametrize(
    "name",
    ["__init__.py", "cli.py", "catalog.py", "parameters.py", "steps.py", "theme.py", "results.py"],
)
def test_the_light_modules_import_nothing_heavy_at_their_top(name):
    assert not tops(imported(PACKAGE / name)) & HEAVY


@pytest.mark.parametrize("command", [["list"], ["show", "neural_cpm"]])
def test_list_and_show_load_nothing_heavy(command):
    code = (
        "import sys, json, contextlib, io\n"
        "from workbench.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main({command!r})\n"
        "print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert not set(json.loads(output)) & HEAVY
