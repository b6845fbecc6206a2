"""Advice in the words of the command line: its parameters as options."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from warnings import WarningMessage, catch_warnings, simplefilter

from margrove.advice import Advice, InPython, Parameter, Part, Row, Setting, Value

if TYPE_CHECKING:
    from margrove.app.screen.console import Screen

# Parameters that are options by themselves; those of learners are values of --param.
OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *("category", "date", "number", "header_row", "missing", "skip", "target", "text"),
        *("delimiter", "drop_unlabelled", "encoding"),
        *("cache", "device", "download", "layer", "network", "size"),
        *("model", "time_limit", "to"),
    )
}
_QUOTED = ("missing", "text")  # values that are words of a table


def in_shell(text: str) -> str:
    """Return a text, with the advice in it as somebody who types commands needs it."""
    return "".join(map(_typed, text.parts)) if isinstance(text, Advice) else text


def _typed(part: Part) -> str:
    match part:
        case Parameter(name):
            return OPTIONS.get(name, name)
        case Setting("header", False):
            return "--no-header"
        case Setting(name, value) if name in OPTIONS:
            if value in (True, ..., "..."):
                return OPTIONS[name]
            quoted = shlex.quote(value)
            return f"{OPTIONS[name]} " + (f"'{value}'" if name in _QUOTED and quoted == value else quoted)
        case Setting(name, value):
            return f"--param {name}={'…' if value is ... else value if isinstance(value, str) else json.dumps(value)}"
        case Value(value):
            return json.dumps(value)
        case Row(index):
            return str(index + 1)
        case InPython():
            return "".join(map(_typed, part.elsewhere))
    return part


def error_in_shell(error: Exception) -> str:
    """Return a failure in one line, its advice as options."""
    return " ".join(in_shell(_message_of(error)).splitlines())


def warnings_in_shell(caught: Iterable[WarningMessage]) -> list[str]:
    """Return each warning once, its advice as options."""
    return list(dict.fromkeys(in_shell(_message_of(warning.message)) for warning in caught))


@contextmanager
def warnings_told(screen: Screen) -> Iterator[list[str]]:
    """Print the warnings of the block after it, each once. Yield the list that they are added to."""
    messages: list[str] = []
    with catch_warnings(record=True) as caught:
        simplefilter("always")
        yield messages
    messages += warnings_in_shell(caught)
    for message in messages:
        screen.warn(message)


def _message_of(error: Exception | str) -> str:
    args = getattr(error, "args", ())
    return args[0] if args and isinstance(args[0], Advice) else str(error)
