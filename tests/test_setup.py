"""Set-up: pins agree everywhere, Binder's build is what it should be, the storage policy holds."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from workbench import catalog, notebooks

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def canonical_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {
        canonical_name(line.split("==")[0]): line.split("==")[1] for line in lines if "==" in line
    }


def direct(requirements: list[str]) -> list[str]:
    names = [canonical_name(re.split(r"[<>=\[ ]", r)[0]) for r in requirements]
    return [name for name in names if name != "workbench"]  # an extra of our own


def test_every_direct_dependency_is_pinned():
    project = PYPROJECT["project"]
    wanted = direct(project["dependencies"] + project["optional-dependencies"]["dev"])
    assert [name for name in wanted if name not in pins()] == []


def test_the_environment_has_the_same_pins_and_torch_for_the_cpu():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    conda = [d for d in environment["dependencies"] if isinstance(d, str)]
    assert [d for d in conda if d.startswith("pytorch")] == ["pytorch=2.*=cpu*"]
    pip = environment["dependencies"][-1]["pip"]
    found = {canonical_name(d.split("==")[0]): d.split("==")[1] for d in pip}
    wanted = set(direct(PYPROJECT["project"]["dependencies"])) - {"torch"}
    assert set(found) == wanted
    assert all(pins()[name] == version for name, version in found.items())


def test_binder_has_a_copy_of_the_environment():
    binder = ROOT / "binder" / "environment.yml"
    assert binder.read_text() == (ROOT / "environment.yml").read_text()
    assert not binder.is_symlink()


def test_repo2docker_builds_from_the_binder_folder(tmp_path):
    pytest.importorskip("repo2docker")
    made = subprocess.run(
        [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(ROOT)],
        capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    dockerfile = made.stdout + made.stderr
    assert "binder/environment.yml" in dockerfile
    assert "binder/postBuild" in dockerfile
    assert "binder/start" in dockerfile
    start = (ROOT / "binder" / "start").read_text()
    assert start.rstrip().endswith('exec "$@"')
    assert "--no-deps" in (ROOT / "binder" / "postBuild").read_text()


@pytest.mark.parametrize("path", sorted(catalog.notebooks_folder().glob("*.ipynb")), ids=str)
def test_notebooks_are_stored_by_the_policy(path):
    stored = path.read_text(encoding="utf-8")
    wanted = notebooks.canonical(notebooks.read(path), notebooks.generated_source(path.stem))
    assert stored == wanted, "run `workbench sync`"
    assert path.stat().st_size < notebooks.LIMIT_BYTES


def test_every_method_has_its_rooms():
    for method in catalog.methods():
        folder = ROOT / "workbench" / "methods" / method.slug
        assert (folder / "study.py").exists() and (folder / "views.py").exists()
        assert method.notebook.exists()
        assert method.thumbnail.exists()
        assert list((ROOT / "tests" / "methods").glob(f"test_{method.slug}*.py"))


def test_the_wheel_carries_notebooks_templates_and_scripts(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q",
         "-w", str(tmp_path), str(ROOT)], check=True,
    )  # fmt: skip
    import zipfile

    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "workbench/_notebooks/neural_cpm.ipynb" in names
    assert "workbench/_notebooks/results/neural_cpm.json" in names
    assert "workbench/launcher.svg" in names
    assert "workbench/templates/report.html" in names
    assert "workbench/widgets/lattice_view.js" in names
