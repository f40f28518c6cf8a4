"""Sweeps: one report for each point of a grid, fanned out with dask.distributed.

Each point is a kernel process of its own, run on a dask worker; the worker returns the files and
the client writes them through fsspec, so workers and client share no disk. A point counts as
finished once its results file is there, which is written last: nothing is ever half-finished.
"""

from __future__ import annotations

import contextlib
import queue
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import __version__, catalog, reports, results
from workbench.cluster import local_cluster
from workbench.grids import Point, Points, points
from workbench.steps import Step, Steps
from workbench.sweep_store import (
    DONE,
    ERROR,
    FAILED,
    MANIFEST,
    Store,
    finished_points,
    load,
    load_all,
    manifest_of,
    records_of,
    to_json,
)

if TYPE_CHECKING:  # takes a second to import
    from distributed import Client, Future

__all__ = ["Sweep", "expected", "load", "make_point", "points", "sweep_steps"]

RETRIES = 2  # after a lost kernel; lost workers are counted by dask (allowed-failures)
# A point has one core: its libraries start one thread each.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
# Ctrl-C reaches a terminal's whole process group, and it is the client who stops the workers.
IGNORE_INTERRUPT = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


@dataclass(frozen=True)
class Sweep:
    """What a sweep left behind: addresses of its files, and the error of each failed point."""

    out: str
    index: str
    parquet: str
    csv: str
    finished: int
    failed: dict[str, str]


def sweep_steps(
    points: Points,
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: Any = None,
    resume: bool = False,
    timeout_s: float | None = None,
) -> Steps[Sweep]:
    """Run all `points` and write reports, tables and `index.html` to `out`, as steps.

    out: a folder or any address that fsspec writes. workers: processes on this machine (None: as
    many as cores and free memory allow), or scheduler: address of a running dask scheduler, or a
    dask cluster object, whose security settings are then used.
    resume: run what is missing or failed of the sweep that `out` holds. timeout_s: of each point.

    Raises ValueError before anything runs: for an `out` that cannot be used or holds a sweep, a
    scheduler that does not answer, and workers with another version of the workbench. The failure
    of a point is no error: it is in the result and in `out`. Data of the steps are the numbers of
    points finished, failed and left. When closed, kernels end and finished points are kept.
    """
    store = Store(out)
    finished = finished_points(store, points, resume)
    todo = [point for point in points if point.name not in finished]
    if todo:
        wanted = min(workers or default_workers(points.slug), len(todo))
        with _cluster(wanted, scheduler) as client:
            waiting = not _same_versions(client)
            manifest = {**manifest_of(points), "versions": results.versions()}
            store.write(MANIFEST, to_json(manifest))
            yield from _run(client, store, points, todo, timeout_s, waiting)
    yield Step(0.99, "drawing the page")
    return _conclude(store)


def _run(
    client: Client,
    store: Store,
    points: Points,
    todo: list[Point],
    timeout_s: float | None,
    waiting: bool,
) -> Steps[None]:
    """Submit the points, and write what comes back as it comes."""
    run, start, failed = uuid.uuid4().hex[:8], time.monotonic(), 0
    answers: queue.SimpleQueue[Future] = queue.SimpleQueue()
    running: dict[Future, Point] = {}
    try:
        # In one go and under one name: so the scheduler sees a crowd of equal tasks and gives each
        # to a worker that is free.
        futures = client.map(
            make_point,
            *zip(*((points.slug, p.parameters.to_papermill()) for p in todo), strict=True),
            timeout_s=timeout_s, version=__version__,
            key=[f"report-{point.name}-{run}" for point in todo], retries=RETRIES, pure=False,
        )  # fmt: skip
        running.update(zip(futures, todo, strict=True))
        for future in futures:
            future.add_done_callback(answers.put)
        while running:
            with contextlib.suppress(queue.Empty):
                future = answers.get(timeout=0.5)
                try:
                    answer = _answer(future)
                except TimeoutError:  # its worker was lost after it had finished: made once more
                    answers.put(future)
                else:
                    point = running.pop(future)
                    _write_point(store, f"points/{point.name}", points.slug, answer)
                    failed += "error" in answer
                    future.release()
            ended = len(todo) - len(running)
            counts = {
                "finished": len(points) - len(running) - failed,
                "failed": failed,
                "left": len(running),
            }
            text = f"{counts['finished']} done, {failed} failed, {len(running)} left"
            if ended and running:
                text += f", about {_duration((time.monotonic() - start) / ended * len(running))}"
            elif waiting and not ended:
                text += "; the scheduler has no worker yet"
            yield Step(0.99 * (len(points) - len(running)) / len(points), text, counts)
    finally:
        if running:
            with contextlib.suppress(Exception):  # a scheduler that is gone has nothing to cancel
                client.cancel(list(running), force=True)


def make_point(
    slug: str, values: dict[str, Any], timeout_s: float | None, version: str
) -> dict[str, Any]:
    """Make one report on a dask worker and return its files as bytes by suffix.

    A run that failed is an answer too: {"error": line and text, "ipynb": its partial notebook}.
    Raises `KernelDied`, so that dask tries again.
    """
    if version != __version__:
        return {"error": f"a worker has workbench {__version__}, the client {version}"}
    folder, cancelled = _worker()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="point-", dir=folder) as scratch:
        try:
            made = reports.make(
                catalog.load(slug).Parameters(**values),
                scratch,
                timeout_s=timeout_s,
                environment=ONE_THREAD,
                cancelled=cancelled,
            )
        except reports.KernelDied:
            raise
        except reports.ReportFailed as error:
            partial = {"ipynb": error.notebook.read_bytes()} if error.notebook else {}
            return {"error": f"{error.line}\n\n{error}\n", **partial}
        record = results.read_json(made.results)
        record["report_seconds"] = round(time.monotonic() - start, 3)
        return {
            "html": made.html.read_bytes(),
            "ipynb": made.notebook.read_bytes(),
            "json": to_json(record),
        }


def _worker() -> tuple[str | None, Callable[[], bool] | None]:
    """Scratch folder of the dask worker that runs this, and whether its task was cancelled."""
    from distributed import get_worker

    try:
        worker = get_worker()
        key = worker.get_current_task()
    except ValueError:  # called without dask
        return None, None

    def cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state not in ("executing", "long-running")

    return worker.local_directory, cancelled


def _answer(future: Future) -> dict[str, Any]:
    """What a point returned; for one that dask gave up, the reason as an error.

    Raises TimeoutError for a result that was lost with its worker and is being made again.
    """
    from distributed import CancelledError, KilledWorker

    if future.status != "error":
        try:
            return future.result(timeout=30)
        except TimeoutError:
            raise
        except (CancelledError, OSError):
            return {"error": "the scheduler was lost, or cancelled it"}
    error = future.exception()
    if isinstance(error, KilledWorker):
        return {"error": "its workers were lost again and again (out of memory, or killed)"}
    if isinstance(error, reports.KernelDied):
        return {"error": f"{error.line}, {RETRIES + 1} times"}
    first = (str(error).strip().splitlines() or [""])[0]
    return {"error": f"{type(error).__name__}: {first}"}


def _write_point(store: Store, folder: str, slug: str, answer: dict[str, Any]) -> None:
    for suffix in ("html", "ipynb"):
        if suffix in answer:
            store.write(f"{folder}/{slug}.{suffix}", answer[suffix])
    if "error" in answer:
        store.write(f"{folder}/{ERROR}", answer["error"].encode())
    else:
        store.remove(f"{folder}/{ERROR}")
        store.write(f"{folder}/{slug}.json", answer["json"])  # last: now it is finished


@contextlib.contextmanager
def _cluster(workers: int, scheduler: Any) -> Iterator[Client]:
    """A client of that scheduler, or of a cluster of processes of our own."""
    import logging

    import dask
    from distributed import Client
    from distributed.comm import get_address_host_port
    from distributed.utils import silence_logging_cmgr

    if scheduler:
        with silence_logging_cmgr(logging.CRITICAL):  # what matters of it is said in our words
            try:
                if isinstance(scheduler, str):
                    get_address_host_port(scheduler)  # says what is wrong with an address
                client = Client(scheduler, timeout="10s", set_as_default=False)
            except (OSError, ValueError) as error:
                reason = str(error).splitlines()[0]
                raise ValueError(f"no dask scheduler answers at {scheduler}: {reason}") from None
            with client:
                yield client
        return
    preload = [*dask.config.get("distributed.worker.preload", []), IGNORE_INTERRUPT]
    one_each = {"distributed.scheduler.worker-saturation": 1.0}  # nothing waits at a busy worker
    with (
        dask.config.set(one_each),
        local_cluster(
            workers,
            memory_limit=0,  # what needs memory is the kernels, which dask does not see
            silence_logs=logging.CRITICAL,
            preload=preload,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def default_workers(slug: str) -> int:
    """How many points of a method run side by side on this machine: by cores and free memory."""
    import psutil
    from dask.system import CPU_COUNT

    free_mb = psutil.virtual_memory().available / 2**20
    return max(1, min(CPU_COUNT, int(free_mb // catalog.find(slug).memory_mb)))


def _same_versions(client: Client) -> bool:
    """Whether there are workers; ValueError when one has another version of the workbench."""
    from importlib.metadata import PackageNotFoundError, version

    found = client.run(version, "workbench", on_error="return")
    for worker, answer in found.items():
        if isinstance(answer, PackageNotFoundError):
            raise ValueError(f"worker {worker} has no workbench; the client has {__version__}")
        if answer != __version__:
            raise ValueError(
                f"worker {worker} has workbench {answer}, the client {__version__}: "
                "install the same version on both"
            )
    return bool(found)


def expected(
    points: Points,
    out: str | Path,
    *,
    workers: int | None = None,
    scheduler: Any = None,
    resume: bool = False,
) -> dict[str, Any]:
    """What `sweep_steps` would do, without doing it: which points are left, and what they cost.

    seconds: of the whole sweep; core_hours: of all points; both None when nothing is known of the
    preset. From the finished points in `out`, or else from what the method says of its presets.
    Raises ValueError as `sweep_steps` does.
    """
    store = Store(out)
    finished = finished_points(store, points, resume)
    left = [point.name for point in points if point.name not in finished]
    if scheduler:
        with _cluster(0, scheduler) as client:
            _same_versions(client)
            side_by_side = sum(client.nthreads().values())
    else:
        side_by_side = workers or default_workers(points.slug)
    side_by_side = max(1, min(side_by_side, len(left)))
    if finished:
        known = [r["report_seconds"] for r in records_of(store, points.slug, finished).values()]
        each, basis = sum(known) / len(known), f"mean of {len(known)} finished points"
    else:
        minutes = getattr(catalog.find(points.slug).minutes, points.preset, None)
        # Stated for two cores; here a point has one.
        each, basis = minutes and 2 * 60 * minutes, "at most, from the method's own figures"
    return {
        "left": left,
        "workers": side_by_side,
        "seconds_each": each,
        "seconds": each and each * -(-len(left) // side_by_side),
        "core_hours": each and each * len(left) / 3600,
        "basis": basis,
    }


def _conclude(store: Store) -> Sweep:
    """Write the tables and the page of what is finished."""
    import io

    from workbench import sweep_page

    manifest, records, table = load_all(store)
    parquet = io.BytesIO()
    table.to_parquet(parquet)
    store.write("results.parquet", parquet.getvalue())
    store.write("results.csv", table.to_csv().encode())
    store.write("index.html", sweep_page.render(manifest, records, table).encode())
    failed = table[table.status == FAILED]
    return Sweep(
        store.out,
        *(store.address(n) for n in ("index.html", "results.parquet", "results.csv")),
        finished=int((table.status == DONE).sum()),
        failed=dict(failed.error),
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
