"""The rows of a problem, wherever they are.

==========  =====================================================================================
in memory   one matrix, dense or CSR: `InMemory`
in chunks   blocks that are read again for each pass, one at a time: `Chunked`
partitions  blocks that stay where they are, on the workers of a cluster: `Partitioned`
==========  =====================================================================================

An engine says with its capabilities where rows may be. A problem on rows is a `RowsProblem`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.errors import EngineError
from margrove.problem import Problem

if TYPE_CHECKING:
    from margrove.data.partitions import Partitions

Matrix: TypeAlias = Any  # a dense array or a SciPy CSR matrix of shape (n, d)
S = TypeVar("S", covariant=True)


class Home(Enum):
    """The place of rows."""

    MEMORY = "in memory"
    CHUNKS = "in chunks"
    PARTITIONS = "in partitions"


class HasMatrix(Protocol):
    """Some rows in the memory of this process."""

    @property
    def X(self) -> Matrix:  # noqa: N802
        """The rows, shape (m, d)."""


B = TypeVar("B", covariant=True)
M = TypeVar("M", bound=HasMatrix, covariant=True)


class Rows(Protocol[B]):
    """The rows of a problem: n points of d numbers each, in blocks of type ``B``."""

    @property
    def home(self) -> Home:
        """The place of the rows."""

    @property
    def n(self) -> int:
        """The number of rows."""

    @property
    def d(self) -> int:
        """The number of columns."""

    @property
    def is_sparse(self) -> bool:
        """True if the blocks are sparse."""

    def take(self, index: NDArray[np.integer[Any]]) -> Matrix:
        """Return the rows of these numbers, in this order, in memory."""

    def blocks(self) -> Iterator[B]:
        """Walk over all rows in order. A block has its rows in ``X``; one on a worker may be a handle instead."""


@dataclass(frozen=True)
class InMemory:
    """Rows that are one matrix, which is their only block."""

    X: Matrix
    home: ClassVar[Home] = Home.MEMORY

    @property
    def n(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """True if the matrix is sparse."""
        return bool(sp.issparse(self.X))

    def take(self, index: NDArray[np.integer[Any]]) -> Matrix:
        """Return the rows of these numbers."""
        return self.X[index]

    def blocks(self) -> Iterator[InMemory]:
        """Yield the matrix as one block."""
        yield self


@dataclass(frozen=True)
class Chunked(Generic[M]):
    """Rows of which one block at a time is in memory; ``walk`` starts a new pass over them."""

    n: int
    d: int
    is_sparse: bool
    walk: Callable[[], Iterator[M]]
    home: ClassVar[Home] = Home.CHUNKS

    def take(self, index: NDArray[np.integer[Any]]) -> Matrix:
        """Return the rows of these numbers, found in one pass."""
        parts, places, start = [], [], 0
        for block in self.blocks():
            stop = start + block.X.shape[0]
            inside = np.flatnonzero((index >= start) & (index < stop))
            parts.append(block.X[index[inside] - start])
            places.append(inside)
            start = stop
        found = sp.vstack(parts, format="csr") if self.is_sparse else np.concatenate(parts)
        return found[np.argsort(np.concatenate(places))]

    def blocks(self) -> Iterator[M]:
        """Start a new pass."""
        return self.walk()


@dataclass(frozen=True)
class Partitioned:
    """Rows in partitions, of which none comes here: a function is sent to each instead."""

    parts: Partitions  # of blocks, which have their rows in ``X``
    sizes: tuple[int, ...]  # rows of each
    d: int
    is_sparse: bool
    home: ClassVar[Home] = Home.PARTITIONS

    @property
    def n(self) -> int:
        """The number of rows."""
        return sum(self.sizes)

    def take(self, index: NDArray[np.integer[Any]]) -> Matrix:
        """Raise `EngineError`, as `blocks`."""
        raise EngineError("rows in partitions stay on their workers. Use an engine that reads them there.")

    def blocks(self) -> Iterator[Any]:
        """Raise `EngineError`: these rows are not read one block after the other."""
        raise EngineError("rows in partitions stay on their workers. Use an engine that reads them there.")


@dataclass(frozen=True)
class RowsProblem(Problem[S]):
    """A problem on rows. A matrix is taken as rows in memory."""

    rows: Rows[Any] | Matrix

    def __post_init__(self) -> None:
        if isinstance(self.rows, np.ndarray) or sp.issparse(self.rows):
            object.__setattr__(self, "rows", InMemory(self.rows))

    @property
    def X(self) -> Matrix:  # noqa: N802
        """The matrix of rows in memory, shape (n, d). Raise `EngineError` if the rows are not in memory."""
        if isinstance(self.rows, InMemory):
            return self.rows.X
        raise EngineError(
            f"the rows of this {type(self).__name__} are {self.rows.home.value}, but a matrix in memory is needed. "
            "Use an engine that reads them where they are, or read all of them into memory."
        )
