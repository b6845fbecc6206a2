"""`ImpuritySelector` in an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.onnx.table import Columns


def selected(model: Any, columns: Columns) -> Columns:
    """The columns that it selects."""
    return columns.select(np.flatnonzero(model.support_).tolist())
