"""The estimators: scikit-learn's own checks, own tables, and the proof they carry."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from workbench.methods.sparse_glm import baselines
from workbench.methods.sparse_glm.certificate import verify
from workbench.methods.sparse_glm.estimators import SparseGLMClassifier, SparseGLMRegressor
from workbench.methods.sparse_glm.problem import make_problem

EASY = {"lambda2": 0.1, "max_nodes": 200, "time_limit": 5.0}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SparseGLMRegressor(**EASY), SparseGLMClassifier(**EASY)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_a_regression_on_the_users_own_table():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = SparseGLMRegressor(k=3, lambda2=1.0).fit(X, y)
    assert model.support_.tolist() == [2, 3, 8] and model.certified_ and model.gap_ <= 1e-4
    assert model.objective_ == pytest.approx(230.081033, rel=1e-6)
    assert (model.coef_ != 0).sum() == 3 and model.score(X, y) > 0.45
    assert model.feature_names_in_.tolist() == list(X.columns)
    standard = ((X - X.mean()) / X.std(ddof=0)).to_numpy()
    response = ((y - y.mean()) / y.std(ddof=0)).to_numpy()
    proof = verify(model.certificate_, standard, response)
    assert proof.valid and proof.gap <= 1e-4 * (1 + 1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = baselines.brute_force(make_problem(standard, response, "linear", 3, 1.0, 2.0))
    assert model.lower_bound_ <= best.value <= model.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("kind", ["SparseGLMRegressor", "SparseGLMClassifier"])
def test_the_recipe_of_the_notebook_fits_a_table_and_checks_its_proof(kind, tmp_path, monkeypatch):
    import re

    from workbench import catalog, notebooks

    cells = notebooks.read(catalog.find("sparse_glm").notebook)["cells"]
    text = "".join(map(notebooks.source, cells)).split("## On your own data")[1]
    fit, check = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[:2]
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    names = {"X": X, "y": y if kind == "SparseGLMRegressor" else (y > y.median()).astype(int)}
    monkeypatch.chdir(tmp_path)
    exec(fit.replace("= SparseGLMRegressor(", f"= {kind}("), names)
    *lines, last = check.strip().splitlines()
    exec("\n".join(lines), names)
    assert names["model"].certified_ and eval(last, names).valid
    assert not verify(names["model"].certificate_, X, names["y"]).valid, "it is of other numbers"


def test_a_classification_with_labels_of_any_kind():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    names = np.where(y == 1, "benign", "malignant")
    model = SparseGLMClassifier(k=3, lambda2=5.0, M=1.0).fit(X, names)
    assert model.classes_.tolist() == ["benign", "malignant"]
    assert model.score(X, names) > 0.93 and set(model.support_) == {20, 22, 27}
    assert model.box_active_.tolist() == [20, 22, 27]
    chances = model.predict_proba(X)
    assert chances.sum(1) == pytest.approx(np.ones(len(X)))
    assert ((chances[:, 1] > 0.5) == (model.predict(X) == "malignant")).all()


def test_parameters_can_be_got_set_and_cloned():
    model = SparseGLMRegressor(k=4, M=0.5)
    assert model.get_params()["M"] == 0.5
    assert clone(model.set_params(lambda2=3.0)).get_params() == model.get_params()


def test_they_work_in_pipelines_and_cross_validation():
    X, y = load_diabetes(return_X_y=True)
    scores = cross_val_score(make_pipeline(StandardScaler(), SparseGLMRegressor(k=3)), X, y, cv=3)
    assert scores.min() > 0.3


def test_a_limit_is_a_warning_and_an_honest_gap():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.warns(UserWarning, match=r"not certified \(limit of 3 nodes\): the gap proven is"):
        model = SparseGLMClassifier(k=5, lambda2=1.0, M=2.0, max_nodes=3).fit(X, y)
    assert not model.certified_ and model.gap_ > 1e-4 and model.lower_bound_ < model.objective_


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"k": 11}, "k = 11 is not allowed: a whole number from 1 to the 10 columns"),
     ({"lambda2": 0}, "lambda2 = 0 is not allowed"), ({"M": -1}, "M = -1 is not allowed"),
     ({"gap": -1}, "gap = -1 is not allowed"), ({"width": 0}, "width = 0 is not allowed"),
     ({"time_limit": "long"}, "time_limit = 'long' is not allowed")],
)  # fmt: skip
def test_bad_settings_are_refused_in_one_line(settings, words):
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match=words):
        SparseGLMRegressor(**settings).fit(X, y)


@pytest.mark.parametrize("size", [1e-200, 1e-15, 1e15, 1e150, 1e300])
def test_units_do_not_matter(size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    y = X[:, 0] - 2 * X[:, 3] + 0.1 * rng.standard_normal(40)
    plain, kind = SparseGLMRegressor(k=2).fit(X, y), SparseGLMClassifier(k=2).fit(X, y > 0)
    columns = SparseGLMRegressor(k=2).fit(size * X, y)
    response = SparseGLMRegressor(k=2).fit(X, size * y)
    assert columns.support_.tolist() == response.support_.tolist() == [0, 3]
    assert columns.predict(size * X) == pytest.approx(plain.predict(X), rel=1e-6)
    assert response.predict(X) / size == pytest.approx(plain.predict(X), rel=1e-6)
    other = SparseGLMClassifier(k=2).fit(size * X, y > 0)
    assert other.decision_function(size * X) == pytest.approx(kind.decision_function(X), rel=1e-6)


@pytest.mark.filterwarnings("ignore:X has 1 constant columns")
def test_what_is_constant_is_not_used():
    rng = np.random.default_rng(0)
    X = np.c_[rng.standard_normal((40, 3)), np.full(40, 1e9 + 0.1)]
    model = SparseGLMRegressor(k=4).fit(X, X[:, 0])
    assert 3 not in model.support_ and model.coef_[3] == 0
    flat = SparseGLMRegressor(k=2).fit(X, np.full(40, 1e9 + 0.1))
    assert flat.support_.tolist() == [] and flat.predict(X) == pytest.approx(1e9 + 0.1)


def test_wrong_shapes_are_refused_clearly():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SparseGLMRegressor().fit(X, y[:-1])
    with pytest.raises(ValueError, match="10 features as input"):
        SparseGLMRegressor(k=2).fit(X, y).predict(X[:, :4])
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        SparseGLMClassifier().fit(X, np.arange(len(X)) % 3)
    with pytest.raises(ValueError, match="one class only"):
        SparseGLMClassifier().fit(X, np.ones(len(X)))
    assert SparseGLMRegressor(k=2).fit(pd.DataFrame(X), y).coef_.shape == (10,)
