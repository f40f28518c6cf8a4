"""The page of a sweep: its grid as a table, and each tested claim against what was swept.

A pure function of what a sweep left behind; the page needs no network. The charts of a section draw
the same reports from one data source, so pointing at a report in one chart marks it in all.
"""

from __future__ import annotations

import datetime
import itertools
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import catalog, theme
from workbench.claims import NOT_TESTED, Claim, Claims, badge, format_measured, interval
from workbench.sweep_store import DONE, FAILED, MISSING

if TYPE_CHECKING:  # each takes a second to import
    import holoviews as hv
    import pandas as pd

LINES = ["blue", "orange", "purple", "sky", "black", "yellow"]  # green and red are verdicts
DASHES = ["solid", "dashed", "dotted", "dotdash"]
MARKERS = {"holds": "circle", "fails": "x", NOT_TESTED: "dash"}
STATUS = {DONE: "#009E73", FAILED: "#D55E00", MISSING: theme.MUTED}
SIGNS = {DONE: "✓", FAILED: "✗", MISSING: "–"}
MOST_SECTIONS = 12  # of charts; the tables hold the rest
WIDE = 20  # largest over smallest value from which an axis is logarithmic


def render(
    manifest: dict[str, Any], records: dict[str, dict[str, Any]], table: pd.DataFrame
) -> str:
    """The page as HTML: `manifest`, `records` by point, and `table` of `sweep_store.load_all`."""
    from bokeh.resources import Resources
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    method = catalog.find(manifest["slug"])
    claims, untested = _claims(records)
    script, sections, left_out = "", [], 0
    if claims:
        frame, axis = _chart_frame(manifest, records, table, claims)
        script, sections, left_out = _sections(manifest, frame, axis, claims)
    environment = Environment(loader=PackageLoader("workbench", "templates"), autoescape=True)
    return environment.get_template("sweep.html").render(
        method=method,
        manifest=manifest,
        swept=[_labelled(method.slug, name) for name in manifest["grid"]],
        rows=_rows(manifest, records, table),
        counts={status: int((table.status == status).sum()) for status in SIGNS},
        seconds=table.seconds.sum(),
        claims=claims,
        untested=untested,
        sections=[
            {**section, "charts": [{**c, "div": Markup(c["div"])} for c in section["charts"]]}
            for section in sections
        ],
        left_out=left_out,
        badges={name: Markup(badge(name)) for name in ("holds", "fails")},
        made=datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        command=command(manifest),
        # The raw script alone: with it would come scripts of Panel's that are files of a server.
        bokeh=Markup(Resources(mode="inline", components=["bokeh"]).js_raw[0] if script else ""),
        script=Markup(script),
    )


def command(manifest: dict[str, Any]) -> str:
    """The command line that makes this sweep."""
    words = ["workbench", "sweep", manifest["slug"]]
    for name, values in manifest["grid"].items():
        words += ["-g", f"{name}={','.join(str(v).replace(' ', '') for v in values)}"]
    words += ["--seeds", str(manifest["seeds"]), "--preset", manifest["preset"]]
    for name, value in manifest["changes"].items():
        words += ["-p", name, str(value)]
    return shlex.join(words)


def _claims(records: dict[str, dict[str, Any]]) -> tuple[list[Claim], list[Claim]]:
    """The claims that at least one point tested, and the others."""
    found: dict[str, Claim] = {}
    for record in records.values():
        for claim in (Claim(**values) for values in record["claims"]):
            if claim.id not in found or found[claim.id].verdict == NOT_TESTED:
                found[claim.id] = claim
    tested = [claim for claim in found.values() if claim.measured is not None]
    return tested, [claim for claim in found.values() if claim.measured is None]


def _labelled(slug: str, name: str) -> str:
    unit = catalog.load(slug).Parameters.param[name].unit
    return f"{name} [{unit}]" if unit else name


def _rows(
    manifest: dict[str, Any], records: dict[str, dict[str, Any]], table: pd.DataFrame
) -> list[dict[str, Any]]:
    rows = []
    for name, row in table.iterrows():
        record = records.get(name)
        rows.append(
            {
                "swept": [row[key] for key in manifest["grid"]],
                "seed": row.seed,
                "status": f"{SIGNS[row.status]} {row.status}",
                "color": STATUS[row.status],
                "held": Claims(Claim(**c) for c in record["claims"]).held() if record else "",
                "seconds": f"{row.seconds:.1f}" if record else "",
                "report": row.report if record else "",
                "error": row.error if row.status == FAILED else "",
                "folder": f"points/{name}",
            }
        )
    return rows


class _Axis:
    """Where values lie on the x-axis: numbers as they are, anything else side by side."""

    def __init__(self, label: str, values: Sequence[Any]):
        self.label, self.values = label, list(values)
        self.numeric = all(type(v) in (int, float) for v in values)
        low, high = (min(values), max(values)) if self.numeric else (0, len(values) - 1)
        self.log = self.numeric and low > 0 and high / low >= WIDE
        if self.log:
            edge = (high / low) ** 0.08
            self.limits = (low / edge, high * edge)
        else:
            edge = 0.08 * (high - low) or 0.5
            self.limits = (low - edge, high + edge)
        places = [self.place(v) for v in self.values]
        self.ticks = [(x, str(v)) for x, v in zip(places, values, strict=True)]
        if len(self.ticks) > 8:  # too many to write out
            self.ticks = None if self.numeric else self.ticks[:: -(-len(self.ticks) // 8)]

    def place(self, value: Any, shift: float = 0.0) -> float:
        """Position of a value; `shift` in parts of the axis, so that groups do not hide another."""
        x = value if self.numeric else self.values.index(value)
        low, high = self.limits
        return x * (high / low) ** shift if self.log else x + shift * (high - low)


def _chart_frame(
    manifest: dict[str, Any],
    records: dict[str, dict[str, Any]],
    table: pd.DataFrame,
    claims: list[Claim],
) -> tuple[pd.DataFrame, _Axis]:
    """One row per finished report with all that its charts show, and the x-axis.

    Columns: x, group (the second parameter), section (all further ones), report, about, and for
    claim k: yk, lowk, highk, colork, markerk, textk.
    """
    import pandas as pd

    slug, grid = manifest["slug"], manifest["grid"]
    names = list(grid)
    if names:
        axis = _Axis(_labelled(slug, names[0]), grid[names[0]])
    else:
        axis = _Axis("seed", list(table.seed))
    groups = grid[names[1]] if len(names) > 1 else [None]
    rows = []
    for name, record in records.items():
        values = record["parameters"]
        group = values[names[1]] if len(names) > 1 else None
        shift = 0.012 * (groups.index(group) - (len(groups) - 1) / 2)
        row = {
            "x": axis.place(values[names[0] if names else "seed"], shift),
            "group": "" if group is None else f"{names[1]} = {group}",
            "section": ", ".join(f"{n} = {values[n]}" for n in names[2:]),
            "report": table.report[name],
            "about": ", ".join(f"{n} = {values[n]}" for n in [*names, "seed"]),
        }
        measured = {c["id"]: Claim(**c) for c in record["claims"]}
        for k, claim in enumerate(claims):
            found = measured[claim.id]
            color, sign = theme.VERDICTS[found.verdict]
            y = np.nan if found.measured is None else found.measured
            row |= {
                f"y{k}": y,
                f"low{k}": y if found.low is None else found.low,
                f"high{k}": y if found.high is None else found.high,
                f"color{k}": color,
                f"marker{k}": MARKERS[found.verdict],
                f"text{k}": f"{sign} {found.verdict}: {format_measured(found)}",
            }
        rows.append(row)
    return pd.DataFrame(rows), axis


def _sections(
    manifest: dict[str, Any], frame: pd.DataFrame, axis: _Axis, claims: list[Claim]
) -> tuple[str, list[dict[str, Any]], int]:
    """Bokeh's script, the sections with title and charts, and how many more were left out."""
    theme.set_defaults()  # first: it chooses the backend
    import holoviews as hv
    from bokeh.embed import components
    from holoviews.plotting.bokeh import OverlayPlot

    rest = list(manifest["grid"])[2:]
    titles = [
        ", ".join(f"{n} = {v}" for n, v in zip(rest, values, strict=True))
        for values in itertools.product(*(manifest["grid"][n] for n in rest))
    ]
    drawn = [title for title in titles if (frame.section == title).any()]
    sections, figures = [], {}
    for number, title in enumerate(drawn[:MOST_SECTIONS]):
        part = frame[frame.section == title].reset_index(drop=True)
        layout = hv.Layout(
            [claim_chart(part, axis, claim, k, manifest["seeds"]) for k, claim in enumerate(claims)]
        ).opts(shared_datasource=True, shared_axes=False)
        plot = hv.renderer("bokeh").get_plot(layout)
        found = plot.traverse(lambda p: p.state, [OverlayPlot])
        for k, figure in enumerate(found):
            figure.toolbar.logo = None
            figures[f"{number}-{k}"] = figure
        charts = [
            {
                "key": f"{number}-{k}",
                "claim": claim,
                "held": _held(part, claim, k, bool(manifest["grid"])),
            }
            for k, claim in enumerate(claims)
        ]
        groups = _groups(part)
        lines = [(group, *_line(n, len(groups))) for n, group in enumerate(groups) if group]
        sections.append({"title": title, "charts": charts, "lines": lines})
    script, divs = components(figures)
    for section in sections:
        for chart in section["charts"]:
            chart["div"] = divs[chart.pop("key")]
    return script, sections, len(drawn) - len(sections)


def _held(frame: pd.DataFrame, claim: Claim, k: int, swept: bool) -> str:
    tested = [marker for marker in frame[f"marker{k}"] if marker != MARKERS[NOT_TESTED]]
    text = f"holds in {tested.count(MARKERS['holds'])} of {len(tested)} reports"
    values = frame[f"y{k}"].dropna()
    if swept or len(values) < 2:
        return text
    mean, low, high = _mean(values)
    return f"{text}; mean over seeds {mean:.4g} [{low:.3g}, {high:.3g}] {claim.unit}".rstrip()


def claim_chart(frame: pd.DataFrame, axis: _Axis, claim: Claim, k: int, seeds: int) -> hv.Overlay:
    """Claim k against what was swept: reports as marks, mean and interval over seeds as lines.

    With one seed the interval is each report's own. frame: rows of one section.
    """
    import holoviews as hv
    from bokeh.models import HoverTool, OpenURL, TapTool

    label = f"measured [{claim.unit}]" if claim.unit else "measured"
    layers: list[Any] = []
    if claim.limits:
        layers.append(
            hv.HLines(claim.limits).opts(color=theme.INK, line_dash="dashed", line_width=1.2)
        )
        side, align = _free_side(frame, claim.limits[0], k)
        words = [(axis.limits[side], claim.limits[0], f" threshold: {claim.threshold} ")]
        layers.append(
            hv.Labels(words, ["x", f"y{k}"], "text").opts(
                text_align=align,
                text_baseline="bottom",
                text_font_size="8pt",
                text_color=theme.INK,
            )
        )
    extent = [*claim.limits, *frame[f"low{k}"], *frame[f"high{k}"]]
    groups = _groups(frame)
    over_seeds = seeds > 1 and axis.label != "seed"
    for number, group in enumerate(groups):
        part = frame[(frame.group == group) & frame[f"y{k}"].notna()]
        if part.empty:
            continue
        if over_seeds:
            stats = [(x, *_mean(rows[f"y{k}"])) for x, rows in part.groupby("x")]
        else:
            stats = [(r.x, r[f"y{k}"], r[f"low{k}"], r[f"high{k}"]) for _, r in part.iterrows()]
        stats.sort()
        extent += [v for row in stats for v in row[2:]]
        color, dash = _line(number, len(groups))
        if axis.label != "seed":
            layers.append(
                hv.Curve([row[:2] for row in stats], "x", f"y{k}", label=group).opts(
                    color=color, line_width=1.5, line_dash=dash, tools=[]
                )
            )
        bars = [(x, y, y - low, high - y) for x, y, low, high in stats]
        layers.append(
            hv.ErrorBars(bars, "x", [f"y{k}", "below", "above"]).opts(color=color, line_width=1.5)
        )
    hover = HoverTool(tooltips=[("", "@about"), ("", f"@text{k}"), ("", "click opens the report")])
    columns = [f"y{k}", f"color{k}", f"marker{k}", f"text{k}", "about", "report"]
    layers.append(
        hv.Scatter(frame, "x", columns).opts(
            tools=[hover, TapTool(callback=OpenURL(url="@report"))], hooks=[_marks(k)], size=9
        )
    )
    finite = np.array([v for v in extent if np.isfinite(v)])
    pad = 0.12 * np.ptp(finite) or 0.1 * abs(finite[0]) or 0.5
    return hv.Overlay(layers).opts(
        width=460, height=300, xlabel=axis.label, ylabel=label, logx=axis.log,
        xlim=axis.limits, ylim=(finite.min() - pad, finite.max() + pad),
        show_legend=False, toolbar=None, default_tools=[],
        **({"xticks": axis.ticks} if axis.ticks else {}),
    )  # fmt: skip


def _mean(values: pd.Series) -> tuple[float, float, float]:
    mean = float(values.mean())
    low, high = interval(list(values))
    return mean, mean if low is None else low, mean if high is None else high


def _groups(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(frame.group))


def _line(number: int, count: int) -> tuple[str, str]:
    """Color and dashes of one of `count` lines."""
    if count == 1:
        return theme.INK, DASHES[0]
    if count <= len(LINES):
        return theme.OKABE_ITO[LINES[number]], DASHES[number % len(DASHES)]
    from holoviews.plotting.util import process_cmap

    return process_cmap(theme.FIELD_MAP, count)[number], DASHES[number % len(DASHES)]


def _free_side(frame: pd.DataFrame, limit: float, k: int) -> tuple[int, str]:
    """The end of the axis where the marks are farther from the threshold: there go its words."""
    ends = [frame[frame.x == x][f"y{k}"] for x in (frame.x.min(), frame.x.max())]
    left, right = ((values - limit).abs().min() for values in ends)
    return (1, "right") if right > left else (0, "left")


def _marks(k: int) -> Callable[[Any, Any], None]:
    """A hook that draws each report by its verdict, and large where it is pointed at."""

    def hook(plot: Any, element: Any) -> None:
        renderer, glyph = plot.handles["glyph_renderer"], plot.handles["glyph"]
        glyph.update(
            marker={"field": f"marker{k}"}, fill_color={"field": f"color{k}"}, fill_alpha=0.75,
            line_color={"field": f"color{k}"}, line_width=2,
        )  # fmt: skip
        renderer.update(
            hover_glyph=glyph.clone(size=17, line_color=theme.INK, fill_alpha=1.0),
            selection_glyph=glyph, nonselection_glyph=glyph, muted_glyph=glyph,
        )  # fmt: skip

    return hook
