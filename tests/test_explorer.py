"""The explorer without a browser: settings, long work, errors on the page, the still."""

import asyncio
import itertools
import subprocess
import sys
import time
from typing import ClassVar

import panel as pn
import pytest

from workbench import explorer as module
from workbench import theme
from workbench.explorer import Explorer
from workbench.parameters import Integer, Number, ParameterError, Parameters
from workbench.steps import Step


class Toy(Parameters):
    slug = "toy"
    presets: ClassVar = {"quick": {"pieces": 3}, "default": {}}
    pieces = Integer(20, bounds=(1, 1000), group="Work", unit="pieces", doc="Pieces of <work>")
    speed = Number(1.0, bounds=(0, 10), group="Work", doc="How fast")

    def check(self):
        if self.pieces > 500 and self.speed > 5:
            raise ParameterError("too much")


def steps(parameters):
    for k in range(parameters.pieces):
        time.sleep(0.02)
        yield Step((k + 1) / parameters.pieces, f"piece <{k}>", data=k)
    return parameters.pieces


def text_of(viewable):
    return " ".join(pane.object for pane in viewable.select(pn.pane.HTML) if pane.object)


def run(coroutine_function):
    return asyncio.run(coroutine_function())


def test_a_run_shows_its_views_and_keeps_the_result():
    async def scenario():
        explorer = Explorer(Toy(pieces=5), steps=steps, views={"Sum": lambda n: f"result {n}"})
        await explorer.run()
        return explorer

    explorer = run(scenario)
    tabs = explorer.pictures[0]
    assert explorer.result == 5
    assert tabs._names == ["Sum"] and tabs[0].object == "result 5"
    assert explorer.status.object.startswith("Done in")
    assert not explorer.cancel_button.visible and not explorer.run_button.disabled


def test_progress_is_said_and_markup_in_a_message_is_text():
    async def scenario():
        explorer = Explorer(Toy(), steps=steps)
        task = explorer.run()
        await asyncio.sleep(0.25)
        said, busy = explorer.status.object, explorer.run_button.disabled
        await task
        return said, busy

    said, busy = run(scenario)
    assert "piece &lt;" in said and 'role="status"' in said and busy


def test_cancel_keeps_what_is_finished():
    async def scenario():
        explorer = Explorer(Toy(pieces=1000), steps=steps, monitor=lambda k: f"partial {k}")
        task = explorer.run()
        await asyncio.sleep(0.3)
        start = time.monotonic()
        explorer.cancel()
        await task
        return explorer, time.monotonic() - start

    explorer, seconds = run(scenario)
    assert seconds < 1
    assert explorer.pictures[0].object.startswith("partial")
    assert "Cancelled" in explorer.status.object and not explorer.run_button.disabled


def test_slow_drawings_of_partial_results_leave_the_event_loop_to_others(monkeypatch):
    monkeypatch.setattr(module, "MONITOR_S", 0.0)
    drawings = []

    def monitor(k):
        start = time.monotonic()
        time.sleep(0.1)
        drawings.append((start, time.monotonic() - start))
        return f"partial {k}"

    async def scenario():
        await Explorer(Toy(pieces=150), steps=steps, monitor=monitor).run()

    run(scenario)
    assert len(drawings) >= 2
    for (start, seconds), (following, _) in itertools.pairwise(drawings):
        assert following - start >= seconds / module.MONITOR_SHARE


def test_while_one_run_works_a_second_one_does_not_start():
    async def scenario():
        explorer = Explorer(Toy(pieces=5), steps=steps)
        first = explorer.run()
        second = explorer.run()
        await first
        return second

    assert run(scenario) is None


def test_an_error_of_the_work_is_on_the_page_as_text():
    def broken(parameters):
        yield Step(0.5)
        raise ValueError("n must be <even>")

    async def scenario():
        explorer = Explorer(Toy(), steps=broken)
        await explorer.run()
        return explorer

    explorer = run(scenario)
    assert "ValueError: n must be &lt;even&gt;" in text_of(explorer.links)
    assert 'role="alert"' in text_of(explorer.links) and not explorer.run_button.disabled


def test_a_broken_view_does_not_take_the_others_with_it():
    views = {"good": lambda n: "fine", "bad": lambda n: 1 / 0}

    async def scenario():
        explorer = Explorer(Toy(pieces=1), steps=steps, views=views)
        await explorer.run()
        return explorer.pictures[0]

    good, bad = run(scenario)
    assert good.object == "fine" and "ZeroDivisionError" in bad.object


def test_layouts_of_charts_become_panes_of_their_own():
    import holoviews as hv

    theme.set_defaults()
    pair = hv.Layout([hv.Curve([1, 2]), hv.Curve([2, 1])]).cols(1)
    for made in (pair, pn.Column("words", pair)):
        shown = module.picture(made)
        panes = shown.select(pn.pane.HoloViews)
        assert len(panes) == 2 and all(isinstance(p.object, hv.Curve) for p in panes)
        assert shown.select(pn.GridBox)[0].ncols == 1


def test_a_broken_live_view_is_said_on_the_page():
    layout = Explorer(Toy(), live=lambda p: 1 / 0).__panel__()
    assert "ZeroDivisionError" in text_of(layout)


def test_the_run_ends_when_its_page_is_gone():
    async def scenario():
        explorer = Explorer(Toy(pieces=1000), steps=steps)
        root = explorer.__panel__().get_root()
        task = explorer.run()
        await asyncio.sleep(0.1)
        explorer.__panel__()._cleanup(root)
        await asyncio.wait_for(task, 1.5)
        return explorer

    assert "Cancelled" in run(scenario).status.object


def test_two_explorers_share_nothing():
    one, two = Explorer(Toy()), Explorer(Toy())
    one.__panel__(), two.__panel__()
    one.controls.values = {**one.controls.values, "pieces": 7}
    assert (one.parameters.pieces, two.parameters.pieces) == (7, 20)
    assert two.controls.values["pieces"] == 20


def test_presets_set_everything_and_the_menu_says_which_one_it_is():
    explorer = Explorer(Toy(speed=3.0))
    explorer.__panel__()
    assert explorer.preset.value == ""  # own settings
    explorer.preset.value = "quick"
    assert (explorer.parameters.pieces, explorer.parameters.speed) == (3, 1.0)
    explorer.parameters.pieces = 4
    assert explorer.preset.value == ""
    explorer.parameters.pieces = 20
    explorer.parameters.seed = 9
    assert explorer.preset.value == "default"


def test_setting_many_is_all_or_nothing():
    explorer = Explorer(Toy())
    with pytest.raises(ParameterError, match="too much"):
        explorer.set_all({"pieces": 600, "speed": 6.0})
    assert (explorer.parameters.pieces, explorer.parameters.speed) == (20, 1.0)


def test_in_a_report_it_shows_a_still_with_its_settings(monkeypatch):
    monkeypatch.setenv(module.STILL, "1")
    explorer = Explorer(Toy(pieces=7), still=lambda p: b"\x89PNG")
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    page = bundle["text/html"]
    assert "data:image/png;base64,iVBORw==" in page
    assert ">7<" in page and "Pieces of &lt;work&gt;" in page and "<script" not in page


def test_front_ends_that_speak_only_ipywidgets_get_an_ipywidget():
    # In a process of its own: the choice of comms is global to Panel.
    code = (
        "from IPython.testing.globalipapp import start_ipython; start_ipython()\n"
        "import panel as pn; pn.extension(comms='ipywidgets')\n"
        "from workbench.explorer import Explorer; from workbench.parameters import Parameters\n"
        "print(sorted(Explorer(Parameters())._repr_mimebundle_()[0]))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "application/vnd.jupyter.widget-view+json" in said.stdout


def test_a_still_may_be_html():
    page = Explorer(Toy(), still=lambda p: "<svg></svg>").still_html()
    assert page.startswith("<svg></svg>")


def test_a_finished_report_offers_its_page(monkeypatch, tmp_path):
    page = tmp_path / "toy <1>.html"
    page.write_text("<html></html>")

    def made(parameters, out):
        yield Step(1.0)
        return {"html": str(page)}

    monkeypatch.setattr(module, "report_steps", made)

    async def scenario():
        explorer = Explorer(Toy())
        await explorer.report()
        return explorer

    explorer = run(scenario)
    download = explorer.links[0]
    assert download.file == str(page) and download.label == "Download the report"
    assert "toy &lt;1&gt;.html" in explorer.status.object
