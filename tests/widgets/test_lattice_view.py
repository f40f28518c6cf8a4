"""The Python half of the lattice view: packing, back-pressure, what the user does, errors."""

import asyncio
import json
import struct
import time
import zlib

import numpy as np
import pytest

from workbench.widgets.lattice_view import AHEAD_PACED, PACE_S, Frame, LatticeView, pack

CELL = np.array([[0, 1], [2, 2]])
KIND = np.array([0, 1, 2])


class Counter:
    """A source whose state is a number of steps; writes down what is asked of it."""

    kinds = ("medium", "dark", "light")

    def __init__(self):
        self.time, self.calls, self.break_at = 0, [], None

    def frame(self):
        return Frame(CELL, KIND, self.time)

    def advance(self, n):
        self.time += n
        if self.break_at is not None and self.time >= self.break_at:
            raise RuntimeError("the source broke")
        return self.frame()

    def reset(self, seed):
        self.calls.append(("reset", seed))
        self.time = 0
        return self.frame()

    def paint(self, sites, kind, stroke):
        self.calls.append(("paint", sites.tolist(), kind, stroke))

    def kill(self, identity):
        self.calls.append(("kill", identity))


def unpack(buffer: bytes):
    size = struct.unpack("<I", buffer[:4])[0]
    head = json.loads(buffer[4 : 4 + size])
    body = buffer[4 + size :]
    body = zlib.decompress(body) if head["deflated"] else body
    assert len(body) == head["bytes"]
    n = int(np.prod(head["shape"])) * np.dtype(head["dtype"]).itemsize
    cell = np.frombuffer(body[:n], head["dtype"]).reshape(head["shape"])
    rest = np.frombuffer(body[n:], np.uint8)
    return head, cell, rest[: head["cells"] + 1], rest[head["cells"] + 1 :]


def gesture(view, *items, name="browser"):
    view.gesture = {"view": name, "items": [dict(item, n=n) for n, item in items]}


async def settle(view, until=lambda: False, seconds=3.0):
    """Let the loop run until nothing is left to do, or `until` holds."""
    for _ in range(int(seconds / 0.01)):
        await asyncio.sleep(0.01)
        if until() or (view._task and view._task.done()):
            return


@pytest.mark.parametrize("deflate", [True, False])
def test_a_packed_frame_holds_cells_kinds_and_field(deflate):
    field = np.array([[0.0, 1.0], [np.nan, 2.0]])
    frame = Frame(CELL, KIND, 3.5, field, "heat", "K")
    head, cell, kind, codes = unpack(pack(frame, 7, deflate))
    assert head["id"] == 7 and head["time"] == 3.5
    assert head["field"] == {"name": "heat", "unit": "K", "low": 0.0, "high": 2.0}
    assert np.array_equal(cell, CELL) and np.array_equal(kind, KIND)
    assert codes.tolist() == [0, 127, 255, 254]


def test_many_cells_need_wider_integers():
    kind = np.ones(70_000, int)
    head, cell, *_ = unpack(pack(Frame(np.full((2, 2), 69_999), kind), 1))
    assert head["dtype"] == "uint32" and cell.max() == 69_999


def test_a_lattice_shrinks_many_fold_on_its_way():
    cell = np.arange(64).reshape(8, 8).repeat(32, 0).repeat(32, 1)
    frame = Frame(cell, np.ones(64, int))
    assert len(pack(frame, 1)) * 15 < len(pack(frame, 1, deflate=False))


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (np.zeros(4, int), r"cell is int64 of shape \(4,\): use \(H, W\) integers"),
        (np.zeros((2, 2)), "cell is float64"),
        (np.full((2, 2), 3), "cell holds identities 0 to 3: allowed are 0 to 2"),
        (np.full((2, 2), -1), "cell holds identities -1 to 0"),
    ],
)
def test_what_is_not_a_lattice_is_refused_in_one_line(cell, message):
    with pytest.raises(ValueError, match=message):
        pack(Frame(cell, KIND), 1)


def test_without_a_loop_a_step_acts_at_once():
    view = LatticeView(Counter(), speed=4)
    view.step()
    view.step(2)
    assert view.source.time == 6 and unpack(view.frame)[0]["time"] == 6


def test_two_frames_are_ahead_of_the_browser_and_two_more_only_at_a_pace():
    async def play():
        view = LatticeView(Counter(), speed=1)
        view.acknowledged = view._sent
        sent_at = []
        view.on_frame.append(lambda frame: sent_at.append(time.monotonic()))
        view.playing = True
        await asyncio.sleep(0.4)
        first = np.diff(sent_at)
        view.acknowledged = view._sent
        await asyncio.sleep(0.4)
        view.playing = False
        await settle(view)
        return first, len(sent_at)

    gaps, total = asyncio.run(play())
    assert len(gaps) == AHEAD_PACED - 1 and total == 2 * AHEAD_PACED
    assert gaps[0] < PACE_S and (gaps[1:] > 0.9 * PACE_S).all()


def test_a_browser_that_says_nothing_gets_the_same_frame_again_and_no_new_one():
    async def play():
        view = LatticeView(Counter(), speed=1)
        view.playing = True
        await asyncio.sleep(0.4)
        sent, steps = view._sent, view.source.time
        await asyncio.sleep(2.2)
        result = view._sent - sent, view.source.time - steps
        view.playing = False
        await settle(view, seconds=0.1)
        return result

    assert asyncio.run(play()) == (1, 0)


def test_a_change_acts_on_the_running_simulation_between_two_frames():
    async def play():
        view = LatticeView(Counter(), speed=1)
        view.on_frame.append(lambda frame: setattr(view, "acknowledged", view._sent))
        view.playing = True
        await asyncio.sleep(0.1)
        before = view.source.time
        view.do(lambda: setattr(view.source, "time", 10_000))
        await settle(view, until=lambda: view.source.time > 10_000)
        view.playing = False
        await settle(view)
        return before, view.source.time

    before, after = asyncio.run(play())
    assert 0 < before < 10_000 < after


def test_a_slow_source_is_called_in_short_pieces():
    class Slow(Counter):
        largest = 0

        def advance(self, n):
            Slow.largest = max(Slow.largest, n)
            time.sleep(0.005 * n)
            return super().advance(n)

    async def play():
        view = LatticeView(Slow(), speed=64)
        view.on_frame.append(lambda frame: setattr(view, "acknowledged", view._sent))
        view.playing = True
        await settle(view, until=lambda: view.source.time >= 128)
        view.playing = False
        await settle(view)

    asyncio.run(play())
    assert Slow.largest <= 6  # pieces of about 20 ms


def test_errors_of_the_source_stop_the_play_and_are_said_in_the_view():
    async def play():
        view = LatticeView(Counter(), speed=1)
        view.source.break_at = 1
        view.playing = True
        await settle(view)
        said = view.fault, view.playing
        view.source.break_at = None
        view.step()
        await settle(view)
        return said, view.fault

    assert asyncio.run(play()) == (("RuntimeError: the source broke", False), "")


def test_what_the_user_does_reaches_the_source_once_however_often_it_is_repeated():
    view = LatticeView(Counter(), tools=["inspect", "paint:2", "erase", "kill"], seed=5)
    paint = {"type": "paint", "tool": "paint:2", "sites": [[0, 1], [1, 1]], "stroke": "s"}
    gesture(view, (1, paint))
    gesture(view, (1, paint), (2, {"type": "kill", "site": [1, 0]}), (3, {"type": "reset"}))
    gesture(view, (3, {"type": "reset"}), (4, {"type": "inspect", "site": [0, 1]}))
    assert view.source.calls == [
        ("paint", [[0, 1], [1, 1]], 2, "s"),
        ("kill", 2),
        ("reset", 5),
    ]
    assert view.selected == [0, 1]


def test_two_browser_views_are_heard_separately():
    view = LatticeView(Counter())
    gesture(view, (1, {"type": "reset"}), name="one")
    gesture(view, (1, {"type": "reset"}), name="two")
    assert len(view.source.calls) == 2


def test_erasing_paints_with_the_medium_and_killing_the_medium_does_nothing():
    view = LatticeView(Counter(), tools=["inspect", "erase", "kill"])
    gesture(
        view,
        (1, {"type": "paint", "tool": "erase", "sites": [[0, 0]], "stroke": "s"}),
        (2, {"type": "kill", "site": [0, 0]}),
    )
    assert view.source.calls == [("paint", [[0, 0]], 0, "s")]


def test_tools_that_a_view_does_not_offer_do_nothing():
    view = LatticeView(Counter(), tools=["inspect"])
    paint = {"type": "paint", "tool": "paint:1", "sites": [[0, 0]], "stroke": "s"}
    gesture(view, (1, {"type": "kill", "site": [1, 0]}), (2, paint))
    assert view.source.calls == []


def test_a_browser_that_asks_gets_an_answer_by_name():
    view = LatticeView(Counter())
    view.hello = "abc"
    assert view.answer == "abc"


def test_a_browser_that_cannot_inflate_gets_plain_frames():
    view = LatticeView(Counter())
    view.inflates = False
    assert unpack(view.frame)[0]["deflated"] is False


def test_play_stops_when_the_last_page_is_gone():
    async def play():
        view = LatticeView(Counter())
        root = view.get_root()
        view.playing = True
        await asyncio.sleep(0.05)
        view._cleanup(root)
        return view.playing

    assert asyncio.run(play()) is False


def test_the_still_is_the_last_frame_as_png():
    view = LatticeView(Counter())
    by_kind = view.still()
    view.color_by = "cell"
    assert by_kind.startswith(b"\x89PNG") and view.still() != by_kind
