"""The training record in a model file: optional, plain JSON of a modest size, written by anybody.

`margrove.app.provenance` knows what its keys mean; here it is only checked that it is an object of JSON values, all of
whose numbers are finite. A long one is moved into a tensor, as other long parts are.
"""

from __future__ import annotations

import json
from typing import Any

from margrove.store.fault import FaultError, shown
from margrove.store.long_lists import MARK, move_field, read_json
from margrove.store.versions import Header, Tensors

ATTRIBUTE = "training_record_"
FIELD = "record"
TENSOR = "training_record"
MOST_BYTES = 1 << 23  # 5,000 rows of 100 classes take half of it


def take_record(model: Any, header: Header, tensors: Tensors) -> None:
    """Put the record of a model, if it has one, into the header, or into a tensor."""
    record = getattr(model, ATTRIBUTE, None)
    if record is not None:
        _check(record)
        header[FIELD] = record
        move_field(header, FIELD, tensors, TENSOR)


def give_record(model: Any, header: Header) -> None:
    """Give the model the record of a header, if there is one."""
    if FIELD in header:
        _check(header[FIELD])
        setattr(model, ATTRIBUTE, header[FIELD])


def move_in(header: Header, tensors: Tensors) -> None:
    """Move a long record from its tensor back into the header."""
    if header.get(FIELD) == {MARK: TENSOR}:
        absent = "its training record is not in the file, or too long"
        header[FIELD] = read_json(TENSOR, tensors, absent, "its training record is not JSON", MOST_BYTES)


def _check(record: Any) -> None:
    if not isinstance(record, dict):
        raise FaultError(f"its training record is {shown(record)}; a JSON object was expected")
    try:
        size = len(json.dumps(record, allow_nan=False, separators=(",", ":")).encode())
    except (TypeError, ValueError) as error:
        raise FaultError(f"its training record is not plain JSON: {error}") from error
    if size > MOST_BYTES:
        raise FaultError(
            f"its training record takes {size:,} bytes; {MOST_BYTES:,} are allowed",
            "Leave out of training_record_ what nobody reads.",
        )
