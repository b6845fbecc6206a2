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
_FIELDS = ("feature_names", "columns", "dropped", "labels", "certificate", "parameters")
_MARK = "$tensor"


def move_out(record: dict[str, Any], tensors: Tensors, prefix: str = "") -> None:
    """Move the long parts of a model's record, and of its steps, into ``tensors``."""
    for name in _FIELDS:
        if name not in record:
            continue
        text = json.dumps(record[name], allow_nan=False, separators=(",", ":")).encode()
        if len(text) > LONG:
            tensors[prefix + name] = np.frombuffer(text, dtype=np.uint8)
            record[name] = {_MARK: prefix + name}
    for number, step in _steps(record):
        move_out(step, tensors, f"{prefix}steps.{number}.")


def move_in(record: Any, tensors: Tensors) -> None:
    """Move them back, out of ``tensors``."""
    if not isinstance(record, dict):
        return
    for name in _FIELDS:
        place = record.get(name)
        if isinstance(place, dict) and place.keys() == {_MARK}:
            record[name] = _read(place[_MARK], tensors)
    for _, step in _steps(record):
        move_in(step, tensors)


def _read(name: Any, tensors: Tensors) -> Any:
    tensor = tensors.pop(name, None) if isinstance(name, str) else None
    if tensor is None or tensor.dtype != np.uint8:
        raise FaultError(f"the list {shown(name)} is not in the file")
    try:
        return json.loads(tensor.tobytes())
    except (ValueError, RecursionError) as error:
        raise FaultError(f"the list {shown(name)} is not JSON") from error


def _steps(record: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """The steps of a pipeline's record that are records; none where there is no pipeline."""
    steps = record.get("steps")
    if not isinstance(steps, list):
        return []
    pairs = [(number, step) for number, step in enumerate(steps) if isinstance(step, list) and len(step) == 2]
    return [(number, step[1]) for number, step in pairs if isinstance(step[1], dict)]
