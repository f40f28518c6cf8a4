"""Jobs: a generator of steps in a thread of its own, watched from an event loop.

What an explorer runs behind its buttons. The thread does the work and touches no widget; the loop
looks at it ten times a second or as often as asked, so progress, cancel and errors reach the page.
Also the making of a report as such a generator, in a process group of its own. Knows no page and no
method.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.parameters import Parameters
from workbench.steps import Cancelled, Step, Steps, run

GRACE_S = 0.8  # how long a cancelled job may take to stop before the page goes on without it


class Job:
    """One run of `steps` in a thread.

    `await job.watch(on_step)` returns the result, raises the error of the work, or raises
    `Cancelled` with the latest partial result within a second of `cancel()`.
    """

    def __init__(self, steps: Steps):
        self.latest: Step | None = None
        self._partial: Any = None
        self._stop = threading.Event()
        self._outcome: list[tuple[bool, Any]] = []
        self._thread = threading.Thread(target=self._run, args=(steps,), daemon=True)
        self._thread.start()

    def _run(self, steps: Steps) -> None:
        try:
            self._outcome.append((True, run(steps, self._note, self._stop.is_set)))
        except BaseException as error:
            self._outcome.append((False, error))

    def _note(self, step: Step) -> None:
        self.latest = step
        if step.data is not None:
            self._partial = step.data

    def cancel(self) -> None:
        """Ask the work to stop at its next step."""
        self._stop.set()

    async def watch(
        self, on_step: Callable[[Step], None] = lambda step: None, every_s: float = 0.1
    ) -> Any:
        """Follow the work from the event loop; `on_step` is called there with the newest step."""
        shown, asked = None, None
        while self._thread.is_alive():
            await asyncio.sleep(every_s)
            if self.latest is not shown:
                shown = self.latest
                on_step(shown)
            if self._stop.is_set():
                asked = asked or time.monotonic()
                if time.monotonic() - asked > GRACE_S:
                    raise Cancelled(self._partial)
        good, outcome = self._outcome[0]
        if good:
            return outcome
        raise outcome


def report_steps(parameters: Parameters, out: Path) -> Steps[dict[str, str]]:
    """Make a report of `parameters` in folder `out` with the command line, as steps.

    Returns the paths that `workbench report --json` prints. Raises RuntimeError with what the
    command said when it fails. When closed, the process group is interrupted, then killed.
    """
    command = [sys.executable, "-m", "workbench", "report", parameters.slug, "--json"]
    command += ["--out", str(out)]
    for name, value in parameters.to_papermill().items():
        if value != parameters.param[name].default:
            command += ["-p", name, str(value)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    said = {process.stdout: b"", process.stderr: b""}
    done = 0.0
    try:
        yield Step(0.0, "starting a kernel")
        streams = list(said)
        while streams:
            for stream in select.select(streams, [], [], 0.2)[0]:
                piece = os.read(stream.fileno(), 65_536)
                said[stream] += piece
                if not piece:
                    streams.remove(stream)
            found = re.findall(rb"(\d+)%\|", said[process.stderr][-2000:])
            done = max(done, int(found[-1]) / 100 if found else 0.0)
            yield Step(done, "running the notebook" if done < 1 else "writing the page")
        if process.wait() != 0:
            words = said[process.stderr].decode(errors="replace").split("\r")[-1].strip()
            raise RuntimeError(words[-1500:] or f"the report ended with code {process.returncode}")
        return json.loads(said[process.stdout])
    finally:
        _end(process)
        for stream in said:
            stream.close()


def _end(process: subprocess.Popen) -> None:
    """Interrupt a process group, so that it cleans up its kernel; kill it if it does not."""
    for sign, patience_s in ((signal.SIGINT, 6.0), (signal.SIGKILL, 2.0)):
        if process.poll() is not None:
            return
        os.killpg(process.pid, sign)
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue


class Latest:
    """One job at a time: a new wish stops what runs and takes its place.

    tell: called with every `Step`, with "done" or "stopped" at the end, or with the error. Without
    a running event loop (a test, a script) a wish is done at once. In the thread of the loop only.
    every_s: how often to look at what runs.
    """

    def __init__(self, tell: Callable[[Step | str | Exception], None], every_s: float = 0.1):
        self._tell, self._every_s = tell, every_s
        self._wish: tuple[Callable[[], Steps], Callable[[Any], None]] | None = None
        self._job: Job | None = None
        self._task: asyncio.Task | None = None

    @property
    def busy(self) -> bool:
        """Whether something runs or waits."""
        return bool(self._job or self._wish)

    def start(self, make: Callable[[], Steps], take: Callable[[Any], None]) -> None:
        """Run the steps that `make()` gives in place of what runs; `take` gets all their data."""
        self._wish = (make, take)
        if self._job:
            self._job.cancel()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._wish = None
            try:
                take(run(make()))
                self._tell("done")
            except Exception as error:
                self._tell(error)
            return
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())

    def stop(self) -> None:
        """Stop what runs; what it has so far is kept."""
        self._wish = None
        if self._job:
            self._job.cancel()

    async def _work(self) -> None:
        while self._wish:
            (make, take), self._wish = self._wish, None

            def noticed(step: Step, take: Callable[[Any], None] = take) -> None:
                self._tell(step)
                if step.data is not None and not self._wish:
                    take(step.data)

            try:
                self._job = Job(make())
                take(await self._job.watch(noticed, self._every_s))
                self._tell("done")
            except Cancelled as stopped:
                if not self._wish:
                    if stopped.data is not None:
                        take(stopped.data)
                    self._tell("stopped")
            except Exception as error:
                self._tell(error)
            finally:
                self._job = None
