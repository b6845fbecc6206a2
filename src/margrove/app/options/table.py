"""A table as the command line reads it: the options, the reading, and the facts that are printed."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.options.hints import hints_of
from margrove.app.screen.advice import warnings_in_shell
from margrove.app.screen.console import Screen
from margrove.data import Table, load_penguins, read_table
from margrove.data.columns import named, some
from margrove.data.dialect import DEFAULT_MISSING
from margrove.data.inspection import inspect_columns, mean_words
from margrove.data.readers import read_with_cells
from margrove.data.target import Target, check_target, quantity_words
from margrove.errors import DataWarning, InputError
from margrove.explanation import counted

STANDARD_STREAM = "-"
_LARGEST_NUMBER = 1e100  # of a target: sums of squares stay finite
_LEAST_SQUARE = 1e-290  # of the range of a target: its share of a sum is still a number
_COMPRESSIONS = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class Reading:
    """The options about the table."""

    file: str | None = None  # a path, or ``-`` for standard input; None: the embedded penguins
    target: str | None = None  # the column to be predicted
    missing: tuple[str, ...] = ()  # words for a missing cell, besides the usual ones
    has_header: bool = True  # False: the first line of a delimited file is a row; True: it is looked at and decided
    delimiter: str = "auto"
    encoding: str = "auto"
    drop_unlabelled: bool = False  # leave out rows without a target
    without: tuple[str, ...] = ()  # columns to leave out

    def labelled(self) -> Table:
        """Return the table with a target that can be learned as classes."""
        table = self._with_target()
        check_target(table)
        return table

    def learnable(self, task: str | None, *, can_estimate: bool) -> tuple[Table, bool]:
        """Return the table, and whether its target is to be estimated: by ``task``, or as it looks if a learner can."""
        table = self._with_target()
        is_estimated = task == "regress" or (task is None and can_estimate and quantity_words(table) is not None)
        if is_estimated:
            _check_spread(table, _check_numbers(table, "regress"))
        else:
            check_target(table, is_class=task == "classify")
        return table, is_estimated

    def valued(self) -> tuple[Table, NDArray[np.float64]]:
        """Return the table, and the numbers of its target, for a regression."""
        table = self._penguins() if self.file is None else self._read(self.target)
        return table, _check_numbers(table)

    def unlabelled(self) -> Table:
        """Return the table with every column among the features."""
        if self.file is None:
            penguins = load_penguins()
            assert penguins.target is not None
            return Table([*penguins.columns, penguins.target], source=penguins.source)
        return self._read(False)

    def refuse_folder(self) -> None:
        """Raise `InputError` if the file is a folder; it may be one of pictures, which another command takes."""
        if self.file is not None and Path(self.file).is_dir():
            pictures = shlex.join(["margrove", "images", self.file])
            raise InputError(
                "is a folder, and a table was wanted",
                file=self.file,
                cure=f"Name a file in it; where it holds pictures: {pictures}",
            )

    def unlabelled_with(self, columns: Sequence[str] | None) -> tuple[Table, dict[str, list[Any]]]:
        """Return the same, and the cells of some columns (None: of all) as they are written."""
        if self.file is None:
            table = self.unlabelled()
            return table, {name: table[name].cells() for name in (table.names if columns is None else columns)}
        return read_with_cells(self.file, columns, **self._format())

    @property
    def stem(self) -> str:
        """The file's name without its extensions: the name of the model made from it."""
        if self.file is None:
            return "penguins"
        if self.file == STANDARD_STREAM:
            return "model"
        path = Path(self.file)
        if path.suffix in _COMPRESSIONS:
            path = path.with_suffix("")
        return path.stem

    @property
    def of_new_rows(self) -> Reading:
        """The same for a file of other rows, which nobody has named yet; of embedded penguins there are no others."""
        if self.file is None or self.file == STANDARD_STREAM:
            return self
        path = Path(self.file)
        ending = Path(path.stem).suffix if path.suffix in _COMPRESSIONS else path.suffix
        return replace(self, file=f"NEW{ending}")

    def command(self, verb: str, model: str) -> str:
        """Return the command line that reads this table again in the same way, for the model."""
        words = ["margrove", verb, model, *([self.file] if self.file is not None else [])]
        for missing in self.missing:
            words += ["--missing", missing]
        words += [] if self.has_header else ["--no-header"]
        words += [] if self.delimiter == "auto" else ["--delimiter", self.delimiter]
        words += [] if self.encoding == "auto" else ["--encoding", self.encoding]
        words += ["--drop-unlabelled"] if self.drop_unlabelled and verb == "certify" else []
        return shlex.join(words)

    def _with_target(self) -> Table:
        table = self._penguins() if self.file is None else self._read(self.target)
        for name in self.without:
            table = _less(table, name)
        return table

    def _penguins(self) -> Table:
        penguins = load_penguins()
        assert penguins.target is not None
        if self.target not in (None, penguins.target.name):
            raise InputError(
                f"no FILE was given, and the target of the embedded {penguins.source} is {penguins.target.name!r}, "
                f"not {self.target!r}",
                cure="Give the FILE.",
            )
        return penguins

    def _read(self, target: Target) -> Table:
        self.refuse_folder()
        return read_table(self.file, target=target, drop_unlabelled=self.drop_unlabelled, **self._format())

    def _format(self) -> dict[str, Any]:
        header, missing = "auto" if self.has_header else False, (*DEFAULT_MISSING, *self.missing)
        return {"header": header, "missing": missing, "delimiter": self.delimiter, "encoding": self.encoding}


def _check_numbers(table: Table, task: str | None = None) -> NDArray[np.float64]:
    """Return the target's numbers."""
    target = table.target
    if target is None or target.kind != "numeric":
        name = None if target is None else target.name
        asks = "this model estimates numbers" if task is None else f"--task {task} estimates numbers"
        raise InputError(
            f"the targets are no numbers, and {asks}", file=table.source, column=name, cure="Name another: --target."
        )
    numbers = np.asarray(target.values, dtype=np.float64)
    largest = float(np.nanmax(np.abs(numbers), initial=0.0))
    if largest > _LARGEST_NUMBER:
        problem = f"holds {largest:.3g}, whose square is more than a number of a computer's can be"
        raise InputError(problem, file=table.source, column=target.name, cure="Divide the target by a power of ten.")
    return numbers


def _check_spread(table: Table, numbers: NDArray[np.float64]) -> None:
    """Refuse numbers from which nothing can be learned: all the same, or as good as that in floating point."""
    known = numbers[~np.isnan(numbers)]
    column = None if table.target is None else table.target.name
    if len(known) == 0:
        return
    low, high = float(known.min()), float(known.max())
    if low == high:
        problem = f"the target is {low:g} in every row: there is nothing to learn"
        cure = "Choose another target: --target; or add rows that differ."
        raise InputError(problem, file=table.source, column=column, cure=cure)
    if (high - low) * (high - low) < _LEAST_SQUARE:
        problem = f"goes from {low:.3g} to {high:.3g}: the squares of such differences are 0 to a computer"
        raise InputError(problem, file=table.source, column=column, cure="Multiply the target by a power of ten.")


def _less(table: Table, name: str) -> Table:
    if table.target is not None and table.target.name == name:
        raise InputError(f"{name!r} is the target", file=table.source, cure="Name another target: --target.")
    if name not in table:
        table[name]  # raises, naming the columns there are
    return table.without(name)


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
        return f"text {self.name!r}, {words} in a cell{empty}: its words become numbers"


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
    left_out: tuple[str, ...] = ()  # columns that name the rows: every learner of the command line goes without
    texts: tuple[TextFacts, ...] = ()
    hints: tuple[str, ...] = ()  # columns to think about

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
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
            "warnings": list(self.warnings),
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
        values = _check_numbers(table)
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
        notes=table.notes,
        warnings=tuple(warnings_in_shell(caught)),
        left_out=left_out,
        texts=tuple(TextFacts(name, mean_words(table[name]), table[name].n_missing) for name in text),
        hints=() if is_estimated else hints_of(table, without=text),
    )


def _kinds_and_missing(table: Table, text: tuple[str, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Count columns by kind, and missing cells by column; a sparse or block table is all numbers."""
    if table.sparse is not None:
        return {"numeric": table.n_columns}, {}
    if table.block is not None:
        absent = np.isnan(table.block).sum(axis=0)
        counts = {name: int(n) for name, n in zip(table.names, absent, strict=True) if n}
        return {"numeric": table.n_columns}, counts
    kinds = Counter("text" if column.name in text else column.kind for column in table)
    gaps = {column.name: column.n_missing for column in table if column.n_missing}
    return dict(kinds), {name: n for name, n in gaps.items() if name not in text}  # a text without a word is no gap


def tell_facts(screen: Screen, facts: Facts, reading: Reading, *, gaps: str = "filled in") -> None:
    """Print what was read; ``gaps`` says what becomes of missing cells."""
    is_embedded = reading.file is None
    origin = " (embedded; no FILE was given)" if is_embedded else ""
    screen.say(f"Read {facts.source}{origin}", style="bold")
    names = {
        "numeric": ("number", "numbers"),
        "category": ("category", "categories"),
        "boolean": ("yes/no", "yes/no"),
        "text": ("text", "texts"),
    }
    kinds = ", ".join(f"{n:,} {names[kind][n > 1]}" for kind, n in facts.kinds.items())
    n_columns = sum(facts.kinds.values())
    without = f"; left out: {named(facts.left_out)}" if facts.left_out else ""
    screen.say(f"{facts.n_rows:,} rows, {counted(n_columns, 'column')} to learn from: {kinds}{without}", indent=2)
    if facts.missing:
        cells = counted(sum(facts.missing.values()), "missing cell")
        screen.say(f"{cells} in {counted(len(facts.missing), 'column')}, {gaps}", indent=2)
    for text in facts.texts:
        screen.say(text.words, indent=2)
    screen.say(f"target {facts.target!r}, {_target_words(facts)}", indent=2)
    for note in () if is_embedded else facts.notes:
        screen.say(note, indent=2, style="dim")
    for hint in facts.hints:
        screen.say(hint, indent=2, style="yellow")
    for warning in facts.warnings:
        screen.warn(warning)


def _target_words(facts: Facts) -> str:
    if facts.numbers is not None:
        least, mean, largest = (f"{number:.6g}" for number in facts.numbers)
        return f"a number from {least} to {largest}, {mean} on average: it is estimated (a regression)"
    shown = some([f"{label} ({rows:,})" for label, rows in facts.classes], 6)
    return f"{len(facts.classes)} classes (rows): {shown}"
