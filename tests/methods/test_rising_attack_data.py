"""Digits, glyphs and their networks: images in [0, 1], stated accuracy, the same every time."""

import numpy as np
import pytest
import torch

from workbench.methods.rising_attack import digits, glyphs, networks
from workbench.methods.rising_attack.networks import accuracy, attackable
from workbench.numerics.threads import one_thread
from workbench.steps import run


def same_weights(first, second):
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_digits_are_split_once_for_all_seeds():
    train, labels = digits.training_digits()
    held, held_labels = digits.held_out_digits()
    assert train.shape == (1297, 1, 8, 8) and held.shape == (500, 1, 8, 8)
    assert held.min() == 0 and held.max() == 1 and held.dtype == torch.float32
    # The same 1,797 images as scikit-learn's, each on one side.
    from sklearn.datasets import load_digits

    theirs = load_digits()
    ours = torch.cat([train, held]).flatten(1).numpy() * 16
    ours = np.c_[ours, torch.cat([labels, held_labels]).numpy()]
    theirs = np.c_[theirs.data, theirs.target]
    assert sorted(map(tuple, ours)) == sorted(map(tuple, theirs))


@pytest.mark.parametrize("seed", [0, 1])
def test_the_digits_network_reads_about_97_percent_of_held_out_digits(seed):
    model = digits.load_digits_model(seed)
    assert not model.training
    assert 0.95 <= accuracy(model, *digits.held_out_digits()) <= 0.99  # measured .974, .962, .982


def test_glyphs_are_mid_gray_and_the_same_for_a_seed():
    images, labels = glyphs.glyph94(2, seed=5)
    assert images.shape == (188, 1, 28, 28) and labels.bincount().tolist() == [2] * 94
    again, _ = glyphs.glyph94(2, seed=5)
    other, _ = glyphs.glyph94(2, seed=6)
    assert torch.equal(images, again) and not torch.equal(images, other)
    # Paper .3-.4, ink at most .4 above it, noise .02: room on both sides of the box.
    assert images.min() > 0.15 and images.max() < 0.95
    assert 0.29 < images.flatten(1).median(1).values.min()
    assert images.flatten(1).median(1).values.max() < 0.42
    assert "".join(glyphs.CLASS_NAMES[:3]) == '!"#' and glyphs.CLASS_NAMES[-1] == "~"
    assert len(set(glyphs.CLASS_NAMES)) == 94


def test_every_class_shows_its_own_shape():
    # Nearest mean image of another rendering: measured .77 (I, l and | share a shape), chance .01.
    first, _ = glyphs.glyph94(6, seed=1)
    second, _ = glyphs.glyph94(6, seed=2)

    def means(images):
        flat = images.flatten(1) - images.flatten(1).median(1, keepdim=True).values
        return torch.nn.functional.normalize(flat.view(94, 6, -1).mean(1), dim=1)

    found = (means(first) @ means(second).T).argmax(1)
    assert (found == torch.arange(94)).double().mean() > 0.6


def test_without_freetype_the_error_says_what_to_install(monkeypatch):
    glyphs._font.cache_clear()
    monkeypatch.setattr(glyphs.pillow_features, "check", lambda name: False)
    with pytest.raises(OSError, match=r"no FreeType.*install"):
        glyphs.glyph94(1)
    glyphs._font.cache_clear()


def test_the_wide_network_is_the_one_of_the_study():
    model = glyphs.wide_network()
    assert sum(p.numel() for p in model.parameters()) == 314_206
    x = torch.rand(2, 1, 28, 28)
    assert model.feats(x).shape == (2, 3136)
    assert torch.equal(model.head(model.feats(x)), model(x))
    assert glyphs.wide_network(196).feats(x).shape == (2, 196)
    assert glyphs.deep_network(128).feats(x).shape == (2, 128)
    with pytest.raises(ValueError, match=r"features = 200; allowed are multiples of 49.*196"):
        glyphs.wide_network(200)
    with pytest.raises(ValueError, match="n_per_class = 0"):
        glyphs.glyph94(0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_wide_network_reads_92_to_94_percent_of_held_out_glyphs(seed):
    model = glyphs.load_glyph_model(seed)
    assert 0.92 <= accuracy(model, *glyphs.held_out_glyphs()) <= 0.94


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Two epochs, and an empty cache folder."""
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    monkeypatch.setattr(digits, "EPOCHS", 2)
    return tmp_path / "rising_attack"


def test_a_kept_network_equals_a_trained_one_bit_for_bit(short, monkeypatch):
    trained = digits.load_digits_model(3)
    (file,) = short.iterdir()
    kept = digits.load_digits_model(3)
    file.unlink()
    torch.rand(7)  # neither the state of the generator nor the number of threads matters
    with one_thread():
        again = digits.load_digits_model(3)
    assert same_weights(trained, kept) and same_weights(trained, again)
    assert not same_weights(trained, digits.load_digits_model(4))
    steps = digits.digits_model_steps(3)
    assert next(steps).message == "trained before"


def test_training_leaves_the_random_state_alone(short):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    digits.load_digits_model(0)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04 half a file"])
def test_an_unreadable_kept_network_is_made_again(short, content):
    trained = digits.load_digits_model(0)
    (file,) = short.iterdir()
    file.write_bytes(content)
    assert same_weights(trained, digits.load_digits_model(0))
    (mended,) = short.iterdir()  # one file, no temporary one left
    assert mended == file and file.stat().st_size > 1000


def test_a_folder_that_cannot_be_made_is_no_error(monkeypatch, tmp_path):
    blocked = tmp_path / "a_file"
    blocked.write_text("")
    monkeypatch.setenv("WORKBENCH_DATA", str(blocked))
    monkeypatch.setattr(digits, "EPOCHS", 1)
    assert isinstance(digits.load_digits_model(0), networks.Classifier)


def test_the_key_changes_with_what_weights_depend_on(short):
    def make():
        return torch.nn.Linear(2, 2)

    def train():
        yield from ()
        return make()

    run(networks.kept_steps("toy", make(), train, ["a", 1]))
    run(networks.kept_steps("toy", make(), train, ["a", 2]))
    assert len(list(short.iterdir())) == 2


def test_attackable_images_are_read_by_all_and_spread_over_the_classes():
    models = [digits.load_digits_model(seed) for seed in (0, 1)]
    images, labels = digits.held_out_digits()
    chosen = attackable(models, images, labels, 20)
    assert len(set(chosen.tolist())) == 20
    assert labels[chosen].bincount(minlength=10).tolist() == [2] * 10
    for model in models:
        assert accuracy(model, images[chosen], labels[chosen]) == 1
    assert torch.equal(chosen, attackable(models, images, labels, 20))
    # A longer sample starts with the shorter one.
    assert torch.equal(attackable(models, images, labels, 50)[:20], chosen)
    with pytest.raises(ValueError, match=r"n = 501 images; 4.. are classified correctly"):
        attackable(models, images, labels, 501)


@pytest.mark.parametrize("total", [7, 20, 525])
def test_the_one_cycle_policy_is_torchs(total):
    optimizer = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=total)
    for step in range(total):
        group = optimizer.param_groups[0]
        wanted = group["lr"], group["betas"][0]
        assert networks.one_cycle(step, total, 3e-3) == pytest.approx(wanted, rel=1e-9)
        optimizer.step()
        if step < total - 1:
            schedule.step()
