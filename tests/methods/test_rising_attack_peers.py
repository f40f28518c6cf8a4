"""Anchors at K = 1: foolbox agrees with the SQP, and its absence is said in one line."""

import sys

import numpy as np
import pytest
import torch

from workbench.methods.rising_attack import peers
from workbench.methods.rising_attack.attacks import attack
from workbench.methods.rising_attack.digits import held_out_digits, load_digits_model
from workbench.methods.rising_attack.networks import attackable
from workbench.methods.rising_attack.ranking import achieved, random_targets
from workbench.steps import Cancelled

needs_foolbox = pytest.mark.skipif(not peers.available(), reason="foolbox is not installed")


@pytest.fixture(scope="module")
def bench():
    model = load_digits_model(0)
    images, labels = held_out_digits()
    chosen = attackable([model], images, labels, 8)
    x, labels = images[chosen], labels[chosen]
    return model, x, random_targets(labels, 1, 10)


@needs_foolbox
@pytest.mark.parametrize(("method", "bound"), [("ddn", 1.03), ("fmn", 1.0)])
def test_the_sqp_needs_no_more_than_a_peer(bench, method, bound):
    # Prototype, 24 digits: DDN .815, FMN 1.345, SQP .806-.808.
    model, x, targets = bench
    theirs, ours = peers.peer(model, x, targets, method), attack(model, x, targets, iters=20)
    assert theirs.success.all() and ours.success.all()
    assert ours.l2.mean() <= bound * theirs.l2.mean()
    assert np.allclose(theirs.l2, theirs.delta.flatten(1).norm(dim=1), atol=1e-6)
    with torch.no_grad():
        assert achieved(model(x + theirs.delta), targets).all()


@needs_foolbox
def test_a_peer_repeats_and_leaves_the_model_alone(bench):
    model, x, targets = bench
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, again = (peers.peer(model, x[:2], targets[:2], "ddn", seed=1) for _ in range(2))
    assert torch.equal(first.delta, again.delta)
    assert torch.equal(before, torch.get_rng_state())
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


@needs_foolbox
@pytest.mark.parametrize("method", peers.PEERS)
def test_a_peer_ends_at_its_next_look_at_the_model_when_told_to(bench, method):
    model, x, targets = bench
    asked = []

    def stopped():
        asked.append(method)
        return len(asked) > 5

    with pytest.raises(Cancelled):
        peers.peer(model, x[:2], targets[:2], method, stopped=stopped)
    assert len(asked) == 6


def test_only_the_first_place_compares_and_names_are_checked(bench):
    model, x, _ = bench
    with pytest.raises(ValueError, match="no order beyond the first place"):
        peers.peer(model, x, torch.zeros(len(x), 2, dtype=torch.long), "cw")
    with pytest.raises(ValueError, match="did you mean 'ddn'"):
        peers.peer(model, x, torch.zeros(len(x), 1, dtype=torch.long), "dnn")


def test_a_missing_foolbox_is_said_with_what_to_install(bench, monkeypatch):
    model, x, targets = bench
    monkeypatch.setitem(sys.modules, "foolbox", None)
    assert not peers.available()
    with pytest.raises(ImportError, match=r"pip install workbench\[peers\]"):
        peers.peer(model, x, targets, "ddn")
