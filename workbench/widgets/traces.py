"""Traces: small line charts that follow a running simulation, beside a lattice view.

The Python half of `traces.js`. A HoloViews chart that is streamed costs 50 ms of the event loop a
drawing; this costs under one. For charts of results use HoloViews: this one only streams.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import param
from panel.custom import AnyWidgetComponent


@dataclass(frozen=True)
class Series:
    """One line: its name in the legend and in `note`, color `#RRGGBB`, and form.

    optional: left out while all its values are zero.
    """

    name: str
    color: str
    dashed: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines over a common time; low and high fix an end of the axis, which else fits the data."""

    title: str
    unit: str
    series: Sequence[Series]
    low: float | None = None
    high: float | None = None


class Traces(AnyWidgetComponent):
    """Charts that grow by `note(time, values)`; the last `kept` points are shown.

    Values are looked up by (title, series name). A time before the last one starts anew,
    the same time replaces the last point.
    """

    _esm = "traces.js"

    data = param.Bytes(b"", doc="float64: all times, then the values of each series")
    charts = param.List([], doc="What is drawn")
    time_unit = param.String("steps", doc="Unit of time")

    def __init__(self, charts: Sequence[Chart], kept: int = 300, **settings: object):
        super().__init__(charts=[asdict(chart) for chart in charts], **settings)
        self._keys = [(chart.title, series.name) for chart in charts for series in chart.series]
        self.rows: deque[list[float]] = deque(maxlen=kept)

    def note(self, time: float, values: Mapping[tuple[str, str], float]) -> None:
        """Add one point to every series; a missing value is a gap."""
        if self.rows and time < self.rows[-1][0]:
            self.rows.clear()
        elif self.rows and time == self.rows[-1][0]:
            self.rows.pop()
        self.rows.append([time, *(float(values.get(key, np.nan)) for key in self._keys)])
        self.data = np.array(self.rows, float).T.tobytes()
