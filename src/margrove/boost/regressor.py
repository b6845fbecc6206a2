"""AdaBoost for numbers: AdaBoost.R2 (the formulas are `r2.py`'s)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _num_samples, check_is_fitted

from margrove.boost import r2
from margrove.boost.base import is_plain_tree, seeded, take_note, taken_rows
from margrove.boost.ensemble import Ensemble
from margrove.boost.fitting import boost_numbers_spread
from margrove.boost.model import BoostModel
from margrove.boost.rounds import BoostingR2
from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.engine import choose, name_of
from margrove.engine.registry import partitioning
from margrove.errors import check_choice
from margrove.estimator import checked, estimator, fitted
from margrove.run.effort import on_interrupt
from margrove.run.slices import run_in_slices
from margrove.tree.estimator import DecisionTree
from margrove.tree.grove import Grove
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeProblem
from margrove.tree.reading import TreeSample, read_cells, read_numbers
from margrove.tree.regressor import DecisionTreeRegressor

Floats = NDArray[np.float64]


@estimator
class AdaBoostRegressor(RegressorMixin, Ensemble):
    """AdaBoost.R2 (Drucker 1997): the median of regressors, each fitted on rows drawn by the errors of those before.

    Parameters
    ----------
    estimator : regressor, optional
        The regressor to boost. None is ``DecisionTreeRegressor(max_depth=3)``.
    loss : {"linear", "square", "exponential"}, default="linear"
        The loss as a function of the distance from the target.
    random_state : int, optional
        Seed of the drawn rows, and of each learner that uses random numbers. None is 0: the result is the same every
        time, unlike in scikit-learn.
    n_estimators, learning_rate, n_jobs, time_limit, engine
        As in `AdaBoostClassifier`.

    Attributes
    ----------
    estimator_errors_ : array of shape (T,)
        ε_t, the average loss of each learner.
    estimators_, estimator_weights_, n_estimators_, model_, estimator_, feature_importances_, status_, engine_, \
certificate_
        As in `AdaBoostClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import AdaBoostRegressor
    >>> x = np.linspace(0, 6, 50)
    >>> model = AdaBoostRegressor(n_estimators=20, random_state=0).fit(x[:, None], np.sin(x))
    >>> print(f"{model.score(x[:, None], np.sin(x)):.3f}", model.status_)
    0.984 converged
    """

    _default_learner = DecisionTreeRegressor(max_depth=3)

    loss: r2.Loss = checked(check_choice, allowed=r2.LOSSES, default="linear")

    estimator_errors_: Floats = fitted()
    estimator_weights_: Floats = fitted()

    def _boost(self, learner: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        learners: list[Any]
        if (engine := partitioning(self.engine, X)) is not None:
            self._draw_seed()
            done, n_rows, by = boost_numbers_spread(self, learner, engine, X, y, sample_weight, self._effort())
            learners, votes, errors, status, self.engine_ = done.trees, done.votes, done.errors, done.status, by.name
        else:
            boosting = self._boosting(learner, X, y, sample_weight)
            status = run_in_slices(boosting.advance, self._effort())
            learners, votes, errors, n_rows = boosting.learners, boosting.votes, boosting.errors, len(boosting.target)
        if not learners:
            self._refuse_stopped(learner, status)
        self.model_ = None
        if isinstance(learner, DecisionTree):
            trees = [getattr(learned, "nodes_", learned) for learned in learners]
            # A tree that was fitted to rows drawn may have missed a level of a category: then they make no grove.
            if all(tree.columns == trees[0].columns for tree in trees):
                self.model_ = BoostModel(Grove.of(trees[0].columns, trees), np.array(votes), 0)
        are_trees = isinstance(learners[0], TreeModel)
        self._keep_learners(learner, None if are_trees else learners)
        if not are_trees:
            self.engine_ = getattr(learners[0], "engine_", None) or name_of(self.engine)
        self.status_ = status
        self.n_estimators_, self.n_rows_ = len(learners), n_rows
        self.estimator_weights_, self.estimator_errors_ = np.array(votes), np.array(errors)
        self._warn_if_stopped(len(learners))

    def _boosting(self, learner: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> BoostingR2[Any]:
        """Read the rows, and return the rounds to come: trees of ours by the engine, others by their own ``fit``."""
        self._draw_seed()
        cells = take_note(self, learner, X, is_plain=self._is_plain(learner, X))
        target = read_numbers(cells, y, None, of_classes="AdaBoostClassifier").target
        generator = np.random.RandomState(self._seed())

        def grow(weight: Floats) -> tuple[TreeModel, Floats]:
            r2.next_seed(generator)  # of the tree, which does not use it
            problem = self._tree_problem(learner, cells, target, r2.drawn_rows(weight, generator))
            # The time limit is of all rounds together; an interrupted tree is discarded.
            effort = replace(self._effort(), time_limit=None, on_interrupt="raise")
            engine = choose(self.engine, problem, effort)
            self.engine_ = engine.name
            tree = engine.solve(problem, effort).model
            return tree, tree.value[engine.apply_trees(tree, cells, effort), 0]

        def fit(weight: Floats) -> tuple[Any, Floats]:
            learned, rows, of_rows = self._drawn(learner, X, target, weight, generator)
            with on_interrupt("raise"):  # an interrupted learner is discarded
                learned.fit(rows, of_rows)
            return learned, np.asarray(learned.predict(taken_rows(X, None)), dtype=np.float64)

        first, rounds = r2.first_weights(target, sample_weight), int(self.n_estimators)
        learn: Callable[[Floats], tuple[Any, Floats]] = grow if cells.columns else fit
        return BoostingR2(target, first, learn, rounds, float(self.learning_rate), self.loss)

    def _is_plain(self, learner: Any, X: Any) -> bool:
        """Return whether the engine can grow the trees itself; absolute_error refuses what is sparse, by name."""
        return is_plain_tree(learner, self.engine) and not (learner.criterion == "absolute_error" and sp.issparse(X))

    def _problem_of(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> tuple[Cells, Floats, Floats]:
        """Cells (none of a learner that is no plain tree), target and first weights, for the certificate."""
        cells = Cells((), _num_samples(X))
        if self.model_ is not None and self._is_plain(self.estimator_, X):
            cells = read_cells(self, X, self.model_.grove.columns)
        target = read_numbers(cells, y, None, of_classes="AdaBoostClassifier").target
        return cells, target, r2.first_weights(target, sample_weight)

    def _drawn(
        self, learner: Any, X: Any, target: Floats, weight: Floats, generator: np.random.RandomState
    ) -> tuple[Any, Any, Floats]:
        """Return a learner with seeds of its own, and rows of X and the target that are drawn after the seeds."""
        learner = seeded(learner, generator)
        rows = r2.drawn_rows(weight, generator)
        return learner, taken_rows(X, rows), target[rows]

    def _tree_problem(
        self, learner: DecisionTree, cells: Cells, target: Floats, drawn: NDArray[np.intp]
    ) -> TreeProblem:
        """Return the problem of a tree of rows drawn with replacement: each once, weighted by how often it was drawn,
        or as many copies where rows are counted and not weighed."""
        is_counted = (learner.min_samples_leaf, learner.min_samples_split) != (1, 2) or learner.thresholds != "exact"
        if is_counted:
            return learner._problem(TreeSample(cells.take(drawn), target[drawn], None, None, drawn))
        times = np.bincount(drawn, minlength=len(target))
        rows = np.flatnonzero(times)
        weight = times[rows].astype(np.float64)
        return learner._problem(TreeSample(cells.take(rows), target[rows], None, weight, rows))

    def _pass_drawn_rows(self, generator: np.random.RandomState) -> None:
        generator.random_sample(self.n_rows_)  # as many as `r2.drawn_rows` draws, whatever the weights

    def _of_nodes(self, tree: TreeModel) -> Floats:
        return tree.value[:, 0]

    def _of_learner(self, learner: Any, X: Any) -> Floats:
        return np.asarray(learner.predict(X))

    def _predictions(self, X: Any) -> Floats:
        """Return the prediction of each learner for each row, (n, T)."""
        return np.column_stack(list(self._by_round(X)))

    def predict(self, X: Any) -> Any:
        """The median of what the learners predict, weighted by their votes."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict", X, np.float64)
        return r2.weighted_median(self._predictions(X), self.estimator_weights_)

    def staged_predict(self, X: Any) -> Iterator[Floats]:
        """`predict` after each round."""
        predictions = self._predictions(X)
        for t in range(1, self.n_estimators_ + 1):
            yield r2.weighted_median(predictions[:, :t], self.estimator_weights_[:t])
