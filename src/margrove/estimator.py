"""Estimators as dataclasses: each constructor parameter is stated once, as a field with its type and default.

scikit-learn reads the parameters from the signature of ``__init__``, which the dataclass generates. Attributes that
`fit` sets are declared with `fitted`: they are not parameters, and do not exist before the fit. A parameter of a base
class that a subclass does not accept is declared with `fixed`, and one whose values must be checked with `checked`. A
parameter that may be passed by position has ``kw_only=False``. `check_parameters` applies the rules; rules that involve
several parameters are written as code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator

from margrove.run.effort import OnInterrupt, interrupt_policy

C = TypeVar("C", bound=type)
M = TypeVar("M", bound=BaseEstimator)


def fitted(*, init: Literal[False] = False) -> Any:  # type checkers read the default of ``init``
    """Declare an attribute that `fit` sets."""
    return field(init=init)


def fixed(value: Any, *, init: Literal[False] = False) -> Any:
    """Declare an attribute that always has this value, where another class of the family has a parameter."""
    return field(init=init, default=value)


def checked(
    rule: Callable[..., object], *, default: Any, also: tuple[object, ...] = (), kw_only: bool = True, **limits: Any
) -> Any:
    """Declare a parameter with its rule: ``rule(name, value, **limits)`` raises an error if the value is wrong. The
    values in ``also``, and None if it is the default, are always accepted."""
    also = (*also, None) if default is None else also
    return field(default=default, kw_only=kw_only, metadata={"rule": partial(rule, **limits), "also": also})


def check_parameters(model: BaseEstimator) -> None:
    """Raise an error if a parameter of the model breaks its rule."""
    for name, rule, also in model._rules:
        value = getattr(model, name)
        plain = value.item() if isinstance(value, np.generic) else value
        for each in also:  # no generator: small fits would feel it
            if isinstance(plain, type(each)) and plain == each:
                break
        else:
            rule(name, value)


def with_parameters(model: M, **changes: Any) -> M:
    """Return an unfitted estimator of the same class with the same parameters, except for the ``changes``."""
    made: M = type(model)(**(model.get_params(deep=False) | changes))
    return made


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(fitted, fixed, checked, field))
def estimator(cls: C) -> C:
    """Generate the constructor of an estimator from its fields, as keyword-only parameters.

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
    declared = [each for each in fields(cls) if "rule" in each.metadata]
    cls._rules = [(each.name, each.metadata["rule"], each.metadata["also"]) for each in declared]  # type: ignore[attr-defined]
    init: Any = vars(cls)["__init__"]
    signature = inspect.signature(init)
    first, *parameters = signature.parameters.values()
    own = inspect.get_annotations(cls)
    # Own keyword parameters come before inherited ones; positional parameters keep their order.
    parameters.sort(key=lambda each: (each.kind, each.kind is each.KEYWORD_ONLY and each.name not in own))
    init.__signature__ = signature.replace(parameters=[first, *parameters])
    return cls


class Interruptible:
    """Mixin of estimators: Ctrl-C keeps the model of a fit, but not that of a clone.

    A clone is fitted by a search, a cross-validation or an ensemble, which must not use a model that was stopped early:
    there KeyboardInterrupt propagates and ends the whole search. `on_interrupt` overrides both.
    """

    _is_clone = False

    def __sklearn_clone__(self) -> Any:
        made = super().__sklearn_clone__()  # type: ignore[misc]  # of BaseEstimator
        made._is_clone = True
        return made

    @property
    def _on_interrupt(self) -> OnInterrupt:
        return interrupt_policy("raise" if self._is_clone else "keep")
