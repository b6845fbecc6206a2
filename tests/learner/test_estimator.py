"""Estimators as dataclasses."""

from __future__ import annotations

import inspect
from dataclasses import field

from sklearn.base import BaseEstimator

from margrove.estimator import estimator


def test_parameters_by_position_are_published_in_the_order_in_which_they_are_bound():
    @estimator
    class Base(BaseEstimator):
        a: int = field(default=1, kw_only=False)
        c: int = 3

    @estimator
    class Derived(Base):
        b: int = field(default=2, kw_only=False)
        d: int = 4

    assert list(inspect.signature(Derived).parameters) == ["a", "b", "d", "c"]
    assert (Derived(10).a, Derived(10).b) == (10, 2)
