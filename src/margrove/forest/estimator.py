"""The base class of forests. ``fit`` is the chain: sample → problem → trees → pruned trees → out-of-bag predictions."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch, Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Parameter, Setting
from margrove.certificate import Certificate
from margrove.data.formats import Format
from margrove.engine import Effort, Engine, choose, fitted_by
from margrove.engine.registry import partitioning
from margrove.errors import (
    InputError,
    MargroveWarning,
    ParameterError,
    check_flag,
    check_number,
    check_whole,
    level_of_caller,
    listed,
    shown,
    warn_early,
)
from margrove.estimator import checked, estimator, fitted, fixed
from margrove.forest.c_source import to_c
from margrove.forest.certificate import solver_certificate
from margrove.forest.checkpointing import solve_with_checkpoint
from margrove.forest.model import ForestModel, ForestSolution, joined
from margrove.forest.out_of_bag import OutOfBag, out_of_bag
from margrove.forest.problem import ForestProblem, SpreadForestProblem
from margrove.run.checkpoint import CheckpointLike, settle_checkpoint
from margrove.status import Status
from margrove.store.adoption import to_sklearn
from margrove.tree.draws import drawn_rows, tree_seed
from margrove.tree.estimator import DecisionTree, losses_by_shuffling
from margrove.tree.grove import Grove
from margrove.tree.partitions import read_spread
from margrove.tree.problem import Cells, SplitScore, Thresholds
from margrove.tree.prune import Rule, prune
from margrove.tree.reading import TreeSample, check_same_classes, read_cells, several_targets
from margrove.tree.settings import TreeParameters

Floats = NDArray[np.float64]
_MOST_DRAWN = 2**31 - 1  # the core counts them


def _check_score(name: str, value: Any) -> None:
    if not callable(value):
        check_flag(name, value)


@estimator
class Forest(TreeParameters):
    """The parameters of a forest, its fit, and what a fitted one can do. Base class."""

    _tree_type: ClassVar[type[DecisionTree]]
    _kept: ClassVar[dict[str, str]] = {"oob_score": "oob_score_"}  # what a parameter lets the fit keep

    n_estimators: int = checked(check_whole, least=1, default=100, kw_only=False)
    bootstrap: bool = checked(check_flag, default=True)
    max_samples: int | float | None = None
    oob_score: bool | Callable[[Any, Any], float] = checked(_check_score, default=False)
    warm_start: bool = checked(check_flag, default=False)
    ccp_alpha: float = checked(check_number, least=0, default=0.0)
    checkpoint: CheckpointLike | None = None

    # The parameters of a tree that its forest has no choice of.
    split_score: SplitScore = fixed("gain")
    splitter: str = fixed("best")
    thresholds: Thresholds = fixed("exact")
    min_gain: float = fixed(0.0)
    complexity: float = fixed(0.0)
    significance: float | None = fixed(None)
    correct_significance: bool = fixed(True)
    prune: Rule | None = fixed(None)
    prune_level: float | None = fixed(None)
    validation_fraction: float = fixed(0.25)
    n_bins: int = fixed(255)

    model_: ForestModel = fitted()
    classes_: NDArray[Any] = fitted()
    n_classes_: int | NDArray[np.int64] = fitted()
    n_outputs_: int = fitted()
    n_rows_: int = fitted()
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[Any] = fitted()
    oob_score_: float = fitted()
    categorical_: dict[str, str] = fitted()
    target_: str | None = fitted()
    target_format_: Format = fitted()  # only of a target that is not written plainly

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : data frame, Table, array or sparse matrix of shape (n, d)
            Text, categories, booleans and missing cells are accepted as they are.
        y : labels, or numbers, of shape (n,), or (n, targets) for several at once
        sample_weight : array of shape (n,), optional
            A row counts as often as it was drawn, times its weight.
        """
        self._check()
        self._check_drawing()
        if self._has_all_trees():
            return self
        spread = partitioning(self.engine, X)
        before = dict(vars(self))
        try:
            if spread is None:
                self._grow(X, y, sample_weight)
            else:
                self._grow_spread(spread, X, y, sample_weight)
        except BaseException:  # the model that there was stays
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _grow(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        grown = self.model_ if self.warm_start and self.__sklearn_is_fitted__() else None
        if grown is None:
            self._draw_seed()
        tree = self._tree(y)
        cells = tree._learn(X, self)
        sample = tree._read_target(cells, y, sample_weight)
        problem = self._problem(tree, sample)
        if self.oob_score and sample.classes is not None and sample.outputs and set(sample.outputs) != {2}:
            found = f"the targets have {listed(sample.outputs)} classes, and of several each must have two"
            words = f"The type of target cannot be used to compute OOB estimates: {found}"  # scikit-learn's
            raise InputError(words, cure=Advice("Use ", Setting("oob_score", False), "."))
        if grown is not None:
            self._check_same(problem, grown)
            check_same_classes(self, sample)
            problem = replace(problem, n_trees=int(self.n_estimators) - grown.n_trees, first=grown.n_trees)
        effort = self._effort()
        engine = choose(self.engine, problem, effort)
        checkpoint = settle_checkpoint(self.checkpoint)
        if grown is not None and not problem.n_trees:
            solution = ForestSolution(grown)
        elif checkpoint is None:
            solution = engine.solve(problem, effort)
        else:
            solution = solve_with_checkpoint(engine, problem, effort, checkpoint)
        self._refuse_stopped(solution, grown)
        model = self._pruned(solution.model, problem) if problem.n_trees else solution.model
        if grown is not None and problem.n_trees:
            model = joined([grown.trees, model.trees], problem.root)
        self.model_, self.status_, self.engine_ = model, solution.status, engine.name
        self.n_rows_, self.n_outputs_ = sample.cells.n_rows, tree._n_targets
        self._n_samples_bootstrap, self._grown_seed = problem.n_drawn, problem.seed
        self._sample_weight = None  # of all given rows, times the weights of their classes
        if sample_weight is not None or getattr(tree, "class_weight", None) is not None:
            self._sample_weight = np.zeros(cells.n_rows)
            rows = slice(None) if problem.rows is None else problem.rows
            self._sample_weight[rows] = 1.0 if sample.weight is None else sample.weight
        if sample.classes is not None:
            self.classes_, self.n_classes_ = sample.classes, len(sample.classes)
            if sample.outputs:
                self.n_classes_ = np.array(sample.outputs)
        of_bag = ("oob_score_", "oob_decision_function_", "oob_prediction_")
        for name in ("certificate_", "estimators_", *of_bag):  # those of an earlier fit
            self.__dict__.pop(name, None)
        self._keep_targets(problem, sample)
        if self.oob_score:
            self._judge(problem, cells)
        if self.status_ is not Status.CONVERGED:
            n_done = model.n_trees
            warn_early(type(self).__name__, self.status_, f" after {n_done} of {self.n_estimators} trees")

    def _grow_spread(self, engine: Engine, X: Any, y: Any, sample_weight: Any) -> None:
        """Grow the forest of a table in partitions on the workers of an engine."""
        self._check_spread()
        self._draw_seed()
        tree, effort, started = self._tree(None), self._effort(), time.monotonic()
        with engine.partitions(X, y, sample_weight) as parts:
            sample = read_spread(tree, parts, tree._wishes(), self)
            tree._note_categories(self, sample.columns)
            bare = TreeSample(Cells(sample.columns, sample.n_rows), np.empty(0), sample.classes, None, None)
            problem = SpreadForestProblem(sample.rows, self._problem(tree, bare))
            effort = effort.left(started)
            chosen = choose(engine, problem, effort)
            solution = chosen.solve(problem, effort)
        self._refuse_stopped(solution, None)
        self.model_ = self._pruned(solution.model, problem.forest)
        self.status_, self.engine_ = solution.status, chosen.name
        self.n_rows_, self.n_outputs_ = sample.n_rows, 1
        if sample.classes is not None:
            self.classes_, self.n_classes_ = sample.classes, len(sample.classes)
        for name in ("certificate_", "estimators_", "training_", "oob_score_", "oob_prediction_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if self.status_ is not Status.CONVERGED:
            n_done = self.model_.n_trees
            warn_early(type(self).__name__, self.status_, f" after {n_done} of {self.n_estimators} trees")

    def _check_spread(self) -> None:
        """Raise `ParameterError` for what a forest over partitions does not do."""
        for name in ("oob_score", "warm_start", "checkpoint", "keep_targets", "monotonic_cst"):
            value = getattr(self, name, None)
            if value is not None and value is not False:
                found = f"{name} is {shown(value)}, which engine='dask' does not support"
                raise ParameterError(f"{found}. Leave it out, or fit rows in memory.")

    def _judge(self, problem: ForestProblem, cells: Cells) -> None:
        """Set the out-of-bag score and predictions; those of rows of weight zero are of all trees."""
        found = self._out_of_bag(problem, self.model_)
        of_all = found.value
        if problem.rows is not None:
            ignored = np.setdiff1d(np.arange(cells.n_rows), problem.rows)
            of_all = np.empty((cells.n_rows, found.value.shape[1]))
            of_all[problem.rows] = found.value
            of_all[ignored] = self._engine.mean_of_trees(self.model_, cells.take(ignored), self._threads)
        self._set_oob_score_and_attributes(found, problem.root.target, of_all)
        if n_unknown := int(np.count_nonzero(~found.is_known)):
            words = f"every tree has drawn {n_unknown} of {len(found.value)} rows. Increase n_estimators."
            words = f"Some inputs do not have OOB scores: {words}"  # as scikit-learn says
            warnings.warn(words, MargroveWarning, stacklevel=level_of_caller())

    def _has_all_trees(self) -> bool:
        """Return whether ``warm_start`` has nothing to add, and warn of it."""
        if not self.warm_start or not self.__sklearn_is_fitted__() or self.n_estimators > self.model_.n_trees:
            return False
        n_grown = self.model_.n_trees
        if self.n_estimators < n_grown:
            words = f" is {self.n_estimators}; with warm_start=True it must be at least the {n_grown} trees grown."
            raise ParameterError(Advice(Parameter("n_estimators"), words))
        words = "Warm-start fitting without increasing n_estimators does not fit new trees."
        warnings.warn(words, MargroveWarning, stacklevel=level_of_caller())
        return all(hasattr(self, name) for parameter, name in self._kept.items() if getattr(self, parameter))

    def _check_same(self, problem: ForestProblem, grown: ForestModel) -> None:
        """Raise an error unless the trees of an earlier fit belong to this problem."""
        if problem.root.cells.columns != grown.columns or problem.root.n_classes != grown.n_classes:
            raise InputError(
                "warm_start adds to trees that were fitted on other columns or classes",
                cure="Pass the same X and y, or use warm_start=False.",
            )
        seed = getattr(self, "_grown_seed", problem.seed)
        if problem.seed != seed:
            words = f" is {problem.seed}; with warm_start=True it must be {seed}, that of the trees grown."
            raise ParameterError(Advice(Parameter("random_state"), words))
        drawn = problem.root.cells.n_rows, problem.n_drawn
        if self.oob_score and drawn != self._drawn:
            found = f"{drawn[1]} of {drawn[0]} rows; the trees grown before drew {self._drawn[1]} of {self._drawn[0]}"
            raise InputError(f"each tree draws {found}", cure="Pass the same X, y and weights, or use oob_score=False.")

    @property
    def _drawn(self) -> tuple[int, int | None]:
        """The number of rows of the fit, and how many each tree drew."""
        return self.n_rows_, getattr(self, "_n_samples_bootstrap", self._n_drawn(self.n_rows_))

    def _refuse_stopped(self, solution: ForestSolution, grown: ForestModel | None) -> None:
        """Raise an error: not even one tree was grown."""
        if solution.model.n_trees or grown is not None:
            return
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted before the first tree was grown")
        words = f" is {self.time_limit}; the first tree took longer. Increase it."
        raise ParameterError(Advice(Parameter("time_limit"), words))

    def _check_drawing(self) -> None:
        """Raise an error if rows cannot be drawn as asked, or the checkpoint cannot be written."""
        settle_checkpoint(self.checkpoint)
        if not self.bootstrap and self.oob_score:
            found = "Out of bag estimation only available if bootstrap=True; here bootstrap=False and oob_score=True."
            raise ParameterError(Advice(found, " Use ", Setting("oob_score", False), "."))
        if not self.bootstrap and self.max_samples is not None:
            raise ParameterError(  # scikit-learn's words
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to `bootstrap=True` or set "
                "`max_sample=None`."
            )

    def _n_drawn(self, n_rows: int) -> int | None:
        """Return how many rows each tree draws."""
        value = self.max_samples
        if not self.bootstrap:
            return None
        if value is None:
            return n_rows
        is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if is_number and 0 < value * (n_rows if isinstance(value, (float, np.floating)) else 1) <= _MOST_DRAWN:
            return int(value) if isinstance(value, (int, np.integer)) else max(int(n_rows * float(value)), 1)
        found = f"max_samples is {shown(value)}; it must be a whole number of rows ≥ 1, or a share of the rows > 0"
        raise ParameterError(f"{found}, of at most {_MOST_DRAWN} rows.")

    def _tree(self, y: Any) -> DecisionTree:
        """Return the tree that reads the table and the target, and states the problem of each tree."""
        if sp.issparse(y):
            raise InputError("sparse multilabel-indicator for y is not supported", cure="Use y.toarray().")
        names = self._tree_type._get_param_names()
        given = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if self._is_balanced:
            given["class_weight"] = None
        tree = self._tree_type(**(given | {"ccp_alpha": 0.0, "random_state": self._seed()}))
        if (several := several_targets(y)) is not None:
            tree._n_targets = several.shape[1]
        return tree

    @property
    def estimator(self) -> DecisionTree:
        """The tree that this forest grows, not fitted; scikit-learn has this attribute and `estimator_`."""
        return self._tree(None)

    @property
    def estimator_(self) -> DecisionTree:
        """The same, after fit."""
        check_is_fitted(self)
        return self.estimator

    _is_balanced = False  # rows drawn are weighted by the sizes of their classes

    def _problem(self, tree: DecisionTree, sample: TreeSample) -> ForestProblem:
        """Return the problem of the whole forest."""
        n_drawn, root = self._n_drawn(sample.cells.n_rows), tree._problem(sample)
        share, n = float(self.min_weight_fraction_leaf), int(self.n_estimators)
        return ForestProblem(root, n, self._seed(), n_drawn, self._is_balanced, share, rows=sample.rows)

    def _problem_of(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> ForestProblem:
        """Return the problem that this forest solves, made again from the data."""
        tree = self._tree(y)
        sample = tree._read_target(read_cells(self, X, self.model_.columns), y, sample_weight)
        check_same_classes(self, sample)
        return replace(self._problem(tree, sample), n_trees=self.model_.n_trees)

    def _pruned(self, model: ForestModel, problem: ForestProblem) -> ForestModel:
        if self.ccp_alpha == 0:
            return model
        trees = [prune(model.tree(t), "cost_complexity", alpha=float(self.ccp_alpha)) for t in range(model.n_trees)]
        return joined([Grove.of(model.columns, trees)], problem.root)

    # ------------------------------------------------------------------------------------------------ predictions

    def _mean(self, X: Any) -> Floats:
        """Return the mean of what the trees predict."""
        check_is_fitted(self)
        return self._engine.mean_of_trees(self.model_, read_cells(self, X, self.model_.columns), self._threads)

    @property
    def _engine(self) -> Engine:
        return fitted_by(self)

    @property
    def _threads(self) -> Effort:
        return Effort(n_jobs=self.n_jobs)

    def apply(self, X: Any) -> NDArray[np.intp]:
        """Return the leaf that each row reaches in each tree, as the number of its node, shape (n, T)."""
        check_is_fitted(self)
        places = self._engine.leaves(self.model_, read_cells(self, X, self.model_.columns), self._threads)
        nodes = [self.model_.leaf_nodes(t)[places[:, t]] for t in range(self.model_.n_trees)]
        return np.stack(nodes, axis=1)

    def decision_path(self, X: Any) -> tuple[sp.csr_matrix, NDArray[np.int64]]:
        """Return the nodes that each row passes in all trees, and where the nodes of each tree begin."""
        paths = [tree.decision_path(X) for tree in self.estimators_]
        return sp.hstack(paths, format="csr"), np.cumsum([0, *(path.shape[1] for path in paths)])

    def proximity(self, X: Any, Y: Any = None) -> Floats:
        """Return the share of trees in which two rows reach the same leaf, for each row of X and of Y (or of X)."""
        check_is_fitted(self)
        first = self._leaf_indicator(X)
        second = first if Y is None else self._leaf_indicator(Y)
        return np.asarray((first @ second.T).toarray()) / self.model_.n_trees

    def _leaf_indicator(self, X: Any) -> sp.csr_array:
        """Return a column for each leaf of the forest, with a one where a row reaches it."""
        return self._indicator(
            self._engine.leaves(self.model_, read_cells(self, X, self.model_.columns), self._threads)
        )

    def _indicator(self, places: NDArray[np.int32]) -> sp.csr_array:
        firsts = np.cumsum([0, *(len(self.model_.leaf_nodes(t)) for t in range(self.model_.n_trees))])
        columns = (places + firsts[:-1]).ravel()
        starts = np.arange(len(places) + 1) * self.model_.n_trees
        return sp.csr_array((np.ones(len(columns)), columns, starts), shape=(len(places), firsts[-1]))

    @cached_property
    def estimators_(self) -> list[Any]:
        """The trees as estimators, made on first access."""
        check_is_fitted(self)
        kept = ("classes_", "n_classes_", "engine_", "target_", "target_format_", "n_features_in_", "feature_names_in_")
        own = {name: getattr(self, name) for name in kept if hasattr(self, name)}
        own |= {"status_": Status.CONVERGED, "ccp_alpha_": 0.0, "_n_targets": self.n_outputs_}
        estimators = []
        for t in range(self.model_.n_trees):
            estimators.append(self._tree(None).set_params(random_state=tree_seed(self._seed(), t)))
            nodes = self.model_.tree(t)
            vars(estimators[-1]).update(own, nodes_=nodes, grown_=nodes, categorical_=dict(self.categorical_))
        return estimators

    @property
    def estimators_samples_(self) -> list[NDArray[np.int32]]:
        """The rows that each tree was grown from, each as often as it was drawn. A model that was loaded counts only
        the rows whose weight is not zero."""
        check_is_fitted(self)
        n, n_drawn = self._drawn
        weight = getattr(self, "_sample_weight", None)
        given = np.arange(n, dtype=np.int32) if weight is None else np.flatnonzero(weight).astype(np.int32)
        seeds = [tree_seed(self._seed(), t) for t in range(self.model_.n_trees)]
        return [given.copy() if n_drawn is None else given[drawn_rows(seed, n, n_drawn)] for seed in seeds]

    def __getitem__(self, t: int) -> Any:
        return self.estimators_[t]

    def __len__(self) -> int:
        return len(self.estimators_)

    @property
    def feature_importances_(self) -> Floats:
        """The mean over the trees of how much the tests of each column reduce the impurity; the sum is 1."""
        of_each = self.importances_by_tree()
        of_each = of_each[of_each.any(axis=1)]  # a tree without a test has none
        mean = of_each.mean(axis=0) if len(of_each) else np.zeros(self.n_features_in_)
        return np.asarray(mean / mean.sum() if mean.sum() > 0 else mean)

    def importances_by_tree(self) -> Floats:
        """Return the importances in each tree, shape (T, d); their spread shows how certain the mean is."""
        check_is_fitted(self)
        return np.array([self.model_.tree(t).importances() for t in range(self.model_.n_trees)])

    # ------------------------------------------------------------------------------------------------- out of bag

    def _out_of_bag(self, problem: ForestProblem, model: ForestModel) -> OutOfBag:
        """Return the out-of-bag predictions of the training rows."""
        return out_of_bag(problem, model, self._places(problem.root.cells, model))

    def _places(self, cells: Cells, model: ForestModel) -> Any:
        def places(rows: slice) -> NDArray[np.int32]:
            taken = cells if rows == slice(0, cells.n_rows) else cells.take(np.arange(rows.start, rows.stop))
            return self._engine.leaves(model, taken, self._threads)

        return places

    def oob_permutation_importances(
        self,
        X: Any,
        y: ArrayLike,
        *,
        n_repeats: int = 1,
        random_state: int | np.random.RandomState | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Bunch:
        """Return how much the out-of-bag score (accuracy, or R²) falls when one column is shuffled: ``importances`` of
        shape (d, n_repeats), their ``importances_mean`` and ``importances_std``. X and y are the training data."""
        check_is_fitted(self)
        check_whole("n_repeats", n_repeats, least=1)
        self._refuse_without_bag("oob_permutation_importances")
        problem = self._problem_of(X, y, sample_weight)

        def score(cells: Cells) -> float:
            found = out_of_bag(problem, self.model_, self._places(cells, self.model_))
            return self._score_out_of_bag(found, problem.root.target)

        cells = problem.root.cells
        return losses_by_shuffling(score, cells, range(len(cells.columns)), int(n_repeats), random_state)

    def _refuse_without_bag(self, what: str) -> None:
        if not self.bootstrap:
            raise InputError(
                f"{what} needs rows that a tree has not seen, and bootstrap is False", cure="Fit with bootstrap=True."
            )

    def _keep_targets(self, problem: ForestProblem, sample: TreeSample) -> None:
        """Keep what later predictions need of the training data."""

    @abstractmethod
    def _stored_out_of_bag(self) -> Floats | None:
        """Return the out-of-bag predictions that the fit kept, (n, K) or (n, targets)."""

    def _score_out_of_bag(self, found: OutOfBag, target: NDArray[Any]) -> float:
        """Return the score on the rows that some tree has not seen; NaN if there is none."""
        known = found.is_known
        return self._score(target[known], found.value[known]) if known.any() else np.nan

    @abstractmethod
    def _score(self, target: NDArray[Any], value: Floats) -> float:
        """Return the accuracy, R², or what the function of ``oob_score`` returns."""

    @abstractmethod
    def _set_oob_score_and_attributes(self, found: OutOfBag, target: NDArray[Any], value: Floats) -> None:
        """Set ``oob_score_``, and the predictions behind it from those of all given rows."""

    @cached_property
    def certificate_(self) -> Certificate:
        """The certificate with the fit's own numbers; `margrove.certify` searches splits again and recounts votes."""
        check_is_fitted(self)
        return solver_certificate(self)

    def to_c(self, name: str = "predict") -> str:
        """C functions with the predictions of this forest, and the mean shares of the classes."""
        check_is_fitted(self)
        return to_c(self, name)

    def to_sklearn(self) -> Any:
        """The same forest as scikit-learn's, which rounds cells to float32: see `margrove.to_sklearn`."""
        return to_sklearn(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        tags, of_tree = super().__sklearn_tags__(), get_tags(self._tree_type())
        tags.input_tags = of_tree.input_tags
        tags.target_tags.multi_output = self.monotonic_cst is None
        return tags
