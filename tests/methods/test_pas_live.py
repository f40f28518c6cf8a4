"""The live bench: one split answers at once, shrinkage is dragged, boxes choose, trials grow."""

import asyncio

import numpy as np
import pytest

from workbench.methods.pas import live, study, views
from workbench.methods.pas.trials import Setting


@pytest.fixture
def bench():
    return live.Bench(study.Parameters(trials=4, regret_m=20))


def html(bench):
    pages = {name: made.html for name, made in bench.pictures.items()}
    return pages | {"cloud": bench.cloud.html, "cure": bench.cure.html}


def test_a_split_is_there_with_all_its_pictures(bench):
    pages = html(bench)
    for name in ("One problem", "Segments", "Errors", "cloud", "cure"):
        assert "<svg" in pages[name], name
    assert "451 problems" in pages["cloud"] and bench.sliders.highs[1] == 451
    assert bench.omega == bench._found["pas"].omega
    assert "Press Measure" in pages["Quality"] and "Moments: pooled_within" in pages["Errors"]


def test_dragging_the_line_changes_weights_in_every_picture(bench):
    before = html(bench)
    bench.cure.at = 0.0
    assert bench.omega == 0.0
    np.testing.assert_array_equal(bench.pas.theta, bench.split.problems.z_tilde)
    after = html(bench)
    for name in ("One problem", "Segments", "Errors", "cloud", "cure"):
        assert before[name] != after[name], name
    assert "weight on PT = 0.000" in after["One problem"]
    assert bench.sliders.values[0] == 0.0 and "omega 0" in bench.cure.words
    bench.sliders.move([100.0, bench.sliders.values[1]])
    assert bench.omega == np.inf and bench.cure.at == 1.0
    bench.let_cure_choose()
    assert html(bench) == before


def test_on_a_page_tabs_are_drawn_when_they_are_seen(bench):
    bench.panel()
    before = html(bench)
    bench.cure.at = 0.0
    bench.sliders.move([bench.sliders.values[0], 3.0])
    first = html(bench)
    assert first["One problem"] != before["One problem"] and first["cure"] == before["cure"]
    for number, names in ((1, ("cloud", "Segments")), (2, ("cure",)), (3, ("Errors",))):
        bench.tabs.active = number
        assert all(html(bench)[name] != before[name] for name in names)
    bench.cure.at = 1.0
    assert html(bench)["One problem"] == first["One problem"]
    bench.tabs.active = 0
    assert html(bench)["One problem"] != first["One problem"]


def test_the_slider_picks_the_problem(bench):
    bench.sliders.move([bench.sliders.values[0], 7.0])
    assert f"Problem {bench.split.problems.names[6]}" in bench.pictures["One problem"].html


def test_a_box_chooses_problems_in_all_pictures(bench):
    everything = bench.pictures["Errors"].html
    bench.cloud.box = [0.5, 0.0, 1.0, 1.0]
    chosen = bench._chosen
    assert 0 < chosen.sum() < 451
    low, high = live.drawings.truth_range(bench.split)
    assert bench.split.truth[chosen].min() >= (low + high) / 2
    assert bench.sliders.highs[1] == chosen.sum()
    assert f"{chosen.sum()} chosen problems" in bench.pictures["Errors"].html
    assert f"{chosen.sum()} of 451 problems" in bench.cloud.html
    assert "CURE of the chosen problems" in bench.cure.html
    looked = bench._looked
    assert chosen[looked]
    bench.clear()
    assert bench.pictures["Errors"].html == everything
    bench.cloud.box = [0.0, 0.99, 0.001, 1.0]  # nobody is there
    assert bench._chosen.all()


def test_estimators_of_the_scatter_are_chosen(bench):
    bench.shown.value = ["ppi"]
    assert "PPI" in bench.cloud.html and "classical" not in bench.cloud.html


def test_parameters_act_at_once_and_another_split_is_another(bench):
    first = bench.split.truth
    bench.another()
    assert (bench.split.truth != first).any()
    bench.parameters.frac = 0.8
    assert bench.split.problems.n.mean() > bench.split.problems.N.mean()
    bench.parameters.param.update(data="amazon", predictor="base")
    assert len(bench.split.problems) == 147 and "147 problems" in bench.cloud.html
    assert bench.sliders.highs[1] == 147
    bench.parameters.shift = 2.0
    assert bench._found["pas"].weight.mean() > 0.8


def test_moments_that_are_noisy_are_told(bench):
    bench.parameters.param.update(moments="per_problem", frac=0.2)
    assert "too noisy to plug in" in bench.pictures["Errors"].html
    assert "variances were not positive" in bench.pictures["Errors"].html


def test_a_file_that_is_not_there_is_one_line(bench):
    bench.parameters.param.update(data="frame", file="nowhere.csv")
    assert "file = 'nowhere.csv' is not there" in bench.status.object.replace("&#x27;", "'")
    bench.measure_regret()  # synthetic problems need no file
    assert "slope −1" in bench.pictures["Regret"].html


def test_a_single_problem_of_the_user_may_be_boxed(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("group,y,pred\n" + "\n".join(f"a,{k % 5},{k % 3}" for k in range(20)))
    bench = live.Bench(study.Parameters(data="frame", file=str(path), trials=2))
    bench.shown.value = ["pas", "shrink_average", "eb_ppi"]  # two of them need other problems
    bench.cloud.box = [0.0, 0.0, 1.0, 1.0]
    assert bench._chosen.tolist() == [True] and "1 problems" in bench.cloud.html
    bench.shown.value = ["eb_ppi"]
    bench.cloud.box = [0.0, 0.0, 0.9, 1.0]
    assert bench._chosen.tolist() == [True]


def test_what_does_not_fit_is_told_and_not_drawn(bench):
    before = bench.split
    bench.parameters.param.update(data="synthetic", m=20_000, n=10_000, N=10_000)
    for act in (bench.another, bench.run_trials, bench.measure_quality):
        bench.status.object = ""
        act()
        assert "do not fit: allowed are 2e7" in bench.status.object
    assert bench.split is before
    bench.parameters.regret_m = 2000
    bench.measure_regret()
    assert "regret_m (n + N)" in bench.status.object


def test_large_problems_wait_for_the_button(bench):
    before = bench.split
    bench.parameters.param.update(data="synthetic", m=5000)
    assert bench.split is before and "press Another split" in bench.status.object


def test_jobs_without_a_page_run_to_their_end(bench):
    bench.run_trials()
    assert bench.outcome.trials == 4 and "4 trials" in bench.pictures["Trials"].html
    assert bench.status.object == "Done." and bench.stop_button.disabled
    bench.measure_regret()
    assert "slope −1" in bench.pictures["Regret"].html
    bench.parameters.param.update(predictor="mix", q=0.3)
    bench.measure_quality()
    assert len(bench.quality.q) == 11 and "q = 0.3" in bench.pictures["Quality"].html


def test_cancel_keeps_the_trials_that_are_done():
    async def scene():
        bench = live.Bench(study.Parameters(trials=2000))
        bench.run_trials()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if bench.outcome and bench.outcome.trials >= 4:
                break
        assert not bench.stop_button.disabled
        bench.jobs.stop()
        for _ in range(100):
            await asyncio.sleep(0.05)
            if not bench.jobs.busy:
                break
        return bench

    bench = asyncio.run(scene())
    assert 4 <= bench.outcome.trials < 2000
    assert "Stopped" in bench.status.object


def test_the_latest_wish_replaces_what_runs():
    async def scene():
        bench = live.Bench(study.Parameters(trials=2000))
        bench.run_trials()
        await asyncio.sleep(0.3)
        bench.parameters.param.update(trials=2, predictor="base")
        bench.run_trials()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if not bench.jobs.busy:
                break
        return bench

    bench = asyncio.run(scene())
    assert bench.outcome.trials == 2 and bench.outcome.setting.predictor == "base"
    assert bench.status.object == "Done."


def test_the_still_of_a_report_holds_three_pictures():
    for setting in ({}, {"data": "synthetic", "predictor": "bad", "m": 20}):
        text = live.still(study.Parameters(**setting))
        assert text.count('role="img"') == 3 and "One split" in text
    explorer = views.explorer(study.Parameters(trials=2))
    assert "Live in the notebook" in explorer.still_html()


def test_the_live_parameters_are_those_of_a_setting():
    assert set(live.LIVE) == set(Setting.__dataclass_fields__)
