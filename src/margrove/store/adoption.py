"""`from_sklearn` and `to_sklearn`: fitted models of scikit-learn as ours and ours as scikit-learn's, without a fit."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from margrove.errors import InputError
from margrove.learner import key_of, learner_of, learners, loaded

_CURES = {
    "Pipeline": "Convert its last step, model[-1].",
    "GridSearchCV": "Convert its best_estimator_.",
    "RandomizedSearchCV": "Convert its best_estimator_.",
    "RandomForestClassifier": "Convert one of its estimators_, which are trees.",
    "RandomForestRegressor": "Convert one of its estimators_, which are trees.",
    "ExtraTreeClassifier": "Fit a DecisionTreeClassifier.",
    "ExtraTreeRegressor": "Fit a DecisionTreeRegressor.",
}


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
        known = ", ".join(learner.name for learner in ways.values())
        cure = _CURES.get(kind.__name__, f"Models that can be converted: {known}.")
        if kind.__module__.startswith("margrove."):
            cure = "It is already a Margrove model."
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
        One that scikit-learn has too. Of a tree every test must be x ≤ θ.

    Returns
    -------
    fitted estimator
        With the parameters that both have. Its predictions are the same; of a tree, which scikit-learn applies to cells
        rounded to float32, they are the same for cells that float32 represents.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier, to_sklearn
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
    """
    check_is_fitted(model)
    found = learner_of(model)
    if found is None or found.to_peer is None:
        known = ", ".join(learner.name for learner in learners() if learner.to_peer is not None)
        problem = f"{type(model).__name__} cannot be converted to scikit-learn"
        raise InputError(problem, cure=f"Models that can be converted: {known}.")
    theirs = loaded(found.to_peer)(loaded(found.peers[0]), model)
    for name in ("classes_", "n_classes_", "n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(theirs, name, getattr(model, name))
    return theirs


def with_parameters_of(model: Any, estimator: type, **others: Any) -> Any:
    """Return the estimator with the parameters that both have."""
    known = estimator().get_params()
    given = {name: value for name, value in model.get_params(deep=False).items() if name in known}
    return estimator(**{**given, **others})
