"""Pictures in a model file: `ConvFeatures`, `FineTuned` and `SoftmaxClassifier`.

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
from margrove.estimator import with_parameters
from margrove.store.arrays import Arrays
from margrove.store.check import check_fields
from margrove.store.fault import FaultError, shown
from margrove.store.plain import to_json
from margrove.store.schema import (
    CERTIFICATE,
    LABELS,
    NOTHING,
    PENALTY,
    PLANE,
    SCALARS,
    SOLVE,
    Draft,
    Limits,
    Part,
    Range,
    Scalar,
    Schema,
    column_count,
    one_vs_rest,
    read_later,
)
from margrove.transfer.preparation import Preparation

_DIGEST = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"[^/\\\x00]{1,255}")
_COURSE = {"loss", "held_out_loss", "held_out_accuracy"}


class _NetworkFile(Schema):
    def take_apart(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        check_is_fitted(model, "network_digest_" if self.n_out else "weights_")
        return super().take_apart(model, arrays)

    def parameters_to_json(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        network = model.network if isinstance(model.network, str | os.PathLike) else None
        if network is not None and (not isinstance(network, str) or network.lower().endswith(".onnx")):
            network = os.path.basename(os.fspath(network))
        weights = None if model.weights is None else os.path.basename(os.fspath(model.weights))
        cache = {"cache": None} if hasattr(model, "cache") else {}
        plain = with_parameters(model, network=network, weights=weights, download=False, **cache)
        return super().parameters_to_json(plain, arrays)

    def parameters_from_json(self, estimator: type, record: Any) -> dict[str, Any]:
        parameters = super().parameters_from_json(estimator, record)
        for name in ("network", "weights"):
            value = parameters[name]
            is_name = isinstance(value, str) and _NAME.fullmatch(value) and Path(value).name == value
            if value is not None and not is_name:
                raise FaultError(f"{name} is {shown(value)}; the name of a network or of a file was expected")
        return parameters


def _read_digest(digest: Any, draft: Draft) -> None:
    name = draft.record["network_name"]
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or not isinstance(name, str):
        raise FaultError(f"the network is {shown(name)} with the fingerprint {shown(digest)}, which is not valid")
    draft.fitted |= {"network_name_": name, "network_digest_": digest}


def _preparation(model: Any, *_: Any) -> dict[str, Any]:
    seen = model.preparation_
    return {"size": seen.size, "crop": seen.crop, "mean": list(seen.mean), "std": list(seen.std)}


def _read_preparation(value: Any, draft: Draft) -> None:
    check_fields(value, {"size", "crop", "mean", "std"}, "the preparation of pictures")
    mean = value["mean"]
    if not isinstance(mean, list) or len(mean) not in (1, 3) or not isinstance(value["std"], list):
        raise FaultError(f"the means of the channels are {shown(mean)}; one or three were expected")
    usual = Preparation(mean=(0.0,) * len(mean), std=(1.0,) * len(mean))
    try:
        draft.fitted["preparation_"] = usual.with_given(value["size"], value["crop"], mean, value["std"])
    except ParameterError as error:
        raise FaultError(str(error).rstrip(".")) from error


def _read_layer(value: Any, draft: Draft) -> None:
    if type(value) is not str:
        raise FaultError(f"the layer is {shown(value)}; a text was expected")
    draft.fitted["layer_"] = value


def _read_course(value: Any, draft: Draft) -> None:
    """A line for each epoch."""
    is_list = isinstance(value, list) and all(isinstance(line, dict) and line.keys() <= _COURSE for line in value)
    if not is_list or not all(type(number) is float for line in value for number in line.values()):
        raise FaultError(f"the course is {shown(value)}; a list of the losses of each epoch was expected")
    draft.fitted["course_"] = [dict(line) for line in value]


def _weights(model: Any, schema: Schema, arrays: Arrays) -> list[str]:
    for name, array in model.weights_.items():
        arrays.within("weights").put(name, array)
    return sorted(model.weights_)


def _read_weights(names: Any, draft: Draft) -> None:
    if not isinstance(names, list) or not all(type(name) is str for name in names) or len(set(names)) != len(names):
        raise FaultError(f"the weights are {shown(names)}; a list of names was expected")
    found = draft.fitted["weights_"] = {}
    for name in names:
        found[name] = draft.arrays.within("weights").pop(name)
        if found[name].dtype.kind not in "fiu" or not np.isfinite(found[name]).all():
            raise FaultError(f"the weights {name!r} are not finite numbers")


def _machines(parameters: Any, labels: int) -> dict[str, int]:
    if labels < 2:
        raise FaultError("a fine-tuned network needs at least two classes, and it has one")
    return one_vs_rest(parameters, labels)


_NETWORK = (
    Part("network_name", lambda model, *_: model.network_name_, read_later),
    Part("network_digest", lambda model, *_: model.network_digest_, _read_digest),
    Part("preparation", _preparation, _read_preparation),
)
_LIMITS: dict[str, Limits] = {"download": (False,), "batch_size": Range(1, 1 << 20, (int,))}

FEATURES_FILE = _NetworkFile(
    limits={**_LIMITS, "cache": NOTHING},
    parts=(
        *_NETWORK,
        Part("layer", lambda model, *_: model.layer_, _read_layer),
        column_count("n_features_out"),
    ),
    is_for_schemes=False,
    n_out=lambda model: int(model.n_features_out_),
)
TUNED_FILE = _NetworkFile(
    scalars={**SOLVE, "engine_": Scalar(str, choices=("torch",)), "training_loss_": Scalar(float)},
    limits={**_LIMITS, "checkpoint": NOTHING, "n_blocks": Range(0, 1 << 20, (int, type(None)))},
    machines=_machines,
    parts=(
        *_NETWORK,
        LABELS,
        SCALARS,
        Part("course", lambda model, *_: to_json(model.course_, "the course"), _read_course),
        Part("weights", _weights, _read_weights),
        CERTIFICATE,
    ),
    is_for_schemes=False,
)
SOFTMAX_FILE = Schema(
    PLANE,
    {**SOLVE, "engine_": Scalar(str, choices=("scikit-learn",))},
    limits={"C": PENALTY},
)
