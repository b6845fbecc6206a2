"""Every public estimator as scikit-learn's own tools use it: clone, pipelines, searches, cross-validation, pickle,
joblib, set_output, feature names.

The estimators are found by what `margrove` makes public: a new one is under test as soon as it is there.
"""

from __future__ import annotations

import io
import pickle
import re
import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import check_is_fitted

import margrove

pytestmark = pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")

# Small and quick, and what cannot be left out; every other parameter is the default.
SETTINGS: dict[str, dict[str, Any]] = {
    "SVCCV": {"Cs": [1.0], "gammas": [0.1], "cv": 2},
    "SVRCV": {"Cs": [1.0], "gammas": [0.1], "cv": 2},
    "LinearSVCCV": {"Cs": [1.0], "cv": 2},
    "NuSVC": {"nu": 0.3},
    "AdaBoostClassifier": {"n_estimators": 4},
    "AdaBoostRegressor": {"n_estimators": 4, "random_state": 0},
    "RandomForestClassifier": {"n_estimators": 4},
    "RandomForestRegressor": {"n_estimators": 4},
    "ExtraTreesClassifier": {"n_estimators": 4},
    "ExtraTreesRegressor": {"n_estimators": 4},
    "Perceptron": {"max_iter": 20, "random_state": 0},
    "KernelPerceptron": {"max_iter": 20, "random_state": 0},
    "ImpuritySelector": {"k": 2},
}
# A parameter of each, and two values that a search may choose from.
CHOICES: dict[str, tuple[str, list[Any]]] = {
    "BasicLinearClassifier": ("n_jobs", [1, 2]),
    "LeastSquaresClassifier": ("fit_intercept", [True, False]),
    "Perceptron": ("fit_intercept", [True, False]),
    "KernelPerceptron": ("gamma", [0.1, 1.0]),
    "DecisionTreeClassifier": ("max_depth", [1, 3]),
    "DecisionTreeRegressor": ("max_depth", [1, 3]),
    "DecisionStump": ("criterion", ["gini", "entropy"]),
    "AdaBoostClassifier": ("n_estimators", [2, 4]),
    "AdaBoostRegressor": ("n_estimators", [2, 4]),
    "RandomForestClassifier": ("max_depth", [2, 4]),
    "RandomForestRegressor": ("max_depth", [2, 4]),
    "ExtraTreesClassifier": ("max_depth", [2, 4]),
    "ExtraTreesRegressor": ("max_depth", [2, 4]),
    "OneVsRestClassifier": ("estimator", [margrove.SVC(), margrove.Perceptron(max_iter=5)]),
    "OneVsOneClassifier": ("estimator", [margrove.SVC(), margrove.Perceptron(max_iter=5)]),
    "BitStringClassifier": ("decoding", ["hinge", "hamming"]),
    "CalibratedClassifier": ("cv", [2, 3]),
    "NuSVC": ("nu", [0.1, 0.3]),
    "NuSVR": ("nu", [0.3, 0.6]),
    "OneClassSVM": ("nu", [0.1, 0.5]),
}


def public_estimators() -> list[str]:
    found = []
    for name in margrove.__all__:
        thing = getattr(margrove, name)
        if isinstance(thing, type) and issubclass(thing, BaseEstimator):
            found.append(name)
    return sorted(found)


OF_PICTURES = {"ConvFeatures", "FineTuned"}  # they take no table of numbers; tests/transfer has them
ALL = [name for name in public_estimators() if name not in OF_PICTURES]


def made(name: str) -> Any:
    return getattr(margrove, name)(**SETTINGS.get(name, {}))


TRANSFORMERS = [name for name in ALL if hasattr(made(name), "transform")]
PREDICTORS = [name for name in ALL if name not in TRANSFORMERS]


def data_for(model: Any) -> tuple[pd.DataFrame, Any]:
    """A frame of positive numbers, and a target that the estimator takes."""
    given = load_diabetes(as_frame=True) if is_regressor(model) else load_iris(as_frame=True)
    rows = slice(None, None, 4 if is_regressor(model) else 2)
    X, y = given.data.iloc[rows], given.target.iloc[rows].to_numpy()
    return X, y if is_regressor(model) else np.array(["setosa", "versicolor", "virginica"])[y]


def fitted(name: str) -> tuple[Any, pd.DataFrame, Any]:
    model = made(name)
    X, y = data_for(model)
    return model.fit(X, y), X, y


def outputs(model: Any, X: Any) -> list[np.ndarray]:
    """Return every prediction and transformation of the rows."""
    methods = ("predict", "decision_function", "predict_proba", "transform")
    return [np.asarray(getattr(model, method)(X)) for method in methods if hasattr(model, method)]


def assert_same_outputs(first: Any, second: Any, X: Any) -> None:
    pairs = list(zip(outputs(first, X), outputs(second, X), strict=True))
    assert pairs
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)


def test_estimators_of_every_family_are_found():
    wanted = {"SVC", "LinearSVR", "Perceptron", "DecisionStump", "AdaBoostRegressor", "OneVsOneClassifier"}
    assert wanted | {"TableEncoder", "ImpuritySelector", "OneClassSVM", "SVRCV"} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_a_clone_has_the_parameters_and_no_fitted_attributes(name):
    model, X, _ = fitted(name)
    copy = clone(model)
    assert repr(copy) == repr(made(name))
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    with pytest.raises(NotFittedError):
        (copy.transform if name in TRANSFORMERS else copy.predict)(X)


@pytest.mark.parametrize("name", ALL)
def test_parameters_are_set_as_they_are_got(name):
    model = made(name)
    assert type(model)().set_params(**model.get_params(deep=False)).get_params(deep=False) == model.get_params(
        deep=False
    )
    with pytest.raises(ValueError, match="no_such_thing"):
        model.set_params(no_such_thing=1)


@pytest.mark.parametrize("name", ALL)
def test_pickle_and_joblib_keep_every_prediction(name):
    model, X, _ = fitted(name)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        assert_same_outputs(model, again, X)
        assert list(again.feature_names_in_) == list(X.columns)
        if hasattr(model, "certificate_"):
            assert again.certificate_.to_json() == model.certificate_.to_json()


@pytest.mark.parametrize("name", ALL)
def test_the_names_of_columns_are_kept_and_others_are_noticed(name):
    model, X, _ = fitted(name)
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.n_features_in_ == X.shape[1]
    needed = X.columns[2]  # of flowers the length of the petals, which every selector keeps
    with pytest.raises(ValueError, match=rf"another|{re.escape(needed)}"):
        outputs(model, X.rename(columns={needed: "another"}))


@pytest.mark.parametrize("name", ALL)
def test_columns_that_are_missing_are_refused(name):
    model, X, _ = fitted(name)
    with pytest.raises(ValueError, match=r"missing|features|columns"):
        outputs(model, X.drop(columns=X.columns[2]))


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_pipeline_fits_predicts_and_scores(name):
    model = made(name)
    X, y = data_for(model)
    pipeline = make_pipeline(MinMaxScaler(), model).fit(X, y)
    direct = clone(model).fit(MinMaxScaler().fit_transform(X), y)
    np.testing.assert_array_equal(pipeline.predict(X), direct.predict(np.asarray(MinMaxScaler().fit_transform(X))))
    if not is_outlier_detector(model):
        assert np.isfinite(pipeline.score(X, y))
    assert_same_outputs(pipeline, pickle.loads(pickle.dumps(pipeline)), X)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_transformer_works_in_a_pipeline(name):
    model = made(name)
    X, y = data_for(model)
    pipeline = make_pipeline(model, margrove.LinearSVC()).fit(X, y)
    assert pipeline.score(X, y) > 0.8


@pytest.mark.parametrize("name", [name for name in PREDICTORS if not name.endswith("CV")])
def test_a_grid_search_of_theirs_finds_and_refits(name):
    model = made(name)
    X, y = data_for(model)
    parameter, values = CHOICES.get(name, ("C", [0.1, 1.0]))
    scoring = (
        None if not is_outlier_detector(model) else lambda fitted, X, y=None: float((fitted.predict(X) > 0).mean())
    )
    search = GridSearchCV(model, {parameter: values}, cv=2, scoring=scoring, error_score="raise").fit(X, y)
    assert any(search.best_params_[parameter] is value or search.best_params_[parameter] == value for value in values)
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


@pytest.mark.parametrize("name", PREDICTORS)
def test_cross_validated_predictions_are_those_of_the_folds(name):
    model = made(name)
    X, y = data_for(model)
    splitter = StratifiedKFold(2) if is_classifier(model) else KFold(2)
    found = cross_val_predict(model, X, y, cv=splitter)
    for train, test in splitter.split(X, y):
        own = clone(model).fit(X.iloc[train], y[train]).predict(X.iloc[test])
        np.testing.assert_array_equal(found[test], own)
    if not is_outlier_detector(model):
        assert np.isfinite(cross_val_score(model, X, y, cv=splitter)).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_set_output_gives_frames_with_names(name, library):
    model, X, _ = fitted(name)
    plain = np.asarray(model.transform(X))
    frame = model.set_output(transform=library).transform(X)
    assert type(frame).__module__.startswith(library)
    assert [str(column) for column in frame.columns] == [str(column) for column in model.get_feature_names_out()]
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    again = pickle.loads(pickle.dumps(model)).transform(X)
    assert type(again) is type(frame)


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_pipeline_of_frames_hands_on_their_names(name):
    model = made(name)
    X, y = data_for(model)
    pipeline = make_pipeline(margrove.TableEncoder(standardise=False), model).set_output(transform="pandas").fit(X, y)
    assert list(pipeline[-1].feature_names_in_) == list(X.columns)
    assert len(pipeline.predict(X)) == len(X)


@pytest.mark.parametrize("name", PREDICTORS)
def test_the_same_rows_in_any_form_give_the_same_predictions(name):
    model, X, y = fitted(name)
    bare = clone(model).fit(X.to_numpy(), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(bare.predict(X.to_numpy()), model.predict(X))
    assert not hasattr(bare, "feature_names_in_")
