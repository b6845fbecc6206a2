"""Support vector machines in a model file.

Of the symbols of shapes, r is the number of rows of ``dual_coef_`` (`margrove.svm.layout`), s that of support vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from operator import methodcaller
from typing import Any

from margrove.errors import ParameterError
from margrove.store.arrays import HALF_WHOLE, SINGLE_OR_DOUBLE, WHOLE, Array
from margrove.store.fault import FaultError
from margrove.store.schema import ENDED, NOTHING, NUMBER, PENALTY, ROWS, SHARE, SOLVE, Limits, Scalar, Schema, single
from margrove.svm.kernels import NATIVE_KERNELS
from margrove.svm.kkt import HARD
from margrove.svm.layout import check_multiclass, check_sides, code_matrix, lies_by_pairs

KERNELS: Mapping[str, Limits] = {"kernel": (*NATIVE_KERNELS, "precomputed"), "degree": NUMBER, "coef0": NUMBER}
_POINTS = ("kernel", NATIVE_KERNELS)
_GRAM = ("kernel", ("precomputed",))
_CALIBRATED = ("probability", (True,))


def support_arrays(rows: str, whole: tuple[str, ...]) -> tuple[Array, ...]:
    """The arrays of any kernel machine, with so many rows of coefficients and whole numbers of that type."""
    return (
        Array("support_vectors_", "s d", SINGLE_OR_DOUBLE, given=_POINTS, may_be_sparse=True),
        Array("support_vectors_", "0 0", given=_GRAM),
        Array("dual_coef_", f"{rows} s"),
        Array("intercept_", "m"),
        Array("support_", "s", whole, given=_POINTS, least=0, below="n"),
        Array("support_", "s", whole, given=_GRAM, least=0, below="n d"),  # columns of a Gram matrix, too
    )


_ARRAYS = (
    *support_arrays("r", HALF_WHOLE),
    Array("norm_", "m", given=_POINTS, least=0),
    Array("norm_", "m", given=_GRAM, least=0, has_gaps=True),  # not known of a model that was solved elsewhere
    Array("_grades", "n m", ("int8",), least=0, most=HARD),
)
_SCALARS = {**ROWS, "gamma_": Scalar(float)}
_LIMITS = {**KERNELS, "checkpoint": NOTHING}


def _by_code(parameters: Mapping[str, Any], labels: int) -> dict[str, int]:
    """Return the sizes that ``multiclass`` implies; see `margrove.svm.layout`."""
    if labels < 2:
        raise FaultError("a support vector classifier needs at least two labels, and this one has only one")
    multiclass = parameters["multiclass"]
    try:
        check_multiclass("multiclass", multiclass)
        if isinstance(multiclass, str):
            machines = 1 if labels == 2 else labels if multiclass == "ovr" else labels * (labels - 1) // 2
        else:
            code = code_matrix(multiclass, labels)
            check_sides(code)
            if len(code) != labels:
                raise FaultError(f"multiclass has {len(code)} rows, and the model has {labels} labels")
            machines = code.shape[1]
    except ParameterError as error:
        raise FaultError(str(error).rstrip(".")) from error
    return {"m": machines, "r": labels - 1 if lies_by_pairs(multiclass, labels) else machines}


def _classifier(later: Mapping[str, Any], **limits: Limits) -> Schema:
    return Schema(
        (
            *_ARRAYS,
            Array("n_support_", "K", HALF_WHOLE, least=0, sums_to="s"),
            Array("class_weight_", "K", least=0),
            Array("n_iter_", "m", WHOLE, least=0),
            Array("n_kernel_rows_", "m", WHOLE, is_optional=True, least=0),  # older files lack it
            Array("label_order_", "K", HALF_WHOLE, is_optional=True, least=0, below="K"),
            Array("probA_", "m", given=_CALIBRATED, most=0),
            Array("probB_", "m", given=_CALIBRATED),
        ),
        {
            **ENDED,
            **_SCALARS,
            "loo_bound_": Scalar(float, most=1.0),
            "xi_alpha_bound_": Scalar(float, most=1.0),
            "solver_": Scalar(str, is_optional=True),  # older files lack it
        },
        limits={**_LIMITS, **limits},
        machines=_by_code,
        later={"probability": False, "checkpoint": None, **later},
        finish=methodcaller("_cache_weights"),
    )


def _lone_machine(
    *arrays: Array, scalars: Mapping[str, Scalar] = {}, later: Mapping[str, Any] = {}, **limits: Limits
) -> Schema:
    return Schema(
        (*_ARRAYS, Array("n_support_", "1", HALF_WHOLE, least=0, sums_to="s"), *arrays),
        {**SOLVE, **_SCALARS, **scalars},
        limits={**_LIMITS, **limits},
        machines=single,
        is_classifier=False,
        later={"checkpoint": None, **later},
        finish=methodcaller("_cache_weights"),
    )


# The width of the tube may come out a rounding error below 0; of a model that was solved elsewhere it is not known.
_TUBE = Scalar(float, least=-sys.float_info.max, is_optional=True)

SVC_FILE = _classifier({"warm_start": False}, C=PENALTY)
NU_SVC_FILE = _classifier({}, nu=SHARE)
SVR_FILE = _lone_machine(later={"warm_start": False}, C=PENALTY)
NU_SVR_FILE = _lone_machine(C=PENALTY, nu=SHARE, scalars={"epsilon_": _TUBE})
ONE_CLASS_FILE = _lone_machine(Array("offset_", "m"), nu=SHARE)
