"""The one-class machine: by hand, against LIBSVM, and what ν bounds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peers

from margrove import OneClassSVM, certify
from margrove.errors import InputError, ParameterError


def test_two_points_by_hand():
    # 1 and 3, linear, ν = ½: Σα = 1 with α ≤ 1, and ½ (α₁ + 3 α₂)² is least at (1, 0): w = 1, and ρ halfway in [1, 3].
    X = np.array([[1.0], [3.0]])
    model = OneClassSVM(kernel="linear", nu=0.5).fit(X)
    assert model.support_.tolist() == [0]
    np.testing.assert_allclose(model.dual_coef_, [[1]])
    np.testing.assert_allclose([model.offset_[0], model.intercept_[0]], [2, -2])
    np.testing.assert_allclose(model.decision_function(X), [-1, 1])
    np.testing.assert_allclose(model.score_samples(X), [1, 3])
    assert model.predict(X).tolist() == [-1, 1]
    assert model.kkt_.tolist() == ["hard", "easy"]
    assert model.certificate_["primal"] == pytest.approx(-0.5)
    assert model.certificate_["dual"] == pytest.approx(-0.5)


@pytest.mark.parametrize(
    "settings", [{"nu": 0.1}, {"nu": 0.5, "gamma": 0.3}, {"nu": 0.3, "kernel": "linear"}], ids=repr
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_drop_in_for_scikit_learn(settings, is_weighted, rng):
    X = rng.normal(1, 1, size=(90, 3))
    weight = rng.uniform(0.3, 2, size=90) if is_weighted else None
    ours = OneClassSVM(tol=1e-6, **settings).fit(X, sample_weight=weight)
    theirs = peers.OneClassSVM(tol=1e-6, **settings).fit(X, sample_weight=weight)
    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "offset_", "support_vectors_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (mine.dtype, mine.ndim) == (other.dtype, other.ndim), name
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), atol=1e-4)
    np.testing.assert_allclose(ours.offset_, theirs.offset_, atol=1e-4)
    theirs.tol = 1e-4  # LIBSVM keeps kernel values in float32, and stops a little off
    proofs = [certify(model, X, sample_weight=weight) for model in (ours, theirs)]
    assert all(proof.holds for proof in proofs), "\n".join(map(str, proofs))
    assert proofs[0]["dual"] == pytest.approx(proofs[1]["dual"], rel=1e-6)


def test_nu_bounds_the_shares(rng):
    X = rng.normal(size=(100, 2))
    for nu in (0.05, 0.3, 0.8):
        model = OneClassSVM(nu=nu, tol=1e-6).fit(X)
        outside = model.decision_function(X) < -1e-4
        assert outside.mean() <= nu <= len(model.support_) / 100 + 1e-12
        assert (model.kkt_[outside] == "hard").all()
        assert model.dual_coef_.sum() == pytest.approx(100 * nu)
        np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))


def test_weights_are_repeated_rows(rng):
    X, weight = rng.normal(size=(30, 2)), rng.integers(0, 4, size=30)
    weighted = OneClassSVM(nu=0.3, gamma=0.5, tol=1e-8).fit(X, sample_weight=weight)
    repeated = OneClassSVM(nu=0.3, gamma=0.5, tol=1e-8).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-5)
    assert (weighted.kkt_[weight == 0] == "").all()
    assert certify(weighted, X, sample_weight=weight).holds
    assert not certify(weighted, X).holds


def test_sparse_equals_dense(rng):
    X = np.where(rng.random((60, 4)) < 0.5, 0, rng.random((60, 4)))
    dense, sparse = OneClassSVM(tol=1e-6).fit(X), OneClassSVM(tol=1e-6).fit(sp.csr_matrix(X))
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-4)
    assert certify(sparse, sp.csr_matrix(X)).holds


def test_a_forged_offset_is_refused(rng):
    X = rng.normal(size=(60, 2))
    for attribute, change in (("offset_", 0.1), ("intercept_", 0.1), ("dual_coef_", 0.01)):
        model = OneClassSVM().fit(X)
        setattr(model, attribute, getattr(model, attribute) + change)
        assert not certify(model, X).holds, attribute


def test_refusals(rng):
    with pytest.raises(ParameterError, match="nu is 0"):
        OneClassSVM(nu=0).fit([[0.0], [1.0]])
    with pytest.raises(InputError, match="all samples have zero or negative weights"):
        OneClassSVM().fit([[0.0], [1.0]], sample_weight=[0, 0])
