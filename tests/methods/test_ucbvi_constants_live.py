"""The live bench: closed forms at once, runs in a job, the latest wish, and a still."""

import asyncio

import numpy as np
import pytest

from workbench.methods.ucbvi_constants import bonuses, drawings, experiments, live, study, views
from workbench.methods.ucbvi_constants.bonuses import Sizes
from workbench.steps import run


@pytest.fixture
def bench():
    return live.Bench(study.Parameters(K=300))


def hello(bench):
    bench.pictures["Regret"].hello = "here"


def test_closed_forms_are_there_before_anything_runs(bench):
    assert "Anatomy of the BF-I bonus" in bench.pictures["Bonus"].html
    assert "bound of CH" in bench.pictures["Bounds"].html
    assert bench.pictures["Regret"].html == "" and bench.comparison is None


def test_the_page_that_says_hello_gets_a_run_with_all_its_pictures(bench):
    hello(bench)
    c = bench.comparison
    assert c.algorithms == bench.parameters.algs and c.runs["BF"][0].episodes[-1] == 300
    for name in ("Regret", "Q-table", "Visits"):
        assert "<svg" in bench.pictures[name].html
    assert "measured" in bench.pictures["Bounds"].html
    assert "BF-I ✓ optimistic" in bench.pictures["Regret"].html
    assert bench.table_sliders.highs[1:] == [5, 2]
    before = bench.comparison
    hello(bench)  # a second page of the same bench
    assert bench.comparison is before


def test_parameters_act_at_once_on_runs_and_closed_forms(bench):
    hello(bench)
    bench.parameters.param.update(scale=0.0, algs=["BF", "BF-I"])
    assert bench.comparison.algorithms == ["BF", "BF-I"]
    assert "✗ V &lt; V*" in bench.pictures["Regret"].html
    bench.parameters.H = 3
    assert "H = 3" in bench.pictures["Bonus"].html and bench.comparison.sizes.H == 3
    assert bench.table_sliders.highs[1] == 3


def test_early_regret_is_below_the_chart_and_larger_for_a_longer_plan():
    mdps = experiments.random_mdps(1, 0)

    def after_10_000(K):
        made = run(experiments.compare_steps(mdps, ["BF-I"], 5, K))
        text = live.early_text(made)
        assert text.startswith("Regret after 1,000 episodes: BF-I ")
        return int(text.rsplit(" ", 1)[1].rstrip(".").replace(",", ""))

    assert after_10_000(10_000) < after_10_000(100_000)
    short = run(experiments.compare_steps(mdps, ["BF", "BF-I"], 5, 2000))
    assert "10,000" not in live.early_text(short) and "BF-I" in live.early_text(short)


def test_the_early_regret_is_on_the_page(bench):
    bench.parameters.K = 1000
    hello(bench)
    assert "Regret after 1,000 episodes: CH " in bench.pictures["Regret"].html


def test_a_policy_without_a_table_is_not_optimistic(bench):
    bench.parameters.algs = ["BF-I", "random policy", "first action"]
    hello(bench)
    page = bench.pictures["Regret"].html
    assert "random policy – keeps no table; first action – keeps no table" in page


def test_a_horizon_in_which_nothing_can_be_collected_is_one_line(bench):
    bench.parameters.env = "frozenlake"
    bench.run()
    assert "H = 5 is too short for FrozenLake" in bench.status.object


def test_the_kind_of_regret_only_draws_anew(bench):
    hello(bench)
    before = bench.comparison
    bench.parameters.regret = "realised"
    assert bench.comparison is before and "Regret, realised" in bench.pictures["Regret"].html


def test_log_axes_are_switches(bench):
    hello(bench)
    both = bench.pictures["Regret"].html
    bench.log_axes.value = ["Log regret"]
    one = bench.pictures["Regret"].html
    assert one != both and bench.log_axes.options == ["Log episodes", "Log regret"]
    bench.log_axes.value = ["Log episodes"]
    assert bench.pictures["Regret"].html not in (one, both)
    bench.log_axes.value = []
    c = bench.comparison
    assert str(drawings.regret_drawing(c, "pseudo", False, False)) in bench.pictures["Regret"].html


def test_long_runs_wait_for_the_button(bench):
    hello(bench)
    before = bench.comparison
    bench.parameters.param.update(K=1_000_000)
    assert bench.comparison is before and "press Run" in bench.status.object
    assert "K = 10⁶" in bench.pictures["Bonus"].html
    assert live.at_once(study.Parameters(K=10_000))
    assert live.at_once(study.Parameters()) and not live.at_once(study.Parameters(S=20, A=10))


def test_bonus_sliders_move_the_reading(bench):
    bench.bonus_sliders.move([5.0, 0.16, 12.0])
    assert "at N = 10⁵" in bench.pictures["Bonus"].html
    assert "below its cap" in bench.pictures["Bonus"].html
    bench.term_algorithm.value = "BF"
    assert "Anatomy of the BF bonus" in bench.pictures["Bonus"].html


def test_the_microscope_scrubs_over_episodes_stages_and_states(bench):
    hello(bench)
    assert bench.looked_at.options == bench.parameters.algs
    bench.looked_at.value = "MVP"
    bench.table_sliders.move([0, 2, 1])
    assert "MVP, episode 1, stage 2, state 1" in bench.pictures["Q-table"].html


def test_scan_and_bandits_run_on_a_click(bench, monkeypatch):
    monkeypatch.setattr(live, "SCAN_K", 200)
    monkeypatch.setattr(live, "SCAN_RUNS", 1)
    monkeypatch.setattr(live, "BANDITS", 1)
    bench.scan_constants()
    assert bench.scan.K == 200 and "no bonus" in bench.pictures["Scan"].html
    bench.pull()
    assert "10 arms" in bench.pictures["Bandits"].html


def test_what_goes_wrong_is_on_the_page_in_one_line(bench, tmp_path):
    R = np.full((2, 2), 3.0)
    np.savez(tmp_path / "bad.npz", P=np.full((2, 2, 2), 0.5), R=R)
    bench.parameters.param.update(env="npz", file=str(tmp_path / "bad.npz"))
    bench.run()
    assert "the bonuses assume [0, 1]" in bench.status.object


def test_a_file_brings_its_sizes(bench, tmp_path):
    np.savez(tmp_path / "own.npz", P=np.full((2, 2, 2), 0.5), R=np.eye(2))
    hello(bench)
    bench.parameters.param.update(env="npz", file=str(tmp_path / "own.npz"))
    bench.run()
    assert live.sizes_of(bench.parameters, bench.comparison) == Sizes(2, 2, 5, 300, 1.0)
    assert bench.table_sliders.highs[2] == 1


def test_in_a_page_runs_stream_and_the_latest_wish_replaces_what_runs():
    made = live.Bench(study.Parameters(K=100_000, algs=["BF", "BF-I"]))
    drawn = []
    made.pictures["Regret"].param.watch(lambda event: drawn.append(event.new), "html")

    async def play():
        hello(made)
        while not drawn:
            await asyncio.sleep(0.02)
        first = made.comparison
        assert first.runs["BF-I"][0] is None or first.runs["BF-I"][0].episodes[-1] < 100_000
        made.parameters.K = 200
        await made._task

    asyncio.run(play())
    assert made.comparison.sizes.K == 200
    assert made.comparison.runs["BF-I"][0].episodes[-1] == 200
    assert made.status.object == "Done." and made.stop_button.disabled


def test_stop_keeps_what_is_there():
    made = live.Bench(study.Parameters(K=2_000_000, algs=["CH"]))

    async def play():
        made.run()
        while made.comparison is None or len(made.comparison.curve("CH")[0]) < 50:
            await asyncio.sleep(0.02)
        made.stop()
        await made._task

    asyncio.run(play())
    assert "Stopped" in made.status.object
    assert 50 <= len(made.comparison.curve("CH")[0]) < 1000


def test_the_still_of_a_report_has_curves_and_the_bonus():
    still = live.still(study.Parameters(K=100_000, algs=["BF-I", "MVP"]))
    assert still.count('role="img"') == 2
    assert "K = 10,000, one run" in still and "K = 10⁵" in still
    smaller = live.still(study.Parameters(K=100_000, algs=["BF-I", "MVP"], scale=0.01))
    p = study.Parameters(scale=0.01)
    rest = {"variance": p.H**2 / 20, "scale": 0.01}
    visits = bonuses.visits_to_inform("CH", live.sizes_of(p), **rest)
    assert f">{visits:,}<" in smaller and f">{visits:,}<" not in still


def test_the_explorer_offers_every_parameter_once():
    made = views.explorer()
    assert sorted(made._only) == sorted(study.Parameters.names())
