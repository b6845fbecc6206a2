"""Kernel machines whose kernel is on Dask workers are those of one machine."""

from __future__ import annotations

import signal

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_classification
from tests.engine.dask_clusters import OF_DASK, threads

from margrove import (
    SVC,
    SVCCV,
    SVR,
    Checkpoint,
    LinearSVC,
    LinearSVCCV,
    LinearSVRCV,
    NuSVC,
    NuSVR,
    OneClassSVM,
    certify,
)
from margrove.engine.dask import svm as spread
from margrove.errors import ConvergenceWarning, EngineError, InfeasibleError, InputError, ParameterError
from margrove.run.progress import watched
from margrove.status import Status

pytestmark = pytest.mark.filterwarnings(*OF_DASK)


@pytest.fixture(scope="module", autouse=True)
def client():
    with threads(2) as own:
        yield own


@pytest.fixture
def small_sets(monkeypatch):
    """Working sets so small that several rounds are needed."""
    monkeypatch.setattr(spread, "WORKING_SET", 64)
    monkeypatch.setattr(spread, "MOST_CHANGED", 100)
    monkeypatch.setattr(spread, "MOST_ACTIVE", 0)


def _classes():
    return make_classification(240, 6, flip_y=0.1, random_state=0)


def _digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300]


def _sparse():
    X, y = _digits()
    return sp.csr_matrix(X), y % 2


def _separable():
    X, y = load_iris(return_X_y=True)
    return X, y == 0


CASES = {
    "two classes": (SVC, {"C": 10.0}, _classes),
    "polynomial": (SVC, {"kernel": "poly", "degree": 2, "coef0": 1.0}, _classes),
    "weights of classes": (SVC, {"class_weight": "balanced", "C": 0.5}, _classes),
    "ten classes": (SVC, {"C": 5.0}, _digits),
    "sparse": (SVC, {"kernel": "linear", "C": 0.1}, _sparse),
    "float32": (SVC, {}, lambda: (_classes()[0].astype(np.float32), _classes()[1])),
    "hard margin": (SVC, {"C": np.inf}, _separable),
    "share of support vectors": (NuSVC, {"nu": 0.4}, _classes),
    "regression": (SVR, {"C": 50.0, "epsilon": 5.0}, lambda: load_diabetes(return_X_y=True)),
    "regression with a share": (NuSVR, {"C": 50.0}, lambda: load_diabetes(return_X_y=True)),
    "one class": (OneClassSVM, {"nu": 0.2}, lambda: (_classes()[0], None)),
}


# `make test` has those that take a second.
SOON = ("weights of classes", "sparse", "hard margin", "share of support vectors", "one class")
CHOSEN = [pytest.param(name, marks=[] if name in SOON else pytest.mark.slow) for name in CASES]


@pytest.mark.parametrize("name", CHOSEN)
def test_machines_are_equal_within_both_gaps(name, small_sets):
    kind, settings, make = CASES[name]
    X, y = make()
    given = (X,) if y is None else (X, y)
    expected = kind(tol=1e-5, **settings).fit(*given)
    model = kind(tol=1e-5, engine="dask", **settings).fit(*given)
    assert model.status_ is Status.CONVERGED
    assert model.engine_ == "dask"
    own, other = certify(model, *given), certify(expected, *given)
    assert own.holds, own
    apart = np.abs(own["duality gap"]) + np.abs(other["duality gap"])
    for value in ("primal", "dual"):
        assert (np.abs(np.subtract(own[value], other[value])) <= apart + 1e-12).all(), value


@pytest.mark.parametrize(
    "name", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("ten classes", "regression")), "one class"]
)
def test_sets_of_all_support_vectors_give_the_same_machines(name, small_sets, monkeypatch):
    monkeypatch.setattr(spread, "MOST_ACTIVE", 1000)
    test_machines_are_equal_within_both_gaps(name, None)


@pytest.mark.parametrize("norm", [256.0, pytest.param(1e9, marks=pytest.mark.slow)], ids=["single", "refused"])
def test_kernel_values_in_float32_are_confirmed_in_float64(norm, small_sets, monkeypatch):
    monkeypatch.setattr(spread, "SINGLE_ROWS", 100)
    monkeypatch.setattr(spread, "SINGLE_NORM", norm)
    X, y = _classes()
    X = X if norm < 1e9 else X + 1e4 * (np.arange(len(X)) % 2)[:, None]  # far apart: rounding is seen
    called = []
    for name in ("_is_confirmed", "_sums"):  # the latter are in float64
        own = getattr(spread.BlockSMO, name)
        monkeypatch.setattr(
            spread.BlockSMO, name, lambda *given, own=own, name=name: (called.append(name), own(*given))[1]
        )
    model = SVC(C=10.0, gamma=0.1, tol=1e-4, engine="dask").fit(X, y)
    assert ("_sums" in called) == (norm == 1e9)
    assert norm == 1e9 or "_is_confirmed" in called
    assert model.status_ is Status.CONVERGED
    assert certify(model, X, y).holds


def test_hulls_that_meet_are_proved_to(small_sets):
    X, y = _classes()
    with pytest.raises(InfeasibleError):
        SVC(C=np.inf, kernel="linear", engine="dask").fit(X, y)


def test_rows_of_a_collection_are_refused():
    X, y = _classes()
    with pytest.raises(InputError, match=r"X is a dask array, and this method of SVC reads rows that are in memory"):
        SVC(engine="dask").fit(da.from_array(X, chunks=(100, 6)), y)


@pytest.mark.parametrize("kernel", ["precomputed", lambda X, Z: X @ Z.T])
def test_a_kernel_that_workers_cannot_compute_is_refused(kernel):
    X, y = _classes()
    with pytest.raises(EngineError, match=r"engine='dask' cannot solve a DualProblem"):
        SVC(kernel=kernel, engine="dask").fit(X @ X.T if kernel == "precomputed" else X, y)


def test_a_fit_goes_on_from_its_checkpoint(small_sets, tmp_path):
    X, y = _classes()
    path = tmp_path / "fit.checkpoint"
    how = {"C": 10.0, "engine": "dask", "checkpoint": Checkpoint(path, interval=0)}
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        stopped = SVC(max_iter=100, **how).fit(X, y)
    assert path.exists()
    model = SVC(**how).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert certify(model, X, y).holds
    assert certify(stopped, X, y)["dual"] < certify(model, X, y)["dual"]
    assert not path.exists()


@pytest.mark.parametrize("limit", [1e-6, 0.3])
def test_a_fit_that_is_out_of_time_keeps_what_it_has(small_sets, limit):
    X, y = _classes()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = SVC(C=1000.0, engine="dask", tol=1e-9, time_limit=limit).fit(X, y)
    assert model.status_ is Status.TIME_LIMIT
    found = certify(model, X, y)
    assert found["equality residual"] < 1e-9  # α is feasible, and b its own
    assert not found.holds


def test_ctrl_c_keeps_the_model(small_sets):
    X, y = _classes()
    models = [SVC(C=1000.0, engine="dask", tol=1e-9), LinearSVC(C=1000.0, loss="hinge", engine="dask", tol=1e-12)]
    for model in models:
        seen = []

        def interrupt(progress, seen=seen):
            seen.append(progress)
            if len(seen) == 3:
                signal.raise_signal(signal.SIGINT)

        with watched(interrupt), pytest.warns(ConvergenceWarning, match="interrupted"):
            model.fit(X, y)
        assert model.status_ is Status.INTERRUPTED
        assert set(model.predict(X)) <= {0, 1}


@pytest.mark.parametrize("gammas", [[0.05, 0.5], [0.1]])
def test_searches_share_out_their_units(gammas):
    X, y = _classes()
    expected = SVCCV(Cs=[0.1, 10.0], gammas=gammas, cv=3).fit(X, y)
    search = SVCCV(Cs=[0.1, 10.0], gammas=gammas, cv=3, engine="dask").fit(X, y)
    assert search.best_params_ == expected.best_params_
    assert np.array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert search.best_estimator_.engine_ == "dask"
    with pytest.raises(InputError, match="X is a dask array"):
        SVCCV(Cs=[0.1], gammas=gammas, engine="dask").fit(da.from_array(X, chunks=(100, 6)), y)


LINEAR = {
    "three classes": (LinearSVCCV, {"loss": "hinge"}, lambda: load_iris(return_X_y=True)),
    "penalty l1": (LinearSVCCV, {"penalty": "l1", "refit": False}, _classes),
    "sparse": (LinearSVCCV, {"class_weight": "balanced"}, _sparse),
    "regression": (LinearSVRCV, {"epsilons": [1.0, 20.0], "scoring": "r2"}, lambda: load_diabetes(return_X_y=True)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if "l1" in name else pytest.mark.slow) for name in LINEAR]
)
def test_linear_searches_share_out_their_machines(name):
    kind, settings, make = LINEAR[name]
    X, y = make()
    expected = kind(Cs=[0.01, 1.0], cv=3, **settings).fit(X, y)
    search = kind(Cs=[0.01, 1.0], cv=3, engine="dask", **settings).fit(X, y)
    assert search.engine_ == "dask"
    for column, values in expected.cv_results_.items():
        if "time" not in column:
            assert np.array_equal(search.cv_results_[column], values), column
    if "refit" not in settings:
        assert search.best_estimator_.engine_ == "dask"
        assert search.certificate_.holds
        assert np.allclose(search.coef_, expected.coef_, atol=0.02 * np.abs(expected.coef_).max())


def test_paths_of_linear_machines_are_those_of_one_machine():
    X, y = _classes()
    expected = LinearSVC().path(X, y, Cs=[0.01, 0.1, 1.0])
    path = LinearSVC(engine="dask").path(X, y, Cs=[0.01, 0.1, 1.0])
    assert path.coefs.tobytes() == expected.coefs.tobytes()


def test_a_linear_search_that_is_out_of_time_says_so():
    X, y = _classes()
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        search = LinearSVCCV(engine="dask", time_limit=1e-6).fit(X, y)
    assert search.status_ is Status.TIME_LIMIT


@pytest.mark.parametrize("settings", [{"penalty": "l1"}, {"solver": "descent"}, {"multi_class": "crammer_singer"}])
def test_what_the_refit_of_a_linear_search_lacks_is_named_first(settings):
    with pytest.raises(ParameterError, match="which engine='dask' does not support"):
        LinearSVCCV(engine="dask", **settings).fit(*_classes())
    if "multi_class" in settings:
        with pytest.raises(EngineError, match=r"engine='dask' cannot solve a CrammerSingerProblem"):
            LinearSVCCV(engine="dask", refit=False, **settings).fit(*_classes())


def test_a_limit_of_steps_ends_the_fit(small_sets):
    X, y = _classes()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SVC(C=100.0, engine="dask", max_iter=60).fit(X, y)
    assert model.status_ is Status.MAX_ITER
