"""`ConvFeatures` and `FineTuned` taken apart, and put together again.

A file holds no code, so it names the network: a name that this version knows, or the name of an ONNX file, and its
fingerprint. Of a module there is the fingerprint alone, and whoever loads the model gives the module. The network is
looked for when pictures come, and must be the same. What `FineTuned` has learned is in the file, as arrays.

Three things a file may not decide: where codes are cached, whether anything is downloaded, and what is read from which
folder (a network's or weights' path is cut to its name).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove.errors import ParameterError
from margrove.store.check import check_certificate, check_fields, check_parameters, check_scalar, check_whole
from margrove.store.fault import FaultError, shown
from margrove.store.labels import labels_from_json, labels_to_json
from margrove.store.learner_parts import Taken, parameters_to_json
from margrove.store.machines import one_vs_rest
from margrove.store.plain import to_json
from margrove.store.schema import (
    FEATURES,
    FEATURES_CHOICES,
    FEATURES_RANGES,
    MOST_COLUMNS,
    TUNED,
    TUNED_CHOICES,
    TUNED_RANGES,
    TUNED_SCALARS,
)
from margrove.store.versions import Tensors
from margrove.transfer.preparation import Preparation

_ABOUT = {"class", "parameters", "network_name", "network_digest", "preparation"}
_FEATURES_FIELDS = {*_ABOUT, "layer", "n_features_out"}
_TUNED_FIELDS = {*_ABOUT, "labels", "scalars", "course", "weights", "certificate"}
_SEEN = {"size", "crop", "mean", "std"}
_DIGEST = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"[^/\\\x00]{1,255}")
_COURSE = {"loss", "held_out_loss", "held_out_accuracy"}


def take_features_apart(features: Any, taken: Taken) -> dict[str, Any]:
    """The record of a fitted extractor; it has no arrays."""
    check_is_fitted(features, "network_digest_")
    return {
        **_about(features, taken),
        "layer": features.layer_,
        "n_features_out": int(features.n_features_out_),
    }


def put_features_together(record: dict[str, Any]) -> Any:
    """The extractor that the record describes; its network is looked for when pictures come."""
    check_fields(record, _FEATURES_FIELDS, "the record of ConvFeatures")
    parameters = check_parameters(record["parameters"], FEATURES, FEATURES_CHOICES, FEATURES_RANGES)
    fitted = _read_about(record, parameters)
    if type(record["layer"]) is not str:
        raise FaultError(f"the layer is {shown(record['layer'])}; a text was expected")
    fitted["layer_"] = record["layer"]
    fitted["n_features_out_"] = check_whole(record["n_features_out"], 1, "n_features_out", MOST_COLUMNS)
    features: Any = FEATURES(**parameters)
    vars(features).update(fitted)
    return features


def take_tuned_apart(model: Any, taken: Taken, prefix: str) -> dict[str, Any]:
    """The record of a fine-tuned network; its weights go into ``taken``."""
    check_is_fitted(model, "weights_")
    for name, array in model.weights_.items():
        taken.tensors[f"{prefix}weights.{name}"] = np.ascontiguousarray(array)
    return {
        **_about(model, taken),
        "labels": labels_to_json(model.classes_),
        "scalars": {name: _scalar(getattr(model, name)) for name in TUNED_SCALARS},
        "course": to_json(model.course_, "the course"),
        "weights": sorted(model.weights_),
        "certificate": model.certificate_.to_dict(),
    }


def put_tuned_together(record: dict[str, Any], tensors: Tensors, prefix: str) -> Any:
    """The model that the record describes; its weights are taken out of ``tensors``."""
    check_fields(record, _TUNED_FIELDS, "the record of FineTuned")
    parameters = check_parameters(record["parameters"], TUNED, TUNED_CHOICES, TUNED_RANGES)
    fitted = _read_about(record, parameters)
    labels = labels_from_json(record["labels"])
    if len(labels) < 2:
        raise FaultError("a fine-tuned network tells labels apart, and it has only one")
    check_fields(record["scalars"], set(TUNED_SCALARS), "the list of FineTuned's scalars")
    fitted |= {name: check_scalar(name, record["scalars"][name], spec) for name, spec in TUNED_SCALARS.items()}
    fitted["course_"] = _read_course(record["course"])
    fitted["weights_"] = _read_weights(record["weights"], tensors, f"{prefix}weights.")
    machines = one_vs_rest(parameters, len(labels))["m"]
    fitted["certificate_"] = check_certificate(record["certificate"], "FineTuned", machines)
    model: Any = TUNED(**parameters)
    vars(model).update(fitted, classes_=labels)
    return model


def _about(model: Any, taken: Taken) -> dict[str, Any]:
    parameters = parameters_to_json(model, taken, skipped=("network", "weights", "cache", "download"))
    if isinstance(model.network, str) and not _is_file(model.network):
        network: str | None = model.network
    else:
        network = os.path.basename(os.fspath(model.network)) if isinstance(model.network, str | os.PathLike) else None
    weights = None if model.weights is None else os.path.basename(os.fspath(model.weights))
    parameters |= {"network": network, "weights": weights, "download": False}
    if hasattr(model, "cache"):
        parameters["cache"] = None
    seen = model.preparation_
    return {
        "class": type(model).__name__,
        "parameters": parameters,
        "network_name": model.network_name_,
        "network_digest": model.network_digest_,
        "preparation": {"size": seen.size, "crop": seen.crop, "mean": list(seen.mean), "std": list(seen.std)},
    }


def _is_file(network: str) -> bool:
    return network.lower().endswith(".onnx")


def _read_about(record: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    for name in ("network", "weights"):
        value = parameters[name]
        if value is not None and not (isinstance(value, str) and _NAME.fullmatch(value) and Path(value).name == value):
            raise FaultError(f"{name} is {shown(value)}; the name of a network or of a file was expected")
    digest, name = record["network_digest"], record["network_name"]
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or not isinstance(name, str):
        raise FaultError(f"the network is {shown(name)} with the fingerprint {shown(digest)}, which is none")
    return {"network_name_": name, "network_digest_": digest, "preparation_": _read_preparation(record["preparation"])}


def _read_preparation(record: Any) -> Preparation:
    check_fields(record, _SEEN, "what the network sees")
    mean = record["mean"]
    if not isinstance(mean, list) or len(mean) not in (1, 3) or not isinstance(record["std"], list):
        raise FaultError(f"the means of the channels are {shown(mean)}; one or three were expected")
    usual = Preparation(mean=(0.0,) * len(mean), std=(1.0,) * len(mean))
    try:
        return usual.with_given(record["size"], record["crop"], mean, record["std"])
    except ParameterError as error:
        raise FaultError(str(error).rstrip(".")) from error


def _scalar(value: Any) -> Any:
    return str(value) if isinstance(value, str) else to_json(value, "a fitted number")


def _read_course(record: Any) -> list[dict[str, float]]:
    """A line for each epoch."""
    is_list = isinstance(record, list) and all(isinstance(line, dict) and line.keys() <= _COURSE for line in record)
    if not is_list or not all(type(value) is float for line in record for value in line.values()):
        raise FaultError(f"the course is {shown(record)}; losses of epochs were expected")
    return [dict(line) for line in record]


def _read_weights(names: Any, tensors: Tensors, prefix: str) -> dict[str, Any]:
    if not isinstance(names, list) or not all(type(name) is str for name in names) or len(set(names)) != len(names):
        raise FaultError(f"the weights are {shown(names)}; a list of names was expected")
    found = {}
    for name in names:
        if f"{prefix}{name}" not in tensors:
            raise FaultError(f"the array {prefix + name!r} is missing")
        found[name] = tensors.pop(f"{prefix}{name}")
        if found[name].dtype.kind not in "fiu" or not np.isfinite(found[name]).all():
            raise FaultError(f"the weights {name!r} are not finite numbers")
    return found
