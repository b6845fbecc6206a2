"""A learner taken apart into a record (JSON) and tensors, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Setting
from margrove.engine import Engine
from margrove.store.check import (
    check_certificate,
    check_entries,
    check_fields,
    check_parameters,
    check_rises,
    check_scalar,
    check_shape,
    check_whole,
)
from margrove.store.fault import FaultError, shown
from margrove.store.labels import labels_from_json, labels_to_json
from margrove.store.plain import to_json
from margrove.store.schema import LEARNERS, MOST_COLUMNS, Array, Learner, Scalar
from margrove.store.versions import Tensors

_FIELDS = {"class", "parameters", "n_features_in", "feature_names", "labels", "scalars", "arrays", "certificate"}
_SPARSE = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}


@dataclass
class Taken:
    """What a model comes to beside its record: arrays by name, and words on what was left out."""

    tensors: Tensors = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def take_learner_apart(model: Any, taken: Taken, prefix: str) -> dict[str, Any]:
    """The record of a fitted learner; its arrays go into ``taken``, their names begin with ``prefix``."""
    name = type(model).__name__
    learner = LEARNERS[name]
    check_is_fitted(model)
    classes = ("classes_",) if learner.is_classifier else ()
    needed = [key for key, scalar in learner.scalars.items() if not scalar.is_optional]
    for attribute in ("n_features_in_", *classes, "certificate_", *needed):
        if not hasattr(model, attribute):
            raise FaultError(f"{name} has no {attribute}: its fit did not come to an end")
    parameters = parameters_to_json(model, taken)
    layouts = {}
    for spec in _arrays_of(learner, parameters):
        if hasattr(model, spec.name):
            layouts[spec.name] = put_away(getattr(model, spec.name), taken.tensors, prefix + spec.name)
    names = getattr(model, "feature_names_in_", None)
    return {
        "class": name,
        "parameters": parameters,
        "n_features_in": int(model.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "labels": labels_to_json(model.classes_) if learner.is_classifier else None,
        "scalars": {key: scalar_to_json(getattr(model, key)) for key in learner.scalars if hasattr(model, key)},
        "arrays": layouts,
        "certificate": model.certificate_.to_dict(),
    }


def put_learner_together(record: dict[str, Any], tensors: Tensors, prefix: str) -> Any:
    """The learner that the record describes; its tensors are taken out of ``tensors``."""
    name = record["class"]
    learner = LEARNERS[name]
    check_fields(record, _FIELDS, f"the record of {name}")
    parameters = check_parameters(
        record["parameters"], learner.estimator, learner.choices, learner.ranges, learner.later
    )
    labels = read_labels(record["labels"], learner)
    counts = learner.machines(parameters, len(labels))
    columns = check_whole(record["n_features_in"], 1, "n_features_in", MOST_COLUMNS)
    scalars = _scalars_of(record["scalars"], learner)
    check_fields(record["scalars"], set(scalars), f"the list of {name}'s scalars")
    fitted = {key: check_scalar(key, record["scalars"][key], scalar) for key, scalar in scalars.items()}
    symbols = {"K": len(labels), **counts, "d": columns}
    if "n_rows_" in fitted:
        symbols["n"] = fitted["n_rows_"]
    fitted |= take_arrays(_arrays_of(learner, parameters), record["arrays"], tensors, prefix, symbols)
    if record["feature_names"] is not None:
        fitted["feature_names_in_"] = read_names(record["feature_names"], columns)
    fitted["certificate_"] = check_certificate(record["certificate"], name, counts["m"])
    if learner.is_classifier:
        fitted["classes_"] = labels
    model = learner.estimator(**parameters)
    vars(model).update(fitted, n_features_in_=columns)
    if hasattr(model, "_cache_weights"):
        model._cache_weights()
    return model


def _scalars_of(record: Any, learner: Learner) -> dict[str, Scalar]:
    """What must be there, and of the optional ones those that are."""
    given = record if isinstance(record, dict) else {}
    return {key: scalar for key, scalar in learner.scalars.items() if key in given or not scalar.is_optional}


def parameters_to_json(model: Any, taken: Taken, skipped: tuple[str, ...] = ()) -> dict[str, Any]:
    """The parameters for the header but those skipped, or a clear word on why they cannot be there."""
    owner = type(model).__name__
    parameters = {}
    for name, value in model.get_params(deep=False).items():
        if name in skipped:
            continue
        if name == "random_state" and isinstance(value, np.random.RandomState) and hasattr(model, "_drawn_seed"):
            value = model._drawn_seed  # what the fit drew from it: the same tree again, and the same certificate
        elif name == "random_state" and isinstance(value, np.random.RandomState):
            taken.left_out.append(f"{owner}: random_state is a generator, whose state is not kept; saved as None.")
            value = None
        if name == "engine" and isinstance(value, Engine):
            value = value.name  # where it was fitted says nothing about where it is loaded
        if name == "checkpoint":
            value = None  # of the fit, not of the model
        if callable(value):
            cure = Advice("Use a kernel by name, or ", Setting("kernel", "precomputed"), " with the Gram matrix.")
            raise FaultError(f"{owner}'s {name} is the function {shown(value)}, and a model file holds no code", cure)
        parameters[name] = to_json(value, f"{owner}'s {name}")
    return parameters


def read_labels(record: Any, learner: Learner) -> NDArray[Any]:
    """The labels of a classifier; none of any other learner."""
    if learner.is_classifier:
        return labels_from_json(record)
    if record is not None:
        raise FaultError(f"the labels are {shown(record)}; {learner.estimator.__name__} has none")
    return np.empty(0)


def _arrays_of(learner: Learner, parameters: dict[str, Any]) -> list[Array]:
    return [spec for spec in learner.arrays if spec.applies(parameters)]


def scalar_to_json(value: Any) -> Any:
    """A fitted number, word or truth value for the header."""
    # Status is text that knows its name; the file keeps the text.
    return str(value) if isinstance(value, str) else to_json(value, "a fitted number")


def put_away(array: Any, tensors: Tensors, name: str) -> str:
    """Keep an array; the answer is how it lay in memory, on which the last bit of a product may depend."""
    if sp.issparse(array):
        for part in ("data", "indices", "indptr"):
            tensors[f"{name}.{part}"] = np.ascontiguousarray(getattr(array, part))
        return type(array).__name__
    tensors[name] = np.ascontiguousarray(array)
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


def take_arrays(
    specs: Sequence[Array], layouts: Any, tensors: Tensors, prefix: str, symbols: dict[str, int]
) -> dict[str, Any]:
    """The arrays of these specifications out of ``tensors``, each checked; new symbols are added to ``symbols``."""
    wanted = {spec.name for spec in specs if not spec.is_optional}
    given = {spec.name for spec in specs} & layouts.keys() if isinstance(layouts, dict) else wanted
    check_fields(layouts, wanted | given, "the list of arrays")
    arrays = {}
    for spec in specs:
        if spec.name in layouts:
            arrays[spec.name] = _take_out(spec, layouts[spec.name], tensors, prefix + spec.name, symbols)
    # Only now are all symbols known.
    for spec in specs:
        if spec.name in arrays:
            check_entries(spec, arrays[spec.name], symbols)
    return arrays


def _take_out(spec: Array, layout: Any, tensors: Tensors, name: str, symbols: dict[str, int]) -> Any:
    if layout in ("C", "F"):
        array = _tensor(tensors, name)
        check_shape(spec, array.shape, symbols)
        return np.asfortranarray(array) if layout == "F" else array
    if not spec.may_be_sparse or not isinstance(layout, str) or layout not in _SPARSE:
        raise FaultError(f"{spec.name} is laid out as {shown(layout)}, which is unknown here")
    data, indices, indptr = (_tensor(tensors, f"{name}.{part}") for part in ("data", "indices", "indptr"))
    d = symbols["d"]
    if not data.ndim == indices.ndim == indptr.ndim == 1 or data.shape != indices.shape or not indptr.size:
        raise FaultError(f"{spec.name}: its parts are of shapes {data.shape}, {indices.shape} and {indptr.shape}")
    if {indices.dtype.name, indptr.dtype.name} - {"int32", "int64"}:
        raise FaultError(
            f"{spec.name}: its positions are of types {indices.dtype} and {indptr.dtype}, not whole numbers"
        )
    check_rises(f"{spec.name}.indptr", indptr, data.size)
    if indices.size and (indices.min() < 0 or indices.max() >= d):
        raise FaultError(f"{spec.name}.indices are not all from 0 to {d - 1}")
    shape = (indptr.size - 1, d)
    check_shape(spec, shape, symbols)
    return _SPARSE[layout]((data, indices, indptr), shape=shape)


def _tensor(tensors: Tensors, name: str) -> Any:
    if name not in tensors:
        raise FaultError(f"the array {name!r} is missing")
    return tensors.pop(name)


def read_names(names: Any, columns: int) -> Any:
    """The names of the columns, as scikit-learn keeps them."""
    is_list = isinstance(names, list) and len(names) == columns
    if not is_list or not all(type(name) is str for name in names) or len(set(names)) != columns:
        raise FaultError(f"the names of the columns are {shown(names)}; {columns} different texts were expected")
    return np.array(names, dtype=object)
