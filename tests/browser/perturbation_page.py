"""A page with a PerturbationView, gray and in color, fed by rankings, and a short attack."""

import asyncio

import numpy as np
import panel as pn

from workbench.widgets.perturbation_view import PerturbationView
from workbench.widgets.ranking_list import RankingList

DIGITS = [f"digit {k}" for k in range(10)]
GLYPHS = [chr(k) for k in range(33, 127)]


def picture(size, channels=0):
    """A disk on a gradient, (size, size) or (channels, size, size)."""
    y, x = np.mgrid[:size, :size] / size
    gray = 0.35 + 0.3 * ((x - 0.5) ** 2 + (y - 0.5) ** 2 < 0.1)
    return np.stack([gray, 0.8 * gray + 0.2 * x, gray * (1 - y)]) if channels else gray


def build():
    random = np.random.default_rng(0)
    view = PerturbationView(DIGITS, caption="Digits")
    ranking = RankingList(DIGITS, label=3, max_length=5, value=[7, 1])
    heard = pn.pane.Markdown("heard nothing")
    clean, noise = picture(8), random.normal(size=(8, 8))
    logits = np.arange(10.0)[::-1] - 4

    def show(k=20, running=False):
        reached = logits.copy()
        for place, t in enumerate(ranking.value):  # the last step reaches the order
            reached[t] += (10 - place - reached[t]) * k / 20
        targets = ranking.value
        view.show(
            clean, 0.1 * noise * k / 20, reached, targets, label=3,
            iteration=k, iterations=20, running=running,
        )  # fmt: skip

    def changed(event):
        heard.object = "heard " + " ".join(map(str, event.new))
        show()

    async def attack(event):
        for k in range(21):
            show(k, running=k < 20)
            await asyncio.sleep(0.01)

    ranking.param.watch(changed, "value")
    show()
    button = pn.widgets.Button(name="Attack")
    button.on_click(attack)

    colored = PerturbationView(GLYPHS, caption="Colors", gain=8)
    image = picture(224, 3)
    delta = 0.05 * random.normal(size=image.shape)
    colored.show(
        image, delta, random.normal(size=94).cumsum(), [32, 5, 77, 90, 12], label=40, iteration=30
    )
    many = RankingList(GLYPHS, label=40, value=[32, 5, 77], caption="Wanted glyphs")
    return pn.Column(view, button, ranking, heard, colored, many, sizing_mode="stretch_width")


build().servable()
