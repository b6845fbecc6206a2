"""Other libraries, asked the same."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Perceptron as SklearnPerceptron
from sklearn.neighbors import NearestCentroid

from margrove import BasicLinearClassifier, LeastSquaresClassifier, Perceptron


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
@pytest.mark.parametrize("passes", [1, 5])
@pytest.mark.parametrize("classes", [2, 4])
def test_perceptron_makes_scikit_learns_mistakes(passes, classes, rng):
    """Rows in order, the same passes: the same corrections."""
    X, y = rng.normal(size=(300, 7)), rng.integers(0, classes, size=300)
    peer = SklearnPerceptron(shuffle=False, tol=None, max_iter=passes).fit(X, y)
    ours = Perceptron(shuffle=False, max_iter=passes).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-9)


def test_two_means_decide_as_the_nearest_centroid(rng):
    X = rng.normal(size=(400, 5))
    y = (X[:, 0] + 0.5 * rng.normal(size=400) > 0).astype(int)
    np.testing.assert_array_equal(BasicLinearClassifier().fit(X, y).predict(X), NearestCentroid().fit(X, y).predict(X))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_least_squares_is_linear_regression_on_signs(fit_intercept, rng):
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 2, size=200)
    weight = rng.random(200)
    peer = LinearRegression(fit_intercept=fit_intercept).fit(X, 2 * y - 1, sample_weight=weight)
    ours = LeastSquaresClassifier(fit_intercept=fit_intercept).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_[0], peer.coef_, atol=1e-9)
    np.testing.assert_allclose(ours.intercept_[0], peer.intercept_, atol=1e-9)


@pytest.mark.parametrize("name", ["iris", "breast_cancer", "digits", "pima"])
@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
def test_real_sets_are_learnt_as_well(name, real_arrays):
    X, y = real_arrays(name)
    X = X[:2000].astype(np.float64)
    y = y[:2000]
    peer = SklearnPerceptron(shuffle=False, tol=None, max_iter=10).fit(X, y)
    ours = Perceptron(shuffle=False, max_iter=10).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), rtol=1e-6, atol=1e-6)
