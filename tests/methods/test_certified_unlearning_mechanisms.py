"""The noisy phases of certified unlearning: what a step does, its distribution, what it reads."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from workbench import steps as work
from workbench.methods.certified_unlearning import (
    comparison,
    data,
    forgetting,
    mechanisms,
    networks,
)
from workbench.methods.certified_unlearning.certificates import (
    GradientClipping,
    ModelClipping,
    NoiseFirst,
    OutputPerturbation,
)
from workbench.methods.certified_unlearning.mechanisms import (
    Recipe,
    Task,
    Watch,
    descend,
    drive,
    noisy_phase,
    one_cycle,
)
from workbench.methods.certified_unlearning.study import Parameters
from workbench.methods.certified_unlearning.unlearner import Unlearner, check_retain

GC = GradientClipping(0.03, 3, 0.001, 100)


def last(path):
    *_, (t, w) = path
    return t, w


def zero(w, t):
    return torch.zeros_like(w)


def test_a_step_of_gradient_clipping_by_hand():
    # f(x) = (x1^2 + 4 x2^2) / 2 at (3, 4), clipped to norm 1 at the start.
    made = GradientClipping(1.0, 2.0, 0.1, 0.5)
    t, w = last(noisy_phase(
        torch.tensor([[3.0, 4.0]], dtype=torch.float64), made, [0.0],
        lambda w, t: w * torch.tensor([1.0, 4.0], dtype=torch.float64),
    ))  # fmt: skip
    start, g = np.array([0.6, 0.8]), np.array([0.6, 3.2])
    by_hand = start - 0.1 * (2 * g / np.linalg.norm(g) + 0.5 * start)
    assert t == 1 and w[0].numpy() == pytest.approx(by_hand, abs=1e-12)


def test_a_step_of_model_clipping_by_hand():
    made = ModelClipping(1.0, 1e-9, gamma=0.5, lam=0.2)
    path = noisy_phase(
        torch.tensor([[3.0, 4.0]], dtype=torch.float64), made, [0.0], lambda w, t: 2 * w
    )
    by_hand = np.array([3.0, 4.0]) * (1 - 0.5 * 2.2)
    assert np.linalg.norm(by_hand) < 1
    assert last(path)[1][0].numpy() == pytest.approx(by_hand, abs=1e-12)
    far = last(noisy_phase(torch.tensor([[30.0, 40.0]]), made, [0.0], zero))[1]
    assert far[0].numpy() == pytest.approx([0.6, 0.8], abs=1e-6)


def test_two_runs_with_the_same_noise_contract_without_gradients():
    made = GradientClipping(1.0, 0.0, 0.1, 2.0)
    start = torch.randn(2, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start = networks.clip(start, 0.9)
    ends = [
        last(noisy_phase(x[None], made, [0.3] * 5, zero, torch.Generator().manual_seed(1)))[1]
        for x in start
    ]
    distance = (ends[0] - ends[1]).norm() / (start[0] - start[1]).norm()
    assert distance.item() == pytest.approx(0.8**5, rel=1e-12)


def test_without_gradients_the_released_model_is_normal_with_the_stated_moments():
    made, T, sigma, n = GradientClipping(2.0, 1.0, 0.05, 4.0), 6, 0.7, 100_000
    w = torch.tensor([1.0, -0.5]).expand(n, -1)
    end = last(noisy_phase(w, made, [sigma] * T, zero, torch.Generator().manual_seed(2)))[1]
    variance = sigma**2 * float(made.noise_sum(T))
    mean = float(made.rho) ** T * w[0]
    assert ((end.mean(0) - mean).abs() < 4 * (variance / n) ** 0.5).all()
    assert ((end.var(0) - variance).abs() < 4 * variance * (2 / n) ** 0.5).all()


def test_output_perturbation_and_a_noised_start():
    w = torch.full((20_000, 2), 5.0)
    t, end = last(noisy_phase(w, OutputPerturbation(1.0), [0.2], zero))
    assert t == 0 and end.std() == pytest.approx(0.2, rel=0.05)
    assert end.mean() == pytest.approx(2**-0.5, abs=0.01)
    made = ModelClipping(0.5, 0.1, C0=1.0, sigma0=3.0)
    start = next(iter(noisy_phase(w, made, [0.1], zero)))[1]
    assert start.std() == pytest.approx(3.0, rel=0.05)


def test_the_variant_of_the_official_code_ends_in_its_ball_with_a_wider_certificate():
    made = NoiseFirst(0.5, 0.5, gamma=0.01, C1=10.0)
    w = last(noisy_phase(torch.randn(9, 50), made, [0.5] * 3, zero))[1]
    assert w.norm(dim=1).max() <= 0.5 + 1e-6
    wide = ModelClipping(0.6, 0.5)
    assert made.steps(1.0, 1e-5) == wide.steps(1.0, 1e-5) > ModelClipping(0.5, 0.5).steps(1.0, 1e-5)
    with pytest.raises(ValueError, match="the step would overshoot the regulariser"):
        NoiseFirst(0.5, 0.5, gamma=1.0, lam=1.2)


def test_one_cycle_rises_then_falls():
    rates = one_cycle(100, 2.0)
    assert len(rates) == 100 and rates[0] == pytest.approx(2 / 25) and rates.max() == 2.0
    assert rates.argmax() == 30 and rates[-1] == pytest.approx(2 / 70)
    for steps in range(4):
        assert len(one_cycle(steps, 1.0)) == steps


def test_plain_descent_is_torchs_sgd():
    sizes = (4, 3, 2)
    w = networks.initial(sizes, [0])
    x, y = torch.randn(5, 4), torch.tensor([0, 1, 1, 0, 1])
    weights = w.clone().requires_grad_()
    optimizer = torch.optim.SGD([weights], lr=0.3, weight_decay=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(networks.forward(weights, x, sizes)[0], y).backward()
        optimizer.step()
    path = descend(w, [0.3] * 3, lambda w, t: networks.gradient(w, x[None], y[None], sizes)[0], 0.1)
    assert torch.allclose(last(path)[1], weights.detach(), atol=1e-6)


# Tasks -------------------------------------------------------------------------------------------


def small_task(seeds=(0, 1)):
    return Task(data.split(seeds), (64, 5, 10), tuple(seeds))


def test_the_forget_set_is_never_read_after_the_start():
    task = small_task()
    images = task.splits.images.clone()
    images[task.splits.forget[0]] = torch.nan
    poisoned = replace(task, splits=replace(task.splits.rows([0]), images=images), seeds=(0,))
    original = poisoned.initial()
    for recipe in comparison.recipes(comparison.settings_of(Parameters()), 1.0):
        w = work.run(drive(poisoned.path(recipe, original, 20), 20))
        assert mechanisms.finite(w).all(), recipe.key
    w = work.run(comparison.original_steps(poisoned, 30))  # who reads it does notice
    assert not mechanisms.finite(w).any()
    assert np.isnan(poisoned.accuracy(w)).all()


def test_methods_share_batches_and_noise():
    task = small_task()
    gc = Recipe("gc", mechanism=GC, sigmas=(0.1,) * 3)
    original = 0.001 * task.initial()
    paths = [list(task.path(r, original, 3)) for r in (gc, gc.twin())]
    # The twins differ only by what is left of the start: rho^T of it, and what gradients made.
    first = paths[0][1][1] - paths[1][1][1]
    assert first.norm(dim=1).max() < 2 * original.norm(dim=1).max()
    again = list(task.path(gc, original, 3))
    assert all(torch.equal(a[1], b[1]) for a, b in zip(paths[0], again, strict=True))
    with pytest.raises(ValueError, match="T = 53 noisy steps exceed the budget of 40"):
        next(task.path(replace(gc, sigmas=(0.1,) * 53), original, 40))


def test_starts_of_recipes():
    task = small_task()
    original = task.initial()
    assert task.start_of(Recipe("a"), original) is original
    assert not task.start_of(Recipe("a", "zero"), original).any()
    fresh = task.start_of(Recipe("a", "fresh", 0.5), original)
    assert torch.equal(fresh, 0.5 * task.initial(stream=1)) and not torch.equal(fresh, original)
    assert task.start_of(Recipe("a", "torch"), original)[0, -10:].abs().min() > 0


def test_a_watch_keeps_every_noisy_step_and_some_others():
    watch = Watch(lambda w: w.sum(1).numpy(), 100, noisy=3, points=10)
    for t in range(101):
        watch(t, torch.full((2, 1), float(t)))
    steps, values = watch.arrays
    assert steps.tolist() == [0, 1, 2, 3, *range(13, 100, 10), 100]
    assert np.array_equal(values, np.stack([steps, steps], 1))


# A request ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small():
    return Parameters(budget=[30], mia_seeds=0)


def test_a_request_is_certified_when_its_noisy_phase_ends(small, monkeypatch):
    monkeypatch.setattr(forgetting, "original_model", lambda p: finished(p))
    seen = []
    done = work.run(forgetting.forget_steps(small, [3, 8]), lambda s: seen.append(s.data))
    seen = [data for data in seen if data is not None]
    assert done.certified and len(done.epsilon) == done.T == 7
    assert done.epsilon[-1] == pytest.approx(1.0) and np.all(np.diff(done.epsilon) < 0)
    assert seen and not np.array_equal(done.model, finished_model(small))
    assert done.step[-1] == 30 and len(done.step) == len(done.accuracy)
    again = work.run(forgetting.forget_steps(small, [3, 8, 9], "mc", done.model))
    assert again.certified and again.T == 3 and not torch.equal(again.model, done.model)


def finished_model(p):
    return comparison.task_of(p, [p.seed], p.hidden).initial()


def finished(p):
    yield work.Step(1.0)
    return finished_model(p)


def test_a_request_repeats_neither_its_noise_nor_the_batches_of_another(small, monkeypatch):
    drawn = []
    right = Task.gradients

    def recorded(task, part, steps, stream=0):
        index = data.batches(torch.arange(100)[None], task.batch, steps, task.seeds, stream)
        drawn.append(index)
        return right(task, part, steps, stream)

    monkeypatch.setattr(Task, "gradients", recorded)
    model = finished_model(small)
    made = [
        work.run(forgetting.forget_steps(small, gone, model=model, request=request))
        for gone, request in (([3, 8], 0), ([11], 0), ([3, 8, 1000], 1))
    ]
    # Batches are places in what is left: of who is deleted they know nothing.
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    again = work.run(forgetting.forget_steps(small, [3, 8], model=model))
    assert torch.equal(drawn[3], drawn[0])
    for other in made:
        assert (again.model - other.model).norm() > 1  # with the same noise it is about .3


def test_a_request_by_the_released_accounting_is_not_certified(small):
    p = Parameters(budget=[30], mia_seeds=0, accountant="released")
    done = work.run(forgetting.forget_steps(p, [3], model=finished_model(p)))
    assert not done.certified and done.epsilon[-1] == pytest.approx(6.559, abs=1e-3)
    assert "epsilon is 6.559" in done.words


def test_a_request_that_is_stopped_early_is_uncertified(small):
    model = comparison.task_of(small, [0], small.hidden).initial()
    with pytest.raises(work.Cancelled) as stopped:
        made = forgetting.forget_steps(small, [3], model=model)
        counter = iter(range(100))
        work.run(made, cancelled=lambda: next(counter) >= 4)
    partial = stopped.value.data
    assert partial.certified is None and partial.words.startswith("uncertified: ")
    assert 1 < partial.epsilon[-1] < np.inf and f"{partial.epsilon[-1]:.4g}" in partial.words


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        ([], "nothing to forget"),
        ([1257], "unknown id 1257 to forget: allowed are 0 to 1256"),
        ([-1], "unknown id -1 to forget"),
        (range(1257), "the retain set is empty"),
    ],
)
def test_requests_that_make_no_sense_are_one_line(small, gone, words):
    model = torch.zeros(1, 385)
    with pytest.raises(ValueError, match=words):
        work.run(forgetting.forget_steps(small, gone, model=model))


def test_the_grid_of_a_request_shows_the_training_set(small):
    images, labels = forgetting.training_images(small)
    assert images.shape == (1257, 64) and labels.shape == (1257,)


# One's own model ---------------------------------------------------------------------------------


def own():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)), X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "mechanism",
    [GC, ModelClipping(0.1, 0.2, 0.5), NoiseFirst(0.1, 0.2, 0.1, C1=1.0), OutputPerturbation(0.01)],
    ids=lambda m: type(m).__name__,
)
def test_own_models_are_unlearned_and_certified(mechanism):
    model, X, y = own()
    X[[3, 17]] = np.nan  # deleted examples cannot be read
    before = [w.clone() for w in model.parameters()]
    made, certificate = Unlearner(mechanism, budget=60).run(model, X, y, forget=[3, 17])
    assert certificate.certified and certificate.epsilon <= 1 + 1e-9
    assert str(certificate).startswith("certified: epsilon = ")
    assert all(map(torch.equal, before, model.parameters()))
    assert not torch.equal(next(made.parameters()), before[0])
    keep = np.setdiff1d(np.arange(60), [3, 17])
    right = made(torch.tensor(X[keep])).argmax(1).numpy() == y[keep]
    assert right.mean() > 0.8


def test_a_seed_repeats_a_run_and_certifies_nothing():
    model, X, y = own()
    runs = [Unlearner(GC, budget=30, seed=1).run(model, X, y, forget=[3]) for _ in range(2)]
    first, second = (torch.cat([w.flatten() for w in made.parameters()]) for made, _ in runs)
    assert torch.equal(first, second)
    certificate = runs[0][1]
    assert not certificate.certified and certificate.epsilon == pytest.approx(1.0)
    assert str(certificate).startswith("no guarantee: seed given, so the noise is known")


def test_without_a_seed_the_noise_is_secret_and_new_each_time(monkeypatch):
    model, X, y = own()
    bits = []
    draw = mechanisms.secrets.randbits
    monkeypatch.setattr(mechanisms.secrets, "randbits", lambda k: bits.append(k) or draw(k))
    ends = []
    for _ in range(2):
        torch.manual_seed(0)  # nothing that others can set decides the noise
        made, certificate = Unlearner(GC, budget=7).run(model, X, y, forget=[3])
        ends.append(torch.cat([w.flatten() for w in made.parameters()]).detach())
        assert certificate.certified
    assert len(bits) == 2 and min(bits) >= 128
    assert (ends[0] - ends[1]).std() > 0.1  # sqrt(2) times .22, of 44 weights


def test_decreasing_noise_is_certified_too():
    model, X, y = own()
    made = Unlearner(GC, budget=20, schedule="decreasing")
    assert np.all(np.diff(made.sigmas) < 0) and len(made.sigmas) == 7
    _, certificate = made.run(model, X, y, forget=[3])
    assert certificate.certified and certificate.epsilon == pytest.approx(1.0)
    with pytest.raises(ValueError, match="allowed are constant, decreasing"):
        Unlearner(GC, schedule="rising")


def test_secret_noise_is_normal_with_its_sigma():
    w = torch.zeros(50_000, 2)
    end = last(noisy_phase(w, OutputPerturbation(1.0), [0.3], zero))[1]
    assert end.dtype == torch.float32 and end.std() == pytest.approx(0.3, rel=0.02)
    assert end.abs().max() > 3 * 0.3 and end.mean().abs() < 0.01


def test_own_noise_by_the_released_accounting_is_not_certified():
    model, X, y = own()
    with pytest.warns(UserWarning, match="uncertified"):
        _, certificate = Unlearner(GC, budget=30, accountant="released").run(
            model, X, y, forget=[3]
        )
    assert not certificate.certified and certificate.epsilon == pytest.approx(6.559, abs=1e-3)


def test_an_own_run_that_is_stopped_is_marked_uncertified():
    model, X, y = own()
    made = Unlearner(GC, budget=60).steps(model, X, y, forget=[0])
    counter = iter(range(100))
    with pytest.raises(work.Cancelled) as stopped:
        work.run(made, cancelled=lambda: next(counter) >= 3)
    _, certificate = stopped.value.data
    assert not certificate.certified and certificate.steps == 3
    assert 1 < certificate.epsilon < np.inf and "uncertified: 3 of 7" in str(certificate)


def test_only_plain_sgd_and_models_without_buffers_are_covered():
    for bad in ({"momentum": 0.9}, {"optimizer": "adam"}, {"optimizer": torch.optim.Adam}):
        with pytest.raises(ValueError, match="the certificate covers plain SGD steps only"):
            Unlearner(GC, **bad)
    model, X, y = own()
    weights = list(model.parameters())
    for bad in (torch.optim.SGD(weights, momentum=0.9), torch.optim.Adam(weights)):
        with pytest.raises(ValueError, match="the certificate covers plain SGD steps only"):
            Unlearner(GC, optimizer=bad)
    for good in (torch.optim.SGD, torch.optim.SGD(weights, lr=0.1), "SGD"):
        Unlearner(GC, optimizer=good)
    hidden = nn.Sequential(*model)
    hidden.mean = torch.ones(4)
    with pytest.raises(ValueError, match=r"Sequential\.mean is an array that is not trained"):
        Unlearner(GC).run(hidden, X, y, forget=[0])
    for layer in (nn.BatchNorm1d(2), nn.BatchNorm1d(2, track_running_stats=False)):
        with pytest.raises(ValueError, match="buffers carry information about the deleted data"):
            Unlearner(GC).run(nn.Sequential(model, layer), X, y, forget=[0])
    with pytest.raises(ValueError, match="allowed are GradientClipping"):
        Unlearner("gc")
    with pytest.raises(ValueError, match="T = 200 noisy steps exceed the budget of 160"):
        Unlearner(GC, T=200)
    model[0].weight.requires_grad_(False)
    with pytest.raises(ValueError, match="keep what they know"):
        Unlearner(GC).run(model, X, y, forget=[0])


class Odd(nn.Module):
    """Has weights that its output does not use."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x):
        return self.used(x)


def test_own_models_of_many_kinds_work():
    model, X, y = own()
    made, _ = Unlearner(GC, budget=20).run(Odd(), X, y, forget=[0])
    assert made.unused.weight.std() > 0.05  # its noise hides it too
    made, _ = Unlearner(GC, budget=20).run(model.double(), X, y.astype(np.int32), forget=[0])
    assert next(made.parameters()).dtype == torch.float64
    text = nn.Sequential(nn.Embedding(9, 3), nn.Flatten(), nn.Linear(6, 2))
    tokens = np.random.default_rng(0).integers(0, 9, (60, 2))
    Unlearner(GC, budget=20).run(text, tokens, y, forget=[0])
    model.float().eval()
    made, _ = Unlearner(GC, budget=20).run(model, X, y, forget=[0])
    assert not any(layer.training for layer in made.modules())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch": 0}, "batch = 0; allowed are integers from 1"),
        ({"budget": 2.5}, "budget = 2.5; allowed are integers from 1"),
        ({"lr": -1.0}, "lr = -1.0; allowed are finite numbers above 0"),
        ({"wd": -1.0}, "wd = -1.0; allowed are finite numbers from 0"),
        ({"T": 15_000, "budget": 20_000}, "T = 15000; allowed are integers from 1 to 10000"),
        ({"T": 0}, "T = 0; allowed are integers from 1 to 10000"),
    ],
)
def test_settings_of_an_own_run_are_checked_in_one_line(changes, words):
    with pytest.raises(ValueError, match=words) as error:
        Unlearner(GC, **changes)
    assert "\n" not in str(error.value)


def test_labels_that_do_not_fit_and_mixed_weights_are_one_line():
    model, X, y = own()
    with pytest.raises(ValueError, match="X has 60 examples and y has 59: one label for each"):
        Unlearner(GC).run(model, X, y[:-1], forget=[0])
    model[0].double()
    with pytest.raises(ValueError, match="weights of 2 types"):
        Unlearner(GC).run(model, X, y, forget=[0])


def test_the_classical_calibration_warns_and_is_uncertified_where_it_is_too_small():
    model, X, y = own()
    with pytest.warns(UserWarning, match="proven for epsilon <= 1 only"):
        made = Unlearner(OutputPerturbation(0.1), epsilon=20.0, calibration="classical", budget=20)
    with pytest.warns(UserWarning, match="uncertified"):
        _, certificate = made.run(model, X, y, forget=[0])
    assert not certificate.certified and certificate.epsilon > 20


@pytest.mark.parametrize(
    ("forget", "retain", "words"),
    [
        ([1, 2], [2, 3], "forget and retain ids overlap, for example 2"),
        ([10], None, "unknown id 10 to forget: allowed are 0 to 9"),
        ([1], [-1], "unknown id -1 to retain"),
        (range(10), None, "the retain set is empty"),
        ([], None, "nothing to forget"),
        ([0.5], None, "forget ids must be integers"),
    ],
)
def test_ids_that_do_not_fit_together_are_one_line(forget, retain, words):
    with pytest.raises(ValueError, match=words) as error:
        check_retain(10, list(forget), retain)
    assert "\n" not in str(error.value)


def test_a_loss_that_is_not_finite_stops_with_its_step():
    model, X, y = own()
    X[5] = np.inf
    with pytest.raises(ValueError, match="the loss is nan at step"):
        Unlearner(GC, budget=60, batch=60).run(model, X, y, forget=[0])
