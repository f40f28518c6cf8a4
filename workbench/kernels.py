"""Runs a notebook in a kernel of its own through papermill, with progress and a deadline.

The kernel talks over private IPC sockets (no port races between parallel runs), starts while
papermill is still being imported, and can be killed from another thread in the middle of a cell.
Whatever happens, it is gone when `started` ends.
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
from typing import TYPE_CHECKING, Any

from workbench.steps import Cancelled, Step, termination_as_interrupt

if TYPE_CHECKING:
    from jupyter_client.manager import AsyncKernelManager

# Imports make a million objects that stay: looking for garbage among them takes seconds.
RARE_COLLECTION = "import gc; gc.set_threshold(50_000, 20, 100)"
ARGUMENTS = [f"--IPKernelApp.exec_lines={RARE_COLLECTION}", "--HistoryManager.hist_file=:memory:"]


@contextlib.contextmanager
def started(environment: dict[str, str] | None = None) -> Iterator[AsyncKernelManager]:
    """A kernel for one run, which may still be starting; it is killed at the end.

    environment: its variables, on top of those of this process.
    """
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import run_sync

    with termination_as_interrupt(), tempfile.TemporaryDirectory(prefix="wb-") as folder:
        kernel = AsyncKernelManager(kernel_name="python3")
        if os.name == "posix":
            kernel.transport = "ipc"
            kernel.connection_file = str(Path(folder) / "kernel.json")
        try:
            # What the kernel process itself prints (not its cells) is noise in a terminal.
            run_sync(kernel.start_kernel)(
                extra_arguments=ARGUMENTS,
                env={**os.environ, **(environment or {})},
                stdout=DEVNULL,
                stderr=DEVNULL,
            )
            yield kernel
        finally:
            if kernel.has_kernel:
                run_sync(kernel.shutdown_kernel)(now=True)


def execute(
    notebook: Path,
    output: Path,
    parameters: dict[str, Any],
    kernel: AsyncKernelManager,
    *,
    timeout_s: float | None = None,
    on_step: Callable[[Step], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> None:
    """Run `notebook` with `parameters` in `kernel` and write the executed copy to `output`.

    Raises what papermill raises: PapermillExecutionError for a failing cell, and nbclient's
    CellTimeoutError and DeadKernelError. The copy is written in those cases too. `cancelled` is
    asked twice a second; when it answers True the kernel is killed and `Cancelled` is raised.
    """
    from workbench import engine  # registers itself with papermill  # isort: skip
    from papermill.execute import execute_notebook

    with _as_cancelled(cancelled), _killed_on_request(kernel, cancelled):
        execute_notebook(
            str(notebook),
            str(output),
            parameters=parameters,
            engine_name=engine.NAME,
            kernel_name="python3",
            progress_bar=False,
            # Saving after each cell would write the charts' scripts, 7 MB, forty times.
            request_save_on_cell_execute=False,
            output=str(output),
            deadline=time.monotonic() + timeout_s if timeout_s else None,
            on_step=on_step,
            kernel=kernel,
        )


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
