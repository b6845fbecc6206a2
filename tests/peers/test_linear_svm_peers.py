"""LIBLINEAR, through scikit-learn, asked the same: the objectives agree to 1e-6 wherever it gets there."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.svm
from sklearn.preprocessing import MaxAbsScaler
from tests.linear_svm.objectives import objective

from margrove import LinearSVC, LinearSVR
from margrove.linear_svm.layout import costs_of_classes
from margrove.linear_svm.problem import crammer_singer_losses

ROWS = 400
SETS = [
    "iris",
    "wine",
    "sonar",
    "breast_cancer",
    "pima",
    "digits",
    "dna",
    "spambase",
    "a9a",
    "w8a",
    "ijcnn1",
    "reuters_moneyfx",
]
FINE = {"tol": 1e-10, "max_iter": 1_000_000}  # of LIBLINEAR, whose tol is of a gradient
TOL = 1e-7  # of ours, a relative gap


@pytest.fixture
def some_rows(real_arrays):
    """Rows of a real set that show all its classes, columns brought to [−1, 1]: LIBLINEAR needs that to get there."""

    def read(name):
        X, y = real_arrays(name)
        rows = np.random.default_rng(0).permutation(X.shape[0])[:ROWS]
        return MaxAbsScaler().fit_transform(X[rows].astype(np.float64)), np.asarray(y)[rows]

    return read


def values_of(model, X, y):
    """P of each machine, whoever fitted it."""
    codes = np.searchsorted(model.classes_, y)
    costs = costs_of_classes(model, model.classes_, codes, np.ones(len(codes)))
    machines = range(len(model.coef_))
    signs = [np.where(codes == (1 if len(machines) == 1 else k), 1.0, -1.0) for k in machines]
    b = np.broadcast_to(model.intercept_, len(machines))
    s = float(model.intercept_scaling) if model.fit_intercept else 0.0
    how = {"loss": model.loss, "penalty": model.penalty, "s": s}
    return np.array([objective(X, signs[k], costs[k], model.coef_[k], b[k], **how) for k in machines])


@pytest.mark.parametrize("form", ["l2 squared_hinge", "l2 hinge", "l1 squared_hinge"])
@pytest.mark.parametrize("name", SETS)
def test_objectives_are_liblinears(name, form, some_rows):
    X, y = some_rows(name)
    penalty, loss = form.split()
    C = 0.1 if loss == "hinge" else 1.0  # a dearer hinge takes LIBLINEAR a minute
    ours = LinearSVC(penalty, loss, C=C, tol=TOL, max_iter=100_000).fit(X, y)
    fine = {**FINE, "tol": 1e-7} if penalty == "l1" else FINE  # of which it never gets to the finest
    peer = sklearn.svm.LinearSVC(penalty, loss, C=C, random_state=0, **fine).fit(X, y)
    found, theirs = values_of(ours, X, y), values_of(peer, X, y)
    np.testing.assert_allclose(found, theirs, rtol=1e-6)
    np.testing.assert_allclose(found, ours.primal_, rtol=1e-9)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("name", ["iris", "wine", "pima", "spambase"])
def test_regressions_are_liblinears(name, loss, some_rows):
    X, y = some_rows(name)
    y = np.searchsorted(np.unique(y), y) + X[:, 0]
    how = {"loss": loss, "C": 0.1, "epsilon": 0.1}
    ours = LinearSVR(tol=TOL, max_iter=100_000, **how).fit(X, y)
    peer = sklearn.svm.LinearSVR(random_state=0, **FINE, **how).fit(X, y)
    found, theirs = (
        objective(X, y, np.full(len(y), 0.1), m.coef_, m.intercept_[0], loss=loss, penalty="l2", s=1.0, epsilon=0.1)
        for m in (ours, peer)
    )
    assert found == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_crammer_and_singers_objective_is_liblinears(name, some_rows):
    X, y = some_rows(name)
    codes = np.searchsorted(np.unique(y), y)
    ours = LinearSVC(multi_class="crammer_singer", C=0.1, tol=TOL, max_iter=100_000).fit(X, y)
    peer = sklearn.svm.LinearSVC(multi_class="crammer_singer", C=0.1, random_state=0, **FINE).fit(X, y)
    found, theirs = (
        0.5 * (m.coef_**2).sum()
        + 0.5 * (m.intercept_**2).sum()
        + 0.1 * crammer_singer_losses(m.decision_function(X), codes).sum()
        for m in (ours, peer)
    )
    assert found == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.2}])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_class_weights_match_liblinear(is_weighted, classes, class_weight, rng):
    """Of several machines each multiplies its own class only."""
    X, y = rng.normal(size=(120, 3)), np.minimum(rng.integers(0, 2 * classes, size=120), classes - 1)
    weight = rng.integers(1, 4, size=120).astype(float) if is_weighted else None
    how = {"class_weight": class_weight, "intercept_scaling": 2.0}
    ours = LinearSVC(tol=1e-12, **how).fit(X, y, weight)
    peer = sklearn.svm.LinearSVC(dual=False, **FINE, **how).fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-5)
    other = LinearSVC(tol=1e-12, intercept_scaling=2.0).fit(X, y, weight)
    assert np.abs(other.coef_ - ours.coef_).max() > 1e-3  # they do mean something


def test_parameters_and_attributes_are_scikit_learns(rng):
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    for ours, peer in ((LinearSVC, sklearn.svm.LinearSVC), (LinearSVR, sklearn.svm.LinearSVR)):
        mine, theirs = ours().get_params(), peer().get_params()
        assert {name: mine[name] for name in theirs} == theirs
        fitted, known = ours().fit(X, y), peer().fit(X, y)
        for name in (name for name in vars(known) if name.endswith("_")):
            one, other = getattr(fitted, name), getattr(known, name)
            assert np.shape(one) == np.shape(other), name
            assert type(one) is type(other), name
