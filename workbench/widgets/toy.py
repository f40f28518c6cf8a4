"""A small inline toy: sliders on a pure function, by ipywidgets.

For one idea on the spot, in every front end that speaks ipywidgets. Not for long work and not for
a method's main view (see `workbench.explorer`). In a report the function's value at the starting
settings stands there instead, since ipywidgets are blank without a kernel.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

STILL = "WORKBENCH_STILL"


def toy(function: Callable[..., Any], **sliders: tuple[float, float, float, float]) -> None:
    """Show `function(**values)` with one slider per argument, each (start, low, high, step)."""
    from IPython.display import display

    starts = {name: start for name, (start, *_) in sliders.items()}
    if os.environ.get(STILL):
        display(function(**starts))
        return
    import ipywidgets

    controls = {
        name: ipywidgets.FloatSlider(
            value=start,
            min=low,
            max=high,
            step=step,
            description=name,
            continuous_update=True,
            style={"description_width": "9em"},
            layout={"width": "28em"},
        )
        for name, (start, low, high, step) in sliders.items()
    }
    shown = ipywidgets.Output()

    def show(*_: Any) -> None:
        # Not `interactive_output`, which drops what a function returns; and no display into an
        # `Output`, whose messages sometimes make a client that runs notebooks wait for ever.
        value = function(**{name: control.value for name, control in controls.items()})
        with shown.hold_sync():  # one message, no flicker
            shown.outputs = ()
            shown.append_display_data(value)

    for control in controls.values():
        control.observe(show, "value")
    show()
    display(ipywidgets.VBox(list(controls.values())), shown)
