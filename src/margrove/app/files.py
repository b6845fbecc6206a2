"""Read a model from its file or from a pipe, and write one; check beforehand that the place can be written to."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from margrove.app.options.table import STANDARD_STREAM
from margrove.app.screen.console import put
from margrove.errors import InputError, ModelFileError
from margrove.store import describe, load, save
from margrove.store.fault import FaultError
from margrove.store.files import write


def check_destination(path: str) -> bool:
    """Refuse, before any work is done, a place that a model cannot be written to. True: it replaces a model."""
    if path == STANDARD_STREAM:
        if sys.stdout.isatty():
            raise InputError("a model is no text for a terminal", file="-o -", cure="Send it on: -o - | …, or -o FILE.")
        return False
    check_folder(path, "model.margrove")
    if not Path(path).is_file():
        return False  # not there yet; or a pipe or a device, to be written into
    try:
        describe(path)
    except ModelFileError as error:
        problem = "there is such a file already and it is not a Margrove model, so it is not overwritten"
        raise InputError(problem, file=path, cure="Choose another name: -o.") from error
    return True


def check_folder(path: str, example: str, option: str = "-o") -> None:
    """Refuse a path whose folder cannot take a file; `example` is the name of one that would do, and `option` what
    names another."""
    file = Path(path)
    folder = file.parent
    if file.is_dir():
        raise InputError("is a folder", file=path, cure=f"Add the name of a file, such as {example}.")
    if file.exists() and not file.is_file():
        return  # a pipe or a device: its folder stays as it is
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {str(folder)!r}", file=path, cure=f"Make it first, or choose another: {option}."
        )
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"the folder {str(folder)!r} may not be written to", file=path, cure=f"Choose another: {option}."
        )


def check_output(output: str, example: str, *inputs: str | None) -> None:
    """Refuse, before any work, a place that cannot be written to (see `check_folder`), or that is being read."""
    if output == STANDARD_STREAM:
        return
    check_folder(output, example)
    for path in filter(None, inputs):
        is_read = path != STANDARD_STREAM and os.path.exists(path) and os.path.exists(output)
        if is_read and os.path.samefile(path, output):
            raise InputError("is what is being read, so it is not overwritten", file=output, cure="Choose another: -o.")


def write_content(content: bytes, path: str | Path) -> None:
    """Write a file, all of it or nothing; one that is there keeps its permissions."""
    try:
        write(path, content)
    except FaultError as error:
        raise InputError(error.problem, file=str(path), cure="Choose another place: -o.") from error


def write_model(model: Any, path: str) -> None:
    """Save the model, or send it down the pipe."""
    if path != STANDARD_STREAM:
        save(model, path)
        return
    # In memory first: a pipe gets all of it or nothing.
    content = io.BytesIO()
    save(model, content)
    put(content.getvalue())


def read_model(path: str) -> Any:
    """Load the model from a file, or from the pipe."""
    if path == STANDARD_STREAM:
        return load(io.BytesIO(sys.stdin.buffer.read()))
    return load(path)
