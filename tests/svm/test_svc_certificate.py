"""The certificate of a support vector machine, on scikit-learn's SVC: it needs nothing but the model and the data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from margrove import certify


@pytest.fixture(params=[2, 4], ids=["two classes", "four classes"])
def table(request, rng):
    k = request.param
    codes = rng.integers(0, k, size=120)
    codes[:k] = np.arange(k)
    X = rng.normal(size=(k, 3))[codes] * 2 + rng.normal(size=(120, 3))
    return X, np.array(list("abcd"))[codes]


MODELS = [
    SVC(C=2.0, gamma=0.5, tol=1e-4),
    SVC(C=1.0, kernel="linear", tol=1e-4),
    SVC(C=0.1, kernel="poly", degree=2, coef0=1.0, tol=1e-4),
    SVC(C=10.0, class_weight="balanced", tol=1e-4),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_sound_model_is_certified(model, is_sparse, table):
    X, y = table
    X = sp.csr_matrix(X) if is_sparse else X
    certificate = certify(model.fit(X, y), X, y)
    assert certificate.holds, str(certificate)
    gap = np.atleast_1d(certificate["duality gap"])
    primal = np.atleast_1d(certificate["primal"])
    assert (gap >= 0).all()
    assert (gap <= 1e-3 * (1 + primal)).all()


def test_numbers_by_hand():
    # x = −1 and 1, C large: w = 1, b = 0, α = ½; primal ½, dual 1 − ½, width 2
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    certificate = certify(SVC(C=100.0, kernel="linear").fit(X, y), X, y)
    assert certificate["primal"] == pytest.approx(0.5)
    assert certificate["dual"] == pytest.approx(0.5)
    assert certificate["margin width"] == pytest.approx(2)
    assert (certificate["easy points"], certificate["marginal points"], certificate["hard points"]) == (0, 2, 0)


def test_sample_weights_belong_to_it(rng, table):
    X, y = table
    weight = rng.uniform(0.5, 2.0, size=len(y))
    model = SVC(C=1.0, tol=1e-4).fit(X, y, sample_weight=weight)
    assert certify(model, X, y, sample_weight=weight).holds
    assert not certify(model, X, y).holds


@pytest.mark.parametrize("attribute", ["_dual_coef_", "_intercept_"])
def test_a_disturbed_model_fails(attribute, table):
    """scikit-learn keeps a second copy under a private name; certify reads the public one."""
    X, y = table
    model = SVC(C=1.0, tol=1e-4).fit(X, y)
    public = attribute.removeprefix("_")
    values = np.array(getattr(model, public))
    values.flat[np.argmax(np.abs(values))] *= 1.05
    setattr(model, public, values)
    assert certify(model, X, y).holds is False


def test_a_sloppy_stop_is_told(table):
    X, y = table
    model = SVC(C=100.0, gamma=2.0, tol=1.0).fit(X, y)
    assert certify(model, X, y).holds
    model.tol = 1e-6
    certificate = certify(model, X, y)
    assert certificate.holds is False
    assert max(np.atleast_1d(certificate["violation"])) > 1e-6


def test_other_rows_are_told(table):
    X, y = table
    model = SVC().fit(X, y)
    assert certify(model, X[::-1], y[::-1]).holds is False


def test_precomputed(table):
    X, y = table
    gram = X @ X.T
    assert certify(SVC(kernel="precomputed", tol=1e-4).fit(gram, y), gram, y).holds
