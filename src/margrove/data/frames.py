"""Tables from what is already in memory: NumPy, SciPy, pandas, polars and pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.advice import Advice, InPython, Row
from margrove.data.columns import Column, as_float, boolean_column, column_from_objects, date_column, text_column
from margrove.data.rows import Matrix
from margrove.data.table import Table, duplicate_names
from margrove.data.target import Target, choose_target, refuse_unlabelled
from margrove.errors import InputError, ParameterError


def as_table(X: Any, target: Target = None) -> Table:
    """Take a table as it is, from any library.

    Parameters
    ----------
    X : ndarray, SciPy sparse matrix, pandas, polars or pyarrow table, list of rows, or Table
        A 2-D array of float32 or float64 is kept as it is, not copied. Sparse stays sparse (CSR). The
        columns of an array are named x0, x1, …
    target : str or int, optional
        The name or position of the column to be predicted. None: there is none, all columns are features.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.data import as_table
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
    >>> table = as_table(X)
    >>> table.names, table.block is X
    (('x0', 'x1'), True)
    >>> import pandas
    >>> as_table(pandas.DataFrame({"size": [1.5, None], "ripe": [True, False]}), target="ripe").labels()
    array([ True, False])
    """
    table: Table = X if isinstance(X, Table) else as_features(X)
    if table is not X:
        check_finite(table)
    # None means "the last column" to a reader of files, and "no target" here.
    if target is None or target is False:
        return table
    return refuse_unlabelled(choose_target(table, target), drop_unlabelled=False)


def as_features(X: Any) -> Table:
    """Return `X` as a table without a search for infinite numbers."""
    if sp.issparse(X):
        return _from_sparse(X)
    if hasattr(getattr(X, "sparse", None), "to_coo") and len(X.columns):  # a pandas frame of sparse columns alone
        return _from_sparse(X.sparse.to_coo(), names=[str(name) for name in X.columns])
    if is_frame(X):
        return _from_frame(X)
    if isinstance(X, (str, bytes)):
        raise ParameterError(f"X is of type {type(X).__name__}; a table was expected. Use read_table for files.")
    return _from_array(as_array(X), source="array" if isinstance(X, np.ndarray) else type(X).__name__)


def is_frame(X: object) -> bool:
    """Return whether `X` is a data frame: a table whose columns have names. A single column (a Series) is none."""
    has_names = any(hasattr(type(X), names) for names in ("columns", "column_names", "schema"))
    marks = ("__dataframe__", "__narwhals_dataframe__", "__arrow_c_stream__")
    return has_names and any(hasattr(X, mark) for mark in marks)


def check_sparse(X: sp.sparray | sp.spmatrix) -> None:
    """Raise InputError if the arrays of a sparse matrix are inconsistent: SciPy would access memory outside them."""
    if X.format in ("csr", "csc"):
        outer, inner = X.shape if X.format == "csr" else X.shape[::-1]
        start, places, stored = X.indptr, [(X.indices, inner)], int(X.indptr[-1]) if len(X.indptr) else -1
        is_sound = len(start) == outer + 1 and start[0] == 0 and bool((start[1:] >= start[:-1]).all())
    elif X.format == "coo":
        places, stored, is_sound = list(zip(X.coords, X.shape, strict=True)), len(X.data), True
    else:
        return
    is_sound = is_sound and 0 <= stored <= len(X.data) and all(len(each) >= stored for each, _ in places)
    for each, size in places:
        is_sound = is_sound and (stored == 0 or (each[:stored].min() >= 0 and each[:stored].max() < size))
    if not is_sound:
        problem = f"X is a damaged sparse matrix: its {X.format} indices do not fit its shape {X.shape}"
        raise InputError(problem, cure="Build it again from its rows, columns and values.")


def as_array(X: Any) -> Matrix:
    """Return anything array-like as an array, rows of mixed numbers and text as objects. A sparse matrix is checked and
    stays as it is."""
    if sp.issparse(X):
        check_sparse(X)
        return X
    if type(X).__name__ == "LazyFrame":
        raise InputError("X is a LazyFrame, which has no cells yet", cure="Use X.collect().")
    if type(X).__name__ == "Series" and hasattr(X, "to_frame"):  # the first words are scikit-learn's
        library = type(X).__module__.split(".")[0]
        raise InputError(
            f"Expected 2D array, got 1D array instead: X is a Series of {library}, a single column",
            cure="Convert it to a table: X.to_frame().",
        )
    array = np.asarray(X)
    if array.dtype.kind == "U" and not hasattr(X, "dtype"):
        return np.asarray(X, dtype=object)
    return array


def array_names(d: int) -> tuple[str, ...]:
    """Return the names of columns without names: x0, x1, …, as in scikit-learn."""
    return tuple(f"x{j}" for j in range(d))


def _from_array(X: NDArray[Any], source: str) -> Table:
    if X.ndim != 2:
        raise InputError(
            f"the array is {X.ndim}-dimensional; a table has rows and columns",
            file=source,
            cure="Reshape it: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row.",
        )
    names = array_names(X.shape[1])
    kind = X.dtype.kind
    if kind in "fiu":
        return Table(block=as_float(X), names=names, source=source)
    columns: list[Column]
    if kind == "b":
        columns = [boolean_column(name, X[:, j]) for j, name in enumerate(names)]
    elif kind in "UT":
        columns = [text_column(name, X[:, j].astype(np.str_)) for j, name in enumerate(names)]
    elif kind == "O":
        columns = [column_from_objects(name, X[:, j].tolist(), source=source) for j, name in enumerate(names)]
    elif kind == "M":
        columns = [date_column(name, _days(X[:, j])) for j, name in enumerate(names)]
    else:
        # scikit-learn's words for the commonest of these, which its users search for.
        what = "Complex data not supported" if kind == "c" else f"the array holds {X.dtype}"
        raise InputError(what, file=source, cure="Use numbers, text, booleans or dates.")
    notes = [f"Columns {names[0]}–{names[-1]} hold dates: read as days since 1970-01-01."] if kind == "M" else []
    return Table(columns, source=source, notes=notes)


def _days(instants: NDArray[np.datetime64]) -> NDArray[np.float64]:
    days = instants.astype("datetime64[us]").astype(np.int64) / (86_400 * 10**6)
    days[np.isnat(instants)] = np.nan
    return days


def _from_sparse(X: sp.sparray | sp.spmatrix, names: Sequence[str] | None = None) -> Table:
    if X.ndim != 2:
        raise InputError(f"the sparse array is {X.ndim}-dimensional; a table has rows and columns")
    if X.dtype.kind not in "fiub":
        what = "Complex data not supported" if X.dtype.kind == "c" else f"the sparse matrix holds {X.dtype}"
        raise InputError(what, file="sparse matrix", cure="Convert its cells to numbers.")
    check_sparse(X)
    matrix = X.tocsr()
    cells = as_float(matrix.data)
    if cells is not matrix.data:
        matrix = type(matrix)((cells, matrix.indices, matrix.indptr), shape=matrix.shape)
    return Table(block=matrix, names=names or array_names(matrix.shape[1]), source="sparse matrix")


def _from_frame(X: Any) -> Table:
    """Return a frame of any library narwhals knows, column by column through pyarrow."""
    import narwhals as nw
    import pyarrow as pa

    from margrove.data.arrow import table_from_arrow

    library = type(X).__module__.split(".")[0]
    source = f"{library} table"
    if library == "pyarrow":  # a Table, a RecordBatch or a reader of batches
        return table_from_arrow(X if isinstance(X, pa.Table) else pa.table(X), source=source)
    names = [str(name) for name in getattr(X, "column_names", X.columns)]
    if len(set(names)) < len(names):
        raise duplicate_names(names, file=source)  # narwhals would refuse it too, less plainly
    frame = nw.from_native(X, eager_only=True)
    kinds = set(frame.schema.values())
    is_arrow = any(hasattr(kind, "pyarrow_dtype") for kind in getattr(X, "dtypes", ()))  # to be validated
    if kinds in ({nw.Float32}, {nw.Float64}) and not is_arrow:
        return Table(block=frame.to_numpy(), names=names, source=source)
    mixed, plain = {}, {}
    for name, series in zip(names, frame.iter_columns(), strict=True):
        if series.dtype in (nw.Object, nw.Unknown):
            mixed[name] = column_from_objects(name, series.to_list(), source=source)
            continue
        if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
            # Arrow reads zones of pandas by a way that pandas 3.1 deprecates.
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        arrow = series.to_arrow()
        plain[name] = arrow if isinstance(arrow, pa.ChunkedArray) else pa.chunked_array([arrow])
    table = table_from_arrow(pa.table(plain), source=source)
    if not mixed:
        return table
    columns = [mixed[name] if name in mixed else table[name] for name in names]
    return Table(columns, source=source, notes=table.notes)


def check_finite(table: Table, line_of: Callable[[int], int] | None = None) -> None:
    """Refuse infinite numbers, naming the first column and the row that has one, or its line. NaN is a missing cell,
    and fine."""
    place = _first_infinite(table)
    if place is None:
        return
    name, row, value = place
    where = (" in row ", Row(row)) if line_of is None else ()
    missing = "Leave the cell empty" if line_of is not None else InPython("Use np.nan", "Leave the cell empty")
    raise InputError(
        Advice("the number", *where, f" is infinite ({value}); every cell must be finite or missing"),
        file=table.source,
        line=None if line_of is None else line_of(row),
        column=name,
        cure=Advice(missing, " if it is unknown, or write a finite number."),
    )


def _first_infinite(table: Table) -> tuple[str, int, float] | None:
    """Return column, row and value of the first infinite number, column by column, or None."""
    block = table.sparse.data if table.sparse is not None else table.block
    columns: Iterable[Column] = table
    if block is not None:
        if np.isfinite(table.block_sum) or not np.isinf(block).any():
            columns = ()
        elif table.sparse is not None:
            entry = int(np.flatnonzero(np.isinf(block))[0])
            row = int(np.searchsorted(table.sparse.indptr, entry, side="right")) - 1
            return table.names[table.sparse.indices[entry]], row, float(block[entry])
    for column in (*columns, *([] if table.target is None else [table.target])):
        if column.kind == "numeric" and np.isinf(column.values).any():
            row = int(np.argmax(np.isinf(column.values)))
            return column.name, row, float(column.values[row])
    return None
