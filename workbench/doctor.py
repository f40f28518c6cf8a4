"""Is this installation able to do its work: versions, kernel, write access, optional extras."""

from __future__ import annotations

import importlib.util
import platform
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from workbench import catalog, results


@dataclass(frozen=True)
class Check:
    """One finding; `needed` tells whether the workbench can work without it."""

    name: str
    ok: bool
    detail: str
    needed: bool = True


def examine(out: Path) -> list[Check]:
    """All checks; nothing is changed."""
    supported = (3, 11) <= sys.version_info < (3, 14)
    found = results.versions()
    wanted = [name for name in results.LIBRARIES if name not in found]
    checks = [
        Check("python", supported, f"{platform.python_version()} (3.11 to 3.13 are supported)"),
        Check("libraries", not wanted, _libraries(found, wanted)),
        Check("methods", bool(catalog.methods()), ", ".join(m.slug for m in catalog.methods())),
        _notebooks(),
        _kernel(),
        _write_access(out),
        _data_cache(),
        _browser(),
    ]
    for extra, module, unlocks in [
        ("vision", "torchvision", "pretrained networks for rising_attack"),
        ("peers", "quantecon", "the other libraries in tables of rank_one_vi and benchmarks"),
        ("official", "h5py", "the official files of pas"),
        ("jax", "jaxdp", "a co-author's planner in the tables of rank_one_vi"),
        ("dev", "pytest", "the tests"),
    ]:
        present = importlib.util.find_spec(module) is not None
        verb = "unlocks" if present else f"missing: pip install 'workbench[{extra}]' unlocks"
        checks.append(Check(f"extra {extra}", present, f"{verb} {unlocks}", needed=False))
    return checks


def _libraries(found: dict[str, str], wanted: list[str]) -> str:
    if wanted:
        return f"missing: {', '.join(wanted)}"
    return ", ".join(f"{name} {version}" for name, version in found.items() if name != "python")


def _notebooks() -> Check:
    missing = [m.slug for m in catalog.methods() if not m.notebook.exists()]
    detail = f"missing: {', '.join(missing)}" if missing else str(catalog.notebooks_folder())
    return Check("notebooks", not missing, detail)


def _kernel() -> Check:
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        return Check("kernel", False, "no 'python3' kernel: pip install ipykernel")
    return Check("kernel", True, spec.argv[0])


def _write_access(out: Path) -> Check:
    folder = next(p for p in (out.resolve(), *out.resolve().parents) if p.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check("write access", True, str(out.resolve()))
    except OSError as error:
        return Check("write access", False, f"{folder}: {error.strerror}")


def _data_cache() -> Check:
    from workbench import data

    folder = data.cache_folder()
    writable = _write_access(folder)
    present = [d.name for d in data.DATA_SETS if d.present]
    held = ", ".join(present) or "no data sets yet (workbench data list)"
    detail = f"{folder}: {held}" if writable.ok else writable.detail
    return Check("data cache", writable.ok, detail, needed=False)


def _browser() -> Check:
    from workbench.reports import find_browser

    found = find_browser()
    detail = (
        f"{found} (unlocks --pdf)" if found else "no Chromium or Chrome: --pdf is not available"
    )
    return Check("browser", found is not None, detail, needed=False)
