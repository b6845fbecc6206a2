"""What every search by cross-validation has here: its template, its scorer, its folds and its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import check_scoring, r2_score
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from margrove.certificate import Certificate
from margrove.data.sample import Sample, Values
from margrove.engine.estimator import RunsOnEngine
from margrove.errors import InputError, ParameterError, shown
from margrove.estimator import estimator, fitted
from margrove.svm.folds import Splits
from margrove.svm.scorers import asked

_NO_ROWS: list[Any] = []  # who is asked about, where only one asks


@estimator
class CrossValidatedSearch(RunsOnEngine):
    """What the searches share. Not a learner by itself."""

    _machine: ClassVar[type[Any]]  # the class of what is searched for

    Cs: ArrayLike | None = None
    cv: Any = 5
    scoring: str | Callable[..., float] | None = None
    refit: bool = True
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

    def _template(self) -> Any:
        """The machine that is searched for, with the parameters that it has too; the grid is not in it yet."""
        names = self._machine().get_params()
        return self._machine(**{name: value for name, value in self.get_params(deep=False).items() if name in names})

    def _check_scoring(self) -> None:
        if isinstance(self.scoring, Mapping | list | tuple | set):
            raise ParameterError(
                f"scoring is {shown(self.scoring)}; give one: a name, a callable, or None for the learner's own."
            )

    def _settle_scorer(self, template: Any) -> None:
        """``scorer_``; what it asks of a cell, a cell must have."""
        try:
            self.scorer_ = check_scoring(template, scoring=self.scoring)
        except ValueError as error:
            known = "a name of sklearn.metrics.get_scorer_names(), a callable(estimator, X, y), or None"
            hint = " sklearn.metrics.make_scorer makes one of a metric." if callable(self.scoring) else ""
            raise ParameterError(f"scoring is {shown(self.scoring)}; it must be {known}.{hint}") from error
        asks = getattr(self.scorer_, "_response_method", "default")
        names = [asks] if isinstance(asks, str) else list(asks)
        if asks != "default" and not any(hasattr(template, name) for name in names):
            has = " and ".join(name for name in ("predict", "decision_function") if hasattr(template, name))
            raise ParameterError(
                f"scoring is {shown(self.scoring)}, and it asks for {' or '.join(names)}; a cell of the search has "
                f"{has}. Use another one, or GridSearchCV."
            )

    def _splits(self, X: Any, y: Any, groups: Any, *, is_classifier: bool) -> Splits:
        n = len(np.asarray(y))
        try:
            given = [
                (train, test) for train, test in check_cv(self.cv, y, classifier=is_classifier).split(X, y, groups)
            ]
        except (TypeError, ValueError) as error:
            raise InputError(f"cv is {self.cv!r:.80}, and gives no folds of these {n} rows: {error}") from error
        splits = [(_rows(train, n), _rows(test, n)) for train, test in given]
        if not splits:
            raise InputError("cv gives no folds")
        for number, (train, test) in enumerate(splits):
            if len(train) == 0 or len(test) == 0:
                raise InputError(f"fold {number} has {len(train)} rows to train on and {len(test)} to score")
        return splits

    def _forget(self) -> None:
        """What an earlier fit has found."""
        for name in ("best_params_", "best_score_", "best_index_", "best_estimator_", "refit_time_"):
            self.__dict__.pop(name, None)

    def _keep_best(self, is_complete: NDArray[np.bool_]) -> None:
        """The best of the cells that are complete; of equals the first."""
        if is_complete.any():
            rank = np.where(is_complete, self.cv_results_["rank_test_score"], np.iinfo(np.int32).max)
            self.best_index_ = int(np.argmin(rank))
            self.best_params_ = self.cv_results_["params"][self.best_index_]
            self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])

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
            msg="This %(name)s has no refitted model: fit it to its end, with refit=True.",
        )
        return self.best_estimator_

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """By the refitted model."""
        return np.asarray(self._fitted.predict(X))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """By the refitted model and ``scoring``."""
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return asked(self.scorer_, self._fitted, X, y, weight)


class Judge:
    """Scores of the machines' values on the rows held out. ``told`` is the learner's `Told`; ``given`` X, y and weights
    as the search was; ``is_by_class`` whether each machine speaks for a class."""

    def __init__(
        self,
        told: Any,
        search: CrossValidatedSearch,
        sample: Sample,
        given: tuple[Any, Any, Any],
        splits: Splits,
        *,
        is_by_class: bool,
    ) -> None:
        X, y, sample_weight = given
        self._told = told
        self._scorer = None if search.scoring is None else search.scorer_
        n_classes = len(sample.classes)
        self._told._rows = _NO_ROWS
        self._told.classes_ = np.arange(n_classes) if self._scorer is None else sample.classes
        self._X, self._y, self._codes, self._splits = X, y, sample.codes, splits
        self._weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        _check_held_out(self._weight, splits)
        # A class that a fold has no rows of cannot be meant there.
        self._absent = [
            np.flatnonzero(np.bincount(sample.codes[train], minlength=n_classes) == 0) for train, _ in splits
        ]
        self._is_by_class = is_by_class and n_classes > 2

    def scores(self, fold: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        test = self._splits[fold][1]
        found = np.empty(len(values))
        if self._scorer is not None:
            X, y = _safe_indexing(self._X, test), _safe_indexing(self._y, test)
            self._told._rows = X
        for c, machines in enumerate(values):
            self._told._values = machines.T
            if self._is_by_class and len(self._absent[fold]):
                machines[self._absent[fold]] = -np.inf
            if self._scorer is None:
                found[c] = np.average(self._told.predict(_NO_ROWS) == self._codes[test], weights=self._weight_of(test))
            else:
                found[c] = asked(self._scorer, self._told, X, y, self._weight_of(test))
        return found

    def _weight_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return None if self._weight is None else self._weight[rows]


class JudgeOfNumbers:
    """As `Judge`, for regressions: R², or what ``scoring`` says. ``given`` is X and y as the search was."""

    def __init__(
        self, told: Any, search: CrossValidatedSearch, values: Values, given: tuple[Any, Any], splits: Splits
    ) -> None:
        _check_held_out(values.weight, splits)
        self._told, self._values, self._splits = told, values, splits
        self._scorer = None if search.scoring is None else search.scorer_
        self._X, self._y = given

    def scores(self, fold: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of some cells, whose machines said ``values``, shape (cells, 1, held out)."""
        test = self._splits[fold][1]
        weight = None if self._values.weight is None else self._values.weight[test]
        if self._scorer is not None:
            X, y = _safe_indexing(self._X, test), _safe_indexing(self._y, test)
            self._told._rows = X
        found = np.full(len(values), np.nan)  # of a fit that overflowed
        for c, said in enumerate(values):
            self._told._values = said.T
            if not np.isfinite(said).all():
                continue
            if self._scorer is None:
                found[c] = r2_score(self._values.z[test], said[0], sample_weight=weight)
            else:
                found[c] = asked(self._scorer, self._told, X, y, weight)
        return found


def _check_held_out(weight: NDArray[np.float64] | None, splits: Splits) -> None:
    """Raise InputError for a fold whose held-out rows all have the weight 0: it has no score."""
    for number, (_, test) in enumerate(splits):
        if weight is not None and not weight[test].any():
            raise InputError(
                f"all rows that fold {number} holds out have the weight 0, so it has no score",
                cure="Leave rows of weight 0 out of X, or use fewer folds.",
            )


def check_folds(sample: Sample, splits: Splits) -> None:
    """Refuse a fold that has one class to train on."""
    for number, (train, _) in enumerate(splits):
        weight = None if sample.weight is None else sample.weight[train]
        mass = np.bincount(sample.codes[train], weights=weight, minlength=len(sample.classes))
        if (mass > 0).sum() < 2:
            raise InputError(
                f"fold {number} trains on one class only, {shown(sample.classes[int(np.argmax(mass))])}",
                cure="Use stratified folds (an int for cv), or fewer of them.",
            )


def _rows(given: Any, n: int) -> NDArray[np.int64]:
    """Row numbers, whichever way a splitter says them: numbers, from the end too, or a mask."""
    rows = np.asarray(given)
    if rows.dtype.kind == "b" and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu") or (rows.size and not _is_within(rows, n)):
        raise InputError(f"cv gives {rows!r:.80} for the rows of a fold", cure=f"Give row numbers below {n}.")
    rows = rows.astype(np.int64)
    return np.where(rows < 0, rows + n, rows)


def _is_within(rows: NDArray[Any], n: int) -> bool:
    return bool(-n <= int(rows.min()) and int(rows.max()) < n)
