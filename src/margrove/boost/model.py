"""The result of boosting: a grove of small trees as plain arrays, and the vote of each. Nothing here learns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.boost.problem import alpha, normaliser
from margrove.status import Status
from margrove.tree.model import OF_LEVELS, PER_NODE, TreeArrays, TreeModel
from margrove.tree.problem import TreeColumn

_SHOWN_ROUNDS = 10  # the first and the last so many are printed
_INT32 = ("feature", "missing_branch", "default_branch", "child_start", "child", "level_branch")
_INT64 = ("start", "n_rows", "level_start")


@dataclass(frozen=True, eq=False)
class Grove(TreeArrays):
    """Several trees over the same columns: the arrays of `TreeModel`, one tree after the other.

    ``start`` (T + 1,) is where the nodes of each tree begin. ``child_start`` and ``level_start`` (m + 1,) run through
    all trees; ``child`` numbers the nodes of all trees together.
    """

    start: NDArray[np.int64] = field(kw_only=True)

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


@dataclass(frozen=True, eq=False, repr=False)
class Rounds:
    """The numbers of each round, as arrays with one entry per round. Printed as a table of the first and the last ones.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import AdaBoostClassifier
    >>> AdaBoostClassifier(n_estimators=3).fit([[1.0], [2.0], [3.0]], ["out", "in", "out"]).rounds_
    round   error   alpha    loss  training error
        1  0.3333  0.3466  0.9428          0.3333
        2    0.25  0.5493  0.8165          0.3333
        3  0.1667  0.8047  0.6086               0
    """

    error: NDArray[np.float64]  # ε_t
    vote: NDArray[np.float64]  # a_t
    training_error: NDArray[np.float64]  # share of the first weights on rows that the votes so far get wrong
    validation_error: NDArray[np.float64] | None = None  # the same on rows held out
    n_classes: int = 2

    @property
    def n_rounds(self) -> int:
        """T."""
        return len(self.error)

    @property
    def alpha(self) -> NDArray[np.float64]:
        """α_t."""
        return np.array([alpha(vote, self.n_classes) for vote in self.vote.tolist()])

    @property
    def normaliser(self) -> NDArray[np.float64]:
        """Z_t. For a perfect learner, whose vote is 1 by definition, that of its vote."""
        pairs = zip(self.error.tolist(), self.vote.tolist(), strict=True)
        return np.array([normaliser(error, vote, self.n_classes) for error, vote in pairs])

    @property
    def loss(self) -> NDArray[np.float64]:
        """The mean exponential loss after each round: Z_1 … Z_t."""
        with np.errstate(over="ignore"):  # a rate above 2 may make it overflow to infinity
            return np.asarray(np.cumprod(self.normaliser), dtype=np.float64)

    @property
    def bound(self) -> NDArray[np.float64]:
        """Π 2 √(ε (1 − ε)): the loss for two classes if each vote is the best."""
        return np.cumprod(2 * np.sqrt(self.error * (1 - self.error)))

    @property
    def best_round(self) -> int:
        """The first round with the smallest error on held-out rows; the last round without such rows."""
        if self.validation_error is None:
            return self.n_rounds
        return int(np.argmin(self.validation_error)) + 1

    def __repr__(self) -> str:
        columns = {
            "error": self.error,
            "alpha": self.alpha,
            "loss": self.loss,
            "training error": self.training_error,
        }
        if self.validation_error is not None:
            columns["error on held-out rows"] = self.validation_error
        shown = list(range(self.n_rounds))
        if self.n_rounds > 2 * _SHOWN_ROUNDS:
            shown = shown[:_SHOWN_ROUNDS] + shown[-_SHOWN_ROUNDS:]
        lines = [["round", *columns]]
        lines += [[str(t + 1), *(f"{values[t]:.4g}" for values in columns.values())] for t in shown]
        if len(shown) < self.n_rounds:
            lines.insert(_SHOWN_ROUNDS + 1, ["…"] * (len(columns) + 1))
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)

    def first(self, n_rounds: int) -> Rounds:
        """Return the first rounds."""
        held_out = None if self.validation_error is None else self.validation_error[:n_rounds]
        error, vote, training_error = self.error[:n_rounds], self.vote[:n_rounds], self.training_error[:n_rounds]
        return Rounds(error, vote, training_error, held_out, self.n_classes)


@dataclass(frozen=True, eq=False)
class BoostModel:
    """A grove whose trees vote."""

    grove: Grove
    vote: NDArray[np.float64]  # (T,) a_t
    n_classes: int


@dataclass(frozen=True, eq=False)
class BoostSolution:
    """The trees that an engine has boosted, and why it stopped: none if the first was no better than chance."""

    model: BoostModel
    rounds: Rounds
    status: Status = Status.CONVERGED
