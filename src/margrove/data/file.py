"""`TableEncoder` in a model file. It has no arrays: all is in the record, even the words of a text and their weights,
from which scikit-learn's vectorisers are rebuilt (`margrove.data.text`)."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from margrove.data.dates import CYCLES
from margrove.data.encoding import width
from margrove.data.formats import Format, format_from_json, format_to_json
from margrove.data.text import LARGEST_WIDTH, MOST_WORDS, text_names
from margrove.errors import ParameterError
from margrove.store.check import check_fields, check_integer, check_target
from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json, to_json
from margrove.store.schema import COUNT, N_FEATURES, OUTPUT, TRANSFORM_OUTPUTS, Draft, Part, Range, Schema

# The description of each column that is kept; see `margrove.data.encoding` and `margrove.data.text`.
_COLUMN: dict[str, type] = {"name": str, "index": int, "kind": str}
_OF_NUMBERS = {**_COLUMN, "fill": float, "mean": float, "scale": float, "indicator": bool}
_FIELDS = {
    "numeric": _OF_NUMBERS,
    "boolean": _OF_NUMBERS,
    "category": {**_COLUMN, "levels": list, "missing_seen": bool},
    "text": {**_COLUMN, "features": str, "n_columns": int, "words": list, "idf": list},
}
_WRITING = ("format", "date_part")  # which a column may have besides
_DROPPED: dict[str, type] = {"name": str, "index": int, "why": str}


class _EncoderFile(Schema):
    def parameters_from_json(self, estimator: type, record: Any) -> dict[str, Any]:
        parameters = super().parameters_from_json(estimator, record)
        try:
            text_names(parameters["text"])
        except ParameterError as error:
            raise FaultError(f"text is {shown(parameters['text'])}; names of columns were expected") from error
        return parameters

    def build(self, draft: Draft) -> Any:
        kept, dropped = draft.fitted["columns_"], draft.fitted["dropped_"]
        _check_columns(kept, dropped, draft.d)
        every = sorted((*kept, *dropped), key=lambda column: column["index"])
        names = [column["name"] for column in every]
        if len(set(names)) != len(names):
            raise FaultError("two columns have the same name")
        _check_texts(draft.parameters, kept, {column["name"] for column in dropped})
        check_target(draft.fitted["target_"], names)
        if draft.record["has_names"]:
            draft.fitted["feature_names_in_"] = np.array(names, dtype=object)
        if "deviations_" in draft.fitted:
            found, n_columns = draft.fitted["deviations_"], sum(map(width, kept))
            if not isinstance(found, list) or len(found) != n_columns:
                raise FaultError(f"the deviations are {shown(found)}; a list of {n_columns} numbers was expected")
            if not all(type(deviation) in (int, float) and 0 <= deviation < math.inf for deviation in found):
                raise FaultError("the deviations must all be finite numbers ≥ 0")
        return super().build(draft)


def _has_names(value: Any, draft: Draft) -> None:
    if type(value) is not bool or draft.record["output"] not in TRANSFORM_OUTPUTS:
        raise FaultError("the record of TableEncoder does not state whether columns have names, or its output type")


def _learned(name: str, what: str, *, is_optional: bool = False) -> Part:
    def read(value: Any, draft: Draft) -> None:
        draft.fitted[f"{name}_"] = from_json(value)

    return Part(name, lambda model, *_: to_json(getattr(model, f"{name}_", None), what), read, is_optional)


def _read_target_format(record: Any, draft: Draft) -> None:
    draft.fitted["target_format_"] = read_format(record, "target")


TARGET_FORMAT = Part(
    "target_format",
    lambda model, *_: format_to_json(getattr(model, "target_format_", None)),
    _read_target_format,
    is_optional=True,
)

ENCODER_FILE = _EncoderFile(
    limits={"min_df": COUNT, "max_features": Range(1, LARGEST_WIDTH, (int,))},
    # of files from before there was text
    later={"text": None, "text_features": "tfidf", "min_df": 2, "max_features": MOST_WORDS},
    parts=(
        N_FEATURES,
        Part("has_names", lambda model, *_: hasattr(model, "feature_names_in_"), _has_names),
        _learned("columns", "a column"),
        _learned("dropped", "a column left out"),
        _learned("target", "the target"),
        TARGET_FORMAT,
        OUTPUT,
        _learned("deviations", "a deviation", is_optional=True),
    ),
    n_out=lambda model: sum(map(width, model.columns_)),
)


def _check_columns(kept: Any, dropped: Any, n_columns: int) -> None:
    """Check that kept and left-out columns, together, are the columns of the table, each of them once."""
    if not isinstance(kept, list) or not isinstance(dropped, list) or not kept:
        raise FaultError("the columns are not two lists, one of those kept and one of those left out")
    for column in kept:
        kind = column.get("kind") if isinstance(column, dict) else None
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise FaultError(f"{shown(column)} is not a column of a known kind")
        _check_types({name: column[name] for name in column if name not in _WRITING}, _FIELDS[kind])
        _check_writing(column)
        _check_learned(column)
    for column in dropped:
        _check_types(column, _DROPPED)
    every = sorted(column["index"] for column in (*kept, *dropped))
    if every != list(range(len(every))) or len(every) != n_columns:
        raise FaultError(f"the columns kept and left out are not those of a table with {n_columns} columns")


def _check_texts(parameters: dict[str, Any], kept: list[Any], dropped: set[str]) -> None:
    """Check that the columns of text are those that the parameter names, but for any that were left out."""
    names = set(text_names(parameters["text"]))
    texts = [column for column in kept if column["kind"] == "text"]
    known = {column["name"] for column in kept} | dropped
    if {column["name"] for column in texts} != names - dropped or not names <= known:
        raise FaultError("the text columns are not those named by the parameter text")
    for column in texts:
        if column["features"] != parameters["text_features"]:
            raise FaultError(f"column {shown(column['name'])}: its words do not match text_features")


def _check_types(column: Any, fields: dict[str, type]) -> None:
    check_fields(column, set(fields), "a column")
    for name, wanted in fields.items():
        if type(column[name]) is not wanted:
            raise FaultError(f"column {shown(column['name'])}: {name} is {shown(column[name])}, not {wanted.__name__}")


def _check_writing(column: dict[str, Any]) -> None:
    """Check the format of a column of numbers, and the part of a date that a column is."""
    form = read_format(column.get("format"), column["name"])
    if form is not None and column["kind"] != "numeric":
        raise FaultError(f"column {shown(column['name'])}: a {column['kind']} has no format")
    if "date_part" in column:
        check_date_part(column["date_part"], column["name"])


def read_format(record: Any, name: str) -> Format | None:
    """Return the format of a column of a file."""
    try:
        return format_from_json(record)
    except ValueError as error:
        problem = f"its format is {shown(record)}; one of dates or numbers was expected"
        raise FaultError(f"column {shown(name)}: {problem}") from error


def check_date_part(part: Any, name: str) -> None:
    """Check the column of dates and the part of them that a column of a file is derived from."""
    is_pair = isinstance(part, list) and len(part) == 2 and type(part[0]) is str and type(part[1]) is str
    if not is_pair or part[1] not in CYCLES or name != f"{part[0]} {part[1]}":
        raise FaultError(f"column {shown(name)}: {shown(part)} is not a column of dates and a part of them")


def _check_learned(column: dict[str, Any]) -> None:
    """Check that what was learned is what `fit` can learn."""
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
    n_columns = check_integer(column["n_columns"], 1, f"column {name}: n_columns", LARGEST_WIDTH)
    n_named = 0 if column["features"] == "hashing" else n_columns
    if len(words) != n_named or len(weights) != n_named:
        raise FaultError(f"column {name}: {len(words)} words and {len(weights)} weights for {n_columns} columns")
    if not all(type(word) is str for word in words) or any(not low < high for low, high in pairwise(words)):
        raise FaultError(f"column {name}: its words are not text, or not sorted and distinct")
    if not all(type(weight) is float and 1 <= weight < math.inf for weight in weights):
        raise FaultError(f"column {name}: its words' weights must all be finite numbers ≥ 1")
