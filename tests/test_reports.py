"""Reports: one self-contained page, clear failures, nothing half-written, no orphans."""

import re
import signal
import subprocess
import sys
import time

import pytest
from helpers import RECORD, alive

from workbench import reports, results
from workbench.methods.neural_cpm.study import Parameters

# What a browser would fetch when the page opens.
REQUEST = re.compile(r"""(?:src|href)\s*=\s*["'](?:https?:)?//[^"']+["']""")


def test_a_report_is_three_files_with_parameters_claims_and_mathematics(write_notebook, tmp_path):
    write_notebook("#md # Title\n\nWith $a_i < b$ and\n\n$$\\sum_i x_i$$", RECORD, "print('hello')")
    seen = []
    parameters = Parameters.preset("quick", temperature=20.0)
    made = reports.make(parameters, tmp_path / "out", on_step=seen.append)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "neural_cpm.html",
        "neural_cpm.ipynb",
        "neural_cpm.json",
    ]
    record = results.read_json(made.results)
    assert record == results.read(made.notebook)
    assert (record["preset"], record["changed"]) == ("quick", ["temperature"])
    assert record["parameters"]["temperature"] == 20.0
    assert record["values"] == {"rmse": 1.5}
    page = made.html.read_text(encoding="utf-8")
    assert "20.0 (changed)" in page
    assert "x &lt; y &amp; so on" in page and "✓ holds" in page and "– not tested" in page
    assert (
        page.count("<math") == 2 and "$a_i" not in page.split("<article>")[1].split("</article>")[0]
    )
    assert "hello" in page
    assert "print(" not in page.split("<article>")[1], "code is hidden unless asked for"
    assert "workbench report neural_cpm --preset quick -p temperature 20.0" in page
    links = REQUEST.findall(page)
    assert not [link for link in links if "arxiv.org" not in link], "the page must need no network"
    assert seen[0].done == 0 and 0.5 < max(s.done for s in seen) <= 1


def test_code_is_shown_when_asked_for(write_notebook, tmp_path):
    write_notebook(RECORD, "print('hello')")
    made = reports.make(Parameters.preset("quick"), tmp_path, show_code=True)
    assert "hello" in made.html.read_text(encoding="utf-8").split("<article>")[1]
    assert "highlight" in made.html.read_text(encoding="utf-8").split("<article>")[1]


def test_what_is_folded_in_the_notebook_is_folded_in_the_page(write_notebook, tmp_path):
    text = "<details><summary>Solution</summary>\n\n```python\nx = 1\n```\n\n</details>\n\n"
    text += "Open <b>words</b>"
    write_notebook(f"#md {text}", RECORD)
    made = reports.make(Parameters.preset("quick"), tmp_path)
    page = made.html.read_text(encoding="utf-8").split("<article>")[1]
    folded = re.search(r"<summary>Solution</summary>(.*?)</details>(.*)", page, re.S)
    assert "highlight" in folded[1] and "words" not in folded[1]
    assert "highlight" not in folded[2] and "Open <b>words</b>" in folded[2]


def test_what_the_user_gives_is_escaped(write_notebook, tmp_path):
    write_notebook(RECORD)
    made = reports.make(Parameters.preset("quick"), tmp_path)
    record = results.read_json(made.results)
    record["parameters"]["proposal"] = "<script>alert(1)</script>"
    page = reports.render(made.notebook, record)
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_failing_cell_is_shown_with_its_source_and_the_partial_run_is_kept(
    write_notebook, tmp_path
):
    write_notebook("before = 1", "values = [1, 2]\nvalues[7]", RECORD)
    with pytest.raises(reports.ReportFailed) as failed:
        reports.make(Parameters.preset("quick"), tmp_path / "out")
    assert "values[7]" in str(failed.value) and "IndexError" in str(failed.value)
    assert failed.value.notebook == tmp_path / "out" / "neural_cpm.ipynb"
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["neural_cpm.ipynb"]


def test_a_killed_kernel_is_reported_as_such(write_notebook, tmp_path):
    write_notebook("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(reports.ReportFailed, match="kernel of neural_cpm died"):
        reports.make(Parameters.preset("quick"), tmp_path / "out")


def test_a_hung_cell_ends_at_the_deadline_and_leaves_no_kernel(write_notebook, tmp_path):
    pid = tmp_path / "pid"
    write_notebook(
        f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    )
    start = time.monotonic()
    with pytest.raises(reports.ReportFailed, match="did not finish within 4 s"):
        reports.make(Parameters.preset("quick"), tmp_path / "out", timeout_s=4)
    assert time.monotonic() - start < 30
    assert not alive(int(pid.read_text()))


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_leaves_nothing_half_written_and_no_kernel(write_notebook, tmp_path, stop):
    pid = tmp_path / "pid"
    folder = write_notebook(
        f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    ).parent
    code = (
        "import sys\nfrom pathlib import Path\nfrom workbench import catalog, cli\n"
        f"catalog.notebooks_folder = lambda: Path({str(folder)!r})\n"
        f"sys.exit(cli.main(['report', 'neural_cpm', '--out', {str(tmp_path / 'out')!r}]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(stop)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted; nothing was left half-written" in errors
    assert "Traceback" not in errors
    assert list((tmp_path / "out").iterdir()) == []
    time.sleep(0.5)
    assert not alive(int(pid.read_text()))


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(write_notebook, tmp_path):
    write_notebook(RECORD)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ValueError, match="cannot write to"):
        reports.make(Parameters.preset("quick"), blocked / "out")


def test_a_notebook_that_records_nothing_is_a_failed_run(write_notebook, tmp_path):
    write_notebook("1 + 1")
    with pytest.raises(reports.ReportFailed, match="holds no record"):
        reports.make(Parameters.preset("quick"), tmp_path / "out")


@pytest.mark.skipif(reports.find_browser() is None, reason="needs Chromium or Chrome")
def test_a_pdf_is_printed_on_request(write_notebook, tmp_path):
    write_notebook("#md # Title", RECORD)
    made = reports.make(Parameters.preset("quick"), tmp_path / "out", pdf=True)
    assert made.pdf.read_bytes().startswith(b"%PDF")


def test_without_a_browser_a_pdf_is_refused_before_anything_runs(
    write_notebook, tmp_path, monkeypatch
):
    monkeypatch.setattr(reports, "find_browser", lambda: None)
    write_notebook("raise SystemError('must not run')")
    with pytest.raises(ValueError, match="needs Chromium"):
        reports.make(Parameters.preset("quick"), tmp_path / "out", pdf=True)


def test_papermill_alone_is_validated_inside_the_notebook(write_notebook, tmp_path):
    import papermill

    notebook = write_notebook(RECORD)
    out = tmp_path / "out.ipynb"
    papermill.execute_notebook(
        str(notebook), str(out), {"temperature": 20}, kernel_name="python3", progress_bar=False
    )
    assert results.read(out)["parameters"]["temperature"] == 20.0
    for wrong, words in [
        ({"temprature": 20}, "did you mean 'temperature'"),
        ({"temperature": -1}, "from 0 to 100"),
    ]:
        with pytest.raises(papermill.PapermillExecutionError, match=words):
            papermill.execute_notebook(
                str(notebook), str(out), wrong, kernel_name="python3", progress_bar=False
            )
