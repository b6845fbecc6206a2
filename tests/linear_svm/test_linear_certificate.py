"""The certificate of linear machines: true of what is right, false of what is not, whoever made it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.linear_svm.objectives import objective

import margrove.linear_svm.certificate as judge
from margrove import LinearSVC, LinearSVR, certify
from margrove.errors import InputError
from margrove.status import Status

GAP = "relative duality gap"


@pytest.fixture
def three(rng):
    codes = np.arange(60) % 3
    return np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])[codes] + rng.normal(size=(60, 3)), codes


CLASSIFIERS = [
    LinearSVC(),
    LinearSVC(loss="hinge"),
    LinearSVC(penalty="l1", C=0.1),
    LinearSVC(penalty="l1", loss="hinge", C=0.5),
    LinearSVC(regularize_intercept=False),
    LinearSVC(loss="hinge", regularize_intercept=False),
    LinearSVC(fit_intercept=False, class_weight="balanced"),
    LinearSVC(intercept_scaling=10.0, class_weight={0: 2.0}),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(multi_class="crammer_singer", engine="reference", tol=1e-2),
]
REGRESSORS = [
    LinearSVR(epsilon=0.1),
    LinearSVR(loss="squared_epsilon_insensitive"),
    LinearSVR(regularize_intercept=False, epsilon=0.5),
    LinearSVR(fit_intercept=False),
]


def target_of(learner, X, codes):
    return codes if isinstance(learner, LinearSVC) else X[:, 0] - 2 * X[:, 1] + codes


@pytest.mark.parametrize("learner", CLASSIFIERS + REGRESSORS, ids=repr)
def test_a_converged_fit_is_certified_and_another_model_is_not(learner, three, rng):
    X, codes = three
    y, weight = target_of(learner, X, codes), rng.integers(0, 3, size=60).astype(float)
    for given in (None, weight):
        model = clone(learner).fit(X, y, given)
        found = certify(model, X, y, given)
        assert (found.holds, found.source, found.status) == (True, "recomputed", "converged")
        np.testing.assert_allclose(np.atleast_1d(found[GAP]), model.gap_, atol=1e-7)
        np.testing.assert_allclose(np.atleast_1d(found["primal value"]), model.primal_, rtol=1e-9)
        np.testing.assert_allclose(np.atleast_1d(found["dual value"]), model.dual_, rtol=1e-6)
        model.coef_ = model.coef_ + 0.3
        assert certify(model, X, y, given).holds is False


@pytest.mark.parametrize("learner", CLASSIFIERS + REGRESSORS, ids=repr)
def test_blocks_sparse_rows_and_float32_make_no_difference(learner, three, monkeypatch):
    X, codes = three
    X = np.round(X * 4) / 4  # exact in float32
    y = target_of(learner, X, codes)
    model = clone(learner).fit(X, y)
    whole = certify(model, X, y)
    monkeypatch.setattr(judge, "BLOCK_CELLS", 7)
    for same in (X, sp.csr_matrix(X), X.astype(np.float32)):
        found = certify(model, same, y)
        for one, other in zip(whole.claims, found.claims, strict=True):
            np.testing.assert_allclose(other.values, one.values, rtol=1e-9, atol=1e-9, err_msg=one.name)


@pytest.mark.parametrize("free", [False, True])
def test_forged_dual_coefficients_prove_nothing(free, three):
    """Doubled they lie outside their bounds; cut to them, or of other signs, they are worth less. D stays below P."""
    X, codes = three
    y = codes > 0
    model = LinearSVC(loss="hinge", regularize_intercept=not free).fit(X, y)
    honest = model.dual_coef_.copy()
    for forged in (2 * honest, -honest, 0 * honest, np.ones_like(honest), np.full_like(honest, 1e9)):
        model.dual_coef_ = forged
        found = certify(model, X, y)
        assert found.holds is False
        assert found["dual value"] <= found["primal value"]


def test_other_rows_fail_their_claim(three):
    X, codes = three
    for learner in (LinearSVC(loss="hinge"), CLASSIFIERS[-1]):
        model = clone(learner).fit(X, codes)
        found = certify(model, X[:-1], codes[:-1])
        assert found.holds is False
        assert "fitted on 60 rows, given 59" in found.claims[0].words


@pytest.mark.parametrize("learner", [sklearn.svm.LinearSVC, sklearn.svm.LinearSVR])
def test_scikit_learns_models_of_a_squared_loss_are_certified(learner, three):
    X, codes = three
    loss = "squared_hinge" if learner is sklearn.svm.LinearSVC else "squared_epsilon_insensitive"
    model = learner(loss=loss, tol=1e-8, max_iter=100_000).fit(X, codes)
    assert certify(model, X, codes).holds
    coarse = learner(loss=loss, tol=1e-8, max_iter=100_000, fit_intercept=False).fit(X, codes)
    assert certify(coarse, X, codes).holds
    coarse.coef_ = coarse.coef_ * 1.1
    assert not certify(coarse, X, codes).holds


def test_scikit_learns_hinge_keeps_no_proof(three):
    X, codes = three
    model = sklearn.svm.LinearSVC(loss="hinge", max_iter=100_000).fit(X, codes)
    with pytest.raises(InputError, match="keeps no dual coefficients"):
        certify(model, X, codes)
    joint = sklearn.svm.LinearSVC(multi_class="crammer_singer").fit(X, codes)
    with pytest.raises(InputError, match="keeps no dual coefficients"):
        certify(joint, X, codes)


def test_crammer_and_singer_of_two_classes_is_certified_from_the_kept_difference(three):
    X, codes = three
    model = LinearSVC(multi_class="crammer_singer", engine="reference", tol=1e-3, max_iter=5000).fit(X, codes > 0)
    assert model.coef_.shape == (1, 3)
    assert model.dual_coef_.shape == (2, 60)
    assert certify(model, X, codes > 0).holds


def test_the_primal_value_is_the_objective(three):
    X, codes = three
    for penalty, loss in (("l2", "hinge"), ("l2", "squared_hinge"), ("l1", "squared_hinge")):
        model = LinearSVC(penalty, loss, C=0.7, intercept_scaling=2.0).fit(X, codes > 0)
        how = {"loss": loss, "penalty": penalty, "s": 2.0}
        value = objective(X, np.where(codes > 0, 1, -1), np.full(60, 0.7), model.coef_[0], model.intercept_[0], **how)
        assert certify(model, X, codes > 0)["primal value"] == pytest.approx(value, rel=1e-12)


def test_columns_left_out_by_penalty_l1_are_zero_in_every_best_model(rng):
    """The certified ones, found with a coarse tol, are still zero where tol is fine."""
    X = rng.normal(size=(200, 30))
    y = X[:, 0] - X[:, 1] + rng.normal(size=200) > 0
    coarse, fine = (LinearSVC("l1", C=0.02, tol=tol).fit(X, y) for tol in (1e-2, 1e-10))
    found = certify(coarse, X, y)
    assert found.holds
    proved = found["certified by their subgradient"]
    assert 0 < proved <= found["columns of weight zero"] == (coarse.coef_ == 0).sum()
    assert proved <= (fine.coef_ == 0).sum()
    sharp = certify(fine, X, y)
    assert sharp["certified by their subgradient"] == sharp["columns of weight zero"]
    # A column that belongs in, put to zero by hand, is found out.
    fine.coef_[0, 0] = 0
    assert certify(fine, X, y).holds is False


def test_margin_and_errors_are_counted(three):
    X, codes = three
    y = codes > 0
    model = LinearSVC(loss="hinge").fit(X, y)
    f, sign = model.decision_function(X), np.where(y, 1, -1)
    found = certify(model, X, y)
    assert found["rows on the wrong side"] == (sign * f <= 0).sum()
    assert found["rows within the margin"] == (sign * f < 1).sum()
    assert found["width of the margin"] == pytest.approx(2 / np.linalg.norm(model.coef_))


def test_a_pipeline_and_a_sparsified_model_are_certified(three):
    X, codes = three
    assert certify(make_pipeline(StandardScaler(), LinearSVC()).fit(X, codes), X, codes).holds
    assert certify(LinearSVC("l1").fit(X, codes).sparsify(), X, codes).holds


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
def test_an_interrupted_fit_is_not_certified_but_its_bound_is_true(three):
    X, codes = three
    broken = LinearSVC(loss="hinge", max_iter=1, tol=1e-9, engine="reference").fit(X, codes > 0)
    best = LinearSVC(loss="hinge", tol=1e-9, max_iter=100_000).fit(X, codes > 0)
    assert (broken.certificate_.holds, broken.status_) == (False, "max_iter")
    assert broken.dual_[0] <= best.primal_[0] * (1 + 1e-9)
    assert math.isfinite(broken.gap_[0])


def test_penalty_l1_keeps_the_dual_coefficients_that_prove_it(rng):
    for _ in range(5):
        X, y = rng.normal(size=(40, 60)), rng.integers(0, 2, 40)
        model = LinearSVC(penalty="l1", C=30).fit(X, y)
        assert model.status_ is Status.CONVERGED
        assert certify(model, X, y).holds


def test_beta_of_zero_proves_a_dual_value_of_zero(rng):
    X, y = rng.normal(size=(20_000, 20)), rng.integers(0, 3, 20_000)
    with pytest.warns(UserWarning, match="time_limit"):
        model = LinearSVC(time_limit=1e-6).fit(X, y)
    assert certify(model, X, y)["relative duality gap"] == pytest.approx(tuple(model.gap_))
