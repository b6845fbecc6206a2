"""Engines: they solve problems and evaluate models.

============  =====================================================================
native        the C++ core: several threads, GIL released, in slices of time
reference     ``reference.py`` of the family: plain NumPy, for checking and for learning
stream        linear SVMs over rows that come in chunks, pass by pass
dask          linear SVMs, trees and forests over tables on the workers of a Dask cluster
auto          the fastest of those that can solve the problem
============  =====================================================================

The parameter ``engine`` of an estimator is one of these names or an `Engine` object. All engines give the same result;
``engine_`` of the model is the one that ran. `register` adds a solver for another type of problem.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from margrove.engine import by_steps as _by_steps  # noqa: F401  (derives paths and searches)
from margrove.engine.registry import (
    Capability,
    Engine,
    add,
    check_engine,
    choose,
    default,
    fitted_by,
    folders,
    name_of,
    names,
    register,
    solve,
)
from margrove.run.effort import Effort

__all__ = [
    "Capability",
    "Effort",
    "Engine",
    "add",
    "check_engine",
    "choose",
    "default",
    "fitted_by",
    "name_of",
    "names",
    "register",
    "solve",
]


def __getattr__(name: str) -> Any:
    """Return the class of an engine: ``margrove.engine.Native`` is that of the folder ``native``."""
    if name.istitle() and name.lower() in folders():
        return getattr(import_module(f"margrove.engine.{name.lower()}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
