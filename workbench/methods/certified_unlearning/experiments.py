"""The experiments without networks: the calculator, the audit, and noise against forget size.

Each is a generator of steps that returns plain arrays. What the numbers mean for the claims is in
`findings.py`; experiments with networks are in `comparison.py` and `memory.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.steps import Step, Steps

from . import audit, dp_sgd
from .accounting import ACCOUNTANTS, classical_sigma, epsilon_of, mu_of
from .certificates import Cascade, GradientClipping, ModelClipping, cascade
from .protocol import RELEASED
from .settings import settings_of

RHO = (0.1, 1.0, 5.0, 10.0, 50.0, 100.0)  # at which accountants are compared
DELTAS = 10.0 ** -np.arange(3, 13)  # for the steps of model clipping
MC_RATIOS = (0.25, 0.5, 1.0, 2.0)  # C2 over sigma
GROUPS = (1, 2, 6, 12)  # sizes of forget sets that DP-SGD is calibrated for
DP_EPSILON, DP_BATCH, DP_STEPS = 10.0, 64, 392
# A second setting of the adversary, without regularization.
PLAIN = GradientClipping(1.0, 1.0, 0.1, 0.0)


@dataclass(frozen=True)
class ReleasedRow:
    """A released setting with the noise of both accountings and what survives of the old model.

    epsilon: exact, of the noise that the released accounting takes for 1 (None for MC, whose
    certificate has no such step). survival: signal-to-noise ratio there; T: as computed here.
    """

    name: str
    T: int
    d: int
    sigma: float
    sigma_exact: float
    epsilon: float | None
    survival: float


@dataclass(frozen=True)
class Calculator:
    """What the certificates say, without any training.

    rho (r,) and epsilon[accountant] (r,): conversions. noise_ratio: exact noise over that of the
    released accounting at the target. T (k,): steps; sigma, final (k,): noise for the target, of a
    step and in the released model; epsilon_T (k,): of T steps with the noise that the automatic T
    needs. best_T: (the automatic T, the T of the least noise, by search) without regularization;
    plain_final: final noise of that, beside `final`. None where C1 is 0. lam (l,), T_lam,
    final_lam (l,): the automatic T and final noise of each. deltas (e,): at which model clipping
    needs T_delta[C2 / sigma] (e,) steps. sigmas (s,),
    epsilon_sigma (s,): epsilon at the automatic T. cascades[C2 / sigma]: model clipping at the
    target. classical, exact (e,): noise of output perturbation per unit of sensitivity at
    epsilons (e,).
    """

    target: float
    automatic: int
    rho: np.ndarray
    epsilon: dict[str, np.ndarray]
    noise_ratio: float
    T: np.ndarray
    sigma: np.ndarray
    final: np.ndarray
    epsilon_T: np.ndarray
    best_T: tuple[int, int] | None
    plain_final: float | None
    lam: np.ndarray
    T_lam: np.ndarray
    final_lam: np.ndarray
    sigmas: np.ndarray
    epsilon_sigma: np.ndarray
    cascades: dict[float, Cascade]
    deltas: np.ndarray
    T_delta: dict[float, np.ndarray]
    epsilons: np.ndarray
    classical: np.ndarray
    exact: np.ndarray
    released: list[ReleasedRow]


def calculator_steps(p: Any) -> Steps[Calculator]:
    """Experiment 1: epsilon against T, lambda and sigma; the cascade; four accountants."""
    s = settings_of(p)
    yield Step(0.0, "accountants")
    rho = np.array(RHO)
    epsilon = {name: epsilon_of(np.sqrt(2 * rho), p.delta, name) for name in ACCOUNTANTS}
    T = np.arange(1, max(3 * s.T, 30) + 1)
    lam = np.unique(np.concatenate([[0.0], np.geomspace(1, 0.99 / p.gamma, 60)]))
    row = GradientClipping(p.C0, p.C1, p.gamma, lam)
    T_lam = row.steps() if p.C1 > 0 else np.full(len(lam), s.T)
    sigmas = s.sigma * np.geomspace(0.1, 10, 60)
    yield Step(0.5, "cascade")
    cascades = {ratio: cascade(ratio, 1.0, p.epsilon, p.delta, limit=5000) for ratio in MC_RATIOS}
    epsilons = np.geomspace(0.1, 1e3, 60)
    best_T = plain_final = None
    if p.C1 > 0:
        bare = GradientClipping(p.C0, p.C1, p.gamma, 0.0)
        best_T = bare.steps(), _best_steps(bare)
        plain_final = float(bare.final_noise(s.mu, best_T[0]))
    try:
        released_mu = float(mu_of(p.epsilon, p.delta, "released"))
    except ValueError:  # it cannot report so small an epsilon
        released_mu = np.nan
    return Calculator(
        target=p.epsilon, automatic=s.T, rho=rho, epsilon=epsilon,
        noise_ratio=released_mu / float(mu_of(p.epsilon, p.delta)),
        T=T, sigma=s.gc.sigma(s.mu, T), final=s.gc.final_noise(s.mu, T),
        epsilon_T=epsilon_of(s.gc.mu(s.sigma, T), p.delta, p.accountant),
        best_T=best_T, plain_final=plain_final,
        lam=lam, T_lam=T_lam, final_lam=row.final_noise(s.mu, T_lam),
        sigmas=sigmas, epsilon_sigma=epsilon_of(s.gc.mu(sigmas, s.T), p.delta, p.accountant),
        cascades=cascades, deltas=DELTAS,
        T_delta=_steps_by_delta(p.epsilon, (p.C2 / p.sigma_mc, *MC_RATIOS)), epsilons=epsilons,
        classical=classical_sigma(1.0, epsilons, p.delta, warn=False),
        exact=1 / mu_of(epsilons, p.delta), released=released_rows(),
    )  # fmt: skip


def _best_steps(made: GradientClipping) -> int:
    """The T with the least noise a step, by search: all near the automatic one, others coarsely."""
    near = made.steps() + np.arange(-1000, 1001)
    T = np.unique(np.concatenate([np.geomspace(1, 100 * made.steps(), 2000).round(), near]))
    T = T[T >= 1]
    return int(T[np.argmin(made.sigma(1.0, T))])


def _steps_by_delta(epsilon: float, ratios: Sequence[float]) -> dict[float, np.ndarray]:
    """Steps that model clipping needs for each of DELTAS, by C2 over sigma; those that end."""
    found = {}
    for ratio in ratios:
        try:
            path = cascade(ratio, 1.0, epsilon, DELTAS[-1], limit=5000).deltas
        except ValueError:
            continue
        found[ratio] = np.array([int(np.argmax(path <= delta)) for delta in DELTAS])
    return found


def released_rows(delta: float = 1e-5) -> list[ReleasedRow]:
    """The released settings at epsilon 1, as labelled and as the exact accountant has it."""
    labelled, exact = (float(mu_of(1.0, delta, name)) for name in ("released", "exact"))
    rows = []
    for r in RELEASED:
        m = r.mechanism
        if isinstance(m, ModelClipping):
            T = m.steps(1.0, delta)
            row = ReleasedRow(r.name, T, r.d, m.sigma, m.sigma, None, float(m.survival(r.d)))
            rows.append(row)
            continue
        T = m.steps()
        sigma, right = float(m.sigma(labelled, T)), float(m.sigma(exact, T))
        epsilon = float(epsilon_of(labelled, delta))
        rows.append(
            ReleasedRow(r.name, T, r.d, sigma, right, epsilon, float(m.survival(labelled, r.d, T)))
        )
    return rows


@dataclass(frozen=True)
class AuditCase:
    """One noise under attack.

    label: epsilon as its accountant prints it; certified: exact epsilon of that noise. lower: 95 %
    lower bound from n sampled runs of each side; exact: what the same adversary would show with
    infinitely many, by quadrature. type1, type2 (k,), boxes (k, 4): errors of threshold tests.
    """

    name: str
    C0: float
    C1: float
    gamma: float
    lam: float
    T: int
    accountant: str
    label: float
    sigma: float
    mu: float
    certified: float
    lower: float
    exact: float
    n: int
    type1: np.ndarray
    type2: np.ndarray
    boxes: np.ndarray


@dataclass(frozen=True)
class Audit:
    """Experiment 2a: all noises under attack; chain: (delta shown, delta_t) of model clipping."""

    cases: list[AuditCase] = field(default_factory=list)
    chain: list[tuple[float, float]] = field(default_factory=list)


LABELS = (("released", 1.0), ("exact", 1.0), ("exact", 4.0))


def audit_case(
    c: GradientClipping, T: int, accountant: str, label: float, delta: float, n: int,
    rng: np.random.Generator | int = 0,
) -> AuditCase:  # fmt: skip
    """Sample the sign adversary where `accountant` prints epsilon `label`, and bound epsilon."""
    mu = float(mu_of(label, delta, accountant))
    sigma = float(c.sigma(mu, T))
    plus, minus = audit.scalar_adversary(c, sigma, T, n, rng)
    return AuditCase(
        f"{accountant} {label:g}", c.C0, c.C1, c.gamma, c.lam, T, accountant, label, sigma, mu,
        float(epsilon_of(mu, delta)), audit.lower_bound(plus, minus, delta),
        audit.adversary_epsilon(c, sigma, T, delta), n, *audit.operating_points(plus, minus),
    )  # fmt: skip


def audit_steps(p: Any) -> Steps[Audit]:
    """Experiment 2a: the scalar adversary on two settings and three noises; data: so far."""
    s = settings_of(p)
    rng = np.random.default_rng([p.seed, 5])
    found = Audit()
    jobs = [(c, T, *label) for c, T in ((s.gc, s.T), (PLAIN, PLAIN.steps())) for label in LABELS]
    for k, (c, T, accountant, label) in enumerate(jobs):
        found.cases.append(audit_case(c, T, accountant, label, p.delta, p.audit_n, rng))
        yield Step((k + 1) / (len(jobs) + 1), f"{accountant} accountant, epsilon {label:g}", found)
    deltas = s.mc.cascade(p.epsilon, p.delta).deltas[1:]
    for T, bound in enumerate(deltas, 1):
        shown = audit.two_point_chain(s.mc.C2, s.mc.sigma, T, p.epsilon)
        found.chain.append((shown, float(bound)))
    return found


@dataclass
class ForgetSize:
    """Noise against the number k of examples to forget.

    size (K,); gc, mc (K,): noise of a step, which does not depend on it; dp (K,): multiplier of
    DP-SGD with its epsilon and delta for one example one (K, 2). accuracy[k] (S,): networks that
    were trained with DP-SGD for that k, with clipping norm C or, with more trials than one, the
    learning rate and norm chosen[k]; gc_accuracy (S,): gradient clipping at the same epsilon,
    steps and trials. own: (size, multiplier) for the forget set of the parameters,
    nan where integer orders cannot certify it.
    """

    epsilon: float
    n: int
    batch: int
    steps: int
    size: np.ndarray
    gc: np.ndarray
    mc: np.ndarray
    dp: np.ndarray
    one: np.ndarray
    own: tuple[int, float] = (0, np.nan)
    C: float = 1.0
    chosen: dict[int, tuple[float, float]] = field(default_factory=dict)
    accuracy: dict[int, np.ndarray] = field(default_factory=dict)
    gc_accuracy: np.ndarray | None = None


def forget_size(p: Any, n: int = 1257) -> ForgetSize:
    """Experiment 6 without training, for `n` training examples."""
    s = settings_of(p, DP_EPSILON, [DP_STEPS])
    q = DP_BATCH / n
    size = np.array(GROUPS)

    def z(k: int, epsilon: float) -> float:
        try:
            return dp_sgd.multiplier(epsilon, p.delta, q, DP_STEPS, k)
        except ValueError:
            return np.nan

    own = max(int(n * p.forget_frac), 1)
    return ForgetSize(
        DP_EPSILON, n, DP_BATCH, DP_STEPS, size, np.full(len(size), s.sigma),
        np.full(len(size), s.mc.sigma), np.array([z(k, DP_EPSILON) for k in size]),
        np.array([dp_sgd.of_one(DP_EPSILON, p.delta, k) for k in size]),
        (own, z(own, DP_EPSILON)),
    )  # fmt: skip
