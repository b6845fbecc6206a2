"""Estimators as dataclasses: each constructor parameter is stated once, as a field with its type and default.

scikit-learn reads the parameters from the signature of ``__init__``, which the dataclass writes. What `fit` leaves is
declared with `fitted`: it is no parameter, and is not there before the fit.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

C = TypeVar("C", bound=type)


def fitted() -> Any:
    """Declare an attribute that `fit` sets."""
    return field(init=False)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(fitted,))
def estimator(cls: C) -> C:
    """Write the constructor of an estimator from its fields, which take keywords only.

    Examples
    --------
    >>> from margrove.estimator import estimator, fitted
    >>> from sklearn.base import BaseEstimator, clone
    >>> @estimator
    ... class Ridge(BaseEstimator):
    ...     alpha: float = 1.0
    ...     coef_: float = fitted()
    >>> clone(Ridge(alpha=2.0))
    Ridge(alpha=2.0)
    >>> hasattr(Ridge(), "coef_")
    False
    """
    dataclass(kw_only=True, eq=False, repr=False)(cls)
    init: Any = vars(cls)["__init__"]
    signature = inspect.signature(init)
    first, *parameters = signature.parameters.values()
    parameters.sort(key=lambda each: (each.kind, each.name not in cls.__annotations__))  # its own before inherited ones
    init.__signature__ = signature.replace(parameters=[first, *parameters])
    return cls
