"""Certificates of certified unlearning: the oracles of its specification, and their limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.methods.certified_unlearning.accounting import epsilon_of, mu_of, theta
from workbench.methods.certified_unlearning.certificates import (
    GradientClipping,
    ModelClipping,
    NoiseFirst,
    OutputPerturbation,
    cascade,
    cascade_path,
    per_step,
    survival_bound,
)
from workbench.methods.certified_unlearning.clock import Clock

MU = float(mu_of(1.0, 1e-5))
DEFAULT = GradientClipping(0.03, 3, 0.001, 100)
PLAIN = GradientClipping(1, 1, 0.1, 0)


@pytest.mark.parametrize(
    ("certificate", "T", "shift", "noise_sum", "sigma"),
    [
        (DEFAULT, 7, 0.060000, 4.059116, 0.111101),
        (GradientClipping(0.01, 10, 1e-4, 750), 6, 0.022491, 4.208661, 0.040899),
        (GradientClipping(20, 10, 0.01, 50), 11, 0.419336, 4 / 3, None),
        (PLAIN, 10, 4.0, 10.0, 4.718917),
    ],
)
def test_gradient_clipping_agrees_with_the_oracles(certificate, T, shift, noise_sum, sigma):
    assert certificate.steps() == T
    assert certificate.shift() == pytest.approx(shift, abs=5e-7)
    assert certificate.noise_sum() == pytest.approx(noise_sum, rel=1e-6)
    if sigma is not None:
        assert certificate.sigma(MU) == pytest.approx(sigma, abs=5e-7)
    assert certificate.mu(certificate.sigma(MU)) == pytest.approx(MU)


def test_the_final_noise_is_what_is_left_of_all_steps():
    assert DEFAULT.final_noise(MU) == pytest.approx(0.223838, abs=5e-7)
    assert DEFAULT.sigma(MU) * np.sqrt(DEFAULT.noise_sum()) == pytest.approx(
        DEFAULT.final_noise(MU)
    )
    # With many steps it behaves like output perturbation of a ball of radius C1 / lambda.
    assert DEFAULT.final_noise(MU, 1000) == pytest.approx(2 * 3 / 100 / MU)


def test_without_regularization_the_automatic_steps_need_the_least_noise():
    sigma = PLAIN.sigma(MU, np.arange(1, 60))
    assert np.argmin(sigma) + 1 == PLAIN.steps() == 10
    assert sigma.min() ** 2 == pytest.approx(16 * 0.1 * 1 * 1 / MU**2)


def test_no_regularization_is_the_limit_of_little():
    little = GradientClipping(1, 1, 0.1, 1e-6)
    for T in (1, 10, 100):
        assert little.sigma(MU, T) == pytest.approx(PLAIN.sigma(MU, T), rel=1e-5)
    tiny = GradientClipping(1, 1, 0.1, 1e-9)
    assert tiny.sigma(MU, 10) == pytest.approx(PLAIN.sigma(MU, 10), rel=1e-8)
    assert GradientClipping(1, 1, 0.1, 1e-6).sigma(MU) == pytest.approx(PLAIN.sigma(MU), rel=1e-6)


def test_special_cases_are_the_gaussian_mechanism():
    still = GradientClipping(0.5, 0, 0.1, 0)
    assert still.sigma(MU, 1) == pytest.approx(OutputPerturbation(0.5).sigma(MU))
    for T in (1, 3, 50):
        assert np.sqrt(T) * still.sigma(MU, T) == pytest.approx(2 * 0.5 / MU)
    balanced = GradientClipping(0.03, 3, 0.001, 100)  # C1 / lambda = C0
    assert balanced.shift(np.arange(1, 40)) == pytest.approx(2 * 0.03)


positive = st.floats(1e-3, 10)


@given(positive, positive, st.floats(1e-4, 0.5), st.floats(0, 0.99), st.integers(1, 200))
def test_the_guarantee_grows_with_noise_and_falls_with_the_radii(C0, C1, gamma, share, T):
    lam = share / gamma
    made = GradientClipping(C0, C1, gamma, lam)
    assert made.mu(2.0, T) < made.mu(1.0, T)
    # Strictly, unless contraction has left nothing of C0 in double precision.
    assert GradientClipping(2 * C0, C1, gamma, lam).mu(1.0, T) >= made.mu(1.0, T)
    assert GradientClipping(C0, 2 * C1, gamma, lam).mu(1.0, T) > made.mu(1.0, T)


@given(positive, positive, st.floats(1e-3, 0.5), st.floats(0, 0.9), st.integers(1, 30))
@settings(max_examples=50)
def test_steps_that_differ_contain_the_constant_ones_and_decreasing_noise(C0, C1, gamma, share, T):
    made = GradientClipping(C0, C1, gamma, share / gamma)
    found = made.certificate(made.schedule(MU, T))
    assert found.shift == pytest.approx(made.shift(T)) and found.mu == pytest.approx(MU)
    falling = made.schedule(MU, T, "decreasing")
    assert np.all(np.diff(falling) <= 1e-12 * falling[0])
    assert made.certificate(falling).mu == pytest.approx(MU)
    rho = float(made.rho)
    assert np.ptp((falling * rho ** np.arange(T - 1, -1, -1.0)) ** 2) <= 1e-9 * falling[-1] ** 2
    # The straight split is only allowed if no step absorbs distance that is not there yet.
    assert found.mu >= found.shift / np.sqrt(found.noise_sum) * (1 - 1e-9)


def test_noise_before_there_is_distance_does_not_count():
    # All distance is added by the last step: noise before it absorbs nothing.
    early = per_step(0.0, [1, 1, 1], [0, 0, 1], [5, 5, 1])
    assert early.mu == pytest.approx(1.0) and early.noise_sum == 51
    late = per_step(1.0, [1, 1, 1], [0, 0, 0], [1, 1, 1])
    assert late.mu == pytest.approx(1 / np.sqrt(3))
    assert per_step(1.0, [], [], []).mu == np.inf
    assert per_step(1.0, [1], [0], [0]).mu == np.inf
    with pytest.raises(ValueError, match="one value for each step"):
        per_step(1.0, [1], [0, 0], [1])


def test_the_proof_absorbs_all_distance_and_never_more_than_there_is():
    for made in (DEFAULT, PLAIN, GradientClipping(20, 10, 0.01, 50)):
        z, absorbed = made.distances()
        assert z[0] == 2 * made.C0 and abs(z[-1]) < 1e-12 * z[0]
        assert z.min() > -1e-12 and len(absorbed) == made.steps()
        sigma = made.sigma(MU)
        assert np.sqrt((absorbed**2).sum()) / sigma == pytest.approx(MU)


def test_arrays_make_the_landscape_at_once():
    lam, T = np.linspace(0, 900, 40)[:, None], np.arange(1, 31)[None]
    noise = GradientClipping(0.03, 3, 0.001, lam).final_noise(MU, T)
    assert noise.shape == (40, 30)
    one = GradientClipping(0.03, 3, 0.001, float(lam[5, 0]))
    assert noise[5] == pytest.approx(one.final_noise(MU, T[0]))
    steps = GradientClipping(0.03, 3, 0.001, lam[:, 0]).steps()
    assert steps[5] == one.steps() and steps.dtype.kind == "i"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: GradientClipping(1, 1, 0.01, 120), r"gamma\*lambda = 1.2 must be below 1: the"),
        (lambda: GradientClipping(0, 1, 0.1, 0), "C0 = 0; allowed are finite numbers above 0"),
        (lambda: GradientClipping(1, 1, 0, 0), "gamma = 0"),
        (lambda: GradientClipping(1, -1, 0.1, 0), "C1 = -1; allowed are finite numbers from 0"),
        (lambda: GradientClipping(1, 0, 0.1, 0).steps(), "C1 = 0 needs an explicit T"),
        (lambda: PLAIN.sigma(MU, 0), "T = 0; allowed are integers from 1"),
        (lambda: PLAIN.sigma(MU, 2.5), "T = 2.5"),
        (lambda: PLAIN.schedule(MU, kind="rising"), "allowed are constant, decreasing"),
        (lambda: cascade(1, 0.23, 1, 1e-5), "sigma/C2 too small: per-step factor 0.99999"),
        (lambda: cascade(1, 1e-3, 1, 1e-5), "sigma/C2 too small: per-step factor 1.00000"),
        (lambda: cascade(1, 1, 0, 1e-5), "epsilon = 0"),
        (lambda: cascade(1, 1, 1, 0.7), "delta = 0.7"),
        (lambda: ModelClipping(1, 1, C0=1.0), "give both or none"),
        (lambda: ModelClipping(-1, 1), "C2 = -1"),
        (lambda: OutputPerturbation(np.nan), "C0 = nan"),
    ],
)
def test_bad_input_is_one_line(made, words):
    with pytest.raises(ValueError, match=words) as error:
        made()
    assert "\n" not in str(error.value)


# Model clipping ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("C2", "sigma", "T", "deltas"),
    [
        (0.1, 0.4, 2, [6.830e-3]),
        (0.1, 0.2, 3, [1.269e-1, 4.982e-4]),
        (0.5, 0.5, 6, [0.5099, 0.2160, 0.06486, 0.009548, 2.483e-4]),
        (1, 0.5, 40, []),
    ],
)
def test_the_cascade_agrees_with_the_oracles(C2, sigma, T, deltas):
    found = cascade(C2, sigma, 1.0, 1e-5)
    assert found.steps == T and found.deltas[0] == 1
    assert found.deltas[1] == pytest.approx(theta(1, 2 * C2 / sigma), rel=1e-12)
    assert found.deltas[1 : 1 + len(deltas)] == pytest.approx(deltas, rel=4e-4)
    assert found.deltas[-1] <= 1e-5 < found.deltas[-2]


def test_a_noised_start_saves_steps():
    found = cascade(0.5, 0.5, 1.0, 1e-5, C0=1, sigma0=2)
    assert found.deltas == pytest.approx([0.1269, 0.02879, 0.002228, 9.243e-6], rel=5e-4)
    assert ModelClipping(0.5, 0.5, C0=1, sigma0=2).steps(1.0, 1e-5) == 3


def test_the_local_epsilon_grows_and_the_weak_bound_is_weaker():
    found = cascade(0.5, 0.5, 1.0, 1e-5)
    assert found.epsilons[0] == pytest.approx(1.0) and np.all(np.diff(found.epsilons) > 0)
    assert found.epsilons[1] == pytest.approx(np.log1p(np.expm1(1) / found.deltas[1]))
    assert np.all(found.deltas <= found.weak)
    assert np.all(np.diff(np.log(found.deltas), 2) < 0)  # the decay accelerates


@given(st.floats(0.05, 3), st.floats(0.01, 50), st.integers(1, 12))
@settings(max_examples=50)
def test_the_vectorized_cascade_is_the_same(ratio, epsilon, steps):
    deltas, local, weak = cascade_path([ratio, 1.0], epsilon, steps)
    one = cascade(ratio, 1.0, epsilon, 1e-5, steps=steps)
    assert deltas[:, 0] == pytest.approx(one.deltas, rel=1e-8, abs=1e-300)
    assert local[:, 0] == pytest.approx(one.epsilons, rel=1e-8)
    assert weak[:, 0] == pytest.approx(one.weak, rel=1e-9)


def test_one_step_is_output_perturbation_with_the_exact_calibration():
    sigma = float(OutputPerturbation(0.3).sigma(MU))
    assert cascade(0.3, sigma * (1 + 1e-9), 1.0, 1e-5).steps == 1
    made = ModelClipping.calibrated(0.3, 1.0, 1e-5, 1)
    assert made.sigma == pytest.approx(sigma, rel=1e-8)
    assert made.epsilon(1e-5, 1) == pytest.approx(1.0, rel=1e-6)


def test_noise_before_the_projection_is_counted_with_the_wider_radius():
    made = NoiseFirst(0.1, 0.2, gamma=1.0, C1=1.0)
    assert made.radius == pytest.approx(1.1)
    alone = float(epsilon_of(2 * 1.1 / 0.2, 1e-5))  # one step is the Gaussian mechanism
    assert made.epsilon(1e-5, 1) == pytest.approx(alone, rel=1e-6) and alone > 100
    for T in (1, 3):
        wide = ModelClipping(0.6, 0.5)
        other = NoiseFirst(0.5, 0.5, gamma=0.1, C1=1.0)
        assert other.epsilon(1e-5, T) == pytest.approx(wide.epsilon(1e-5, T))
        assert other.cascade(1.0, 1e-5, T).deltas == pytest.approx(
            wide.cascade(1.0, 1e-5, T).deltas
        )
    least = NoiseFirst.calibrated(0.5, 1.0, 1e-5, 3, gamma=0.1, C1=2.0)
    assert least.C1 == 2.0
    assert least.sigma == pytest.approx(ModelClipping.calibrated(0.7, 1.0, 1e-5, 3).sigma)
    clock = Clock(made, 5.0, 1e-5, 3)
    assert clock.tick(0.2) > 100 and not clock.certified
    with pytest.raises(ValueError, match="the start is clipped to C2 alone"):
        NoiseFirst(0.5, 0.5, C0=1.0, sigma0=1.0)


def test_epsilon_of_model_clipping_inverts_its_cascade():
    made = ModelClipping(0.1, 0.2)
    assert made.epsilon(1e-5, 0) == np.inf
    spent = [made.epsilon(1e-5, T) for T in (1, 2, 3)]
    assert spent[0] > spent[1] > 1 > spent[2]
    assert made.cascade(spent[1], 1e-5, 2).deltas[-1] == pytest.approx(1e-5, rel=1e-6)
    least = ModelClipping.calibrated(0.1, 1.0, 1e-5, 3)
    assert least.sigma < 0.2 and least.steps(1.0 + 1e-6, 1e-5) == 3


# The clock ---------------------------------------------------------------------------------------


def test_the_clock_of_gradient_clipping_ends_at_the_target():
    sigma = float(DEFAULT.sigma(MU))
    clock = Clock(DEFAULT, 1.0, 1e-5, 7)
    assert not clock.certified and clock.now == np.inf
    assert str(clock).startswith("uncertified: 0 of 7 noisy steps") and "infinite" in str(clock)
    for T in range(1, 8):
        now = clock.tick(sigma)
        assert now == pytest.approx(epsilon_of(DEFAULT.mu(sigma, T), 1e-5))
        assert clock.certified == (T == 7)
    assert clock.now == pytest.approx(1.0) and clock.made == 7
    assert str(clock).startswith("certified: epsilon = 1 at delta = 1e-05 after 7 noisy steps")


def test_a_phase_that_stops_early_is_uncertified_with_its_epsilon():
    clock = Clock(DEFAULT, 1.0, 1e-5, 7)
    for _ in range(3):
        clock.tick(float(DEFAULT.sigma(MU)))
    assert not clock.certified and 1 < clock.now < np.inf
    assert f"epsilon is {clock.now:.4g}" in str(clock) and "3 of 7" in str(clock)


def test_the_clock_counts_the_noise_that_was_really_added():
    weak = Clock(DEFAULT, 1.0, 1e-5, 7)
    for _ in range(7):
        weak.tick(0.5 * float(DEFAULT.sigma(MU)))
    assert not weak.certified and weak.now == pytest.approx(epsilon_of(2 * MU, 1e-5))


@pytest.mark.parametrize("accountant", ["rdp", "zcdp", "released"])
def test_the_exact_accountant_judges_whichever_one_set_the_noise(accountant):
    mu = float(mu_of(1.0, 1e-5, accountant))
    clock = Clock(DEFAULT, 1.0, 1e-5, 7, accountant)
    for _ in range(7):
        clock.tick(float(DEFAULT.sigma(mu)))
    assert clock.now == pytest.approx(float(epsilon_of(mu, 1e-5)))
    assert "prints 1)" in str(clock)
    if accountant == "released":
        assert not clock.certified and clock.now == pytest.approx(6.559, abs=1e-3)
        assert str(clock).startswith("uncertified: ") and "epsilon is 6.559" in str(clock)
        assert "the accounting of the released scripts, as we read it" in str(clock)
    else:
        assert clock.certified and clock.now < 1


def test_noise_that_is_known_guarantees_nothing():
    clock = Clock(OutputPerturbation(0.01), 1.0, 1e-5, 1, secret=False)
    clock.tick(0.01 * 2 / MU)
    assert clock.enough and not clock.certified
    assert str(clock).startswith("no guarantee: seed given")


def test_the_clocks_of_the_other_mechanisms():
    clock = Clock(ModelClipping(0.1, 0.2), 1.0, 1e-5, 3)
    spent = [clock.tick(0.2) for _ in range(3)]
    assert spent[0] > spent[1] > 1 > spent[2] and clock.certified
    with pytest.raises(ValueError, match=r"model clipping was set to 0\.2"):
        clock.tick(0.1)
    op = OutputPerturbation(0.01)
    once = Clock(op, 1.0, 1e-5, 1)
    assert once.tick(float(op.sigma(MU))) == pytest.approx(1.0) and once.certified


def test_what_survives_is_below_the_bound():
    assert survival_bound(MU, 385) == pytest.approx(0.007, abs=2e-4)
    for made in (DEFAULT, PLAIN, GradientClipping(0.01, 10, 1e-4, 750)):
        assert made.survival(MU, 385) <= survival_bound(MU, 385)
    released = float(mu_of(1.0, 1e-5, "released"))
    mnist = GradientClipping(0.01, 10, 1e-4, 750).survival(released, 3985)
    cifar = GradientClipping(0.1, 10, 1e-3, 50).survival(released, 20042)
    assert mnist == pytest.approx(0.0062, abs=5e-5) and cifar == pytest.approx(0.0021, abs=5e-5)
