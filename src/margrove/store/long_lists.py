"""Long parts of a header, such as the names of a million columns: what takes more than 1 MiB is moved into a tensor, as
JSON text in UTF-8. In the header such a part is ``{"$tensor": "steps.0.columns"}``, the name of the tensor.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from margrove.store.container import Tensors
from margrove.store.fault import FaultError, shown

LONG = 1 << 20  # bytes of JSON
_FIELDS = ("feature_names", "columns", "dropped", "labels", "certificate", "parameters", "deviations")
MARK = "$tensor"


def move_out(record: dict[str, Any], tensors: Tensors, prefix: str = "") -> None:
    """Move the long parts of a model's record, and of the records in it, into ``tensors``."""
    for name in _FIELDS:
        if name in record:
            move_field(record, name, tensors, prefix + name)
    for place, part in _parts(record):
        move_out(part, tensors, f"{prefix}{place}.")


def move_field(record: dict[str, Any], name: str, tensors: Tensors, place: str) -> None:
    """Move one field of a record into the tensor ``place`` if it is long."""
    text = json.dumps(record[name], allow_nan=False, separators=(",", ":")).encode()
    if len(text) > LONG:
        tensors[place] = np.frombuffer(text, dtype=np.uint8)
        record[name] = {MARK: place}


def move_in(record: Any, tensors: Tensors) -> None:
    """Move them back, out of ``tensors``."""
    if not isinstance(record, dict):
        return
    for name in _FIELDS:
        place = record.get(name)
        if isinstance(place, dict) and place.keys() == {MARK}:
            what = f"the list {shown(place[MARK])}"
            record[name] = read_json(place[MARK], tensors, f"{what} is not in the file", f"{what} is not JSON")
    for _, part in _parts(record):
        move_in(part, tensors)


def read_json(name: Any, tensors: Tensors, absent: str, damaged: str, most: float = math.inf) -> Any:
    """Take a tensor out and return the JSON value in it, of at most ``most`` bytes; else raise one of the two texts."""
    tensor = tensors.pop(name, None) if isinstance(name, str) else None
    if tensor is None or tensor.dtype != np.uint8 or tensor.size > most:
        raise FaultError(absent)
    try:
        return json.loads(tensor.tobytes())
    except (ValueError, RecursionError) as error:
        raise FaultError(damaged) from error


def _parts(record: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the records within a record with their places: the steps of a pipeline, the machines of a code, the model
    that is calibrated."""
    steps, machines = record.get("steps"), record.get("machines")
    parts = [("model", record.get("model"))]
    if isinstance(steps, list):
        pairs = [(number, step) for number, step in enumerate(steps) if isinstance(step, list) and len(step) == 2]
        parts += [(f"steps.{number}", step[1]) for number, step in pairs]
    if isinstance(machines, list):
        parts += [(f"machines.{number}", machine) for number, machine in enumerate(machines)]
    return [(place, part) for place, part in parts if isinstance(part, dict)]
