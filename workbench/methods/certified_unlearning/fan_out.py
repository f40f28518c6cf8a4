"""Independent jobs in this process, one after the other, or on a local dask cluster.

No preset asks for the cluster. On two cores it took twice as long as one process (91 s against 34 s
for a search with six trials): each worker first imports torch, and the small products of a step
then wait for the interpreter lock that they share with the thread of the cluster. With more cores
and more trials it pays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from workbench import steps as work
from workbench.cluster import local_cluster
from workbench.steps import Step, Steps, part

Job = tuple[Callable[..., Steps[Any]], tuple]


def steps(jobs: Mapping[Hashable, Job], workers: int) -> Steps[dict]:
    """Run generators of steps, each made by `function(*arguments)`; results by key.

    workers: processes of a cluster on this machine, 0 for none. Data of a step: finished results.
    """
    found: dict = {}
    if not workers:
        for k, (key, (make, arguments)) in enumerate(jobs.items()):
            found[key] = yield from part(
                make(*arguments), k / len(jobs), (k + 1) / len(jobs), str(key)
            )
            yield Step((k + 1) / len(jobs), str(key), dict(found))
        return found
    from distributed import Client, TimeoutError, as_completed

    with (
        local_cluster(workers) as cluster,
        Client(cluster) as client,
    ):
        futures = {client.submit(_run, *job, pure=False): key for key, job in jobs.items()}
        waiting = set(futures)
        while waiting:
            try:
                for future in as_completed(waiting, timeout=0.3):
                    found[futures[future]] = future.result()
                    waiting.discard(future)
            except TimeoutError:
                pass
            yield Step(len(found) / len(jobs), f"{len(waiting)} jobs", dict(found))
    return {key: found[key] for key in jobs}


def _run(make: Callable[..., Steps[Any]], arguments: tuple) -> Any:
    return work.run(make(*arguments))
