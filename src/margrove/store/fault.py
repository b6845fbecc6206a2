"""The error for a model or a file that is wrong, raised where that is found; `files.naming` adds the file's name."""

from __future__ import annotations


class FaultError(Exception):
    """Never leaves this package: `save`, `load` and `describe` turn it into a `ModelFileError`."""

    def __init__(self, problem: str, cure: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.cure = problem, cure


def shown(value: object, width: int = 60) -> str:
    """Return a value from a file, short enough for one line of a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
