"""A table as the command line reads it (`Reading`), and the way from it to numbers (`TablePreparation`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.options.menu import Choice, choices
from margrove.data import Table, TableEncoder, load_penguins, read_table
from margrove.data.dialect import DEFAULT_MISSING
from margrove.data.inference import Kinds
from margrove.data.inspection import is_identifier
from margrove.data.readers import read_with_cells
from margrove.data.source import split_part
from margrove.data.target import Target, check_target, quantity_words
from margrove.data.text import TEXT_FEATURES, check_text_columns
from margrove.errors import InputError, ParameterError, check_choice

STANDARD_STREAM = "-"
_LARGEST_NUMBER = 1e100  # of a target: sums of squares stay finite
_LEAST_SQUARE = 1e-290  # of the range of a target: its share of a sum is still a number
# What may stand behind the name of a column in --date and --number, and the kind that it gives.
_WAYS = {("date", order): order for order in ("dmy", "mdy", "ymd")}
_WAYS |= {("number", "."): "decimal_point", ("number", ","): "decimal_comma"}
_COMPRESSIONS = (".gz", ".bz2", ".xz")


@dataclass(frozen=True)
class Reading:
    """The options about the table."""

    file: str | None = None  # a path, or ``-`` for standard input; None: the embedded penguins
    target: str | None = None  # the column to be predicted, or that a saved model predicts
    missing: tuple[str, ...] = ()  # words for a missing cell, besides the usual ones
    has_header: bool = True  # False: the first line of a delimited file is a row; True: it is looked at and decided
    delimiter: str = "auto"
    encoding: str = "auto"
    skip: int = 0  # lines at the top to leave out
    header_row: int | None = None  # the line that holds the column names, counted from 1; None: found
    drop_unlabelled: bool = False  # leave out rows without a target
    without: tuple[str, ...] = ()  # columns to leave out
    kinds: Kinds = field(default_factory=dict)  # of columns, where they are not to be inferred
    held: Table | None = None  # a table in memory, in place of a file
    cluster: str | None = None  # the address of the Dask scheduler whose workers read the files, or "local"

    def labelled(self) -> Table:
        """Return the table with a target that can be learned as classes."""
        table = self._with_target()
        check_target(table)
        return table

    def learnable(self, task: str | None, *, can_estimate: bool) -> tuple[Table, bool]:
        """Return the table with the parts of its dates, and whether its target is to be estimated: by ``task``, or as
        it looks if a learner can."""
        table = self._with_target(has_parts=True)
        is_estimated = task == "regress" or (task is None and can_estimate and quantity_words(table) is not None)
        if is_estimated:
            _check_spread(table, _check_numbers(table, "regress"))
        else:
            check_target(table, is_class=task == "classify")
        return table, is_estimated

    def valued(self) -> tuple[Table, NDArray[np.float64]]:
        """Return the table, and the numbers of its target, for a regression."""
        table = self._with_target()
        return table, _check_numbers(table)

    def unlabelled(self) -> Table:
        """Return the table with every column among the features."""
        if self.file is None:
            penguins = self._penguins()
            assert penguins.target is not None
            return Table([*penguins.columns, penguins.target], source=penguins.source)
        return self._read(False)

    def refuse_folder(self) -> None:
        """Raise `InputError` if the file is a folder; it may be one of pictures, which another command takes."""
        if self.file == "":
            raise ParameterError("the name of the table is ''; it must be that of a file, or '-'.")
        if self.file is not None and Path(self.file).is_dir():
            pictures = shlex.join(["margrove", "images", self.file])
            raise InputError(
                "is a folder, not a table",
                file=self.file,
                cure=f"Name a file in it. If it contains pictures: {pictures}",
            )

    def unlabelled_with(self, columns: Sequence[str] | None) -> tuple[Table, dict[str, list[Any]]]:
        """Return the same, and the cells of some columns (None: of all) as they are written."""
        if self.file is None:
            table = self.unlabelled()
            return table, {name: table[name].cells() for name in (table.names if columns is None else columns)}
        return read_with_cells(self.file, columns, **self.format())

    @property
    def stem(self) -> str:
        """The file's name without its extensions: the name of the model made from it."""
        if self.file is None:
            return "penguins"
        if self.file == STANDARD_STREAM:
            return "model"
        path = Path(split_part(self.file)[0])
        if path.suffix in _COMPRESSIONS:
            path = path.with_suffix("")
        if not self.is_pattern:
            return path.stem
        # Of a pattern, what all names have in common, or the folder: data/part-*.csv is "part", data/*.csv "data".
        common = re.split(r"[*?\[]", path.stem)[0].rstrip(" -_.")
        return common or re.split(r"[*?\[]", path.parent.name)[0] or "model"

    @property
    def is_pattern(self) -> bool:
        """The name stands for all files that match it."""
        return self.file is not None and re.search(r"[*?\[]", self.file) is not None and not Path(self.file).exists()

    @property
    def of_new_rows(self) -> Reading:
        """The same for a file of other rows, which nobody has named yet; of embedded penguins there are no others."""
        if self.file is None or self.file == STANDARD_STREAM:
            return self
        name, part = split_part(self.file)
        path = Path(name)
        ending = Path(path.stem).suffix if path.suffix in _COMPRESSIONS else path.suffix
        return replace(self, file=f"NEW{ending}" if part is None else f"NEW{ending}::{part}")

    def command(self, verb: str, model: str) -> str:
        """Return the command line that reads this table again in the same way, for the model."""
        words = ["margrove", verb, model, *([self.file] if self.file is not None else [])]
        for missing in self.missing:
            words += ["--missing", missing]
        words += [] if self.has_header else ["--no-header"]
        words += [] if self.delimiter == "auto" else ["--delimiter", self.delimiter]
        words += [] if self.encoding == "auto" else ["--encoding", self.encoding]
        words += ["--skip", str(self.skip)] if self.skip else []
        words += [] if self.header_row is None else ["--header-row", str(self.header_row)]
        for name, kind in self.kinds.items() if verb != "predict" else ():  # a model knows its columns, not the target
            option, how = next((way for way, known in _WAYS.items() if known == kind), (kind, ""))
            words += [f"--{option}", f"{name}:{how}" if how else name]
        words += ["--drop-unlabelled"] if self.drop_unlabelled and verb == "certify" else []
        words += ["--cluster", self.cluster] if self.cluster is not None and verb == "certify" else []
        return shlex.join(words)

    def _with_target(self, *, has_parts: bool = False) -> Table:
        table = self.held
        if table is None:
            table = self._penguins() if self.file is None else self._read(self.target)
        whole = table.with_date_parts() if has_parts else table
        for name in self.without:
            if table.target is not None and table.target.name == name:
                problem = f"--without {name}: this column is the target"
                raise InputError(problem, file=table.source, cure="Choose another target: --target.")
            whole[name]  # raises if there is none, naming the columns there are
        if self.without:  # a date goes with its parts, a part alone
            whole = table.select([name for name in table.names if name not in self.without])
            whole = whole.with_date_parts(without=self.without) if has_parts else whole
        if self.without and not whole.names:
            problem = "--without names every column"
            raise InputError(problem, file=table.source, cure="Leave one to learn from.")
        return whole

    def _penguins(self) -> Table:
        penguins = load_penguins()
        assert penguins.target is not None
        if self.target not in (None, penguins.target.name):
            raise InputError(
                f"no FILE was given, and the target of the embedded {penguins.source} is {penguins.target.name!r}, "
                f"not {self.target!r}",
                cure="Give a FILE.",
            )
        return penguins

    def _read(self, target: Target) -> Table:
        self.refuse_folder()
        return read_table(self.file, target=target, drop_unlabelled=self.drop_unlabelled, **self.format())

    def format(self) -> dict[str, Any]:
        """Return the arguments of `read_table` about the file's format."""
        header, missing = "auto" if self.has_header else False, (*DEFAULT_MISSING, *self.missing)
        same = {name: getattr(self, name) for name in ("delimiter", "encoding", "skip", "header_row", "kinds")}
        return {"header": header, "missing": missing, **same}


def kinds_of_columns(category: Sequence[str], number: Sequence[str], date: Sequence[str]) -> dict[str, str]:
    """Return the kinds that are given by ``--category``, ``--number`` and ``--date``; `ParameterError` if a column is
    given two."""
    kinds: dict[str, str] = {}
    for kind, columns in (("category", category), ("number", number), ("date", date)):
        for column in columns:
            name, _, how = column.rpartition(":")
            given = (name, _WAYS[kind, how]) if name and (kind, how) in _WAYS else (column, kind)
            if given[0] in kinds:
                raise ParameterError(f"the column {given[0]!r} is given two kinds, {kinds[given[0]]} and {given[1]}.")
            kinds[given[0]] = given[1]
    return kinds


def _check_numbers(table: Table, task: str | None = None) -> NDArray[np.float64]:
    target = table.target
    if target is None or target.kind != "numeric":
        name = None if target is None else target.name
        what = "this model" if task is None else f"a regression (--task {task}, or a --metric of numbers)"
        raise InputError(
            f"the targets are not numbers, and {what} predicts numbers",
            file=table.source,
            column=name,
            cure="Choose another target: --target.",
        )
    numbers = np.asarray(target.values, dtype=np.float64)
    largest = float(np.nanmax(np.abs(numbers), initial=0.0))
    if largest > _LARGEST_NUMBER:
        problem = f"contains {largest:.3g}, whose square is too large for floating point"
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
        cure = "Choose another target: --target; or add rows with other values."
        raise InputError(problem, file=table.source, column=column, cure=cure)
    if (high - low) * (high - low) < _LEAST_SQUARE:
        problem = f"ranges from {low:.3g} to {high:.3g}: the squares of such differences are 0 in floating point"
        raise InputError(problem, file=table.source, column=column, cure="Multiply the target by a power of ten.")


@dataclass(frozen=True)
class TablePreparation:
    """The options of the encoder; `ParameterError` if a column is named twice, or there is no such choice."""

    text: tuple[str, ...] = ()  # columns of free text
    features: str = TEXT_FEATURES[0]  # what becomes of their words
    is_scaled: bool = True  # numbers are standardised

    def __post_init__(self) -> None:
        for name in self.text:
            if self.text.count(name) > 1:
                raise ParameterError(f"--text {name} is given twice.")
        check_choice("--text-features", self.features, TEXT_FEATURES)
        if not self.text and self.features != TEXT_FEATURES[0]:
            raise ParameterError(f"--text-features {self.features} requires --text, which names the column.")

    def encoder(self) -> TableEncoder:
        return TableEncoder(text=list(self.text) or None, text_features=self.features, standardise=self.is_scaled)

    def for_table(self, learner: Choice, table: Table) -> TablePreparation:
        """Return the same for this table: a learner that keeps sparse numbers gets them as they are."""
        return replace(self, is_scaled=False) if learner.keeps_sparse and table.sparse is not None else self

    def check_learner(self, learner: Choice) -> None:
        """Refuse text where there is no encoder in front of the learner."""
        if self.text and learner.takes_tables:
            able = ", ".join(name for name, other in choices().items() if not other.takes_tables)
            raise ParameterError(
                f"--text turns words into numeric features, and {learner.name} takes columns as they are. "
                f"Learners that take text: --model {able}."
            )

    def check_table(self, table: Table, without: tuple[str, ...] = ()) -> None:
        """Refuse, before anything is learned, columns that are not there or hold no text."""
        for name in self.text:
            if name in without:
                raise InputError(
                    "is named by --text and by --without", file=table.source, column=name, cure="Remove one of them."
                )
        check_text_columns(table, self.text)

    def less_text(self, table: Table) -> Table:
        """Return the table without its columns of text, for a learner that cannot take them."""
        if not self.text:
            return table
        names = [name for name in table.names if name not in self.text]
        if not names:
            raise InputError("all columns are text", file=table.source, cure="Choose a learner that takes text.")
        return table.select(names)


AS_USUAL = TablePreparation()


def table_for(learner: Choice, table: Table) -> Table:
    """Return the table for a learner: without an encoder, which would do that, columns that name the rows go."""
    if not learner.takes_tables or table.sparse is not None or table.block is not None:
        return table
    names = [column.name for column in table if not is_identifier(column)]
    if not names:
        problem = "no column is left to learn from: each is an identifier"
        raise InputError(problem, file=table.source, cure="Add columns whose values occur in several rows.")
    return table.select(names) if len(names) < table.n_columns else table
