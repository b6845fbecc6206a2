"""A failure becomes one line on standard error and an exit code; never a traceback, unless MARGROVE_DEBUG is set."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from margrove.surface.screen import aside


class ExitCode(IntEnum):
    """What the shell is told."""

    DONE = 0
    DOES_NOT_HOLD = 1  # `certify`: the model and the data do not bear the certificate out
    BAD_INPUT = 2  # the same number that a wrong option gives
    INTERRUPTED = 130  # 128 + SIGINT
    BROKEN_PIPE = 141  # 128 + SIGPIPE: whoever read our output has gone


class GuardedGroup(TyperGroup):
    """The commands, each run under `failures_told`."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was typed."""
        with failures_told():
            return super().invoke(ctx)


@contextmanager
def failures_told() -> Iterator[None]:
    """Tell what goes wrong inside the block in one line, and leave with its exit code."""
    try:
        yield
    except BrokenPipeError as error:
        _let_go_of_stdout()
        raise typer.Exit(ExitCode.BROKEN_PIPE) from error
    except KeyboardInterrupt as error:
        aside("margrove: interrupted; nothing was written")
        raise typer.Exit(ExitCode.INTERRUPTED) from error
    except Exception as error:
        line = _told(error)
        if line is None:
            raise  # a defect of ours: its traceback is what a bug report needs
        if os.environ.get("MARGROVE_DEBUG"):
            traceback.print_exc()
        aside(f"margrove: error: {line}", style="red")
        raise typer.Exit(ExitCode.BAD_INPUT) from error


def _told(error: Exception) -> str | None:
    """The failure in one line; None if it is not one that a user can mend."""
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    elif isinstance(error, MemoryError):
        text = f"out of memory. {error}".rstrip(". ") + ". Use fewer rows or columns, or a simpler --model."
    elif _is_ours(error):
        text = str(error)
    else:
        return None
    return " ".join(text.splitlines())


def _is_ours(error: Exception) -> bool:
    """Whether it is a `MargroveError`, without importing that class: scikit-learn comes with it and takes a second."""
    errors = sys.modules.get("margrove.errors")  # loaded, if ever one of them was raised
    return errors is not None and isinstance(error, errors.MargroveError)


def _let_go_of_stdout() -> None:
    """Point standard output at nothing, so that Python's last flush does not meet the broken pipe again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, sys.stdout.fileno())
    finally:
        os.close(nothing)
