"""A table: named columns of equal length, one of which may be the target.

A table keeps its cells in the form they came in, which is one of three:

- *columns*, each with its own kind;
- one *block*, a 2-D float array that was given as such and is not copied;
- one *sparse* matrix in CSR form, which is never made dense.

The last two have numeric columns only, which are made on demand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from html import escape
from itertools import islice
from types import EllipsisType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.data.columns import Column, RowIndex, clip, named, some
from margrove.data.rows import Matrix
from margrove.errors import InputError, did_you_mean

MOST_SHOWN = 30  # columns in a notebook: more would fill the page, and a sparse column is made dense to be summed up

MOST_PRINTED = 10  # rows and columns that `print` shows


class Table:
    """Named columns of equal length, and perhaps a target; usually made by `read_table` or `as_table`.

    Parameters
    ----------
    columns : sequence of Column, optional
        The features. Leave out where `block` is given.
    block : ndarray or CSR matrix of shape (n, d), optional
        The features as one float array, or as one sparse matrix. Not copied.
    names : sequence of str, optional
        The names of the block's columns.
    target : Column, optional
        What is to be predicted; not among the features.
    source : str
        Where the cells came from: a file name, or the kind of object.
    notes : sequence of str
        Remarks for the user, as plain sentences.
    absent_is_zero : bool
        Whether a column that is not there at all means zeros, as in LIBSVM files.

    Examples
    --------
    >>> from margrove.data import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.n_rows, penguins.n_columns, penguins.target.name
    (344, 7, 'species')
    >>> penguins["island"].levels
    ('Biscoe', 'Dream', 'Torgersen')
    >>> penguins.labels()[:2]
    array(['Adelie', 'Adelie'], dtype='<U9')
    """

    def __init__(
        self,
        columns: Sequence[Column] = (),
        *,
        block: Matrix | None = None,
        names: Sequence[str] = (),
        target: Column | None = None,
        source: str = "table",
        notes: Sequence[str] = (),
        absent_is_zero: bool = False,
    ) -> None:
        self._columns = tuple(columns)
        self._block = block
        self.names: tuple[str, ...] = tuple(names) if block is not None else tuple(c.name for c in columns)
        self.target = target
        self.source = source
        self.notes: tuple[str, ...] = tuple(notes)
        self.absent_is_zero = absent_is_zero
        self._place = {name: j for j, name in enumerate(self.names)}
        self._check()

    def _check(self) -> None:
        if self._block is not None and self._block.shape[1] != len(self.names):
            raise InputError(f"{len(self.names)} names for {self._block.shape[1]} columns", file=self.source)
        lengths = {len(column) for column in self._columns}
        if self.target is not None:
            lengths |= {self.n_rows, len(self.target)}
        if len(lengths) > 1:
            raise InputError(f"columns of different lengths: {sorted(lengths)}", file=self.source)
        if len(self._place) < len(self.names):
            raise duplicate_names(self.names, file=self.source)

    def __repr__(self) -> str:
        target = f", target={self.target.name!r}" if self.target is not None else ""
        columns = f": {some(self.names, 4)}" if self.names else ""
        return f"Table({self.n_rows} × {self.n_columns} from {self.source!r}{target}{columns})"

    def __str__(self) -> str:
        """Return the first rows and columns, aligned."""
        columns = [*islice(self, MOST_PRINTED), *([] if self.target is None else [self.target])]
        cells = [[column.name, *map(_printed, column.take(slice(MOST_PRINTED)).cells())] for column in columns]
        widths = [max(map(len, column)) for column in cells]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in zip(*cells, strict=True))
        return "\n".join([repr(self), *lines] if columns else [repr(self)])

    def _repr_html_(self) -> str:
        """Return the summary of the table, for a notebook."""
        target = f", target <b>{escape(self.target.name)}</b>" if self.target is not None else ""
        title = f"<p><b>{escape(self.source)}</b>: {self.n_rows:,} rows × {self.n_columns:,} columns{target}</p>"
        columns = [column.summary() for column in islice(self, MOST_SHOWN)]
        more = self.n_columns - len(columns)
        note = f"<p>… and {more:,} more columns</p>" if more else ""
        if not columns:
            return title + note
        rows = "".join(_html_row("td", column.values()) for column in columns)
        return f"{title}<table><thead>{_html_row('th', columns[0])}</thead><tbody>{rows}</tbody></table>{note}"

    def __len__(self) -> int:
        return self.n_rows

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        if self._block is not None:
            return int(self._block.shape[0])
        if self._columns:
            return len(self._columns[0])
        return len(self.target) if self.target is not None else 0

    @property
    def n_columns(self) -> int:
        """The number of features."""
        return len(self.names)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.n_rows, self.n_columns

    @property
    def sparse(self) -> Any:
        """The CSR matrix of a sparse table, otherwise None."""
        return None if isinstance(self._block, np.ndarray) else self._block

    @property
    def block(self) -> NDArray[Any] | None:
        """The float array of a table that came as one, not copied; otherwise None."""
        return self._block if isinstance(self._block, np.ndarray) else None

    @cached_property
    def block_sum(self) -> float:
        """The sum of all cells of an array or of a sparse matrix. It is finite unless a cell is not, or it overflows: a
        test in one pass, without a mask as large as the table."""
        cells = self.block if self.sparse is None else self.sparse.data
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(0.0 if cells is None else cells))

    @property
    def columns(self) -> tuple[Column, ...]:
        """The features, in order. Of a sparse table every column is made dense: prefer `sparse`."""
        return self._columns if self._block is None else tuple(self)

    def __iter__(self) -> Iterator[Column]:
        return (self._column(j) for j in range(self.n_columns))

    def _column(self, j: int) -> Column:
        if self._block is None:
            return self._columns[j]
        if self.sparse is None:
            return Column(self.names[j], "numeric", self._block[:, j])
        return Column(self.names[j], "numeric", self.sparse[:, [j]].toarray().ravel())

    def __contains__(self, name: object) -> bool:
        return name in self._place

    @overload
    def __getitem__(self, name: str) -> Column: ...
    @overload
    def __getitem__(self, name: RowIndex | tuple[RowIndex, EllipsisType]) -> Table: ...
    def __getitem__(self, name: Any) -> Column | Table:
        """Return the column of this name; or these rows (indices, mask or slice; scikit-learn asks ``rows, ...``)."""
        if not isinstance(name, str):
            return self.take(name[0] if isinstance(name, tuple) and name[1:] == (...,) else name)
        if name in self._place:
            return self._column(self._place[name])
        cure = f"{did_you_mean(name, self.names)}The columns are {named(self.names)}."
        raise InputError(f"there is no column {name!r}", file=self.source, cure=cure)

    def position(self, name: str) -> int:
        """Return the position of the column of this name, counted from 0."""
        return self._place[name]

    def take(self, rows: RowIndex) -> Table:
        """Return the table with only these rows (indices, mask or slice)."""
        target = None if self.target is None else self.target.take(rows)
        if self._block is not None:
            return self._with(block=self._block[rows], target=target)
        return self._with(columns=[column.take(rows) for column in self._columns], target=target)

    def head(self, n: int = 5) -> Table:
        """Return the table with only the first rows."""
        return self.take(slice(n))

    def select(self, names: Sequence[str]) -> Table:
        """Return the table with only these features, in this order."""
        for name in names:
            if name not in self._place:
                self[name]  # raises, naming it
        if self._block is None:
            return self._with(columns=[self[name] for name in names])
        places = [self._place[name] for name in names]
        run = slice(places[0], places[-1] + 1) if places else slice(0)
        # Neighbours in order are a view; anything else has to be gathered.
        is_run = places == list(range(run.start or 0, run.stop))
        return self._with(block=self._block[:, run if is_run else places], names=names)

    def without(self, name: str) -> Table:
        """Return the table without one feature."""
        return self.select([other for other in self.names if other != name])

    def renamed(self, names: Sequence[str], *, source: str | None = None) -> Table:
        """Return the same cells under other names, and perhaps from another source."""
        columns = [column.renamed(name) for column, name in zip(self._columns, names, strict=self._block is None)]
        return self._with(columns=columns, names=names, source=source or self.source)

    def with_target(self, target: Column | None, *notes: str) -> Table:
        """Return the same features with this target, and perhaps with more notes."""
        return self._with(target=target, notes=(*self.notes, *notes))

    def with_columns(self, added: Sequence[Column], *notes: str) -> Table:
        """Return the table with more features, behind the others, and perhaps with more notes."""
        if not added:
            return self
        columns = (*self.columns, *added)
        return self._with(columns=columns, block=None, notes=(*self.notes, *notes))

    def with_date_parts(self, *, without: Sequence[str] = ()) -> Table:
        """Return the table with the month, weekday and hour of each date as features of their own, where they carry
        information, but those named in ``without``.

        The month is added if the dates of the column span more than a year, the weekday if they span more than a week,
        the hour if they span more than a day; each only if it has two values or more, and if no column has its name.
        A model that was fitted on such a table derives these columns itself from a table that lacks them.

        Examples
        --------
        >>> import numpy as np
        >>> from margrove.data import as_table
        >>> days = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[D]")
        >>> as_table(days[:, None]).with_date_parts().names
        ('x0', 'x0 weekday')
        """
        from margrove.data.dates import informative_parts

        if self._block is not None:  # plain numbers
            return self
        taken = {*self.names, *without, *([] if self.target is None else [self.target.name])}
        added, notes = [], []
        for column in self._columns:
            if column.is_date and (parts := [each for each in informative_parts(column) if each.name not in taken]):
                added += parts
                notes.append(f"Added from {column.name!r}: {named([part.name for part in parts])}.")
        return self.with_columns(added, *notes)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame, the target as its last column: categories as Categorical, booleans as nullable
        booleans, dates as datetime64 (UTC, without a zone). A sparse table becomes dense.

        Examples
        --------
        >>> from margrove.data import load_penguins
        >>> load_penguins().head(2).to_pandas()[["island", "bill_length_mm", "species"]]
              island  bill_length_mm species
        0  Torgersen            39.1  Adelie
        1  Torgersen            39.5  Adelie
        """
        from margrove.data.arrow import as_frame

        return as_frame(self, "pandas")

    def to_polars(self) -> Any:
        """Return a polars DataFrame, as `to_pandas` does: categories of text are Categorical, of numbers numbers.

        Examples
        --------
        >>> from margrove.data import load_penguins
        >>> load_penguins().to_polars().shape
        (344, 8)
        """
        from margrove.data.arrow import as_frame

        return as_frame(self, "polars")

    def _with(self, **changes: Any) -> Table:
        parts: dict[str, Any] = {
            "columns": self._columns,
            "block": self._block,
            "names": self.names,
            "target": self.target,
            "source": self.source,
            "notes": self.notes,
            "absent_is_zero": self.absent_is_zero,
        }
        return Table(**(parts | changes))

    def labels(self) -> NDArray[Any]:
        """Return the target's cells as a person wrote them: strings, booleans, integers or floats."""
        if self.target is None:
            cure = Advice("Name one: ", Setting("target", "..."), ".")
            raise InputError("the table has no target", file=self.source, cure=cure)
        return self.target.labels()

    def summary(self) -> list[dict[str, Any]]:
        """Return one plain dict per feature: name, kind, missing, distinct, example (a range, or some values)."""
        return [column.summary() for column in self]


def note_target(owner: Any, table: Any) -> None:
    """Record the name of a table's target in an estimator, and how it is written where that is not plain."""
    target = table.target if isinstance(table, Table) else None
    owner.target_ = None if target is None else target.name
    owner.__dict__.pop("target_format_", None)  # of an earlier fit
    if target is not None and target.format is not None:
        owner.target_format_ = target.format


def _html_row(tag: str, cells: Iterable[Any]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def duplicate_names(names: Sequence[str], *, file: str | None, line: int | None = None) -> InputError:
    """Return the error about a column name that occurs more than once."""
    name = next(name for name, times in Counter(names).items() if times > 1)
    places = [str(place) for place, other in enumerate(names, start=1) if other == name]
    where = f"{', '.join(places[:-1])} and {places[-1]}"
    problem = f"the column name {name!r} occurs {len(places)} times, as columns {where}"
    return InputError(problem, file=file, line=line, cure="Give every column a unique name.")


def _printed(cell: object) -> str:
    return "" if cell is None else clip(str(cell), 24)
