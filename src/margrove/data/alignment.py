"""Match the columns of a new table to those of training: by name, in any order, each in its trained kind."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from margrove.advice import Advice, InPython, Row
from margrove.data.columns import MISSING, Column, Level, boolean_column, clip, named, some
from margrove.data.dates import date_part
from margrove.data.formats import DateFormat, EmptyFormat, NumberFormat, format_from_json, format_to_json
from margrove.data.rows import Matrix
from margrove.data.table import Table
from margrove.data.written import is_no_value, unit_name
from margrove.errors import DataWarning, InputError, UnseenCategoryWarning, did_you_mean, level_of_caller

UNSEEN = -2  # the code of a category that training did not know


def check_names(table: Table, wanted: Sequence[str], *, known: Sequence[str] = ()) -> None:
    """Refuse a table that lacks a column of those wanted, and warn of columns that will be ignored. Those ``known``,
    which training saw and left out, may be there or not."""
    absent = [name for name in wanted if name not in table]
    if absent and not table.absent_is_zero:
        given = [column.name for column in table if not column.date_part]
        raise InputError(
            f"{len(absent)} of the {len(wanted)} training columns "
            f"{'is' if len(absent) == 1 else 'are'} missing: {named(absent)}",
            file=table.source,
            cure=f"{did_you_mean(absent[0], given)}The table's columns are {named(given)}.",
        )
    expected = {*wanted, *known}
    extra = [name for name in table.names if name not in expected]
    if extra:
        message = f"{table.source}: columns that the model does not use are ignored: {named(extra)}."
        warnings.warn(message, DataWarning, stacklevel=4)


def with_trained_parts(table: Table, descriptions: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table with those parts of dates that the descriptions have and that it lacks (see `dates`), and
    without dates that serve for nothing else."""
    known = {description["name"]: description for description in descriptions}
    added, used = [], set()
    for name, description in known.items():
        origin, part = description.get("date_part") or ("", "")
        if part and name not in table and origin in table:
            form = known.get(origin, {}).get("format", format_to_json(DateFormat()))
            added.append(date_part(as_trained(table, {"name": origin, "kind": "numeric", "format": form}), part))
            used.add(origin)
    whole = table.with_columns(added)
    return whole.select([name for name in whole.names if name in known or name not in used]) if added else table


def as_trained(table: Table, description: Mapping[str, Any]) -> Column:
    """Return the table's column of that name, in the kind and with the levels of its description; a label that is not
    among these is `UNSEEN`. Raise `InputError` if a cell cannot be of the trained kind, such as a word for a number."""
    name, kind = description["name"], description["kind"]
    if name not in table:  # `check_names` let it pass: absent is zero
        return Column(name, "numeric", np.zeros(table.n_rows))
    column = table[name]
    if kind == "numeric":
        form = format_from_json(description.get("format"))
        if isinstance(form, EmptyFormat):  # nothing was learned from the column, so that anything may stand there
            return Column(name, "numeric", np.full(len(column), np.nan))
        return Column(name, "numeric", _numbers(column, table.source, form), format=form)
    if kind == "boolean":
        return column if column.kind == "boolean" else _booleans(column, table.source)
    if kind == "text":
        known, codes = _as_levels(column)
        return Column(name, "category", codes, tuple(_number_text(level) for level in known))
    levels = description["levels"]
    return Column(name, "category", _codes(column, levels), tuple(levels))


def tell_unseen(table: Table, columns: Sequence[Column], how: str, consequence: str) -> None:
    """Warn of all cells of categories that training did not know, with their counts, or raise an error (``how``);
    ``columns`` are those of the table, as `as_trained` gave them, and ``consequence`` ends the sentence."""
    if how == "ignore":
        return
    found = []
    for column in columns:
        if column.kind != "category" or not np.any(column.values == UNSEEN):
            continue
        given = table[column.name].take(column.values == UNSEEN)
        values, counts = np.unique(given.labels(), return_counts=True)
        found += [(column.name, str(value), int(times)) for value, times in zip(values, counts, strict=True)]
    if not found:
        return
    total = sum(times for _, _, times in found)
    shown = some([f"{name}={clip(value)!r} ({times:,})" for name, value, times in found], 6)
    message = f"{total:,} {'cell' if total == 1 else 'cells'} of categories unseen in training: {shown}"
    if how == "error":
        or_else = InPython(", or set unseen='ignore' to treat them as none of the known categories")
        cure = Advice("Correct them", or_else, ".")
        raise InputError(message, file=table.source, column=found[0][0], cure=cure)
    warnings.warn(f"{message}; {consequence}.", UnseenCategoryWarning, stacklevel=level_of_caller())


def sparse_as_trained(table: Table, names: Sequence[str]) -> Matrix:
    """Return the CSR matrix of a sparse table with exactly these columns, in this order; absent ones are zero."""
    if table.names == tuple(names):
        return table.sparse
    place = {name: j for j, name in enumerate(names)}
    new_place = np.array([place.get(name, -1) for name in table.names], dtype=np.int64)
    cells = table.sparse.tocoo()
    columns = new_place[cells.col]
    kept = columns >= 0
    entries = (cells.data[kept], (cells.row[kept], columns[kept]))
    return scipy.sparse.csr_matrix(entries, shape=(table.n_rows, len(names)))


def _numbers(column: Column, source: str, form: NumberFormat | DateFormat | None) -> NDArray[Any]:
    if column.kind == "numeric":
        units = [f.unit if isinstance(f, NumberFormat) else "" for f in (column.format, form)]
        if (all(units) or units[0] == "%") and unit_name(units[0]) != unit_name(units[1]):
            trained = f"in {units[1]}" if units[1] else "without a unit"
            problem = f"the numbers are in {units[0]}, and in training they were {trained}"
            raise InputError(problem, file=source, column=column.name, cure=f"Write them {trained}.")
        return column.values
    if column.kind == "boolean":
        cells: NDArray[Any] = np.where(column.values == MISSING, np.nan, column.values)
        return cells
    numbers = np.empty(len(column.levels) + 1)
    numbers[MISSING] = np.nan
    for code, level in enumerate(column.levels):
        numbers[code] = _finite_number(level) if form is None else form.parse(str(level))
        is_word = np.isnan(numbers[code]) and not is_no_value(str(level))
        if is_word and np.any(column.values == code):  # not one that was declared and does not occur
            what = "a date" if isinstance(form, DateFormat) else "a number"
            such = "" if form is None else f", such as {form.sample}"
            raise _not(column, code, f"{what}, as the column was in training{such}", source)
    parsed: NDArray[Any] = numbers[column.values]
    return parsed


def _finite_number(level: Level) -> float:
    """Return the number a level is or spells, as files spell it, else NaN. Python's own "inf" and "1_000" are none."""
    try:
        number = math.nan if "_" in str(level) else float(level)
    except (ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def _booleans(column: Column, source: str) -> Column:
    truths = {"true": 1, "false": 0, "1": 1, "0": 0, "1.0": 1, "0.0": 0}
    levels, codes = _as_levels(column)
    truth = np.array([*(truths.get(str(level).lower(), UNSEEN) for level in levels), MISSING])[codes]
    if np.any(truth == UNSEEN):
        code = codes[int(np.argmax(truth == UNSEEN))]
        as_category = Column(column.name, "category", codes, tuple(levels))
        raise _not(as_category, int(code), "true or false, as the column was in training", source)
    return boolean_column(column.name, truth == 1, truth == MISSING)


def _codes(column: Column, trained: Sequence[Level]) -> NDArray[np.int32]:
    if not trained:  # empty in training, as above
        return np.full(len(column), MISSING, dtype=np.int32)
    levels, codes = _as_levels(column)
    place: dict[Any, int] = {level: code for code, level in enumerate(trained)}
    if trained and isinstance(trained[0], str):
        if column.kind == "boolean":
            # A file whose cells all are true or false was read as booleans, and the case was lost.
            place |= {level.lower(): code for code, level in enumerate(trained) if isinstance(level, str)}
            levels = [str(level).lower() for level in levels]
        else:
            levels = [_number_text(level) for level in levels]
    recode = np.array([*(place.get(level, UNSEEN) for level in levels), MISSING], dtype=np.int32)
    trained_codes: NDArray[np.int32] = recode[codes]
    return trained_codes


def _as_levels(column: Column) -> tuple[list[Any], NDArray[Any]]:
    """Return the distinct values of a column of any kind, and codes into them."""
    if column.kind == "category":
        return list(column.levels), column.values
    if column.kind == "boolean":
        return [False, True], column.values
    present = ~np.isnan(column.values)
    codes = np.full(len(column), MISSING, dtype=np.int32)
    levels, codes[present] = np.unique(column.values[present], return_inverse=True)
    return levels.tolist(), codes


def _number_text(level: Level) -> str:
    """Return a number as a file would have it: whole ones without a decimal point."""
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


def _not(column: Column, code: int, wanted: str, source: str) -> InputError:
    row = Row(int(np.argmax(column.values == code)))
    return InputError(
        Advice(f"{clip(str(column.levels[code]))!r} in row ", row, f" is not {wanted}"),
        file=source,
        column=column.name,
        cure=Advice("Correct the cell, or ", InPython("set it to None", "leave it empty"), "."),
    )
