"""Torch on few cores: one thread for each small product.

The products of small maps are too small to share between threads, and splitting them would make
results depend on the number of cores; independent computations are shared out instead
(`steps.together`). Networks of a paper's size use what torch is set to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Inside, if wanted, torch works on the calling thread alone; after, as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if wanted else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
