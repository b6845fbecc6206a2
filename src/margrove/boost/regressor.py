"""AdaBoost for numbers: AdaBoost.R2 (the formulas are `r2.py`'s)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from margrove.boost.certificate import solver_certificate_of_numbers
from margrove.boost.ensemble import LARGEST_RATE, Ensemble
from margrove.boost.learners import Seeds, engine_of, is_plain_tree, settle_learner, take_note, taken_rows
from margrove.boost.model import BoostModel, Grove
from margrove.boost.r2 import CHANCE, LOSSES, average, drawn_rows, lifted, losses, next_weights, vote, weighted_median
from margrove.certificate import Certificate
from margrove.data.sample import settle_weights
from margrove.engine import Effort, check_engine, choose, fitted_by
from margrove.errors import check_choice, check_number, check_whole
from margrove.run.effort import on_interrupt
from margrove.run.progress import Progress, report
from margrove.run.slices import run_in_slices
from margrove.status import Status
from margrove.tree.estimator import DecisionTree
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, TreeProblem
from margrove.tree.reading import TreeSample, read_cells, read_numbers
from margrove.tree.regressor import DecisionTreeRegressor

Draw = Callable[[], NDArray[np.intp]]  # the rows of a round
Learn = Callable[[Draw], tuple[Any, NDArray[np.float64]]]  # a learner, and what it predicts for all rows


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
    engine : {"auto", "native", "reference"}
        Where trees of ours are grown.

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

    estimator_errors_: NDArray[np.float64]
    estimator_weights_: NDArray[np.float64]

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        engine: str = "auto",
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.loss = loss
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.engine = engine

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
        check_whole("n_estimators", self.n_estimators, least=1)
        check_number("learning_rate", self.learning_rate, above=0, most=LARGEST_RATE)
        check_choice("loss", self.loss, LOSSES)
        check_engine(self.engine)
        effort = Effort(self.time_limit, self.n_jobs, on_interrupt=self._on_interrupt)
        learner = settle_learner(self.estimator, self._default_learner, type(self).__name__)
        with self._left_as_it_was():
            self._boost(learner, X, y, sample_weight, effort)
        return self

    def _boost(self, learner: Any, X: Any, y: Any, sample_weight: Any, effort: Effort) -> None:
        self._draw_seed()
        cells = take_note(self, learner, X, is_plain=self._is_plain(learner, X))
        target = read_numbers(cells, y, None, of_classes="AdaBoostClassifier").target
        weight = _first_weights(target, sample_weight)
        generator = np.random.RandomState(self._seed())
        learn = (
            self._grower(learner, cells, target, effort)
            if len(cells.columns) > 0
            else self._fitter(learner, X, target, generator)
        )
        course = _Course(self, target, weight, learn, generator)
        status = run_in_slices(course.advance, effort)
        self._keep(learner, course, status)

    def _is_plain(self, learner: Any, X: Any) -> bool:
        """Whether the engine can be asked for the trees themselves; absolute_error refuses what is sparse, by name."""
        return is_plain_tree(learner, self.engine) and not (learner.criterion == "absolute_error" and sp.issparse(X))

    def _grower(self, learner: DecisionTree, cells: Cells, target: NDArray[np.float64], effort: Effort) -> Learn:
        # The time limit is of all rounds together, and half a tree is no round.
        effort = replace(effort, time_limit=None, on_interrupt="raise")

        def learn(draw: Draw) -> tuple[TreeModel, NDArray[np.float64]]:
            problem = _drawn_problem(learner, cells, target, draw())
            engine = choose(self.engine, problem)
            self.engine_ = engine.name
            tree = engine.solve(problem, effort).model
            return tree, tree.value[engine.apply_trees(tree, cells, effort), 0]

        return learn

    def _fitter(self, learner: Any, X: Any, target: NDArray[np.float64], generator: np.random.RandomState) -> Learn:
        seeds = Seeds(generator)

        def learn(draw: Draw) -> tuple[Any, NDArray[np.float64]]:
            fitted = seeds.give(clone(learner))  # of the same generator as the rows, and before them
            drawn = draw()
            with on_interrupt("raise"):  # half a learner is no round
                fitted.fit(taken_rows(X, drawn), target[drawn])
            return fitted, np.asarray(fitted.predict(X), dtype=np.float64)

        return learn

    def _keep(self, learner: Any, course: _Course, status: Status) -> None:
        learners = course.learners
        if not learners:
            self._refuse_broken_off(learner, status)
        votes = np.array(course.votes)
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
        self.n_estimators_, self.n_rows_ = len(learners), len(course.target)
        self.estimator_weights_, self.estimator_errors_ = votes, np.array(course.errors)
        self._warn_if_broken_off(len(learners))

    @cached_property
    def certificate_(self) -> Certificate:
        """What the model says of itself; `margrove.certify` recomputes it."""
        check_is_fitted(self)
        return solver_certificate_of_numbers(self)

    def _asked_of(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[Cells, NDArray[np.float64], NDArray[np.float64]]:
        """Cells (none of a learner that is no plain tree), target and first weights, for the certificate."""
        cells = Cells((), _num_samples(X))
        if self.model_ is not None and self._is_plain(self.estimator_, X):
            cells = read_cells(self, X, self.model_.grove.columns)
        target = read_numbers(cells, y, None, of_classes="AdaBoostClassifier").target
        return cells, target, _first_weights(target, sample_weight)

    def _tree_problem(self, cells: Cells, target: NDArray[np.float64], drawn: NDArray[np.intp]) -> TreeProblem:
        """What the tree of these rows was to answer, for the certificate."""
        return _drawn_problem(self.estimator_, cells, target, drawn)

    def _drawn_again(
        self, X: Any, target: NDArray[np.float64], weight: NDArray[np.float64], generator: np.random.RandomState
    ) -> tuple[Any, NDArray[np.float64]]:
        """Return the rows of X and the target that `_fitter` drew with these weights."""
        Seeds(generator).give(clone(self.estimator_))  # `_fitter` draws the seeds of the learner first
        rows = drawn_rows(weight, generator)
        return taken_rows(X, rows), target[rows]

    # ---------------------------------------------------------------------------------------------------- prediction

    def _predictions(self, X: Any) -> NDArray[np.float64]:
        """What each learner says of each row: (n, T)."""
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


class _Course:
    """AdaBoost.R2 under way, one round at a time."""

    def __init__(
        self,
        owner: AdaBoostRegressor,
        target: NDArray[np.float64],
        weight: NDArray[np.float64],
        learn: Learn,
        generator: np.random.RandomState,
    ) -> None:
        self.owner, self.target, self.learn, self.generator = owner, target, learn, generator
        self.first = self.weight = weight
        self.learners: list[Any] = []
        self.errors: list[float] = []
        self.votes: list[float] = []

    def advance(self, seconds: float) -> Status | None:
        """One round; the status, if it was the last. It takes as long as it takes."""
        weight = lifted(self.weight, self.first)
        learned, predicted = self.learn(lambda: drawn_rows(weight, self.generator))
        loss = losses(predicted, self.target, weight, self.owner.loss)  # type: ignore[arg-type]
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


def _drawn_problem(
    learner: DecisionTree, cells: Cells, target: NDArray[np.float64], drawn: NDArray[np.intp]
) -> TreeProblem:
    """A tree of rows drawn with replacement: each once, weighted by how often it was drawn, or as many copies where
    rows are counted and not weighed."""
    settings: Any = learner
    is_counted = (settings.min_samples_leaf, settings.min_samples_split) != (1, 2) or settings.thresholds != "exact"
    if is_counted:
        sample = TreeSample(cells.take(drawn), target[drawn], None, None, drawn)
    else:
        times = np.bincount(drawn, minlength=len(target))
        rows = np.flatnonzero(times)
        sample = TreeSample(cells.take(rows), target[rows], None, times[rows].astype(np.float64), rows)
    return learner._problem(sample)


def _first_weights(target: NDArray[np.float64], sample_weight: Any) -> NDArray[np.float64]:
    weight = settle_weights(np.empty((len(target), 0)), target, sample_weight, None)
    # Scaled first: the sum of very large weights overflows.
    weight = np.ones(len(target)) if weight is None else weight / weight.max()
    return np.asarray(weight / weight.sum())
