"""Linear support vector machines in a model file.

Of the symbols of shapes, w is the number of rows of ``coef_``, r that of rows of ``dual_coef_``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from margrove.store.arrays import Array
from margrove.store.fault import FaultError
from margrove.store.schema import NOT_NEGATIVE, PENALTY, SOLVE, Scalar, Schema, single

# What they leave besides their weights. A solve that ended as nonfinite knows no gap.
_PROOF = (
    Array("dual_coef_", "r n", is_optional=True),
    Array("dual_steps_", "r k e", is_optional=True),
    Array("gap_", "m", has_gaps=True),
    Array("primal_", "m", has_gaps=True),
    Array("dual_", "m", has_gaps=True),
)
_SCALARS = {**SOLVE, "solver_": Scalar(str), "n_seen_": Scalar(int, least=1, is_optional=True)}
_LIMITS = {"C": PENALTY, "intercept_scaling": NOT_NEGATIVE}


def _machines(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """One for two labels, otherwise one for each; Crammer and Singer's is one machine, with dual coefficients of each
    label."""
    if labels < 2:
        raise FaultError("a linear support vector classifier needs at least two labels, and this one has only one")
    rows = 1 if labels == 2 else labels
    is_joint = parameters["multi_class"] == "crammer_singer"
    return {"m": 1 if is_joint else rows, "w": rows, "r": labels if is_joint else rows}


LINEAR_SVC_FILE = Schema(
    (Array("coef_", "w d", may_be_sparse=True), Array("intercept_", "w"), *_PROOF),
    _SCALARS,
    limits=_LIMITS,
    machines=_machines,
)
LINEAR_SVR_FILE = Schema(
    (Array("coef_", "d"), Array("intercept_", "m"), *_PROOF),
    _SCALARS,
    limits=_LIMITS,
    machines=single,
    is_classifier=False,
)
