"""Convert fitted forests to scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.ensemble
from sklearn.utils import get_tags

from margrove.errors import InputError
from margrove.learner import learner_of
from margrove.store.adoption import with_attributes_of, with_parameters_of


def to_sklearn(model: Any) -> Any:
    """Return our forest as scikit-learn's, without ``estimators_samples_``: scikit-learn draws rows otherwise."""
    learner = learner_of(model)
    assert learner is not None
    theirs = with_parameters_of(model, getattr(sklearn.ensemble, learner.name))
    theirs.estimator_, theirs.estimators_ = theirs.estimator, []
    for own in model.estimators_:
        own.tree_  # noqa: B018 an AttributeError names the test that scikit-learn does not have
        tree = with_attributes_of(own, with_parameters_of(own, type(theirs.estimator)))
        if hasattr(tree, "classes_") and model.n_outputs_ == 1:
            tree.classes_ = np.arange(float(len(tree.classes_)))  # as in scikit-learn's forests
        theirs.estimators_.append(tree)
    missing = [column.name for column in model.model_.columns if column.has_missing]
    if missing and not get_tags(theirs).input_tags.allow_nan:
        found = f"the column {missing[0]!r} has missing cells, and scikit-learn's {learner.name} takes none with"
        raise InputError(f"{found} criterion={model.criterion!r}", cure="Use another criterion, or fill the cells.")
    return theirs
