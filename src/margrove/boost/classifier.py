"""AdaBoost for classes."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from margrove.boost.base import codes_of, is_plain_tree, places_of, taken_rows
from margrove.boost.ensemble import Ensemble
from margrove.boost.fitting import Asked, Boosted, ask, boost_any, boost_spread, read_again, read_training
from margrove.boost.model import Rounds
from margrove.boost.predictor import chosen, decided, probable
from margrove.boost.problem import cast
from margrove.data.lazy import kind_of_collection, predicted_lazily
from margrove.engine import Effort, fitted_by
from margrove.engine.registry import partitioning
from margrove.errors import (
    InfeasibleError,
    InputError,
    MargroveWarning,
    ParameterError,
    check_flag,
    check_number,
    check_share,
    check_whole,
)
from margrove.estimator import checked, estimator, fitted
from margrove.status import Status
from margrove.tree.model import TreeModel
from margrove.tree.reading import read_cells
from margrove.tree.stump import DecisionStump

_SAME_ERROR = 1e-9  # what the weighted error of a learner may change by when it is computed again


@estimator
class AdaBoostClassifier(ClassifierMixin, Ensemble):
    """AdaBoost: a vote of weak learners, each focused on the rows that the ones before misclassified.

    For two classes this is the textbook's discrete AdaBoost, for more it is SAMME. Margrove's trees accept tables as
    they are: text, categories, missing cells, sparse matrices.

    Parameters
    ----------
    estimator : classifier, optional
        The classifier to boost; its ``fit`` must take ``sample_weight``. None is a `DecisionStump`. The engine boosts
        Margrove's stumps and trees as a whole, unless they have pruning, a significance level, constraints, class
        weights or randomness; any other learner is boosted round by round.
    n_estimators : int, default=50
        The largest number of rounds.
    learning_rate : float, default=1
        ν: every vote is multiplied by it. The closed form of the bound is for ν = 1; beyond 2 the loss grows, and
        beyond 5 boosting stops, with a warning, when the weights overflow.
    early_stopping : bool, default=False
        Hold rows out, stop when the error on them no longer falls, and keep the rounds up to its minimum.
    validation_fraction : float, default=0.1
        The share of held-out rows.
    n_iter_no_change : int, default=10
        The number of rounds without a smaller error on them after which boosting stops.
    stop_at_bound : float, default=0
        Stop when the exponential loss, which bounds the training error of two classes, is no larger than this.
    class_weight : dict or "balanced", optional
        A factor of the initial weights of each class's rows; "balanced" gives all classes the same weight.
    warm_start : bool, default=False
        Continue the rounds of the previous fit: 50 and then 100 rounds are the same as 100 at once.
    random_state : int, optional
        Seed of the held-out rows, and of each learner that uses random numbers. None gives the same result every time.
    n_jobs : int, optional
        Threads; None means all. The model is the same for any number.
    time_limit : float, optional
        Seconds; the model then has the rounds fitted so far.
    engine : str or Engine
        The engine that runs it: "auto", "native", "reference", "dask", or an `Engine` object.

    Attributes
    ----------
    estimators_ : list of fitted learners
        Each has a ``random_state`` of its own, drawn as in scikit-learn. Trees that an engine boosts as a whole do not
        use it: of equally good splits they take that of the first column.
    estimator_weights_ : array of shape (T,)
        a_t, the votes, as in scikit-learn.
    alphas_ : array of shape (T,)
        α_t, the textbook's: a_t/2 for two classes.
    estimator_errors_ : array of shape (T,)
        ε_t, the weighted error of each learner.
    rounds_ : Rounds
        The record of each round, those that early stopping discarded included: ``error``, ``vote``, ``alpha``,
        ``normaliser``, ``loss``, ``bound``, ``training_error``, ``validation_error``.
    n_estimators_ : int
        T, the number of rounds in the model.
    model_ : BoostModel or None
        The trees as plain arrays and their votes; None where the learners are not Margrove's trees.
    estimator_ : classifier
        The classifier that was boosted, unfitted.
    classes_ : array of shape (K,)
    n_classes_ : int
    feature_importances_ : array of shape (d,)
    validation_rows_ : array or None
        The positions of the held-out rows.
    status_, engine_, certificate_
        Why the rounds ended, the engine that ran, the certificate.

    Examples
    --------
    >>> from margrove import AdaBoostClassifier, load_penguins
    >>> penguins = load_penguins()
    >>> model = AdaBoostClassifier(n_estimators=20).fit(penguins, penguins.labels())
    >>> print(f"{model.score(penguins, penguins.labels()):.3f}", model.status_)
    0.997 converged
    >>> print(model.estimators_[0].rules())
    if flipper_length_mm ≤ 206.5 or missing: Adelie (215 rows, 69.8 %)
    else (flipper_length_mm > 206.5): Gentoo (129 rows, 94.6 %)
    """

    _default_learner = DecisionStump()

    early_stopping: bool = checked(check_flag, default=False)
    validation_fraction: float = checked(check_share, default=0.1)
    n_iter_no_change: int = checked(check_whole, least=1, default=10)
    stop_at_bound: float = checked(check_number, least=0, default=0.0)
    class_weight: Mapping[Any, float] | str | None = None
    warm_start: bool = checked(check_flag, default=False)

    rounds_: Rounds = fitted()
    classes_: NDArray[Any] = fitted()
    n_classes_: int = fitted()
    validation_rows_: NDArray[np.intp] | None = fitted()

    @property
    def boosts_plain_trees(self) -> bool:
        """Return True if an engine boosts the learner as a whole, from cells that are read and sorted once."""
        return is_plain_tree(self._settled_learner(), self.engine)

    def _boost(self, learner: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        if (engine := partitioning(self.engine, X)) is not None:
            self._draw_seed()
            self._keep(learner, *boost_spread(self, learner, engine, X, y, sample_weight, self._effort()))
            return
        is_warm = self._goes_on(learner)
        if not is_warm:
            self._draw_seed()
        sample = read_training(self, learner, X, y, sample_weight)
        asked = ask(self, learner, sample, self.model_ if is_warm else None)
        if is_warm:
            self._check_columns(asked)
        if is_plain_tree(learner, self.engine):
            solution = self._solve(asked.problem)
            boosted = Boosted(solution.rounds, solution.status, self.engine_, solution.model, None)
        else:  # round by round
            boosted = boost_any(self, learner, asked, X, self.estimators_ if is_warm else [])
        if is_warm:
            self._check_repeated(boosted.rounds)
        self._keep(learner, asked, boosted)

    def _goes_on(self, learner: Any) -> bool:
        """Return True if this fit continues the previous one."""
        if not (self.warm_start and self.__sklearn_is_fitted__()):
            return False
        if self.n_estimators < self.n_estimators_:
            raise ParameterError(
                f"n_estimators is {self.n_estimators}; with warm_start=True it must be at least the number of rounds "
                f"already fitted, {self.n_estimators_}."
            )
        before = self.estimator_
        if type(learner) is not type(before) or repr(learner.get_params()) != repr(before.get_params()):
            raise ParameterError(
                f"estimator is {learner!r}, and the existing rounds were fitted with {before!r}. Use warm_start=False."
            )
        return True

    def _check_columns(self, asked: Asked) -> None:
        columns = asked.problem.learner.cells.columns
        is_other = bool(columns) and self.model_ is not None and columns != self.model_.grove.columns
        if is_other or not np.array_equal(asked.classes, self.classes_):
            raise InputError(
                "warm_start continues rounds that were fitted on other columns or classes",
                cure="Pass the same X and y, or use warm_start=False.",
            )

    def _check_repeated(self, rounds: Rounds) -> None:
        """Raise an error unless the existing learners have the same errors as before."""
        seen, again = self.rounds_.first(self.n_estimators_), rounds.first(self.n_estimators_)
        is_same = seen.n_rounds == again.n_rounds and np.abs(seen.error - again.error).max() <= _SAME_ERROR
        if not is_same:
            raise InputError(
                "warm_start continues rounds that were fitted on other rows or weights, or with another learning_rate: "
                "the errors of the existing learners differ",
                cure="Pass the same as before, or use warm_start=False.",
            )

    def _keep(self, learner: Any, asked: Asked, boosted: Boosted) -> None:
        rounds, n_classes = boosted.rounds, len(asked.classes)
        if rounds.n_rounds == 0:
            self._refuse_stopped(learner, boosted.status)
            name, chance = type(learner).__name__, 1 - 1 / n_classes
            raise InfeasibleError(
                f"the first {name} is no better than chance: it misclassifies at least {chance:.4g} of "
                f"the weight, as guessing one of {n_classes} classes does (BaseClassifier in {type(self).__name__} "
                "ensemble is worse than random, ensemble can not be fit)",
                cure="Use a stronger estimator, or columns that are related to y.",
            )
        n_kept = rounds.best_round
        self._keep_learners(learner, None if boosted.estimators is None else boosted.estimators[:n_kept])
        self.rounds_, self.status_, self.engine_ = rounds, boosted.status, boosted.engine
        self.n_estimators_, self.n_rows_ = n_kept, asked.problem.learner.cells.n_rows
        self.classes_, self.n_classes_ = asked.classes, n_classes
        self.model_ = None
        if boosted.model is not None:
            self.model_ = replace(boosted.model, grove=boosted.model.grove.first(n_kept), vote=rounds.vote[:n_kept])
        self.validation_rows_ = asked.rows_held_out
        self._warn_if_stopped(rounds.n_rounds)
        if boosted.status is Status.NONFINITE:
            problem = f"Sample weights have reached infinite values, at iteration {rounds.n_rounds - 1}"
            cure = "causing overflow. Iterations stopped. Try lowering the learning rate"
            warnings.warn(f"{problem}, {cure}.", MargroveWarning, stacklevel=4)

    @property
    def estimator_weights_(self) -> NDArray[np.float64]:
        """Return a_t, the votes, as ``rounds_`` has them."""
        return self.rounds_.vote[: self.n_estimators_]

    @property
    def estimator_errors_(self) -> NDArray[np.float64]:
        """Return ε_t, the weighted error of each learner, as ``rounds_`` has it."""
        return self.rounds_.error[: self.n_estimators_]

    @property
    def alphas_(self) -> NDArray[np.float64]:
        """Return α_t, the textbook's votes, as ``rounds_`` has them."""
        return self.rounds_.alpha[: self.n_estimators_]

    def _problem_of(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> tuple[Asked, Any, Any]:
        """Return the problem rebuilt from the data, the training rows of X and the rows held out."""
        asked = ask(self, self.estimator_, read_again(self, self.estimator_, X, y, sample_weight))
        return asked, taken_rows(X, asked.rows), taken_rows(X, asked.rows_held_out)

    def _of_nodes(self, tree: TreeModel) -> NDArray[np.intp]:
        return np.asarray(np.argmax(tree.value, axis=1))

    def _of_learner(self, learner: Any, X: Any) -> NDArray[np.intp]:
        return codes_of(learner, X, self.classes_)

    def _votes_by_round(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """The sums of votes for each class after each round: (n, K), the same array again and again."""
        total = None
        for label, vote in zip(self._by_round(X), self.estimator_weights_.tolist(), strict=True):
            if total is None:
                total = np.zeros((len(label), self.n_classes_))
            cast(total, label, vote)
            yield total

    def _votes(self, X: Any) -> NDArray[np.float64]:
        """The sums of votes after the last round."""
        check_is_fitted(self)
        if self.model_ is None:
            return deque(self._votes_by_round(X), maxlen=1)[0]
        cells = read_cells(self, X, self.model_.grove.columns)
        return fitted_by(self).sum_votes(self.model_, cells, Effort(n_jobs=self.n_jobs))

    def _decided(self, votes: NDArray[np.float64], all_votes: float) -> NDArray[np.float64]:
        """f_k = Σ_t a_t (1 if T_t predicts k, else −1/(K − 1)) / Σ_t a_t, scikit-learn's scale: of two classes their
        difference f_1 − f_0. Sums of votes that are equal but for rounding are made so."""
        return decided(votes, all_votes)

    def _probable(self, decision: NDArray[np.float64]) -> NDArray[np.float64]:
        """softmax(f/(K − 1)), Zhu and others, equation 15."""
        return probable(decision, self.n_classes_)

    def _named(self, decision: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self.classes_[chosen(decision)])

    def decision_function(self, X: Any) -> Any:
        """Return the weighted vote: for two classes (n,) from -2, all for the first, to 2; for more (n, K), each from
        -1/(K − 1) to 1; for one class (n, 1), zeros."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            tail = () if self.n_classes_ == 2 else (self.n_classes_,)
            return predicted_lazily(self, "decision_function", X, np.float64, *tail)
        votes = self._votes(X)
        return self._decided(votes, float(self.estimator_weights_.sum()))

    def predict(self, X: Any) -> Any:
        """The class with the most votes, the first of equals."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict", X, self.classes_.dtype)
        return self._named(self.decision_function(X))

    def predict_proba(self, X: Any) -> Any:
        """The softmax of the decision, as in scikit-learn: it ranks the classes and is not calibrated. The predicted
        class has the largest."""
        if kind_of_collection(X) is not None:
            check_is_fitted(self)
            return predicted_lazily(self, "predict_proba", X, np.float64, self.n_classes_)
        return self._probable(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> Any:
        """The logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`decision_function` after each round."""
        check_is_fitted(self)
        all_votes = np.cumsum(self.estimator_weights_).tolist()
        for votes, so_far in zip(self._votes_by_round(X), all_votes, strict=True):
            yield self._decided(votes, so_far)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """`predict` after each round."""
        for decision in self.staged_decision_function(X):
            yield self._named(decision)

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """`predict_proba` after each round."""
        for decision in self.staged_decision_function(X):
            yield self._probable(decision)

    def margins(self, X: Any, y: ArrayLike, *, staged: bool = False) -> NDArray[np.float64]:
        """Return the margin of each row: the share of votes for its class minus that for the strongest other class.

        From -1 (all learners are wrong, and agree) to 1; a misclassified row has a margin ≤ 0. ``staged``: the
        margins after each round, (T, n); else after the last, (n,).
        """
        check_is_fitted(self)
        place = places_of(y, self.classes_)
        rows, found = np.arange(len(place)), []
        all_votes = np.cumsum(self.estimator_weights_).tolist()
        for votes, so_far in zip(self._votes_by_round(X), all_votes, strict=True):
            if len(votes) != len(place):
                raise InputError(f"X has {len(votes)} rows, and y has {len(place)} labels")
            if staged or so_far == all_votes[-1]:
                others = votes.copy()
                others[rows, place] = -np.inf
                found.append((votes[rows, place] - others.max(axis=1, initial=0)) / so_far)
        return np.array(found) if staged else found[-1]
