"""Check the input of an estimator once: points, labels as numbers, weights."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from margrove.advice import Advice, InPython, Setting, Value
from margrove.data.columns import is_missing, is_number
from margrove.data.frames import as_array, as_features, as_table, check_sparse, is_frame
from margrove.data.lazy import refuse_collection
from margrove.data.rows import Matrix
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, as_input_error, check_number, listed, shown

ClassWeight: TypeAlias = Mapping[Any, float] | str | None  # by label, or "balanced"

FLOATS = (np.float64, np.float32)  # what may stay as it is; anything else becomes the first


@dataclass(frozen=True)
class Sample:
    """Points and labels, ready for a problem."""

    X: Matrix  # (n, d) dense with contiguous rows, or CSR; float32 or float64 as it came
    classes: NDArray[Any]  # (K,), sorted
    codes: NDArray[np.int32]  # (n,), positions in classes
    weight: NDArray[np.float64] | None  # (n,), None where all are one
    objects: Any = None  # rows that are not numbers, for a callable kernel; X is then their Gram matrix


@dataclass(frozen=True)
class Values:
    """Points and numbers to predict, ready for a problem."""

    X: Matrix  # (n, d), as in `Sample`
    z: NDArray[np.float64]  # (n,)
    weight: NDArray[np.float64] | None  # (n,), None where all are one


def take_columns_of(fitted: BaseEstimator, reader: BaseEstimator) -> None:
    """Set the attributes of ``fitted`` that describe its columns to those of ``reader``."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(reader, name):
            setattr(fitted, name, getattr(reader, name))


def note_columns(estimator: BaseEstimator, d: int) -> None:
    """Store the number of columns of a training table without names."""
    estimator.n_features_in_ = d
    vars(estimator).pop("feature_names_in_", None)


@as_input_error
def read_points(estimator: BaseEstimator, X: Any, *, reset: bool = False) -> Matrix:
    """Return X for prediction or certification, checked against the columns of the fit."""
    refuse_tables(estimator, X)
    return merged(_validated(estimator, X, reset=reset))


@as_input_error
def read_features(
    estimator: BaseEstimator, X: Any, *, names: Sequence[str] | None = None, may_be_infinite: bool = False
) -> Table:
    """Return X as a table, for estimators that take columns of any kind: a frame or `Table` as it is, anything else
    through scikit-learn's checks. ``names`` are those of training; None in training itself, which stores those of X.
    ``may_be_infinite`` skips the search for infinite numbers, which takes a pass over all of them."""
    refuse_collection(type(estimator).__name__, X=X)
    reset = names is None
    read = as_features if may_be_infinite else as_table
    if isinstance(X, Table) or is_frame(X):
        table = X if isinstance(X, Table) else read(X)
        if table.n_rows == 0 or table.n_columns == 0:
            problem = f"the table has {table.n_rows} row(s) and {table.n_columns} column(s)"
            raise InputError(problem, file=table.source, cure="Give at least one of each.")
        if reset:
            estimator.n_features_in_ = table.n_columns
            estimator.feature_names_in_ = np.array(table.names, dtype=object)
        return table
    if reset and type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype in FLOATS:
        note_columns(estimator, X.shape[1])  # nothing is left to check; validate_data would cost 0.1 ms
        return read(X)
    X = as_array(X)
    X = validate_data(estimator, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    if may_be_infinite and names is not None and isinstance(X, np.ndarray) and X.dtype in FLOATS:
        return Table(block=X, names=names, source="array")
    table = read(X)
    return table if names is None else table.renamed(names)


@as_input_error
def read_sample(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    class_weight: ClassWeight = None,
    *,
    ignores_negative: bool = False,
) -> Sample:
    """Return X, y and weights for a fit. float32 stays float32, sparse stays sparse, and no needless copy is made."""
    X, y = read_chunk(estimator, X, y, reset=True)
    classes, codes = number_classes(y)
    weight = settle_weights(X, y, sample_weight, class_weight, ignores_negative=ignores_negative)
    check_classes(classes, np.bincount(codes, weights=weight, minlength=len(classes)), has_nu=hasattr(estimator, "nu"))
    return Sample(X, classes, codes.astype(np.int32), weight)


@as_input_error
def read_values(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    ignores_negative: bool = False,
) -> Values:
    """Return X, y and weights for a regression, as `read_sample` does for a classifier."""
    X, z = read_chunk(estimator, X, y, reset=True, y_numeric=True)
    return Values(X, z, settle_weights(X, z, sample_weight, None, ignores_negative=ignores_negative))


@as_input_error
def read_chunk(
    estimator: BaseEstimator, X: Any, y: Any, *, reset: bool, y_numeric: bool = False
) -> tuple[Matrix, NDArray[Any]]:
    """Return some rows of a fit, checked; ``reset`` stores their columns, otherwise they must be those stored."""
    refuse_tables(estimator, X)
    X, y = _validated(estimator, X, y, reset=reset, y_numeric=y_numeric)
    if y_numeric:
        return merged(X), _as_values(type(estimator).__name__, y)
    y = plain_labels(y)
    if y.dtype.kind not in "biuUS":  # these cannot be anything but classes, and looking takes a while
        check_classification_targets(y)
    return merged(X), y


def _as_values(learner: str, y: NDArray[Any]) -> NDArray[np.float64]:
    """Return y as float64. scikit-learn checks objects before it converts them, when None is not yet NaN."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except ValueError as error:
        raise _no_number(learner, np.empty((0, 1)), y) or InputError(f"y is not a number: {error}") from error
    if not np.isfinite(values).all():
        raise _not_a_number(learner, "y", values)
    return values


def _validated(estimator: BaseEstimator, *given: Any, **how: Any) -> Any:
    """Apply scikit-learn's checks; the error about a cell that is NaN or infinite names its place."""
    refuse_collection(type(estimator).__name__, **dict(zip(("X", "y"), given, strict=False)))
    if sp.issparse(given[0]):
        check_sparse(given[0])
    try:
        return validate_data(estimator, *given, accept_sparse="csr", dtype=FLOATS, order="C", **how)
    except (TypeError, ValueError) as error:
        if "contains NaN" not in str(error) and "contains infinity" not in str(error):
            fault = _no_number(type(estimator).__name__, *given[:2])
            if fault is None:
                raise
            raise fault from error
        name = "X" if len(given) == 1 or "Input X" in str(error) else "y"  # for labels as objects it gives no name
        raise _not_a_number(type(estimator).__name__, name, given[1] if name == "y" else given[0]) from error


def _no_number(learner: str, X: Any, y: Any = None) -> InputError | None:
    """Return the error about the first cell of X, or of y, that is text or a date, or None."""
    for row, cells in enumerate(_as_objects(X, 2)):
        for column, cell in enumerate(cells):
            what = _what_is(cell)
            if what is not None:
                names = getattr(X, "columns", None)
                where = f"X[{row}, {column}]" if names is None else f"row {row}, column {shown(names[column])},"
                cure = _encoder_first(learner)
                if what == "a date":
                    cure = "Convert it to days: X.astype('datetime64[D]').astype(float), or use read_table."
                return InputError(f"{learner} takes numbers, but {where} is {what}, {shown(cell)}", cure=cure)
    for row, label in enumerate(_as_objects(y, 1)):
        if _what_is(label) == "text":
            cure = "Use a classifier for labels."
            return InputError(f"{learner} predicts numbers, but y[{row}] is text, {shown(label)}", cure=cure)
    return None


def _as_objects(values: object, ndim: int) -> NDArray[Any]:
    """Return ``values`` if they are an array of so many dimensions that may hold text or dates, else an empty one."""
    nothing = np.empty((0,) * ndim, dtype=object)
    if values is None or sp.issparse(values):
        return nothing
    cells = np.asarray(values, dtype=None if hasattr(values, "dtype") or hasattr(values, "columns") else object)
    return cells if cells.dtype.kind in "OUS" and cells.ndim == ndim else nothing


def _what_is(cell: object) -> str | None:
    """Return "text" or "a date" for a cell that no number can be read from."""
    if isinstance(cell, datetime.date | np.datetime64):
        return "a date"
    return "text" if isinstance(cell, str | bytes) and not is_number(cell) else None


def _not_a_number(learner: str, name: str, values: Any) -> InputError:
    """Return the error about the first cell that is NaN or infinite (or too large for its type)."""
    if name != "X":  # perhaps text
        labels = np.asarray(values, dtype=object).ravel().tolist()
        row = next((row for row, label in enumerate(labels) if is_missing(label) or label in (math.inf, -math.inf)), 0)
        what = "NaN" if is_missing(labels[row]) else "infinity"
        return InputError(f"Input {name} contains {what}, first in row {row}", cure="Remove such rows.")
    names = getattr(values, "columns", None)
    if hasattr(values, "isna"):  # pandas has an NA that is no number
        values = values.astype("object").where(~values.isna(), np.nan)
    is_sparse = sp.issparse(values)
    cells: Any = values.tocoo() if is_sparse else np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    numbers = cells.data if is_sparse else cells.ravel()
    at = int(np.argmin(np.isfinite(numbers)))
    row, column = (cells.row[at], cells.col[at]) if is_sparse else divmod(at, cells.shape[1])
    where = f"column {shown(names[column])}" if names is not None else f"column {column}"
    if np.isnan(numbers[at]):
        what, front = "NaN", "TableEncoder" if names is not None else "SimpleImputer"
        cure = f"Fill missing cells: make_pipeline({front}(), {learner}())."
    else:
        what, cure = "infinity", "Remove such rows, or cap the values."
    return InputError(f"Input X contains {what}, first in row {row}, {where}", cure=cure)


def merged(X: Matrix) -> Matrix:
    """Return a sparse matrix with duplicate entries added up, in a copy; any other as it is."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def plain_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return labels that came as objects as one type that can be sorted: numbers as numbers, text as it is."""
    if y.dtype.kind == "M" and np.isnat(y).any():
        row = int(np.argmax(np.isnat(y)))
        raise InputError(f"Input y contains NaT, first in row {row}", cure="Remove such rows.")
    if y.dtype.kind != "O":
        return y
    labels = [label.item() if isinstance(label, np.generic) else label for label in y.tolist()]
    for row, label in enumerate(labels):
        if is_missing(label):
            raise InputError(f"Input y contains NaN, first in row {row}", cure="Remove such rows.")
    kinds = {type(label) for label in labels}
    if kinds <= {str}:
        return y
    numbers = np.asarray(labels) if kinds <= {bool, int, float} else y
    if numbers.dtype.kind != "O":  # no type holds whole numbers beyond 2^64
        return numbers
    if not kinds <= {str, bool, int, float} or str not in kinds:
        check_classification_targets(y)
    raise InputError(
        f"y mixes labels of different types: {', '.join(sorted(kind.__name__ for kind in kinds))}",
        cure="Make them all text: y.astype(str).",
    )


def number_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct labels, sorted, and each label's position among them."""
    if y.dtype.kind in "iu" and y.size:
        low, high = int(y.min()), int(y.max())
        if high - low < max(1024, y.size):  # few enough to count: several times faster than to sort or to hash
            # Signed numbers may lie further apart than their type reaches, unsigned ones beyond all signed types.
            shifted = y.astype(np.int64) - low if y.dtype.kind == "i" else (y - y.min()).astype(np.int64)
            places = np.bincount(shifted) > 0
            classes = np.flatnonzero(places).astype(y.dtype) + y.min()  # wraps around, and back again
            return classes, (np.cumsum(places) - 1)[shifted]
    classes = np.unique(y)
    return classes, np.searchsorted(classes, y)  # unique's own inverse sorts all rows: ten times slower


@as_input_error
def read_piece(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    classes: NDArray[Any],
    sample_weight: ArrayLike | None = None,
    class_weight: Any = None,
    *,
    is_first: bool,
) -> Sample:
    """Read a sample that comes in pieces: a piece may lack some of the classes, but may bring no new one."""
    X, y = read_chunk(estimator, X, y, reset=is_first)
    strangers = np.setdiff1d(y, classes)
    if len(strangers):
        raise InputError(
            f"label {shown(strangers[0])} is not one of the classes ({listed(classes)}) given to the first partial_fit"
        )
    if class_weight == "balanced":
        raise InputError(
            Advice(Setting("class_weight", "balanced"), " needs all rows at once"),
            cure="Give the weights by class: {label: weight}.",
        )
    codes = np.searchsorted(classes, y)
    weight = settle_weights(X, y, sample_weight, None)
    if class_weight is not None:  # a piece may lack some of the classes that have a weight
        by_class = np.array([check_class_weight(class_weight, label) for label in classes])[codes]
        weight = by_class if weight is None else weight * by_class
    return Sample(X, classes, codes.astype(np.int32), weight)


def classes_of_pieces(classes: ArrayLike | None, known: NDArray[Any] | None, least: int = 2) -> NDArray[Any]:
    """Return the labels of all calls of ``partial_fit``. The first call must name them in ``classes``; later calls pass
    them as ``known``. There must be at least ``least``."""
    if known is None and classes is None:
        raise ParameterError("classes must be passed on the first call to partial_fit: the labels of all calls.")
    named = known if classes is None else np.unique(np.asarray(classes))
    assert named is not None
    if known is not None and not np.array_equal(named, known):
        raise ParameterError(f"classes is {shown(classes)}; the first call of partial_fit had {listed(known)}.")
    if len(named) < least:
        raise ParameterError(f"classes is {shown(classes)}; a classifier needs at least two.")
    return named


def check_class_weight(class_weight: Mapping[Any, Any], label: object) -> float:
    """Return the weight of one class, 1 if none is given."""
    value = class_weight.get(label.item() if hasattr(label, "item") else label, 1.0)
    check_number(f"class_weight[{shown(label)}]", value, least=0)
    return float(value)


def class_weights(
    class_weight: ClassWeight,
    classes: NDArray[Any],
    codes: NDArray[np.integer[Any]],
    own: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the weight of each class, shape (K,). "balanced" gives every class that has rows the same mass."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, Mapping):
        return np.array([check_class_weight(class_weight, label) for label in classes])
    mass = np.bincount(codes, weights=own, minlength=len(classes))
    has_rows = mass > 0
    return np.asarray(np.divide(mass.sum(), has_rows.sum() * mass, out=np.zeros(len(classes)), where=has_rows))


def check_class_weights(class_weight: ClassWeight, classes: NDArray[Any] | None = None) -> None:
    """Refuse invalid class weights, and those of which none belongs to ``classes``, where given."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        words = f"class_weight is {shown(class_weight)}; it must be 'balanced', a dict {{label: weight}}, or "
        raise ParameterError(Advice(words, Value(None), "."))
    for label, value in class_weight.items():
        check_number(f"class_weight[{shown(label)}]", value, least=0)
    if classes is not None and not any(label in class_weight for label in classes.tolist()):
        raise InputError(
            f"The classes of y, {listed(classes[:8])}, are not in class_weight, which has "
            f"{listed(list(class_weight)[:8])}",
            cure="Use the labels of y as keys.",
        )


@as_input_error
def settle_weights(
    X: Matrix,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    class_weight: ClassWeight,
    *,
    ignores_negative: bool = False,
) -> NDArray[np.float64] | None:
    """Return the weight of each row: its own times its class's. None where all are one. A negative weight is an error,
    or counts as 0 for a learner that ``ignores_negative``, as scikit-learn's kernel machines do. A single number is the
    weight of every row."""
    weight = None
    if sample_weight is not None:
        cure = f"Give a list of {X.shape[0]} numbers, one number for all rows, or leave it out."
        try:
            given = np.asarray(sample_weight, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"sample_weight is {shown(sample_weight)}; it must contain numbers", cure=cure) from error
        if given.ndim == 0:
            given = np.full(X.shape[0], given)
        if given.ndim == 1 and not np.isfinite(given).all():
            raise _not_a_number("", "sample_weight", given)
        if (given <= 0).all() if ignores_negative else not given.any():  # the messages are scikit-learn's
            problem = "Sample weights must contain at least one non-zero number"
            if ignores_negative:
                problem = "Invalid input - all samples have zero or negative weights"
            raise InputError(problem, cure="Give some rows a weight > 0.")
        weight = np.array(_check_sample_weight(given, X, dtype=np.float64))
        if ignores_negative:
            weight = np.maximum(weight, 0.0)
        elif (weight < 0).any():
            row = int(np.argmax(weight < 0))
            wanted = "Negative values in data passed to `sample_weight` are not allowed"
            raise InputError(f"sample_weight[{row}] is {weight[row]:g}; {wanted}")
    if class_weight is not None:
        classes, codes = number_classes(np.asarray(y))
        check_class_weights(class_weight, classes)
        by_class = class_weights(class_weight, classes, codes)[codes]
        weight = by_class if weight is None else weight * by_class
    return weight


def weights_by_row(sample_weight: ArrayLike | None, n: int) -> NDArray[Any] | None:
    """Return the weights, which are checked already, with one for each of n rows: a single number is that of all."""
    return None if sample_weight is None else np.broadcast_to(np.asarray(sample_weight), n)


def _encoder_first(learner: str) -> str:
    in_python = f"Put an encoder in front: make_pipeline(TableEncoder(), {learner}())"
    return Advice(InPython(in_python, "Train the model with `margrove train`, which encodes tables"), ".")


def refuse_tables(estimator: BaseEstimator, X: Any) -> None:
    """Refuse a `Table`, or a data frame with text columns: a margin-based learner needs an encoder in front."""
    name = type(estimator).__name__
    if isinstance(X, Table):
        raise InputError(f"{name} takes numbers, but X is a Table", cure=_encoder_first(name))
    if not hasattr(X, "columns") and not hasattr(X, "schema"):
        return
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return
    kinds = [
        (each, frame[each].cat.get_categories().dtype if dtype == nw.Categorical else dtype)
        for each, dtype in frame.schema.items()
    ]
    text = [each for each, kind in kinds if kind in (nw.String, nw.Enum, nw.Object)]
    if text:
        words = f"{name} takes numbers, but these columns contain text: {', '.join(map(str, text))}"
        raise InputError(words, cure=_encoder_first(name))


def check_classes(classes: NDArray[Any], mass: NDArray[Any], *, has_nu: bool = False) -> None:
    """Refuse a single class, and classes of zero weight; ``mass`` is the weight of each class's rows. ``has_nu``: the
    learner has the parameter nu, which scikit-learn's message then names."""
    if len(classes) < 2:
        raise InputError(
            f"y contains only one class, {shown(classes[0])}; a classifier needs at least two",
            cure="Add rows of another class.",
        )
    if (mass == 0).any():
        start = ""  # of the message, in scikit-learn's words
        if np.count_nonzero(mass) == 1:
            also = ", and the specified nu is infeasible" if has_nu else ""
            start = f"Invalid input - all samples with positive weights belong to the same class{also}: "
        empty = classes[int(np.argmin(mass))]
        raise InputError(
            f"{start}sample_weight or class_weight is 0 for all rows of class {shown(empty)}; each class needs a "
            "weight > 0",
            cure="Give some of its rows a weight > 0, or remove them.",
        )


def float64_block(X: Matrix, rows: slice | NDArray[np.int64]) -> Matrix:
    """Return some rows in float64, dense or sparse as they are."""
    return X[rows].astype(np.float64, copy=False)


def one_vs_rest_signs(codes: NDArray[np.integer[Any]], n_classes: int) -> NDArray[np.int8]:
    """Return y for each machine, shape (machines, n): one machine for two classes, one per class for more."""
    positive = codes[None, :] == (np.array([[1]]) if n_classes == 2 else np.arange(n_classes)[:, None])
    return np.where(positive, 1, -1).astype(np.int8)


def codes_of(y: ArrayLike, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return labels as positions in ``classes``; raise `InputError` for a label that is not among them."""
    labels = np.asarray(y).ravel()
    try:
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    except TypeError as error:  # text and numbers have no order
        found = f"labels such as {shown(labels[0])} differ in type from the model's classes ({listed(classes)})"
        raise InputError(found) from error
    strangers = classes[codes] != labels
    if np.any(strangers):
        first = labels[np.argmax(strangers)]
        raise InputError(f"label {shown(first)} is not one of the model's classes ({listed(classes)})")
    return codes
