"""The best test of a node, in plain NumPy. The terms and formulas are those of `problem.py`.

A column divides the rows of a node into groups that no test of it can divide (`groups.py`). The tests are then

threshold     the groups in ascending order: every prefix against the rest, the missing cells on either side
intervals,    every group a branch
multiway
subset        the groups ordered by the share of class 1 or by the mean of the target: every prefix against the rest.
              No other subset is better for two classes (Breiman 1984) and for the squared error (Fisher 1958), unless
              a limit on the leaves forbids the best; for the other two criteria of a regression it is a heuristic. For
              more classes: one such order for the share of each class, the best prefix of all of them (the best of
              all subsets in 199 of 200 random tables of six classes and levels, and 0.95 of its gain in the other)
one_vs_rest   every group against the rest

Monotone constraints are scikit-learn's: the value of a node is its share of class 1, its mean or its median. A test of
a constrained column needs branches whose values are in order and within the bounds of the node; the value halfway
between two branches then bounds both, with all their descendants. Tests of other columns are free and pass the bounds
on. A value beyond its bounds is set to the bound (`held_value`); gains are those of the unbounded values. A missing
cell has no place in the order: "present or missing" is a free test, and the branch of missing cells of intervals only
has to keep the bounds of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, log2, nan

import numpy as np
from numpy.typing import NDArray

from margrove.tree.association import NO_LEVELS, LevelTable, level_table
from margrove.tree.draws import column_order, mixed, random_cut
from margrove.tree.groups import Groups, Measure, Parts, Tally, groups_of_levels, groups_of_numbers
from margrove.tree.impurity import entropy, moments
from margrove.tree.problem import EQUAL_GAIN, LEAST_SUM, VARIANCE_FLOOR, TreeProblem, check_asked
from margrove.tree.thresholds import gaussian_cuts, logistic_cuts, quantile_cuts

Floats = NDArray[np.float64]
Bounds = tuple[float, float]  # the values that a node and its descendants may have
FREE: Bounds = (-inf, inf)

# With weighted rows the impurity of a node may be arbitrarily small, but shares of classes are rounded: here to sixteen
# decimals, in the core to multiples of 2⁻⁶⁰ of the node's weight, with at least one for each row.
_LEAST_GAIN_UNIT = 1e-5
_GAIN_UNIT_OF_A_ROW = 1e-9


@dataclass(frozen=True)
class Node:
    """The rows that reach a node, with their weight, impurity and value."""

    rows: NDArray[np.intp]
    target: NDArray[np.float64]  # classes or numbers, of these rows
    row_weight: Floats
    weight: float
    impurity: float
    value: Floats  # (K,) or (1,), of the rows as they are
    bounds: Bounds
    key: int  # of all that is drawn at random in the node
    gain_unit: float  # gains that differ by less than EQUAL_GAIN of it are equal


@dataclass(frozen=True)
class Split:
    """One test at one node."""

    column: int
    gain: float  # imp(S) − Σ_b p_b imp(S_b)
    n_tests: float  # c: the number of tests that the column offered
    n_candidates: float  # tests of all columns that were searched; a column tested by subsets counts as one
    levels: LevelTable  # of a subset test: the table of all levels
    charge: float  # λ (log2 d + log2 c)/w(S)
    threshold: float
    level_branch: NDArray[np.int32]
    missing_branch: int
    default_branch: int
    branch: NDArray[np.int32]  # of each row of the node
    branches: Parts  # (B,)
    bounds: tuple[Bounds, ...]  # of each branch

    @property
    def information(self) -> float:
        """Return −Σ_b p_b log2 p_b."""
        return float(entropy(self.branches.weight))

    @property
    def charged_gain(self) -> float:
        """The gain by which tests and nodes are compared."""
        return self.gain - self.charge


@dataclass(frozen=True)
class _Tests:
    """The tests that a column offers at a node, in their order."""

    gain: Floats  # −∞ where not allowed
    make: Callable[[int], tuple[NDArray[np.int32], float]]  # the branch of each group, and θ


class SplitSearch:
    """The search for the best test of a node.

    ``slack`` is the relative tolerance of the limits, for rounding; a negative one leaves out tests that only rounding
    might allow.
    """

    def __init__(self, problem: TreeProblem, slack: float = EQUAL_GAIN) -> None:
        check_asked(problem)
        self.problem, self.slack = problem, slack
        cells, growth = problem.cells, problem.growth
        self._weight = np.ones(cells.n_rows) if problem.weight is None else problem.weight.astype(np.float64)
        floor, self._value_unit = 0.0, 1.0
        if problem.is_regression:
            floor = 0.0 if problem.outputs else VARIANCE_FLOOR * moments(problem.target, self._weight)[1]
            self._value_unit = float(np.abs(problem.target).max())
        self._measure = Measure(growth.criterion, problem.n_classes, floor, problem.outputs)
        self._cuts: dict[int, Floats] = {}
        if growth.thresholds == "histogram":
            numbers = [j for j, column in enumerate(cells.columns) if column.test == "threshold"]
            self._cuts = {j: quantile_cuts(cells.column(j).astype(np.float64), growth.n_bins) for j in numbers}

    def node(self, rows: NDArray[np.intp], bounds: Bounds = FREE, key: int | None = None) -> Node:
        """Return the node that holds these rows; ``key`` is that of the root if it is not given."""
        if key is None:
            key = mixed(self.problem.growth.seed or 0)
        target, weight = self.problem.target[rows].astype(np.float64), self._weight[rows]
        whole = self._measure.groups(target, weight, np.zeros(len(rows), np.intp), 1)[0]
        impurity = float(whole.impurity)
        gain_unit = abs(impurity)
        if self.problem.growth.criterion == "gaussian_entropy":
            gain_unit += 1.0  # that of nats, which cross 0
        elif self.problem.growth.criterion == "poisson":
            gain_unit += float(whole.value.mean())
        if not self.problem.is_regression and self.problem.weight is not None:
            gain_unit = max(gain_unit, _LEAST_GAIN_UNIT + _GAIN_UNIT_OF_A_ROW * len(rows))
        return Node(rows, target, weight, float(whole.weight), impurity, whole.value, bounds, key, gain_unit)

    def held_value(self, node: Node) -> Floats:
        """Return the value of the node as a leaf: within its bounds."""
        if node.bounds == FREE:
            return node.value
        if self.problem.is_regression:
            return np.clip(node.value, *node.bounds)
        ones = float(np.clip(node.value[1] / node.weight, *node.bounds)) * node.weight
        return np.array([node.weight - ones, ones])

    # ---------------------------------------------------------------------------------------------- when to stop

    def is_final(self, node: Node, depth: int) -> bool:
        """Return whether the node is a leaf without a search for tests."""
        growth = self.problem.growth
        if self.problem.is_regression:
            is_settled = bool((node.target == node.target[0]).all())
        else:
            is_pure = np.count_nonzero(node.value) == max(1, len(self.problem.outputs))
            is_major = node.value.max() >= growth.majority * (1 - self.slack) * node.weight
            is_settled = is_pure or (is_major and not self.problem.outputs)
        is_deep = growth.max_depth is not None and depth >= growth.max_depth
        return bool(is_settled or is_deep or len(node.rows) < growth.min_samples_split)

    def is_worthwhile(self, node: Node, split: Split) -> bool:
        """Return whether the chosen test gains enough."""
        growth = self.problem.growth
        rounding = self.slack * node.gain_unit
        share = node.weight / self._weight.sum()
        return (
            split.charged_gain >= growth.min_gain - rounding
            and share * split.charged_gain >= growth.min_impurity_decrease - share * rounding
        )

    # ------------------------------------------------------------------------------------------ the best of columns

    def columns(self, node: Node) -> Sequence[int]:
        """Return the columns in the order in which the node looks at them."""
        n_columns = len(self.problem.cells.columns)
        is_drawn = self.problem.growth.seed is not None or self.problem.growth.max_features is not None
        return column_order(node.key, n_columns) if is_drawn else range(n_columns)

    def looked_at(self, node: Node) -> list[int]:
        """Return the columns that the node looks at: with ``max_features`` it ends after that many that offer a test,
        or at the first allowed test after them."""
        return [j for j, _, _ in self._offers(node)]

    def _offers(self, node: Node) -> Iterator[tuple[int, Groups, list[Split]]]:
        """Yield each column that the node looks at, its groups and its best test, if it has one."""
        most, n_looked, has_any = self.problem.growth.max_features, 0, False
        for j in self.columns(node):
            if most is not None and n_looked >= most and has_any:
                return
            groups = self.groups(node, j)
            n_looked += groups.n_tests > 0
            best = self.best_test(node, j, groups)
            has_any = has_any or best is not None
            yield j, groups, [] if best is None else [best]

    def best_split(self, node: Node) -> Split | None:
        """Return the best test of the columns that the node looks at; None if no column offers one."""
        splits: list[Split] = []
        n_candidates = 0.0
        for _, groups, offered in self._offers(node):
            n_candidates += groups.n_choices
            splits += offered
        if not splits:
            return None
        if self.problem.growth.split_score == "gain_ratio":  # only tests of at least the mean gain compete (C4.5)
            mean = sum(split.charged_gain for split in splits) / len(splits)
            splits = [split for split in splits if split.charged_gain >= mean - self.slack * node.gain_unit]
        scores = np.array([self.score(node, split) for split in splits])
        unit = max(node.gain_unit, abs(scores.max()))
        best = splits[int(np.argmax(scores >= scores.max() - EQUAL_GAIN * unit))]
        return replace(best, n_candidates=n_candidates)

    def score(self, node: Node, split: Split) -> float:
        """Return the score by which the best tests of the columns are compared."""
        kind = self.problem.growth.split_score
        if kind == "gain":
            return split.charged_gain
        if kind == "gain_ratio":
            return split.charged_gain / split.information
        return node.impurity - (node.impurity - split.charged_gain) / split.information

    # -------------------------------------------------------------------------------------------- the best of a column

    def best_test(self, node: Node, j: int, groups: Groups | None = None, least: float = -inf) -> Split | None:
        """Return the allowed test of largest gain that column j offers, the first of equals; None if there is none, or
        none that gains ``least``."""
        groups = self.groups(node, j) if groups is None else groups
        return next(self.best_tests(node, j, groups, EQUAL_GAIN * node.gain_unit, least), None)

    def best_tests(self, node: Node, j: int, groups: Groups, rounding: float, least: float = -inf) -> Iterator[Split]:
        """Yield the allowed tests of column j whose gain is the largest up to rounding, in their order; none if that
        gain is less than ``least``."""
        if groups.n_groups < 2:
            return
        offered = {
            "threshold": self._thresholds,
            "intervals": self._every_group,
            "multiway": self._every_group,
            "subset": self._subsets,
            "one_vs_rest": self._one_vs_rest,
        }[groups.kind]
        tally = self._measure.tally(node.target, node.row_weight, groups.group, groups.n_groups)
        tests = offered(node, self.problem.cells.columns[j].monotone, groups, tally)
        best = float(tests.gain.max())
        if best == -inf or best < least:
            return
        for at in np.flatnonzero(tests.gain >= best - rounding):
            branch_of_group, threshold = tests.make(int(at))
            split = self.describe(node, j, groups, branch_of_group[groups.group], threshold)
            if self.problem.growth.complexity == 0 or split.charged_gain > abs(self.slack) * node.gain_unit:
                yield split

    def groups(self, node: Node, j: int) -> Groups:
        """Return the groups into which column j divides the rows of the node."""
        cells = self.problem.cells
        kind = cells.columns[j].test
        if kind == "threshold":
            x = cells.column(j)[node.rows].astype(np.float64)
            return groups_of_numbers(x, self._cuts_at(node, j, x))
        return groups_of_levels(kind, cells.codes(j)[node.rows])

    def _cuts_at(self, node: Node, j: int, x: Floats) -> Floats | None:
        """Return the candidate thresholds that do not come from the node's values."""
        kind = self.problem.growth.thresholds
        if kind == "exact":
            return None
        if kind == "histogram":
            return self._cuts[j]
        is_present = ~np.isnan(x)
        if kind == "random":
            return np.array([random_cut(node.key, j, x[is_present])] if is_present.any() else [])
        fit = gaussian_cuts if kind == "gaussian" else logistic_cuts
        return fit(x[is_present], node.target[is_present].astype(np.intp), node.row_weight[is_present])

    def _thresholds(self, node: Node, monotone: int, groups: Groups, tally: Tally) -> _Tests:
        m, n_groups = groups.n_present, groups.n_groups
        sign = np.full(n_groups - 1, monotone)
        sign[m - 1 :] = 0  # "present or missing", if there are both
        gain = self._gain_where_allowed(node, tally.two_way(), sign)
        if not groups.has_missing:
            return _Tests(gain, lambda at: (_second_from(at + 1, n_groups), float(groups.thresholds[at])))
        # In this order: every threshold with the missing cells in the second branch; "present or missing"; every
        # threshold with the missing cells in the first branch.
        turned = np.roll(np.arange(n_groups), 1)  # the missing cells before all others
        missing_first = tally.two_way(turned)[:, 1:]  # without "missing or present"
        both = np.concatenate([gain, self._gain_where_allowed(node, missing_first, sign[: m - 1])])

        def make(at: int) -> tuple[NDArray[np.int32], float]:
            place = at % m
            branch_of_group = _second_from(place + 1, n_groups)
            branch_of_group[-1] = int(at < m)
            return branch_of_group, float(groups.thresholds[place]) if place < m - 1 else inf

        return _Tests(both, make)

    def _every_group(self, node: Node, monotone: int, groups: Groups, tally: Tally) -> _Tests:
        each = tally.each()
        gain = self._gain_where_allowed(node, each[:, None], np.array([monotone]), n_ordered=groups.n_present)
        return _Tests(gain, lambda at: (np.arange(groups.n_groups, dtype=np.int32), nan))

    def _subsets(self, node: Node, monotone: int, groups: Groups, tally: Tally) -> _Tests:
        each = tally.each()
        value = each.value if self.problem.is_regression else each.value / each.weight[:, None]
        keys = value.T[1:] if self.problem.n_classes == 2 else value.T  # (orders, groups)
        orders = [np.argsort(key, kind="stable") for key in keys]

        def make(at: int) -> tuple[NDArray[np.int32], float]:
            order, prefix = divmod(at, groups.n_groups - 1)
            return (np.argsort(orders[order]) > prefix).astype(np.int32), nan

        return _Tests(np.concatenate([self._gain_where_allowed(node, tally.two_way(order)) for order in orders]), make)

    def _one_vs_rest(self, node: Node, monotone: int, groups: Groups, tally: Tally) -> _Tests:
        gain = self._gain_where_allowed(node, tally.one_vs_rest())[: int(groups.n_tests)]
        return _Tests(gain, lambda at: ((np.arange(groups.n_groups) != at).astype(np.int32), nan))

    def describe(self, node: Node, j: int, groups: Groups, branch: NDArray[np.int32], threshold: float = nan) -> Split:
        """Return the test of column j that sends the rows of the node into these branches."""
        column = self.problem.cells.columns[j]
        branches = self._measure.groups(node.target, node.row_weight, branch.astype(np.intp), int(branch.max()) + 1)
        share = branches.weight / node.weight
        heaviest = int(np.argmax(share >= share.max() * (1 - EQUAL_GAIN)))
        branch_of_group = np.empty(groups.n_groups, dtype=np.int32)
        branch_of_group[groups.group] = branch
        level_branch = np.full(column.n_codes, -1, dtype=np.int32)
        level_branch[groups.codes] = branch_of_group[: len(groups.codes)]
        bits = log2(len(self.problem.cells.columns)) + log2(groups.n_tests)
        return Split(
            column=j,
            gain=float(self._gain(node, branches)),
            n_tests=groups.n_tests,
            n_candidates=groups.n_choices,
            levels=self._all_levels(node, groups),
            charge=self.problem.growth.complexity * bits / node.weight,
            threshold=threshold,
            level_branch=level_branch,
            missing_branch=int(branch_of_group[-1]) if groups.has_missing else heaviest,
            default_branch=heaviest,
            branch=branch,
            branches=branches,
            bounds=self._bounds_of_branches(node, j, branches, groups.n_present, threshold),
        )

    def _all_levels(self, node: Node, groups: Groups) -> LevelTable:
        if groups.kind != "subset":
            return NO_LEVELS
        levels = level_table(node.target, node.row_weight, groups.group, self.problem.n_classes)
        is_tested = self.problem.growth.criterion != "absolute_error"  # its splits have no p-value
        return levels if is_tested else replace(levels, association=nan)

    def is_allowed(self, node: Node, split: Split) -> bool:
        """Return whether the branches are large enough and in monotone order."""
        column = self.problem.cells.columns[split.column]
        n_ordered = int(split.level_branch.max()) + 1 if column.test == "intervals" else len(split.branches.weight)
        sign = np.array([0 if split.threshold == inf else column.monotone])
        return bool(np.isfinite(self._gain_where_allowed(node, split.branches[:, None], sign, n_ordered))[0])

    # ------------------------------------------------------------------------------------------- gains and limits

    @staticmethod
    def _gain(node: Node, branches: Parts) -> Floats:
        """Return imp(S) − Σ_b p_b imp(S_b); the branches are the first axis."""
        return np.asarray(node.impurity - (branches.weight * branches.impurity).sum(axis=0) / node.weight)

    def _gain_where_allowed(
        self, node: Node, branches: Parts, sign: NDArray[np.int_] | None = None, n_ordered: int | None = None
    ) -> Floats:
        """Return the gain of each candidate of (B, candidates), −∞ where a branch is too small or the values
        of the first ``n_ordered`` branches, which ascend with the column, are not ordered as ``sign`` requires."""
        growth = self.problem.growth
        is_allowed = np.ones(branches.weight.shape[1:], dtype=bool)
        if growth.min_samples_leaf > 1:  # no branch is empty
            is_allowed &= (branches.n_rows >= growth.min_samples_leaf).all(axis=0)
        if growth.min_weight_leaf > 0:
            is_allowed &= (branches.weight >= growth.min_weight_leaf * (1 - self.slack)).all(axis=0)
        if growth.criterion == "poisson":
            least = LEAST_SUM * node.weight * node.value
            is_allowed &= (branches.weight[..., None] * branches.value > least).all(axis=(0, -1))
        if sign is not None and sign.any():
            value, rounding = self._levels(branches), self.slack * self._value_unit
            low, high = node.bounds
            is_within = ((value >= low - rounding) & (value <= high + rounding)).all(axis=0)
            is_ordered = (sign * np.diff(value[:n_ordered], axis=0) >= -rounding).all(axis=0)
            is_allowed &= (is_within & is_ordered) | (sign == 0)
        return np.where(is_allowed, self._gain(node, branches), -inf)

    def _levels(self, parts: Parts) -> Floats:
        """Return the values that a monotone constraint compares: the share of class 1, or the mean or median."""
        return parts.value[..., 0] if self.problem.is_regression else parts.value[..., 1] / parts.weight

    def _bounds_of_branches(
        self, node: Node, j: int, branches: Parts, n_present: int, threshold: float
    ) -> tuple[Bounds, ...]:
        """Return the bounds of the values of each branch: halfway to its neighbours."""
        column, n_branches = self.problem.cells.columns[j], len(branches.weight)
        if column.monotone == 0 or threshold == inf:
            return (node.bounds,) * n_branches
        n_ordered = 2 if column.test == "threshold" else n_present
        level = self._levels(branches)[:n_ordered]
        middle = (level[:-1] + level[1:]) / 2
        low, high = node.bounds
        if column.monotone > 0:
            bounds = zip([low, *middle], [*middle, high], strict=True)
        else:
            bounds = zip([*middle, low], [high, *middle], strict=True)
        return (*((float(a), float(b)) for a, b in bounds), *(node.bounds,) * (n_branches - n_ordered))


def _second_from(first: int, n_groups: int) -> NDArray[np.int32]:
    """Return the branch of each group: 1 from group ``first`` on, 0 before it."""
    return (np.arange(n_groups) >= first).astype(np.int32)
