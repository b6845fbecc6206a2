"""Infer numbers and dates from columns of text, column by column, and say in notes how they were read.

A column becomes numbers or dates if nearly all of its cells can be read in one format (see `conventions`). What cannot
be decided stays text, and a note says so. Each distinct text is looked at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.data.columns import Column, clip, named, number_text, text_column
from margrove.data.conventions import (
    SIGNS,
    Dates,
    Numbers,
    Text,
    UnclearError,
    far_dates,
    given_kind,
    hours,
    odd_notes,
    read,
    readable_number,
)
from margrove.data.formats import DateFormat, EmptyFormat, Format, NumberFormat, Order, format_from_json
from margrove.data.inspection import IDENTIFIER
from margrove.data.spelling import as_trained_spelling, joined, without_dashes
from margrove.data.table import Table
from margrove.data.written import clock_hours, is_no_value, unit_name, written_date, written_number
from margrove.errors import InputError, ParameterError, did_you_mean
from margrove.explanation import explanation_of
from margrove.words import PHONE_DIGITS, says_date, says_month, says_phone, says_postcode, says_version

if TYPE_CHECKING:
    from margrove.data.delimited import Rows

KINDS = ("category", "number", *SIGNS, "date", "dmy", "mdy", "ymd", "ignore")
# By the name of the column: one of KINDS; or, from training, the format of its numbers or the levels of its words.
Kinds = Mapping[str, str | Format | tuple[str, ...]]

_FIRST = 1000  # rows that are looked at before all are
_SENTINELS = {sign * float("9" * n) for n in range(2, 7) for sign in (-1, 1)}  # often written for missing numbers
_FIRST_SERIAL = 10_000  # the day number of a spreadsheet for 1927; smaller numbers are years, months and days
_SAYS_CODE = {"versions": says_version, "postcodes": says_postcode, "telephone numbers": says_phone}
_CODE = re.compile(r"0\d+|0\d(?:\.\d\d)+|\d\d+[eE]\d\d?")
_DIGITS_ONLY = re.compile(r"[^.]*|\d\d(?:\.\d\d)+")
_POINTED = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")  # may be more than a thousand
_LONG = re.compile(r"\d{16,}")
# The beginning of a number or a date, also after a sign or in brackets; or a year.
_DIGITS = re.compile(r"[^\w\s]*\s?\d|.*\b(?:19|20)\d\d\b")
_MARKED = re.compile(r'="(.*)"|\'(.*?)\'?')  # what a spreadsheet is to leave as text


def infer_columns(
    table: Table, kinds: Kinds, rows: Rows | None = None, line_of: Callable[[int], int] | None = None
) -> Table:
    """Return a table as read from a file, with numbers and dates in the columns of text that hold them, and notes on
    how they were read.

    Parameters
    ----------
    table : Table
        Without a target.
    kinds : mapping
        The columns whose kind is given, by the user or by a model.
    rows : Rows, optional
        The rows as they are written, where the parser may have made numbers of codes.
    line_of : function, optional
        Gives the line of a row, for errors.
    """
    _check_kinds(table, kinds)
    ignored = [name for name, kind in kinds.items() if kind == "ignore" and name in table]
    if ignored:
        table = table.select([name for name in table.names if name not in ignored])
    if table.sparse is not None:
        return table
    found: dict[str, Column] = {}
    notes: list[str] = []
    texts: dict[str, Text] = {}
    plain: list[Column] = []  # numbers
    usual: dict[str, Column] = {}  # those of texts that a decimal point is likely for
    as_text = _seen_again(table, kinds, rows)
    for column in table:
        kind, seen = kinds.get(column.name), as_text.get(column.name)
        if kind is not None:
            found[column.name], said = _as_kind(column if seen is None else seen, kind, table.source, line_of)
            notes += said
        elif column.kind == "category":
            if column.levels and isinstance(column.levels[0], str):
                texts[column.name] = Text(_without_marks(column))
        elif column.kind == "numeric" and column.format is None:
            says = next((what for what, name in _SAYS_CODE.items() if name(column.name)), "")
            if seen is not None and (says or _has_codes(Text(seen))):
                found[column.name] = seen
                what = says or "codes with leading zeros, or such as 12E4"
                words = f"Column {column.name!r} holds {what}, so it is a category. "
                notes.append(Advice(words, "If it holds numbers, set ", given_kind(column.name, "number"), "."))
            elif seen is not None and (_may_be_dates(column) or any(map(_POINTED.fullmatch, map(str, seen.levels)))):
                texts[column.name] = Text(seen)
                if rows is not None and rows.dialect.delimiter != ";" and not _may_be_dates(column):
                    usual[column.name] = column
            else:
                plain.append(column)
                notes += _odd_numbers(column, rows)
        elif column.is_date:
            notes += far_dates(column.name, column.values)
    for column, said in _read_texts(texts, plain, usual, rows):
        found[column.name] = column
        notes += said
    if not found:
        return table.with_target(table.target, *notes)
    columns = [found.get(column.name, column) for column in table]
    return Table(columns, source=table.source, notes=(*table.notes, *notes))


def trained_kinds(model: Any) -> Kinds:
    """Return the formats and levels of the columns that a fitted model was trained on, for `infer_columns`."""
    first = model[0] if hasattr(model, "steps") else model
    columns = getattr(first, "columns_", None)
    if columns is None:
        explanation = explanation_of(model)
        if explanation.parts:
            return trained_kinds(explanation.parts[0])
        columns = explanation.columns()
    kinds: dict[str, Any] = {}
    for column in columns or ():  # none: it was trained on an array
        form, levels = format_from_json(column.get("format")), column.get("levels") or ()
        if form is not None:
            kinds[column["name"]] = form
        elif levels and all(isinstance(level, str) for level in levels):
            kinds[column["name"]] = tuple(levels)
    return kinds


def _check_kinds(table: Table, kinds: Kinds) -> None:
    for name, kind in kinds.items():
        if isinstance(kind, str) and kind not in KINDS:
            raise ParameterError(f"the kind of column {name!r} is {kind!r}; it must be one of {named(KINDS)}.")
        if isinstance(kind, str) and name not in table:
            cure = f"{did_you_mean(name, table.names)}The columns are {named(table.names)}."
            raise InputError(f"there is no column {name!r}, whose kind is given", file=table.source, cure=cure)


# --- columns that the parser took for numbers ---


def _seen_again(table: Table, kinds: Kinds, rows: Rows | None) -> dict[str, Column]:
    """Return as text the columns whose cells must be seen as they are written: 01234 is a code, and 1.234 may be more
    than a thousand."""
    has_zeros = cache(lambda: rows is not None and rows.has_leading_zeros())

    def is_seen_again(column: Column) -> bool:
        kind = kinds.get(column.name)
        if column.kind == "category" or isinstance(kind, EmptyFormat):
            return False
        if kind is None:
            if column.kind != "numeric" or column.format is not None:
                return False
            is_long = rows is not None and rows.has_points and _may_be_thousands(column)
            is_postcode = says_postcode(column.name) and _is_whole(column)
            is_phone = says_phone(column.name) and _is_whole(column)
            is_phone = is_phone and _all(column, lambda values: values >= 10 ** (PHONE_DIGITS - 1))
            is_version = rows is not None and says_version(column.name) and not _is_whole(column)
            may_be_code = has_zeros() and (_is_whole(column) or _all(column, lambda values: _has_decimals(values, 2)))
            return _may_be_dates(column) or is_long or is_version or is_postcode or is_phone or may_be_code
        if isinstance(kind, NumberFormat):
            return kind.decimal == "," and rows is not None
        if kind in ("number", "decimal_point"):
            return False
        return not column.is_date or isinstance(kind, tuple) or kind == "category"

    again = [column.name for column in table if is_seen_again(column)]
    if rows is not None:
        return rows.columns(again) if again else {}
    return {name: text_column(name, np.array([_cell_text(cell) for cell in table[name].cells()])) for name in again}


def _cell_text(cell: object) -> str:
    return "" if cell is None else number_text(cell) if isinstance(cell, float) else str(cell)


def _first(column: Column) -> NDArray[Any]:
    values = column.values[:_FIRST]
    known: NDArray[Any] = values[~np.isnan(values)]
    return known


def _all(column: Column, test: Callable[[NDArray[Any]], Any]) -> bool:
    """Return whether all numbers of a column pass a test; most columns that do not are known by their first ones."""
    return bool(np.all(test(_first(column))) and np.all(test(column.values) | np.isnan(column.values)))


def _is_whole(column: Column) -> bool:
    return _all(column, lambda values: np.floor(values) == values)


def _may_be_dates(column: Column) -> bool:
    """Return whether whole numbers may be dates such as 20240304: they are called so, or several are all days."""
    if column.kind != "numeric" or column.format is not None or not column.values.size:
        return False
    first = _first(column)
    # 20240304, 20240304123000, or 202403 in a column of months
    scale = next((s for s in (1.0, 1e6, 1e-2) if first.size and 19_000_100 * s <= first[0] < 21_001_232 * s), 0.0)
    ends = 19_000_100 * scale, 21_001_232 * scale
    if not scale or not _all(column, lambda values: (values >= ends[0]) & (values < ends[1])) or not _is_whole(column):
        return False
    days = {str(int(value)) for value in first}
    are_days = all(not math.isnan(DateFormat().parse(day)) for day in days)
    if scale < 1:
        return are_days and says_month(column.name)
    is_called_otherwise = len(days) < 5 or IDENTIFIER.search(column.name) is not None
    return says_date(column.name) or (are_days and not is_called_otherwise)


def _may_be_thousands(column: Column) -> bool:
    """Return whether what was read as 12.5 may be written 12.500, with a point between thousands."""
    return column.values.size > 0 and _all(column, lambda values: (np.abs(values) < 1000) & _has_decimals(values, 3))


def _has_decimals(values: NDArray[Any], most: int) -> NDArray[np.bool_]:
    """Return whether numbers below 1000 have so many decimals at most."""
    found: NDArray[np.bool_] = np.round(np.where(np.abs(values) < 1000, values, 0.5), most) == values
    return found


def _are_below(end: float, values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether numbers are this one, or far below it."""
    found: NDArray[np.bool_] = (values == end) | (np.abs(values) < 0.3 * abs(end))
    return found


def _has_codes(text: Text) -> bool:
    """Return whether whole numbers have leading zeros, or look like 12E4, as codes do, and not shorter numbers more
    often than these."""
    padded = np.array([_CODE.fullmatch(cell) is not None for cell in text.texts])
    if not padded.any() or not all(map(_DIGITS_ONLY.fullmatch, text.texts)):
        return False
    lengths = np.array(list(map(len, text.texts)))
    return bool(text.counts[lengths < lengths[padded].min()].sum() <= text.counts[padded].sum())


def _odd_numbers(column: Column, rows: Rows | None) -> list[str]:
    """Return notes on numbers that may be codes, dates, or marks of missing cells."""
    notes: list[str] = []
    low, high = (float(end.reduce(column.values, initial=math.nan)) for end in (np.fmin, np.fmax))
    if high >= 2.0**53 and (
        rows is None or any(map(_LONG.fullmatch, map(str, rows.columns([column.name])[column.name].levels)))
    ):
        words = f"Column {column.name!r} holds numbers of more than 15 digits, which are rounded."
        notes.append(Advice(words, " If they are codes, set ", given_kind(column.name, "category"), "."))
    for end in {low, high} & _SENTINELS:
        if _all(column, partial(_are_below, end)):
            words = f"Column {column.name!r}: {end:g} is far from all other numbers. If it marks missing cells, set "
            notes.append(Advice(words, Setting("missing", f"{end:g}"), "."))
    if says_date(column.name) and low >= _FIRST_SERIAL and _is_whole(column):
        notes.append(f"Column {column.name!r} holds numbers such as {low:.0f}, which are not read as dates.")
    return notes


# --- columns of text ---


def _read_texts(
    texts: dict[str, Text], plain: Collection[Column], usual: dict[str, Column], rows: Rows | None
) -> list[tuple[Column, list[str]]]:
    """Return columns of text as what they hold, with notes. Where a column leaves the order of its dates or its decimal
    sign open, others decide it, among them the ``plain`` numbers."""
    cells: dict[str, Dates | Numbers | Column] = {}
    notes: dict[str, list[str]] = {}
    for name, text in texts.items():
        try:
            cells[name] = Dates.of(text) or hours(text) or Numbers.of(text) or text.column
        except UnclearError as doubt:
            cells[name], notes[name] = text.column, [doubt.note(name)]
    orders = set[tuple[str, Order]]().union(*(each.shown for each in cells.values() if isinstance(each, Dates)))
    decimals = set[str]().union(*(each.shown for each in cells.values() if isinstance(each, Numbers)))
    if rows is not None and rows.dialect.decimal_point == ",":
        decimals.add(",")
    elif "," not in decimals and not all(map(_is_whole, plain)):
        decimals.add(".")
    found: list[tuple[Column, list[str]]] = []
    if "," in decimals and rows is not None and rows.dialect.decimal_point == ".":
        for column in (column for column in plain if not _is_whole(column)):
            words = (
                f"Column {column.name!r} has a decimal point, and other columns have a decimal comma. If it holds codes"
            )
            found.append((column, [Advice(f"{words}, set ", given_kind(column.name, "category"), ".")]))
    for name, each in cells.items():
        column, said = _decided(each, orders if isinstance(each, Dates) else decimals, usual.get(name))
        if column.kind == "numeric" and isinstance(each, Column):
            odd = texts[name].odd([clock_hours(cell) is None for cell in texts[name].texts])
            said = [f"Column {name!r} holds times, read as hours.", *odd_notes(name, odd or (), "time")]
        said = notes.get(name, said)
        if column.kind == "category":
            said = said or _left_over(texts[name])
            column, dashes = without_dashes(column)
            column, pairs = joined(column)
            said = [*said, *dashes, *pairs]
        found.append((column, said))
    return found


def _decided(cells: Dates | Numbers | Column, elsewhere: set[Any], usual: Column | None) -> tuple[Column, list[str]]:
    """Return what a column of text holds, with notes; ``usual`` are its numbers with a decimal point, which they have
    if nothing says otherwise."""
    if isinstance(cells, Column):
        return cells, []
    try:
        return read(cells, cells.format(elsewhere))
    except UnclearError as doubt:
        return (cells.text.column, [doubt.note(cells.text.name)]) if usual is None else (usual, [])


def _without_marks(column: Column) -> Column:
    """Return the words without blank cells, and without the signs that keep a spreadsheet from changing them, where all
    have them: ="01"."""
    levels = [str(level) for level in column.levels]
    marked = [_MARKED.fullmatch(level) for level in levels if levels[0][:1] in tuple("='")]
    if marked and all(marked):
        levels = [next(filter(None, found.groups()), "") for found in marked if found]
    elif levels[0]:
        return column
    return text_column(column.name, np.array(["", *levels])[column.values + 1])


def _begins(cell: str) -> bool:
    """Return whether a cell begins as numbers or dates do."""
    return _DIGITS.match(cell) is not None or readable_number(cell) is not None


def _left_over(text: Text) -> list[str]:
    """Return a note if most cells of a column that stays text begin as numbers or dates do."""
    if not text.texts or 2 * sum(map(_begins, text.sample)) < len(text.sample):
        return []
    has_digits = np.array(list(map(_begins, text.texts)))
    is_read = np.array([readable_number(cell) is not None or written_date(cell) is not None for cell in text.texts])
    n_rows, n_read = int(text.counts.sum()), int(text.counts[is_read].sum())
    if 2 * int(text.counts[has_digits].sum()) < n_rows:
        return []
    place = int(np.argmax(np.where(is_read, -1, text.counts)))
    cell = text.texts[place]
    words = f"Column {text.name!r} stays text: "
    if 2 * n_read < n_rows or n_read == n_rows or re.search(r"\d", cell):
        return [f"{words}cells such as {clip(cell)!r} are no numbers or dates of one format."]
    words += f"{n_rows - n_read:,} of {n_rows:,} cells are no numbers or dates, such as {clip(cell)!r}. "
    return [Advice(words, "If they mark missing cells, set ", Setting("missing", cell), ".")]


# --- kinds that are given ---


def _as_kind(column: Column, kind: Any, source: str, line_of: Callable[[int], int] | None) -> tuple[Column, list[str]]:
    """Return the column in a kind that is given, with notes. Raise `InputError` at a cell that cannot be read so."""
    if isinstance(kind, tuple):
        return as_trained_spelling(column, kind)
    if column.kind != "category" or kind == "category" or isinstance(kind, EmptyFormat) or not column.levels:
        return column, []
    text = Text(_without_marks(column))
    try:
        cells, form = _wanted(text, kind) if isinstance(kind, str) else (None, kind)
    except UnclearError as doubt:
        cure = Advice(*doubt.cure) if doubt.cure else "Correct the cells, or give the column another kind, or none."
        raise InputError(doubt.problem, file=source, column=column.name, cure=cure) from None
    values = [form.parse(cell) for cell in text.texts]
    wrong = [j for j, value in enumerate(values) if math.isnan(value) and not is_no_value(text.texts[j])]
    if not wrong:
        return text.numbers(values, form), cells.notes(form, values) if isinstance(cells, Numbers) else []
    if not isinstance(kind, str):
        if (otherwise := _written_otherwise(text, kind)) is not None:
            return otherwise
        if odd := text.odd(list(map(math.isnan, values))):
            return text.numbers(values, form), odd_notes(column.name, odd, _what(form))
    how = f" in the format of this column, such as {form.sample}"
    cure = "Correct the cell, or empty it."
    if isinstance(kind, str):
        how = {"dmy": " with the day first", "mdy": " with the month first"}.get(kind, "")
        cure = "Correct the cell, or give the column another kind, or none."
    place = text.first(wrong)
    line = None if line_of is None else line_of(int(np.argmax(text.column.values == place)))
    problem = f"the cell {clip(text.texts[place])!r} is not a {_what(form)}{how}"
    raise InputError(problem, file=source, line=line, column=column.name, cure=cure)


def _what(form: Format) -> str:
    return "date" if isinstance(form, DateFormat) else "number"


def _wanted(text: Text, kind: str) -> tuple[Numbers | Dates | None, Any]:
    """Return the format of cells of the kind that the user wants. Raise `UnclearError` if several are possible."""
    cells: Numbers | Dates
    if kind == "number" or kind in SIGNS:
        if all(clock_hours(cell) is not None for cell in text.texts):
            return None, NumberFormat(unit="h")
        cells = Numbers(text, list(map(written_number, text.texts)), is_given=True)
        return cells, cells.format(set(), SIGNS.get(kind, ""))
    cells = Dates(text, list(map(written_date, text.texts)), is_given=True)
    return cells, cells.format(set(), [cast(Order, kind)] if kind != "date" else [])


def _written_otherwise(text: Text, trained: NumberFormat | DateFormat) -> tuple[Column, list[str]] | None:
    """Return a column that is written in another format than in training, if its own cells leave no doubt: 105.9 has a
    decimal point. None otherwise."""
    try:
        cells, form = _wanted(text, _what(trained))
        values = [form.parse(cell) for cell in text.texts]
    except UnclearError:
        return None
    if any(math.isnan(value) and not is_no_value(cell) for cell, value in zip(text.texts, values, strict=True)):
        return None
    if isinstance(form, NumberFormat) and isinstance(trained, NumberFormat):
        if form.unit and unit_name(form.unit) != unit_name(trained.unit):
            return None
        form = replace(form, unit=trained.unit)
    words = f"Column {text.name!r} is written otherwise than in training: read {text.texts[0]!r} as "
    return text.numbers(values, form), [f"{words}{form.show(values[0])}."] if cells is not None else []
