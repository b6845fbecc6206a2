"""Every problem type, by name. A new type gets its cases in the module of its family, and is added here."""

from __future__ import annotations

from tests.engine import (
    linear_problems,
    linear_svm_problems,
    search_problems,
    stream_problems,
    svm_problems,
    tree_problems,
)
from tests.engine.kind import Kind

_MODULES = svm_problems, search_problems, linear_svm_problems, stream_problems, linear_problems, tree_problems

KINDS: dict[str, Kind] = {kind.problem.__name__: kind for family in _MODULES for kind in family.KINDS}
