"""Chunks of rows as the machines of a linear SVM see them: read once to be checked, then again in every pass.

The first pass checks every chunk and counts rows, columns, classes and weights. Later passes trust the cells, and check
only that the number of rows is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from margrove.data.rows import Chunked, Matrix, Partitioned
from margrove.data.sample import (
    FLOATS,
    check_class_weights,
    check_classes,
    class_weights,
    codes_of,
    merged,
    one_vs_rest_signs,
    plain_labels,
    read_chunk,
    settle_weights,
)
from margrove.data.stream import Chunk, walker
from margrove.errors import InputError, ParameterError, shown
from margrove.linear_svm.layout import costs_by_class, scale_of_intercept
from margrove.linear_svm.problem import is_within_tube, losses
from margrove.linear_svm.stream_problem import RowBlock
from margrove.run.progress import Progress, report
from margrove.svm.problem import check_costs


@dataclass(frozen=True)
class ChunkedSample:
    """Chunks that were read once, ready for a problem."""

    rows: Chunked[RowBlock] | Partitioned
    primal_at_centre: NDArray[np.float64]  # (machines,)
    spread: NDArray[np.float64]  # (machines,)
    centre: NDArray[np.float64] | None = None  # (machines, d + 1), where a solve begins; None is 0
    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))  # (K,), none for a regression


def read_chunked_sample(model: Any, chunks: Any, classes: Any = None, *, is_first: bool) -> ChunkedSample:
    """Read chunks whose y are labels. ``classes`` are all that may come; None takes those that do. ``is_first`` is for
    training, which takes note of the columns; otherwise they must be those of training."""
    check_class_weights(model.class_weight)
    start = walker(chunks)
    known = None if classes is None else _known(classes)
    masses = Masses()
    extent = _Extent()
    for number, (y, own) in enumerate(_looked_through(model, start, extent, is_first=is_first), start=1):
        if known is not None:
            with inside(f"chunk {number}"):
                codes_of(y, known)
        masses.add(*mass_by_label(y, own))
    labels = masses.settle(model, known, is_first=is_first, among="chunks")

    def block(X: Matrix, y: NDArray[Any], own: NDArray[np.float64]) -> RowBlock:
        return labels.block(model, X, y, own)

    return ChunkedSample(extent.rows(start, block), labels.totals, np.ones(len(labels.totals)), classes=labels.classes)


@dataclass(frozen=True)
class Labels:
    """The classes of all rows, with what their costs need to know of them."""

    classes: NDArray[Any]  # (K,), sorted
    by_class: NDArray[np.float64]  # (K,), the weight of each
    totals: NDArray[np.float64]  # (machines,), the sum of all costs: P of w = 0

    def block(self, model: Any, X: Matrix, y: NDArray[Any], own: NDArray[np.float64]) -> RowBlock:
        """Return some rows as the machines see them."""
        codes = codes_of(y, self.classes)
        signs = one_vs_rest_signs(codes, len(self.classes)).astype(np.float64)
        return RowBlock(X, signs, np.array(costs_by_class(model, self.by_class, codes, own)))


class Masses:
    """The weight of each class, added up piece by piece."""

    def __init__(self) -> None:
        self._mass: dict[Any, float] = {}

    def add(self, labels: NDArray[Any], added: NDArray[np.float64]) -> None:
        """Add the weights of the labels of a piece."""
        for label, weight in zip(_keys(labels), added.tolist(), strict=True):
            self._mass[label] = self._mass.get(label, 0.0) + weight

    def settle(self, model: Any, known: NDArray[Any] | None, *, is_first: bool, among: str) -> Labels:
        """Return the classes: those ``known``, or those that came. Raise an error if one has no rows or no weight."""
        found = _ordered(self._mass, among) if known is None else known
        for label in _keys(found):
            if label not in self._mass:
                cure = "Remove it from classes, or add rows of it."
                cure = cure if is_first else "The model was fitted on rows of it."
                raise InputError(f"the {among} contain no row of class {shown(label)}", cure=cure)
        masses = np.array([self._mass[label] for label in _keys(found)])
        check_class_weights(model.class_weight, found)
        every = np.arange(len(found))
        by_class = class_weights(model.class_weight, found, every, masses)
        check_classes(found, masses * by_class)
        totals = np.array([costs.sum() for costs in costs_by_class(model, by_class, every, masses)])
        return Labels(found, by_class, totals)


def mass_by_label(y: NDArray[Any], own: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the labels of some rows, sorted, and the weight of each."""
    labels, codes = np.unique(y, return_inverse=True)
    return labels, np.bincount(codes, weights=own, minlength=len(labels)).astype(np.float64)


def read_chunked_values(model: Any, chunks: Any, *, is_first: bool) -> ChunkedSample:
    """Read chunks whose y are numbers."""
    start = walker(chunks)
    extent, sums = _Extent(), TargetSums()
    looked = _looked_through(model, start, extent, is_first=is_first, is_numeric=True)
    for number, (y, own) in enumerate(looked, start=1):
        with inside(f"chunk {number}"):
            sums.add(TargetSums.of(model, y, own))

    def block(X: Matrix, y: NDArray[Any], own: NDArray[np.float64]) -> RowBlock:
        return valued_block(model, X, y, own)

    return ChunkedSample(extent.rows(start, block), *sums.start(model, extent.n, extent.d, among="chunk"))


def valued_block(model: Any, X: Matrix, y: NDArray[Any], own: NDArray[np.float64]) -> RowBlock:
    """Return some rows with numbers to predict as the machine sees them."""
    return RowBlock(X, np.asarray(y, dtype=np.float64)[None], check_costs(float(model.C) * own)[None])


@dataclass
class TargetSums:
    """What the start of a regression needs to know of the numbers to predict."""

    squares: float = 0.0
    at_zero: float = 0.0  # Σ of the rows' own weights times their loss where f = 0
    least: float = math.inf  # of rows with a weight
    largest: float = -math.inf

    @classmethod
    def of(cls, model: Any, y: NDArray[Any], own: NDArray[np.float64]) -> TargetSums:
        """Return the sums over some rows."""
        z = np.asarray(y, dtype=np.float64)
        at_zero = float(own @ losses(model.loss, z, np.zeros(len(z)), float(model.epsilon)))
        counted = z[own > 0]
        return cls(float(z @ z), at_zero, counted.min(initial=math.inf), counted.max(initial=-math.inf))

    def add(self, other: TargetSums) -> None:
        """Add the sums over further rows."""
        self.squares += other.squares
        self.at_zero += other.at_zero
        self.least, self.largest = min(self.least, other.least), max(self.largest, other.largest)

    def start(
        self, model: Any, n: int, d: int, *, among: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
        """Return P where the machine begins, the spread of its targets, and where it begins."""
        if self.least > self.largest:
            raise InputError(f"every row of every {among} has weight 0", cure="Give some rows a weight > 0.")
        spread = math.sqrt(self.squares / n) or 1.0
        at_centre, centre = float(model.C) * self.at_zero, None
        if math.isinf(scale_of_intercept(model)) and is_within_tube(self.least, self.largest, float(model.epsilon)):
            at_centre, centre = 0.0, np.zeros((1, d + 1))  # w = 0 and a b in the middle have no loss
            centre[0, -1] = (self.least + self.largest) / 2
        return np.array([at_centre]), np.array([spread]), centre


def _looked_through(
    model: Any, start: Callable[[], Iterator[Chunk]], extent: _Extent, *, is_first: bool, is_numeric: bool = False
) -> Iterator[tuple[NDArray[Any], NDArray[np.float64]]]:
    """Yield y and the rows' own weights of each chunk, checked; take down the extent of all."""
    for number, (X, y, weight) in enumerate(start(), start=1):
        if getattr(X, "shape", (1,))[0] == 0:
            continue
        with inside(f"chunk {number}"):
            points, labels = read_chunk(model, X, y, reset=is_first and extent.n == 0, y_numeric=is_numeric)
            own = piece_weights(points, labels, weight)
        extent.n, extent.d = extent.n + points.shape[0], points.shape[1]
        extent.is_sparse = extent.is_sparse or sp.issparse(points)
        yield labels, own
        report(Progress("reading the rows", extent.n))
    if extent.n == 0:
        raise InputError("the chunks contain no rows", cure="At least one chunk (X, y) with rows is needed.")


def piece_weights(X: Matrix, y: Any, weight: Any) -> NDArray[np.float64]:
    """Return the rows' own weights; those of a chunk may all be 0."""
    if weight is not None and not np.any(weight):
        if np.shape(weight) not in ((), (X.shape[0],)):
            raise InputError(
                f"sample_weight has shape {np.shape(weight)}; X has {X.shape[0]} rows", cure="Pass one weight per row."
            )
        return np.zeros(X.shape[0])
    own = settle_weights(X, y, weight, None)
    return np.ones(X.shape[0]) if own is None else own


@contextmanager
def inside(piece: str) -> Iterator[None]:
    """Name the piece, a chunk or a partition, in the errors raised inside."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{piece}: {error.problem}", cure=error.cure) from error
    except ParameterError:
        raise
    except ValueError as error:  # scikit-learn's
        raise InputError(f"{piece}: {error}") from error


def _known(classes: Any) -> NDArray[Any]:
    known = np.unique(plain_labels(np.asarray(classes).ravel()))
    if len(known) < 2:
        raise ParameterError(f"classes has {len(known)} label(s); a classifier needs at least two.")
    return known


def _keys(labels: NDArray[Any]) -> list[Any]:
    """Labels to look up by; dates stay dates, which ``tolist`` makes whole numbers of if they are fine enough."""
    return list(labels) if labels.dtype.kind == "M" else labels.tolist()


def _ordered(mass: dict[Any, float], among: str) -> NDArray[Any]:
    try:
        return np.unique(np.array(sorted(mass)))
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in mass})
        raise InputError(
            f"the {among} contain labels of several types: {', '.join(kinds)}", cure="Convert them to one type."
        ) from error


@dataclass
class _Extent:
    """Shape of all chunks together."""

    n: int = 0
    d: int = 0
    is_sparse: bool = False

    def rows(
        self, start: Callable[[], Iterator[Chunk]], block: Callable[[Any, Any, Any], RowBlock]
    ) -> Chunked[RowBlock]:
        return Chunked(self.n, self.d, self.is_sparse, lambda: _reread(start, block, self.n, self.d))


def _reread(
    start: Callable[[], Iterator[Chunk]], block: Callable[[Any, Any, Any], RowBlock], n: int, d: int
) -> Iterator[RowBlock]:
    """Yield the chunks again, checked against the first pass."""
    seen = 0
    for number, (X, y, weight) in enumerate(start(), start=1):
        points = X.tocsr() if sp.issparse(X) else np.asarray(X)  # as the first look had it
        if points.shape[0] == 0:
            continue
        if points.dtype not in FLOATS:
            points = points.astype(np.float64)
        if points.shape[1] != d:
            raise InputError(f"chunk {number} has {points.shape[1]} columns in a later pass, and had {d} in the first")
        seen += points.shape[0]
        if seen > n:
            break
        yield block(merged(points), np.asarray(y).ravel(), piece_weights(points, y, weight))
    if seen != n:
        more = "more" if seen > n else f"{seen}"
        raise InputError(
            f"the chunks had {n} rows in the first pass, and {more} in a later one",
            cure="Every pass must read the same rows: pass a list, or a function that returns a new iterator.",
        )
