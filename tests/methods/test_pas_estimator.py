"""The scikit-learn estimator: its own checks, arrays and frames, and errors in one line."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from workbench.methods.pas import PAS
from workbench.methods.pas.estimators import NAMES, Options, estimate
from workbench.methods.pas.moments import Moments
from workbench.methods.pas.problems import from_frame
from workbench.methods.pas.trials import Setting


@pytest.fixture(scope="module")
def frame():
    """A split of the reviews as a frame: an item a row, no label where it is unknown."""
    pd = pytest.importorskip("pandas")
    made = Setting(data="amazon").ratings()
    labelled = np.arange(len(made.y)) % 2 == 0  # both kinds in every review
    return pd.DataFrame({
        "review": [f"r{made.names[c]:03}" for c in made.code], "score": made.f,
        "stars": np.where(labelled, made.y, np.nan), "length": 1.0,
    })  # fmt: skip


@pytest.mark.filterwarnings("ignore:no label is missing")
@pytest.mark.parametrize("name", ["pas", "unipas", "classical"])
def test_the_checks_of_scikit_learn(name):
    found = check_estimator(PAS(estimator=name), on_skip=None)
    assert {f["status"] for f in found} <= {"passed", "skipped"}


def test_it_is_the_estimate_of_the_same_items(frame):
    X = frame[["score", "length"]].to_numpy()
    for name in NAMES:
        model = PAS(estimator=name).fit(X, frame["stars"], frame["review"])
        found = estimate(from_frame(frame, "review", "stars", "score"), names=[name])[name]
        np.testing.assert_array_equal(model.theta_, found.theta)
        assert model.groups_.tolist() == sorted(set(frame["review"]))
        assert model.regime_ == found.regime and model.omega_ == found.omega
    assert (model.n_labelled_ + model.n_unlabelled_).sum() == len(frame)


def test_it_takes_frames_and_remembers_the_names_of_columns(frame):
    model = PAS().fit(frame[["score"]], frame["stars"], frame["review"])
    assert model.feature_names_in_.tolist() == ["score"] and model.n_features_in_ == 1
    back = model.predict(frame[["score"]].head(7), frame["review"].head(7))
    place = np.searchsorted(model.groups_, frame["review"].head(7).to_numpy().astype(str))
    np.testing.assert_array_equal(back, model.theta_[place])
    other = PAS(prediction=1).fit(frame[["length", "score"]], frame["stars"], frame["review"])
    np.testing.assert_array_equal(other.theta_, model.theta_)


def test_parameters_are_those_of_the_constructor_and_survive_cloning(frame):
    model = PAS(moments="per_problem", omega=0.1, official_search=True)
    assert clone(model).get_params() == model.get_params() == {
        "estimator": "pas", "moments": "per_problem", "prediction": 0, "omega": 0.1,
        "official_search": True,
    }  # fmt: skip
    X, y, groups = frame[["score"]], frame["stars"], frame["review"]
    assert model.fit(X, y, groups).omega_ == 0.1
    assert model.set_params(omega=None).fit(X, y, groups).omega_ != 0.1
    own = PAS(moments="per_problem").fit(X, y, groups)
    assert own.regime_ == "per_problem" and own.floored_ >= 0


def test_known_moments_are_arrays_in_the_order_of_the_groups(frame):
    X, y, groups = frame[["score"]], frame["stars"], frame["review"]
    known = np.full((3, 147), [[2.0], [1.0], [0.5]])
    model = PAS(moments=tuple(known)).fit(X, y, groups)
    problems = from_frame(frame, "review", "stars", "score")
    found = estimate(problems, Moments.known(*known), ["pas"], Options())["pas"]
    np.testing.assert_array_equal(model.theta_, found.theta)
    with pytest.raises(ValueError, match="moments of 3 problems for 147 problems"):
        PAS(moments=tuple(known[:, :3])).fit(X, y, groups)


def test_nothing_missing_means_nothing_to_power_and_says_so():
    with pytest.warns(UserWarning, match="no label is missing.*y = nan"):
        model = PAS().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 6.0], ["a", "b", "b"])
    assert model.theta_.tolist() == [1.0, 4.0] and model.n_unlabelled_.tolist() == [0, 0]


@pytest.mark.parametrize(
    "change, says",
    [
        ({"estimator": "passs"}, "estimator = 'passs'.*did you mean 'pas'"),
        ({"prediction": 2}, "prediction = 2: X has 1 columns, so it must be a number from 0 to 0"),
        ({"prediction": "score"}, "prediction = 'score'"),
        ({"prediction": 0.5}, "prediction = 0.5"),
        ({"moments": "pooled"}, "moments = 'pooled'"),
        ({"moments": (1.0, 2.0)}, r"moments = \(1.0, 2.0\): it must be a regime"),
        ({"moments": None}, "moments = None: it must be a regime"),
        ({"omega": -1.0}, "omega = -1.0: it must be from 0 to infinity"),
        ({"groups": ["a"] * 3}, r"groups has shape \(3,\): it must be \(4,\)"),
        ({"groups": ["a", None, "a", "a"]}, "groups is missing for item 1"),
        ({"groups": [1.0, np.nan, 1.0, 1.0]}, "groups is missing for item 1"),
        ({"groups": ["a", "a", "a", "b"]}, "problem 'b' has unlabelled but no labelled items"),
        ({"groups": ["b", "a", "a", "a"]}, "problem 'b' has labelled but no unlabelled items"),
        ({"y": [1.0, 2, np.inf, np.nan]}, "Input y contains infinity"),
        ({"y": [np.nan] * 4}, "Input y contains NaN only"),
        ({"y": [1.0, 2, 3]}, "inconsistent numbers of samples"),
        ({"X": [[1.0], [np.nan], [1], [1]]}, "Input X contains NaN"),
        ({"X": [1.0, 2, 3, 4]}, "Expected 2D array, got 1D array"),
    ],
)
def test_bad_input_is_told_clearly(change, says):
    arguments = {"X": [[1.0], [2.0], [1.5], [2.5]], "y": [1.0, 2, 3, np.nan], "groups": None}
    options = {k: v for k, v in change.items() if k not in arguments}
    given = {k: change.get(k, v) for k, v in arguments.items()}
    with pytest.raises(ValueError, match=says):
        PAS(**options).fit(**given)


def test_a_group_that_was_not_there_has_no_estimate(frame):
    model = PAS().fit(frame[["score"]], frame["stars"], frame["review"])
    with pytest.raises(ValueError, match="group 'zz' was not there when fitted; there are 147"):
        model.predict(frame[["score"]].head(2), ["zz", "r001"])
    with pytest.raises(ValueError, match="group 'r0012' was not there"):  # longer than all names
        model.predict(frame[["score"]].head(1), ["r0012"])
    with pytest.raises(ValueError, match="groups are numbers, but were words when fitted"):
        model.predict(frame[["score"]].head(1), [1])
