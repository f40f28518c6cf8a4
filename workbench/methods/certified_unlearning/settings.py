"""The three mechanisms as parameters set them, with their steps and noise; light, no networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .accounting import classical_sigma, mu_of
from .certificates import GradientClipping, ModelClipping, OutputPerturbation


@dataclass(frozen=True)
class Settings:
    """Mechanisms that hold epsilon at delta, as far as `accountant` is right.

    mu: the GDP parameter of GC and OP; T, sigma: steps of GC and the noise of each; T_mc: steps of
    MC; sigma_op, sigma_classical: noise of OP, exact and by the textbook.
    """

    epsilon: float
    delta: float
    accountant: str
    mu: float
    gc: GradientClipping
    T: int
    sigma: float
    mc: ModelClipping
    T_mc: int
    op: OutputPerturbation
    sigma_op: float
    sigma_classical: float


def settings_of(p: Any, epsilon: float | None = None, budgets: Any = None) -> Settings:
    """The settings of `study.Parameters`, at its epsilon or at another.

    Raises ValueError in one line for a step that overshoots, noise that is never enough, and a
    noisy phase that is longer than the smallest budget (`budgets`, None: those of p).
    With `epsilon` given the noise of MC is the least with which as many steps are enough, even at
    p's own, where `sigma_mc` is a little more.
    """
    target = p.epsilon if epsilon is None else epsilon
    gc = GradientClipping(p.C0, p.C1, p.gamma, p.lam)
    T = p.T or gc.steps()
    mu = float(mu_of(target, p.delta, p.accountant))
    mc = ModelClipping(p.C2, p.sigma_mc, p.gamma_mc, p.wd)
    T_mc = mc.steps(p.epsilon, p.delta)
    if epsilon is not None:
        mc = ModelClipping.calibrated(p.C2, target, p.delta, T_mc, gamma=p.gamma_mc, lam=p.wd)
    budget = min(p.budget if budgets is None else budgets)
    for noisy in (T, T_mc):
        check_budget(noisy, budget)
    op = OutputPerturbation(p.C0_op)
    return Settings(
        target, p.delta, p.accountant, mu, gc, T, float(gc.sigma(mu, T)), mc, T_mc, op,
        float(op.sigma(mu)),
        float(classical_sigma(2 * p.C0_op, target, p.delta, warn=False)),
    )  # fmt: skip


def check_budget(noisy: int, budget: int) -> None:
    """ValueError if the noisy phase is longer than the budget."""
    if noisy > budget:
        raise ValueError(f"T = {noisy} noisy steps exceed the budget of {budget}")
