"""Where problems come from: synthetic moments, embedded ratings, splits, files of the user."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench.methods.pas import homogeneous, loaders, ratings
from workbench.methods.pas.estimators import Options, estimate
from workbench.methods.pas.synthetic import Model
from workbench.methods.pas.trials import Setting

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "pas"


@pytest.mark.parametrize("predictor", ["good", "bad", "adversarial", "noise", "mix"])
@pytest.mark.parametrize("eta", [-0.8, -0.05, 0.02, 0.6])
def test_synthetic_moments_are_those_of_a_million_draws(predictor, eta):
    model = Model(predictor=predictor, q=0.7)
    rng = np.random.default_rng(0)
    x = eta + model.psi * rng.standard_normal(1_000_000)
    y = 2 * eta * x - eta**2 + np.sqrt(model.c) * rng.standard_normal(len(x))
    f = model.predict(x, rng)
    exact = model.moments(np.array([eta]))
    assert y.mean() == pytest.approx(eta**2, abs=1e-3)
    assert y.var() == pytest.approx(exact.sigma2[0], rel=0.01)
    assert f.var() == pytest.approx(exact.tau2[0], rel=0.01)
    # A covariance near 0 has an error of its own.
    noise = 4 * np.sqrt(exact.sigma2[0] * exact.tau2[0] / len(x))
    assert np.cov(y, f)[0, 1] == pytest.approx(exact.gamma[0], rel=0.01, abs=noise)


def test_a_draw_has_the_sizes_truth_and_shift_that_were_asked_for():
    model = Model(m=50, n=3, N=4, predictor="tuned", shift=2.0)
    p, truth, known = model.draw(np.random.default_rng(0))
    assert len(p) == 50 and set(p.n) == {3} and set(p.N) == {4}
    plain, again, _ = replace(model, shift=0.0, predictor="good").draw(np.random.default_rng(0))
    np.testing.assert_array_equal(truth, again)
    np.testing.assert_allclose(p.z_tilde, plain.z_tilde + 2)
    assert (truth >= 0).all() and (truth <= 1).all() and known.regime == "known"


def test_the_best_weight_of_problems_that_are_alike():
    s, g, B = homogeneous.Alike().parts
    assert (s, g, B) == pytest.approx((0.0608, 0.0112, 0.116))
    w = homogeneous.best_weight(s, g, B)
    assert homogeneous.risk(w, s, g, B) == pytest.approx(homogeneous.best_risk(s, g, B))
    grid = np.linspace(0, 1, 1001)
    assert homogeneous.best_risk(s, g, B) <= min(homogeneous.risk(v, s, g, B) for v in grid)
    assert homogeneous.best_risk(s, g, B) <= min(s, B)


def test_cure_finds_that_weight_and_a_blind_one_does_not():
    model = homogeneous.Alike(m=20_000)
    p, truth = model.draw(np.random.default_rng(0))
    found, blind = (
        estimate(p, model.moments, ["pas"], Options(blind=b))["pas"] for b in (False, True)
    )
    best = homogeneous.best_weight(*model.parts)
    assert abs(found.weight[0] - best) < 0.02 < abs(blind.weight[0] - best)
    assert np.mean((found.theta - truth) ** 2) < np.mean((blind.theta - truth) ** 2)


@pytest.mark.parametrize(
    "source, rows, problems, outside, slope, intercept, correlation, spread",
    [
        ("amazon", 3708, 147, 911, 2.888, -0.373, 0.5896, 1.6335),
        ("nyt", 5190, 451, 298, 1.160, -0.070, 0.5029, 0.8843),
    ],
)
def test_embedded_ratings(source, rows, problems, outside, slope, intercept, correlation, spread):
    _, human, vader = ratings.table(source)
    assert len(human) == rows
    assert np.corrcoef(human, vader)[0, 1] == pytest.approx(correlation, abs=1e-4)
    assert human.std(ddof=1) == pytest.approx(spread, abs=1e-3)
    a, b, n = ratings.tuning_line(source)
    assert (a, b, n) == (
        pytest.approx(slope, abs=1e-3),
        pytest.approx(intercept, abs=1e-3),
        outside,
    )
    made = ratings.embedded(source, "base")
    assert len(made.names) == problems and made.sizes.min() >= ratings.SMALLEST[source]
    assert (
        len(made.y) == rows - outside and made.left_out == (300 if rows < 5000 else 498) - problems
    )
    tuned, opposite = ratings.embedded(source, "tuned"), ratings.embedded(source, "adversarial")
    np.testing.assert_allclose(tuned.f, intercept + slope * made.f / 4, atol=2e-3)
    np.testing.assert_array_equal(opposite.f, -made.f)


def test_the_tables_are_those_of_the_shared_folder():
    for source in ("amazon", "nyt"):
        path = SHARED / f"vader_{source}.csv"
        if not path.exists():
            pytest.skip("no shared data")
        assert path.read_bytes() == (ratings.FOLDER / path.name).read_bytes()


def test_mixtures_go_from_noise_to_tuned():
    tuned, noise = (ratings.embedded("nyt", name, seed=4) for name in ("tuned", "noise"))
    assert noise.f.std() == pytest.approx(1.5, rel=0.05)
    for q, end in ((0.0, noise), (1.0, tuned)):
        np.testing.assert_array_equal(ratings.embedded("nyt", "mix", q, seed=4).f, end.f)
    half = ratings.embedded("nyt", "mix", 0.5, seed=4)
    np.testing.assert_allclose(half.f, (tuned.f + noise.f) / 2)
    with pytest.raises(ValueError, match="did you mean 'tuned'"):
        ratings.embedded("nyt", "tunde")


def test_splits_label_the_share_asked_for_and_the_truth_is_that_of_the_rest():
    made = ratings.embedded("nyt", "tuned")
    p, truth = made.split(0.4, np.random.default_rng(0))
    np.testing.assert_array_equal(p.n, np.maximum(2, np.floor(0.4 * made.sizes + 1e-9)))
    np.testing.assert_array_equal(p.n + p.N, made.sizes)
    whole = np.bincount(made.code, made.y) / made.sizes
    np.testing.assert_allclose((p.n * p.y_bar + p.N * truth) / (p.n + p.N), whole, atol=1e-12)
    again, _ = made.split(0.4, np.random.default_rng(0))
    other, _ = made.split(0.4, np.random.default_rng(1))
    np.testing.assert_array_equal(again.y_bar, p.y_bar)
    assert (other.y_bar != p.y_bar).any()
    few, _ = made.split(0.05, np.random.default_rng(0))
    assert set(few.n) == {2}


def test_splits_that_leave_too_little_are_refused():
    made = ratings.embedded("nyt", "tuned")
    with pytest.raises(ValueError, match=r"frac = 0.1 leaves problem .* fewer than 2 labelled"):
        made.split(0.1, np.random.default_rng(0), at_least=0)
    small = ratings.of_arrays("x", np.array([1, 1, 1]), np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="frac = 1 leaves problem '1' of 3 items no unlabelled"):
        small.split(1.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="x: no group has 3 labelled items"):
        ratings.of_arrays("x", np.array([1, 1]), np.ones(2), np.ones(2))


def test_a_file_of_the_user(tmp_path):
    path = tmp_path / "shops.csv"
    rows = ["group,y,pred", *(f"s{k % 4},{k % 3},{k}" for k in range(40)), "s0,,7", "tiny,1,1"]
    path.write_text("\n".join(rows))
    found = loaders.read(path)
    assert found.names.tolist() == ["s0", "s1", "s2", "s3"] and set(found.sizes) == {10}
    assert found.left_out == 1 and found.name == "shops"
    path.write_text("group,y,prediction\n1,2,3\n")
    with pytest.raises(ValueError, match="no column 'pred' in the frame"):
        loaders.read(path)
    with pytest.raises(ValueError, match=r"cannot read .*gone.csv: No such file"):
        loaders.read(tmp_path / "gone.csv")
    path.write_text("group,y,pred\n" + "a,1,x\n" * 4)
    with pytest.raises(ValueError, match="pred holds text"):
        loaders.read(path)
    path.write_text("group,y,pred\n" + "a,1,2\n" * 4 + ",1,2\n" * 4)
    with pytest.raises(ValueError, match="group is missing for item 4"):
        loaders.read(path)
    setting = Setting(data="frame", file=str(path))
    path.write_text("group,y,pred\n" + "a,1,2\n" * 4)
    before = setting.ratings()
    path.write_text("group,y,pred\n" + "a,1,3\n" * 4)
    os.utime(path, (1, 1))  # another time for sure
    assert before.f.mean() == 2 and setting.ratings().f.mean() == 3


def test_the_official_galaxies(tmp_path):
    folder = tmp_path / "clone" / "data" / "galaxy"
    folder.mkdir(parents=True)
    rows = [f"{k % 6},{(k + 1) % 6},{k % 2}" for k in range(24)]
    (folder / "galaxy_test_prediction.csv").write_text(
        "true_label,pred_label,WVT_BIN\n" + "\n".join(rows)
    )
    found = loaders.load_official(tmp_path / "clone")
    assert found.name == "galaxy" and len(found.names) == 2
    assert set(found.y) == {0.0, 1.0} and found.y.mean() == 0.5
    again = loaders.read(folder / "galaxy_test_prediction.csv")
    np.testing.assert_array_equal(again.y, found.y)
    with (folder / "galaxy_test_prediction.csv").open("a") as stream:
        stream.write("\n3,,1")
    with pytest.raises(ValueError, match="pred_label is nan for item 24"):
        loaders.load_official(tmp_path / "clone")
    (folder / "galaxy_test_prediction.csv").write_text(
        "true_label,pred_label,WVT_BIN\n" + "3,0.4,1\n" * 3
    )
    with pytest.raises(ValueError, match="pred_label holds other numbers than classes"):
        loaders.load_official(tmp_path / "clone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds none: give the path of one official file"):
        loaders.load_official(tmp_path / "empty")


def test_the_official_reviews(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "amazon_base.h5"
    with h5py.File(path, "w") as stored:
        for name, n in (("B001", 5), ("B002", 4)):
            stored[name] = np.array([np.arange(n), np.arange(n) + 0.5])
    found = loaders.read(path)
    assert found.names.tolist() == ["B001", "B002"] and found.sizes.tolist() == [5, 4]
    np.testing.assert_array_equal(found.f - found.y, 0.5)
    with h5py.File(path, "w") as stored:
        stored.create_group("B003")
    with pytest.raises(ValueError, match=r"data set 'B003' has shape \(\), not \(2, items\)"):
        loaders.load_official(path)
    with h5py.File(path, "w") as stored:
        stored["B001"] = np.full((2, 4), np.nan)
    with pytest.raises(ValueError, match="rating is nan for item 0 of problem 'B001'"):
        loaders.load_official(path)
    path.write_bytes(b"no such thing")
    with pytest.raises(ValueError, match="cannot read"):
        loaders.load_official(path)
