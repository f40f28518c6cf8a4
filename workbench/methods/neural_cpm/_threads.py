"""Torch on few cores: one thread for each small product, and several long computations at a time.

The products of small maps are too small to share between threads, and splitting them would make
results depend on the number of cores. Independent computations are shared out instead. Networks of
the paper's size use what torch is set to. The engine has threads of its own (`ensemble`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from workbench.steps import Step, Steps, run


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Inside, if wanted, torch works on the calling thread alone; after, as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if wanted else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def together(
    jobs: Sequence[Callable[[], Steps[Any]]], workers: int | None = None
) -> Steps[list[Any]]:
    """Run generators of steps on `workers` threads (None: one each); results in order.

    More threads than cores is fine: three equal jobs share two cores better than in two rounds.

    Each `Step` carries the list of the latest data of all (None before the first). Closing the
    generator closes them all. The first error of a job is raised once the others have stopped.
    """
    reports: queue.SimpleQueue = queue.SimpleQueue()
    stopping = threading.Event()
    done, latest = np.zeros(len(jobs)), [None] * len(jobs)

    def work(number: int) -> Any:
        try:
            steps = jobs[number]()
            return run(steps, lambda step: reports.put((number, step)), stopping.is_set)
        finally:
            reports.put((number, None))

    pool = ThreadPoolExecutor(workers or len(jobs), "neural_cpm")
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
            message = step.message if len(jobs) == 1 else f"{number + 1}: {step.message}"
            yield Step(float(done.mean()), message, list(latest))
        return [future.result() for future in futures]
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)
