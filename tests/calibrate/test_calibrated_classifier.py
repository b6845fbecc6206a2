"""Calibrated probabilities and tuned thresholds of any classifier."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_classification
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import balanced_accuracy_score, f1_score, fbeta_score, get_scorer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import (
    SVC,
    AdaBoostClassifier,
    BasicLinearClassifier,
    CalibratedClassifier,
    DecisionTreeClassifier,
    KernelPerceptron,
    LinearSVC,
    OneVsOneClassifier,
    Perceptron,
    Status,
    TableEncoder,
    certify,
    load_penguins,
)
from margrove.calibrate import classifier as module
from margrove.calibrate.probability import calibrated, fitted_calibration, scores_of
from margrove.calibrate.threshold import FORMULAS, Metric, tuned_factors
from margrove.errors import ConvergenceWarning, InputError, ParameterError
from margrove.explanation import explanation_of
from margrove.run.effort import on_interrupt
from margrove.run.progress import watched

FOLDS = "folds do not look at weights"
TUNED = "the tuned class is not always the most probable one"


def expected_failures(model):
    failures = {"check_sample_weight_equivalence_on_dense_data": FOLDS}
    if model.tuned_for is None:
        return failures | {"check_sample_weight_equivalence_on_sparse_data": FOLDS}
    return failures | {"check_classifiers_train": TUNED}


@parametrize_with_checks(
    [CalibratedClassifier(), CalibratedClassifier(GaussianNB(), tuned_for="f1_macro", cv=3)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def rare(n=1500, share=0.05, seed=0):
    """Two classes that overlap, of which "Yes" is rare."""
    X, y = make_classification(
        n, 6, n_informative=3, weights=[1 - share], class_sep=0.6, flip_y=0.02, random_state=seed
    )
    return X, np.where(y == 1, "Yes", "No")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


# ---- probabilities


def test_two_classes_are_platts_sigmoid_of_scores_on_rows_held_out():
    rng = np.random.default_rng(0)
    f = rng.normal(size=20_000)
    codes = (rng.random(len(f)) < expit(3 * f - 1)).astype(int)
    a, b = fitted_calibration(f[:, None], codes, 2, np.ones(len(f)))
    assert a == pytest.approx([3], abs=0.1)
    assert b == pytest.approx([-1], abs=0.1)


def test_many_classes_are_softmax_of_scores_with_slopes():
    rng = np.random.default_rng(0)
    f = rng.normal(size=(20_000, 3))
    slopes, intercepts = np.array([1.0, 2.0, 0.0]), np.array([0.0, 0.5, -0.5])
    p = calibrated(f, slopes, intercepts)
    codes = (rng.random((len(f), 1)) > p.cumsum(axis=1)).sum(axis=1)
    a, b = fitted_calibration(f, codes, 3, np.ones(len(f)))
    np.testing.assert_allclose(a, slopes, atol=0.1)
    np.testing.assert_allclose(b - b.mean(), intercepts - intercepts.mean(), atol=0.1)
    assert (a >= 0).all()


def test_scores_that_contradict_the_classes_carry_no_information():
    f = np.eye(3)[np.arange(300) % 3]
    a, b = fitted_calibration(-f, np.arange(300) % 3, 3, np.ones(300))
    np.testing.assert_allclose(calibrated(-f, a, b), 1 / 3, atol=1e-4)
    assert fitted_calibration(-f[:, :1], (f[:, 0] > 0).astype(int), 2, np.ones(300))[0] == 0


def test_a_weight_of_two_is_a_row_twice():
    rng = np.random.default_rng(1)
    f, codes, weight = rng.normal(size=(60, 3)), np.arange(60) % 3, rng.integers(1, 4, 60)
    weighted = fitted_calibration(f, codes, 3, weight.astype(float))
    repeated = fitted_calibration(f.repeat(weight, axis=0), codes.repeat(weight), 3, np.ones(weight.sum()))
    np.testing.assert_allclose(calibrated(f, *weighted), calibrated(f, *repeated), atol=1e-4)


def error_of(p, is_so, bins=10):
    """The expected calibration error."""
    place = np.minimum((p * bins).astype(int), bins - 1)
    said, true = np.bincount(place, p, bins), np.bincount(place, is_so, bins)
    return np.abs(said - true).sum() / len(p)


@pytest.mark.parametrize("base", [AdaBoostClassifier(n_estimators=40), DecisionTreeClassifier(max_depth=6)])
def test_probabilities_are_as_often_true_as_they_say(base):
    X, y = rare(8000, 0.1)
    model, own = CalibratedClassifier(base).fit(X[:4000], y[:4000]), clone(base).fit(X[:4000], y[:4000])
    is_yes = y[4000:] == "Yes"
    ours, theirs = (error_of(each.predict_proba(X[4000:])[:, 1], is_yes) for each in (model, own))
    assert ours < 0.03
    assert ours < theirs


@pytest.mark.parametrize(
    "base",
    [
        LinearSVC(),
        AdaBoostClassifier(n_estimators=10),
        DecisionTreeClassifier(max_depth=3),
        OneVsOneClassifier(BasicLinearClassifier()),
        SVC(),
        KNeighborsClassifier(),
        make_pipeline(TableEncoder(), Perceptron(variant="averaged", max_iter=5, random_state=0)),
    ],
)
@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
def test_the_most_probable_class_is_the_predicted_one(base, iris):
    tables = (iris, rare(300, 0.3), (load_penguins(), load_penguins().labels()))
    for X, y in tables[: 3 if base.__class__.__name__ == "Pipeline" else 2]:
        model = CalibratedClassifier(base).fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
        np.testing.assert_array_equal(model.predict(X), clone(base).fit(X, y).predict(X))


def test_calibration_uses_models_that_have_not_seen_the_row(iris):
    X, y = iris
    model = CalibratedClassifier(LinearSVC(), cv=3, random_state=1).fit(X, y)
    scores = np.empty((len(y), 3))
    for train, test in module.splits_for(y, np.arange(3), 1, 3):
        scores[test] = LinearSVC().fit(X[train], y[train]).decision_function(X[test])
    by_hand = CalibratedClassifier(LinearSVC()).calibrate(LinearSVC().fit(X, y), scores, y)
    np.testing.assert_array_equal(by_hand.slopes_, model.slopes_)
    np.testing.assert_array_equal(by_hand.predict_proba(X), model.predict_proba(X))


def test_scores_may_come_from_elsewhere_without_some_rows():
    X, y = rare(400, 0.3)
    fitted = LinearSVC().fit(X, y)
    f = fitted.decision_function(X)
    some = np.where(np.arange(400) % 2, f, np.nan)
    half = CalibratedClassifier().calibrate(fitted, some, y)
    same = CalibratedClassifier().calibrate(fitted, f[1::2], y[1::2])
    np.testing.assert_array_equal(half.slopes_, same.slopes_)
    two = CalibratedClassifier().calibrate(fitted, np.column_stack([-f, f]), y)
    np.testing.assert_array_equal(two.slopes_, CalibratedClassifier().calibrate(fitted, f, y).slopes_)
    with pytest.raises(InputError, match="scores of 400 rows and 399 labels"):
        CalibratedClassifier().calibrate(fitted, f, y[1:])
    with pytest.raises(InputError, match="a column for each of 3 classes"):
        CalibratedClassifier().calibrate(LinearSVC().fit(*load_iris(return_X_y=True)), f, y)


@pytest.mark.parametrize("make", [lambda X: X, pd.DataFrame, lambda X: X.tolist()])
def test_rows_of_any_form(make, iris):
    X, y = iris
    model = CalibratedClassifier(LinearSVC()).fit(make(X), y)
    np.testing.assert_array_equal(model.predict_proba(make(X)), CalibratedClassifier().fit(X, y).predict_proba(X))
    assert model.n_features_in_ == 4


def test_gram_matrices_and_tables():
    X, y = rare(200, 0.3)
    gram = CalibratedClassifier(KernelPerceptron(kernel="precomputed", random_state=0))
    with pytest.warns(ConvergenceWarning):
        assert gram.fit(X @ X.T, y).predict_proba(X @ X.T).shape == (200, 2)
    table = load_penguins()
    model = CalibratedClassifier(AdaBoostClassifier(n_estimators=5)).fit(table, table.labels())
    assert certify(model, table, table.labels()).holds
    assert list(model.feature_names_in_) == list(table.names)


def test_rows_without_weight_do_not_count():
    X, y = rare(400, 0.3)
    weight = np.r_[np.ones(300), np.zeros(100)]
    weighted = CalibratedClassifier(LinearSVC()).fit(X, y, weight)
    fewer = CalibratedClassifier(LinearSVC()).fit(X[:300], y[:300])
    np.testing.assert_allclose(weighted.predict_proba(X), fewer.predict_proba(X), atol=1e-6)


# ---- thresholds


def test_a_threshold_solved_by_hand():
    second = np.array([0.1, 0.2, 0.4, 0.7]).repeat(100)
    truth = np.array([0, 1, 0, 1]).repeat(100)
    p = np.column_stack([1 - second, second])
    factors, scores = tuned_factors(Metric("f1", np.array(["No", "Yes"])), truth, np.ones(400), p)
    # all Yes: 2/3; above 0.1: 4/5; above 0.2: 1/2; above 0.4: 2/3; none: 0
    np.testing.assert_allclose(scores, [2 / 3, 4 / 5])
    odds = np.sqrt(0.1 / 0.9 * 0.2 / 0.8)  # the middle in log-odds
    assert factors[0] / factors.sum() == pytest.approx(odds / (1 + odds))
    assert factors.mean() == pytest.approx(1)


def test_a_plain_threshold_stays_where_nothing_is_gained():
    second = np.array([0.2, 0.8]).repeat(50)
    truth = (second > 0.5).astype(int)
    p = np.column_stack([1 - second, second])
    factors, scores = tuned_factors(Metric("accuracy", np.array([0, 1])), truth, np.ones(100), p)
    assert factors.tolist() == [1, 1]
    assert scores.tolist() == [1, 1]
    truth[:2], second[:3] = 1, 0.45  # two rows against one are noise
    p = np.column_stack([1 - second, second])
    factors, scores = tuned_factors(Metric("accuracy", np.array([0, 1])), truth, np.ones(100), p)
    assert factors.tolist() == [1, 1]
    assert scores.tolist() == [0.98, 0.98]


def test_no_threshold_is_better_than_the_one_that_is_found():
    rng = np.random.default_rng(3)
    second = rng.integers(1, 40, 300) / 40
    truth = (rng.random(300) < second**2).astype(int)
    p = np.column_stack([1 - second, second])
    for name in ("balanced_accuracy", "f1", "matthews_corrcoef"):
        factors, (_, best) = tuned_factors(Metric(name, np.array([0, 1])), truth, np.ones(300), p)
        scorer = get_scorer(name)._score_func
        every = [scorer(truth, (second > t).astype(int)) for t in np.arange(0, 1, 1 / 80)]
        assert best == pytest.approx(max(every))
        assert scorer(truth, (p * factors).argmax(axis=1)) == pytest.approx(best)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_usual_metrics_are_scikit_learns(name):
    rng = np.random.default_rng(0)
    tables = rng.integers(0, 9, (20, 2, 2) if name == "f1" else (20, 4, 4)).astype(float)
    tables[:, 0, 0] += 1
    tables[0, :, 1] = 0  # a class that is never predicted
    metric = Metric(name, np.arange(tables.shape[1]))
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        ours = metric(tables)
        patch.setattr(Metric, "usual", None)
        keep = [t for t in range(20) if (tables[t].sum(axis=1) > 0).all()]
        np.testing.assert_allclose(ours[keep], metric(tables[keep]))


@pytest.mark.parametrize("tuned_for", ["balanced_accuracy", "f1", balanced_accuracy_score])
def test_rare_classes_are_predicted(tuned_for):
    X, y = rare(2000)
    base = AdaBoostClassifier(n_estimators=30)
    plain = CalibratedClassifier(base).fit(X[:1000], y[:1000])
    tuned = CalibratedClassifier(base, tuned_for=tuned_for).fit(X[:1000], y[:1000])
    assert 0 < tuned.threshold_ < 0.5
    assert (tuned.predict(X[1000:]) == "Yes").sum() > (plain.predict(X[1000:]) == "Yes").sum()
    judge = balanced_accuracy_score if tuned_for != "f1" else lambda a, b: f1_score(a, b, pos_label="Yes")
    assert judge(y[1000:], tuned.predict(X[1000:])) > judge(y[1000:], plain.predict(X[1000:]))
    assert tuned.held_out_score_[1] > tuned.held_out_score_[0]
    is_yes = tuned.predict_proba(X)[:, 1] > tuned.threshold_
    np.testing.assert_array_equal(np.where(is_yes, "Yes", "No"), tuned.predict(X))
    np.testing.assert_array_equal(tuned.slopes_, plain.slopes_)


def test_factors_of_many_classes_help_the_rare_ones():
    X, y = make_classification(
        3000,
        6,
        n_informative=4,
        n_classes=3,
        n_clusters_per_class=1,
        weights=[0.8, 0.15],
        random_state=1,
        class_sep=0.6,
    )
    tuned = CalibratedClassifier(LinearSVC(), tuned_for="balanced_accuracy").fit(X[:1500], y[:1500])
    plain = CalibratedClassifier(LinearSVC()).fit(X[:1500], y[:1500])
    test = X[1500:], y[1500:]
    assert balanced_accuracy_score(test[1], tuned.predict(test[0])) > 0.05 + balanced_accuracy_score(
        test[1], plain.predict(test[0])
    )
    np.testing.assert_array_equal(tuned.predict(X), (tuned.predict_proba(X) * tuned.class_factors_).argmax(axis=1))
    assert not hasattr(tuned, "threshold_")


def test_a_function_of_labels_may_be_tuned_for():
    X, y = rare(800)

    def cost(true, predicted):
        return -float(
            10 * ((true == "Yes") & (predicted == "No")).mean() - ((true == "No") & (predicted == "Yes")).mean()
        )

    def beta(true, predicted, sample_weight=None):
        return fbeta_score(true, predicted, beta=2, pos_label="Yes", sample_weight=sample_weight, zero_division=0)

    assert CalibratedClassifier(tuned_for=cost).fit(X, y).threshold_ < 0.5
    weight = np.random.default_rng(0).random(800) + 0.5
    assert CalibratedClassifier(tuned_for=beta).fit(X, y, weight).threshold_ < 0.5
    with pytest.raises(ParameterError, match="a function without sample_weight"):
        CalibratedClassifier(tuned_for=cost).fit(X, y, weight)


def test_another_fit_forgets_the_factors():
    X, y = rare(400)
    model = CalibratedClassifier(tuned_for="f1").fit(X, y)
    model.set_params(tuned_for=None).fit(X, y)
    assert not hasattr(model, "class_factors_")
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))


# ---- errors, limits


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (CalibratedClassifier(tuned_for="roc"), "tuned_for is 'roc'; it must be one of"),
        (CalibratedClassifier(tuned_for="roc_auc"), "of these classes: it needs more than predictions"),
        (CalibratedClassifier(tuned_for="f1"), "multiclass"),
        (CalibratedClassifier(tuned_for=lambda true, predicted: None), "cannot judge predictions"),
        (CalibratedClassifier(cv=1), "cv is 1; it must be a whole number ≥ 2"),
        (CalibratedClassifier(LinearSVC), "must be a classifier"),
        (CalibratedClassifier(LinearRegression()), "must be a classifier"),
        (CalibratedClassifier(KMeans()), "must be a classifier"),
        (CalibratedClassifier(SVC(decision_function_shape="ovo")), "scores pairs of classes"),
    ],
)
def test_what_cannot_be_calibrated_is_refused_before_any_fit(model, words, iris, monkeypatch):
    monkeypatch.setattr(LinearSVC, "fit", lambda *given: pytest.fail("a fit"))
    with pytest.raises(ParameterError, match=words):
        model.fit(*iris)


def test_a_class_of_one_row_cannot_be_held_out(iris):
    X, y = iris
    with pytest.raises(InputError, match="CalibratedClassifier holds out rows, and class 0 has only one"):
        CalibratedClassifier().fit(X[49:], y[49:])
    model = CalibratedClassifier().fit(X[47:], y[47:])  # three rows: three parts
    assert model.status_ is Status.CONVERGED
    with pytest.raises(InputError, match="does not accept it"):
        CalibratedClassifier(KNeighborsClassifier()).fit(X, y, np.ones(150))


def test_ctrl_c_leaves_the_model_as_it_was(iris, monkeypatch):
    model = CalibratedClassifier(SVC()).fit(*iris)
    before = model.slopes_.copy()
    calls = []

    def interrupted(*given):
        calls.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "scores_of", interrupted)
    with on_interrupt("keep"), pytest.raises(KeyboardInterrupt):
        model.fit(*iris)
    assert len(calls) == 1
    np.testing.assert_array_equal(model.slopes_, before)


def test_a_fit_that_ends_early_is_reported(iris):
    with pytest.warns(ConvergenceWarning) as caught:
        model = CalibratedClassifier(LinearSVC(max_iter=1, tol=1e-12)).fit(*iris)
    assert model.status_ is Status.MAX_ITER
    assert len(caught) == 1


def test_progress_counts_the_fits(iris):
    seen = []
    with watched(seen.append):
        CalibratedClassifier(LinearSVC(), cv=3).fit(*iris)
    assert (seen[-1].done, seen[-1].total) == (4, 4)


# ---- certificate, explanation


def test_the_certificate_is_the_estimators_and_more(iris):
    X, y = iris
    model = CalibratedClassifier(LinearSVC()).fit(X, y)
    certificate, inner = certify(model, X, y), certify(model.estimator_, X, y)
    assert certificate.holds
    assert certificate.learner == "CalibratedClassifier of LinearSVC"
    assert certificate.claims[: len(inner.claims)] == inner.claims
    assert certificate["slopes of the calibration"] == tuple(model.slopes_)
    boosted = CalibratedClassifier(AdaBoostClassifier(n_estimators=3)).fit(X, y)
    assert boosted.estimator_.certificate_.holds is None
    assert boosted.certificate_.holds is None
    assert all(claim.holds is None for claim in boosted.certificate_.claims)
    model.estimator_.coef_[0, 0] += 1
    assert not certify(model, X, y).holds


@pytest.mark.parametrize(
    ("name", "array"), [("slopes_", [-1.0]), ("class_factors_", [0.0, 2.0]), ("slopes_", [1.0, 1.0])]
)
def test_a_forged_calibration_is_denied(name, array):
    X, y = rare(300, 0.3)
    model = CalibratedClassifier(tuned_for="f1").fit(X, y)
    with pytest.raises(AttributeError, match="read-only"):
        setattr(model, name, np.array(array))
    vars(model)[name] = np.array(array)
    assert not certify(model, X, y).holds


def test_a_classifier_of_scikit_learn_has_no_certificate(iris):
    model = CalibratedClassifier(LogisticRegression(max_iter=1000)).fit(*iris)
    assert model.engine_ == "sklearn"
    with pytest.raises(InputError, match="LogisticRegression has no certificate"):
        certify(model, *iris)
    assert not hasattr(model, "certificate_")


def test_the_explanation_is_the_estimators():
    X, y = rare(300, 0.3)
    tree = DecisionTreeClassifier(max_depth=2)
    model = CalibratedClassifier(tree, tuned_for="f1").fit(X, y)
    found, inner = explanation_of(model), explanation_of(model.estimator_)
    assert not found.has_rules  # they would leave the calibration out
    assert found.columns() == inner.columns()
    assert found.called == "a decision tree with calibrated probabilities"
    assert found.description().startswith(inner.description())
    assert f"Yes above a probability of {model.threshold_:.3g}" in found.description()
    np.testing.assert_array_equal(found.scores(X)[1], model.predict_proba(X))
    np.testing.assert_array_equal(found.lead(X, 1, 0), inner.lead(X, 1, 0))
    table = load_penguins()
    model = CalibratedClassifier(make_pipeline(TableEncoder(), LinearSVC())).fit(table, table.labels())
    lead = explanation_of(model).lead(table, 1, 0)
    np.testing.assert_array_equal(
        lead, explanation_of(model.estimator_).lead(model.estimator_[:-1].transform(table), 1, 0)
    )


@pytest.mark.parametrize("name", ["to_sql", "to_c", "to_python", "rules"])
def test_code_without_the_calibration_is_the_estimators(name):
    with pytest.raises(AttributeError, match=rf"model\.estimator_\.{name}"):
        getattr(CalibratedClassifier(DecisionTreeClassifier()).fit(*rare(100, 0.3)), name)


def test_scores_are_decisions_or_probabilities(iris):
    tree, line = DecisionTreeClassifier(max_depth=2).fit(*iris), LinearSVC().fit(*iris)
    np.testing.assert_array_equal(scores_of(tree, iris[0]), tree.predict_proba(iris[0]))
    np.testing.assert_array_equal(scores_of(line, iris[0]), line.decision_function(iris[0]))
