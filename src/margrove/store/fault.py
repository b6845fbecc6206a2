"""What is wrong with a model or a file, said where it is found; `model_file` adds the name of the file and the cure."""

from __future__ import annotations


class FaultError(Exception):
    """Never leaves this package: `save`, `load` and `describe` turn it into a `ModelFileError`."""

    def __init__(self, problem: str, cure: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.cure = problem, cure


def shown(value: object, width: int = 60) -> str:
    """A value from a file, short enough for one line of a message, however long or odd it is."""
    text = " ".join(repr(value).split())
    return text if len(text) <= width else f"{text[: width - 1]}…"
