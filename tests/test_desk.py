"""The desk of a live page: work that streams and stops."""

import asyncio
import time

from workbench.desk import Desk, button
from workbench.steps import Step


def steps(n=1000, rest_s=0.02):
    for k in range(n):
        yield Step(k / n, "working", k)
        time.sleep(rest_s)
    return n


def run_until(condition, start):
    """Start something inside an event loop and wait until a condition holds."""

    async def scenario():
        start()
        for _ in range(200):
            await asyncio.sleep(0.02)
            if condition():
                return
        raise AssertionError("it did not happen")

    asyncio.run(scenario())


def test_work_ends_with_its_result_and_words():
    seen, ended = [], []
    desk = Desk(lambda: True)
    run_until(lambda: ended, lambda: desk.start(lambda: steps(3, 0.0), seen.append, ended.append))
    assert seen[-1] == 3 and ended == ["done"]
    assert desk.status.object == "Done." and desk.stop_button.disabled


def test_a_button_stops_the_work_and_what_there_is_is_kept():
    seen, ended = [], []
    desk = Desk(lambda: True)
    pressed = button("Start", lambda: desk.start(steps, seen.append, ended.append), 80)

    def stop_when_seen():
        if seen and not desk.stop_button.disabled:
            desk.stop()
        return ended

    run_until(stop_when_seen, lambda: pressed.param.trigger("clicks"))
    assert ended == ["stopped"] and 0 <= seen[-1] < 900
    assert "Stopped" in desk.status.object and desk.stop_button.disabled


def test_work_stops_when_its_page_is_gone():
    shown, seen, ended = [True], [], []
    desk = Desk(lambda: shown[0])

    def leave():
        if len(seen) > 1:
            shown[0] = False
        return ended

    run_until(leave, lambda: desk.start(steps, seen.append, ended.append))
    assert ended == ["stopped"] and max(seen) < 900


def test_an_error_is_one_line_on_the_page():
    def broken():
        yield Step(0.0)
        raise ValueError("no such example")

    desk = Desk(lambda: True)
    desk.start(broken, lambda data: None)
    assert "ValueError: no such example" in desk.status.object and desk.stop_button.disabled
