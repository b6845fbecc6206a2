"""What holds for all five support vector machines alike."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import SVC, SVR, NuSVC, NuSVR, OneClassSVM, TableEncoder, certify, load_penguins
from margrove.errors import ConvergenceWarning, EngineError, InputError, ParameterError

MACHINES = [SVC(), NuSVC(), SVR(), NuSVR(), OneClassSVM()]
CODED = [SVC(multiclass="ovr"), SVC(kernel="precomputed"), SVR(kernel="precomputed")]
ON_REFERENCE = [SVC(engine="reference")]  # of all learners: the checks are of the estimator, not of the engine

# gamma="scale" is scikit-learn's 1 / (d · variance of X), which weights do not enter, and a default tol leaves more
# than the 1e-7 these two checks allow. With a given gamma and a small tol they hold, which is tested below.
SCALE_IS_UNWEIGHTED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "gamma='scale' does not look at weights"
    for kind in ("dense", "sparse")
}
EXPECTED = {
    # scikit-learn expects its own to fail it too, because it ignores class_weight.
    "NuSVC": {"check_class_weight_classifiers": "no nu is feasible with weights of 1000 and 0.0001"},
}


def expected_failures(model):
    unweighted = {} if model.kernel == "precomputed" else SCALE_IS_UNWEIGHTED
    return {**unweighted, **EXPECTED.get(type(model).__name__, {})}


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
@parametrize_with_checks([*MACHINES, *CODED, *ON_REFERENCE], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("model", [SVC(), NuSVC(nu=0.2), SVR(), NuSVR()], ids=lambda model: type(model).__name__)
def test_scikit_learns_check_of_weights_with_a_given_gamma(model, kind):
    check = getattr(estimator_checks, f"check_sample_weight_equivalence_on_{kind}_data")
    check(type(model).__name__, clone(model).set_params(gamma=0.05, tol=1e-10))


@pytest.fixture(params=MACHINES, ids=lambda model: type(model).__name__)
def machine(request):
    return clone(request.param).set_params(gamma=0.5, tol=1e-6)


def targets(model, X, rng):
    if is_classifier(model):
        return (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    return np.sin(X[:, 0]) + 0.2 * rng.normal(size=len(X))


def outputs(model, X):
    return model.predict(X) if is_regressor(model) else model.decision_function(X)


@pytest.fixture
def table(machine, rng):
    X = rng.normal(size=(60, 3))
    return X, targets(machine, X, rng)


def test_weights_are_repeated_rows(machine, table, rng):
    X, y = table
    weight = rng.integers(0, 4, size=60)
    weighted = clone(machine).fit(X, y, sample_weight=weight)
    repeated = clone(machine).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(outputs(weighted, X), outputs(repeated, X), atol=1e-4)
    assert (weighted.kkt_[weight == 0] == "").all()
    assert not np.isin(weighted.support_, np.flatnonzero(weight == 0)).any()
    assert certify(weighted, X, y, sample_weight=weight).holds


def test_the_order_of_rows_does_not_matter(machine, table, rng):
    X, y = table
    order = rng.permutation(60)
    one, other = clone(machine).fit(X, y), clone(machine).fit(X[order], y[order])
    np.testing.assert_allclose(outputs(one, X), outputs(other, X), atol=1e-4)


def test_duplicates_and_constant_columns_do_no_harm(machine, table):
    X, y = table
    X = np.hstack([np.vstack([X, X[:20], X[:20]]), np.ones((100, 2))])
    y = np.concatenate([y, y[:20], 1 - y[:20] if is_classifier(machine) else y[:20] + 1])
    model = clone(machine).fit(X, y)
    assert model.status_ == "converged"
    certificate = certify(model, X, y)
    assert certificate.holds, str(certificate)


def test_one_point_many_times(machine):
    X = np.ones((6, 2))
    y = np.array([0, 1, 0, 1, 0, 1])
    if isinstance(machine, NuSVC):
        return  # w = 0 has no margin to scale by
    model = clone(machine).fit(X, y)
    assert certify(model, X, y).holds
    assert np.isfinite(outputs(model, X)).all()


def test_two_rows(machine):
    X, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    model = clone(machine).fit(X, y)
    assert certify(model, X, y).holds
    assert np.isfinite(outputs(model, X)).all()


def test_fewer_rows_than_columns(machine, rng):
    X = rng.normal(size=(12, 40))
    y = targets(machine, X, rng)
    y[:2] = [0, 1]
    assert certify(clone(machine).set_params(gamma="scale").fit(X, y), X, y).holds


@pytest.mark.filterwarnings("ignore::margrove.errors.DataWarning", "ignore::margrove.errors.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_column_of_another_scale_is_certified_or_warned_about(machine, table, scale):
    X, y = table
    X = X * np.array([scale, 1.0, 1.0])
    model = clone(machine).set_params(gamma="scale", tol=1e-3).fit(X, y)
    assert certify(model, X, y).holds or model.status_ != "converged"


def test_costs_too_large_for_float64_are_refused(machine, table):
    X, y = table
    with pytest.raises(ParameterError, match=r"C times the weight of a row is 1e\+300; it must be at most 1e\+100"):
        clone(machine).fit(X, y, sample_weight=np.full(len(X), 1e300))
    if hasattr(machine, "C"):
        with pytest.raises(ParameterError, match=r"C is 1e\+101; it must be at most 1e\+100. Only SVC and SVR accept"):
            clone(machine).set_params(C=1e101).fit(X, y)


def test_sparse_equals_dense(machine, table):
    X, y = table
    X = np.where(np.abs(X) < 0.5, 0, X)
    dense, sparse = clone(machine).fit(X, y), clone(machine).fit(sp.csr_matrix(X), y)
    assert sp.issparse(sparse.support_vectors_)
    for points in (X, sp.csr_matrix(X), sp.csc_matrix(X)):
        np.testing.assert_allclose(outputs(sparse, points), outputs(dense, X), atol=1e-4)
    assert certify(sparse, sp.csr_matrix(X), y).holds


def gauss(a, b):
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(axis=2))


def test_precomputed_and_callable_equal_the_named_kernel(machine, table):
    X, y = table
    named = clone(machine).fit(X, y)
    called = clone(machine).set_params(kernel=gauss).fit(X, y)
    given = clone(machine).set_params(kernel="precomputed").fit(gauss(X, X), y)
    np.testing.assert_allclose(outputs(called, X[:9]), outputs(named, X[:9]), atol=1e-4)
    np.testing.assert_allclose(outputs(given, gauss(X[:9], X)), outputs(named, X[:9]), atol=1e-4)
    assert given.support_vectors_.shape == (0, 0)
    np.testing.assert_array_equal(called.support_vectors_, X[called.support_])
    assert certify(called, X, y).holds
    assert certify(given, gauss(X, X), y).holds
    np.testing.assert_allclose(given.norm_, named.norm_, rtol=1e-4)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "chi2", "intersection"])
def test_other_kernels(machine, kernel, rng):
    X = rng.random((50, 3))
    y = targets(machine, X, rng)
    y[:2] = [0, 1]
    if isinstance(machine, NuSVC):
        y = np.arange(50) % 2
        X[:, 0] += y
    model = clone(machine).set_params(kernel=kernel, degree=2, coef0=1.0).fit(X, y)
    certificate = certify(model, X, y)
    assert certificate.holds, str(certificate)
    by_formula = outputs(clone(machine).set_params(kernel=kernel, degree=2, coef0=1.0, engine="reference").fit(X, y), X)
    np.testing.assert_allclose(outputs(model, X), by_formula, atol=2e-3)
    if kernel == "linear":
        np.testing.assert_allclose(model.norm_, [np.linalg.norm(model.coef_)], rtol=1e-4)
        assert not model.coef_.flags.writeable


def test_float32_stays_float32(machine, table):
    X, y = table
    X = X.astype(np.float32)
    model = clone(machine).set_params(tol=1e-3).fit(X, y)
    assert model.support_vectors_.dtype == np.float32
    assert certify(model, X, y).holds
    np.testing.assert_allclose(outputs(model, X), outputs(model, X.astype(np.float64)), rtol=1e-4, atol=1e-4)


def test_precision_may_be_chosen(machine, table):
    X, y = table
    single, double = (clone(machine).set_params(precision=word, tol=1e-3).fit(X, y) for word in ("single", "double"))
    np.testing.assert_allclose(outputs(single, X), outputs(double, X), atol=2e-2)
    assert certify(double, X, y).holds


def test_frames_keep_their_names(machine, table):
    X, y = table
    plain = clone(machine).fit(X, y)
    for frame in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        model = clone(machine).fit(frame, y)
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        np.testing.assert_array_equal(outputs(model, frame), outputs(plain, X))


def test_pickles_and_clones(machine, table):
    X, y = table
    model = clone(machine).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(outputs(copy, X), outputs(model, X))
    assert copy.certificate_ == model.certificate_
    np.testing.assert_array_equal(copy.kkt_, model.kkt_)
    assert clone(model).get_params() == model.get_params()


def test_an_early_stop_is_warned_about(machine, rng):
    X = rng.normal(size=(300, 3))
    y = targets(machine, X, rng)
    model = clone(machine).set_params(max_iter=2)
    with pytest.warns(
        ConvergenceWarning, match=r"ended with status 'max_iter': violation .*tol is 1e-06; raise max_iter"
    ):
        model.fit(X, y)
    assert (model.status_, model.fit_status_) == ("max_iter", 1)
    assert np.max(model.n_iter_) <= 2
    certificate = certify(model, X, y)
    assert certificate.holds is False
    assert certificate.claim("equality residual").holds  # stopped early, but feasible


def test_time_is_limited(rng):
    X = rng.normal(size=(4000, 5))
    y = rng.integers(0, 2, size=4000)
    with pytest.warns(ConvergenceWarning, match="ended with status 'time_limit'"):
        model = SVC(C=1e5, time_limit=0.05).fit(X, y)
    assert model.status_ == "time_limit"
    certificate = certify(model, X, y)
    assert not certificate.claim("violation").holds
    assert certificate.claim("equality residual").holds
    assert certificate.claim("α outside [0, C]").holds
    assert certificate["duality gap"] > 0
    with pytest.raises(EngineError, match="does not support time_limit"):
        SVC(time_limit=1.0, engine="reference").fit(X[:20], y[:20])


def test_large_fits_keep_the_solvers_numbers(machine, rng, monkeypatch):
    monkeypatch.setattr("margrove.svm.machine._FEW_CELLS", 1 << 19)
    X = rng.normal(size=(700, 8))
    y = targets(machine, X, rng)
    model = clone(machine).set_params(gamma="scale", tol=1e-3).fit(X, y)
    assert model.certificate_.source == "solver"
    assert model.certificate_.holds is None
    recomputed = certify(model, X, y)
    assert recomputed.holds
    for said, found in zip(model.certificate_.claims, recomputed.claims, strict=True):
        assert (said.name, said.words) == (found.name, found.words)
        np.testing.assert_allclose(said.values, found.values, rtol=1e-3, atol=1e-3)


def test_verbose_prints_the_problem_and_the_result(machine, table, capsys):
    X, y = table
    clone(machine).set_params(verbose=True, cache_size=7).fit(X, y)
    first, second = capsys.readouterr().out.splitlines()
    name = type(machine).__name__
    assert first.startswith(f"[{name}] 60 rows, 3 columns, kernel rbf (gamma 0.5), 1 machine, precision auto")
    assert "7 MiB" in first
    assert second.startswith(f"[{name}] converged after ")


def test_sigma_is_gamma(machine, table):
    X, y = table
    by_sigma = clone(machine).set_params(gamma="scale", sigma=2.0).fit(X, y)
    assert by_sigma.gamma_ == 1 / 8
    np.testing.assert_array_equal(outputs(by_sigma, X), outputs(clone(machine).set_params(gamma=0.125).fit(X, y), X))


def test_gamma_scale_is_scikit_learns(rng):
    X = rng.normal(3, 2, size=(3000, 700)).astype(np.float32)
    from margrove.svm.training import settle_kernel

    expected = 1 / (700 * X.astype(np.float64).var())
    assert settle_kernel("rbf", X).gamma == pytest.approx(expected, rel=1e-12)
    assert settle_kernel("rbf", sp.csr_matrix(X)).gamma == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"C": 0}, "C is 0; it must be a number > 0. inf is the hard margin"),
        ({"C": float("-inf")}, "C is -inf"),
        ({"C": float("nan")}, "C is nan"),
        ({"C": 10**400}, "C is 1000"),
        ({"C": "1"}, "C is '1'"),
        ({"C": None}, "C is None"),
        ({"tol": 0}, "tol is 0; it must be a number > 0"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"max_iter": -2}, "max_iter is -2; it must be a whole number ≥ -1. -1 means ten million or more"),
        ({"max_iter": 1.5}, "max_iter is 1.5"),
        ({"cache_size": 0}, "cache_size is 0; it must be a number > 0. It is in MiB"),
        ({"cache_size": "all"}, "cache_size is 'all'; it must be 'auto', or a number of MiB"),
        ({"shrinking": "yes"}, "shrinking is 'yes'; it must be True or False"),
        ({"break_ties": 1}, "break_ties is 1"),
        ({"decision_function_shape": "votes"}, "decision_function_shape is 'votes'; it must be one of 'ovo', 'ovr'"),
        ({"precision": "half"}, "precision is 'half'; it must be one of 'auto', 'single', 'double'"),
        ({"engine": "abacus"}, "engine is 'abacus'"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"gamma": -1.0}, "gamma is -1.0; it must be a number ≥ 0. Use gamma='scale' if unsure"),
        ({"gamma": "huge"}, "gamma is 'huge'"),
        ({"sigma": 1.0, "gamma": 1.0}, "sigma is 1.0 and gamma is 1.0; set only one of them"),
        ({"kernel": "cubic"}, "kernel is 'cubic'"),
        ({"kernel": "poly", "degree": 2.5}, "degree is 2.5"),
        ({"kernel": "poly", "degree": -1}, "degree is -1; it must be a number ≥ 0"),
        ({"coef0": float("inf")}, "coef0 is inf"),
        (
            {"random_state": "a"},
            "random_state is 'a'; it must be None, a whole number from 0 to 2³² − 1, or a RandomState",
        ),
        ({"verbose": "a"}, "verbose is 'a'; it must be a whole number ≥ 0. True and False are allowed too"),
        ({"class_weight": {0: -1.0}}, r"class_weight\[0\] is -1.0"),
    ],
)
def test_bad_parameters(parameters, words):
    with pytest.raises(ParameterError, match=words) as info:
        SVC(**parameters).fit([[0.0], [1.0]], [0, 1])
    assert isinstance(info.value, ValueError)  # as scikit-learn's InvalidParameterError
    assert isinstance(info.value, TypeError)


def test_a_callable_must_be_a_kernel(machine, table, monkeypatch):
    X, y = table
    with pytest.raises(InputError, match="the kernel returned a matrix of shape"):
        clone(machine).set_params(kernel=lambda a, b: np.ones(3)).fit(X, y)
    with pytest.raises(InputError, match="must be symmetric"):
        clone(machine).set_params(kernel=lambda a, b: a[:, :1] + 0 * b[:, 0]).fit(X, y)
    monkeypatch.setattr("margrove.svm.training.free_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"needs the whole Gram matrix.*a named kernel, or fewer rows"):
        clone(machine).set_params(kernel=gauss).fit(X, y)


def test_unfitted_and_without_labels(machine, table):
    X, y = table
    with pytest.raises(NotFittedError):
        clone(machine).predict(X)
    with pytest.raises(NotFittedError):
        certify(clone(machine), X, y)
    model = clone(machine).fit(X, y)
    if isinstance(machine, OneClassSVM):
        assert certify(model, X).holds
    else:
        with pytest.raises(InputError, match="certify needs y"):
            certify(model, X)


def test_scikit_learns_tools_take_them(four_classes, values):
    X, y = four_classes
    assert cross_val_score(SVC(), X, y, cv=3).mean() > 0.8
    assert cross_val_score(SVC(kernel="precomputed"), X @ X.T, y, cv=3).mean() > 0.5
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 10], "svc__gamma": ["scale", "median"]}
    )
    assert search.fit(X, y).best_score_ > 0.8
    assert cross_val_score(SVR(C=10.0), *values, cv=3).mean() > 0.5


def test_a_table_goes_through_a_pipeline():
    penguins = load_penguins()
    model = make_pipeline(TableEncoder(), SVC()).fit(penguins, penguins.labels())
    assert model.score(penguins, penguins.labels()) > 0.97
    certificate = certify(model, penguins, penguins.labels())
    assert certificate.holds, str(certificate)
    with pytest.raises(InputError, match=r"X is a Table.*make_pipeline\(TableEncoder\(\), SVR"):
        SVR().fit(penguins, np.zeros(344))
