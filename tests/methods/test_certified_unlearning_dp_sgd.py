"""DP-SGD of certified unlearning: the accountant, groups, and the noise that is really added."""

import numpy as np
import pytest
import torch

from workbench.methods.certified_unlearning import data, dp_sgd, networks


def test_the_accountant_agrees_with_its_oracles():
    assert dp_sgd.epsilon_of(1.0, 0.01, 1000, 1e-5) == pytest.approx(2.1078, abs=1e-4)
    assert 2.09 <= dp_sgd.epsilon_of(1.0, 0.01, 1000, 1e-5) <= 2.12


@pytest.mark.parametrize(("z", "q", "steps"), [(1.0, 0.01, 1000), (3.71, 64 / 1257, 392)])
def test_it_agrees_with_opacus(z, q, steps):
    rdp = pytest.importorskip("opacus.accountants.analysis.rdp")
    orders = [float(order) for order in dp_sgd.ORDERS]
    theirs = rdp.compute_rdp(q=q, noise_multiplier=z, steps=steps, orders=orders)
    assert steps * dp_sgd.renyi(z, q) == pytest.approx(theirs)
    epsilon, _ = rdp.get_privacy_spent(orders=orders, rdp=theirs, delta=1e-5)
    assert dp_sgd.epsilon_of(z, q, steps, 1e-5) == pytest.approx(epsilon)


def test_full_batches_are_the_gaussian_mechanism():
    assert dp_sgd.renyi(2.0, 1.0) == pytest.approx(dp_sgd.ORDERS / 8)
    assert dp_sgd.renyi(2.0, 1 - 1e-9) == pytest.approx(dp_sgd.ORDERS / 8, rel=1e-4)
    assert np.all(np.diff(dp_sgd.renyi(1.0, 0.1)) > 0)


def test_noise_grows_with_the_group():
    found = [dp_sgd.multiplier(10, 1e-5, 64 / 1257, 392, k) for k in (1, 2, 6, 12)]
    assert found == pytest.approx([0.87, 1.43, 3.71, 7.22], abs=0.01)
    one, delta = dp_sgd.of_one(10, 1e-5, 6)
    assert one == pytest.approx(10 / 6)
    assert delta == pytest.approx(1e-5 * np.expm1(10 / 6) / np.expm1(10))
    assert dp_sgd.epsilon_of(found[2], 64 / 1257, 392, delta) <= one
    assert dp_sgd.of_one(3.0, 1e-5, 1) == pytest.approx((3.0, 1e-5))


def test_what_no_noise_can_certify_is_one_line():
    with pytest.raises(ValueError, match="a group of 5000 examples is beyond") as error:
        dp_sgd.multiplier(1000, 1e-5, 0.05, 392, 5000)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"delta = 0\.6"):
        dp_sgd.epsilon_of(1.0, 0.1, 10, 0.6)


def test_training_without_noise_learns_and_noise_has_its_size():
    splits, sizes, rates = data.split([0, 1]), (64, 5, 10), np.full(150, 0.5)
    w0 = networks.initial(sizes, [0, 1])
    *_, (t, w) = dp_sgd.train_path(w0, splits, sizes, z=0.0, C=1.0, batch=64, rates=rates)
    x, y = splits.of("test")
    assert t == 150 and networks.accuracy(w, x, y, sizes).mean() > 0.4
    few = np.array([0.5])
    ((_, quiet),) = dp_sgd.train_path(w0, splits, sizes, z=0.0, C=1.0, batch=64, rates=few)
    ((_, loud),) = dp_sgd.train_path(w0, splits, sizes, z=3.0, C=2.0, batch=64, rates=few)
    clipped = (quiet - w0).norm(dim=1) / few[0]
    assert clipped.max() < 2.0  # a mean of gradients of norm 1, about 64 of 64
    assert (loud - quiet).std() == pytest.approx(0.5 * 3.0 * 2.0 / 64, rel=0.25)
    assert torch.isfinite(loud).all()
