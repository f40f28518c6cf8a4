"""Processes on this machine for work that fans out, by dask."""

from __future__ import annotations

from typing import Any


def local_cluster(workers: int, **options: Any) -> Any:
    """A dask LocalCluster of `workers` processes with one thread each, on loopback only.

    Without dask's dashboard; its server still listens, here on a free port, since a fixed one is
    taken as soon as two clusters run.
    """
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        **options,
    )
