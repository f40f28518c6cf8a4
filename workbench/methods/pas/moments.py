"""Second moments of each problem, and what follows from them: four ways to come by them.

sigma2 = Var(Y), tau2 = Var(f(X)), gamma = Cov(Y, f(X)) within a problem. `known` is for
simulations; `per_problem` is unbiased and noisy; `pooled_within` borrows strength from all
problems; `pooled_total` is what the official program does on real data, spread between problems
included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.numerics.checks import choice

from .problems import Problems

REGIMES = ("known", "per_problem", "pooled_within", "pooled_total")
FLOOR = 1e-12  # of a variance that comes out negative or zero
ROUNDING = 1e-26  # of a variance, relative to the squared mean


@dataclass(frozen=True)
class Moments:
    """sigma2, tau2, gamma (m,) and the name of their regime.

    tuning: (tau2, gamma) that the power tuning uses, if they are others.
    """

    regime: str
    sigma2: np.ndarray
    tau2: np.ndarray
    gamma: np.ndarray
    tuning: tuple[np.ndarray, np.ndarray] | None = None

    @staticmethod
    def known(sigma2: ArrayLike, tau2: ArrayLike, gamma: ArrayLike) -> Moments:
        """Moments that are known: arrays (m,) or numbers for all problems.

        Raises ValueError for negative variances and gamma^2 > sigma2 tau2.
        """
        try:
            given = [np.atleast_1d(np.asarray(v, float)) for v in (sigma2, tau2, gamma)]
        except (TypeError, ValueError):
            raise ValueError("known moments must be numbers or arrays of numbers") from None
        if max(v.ndim for v in given) > 1:
            shapes = ", ".join(str(v.shape) for v in given)
            raise ValueError(f"known moments have shapes {shapes}: give one number a problem")
        try:
            found = np.broadcast_arrays(*given)
        except ValueError:
            shapes = ", ".join(str(np.shape(v)) for v in (sigma2, tau2, gamma))
            raise ValueError(f"known moments have shapes {shapes}: give all the same") from None
        s, t, g = (np.array(v) for v in found)
        for name, values in (("sigma2", s), ("tau2", t), ("gamma", g)):
            low = name != "gamma" and (values < 0)
            bad = np.flatnonzero(~np.isfinite(values) | low)
            if len(bad):
                allowed = "finite" if name == "gamma" else "finite and not negative"
                raise ValueError(
                    f"known {name} is {values[bad[0]]:g} for problem {bad[0]}: it must be {allowed}"
                )
        bad = np.flatnonzero(g**2 > s * t * (1 + 1e-9) + 1e-9)  # relative too: units are any
        if len(bad):
            j = bad[0]
            raise ValueError(
                f"known moments of problem {j} are impossible: gamma^2 = {g[j] ** 2:.6g} is more "
                f"than sigma2 tau2 = {s[j] * t[j]:.6g}"
            )
        return Moments("known", s, t, g)


def moments_of(problems: Problems, regime: str | Moments = "pooled_within") -> Moments:
    """Moments of the problems in a regime, or those given, checked against the number of problems.

    Raises ValueError for an unknown regime, and for a regime that needs two labelled items of each
    problem (or of one, when pooled) where there are fewer.
    """
    if isinstance(regime, Moments):
        m = len(problems)
        if len(regime.sigma2) not in (1, m):
            raise ValueError(f"moments of {len(regime.sigma2)} problems for {m} problems")
        return Moments(
            regime.regime, *(np.broadcast_to(v, m) for v in (regime.sigma2, regime.tau2,
                                                             regime.gamma)), regime.tuning
        )  # fmt: skip
    choice("moments", regime, REGIMES)
    if regime == "known":
        raise ValueError(
            "moments = 'known' needs the values: moments = Moments.known(sigma2, tau2, gamma)"
        )
    return {"per_problem": per_problem, "pooled_within": pooled_within,
            "pooled_total": pooled_total}[regime](problems)  # fmt: skip


def per_problem(p: Problems) -> Moments:
    """Unbiased moments of each problem by itself (ddof 1); tau2 from all its predictions."""
    few = np.flatnonzero(p.n < 2)
    if len(few):
        more = f" (and {len(few) - 1} more)" if len(few) > 1 else ""
        raise ValueError(
            f"problem '{p.names[few[0]]}'{more} has 1 labelled item: moments of each problem need "
            "2; take moments = 'pooled_within'"
        )
    return Moments("per_problem", p.s_yy / (p.n - 1), p.s_all / (p.n + p.N - 1), p.s_yf / (p.n - 1))


def pooled_within(p: Problems) -> Moments:
    """The same moments for all problems: averages over them, weights n - 1 and n + N - 1."""
    labelled, every = (p.n - 1).sum(), (p.n + p.N - 1).sum()
    if labelled < 1:
        raise ValueError(
            "no problem has more than 1 labelled item: variances need 2 in one problem at least"
        )
    ones = np.ones(len(p))
    return Moments(
        "pooled_within", ones * (p.s_yy.sum() / labelled), ones * (p.s_all.sum() / every),
        ones * (p.s_yf.sum() / labelled),
    )  # fmt: skip


def pooled_total(p: Problems) -> Moments:
    """As in the official program on real data: moments over all items, whatever their problem.

    The power tuning keeps the moments of each problem. tau2 is of unlabelled predictions only.
    """
    own = per_problem(p)
    n, N = p.n.sum(), p.N.sum()
    dy = p.y_bar - (p.n @ p.y_bar) / n
    df = p.z_bar - (p.n @ p.z_bar) / n
    du = p.z_tilde - (p.N @ p.z_tilde) / N
    sigma2 = (p.s_yy.sum() + p.n @ dy**2) / (n - 1)
    gamma = (p.s_yf.sum() + p.n @ (dy * df)) / (n - 1)
    tau2 = (p.s_uu.sum() + p.N @ du**2) / max(N - 1, 1)
    ones = np.ones(len(p))
    return Moments("pooled_total", ones * sigma2, ones * tau2, ones * gamma, (own.tau2, own.gamma))


def power(p: Problems, moments: Moments) -> np.ndarray:
    """lambda_j = clip(N / (n + N) gamma / tau2) to [0, 1]; 0 where predictions are constant."""
    tau2, gamma = moments.tuning or (moments.tau2, moments.gamma)
    # Constant predictions leave rounding in tau2, whose ratio would be noise.
    vary = np.asarray(tau2) > ROUNDING * (p.z_bar**2 + p.z_tilde**2)
    ratio = np.divide(gamma, tau2, out=np.zeros(len(p)), where=vary)
    return np.clip(p.N / (p.n + p.N) * ratio, 0.0, 1.0)


def common_power(p: Problems, moments: Moments) -> float:
    """The one lambda of UniPT, which minimizes the summed variance of all problems."""
    below = (moments.tau2 * (p.n + p.N) / (p.n * p.N)).sum()
    return float(np.clip((moments.gamma / p.n).sum() / below, 0, 1)) if below > 0 else 0.0


def variance(p: Problems, moments: Moments, lam: np.ndarray | float) -> np.ndarray:
    """Variance (m,) of the estimate with a fixed lambda; not floored."""
    spread = moments.tau2 * (p.n + p.N) / (p.n * p.N)
    return moments.sigma2 / p.n + lam**2 * spread - 2 * lam * moments.gamma / p.n


def covariance(p: Problems, moments: Moments, lam: np.ndarray | float) -> np.ndarray:
    """Covariance (m,) of the estimate with a fixed lambda and the mean prediction."""
    return lam * moments.tau2 / p.N


def residual_variance(p: Problems, moments: Moments, lam: float) -> np.ndarray:
    """Variance (m,) of the mean of y - lambda f over labelled items, for EB-PPI.

    Labelled items only; pooled regimes pool it within problems.
    """
    if moments.regime == "known":
        return (moments.sigma2 + lam**2 * moments.tau2 - 2 * lam * moments.gamma) / p.n
    sums = p.s_yy + lam**2 * p.s_ff - 2 * lam * p.s_yf
    if moments.regime == "per_problem":
        return sums / (p.n - 1) / p.n
    return sums.sum() / (p.n - 1).sum() / p.n
