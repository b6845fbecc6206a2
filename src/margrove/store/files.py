"""Paths and streams."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import BinaryIO, TypeAlias

from margrove.advice import Advice
from margrove.errors import ModelFileError
from margrove.store.fault import FaultError

Target: TypeAlias = str | os.PathLike[str] | BinaryIO


@contextmanager
def naming(target: Target, cure: str) -> Iterator[None]:
    """Raise every `FaultError` within as a `ModelFileError` of one line: the file, the problem, the cure."""
    name = os.fspath(target) if isinstance(target, str | os.PathLike) else getattr(target, "name", "the stream")
    try:
        yield
    except FaultError as fault:
        text = Advice(f"{name}: {fault.problem}. ", fault.cure or cure)
        raise ModelFileError(text) from (fault.__cause__ or None)
    except RecursionError as error:
        raise ModelFileError(f"{name}: its parts are nested too deeply. {cure}") from error


def open_for_reading(target: Target) -> AbstractContextManager[BinaryIO]:
    """The stream of bytes; a path's is closed afterwards, a caller's own stream is left open."""
    if not isinstance(target, str | os.PathLike):
        _check_is_binary(target, "read")
        return nullcontext(target)
    try:
        return open(target, "rb")
    except IsADirectoryError as error:
        raise FaultError("it is a directory", "Name a model file in it.") from error
    except FileNotFoundError as error:
        raise FaultError("there is no such file", "Check the path, or save a model there first.") from error
    except OSError as error:
        raise FaultError(f"it cannot be read: {error.strerror}", "Check its permissions.") from error


def write(target: Target, content: bytes | bytearray) -> None:
    """Write all or nothing to a path; to a stream or a device, as they come."""
    if not isinstance(target, str | os.PathLike):
        _check_is_binary(target, "write")
        target.write(content)
        return
    try:
        mode = os.stat(target).st_mode if os.path.exists(target) else None
        if mode is not None and stat.S_ISDIR(mode):
            raise FaultError("it is a directory", "Add the name of a file, such as model.margrove.")
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "wb") as stream:
                stream.write(content)  # a pipe or a device: to be written into, not to be replaced by a file
            return
        from pathlib import Path

        from margrove.run.atomic import replace_file

        # A link keeps pointing where it did: the file behind it is replaced.
        replace_file(Path(os.path.realpath(target)), content, mode)
    except OSError as error:
        cure = "Choose a writable directory with enough space."
        raise FaultError(f"it cannot be written: {error.strerror}", cure) from error


def _check_is_binary(target: object, method: str) -> None:
    if not hasattr(target, method) or hasattr(target, "encoding"):
        raise FaultError(
            f"a {type(target).__name__} is neither a path nor a binary file with a method {method!r}",
            f"Give a path, or open the file with mode '{method[0]}b'.",
        )
