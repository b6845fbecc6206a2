"""A fitted model of any kind as an ONNX graph: who writes it, and what goes in and comes out.

The field ``onnx`` of a description is a function of the model and the `Columns` that come to it. That of a learner
returns an `Answer`, that of a transformer other `Columns`.
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
from margrove.onnx.answer import Answer
from margrove.onnx.graph import Graph, Tensor, Value, onnx_package
from margrove.onnx.table import Columns, Inputs, TableColumns
from margrove.store.fault import FaultError, shown

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
    answer = written(model, TableColumns(inputs, range(len(inputs.names))))
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


def written(model: Any, columns: Columns) -> Answer:
    """The operators of a model, whatever it is."""
    model = _chosen(model)
    kind = type(model)
    if kind is Pipeline:
        for _, step in model.steps[:-1]:
            columns = _transformed(step, columns)
        return written(model.steps[-1][1], columns)
    learner = description_of(model)
    if learner is not None and learner.onnx is not None and not hasattr(model, "transform"):
        answer: Answer = loaded(learner.onnx)(model, columns)
        return answer
    cure = "Export a learner of Margrove's, alone or at the end of a Pipeline."
    if kind.__module__.startswith("sklearn."):
        cure = "Take it over first, if it is an SVM or a tree: margrove.from_sklearn(model)."
    raise FaultError(f"{kind.__module__}.{kind.__qualname__} has no form in ONNX here", cure)


def _transformed(step: Any, columns: Columns) -> Columns:
    """The columns after one step of a pipeline."""
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
        f"the step {type(step).__name__} of the pipeline has no form in ONNX here",
        f"Those that have: TableEncoder, ImpuritySelector, {known}.",
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
    """The model that a search has chosen; any other model itself."""
    if not hasattr(model, "cv_results_") and not hasattr(model, "best_params_"):
        return model
    if not hasattr(model, "best_estimator_"):
        raise FaultError(
            f"this {type(model).__name__} has no model: it was fitted with refit=False, or broken off",
            "Fit it with refit=True.",
        )
    return model.best_estimator_


def _outputs(graph: Graph, answer: Answer, taken: set[str]) -> dict[Value, Tensor]:
    """What leaves the graph, by the tensor it is."""

    def free(name: str) -> str:
        while name in taken:  # a column has that name
            name = f"{name}_"
        return name

    if answer.value is not None:
        return {answer.value.flat(): Tensor(free("prediction"), "double", None)}
    assert answer.classes is not None
    classes = answer.classes
    if classes.dtype.kind not in _LABEL_TYPES or not _are_plain(classes):
        raise FaultError(
            f"labels such as {shown(classes[0])} (dtype {classes.dtype}) cannot be in an ONNX file",
            "Use text, integers, floats or Booleans as labels, y.astype(str) for instance.",
        )
    label = graph.op("Gather", classes, answer.place)
    outputs = {label: Tensor(free("label"), _LABEL_TYPES[classes.dtype.kind], None)}
    if answer.scores is not None:
        is_vector = answer.n_scores == 1
        scores = answer.scores.flat() if is_vector else answer.scores
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
