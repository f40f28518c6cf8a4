"""Data and bad input: one clear line for each mistake, a warning where ties or an offset lurk."""

import warnings

import numpy as np
import pandas as pd
import pytest

from workbench.methods.sparse_glm import datasets, loaders
from workbench.methods.sparse_glm import problem as problems
from workbench.methods.sparse_glm.problem import make_problem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((20, 4))
Y = RNG.standard_normal(20)
Y -= Y.mean()
LABELS = np.where(Y > 0, 1.0, -1.0)


def holed(value):
    changed = X.copy()
    changed[3, 2] = value
    return changed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"k": 0}, "k = 0 is not allowed: a whole number from 1 to the 4 columns"),
        ({"k": 5}, "k = 5 is not allowed"),
        ({"k": 2.0}, "k = 2.0 is not allowed"),
        ({"k": True}, "k = True is not allowed"),
        ({"lambda2": 0.0}, "lambda2 = 0.0 is not allowed: the perspective bound needs lambda2 > 0"),
        ({"lambda2": -1}, "the perspective bound needs lambda2 > 0"),
        ({"lambda2": np.nan}, "lambda2 = nan"),
        ({"M": 0}, "M = 0 is not allowed: the box needs M > 0"),
        ({"M": np.inf}, "M = inf is not allowed"),
        ({"loss": "lineer"}, "loss = 'lineer'; allowed are .*; did you mean 'linear'"),
        ({"X": holed(np.nan)}, r"X has values that are NaN or infinite, first in columns \[2\]"),
        ({"X": holed(np.inf)}, "NaN or infinite"),
        ({"X": holed(1) + 1j}, "X has complex values: real numbers are needed"),
        ({"y": LABELS + 1j}, "y has complex values"),
        ({"X": 1e200 * X}, r"X has values beyond 1e\+100: standardize it first"),
        ({"y": 1e200 * Y}, r"y has values beyond 1e\+100"),
        ({"X": X[:, 0]}, r"X has shape \(20,\): needed is \(n, p\)"),
        ({"X": X[:0], "y": Y[:0]}, "none empty"),
        ({"X": np.array([["a", "b"]] * 20)}, "X must hold numbers only"),
        ({"y": Y[:-1]}, r"y has shape \(19,\): X has 20 rows, so needed is \(20,\)"),
        ({"y": np.where(np.arange(20) == 1, np.nan, Y)}, "y has values that are NaN"),
        ({"y": ["a"] * 20}, "y of the linear loss must hold numbers only"),
        ({"loss": "logistic"}, "the logistic loss needs -1/\\+1 or 0/1"),
        ({"loss": "logistic", "y": np.ones(20)}, r"y has one class only \(1\)"),
        ({"loss": "logistic", "y": np.r_[LABELS[:-1], 2]}, "y has the values -1, 1, 2"),
        ({"loss": "logistic", "y": ["a", "b"] * 10}, "not text"),
        ({"loss": "logistic", "y": np.r_[LABELS[:-1], np.nan]}, "NaN or infinite"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_one_line(arguments, words):
    with pytest.raises(ValueError, match=words) as error:
        make_problem(**{"X": X, "y": Y, "k": 2, **arguments})
    assert "\n" not in str(error.value)


def test_data_too_large_for_memory_are_refused_before_they_are_copied(monkeypatch):
    import psutil

    class Full:
        available = 1000

    monkeypatch.setattr(psutil, "virtual_memory", Full)
    with pytest.raises(ValueError, match="X with 80 entries is too large: both orders in memory"):
        make_problem(X, Y, k=2)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"X": np.c_[X, np.ones(20)]}, r"1 constant columns, first \[4\]: ties are possible"),
        ({"X": np.c_[X, -3 * X[:, 1]]}, r"1 pairs of columns.*first \(1, 4\): ties are possible"),
        ({"y": Y + 1}, r"y is not centered \(mean 1\)"),
        ({"loss": "logistic", "y": (LABELS > 0).astype(int)}, "labels 0 and 1: taken as -1 and"),
    ],
)
def test_what_is_only_dubious_is_warned_of(changed, words):
    with pytest.warns(UserWarning, match=words):
        make_problem(**{"X": X, "y": Y, "k": 2, **changed})


def test_good_data_pass_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = make_problem(X, Y[:, None], k=2)
        table = make_problem(
            pd.DataFrame(X, columns=list("abcd")), pd.Series(LABELS), "logistic", 2
        )
    assert made.y.shape == (20,) and made.XT.flags.c_contiguous and made.X.flags.c_contiguous
    assert table.names == ("a", "b", "c", "d")


def test_other_numbers_keep_what_was_computed_of_the_data():
    made = make_problem(X, Y, k=2)
    assert made.L == pytest.approx(2 * np.linalg.eigvalsh(X.T @ X)[-1])
    other = made.with_numbers(k=3, M=0.5)
    assert other.k == 3 and other.lambda2 == made.lambda2 and "L" in other.__dict__
    with pytest.raises(ValueError, match="k = 9"):
        made.with_numbers(k=9)


def test_the_power_method_is_above_the_exact_eigenvalue(monkeypatch):
    made = datasets.synthetic(60, 80)
    exact = make_problem(made.X, made.y - made.y.mean(), k=2).largest_eigenvalue
    monkeypatch.setattr(problems, "EXACT_EIGENVALUE", 10)
    powered = make_problem(made.X, made.y - made.y.mean(), k=2).largest_eigenvalue
    assert exact <= powered <= 1.02 * exact


# Data


@pytest.mark.parametrize(
    ("name", "shape", "loss"),
    [("diabetes", (442, 10), "linear"), ("diabetes2", (442, 65), "linear"),
     ("diabetes3", (442, 285), "linear"), ("breast_cancer", (569, 30), "logistic"),
     ("digits", (357, 54), "logistic")],
)  # fmt: skip
def test_tables_have_the_sizes_of_the_specification(name, shape, loss):
    made = datasets.load(name)
    assert made.X.shape == shape and made.loss == loss and len(made.names) == shape[1]
    assert np.allclose(made.X.mean(0), 0, atol=1e-10) and np.allclose(made.X.std(0), 1)
    if loss == "linear":
        assert abs(made.y.mean()) < 1e-12 and made.y.std() == pytest.approx(1)
    else:
        assert set(made.y) == {-1.0, 1.0}


def test_the_square_of_a_binary_column_is_a_tie_that_is_warned_of():
    made = datasets.load("diabetes2")
    with pytest.warns(UserWarning, match="pairs of columns that are multiples"):
        make_problem(made.X, made.y)


def test_synthetic_data_are_those_of_the_specification():
    made = datasets.synthetic(50, 30, 3, rho=0.5, snr=5, seed=7)
    rng = np.random.default_rng(7)
    Z = rng.standard_normal((50, 30))
    column = np.sqrt(0.75) * Z[:, 1] + 0.5 * Z[:, 0]
    assert made.X[:, 0] == pytest.approx(Z[:, 0]) and made.X[:, 1] == pytest.approx(column)
    assert np.flatnonzero(made.true_beta).tolist() == [0, 10, 20]
    u = made.X @ made.true_beta
    noise = np.sqrt(u.var() / 5) * rng.standard_normal(50)
    assert made.y == pytest.approx(u + noise)
    assert set(datasets.synthetic(50, 30, 3, "logistic").y) == {-1.0, 1.0}


def test_own_data_find_their_loss(tmp_path):
    assert datasets.from_arrays(X, Y).loss == "linear"
    table = datasets.from_arrays(pd.DataFrame(X, columns=list("abcd")), LABELS > 0)
    assert table.loss == "logistic" and table.names == ("a", "b", "c", "d")
    np.savez(tmp_path / "mine.npz", X=X, y=LABELS)
    assert datasets.load("npz", file=str(tmp_path / "mine.npz")).loss == "logistic"
    with pytest.raises(ValueError, match="there is no file"):
        datasets.load("npz", file=str(tmp_path / "absent.npz"))
    np.savez(tmp_path / "other.npz", Z=X)
    with pytest.raises(ValueError, match="needed are X and y"):
        datasets.load("npz", file=str(tmp_path / "other.npz"))
    with pytest.raises(ValueError, match=r"needed are \(n, p\) and \(n,\)"):
        datasets.from_arrays(X, Y[:3])


def test_files_that_are_no_tables_are_refused_in_one_line(tmp_path):
    text, array, mixed = tmp_path / "text.npz", tmp_path / "array.npz", tmp_path / "mixed.npz"
    text.write_text("X,y\n1,2\n")
    with array.open("wb") as file:
        np.save(file, X)
    np.savez(mixed, X=np.array([["a", 1]] * 20, dtype=object), y=Y)
    broken = tmp_path / "broken.npz"
    np.savez(broken, X=X, y=Y)
    broken.write_bytes(broken.read_bytes()[:400])
    for path in (text, array, mixed, broken):
        with pytest.raises(ValueError, match=r"is no \.npz file of numbers") as error:
            datasets.load_npz(path)
        assert "\n" not in str(error.value)


def test_standardizing_leaves_zeros_of_what_is_constant():
    made = datasets.standardize(
        np.c_[np.full(37, 0.1), np.full(37, 1e9 + 0.1), 1e-15 * np.arange(37)]
    )
    assert not made[:, :2].any() and made[:, 2].std() == pytest.approx(1)


def test_a_loss_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="diabetes has a continuous response"):
        datasets.load("diabetes", loss="logistic")
    assert datasets.load("breast_cancer", loss="linear").y.std() == pytest.approx(1)
    with pytest.raises(ValueError, match=r"data = 'diabetis'.*did you mean 'diabetes"):
        datasets.load("diabetis")
    with pytest.raises(ValueError, match="two different ones"):
        datasets.load("digits", digits_pair=(3, 3))


def test_tables_from_files(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(LABELS > 0, "yes", "no"))
    frame.to_csv(tmp_path / "own.csv", index=False)
    made = loaders.load_table(tmp_path / "own.csv", "kind")
    assert made.loss == "logistic" and made.X.shape == (20, 4)
    with pytest.raises(ValueError, match=r"no column 'kidn'; did you mean 'kind'"):
        loaders.load_table(tmp_path / "own.csv", "kidn")
    with pytest.raises(ValueError, match=r"allowed are \.csv and .parquet"):
        loaders.load_table(tmp_path / "own.xls", "kind")
    frame.assign(a=np.nan).to_csv(tmp_path / "holes.csv", index=False)
    with pytest.raises(ValueError, match="missing values"):
        loaders.load_table(tmp_path / "holes.csv", "kind")


def test_dorothea_is_read_from_the_cache_and_never_fetched_unasked(tmp_path, monkeypatch):
    from workbench import data

    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    with pytest.raises(data.DataMissing, match="workbench data fetch dorothea"):
        loaders.load_dorothea()
    folder = tmp_path / "dorothea"
    folder.mkdir(exist_ok=True)
    for part, rows in (("train", ["1 3", "2", "3 7"]), ("valid", ["1 7", "2 3"])):
        (folder / f"dorothea_{part}.data").write_text(" \n".join(rows) + " \n")
        labels = "\n".join("1" if i % 2 else "-1" for i in range(len(rows)))
        (folder / f"dorothea_{part}.labels").write_text(labels + "\n")
    made = loaders.load_dorothea()
    assert made.X.shape == (5, 4) and made.names == ("f0", "f1", "f2", "f6")
    assert made.y.tolist() == [-1, 1, -1, -1, 1]


def test_a_table_of_openml_needs_no_network_when_it_is_cached(monkeypatch):
    from types import SimpleNamespace

    from sklearn import datasets as sklearn_datasets

    frame = pd.DataFrame(X, columns=list("abcd")).assign(text="t")
    bunch = SimpleNamespace(data=frame, target=pd.Series(np.where(LABELS > 0, "b", "a")))
    monkeypatch.setattr(sklearn_datasets, "fetch_openml", lambda *a, **more: bunch)
    made = loaders.load_openml("anything")
    assert made.loss == "logistic" and made.X.shape == (20, 4) and (made.y == LABELS).all()
