"""The planner bench: sliders act at once, slow curves follow, and can be stopped."""

import asyncio

import numpy as np
import pytest

from workbench.methods.rank_one_vi import closeup, experiments, live, study, views
from workbench.numerics import mdp as tables
from workbench.steps import run

SMALL = {"n": 20, "m": 3, "b": 4, "gamma": 0.95, "methods": ["VI", "R1-VI", "PI", "NVI"]}


def bench(**more):
    return live.live(study.Parameters(**{**SMALL, **more})).bench


def played(script, **more):
    """Run `script(bench)`, a coroutine, on a page that is there."""

    async def play():
        made = bench(**more)
        await script(made)
        made.stop()
        if made._task:
            await made._task
        return made

    return asyncio.run(play())


async def until(true, seconds=20.0):
    for _ in range(int(seconds / 0.02)):
        if true():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize(
    "more",
    [{}, {"teleport": 0.3}, {"d_mode": "exact"}, {"d_mode": "point"}, {"power_steps": 0},
     {"family": "graph6"}, {"family": "frozenlake8", "closure": "absorbing"}],
)  # fmt: skip
def test_a_closeup_is_the_beginning_of_the_comparison(more):
    p = study.Parameters(**{**SMALL, **more})
    close = closeup.Closeups()(p)
    whole = run(experiments.comparison_steps(p))
    assert close.solved.optimum == pytest.approx(whole.solved.optimum)
    for name in ("R1-VI", "VI"):
        count = min(len(close.plans[name].values), len(whole.plans[name].values))
        assert close.plans[name].values[:count] == pytest.approx(whole.plans[name].values[:count])
    assert (close.low <= close.solved.optimum + 1e-9).all()
    assert (close.high >= close.solved.optimum - 1e-9).all()
    known = np.sort(np.abs(whole.solved.eigenvalues))
    assert np.sort(np.abs(close.solved.eigenvalues)) == pytest.approx(known, abs=1e-6)


def test_the_problem_is_made_anew_only_when_it_changes(monkeypatch):
    made = []
    real = experiments.without_teleport
    monkeypatch.setattr(
        experiments, "without_teleport", lambda p: (made.append(p.family), real(p))[1]
    )
    closeups, p = closeup.Closeups(), study.Parameters(**SMALL)
    for change in ({}, {"gamma": 0.9}, {"teleport": 0.2}, {"d_mode": "uniform"}, {"tol": 1e-3}):
        p.param.update(**change)
        closeups(p)
    assert made == ["garnet"]
    p.seed = 4
    closeups(p)
    p.param.update(family="cliff")
    closeups(p)
    p.seed = 5  # a table has no seed
    closeups(p)
    p.closure = "absorbing"
    closeups(p)
    assert made == ["garnet", "garnet", "cliff", "cliff"]


def test_all_pictures_are_there_at_once():
    made = bench()
    for name in ("errors", "bracket", "policies", "spectrum", "distribution", "gains", "tracking"):
        assert "<figure" in made.drawings[name].html, name
    assert made.faders.values[0] == pytest.approx(-np.log10(0.05))
    assert "γ = 0.95" in made.faders.notes[0]


def test_the_discount_slider_is_logarithmic_and_follows_the_form():
    made = bench()
    before = made.drawings["errors"].html
    made.faders.move([3.0, 5, 0])
    assert made.parameters.gamma == pytest.approx(0.999)
    assert made.made.solved.gamma == pytest.approx(0.999)
    assert made.drawings["errors"].html != before
    made.parameters.gamma = 0.9
    assert made.faders.values[0] == pytest.approx(1.0) and "γ = 0.9" in made.faders.notes[0]
    made.faders.move([4.0, 5, 0])
    assert made.parameters.gamma == 0.9999


def test_iteration_and_state_change_their_pictures_only():
    made = bench()
    spectrum, bracket = made.drawings["spectrum"].html, made.drawings["bracket"].html
    solved = made.made.solved
    made.faders.move([made.faders.values[0], 2, 7])
    assert "state 7" in made.drawings["bracket"].html and made.drawings["bracket"].html != bracket
    assert made.drawings["spectrum"].html == spectrum and made.made.solved is solved
    assert "d of iteration 2" in made.drawings["distribution"].html


@pytest.mark.parametrize(
    "change",
    [{"teleport": 0.5}, {"d_mode": "uniform"}, {"power_steps": 4}, {"n": 30}, {"b": 8}, {"seed": 3},
     {"family": "karate"}, {"methods": ["R1-VI"]}],
)  # fmt: skip
def test_every_parameter_acts_at_once(change):
    made = bench()
    before = {name: drawing.html for name, drawing in made.drawings.items()}
    made.parameters.param.update(**change)
    assert made.drawings["errors"].html != before["errors"]


def test_the_dice_make_another_garnet():
    made = bench()
    optimum = made.made.solved.optimum
    made.throw()
    assert made.parameters.seed == 1 and not np.allclose(made.made.solved.optimum, optimum)


def test_a_smaller_problem_keeps_the_sliders_in_range():
    made = bench(n=40)
    made.faders.move([made.faders.values[0], 10, 39])
    made.parameters.param.update(family="graph6")
    assert made.faders.values[2] <= 5 and made.faders.highs[2] == 5


def test_slow_curves_grow_and_end_with_a_verdict():
    lengths = []

    async def script(made):
        made.drawings["errors"].param.watch(
            lambda event: lengths.append(len(made.made.plans["VI"].errors)), "html"
        )
        made.drawings["errors"].hello = "here"  # the page is there
        await until(lambda: "Iterations to an error" in made.status.object)

    made = played(script, gamma=0.999)
    assert made.made.plans["VI"].extrapolated and "VI ≈" in made.status.object
    assert "NVI" in made.made.plans and "NVI" in made.drawings["errors"].html
    assert max(lengths) > 1000


def test_changes_that_come_together_are_drawn_once():
    drawn = []

    async def script(made):
        real = made.closeups.__call__
        made.closeups = type("Spy", (), {
            "fast": made.closeups.fast, "base": made.closeups.base,
            "__call__": lambda self, p: (drawn.append(p.gamma), real(p))[1],
        })()  # fmt: skip
        for gamma in np.linspace(0.6, 0.9, 20):
            made.parameters.gamma = float(gamma)
        await until(lambda: "Iterations to an error" in made.status.object)

    played(script)
    assert drawn == [0.9]


def test_stop_keeps_what_the_curves_have_reached():
    async def script(made):
        made.start()
        await until(lambda: len(made.made.plans["VI"].errors) > 300)
        made.stop()
        await until(lambda: made.stop_button.disabled)

    made = played(script, n=200, gamma=0.9999, methods=["R1-VI", "VI"])
    assert "Stopped" in made.status.object
    assert made.made.plans["VI"].iterations is None
    assert "Distance from v*" in made.drawings["errors"].html


def test_a_large_problem_is_computed_beside_the_page():
    async def script(made):
        assert made.made is None and "computing" in made.status.object
        made.start()
        await until(lambda: made.made is not None, 60)
        await until(lambda: "Iterations to an error" in made.status.object, 60)

        before = made.drawings["bracket"].html
        made.parameters.n = 350  # another large one: no picture stays
        await until(lambda: made.made is not None and made.made.solved.mdp.n == 350, 60)
        await until(lambda: "Iterations to an error" in made.status.object, 60)
        assert made.drawings["bracket"].html not in ("", before)

    made = played(script, n=400, gamma=0.9, methods=["R1-VI", "PI"])
    assert made.made.solved.mdp.n == 350 and "<figure" in made.drawings["bracket"].html


def test_curves_of_former_parameters_never_replace_those_of_the_present_ones():
    async def script(made):
        for number in range(12):
            made.start()
            await asyncio.sleep(0.03 * (number % 4))
            made.parameters.gamma = 0.8 + 0.01 * number
            made.refresh()
        await until(lambda: "Iterations to an error" in made.status.object)

    made = played(script)
    assert made.made.solved.gamma == pytest.approx(0.91) == made.parameters.gamma


def test_the_grid_is_drawn_when_its_tab_is_open():
    made = bench(family="frozenlake4")
    made.tabs.active = 1
    assert "VI, iteration 5" in made.drawings["grid"].html
    made.faders.move([made.faders.values[0], 9, 0])
    assert "R1-VI, iteration 9" in made.drawings["grid"].html
    made.tabs.active = 0
    assert "<figure" in made.drawings["errors"].html


@pytest.mark.parametrize("on", list(live.LEARNERS.values()))
def test_learners_run_on_every_problem_and_the_best_constant_comes_off(on):
    made = bench(ql_steps=120, ql_seeds=3)
    made.on.value = on
    made.learn()
    assert "Learned" in made.status.object and "R1-QL" in made.learned
    before = made.drawings["learning"].html
    made.subtract.value = True
    assert made.drawings["learning"].html != before
    assert "half the span" in made.drawings["learning"].html


def test_learning_curves_grow_and_zap_is_left_out_where_it_is_slow():
    points = []

    async def script(made):
        made.on.value = "own"
        made.drawings["learning"].param.watch(
            lambda event: points.append(len(made.learned["QL (rescaled)"].steps)), "html"
        )
        made.learn()
        await until(lambda: "Learned" in made.status.object, 60)

    made = played(script, n=60, m=3, ql_steps=4000, ql_seeds=2)
    assert "Zap" not in made.learned and "Zap is left out" in made.status.object
    assert points == sorted(points) and len(set(points)) > 2


def test_what_is_wrong_is_said_on_the_page(tmp_path):
    made = bench()
    made.parameters.param.update(family="npz", file=str(tmp_path / "absent.npz"))
    assert "no file" in made.status.object
    made.parameters.param.update(family="garnet", b=20)
    assert "Iterations to an error" in made.status.object
    made.parameters.param.update(n=10)
    assert "b = 20 successors: allowed are 1 to n = 10" in made.status.object
    made.parameters.param.update(b=5)
    assert "Iterations to an error" in made.status.object


def test_own_arrays_are_shown(tmp_path):
    problem = tables.garnet(9, 2, 3, 1)
    np.savez(tmp_path / "mine.npz", P=problem.P, R=problem.R)
    made = bench(family="npz", file=str(tmp_path / "mine.npz"))
    assert made.made.solved.mdp.n == 9


@pytest.mark.parametrize(
    ("P", "R"),
    [(np.ones((1, 2, 1)), [[1.0, 0.0]]), (np.eye(3)[:, None], 1e-9 * np.ones((3, 1))),
     (np.eye(3)[:, None], np.zeros((3, 1)))],
    ids=["one state", "tiny rewards", "no rewards"],
)  # fmt: skip
def test_small_own_problems_are_drawn_whole(P, R, tmp_path):
    np.savez(tmp_path / "mine.npz", P=P, R=R)
    p = {"family": "npz", "file": str(tmp_path / "mine.npz")}
    made = bench(**p)
    made.faders.move([made.faders.values[0], 1, 1])
    assert all("<figure" in made.drawings[name].html for name in ("errors", "bracket", "spectrum"))
    assert not any("nan" in made.drawings[name].html for name in ("errors", "bracket", "spectrum"))
    assert live.still(study.Parameters(**SMALL, **p)).count("<figure") == 6
    whole = run(experiments.comparison_steps(study.Parameters(**p)))
    assert views.error_chart(whole) and views.policy_chart(whole)


def test_the_still_has_six_pictures_and_the_verdict():
    still = live.still(study.Parameters(**SMALL))
    assert still.count("<figure") == 6 and "Iterations to an error" in still


def test_the_explorer_offers_what_acts_on_the_pictures_first_and_then_the_study():
    explorer = live.explorer()
    explorer.__panel__()
    names = [row["name"] for row in explorer.controls.rows]
    assert tuple(names[: len(live.LIVE)]) == live.LIVE
    assert set(names) == set(explorer.parameters.names())
