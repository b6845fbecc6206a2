"""`CalibratedClassifier`: any classifier with calibrated probabilities and, on request, tuned thresholds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import get_scorer_names
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from margrove.calibrate.certificate import with_calibration, without_calibration
from margrove.calibrate.probability import Floats, as_scores, calibrated, check_estimator, fitted_calibration, scores_of
from margrove.calibrate.threshold import Metric, tuned_factors
from margrove.certificate import Certificate, read_only
from margrove.data.sample import check_classes, codes_of, settle_weights
from margrove.errors import (
    InputError,
    MargroveWarning,
    UnseenCategoryWarning,
    check_choice,
    check_seed,
    check_whole,
    warn_early,
)
from margrove.estimator import check_parameters, checked, estimator, fitted
from margrove.linear_svm.svc import LinearSVC
from margrove.multiclass.problem import (
    as_rows,
    last_step,
    parameters_of,
    read_labels,
    rows_of,
    seen_columns,
    takes_gram,
    weight_parameter,
)
from margrove.run.effort import on_interrupt
from margrove.run.progress import Progress, as_one_of, report
from margrove.status import Status, of_all
from margrove.svm.probability import splits_for, with_law

_STAGE = "fits"  # of progress
_OF_TREES = ("rules", "to_c", "to_python", "to_sql")  # that a tree has


def _check_metric(name: str, metric: object) -> None:
    if not callable(metric) and not (isinstance(metric, str) and metric.startswith("f1:")):
        check_choice(name, metric, get_scorer_names(), also="'f1:CLASS', a function (y_true, y_pred) -> float")


@estimator
class CalibratedClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated on rows held out and, on request, whose threshold is tuned there.

    The estimator is fitted on all rows, and ``cv`` times without a part of them. Its scores on the parts left out are
    calibrated; see `margrove.calibrate.probability`.

    Parameters
    ----------
    estimator : classifier, optional
        Any classifier or pipeline with ``decision_function`` or ``predict_proba``. None: ``LinearSVC()``.
    tuned_for : str or callable, optional
        What predictions are to be good at: the name of a scorer of scikit-learn's that judges predictions, such as
        "balanced_accuracy", "f1_macro" or "f1" (of the second class); "f1:CLASS", that of a class; or a function
        ``(y_true, y_pred) -> float`` whose larger values are better. Then ``predict`` returns the class of the largest
        ``predict_proba(X) * class_factors_``; see `margrove.calibrate.threshold`. None: ``predict`` is that of the
        estimator, and the most probable class is always the predicted one.
    cv : int
        The number of parts; fewer if a class has fewer rows.
    random_state : int or RandomState, optional
        The seed of the parts. None means 0.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all rows.
    slopes_, intercepts_ : arrays of shape (1,), or (classes,) for more than two classes
        a and b of the calibration.
    class_factors_ : array of shape (classes,)
        With ``tuned_for``: the factors of the probabilities, with mean 1.
    threshold_ : float
        With ``tuned_for`` and two classes: the second is predicted where its probability is larger.
    held_out_score_ : array of shape (2,)
        With ``tuned_for``: the metric on the rows held out, without and with the factors. The latter is somewhat
        optimistic, because the factors were chosen on these rows.
    classes_, n_features_in_, feature_names_in_, engine_, certificate_
        Those of ``estimator_``; the certificate with the claims of the calibration.
    status_ : Status
        That of ``estimator_``, or of the first fit without a part that ended early.

    Notes
    -----
    Ctrl-C during ``fit`` is a KeyboardInterrupt and leaves the model as it was. A time limit of the estimator is one of
    each fit.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from margrove import AdaBoostClassifier, CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(AdaBoostClassifier(n_estimators=20)).fit(X, y)
    >>> bool((model.predict_proba(X).argmax(axis=1) == model.predict(X)).all())
    True
    >>> tuned = CalibratedClassifier(AdaBoostClassifier(n_estimators=20), tuned_for="f1").fit(X, y)
    >>> bool(((tuned.predict_proba(X)[:, 1] > tuned.threshold_) == tuned.predict(X)).all())
    True
    """

    estimator: Any = field(default=None, kw_only=False)
    tuned_for: str | Callable[..., float] | None = checked(_check_metric, default=None)
    cv: int = checked(check_whole, least=2, default=5)
    random_state: int | np.random.RandomState | None = checked(check_seed, default=None)

    estimator_: Any = fitted()
    status_: Status = fitted()
    slopes_ = read_only("slopes_")
    intercepts_ = read_only("intercepts_")
    class_factors_ = read_only("class_factors_")
    held_out_score_ = read_only("held_out_score_")

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the estimator on all rows and without each part, and calibrate it.

        Parameters
        ----------
        X : whatever the estimator takes
        y : labels of shape (n,)
        sample_weight : array of shape (n,), optional
            Of the fits, the calibration and the metric; rows of weight ≤ 0 are not held out.
        """
        check_parameters(self)
        template = LinearSVC() if self.estimator is None else self.estimator
        check_estimator(template)
        labels, classes = read_labels(X, y)
        codes, weight = self._rows(labels, classes, sample_weight)
        params = {} if sample_weight is None else {weight_parameter(template): np.asarray(sample_weight)}
        used, is_pairwise = np.flatnonzero(weight > 0), takes_gram(template)
        splits = splits_for(codes[used], classes, self.random_state, self.cv, type(self).__name__, "")
        X = as_rows(X, is_pairwise=is_pairwise)

        def fit(rows: NDArray[Any] | None, number: int) -> Any:
            part, own = rows_of(X, rows, is_pairwise=is_pairwise), parameters_of(params, rows, len(labels))
            with as_one_of(_STAGE, number, len(splits) + 1), on_interrupt("raise"):
                model = clone(template).fit(part, labels if rows is None else labels[rows], **own)
            report(Progress(_STAGE, number + 1.0, len(splits) + 1.0))
            return model

        model, parts = fit(None, 0), []
        scores = np.full((len(labels), 1 if len(classes) == 2 else len(classes)), np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MargroveWarning)  # the fit on all rows has warned
            for number, (train, test) in enumerate(splits, start=1):
                parts.append(fit(used[train], number))
                rows = X[used[test]] if is_pairwise else rows_of(X, used[test])
                scores[used[test]] = scores_of(parts[-1], seen_columns(rows, used[train], is_pairwise=is_pairwise))
        self.calibrate(model, scores, labels, sample_weight)
        status = of_all(getattr(last_step(part), "status_", Status.CONVERGED) for part in parts)
        if status is not Status.CONVERGED and of_all([self.status_]) is Status.CONVERGED:
            self.status_ = status
            warn_early(f"a fit of {type(self).__name__} without some of the rows", status)
        return self

    def calibrate(self, model: Any, scores: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Keep a fitted model, calibrated by scores that are known already: `fit` without its fits.

        Parameters
        ----------
        model : classifier
            Fitted on all rows; it becomes ``estimator_``.
        scores : array of shape (n,) or (n, classes)
            What models of that kind that were not fitted on a row give to it: the ``decision_function``, or
            ``predict_proba`` of a model without one. Rows of NaN are left out.
        y, sample_weight
            As in `fit`.
        """
        check_parameters(self)
        check_estimator(model)
        classes = np.asarray(model.classes_)
        f = as_scores(scores, len(classes))
        codes, weight = self._rows(y, classes, sample_weight, np.isfinite(f.sum(axis=1)))
        used = np.flatnonzero(weight > 0)
        f, codes, weight = f[used], codes[used], weight[used]
        a, b = fitted_calibration(f, codes, len(classes), weight)
        metric = None if self.tuned_for is None else Metric(self.tuned_for, classes)
        tuned = None if metric is None else tuned_factors(metric, codes, weight, calibrated(f, a, b))
        for name in ("slopes_", "intercepts_", "class_factors_", "held_out_score_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        self.slopes_, self.intercepts_ = a, b
        if tuned is not None:
            self.class_factors_, self.held_out_score_ = tuned
        self.estimator_, self.status_ = model, getattr(last_step(model), "status_", Status.CONVERGED)
        return self

    def _rows(
        self, y: Any, classes: NDArray[Any], sample_weight: Any, is_known: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.intp], Floats]:
        """Return the class of each row, and its weight for the calibration, 0 where it ``is_known`` not."""
        codes = codes_of(y, classes)
        if is_known is not None and len(is_known) != len(codes):
            raise InputError(f"there are scores of {len(is_known)} rows and {len(codes)} labels")
        weight = settle_weights(codes[:, None], None, sample_weight, None, ignores_negative=True)
        weight = np.ones(len(codes)) if weight is None else weight
        weight = weight if is_known is None else np.where(is_known, weight, 0.0)
        check_classes(classes, np.bincount(codes, weights=weight, minlength=len(classes)))
        if self.tuned_for is not None:
            Metric(self.tuned_for, classes).check(codes, weight)
        return codes, weight

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction of the estimator; with ``tuned_for`` the class of the largest ``predict_proba(X) *
        class_factors_``, the first of equals."""
        check_is_fitted(self)
        if not self._is_tuned:
            return np.asarray(self.estimator_.predict(X))
        return np.asarray(self.classes_[(self._calibrated(X) * self.class_factors_).argmax(axis=1)])

    def predict_proba(self, X: Any) -> Floats:
        """Return the calibrated probability of each class, shape (n, classes).

        Without ``tuned_for`` the most probable class is always the one that `predict` returns: where the calibration
        has another, the nearest probabilities for which it is (`margrove.svm.probability.with_law`).
        """
        check_is_fitted(self)
        p = self._calibrated(X)
        if self._is_tuned:
            return p
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenCategoryWarning)  # the scores have warned
            return with_law(p, codes_of(self.estimator_.predict(X), self.classes_))

    def _calibrated(self, X: Any) -> Floats:
        return calibrated(scores_of(self.estimator_, X), self.slopes_, self.intercepts_)

    @property
    def _is_tuned(self) -> bool:
        return "class_factors_" in vars(self)

    @property
    def threshold_(self) -> float:
        """The probability above which the second of two classes is predicted."""
        if not self._is_tuned or len(self.classes_) != 2:
            raise AttributeError("threshold_ needs tuned_for and two classes")
        return float(self.class_factors_[0] / self.class_factors_.sum())

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        return np.asarray(self.estimator_.classes_)

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns, if they had any."""
        return np.asarray(self.estimator_.feature_names_in_)

    @property
    def engine_(self) -> str:
        """The engine of the estimator, or the name of its package."""
        learner = last_step(self.estimator_)
        return str(getattr(learner, "engine_", type(learner).__module__.partition(".")[0]))

    @property
    def certificate_(self) -> Certificate:
        """The certificate of the estimator, with the claims of the calibration."""
        return with_calibration(self, last_step(self.estimator_).certificate_)

    @certificate_.setter
    def certificate_(self, certificate: Certificate) -> None:
        own = last_step(self.estimator_).certificate_
        learner = {"learner": own.learner, "status": own.status}
        last_step(self.estimator_).certificate_ = without_calibration(certificate, **learner)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_TREES:
            raise AttributeError(
                f"{type(self).__name__} has no {name}, which would leave the calibration out. The estimator may have "
                f"it: model.estimator_.{name}(…)."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "fit") and not isinstance(self.estimator, type):
            tags.input_tags = get_tags(self.estimator).input_tags
        elif self.estimator is None:
            tags.input_tags = get_tags(LinearSVC()).input_tags
        return tags
