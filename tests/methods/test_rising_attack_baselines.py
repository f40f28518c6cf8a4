"""The baselines: losses mean what they say, the loop is the official one, tuning is fair."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from workbench.methods.rising_attack.attacks import attack, attack_steps
from workbench.methods.rising_attack.baselines import (
    TargetFeatures,
    ad_distribution,
    baseline_steps,
    cw_loss,
    score,
    tune,
    warm_multipliers,
)
from workbench.methods.rising_attack.digits import held_out_digits, load_digits_model
from workbench.methods.rising_attack.least_distance import least_distance
from workbench.methods.rising_attack.networks import Classifier, attackable
from workbench.methods.rising_attack.ranking import achieved, random_targets, rank_matrix

seeds = st.integers(0, 10_000)


@pytest.fixture(scope="module")
def bench():
    model = load_digits_model(0)
    images, labels = held_out_digits()
    chosen = attackable([model], images, labels, 8)
    return model, images[chosen], labels[chosen]


def finish(steps):
    snapshots = []
    while True:
        try:
            snapshots.append(next(steps))
        except StopIteration as end:
            return snapshots, *end.value


def weak(logits, targets):
    return bool((rank_matrix(targets, len(logits)) @ logits.double().numpy() >= 0).all())


@given(seeds, st.integers(1, 6))
@settings(max_examples=60)
def test_the_cw_loss_vanishes_exactly_where_the_order_holds_weakly(seed, K):
    rng = np.random.default_rng(seed)
    # Small integers, so that ties are common.
    logits = torch.from_numpy(rng.integers(0, 4, 7).astype(float))
    targets = rng.permutation(7)[:K]
    loss = cw_loss(logits[None], torch.from_numpy(targets)[None])[0]
    assert (loss == 0) == weak(logits, targets.tolist())
    logits[targets] = torch.arange(K, 0, -1).double() + 4
    assert cw_loss(logits[None], torch.from_numpy(targets)[None])[0] == 0


def test_the_cw_loss_of_an_example_worked_by_hand():
    # T = (2, 0), f = (1, 4, 2, 0). Outside {2}: 4 - 2 = 2. Outside {2, 0}: 4 - min(2, 1) = 3.
    logits = torch.tensor([[1.0, 4.0, 2.0, 0.0]])
    assert cw_loss(logits, torch.tensor([[2, 0]])).item() == pytest.approx((2 + 3) / 2)


@pytest.mark.parametrize("K", [1, 10, 29, 30])
def test_the_first_places_of_ads_distribution_are_the_targets_up_to_30(K):
    generator = torch.Generator().manual_seed(K)
    weight = torch.randn(94, 12, generator=generator)
    targets = random_targets(torch.arange(20), K, 94, seed=1)
    wanted = ad_distribution(targets, weight)
    assert torch.allclose(wanted.sum(1), torch.ones(20))
    assert torch.equal(wanted.argsort(1, descending=True)[:, :K], targets)
    ratio = wanted.gather(1, targets).log().diff(dim=1)
    assert torch.allclose(ratio, torch.full_like(ratio, -0.3), atol=1e-5)


def test_beyond_30_targets_ad_cannot_hold_the_order():
    weight = torch.ones(94, 4) + 0.01 * torch.randn(94, 4, generator=torch.Generator())
    targets = random_targets([0], 40, 94)
    assert not achieved(ad_distribution(targets, weight).log(), targets)[0]


@given(seeds, st.integers(1, 8))
@settings(max_examples=30)
def test_quadattacks_target_features_obey_the_order_with_the_margin_and_are_nearest(seed, K):
    torch.manual_seed(seed)
    head = nn.Linear(20, 9).double()
    targets = random_targets([0, 3], K, 9, seed)
    goal = TargetFeatures(head, targets, margin=0.2)
    phi = torch.randn(2, 20).double()
    for _ in range(3):  # the second and third start from the multipliers of the one before
        found = goal(head(phi), phi).detach()
        for row, order in enumerate(targets.tolist()):
            A = rank_matrix(order, 9)
            gaps = A @ head(found[row]).detach().numpy()
            assert gaps.min() >= 0.2 - 1e-8
            G = A @ head.weight.detach().numpy()
            nearest, _ = least_distance(G, 0.2 - A @ head(phi[row]).detach().numpy())
            assert np.allclose(found[row] - phi[row], nearest, atol=1e-7)
        phi = phi + 0.5 * (found - phi) + 0.1 * torch.randn(2, 20).double()


def test_features_that_obey_the_order_already_are_their_own_goal():
    head = nn.Linear(5, 4)
    phi = torch.randn(1, 5, generator=torch.Generator().manual_seed(0))
    order = head(phi).argsort(descending=True)[:, :2]
    assert torch.equal(TargetFeatures(head, order, margin=0.0)(head(phi).detach(), phi), phi)


def test_where_no_features_obey_the_order_the_goal_is_finite_and_says_nothing_false():
    head = nn.Linear(1, 4)  # one feature cannot order four classes at will
    with torch.no_grad():
        head.weight[:] = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
        head.bias[:] = 0
    targets = torch.tensor([[1, 3]])  # 1 over 3 wants a negative feature, 3 over 0 a positive one
    found = TargetFeatures(head, targets)(head(torch.ones(1, 1)).detach(), torch.ones(1, 1))
    assert torch.isfinite(found).all()
    assert not achieved(head(found).detach(), targets)[0]
    assert warm_multipliers(np.array([[1.0, -1], [-1, 1]]), np.ones(2), np.zeros(2)) is None


@pytest.mark.parametrize("method", ["quad", "cw", "ad"])
def test_what_a_baseline_returns_is_in_the_box_and_reaches_the_order(bench, method):
    model, x, labels = bench
    targets = random_targets(labels, 3, 10)
    before = [p.grad for p in model.parameters()]
    snapshots, delta, success = finish(
        baseline_steps(model, x, targets, method, iters=60, lr=0.05, seed=1)
    )
    assert [s.iteration for s in snapshots] == list(range(61))
    assert success.any()
    assert (x + delta).min() >= 0 and (x + delta).max() <= 1
    with torch.no_grad():
        assert torch.equal(achieved(model(x + delta), targets), success)
    assert (delta[~success] == 0).all()
    assert [p.grad for p in model.parameters()] == before == [None] * len(before)
    norms = torch.stack([s.best_norm for s in snapshots])
    assert (norms[1:] <= norms[:-1]).all()
    last = snapshots[-1].best_norm[success]
    assert torch.allclose(last, delta[success].flatten(1).norm(dim=1))


def test_a_seed_repeats_and_another_starts_elsewhere(bench):
    model, x, labels = bench
    targets = random_targets(labels, 1, 10)
    runs = [
        finish(baseline_steps(model, x, targets, "cw", iters=20, lr=0.05, seed=s))
        for s in (0, 0, 1)
    ]
    assert all(success.any() for *_, success in runs)
    runs = [delta for _, delta, _ in runs]
    assert torch.equal(runs[0], runs[1]) and not torch.equal(runs[0], runs[2])


def test_images_do_not_influence_each_other(bench):
    model, x, labels = bench
    targets = random_targets(labels, 2, 10)
    _, together, reached = finish(baseline_steps(model, x, targets, "quad", iters=30, lr=0.05))
    assert reached[0]
    # The start noise of the first image is the same alone.
    _, alone, found = finish(baseline_steps(model, x[:1], targets[:1], "quad", iters=30, lr=0.05))
    assert found[0] and torch.allclose(together[:1], alone, atol=1e-4)


@pytest.mark.parametrize("method", ["quad", "cw", "ad"])
def test_chunks_change_nothing_but_how_many_images_pass_at_once(bench, method):
    model, x, labels = bench
    targets = random_targets(labels, 2, 10)
    sizes = []
    hook = model.head.register_forward_pre_hook(lambda _, args: sizes.append(len(args[0])))
    try:
        few, whole = (
            attack(model, x, targets, method, iters=12, lr=0.05, chunk=chunk) for chunk in (3, 99)
        )
        assert set(sizes) == {2, 3, 8}
    finally:
        hook.remove()
    assert whole.success.any() and np.array_equal(few.success, whole.success)
    assert torch.allclose(few.delta, whole.delta, atol=1e-4)


@pytest.mark.parametrize(("method", "demanded"), [("quad", 0.2), ("cw", 0.0), ("ad", 0.0)])
def test_only_quadattack_demands_a_margin(bench, method, demanded):
    model, x, labels = bench
    targets = random_targets(labels, 2, 10)
    snapshots, *_ = finish(baseline_steps(model, x, targets, method, iters=40, lr=0.05))
    reached = [s for s in snapshots if s.success.any()]
    assert reached
    for s in reached:
        for image, row in enumerate(targets.tolist()):
            found = rank_matrix(row, 10) @ s.logits[image].double().numpy()
            missing = np.maximum(demanded - found, 0).sum()
            assert float(s.violation[image].sum()) == pytest.approx(missing, abs=1e-4)
        assert demanded or not s.violation[s.success].any()


def test_an_image_that_obeys_the_order_costs_nothing(bench):
    model, x, _ = bench
    with torch.no_grad():
        order = model(x).argsort(1, descending=True)[:, :2]
    _, delta, success = finish(baseline_steps(model, x, order, "cw", iters=3))
    assert success.all() and (delta == 0).all()


def test_bisection_never_loses_and_numbers_its_steps_through(bench):
    model, x, labels = bench
    targets = random_targets(labels, 1, 10)
    options = {"iters": 30, "lr": 0.05, "coef": 20.0}
    _, once, found = finish(baseline_steps(model, x, targets, "cw", **options))
    snapshots, more, found_more = finish(
        baseline_steps(model, x, targets, "cw", search_steps=4, **options)
    )
    assert snapshots[-1].iteration == 120
    assert found.any()
    assert (found_more >= found).all()
    norm = [d.flatten(1).norm(dim=1)[found] for d in (once, more)]
    assert (norm[1] <= norm[0]).all()
    assert norm[1].mean() < norm[0].mean()


def test_norms_are_those_of_the_prototype(bench):
    # Prototype, 24 digits, three networks, K = 5: QuadAttacK 60 reaches 79-100 % (tuned) with l2
    # 2.3-2.6, the SQP has 1.56-1.82; here eight images. Its ratio was at most .85 up to K = 5.
    model, x, labels = bench
    for K in (1, 5):
        targets = random_targets(labels, K, 10)
        quad = attack(model, x, targets, "quad", lr=0.05)
        sqp = attack(model, x, targets, iters=20)
        assert quad.asr >= 0.79 and sqp.asr >= 0.79
        both = quad.success & sqp.success
        assert sqp.l2[both].mean() <= 0.85 * quad.l2[both].mean()
    assert 2.3 <= quad.l2[quad.success].mean() <= 2.6
    assert 1.56 <= sqp.l2[sqp.success].mean() <= 1.82


def test_double_precision_and_weights_that_require_gradients_work(bench):
    _, x, labels = bench
    double = load_digits_model(0).double()
    targets = random_targets(labels, 1, 10)
    result = attack(double, x.double(), targets, "quad", iters=30, lr=0.05)
    assert result.delta.dtype == torch.float64 and result.success.any()


class HeadLess(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    def forward(self, x):
        return self.net(x)


@pytest.mark.parametrize("method", ["quad", "ad"])
def test_a_missing_linear_head_is_named(bench, method):
    _, x, labels = bench
    targets = random_targets(labels, 1, 10)
    with pytest.raises(ValueError, match=f"{method}.*needs a model with `feats.*linear `head`"):
        next(baseline_steps(HeadLess(), x, targets, method))
    body = Classifier(nn.Flatten(), 64, 10)
    body.head = nn.Sequential(body.head)
    with pytest.raises(ValueError, match="head of type Sequential"):
        next(baseline_steps(body, x, targets, method))
    next(baseline_steps(HeadLess(), x, targets, "cw"))  # needs no head


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iters": 0}, "iters = 0"),
        ({"lr": 0.0}, "lr = 0"),
        ({"coef": -1.0}, "coef = -1"),
        ({"search_steps": 0}, "search_steps = 0"),
        ({"margin": -0.1}, "margin = -0.1"),
        ({"chunk": 0}, "chunk = 0"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_bad_options_are_named(bench, options, message):
    model, x, labels = bench
    targets = random_targets(labels, 1, 10)
    with pytest.raises(ValueError, match=message):
        next(baseline_steps(model, x, targets, "cw", **options))
    with pytest.raises(ValueError, match=message):
        attack_steps(model, x, targets, "cw", **options)  # at once, before the first step


def test_an_attack_without_a_linear_head_is_refused_before_its_first_step(bench):
    _, x, labels = bench
    with pytest.raises(ValueError, match="linear `head`"):
        attack_steps(HeadLess().eval(), x, random_targets(labels, 1, 10), "quad", allow_label=True)


def test_an_unknown_method_is_answered_with_the_nearest(bench):
    model, x, labels = bench
    with pytest.raises(ValueError, match="did you mean 'quad'"):
        next(baseline_steps(model, x, random_targets(labels, 1, 10), "qud"))


def test_tuning_tries_the_grid_and_keeps_the_best_by_the_official_rule(bench):
    model, x, labels = bench
    targets = random_targets(labels, 3, 10)
    tuned = tune(model, x, targets, "cw", lrs=(0.0005, 0.05), coefs=(5.0, 20.0), iterations=(20,))
    assert len(tuned.scores) == 4
    assert score(tuned.result) == max(value for _, value in tuned.scores)
    assert tuned.result.success.any()
    assert tuned.settings["lr"] == 0.05  # .0005 x 20 steps cannot move a pixel far enough
    again = attack(model, x, targets, "cw", **tuned.settings)
    assert np.array_equal(again.l2, tuned.result.l2)
    reached = tuned.result.l2[tuned.result.success]
    assert score(tuned.result) == pytest.approx(100 * tuned.result.asr - reached.mean())


def test_the_best_setting_is_tried_once_more_with_rounds_of_bisection(bench):
    model, x, labels = bench
    targets = random_targets(labels, 1, 10)
    grid = {"lrs": (0.05,), "coefs": (20.0,), "iterations": (20, 30)}
    once, more = (tune(model, x, targets, "cw", **grid, rounds=rounds) for rounds in (1, 4))
    assert [s["search_steps"] for s, _ in more.scores] == [1, 1, 4]
    assert more.scores[-1][0] == {**once.settings, "iters": 20, "search_steps": 4}
    assert more.scores[:2] == once.scores
    assert score(more.result) == max(value for _, value in more.scores) > score(once.result)
