"""Desk: one long work at a time behind the buttons of a live page, with a line that tells of it.

Where `explorer.py` runs the whole study, a bench of a live page runs pieces of it: the work goes to
a thread (`jobs.Latest`), its progress to the line, and a button stops it. Also the small widgets
that every bench is made of. Knows no method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn

from workbench import theme
from workbench.explorer import problem
from workbench.jobs import Latest
from workbench.steps import Step, Steps

WORDS = {"done": "Done.", "stopped": "Stopped; what was finished is shown."}


class Desk:
    """`status` and `stop_button` for the page; `start(make, take)` runs something.

    shown: whether a page still shows this, else the work stops.
    """

    def __init__(self, shown: Callable[[], bool]):
        self.status = pn.pane.HTML(
            "", sizing_mode="stretch_width", min_height=22, margin=(0, 0, 4, 0),
            styles={"font-family": theme.FONT},
        )  # fmt: skip
        self.stop_button = button("Stop", self.stop, 70, disabled=True)
        self._shown, self._seen = shown, False
        self._ended: Callable[[str], None] | None = None
        self.jobs = Latest(self._tell)

    def start(
        self, make: Callable[[], Steps], take: Callable[[Any], None],
        ended: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        """Run the steps of `make()` in place of what runs; `take` gets all their data.

        ended: called with "done" or "stopped", after the last data.
        """
        self.stop_button.disabled = False
        self._ended = ended
        self.jobs.start(make, take)

    def stop(self) -> None:
        """Stop what runs; what it has is kept."""
        self.jobs.stop()

    def say(self, words: str | Exception) -> None:
        """Put words (HTML) or an error on the line."""
        self.status.object = words if isinstance(words, str) else problem(words).object

    def _tell(self, what: Step | str | Exception) -> None:
        self.stop_button.disabled = not isinstance(what, Step)
        if isinstance(what, Step):
            here = self._shown()
            if self._seen and not here:  # the page is gone
                self.stop()
            self._seen = here
            self.say(theme.progress_html(what.done, what.message))
            return
        self.say(WORDS[what] if isinstance(what, str) else what)
        if isinstance(what, str) and self._ended:
            self._ended(what)


def button(label: str, action: Callable[[], Any], width: int, **more: Any) -> Any:
    """A button that does `action`."""
    made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
    made.on_click(lambda event: action())
    return made


def tab(*parts: Any) -> pn.viewable.Viewable:
    """What a tab shows, below each other."""
    return pn.Column(*parts, sizing_mode="stretch_width", margin=(8, 0), max_width=960)


def narrow(*parts: Any) -> pn.viewable.Viewable:
    """Parts that would be too wide for the page."""
    return pn.Column(*parts, max_width=640, sizing_mode="stretch_width", margin=0)
