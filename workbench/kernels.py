"""Runs a notebook in a kernel of its own through papermill, with progress and a deadline.

A papermill engine: the kernel talks over private IPC sockets (no port races between parallel
runs), progress that a cell displays is passed on while it runs, and the whole run has one
deadline and can be cancelled from another thread. Whatever happens, the kernel is gone when
`execute` returns or raises.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from workbench import _fast_import  # noqa: F401  isort: skip
from jupyter_client.manager import AsyncKernelManager
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines
from papermill.execute import execute_notebook
from papermill.iorw import write_ipynb

from workbench.steps import PROGRESS_MIME, Cancelled, Step, termination_as_interrupt

# Imports make a million objects that stay: looking for garbage among them takes seconds.
RARE_COLLECTION = "import gc; gc.set_threshold(50_000, 20, 100)"
MEASURE_TAG, MEASURE_WEIGHT = "measure", 15.0  # the cell that runs the study, in ordinary cells


class _Client(PapermillNotebookClient):
    on_step: Callable[[Step], None] | None = None
    done = weight = total = 0.0

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        note = msg["content"].get("data", {}).get(PROGRESS_MIME) if "content" in msg else None
        if note and self.on_step:
            title = f"{note['title']}: {note['message']}" if note["message"] else note["title"]
            self.on_step(Step((self.done + self.weight * note["done"]) / self.total, title))
        return super().process_message(msg, cell, cell_index)

    def execute_cell(self, cell: Any, cell_index: int, *args: Any, **options: Any) -> Any:
        self.weight = _weight(cell)
        if self.on_step:
            count = f"cell {cell_index + 1} of {len(self.nb.cells)}"
            self.on_step(Step(self.done / self.total, count))
        result = super().execute_cell(cell, cell_index, *args, **options)
        self.done += self.weight
        return result


class _Engine(NBClientEngine):
    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, start_timeout: float = 60, **options: Any
    ) -> Any:
        deadline = options["deadline"]

        def remaining(_cell: Any) -> float | None:
            return max(1.0, deadline - time.monotonic()) if deadline else None

        with tempfile.TemporaryDirectory(prefix="wb-") as folder:
            manager = AsyncKernelManager(kernel_name=kernel_name)
            if os.name == "posix":
                manager.transport = "ipc"
                manager.connection_file = str(Path(folder) / "kernel.json")
            client = _Client(
                nb_man,
                kernel_name=kernel_name,
                startup_timeout=start_timeout,
                timeout_func=remaining,
                interrupt_on_timeout=False,
                shutdown_kernel="immediate",  # all its messages are in: no reason to wait
                extra_arguments=[f"--IPKernelApp.exec_lines={RARE_COLLECTION}"],
            )
            client.km = manager  # set afterwards, so that the client shuts it down as its own
            client.on_step = options["on_step"]
            client.total = sum(_weight(cell) for cell in nb_man.nb.cells)
            # What the kernel process itself prints (not its cells) is noise in a terminal.
            environment = {**os.environ, **options["environment"]}
            try:
                with _killed_on_request(manager, options["cancelled"]):
                    return client.execute(env=environment, stdout=DEVNULL, stderr=DEVNULL)
            except Exception:  # a dead kernel or a passed deadline: keep what has run
                write_ipynb(nb_man.nb, options["output"])
                raise


papermill_engines.register("workbench", _Engine)


def execute(
    notebook: Path,
    output: Path,
    parameters: dict[str, Any],
    *,
    timeout_s: float | None = None,
    on_step: Callable[[Step], None] | None = None,
    environment: dict[str, str] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> None:
    """Run `notebook` with `parameters` and write the executed copy to `output`.

    Raises what papermill raises: PapermillExecutionError for a failing cell, and nbclient's
    CellTimeoutError and DeadKernelError. The copy is written in those cases too. `cancelled` is
    asked twice a second; when it answers True the kernel is killed and `Cancelled` is raised.
    """
    with termination_as_interrupt(), _as_cancelled(cancelled):
        execute_notebook(
            str(notebook),
            str(output),
            parameters=parameters,
            engine_name="workbench",
            kernel_name="python3",
            progress_bar=False,
            # Saving after each cell would write the charts' scripts, 7 MB, forty times.
            request_save_on_cell_execute=False,
            output=str(output),
            deadline=time.monotonic() + timeout_s if timeout_s else None,
            on_step=on_step,
            environment=environment or {},
            cancelled=cancelled,
        )


def _weight(cell: Any) -> float:
    if cell.cell_type != "code":
        return 0.01
    return MEASURE_WEIGHT if MEASURE_TAG in cell.metadata.get("tags", []) else 1.0


@contextlib.contextmanager
def _killed_on_request(manager: Any, cancelled: Callable[[], bool] | None) -> Iterator[None]:
    """Inside, a thread kills the kernel once `cancelled` says True, in the middle of a cell."""
    if cancelled is None:
        yield
        return
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.5):
            kernel = manager.provisioner and manager.provisioner.process
            if kernel and cancelled():
                with contextlib.suppress(ProcessLookupError):
                    # It leads a process group, in which may be processes that its cells started.
                    os.killpg(kernel.pid, signal.SIGKILL) if os.name == "posix" else kernel.kill()
                return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextlib.contextmanager
def _as_cancelled(cancelled: Callable[[], bool] | None) -> Iterator[None]:
    """An error that comes of killing the kernel on request is raised as `Cancelled`."""
    try:
        yield
    except Exception:
        if cancelled is not None and cancelled():
            raise Cancelled() from None
        raise
