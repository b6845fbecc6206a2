"""Our fitted models as scikit-learn's. Trees have a file of their own, tests/tree/test_sklearn_tree.py."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import margrove
from margrove import (
    SVC,
    SVCCV,
    SVR,
    AdaBoostClassifier,
    AdaBoostRegressor,
    BitStringClassifier,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    KernelPerceptron,
    LeastSquaresClassifier,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    certify,
    from_sklearn,
    to_sklearn,
)
from margrove.errors import InputError
from margrove.learner import learners

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
X, Y = IRIS[0].astype(np.float32).astype(np.float64), IRIS[1]  # trees of scikit-learn round cells to float32
Z = DIABETES[0].astype(np.float32).astype(np.float64)
LABELS = np.array(["setosa", "versicolor", "virginica"])[Y]
WEIGHT = np.where(np.arange(150) % 7 == 0, 0.0, 1.0 + np.arange(150) % 3)
METHODS = ("predict", "decision_function", "score_samples", "predict_proba")

MACHINES = [
    SVC(C=10.0),
    SVC(kernel="linear", class_weight="balanced", tol=1e-6),
    SVC(kernel="poly", degree=2.0, coef0=1.0, decision_function_shape="ovo"),
    SVC(kernel="sigmoid", gamma=0.01, cache_size=50),
    SVC(sigma=2.0, break_ties=True),
    SVC(gamma="median"),
    NuSVC(nu=0.2),
]
LINEAR = [
    LinearSVC(dual=False),
    LinearSVC(loss="hinge", C=0.1),
    LinearSVC(multi_class="crammer_singer"),
    LinearSVC(penalty="l1", dual=False, regularize_intercept=False),
    Perceptron(max_iter=20, tol=1e-3),
    Perceptron(max_iter=20, variant="averaged"),
    Perceptron(max_iter=20, penalty="elasticnet"),
]
COMBINED = [
    DecisionStump(),
    AdaBoostClassifier(n_estimators=7),
    AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5, learning_rate=0.5, random_state=3),
    AdaBoostClassifier(SVC(gamma=0.1), n_estimators=3),
    AdaBoostClassifier(LogisticRegression(max_iter=500), n_estimators=3),
    OneVsRestClassifier(),
    OneVsRestClassifier(DecisionTreeClassifier(max_depth=2)),
    OneVsRestClassifier(AdaBoostClassifier(n_estimators=3)),
    OneVsRestClassifier(make_pipeline(StandardScaler(), LinearSVC())),
    OneVsOneClassifier(SVC(C=10, gamma=0.1)),
    OneVsOneClassifier(LinearSVC()),
    OneVsOneClassifier(LogisticRegression(max_iter=500)),
]
NUMBERS = [
    SVR(C=100.0),
    SVR(kernel="linear", epsilon=10.0),
    NuSVR(C=50.0, nu=0.3),
    OneClassSVM(nu=0.2),
    LinearSVR(C=10.0),
    LinearSVR(loss="squared_epsilon_insensitive", regularize_intercept=False),
    AdaBoostRegressor(n_estimators=4, random_state=0),
    AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), n_estimators=4, loss="square", random_state=0),
    AdaBoostRegressor(SVR(C=100.0), n_estimators=2, random_state=0),
]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:X is not scaled")


def assert_equal(ours, rows, skipped=()):
    """Assert that the converted model is fitted, is scikit-learn's, can be copied, and agrees with ours on the rows."""
    theirs = to_sklearn(ours)
    assert type(theirs).__module__.startswith("sklearn.")
    check_is_fitted(theirs)
    assert type(clone(theirs)) is type(theirs)
    for each in (theirs, pickle.loads(pickle.dumps(theirs)) if not callable(getattr(ours, "kernel", "")) else theirs):
        for method in METHODS:
            if method not in skipped and hasattr(each, method) and hasattr(ours, method):
                expected, found = getattr(ours, method)(rows), getattr(each, method)(rows)
                assert found.dtype == expected.dtype
                if expected.dtype.kind == "f":
                    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
                else:
                    np.testing.assert_array_equal(found, expected)
    return theirs


def named(model):
    return repr(model)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MACHINES + LINEAR + COMBINED, ids=named)
def test_classifiers_predict_the_same(model, n_classes, is_sparse):
    rows = LABELS != "virginica" if n_classes == 2 else LABELS != ""
    points = sp.csr_matrix(X[rows]) if is_sparse else X[rows]
    if is_sparse and "StandardScaler" in repr(model):
        pytest.skip("it does not centre sparse rows")
    ours = clone(model).fit(points, LABELS[rows])
    # With two classes scikit-learn adds the vote to the value.
    is_two_pairs = isinstance(model, OneVsOneClassifier) and n_classes == 2
    theirs = assert_equal(ours, points, skipped=("decision_function",) if is_two_pairs else ())
    assert theirs.classes_.tolist() == ours.classes_.tolist()


@pytest.mark.parametrize("model", [*MACHINES[:2], LINEAR[0], LINEAR[4], *COMBINED[:3]], ids=named)
def test_weights_and_names_of_columns_come_along(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    theirs = assert_equal(clone(model).fit(frame, LABELS, sample_weight=WEIGHT), frame)
    assert theirs.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        theirs.predict(frame.rename(columns={"a": "z"}))


@pytest.mark.parametrize("model", COMBINED[1:], ids=named)
def test_ensembles_pass_columns_with_names_without_a_warning(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    theirs = assert_equal(clone(model).fit(frame, LABELS), frame)
    assert theirs.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("model", NUMBERS, ids=named)
def test_regressions_and_one_class_predict_the_same(model, is_sparse):
    points = sp.csr_matrix(Z) if is_sparse else Z
    assert_equal(clone(model).fit(points, DIABETES[1]), points)


@pytest.mark.parametrize("model", [*MACHINES, LinearSVC(dual=False, tol=1e-6), DecisionTreeClassifier()], ids=named)
def test_there_and_back_is_certified(model):
    ours = clone(model).fit(X, LABELS)
    again = from_sklearn(to_sklearn(ours))
    assert (again.predict(X) == ours.predict(X)).all()
    assert certify(again, X, LABELS).holds


@pytest.mark.parametrize("model", NUMBERS[:4], ids=named)
def test_regressions_there_and_back_are_certified(model):
    ours = clone(model).fit(Z, DIABETES[1])
    assert certify(from_sklearn(to_sklearn(ours)), Z, DIABETES[1]).holds


@pytest.mark.parametrize("model", [*MACHINES, *LINEAR, *COMBINED], ids=named)
def test_a_converted_model_can_be_fitted_again(model):
    """Its parameters are scikit-learn's: no gamma="median", cache_size="auto" or deprecated probability."""
    again = clone(to_sklearn(clone(model).fit(X, Y)))
    assert again.fit(X, Y).score(X, Y) > 0.4


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("machine", [SVC, NuSVC])
def test_probabilities_are_the_same_where_they_agree_with_predict(machine, n_classes):
    rows = np.flatnonzero(2 - n_classes < Y)
    ours = machine(probability=True).fit(X[rows], LABELS[rows])
    theirs = assert_equal(ours, X[rows], skipped=("predict_proba",))
    expected = theirs.predict_proba(X[rows])
    agrees = theirs.classes_[expected.argmax(axis=1)] == theirs.predict(X[rows])
    assert agrees.mean() > 0.9
    # LIBSVM iterates until no probability changes by more than 0.005/K.
    np.testing.assert_allclose(ours.predict_proba(X[rows])[agrees], expected[agrees], atol=0.005)
    np.testing.assert_allclose(from_sklearn(theirs).predict_proba(X[rows]), ours.predict_proba(X[rows]), atol=1e-12)


@pytest.mark.parametrize("model", [SVC, SVR, NuSVC, NuSVR, OneClassSVM])
def test_gram_matrices_and_functions_stay_kernels(model):
    def product(these, those):
        return np.asarray(these, float) @ np.asarray(those, float).T

    near = X + 0.01
    of_matrix = model(kernel="precomputed").fit(X @ X.T, Y)
    theirs = assert_equal(of_matrix, near @ X.T)
    assert theirs.shape_fit_ == (150, 150)
    assert certify(from_sklearn(theirs), X @ X.T, Y).holds
    assert_equal(model(kernel=product).fit(X, Y), near)


def test_a_kernel_of_texts_keeps_them():
    def same(these, those):
        return np.array([[float(this == that) + 0.1 for that in those] for this in these])

    ours = SVC(kernel=same).fit(["a", "b", "a", "c"], [0, 1, 0, 1])
    assert to_sklearn(ours).predict(["c", "a"]).tolist() == ours.predict(["c", "a"]).tolist() == [1, 0]


def test_machines_of_a_gram_matrix_see_their_own_columns():
    ours = OneVsOneClassifier(SVC(kernel="precomputed")).fit(X @ X.T, Y)
    assert_equal(ours, (X + 0.1) @ X.T)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_several_labels_per_row(is_sparse):
    several = np.stack([Y == 0, X[:, 0] > 6], axis=1).astype(int)
    ours = OneVsRestClassifier(LinearSVC()).fit(X, sp.csr_matrix(several) if is_sparse else several)
    theirs = to_sklearn(ours)
    found, expected = theirs.predict(X), ours.predict(X)
    assert sp.issparse(found) == sp.issparse(expected) == is_sparse
    assert abs(found - expected).sum() == 0
    np.testing.assert_allclose(theirs.decision_function(X), ours.decision_function(X))


def test_a_pipeline_keeps_its_other_steps():
    ours = make_pipeline(StandardScaler(), SVC(C=3.0)).fit(X, LABELS)
    theirs = assert_equal(ours, X)
    assert theirs[0] is ours[0]
    assert type(theirs[-1]).__module__.startswith("sklearn.")
    assert type(ours[-1]) is SVC
    assert theirs.get_params()["svc__C"] == 3.0


def test_a_converted_model_shares_no_weights_with_ours():
    ours = Perceptron(max_iter=3).fit(X, Y)
    before = ours.coef_.copy()
    to_sklearn(ours).partial_fit(X, Y[::-1])
    np.testing.assert_array_equal(ours.coef_, before)


def test_float32_and_no_support_vectors():
    points = sp.csr_matrix(np.eye(4))
    flat = SVR(kernel="linear", epsilon=1.0).fit(points, [0.04, 0.04, 0.10, 0.16])
    assert len(flat.support_) == 0
    assert_equal(flat, points)
    single = SVC().fit(X.astype(np.float32), Y)
    assert to_sklearn(single).support_vectors_.dtype == np.float64
    np.testing.assert_allclose(to_sklearn(single).decision_function(X), single.decision_function(X), rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(kernel="laplacian"), "LIBSVM has no laplacian kernel"),
        (SVC(multiclass="ovr"), "only one machine for each pair of labels, and multiclass is ovr"),
        (SVC(kernel=lambda these, those: these @ those.T, multiclass="ovr"), "multiclass is ovr"),
        (Perceptron(variant="voted", max_iter=5), "a voted perceptron"),
        (KernelPerceptron(max_iter=5), "KernelPerceptron cannot be converted to scikit-learn"),
        (LeastSquaresClassifier(), "Models that can be converted: Perceptron, SVC, "),
        (BitStringClassifier(), "BitStringClassifier cannot be converted"),
        (AdaBoostClassifier(LeastSquaresClassifier(), n_estimators=2), "LeastSquaresClassifier cannot be converted"),
        (make_pipeline(StandardScaler(), LeastSquaresClassifier()), "LeastSquaresClassifier cannot be converted"),
        (SVCCV(Cs=[1.0], gammas=[0.1], cv=2), "Convert its best_estimator_"),
        (GridSearchCV(SVC(), {"C": [1.0]}, cv=2), "Convert its best_estimator_"),
        (sklearn.svm.SVC(), "SVC cannot be converted to scikit-learn. It is already a model of scikit-learn"),
    ],
)
def test_what_scikit_learn_does_not_have_is_refused(model, words):
    with pytest.raises(InputError, match=words):
        to_sklearn(model.fit(X, Y))


def test_every_model_with_a_peer_can_be_converted():
    names = [each.name for each in learners() if each.key.startswith("margrove.") and each.peers]
    assert names == [each.name for each in learners() if each.to_peer is not None and each.peers]
    assert all(hasattr(margrove, name) for name in names)


@pytest.mark.filterwarnings("ignore:Label 1 is present")
def test_a_constant_machine_is_refused():
    ours = OneVsRestClassifier(LinearSVC()).fit(X, np.stack([Y == 0, Y >= 0], axis=1).astype(int))
    with pytest.raises(InputError, match="ConstantMachine cannot be converted to scikit-learn"):
        to_sklearn(ours)
