"""A fit that continues from the last one: the same solution, in fewer steps."""

from __future__ import annotations

import numpy as np
import pytest

from margrove import SVC, SVR, certify
from margrove.errors import ParameterError
from margrove.svm.problem import classification, started


def test_after_a_change_of_c_and_of_weights(two_classes):
    X, y = two_classes
    model = SVC(C=1.0, gamma=0.5, tol=1e-5, warm_start=True).fit(X, y)
    cold = SVC(C=1.2, gamma=0.5, tol=1e-5).fit(X, y)
    warm = model.set_params(C=1.2).fit(X, y)
    assert certify(warm, X, y).holds
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-4)
    assert warm.n_iter_.sum() < cold.n_iter_.sum()
    weight = np.where(y == "yes", 1.1, 1.0)
    warm.fit(X, y, weight)
    assert certify(warm, X, y, weight).holds


def test_after_rows_were_added_and_taken_away(four_classes):
    X, y = four_classes
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    model = SVC(gamma=0.5, tol=1e-5, warm_start=True).fit(X[:100], y[:100])
    warm = model.fit(X, y)
    cold = SVC(gamma=0.5, tol=1e-5).fit(X, y)
    assert certify(warm, X, y).holds
    assert warm.n_iter_.sum() < cold.n_iter_.sum()
    np.testing.assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-3)
    assert certify(warm.fit(X[:60], y[:60]), X[:60], y[:60]).holds


def test_a_new_class_starts_from_zero(four_classes):
    X, y = four_classes
    few = y != "oak"
    model = SVC(gamma=0.5, warm_start=True).fit(X[few], y[few])
    assert certify(model.fit(X, y), X, y).holds
    assert len(model.classes_) == 4


def test_other_rows_make_a_worse_start_and_the_same_solution(two_classes, rng):
    X, y = two_classes
    model = SVC(gamma=0.5, tol=1e-5, warm_start=True).fit(rng.normal(size=X.shape), y)
    assert certify(model.fit(X, y), X, y).holds


def test_a_hard_margin_and_another_code(four_classes):
    X, y = four_classes
    model = SVC(C=np.inf, gamma=20.0, warm_start=True).fit(X, y)
    assert certify(model.fit(X, y), X, y).holds
    model = SVC(warm_start=True).fit(X, y)
    with pytest.raises(ParameterError, match="multiclass was changed since the last fit"):
        model.set_params(multiclass="ovr").fit(X, y)
    with pytest.raises(ParameterError, match="warm_start is 1"):
        SVC(warm_start=1).fit(X, y)


def test_regression(values):
    X, z = values
    model = SVR(C=1.0, gamma=0.5, tol=1e-5, warm_start=True).fit(X[:70], z[:70])
    warm, cold = model.set_params(C=1.5).fit(X, z), SVR(C=1.5, gamma=0.5, tol=1e-5).fit(X, z)
    assert certify(warm, X, z).holds
    assert warm.n_iter_ < cold.n_iter_
    np.testing.assert_allclose(warm.predict(X), cold.predict(X), atol=1e-3)


def test_any_start_is_made_feasible(rng):
    y = rng.choice(np.array([-1, 1], np.int8), 50)
    dual = classification(y, rng.uniform(0.1, 2, 50))
    alpha = started(dual, rng.normal(size=50), rng.random(50) < 0.3).alpha
    assert (alpha >= 0).all()
    assert (alpha <= dual.upper).all()
    assert abs(float(y @ alpha)) <= 1e-12
    assert alpha.any()
    np.testing.assert_array_equal(started(dual, np.zeros(50), np.ones(50, bool)).alpha, 0)
