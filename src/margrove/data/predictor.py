"""`TableEncoder` in a program that only predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.given import MISSING, Given
from margrove.store.fault import FaultError
from margrove.store.plain import from_json
from margrove.store.saved import Rule, Saved


def encoder(saved: Saved) -> Rule:
    """Return the rule whose ``predict`` is the encoder's output, dense; the formulas are those of `encoding`."""
    kept, dropped = from_json(saved.record["columns"]), from_json(saved.record["dropped"])
    for column in kept:
        check_plain(column, column["kind"] == "text")
    names = [column["name"] for column in sorted((*kept, *dropped), key=lambda column: column["index"])]

    def transform(given: Given) -> NDArray[Any]:
        dtype = np.float64 if given.block is None else given.block.dtype
        encoded = np.concatenate([_encoded(given, column) for column in kept], axis=1)
        return np.asarray(encoded, dtype)

    return saved.rule(transform, names=tuple(names) if saved.record["has_names"] else None)


def standard_scaler(saved: Saved) -> Rule:
    """Return scikit-learn's StandardScaler."""
    of = {"with_mean": "mean_", "with_std": "scale_"}
    mean, scale = (saved.array(name) if saved.parameter(switch) else None for switch, name in of.items())

    def transform(given: Given) -> NDArray[Any]:
        rows = given.matrix()
        rows = rows if mean is None else np.subtract(rows, mean.astype(rows.dtype))
        return np.asarray(rows if scale is None else rows / scale.astype(rows.dtype))

    return saved.rule(transform)


def check_plain(column: dict[str, Any], is_text: bool = False) -> None:
    """Refuse a column whose cells are read by the rules of tables: dates, units, free text."""
    if is_text or column.get("format") is not None or column.get("date_part"):
        what = "free text" if is_text else "dates or written with a unit"
        raise FaultError(
            f"the column {column['name']!r} is {what}, which a Predictor does not read", "Use margrove.load."
        )


def _encoded(given: Given, column: dict[str, Any]) -> NDArray[Any]:
    j = column["index"]
    if column["kind"] == "category":
        codes, n_levels = given.codes(j, column["levels"]), len(column["levels"])
        if column["missing_seen"]:
            codes = np.where(codes == MISSING, n_levels, codes)
        return np.asarray(codes[:, None] == np.arange(n_levels + column["missing_seen"]), dtype=np.float64)
    if column["kind"] == "boolean":
        codes = given.codes(j, (False, True))
        numbers = np.where(codes < 0, np.nan, codes)
    else:
        numbers = given.numbers(j)
    is_absent = np.isnan(numbers)
    # In float64 whatever comes in, as in the encoder.
    encoded = (numbers - np.float64(column["mean"])) / column["scale"]
    encoded[is_absent] = (column["fill"] - column["mean"]) / column["scale"]
    return np.column_stack([encoded, is_absent] if column["indicator"] else [encoded])
