"""The three schemes as people use them."""

from __future__ import annotations

import pickle
import time
from string import ascii_uppercase

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn import multiclass as peers
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from margrove import (
    SVC,
    AdaBoostClassifier,
    BasicLinearClassifier,
    BitStringClassifier,
    DecisionStump,
    DecisionTreeClassifier,
    KernelPerceptron,
    NuSVC,
    OneClassSVM,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    Status,
    TableEncoder,
    certify,
    load_penguins,
)
from margrove.engine.native import tree as native_tree
from margrove.errors import ConvergenceWarning, InputError, ParameterError, UnseenCategoryWarning
from margrove.multiclass import codes
from margrove.multiclass.certificate import column_certificates
from margrove.multiclass.decoding import DECODINGS
from margrove.multiclass.machines import ONE_KERNEL, ONE_TABLE
from margrove.run.progress import watched

SCHEMES = [
    OneVsRestClassifier(),
    BitStringClassifier(SVC(gamma=0.05, tol=1e-10), code="hadamard", decoding="exponential"),
    BitStringClassifier(SVC(gamma=0.05, tol=1e-10, probability=True)),
    OneVsOneClassifier(LogisticRegression()),
]


def expected_failures(model):
    why = ""
    if model.estimator is None:
        why = "gamma='scale' does not look at weights"
    elif getattr(model.estimator, "probability", False):
        why = "folds do not look at weights"
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse") if why}


@pytest.mark.filterwarnings("ignore:Label not .* is present in all training examples")  # of a single class
@parametrize_with_checks(SCHEMES, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, load_iris().target_names[y]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:700]
    return X[order] / 16, y[order]


def blobs(k, n=4, spread=0.7, seed=0):
    """k classes of n rows each, in three columns."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=3, size=(k, 3))
    y = np.repeat(np.arange(k), n)
    return centres[y] + rng.normal(scale=spread, size=(k * n, 3)), np.array([f"class {c:02}" for c in y])


# ---- against scikit-learn


@pytest.mark.parametrize("base", [LogisticRegression(), RidgeClassifier(), GaussianNB(), LinearDiscriminantAnalysis()])
def test_one_vs_rest_is_scikit_learns(base, iris):
    X, y = iris
    ours, theirs = OneVsRestClassifier(base).fit(X, y), peers.OneVsRestClassifier(base).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    if hasattr(base, "decision_function"):
        np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X))
    if hasattr(base, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("base", [LogisticRegression(), RidgeClassifier(), LinearDiscriminantAnalysis()])
def test_one_vs_one_is_scikit_learns(base):
    X, y = blobs(6, n=12, spread=2)
    ours, theirs = OneVsOneClassifier(base).fit(X, y), peers.OneVsOneClassifier(base).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X))


def test_one_vs_one_of_trees_votes_as_scikit_learns_ties_included(digits):
    X, y = digits
    base = DecisionTreeClassifier(max_depth=2)
    ours, theirs = OneVsOneClassifier(base).fit(X, y), peers.OneVsOneClassifier(base).fit(X, y)
    machines = np.stack([each.predict(X) for each in theirs.estimators_], axis=1)
    np.testing.assert_array_equal(np.where(ours.machine_decision(X) > 0, 1, 0), machines)


@pytest.mark.parametrize("base", [RidgeClassifier(), BasicLinearClassifier(), SVC(gamma=0.5, tol=1e-6)])
def test_bit_strings_are_scikit_learns_of_the_same_code(base, digits):
    X, y = digits
    theirs = peers.OutputCodeClassifier(base, code_size=1.5, random_state=3).fit(X, y)
    code = np.where(theirs.code_book_ > 0, 1, -1)
    keep = [s for s in range(code.shape[1]) if not (code[:, :s] == code[:, [s]]).all(axis=0).any()]
    assert len(keep) == code.shape[1]  # of this seed no two columns are the same
    ours = BitStringClassifier(base, code=code, decoding="linear").fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    values = np.stack([each.decision_function(X) for each in theirs.estimators_], axis=1)
    np.testing.assert_allclose(ours.machine_decision(X), values, atol=1e-5)


# ---- one kernel for all machines


def named(scheme):
    return f"{type(scheme).__name__} {getattr(scheme, 'code', '')}"


SHARED = [
    OneVsRestClassifier(),
    OneVsOneClassifier(),
    BitStringClassifier(),
    BitStringClassifier(code="hadamard", decoding="hamming"),
    BitStringClassifier(code=[[1, 1, 0, 1], [-1, 0, 1, 1], [1, -1, -1, -1]], decoding="exponential"),
]


@pytest.mark.parametrize("scheme", SHARED, ids=named)
@pytest.mark.parametrize("base", [SVC(gamma=0.3), NuSVC(nu=0.2, gamma=0.3), SVC(kernel="linear")])
def test_machines_that_share_a_kernel_are_those_that_do_not(scheme, base, iris):
    """The same machines as fits of their own, found by a subclass that nothing is known of."""

    class Subclass(type(base)):
        pass

    X, y = iris
    base = clone(base).set_params(tol=1e-8)
    shared = clone(scheme).set_params(estimator=base).fit(X, y)
    alone = clone(scheme).set_params(estimator=Subclass(**base.get_params())).fit(X, y)
    assert shared.sharing_ == ONE_KERNEL != alone.sharing_
    assert len(shared.estimators_) == len(alone.estimators_) == shared.code_.shape[1]
    np.testing.assert_allclose(shared.machine_decision(X), alone.machine_decision(X), atol=1e-5)
    np.testing.assert_array_equal(shared.predict(X), alone.predict(X))
    assert shared.machine_names_ == alone.machine_names_


def test_one_kernel_row_serves_all_machines(digits):
    """Where all rows fit, no machine but the first that wants it has a row computed: not more than n in all. By
    themselves, each machine needs its own."""
    X, y = digits
    shared = BitStringClassifier(SVC(gamma=0.1), code="random", n_bits=15, random_state=0).fit(X, y)
    assert shared.n_kernel_rows_.shape == (15,)
    assert shared.n_kernel_rows_[0] > 0
    assert shared.n_kernel_rows_.sum() <= len(y)
    alone = [SVC(gamma=0.1).fit(X, column[y]).n_kernel_rows_.sum() for column in shared.code_.T]
    assert sum(alone) > 5 * shared.n_kernel_rows_.sum()


def test_a_kernel_row_is_computed_once_for_all_machines_where_memory_allows():
    """Labels by chance and a small C: every row is wanted by every machine, and they take more than 64 MB."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 2)), rng.integers(0, 4, 5000)
    scheme = BitStringClassifier(SVC(C=0.01, gamma=1.0, cache_size=500), code="hadamard")
    assert scheme.fit(X, y).n_kernel_rows_.sum() == 5000
    scheme.set_params(estimator__cache_size=50)  # MB: half of the rows
    assert scheme.fit(X, y).n_kernel_rows_.sum() > 5000


def test_kernel_rows_are_of_shared_kernels_only(iris):
    model = OneVsRestClassifier(BasicLinearClassifier()).fit(*iris)
    with pytest.raises(AttributeError, match="These share nothing"):
        model.n_kernel_rows_  # noqa: B018


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
@pytest.mark.parametrize("scheme", [OneVsRestClassifier(), OneVsOneClassifier(), BitStringClassifier(code="hadamard")])
@pytest.mark.parametrize("base", [SVC(kernel="precomputed"), KernelPerceptron(kernel="precomputed", random_state=0)])
def test_a_gram_matrix_gives_the_same_model_as_its_points(scheme, base, iris):
    X, y = iris
    gram = X @ X.T
    given = clone(scheme).set_params(estimator=base).fit(gram, y)
    points = clone(scheme).set_params(estimator=clone(base).set_params(kernel="linear")).fit(X, y)
    assert given.n_features_in_ == len(y)
    np.testing.assert_array_equal(given.predict(gram[:7]), points.predict(X[:7]))
    assert certify(given, gram, y).claim("minimum distance").holds


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
def test_balanced_sides_are_fitted_each_by_itself(iris):
    X, y = iris
    rows = np.r_[0:20, 50:150]
    model = OneVsRestClassifier(SVC(class_weight="balanced", gamma=0.3)).fit(X[rows], y[rows])
    assert model.sharing_ == "nothing: each machine is fitted separately, because of class_weight='balanced'"
    side = np.where(y[rows] == "setosa", 1, -1)
    alone = SVC(class_weight="balanced", gamma=0.3).fit(X[rows], side)
    np.testing.assert_allclose(model.machine_decision(X)[:, 0], alone.decision_function(X))


# ---- every kind of estimator and of table


BASES = [
    SVC(),
    Perceptron(random_state=0, variant="averaged"),
    BasicLinearClassifier(),
    DecisionTreeClassifier(max_depth=3),
    DecisionStump(),
    LogisticRegression(),
    GaussianNB(),
    KNeighborsClassifier(1),
]


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
@pytest.mark.parametrize(
    "scheme", SHARED[:4], ids=lambda scheme: f"{type(scheme).__name__} {getattr(scheme, 'code', '')}"
)
def test_any_learner_can_be_a_machine(scheme, base, iris):
    X, y = iris
    model = clone(scheme).set_params(estimator=base).fit(X, y)
    assert model.score(X, y) > 0.6
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
        np.testing.assert_allclose(p.sum(axis=1), 1)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


class OnlyPredicts:
    """Neither a decision function nor probabilities."""

    def __init__(self):
        self.model = LogisticRegression()

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        self.model.fit(X, y)
        return self

    def predict(self, X):
        return self.model.predict(X)

    def __sklearn_tags__(self):
        return self.model.__sklearn_tags__()


def test_a_learner_without_scores_votes(iris):
    X, y = iris
    model = OneVsOneClassifier(OnlyPredicts()).fit(X, y)
    assert set(np.unique(model.machine_decision(X))) == {-1, 1}
    assert model.score(X, y) > 0.9
    assert not hasattr(model, "predict_proba")
    with pytest.raises(InputError, match=r"sample_weight is given, but OnlyPredicts\.fit does not accept it"):
        model.fit(X, y, sample_weight=np.ones(len(y)))


@pytest.mark.parametrize("k", range(2, 27))
def test_from_two_to_twenty_six_classes(k):
    X, y = blobs(k)
    schemes = [OneVsRestClassifier(), OneVsOneClassifier(), BitStringClassifier(), BitStringClassifier(code="hadamard")]
    for scheme in schemes:
        model = scheme.set_params(estimator=SVC(C=100, gamma=0.5)).fit(X, y)
        assert model.n_classes_ == k
        assert model.score(X, y) > 0.95
        assert model.decision_function(X).shape == ((len(y),) if k == 2 else (len(y), k))
        assert model.certificate_.holds is not False


def test_probabilities_of_a_shared_kernel_follow_predict(digits):
    X, y = digits
    for scheme in (
        OneVsRestClassifier(),
        OneVsOneClassifier(),
        BitStringClassifier(code="hadamard", decoding="hamming"),
    ):
        model = clone(scheme).set_params(estimator=SVC(gamma=0.05, probability=True)).fit(X[:400], y[:400])
        p = model.predict_proba(X[400:])
        np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[400:]))
        assert np.mean(p[np.arange(300), y[400:]]) > 0.5
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X[400:])), p)


def test_predict_proba_names_an_estimator_with_probabilities(iris):
    X, y = iris
    model = BitStringClassifier(SVC()).fit(X, y)
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)
    with pytest.raises(AttributeError) as caught:
        model.predict_proba(X)
    assert "SVC(probability=True)" in str(caught.value.__cause__)
    calibrated = BitStringClassifier(CalibratedClassifierCV(Perceptron(variant="averaged", max_iter=5, random_state=0)))
    with pytest.warns(ConvergenceWarning):
        calibrated.fit(X, y)
    assert calibrated.predict_proba(X).shape == (150, 3)


@pytest.mark.parametrize("kind", ["Table", "pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("scheme", [OneVsRestClassifier(), OneVsOneClassifier()])
def test_tables_with_categories_and_missing_cells_go_through_to_trees(kind, scheme):
    penguins = load_penguins()
    y = penguins.labels()
    frame = pd.DataFrame(
        {
            column.name: [None if code < 0 else column.levels[code] for code in column.values]
            if column.kind == "category"
            else column.values
            for column in penguins
        }
    )
    X = {
        "Table": lambda: penguins,
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "pyarrow": lambda: pa.Table.from_pandas(frame),
    }[kind]()
    model = clone(scheme).set_params(estimator=DecisionTreeClassifier(max_depth=3)).fit(X, y)
    assert model.sharing_ == ONE_TABLE
    assert model.score(X, y) > 0.95
    assert model.feature_names_in_.tolist() == list(frame.columns)
    certificate = certify(model, X, y)
    assert certificate.holds
    assert len(certificate["leaves"]) == 3
    encoded = clone(scheme).set_params(estimator=make_pipeline(TableEncoder(), SVC(C=10))).fit(X, y)
    assert encoded.score(X, y) > 0.95
    assert certify(encoded, X, y).holds


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.coo_matrix, sp.csc_array])
@pytest.mark.parametrize("base", [SVC(gamma=0.3), DecisionTreeClassifier(max_depth=3), RidgeClassifier()])
def test_sparse_rows_give_the_same_model_as_dense_ones(make, base, iris):
    X, y = iris
    for scheme in (OneVsOneClassifier(base), BitStringClassifier(base)):
        dense, sparse = clone(scheme).fit(X, y), clone(scheme).fit(make(X), y)
        np.testing.assert_allclose(sparse.machine_decision(make(X)), dense.machine_decision(X), atol=1e-3)


def test_a_category_is_unseen_if_no_machine_has_seen_it():
    """A level is of one class alone, so that the machine of the other two has not seen it."""
    y = np.repeat(["a", "b", "c"], 20)
    frame = pd.DataFrame({"level": np.where(y == "c", "rare", "usual"), "x": np.arange(60) // 20})
    model = OneVsOneClassifier(DecisionTreeClassifier()).fit(frame, y)
    assert model.score(frame, y) == 1
    with pytest.warns(UnseenCategoryWarning, match="'d'") as caught:
        model.predict(frame.assign(level="d"))
    assert len(caught) == 1


# ---- weights


@pytest.mark.parametrize("base", [SVC(gamma=0.3, tol=1e-8), DecisionTreeClassifier(max_depth=3)])
@pytest.mark.parametrize("scheme", [OneVsRestClassifier(), OneVsOneClassifier(), BitStringClassifier()])
def test_a_weight_of_two_is_a_row_twice(base, scheme, iris):
    X, y = iris
    weight = np.random.default_rng(0).integers(1, 3, size=len(y))
    weighted = clone(scheme).set_params(estimator=base).fit(X, y, sample_weight=weight)
    repeated = clone(scheme).set_params(estimator=base).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.machine_decision(X), repeated.machine_decision(X), atol=1e-5)
    assert certify(weighted, X, y, weight).claim("minimum distance").holds


def test_weights_reach_the_last_step_of_a_pipeline(iris):
    X, y = iris
    weight = np.where(y == "setosa", 1.0, 5.0)
    model = OneVsRestClassifier(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    alone = LogisticRegression().fit(scaled, y == "setosa", sample_weight=weight)
    np.testing.assert_allclose(model.machine_decision(X)[:, 0], alone.decision_function(scaled))


# ---- what is refused


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (OneVsRestClassifier("svc"), "estimator is 'svc'; it must be an estimator, such as SVC"),
        (OneVsRestClassifier(SVC), "it must be an estimator"),
        (OneVsRestClassifier(SVC(class_weight={2: 2.0})), "its classes are the two sides of a machine"),
        (
            BitStringClassifier(AdaBoostClassifier(DecisionStump(class_weight={"setosa": 2.0}))),
            "estimator__class_weight={'setosa': 2.0}; its classes are the two sides of a machine.*or sample_weight",
        ),
        (
            OneVsOneClassifier(make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(class_weight={2: 2.0})))),
            "calibratedclassifiercv__estimator__class_weight",
        ),
        (OneVsRestClassifier(n_jobs=0), "n_jobs is 0"),
        (
            OneVsRestClassifier(n_jobs="all"),
            "n_jobs is 'all'; it must be a whole number other than 0, -1 for all cores",
        ),
        (OneVsRestClassifier(OneClassSVM()), "estimator is a OneClassSVM, which is fitted without y"),
        (
            OneVsOneClassifier(make_pipeline(StandardScaler(), KMeans(2))),
            "estimator is a KMeans, which is fitted without",
        ),
        (OneVsOneClassifier(StandardScaler()), "estimator is a StandardScaler, which has no predict"),
        (BitStringClassifier(code="random", random_state="luck"), "random_state is 'luck'; it must be None, a whole"),
        (OneVsOneClassifier(verbose="yes"), "verbose is 'yes'"),
        (BitStringClassifier(decoding="euclid"), "decoding is 'euclid'; it must be one of 'hamming'"),
        (BitStringClassifier(code="random", n_bits=1), "3 classes need at least 2"),
        (BitStringClassifier(code=[[1], [-1]]), "has 2 rows; y has 3 classes"),
        (BitStringClassifier(code=[[1, 1], [-1, 1], [1, 1]]), "column 1 has no −1"),
    ],
)
def test_parameters_that_cannot_be_are_refused_before_any_work(model, words, iris):
    with pytest.raises(ParameterError, match=words):
        model.fit(*iris)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(SVC()),
        OneVsOneClassifier(BasicLinearClassifier()),
        BitStringClassifier(DecisionTreeClassifier()),
        SVC(),
        Perceptron(max_iter=5, random_state=0),
        AdaBoostClassifier(n_estimators=3),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
def test_whole_numbers_that_came_as_objects_are_labels_to_schemes_and_learners_alike(model, iris):
    X, y = iris[0], np.arange(150) % 3 + 5
    plain, objects = clone(model).fit(X, y), clone(model).fit(X, y.astype(object))
    np.testing.assert_array_equal(objects.classes_, [5, 6, 7])
    assert objects.classes_.dtype == y.dtype
    np.testing.assert_array_equal(objects.predict(X), plain.predict(X))
    assert certify(objects, X, y.astype(object)).holds == certify(plain, X, y).holds


@pytest.mark.parametrize("model", [OneVsRestClassifier(SVC()), SVC(), AdaBoostClassifier()], ids=repr)
def test_labels_of_several_types_are_refused_by_schemes_and_learners_alike(model):
    X = np.arange(3.0)[:, None]
    with pytest.raises(InputError, match="mixes labels of different types: int, str"):
        model.fit(X, np.array([1, "a", "b"], dtype=object))
    with pytest.raises(InputError, match="contains NaN, first in row 2"):
        model.fit(X, np.array(["a", "b", None], dtype=object))
    with pytest.raises(ValueError, match="Unknown label type"):  # scikit-learn's words
        model.fit(X, np.array([1, 2, 2**70], dtype=object))


def test_labels_that_cannot_be_are_refused(iris):
    X, y = iris
    for scheme in (OneVsOneClassifier(), BitStringClassifier()):
        with pytest.raises(InputError, match=r"can not be fit when only one class.*only one class, 'setosa'"):
            scheme.fit(X[:50], y[:50])
        with pytest.raises(InputError, match="use OneVsRestClassifier, whose fit takes an indicator matrix"):
            scheme.fit(X, np.eye(3, dtype=int)[np.arange(150) % 3])
    with pytest.raises(InputError, match="multiclass-multioutput: Multioutput target data is not supported"):
        OneVsRestClassifier().fit(X, np.arange(300).reshape(150, 2))
    with pytest.raises(InputError, match="X has 150 rows and y has 149"):
        OneVsRestClassifier().fit(X, np.eye(3, dtype=int)[np.arange(149) % 3])
    with pytest.raises(InputError, match="X has 150 rows and y has 149"):
        OneVsRestClassifier().fit(X, y[:-1])


# ---- Ctrl-C, progress, words


class Interrupted(BasicLinearClassifier):
    """Ctrl-C in the second machine: the solver reports it by a status."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        Interrupted.fits += 1
        if Interrupted.fits == 2:
            self.status_ = Status.INTERRUPTED
        return self


def test_ctrl_c_leaves_the_model_as_it_was(iris):
    X, y = iris
    model = OneVsRestClassifier(BasicLinearClassifier()).fit(X[:100], y[:100])
    before = dict(vars(model))
    Interrupted.fits = 0
    model.set_params(estimator=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], y)
    assert Interrupted.fits == 2
    assert {**vars(model), "estimator": None} == {**before, "estimator": None}


def test_progress_is_reported_for_each_machine(iris):
    seen = []
    with watched(seen.append):
        OneVsOneClassifier(DecisionTreeClassifier()).fit(*iris)
    assert {each.stage for each in seen} == {"machines"}
    assert [each.done for each in seen] == sorted(each.done for each in seen)
    assert {1.0, 2.0, 3.0} <= {each.done for each in seen}
    assert {each.total for each in seen} == {3.0}


def test_verbose_names_each_machine(iris, capsys):
    OneVsRestClassifier(BasicLinearClassifier(), verbose=True).fit(*iris)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("[OneVsRestClassifier] machine 2 of 3, versicolor vs rest: ")


def test_two_processes_fit_the_same_model_as_one(iris):
    X, y = iris
    one, two = (OneVsOneClassifier(RidgeClassifier(), n_jobs=n).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")
def test_the_status_is_that_of_the_machine_that_did_not_converge(iris):
    X, y = iris
    model = OneVsRestClassifier(Perceptron(max_iter=5, random_state=0)).fit(X, y)
    assert [each.status_ for each in model.estimators_] == [Status.CONVERGED, Status.MAX_ITER, Status.MAX_ITER]
    assert model.status_ is Status.MAX_ITER
    assert model.engine_ == "native"
    assert OneVsRestClassifier(LogisticRegression()).fit(X, y).engine_ == "sklearn"


def test_a_search_over_the_estimators_parameters(iris):
    X, y = iris
    search = GridSearchCV(
        BitStringClassifier(SVC()), {"estimator__C": [0.1, 10], "code": ["binary", "hadamard"]}, cv=3
    ).fit(X, y)
    assert search.best_score_ > 0.9
    assert certify(search, X, y).holds


def test_all_decodings_agree_where_the_machines_are_sure():
    X, y = make_blobs(200, centers=6, cluster_std=0.3, random_state=4)
    predictions = [
        BitStringClassifier(SVC(C=10), code="hadamard", decoding=decoding).fit(X, y).predict(X)
        for decoding in DECODINGS
    ]
    for predicted in predictions:
        np.testing.assert_array_equal(predicted, y)


# ---- certificates


@pytest.mark.parametrize("scheme", SHARED, ids=named)
@pytest.mark.parametrize("base", [SVC(gamma=0.3), BasicLinearClassifier(), DecisionTreeClassifier(max_depth=2)])
def test_the_certificate_holds_and_covers_every_machine(scheme, base, iris):
    X, y = iris
    model = clone(scheme).set_params(estimator=base).fit(X, y)
    certificate = certify(model, X, y)
    assert certificate.holds
    assert certificate.source == "recomputed"
    assert certificate.n_rows == 150
    assert certificate.learner == type(scheme).__name__
    assert certificate["minimum distance"] == codes.minimum_distance(model.code_) == model.min_distance_
    assert certificate["errors it can correct"] == model.errors_corrected_
    assert certificate.machines == model.machine_names_
    assert any(len(claim.values) == len(model.machine_names_) for claim in certificate.claims)
    assert len(column_certificates(model, X, y)) == len(model._machines.estimators)


def test_a_machine_that_was_changed_is_found(iris):
    X, y = iris
    model = OneVsOneClassifier(BasicLinearClassifier()).fit(X, y)
    model.estimators_[1].coef_[0, 0] += 0.1
    certificate = certify(model, X, y)
    assert certificate.holds is False
    claim = certificate.claim("machines whose certificate holds")
    assert claim.values == (1.0, 0.0, 1.0)
    assert claim.words.startswith("virginica vs setosa: ")


def test_a_code_that_was_changed_is_found(iris):
    X, y = iris
    shared = BitStringClassifier(SVC(), code="hadamard").fit(X, y)
    shared.code_ = shared.code_[:, ::-1]
    assert certify(shared, X, y).holds is False
    alone = BitStringClassifier(BasicLinearClassifier(), code="hadamard").fit(X, y)
    alone.code_ = alone.code_[:, ::-1]
    assert certify(alone, X, y).holds is False
    changed = BitStringClassifier(SVC()).fit(X, y)
    changed.errors_corrected_ = 5
    assert certify(changed, X, y).holds is False


def test_machines_that_ended_of_themselves_leave_the_scheme_converged(iris):
    X, y = iris
    model = OneVsRestClassifier(AdaBoostClassifier(n_estimators=5)).fit(X, y)
    assert [str(each.status_) for each in model.estimators_] == ["perfect_learner", "converged", "converged"]
    assert model.status_ is Status.CONVERGED
    model.estimators_[2].status_ = Status.TIME_LIMIT
    assert model._machines.status is Status.TIME_LIMIT


def test_no_machine_vouches_for_itself(iris):
    X, y = iris
    model = OneVsRestClassifier(DecisionTreeClassifier(max_depth=2)).fit(X, y)
    assert model.certificate_.holds is None
    assert "holds" not in str(model.certificate_)


def test_a_line_of_a_certificate_names_a_machine_of_many_classes_in_short():
    X, y = np.random.default_rng(0).normal(size=(130, 3)), np.array(list(ascii_uppercase))[np.arange(130) % 26]
    certificate = certify(BitStringClassifier(BasicLinearClassifier()).fit(X, y), X, y)
    assert len(max(certificate.machines, key=len)) > 50
    assert max(len(value) for _, _, value, _ in certificate.rows()) < 80
    assert "worst of 5: " in str(certificate)


def test_learners_without_a_certificate_give_an_error(iris):
    X, y = iris
    model = OneVsRestClassifier(LogisticRegression()).fit(X, y)
    assert model.certificate_.holds is None
    assert model.certificate_["minimum distance"] == 2
    with pytest.raises(InputError, match="LogisticRegression has no certificate"):
        certify(model, X, y)
    with pytest.raises(InputError, match="OneVsRestClassifier of sklearn has no certificate"):
        certify(peers.OneVsRestClassifier(SVC()).fit(X, y), X, y)


@pytest.mark.parametrize(
    "base",
    [DecisionTreeClassifier(max_depth=4), AdaBoostClassifier(n_estimators=5)],
    ids=lambda base: type(base).__name__,
)
def test_trees_and_boosts_of_all_rows_sort_the_table_once_and_are_those_of_each_by_itself(base, iris, monkeypatch):
    X, y = iris
    sorts, sorted_columns = [], native_tree.core.SortedColumns

    def counted(*given, **named):
        sorts.append(given)
        return sorted_columns(*given, **named)

    monkeypatch.setattr(native_tree.core, "SortedColumns", counted)
    model = OneVsRestClassifier(base).fit(X, y)
    assert model.sharing_ == ONE_TABLE
    assert len(sorts) == 1
    for k, machine in zip(model.classes_, model.estimators_, strict=True):
        alone = clone(base).fit(X, np.where(y == k, 1, 0))
        np.testing.assert_array_equal(machine.predict(X), alone.predict(X))
    assert certify(model, X, y).holds


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater")
@pytest.mark.parametrize(
    "estimator", [None, BasicLinearClassifier(), DecisionTreeClassifier(), Perceptron(random_state=0)], ids=str
)
def test_pairs_of_many_classes_of_one_row_take_little_time(estimator):
    """780 machines of two rows each."""
    X, y = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40)
    started = time.process_time()
    model = OneVsOneClassifier(estimator).fit(X, y)
    assert time.process_time() - started < 2
    assert model.machine_decision(X).shape == (40, 780)
