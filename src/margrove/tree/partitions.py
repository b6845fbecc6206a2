"""The input of a tree whose table lies in partitions: the rows are regrouped, so that a worker has some columns of all
rows, and then read as a table in memory is.

A tree needs whole columns: the number of tests that a column offers in a node is that of its distinct values there.
Every function here runs on a worker unless it says otherwise, so no process ever has the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove.data.dask_partitions import DaskPartitions, Key, Tasks, last_of
from margrove.data.frames import as_table
from margrove.data.partitions import Part, Partitions, stacked
from margrove.data.rows import Home
from margrove.data.sample import read_features
from margrove.data.table import Table, note_target
from margrove.errors import InputError
from margrove.tree.problem import Cells, TreeColumn
from margrove.tree.reading import ColumnWishes, TreeSample, learn_cells

FEWEST_GROUPS = 4  # of columns, so that a few workers share the work
GROUP_CELLS = 1 << 23  # of a group of several columns: 32 MB of float32, and a search of a tenth of a second
_NOTED = ("n_features_in_", "feature_names_in_", "target_", "target_format_")


@dataclass(frozen=True)
class SpreadColumns:
    """The columns of a table in groups, each on a worker, and the target."""

    tasks: Tasks
    groups: list[Key]  # of `Cells`: neighbouring columns of all rows
    first: tuple[int, ...]  # the number of the first column of each group, and of all columns at the end
    sample: Key  # `TreeSample` without cells
    home = Home.PARTITIONS
    is_sparse = False

    @property
    def d(self) -> int:
        """The number of columns."""
        return self.first[-1]

    def numbered(self) -> list[tuple[Key, int]]:
        """Return the groups, each with the number of its first column."""
        return list(zip(self.groups, self.first, strict=False))


@dataclass(frozen=True)
class SpreadSample:
    """What this process knows of a table in partitions."""

    rows: SpreadColumns
    columns: tuple[TreeColumn, ...]
    n_rows: int  # of weight > 0
    weight: float
    is_weighted: bool
    classes: Any  # (K,), or None for numbers


@dataclass(frozen=True)
class _Look:
    n: int
    names: tuple[str, ...]
    noted: dict[str, Any]  # what the copy of the model noted


def read_spread(model: Any, parts: Partitions, wishes: ColumnWishes, owner: Any = None) -> SpreadSample:
    """Regroup a table in partitions and read it as a tree does. Runs in this process; the tree, or the owner it reads
    for, notes the columns."""
    owner = model if owner is None else owner
    assert isinstance(parts, DaskPartitions)
    reader = clone(model).set_params(engine="native")
    named = zip(parts.names, parts.map(_looked_at, reader), strict=True)
    looks = {name: look for name, look in named if look is not None}
    if not looks:
        raise InputError("the partitions contain no rows", cure="At least one with rows is needed.")
    first_look = next(iter(looks.values()))
    names = first_look.names
    for name, look in looks.items():
        if look.names != names:
            raise InputError(
                f"{name} has the columns {_some(look.names)}, and the first has {_some(names)}",
                cure="All partitions need the same columns, in the same order.",
            )
    for name in _NOTED:
        vars(owner).pop(name, None)
    vars(owner).update(first_look.noted)
    tasks, d = parts.tasks, len(names)
    n_groups = min(d, max(FEWEST_GROUPS, sum(look.n for look in looks.values()) * d // GROUP_CELLS))
    first = np.linspace(0, d, n_groups + 1).astype(int).tolist()
    sample = tasks.submit("the target", _sample_of, [tasks.submit(k.name, _target_of, k) for k in parts.keys], reader)
    groups = []
    for start, stop in pairwise(first):
        pieces = [tasks.submit(key.name, _some_columns, key, start, stop) for key in parts.keys]
        groups.append(tasks.submit(f"columns {start} to {stop - 1}", _cells_of, pieces, sample, reader, wishes))
    for key in parts.keys:
        key.release()
    found = last_of(tasks.results([tasks.submit("the target", _about, sample)]))[0]
    columns = last_of(tasks.results([tasks.submit(key.name, _columns_of, key) for key in groups]))
    spread = SpreadColumns(tasks, groups, tuple(first), sample)
    return SpreadSample(spread, tuple(column for group in columns for column in group), *found)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _table(part: Part) -> Table:
    table = part.X if isinstance(part.X, Table) else as_table(part.X)
    if table.sparse is not None:
        raise InputError(f"{part.name} is sparse; engine='dask' grows trees of dense rows", cure="Use engine='native'.")
    return table


def _looked_at(part: Part, reader: Any) -> _Look | None:
    if part.X.shape[0] == 0:
        return None
    noted = clone(reader)
    table = read_features(noted, part.X)
    note_target(noted, part.X)
    return _Look(table.n_rows, table.names, {name: getattr(noted, name) for name in _NOTED if hasattr(noted, name)})


def _target_of(part: Part) -> tuple[Any, Any]:
    return np.asarray(part.y), None if part.weight is None else np.asarray(part.weight)


def _sample_of(targets: list[tuple[Any, Any]], reader: Any) -> TreeSample:
    """Return the sample of all rows, without their cells."""
    targets = [(y, weight) for y, weight in targets if len(y)]
    y = np.concatenate([y for y, _ in targets])
    weights = [weight for _, weight in targets]
    weight = None if weights[0] is None else np.concatenate(weights)
    found: TreeSample = reader._read_target(Cells((), len(y)), y, weight)
    return found


def _some_columns(part: Part, start: int, stop: int) -> Table | None:
    """Return some columns of a partition, as an array of their own where they are numbers."""
    if part.X.shape[0] == 0:
        return None
    table = _table(part)
    if table.block is not None:
        block = np.ascontiguousarray(table.block[:, start:stop])
        return Table(block=block, names=table.names[start:stop], source=part.name)
    some = table.select(table.names[start:stop])
    return Table(some.columns, source=part.name)


def _cells_of(pieces: list[Table | None], sample: TreeSample, reader: Any, wishes: ColumnWishes) -> Cells:
    cells = learn_cells(clone(reader), stacked([piece for piece in pieces if piece is not None]), wishes)
    return cells if sample.rows is None else cells.take(sample.rows)


def _columns_of(cells: Cells) -> tuple[TreeColumn, ...]:
    return cells.columns


def _about(sample: TreeSample) -> tuple[int, float, bool, Any]:
    n, weight = sample.cells.n_rows, sample.weight
    return n, float(n if weight is None else weight.sum()), weight is not None, sample.classes
