"""The plane of the first two principal components.

The rows are those that reach the classifier at the end of a pipeline: its margins are distances there. A point x of the
plane with the coordinates t is x = mean + t₁ v₁ + t₂ v₂; the picture is the slice of the model through the mean of the
rows, and the rows are projected onto it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from margrove.data.frames import as_table
from margrove.data.rows import Matrix
from margrove.errors import InputError
from margrove.plots.arguments import as_numbers
from margrove.plots.judgement import Predictor, last_step
from margrove.plots.plane import Plane

_MOST_NAMED = 3  # columns that an axis names: those along which it runs most
_LITTLE = 0.1  # of a component's largest share in a column: less is not named
_PROJECTED = "\nslice through the mean, points projected onto it"


def component_plane(model: Predictor, X: Any) -> Plane:
    """Return the plane; new points of it are rows for the model's last step."""
    encoded = _numbers(last_step(model, X)[1])
    if min(encoded.shape) < 2:
        raise InputError(f"the rows are {encoded.shape[0]} × {encoded.shape[1]}; principal components need two of each")
    found = PCA(n_components=2, random_state=0).fit(encoded)
    names = _column_names(model, X, encoded.shape[1])
    first, second = (
        f"component {k + 1}, {100 * share:.0f} % of the variance:\n{_runs_along(found.components_[k], names)}"
        for k, share in enumerate(found.explained_variance_ratio_)
    )
    points = np.asarray(found.transform(encoded), dtype=np.float64)
    look: dict[str, Any] = {"words": _PROJECTED, "width": encoded.shape[1], "is_encoded": True}
    return Plane(points, (first, second), X, found.inverse_transform, **look)


def _numbers(rows: Any) -> Matrix:
    """Return rows as a matrix of finite numbers."""
    if sp.issparse(rows):
        return rows.tocsr().astype(np.float64)
    encoded = as_numbers(rows)
    if encoded is None or encoded.ndim != 2:
        cure = "Put an encoder in front of the model, or choose two columns: features=(a, b)."
        raise InputError("principal components need rows of numbers, and the model takes other cells", cure=cure)
    if not np.isfinite(encoded).all():
        cure = "Choose two columns: features=(a, b)."
        raise InputError("a cell is missing, and principal components need them all", cure=cure)
    return encoded


def _column_names(model: Any, X: Any, d: int) -> list[str]:
    """Return the names of the columns that the last step sees."""
    if hasattr(model, "steps") and len(model) > 1:
        if hasattr(model[:-1], "get_feature_names_out"):
            return [str(name) for name in model[:-1].get_feature_names_out()]
        return [f"x{j}" for j in range(d)]
    return [str(name) for name in as_table(X).names]


def _runs_along(direction: NDArray[np.float64], names: list[str]) -> str:
    """Return the columns that change most along a component, with a minus if they fall."""
    share = np.abs(direction)
    order = [int(j) for j in np.argsort(-share, kind="stable") if share[j] > _LITTLE * share.max()]
    signed = [f"{'' if direction[j] > 0 else '−'}{names[j]}" for j in order]
    return ", ".join([*signed[:_MOST_NAMED], *["…"] * (len(signed) > _MOST_NAMED)])
