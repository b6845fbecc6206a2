"""Which training rows the support vectors of a LIBSVM model are: its file has their cells, to eight digits, and not
their numbers.

Rows and support vectors are compared as the file would have them. Equal rows are told apart by what is left: those of
another label are no candidates; of those with the same label any will do, as all have the same gradient. In a
regression a row with a larger value has no smaller coefficient, so the coefficients are given out in that order.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.errors import InputError

_AS_WRITTEN = "%.8g"  # LIBSVM's format of a cell


def rows_of_labels(vectors: Any, of_vector: NDArray[Any], X: Any, y: NDArray[Any]) -> NDArray[np.int64]:
    """The row of X of each support vector, where those have the labels ``of_vector`` and these ``y``."""
    waiting: dict[tuple[bytes, Any], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(_keys(X), y.tolist(), strict=True)):
        waiting[key].append(row)
    for rows in waiting.values():
        rows.reverse()  # the first one is given out first
    found = []
    for number, key in enumerate(zip(_keys(vectors), of_vector.tolist(), strict=True)):
        if not waiting[key]:
            raise _stranger(number)
        found.append(waiting[key].pop())
    return np.array(found, dtype=np.int64)


def rows_of_values(vectors: Any, beta: NDArray[np.float64], X: Any, y: NDArray[np.float64]) -> NDArray[np.int64]:
    """The row of X of each support vector of a regression with the coefficients β."""
    rows_with: dict[bytes, list[int]] = defaultdict(list)
    for row, key in enumerate(_keys(X)):
        rows_with[key].append(row)
    vectors_with: dict[bytes, list[int]] = defaultdict(list)
    for number, key in enumerate(_keys(vectors)):
        vectors_with[key].append(number)
    found = np.empty(len(beta), dtype=np.int64)
    for key, numbers in vectors_with.items():
        rows = sorted(rows_with[key], key=lambda row: y[row])
        if len(rows) < len(numbers):
            raise _stranger(numbers[len(rows)])
        below = sorted((number for number in numbers if beta[number] < 0), key=lambda number: beta[number])
        above = sorted((number for number in numbers if beta[number] >= 0), key=lambda number: beta[number])
        found[below] = rows[: len(below)]
        found[above] = rows[len(rows) - len(above) :]
    return found


def _stranger(number: int) -> InputError:
    return InputError(
        f"support vector {number + 1} of the file is none of the rows of X that are left",
        cure="Give the rows, and y, that the model was trained on: all of them, scaled as they were then.",
    )


def _keys(X: Any) -> list[bytes]:
    """A name for each row: its cells other than 0, as the file has them."""
    matrix = sp.csr_matrix(X, dtype=np.float64)
    matrix.sum_duplicates()
    cells = np.char.mod(_AS_WRITTEN, matrix.data).astype(np.float64) if matrix.nnz else matrix.data
    matrix = sp.csr_matrix((cells, matrix.indices.astype(np.int64), matrix.indptr), shape=matrix.shape)
    matrix.eliminate_zeros()
    starts = matrix.indptr.tolist()
    # SciPy may have narrowed the numbers of columns, by how many of them there are.
    columns = matrix.indices.astype(np.int64)
    return [
        columns[start:end].tobytes() + matrix.data[start:end].tobytes() for start, end in itertools.pairwise(starts)
    ]
