"""The problem of growing a tree, as data, without a solver.

Given n rows of d columns, some cells missing, a target (classes numbered from 0, or numbers) and weights w_i > 0.
A tree is grown from the root: a node holds the rows S that reach it, of total weight w(S). Each column offers *tests*
that send the rows of S into branches S_1 … S_B, B ≥ 2, none empty:

============  ======================================================================================================
threshold     x ≤ θ or not; θ halfway between two neighbouring values of S. Missing cells go to the branch where the
              gain is larger (the second, if equal); "present or missing" is a test too, with θ = ∞
intervals     given cut points c_1 < … < c_m: x < c_1, c_1 ≤ x < c_2, …, c_m ≤ x; missing cells have a branch too
multiway      a category: one branch for each level that occurs in S; missing cells are a level
subset        a category: some levels against the others; missing cells are a level
one_vs_rest   a category: one level against all others; missing cells are a level
============  ======================================================================================================

Of each column the test of largest *gain* is taken,

    gain = imp(S) − Σ_b w(S_b)/w(S) imp(S_b),

the first in order if several are equal; among the columns that of the largest *score* (`split_score`), the first if
several are equal. Equal are gains that differ by less than EQUAL_GAIN of the node's impurity. The tests of a column
come in this order: thresholds ascending, the missing cells in the second branch; "present or missing"; thresholds
ascending, the missing cells in the first branch. Subsets: by class (of two, the second alone), for each the levels
ascending by its share and the prefixes from the shortest on; levels of equal share, and one_vs_rest, in the order of
the levels, missing cells last. Columns come in their order or, under `seed`, in one drawn for the node. The scores:

- gain
- gain_ratio      gain / I with the split information I = −Σ_b p_b log2 p_b, p_b = w(S_b)/w(S), among the columns whose
                  gain is at least the mean gain of all columns that offer a test (T5)
- skew_adjusted   imp(S) − [Σ_b p_b imp(S_b)] / I, as printed in lecture notes: it favours what it means to punish

With `complexity` λ > 0 every gain is first charged for the bits that name the test: gain − λ (log2 d + log2 c)/w(S)
where the column offers c tests at this node, and only what stays positive is a test. (c: the number of thresholds; 1
for multiway and intervals; 2^(L−1) − 1 for subsets of L levels; L for one_vs_rest, or 1 if L = 2.) The charged gain is
what decides wherever gains are compared: between columns, with `min_gain` and `min_impurity_decrease`, between nodes
under `max_leaf_nodes`. The `gain` that a tree keeps of a node is the uncharged one.

With `max_features` m a node looks at columns in the order drawn for it until m of them offered a test there and at
least one of these is allowed. A column that offers none, such as one that is constant in the node, does not count.
With `thresholds` "random" a column of numbers offers one θ, drawn uniformly between its least and largest value in the
node (and "present or missing"). All that is drawn follows from the seed, the node and the column (`draws.py`).

A node stays a leaf if it is pure, at `max_depth`, of fewer than `min_samples_split` rows, if its largest class has the
share `majority`, if no column offers a test whose branches have `min_samples_leaf` rows and `min_weight_leaf` weight
each, or if the chosen test has gain < `min_gain` or w(S)/w · gain < `min_impurity_decrease`. A gain of zero is no
reason to stop (XOR, T2).

Impurities (T3), with class shares p_k or a target of mean μ and variance σ²:

    entropy −Σ p_k log2 p_k · gini Σ p_k (1 − p_k) · error 1 − max p_k · squared_error σ² ·
    gaussian_entropy ½ (1 + ln 2π + ln σ²), σ² at least 1e-9 of the variance of all rows · absolute_error, the mean
    distance from the median · poisson, the mean of y ln(y/μ), y ≥ 0, where no branch may have
    μ = 0 (less than 1e-12 of the node's sum of y is 0)

With several targets the impurity is the mean of those of the targets, and a node is pure if it is in every target.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import RowIndex
from margrove.data.formats import Format
from margrove.errors import ParameterError
from margrove.problem import Problem

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csc_matrix

    from margrove.tree.model import TreeSolution  # noqa: F401  (the type of the solution, below)

Criterion = Literal["entropy", "gini", "error", "squared_error", "gaussian_entropy", "absolute_error", "poisson"]
SplitScore = Literal["gain", "gain_ratio", "skew_adjusted"]
Test = Literal["threshold", "intervals", "multiway", "subset", "one_vs_rest"]
Thresholds = Literal["exact", "histogram", "gaussian", "logistic", "random"]

CLASS_CRITERIA: tuple[Criterion, ...] = ("entropy", "gini", "error")
VALUE_CRITERIA: tuple[Criterion, ...] = ("squared_error", "gaussian_entropy", "absolute_error", "poisson")
TESTS: tuple[Test, ...] = get_args(Test)

VARIANCE_FLOOR = 1e-9  # of the variance of all rows: where a node's is smaller, gaussian entropy takes this
LEAST_SUM = 1e-12  # of the node's sum of y: under poisson a branch with less counts as having none
EQUAL_GAIN = 1e-12  # gains that differ by less, relative to the impurity, are equal: rounding
MISSING = -1  # the code of a missing cell of a category


@dataclass(frozen=True)
class TreeColumn:
    """A column as a tree tests it."""

    name: str
    test: Test = "threshold"
    levels: tuple[Any, ...] = ()  # of a category; False and True of a boolean
    cuts: tuple[float, ...] = ()  # of intervals
    monotone: int = 0  # +1: the prediction must not fall as the column grows; -1: must not rise
    has_missing: bool = True  # False where no training cell was missing: words then do not say where one would go
    format: Format | None = None  # of numbers: how they are written
    date_part: tuple[str, ...] = ()  # of a part of a date: the date's column, and which part

    @property
    def n_codes(self) -> int:
        """The number of codes of its cells: levels or intervals; 0 for thresholds, whose cells are numbers."""
        return len(self.cuts) + 1 if self.test == "intervals" else len(self.levels)


@dataclass(frozen=True)
class Cells:
    """The cells of n rows by column: numbers with NaN for missing, or int32 codes of categories with -1 for missing."""

    columns: tuple[TreeColumn, ...]
    n_rows: int
    values: tuple[NDArray[Any], ...] = ()  # each (n,): float32, float64 or int32, of any stride
    sparse: csc_array | csc_matrix | None = None  # or all columns as one CSC matrix of numbers
    block: NDArray[Any] | None = None  # the (n, d) array with contiguous rows whose columns `values` are, if so
    # A dictionary where several trees are grown of these cells: an engine keeps in it what it need not do again.
    kept: dict[Any, Any] | None = field(default=None, compare=False, repr=False)

    def column(self, j: int) -> NDArray[Any]:
        """The cells of column j; of a sparse matrix, made dense."""
        if self.sparse is not None:
            return np.asarray(self.sparse[:, [j]].toarray().ravel())
        return self.values[j]

    def codes(self, j: int) -> NDArray[np.int32]:
        """The codes of column j, which has intervals or levels; -1 where missing."""
        column, values = self.columns[j], self.column(j)
        if column.test != "intervals":
            return values
        codes = np.searchsorted(np.asarray(column.cuts), values, side="right").astype(np.int32)
        codes[np.isnan(values)] = MISSING
        return codes

    def take(self, rows: RowIndex) -> Cells:
        """The same columns with only these rows."""
        n_rows = len(np.arange(self.n_rows)[rows])
        if self.sparse is not None:
            return Cells(self.columns, n_rows, sparse=self.sparse.tocsr()[rows].tocsc())
        return Cells(self.columns, n_rows, tuple(values[rows] for values in self.values))

    def shuffled(self, j: int, order: NDArray[np.intp]) -> Cells:
        """The same rows with the cells of column j in another order."""
        if self.sparse is None:
            values = (*self.values[:j], self.values[j][order], *self.values[j + 1 :])
            return replace(self, values=values, block=None)
        from scipy.sparse import hstack  # not loaded by programs that only predict

        parts = self.sparse[:, :j], self.sparse[:, [j]].tocsr()[order].tocsc(), self.sparse[:, j + 1 :]
        return replace(self, sparse=hstack(parts, format="csc"))


@dataclass(frozen=True)
class Growth:
    """The rules by which a tree is grown; see the head of this module."""

    criterion: Criterion = "gini"
    split_score: SplitScore = "gain"
    thresholds: Thresholds = "exact"
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    max_leaf_nodes: int | None = None  # if given, the node whose split gains most (w(S) · gain) is split next
    max_features: int | None = None  # columns looked at in each node, drawn at random; None means all
    min_impurity_decrease: float = 0.0
    min_gain: float = 0.0
    majority: float = 1.0
    complexity: float = 0.0
    n_bins: int = 255  # of thresholds="histogram"
    # None: columns in their order, so the first of equals wins; else in a random order per node.
    seed: int | None = None


@dataclass(frozen=True)
class TreeProblem(Problem["TreeSolution"]):
    """Rows, target, weights and how to grow."""

    cells: Cells
    target: NDArray[Any]  # (n,), or (n, targets) of several: int32 classes, or float64 numbers
    n_classes: int  # 0 for numbers; of several targets the sum of their classes
    weight: NDArray[np.float64] | None = None  # (n,), all > 0; None where all are one
    growth: Growth = field(default_factory=Growth)
    outputs: tuple[int, ...] = ()  # of several targets: the number of classes of each, 1 for numbers

    @property
    def is_regression(self) -> bool:
        """True if the target is a number."""
        return self.n_classes == 0


@dataclass(frozen=True)
class SpreadTreeProblem(Problem["TreeSolution"]):
    """The same of rows that lie on the workers of a cluster, some columns of all rows at a time."""

    rows: Any  # in partitions; the engine's own
    columns: tuple[TreeColumn, ...]
    n_rows: int
    weight: float  # of all rows
    is_weighted: bool  # rows have weights other than 1
    n_classes: int
    growth: Growth


def check_asked(problem: TreeProblem) -> None:
    """Raise `ParameterError` for what no tree can do."""
    growth = problem.growth
    if problem.outputs:
        _check_several(problem)
    if problem.is_regression and growth.thresholds in ("gaussian", "logistic"):
        raise ParameterError(
            f"thresholds is {growth.thresholds!r}, which is for classes; for numbers it must be 'exact' or 'histogram'"
        )
    for column in problem.cells.columns:
        if column.monotone != 0 and problem.n_classes > 2:
            raise ParameterError(
                f"column {column.name!r} has a monotone constraint, and there are {problem.n_classes} classes; "
                "monotone constraints are for two classes and for regression. Remove them."
            )
        if column.monotone != 0 and column.test not in ("threshold", "intervals"):
            raise ParameterError(
                f"column {column.name!r} has a monotone constraint and is a category, whose levels have no order. "
                "Remove the constraint, or encode the column as numbers."
            )


def _check_several(problem: TreeProblem) -> None:
    """Raise `ParameterError` for what no tree of several targets can do."""
    growth = problem.growth
    for name, value, others in (
        ("criterion", growth.criterion, ("gaussian_entropy",)),
        ("thresholds", growth.thresholds, ("gaussian", "logistic")),
    ):
        if value in others:
            raise ParameterError(f"{name} is {value!r}, which takes one target, and y has {len(problem.outputs)}.")
    if growth.majority < 1:
        raise ParameterError(f"majority is {growth.majority}, which takes one target, and y has several. Use 1.")
    for column in problem.cells.columns:
        if column.monotone != 0 or column.test == "subset":
            what = "has a monotone constraint" if column.monotone else "is tested by subsets (categorical)"
            raise ParameterError(f"column {column.name!r} {what}, which takes one target, and y has several.")
