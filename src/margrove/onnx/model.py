"""A fitted model of any kind as an ONNX model, with its inputs and outputs.

The field ``onnx`` of a description is a function of the model and the `Columns` that come to it. That of a learner
returns an `Prediction`, that of a transformer other `Columns`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from margrove.learner import description_of, loaded
from margrove.onnx.graph import Graph, GraphValue, Tensor, onnx_package
from margrove.onnx.prediction import Prediction
from margrove.onnx.table import Columns, GraphInputs, TableColumns
from margrove.store.fault import FaultError, shown

_LABEL_TYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "double", "U": "string", "O": "string"}


@dataclass(frozen=True)
class Export:
    """An ONNX model, and a description of its inputs and outputs."""

    proto: Any
    inputs: list[dict[str, Any]]
    outputs: list[str]


def export(model: Any) -> Export:
    """Return the ONNX model of a fitted model, checked; raise `FaultError` if it has no form in ONNX."""
    onnx = onnx_package()
    model = _chosen(model)
    check_is_fitted(model)
    if not hasattr(model, "n_features_in_"):
        first = model.steps[0][1] if isinstance(model, Pipeline) else model
        raise FaultError(
            f"{type(first).__name__} takes pictures and cannot be exported to ONNX",
            "Export the network separately, and the learner on its features with write_onnx(pipeline[-1], …).",
        )
    names = getattr(model, "feature_names_in_", None)
    graph = Graph()
    inputs = GraphInputs(graph, names, int(model.n_features_in_))
    predicted = written(model, TableColumns(inputs, range(len(inputs.names))))
    tensors, facts = inputs.make()
    outputs = _outputs(graph, predicted, {tensor.name for tensor in tensors})
    learner = model.steps[-1][1] if isinstance(model, Pipeline) else model
    proto = graph.model(type(learner).__name__, tensors, outputs)
    names_out = [tensor.name for tensor in outputs.values()]
    proto.producer_name, proto.producer_version = "margrove", version("margrove")
    proto.doc_string = f"{type(learner).__name__} of Margrove {version('margrove')}: {', '.join(names_out)}."
    onnx.helper.set_model_props(proto, _properties(learner, facts))
    onnx.checker.check_model(proto, full_check=True)
    return Export(proto, facts, names_out)


def written(model: Any, columns: Columns) -> Prediction:
    """Add the operators of a model of any kind; return what it predicts."""
    model = _chosen(model)
    kind = type(model)
    if kind is Pipeline:
        for _, step in model.steps[:-1]:
            columns = _transformed(step, columns)
        return written(model.steps[-1][1], columns)
    learner = description_of(model)
    if learner is not None and learner.onnx is not None and not hasattr(model, "transform"):
        predicted: Prediction = loaded(learner.onnx)(model, columns)
        return predicted
    cure = "Export a Margrove learner, alone or at the end of a Pipeline."
    if kind.__module__.startswith("sklearn."):
        cure = "If it is an SVM or a tree, convert it first: margrove.from_sklearn(model)."
    raise FaultError(f"{kind.__module__}.{kind.__qualname__} cannot be exported to ONNX", cure)


def _transformed(step: Any, columns: Columns) -> Columns:
    """Return the columns after one step of a pipeline."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if type(step) in _SCALERS:
        shift, scale = _SCALERS[type(step)](step)
        scaled = (columns.numbers() - shift) / scale
        if getattr(step, "clip", False):
            low, high = step.feature_range
            scaled = scaled.op("Clip", float(low), float(high))
        # Of a single column onnxruntime would draw the scale into the product that follows, as float32; not past this.
        return Columns(scaled.op("Max", -np.inf), columns.width)
    learner = description_of(step)
    if learner is not None and learner.onnx is not None and hasattr(step, "transform"):
        after: Columns = loaded(learner.onnx)(step, columns)
        return after
    known = ", ".join(scaler.__name__ for scaler in _SCALERS)
    raise FaultError(
        f"the step {type(step).__name__} of the pipeline cannot be exported to ONNX",
        f"Steps that can be exported: TableEncoder, ImpuritySelector, {known}.",
    )


def _rows(values: Any, otherwise: float) -> Any:
    return np.array([otherwise]) if values is None else np.asarray(values, dtype=np.float64)


# (x − shift)/scale of each. scikit-learn's scale_ of MinMaxScaler multiplies, and its min_ is added after.
_SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (_rows(step.mean_ if step.with_mean else None, 0.0), _rows(step.scale_, 1.0)),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, 1 / step.scale_),
    MaxAbsScaler: lambda step: (np.zeros(1), _rows(step.scale_, 1.0)),
    RobustScaler: lambda step: (_rows(step.center_, 0.0), _rows(step.scale_, 1.0)),
}


def _chosen(model: Any) -> Any:
    """Return the best model of a search, any other model itself."""
    if not hasattr(model, "cv_results_") and not hasattr(model, "best_params_"):
        return model
    if not hasattr(model, "best_estimator_"):
        raise FaultError(
            f"this {type(model).__name__} has no model: it was fitted with refit=False, or stopped early",
            "Fit it with refit=True.",
        )
    return model.best_estimator_


def _outputs(graph: Graph, prediction: Prediction, taken: set[str]) -> dict[GraphValue, Tensor]:
    """Return the outputs of the graph, by their tensors."""

    def free(name: str) -> str:
        while name in taken:  # a column has that name
            name = f"{name}_"
        return name

    if prediction.value is not None:
        return {prediction.value.flat(): Tensor(free("prediction"), "double", None)}
    assert prediction.classes is not None
    classes = prediction.classes
    is_plain = classes.dtype != object or all(isinstance(label, str) for label in classes)
    if classes.dtype.kind not in _LABEL_TYPES or not is_plain:
        raise FaultError(
            f"labels such as {shown(classes[0])} (dtype {classes.dtype}) cannot be stored in an ONNX file",
            "Use text, integers, floats or Booleans as labels, y.astype(str) for instance.",
        )
    label = graph.op("Gather", classes, prediction.place)
    outputs = {label: Tensor(free("label"), _LABEL_TYPES[classes.dtype.kind], None)}
    if prediction.scores is not None:
        is_vector = prediction.n_scores == 1
        scores = prediction.scores.flat() if is_vector else prediction.scores
        outputs[scores] = Tensor(free("scores"), "double", None if is_vector else prediction.n_scores)
    if prediction.probabilities is not None:
        outputs[prediction.probabilities] = Tensor(free("probabilities"), "double", len(classes))
    return outputs


def _properties(learner: Any, facts: list[dict[str, Any]]) -> dict[str, str]:
    """Return the metadata of the file."""
    properties = {
        "margrove.version": version("margrove"),
        "margrove.learner": type(learner).__name__,
        "margrove.inputs": json.dumps(facts, ensure_ascii=False),
    }
    if hasattr(learner, "status_"):
        properties["margrove.status"] = str(learner.status_)
    if hasattr(learner, "certificate_"):
        text, holds = learner.certificate_.to_json(), learner.certificate_.holds
        properties["margrove.certificate.sha256"] = hashlib.sha256(text.encode()).hexdigest()
        properties["margrove.certificate.holds"] = "not recomputed" if holds is None else str(holds).lower()
    return properties
