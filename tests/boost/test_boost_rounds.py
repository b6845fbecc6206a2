"""The rounds: against scikit-learn, by their formulas, and how they end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.ensemble import AdaBoostClassifier as ScikitBoost
from sklearn.tree import DecisionTreeClassifier as ScikitTree

from margrove import AdaBoostClassifier, DecisionStump, DecisionTreeClassifier, Status
from margrove.boost.model import Rounds
from margrove.errors import InfeasibleError, ParameterError


@pytest.mark.parametrize("n_classes", [2, 3, 5, 8, 26])
@pytest.mark.parametrize(("depth", "rate"), [(1, 1.0), (3, 1.0), (2, 0.5)])
def test_errors_and_votes_of_each_round_are_scikit_learns(engine, clouds, n_classes, depth, rate):
    X, y = clouds(n_classes, n_rows=max(150, 12 * n_classes), noise=0.1)
    # In a node of few rows several columns part them equally well: then scikit-learn draws lots.
    shape = {"max_depth": depth, "min_samples_leaf": 1 if depth == 1 else 15}
    rounds = {"n_estimators": 15, "learning_rate": rate}
    ours = AdaBoostClassifier(DecisionTreeClassifier(**shape), **rounds, engine=engine).fit(X, y)
    theirs = ScikitBoost(ScikitTree(**shape), **rounds, random_state=0).fit(X, y)
    n = ours.n_estimators_
    assert n == len(theirs.estimators_)
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_[:n], atol=1e-10)
    np.testing.assert_allclose(ours.estimator_weights_, theirs.estimator_weights_[:n], atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_decisions_and_probabilities_of_each_stage_are_scikit_learns(engine, clouds, n_classes):
    X, y = clouds(n_classes, noise=0.1)
    new = clouds(n_classes, seed=1)[0]
    ours = AdaBoostClassifier(n_estimators=10, engine=engine).fit(X, y)
    theirs = ScikitBoost(n_estimators=10, random_state=0).fit(X, y)
    for name in ("decision_function", "predict_proba", "predict_log_proba", "predict"):
        np.testing.assert_allclose(getattr(ours, name)(new), getattr(theirs, name)(new), atol=1e-12, err_msg=name)
    for name in ("staged_decision_function", "staged_predict_proba", "staged_predict"):
        stages = zip(getattr(ours, name)(new), getattr(theirs, name)(new), strict=True)
        for mine, other in stages:
            np.testing.assert_allclose(mine, other, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(list(ours.staged_score(X, y)), list(theirs.staged_score(X, y)))
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("rate", [1.0, 0.3, 1.7])
def test_mean_exponential_loss_is_the_product_of_the_normalisers(engine, clouds, n_classes, rate):
    X, y = clouds(n_classes, noise=0.2)
    model = AdaBoostClassifier(n_estimators=12, learning_rate=rate, engine=engine).fit(X, y)
    coded = _coded(y, n_classes)
    f = np.zeros_like(coded)
    for learner, alpha, loss in zip(model.estimators_, model.alphas_, model.rounds_.loss, strict=True):
        f += alpha * _coded(learner.predict(X), n_classes)
        np.testing.assert_allclose(loss, np.mean(np.exp(-(coded * f).sum(axis=1) / n_classes)), rtol=1e-9)


def _coded(label, n_classes):
    """1 at the class, −1/(K − 1) elsewhere."""
    coded = np.full((len(label), n_classes), -1 / (n_classes - 1))
    coded[np.arange(len(label)), label] = 1
    return coded


def test_training_error_of_two_classes_is_at_most_the_loss_in_every_round(engine, clouds):
    for seed, noise in enumerate([0.0, 0.1, 0.4]):
        X, y = clouds(2, noise=noise, seed=seed)
        rounds = AdaBoostClassifier(n_estimators=25, engine=engine).fit(X, y).rounds_
        assert (rounds.training_error <= rounds.loss + 1e-12).all()
        np.testing.assert_allclose(rounds.loss, rounds.bound, rtol=1e-12)
        assert (np.diff(rounds.loss) < 0).all()


@pytest.mark.parametrize("n_classes", [2, 5])
def test_each_vote_minimises_the_loss_of_its_round(engine, clouds, n_classes):
    X, y = clouds(n_classes)
    rounds = AdaBoostClassifier(n_estimators=8, engine=engine).fit(X, y).rounds_
    for error, a in zip(rounds.error, rounds.vote, strict=True):

        def z(v, error=error):
            return (1 - error) * np.exp(-(n_classes - 1) / n_classes * v) + error * np.exp(v / n_classes)

        assert minimize_scalar(z).x == pytest.approx(a, abs=1e-5)


def test_label_noise_keeps_the_bound_larger(engine, clouds):
    clean = AdaBoostClassifier(n_estimators=30, engine=engine).fit(*clouds(2)).rounds_.loss[-1]
    noisy = AdaBoostClassifier(n_estimators=30, engine=engine).fit(*clouds(2, noise=0.4)).rounds_.loss[-1]
    assert noisy > 1.1 * clean


def test_a_perfect_learner_ends_the_rounds_and_votes_one(engine):
    X, y = np.arange(8.0)[:, None], np.arange(8) // 4
    model = AdaBoostClassifier(engine=engine).fit(X, y)
    assert model.status_ is Status.PERFECT_LEARNER
    assert model.estimator_weights_.tolist() == [1.0]
    assert model.estimator_errors_.tolist() == [0.0]
    assert model.score(X, y) == 1


def test_a_first_learner_no_better_than_chance_is_refused_by_name(engine):
    X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])  # XOR: no stump helps
    with pytest.raises(InfeasibleError, match="first DecisionStump is no better than chance"):
        AdaBoostClassifier(engine=engine).fit(X, y)
    deeper = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), engine=engine).fit(X, y)
    assert deeper.status_ is Status.PERFECT_LEARNER


def test_a_later_learner_no_better_than_chance_is_left_out(engine):
    # One column with two values, not pure: after one stump nothing is left that a stump could see.
    X, y = np.array([[0.0]] * 3 + [[1.0]] * 3), np.array([0, 0, 1, 1, 1, 0])
    model = AdaBoostClassifier(engine=engine).fit(X, y)
    assert model.status_ is Status.NO_BETTER_THAN_CHANCE
    assert model.n_estimators_ == model.rounds_.n_rounds == len(model.estimators_) == 1
    assert model.estimator_errors_[0] == pytest.approx(1 / 3)


def test_rounds_end_when_the_bound_is_as_low_as_requested(engine, clouds):
    X, y = clouds(2)
    model = AdaBoostClassifier(n_estimators=100, stop_at_bound=0.8, engine=engine).fit(X, y)
    assert model.status_ is Status.BOUND_REACHED
    assert model.rounds_.loss[-1] <= 0.8 < model.rounds_.loss[-2]
    with pytest.raises(ParameterError, match="two classes only"):
        AdaBoostClassifier(stop_at_bound=0.5, engine=engine).fit(*clouds(3))


def test_early_stopping_keeps_the_rounds_up_to_the_best_on_rows_held_out(engine, clouds):
    X, y = clouds(2, noise=0.3)
    model = AdaBoostClassifier(
        n_estimators=200, early_stopping=True, validation_fraction=0.3, n_iter_no_change=4, engine=engine
    ).fit(X, y)
    errors = model.rounds_.validation_error
    assert model.status_ is Status.EARLY_STOPPED
    assert model.n_estimators_ == np.argmin(errors) + 1 == len(model.estimators_) == len(model.alphas_)
    assert model.rounds_.n_rounds == model.n_estimators_ + 4
    held_out = model.validation_rows_
    assert np.bincount(y[held_out]).tolist() == [round(0.3 * count) for count in np.bincount(y)]
    assert 1 - model.score(X[held_out], y[held_out]) == pytest.approx(errors.min())
    rest = np.setdiff1d(np.arange(len(y)), held_out)
    alone = AdaBoostClassifier(n_estimators=model.n_estimators_, engine=engine).fit(X[rest], y[rest])
    np.testing.assert_allclose(alone.estimator_errors_, model.estimator_errors_, rtol=1e-12)


@pytest.mark.parametrize("early_stopping", [False, True])
def test_rounds_in_two_parts_equal_the_rounds_at_once(engine, clouds, early_stopping):
    X, y = clouds(3, noise=0.3)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    settings = {"early_stopping": early_stopping, "n_iter_no_change": 6, "engine": engine}
    parts = AdaBoostClassifier(n_estimators=7, warm_start=True, **settings).fit(X, y, weight)
    parts.set_params(n_estimators=20).fit(X, y, weight)
    whole = AdaBoostClassifier(n_estimators=20, **settings).fit(X, y, weight)
    assert parts.rounds_.n_rounds == whole.rounds_.n_rounds
    assert parts.status_ == whole.status_
    for name in ("error", "vote", "training_error"):
        np.testing.assert_array_equal(getattr(parts.rounds_, name), getattr(whole.rounds_, name))
    np.testing.assert_array_equal(parts.model_.grove.threshold, whole.model_.grove.threshold)
    np.testing.assert_array_equal(parts.decision_function(X), whole.decision_function(X))


def test_a_row_of_weight_two_is_two_rows_and_one_of_weight_zero_is_ignored(engine, clouds):
    X, y = clouds(3, noise=0.2)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = AdaBoostClassifier(n_estimators=10, engine=engine).fit(X, y, times)
    repeated = AdaBoostClassifier(n_estimators=10, engine=engine).fit(X.repeat(times, axis=0), y.repeat(times))
    np.testing.assert_allclose(weighted.estimator_errors_, repeated.estimator_errors_, rtol=1e-9)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-9)


def test_rows_that_are_always_right_keep_some_weight(engine):
    # One row far away is judged rightly by every stump: its weight is halved about 400 times, and never zero.
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 1)), [[100.0]]])
    y = np.concatenate([rng.integers(0, 2, 30), [1]])
    model = AdaBoostClassifier(DecisionStump(criterion="error"), n_estimators=400, engine=engine).fit(X, y)
    assert np.isfinite(model.rounds_.vote).all()
    assert np.isfinite(model.rounds_.loss).all()


def test_rounds_are_printed_as_a_table_of_the_first_and_the_last_ones():
    n = 25
    rounds = Rounds(np.full(n, 0.25), np.full(n, 1.0), np.arange(n) / 100, np.full(n, 0.125))
    lines = repr(rounds).splitlines()
    assert lines[0].split("  ")[-1].strip() == "error on held-out rows"
    assert [line.split()[0] for line in lines[1:]] == [*map(str, range(1, 11)), "…", *map(str, range(16, 26))]
    assert lines[-1].split() == ["25", "0.25", "0.5", f"{rounds.loss[-1]:.4g}", "0.24", "0.125"]
    assert len({len(line) for line in lines}) == 1


def test_a_loss_that_overflows_is_infinite_without_a_warning():
    rounds = Rounds(np.full(900, 0.3), np.full(900, 20.0), np.zeros(900))
    assert rounds.loss[-1] == np.inf
