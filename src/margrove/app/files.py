"""Read and write models; check beforehand that a model, its report or another file can be written."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

from margrove.app.options.table import STANDARD_STREAM
from margrove.app.screen.console import put
from margrove.data.source import split_part
from margrove.errors import InputError, ModelFileError, ParameterError
from margrove.store import describe, load, save
from margrove.store.fault import FaultError
from margrove.store.files import write

_REPORT_MARK = b'name="generator" content="Margrove"'  # marks a report of ours
_REPORT_HEAD = 4096  # bytes that contain it


def check_destination(path: str) -> bool:
    """Refuse, before any work is done, a place that a model cannot be written to. True: it replaces a model."""
    if path == STANDARD_STREAM:
        if sys.stdout.isatty():
            raise InputError("a model file is binary", file="-o -", cure="Pipe it, -o - | …, or name a file: -o FILE.")
        return False
    check_folder(path, "model.margrove")
    if not Path(path).is_file():
        return False  # not there yet; or a pipe or a device, to be written into
    try:
        describe(path)
    except ModelFileError as error:
        problem = "this file exists and is not a Margrove model, so it is not overwritten"
        raise InputError(problem, file=path, cure="Choose another name: -o.") from error
    return True


def check_folder(path: str, example: str, option: str = "-o") -> None:
    """Refuse a path whose folder cannot take a file; the message names an ``example``, and the ``option`` to use."""
    if not path:
        raise ParameterError(f"{option} is ''; it must name a file, such as {example}.")
    file = Path(path)
    folder = file.parent
    if file.is_dir():
        raise InputError("is a folder", file=path, cure=f"Add a file name, such as {example}.")
    if file.exists() and not file.is_file():
        return  # a pipe or a device: its folder stays as it is
    if not folder.is_dir():
        raise InputError(
            f"there is no folder {str(folder)!r}", file=path, cure=f"Create it, or choose another: {option}."
        )
    if not os.access(folder, os.W_OK):
        raise InputError(f"the folder {str(folder)!r} is not writable", file=path, cure=f"Choose another: {option}.")


def report_path(model: str, ending: str = "html") -> str | None:
    """Return the usual place of a model's report, beside it; None if the model is in no file."""
    is_file = model != STANDARD_STREAM and (not Path(model).exists() or Path(model).is_file())
    return str(Path(model).with_suffix(f".report.{ending}")) if is_file else None


def check_report(
    path: str, *, option: str = "-o", cure: str = "Choose another name for the model: -o; or use --no-report."
) -> None:
    """Refuse, before any work, to write over a page that is no report of ours. ``option`` names another place."""
    check_folder(path, "model.report.html", option)
    if not Path(path).is_file():
        return
    with Path(path).open("rb") as stream:
        is_ours = _REPORT_MARK in stream.read(_REPORT_HEAD)
    if not is_ours:
        problem = "this file exists and is not a Margrove report, so it is not overwritten"
        raise InputError(problem, file=path, cure=cure)


def check_output(output: str, example: str, *inputs: str | None) -> None:
    """Refuse, before any work, a place that cannot be written to (see `check_folder`), or that is being read."""
    if output == STANDARD_STREAM:
        return
    check_folder(output, example)
    for path in (split_part(name)[0] for name in inputs if name):
        is_read = path != STANDARD_STREAM and os.path.exists(path) and os.path.exists(output)
        if is_read and os.path.samefile(path, output):
            raise InputError("is also an input, so it is not overwritten", file=output, cure="Choose another: -o.")


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
    if path == STANDARD_STREAM:
        return load(io.BytesIO(sys.stdin.buffer.read()))
    return load(path)
