"""What a search asks a scorer, and what a scorer may ask a cell."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics._scorer import _BaseScorer

from margrove.errors import ParameterError, shown


def asked(scorer: Any, told: Any, X: Any, y: Any, weight: NDArray[np.float64] | None) -> float:
    """What a scorer says of a fold; the weights go to those of scikit-learn."""
    how = {} if weight is None or not isinstance(scorer, _BaseScorer) else {"sample_weight": weight}
    try:
        said = scorer(told, X, y, **how)
    except AttributeError as error:
        raise ParameterError(
            f"scoring is {scorer!r}, and it asks a cell of the search for more than predict and decision_function "
            f"({str(error).replace('_Told', 'it')}). Use another one, or GridSearchCV."
        ) from error
    said = said[()] if isinstance(said, np.ndarray) and said.ndim == 0 else said
    if not isinstance(said, Real):
        raise ParameterError(f"scoring is {scorer!r}, and it answers {shown(said)}; it must answer with one number.")
    return float(said)


class Told:
    """A machine whose values on some rows are known, and no more: what a scorer asks. Beside a learner's class, first.

    What a cell was fitted with is not here, nor can other rows be asked about: silence would be a wrong answer.
    """

    _rows: Any  # what may be asked about
    _values: NDArray[np.float64]

    def __getattribute__(self, name: str) -> Any:
        if name in ("C", "gamma", "epsilon"):
            raise AttributeError(f"{name} of the cell is not told")
        return super().__getattribute__(name)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _check_rows(self, X: Any) -> None:
        if X is not self._rows and not _is_same_table(X, self._rows):
            raise AttributeError("it can be asked about the rows that are held out, all of them and no others")


def name_of(scoring: Any) -> str:
    """How a scorer is told from another, in this process and the next."""
    if scoring is None or isinstance(scoring, str | _BaseScorer):
        return str(scoring)
    named = scoring if hasattr(scoring, "__qualname__") else type(scoring)
    if "<" in named.__qualname__:  # <lambda>, <locals>: many may have this name
        raise ParameterError(
            f"scoring is {named.__qualname__}, which a checkpoint cannot tell from others of that name. "
            "Define it by name at the top of a module."
        )
    return f"{named.__module__}.{named.__qualname__}"


def _is_same_table(X: Any, Z: Any) -> bool:
    if sp.issparse(X) or sp.issparse(Z):
        return bool(sp.issparse(X) and sp.issparse(Z) and X.shape == Z.shape and (X != Z).nnz == 0)
    return bool(np.array_equal(np.asarray(X), np.asarray(Z)))
