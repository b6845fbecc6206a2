"""A selector of columns taken apart into a record and arrays, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from margrove.store.check import check_fields, check_parameters, check_scalar, check_whole
from margrove.store.fault import FaultError
from margrove.store.learner_parts import Taken, parameters_to_json, put_away, read_names, take_arrays
from margrove.store.schema import (
    ENGINE_NAME,
    MOST_COLUMNS,
    SELECTOR,
    SELECTOR_ARRAYS,
    SELECTOR_CHOICES,
    TRANSFORM_OUTPUTS,
)
from margrove.store.versions import Tensors

_FIELDS = {"class", "parameters", "n_features_in", "feature_names", "engine", "arrays", "output"}


def take_selector_apart(selector: Any, taken: Taken, prefix: str) -> dict[str, Any]:
    """The record of a fitted selector; its arrays go into ``taken``."""
    check_is_fitted(selector)
    named = SELECTOR(**{**selector.get_params(deep=False), "score_func": selector.score_name()})  # a file holds no code
    names = getattr(selector, "feature_names_in_", None)
    layouts = {}
    for spec in SELECTOR_ARRAYS:
        array = getattr(selector, spec.name)
        array = array.astype(np.int32) if array.dtype == bool else array
        layouts[spec.name] = put_away(array, taken.tensors, prefix + spec.name)
    return {
        "class": SELECTOR.__name__,
        "parameters": parameters_to_json(named, taken),
        "n_features_in": int(selector.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "engine": selector.engine_,
        "arrays": layouts,
        "output": getattr(selector, "_sklearn_output_config", {}).get("transform"),
    }


def put_selector_together(record: dict[str, Any], tensors: Tensors, prefix: str) -> Any:
    """The selector that the record describes; its tensors are taken out of ``tensors``."""
    check_fields(record, _FIELDS, f"the record of {SELECTOR.__name__}")
    parameters = check_parameters(record["parameters"], SELECTOR, SELECTOR_CHOICES, {})
    columns = check_whole(record["n_features_in"], 1, "n_features_in", MOST_COLUMNS)
    fitted = take_arrays(SELECTOR_ARRAYS, record["arrays"], tensors, prefix, {"d": columns})
    fitted["support_"] = fitted["support_"].astype(bool)
    if not fitted["support_"].any():
        raise FaultError("support_ chooses no column")
    if record["feature_names"] is not None:
        fitted["feature_names_in_"] = read_names(record["feature_names"], columns)
    fitted["engine_"] = check_scalar("engine_", record["engine"], ENGINE_NAME)
    if record["output"] not in TRANSFORM_OUTPUTS:
        raise FaultError(f"the record of {SELECTOR.__name__} does not say what comes out")
    selector: Any = SELECTOR(**parameters)
    vars(selector).update(fitted, n_features_in_=columns)
    return selector if record["output"] is None else selector.set_output(transform=record["output"])
