"""Rows in chunks that allow any number of passes: for fits over more rows than memory holds.

A *chunk* is a pair (X, y), a triple (X, y, sample_weight) or a `Table` with a target. Chunks may come as

- a list, or any object that gives a new iterator each time it is asked for one, as `read_chunks` does;
- a function without arguments that returns such an iterator;
- a pair of arrays (X, y), such as NumPy's memory maps, of which some rows are taken at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.data.columns import named
from margrove.data.encoding import numbers_of
from margrove.data.frames import as_array
from margrove.data.rows import Matrix
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError

CELLS = 1 << 21  # numbers of a pair of arrays taken at a time: 16 MB of float64

Chunk = tuple[Any, Any, Any]  # X, y and the rows' weights, or None


def walker(chunks: Any) -> Callable[[], Iterator[Chunk]]:
    """Return a function that starts a new pass over the chunks. Raise `ParameterError` if they allow only one pass, or
    are not chunks."""
    if isinstance(chunks, (tuple, list)) and len(chunks) in (2, 3) and getattr(chunks[0], "ndim", 0) == 2:
        X, *rest = chunks
        rows = as_array(X).tocsr() if sp.issparse(X) else X  # other sparse formats have no slices of rows
        return lambda: _slices(rows, *rest)
    if callable(chunks) and not hasattr(chunks, "__iter__"):
        return lambda: _parts_of(chunks())
    if not hasattr(chunks, "__iter__") or isinstance(chunks, (str, bytes)):
        raise ParameterError(
            f"chunks is of type {type(chunks).__name__}; it must be chunks (X, y) that can be iterated over several "
            "times: a list of them, a function that returns an iterator, read_chunks(path), or a pair of arrays."
        )
    if iter(chunks) is chunks:
        raise ParameterError(
            f"chunks is a {type(chunks).__name__}, which can be iterated over only once, but several passes are "
            "needed. Pass the function that creates it, without calling it."
        )
    return lambda: _parts_of(chunks)


def _slices(X: Matrix, y: Any, weight: Any = None) -> Iterator[Chunk]:
    n = X.shape[0]
    for name, part in (("y", y), ("sample_weight", weight)):
        if part is not None and len(part) != n:
            raise InputError(f"X has {n} rows and {name} has {len(part)}", cure="Each row needs one.")
    width = X.nnz // max(1, n) if sp.issparse(X) else X.shape[1]
    step = max(1, CELLS // max(1, width))
    for start in range(0, n, step):
        rows = slice(start, start + step)
        yield X[rows], y[rows], None if weight is None else weight[rows]


def _parts_of(chunks: Any) -> Iterator[Chunk]:
    for number, chunk in enumerate(chunks, start=1):
        if isinstance(chunk, Table):
            yield numbers_of_table(chunk), chunk.labels(), None
        elif isinstance(chunk, (tuple, list)) and len(chunk) in (2, 3):
            X, y, *weight = chunk
            yield (numbers_of_table(X) if isinstance(X, Table) else X), y, weight[0] if weight else None
        else:
            kind = f"{type(chunk).__name__}" + (f" of {len(chunk)}" if isinstance(chunk, (tuple, list)) else "")
            wanted = "a pair (X, y), a triple (X, y, sample_weight) or a Table was expected"
            raise InputError(f"chunk {number} is a {kind}; {wanted}")


def numbers_of_table(table: Table) -> Matrix:
    """Return a table of numbers and booleans as one array, or its sparse matrix. Raise `InputError` if a column holds
    categories."""
    if table.sparse is not None:
        return table.sparse
    if table.block is not None:
        return table.block
    words = [column.name for column in table if column.kind == "category"]
    if words:
        problem = f"these columns contain categories, but numbers are needed: {named(words)}"
        raise InputError(problem, file=table.source, cure="Encode them: read_chunks(...).encoded().")
    return np.column_stack([numbers_of(column) for column in table])
