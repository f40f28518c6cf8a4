"""The page of a sweep: the grid as a table, claims against what was swept, nothing fetched."""

import base64
import gzip
import json
import re

import numpy as np
import pytest
from helpers import write_sweep

from workbench import grids, sweep_page, sweep_store, sweeps
from workbench.claims import Claims, interval, judge

REQUEST = re.compile(r"""(?:src|href)\s*=\s*["'](?:https?:)?//[^"']+["']""")


def measured(parameters):
    """Three claims: one fails in the heat, one has a rule in words, one is not tested."""
    heat = parameters.temperature + 0.1 * parameters.seed
    return Claims(
        [
            judge("error", "The error is x < y", [heat, heat + 0.2], at_most=1.5, unit="sites"),
            judge("order", "The order is right", [1.0], each_at_least=1, threshold="every seed"),
            judge("digits", "It writes digits", None, at_most=0.6),
        ]
    )


def page_of(tmp_path, grid, claims_at=measured, failed=(), **options):
    points = grids.points("neural_cpm", grid, preset="quick", **options)
    store = write_sweep(tmp_path, points, claims_at, failed)
    made = sweeps._conclude(store)
    return open(made.index, encoding="utf-8").read()


def models(page: str) -> list[dict]:
    """All Bokeh models of the page as they are stored in it."""
    found = re.search(r"const docs_json = '(.*?)';\n", page, re.S)
    text = found[1].encode().decode("unicode_escape").encode("latin-1").decode("utf-8")
    document = next(iter(json.loads(text).values()))
    seen = []

    def walk(value):
        if isinstance(value, dict):
            if value.get("type") == "object" and "attributes" in value:
                seen.append(value)
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(document)
    return seen


def named(page, name):
    return [model["attributes"] for model in models(page) if model["name"] == name]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return page_of(folder, {"temperature": [0.5, 1, 2]}, failed={4}, seeds=3)


def test_the_headline_says_method_grid_preset_points_and_time(page):
    head = page.split("</header>")[0].split("<header>")[1]
    assert "NeuralCPM: learning how cells move" in head
    assert "temperature = 0.5, 1.0, 2.0; 3 seeds each" in head
    assert "quick" in head and "8 of 9 done, 1 failed" in head and "3.2 min" in head


def test_the_grid_is_a_table_with_status_claims_seconds_and_a_link_to_each_report(page):
    rows = re.findall(r"<tr>(.*?)</tr>", page.split("<tbody>")[1].split("</tbody>")[0])
    assert len(rows) == 9
    assert '<a href="points/0_temperature=0.5,seed=0/neural_cpm.html">report</a>' in rows[0]
    assert "✓ done" in rows[0] and "2 of 2 hold (1 not tested)" in rows[0] and "20.0" in rows[0]
    assert "1 of 2 hold" in rows[6]
    assert "✗ failed" in rows[4] and "ValueError: a &lt; b" in rows[4]
    assert '<a href="points/4_temperature=1.0,seed=1/error.txt">error</a>' in rows[4]
    assert "temperature [energy]" in page, "units are in the header"
    assert 'href="results.csv"' in page and 'href="results.parquet"' in page


def test_the_page_needs_no_network_and_no_file_but_its_reports(page):
    plain = re.sub(r"<script.*?</script>", "<script>", page, flags=re.S)
    assert not [found for found in REQUEST.findall(plain) if "arxiv.org" not in found]
    fetched = re.findall(r"""<(?:script|img|link)[^>]*(?:src|href)\s*=\s*["']([^"']+)""", page)
    assert set(fetched) <= {"data:,"}


def test_each_tested_claim_has_a_chart_with_threshold_units_and_verdicts(page):
    assert page.count("<figure>") == 2
    assert "The error is x &lt; y" in page and "holds in 5 of 8 reports" in page
    labels = [axis["axis_label"] for axis in named(page, "LinearAxis")]
    assert labels.count("temperature [energy]") == 2
    assert "measured [sites]" in labels and "measured" in labels
    assert "threshold: mean ≤ 1.5" in json.dumps(models(page), ensure_ascii=False)
    assert "✓ holds" in page and "✗ fails" in page, "the signs are explained"
    source = reports_source(page)
    assert list(source["marker0"]) == ["circle"] * 5 + ["x"] * 3
    assert set(source["color0"]) == {"#009E73", "#D55E00"}
    assert source["text0"][0].startswith("✓ holds: 0.6 [0.5, 0.7] sites")


def reports_source(page):
    found = [dict(s["data"]["entries"]) for s in named(page, "ColumnDataSource")]
    (only,) = [data for data in found if "about" in data]
    return only


def test_charts_share_one_source_so_that_hover_is_linked_and_a_click_opens_the_report(page):
    source = reports_source(page)  # one source holds both claims
    assert {"y0", "y1", "report", "about"} <= set(source)
    assert source["report"][3] == "points/3_temperature=1.0,seed=0/neural_cpm.html"
    assert [tap["url"] for tap in named(page, "OpenURL")] == ["@report"] * 2
    tips = [json.dumps(tool["tooltips"]) for tool in named(page, "HoverTool")]
    assert any("@text0" in tip and "@about" in tip for tip in tips)


def test_lines_are_means_over_seeds_with_their_bootstrap_interval(tmp_path):
    points = grids.points("neural_cpm", {"temperature": [0.5, 2]}, 3, "quick")
    store = write_sweep(tmp_path, points, measured)
    manifest, records, table = sweep_store.load_all(store)
    tested, untested = sweep_page._claims(records)
    assert ([c.id for c in tested], [c.id for c in untested]) == (["error", "order"], ["digits"])
    sweep_page.theme.set_defaults()
    frame, axis = sweep_page._chart_frame(manifest, records, table, tested)
    chart = sweep_page.claim_chart(frame, axis, tested[0], 0, seeds=3)
    bars = chart.ErrorBars.I.dframe().to_numpy()
    for row, temperature in zip(bars, [0.5, 2], strict=True):
        values = [temperature + 0.1 + 0.1 * seed for seed in range(3)]
        low, high = interval(values)
        np.testing.assert_allclose(
            row, [temperature, np.mean(values), np.mean(values) - low, high - np.mean(values)]
        )
    assert float(chart.HLines.I.dframe().iloc[0, 0]) == 1.5
    single = sweep_page.claim_chart(frame[frame.index % 3 == 0], axis, tested[0], 0, seeds=1)
    np.testing.assert_allclose(single.ErrorBars.I.dframe().to_numpy()[0][1:], [0.6, 0.1, 0.1])


def test_claims_that_the_preset_does_not_test_are_said_in_words(page, tmp_path):
    assert "Not tested at the preset quick" in page and "It writes digits" in page
    none = page_of(
        tmp_path, {"temperature": [1, 2]}, lambda p: Claims([judge("d", "s", None, at_most=1)])
    )
    assert "None of the 1 claims is tested at the preset quick" in none
    assert "<figure>" not in none and "<script" not in none


def test_a_claim_tested_at_some_points_only_is_drawn_there(tmp_path):
    def some(parameters):
        value = None if parameters.temperature < 1 else [parameters.temperature]
        return Claims([judge("late", "Late", value, at_most=5)])

    page = page_of(tmp_path, {"temperature": [0.5, 1, 2]}, some)
    assert "holds in 2 of 2 reports" in page
    assert reports_source(page)["marker0"][0] == "dash"


def test_with_no_finished_point_the_page_says_so(tmp_path):
    page = page_of(tmp_path, {"temperature": [1, 2]}, failed={0, 1})
    assert "No point has finished" in page and "<figure>" not in page


def test_two_parameters_share_a_chart_by_color_and_dashes_with_a_legend(tmp_path):
    page = page_of(tmp_path, {"temperature": [0.5, 50], "lam": [0.3, 0.7]}, seeds=2)
    legend = re.search(r'<ul class="legend">(.*?)</ul>', page, re.S)[1]
    assert re.findall(r"</svg> (.*?)</li>", legend) == ["lam = 0.3", "lam = 0.7"]
    assert "#0072B2" in legend and "#E69F00" in legend and "7 4" in legend
    assert named(page, "LogAxis"), "values a hundredfold apart are on a logarithmic axis"
    stored = reports_source(page)["x"]["array"]["data"]
    places = np.frombuffer(gzip.decompress(base64.b64decode(stored)))
    assert len(set(places.round(6))) == 4, "groups are set apart"


def test_further_parameters_have_a_section_each_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep_page, "MOST_SECTIONS", 2)
    grid = {"proposal": ["uniform", "edges"], "lam": [0.3, 0.7], "J12": [1, 2, 3]}
    page = page_of(tmp_path, grid)
    assert re.findall(r"<h3>(J12.*?)</h3>", page) == ["J12 = 1.0", "J12 = 2.0"]
    assert "1 more combinations of the further parameters are not drawn" in page
    assert "uniform" in json.dumps(models(page)), "words are the ticks of the axis"


def test_a_sweep_over_seeds_alone_is_drawn_against_the_seed(tmp_path):
    page = page_of(tmp_path, None, seeds=3)
    assert "Claims against the seed" in page and "Sweep over 3 seeds" in page
    assert "mean over seeds 1.2 [1.1, 1.3] sites" in page
    assert {axis["axis_label"] for axis in named(page, "LinearAxis")} >= {"seed"}


def test_the_command_on_the_page_makes_the_same_sweep(page):
    words = re.search(r"<pre>workbench sweep (.*?)</pre>", page)[1].split()
    assert words == [
        "neural_cpm", "-g", "temperature=0.5,1.0,2.0", "--seeds", "3", "--preset", "quick",
    ]  # fmt: skip
