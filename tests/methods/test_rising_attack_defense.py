"""Defenses: PGD stays in its ball, certificates have their closed form, no attack is inside one."""

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, norm
from torch import nn

from workbench.methods.rising_attack import defense
from workbench.methods.rising_attack.attacks import attack
from workbench.methods.rising_attack.defense import (
    ABSTAIN,
    Smoothed,
    certify,
    curves,
    load_defended,
    lower_bound,
    ordered_vote,
    pgd,
    predict,
    reached_within,
)
from workbench.methods.rising_attack.digits import held_out_digits, load_digits_model
from workbench.methods.rising_attack.networks import accuracy, attackable
from workbench.methods.rising_attack.ranking import random_targets
from workbench.steps import run


@pytest.fixture(scope="module")
def bench():
    model = load_digits_model(0)
    images, labels = held_out_digits()
    chosen = attackable([model], images, labels, 8)
    return images[chosen], labels[chosen]


def half_space(weight, bias=0.0):
    """A linear classifier of two classes: class 1 where weight x + bias > 0."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(len(weight), 2))
    with torch.no_grad():
        model[1].weight[:] = torch.stack([torch.zeros(len(weight)), torch.tensor(weight)])
        model[1].bias[:] = torch.tensor([0.0, bias])
    return model.eval()


def test_the_lower_bound_is_clopper_pearson():
    for successes, n, alpha in [(0, 10, 0.05), (7, 10, 0.05), (10, 10, 0.001), (480, 512, 0.01)]:
        theirs = binomtest(successes, n, alternative="greater")
        expected = theirs.proportion_ci(1 - alpha, method="exact").low
        assert lower_bound(np.array([successes]), n, alpha)[0] == pytest.approx(expected, abs=1e-12)
    # All of n: the closed form alpha^(1/n).
    assert lower_bound(np.array([512]), 512, 0.001)[0] == pytest.approx(0.001 ** (1 / 512))


def test_the_certificate_of_a_half_space_is_its_distance():
    # For a linear classifier the certified radius tends to the distance to the plane, from below.
    weight, sigma = (0.6, 0.8, 0.0, 0.0), 0.25
    model = half_space(weight)
    x = torch.tensor([[[0.3, 0.4], [0.0, 0.0]], [[0.06, 0.08], [0.9, 0.9]]]).unsqueeze(1)
    distances = np.array([0.5, 0.1])
    certificate = certify(model, x, sigma, n=20_000, alpha=0.001)
    assert certificate.classes.tolist() == [1, 1]
    assert (certificate.radius <= distances).all()
    assert np.allclose(certificate.radius, distances, rtol=0.15)
    assert np.allclose(certificate.radius, sigma * norm.ppf(certificate.lower))
    # A radius can never exceed what n draws may show.
    ceiling = sigma * norm.ppf(0.001 ** (1 / 100))
    far = certify(model, 50 * x[:1], sigma, n=100, alpha=0.001)
    assert far.radius[0] == pytest.approx(ceiling)


def test_on_the_plane_both_prediction_and_certificate_abstain():
    model, x = half_space((1.0, -1.0, 0.0, 0.0)), torch.full((1, 1, 2, 2), 0.5)
    certificate = certify(model, x, n=500)
    assert certificate.classes[0] == ABSTAIN and certificate.radius[0] == 0
    assert predict(model, x, n=500)[0] == ABSTAIN
    assert predict(model, torch.tensor([[[[0.9, 0.1], [0.0, 0.0]]]]), n=500)[0] == 1


def test_the_smoothed_logits_of_a_linear_model_are_the_mean_of_sigmoids():
    model, x = half_space((1.0, 2.0, 0.0, -1.0)), torch.rand(3, 1, 2, 2)
    smoothed = Smoothed(model, (1, 2, 2), sigma=0.3, n=40, seed=2)
    noisy = x.unsqueeze(1) + smoothed.noise
    probability = torch.sigmoid(model[1].weight[1].detach() @ noisy.flatten(2).transpose(1, 2))
    assert torch.allclose(smoothed(x)[:, 1].exp(), probability.mean(1), atol=1e-6)
    assert torch.allclose(smoothed(x).exp().sum(1), torch.ones(3), atol=1e-6)
    assert torch.equal(smoothed(x), smoothed(x))
    other = Smoothed(model, (1, 2, 2), sigma=0.3, n=40, seed=3)
    assert not torch.allclose(smoothed(x), other(x))


@pytest.mark.parametrize("eps", [0.1, 0.5])
def test_pgd_stays_in_ball_and_box_and_raises_the_loss(bench, eps):
    x, labels = bench
    model = load_digits_model(0)
    found = pgd(model, x, labels, eps, steps=5)
    assert found.min() >= 0 and found.max() <= 1
    assert (found - x).flatten(1).norm(dim=1).max() <= eps + 1e-5
    loss = nn.CrossEntropyLoss(reduction="none")
    with torch.no_grad():
        assert (loss(model(found), labels) > loss(model(x), labels)).all()
    assert all(p.grad is None for p in model.parameters())


def test_pgd_on_a_linear_model_takes_the_shortest_way():
    # Inside the box the best direction is the weight difference itself.
    model, x = half_space((0.6, 0.8, 0.0, 0.0)), torch.full((1, 1, 2, 2), 0.5)
    found = pgd(model, x, torch.tensor([1]), 0.2, steps=10)
    expected = 0.5 - 0.2 * torch.tensor([0.6, 0.8, 0.0, 0.0])
    assert torch.allclose(found.flatten(), expected, atol=1e-5)


@pytest.mark.slow
def test_adversarial_training_buys_robustness(bench):
    plain, hard = load_defended("plain"), load_defended("adversarial")
    held, labels = held_out_digits()
    # Measured, seeds 0 and 1: clean .936, .948 (plain .974, .962); under PGD .66, .69 (.34, .35).
    assert accuracy(hard, held, labels) > 0.92
    robust = [accuracy(m, pgd(m, held, labels, 0.5, 10), labels) for m in (plain, hard)]
    assert robust[1] > robust[0] + 0.2


@pytest.mark.slow
def test_no_attack_changes_the_smoothed_class_within_the_certified_radius(bench):
    x, labels = bench
    base, sigma = load_defended("noise"), 0.25
    certificate = certify(base, x, sigma)
    sure = certificate.classes != ABSTAIN
    assert sure.mean() > 0.7
    smoothed = Smoothed(base, x.shape[1:], sigma, n=16).eval()
    targets = random_targets(labels, 1, 10)
    result = attack(smoothed, x, targets, iters=12, margin=1.0, allow_label=True)
    assert result.success.any()
    # Along the attack, just inside the radius, the vote is the certified class or too close.
    inside = torch.from_numpy(0.95 * certificate.radius / np.maximum(result.l2, 1e-9)).float()
    point = x + result.delta * inside.clamp(max=1).view(-1, 1, 1, 1)
    vote = predict(base, point, sigma, n=512)
    assert ((vote == certificate.classes) | (vote == ABSTAIN))[sure].all()


def constant_scores(scores):
    """A linear model of 2 x 2 images whose logits are `scores`, whatever the image and noise."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, len(scores)))
    with torch.no_grad():
        model[1].weight[:] = 0
        model[1].bias[:] = torch.tensor(scores)
    return model.eval()


def test_the_vote_of_one_place_is_predict_and_of_more_the_order_of_the_votes():
    weight = (0.6, 0.8, 0.0, 0.0)
    model, x = half_space(weight), torch.rand(40, 1, 2, 2) - 0.5
    vote = predict(model, x, n=300)
    assert {0, 1, ABSTAIN} == set(vote.tolist())  # all three happen
    for target in (0, 1):
        targets = torch.full((40, 1), target)
        assert np.array_equal(ordered_vote(model, x, targets, n=300), vote == target)
    # One class has all votes: first place is sure, the order of the others is a tie.
    model, x = constant_scores([0.0, 3.0, 1.0]), x[:1]
    assert ordered_vote(model, x, torch.tensor([[1]]))[0]
    assert not ordered_vote(model, x, torch.tensor([[1, 2]]))[0]
    assert not ordered_vote(model, x, torch.tensor([[2]]))[0]


def test_the_curve_takes_the_best_attack_of_each_image():
    norms = np.array([[1.0, 0.0, 3.0], [2.0, 0.0, 1.5]])
    success = np.array([[True, False, True], [True, False, True]])
    shares = reached_within(norms, success, np.array([0.5, 1.0, 1.5, 9.0]))
    assert np.allclose(shares, [0, 1 / 3, 2 / 3, 2 / 3])


@pytest.mark.slow
def test_the_curves_of_the_three_networks_for_one_target_and_for_an_order():
    from workbench.methods.rising_attack import ablations, study

    parameters = study.Parameters(images=1, iters=1, defense_images=24)  # it heeds the last only
    found = run(ablations.defense_steps(parameters))
    eps = ablations.DEFENSE_EPS
    assert list(found) == list(ablations.DEFENSE_K) == [1, 3]
    for curves_ in found.values():
        assert list(curves_) == ["plain", "adversarially trained", "smoothed"]
        for name, curve in curves_.items():
            assert 0.88 < curve.clean <= 1, name
            assert set(curve.radii) == set(defense.ATTACKS), name
            assert len(curve.smallest) == 24
            assert curve.reached[0] == 0 and (np.diff(curve.reached) >= 0).all()
            assert np.allclose(curve.reached, (curve.smallest[None] <= eps[:, None]).mean(1))
            assert (curve.smallest > 0).all()  # all networks read all images
        assert curves_["plain"].certified is None and curves_["plain"].radius is None
        smoothed = curves_["smoothed"]
        assert (np.diff(smoothed.certified) <= 0).all() and (smoothed.radius > 0).sum() >= 12
        assert np.allclose(smoothed.certified[1:], (smoothed.radius >= eps[1:, None]).mean(1))
        assert (smoothed.smallest >= smoothed.radius).all()  # at every K
        middle = {name: curve.reached[20] for name, curve in curves_.items()}
        assert middle["adversarially trained"] <= middle["plain"]
    one, order = found[1], found[3]
    assert one["plain"].reached[-1] == 1
    # Attackers of the smoothed network are not fooled by their own noise draws.
    assert one["smoothed"].reached[-1] > 0.6
    for name in one:  # the first target is the same, so an order never needs less
        assert (order[name].reached <= one[name].reached + 1e-9).mean() > 0.9, name
        assert np.array_equal(order[name].clean, one[name].clean)


def test_the_same_attacks_meet_every_network_and_a_vote_judges_the_smoothed_one(monkeypatch):
    # A network that the attack fools on its own draws but whose votes say otherwise.
    model, x = half_space((1.0, 0.0, 0.0, 0.0), -0.5), torch.full((2, 1, 2, 2), 0.2)
    images = torch.rand(20, 1, 2, 2), torch.zeros(20, dtype=torch.long)
    monkeypatch.setattr(defense.digits, "held_out_digits", lambda: images)
    attacks = {"a": {"iters": 5, "margin": 0.05}, "b": {"iters": 5, "margin": 0.2}}
    args = x, torch.tensor([0, 0]), torch.tensor([[1], [1]]), np.array([0.1, 1.0])
    models = {"plain": model, "smoothed": model}
    found = curves(models, *args, attacks, vote_draws=64)
    assert [list(curve.radii) for curve in found.values()] == [["a", "b"]] * 2
    # Half-space at distance .3: the plain network falls just beyond, the certificate ends before.
    assert (found["plain"].smallest >= 0.3).all() and (found["plain"].smallest < 0.4).all()
    assert (found["smoothed"].radius > 0).all() and (found["smoothed"].radius < 0.3).all()
    monkeypatch.setattr(defense, "ordered_vote", lambda *args, **options: np.array([True, False]))
    judged = curves(models, *args, attacks, vote_draws=64)["smoothed"]
    assert np.isfinite(judged.smallest).tolist() == [True, False]
    with pytest.raises(ValueError, match="at least one attack"):
        curves(models, *args, {})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: defense.defended_steps("adversrial"), "did you mean 'adversarial'"),
        (lambda: defense.defended_steps("noise", sigma=0), "sigma = 0"),
        (lambda: defense.defended_steps("adversarial", eps=-1), "eps = -1"),
        (lambda: Smoothed(nn.Identity(), (1,), n=0), "n = 0"),
        (lambda: certify(nn.Flatten(), torch.ones(1, 1, 2, 2), alpha=0), "alpha = 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
