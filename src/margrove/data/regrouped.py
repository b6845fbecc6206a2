"""The columns of a table in partitions, regrouped so that a worker has some columns of all rows.

What needs whole columns, such as their medians or their distinct values, is then computed by the code that does so in
memory, to the same bits. No process has the whole table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from margrove.data.frames import as_table
from margrove.data.memory import free_memory
from margrove.data.partitions import Part, stacked
from margrove.data.sample import FLOATS, read_features
from margrove.data.table import Table, note_target
from margrove.data.text import check_text_columns
from margrove.errors import InputError

if TYPE_CHECKING:
    from margrove.data.dask_partitions import DaskPartitions, Key

FEWEST_GROUPS = 4  # of columns, so that a few workers share the work
GROUP_CELLS = 1 << 23  # of a group of several columns: 32 MB of float32, and a search of a tenth of a second
_NOTED = ("n_features_in_", "feature_names_in_", "target_", "target_format_")


@dataclass(frozen=True)
class Group:
    """Neighbouring columns of a table, from ``start`` up to ``stop``."""

    parts: DaskPartitions
    start: int
    stop: int

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"columns {self.start} to {self.stop - 1}"

    def submit(self, function: Callable[..., Any], *given: Any) -> Key:
        """Return the key of ``function(pieces, *given)``: a list of tables, None where a partition has no rows."""
        tasks = self.parts.tasks
        pieces = [tasks.submit(key.name, _some_columns, key, self.start, self.stop) for key in self.parts.keys]
        return tasks.submit(self.name, function, pieces, *given)


@dataclass(frozen=True)
class _Look:
    n: int
    names: tuple[str, ...]
    noted: dict[str, Any]  # what the copy of the model noted


def regrouped(owner: Any, parts: DaskPartitions, reader: Any, text: Sequence[str] = ()) -> tuple[int, list[Group]]:
    """Return the number of rows and the groups of columns. Their owner notes the columns as a fit in memory does.
    ``text`` names columns of free text. Raise `InputError` if the partitions do not have the same columns."""
    named = zip(parts.names, parts.map(_looked_at, reader, tuple(text)), strict=True)
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
    n, d = sum(look.n for look in looks.values()), len(names)
    n_groups = min(d, max(FEWEST_GROUPS, n * d // GROUP_CELLS))
    bounds = np.linspace(0, d, n_groups + 1).astype(int).tolist()
    return n, [Group(parts, start, stop) for start, stop in pairwise(bounds)]


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def on_one_worker(function: Callable[..., Any], X: Any, y: Any, sample_weight: Any) -> Any:
    """Return ``function(X, y, sample_weight)`` of a table in partitions, computed by one worker of the current client,
    which fetches all rows. Raise `InputError` if they do not fit into a third of its memory."""
    from margrove.data.dask_partitions import connected, last_of, partitions_of

    with connected(None) as client:
        parts = partitions_of(client, X, y, sample_weight)
        size, room = sum(parts.map(_bytes_of)), min(client.run(_room).values())
        if size > room:
            raise InputError(
                f"the certificate needs all rows in one worker: they take {size / 1e9:.3g} GB, and a third of the "
                f"memory of the smallest worker is {room / 1e9:.3g} GB",
                cure="Give the workers more memory.",
            )
        return last_of(parts.tasks.results([parts.tasks.submit("all rows", _of_all_rows, parts.keys, function)]))[0]


# On the workers


def _room(dask_worker: Any) -> int:
    """Return the bytes that rows may take in the memory of this worker, where they are copied twice."""
    limit: int | None = dask_worker.memory_manager.memory_limit
    return (limit or free_memory()) // 3


def _bytes_of(part: Part) -> int:
    if part.X.shape[0] == 0:
        return 0
    table = _table(part)
    return int(sum(column.values.nbytes for column in table) if table.block is None else table.block.nbytes)


def _of_all_rows(parts: list[Part], function: Callable[..., Any]) -> Any:
    parts = [part for part in parts if part.X.shape[0]]
    blocks = [part.X for part in parts]
    is_array = all(isinstance(block, np.ndarray) for block in blocks)
    X = np.concatenate(blocks) if is_array else stacked([_table(part) for part in parts])
    y, weight = (
        None if each[0] is None else np.concatenate([np.asarray(piece) for piece in each])
        for each in ([part.y for part in parts], [part.weight for part in parts])
    )
    return function(X, y, weight)


def whole_columns(pieces: list[Table | None]) -> Table:
    """Return the columns of a group, of all rows in their order."""
    return stacked([piece for piece in pieces if piece is not None])


def _table(part: Part) -> Table:
    table = part.X if isinstance(part.X, Table) else as_table(part.X)
    if table.sparse is not None:
        raise InputError(
            f"{part.name} is sparse; engine='dask' grows and certifies trees of dense rows, and encodes dense ones",
            cure="Use engine='native'.",
        )
    return table


def _looked_at(part: Part, reader: Any, text: tuple[str, ...]) -> _Look | None:
    if part.X.shape[0] == 0:
        return None
    noted = clone(reader)
    table = read_features(noted, part.X)
    note_target(noted, part.X)
    target = None if table.target is None else table.target.name
    check_text_columns(table, [name for name in text if name not in table or name == target])
    return _Look(table.n_rows, table.names, {name: getattr(noted, name) for name in _NOTED if hasattr(noted, name)})


def _some_columns(part: Part, start: int, stop: int) -> Table | None:
    """Return some columns of a partition, as an array of their own where they are numbers."""
    if part.X.shape[0] == 0:
        return None
    is_plain = isinstance(part.X, np.ndarray) and part.X.dtype in FLOATS  # whose cells have been checked
    table = _table(replace(part, X=part.X[:0]) if is_plain else part)
    if table.block is not None:
        block = np.ascontiguousarray((part.X if is_plain else table.block)[:, start:stop])
        return Table(block=block, names=table.names[start:stop], source=part.name)
    some = table.select(table.names[start:stop])
    return Table(some.columns, source=part.name)
