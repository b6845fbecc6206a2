"""The input of a tree, checked once: cells of any kind, the target, weights. All input errors are raised here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from margrove.data.alignment import as_trained, check_names, sparse_as_trained, tell_unseen, with_trained_parts
from margrove.data.columns import MISSING, Column, named
from margrove.data.encoding import writing_of
from margrove.data.formats import EmptyFormat
from margrove.data.frames import array_names, check_sparse
from margrove.data.inspection import is_identifier
from margrove.data.sample import (
    FLOATS,
    merged,
    note_columns,
    number_classes,
    plain_labels,
    read_features,
    settle_weights,
)
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, as_input_error, listed, shown
from margrove.tree.problem import Cells, Test, TreeColumn

LARGEST = 1e100  # of targets and weights, whose squares and products are summed up; the same for the smallest
# A category is *thin* where its levels hold fewer rows than this on average, and it has more of them than a table of a
# few rows has anyway. Subsets of thin levels are fitted to single rows. Measured on 3,000 rows of made-up tables,
# unpruned: with 2 and 3 rows a level, testing subsets instead of one level against the rest costs 0.056 and 0.035 of
# accuracy if the category is noise and gains 0.009 and 0.027 if it is informative; with 5 rows it costs 0.020 and gains
# 0.040. On titanic (10-fold, without boat, body and home.dest) it is 0.617 with subsets, 0.807 with this.
# Where the bits of a subset are penalised, subsets of thin levels pay unless they name the rows (`is_identifier`):
# titanic without its names has 0.832 with criterion="entropy", complexity=0.7, prune="pessimistic" and subsets of
# tickets, 0.809 with one against the rest; with its names 0.617 and 0.810.
THIN_LEVELS = 5.0
MANY_LEVELS = 10
CATEGORY_TESTS: tuple[Test, ...] = ("multiway", "subset", "one_vs_rest")


@dataclass(frozen=True)
class TreeSample:
    """Cells, target and weights, ready for a problem. Rows of weight zero are left out."""

    cells: Cells
    target: NDArray[Any]  # (n,), or (n, targets) of several: int32 classes or float64 numbers
    classes: Any  # (K,), sorted, or a list of such for several targets; None for numbers
    weight: NDArray[np.float64] | None  # (n,), all > 0; None where all are one
    rows: NDArray[np.intp] | None  # which of the given rows these are; None: all

    @property
    def outputs(self) -> tuple[int, ...]:
        """The number of classes of each of several targets, 1 for numbers; empty for one target."""
        if self.target.ndim == 1:
            return ()
        return (1,) * self.target.shape[1] if self.classes is None else tuple(map(len, self.classes))


@dataclass(frozen=True)
class ColumnWishes:
    """The parameters that name single columns, by name or position."""

    categorical: Test  # how categories are tested
    categorical_features: ArrayLike | None  # which numbers are categories
    split_values: Mapping[Any, Sequence[float]] | None
    monotone: ArrayLike | Mapping[Any, int] | None
    thin: Test | None = None  # how thin categories are tested; None: like the others
    is_priced: bool = False  # bits of a test are charged: then only a category that names the rows is thin


def is_thin(column: Column, *, is_priced: bool) -> bool:
    """Return whether a category has few rows for each of many levels; where bits are charged, if it names the rows."""
    if is_priced:
        return is_identifier(column)
    n_present = len(column) - column.n_missing
    return len(column.levels) > MANY_LEVELS and n_present < THIN_LEVELS * len(column.levels)


class ReadOnce:
    """A training table for learners that differ only in their target: read and sorted for the first of them alone."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self._cells: Cells | None = None
        self._seen: dict[str, Any] = {}

    def cells_for(self, estimator: BaseEstimator, wishes: ColumnWishes) -> Cells:
        """Return the cells; the estimator records the columns."""
        if self._cells is None:
            self._cells = replace(learn_cells(estimator, self.X, wishes), kept={})
            names = ("n_features_in_", "feature_names_in_")
            self._seen = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
        for name, value in self._seen.items():
            setattr(estimator, name, value)
        return self._cells


@as_input_error
def learn_cells(estimator: BaseEstimator, X: Any, wishes: ColumnWishes) -> Cells:
    """Return the cells of the training table, with the test of each column."""
    if isinstance(X, ReadOnce):
        return X.cells_for(estimator, wishes)
    if (plain := _plain_sparse_cells(estimator, X, wishes)) is not None:
        return plain
    table = read_features(estimator, X)
    categories = _positions("categorical_features", wishes.categorical_features, table)
    cuts = _cut_points(wishes.split_values, table)
    monotone = _directions(wishes.monotone, table)
    if table.sparse is not None:
        return _sparse_cells(table, categories, cuts, monotone)
    if table.block is not None and not categories and not cuts:
        return _number_cells(table, monotone)
    columns, values = [], []
    test: Test
    for j, given in enumerate(table):
        column = _category_of_numbers(given) if j in categories and given.kind == "numeric" else given
        if column.kind == "numeric":
            test = "intervals" if j in cuts else "threshold"
            cells, has_missing = column.values, column.n_missing > 0
            written: dict[str, Any] = {"format": column.learned_format, "date_part": column.date_part}
            tree_column = TreeColumn(
                column.name, test, (), cuts.get(j, ()), monotone=monotone[j], has_missing=has_missing, **written
            )
        else:
            if j in cuts:
                raise ParameterError(f"split_values names the column {column.name!r}, which is not numeric.")
            if monotone[j]:
                found = f"monotonic_cst is {monotone[j]} for the column {column.name!r}"
                raise ParameterError(f"{found}, a category, which has no order.")
            column = _only_levels_that_occur(column)
            levels = (False, True) if column.kind == "boolean" else column.levels
            test = wishes.categorical
            if wishes.thin is not None and is_thin(column, is_priced=wishes.is_priced):
                test = wishes.thin
            gaps = column.n_missing > 0
            tree_column = TreeColumn(column.name, test, levels, has_missing=gaps, date_part=column.date_part)
            cells = column.values.astype(np.int32, copy=False)
        columns.append(tree_column)
        values.append(cells)
    return Cells(tuple(columns), table.n_rows, tuple(values))


def _number_cells(table: Table, monotone: list[int]) -> Cells:
    block = table.block
    assert block is not None
    has_missing = np.isnan(block).any(axis=0).tolist() if np.isnan(table.block_sum) else [False] * table.n_columns
    columns = []
    for j, (name, sign, missing) in enumerate(zip(table.names, monotone, has_missing, strict=True)):
        form = EmptyFormat() if missing and np.isnan(block[:, j]).all() else None
        columns.append(TreeColumn(name, monotone=sign, has_missing=missing, format=form))
    return Cells(tuple(columns), len(block), tuple(block.T), block=block if block.flags.c_contiguous else None)


@as_input_error
def read_cells(estimator: BaseEstimator, X: Any, columns: tuple[TreeColumn, ...], unseen: str = "warn") -> Cells:
    """Return the cells of a new table, matched to the columns of training."""
    names = [column.name for column in columns]
    table = read_features(estimator, X, names=names, may_be_infinite=True)  # x ≤ θ is defined for ±∞ too
    if any(column.date_part for column in columns):
        table = with_trained_parts(table, [_description(column) for column in columns])
    check_names(table, names, known=[getattr(estimator, "target_", None) or ""])
    if table.sparse is not None:
        matrix = merged(sparse_as_trained(table, names))
        if all(column.test == "threshold" for column in columns):
            return Cells(columns, table.n_rows, sparse=matrix.tocsc())
        table = Table(block=matrix.toarray(), names=names, source=table.source)
    if table.block is not None and table.names == tuple(names) and not any(column.levels for column in columns):
        block = table.block
        return Cells(columns, len(block), tuple(block.T), block=block if block.flags.c_contiguous else None)
    trained = [as_trained(table, _description(column)) for column in columns]
    tell_unseen(table, trained, unseen, "each takes the heaviest branch of every test on its column")
    values = [column.values if column.kind == "numeric" else column.values.astype(np.int32) for column in trained]
    return Cells(columns, table.n_rows, tuple(values))


@as_input_error
def read_classes(
    cells: Cells,
    y: Any,
    sample_weight: ArrayLike | None,
    class_weight: Mapping[Any, float] | str | None,
    *,
    may_be_several: bool = False,
) -> TreeSample:
    """Return the sample of a target of classes, or of several."""
    if may_be_several and (several := several_targets(y)) is not None:
        _check_length(several, cells)
        found = [number_classes(_classes_in(column)) for column in several.T]
        weight = settle_weights(np.empty((cells.n_rows, 0)), None, sample_weight, None)
        if class_weight is not None:
            by_class = compute_sample_weight(class_weight, several)
            weight = by_class if weight is None else weight * by_class
        codes = np.stack([codes for _, codes in found], axis=1)
        return _sample(cells, codes.astype(np.int32), [classes for classes, _ in found], weight)
    y = _classes_in(_one_column(y, cells))
    classes, codes = number_classes(y)
    weight = _weights(cells, y, sample_weight, class_weight)
    return _sample(cells, codes.astype(np.int32), classes, weight)


def several_targets(y: Any) -> NDArray[Any] | None:
    """Return y as an array if it has more than one column, else None."""
    if getattr(y, "ndim", 2) != 2 or isinstance(y, str):
        return None
    try:
        array = np.asarray(y)
    except ValueError:  # rows of different lengths
        return None
    return array if array.ndim == 2 and array.shape[1] > 1 else None


def _classes_in(y: NDArray[Any]) -> NDArray[Any]:
    """Return labels as one type that can be sorted, checked."""
    y = plain_labels(y)
    if y.dtype.kind == "O":
        y = y.astype(np.str_)
    if y.dtype.kind == "f":
        _check_finite(y)
    if y.dtype.kind not in "biuUS":  # these are classes, and the check takes a while
        check_classification_targets(y)
    return y


@as_input_error
def read_numbers(
    cells: Cells,
    y: Any,
    sample_weight: ArrayLike | None,
    *,
    of_classes: str = "DecisionTreeClassifier",
    may_be_several: bool = False,
) -> TreeSample:
    """Return the sample of a target of numbers; ``of_classes`` is the estimator to recommend for classes."""
    several = several_targets(y) if may_be_several else None
    y = _one_column(y, cells) if several is None else _check_length(several, cells)
    if y.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            y = y.astype(np.float64)
    if y.dtype.kind not in "fiub":
        found = f"y holds {shown(y.flat[0])}; regression needs numbers"
        raise InputError(found, cure=f"Use {of_classes} to predict classes.")
    numbers = y.astype(np.float64)
    _check_finite(numbers)
    largest = float(np.abs(numbers).max())
    if largest > LARGEST or 0 < largest < 1 / LARGEST:
        size = f"numbers up to {largest:g}, whose squares are outside the range of float64"
        raise InputError(f"y holds {size}", cure="Multiply y by a constant that brings them into range.")
    return _sample(cells, numbers, None, _weights(cells, numbers, sample_weight, None))


def _one_column(y: Any, cells: Cells) -> NDArray[Any]:
    if y is None:
        raise InputError("a decision tree requires y to be passed, but the target y is None")
    is_column = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biufU"  # a masked array is not
    return _check_length(y if is_column else np.asarray(column_or_1d(y, warn=True)), cells)


def _check_length(y: NDArray[Any], cells: Cells) -> NDArray[Any]:
    if len(y) != cells.n_rows:
        sizes = f"[{cells.n_rows}, {len(y)}]"
        raise InputError(f"Found input variables with inconsistent numbers of samples: {sizes}")
    return y


def check_same_classes(model: BaseEstimator, sample: TreeSample) -> None:
    """Raise `InputError` unless the classes of a fitted classifier are those of these labels."""
    if sample.classes is None:
        return
    is_several = isinstance(model.classes_, list)
    own, given = (classes if is_several else [classes] for classes in (model.classes_, sample.classes))
    if len(own) != len(given) or not all(map(np.array_equal, own, given)):
        raise InputError(
            f"the classes of the model are {listed(model.classes_)}; those of y are {listed(sample.classes)}",
            cure="Pass the labels that the model was fitted on.",
        )


def _check_finite(y: NDArray[Any]) -> None:
    if not np.isfinite(y).all():
        at = np.unravel_index(int(np.argmin(np.isfinite(y))), y.shape)
        row, what = at[0], "NaN" if np.isnan(y[at]) else "infinity"
        raise InputError(f"Input y contains {what}, first in row {row}", cure="Remove such rows.")


def _weights(
    cells: Cells, y: NDArray[Any], sample_weight: ArrayLike | None, class_weight: Mapping[Any, float] | str | None
) -> NDArray[np.float64] | None:
    weight = settle_weights(np.empty((cells.n_rows, 0)), y, sample_weight, class_weight)
    if weight is None:
        return None
    largest = float(weight.max())
    if largest == 0:
        raise InputError(
            "sample_weight and class_weight together leave no row with a weight > 0",
            cure="Give at least one row a positive weight.",
        )
    if not 1 / LARGEST <= largest <= LARGEST:
        size = f"{largest:g}; it must be between {1 / LARGEST:g} and {LARGEST:g}"
        cure = "Multiply all weights by the same number."
        raise InputError(f"the largest sample_weight (times class_weight) is {size}", cure=cure)
    return weight


def _sample(cells: Cells, target: NDArray[Any], classes: Any, weight: NDArray[np.float64] | None) -> TreeSample:
    if weight is None or (weight > 0).all():
        return TreeSample(cells, target, classes, weight, None)
    rows = np.flatnonzero(weight > 0)
    return TreeSample(cells.take(rows), target[rows], classes, weight[rows], rows)


def _position(parameter: str, key: object, table: Table) -> int:
    """Return the position of the column of this name or number."""
    if isinstance(key, str):
        if key in table:
            return table.position(key)
        raise ParameterError(f"{parameter} names the column {key!r}; the columns are {named(table.names)}.")
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if -table.n_columns <= int(key) < table.n_columns:
            return int(key) % table.n_columns
        raise ParameterError(f"{parameter} names the column {int(key)}; the columns are 0 to {table.n_columns - 1}.")
    raise ParameterError(f"{parameter} names a column by {shown(key)}; use its name or its position.")


def _positions(parameter: str, given: ArrayLike | None, table: Table) -> set[int]:
    """Return the positions of columns given by position, by name, or by a mask."""
    if given is None or (isinstance(given, str) and given == "from_dtype"):
        return set()
    if isinstance(given, str):
        given = [given]
    keys = np.asarray(given, dtype=object).ravel().tolist()
    if keys and all(isinstance(key, (bool, np.bool_)) for key in keys):
        if len(keys) != table.n_columns:
            raise ParameterError(f"{parameter} is a mask of length {len(keys)}; X has {table.n_columns} columns.")
        return {j for j, is_in in enumerate(keys) if is_in}
    return {_position(parameter, key, table) for key in keys}


def _cut_points(given: Mapping[Any, Sequence[float]] | None, table: Table) -> dict[int, tuple[float, ...]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(f"split_values is {shown(given)}; it must be {{column: cut points}}.")
    found = {}
    for key, points in given.items():
        j = _position("split_values", key, table)
        wanted = f"split_values[{shown(key)}] is {shown(points)}; it must be one or more distinct finite numbers."
        try:
            numbers = np.asarray(points, dtype=np.float64).ravel()
        except (TypeError, ValueError) as error:
            raise ParameterError(wanted) from error
        if not len(numbers) or not np.isfinite(numbers).all() or len(np.unique(numbers)) < len(numbers):
            raise ParameterError(wanted)
        found[j] = tuple(sorted(float(number) for number in numbers))
    return found


def _directions(given: ArrayLike | Mapping[Any, int] | None, table: Table) -> list[int]:
    """Return the monotone constraint of each column: 1, 0 or -1."""
    signs = [0] * table.n_columns
    if given is None:
        return signs
    if isinstance(given, Mapping):
        for key, sign in given.items():
            signs[_position("monotonic_cst", key, table)] = sign
    else:
        signs = np.asarray(given).ravel().tolist()
        if len(signs) != table.n_columns:
            raise ParameterError(
                f"monotonic_cst has shape {len(signs)} but the input data X has {table.n_columns} features."
            )
    for sign in signs:
        if sign not in (-1, 0, 1):
            raise ParameterError(f"monotonic_cst must be None or an array-like of -1, 0 or 1; it holds {shown(sign)}.")
    return [int(sign) for sign in signs]


def _category_of_numbers(column: Column) -> Column:
    present = ~np.isnan(column.values)
    codes = np.full(len(column), MISSING, dtype=np.int32)
    levels, codes[present] = np.unique(column.values[present], return_inverse=True)
    plain = [int(level) if float(level).is_integer() else float(level) for level in levels.tolist()]
    return Column(column.name, "category", codes, tuple(plain), date_part=column.date_part)


def _only_levels_that_occur(column: Column) -> Column:
    """Return a category without the levels that are in no cell."""
    if column.kind != "category":
        return column
    occurs = np.bincount(column.values[column.values >= 0], minlength=len(column.levels)) > 0
    if occurs.all():
        return column
    recode = np.append(np.cumsum(occurs) - 1, MISSING).astype(np.int32)
    levels = tuple(level for level, is_there in zip(column.levels, occurs, strict=True) if is_there)
    return replace(column, values=recode[column.values], levels=levels)


def _plain_sparse_cells(estimator: BaseEstimator, X: Any, wishes: ColumnWishes) -> Cells | None:
    """Return a CSC matrix of finite floats as it is if nothing is asked of its columns, else None."""
    asked = (wishes.categorical_features, wishes.split_values, wishes.monotone)
    is_asked = any(wish is not None and not (isinstance(wish, str) and wish == "from_dtype") for wish in asked)
    if is_asked or not sp.issparse(X) or X.format != "csc" or X.dtype not in FLOATS or 0 in X.shape:
        return None
    check_sparse(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if not X.has_canonical_format or not np.isfinite(X.data.sum()):
            return None
    note_columns(estimator, X.shape[1])
    names = array_names(X.shape[1])
    return Cells(tuple(TreeColumn(name, has_missing=False) for name in names), X.shape[0], sparse=X)


def _sparse_cells(table: Table, categories: set[int], cuts: dict[int, tuple[float, ...]], monotone: list[int]) -> Cells:
    if categories or cuts:
        name = "categorical_features" if categories else "split_values"
        raise ParameterError(f"{name} needs a dense table, and X is a sparse matrix. Use X.toarray().")
    matrix = table.sparse.tocsc()
    matrix.sum_duplicates()
    has_missing = [False] * table.n_columns
    if np.isnan(table.block_sum):
        # The number of missing cells before each column; it rises after a column that has some.
        before = np.concatenate([[0], np.cumsum(np.isnan(matrix.data))])[matrix.indptr]
        has_missing = (np.diff(before) > 0).tolist()
    found = zip(table.names, monotone, has_missing, strict=True)
    columns = tuple(TreeColumn(name, monotone=sign, has_missing=missing) for name, sign, missing in found)
    return Cells(columns, table.n_rows, sparse=matrix)


def _description(column: TreeColumn) -> dict[str, Any]:
    found = {"name": column.name, **writing_of(column)}
    if column.test in ("threshold", "intervals"):
        return {**found, "kind": "numeric"}
    if column.levels == (False, True) and all(isinstance(level, bool) for level in column.levels):
        return {**found, "kind": "boolean"}
    return {**found, "kind": "category", "levels": list(column.levels)}
