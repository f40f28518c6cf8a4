"""Sweeps: every point checked first, real dask workers, nothing lost and nothing half-written."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import dask
import distributed  # its settings must be there before some are changed
import pandas as pd
import psutil
import pytest
from helpers import RECORD, alive, notebook_text

from workbench import catalog, cli, grids, steps, sweep_store, sweeps

WAIT_S = 90  # patience on a busy machine

# Notes each run in a file of the folder, and misbehaves as the temperature says.
STAND_IN = """
import os, signal, time
from pathlib import Path
folder = Path({folder!r})
with open(folder / "runs", "a") as runs:
    runs.write(f"{{temperature}} {{seed}} {{os.getpid()}} {{os.environ['OMP_NUM_THREADS']}}\\n")
if temperature == 13 and not (folder / "mended").exists():
    raise ValueError("unlucky\\nsecond line")
if temperature == 67 and not (folder / "tried").exists():
    (folder / "tried").touch()
    os.kill(os.getpid(), signal.SIGKILL)
if temperature == 66:
    os.kill(os.getpid(), signal.SIGKILL)
if temperature == 99:
    time.sleep(600)
time.sleep(float(mcs) / 1000)
"""


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """`stand_in()`: a folder with a stand-in notebook, and a script that makes workers use it."""

    def write(*cells: str) -> Path:
        folder = tmp_path_factory.mktemp("sweep")
        text = notebook_text(*(cells or (STAND_IN.format(folder=str(folder)), RECORD)))
        (folder / "neural_cpm.ipynb").write_text(text, encoding="utf-8")
        (folder / "preload.py").write_text(
            "from pathlib import Path\nfrom workbench import catalog\n"
            f"catalog.notebooks_folder = lambda: Path({str(folder)!r})\n"
        )
        return folder

    return write


def runs_of(folder: Path) -> list[list[str]]:
    """Temperature, seed, process and threads of each run so far."""
    path = folder / "runs"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(condition, what: str):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


def sweep(folder: Path, points, out, on_step=None, **options):
    """Run a sweep whose own workers use the stand-in notebook of `folder`."""
    with dask.config.set({"distributed.worker.preload": [str(folder / "preload.py")]}):
        return steps.run(sweeps.sweep_steps(points, out, **options), on_step)


def some_points(temperatures, seeds=1, **changes):
    grid = {"temperature": list(temperatures)} if temperatures else {}
    return grids.points("neural_cpm", grid, seeds, "quick", **{"mcs": 1, **changes})


# --- points -------------------------------------------------------------------------------------


def neural_cpm():
    return catalog.load("neural_cpm").Parameters


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("temperature=0.5,1,2", [0.5, 1.0, 2.0]),
        ("temperature=0.1:0.5:5", [0.1, 0.2, 0.3, 0.4, 0.5]),
        ("temperature=0.1:10:3:log", [0.1, 1.0, 10.0]),
        ("temperature=0.5,1:3:3", [0.5, 1.0, 2.0, 3.0]),
        ("mcs=1:3:9", [1, 2, 3]),
        ("mcs=10:1000:3:log", [10, 100, 1000]),
        ("widths=[8,8],[4]", [[8, 8], [4]]),
        ("closure=true,False", [True, False]),
        ("proposal=uniform,edges", ["uniform", "edges"]),
    ],
)
def test_words_of_a_grid_become_values_of_the_declared_type(words, values):
    found = grids.parse(neural_cpm(), [words])
    assert found == {words.split("=")[0]: values}
    assert [type(v) for v in found[words.split("=")[0]]] == [type(v) for v in values]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-g temperature", "give NAME=V1,V2,..."),
        ("-g temperature=", "give NAME=V1,V2,..."),
        ("-g temperature=1,,2", "a value is missing"),
        ("-g temprature=1,2", "did you mean 'temperature'?"),
        ("-g temperature=1,200", "a number from 0 to 100 [energy]"),
        ("-g temperature=50:200:3", "temperature = 125.0 is not allowed"),
        ("-g temperature=0:1:3:log", "low must be above 0"),
        ("-g temperature=2:1:3", "low must be below high"),
        ("-g temperature=1:2", "a range is low:high:count[:log]"),
        ("-g temperature=1:2:1", "a count from 2"),
        ("-g temperature=1:2:3:lin", "only ':log' may follow"),
        ("-g widths=[8,8", "a bracket is not closed"),
        ("-g proposal=edgy,uniform", "one of 'uniform', 'edges'"),
        ("-g temperature=1,1.0", "temperature = 1.0 is given twice"),
        ("-g temperature=1,2 -g temperature=3,4", "temperature is swept twice"),
        ("-g temperature=1,2 -p temperature 3", "both swept and set to 3.0"),
        ("-g stride=4,5", "(at stride = 5, seed = 0)"),
        ("-g seed=1,2", "take --seeds N"),
        ("-g temperature=1:2:200 -g lam=0.1:1:200", "40000 points are too many"),
        ("-g temperature=1,2 --preset quik", "did you mean 'quick'?"),
        ("", "one point is a report, not a sweep"),
        ("--seeds 0", "seeds = 0 is not allowed"),
        ("--seeds two", "--seeds"),
        ("--seeds 2 --workers 0", "--workers 0 is not allowed"),
        ("--seeds 2 --workers 1 --scheduler tcp://127.0.0.1:1", "not allowed with"),
        ("--seeds 2 --scheduler nowhere", "no dask scheduler answers at nowhere"),
        ("--seeds 2 --out nowhere://x", "cannot write to nowhere://x"),
        ("--seeds 2 --resume --out missing", "missing holds no sweep to resume"),
        ("--seeds 2 --timeout 0", "--timeout"),
    ],
)
def test_every_point_is_checked_before_anything_runs(capsys, monkeypatch, words, says):
    monkeypatch.setattr(sweeps, "_run", None)  # must not be reached
    code = cli.main(["sweep", "neural_cpm", *words.split()])
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1 and captured.err.startswith("workbench: ")
    assert says in captured.err


def test_points_are_all_combinations_with_seeds_that_count_up_and_names_for_any_file_system():
    points = grids.points(
        "neural-cpm", {"temperature": [0.5, 2], "widths": [[8, 8], [4, 4]]}, 3, "quick", seed=5,
        weights="train",
    )  # fmt: skip
    assert len(points) == 12
    asked = [(p.parameters.temperature, p.parameters.widths, p.parameters.seed) for p in points]
    assert asked[:4] == [(0.5, [8, 8], 5), (0.5, [8, 8], 6), (0.5, [8, 8], 7), (0.5, [4, 4], 5)]
    assert all(p.parameters.mcs == neural_cpm().presets["quick"]["mcs"] for p in points)
    assert points[3].name == "03_temperature=0.5,widths=4-4,seed=5"
    assert len({p.name for p in points}) == 12
    assert not set("".join(p.name for p in points)) & set(" []*?:/\\'\"")
    assert points.words() == (
        "temperature = 0.5, 2.0; widths = [8, 8], [4, 4]; seeds 5 to 7; preset quick; "
        "weights = train"
    )


# --- the whole, with worker processes -------------------------------------------------------------


@pytest.fixture(scope="module")
def swept(stand_in, tmp_path_factory):
    """A sweep on two worker processes with a failing point, a lost kernel, and one lost always."""
    folder, out, seen = stand_in(), tmp_path_factory.mktemp("out") / "sweep", []
    points = some_points([1, 13, 66, 67, 2])
    made = sweep(folder, points, out, seen.append, workers=2)
    return folder, out, points, made, seen


@pytest.mark.slow
def test_each_point_is_a_kernel_of_its_own_with_one_thread(swept):
    folder, *_ = swept
    runs = runs_of(folder)
    assert len({pid for _, _, pid, _ in runs}) == len(runs)
    assert {threads for *_, threads in runs} == {"1"}
    assert not any(alive(int(pid)) for _, _, pid, _ in runs)


def test_a_failed_point_is_reported_and_does_not_stop_the_others(swept):
    _, out, points, made, _ = swept
    names = [p.name for p in points]
    assert made.finished == 3 and set(made.failed) == {names[1], names[2]}
    assert made.failed[names[1]].endswith("neural_cpm failed: ValueError: unlucky")
    kept = out / "points" / names[1]
    assert sorted(p.name for p in kept.iterdir()) == ["error.txt", "neural_cpm.ipynb"]
    assert "second line" in (kept / "error.txt").read_text(), "the whole error is kept"
    assert "raise ValueError" in (kept / "error.txt").read_text(), "with its cell"


def test_a_lost_kernel_is_tried_again_and_reported_when_it_is_lost_always(swept):
    folder, _, points, made, _ = swept
    tries = [temperature for temperature, *_ in runs_of(folder)]
    assert tries.count("67.0") == 2 and points[3].name not in made.failed
    assert tries.count("66.0") == 3
    assert "kernel of neural_cpm died" in made.failed[points[2].name]
    assert "3 times" in made.failed[points[2].name]
    assert tries.count("13.0") == 1, "an error of the notebook is no reason to try again"


def test_a_finished_point_has_its_three_files_and_nothing_is_half_written(swept):
    _, out, points, *_ = swept
    folder = out / "points" / points[0].name
    assert sorted(p.name for p in folder.iterdir()) == [
        "neural_cpm.html",
        "neural_cpm.ipynb",
        "neural_cpm.json",
    ]
    assert not list(out.rglob("*.part"))
    manifest = json.loads((out / "sweep.json").read_text())
    assert manifest["grid"] == {"temperature": [1.0, 13.0, 66.0, 67.0, 2.0]}
    assert manifest["preset"] == "quick" and manifest["versions"]["workbench"]


def test_progress_says_done_failed_left_and_the_time_left(swept):
    *_, seen = swept
    assert [s.done for s in seen] == sorted(s.done for s in seen)
    assert seen[0].message == "0 done, 0 failed, 5 left"
    assert any("left, about " in s.message for s in seen)
    assert "3 done, 2 failed, 0 left" in [s.message for s in seen]


def test_load_gives_one_row_per_point_with_parameters_values_and_claims(swept):
    _, out, points, made, _ = swept
    table = sweeps.load(out)
    assert list(table.index) == [p.name for p in points]
    assert list(table.temperature) == [1.0, 13.0, 66.0, 67.0, 2.0]
    assert list(table.status) == ["done", "failed", "failed", "done", "done"]
    first = table.iloc[0]
    assert (first.rmse, first.a_measured, first.a_verdict) == (1.5, 1.5, "holds")
    assert first.b_verdict == "not tested" and pd.isna(first.b_measured)
    assert first.a_low <= first.a_measured <= first.a_high
    assert first.seconds > 0 and first.seed == 0
    assert (out / first.report).exists()
    assert "ValueError: unlucky" in table.error.iloc[1]
    stored = pd.read_parquet(made.parquet)
    pd.testing.assert_frame_equal(stored, table, check_dtype=False)
    assert list(pd.read_csv(made.csv, index_col=0).columns) == list(table.columns)


def test_load_of_something_else_is_one_clear_line(tmp_path):
    with pytest.raises(ValueError, match="holds no sweep"):
        sweeps.load(tmp_path)


def test_a_folder_that_holds_a_sweep_is_left_alone_without_resume(swept):
    folder, out, points, *_ = swept
    with pytest.raises(ValueError, match=r"holds a sweep already \(3 of 5 points finished\)"):
        sweep(folder, points, out)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (lambda: some_points([1, 13]), "with other grid"),
        (lambda: some_points([1, 13, 66, 67, 2], seeds=2), "with other seeds: 1 there, 2 here"),
        (lambda: some_points([1, 13, 66, 67, 2], lam=0.7), "with other changes"),
        (lambda: grids.points("neural_cpm", {"temperature": [1, 13, 66, 67, 2]}), "other preset"),
    ],
)
def test_resuming_another_sweep_says_what_differs(swept, other, says):
    folder, out, *_ = swept
    with pytest.raises(ValueError, match=says):
        sweep(folder, other(), out, resume=True)


def test_resuming_a_sweep_of_another_version_names_both(swept, monkeypatch):
    folder, out, points, *_ = swept
    monkeypatch.setattr(sweep_store, "__version__", "9.9")
    with pytest.raises(ValueError, match=r"made by workbench .*, this is 9\.9"):
        sweep(folder, points, out, resume=True)


def test_dry_run_says_what_is_left_and_what_it_costs_and_writes_nothing(swept, capsys, tmp_path):
    _, out, points, *_ = swept
    words = ["sweep", "neural_cpm", "-g", "temperature=1,13,66,67,2", "--preset", "quick"]
    words += ["-p", "mcs", "1", "--workers", "2", "--dry-run"]
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    assert cli.main([*words, "--out", str(out), "--resume"]) == 0
    text = capsys.readouterr().out
    assert "2 of 5 points to run, 2 side by side" in text and "mean of 3 finished points" in text
    assert f"{points[0].name}  (finished)" in text and f"{points[1].name}\n" in text
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before
    assert cli.main([*words, "--json", "--out", str(tmp_path / "new")]) == 0
    plan = json.loads(capsys.readouterr().out)
    minutes = catalog.find("neural_cpm").minutes.quick
    assert plan["left"] == [p.name for p in points]
    assert plan["seconds_each"] == 120 * minutes, "two cores' work on one"
    assert plan["seconds"] == pytest.approx(3 * 120 * minutes), "five points on two workers"
    assert plan["core_hours"] == pytest.approx(5 * minutes / 30)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_resume_runs_only_what_is_missing_or_failed(swept):  # last of this sweep: it changes it
    folder, out, points, *_ = swept
    (folder / "mended").touch()
    missing = out / "points" / points[4].name
    (missing / "neural_cpm.json").unlink()
    before = len(runs_of(folder))
    made = sweep(folder, points, out, workers=2, resume=True)
    again = sorted(temperature for temperature, *_ in runs_of(folder)[before:])
    assert again == ["13.0", "2.0", "66.0", "66.0", "66.0"]
    assert made.finished == 4 and set(made.failed) == {points[2].name}
    assert not (out / "points" / points[1].name / "error.txt").exists()


def test_how_many_run_side_by_side_is_bounded_by_cores_and_memory(monkeypatch):
    import psutil

    need = catalog.find("neural_cpm").memory_mb
    monkeypatch.setattr("dask.system.CPU_COUNT", 8)
    for free_mb, wanted in [(100 * need, 8), (3.5 * need, 3), (0.5 * need, 1)]:
        memory = type("Memory", (), {"available": free_mb * 2**20})
        monkeypatch.setattr(psutil, "virtual_memory", lambda memory=memory: memory)
        assert sweeps.default_workers("neural_cpm") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_results_go_wherever_fsspec_writes(stand_in, tmp_path, scheme):
    folder = stand_in()
    out = f"memory://{uuid.uuid4().hex}" if scheme == "memory" else f"file://{tmp_path}/out"
    made = sweep(folder, some_points(None, seeds=2), out, workers=1)
    assert made.finished == 2 and made.index == f"{out}/index.html"
    table = sweeps.load(out)
    assert list(table.seed) == [0, 1] and set(table.status) == {"done"}
    store = sweep_store.Store(out)
    for name in ["index.html", "results.csv", "results.parquet", *table.report]:
        assert len(store.read(name)) > 100
    with pytest.raises(ValueError, match="holds a sweep already"):
        sweep(folder, some_points(None, seeds=2), out, workers=1)


@pytest.mark.slow
def test_python_takes_a_cluster_object_too(stand_in, tmp_path):
    folder = stand_in()
    with (
        dask.config.set({"distributed.worker.preload": [str(folder / "preload.py")]}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        ) as cluster,
    ):
        made = sweep(folder, some_points(None, seeds=2), tmp_path / "out", scheduler=cluster)
    assert made.finished == 2


@pytest.mark.slow
def test_a_slow_point_ends_at_its_time_limit(stand_in, tmp_path):
    made = sweep(stand_in(), some_points([1, 99]), tmp_path / "out", workers=2, timeout_s=8)
    assert made.finished == 1
    assert list(made.failed.values()) == ["neural_cpm did not finish within 8 s and was stopped"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (distributed.KilledWorker("x", None, 3), "its workers were lost again and again"),
        (OSError("no space left\non device"), "OSError: no space left"),
        (TimeoutError("slow"), "TimeoutError: slow"),
    ],
)
def test_what_dask_gave_up_ends_as_an_error_in_one_line(error, says):
    class Future:
        status = "error"

        def exception(self):
            return error

    (answer,) = sweeps._answer(Future()).values()
    assert says in answer and "\n" not in answer


# --- the command --------------------------------------------------------------------------------


def command(folder: Path, *words: str) -> subprocess.Popen:
    """The command line as a process in a group of its own, its workers with the stand-in."""
    code = (
        "import sys, dask\nfrom workbench import cli\n"
        f"dask.config.set({{'distributed.worker.preload': [{str(folder / 'preload.py')!r}]}})\n"
        f"sys.exit(cli.main(['sweep', 'neural_cpm', '--preset', 'quick', *{words!r}]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.slow
def test_the_command_prints_where_everything_is_and_each_failure(stand_in, tmp_path):
    words = ["-g", "temperature=1,13", "-p", "mcs", "1", "--workers", "2", "--out", str(tmp_path)]
    process = command(stand_in(), *words)
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert "2 points: 1 done, 1 failed" in out and f"{tmp_path}/index.html" in out
    assert err.count("workbench: failed: 1_temperature=13.0,seed=0: cell ") == 1
    assert "1 done, 0 failed, 1 left" in err or "0 done, 1 failed, 1 left" in err
    assert "Traceback" not in err and "distributed" not in err
    process = command(Path(tmp_path), *words, "--json")
    out, err = process.communicate(timeout=WAIT_S)
    assert (process.returncode, out) == (2, "") and err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["terminal", "terminate"])
def test_ctrl_c_keeps_what_is_finished_and_leaves_no_kernel(stand_in, tmp_path, stop):
    folder = stand_in()
    words = ["-g", "temperature=1,99,98", "-p", "mcs", "1", "--workers", "1"]
    process = command(folder, *words, "--out", str(tmp_path / "out"))
    wait_for(lambda: len(runs_of(folder)) == 2, "the second point")
    wait_for(lambda: list((tmp_path / "out").rglob("neural_cpm.json")), "the first to be written")
    if stop == "terminal":  # Ctrl-C reaches the whole group: the workers too
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.terminate()
    start = time.monotonic()
    out, err = process.communicate(timeout=WAIT_S)
    assert process.returncode == 130 and out == ""
    assert time.monotonic() - start < 20
    assert "interrupted; 1 of 3 points are finished and kept" in err and "--resume" in err
    assert "Traceback" not in err
    wait_for(lambda: not any(alive(int(r[2])) for r in runs_of(folder)), "the kernels to end")
    assert list(sweeps.load(tmp_path / "out").status) == ["done", "missing", "missing"]


# --- a scheduler and workers of somebody else's ---------------------------------------------------


@contextmanager
def dask_processes(folder: Path, workers: int):
    """A scheduler and workers as processes on loopback: the address, and the workers."""
    address_file, local = folder / "scheduler.json", ["--host", "127.0.0.1", "--no-dashboard"]
    started = []

    def start(*words: str):
        with (folder / "dask.log").open("a") as log:
            started.append(
                subprocess.Popen([sys.executable, "-m", "dask", *words], stdout=log, stderr=log)
            )

    try:
        start("scheduler", *local, "--port", "0", "--scheduler-file", str(address_file))
        address = wait_for(
            lambda: address_file.exists() and json.loads(address_file.read_text())["address"],
            "the scheduler",
        )
        options = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        for _ in range(workers):
            start("worker", address, *local, *options, "--preload", str(folder / "preload.py"))
        yield address, started[1:]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_costs_nothing(stand_in, tmp_path):
    folder = stand_in()
    points = some_points([1, 2, 3], seeds=2, mcs=3000)
    with dask_processes(folder, workers=2) as (address, workers):
        killed = []

        def kill_one(step):
            if not killed and step.data and step.data["finished"] >= 1 and len(runs_of(folder)) > 2:
                killed.append(workers[0])
                workers[0].kill()

        made = sweep(folder, points, tmp_path / "out", kill_one, scheduler=address)
        assert killed and workers[1].poll() is None
    assert made.finished == 6 and not made.failed
    assert set(sweeps.load(tmp_path / "out").status) == {"done"}
    assert 6 <= len(runs_of(folder)) <= 8, "what was under way runs again, and no more"
    wait_for(lambda: not any(alive(int(r[2])) for r in runs_of(folder)), "the kernels to end")


@pytest.mark.slow
def test_stopping_ends_the_kernels_on_workers_that_live_on(stand_in, tmp_path):
    folder = stand_in()
    with dask_processes(folder, workers=1) as (address, workers):

        def stop(step):
            if len(runs_of(folder)) == 1:
                raise KeyboardInterrupt

        with pytest.raises(steps.Cancelled):
            sweep(folder, some_points([99, 98]), tmp_path / "out", stop, scheduler=address)
        pid = int(runs_of(folder)[0][2])
        wait_for(lambda: not alive(pid), "the kernel to end")
        assert workers[0].poll() is None
        made = sweep(folder, some_points([1, 2]), tmp_path / "other", scheduler=address)
        assert made.finished == 2, "the worker is free for others"


@pytest.mark.slow
def test_a_lost_scheduler_is_said_for_every_point_that_was_left(stand_in, tmp_path):
    folder = stand_in()
    with dask_processes(folder, workers=1) as (address, _):
        (scheduler,) = (p for p in psutil.Process().children() if "scheduler" in p.cmdline())

        def lose(step):
            if len(runs_of(folder)) == 1 and scheduler.status() != psutil.STATUS_ZOMBIE:
                scheduler.kill()

        made = sweep(folder, some_points([99, 98]), tmp_path / "out", lose, scheduler=address)
    assert set(made.failed.values()) == {"the scheduler was lost, or cancelled it"}


@pytest.mark.slow
def test_workers_with_another_version_are_refused_by_name(stand_in, tmp_path, monkeypatch):
    folder = stand_in()
    with dask_processes(folder, workers=1) as (address, _):
        from distributed import Client

        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=WAIT_S)
        monkeypatch.setattr(sweeps, "__version__", "9.9")
        with pytest.raises(ValueError, match=r"worker tcp://.* has workbench .*, the client 9\.9"):
            sweep(folder, some_points([1, 2]), tmp_path / "out", scheduler=address)
    assert not (tmp_path / "out").exists() and not runs_of(folder)


def test_a_worker_without_the_workbench_is_named_and_one_that_comes_late_refuses_itself():
    class Client:
        def run(self, function, *words, on_error):
            return {"tcp://a:1": PackageNotFoundError("workbench")}

    with pytest.raises(ValueError, match="worker tcp://a:1 has no workbench"):
        sweeps._same_versions(Client())
    answer = sweeps.make_point("neural_cpm", {}, None, "9.9")
    assert "the client 9.9" in answer["error"]
