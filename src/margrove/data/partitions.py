"""Tables that lie in partitions on the workers of a cluster: what the rest of the library knows of them.

A *partition* is some rows in the memory of one worker. A learner never has all of them: it sends a function to every
partition, and the results come back in the order of the partitions, so that sums of them are the same for any number
of workers. `margrove.data.dask_partitions` implements them on Dask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

from margrove.data.rows import Matrix
from margrove.data.stream import numbers_of_table
from margrove.data.table import Table
from margrove.errors import InputError

_WORDS = {"Array": "a dask array", "DataFrame": "a dask data frame", "Series": "a dask series"}


def kind_of_collection(X: Any) -> str | None:
    """Return the kind of a Dask collection in words; None for anything else."""
    if not hasattr(type(X), "__dask_graph__"):
        return None
    name = type(X).__name__
    return _WORDS.get(name, f"a dask {name}")


def refuse_collection(learner: str, **given: Any) -> None:
    """Raise `InputError` if an argument is a Dask collection: its rows are not in memory."""
    for name, X in given.items():
        kind = kind_of_collection(X)
        if kind is not None:
            raise InputError(
                f"{name} is {kind}, and this method of {learner} reads rows that are in memory",
                cure=f"Use {name}.compute() if it fits into memory.",
            )


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
