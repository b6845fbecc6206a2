"""The training record in a model file: optional, plain JSON of a modest size, data of a stranger.

What its keys mean is for `margrove.app.provenance`; here it is only made sure that it is what it says: an object of
JSON values, all of whose numbers are finite. A long one lies in a tensor, as other long parts do.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from margrove.store.fault import FaultError, shown
from margrove.store.versions import Header, Tensors

ATTRIBUTE = "training_record_"
FIELD = "record"
TENSOR = "training_record"
MOST_BYTES = 1 << 23  # 5,000 rows of 100 classes take half of it
LONG = 1 << 20  # bytes that a header need not carry


def take_record(model: Any, header: Header, tensors: Tensors) -> None:
    """Put the record of a model, if it has one, into the header, or into a tensor."""
    record = getattr(model, ATTRIBUTE, None)
    if record is None:
        return
    text = _checked(record)
    if len(text) <= LONG:
        header[FIELD] = json.loads(text)
        return
    tensors[TENSOR] = np.frombuffer(text, dtype=np.uint8)
    header[FIELD] = {"$tensor": TENSOR}


def give_record(model: Any, header: Header) -> None:
    """Hang the record of a header, if it has one, on the model."""
    if FIELD in header:
        _checked(header[FIELD])
        setattr(model, ATTRIBUTE, header[FIELD])


def move_in(header: Header, tensors: Tensors) -> None:
    """Move a long record from its tensor back into the header."""
    if header.get(FIELD) != {"$tensor": TENSOR}:
        return
    tensor = tensors.pop(TENSOR, None)
    if tensor is None or tensor.dtype != np.uint8 or tensor.size > MOST_BYTES:
        raise FaultError("its training record is not in the file, or too long")
    try:
        header[FIELD] = json.loads(tensor.tobytes())
    except (ValueError, RecursionError) as error:
        raise FaultError("its training record is not JSON") from error


def _checked(record: Any) -> bytes:
    """The record as JSON text."""
    if not isinstance(record, dict):
        raise FaultError(f"its training record is {shown(record)}; a JSON object was expected")
    try:
        text = json.dumps(record, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise FaultError(f"its training record is not plain JSON: {error}") from error
    if len(text) > MOST_BYTES:
        raise FaultError(
            f"its training record takes {len(text):,} bytes; {MOST_BYTES:,} are allowed",
            "Leave out of training_record_ what nobody reads.",
        )
    return text
