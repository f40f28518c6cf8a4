"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from workbench.exercises import Exercise

from .ratings import embedded
from .shrinkage import cure
from .trials import Setting, run_chunk

TRIALS = 10


def _power_tuned(answer) -> None:
    rng = np.random.default_rng(0)
    for n, N in ((4, 6), (20, 5)):
        y, f_u = rng.standard_normal(n), rng.standard_normal(N)
        f = y + rng.standard_normal(n)
        gamma = np.cov(y, f)[0, 1]
        tau2 = np.var(np.concatenate([f, f_u]), ddof=1)
        raw = N / (n + N) * gamma / tau2
        wanted = y.mean() + np.clip(raw, 0, 1) * (f_u.mean() - f.mean())
        given = float(answer(y, f, f_u))
        biased = np.clip((n - 1) / n * raw, 0, 1)
        other = y.mean() + biased * (f_u.mean() - f.mean())
        assert np.isclose(given, wanted) or not np.isclose(given, other), (
            "the covariance divides by n - 1 (ddof = 1)"
        )
        assert np.isclose(given, wanted), f"with n = {n}, N = {N} it is {wanted:.4f}"
    y = np.arange(4.0)
    given = float(answer(y, y / 3, np.ones(6)))  # its lambda is above 1 before it is cut
    assert np.isclose(given, y.mean() + 1 - y.mean() / 3), "lambda is clipped to [0, 1]"
    given = float(answer(y, np.ones(4), np.ones(3)))
    assert np.isclose(given, y.mean()), "constant predictions: lambda is 0"
    given = float(answer(y, -y, -np.arange(3.0)))
    assert np.isclose(given, y.mean()), "lambda is clipped to [0, 1]"


def _cure(answer) -> None:
    rng = np.random.default_rng(1)
    s, g, d = rng.uniform(0.1, 1, 5), rng.uniform(0, 0.1, 5), rng.standard_normal(5)
    for w in (0.0, 0.4, 1.0):
        given = np.asarray(answer(w, s, g, d), float)
        assert given.shape == (5,), f"one number a problem: shape (5,), not {given.shape}"
        wanted = cure(w, s, g, d)
        assert not (w < 1 and np.allclose(given, wanted - 2 * (1 - w) * g)), (
            "the covariance is missing: 2 (1 - w) g"
        )
        assert np.allclose(given, wanted), f"at w = {w} it is {wanted.round(3).tolist()}"


@lru_cache(maxsize=64)
def _means(**changes) -> dict[str, float]:
    setting = Setting(**changes)
    outcome = run_chunk(setting, setting.rows, range(TRIALS))
    return {key: outcome.mean(key) for key in outcome.mse}


def _poor_quality(answer) -> None:
    q = float(answer)
    assert 0 <= q <= 1, "q is from 0 to 1"
    mse = _means(predictor="mix", q=round(q, 3))
    assert mse["shrink_average"] < mse["pas"], (
        f"at q = {q:g} PAS has {1e3 * mse['pas']:.0f}, shrink average "
        f"{1e3 * mse['shrink_average']:.0f} (x 1000): PAS still wins"
    )
    worse = _means(predictor="mix", q=round(min(q + 0.25, 1.0), 3))
    assert worse["shrink_average"] > worse["pas"], (
        f"right, but not the largest such q: it still wins at q = {q + 0.25:g}"
    )


def _enough_labels(answer) -> None:
    frac = float(answer)
    assert 0.05 <= frac <= 0.9, "frac is from 0.05 to 0.9"
    mse = _means(data="amazon", frac=round(frac, 3))
    lost = mse["pas_per_problem"] / mse["pas"] - 1
    assert lost < 0.05, f"at frac = {frac:g} moments of each problem still cost {lost:.0%}"


def _constant_bias(answer) -> None:
    made = embedded("nyt", "tuned")
    f = np.asarray(answer(made.f.copy()), float)
    assert f.shape == made.f.shape, "one prediction an item"
    moved = f - made.f
    assert np.ptp(moved) < 1e-9, "the same constant for all items"
    mse = _means(shift=round(float(moved[0]), 6))
    weight = run_chunk(
        Setting(shift=round(float(moved[0]), 6)), Setting().rows, range(TRIALS)
    ).weight.mean()
    assert mse["prediction"] > 5 * _means()["prediction"], (
        "the prediction mean should have at least five times its error"
    )
    assert weight > 0.9, f"the mean weight on PT is {weight:.2f}: it should be above .9"


power_tuned = Exercise(
    "PT by hand",
    _power_tuned,
    "gamma = np.cov(y, f)[0, 1]; tau2 is the variance, ddof 1, of f and f_u together.",
)
cure_of = Exercise(
    "CURE by hand",
    _cure,
    "Three terms: (2w - 1) s, the covariance, and (1 - w) squared times d squared.",
)
poor_quality = Exercise(
    "Where the grand mean wins",
    _poor_quality,
    "Predictor mix on NYT, tab Quality: where does the solid purple line cross the thick one?",
)
enough_labels = Exercise(
    "Enough labels for moments of each problem",
    _enough_labels,
    "Data amazon, Run the trials with larger and larger frac: compare the two PAS rows.",
)
constant_bias = Exercise(
    "A constant bias",
    _constant_bias,
    "Add the same number to all predictions; the switch shift in the form does the same.",
)
