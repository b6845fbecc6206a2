"""The training rows of the support vectors of a LIBSVM model: its file has their cells, to eight digits, and not their
numbers.

Rows and support vectors are compared as the file has them. Of equal rows those of another label are no candidates, and
of those with the same label any will do, as all have the same gradient. In a regression a row with a larger value has
no smaller coefficient, so the coefficients are assigned in that order.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.errors import InputError

_AS_WRITTEN = "%.8g"  # LIBSVM's format of a cell


def rows_of_labels(vectors: Any, of_vector: NDArray[Any], X: Any, y: NDArray[Any]) -> NDArray[np.int64]:
    """Return the row of X of each support vector, where those have the labels ``of_vector`` and these ``y``."""
    own, keys = zip(_keys(vectors), of_vector.tolist(), strict=True), zip(_keys(X), y.tolist(), strict=True)
    return _matched(own, keys, lambda numbers, rows: (numbers, rows[: len(numbers)]))


def rows_of_values(vectors: Any, beta: NDArray[np.float64], X: Any, y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the row of X of each support vector of a regression with the coefficients β."""

    def by_value(numbers: list[int], rows: list[int]) -> tuple[list[int], list[int]]:
        rows = sorted(rows, key=lambda row: y[row])
        n_below = int((beta[numbers] < 0).sum())  # they get the smallest values, the others the largest
        n_between = len(rows) - len(numbers)
        return sorted(numbers, key=lambda number: beta[number]), rows[:n_below] + rows[n_below + n_between :]

    return _matched(_keys(vectors), _keys(X), by_value)


def _matched(
    own: Iterable[Hashable],
    keys: Iterable[Hashable],
    paired: Callable[[list[int], list[int]], tuple[list[int], list[int]]],
) -> NDArray[np.int64]:
    """Return the row of each support vector among those of the same key, as ``paired`` assigns them."""
    numbers_with, rows_with = _places(own), _places(keys)
    found = np.empty(sum(map(len, numbers_with.values())), dtype=np.int64)
    for key, numbers in numbers_with.items():
        rows = rows_with[key]
        if len(rows) < len(numbers):
            raise InputError(
                f"support vector {numbers[len(rows)] + 1} of the file matches none of the remaining rows of X",
                cure="Pass all rows and y that the model was trained on, scaled as they were then.",
            )
        numbers, rows = paired(numbers, rows)
        found[numbers] = rows
    return found


def _places(keys: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key].append(place)
    return places


def _keys(X: Any) -> list[bytes]:
    """Return a key for each row: its cells other than 0, as the file has them."""
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
