"""Pictures of the study: with results, half of them, and none; drawings behind sliders."""

from dataclasses import replace
from xml.etree import ElementTree

import holoviews as hv
import numpy as np
import pytest

from workbench import theme
from workbench.methods.ucbvi_constants import drawings, experiments, live, study, views
from workbench.methods.ucbvi_constants.bonuses import ALGORITHMS, Sizes
from workbench.methods.ucbvi_constants.learning import learn
from workbench.numerics.mdp import river_swim, uniform_random

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
    assert "RiverSwim 5, H = 10, ties to a random action" in views.long_river_table(
        finished.long_river
    )
    assert "BF-I, episode 200" in views.microscope(finished.main)
    assert "has not run" in views.microscope(finished.baselines, "BF-I")


def test_bounds_without_measurements_draw_too():
    theme.set_defaults()
    chart = views.bounds_chart(SIZES, [None])
    hv.render(chart)
    assert [type(part).__name__ for part in chart].count("Curve") >= 3  # two bounds and HK


def test_bounds_stand_beside_measurements_of_their_own_sizes_only(finished):
    at = Sizes(3, 3, 5, 200)
    chart = views.bounds_chart(at, [finished.main, finished.taller, finished.long], "realised")
    measured = [part for part in chart if "measured" in part.label]
    assert len(measured) == 10 and "H = 5" in hv.render(chart).title.text
    assert not [p for p in views.bounds_chart(SIZES, [finished.taller]) if "measured" in p.label]
    ch = next(part for part in measured if part.label.startswith("CH, "))
    assert ch.data.iloc[-1, 1] == pytest.approx(finished.main.mean("CH", "realised"))


def test_policies_without_a_table_are_not_called_optimistic(finished):
    rows = {
        row[0].text: [cell.text for cell in row]
        for row in wellformed(views.regret_table(finished.baselines)).iter("tr")
    }
    assert rows["random policy"][5] == rows["first action"][5] == "–"
    assert rows["greedy"][5].endswith(" %")


def test_the_table_has_the_share_of_the_most_frequent_action(finished):
    run = finished.main.runs["CH"][0]
    assert run.most_taken == max(run.N[:, a].sum() for a in range(3)) / run.N.sum()
    constant = wellformed(views.regret_table(finished.baselines)).iter("tr")
    rows = {row[0].text: [cell.text for cell in row] for row in constant}
    assert rows["algorithm"][6] == "same action"
    assert rows["first action"][6] == "100 %" and rows["random policy"][6].startswith("3")


def test_what_random_play_and_practitioners_lose_is_said_in_words(finished):
    main, ours = finished.main, finished.baselines
    said = views.against_baselines(finished)
    for a in ("CH", "MVP"):
        share = main.mean(a) / ours.mean("random policy")
        assert f"{a} has {share:.2f} times the regret of the random policy." in said
    times = main.mean("BF-I") / ours.mean("practitioner")
    assert f"BF-I has {times:.0f} times the regret of the practitioner's bonus." in said
    few = replace(finished, main=replace(main, runs={"CH-I": main.runs["CH-I"]}))
    for unknown in (few, replace(finished, main=None), replace(finished, baselines=None)):
        assert "has not run" in views.against_baselines(unknown)
    begun = replace(ours, runs={a: [None] * 2 for a in ours.runs})
    assert "has not run" in views.against_baselines(replace(finished, baselines=begun))


def test_a_rare_violation_never_looks_like_none(finished):
    shares = (0.0, 0.001, 0.07)
    assert [drawings.share_text(v) for v in shares] == ["0 %", "under 1 %", "7 %"]
    rare = replace(finished.main.runs["BF"][0], violated=np.array([0.0, 0.001]))
    table = views.regret_table(replace(finished.main, runs={"BF": [rare]}))
    assert "under 1 %" in table and "BF ✗ V < V* in under 1 %" in live.optimism_text(
        replace(finished.main, runs={"BF": [rare]})
    )


def test_bands_of_bandits_are_standard_errors_and_one_set_has_none(finished):
    bandits = finished.bandits
    found = bandits.curves[10, "published"]
    band = next(
        part
        for part in views.bandit_chart(bandits)
        if isinstance(part, hv.Area) and part.data.iloc[-1, 2] > found[:, -1].mean() > 200
    )
    half = 1.96 * np.abs(np.diff(found[:, -1]))[0] / 2  # of two: deviation / sqrt(2)
    assert band.data.iloc[-1, 2] == pytest.approx(found[:, -1].mean() + half)
    one = replace(bandits, curves={key: c[:1] for key, c in bandits.curves.items()})
    assert not [part for part in views.bandit_chart(one) if isinstance(part, hv.Area)]
    assert "<polygon" not in drawings.bandit_drawing(one)
    assert drawings.bandit_drawing(bandits).count("<polygon") == 4


def test_every_experiment_of_a_study_is_in_a_view(finished):
    shown = " ".join(
        str(part.object)
        for view in ("Regret", "Q-tables", "Bounds and rivers")
        for part in views.VIEWS[view](finished).objects
    )
    assert "random 3 x 3, H = 5, K = 10,000" in shown
    for a in ("BF-I", "MVP"):
        assert f"{a}, episode 200, stage 1" in shown
    few = replace(finished, main=replace(finished.main, runs={"CH": finished.main.runs["CH"]}))
    assert "CH, episode 200" in views.VIEWS["Q-tables"](few).objects[0].object
    empty = study.UCBVIStudy(finished.parameters)
    assert "has not run" in views.VIEWS["Q-tables"](empty).objects[0].object


def test_an_interrupted_study_shows_what_has_ended(finished):
    run = finished.main.runs["CH"][0]
    early = replace(run, episodes=run.episodes[:3], pseudo=run.pseudo[:3])
    partial = replace(finished.main, runs={"CH": [run, early], "BF": [early, None]})
    table = views.regret_table(partial)
    assert f"{run.pseudo[-1]:,.0f}" in table and "BF" not in table
    shown = views.VIEWS["Bounds and rivers"](study.UCBVIStudy(finished.parameters))
    assert all("has not run" in part.object for part in shown)


def test_the_monitor_draws_whatever_is_there(finished):
    seen = []
    for name in ("main", "short", "scan", "river"):
        partial = study.UCBVIStudy(finished.parameters)
        setattr(partial, name, getattr(finished, name))
        seen.append(views.monitor(partial).object)
    assert all("<svg" in text for text in seen) and "Optimism" in seen[2]
    growing = study.UCBVIStudy(finished.parameters)
    assert {name for name in vars(growing) if getattr(growing, name) is None} >= set(views.ORDER)
    words = {
        "main": "H = 5, K = 200", "short": "K = 10,000", "bandits": "Bandits",
        "taller": "H = 3, K = 200", "baselines": "practitioner", "river": "RiverSwim 5",
        "switches": "official variance", "scan": "Optimism", "long": "H = 5, K = 300",
        "long_taller": "H = 10, K = 300", "long_river": "RiverSwim 5, H = 10, ties to a random",
        "grid": "RiverSwim 5, H = 10, ties to the first",
    }  # fmt: skip
    assert tuple(words) == views.ORDER
    for name, text in words.items():
        result = [finished.river] if name == "grid" else getattr(finished, name)
        setattr(growing, name, result)
        assert text in views.monitor(growing).object
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


def rectangles(picture):
    return [r for svg in wellformed(picture).iter("svg") if svg.get("role")
            for r in svg.iter("rect")]  # fmt: skip


def test_bars_are_what_the_backup_promises_and_the_bonus_on_top():
    run = learn(uniform_random(3, 3, 0), "BF-I", H=5, K=3000, snapshots=50)
    shots, unit = run.snapshots, 290 / 5
    bars = rectangles(drawings.microscope(run, -1, 1, 0))
    blue, orange = (np.array([float(r.get("width")) / unit for r in bars[i::2]]) for i in (0, 1))
    np.testing.assert_allclose(blue, np.minimum(shots.Q, shots.backup)[-1, 0, 0], atol=1e-3)
    np.testing.assert_allclose(blue + orange, shots.Q[-1, 0, 0], atol=2e-3)
    assert "reward plus promised future (bonuses of later stages included)" in (
        drawings.microscope(run, -1, 1, 0)
    )
    first = drawings.microscope(run, 0, 1, 0)  # nothing is known yet
    assert first.count("never tried, Q = 5") >= 3
    assert all(r.get("fill") == "none" for r in rectangles(first)) and "0 visits" not in first


def test_ties_are_told_as_they_were_broken():
    mdp = uniform_random(3, 3, 0)
    tied = learn(mdp, "MVP", H=5, K=100, snapshots=5, ties="random")
    picture = drawings.microscope(tied, 0, 1, 0)
    assert picture.count("◀ drawn, one of 3") == 3 and "one is drawn at random" in picture
    first = drawings.microscope(learn(mdp, "MVP", H=5, K=100, snapshots=5), 0, 1, 0)
    assert first.count("◀ taken") == 1 and "the first one is taken" in first
    random = drawings.microscope(learn(mdp, "random policy", H=5, K=100, snapshots=5), -1, 1, 0)
    assert random.count("◀ drawn, one of 3") == 3 and "keeps no table" in random
    constant = drawings.microscope(learn(mdp, "first action", H=5, K=100, snapshots=5), -1, 1, 0)
    assert constant.count("◀ taken") == 1 and not rectangles(constant)


def test_heat_maps_name_each_algorithm_and_mark_what_was_never_tried():
    runs = [learn(river_swim(5), a, H=10, K=100) for a in ("BF", "first action")]
    picture = drawings.visits_drawing(runs)
    wellformed(picture)
    assert "<b>BF</b>" in picture and "<b>first action</b>" in picture
    assert picture.count(">–<") >= 9  # the first action only ever goes left
    assert drawings.visits_drawing([]).count("<figure") == 0
    wide = drawings.visits_drawing([learn(uniform_random(100, 2, 0), "BF", H=2, K=10)])
    assert 'width="2622"' in wide and "max-width:100%;overflow-x:auto" in wide


def test_scans_and_bandits_draw_half_done(finished):
    table = {a: v.copy() for a, v in finished.scan.regret.items()}
    for a in table:
        table[a][3:] = np.nan
    half = replace(finished.scan, regret=table, violated=table)
    for picture in (drawings.scan_drawing(half), drawings.bandit_drawing(finished.bandits)):
        wellformed(picture)
        assert "nan" not in picture
    assert "10 arms, refined" in drawings.bandit_drawing(finished.bandits)


def test_the_thumbnail_is_a_picture():
    from io import BytesIO

    from PIL import Image

    assert Image.open(BytesIO(views.thumbnail())).size == (800, 400)
