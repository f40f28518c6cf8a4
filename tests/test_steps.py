"""Steps: one runner for progress, cancel and partial results."""

import pytest

from workbench.steps import Cancelled, Progress, Step, part, run


def counting(n, closed):
    try:
        for i in range(n):
            yield Step((i + 1) / n, f"item {i}", data=i)
        return "result"
    finally:
        closed.append(True)


def test_run_returns_the_result_and_reports_every_step():
    seen, closed = [], []
    assert run(counting(3, closed), on_step=seen.append) == "result"
    assert [s.done for s in seen] == pytest.approx([1 / 3, 2 / 3, 1])
    assert closed == [True]


def test_cancel_stops_at_once_and_keeps_the_partial_result():
    seen, closed = [], []
    with pytest.raises(Cancelled) as cancelled:
        run(counting(100, closed), on_step=seen.append, cancelled=lambda: len(seen) == 2)
    assert cancelled.value.data == 1
    assert closed == [True]


def test_an_interrupt_keeps_the_partial_result_too():
    def interrupted():
        yield Step(0.5, data="half")
        raise KeyboardInterrupt

    with pytest.raises(Cancelled) as cancelled:
        run(interrupted())
    assert cancelled.value.data == "half"


def test_errors_pass_through():
    def broken():
        yield Step(0.1)
        raise ZeroDivisionError("broken")

    with pytest.raises(ZeroDivisionError, match="broken"):
        run(broken())


def test_a_part_maps_its_progress_into_the_whole_and_returns_its_result():
    def whole():
        first = yield from part(counting(2, []), 0.0, 0.5, "first")
        second = yield from part(counting(2, []), 0.5, 1.0, "second")
        return first + second

    seen = []
    assert run(whole(), on_step=seen.append) == "resultresult"
    assert [s.done for s in seen] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert seen[0].message == "first: item 0"
    assert [s.data for s in seen] == [None] * 4


def test_a_part_passes_its_partial_data_on_when_told_how():
    def whole():
        return (yield from part(counting(2, []), 0, 1, data=lambda d: ("so far", d)))

    seen = []
    run(whole(), on_step=seen.append)
    assert [s.data for s in seen] == [("so far", 0), ("so far", 1)]


def test_progress_in_a_terminal_writes_a_bar_and_no_notebook_display(capsys):
    with Progress("demo", min_interval_s=0) as progress:
        run(counting(3, []), on_step=progress)
    text = capsys.readouterr().err
    assert "demo" in text and "100%" in text
