r"""Bytes: a JSON header and named arrays, in one safetensors file with a digest.

::

    8 bytes         length of the safetensors header, little-endian
    header          {"__metadata__": {"margrove": "<our header: JSON in a string>"},
                     "coef_": {"dtype", "shape", "data_offsets"}, …}
    data            the arrays, one after the other, nothing in between and nothing after

Our header's ``sha256`` is the SHA-256 of the whole file with these 64 digits read as zeros: it covers every byte. It
detects damage, not forgery: whoever changes a file on purpose can also compute a new digest. So nothing here or later
trusts it.

The header has a format number. A file of any earlier number is read, by bringing its header and arrays up one number at
a time. To change the format: raise `FORMAT`, put a function into `UPGRADES` under the old number, keep the old golden
file of ``tests/store/golden``, add a new one. A new parameter of an estimator is such a change: the upgrade gives it
its old meaning.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from margrove.store.fault import FaultError, shown

Header: TypeAlias = dict[str, Any]
Tensors: TypeAlias = dict[str, NDArray[np.generic]]

KEY = "margrove"
LENGTH_BYTES = 8
# Parsed JSON takes up to some 30 times its text; long lists are in tensors (`long_lists`), so that headers stay small.
MOST_HEADER_BYTES = 1 << 24
_CHUNK = 1 << 20  # bytes asked of a stream at once, so that a length that lies costs no memory
_BLANK = "0" * 64
# Our header is JSON within a JSON string, so its quotes are escaped. Text inside it is escaped twice and never matches.
_DIGEST = re.compile(rb'\\"sha256\\":\\"([0-9a-f]{64})\\"')
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1"}

FOREIGN = "it is not a Margrove model file"
SAVE_ONE = "Give a file that margrove.save or `margrove train` wrote."


FORMAT = 1

# format number of a file → what makes it a file of the next number
UPGRADES: dict[int, Callable[[Header, Tensors], tuple[Header, Tensors]]] = {}


def pack(header: Header, tensors: Tensors) -> bytearray:
    """Return the whole file. The same header and tensors give the same bytes."""
    import safetensors.numpy  # a program that only reads models needs no more than NumPy

    # One key only: safetensors writes several in no fixed order.
    metadata = {KEY: json.dumps({"sha256": _BLANK, **header}, allow_nan=False, separators=(",", ":"))}
    raw = bytearray(safetensors.numpy.save(tensors, metadata))
    length = int.from_bytes(raw[:LENGTH_BYTES], "little")
    if length > MOST_HEADER_BYTES:
        raise FaultError(
            f"its header would take {length:,} bytes; {MOST_HEADER_BYTES:,} are allowed",
            "Shorten the parameters, the names of the columns or the labels.",
        )
    place = _digest_place(raw[: LENGTH_BYTES + length])
    raw[place] = hashlib.sha256(raw).hexdigest().encode()
    return raw


def unpack(stream: BinaryIO) -> tuple[Header, Tensors]:
    """Return our header and the arrays, writable. Nothing is read or allocated that the header does not account for."""
    raw = bytearray()
    _read(stream, raw, LENGTH_BYTES)
    if not raw:
        raise FaultError("it is empty", SAVE_ONE)
    length = int.from_bytes(raw, "little")
    if len(raw) < LENGTH_BYTES or length > MOST_HEADER_BYTES:
        raise FaultError(FOREIGN, SAVE_ONE)
    _read(stream, raw, LENGTH_BYTES + length)
    if len(raw) < LENGTH_BYTES + length:
        raise FaultError(f"the file ends within its header, after {len(raw):,} bytes: it is cut off, or {FOREIGN[3:]}")
    layout = _json_object(raw[LENGTH_BYTES:], f"{FOREIGN}, or its header is damaged", FOREIGN, SAVE_ONE)
    metadata = layout.get("__metadata__")
    text = metadata.get(KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise FaultError("it is a safetensors file, but not one of Margrove's: no 'margrove' in its metadata", SAVE_ONE)
    damage = "its header is damaged: it is not"
    header = _json_object(text, f"{damage} JSON", f"{damage} a JSON object")
    check_format(header)
    start = LENGTH_BYTES + length
    whole = start + _data_bytes(layout)
    place = _digest_place(raw)
    _read(stream, raw, whole + 1)
    if len(raw) != whole:
        words = "is cut off: it ends" if len(raw) < whole else "goes on"
        raise FaultError(f"the file {words} after {min(len(raw), whole):,} of {whole:,} bytes")
    _check_digest(raw, place)
    del layout["__metadata__"]
    end = 0
    for begin, stop in sorted(entry["data_offsets"] for entry in layout.values()):
        if begin != end:
            raise FaultError("its arrays do not lie end to end")
        end = stop
    return header, {name: _tensor(name, entry, raw, start) for name, entry in layout.items()}


def _read(stream: BinaryIO, raw: bytearray, size: int) -> None:
    """Read until ``raw`` has this size or the stream ends."""
    while len(raw) < size:
        piece = stream.read(min(_CHUNK, size - len(raw)))
        if not piece:
            return
        raw += piece


def _json_object(text: str | bytearray, damaged: str, other: str, cure: str | None = None) -> dict[str, Any]:
    """Return a JSON object; raise ``damaged`` if the text is no JSON, ``other`` if it is another value."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, a number of too many digits
        raise FaultError(damaged, cure) from error
    if not isinstance(found, dict):
        raise FaultError(other, cure)
    return found


def _data_bytes(layout: dict[str, Any]) -> int:
    """Return the end of the last array."""
    ends = [0]
    for name, entry in layout.items():
        if name == "__metadata__":
            continue
        offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
        if not isinstance(offsets, list) or [type(offset) for offset in offsets] != [int, int] or min(offsets) < 0:
            raise FaultError("its header is damaged: an array has no valid position in the file")
        ends.append(offsets[1])
    return max(ends)


def _digest_place(raw: bytearray) -> slice:
    """Return the place of the digits of the digest, given the file up to the end of its header."""
    found = list(_DIGEST.finditer(raw))
    if len(found) != 1:
        raise FaultError("its header is damaged: it has no SHA-256, or several")
    return slice(*found[0].span(1))


def _check_digest(raw: bytearray, place: slice) -> None:
    stated = raw[place].decode()
    raw[place] = _BLANK.encode()
    found = hashlib.sha256(raw).hexdigest()
    raw[place] = stated.encode()
    if found != stated:
        raise FaultError(
            f"it is damaged or was tampered with: its SHA-256 is {found[:12]}…, but its header states {stated[:12]}…"
        )


def _tensor(name: str, entry: dict[str, Any], raw: bytearray, start: int) -> NDArray[np.generic]:
    kind, shape, (begin, end) = entry.get("dtype"), entry.get("shape"), entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise FaultError(f"array {name!r} is of type {str(kind)[:20]}, which no model uses")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise FaultError(f"array {name!r} has an impossible shape")
    if math.prod(shape) * np.dtype(_DTYPES[kind]).itemsize != end - begin:
        raise FaultError(f"array {name!r} has the shape {shown(shape)}, which is not that of its {end - begin:,} bytes")
    try:  # a copy: writable, aligned
        flat = np.frombuffer(raw, _DTYPES[kind], math.prod(shape), start + begin).copy()
        return flat.reshape(shape)
    except (ValueError, OverflowError) as error:  # (0, 2**63): no entries, but more rows than NumPy can count
        raise FaultError(f"array {name!r} has an impossible shape") from error


def check_format(header: Header) -> None:
    """Refuse a file from the future, and one without a format number."""
    number = header.get("format")
    if type(number) is not int or number < 1:
        raise FaultError(f"its format number is {shown(number)}; a whole number ≥ 1 was expected")
    if number > FORMAT:
        writer = shown(header.get("margrove"))
        raise FaultError(
            f"written by a newer Margrove ({writer}), in format {number}; this one reads formats up to {FORMAT}",
            "Upgrade: pip install --upgrade margrove.",
        )


def bring_up_to_date(header: Header, tensors: Tensors) -> tuple[Header, Tensors]:
    """The same model in today's format."""
    while header["format"] < FORMAT:
        number = header["format"]
        header, tensors = UPGRADES[number](header, tensors)
        header = {**header, "format": number + 1}
    return header, tensors
