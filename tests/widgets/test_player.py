"""The frame player: one piece of HTML that stands alone."""

import html.parser
import json
import re

import numpy as np
import pytest

from workbench.widgets.player import FramePlayer, player_html

FRAMES = np.stack([np.full((6, 6), k) for k in (0, 1, 0)])
KIND = np.array([0, 1])


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def first(self, tag):
        return next(attributes for name, attributes in self.seen if name == tag)


def data(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page).group(1))


def test_it_holds_every_frame_with_its_time_and_shows_the_last():
    page = FramePlayer(FRAMES, KIND, [0, 10, 25.5], unit="MCS", caption="Sorting")._repr_html_()
    frames, labels, delay = data(page)
    assert labels == ["0 MCS", "10 MCS", "25.5 MCS"]
    assert len(frames) == 3 and frames[0] == frames[2] != frames[1]
    assert delay == pytest.approx(1000 / 12)
    tags = Tags(page)
    assert tags.first("img")["src"].endswith(frames[2])
    assert tags.first("input")["max"] == "2" == tags.first("input")["value"]


def test_everything_in_it_has_a_name_for_screen_readers():
    tags = Tags(FramePlayer(FRAMES, KIND, caption="Sorting")._repr_html_())
    assert tags.first("img")["alt"] == "Sorting, 2 steps"
    assert "Sorting" in tags.first("button")["aria-label"]
    assert "Sorting" in tags.first("input")["aria-label"]


def test_two_players_on_one_page_have_different_names():
    player = FramePlayer(FRAMES, KIND)
    names = {Tags(player._repr_html_()).first("figure")["data-player"] for _ in range(2)}
    assert len(names) == 2


def test_it_asks_for_nothing_from_outside():
    page = FramePlayer(FRAMES, KIND)._repr_html_()
    assert "http" not in page and "import" not in page


def test_kinds_may_change_from_frame_to_frame():
    same = FRAMES[[1, 1]]
    images = FramePlayer(same, np.array([[0, 1], [0, 2]])).images
    assert images[0] != images[1]


def test_a_caption_is_text_and_not_markup():
    page = player_html([b"x"], ["</script><b>"], caption="<b>&")
    assert "<b>" not in page.replace("&lt;b&gt;", "")
    assert data(page)[1] == ["</script><b>"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "frames is empty"),
        (([b"x"], []), "labels has 0 entries: 1 frames need as many"),
    ],
)
def test_a_replay_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        player_html(*arguments)


def test_a_rate_of_zero_and_a_flat_lattice_are_refused():
    with pytest.raises(ValueError, match="frames_per_second = 0"):
        player_html([b"x"], ["a"], frames_per_second=0)
    with pytest.raises(ValueError, match=r"frames has shape \(6, 6\)"):
        FramePlayer(FRAMES[0], KIND)
