"""ν-SVC: by hand, against LIBSVM, its feasibility, and its equivalence with C = 1/ρ."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import svm as peers
from sklearn.datasets import load_iris

from margrove import SVC, NuSVC, certify
from margrove.errors import ConvergenceWarning, InfeasibleError, ParameterError


def test_two_points_by_hand():
    # −1 and 1, ν = ½: α = ½ on each side, w = 1, ρ = 1; the model is scaled by 1/ρ.
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    model = NuSVC(nu=0.5, kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, [[-0.5, 0.5]])
    np.testing.assert_allclose(model.decision_function(X), [-1, 1])
    np.testing.assert_allclose(model.margin_, [2])
    assert model.certificate_["dual"] == pytest.approx(-0.5)
    assert model.kkt_.tolist() == ["marginal", "marginal"]


@pytest.mark.parametrize(
    "settings", [{"nu": 0.3}, {"nu": 0.55, "kernel": "linear"}, {"nu": 0.1, "gamma": 2.0}], ids=repr
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_drop_in_for_scikit_learn(settings, n_classes, is_weighted, rng):
    X, y = load_iris(return_X_y=True)
    rows = y >= 3 - n_classes
    X, y = X[rows], y[rows]
    weight = rng.uniform(0.7, 1.3, size=len(y)) if is_weighted else None
    ours = NuSVC(tol=1e-6, **settings).fit(X, y, sample_weight=weight)
    theirs = peers.NuSVC(tol=1e-6, **settings).fit(X, y, sample_weight=weight)
    for name in ("support_", "n_support_", "dual_coef_", "intercept_", "classes_", "support_vectors_"):
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype, name
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    theirs.tol = 1e-4  # LIBSVM keeps kernel values in float32, and stops a little off
    proofs = [certify(model, X, y, sample_weight=weight) for model in (ours, theirs)]
    assert all(proof.holds for proof in proofs), "\n".join(map(str, proofs))
    np.testing.assert_allclose(proofs[0]["dual"], proofs[1]["dual"], rtol=1e-6)


def test_nu_bounds_the_shares(two_classes):
    X, y = two_classes
    for nu in (0.2, 0.5, 0.7):
        model = NuSVC(nu=nu, gamma=0.5, tol=1e-6).fit(X, y)
        y_f = np.where(y == "yes", 1, -1) * model.decision_function(X)
        assert (y_f < 1 - 1e-4).mean() <= nu + 1e-9
        assert len(model.support_) / len(y) >= nu - 1e-9


def test_it_equals_an_svc_of_another_c(two_classes):
    X, y = two_classes
    model = NuSVC(nu=0.4, gamma=0.5, tol=1e-8).fit(X, y)
    same = SVC(C=float(np.abs(model.dual_coef_).max()), gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), atol=1e-4)
    np.testing.assert_allclose(model.margin_, same.margin_, rtol=1e-4)
    assert model.xi_alpha_bound_ == pytest.approx(same.xi_alpha_bound_, abs=2 / len(y))


def test_too_large_a_nu_names_the_largest():
    X, y = load_iris(return_X_y=True)
    X, y = X[:70], np.array(["setosa", "versicolor", "virginica"])[y[:70]]
    with pytest.raises(InfeasibleError, match=r"must be at most 0\.571429 for versicolor vs setosa") as info:
        NuSVC(nu=0.6).fit(X, y)
    assert info.value.evidence == {"machine": "versicolor vs setosa", "largest_nu": pytest.approx(4 / 7)}
    assert NuSVC(nu=info.value.evidence["largest_nu"]).fit(X, y).status_ == "converged"
    assert NuSVC(nu=0.9, class_weight="balanced").fit(X, y).status_ == "converged"


def test_class_weights_count(two_classes):
    X, y = two_classes
    by_class = NuSVC(nu=0.2, class_weight={"yes": 2.0}, tol=1e-8).fit(X, y)
    by_row = NuSVC(nu=0.2, tol=1e-8).fit(X, y, sample_weight=np.where(y == "yes", 2.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X), by_row.decision_function(X), atol=1e-6)
    assert certify(by_class, X, y).holds


def test_a_nu_without_a_margin_is_reported(rng):
    """Labels by chance: the parts of the hulls meet, ρ is 0 but for tol, and its sign is chance too."""
    X, y = rng.normal(size=(100, 2)), np.arange(100) % 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            NuSVC(nu=0.05, kernel="linear").fit(X, y)
            words = str(caught[-1].message)
        except InfeasibleError as error:
            words = str(error)
    assert "raise nu, or lower tol" in words or "no margin between the sides of 1 vs 0" in words


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"nu": 0}, "nu is 0; it must be a number > 0 and ≤ 1"),
        ({"nu": 1.5}, "nu is 1.5; it must be a number > 0 and ≤ 1"),
        ({"nu": "half"}, "nu is 'half'"),
        ({"nu": float("nan")}, "nu is nan"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ParameterError, match=words):
        NuSVC(**parameters).fit([[0.0], [1.0]], [0, 1])
