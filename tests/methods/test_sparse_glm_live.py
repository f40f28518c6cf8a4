"""The benches: a search that runs, stops and goes on; a prox by hand; a race; any dual vector."""

import asyncio

import numpy as np
import pytest

from workbench.methods.sparse_glm import live, prox, study
from workbench.methods.sparse_glm.benches import DualBench, ProxBench, RaceBench
from workbench.methods.sparse_glm.certificate import verify

SMALL = {"k": 3, "lambda2": 5.0, "M": 1.0}


def bench(**more):
    return live.live(study.Parameters(**{**SMALL, **more})).bench


async def until(true, seconds=40.0):
    for _ in range(int(seconds / 0.02)):
        if true():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


def played(script, make=bench, **more):
    """Run `script(made)`, a coroutine, on a page that is there."""

    async def play():
        made = make(**more)
        await script(made)
        return made

    return asyncio.run(play())


def test_a_search_ends_with_a_verdict_a_tree_and_coefficients():
    made = bench().search
    made.start()
    assert "✓ certified" in made.status.object and "nodes in" in made.status.object
    assert made.tree.count == len(made.search.nodes) and made.tree.nodes
    assert "⚑ at the box" in made.coefficients.html and "Bounds squeeze" in made.bounds.html
    made.tree.picked = 1
    assert "Relaxed z of node 1" in made.node.html
    assert made.run_button.label == "Run the search"


def test_it_stops_at_once_tells_the_gap_and_goes_on():
    counts = []

    async def script(made):
        search = made.search
        search.start()
        await until(lambda: search.search is not None and search.search.solved > 10)
        search.stop()
        await until(lambda: search.run_button.label == "Go on")
        counts.append(search.search.solved)
        assert "gap" in search.status.object and "✓" not in search.status.object
        problem = search.search.problem
        found = search.search.result()
        assert 0 < found.gap < 1
        assert verify(found.certificate(), problem.X, problem.y).valid
        search.start()
        await until(lambda: search.search.solved > counts[0] + 10)
        search.stop()
        await until(lambda: search.stop_button.disabled)

    made = played(script, k=10, lambda2=0.5, M=2.0)
    assert made.search.search.solved > counts[0], "the same tree, grown"


def test_from_the_start_forgets_what_still_runs():
    async def script(made):
        search = made.search
        search.start()
        await until(lambda: search.search is not None and search.search.solved > 10)
        search.reset()
        await until(lambda: not search.desk.jobs.busy)
        assert search.search is None and search.tree.count == 0 and not search.bounds.html
        assert search.status.object.startswith("Ready") and search.stop_button.disabled
        search.start()
        await until(lambda: search.search is not None)
        search.stop()
        await until(lambda: not search.desk.jobs.busy)
        assert "gap" in search.status.object

    played(script, k=10, lambda2=0.5, M=2.0)


def test_the_tree_grows_while_it_runs():
    counts = []

    async def script(made):
        made.search.tree.param.watch(lambda event: counts.append(event.new), "count")
        made.search.start()
        await until(lambda: len(counts) > 4)
        made.search.stop()
        await until(lambda: made.search.stop_button.disabled)

    played(script, k=10, lambda2=0.5, M=2.0)
    assert counts[1:] == sorted(counts[1:]) and len(set(counts)) > 3


def test_other_parameters_begin_a_new_tree():
    made = bench().search
    made.start()
    made.parameters.lambda2 = 3.0
    assert made.search is None and made.tree.count == 0 and "Ready" in made.status.object
    made.start()
    assert made.search.problem.lambda2 == 3.0


def test_a_limit_is_told_with_the_gap_and_go_on_continues():
    made = bench(lambda2=1.0, M=2.0, max_nodes=5).search
    made.start()
    assert made.status.object.startswith("limit of 5 nodes") and "gap" in made.status.object
    assert made.run_button.label == "Go on"


def test_what_is_wrong_is_said_on_the_page(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=np.random.default_rng(0).standard_normal((9, 4)), y=np.arange(9.0))
    made = bench(data="npz", file=str(path)).search
    path.unlink()
    made.start()
    assert "there is no file" in made.status.object and 'role="alert"' in made.status.object


def test_the_prox_follows_bars_and_sliders():
    made = ProxBench()
    assert made.bars.marks == pytest.approx([1.5, 0.775, 0.275, 0, -0.175])
    made.faders.move([0.0, 2, 0.8])
    assert made.bars.marks == pytest.approx([0.8, 19 / 30, 2 / 15, 0, -1 / 30])
    made.bars.values = [1.0, 1.0, 1.0, 0.0, 0.0]
    made.faders.move([np.log10(0.5), 1, 4.0])
    assert made.bars.marks == pytest.approx([0.4, 0.4, 0.4, 0, 0])
    before = made.sorted.html
    made.throw()
    assert len(made.bars.values) == len(made.bars.marks) == 8 and made.sorted.html != before
    assert made.faders.highs[1] == 8


def test_the_block_grows_step_by_step_and_begins_again():
    made = ProxBench()
    said = []
    for _ in range(5):
        made.grow()
        said.append("finished" if "finished" in made.sorted.html else
                    "growing" if "growing" in made.sorted.html else "out of order")  # fmt: skip
    steps = len(prox.pooling(np.array(made.bars.values), 1.0, 2, 4.0).blocks)
    assert said[:2] == ["out of order", "growing"] and said[steps] == "finished"
    assert said[steps + 1] == "out of order"
    made.finish()
    assert "finished" in made.sorted.html


def test_a_race_draws_three_curves_and_their_numbers():
    made = RaceBench()
    made.size.value = 100
    made.start()
    assert set(made.runs) == {"restart", "no restart", "no momentum"}
    assert "restart <b>" in made.status.object and "restarts" in made.chart.html
    before = made.chart.html
    made.axis.value = "seconds"
    assert "CPU time" in made.chart.html and made.chart.html != before


def test_a_conic_solver_is_a_line_over_time():
    pytest.importorskip("cvxpy")
    made = RaceBench()
    made.size.value, made.conic_solver.value = 100, "CLARABEL"
    made.start()
    assert made.conic["Clarabel"] > 0
    made.axis.value = "seconds"
    assert "Clarabel" in made.chart.html


def test_a_race_can_be_cancelled_and_its_curves_stay():
    async def script(made):
        made.size.value = 1000
        made.start()
        await until(lambda: "no restart" in made.runs)
        made.stop()
        await until(lambda: made.stop_button.disabled)

    made = played(script, RaceBench)
    assert made.status.object.startswith("Cancelled") and "no restart" in made.chart.html


def test_no_dual_vector_passes_the_optimum():
    made = DualBench()
    assert "D(w) = 0" in made.chart.html
    made.best()
    assert made.reached > 0.8 * made.relaxed.value
    for _ in range(50):
        made.noise()
        assert "as always" in made.chart.html
    assert made.reached <= made.optimum
