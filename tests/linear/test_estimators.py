"""The linear learners as people use them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import (
    BasicLinearClassifier,
    KernelPerceptron,
    LeastSquaresClassifier,
    Perceptron,
    TableEncoder,
    certify,
    load_penguins,
    margins,
)
from margrove.errors import ConvergenceWarning, EngineError, InputError, ParameterError
from margrove.status import Status

pytestmark = pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")

# A perceptron is a walk: its result depends on the order in which rows are met, and a row met twice is not a row met
# once with twice the correction. So "weights = repeated rows", which these two checks ask for, is not a property of the
# algorithm; scikit-learn expects its own Perceptron to fail them too. Zero weights, which mean the same in both, are
# tested below.
ORDER_MATTERS = {
    "check_sample_weight_equivalence_on_dense_data": "the perceptron depends on the order of the rows",
    "check_sample_weight_equivalence_on_sparse_data": "the perceptron depends on the order of the rows",
}
LEARNERS = [
    BasicLinearClassifier(),
    LeastSquaresClassifier(),
    Perceptron(max_iter=50),
    Perceptron(variant="averaged", max_iter=50),
    Perceptron(variant="voted", max_iter=20),
    KernelPerceptron(max_iter=50),
    BasicLinearClassifier(engine="reference"),
    LeastSquaresClassifier(engine="reference"),
    Perceptron(max_iter=20, engine="reference"),
    KernelPerceptron(max_iter=20, engine="reference"),
]


@parametrize_with_checks(
    [learner for learner in LEARNERS if learner.engine != "reference"],  # the checks are of the estimator
    expected_failed_checks=lambda learner: ORDER_MATTERS if "Perceptron" in type(learner).__name__ else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def three_classes(rng):
    codes = np.arange(90) % 3
    X = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[codes] + rng.normal(size=(90, 2))
    return X, np.array(["ash", "beech", "oak"])[codes]


@pytest.mark.parametrize("learner", LEARNERS[:6], ids=repr)
def test_classes_may_be_text_and_many(learner, three_classes):
    X, y = three_classes
    model = clone(learner).fit(X, y)
    assert model.score(X, y) >= 0.9  # one-vs-rest leaves a class in the middle to least squares and the means
    assert set(model.predict(X)) <= {"ash", "beech", "oak"}
    assert model.decision_function(X).shape == (90, 3)
    if getattr(model, "variant", None) != "voted":
        assert model.margins(X, y).geometric.shape == (90, 3)
    assert model.status_ in set(Status)
    assert model.engine_ == "native"


@pytest.mark.parametrize("learner", LEARNERS[:6], ids=repr)
@pytest.mark.parametrize("labels", [[False, True], [-1.0, 2.0], [3, 7], ["no", "yes"]], ids=repr)
def test_labels_may_be_of_any_kind(learner, labels, rng):
    X = rng.normal(size=(40, 3))
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    model = clone(learner).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert certify(model, X, y).source == "recomputed"


@pytest.mark.parametrize("learner", LEARNERS[:6], ids=repr)
def test_sparse_equals_dense(learner, three_classes):
    X, y = three_classes
    X = np.where(np.abs(X) < 0.5, 0, X)
    settings = {"random_state": 1} if hasattr(learner, "random_state") else {}
    dense = clone(learner).set_params(**settings).fit(X, y)
    sparse = clone(learner).set_params(**settings).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csc_matrix(X)), dense.decision_function(X), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("learner", LEARNERS[:6], ids=repr)
def test_frames_of_numbers_are_accepted_and_keep_their_names(learner, three_classes):
    X, y = three_classes
    settings = {"random_state": 1} if hasattr(learner, "random_state") else {}
    plain = clone(learner).set_params(**settings).fit(X, y)
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        model = clone(learner).set_params(**settings).fit(frame, y)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_array_equal(model.predict(frame), plain.predict(X))


def test_text_columns_are_refused_with_the_cure():
    frame = pd.DataFrame({"height": [1.0, 2.0], "island": ["Biscoe", "Dream"]})
    with pytest.raises(InputError, match=r"island.*make_pipeline\(TableEncoder\(\), Perceptron\(\)\)"):
        Perceptron().fit(frame, [0, 1])


@pytest.mark.parametrize("learner", LEARNERS[:6], ids=repr)
def test_float32_is_not_copied(learner, rng, monkeypatch):
    """The core is handed the very array the user gave."""
    from margrove.engine.native import linear

    seen = []
    take = linear.points_of
    monkeypatch.setattr(linear, "points_of", lambda X: (seen.append(X), take(X))[1])
    X = rng.normal(size=(30, 4)).astype(np.float32)
    clone(learner).fit(X, np.arange(30) % 2)
    assert all(np.shares_memory(X, points) and points.dtype == np.float32 for points in seen)


def test_a_memory_map_is_accepted(rng, tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(30, 4))
    X[:] = rng.normal(size=(30, 4))
    X.flush()
    read_only = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert Perceptron(max_iter=2).fit(read_only, np.arange(30) % 2).coef_.shape == (1, 4)


def test_perceptron_that_cannot_separate_warns_and_fails_its_certificate():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 0])
    with pytest.warns(ConvergenceWarning, match=r"max_iter.*mistakes in the last pass"):
        model = Perceptron(max_iter=30, random_state=0).fit(X, y)
    assert (model.status_, model.n_iter_) == ("max_iter", 30)
    assert model.certificate_.holds is False
    assert "the rows are not separated" in str(model.certificate_)


def test_tol_stops_when_mistakes_no_longer_decrease(rng):
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, size=200)
    model = Perceptron(tol=1e-3, max_iter=10_000, random_state=0).fit(X, y)
    assert model.status_ == "stalled"
    assert model.n_iter_ < 1000


@pytest.mark.parametrize("learner", [Perceptron(random_state=0), KernelPerceptron(random_state=0)], ids=repr)
def test_rows_of_weight_zero_are_left_out(learner, rng):
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    wrong = np.arange(60) % 7 == 0
    y[wrong] = 1 - y[wrong]  # these rows would make it inseparable
    weight = np.where(wrong, 0.0, 1.0)
    model = clone(learner).set_params(kernel="linear") if hasattr(learner, "kernel") else clone(learner)
    model.fit(X, y, sample_weight=weight)
    assert model.status_ == "converged"
    assert certify(model, X, y, sample_weight=weight).holds
    assert not certify(model, X, y).holds


def test_class_weight_equals_sample_weight(rng):
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    by_class = Perceptron(class_weight={0: 2.0, 1: 0.5}, random_state=0, max_iter=9).fit(X, y)
    by_row = Perceptron(random_state=0, max_iter=9).fit(X, y, sample_weight=np.where(y == 0, 2.0, 0.5))
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)


def test_seed_decides_everything(rng):
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, size=80)
    fits = [Perceptron(random_state=5, max_iter=7, n_jobs=n).fit(X, y).coef_ for n in (1, 2, 4)]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])
    assert not np.array_equal(fits[0], Perceptron(random_state=6, max_iter=7).fit(X, y).coef_)


def test_partial_fit_passes_over_pieces(rng):
    X = rng.normal(size=(90, 3))
    y = (X @ [1.0, 2.0, -1.0] > 0.1).astype(int)
    model = Perceptron(shuffle=False)
    for piece in range(3):
        rows = slice(30 * piece, 30 * piece + 30)
        model.partial_fit(X[rows], y[rows], classes=[0, 1] if piece == 0 else None)
    whole = Perceptron(shuffle=False, max_iter=1).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_)
    assert model.n_mistakes_.tolist() == whole.n_mistakes_.tolist()
    assert model.certificate_.source == "solver"
    assert certify(model, X, y).source == "recomputed"
    with pytest.raises(InputError, match="label 2 is not one of the classes"):
        model.partial_fit(X[:2], [0, 2])
    with pytest.raises(ParameterError, match="classes must be passed on the first call"):
        Perceptron().partial_fit(X, y)
    assert not hasattr(Perceptron(variant="voted"), "partial_fit")


def test_warm_start_continues(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, size=60)
    twice = Perceptron(shuffle=False, max_iter=3, warm_start=True).fit(X, y)
    twice.fit(X, y)
    np.testing.assert_allclose(twice.coef_, Perceptron(shuffle=False, max_iter=6).fit(X, y).coef_)


def test_precomputed_and_callable_equal_the_named_kernel(rng):
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, size=40)

    def gauss(a, b):
        return np.exp(-0.7 * ((a[:, None] - b[None]) ** 2).sum(axis=2))

    named = KernelPerceptron(kernel="rbf", gamma=0.7, random_state=0).fit(X, y)
    called = KernelPerceptron(kernel=gauss, random_state=0).fit(X, y)
    given = KernelPerceptron(kernel="precomputed", random_state=0).fit(gauss(X, X), y)
    for model, points in ((called, X[:9]), (given, gauss(X[:9], X))):
        np.testing.assert_allclose(model.decision_function(points), named.decision_function(X[:9]), atol=1e-9)
    assert certify(called, X, y).holds
    assert certify(given, gauss(X, X), y).holds
    np.testing.assert_allclose(given.norm_, named.norm_)


def test_sigma_is_gamma(rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    by_sigma = KernelPerceptron(sigma=2.0, random_state=0).fit(X, y)
    assert by_sigma.gamma_ == 1 / 8
    np.testing.assert_array_equal(
        by_sigma.dual_coef_, KernelPerceptron(gamma=0.125, random_state=0).fit(X, y).dual_coef_
    )


def test_a_table_goes_through_a_pipeline_and_scikit_learns_tools():
    penguins = load_penguins()
    model = make_pipeline(TableEncoder(), LeastSquaresClassifier())
    assert cross_val_score(model, penguins, penguins.labels(), cv=3).mean() > 0.95
    found = margins(model.fit(penguins, penguins.labels()), penguins, penguins.labels())
    assert found.geometric.shape == (344, 3)
    with pytest.raises(InputError, match=r"X is a Table.*make_pipeline\(TableEncoder"):
        Perceptron().fit(penguins, penguins.labels())


def test_a_voted_perceptron_has_no_margins(three_classes):
    X, y = three_classes
    with pytest.raises(InputError, match="no margins"):
        Perceptron(variant="voted", max_iter=3).fit(X, y).margins(X, y)


def test_scikit_learn_tools_accept_them(three_classes):
    X, y = three_classes
    assert cross_val_score(BasicLinearClassifier(), X, y, cv=3).mean() > 0.8
    search = GridSearchCV(KernelPerceptron(random_state=0), {"gamma": [0.1, "scale"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"eta0": 0}, "eta0 is 0; it must be a number > 0"),
        ({"eta0": float("inf")}, "eta0 is inf; it must be a number > 0"),
        ({"eta0": None}, "eta0 is None"),
        ({"max_iter": 1e3}, "max_iter is 1000.0; it must be a whole number"),
        ({"max_iter": 10**30}, "max_iter is 10"),
        ({"max_iter": "5"}, "max_iter is '5'"),
        ({"max_iter": True}, "max_iter is True"),
        ({"tol": "x"}, "tol is 'x'"),
        ({"n_iter_no_change": 0}, "n_iter_no_change is 0"),
        ({"n_jobs": 2.5}, "n_jobs is 2.5"),
        ({"shuffle": "x"}, "shuffle is 'x'; it must be True or False"),
        ({"warm_start": "x"}, "warm_start is 'x'"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, r"class_weight\[0\] is -1.0"),
        ({"eta0": float("nan")}, "eta0 is nan"),
        ({"max_iter": 0}, "max_iter is 0; it must be a whole number ≥ 1"),
        ({"variant": "best"}, "variant is 'best'; it must be one of 'last', 'averaged', 'voted'"),
        ({"tol": -1}, "tol is -1"),
        ({"time_limit": 0}, "time_limit is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"engine": "abacus"}, "engine is 'abacus'; it must be one of 'auto', 'dask', 'native', 'reference'"),
    ],
)
def test_bad_parameters_of_the_perceptron(parameters, words):
    with pytest.raises(ParameterError, match=words):
        Perceptron(**parameters).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"gamma": -1.0}, "gamma is -1.0; it must be a number ≥ 0. Use gamma='scale' if unsure"),
        ({"gamma": None}, "gamma is None"),
        ({"coef0": float("nan")}, "coef0 is nan"),
        ({"gamma": "huge"}, "gamma is 'huge'"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"sigma": 1.0, "kernel": "poly"}, "only kernel='rbf' has one"),
        ({"kernel": "cubic"}, "kernel is 'cubic'; it must be one of 'linear', 'rbf'"),
        ({"kernel": "poly", "degree": 2.5}, "degree is 2.5"),
        ({"cache_size": 0}, "cache_size is 0"),
    ],
)
def test_bad_parameters_of_the_kernel_perceptron(parameters, words):
    with pytest.raises(ParameterError, match=words):
        KernelPerceptron(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_counts_kernels_refuse_negative_values():
    with pytest.raises(InputError, match="column 1 contains -2"):
        KernelPerceptron(kernel="chi2").fit([[0.0, 1.0], [1.0, -2.0]], [0, 1])


def test_callable_of_the_wrong_shape_is_named():
    with pytest.raises(InputError, match="the kernel returned a matrix of shape"):
        KernelPerceptron(kernel=lambda a, b: np.ones(3)).fit([[0.0], [1.0]], [0, 1])


def test_unfitted_and_foreign_models_are_refused():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    with pytest.raises(NotFittedError):
        certify(Perceptron(), X, y)
    with pytest.raises(InputError, match="KNeighborsClassifier has no margins"):
        margins(KNeighborsClassifier(1).fit(X, y), X, y)


def test_missing_engines_are_named():
    with pytest.raises(EngineError, match="the GPU engine is not part of this version"):
        Perceptron(engine="gpu").fit([[0.0], [1.0]], [0, 1])


def test_one_class_is_refused_with_its_name():
    with pytest.raises(InputError, match="only one class, 'a'"):
        Perceptron().fit([[0.0], [1.0]], ["a", "a"])


@pytest.mark.parametrize("scale", [1e-6, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("n", [60, 500, 5000])
def test_small_cells_are_not_lost_beside_the_intercept(n, scale):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 10))
    total = X[:, 0] + X[:, 1]
    X, y = X[np.abs(total) > 0.2] * scale, total[np.abs(total) > 0.2] > 0
    native, reference = (
        Perceptron(shuffle=False, max_iter=50, engine=name).fit(X, y) for name in ("native", "reference")
    )
    np.testing.assert_allclose(native.coef_, reference.coef_, rtol=1e-6, atol=1e-9 * scale)
    assert native.score(X, y) == reference.score(X, y)


def test_a_warm_start_needs_the_same_columns():
    model = Perceptron(warm_start=True).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(InputError, match="X has 1 columns; in the last fit it had 2"):
        model.fit([[0.0], [1.0]], [0, 1])


def test_categories_that_are_numbers_are_numbers():
    frame = pd.DataFrame({"size": pd.Categorical([1, 2, 1, 2]), "weight": [0.0, 1.0, 2.0, 3.0]})
    assert Perceptron().fit(frame, [0, 1, 0, 1]).predict(frame).tolist() == [0, 1, 0, 1]
    words = frame.assign(size=pd.Categorical(["s", "l", "s", "l"]))
    with pytest.raises(InputError, match="these columns contain text: size"):
        Perceptron().fit(words, [0, 1, 0, 1])
