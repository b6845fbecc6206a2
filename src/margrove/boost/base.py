"""The learners that are boosted: which of them the engines grow themselves, and how any other is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, column_or_1d, has_fit_parameter, validate_data

from margrove.boost.r2 import next_seed
from margrove.data.frames import as_array, is_frame
from margrove.data.sample import read_features
from margrove.data.table import Table, note_target
from margrove.engine import Engine
from margrove.errors import InputError, ParameterError, as_input_error, listed, shown
from margrove.estimator import check_parameters
from margrove.tree.classifier import DecisionTreeClassifier
from margrove.tree.problem import Cells
from margrove.tree.regressor import DecisionTreeRegressor
from margrove.tree.stump import DecisionStump

if TYPE_CHECKING:
    from margrove.boost.ensemble import Ensemble

_TREES = (DecisionStump, DecisionTreeClassifier, DecisionTreeRegressor)


def settle_learner(given: Any, default: Any, owner: str) -> Any:
    """Return a fresh copy of the learner to boost. Raises `ParameterError` if it cannot be boosted."""
    learner = default if given is None else given
    if not (hasattr(learner, "fit") and hasattr(learner, "predict") and hasattr(learner, "get_params")):
        raise ParameterError(
            f"estimator is {shown(learner)}; it must be a learner with fit and predict, such as {default!r}."
        )
    if isinstance(learner, type):
        raise ParameterError(f"estimator is the class {learner.__name__}; pass an instance: {learner.__name__}().")
    wants_classes = is_classifier(default)
    name = type(learner).__name__
    if is_regressor(learner) if wants_classes else is_classifier(learner):
        kind, other = ("classifier", "AdaBoostRegressor") if wants_classes else ("regressor", "AdaBoostClassifier")
        raise ParameterError(f"estimator is a {name}, and {owner} needs a {kind}. Use {other}.")
    if wants_classes and isinstance(learner, Pipeline):
        raise ParameterError(
            "estimator is a Pipeline: Pipeline doesn't support sample_weight, which boosting needs. Put the other "
            f"steps before the boosting: make_pipeline(..., {owner}({type(learner.steps[-1][1]).__name__}()))."
        )
    if wants_classes and not has_fit_parameter(learner, "sample_weight"):
        raise ParameterError(
            f"estimator is a {name}: {name} doesn't support sample_weight, which boosting needs. "
            f"Use a learner that does, such as {default!r}."
        )
    return clone(learner)


def is_plain_tree(learner: Any, engine: str | Engine) -> bool:
    """Return whether a `TreeProblem` describes the learner completely, so that an engine can boost it."""
    return (
        type(learner) in _TREES
        and learner.random_state is None
        and learner.max_features is None
        and learner.prune is None
        and learner.significance is None
        and isinstance(learner.ccp_alpha, (int, float))
        and learner.ccp_alpha == 0
        and learner.monotonic_cst is None
        and getattr(learner, "class_weight", None) is None
        and learner.time_limit is None
        and learner.engine in ("auto", engine)
    )


@as_input_error
def take_note(owner: Ensemble, learner: Any, X: Any, *, is_plain: bool) -> Cells:
    """Record the columns of the training table in the owner, and return its cells as a plain tree sees them."""
    if is_plain:
        check_parameters(learner)
        cells: Cells = learner._learn(X, owner)
        return cells
    note_target(owner, X)
    owner.categorical_ = {}
    if isinstance(X, Table) or is_frame(X):
        read_features(owner, X)
    else:  # the learner checks the cells
        validate_data(owner, X, accept_sparse=True, dtype=None, ensure_all_finite=False, allow_nd=True)
    return Cells((), _num_samples(X))


def seeded(learner: Any, generator: np.random.RandomState) -> Any:
    """Return a copy with a seed for each of its ``random_state``, drawn as scikit-learn's ensembles do."""
    learner = clone(learner)
    names = sorted(learner.get_params(deep=True))
    keys = [name for name in names if name == "random_state" or name.endswith("__random_state")]
    return learner.set_params(**{key: next_seed(generator) for key in keys})


@as_input_error
def taken_rows(X: Any, rows: NDArray[Any] | None) -> Any:
    """Return some rows of a table of any kind, or all (None), as learners get them: tables and frames as they are,
    sparse matrices as CSR unless they are CSC, anything else as an array."""
    if isinstance(X, Table):
        return X if rows is None else X.take(rows)
    if is_frame(X):
        return X if rows is None else _safe_indexing(X, rows)
    X = as_array(X)
    if sp.issparse(X) and X.format not in ("csr", "csc"):
        X = X.tocsr()
    return X if rows is None else X[rows]


def codes_of(estimator: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the predictions of a learner as positions in ``classes``, -1 for a label that is not there."""
    label = np.asarray(estimator.predict(X))
    n = _num_samples(X)
    if label.shape != (n,):
        raise InputError(
            f"the predict of {type(estimator).__name__} returned an array of shape {label.shape} for {n} rows",
            cure=f"It must return one label for each row: shape ({n},).",
        )
    return _places(label, classes)


def _places(label: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return labels as positions in ``classes``, -1 for a label that is not there."""
    if label.dtype.kind == "O":  # labels of any kind, which have no order
        places = {name: place for place, name in enumerate(classes.tolist())}
        return np.array([places.get(each, -1) for each in label.tolist()], dtype=np.intp)
    place = np.minimum(np.searchsorted(classes, label), len(classes) - 1)
    return np.where(classes[place] == label, place, -1)


@as_input_error
def places_of(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return true labels as positions in ``classes``; a label that is not there is an error."""
    label = column_or_1d(y, warn=True)
    place = _places(label, classes)
    if (place < 0).any():
        unknown = label[int(np.argmin(place))]
        raise InputError(
            f"y holds {shown(unknown)}, which is not one of the training classes ({listed(classes)})",
            cure="Use the labels that were passed to fit.",
        )
    return place
