"""How many machines a model has: what its parameters and labels say, and its arrays must bear out.

Counted, never built: the labels of a small file may ask for more machines than there is memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from margrove.errors import ParameterError
from margrove.store.fault import FaultError
from margrove.svm.layout import check_multiclass, check_sides, code_matrix, lies_by_pairs

# Parameters and the number of labels → the symbols of `schema` that follow from them.
Counting: TypeAlias = Callable[[Mapping[str, Any], int], dict[str, int]]


def one_vs_rest(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """One machine for two labels, otherwise one for each."""
    return {"m": 1 if labels == 2 else labels}


def single(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """One machine, and no labels."""
    return {"m": 1, "r": 1}


def linear_machines(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """As one_vs_rest, with as many rows of weights and of dual coefficients; Crammer and Singer's is one machine, with
    dual coefficients of each label."""
    if labels < 2:
        raise FaultError("a linear support vector classifier tells labels apart, and it has only one")
    rows = 1 if labels == 2 else labels
    is_joint = parameters["multi_class"] == "crammer_singer"
    return {"m": 1 if is_joint else rows, "w": rows, "r": labels if is_joint else rows}


def by_code(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """As a support vector classifier's ``multiclass`` says; see `margrove.svm.layout`."""
    if labels < 2:
        raise FaultError("the machines of a support vector classifier tell labels apart, and it has only one")
    multiclass = parameters["multiclass"]
    try:
        check_multiclass(multiclass)
        if isinstance(multiclass, str):
            machines = 1 if labels == 2 else labels if multiclass == "ovr" else labels * (labels - 1) // 2
        else:
            code = code_matrix(multiclass, labels)
            check_sides(code)
            if len(code) != labels:
                raise FaultError(f"multiclass has {len(code)} rows for {labels} labels")
            machines = code.shape[1]
    except ParameterError as error:
        raise FaultError(str(error).rstrip(".")) from error
    return {"m": machines, "r": labels - 1 if lies_by_pairs(multiclass, labels) else machines}
