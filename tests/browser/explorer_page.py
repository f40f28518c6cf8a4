"""A page with an Explorer on a toy method: a live sine, long work, and a picture of its result."""

import time
from typing import ClassVar

import numpy as np

from workbench.explorer import Explorer
from workbench.parameters import (
    Boolean,
    Choice,
    Integer,
    Integers,
    Number,
    ParameterError,
    Parameters,
)
from workbench.steps import Step


class Toy(Parameters):
    slug = "toy"
    presets: ClassVar = {"quick": {"pieces": 4}, "default": {}}
    frequency = Number(1.0, bounds=(0, 5), unit="Hz", group="Wave", doc="Waves in a second")
    amplitude = Number(1.0, bounds=(0.001, 100), unit="V", group="Wave", doc="Height of a wave")
    shape = Choice("sine", objects=["sine", "square_wave"], group="Wave", doc="Form of a wave")
    dotted = Boolean(False, group="Wave", doc="Draw dots instead of a line")
    pieces = Integer(20, bounds=(1, 200), unit="pieces", group="Work", doc="Pieces of work")
    widths = Integers([8, 8], group="Work", doc="A list of widths")
    fail = Boolean(False, group="Work", doc="Fail in the middle")

    def check(self):
        if self.frequency > 4 and self.amplitude > 50:
            raise ParameterError("frequency and amplitude are too large together")


def wave(frequency, amplitude, shape="sine", dotted=False):
    import holoviews as hv

    t = np.linspace(0, 1, 200)
    y = amplitude * np.sin(2 * np.pi * frequency * t)
    y = np.sign(y) * amplitude if shape == "square_wave" else y
    element = hv.Scatter if dotted else hv.Curve
    return element((t, y), "time [s]", "voltage [V]").opts(
        title=f"{frequency:g} Hz", framewise=True
    )


def live(parameters):
    import holoviews as hv
    import panel as pn

    p = parameters.param
    plot = hv.DynamicMap(pn.bind(wave, p.frequency, p.amplitude, p.shape, p.dotted))
    words = pn.bind(lambda frequency: f"It waves at {frequency:g} Hz", p.frequency)
    return pn.Column(pn.pane.HoloViews(plot), pn.pane.Markdown(words))


def steps(parameters):
    for k in range(parameters.pieces):
        time.sleep(0.05)
        if parameters.fail and k == parameters.pieces // 2:
            raise RuntimeError("the toy broke <here>")
        yield Step((k + 1) / parameters.pieces, f"piece {k + 1}", data=k)
    return parameters.pieces


def explorer(**settings):
    return Explorer(
        Toy(),
        live=live,
        steps=steps,
        views={"Wave": lambda n: wave(n, 1.0)},
        monitor=lambda k: f"piece {k} is done",
        **settings,
    )


if __name__.startswith("bokeh_app"):
    explorer().servable()
