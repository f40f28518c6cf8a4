"""Jobs: steps in a thread, watched from a loop; and the making of a report as steps."""

import asyncio
import time

import pytest
from helpers import alive

from workbench import jobs
from workbench.jobs import Job, report_steps
from workbench.methods.neural_cpm.study import Parameters
from workbench.steps import Cancelled, Step


def count(n, pause_s=0.01):
    for k in range(n):
        time.sleep(pause_s)
        yield Step((k + 1) / n, f"{k + 1} of {n}", data=k)
    return "done"


def test_a_job_ends_with_the_result_and_shows_its_steps_in_the_loop():
    async def watch():
        shown = []
        return await Job(count(30)).watch(shown.append), shown

    result, shown = asyncio.run(watch())
    assert result == "done"
    assert [s.done for s in shown] == sorted(s.done for s in shown) and len(shown) >= 2


def test_the_loop_stays_free_while_a_job_works():
    async def watch():
        job, ticks = Job(count(50)), 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        ticking = asyncio.create_task(tick())
        await job.watch()
        ticking.cancel()
        return ticks

    assert asyncio.run(watch()) > 10


def test_cancel_ends_within_a_second_with_what_is_finished():
    async def watch():
        job = Job(count(10_000))
        asyncio.get_running_loop().call_later(0.3, job.cancel)
        start = time.monotonic()
        with pytest.raises(Cancelled) as stopped:
            await job.watch()
        return time.monotonic() - start, stopped.value.data

    seconds, data = asyncio.run(watch())
    assert seconds < 1.3 and data > 0


def test_a_page_does_not_wait_for_work_that_does_not_listen():
    async def watch():
        job = Job(count(3, pause_s=2.0))
        job.cancel()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            await job.watch()
        return time.monotonic() - start

    assert asyncio.run(watch()) < 1.5


def test_the_error_of_the_work_is_the_error_of_the_job():
    def broken():
        yield Step(0.0)
        raise ZeroDivisionError("in the thread")

    with pytest.raises(ZeroDivisionError, match="in the thread"):
        asyncio.run(Job(broken()).watch())


class FakeProcess:
    """Stands for the command: runs a short Python program instead."""

    def __init__(self, monkeypatch, program):
        import subprocess
        import sys

        self.commands, real = [], subprocess.Popen

        def popen(command, **options):
            self.commands.append(command)
            self.process = real([sys.executable, "-c", program], **options)
            return self.process

        monkeypatch.setattr(jobs.subprocess, "Popen", popen)


def finish(steps):
    seen = []
    while True:
        try:
            seen.append(next(steps))
        except StopIteration as end:
            return end.value, seen


def test_a_report_is_asked_for_with_the_settings_that_differ(monkeypatch, tmp_path):
    program = (
        "import sys, time\n"
        "for p in (10, 60): sys.stderr.write(f'x: {p:3}%|##| 0:01\\r'); sys.stderr.flush(); "
        "time.sleep(.3)\n"
        'print(\'{"html": "a.html"}\')'
    )
    fake = FakeProcess(monkeypatch, program)
    parameters = Parameters(temperature=2.5, widths=[4, 4], closure=False)
    paths, seen = finish(report_steps(parameters, tmp_path))
    assert paths == {"html": "a.html"}
    command = " ".join(fake.commands[0])
    assert "-p temperature 2.5" in command and "-p widths [4, 4]" in command
    assert "-p closure False" in command and "J01" not in command
    assert {0.1, 0.6} <= {s.done for s in seen}


def test_a_report_that_fails_says_what_the_command_said(monkeypatch, tmp_path):
    FakeProcess(monkeypatch, "import sys; sys.exit('workbench: cell 3 failed')")
    with pytest.raises(RuntimeError, match="workbench: cell 3 failed"):
        finish(report_steps(Parameters(), tmp_path))


def test_a_closed_report_leaves_no_process(monkeypatch, tmp_path):
    fake = FakeProcess(monkeypatch, "import time; time.sleep(60)")
    steps = report_steps(Parameters(), tmp_path)
    next(steps)
    start = time.monotonic()
    steps.close()
    assert time.monotonic() - start < 4 and not alive(fake.process.pid)


def latest():
    told, taken = [], []
    return jobs.Latest(told.append), told, taken


def test_without_a_loop_a_wish_is_done_at_once():
    work, told, taken = latest()
    work.start(lambda: count(2), taken.append)
    assert taken == ["done"] and told == ["done"] and not work.busy

    def broken():
        yield Step(0.1)
        raise ValueError("no such thing")

    work.start(broken, taken.append)
    assert str(told[-1]) == "no such thing" and taken == ["done"]


def test_the_latest_wish_takes_the_place_of_what_runs():
    async def scene():
        work, told, taken = latest()
        work.start(lambda: count(1000), lambda data: taken.append(("first", data)))
        await asyncio.sleep(0.3)
        work.start(lambda: count(5), lambda data: taken.append(("second", data)))
        while work.busy:
            await asyncio.sleep(0.02)
        return told, taken

    told, taken = asyncio.run(scene())
    assert taken[-1] == ("second", "done") and told[-1] == "done" and "stopped" not in told
    names = [name for name, _ in taken]
    assert names == sorted(names), "nothing of the first comes once the second is wished for"


def test_what_is_stopped_keeps_its_last_data():
    async def scene():
        work, told, taken = latest()
        work.start(lambda: count(1000), taken.append)
        await asyncio.sleep(0.4)
        work.stop()
        while work.busy:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.05)
        return told, taken

    told, taken = asyncio.run(scene())
    assert told[-1] == "stopped" and 0 <= taken[-1] < 999
