"""Infer numbers and dates from columns of text, column by column, and say in notes how they were read.

A column becomes numbers or dates if nearly all of its cells can be read in one format (see `conventions`). What cannot
be decided stays text, and a note says so. Each distinct text is looked at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.data.columns import Column, clip, is_whole, named, number_text, text_column
from margrove.data.conventions import (
    SAYS_DATE,
    SIGNS,
    Dates,
    Numbers,
    Text,
    UnclearError,
    given_kind,
    hours,
    odd_notes,
    read,
)
from margrove.data.formats import DateFormat, EmptyFormat, Format, NumberFormat, Order, format_from_json
from margrove.data.inspection import IDENTIFIER
from margrove.data.spelling import as_trained_spelling, joined, without_dashes
from margrove.data.table import Table
from margrove.data.written import clock_hours, is_no_value, unit_name, written_date, written_number
from margrove.errors import InputError, ParameterError, did_you_mean
from margrove.explanation import explanation_of

if TYPE_CHECKING:
    from margrove.data.delimited import Rows

KINDS = ("category", "number", *SIGNS, "date", "dmy", "mdy", "ymd", "ignore")
# By the name of the column: one of KINDS; or, from training, the format of its numbers or the levels of its words.
Kinds = Mapping[str, str | Format | tuple[str, ...]]

_FIRST = 1000  # rows that are looked at before all are
_MOSTLY = 0.8  # the share of numbers among words from which on the words are named
_CODE = re.compile(r"0\d+|\d\d+[eE]\d\d?")
_LONG = re.compile(r"\d{16,}")
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
    as_text = _seen_again(table, kinds, rows)
    for column in table:
        kind = kinds.get(column.name)
        if kind is not None:
            found[column.name], said = _as_kind(as_text.get(column.name, column), kind, table.source, line_of)
            notes += said
        elif column.kind == "category":
            if column.levels and isinstance(column.levels[0], str):
                texts[column.name] = Text(_without_marks(column))
        elif column.kind == "numeric" and column.format is None:
            text = Text(as_text.get(column.name, column))
            if column.name in as_text and _has_codes(text):
                found[column.name] = as_text[column.name]
                words = f"Column {column.name!r} holds codes with leading zeros, or such as 12E4, so it is a category. "
                notes.append(Advice(words, "If it holds numbers, set ", given_kind(column.name, "number"), "."))
            elif column.name in as_text and _may_be_dates(column):
                texts[column.name] = text
            else:
                plain.append(column)
                notes += _rounded(column, rows)
    for column, said in _read_texts(texts, plain, rows):
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
            is_plain = column.kind == "numeric" and column.format is None
            return _may_be_dates(column) or (is_plain and not _has_fractions(column) and has_zeros())
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


def _is_whole(column: Column) -> bool:
    """Return whether all numbers of a column are whole; most that are not are known by their first ones."""
    return is_whole(_first(column)) and is_whole(column.values[~np.isnan(column.values)])


def _has_fractions(column: Column) -> bool:
    """Return whether a number of a column is not whole; most such columns are known by their first numbers."""
    return any(bool((np.floor(values) != values).any()) for values in (_first(column), np.nan_to_num(column.values)))


def _may_be_dates(column: Column) -> bool:
    """Return whether whole numbers may be dates such as 20240304: they are called so, or several are all days."""
    if column.kind != "numeric" or column.format is not None or not column.values.size:
        return False
    ends = np.fmin.reduce(column.values), np.fmax.reduce(column.values)
    if not 19_000_100 < ends[0] <= ends[1] < 21_001_232 or not _is_whole(column):
        return False
    is_called_otherwise = IDENTIFIER.search(column.name) is not None
    days = {str(int(value)) for value in _first(column)}
    are_days = len(days) > 4 and all(not math.isnan(DateFormat().parse(day)) for day in days)
    return SAYS_DATE.search(column.name) is not None or (are_days and not is_called_otherwise)


def _has_codes(text: Text) -> bool:
    """Return whether whole numbers have leading zeros, or look like 12E4, as codes do, and not shorter numbers more
    often than these."""
    padded = np.array([_CODE.fullmatch(cell) is not None for cell in text.texts])
    if not padded.any() or any("." in cell for cell in text.texts):
        return False
    lengths = np.array(list(map(len, text.texts)))
    return bool(text.counts[lengths < lengths[padded].min()].sum() <= text.counts[padded].sum())


def _rounded(column: Column, rows: Rows | None) -> list[str]:
    """Return a note if whole numbers have more digits than a float64 holds."""
    if not np.fmax.reduce(column.values, initial=0.0) >= 2.0**53:
        return []
    if rows is not None and not any(map(_LONG.fullmatch, map(str, rows.columns([column.name])[column.name].levels))):
        return []  # 1.5e300
    words = f"Column {column.name!r} holds numbers of more than 15 digits, which are rounded. If they are codes, set "
    return [Advice(words, given_kind(column.name, "category"), ".")]


# --- columns of text ---


def _read_texts(texts: dict[str, Text], plain: Collection[Column], rows: Rows | None) -> list[tuple[Column, list[str]]]:
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
    signs = [each.shown for each in cells.values() if isinstance(each, Numbers)]
    decimals = set[str]().union(*signs)
    is_comma = rows is not None and rows.dialect.decimal_point == ","
    if is_comma:
        decimals.add(",")
    elif "," in decimals and rows is not None and plain:
        # Beside "0,05 €", what the parser took for the fraction 12.5 may be written 12.500.
        for name, column in rows.columns([column.name for column in plain]).items():
            text = Text(column)
            if any("." in cell for cell in text.texts):
                cells[name] = again = Numbers(text, list(map(written_number, text.texts)), is_given=True)
                decimals |= again.shown
    elif signs and not all(map(_is_whole, plain)):
        decimals.add(".")
    found = []
    for name, each in cells.items():
        column, said = _decided(each, orders if isinstance(each, Dates) else decimals)
        said = notes.get(name, said)
        if column.kind == "category":
            said = said or _named_words(texts[name])
            column, dashes = without_dashes(column)
            column, pairs = joined(column)
            said = [*said, *dashes, *pairs]
        found.append((column, said))
    return found


def _decided(cells: Dates | Numbers | Column, elsewhere: set[Any]) -> tuple[Column, list[str]]:
    if isinstance(cells, Column):
        is_hours = cells.kind == "numeric"
        return cells, [f"Column {cells.name!r} holds times, read as hours."] if is_hours else []
    try:
        return read(cells, cells.format(elsewhere))
    except UnclearError as doubt:
        return cells.text.column, [doubt.note(cells.text.name)]


def _without_marks(column: Column) -> Column:
    """Return the words without the signs that keep a spreadsheet from changing them, where all have them: ="01"."""
    marked = [_MARKED.fullmatch(str(level)) for level in column.levels if str(column.levels[0])[:1] in "='"]
    if not marked or not all(marked):
        return column
    plain = np.array(["", *(next(filter(None, found.groups()), "") for found in marked if found)])
    return text_column(column.name, plain[column.values + 1])


def _named_words(text: Text) -> list[str]:
    """Return a note on the words in a column that mostly holds numbers or dates."""
    if 2 * sum(map(_is_word, text.sample)) > len(text.sample):
        return []
    is_word = np.array(list(map(_is_word, text.texts)))
    n_words, n_rows = int(text.counts[is_word].sum()), int(text.counts.sum())
    if not is_word.any() or n_rows - n_words < _MOSTLY * n_rows or len(text.texts) - is_word.sum() < 5:
        return []
    cell = text.texts[int(np.argmax(np.where(is_word, text.counts, 0)))]
    words = f"Column {text.name!r} stays text: {n_words:,} of {n_rows:,} cells are words, such as {clip(cell)!r}. "
    return [Advice(words, "If they mark missing cells, set ", Setting("missing", cell), ".")]


def _is_word(cell: str) -> bool:
    return written_number(cell) is None and written_date(cell) is None


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
