"""Speed of the attack: against its targets on one core, and against foolbox as a ratio.

Times are processor seconds of one thread, so that other work on the machine counts little. What is
measured is printed; the limits are the targets times `SLOWER`, since machines differ.
"""

import time

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from workbench import theme
from workbench.methods.rising_attack.attacks import attack
from workbench.methods.rising_attack.digits import held_out_digits, load_digits_model
from workbench.methods.rising_attack.glyphs import held_out_glyphs, load_glyph_model
from workbench.methods.rising_attack.jacobian import forward
from workbench.methods.rising_attack.mixer import Mixer
from workbench.methods.rising_attack.networks import attackable
from workbench.methods.rising_attack.ranking import random_targets
from workbench.methods.rising_attack.sqp import RisingOptions
from workbench.methods.rising_attack.subspace import linearize
from workbench.numerics.threads import one_thread
from workbench.widgets.perturbation_view import PerturbationView

pytestmark = pytest.mark.benchmark
SLOWER = 3.0  # how much slower a machine may be, at its worst, than the one of the targets


@pytest.fixture(scope="module")
def digits():
    model, (images, labels) = load_digits_model(0), held_out_digits()
    chosen = attackable([model], images, labels, 24)
    return model, images[chosen], labels[chosen]


@pytest.fixture(scope="module")
def glyphs():
    model, (images, labels) = load_glyph_model(0), held_out_glyphs()
    chosen = attackable([model], images, labels, 8)
    return model, images[chosen], labels[chosen]


def processor_seconds(function, repeats: int = 3):
    """The result of a call and the least processor time of one thread over some calls."""
    times = []
    with one_thread(), threadpool_limits(1, "blas"):
        for _ in range(repeats):
            before = time.process_time()
            result = function()
            times.append(time.process_time() - before)
    return result, min(times)


def test_24_digits_take_at_most_a_second(digits):
    model, x, labels = digits
    targets = random_targets(labels, 5, 10)
    run = lambda: attack(model, x, targets, iters=20, labels=labels)  # noqa: E731
    result, seconds = processor_seconds(run)
    print(f"digits, 24 images, K = 5, 20 iterations: {seconds:.2f} s, {result!r}")
    assert result.asr > 0.6 and seconds <= 1.0 * SLOWER


def test_an_order_of_five_digits_answers_a_click_within_a_tenth_of_a_second(digits):
    model, x, labels = digits
    targets = random_targets(labels, 5, 10)
    run = lambda: attack(model, x[:1], targets[:1], iters=10)  # noqa: E731
    _, seconds = processor_seconds(run, 5)
    print(f"digits, one image, K = 5, 10 iterations: {1e3 * seconds:.0f} ms")
    assert seconds <= 0.1 * SLOWER


@pytest.mark.slow
def test_an_order_of_ten_glyphs_answers_a_click_within_a_second_and_a_half(glyphs):
    model, x, labels = glyphs
    targets = random_targets(labels, 10, 94)
    run = lambda: attack(model, x[:1], targets[:1])  # noqa: E731
    result, seconds = processor_seconds(run, 3)
    print(f"Glyph-94, one image, K = 10, 30 iterations: {seconds:.2f} s, {result!r}")
    assert result.success.all() and seconds <= 1.5 * SLOWER


@pytest.mark.slow
def test_a_fader_of_glyphs_moves_picture_and_ranking_within_50_ms(glyphs):
    model, x, labels = glyphs
    order = random_targets(labels, 10, 94)[0].tolist()
    program = linearize(model, x[0], torch.zeros_like(x[0]), order, RisingOptions())
    view = PerturbationView()

    def show(delta):
        change = torch.as_tensor(delta).float()
        view.show(x[0], change, forward(model, (x[0] + change)[None])[0], order)

    theme.set_defaults()
    faders = Mixer(show)
    faders.load(program, 0)
    values = np.array(faders.faders.values)
    shares = iter(np.linspace(0, 1, 11))
    _, seconds = processor_seconds(lambda: faders.faders.move(next(shares) * values), 11)
    print(f"Glyph-94, one move of a fader: {1e3 * seconds:.0f} ms")
    assert view.last.norms[1] > 0 and seconds <= 0.05 * SLOWER


@pytest.mark.slow
def test_orders_of_twenty_glyphs_take_at_most_six_seconds(glyphs):
    model, x, labels = glyphs
    targets = random_targets(labels, 20, 94)
    run = lambda: attack(model, x, targets, labels=labels)  # noqa: E731
    result, seconds = processor_seconds(run, 2)
    print(f"Glyph-94, 8 images, K = 20, 30 iterations: {seconds:.2f} s, {result!r}")
    assert result.asr >= 0.9 and seconds <= 6.0 * SLOWER


@pytest.mark.slow
def test_fewer_rivals_cost_less(glyphs):
    model, x, labels = glyphs
    targets = random_targets(labels, 20, 94)
    cost = {}
    for rivals in (None, 40):
        run = lambda n=rivals: attack(model, x, targets, iters=5, rivals=n)  # noqa: E731
        _, cost[rivals] = processor_seconds(run, 3)
    print(f"Glyph-94, 5 iterations: all rivals {cost[None]:.2f} s, 40 rivals {cost[40]:.2f} s")
    assert cost[40] < 0.85 * cost[None]


@pytest.mark.slow
def test_fifty_times_as_fast_as_carlini_and_wagner_at_a_norm_within_2_percent(digits):
    foolbox = pytest.importorskip("foolbox")
    model, x, labels = digits
    targets = random_targets(labels, 1, 10)
    ours, seconds = processor_seconds(lambda: attack(model, x, targets, iters=20, labels=labels))
    peer = foolbox.attacks.L2CarliniWagnerAttack(binary_search_steps=9, steps=1000)
    criterion = foolbox.criteria.TargetedMisclassification(targets[:, 0])
    wrapped = foolbox.PyTorchModel(model, bounds=(0, 1))
    (_, attacked, success), theirs = processor_seconds(
        lambda: peer(wrapped, x, criterion, epsilons=None), 1
    )
    assert bool(success.all()) and ours.success.all()
    norm = (attacked - x).flatten(1).norm(dim=1).double().numpy().mean()
    print(f"l2 {ours.l2.mean():.3f} in {seconds:.2f} s; C&W {norm:.3f} in {theirs:.1f} s: "
          f"{theirs / seconds:.0f} times as fast")  # fmt: skip
    assert theirs >= 50 * seconds
    assert ours.l2.mean() <= 1.02 * norm  # the target is 1, measured is 1.002
    assert torch.equal(model(x + ours.delta).argmax(1), targets[:, 0])
