"""Pictures of the study: with results, half of them, and none; drawings behind sliders."""

import time
from dataclasses import replace
from xml.etree import ElementTree

import holoviews as hv
import numpy as np
import pytest

from workbench import theme
from workbench.methods.ucbvi_constants import drawings, experiments, study, views
from workbench.methods.ucbvi_constants.bonuses import ALGORITHMS, Sizes
from workbench.methods.ucbvi_constants.learning import learn
from workbench.numerics.mdp import river_swim, uniform_random
from workbench.theme import Html

SMALL = {
    "K": 200, "runs": 2, "second_H": 3, "river_runs": 1, "scan_runs": 1, "bandit_runs": 2,
    "long_runs": 1, "long_K": 300, "long_river_runs": 1,
}  # fmt: skip
SIZES = Sizes(3, 3, 5, 100_000)


@pytest.fixture(scope="module")
def finished():
    theme.set_defaults()
    return study.run(study.Parameters(**SMALL), progress=False)


def wellformed(picture):
    return ElementTree.fromstring(f"<div>{picture}</div>")


def test_every_view_of_the_explorer_draws(finished):
    for title, view in views.VIEWS.items():
        shown = view(finished)
        parts = [getattr(part, "object", part) for part in getattr(shown, "objects", [shown])]
        drawn = [hv.render(part) for part in parts if isinstance(part, hv.core.Dimensioned)]
        texts = [part for part in parts if isinstance(part, str) and "has not run" not in part]
        assert drawn or texts, title


@pytest.mark.parametrize(
    "view",
    [
        views.regret_pair, views.regret_table, views.ratio_chart, views.scan_pair,
        views.microscope, views.visits, views.bandit_chart, views.switches_table,
        views.long_river_table, views.grid_table,
    ],
)  # fmt: skip
def test_views_of_what_did_not_run_say_so(view):
    assert "has not run" in view(None)


def test_views_of_a_finished_study_show_its_numbers(finished):
    table = views.regret_table(finished.main)
    assert all(a in table for a in finished.main.algorithms)
    assert f"{finished.main.mean('BF-I'):,.0f}" in table
    names = [e.label for e in views.regret_chart(finished.main) if e.label]
    assert names == [*finished.main.algorithms, "H K", "√(HSAT)"]
    ratios = views.ratio_chart(finished.main)
    hv.render(ratios)
    grid = [finished.river]
    assert "MVP" in views.grid_table(grid) and "BF / MVP" in views.grid_table(grid)
    assert "no bonus at the last step" in views.switches_table(finished.switches)
    assert "random" in views.long_river_table(finished.long_river)
    assert "BF-I, episode 200" in views.microscope(finished.main)
    assert "has not run" in views.microscope(finished.baselines, "BF-I")


def test_bounds_without_measurements_draw_too():
    theme.set_defaults()
    chart = views.bounds_chart(SIZES, [None])
    hv.render(chart)
    assert [type(part).__name__ for part in chart].count("Curve") >= 3  # two bounds and HK


def test_the_monitor_draws_whatever_is_there(finished):
    seen = []
    for name in ("main", "short", "scan", "river"):
        partial = study.UCBVIStudy(finished.parameters)
        setattr(partial, name, getattr(finished, name))
        seen.append(views.monitor(partial).object)
    assert all("<svg" in text for text in seen) and "Optimism" in seen[2]
    views.monitor(study.UCBVIStudy(finished.parameters))
    empty = experiments.Comparison("none", SIZES, {"BF": [None, None]})
    views.monitor(study.UCBVIStudy(finished.parameters, main=empty))


@pytest.mark.parametrize("x_log", [False, True])
@pytest.mark.parametrize("y_log", [False, True])
def test_the_regret_drawing_has_all_lines_and_bands(finished, x_log, y_log):
    chart = drawings.regret_drawing(finished.main, "realised", x_log, y_log)
    wellformed(chart)
    for name in (*finished.main.algorithms, "H K, trivial", "√(HSAT)"):
        assert name in chart
    assert chart.count("<polygon") == 5 and "nan" not in chart
    partial = replace(finished.main, runs={"BF": [finished.main.runs["BF"][0], None]})
    assert "<polygon" not in drawings.regret_drawing(partial)


def test_styles_are_told_apart_without_color():
    assert set(drawings.STYLES) == set(ALGORITHMS)
    assert len(set(drawings.STYLES.values())) == len(ALGORITHMS)
    assert drawings.STYLES["BF"][1] != drawings.STYLES["BF-I"][1]


def test_the_anatomy_reads_off_terms_and_visits():
    picture = drawings.anatomy(SIZES, "BF-I", 1.0, 1.0, 1000)
    wellformed(picture)
    assert "14,044" in picture and "1,147" in picture
    assert "0.316" in picture and "(largest)" in picture
    assert "at its cap H² = 25" in picture and "84² H³ S² A L² = 6.8e+09" in picture
    assert "below its cap" in drawings.anatomy(SIZES, "BF", 1.0, 1e10, 1000)
    for N in (1.0, 1e7):
        wellformed(drawings.anatomy(Sizes(20, 10, 50, 100), "BF", 0.0, 1e12, N, scale=0.0))


def test_the_microscope_shows_values_bonus_and_visits():
    run = learn(uniform_random(3, 3, 0), "BF-I", H=5, K=3000, snapshots=50)
    first, last = (drawings.microscope(run, look, 1, 0) for look in (0, -1))
    assert "3 of 3 actions are at the cap H = 5. Among equals the first one" in first
    assert "episode 3,000, stage 1, state 0" in last
    visits = run.snapshots.N[-1, 0]
    assert all(f"{n:,} visits" in last for n in visits) and last.count("taken") >= 1
    wellformed(first)
    wellformed(last)


def test_heat_maps_name_each_algorithm_and_mark_what_was_never_tried():
    runs = [learn(river_swim(5), a, H=10, K=100) for a in ("BF", "first action")]
    picture = drawings.visits_drawing(runs)
    wellformed(picture)
    assert "<b>BF</b>" in picture and "<b>first action</b>" in picture
    assert picture.count(">–<") >= 9  # the first action only ever goes left
    assert drawings.visits_drawing([]).count("<figure") == 0


def test_scans_and_bandits_draw_half_done(finished):
    table = {a: v.copy() for a, v in finished.scan.regret.items()}
    for a in table:
        table[a][3:] = np.nan
    half = replace(finished.scan, regret=table, violated=table)
    for picture in (drawings.scan_drawing(half), drawings.bandit_drawing(finished.bandits)):
        wellformed(picture)
        assert "nan" not in picture
    assert "10 arms, refined" in drawings.bandit_drawing(finished.bandits)


def test_closed_forms_are_quick_enough_for_a_slider():
    def processor_ms(draw):
        best = []
        for _ in range(3):
            before = time.process_time()
            draw()
            best.append(1e3 * (time.process_time() - before))
        return min(best)

    assert isinstance(drawings.anatomy(SIZES), Html)
    print("anatomy", processor_ms(lambda: drawings.anatomy(SIZES)), "ms")


def test_the_thumbnail_is_a_picture():
    from io import BytesIO

    from PIL import Image

    assert Image.open(BytesIO(views.thumbnail())).size == (800, 400)
