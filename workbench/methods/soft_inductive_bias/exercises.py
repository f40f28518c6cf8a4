"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from workbench.exercises import Exercise

from . import bounds, closed_forms, digits, double_descent


@lru_cache(maxsize=64)
def _worst(gamma: float, seed: int) -> float:
    found = closed_forms.refit(150, gamma, 1e-6, "chebyshev", 30, seed, scattered=True)
    return max(found.test["simple"], found.test["complex"])


def _broken(answer) -> None:
    gamma = float(answer)
    assert 1 <= gamma <= 3, "gamma is from 1 to 3"
    errors = [_worst(round(gamma, 3), seed) for seed in range(5)]
    assert np.median(errors) > 0.8, (
        f"at gamma = {gamma:g} the median test RMSE is {np.median(errors):.2f}: not broken yet"
    )


def _bits(answer) -> None:
    for risk, n, delta, target in ((0.15, 1437, 0.05, 0.5), (0.0, 1000, 0.01, 0.1)):
        given = float(answer(risk, n, delta, target))
        wanted = float(bounds.bits_for(target, risk, n, delta))
        nats = wanted * bounds.LOG2
        assert not np.isclose(given, nats, rtol=1e-6), "these are nats: divide by log 2"
        assert np.isclose(given, wanted, rtol=1e-4), (
            f"error {risk}, n = {n}, bound {target}: {wanted:.1f} bits, not {given:.1f}"
        )


@lru_cache(maxsize=64)
def _choice(group: str):
    return [closed_forms.symmetric_choice("upright", 100, s, group) for s in range(4)]


def _harmful(answer) -> None:
    group = str(answer)
    assert group in digits.GROUPS, f"groups are {', '.join(digits.GROUPS)}"
    assert group != "none", "a group with something in it"
    hard = np.mean([c.hard for c in _choice(group)])
    none = np.mean([c.none for c in _choice(group)])
    assert hard < none - 0.03, (
        f"{group}: hard symmetry has accuracy {hard:.3f}, none {none:.3f}: it does not hurt by .03"
    )


@lru_cache(maxsize=4)
def _features(seed: int):
    return [double_descent.relu_features(d, seed, 300) for d in (150, 300, 1200)]


def _ridge(answer) -> None:
    ridge = float(answer)
    assert ridge > 0, "a ridge above 0"
    errors = np.mean([[f.errors(ridge)[1] for f in _features(s)] for s in (0, 1)], axis=0)
    assert errors[1] <= errors[0] and errors[2] <= errors[1] + 0.005, (
        f"test errors at d = 150, 300, 1200 are {errors.round(3).tolist()}: there is a peak still"
    )
    assert errors[0] < 0.2, f"the ridge is so large that the error is {errors[0]:.2f}"


broken = Exercise(
    "Break benign overfitting",
    _broken,
    "In tab Polynomials: random x, sigma2 at 1e-6, then raise gamma and watch the test RMSE.",
)
bits_allowed = Exercise(
    "How many bits may a network cost?",
    _bits,
    "Solve kl(risk || target) = (bits log 2 + log 1/delta) / n for the bits; bounds.kl is there.",
)
harmful = Exercise(
    "A group that hurts",
    _harmful,
    "Tab Symmetry, task upright: change the group in the form. What does a mirrored digit mean?",
)
no_peak = Exercise(
    "Make double descent vanish",
    _ridge,
    "Tab Double descent: drag the ridge until the solid line has no hump; about 1/100 is enough.",
)
