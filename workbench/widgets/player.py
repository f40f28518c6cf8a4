"""FramePlayer: a replay for reports that needs no server, no kernel and no library.

A strip of palette PNG frames, a range input, a play button and a few lines of script in one piece
of HTML. Not a live view (see `lattice_view`): what it shows was computed before. Without script,
or printed, it shows the last frame with its label.
"""

from __future__ import annotations

import base64
import html
import json
import uuid
from collections.abc import Sequence

import numpy as np

from workbench.theme import FONT, INK, MUTED
from workbench.widgets import images

# Looks for its figure in shadow roots too (Panel shows HTML in one) and once more a little later,
# because there scripts may run before the figure is on the page.
SCRIPT = """
{
const start = (box) => {
  box.dataset.ready = 1;
  const [frames, labels, delay] = JSON.parse(box.querySelector('script[type="application/json"]')
    .textContent);
  const [picture, range, button, label] = ['img', 'input', 'button', 'output']
    .map((tag) => box.querySelector(tag));
  let timer = 0;
  const show = (k) => {
    picture.src = 'data:image/png;base64,' + frames[k];
    label.textContent = labels[k];
    range.value = k;
    range.setAttribute('aria-valuetext', labels[k]);
  };
  const stop = () => { clearInterval(timer); timer = 0; button.textContent = 'Play'; };
  range.oninput = () => { stop(); show(+range.value); };
  button.onclick = () => {
    if (timer) return stop();
    if (+range.value === frames.length - 1) show(0);
    button.textContent = 'Pause';
    timer = setInterval(() => {
      if (!box.isConnected || +range.value === frames.length - 1) return stop();
      show(+range.value + 1);
    }, delay);
  };
  window.addEventListener('beforeprint', () => { stop(); show(frames.length - 1); });
};
const seek = (root) => {
  for (const box of root.querySelectorAll('[data-player="%(name)s"]:not([data-ready])')) start(box);
  for (const node of root.querySelectorAll('*')) if (node.shadowRoot) seek(node.shadowRoot);
};
seek(document);
for (const later of [200, 1000]) setTimeout(() => seek(document), later);
}
"""


def player_html(
    frames: Sequence[bytes],
    labels: Sequence[str],
    *,
    caption: str = "Replay",
    width: int = 360,
    frames_per_second: float = 12.0,
) -> str:
    """PNG frames as a self-contained piece of HTML with a slider and a play button.

    labels: one for each frame, for example the time with its unit. width: on the page, in pixels.
    Raises ValueError for no frames, a wrong number of labels or a rate that is not positive.
    """
    if not frames:
        raise ValueError("frames is empty: a replay needs at least one frame")
    if len(labels) != len(frames):
        raise ValueError(f"labels has {len(labels)} entries: {len(frames)} frames need as many")
    if not frames_per_second > 0:
        raise ValueError(f"frames_per_second = {frames_per_second} is not allowed: use more than 0")
    name = uuid.uuid4().hex
    coded = [base64.b64encode(frame).decode() for frame in frames]
    data = json.dumps([coded, list(labels), 1000 / frames_per_second]).replace("<", "\\u003c")
    title, last = html.escape(caption), len(frames) - 1
    button = (
        f"font:inherit;width:5em;height:28px;border:1px solid {MUTED};border-radius:6px;"
        "background:transparent;color:inherit;cursor:pointer"
    )
    return f"""<figure data-player="{name}" role="group" aria-label="{title}"
 style="margin:.6em 0;width:{width}px;max-width:100%;font:13px/1.4 {FONT};color:{INK}">
<img alt="{title}, {html.escape(labels[-1])}" src="data:image/png;base64,{coded[-1]}"
 style="width:100%;image-rendering:pixelated;border-radius:4px;display:block">
<div style="display:flex;align-items:center;gap:10px;margin-top:6px">
<button type="button" aria-label="Play or pause: {title}" style="{button}">Play</button>
<input type="range" min="0" max="{last}" value="{last}" aria-label="Frame of {title}"
 aria-valuetext="{html.escape(labels[-1])}" style="flex:1;min-width:0;accent-color:#0072B2">
<output style="white-space:nowrap;font-variant-numeric:tabular-nums;color:{MUTED}">{
        html.escape(labels[-1])
    }</output></div>
<figcaption style="color:{MUTED};margin-top:2px">{title}</figcaption>
<script type="application/json">{data}</script><script>{SCRIPT % {"name": name}}</script>
</figure>"""


class FramePlayer:
    """A replay of lattices; the last expression of a cell shows it, also in exported pages.

    frames: (n, H, W) identities; kind: (N+1,) kinds, shared, or (n, N+1), one row for each frame.
    times: n numbers shown with `unit`; 0, 1, 2, ... when not given.
    """

    def __init__(
        self,
        frames: np.ndarray,
        kind: np.ndarray,
        times: Sequence[float] | None = None,
        *,
        unit: str = "steps",
        caption: str = "Replay",
        color_by: str = "kind",
        width: int = 360,
        frames_per_second: float = 12.0,
    ):
        frames, kind = np.asarray(frames), np.asarray(kind)
        if frames.ndim != 3 or not len(frames):
            raise ValueError(f"frames has shape {frames.shape}: use (n, H, W) with n of at least 1")
        kinds = np.broadcast_to(kind, (len(frames), kind.shape[-1]))
        self.times = list(range(len(frames)) if times is None else times)
        self.labels = [f"{time:g} {unit}" for time in self.times]
        self.caption, self.width, self.frames_per_second = caption, width, frames_per_second
        # Twice the page's pixels would be sharper still, and twice the report's size.
        scale = max(2, width // frames.shape[2])
        self.images = [
            images.png(*images.lattice_image(cell, row, color_by=color_by, scale=scale))
            for cell, row in zip(frames, kinds, strict=True)
        ]

    def _repr_html_(self) -> str:
        return player_html(
            self.images,
            self.labels,
            caption=self.caption,
            width=self.width,
            frames_per_second=self.frames_per_second,
        )
