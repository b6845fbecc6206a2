"""A column is numeric, category or boolean, and knows which of its cells are missing.

=========  =========================  ===================  =====================================
kind       ``values``                 a missing cell is    ``levels``
=========  =========================  ===================  =====================================
numeric    float32 or float64         NaN                  ()
category   int32 codes into levels    -1                   the distinct labels, sorted
boolean    int8, 0 or 1               -1                   ()
=========  =========================  ===================  =====================================

The functions below build columns from NumPy arrays and Python objects; pyarrow columns are read in `arrow`.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Row
from margrove.data.formats import DateFormat, EmptyFormat, Format, NumberFormat
from margrove.errors import InputError

Kind = Literal["numeric", "category", "boolean"]
Level = str | int | float
RowIndex: TypeAlias = slice | NDArray[np.integer[Any]] | NDArray[np.bool_]  # which rows: a slice, indices or a mask

MISSING = -1  # the code of a missing cell in a category or boolean column
_WRITTEN_OUT = 1e15  # larger numbers are shown with an exponent


@dataclass(frozen=True, eq=False)
class Column:
    """One named column of a table: see the table at the top of this module.

    Examples
    --------
    >>> from margrove.data import Column
    >>> import numpy as np
    >>> island = Column("island", "category", np.array([1, 0, -1], dtype=np.int32), ("Biscoe", "Dream"))
    >>> island.n_missing, island.n_distinct
    (1, 2)
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    levels: tuple[Level, ...] = ()
    format: Format | None = None  # of numeric columns: how their cells are written, where it is not plain
    date_part: tuple[str, ...] = ()  # of a part of a date (see `dates`): the date's column, and which part

    def __repr__(self) -> str:
        rows = f"{len(self):,} rows" + (f", {self.n_missing:,} missing" if self.n_missing else "")
        example = self._example()
        return f"Column({self.name!r}, {self.shown_kind}, {rows}{example and f': {example}'})"

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_date(self) -> bool:
        """True if the numbers are days since 1970-01-01."""
        return isinstance(self.format, DateFormat)

    @property
    def learned_format(self) -> Format | None:
        """The format that a model keeps: that of a column without cells is one of its own."""
        return EmptyFormat() if len(self) and self.n_missing == len(self) else self.format

    @property
    def shown_kind(self) -> str:
        """The kind for people: "date" is one more."""
        return "date" if self.is_date else self.kind

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """A mask over the rows, True where the cell is missing."""
        mask: NDArray[np.bool_] = np.isnan(self.values) if self.kind == "numeric" else self.values < 0
        return mask

    @property
    def n_missing(self) -> int:
        """The number of missing cells."""
        return int(np.count_nonzero(self.is_missing))

    @property
    def n_distinct(self) -> int:
        """The number of different values, without missing cells."""
        return len(self.present())

    def present(self) -> NDArray[Any]:
        """Return the distinct values (codes, for a category) that occur, sorted, without missing cells."""
        if self.kind == "category":
            # Codes are dense, so counting beats sorting.
            return np.flatnonzero(np.bincount(self.values[self.values >= 0], minlength=1))
        return np.unique(self.values[~self.is_missing])

    def take(self, rows: RowIndex) -> Column:
        """Return the column with only these rows (indices, mask or slice)."""
        return replace(self, values=self.values[rows])

    def renamed(self, name: str) -> Column:
        """Return the same cells under another name; it is that of no part of a date."""
        return self if name == self.name else replace(self, name=name, date_part=())

    def cells(self) -> list[Any]:
        """Return the cells to be written again, None where one is missing, as `labels` gives them; dates as text."""
        known = ~self.is_missing
        cells: list[Any] = [None] * len(self)
        for row, label in zip(np.flatnonzero(known), self.take(known).labels().tolist(), strict=True):
            cells[row] = self.format.show(label) if isinstance(self.format, DateFormat) else label
        return cells

    def labels(self) -> NDArray[Any]:
        """Return the cells as a person wrote them: strings, booleans, whole numbers as integers, other floats. Raise
        `InputError` if one is missing: a NumPy array of strings or integers has no word for it."""
        if self.n_missing:
            raise InputError(
                f"{count(self.n_missing, 'cell')} missing, so the column cannot serve as labels",
                column=self.name,
                cure="Remove these rows first.",
            )
        if self.kind == "boolean":
            return self.values.astype(bool)
        if self.kind == "category":
            # A category of no levels has no rows either; np.asarray(()) would be float.
            return np.asarray(self.levels)[self.values] if self.levels else np.empty(0, dtype=np.str_)
        return self.values.astype(np.int64) if is_whole(self.values) else self.values

    def summary(self) -> dict[str, Any]:
        """Return name, kind, missing and distinct cells, and a range or examples, as a dict."""
        counts = {"missing": self.n_missing, "distinct": self.n_distinct}
        return {"name": self.name, "kind": self.shown_kind, **counts, "example": self._example()}

    def _example(self) -> str:
        """Return the range of numbers, or the first few values."""
        if self.kind == "numeric":
            known = self.values[~self.is_missing]
            ends = [known.min(), known.max()] if known.size else []
            show = _short if self.format is None else self.format.show
            return " … ".join(show(float(end)) for end in ends)
        present = self.present()
        if self.kind == "boolean":
            return ", ".join(str(bool(value)) for value in present)
        shown = [clip(str(self.levels[code])) for code in present[:3]]
        return ", ".join(shown) + (", …" if present.size > len(shown) else "")


def boolean_column(name: str, values: NDArray[Any], missing: NDArray[np.bool_] | None = None) -> Column:
    """Return a boolean column from truth values and, where there are any, a mask of missing cells."""
    codes = values.astype(np.int8)
    if missing is not None:
        codes[missing] = MISSING
    return Column(name, "boolean", codes)


def date_column(name: str, days: NDArray[np.float64]) -> Column:
    """Return a column of dates from days since 1970-01-01; they have times where any is not midnight."""
    has_time = bool(np.any(days[~np.isnan(days)] % 1))
    return Column(name, "numeric", days, format=DateFormat(has_time=has_time))


def category_column(name: str, codes: NDArray[Any], levels: Sequence[Any]) -> Column:
    """Return a category column from codes into `levels`, which are sorted and merged where they are equal. Outer spaces
    of text are dropped, as in the ``, `` separated files of the UCI archive; levels of mixed type become text."""
    plain = [_plain(level) for level in levels]
    if not all(isinstance(level, (int, float)) for level in plain):
        plain = [str(level).strip() for level in plain]
    ordered = sorted(set(plain))
    rank = {level: code for code, level in enumerate(ordered)}
    # One entry more than there are levels, so that the code -1 looks up the last entry: missing.
    recode = np.array([*(rank[level] for level in plain), MISSING], dtype=np.int32)
    return Column(name, "category", recode[codes], tuple(ordered))


def _plain(level: object) -> Level:
    """Return a level as plain Python, for JSON: NumPy scalars are unwrapped, anything unusual is its text."""
    value = level.item() if isinstance(level, np.generic) else level
    return value if isinstance(value, (str, int, float)) and not isinstance(value, bool) else str(value)


def text_column(name: str, values: NDArray[Any]) -> Column:
    """Return a category column from a NumPy array of strings; the empty string is a missing cell."""
    levels, codes = np.unique(np.char.strip(values), return_inverse=True)
    n_empty = int("" in levels[:1])  # sorted, so it is the first, and its code becomes that of a missing cell
    return Column(name, "category", codes.astype(np.int32) - np.int32(n_empty), tuple(levels[n_empty:].tolist()))


def column_from_objects(name: str, values: Sequence[Any], *, source: str | None = None) -> Column:
    """Infer a column from Python objects: booleans, else numbers, else dates, else times as hours, else text, also
    where these are mixed. Raise `InputError` if a cell is a list, a dict or another object that is no single value."""
    missing = np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))
    present = [value for value, is_absent in zip(values, missing, strict=True) if not is_absent]
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        truth = np.zeros(len(values), dtype=bool)
        truth[~missing] = present
        return boolean_column(name, truth, missing)
    cells = np.full(len(values), np.nan)
    if all(isinstance(value, (numbers.Real, decimal.Decimal)) for value in present):
        cells[~missing] = [float(value) for value in present]
        return Column(name, "numeric", cells)
    if all(isinstance(value, (datetime.date, np.datetime64)) for value in present):
        instants = np.array([_utc(value) for value in present], dtype="datetime64[us]")
        cells[~missing] = instants.astype(np.int64) / (86_400 * 10**6)
        return date_column(name, cells)
    if all(isinstance(value, datetime.time) for value in present):
        cells[~missing] = [t.hour + t.minute / 60 + (t.second + t.microsecond / 1e6) / 3600 for t in present]
        return Column(name, "numeric", cells, format=NumberFormat(unit="h"))
    for row, value in enumerate(values):
        if not missing[row] and not isinstance(value, (str, numbers.Real, decimal.Decimal, datetime.date)):
            raise InputError(
                Advice(
                    f"the cell {clip(repr(value))} in row ",
                    Row(row),
                    f" is of type {type(value).__name__}; numbers, text, booleans or dates were expected",
                ),
                file=source,
                column=name,
                cure="Split it into several columns, or leave the column out.",
            )
    codes = np.full(len(values), MISSING, dtype=np.int32)
    texts = np.array([str(value) for value in present], dtype=object)
    levels, codes[~missing] = np.unique(texts, return_inverse=True)
    return category_column(name, codes, levels.tolist())


def is_missing(value: object) -> bool:
    """Return whether a Python object stands for a missing cell: None, NaN, NaT, pandas.NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, (float, np.floating, decimal.Decimal)):
        return bool(value != value)
    return isinstance(value, np.datetime64) and bool(np.isnat(value))


def _utc(value: Any) -> np.datetime64:
    """Return a date as NumPy keeps it: aware datetimes are moved to UTC, as pyarrow does."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def as_float(values: NDArray[Any]) -> NDArray[Any]:
    """Return float32 and float64 as they are, not copied; float16 as float32; other real numbers as float64."""
    if values.dtype in (np.float32, np.float64):
        return values
    return values.astype(np.float32 if values.dtype == np.float16 else np.float64)


def is_whole(values: NDArray[Any]) -> bool:
    """Return whether every number is a whole one that float64 holds exactly."""
    return bool(np.all(np.floor(values) == values) and np.all(np.abs(values) <= 2.0**53))


def is_number(text: str | bytes) -> bool:
    """Return whether Python reads a number from the text."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def number_text(number: float) -> str:
    """Return a number as text that has a decimal point in every format: 1.2340, for 1.234 may be more than a thousand.
    Whole ones have all of their digits."""
    text = f"{number:.0f}" if number == number // 1 and abs(number) < _WRITTEN_OUT else repr(number)
    return f"{text}0" if re.fullmatch(r"-?[1-9]\d{0,2}\.\d{3}", text) else text


def _short(number: float) -> str:
    """Return six digits, and of a whole number all that people write out: 1484705, not 1.4847e+06."""
    is_long = 1e6 <= abs(number) < _WRITTEN_OUT and float(number).is_integer()
    return f"{number:.0f}" if is_long else f"{number:.6g}"


def clip(text: str, width: int = 40) -> str:
    """Return a cell short enough for one line of a message."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def count(n: int, noun: str) -> str:
    """Return a number with its noun and verb: '1 cell is', '3 cells are'."""
    return f"{n:,} {noun} is" if n == 1 else f"{n:,} {noun}s are"


def named(names: Sequence[str], most: int = 8) -> str:
    """Return the first few names in quotes: 'a', 'b' and 3 more."""
    return some([repr(name) for name in names], most)


def some(words: Sequence[str], most: int, *, rest: str = "more") -> str:
    """Return the first few words: a, b and 3 more."""
    return ", ".join(words[:most]) + (f" and {len(words) - most:,} {rest}" if len(words) > most else "")
