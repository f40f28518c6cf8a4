"""The live part: every figure of the argument, to drag. Closed forms answer a slider at once.

`Bench` connects the parameters to the tabs, which are in `tabs_*.py`. Tabs compute what they need
when they are first opened; training is a job that streams.
"""

from __future__ import annotations

from typing import Any

import panel as pn

from workbench import theme
from workbench.explorer import Explorer, problem
from workbench.jobs import Latest
from workbench.steps import Step

from . import closed_forms, drawings, drawings_bounds, study, tabs_digits, tabs_linear, tabs_trained
from .tabs import Tab

# What acts on the live pictures, in the order of the form.
LIVE = (
    "order", "gamma", "sigma2", "basis", "n_points", "length_scale", "noise", "n",
    "label_noise", "ridge", "alpha", "d", "levels", "width", "delta", "group", "r", "seed",
)  # fmt: skip
TABS: tuple[type[Tab], ...] = (
    tabs_linear.Polynomials, tabs_linear.SampleSize, tabs_digits.RandomLabels,
    tabs_linear.LeastSquares, tabs_digits.DoubleDescent, tabs_trained.Widths, tabs_trained.Bounds,
    tabs_digits.Symmetry, tabs_trained.LearnedFeatures, tabs_trained.Paths, tabs_linear.TwoAxes,
)  # fmt: skip


class Bench:
    """The tabs and what they share; `panel()` is the layout. A tab by its title: `bench[title]`.

    shown: the tab on the page.
    """

    def __init__(self, parameters: study.Parameters):
        self.parameters = parameters
        self._seen = False
        self.training = Latest(self.tell)  # one network at a time
        self.stop_button = pn.widgets.Button(
            label="Stop", width=70, margin=(0, 8, 6, 0), disabled=True
        )
        self.stop_button.on_click(lambda event: self.stop())
        self.status = pn.pane.HTML(
            "", sizing_mode="stretch_width", min_height=22, margin=(0, 0, 4, 0),
            styles={"font-family": theme.FONT},
        )  # fmt: skip
        self.tabs = [kind(self) for kind in TABS]
        self.shown = self.tabs[0]
        parameters.param.watch(self._changed, list(LIVE))

    def __getitem__(self, title: str) -> Any:
        return next(tab for tab in self.tabs if tab.title == title)

    def panel(self) -> pn.viewable.Viewable:
        """Status, Stop and the tabs."""
        # All tabs are on the page from the start, so that each drawing can be sent to.
        shown = pn.Tabs(
            *((tab.title, pn.Column(*tab.layout(), sizing_mode="stretch_width", margin=(8, 0),
                                    max_width=960)) for tab in self.tabs),
            sizing_mode="stretch_width", margin=(6, 0),
        )  # fmt: skip
        shown.param.watch(lambda event: self.open(self.tabs[event.new].title), "active")
        top = pn.Row(self.stop_button, self.status, margin=0, sizing_mode="stretch_width")
        return pn.Column(top, shown, sizing_mode="stretch_width", margin=0)

    def open(self, title: str) -> None:
        """Show a tab: it computes what it needs, if it has not yet."""
        self.shown = self[title]
        self.shown.open()

    def _changed(self, *events: Any) -> None:
        names = {event.name for event in events}
        for tab in self.tabs:
            if heard := names & tab.hears:
                tab.changed(heard)

    def _jobs(self) -> list[Latest]:
        return [self.training, *(tab.jobs for tab in self.tabs)]

    def stop(self) -> None:
        """Stop everything that runs; what is finished is kept."""
        for jobs in self._jobs():
            jobs.stop()

    def tell(self, what: Step | str | Exception) -> None:
        """Show what a job says."""
        if isinstance(what, Step):
            here = bool(self.tabs[0].sliders._models)
            if self._seen and not here:  # the page is gone
                self.stop()
            self._seen = here
            self.status.object = theme.progress_html(what.done, what.message)
            return
        # The one that tells still counts itself as busy.
        self.stop_button.disabled = sum(jobs.busy for jobs in self._jobs()) <= 1
        words = {"done": "Done.", "stopped": "Stopped; what was finished is shown."}
        self.status.object = words[what] if isinstance(what, str) else problem(what).object


def live(parameters: study.Parameters) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new bench that follows `parameters`."""
    made = Bench(parameters)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters) -> str:
    """For reports: the fits, their coefficients and evidence, and the calculator, as HTML."""
    p = parameters
    found = closed_forms.refit(p.order, p.gamma, p.sigma2, p.basis, p.n_points, p.seed)
    return "<br>".join(map(str, (
        drawings.fits(found),
        drawings.row(drawings.coefficients(found, p.gamma),
                     drawings.error_by_order(found, p.order),
                     drawings.evidence_curve(found, p.order)),
        drawings_bounds.calculator(0.15, 1437, 372, p.delta),
    )))  # fmt: skip


def explorer(parameters: study.Parameters | None = None, **pieces: Any) -> Explorer:
    """The explorer of soft inductive biases; `pieces` are further arguments of `Explorer`."""
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in LIVE]
    return Explorer(parameters, live=live, still=still, only=[*LIVE, *rest], **pieces)
