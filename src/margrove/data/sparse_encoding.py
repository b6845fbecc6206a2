"""How a sparse table becomes numbers for a margin, and stays sparse.

x  ↦  x̂ / scale,   scale = √(Σx̂²/n),   x̂ = x, or `fill` where x is missing

The scale is the root mean square of the whole column, zeros included: its deviation from zero. Nothing is
centred, since that would turn every zero into a number; a zero stays a zero and is not stored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csc_matrix

from margrove.advice import Advice, InPython
from margrove.data.alignment import sparse_as_trained
from margrove.data.columns import Column
from margrove.data.encoding import Description, describe_numeric
from margrove.data.rows import Matrix
from margrove.data.table import Table
from margrove.errors import InputError


def learn_sparse(table: Table, *, impute: str, standardise: bool) -> tuple[list[Description], list[bool]]:
    """What is learned of each column of a sparse table, and whether the column is constant."""
    matrix = table.sparse.tocsc(copy=True)
    matrix.sum_duplicates()
    fills = _fill(matrix, impute)
    n, d = matrix.shape
    column_of = _column_of(matrix)
    cells = matrix.data.astype(np.float64)
    largest = np.zeros(d)
    np.maximum.at(largest, column_of, np.abs(cells))
    # Squares of cells relative to the column's largest neither overflow nor vanish.
    unit = np.where(largest > 0, largest, 1.0)
    squares = np.bincount(column_of, weights=(cells / unit[column_of]) ** 2, minlength=d)
    scales = np.where(largest > 0, unit * np.sqrt(squares / n), 1.0) if standardise else np.ones(d)
    descriptions: list[Description] = [
        {
            "name": name,
            "index": index,
            "kind": "numeric",
            "fill": fills.get(index, 0.0),
            "mean": 0.0,
            "scale": scale,
            "indicator": False,
        }
        for index, (name, scale) in enumerate(zip(table.names, scales.tolist(), strict=True))
    ]
    return descriptions, [_is_constant(matrix, index, largest) for index in range(d)]


def scale_sparse(table: Table, descriptions: list[Description]) -> Matrix:
    """The sparse table, encoded, as a CSR matrix of its own. Raise `InputError` if training was on a dense table, so
    that this one would have to be made dense."""
    if any(column["kind"] != "numeric" or column["mean"] or column["indicator"] for column in descriptions):
        raise InputError(
            "the table is sparse, but training was on a dense one, whose columns were centred",
            file=table.source,
            cure=Advice(
                InPython("Pass a dense table (X.toarray())", "Give a table of the format that it was trained on"), "."
            ),
        )
    matrix = sparse_as_trained(table, [column["name"] for column in descriptions])
    fill = np.array([column["fill"] for column in descriptions])
    scale = np.array([column["scale"] for column in descriptions])
    cells = np.where(np.isnan(matrix.data), fill[matrix.indices], matrix.data) / scale[matrix.indices]
    parts = (cells.astype(matrix.dtype), matrix.indices.copy(), matrix.indptr.copy())
    return type(matrix)(parts, shape=matrix.shape)


def _column_of(matrix: csc_array | csc_matrix) -> NDArray[np.intp]:
    """The column of each stored cell of a CSC matrix."""
    return np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))


def _fill(matrix: csc_array | csc_matrix, impute: str) -> dict[int, float]:
    """Impute a CSC matrix in place; what fills the columns that had missing cells."""
    fills = {}
    column_of, is_absent = _column_of(matrix), np.isnan(matrix.data)
    for index in np.unique(column_of[is_absent]):
        column = Column("", "numeric", matrix[:, [index]].toarray().ravel())
        learned = describe_numeric(column, 0, impute=impute, standardise=False, add_indicator=False)
        fills[int(index)] = learned["fill"]
        matrix.data[is_absent & (column_of == index)] = learned["fill"]
    return fills


def _is_constant(matrix: csc_array | csc_matrix, index: int, largest: NDArray[np.float64]) -> bool:
    """Whether a column is zero throughout, or the same number in every row."""
    own = matrix.data[matrix.indptr[index] : matrix.indptr[index + 1]]
    return bool(largest[index] == 0 or (own.size == matrix.shape[0] and np.all(own == own[0])))
