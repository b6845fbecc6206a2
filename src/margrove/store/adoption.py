"""`from_sklearn` and `to_sklearn`: convert fitted models from and to scikit-learn, without fitting again."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy, deepcopy
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from margrove.errors import InputError
from margrove.learner import Learner, key_of, learner_of, learners, loaded

# What fitted models of both libraries have, by the same name and with the same meaning.
_COMMON = (
    *("classes_", "n_classes_", "n_features_in_", "feature_names_in_", "coef_", "intercept_", "n_iter_"),
    *("estimator_weights_", "estimator_errors_", "label_binarizer_", "pairwise_indices_"),
    *("class_weight_", "fit_status_", "offset_", "tree_", "n_outputs_", "max_features_"),
    *("oob_score_", "oob_decision_function_", "oob_prediction_"),
)
_CURES = {
    "Pipeline": "Convert its last step, model[-1].",
    "GridSearchCV": "Convert its best_estimator_.",
    "RandomizedSearchCV": "Convert its best_estimator_.",
    "RandomForestClassifier": "Convert one of its estimators_, which are trees.",
    "RandomForestRegressor": "Convert one of its estimators_, which are trees.",
    "ExtraTreeClassifier": "Fit a DecisionTreeClassifier.",
    "ExtraTreeRegressor": "Fit a DecisionTreeRegressor.",
} | dict.fromkeys(("SVCCV", "SVRCV", "LinearSVCCV", "LinearSVRCV"), "Convert its best_estimator_.")


def from_sklearn(model: Any) -> Any:
    """Return a fitted model of scikit-learn's as the estimator of ours of that name: it predicts the same, and can be
    certified, drawn, saved and exported.

    Parameters
    ----------
    model : fitted estimator
        scikit-learn's ``SVC``, ``NuSVC``, ``SVR``, ``NuSVR``, ``OneClassSVM``, ``LinearSVC``, ``LinearSVR``,
        ``DecisionTreeClassifier`` or ``DecisionTreeRegressor``. Not a kernel that is a function (fit again with
        "precomputed"); such an `InputError` says what to do.

    Returns
    -------
    fitted estimator
        With the same parameters, names of columns and labels. Its ``certificate_`` has no claims: ``certify(model, X,
        y)`` makes them. What scikit-learn does not keep, such as the gap of a linear machine, is not known.

    Notes
    -----
    scikit-learn compares cells that it has rounded to float32. The thresholds here, which differ in the eighth digit,
    send every number the same way without.

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
    ways = {peer: learner for learner in learners() if learner.adopt is not None for peer in learner.peers}
    found = ways.get(key_of(kind))
    if found is None or found.adopt is None:
        cure = "It is already a Margrove model." if is_ours(model) else _cure(kind, ways.values())
        raise InputError(f"{kind.__module__}.{kind.__qualname__} cannot be converted", cure=cure)
    check_is_fitted(model)
    ours = loaded(found.adopt)(loaded(found.estimator), model)
    if hasattr(model, "feature_names_in_"):
        ours.feature_names_in_ = model.feature_names_in_
    return ours


def to_sklearn(model: Any) -> Any:
    """Return a fitted model as scikit-learn's estimator of that name, for tools that require its classes.

    Parameters
    ----------
    model : fitted estimator
        One that scikit-learn has too: a support vector machine with a kernel of LIBSVM's or a callable one, and one
        machine for each pair of classes; `LinearSVC`, `LinearSVR`; a `Perceptron`, unless it is voted; a tree, stump or
        forest whose tests are all x ≤ θ; `AdaBoostClassifier`, `AdaBoostRegressor`, `OneVsRestClassifier` and
        `OneVsOneClassifier` over these or over scikit-learn's own; or a pipeline that ends in one of them, of which the
        other steps stay as they are.

    Returns
    -------
    fitted estimator
        With the parameters that both have. Its predictions, decision values and probabilities are the same but for
        these: scikit-learn rounds cells to float32 before a tree tests them, so trees, forests and AdaBoost predict the
        same for cells that float32 represents, and a float64 cell close to a threshold may take the other branch;
        LIBSVM's probabilities differ by less than 0.01 unless they contradict ``predict``; scikit-learn's one-vs-one
        adds the vote to the value of two classes. With a callable kernel ``support_`` numbers the support vectors, not
        the training rows. A forest has no ``estimators_samples_``, since scikit-learn draws other rows.

    Raises
    ------
    InputError
        If scikit-learn has no such model; an AttributeError if a tree has other tests.

    Examples
    --------
    >>> from margrove import AdaBoostClassifier, DecisionTreeClassifier, to_sklearn
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import export_text
    >>> X, y = load_iris(return_X_y=True)
    >>> ours = DecisionTreeClassifier(max_depth=1).fit(X, y)
    >>> print(export_text(to_sklearn(ours)))
    |--- feature_2 <= 2.45
    |   |--- class: 0
    |--- feature_2 >  2.45
    |   |--- class: 1
    <BLANKLINE>
    >>> boosted = AdaBoostClassifier(n_estimators=5).fit(X, y)
    >>> theirs = to_sklearn(boosted)
    >>> type(theirs).__module__, bool((theirs.predict(X) == boosted.predict(X)).all())
    ('sklearn.ensemble._weight_boosting', True)
    """
    check_is_fitted(model)
    if isinstance(model, Pipeline):
        theirs = copy(model)
        theirs.steps = [*model.steps[:-1], (model.steps[-1][0], to_sklearn(model[-1]))]
        return theirs
    found = learner_of(model)
    if found is None or found.to_peer is None:
        convertible = [learner for learner in learners() if learner.to_peer is not None]
        is_theirs = type(model).__module__.startswith("sklearn.") and not hasattr(model, "best_estimator_")
        cure = "It is already a model of scikit-learn." if is_theirs else _cure(type(model), convertible)
        raise InputError(f"{type(model).__name__} cannot be converted to scikit-learn", cure=cure)
    return with_attributes_of(model, loaded(found.to_peer)(model, *map(loaded, found.peers[:1])))


def _cure(kind: type, convertible: Iterable[Learner]) -> str:
    known = ", ".join(learner.name for learner in convertible)
    return _CURES.get(kind.__name__, f"Models that can be converted: {known}.")


def is_ours(model: object) -> bool:
    """Return whether the model, or the last step of a pipeline, is of a class of Margrove's or derived from one."""
    last = model[-1] if isinstance(model, Pipeline) else model
    return any(kind.__module__.startswith("margrove.") for kind in type(last).__mro__)


def with_parameters_of(model: Any, estimator: Any, /, **others: Any) -> Any:
    """Return an unfitted ``estimator`` with those parameters of the model that it has, too."""
    given = {name: getattr(model, name) for name in estimator._get_param_names() if hasattr(model, name)}
    return estimator(**{**given, **others})


def with_attributes_of(model: Any, theirs: Any) -> Any:
    """Return their estimator with those attributes of our fitted model that both have."""
    for name in _COMMON:
        if not isinstance(getattr(type(theirs), name, None), property) and hasattr(model, name):
            setattr(theirs, name, deepcopy(getattr(model, name)))
    return theirs


def with_learners_of(model: Any, estimator: Any) -> Any:
    """Return our ensemble as an ``estimator`` of scikit-learn's, with its learners converted."""
    learners = [to_sklearn(each) if is_ours(each) else copy(each) for each in model.estimators_]
    if estimator.__name__ != "OneVsRestClassifier":  # it passes data frames to its learners; the others pass arrays
        for learner in learners:
            vars(learner).pop("feature_names_in_", None)
    theirs = with_parameters_of(model, estimator, estimator=clone(learners[0]))
    theirs.estimators_ = learners
    if hasattr(model, "estimator_"):
        theirs.estimator_ = theirs.estimator
    return theirs
