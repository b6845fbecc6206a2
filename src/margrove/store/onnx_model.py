"""A fitted model of any kind as an ONNX graph: which family writes it, and what goes in and comes out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from margrove.boost.classifier import AdaBoostClassifier
from margrove.boost.regressor import AdaBoostRegressor
from margrove.linear.centroid import BasicLinearClassifier
from margrove.linear.kernel_perceptron import KernelPerceptron
from margrove.linear.least_squares import LeastSquaresClassifier
from margrove.linear.perceptron import Perceptron
from margrove.linear_svm.svc import LinearSVC
from margrove.linear_svm.svr import LinearSVR
from margrove.multiclass.bit_string import BitStringClassifier
from margrove.multiclass.one_vs_one import OneVsOneClassifier
from margrove.multiclass.one_vs_rest import OneVsRestClassifier
from margrove.store.fault import FaultError, shown
from margrove.store.onnx_answer import Answer
from margrove.store.onnx_boost import boosted_classes, boosted_numbers
from margrove.store.onnx_coded import coded_classifier
from margrove.store.onnx_encoder import transformed
from margrove.store.onnx_graph import Graph, Tensor, onnx_package
from margrove.store.onnx_kernel import kernel_perceptron, kernel_regression, one_class
from margrove.store.onnx_linear import linear_classifier, linear_regression, softmax_classifier
from margrove.store.onnx_table import Columns, Inputs, TableColumns
from margrove.store.onnx_tree import tree_classifier, tree_regression
from margrove.store.onnx_votes import support_vector_classifier
from margrove.svm.one_class import OneClassSVM
from margrove.svm.svc import SVC, NuSVC
from margrove.svm.svr import SVR, NuSVR
from margrove.transfer.softmax import SoftmaxClassifier
from margrove.tree.classifier import DecisionTreeClassifier
from margrove.tree.regressor import DecisionTreeRegressor
from margrove.tree.stump import DecisionStump

# Learners of a matrix of numbers, learners of columns, and those that have other learners within.
_OF_POINTS: dict[type, Callable[[Graph, Any, str], Answer]] = {
    BasicLinearClassifier: linear_classifier,
    LeastSquaresClassifier: linear_classifier,
    Perceptron: linear_classifier,
    LinearSVC: linear_classifier,
    SoftmaxClassifier: softmax_classifier,
    LinearSVR: linear_regression,
    KernelPerceptron: kernel_perceptron,
    SVC: support_vector_classifier,
    NuSVC: support_vector_classifier,
    SVR: kernel_regression,
    NuSVR: kernel_regression,
    OneClassSVM: one_class,
}
_OF_COLUMNS: dict[type, Callable[[Graph, Any, Columns], Answer]] = {
    DecisionTreeClassifier: tree_classifier,
    DecisionStump: tree_classifier,
    DecisionTreeRegressor: tree_regression,
}
_OF_LEARNERS: dict[type, Callable[..., Answer]] = {
    AdaBoostClassifier: boosted_classes,
    AdaBoostRegressor: boosted_numbers,
    OneVsRestClassifier: coded_classifier,
    OneVsOneClassifier: coded_classifier,
    BitStringClassifier: coded_classifier,
}
_LABEL_TYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "double", "U": "string", "O": "string"}


@dataclass(frozen=True)
class Export:
    """An ONNX model, and what a person has to know of its inputs and outputs."""

    proto: Any
    inputs: list[dict[str, Any]]
    outputs: list[str]


def export(model: Any) -> Export:
    """The ONNX model of a fitted model of ours, checked.

    Raises
    ------
    FaultError
        If it has no form in ONNX.
    """
    onnx = onnx_package()
    model = _chosen(model)
    check_is_fitted(model)
    if not hasattr(model, "n_features_in_"):
        first = model.steps[0][1] if isinstance(model, Pipeline) else model
        raise FaultError(
            f"{type(first).__name__} takes pictures, and has no form in ONNX here",
            "Export the network by itself, and the learner on its codes with write_onnx(pipeline[-1], …).",
        )
    names = getattr(model, "feature_names_in_", None)
    graph = Graph()
    inputs = Inputs(graph, names, int(model.n_features_in_))
    answer = written(graph, model, TableColumns(inputs, range(len(inputs.names))))
    tensors, facts = inputs.make()
    outputs = _outputs(graph, answer, {tensor.name for tensor in tensors})
    learner = model.steps[-1][1] if isinstance(model, Pipeline) else model
    proto = graph.model(type(learner).__name__, tensors, outputs)
    names_out = [tensor.name for tensor in outputs.values()]
    proto.producer_name, proto.producer_version = "margrove", version("margrove")
    proto.doc_string = f"{type(learner).__name__} of Margrove {version('margrove')}: {', '.join(names_out)}."
    onnx.helper.set_model_props(proto, _properties(learner, facts))
    onnx.checker.check_model(proto, full_check=True)
    return Export(proto, facts, names_out)


def written(graph: Graph, model: Any, columns: Columns) -> Answer:
    """The operators of a model, whatever it is."""
    model = _chosen(model)
    kind = type(model)
    if kind is Pipeline:
        for _, step in model.steps[:-1]:
            columns = transformed(graph, step, columns)
        return written(graph, model.steps[-1][1], columns)
    if kind in _OF_POINTS:
        return _OF_POINTS[kind](graph, model, columns.numbers())
    if kind in _OF_COLUMNS:
        return _OF_COLUMNS[kind](graph, model, columns)
    if kind in _OF_LEARNERS:
        return _OF_LEARNERS[kind](graph, model, columns, written)
    cure = "Export a learner of Margrove's, alone or at the end of a Pipeline."
    if kind.__module__.startswith("sklearn."):
        cure = "Take it over first, if it is an SVM or a tree: margrove.from_sklearn(model)."
    raise FaultError(f"{kind.__module__}.{kind.__qualname__} has no form in ONNX here", cure)


def _chosen(model: Any) -> Any:
    """The model that a search has chosen; any other model itself."""
    if not hasattr(model, "cv_results_") and not hasattr(model, "best_params_"):
        return model
    if not hasattr(model, "best_estimator_"):
        raise FaultError(
            f"this {type(model).__name__} has no model: it was fitted with refit=False, or broken off",
            "Fit it with refit=True.",
        )
    return model.best_estimator_


def _outputs(graph: Graph, answer: Answer, taken: set[str]) -> dict[str, Tensor]:
    """What leaves the graph, by the tensor it is."""

    def free(name: str) -> str:
        while name in taken:  # a column has that name
            name = f"{name}_"
        return name

    if answer.value is not None:
        return {graph.flat(answer.value): Tensor(free("prediction"), "double", None)}
    assert answer.classes is not None
    classes = answer.classes
    if classes.dtype.kind not in _LABEL_TYPES or not _are_plain(classes):
        raise FaultError(
            f"labels such as {shown(classes[0])} (dtype {classes.dtype}) cannot be in an ONNX file",
            "Use text, integers, floats or Booleans as labels, y.astype(str) for instance.",
        )
    label = graph.op("Gather", classes, str(answer.place))
    outputs = {label: Tensor(free("label"), _LABEL_TYPES[classes.dtype.kind], None)}
    if answer.scores is not None:
        is_vector = answer.n_scores == 1
        scores = graph.flat(answer.scores) if is_vector else answer.scores
        outputs[scores] = Tensor(free("scores"), "double", None if is_vector else answer.n_scores)
    if answer.probabilities is not None:
        outputs[answer.probabilities] = Tensor(free("probabilities"), "double", len(classes))
    return outputs


def _are_plain(classes: Any) -> bool:
    return bool(classes.dtype != object or all(isinstance(label, str) for label in classes.tolist()))


def _properties(learner: Any, facts: list[dict[str, Any]]) -> dict[str, str]:
    """What the file says of where it comes from."""
    properties = {
        "margrove.version": version("margrove"),
        "margrove.learner": type(learner).__name__,
        "margrove.inputs": json.dumps(facts, ensure_ascii=False),
    }
    if hasattr(learner, "status_"):
        properties["margrove.status"] = str(learner.status_)
    if hasattr(learner, "certificate_"):
        text = learner.certificate_.to_json()
        holds = learner.certificate_.holds
        properties["margrove.certificate.sha256"] = hashlib.sha256(text.encode()).hexdigest()
        properties["margrove.certificate.holds"] = "not recomputed" if holds is None else str(holds).lower()
    return properties
