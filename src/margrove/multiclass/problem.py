"""The problem of each machine of a code: the rows it sees, and the side of each row. No solver.

Column s of the code matrix is a two-class problem on the rows whose entry is not 0: y_i = c_{class(i), s}, −1 or +1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from margrove.data.table import Table
from margrove.errors import InputError, as_input_error


@dataclass(frozen=True)
class Question:
    """One machine's question."""

    rows: NDArray[np.int64] | None  # of X; None where it sees all of them
    sign: NDArray[np.int8]  # −1 or +1 of each of these


def columns_of(code: NDArray[np.int8], codes: NDArray[np.intp]) -> list[Question]:
    """The questions of all machines; ``codes`` is the number of each row's class."""
    columns = []
    for column in code.T:
        sign = column[codes]
        rows = None if (column != 0).all() else np.flatnonzero(sign)
        columns.append(Question(rows, sign if rows is None else sign[rows]))
    return columns


@as_input_error
def rows_of(X: Any, rows: NDArray[np.int64] | None, *, is_pairwise: bool = False) -> Any:
    """Some rows of X, of the kind that X is: array, sparse matrix, data frame or `Table`. Of a Gram matrix
    (``is_pairwise``) also those columns."""
    if rows is None:
        return X
    if is_pairwise:
        return X[rows][:, rows]
    if isinstance(X, Table) or type(X).__module__.startswith("pyarrow"):
        return X.take(rows)
    return _safe_indexing(X, rows)


def seen_columns(X: Any, rows: NDArray[np.int64] | None, *, is_pairwise: bool) -> Any:
    """X as a machine predicts from it: of kernel values (``is_pairwise``) those with the rows it has seen."""
    return X if rows is None or not is_pairwise else X[:, rows]


@as_input_error
def weights_of(sample_weight: Any, rows: NDArray[np.int64] | None, n: int) -> Any:
    """The weights of some rows."""
    if sample_weight is None or rows is None:
        return sample_weight
    weight = np.asarray(sample_weight)
    if weight.shape[:1] != (n,):
        raise InputError(f"sample_weight has shape {weight.shape}; X has {n} rows", cure=f"Pass {n} numbers.")
    return weight[rows]
