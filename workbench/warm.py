"""`python -m workbench.warm` compiles the hot loops of all methods once, into the cache on disk."""

from __future__ import annotations

import time

from workbench import catalog


def main() -> None:
    """Call `warm_up()` of every method that has one."""
    for method in catalog.methods():
        warm_up = getattr(catalog.load(method.slug), "warm_up", None)
        if warm_up:
            start = time.perf_counter()
            warm_up()
            print(f"{method.slug}: compiled in {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
