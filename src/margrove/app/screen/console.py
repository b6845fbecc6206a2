"""The screen: results go to standard output, asides to standard error, readable on any terminal."""

from __future__ import annotations

import codecs
import json
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from margrove.app.screen.interrupts import begin_work
from margrove.visible import visible

# What a terminal that is not Unicode sees, besides the names of Greek letters; anything else it lacks becomes "?".
_PLAIN = {
    "±": "+/-",
    "✓": "+",
    "✗": "x",
    "·": "-",
    "…": "...",
    "‖": "||",
    "≤": "<=",
    "≥": ">=",
    "×": "x",
    "−": "-",
    "²": "^2",
    "½": "1/2 ",
    "Σ": "sum",
    "ᵀ": "'",
    "→": "->",
    "★": "*",
    "•": "*",
}
_PLAIN_ERRORS = "margrove-plain"


class Screen:
    """The output of one command.

    With ``is_json`` only one JSON document is printed, by `document`; with ``is_quiet`` only what `essential` prints.
    ``is_output_taken``: standard output carries data (a model, a CSV), so text goes to standard error.
    ``outlives_reader``: the command also writes a file: after a broken pipe it goes on, and `finish` raises."""

    def __init__(
        self,
        *,
        is_json: bool = False,
        is_quiet: bool = False,
        is_output_taken: bool = False,
        outlives_reader: bool = False,
    ) -> None:
        make_streams_safe()
        begin_work()
        self.is_json, self.is_quiet = is_json, is_quiet
        self._words = safe_console(stderr=is_output_taken, quiet=is_json, outlives_reader=outlives_reader)

    @property
    def shows_progress(self) -> bool:
        """A bar may be drawn: only for a person who is looking."""
        return sys.stderr.isatty() and not self.is_json and not self.is_quiet

    def essential(self, what: RenderableType, *, style: str = "") -> None:
        """Print what even ``--quiet`` shows."""
        # Sentences are wrapped for a person's window, and left whole for a program that reads lines.
        is_line = isinstance(what, str | Text)
        what = visible(what) if isinstance(what, str) else what
        self._words.print(what, style=style, soft_wrap=is_line and not self._words.is_terminal)

    def say(self, what: RenderableType = "", *, style: str = "", indent: int = 0) -> None:
        """Print a detail."""
        if self.is_quiet:
            return
        if indent and isinstance(what, str | Text) and not self._words.is_terminal:
            what = Text.assemble(" " * indent, what)
        elif indent:
            what = Padding(what, (0, 0, 0, indent), expand=False)
        self.essential(what, style=style)

    def heading(self, text: str) -> None:
        """Print the title of a part, after an empty line."""
        self.say()
        self.say(text, style="bold")

    def warn(self, text: str, *, is_essential: bool = False) -> None:
        """Print a warning on standard error; ``is_essential``: also under ``--quiet``."""
        if (is_essential or not self.is_quiet) and not self.is_json:
            aside(f"warning: {text}", style="yellow")

    def document(self, record: dict[str, Any]) -> None:
        """Print the JSON document, where one was asked for."""
        if self.is_json:
            is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
            text = json.dumps(record, ensure_ascii=not is_unicode, allow_nan=False, indent=2)
            # Flushed, so that a broken pipe is met here and not while Python shuts down.
            print(visible(text, keep="\n", is_json=True), flush=True)

    def finish(self) -> None:
        """End the work. Raise the `BrokenPipeError` that it did not stop for, if there was one."""
        if self._words.broken_pipe is not None:
            raise self._words.broken_pipe


def aside(text: str, *, style: str = "") -> None:
    """Print one line on standard error; wrapped only for a person's window."""
    make_streams_safe()
    console = safe_console(stderr=True)
    console.print(Text(visible(text), style=style), soft_wrap=not console.is_terminal)


def put(content: bytes) -> None:
    """Write data to standard output. On a terminal, show control characters as escapes."""
    if sys.stdout.isatty():
        content = visible(content.decode(errors="replace"), keep="\n\t").encode()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def make_streams_safe() -> None:
    """Let both streams spell what their encoding lacks instead of failing on it."""
    codecs.register_error(_PLAIN_ERRORS, _spelled)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_PLAIN_ERRORS)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    names = [unicodedata.name(letter, "").partition("GREEK SMALL LETTER ")[2].lower() for letter in letters]
    plain = "".join(_PLAIN.get(letter) or name or "?" for letter, name in zip(letters, names, strict=True))
    return plain, error.end


def bare_grid(*columns: str, right: Sequence[str] = ()) -> Grid:
    """Return a table without a frame; the columns in ``right`` hold numbers."""
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in columns:
        grid.add_column(name, justify="right" if name in right else "left", no_wrap=name in right)
    return grid


def let_go_of(stream: IO[str]) -> None:
    """Point a stream at nothing, so that what is still to be flushed does not meet the broken pipe again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, stream.fileno())
    finally:
        os.close(nothing)


class _Console(Console):
    outlives_reader = False
    broken_pipe: BrokenPipeError | None = None  # of standard output, where it was outlived

    def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
        """Yield segments with control characters shown as escapes."""
        for text, style, control in super().render(*args, **kwargs):
            yield Segment(text if control else visible(text, keep="\n"), style, control)

    def on_broken_pipe(self) -> None:
        """Fall silent, or let `failures_reported` decide; rich would leave with 1, which means something else here."""
        error = sys.exception()  # rich calls this while it handles the BrokenPipeError
        assert isinstance(error, BrokenPipeError)
        if not self.outlives_reader and not self.stderr:
            raise error
        let_go_of(self.file)
        self.quiet = True
        self.broken_pipe = None if self.stderr else error  # nobody waits for standard error


def safe_console(*, stderr: bool, quiet: bool = False, outlives_reader: bool = False) -> _Console:
    """Return the console for a stream; everything that is printed goes through one of these."""
    # No markup and no highlighting: a class may be called "[red]", and numbers are not decoration.
    console = _Console(stderr=stderr, quiet=quiet, markup=False, highlight=False, emoji=False)
    console.outlives_reader = outlives_reader
    return console
