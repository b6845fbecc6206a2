"""A table's encoder taken apart into a record, and put together again. It has no arrays: all is in the record, even the
words of a text and their weights, of which scikit-learn's vectorisers are made anew (`margrove.data.text`)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from sklearn.utils.validation import check_is_fitted

from margrove.data.text import LARGEST_WIDTH, text_names
from margrove.errors import ParameterError
from margrove.store.check import check_fields, check_parameters, check_whole
from margrove.store.fault import FaultError, shown
from margrove.store.learner_parts import Taken, parameters_to_json
from margrove.store.plain import from_json, to_json
from margrove.store.schema import (
    COLUMN_FIELDS,
    DROPPED_FIELDS,
    ENCODER,
    ENCODER_CHOICES,
    ENCODER_LATER,
    ENCODER_RANGES,
    MOST_COLUMNS,
    TRANSFORM_OUTPUTS,
)

_FIELDS = {"class", "parameters", "n_features_in", "has_names", "columns", "dropped", "target", "output"}


def take_encoder_apart(encoder: Any, taken: Taken) -> dict[str, Any]:
    """The record of a fitted encoder."""
    check_is_fitted(encoder)
    state = encoder.state()
    deviations = {} if state["deviations"] is None else {"deviations": state["deviations"]}
    return {
        "class": "TableEncoder",
        "parameters": parameters_to_json(encoder, taken),
        "n_features_in": int(state["n_features_in"]),
        "has_names": state["has_names"],
        "columns": to_json(state["columns"], "a column"),
        "dropped": to_json(state["dropped"], "a column left out"),
        "target": state["target"],
        # Where scikit-learn's set_output keeps its word; a learner fitted on named columns expects them again.
        "output": getattr(encoder, "_sklearn_output_config", {}).get("transform"),
        **deviations,
    }


def put_encoder_together(record: dict[str, Any]) -> Any:
    """The encoder that the record describes."""
    check_fields(record, _FIELDS | ({"deviations"} & set(record)), "the record of TableEncoder")
    if type(record["has_names"]) is not bool or record["output"] not in TRANSFORM_OUTPUTS:
        raise FaultError("the record of TableEncoder does not say whether columns have names, or what comes out")
    state = {
        "parameters": encoder_parameters_from_json(record["parameters"]),
        "columns": from_json(record["columns"]),
        "dropped": from_json(record["dropped"]),
        "n_features_in": check_whole(record["n_features_in"], 1, "n_features_in", MOST_COLUMNS),
        "has_names": record["has_names"],
        "target": record["target"],
        "deviations": record.get("deviations"),
    }
    _check_columns(state)
    encoder = ENCODER.from_state(state)
    _check_deviations(record, len(encoder.output_origins()))
    return encoder if record["output"] is None else encoder.set_output(transform=record["output"])


def encoder_parameters_from_json(record: Any) -> dict[str, Any]:
    """The parameters of an encoder, fitted or not."""
    parameters = check_parameters(record, ENCODER, ENCODER_CHOICES, ENCODER_RANGES, ENCODER_LATER)
    try:
        text_names(parameters["text"])
    except ParameterError as error:
        raise FaultError(f"text is {shown(parameters['text'])}; names of columns were expected") from error
    return parameters


def _check_columns(state: dict[str, Any]) -> None:
    """Kept and left-out columns, together, are the columns of the table, each of them once."""
    if not isinstance(state["columns"], list) or not isinstance(state["dropped"], list) or not state["columns"]:
        raise FaultError("the columns are not two lists, of those kept and of those left out")
    for column in state["columns"]:
        kind = column.get("kind") if isinstance(column, dict) else None
        if not isinstance(kind, str) or kind not in COLUMN_FIELDS:
            raise FaultError(f"{shown(column)} is no column: it is of no known kind")
        _check_column(column, COLUMN_FIELDS[kind])
        _check_learned(column)
    for column in state["dropped"]:
        _check_column(column, DROPPED_FIELDS)
    every = [*state["columns"], *state["dropped"]]
    if sorted(column["index"] for column in every) != list(range(len(every))) or len(every) != state["n_features_in"]:
        raise FaultError(f"the columns kept and left out are not those of a table of {state['n_features_in']}")
    names = {column["name"] for column in every}
    if len(names) != len(every):
        raise FaultError("two columns have the same name")
    _check_texts(state)
    target = state["target"]
    if target is not None and (type(target) is not str or target in names):
        raise FaultError(
            f"the target is {shown(target)}; the name of a column that is not among the others was expected"
        )


def _check_deviations(record: dict[str, Any], width: int) -> None:
    """One for each output column, where they are kept."""
    if "deviations" not in record:
        return
    found = record["deviations"]
    if not isinstance(found, list) or len(found) != width:
        raise FaultError(f"the deviations are {shown(found)}; a list of {width} numbers was expected")
    if not all(type(deviation) in (int, float) and 0 <= deviation < math.inf for deviation in found):
        raise FaultError("the deviations are not all finite numbers from 0 on")


def _check_texts(state: dict[str, Any]) -> None:
    """The columns of text are those that the parameter names, but for any that were left out."""
    parameters = state["parameters"]
    names = set(text_names(parameters["text"]))
    dropped = {column["name"] for column in state["dropped"]}
    texts = [column for column in state["columns"] if column["kind"] == "text"]
    if {column["name"] for column in texts} != names - dropped or not names <= {
        column["name"] for column in (*state["columns"], *state["dropped"])
    }:
        raise FaultError("the columns of text are not those that its parameter text names")
    for column in texts:
        if column["features"] != parameters["text_features"]:
            raise FaultError(f"column {shown(column['name'])}: its words are not what text_features says")


def _check_column(column: Any, fields: dict[str, type]) -> None:
    check_fields(column, set(fields), "a column")
    for name, wanted in fields.items():
        if type(column[name]) is not wanted:
            raise FaultError(f"column {shown(column['name'])}: {name} is {shown(column[name])}, not {wanted.__name__}")


def _check_learned(column: dict[str, Any]) -> None:
    """What was learned is what `fit` can learn."""
    name = shown(column["name"])
    if column["kind"] == "text":
        _check_words(column)
        return
    if column["kind"] != "category":
        numbers = [column[key] for key in ("fill", "mean", "scale")]
        if not all(map(math.isfinite, numbers)) or not column["scale"] > 0:
            raise FaultError(f"column {name}: fill, mean and scale are {numbers}; finite and scale > 0 was expected")
        return
    levels = column["levels"]
    is_text = all(type(level) is str for level in levels)
    if not is_text and not all(type(level) in (int, float) for level in levels):
        raise FaultError(f"column {name}: its levels are neither all text nor all numbers")
    if any(not low < high for low, high in pairwise(levels)):
        raise FaultError(f"column {name}: its levels are not sorted and distinct")


def _check_words(column: dict[str, Any]) -> None:
    """Of tf-idf: distinct words in order, each with a weight of 1 or more, for such is 1 + ln((1 + n)/(1 + n_w)). Of
    hashes: none."""
    name, words, weights = shown(column["name"]), column["words"], column["idf"]
    n_columns = check_whole(column["n_columns"], 1, f"column {name}: n_columns", LARGEST_WIDTH)
    n_named = 0 if column["features"] == "hashing" else n_columns
    if len(words) != n_named or len(weights) != n_named:
        raise FaultError(f"column {name}: {len(words)} words and {len(weights)} weights for {n_columns} columns")
    if not all(type(word) is str for word in words) or any(not low < high for low, high in pairwise(words)):
        raise FaultError(f"column {name}: its words are not text, or not sorted and distinct")
    if not all(type(weight) is float and 1 <= weight < math.inf for weight in weights):
        raise FaultError(f"column {name}: its words' weights are not all finite numbers from 1 on")
