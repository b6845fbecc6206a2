"""The base class of the three schemes: a code, a machine for each of its columns, and a decoding."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from functools import cached_property
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, assert_all_finite, check_is_fitted, column_or_1d

from margrove.advice import Advice, Value
from margrove.certificate import Certificate
from margrove.data.frames import as_array
from margrove.data.sample import check_classes, number_classes, plain_labels
from margrove.errors import InputError, ParameterError, as_input_error, check_flag, shown
from margrove.estimator import Interruptible, check_parameters, checked, estimator, fitted
from margrove.multiclass.certificate import combined_certificate
from margrove.multiclass.codes import errors_corrected, minimum_distance
from margrove.multiclass.decoding import chosen
from margrove.multiclass.machines import CodedProblem, FittedMachines, check_learner, fit_machines
from margrove.multiclass.problem import columns_of
from margrove.run.effort import on_interrupt
from margrove.status import Status
from margrove.svm.layout import machine_names
from margrove.svm.svc import SVC


def _gives_probabilities(model: CodedClassifier) -> bool:
    machines = getattr(model, "_machines", None)
    learner = model._settled_estimator() if machines is None else machines.estimators[0]
    if not hasattr(learner, "predict_proba"):
        raise AttributeError(
            f"predict_proba is not available, because {type(learner).__name__} has none. Use an estimator that has "
            "it, such as SVC(probability=True) or scikit-learn's CalibratedClassifierCV(...)."
        )
    return True


def _check_verbose(name: str, verbose: object) -> None:
    if not isinstance(verbose, int):  # scikit-learn's is a number
        check_flag(name, verbose)


def _check_jobs(name: str, jobs: object) -> None:
    if not isinstance(jobs, Integral) or jobs == 0:
        words = f"{name} is {shown(jobs)}; it must be a whole number other than 0, -1 for all cores, or "
        raise ParameterError(Advice(words, Value(None), "."))


@estimator
class CodedClassifier(Interruptible, ClassifierMixin, BaseEstimator):
    """A code, a machine for each of its columns, and a decoding. Base class."""

    _scheme = "code"  # as a support vector classifier calls it

    estimator: Any = field(default=None, kw_only=False)
    n_jobs: int | None = checked(_check_jobs, default=None)
    verbose: bool = checked(_check_verbose, default=False)

    classes_: NDArray[Any] = fitted()
    code_: NDArray[np.int8] = fitted()
    min_distance_: float = fitted()
    errors_corrected_: int = fitted()
    machine_names_: tuple[str, ...] = fitted()
    sharing_: str = fitted()
    status_: Status = fitted()
    engine_: str = fitted()
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[Any] = fitted()
    _machines: FittedMachines = fitted()

    @abstractmethod
    def _settled_code(self, classes: NDArray[Any]) -> NDArray[np.int8]:
        """The code for these classes."""

    @abstractmethod
    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """`decision_function` of the machines' values."""

    @abstractmethod
    def _probabilities(self, q: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        """`predict_proba` of what the machines give to their positive sides."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit a machine for each column of the code.

        Parameters
        ----------
        X : whatever the estimator takes
            Arrays, sparse matrices, data frames with categories and missing cells: handed on as they are.
        y : labels of shape (n,)
        sample_weight : array of shape (n,), optional
            Handed on to the estimator, which must take it.
        """
        check_parameters(self)
        check_learner(self._settled_estimator(), sample_weight)
        problem = self._problem(X, y, sample_weight)
        with on_interrupt(self._on_interrupt):  # the machines are clones
            machines = fit_machines(self, self._settled_estimator(), problem)
        self._keep(problem.classes, problem.code, machines, problem.X.shape[1] if machines.is_pairwise else None)
        return self

    def _settled_estimator(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    def _problem(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> CodedProblem:
        labels, classes, codes = _read_labels(X, y)
        code = self._settled_code(classes)
        if sp.issparse(X):
            X = as_array(X).tocsr()  # other kinds have no rows to take
        elif get_tags(self._settled_estimator()).input_tags.pairwise:
            X = np.asarray(X)
        return CodedProblem(X, labels, sample_weight, classes, code, columns_of(code, codes), self._scheme)

    def _keep(
        self, classes: NDArray[Any], code: NDArray[np.int8], machines: FittedMachines, n_features: int | None = None
    ) -> None:
        """Set all attributes at the end, so that an interrupted fit leaves the model as it was."""
        first = machines.estimators[0]
        for name in ("certificate_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._machines = machines
        self.classes_, self.code_ = classes, code
        self.machine_names_ = machine_names(classes, code)
        self.min_distance_, self.errors_corrected_ = minimum_distance(code), errors_corrected(code)
        self.sharing_, self.status_, self.engine_ = machines.sharing, machines.status, machines.engine
        if n_features is not None:
            self.n_features_in_ = n_features
        elif hasattr(first, "n_features_in_"):
            self.n_features_in_ = first.n_features_in_
        if hasattr(first, "feature_names_in_"):
            self.feature_names_in_ = first.feature_names_in_

    @property
    def estimators_(self) -> list[Any]:
        """A fitted estimator for each column of the code; one alone where they share its kernel, with all of them as
        its machines."""
        check_is_fitted(self)
        return self._machines.estimators

    @property
    def n_classes_(self) -> int:
        """The number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    @property
    def n_kernel_rows_(self) -> NDArray[np.int64]:
        """Kernel rows that were computed for each machine, where they share a kernel: a row that is kept from an
        earlier machine is not computed again."""
        check_is_fitted(self)
        if not self._machines.is_shared:
            raise AttributeError(f"n_kernel_rows_ needs machines that share a kernel. These share {self.sharing_}.")
        rows: NDArray[np.int64] = self._machines.estimators[0].n_kernel_rows_
        return rows

    @cached_property
    def certificate_(self) -> Certificate:
        """The certificate of the code and its machines, put together on first access."""
        check_is_fitted(self)
        return combined_certificate(self)

    def machine_decision(self, X: Any) -> NDArray[np.float64]:
        """Return the value of each machine for each row, shape (n, machines): > 0 for its positive side.

        The estimator's decision function; where it has none, what it gives to the positive side, less ½; where it has
        no probabilities either, its prediction as −1 or +1.
        """
        check_is_fitted(self)
        return self._machines.values(X)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score of each class: shape (n,) for two classes (> 0 means ``classes_[1]``), (n, classes) for
        more."""
        return self._scores(self.machine_decision(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest score, the first of equals."""
        number = chosen(self.decision_function(X))
        return np.asarray(self.classes_[number])

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, shape (n, classes); where the estimator has probabilities.

        The most probable class is always the one that `predict` returns; see `margrove.multiclass.decoding`.
        """
        predicted = chosen(self.decision_function(X))
        return self._probabilities(self._machines.probabilities(X), predicted)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """log of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_machines")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, type) or not (self.estimator is None or hasattr(self.estimator, "fit")):
            return tags  # `fit` will refuse it
        tags.input_tags = get_tags(self._settled_estimator()).input_tags
        return tags


@as_input_error
def _read_labels(X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """The labels as an array, the classes, and each label's place among them."""
    if y is None:
        raise InputError("a classifier requires y to be passed, but the target y is None")
    n = _num_samples(X)
    if getattr(y, "ndim", 1) == 2 and y.shape[1] > 1:
        raise InputError(
            f"y has shape {tuple(y.shape)}; y should be a 1d array, one label for each row",
            cure="For several labels per row, use scikit-learn's MultiOutputClassifier.",
        )
    if n == 0:
        raise InputError("X has 0 rows", cure="Pass at least one row of each of two classes.")
    labels = column_or_1d(y, warn=True)
    if len(labels) != n:
        raise InputError(f"X has {n} rows and y has {len(labels)}: inconsistent numbers of samples")
    labels = plain_labels(labels)
    assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes, codes = number_classes(labels)
    check_classes(classes, np.ones(len(classes)))
    return labels, classes, codes
