"""Every learner as an ONNX file: onnxruntime says what we say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
import sklearn.tree
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from tests.store.onnx_parity import assert_same, run

from margrove import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    AdaBoostClassifier,
    AdaBoostRegressor,
    BasicLinearClassifier,
    BitStringClassifier,
    CalibratedClassifier,
    DecisionStump,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesRegressor,
    KernelPerceptron,
    LeastSquaresClassifier,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OneVsOneClassifier,
    OneVsRestClassifier,
    Perceptron,
    RandomForestClassifier,
    RandomForestRegressor,
    SoftmaxClassifier,
    TableEncoder,
    from_sklearn,
)
from margrove.store import read_libsvm_model, write_libsvm_model

pytestmark = pytest.mark.filterwarnings("ignore::margrove.errors.ConvergenceWarning")

KERNELS = ("linear", "rbf", "poly", "sigmoid", "laplacian", "chi2", "intersection")
SCHEMES = (OneVsRestClassifier, OneVsOneClassifier, BitStringClassifier)

CLASSIFIERS: dict[str, Any] = {
    "basic": BasicLinearClassifier(),
    "least squares": LeastSquaresClassifier(),
    "perceptron": Perceptron(max_iter=20, random_state=0),
    "averaged": Perceptron(variant="averaged", max_iter=20, random_state=0),
    "voted": Perceptron(variant="voted", max_iter=5, random_state=0),
    "linear": LinearSVC(),
    "linear, l1": LinearSVC(penalty="l1", C=0.1),
    "linear, joint": LinearSVC(multi_class="crammer_singer"),
    "linear search": LinearSVCCV(Cs=[0.1, 1.0]),
    "softmax": SoftmaxClassifier(C=10.0),
    "svc, one against the rest": SVC(multiclass="ovr", probability=True),
    "svc, values of the pairs": SVC(decision_function_shape="ovo"),
    "svc, ties broken": SVC(break_ties=True),
    "svc, reference": SVC(engine="reference"),
    "nu-svc": NuSVC(nu=0.2, probability=True),
    "svc search": SVCCV(Cs=[1.0, 10.0], gammas=[0.1]),
    "their search": GridSearchCV(SVC(), {"C": [1.0, 10.0]}, cv=3),
    "stump": DecisionStump(),
    "tree": DecisionTreeClassifier(max_depth=4, smoothing=1.0),
    "forest": RandomForestClassifier(n_estimators=10),
    "boost": AdaBoostClassifier(n_estimators=15),
    "boosted trees": AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5),
    "boosted machines": AdaBoostClassifier(SVC(C=0.1), n_estimators=3),
    "calibrated": CalibratedClassifier(LinearSVC()),
    "calibrated tree": CalibratedClassifier(DecisionTreeClassifier(max_depth=2)),
    "calibrated and tuned": CalibratedClassifier(make_pipeline(TableEncoder(), SVC(C=0.1)), tuned_for="f1_macro"),
}
MACHINES: dict[str, Any] = {
    "svc": SVC(),
    "svc with probabilities": SVC(probability=True),
    "each by itself": SVC(class_weight="balanced"),
    "perceptron": Perceptron(max_iter=10, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=2),
    "boost": AdaBoostClassifier(n_estimators=4),
    "pipeline": make_pipeline(TableEncoder(), LinearSVC()),
}
REGRESSIONS: dict[str, Any] = {
    "svr": SVR(C=100.0),
    "svr, linear": SVR(kernel="linear", C=100.0),
    "nu-svr": NuSVR(C=100.0, kernel="poly", coef0=1.0, degree=2),
    "linear": LinearSVR(C=10.0),
    "search": SVRCV(Cs=[1.0, 100.0], gammas=[1.0]),
    "tree": DecisionTreeRegressor(max_depth=4),
    "forest": RandomForestRegressor(n_estimators=10, max_depth=5),
    "extra trees": ExtraTreesRegressor(n_estimators=10),
    "boost": AdaBoostRegressor(n_estimators=10, random_state=0),
    "boosted machines": AdaBoostRegressor(SVR(), n_estimators=3, random_state=0),
}


def iris(classes: int) -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    # Of two classes the two that touch, so that not all is settled.
    return (X, names[y]) if classes == 3 else (X[50:], names[y[50:]])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_predicts_the_same_in_onnx(name, classes):
    X, y = iris(classes)
    assert_same(CLASSIFIERS[name].fit(X[::2], y[::2]), X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_is_the_same_in_onnx(kernel, classes):
    X, y = iris(classes)
    assert_same(SVC(kernel=kernel, probability=True, degree=2, coef0=0.5).fit(X[::2], y[::2]), X)
    assert_same(KernelPerceptron(kernel=kernel, max_iter=5, random_state=0).fit(X[::2], y[::2]), X)
    found = assert_same(OneClassSVM(kernel=kernel, nu=0.2).fit(X[::2]), X)
    assert set(found["label"].tolist()) <= {-1, 1}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_of_machines_predicts_the_same_in_onnx(scheme, machine, classes):
    X, y = iris(classes)
    assert_same(scheme(MACHINES[machine]).fit(X[::2], y[::2]), X)


@pytest.mark.parametrize("decoding", ["hinge", "hamming", "exponential", "linear"])
def test_every_decoding_is_the_same_in_onnx(decoding):
    X, y = iris(3)
    code = [[1, 1, 0, -1], [-1, 0, 1, 1], [0, -1, -1, 1]]
    model = BitStringClassifier(SVC(probability=True), code=np.array(code), decoding=decoding)
    assert_same(model.fit(X[::2], y[::2]), X)


def test_a_code_matrix_of_a_machine_is_the_same_in_onnx():
    X, y = iris(3)
    code = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])
    assert_same(SVC(multiclass=code, probability=True).fit(X[::2], y[::2]), X)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_regression_predicts_the_same_in_onnx(name):
    X, y = load_diabetes(return_X_y=True)
    found = assert_same(REGRESSIONS[name].fit(X[::3], y[::3]), X)
    assert list(found) == ["prediction"]


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True), MaxAbsScaler(), RobustScaler()])
def test_their_scalers_go_along(scaler):
    X, y = iris(3)
    assert_same(make_pipeline(scaler, "passthrough", SVC()).fit(X[::2], y[::2]), X)


@pytest.mark.parametrize("model", [SVC(), LinearSVC(), DecisionTreeClassifier(max_depth=3)], ids=repr)
def test_models_fitted_on_sparse_rows_take_dense_ones(model):
    X, y = iris(3)
    assert_same(model.fit(sp.csr_matrix(X), y), X)


def test_an_encoder_of_sparse_rows_goes_along():
    X, y = iris(3)
    assert_same(make_pipeline(TableEncoder(), LinearSVC()).fit(sp.csr_matrix(X), y), sp.csr_matrix(X))


@pytest.mark.parametrize("step", [TableEncoder(), StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()])
@pytest.mark.parametrize(
    "model", [LinearSVC(), SVC(kernel="poly"), SVC(kernel="linear"), LinearSVC(C=0.1), SoftmaxClassifier()], ids=repr
)
def test_a_single_column_keeps_its_digits(step, model):
    """onnxruntime draws a single number beside a product into it, as float32."""
    X, y = iris(2)
    assert_same(make_pipeline(step, model).fit(X[:, 2:3], y), X[:, 2:3] / 3)


def test_a_sparse_plane_is_written():
    X, y = iris(2)
    assert_same(LinearSVC(penalty="l1", C=0.1).fit(X, y).sparsify(), X)


THEIRS: dict[str, Any] = {
    "SVC": sklearn.svm.SVC(C=10.0),
    "NuSVC": sklearn.svm.NuSVC(nu=0.2),
    "LinearSVC": sklearn.svm.LinearSVC(),
    "OneClassSVM": sklearn.svm.OneClassSVM(nu=0.2),
    "SVR": sklearn.svm.SVR(),
    "NuSVR": sklearn.svm.NuSVR(),
    "LinearSVR": sklearn.svm.LinearSVR(max_iter=100_000, random_state=0),
    "DecisionTreeClassifier": sklearn.tree.DecisionTreeClassifier(max_depth=4, random_state=0),
    "DecisionTreeRegressor": sklearn.tree.DecisionTreeRegressor(max_depth=4, random_state=0),
}


@pytest.mark.parametrize("name", THEIRS)
def test_models_of_scikit_learns_go_on_to_onnx(name):
    X, y = load_iris(return_X_y=True)
    theirs = THEIRS[name].fit(X, y)
    found = assert_same(from_sklearn(theirs), X)
    predicted = theirs.predict(X)
    if "label" in found:
        assert found["label"].tolist() == predicted.tolist()
    else:
        np.testing.assert_allclose(found["prediction"], predicted, rtol=1e-9, atol=1e-9)


def test_models_of_libsvms_go_on_to_onnx(tmp_path):
    X, y = load_iris(return_X_y=True)
    write_libsvm_model(SVC().fit(X, y[::-1]), tmp_path / "iris.model")
    assert_same(read_libsvm_model(tmp_path / "iris.model"), X)


def test_ties_are_broken_as_libsvm_breaks_them():
    """`label_order_`: a row on the boundary, and votes that are equal, go by the order in which LIBSVM knew labels."""
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel="linear").fit(X, y)
    model.label_order_ = np.array([2, 1, 0], np.int32)
    model.coef_  # noqa: B018 the weights are remembered
    model.intercept_ = np.zeros(3)
    assert_same(model, np.zeros((2, 4)))  # f = 0 of all machines


@pytest.mark.parametrize("model", [SVC(kernel="linear"), BasicLinearClassifier(), OneVsRestClassifier()], ids=repr)
def test_a_row_on_the_boundary_goes_where_ours_does(model):
    """To the second class of an SVC, as LIBSVM has it, and to the first of the others."""
    model.fit(np.array([[-1.0], [1.0]]), [0, 1])
    found = assert_same(model, np.zeros((1, 1)))
    np.testing.assert_array_equal(found["scores"], 0.0)
    assert found["label"].tolist() == [int(isinstance(model, SVC))]


def test_rows_of_float32_are_predicted_as_those_of_float64():
    X, y = iris(3)
    rows = X.astype(np.float32)
    model = make_pipeline(TableEncoder(), SVC()).fit(rows, y)
    found = run(model, rows)
    np.testing.assert_allclose(found["scores"], model.decision_function(rows.astype(np.float64)), rtol=1e-12)


def test_a_machine_without_support_vectors_predicts_its_intercept():
    model = SVR(kernel="rbf", epsilon=10.0).fit(np.array([[0.0], [1.0]]), np.array([1.0, 1.5]))
    assert len(model.support_) == 0
    assert_same(model, np.array([[0.3], [7.0]]))


def test_far_from_the_origin_distances_keep_their_digits(rng):
    X = 1e6 + rng.normal(size=(60, 3))
    y = X[:, 0] > 1e6
    assert_same(SVC(gamma=0.5).fit(X, y), X)
