"""`from_sklearn`: scikit-learn's fitted models as ours, without fitting anything again."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from margrove.advice import Advice, Setting
from margrove.certificate import Certificate
from margrove.data.frames import array_names
from margrove.engine import default
from margrove.errors import InputError, MargroveWarning
from margrove.linear_svm.svc import LinearSVC
from margrove.linear_svm.svr import LinearSVR
from margrove.status import Status
from margrove.svm.adopted import Solution, adopt
from margrove.svm.layout import dense
from margrove.svm.one_class import OneClassSVM
from margrove.svm.svc import SVC, NuSVC
from margrove.svm.svr import SVR, NuSVR
from margrove.tree.adopted import adopted_tree, missed_columns
from margrove.tree.classifier import DecisionTreeClassifier
from margrove.tree.problem import TreeColumn
from margrove.tree.regressor import DecisionTreeRegressor

_CURES = {
    "Pipeline": "Give its last step, model[-1].",
    "GridSearchCV": "Give its best_estimator_.",
    "RandomizedSearchCV": "Give its best_estimator_.",
    "RandomForestClassifier": "Give one of its estimators_, each of which is a tree.",
    "RandomForestRegressor": "Give one of its estimators_, each of which is a tree.",
    "ExtraTreeClassifier": "Fit a DecisionTreeClassifier.",
    "ExtraTreeRegressor": "Fit a DecisionTreeRegressor.",
}
_SAME_SPLITS = {"friedman_mse": "squared_error"}  # impurity and values are the same; the choice of a split is not


def from_sklearn(model: Any) -> Any:
    """A fitted model of scikit-learn's as the estimator of ours of that name: it predicts the same, and can be
    certified, drawn, saved and exported.

    Parameters
    ----------
    model : fitted estimator
        scikit-learn's ``SVC``, ``NuSVC``, ``SVR``, ``NuSVR``, ``OneClassSVM``, ``LinearSVC``, ``LinearSVR``,
        ``DecisionTreeClassifier`` or ``DecisionTreeRegressor``. Not a kernel that is a function (fit again with
        "precomputed"), not a tree with several targets, not ``criterion="poisson"``.

    Returns
    -------
    fitted estimator
        Of Margrove's, with the same parameters, names of columns and labels. Its ``certificate_`` has no claims:
        ``certify(model, X, y)`` makes them. What scikit-learn does not keep is not known here either: the word of rows
        that are no support vectors of several machines (``kkt_``), the gap of a linear machine, from how many tests a
        node of a tree had to choose, so that its p-values are not corrected for that.

    Raises
    ------
    InputError
        If it is another model; says what to do.

    Notes
    -----
    scikit-learn compares cells that it has rounded to float32. The thresholds here are those that send every number the
    same way without: they differ from scikit-learn's in the eighth digit. Of a tree that ``ccp_alpha`` pruned only what
    is left is known: its certificate can find that a leaf should have been split.

    Examples
    --------
    >>> from margrove import certify, from_sklearn
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> theirs = SVC(C=10).fit(X, y)
    >>> ours = from_sklearn(theirs)
    >>> bool((ours.predict(X) == theirs.predict(X)).all()), certify(ours, X, y).holds
    (True, True)
    """
    kind = type(model)
    known = kind.__module__.startswith("sklearn.")
    if not known or kind.__name__ not in _WAYS:
        cure = _CURES.get(kind.__name__, f"Those that can be taken over: {', '.join(_WAYS)}.")
        if kind.__module__.startswith("margrove."):
            cure = "It is Margrove's already."
        raise InputError(f"{kind.__module__}.{kind.__qualname__} is not a model that can be taken over", cure=cure)
    check_is_fitted(model)
    ours = _WAYS[kind.__name__](model)
    if hasattr(model, "feature_names_in_"):
        ours.feature_names_in_ = model.feature_names_in_
    return ours


def _same_parameters(estimator: type, model: Any, **others: Any) -> Any:
    """Our estimator with the parameters that both have."""
    known = estimator().get_params()
    given = {name: value for name, value in model.get_params(deep=False).items() if name in known}
    return estimator(**{**given, **others})


def _machine(estimator: type, *, is_classifier: bool = False) -> Callable[[Any], Any]:
    return lambda model: _support_vectors(estimator, model, is_classifier)


def _support_vectors(estimator: type, model: Any, is_classifier: bool) -> Any:
    if callable(model.kernel):
        raise InputError(
            f"the kernel is the function {getattr(model.kernel, '__name__', 'without a name')}, of which scikit-learn "
            "keeps no support vectors",
            cure=Advice("Fit it again with ", Setting("kernel", "precomputed"), " and the Gram matrix."),
        )
    ours = _same_parameters(estimator, model)
    if is_classifier:
        ours.set_params(probability=False)
        if estimator is NuSVC:
            ours.set_params(class_weight=None)  # which scikit-learn's takes and does nothing with
        is_weighted = estimator is SVC
        ours.class_weight_ = np.asarray(model.class_weight_) if is_weighted else np.ones(len(model.classes_))
        _take_probabilities(ours, model)
    is_given = model.kernel == "precomputed"
    vectors = model.support_vectors_
    n_iter = np.atleast_1d(np.asarray(model.n_iter_, dtype=np.int64))
    solution = Solution(
        support=np.asarray(model.support_),
        support_vectors=np.empty((0, 0)) if is_given else sp.csr_matrix(vectors) if sp.issparse(vectors) else vectors,
        dual_coef=np.ascontiguousarray(dense(model.dual_coef_)),
        intercept=np.array(model.intercept_, dtype=np.float64),
        n_support=np.asarray(model.n_support_),
        n_rows=int(model.shape_fit_[0]),
        n_features=int(model.n_features_in_),
        gamma=1.0 if is_given or model.kernel == "linear" else float(model._gamma),
        status=Status.CONVERGED if model.fit_status_ == 0 else Status.MAX_ITER,
        n_iter=n_iter,
    )
    return adopt(ours, solution, np.asarray(model.classes_) if is_classifier else None)


def _take_probabilities(ours: Any, model: Any) -> None:
    """A and B of P = 1/(1 + exp(A f + B)). scikit-learn's f of two classes is −f of the LIBSVM inside it, of which A
    and B are."""
    a, b = np.asarray(model._probA, dtype=np.float64), np.asarray(model._probB, dtype=np.float64)
    if a.size == 0:
        return
    if (a > 0).any():
        words = "some probA_ is above 0: the value of its machine speaks against itself"
        warnings.warn(f"{words}. Probabilities are left out.", MargroveWarning, stacklevel=5)
        return
    ours.set_params(probability=True)
    ours.probA_, ours.probB_ = a.copy(), (-b if len(model.classes_) == 2 else b) + 0.0


def _linear_classifier(model: Any) -> Any:
    ours = _same_parameters(LinearSVC, model)
    ours.classes_ = np.asarray(model.classes_)
    ours.coef_ = sp.csr_matrix(model.coef_) if sp.issparse(model.coef_) else np.array(model.coef_, dtype=np.float64)
    return _plane(ours, model, ours.coef_.shape[0], ours._names)


def _linear_regression(model: Any) -> Any:
    ours = _same_parameters(LinearSVR, model)
    ours.coef_ = np.array(model.coef_, dtype=np.float64).ravel()
    return _plane(ours, model, 1, ("regression",))


def _plane(ours: Any, model: Any, rows: int, names: tuple[str, ...]) -> Any:
    ours.intercept_ = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (rows,)).copy()
    ours.n_features_in_, ours.n_iter_ = int(model.n_features_in_), int(model.n_iter_)
    ours.status_ = Status.CONVERGED if model.n_iter_ < model.max_iter else Status.MAX_ITER
    ours.engine_, ours.solver_ = default().name, "liblinear"
    ours.gap_ = ours.primal_ = ours.dual_ = np.full(len(names), np.nan)  # LIBLINEAR tells none of them
    # It does not tell how many rows there were, either.
    ours.certificate_ = Certificate(type(ours).__name__, str(ours.status_), "solver", 0, tuple(names))
    return ours


def _tree_of_classes(model: Any) -> Any:
    if model.n_outputs_ > 1:
        raise _several_targets(model.n_outputs_)
    ours = _same_parameters(DecisionTreeClassifier, model, correct_significance=False)
    ours.classes_, ours.n_classes_ = np.asarray(model.classes_), len(model.classes_)
    return _tree(ours, model, is_classifier=True)


def _tree_of_numbers(model: Any) -> Any:
    if model.n_outputs_ > 1:
        raise _several_targets(model.n_outputs_)
    if model.criterion == "poisson":
        cure = Advice("Fit with ", Setting("criterion", "squared_error"), ".")
        raise InputError("criterion is 'poisson', which is none of ours", cure=cure)
    criterion = _SAME_SPLITS.get(model.criterion, model.criterion)
    if criterion != model.criterion:
        words = f"criterion {model.criterion!r} becomes {criterion!r}: certify will ask for the best splits of that."
        warnings.warn(words, MargroveWarning, stacklevel=3)
    ours = _same_parameters(DecisionTreeRegressor, model, criterion=criterion, correct_significance=False)
    return _tree(ours, model, is_classifier=False)


def _several_targets(count: int) -> InputError:
    return InputError(f"the tree predicts {count} targets at once", cure="Fit a tree for each of them.")


def _tree(ours: Any, model: Any, *, is_classifier: bool) -> Any:
    d = int(model.n_features_in_)
    names = getattr(model, "feature_names_in_", None)
    names = array_names(d) if names is None else [str(name) for name in names]
    directions = np.zeros(d, dtype=np.int64) if model.monotonic_cst is None else np.asarray(model.monotonic_cst)
    is_missed = missed_columns(model.tree_, d)
    columns = tuple(
        TreeColumn(name, monotone=int(direction), has_missing=bool(missed))
        for name, direction, missed in zip(names, directions, is_missed, strict=True)
    )
    ours.n_features_in_ = d
    ours.tree_ = ours.grown_ = adopted_tree(columns, model.tree_, is_classifier=is_classifier)
    ours.status_, ours.engine_, ours.ccp_alpha_ = Status.CONVERGED, default().name, float(model.ccp_alpha)
    ours.categorical_, ours.target_ = {}, None
    return ours


_WAYS: dict[str, Callable[[Any], Any]] = {
    "SVC": _machine(SVC, is_classifier=True),
    "NuSVC": _machine(NuSVC, is_classifier=True),
    "SVR": _machine(SVR),
    "NuSVR": _machine(NuSVR),
    "OneClassSVM": _machine(OneClassSVM),
    "LinearSVC": _linear_classifier,
    "LinearSVR": _linear_regression,
    "DecisionTreeClassifier": _tree_of_classes,
    "DecisionTreeRegressor": _tree_of_numbers,
}
