"""The Python half of the perturbation view: packing, back-pressure, what is said, the still."""

import base64
import io
import json
import re
import struct

import numpy as np
import pytest
import torch
from PIL import Image

from workbench.widgets import images, perturbation_view
from workbench.widgets.attempts import attempt, ranking, signed
from workbench.widgets.perturbation_view import PerturbationView

RANDOM = np.random.default_rng(0)
GRAY = np.array([[0.0, 0.5], [0.25, 1.0]])
DELTA = np.array([[0.1, -0.2], [0.0, 0.05]])
COLOR, COLOR_DELTA = RANDOM.random((3, 6, 5)), 0.1 * RANDOM.normal(size=(3, 6, 5))
LOGITS = np.array([0.0, 3.0, -1.0, 2.0])


def unpack(buffer: bytes, dtype: str):
    size = struct.unpack("<I", buffer[:4])[0]
    return json.loads(buffer[4 : 4 + size]), np.frombuffer(buffer[4 + size :], dtype)


def clean_of(view):
    head, codes = unpack(view.image, "<u2")
    return codes.reshape(head["shape"]) / 65535


def delta_of(view):
    head, codes = unpack(view.frame, "<i2")
    return codes.reshape(view.last.clean.shape) * head["peak"] / 32767


def head_of(view):
    return unpack(view.frame, "<i2")[0]


@pytest.mark.parametrize("pair", [(GRAY, DELTA), (COLOR, COLOR_DELTA)])
def test_what_the_browser_unpacks_is_finer_than_what_it_shows(pair):
    view = PerturbationView()
    view.show(*pair, LOGITS)
    np.testing.assert_allclose(clean_of(view), pair[0], atol=1e-5)
    np.testing.assert_allclose(delta_of(view), pair[1], atol=2e-5)


def test_an_image_with_one_channel_is_gray_and_a_perturbation_of_zeros_is_drawn():
    view = PerturbationView()
    view.show(GRAY[None], 0 * GRAY[None], LOGITS)
    assert clean_of(view).shape == (2, 2) and not delta_of(view).any()
    assert head_of(view)["norms"] == [0, 0, 0]


def test_tensors_with_gradients_are_taken():
    clean, delta = torch.tensor(GRAY), torch.tensor(DELTA, requires_grad=True)
    view = PerturbationView()
    view.show(clean, delta, torch.tensor(LOGITS), torch.tensor([1, 3]), label=torch.tensor(2))
    np.testing.assert_allclose(delta_of(view), DELTA, atol=2e-5)
    assert view.last.targets == (1, 3) and view.last.label == 2


def test_the_norms_are_those_of_all_pixels_and_channels():
    for p, norm in zip((1, 2, np.inf), attempt(COLOR, COLOR_DELTA, LOGITS).norms, strict=True):
        assert norm == pytest.approx(np.linalg.norm(COLOR_DELTA.ravel(), p))


@pytest.mark.parametrize(
    ("targets", "running", "status", "achieved"),
    [
        ([1, 3], False, "found", 2),
        ([1, 3, 0, 2], False, "found", 4),
        ([1, 0], False, "not found", 1),
        ([3, 1], False, "not found", 0),
        ([1, 3], True, "running", 2),
        ([], False, "", 0),
    ],
)
def test_the_logits_say_whether_the_order_is_found(targets, running, status, achieved):
    shown = attempt(GRAY, DELTA, LOGITS, targets, running=running)
    assert (shown.status, shown.achieved) == (status, achieved)


def test_the_rows_are_the_first_places_and_all_targets_and_the_true_class():
    logits = np.arange(94.0)
    rows = ranking(attempt(GRAY, DELTA, logits, [10, 93], label=50), 3)
    assert [(row["class"], row["place"], row["wanted"]) for row in rows] == [
        (93, 0, 1), (92, 1, None), (91, 2, None), (50, 43, None), (10, 83, 0)
    ]  # fmt: skip


def test_what_was_shown_last_before_a_page_exists_is_what_the_page_gets():
    view = PerturbationView()
    for k in range(10):
        view.show(GRAY, DELTA, LOGITS, iteration=k)
    assert head_of(view)["iteration"] == 9


def test_no_more_than_two_frames_are_ahead_and_the_last_state_arrives():
    view = PerturbationView()
    view.get_root()  # a page
    sent = []
    view.param.watch(lambda event: sent.append(head_of(view)["iteration"]), "frame")
    for k in range(10):
        view.show(GRAY, DELTA, LOGITS, iteration=k)
    assert sent == [0, 1]
    view.acknowledged = 1
    assert sent == [0, 1, 9]
    view.acknowledged = 3
    assert sent == [0, 1, 9]


def test_a_page_that_is_silent_for_long_gets_a_frame_again(monkeypatch):
    view = PerturbationView()
    view.get_root()
    now = [100.0]
    monkeypatch.setattr(perturbation_view.time, "monotonic", lambda: now[0])
    for k in range(3):
        view.show(GRAY, DELTA, LOGITS, iteration=k)
    assert head_of(view)["iteration"] == 1
    now[0] += perturbation_view.PATIENCE_S + 0.1
    view.show(GRAY, DELTA, LOGITS, iteration=3)
    assert head_of(view)["iteration"] == 3


def test_the_clean_image_is_sent_only_when_it_is_another_one():
    view = PerturbationView()
    view.show(GRAY, DELTA, LOGITS)
    first = view.image
    view.acknowledged = 1
    view.show(GRAY.copy(), 2 * DELTA, LOGITS)
    assert view.image is first and head_of(view)["image"] == 1
    view.acknowledged = 2
    view.show(1 - GRAY, DELTA, LOGITS)
    assert head_of(view)["image"] == 2 == unpack(view.image, "<u2")[0]["id"]


def test_an_image_changed_in_place_is_noticed():
    view, clean = PerturbationView(), GRAY.copy()
    view.show(clean, DELTA, LOGITS)
    clean[0, 0] = 0.75
    view.show(clean, DELTA, LOGITS)
    assert clean_of(view)[0, 0] == pytest.approx(0.75, abs=1e-5)


def test_the_largest_channel_keeps_its_sign():
    delta = np.array([0.1, -0.3, 0.2])[:, None, None]
    assert signed(delta).item() == -0.3
    assert [signed(delta, c).item() for c in ("red", "green", "blue")] == [0.1, -0.3, 0.2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"clean": np.zeros(4)}, r"clean has shape \(4,\): use \(H, W\)"),
        ({"clean": np.zeros((2, 4, 4))}, r"clean has shape \(2, 4, 4\)"),
        ({"clean": 255 * GRAY}, "clean has values 0 to 255, allowed are 0 to 1: divide by 255"),
        ({"clean": np.full((2, 2), np.nan)}, "clean has values nan"),
        (
            {"perturbation": np.zeros((3, 3))},
            r"perturbation has shape \(3, 3\): clean has \(2, 2\)",
        ),
        ({"perturbation": np.full((2, 2), np.inf)}, "perturbation has values that are not finite"),
        ({"logits": np.zeros((1, 4))}, r"logits of shape \(1, 4\) must be \(C,\) finite"),
        ({"logits": np.array([np.nan, 1])}, "finite"),
        ({"targets": [4]}, "targets holds 4: allowed are 0 to 3"),
        ({"targets": [1, 1]}, r"targets = \[1, 1\] repeats a class"),
        ({"label": 9}, "label = 9 is not a class: allowed are 0 to 3"),
        ({"logits": np.zeros(5)}, "logits has 5 entries: there are 4 class_names"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line_and_nothing_is_sent(changes, message):
    view = PerturbationView("abcd")
    arguments = {"clean": GRAY, "perturbation": DELTA, "logits": LOGITS, **changes}
    with pytest.raises(ValueError, match=message):
        view.show(**arguments)
    assert view.frame == b"" and view.last is None


def test_an_unknown_channel_names_those_that_exist():
    with pytest.raises(ValueError, match="channel = 'x' is not allowed: use largest, red"):
        signed(DELTA, "x")


def pictures(page):
    coded = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    return [np.asarray(Image.open(io.BytesIO(base64.b64decode(c))).convert("RGB")) for c in coded]


def test_the_still_holds_the_three_pictures_at_the_gain_of_the_view():
    view = PerturbationView("abcd", gain=5)
    view.show(GRAY, DELTA, LOGITS, [1, 0])
    clean, delta, attacked = pictures(view.still(width=2))
    assert clean[::2, ::2, 0].tolist() == [[0, 128], [64, 255]]
    assert attacked[::2, ::2, 0].tolist() == [[26, 76], [64, 255]]  # clipped to what is seen
    strongest = images.colormap("diverging")[0]
    assert "#" + bytes(delta[0, 2]).hex().upper() == strongest  # -0.2 at gain 5
    assert delta[2, 0].tolist() == [255, 255, 255]


def test_a_still_in_color_has_three_channels():
    view = PerturbationView()
    view.show(COLOR, COLOR_DELTA, LOGITS)
    assert "channel: largest" in view.still()
    clean = pictures(view.still(width=5))[0]
    np.testing.assert_array_equal(clean[::2, ::2], np.rint(255 * COLOR).transpose(1, 2, 0))


def test_the_still_says_norms_order_and_what_is_reached_without_script():
    view = PerturbationView(["cat", "<dog>", "cow", "hen"], caption="A & B", gain=5)
    view.show(GRAY, DELTA, LOGITS, [1, 0], label=3, iteration=4, iterations=9)
    page = view.still()
    assert "✗ not found, iteration 4 of 9, 1 of 2 in place" in page
    assert "ℓ<sub>1</sub> = 0.35" in page and "ℓ<sub>∞</sub> = 0.2" in page
    assert "−0.2</span><span>0</span><span>+0.2" in page
    assert "1 ✓" in page and "2 ↑1" in page and "−1.00" in page
    assert 'hen <span style="color:#616E7C">true class' in page
    assert "&lt;dog&gt;" in page and "<dog>" not in page and "A &amp; B" in page
    assert "<script" not in page and "http" not in page
    assert page._repr_html_() == page


def test_a_still_of_nothing_is_refused():
    with pytest.raises(ValueError, match="call show"):
        PerturbationView().still()
