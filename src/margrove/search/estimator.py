"""The estimators that choose the parameters of a learner by cross-validation: what they share, whatever the family.

A search is a grid of cells by folds. A family says which class it searches for (``_machine``), and gives three steps:

``_grid(data)``                                     the values of each axis, slowest first, and the axes searched
``_problem(template, data, weight, splits, grid)``  what is to be solved, and the folds with the held-out rows in the
                                                    order of the values that a solve gives
``_fill(problem, table, scores)``                   the solve: it enters cells into the table, and returns its status
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice
from margrove.certificate import Certificate
from margrove.data.sample import Sample, Values, read_sample, read_values, weights_by_row
from margrove.engine.estimator import RunsOnEngine
from margrove.errors import ConvergenceWarning, DataWarning, check_flag, level_of_caller
from margrove.estimator import check_parameters, checked, estimator, fitted
from margrove.run.effort import on_interrupt
from margrove.search.folds import Splits, splits_of
from margrove.search.grid import ascending
from margrove.search.scorers import HeldOutClassifier, HeldOutRegressor, Scores, score_of, settle_scorer
from margrove.search.table import ScoreTable
from margrove.status import Status, worst

Grid: TypeAlias = dict[str, NDArray[np.float64]]
_OF_A_FIT = ("best_params_", "best_score_", "best_index_", "best_estimator_", "refit_time_")


@estimator
class CrossValidatedSearch(RunsOnEngine):
    """A search by cross-validation. Base class."""

    _machine: ClassVar[type[Any]]
    _grid: ClassVar[Callable[..., tuple[Grid, tuple[str, ...]]]]
    _problem: ClassVar[Callable[..., tuple[Any, Splits]]]
    _fill: ClassVar[Callable[..., Status]]
    _read: ClassVar[Callable[..., Any]]
    _targets: ClassVar[Callable[..., Any]]  # the last arguments of `Scores`
    _measures: ClassVar[Mapping[str, str]]  # see `ScoreTable`
    _unconverged: ClassVar[str]  # the warning about ``{cells}`` whose solve ended before ``{tol}``
    _no_best: ClassVar[str] = "no cell is the best one"

    Cs: ArrayLike | None = None
    cv: Any = 5
    scoring: str | Callable[..., float] | None = None
    refit: bool = checked(check_flag, default=True)
    verbose: int = False
    time_limit: float | None = None

    cv_results_: dict[str, Any] = fitted()
    best_params_: dict[str, float] = fitted()
    best_score_: float = fitted()
    best_index_: int = fitted()
    best_estimator_: Any = fitted()
    scorer_: Any = fitted()
    n_splits_: int = fitted()
    refit_time_: float = fitted()

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: Any = None) -> Self:
        """Score every cell of the grid; fit the best one on all rows. ``groups`` go to the splitter. ``sample_weight``
        weighs the rows in training and, as in scikit-learn, in scoring."""
        template = self._template()
        template._check()
        check_parameters(self)
        self.scorer_ = settle_scorer(template, self.scoring)
        data = self._read(X, y, sample_weight)
        sample_weight = weights_by_row(sample_weight, data.X.shape[0])
        grid, searched = self._grid(data)
        splits = splits_of(self.cv, X, y, groups, is_classifier=is_classifier(self))
        problem, splits = self._problem(template, data, sample_weight, splits, grid)
        targets = self._targets(template, data, splits)
        scores = Scores(self.scoring, self.scorer_, (X, y, sample_weight), splits, *targets)
        for name in _OF_A_FIT:  # of an earlier one
            self.__dict__.pop(name, None)
        table = ScoreTable(grid, len(splits), self._measures)
        self.status_ = self._fill(problem, table, scores)
        self._keep_table(table, searched)
        self._refit(template, X, y, sample_weight)
        return self

    def _template(self) -> Any:
        """Return the machine that is searched for, with the parameters that it shares with the search."""
        names = self._machine().get_params()
        return self._machine(**{name: value for name, value in self.get_params(deep=False).items() if name in names})

    def _keep_table(self, table: ScoreTable, searched: tuple[str, ...]) -> None:
        """Keep ``cv_results_`` and the best of the cells that are complete; of equals the first."""
        self.cv_results_ = table.results(searched)
        self.n_splits_ = table.score.shape[-1]
        is_complete = table.is_complete.ravel()
        if is_complete.any():
            rank = np.where(is_complete, self.cv_results_["rank_test_score"], np.iinfo(np.int32).max)
            self.best_index_ = int(np.argmin(rank))
            self.best_params_ = self.cv_results_["params"][self.best_index_]
            self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self._warn(is_complete)

    def _warn(self, is_complete: NDArray[np.bool_]) -> None:
        early = int((is_complete & ~self.cv_results_["is_converged"]).sum())
        name, n = type(self).__name__, len(is_complete)
        message: Any
        if self.status_ is not Status.CONVERGED:
            ended = f"{name} ended with status {str(self.status_)!r}: {int(is_complete.sum())} of {n} {self._cells}"
            message = Advice(f"{ended} are scored; ", self.status_.advice_on("table"), ".")
        elif early:
            cells = f"{early} of {n} {self._cells}"
            message = f"{name}: {self._unconverged.format(cells=cells, tol=self.tol)}"
        elif not is_complete.any():
            message = f"{name}: every score is NaN, so {self._no_best}, and there is no model; check scoring and cv."
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=level_of_caller())

    @property
    def _cells(self) -> str:
        return "cells"

    @property
    def _limits(self) -> dict[str, Any]:
        """Settings of the refit that are no parameters of the model."""
        return {"time_limit": self.time_limit}

    def _refit(self, template: Any, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit the best cell on all rows; not after Ctrl-C, and not without a best cell."""
        if not self.refit or self.status_ is Status.INTERRUPTED or not hasattr(self, "best_params_"):
            return
        start = time.perf_counter()
        with on_interrupt(self._on_interrupt), warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the search has given it
            template.set_params(**self._limits, **self.best_params_)
            self.best_estimator_ = template.fit(X, y, sample_weight).set_params(**dict.fromkeys(self._limits))
        self.status_ = worst((self.status_, self.best_estimator_.status_))
        self.refit_time_ = time.perf_counter() - start

    @property
    def certificate_(self) -> Certificate:
        """Of the refitted model."""
        certificate: Certificate = self._fitted.certificate_
        return certificate

    @property
    def n_iter_(self) -> Any:
        """Of the refitted model."""
        return self._fitted.n_iter_

    @property
    def _fitted(self) -> Any:
        check_is_fitted(
            self,
            "best_estimator_",
            msg="This %(name)s has no refitted model: complete the fit with refit=True.",
        )
        return self.best_estimator_

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """By the refitted model."""
        return np.asarray(self._fitted.predict(X))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """By the refitted model and ``scoring``."""
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if self.scoring is None:
            return float(self._fitted.score(X, y, weight))
        return score_of(self.scorer_, self._fitted, X, y, weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = self._template().__sklearn_tags__().input_tags
        return tags


@estimator
class ClassifierSearch(ClassifierMixin, CrossValidatedSearch):
    """The search for a classifier. Base class."""

    _decider: ClassVar[type[Any]]  # as ``_machine``, but it predicts from the values of its machines
    _is_by_class: ClassVar[Any]  # a property: whether each machine stands for a class

    class_weight: Mapping[Any, float] | str | None = None

    classes_: NDArray[Any] = fitted()

    score = CrossValidatedSearch.score  # by ``scoring``; the mixin's is accuracy

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """By the refitted model."""
        return np.asarray(self._fitted.decision_function(X))

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Sample:
        sample = read_sample(self, X, y, sample_weight, self.class_weight)
        self.classes_ = sample.classes
        return sample

    def _targets(self, template: Any, data: Sample, splits: Splits) -> tuple[Any, ...]:
        k = len(data.classes)
        decider = self._decider(**template.get_params(deep=False))
        decider.classes_ = np.arange(k)
        is_masked = self._is_by_class and k > 2
        absent = [np.setdiff1d(np.arange(k if is_masked else 0), data.codes[train]) for train, _ in splits]
        return data.codes, partial(HeldOutClassifier, classes=data.classes, decider=decider), absent


@estimator
class RegressorSearch(RegressorMixin, CrossValidatedSearch):
    """The search for a regression with a tube. Base class."""

    epsilons: ArrayLike | None = None

    score = CrossValidatedSearch.score  # by ``scoring``; the mixin's is R²

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Values:
        return read_values(self, X, y, sample_weight)

    def _targets(self, template: Any, data: Values, splits: Splits) -> tuple[Any, ...]:
        return data.z, HeldOutRegressor, [[]] * len(splits)

    def _epsilons(self, default: NDArray[np.float64]) -> NDArray[np.float64]:
        return default if self.epsilons is None else ascending("epsilons", self.epsilons, least=0)
