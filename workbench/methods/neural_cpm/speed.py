"""How fast the engine is beside its peer, glazier, measured in turns in one process.

Unit: equivalent uniform attempts per CPU second, that is sites x MCS / s, since engines skip null
attempts in different ways. glazier is a Cellular Potts engine in Rust (`pip install glazier`);
without it only this engine is timed.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .lattice import CPM

J, T = [[0, 16], [16, 8]], 10.0
TWO_KINDS = [[0, 16, 16], [16, 6, 16], [16, 16, 6]]
# side of the torus, side of the square cells, cells in a row, options
CASES: dict[str, tuple[int, int, int, dict[str, Any]]] = {
    "128 x 128": (128, 8, 16, {}),
    "512 x 512": (512, 8, 64, {}),
    "200 x 200, 100 cells of two kinds": (200, 14, 10, {"J": TWO_KINDS}),
    "512 x 512, connected": (512, 8, 64, {"connected": True}),
    "512 x 512, perimeter": (512, 8, 64, {"lam_P": 0.1, "P_target": 60.0}),
}


@dataclass(frozen=True)
class Speed:
    """Attempts per CPU second of this engine and of glazier in one case, and their ratio.

    All are medians over rounds; ratio: of the two rates of a round, which were measured one after
    the other, so that a machine that slows down for a while slows both. None without glazier.
    """

    case: str
    own: float
    peer: float | None = None
    ratio: float | None = None


def compare_speed(
    cases: tuple[str, ...] = ("512 x 512",),
    rounds: int = 3,
    attempts: float = 1e6,
) -> list[Speed]:
    """Median rates over `rounds` of `attempts` each; ValueError for an unknown case."""
    unknown = [case for case in cases if case not in CASES]
    if unknown:
        raise ValueError(f"case = {unknown[0]!r} is not known: allowed are {', '.join(CASES)}")
    found = []
    for case in cases:
        size, side, n, options = CASES[case]
        mcs = int(attempts / size**2) + 1
        own, peer = own_engine(size, side, n, options), glazier_engine(size, side, n, options)
        own(3)  # from square cells to rough borders, and compiled
        rates = [
            (per_second(own, size**2, mcs), peer and without_set_up(peer, size**2, mcs))
            for _ in range(rounds)
        ]
        mine, theirs = zip(*rates, strict=True)
        against = (theirs, np.divide(mine, theirs)) if peer else ()
        medians = [float(np.median(numbers)) for numbers in (mine, *against)]
        found.append(Speed(case, *medians))
    return found


def per_second(run: Callable[[int], Any], sites: int, mcs: int) -> float:
    """Attempts per CPU second of `run(mcs)`."""
    start = time.process_time()
    run(mcs)
    return sites * mcs / (time.process_time() - start)


def without_set_up(run: Callable[[int], Any], sites: int, mcs: int) -> float:
    """The same for an engine that builds its lattice in every call: 3 MCS are taken off."""
    start = time.process_time()
    run(3)
    middle = time.process_time()
    run(mcs + 3)
    return sites * mcs / (time.process_time() - middle - (middle - start))


def own_engine(
    size: int, side: int, n: int, options: dict[str, Any], **more: Any
) -> Callable[[float], None]:
    """`run(mcs)` of this engine on n x n square cells, in equal shares of each kind."""
    cell = np.zeros((size, size), np.int32)
    squares = np.arange(1, n * n + 1, dtype=np.int32).reshape(n, n)
    cell[: n * side, : n * side] = np.kron(squares, np.ones((side, side), np.int32))
    terms = {"J": J, **options, **more}
    kind = np.r_[0, 1 + np.arange(n * n) * (len(terms["J"]) - 1) // (n * n)]
    return CPM(cell, kind, lam=1.0, V_target=side * side, T=T, contact_norm=1.0, **terms).step


def glazier_engine(
    size: int, side: int, n: int, options: dict[str, Any]
) -> Callable[[int], Any] | None:
    """`run(mcs)` of glazier on the same lattice, or None if it is not installed."""
    try:
        native = importlib.import_module("glazier._native")
    except ImportError:
        return None
    contact = options.get("J", J)
    names = "AB"[: len(contact) - 1]
    shares = dict.fromkeys(names, 1 / len(names))
    cell = {
        "target_volume": float(side * side), "lambda_volume": 1.0,
        "connected": options.get("connected", False),
        "lambda_surface": options.get("lam_P", 0.0), "target_surface": options.get("P_target", 0.0),
    }  # fmt: skip
    model = json.dumps({
        "name": "tiles", "width": size, "height": size, "temperature": T,
        "types": [{"name": name, **cell} for name in names],
        "contact": [float(x) for row in contact for x in row], "neighbour_order": 2, "seed": 1,
        "steps": 1, "dump_every": 10**6,
        "initial": {"side": side, "nx": n, "ny": n, "fractions": shares},
        "units": {"micron_per_site": 1.0, "minute_per_step": 1.0},
    })  # fmt: skip
    return lambda mcs: native.run(model, mcs)
