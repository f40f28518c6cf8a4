"""The command line: answers for people and programs, exit codes, one line for bad input."""

import json
import os
import subprocess
import sys

import pytest
from helpers import RECORD

from workbench import catalog
from workbench.cli import main


def run(capsys, *words):
    """Exit code, standard output and standard error of one command."""
    code = main(list(words))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lst"], "unknown command 'lst'; did you mean 'list'?"),
        ([], "required"),
        (["list", "--jsn"], "unknown option or extra word '--jsn'; did you mean '--json'?"),
        (["show", "neural-cpn"], "unknown method 'neural-cpn'; did you mean 'neural_cpm'?"),
        (["report", "neural_cpm", "--preset", "quik"], "did you mean 'quick'?"),
        (["report", "neural_cpm", "-p", "temprature", "2"], "did you mean 'temperature'?"),
        (["report", "neural_cpm", "-p", "temperature", "200"], "a number from 0 to 100"),
        (["report", "neural_cpm", "-p", "temperature", "warm"], "temperature = 'warm'"),
        (["report", "neural_cpm", "-p", "temperature"], "expected 2 arguments"),
        (["report", "neural_cpm", "-p", "n_cells", "60000"], "do not fit on size = 100"),
        (["report", "neural_cpm", "-p", "stride", "5"], "does not divide bipolar_size = 36"),
        (["report", "neural_cpm", "-f", "missing.yaml"], "cannot read missing.yaml"),
        (["report", "neural_cpm", "--timeout", "-1"], "--timeout"),
        (["report", "neural_cpm", "--out", "/proc/nowhere"], "cannot write to"),
        (["scorecard", "missing-folder"], "no folder missing-folder"),
        (["app", "neural"], "unknown method 'neural'"),
        (["lab", "nothing_like_it"], "rank_one_vi, rising_attack, neural_cpm"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(capsys, words, says):
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1 and err.startswith("workbench: ")
    assert says in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("temperature: [1", "is not YAML"),
        ("- 1\n- 2\n", "must be a mapping"),
        ("temprature: 1\n", "did you mean 'temperature'?"),
        ("temperature: hot\n", "temperature = 'hot' is not allowed"),
    ],
)
def test_bad_files_are_one_line_too(capsys, tmp_path, text, says):
    path = tmp_path / "values.yaml"
    path.write_text(text, encoding="utf-8")
    code, _, err = run(capsys, "report", "neural_cpm", "-f", str(path))
    assert (code, err.count("\n")) == (2, 1)
    assert says in err


def test_list_for_people_and_programs(capsys):
    code, out, _ = run(capsys, "list")
    assert code == 0 and "neural_cpm" in out
    _, out, _ = run(capsys, "list", "--json")
    row = next(r for r in json.loads(out) if r["slug"] == "neural_cpm")
    assert set(row) == {"slug", "title", "theme", "paper", "notebook", "minutes"}


def test_show_names_bounds_units_and_presets(capsys):
    code, out, _ = run(capsys, "show", "neural-cpm")
    assert code == 0
    assert "a number from 0 to 100 [energy]" in out and "quick" in out
    _, out, _ = run(capsys, "show", "neural_cpm", "--json")
    shown = json.loads(out)
    assert set(shown) == {"slug", "parameters", "presets"}
    row = next(r for r in shown["parameters"] if r["name"] == "temperature")
    assert {"name", "type", "default", "bounds", "choices", "unit", "doc"} <= set(row)


def test_list_and_show_answer_within_half_a_second():
    """Best of five whole processes, in processor time: other work on the machine does not count."""
    for words in (["list"], ["show", "neural_cpm"]):
        times = []
        for _ in range(5):
            before = os.times()
            subprocess.run(
                [sys.executable, "-m", "workbench", *words], capture_output=True, check=True
            )
            after = os.times()
            times.append(sum(after[2:4]) - sum(before[2:4]))  # of children, user and system
        assert min(times) < 0.5


def test_report_takes_preset_file_and_words_later_ones_winning(capsys, write_notebook, tmp_path):
    write_notebook(RECORD)
    values = tmp_path / "values.yaml"
    values.write_text(
        "temperature: 3\nlam: 0.7\nwidths: [4, 4]\nweights: train\n", encoding="utf-8"
    )
    words = ["report", "neural-cpm", "--preset", "quick", "-f", str(values)]
    words += ["-p", "temperature", "4", "--out", str(tmp_path / "out"), "--json"]
    code, out, err = run(capsys, *words)
    assert code == 0
    paths = json.loads(out)
    assert set(paths) == {"html", "notebook", "results"}
    record = json.loads(open(paths["results"], encoding="utf-8").read())
    assert record["preset"] == "quick"
    assert record["changed"] == ["lam", "temperature", "widths", "weights"]
    assert record["parameters"]["temperature"] == 4.0
    assert "neural_cpm" in err and "%" in err, "progress is shown in the terminal"
    code, out, _ = run(capsys, "scorecard", str(tmp_path / "out"))
    assert code == 0 and "1 of 1 hold (1 not tested)" in out
    _, out, _ = run(capsys, "scorecard", str(tmp_path / "out"), "--json")
    assert [r["slug"] for r in json.loads(out)["methods"]] == ["neural_cpm"]


def test_a_failed_run_is_exit_code_1_with_the_cell_and_no_traceback(
    capsys, write_notebook, tmp_path
):
    write_notebook("1 / 0")
    code, out, err = run(capsys, "report", "neural_cpm", "--out", str(tmp_path / "out"))
    assert (code, out) == (1, "")
    assert "1 / 0" in err and "ZeroDivisionError: division by zero" in err
    assert "Traceback" not in err
    assert "The partial run is kept" in err


def test_paper_size_settings_are_announced_as_long(capsys, write_notebook, tmp_path):
    write_notebook(RECORD)
    _, _, err = run(
        capsys, "report", "neural_cpm", "--preset", "paper", "--out", str(tmp_path / "out")
    )
    assert "need an accelerator" in err


def test_scorecard_without_a_folder_runs_the_quick_presets(capsys, write_notebook, monkeypatch):
    write_notebook(RECORD)
    only = [catalog.find("neural_cpm")]
    monkeypatch.setattr(catalog, "methods", lambda: only)
    code, out, err = run(capsys, "scorecard", "--json")
    assert code == 0
    assert [r["preset"] for r in json.loads(out)["methods"]] == ["quick"]
    assert "neural_cpm: 1 of 1 hold" in err


def test_doctor_says_what_is_there_and_what_extras_unlock(capsys, tmp_path):
    code, out, _ = run(capsys, "doctor", "--json", "--out", str(tmp_path))
    checks = {c["name"]: c for c in json.loads(out)}
    assert {"python", "libraries", "kernel", "write access", "browser"} <= set(checks)
    assert code == (0 if all(c["ok"] for c in checks.values() if c["needed"]) else 1)
    assert "torch" in checks["libraries"]["detail"]
    assert any(name.startswith("extra ") for name in checks)
    assert "ok  python" in run(capsys, "doctor", "--out", str(tmp_path))[1]


def test_doctor_fails_when_the_reports_cannot_be_written(capsys):
    code, out, _ = run(capsys, "doctor", "--out", "/proc/nowhere")
    assert code == 1
    assert "NO  write access" in out


def test_sync_check_finds_a_notebook_that_is_out_of_line(capsys, write_notebook):
    path = write_notebook(RECORD)
    assert run(capsys, "sync", "--check")[0] == 0
    path.write_text(
        path.read_text().replace("temperature: float = 1.0", "temperature: float = 2.0")
    )
    code, out, _ = run(capsys, "sync", "--check")
    assert (code, out) == (1, "neural_cpm.ipynb is out of line: workbench sync\n")
    assert run(capsys, "sync")[0] == 0
    assert run(capsys, "sync", "--check")[0] == 0


def test_every_method_of_the_catalog_is_found_by_hyphens_too():
    for method in catalog.methods():
        assert catalog.find(method.slug.replace("_", "-")) == method
