"""The native engine: problems become calls of the C++ core, in slices of time. One module per family."""

from margrove.engine.native import (  # their solvers register themselves
    boost,
    linear,
    linear_l1,
    linear_svm,
    search,
    svm,
    tree,
)
from margrove.engine.native.core import kernel_decision, threads_for
from margrove.engine.native.dispatch import solve

__all__ = [
    "boost",
    "kernel_decision",
    "linear",
    "linear_l1",
    "linear_svm",
    "search",
    "solve",
    "svm",
    "threads_for",
    "tree",
]
