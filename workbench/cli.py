"""The command line: `workbench VERB` makes reports, sweeps and scorecards, serves apps, keeps data.

Each verb is a thin skin over the module that does the work. Exit codes: 0 good, 1 a run failed,
2 bad input (one line on standard error). Nothing heavy is imported until a verb needs it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from workbench import __version__, catalog
from workbench.parameters import ParameterError, Parameters, nearest

GOOD, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


class _Parser(argparse.ArgumentParser):
    """argparse whose errors are one line with the nearest valid word."""

    def error(self, message: str) -> NoReturn:
        if "invalid choice: " in message:
            given = message.split("invalid choice: ")[1].split(" ")[0].strip("'")
            verbs = next(a.choices for a in self._actions if isinstance(a.choices, dict))
            hint = nearest(given, verbs) or f"; there are: {', '.join(verbs)}"
            message = f"unknown command '{given}'{hint}"
        elif message.startswith("unrecognized arguments: "):
            word = message.removeprefix("unrecognized arguments: ").split()[0]
            subparsers = next(a for a in self._actions if isinstance(a.choices, dict))
            options = {o for p in subparsers.choices.values() for o in p._option_string_actions}
            hint = nearest(word, options)
            message = f"unknown option or extra word '{word}'{hint}"
        raise ValueError(message)


def parser() -> argparse.ArgumentParser:
    """The parser of all verbs."""
    top = _Parser(prog="workbench", description=__doc__.splitlines()[0], allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"workbench {__version__}")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    def verb(name: str, run: Any, text: str, json_too: bool = False) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(run=run)
        if json_too:
            sub.add_argument("--json", action="store_true", help="print JSON for a program")
        return sub

    verb("list", _list, "List the methods.", True)
    show = verb("show", _show, "Show a method's parameters, bounds, units and presets.", True)
    show.add_argument("slug", metavar="SLUG")

    report = verb("report", _report, "Run a method's notebook and write a report.", True)
    report.add_argument("slug", metavar="SLUG")
    report.add_argument("--preset", default="default", metavar="NAME", help="quick, default, full")
    report.add_argument(
        "-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
        help="set one parameter; may be repeated",
    )  # fmt: skip
    report.add_argument("-f", "--file", metavar="FILE.yaml", help="parameters as a YAML mapping")
    report.add_argument("--out", default="reports", metavar="DIR", help="folder (default: reports)")
    report.add_argument("--pdf", action="store_true", help="a PDF too (needs Chromium or Chrome)")
    report.add_argument("--show-code", action="store_true", help="keep the code in the HTML")
    report.add_argument("--timeout", type=_seconds, metavar="S", help="stop after S seconds")

    sweep = verb("sweep", _sweep, "Run a report for each point of a grid of parameters.", True)
    sweep.add_argument("slug", metavar="SLUG")
    sweep.add_argument(
        "-g", "--grid", action="append", default=[], metavar="NAME=VALUES",
        help="values of one parameter: V1,V2,... or low:high:count[:log]; may be repeated",
    )  # fmt: skip
    sweep.add_argument("--seeds", type=int, default=1, metavar="N", help="seeds at each point")
    sweep.add_argument("--preset", default="default", metavar="NAME", help="quick, default, full")
    sweep.add_argument(
        "-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
        help="set one parameter at all points; may be repeated",
    )  # fmt: skip
    sweep.add_argument("-f", "--file", metavar="FILE.yaml", help="parameters as a YAML mapping")
    where = sweep.add_mutually_exclusive_group()
    where.add_argument("--workers", type=int, metavar="N", help="processes on this machine")
    where.add_argument("--scheduler", metavar="ADDRESS", help="a dask scheduler, tcp://HOST:PORT")
    sweep.add_argument(
        "--out", metavar="DIR", help="folder or address (s3://, gs:// ...); default: sweeps/SLUG"
    )
    sweep.add_argument("--resume", action="store_true", help="run only what is missing or failed")
    sweep.add_argument("--dry-run", action="store_true", help="say what it would run and cost")
    sweep.add_argument("--timeout", type=_seconds, metavar="S", help="stop a point after S seconds")

    score = verb("scorecard", _scorecard, "The claims of all methods and their verdicts.", True)
    score.add_argument(
        "folder", nargs="?", metavar="DIR",
        help="folder of reports to read; without it, the quick preset of every method is run",
    )  # fmt: skip
    score.add_argument("--html", metavar="FILE", help="write the scorecard as one page too")
    score.add_argument(
        "--store", action="store_true",
        help="keep the default runs in DIR as those that README and gallery show (contributors)",
    )  # fmt: skip

    app = verb("app", _app, "Serve the explorers as web pages on this machine.")
    app.add_argument("slug", nargs="?", metavar="SLUG")
    app.add_argument("--port", type=int, default=0, help="0 (default) takes a free one")
    app.add_argument("--no-browser", action="store_true", help="do not open a browser")
    app.add_argument(
        "--address", default="127.0.0.1", metavar="A",
        help="where to listen (default: this machine alone); 0.0.0.0 is everywhere",
    )  # fmt: skip
    app.add_argument(
        "--allow-origin", action="append", default=[], metavar="HOST[:PORT]",
        help="let in pages served under another name, such as a proxy's; may be repeated",
    )  # fmt: skip

    lab = verb("lab", _lab, "Open JupyterLab, on a method's notebook if one is named.")
    lab.add_argument("slug", nargs="?", metavar="SLUG")

    _data_parser(verb("data", _data_list, "The papers' own data, kept in a cache folder."))

    doctor = verb("doctor", _doctor, "Check this installation.", True)
    doctor.add_argument("--out", default="reports", metavar="DIR", help="folder to try writing to")

    sync = verb("sync", _sync, "Bring notebooks in line with the package (for contributors).")
    sync.add_argument("--check", action="store_true", help="change nothing; exit 1 if out of line")
    sync.add_argument(
        "--outputs",
        metavar="SLUG",
        help="run that notebook and store the outputs of compared cells",
    )
    return top


def _data_parser(data: argparse.ArgumentParser) -> None:
    """The verbs of `workbench data`."""
    verbs = data.add_subparsers(dest="data_verb", required=True, metavar="COMMAND")

    def verb(name: str, run: Any, text: str, names: str | None = None) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=text, description=text, allow_abbrev=False)
        sub.set_defaults(run=run)
        if names:
            sub.add_argument("names", nargs=names, metavar="NAME", help="of a data set")
        return sub

    listing = verb("list", _data_list, "Data sets: license, size, source, SHA-256, present or not.")
    listing.add_argument("--json", action="store_true", help="print JSON for a program")
    verb("fetch", _data_fetch, "Download data sets and verify them.", "+")
    verb("where", _data_where, "The cache folder, or the files of a data set.", "?")
    clean = verb("clean", _data_clean, "Remove data sets from the cache.", "*")
    clean.add_argument("--all", action="store_true", help="all data sets")
    clean.add_argument("--yes", action="store_true", help="do not ask")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `workbench` command; returns the exit code."""
    try:
        chosen = parser().parse_args(arguments)
        return chosen.run(chosen)
    except (ValueError, ParameterError) as error:
        print(f"workbench: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("\nworkbench: interrupted; nothing was left half-written", file=sys.stderr)
        return INTERRUPTED


def _print_json(value: Any) -> int:
    print(json.dumps(value, indent=1))
    return GOOD


def _list(chosen: argparse.Namespace) -> int:
    methods = catalog.methods()
    if chosen.json:
        return _print_json(
            [
                {
                    "slug": m.slug,
                    "title": m.title,
                    "theme": m.theme,
                    "paper": m.paper,
                    "notebook": str(m.notebook),
                    "minutes": vars(m.minutes),
                }
                for m in methods
            ]
        )
    theme = None
    for m in methods:
        if m.theme != theme:
            theme = m.theme
            print(theme)
        print(f"  {m.slug:24} {m.summary}")
    return GOOD


def _parameters_class(slug: str) -> type[Parameters]:
    return catalog.load(slug).Parameters


def _show(chosen: argparse.Namespace) -> int:
    method = catalog.find(chosen.slug)
    declared = _parameters_class(method.slug)
    rows = declared.describe()
    if chosen.json:
        return _print_json({"slug": method.slug, "parameters": rows, "presets": declared.presets})
    print(f"{method.title}\n{method.summary}\n{method.paper}  {method.link}\n")
    width = max(len(row["name"]) for row in rows)
    group = None
    for row in rows:
        if row["group"] != group:
            group = row["group"]
            print(f"{group}")
        allowed = declared.param[row["name"]].allowed()
        print(f"  {row['name']:{width}}  {row['default']!s:>10}  {row['doc']} ({allowed})")
    print("\nPresets")
    for name, changes in declared.presets.items():
        text = ", ".join(f"{k}={v}" for k, v in changes.items()) or "the values above"
        print(f"  {name:{width}}  {text}")
    return GOOD


def _chosen_parameters(chosen: argparse.Namespace) -> Parameters:
    """Preset, then the file, then -p: later ones win."""
    return _parameters_class(chosen.slug).preset(chosen.preset, **_changes(chosen))


def _changes(chosen: argparse.Namespace) -> dict[str, Any]:
    """What the file and -p set."""
    declared = _parameters_class(chosen.slug)
    changes: dict[str, Any] = {}
    if chosen.file:
        import yaml

        try:
            found = yaml.safe_load(Path(chosen.file).read_text(encoding="utf-8")) or {}
        except OSError as error:
            raise ValueError(f"cannot read {chosen.file}: {error.strerror}") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{chosen.file} is not YAML: {reason}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{chosen.file} must be a mapping 'name: value', one per line")
        changes.update((str(k), declared.parse(str(k), v)) for k, v in found.items())
    changes.update((name, declared.parse(name, text)) for name, text in chosen.parameter)
    return changes


def _report(chosen: argparse.Namespace) -> int:
    parameters = _chosen_parameters(chosen)
    if parameters.caution():
        print(f"workbench: note: {parameters.caution()}", file=sys.stderr)
    from workbench import reports
    from workbench.steps import Progress

    try:
        with Progress(parameters.slug) as progress:
            made = reports.make(
                parameters,
                chosen.out,
                pdf=chosen.pdf,
                show_code=chosen.show_code,
                timeout_s=chosen.timeout,
                on_step=progress,
            )
    except reports.ReportFailed as error:
        print(f"workbench: {error}", file=sys.stderr)
        if error.notebook:
            print(f"The partial run is kept: {error.notebook}", file=sys.stderr)
        return FAILED
    paths = {k: str(v) for k, v in vars(made).items() if v}
    if chosen.json:
        return _print_json(paths)
    from workbench.results import read_json
    from workbench.scorecard import claims_of

    print(claims_of(read_json(made.results)))
    for kind, path in paths.items():
        print(f"{kind:9} {path}")
    return GOOD


def _sweep(chosen: argparse.Namespace) -> int:
    if chosen.workers is not None and chosen.workers < 1:
        raise ValueError(f"--workers {chosen.workers} is not allowed: at least 1")
    from workbench import grids

    declared = _parameters_class(chosen.slug)
    changes, grid = _changes(chosen), grids.parse(declared, chosen.grid)
    points = grids.points(chosen.slug, grid, chosen.seeds, chosen.preset, **changes)
    if points[0].parameters.caution():
        print(f"workbench: note: {points[0].parameters.caution()}", file=sys.stderr)
    from workbench import steps, sweeps

    out = chosen.out or f"sweeps/{points.slug}"
    where = {"workers": chosen.workers, "scheduler": chosen.scheduler, "resume": chosen.resume}
    if chosen.dry_run:
        plan = sweeps.expected(points, out, **where)
        return _print_json(plan) if chosen.json else _print_plan(points, plan)
    try:
        # The time left is in the message: that of the bar knows nothing of points side by side.
        with (
            steps.termination_as_interrupt(),
            steps.Progress(points.slug, remaining=False) as progress,
        ):
            work = sweeps.sweep_steps(points, out, timeout_s=chosen.timeout, **where)
            made = steps.run(work, progress)
    except steps.Cancelled:
        finished = len(sweeps.Store(out).points_with(f"{points.slug}.json"))
        print(
            f"\nworkbench: interrupted; {finished} of {len(points)} points are finished and kept: "
            "the same command with --resume goes on",
            file=sys.stderr,
        )
        return INTERRUPTED
    if chosen.json:
        _print_json(vars(made))
    else:
        print(f"{len(points)} points: {made.finished} done, {len(made.failed)} failed")
        for kind in ("index", "parquet", "csv"):
            print(f"{kind:9} {getattr(made, kind)}")
    for name, error in made.failed.items():
        print(f"workbench: failed: {name}: {error}", file=sys.stderr)
    return FAILED if made.failed else GOOD


def _print_plan(points: Any, plan: dict[str, Any]) -> int:
    print(points.words())
    for point in points:
        print(f"  {point.name}{'' if point.name in plan['left'] else '  (finished)'}")
    print(f"{len(plan['left'])} of {len(points)} points to run, {plan['workers']} side by side")
    if plan["seconds"] is None:
        print(f"time and cost unknown: the method says nothing of its preset {points.preset}")
    else:
        print(
            f"expected: {plan['seconds'] / 60:.1f} min, {plan['core_hours']:.2g} core-hours "
            f"({plan['seconds_each']:.0f} s a point, {plan['basis']})"
        )
    return GOOD


def _scorecard(chosen: argparse.Namespace) -> int:
    from workbench import scorecard
    from workbench.files import write

    if chosen.store and not chosen.folder:
        raise ValueError("--store needs a folder of reports: workbench scorecard DIR --store")
    try:
        records = scorecard.read(chosen.folder) if chosen.folder else scorecard.run_quick()
    except RuntimeError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return FAILED
    made = scorecard.store(records) if chosen.store else []
    if chosen.html:
        page = Path(chosen.html).expanduser().resolve()
        made.append(write(page, scorecard.as_html(records, page.parent)))
    if chosen.json:
        return _print_json(scorecard.as_json(records))
    print(scorecard.as_text(records))
    for path in made:
        print(f"written   {path}")
    return GOOD


def _app(chosen: argparse.Namespace) -> int:
    slug = catalog.find(chosen.slug).slug if chosen.slug else None
    from workbench import app

    app.serve(
        slug,
        port=chosen.port,
        address=chosen.address,
        allow_origins=chosen.allow_origin,
        open_browser=not chosen.no_browser,
    )
    return GOOD


def _lab(chosen: argparse.Namespace) -> int:
    import subprocess

    folder = catalog.notebooks_folder()
    target = catalog.find(chosen.slug).notebook if chosen.slug else folder / "index.ipynb"
    command = [sys.executable, "-m", "jupyterlab", f"--notebook-dir={folder}", str(target)]
    return GOOD if subprocess.run(command, check=False).returncode == 0 else FAILED


def _data_list(chosen: argparse.Namespace) -> int:
    from workbench import data

    if chosen.json:
        return _print_json([data_set.describe() for data_set in data.DATA_SETS])
    print(f"In {data.cache_folder()} (WORKBENCH_DATA names another folder)")
    for d in data.DATA_SETS:
        here = "present" if d.present else "-"
        print(f"\n{d.name:16} {here:8} {data.size_text(d.size):>12}  {d.method:14} {d.title}")
        print(f"    license: {d.license}")
        for file in d.describe()["files"]:
            recorded = file["recorded_sha256"]
            unknown = f"{recorded} (recorded)" if recorded else "unknown, recorded on first use"
            print(f"    {file['url']} ({data.size_text(file['size'])})")
            print(f"        SHA-256 {file['sha256'] or unknown}")
    return GOOD


def _data_fetch(chosen: argparse.Namespace) -> int:
    from workbench import data

    data_sets = [data.find(name) for name in chosen.names]
    try:
        for d in data_sets:
            data.fetch(d.name)
            for file in d.describe()["files"]:
                first = "" if file["sha256"] else ", trusted and recorded on first use"
                sha256 = file["sha256"] or file["recorded_sha256"]
                print(f"{file['path']}  SHA-256 {sha256}{first}")
    except data.DataError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("\nworkbench: interrupted; the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    return GOOD


def _data_where(chosen: argparse.Namespace) -> int:
    from workbench import data

    if not chosen.names:
        print(data.cache_folder())
        return GOOD
    d = data.find(chosen.names)
    for file in d.files:
        print(d.path(file))
    if not d.present:
        print(f"workbench: absent: `workbench data fetch {d.name}`", file=sys.stderr)
    return GOOD


def _data_clean(chosen: argparse.Namespace) -> int:
    from workbench import data

    if bool(chosen.names) == chosen.all:
        raise ValueError("data clean needs names of data sets, or --all, not both")
    names = [d.name for d in data.DATA_SETS] if chosen.all else chosen.names
    data_sets = [data.find(name) for name in names]
    found = {path: size for d in data_sets for path, size in data.held(d).items()}
    if not found:
        print("nothing to remove")
        return GOOD
    for path, size in found.items():
        print(f"{path} ({data.size_text(size)})")
    total = data.size_text(sum(found.values()))
    if not chosen.yes:
        try:
            answer = input(f"Remove what is listed and free {total}? [y/N] ")
        except EOFError:
            answer = ""
        if answer.strip().lower() not in ("y", "yes"):
            print("nothing was removed")
            return GOOD
    try:
        freed = sum(data.clean(d) for d in data_sets)
    except OSError as error:
        print(f"workbench: cannot remove all: {error}", file=sys.stderr)
        return FAILED
    print(f"{data.size_text(freed)} freed")
    return GOOD


def _doctor(chosen: argparse.Namespace) -> int:
    from workbench import doctor

    checks = doctor.examine(Path(chosen.out))
    if chosen.json:
        _print_json([vars(c) for c in checks])
    else:
        for c in checks:
            print(f"{'ok ' if c.ok else 'NO ' if c.needed else '-  '} {c.name:22} {c.detail}")
    return GOOD if all(c.ok for c in checks if c.needed) else FAILED


def _sync(chosen: argparse.Namespace) -> int:
    from workbench import notebooks

    if chosen.outputs:
        notebooks.store_outputs(catalog.find(chosen.outputs).slug)
    stale = notebooks.sync(write=not chosen.check)
    for line in stale:
        print(line)
    return FAILED if chosen.check and stale else GOOD


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not allowed: a number of seconds above 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
