"""ε-SVR and ν-SVR: by hand, against LIBSVM, and the tube."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peers

from margrove import SVR, NuSVR, certify
from margrove.errors import InputError, ParameterError


def test_the_flattest_line_by_hand():
    # 0 ↦ 0 and 1 ↦ 2 with ε = ½: the flattest line through both gates is x + ½.
    X, z = np.array([[0.0], [1.0]]), np.array([0.0, 2.0])
    model = SVR(kernel="linear", C=10.0, epsilon=0.5).fit(X, z)
    np.testing.assert_allclose(model.dual_coef_, [[-1, 1]])
    np.testing.assert_allclose([model.coef_[0, 0], model.intercept_[0]], [1, 0.5])
    assert model.certificate_["primal"] == pytest.approx(0.5)
    assert model.certificate_["dual"] == pytest.approx(0.5)
    assert model.kkt_.tolist() == ["marginal", "marginal"]


def test_the_tube_by_hand():
    # The same with ν = ½, C = 1: Σα = Σα* = ½, so w = ½, and the tube that passes both rows has ε = ¾, b = ¾.
    X, z = np.array([[0.0], [1.0]]), np.array([0.0, 2.0])
    model = NuSVR(kernel="linear", nu=0.5, C=1.0).fit(X, z)
    np.testing.assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    np.testing.assert_allclose([model.coef_[0, 0], model.intercept_[0], model.epsilon_], [0.5, 0.75, 0.75])
    assert model.certificate_.holds
    assert model.certificate_["primal"] == pytest.approx(0.5 * 0.25 + 0.75)


def test_a_constant_target_has_no_support_vectors():
    model = SVR(epsilon=1.0).fit([[0.0], [1.0]], [0.1, 0.2])
    assert model.support_.tolist() == []
    assert model.n_support_.tolist() == [0]
    np.testing.assert_allclose(model.predict([[5.0]]), [0.15])
    assert model.certificate_.holds


@pytest.mark.parametrize(
    ("Ours", "settings"),
    [
        (SVR, {"gamma": 0.5}),
        (SVR, {"gamma": 0.5, "epsilon": 0.0}),
        (SVR, {"kernel": "linear", "C": 0.3, "epsilon": 0.5}),
        (SVR, {"kernel": "poly", "degree": 2, "gamma": 0.3, "coef0": 1.0}),
        (NuSVR, {"gamma": 0.5}),
        (NuSVR, {"gamma": 0.5, "nu": 0.9, "C": 5.0}),
        (NuSVR, {"kernel": "linear", "nu": 0.2, "C": 0.3}),
    ],
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_drop_in_for_scikit_learn(Ours, settings, is_weighted, values, rng):
    X, z = values
    weight = rng.uniform(0.3, 2, size=len(z)) if is_weighted else None
    ours = Ours(tol=1e-6, **settings).fit(X, z, sample_weight=weight)
    theirs = getattr(peers, Ours.__name__)(tol=1e-6, **settings).fit(X, z, sample_weight=weight)
    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "support_vectors_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (mine.dtype, mine.ndim) == (other.dtype, other.ndim), name
    assert isinstance(ours.n_iter_, int)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    theirs.tol = 1e-4  # LIBSVM keeps kernel values in float32, and stops a little off
    proofs = [certify(model, X, z, sample_weight=weight) for model in (ours, theirs)]
    assert all(proof.holds for proof in proofs), "\n".join(map(str, proofs))
    np.testing.assert_allclose(proofs[0]["dual"], proofs[1]["dual"], rtol=1e-6)
    assert ours.certificate_["duality gap"] >= -1e-9


def test_nu_finds_the_tube_that_epsilon_gives(values):
    X, z = values
    found = NuSVR(gamma=0.5, nu=0.3, C=2.0, tol=1e-8).fit(X, z)
    given = SVR(gamma=0.5, epsilon=found.epsilon_, C=2.0, tol=1e-8).fit(X, z)
    np.testing.assert_allclose(found.predict(X), given.predict(X), atol=1e-4)
    outside = np.abs(z - found.predict(X)) > found.epsilon_ + 1e-6
    assert outside.mean() <= 0.3 <= len(found.support_) / len(z)
    np.testing.assert_array_equal(found.kkt_[outside], "hard")


def test_a_tube_of_no_width_is_certified(values):
    """With ν = 1 some rows have α and α* above 0, and the model keeps their difference only."""
    X, z = values
    for C in (0.1, 1.0, 100.0):
        for model in (NuSVR(nu=1.0, C=C), peers.NuSVR(nu=1.0, C=C)):
            certificate = certify(model.fit(X, z), X, z)
            assert certificate.holds, str(certificate)


def test_easy_rows_can_be_left_out(values):
    X, z = values
    model = SVR(gamma=0.5, epsilon=0.3, tol=1e-8).fit(X, z)
    kept = model.kkt_ != "easy"
    assert 0 < kept.sum() < len(z)
    again = SVR(gamma=0.5, epsilon=0.3, tol=1e-8).fit(X[kept], z[kept])
    np.testing.assert_allclose(again.predict(X), model.predict(X), atol=1e-5)


@pytest.mark.parametrize("Model", [SVR, NuSVR])
def test_sparse_equals_dense(Model, values):
    X, z = values
    X = np.where(np.abs(X) < 0.7, 0, X)
    dense, sparse = Model(tol=1e-6).fit(X, z), Model(tol=1e-6).fit(sp.csr_matrix(X), z)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X), atol=1e-4)
    assert certify(sparse, sp.csr_matrix(X), z).holds


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVR(C=0), "C is 0; it must be a number > 0"),
        (NuSVR(C=float("inf")), "C is inf; it must be a number > 0. Only SVC and SVR accept C=inf"),
        (SVR(epsilon=-0.1), "epsilon is -0.1; it must be a number ≥ 0"),
        (NuSVR(C=-1), "C is -1"),
        (NuSVR(nu=2), "nu is 2; it must be a number > 0 and ≤ 1"),
    ],
)
def test_bad_parameters(model, words):
    with pytest.raises(ParameterError, match=words):
        model.fit([[0.0], [1.0]], [0.0, 1.0])


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(InputError, match="all samples have zero or negative weights"):
        SVR().fit([[0.0], [1.0]], [0.0, 1.0], sample_weight=[0, 0])


@pytest.mark.parametrize("factor", [0.5, 1.5, np.nan])
def test_a_changed_tube_is_found(values, factor):
    X, z = values
    model = NuSVR(gamma=0.5, nu=0.4).fit(X, z)
    assert certify(model, X, z).holds
    model.epsilon_ *= factor
    assert certify(model, X, z).holds is False
