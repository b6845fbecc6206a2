"""AdaBoost for numbers: AdaBoost.R2 (the formulas are `r2.py`'s)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from margrove.boost.base import Seeds, engine_of, is_plain_tree, take_note, taken_rows
from margrove.boost.certificate import solver_certificate_of_numbers
from margrove.boost.ensemble import Ensemble
from margrove.boost.model import BoostModel, Grove
from margrove.boost.r2 import (
    CHANCE,
    LOSSES,
    Loss,
    average,
    drawn_rows,
    lifted,
    losses,
    next_weights,
    vote,
    weighted_median,
)
from margrove.certificate import Certificate
from margrove.data.sample import settle_weights
from margrove.engine import Effort, choose, fitted_by
from margrove.errors import check_choice
from margrove.estimator import checked, estimator, fitted
from margrove.run.effort import on_interrupt
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.estimator import DecisionTree
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeProblem
from margrove.tree.reading import TreeSample, read_cells, read_numbers
from margrove.tree.regressor import DecisionTreeRegressor

R = TypeVar("R")


@estimator
class AdaBoostRegressor(RegressorMixin, Ensemble):
    """AdaBoost.R2 (Drucker 1997): regressors, each on rows drawn by how badly the ones before did, and their median.

    Parameters
    ----------
    estimator : regressor, optional
        What is boosted. None is ``DecisionTreeRegressor(max_depth=3)``.
    n_estimators : int, default=50
        Rounds at most.
    learning_rate : float, default=1
        ν, at most 5: every vote is multiplied by it.
    loss : {"linear", "square", "exponential"}, default="linear"
        How the distance from the target counts.
    random_state : int, optional
        For the rows that are drawn, and a seed for each learner that draws at random. None is the same every time.
    n_jobs : int, optional
        Threads; None means all. The model is the same for any number.
    time_limit : float, optional
        Seconds; what has been done so far is the model.
    engine : str or Engine
        Where trees of ours are grown: "auto", "native", "reference", or an `Engine` object.

    Attributes
    ----------
    estimators_ : list of fitted learners
    estimator_weights_ : array of shape (T,)
        a_t, the votes.
    estimator_errors_ : array of shape (T,)
        ε_t, the average loss of each learner.
    n_estimators_ : int
        T.
    model_ : BoostModel or None
        The trees as plain arrays and their votes; None where the learners are not trees of ours.
    estimator_ : regressor
        What was boosted, unfitted.
    feature_importances_ : array of shape (d,)
    status_, engine_, certificate_
        Why the rounds ended, what ran, what it claims.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove import AdaBoostRegressor
    >>> x = np.linspace(0, 6, 50)
    >>> model = AdaBoostRegressor(n_estimators=20, random_state=0).fit(x[:, None], np.sin(x))
    >>> print(f"{model.score(x[:, None], np.sin(x)):.3f}", model.status_)
    0.981 converged
    """

    _default_learner = DecisionTreeRegressor(max_depth=3)

    loss: Loss = checked(check_choice, allowed=LOSSES, default="linear")

    estimator_errors_: NDArray[np.float64] = fitted()
    estimator_weights_: NDArray[np.float64] = fitted()

    # ------------------------------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Boost.

        Parameters
        ----------
        X : data frame, Table, array or sparse matrix of shape (n, d)
            Whatever the learner takes; trees of ours take text, categories, booleans and missing cells as they are.
        y : numbers of shape (n,)
        sample_weight : array of shape (n,), optional
            How probably each row is drawn in the first round.
        """
        self._check()
        learner = self._settled_learner()
        with self._left_as_it_was():
            boosting = self._boosting(learner, X, y, sample_weight)
            status = run_in_slices(boosting.advance, self._effort())
            self._keep(learner, boosting, status)
        return self

    def _boosting(self, learner: Any, X: Any, y: Any, sample_weight: ArrayLike | None) -> _Boosting[Any]:
        """Read the rows, and return the rounds to come: trees of ours by the engine, others by their own ``fit``."""
        self._draw_seed()
        cells = take_note(self, learner, X, is_plain=self._is_plain(learner, X))
        target = read_numbers(cells, y, None, of_classes="AdaBoostClassifier").target
        weight = _first_weights(target, sample_weight)
        if len(cells.columns) > 0:
            return _TreeBoosting(self, learner, cells, target, weight)
        return _LearnerBoosting(self, learner, X, target, weight)

    def _is_plain(self, learner: Any, X: Any) -> bool:
        """Return whether the engine can grow the trees itself; absolute_error refuses what is sparse, by name."""
        return is_plain_tree(learner, self.engine) and not (learner.criterion == "absolute_error" and sp.issparse(X))

    def _keep(self, learner: Any, boosting: _Boosting[Any], status: Status) -> None:
        learners = boosting.learners
        if not learners:
            self._refuse_broken_off(learner, status)
        votes = np.array(boosting.votes)
        self.model_ = None
        if isinstance(learner, DecisionTree):
            trees = [getattr(learned, "tree_", learned) for learned in learners]
            # A tree that was fitted to rows drawn may have missed a level of a category: then they make no grove.
            if all(tree.columns == trees[0].columns for tree in trees):
                self.model_ = BoostModel(Grove.of(trees[0].columns, trees), votes, 0)
        self._keep_learners(learner, None if isinstance(learners[0], TreeModel) else learners)
        if not isinstance(learners[0], TreeModel):
            self.engine_ = engine_of(learners[0], self.engine)
        self.status_ = status
        self.n_estimators_, self.n_rows_ = len(learners), len(boosting.target)
        self.estimator_weights_, self.estimator_errors_ = votes, np.array(boosting.errors)
        self._warn_if_broken_off(len(learners))

    @cached_property
    def certificate_(self) -> Certificate:
        """The certificate with the fit's own numbers; `margrove.certify` recomputes them."""
        check_is_fitted(self)
        return solver_certificate_of_numbers(self)

    def _asked_of(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> tuple[Cells, NDArray[np.float64], NDArray[np.float64]]:
        """Cells (none of a learner that is no plain tree), target and first weights, for the certificate."""
        cells = Cells((), _num_samples(X))
        if self.model_ is not None and self._is_plain(self.estimator_, X):
            cells = read_cells(self, X, self.model_.grove.columns)
        target = read_numbers(cells, y, None, of_classes="AdaBoostClassifier").target
        return cells, target, _first_weights(target, sample_weight)

    def _tree_problem(self, cells: Cells, target: NDArray[np.float64], drawn: NDArray[np.intp]) -> TreeProblem:
        """Return the problem of the tree of these rows, for the certificate."""
        return _drawn_problem(self.estimator_, cells, target, drawn)

    def _drawn_again(
        self, X: Any, target: NDArray[np.float64], weight: NDArray[np.float64], generator: np.random.RandomState
    ) -> tuple[Any, NDArray[np.float64]]:
        """Return the rows of X and the target that `_LearnerBoosting` drew with these weights."""
        Seeds(generator).give(clone(self.estimator_))  # whose seeds are drawn first
        rows = drawn_rows(weight, generator)
        return taken_rows(X, rows), target[rows]

    # ---------------------------------------------------------------------------------------------------- prediction

    def _predictions(self, X: Any) -> NDArray[np.float64]:
        """Return the prediction of each learner for each row, (n, T)."""
        check_is_fitted(self)
        if self.model_ is None:
            validate_data(self, X, reset=False, skip_check_array=True)
            return np.column_stack([estimator.predict(X) for estimator in self.estimators_])
        grove = self.model_.grove
        cells = read_cells(self, X, grove.columns)
        engine, effort = fitted_by(self), Effort(n_jobs=self.n_jobs)
        trees = map(grove.tree, range(grove.n_trees))
        return np.column_stack([tree.value[engine.apply_trees(tree, cells, effort), 0] for tree in trees])

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The median of what the learners predict, weighted by their votes."""
        return weighted_median(self._predictions(X), self.estimator_weights_)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`predict` after each round."""
        predictions = self._predictions(X)
        for t in range(1, self.n_estimators_ + 1):
            yield weighted_median(predictions[:, :t], self.estimator_weights_[:t])

    def staged_score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[float]:
        """R² after each round."""
        for predicted in self.staged_predict(X):
            yield r2_score(y, predicted, sample_weight=sample_weight)


class _Boosting(Generic[R]):
    """AdaBoost.R2, one round at a time. ``given`` is what the learners learn from."""

    def __init__(
        self,
        owner: AdaBoostRegressor,
        learner: Any,
        given: R,
        target: NDArray[np.float64],
        weight: NDArray[np.float64],
    ) -> None:
        self.owner, self.learner, self.given, self.target = owner, learner, given, target
        self.first = self.weight = weight
        self.generator = np.random.RandomState(owner._seed())
        self.learners: list[Any] = []
        self.errors: list[float] = []
        self.votes: list[float] = []

    @abstractmethod
    def learn(self, weight: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        """Return a learner of rows drawn by their weights, and what it predicts for all rows."""

    def advance(self, seconds: float) -> Status | None:
        """Do one round, however long it takes. Return the status if it was the last."""
        weight = lifted(self.weight, self.first)
        learned, predicted = self.learn(weight)
        loss = losses(predicted, self.target, weight, self.owner.loss)
        error = average(loss, weight)
        if error >= CHANCE and self.learners:
            return Status.NO_BETTER_THAN_CHANCE
        self.learners.append(learned)
        self.errors.append(max(0.0, error))
        self.votes.append(vote(error, self.owner.learning_rate))
        n_done, n_rounds = len(self.learners), int(self.owner.n_estimators)
        report(Progress("boost", n_done, n_rounds, error, "average loss"))
        if error <= 0:
            return Status.PERFECT_LEARNER
        if error >= CHANCE:
            return Status.NO_BETTER_THAN_CHANCE
        self.weight = next_weights(weight, loss, error, self.owner.learning_rate)
        return Status.CONVERGED if n_done >= n_rounds else None


class _TreeBoosting(_Boosting[Cells]):
    """Rounds of plain trees, grown by the engine."""

    def learn(self, weight: NDArray[np.float64]) -> tuple[TreeModel, NDArray[np.float64]]:
        problem = _drawn_problem(self.learner, self.given, self.target, drawn_rows(weight, self.generator))
        # The time limit is of all rounds together; an interrupted tree is discarded.
        effort = replace(self.owner._effort(), time_limit=None, on_interrupt="raise")
        engine = choose(self.owner.engine, problem, effort)
        self.owner.engine_ = engine.name
        tree = engine.solve(problem, effort).model
        return tree, tree.value[engine.apply_trees(tree, self.given, effort), 0]


class _LearnerBoosting(_Boosting[Any]):
    """Rounds of any learner, by its own ``fit`` and ``predict``."""

    def learn(self, weight: NDArray[np.float64]) -> tuple[Any, NDArray[np.float64]]:
        learned = Seeds(self.generator).give(clone(self.learner))  # of the same generator as the rows, and before them
        drawn = drawn_rows(weight, self.generator)
        with on_interrupt("raise"):  # an interrupted learner is discarded
            learned.fit(taken_rows(self.given, drawn), self.target[drawn])
        return learned, np.asarray(learned.predict(self.given), dtype=np.float64)


def _drawn_problem(
    learner: DecisionTree, cells: Cells, target: NDArray[np.float64], drawn: NDArray[np.intp]
) -> TreeProblem:
    """Return the problem of a tree of rows drawn with replacement: each once, weighted by how often it was drawn, or as
    many copies where rows are counted and not weighed."""
    is_counted = (learner.min_samples_leaf, learner.min_samples_split) != (1, 2) or learner.thresholds != "exact"
    if is_counted:
        sample = TreeSample(cells.take(drawn), target[drawn], None, None, drawn)
    else:
        times = np.bincount(drawn, minlength=len(target))
        rows = np.flatnonzero(times)
        sample = TreeSample(cells.take(rows), target[rows], None, times[rows].astype(np.float64), rows)
    return learner._problem(sample)


def _first_weights(target: NDArray[np.float64], sample_weight: ArrayLike | None) -> NDArray[np.float64]:
    weight = settle_weights(np.empty((len(target), 0)), target, sample_weight, None)
    # Scaled first: the sum of very large weights overflows.
    weight = np.ones(len(target)) if weight is None else weight / weight.max()
    return np.asarray(weight / weight.sum())
