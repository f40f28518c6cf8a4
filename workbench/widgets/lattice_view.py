"""LatticeView: a canvas that plays integer lattices, and the loop that feeds it from a source.

The Python half of `lattice_view.js`. It knows nothing of any method: a `Source` computes frames,
the view packs them into one buffer each, keeps few of them unacknowledged, and hands what
the user does (play, step, paint, kill, inspect) to the source between frames. Not a chart, and
not a store of frames: the last one remains as a still in an exported page.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import param
from panel.custom import AnyWidgetComponent

from workbench.widgets import images

# Unacknowledged frames: unpaced ones are lost silently on the way to the browser. Notebooks hold
# acknowledgments back by 50 ms, so two more may be under way if they are sent at 40 Hz or less.
AHEAD, AHEAD_PACED, PACE_S = 2, 4, 1 / 40
CHUNK_S = 0.02  # the source works in pieces of about this length, so that clicks act at once


@dataclass(frozen=True)
class Frame:
    """One lattice to draw.

    cell: (H, W) integer identities 0..N, 0 is the medium. kind: (N+1,) kind of each identity.
    time: in the unit of the view. field: (H, W) floats shown as colors or None, with its name,
    unit and (low, high) range; without a range, the smallest and largest finite value.
    """

    cell: np.ndarray
    kind: np.ndarray
    time: float = 0.0
    field: np.ndarray | None = None
    field_name: str = "field"
    field_unit: str = ""
    field_range: tuple[float, float] | None = None


class Source(Protocol):
    """What a simulation offers to a `LatticeView`; one call at a time, never two at once.

    The calls come from a worker thread. `advance(1)` should take under 50 ms. A source may also
    have `paint(sites, kind, stroke)`: give the sites, (k, 2) rows of (row, column), to one cell
    of `kind`, the same cell throughout one `stroke` (kind 0 erases); and `kill(identity)`.
    """

    kinds: Sequence[str]  # names, the medium first

    def frame(self) -> Frame:
        """The present state."""

    def advance(self, n: int) -> Frame:
        """The state after `n` more units of time."""

    def reset(self, seed: int) -> Frame:
        """The state at a fresh start with this seed."""


def field_span(frame: Frame) -> tuple[float, float]:
    """(low, high) of a frame's field: its range, or that of its finite values."""
    if frame.field_range is not None:
        return float(frame.field_range[0]), float(frame.field_range[1])
    finite = frame.field[np.isfinite(frame.field)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def pack(frame: Frame, number: int, deflate: bool = True) -> bytes:
    """One buffer for the browser: header length (uint32), JSON header, cells, kinds, field.

    Raises ValueError when the lattice is not two-dimensional integers 0..N with N+1 kinds.
    """
    cell, kind = np.asarray(frame.cell), np.asarray(frame.kind)
    if cell.ndim != 2 or not np.issubdtype(cell.dtype, np.integer):
        raise ValueError(f"cell is {cell.dtype} of shape {cell.shape}: use (H, W) integers")
    low, high = int(cell.min(initial=0)), int(cell.max(initial=0))
    if low < 0 or high >= len(kind):
        raise ValueError(
            f"cell holds identities {low} to {high}: allowed are 0 to {len(kind) - 1}, "
            f"because kind has {len(kind)} entries"
        )
    wide = np.uint16 if len(kind) < 65_536 else np.uint32
    head: dict[str, Any] = {
        "id": number,
        "time": float(frame.time),
        "shape": cell.shape,
        "dtype": np.dtype(wide).name,
        "cells": len(kind) - 1,
        "deflated": deflate,
    }
    body = cell.astype(wide).tobytes() + kind.astype(np.uint8).tobytes()
    if frame.field is not None:
        span = field_span(frame)
        head["field"] = {
            "name": frame.field_name,
            "unit": frame.field_unit,
            "low": span[0],
            "high": span[1],
        }
        body += images.quantize(frame.field, *span).tobytes()
    head["bytes"] = len(body)
    text = json.dumps(head).encode()
    return struct.pack("<I", len(text)) + text + (zlib.compress(body, 1) if deflate else body)


class LatticeView(AnyWidgetComponent):
    """A lattice on a canvas with play, step, reset, seed, speed, colors and a pointer.

    `LatticeView(source)` shows the source's present state; `do(action)` changes the running
    simulation between two frames; `on_frame` holds functions called with each new `Frame`.
    Errors of the source stop the play and are shown in the view.
    """

    _esm = "lattice_view.js"
    # Panel holds back what the browser says by 50 ms; for these that would halve the frame rate.
    _priority_changes: ClassVar[list[str]] = ["acknowledged", "gesture", "playing"]

    frame = param.Bytes(b"", doc="The packed last frame")
    acknowledged = param.Integer(0, doc="Number of the last frame drawn by the browser")
    playing = param.Boolean(False, doc="Whether the simulation runs")
    speed = param.Integer(4, bounds=(1, 1024), doc="Units of time for each frame")
    seed = param.Integer(0, bounds=(0, None), doc="Seed used by reset")
    color_by = param.String("kind", doc="kind, cell or field")
    colorings = param.List(["kind", "cell"], doc="What the user may color by")
    tools = param.List(["inspect"], doc="inspect, paint:KIND, erase, kill")
    tool = param.String("inspect", doc="What the pointer does")
    selected = param.List([], doc="(row, column) of the last inspected site")
    marks = param.List([], doc="Boxes (row, column, height, width) outlined on the lattice")
    kinds = param.List([], doc="Names of the kinds, the medium first")
    kind_colors = param.List(images.KIND_COLORS, doc="Colors of the kinds")
    cell_colors = param.List(images.CELL_COLORS, doc="Colors of cells")
    field_colors = param.List([], doc="256 colors of the field, the last for missing values")
    caption = param.String("Cell lattice", doc="What is seen, for screen readers")
    time_unit = param.String("steps", doc="Unit of time")
    fault = param.String("", doc="What went wrong, shown in the view")
    gesture = param.Dict({}, doc="What the user did: view and numbered items")
    inflates = param.Boolean(True, doc="Whether the browser can inflate frames")
    hello = param.String("", doc="A view asks whether Python is there")
    answer = param.String("", doc="Python's answer: the name of the view that asked")

    def __init__(self, source: Source, *, field_colors: str = "cividis", **settings: Any):
        colors = [*images.colormap(field_colors)[:255], images.MISSING]
        fit = {"sizing_mode": "stretch_width", "max_width": 520}
        super().__init__(kinds=list(source.kinds), field_colors=colors, **(fit | settings))
        self.source = source
        self.on_frame: list[Callable[[Frame], None]] = []
        self._pending: deque[Callable[[], Any]] = deque()
        self._heard: dict[str, int] = {}  # last item of each browser view
        self._sent = self.acknowledged
        self._sent_at = 0.0
        self._room = asyncio.Event()
        self._task: asyncio.Task | None = None
        self._cost_s = CHUNK_S  # seconds that the source needs for one unit of time
        self.param.watch(self._hear, "gesture")
        self.param.watch(lambda event: self._room.set(), "acknowledged")
        self.param.watch(lambda event: self._wake(), "playing")
        self.param.watch(lambda event: self.param.update(answer=event.new), "hello")
        self.param.watch(lambda event: self.show(self.last), "inflates")
        self.show(source.frame())

    def show(self, frame: Frame) -> None:
        """Send a frame to the browser and to the functions in `on_frame`."""
        self.last = frame
        self._send()
        for listener in self.on_frame:
            listener(frame)

    def _send(self) -> None:
        self._sent += 1
        self._sent_at = time.monotonic()
        self.frame = pack(self.last, self._sent, self.inflates)

    def do(self, action: Callable[[], Any]) -> None:
        """Run `action` between two frames of the simulation, then show the new state."""
        self._pending.append(action)
        self._wake()

    def step(self, n: int | None = None) -> None:
        """Advance by `n` units of time, one frame's worth when not given."""
        self.do(lambda: self.source.advance(n or self.speed))

    def reset(self) -> None:
        """Start again with the present seed."""
        self.do(lambda: self.source.reset(self.seed))

    def still(self, scale: int = 4) -> bytes:
        """The last frame as PNG."""
        if self.color_by == "field" and self.last.field is not None:
            codes = images.quantize(self.last.field, *field_span(self.last))
            return images.png(codes.repeat(scale, 0).repeat(scale, 1), self.field_colors)
        by = "cell" if self.color_by == "cell" else "kind"
        return images.png(
            *images.lattice_image(
                self.last.cell,
                self.last.kind,
                color_by=by,
                scale=scale,
                kind_colors=self.kind_colors,
            )
        )

    # What the user does ----------------------------------------------------------------------

    def _hear(self, event: param.parameterized.Event) -> None:
        # The browser repeats its last few items, because messages may be merged on their way.
        view, items = event.new.get("view", ""), event.new.get("items", [])
        for item in items:
            if item["n"] > self._heard.get(view, 0):
                self._heard[view] = item["n"]
                self._act(item)

    def _act(self, item: dict[str, Any]) -> None:
        kind = item["type"]
        if kind == "step":
            self.step()
        elif kind == "reset":
            self.reset()
        elif kind == "inspect":
            self.selected = [int(i) for i in item["site"]]
        elif kind == "kill" and "kill" in self.tools:
            row, column = item["site"]
            self.do(lambda: self._kill(row, column))
        elif kind == "paint" and item["tool"] in self.tools:
            painted = 0 if item["tool"] == "erase" else int(item["tool"].split(":")[1])
            sites = np.array(item["sites"], dtype=np.int64).reshape(-1, 2)
            self.do(lambda: self.source.paint(sites, painted, item["stroke"]))

    def _kill(self, row: int, column: int) -> None:
        identity = int(self.source.frame().cell[row, column])
        if identity:
            self.source.kill(identity)

    # The loop --------------------------------------------------------------------------------

    def _wake(self) -> None:
        """Start the worker if there is something to do and it is not at work."""
        if self._task is not None and not self._task.done():
            self._room.set()
            return
        if not (self.playing or self._pending):
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a plain script: act at once
            asyncio.run(self._work(play=False))
        else:
            self.fault = ""
            self._task = loop.create_task(self._work())

    async def _work(self, play: bool = True) -> None:
        try:
            while self._pending or (play and self.playing):
                if self._pending:
                    while self._pending:
                        await asyncio.to_thread(self._pending.popleft())
                    self.show(await asyncio.to_thread(self.source.frame))
                elif self._sent - self.acknowledged >= AHEAD and not await self._room_for_one():
                    continue
                else:
                    self.show(await self._advance())
        except Exception as error:
            self._pending.clear()
            self.fault = f"{type(error).__name__}: {error}"
            self.playing = False

    async def _room_for_one(self) -> bool:
        """Wait for an acknowledgment or for the pace; whether one more frame may be sent now."""
        paced = self._sent - self.acknowledged < AHEAD_PACED
        patience_s = max(0.0, self._sent_at + PACE_S - time.monotonic()) if paced else 2.0
        self._room.clear()
        try:
            await asyncio.wait_for(self._room.wait(), patience_s)
        except TimeoutError:
            if not paced:  # the page is hidden, gone, or lost a frame: the same frame once more
                self._send()
            return paced
        return self._sent - self.acknowledged < AHEAD

    async def _advance(self) -> Frame:
        left = self.speed
        while True:
            n = min(left, max(1, int(CHUNK_S / self._cost_s)))
            start = time.perf_counter()
            frame = await asyncio.to_thread(self.source.advance, n)
            self._cost_s = max(1e-7, (time.perf_counter() - start) / n)
            left -= n
            if left <= 0 or self._pending or not self.playing:
                return frame

    def _cleanup(self, root: Any = None) -> None:
        super()._cleanup(root)
        if not self._models:  # the last page that showed this view is gone
            self.playing = False
