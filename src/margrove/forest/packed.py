"""A forest of plain trees in few bytes. Nothing here learns.

Every test is x ≤ θ, in training no cell was missing, and the target is a class or, by the squared error, a number. So
nodes need no more than the following; the other arrays of `TreeModel` follow from them.

================  ====================  ===============================================================================
``start``         (T + 1,) int64        where the nodes of each tree begin; they are stored depth first
``feature``       (m,) int32            the column tested, -1 at a leaf
``threshold``     (m,) float64          θ; NaN at a leaf
``right``         (m,) int32            the child for x > θ, counted from the tree's root (that for x ≤ θ is the next
                                        node); at a leaf its number among the leaves of its tree
``leaf_start``    (T + 1,) int64        where the leaves of each tree begin
``weight``        (l,) float64          the weight of the rows in each leaf
``n_rows``        (l,) int32            their number
``value``         (u, K) or (l, 1)      the shares of the classes, or the mean
``place``         (l,) int32            of classes: the row of ``value`` of each leaf. The first K rows are pure leaves
``impurity``      (l,) float64          of numbers: the variance in each leaf
================  ====================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.tree.grove import Grove
from margrove.tree.impurity import class_impurity
from margrove.tree.model import LEAF, TreeModel
from margrove.tree.problem import Criterion, TreeColumn, TreeProblem

_STARTS = {"start": "feature", "leaf_start": "weight"}
OF_NODES = ("feature", "threshold", "right")
OF_LEAVES = ("weight", "n_rows")


@dataclass(frozen=True, eq=False, repr=False)
class PackedForest:
    """The arrays: see the head of this module."""

    columns: tuple[TreeColumn, ...]
    criterion: Criterion
    start: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    right: NDArray[np.int32]
    leaf_start: NDArray[np.int64]
    weight: NDArray[np.float64]
    n_rows: NDArray[np.int32]
    value: NDArray[np.float64]
    place: NDArray[np.int32] | None = None
    impurity: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        return f"<PackedForest: {self.n_trees} trees, {len(self.weight):,} leaves, {self.n_bytes:,} bytes>"

    @property
    def n_trees(self) -> int:
        """T."""
        return len(self.start) - 1

    @property
    def n_bytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for each in fields(self) if isinstance(array := getattr(self, each.name), np.ndarray))

    @staticmethod
    def holds(problem: TreeProblem) -> bool:
        """Return whether the trees of such problems are plain enough."""
        plain = all(c.test == "threshold" and not c.has_missing and not c.monotone for c in problem.cells.columns)
        return plain and not problem.outputs and (not problem.is_regression or _is_variance(problem.growth.criterion))

    @classmethod
    def of(cls, grove: Grove, criterion: Criterion) -> PackedForest:
        """Return the trees of a grove, which must be plain."""
        is_leaf = grove.feature == LEAF
        right = grove.child[1::2] - np.repeat(grove.start[:-1], np.diff(grove.start))[~is_leaf]
        weight, value = grove.weight[is_leaf], grove.value[is_leaf]
        arrays = {"start": grove.start, "feature": grove.feature, "cut": grove.threshold[~is_leaf], "right": right}
        arrays |= {"weight": weight, "n_rows": grove.n_rows[is_leaf], "value": value}
        if _is_variance(criterion):
            arrays["impurity"] = grove.impurity[is_leaf]
        else:
            pure = np.eye(value.shape[1])
            shares, back = np.unique(np.concatenate([pure, value / weight[:, None]]), axis=0, return_inverse=True)
            first = back[: len(pure)]
            number = np.full(len(shares), -1)
            number[first] = np.arange(len(pure))
            number[number < 0] = np.arange(len(pure), len(shares))
            arrays["value"] = np.empty_like(shares)
            arrays["value"][number] = shares
            arrays["place"] = number[back[len(pure) :]]
        return cls.of_inner(grove.columns, criterion, arrays)

    @cached_property
    def missing_branch(self) -> NDArray[np.int8]:
        """The branch that a missing cell takes at each node: the one of more weight."""
        branches = [self.tree(t).default_branch for t in range(self.n_trees)]
        return np.maximum(np.concatenate(branches), 0).astype(np.int8)

    @classmethod
    def of_inner(
        cls, columns: tuple[TreeColumn, ...], criterion: Criterion, arrays: Mapping[str, NDArray[Any]]
    ) -> PackedForest:
        """Return the forest of arrays as a model file has them: θ (``cut``) and ``right`` of inner nodes alone."""
        is_leaf = arrays["feature"] < 0
        right, threshold = np.empty(len(is_leaf), dtype=np.int32), np.full(len(is_leaf), np.nan)
        leaf_start = np.concatenate([[0], np.cumsum(is_leaf)])[arrays["start"]]
        right[~is_leaf], threshold[~is_leaf] = arrays["right"], arrays["cut"]
        right[is_leaf] = np.arange(leaf_start[-1]) - np.repeat(leaf_start[:-1], np.diff(leaf_start))
        place = arrays["place"].astype(np.int32) if "place" in arrays else None
        nodes = arrays["start"], arrays["feature"].astype(np.int32), threshold, right
        leaves = leaf_start, arrays["weight"].astype(np.float64), arrays["n_rows"].astype(np.int32)
        return cls(columns, criterion, *nodes, *leaves, arrays["value"], place, arrays.get("impurity"))

    def first(self, n_trees: int) -> PackedForest:
        """Return the forest of the first trees."""
        nodes, leaves = int(self.start[n_trees]), int(self.leaf_start[n_trees])
        parts: dict[str, Any] = {name: getattr(self, name)[:nodes] for name in OF_NODES}
        parts |= {name: getattr(self, name)[:leaves] for name in OF_LEAVES}
        parts |= {name: getattr(self, name)[: n_trees + 1] for name in _STARTS}
        if self.place is not None:  # rows that are used no more stay
            return PackedForest(self.columns, self.criterion, value=self.value, place=self.place[:leaves], **parts)
        assert self.impurity is not None
        parts |= {"value": self.value[:leaves], "impurity": self.impurity[:leaves]}
        return PackedForest(self.columns, self.criterion, **parts)

    @classmethod
    def joined(cls, forests: list[PackedForest]) -> PackedForest:
        """Return the trees of these forests, in their order; of at least one forest."""
        if len(forests) == 1:
            return forests[0]
        names = [*OF_NODES, *OF_LEAVES, "value"]
        parts: dict[str, Any] = {name: np.concatenate([getattr(f, name) for f in forests]) for name in names}
        for name in _STARTS:
            ends = np.cumsum([0, *(getattr(f, name)[-1] for f in forests)])
            starts = [getattr(f, name)[:-1] + end for f, end in zip(forests, ends, strict=False)]
            parts[name] = np.concatenate([*starts, ends[-1:]]).astype(np.int64)
        if forests[0].place is not None:  # a leaf that is pure keeps its place; the others follow one another
            k, places = forests[0].value.shape[1], []
            firsts = np.cumsum([0, *(len(f.value) - k for f in forests)])
            for f, first in zip(forests, firsts, strict=False):
                assert f.place is not None
                places.append(np.where(f.place < k, f.place, f.place + np.int32(first)))
            parts["place"] = np.concatenate(places).astype(np.int32)
            parts["value"] = np.concatenate([forests[0].value[:k], *(f.value[k:] for f in forests)])
        else:
            parts["impurity"] = np.concatenate([f.impurity for f in forests if f.impurity is not None])
        return cls(forests[0].columns, forests[0].criterion, **parts)

    def leaf_values(self, t: int) -> NDArray[np.float64]:
        """Return what each leaf of tree t predicts: shares of the classes, or the mean."""
        leaves = slice(int(self.leaf_start[t]), int(self.leaf_start[t + 1]))
        return self.value[leaves] if self.place is None else self.value[self.place[leaves]]

    def tree(self, t: int) -> TreeModel:
        """Return tree t, counted from 0, with all arrays. The number of tests in a node is not kept."""
        nodes = slice(int(self.start[t]), int(self.start[t + 1]))
        leaves = slice(int(self.leaf_start[t]), int(self.leaf_start[t + 1]))
        feature, right = self.feature[nodes], self.right[nodes]
        is_leaf, m = feature == LEAF, len(feature)
        inner = np.flatnonzero(~is_leaf)
        left, below = inner + 1, right[inner].astype(np.intp)
        if (below <= left).any() or (below >= m).any():  # of forged arrays: a child must stand behind its parent
            raise ValueError("the arrays do not form a tree: a child does not stand behind its parent")
        sums = _Sums(self, is_leaf, leaves, t)
        for level in _levels(m, inner, below):
            sums.join(inner[level], left[level], below[level])
        heavier = np.full(m, -1, dtype=np.int32)
        heavier[inner] = sums.weight[below] > sums.weight[left]
        n_tests = np.where(is_leaf, 0.0, np.nan)
        return TreeModel(
            columns=self.columns,
            feature=feature,
            threshold=self.threshold[nodes],
            child_start=np.concatenate([[0], np.cumsum(np.where(is_leaf, 0, 2))]).astype(np.int32),
            child=np.stack([left, below], axis=1).ravel().astype(np.int32),
            level_start=np.zeros(m + 1, dtype=np.int64),
            level_branch=np.empty(0, dtype=np.int32),
            missing_branch=heavier,
            default_branch=heavier,
            n_rows=sums.n_rows,
            weight=sums.weight,
            n_tests=n_tests,
            n_candidates=n_tests,
            **sums.of_nodes(inner, left, below),
        )


class _Sums:
    """The sums of a tree's leaves, added up to its root level by level."""

    def __init__(self, forest: PackedForest, is_leaf: NDArray[np.bool_], leaves: slice, t: int) -> None:
        m, self.criterion = len(is_leaf), forest.criterion
        self.n_rows, self.weight = np.zeros(m, dtype=np.int64), np.zeros(m)
        self.n_rows[is_leaf], self.weight[is_leaf] = forest.n_rows[leaves], forest.weight[leaves]
        value = forest.leaf_values(t)
        self.value, self.square, self.apart = np.zeros((m, value.shape[1])), np.zeros(m), np.full(m, np.nan)
        if forest.impurity is None:
            weight = forest.weight[leaves][:, None]
            whole = bool((weight == np.rint(weight)).all())
            self.value[is_leaf] = np.rint(value * weight) if whole else value * weight
        else:
            self.value[is_leaf] = value
            self.square[is_leaf] = forest.weight[leaves] * forest.impurity[leaves]

    def join(self, nodes: NDArray[np.intp], left: NDArray[np.intp], right: NDArray[np.intp]) -> None:
        """Add up the two children of each of these nodes."""
        a, b = self.weight[left], self.weight[right]
        self.n_rows[nodes], self.weight[nodes] = self.n_rows[left] + self.n_rows[right], a + b
        if not _is_variance(self.criterion):
            self.value[nodes] = self.value[left] + self.value[right]
            return
        apart = self.value[right, 0] - self.value[left, 0]
        self.value[nodes, 0] = self.value[left, 0] + apart * (b / (a + b))
        self.apart[nodes] = a * b / (a + b) * apart**2
        self.square[nodes] = self.square[left] + self.square[right] + self.apart[nodes]

    def of_nodes(self, inner: NDArray[np.intp], left: NDArray[np.intp], right: NDArray[np.intp]) -> dict[str, Any]:
        """Return value, impurity and gain of each node."""
        if _is_variance(self.criterion):
            return {"value": self.value, "impurity": self.square / self.weight, "gain": self.apart / self.weight}
        impurity, gain = class_impurity(self.criterion, self.value), np.full(len(self.weight), np.nan)
        share = self.weight[left] / self.weight[inner]
        gain[inner] = impurity[inner] - share * impurity[left] - (1 - share) * impurity[right]
        return {"value": self.value, "impurity": impurity, "gain": gain}


def _levels(m: int, inner: NDArray[np.intp], right: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the places in ``inner`` of the nodes of each depth, the deepest first."""
    parent = np.full(m, -1, dtype=np.intp)
    parent[inner + 1] = parent[right] = inner
    depth, above = np.zeros(m, dtype=np.intp), parent.copy()
    while (is_below := above >= 0).any():
        depth += is_below
        above[is_below] = parent[above[is_below]]
    of_inner = depth[inner]
    order = np.argsort(-of_inner, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(-of_inner[order])) + 1) if len(inner) else []


def _is_variance(criterion: Criterion) -> bool:
    return criterion == "squared_error"
