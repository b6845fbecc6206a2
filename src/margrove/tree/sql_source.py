"""A tree as a CASE expression of SQL.

SQL's logic has three values. NULL <= θ is neither true nor false but NULL, and a WHEN takes its branch only if its
condition is true: a condition need not test that a cell is present, and a NULL falls through to the ELSE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

from margrove.errors import InputError
from margrove.tree.model import TreeModel
from margrove.tree.words import Allowed, Step, branches_in_code, places, plain, stretch, written

Dialect = Literal["standard", "mysql", "sqlserver"]

_ALWAYS, _NEVER = "1 = 1", "1 = 0"  # not every dialect has TRUE and FALSE


@dataclass(frozen=True)
class Writer:
    """Writes names and values in a dialect of SQL."""

    opening: str = '"'
    closing: str = '"'
    escapes_backslash: bool = False
    text_mark: str = ""  # in front of text that is more than ASCII
    has_booleans: bool = True

    def identifier(self, name: str) -> str:
        """Return a name, quoted."""
        _refuse_nul(name)
        return f"{self.opening}{name.replace(self.closing, 2 * self.closing)}{self.closing}"

    def literal(self, value: object) -> str:
        """Return a label, level or number as the dialect writes it."""
        value = plain(value)
        if isinstance(value, bool):
            return str(value).upper() if self.has_booleans else str(int(value))
        if isinstance(value, str):
            _refuse_nul(value)
            text = value.replace("\\", "\\\\") if self.escapes_backslash else value
            return f"{self.text_mark}'{text.replace(chr(39), 2 * chr(39))}'"
        return number(value) if isinstance(value, float) else str(value)


DIALECTS: dict[Dialect, Writer] = {
    "standard": Writer(),
    "mysql": Writer("`", "`", escapes_backslash=True),
    "sqlserver": Writer("[", "]", text_mark="N", has_booleans=False),
}


def number(value: float) -> str:
    """Return the fewest digits that give the same float64, with an exponent: no decimal. (SQLite may read them one unit
    in the last place away.)"""
    text = repr(float(value))
    return text.replace("e", "E") if "e" in text else f"{text}E0"


def nested_case(model: TreeModel, outcomes: list[str], writer: Writer) -> str:
    """Return a CASE for each test, inside that of the test above."""

    def write(node: int, depth: int, before: str) -> Iterator[Step]:
        start = f"{'  ' * depth}{before}"
        if model.feature[node] < 0:
            yield f"{start}{outcomes[node]}"
            return
        yield f"{start}CASE"
        tested, last = branches_in_code(model, node)
        for child, allowed in tested:
            yield child, depth + 1, f"WHEN {condition(allowed, writer)} THEN "
        yield last, depth + 1, "ELSE "
        yield f"{'  ' * depth}END"

    return "\n".join(written(write, 0, 0, ""))


def flat_case(model: TreeModel, outcomes: list[str], writer: Writer) -> str:
    """Return one CASE with a WHEN for each leaf: the conditions of the path to it, column by column."""
    lines = ["CASE"]
    for place in places(model):
        if model.feature[place.node] < 0:
            tested = [condition(each, writer) for each in place.path.values()]
            lines.append(f"  WHEN {' AND '.join(tested)} THEN {outcomes[place.node]}")
    return "\n".join([*lines, "END"])


def condition(allowed: Allowed, writer: Writer) -> str:
    """Return a condition that is true for the cells of the set, and for no others."""
    v = writer.identifier(allowed.column.name)
    if allowed.is_everything:
        return _ALWAYS
    pieces = _present(allowed, v, writer)
    if pieces is None:
        return f"{v} IS NOT NULL"
    pieces += [f"{v} IS NULL"] if allowed.missing else []
    if not pieces:
        return _NEVER
    return pieces[0] if len(pieces) == 1 else f"({' OR '.join(pieces)})"


def _present(allowed: Allowed, v: str, writer: Writer) -> list[str] | None:
    """Return conditions for present cells, to be joined by OR; None if every present cell belongs to the set."""
    if allowed.column.test == "threshold":
        if not allowed.has_numbers:
            return []
        bounds = [f"{v} > {number(allowed.low)}"] if allowed.low > -inf else []
        bounds += [f"{v} <= {number(allowed.high)}"] if allowed.high < inf else []
        return [" AND ".join(bounds)] if bounds else None
    if allowed.column.test == "intervals":
        if allowed.has_all_codes:
            return None
        return [stretch(v, low, high, "AND", number) for low, high in allowed.runs()]
    levels = allowed.column.levels
    if allowed.unseen:
        left_out = [writer.literal(levels[code]) for code in sorted(allowed.excluded)]
        return [_among(v, "<>", "NOT IN", left_out)] if left_out else None
    listed = [writer.literal(levels[code]) for code in sorted(allowed.codes)]
    return [_among(v, "=", "IN", listed)] if listed else []


def _among(v: str, one: str, several: str, literals: list[str]) -> str:
    return f"{v} {one} {literals[0]}" if len(literals) == 1 else f"{v} {several} ({', '.join(literals)})"


def _refuse_nul(text: str) -> None:
    if "\0" in text:
        raise InputError(f"{text!r} holds a NUL character, which SQL cannot write", cure="Rename it.")
