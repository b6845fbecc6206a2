"""The arrays of a model file: the description of each (`Array`), and their store (`Arrays`).

Shapes are written in symbols that must mean the same number throughout a model. K is the number of labels, m of
machines, d of columns (``n_features_in_``), n of training rows (``n_rows_``); any other takes the size that it has in
the first array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.store.check import check_fields
from margrove.store.container import Tensors
from margrove.store.fault import FaultError, shown

WHOLE = ("int64",)
HALF_WHOLE = ("int32",)  # as scikit-learn's support vector machines have it
SINGLE_OR_DOUBLE = ("float32", "float64")
_SPARSE = {"csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}


@dataclass(frozen=True)
class Array:
    """One array of a fitted model. Floats are finite, unless it says otherwise."""

    name: str
    shape: str
    dtypes: tuple[str, ...] = ("float64",)
    given: tuple[str, tuple[Any, ...]] | None = None  # only where this parameter has one of these values
    is_optional: bool = False
    may_be_sparse: bool = False
    is_truth: bool = False  # of truth values, which a file has as 0 and 1
    least: float | None = None  # no entry is smaller
    most: float | None = None  # no entry is larger
    below: str = ""  # every entry is smaller than each of these symbols
    rises_to: str = ""  # starts at 0, never falls, ends at this symbol
    sums_to: str = ""  # the entries add up to this symbol
    has_gaps: bool = False  # may be NaN or infinite


@dataclass
class Arrays:
    """The arrays of a file, as a model or a part of one sees them, whose names begin with ``prefix``."""

    tensors: Tensors = field(default_factory=dict)
    prefix: str = ""
    left_out: list[str] = field(default_factory=list)  # warnings about what a file does not keep

    def within(self, place: str) -> Arrays:
        """Return the same arrays, seen from a part of the model."""
        return replace(self, prefix=f"{self.prefix}{place}.")

    def put(self, name: str, array: Any) -> str:
        """Keep an array; return how it lay in memory, on which the last bit of a product may depend."""
        name = self.prefix + name
        if sp.issparse(array):
            for part in ("data", "indices", "indptr"):
                self.tensors[f"{name}.{part}"] = np.ascontiguousarray(getattr(array, part))
            return type(array).__name__
        self.tensors[name] = np.ascontiguousarray(array, np.int32 if array.dtype == bool else None)
        return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"

    def put_all(self, specs: Sequence[Array], owner: Any) -> dict[str, str]:
        """Keep those of these arrays that the owner has stored; properties of the same names are ignored. Return their
        memory orders."""
        kept = vars(owner)
        return {spec.name: self.put(spec.name, kept[spec.name]) for spec in specs if kept.get(spec.name) is not None}

    def pop(self, name: str) -> Any:
        """Take an array out."""
        if self.prefix + name not in self.tensors:
            raise FaultError(f"the array {self.prefix + name!r} is missing")
        return self.tensors.pop(self.prefix + name)

    def take_all(self, specs: Sequence[Array], layouts: Any, symbols: dict[str, int]) -> dict[str, Any]:
        """Take the arrays of these specifications out, each checked; new symbols are added to ``symbols``."""
        wanted = {spec.name for spec in specs if not spec.is_optional}
        given = {spec.name for spec in specs} & layouts.keys() if isinstance(layouts, dict) else wanted
        check_fields(layouts, wanted | given, "the list of arrays")
        found = {spec.name: self._take(spec, layouts[spec.name], symbols) for spec in specs if spec.name in layouts}
        for spec in specs:  # only now are all symbols known
            if spec.name in found:
                check_entries(spec, found[spec.name], symbols)
                if spec.is_truth:
                    found[spec.name] = found[spec.name].astype(bool)
        return found

    def _take(self, spec: Array, layout: Any, symbols: dict[str, int]) -> Any:
        if layout in ("C", "F"):
            array = self.pop(spec.name)
            check_shape(spec, array.shape, symbols)
            return np.asfortranarray(array) if layout == "F" else array
        if not spec.may_be_sparse or not isinstance(layout, str) or layout not in _SPARSE:
            raise FaultError(f"{spec.name} is laid out as {shown(layout)}, which is unknown")
        data, indices, indptr = (self.pop(f"{spec.name}.{part}") for part in ("data", "indices", "indptr"))
        d = symbols["d"]
        if not data.ndim == indices.ndim == indptr.ndim == 1 or data.shape != indices.shape or not indptr.size:
            raise FaultError(f"{spec.name}: its parts are of shapes {data.shape}, {indices.shape} and {indptr.shape}")
        if {indices.dtype.name, indptr.dtype.name} - {"int32", "int64"}:
            raise FaultError(
                f"{spec.name}: its positions are of types {indices.dtype} and {indptr.dtype}, not whole numbers"
            )
        check_rises(f"{spec.name}.indptr", indptr, data.size)
        if indices.size and (indices.min() < 0 or indices.max() >= d):
            raise FaultError(f"{spec.name}.indices are not all from 0 to {d - 1}")
        shape = (indptr.size - 1, d)
        check_shape(spec, shape, symbols)
        return _SPARSE[layout]((data, indices, indptr), shape=shape)


def check_shape(spec: Array, shape: tuple[int, ...], symbols: dict[str, int]) -> None:
    """Check the shape; a symbol met for the first time takes the size it has here."""
    terms = [term.partition("+") for term in spec.shape.split()]
    wanted = []
    for size, (symbol, _, more) in zip(shape, terms, strict=False):
        extra = int(more or 0)
        known = int(symbol) if symbol.isdigit() else symbols.setdefault(symbol, size - extra)
        wanted.append(known + extra)
    if shape != tuple(wanted) or len(shape) != len(terms):
        meaning = ", ".join(f"{symbol} = {size}" for symbol, size in symbols.items())
        raise FaultError(
            f"{spec.name} has shape {shape}; ({', '.join(spec.shape.split())}) was expected, where {meaning}"
        )


def check_entries(spec: Array, array: Any, symbols: Mapping[str, int]) -> None:
    """Check types and ranges of an array's entries, dense or sparse."""
    if array.dtype.name not in spec.dtypes:
        raise FaultError(f"{spec.name} is of type {array.dtype.name}; {' or '.join(spec.dtypes)} was expected")
    entries = array.data if sp.issparse(array) else array
    if not spec.has_gaps and not np.isfinite(entries).all():
        raise FaultError(f"{spec.name} holds numbers that are not finite")
    smallest, largest = (entries.min(), entries.max()) if entries.size else (0, 0)
    if entries.size and spec.least is not None and smallest < spec.least:
        raise FaultError(f"{spec.name} goes down to {smallest:g}; it must not be below {spec.least:g}")
    if entries.size and spec.most is not None and largest > spec.most:
        raise FaultError(f"{spec.name} goes up to {largest:g}; it must not be above {spec.most:g}")
    for symbol in spec.below.split():
        if entries.size and largest >= symbols[symbol]:
            raise FaultError(f"{spec.name} goes up to {largest}; it must be below {symbol} = {symbols[symbol]}")
    if spec.sums_to and (total := int(entries.sum(dtype=np.int64))) != symbols[spec.sums_to]:
        raise FaultError(f"{spec.name} sums to {total}; {spec.sums_to} = {symbols[spec.sums_to]} was expected")
    if spec.rises_to:
        check_rises(spec.name, entries, symbols[spec.rises_to])


def check_rises(name: str, starts: Any, end: int) -> None:
    """Check positions at which pieces begin: from 0, never falling, to the end."""
    # Neighbours are compared and not subtracted: a difference of int64 may overflow.
    if not starts.size or starts[0] != 0 or starts[-1] != end or (starts[:-1] > starts[1:]).any():
        raise FaultError(f"{name} must rise from 0 to {end}")
