"""A model as its file has it, a record and arrays, and what a program that only predicts makes of it: a `Rule`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store import long_lists
from margrove.store.check import check_fields
from margrove.store.container import Header, Tensors, bring_up_to_date, unpack
from margrove.store.fault import FaultError, shown
from margrove.store.files import Target, open_for_reading
from margrove.store.plain import from_json, labels_from_json

FIELD, TENSOR = "record", "training_record"  # the places of a training record in a file
MOST_BYTES = 1 << 23  # of a record: 5,000 rows of 100 classes take half of it
DAMAGED = "Do not use this file: get another copy, or save the model again."


def read_file(path: Target) -> tuple[Header, Tensors]:
    """Return the header and the arrays of a file, in today's format."""
    with open_for_reading(path) as stream:
        header, tensors = unpack(stream)
    header, tensors = bring_up_to_date(header, tensors)
    check_fields(header, {"sha256", "format", "margrove", "model"} | (header.keys() & {FIELD}), "its header")
    if header.get(FIELD) == {long_lists.MARK: TENSOR}:
        absent = "its training record is not in the file, or too long"
        damaged = "its training record is not JSON"
        header[FIELD] = long_lists.read_json(TENSOR, tensors, absent, damaged, MOST_BYTES)
    long_lists.move_in(header["model"], tensors)
    return header, tensors


@dataclass(frozen=True)
class Rule:
    """The predictions of a model as functions of its rows, see `margrove.data.given.Given`. The last three may be
    missing."""

    d: int  # columns
    predict: Callable[[Any], NDArray[Any]]
    decision_function: Callable[[Any], NDArray[Any]] | None = None
    predict_proba: Callable[[Any], NDArray[Any]] | None = None
    classes: NDArray[Any] | None = field(default=None, kw_only=True)
    names: tuple[str, ...] | None = field(default=None, kw_only=True)  # of the columns


@dataclass(frozen=True)
class Saved:
    """A record, and the arrays whose names begin with ``prefix``."""

    record: Any
    tensors: Tensors
    prefix: str = ""

    def within(self, place: str, record: Any = None) -> Saved:
        """Return a part of the model."""
        return Saved(record, self.tensors, f"{self.prefix}{place}.")

    def parameter(self, name: str, default: Any = None) -> Any:
        """Return a parameter; older files may lack it."""
        return from_json(self.record["parameters"].get(name, default))

    def array(self, name: str, layouts: Any = None) -> NDArray[Any]:
        """Return a dense array as it lay in memory, on which the last bit of a product may depend."""
        layout = (self.record["arrays"] if layouts is None else layouts)[name]
        if layout not in ("C", "F") or self.prefix + name not in self.tensors:
            raise FaultError(f"{name} is laid out as {shown(layout)}; a dense array was expected")
        array = self.tensors[self.prefix + name]
        return np.asfortranarray(array) if layout == "F" else array

    def rule(self, *functions: Any, classes: NDArray[Any] | None = None, names: tuple[str, ...] | None = None) -> Rule:
        """Return the rule of these functions on the model's columns."""
        own = self.record.get("feature_names")
        return Rule(int(self.record["n_features_in"]), *functions, classes=classes, names=names or (own and tuple(own)))

    @property
    def classes(self) -> NDArray[Any]:
        """The labels of a classifier."""
        return labels_from_json(self.record["labels"])
