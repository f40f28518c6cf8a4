"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace

import numpy as np

from workbench.exercises import Exercise
from workbench.steps import run

from . import accounting, audit, memory
from .certificates import GradientClipping

BALL = {"C0": 0.03, "C1": 3.0, "gamma": 0.001}
RADIUS, DELTA, D = 0.01, 1e-5, 385
RUNS = 50_000
SETTINGS = SimpleNamespace(  # of the membership attack, the defaults of the study
    **BALL, lam=100.0, T=0, epsilon=1.0, delta=DELTA, accountant="exact", C2=0.1, sigma_mc=0.2,
    gamma_mc=0.5, C0_op=RADIUS, lr_ft=1.0, budget=[40], hidden=[5], batch=32, wd=5e-4,
    forget_frac=0.1, mia_seeds=2, seed=0,
)  # fmt: skip


def _shift(answer) -> None:
    for C0, C1, gamma, lam, T in (
        (1, 1, 0.1, 0, 10),
        (0.03, 3, 0.001, 100, 7),
        (20, 10, 0.01, 50, 11),
    ):
        given = float(answer(C0, C1, gamma, lam, T))
        wanted = float(GradientClipping(C0, C1, gamma, lam).shift(T))
        assert not np.isclose(2 * given, wanted), (
            "both runs are pushed: 2 gamma C1 a step, from 2 C0"
        )
        assert np.isclose(given, wanted), (
            f"C0 = {C0}, C1 = {C1}, gamma = {gamma}, lambda = {lam}, T = {T}: {wanted:.6g}, "
            f"not {given:.6g}"
        )


def _smaller_ball(answer) -> None:
    lam = float(answer)
    assert 0 <= lam * BALL["gamma"] < 1, "gamma * lambda must be from 0 to below 1"
    mu = accounting.mu_of(1.0, DELTA)
    final = float(GradientClipping(**BALL, lam=lam).final_noise(mu))
    other = 2 * RADIUS / mu
    assert final < other, (
        f"at lambda = {lam:g} the final noise is {final:.4f}, of output perturbation {other:.4f}"
    )


def _failing_audit(answer) -> None:
    accountant, epsilon = answer
    made = GradientClipping(**BALL, lam=100)
    T = made.steps()
    mu = float(accounting.mu_of(epsilon, DELTA, accountant))
    plus, minus = audit.scalar_adversary(
        made, float(made.sigma(mu, T)), T, RUNS, np.random.default_rng(0)
    )
    bound = audit.lower_bound(plus, minus, DELTA)
    assert bound > epsilon, (
        f"accountant {accountant} prints {epsilon:g}, the attacker shows {max(bound, 0):.3g}: "
        "no contradiction"
    )


def _failed_attack(answer) -> None:
    key = str(answer)
    assert key in memory.MIA_METHODS, f"methods are {', '.join(memory.MIA_METHODS)}"
    assert key not in ("gc", "retrain"), f"{key} has a guarantee, or never saw the users"
    area = _area(key)
    assert abs(area - 0.5) < 0.1, f"{key}: the attack has an AUC of {area:.2f}, it works"


@lru_cache(maxsize=4)
def _area(key: str) -> float:
    found = run(memory.membership_steps(SETTINGS, 2, (40,), (key,)))
    return float(np.mean(found.auc[key, 40]))


def _useful(answer) -> None:
    epsilon = float(answer)
    assert 0 < epsilon <= accounting.MAX_EPSILON, "epsilon is above 0 and at most 1e6"
    ratio = float(accounting.mu_of(epsilon, DELTA)) / (2 * np.sqrt(D))
    assert ratio >= 0.0999, f"at epsilon = {epsilon:g} the bound is {ratio:.4f}: too small still"
    assert ratio <= 0.103, f"at epsilon = {epsilon:g} the bound is {ratio:.3f}: smaller is enough"


shift_by_hand = Exercise(
    "Delta_T by hand",
    _shift,
    "One line for each step: distance = rho * distance + what both runs are pushed apart.",
)
smaller_ball = Exercise(
    "Less noise than output perturbation",
    _smaller_ball,
    "After many steps the noise is 2 C1 / (lambda mu), that of a ball of radius C1 / lambda.",
)
failing_audit = Exercise(
    "Make the audit fail",
    _failing_audit,
    "Tab Two clouds: which accountant lets the attacker's points cross the printed curve?",
)
failed_attack = Exercise(
    "A failed attack without a certificate",
    _failed_attack,
    "Tab Attack: which method without any noise has an AUC of one half?",
)
useful_epsilon = Exercise(
    "Where the old model could begin to help",
    _useful,
    "mu / (2 sqrt(d)) = .1 gives mu; accounting.epsilon_of(mu, delta) gives epsilon.",
)
