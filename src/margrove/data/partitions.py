"""Tables that lie in partitions on the workers of a cluster: what the rest of the library knows of them.

A *partition* is some rows in the memory of one worker. A learner never has all of them: it sends a function to every
partition, and the results come back in the order of the partitions, so that sums of them are the same for any number
of workers. `margrove.data.dask_partitions` implements them on Dask.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from margrove.data.columns import MISSING, Column, is_number
from margrove.data.rows import Matrix
from margrove.data.stream import numbers_of_table
from margrove.data.table import Table
from margrove.errors import InputError, shown


@dataclass(frozen=True)
class Part:
    """The rows of one partition, as a worker has them."""

    X: Any  # an array, a CSR matrix, a frame or a `Table`
    y: Any
    weight: Any  # None: all are one
    name: str  # for messages
    file: str | None = None  # which it was read from

    def numbers(self) -> Matrix:
        """Return X as numbers. Raise `InputError` if a cell of a `Table` is missing or not a number."""
        if not isinstance(self.X, Table):
            return self.X
        numbers = numbers_of_table(self.X)
        if self.X.sparse is None:
            for j, column in enumerate(self.X):
                if column.n_missing:
                    row = int((numbers[:, j] != numbers[:, j]).argmax())
                    raise self._missing(row, column.name)
        return numbers

    def _missing(self, row: int, column: str) -> InputError:
        from margrove.data.readers import line_of_row

        line = None if self.file is None else line_of_row(self.file, row)
        problem = "the cell is missing" if line is not None else f"{self.name}: the cell of row {row} is missing"
        return InputError(problem, file=self.file, line=line, column=column, cure="Fill it, or remove the row.")


def stacked(tables: Sequence[Table]) -> Table:
    """Return tables of the same columns as one, without a target: the rows of the first, then those of the next."""
    first = tables[0]
    if all(table.block is not None for table in tables):
        return Table(block=np.concatenate([table.block for table in tables]), names=first.names, source=first.source)
    columns = [_stacked([table[name] for table in tables], [table.source for table in tables]) for name in first.names]
    return Table(columns, source=first.source)


def _stacked(parts: Sequence[Column], sources: Sequence[str]) -> Column:
    """Return the parts of a column as one. One whose cells are all missing may be of any kind."""
    known = [place for place, part in enumerate(parts) if part.n_missing < len(part)]
    # A word among numbers is the odd one, wherever it stands.
    first = next((place for place in known if parts[place].kind == "numeric"), known[0] if known else 0)
    model = parts[first]
    for place in known:
        if parts[place].kind != model.kind:
            raise _other_kind(parts[place], model, sources[place], sources[first])
    levels = {level for place in known for level in parts[place].levels}
    if model.kind != "category":
        gap = np.nan if model.kind == "numeric" else MISSING
        empty = model.values.dtype.type(gap)
        values = [part.values if part.kind == model.kind else np.full(len(part), empty) for part in parts]
        return replace(model, values=np.concatenate(values))
    if len({type(level) for level in levels}) > 1:
        kinds = ", ".join(sorted({type(level).__name__ for level in levels}))
        raise InputError(f"the categories are of several types: {kinds}", column=model.name, cure="Use one type.")
    ordered = tuple(sorted(levels))
    place_of = {level: code for code, level in enumerate(ordered)}
    values = []
    for part in parts:
        if part.kind != "category":
            values.append(np.full(len(part), MISSING, dtype=np.int32))
            continue
        recode = np.array([place_of.get(level, MISSING) for level in part.levels] + [MISSING], dtype=np.int32)
        values.append(recode[part.values])
    return replace(model, values=np.concatenate(values), levels=ordered)


def _other_kind(part: Column, model: Column, source: str, other: str) -> InputError:
    """Return the error about a part of a column of another kind. A word among numbers is named with its line."""
    wanted = partial(InputError, column=model.name, cure="Write it alike everywhere.")
    words = [code for code, level in enumerate(part.levels) if not is_number(str(level))]
    if model.kind != "numeric" or not words:
        problem = f"the column is {part.shown_kind} here, and {model.shown_kind} in {other}"
        return wanted(problem, file=source)
    row = int(np.isin(part.values, words).argmax())
    word = shown(part.levels[part.values[row]])
    problem = f"{word} is not a number; the column is {part.shown_kind} here, and {model.shown_kind} in {other}"
    if not os.path.isfile(source):
        return wanted(f"{problem}; see row {row}", file=source)
    from margrove.data.readers import line_of_row

    return wanted(problem, file=source, line=line_of_row(source, row))


class Partitions(Protocol):
    """The partitions of a table."""

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call each partition."""

    def run(self, function: Callable[..., Any], *shared: Any) -> Iterator[list[Any] | None]:
        """Apply ``function(partition, *shared)`` to every partition where it lies. Yield None while the workers are at
        work, about twenty times a second, and at last the list of results, in the order of the partitions."""

    def map(self, function: Callable[..., Any], *shared: Any) -> list[Any]:
        """Return the results of `run`."""

    def derive(self, function: Callable[..., Any], *shared: Any) -> Self:
        """Return new partitions, ``function(partition, *shared)`` of each, which stay where they are made."""
