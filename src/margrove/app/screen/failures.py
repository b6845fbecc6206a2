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

from margrove.app.screen.advice import error_in_shell
from margrove.app.screen.console import aside, let_go_of
from margrove.app.screen.interrupts import LINE, end_work
from margrove.visible import visible


class ExitCode(IntEnum):
    """The exit codes of the command line."""

    DONE = 0
    DOES_NOT_HOLD = 1  # `certify`: the model and the data do not bear the certificate out
    BAD_INPUT = 2  # the same number that a wrong option gives
    INTERRUPTED = 130  # 128 + SIGINT
    BROKEN_PIPE = 141  # 128 + SIGPIPE: whoever read our output has gone


class GuardedGroup(TyperGroup):
    """The commands, each run under `failures_reported`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line. Help is printed before `invoke`, and its printers call a broken pipe 1."""
        try:
            return super().main(*args, **kwargs)
        except SystemExit as error:
            if isinstance(error.__context__, BrokenPipeError):
                raise SystemExit(ExitCode.BROKEN_PIPE) from error
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        return _flags_without_type(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _flags_without_type(command.get_params(ctx))
        return command

    def invoke(self, ctx: Any) -> Any:
        with failures_reported():
            return super().invoke(ctx)


def _flags_without_type(params: list[Any]) -> list[Any]:
    """Return the options; those that take no value name no type of one in their help."""
    for param in params:
        if getattr(param, "is_flag", False) and param.metavar is None:
            param.metavar = ""
    return params


@contextmanager
def failures_reported() -> Iterator[None]:
    """Print a failure inside the block in one line, and leave with its exit code."""
    try:
        yield
    except BrokenPipeError as error:
        let_go_of(sys.stdout)
        raise typer.Exit(ExitCode.BROKEN_PIPE) from error
    except BaseException as error:
        if is_interrupt(error):
            end_work()
            aside(f"margrove: interrupted; {error}" if error.args and type(error) is KeyboardInterrupt else LINE)
            raise typer.Exit(ExitCode.INTERRUPTED) from error
        line = _in_one_line(error) if isinstance(error, Exception) else None
        if line is None:
            if isinstance(getattr(error, "message", None), str):  # a wrong option, printed by typer
                error.message = visible(error.message)  # type: ignore[attr-defined]
            raise  # a defect of ours: its traceback is what a bug report needs
        if os.environ.get("MARGROVE_DEBUG"):
            traceback.print_exc()
        aside(f"margrove: error: {line}", style="red")
        raise typer.Exit(ExitCode.BAD_INPUT) from error


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether the error is Ctrl-C. Compiled modules turn it into an ImportError during import."""
    while isinstance(error, ImportError):
        error = error.__cause__ or error.__context__
    return isinstance(error, KeyboardInterrupt)


def _in_one_line(error: Exception) -> str | None:
    """Return the failure in one line; None if it is not one that a user can mend."""
    if isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
    elif isinstance(error, MemoryError):
        text = f"out of memory. {error}".rstrip(". ") + ". Use fewer rows or columns, or a simpler --model."
    else:
        # Importing the class takes a second; it is loaded if ever one of them was raised.
        errors = sys.modules.get("margrove.errors")
        if errors is None or not isinstance(error, errors.MargroveError):
            return None
        text = error_in_shell(error)
    return " ".join(text.splitlines())
