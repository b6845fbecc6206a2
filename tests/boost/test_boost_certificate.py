"""Certificates of AdaBoost: they hold for correct models and fail for forged ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import AdaBoostClassifier as ScikitBoost
from sklearn.naive_bayes import GaussianNB

from margrove import AdaBoostClassifier, DecisionTreeClassifier, certify
from margrove.boost.certificate import certify_boost_problem
from margrove.errors import InputError


@pytest.fixture
def fitted(engine, clouds):
    X, y = clouds(2, noise=0.1)
    learner = DecisionTreeClassifier(max_depth=2)
    return AdaBoostClassifier(learner, n_estimators=12, engine=engine).fit(X, y), X, y


def failed(certificate):
    return {claim.name for claim in certificate.claims if claim.holds is False}


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("settings", [{}, {"learning_rate": 0.4}, {"early_stopping": True}], ids=str)
def test_the_certificate_of_a_boosted_model_holds(engine, clouds, n_classes, settings):
    X, y = clouds(n_classes, noise=0.2)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    model = AdaBoostClassifier(n_estimators=12, engine=engine, **settings).fit(X, y, weight)
    certificate = certify(model, X, y, weight)
    assert certificate.holds, failed(certificate)
    assert certificate.source == "recomputed"
    names = {claim.name for claim in certificate.claims}
    has_rate_one = model.learning_rate == 1
    assert ("every vote minimises the loss" in names) == has_rate_one
    assert ("Z of each round is 2 √(ε (1 − ε))" in names) == (has_rate_one and n_classes == 2)
    assert (certificate.claim("training error").limits is not None) == (n_classes == 2)
    assert ("error on held-out rows" in names) == model.early_stopping


def test_the_certificate_of_a_fit_has_no_verdict(fitted):
    model, X, y = fitted
    assert model.certificate_.source == "solver"
    assert model.certificate_.holds is None
    assert model.certificate_["training error"] == pytest.approx(np.mean(model.predict(X) != y))


def test_the_certificate_of_a_perfect_learner_holds(engine):
    X, y = np.arange(8.0)[:, None], np.arange(8) // 4
    assert certify(AdaBoostClassifier(engine=engine).fit(X, y), X, y).holds


def forge_rounds(model, **changes):
    model.rounds_ = replace(model.rounds_, **changes)
    model.model_ = replace(model.model_, vote=model.rounds_.vote[: model.n_estimators_])


def test_forged_errors_are_found(fitted):
    model, X, y = fitted
    error = model.rounds_.error.copy()
    error[4] -= 1e-6
    forge_rounds(model, error=error)
    assert {"weighted error of each learner", "vote of each learner", "weights of every round"} <= failed(
        certify(model, X, y)
    )


def test_forged_votes_are_found(fitted):
    model, X, y = fitted
    vote = model.rounds_.vote.copy()
    vote[7] *= 1.01
    forge_rounds(model, vote=vote)
    found = failed(certify(model, X, y))
    assert {"vote of each learner", "every vote minimises the loss", "weighted error of each learner"} <= found


def test_an_error_and_a_vote_forged_together_are_found(fitted):
    model, X, y = fitted
    error, vote = model.rounds_.error.copy(), model.rounds_.vote.copy()
    error[3] = 0.1
    vote[3] = np.log(9)
    forge_rounds(model, error=error, vote=vote)
    found = failed(certify(model, X, y))
    assert {"weighted error of each learner", "weights of every round", "exponential loss is the product of Z"} <= found
    assert "vote of each learner" not in found


def test_votes_of_the_model_that_are_not_those_of_the_rounds_are_found(fitted):
    model, X, y = fitted
    model.model_ = replace(model.model_, vote=model.model_.vote * 2)
    assert failed(certify(model, X, y)) == {"stored copies that differ"}


def test_the_classes_of_nodes_are_read_only_and_forged_ones_are_found(fitted):
    model, X, y = fitted
    label = model.model_.grove.label
    with pytest.raises(ValueError, match="read-only"):
        label[:] = 1 - label
    vars(model.model_.grove)["label"] = 1 - label
    assert failed(certify(model, X, y)) == {"stored copies that differ"}


@pytest.mark.parametrize("where", ["n_classes_", "model_", "rounds_"])
def test_a_forged_number_of_classes_is_found(fitted, where):
    model, X, y = fitted
    setattr(model, where, 3 if where == "n_classes_" else replace(getattr(model, where), n_classes=3))
    assert failed(certify(model, X, y)) == {"stored copies that differ"}


def test_a_forged_training_error_is_found(fitted):
    model, X, y = fitted
    forge_rounds(model, training_error=model.rounds_.training_error * 0.5)
    assert failed(certify(model, X, y)) == {"training error after each round"}


@pytest.mark.parametrize("number", [np.nan, np.inf, -1.0, 2.0])
def test_impossible_errors_are_found(fitted, number):
    model, X, y = fitted
    forge_rounds(model, error=np.where(np.arange(12) == 5, number, model.rounds_.error))
    assert certify(model, X, y).holds is False


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e6, 1e6, 0.0])
def test_impossible_votes_are_found(fitted, number):
    model, X, y = fitted
    forge_rounds(model, vote=np.where(np.arange(12) == 5, number, model.rounds_.vote))
    assert certify(model, X, y).holds is False


def forge_grove(model, **changes):
    model.model_ = replace(model.model_, grove=replace(model.model_.grove, **changes))


def test_a_forged_threshold_is_found(fitted):
    model, X, y = fitted
    threshold = model.model_.grove.threshold.copy()
    threshold[model.model_.grove.start[5]] += 0.5
    forge_grove(model, threshold=threshold)
    found = failed(certify(model, X, y))
    assert "weighted error of each learner" in found or "rows in each node" in found
    assert "rows in each node" in found


def test_a_tree_of_another_round_is_found(fitted):
    """The second tree in place of the eighth: a tree grown by the rules, but on other weights."""
    model, X, y = fitted
    grove = model.model_.grove
    trees = [grove.tree(t) for t in range(grove.n_trees)]
    trees[7] = trees[1]
    forge_grove(model, **vars(type(grove).of(grove.columns, trees)))
    found = failed(certify(model, X, y))
    assert "weighted error of each learner" in found
    assert "weight and value of each node" in found


def test_a_split_that_is_not_the_best_is_found_though_its_numbers_are_true(engine, clouds):
    """Grown without the best column, and then said to have had it."""
    X, y = clouds(2, noise=0.1)
    model = AdaBoostClassifier(n_estimators=5, engine=engine).fit(X, y)
    best = int(model.estimators_[0].nodes_.feature[0])
    blind = AdaBoostClassifier(n_estimators=5, engine=engine).fit(np.where(np.arange(4) == best, 0.0, X), y)
    found = failed(certify(blind, X, y))
    assert "a better column" in found
    assert "weighted error of each learner" not in found


def test_arrays_that_do_not_form_trees_are_found(fitted):
    model, X, y = fitted
    forge_grove(model, child=model.model_.grove.child[::-1].copy())
    certificate = certify(model, X, y)
    assert certificate.holds is False
    assert any("do not form a tree" in claim.words for claim in certificate.claims)


def test_other_rows_are_found(fitted):
    model, X, y = fitted
    assert certify(model, X[:-1], y[:-1]).holds is False
    assert certify(model, X, 1 - y).holds is False


def test_a_sample_of_the_rounds_is_reported_as_one(fitted):
    model, X, y = fitted
    asked, *_ = model._problem_of(X, y)
    claims = certify_boost_problem(asked.problem, model.model_, model.rounds_, visit_limit=8_000)
    searched = next(claim for claim in claims if claim.name == "trees searched again")
    assert 2 <= searched.values[0] < 12
    assert searched.words.startswith("of 12")
    assert all(claim.holds is not False for claim in claims)


def test_rounds_of_other_learners_are_checked_as_well(clouds):
    X, y = clouds(3)
    model = AdaBoostClassifier(GaussianNB(), n_estimators=5).fit(X, y)
    assert certify(model, X, y).holds
    model.rounds_ = replace(model.rounds_, error=model.rounds_.error + 1e-6)
    assert "weighted error of each learner" in failed(certify(model, X, y))


def test_scikit_learns_class_of_that_name_is_refused(clouds):
    X, y = clouds(2)
    with pytest.raises(InputError, match="AdaBoostClassifier is an estimator of sklearn"):
        certify(ScikitBoost(n_estimators=2).fit(X, y), X, y)


def test_splits_and_leaves_are_counted_over_all_trees_that_were_searched(clouds):
    X, y = clouds(2)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=6).fit(X, y)
    certificate = certify(model, X, y)
    assert certificate["trees searched again"] == 6
    trees = [tree.nodes_ for tree in model.estimators_]
    n_leaves = sum(tree.n_leaves for tree in trees)
    n_splits = sum(tree.n_nodes for tree in trees) - n_leaves
    assert n_splits > 6
    assert certificate.claim("a better column").words.startswith(f"{n_splits} of {n_splits} splits searched again: ")
    assert certificate.claim("leaves that should be split").words.startswith(
        f"{n_leaves} of {n_leaves} leaves searched: "
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_large_rate_that_leaves_rows_without_weight_is_certified(n_classes, clouds):
    """Strong trees and a rate of 2: most rows fall to the least weight, and one or two have all the rest."""
    X, y = clouds(n_classes, n_rows=300, noise=0.1)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=6), n_estimators=25, learning_rate=2.0).fit(X, y)
    certificate = certify(model, X, y)
    assert [(claim.name, claim.values) for claim in certificate.claims if claim.holds is False] == []
    (loss,) = [claim for claim in certificate.claims if claim.name == "exponential loss is the product of Z"]
    assert "smallest weight allowed" in loss.words
