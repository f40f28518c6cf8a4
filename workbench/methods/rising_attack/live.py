"""The live views of RisingAttacK: an attack bench, a mixer of singular vectors, and the polytope.

`AttackBench` connects one image, the wanted order and the parameters to attacks that run in a
thread, and keeps every iterate to walk back over. Pictures are pure functions, here and in
`mixer.py` and `polytope.py`; the numerical work is in `trials.py` and `subspace.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import panel as pn
import torch
from threadpoolctl import threadpool_limits
from torch import nn

from workbench import theme
from workbench.explorer import Explorer, problem
from workbench.jobs import Job
from workbench.steps import Cancelled, Step, Steps, run
from workbench.widgets import images
from workbench.widgets.attempts import signed
from workbench.widgets.faders import Faders
from workbench.widgets.perturbation_view import PerturbationView
from workbench.widgets.ranking_list import RankingList
from workbench.widgets.traces import Chart, Series, Traces

from . import baselines, study
from .attacks import TITLES
from .jacobian import forward
from .mixer import Mixer
from .polytope import PolytopePanel
from .ranking import gaps, non_targets, random_targets, row_classes
from .records import Snapshot
from .sqp import RisingOptions
from .subspace import Program, linearize, plane_steps
from .trials import Subject, Trial, compare_steps, own_subject, subject_steps, trial_steps

# What acts on the next attack, in the order of the form; the bench has a menu for data of its own.
LIVE = (
    "method", "K", "iters", "margin", "rivals", "rank", "box", "line_search", "alphas", "tau",
    "trust", "chunk", "quad_iters", "quad_margin", "cw_iters", "ad_iters", "lr", "coef",
    "search_steps", "targets", "seed",
)  # fmt: skip
# Orders and learning rates of a study that fit the data: those of the presets.
DATA = {
    "digits": {"data": "digits", "K_list": [1, 5, 9], "lr": 0.05},
    "glyphs": {"data": "glyphs", "K_list": [1, 5, 10, 20, 30], "lr": 0.01},
}
WATCH_S = 0.02  # an attack on digits takes a tenth of a second
PLANE_POINTS = 51  # grid points on a side of each of the two planes
TABS = ("Order", "Singular vectors", "Polytope", "Compare")

_COLOR = theme.OKABE_ITO
CHARTS = (
    Chart("Smallest margin of the order", "logits", (
        Series("margin", _COLOR["blue"]), Series("demanded", theme.MUTED, dashed=True),
    )),
    Chart("Sum of violations", "logits", (Series("violations", _COLOR["vermillion"]),), low=0),
    Chart("Perturbation", "l2", (
        Series("now", _COLOR["blue"]), Series("best", _COLOR["green"], dashed=True),
    ), low=0),
    Chart("Inside RisingAttacK", "share", (
        Series("fraction of step", _COLOR["vermillion"]), Series("free pixels", _COLOR["blue"]),
        Series("active rows", _COLOR["green"], dashed=True),
    ), low=0, high=1),
)  # fmt: skip


def traced(snapshot: Snapshot, order: Sequence[int], margin: float) -> dict[tuple[str, str], float]:
    """The numbers of `CHARTS` for the state of an attack on one image that demands `margin`."""
    logits = snapshot.logits
    targets = torch.tensor([list(order)], device=logits.device)
    found = gaps(logits, *row_classes(targets, non_targets(targets, logits.shape[1])))
    values = {
        ("Smallest margin of the order", "margin"): float(found.min()),
        ("Smallest margin of the order", "demanded"): margin,
        ("Sum of violations", "violations"): float((margin - found).clamp(min=0).sum()),
        ("Perturbation", "now"): float(snapshot.norm),
    }
    if snapshot.found:
        values["Perturbation", "best"] = float(snapshot.best_norm)
    if snapshot.alpha is not None:
        title, n_rows = "Inside RisingAttacK", snapshot.violation.shape[1]
        values[title, "fraction of step"] = float(snapshot.alpha)
        values[title, "free pixels"] = float(snapshot.free_pixels) / snapshot.delta.numel()
        values[title, "active rows"] = float(snapshot.active_rows) / n_rows
    return values


def first_order(
    parameters: study.Parameters, label: int, n_classes: int, draw: int = 0
) -> list[int]:
    """The order that is wanted at first: the reader's own targets, or a random one.

    draw: above 0 the so-manieth other random order.
    """
    p = parameters
    given = [k for k in p.targets if k < n_classes and k != label]
    if given and not draw:
        return given[: p.K]
    return random_targets([label], min(p.K, n_classes - 1), n_classes, p.seed + draw)[0].tolist()


def comparison_html(trials: Sequence[Trial], class_names: Sequence[str]) -> theme.Html:
    """Norms, success and time of several attacks on one image, with their perturbations.

    All pictures have the same colors, so that they can be compared.
    """
    results = [trial.result for trial in trials]
    deltas = [r.delta[0].double().cpu().numpy() for r in results]
    limit = max((float(np.abs(d).max()) for d in deltas), default=0) or 1.0
    shortest = min((r.l2[0] for r in results if r.success[0]), default=None)
    rows = []
    for trial, result, delta in zip(trials, results, deltas, strict=True):
        flat = signed(delta[0] if len(delta) == 1 else delta)
        scale = max(1, 64 // flat.shape[0])
        picture = images.field_image(flat, -limit, limit, colors="diverging", scale=scale)
        png = images.png(*picture)
        reached = bool(result.success[0])
        color, sign, word = (
            (_COLOR["green"], "✓", "reached") if reached else (_COLOR["vermillion"], "✗", "failed")
        )
        norms = [f"{n[0]:.3g}" if reached else "–" for n in (result.l1, result.l2, result.linf)]
        if reached and result.l2[0] == shortest:
            norms[1] = f"<b>{norms[1]}</b>"
        rows.append([
            TITLES[trial.method],
            f'<span style="color:{color}">{sign}</span> {word}',
            *norms,
            str(trial.snapshots[-1].iteration),
            f"{trial.seconds:.2f}",
            f'<img alt="Perturbation of {TITLES[trial.method]}" src="{images.data_url(png)}" '
            f'width="64" height="64" style="border:1px solid {theme.INK};'
            'image-rendering:pixelated">'
            if reached else "–",
        ])  # fmt: skip
    header = ["attack", "order", "ℓ1", "ℓ2", "ℓ∞", "iterations", "seconds", f"±{limit:.2g}"]
    names = ", ".join(class_names[k] for k in trials[0].order) if trials else ""
    table = theme.table_html(header, rows, f"Wanted: {names}")
    return theme.Html(f'<div style="overflow-x:auto">{table}</div>')


class AttackBench:
    """One image, one wanted order, and attacks on it; `panel()` is the layout.

    subject: a network and images of the user's (`trials.own_subject`) in place of the embedded
    ones that `parameters.data` names.

    Long work (fetching a network, an attack, a comparison, a plane) is one job at a time in a
    thread: the latest wish replaces what runs.
    """

    def __init__(self, parameters: study.Parameters, subject: Subject | None = None):
        self.parameters, self._own = parameters, subject
        self.subject: Subject | None = None
        self.trial: Trial | None = None
        self.trials: list[Trial] = []
        self.program: Program | None = None
        self._wish = self._job = self._task = self._program_of = None
        self._looking = self._behind = False
        self._compared: tuple[str, ...] = ()
        self._draws, self._noted, self._quiet, self._seen = 0, 0, False, False
        self._build()
        parameters.param.watch(self._on_other_data, ["data", "seed"])
        parameters.param.watch(self._on_parameters, list(LIVE))
        # Not before the page is there: what is sent to a notebook's page too early is lost, and
        # what follows it cannot be read.
        self.ranking.param.watch(self._on_hello, "hello")

    # The page --------------------------------------------------------------------------------

    def _build(self) -> None:
        def button(label: str, action: Callable[[], None], width: int, **more: Any) -> Any:
            made = pn.widgets.Button(label=label, width=width, margin=(0, 8, 6, 0), **more)
            made.on_click(lambda event: action())
            return made

        p, margin = self.parameters, (0, 12, 6, 0)
        names = [self._own.data] if self._own else list(DATA)
        self.data = pn.widgets.Select(
            label="Images", options=names, value=names[0] if self._own else p.data,
            disabled=bool(self._own), width=110, margin=margin,
        )  # fmt: skip
        self.method = pn.widgets.Select(
            label="Attack",
            options={title: method for method, title in TITLES.items()},
            value=p.method,
            width=140,
            margin=margin,
        )
        self.data.param.watch(self._on_data, "value")
        self.method.param.watch(lambda event: p.param.update(method=event.new), "value")
        self.image = Faders(
            names=["Image"], values=[0], lows=[0], highs=[1], steps=[1], width=170,
            sizing_mode=None, caption="Which image", margin=(6, 16, 0, 0),
        )  # fmt: skip
        self.iteration = Faders(
            names=["Iteration"], values=[0], lows=[0], highs=[0], steps=[1], width=250,
            sizing_mode=None, caption="Walk over the iterations", margin=(6, 0, 0, 0),
        )  # fmt: skip
        self.image.param.watch(self._on_image, "values")
        self.iteration.param.watch(lambda event: self._on_iteration(), "values")
        self.attack_button = button("Attack", self.attack, 90, color="primary")
        self.stop_button = button("Stop", self.stop, 70, disabled=True)
        self.draw_button = button("Random order of K", self.draw, 160)
        self.compare_button = button("Compare all attacks", self.compare, 170)
        self.status = pn.pane.HTML(
            "Waiting for the page.", sizing_mode="stretch_width", min_height=22,
            margin=(0, 0, 6, 0), styles={"font-family": theme.FONT},
        )  # fmt: skip
        self.ranking = RankingList(["…"], caption="Order")
        self.ranking.param.watch(lambda event: self._on_order(), "value")
        self.traces = Traces(CHARTS, time_unit="iterations", width=340)
        self.mixer = Mixer(self._show_mixed)
        self.polytope = PolytopePanel(self._refresh_tab)
        self.table = pn.pane.HTML("", sizing_mode="stretch_width")
        self.view = PerturbationView(caption="Attack")

    def panel(self) -> pn.viewable.Viewable:
        """Choices, the three pictures, and the tabs below them."""
        flow = {"flex_wrap": "wrap", "margin": 0, "sizing_mode": "stretch_width"}
        choices = pn.FlexBox(
            self.data, self.method, self.image, self.iteration, align_items="flex-start", **flow
        )
        buttons = pn.FlexBox(self.attack_button, self.stop_button, self.draw_button, **flow)
        order = pn.FlexBox(
            pn.Column(
                self.ranking, sizing_mode="stretch_width", max_width=460, margin=(8, 20, 0, 0),
                styles={"flex": "1 1 320px"},
            ),
            pn.Column(self.traces, width=340, margin=(8, 0)),
            **flow,
        )  # fmt: skip
        compare = pn.Column(self.compare_button, self.table, margin=(8, 0))
        contents = order, self.mixer.panel(), self.polytope.panel(), compare
        self.tabs = pn.Tabs(
            *zip(TABS, contents, strict=True), sizing_mode="stretch_width",
            margin=(10, 0),
        )  # fmt: skip
        self.tabs.param.watch(lambda event: self._refresh_tab(), "active")
        return pn.Column(
            choices, buttons, self.status, self.view, self.tabs, sizing_mode="stretch_width",
            margin=0,
        )  # fmt: skip

    # Wishes ----------------------------------------------------------------------------------

    def load(self) -> None:
        """Fetch the network and images of `parameters.data`, training them if need be."""
        self.subject = self.trial = None
        if self._own is None:
            self.data.value = self.parameters.data
        self._start(self._subject_steps, self._say, self._loaded)

    def _subject_steps(self) -> Steps[Subject]:
        if self._own is None:
            return (yield from subject_steps(self.parameters.data, self.parameters.seed))
        yield Step(0.0, "loading what an attack needs")
        return self._own

    def attack(self) -> None:
        """Attack the image with the wanted order and the present parameters."""
        if self.subject is None:
            if self._job is None:  # it was stopped before the network was there
                self.load()
            return
        p, order, index = self.parameters, list(self.ranking.value), int(self.image.values[0])
        make = partial(trial_steps, self.subject, index, order, p.method, p.options(p.method))
        self._noted = 0
        self._start(make, self._follow_trial, self._finish_trial)

    def compare(self) -> None:
        """All attacks that fit the model on the same image and order."""
        if self.subject is None:
            return
        model, p = self.subject.model, self.parameters
        options = {m: p.options(m) for m in TITLES if baselines.fits(model, m)}
        order, index = list(self.ranking.value), int(self.image.values[0])
        self._compared = tuple(options)
        make = partial(compare_steps, self.subject, index, order, options)
        self._start(make, self._follow_comparison, self._finish_comparison)

    def draw(self) -> None:
        """Another random order of K classes, which is attacked at once."""
        if self.subject is None:
            return
        self._draws += 1
        self._take_order(self._random_order())

    def stop(self) -> None:
        """Stop what runs; an attack keeps its best so far."""
        self._wish = None
        if self._job:
            self._job.cancel()

    # Jobs ------------------------------------------------------------------------------------

    def _start(
        self,
        make: Callable[[], Steps],
        follow: Callable[[Step], None],
        finish: Callable[..., None],
        look: bool = False,
    ) -> None:
        """Run the steps that `make()` gives in place of what runs.

        look: only a look at a trial, which waits for a trial that is under way.
        """
        if look and (self._wish or (self._job and not self._looking)):
            self._behind = True
            return
        self._wish = (make, follow, finish, look)
        if self._job:
            self._job.cancel()
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # no page: nobody waits, so here and now
            self._wish = None
            try:
                finish(run(make(), follow))
            except Exception as error:
                self._show_problem(error)
            return
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._work())

    async def _work(self) -> None:
        while self._wish:
            (make, follow, finish, self._looking), self._wish = self._wish, None
            self._busy(True)
            try:
                self._job = Job(make())
                finish(await self._job.watch(partial(self._noticed, follow), WATCH_S))
            except Cancelled as stopped:
                if not self._wish:
                    self.status.object = "Stopped."
                    if stopped.data is not None:
                        finish(stopped.data, stopped=True)
            except Exception as error:
                self._show_problem(error)
            finally:
                self._job = None
            if self._behind and not self._wish:
                self._behind = False
                self._refresh_tab()
        self._busy(False)

    def _noticed(self, follow: Callable[[Step], None], step: Step) -> None:
        if self._seen and not self.view._models:  # the page is gone
            self.stop()
        self._seen = bool(self.view._models)
        follow(step)

    def _busy(self, busy: bool) -> None:
        self.stop_button.disabled = not busy

    def _say(self, step: Step) -> None:
        self.status.object = theme.progress_html(step.done, step.message)

    def _show_problem(self, error: BaseException) -> None:
        self.status.object = problem(error).object

    # What is heard ---------------------------------------------------------------------------

    def _on_hello(self, event: Any) -> None:
        if self.subject is None and self._job is None:
            self.load()

    def _on_other_data(self, event: Any) -> None:
        if self.ranking.hello and self._own is None:
            self.load()

    def _on_data(self, event: Any) -> None:
        if self._own is None and event.new != self.parameters.data:
            most = study.N_CLASSES[event.new] - 1
            K = min(self.parameters.K, most)
            self.parameters.param.update(**DATA[event.new], K=K, targets=[])

    def _on_parameters(self, *events: Any) -> None:
        self.method.value = self.parameters.method
        if self.subject is None:
            return
        if {"K", "seed", "targets"} & {event.name for event in events}:
            self._take_order(self._first_order())
        else:
            self.attack()

    def _on_order(self) -> None:
        if not self._quiet:
            self.attack()

    def _on_image(self, event: Any) -> None:
        if self.subject is not None and not self._quiet:
            self._quiet = True
            try:  # what remains of the order without the new label
                self.ranking.label = int(self.subject.labels[int(event.new[0])])
                if not self.ranking.value:
                    self.ranking.value = self._first_order()
            finally:
                self._quiet = False
            self.attack()

    def _on_iteration(self) -> None:
        if self.trial and not self._quiet:
            self._show_snapshot()
            self._refresh_tab()

    def _take_order(self, order: list[int]) -> None:
        self._quiet = True
        try:
            self.ranking.value = order
        finally:
            self._quiet = False
        self.attack()

    def _random_order(self) -> list[int]:
        return first_order(self.parameters, self.ranking.label, self.subject.n_classes, self._draws)

    def _first_order(self) -> list[int]:
        return first_order(self.parameters, self.ranking.label, self.subject.n_classes)

    # What is shown ---------------------------------------------------------------------------

    def _loaded(self, subject: Subject, stopped: bool = False) -> None:
        self.subject = subject
        self.view.param.update(
            class_names=list(subject.class_names), caption=f"Attack on {subject.data}"
        )
        self._quiet = True
        try:
            self.ranking.param.update(value=[], label=None)
            self.ranking.class_names = list(subject.class_names)
            self.ranking.param.update(
                label=int(subject.labels[0]), max_length=subject.n_classes - 1
            )
            self.ranking.value = self._first_order()
            self.image.set(highs=[len(subject.images) - 1], values=[0])
        finally:
            self._quiet = False
        self.trials, self.table.object = [], ""
        clean = subject.images[0]
        self._show_state(clean, np.zeros(clean.shape), None)
        self.attack()

    def _show_state(self, clean: Any, delta: Any, logits: Any, **more: Any) -> None:
        if logits is None:
            x = clean + torch.as_tensor(delta).to(clean)
            logits = forward(self.subject.model, x[None])[0]
        order = self.trial.order if self.trial else self.ranking.value
        label = self.trial.label if self.trial else self.ranking.label
        self.view.show(clean, delta, logits, order, label=label, **more)

    def _show_mixed(self, delta: np.ndarray) -> None:
        if self.trial:
            self._show_state(self.trial.image, delta, None)

    def _note(self, trial: Trial) -> None:
        margin = self.parameters.quad_margin if trial.method == "quad" else self.parameters.margin
        demanded = margin if trial.method in ("rising", "quad") else 0.0
        news = list(trial.snapshots[self._noted :])
        for snapshot in news:
            self.traces.note(snapshot.iteration, traced(snapshot, trial.order, demanded))
        self._noted += len(news)

    def _follow_trial(self, step: Step) -> None:
        self._say(step)
        self.trial, snapshot = step.data, step.data.snapshots[-1]
        self._show_state(
            self.trial.image, snapshot.delta[0], snapshot.logits[0],
            iteration=snapshot.iteration, running=True,
        )  # fmt: skip
        self._note(self.trial)

    def _finish_trial(self, trial: Trial, stopped: bool = False) -> None:
        self._note(trial)
        self._take_trial(trial)
        result, name = trial.result, TITLES[trial.method]
        last, at = trial.snapshots[-1].iteration, trial.snapshots[trial.best].iteration
        found = (
            f'<span style="color:{_COLOR["green"]}">✓</span> {name} reached the order; the '
            f"shortest perturbation is that of iteration {at}"
            if result.success[0]
            else f'<span style="color:{_COLOR["vermillion"]}">✗</span> {name} did not reach the '
            "order; the last iterate is shown"
        )
        how = "Stopped. " if stopped else ""
        self.status.object = f"{how}{found} ({last} iterations, {trial.seconds:.2f} s)."

    def _take_trial(self, trial: Trial) -> None:
        self.trial = trial
        self._quiet = True
        try:
            last = len(trial.snapshots) - 1
            self.iteration.set(highs=[last], marks=[trial.best], values=[trial.best])
        finally:
            self._quiet = False
        self._show_snapshot()
        self._refresh_tab()

    def _show_snapshot(self) -> None:
        trial = self.trial
        snapshot = trial.snapshots[int(self.iteration.values[0])]
        self._show_state(
            trial.image, snapshot.delta[0], snapshot.logits[0], iteration=snapshot.iteration,
            iterations=trial.snapshots[-1].iteration,
        )  # fmt: skip

    def _follow_comparison(self, step: Step) -> None:
        self._say(step)
        if step.data and len(step.data) != len(self.trials):
            self.table.object = str(comparison_html(step.data[:-1], self.subject.class_names))
        self.trials = step.data or []

    def _finish_comparison(self, trials: list[Trial], stopped: bool = False) -> None:
        self.trials = trials
        self.table.object = str(comparison_html(trials, self.subject.class_names))
        rest = [title for method, title in TITLES.items() if method not in self._compared]
        missing = f" {' and '.join(rest)} need a model with `feats` and a linear `head`."
        missing = missing if rest else ""
        self.status.object = (
            "Stopped; what was finished is shown." if stopped else f"Compared.{missing}"
        )

    # Singular vectors and polytope -----------------------------------------------------------

    def _refresh_tab(self) -> None:
        """Bring the tab that is open up to the iterate that is shown."""
        open_tab = TABS[self.tabs.active] if hasattr(self, "tabs") else TABS[0]
        if self.trial is None or open_tab not in ("Singular vectors", "Polytope"):
            return
        if open_tab == "Polytope":
            self._start(self._plane_steps, self._say, self._show_planes, look=True)
        elif self._program_of != self._place or self.mixer.program is not self.program:
            self._start(self._program_steps, self._say, self._show_program, look=True)

    @property
    def _place(self) -> tuple[Trial, int, dict[str, Any]]:
        return self.trial, int(self.iteration.values[0]), self.parameters.options("rising")

    def _program_steps(self) -> Steps[Program]:
        trial, at, options = place = self._place
        if self._program_of != place:
            yield Step(0.0, "linearizing the network")
            delta = trial.snapshots[at].delta[0]
            self.program = linearize(
                self.subject.model, trial.image, delta, trial.order, RisingOptions(**options)
            )
            self._program_of = place
        return self.program

    def _plane_steps(self) -> Steps[Any]:
        program = yield from self._program_steps()
        deltas = [snapshot.delta[0] for snapshot in self.trial.snapshots]
        steps = partial(plane_steps, self.subject.model, program, deltas, n=PLANE_POINTS)
        return (yield from self.polytope.plane_steps(steps))

    def _show_program(self, program: Program, stopped: bool = False) -> None:
        self.status.object = ""
        self.mixer.load(program, self.trial.snapshots[int(self.iteration.values[0])].iteration)

    def _show_planes(self, planes: Any, stopped: bool = False) -> None:
        self.status.object = ""
        self.polytope.show(planes)


def live(parameters: study.Parameters, subject: Subject | None = None) -> pn.viewable.Viewable:
    """The live picture for an `Explorer`: a new bench that follows `parameters`."""
    made = AttackBench(parameters, subject)
    layout = made.panel()
    layout.bench = made  # keeps it alive as long as its page, and lets tests reach it
    return layout


def still(parameters: study.Parameters, subject: Subject | None = None) -> str:
    """The bench's first attack as HTML, for reports: the three pictures and the order."""
    subject = subject or run(subject_steps(parameters.data, parameters.seed))
    order = first_order(parameters, int(subject.labels[0]), subject.n_classes)
    method = parameters.method
    # Two threads would only wait for each other: up to six times as long on a busy machine.
    with threadpool_limits(1, "blas"):
        trial = run(trial_steps(subject, 0, order, method, parameters.options(method)))
    view = PerturbationView(
        subject.class_names, caption=f"{TITLES[method]} on {subject.data}", n_rows=len(order) + 2
    )
    snapshot = trial.snapshots[trial.best]
    view.show(
        trial.image, snapshot.delta[0], snapshot.logits[0], order, label=trial.label,
        iteration=snapshot.iteration, iterations=trial.snapshots[-1].iteration,
    )  # fmt: skip
    return str(view.still())


def explorer(
    parameters: study.Parameters | None = None, *, subject: Subject | None = None, **pieces: Any
) -> Explorer:
    """The explorer of RisingAttacK; `pieces` are further arguments of `Explorer`.

    subject: the user's own model and images (`trials.own_subject`); then the form holds only what
    acts on the bench, since the study is about the embedded networks.
    """
    parameters = parameters or study.Parameters()
    rest = [name for name in parameters.names() if name not in (*LIVE, "data")]
    shown = {
        "live": partial(live, subject=subject),
        "still": partial(still, subject=subject),
        "only": list(LIVE) if subject else [*LIVE, *rest],
    }
    return Explorer(parameters, **(shown | pieces))


def bench(
    model: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor | None = None,
    class_names: Sequence[str] = (),
    parameters: study.Parameters | None = None,
) -> Explorer:
    """The attack bench for your own model and images, arguments as in `trials.own_subject`.

        model = loaders.load_model("resnet50")
        image = loaders.load_image("cat.jpg", **model.picture)[None]
        bench(model, image, class_names=loaders.imagenet_names())

    For testing models that you own or may test.
    """
    subject = own_subject(model, images, labels, class_names)
    return explorer(parameters, subject=subject, report=False)
