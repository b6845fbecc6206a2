"""The certificate of a support vector machine needs but the model and the data: it judges scikit-learn's too."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peers
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import margrove
from margrove import certify
from margrove.errors import ConvergenceWarning


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
    peers.NuSVC(nu=0.2, tol=1e-4),
    peers.NuSVC(nu=0.2, class_weight={"a": 5.0}, tol=1e-4),  # which it ignores
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_sound_model_is_certified(model, is_sparse, table):
    X, y = table
    X = sp.csr_matrix(X) if is_sparse else X
    certificate = certify(clone(model).fit(X, y), X, y)
    assert certificate.holds, str(certificate)
    gap = np.atleast_1d(certificate["duality gap"])
    primal = np.atleast_1d(certificate["primal"])
    assert (gap >= 0).all()
    assert (gap <= 1e-3 * (1 + np.abs(primal))).all()


def test_numbers_by_hand():
    # x = −1 and 1, C large: w = 1, b = 0, α = ½; primal ½, dual 1 − ½, width 2
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    certificate = certify(SVC(C=100.0, kernel="linear").fit(X, y), X, y)
    assert certificate["primal"] == pytest.approx(0.5)
    assert certificate["dual"] == pytest.approx(0.5)
    assert certificate["margin width"] == pytest.approx(2)
    assert (certificate["easy points"], certificate["marginal points"], certificate["hard points"]) == (0, 2, 0)
    assert certificate["leave-one-out bound"] == 1


def test_sample_weights_belong_to_it(rng, table):
    X, y = table
    weight = rng.uniform(0.5, 2.0, size=len(y))
    model = SVC(C=1.0, tol=1e-4).fit(X, y, sample_weight=weight)
    assert certify(model, X, y, sample_weight=weight).holds
    assert not certify(model, X, y).holds


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
def test_rows_of_weight_zero_are_ignored(name, rng):
    """scikit-learn numbers its support vectors among the rows that are left."""
    X, weight = rng.normal(size=(80, 3)), rng.integers(0, 3, size=80).astype(float)
    y = (X[:, 0] > 0.5 * rng.normal(size=80)).astype(int)
    for Model in (getattr(peers, name), getattr(margrove, name)):
        model = Model(tol=1e-4)
        if name == "NuSVC":
            model.set_params(nu=0.3)
        certificate = certify(model.fit(X, y, sample_weight=weight), X, y, sample_weight=weight)
        assert certificate.holds, str(certificate)


FORGERIES = {
    "a larger α": lambda model: _scale_largest(model, "dual_coef_", 1.05),
    "a smaller α": lambda model: _scale_largest(model, "dual_coef_", 0.9),
    "all α larger": lambda model: setattr(model, "dual_coef_", 1.1 * model.dual_coef_),
    "another b": lambda model: setattr(model, "intercept_", model.intercept_ + 0.1),
    "α of the other sign": lambda model: setattr(model, "dual_coef_", -np.asarray(model.dual_coef_)),
    "rows exchanged": lambda model: setattr(model, "support_", np.roll(model.support_, 1)),
    "α exchanged": lambda model: setattr(model, "dual_coef_", np.roll(model.dual_coef_, 7, axis=1)),
    "a support vector moved": lambda model: setattr(model, "support_vectors_", model.support_vectors_ + 1e-9),
    "a support vector dropped": lambda model: setattr(model, "support_", model.support_[1:]),
    "a row that is not there": lambda model: setattr(model, "support_", model.support_ + 100),
    "another γ": lambda model: setattr(model, "gamma_" if hasattr(model, "gamma_") else "_gamma", 0.3),
    "NaN": lambda model: setattr(model, "intercept_", model.intercept_ * np.nan),
}


def _scale_largest(model, attribute, factor):
    values = np.array(getattr(model, attribute))
    values.flat[np.argmax(np.abs(values))] *= factor
    setattr(model, attribute, values)


@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"])
@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
@pytest.mark.parametrize("library", [peers, margrove], ids=["scikit-learn", "margrove"])
def test_a_forged_model_is_refused(library, forge, name, rng):
    X = rng.normal(size=(60, 3))
    model = getattr(library, name)(gamma=0.5, tol=1e-4)
    if name == "NuSVC":
        model.set_params(nu=0.3)
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=60)
    y = (y > 0).astype(int) if is_classifier(model) else y
    assert certify(model.fit(X, y), X, y).holds
    forge(model)
    assert certify(model, X, y).holds is False


@pytest.mark.parametrize("attribute", ["dual_coef_", "intercept_"])
def test_a_disturbed_machine_among_many_fails(attribute, table):
    """scikit-learn keeps a second copy under a private name; certify reads the public one."""
    X, y = table
    model = SVC(C=1.0, tol=1e-4).fit(X, y)
    _scale_largest(model, attribute, 1.05)
    assert certify(model, X, y).holds is False


def test_a_row_of_weight_zero_must_have_no_dual_coefficient(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = margrove.SVC(tol=1e-4).fit(X, y)
    weight = np.ones(40)
    weight[model.support_[0]] = 0
    assert certify(model, X, y, sample_weight=weight).holds is False


def test_an_early_stop_fails_its_claim(table):
    X, y = table
    model = SVC(C=100.0, gamma=2.0, tol=1.0).fit(X, y)
    assert certify(model, X, y).holds
    model.tol = 1e-6
    certificate = certify(model, X, y)
    assert certificate.holds is False
    assert max(np.atleast_1d(certificate["violation"])) > 1e-6


def test_other_rows_fail_their_claim(table):
    X, y = table
    model = SVC().fit(X, y)
    assert certify(model, X[::-1], y[::-1]).holds is False
    assert "this is not the table the model was trained on" in str(certify(model, X[:50], y[:50]))


def test_precomputed_and_callable(table):
    X, y = table
    gram = X @ X.T
    assert certify(SVC(kernel="precomputed", tol=1e-4).fit(gram, y), gram, y).holds
    assert certify(SVC(kernel=lambda a, b: a @ b.T, tol=1e-4).fit(X, y), X, y).holds


def test_a_hard_margin_of_scikit_learns(rng):
    X = np.vstack([rng.normal(-3, 1, (20, 2)), rng.normal(3, 1, (20, 2))])
    y = np.repeat([0, 1], 20)
    certificate = certify(SVC(C=np.inf, kernel="linear", tol=1e-4).fit(X, y), X, y)
    assert certificate.holds, str(certificate)
    assert certificate["hard points"] == 0


def test_blocks_add_up_to_the_whole(rng, monkeypatch):
    from margrove.svm import kernels

    X, y = rng.normal(size=(90, 3)), np.arange(90) % 3
    model = SVC(tol=1e-4).fit(X, y)
    whole = certify(model, X, y)
    monkeypatch.setattr(kernels, "TILE", 7)
    pieces = certify(model, X, y)
    for one, other in zip(whole.claims, pieces.claims, strict=True):
        np.testing.assert_allclose(one.values, other.values, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize(
    "model", [SVC(), peers.NuSVC(nu=0.3), peers.SVR(), peers.NuSVR(), peers.OneClassSVM()], ids=repr
)
def test_the_gap_is_never_negative(model, rng):
    """Weak duality at feasible α far from the optimum: every stop of a LIBSVM that is ended early."""
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    y = (y > 0).astype(int) if is_classifier(model) else y
    gaps = []
    for steps in (1, 3, 10, 30, -1):
        certificate = certify(clone(model).set_params(max_iter=steps).fit(X, y), X, y)
        gaps.append(certificate["duality gap"])
    assert min(gaps) >= -1e-9
    assert gaps[-1] == min(gaps)


def test_the_verdict_on_a_model_without_status_names_none(rng):
    X = rng.normal(size=(20, 2))
    certificate = certify(SVC().fit(X, X[:, 0] > 0), X, X[:, 0] > 0)
    assert certificate.status == "unknown"
    assert certificate.verdict == "SVC: the certificate holds on 20 rows, recomputed in float64"


def test_a_heavy_row_does_not_hide_a_violation(rng):
    """Each α is judged by its own bound, not by the largest of all."""
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    probe = SVC(C=300.0, gamma=0.5).fit(X, y)
    marginal = probe.support_[(np.abs(probe.dual_coef_[0]) < 299) & (y[probe.support_] == 1)][0]
    stated, solved = np.ones(200), np.full(200, 300.0)
    stated[marginal] = solved[marginal] = 1e12
    forged = SVC(C=1.0, gamma=0.5).fit(X, y, sample_weight=solved)
    assert certify(forged, X, y, sample_weight=solved).holds
    for shift in (0.0, -4e-4):
        forged.intercept_ = forged.intercept_ + shift
        certificate = certify(forged, X, y, sample_weight=stated)
        assert certificate.claim("α outside [0, C]").holds is False


def test_support_vectors_that_are_gone_are_missed(table):
    X, y = table
    model = margrove.SVC().fit(X, y)
    model.support_vectors_ = np.empty((0, X.shape[1]))
    assert certify(model, X, y).holds is False


def test_an_indefinite_kernel_is_no_proof(table):
    X, y = table
    for model in (margrove.SVC(kernel="sigmoid", gamma=2.0), SVC(kernel="sigmoid", gamma=2.0)):
        certificate = certify(model.fit(X, y), X, y)
        gap = certificate.claim("duality gap")
        assert gap.holds is None
        assert "not positive semidefinite: this is a KKT point, not a proven" in gap.words
        assert "margin width" not in [claim.name for claim in certificate.claims]
    given = certify(margrove.SVC(kernel="precomputed").fit(X @ X.T, y), X @ X.T, y)
    assert given.claim("duality gap").words.endswith("if the kernel is positive semidefinite")


def test_without_a_solution_there_is_no_leave_one_out_bound(table):
    X, y = table
    with pytest.warns(ConvergenceWarning):
        model = margrove.SVC(max_iter=1).fit(X, y)
    assert (model.loo_bound_, model.xi_alpha_bound_) == (1.0, 1.0)
    claim = certify(model, X, y).claim("leave-one-out bound")
    assert claim.values == (1.0,)
    assert "not solved to tol" in claim.words


@pytest.mark.parametrize("bound", ["loo_bound_", "xi_alpha_bound_"])
@pytest.mark.parametrize("learner", [margrove.SVC(C=3.0), margrove.NuSVC(nu=0.2), margrove.SVC(kernel="linear", C=0.1)])
def test_a_changed_bound_is_found(learner, bound, table):
    X, y = table
    model = clone(learner).fit(X, y)
    assert certify(model, X, y).holds
    setattr(model, bound, getattr(model, bound) / 2)
    assert [claim.name for claim in certify(model, X, y).claims if claim.holds is False] == [bound]


def test_the_best_model_of_a_search_is_certified(table):
    X, y = table
    search = GridSearchCV(margrove.SVC(), {"C": [1.0, 10.0]}, cv=3).fit(X, y)
    assert certify(search, X, y).holds
    assert certify(margrove.SVCCV(Cs=[1.0], gammas=[0.5], cv=3).fit(X, y), X, y).holds
