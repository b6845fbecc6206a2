"""Properties on random, ugly data: duplicates, constant columns, one row per class, n < d, ties, huge and tiny
scales."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from margrove import (
    BasicLinearClassifier,
    KernelPerceptron,
    LeastSquaresClassifier,
    Perceptron,
    certify,
    margins,
)

pytestmark = pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
LAW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tables(draw, classes=3):
    """Small tables of small integers, so that sums are exact and ties are many; sometimes scaled to ugly sizes."""
    n, d = draw(st.integers(2, 14)), draw(st.integers(1, 6))
    X = draw(arrays(np.float64, (n, d), elements=st.integers(-3, 3).map(float)))
    if draw(st.booleans()):
        X[:, draw(st.integers(0, d - 1))] = 1.0
    if draw(st.booleans()):
        X[-1] = X[0]
    y = draw(arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    y[0], y[1] = 0, 1
    scale = draw(st.sampled_from([1.0, 2.0**20, 2.0**-20]))
    return X * scale, y


@LAW
@given(tables(), st.sampled_from(["last", "averaged", "voted"]), st.booleans(), st.integers(0, 5))
def test_engines_agree_on_the_perceptron(table, variant, shuffle, seed):
    X, y = table
    both = [
        Perceptron(engine=engine, variant=variant, shuffle=shuffle, random_state=seed, max_iter=8).fit(X, y)
        for engine in ("native", "reference")
    ]
    np.testing.assert_array_equal(both[0].n_mistakes_, both[1].n_mistakes_)
    np.testing.assert_allclose(both[0].coef_, both[1].coef_, rtol=1e-12)
    assert both[0].status_ == both[1].status_


@LAW
@given(tables(), st.sampled_from(["linear", "poly", "intersection"]), st.integers(0, 5))
def test_engines_agree_on_the_dual(table, kernel, seed):
    """With integer kernel values every sum is exact, so even ties agree."""
    X, y = table
    X = np.abs(np.sign(X) * np.ceil(np.abs(X) % 4))
    both = [
        KernelPerceptron(engine=engine, kernel=kernel, gamma=1.0, degree=2, random_state=seed, max_iter=6).fit(X, y)
        for engine in ("native", "reference")
    ]
    np.testing.assert_array_equal(both[0].n_mistakes_, both[1].n_mistakes_)
    np.testing.assert_array_equal(both[0].dual_coef_, both[1].dual_coef_)


@LAW
@given(tables(), st.integers(0, 3))
def test_converged_means_certified_and_the_reverse(table, seed):
    X, y = table
    for learner in (
        Perceptron(random_state=seed, max_iter=40),
        KernelPerceptron(gamma=1.0, random_state=seed, max_iter=40),
    ):
        model = learner.fit(X, y)
        certificate = certify(model, X, y)
        if model.status_ == "converged":
            assert certificate.holds, str(certificate)
        assert certificate.claim("mistakes made").holds is not False


@LAW
@given(tables())
def test_closed_forms_are_always_certified(table):
    X, y = table
    for learner in (BasicLinearClassifier(), LeastSquaresClassifier()):
        certificate = certify(learner.fit(X, y), X, y)
        assert certificate.holds, str(certificate)


@LAW
@given(tables(), st.permutations(range(14)))
def test_order_of_rows_does_not_matter_to_closed_forms(table, order):
    X, y = table
    order = [i for i in order if i < len(y)]
    for learner in (BasicLinearClassifier, LeastSquaresClassifier):
        one, other = learner().fit(X, y), learner().fit(X[order], y[order])
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-6, atol=1e-6)


@LAW
@given(tables())
def test_weights_are_repeated_rows_to_closed_forms(table):
    X, y = table
    weight = np.arange(len(y)) % 3 + 1
    for learner in (BasicLinearClassifier, LeastSquaresClassifier):
        one = learner().fit(X, y, sample_weight=weight)
        other = learner().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-6, atol=1e-6)


@LAW
@given(tables(classes=2), st.integers(-8, 8), st.sampled_from([0.25, 1.0, 4.0]))
def test_scale_of_points_and_of_eta_changes_no_decision(table, power, eta):
    """Powers of two scale exactly; the constant coordinate is scaled along by leaving it out."""
    X, y = table
    plain = Perceptron(fit_intercept=False, random_state=0, max_iter=9).fit(X, y)
    scaled = Perceptron(fit_intercept=False, random_state=0, max_iter=9, eta0=eta).fit(X * 2.0**power, y)
    np.testing.assert_array_equal(plain.n_mistakes_, scaled.n_mistakes_)
    np.testing.assert_array_equal(plain.predict(X), scaled.predict(X * 2.0**power))


@LAW
@given(tables())
def test_margins_are_distances(table):
    """Moving a point along w/‖w‖ by its margin puts it on the boundary."""
    X, y = table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BasicLinearClassifier().fit(X, y)
    found = margins(model, X, y)
    norms = np.linalg.norm(model.coef_, axis=1)
    geometric = found.geometric.reshape(len(y), -1)
    for machine, norm in enumerate(norms):
        if norm == 0:
            continue
        positive = model.classes_[1] if len(model.classes_) == 2 else model.classes_[machine]
        sign = np.where(y == positive, 1, -1)
        foot = X - (sign * geometric[:, machine])[:, None] * model.coef_[machine] / norm
        at_foot = foot @ model.coef_[machine] + model.intercept_[machine]
        np.testing.assert_allclose(at_foot, 0, atol=1e-9 * (1 + np.abs(X).max()) * (1 + norm))
