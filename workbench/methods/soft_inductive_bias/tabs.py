"""What the tabs of the live page have in common: controls that are followed, jobs, and a place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

from workbench.explorer import problem
from workbench.jobs import Latest
from workbench.steps import Steps
from workbench.widgets.drawing import Drawing
from workbench.widgets.faders import Faders

if TYPE_CHECKING:
    from .live import Bench


class Tab:
    """One tab. It builds its controls and pictures, and hears the parameters that it names.

    open: it is on the page now. changed: parameters have other values.
    """

    title = ""
    hears: frozenset[str] = frozenset()

    def __init__(self, bench: Bench):
        self.bench, self.parameters = bench, bench.parameters
        self.jobs = Latest(bench.tell)
        self._quiet = False
        self.build()

    def build(self) -> None:
        """Make controls and pictures."""
        raise NotImplementedError

    def layout(self) -> list[Any]:
        """What is on the tab, from top to bottom."""
        raise NotImplementedError

    def open(self) -> None:
        """Compute what is missing."""

    def changed(self, names: set[str]) -> None:
        """Follow parameters that have changed."""

    # For those who build one ------------------------------------------------------------------

    def button(self, label: str, action: Callable[[], None], width: int, **more: Any) -> Any:
        """A button that calls `action`."""
        made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
        made.on_click(lambda event: action())
        return made

    def faders(self, caption: str, on_move: Callable[[], None], *rows: tuple) -> Faders:
        """Sliders of (name, value, low, high, step) each; moved by `follow`, they stay silent."""
        names, values, lows, highs, steps = (list(c) for c in zip(*rows, strict=True))
        made = Faders(names=names, values=values, lows=lows, highs=highs, steps=steps,
                      caption=caption)  # fmt: skip
        made.param.watch(lambda event: None if self._quiet else on_move(), "values")
        return made

    def follow(self, sliders: Faders, values: Iterable[float]) -> None:
        """Put sliders where the parameters are, without being heard."""
        values = np.clip(list(values), sliders.lows, sliders.highs)
        if np.allclose(sliders.values, values, atol=1e-6):
            return
        self._quiet = True
        try:
            sliders.move(values)
        finally:
            self._quiet = False

    def start(
        self, make: Callable[[], Steps], take: Callable[[Any], None], jobs: Latest | None = None
    ) -> None:
        """Run steps in place of what this tab runs, or of what `jobs` run."""
        self.bench.stop_button.disabled = False
        (jobs or self.jobs).start(make, take)

    def draw(self, picture: Drawing, make: Callable[[], Any]) -> bool:
        """Show what `make` returns; an error is one line in the status, and nothing is drawn."""
        try:
            picture.html = str(make())
        except (ValueError, np.linalg.LinAlgError) as error:
            self.bench.status.object = problem(error).object
            return False
        return True


def narrow(part: Any) -> pn.viewable.Viewable:
    """A part that is no wider than its chart."""
    return pn.Column(part, max_width=640, sizing_mode="stretch_width", margin=0)


def log10(value: float, least: float = 1e-12) -> float:
    """Where a slider of powers of ten stands."""
    return float(np.log10(max(value, least)))
