"""Long work as a generator of steps: one runner with progress and cancel for everybody.

A long computation is a generator that yields `Step`s often and returns its result. Notebook, app,
terminal and test drive the same generator with `run`; progress and cancel hang on it once, here,
and not in each method. This module knows nothing of what is computed.
"""

from __future__ import annotations

import contextlib
import html
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")
PROGRESS_MIME = "application/vnd.workbench.progress+json"


@dataclass(frozen=True)
class Step:
    """One report of a long computation.

    done: fraction finished, 0 to 1. message: what is going on, for a person.
    data: the latest partial result, kept when the work is cancelled.
    """

    done: float
    message: str = ""
    data: Any = None


class Cancelled(Exception):
    """The work was stopped on request; `data` holds the latest partial result (or None)."""

    def __init__(self, data: Any = None):
        super().__init__("cancelled")
        self.data = data


Steps = Generator[Step, None, Result]


def run(
    steps: Steps[Result],
    on_step: Callable[[Step], None] | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Result:
    """Drive `steps` to the end and return its result.

    `on_step` sees every step; `cancelled` is asked after each one. Raises `Cancelled`, with the
    latest partial result, when it answers True or on KeyboardInterrupt.
    """
    data = None
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as stop:
                return stop.value
            data = data if step.data is None else step.data
            if on_step:
                on_step(step)
            if cancelled():
                raise Cancelled(data)
    except KeyboardInterrupt:
        raise Cancelled(data) from None
    finally:
        steps.close()


def part(
    steps: Steps[Result],
    start: float,
    stop: float,
    prefix: str = "",
    data: Callable[[Any], Any] | None = None,
) -> Steps[Result]:
    """Embed the steps of a part into those of the whole: its 0..1 becomes start..stop.

    Use as `result = yield from part(...)`. `data` turns the partial data of the part into that of
    the whole; without it they are not passed on.
    """
    try:
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                return end.value
            message = f"{prefix}: {step.message}" if prefix and step.message else prefix
            partial = None if data is None or step.data is None else data(step.data)
            yield Step(start + (stop - start) * step.done, message or step.message, partial)
    finally:
        steps.close()


def together(
    jobs: Sequence[Callable[[], Steps[Any]]],
    workers: int | None = None,
    names: Sequence[str] | None = None,
) -> Steps[list[Any]]:
    """Run generators of steps on `workers` threads (None: one each); results in order.

    More threads than cores is fine: three equal jobs share two cores better than in two rounds.
    names: of the jobs, before their messages (None: their numbers, if there are several).

    Each `Step` carries the list of the latest data of all (None before the first). Closing the
    generator closes them all. The first error of a job is raised once the others have stopped.
    """
    reports: queue.SimpleQueue = queue.SimpleQueue()
    stopping = threading.Event()
    done, latest = [0.0] * len(jobs), [None] * len(jobs)

    def work(number: int) -> Any:
        try:
            steps = jobs[number]()
            return run(steps, lambda step: reports.put((number, step)), stopping.is_set)
        finally:
            reports.put((number, None))

    pool = ThreadPoolExecutor(workers or len(jobs) or 1, "steps")
    try:
        futures = [pool.submit(work, number) for number in range(len(jobs))]
        running = len(jobs)
        while running:
            number, step = reports.get()
            if step is None:
                running -= 1
                continue
            done[number] = step.done
            latest[number] = latest[number] if step.data is None else step.data
            name = names[number] if names else str(number + 1) if len(jobs) > 1 else ""
            message = ": ".join(filter(None, (name, step.message)))
            yield Step(sum(done) / len(jobs), message, list(latest))
        return [future.result() for future in futures]
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """SIGTERM cleans up just as Ctrl-C does (signals reach the main thread only)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Progress:
    """A progress bar to hand to `run` as `on_step`; use as a context manager.

    In a notebook it is one display that stays in the saved output; in a terminal a tqdm bar, with
    its estimate of the time left unless not `remaining`.
    """

    def __init__(self, title: str = "", min_interval_s: float = 0.1, remaining: bool = True):
        self.title, self.min_interval_s, self.remaining = title, min_interval_s, remaining
        self._handle = self._bar = None
        self._start = self._shown = 0.0

    def __enter__(self) -> Progress:
        self._start = time.perf_counter()
        if _in_notebook():
            from IPython.display import display

            self._handle = display(self._bundle(Step(0.0)), raw=True, display_id=True)
        return self

    def __call__(self, step: Step) -> None:
        now = time.perf_counter()
        if now - self._shown < self.min_interval_s and step.done < 1:
            return
        self._shown = now
        if self._handle:
            self._handle.update(self._bundle(step), raw=True)
        else:
            if self._bar is None:
                self._bar = _terminal_bar(self.title, self.remaining)
            self._bar.set_postfix_str(step.message[:60], refresh=False)
            self._bar.update(100 * step.done - self._bar.n)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        seconds = time.perf_counter() - self._start
        if self._handle:
            ending = Step(1.0, f"done in {seconds:.1f} s") if kind is None else None
            stopped = Step(0.0, f"{'cancelled' if kind is Cancelled else 'failed'}: {error}")
            self._handle.update(self._bundle(ending or stopped), raw=True)
        elif self._bar is not None:
            if kind is None:
                self._bar.update(100 - self._bar.n)
            self._bar.close()

    def _bundle(self, step: Step) -> dict[str, Any]:
        percent = round(100 * step.done)
        seconds = time.perf_counter() - self._start
        text = f"{self.title}: {percent} % {step.message}".strip()
        bar = (
            f'<div style="font:13px system-ui,sans-serif;max-width:46em;margin:.3em 0">'
            f'<progress max="100" value="{percent}" aria-label="{html.escape(self.title)}" '
            f'style="width:14em;vertical-align:middle;accent-color:#0072B2"></progress> '
            f"<b>{html.escape(self.title)}</b> {percent} % · {seconds:.0f} s · "
            f"{html.escape(step.message)}</div>"
        )
        note = {"title": self.title, "done": step.done, "message": step.message}
        return {"text/html": bar, "text/plain": text, PROGRESS_MIME: note}


def _terminal_bar(title: str, remaining: bool) -> Any:
    from tqdm import tqdm

    left = "<{remaining}" if remaining else ""
    form = f"{{desc}}: {{percentage:3.0f}}%|{{bar}}| {{elapsed}}{left}{{postfix}}"
    return tqdm(total=100, desc=title, file=sys.stderr, bar_format=form)


def _in_notebook() -> bool:
    """True inside a Jupyter kernel (and not in plain IPython or Python)."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return bool(shell) and hasattr(shell, "kernel")
