"""SVC with the linear kernel by way of w: the same problem, the same solution, checked by the same certificate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm as peers
from sklearn.datasets import make_classification

from margrove import SVC, certify


@pytest.fixture(scope="module")
def tall():
    X, y = make_classification(3000, 8, n_informative=5, flip_y=0.1, random_state=0)
    return X, y


@pytest.mark.parametrize("wrap", [np.asarray, np.float32, sp.csr_matrix])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_objective_is_libsvms_and_the_certificate_holds(tall, wrap, C):
    X, y = tall
    model = SVC(kernel="linear", C=C).fit(wrap(X), y)
    assert model.solver_ == "newton"
    certificate = certify(model, wrap(X), y)
    assert certificate.holds
    peer = peers.SVC(kernel="linear", C=C, tol=1e-5).fit(X, y)
    assert certificate["primal"] == pytest.approx(certify(peer, X, y)["primal"], rel=1e-5)
    assert np.mean(model.predict(wrap(X)) == peer.predict(X)) > 0.998


def test_pairs_and_weights_end_at_the_same_margin(tall, monkeypatch):
    X, y = tall
    by_weights = SVC(kernel="linear").fit(X, y)
    monkeypatch.setattr("margrove.engine.native.svm.is_tall", lambda problem: False)
    by_pairs = SVC(kernel="linear").fit(X, y)
    assert (by_weights.solver_, by_pairs.solver_) == ("newton", "smo")
    assert by_weights.margin_ == pytest.approx(by_pairs.margin_, rel=1e-2)
    assert by_weights.coef_ == pytest.approx(by_pairs.coef_, abs=1e-2)
    assert len(by_weights.support_) == pytest.approx(len(by_pairs.support_), abs=5)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_several_classes_each_by_its_own_rows(multiclass):
    X, y = make_classification(6000, 8, n_informative=6, n_classes=3, random_state=1)
    model = SVC(kernel="linear", multiclass=multiclass).fit(X, y)
    assert model.solver_ == "newton"
    assert certify(model, X, y).holds
    if multiclass == "ovo":
        peer = peers.SVC(kernel="linear").fit(X, y)
        assert np.mean(model.predict(X) == peer.predict(X)) > 0.995


def test_weights_of_rows_and_classes_count(tall):
    X, y = tall
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y))
    model = SVC(kernel="linear", class_weight="balanced").fit(X, y, weight)
    assert model.solver_ == "newton"
    assert certify(model, X, y, weight).holds


def test_columns_on_which_pairs_crawl_are_solved(tall):
    X, y = tall
    X = X * np.logspace(-2, 3, X.shape[1])
    small = SVC(kernel="linear", C=10.0, tol=1e-3)
    with pytest.warns(UserWarning, match="scale of column"):
        model = small.fit(X[:600], y[:600])
    assert certify(model, X[:600], y[:600]).holds


def test_step_limits_checkpoints_and_other_kernels_use_smo(tall, tmp_path):
    X, y = tall
    assert SVC(kernel="linear", max_iter=10_000_000).fit(X, y).solver_ == "smo"
    assert SVC(kernel="linear", checkpoint=tmp_path / "kept").fit(X, y).solver_ == "smo"
    assert SVC(kernel="rbf").fit(X[:500], y[:500]).solver_ == "smo"


def test_verbose_reports_the_newton_solver(tall, capsys):
    X, y = tall
    SVC(kernel="linear", verbose=True).fit(X, y)
    assert "Newton's method solves for w directly" in capsys.readouterr().out


def test_a_time_limit_keeps_a_feasible_model(tall):
    X, y = make_classification(60_000, 40, n_informative=20, random_state=0)
    with pytest.warns(UserWarning, match="time_limit"):
        model = SVC(kernel="linear", tol=1e-9, time_limit=0.01).fit(X, y)
    assert abs(model.dual_coef_.sum()) <= 1e-6
