"""The rows of several files, which the workers of a cluster read: each file, or row group of a Parquet file, by one."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.alignment import with_trained_parts
from margrove.data.encoding import Description
from margrove.data.partitions import Part, stacked
from margrove.data.readers import read_table
from margrove.data.table import Table
from margrove.data.target import Target, choose_target, refuse_unlabelled
from margrove.errors import InputError

if TYPE_CHECKING:
    from margrove.data.encoder import TableEncoder


MOST_CLASSES = 10_000  # numbers of a piece that may still be classes


@dataclass(frozen=True)
class Piece:
    """A file, or a row group of a Parquet file."""

    path: str
    group: int | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.path if self.group is None else f"row group {self.group} of {self.path}"


@dataclass(frozen=True)
class Draw:
    """Some rows, drawn once for all: about this share of every piece, or the others. A smaller share of the same seed
    is a part of a larger one."""

    share: float
    seed: int
    are_others: bool = False

    def rows(self, place: int, n: int) -> NDArray[np.bool_]:
        """Return which rows of the piece of this place they are."""
        is_drawn = np.random.default_rng([self.seed, place]).random(n) < self.share
        return ~is_drawn if self.are_others else is_drawn

    def of_table(self, table: Table, place: int, fewer: Draw) -> tuple[Table, str, NDArray[np.bool_]]:
        """Return these rows with the target as the last column, its name, and which of them ``fewer`` has."""
        target, rows = table.target, self.rows(place, table.n_rows)
        assert target is not None
        drawn = Table([*table.take(rows).columns, target.take(rows)], source=table.source)
        return drawn, target.name, fewer.rows(place, table.n_rows)[rows]


@dataclass(frozen=True)
class Counts:
    """The counts of a table, or of several."""

    n: int
    missing: Counter[str]  # cells, by column
    labels: Counter[Any]  # rows, by target; empty for numbers with too many values to be classes
    numbers: tuple[float, float, float]  # of a target of numbers: the least, the sum and the largest

    @classmethod
    def of(cls, table: Table) -> Counts:
        """Return the counts of a table with a target."""
        target = table.target
        assert target is not None
        missing = Counter({column.name: column.n_missing for column in table} if table.sparse is None else {})
        labels, counts = np.unique(table.labels(), return_counts=True)
        if target.kind == "numeric" and len(labels) > MOST_CLASSES:
            labels, counts = labels[:0], counts[:0]
        numbers = (np.inf, 0.0, -np.inf)
        if target.kind == "numeric" and len(labels):
            numbers = float(target.values.min()), float(target.values.sum(dtype=np.float64)), float(target.values.max())
        return cls(table.n_rows, missing, Counter(dict(zip(labels.tolist(), counts.tolist(), strict=True))), numbers)

    @classmethod
    def total(cls, parts: Sequence[Counts]) -> Counts:
        """Return the counts of all parts together."""
        missing: Counter[str] = sum((part.missing for part in parts), Counter())
        labels: Counter[Any] = sum((part.labels for part in parts), Counter())
        if any(part.n and not part.labels for part in parts):
            labels.clear()
        least, total, largest = zip(*(part.numbers for part in parts), strict=True)
        return cls(sum(part.n for part in parts), missing, labels, (min(least), sum(total), max(largest)))


@dataclass(frozen=True)
class FileSet:
    """Files with the same columns as one table, of which nothing is read yet."""

    pieces: tuple[Piece, ...]
    how: Mapping[str, Any] = field(default_factory=dict)  # arguments of `read_table`
    without: tuple[str, ...] = ()  # columns that are left out
    parts_of_dates: tuple[Description, ...] = ()  # of all columns; those that are parts of dates are derived
    encoder: TableEncoder | None = None  # of the columns
    drawn: Draw | None = None  # only these rows
    kind_of_collection = "a set of files"

    @classmethod
    def of(cls, given: Any, how: Mapping[str, Any] | None = None) -> FileSet:
        """Return the files of a list, or those that match a pattern; ``how`` as in `read_table`."""
        if isinstance(given, FileSet):
            return given
        if isinstance(given, list | tuple):
            paths = [os.path.abspath(each) for each in given]
        else:
            paths = sorted(glob.glob(os.path.abspath(given)))
            if not paths:
                raise InputError(f"no file matches {os.fspath(given)!r}", cure="Check the pattern.")
        return cls(tuple(piece for path in paths for piece in _pieces(path)), how or {})

    @property
    def names(self) -> list[str]:
        """What messages call the partitions."""
        return [piece.name for piece in self.pieces]

    def table(self, place: int, target: Target) -> Table:
        """Read a partition with its target, which is chosen as `read_table` does."""
        piece = self.pieces[place]
        if piece.group is None:
            table = read_table(piece.path, target=target, **self.how)
        else:
            import pyarrow.parquet

            from margrove.data.arrow import table_from_batches

            group = pyarrow.parquet.ParquetFile(piece.path).read_row_group(piece.group)
            table = table_from_batches(group.to_batches(), piece.path, "parquet")
            if target is not False:
                drop = self.how.get("drop_unlabelled", False)
                table = refuse_unlabelled(choose_target(table, target), drop_unlabelled=drop)
        if self.parts_of_dates:
            table = with_trained_parts(table, self.parts_of_dates)
        if self.without:
            table = table.select([name for name in table.names if name not in self.without])
        return table if self.drawn is None else table.take(self.drawn.rows(place, table.n_rows))

    def part(self, place: int, target: str | None, weight: str | None = None) -> Part:
        """Read a partition, encoded where there is an encoder. ``target`` is None where no column is one."""
        piece, table, weights = self.pieces[place], self.table(place, False if target is None else target), None
        if weight is not None:
            weights = table[weight].values
            table = table.without(weight)
        y = None if target is None else table.labels()
        X = table if self.encoder is None or table.n_rows == 0 else self.encoder.transform(table)
        return Part(X, y, weights, piece.name, piece.path)

    def compute(self) -> Table:
        """Read all rows into the memory of this process, without a target."""
        return stacked([replace(self, encoder=None).part(place, None).X for place in range(len(self.pieces))])


def _pieces(path: str) -> list[Piece]:
    if not path.endswith((".parquet", ".pq")):
        return [Piece(path)]
    import pyarrow as pa
    import pyarrow.parquet

    try:
        n_groups = pyarrow.parquet.ParquetFile(path).metadata.num_row_groups
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"cannot be read ({error})", file=path, cure="Check the file.") from error
    return [Piece(path, group) for group in range(n_groups)] if n_groups > 1 else [Piece(path)]
