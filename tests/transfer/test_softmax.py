"""The softmax layer: its gap is a bound, its optimum is where an independent minimiser finds it."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import SoftmaxClassifier, certify, load, save
from margrove.errors import ConvergenceWarning, ParameterError


@parametrize_with_checks([SoftmaxClassifier()])
def test_it_is_a_classifier_of_scikit_learns(estimator, check):
    check(estimator)


def sample(rng, n_classes, n=60, d=4):
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, d)) + y[:, None] * 0.5, np.array(["a", "b", "c"])[y]


def objective(flat, X, y, C, s):
    labels = np.unique(y)
    W, b = (each for each in np.split(flat, [(len(labels)) * X.shape[1]]))
    z = X @ W.reshape(len(labels), -1).T + b
    own = z[np.arange(len(y)), np.searchsorted(labels, y)]
    return W @ W / 2 + C * s @ (np.log(np.exp(z).sum(axis=1)) - own)


@pytest.mark.parametrize("C", [0.01, 1.0, 50.0])
def test_the_optimum_is_that_of_an_independent_minimiser(rng, C):
    X, y = sample(rng, 3)
    s = rng.uniform(0.5, 2, len(y))
    model = SoftmaxClassifier(C=C).fit(X, y, s)
    start = np.append(model.coef_.ravel(), model.intercept_) * 0
    best = minimize(objective, start, (X, y, C, s), tol=1e-10).fun
    certificate = certify(model, X, y, s)
    assert certificate.holds
    assert certificate["dual objective"] <= best * (1 + 1e-7)
    assert best <= certificate["primal objective"] * (1 + 1e-7)
    assert certificate["primal objective"] == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gap_bounds_how_far_any_weights_are_from_the_optimum(rng, n_classes):
    X, y = sample(rng, n_classes)
    model = SoftmaxClassifier(C=2).fit(X, y)
    best = certify(model, X, y)["primal objective"]
    for size in (1e-3, 0.1, 3.0):
        model.coef_ += size * rng.normal(size=model.coef_.shape)
        model.intercept_ += size * rng.normal(size=model.intercept_.shape)
        found = certify(model, X, y)
        assert found["dual objective"] <= best * (1 + 1e-9)
        assert found["relative duality gap"] > 0
    assert not found.holds


def test_too_few_steps_are_told(rng):
    X, y = sample(rng, 3)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SoftmaxClassifier(C=1e3, max_iter=1).fit(X, y)
    assert model.certificate_.holds is False


def test_probabilities_add_up_and_their_largest_is_the_answer(rng):
    for n_classes in (2, 3):
        X, y = sample(rng, n_classes)
        model = SoftmaxClassifier().fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()


def test_a_wrong_parameter_is_told():
    for parameters in ({"C": 0}, {"tol": -1}, {"max_iter": 0}):
        with pytest.raises(ParameterError, match=next(iter(parameters))):
            SoftmaxClassifier(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_a_file_keeps_it(rng):
    X, y = sample(rng, 3)
    model, file = SoftmaxClassifier(class_weight="balanced").fit(X, y), io.BytesIO()
    save(model, file)
    file.seek(0)
    again = load(file)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert certify(again, X, y).holds
