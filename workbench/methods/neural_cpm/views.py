"""Pictures of NeuralCPM's study, each a pure function of results, and the explorer.

Charts are HoloViews elements; replays are `FramePlayer`s, which also work in a printed or exported
page. Nothing is computed here beyond what a picture needs. The living tissue is in `live.py`.
"""

from __future__ import annotations

from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import CYCLE, INK, MUTED, OKABE_ITO, Html, needs_result, table_html
from workbench.widgets import images
from workbench.widgets.player import FramePlayer

from . import bipolar, landscape, live, study
from .energy import volumes
from .experiments import Digits, Law, Recovered, TissueRun
from .landscape import EnergyLandscape
from .measures import centers, price_agreement
from .speed import Speed
from .tissue import Tissue

KINDS = ("medium", "kind 1", "kind 2")
RULE_NAMES = {
    "uniform": "uniform", "edges": "edges", "border_target": "border target",
    "border_source": "border source", "boltzmann": "Boltzmann law",
}  # fmt: skip
CONTACTS = ((0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
GUIDES = {"poles": "a field", "motion": "a rule of motion"}  # what made the aggregates, by name
ENERGY_LABELS = ("J01", "J02", "J11", "J12", "J22", "λ")


def law_chart(law: Law) -> hv.Overlay:
    """Mean volume by copy rule: the engine on the exact chain, the Boltzmann law elsewhere."""
    names = [RULE_NAMES[rule] for rule in law.exact]
    exact = hv.Scatter((names, list(law.exact.values())), "copy rule", "mean volume [sites]",
                       label="exact chain")  # fmt: skip
    means = [(RULE_NAMES[r], runs.mean()) for r, runs in law.sampled.items()]
    engine = hv.Scatter(means, "copy rule", "mean volume [sites]", label="engine")
    return (
        exact.opts(marker="dash", size=28, color=INK, line_width=2)
        * engine.opts(marker="circle", size=8, color=OKABE_ITO["vermillion"])
    ).opts(title="Mean volume of one cell: engine and exact chain", width=500, height=300,
           legend_position="top_left", ylim=(0, 6), show_grid=True)  # fmt: skip


def volume_laws(law: Law) -> hv.Overlay:
    """P(volume) of the uniform rule against the Boltzmann law."""
    chosen = {"uniform": OKABE_ITO["blue"], "boltzmann": OKABE_ITO["orange"]}
    dashes = {"uniform": "solid", "boltzmann": "dashed"}
    curves = [
        hv.Curve((np.arange(len(law.distribution[r])), law.distribution[r]), "volume [sites]",
                 "probability", label=RULE_NAMES[r]).opts(color=color, line_dash=dashes[r])
        for r, color in chosen.items()
    ]  # fmt: skip
    return hv.Overlay(curves).opts(
        title="Volume of one cell, exactly", width=380, height=300, legend_position="top_right"
    )


@needs_result
def law_pair(law: Law) -> hv.Layout:
    """Mean volume by copy rule, and the whole law of the volume."""
    return (law_chart(law) + volume_laws(law)).opts(shared_axes=False, toolbar=None)


@needs_result
def tissue_replay(run: TissueRun) -> FramePlayer:
    """The simulated tissue as a replay."""
    caption = f"Tissue of {len(run.kind) - 1} cells: kind 1 orange, kind 2 blue"
    return FramePlayer(run.frames, run.kind, run.mcs, unit="MCS", caption=caption, width=420)


@needs_result
def tissue_chart(run: TissueRun) -> hv.Layout:
    """How the tissue sorts, and its energy by term, over time."""
    sorting = hv.Curve((run.mcs, run.sorting_index), "time [MCS]", "share of unlike contacts")
    present = {name: term for name, term in run.energy.items() if np.any(term)}
    terms = [
        hv.Curve((run.mcs[1:], term[1:]), "time [MCS]", "energy", label=name).opts(color=color)
        for (name, term), color in zip(present.items(), CYCLE, strict=False)
    ]
    return (
        sorting.opts(title="Contacts between unlike kinds", width=420, height=280)
        + hv.Overlay(terms or [hv.Curve([], "time [MCS]", "energy")]).opts(
            title="Energy by term, after the start", width=420, height=280,
            legend_position="right",
        )
    ).opts(shared_axes=False, toolbar=None)  # fmt: skip


def recovery_chart(recovered: Recovered, seed: int = 0, rescaled: bool = False) -> hv.Overlay:
    """The six parameters along the fit, with the truth dashed; rescaled by the best scalar or not.

    The best scalar is that of the estimate, one number for the whole history.
    """
    fit, truth = recovered.fits[seed], recovered.truth
    history = fit.parameters[:, :6] * (recovered.estimates[seed] / fit.values).mean()
    estimate = recovered.estimates[seed]
    factor = (estimate @ truth) / (estimate @ estimate) if rescaled else 1.0
    iterations = np.arange(1, len(history) + 1)
    curves = [
        hv.Curve((iterations, factor * history[:, number]), "iteration", "estimate [energy]",
                 label=name).opts(color=color)
        for number, (name, color) in enumerate(zip(ENERGY_LABELS, CYCLE, strict=False))
    ]  # fmt: skip
    rows = [(1, value, iterations[-1], value, c) for value, c in zip(truth, CYCLE, strict=False)]
    dashes = hv.Segments(rows, ["iteration", "estimate [energy]", "end", "same"], "color").opts(
        color="color", line_dash="dashed", line_width=1
    )
    how = f", times {factor:.3f}" if rescaled else ""
    return hv.Overlay([*curves, dashes]).opts(
        title=f"Recovered energy{how} (truth dashed)", width=450, height=320,
        legend_position="right",
    )  # fmt: skip


def contact_chart(recovered: Recovered, iteration: int, seed: int = 0) -> hv.Overlay:
    """Contact sums of data and of chains at one iteration: their difference is the gradient."""
    fit = recovered.fits[seed]
    names = ENERGY_LABELS[:5]
    data, chains = (s[iteration, :5] for s in (fit.data_statistics, fit.chain_statistics))
    axes = ("contact", "c × number of contacts")
    return (
        hv.Segments((names, data, names, chains), [axes[0], axes[1], "x1", "y1"]).opts(
            color=MUTED, line_width=2
        )
        * hv.Scatter((names, data), *axes, label="data").opts(
            marker="dash", size=28, color=INK, line_width=2
        )
        * hv.Scatter((names, chains), *axes, label="chains").opts(
            size=9, color=OKABE_ITO["vermillion"]
        )
    ).opts(
        title=f"Contacts in iteration {iteration + 1}", width=440, height=300,
        legend_position="right", ylim=(0, 1.15 * max(data.max(), chains.max())),
    )  # fmt: skip


@needs_result
def recovery_pair(recovered: Recovered) -> hv.Layout:
    """The parameters along the fit, as they are and after the best scalar."""
    return recovery_chart(recovered) + recovery_chart(recovered, rescaled=True)


@needs_result
def contact_pair(recovered: Recovered) -> hv.Layout:
    """Contacts of data and chains in the first iteration and in the last."""
    last = len(recovered.fits[0].parameters) - 1
    return contact_chart(recovered, 0) + contact_chart(recovered, last)


@needs_result
def recovery_errors(recovered: dict[str, Recovered]) -> Any:
    """RMSE of each scenario over seeds, as it is and after the best scalar; nothing for one."""
    if len(recovered) < 2:
        return Html("")
    points = []
    for label, color, key in (
        ("as is", OKABE_ITO["blue"], "rmse"),
        ("after scalar", OKABE_ITO["orange"], "rmse_scaled"),
    ):
        rows = [(name, v) for name, r in recovered.items() for v in getattr(r, key)]
        points.append(hv.Scatter(rows, "scenario", "RMSE [energy]", label=label).opts(color=color))
    return hv.Overlay(points).opts(
        title="Error of the recovered energy, one dot a seed", width=420, height=280, logy=True
    )


def lattice_rgb(cell: np.ndarray, kind: np.ndarray, scale: int = 4) -> np.ndarray:
    """(H scale, W scale, 3) uint8 colors of a lattice by kind, cell borders black."""
    indices, palette = images.lattice_image(cell, kind, scale=scale)
    return np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in palette], np.uint8)[
        indices
    ]


def aggregates(frames: np.ndarray, kind: np.ndarray, title: str, ellipses: bool = True) -> Any:
    """A row of aggregates (n, H, W) with the two-standard-deviation ellipse of each kind."""
    n, height, width = frames.shape
    row = hv.RGB(
        lattice_rgb(np.concatenate(list(frames), axis=1), kind), bounds=(0, 0, n * width, height)
    ).opts(width=150 * n, height=172, title=title, xaxis=None, yaxis=None, toolbar=None,
           default_tools=[])  # fmt: skip
    if not ellipses:
        return row
    points = centers(frames, len(kind))
    shapes = []
    for k, dash in ((1, "solid"), (2, "dashed")):
        own = [spread_ellipse(points[number, kind[1:] == k]) for number in range(n)]
        # Rows point down, y points up. One element for all: each costs as much as a chart.
        lines = [
            np.stack([e[:, 1] + number * width, height - e[:, 0]], axis=1)
            for number, e in enumerate(own)
            if e is not None
        ]
        outline = hv.Path(lines).opts(color=INK, line_dash=dash, line_width=1.5)
        shapes.append(outline.opts(apply_ranges=False))  # the lattice is the frame
    return hv.Overlay([row, *shapes])


def spread_ellipse(points: np.ndarray, n: int = 33) -> np.ndarray | None:
    """Outline (n, 2), two standard deviations around points (m, 2); None for fewer than two."""
    points = points[np.isfinite(points).all(1)]
    if len(points) < 2:
        return None
    spread, axes = np.linalg.eigh(np.cov(points.T, bias=True))
    turn = np.linspace(0, 2 * np.pi, n)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    return points.mean(0) + 0.5 + (axes * 2 * np.sqrt(np.maximum(spread, 0)) @ circle).T


@needs_result
def training_pair(result: bipolar.Bipolar) -> Any:
    """Energies and gap of the networks that were trained first."""
    trained = [m for m in result.models.values() if m.trainings]
    return training_chart(trained[0].trainings) if trained else Html("<em>Not trained.</em>")


@needs_result
def price_chart(result: bipolar.Bipolar) -> Any:
    """First-order against exact neural prices of the copies that the study compared."""
    if result.exact is None:
        return Html("<em>Not compared.</em>")
    return first_order_chart(result.exact, result.first_order, result.analytic)


@needs_result
def basis_table(result: bipolar.Bipolar) -> Html:
    """The cell-sorting energy fitted to the aggregates, beside the one that made them.

    Pictures tell H / T only, so the latter is divided by the temperature that they were made at.
    """
    scenario, basis = result.scenario, result.basis
    J, lam = basis.J.detach().numpy(), basis.lam.detach().numpy()
    fitted = [*(J[k, m] for k, m in CONTACTS), lam[1:].mean()]
    temperature = scenario.stages[-1][0]
    guide = GUIDES[scenario.guide]
    over = f" (over T = {temperature:g})" if temperature != 1 else ""
    rows = [
        [f"made with{over}, and {guide}",
         *(f"{value / temperature:.3g}" for value in (*scenario.J, scenario.lam))],
        ["fitted without it", *(f"{value:.3g}" for value in fitted)],
    ]  # fmt: skip
    return table_html(["energy", *ENERGY_LABELS], rows, caption="Contact energies and stiffness")


@needs_result
def bipolar_gallery(result: bipolar.Bipolar, n: int = 5) -> hv.Layout:
    """Data and what each model makes, all models from the same kind-permuted starts."""
    n = min(n, len(result.data), *(model.frames.shape[1] for model in result.models.values()))
    rows = [aggregates(result.data[:n], result.kind, "data")]
    for name, model in result.models.items():
        title = f"{name}: RMSE {model.rmse[0]:.1f} sites²"
        rows.append(aggregates(model.frames[0, :n], result.kind, title))
    return hv.Layout(rows).cols(1).opts(shared_axes=False, toolbar=None)


@needs_result
def bipolar_replay(result: bipolar.Bipolar, sample: int = 0) -> FramePlayer:
    """One permuted start under every model, side by side, to scrub through."""
    models = list(result.models.values())
    length = min(len(m.record) for m in models)
    frames = np.concatenate([m.record[:length, sample] for m in models], axis=2)
    caption = "From the same start, left to right: " + ", ".join(result.models)
    return FramePlayer(
        frames, result.kind, models[0].recorded[:length], unit="parallel steps", caption=caption,
        width=min(760, 260 * len(models)),
    )  # fmt: skip


@needs_result
def rmse_chart(result: bipolar.Bipolar) -> hv.Overlay:
    """Error of each model's second moments, a dot a seed, with the noise floor of fresh data.

    The line at a dot is the 95 % interval over the samples of that seed.
    """
    rows = [(name, value) for name, model in result.models.items() for value in model.rmse]
    intervals = [
        (name, low, name, high)
        for name, model in result.models.items()
        for low, high in model.rmse_interval
    ]
    means = [(name, model.rmse.mean()) for name, model in result.models.items()]
    top = 1.15 * max(result.starts_rmse, *(high for *_, high in intervals))
    levels: list[Any] = []
    for level, text in (
        (result.noise_floor.mean(), "noise floor of fresh data"),
        (result.starts_rmse, "kind-permuted starts"),
    ):
        levels.append(hv.HLine(level).opts(color=INK, line_dash="dashed"))
        levels.append(
            hv.Text(means[-1][0], level + 0.04 * top, text, halign="right").opts(
                color=MUTED, text_font_size="9pt"
            )
        )
    bars = hv.Bars(means, "model", "RMSE of second moments [sites²]").opts(
        color="#C9DCEB", line_color=None, bar_width=0.6
    )
    dots = hv.Scatter(rows, "model", "RMSE of second moments [sites²]").opts(
        color=OKABE_ITO["blue"], size=8
    )
    lines = hv.Segments(intervals, ["model", "RMSE of second moments [sites²]", "x1", "y1"]).opts(
        color=INK, line_width=1.5
    )
    return hv.Overlay([bars, lines, dots, *levels]).opts(
        title="Distance from the data: a dot a seed, a line its 95 % interval over samples",
        width=660, height=340, ylim=(0, top), xrotation=12,
    )  # fmt: skip


@needs_result
def consistency_table(result: bipolar.Bipolar) -> Html:
    """Fragments, stability and variance fractions of each model, as an HTML table."""
    fraction = bipolar.variance_fraction(result.moments).mean(0)
    sizes = volumes(result.data, len(result.kind))[:, 1:]
    rows = [
        ["data", f"{result.data_fragmented:.2f}", f"{sizes.min()} to {sizes.max()}", "–",
         *(f"{f:.2f}" for f in fraction)]
    ]  # fmt: skip
    for name, model in result.models.items():
        least, greatest = model.volumes[:, 0].min(), model.volumes[:, 1].max()
        rows.append(
            [name, f"{model.fragmented.mean():.2f}", f"{least} to {greatest}",
             f"{model.stable.mean():.2f}", *(f"{f:.2f}" for f in model.fraction.mean(0))]
        )  # fmt: skip
    header = [
        "model", f"cells in pieces (of {len(result.kind) - 1})", "volumes [sites]",
        "stable pictures", "variance along axis, kind 1", "variance along axis, kind 2",
    ]  # fmt: skip
    return table_html(header, rows, caption="Means over samples and seeds")


def first_order_chart(
    exact: np.ndarray, first_order: np.ndarray, analytic: np.ndarray
) -> hv.Overlay:
    """First-order against exact neural energy change, one dot a copy attempt.

    analytic: what the known energy adds to both, for the change of acceptance in the title.
    """
    found = price_agreement(exact, first_order, analytic)
    real = np.isfinite(exact)
    exact, first_order = exact[real], first_order[real]
    low, high = float(exact.min()), float(exact.max())
    dots = hv.Scatter((exact, first_order), "exact ΔH", "first-order ΔH").opts(
        size=4, alpha=0.5, color=OKABE_ITO["blue"]
    )
    line = hv.Curve([(low, low), (high, high)]).opts(color=INK, line_dash="dashed", line_width=1)
    return (dots * line).opts(
        title=f"Price of a copy: correlation {found['correlation']:.4f},\n"
        f"slope {found['slope']:.3f}, acceptance off by {found['acceptance_change']:.4f}",
        width=420, height=380,
    )  # fmt: skip


def price_scatter(proposals: float) -> hv.Overlay:
    """The same for so many proposals on one aggregate under the stored weights, for a toy."""
    return first_order_chart(*landscape.prices(int(proposals)))


def energy_landscape(parameters: study.Parameters) -> EnergyLandscape:
    """What each part of the energy says about exchanging two cells, by clicking."""
    return EnergyLandscape(seed=parameters.seed)


def speed_table(rows: list[Speed]) -> Html:
    """Equivalent uniform attempts per CPU second, and the ratio to the peer measured with them."""
    body = [
        [row.case, f"{row.own / 1e6:.1f} million",
         "not installed" if row.peer is None else f"{row.peer / 1e6:.1f} million",
         "–" if row.ratio is None else f"<b>{row.ratio:.1f}</b>"]
        for row in rows
    ]  # fmt: skip
    header = ["case", "this engine [attempts/s]", "glazier [attempts/s]", "ratio"]
    return table_html(header, body, caption="One core, medians of rounds in turns")


def training_chart(trainings: list[Any]) -> hv.Layout:
    """Energies of data and chains, their gap, and the validation error if any, a line a seed."""
    energies, gaps = [], []
    for training in trainings:
        history = training.history
        x = np.arange(1, len(history["gap"]) + 1)
        for key, color, label in (
            ("energy_data", INK, "data"), ("energy_chains", OKABE_ITO["orange"], "chains"),
        ):  # fmt: skip
            curve = hv.Curve((x, history[key]), "iteration", "mean energy", label=label)
            energies.append(curve.opts(color=color, line_width=1.2))
        gaps.append(
            hv.Curve((x, history["gap"]), "iteration", "gap H(data) − H(chains)").opts(
                color=OKABE_ITO["blue"], line_width=1.2
            )
        )
    charts = (
        hv.Overlay(energies).opts(
            title="Energy of data and of chains", width=420, height=280,
            legend_position="top_left",
        )
        + hv.Overlay([*gaps, hv.HLine(0).opts(line_width=1)]).opts(
            title="Gap: what training pushes on", width=420, height=280
        )
    )  # fmt: skip
    judged = [
        hv.Curve(t.metrics, "iteration", "RMSE of moments [sites²]")
        * hv.Scatter(t.metrics, "iteration", "RMSE of moments [sites²]")
        for t in trainings
        if t.metrics
    ]
    if judged:
        title = "Samples against the validation half"
        charts += hv.Overlay(judged).opts(title=title, width=420, height=280)
    return charts.opts(shared_axes=False, toolbar=None).cols(2)


@needs_result
def digits_gallery(result: Digits, n: int = 8) -> hv.Layout:
    """Held-out cellular digits, and what the cell-sorting energy makes of two kinds of starts."""
    named = {
        f"data (the classifier reads {100 * result.accuracy:.0f} % right)": ("data", result.data),
        "starts: data with kinds dealt anew": ("starts", result.starts),
        "cell sorting, from these starts": ("cell sorting", result.samples),
        "cell sorting, from single sites": ("cell sorting, scattered", result.scattered),
    }
    rows = [
        aggregates(
            frames[:n], result.kind,
            f"{title}: inception score {result.scores[key].mean():.1f}", ellipses=False,
        )
        for title, (key, frames) in named.items()
    ]  # fmt: skip
    return (
        hv.Layout([r.opts(hv.opts.RGB(width=110 * n, height=132)) for r in rows])
        .cols(1)
        .opts(toolbar=None)
    )


def monitor(partial: study.NeuralCPMStudy) -> Any:
    """What is known while the study runs: the training, or the latest finished experiment."""
    poles = partial.bipolar
    if poles and poles.training and poles.training[1]:
        name, trainings = poles.training
        chains = trainings[0].chains[:5]
        row = aggregates(chains, poles.kind, f"{name}: chains of the first seed now")
        return pn.Column(training_chart(trainings), row)
    if partial.recovered:
        return recovery_chart(list(partial.recovered.values())[-1])
    return law_chart(partial.law) if partial.law else pn.Spacer()


def results_of(finished: study.NeuralCPMStudy) -> dict[str, Any]:
    """Title -> picture of everything that the study measured."""
    return {title: view(finished) for title, view in VIEWS.items()}


def _recovery_view(finished: study.NeuralCPMStudy) -> Any:
    first = finished.own
    return pn.Column(
        recovery_chart(first), recovery_chart(first, rescaled=True),
        pn.Row(contact_chart(first, 0), contact_chart(first, len(first.fits[0].parameters) - 1)),
        recovery_errors(finished.recovered),
    )  # fmt: skip


def _bipolar_view(finished: study.NeuralCPMStudy) -> Any:
    poles = finished.bipolar
    return pn.Column(
        rmse_chart(poles), pn.pane.HTML(consistency_table(poles)),
        pn.pane.HTML(basis_table(poles)), bipolar_gallery(poles),
        pn.pane.HTML(bipolar_replay(poles)._repr_html_()),
    )  # fmt: skip


def _training_view(finished: study.NeuralCPMStudy) -> Any:
    poles = finished.bipolar
    trained = [m for m in poles.models.values() if m.trainings]
    return pn.Column(
        *(pn.Column(f"**{m.name}**", training_chart(m.trainings)) for m in trained),
        first_order_chart(poles.exact, poles.first_order, poles.analytic),
    )


VIEWS = {
    "Claims": lambda finished: pn.pane.HTML(finished.claims._repr_html_()),
    "Copy rule": lambda finished: law_pair(finished.law),
    "Recovery": _recovery_view,
    "Two poles": _bipolar_view,
    "Training": _training_view,
}


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: a tissue to play with, and the study behind its Run button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: a tissue before and after it sorts itself (PNG, 800 x 400)."""
    tissue = Tissue(study.Parameters(size=100, n_cells=40, V_target=80, J01=3.5, seed=1))
    frames = []
    for mcs in (0, 3_000):
        tissue.model.step(mcs)
        frames.append(tissue.model.cell)
    picture = images.lattice_image(np.concatenate(frames, axis=1), tissue.model.kind, scale=4)
    return images.png(*picture)
