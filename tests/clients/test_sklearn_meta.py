"""scikit-learn's own tools over our estimators: each in a small real use, with a result that is compared.

`tests/peers/test_sklearn_world.py` has clone, pipelines, searches and pickle for every estimator.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes HalvingGridSearchCV importable
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    LearningCurveDisplay,
    TunedThresholdClassifierCV,
    ValidationCurveDisplay,
    cross_validate,
    train_test_split,
)
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import margrove

plt.switch_backend("Agg")


@pytest.fixture(scope="module")
def cancer():
    """Half of the rows to train on, half to test on; 6 of the columns, scaled."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[:, [0, 1, 4, 7, 20, 27]])
    return train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def planted():
    """Six columns, of which the first two decide the class and the others are noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 6))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


MODELS = [margrove.SVC(), margrove.LinearSVC(), margrove.DecisionTreeClassifier(max_depth=3)]


# Tables and metadata


@pytest.mark.parametrize(("library", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_a_column_transformer_gives_frames_of_either_library(library, frame):
    penguins = margrove.load_penguins()
    names = ("island", "flipper_length_mm", "body_mass_g")
    given = frame({name: penguins.columns[penguins.position(name)].cells() for name in names})
    y = penguins.labels()
    parts = [
        ("text", margrove.TableEncoder(), ["island"]),
        ("numbers", margrove.TableEncoder(), ["flipper_length_mm", "body_mass_g"]),
    ]
    columns = ColumnTransformer(parts).set_output(transform=library)
    framed = columns.fit_transform(given)
    assert isinstance(framed, frame)
    assert "text__island=Dream" in list(framed.columns)
    assert "numbers__body_mass_g" in list(framed.columns)

    model = make_pipeline(columns, margrove.SVC()).fit(given, y)
    assert list(model[-1].feature_names_in_) == list(framed.columns)
    plain = make_pipeline(ColumnTransformer(parts), margrove.SVC()).fit(given, y)
    assert (model.predict(given) == plain.predict(given)).all()
    assert model.score(given, y) > 0.75


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_metadata_routing_brings_weights_to_fit_and_score(model, planted):
    """Rows of weight zero have wrong labels: nobody who is given the weights sees them."""
    X, y = planted
    weight = np.ones(len(y))
    weight[::4] = 0
    wrong = np.where(weight == 0, 1 - y, y)
    alone = clone(model).fit(X[weight > 0], y[weight > 0])
    with config_context(enable_metadata_routing=True):
        asked = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(asked, {}, cv=2).fit(X, wrong, sample_weight=weight)
        pipeline = make_pipeline(FunctionTransformer(), asked)
        pipeline.fit(X, wrong, sample_weight=weight)
        for routed in (search, pipeline):
            assert (routed.predict(X) == alone.predict(X)).mean() > 0.98
        scores = cross_validate(asked, X, wrong, params={"sample_weight": weight}, cv=4)["test_score"]
        assert scores.mean() > 0.85  # 0.75 at most where the wrong labels count


# Probabilities and thresholds


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_calibrated_probabilities_are_better_than_chance(model, method, cancer):
    X, other, y, truth = cancer
    calibrated = CalibratedClassifierCV(model, method=method, cv=3).fit(X, y)
    probability = calibrated.predict_proba(other)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert log_loss(truth, probability) < 0.6 * log_loss(truth, np.full(len(truth), y.mean()))


def test_a_frozen_estimator_is_calibrated_and_stays_as_it_is(cancer):
    X, other, y, truth = cancer
    fitted = margrove.SVC(C=3).fit(X, y)
    before = fitted.decision_function(other)
    calibrated = CalibratedClassifierCV(FrozenEstimator(fitted)).fit(other[::2], truth[::2])
    assert calibrated.score(other[1::2], truth[1::2]) > 0.9
    assert FrozenEstimator(fitted).fit(other, 1 - truth).estimator is fitted
    np.testing.assert_array_equal(fitted.decision_function(other), before)


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: type(model).__name__)
def test_a_tuned_threshold_finds_the_rare_class(model):
    rng = np.random.default_rng(1)
    y = (rng.random(400) < 0.12).astype(int)
    X = rng.normal(size=(400, 2)) + 1.3 * y[:, None]
    plain = clone(model).fit(X, y)
    tuned = TunedThresholdClassifierCV(model, scoring="balanced_accuracy", cv=3).fit(X, y)
    better = balanced_accuracy_score(y, tuned.predict(X))
    assert better > balanced_accuracy_score(y, plain.predict(X)) + 0.03
    fixed = FixedThresholdClassifier(model, threshold=tuned.best_threshold_).fit(X, y)
    assert (fixed.predict(X) == tuned.predict(X)).all()


def test_self_training_labels_the_unlabelled(cancer):
    X, other, y, truth = cancer
    known = np.where(np.arange(len(y)) % 6 == 0, y, -1)
    model = SelfTrainingClassifier(margrove.SVC(probability=True, random_state=0), threshold=0.9).fit(X, known)
    assert (model.transduction_ != -1).sum() > (known != -1).sum()
    assert model.score(other, truth) > 0.88


# Ensembles


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_each_bagged_model_is_certified_with_its_rows_and_columns(model, cancer):
    X, other, y, truth = cancer
    bag = BaggingClassifier(model, n_estimators=5, max_features=0.8, random_state=0).fit(X, y)
    for member, rows, columns in zip(bag.estimators_, bag.estimators_samples_, bag.estimators_features_, strict=True):
        weight = np.bincount(rows, minlength=len(y))
        assert margrove.certify(member, X[:, columns], y, sample_weight=weight).holds
        assert not margrove.certify(member, X[:, columns], 1 - y, sample_weight=weight).holds
    assert bag.score(other, truth) > 0.9


def test_bagged_regressors_average():
    X, y = load_diabetes(return_X_y=True)
    bag = BaggingRegressor(margrove.DecisionTreeRegressor(max_depth=3), n_estimators=4, random_state=0).fit(X, y)
    pairs = zip(bag.estimators_, bag.estimators_features_, strict=True)
    np.testing.assert_allclose(bag.predict(X), np.mean([member.predict(X[:, used]) for member, used in pairs], axis=0))
    assert bag.score(X, y) > 0.4


def test_scikit_learns_boosting_takes_our_trees(cancer):
    X, other, y, truth = cancer
    theirs = AdaBoostClassifier(margrove.DecisionTreeClassifier(max_depth=1), n_estimators=10).fit(X, y)
    ours = margrove.AdaBoostClassifier(margrove.DecisionTreeClassifier(max_depth=1), n_estimators=10).fit(X, y)
    assert theirs.score(other, truth) > 0.9
    np.testing.assert_allclose(theirs.estimator_errors_, ours.estimator_errors_, atol=1e-9)


def test_stacking_is_as_good_as_its_best_member(cancer):
    X, other, y, truth = cancer
    members = [("svc", margrove.SVC()), ("tree", margrove.DecisionTreeClassifier(max_depth=3))]
    stack = StackingClassifier(members, LogisticRegression(), cv=3).fit(X, y)
    assert stack.transform(other).shape == (len(other), 2)
    assert stack.score(other, truth) >= stack.named_estimators_["tree"].score(other, truth)
    on_top = StackingClassifier(members, margrove.LinearSVC(), cv=3, passthrough=True).fit(X, y)
    assert on_top.score(other, truth) > 0.9


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_a_vote_is_that_of_its_members(voting, cancer):
    X, other, y, truth = cancer
    members = [
        ("svc", margrove.SVC(probability=True, random_state=0)),
        ("tree", margrove.DecisionTreeClassifier(max_depth=3)),
        ("boost", margrove.AdaBoostClassifier(n_estimators=5)),
    ]
    vote = VotingClassifier(members, voting=voting).fit(X, y)
    if voting == "soft":
        mean = np.mean([member.predict_proba(other) for member in vote.estimators_], axis=0)
        np.testing.assert_allclose(vote.predict_proba(other), mean)
    else:
        most = np.sum([member.predict(other) for member in vote.estimators_], axis=0) >= 2
        assert (vote.predict(other) == most).all()
    assert vote.score(other, truth) > 0.9


def test_a_vote_of_regressors_is_their_mean():
    X, y = load_diabetes(return_X_y=True)
    members = [("svr", margrove.SVR(C=100)), ("tree", margrove.DecisionTreeRegressor(max_depth=3))]
    vote = VotingRegressor(members).fit(X, y)
    np.testing.assert_allclose(vote.predict(X), np.mean([member.predict(X) for member in vote.estimators_], axis=0))


def test_several_targets_by_one_model_each():
    X, y = load_diabetes(return_X_y=True)
    both = np.column_stack([y, -y])
    model = MultiOutputRegressor(margrove.SVR(kernel="linear", C=100)).fit(X, both)
    np.testing.assert_allclose(model.predict(X).sum(axis=1), 0, atol=2.0)  # the second is the first turned over
    flowers, species = load_iris(return_X_y=True)
    labels = np.column_stack([species > 0, species > 1]).astype(int)
    chain = ClassifierChain(margrove.SVC(), random_state=0).fit(flowers, labels)
    assert (chain.predict(flowers) == labels).mean() > 0.95


# Columns


@pytest.mark.parametrize(
    "model",
    [
        margrove.SVC(kernel="linear"),
        margrove.LinearSVC(),
        margrove.Perceptron(random_state=0, max_iter=50),
        margrove.LeastSquaresClassifier(),
        margrove.DecisionTreeClassifier(max_depth=4),
        margrove.AdaBoostClassifier(n_estimators=10),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
def test_columns_that_decide_are_selected(model, planted):
    X, y = planted
    wanted = [0, 1]
    assert RFE(model, n_features_to_select=2).fit(X, y).get_support(indices=True).tolist() == wanted
    chosen = SelectFromModel(model, max_features=2, threshold=-np.inf).fit(X, y)
    assert chosen.get_support(indices=True).tolist() == wanted


def test_columns_are_selected_by_cross_validation(planted):
    X, y = planted
    found = RFECV(margrove.LinearSVC(), cv=3, min_features_to_select=1).fit(X, y)
    assert {0, 1} <= set(found.get_support(indices=True))
    selector = SequentialFeatureSelector(margrove.DecisionTreeClassifier(max_depth=4), n_features_to_select=2, cv=3)
    assert selector.fit(X, y).get_support(indices=True).tolist() == [0, 1]


def test_an_l1_penalty_selects_columns(planted):
    X, y = planted
    model = margrove.LinearSVC(penalty="l1", C=0.02)
    selector = SelectFromModel(model).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [0, 1]
    assert (selector.estimator_.coef_[0, 2:] == 0).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_permuting_a_column_that_decides_costs_accuracy(model, planted):
    X, y = planted
    found = permutation_importance(model.fit(X, y), X, y, n_repeats=3, random_state=0).importances_mean
    assert found[:2].min() > 0.1 > found[2:].max()


# Displays


@pytest.mark.parametrize("model", [margrove.SVR(C=100), margrove.DecisionTreeRegressor(max_depth=3)], ids=repr)
def test_partial_dependence_is_the_mean_prediction(model):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model.fit(X, y)
    found = partial_dependence(model, X, ["bmi"], grid_resolution=5)
    at = found["grid_values"][0]
    expected = [model.predict(X.assign(bmi=value)).mean() for value in at]
    np.testing.assert_allclose(found["average"][0], expected)
    assert expected[-1] > expected[0]
    display = PartialDependenceDisplay.from_estimator(model, X, ["bmi"], grid_resolution=5)
    np.testing.assert_allclose(display.lines_[0, 0].get_ydata(), expected)


@pytest.mark.parametrize("response", ["predict", "decision_function", "predict_proba"])
def test_a_decision_boundary_is_drawn_from_the_predictions(response):
    X, y = load_iris(return_X_y=True)
    model = margrove.SVC(probability=True, random_state=0).fit(X[:100, :2], y[:100])
    display = DecisionBoundaryDisplay.from_estimator(model, X[:100, :2], response_method=response, grid_resolution=8)
    at = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    expected = getattr(model, response)(at)
    np.testing.assert_allclose(display.response.ravel(), expected[:, 1] if response == "predict_proba" else expected)
    assert len(np.unique(display.response)) > 1


def test_a_decision_boundary_of_three_classes_is_drawn():
    X, y = load_iris(return_X_y=True)
    model = margrove.DecisionTreeClassifier(max_depth=3).fit(X[:, 2:], y)
    display = DecisionBoundaryDisplay.from_estimator(model, X[:, 2:], response_method="predict", grid_resolution=8)
    assert set(np.unique(display.response)) == {0, 1, 2}


def test_learning_and_validation_curves(cancer):
    X, _, y, _ = cancer
    tree = margrove.DecisionTreeClassifier()
    display = LearningCurveDisplay.from_estimator(tree, X, y, train_sizes=[0.2, 1.0], cv=3)
    np.testing.assert_array_equal(display.train_scores, 1)  # a full tree knows its rows
    assert 0.8 < display.test_scores.mean() < 1
    curve = ValidationCurveDisplay.from_estimator(tree, X, y, param_name="max_depth", param_range=[1, 8], cv=3)
    assert curve.train_scores[0].mean() < curve.train_scores[1].mean()


def test_a_halving_search_finds_the_better_penalty(cancer):
    X, other, y, truth = cancer
    search = HalvingGridSearchCV(margrove.SVC(), {"C": [1e-4, 1.0]}, cv=2, random_state=0, min_resources=60, factor=2)
    search.fit(X, y)
    assert search.best_params_ == {"C": 1.0}
    assert search.n_iterations_ == 2
    assert search.score(other, truth) > 0.9
