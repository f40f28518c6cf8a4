"""Generated pictures, their settings, and loaders of pictures from outside."""

from pathlib import Path

import numpy as np
import pytest

from workbench.methods.neural_cpm import generators
from workbench.methods.neural_cpm.generators import (
    PAPER,
    SCENARIOS,
    digit_fields,
    digit_images,
    kinds_of,
    motion,
    poles,
    scatter,
    simulate,
    simulate_steps,
)
from workbench.methods.neural_cpm.loaders import load_labels, load_simulation, load_simulations
from workbench.methods.neural_cpm.measures import moments, variance_fraction

REFERENCE = Path(__file__).parents[3] / "shared" / "data" / "neural-cpm" / "cellular_mnist_sim1.npz"
SMALL = {"size": 30, "n_cells": 8, "V_target": 30, "radius": 8, "stages": ((1.0, 200.0),)}


def test_scenarios_hold_the_settings_of_the_official_code():
    assert SCENARIOS["cellsort-b"].matrix.tolist() == [[0, 2.5, 1], [2.5, 1, 4.5], [1, 4.5, 1]]
    assert [SCENARIOS[f"cellsort-{name}"].lam for name in "abdf"] == [0.1, 0.5, 0.1, 0.04]
    assert SCENARIOS["bipolar"].lam == pytest.approx(np.log1p(np.exp(0.5)), abs=5e-4)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_makes_living_cells_of_both_kinds(name):
    made = simulate(name, 3, seed=1, **SMALL)
    assert made.frames.shape == (3, 30, 30) and made.frames.dtype == np.int32
    assert np.bincount(made.kind).tolist() == [1, 4, 4]
    for frame in made.frames:
        volumes = np.bincount(frame.ravel(), minlength=9)[1:]
        assert volumes.min() >= 1 and 15 <= volumes.mean() <= 45
    assert (made.angle is not None) == (name == "bipolar")
    assert (made.label is not None) == (name == "digits")


def test_same_seed_same_pictures_whatever_the_size_of_a_report(monkeypatch):
    first = simulate("bipolar", 2, seed=4, **SMALL)
    monkeypatch.setattr(generators, "ATTEMPTS_A_STEP", 10_000)
    again, other = simulate("bipolar", 2, seed=4, **SMALL), simulate("bipolar", 2, seed=5, **SMALL)
    assert np.array_equal(first.frames, again.frames)
    assert not np.array_equal(first.frames, other.frames)


@pytest.mark.filterwarnings("ignore:cells touch the edge")
def test_bipolar_pictures_have_two_poles_of_kind_two_around_kind_one():
    made = simulate("bipolar", 12, seed=0, stages=((2.0, 400.0), (1.0, 300.0)))
    fraction = variance_fraction(moments(made.frames, made.kind).mean(0))
    assert fraction[0] < 0.45 < 0.7 < fraction[1]


def test_cells_of_kind_two_gather_on_the_digit():
    made = simulate("digits", 4, seed=0, stages=((2.0, 150.0), (1.0, 100.0)))
    images, labels = digit_images()
    assert set(made.label) <= set(labels)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(images), 4, replace=False)
    assert np.array_equal(made.label, labels[chosen])
    for frame, image in zip(made.frames, images[chosen], strict=True):
        distance = digit_fields(image, 60)[2]
        kinds = made.kind[frame]
        assert distance[kinds == 2].mean() < 0.5 * distance[kinds == 1].mean()


def test_steps_report_progress_up_to_the_end():
    done = [step.done for step in simulate_steps("cellsort-a", 2, **SMALL)]
    assert len(done) > 0 and done == sorted(done) and done[-1] == pytest.approx(1)


def test_fields_of_the_poles_follow_their_formula_and_turn_with_the_angle():
    fields, W = poles(36, 0.0), 36
    u, v = abs(3 - 17.5), abs(30 - 17.5)  # column 3, row 30: the axis lies along the columns
    h_1 = 0.5 * max(0, u - 0.1 * W) + 0.1 * max(0, v - 0.2 * W)
    h_2 = 0.5 * max(0, 0.24 * W - u) + 0.1 * max(0, v - 0.12 * W) + 0.3 * max(0, u - 0.34 * W)
    assert fields[:, 30, 3] == pytest.approx([0, h_1, h_2])
    assert poles(36, np.pi / 2) == pytest.approx(fields.transpose(0, 2, 1))


def test_digit_fields_vanish_on_the_ink_and_grow_away_from_it():
    image = np.zeros((28, 28))
    image[10:18, 10:18] = 1
    fields = digit_fields(image, 100)
    assert fields.shape == (3, 100, 100) and not fields[:2].any()
    assert abs(fields[2, 50, 50]) < 0.05
    assert fields[2, 50, 2] == pytest.approx(9.5, abs=0.6)  # in pixels of the image
    with pytest.raises(ValueError, match="square"):
        digit_fields(np.zeros((8, 12)), 60)


def test_starts_are_single_sites_within_the_radius():
    kind = kinds_of(10)
    starts = scatter(21, kind, 5, 4.0, np.random.default_rng(0))
    for frame in starts:
        sites = np.argwhere(frame)
        assert sorted(frame[frame > 0]) == list(range(1, 11))
        assert np.hypot(*(sites - 10).T).max() <= 4
    with pytest.raises(ValueError, match="n_cells = 10 do not fit on 1 sites"):
        scatter(21, kind, 1, 0.5, np.random.default_rng(0))


def test_motion_rule_pushes_kind_one_inwards_and_kind_two_outwards():
    frames = np.zeros((1, 10, 100), int)
    for identity, column in enumerate([10, 50, 90, 45, 55, 90], 1):
        frames[0, identity, column] = identity
    center, push = motion(frames, np.array([0, 1, 1, 1, 2, 2, 2]))
    assert center[0, 3].tolist() == [3, 90]
    assert not push[..., 0].any()
    assert push[0, :, 1].tolist() == [0, 1, 0, -1, -1, 1, 0]


def test_paper_sizes_build_and_take_their_first_steps():
    steps = simulate_steps("cellsort-b", 2, **PAPER["cellsort"])
    assert 0 < next(steps).done < 0.01
    images = np.zeros((2, 28, 28))
    images[:, 8:20, 8:20] = 1
    steps = simulate_steps("digits", 2, images=images, labels=[3, 4], **PAPER["digits"])
    assert 0 < next(steps).done <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate("cellsort-c", 1), "allowed are cellsort-a"),
        (lambda: simulate("bipolr", 1), "did you mean 'bipolar'"),
        (lambda: simulate("bipolar", 1, siz=30), "did you mean 'size'"),
        (lambda: simulate("bipolar", 0), "n = 0"),
    ],
)
def test_bad_requests_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def save(path, identities, kinds, **more):
    np.savez(path, data=np.stack([identities, kinds], axis=1), **more)
    return path


def two_frames():
    identities = np.zeros((2, 6, 6), np.int32)
    identities[:, 1:3, 1:3] = 1
    identities[:, 4, 2:5] = 2
    return identities, np.array([0, 2, 1])[identities]


def test_files_in_the_format_of_the_authors_are_read(tmp_path):
    identities, kinds = two_frames()
    first = save(tmp_path / "a.npz", identities, kinds, label=7)
    second = save(tmp_path / "b.npz", np.roll(identities, 1, 2), np.roll(kinds, 1, 2))
    frames, kind, label = load_simulation(first)
    assert np.array_equal(frames, identities) and kind.tolist() == [0, 2, 1] and label == 7
    frames, kind, labels = load_simulations([first, second])
    assert np.array_equal(frames[1], np.roll(identities[1], 1, 1))
    assert labels.tolist() == [7, -1]


def test_files_that_do_not_fit_are_named(tmp_path):
    identities, kinds = two_frames()
    good = save(tmp_path / "good.npz", identities, kinds)
    dead = identities.copy()
    dead[1][dead[1] == 1] = 0
    with pytest.raises(ValueError, match="cell 1 in frame 1"):
        load_simulation(save(tmp_path / "dead.npz", dead, kinds * (dead > 0)))
    mixed = kinds.copy()
    mixed[0, 1, 1] = 1
    with pytest.raises(ValueError, match="cell 1 has sites of more than one kind"):
        load_simulation(save(tmp_path / "mixed.npz", identities, mixed))
    other = save(tmp_path / "other.npz", identities, 3 - kinds - 3 * (kinds == 0))
    with pytest.raises(ValueError, match=r"other\.npz has another lattice or other cells"):
        load_simulations([good, other])
    np.savez(tmp_path / "empty.npz", image=identities)
    with pytest.raises(ValueError, match="needed is 'data'"):
        load_simulation(tmp_path / "empty.npz")


def test_published_simulation_is_read():
    if not REFERENCE.exists():
        pytest.skip("the reference lattice is not here")
    frames, kind, label = load_simulation(REFERENCE)
    assert frames.shape == (20, 100, 100) and label == 3
    assert np.bincount(kind).tolist() == [1, 25, 25]


@pytest.mark.parametrize("suffix", ["npy", "npz", "tif"])
def test_label_images_of_a_user_are_renumbered_by_kind(tmp_path, suffix):
    labels = np.zeros((2, 6, 6), np.uint16)
    labels[:, 1:3, 1:3], labels[:, 4, 2:5], labels[:, 0, 0] = 40, 7, 12
    path = tmp_path / f"labels.{suffix}"
    if suffix == "tif":
        from PIL import Image

        pages = [Image.fromarray(page) for page in labels]
        pages[0].save(path, save_all=True, append_images=pages[1:])
    else:
        (np.save if suffix == "npy" else np.savez)(path, labels)
    of_label = np.zeros(41, int)
    of_label[[40, 7, 12]] = 1, 2, 1
    frames, kind = load_labels(path, of_label)
    assert kind.tolist() == [0, 1, 1, 2]
    assert [frames[0, 0, 0], frames[0, 1, 1], frames[1, 4, 3]] == [1, 2, 3]
    assert load_labels(labels)[1].tolist() == [0, 1, 1, 1]


def test_label_images_that_do_not_fit_are_refused(tmp_path):
    labels = np.zeros((2, 6, 6), int)
    labels[:, 1, 1], labels[1, 3, 3] = 1, 2
    with pytest.raises(ValueError, match="picture 1 has cells of kinds"):
        load_labels(labels)
    with pytest.raises(ValueError, match="kinds has 2 entries but labels holds label 2"):
        load_labels(labels, np.array([0, 1]))
    with pytest.raises(ValueError, match="integer"):
        load_labels(labels / 2)
    with pytest.raises(ValueError, match=r"allowed are \.npz"):
        load_labels(tmp_path / "labels.csv")
