"""Estimators as dataclasses: each constructor parameter is stated once, as a field with its type and default.

scikit-learn reads the parameters from the signature of ``__init__``, which the dataclass writes. What `fit` leaves is
declared with `fitted`: it is no parameter, and is not there before the fit. A parameter of a base class that a subclass
does not take is declared with `fixed`. A parameter that may be given by position is
``field(default=…, kw_only=False)``.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, dataclass_transform

C = TypeVar("C", bound=type)


def fitted(*, init: Literal[False] = False) -> Any:  # type checkers read the default of ``init``
    """Declare an attribute that `fit` sets."""
    return field(init=init)


def fixed(value: Any, *, init: Literal[False] = False) -> Any:
    """Declare an attribute that always has this value, where another class of the family has a parameter."""
    return field(init=init, default=value)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(fitted, fixed, field))
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
