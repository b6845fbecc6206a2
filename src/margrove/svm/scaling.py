"""Columns on so much larger a scale than the others that a kernel sees nothing else."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis

from margrove.errors import DataWarning
from margrove.svm.kernels import Matrix

_ROWS = 2048  # evenly spread, are looked at: the scale of a column shows in these
_TIMES = 100.0
_SHOWN = 5
_ONE_FIT = ("sklearn.base", "sklearn.pipeline", "sklearn.utils")  # stand between a line and its one fit


def warn_of_unscaled(X: Matrix, names: Sequence[Any] | None) -> None:
    """Name the columns that outweigh the others, in a `DataWarning`."""
    large = unscaled_columns(X)
    if not len(large):
        return
    shown = [str(names[column]) if names is not None else f"column {column}" for column in large[:_SHOWN]]
    more = f" and {len(large) - _SHOWN} more" if len(large) > _SHOWN else ""
    scaler = "MaxAbsScaler" if sp.issparse(X) else "StandardScaler"
    message = (
        f"the scale of {', '.join(shown)}{more} is over {_TIMES:g} times that of the median column, so the other "
        f"columns have little influence; scale the columns, with {scaler} for example."
    )
    line, level = _line_that_repeats()
    what = line, X.shape[1], None if names is None else tuple(names)
    if line is None or what != _Last.warning:
        warnings.warn(message, DataWarning, stacklevel=level)
        _Last.warning = what


class _Last:
    """The last warning: a search of scikit-learn's fits the folds of one table many times, and is warned once."""

    warning: Any = None


def _line_that_repeats() -> tuple[Any, int]:
    """Return the line that has scikit-learn make many fits, None where each fit has its own; and its ``stacklevel``."""
    level, frame, repeats = 0, inspect.currentframe(), False
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in ("margrove", "sklearn", "joblib") or frame.f_back is None:
            return ((frame.f_code, frame.f_lasti) if repeats else None), level
        repeats |= module.startswith("sklearn.") and not module.startswith(_ONE_FIT)
        level, frame = level + 1, frame.f_back
    return None, level


def unscaled_columns(X: Matrix) -> NDArray[np.intp]:
    """Columns whose standard deviation, and whose range, is more than 100 times the middle one, the largest first.

    Both: in text or one-hot tables most columns are nearly always 0, and the few that are not have a far larger
    standard deviation without being on another scale.
    """
    rows = X[:: max(1, X.shape[0] // _ROWS)]
    deviation, reach = _spread(rows)
    varies = reach > 0
    if varies.sum() < 2:
        return np.empty(0, np.intp)
    is_large = varies & (deviation > _TIMES * _middle(deviation[varies])) & (reach > _TIMES * _middle(reach[varies]))
    large = np.flatnonzero(is_large)
    return large[np.argsort(-deviation[large], kind="stable")]


def _middle(values: NDArray[np.float64]) -> float:
    """Return the median; of two columns the smaller one is in the middle."""
    return float(np.partition(values, (len(values) - 1) // 2)[(len(values) - 1) // 2])


def _spread(rows: Matrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return standard deviation and range of each column."""
    rows = rows.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if sp.issparse(rows):
            (_, variance), (least, most) = mean_variance_axis(rows, axis=0), min_max_axis(rows, axis=0)
            return np.sqrt(variance), most - least
        return np.asarray(rows.std(axis=0)), np.asarray(rows.max(axis=0) - rows.min(axis=0))
