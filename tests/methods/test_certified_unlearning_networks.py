"""Batched networks of certified unlearning: gradients against autograd, clipping, splits."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from workbench import steps as work
from workbench.methods.certified_unlearning import data, loaders, networks

SIZES = [(6, 5, 3), (6, 4, 4, 3), (6, 3)]


def random_task(sizes, S=3, B=7, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(S, networks.count(sizes), generator=generator, dtype=dtype)
    x = torch.randn(S, B, sizes[0], generator=generator, dtype=dtype)
    y = torch.randint(0, sizes[-1], (S, B), generator=generator)
    return w, x, y


def module_of(w, sizes):
    """One network as torch's own layers."""
    parts = []
    for (weight, bias), (i, o) in zip(
        networks.layers(w[None], sizes), itertools.pairwise(sizes), strict=True
    ):
        layer = nn.Linear(i, o, dtype=w.dtype)
        layer.weight.data, layer.bias.data = weight[0].T.clone(), bias[0, 0].clone()
        parts += [layer, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def gradient_of(module, sizes):
    rows = []
    for layer in module:
        if isinstance(layer, nn.Linear):
            rows += [layer.weight.grad.T.flatten(), layer.bias.grad]
    return torch.cat(rows)


@pytest.mark.parametrize("sizes", SIZES)
def test_gradients_agree_with_autograd_of_a_single_network(sizes):
    w, x, y = random_task(sizes)
    found, losses = networks.gradient(w, x, y, sizes)
    for row in range(len(w)):
        module = module_of(w[row], sizes)
        loss = nn.functional.cross_entropy(module(x[row]), y[row])
        loss.backward()
        assert losses[row].mean().item() == pytest.approx(loss.item(), rel=1e-12)
        assert (found[row] - gradient_of(module, sizes)).abs().max() < 1e-6


def test_gradients_agree_with_finite_differences():
    sizes = (6, 5, 3)
    w, x, y = random_task(sizes, S=1)
    found, _ = networks.gradient(w, x, y, sizes)
    for place in range(0, networks.count(sizes), 7):
        step = torch.zeros_like(w)
        step[0, place] = 1e-6
        up, down = (networks.losses(w + s, x, y, sizes).mean() for s in (step, -step))
        assert found[0, place].item() == pytest.approx((up - down) / 2e-6, abs=1e-4)


def test_clipped_sums_agree_with_a_gradient_for_each_example():
    sizes = (6, 4, 4, 3)
    w, x, y = random_task(sizes)
    weights = torch.ones(3, 7, dtype=torch.float64)
    weights[:, -2:] = 0
    found, _ = networks.gradient(w, x, y, sizes, clip=0.5, weights=weights)
    each = torch.stack([networks.gradient(w, x[:, [b]], y[:, [b]], sizes)[0] for b in range(5)])
    clipped = each * (0.5 / each.norm(dim=2, keepdim=True)).clamp(max=1)
    assert each.norm(dim=2).max() > 0.5
    assert torch.allclose(found, clipped.sum(0), atol=1e-12)


def test_clipping_keeps_direction_and_zero_and_is_idempotent():
    v = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    once = networks.clip(v, 1.0)
    assert torch.equal(networks.clip(once, 1.0 + 1e-6), once)
    assert once.norm(dim=1).max() <= 1 + 1e-6
    assert torch.allclose(once[0], v[0] / 5) and torch.equal(once[1:], v[1:])


def test_starts_have_the_variances_of_their_kinds_and_depend_on_the_seed_alone():
    sizes = (400, 300, 10)
    lecun, uniform = (networks.initial(sizes, [5], kind=k) for k in networks.KINDS)
    assert lecun[0, : 400 * 300].std() == pytest.approx(400**-0.5, rel=0.02)
    assert lecun[0, 120_000:120_300].abs().max() == 0  # biases
    assert uniform[0, : 400 * 300].std() == pytest.approx((3 * 400) ** -0.5, rel=0.02)
    assert uniform[0, 120_000:120_300].abs().max() > 0
    both = networks.initial(sizes, [4, 5], scale=0.3)
    assert torch.equal(both[1], 0.3 * lecun[0])
    with pytest.raises(ValueError, match="allowed are lecun, torch"):
        networks.initial(sizes, [0], kind="he")


def test_the_network_of_the_study_has_385_parameters():
    assert networks.count((64, 5, 10)) == 385 and networks.count((64, 64, 10)) == 4810


# Data --------------------------------------------------------------------------------------------


def test_splits_have_the_sizes_of_the_specification_and_share_nothing():
    s = data.split([0, 1])
    sizes = {part: getattr(s, part).shape[1] for part in data.PARTS}
    assert sizes == {"test": 360, "validation": 180, "retain": 1132, "forget": 125}
    for row in range(2):
        every = torch.cat([getattr(s, part)[row] for part in data.PARTS])
        assert torch.equal(every.sort().values, torch.arange(1797))
    assert not torch.equal(s.test[0], s.test[1])
    assert torch.equal(data.split([1]).forget[0], s.forget[1])  # whatever else is in the batch
    assert torch.equal(s.own, s.labels.expand(2, -1))
    assert s.images.min() == 0 and s.images.max() == 1


def test_wrong_labels_are_wrong_in_the_forget_and_validation_sets_only():
    s = data.split([3], mislabel=True)
    for part, wrong in (("test", 0), ("retain", 0), ("forget", 1), ("validation", 1)):
        _, own = s.of(part)
        _, true = s.of(part, true=True)
        assert (own != true).float().mean() == wrong


def test_batches_are_of_their_part_and_each_epoch_takes_all():
    s = data.split([0, 7])
    made = data.batches(s.retain, 32, 80, [0, 7])
    assert made.shape == (80, 2, 32)
    for row in range(2):
        assert set(made[:, row].flatten().tolist()) <= set(s.retain[row].tolist())
        epoch = made[:, row].flatten()[:1132]
        assert len(set(epoch.tolist())) == 1132
    alone = data.batches(data.split([7]).retain, 32, 80, [7])
    assert torch.equal(alone[:, 0], made[:, 1])
    assert not torch.equal(data.batches(s.retain, 32, 80, [0, 7], stream=1), made)


def test_own_arrays_and_bad_shares():
    rng = np.random.default_rng(0)
    own = rng.random((100, 12)).astype(np.float32), rng.integers(0, 10, 100)
    s = data.split([0], 0.25, data=own, test=20, validation=20)
    assert s.of("forget")[0].shape == (1, 15, 12)
    with pytest.raises(ValueError, match=r"forget_frac = 0\.005 of 60 training examples leaves 0"):
        data.split([0], 0.005, data=own, test=20, validation=20)
    with pytest.raises(ValueError, match="allowed are test, validation, retain, forget"):
        s.of("train")


# The paper's networks ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "d", "shape"),
    [("mnist", 3985, (1, 28, 28)), ("cifar10", 20042, (3, 32, 32)), ("transfer", None, (512,))],
)
def test_the_papers_networks_have_their_sizes_and_no_buffers(name, d, shape):
    model = loaders.paper_network(name)
    assert model(torch.zeros(2, *shape)).shape == (2, 10)
    assert not list(model.buffers())
    if d:
        assert sum(w.numel() for w in model.parameters()) == d
    again = loaders.paper_network(name)
    assert all(map(torch.equal, model.parameters(), again.parameters()))


def test_augmentation_turns_a_little_and_mirrors_half():
    images = torch.zeros(200, 1, 9, 9)
    images[:, 0, 4, 7] = 1.0  # right of the middle
    turned = loaders.augmented(images, torch.Generator().manual_seed(0))
    left = turned[:, 0, :, :4].sum((1, 2)) > turned[:, 0, :, 5:].sum((1, 2))
    assert turned.shape == images.shape and 70 < int(left.sum()) < 130
    dark = torch.full((4, 1, 28, 28), -0.424)  # normalized MNIST has no grey corners
    assert torch.allclose(loaders.augmented(dark, background=-0.424), dark, atol=1e-6)


def test_the_papers_protocol_trains_its_network():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 800)
    images = rng.normal(0, 0.3, (800, 1, 28, 28)).astype(np.float32)
    images[np.arange(800), 0, 2 * labels + 4, :] += 2.0  # a row says the digit
    network, seen = loaders.paper_network("mnist"), []
    accuracy = work.run(
        loaders.train_steps(network, images, labels, "mnist", epochs=30), seen.append
    )
    reported = [step.data for step in seen if step.data is not None]
    assert len(reported) == 30 and reported[-1] == accuracy > 0.2
    with pytest.raises(ValueError, match="epochs for transfer must be given"):
        work.run(loaders.train_steps(network, images, labels, "transfer"))


def test_paper_data_that_is_not_there_is_one_line(tmp_path):
    pytest.importorskip("torchvision")
    with pytest.raises(FileNotFoundError, match="download=True") as error:
        loaders.load_paper_data("cifar10", tmp_path)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="did you mean 'mnist'"):
        loaders.load_paper_data("mnst")
    with pytest.raises(ValueError, match=r"needed is \(n, 3, height, width\)"):
        loaders.transfer_features(torch.zeros(2, 1, 8, 8))
