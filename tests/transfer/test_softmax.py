"""The softmax layer: its gap is a bound, its optimum is where an independent minimiser finds it."""

from __future__ import annotations

import io
import warnings
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import SoftmaxClassifier, certify, load, save
from margrove.errors import ConvergenceWarning, ParameterError
from margrove.status import Status


@parametrize_with_checks([SoftmaxClassifier()])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
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


def test_too_few_steps_give_a_warning(rng):
    X, y = sample(rng, 3)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SoftmaxClassifier(C=1e3, max_iter=1).fit(X, y)
    assert model.certificate_.holds is False


def test_probabilities_sum_to_one_and_the_largest_is_the_prediction(rng):
    for n_classes in (2, 3):
        X, y = sample(rng, n_classes)
        model = SoftmaxClassifier().fit(X, y)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1)
        assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()


def test_a_wrong_parameter_is_reported():
    for parameters in ({"C": 0}, {"C": 1e101}, {"tol": -1}, {"max_iter": 0}):
        with pytest.raises(ParameterError, match=next(iter(parameters))):
            SoftmaxClassifier(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_it_is_saved_and_loaded(rng):
    X, y = sample(rng, 3)
    model, file = SoftmaxClassifier(class_weight="balanced").fit(X, y), io.BytesIO()
    save(model, file)
    file.seek(0)
    again = load(file)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert certify(again, X, y).holds


def solved(A, b):
    """x with A x = b, A positive definite, in whatever numbers they are."""
    A, b = A.copy(), b.copy()
    for i in range(len(b)):
        for j in range(i + 1, len(b)):
            share = A[j, i] / A[i, i]
            A[j], b[j] = A[j] - share * A[i], b[j] - share * b[i]
    for i in reversed(range(len(b))):
        b[i] = (b[i] - A[i, i + 1 :] @ b[i + 1 :]) / A[i, i]
    return b


def optimum_in_high_precision(X, signs, C, s):
    """min ½‖w‖² + C Σ s log(1 + exp(−y(w·x + b))) by Newton's method with 50 digits."""
    with localcontext(prec=50):
        exact = np.vectorize(lambda number: Decimal(float(number)), otypes=[object])
        rows = exact(np.column_stack([X, np.ones(len(X))])) * signs[:, None]  # y(x, 1)
        price, is_weight = Decimal(C) * exact(s), exact(np.append(np.ones(X.shape[1]), 0))
        w = exact(np.zeros(rows.shape[1]))

        def value(w):
            return (is_weight * w * w).sum() / 2 + price @ np.array([(1 + (-m).exp()).ln() for m in rows @ w])

        for _ in range(100):
            p = np.array([1 / (1 + m.exp()) for m in rows @ w])
            slope = is_weight * w - (price * p) @ rows
            step = solved(np.diag(is_weight) + (rows * (price * p * (1 - p))[:, None]).T @ rows, -slope)
            drop, share = -(slope @ step), Decimal(1)
            if drop < Decimal("1e-30") * value(w):
                break
            while value(w + share * step) > value(w) - share * drop / 4:
                share /= 2
            w = w + share * step
        return float(value(w))


@pytest.mark.parametrize("shift", [1.0, 8.0])
@pytest.mark.parametrize("C", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_no_weights_beat_the_dual_objective(rng, shift, C, is_weighted):
    """With classes that overlap or not, prices and weights of any size: the bound is one, to the last digits."""
    signs = np.array([-1] * 6 + [1] * 6)
    X = rng.normal(size=(12, 2)) + shift * signs[:, None] / 2
    s = np.append([0] * 5 + [1e-9], np.ones(6)) if is_weighted else np.ones(12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SoftmaxClassifier(C=C).fit(X, signs, s)
    found, best = certify(model, X, signs, s), optimum_in_high_precision(X, signs, C, s)
    assert found["dual objective"] <= best * (1 + 1e-12)
    assert best <= found["primal objective"] * (1 + 1e-12)
    if found.holds:
        assert found["primal objective"] <= best * (1 + model.tol) / (1 - model.tol)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_weights_that_are_not_finite_fail_the_certificate(rng, value):
    X, y = sample(rng, 3)
    for name in ("coef_", "intercept_"):
        model = SoftmaxClassifier().fit(X, y)
        getattr(model, name)[:1] = value
        found = certify(model, X, y)
        assert found.holds is False
        assert found["relative duality gap"] > model.tol


def test_columns_on_different_scales_give_a_warning_that_does_not_suggest_more_steps(rng):
    X, y = sample(rng, 2, d=2)
    with pytest.warns(ConvergenceWarning, match="'stalled'.*scale of the columns") as caught:
        model = SoftmaxClassifier().fit(X * [1e-8, 1e8], y)
    assert len(caught) == 1  # none of the solver's own
    assert (model.status_, model.certificate_.holds) == (Status.STALLED, False)


def test_a_constant_column_does_no_harm(rng):
    X, y = sample(rng, 2)
    plain = SoftmaxClassifier().fit(X, y)
    beside = SoftmaxClassifier().fit(np.column_stack([X, np.full(len(X), 1e6)]), y)
    assert beside.certificate_.holds
    assert beside.certificate_["primal objective"] == pytest.approx(plain.certificate_["primal objective"], rel=1e-3)
