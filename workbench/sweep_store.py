"""Where a sweep is kept: a folder on a disk or in any store that fsspec writes.

`sweep.json` says what the points are; `points/NAME/` holds the files of each. A point is finished
once its results file is there. Knows nothing of how points are run.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import __version__
from workbench.grids import Points

if TYPE_CHECKING:  # takes a second to import
    import pandas as pd

MANIFEST, ERROR = "sweep.json", "error.txt"
DONE, FAILED, MISSING = "done", "failed", "missing"


class Store:
    """A folder anywhere that fsspec writes. ValueError, in one line, when it cannot be used."""

    def __init__(self, out: str | Path):
        import fsspec

        self.out = str(out).rstrip("/")
        try:
            self.fs, self.root = fsspec.url_to_fs(self.out)
        except (ValueError, ImportError) as error:
            raise ValueError(f"cannot write to {self.out}: {error}") from None

    def address(self, name: str) -> str:
        return f"{self.out}/{name}"

    def read(self, name: str) -> bytes | None:
        try:
            return self.fs.cat_file(f"{self.root}/{name}")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, data: bytes) -> None:
        """A reader sees the old file or the whole new one: object stores put at once."""
        from fsspec.implementations.local import LocalFileSystem

        path = f"{self.root}/{name}"
        try:
            if isinstance(self.fs, LocalFileSystem):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                part = Path(f"{path}.part")
                part.write_bytes(data)
                os.replace(part, path)
            else:
                self.fs.pipe_file(path, data)
        except OSError as error:
            raise ValueError(f"cannot write to {self.out}: {error.strerror or error}") from None

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.fs.rm_file(f"{self.root}/{name}")

    def points_with(self, name: str) -> set[str]:
        """Names of the points in whose folder that file is."""
        self.fs.invalidate_cache()
        return {path.split("/")[-2] for path in self.fs.glob(f"{self.root}/points/*/{name}")}


def to_json(value: Any) -> bytes:
    """A value as indented JSON that ends with a line break."""
    return (json.dumps(value, indent=1) + "\n").encode()


def manifest_of(points: Points) -> dict[str, Any]:
    """What decides a sweep, as plain values: two sweeps with the same are one."""
    return {
        "slug": points.slug,
        "preset": points.preset,
        "grid": points.grid,
        "seeds": points.seeds,
        "changes": points.changes,
        "points": [{"name": p.name, "parameters": p.parameters.to_papermill()} for p in points],
    }


def read_manifest(store: Store) -> dict[str, Any] | None:
    """The manifest that the store holds, None if there is none; ValueError if it is damaged."""
    text = store.read(MANIFEST)
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        raise ValueError(f"{store.address(MANIFEST)} is not readable: not a sweep") from None


def finished_points(store: Store, points: Points, resume: bool) -> set[str]:
    """Names of the points that need not run; ValueError when `out` holds another sweep."""
    held = read_manifest(store)
    if held is None:
        if resume:
            raise ValueError(f"{store.out} holds no sweep to resume")
        return set()
    finished = store.points_with(f"{held['slug']}.json")
    if not resume:
        raise ValueError(
            f"{store.out} holds a sweep already ({len(finished)} of {len(held['points'])} points "
            "finished): go on with --resume, or choose another --out"
        )
    for name, ours in manifest_of(points).items():
        if held[name] != ours:
            differ = "" if name == "points" else f": {held[name]} there, {ours} here"
            raise ValueError(f"{store.out} holds another sweep, with other {name}{differ}")
    version = held["versions"]["workbench"]
    if version != __version__:
        raise ValueError(f"{store.out} was made by workbench {version}, this is {__version__}")
    return finished


def load(out: str | Path) -> pd.DataFrame:
    """The sweep in `out` as a table with one row per point, finished or not.

    Columns: the swept parameters, seed, status (done, failed, missing), seconds (of the report),
    error, report (relative to `out`), every value of the records, and for each claim ID the columns
    ID_measured, ID_low, ID_high and ID_verdict. Raises ValueError when `out` holds no sweep.
    """
    return load_all(Store(out))[2]


def load_all(store: Store) -> tuple[dict[str, Any], dict[str, dict[str, Any]], pd.DataFrame]:
    """Manifest, records by the name of their point, and the table."""
    import pandas as pd

    manifest = read_manifest(store)
    if manifest is None:
        raise ValueError(f"{store.out} holds no sweep: there is no {MANIFEST}")
    slug = manifest["slug"]
    records = records_of(store, slug, store.points_with(f"{slug}.json"))
    failed = store.points_with(ERROR)
    rows = []
    for point in manifest["points"]:
        name, record = point["name"], records.get(point["name"])
        row = {key: point["parameters"][key] for key in [*manifest["grid"], "seed"]}
        row |= {"status": MISSING, "seconds": None, "error": None, "report": None}
        if record:
            row["status"], row["seconds"] = DONE, record["report_seconds"]
            row["report"] = f"points/{name}/{slug}.html"
            for key, value in record["values"].items():
                row[f"value_{key}" if key in row else key] = value
            for claim in record["claims"]:
                for part in ("measured", "low", "high", "verdict"):
                    row[f"{claim['id']}_{part}"] = claim[part]
        elif name in failed:
            text = (store.read(f"points/{name}/{ERROR}") or b"").decode()
            row["status"], row["error"] = FAILED, text.split("\n")[0]
        rows.append(row)
    names = pd.Index([point["name"] for point in manifest["points"]], name="point")
    return manifest, records, pd.DataFrame(rows, index=names)


def records_of(store: Store, slug: str, names: set[str]) -> dict[str, dict[str, Any]]:
    """The results records of finished points, by name."""
    return {n: json.loads(store.read(f"points/{n}/{slug}.json") or b"") for n in sorted(names)}
