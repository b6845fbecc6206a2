"""Every problem type, by name. A new type gets its cases in the module of its family, and is added here."""

from __future__ import annotations

from tests.engine import linear_problems, linear_svm_problems, svm_problems, tree_problems
from tests.engine.kind import Kind

KINDS: dict[str, Kind] = {
    kind.problem.__name__: kind
    for family in (svm_problems, linear_svm_problems, linear_problems, tree_problems)
    for kind in family.KINDS
}
