"""Drawing: a place on the page for a picture that changes often, as SVG or other HTML text.

The Python half of `drawing.js`. The text is shown as it is, so make it from escaped words only.
Says `hello` when it is on the page: what is sent before that may be lost.
"""

from __future__ import annotations

from typing import Any, ClassVar

import param
from panel.custom import AnyWidgetComponent


class Drawing(AnyWidgetComponent):
    """Shows `html`; set it anew for the next picture."""

    _esm = "drawing.js"
    _priority_changes: ClassVar[list[str]] = ["html"]  # no 50 ms wait: sliders feel immediate

    html = param.String("", doc="What is shown")
    hello = param.String("", doc="A view on a page says that it is there")

    def __init__(self, html: str = "", **settings: Any):
        super().__init__(html=str(html), **({"sizing_mode": "stretch_width"} | settings))
