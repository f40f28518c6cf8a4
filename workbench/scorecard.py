"""The scorecard: the claims of all methods, gathered from the results files of reports."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from workbench import catalog, results
from workbench.claims import Claim, Claims


def claims_of(record: dict[str, Any]) -> Claims:
    """The claims of a results record as objects that can show themselves."""
    return Claims(Claim(**claim) for claim in record["claims"])


def read(folder: str | Path) -> list[dict[str, Any]]:
    """Records of all results files below `folder`, by method; ValueError when there are none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"no folder {folder}; make reports first: workbench report SLUG --out DIR")
    records = []
    for path in sorted(folder.rglob("*.json")):
        try:
            records.append(results.read_json(path))
        except ValueError:  # some other JSON file: not ours to judge
            continue
    if not records:
        raise ValueError(f"no reports in {folder}; make one: workbench report SLUG --out {folder}")
    return records


def run_quick() -> list[dict[str, Any]]:
    """Run the quick preset of every method and return the records; `ReportFailed` if one fails."""
    from workbench import reports
    from workbench.steps import Progress

    records = []
    with tempfile.TemporaryDirectory() as folder:
        for method in catalog.methods():
            parameters = catalog.load(method.slug).Parameters.preset("quick")
            with Progress(method.slug) as progress:
                made = reports.make(parameters, folder, on_step=progress)
            records.append(results.read_json(made.results))
            print(f"{method.slug}: {claims_of(records[-1]).held()}", file=sys.stderr)
    return records


def as_text(records: list[dict[str, Any]]) -> str:
    """The scorecard for a terminal."""
    blocks = []
    for record in records:
        claims = claims_of(record)
        head = f"{record['slug']} ({record['preset']}, {record['seconds']:.0f} s): {claims.held()}"
        blocks.append(f"{head}\n{claims}")
    return "\n\n".join(blocks)
