"""The checks behind `schema`: whoever wrote the file, what comes out of here is a model of that class in one piece."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import NoneType
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.certificate import Certificate
from margrove.store.fault import FaultError, shown
from margrove.store.plain import from_json
from margrove.store.schema import Array, Range, Scalar

_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")


def check_fields(record: Any, wanted: set[str], what: str) -> None:
    """A JSON object with exactly these names."""
    if not isinstance(record, dict):
        raise FaultError(f"{what} is {shown(record)}; a JSON object was expected")
    for name in sorted(wanted - record.keys()):
        raise FaultError(f"{what} has no {name!r}")
    for name in sorted(record.keys() - wanted):
        raise FaultError(f"{what} has {shown(name)}, which is unknown here")


def check_whole(value: Any, least: int, what: str, most: int = np.iinfo(np.int64).max) -> int:
    """A whole number that NumPy can count to."""
    if type(value) is not int or not least <= value <= most:
        raise FaultError(f"{what} is {shown(value)}; a whole number from {least} to {most} was expected")
    return value


def check_parameters(
    record: Any,
    estimator: type,
    choices: Mapping[str, tuple[Any, ...]],
    ranges: Mapping[str, Range],
    later: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Parameters by name: all that the constructor has, and no others. ``later`` are those that older files lack, with
    what such files mean."""
    what = f"the list of {estimator.__name__}'s parameters"
    if isinstance(record, dict):
        record = {**(later or {}), **record}
    check_fields(record, set(estimator().get_params(deep=False)), what)
    parameters = {name: from_json(value) for name, value in record.items()}
    for name, allowed in choices.items():
        if not isinstance(parameters[name], str | bool) or parameters[name] not in allowed:
            raise FaultError(f"{name} is {shown(parameters[name])}; it must be one of {', '.join(map(str, allowed))}")
    for name, bounds in ranges.items():
        value, least, most = parameters[name], bounds.least, bounds.most
        is_of_type = isinstance(value, bounds.types) and not isinstance(value, bool)
        is_inside = value is None or (is_of_type and least <= value <= most and (bounds.has_zero or value != 0))
        if not is_of_type or not is_inside:
            wanted = "nothing" if bounds.types == (NoneType,) else f"a number from {least:g} to {most:g}"
            raise FaultError(f"{name} is {shown(value)}; {wanted} was expected")
    return parameters


def check_scalar(name: str, value: Any, scalar: Scalar) -> Any:
    """One fitted number, word or truth value, of the type it had before."""
    if scalar.choices:
        if not isinstance(value, str) or value not in scalar.choices:
            raise FaultError(f"{name} is {shown(value)}; it must be one of {', '.join(map(str, scalar.choices))}")
        return scalar.type(value)
    if scalar.type is int:
        return check_whole(value, int(scalar.least or 0), name)
    if type(value) is not scalar.type:
        raise FaultError(f"{name} is {shown(value)}; a {scalar.type.__name__} was expected")
    if scalar.is_word and not _WORD.fullmatch(str(value)):
        raise FaultError(f"{name} is {shown(value)}; it must be a word of at most 40 lower-case letters")
    least = scalar.least or 0.0
    if isinstance(value, float) and not (least <= value <= scalar.most and math.isfinite(value)):
        limit = "" if scalar.most == math.inf else f", at most {scalar.most:g}"
        raise FaultError(f"{name} is {shown(value)}; it must be at least {least:g}{limit} and finite")
    return value


def check_shape(spec: Array, shape: tuple[int, ...], symbols: dict[str, int]) -> None:
    """The shape that the schema says; a symbol met for the first time takes the size it has here."""
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
    """Types and ranges of an array's entries, dense or sparse."""
    if array.dtype.name not in spec.dtypes:
        raise FaultError(f"{spec.name} is of type {array.dtype.name}; {' or '.join(spec.dtypes)} was expected")
    entries = array.data if sp.issparse(array) else array
    if not spec.has_gaps and not np.isfinite(entries).all():
        raise FaultError(f"{spec.name} holds numbers that are not finite")
    if not entries.size:
        smallest = largest = 0
    else:
        smallest, largest = entries.min(), entries.max()
    if spec.least is not None and smallest < spec.least:
        raise FaultError(f"{spec.name} goes down to {smallest:g}; it must not be below {spec.least:g}")
    if spec.most is not None and largest > spec.most:
        raise FaultError(f"{spec.name} goes up to {largest:g}; it must not be above {spec.most:g}")
    for symbol in spec.below.split():
        if entries.size and largest >= symbols[symbol]:
            raise FaultError(f"{spec.name} goes up to {largest}; it must be below {symbol} = {symbols[symbol]}")
    if spec.sums_to and int(entries.sum(dtype=np.int64)) != symbols[spec.sums_to]:
        total = int(entries.sum(dtype=np.int64))
        raise FaultError(f"{spec.name} sums to {total}; {spec.sums_to} = {symbols[spec.sums_to]} was expected")
    if spec.rises_to:
        check_rises(spec.name, entries, symbols[spec.rises_to])


def check_rises(name: str, starts: Any, end: int) -> None:
    """Positions at which pieces begin: from 0, never falling, to the end."""
    # Neighbours are compared and not subtracted: a difference of int64 may overflow.
    if not starts.size or starts[0] != 0 or starts[-1] != end or (starts[:-1] > starts[1:]).any():
        raise FaultError(f"{name} must rise from 0 to {end}")


def check_certificate(record: Any, learner: str, machines: int, parts: int = 1) -> Certificate:
    """The certificate, as it was; that its words are true is for `certify` to find out. A claim has a value for each
    machine, or for each part of the machine (the splits of a tree), or one for all."""
    try:
        certificate = Certificate.from_dict(record)
        is_whole = certificate.to_dict() == record
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise FaultError("its certificate is not one that Margrove wrote") from error
    if not is_whole or certificate.learner != learner or len(certificate.machines) != machines:
        raise FaultError("its certificate does not fit the model")
    for claim in certificate.claims:
        has_limits = claim.limits is None or len(claim.limits) == len(claim.values)
        if not has_limits or len(claim.values) not in (0, 1, machines, parts):
            raise FaultError(
                f"its certificate does not fit the model: {shown(claim.name)} has {len(claim.values)} values"
            )
    return certificate
