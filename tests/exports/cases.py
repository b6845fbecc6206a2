"""Read a case of the corpus and compare it with its expectation."""

from __future__ import annotations

import json
import math
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from margrove.data import Column, Table, read_table
from margrove.data.formats import DateFormat, NumberFormat
from margrove.errors import InputError

FOLDER = Path(__file__).parent
PARTS = (
    *("open", "sealed", "fresh", "blind", "second_blind", "third_blind", "products", "more_products", "last_products"),
    *("fourth_blind", "fifth_blind", "sixth_blind", "seventh_blind", "eighth_blind", "ninth_blind", "tenth_blind"),
    *("eleventh_blind", "twelfth_blind", "thirteenth_blind"),
)
_YES = "yes y ja j tak sí sì si sim oui o ano áno evet igen kyllä да так はい 是 예 네 ya ναι כן t ✓ x da jah jā taip"
_NO = "no n nee nie nein nei não non ne hayır nem ei нет ні いいえ 否 아니요 아니오 tidak όχι לא f nej nu ✗"
_WORDS = dict.fromkeys(_YES.split(), True) | dict.fromkeys(_NO.split(), False)


def cases(part: str) -> list[Path]:
    """Return the files of a part of the corpus, ``open`` or ``sealed``."""
    return sorted(path for path in (FOLDER / part).iterdir() if path.suffix != ".json")


def expectation(path: Path) -> dict[str, Any]:
    """Return what is expected of a file."""
    found: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return found


def read(path: Path, expected: dict[str, Any]) -> tuple[Table, list[str]]:
    """Return the table of a file, and all that the reader said about it."""
    options = dict(expected.get("read", {}))
    part = options.pop("sheet", None) or options.pop("table", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = read_table(f"{path}::{part}" if part else path, target=False, **options)
    return table, [*table.notes, *(str(warning.message) for warning in caught)]


def differences(path: Path) -> list[str]:
    """Return in which ways a file is not read as expected; empty where it is. A refusal is one that begins with
    "refused"."""
    expected = expectation(path)
    columns = expected.get("columns", [])
    try:
        table, notes = read(path, expected)
    except InputError as error:
        if expected.get("refuse"):
            return []
        unclear = [column["name"] for column in columns if column["kind"] == "unclear"]
        return [] if error.column in unclear and unclear else [f"refused: {error}"]
    if expected.get("refuse"):
        return ["not refused"]
    found = table_differences(table, expected)
    if found and found[0].startswith("names"):
        return found
    for words in expected.get("says", []):
        if not any(all(str(word).casefold() in note.casefold() for word in words) for note in notes):
            found.append(f"no note has the words {words}: {notes}")
    return found


def table_differences(table: Table, expected: dict[str, Any], *, has_units: bool = True) -> list[str]:
    """Return in which ways a table is not the expected one; ``has_units``: the units of numbers count, too."""
    columns = expected["columns"]
    names = [column["name"] for column in columns]
    if list(table.names) != names:  # a column of row numbers counts for nothing
        table = table.select([column.name for column in table if column.name in names or not _numbers_rows(column)])
        columns = [column for column in columns if column["name"] in table.names or not _is_count(column["values"])]
        names = [column["name"] for column in columns]
    if list(table.names) != names:
        return [f"names {list(table.names)}, expected {names}"]
    found: list[str] = []
    for column, wanted in zip(table, columns, strict=True):
        found += [f"{column.name}: {difference}" for difference in _compared(column, wanted, has_units)]
    return found


def _numbers_rows(column: Column) -> bool:
    return column.kind == "numeric" and _is_count(column.values.tolist())


def _is_count(values: list[Any]) -> bool:
    return values in (list(range(len(values))), list(range(1, len(values) + 1)))


def _compared(column: Column, wanted: dict[str, Any], has_units: bool) -> list[str]:
    kind, values = wanted["kind"], wanted["values"]
    if len(column) != len(values):
        return [f"{len(column)} rows, expected {len(values)}"]
    if kind == "empty":
        return [] if column.n_missing == len(column) else ["not empty"]
    if kind in ("category", "unclear"):
        return _cells(column, [None if value is None else str(value) for value in values], "category")
    if kind == "boolean":
        if column.kind == "category":  # yes and no are words
            given = [None if cell is None else _WORDS.get(str(cell).casefold()) for cell in column.cells()]
            return [] if given == values else [f"cells {column.cells()[:4]}, expected {values[:4]}"]
        return _cells(column, values, "boolean")
    if column.kind != "numeric" or isinstance(column.format, DateFormat) != (kind == "date"):
        return [f"kind {column.kind} with {column.format}, expected {kind}; cells {column.cells()[:4]}"]
    numbers = [math.nan if value is None else _days(value) if kind == "date" else float(value) for value in values]
    wrong = ~np.isclose(
        column.values,
        numbers,
        rtol=1e-12,
        atol=1e-6 if kind == "date" else 1e-9 if wanted.get("unit") == "h" else 1e-12,
        equal_nan=True,
    )
    found = []
    if wrong.any():
        row = int(np.argmax(wrong))
        found.append(f"row {row} is {column.values[row]!r}, expected {values[row]!r} (and {wrong.sum()} in all)")
    unit = unicodedata.normalize("NFKC", column.format.unit) if isinstance(column.format, NumberFormat) else ""
    if has_units and kind == "number" and unit != unicodedata.normalize("NFKC", wanted.get("unit", "")):
        found.append(f"unit {unit!r}, expected {wanted.get('unit', '')!r}")
    return found


def _cells(column: Column, values: list[Any], kind: str) -> list[str]:
    if column.kind != kind:
        return [f"kind {column.kind} with {column.format}, expected {kind}; cells {column.cells()[:4]}"]
    wrong = [row for row, (cell, value) in enumerate(zip(column.cells(), values, strict=True)) if cell != value]
    return [f"row {wrong[0]} is {column.cells()[wrong[0]]!r}, expected {values[wrong[0]]!r}"] if wrong else []


def _days(text: str) -> float:
    return float(np.datetime64(text, "ms").astype(np.int64)) / 86_400_000


def score(part: str) -> dict[str, list[str]]:
    """Return the differences of all files of a part, by name."""
    return {path.name: differences(path) for path in cases(part)}


if __name__ == "__main__":
    import sys

    found = score(sys.argv[1])
    for name, all_of in found.items():
        for difference in all_of:
            print(f"{name}: {difference[:400]}")
    right = sum(not all_of for all_of in found.values())
    refused = sum(bool(all_of) and all_of[0].startswith("refused") for all_of in found.values())
    print(f"{right} of {len(found)} read exactly, {refused} refused")
