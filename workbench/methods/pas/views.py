"""Pictures of the study, each a pure function of results, and the explorer.

Charts are HoloViews elements; what follows a slider is in `drawings.py`, the live part in
`live.py`. Nothing is computed here beyond what a picture needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holoviews as hv
import numpy as np
import panel as pn

from workbench.explorer import Explorer
from workbench.theme import INK, MUTED, NOT_RUN, OKABE_ITO, Html, needs_result, table_html

from . import drawings, live, study
from .drawings import DASHED, DOTTED, STYLES
from .experiments import Homogeneous, Quality, Regret, Shifted, Unbiased
from .trials import TITLES, Outcome

# Of the experiments in a study, as they run.
ORDER = (
    "main", "synthetic", "tuning", "unbiased", "homogeneous", "real", "plug_in", "shifted",
    "switches", "quality", "regret", "agreement",
)  # fmt: skip


def _curve(
    x: np.ndarray, y: np.ndarray, axes: tuple[str, str], name: str, color: str, dash: str = ""
) -> hv.Curve:
    return hv.Curve((x, y), *axes, label=name).opts(color=color, line_dash=dash or "solid")


@needs_result
def error_bars(outcome: Outcome) -> hv.Overlay:
    """MSE x 1000 of every row with two standard errors; the axis ends at four medians."""
    keys = list(outcome.mse)
    rows = [(TITLES[k], 1e3 * outcome.mean(k), 2e3 * outcome.error(k)) for k in keys]
    top = min(1.15 * max(r[1] for r in rows), 4 * float(np.median([r[1] for r in rows])))
    colors = [STYLES[k][0] for k in keys]
    bars = hv.Bars([(*r[:2], c) for r, c in zip(rows, colors, strict=True)], "estimator",
                   ["MSE x 1000", "color"])  # fmt: skip
    spread = hv.ErrorBars([r for r in rows if np.isfinite(r[2])], "estimator",
                          ["MSE x 1000", "error"])  # fmt: skip
    return (bars.opts(color="color", alpha=0.8) * spread).opts(
        title=f"{outcome.setting.titled()}: {outcome.trials} trials", width=660, height=340,
        xrotation=40, ylim=(0, top or 1), xlabel="",
    )  # fmt: skip


@needs_result
def error_table(outcome: Outcome, caption: str = "") -> Html:
    """MSE x 1000 with its standard error, against the least, and the moments that were used."""
    least = min(map(outcome.mean, outcome.mse))
    rows = []
    for key in outcome.mse:
        mean, error = 1e3 * outcome.mean(key), 1e3 * outcome.error(key)
        text = f"<b>{mean:.4g}</b>" + (f" ± {error:.2g}" if np.isfinite(error) else "")
        floored = outcome.floored.get(key)
        rows.append([
            TITLES[key], text, f"{outcome.mean(key) / least:.2f}" if least > 0 else "–",
            outcome.regime(key), "–" if floored is None else f"{floored.mean():.1f}",
        ])  # fmt: skip
    header = [
        "estimator", "MSE x 1000, mean ± error", "over the least", "moments", "variances floored"
    ]  # fmt: skip
    title = caption or f"{outcome.setting.titled()}, {outcome.trials} trials"
    return table_html(header, rows, f"{title}; {outcome.counted()}")


@needs_result
def side_by_side(outcomes: Mapping[Any, Outcome]) -> Html:
    """MSE x 1000 of several settings, a column each; the least of each column is bold."""
    keys = list(next(iter(outcomes.values())).mse)
    names = {"amazon": "Amazon", "nyt": "NYT"}
    header = ["estimator", "moments"] + [
        " ".join(names.get(k, k) for k in ((key,) if isinstance(key, str) else key))
        for key in outcomes
    ]
    rows = []
    for key in keys:
        row = [TITLES[key], next(iter(outcomes.values())).regime(key)]
        for outcome in outcomes.values():
            least = min(map(outcome.mean, outcome.mse))
            mean, error = outcome.mean(key), outcome.error(key)
            text = f"{1e3 * mean:.4g}" + (f" ± {1e3 * error:.2g}" if np.isfinite(error) else "")
            row.append(f"<b>{text} ◀</b>" if mean == least else text)
        rows.append(row)
    trials = next(iter(outcomes.values())).trials
    return table_html(header, rows, f"MSE x 1000, mean ± standard error, {trials} trials")


@needs_result
def cure_curves(unbiased: Unbiased) -> Any:
    """CURE and the true loss over omega for both predictors: one draw, and the mean of all."""
    charts = []
    for predictor, curves in unbiased.curves.items():
        inside = slice(1, -1)
        omegas = unbiased.omegas[inside]
        axes = ("omega", "MSE x 1000")
        lines = [
            _curve(omegas, 1e3 * curves[key][inside], axes, name, color, dash).opts(line_width=w)
            for key, name, color, dash, w in (
                ("cure", "CURE, one draw", OKABE_ITO["vermillion"], DOTTED, 2),
                ("loss", "loss, one draw", INK, DOTTED, 2),
                ("mean_cure", "CURE, mean", OKABE_ITO["vermillion"], "", 4),
                ("mean_loss", "loss, mean", INK, DASHED, 2),
            )
        ]
        seen = np.concatenate([curves[key] for key in ("mean_cure", "mean_loss")])
        charts.append(hv.Overlay(lines).opts(
            title=f"{predictor} predictor", logx=True, width=430, height=310,
            legend_position="top_left" if predictor == "good" else "top_right",
            ylim=(0, 1.25e3 * float(seen.max())),
        ))  # fmt: skip
    return hv.Layout(charts).opts(shared_axes=False, toolbar=None)


@needs_result
def unbiased_table(unbiased: Unbiased) -> Html:
    """z of the mean difference of CURE and loss at fixed omega; what the first draw chose."""
    from .experiments import OMEGAS

    rows = [
        [predictor, *(f"{v:+.2f}" for v in unbiased.z[predictor]),
         drawings.omega_text(unbiased.chosen[predictor]),
         drawings.omega_text(unbiased.oracle[predictor])]
        for predictor in unbiased.z
    ]  # fmt: skip
    header = ["predictor", *(f"z at ω = {o:g}" for o in OMEGAS), "ω̂, first draw", "oracle ω"]
    return table_html(header, rows, f"{unbiased.draws} draws, known moments")


@needs_result
def homogeneous_table(found: Homogeneous) -> Html:
    """Weights and risks on problems that are alike, beside the closed forms."""
    s, g, B = found.parts
    rows = [
        ["closed form", f"{found.best_weight:.4f}", f"{found.best_risk:.5f}"],
        ["CURE", f"{found.weight.mean():.4f}", f"{found.risk.mean():.5f}"],
        ["CURE without the covariance", f"{found.blind_weight.mean():.4f}",
         f"{found.blind_risk.mean():.5f}"],
    ]  # fmt: skip
    caption = f"s = {s:.4f}, g = {g:.4f}, B = {B:.4f}; {len(found.weight)} draws; moments: known"
    return table_html(["", "weight on PT", "risk"], rows, caption)


@needs_result
def regret_chart(regret: Regret) -> Any:
    """Regret against the number of problems, log-log, with a guide of slope -1."""
    axes, parts = ("problems", "regret x 1000"), []
    for predictor, color in (("good", OKABE_ITO["blue"]), ("bad", OKABE_ITO["orange"])):
        sizes, means = regret.done(predictor)
        if len(sizes):
            parts += [
                _curve(sizes, 1e3 * means, axes, f"{predictor} predictor", color),
                hv.Scatter((sizes, 1e3 * means), *axes).opts(color=color, size=7),
            ]
    sizes, means = regret.done("good")
    if not len(sizes):
        return NOT_RUN
    parts.append(_curve(sizes, 1e3 * means[0] * sizes[0] / sizes, axes, "slope -1", INK, DASHED))
    return hv.Overlay(parts).opts(
        title="Loss of the chosen omega minus that of the best", logx=True, logy=True, width=540,
        height=330, legend_position="top_right",
    )  # fmt: skip


@needs_result
def quality_chart(quality: Quality) -> hv.Overlay:
    """MSE x 1000 against the quality of the predictor; PAS is the thick line."""
    axes = ("quality q", "MSE x 1000")
    keys = [k for k in quality.mse if k not in ("pas_official", "pas_per_problem", "unipt")]
    lines = [
        _curve(quality.q, 1e3 * quality.mse[k], axes, TITLES[k], *STYLES[k]).opts(
            line_width=4 if k == "pas" else 2
        )
        for k in sorted(keys, key=lambda k: k == "pas")
    ]
    return hv.Overlay(lines).opts(
        title=f"From noise (0) to the tuned predictor (1), {quality.data}", logy=True, width=700,
        height=360, legend_position="right",
    )  # fmt: skip


@needs_result
def plug_in_table(found: Mapping[tuple[str, str, float], Outcome]) -> Html:
    """What moments of each problem cost PAS against pooled ones."""
    rows = []
    for (data, predictor, frac), o in found.items():
        pooled, own = o.mean("pas"), o.mean("pas_per_problem")
        rows.append([
            f"{data}, {predictor}", f"{frac:.0%}", f"{1e3 * pooled:.4g}", f"{1e3 * own:.4g}",
            f"<b>{own / pooled - 1:+.0%}</b>", f"{o.floored['pas_per_problem'].mean():.0f}",
        ])  # fmt: skip
    header = ["data", "labelled", "pooled_within", "per_problem", "cost", "variances floored"]
    return table_html(header, rows, "MSE x 1000 of PAS by the moments it plugs in")


@needs_result
def shift_table(found: Shifted) -> Html:
    """The tuned predictor as it is and two points too high everywhere."""
    names = {"nyt": "NYT", "amazon": "Amazon"}
    pairs = [(found.plain[data], found.shifted[data]) for data in found.shifted]
    rows = [
        [TITLES[key], *(f"{1e3 * o.mean(key):.4g}" for pair in pairs for o in pair)]
        for key in ("classical", "ppi", "pt", "unipt", "prediction", "pas", "unipas", "eb_ppi")
    ]
    rows.append(["<i>mean weight of PAS on PT</i>",
                 *(f"<b>{o.weight.mean():.2f}</b>" for pair in pairs for o in pair)])  # fmt: skip
    header = ["MSE x 1000 of"] + [
        f"{names[data]}, {f}" for data in found.shifted for f in ("f", "f + 2")
    ]
    moments = "Moments pooled_within; UniPT and UniPAS per_problem"
    return table_html(header, rows, moments)


@needs_result
def switches_table(found: Mapping[tuple[str, str], Outcome]) -> Html:
    """What each difference of the official program changes in the mean squared error."""
    names = {"nyt": "NYT", "amazon": "Amazon"}
    rows = []
    for key, plain in (
        ("unipas_official", "unipas"), ("pas_official_search", "pas"),
        ("shrink_average_official", "shrink_average"),
    ):  # fmt: skip
        outcomes = list(found.values())
        rows.append([
            TITLES[key], outcomes[0].regime(key),
            *(f"{1e3 * o.mean(plain):.4g} to {1e3 * o.mean(key):.4g} "
              f"(<b>{o.mean(key) / o.mean(plain) - 1:+.1%}</b>)" for o in outcomes),
        ])  # fmt: skip
    header = ["switch", "moments", *(f"{names[d]} {k}" for d, k in found)]
    return table_html(header, rows, "MSE x 1000 without and with each switch")


def monitor(partial: study.PASStudy) -> Any:
    """What is known while the study runs: the picture of the newest experiment."""
    newest = next((r for n in reversed(ORDER) if (r := getattr(partial, n)) is not None), None)
    if isinstance(newest, dict) and newest:
        newest = list(newest.values())[-1]
    for kind, draw in (
        (Outcome, drawings.outcome_bars), (Quality, drawings.quality_drawing),
        (Regret, drawings.regret_drawing), (Homogeneous, homogeneous_table),
        (Unbiased, unbiased_table), (Shifted, shift_table),
    ):  # fmt: skip
        if isinstance(newest, kind):
            return pn.pane.HTML(str(draw(newest)))
    return pn.Spacer()


def _html(shown: Any) -> Any:
    return pn.pane.HTML(str(shown)) if isinstance(shown, Html) else shown


def _column(*shown: Any) -> pn.Column:
    return pn.Column(*map(_html, shown))


VIEWS = {
    "Claims": lambda finished: pn.pane.HTML(finished.claims._repr_html_()),
    "Errors": lambda finished: _column(error_bars(finished.main), error_table(finished.main)),
    "Synthetic": lambda finished: _column(
        side_by_side(finished.synthetic), cure_curves(finished.unbiased),
        unbiased_table(finished.unbiased), homogeneous_table(finished.homogeneous),
    ),
    "Real data": lambda finished: _column(
        side_by_side(finished.real), plug_in_table(finished.plug_in),
        shift_table(finished.shifted), switches_table(finished.switches),
    ),
    "Quality and regret": lambda finished: _column(
        quality_chart(finished.quality), regret_chart(finished.regret)
    ),
}  # fmt: skip


def explorer(parameters: study.Parameters | None = None) -> Explorer:
    """The live part: a split to look into, shrinkage to drag, and the study behind its button."""
    return live.explorer(parameters, steps=study.steps, views=VIEWS, monitor=monitor)


def thumbnail() -> bytes:
    """The gallery's picture: PT and prediction means drawn together by PAS (PNG, 800 x 400)."""
    import io

    from PIL import Image, ImageDraw, ImageFont

    from workbench.widgets.svg import Scale

    from .trials import Setting

    split = Setting().draw(0)
    pas = split.estimates()["pas"]
    order = np.argsort(split.truth)[:: len(split.truth) // 60]
    fine = 2  # drawn twice as large, then made smaller: smooth lines
    sheet = Image.new("RGB", (800 * fine, 400 * fine), "white")
    draw = ImageDraw.Draw(sheet)
    low, high = np.quantile(np.concatenate([pas.start, pas.target]), [0.003, 0.997])
    x = Scale(0, len(order), 30 * fine, 770 * fine)
    y = Scale(float(low), float(high), 372 * fine, 44 * fine)
    font = ImageFont.load_default(size=18 * fine)
    for k, j in enumerate(order):
        at = float(x(k + 0.5))
        ends = [float(y(v)) for v in (pas.start[j], pas.target[j], pas.theta[j], split.truth[j])]
        draw.line([(at, ends[0]), (at, ends[1])], "#C3CAD3", 3 * fine)
        for value, color, r in zip(
            ends, (OKABE_ITO["blue"], OKABE_ITO["orange"], OKABE_ITO["vermillion"]), (4, 4, 6),
            strict=False,
        ):  # fmt: skip
            draw.ellipse([at - r * fine, value - r * fine, at + r * fine, value + r * fine], color)
        draw.line([(at - 5 * fine, ends[3]), (at + 5 * fine, ends[3])], INK, 3 * fine)
    place = 30
    for words, color in (("PT", OKABE_ITO["blue"]), ("prediction mean", OKABE_ITO["orange"]),
                         ("PAS", OKABE_ITO["vermillion"]), ("truth", INK)):  # fmt: skip
        draw.text((place * fine, 20 * fine), words, color, font, anchor="lm")
        place += 34 + 10 * len(words)
    draw.line([(30 * fine, 385 * fine), (770 * fine, 385 * fine)], MUTED, fine)
    stream = io.BytesIO()
    sheet.resize((800, 400), Image.Resampling.LANCZOS).save(stream, format="png", optimize=True)
    return stream.getvalue()
