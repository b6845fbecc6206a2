"""Messages that name parameters as data: `str` renders them as Python, the command line as its own options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """A parameter by its name: ``time_limit``."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Setting:
    """A parameter and a value to give it: ``encoding='latin-1'``. The value ``...`` stands for any."""

    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.name}={'…' if self.value is ... else repr(self.value)}"


@dataclass(frozen=True)
class Value:
    """A value of a parameter: ``None``."""

    value: Any

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Row:
    """A row, counted from 0 as arrays in Python are; the command line counts from 1."""

    index: int

    def __str__(self) -> str:
        return str(self.index)


class InPython:
    """Words for people who write Python, and what the command line says in their place, perhaps nothing."""

    def __init__(self, words: str, *elsewhere: Part) -> None:
        self.words, self.elsewhere = words, elsewhere

    def __str__(self) -> str:
        return self.words


Part = str | Parameter | Setting | Value | Row | InPython


class Advice(str):
    """A text with the parameters in it kept as data, in ``parts``. Of an `Advice` among them its parts are taken.

    Examples
    --------
    >>> from margrove.advice import Advice, Setting
    >>> advice = Advice("Name its encoding, such as ", Setting("encoding", "latin-1"), ".")
    >>> print(advice)
    Name its encoding, such as encoding='latin-1'.
    >>> advice.parts[1].value
    'latin-1'
    """

    parts: tuple[Part, ...]

    def __new__(cls, *parts: Part) -> Advice:
        flat = tuple(each for part in parts for each in (part.parts if isinstance(part, Advice) else (part,)))
        advice = super().__new__(cls, "".join(map(str, flat)))
        advice.parts = flat
        return advice
