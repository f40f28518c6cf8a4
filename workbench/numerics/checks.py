"""Checks of what people hand to functions, where methods ask alike: one clear line per mistake."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

AVERAGE_REWARD = (  # what to say to a discount of 1 or more
    "the correction divides by 1 - gamma: for the average reward use relative value iteration"
)


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of the allowed words, or an error with the nearest one."""
    allowed = list(allowed)
    if value not in allowed:
        near = get_close_matches(str(value), allowed, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} = {value!r}; allowed are {', '.join(allowed)}{hint}")
    return value
