"""Reports: a run of a notebook with given parameters as one self-contained HTML file.

papermill runs the notebook, nbconvert renders it, and a page template puts parameters, claims and
citation around it. The page asks for nothing from a network: mathematics becomes MathML, images
are inlined. Files appear in the output folder only when they are complete.
"""

from __future__ import annotations

import base64
import datetime
import functools
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench import catalog, results
from workbench.claims import Claim, Claims
from workbench.parameters import Parameters
from workbench.steps import PROGRESS_MIME, Step

STILL = "WORKBENCH_STILL"  # set for kernels of reports: live views show a still instead
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NOT_IN_REPORT = "no-report"  # tag of cells that a report leaves out


@dataclass(frozen=True)
class Report:
    """Paths of what a report left behind."""

    html: Path
    notebook: Path
    results: Path
    pdf: Path | None = None


class ReportFailed(RuntimeError):
    """A run failed; the message is readable by a person, `notebook` is the partial run kept.

    line: the message in one line.
    """

    def __init__(self, message: str, notebook: Path | None = None, line: str = ""):
        super().__init__(message)
        self.notebook = notebook
        self.line = line or message


class KernelDied(ReportFailed):
    """The kernel was lost, which may be no fault of the notebook: worth another try."""


def make(
    parameters: Parameters,
    out: str | Path = "reports",
    *,
    pdf: bool = False,
    show_code: bool = False,
    timeout_s: float | None = None,
    on_step: Callable[[Step], None] | None = None,
    environment: dict[str, str] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Report:
    """Run the notebook of `parameters.slug` and write SLUG.ipynb, SLUG.html and SLUG.json to `out`.

    Raises ValueError for an output folder that cannot be used or a missing browser (`pdf`), before
    anything runs, and `ReportFailed` when a cell fails, the kernel dies (`KernelDied`) or
    `timeout_s` is over. environment: variables of the kernel, on top of those of this process.
    cancelled: asked twice a second; `Cancelled` is raised, with no kernel left, once it says True.
    """
    method = catalog.find(parameters.slug)
    browser = _browser() if pdf else None
    out = _writable(Path(out).expanduser().resolve())
    with tempfile.TemporaryDirectory(prefix=f".{method.slug}-", dir=out) as scratch:
        made = {s: Path(scratch) / f"{method.slug}.{s}" for s in ("ipynb", "html", "json", "pdf")}
        final = {s: out / path.name for s, path in made.items()}
        _execute(
            method,
            parameters,
            made["ipynb"],
            final["ipynb"],
            timeout_s=timeout_s,
            on_step=on_step,
            environment={**(environment or {}), STILL: "1"},
            cancelled=cancelled,
        )
        try:
            record = results.read(made["ipynb"])
        except ValueError as error:
            os.replace(made["ipynb"], final["ipynb"])
            raise ReportFailed(f"{method.slug}: {error}", final["ipynb"]) from None
        made["json"].write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        made["html"].write_text(render(made["ipynb"], record, show_code), encoding="utf-8")
        for suffix in ("ipynb", "html", "json"):
            os.replace(made[suffix], final[suffix])
        if browser:  # last: a failure to print does not take the report with it
            print_pdf(browser, final["html"], made["pdf"])
            os.replace(made["pdf"], final["pdf"])
    return Report(final["html"], final["ipynb"], final["json"], final["pdf"] if pdf else None)


def _execute(
    method: catalog.Method,
    parameters: Parameters,
    target: Path,
    kept: Path,
    *,
    timeout_s: float | None,
    environment: dict[str, str],
    **options: Any,
) -> None:
    from workbench import kernels

    try:
        with kernels.started(environment) as kernel:
            # What renders the page takes seconds to import: on the second core, while the kernel
            # works. A stopped run does not wait for it.
            threading.Thread(target=_warm_exporter, daemon=True).start()
            kernels.execute(
                method.notebook,
                target,
                parameters.to_papermill(),
                kernel,
                timeout_s=timeout_s,
                **options,
            )
    except Exception as error:
        from nbclient.exceptions import CellTimeoutError, DeadKernelError
        from papermill.exceptions import PapermillExecutionError

        if not isinstance(error, PapermillExecutionError | CellTimeoutError | DeadKernelError):
            raise
        if target.exists():
            os.replace(target, kept)
        kind, line = ReportFailed, ""
        if isinstance(error, PapermillExecutionError):
            first = (error.evalue.strip().splitlines() or [""])[0]
            line = f"cell {error.exec_count} of {method.slug} failed: {error.ename}: {first}"
            text = (
                f"cell {error.exec_count} of {method.slug} failed:\n\n"
                + "\n".join("    " + line for line in error.source.strip().splitlines())
                + f"\n\n{error.ename}: {error.evalue}"
            )
        elif isinstance(error, CellTimeoutError):
            text = f"{method.slug} did not finish within {timeout_s:g} s and was stopped"
        else:
            kind = KernelDied
            text = f"the kernel of {method.slug} died (out of memory, or killed)"
        raise kind(text, kept if kept.exists() else None, line) from None


def render(notebook: Path, record: dict[str, Any], show_code: bool = False) -> str:
    """The HTML page of an executed notebook with its record; needs no network to be read."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup
    from pygments.formatters import HtmlFormatter

    method = catalog.find(record["slug"])
    described = catalog.load(method.slug).Parameters.describe()
    claims = Claims(Claim(**claim) for claim in record["claims"])
    changed = set(record["changed"])
    rows = [
        {**row, "value": record["parameters"][row["name"]], "changed": row["name"] in changed}
        for row in described
    ]
    words = [f"-p {n} {shlex.quote(str(record['parameters'][n]))}" for n in record["changed"]]
    page = Environment(loader=PackageLoader("workbench", "templates"), autoescape=True)
    return page.get_template("report.html").render(
        method=method,
        record=record,
        parameters=rows,
        held=claims.held(),
        claims_table=Markup(claims._repr_html_()),
        body=Markup(_body(notebook, show_code)),
        made=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        command=" ".join(["workbench report", method.slug, f"--preset {record['preset']}", *words]),
        highlight_css=Markup(HtmlFormatter().get_style_defs(".highlight")),
    )


def _body(notebook: Path, show_code: bool) -> str:
    import nbformat

    node = nbformat.read(notebook, as_version=4)
    node.cells = [c for c in node.cells if NOT_IN_REPORT not in c.metadata.get("tags", [])]
    for cell in node.cells:
        if cell.cell_type == "markdown":  # the page has its own title
            cell.source = re.sub(r"(?m)\A# .*$", "", cell.source)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if _is_shown(output)]
    node.metadata.pop("widgets", None)  # their viewer would be fetched from a network
    return _inline_stylesheets(_exporter(show_code).from_notebook_node(node)[0])


@functools.lru_cache(2)
def _exporter(show_code: bool = False) -> Any:
    """nbconvert's HTML exporter, with its templates compiled and mathematics as MathML."""
    from latex2mathml.converter import convert
    from nbconvert.exporters import HTMLExporter
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class MathMLRenderer(IPythonRenderer):
        def inline_math(self, body: str) -> str:
            return convert(body)

        def block_math(self, body: str) -> str:
            return convert(body, display="block")

        def latex_environment(self, name: str, body: str) -> str:
            return convert(f"\\begin{{{name}}}{body}\\end{{{name}}}", display="block")

        def _html_embed_images(self, html: str) -> str:
            # It would close what is closed in a later piece, and so unfold what is folded.
            return super()._html_embed_images(html) if "<img" in html else html

    def markdown(source: str) -> str:
        renderer = MathMLRenderer(
            escape=False, embed_images=True, path=str(catalog.notebooks_folder())
        )
        return MarkdownWithMath(renderer=renderer).render(source)

    exporter = HTMLExporter(
        template_name="basic",
        filters={"markdown2html": markdown},
        exclude_input=not show_code,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    exporter.template  # noqa: B018  (a property that loads them)
    return exporter


def _warm_exporter() -> None:
    """Render a few words, so that libraries are imported and their expressions compiled."""
    from workbench import _fast_import  # noqa: F401  isort: skip
    from nbformat import v4

    words = v4.new_markdown_cell("# *a* [b](c) $d$\n\n- `e`\n\n| f |\n|---|\n| g |")
    _exporter().from_notebook_node(v4.new_notebook(cells=[words, v4.new_code_cell("h = 1")]))


def _inline_stylesheets(body: str) -> str:
    """Charts name panel's stylesheets by their address on a network: put them into the page."""
    # Found without importing it, which would take a second or two.
    folder = Path(importlib.util.find_spec("panel").origin).parent / "dist"

    def inlined(found: re.Match[str]) -> str:
        text = (folder / found[1]).read_bytes()
        return "data:text/css;base64," + base64.b64encode(text).decode()

    return re.sub(
        r"https://cdn\.holoviz\.org/panel/[\w.]+/dist/([\w/.-]+\.css)(\?v=[\w.]+)?", inlined, body
    )


def _is_shown(output: Any) -> bool:
    """Progress, the record, empty displays and standard error are no part of the page."""
    if output.output_type == "stream":
        return output.name != "stderr"
    if output.output_type == "error":
        return True
    return bool(output.data) and not {PROGRESS_MIME, results.RECORD_MIME} & set(output.data)


def print_pdf(browser: str, page: Path, target: Path) -> None:
    """Print an HTML file to PDF with headless Chromium; ReportFailed when that fails."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser, "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer",
            "--disable-background-networking", f"--user-data-dir={profile}",
            "--virtual-time-budget=10000", f"--print-to-pdf={target}", page.as_uri(),
        ]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to run as root with it
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            raise ReportFailed(f"{browser} did not print the PDF within 120 s") from None
    if done.returncode or not target.exists():
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ReportFailed(f"{browser} could not print the PDF: {reason}")


def find_browser() -> str | None:
    """Path of the Chromium or Chrome that prints PDF files, if there is one."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def _browser() -> str:
    found = find_browser()
    if not found:
        raise ValueError("--pdf needs Chromium or Chrome on the PATH; none was found")
    return found


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise ValueError(f"cannot write to {folder}: {error.strerror}") from None
