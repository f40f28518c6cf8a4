"""PAS and its relatives: the worked problem, exact limits, equivariance, and bad input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.methods.pas import estimators, peers
from workbench.methods.pas.estimators import NAMES, Options, estimate
from workbench.methods.pas.moments import (
    Moments,
    common_power,
    covariance,
    moments_of,
    per_problem,
    pooled_total,
    pooled_within,
    power,
    variance,
)
from workbench.methods.pas.problems import Problems, from_frame
from workbench.methods.pas.shrinkage import RiskCurve, cure, weights

# The worked problem of the specification.
Y, F, F_U = (1.0, 2, 4, 3), (1.5, 1.8, 3.5, 3.1), (2.0, 2.5, 3, 1, 4, 2.2)
REGIMES = ("per_problem", "pooled_within", "pooled_total")
pytestmark = [
    pytest.mark.filterwarnings("ignore:moments of each problem from"),
    pytest.mark.filterwarnings("ignore:.* variances were not positive"),
]


def flat(m=30, seed=0, n=(2, 9), N=(1, 30)):
    """Random items of m problems as the five flat arrays, out of order."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(*n, m), rng.integers(*N, m)
    level = rng.standard_normal(m)
    group_l, group_u = (np.repeat(np.arange(m), k) for k in counts)
    noise = rng.standard_normal(len(group_l))
    y = level[group_l] + noise
    f = 0.3 + level[group_l] + 0.7 * noise + 0.5 * rng.standard_normal(len(group_l))
    f_u = 0.3 + level[group_u] + 0.9 * rng.standard_normal(len(group_u))
    a, b = rng.permutation(len(group_l)), rng.permutation(len(group_u))
    return group_l[a], y[a], f[a], group_u[b], f_u[b]


@pytest.fixture(scope="module")
def problems():
    return Problems.of(*flat())


def one():
    return Problems.of([0] * 4, Y, F, [0] * 6, F_U)


def test_the_worked_problem():
    p = one()
    own = per_problem(p)
    assert (p.y_bar[0], p.z_bar[0], p.z_tilde[0]) == pytest.approx((2.5, 2.475, 2.45))
    assert own.gamma[0] == pytest.approx(1.2166667, abs=1e-7)
    assert own.tau2[0] == pytest.approx(0.8804444, abs=1e-7)
    assert own.sigma2[0] == pytest.approx(1.6666667, abs=1e-7)
    assert power(p, own)[0] == pytest.approx(0.8291267, abs=1e-7)
    found = estimate(p, "per_problem")
    assert found["ppi"].theta[0] == pytest.approx(2.475, abs=1e-12)
    assert found["pt"].theta[0] == pytest.approx(2.47927183, abs=1e-8)
    # ppi-python 0.2.3 printed this, with a covariance over n.
    assert peers.tuned_as_theirs(p)[0] == pytest.approx(2.484453874, abs=1e-9)


def test_sums_are_those_of_a_loop_over_problems(problems):
    group_l, y, f, group_u, f_u = flat()
    for j, name in enumerate(problems.names):
        a, b, c = y[group_l == name], f[group_l == name], f_u[group_u == name]
        assert problems.n[j] == len(a) and problems.N[j] == len(c)
        own = per_problem(problems)
        assert own.sigma2[j] == pytest.approx(np.var(a, ddof=1))
        assert own.gamma[j] == pytest.approx(np.cov(a, b)[0, 1])
        assert own.tau2[j] == pytest.approx(np.var(np.concatenate([b, c]), ddof=1))


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, float, "U5", object])
@pytest.mark.parametrize("ids", [[0, 1, 2], [7, 9, 100], [3, 3, 3], [-99, 0, 99]])
def test_groups_may_be_named_by_any_numbers_or_words(dtype, ids):
    if dtype == np.uint8:
        ids = np.abs(ids)
    group = np.repeat(np.array(ids).astype(dtype), 2)
    p = Problems.of(group, np.arange(6.0), np.arange(6.0), group, np.arange(6.0))
    names, code = np.unique(group.astype(str) if dtype is object else group, return_inverse=True)
    assert p.names.tolist() == names.tolist()
    np.testing.assert_allclose(p.y_bar, np.bincount(code, np.arange(6.0)) / np.bincount(code))


def test_pooled_moments_are_weighted_averages_and_totals_hold_the_spread_between(problems):
    _, y, f, _, f_u = flat()
    own, within, total = (g(problems) for g in (per_problem, pooled_within, pooled_total))
    n, N = problems.n, problems.N
    assert within.sigma2[0] == pytest.approx(np.average(own.sigma2, weights=n - 1))
    assert within.gamma[0] == pytest.approx(np.average(own.gamma, weights=n - 1))
    assert within.tau2[0] == pytest.approx(np.average(own.tau2, weights=n + N - 1))
    assert total.sigma2[0] == pytest.approx(np.var(y, ddof=1))
    assert total.gamma[0] == pytest.approx(np.cov(y, f)[0, 1])
    assert total.tau2[0] == pytest.approx(np.var(f_u, ddof=1))
    np.testing.assert_array_equal(power(problems, total), power(problems, own))


def test_unipt_minimizes_the_summed_variance(problems):
    own = per_problem(problems)
    best = common_power(problems, own)
    assert 0 < best < 1
    at = variance(problems, own, best).sum()
    assert all(variance(problems, own, best + e).sum() > at for e in (-0.01, 0.01))
    np.testing.assert_allclose(
        estimate(problems)["unipt"].theta,
        problems.y_bar + best * (problems.z_tilde - problems.z_bar),
    )


def test_lambda_star_minimizes_the_variance_which_is_that_of_the_closed_form(problems):
    rng = np.random.default_rng(1)
    m = len(problems)
    sigma2, tau2 = rng.uniform(0.5, 2, (2, m))
    gamma = rng.uniform(0, 0.5, m) * np.sqrt(sigma2 * tau2)
    known = Moments.known(sigma2, tau2, gamma)
    n, N = problems.n, problems.N
    lam = power(problems, known)
    inside = (lam > 0) & (lam < 1)
    assert inside.sum() > 20
    closed = sigma2 / n - N / (n * (n + N)) * gamma**2 / tau2
    np.testing.assert_allclose(variance(problems, known, lam)[inside], closed[inside])
    np.testing.assert_allclose(covariance(problems, known, lam)[inside], (gamma / (n + N))[inside])
    for other in np.linspace(0, 1, 21):
        assert (variance(problems, known, lam) <= variance(problems, known, other) + 1e-15).all()
    assert (variance(problems, known, lam) <= sigma2 / n + 1e-15).all()


def test_variance_and_covariance_are_those_of_draws():
    rng = np.random.default_rng(0)
    m, n, N, lam = 200_000, 4, 7, 0.6
    first, second = rng.standard_normal((2, m, n))
    y, f = first, 0.5 * first + second  # sigma2 = 1, tau2 = 1.25, gamma = 0.5
    f_u = np.sqrt(1.25) * rng.standard_normal((m, N))
    theta = y.mean(1) + lam * (f_u.mean(1) - f.mean(1))
    p = Problems(*[np.full(1, v) for v in (0, n, N, 0, 0, 0, 0, 0, 0, 0)])
    known = Moments.known([1.0], [1.25], [0.5])
    assert theta.var() == pytest.approx(variance(p, known, lam)[0], rel=0.01)
    found = np.cov(theta, f_u.mean(1))[0, 1]
    assert found == pytest.approx(covariance(p, known, lam)[0], rel=0.03)


def test_no_tuning_gives_shrink_classical_and_the_ends_of_omega_the_ingredients(problems):
    still = Moments.known(np.full(30, 1.3), np.full(30, 0.9), np.zeros(30))  # lambda = 0
    found = estimate(problems, still)
    np.testing.assert_array_equal(found["pas"].theta, found["shrink_classical"].theta)
    for regime in REGIMES:
        nothing = estimate(problems, regime, ["pas", "prediction"], Options(omega=0.0))
        np.testing.assert_array_equal(nothing["pas"].theta, nothing["prediction"].theta)
        everything = estimate(problems, regime, ["pas", "pt"], Options(omega=np.inf))
        np.testing.assert_array_equal(everything["pas"].theta, everything["pt"].theta)


@pytest.mark.parametrize("regime", REGIMES)
@given(a=st.floats(0.1, 10), b=st.floats(-100, 100), seed=st.integers(0, 1000))
def test_estimates_follow_a_change_of_units(regime, a, b, seed):
    group_l, y, f, group_u, f_u = flat(12, seed, n=(3, 9), N=(3, 30))
    before = estimate(Problems.of(group_l, y, f, group_u, f_u), regime)
    after = estimate(Problems.of(group_l, a * y + b, a * f + b, group_u, a * f_u + b), regime)
    for name in NAMES:
        if before[name].floored and name != "unipas":
            continue  # the floor of a variance has units of its own
        expected = a * before[name].theta + b
        tolerance = 1e-10 * (abs(a) + abs(b) + np.abs(expected).max())
        if name == "eb_ppi":  # its likelihood is minimized to the root of the precision only
            tolerance = 1e-6 * a
        np.testing.assert_allclose(after[name].theta, expected, atol=tolerance, rtol=0)
        if name == "pas" and 0 < before[name].omega < np.inf:
            assert after[name].omega == pytest.approx(a**2 * before[name].omega, rel=1e-6)


@pytest.mark.parametrize("regime", REGIMES)
def test_the_order_of_items_and_problems_changes_nothing(regime):
    group_l, y, f, group_u, f_u = flat()
    rng = np.random.default_rng(5)
    i, j = rng.permutation(len(y)), rng.permutation(len(f_u))
    before = estimate(Problems.of(group_l, y, f, group_u, f_u), regime)
    names = np.array([f"p{v:02}" for v in rng.permutation(30)])  # other names: another order
    renamed = Problems.of(names[group_l[i]], y[i], f[i], names[group_u[j]], f_u[j])
    after = estimate(renamed, regime)
    place = np.searchsorted(renamed.names, names)
    for name in NAMES:
        atol = 1e-7 if name == "eb_ppi" else 1e-10
        np.testing.assert_allclose(after[name].theta[place], before[name].theta, atol=atol)


@pytest.mark.parametrize("regime", REGIMES)
def test_a_constant_added_to_predictions_leaves_what_only_compares_them(regime):
    group_l, y, f, group_u, f_u = flat()
    before = estimate(Problems.of(group_l, y, f, group_u, f_u), regime)
    after = estimate(Problems.of(group_l, y, f + 2, group_u, f_u + 2), regime)
    for name in ("classical", "ppi", "pt", "unipt", "shrink_average"):
        np.testing.assert_allclose(after[name].theta, before[name].theta, atol=1e-10)
    np.testing.assert_allclose(after["prediction"].theta, before["prediction"].theta + 2)
    assert after["pas"].weight.mean() > before["pas"].weight.mean()


def test_cure_at_its_ends(problems):
    pas = estimate(problems)["pas"]
    d = pas.start - pas.target
    assert pas.curve(np.inf) == pytest.approx(pas.variance.mean())
    ends = (d**2 - pas.variance + 2 * pas.covariance).mean()
    assert pas.curve(0.0) == pytest.approx(ends)
    for omega in (0.0, 0.1, 3.0, np.inf):
        w = weights(omega, pas.variance)
        assert pas.curve(omega) == pytest.approx(cure(w, pas.variance, pas.covariance, d).mean())
    many = np.array([0.0, 0.1, 3.0, np.inf])
    np.testing.assert_allclose(pas.curve(many), [pas.curve(float(o)) for o in many])


def test_perfect_predictions_make_pt_the_mean_of_all_items():
    group_l, y, _, group_u, f_u = flat()
    p = Problems.of(group_l, y, y, group_u, f_u)
    sigma2 = np.full(30, 1.7)
    known = Moments.known(sigma2, sigma2, sigma2)
    np.testing.assert_allclose(power(p, known), p.N / (p.n + p.N))
    every = np.array([
        np.concatenate([y[group_l == j], f_u[group_u == j]]).mean() for j in range(30)
    ])  # fmt: skip
    np.testing.assert_allclose(estimate(p, known)["pt"].theta, every)
    np.testing.assert_allclose(variance(p, known, power(p, known)), sigma2 / (p.n + p.N))


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("seed", range(5))
def test_the_minimum_of_cure_is_stationary_and_beats_a_fine_grid(regime, seed):
    pas = estimate(Problems.of(*flat(40, seed, n=(3, 9), N=(5, 30))), regime)["pas"]
    curve, top = pas.curve, pas.variance.max()
    grid = curve(np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 10_000) * top, [np.inf]]))
    scale = np.abs(grid).max()
    assert curve(pas.omega) <= grid.min() + 1e-12 * scale
    if 0 < pas.omega < np.inf:
        h = 1e-5 * pas.omega
        derivative = (curve(pas.omega + h) - curve(pas.omega - h)) / (2 * h)
        assert abs(derivative) * pas.omega < 1e-6 * scale
        assert abs(curve.slope(pas.omega)) < 1e-9 * scale


@pytest.mark.parametrize("b, q, stays", [((2e-3, 1.0), (1e-3, 2.0), False),
                                         ((1.0, 0.5), (1.0, 1.0), True)])  # fmt: skip
def test_of_two_local_minima_the_lower_one_is_found_where_the_official_search_stays(b, q, stays):
    s, b, q = (np.repeat(np.array(v), 5) for v in ((1e-3, 10.0), b, q))
    curve = RiskCurve(s, s, b, q)
    top = s.max()
    grid = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 20_001) * top, [np.inf]])
    values = curve(grid)
    inner = np.flatnonzero((values[1:-1] < values[:-2]) & (values[1:-1] < values[2:]))
    assert len(inner) >= 1 and values[0] < values[2]  # a minimum at the end and one inside
    assert curve(curve.minimize()) <= values.min() + 1e-12
    official = curve.minimize(official=True)
    assert 0 < official < 0.999 / 0.001 * top
    worse = (curve(official) - values.min()) / np.ptp(values)
    assert worse > 0.5 if stays else abs(worse) < 1e-9


def test_the_official_search_never_returns_an_end(problems):
    for omega in (0.0, np.inf):
        s = np.ones(4)
        b = np.full(4, 5.0 if omega == 0 else -5.0)
        curve = RiskCurve(s, s, b, np.ones(4))
        assert curve.minimize() == omega
        assert 0 < curve.minimize(official=True) < 999.0 + 1e-6
    with pytest.raises(ValueError, match="cutoff = 1: it must be between 0 and 1"):
        curve.minimize(official=True, cutoff=1)


def test_unipas_is_the_minimum_of_its_own_cure(problems):
    found = estimate(problems)["unipas"]
    d = found.start - found.target
    best = found.weight[0]
    assert 0 < best < 1 and len(set(found.weight)) == 1
    at = cure(best, found.variance, found.covariance, d).mean()
    for other in np.linspace(0, 1, 101):
        assert cure(other, found.variance, found.covariance, d).mean() >= at - 1e-12
    official = estimate(problems, names=["unipas"], options=Options(official_covariance=True))
    assert official["unipas"].weight[0] != best


def test_shrink_average_minimizes_the_published_objective(problems):
    found = estimate(problems)["shrink_average"]
    s, m, d = found.variance, 30, found.start - found.start.mean()

    def objective(omega):
        w = omega / (omega + s)
        return ((1 - w) ** 2 * d**2 + (1 - w) * (omega + (2 / m - 1) * s)).mean()

    for omega in (0.01, 0.3, 2.0):
        assert found.curve(omega) == pytest.approx(objective(omega))
    assert all(objective(found.omega * k) >= objective(found.omega) for k in (0.9, 1.1))
    np.testing.assert_array_equal(found.target, found.start.mean())
    official = estimate(problems, options=Options(official_target=True))["shrink_average"]
    np.testing.assert_array_equal(official.weight, found.weight)
    np.testing.assert_array_equal(official.target, problems.z_tilde)


def test_eb_ppi_is_the_posterior_mean_at_the_largest_likelihood(problems):
    found = estimate(problems, "per_problem")["eb_ppi"]
    group_l, y, f, _, _ = flat()
    b = np.array([(y - f)[group_l == j].mean() for j in range(30)])
    v = np.array([np.var((y - f)[group_l == j], ddof=1) for j in range(30)]) / problems.n
    v = np.maximum(v, 1e-12)
    np.testing.assert_allclose(found.variance, v)

    def loss(mu, t):
        return (np.log(t + v) + (b - mu) ** 2 / (t + v)).sum()

    t = found.omega
    mu = (found.target - problems.z_tilde)[0]
    at = loss(mu, t)
    for other in (loss(mu + 0.05, t), loss(mu - 0.05, t), loss(mu, 1.2 * t), loss(mu, 0.8 * t)):
        assert other >= at - 1e-9
    expected = b + problems.z_tilde - v / (v + t) * (b - mu)
    np.testing.assert_allclose(found.theta, expected)


def test_constant_predictions_are_not_tuned():
    group_l, y, f, group_u, f_u = flat()
    p = Problems.of(group_l, y, 0 * f + 0.1, group_u, 0 * f_u + 0.1)
    for regime in REGIMES:
        found = estimate(p, regime)
        assert (found["pt"].lam == 0).all()
        np.testing.assert_array_equal(found["pt"].theta, found["classical"].theta)


def test_negative_variances_are_floored_and_counted():
    p = Problems.of([0, 0, 1, 1], [0.0, 1, 2, 2.1], [0.0, 3, 1, 1.2], [0, 1], [2.0, 1])
    with pytest.raises(ValueError, match="moments of 3 problems for 2 problems"):
        estimate(p, Moments.known(*np.ones((3, 3))))
    m = Moments("per_problem", np.array([0.1, 1.0]), np.ones(2), np.array([0.9, 0.1]))
    found = estimators._MAKERS["pas"](p, m, Options())
    assert found.floored == 1 and found.variance.min() == 1e-12
    assert np.isfinite(found.theta).all()


def test_tiny_units_are_not_floored():
    group_l, y, f, group_u, f_u = flat(n=(3, 9))
    before = estimate(Problems.of(group_l, y, f, group_u, f_u))
    after = estimate(Problems.of(group_l, 1e-8 * y, 1e-8 * f, group_u, 1e-8 * f_u))
    assert before["pas"].floored == after["pas"].floored == 0
    for name in set(NAMES) - {"eb_ppi"}:
        np.testing.assert_allclose(1e8 * after[name].theta, before[name].theta, atol=1e-8)


def test_unipas_raises_no_variance_and_counts_none():
    found = estimate(Problems.of(*flat(n=(2, 4))), "per_problem", ["unipas", "pas"])
    assert found["pas"].floored > 0 and (found["unipas"].variance <= 0).any()
    assert found["unipas"].floored == 0


def test_noisy_variances_are_told_once_and_where_they_matter(problems):
    with pytest.warns(
        UserWarning, match=r"from 5.5 labels \(median\) are too noisy.*'pooled_within'"
    ):
        found = estimate(problems, "per_problem", ["pas"])
    assert "too noisy" in found._repr_html_()
    quiet = estimate(problems, "per_problem", ["pas"], warn=False)
    assert quiet.cautions() == found.cautions()
    assert not any("noisy" in line for line in estimate(problems).cautions())
    assert estimate(problems, "per_problem", ["unipas", "classical"]).cautions() == []
    many = Problems.of(*flat(n=(12, 20)))
    assert not any("noisy" in line for line in estimate(many, "per_problem").cautions())


def test_the_smallest_problems_work():
    p = Problems.of(["a", "a"], [1.0, 2], [1.0, 1.5], ["a"], [3.0])
    for regime in REGIMES:
        found = estimate(p, regime)
        assert set(found.found) == set(NAMES) - {"shrink_average", "eb_ppi"}
        assert all(np.isfinite(e.theta).all() for e in found.found.values())
        assert 0 <= found["pas"].weight[0] <= 1 and 0 <= found["unipas"].weight[0] <= 1
    single = Problems.of(["a", "b", "b"], [1.0, 2, 3], [1.0, 2, 2], ["a", "b"], [1.0, 2])
    assert np.isfinite(estimate(single)["pas"].theta).all()
    assert estimate(single)["unipas"].regime == "pooled_within"


def test_tables_say_which_moments_were_used(problems):
    text = estimate(problems, "pooled_total")._repr_html_()
    assert text.count("pooled_total") == 5 and text.count("per_problem") == 2
    assert "30 problems" in text and "variances floored" in text


def test_a_frame_marks_unlabelled_rows_by_missing_labels():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({
        "shop": ["a"] * 10, "stars": [*Y, *[None] * 6], "model": [*F, *F_U],
    })  # fmt: skip
    p = from_frame(frame, "shop", "stars", "model")
    assert p.names.tolist() == ["a"]
    assert estimate(p, "per_problem")["pt"].theta[0] == pytest.approx(2.47927183, abs=1e-8)
    nullable = frame.astype({"stars": "Float64", "model": "Float64", "shop": "category"})
    np.testing.assert_array_equal(from_frame(nullable, "shop", "stars", "model").y_bar, p.y_bar)
    nullable.loc[3, "model"] = None
    with pytest.raises(ValueError, match="f_l is nan for item 3 of problem 'a'"):
        from_frame(nullable, "shop", "stars", "model")
    with pytest.raises(ValueError, match="f_l holds text"):
        from_frame(frame.astype({"model": str}), "shop", "stars", "model")
    flags = frame.assign(stars=[True, False, True, True] + [None] * 6)
    with pytest.warns(UserWarning, match="y_l is boolean: taken as 0 and 1"):
        assert from_frame(flags, "shop", "stars", "model").y_bar[0] == 0.75
    with pytest.raises(ValueError, match="group_l is missing for item 1"):
        shops = pd.Series(["a", pd.NA] + ["a"] * 8, dtype="string")
        from_frame(frame.assign(shop=shops), "shop", "stars", "model")
    with pytest.raises(ValueError, match="column 'model' is there more than once"):
        from_frame(pd.concat([frame, frame[["model"]]], axis=1), "shop", "stars", "model")
    with pytest.raises(ValueError, match="a DataFrame is needed, not dict"):
        from_frame({"shop": ["a"]}, "shop", "stars", "model")
    with pytest.raises(ValueError, match=r"no column 'star' in the frame.*mean 'stars'"):
        from_frame(frame, "shop", "star", "model")


@pytest.mark.parametrize(
    "change, says",
    [
        ({"group_u": ["a", "a", "a"]}, "problem 'b' has labelled but no unlabelled items"),
        ({"group_l": ["a", "a", "a", "a"]}, "problem 'b' has unlabelled but no labelled items"),
        ({"group_u": ["c", "d", "a"]}, r"problem 'c' \(and 1 more\) has unlabelled but no labell"),
        ({"y": [1, np.nan, 2, 3]}, "y_l is nan for item 1 of problem 'a': all values must be fin"),
        ({"f": [1, 2, np.inf, 3]}, "f_l is inf for item 2 of problem 'b'"),
        ({"f_u": [np.nan, 2, np.inf]}, r"f_u is nan for item 0 of problem 'a'.*\(2 are not\)"),
        ({"y": [1, 2, 3]}, r"y_l has shape \(3,\): it must be \(4,\)"),
        ({"f": [[1, 2, 3, 4]]}, r"f_l has shape \(1, 4\)"),
        ({"f": ["1", "2", "3", "4"]}, "f_l holds text: it must hold numbers"),
        ({"f": [1, 2, object(), 4]}, "f_l holds text or objects"),
        ({"f": [1j, 2, 3, 4]}, "f_l holds complex numbers"),
        ({"group_l": [["a"]]}, "group_l has shape"),
        ({"group_l": ["a", None, "b", "b"]}, "group_l is missing for item 1"),
        ({"group_l": np.array(["2026", "NaT"] * 2, "M8[D]")}, "group_l is missing for item 1"),
    ],
)
def test_bad_items_are_one_clear_line(change, says):
    good = {
        "group_l": ["a", "a", "b", "b"], "y": [1.0, 2, 3, 4], "f": [1.0, 2, 3, 5],
        "group_u": ["a", "b", "b"], "f_u": [1.0, 2, 3],
    }  # fmt: skip
    Problems.of(*good.values())
    with pytest.raises(ValueError, match=says) as raised:
        Problems.of(*(good | change).values())
    assert "\n" not in str(raised.value)


def test_booleans_are_cast_with_a_note():
    with pytest.warns(UserWarning, match="f_l is boolean: taken as 0 and 1"):
        p = Problems.of([0, 0], [1.0, 0], [True, False], [0], [0.5])
    assert p.z_bar[0] == 0.5


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda p: estimate(p, "pooled"), "moments = 'pooled'.*did you mean 'pooled_"),
        (lambda p: estimate(p, "known"), r"needs the values: moments = Moments.known\("),
        (lambda p: estimate(p, names=["pass"]), "estimator = 'pass'.*did you mean 'pas'"),
        (lambda p: estimate(p, options=Options(omega=-1)), "omega = -1: it must be from 0"),
        (lambda p: estimate(p, options=Options(omega="a")), "omega = 'a': it must be from 0"),
        (lambda p: Options(eb_lambda=np.nan), "eb_lambda = nan: it must be a finite number"),
        (lambda p: estimate(p.names), "problems is of type ndarray: make it with Problems.of"),
        (lambda p: estimate(p).mse([1.0]), r"truth has shape \(1,\): it must be \(30,\)"),
        (lambda p: Moments.known("a", 1.0, 1.0), "known moments must be numbers"),
        (lambda p: Moments.known(np.ones((2, 2)), 1.0, 1.0), "give one number a problem"),
        (lambda p: estimate(p)["pt "], "estimator = 'pt '"),
        (lambda p: Moments.known([1.0], [1.0], [1.1]), "problem 0 are impossible: gamma"),
        (lambda p: Moments.known([-1.0], [1.0], [0.0]), "known sigma2 is -1 for problem 0"),
        (lambda p: Moments.known([1.0], [np.nan], [0.0]), "known tau2 is nan"),
        (lambda p: Moments.known([1.0, 1], [1.0] * 3, [0.0]), r"shapes \(2,\), \(3,\), \(1,\)"),
    ],
)
def test_bad_arguments_are_one_clear_line(problems, call, says):
    with pytest.raises(ValueError, match=says) as raised:
        call(problems)
    assert "\n" not in str(raised.value)


def test_impossible_moments_are_allowed_within_rounding():
    Moments.known([1.0], [1.0], [1.0 + 1e-10])
    Moments.known([1e9], [1e9], [1e9 * (1 + 1e-12)])  # in other units too


def test_one_label_a_problem_needs_pooled_moments_and_one_problem_no_average():
    p = Problems.of(["a", "b", "b"], [1.0, 2, 3], [1.0, 2, 2], ["a", "b"], [1.0, 2])
    with pytest.raises(ValueError, match=r"problem 'a' has 1 labelled item.*'pooled_within'"):
        moments_of(p, "per_problem")
    alone = Problems.of(["a", "b"], [1.0, 2], [1.0, 2], ["a", "b"], [1.0, 2])
    with pytest.raises(ValueError, match="no problem has more than 1 labelled item"):
        estimate(alone)
    known = Moments.known(1.0, 1.0, 0.5)
    assert set(estimate(alone, known).found) == set(NAMES) - {"unipt", "unipas"}
    with pytest.raises(ValueError, match="shrink average learns from the other problems"):
        estimate(one(), names=["shrink_average"])


@pytest.mark.parametrize("lam", [None, 1.0])
def test_ppi_py_agrees_on_200_problems(lam):
    pytest.importorskip("ppi_py")
    arrays = peers.items(200, seed=3)
    p = peers.problems_of(*arrays)
    theirs = peers.one_by_one(*arrays, lam=lam)
    ours = peers.tuned_as_theirs(p) if lam is None else estimate(p)["ppi"].theta
    np.testing.assert_allclose(ours, theirs, atol=1e-14, rtol=0)


def test_ppi_py_gives_the_number_of_the_worked_problem():
    package = pytest.importorskip("ppi_py")
    found = package.ppi_mean_pointestimate(*(np.array(v) for v in (Y, F, F_U)))
    assert float(np.squeeze(found)) == pytest.approx(2.484453874, abs=1e-9)
