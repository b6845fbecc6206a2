"""The rows that a program passes to a `Predictor`, read with NumPy alone: no file formats, no inference of kinds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import InputError, UnseenCategoryWarning, level_of_caller, shown

MISSING, UNSEEN = -1, -2  # codes of a cell


class Given:
    """Rows as an array of numbers, ``block``, or as columns of any cells."""

    def __init__(self, X: Any, d: int, names: Sequence[str] | None) -> None:
        self.names = names
        self.block: NDArray[Any] | None = None
        if isinstance(X, Mapping) or (hasattr(X, "columns") and hasattr(X, "__getitem__")):
            self.columns = self._by_name(X)
        else:
            array = np.asarray(X if isinstance(X, np.ndarray) else _plain(X))
            if array.ndim != 2 or array.shape[1] != d:
                problem = f"X has shape {array.shape}; (rows, {d}) was expected"
                raise InputError(problem, cure="Pass an array of rows, a dict of columns or a data frame.")
            if array.dtype.kind in "fiub":
                self.block = array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
            self.columns = list(array.T)
        self.n = len(self.columns[0])

    def _by_name(self, X: Any) -> list[NDArray[Any]]:
        if self.names is None:
            raise InputError("the model was fitted without column names", cure="Pass an array of rows.")
        absent = [name for name in self.names if name not in X]
        if absent:
            raise InputError(f"X has no column {absent[0]!r}", cure=f"The model's columns are {', '.join(self.names)}.")
        columns = [np.asarray(_plain(X[name])) for name in self.names]
        if any(column.shape != columns[0].shape or column.ndim != 1 for column in columns):
            raise InputError("the columns of X are not lists of one length", cure="Give each a cell for each row.")
        return columns

    def _name(self, j: int) -> str:
        return f"column {j}" if self.names is None else repr(self.names[j])

    def numbers(self, j: int) -> NDArray[Any]:
        """Return a column of numbers, NaN where a cell is missing."""
        if self.block is not None:
            return np.asarray(self.block[:, j])
        try:
            cells = [np.nan if is_missing(cell) else cell for cell in self.columns[j].tolist()]
            return np.array(cells, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{self._name(j)} holds a cell that is not a number ({error})") from error

    def matrix(self) -> NDArray[Any]:
        """Return all columns as numbers, (n, d), contiguous and finite."""
        block = self.block
        if block is None:
            block = np.column_stack([self.numbers(j) for j in range(len(self.columns))])
        if not np.isfinite(block).all():
            raise InputError("X holds NaN or infinity", cure="Fill such cells, or train with TableEncoder before it.")
        return np.ascontiguousarray(block)

    def codes(self, j: int, levels: Sequence[Any]) -> NDArray[np.int32]:
        """Return the place of each cell among the levels, `MISSING`, or `UNSEEN` with a warning."""
        is_text = all(isinstance(level, str) for level in levels)
        place = {(level if is_text else float(level)): code for code, level in enumerate(levels)}
        cells = self.columns[j].tolist()
        found = [MISSING if is_missing(cell) else place.get(_level(cell, is_text), UNSEEN) for cell in cells]
        codes = np.array(found, dtype=np.int32)
        if (codes == UNSEEN).any():
            cell = shown(cells[int(np.argmax(codes == UNSEEN))])
            words = f"{self._name(j)}: {cell} and perhaps others did not occur in training."
            warnings.warn(words, UnseenCategoryWarning, stacklevel=level_of_caller())
        return codes


def is_missing(cell: Any) -> bool:
    """Return whether a cell is None, empty text or not a number."""
    return cell is None or cell == "" or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)


def _level(cell: Any, is_text: bool) -> Any:
    if is_text:
        whole = isinstance(cell, float) and cell.is_integer()
        return str(int(cell) if whole else cell).strip()
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None  # no level


def _plain(cells: Any) -> Any:
    """Return nested lists as an array that keeps each cell as it is, unless all are numbers."""
    if isinstance(cells, np.ndarray):
        return cells
    array = np.asarray(cells)
    return array if array.dtype.kind in "fiub" else np.array(cells, dtype=object)
