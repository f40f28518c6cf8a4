"""The digit classifier: it sees kinds only, learns shapes, and names what is wrong with input."""

import numpy as np
import pytest

from workbench.methods.neural_cpm.digits import (
    DigitClassifier,
    accuracy,
    kind_maps,
    train_classifier,
    train_classifier_steps,
)
from workbench.methods.neural_cpm.ensemble import permute_identities
from workbench.methods.neural_cpm.measures import inception_score

KIND = np.array([0, 1, 1, 2, 2])


def bars(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Kind 2 forms a horizontal (0) or vertical (1) bar of two cells on a ground of kind 1."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    frames = rng.integers(0, 3, (n, 16, 16)).astype(np.int32)
    for frame, label in zip(frames, labels, strict=True):
        at = rng.integers(2, 11)
        view = frame if label == 0 else frame.T
        view[at : at + 4] = rng.integers(3, 5, (4, 16))
    return frames, labels


def test_kind_maps_are_one_hot_and_blind_to_identities():
    frames, _ = bars(5)
    maps = kind_maps(frames, KIND)
    assert maps.shape == (5, 3, 16, 16)
    assert (maps.sum(1) == 1).all()
    swapped = np.array([0, 2, 1, 4, 3], np.int32)[frames]
    assert (kind_maps(swapped, KIND) == maps).all()


def test_it_learns_shapes_and_reads_new_ones():
    frames, labels = bars(200)
    classifier = train_classifier(frames, KIND, labels, epochs=20, batch=16)
    fresh, truth = bars(60, seed=1)
    assert accuracy(classifier, fresh, KIND, truth) > 0.95
    # Two classes, read with certainty: an inception score close to 2; one class scores 1.
    assert inception_score(classifier.probabilities(fresh, KIND)) > 1.6
    assert inception_score(classifier.probabilities(fresh[truth == 1], KIND)) < 1.2


def test_shuffled_labels_cannot_be_learned():
    frames, labels = bars(120)
    wrong = np.random.default_rng(2).permutation(labels)
    classifier = train_classifier(frames, KIND, wrong, epochs=3)
    fresh, truth = bars(100, seed=1)
    assert 0.2 < accuracy(classifier, fresh, KIND, truth) < 0.8


def test_the_same_seed_gives_the_same_classifier():
    frames, labels = bars(40)
    first, again = (train_classifier(frames, KIND, labels, epochs=1, seed=3) for _ in range(2))
    np.testing.assert_array_equal(
        first.probabilities(frames, KIND), again.probabilities(frames, KIND)
    )


def test_steps_carry_the_classifier_and_reach_the_end():
    frames, labels = bars(64)
    steps = list(train_classifier_steps(frames, KIND, labels, epochs=2, batch=32))
    assert [step.done for step in steps] == [0.25, 0.5, 0.75, 1.0]
    assert isinstance(steps[0].data, DigitClassifier)


def test_probabilities_sum_to_one_at_the_teaching_size():
    frames = permute_identities(np.repeat(bars(1)[0], 4, 1).repeat(4, 2), np.random.default_rng(0))
    p = DigitClassifier().probabilities(frames, KIND)
    assert p.shape == (1, 10)
    assert p.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [([0, 1], "2 digits for 3 frames"), ([0, 1, 10], "digits hold 10"), ([-1, 1, 1], "hold -1")],
)
def test_bad_input_is_named_in_one_line(labels, message):
    with pytest.raises(ValueError, match=message):
        train_classifier(bars(3)[0], KIND, labels)
