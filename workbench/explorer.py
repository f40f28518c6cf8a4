"""Explorer: controls, a live picture, and long work with progress, in one frame for all methods.

A method supplies functions (a live view, steps, views of the result, a still); the frame supplies
the form, presets, Run and Cancel, the report button, and errors on the page instead of in a log.
The same object shows itself in JupyterLab, in the app, through ipywidgets, and in a report as a
still. It computes nothing and shares nothing: each session makes its own.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import html
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import panel as pn

from workbench import theme
from workbench.jobs import Job, report_steps
from workbench.parameters import Parameters
from workbench.reports import STILL
from workbench.steps import Cancelled, Step, Steps
from workbench.widgets.controls import Controls

MONITOR_S = 0.5  # least time between two drawings of partial results
# A drawing takes half a second or more of the event loop, which the pages of all visitors share;
# partial results may take this part of it.
MONITOR_SHARE = 0.1


class _Frame(pn.Column):
    """The layout of an explorer; tells when the last page that showed it is gone."""

    def __init__(self, *objects: Any, on_gone: Callable[[], None], **settings: Any):
        super().__init__(*objects, **settings)
        self._on_gone = on_gone

    def _cleanup(self, root: Any = None) -> None:
        super()._cleanup(root)
        if not self._models:
            self._on_gone()


class Explorer(pn.viewable.Viewer):
    """The live part of a method.

    parameters: what the form shows and changes; every session needs an instance of its own.
    live: `live(parameters)` -> viewable, built when first shown; it listens to the parameters.
    steps: `steps(parameters)` -> generator of `Step`s whose result goes to the views.
    views: title -> `view(result)` -> HoloViews or Panel object, a tab each after a run.
    monitor: `monitor(data)` -> the same for the partial data of a step, while it runs.
    still: `still(parameters)` -> PNG bytes or HTML, shown in a report instead of all this.
    only: names of the parameters in the form; all when not given.
    """

    def __init__(
        self,
        parameters: Parameters,
        *,
        live: Callable[[Parameters], Any] | None = None,
        steps: Callable[[Parameters], Steps] | None = None,
        views: Mapping[str, Callable[[Any], Any]] | None = None,
        monitor: Callable[[Any], Any] | None = None,
        still: Callable[[Parameters], bytes | str] | None = None,
        only: Sequence[str] | None = None,
        report: bool = True,
    ):
        super().__init__()
        self.parameters, self.result = parameters, None
        self._live, self._steps, self._views = live, steps, dict(views or {})
        self._monitor, self._still, self._only, self._report = monitor, still, only, report
        self._initial = parameters.to_papermill()
        self._job: Job | None = None
        self._task: asyncio.Task | None = None
        self._layout: pn.viewable.Viewable | None = None

    # The page --------------------------------------------------------------------------------

    def __panel__(self) -> pn.viewable.Viewable:
        if self._layout is None:
            self._layout = self._build()
        return self._layout

    def _build(self) -> pn.viewable.Viewable:
        self.controls = Controls(self.parameters, self._only)
        names = list(type(self.parameters).presets)
        self.preset = pn.widgets.Select(
            label="Preset", options={"own settings": "", **dict(zip(names, names, strict=True))},
            width=150, margin=(0, 10, 10, 0),
        )  # fmt: skip
        self._name_preset()
        self.preset.param.watch(lambda event: self.apply_preset(event.new), "value")
        self.parameters.param.watch(self._name_preset, self.parameters.names())
        reset = pn.widgets.Button(
            label="Reset", width=80, align="end", margin=(0, 0, 10, 0), description="First values"
        )
        reset.on_click(lambda event: self.set_all(self._initial))

        self.run_button = pn.widgets.Button(
            label="Run the study", color="primary", width=112, margin=(0, 8, 6, 0),
            visible=self._steps is not None,
        )  # fmt: skip
        self.report_button = pn.widgets.Button(
            label="Make a report of these settings", width=220, margin=(0, 0, 6, 0),
            visible=self._report,
        )  # fmt: skip
        self.cancel_button = pn.widgets.Button(
            label="Cancel", width=80, visible=False, margin=(0, 0, 6, 0)
        )
        self.run_button.on_click(lambda event: self.run())
        self.report_button.on_click(lambda event: self.report())
        self.cancel_button.on_click(lambda event: self.cancel())
        self.status = pn.pane.HTML(
            "", sizing_mode="stretch_width", margin=(2, 0), styles={"font-family": theme.FONT}
        )
        self.links = pn.Row(margin=0)
        self.pictures = pn.Column(sizing_mode="stretch_width", margin=0)

        side = pn.Column(
            pn.Row(self.preset, reset, margin=0),
            self.controls,
            pn.Row(self.run_button, self.report_button, margin=(12, 0, 0, 0)),
            self.status,
            self.cancel_button,
            self.links,
            width=340,
            margin=(0, 28, 0, 0),
        )
        main = pn.Column(
            self._live_view(), min_width=340, styles={"flex": "1 1 420px"}, margin=0,
            sizing_mode="stretch_width",
        )  # fmt: skip
        top = pn.FlexBox(
            side, main, flex_wrap="wrap", align_items="flex-start", margin=0,
            sizing_mode="stretch_width",
        )  # fmt: skip
        return _Frame(
            top, self.pictures, on_gone=self.close, sizing_mode="stretch_width", max_width=1200
        )

    def _live_view(self) -> pn.viewable.Viewable:
        if self._live is None:
            return pn.Spacer(height=0)
        try:
            return pn.panel(self._live(self.parameters))
        except Exception as error:
            return problem(error)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if os.environ.get(STILL):
            return {"text/html": self.still_html(), "text/plain": repr(self)}
        return super()._repr_mimebundle_(include, exclude)

    def __repr__(self) -> str:
        return f"Explorer of {self.parameters.slug or type(self.parameters).__name__}"

    def still_html(self) -> str:
        """What a report shows: the still, and the parameters that this form would offer."""
        picture = self._still(self.parameters) if self._still else ""
        if isinstance(picture, bytes):
            data = base64.b64encode(picture).decode()
            picture = (
                f'<img alt="Still of the live view" src="data:image/png;base64,{data}" '
                'style="max-width:100%;image-rendering:pixelated;border-radius:4px">'
            )
        names = self._only or self.parameters.names()
        declared = self.parameters.param
        rows = [
            [
                html.escape(name.replace("_", " ")),
                html.escape(str(getattr(self.parameters, name))),
                html.escape(declared[name].unit),
                html.escape(declared[name].doc or ""),
            ]
            for name in names
        ]
        table = theme.table_html(["parameter", "value", "unit", "meaning"], rows)
        note = "Live in the notebook and in the app; here a still, with the settings it shows."
        return (
            f'{picture}<details style="font-family:{theme.FONT};font-size:13px"><summary>'
            f"Settings</summary>{table}</details>"
            f'<p style="font:13px {theme.FONT};color:{theme.MUTED}">{note}</p>'
        )

    # Settings --------------------------------------------------------------------------------

    def set_all(self, values: Mapping[str, Any]) -> None:
        """Set many parameters at once; whoever listens hears of it once."""
        type(self.parameters)(**{**self.parameters.to_papermill(), **values})  # all or none
        self.parameters.param.update(**values)

    def apply_preset(self, name: str) -> None:
        """All values of a preset; the empty name does nothing."""
        if name:
            self.set_all(type(self.parameters).preset(name).to_papermill())

    def _name_preset(self, *events: Any) -> None:
        """The menu says which preset the settings are, the seed aside."""
        name, changed = self.parameters.nearest_preset()
        self.preset.value = "" if set(changed) - {"seed"} else name

    # Long work -------------------------------------------------------------------------------

    def run(self) -> asyncio.Task | None:
        """Start `steps` in a thread; the views appear when it is done. None while busy."""
        return self._start(lambda: self._steps(self.parameters), self._finish_run)

    def report(self) -> asyncio.Task | None:
        """Make a report of the present settings in a folder of its own under `reports`."""
        stamp = f"{datetime.datetime.now():%Y%m%d-%H%M%S}"
        out = Path("reports") / f"{self.parameters.slug}-{stamp}"
        return self._start(lambda: report_steps(self.parameters, out), self._finish_report)

    def cancel(self) -> None:
        """Ask the running work to stop; what it has so far is shown."""
        if self._job:
            self._job.cancel()

    def close(self) -> None:
        """The page is gone: stop what runs for it."""
        self.cancel()

    def _start(self, make: Callable[[], Steps], finish: Callable[[Any], None]) -> Any:
        self.__panel__()
        if self._job is not None:
            return None
        self.links.objects = []
        try:
            self._job = Job(make())
        except Exception as error:
            self._show_problem(error)
            return None
        self._busy(True)
        self._show(Step(0.0, "starting"))
        self._task = asyncio.get_running_loop().create_task(self._follow(self._job, finish))
        return self._task

    async def _follow(self, job: Job, finish: Callable[[Any], None]) -> None:
        clock = asyncio.get_running_loop().time
        started = clock()
        due = started + MONITOR_S

        def on_step(step: Step) -> None:
            nonlocal due
            now = clock()
            self._show(step, now - started)
            if step.data is not None and self._monitor and now > due:
                self.pictures.objects = [picture(self._monitor(step.data))]
                due = now + max(MONITOR_S, (clock() - now) / MONITOR_SHARE)

        try:
            result = await job.watch(on_step)
            seconds = clock() - started
            self.status.object = f"Done in {seconds:.1f} s."
            finish(result)
        except Cancelled as stopped:
            self.status.object = "Cancelled."
            if stopped.data is not None and self._monitor:
                self.status.object = "Cancelled; what was finished is shown."
                self.pictures.objects = [picture(self._monitor(stopped.data))]
        except Exception as error:
            job.cancel()
            self._show_problem(error)
        finally:
            self._job = None
            self._busy(False)

    def _finish_run(self, result: Any) -> None:
        self.result = result
        tabs = []
        for title, view in self._views.items():
            try:
                tabs.append((title, picture(view(result))))
            except Exception as error:  # one broken picture does not take the others with it
                tabs.append((title, problem(error)))
        self.pictures.objects = [pn.Tabs(*tabs, dynamic=True)] if tabs else []

    def _finish_report(self, paths: dict[str, str]) -> None:
        page = Path(paths["html"])
        here = page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page
        self.status.object += f" The report is <code>{html.escape(str(here))}</code>"
        self.links.objects = [
            pn.widgets.FileDownload(
                str(page), filename=page.name, label="Download the report", margin=(4, 0)
            )
        ]

    def _busy(self, busy: bool) -> None:
        self.cancel_button.visible = busy
        self.run_button.disabled = self.report_button.disabled = busy

    def _show(self, step: Step, seconds: float = 0.0) -> None:
        message = f"{seconds:.0f} s · {step.message}"
        self.status.object = theme.progress_html(step.done, message)

    def _show_problem(self, error: BaseException) -> None:
        self.status.object = ""
        self.links.objects = [problem(error)]


def picture(made: Any) -> pn.viewable.Viewable:
    """What a view made, for a page that is already shown.

    A HoloViews layout that joins such a page is not drawn (Panel 1.9 with Bokeh 3.9), so its
    parts become panes of their own in a grid.
    """
    import holoviews as hv

    def parts(pane: Any) -> Any:
        if not (isinstance(pane, pn.pane.HoloViews) and isinstance(pane.object, hv.Layout)):
            return pane
        return pn.GridBox(*pane.object, ncols=pane.object._max_cols)

    shown = parts(pn.panel(made))
    for layout in shown.select(pn.layout.base.ListLike):
        if any(parts(item) is not item for item in layout):
            layout.objects = [parts(item) for item in layout]
    return shown


def problem(error: BaseException) -> pn.viewable.Viewable:
    """An error for the page: one line, and the details for who wants them."""
    line = html.escape(f"{type(error).__name__}: {error}".strip())
    details = html.escape("".join(traceback.format_exception(error)))
    return pn.pane.HTML(
        f'<div role="alert" style="border-left:3px solid {theme.OKABE_ITO["vermillion"]};'
        f'padding:4px 10px;white-space:pre-wrap">{line}<details><summary>Details</summary>'
        f"<pre>{details}</pre></details></div>",
        sizing_mode="stretch_width",
    )
