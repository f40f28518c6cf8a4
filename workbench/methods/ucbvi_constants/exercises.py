"""Checks of the notebook's exercises; statements, stubs and solutions are in the notebook."""

from __future__ import annotations

import numpy as np

from workbench.exercises import Exercise

from .bonuses import TERMS, Sizes, bonus, terms


def _bernstein_bonus(answer) -> None:
    sizes = Sizes(3, 3, 5, 100_000)
    for N, variance in ((100, 0.0), (10, 2.0), (2, 1.0), (10_000, 4.0), (1, 0.0)):
        try:
            given = float(answer(N, variance, sizes.H, sizes.L))
        except ZeroDivisionError:
            given = np.inf
        assert np.isfinite(given), f"at N = {N} it is not finite: divide by max(N - 1, 1)"
        parts = {name: float(t) for name, t in terms("BF-I", N, sizes, variance=variance).items()}
        wanted = sum(parts.values())
        if not np.isclose(given, wanted):
            for name, term in parts.items():
                assert not np.isclose(given, wanted - term), f"the term '{name}' is missing"
        assert np.isclose(given, wanted), f"at N = {N} and Var = {variance} it is {wanted:.4g}"


def _largest_terms(answer) -> None:
    answer = list(answer)
    assert len(answer) == 3, "give three names, for N = 10, 1,000 and 100,000"
    for name in answer:
        assert name in TERMS, f"'{name}' is no term: there are {', '.join(TERMS)}"
    for N, given in zip((10, 1_000, 100_000), answer, strict=True):
        parts = terms("BF", N, Sizes(3, 3, 5, 100_000), variance=1.0)
        largest = max(parts, key=lambda name: float(parts[name]))
        assert given == largest, f"at N = {N:,} another term is larger than '{given}'"


def _optimistic_plan(answer) -> None:
    rng = np.random.default_rng(0)
    for S, A, H in ((2, 2, 1), (3, 2, 4)):
        P_hat = rng.dirichlet(np.ones(S), (S, A))
        R, N = rng.random((S, A)), rng.integers(1, 5, (S, A))
        b = rng.random((S, A))
        N[-1, 0] = 0  # never tried, and what other states promise rests on it
        given = np.asarray(answer(P_hat, R, N, b, H), float)
        assert given.shape == (H, S, A), f"the answer has shape {given.shape}, not {(H, S, A)}"
        V = np.zeros(S)
        for h in reversed(range(H)):
            Q = np.where(N > 0, np.minimum(H, R + P_hat @ V + b), H)
            assert np.allclose(given[h][N == 0], H), "pairs that were never tried have Q = H"
            assert (given[h] <= H + 1e-9).all(), "no Q is larger than H"
            assert np.allclose(given[h], Q), f"stage {h + 1} of {H} is not right"
            V = Q.max(1)


def _range_aware(answer) -> None:
    for sizes, N in ((Sizes(3, 3, 5, 100_000), 100), (Sizes(4, 2, 8, 1000), 7)):
        H, L = sizes.H, sizes.L
        assert np.isclose(float(answer(H, N, H, L)), 0), (
            "after the last step nothing can be collected: the range of V is 0"
        )
        for h in (1, 2, H - 1):
            wanted = float(bonus("CH-I", N, sizes)) * (H - h) / H
            given = float(answer(h, N, H, L))
            assert np.isclose(given, wanted), f"at h = {h} of {H} and N = {N} it is {wanted:.4g}"


bernstein_bonus = Exercise(
    "The bonus of BF-I",
    _bernstein_bonus,
    "Three terms: variance, lower order, and the correction at its cap, 2 H / sqrt(N).",
)
largest_terms = Exercise(
    "Which term is largest",
    _largest_terms,
    "Set Taken apart to BF in the Bonus tab, Var to 1 (a share of .16), and move N.",
)
optimistic_plan = Exercise(
    "Optimistic planning",
    _optimistic_plan,
    "Go from the last stage to the first, with V = 0 after the last.",
)
range_aware = Exercise(
    "A bonus that knows its range",
    _range_aware,
    "After stage h there are H - h steps with rewards of at most 1.",
)
