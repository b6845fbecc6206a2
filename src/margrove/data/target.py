"""Choose the target of a table, and check that it can be learned as classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from margrove.advice import Advice, InPython, Parameter, Row, Setting
from margrove.data.columns import count, is_whole, named
from margrove.data.inspection import is_identifier
from margrove.data.table import Table
from margrove.errors import InputError, ParameterError, did_you_mean

UNLABELLED_LEFT_OUT = " without a target left out."  # how the note ends that a table keeps of them
Target = str | int | bool | None

MOST_NUMERIC_CLASSES = 20  # a whole-number target may have as many classes as it likes up to here
LEAST_ROWS_PER_CLASS = 2  # on average; beyond the above, fewer rows per class than this is a quantity


def choose_target(table: Table, target: Target) -> Table:
    """Take the target, a name, a position or None for the last column, out of the table's columns, and note it. Raise
    `InputError` if there is no such column, or no other."""
    name = _target_name(table, target)
    why = "it is the last column" if target is None else "as requested"
    rest = table.without(name)
    if rest.n_columns == 0:
        raise InputError(
            f"the only column is the target {name!r}, so there are no features to learn from",
            file=table.source,
            cure=Advice(
                "If it should be several columns, name the delimiter",
                InPython("; to read it alone, set target=False", ": ", Parameter("delimiter")),
                ".",
            ),
        )
    return rest.with_target(table[name], f"The target is {name!r} ({why}).")


def _target_name(table: Table, target: Target) -> str:
    if target is True or not isinstance(target, (str, int, type(None))):
        raise ParameterError(f"target is {target!r}; it must be a column's name or position, None or False.")
    if isinstance(target, str):
        if target in table:
            return target
        raise InputError(
            f"the target {target!r} is not a column",
            file=table.source,
            cure=f"{did_you_mean(target, table.names)}The columns are {named(table.names)}.",
        )
    place = -1 if target is None else target
    if not -table.n_columns <= place < table.n_columns:
        raise InputError(
            f"the target is column {place}, but the table has {table.n_columns} columns, counted from 0",
            file=table.source,
            cure=f"The columns are {named(table.names)}.",
        )
    return table.names[place]


def refuse_unlabelled(
    table: Table, *, drop_unlabelled: bool, line_of: Callable[[int], int] | None = None, is_part: bool = False
) -> Table:
    """Return the table without its unlabelled rows if ``drop_unlabelled``; otherwise raise `InputError` naming the
    first. ``line_of`` gives the line of the file that a row came from, for the message; ``is_part``: of some rows of a
    file, which cannot be counted."""
    if table.target is None:
        return table
    missing = table.target.is_missing
    n_missing = int(np.count_nonzero(missing))
    if n_missing == 0:
        return table
    if drop_unlabelled and n_missing < table.n_rows:
        kept = table.take(~missing)
        noun = "row" if n_missing == 1 else "rows"
        return kept.with_target(kept.target, f"{n_missing:,} {noun}{UNLABELLED_LEFT_OUT}")
    first, is_all = int(np.argmax(missing)), n_missing == table.n_rows and not is_part
    share = "every" if is_all else "a" if is_part else f"{n_missing:,} of {table.n_rows:,}"
    cells = "cell is" if is_all or is_part else "cells is" if n_missing == 1 else "cells are"
    it, row = ("it", "this row") if n_missing == 1 and not is_part else ("them", "these rows")
    fill = Advice(f"Fill {it} in, or leave {row} out with ", Setting("drop_unlabelled", True))
    raise InputError(
        Advice(f"{share} target {cells} missing", *(() if line_of or is_part else (", the first in row ", Row(first)))),
        file=table.source,
        line=line_of(first) if line_of else None,
        column=table.target.name,
        cure="Choose another target." if is_all else Advice(fill, InPython(" (--drop-unlabelled)"), "."),
    )


def quantity_words(table: Table) -> str | None:
    """Return the reason why the target is a quantity rather than a class, such as "0.5 is not a whole number", or None.
    Numbers are classes if all are whole and there are 20 different ones at most, or two rows for each on average."""
    target = table.target
    if target is None or target.kind != "numeric":
        return None
    if not is_whole(target.values):
        broken = next((float(value) for value in target.values if not float(value).is_integer()), None)
        if broken is None:
            return f"{float(np.abs(target.values).max()):.6g} is too large for a whole number"
        return f"{broken:.6g} is not a whole number"
    n_classes, n_rows = target.n_distinct, table.n_rows
    if n_classes > max(MOST_NUMERIC_CLASSES, n_rows / LEAST_ROWS_PER_CLASS):
        return f"{n_classes:,} different numbers in {n_rows:,} rows"
    return None


def check_target(table: Table, *, is_class: bool = False) -> None:
    """Raise `InputError` if the table has no target, or one that has a single class, is a quantity or an identifier.
    With ``is_class`` the user has declared that whole numbers are classes, however many."""
    target = table.target
    if target is None:
        table.labels()  # raises, and says what to do
        return
    n_classes, n_rows = target.n_distinct, table.n_rows
    refuse = partial(InputError, file=table.source, column=target.name)
    if n_classes < 2:
        only = f": every row is {str(target.labels()[0])!r}" if n_rows else ""
        raise refuse(
            f"the target has one class{only}",
            cure="A classifier needs rows of at least two classes; choose another target or add rows.",
        )
    quantity = quantity_words(table)
    if quantity is not None and not (is_class and is_whole(target.values)):
        raise refuse(
            f"the target is a quantity ({quantity}), not a class",
            cure=Advice(
                "Estimate it with ",
                InPython("a regression", "`margrove train --model tree` or linear"),
                ", choose another target, or cut the quantity into ranges first.",
            ),
        )
    if is_identifier(target) and n_rows > MOST_NUMERIC_CLASSES:
        is_unique = n_classes == n_rows
        labels = f"{count(n_classes, 'label')} all different" if is_unique else "nearly every label differs"
        extent = "" if is_unique else f" ({n_classes:,} in {n_rows:,} rows)"
        raise refuse(f"the target is an identifier: {labels}{extent}", cure="Choose a target whose labels repeat.")
