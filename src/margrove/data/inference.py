"""Infer numbers and dates from columns of text, column by column, and say in notes how they were read.

A column becomes numbers or dates if nearly all of its cells can be read under one convention, which may be settled by a
single cell of it (``17/03/2024`` has the day first) or by another column of the table. What cannot be decided stays
text, and a note says so. Each distinct text is looked at once.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, InPython, Setting
from margrove.data.columns import MISSING, Column, category_column, clip, is_whole, named, some, text_column
from margrove.data.formats import (
    NO_VALUE,
    DateFormat,
    EmptyFormat,
    Format,
    NumberFormat,
    Order,
    WrittenDate,
    WrittenNumber,
    clock_hours,
    format_from_json,
    is_grouped,
    is_known_unit,
    unit_name,
    written_date,
    written_number,
)
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, did_you_mean
from margrove.explanation import explanation_of

KINDS = ("category", "number", "date", "dmy", "mdy", "ymd", "ignore")
# By the name of the column: one of KINDS; or, from training, the format of its numbers or the levels of its words.
Kinds = Mapping[str, str | Format | tuple[str, ...]]
Written = Callable[[Sequence[str]], Mapping[str, Column]]  # some columns of the file as text, as the cells are written

_FIRST_PART = {"ymd": "year", "dmy": "day", "mdy": "month"}
_SAMPLE = 64  # distinct texts that are tried before all of a column are
_FIRST = 1000  # rows that are looked at before all are
_MOST_JOINED = 10_000  # levels among which spellings are compared
_ANSWERS = ("y", "n", "j", "m", "f", "w", "t")  # letters for yes, no, true, false, male and female
_DASHES, _ERRORS = NO_VALUE[:4], NO_VALUE[4:]
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"0\d+|\d\d+[eE]\d+")
_LETTERED = re.compile(r"[^\W\d_]+-?\d+")  # EUR6, rs98241
_GROUPS = re.compile(r"\d{3}([ .])\d{3}(?:\1\d{3})+")  # as in telephone numbers
_LONG = re.compile(r"\d{16,}")
_NONE = "1.2.3"
_VERSION = re.compile(r"\d\.\d{1,2}\.\d\d|\d\d\.\d\.\d\d")
_SAYS_DATE = re.compile(
    r"date|datum|dato|\bdata\b|fecha|\bday\b|\bdt\b|_dt\b|\bjour\b|\btag\b|日|päivä|ημερομηνία|termin", re.IGNORECASE
)
_POINT_MONEY = ("$", "£", "¥", "₹")  # currencies of countries that write a decimal point


class _Text:
    """A column of text with its distinct cells, and how many rows have each."""

    def __init__(self, column: Column) -> None:
        self.column, self.texts = column, list(map(str, column.levels))

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        return np.bincount(self.column.values[self.column.values >= 0], minlength=len(self.texts))

    @property
    def n_rows(self) -> int:
        return int(self.counts.sum())

    def odd(self, parsed: Sequence[Any]) -> list[str] | None:
        """Return the cells that could not be parsed, if they are so few that they are mistakes; otherwise None."""
        odd = [place for place, found in enumerate(parsed) if found is None and self.texts[place] not in NO_VALUE]
        n_odd = int(self.counts[odd].sum())
        if all(found is None for found in parsed):
            return None
        most = max(1 if self.n_rows < 20 else 2, self.n_rows // 100)
        if n_odd > most or (odd and len(parsed) - len(odd) < max(5, 4 * len(odd))):
            return None
        return [self.texts[place] for place in odd]

    def numbers(self, values: Sequence[float], form: Format) -> Column:
        """Return the column as numbers, one for each distinct text."""
        by_code = np.array([*values, math.nan])  # the last entry is that of the code -1
        return Column(self.column.name, "numeric", by_code[self.column.values], format=form)


def infer_columns(
    table: Table,
    kinds: Kinds,
    written: Written | None = None,
    *,
    has_zeros: Callable[[], bool] = bool,
    decimal_comma: bool = False,
    line_of: Callable[[int], int] | None = None,
) -> Table:
    """Return a table as read from a file, with numbers and dates in the columns of text that hold them, and notes on
    how they were read.

    Parameters
    ----------
    table : Table
        Without a target.
    kinds : mapping
        The columns whose kind is given, by the user or by a model.
    written : function, optional
        Reads columns again as text, where the parser has made numbers of codes. None: their numbers are all there is.
    has_zeros : function
        Tells whether some number of the file begins with a zero, as codes do.
    decimal_comma : bool
        Whether numbers elsewhere in the file have one.
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
    has_zeros = cache(has_zeros)  # asked for each column of whole numbers
    again = [column.name for column in table if _is_seen_again(column, kinds.get(column.name), has_zeros)]
    as_text = written(again) if written is not None and again else {name: _as_text(table[name]) for name in again}
    texts: dict[str, _Text] = {}
    plain: list[Column] = []  # numbers
    for column in table:
        kind = kinds.get(column.name)
        if kind is not None:
            found[column.name], said = _as_kind(as_text.get(column.name, column), kind, table.source, line_of)
            notes += said
        elif column.kind == "category":
            if column.levels and isinstance(column.levels[0], str):
                texts[column.name] = _Text(column)
        elif column.kind == "numeric" and column.format is None:
            if column.name in as_text and _has_codes(_Text(as_text[column.name])):
                found[column.name] = as_text[column.name]
                words = f"Column {column.name!r} holds codes with leading zeros, or such as 12E4, so it is a category. "
                notes.append(Advice(words, "If it holds numbers, set ", _given(column.name, "number"), "."))
            elif _SAYS_DATE.search(column.name) and (compact := _compact_dates(column)) is not None:
                found[column.name] = compact
                notes.append(f"Column {column.name!r} holds dates written as YYYYMMDD.")
            else:
                plain.append(column)
                notes += _rounded(column, written)
    dates = {name: parsed for name, text in texts.items() if (parsed := _try(text, written_date)) is not None}
    order_of = {sign: _known_order(dates, sign) for sign in "/-"}
    for name, parsed_dates in dates.items():
        found[name], said = _dates(texts.pop(name), parsed_dates, order_of)
        notes += said
    numbers = {name: parsed for name, text in texts.items() if (parsed := _try(text, written_number)) is not None}
    signs = [_decimal_signs(parsed) for parsed in numbers.values()]
    decimals = {sign for found_signs in signs if _NONE not in found_signs for sign in found_signs}
    if "," in decimals and written is not None and plain and not decimal_comma:
        # Beside "0,05 €", what the parser took for the fraction 12.5 may be written 12.500.
        for name, text in ((name, _Text(column)) for name, column in written([each.name for each in plain]).items()):
            if any("." in cell for cell in text.texts):
                texts[name], numbers[name] = text, list(map(written_number, text.texts))
                decimals |= _decimal_signs(numbers[name])
    elif numbers and not decimal_comma and not all(map(_is_whole, plain)):
        decimals.add(".")
    decimals |= {","} if decimal_comma else set()
    for name, text in texts.items():
        column, said = text.column, []
        if (hours := _try(text, clock_hours)) is not None and not text.odd(hours):
            hours = [math.nan if hour is None else hour for hour in hours]
            column, said = text.numbers(hours, NumberFormat(unit="h")), [f"Column {name!r} holds times, read as hours."]
        elif name in numbers:
            column, said = _numbers(text, numbers[name], decimals)
        if column.kind == "category":
            column, dashes = _without_dashes(column)
            column, pairs = _joined(column)
            said = [*said, *dashes, *pairs]
        found[name] = column
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


def _is_seen_again(column: Column, kind: Any, has_zeros: Callable[[], bool]) -> bool:
    """Return whether the cells must be seen as they are written: 01234 is a code, 1.234 may be more than a thousand."""
    if column.kind == "category" or isinstance(kind, EmptyFormat):
        return False
    if kind is None:
        is_plain = column.kind == "numeric" and column.format is None
        return is_plain and is_whole(_first(column)) and has_zeros() and _is_whole(column)
    if isinstance(kind, NumberFormat):
        return kind.decimal == ","
    return kind != "number" and not (column.is_date and not isinstance(kind, tuple) and kind != "category")


def _is_whole(column: Column) -> bool:
    """Return whether all numbers of a column are whole; most that are not are known by their first ones."""
    return is_whole(_first(column)) and is_whole(column.values[~np.isnan(column.values)])


def _first(column: Column) -> NDArray[Any]:
    values = column.values[:_FIRST]
    known: NDArray[Any] = values[~np.isnan(values)]
    return known


def _check_kinds(table: Table, kinds: Kinds) -> None:
    for name, kind in kinds.items():
        if isinstance(kind, str) and kind not in KINDS:
            raise ParameterError(f"the kind of column {name!r} is {kind!r}; it must be one of {named(KINDS)}.")
        if isinstance(kind, str) and name not in table:
            cure = f"{did_you_mean(name, table.names)}The columns are {named(table.names)}."
            raise InputError(f"there is no column {name!r}, whose kind is given", file=table.source, cure=cure)


def _try(text: _Text, parse: Any) -> list[Any] | None:
    """Return the distinct cells of a column parsed, None for those that cannot be; None if more than a few cannot."""
    if len(text.texts) > _SAMPLE:  # most columns of words are known by some of them
        sample = text.texts[:: len(text.texts) // _SAMPLE]
        if sum(parse(cell) is None for cell in sample) > len(sample) // 4:
            return None
    parsed = [parse(cell) for cell in text.texts]
    return None if text.odd(parsed) is None else parsed


def _as_kind(column: Column, kind: Any, source: str, line_of: Callable[[int], int] | None) -> tuple[Column, list[str]]:
    """Return the column in a kind that is given, with notes. Raise `InputError` at a cell that cannot be read so."""
    if isinstance(kind, tuple):
        return _spelled(column, kind)
    if column.kind != "category" or kind == "category" or isinstance(kind, EmptyFormat) or not column.levels:
        return column, []
    text = _Text(column)
    form: NumberFormat | DateFormat = _best_format(text, kind, source) if isinstance(kind, str) else kind
    values = [form.parse(cell) for cell in text.texts]
    wrong = [cell for cell, value in zip(text.texts, values, strict=True) if math.isnan(value) and cell not in NO_VALUE]
    what = "date" if isinstance(form, DateFormat) else "number"
    odd = text.odd([None if math.isnan(value) else value for value in values]) if wrong else []
    if odd == [] or (odd and not isinstance(kind, str)):
        notes = _how_read(column.name, form) if isinstance(form, NumberFormat) else []
        return text.numbers(values, form), [*notes, *_odd_notes(column.name, odd, what)]
    how = f" in the format of this column, such as {form.sample}"
    cure = "Correct the cell, or empty it."
    if isinstance(kind, str):
        how = {"dmy": " with the day first", "mdy": " with the month first"}.get(kind, "")
        cure = "Correct the cell, or give the column another kind, or none."
    line = None if line_of is None else line_of(int(np.argmax(column.values == text.texts.index(wrong[0]))))
    problem = f"the cell {clip(wrong[0])!r} is not a {what}{how}"
    raise InputError(problem, file=source, line=line, column=column.name, cure=cure)


def _as_text(column: Column) -> Column:
    """Return the cells of a column that was not read from text, as text."""
    return text_column(column.name, np.array(["" if cell is None else str(cell) for cell in column.cells()], dtype=str))


def _spelled(column: Column, trained: tuple[str, ...]) -> tuple[Column, list[str]]:
    """Return words that differ from a trained one only in case or blanks in the trained spelling, with a note."""
    if column.kind != "category":
        return column, []
    known: dict[str, list[str]] = defaultdict(list)
    for level in trained:
        known[fold(level)].append(level)
    column, dashes = _without_dashes(column, trained)
    spelling = {
        str(level): known[fold(str(level))][0]
        for level in column.levels
        if level not in trained and len(known.get(fold(str(level)), ())) == 1
    }
    if not spelling:
        return column, dashes
    pairs = [f"{given!r} as {level!r}" for given, level in spelling.items()]
    levels = [spelling.get(str(level), level) for level in column.levels]
    note = f"Column {column.name!r}: read {some(pairs, 3)}."
    return category_column(column.name, column.values, levels), [*dashes, note]


def _best_format(text: _Text, kind: str, source: str) -> NumberFormat | DateFormat:
    """Return the format under which all, or most, cells are of the kind that the user wants."""
    cure: Any = "Write the cells in one way that cannot be mistaken."
    what = ["a decimal point", "a decimal comma"]
    if kind == "number":
        if all(clock_hours(cell) is not None for cell in text.texts):
            return NumberFormat(unit="h")
        parsed = [written_number(cell) for cell in text.texts]
        known = [written for written in parsed if written is not None]
        unit = Counter(written.unit for written in known if written.unit).most_common(1)
        forms: list[NumberFormat | DateFormat] = [
            NumberFormat(decimal, thousands, unit[0][0] if unit else "") for decimal, thousands in (".,", ",.")
        ]
    else:
        dates = [written_date(cell) for cell in text.texts]
        orders = _orders(dates) if kind == "date" else [cast(Order, kind)]
        has_time = any(written is not None and written.hours is not None for written in dates)
        forms = [DateFormat(order, has_time) for order in orders]
        what = [f"the {_FIRST_PART[order]} first" for order in orders]
        cure = Advice("Set ", _choice(text.column.name, orders), ".")
    scores = [sum(not math.isnan(form.parse(cell)) for cell in text.texts) for form in forms]
    is_open = len(scores) > 1 and scores[0] == scores[1]
    if is_open and not all(_same(forms[0].parse(cell), forms[1].parse(cell)) for cell in text.texts):
        problem = f"cells such as {clip(text.texts[0])!r} may have {what[0]} or {what[1]}"
        raise InputError(problem, file=source, column=text.column.name, cure=cure)
    return forms[int(np.argmax(scores))]


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


# --- dates ---


def _compact_dates(column: Column) -> Column | None:
    """Return whole numbers such as 20240304 as dates; None where one of them is no date."""
    present = ~column.is_missing
    values = column.values[present]
    if not values.size or np.any(values != np.floor(values)) or values.min() < 19_000_101 or values.max() > 21_001_231:
        return None
    numbers, places = np.unique(values.astype(np.int64), return_inverse=True)
    days = np.array([DateFormat().parse(str(number)) for number in numbers.tolist()])
    if np.isnan(days).any():
        return None
    cells = np.full(len(column), np.nan)
    cells[present] = days[places]
    return Column(column.name, "numeric", cells, format=DateFormat())


def _orders(parsed: Iterable[WrittenDate | None]) -> list[Order]:
    """Return the orders under which the fewest dates are impossible. The year of 24/03/17 may stand first where the
    first parts of a column differ less than the last ones."""
    pairs = [written for written in parsed if written is not None and written.separator]
    is_short = all(written.is_short for written in pairs)
    may_begin = is_short and len({written.first for written in pairs}) < len({written.year for written in pairs})
    orders: tuple[Order, ...] = ("dmy", "mdy", "ymd") if may_begin else ("dmy", "mdy")
    wrong = {order: sum(math.isnan(DateFormat(order).value(written)) for written in pairs) for order in orders}
    return [order for order in orders if wrong[order] == min(wrong.values())]


def _choice(name: str, orders: Sequence[Order]) -> InPython:
    """Return the advice to say in which of these orders the dates of a column are written."""
    first, *rest = orders
    python = " or ".join([f"kinds={{{name!r}: {first!r}}}", *map(repr, rest)])
    others = (part for order in rest for part in (" or ", Setting("date", f"{name}:{order}")))
    return InPython(python, Setting("date", f"{name}:{first}"), *others)


def _known_order(dates: Mapping[str, list[WrittenDate | None]], sign: str) -> Order | None:
    """Return the order in which all columns that settle it write day and month around this sign."""
    found = set()
    for parsed in dates.values():
        if any(written is not None and written.separator == sign for written in parsed):
            orders = _orders(parsed)
            if len(orders) == 1:
                found.add(orders[0])
    return found.pop() if len(found) == 1 else None


def _dates(
    text: _Text, parsed: list[WrittenDate | None], order_of: Mapping[str, Order | None]
) -> tuple[Column, list[str]]:
    """Return a column of dates, or the column as it is where the day may be the month, with notes."""
    column, name = text.column, text.column.name
    known = [written for written in parsed if written is not None]
    signs = {written.separator for written in known if written.separator}
    cell = next(cell for cell, written in zip(text.texts, parsed, strict=True) if written is not None)
    if any(map(_VERSION.fullmatch, text.texts)) and not _SAYS_DATE.search(name):
        words = f"Column {name!r} stays text: {cell!r} may be a version or a date. If it is a date, set "
        return column, [Advice(words, _choice(name, ["dmy"]), ".")]
    order: Order = "ymd"
    how = ""
    if signs:
        orders = _orders(known)
        if signs == {"."}:
            order = "dmy"
        elif len(orders) == 1:
            order = orders[0]
        elif (agreed := {order_of.get(sign) for sign in signs}) and len(agreed) == 1 and None not in agreed:
            order = cast(Order, agreed.pop())
        else:
            cell = next(cell for cell, written in zip(text.texts, parsed, strict=True) if written and written.separator)
            parts = " or the ".join(_FIRST_PART[each] for each in orders)
            words = f"Column {name!r} stays text: in dates such as {cell!r} the {parts} may stand first. Set "
            return column, [Advice(words, _choice(name, orders), ".")]
        how = f" with the {_FIRST_PART[order]} first"
    form = DateFormat(order, any(written.hours is not None for written in known))
    values = [math.nan if written is None else form.value(written) for written in parsed]
    odd = text.odd([None if math.isnan(value) else value for value in values])
    days = {(w.weekday, form.value(w._replace(hours=None, zone=None)) % 7) for w in known if w.weekday}
    if odd is None or len(days) > len({word for word, _ in days}):  # "from 17/03/2024" has no weekday
        place = next((place for place, value in enumerate(values) if math.isnan(value)), 0)
        return column, [
            f"Column {name!r} stays text: not all of its cells are dates{how}, such as {text.texts[place]!r}."
        ]
    notes = [f"Column {name!r} holds dates{how}, such as {cell!r}."]
    if any(written.zone is not None for written in known):
        notes = [f"{notes[0][:-1]}; their times are in UTC."]
    return text.numbers(values, form), [*notes, *_odd_notes(name, odd, "date")]


# --- numbers ---


def _given(name: str, kind: str) -> InPython:
    """Return the advice to give the kind of a column."""
    return InPython(f"kinds={{{name!r}: {kind!r}}}", Setting(kind, name))


def _decimal_signs(parsed: Iterable[WrittenNumber | None]) -> set[str]:
    """Return the signs that must stand for the decimal point in some cell."""
    return {sign for written in parsed if written is not None for sign in [_decimal_sign(written.body)] if sign}


def _decimal_sign(body: str) -> str | None:
    """Return the decimal sign that a number shows, "" where it shows none, `_NONE` where it is no number (1.2.3), None
    where it may be either: 1,234."""
    signs = [letter for letter in body if letter in ".,"]
    if not signs:
        return ""
    last, other = signs[-1], "," if signs[-1] == "." else "."
    if len(set(signs)) == 2:
        return last
    if len(signs) > 1:
        return other if is_grouped(body, last) else _NONE
    whole, part = body.split(last)
    if "'" in whole or " " in whole or len(part) != 3 or len(whole) > 3 or whole.startswith("0") or not whole:
        return last
    return None


def _numbers(text: _Text, parsed: list[WrittenNumber | None], decimals: set[str]) -> tuple[Column, list[str]]:
    """Return a column of numbers, or the column as it is where units are mixed or signs ambiguous, with notes."""
    column, name = text.column, text.column.name
    known = [written for written in parsed if written is not None]
    about = [cell for cell, written in zip(text.texts, parsed, strict=True) if written is not None and written.about]
    if 4 * len(about) > len(known):  # "<=50K" and ">50K" are classes
        return column, []
    units = Counter[str]()
    for written, rows in zip(parsed, text.counts.tolist(), strict=True):
        if written is not None and written.unit:
            units[written.unit] += rows
    names = {unit_name(unit) for unit in units}
    is_known = all(map(is_known_unit, units))
    if len(names) > 1:
        return column, [_several_units(name, units)] if is_known else []
    # A word such as "Punkte" is a unit if it stands in every cell; a letter is part of a code, as in "12 A".
    is_word = all(len(unit) > 2 and unit.isalpha() for unit in units)
    if not is_known and (not is_word or units.total() < text.n_rows or len(known) < 2):
        return column, []
    bodies = [written.body for written in known]
    if any(body[0] == "0" and len(body) > 1 and body[1] not in ".," for body in bodies):
        return column, []  # a code
    cells = [cell for cell, written in zip(text.texts, parsed, strict=True) if written is not None]
    if _are_codes(cells):
        words = f"Column {name!r} stays text: {cells[0]!r} may be a code or a number. If it is a number, set "
        return column, [Advice(words, _given(name, "number"), ".")]
    unit = units.most_common(1)[0][0] if units else ""
    shown = _decimal_signs(known) - {_NONE}
    if len(shown) > 1:
        return column, [f"Column {name!r} stays text: some numbers have a decimal point, others a decimal comma."]
    unsure = [body for body in bodies if _decimal_sign(body) is None]
    if unsure and not shown:
        sign = next(letter for letter in unsure[0] if letter in ".,")
        if len(decimals) == 1:
            shown = set(decimals)
        elif (sign == "," and unit_name(unit) in _POINT_MONEY) or any(
            body.isdigit() and len(body) == 3
            for body in bodies  # 870 beside 1,204
        ):
            shown = {"." if sign == "," else ","}
        else:
            what = "comma" if sign == "," else "point"
            return column, [
                f"Column {name!r} stays text: the {what} in cells such as {unsure[0]!r} may separate thousands or "
                "decimals."
            ]
    decimal = shown.pop() if shown else "."
    other = "," if decimal == "." else "."
    separators = [letter for letter in (other, " ", "'") if any(letter in body for body in bodies)]
    form = NumberFormat(decimal, separators[0] if separators else "", unit)
    values = [math.nan if written is None else form.value(written) for written in parsed]
    odd = text.odd([None if math.isnan(value) else value for value in values])
    if odd is None:
        return column, []
    notes = _how_read(name, form) + _odd_notes(name, odd, "number")
    marked = [
        f"{cell!r} as {value:,.10g}"
        for cell, value, written in zip(text.texts, values, parsed, strict=True)
        if written is not None and (written.about or abs(written.factor) >= 1000 or cell.endswith(")"))
    ]
    notes += [f"Column {name!r}: read {some(marked, 3)}."] if marked else []
    return text.numbers(values, form if form != NumberFormat() else cast(Any, None)), notes


def _has_codes(text: _Text) -> bool:
    """Return whether whole numbers have leading zeros, or look like 12E4, as codes do, and not shorter numbers more
    often than these."""
    padded = np.array([_CODE.fullmatch(cell) is not None for cell in text.texts])
    if not padded.any() or any("." in cell for cell in text.texts):
        return False
    lengths = np.array(list(map(len, text.texts)))
    return bool(text.counts[lengths < lengths[padded].min()].sum() <= text.counts[padded].sum())


def _are_codes(cells: list[str]) -> bool:
    """Return whether cells may be codes: letters before digits, or groups of one length as in telephone numbers."""
    are_groups = len(cells) > 2 and len(set(map(len, cells))) == 1 and all(map(_GROUPS.fullmatch, cells))
    return are_groups or all(map(_LETTERED.fullmatch, cells))


def _rounded(column: Column, written: Written | None) -> list[str]:
    """Return a note if whole numbers have more digits than a float64 holds."""
    if not np.fmax.reduce(column.values, initial=0.0) >= 2.0**53:
        return []
    if written is not None and not any(map(_LONG.fullmatch, map(str, written([column.name])[column.name].levels))):
        return []  # 1.5e300
    words = (
        f"Column {column.name!r} holds whole numbers of more than 15 digits, which are rounded. If they are codes, set "
    )
    return [Advice(words, _given(column.name, "category"), ".")]


def _several_units(name: str, units: Counter[str]) -> str:
    listed = some([unit for unit, _ in units.most_common()], 4)
    return f"Column {name!r} stays text: its numbers have several units ({listed}). Convert them to one."


def _how_read(name: str, form: NumberFormat) -> list[str]:
    how = [f"the unit is {form.unit}"] if form.unit else []
    how += ["the decimal sign is a comma"] if form.decimal == "," else []
    signs = {",": "commas", ".": "points", " ": "spaces", "'": "apostrophes"}
    how += [f"{signs[form.thousands]} separate thousands"] if form.thousands else []
    return [f"Column {name!r} is read as numbers: {', '.join(how)}."] if how else []


def _odd_notes(name: str, odd: list[str], what: str) -> list[str]:
    if not odd:
        return []
    cells = some([repr(clip(cell)) for cell in odd], 3)
    is_one = len(odd) == 1
    return [
        f"Column {name!r}: {cells} {'is not a' if is_one else 'are not'} {what}{'' if is_one else 's'} and "
        f"{'is' if is_one else 'are'} read as missing."
    ]


# --- words ---


def _without_dashes(column: Column, trained: tuple[str, ...] = ()) -> tuple[Column, list[str]]:
    """Return words with missing cells in place of dashes and of errors of spreadsheets, with a note. Beside "+", or a
    single word, "-" is a class, as it is where training knew it as one."""
    words = [level for level in trained or column.levels if level not in NO_VALUE]
    is_class = "+" in words or len(words) < 2 or any(level in _DASHES for level in trained)
    missing = [level for level in column.levels if level in _ERRORS or (level in _DASHES and not is_class)]
    if not missing:
        return column, []
    kept = [level for level in column.levels if level not in missing]
    place = {level: code for code, level in enumerate(kept)}
    recode = np.array([*(place.get(level, MISSING) for level in column.levels), MISSING], dtype=np.int32)
    verb = "is" if len(missing) == 1 else "are"
    note = f"Column {column.name!r}: {named([str(level) for level in missing])} {verb} read as missing."
    return Column(column.name, "category", recode[column.values], tuple(kept)), [note]


def _joined(column: Column) -> tuple[Column, list[str]]:
    """Return the column with spellings that differ only in case or blanks joined to the most frequent, and a note."""
    levels = [str(level) for level in column.levels]
    if len(levels) > _MOST_JOINED or len(levels) > max(100, len(column) // 2):
        return column, []
    groups: dict[str, list[int]] = defaultdict(list)
    for code, level in enumerate(levels):
        groups[fold(level)].append(code)
    if len(groups) == len(levels):
        return column, []
    counts = np.bincount(column.values[column.values >= 0], minlength=len(levels))
    codes, firsts = np.unique(column.values, return_index=True)
    first = np.full(len(levels), len(column))
    first[codes[codes >= 0]] = firsts[codes >= 0]
    spelling, pairs = list(levels), []
    for group in groups.values():
        best = min(group, key=lambda code: (-counts[code], first[code]))
        rest = [code for code in group if code != best]
        if _may_differ(levels[best], [levels[code] for code in rest]) and counts[rest].sum() * 4 > counts[group].sum():
            continue
        for code in group if rest else ():
            spelling[code] = " ".join(levels[best].split())
        pairs += [f"{levels[code]!r} becomes {spelling[code]!r}" for code in group if spelling[code] != levels[code]]
    if not pairs:
        return column, []
    note = f"Column {column.name!r}: spellings that differ only in case or spaces are joined: {some(pairs, 3)}."
    return category_column(column.name, column.values, spelling), [note]


def _may_differ(word: str, others: Sequence[str]) -> bool:
    """Return whether words that differ only in case may mean different things, as the genotypes AA, Aa and aa do."""
    is_odd = any(other[0].islower() and other[-1].isupper() for other in (word, *others))  # aB
    return len(word) <= 2 and word.casefold() not in _ANSWERS and (len(set(word.casefold())) == 1 or is_odd)


def fold(level: str) -> str:
    """Return the form in which spellings are compared: lower case, single blanks."""
    return " ".join(level.casefold().split())
