"""Checks of what people hand to functions: one clear line per mistake."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def number(
    name: str,
    value: Any,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    open_ends: bool = False,
    why: str = "",
) -> float:
    """A finite number from low to high (between them if `open_ends`), or ValueError in one line."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    inside = real and (low < value < high if open_ends else low <= value <= high)
    if not inside or not np.isfinite(value):
        allowed = f"{'between' if open_ends else 'from'} {low:g} {'and' if open_ends else 'to'} "
        above = f"numbers {'above' if open_ends else 'from'} {low:g}"
        words = f"numbers {allowed}{high:g}" if np.isfinite(high) else above
        raise ValueError(f"{name} = {value!r}; allowed are {words}{f' ({why})' if why else ''}")
    return float(value)


def count(name: str, value: Any, low: int = 1, high: int | None = None) -> int:
    """An integer from low to high, or ValueError in one line."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        up = f"from {low} to {high}" if high is not None else f"from {low}"
        raise ValueError(f"{name} = {value!r}; allowed are integers {up}")
    return int(value)


def levels(value: Any) -> int:
    """An odd number of quantization levels from 3 to 33: zero must be one of them."""
    value = count("levels", value, 3, 33)
    if value % 2 == 0:
        raise ValueError(
            f"levels = {value}; allowed are odd numbers from 3 to 33, so that zero is a level: "
            f"take {value - 1} or {value + 1}"
        )
    return value
