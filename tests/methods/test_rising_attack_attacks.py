"""The attack: exact on linear models, invariances, what it returns, every kind of bad input."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, minimize
from sklearn.isotonic import IsotonicRegression
from torch import nn

from workbench.methods.rising_attack import _checks
from workbench.methods.rising_attack.attacks import attack, attack_steps
from workbench.methods.rising_attack.ranking import achieved, random_targets, rank_matrix
from workbench.methods.rising_attack.records import AttackResult, Snapshot
from workbench.methods.rising_attack.sqp import RisingOptions, linear_programs, rising_steps
from workbench.steps import Cancelled, run


def linear(W, b=None) -> nn.Module:
    """Logits W x + b of flattened images, float64."""
    W = torch.as_tensor(W, dtype=torch.float64)
    model = nn.Sequential(nn.Flatten(), nn.Linear(W.shape[1], W.shape[0])).double()
    with torch.no_grad():
        model[1].weight.copy_(W)
        model[1].bias.copy_(torch.as_tensor(np.zeros(len(W)) if b is None else np.array(b)))
    return model.eval()


def random_linear(seed: int, n_classes: int = 6, n_pixels: int = 40, scale: float = 1.0):
    rng = np.random.default_rng(seed)
    W, b = rng.normal(size=(n_classes, n_pixels)), rng.normal(size=n_classes)
    x = torch.from_numpy(0.4 + 0.2 * rng.random((2, 1, 1, n_pixels)))
    return scale * W, scale * b, x


def convolutional(dtype=torch.float32, seed: int = 0, n_classes: int = 6) -> nn.Module:
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.GELU(), nn.Flatten(), nn.Linear(8 * 36, 32), nn.GELU(),
        nn.Linear(32, n_classes),
    )  # fmt: skip
    with torch.no_grad():
        model[5].weight.mul_(8)
    return model.to(dtype).eval()


def small_images(n: int = 4, dtype=torch.float32) -> torch.Tensor:
    return torch.rand(n, 1, 6, 6, generator=torch.Generator().manual_seed(1)).to(dtype)


def targets_for(model: nn.Module, x: torch.Tensor, K: int, seed: int = 0) -> torch.Tensor:
    with torch.no_grad():
        logits = model(x)
    return random_targets(logits.argmax(1), K, logits.shape[1], seed)


# Linear models: the program is exact, so one step is the optimum.


def test_two_classes_have_the_closed_form():
    model = linear([[1, 2, -1], [0, 1, 1]], [0.5, -0.2])
    x = torch.tensor([0.2, 0.4, 0.1], dtype=torch.float64).view(1, 1, 1, 3)
    result = attack(model, x, [[1]], margin=0.1)
    # (f_y - f_t + m) / |w_y - w_t| = 1.2 / sqrt(6)
    assert result.l2[0] == pytest.approx(0.489897948, abs=1e-9)
    expected = torch.tensor([-0.2, -0.2, 0.4], dtype=torch.float64).view(1, 1, 1, 3)
    torch.testing.assert_close(result.delta, expected)


@pytest.mark.parametrize("K", [1, 2, 5])
def test_one_step_is_the_optimum_of_a_linear_model_and_more_change_nothing(K):
    W, b, x = random_linear(0)
    model = linear(W, b)
    targets = targets_for(model, x, K)
    one = attack(model, x, targets, iters=1)
    many = attack(model, x, targets, iters=8, early_stop=False)
    assert one.success.all()
    torch.testing.assert_close(many.delta, one.delta, rtol=0, atol=1e-10)
    assert (one.trace["free_pixels"][1] == 40).all()  # images in .4 to .6 are far from the box
    for i in range(len(x)):
        assert one.l2[i] == pytest.approx(optimum(W, b, x[i], targets[i]), abs=1e-6)


def optimum(W, b, image, order, margin: float = 0.05) -> float:
    """The norm by SLSQP on the full problem, with its box: independent of the program."""
    A, flat = rank_matrix(order.tolist(), len(W)), image.numpy().ravel()
    found = minimize(
        lambda d: d @ d / 2, np.zeros(len(flat)), jac=lambda d: d, method="SLSQP",
        bounds=Bounds(-flat, 1 - flat), options={"ftol": 1e-14, "maxiter": 500},
        constraints={"type": "ineq", "jac": lambda d: A @ W,
                     "fun": lambda d: A @ (W @ (flat + d) + b) - margin},
    )  # fmt: skip
    assert (A @ (W @ (flat + found.x) + b) - margin).min() > -1e-7
    return float(np.linalg.norm(found.x))


@pytest.mark.parametrize("K", [1, 2, 5])
def test_one_step_meets_the_box_of_images_that_are_almost_black_and_white(K):
    W, b, x = random_linear(0)
    x = torch.where(x < 0.5, 0.1 * (x - 0.4), 1 - 0.1 * (0.6 - x))  # 0 to .01 and .99 to 1
    model = linear(W, b)
    targets = targets_for(model, x, K)
    one = attack(model, x, targets, iters=1)
    many = attack(model, x, targets, iters=8, early_stop=False)
    assert one.success.all()
    assert (one.trace["free_pixels"][1] < 40).all()
    assert (x + one.delta).min() >= 0 and (x + one.delta).max() <= 1
    torch.testing.assert_close(many.delta, one.delta, rtol=0, atol=1e-10)
    for i in range(len(x)):  # pixels are never freed again: at most 1.2 % above the optimum
        assert -1e-6 < one.l2[i] / optimum(W, b, x[i], targets[i]) - 1 < 0.012


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.01, 0.3))
def test_a_complete_order_of_orthonormal_rows_is_isotonic_regression(seed, margin):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(30, 6)))[0].T
    x = torch.full((1, 1, 1, 30), 0.5, dtype=torch.float64)
    model = linear(W, rng.normal(size=6) * 0.2)
    with torch.no_grad():
        logits = model(x)[0].numpy()
    order = rng.permutation(6)
    place = np.arange(6)
    fitted = IsotonicRegression(increasing=False).fit_transform(
        place, logits[order] + place * margin
    )
    change = fitted - place * margin - logits[order]
    assume((np.abs(W.T[:, order] @ change) < 0.5).all())  # else steps are clipped to the range
    result = attack(model, x, order[None], margin=margin, iters=2, box="none", allow_label=True)
    moved = result.delta.flatten().numpy()
    if achieved(torch.from_numpy(logits[None]), torch.from_numpy(order[None]))[0]:
        assert result.success[0] and result.l2[0] == 0  # it may lack the margin only
        return
    assert result.l2[0] == pytest.approx(np.linalg.norm(change), abs=1e-10)
    np.testing.assert_allclose((W @ moved)[order], change, atol=1e-10)


def test_relabeling_shifting_scaling_and_permuting_pixels_change_nothing():
    W, b, x = random_linear(3)
    targets = targets_for(linear(W, b), x, 3)
    expected = attack(linear(W, b), x, targets).delta
    rng = np.random.default_rng(0)
    names, pixels = rng.permutation(6), rng.permutation(40)
    back = torch.from_numpy(np.argsort(names))
    relabeled = attack(linear(W[names], b[names]), x, back[targets]).delta
    shifted = attack(linear(W, b + 7.0), x, targets).delta
    scaled = attack(linear(3 * W, 3 * b), x, targets, margin=0.15).delta
    permuted = attack(linear(W[:, pixels], b), x[..., pixels], targets).delta
    torch.testing.assert_close(relabeled, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(shifted, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(scaled, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(permuted, expected[..., pixels], rtol=0, atol=1e-9)


def test_longer_prefixes_of_an_order_never_need_less_on_a_linear_model():
    W, b, x = random_linear(4, n_classes=8, n_pixels=60)
    model = linear(W, b)
    order = targets_for(model, x, 7)
    norms = np.array([attack(model, x, order[:, :K]).l2 for K in range(1, 8)])
    assert (norms > 0).all() and (np.diff(norms, axis=0) > -1e-9).all()


# Networks: what is returned.


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("K", [1, 3])
def test_what_is_returned_reaches_the_exact_order_in_range_with_the_norms_it_says(dtype, K):
    model, x = convolutional(dtype), small_images(dtype=dtype)
    targets = targets_for(model, x, K)
    result = attack(model, x, targets, iters=15)
    assert result.success.all() and result.delta.dtype == dtype and result.delta.shape == x.shape
    attacked = x + result.delta
    assert attacked.min() >= 0 and attacked.max() <= 1
    with torch.no_grad():
        order = model(attacked).argsort(1, descending=True)[:, :K]
    assert torch.equal(order, targets)
    flat = result.delta.double().flatten(1).numpy()
    np.testing.assert_allclose(result.l1, np.abs(flat).sum(1))
    np.testing.assert_allclose(result.l2, np.linalg.norm(flat, axis=1))
    np.testing.assert_allclose(result.linf, np.abs(flat).max(1))
    assert f"{len(x)} of {len(x)} reached" in repr(result)


def test_the_converged_answer_is_a_kkt_point_of_the_non_linear_problem():
    model, x = convolutional(torch.float64), 0.4 + 0.2 * small_images(dtype=torch.float64)
    targets = targets_for(model, x, 3)
    last = snapshots(model, x, targets, iters=60, early_stop=False)[-1]
    assert last.success.all() and last.violation.max() < 1e-6
    for i in range(len(x)):
        delta = last.delta[i].flatten()
        point = x[i : i + 1] + last.delta[i : i + 1]
        A = torch.from_numpy(rank_matrix(targets[i].tolist(), 6))
        G = A @ torch.autograd.functional.jacobian(model, point)[0].flatten(1)
        inside = ((point > 0) & (point < 1)).flatten()
        tight = ((A @ model(point)[0]) - 0.05).abs() < 1e-5
        rows = G[tight][:, inside].detach()
        multipliers = torch.linalg.lstsq(rows.T, delta[inside][:, None]).solution
        assert (multipliers > -1e-6).all()
        residual = rows.T @ multipliers - delta[inside][:, None]
        assert residual.norm() < 1e-4 * delta.norm()


def test_images_of_a_batch_do_not_influence_each_other():
    model, x = convolutional(torch.float64), small_images(dtype=torch.float64)
    targets = targets_for(model, x, 3)
    together = attack(model, x, targets, iters=10)
    for i in range(len(x)):
        alone = attack(model, x[i : i + 1], targets[i : i + 1], iters=10)
        torch.testing.assert_close(alone.delta[0], together.delta[i], rtol=0, atol=1e-8)


def test_it_is_deterministic_and_leaves_weights_and_their_gradients_alone():
    model, x = convolutional(), small_images()
    model(x).sum().backward()
    weights = [(p.clone(), p.grad.clone()) for p in model.parameters()]
    targets = targets_for(model, x, 2)
    first, second = (attack(model, x, targets, iters=5) for _ in range(2))
    assert torch.equal(first.delta, second.delta) and not first.delta.requires_grad
    for parameter, (value, gradient) in zip(model.parameters(), weights, strict=True):
        assert parameter.requires_grad and torch.equal(parameter, value)
        assert torch.equal(parameter.grad, gradient)


def impossible() -> nn.Module:
    """Class 2 lies between the others at every image: it can never be first."""
    W = np.ones((3, 1)) * np.array([[1.0], [-1.0], [0.0]])
    return linear(np.repeat(W, 4, 1), [0.0, 0.0, -5.0])


def test_failures_are_zeros_with_zero_norms():
    x = torch.full((2, 1, 2, 2), 0.5, dtype=torch.float64)
    result = attack(impossible(), x, [[2], [1]], iters=5, allow_label=True)
    assert result.success.tolist() == [False, False]
    assert not result.delta.any() and result.l1.tolist() == result.linf.tolist() == [0, 0]
    assert result.asr == 0 and "0 of 2 reached" in repr(result)


def test_an_image_that_obeys_already_needs_nothing():
    model, x = convolutional(), small_images()
    with torch.no_grad():
        targets = model(x).argsort(1, descending=True)[:, :2]
    targets[1:] = targets_for(model, x, 2)[1:]
    result = attack(model, x, targets, iters=5)
    assert result.success.all() and result.l2[0] == 0 and (result.l2[1:] > 0).all()
    assert np.isnan(result.trace["alpha"]).sum() == 0 and not result.trace["alpha"][:, 0].any()


# Options.


def test_the_trace_tells_what_happened():
    model, x = convolutional(), small_images()
    result = attack(model, x, targets_for(model, x, 3), iters=6, early_stop=False)
    trace = result.trace
    assert all(numbers.shape == (7, 4) for numbers in trace.values())
    assert not trace["norm"][0].any() and not trace["alpha"][0].any()
    assert set(trace["alpha"][1:].ravel().round(3)) <= {1, 0.5, 0.25, 0.1}
    assert (trace["violation"][0] > 0.1).all()
    assert (trace["violation"][-1] < 0.01 * trace["violation"][0]).all()
    assert (trace["active_rows"][1:] >= 1).all() and (trace["active_rows"] <= 5).all()
    assert (trace["free_pixels"] <= 36).all() and (trace["free_pixels"][0] == 36).all()
    finite = np.where(np.isfinite(trace["best_norm"]), trace["best_norm"], 1e9)
    assert (np.diff(finite, axis=0) <= 0).all()
    np.testing.assert_allclose(trace["best_norm"][-1], result.l2, rtol=1e-6)


def test_early_stop_saves_iterations_and_costs_nothing():
    model, x = convolutional(torch.float64), 0.4 + 0.2 * small_images(dtype=torch.float64)
    targets = targets_for(model, x, 2)
    early = attack(model, x, targets, iters=200)
    full = attack(model, x, targets, iters=40, early_stop=False)
    assert len(early.trace["norm"]) < 41 and len(full.trace["norm"]) == 41
    np.testing.assert_allclose(early.l2, full.l2, rtol=1e-3)


def test_all_rivals_by_number_are_all_rivals_by_none():
    model, x = convolutional(torch.float64), small_images(dtype=torch.float64)
    targets = targets_for(model, x, 2)
    every, few = (attack(model, x, targets, iters=4, rivals=n) for n in (99, 1))
    torch.testing.assert_close(every.delta, attack(model, x, targets, iters=4).delta)
    assert not torch.equal(few.delta, every.delta)
    assert few.trace["active_rows"].max() <= 2  # K - 1 + 1 rows


def test_trust_caps_the_step_and_tau_the_demand():
    W, b, x = random_linear(5)
    targets = targets_for(linear(W, b), x, 3)
    first = {
        name: attack_after_one_step(linear(W, b), x, targets, **options)
        for name, options in {
            "plain": {}, "trust": {"trust": 0.05}, "tau": {"tau": 0.5, "line_search": False},
        }.items()
    }  # fmt: skip
    np.testing.assert_allclose(first["trust"].norm, 0.05)
    before = snapshots(linear(W, b), x, targets)[0]
    assert (first["tau"].violation <= 0.5 * before.violation + 1e-9).all()
    assert (first["tau"].norm < first["plain"].norm).all()


def snapshots(model, x, targets, **options) -> list[Snapshot]:
    return list(rising_steps(model, x, targets, RisingOptions(**options)))


def attack_after_one_step(model, x, targets, **options) -> Snapshot:
    return snapshots(model, x, targets, iters=1, **options)[1]


def test_full_steps_are_full():
    model, x = convolutional(), small_images()
    result = attack(model, x, targets_for(model, x, 3), iters=4, line_search=False,
                    early_stop=False)  # fmt: skip
    assert (result.trace["alpha"][1:] == 1).all()


def test_lower_rank_spans_less_and_random_directions_need_more():
    W, b, x = random_linear(8, n_pixels=200)
    model = linear(W, b)
    targets = targets_for(model, x, 5)
    full, low, random = (
        attack(model, x, targets, iters=10, **options)
        for options in ({}, {"rank": 1}, {"directions": "random"})
    )
    assert full.success.all() and random.success.any() and not low.success.any()
    assert (random.l2[random.success] > full.l2[random.success]).all()


def test_the_programs_of_a_point_are_those_of_its_next_step():
    model, x = convolutional(torch.float64), small_images(dtype=torch.float64)
    targets, options = targets_for(model, x, 3), RisingOptions(iters=1, line_search=False)
    solutions = list(linear_programs(model, x, torch.zeros_like(x), model(x), targets, options))
    after = attack_after_one_step(model, x, targets, line_search=False)
    for i, solution in enumerate(solutions):
        np.testing.assert_allclose(after.delta[i].flatten(), solution.delta, atol=1e-12)
        free = solution.right_vectors @ solution.coefficients
        np.testing.assert_allclose(solution.delta[solution.free], free, atol=1e-9)


def test_baselines_answer_in_the_same_terms():
    class Headed(nn.Module):
        def __init__(self):
            super().__init__()
            self.feats, self.head = nn.Flatten(), nn.Linear(36, 6)

        def forward(self, x):
            return self.head(self.feats(x))

    torch.manual_seed(0)
    model, x = Headed().eval(), small_images()
    targets = targets_for(model, x, 1)
    for method in ("quad", "cw", "ad"):
        result = attack(model, x, targets, method, iters=20, lr=0.1)
        assert isinstance(result, AttackResult) and np.isnan(result.trace["alpha"]).all()
        assert achieved(model(x + result.delta), targets).tolist() == result.success.tolist()
        assert result.success.any(), method


# Steps, cancel, progress.


def test_steps_carry_snapshots_and_the_result_is_that_of_the_call():
    model, x = convolutional(), small_images()
    targets = targets_for(model, x, 2)
    seen = []
    result = run(attack_steps(model, x, targets, iters=3, early_stop=False), seen.append)
    assert isinstance(result, AttackResult) and [s.data.iteration for s in seen] == [0, 1, 2, 3]
    assert [s.done for s in seen] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert seen[0].message == "iteration 0: 0 of 4 reached" and "mean l2" in seen[-1].message
    last = seen[-1].data
    torch.testing.assert_close(last.logits, model(x + last.delta).detach(), rtol=1e-4, atol=1e-5)
    assert last.violation.shape == (4, 5) and torch.equal(last.best_delta, result.delta)
    assert not seen[0].data.delta.any()  # earlier snapshots are not overwritten
    assert torch.equal(attack(model, x, targets, iters=3, early_stop=False).delta, result.delta)


def test_stopping_keeps_the_best_so_far():
    model, x = convolutional(), small_images()
    targets = targets_for(model, x, 2)
    calls = []

    def enough() -> bool:
        calls.append(1)
        return len(calls) == 5

    result = attack(model, x, targets, iters=300, cancelled=enough)
    assert len(result.trace["norm"]) == 5 and result.success.any()
    assert achieved(model(x + result.delta), targets)[torch.from_numpy(result.success)].all()


def test_the_interrupt_key_is_not_swallowed():
    def interrupt(_):
        raise KeyboardInterrupt

    model, x = convolutional(), small_images()
    with pytest.raises(Cancelled):
        attack(model, x, targets_for(model, x, 2), on_step=interrupt)


# Bad input.


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"method": "risng"}, ValueError, "method = 'risng'.*did you mean 'rising'"),
        ({"iter": 3}, ValueError, "parameter of method 'rising' = 'iter'.*did you mean 'iters'"),
        ({"method": "cw", "rank": 2}, ValueError, "parameter of method 'cw' = 'rank'"),
        ({"iters": 0}, ValueError, "iters = 0; allowed is 1..500, the nearest is 1"),
        ({"iters": 2.5}, TypeError, "iters = 2.5; allowed is a whole number"),
        ({"margin": -1}, ValueError, "margin = -1; allowed is >= 0 and <= 5"),
        ({"margin": "a"}, TypeError, "margin = 'a'; allowed is a number"),
        ({"rivals": 0}, ValueError, "rivals = 0; allowed is >= 1"),
        ({"rank": 0}, ValueError, "rank = 0; allowed is >= 1"),
        ({"box": "activ"}, ValueError, "box = 'activ'.*did you mean 'active'"),
        ({"directions": "left"}, ValueError, "directions = 'left'; allowed are singular, random"),
        ({"alphas": ()}, ValueError, "alphas is empty"),
        ({"alphas": (2.0,)}, ValueError, "alphas = 2; allowed is > 0 and <= 1"),
        ({"tau": 0}, ValueError, "tau = 0; allowed is > 0 and <= 1"),
        ({"trust": 0}, ValueError, "trust = 0; allowed is > 0"),
        ({"chunk": 0}, ValueError, "chunk = 0; allowed is >= 1"),
        ({"labels": [0]}, ValueError, r"labels must be \(4,\)"),
        ({"labels": [9] * 4}, ValueError, "label = 9; allowed is 0..5, the nearest is 5"),
        ({"targets": [[1, 1]] * 4}, ValueError, r"targets\[0\] names class 1 twice"),
        ({"targets": [[1, 6]] * 4}, ValueError, r"targets\[0, 1\] = 6; allowed are classes 0..5"),
        ({"targets": [[0, 1, 2, 3, 4, 5]] * 4}, ValueError, "K = 6 .* allowed are 1..5"),
        ({"targets": [[1]]}, ValueError, r"targets must be \(4, K\), got shape \(1, 1\)"),
        ({"targets": [[1.0]] * 4}, TypeError, "whole class numbers"),
        ({"x": small_images() * 255}, ValueError, "divide by 255"),
        ({"x": (small_images() * 255).byte()}, ValueError, "uint8 .*divide by 255"),
        ({"x": small_images() - 0.5}, ValueError, r"allowed is \[0, 1\] \(preprocessing"),
        ({"x": small_images() * torch.nan}, ValueError, "not finite"),
        ({"x": small_images()[:0]}, ValueError, "batch of images"),
        ({"model": torch.sin}, TypeError, "model must be a torch.nn.Module"),
    ],
)
def test_bad_input_is_named_at_once(change, kind, message):
    model, x = convolutional(), small_images()
    options = {"model": model, "x": x, "targets": targets_for(model, x, 2), **change}
    with pytest.raises(kind, match=message):
        run(attack_steps(**options))


def test_targets_may_hold_the_label_only_with_the_flag():
    model, x = convolutional(), small_images()
    label = model(x).argmax(1)
    targets = torch.stack([(label + 1) % 6, label], 1)
    with pytest.raises(ValueError, match=r"targets\[0\] .* the model's own prediction"):
        attack(model, x, targets)
    with pytest.raises(ValueError, match="the label of that image; choose others, or pass allow"):
        attack(model, x, targets, labels=label)
    assert attack(model, x, targets, allow_label=True).success.any()
    # Judged by the labels given, the model's prediction is an ordinary target.
    judged = attack(model, x, targets, labels=(label + 2) % 6, iters=3)
    allowed = attack(model, x, targets, allow_label=True, iters=3)
    assert torch.equal(judged.delta, allowed.delta)


@pytest.mark.parametrize("layer", [nn.BatchNorm2d(1), nn.Dropout(0.5)])
def test_a_model_in_training_mode_is_refused(layer):
    model, x = nn.Sequential(layer, convolutional()), small_images()
    model.train()
    with pytest.raises(ValueError, match=r"training mode .*call model.eval\(\) first"):
        attack(model, x, [[1]] * 4)
    model.eval()
    attack(model, x, targets_for(model, x, 1), iters=1)


def test_dropout_that_is_a_function_is_refused_while_training():
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = convolutional()

        def forward(self, x):
            return self.model(nn.functional.dropout(x, 0.5, self.training))

    model, x = Functional(), small_images()
    assert model.training and not model.model.training
    with pytest.raises(
        ValueError, match=r"training mode \(Functional\); call model.eval\(\) first"
    ):
        attack(model, x, [[1]] * 4)
    model.eval().model[0].train()
    with pytest.raises(ValueError, match=r"training mode \(Conv2d 'model.0'\)"):
        attack(model, x, [[1]] * 4)


def test_no_forward_pass_holds_more_images_than_chunk():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.model, self.seen = convolutional(), []

        def forward(self, x):
            if not torch._C._functorch.is_gradtrackingtensor(x):
                self.seen.append(len(x))
            return self.model(x)

    model, x = Counting().eval(), small_images(5)
    attack(model, x, targets_for(model.model, x, 1), iters=2, chunk=2)
    assert max(model.seen) == 2 and len(model.seen) > 6


def test_probabilities_get_a_warning_and_logits_none():
    model, x = convolutional(), small_images()
    targets = targets_for(model, x, 1)
    with pytest.warns(UserWarning, match="look like probabilities"):
        attack(nn.Sequential(model, nn.Softmax(1)).eval(), x, targets, iters=1, margin=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attack(model, x, targets)


class Returns(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x.flatten(1))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:, :5] / 0 * 0, "logits for image 0 are not finite"),
        (lambda x: x[:, :1], "1 class; an order needs at least 2"),
        (lambda x: x[0], r"must return logits \(4, classes\), got \(36,\)"),
        (lambda x: (x[:, :5],), "must return logits .* got tuple"),
        (lambda x: x[:, :5].round().long(), "returns torch.int64"),
        (lambda x: x[:, :5].detach(), "zero Jacobian: .* do not depend on images 0, 2"),
        (lambda x: torch.round(9 * x[:, :5]), "zero Jacobian"),
    ],
)
def test_models_that_cannot_be_attacked_are_named(function, message):
    with pytest.raises(ValueError, match=message), torch.no_grad():
        attack(Returns(function).eval(), small_images(), [[4]] * 4, allow_label=True)


def test_a_margin_out_of_reach_gets_a_warning():
    model = nn.Sequential(convolutional(), nn.Tanh()).eval()  # gaps are below 2
    x = small_images()
    with pytest.warns(UserWarning, match="margin = 4 logits was not reached on any image"):
        attack(model, x, targets_for(model, x, 1), margin=4.0, iters=5)


def test_a_margin_out_of_reach_is_said_of_small_ones_too_and_only_where_the_order_is_reached():
    model, x = nn.Sequential(convolutional(), Squash()).eval(), small_images()
    targets = targets_for(model, x, 1)
    with pytest.warns(UserWarning, match=r"margin = 0.05 logits .* \(4 of 4 reached the order"):
        attack(model, x, targets, iters=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attack(model, x, targets, iters=5, margin=1e-5)
        assert not attack(impossible(), torch.full((1, 1, 2, 2), 0.5), [[2]], iters=3).success[0]


class Squash(nn.Module):
    """Logits within .01 of each other, so that no margin of .05 can be had."""

    def forward(self, logits):
        return 0.005 * torch.tanh(logits)


def test_an_image_without_a_gradient_fails_alone_and_is_named():
    seeing = linear(np.eye(3, 4))

    class Blind(nn.Module):  # images with a dark corner are all the same to it
        def forward(self, x):
            return seeing(x) * (x.flatten(1)[:, 3:] > 0.5)

    x = torch.tensor([[0.9, 0.5, 0.2, 0.9], [0.9, 0.5, 0.2, 0.1]]).double().view(2, 1, 2, 2)
    with pytest.warns(UserWarning, match="do not depend on image 1 .*; counted as failed"):
        result = attack(Blind().eval(), x, [[1], [1]], iters=10, allow_label=True)
    assert result.success.tolist() == [True, False] and not result.delta[1].any()
    assert not result.trace["alpha"][:, 1].any()
    alone = attack(Blind().eval(), x[:1], [[1]], iters=10)
    torch.testing.assert_close(result.delta[:1], alone.delta)
    with pytest.raises(ValueError, match="do not depend on images 0, 1 "):
        attack(Blind().eval(), x[[1, 1]], [[1], [1]], iters=10, allow_label=True)


def test_a_jacobian_beyond_memory_suggests_rivals_and_chunk(monkeypatch):
    monkeypatch.setattr(_checks, "MEMORY_LIMIT_BYTES", 36 * 20 * 3)  # 3 rows of float32
    model, x = convolutional(), small_images()
    targets = targets_for(model, x, 1)
    with pytest.raises(MemoryError, match=r"rivals .*chunk"):
        attack(model, x, targets)
    attack(model, x, targets, rivals=2, iters=1)


def test_logits_that_overflow_end_an_image_where_it_is():
    class Cliff(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = linear(np.eye(3, 4))

        def forward(self, x):
            logits = self.linear(x)
            return torch.where(x.flatten(1)[:, 1:2] > 0.6, torch.nan, logits)

    x = torch.tensor([0.9, 0.5, 0.2, 0.5], dtype=torch.float64).view(1, 1, 2, 2)
    result = attack(Cliff().eval(), x, [[1]], iters=5, alphas=(1.0,))
    assert not result.success.any() and len(result.trace["norm"]) == 2
