"""Linear machines of scikit-learn's as ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.certificate import Certificate
from margrove.engine import default
from margrove.status import Status
from margrove.store.adoption import with_parameters_of


def adopt_sklearn(estimator: type, model: Any) -> Any:
    """Return scikit-learn's `LinearSVC` or `LinearSVR` as ours."""
    ours = with_parameters_of(model, estimator)
    if hasattr(model, "classes_"):
        ours.classes_ = np.asarray(model.classes_)
        ours.coef_ = sp.csr_matrix(model.coef_) if sp.issparse(model.coef_) else np.array(model.coef_, dtype=np.float64)
        rows = ours.coef_.shape[0]
    else:
        ours.coef_, rows = np.array(model.coef_, dtype=np.float64).ravel(), 1
    ours.intercept_ = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (rows,)).copy()
    ours.n_features_in_, ours.n_iter_ = int(model.n_features_in_), int(model.n_iter_)
    ours.status_ = Status.CONVERGED if model.n_iter_ < model.max_iter else Status.MAX_ITER
    ours.engine_, ours.solver_ = default().name, "liblinear"
    ours.gap_ = ours.primal_ = ours.dual_ = np.full(len(ours._names), np.nan)  # LIBLINEAR tells none of them
    # It does not tell how many rows there were, either.
    ours.certificate_ = Certificate.of(ours, "solver", 0, ours._names)
    return ours
