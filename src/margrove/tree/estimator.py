"""The base class of the trees. ``fit`` is the chain: sample → problem → grown tree → pruned tree → certificate."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Bunch, Tags, check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from margrove.certificate import Certificate
from margrove.data.formats import Format
from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.data.table import note_target
from margrove.engine import Effort, Engine, choose, fitted_by
from margrove.engine.registry import partitioning
from margrove.errors import InputError, ParameterError, check_whole, shown, warn_early
from margrove.estimator import estimator, fitted
from margrove.status import Status
from margrove.store.adoption import to_sklearn
from margrove.tree.certificate import solver_certificate
from margrove.tree.export import to_c, to_dataframe, to_python, to_sql
from margrove.tree.held_out import Grower, choose_by_folds, held_out_rows, some_rows
from margrove.tree.model import TreeModel
from margrove.tree.partitions import read_spread
from margrove.tree.path import CostComplexityPath, cost_complexity_path
from margrove.tree.problem import (
    VALUE_CRITERIA,
    VARIANCE_FLOOR,
    Cells,
    Criterion,
    SpreadTreeProblem,
    Test,
    TreeColumn,
    TreeProblem,
)
from margrove.tree.prune import held_out_sums, prune
from margrove.tree.reading import (
    THIN_LEVELS,
    ColumnWishes,
    TreeSample,
    check_same_classes,
    learn_cells,
    read_cells,
    several_targets,
)
from margrove.tree.rules import Rules, Style, tree_rules
from margrove.tree.settings import TreeParameters, columns_looked_at, settle_criterion
from margrove.tree.significance import split_p_values, stop_by_significance, target_variance
from margrove.tree.sql_source import Dialect
from margrove.tree.words import MOST_LEVELS

_WHY_THIN = (
    f"one_vs_rest: its levels have fewer than {THIN_LEVELS:g} rows each on average, so that subsets of them would fit "
    "single rows"
)
_WHY_NAMES = (
    "one_vs_rest: nearly every cell differs, and subsets of such levels cost fewer bits than the rows they separate"
)


def losses_by_shuffling(
    score: Callable[[Cells], float],
    cells: Cells,
    columns: Sequence[int],
    n_repeats: int,
    random_state: int | np.random.RandomState | None,
) -> Bunch:
    """Return how much a score falls when the cells of each of these columns are shuffled; 0 for the others."""
    generator = check_random_state(random_state)
    before, losses = score(cells), np.zeros((len(cells.columns), n_repeats))
    for j in columns:
        for repeat in range(n_repeats):
            losses[j, repeat] = before - score(cells.shuffled(j, generator.permutation(cells.n_rows)))
    return Bunch(importances=losses, importances_mean=losses.mean(axis=1), importances_std=losses.std(axis=1))


@estimator
class DecisionTree(TreeParameters):
    """The fit of a tree, and what a fitted one can do. Base class."""

    _criteria: ClassVar[tuple[Criterion, ...]]
    # No metadata that a pipeline could route, as in scikit-learn.
    __metadata_request__fit: ClassVar = {"check_input": UNUSED}
    __metadata_request__predict: ClassVar = {"check_input": UNUSED}

    nodes_: TreeModel = fitted()
    grown_: TreeModel = fitted()
    classes_: NDArray[Any] = fitted()
    n_classes_: int | NDArray[np.int64] = fitted()
    categorical_: dict[str, str] = fitted()
    ccp_alpha_: float = fitted()
    target_: str | None = fitted()
    target_format_: Format = fitted()  # only of a target that is not written plainly
    n_features_in_: int = fitted()

    @abstractmethod
    def _read_target(self, cells: Cells, y: Any, sample_weight: ArrayLike | None) -> TreeSample: ...

    @abstractmethod
    def _predicted(self, leaf: NDArray[np.int32]) -> NDArray[Any]: ...

    _n_targets = 1

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, check_input: bool = True) -> Self:
        """Grow the tree, and prune it if requested.

        Parameters
        ----------
        X : data frame, Table, array or sparse matrix of shape (n, d)
            Text, categories, booleans and missing cells are accepted as they are.
        y : labels, or numbers, of shape (n,), or (n, targets) for several at once
        sample_weight : array of shape (n,), optional
            A row of weight 2 counts as two rows.
        check_input : bool, default=True
            Accepted as in scikit-learn, here and in the predictions; the input is always checked.
        """
        self._check()
        self._draw_seed()
        self.__dict__.pop("_n_targets", None)
        if (engine := partitioning(self.engine, X)) is not None:
            return self._fit_partitions(engine, X, y, sample_weight)
        if (several := several_targets(y)) is not None:
            y, self._n_targets = several, several.shape[1]
            chosen = "cv" if self.ccp_alpha == "cv" else None
            for name, value in (("prune", self.prune), ("significance", self.significance), ("ccp_alpha", chosen)):
                if value is not None:
                    self._refuse_several(f"{name}={value!r}")
        cells = self._learn(X)
        sample, held_out = self._apart(self._read_target(cells, y, sample_weight))
        problem = self._problem(sample)
        effort = self._effort()
        grower = Grower(choose(self.engine, problem, effort), effort)
        self.grown_ = grower.grow(problem)
        is_grown = grower.status is Status.CONVERGED
        self.ccp_alpha_ = 0.0 if self._is_alpha_chosen else float(self.ccp_alpha)
        if self._is_alpha_chosen:  # the penalty of a leaf that does best on rows left out
            self.ccp_alpha_ = choose_by_folds(problem, cost_complexity_path(self.grown_), self._seed(), grower)
        self._keep(self._pruned(held_out, grower), grower.status, grower.engine)
        if sample.classes is not None:
            self.classes_, self.n_classes_ = sample.classes, len(sample.classes)
            if sample.outputs:
                self.n_classes_ = np.array(sample.outputs)
        if self.status_ is not Status.CONVERGED:
            what = "nodes still open became leaves"
            if is_grown:
                what = "ccp_alpha was chosen on fewer folds than planned, or is 0 if no fold finished"
            warn_early(type(self).__name__, self.status_, f": {what}")
        return self

    def _keep(self, tree: TreeModel, status: Status, engine: Engine) -> None:
        self.nodes_, self.status_, self.engine_ = tree, status, engine.name
        for name in ("certificate_", "tree_"):  # those of an earlier fit
            self.__dict__.pop(name, None)

    def _fit_partitions(self, engine: Engine, X: Any, y: Any, sample_weight: Any) -> Self:
        """Grow the tree of a table in partitions on the workers of an engine."""
        self._check_spread()
        criterion, effort = self._settled_criterion(), self._effort()
        started = time.monotonic()
        with engine.partitions(X, y, sample_weight) as parts:
            sample = read_spread(self, parts, self._wishes())
            self._note_categories(self, sample.columns)
            growth = self._growth(criterion, sample.n_rows, len(sample.columns), sample.weight)
            n_classes = 0 if sample.classes is None else len(sample.classes)
            problem = SpreadTreeProblem(
                sample.rows, sample.columns, sample.n_rows, sample.weight, sample.is_weighted, n_classes, growth
            )
            effort = effort.left(started)
            chosen = choose(engine, problem, effort)
            solution = chosen.solve(problem, effort)
        self.grown_, self.ccp_alpha_ = solution.model, float(self.ccp_alpha)
        self._keep(self._pruned(None), solution.status, chosen)
        if sample.classes is not None:
            self.classes_, self.n_classes_ = sample.classes, n_classes
        if self.status_ is not Status.CONVERGED:
            warn_early(type(self).__name__, self.status_, ": nodes still open became leaves")
        return self

    def _check_spread(self) -> None:
        """Raise `ParameterError` for what a tree over partitions does not do."""
        own = self.categorical_features
        is_asked = {
            "split_score": self.split_score != "gain",
            "splitter": self.splitter != "best",
            "thresholds": self.thresholds != "exact",
            "max_features": self.max_features is not None,
            "max_leaf_nodes": self.max_leaf_nodes is not None,
            "random_state": self.random_state is not None,
            "complexity": self.complexity > 0,
            "monotonic_cst": self.monotonic_cst is not None,
            "split_values": self.split_values is not None,
            "categorical_features": not (own is None or (isinstance(own, str) and own == "from_dtype")),
            "prune": self.prune == "reduced_error",
            "ccp_alpha": self._is_alpha_chosen,
            "criterion": self._settled_criterion() == "gaussian_entropy",
        }
        for name, asked in is_asked.items():
            if asked:
                found = f"{name} is {shown(getattr(self, name))}, which engine='dask' does not support"
                raise ParameterError(f"{found}. Leave it out, or fit rows in memory.")

    def _settled_criterion(self) -> Criterion:
        return settle_criterion(self.criterion, self._criteria)

    def _learn(self, X: Any, owner: BaseEstimator | None = None) -> Cells:
        """Return the cells of the training table; the tree, or the owner it learns for, records the columns."""
        owner = self if owner is None else owner
        cells = learn_cells(owner, X, self._wishes())
        note_target(owner, X)
        self._note_categories(owner, cells.columns)
        return cells

    def _wishes(self) -> ColumnWishes:
        test, _ = self._categorical_test()
        thin: Test | None = "one_vs_rest" if self.categorical == "auto" and test == "subset" else None
        is_priced = self.complexity > 0
        return ColumnWishes(
            test, self.categorical_features, self.split_values, self.monotonic_cst, thin, is_priced=is_priced
        )

    def _note_categories(self, owner: Any, columns: Sequence[TreeColumn]) -> None:
        """Record on the owner how each category is tested, and why."""
        test, why = self._categorical_test()
        categories = [column for column in columns if column.levels]
        why_thin = _WHY_NAMES if self.complexity > 0 else _WHY_THIN
        owner.categorical_ = {column.name: why if column.test == test else why_thin for column in categories}

    def _categorical_test(self) -> tuple[Test, str]:
        """Return the test of categories, and the reason for it."""
        if self.categorical != "auto":
            return self.categorical, f"{self.categorical}: as requested"
        if self._n_targets > 1:
            return "one_vs_rest", "one_vs_rest: there are several targets, by which subsets have no common order"
        if self.split_score == "gain_ratio":
            return "multiway", "multiway: the gain ratio penalises many branches, so that these tests compete fairly"
        return "subset", "subset: two branches keep rows together; one branch per level would scatter them"

    def _problem(self, sample: TreeSample) -> TreeProblem:
        n_classes = 0 if sample.classes is None else sum(sample.outputs) or len(sample.classes)
        if n_classes > 2 and not sample.outputs and any(column.monotone for column in sample.cells.columns):
            raise ParameterError(  # the first sentence is scikit-learn's
                "Monotonicity constraints are not supported with multiclass classification: monotonic_cst constrains "
                f"class 1 of two, and there are {n_classes} classes. Use monotonic_cst=None."
            )
        n_rows, n_columns = sample.cells.n_rows, len(sample.cells.columns)
        weight = float(n_rows if sample.weight is None else sample.weight.sum())
        growth = self._growth(self._settled_criterion(), n_rows, n_columns, weight)
        return TreeProblem(sample.cells, sample.target, n_classes, sample.weight, growth, sample.outputs)

    def _problem_of(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> tuple[TreeProblem, TreeSample | None]:
        """Return the problem that this tree solves, made again from the data, and the rows held out for pruning."""
        cells = read_cells(self, X, self.nodes_.columns)
        sample = self._read_target(cells, y, sample_weight)
        check_same_classes(self, sample)
        growing, held_out = self._apart(sample)
        return self._problem(growing), held_out

    def _apart(self, sample: TreeSample) -> tuple[TreeSample, TreeSample | None]:
        """The rows to grow from, and those held out for pruning."""
        if self.prune != "reduced_error":
            return sample, None
        held_out = held_out_rows(sample, self.validation_fraction, self._seed())
        return some_rows(sample, ~held_out), some_rows(sample, held_out)

    def _pruned(self, held_out: TreeSample | None, grower: Grower | None = None) -> TreeModel:
        """Return what the rules leave of ``grown_``, and ``grown_`` itself where there is no rule. The certificate
        applies the rules again without the ``grower``."""
        tree, alpha = self.grown_, self.ccp_alpha_ if self._is_alpha_chosen else float(self.ccp_alpha)
        if self.significance is None and self.prune is None and alpha == 0:
            return tree
        criterion = self._settled_criterion()
        if self.significance is not None:
            cut = stop_by_significance(tree, self.significance, criterion=criterion, correct=self.correct_significance)
            tree = tree.cut(cut)
        if self.prune is not None and self.prune != "cost_complexity":
            sums = None
            if held_out is not None:
                leaf = (
                    tree.apply(held_out.cells)
                    if grower is None
                    else grower.engine.apply_trees(tree, held_out.cells, grower.effort)
                )
                sums = held_out_sums(tree, leaf, held_out.target, held_out.weight, criterion=criterion)
            correct, level = self.correct_significance, self.prune_level
            tree = prune(tree, self.prune, level=level, criterion=criterion, correct=correct, held_out=sums)
        return prune(tree, "cost_complexity", alpha=alpha) if alpha > 0 else tree

    @property
    def _is_alpha_chosen(self) -> bool:
        return bool(self.ccp_alpha == "cv" or (self.prune == "cost_complexity" and self.ccp_alpha == 0))

    @cached_property
    def certificate_(self) -> Certificate:
        """The certificate with the fit's own numbers, made on first access. `margrove.certify` searches every split
        again, which takes many times as long as growing the tree."""
        check_is_fitted(self)
        return solver_certificate(self)

    @cached_property
    def tree_(self) -> Any:
        """The tree as scikit-learn's ``Tree``, with the arrays and methods that other tools read, made on first access.
        It rounds cells to float32. A tree with tests other than x ≤ θ raises AttributeError."""
        if not hasattr(self, "nodes_"):
            raise AttributeError("tree_ exists after fit")
        from margrove.tree.sklearn_tree import sklearn_tree

        if self._labels() is None:
            return sklearn_tree(self.nodes_, [1] * self._n_targets, list(self.nodes_.value.T[:, :, None]))
        values = self._values_by_target()
        shares = [value / value.sum(axis=1, keepdims=True) for value in values]
        return sklearn_tree(self.nodes_, [value.shape[1] for value in values], shares)

    @property
    def _fitted_tree(self) -> TreeModel:
        check_is_fitted(self)
        return self.nodes_

    def _exported(self, what: str) -> TreeModel:
        check_is_fitted(self)
        self._refuse_several(what)
        return self.nodes_

    def apply(self, X: ArrayLike, check_input: bool = True) -> NDArray[np.int32]:
        """The leaf of each row: its number in ``nodes_``. The input is always checked."""
        return self._leaves(read_cells(self, X, self._fitted_tree.columns))

    def predict(self, X: Any, check_input: bool = True) -> Any:
        """The heaviest class of the row's leaf, the first of equals; for regression the mean (or median). The input is
        always checked."""
        if kind_of_collection(X) is not None and self._n_targets == 1:
            dtype = np.float64 if self._labels() is None else self.classes_.dtype
            return predicted_lazily(self, "predict", X, dtype)
        return self._predicted(self.apply(X))

    def _leaves(self, cells: Cells) -> NDArray[np.int32]:
        return fitted_by(self).apply_trees(self.nodes_, cells, Effort(n_jobs=self.n_jobs))

    def decision_path(self, X: ArrayLike, check_input: bool = True) -> sp.csr_matrix:
        """The nodes that each row passes: a sparse matrix of shape (n, nodes) with ones. The input is always
        checked."""
        leaf, tree = self.apply(X), self.nodes_
        starts = np.concatenate([[0], np.cumsum(tree.depth[leaf] + 1, dtype=np.int64)])
        nodes = np.empty(starts[-1], dtype=np.int32)
        node, place, rows = leaf, starts[1:] - 1, np.arange(len(leaf))
        while len(rows):  # all rows go up together, each until it has passed the root
            nodes[place] = node
            rows = np.flatnonzero(tree.parent[node] >= 0)
            node, place = tree.parent[node[rows]], place[rows] - 1
        return sp.csr_matrix((np.ones(len(nodes), np.int64), nodes, starts), shape=(len(leaf), tree.n_nodes))

    def get_depth(self) -> int:
        """The depth of the deepest leaf; 0 where there is only the root."""
        return self._fitted_tree.max_depth

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        return self._fitted_tree.n_leaves

    @property
    def max_features_(self) -> int:
        """The number of columns that each node examined, as in scikit-learn."""
        check_is_fitted(self)
        looked_at = columns_looked_at(self.max_features, self.n_features_in_)
        return self.n_features_in_ if looked_at is None else looked_at

    @property
    def n_outputs_(self) -> int:
        """The number of targets."""
        check_is_fitted(self)
        return self._n_targets

    def _refuse_several(self, what: str) -> None:
        if self._n_targets > 1:
            problem = f"{what} takes one target, and this tree has {self._n_targets}"
            raise InputError(problem, cure="Fit one tree for each target.")

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The gain of each column's splits, weighted by their rows, as a share of the total."""
        return self._fitted_tree.importances()

    def permutation_importances(
        self,
        X: Any,
        y: ArrayLike,
        *,
        n_repeats: int = 5,
        random_state: int | np.random.RandomState | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Bunch:
        """Return how much the score (accuracy, or R²) falls when one column is shuffled, as scikit-learn's
        ``permutation_importance``: ``importances`` of shape (d, n_repeats), their ``importances_mean`` and
        ``importances_std``. Accepts tables as they are; a column that the tree does not test has 0."""
        check_is_fitted(self)
        check_whole("n_repeats", n_repeats, least=1)
        cells = read_cells(self, X, self.nodes_.columns)
        metric = accuracy_score if is_classifier(self) else r2_score

        def score(given: Cells) -> float:
            predicted = self._predicted(self._leaves(given))
            return float(metric(np.asarray(y), predicted, sample_weight=sample_weight))

        tested = np.unique(self.nodes_.feature[~self.nodes_.is_leaf]).tolist()
        return losses_by_shuffling(score, cells, tested, int(n_repeats), random_state)

    def cost_complexity_path(self) -> CostComplexityPath:
        """The nested trees that cost-complexity pruning makes of the grown one, and their penalties per leaf."""
        check_is_fitted(self)
        return cost_complexity_path(self.grown_)

    def cost_complexity_pruning_path(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Bunch:
        """Grow the tree of X and y, and return its ``ccp_alphas`` and ``impurities``, as scikit-learn does."""
        unpruned = type(self)(**{**self.get_params(), "ccp_alpha": 0.0, "prune": None, "significance": None})
        path = unpruned.fit(X, y, sample_weight).cost_complexity_path()
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities)

    def p_values(self) -> NDArray[np.float64]:
        """The p-value of each node's split, corrected for the tests it was chosen from; NaN at leaves."""
        self._refuse_several("p_values")
        return split_p_values(self._fitted_tree, criterion=self._settled_criterion(), correct=self.correct_significance)

    def rules(
        self, *, style: Style = "nested", max_depth: int | None = None, max_levels: int | None = MOST_LEVELS
    ) -> Rules:
        """The tree as nested if and else, or (``style="lines"``) as one rule for each leaf with support, confidence and
        p-value. A list names at most ``max_levels`` levels and counts the others; None names them all, as ``data()``
        and the exports always do. A regression tree shows value ± spread: the standard deviation of the leaf's rows, or
        with ``criterion="absolute_error"`` their mean distance from the median."""
        check_is_fitted(self)
        self._refuse_several("rules")
        tree, labels, spread, form = self.nodes_, self._labels(), self._spread(), getattr(self, "target_format_", None)
        return tree_rules(
            tree, labels, style=style, max_depth=max_depth, spread=spread, max_levels=max_levels, form=form
        )

    def _spread(self) -> NDArray[np.float64] | None:
        """Of numbers, how far the rows of each node lie from its value; None of classes."""
        criterion = self._settled_criterion()
        if criterion not in VALUE_CRITERIA or criterion == "poisson":
            return None
        if criterion == "absolute_error":
            return self.nodes_.impurity
        variance = target_variance(self.nodes_, criterion)
        if criterion == "gaussian_entropy":  # of equal numbers the impurity is that of the least variance there may be
            variance = np.where(variance <= VARIANCE_FLOOR * (1 + 1e-6) * variance[0], 0.0, variance)
        return np.asarray(np.sqrt(np.maximum(variance, 0)))

    def to_python(self, name: str = "predict") -> str:
        """A Python function with the predictions of this tree; it needs only the standard library."""
        return to_python(self._exported("to_python"), self._labels(), name)

    def to_sql(self, table: str | Sequence[str] | None = None, dialect: Dialect = "standard") -> str:
        """An SQL expression, or with a table's name (``("schema", "table")``) a query, with this tree's predictions.
        ``dialect="mysql"`` and ``"sqlserver"`` follow the quoting rules of these systems."""
        return to_sql(self._exported("to_sql"), self._labels(), table, dialect)

    def to_c(self, name: str = "predict") -> str:
        """A C function with the predictions of this tree."""
        return to_c(self._exported("to_c"), self._labels(), name)

    def to_sklearn(self) -> Any:
        """The same tree as scikit-learn's estimator, which rounds cells to float32: see `margrove.to_sklearn`."""
        return to_sklearn(self)

    def to_dataframe(self, library: str = "pandas") -> Any:
        """One line for each node."""
        return to_dataframe(self._exported("to_dataframe"), self._labels(), library)

    def _labels(self) -> Any:
        return getattr(self, "classes_", None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "nodes_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        rules = self.prune, self.significance, self.monotonic_cst
        is_plain = all(rule is None for rule in rules) and self.ccp_alpha != "cv" and self.majority == 1
        tags.target_tags.multi_output = is_plain and self.criterion != "gaussian_entropy"
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
