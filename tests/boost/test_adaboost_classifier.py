"""`AdaBoostClassifier` as an estimator: tables, learners of others, refusals, scikit-learn's checks."""

from __future__ import annotations

import pickle
import time
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier as ScikitBoost
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as ScikitTree
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import (
    SVC,
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    Perceptron,
    certify,
    load_penguins,
)
from margrove.errors import ConvergenceWarning, InputError, ParameterError
from margrove.run import slices
from margrove.run.progress import watched
from margrove.status import Status


@parametrize_with_checks(
    [
        AdaBoostClassifier(n_estimators=5),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=2, max_features=1, random_state=0), n_estimators=5),
    ],
    expected_failed_checks=lambda _: {
        "check_class_weight_classifiers": "later rounds raise the weights of a light class, too, until it is right"
    },
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


# ------------------------------------------------------------------------------------------------------ tables


def _frame():
    rng = np.random.default_rng(0)
    n = 120
    colour = rng.choice(["red", "green", "blue"], n)
    size = rng.normal(size=n)
    is_old = rng.random(n) < 0.5
    y = np.where((colour == "red") ^ (size > 0.2), "yes", "no")
    frame = pd.DataFrame({"colour": pd.Categorical(colour), "size": size, "is_old": is_old})
    frame.loc[::7, "size"] = np.nan
    frame.loc[::11, "colour"] = None
    return frame, y


def test_frames_with_categories_and_missing_cells_are_taken_as_they_are(engine):
    frame, y = _frame()
    model = AdaBoostClassifier(n_estimators=25, engine=engine).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["colour", "size", "is_old"]
    assert {column.test for column in model.model_.grove.columns} == {"subset", "threshold"}
    assert certify(model, frame, y).holds
    tests = {learner.nodes_.columns[learner.nodes_.feature[0]].name for learner in model.estimators_}
    assert {"colour", "size"} <= tests
    again = AdaBoostClassifier(n_estimators=25, engine=engine).fit(pl.from_pandas(frame), y)
    np.testing.assert_array_equal(again.predict_proba(pl.from_pandas(frame)), model.predict_proba(frame))


@pytest.mark.parametrize("ensemble", [AdaBoostClassifier, AdaBoostRegressor])
def test_categories_of_many_thin_levels_are_tested_as_a_tree_alone_tests_them(ensemble):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"seat": [f"s{i}" for i in rng.integers(0, 60, 150)], "size": rng.normal(size=150)})
    y = (frame["size"] > 0).astype(int)
    model = ensemble(n_estimators=5).fit(frame, y)
    alone = clone(model.estimator_).fit(frame, y)
    assert model.categorical_ == alone.categorical_
    assert model.categorical_["seat"].startswith("one_vs_rest: ")
    assert [column.test for column in model.model_.grove.columns] == ["one_vs_rest", "threshold"]
    assert certify(model, frame, y).holds


def test_sparse_rows_are_boosted_as_dense_ones(engine):
    X = sp.random(80, 6, density=0.4, random_state=0, format="csr")
    y = (np.asarray(X.sum(axis=1)).ravel() > 1).astype(int)
    sparse = AdaBoostClassifier(n_estimators=8, engine=engine).fit(X, y)
    dense = AdaBoostClassifier(n_estimators=8, engine=engine).fit(X.toarray(), y)
    np.testing.assert_allclose(sparse.estimator_errors_, dense.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X.toarray()), atol=1e-9)
    assert certify(sparse, X, y).holds


def test_a_table_and_its_target_are_known_by_name(engine):
    penguins = load_penguins()
    model = AdaBoostClassifier(n_estimators=5, engine=engine).fit(penguins, penguins.labels())
    assert model.target_ == "species"
    assert model.estimators_[0].target_ == "species"
    assert "flipper_length_mm" in str(model.estimators_[0].rules())


# ----------------------------------------------------------------------------------------------- learners of others


@pytest.mark.parametrize("learner", [GaussianNB(), LogisticRegression(), ScikitTree(max_depth=2, max_features=1)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scikit_learns_learners_are_boosted_as_scikit_learn_does(clouds, learner, n_classes):
    X, y = clouds(n_classes, noise=0.1)
    ours = AdaBoostClassifier(clone(learner), n_estimators=8, random_state=3).fit(X, y)
    theirs = ScikitBoost(clone(learner), n_estimators=8, random_state=3).fit(X, y)
    n = ours.n_estimators_
    assert n == len(theirs.estimators_)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_[:n], atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert certify(ours, X, y).holds


@pytest.mark.filterwarnings("ignore:Perceptron ended with status 'max_iter'")
@pytest.mark.parametrize("learner", [SVC(kernel="linear"), Perceptron(max_iter=5, tol=None), DecisionStump()])
def test_margrove_learners_are_boosted_with_labels_of_any_type(clouds, learner):
    X, y = clouds(2, noise=0.2)
    names = np.array(["no", "yes"], dtype=object)[y]
    with np.errstate(all="raise"):
        model = AdaBoostClassifier(clone(learner), n_estimators=4, engine="reference").fit(X, names)
    assert set(model.predict(X)) <= {"no", "yes"}
    assert model.score(X, names) > 0.5
    assert certify(model, X, names).holds


@pytest.mark.parametrize(
    "learner",
    [
        DecisionTreeClassifier(max_depth=3, prune="pessimistic"),
        DecisionTreeClassifier(max_depth=3, significance=0.01),
        DecisionTreeClassifier(max_depth=2, max_features=2),
        DecisionTreeClassifier(max_depth=2, random_state=0),
        DecisionTreeClassifier(max_depth=2, monotonic_cst=[1, 0, 0, 0]),
        DecisionStump(class_weight="balanced"),
    ],
    ids=["pruned", "significant", "columns drawn", "random order", "monotone", "class weights"],
)
def test_trees_that_an_engine_cannot_boost_are_boosted_round_by_round(clouds, learner):
    X, y = clouds(2, n_rows=400, noise=0.1)
    model = AdaBoostClassifier(learner, n_estimators=6, random_state=0).fit(X, y)
    again = AdaBoostClassifier(learner, n_estimators=6, random_state=0).fit(X, y)
    assert model.n_estimators_ >= 2
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))
    assert certify(model, X, y).holds
    labels = np.array([learner.predict(X) for learner in model.estimators_])
    by_hand = np.where(model.estimator_weights_ @ np.where(labels == 1, 1, -1) > 0, 1, 0)
    np.testing.assert_array_equal(model.predict(X), by_hand)


def test_both_ways_to_boost_a_plain_tree_agree(engine, clouds):
    """A time limit that never comes is no part of a `TreeProblem`: the learner then goes round by round."""
    X, y = clouds(3, noise=0.2)
    plain = DecisionTreeClassifier(max_depth=2, min_weight_fraction_leaf=0.1, complexity=0.5)
    as_one = AdaBoostClassifier(plain, n_estimators=6, engine=engine).fit(X, y)
    by_rounds = AdaBoostClassifier(clone(plain).set_params(time_limit=1e6), n_estimators=6).fit(X, y)
    np.testing.assert_allclose(as_one.estimator_errors_, by_rounds.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(as_one.decision_function(X), by_rounds.decision_function(X), atol=1e-9)


def test_early_stopping_and_warm_start_work_round_by_round(clouds):
    X, y = clouds(2, noise=0.3)
    names = pd.DataFrame(X, columns=list("abcd"))
    settings = {"early_stopping": True, "validation_fraction": 0.3, "n_iter_no_change": 3}
    model = AdaBoostClassifier(ScikitTree(max_depth=2), n_estimators=40, **settings).fit(names, y)
    assert model.status_ is Status.EARLY_STOPPED
    rows = model.validation_rows_
    assert 1 - model.score(names.iloc[rows], y[rows]) == pytest.approx(model.rounds_.validation_error.min())
    tree = ScikitTree(max_depth=2, max_features=1)
    parts = AdaBoostClassifier(tree, n_estimators=4, warm_start=True, random_state=1).fit(X, y)
    parts.set_params(n_estimators=9).fit(X, y)
    whole = AdaBoostClassifier(tree, n_estimators=9, random_state=1).fit(X, y)
    np.testing.assert_array_equal(parts.estimator_errors_, whole.estimator_errors_)


class SlowStump(DecisionStump):
    """One that takes longer than the limit of the test below."""

    def fit(self, X, y, sample_weight=None):
        time.sleep(0.05)
        return super().fit(X, y, sample_weight)


def test_progress_is_reported_and_a_time_limit_keeps_the_finished_rounds(clouds):
    X, y = clouds(2)
    seen = []
    with watched(seen.append):
        AdaBoostClassifier(ScikitTree(max_depth=1), n_estimators=3).fit(X, y)
    assert [report.done for report in seen] == [1, 2, 3]
    assert seen[-1].total == 3
    with pytest.warns(UserWarning, match="'time_limit' after 1 of 50 rounds"):
        model = AdaBoostClassifier(SlowStump(), time_limit=0.02).fit(X, y)
    assert model.status_ is Status.TIME_LIMIT
    assert model.n_estimators_ == 1


class InterruptedStump(DecisionStump):
    """Somebody presses Ctrl-C in the fit after so many."""

    n_left = 0

    def fit(self, X, y, sample_weight=None):
        if type(self).n_left == 0:
            raise KeyboardInterrupt
        type(self).n_left -= 1
        return super().fit(X, y, sample_weight)


def test_an_interruption_keeps_the_rounds_that_are_done(clouds):
    X, y = clouds(2)
    InterruptedStump.n_left = 3
    with pytest.warns(ConvergenceWarning, match="'interrupted' after 3 of 50 rounds"):
        model = AdaBoostClassifier(InterruptedStump()).fit(X, y)
    assert model.n_estimators_ == 3
    assert model.score(X, y) > 0.5
    with pytest.raises(KeyboardInterrupt, match="before the first learner was fitted"):
        AdaBoostClassifier(InterruptedStump()).fit(X, y)


def test_an_interruption_ends_the_boosting_of_a_search(clouds):
    """A clone is fitted by a search, which must not score half of the rounds."""
    X, y = clouds(2)
    InterruptedStump.n_left = 3
    with pytest.raises(KeyboardInterrupt):
        clone(AdaBoostClassifier(InterruptedStump())).fit(X, y)
    assert InterruptedStump.n_left == 0


class HalfPerceptron(Perceptron):
    """Ctrl-C is pressed in its solve, after so many."""

    n_left = 0

    def fit(self, X, y, sample_weight=None):
        with watched(_press if type(self).n_left == 0 else None):
            type(self).n_left -= 1
            return super().fit(X, y, sample_weight)


def _press(progress):
    raise KeyboardInterrupt


def test_an_interrupted_learner_is_discarded(clouds, monkeypatch):
    monkeypatch.setattr(slices, "SLICE", 1e-5)
    X, y = clouds(2, noise=0.3)
    HalfPerceptron.n_left = 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # no learner separates the clouds
        model = AdaBoostClassifier(HalfPerceptron(max_iter=1000)).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert [each.status_ for each in model.estimators_] == ["max_iter"] * 2


class SlowToJudge(GaussianNB):
    """One whose rounds take long to repeat."""

    def predict(self, X):
        time.sleep(0.02)
        return super().predict(X)


def test_a_time_limit_in_a_warm_start_never_loses_rounds(clouds):
    X, y = clouds(2, noise=0.1)
    model = AdaBoostClassifier(SlowToJudge(), n_estimators=4, learning_rate=0.3, warm_start=True).fit(X, y)
    assert model.n_estimators_ == 4
    first = model.estimator_weights_
    with pytest.warns(ConvergenceWarning, match="'time_limit' after"):
        model.set_params(n_estimators=100, time_limit=0.01).fit(X, y)
    assert model.n_estimators_ >= 4
    np.testing.assert_array_equal(model.estimator_weights_[:4], first)


@pytest.mark.parametrize("settings", [{}, {"warm_start": True}, {"estimator": GaussianNB()}], ids=str)
def test_a_fit_that_is_refused_leaves_the_model_as_it_was(settings, clouds):
    X, y = clouds(2, noise=0.1)
    model = AdaBoostClassifier(n_estimators=4, **settings).fit(X, y)
    predicted, certificate = model.predict_proba(X), str(model.certificate_)
    with pytest.raises(InputError):
        model.fit(X[:, :2], np.full(len(y), np.nan))
    np.testing.assert_array_equal(model.predict_proba(X), predicted)
    assert str(model.certificate_) == certificate


class Misbehaving(GaussianNB):
    """Predicts what it should not."""

    def __init__(self, answer="a column"):
        super().__init__()
        self.answer = answer

    def predict(self, X):
        label = super().predict(X)
        if self.answer == "a column":
            return label[:, None]
        if self.answer == "too few":
            return label[:-1]
        if self.answer == "None":
            return None
        return np.array([None if i % 9 == 0 else each for i, each in enumerate(label.tolist())], dtype=object)


@pytest.mark.parametrize("answer", ["a column", "too few", "None"])
def test_predictions_that_are_not_one_label_for_each_row_are_named(answer, clouds):
    X, y = clouds(2)
    with pytest.raises(InputError, match=r"the predict of Misbehaving returned an array of shape .* 200 rows"):
        AdaBoostClassifier(Misbehaving(answer)).fit(X, y)


def test_a_predicted_label_that_is_not_a_class_counts_as_an_error(clouds):
    X, y = clouds(2)
    model = AdaBoostClassifier(Misbehaving("some None"), n_estimators=1).fit(X, y)
    wrong = (GaussianNB().fit(X, y).predict(X) != y) | (np.arange(len(y)) % 9 == 0)
    assert model.estimator_errors_[0] == pytest.approx(wrong.mean(), rel=1e-12)
    assert certify(model, X, y).holds


# ---------------------------------------------------------------------------------------------------- the vote


@settings(max_examples=25, deadline=None)
@given(
    n_classes=st.integers(2, 6),
    n_rows=st.integers(12, 40),
    n_rounds=st.integers(1, 9),
    rate=st.sampled_from([0.1, 1.0, 2.0]),
    seed=st.integers(0, 10**6),
)
def test_the_most_probable_class_is_the_predicted_one(n_classes, n_rows, n_rounds, rate, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n_rows, 2)).astype(float)  # many ties, of rows and of votes
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    learner = DecisionTreeClassifier(max_depth=3)
    model = AdaBoostClassifier(learner, n_estimators=n_rounds, learning_rate=rate, engine="reference").fit(X, y)
    for probability, label in zip(model.staged_predict_proba(X), model.staged_predict(X), strict=True):
        np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], label)
        np.testing.assert_allclose(probability.sum(axis=1), 1)
    np.testing.assert_array_equal(label, model.predict(X))
    margins = model.margins(X, y)
    assert (np.abs(margins) <= 1 + 1e-12).all()
    assert (label == y)[margins > 1e-9].all()
    assert (label != y)[margins < -1e-9].all()
    error = np.mean(label != y)
    assert error == pytest.approx(model.rounds_.training_error[-1])


def test_margins_of_two_classes_are_y_times_f(engine, clouds):
    X, y = clouds(2, noise=0.1)
    model = AdaBoostClassifier(n_estimators=9, engine=engine).fit(X, y)
    np.testing.assert_allclose(
        model.margins(X, y), np.where(y == 1, 1, -1) * model.decision_function(X) / 2, atol=1e-12
    )
    staged = model.margins(X, y, staged=True)
    assert staged.shape == (9, len(y))
    np.testing.assert_array_equal(staged[-1], model.margins(X, y))
    with pytest.raises(InputError, match="'stranger', which is not one of the training classes"):
        model.margins(X, np.array(["stranger"] * len(y)))
    with pytest.raises(InputError, match="200 rows, and y has 3 labels"):
        model.margins(X, y[:3])
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(model.margins(X, y[:, None]), model.margins(X, y))
    with pytest.raises(ValueError, match="y should be a 1d array"):
        model.margins(X, np.eye(2)[np.arange(len(y)) % 2])


def test_a_warning_of_a_learner_points_at_the_line_that_fits(clouds):
    X, y = clouds(2)
    with pytest.warns(ConvergenceWarning) as told:
        AdaBoostClassifier(Perceptron(max_iter=1, tol=None), n_estimators=2).fit(X, y)
    assert {warning.filename for warning in told} == {__file__}


def test_the_learners_are_trees_that_predict_by_themselves(engine, clouds):
    X, y = clouds(3)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4, engine=engine).fit(X, y)
    assert all(type(learner) is DecisionTreeClassifier and learner.max_depth == 2 for learner in model.estimators_)
    assert [learner.get_depth() for learner in model.estimators_] == [2, 2, 2, 2]
    for t, learner in enumerate(model.estimators_):
        assert np.mean(learner.predict(X) != y) <= 1
        weight_of_wrong = model.estimator_errors_[t]
        assert 0 < weight_of_wrong < 2 / 3
    assert model.estimators_ is model.estimators_  # made once


def test_a_pickled_model_predicts_the_same(engine, clouds):
    X, y = clouds(3)
    model = AdaBoostClassifier(n_estimators=4, engine=engine).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert certify(again, X, y).holds


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_estimators": 0}, "n_estimators is 0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
        ({"learning_rate": np.inf}, "learning_rate is inf"),
        ({"estimator": KNeighborsClassifier()}, "KNeighborsClassifier doesn't support sample_weight"),
        ({"estimator": DecisionTreeRegressor()}, "DecisionTreeRegressor, and AdaBoostClassifier needs a classifier"),
        (
            {"estimator": make_pipeline(StandardScaler(), LogisticRegression())},
            r"before the boosting: make_pipeline\(..., AdaBoostClassifier\(LogisticRegression\(\)\)\)",
        ),
        ({"estimator": "stump"}, "estimator is 'stump'"),
        ({"estimator": DecisionStump}, "class DecisionStump; pass an instance"),
        ({"estimator": DecisionStump(criterion="gnii")}, "criterion is 'gnii'"),
        ({"early_stopping": 1}, "early_stopping is 1"),
        ({"early_stopping": True, "validation_fraction": 1.5}, "validation_fraction is 1.5"),
        ({"n_iter_no_change": 0}, "n_iter_no_change is 0"),
        ({"stop_at_bound": -1}, "stop_at_bound is -1"),
        ({"warm_start": "yes"}, "warm_start is 'yes'"),
        ({"random_state": "x"}, "random_state is 'x'"),
        ({"engine": "abacus"}, "engine is 'abacus'"),
    ],
)
def test_bad_parameters_are_named(clouds, settings, words):
    with pytest.raises(ParameterError, match=words):
        AdaBoostClassifier(**{"engine": "reference", **settings}).fit(*clouds(2))


def test_too_few_rows_to_hold_any_out_are_refused(engine):
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    with pytest.raises(InputError, match=r"validation_fraction=0\.1 of 3 rows"):
        AdaBoostClassifier(early_stopping=True, engine=engine).fit(X, y)


def test_a_warm_start_with_other_data_or_parameters_is_refused(engine, clouds):
    X, y = clouds(2)
    model = AdaBoostClassifier(n_estimators=5, warm_start=True, engine=engine).fit(X, y)
    with pytest.raises(ParameterError, match="rounds already fitted, 5"):
        clone_of(model, n_estimators=4).fit(X, y)
    with pytest.raises(ParameterError, match="existing rounds were fitted with DecisionStump"):
        clone_of(model, estimator=DecisionTreeClassifier(max_depth=2)).fit(X, y)
    with pytest.raises(InputError, match="other rows or weights"):
        clone_of(model, n_estimators=8).fit(X, 1 - y)
    with pytest.raises(InputError, match="other columns or classes"):
        clone_of(model, n_estimators=8).fit(X[:, :2], y)
    before = model.decision_function(X)
    np.testing.assert_array_equal(clone_of(model).fit(X, y).decision_function(X), before)  # nothing left to do


def clone_of(model, **parameters):
    """The same fitted model with other parameters."""
    return pickle.loads(pickle.dumps(model)).set_params(**parameters)


# ------------------------------------------------------------------------------------------------ as scikit-learn's


@pytest.mark.parametrize("learner", [None, GaussianNB(), DecisionTreeClassifier(max_depth=1, prune="mdl")], ids=str)
def test_of_one_class_the_first_learner_is_the_last_and_certain(engine, learner):
    X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 0.0]])
    model = AdaBoostClassifier(learner, engine=engine).fit(X, ["a"] * 3)
    assert (model.status_, model.n_estimators_) == (Status.PERFECT_LEARNER, 1)
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((3, 1)))
    np.testing.assert_array_equal(model.decision_function(X), np.zeros((3, 1)))
    assert model.predict(X).tolist() == ["a"] * 3
    assert model.margins(X, ["a"] * 3).tolist() == [1.0] * 3
    assert certify(model, X, ["a"] * 3).holds


@pytest.mark.parametrize("learner", [None, DecisionTreeClassifier(max_depth=1, time_limit=1e6), GaussianNB()], ids=str)
def test_each_learner_has_a_seed_drawn_as_scikit_learn_draws_it(clouds, learner):
    X, y = clouds(2, noise=0.2)
    model = AdaBoostClassifier(learner, n_estimators=6, random_state=3).fit(X, y)
    theirs = ScikitBoost(ScikitTree(max_depth=1), n_estimators=6, random_state=3).fit(X, y)
    seeds = [estimator.get_params().get("random_state") for estimator in model.estimators_]
    if isinstance(learner, GaussianNB):
        assert set(seeds) == {None}
    else:
        assert seeds == [estimator.random_state for estimator in theirs.estimators_]
    assert model.estimator_.get_params().get("random_state") is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosting_stops_with_a_warning_when_a_large_rate_makes_weights_overflow(engine, clouds, n_classes):
    X, y = clouds(n_classes)
    with pytest.warns(UserWarning, match="Sample weights have reached infinite values, at iteration [0-9], ") as seen:
        model = AdaBoostClassifier(n_estimators=60, learning_rate=200.0, engine=engine).fit(X, y)
    assert seen[0].filename == __file__
    assert model.status_ is Status.NONFINITE
    assert model.n_estimators_ < 60
    assert certify(model, X, y).holds
    wrong = clone(model).set_params(learning_rate=100.0)
    vars(wrong).update({name: value for name, value in vars(model).items() if name.endswith("_")})
    assert not certify(wrong, X, y).holds


def test_a_vote_that_overflows_before_the_last_round_fails_the_certificate(clouds):
    X, y = clouds(2)
    with pytest.warns(UserWarning, match="infinite"):
        model = AdaBoostClassifier(n_estimators=60, learning_rate=6.0).fit(X, y)
    assert model.n_estimators_ > 2
    model.rounds_.vote[1] = model.rounds_.vote[-1]
    model.model_.vote[1] = model.model_.vote[-1]
    assert not certify(model, X, y).holds


@pytest.mark.parametrize("size", [1e-263, 1e263])
@pytest.mark.parametrize("learner", [None, DecisionTreeClassifier(max_depth=3, random_state=0), GaussianNB()], ids=str)
def test_only_the_ratios_of_weights_matter_however_small_or_large(engine, clouds, size, learner):
    X, y = clouds(3, noise=0.1)
    weight = np.random.default_rng(0).uniform(0.5, 1, len(y))
    usual = AdaBoostClassifier(learner, n_estimators=8, engine=engine).fit(X, y, sample_weight=weight)
    scaled = AdaBoostClassifier(learner, n_estimators=8, engine=engine).fit(
        X, y, sample_weight=(weight * size).tolist()
    )
    np.testing.assert_allclose(scaled.estimator_errors_, usual.estimator_errors_, rtol=1e-9)
    if learner is None:
        assert np.isfinite(scaled.feature_importances_).all()
    assert certify(scaled, X, y, weight * size).holds


class Recording(LogisticRegression):
    """Keeps the type of what it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = type(X)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok"])
def test_learners_get_sparse_rows_as_csr_or_csc(clouds, kind):
    X, y = clouds(2)
    for container in (sp.csr_array(X), sp.csr_matrix(X)):
        given = container.asformat(kind)
        weight = np.r_[0.0, np.ones(len(y) - 1)]  # the first row is left out
        for sample_weight in (None, weight):
            model = AdaBoostClassifier(Recording(), n_estimators=3).fit(given, y, sample_weight)
            wanted = type(given if kind in ("csr", "csc") else container)
            assert {estimator.seen_ for estimator in model.estimators_} == {wanted}
            np.testing.assert_array_equal(model.predict(given), model.predict(X))


def test_negative_weights_are_refused_in_scikit_learns_words(clouds):
    X, y = clouds(2)
    with pytest.raises(
        InputError, match=r"sample_weight\[4\] is -1; Negative values in data passed to `sample_weight`"
    ):
        AdaBoostClassifier().fit(X, y, sample_weight=np.where(np.arange(len(y)) == 4, -1.0, 1.0))
