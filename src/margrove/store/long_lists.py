"""Names of a million columns, or the claims of a hundred thousand machines, do not belong in a header: what takes more
than 1 MiB lies in a tensor, as JSON text in UTF-8.

In the header such a part is ``{"$tensor": "steps.0.columns"}``, the name of the tensor.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from margrove.store.fault import FaultError, shown
from margrove.store.versions import Tensors

LONG = 1 << 20  # bytes of JSON
_FIELDS = ("feature_names", "columns", "dropped", "labels", "certificate", "parameters", "deviations")
_MARK = "$tensor"


def move_out(record: dict[str, Any], tensors: Tensors, prefix: str = "") -> None:
    """Move the long parts of a model's record, and of the records in it, into ``tensors``."""
    for name in _FIELDS:
        if name not in record:
            continue
        text = json.dumps(record[name], allow_nan=False, separators=(",", ":")).encode()
        if len(text) > LONG:
            tensors[prefix + name] = np.frombuffer(text, dtype=np.uint8)
            record[name] = {_MARK: prefix + name}
    for place, part in _parts(record):
        move_out(part, tensors, f"{prefix}{place}.")


def move_in(record: Any, tensors: Tensors) -> None:
    """Move them back, out of ``tensors``."""
    if not isinstance(record, dict):
        return
    for name in _FIELDS:
        place = record.get(name)
        if isinstance(place, dict) and place.keys() == {_MARK}:
            record[name] = _read(place[_MARK], tensors)
    for _, part in _parts(record):
        move_in(part, tensors)


def _read(name: Any, tensors: Tensors) -> Any:
    tensor = tensors.pop(name, None) if isinstance(name, str) else None
    if tensor is None or tensor.dtype != np.uint8:
        raise FaultError(f"the list {shown(name)} is not in the file")
    try:
        return json.loads(tensor.tobytes())
    except (ValueError, RecursionError) as error:
        raise FaultError(f"the list {shown(name)} is not JSON") from error


def _parts(record: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The records within a record, and where: the steps of a pipeline, the machines of a code."""
    steps, machines = record.get("steps"), record.get("machines")
    parts = []
    if isinstance(steps, list):
        pairs = [(number, step) for number, step in enumerate(steps) if isinstance(step, list) and len(step) == 2]
        parts += [(f"steps.{number}", step[1]) for number, step in pairs]
    if isinstance(machines, list):
        parts += [(f"machines.{number}", machine) for number, machine in enumerate(machines)]
    return [(place, part) for place, part in parts if isinstance(part, dict)]
