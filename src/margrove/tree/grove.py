"""Several trees as plain arrays, one tree after the other. Nothing here learns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.tree.model import OF_LEVELS, PER_NODE, TreeArrays, TreeModel
from margrove.tree.problem import TreeColumn

_INT32 = ("feature", "missing_branch", "default_branch", "child_start", "child", "level_branch")
_INT64 = ("start", "n_rows", "level_start")


@dataclass(frozen=True, eq=False, repr=False)
class Grove(TreeArrays):
    """Several trees over the same columns: the arrays of `TreeModel`, one tree after the other.

    ``start`` (T + 1,) is where the nodes of each tree begin. ``child_start`` and ``level_start`` (m + 1,) run through
    all trees; ``child`` numbers the nodes of all trees together.
    """

    start: NDArray[np.int64] = field(kw_only=True)

    def __repr__(self) -> str:
        return f"<Grove: {self.n_trees} trees, {len(self.feature):,} nodes>"

    @property
    def n_trees(self) -> int:
        """T."""
        return len(self.start) - 1

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """The class that each node predicts: the first of the heaviest. Read-only."""
        label = np.asarray(np.argmax(self.value, axis=1), dtype=np.int32)
        label.flags.writeable = False
        return label

    @property
    def trees(self) -> list[TreeModel]:
        """Return new copies of all trees."""
        return [self.tree(t) for t in range(self.n_trees)]

    def tree(self, t: int) -> TreeModel:
        """Return the tree of round t, counted from 0."""
        return TreeModel(**self._between(t, t + 1))

    def first(self, n_trees: int) -> Grove:
        """Return the grove of the first trees."""
        return Grove(start=self.start[: n_trees + 1], **self._between(0, n_trees))

    def _between(self, first: int, end: int) -> dict[str, Any]:
        """Return the arrays of the trees first … end − 1, with nodes counted from theirs."""
        nodes = slice(int(self.start[first]), int(self.start[end]))
        parts: dict[str, Any] = {"columns": self.columns}
        for name in (*PER_NODE, *OF_LEVELS):
            array = getattr(self, name)
            parts[name] = None if array is None else array[nodes]
        for name, of_each in (("child_start", "child"), ("level_start", "level_branch")):
            start = getattr(self, name)[nodes.start : nodes.stop + 1]
            parts[name] = start - start[0]
            parts[of_each] = getattr(self, of_each)[start[0] : start[-1]]
        parts["child"] = parts["child"] - np.int32(nodes.start)
        return parts

    @classmethod
    def of(cls, columns: tuple[TreeColumn, ...], trees: list[TreeModel]) -> Grove:
        """Return the grove of these trees."""
        if trees:
            names = [part.name for part in fields(TreeModel)]
            given = [{name: getattr(tree, name) for name in names} for tree in trees]
            return cls.joined([cls(**each, start=np.array([0, len(each["feature"])])) for each in given])
        sizes = dict.fromkeys(("start", "child_start", "level_start"), 1) | {"value": (0, 1)}
        types = dict.fromkeys(_INT32, np.int32) | dict.fromkeys(_INT64, np.int64)
        arrays = {part.name: np.zeros(sizes.get(part.name, 0), types.get(part.name)) for part in fields(cls)[1:]}
        return cls(columns, **arrays)

    @classmethod
    def joined(cls, groves: list[Grove]) -> Grove:
        """Return the trees of these groves, in their order; of at least one grove."""
        with_trees = [grove for grove in groves if grove.n_trees]
        if len(with_trees) < 2:
            return (with_trees or groves)[0]
        parts: dict[str, Any] = {}
        for part in fields(cls)[1:]:
            arrays = [getattr(grove, part.name) for grove in with_trees]
            if part.name in ("start", "child_start", "level_start"):  # each begins where the previous one ends
                ends = np.cumsum([0, *(array[-1] for array in arrays)])
                arrays = [array[:-1] + end for array, end in zip(arrays, ends, strict=False)] + [ends[-1:]]
            elif part.name == "child":
                firsts = np.cumsum([0, *(grove.start[-1] for grove in with_trees)])
                arrays = [array + first for array, first in zip(arrays, firsts, strict=False)]
            joined = _behind_each_other(arrays)
            parts[part.name] = None if joined is None else joined.astype(getattr(with_trees[0], part.name).dtype)
        return cls(columns=with_trees[0].columns, **parts)


def _behind_each_other(arrays: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Return the arrays as one; None if one of them is None."""
    kept = [array for array in arrays if array is not None]
    return np.concatenate(kept) if len(kept) == len(arrays) else None
