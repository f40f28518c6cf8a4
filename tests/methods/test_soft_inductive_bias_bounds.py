"""Bounds against closed forms and simulation; messages that are prefix codes and decode exactly."""

from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from workbench.methods.soft_inductive_bias import bounds, compression, digits, networks
from workbench.methods.soft_inductive_bias import posterior as gibbs
from workbench.methods.soft_inductive_bias.bounds import LOG2
from workbench.methods.soft_inductive_bias.compression import CompressedClassifier
from workbench.steps import run


@pytest.mark.parametrize(
    "risk, n, complexity, wanted",
    [
        (0.1, 1000, 100.0, (0.3269314, 0.2856894, 0.2825518)),
        (0.0, 1437, 50 * LOG2, (0.1144608, 0.0258623, 0.0258623)),
    ],
)
def test_bounds_have_the_values_of_the_specification(risk, n, complexity, wanted):
    made = bounds.occam(risk, n, complexity, 0.05)
    np.testing.assert_allclose((made.hoeffding, made.kl, made.exact), wanted, atol=1e-7)


def test_without_mistakes_both_are_the_closed_form():
    made = bounds.occam(0.0, 1437, 50 * LOG2, 0.05)
    closed = 1 - np.exp(-(50 * LOG2 + np.log(20)) / 1437)
    assert made.kl == pytest.approx(closed, abs=1e-12)
    assert made.exact == pytest.approx(closed, abs=1e-12)


numbers = {
    "mistakes": st.integers(0, 299), "n": st.integers(300, 5000),
    "complexity": st.floats(0, 2000), "delta": st.floats(1e-4, 0.9),
}  # fmt: skip


@given(**numbers)
def test_exact_is_below_kl_is_below_hoeffding(mistakes, n, complexity, delta):
    made = bounds.occam(mistakes / n, n, complexity, delta)
    assert made.exact <= made.kl + 1e-9
    assert made.kl <= made.hoeffding + 1e-9


@given(**numbers)
def test_bounds_grow_with_risk_and_bits_and_fall_with_n_and_delta(mistakes, n, complexity, delta):
    base = bounds.occam(mistakes / n, n, complexity, delta)
    for worse in (
        bounds.occam((mistakes + 1) / n, n, complexity, delta),
        bounds.occam(mistakes / n, n, complexity + 5, delta),
        bounds.occam(mistakes / n, n, complexity, delta / 2),
    ):
        for name in ("hoeffding", "kl", "exact"):
            assert getattr(worse, name) >= getattr(base, name) - 1e-12
    more = bounds.occam(mistakes / n, 2 * n, complexity, delta)
    assert more.hoeffding <= base.hoeffding and more.kl <= base.kl + 1e-12


@pytest.mark.parametrize("risk", [0.0, 0.1, 0.43])
def test_the_kl_form_is_the_least_of_catonis(risk):
    complexity, n, delta = 120.0, 1437, 0.05

    def at(log_c: float) -> float:
        return bounds.catoni(risk, complexity, n, delta, np.exp(log_c))

    least = minimize_scalar(at, bounds=(-9, 9), method="bounded", options={"xatol": 1e-12}).fun
    assert bounds.chernoff(risk, complexity, n, delta) == pytest.approx(least, abs=1e-8)


@given(st.floats(0, 1), st.floats(0, 3))
def test_the_inverse_of_kl_is_its_inverse(q, c):
    p = bounds.kl_inverse(q, c)
    assert q <= p <= 1
    if p < 1 - 1e-12:
        assert bounds.kl(q, p) == pytest.approx(c, abs=1e-6)


def test_tails_too_small_for_floats_go_through_their_logarithm():
    assert bounds.tail_root(100, 1000, -100 + np.log(0.05)) == pytest.approx(
        bounds.binomial_tail(0.1, 100, 1000, 0.05), abs=1e-10
    )
    deep = bounds.binomial_tail(0.1, 900, 1000, 0.05)
    assert 0.1 < deep <= bounds.chernoff(0.1, 900, 1000, 0.05) < 1
    assert bounds.binomial_tail(1.0, 5, 10, 0.05) == 1.0


def test_pac_bayes_vc_and_plain_sizes_are_their_formulas():
    penalty = (224 + np.log(2 * 1437**0.5 / 0.05)) / 1437
    assert bounds.kl(0.169, bounds.pac_bayes_kl(0.169, 224, 1437)) == pytest.approx(penalty)
    assert bounds.mcallester(0.169, 224, 1437) == pytest.approx(0.169 + (penalty / 2) ** 0.5)
    assert bounds.vc(0.0, 65, 1437) == pytest.approx(1.33, abs=0.005)
    size = bounds.complexity_of_size(100)
    assert size == pytest.approx(100 * LOG2 + 2 * np.log(100) + np.log(np.pi**2 / 6))
    # A prior over all files: 2^K of each length K, together at most one.
    shares = [np.exp(K * LOG2 - bounds.complexity_of_size(K)) for K in range(1, 900)]
    assert 0.99 < sum(shares) < 1
    assert bounds.complexity_of_code(100) == pytest.approx(100 * LOG2)
    bits = bounds.bits_for(0.43, 0.15, 1437)
    assert bounds.chernoff(0.15, bits * LOG2, 1437, 0.05) == pytest.approx(0.43)


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: bounds.occam(0.1, 100, 5, 0.0), "delta = 0.0; allowed are numbers between 0 and"),
        (lambda: bounds.occam(0.1, 100, 5, 1), "delta = 1; allowed are numbers between 0 and 1"),
        (lambda: bounds.occam(1.1, 100, 5), "risk = 1.1; allowed are numbers from 0 to 1"),
        (lambda: bounds.complexity_of_code(-1), "bits = -1; allowed are numbers from 0"),
        (lambda: bounds.occam(0.1, 0, 5), "n = 0; allowed are integers from 1"),
        (lambda: CompressedClassifier(levels=8), "levels = 8; allowed are odd numbers"),
        (lambda: CompressedClassifier(delta=1.0), "delta = 1.0"),
        (lambda: CompressedClassifier(prior_seed=-3), "prior_seed = -3"),
        (lambda: bounds.pac_bayes_kl(0.1, -1, 10), "divergence = -1"),
    ],
)
def test_bad_numbers_are_one_line(call, says):
    with pytest.raises(ValueError, match=says) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_bounds_hold_on_simulated_data_and_the_tightest_is_tightest():
    found = gibbs.validity(datasets=1000, seed=1)
    assert max(found.broken.values()) <= 0.05
    assert found.mean["exact"] < found.mean["kl"] < found.mean["hoeffding"]


@pytest.mark.parametrize("d", [3, 6])
def test_all_messages_of_a_tiny_configuration_satisfy_kraft(d):
    messages = [
        compression.encode(np.array(symbols), 3, step=7) for symbols in product(range(3), repeat=d)
    ]
    # Header and step are the same for all: the rest must satisfy it without them.
    lengths = [m.parts["counts"] + m.parts["symbols"] for m in messages]
    assert 0.05 < sum(2.0**-length for length in lengths) <= 1
    assert len({m.bits for m in messages}) == 3**d


def test_no_message_begins_with_another():
    every = [
        compression.encode(np.array(s), levels, step, offset).bits
        for levels, d in ((3, 3), (5, 2))
        for s in product(range(levels), repeat=d)
        for step in (0, 255) for offset in (0, 1, -2)
    ]  # fmt: skip
    every.sort()
    assert not any(b.startswith(a) for a, b in pairwise(every))


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.tuples(
            st.just(2 * k + 1),
            st.lists(st.integers(0, 2 * k), min_size=1, max_size=120),
            st.integers(0, 255),
            st.integers(-5, 40),
        )
    )
)
def test_decoding_returns_what_was_encoded_in_the_promised_length(drawn):
    levels, symbols, step, offset = drawn
    symbols = np.array(symbols)
    message = compression.encode(symbols, levels, step, offset)
    found = compression.decode(message.bits)
    np.testing.assert_array_equal(found.symbols, symbols)
    assert (found.levels, found.step, found.seed_offset) == (levels, step, offset)
    d = len(symbols)
    share = np.bincount(symbols) / d
    entropy = -sum(q * np.log2(q) for q in share if q)
    assert message.parts["symbols"] == np.ceil(round(d * entropy, 9)) + 1
    assert message.parts["counts"] == np.ceil((levels - 1) * np.log2(d + 1))
    assert sum(message.parts.values()) == len(message)


def test_the_menu_costs_six_bits_and_anything_else_more():
    def header(d, offset=0):
        return compression.encode(np.zeros(d, int), 9, 3, offset).parts["header"]

    assert header(50) == header(100) == header(200) == 6 + 1
    assert header(99) == 6 + 9 + 1
    assert header(100, 1) == 6 + 3 and header(100, 30) == 6 + 11
    assert [compression.gamma_code(k) for k in (1, 2, 5)] == ["1", "010", "00101"]


@pytest.mark.parametrize("bits", ["", "0120", "0" * 5, "0000001"])
def test_what_is_no_message_is_refused_in_one_line(bits):
    with pytest.raises(ValueError, match=r"bits must be|cut off|not a message"):
        compression.decode(bits)


FAST = {"steps": (60, 40)}


@pytest.fixture(scope="module")
def data():
    s = digits.split(300, 0, n_test=200)
    return s.train_x, s.train_y, s.test_x, s.test_y


def test_errors_and_bits_are_those_of_the_decoded_network(data):
    x, y, tx, ty = data
    made = CompressedClassifier(prior_seed=3, width=16, d=50).fit(x, y, **FAST)
    assert made.bits_ == len(made.message_.bits)
    assert made.train_error_ == (made.predict(x) != y).mean()
    again = bounds.occam(made.train_error_, 300, made.bits_ * LOG2, 0.05)
    assert again == made.bound_
    assert (made.predict(tx) != ty).mean() < 0.8  # chance is .9, and training was short
    # Decoded from nothing but the bits and the seed that was fixed before the data.
    w = compression.network_of(made.message_.bits, 3, (64, 16, 10))
    logits = networks.forward(w, networks.tensor(x), (64, 16, 10))[0]
    np.testing.assert_array_equal(logits.argmax(1).numpy(), made.predict(x))


def test_another_seed_after_the_data_is_paid_for(data):
    x, y = data[:2]
    made = CompressedClassifier(prior_seed=3, width=16, d=50)
    first = made.fit(x, y, **FAST).message_.parts["header"]
    second = made.fit(x, y, seed=4, **FAST)
    assert second.message_.parts["header"] == first + 2
    assert second.train_error_ == (second.predict(x) != y).mean()
    assert CompressedClassifier(width=0, d=50, more_bits=2).fit(x, y, **FAST).bits_ == (
        2 + CompressedClassifier(width=0, d=50).fit(x, y, **FAST).bits_
    )


def test_a_subspace_larger_than_the_network_is_refused(data):
    with pytest.raises(ValueError, match="d = 500; allowed are at most 68, the number of"):
        run(compression.compress_steps(
            np.zeros((1, 4, 16)), np.arange(4)[None] % 5, np.zeros((1, 2, 16)),
            np.zeros((1, 2), int), width=0, d=500, levels=9, seeds=[0],
        ))  # fmt: skip


@pytest.fixture
def double():
    """Double precision, so that rounding does not move a coordinate to another level."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_networks_of_a_batch_are_stored_bit_for_bit_as_if_alone(data, double):
    ds, seeds = [50, 20, 50, 20], [0, 0, 1, 1]
    x, y, tx, ty = (np.stack([a] * 4) for a in data)
    y[2] = digits.corrupted(y[2], 0.5, 0)
    together = run(compression.compress_steps(x, y, tx, ty, width=8, d=ds, levels=5, seeds=seeds,
                                              **FAST))  # fmt: skip
    assert together.d.tolist() == ds and len({m.bits for m in together.messages}) == 4
    for i in range(4):
        alone = run(compression.compress_steps(
            x[i : i + 1], y[i : i + 1], tx[:1], ty[:1], width=8, d=ds[i], levels=5,
            seeds=seeds[i : i + 1], **FAST,
        ))  # fmt: skip
        assert alone.messages[0] == together.messages[i]
        assert alone.train[0] == together.train[i] and alone.test[0] == together.test[i]
    rows = together.rows([3, 1])
    assert rows.d.tolist() == [20, 20] and rows.messages[0] is together.messages[3]
    assert rows.curves[-1][1].tolist() == together.curves[-1][1][[3, 1]].tolist()
    assert (together.of("kl") > together.test).all()


def test_errors_on_test_data_are_on_labels_as_random_and_on_true_ones():
    s = digits.split(200, 0, 0.5, n_test=150)
    assert 0.3 < (s.noisy_test_y != s.test_y).mean() < 0.6
    assert (s.noisy_test_y[:50] != digits.corrupted(s.test_y, 0.5, 0)[:50]).any()
    arrays = [a[None] for a in (s.train_x, s.train_y, s.test_x, s.noisy_test_y, s.test_y)]
    made = run(compression.compress_steps(*arrays[:4], true_test_labels=arrays[4], width=8, d=50,
                                          levels=5, seeds=[0], **FAST))  # fmt: skip
    w = compression.network_of(made.messages[0].bits, 0, (64, 8, 10))
    guess = networks.forward(w, networks.tensor(s.test_x), (64, 8, 10))[0].argmax(1).numpy()
    assert made.test[0] == (guess != s.noisy_test_y).mean()
    assert made.test_true[0] == (guess != s.test_y).mean() < made.test[0]


def test_the_posterior_is_bounded_by_what_was_sampled(data):
    x, y, tx, ty = (np.stack([a, a]) for a in data)
    y[1] = digits.corrupted(y[1], 1.0, 0)
    made = run(gibbs.gibbs_steps(x, y, tx, ty, scales=(0.3, 1.0), steps=80, draws=200))
    assert made.bound[0] < made.bound[1] and (made.bound > made.test).all()
    assert (made.bound < made.root).all() and made.draws == 200
    np.testing.assert_array_equal(made.test, made.test_true)  # the same labels for both here
    # Once more from the posterior itself: its divergence, and the union over two scales.
    ratio, scale = made.std[0] / made.scale[0], made.scale[0]
    divergence = np.sum(0.5 * (ratio**2 + (made.mean[0] / scale) ** 2 - 1) - np.log(ratio))
    assert made.divergence[0] == pytest.approx(divergence, rel=1e-4)
    worst = bounds.kl_inverse(made.train[0], np.log(2 / 0.01) / 200)
    again = bounds.pac_bayes_kl(worst, divergence + np.log(2), 300, 0.04)
    assert made.bound[0] == pytest.approx(again, rel=1e-4)


def test_divergence_is_that_of_two_normals():
    import torch
    from torch.distributions import Normal, kl_divergence

    mean, log_std = torch.randn(2, 5), torch.randn(2, 5)
    scale = torch.tensor([[0.5], [2.0]])
    wanted = kl_divergence(Normal(mean, log_std.exp()), Normal(0, scale.expand(2, 5))).sum(1)
    torch.testing.assert_close(gibbs.divergence_of(mean, log_std, scale), wanted)
