"""Scores of single columns: how much one test of one column reduces the impurity of the class.

Of each column the test of largest gain is taken, as at the root of a tree:

- a category is split into all its levels (the classical gain(S, A)), missing cells being one more level; other tests
  on request (``categorical``)
- a number is split at its best threshold x ≤ θ: the tree of one level. Missing cells go where the gain is larger;
  "present or missing" is a test too

With the rows S, branches S_b of the shares p_b = w(S_b)/w(S), and the split information I = −Σ_b p_b log2 p_b:

====================  =============================================  =================================
information_gain      imp(S) − Σ_b p_b imp(S_b)                      imp the entropy, in bits
gini_gain             the same                                       imp the Gini impurity
error_gain            the same                                       imp the share of errors
gain_ratio            [imp(S) − Σ_b p_b imp(S_b)] / I                imp the entropy, or ``criterion``
skew_adjusted_gain    imp(S) − [Σ_b p_b imp(S_b)] / I                imp the entropy, or ``criterion``
====================  =============================================  =================================

A column that offers no test (a constant) has gain and gain ratio 0, no skew-adjusted score (NaN: scikit-learn's
selectors rank it last) and p = 1. For a category, the information gain is the mutual information of column and class.

The p-value is that of the χ² test of the branches' class counts, exact where counts are small, corrected for the number
of thresholds (or other tests) that the best was chosen from: `tree/significance.py`. It is that of one column; for the
choice among columns correct it once more, as scikit-learn's ``SelectFdr`` and ``SelectFwe`` do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.engine import Engine
from margrove.engine.estimator import RunsOnEngine
from margrove.errors import InputError, check_choice, check_whole
from margrove.estimator import checked, estimator
from margrove.select.problem import ColumnProblem, ColumnTests
from margrove.tree.association import NO_LEVELS, LevelTable, level_table
from margrove.tree.groups import groups_of_levels
from margrove.tree.impurity import class_impurity
from margrove.tree.model import LEAF, TreeModel
from margrove.tree.problem import CLASS_CRITERIA, Criterion, Growth, SplitScore, Test, Thresholds, TreeProblem
from margrove.tree.reading import CATEGORY_TESTS, ColumnWishes, learn_cells, read_classes
from margrove.tree.settings import settle_criterion
from margrove.tree.significance import split_p_values

Scores = NDArray[np.float64]

# The impurity of each score (None: the parameter), and its formula.
KINDS: dict[str, tuple[Criterion | None, SplitScore]] = {
    "information_gain": ("entropy", "gain"),
    "gini_gain": ("gini", "gain"),
    "error_gain": ("error", "gain"),
    "gain_ratio": (None, "gain_ratio"),
    "skew_adjusted_gain": (None, "skew_adjusted"),
}


class ScoreOptions(TypedDict, total=False):
    """The options of the score functions: see `information_gain`."""

    sample_weight: ArrayLike | None
    class_weight: Mapping[Any, float] | str | None
    thresholds: str
    n_bins: int
    categorical: str
    categorical_features: Any
    split_values: Mapping[Any, Sequence[float]] | None
    n_jobs: int | None
    engine: str | Engine


class RatioOptions(ScoreOptions, total=False):
    """The same, and the impurity."""

    criterion: str


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """The scores of d columns, with gains, tests and thresholds."""

    score: Scores
    p_value: Scores
    gain: Scores
    n_tests: Scores
    threshold: Scores  # of numbers; NaN of all others


def information_gain(X: Any, y: ArrayLike, **options: Unpack[ScoreOptions]) -> tuple[Scores, Scores]:
    """Return the information gain of each column in bits: entropy before − entropy after.

    Parameters
    ----------
    X : array, sparse matrix, data frame or Table of shape (n, d)
        Text, categories, booleans and missing cells as they are.
    y : labels of shape (n,)
    sample_weight : array of shape (n,), optional
        A row of weight 2 counts as two rows.
    class_weight : dict or "balanced", optional
        The same by class.
    thresholds : {"exact", "histogram", "gaussian", "logistic"}, default="exact"
        Which thresholds of a number are tried: between all neighbouring values; at ``n_bins`` quantiles; where normal
        densities of the classes cross; where a logistic regression gives one half.
    n_bins : int, default=255
    categorical : {"multiway", "subset", "one_vs_rest"}, default="multiway"
        How a category splits the rows: into all its levels, some against the others, or one against all others.
    categorical_features : "from_dtype" or array of columns or mask, default="from_dtype"
        Which numbers are categories, by name, position or mask.
    split_values : dict of column to cut points, optional
        Numbers that are split into these intervals rather than by one threshold.
    n_jobs : int, optional
        Threads; None means all.
    engine : str or Engine
        Where it runs: "auto", "native", "reference", or an `Engine` object.

    Returns
    -------
    scores, p_values : ndarrays of shape (d,)
        As scikit-learn's selectors want them.

    Examples
    --------
    >>> from margrove import information_gain, load_penguins
    >>> penguins = load_penguins()
    >>> scores, p_values = information_gain(penguins, penguins.labels())
    >>> for name, score, p in zip(penguins.names, scores, p_values):
    ...     print(f"{name:17}  {score:.3f} bits  p = {p:.2g}")
    island             0.750 bits  p = 1.4e-63
    bill_length_mm     0.712 bits  p = 4.4e-59
    bill_depth_mm      0.684 bits  p = 2.9e-59
    flipper_length_mm  0.797 bits  p = 8.5e-66
    body_mass_g        0.556 bits  p = 1.7e-49
    sex                0.010 bits  p = 0.59
    year               0.005 bits  p = 0.5

    With options, for a selector of scikit-learn:

    >>> from functools import partial
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.feature_selection import SelectKBest
    >>> X, y = load_iris(return_X_y=True)
    >>> SelectKBest(partial(information_gain, thresholds="histogram"), k=2).fit(X, y).get_support()
    array([False, False,  True,  True])
    """
    return _scores_and_p_values("information_gain", X, y, **options)


def gini_gain(X: Any, y: ArrayLike, **options: Unpack[ScoreOptions]) -> tuple[Scores, Scores]:
    """Return the decrease of the Gini impurity by each column.

    Parameters and results are those of `information_gain`.

    Examples
    --------
    >>> from margrove import gini_gain
    >>> scores, p_values = gini_gain([[0, 5], [0, 6], [1, 5], [1, 6]], ["a", "a", "b", "b"])
    >>> scores
    array([0.5, 0. ])
    """
    return _scores_and_p_values("gini_gain", X, y, **options)


def error_gain(X: Any, y: ArrayLike, **options: Unpack[ScoreOptions]) -> tuple[Scores, Scores]:
    """Return the decrease of the error of predicting the most frequent class, as a share of the rows, by each column.

    Parameters and results are those of `information_gain`. It is 0 for a column, however useful, if the most frequent
    class is the same in all branches.

    Examples
    --------
    >>> from margrove import error_gain
    >>> scores, p_values = error_gain([["sunny"], ["sunny"], ["rain"], ["rain"]], ["no", "no", "yes", "no"])
    >>> scores
    array([0.])
    """
    return _scores_and_p_values("error_gain", X, y, **options)


def gain_ratio(X: Any, y: ArrayLike, **options: Unpack[RatioOptions]) -> tuple[Scores, Scores]:
    """Return the gain of each column divided by the split information, which penalises many branches (C4.5).

    Parameters and results are those of `information_gain`, and ``criterion`` ("entropy" by default, "gini" or "error").
    A column that separates a few rows has little split information, and so a large ratio: trees compare ratios only
    among columns of at least average gain. A score of single columns cannot; `ImpuritySelector` does.

    Examples
    --------
    A number for each row has the full information gain, and a small gain ratio:

    >>> from margrove import gain_ratio, information_gain
    >>> X = [["r1", "a"], ["r2", "a"], ["r3", "b"], ["r4", "b"]]
    >>> y = [0, 0, 1, 1]
    >>> information_gain(X, y)[0], gain_ratio(X, y)[0]
    (array([1., 1.]), array([0.5, 1. ]))
    """
    return _scores_and_p_values("gain_ratio", X, y, **options)


def skew_adjusted_gain(X: Any, y: ArrayLike, **options: Unpack[RatioOptions]) -> tuple[Scores, Scores]:
    """Return impurity before − impurity after / split information, as some lecture notes print it.

    Parameters and results are those of `gain_ratio`. It is meant to penalise columns of many values. As printed it
    rewards them: the division makes the *subtracted* term smaller. It is here for comparison.

    Examples
    --------
    The column that names nearly every row scores higher than one with nearly the same gain in two values:

    >>> from margrove import gain_ratio, skew_adjusted_gain
    >>> X = [["r1", "a"], ["r1", "a"], ["r2", "a"], ["r3", "a"], ["r4", "b"], ["r5", "b"], ["r6", "b"], ["r6", "b"]]
    >>> y = [0, 1, 0, 0, 1, 1, 1, 1]
    >>> skew_adjusted_gain(X, y)[0].round(2), gain_ratio(X, y)[0].round(2)
    (array([0.85, 0.55]), array([0.28, 0.55]))
    """
    return _scores_and_p_values("skew_adjusted_gain", X, y, **options)


def _scores_and_p_values(
    kind: str, X: Any, y: Any, sample_weight: ArrayLike | None = None, **options: Any
) -> tuple[Scores, Scores]:
    scorer = ColumnScorer(**options)
    scorer._check()
    scored = scorer._score(kind, X, y, sample_weight)
    return scored.score, scored.p_value


@estimator
class ColumnScorer(RunsOnEngine):
    """The parameters of the scores, and the way from a table to them. Base class of the selector."""

    criterion: str = "entropy"
    thresholds: Thresholds = checked(check_choice, allowed=get_args(Thresholds), default="exact")
    n_bins: int = checked(check_whole, least=2, default=255)
    categorical: Test = checked(check_choice, allowed=CATEGORY_TESTS, default="multiway")
    categorical_features: Any = "from_dtype"
    split_values: Mapping[Any, Sequence[float]] | None = None
    class_weight: Mapping[Any, float] | str | None = None

    def _score(self, kind: str, X: Any, y: Any, sample_weight: ArrayLike | None) -> ColumnScores:
        """Return the scores of a table: read it, search the best test of each column, weigh them."""
        criterion, split_score = KINDS[kind]
        criterion = criterion or settle_criterion(self.criterion, CLASS_CRITERIA)
        if y is None:
            raise InputError(f"{kind} requires y to be passed, but the target y is None")
        cells = learn_cells(self, X, ColumnWishes(self.categorical, self.categorical_features, self.split_values, None))
        sample = read_classes(cells, y, sample_weight, self.class_weight)
        assert sample.classes is not None
        n_bins = min(int(self.n_bins), max(2, sample.cells.n_rows))
        growth = Growth(criterion=criterion, thresholds=self.thresholds, n_bins=n_bins)
        root = TreeProblem(sample.cells, sample.target, len(sample.classes), sample.weight, growth)
        tests = self._solve(ColumnProblem(root))
        whole = np.bincount(root.target, root.weight, root.n_classes)
        gain, information = gains(tests, whole, criterion)
        score = _scores(split_score, float(class_impurity(criterion, whole)), gain, information)
        return ColumnScores(score, p_values(tests, _levels(root)), gain, tests.n_tests, tests.threshold)


def gains(tests: ColumnTests, whole: NDArray[Any], criterion: Criterion) -> tuple[Scores, Scores]:
    """Return the gain and the split information of each column's test; 0 and 0 where it offers none. ``whole`` is the
    weight of each class in all rows."""
    gain, information = np.zeros(len(tests.n_tests)), np.zeros(len(tests.n_tests))
    offered = np.flatnonzero(tests.is_offered)
    if len(offered) == 0:
        return gain, information
    first = tests.start[offered]
    weight = tests.table.sum(axis=1)
    total = float(whole.sum())
    after = np.add.reduceat(weight * class_impurity(criterion, tests.table), first) / total
    gain[offered] = np.maximum(class_impurity(criterion, whole) - after, 0.0)  # below zero is rounding
    share = weight / total
    information[offered] = np.add.reduceat(-share * np.log2(share), first)
    return gain, information


def _levels(root: TreeProblem) -> list[LevelTable]:
    """Return the table of all levels of each column that is tested by subsets."""
    weight = np.ones(root.cells.n_rows) if root.weight is None else root.weight
    found = []
    for j, column in enumerate(root.cells.columns):
        if column.test == "subset":
            group = groups_of_levels("subset", root.cells.codes(j)).group
            found.append(level_table(root.target.astype(np.float64), weight, group, root.n_classes))
        else:
            found.append(NO_LEVELS)
    return found


def p_values(tests: ColumnTests, levels: Sequence[LevelTable]) -> Scores:
    """Return the p-value of each column's test; 1 where it offers none. ``levels`` are the tables of all levels."""
    offered = np.flatnonzero(tests.is_offered)
    p = np.ones(len(tests.n_tests))
    if len(offered) == 0:
        return p
    # The significance of a split depends on its branches and levels alone, so one model can hold the one-level trees of
    # all columns: the roots first, then their leaves.
    n_roots, n_leaves = len(offered), len(tests.table)
    m = n_roots + n_leaves
    fan_out = np.concatenate([np.diff(tests.start)[offered], np.zeros(n_leaves, np.int64)])
    value = np.concatenate([np.add.reduceat(tests.table, tests.start[offered]), tests.table])
    n_tests = np.concatenate([tests.n_tests[offered], np.zeros(n_leaves)])
    tables = [*(levels[j] for j in offered.tolist()), *[NO_LEVELS] * n_leaves]
    n_levels = np.array([table.n_levels for table in tables])
    model = TreeModel(
        columns=(),
        feature=np.concatenate([offered, np.full(n_leaves, LEAF)]).astype(np.int32),
        threshold=np.full(m, np.nan),
        child_start=np.concatenate([[0], np.cumsum(fan_out)]).astype(np.int32),
        child=np.arange(n_roots, m, dtype=np.int32),
        level_start=np.zeros(m + 1, np.int64),
        level_branch=np.empty(0, np.int32),
        missing_branch=np.full(m, -1, np.int32),
        default_branch=np.full(m, -1, np.int32),
        n_rows=np.zeros(m, np.int64),
        weight=value.sum(axis=1),
        impurity=np.full(m, np.nan),
        gain=np.full(m, np.nan),
        n_tests=n_tests,
        n_candidates=np.where(n_levels > 0, 1.0, n_tests),
        value=value,
        n_levels=n_levels,
        association=np.array([table.association for table in tables]),
        inverse_weight=np.array([table.inverse_weight for table in tables]),
    )
    p[offered] = split_p_values(model)[:n_roots]
    return p


def _scores(kind: SplitScore, impurity: float, gain: Scores, information: Scores) -> Scores:
    """Return the scores by the formulas at the head of this module."""
    if kind == "gain":
        return gain
    offers = information > 0
    if kind == "gain_ratio":
        return np.divide(gain, information, out=np.zeros_like(gain), where=offers)
    after = np.divide(impurity - gain, information, out=np.full_like(gain, np.nan), where=offers)
    return impurity - after
