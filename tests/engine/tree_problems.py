"""Trees, boosted trees, forests and the best test of each column. Unique are rows, impurity and gain of a node, and the
error of a round; of two tests that gain alike either may be taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from tests.engine.kind import Kind, Learner, Twins, table, whole_weights
from tests.tree.ugly_tables import compare, ugly_table

import margrove
from margrove.boost.certificate import certify_boost_problem
from margrove.boost.model import BoostModel, BoostSolution
from margrove.boost.problem import BoostProblem, HeldOut, factors
from margrove.forest.model import ForestSolution
from margrove.forest.problem import ForestProblem
from margrove.select.problem import ColumnProblem, ColumnTests
from margrove.select.scores import gains
from margrove.status import Status
from margrove.tree.certificate import certify_tree_problem
from margrove.tree.grove import Grove
from margrove.tree.impurity import class_impurity
from margrove.tree.model import TreeSolution
from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem

ALL_KINDS = ["normal", "few", "subset", "multiway", "one_vs_rest", "intervals", "constant", "dominated"]


def ugly(
    number: int, n_classes: int = 3, weights: str = "any", *, monotone: bool = False, **growth: Any
) -> TreeProblem:
    """Numbers and categories with ties, missing cells, rare levels and a constant column."""
    rng = np.random.default_rng(number)
    growth = {"criterion": "gini" if n_classes else "squared_error", **growth}
    return ugly_table(rng, 45, ALL_KINDS, n_classes, weights, Growth(**growth), monotone)


def numbers(X: Any, target: np.ndarray, weight: np.ndarray | None = None, **growth: Any) -> TreeProblem:
    """Columns of numbers, dense or sparse; classes are whole numbers."""
    columns = tuple(TreeColumn(f"x{j}") for j in range(X.shape[1]))
    is_of_classes = target.dtype.kind == "i"
    growth = {"criterion": "gini" if is_of_classes else "squared_error", **growth}
    values = () if sp.issparse(X) else tuple(X.T)
    cells = Cells(columns, X.shape[0], values, X.tocsc() if sp.issparse(X) else None)
    return TreeProblem(cells, target, int(target.max()) + 1 if is_of_classes else 0, weight, Growth(**growth))


def sparse_numbers(seed: int, **growth: Any) -> TreeProblem:
    rng = np.random.default_rng(seed)
    X = sp.random(60, 8, 0.3, format="csc", random_state=seed)
    target = (np.asarray(X[:, [0]].toarray()).ravel() > 0.3).astype(np.int32) + (rng.random(60) < 0.3)
    return numbers(X, target.astype(np.int32), rng.uniform(0.5, 2, 60), **growth)


def noise(n: int, d: int, **growth: Any) -> TreeProblem:
    rng = np.random.default_rng(0)
    return numbers(rng.normal(size=(n, d)), rng.integers(0, 2, n).astype(np.int32), **growth)


def refuted(claims: Any) -> list[str]:
    """The claims that do not hold."""
    return [f"{claim.name}: {claim.values} against {claim.limits}" for claim in claims if claim.holds is False]


# Trees


def _check(problem: TreeProblem, solution: TreeSolution) -> None:
    """Every node recounted and every split searched again; a tree that was stopped may have leaves to split."""
    grown = solution.model if solution.status is Status.CONVERGED else None
    assert refuted(certify_tree_problem(problem, solution.model, grown)) == []


def _check_stopped(problem: TreeProblem, solution: TreeSolution) -> None:
    """Each leaf holds the rows that reach it."""
    tree = solution.model
    reached = np.bincount(tree.apply(problem.cells), minlength=tree.n_nodes)
    np.testing.assert_array_equal(reached[tree.is_leaf], tree.n_rows[tree.is_leaf])


def _compare(problem: TreeProblem, solution: TreeSolution, expected: TreeSolution) -> None:
    assert solution.status is expected.status
    compare(problem, expected.model, solution.model)


def _twins() -> Twins:
    rows, times = whole_weights(8, n=40)
    again = np.repeat(np.arange(rows.n), times)
    growth = {"max_depth": 4, "min_weight_leaf": 3.0}
    weighted = numbers(rows.X, rows.codes, times.astype(np.float64), **growth)
    repeated = numbers(rows.X[again], rows.codes[again], np.ones(len(again)), **growth)

    def values(solution: TreeSolution) -> dict[str, Any]:
        tree = solution.model
        return {name: getattr(tree, name) for name in ("feature", "weight", "impurity", "gain", "value")}

    return Twins(weighted, repeated, values, rtol=1e-9)


def _learner(estimator: Any, target: str, X: Any = None) -> Learner:
    rows = table(2, 60, 4)
    X, y = rows.X if X is None else X, getattr(rows, target)
    weight = np.random.default_rng(2).uniform(0.5, 2, 60)
    return Learner(
        lambda engine: estimator.set_params(engine=engine).fit(X, y, sample_weight=weight),
        lambda model: margrove.certify(model, X, y, sample_weight=weight),
    )


TREES = Kind(
    TreeProblem,
    {
        "weighted": lambda: ugly(1),
        "whole weights": lambda: ugly(2, 2, "whole"),
        "unweighted": lambda: ugly(3, 4, "one"),
        "entropy": lambda: ugly(4, criterion="entropy", split_score="gain_ratio"),
        "error": lambda: ugly(5, criterion="error", max_depth=4),
        "skew adjusted": lambda: ugly(6, criterion="entropy", split_score="skew_adjusted", max_depth=4),
        "squared error": lambda: ugly(7, 0),
        "gaussian entropy": lambda: ugly(8, 0, criterion="gaussian_entropy"),
        "absolute error": lambda: ugly(9, 0, criterion="absolute_error"),
        "monotone": lambda: ugly(10, 2, monotone=True),
        "monotone regression": lambda: ugly(11, 0, monotone=True),
        "few leaves": lambda: ugly(12, max_leaf_nodes=6),
        "small leaves forbidden": lambda: ugly(13, min_samples_leaf=5, min_weight_leaf=4.0, min_samples_split=12),
        "little gain forbidden": lambda: ugly(14, min_gain=0.05, min_impurity_decrease=0.01, majority=0.9),
        "charged for complexity": lambda: ugly(15, complexity=0.5),
        "histogram": lambda: ugly(16, thresholds="histogram", n_bins=8),
        "gaussian": lambda: ugly(17, thresholds="gaussian", max_depth=3),
        "sparse": lambda: sparse_numbers(18),
        "sparse histogram": lambda: sparse_numbers(19, thresholds="histogram", n_bins=4),
        "wide": lambda: numbers(table(5, 15, 40).X, table(5, 15, 40).codes),
        "single": lambda: numbers(table(3, 60, 4).X.astype(np.float32), table(3, 60, 4).codes),
        "one row": lambda: numbers(np.ones((1, 2)), np.zeros(1, np.int32)),
        "random columns": lambda: ugly(20, max_features=3, seed=1),
    },
    _check,
    _compare,
    lambda solution: [solution.status],
    oracle=lambda problem: None if problem.growth.seed is not None else problem,  # each engine draws its own columns
    long=lambda: noise(200_000, 20),
    check_stopped=_check_stopped,
    large=lambda: noise(8000, 10),
    twins=_twins,
    learners={
        "DecisionTreeClassifier": _learner(margrove.DecisionTreeClassifier(max_depth=4), "codes"),
        "DecisionTreeClassifier of sparse": _learner(
            margrove.DecisionTreeClassifier(max_depth=4), "codes", sp.random(60, 6, 0.4, format="csr", random_state=1)
        ),
        "DecisionTreeRegressor": _learner(margrove.DecisionTreeRegressor(max_depth=4), "z"),
        "DecisionStump": _learner(margrove.DecisionStump(), "sign"),
    },
)


# Boosted trees


def _boost(learner: TreeProblem, n_rounds: int = 6, **options: Any) -> BoostProblem:
    return BoostProblem(learner, n_rounds, **options)


def _early_stopped() -> BoostProblem:
    learner = ugly(2, 3, max_depth=2)
    rows = np.arange(0, 45, 3)
    held_out = HeldOut(learner.cells.take(rows), np.roll(learner.target[rows], 1), None, patience=2)
    return _boost(learner, 30, held_out=held_out)


def _perfect() -> BoostProblem:
    rows = table(1, 40, 3)
    return _boost(numbers(rows.X, (rows.X[:, 0] > 0).astype(np.int32), max_depth=1))


def _check_boost(problem: BoostProblem, solution: BoostSolution) -> None:
    """Every round repeated from the votes, its trees searched again; see `margrove.boost.certificate`."""
    if solution.rounds.n_rounds == 0:
        assert (solution.status, solution.model.grove.n_trees) == (Status.NO_BETTER_THAN_CHANCE, 0)
        return
    assert refuted(certify_boost_problem(problem, solution.model, solution.rounds)) == []


def _check_stopped_boost(problem: BoostProblem, solution: BoostSolution) -> None:
    """Each round that was finished has its tree and its vote."""
    assert solution.model.grove.n_trees == len(solution.model.vote) == solution.rounds.n_rounds
    np.testing.assert_array_equal(solution.model.vote, solution.rounds.vote)


def _compare_boosts(problem: BoostProblem, solution: BoostSolution, expected: BoostSolution) -> None:
    """Rounds are the same until two trees judge a row differently: these must tie on the weights of their round."""
    learner = problem.learner
    weight = np.ones(learner.cells.n_rows) if learner.weight is None else learner.weight
    weight = weight / weight.sum()
    for t in range(min(solution.rounds.n_rounds, expected.rounds.n_rounds)):
        trees = [each.model.grove.tree(t) for each in (expected, solution)]
        labels = [np.argmax(tree.value, axis=1)[tree.apply(learner.cells)] for tree in trees]
        if not np.array_equal(*labels):
            compare(replace(learner, weight=weight), *trees)
            return
        for name in ("error", "vote", "training_error"):
            mine, theirs = getattr(solution.rounds, name)[t], getattr(expected.rounds, name)[t]
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
        right, wrong = factors(float(expected.rounds.vote[t]), problem.n_classes)
        weight = weight * np.where(labels[0] == learner.target, right, wrong)
        weight /= weight.sum()
    assert (solution.status, solution.rounds.n_rounds) == (expected.status, expected.rounds.n_rounds)


def _boost_twins() -> Twins:
    rows, times = whole_weights(8, n=40)
    again = np.repeat(np.arange(rows.n), times)
    weighted = _boost(numbers(rows.X, rows.codes, times.astype(np.float64), max_depth=2))
    repeated = _boost(numbers(rows.X[again], rows.codes[again], max_depth=2))

    def values(solution: BoostSolution) -> dict[str, Any]:
        rounds = solution.rounds
        return {"error": rounds.error, "vote": rounds.vote, "training_error": rounds.training_error}

    return Twins(weighted, repeated, values, rtol=1e-7)


def _resume(problem: BoostProblem, solution: BoostSolution) -> BoostProblem:
    return replace(problem, before=BoostModel(solution.model.grove, solution.model.vote, problem.n_classes))


BOOSTS = Kind(
    BoostProblem,
    {
        "weighted": lambda: _boost(ugly(1, 2, max_depth=2)),
        "several classes": lambda: _boost(ugly(3, 4, "one", max_depth=3, criterion="entropy")),
        "slower": lambda: _boost(ugly(4, 3, max_depth=2), learning_rate=0.3),
        "whole weights": lambda: _boost(ugly(5, 3, "whole", max_depth=3, min_samples_leaf=4)),
        "sparse": lambda: _boost(sparse_numbers(6, max_depth=2)),
        "histogram": lambda: _boost(ugly(7, 2, max_depth=2, thresholds="histogram", n_bins=8)),
        "wide": lambda: _boost(numbers(table(5, 15, 40).X, table(5, 15, 40).codes, max_depth=1)),
        "single": lambda: _boost(numbers(table(3, 60, 4).X.astype(np.float32), table(3, 60, 4).codes, max_depth=2)),
        "perfect learner": _perfect,
        "no better than chance": lambda: _boost(numbers(np.ones((20, 2)), np.arange(20, dtype=np.int32) % 2)),
        "bound reached": lambda: _boost(ugly(8, 2, max_depth=3), 50, stop_at_bound=0.3),
        "early stopped": _early_stopped,
    },
    _check_boost,
    _compare_boosts,
    lambda solution: [solution.status],
    long=lambda: _boost(noise(2000, 5, max_depth=2), 10**6),
    check_stopped=_check_stopped_boost,
    large=lambda: _boost(noise(3000, 5, max_depth=3), 10),
    cut=lambda problem: replace(problem, n_rounds=2),
    cut_case="",
    resume=_resume,
    twins=_boost_twins,
    learners={"AdaBoostClassifier": _learner(margrove.AdaBoostClassifier(n_estimators=5), "codes")},
)


# Forests


def _forest(root: TreeProblem, n_trees: int = 3, **options: Any) -> ForestProblem:
    return ForestProblem(root, n_trees, **({"n_drawn": root.cells.n_rows, "seed": 5} | options))


def plain(seed: int, target: str = "codes", dtype: type = np.float64, **growth: Any) -> TreeProblem:
    """Numbers without missing cells, some of few values."""
    rows = table(seed, 60, 5)
    X = rows.X.astype(dtype)
    X[:, 1] = np.round(X[:, 1])
    problem = numbers(X, getattr(rows, target), **({"max_features": 2} | growth))
    columns = tuple(replace(column, has_missing=False) for column in problem.cells.columns)
    return replace(problem, cells=replace(problem.cells, columns=columns, block=X))


def _check_forest(problem: ForestProblem, solution: ForestSolution) -> None:
    """Every tree solves the problem of the rows that it draws."""
    for t in range(solution.model.n_trees):
        tree = solution.model.tree(t)
        assert refuted(certify_tree_problem(problem.tree(problem.first + t), tree, tree, is_ours=True)) == []
    if solution.status is Status.CONVERGED:
        assert solution.model.n_trees == problem.n_trees


def _compare_forests(problem: ForestProblem, solution: ForestSolution, expected: ForestSolution) -> None:
    assert solution.status is expected.status
    mine, theirs = solution.model.trees, expected.model.trees
    if isinstance(mine, Grove):
        for t in range(problem.n_trees):
            compare(problem.tree(problem.first + t), theirs.tree(t), mine.tree(t))
        return
    for name in ("start", "feature", "threshold", "right", "leaf_start", "n_rows"):  # none of these trees has ties
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    np.testing.assert_allclose(mine.weight, theirs.weight, rtol=1e-12)
    for t in range(problem.n_trees):
        np.testing.assert_allclose(mine.leaf_values(t), theirs.leaf_values(t), rtol=1e-9, atol=1e-12)


FORESTS = Kind(
    ForestProblem,
    {
        "any columns": lambda: _forest(ugly(1, max_features=3)),
        "weighted by class": lambda: _forest(ugly(2, 2, "one", max_features=2), is_balanced=True),
        "numbers of any columns": lambda: _forest(ugly(7, 0, max_features=4, min_samples_leaf=3)),
        "random thresholds": lambda: _forest(ugly(3, thresholds="random", max_features=3), n_drawn=None),
        "sparse": lambda: _forest(sparse_numbers(4, max_features=3)),
        "plain": lambda: _forest(plain(1)),
        "plain, entropy": lambda: _forest(plain(2, criterion="entropy", min_samples_leaf=4)),
        "plain, single precision": lambda: _forest(plain(3, dtype=np.float32, max_depth=4)),
        "plain numbers": lambda: _forest(plain(4, "z", max_features=None)),
        "plain random thresholds": lambda: _forest(plain(5, thresholds="random"), n_drawn=None),
        "few rows drawn": lambda: _forest(plain(6), n_drawn=20, first=2),
        "heavy leaves": lambda: _forest(plain(7), min_weight_share=0.1),
    },
    _check_forest,
    _compare_forests,
    lambda solution: [solution.status],
    long=lambda: _forest(noise(5_000, 10, max_features=3), 10_000),
    check_stopped=_check_forest,
    large=lambda: _forest(noise(3_000, 10, max_features=3), 10),
    learners={
        "RandomForestClassifier": _learner(margrove.RandomForestClassifier(n_estimators=5), "codes"),
        "ExtraTreesRegressor": _learner(margrove.ExtraTreesRegressor(n_estimators=5), "z"),
    },
)


# The best test of each column


def _columns(root: TreeProblem) -> ColumnProblem:
    return ColumnProblem(root)


def _check_columns(problem: ColumnProblem, tests: ColumnTests) -> None:
    """The branches of a test hold all rows; those of a threshold are its sides, and no other threshold gains more."""
    root, cells = problem.root, problem.root.cells
    weight = np.ones(cells.n_rows) if root.weight is None else root.weight
    whole = np.bincount(root.target, weight, root.n_classes)
    for j, column in enumerate(cells.columns):
        branches = tests.table[tests.start[j] : tests.start[j + 1]]
        x = cells.column(j) if column.test == "threshold" else cells.codes(j)
        is_missing = np.isnan(x) if column.test == "threshold" else x < 0
        is_one_value = len(np.unique(x[~is_missing])) + is_missing.any() < 2
        if len(branches) == 0:
            assert tests.n_tests[j] == 0
            assert is_one_value or root.growth.thresholds != "exact"
            continue
        assert not is_one_value
        np.testing.assert_allclose(branches.sum(axis=0), whole)
        assert (branches.sum(axis=1) > 0).all()
        if column.test == "threshold":
            _check_threshold(root, x, weight, float(tests.threshold[j]), branches)


def _check_threshold(root: TreeProblem, x: np.ndarray, weight: np.ndarray, at: float, branches: np.ndarray) -> None:
    whole = np.bincount(root.target, weight, root.n_classes)

    def sides(threshold: float) -> list[np.ndarray]:
        """The table of each way to send missing cells."""
        below = [x <= threshold, (x <= threshold) | np.isnan(x)]
        left = [np.bincount(root.target[part], weight[part], root.n_classes) for part in below]
        return [np.array([part, whole - part]) for part in left]

    def after(parts: np.ndarray) -> float:
        """The impurity that is left."""
        return float(parts.sum(axis=1) @ class_impurity(root.growth.criterion, parts) / whole.sum())

    assert any(np.allclose(branches, parts) for parts in sides(at))
    if root.growth.thresholds == "exact":
        seen = np.unique(x[~np.isnan(x)]).astype(np.float64)
        candidates = [*((seen[1:] + seen[:-1]) / 2), *([np.inf] if np.isnan(x).any() else [])]
        assert at in candidates
        least = min(after(parts) for threshold in candidates for parts in sides(threshold) if parts.sum(axis=1).all())
        assert after(branches) <= least + 1e-9


def _compare_columns(problem: ColumnProblem, tests: ColumnTests, expected: ColumnTests) -> None:
    root = problem.root
    whole = np.bincount(root.target, root.weight, root.n_classes)
    np.testing.assert_array_equal(tests.n_tests, expected.n_tests)
    np.testing.assert_array_equal(tests.is_offered, expected.is_offered)
    mine, theirs = (gains(each, whole, root.growth.criterion)[0] for each in (tests, expected))
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10)


def _column_twins() -> Twins:
    rows, times = whole_weights(8, n=40)
    again = np.repeat(np.arange(rows.n), times)
    weighted = _columns(numbers(rows.X, rows.codes, times.astype(np.float64)))
    repeated = _columns(numbers(rows.X[again], rows.codes[again]))
    return Twins(weighted, repeated, lambda tests: {"threshold": tests.threshold, "table": tests.table}, rtol=1e-9)


COLUMNS = Kind(
    ColumnProblem,
    {
        "weighted": lambda: _columns(ugly(1)),
        "whole weights": lambda: _columns(ugly(2, 2, "whole", criterion="entropy")),
        "unweighted": lambda: _columns(ugly(3, 4, "one", criterion="error")),
        "histogram": lambda: _columns(ugly(4, thresholds="histogram", n_bins=8)),
        "gaussian": lambda: _columns(ugly(5, thresholds="gaussian")),
        "logistic": lambda: _columns(ugly(6, thresholds="logistic")),
        "sparse": lambda: _columns(sparse_numbers(7)),
        "wide": lambda: _columns(numbers(table(5, 15, 40).X, table(5, 15, 40).codes)),
        "single": lambda: _columns(numbers(table(3, 60, 4).X.astype(np.float32), table(3, 60, 4).codes)),
    },
    _check_columns,
    _compare_columns,
    lambda tests: [],
    large=lambda: _columns(noise(20_000, 20)),
    twins=_column_twins,
)

KINDS = (TREES, BOOSTS, FORESTS, COLUMNS)
