"""The scorecard: the claims of all methods, from results files of reports or of the stored runs.

As text, page, JSON and Markdown. The stored runs are the results files of one report of each
method, kept in `notebooks/results`: README and gallery show them where a user has no reports yet.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workbench import catalog, results
from workbench.claims import FAILS, HOLDS, NOT_TESTED, Claim, Claims, format_measured
from workbench.files import write
from workbench.theme import VERDICTS

Record = dict[str, Any]


def claims_of(record: Record) -> Claims:
    """The claims of a results record as objects that can show themselves."""
    return Claims(Claim(**claim) for claim in record["claims"])


def read(folder: str | Path) -> list[Record]:
    """Records of all results files below `folder`, by method, oldest first.

    Each has one more entry, `report`: path of the page beside it, or None. Raises ValueError when
    there are no reports, and for a results file whose claims cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"no folder {folder}; make reports first: workbench report SLUG --out DIR")
    found = []
    for path in sorted(folder.rglob("*.json")):
        try:
            record = results.read_json(path)
        except ValueError:  # some other JSON file: not ours to judge
            continue
        try:
            claims_of(record)
        except TypeError as error:
            raise ValueError(f"the claims in {path} cannot be read: {error}") from None
        page = path.with_suffix(".html")
        record["report"] = str(page) if page.exists() else None
        found.append((record["slug"], path.stat().st_mtime, record))
    if not found:
        raise ValueError(f"no reports in {folder}; make one: workbench report SLUG --out {folder}")
    return [record for *_, record in sorted(found, key=lambda entry: entry[:2])]


def latest(records: Sequence[Record]) -> dict[str, Record]:
    """The newest record of each method."""
    return {record["slug"]: record for record in records}


def stored_folder() -> Path:
    """Where the stored runs are."""
    return catalog.notebooks_folder() / "results"


def stored() -> list[Record]:
    """Records of the stored runs, in the order of the catalog."""
    try:
        found = latest(read(stored_folder()))
    except ValueError:
        return []
    return [found[m.slug] for m in catalog.methods() if m.slug in found]


def store(records: Sequence[Record]) -> list[Path]:
    """Keep the newest whole run of each method's unchanged default preset; returns the files.

    Raises ValueError when there is none.
    """
    fit = [r for r in records if r["preset"] == "default" and not r["changed"] and r["complete"]]
    if not fit:
        there = ", ".join(f"{r['slug']} ({_preset(r)})" for r in records)
        raise ValueError(
            "nothing to store: only whole runs of the unchanged default preset are, "
            f"and there are: {there}"
        )
    return [
        write(
            stored_folder() / f"{slug}.json",
            json.dumps({k: v for k, v in record.items() if k != "report"}, indent=1) + "\n",
        )
        for slug, record in latest(fit).items()
    ]


def run_quick() -> list[Record]:
    """Run the quick preset of every method and return the records; `ReportFailed` if one fails."""
    from workbench import reports
    from workbench.steps import Progress

    records = []
    with tempfile.TemporaryDirectory() as folder:
        for method in catalog.methods():
            parameters = catalog.load(method.slug).Parameters.preset("quick")
            with Progress(method.slug) as progress:
                made = reports.make(parameters, folder, on_step=progress)
            records.append({**results.read_json(made.results), "report": None})
            print(f"{method.slug}: {claims_of(records[-1]).held()}", file=sys.stderr)
    return records


def in_short(record: Record) -> str:
    """For example `5 of 7 hold (2 not tested) · your report, quick preset`."""
    origin = "stored run" if not record.get("report") else "your report"
    return f"{claims_of(record).held()} · {origin}, preset {_preset(record)}"


def as_text(records: Sequence[Record]) -> str:
    """The scorecard for a terminal."""
    blocks = []
    for record in records:
        claims = claims_of(record)
        head = f"{record['slug']} ({_preset(record)}, {_seconds(record)}): {claims.held()}"
        blocks.append(f"{head}\n{claims}")
    return "\n\n".join([*blocks, f"in all: {_all(records).held()}"])


def as_json(records: Sequence[Record]) -> dict[str, Any]:
    """The scorecard for a program: `methods` (the records) and `summary`, each with counts.

    A figure of a paper that is unknown is null, as is what was not measured.
    """
    runs = [{**r, "title": _title(r), "summary": _counts(claims_of(r))} for r in records]
    return {"summary": _counts(_all(records)), "methods": runs}


def as_html(records: Sequence[Record], folder: str | Path = ".") -> str:
    """The scorecard as one page that needs no network; links to reports start from `folder`."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    rows = []
    for record in records:
        claims = claims_of(record)
        counts = _counts(claims)
        rows.append(
            {
                "title": _title(record),
                "method": _method(record),
                "held": claims.held(),
                "bar": [
                    (counts["holds"], VERDICTS[HOLDS][0]),
                    (counts["fails"], VERDICTS[FAILS][0]),
                    (counts["not_tested"], "transparent"),
                ],
                "preset": _preset(record),
                "seed": record.get("seed", "unknown"),
                "seconds": _seconds(record),
                "complete": record.get("complete", True),
                "versions": ", ".join(f"{k} {v}" for k, v in record.get("versions", {}).items())
                or "unknown",
                "link": _link(record, folder),
                "table": Markup(claims._repr_html_()),
            }
        )
    page = Environment(loader=PackageLoader("workbench", "templates"), autoescape=True)
    return page.get_template("scorecard.html").render(
        rows=rows, held=_all(records).held(), methods=len(latest(records))
    )


def as_markdown(records: Sequence[Record], notebooks: str = "") -> str:
    """The scorecard for README and gallery; links start with the folder `notebooks`."""
    lines = [
        f"In all {_all(records).held()}. These are the stored runs; yours may differ.",
        "",
        "| method | holds | fails | not tested | preset | seed | study |",
        "|---|---|---|---|---|---|---|",
    ]
    for record in records:
        counts = _counts(claims_of(record))
        cells = [
            f"[{_title(record)}]({notebooks}{record['slug']}.ipynb)",
            *(str(counts[name]) for name in ("holds", "fails", "not_tested")),
            _preset(record),
            str(record["seed"]),
            _seconds(record),
        ]
        lines.append(_row(cells))
    for record in records:
        title = f"{_title(record)}: each of the {len(record['claims'])} claims"
        lines += [
            "",
            f"<details><summary>{title}</summary>",
            "",
            "| verdict | claim | paper's figure | measured here [95 %] | threshold |",
            "|---|---|---|---|---|",
        ]
        for claim in claims_of(record):
            cells = [claim.statement, claim.paper or "unknown", format_measured(claim)]
            # A line may break after the dash of "not tested": in a narrow column it would.
            sign = "" if claim.verdict == NOT_TESTED else f"{VERDICTS[claim.verdict][1]} "
            verdict = f"{sign}{claim.verdict}".replace(" ", "&nbsp;")
            lines.append(_row([verdict, *map(_markdown, [*cells, claim.threshold])]))
        versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
        lines += ["", f"Versions: {versions}.", "", "</details>"]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    """Plain text for a cell of a Markdown table."""
    return re.sub(r"([\\`*_$|<>~])", r"\\\1", " ".join(text.split()))


def _all(records: Sequence[Record]) -> Claims:
    return Claims(claim for record in records for claim in claims_of(record))


def _counts(claims: Claims) -> dict[str, int]:
    holds, fails, rest = (sum(c.verdict == v for c in claims) for v in (HOLDS, FAILS, NOT_TESTED))
    return {"holds": holds, "fails": fails, "tested": holds + fails, "not_tested": rest}


def _method(record: Record) -> catalog.Method | None:
    """None for the results of a method that this version does not have."""
    return next((m for m in catalog.methods() if m.slug == record["slug"]), None)


def _title(record: Record) -> str:
    method = _method(record)
    return method.title.split(":")[0] if method else record["slug"]


def _preset(record: Record) -> str:
    changed = len(record.get("changed", []))
    return f"{record.get('preset', 'unknown')}{f', {changed} changed' if changed else ''}"


def _seconds(record: Record) -> str:
    return f"{record['seconds']:.0f} s" if "seconds" in record else "unknown"


def _link(record: Record, folder: str | Path) -> str:
    """Address of the report of a record, from a page in `folder`; empty without a report."""
    if not record.get("report"):
        return ""
    return quote(Path(os.path.relpath(record["report"], folder)).as_posix())
