"""Rows in partitions as the machines of a linear SVM see them: checked once where they lie, then kept there as blocks.

As `chunks`, with one difference: a partition is read by a copy of the model on its worker, so the columns that the
copies note are compared here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from margrove.data.partitions import Part, Partitions
from margrove.data.rows import Matrix, Partitioned
from margrove.data.sample import check_class_weights, codes_of, read_chunk, take_columns_of
from margrove.data.table import Table
from margrove.errors import InputError
from margrove.linear_svm.chunks import (
    ChunkedSample,
    Labels,
    Masses,
    TargetSums,
    inside,
    mass_by_label,
    piece_weights,
    valued_block,
)
from margrove.linear_svm.stream_problem import RowBlock


@dataclass(frozen=True)
class _Look:
    """What the first pass over a partition finds."""

    n: int
    is_sparse: bool
    reader: Any  # the copy of the model, which has noted the columns
    found: Any  # of the target


def read_partitioned_sample(model: Any, parts: Partitions, classes: Any = None, *, is_first: bool) -> ChunkedSample:
    """Read partitions whose y are labels; see `read_chunked_sample`."""
    check_class_weights(model.class_weight)
    looks = _looked_at(model, parts, _look_at_labels, classes, is_first=is_first)
    masses = Masses()
    for look in looks:
        masses.add(*look.found)
    labels = masses.settle(model, classes, is_first=is_first, among="partitions")
    rows = _rows(model, parts, looks, _labelled, labels, is_first=is_first)
    return ChunkedSample(rows, labels.totals, np.ones(len(labels.totals)), classes=labels.classes)


def read_partitioned_values(model: Any, parts: Partitions, *, is_first: bool) -> ChunkedSample:
    """Read partitions whose y are numbers."""
    looks = _looked_at(model, parts, _look_at_values, is_first=is_first)
    sums = TargetSums()
    for look in looks:
        sums.add(look.found)
    rows = _rows(model, parts, looks, _valued, is_first=is_first)
    return ChunkedSample(rows, *sums.start(model, rows.n, rows.d, among="partition"))


def _looked_at(model: Any, parts: Partitions, look: Callable[..., _Look], *shared: Any, is_first: bool) -> list[_Look]:
    """Return what each partition has, and note its columns on the model."""
    looks: list[_Look] = parts.map(look, _reader(model, is_first=is_first), is_first, *shared)
    first = None
    for name, each in zip(parts.names, looks, strict=True):
        if each.n == 0:
            continue
        if first is None:
            first = each.reader
            continue
        names = [getattr(reader, "feature_names_in_", None) for reader in (first, each.reader)]
        if first.n_features_in_ != each.reader.n_features_in_ or _listed(names[0]) != _listed(names[1]):
            raise InputError(
                f"{name} has the columns {_columns(each.reader)}, and the first has {_columns(first)}",
                cure="All partitions need the same columns, in the same order.",
            )
    if first is None:
        raise InputError("the partitions contain no rows", cure="At least one with rows is needed.")
    if is_first:
        vars(model).pop("feature_names_in_", None)
        take_columns_of(model, first)
    return looks


def _listed(names: Any) -> list[str]:
    return [] if names is None else list(names)


def _columns(reader: Any) -> str:
    names = _listed(getattr(reader, "feature_names_in_", None))
    return ", ".join(map(str, names[:5])) + (", …" if len(names) > 5 else "") or f"{reader.n_features_in_} numbers"


def _reader(model: Any, *, is_first: bool) -> Any:
    """Return a copy of the model without its rows: its parameters, and unless ``is_first`` its columns."""
    reader = clone(model).set_params(engine="native", random_state=None)
    if not is_first:
        take_columns_of(reader, model)
    return reader


def _rows(
    model: Any, parts: Partitions, looks: Sequence[_Look], block: Callable[..., RowBlock], *shared: Any, is_first: bool
) -> Partitioned:
    reader = _reader(model, is_first=False)
    blocks = parts.derive(block, reader, *shared)
    sizes = tuple(look.n for look in looks)
    return Partitioned(blocks, sizes, model.n_features_in_, any(look.is_sparse for look in looks))


# On the workers


def _read(part: Part, reader: Any, *, reset: bool, is_numeric: bool) -> tuple[Any, Matrix, Any, NDArray[np.float64]]:
    """Return a copy of the reader that has noted the columns, with X, y and the rows' weights, checked."""
    noted = clone(reader)  # partitions may be read by several threads at once
    take_columns_of(noted, reader)
    numbers, names = part.numbers(), part.X.names if isinstance(part.X, Table) else None
    if names is not None:
        vars(noted).pop("feature_names_in_", None)  # numbers of a table have none
    with inside(part.name):
        points, y = read_chunk(noted, numbers, part.y, reset=reset, y_numeric=is_numeric)
        own = piece_weights(points, y, part.weight)
    if names is not None:
        noted.feature_names_in_ = np.array(names, dtype=object)
    return noted, points, y, own


def _nothing(part: Part) -> bool:
    return bool(part.X.shape[0] == 0)


def _look_at_labels(part: Part, reader: Any, is_first: bool, known: NDArray[Any] | None) -> _Look:
    if _nothing(part):
        return _Look(0, False, None, (np.empty(0), np.empty(0)))
    noted, points, y, own = _read(part, reader, reset=is_first, is_numeric=False)
    if known is not None:
        with inside(part.name):
            codes_of(y, known)
    return _Look(points.shape[0], sp.issparse(points), noted, mass_by_label(y, own))


def _look_at_values(part: Part, reader: Any, is_first: bool) -> _Look:
    if _nothing(part):
        return _Look(0, False, None, TargetSums())
    noted, points, y, own = _read(part, reader, reset=is_first, is_numeric=True)
    return _Look(points.shape[0], sp.issparse(points), noted, TargetSums.of(reader, y, own))


def _labelled(part: Part, reader: Any, labels: Labels) -> RowBlock:
    if _nothing(part):
        return _empty(reader, len(labels.totals))
    _, points, y, own = _read(part, reader, reset=False, is_numeric=False)
    return labels.block(reader, points, y, own)


def _valued(part: Part, reader: Any) -> RowBlock:
    if _nothing(part):
        return _empty(reader, 1)
    _, points, y, own = _read(part, reader, reset=False, is_numeric=True)
    return valued_block(reader, points, y, own)


def _empty(reader: Any, machines: int) -> RowBlock:
    return RowBlock(np.empty((0, reader.n_features_in_)), np.empty((machines, 0)), np.empty((machines, 0)))
