"""Exercises: a stub in the notebook, a check here, a hint, and a folded solution.

`check(exercise, answer)` says in one line whether an answer is right; it never raises, so that a
notebook with unsolved stubs still runs from top to bottom. Tests run each check against the
solution written in the notebook and against the stub.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.theme import OKABE_ITO

SOLVED, UNSOLVED, WRONG = "solved", "not attempted yet", "not yet"


@dataclass(frozen=True)
class Exercise:
    """`test` gets the answer (a function or a value) and asserts, with messages for a person."""

    name: str
    test: Callable[[Any], None]
    hint: str


@dataclass(frozen=True)
class Outcome:
    """What a check found; shows itself in a notebook."""

    status: str
    message: str = ""

    def _repr_html_(self) -> str:
        color = {SOLVED: OKABE_ITO["green"], UNSOLVED: "#616E7C"}.get(
            self.status, OKABE_ITO["vermillion"]
        )
        sign = {SOLVED: "✓", UNSOLVED: "○"}.get(self.status, "✗")
        return (
            f'<span style="color:{color};font-weight:600">{sign} {self.status}</span> '
            f"{html.escape(self.message)}"
        )

    def __repr__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


def check(exercise: Exercise, answer: Any) -> Outcome:
    """Try `answer`: solved, not attempted (None, `...` or NotImplementedError), or what is off."""
    if answer is None or answer is ...:
        return Outcome(UNSOLVED, f"Hint: {exercise.hint}")
    try:
        exercise.test(answer)
    except NotImplementedError:
        return Outcome(UNSOLVED, f"Hint: {exercise.hint}")
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else "the answer is not right"
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        return Outcome(WRONG, f"{kind}{text} Hint: {exercise.hint}")
    return Outcome(SOLVED, exercise.name)
