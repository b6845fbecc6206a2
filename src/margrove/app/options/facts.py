"""Facts about a table, printed before anything is learned from it, and hints about columns that are too good, or too
scattered, to be learned from without a second thought."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.options.table import Reading
from margrove.app.screen.advice import in_shell, warnings_in_shell
from margrove.app.screen.console import Screen
from margrove.data import Column, Table
from margrove.data.columns import named, some
from margrove.data.formats import Format
from margrove.data.inspection import DISTINCT_TEXT, inspect_columns, is_free_text, is_identifier, mean_words
from margrove.errors import DataWarning
from margrove.explanation import counted
from margrove.tree.words import number_text

LEAST_ROWS = 100  # of fewer a column may tell the target by chance
MOST_ROWS = 20_000  # that are looked at
MOST_COLUMNS = 500
MOST_CLASSES = 50
# A column that leaves so few rows wrong, and so small a part of those that the largest class leaves, may be known only
# once the target is: of the Titanic's passengers 'boat' leaves 2 %, the largest class 38 %.
LEAST_WRONG = 0.05
LEAST_PART = 0.1
_BINS = 32  # of a number
_FEW_CLASSES = 10  # so many numbers may well be classes: digits, grades


@dataclass(frozen=True)
class TextFacts:
    """Facts about a column of free text."""

    name: str
    mean_words: float  # of the distinct cells
    n_empty: int

    @property
    def words(self) -> str:
        empty = "" if self.n_empty == 0 else f", {counted(self.n_empty, 'cell')} empty"
        words = counted(round(self.mean_words), "word")
        return f"text {self.name!r}, {words} per cell{empty}: its words become features"


@dataclass(frozen=True)
class Facts:
    """Facts about a labelled table, before anything is learned from it."""

    source: str
    n_rows: int
    kinds: dict[str, int]  # columns of each kind, of those that are learned from
    missing: dict[str, int]  # missing cells of each column that has any
    target: str
    classes: list[tuple[Any, int]]  # each with its rows, the largest first; none where the target is estimated
    numbers: tuple[float, float, float] | None  # least, mean and largest target where it is estimated
    is_number: bool  # whether the target could be read as either
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # identifiers and free text: every learner of the command line goes without
    unread: tuple[str, ...] = ()  # those of them that are free text
    texts: tuple[TextFacts, ...] = ()
    leaks: tuple[str, ...] = ()  # warnings of columns that may be known only once the target is
    hints: tuple[str, ...] = ()  # columns to think about
    format: Format | None = None  # of the target's numbers

    @property
    def advice(self) -> str:
        """Advice where many numbers cannot be predicted as classes; empty for other targets."""
        many = f"No better than the baseline as {len(self.classes):,} classes; try --task regress."
        return many if self.is_number and len(self.classes) > _FEW_CLASSES else ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "rows": self.n_rows,
            "columns": self.kinds,
            "left_out": list(self.left_out),
            "texts": [asdict(text) for text in self.texts],
            "missing_cells": self.missing,
            "target": self.target,
            "task": "classify" if self.numbers is None else "regress",
            "classes": [{"label": label, "rows": rows} for label, rows in self.classes],
            "numbers": self.numbers and dict(zip(("least", "mean", "largest"), self.numbers, strict=True)),
            "notes": list(self.notes),
            "warnings": [*self.leaks, *self.warnings],
            "hints": list(self.hints),
        }


def facts_of(table: Table, *, is_estimated: bool = False, text: tuple[str, ...] = ()) -> Facts:
    """Inspect a labelled table, whose target is a class or is estimated; ``text`` are its columns of free text."""
    assert table.target is not None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        # Of a column that is read as text nothing is odd.
        found = inspect_columns(table.select([name for name in table.names if name not in text]) if text else table)
    classes, numbers = [], None
    if is_estimated:
        values = np.asarray(table.target.values, np.float64)
        numbers = float(values.min()), float(values.mean()), float(values.max())
    else:
        labels, counts = np.unique(table.labels(), return_counts=True)
        classes = sorted(zip(labels.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1])
    left_out = tuple(found["identifier"]) if len(found["identifier"]) < table.n_columns else ()
    is_block = table.sparse is not None or table.block is not None
    learned = table if is_block else table.select([name for name in table.names if name not in left_out])
    kinds, missing = _kinds_and_missing(learned, text)
    return Facts(
        source=table.source,
        n_rows=table.n_rows,
        kinds=kinds,
        missing=missing,
        target=table.target.name,
        classes=classes,
        numbers=numbers,
        is_number=table.target.kind == "numeric",
        notes=tuple(map(in_shell, table.notes)),
        warnings=tuple(warnings_in_shell(caught)),
        left_out=left_out,
        unread=tuple(name for name in left_out if name in found["free text"]),
        texts=tuple(TextFacts(name, mean_words(table[name]), table[name].n_missing) for name in text),
        leaks=() if is_estimated else leaks_of(table, without=text),
        hints=() if is_estimated else hints_of(table, without=text),
        format=table.target.format,
    )


def _kinds_and_missing(table: Table, text: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Count columns by kind, and missing cells by column; a sparse or block table is all numbers."""
    if table.sparse is not None:
        return {"numeric": table.n_columns}, {}
    if table.block is not None:
        absent = np.isnan(table.block).sum(axis=0)
        counts = {name: int(n) for name, n in zip(table.names, absent, strict=True) if n}
        return {"numeric": table.n_columns}, counts
    kinds = Counter("text" if column.name in text else column.shown_kind for column in table)
    gaps = {column.name: column.n_missing for column in table if column.n_missing}
    return dict(kinds), {name: n for name, n in gaps.items() if name not in text}  # a text without a word is no gap


def tell_facts(screen: Screen, facts: Facts, reading: Reading, *, gaps: str = "filled in") -> None:
    """Print what was read; ``gaps`` says what becomes of missing cells."""
    is_embedded = reading.file is None
    origin = " (embedded; no FILE was given)" if is_embedded else ""
    screen.say(f"Read {facts.source}{origin}", style="bold")
    names = {"numeric": "numeric", "category": "categorical", "boolean": "yes/no", "text": "text"}
    counts = [counted(n, "date") if kind == "date" else f"{n:,} {names[kind]}" for kind, n in facts.kinds.items()]
    kinds = ", ".join(counts)
    n_columns = sum(facts.kinds.values())
    identifiers = [name for name in facts.left_out if name not in facts.unread]
    without = f"; identifier{'s' if len(identifiers) > 1 else ''} left out: {named(identifiers)}" if identifiers else ""
    without += f"; free text left out: {named(facts.unread)}" if facts.unread else ""
    screen.say(f"{facts.n_rows:,} rows, {counted(n_columns, 'feature column')}: {kinds}{without}", indent=2)
    if facts.missing:
        cells = counted(sum(facts.missing.values()), "missing cell")
        screen.say(f"{cells} in {counted(len(facts.missing), 'column')}, {gaps}", indent=2)
    for text in facts.texts:
        screen.say(text.words, indent=2)
    if facts.numbers is not None:
        least, mean, largest = (number_text(number, facts.format) for number in facts.numbers)
        target = f"a number from {least} to {largest} with mean {mean} (regression)"
    else:
        shown = some([f"{label} ({rows:,})" for label, rows in facts.classes], 6)
        target = f"{len(facts.classes)} classes (rows): {shown}"
    screen.say(f"target {facts.target!r}, {target}", indent=2)
    for note in () if is_embedded else facts.notes:
        screen.say(note, indent=2, style="dim")
    for hint in facts.hints:
        screen.say(hint, indent=2, style="yellow")
    for leak in facts.leaks:
        screen.warn(leak, is_essential=True)
    for warning in facts.warnings:
        screen.warn(warning)


def _suspects(table: Table, without: tuple[str, ...]) -> list[Column]:
    """Return the columns to look at, but those in ``without``; none of numbers alone, sparse or in a block."""
    if table.sparse is not None or table.block is not None or table.n_rows < LEAST_ROWS:
        return []
    return [column for column in table if column.name not in without and not is_identifier(column)]


def leaks_of(table: Table, *, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a warning of each column that alone tells the classes nearly always."""
    columns, target = _suspects(table, without)[:MOST_COLUMNS], table.target
    if not columns or target is None or (target.kind == "numeric" and target.n_distinct > MOST_CLASSES):
        return ()
    step = -(-table.n_rows // MOST_ROWS)
    classes, codes = np.unique(target.values[::step], return_inverse=True)
    if not 2 <= len(classes) <= MOST_CLASSES:
        return ()
    codes = codes.astype(np.int64)
    wrong = 1 - np.bincount(codes).max() / len(codes)
    hints = []
    for column in columns:
        missed = share_wrong(_groups(column.take(slice(None, None, step))), codes)
        if missed <= min(LEAST_WRONG, LEAST_PART * wrong):
            hints.append(
                f"{column.name!r} alone predicts {target.name!r} in {100 * (1 - missed):.1f} % of the rows. Is it "
                f"known at prediction time? If not, leave it out: --without {shlex.quote(column.name)}"
            )
    return tuple(hints)


def share_wrong(groups: NDArray[np.int64], codes: NDArray[np.int64]) -> float:
    """Return the share of rows whose class is not that of most other rows of their group: each row is left out in turn,
    so that a value of its own tells nothing. Where two classes are as many, half are wrong."""
    n_classes = int(codes.max()) + 1
    counts = np.bincount(groups * n_classes + codes, minlength=(int(groups.max()) + 1) * n_classes)
    ordered = np.sort(counts.reshape(-1, n_classes), axis=1)
    most, second = ordered[:, -1], ordered[:, -2]
    lead = most - second
    right = np.where(lead >= 2, most, np.where((lead == 1) & (most > 1), most / 2, 0.0))
    return float(1 - right.sum() / len(codes))


def _groups(column: Column) -> NDArray[np.int64]:
    """Return the group of each row: its level, or of a number its quantile; missing cells are one more."""
    if column.kind != "numeric":
        return column.values.astype(np.int64) + 1
    is_missing = column.is_missing
    present = column.values[~is_missing]
    cuts = np.unique(np.quantile(present, np.linspace(0, 1, _BINS + 1)[1:-1])) if len(present) else present
    return np.where(is_missing, 0, 1 + np.searchsorted(cuts, column.values, side="right")).astype(np.int64)


def hints_of(table: Table, *, without: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return a hint, one line, that names the categories with a value for nearly every row; often none."""
    found = []
    for column in _suspects(table, without):
        n_present = len(column) - column.n_missing
        if column.kind != "category" or n_present < LEAST_ROWS or is_free_text(column):
            continue
        if column.n_distinct > DISTINCT_TEXT * n_present:
            found.append(f"{column.name!r} ({column.n_distinct:,} in {n_present:,} rows)")
    return (f"Columns with so many distinct values rarely help on new rows: {', '.join(found)}",) if found else ()
