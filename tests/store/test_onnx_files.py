"""ONNX files themselves: what they say of themselves, what is refused, labels and rows of every kind."""

from __future__ import annotations

import hashlib
import io
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import pytest
import sklearn.svm
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from tests.store.onnx_parity import assert_same, run

import margrove
from margrove import (
    SVC,
    SVCCV,
    SVR,
    AdaBoostClassifier,
    DecisionTreeClassifier,
    KernelPerceptron,
    LinearSVC,
    OneClassSVM,
    OneVsOneClassifier,
    TableEncoder,
    write_onnx,
)
from margrove.errors import MissingExtraError, ModelFileError
from margrove.learner import learner_named
from margrove.onnx import graph as onnx_graph

X = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 1.0], [4.0, 2.0], [0.5, 3.0], [4.5, 0.5]])
Y = np.array([0, 0, 1, 1, 0, 1])


def test_the_function_is_public():
    assert margrove.write_onnx is write_onnx


def test_the_file_passes_the_checker_and_names_its_producer(tmp_path):
    model = LinearSVC().fit(X, Y)
    write_onnx(model, tmp_path / "l.onnx")
    read = onnx.load(tmp_path / "l.onnx")
    onnx.checker.check_model(read, full_check=True)
    assert (read.producer_name, read.producer_version) == ("margrove", version("margrove"))
    properties = {each.key: each.value for each in read.metadata_props}
    assert properties["margrove.learner"] == "LinearSVC"
    assert properties["margrove.status"] == "converged"
    assert properties["margrove.certificate.holds"] == "true"
    text = model.certificate_.to_json().encode()
    assert properties["margrove.certificate.sha256"] == hashlib.sha256(text).hexdigest()


def test_every_public_estimator_has_a_form_in_onnx():
    """A new one has to name its writer in its family's ``learners``, or stand here with a reason."""
    from sklearn.base import BaseEstimator

    searches = {"SVCCV", "SVRCV", "LinearSVCCV", "LinearSVRCV"}  # their best model has one
    pictures = {"ConvFeatures", "FineTuned"}  # of networks, which have ONNX files of their own
    public = {name for name in margrove.__all__ if isinstance(getattr(margrove, name), type)}
    estimators = {name for name in public if issubclass(getattr(margrove, name), BaseEstimator)}
    assert {name for name in estimators - searches if learner_named(name).onnx is None} == pictures


def test_the_same_model_gives_the_same_bytes():
    model = AdaBoostClassifier(n_estimators=3).fit(X, Y)
    first, second = io.BytesIO(), io.BytesIO()
    write_onnx(model, first)
    write_onnx(model, second)
    assert first.getvalue() == second.getvalue()


def test_another_runtime_agrees():
    """ONNX's own evaluator, in Python: what is written is ONNX, and no habit of one runtime."""
    from onnx.reference import ReferenceEvaluator

    for model in (SVC(probability=True), DecisionTreeClassifier(), LinearSVC()):
        written = write_onnx(model.fit(np.tile(X, (3, 1)), np.tile(Y, 3)), io.BytesIO())
        label, *_ = ReferenceEvaluator(written.proto).run(None, {"X": X})
        assert label.tolist() == model.predict(X).tolist()


LABELS = {
    "whole numbers": (np.array([-7, 3, 12]), np.int64),
    "small unsigned numbers": (np.array([0, 1, 200], dtype=np.uint8), np.int64),
    "text": (np.array(["no", "yes", "größer"]), np.dtype(object)),
    "text as objects": (np.array(["no", "yes", "maybe"], dtype=object), np.dtype(object)),
    "floats": (np.array([-1.0, 1.0, 2.0]), np.float64),
    "truth values": (np.array([False, True, True]), np.bool_),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("model", [LinearSVC(), DecisionTreeClassifier(), OneVsOneClassifier(SVC())], ids=repr)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_keep_their_type(name, model):
    labels, dtype = LABELS[name]
    y = labels[[0, 0, 1, 1, 2, 2]]
    found = assert_same(model.fit(X, y), X)
    assert found["label"].dtype == dtype


def every_kind():
    """A fitted model of each family."""
    yield LinearSVC().fit(X, Y)
    yield SVC(probability=True).fit(np.tile(X, (3, 1)), np.tile(np.arange(6) % 3, 3))
    yield SVC(kernel="laplacian").fit(X, Y)
    yield OneClassSVM(nu=0.3).fit(X)
    yield SVR().fit(X, Y)
    yield make_pipeline(TableEncoder(), KernelPerceptron()).fit(X, Y)
    yield DecisionTreeClassifier().fit(X, Y)
    yield AdaBoostClassifier(n_estimators=3).fit(X, Y)
    yield margrove.AdaBoostRegressor(n_estimators=3, random_state=0).fit(X, Y)
    yield OneVsOneClassifier(DecisionTreeClassifier()).fit(X, np.arange(6) % 3)


@pytest.mark.parametrize("model", list(every_kind()), ids=lambda model: type(model).__name__)
def test_one_row_and_none_get_as_many_predictions(model):
    assert_same(model, X[:1])
    for values in run(model, X[:0]).values():
        assert values.shape[0] == 0


def test_no_text_goes_in_where_there_are_no_rows():
    penguins = margrove.load_penguins()
    for model in (make_pipeline(TableEncoder(), SVC()), DecisionTreeClassifier()):
        written = write_onnx(model.fit(penguins, penguins.labels()), io.BytesIO())
        session = onnxruntime.InferenceSession(written.proto.SerializeToString())
        types = {"text": object}
        none = {fact["name"]: np.empty((0, 1), types.get(fact["kind"], np.float64)) for fact in written.inputs}
        assert all(len(values) == 0 for values in session.run(None, none))


def gram() -> np.ndarray:
    return X @ X.T


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SVC(kernel="precomputed").fit(gram(), Y), "precomputed.*kernel='rbf'"),
        (SVC(kernel=lambda A, B: A @ B.T).fit(X, Y), "is a function.*named kernel"),
        (KernelPerceptron(kernel="precomputed").fit(gram(), Y), "precomputed"),
        (OneVsOneClassifier(SVC(kernel="precomputed")).fit(gram(), Y), "precomputed"),
        (sklearn.svm.SVC().fit(X, Y), "from_sklearn"),
        (AdaBoostClassifier(RandomForestClassifier(2, random_state=0), n_estimators=2).fit(X, Y), "RandomForest"),
        (make_pipeline(PCA(1), SVC()).fit(X, Y), "the step PCA.*TableEncoder"),
        (SVCCV(Cs=[1.0], gammas=[1.0], refit=False, cv=2).fit(X, Y), "refit=True"),
        (GridSearchCV(SVC(), {"C": [1.0]}, refit=False, cv=2).fit(X, Y), "refit=True"),
        (TableEncoder().fit(X), "Export a Margrove learner"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_models_that_cannot_be_exported_are_refused_with_a_remedy(model, words, tmp_path):
    with pytest.raises(ModelFileError, match=f"(?s)model.onnx.*{words}"):
        write_onnx(model, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        write_onnx(SVC(), io.BytesIO())


def test_dates_as_labels_are_refused():
    model = LinearSVC().fit(X, Y)
    model.classes_ = np.array(["2024-01-01", "2025-01-01"], dtype="datetime64[D]")
    with pytest.raises(ModelFileError, match="labels such as"):
        write_onnx(model, io.BytesIO())


def test_a_graph_beyond_the_limit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(onnx_graph, "MOST_BYTES", 64)
    with pytest.raises(ModelFileError, match="an ONNX file holds less than 2"):
        write_onnx(SVC().fit(X, Y), io.BytesIO())


def test_without_the_package_the_error_is_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'margrove\[onnx\]'"):
        write_onnx(LinearSVC().fit(X, Y), io.BytesIO())


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ModelFileError, match="is a directory"):
        write_onnx(LinearSVC().fit(X, Y), tmp_path)
