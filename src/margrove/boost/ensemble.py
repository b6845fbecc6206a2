"""The base class of boosted ensembles, of classes and of numbers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from margrove.advice import Advice, Parameter
from margrove.boost.base import seeded, settle_learner, taken_rows
from margrove.boost.certificate import solver_certificate
from margrove.boost.model import BoostModel
from margrove.certificate import Certificate
from margrove.data.formats import Format
from margrove.engine import Effort, fitted_by
from margrove.engine.estimator import RunsOnEngine
from margrove.errors import ParameterError, check_number, check_whole, warn_early
from margrove.estimator import checked, estimator, fitted
from margrove.run.effort import check_time_limit
from margrove.status import Status
from margrove.tree.estimator import DecisionTree
from margrove.tree.model import TreeModel
from margrove.tree.reading import read_cells
from margrove.tree.settings import DrawnSeed


@estimator
class Ensemble(DrawnSeed, RunsOnEngine):
    """The parameters of boosting, and what becomes of the learners. Base class."""

    _default_learner: ClassVar[DecisionTree]

    estimator: Any = field(default=None, kw_only=False)
    n_estimators: int = checked(check_whole, least=1, default=50)
    learning_rate: float = checked(check_number, above=0, default=1.0)
    time_limit: float | None = checked(check_time_limit, default=None)

    model_: BoostModel | None = fitted()
    estimator_: Any = fitted()
    n_estimators_: int = fitted()
    n_rows_: int = fitted()
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[Any] = fitted()
    target_: str | None = fitted()
    target_format_: Format = fitted()  # only of a target that is not written plainly
    categorical_: dict[str, str] = fitted()

    def _settled_learner(self) -> Any:
        """Return a fresh copy of the learner to boost. Raises an error if it cannot be boosted."""
        return settle_learner(self.estimator, self._default_learner, type(self).__name__)

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Boost.

        Parameters
        ----------
        X : data frame, Table, array or sparse matrix of shape (n, d)
            Any table that the learner takes; Margrove's trees accept text, categories, booleans and missing cells.
        y : labels, or numbers, of shape (n,)
        sample_weight : array of shape (n,), optional
            With labels a row of weight 2 counts as two rows, and one of weight 0 is left out; with numbers it is
            proportional to the probability that a row is drawn in the first round.
        """
        self._check()
        learner = self._settled_learner()
        before = dict(vars(self))
        try:
            self._boost(learner, X, y, sample_weight)
        except BaseException:  # the model that there was stays
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    @abstractmethod
    def _boost(self, learner: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        """Fit the rounds, and keep them."""

    def _keep_learners(self, learner: Any, estimators: list[Any] | None) -> None:
        """The learners of a fit; None where they are the trees of the model."""
        self.estimator_ = learner
        for name in ("certificate_", "estimators_"):  # those of an earlier fit
            self.__dict__.pop(name, None)
        if estimators is not None:
            self.__dict__["estimators_"] = estimators
            self.categorical_ = dict(getattr(estimators[0], "categorical_", {}))

    def _refuse_stopped(self, learner: Any, status: Status) -> None:
        """Raise an error: not even one learner was fitted."""
        if status is Status.INTERRUPTED:
            raise KeyboardInterrupt("interrupted before the first learner was fitted")
        if status is Status.TIME_LIMIT:
            name = type(learner).__name__
            words = f" is {self.time_limit}; the first {name} took longer. Increase it."
            raise ParameterError(Advice(Parameter("time_limit"), words))

    def _warn_if_stopped(self, n_rounds: int) -> None:
        if self.status_ in (Status.TIME_LIMIT, Status.INTERRUPTED):
            warn_early(type(self).__name__, self.status_, f" after {n_rounds} of {self.n_estimators} rounds")

    @cached_property
    def estimators_(self) -> list[Any]:
        """The learners, fitted: made from the trees on first access."""
        check_is_fitted(self)
        assert self.model_ is not None
        kept = ("classes_", "n_classes_", "engine_", "target_", "target_format_", "n_features_in_", "feature_names_in_")
        own = {name: getattr(self, name) for name in kept if hasattr(self, name)}
        own |= {"status_": Status.CONVERGED, "ccp_alpha_": 0.0}
        estimators, generator = [], np.random.RandomState(self._seed())
        for tree in self.model_.grove.trees:  # each as if it had grown its tree itself
            estimators.append(seeded(self.estimator_, generator))
            self._pass_drawn_rows(generator)
            vars(estimators[-1]).update(own, nodes_=tree, grown_=tree, categorical_=dict(self.categorical_))
        return estimators

    def _pass_drawn_rows(self, generator: np.random.RandomState) -> None:
        """Let the generator pass the numbers that draw the rows of one round, if rows are drawn."""

    @cached_property
    def certificate_(self) -> Certificate:
        """The certificate with the fit's own numbers; `margrove.certify` recomputes them."""
        check_is_fitted(self)
        return solver_certificate(self)

    @abstractmethod
    def _of_nodes(self, tree: TreeModel) -> NDArray[Any]:
        """Return the prediction of each node: the place of a class, or a number."""

    @abstractmethod
    def _of_learner(self, learner: Any, X: Any) -> NDArray[Any]:
        """Return the predictions of a learner that is no tree of the model, as `_of_nodes` has them."""

    def _by_round(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield the predictions of each learner."""
        check_is_fitted(self)
        if self.model_ is None:
            validate_data(self, X, reset=False, skip_check_array=True)
            X = taken_rows(X, None)
            for learner in self.estimators_:
                yield self._of_learner(learner, X)
            return
        grove = self.model_.grove
        cells = read_cells(self, X, grove.columns)
        engine, effort = fitted_by(self), Effort(n_jobs=self.n_jobs)
        for tree in grove.trees:
            yield self._of_nodes(tree)[engine.apply_trees(tree, cells, effort)]

    @abstractmethod
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """`predict` after each round."""

    def staged_score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Iterator[float]:
        """The accuracy, or R², after each round."""
        score = accuracy_score if is_classifier(self) else r2_score
        for predicted in self.staged_predict(X):
            yield score(y, predicted, sample_weight=sample_weight)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The importances that the learners give to each column, weighted by their votes."""
        check_is_fitted(self)
        if not hasattr(self.estimators_[0], "feature_importances_"):
            raise AttributeError(f"a {type(self.estimator_).__name__} has no feature_importances_")
        of_each = np.array([estimator.feature_importances_ for estimator in self.estimators_])
        votes = self.estimator_weights_
        return np.asarray(np.average(of_each, axis=0, weights=votes if votes.any() else None))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._default_learner if self.estimator is None else self.estimator).input_tags
        return tags
