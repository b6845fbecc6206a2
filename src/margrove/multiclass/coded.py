"""The base class of the three schemes: a code, a machine for each of its columns, and a decoding.

The one-vs-rest scheme also takes several labels per row: then there is no code, and a machine for each label.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Value
from margrove.certificate import Certificate
from margrove.data.sample import classes_of_pieces
from margrove.errors import InputError, ParameterError, check_flag, shown
from margrove.estimator import Interruptible, check_parameters, checked, estimator, fitted
from margrove.multiclass.certificate import combined_certificate
from margrove.multiclass.codes import errors_corrected, minimum_distance
from margrove.multiclass.decoding import chosen
from margrove.multiclass.machines import (
    CodedProblem,
    FittedMachines,
    check_learner,
    fit_machines,
    learn_piece,
    separated,
)
from margrove.multiclass.problem import Layout, as_rows, read_labels, takes_gram
from margrove.run.effort import on_interrupt
from margrove.status import Status
from margrove.svm.svc import SVC


def _gives_probabilities(model: CodedClassifier) -> bool:
    machines = getattr(model, "_machines", None)
    learner = model._settled_estimator() if machines is None else machines.first
    if not hasattr(learner, "predict_proba"):
        raise AttributeError(
            f"predict_proba is not available, because {type(learner).__name__} has none. Use an estimator that has "
            "it, such as SVC(probability=True) or scikit-learn's CalibratedClassifierCV(...)."
        )
    return True


def _learns_in_pieces(model: CodedClassifier) -> bool:
    return callable(model._settled_estimator().partial_fit)  # an AttributeError names the estimator


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

    # sample_weight is passed on to the estimator, which requests it by its own set_fit_request.
    __metadata_request__fit: ClassVar = {"sample_weight": UNUSED}
    __metadata_request__partial_fit: ClassVar = {"sample_weight": UNUSED}
    _known_words: ClassVar = "it must"  # scikit-learn's, in the error about a class that the first call did not name

    @abstractmethod
    def _settled_code(self, classes: NDArray[Any]) -> NDArray[np.int8]:
        """The code for these classes."""

    @abstractmethod
    def _scores(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """`decision_function` of the machines' values."""

    @abstractmethod
    def _probabilities(self, q: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
        """`predict_proba` of what the machines give to their positive sides."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: Any) -> Self:
        """Fit a machine for each column of the code.

        Parameters
        ----------
        X : whatever the estimator takes
            Arrays, sparse matrices, data frames with categories and missing cells: handed on as they are.
        y : labels of shape (n,)
        sample_weight : array of shape (n,), optional
            Handed on to the estimator, which must take it.
        **fit_params : dict
            Parameters of the estimator's ``fit``; only with ``sklearn.set_config(enable_metadata_routing=True)``.
        """
        check_parameters(self)
        params = self._routed("fit", sample_weight, fit_params)
        problem = self._problem(X, y, params)
        with on_interrupt(self._on_interrupt):  # the machines are clones
            machines = fit_machines(self, self._settled_estimator(), problem)
        self._keep(machines, problem.X.shape[1] if machines.is_pairwise else None)
        return self

    @available_if(_learns_in_pieces)
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **partial_fit_params: Any,
    ) -> Self:
        """Let each machine learn from these rows with the estimator's ``partial_fit``; for data in pieces.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, with one label for each row.
        classes : array, optional
            The labels of all calls. The first call needs it.
        **partial_fit_params : dict
            As in `fit`.
        """
        check_parameters(self)
        params = self._routed("partial_fit", sample_weight, partial_fit_params)
        is_first = not hasattr(self, "_machines")
        if not is_first and not hasattr(self, "code_"):
            words = "the last fit had several labels per row, or one class: partial_fit cannot continue from it"
            raise InputError(words, cure="Start with partial_fit(X, y, classes=…) of a new model.")
        known = classes_of_pieces(classes, None if is_first else self.classes_)
        labels, found = read_labels(X, y)
        if len(np.setdiff1d(found, known)):
            words = f"Mini-batch contains {found} while {self._known_words} be subset of {known}"
            raise InputError(words, cure="Name all labels in classes of the first call.")
        layout = Layout(known, self._settled_code(known) if is_first else self.code_)
        template = self._settled_estimator()
        before = [clone(template) for _ in layout.names] if is_first else self.estimators_
        problem = CodedProblem(as_rows(X, is_pairwise=False), labels, layout, self._scheme, params)
        self._keep(learn_piece(before, problem, self.n_jobs))
        return self

    def _routed(self, method: str, sample_weight: ArrayLike | None, others: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of the estimator's method. With scikit-learn's metadata routing they are those it has
        requested; without it only weights, which go to the last step of a pipeline."""
        given = others | ({} if sample_weight is None else {"sample_weight": sample_weight})
        template = self._settled_estimator()
        is_routed = get_config()["enable_metadata_routing"]
        check_learner(template, has_weights=not is_routed and sample_weight is not None)
        if is_routed and given:
            params: dict[str, Any] = process_routing(self, method, **given).estimator[method]
            return params
        if others:
            raise ParameterError(
                f"{type(self).__name__}.{method} got {', '.join(others)}. Parameters other than sample_weight need "
                "sklearn.set_config(enable_metadata_routing=True), and the estimator must request them."
            )
        prefix = f"{template.steps[-1][0]}__" if isinstance(template, Pipeline) else ""
        return {f"{prefix}{name}": value for name, value in given.items()}

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of scikit-learn's metadata: the estimator gets what it has requested."""
        mapping = MethodMapping().add(caller="fit", callee="fit").add(caller="partial_fit", callee="partial_fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self._settled_estimator(), method_mapping=mapping)

    def _settled_estimator(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    def _problem(self, X: Any, y: Any, params: dict[str, Any]) -> CodedProblem:
        labels, classes = read_labels(X, y)
        if len(classes) == 1 and self._scheme != "ovr":
            words = f"{type(self).__name__} can not be fit when only one class is present: y contains only one class, "
            raise InputError(f"{words}{shown(classes[0])}", cure="Add rows of another class.")
        layout = Layout(classes, self._settled_code(classes) if len(classes) > 1 else None)
        X = as_rows(X, is_pairwise=takes_gram(self._settled_estimator()))
        return CodedProblem(X, labels, layout, self._scheme, params)

    def _keep(self, machines: FittedMachines, n_features: int | None = None) -> None:
        """Set all attributes at the end, so that an interrupted fit leaves the model as it was."""
        first, code = machines.first, machines.layout.code
        fields = ("certificate_", "n_features_in_", "feature_names_in_", "code_", "min_distance_", "errors_corrected_")
        for name in fields:
            self.__dict__.pop(name, None)
        self._machines = machines
        self.classes_, self.machine_names_ = machines.layout.classes, machines.layout.names
        if code is not None:
            self.code_ = code
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
        """A fitted estimator for each machine, with the labels 0 and 1. If the machines share a kernel, these are
        copies, made on each access."""
        check_is_fitted(self)
        machines = self._machines
        return separated(machines) if machines.is_shared else machines.estimators

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
        no probabilities either, its prediction as −1 or +1. A regressor learns 0 and 1; its prediction p is 2 p − 1. A
        machine whose rows were all on one side has the value 0 or 1, as in scikit-learn.
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
