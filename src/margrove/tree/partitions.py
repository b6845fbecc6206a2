"""The input of a tree whose table lies in partitions: the rows are regrouped, so that a worker has some columns of all
rows, and then read as a table in memory is.

A tree needs whole columns: the number of tests that a column offers in a node is that of its distinct values there.
Every function here runs on a worker unless it says otherwise, so no process ever has the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from margrove.data.dask_partitions import DaskPartitions, Key, Tasks, last_of
from margrove.data.partitions import Part, Partitions
from margrove.data.regrouped import regrouped, whole_columns
from margrove.data.rows import Home
from margrove.data.table import Table
from margrove.tree.problem import Cells, TreeColumn
from margrove.tree.reading import ColumnWishes, TreeSample, learn_cells


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


def read_spread(model: Any, parts: Partitions, wishes: ColumnWishes, owner: Any = None) -> SpreadSample:
    """Regroup a table in partitions and read it as a tree does. Runs in this process; the tree, or the owner it reads
    for, notes the columns."""
    owner = model if owner is None else owner
    assert isinstance(parts, DaskPartitions)
    reader = clone(model).set_params(engine="native")
    tasks = parts.tasks
    columns_of_all = regrouped(owner, parts, reader)[1]
    sample = tasks.submit("the target", _sample_of, [tasks.submit(k.name, _target_of, k) for k in parts.keys], reader)
    groups = [group.submit(_cells_of, sample, reader, wishes) for group in columns_of_all]
    for key in parts.keys:
        key.release()
    found = last_of(tasks.results([tasks.submit("the target", _about, sample)]))[0]
    columns = last_of(tasks.results([tasks.submit(key.name, _columns_of, key) for key in groups]))
    first = (*(group.start for group in columns_of_all), columns_of_all[-1].stop)
    spread = SpreadColumns(tasks, groups, first, sample)
    return SpreadSample(spread, tuple(column for group in columns for column in group), *found)


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


def _cells_of(pieces: list[Table | None], sample: TreeSample, reader: Any, wishes: ColumnWishes) -> Cells:
    cells = learn_cells(clone(reader), whole_columns(pieces), wishes)
    return cells if sample.rows is None else cells.take(sample.rows)


def _columns_of(cells: Cells) -> tuple[TreeColumn, ...]:
    return cells.columns


def _about(sample: TreeSample) -> tuple[int, float, bool, Any]:
    n, weight = sample.cells.n_rows, sample.weight
    return n, float(n if weight is None else weight.sum()), weight is not None, sample.classes
