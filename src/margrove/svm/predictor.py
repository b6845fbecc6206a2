"""Kernel machines in a program that only predicts: the core computes Σ β K(x, s).

Without SciPy the core multiplies matrices by itself, in another order than a BLAS: the values may differ in their last
digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove import _core as core
from margrove.data.given import Given
from margrove.errors import InputError
from margrove.run.threads import threads_for
from margrove.store.fault import FaultError
from margrove.store.saved import Rule, Saved
from margrove.svm.layout import class_slices, decided, joined, lies_by_pairs, scores_of

Floats = NDArray[np.float64]
Values = Callable[[Given], Floats]  # of each machine, (n, machines)
_PARTS = ("data", "indices", "indptr")


def classifier(saved: Saved) -> Rule:
    """Return the rule of SVC and NuSVC. Probabilities are for `margrove.load`."""
    classes, multiclass = saved.classes, saved.parameter("multiclass", "ovo")
    shape, ties = saved.parameter("decision_function_shape", "ovr"), saved.parameter("break_ties", False)
    order = saved.array("label_order_") if "label_order_" in saved.record["arrays"] else None
    by_pairs = lies_by_pairs(multiclass, len(classes))
    slices = class_slices(saved.array("n_support_")) if by_pairs else None
    values = values_of(saved, slices)

    def predict(given: Given) -> NDArray[Any]:
        return np.asarray(classes[decided(values(given), len(classes), multiclass, shape, ties, order)])

    def decision_function(given: Given) -> Floats:
        return scores_of(values(given), len(classes), multiclass, shape)

    return saved.rule(predict, decision_function, classes=classes)


def regression(saved: Saved) -> Rule:
    """Return the rule of SVR and NuSVR."""
    values = values_of(saved)
    return saved.rule(lambda given: values(given)[:, 0])


def one_class(saved: Saved) -> Rule:
    """Return the rule of OneClassSVM."""
    values = values_of(saved)
    sides = lambda given: np.where(values(given)[:, 0] > 0, 1, -1).astype(np.intp)  # noqa: E731
    return saved.rule(sides, lambda given: values(given)[:, 0])


def values_of(saved: Saved, slices: list[slice] | None = None) -> Values:
    """Return f(x) of each machine; with ``slices`` the machines are pairs of classes (`margrove.svm.layout`)."""
    kernel, dual, intercept = saved.parameter("kernel"), saved.array("dual_coef_"), saved.array("intercept_")
    parts = slices or [slice(0, dual.shape[1])]
    duals = [np.ascontiguousarray(dual[:, part]) for part in parts]
    points, support, dtype = _support(saved, parts)
    coef0, degree = float(saved.parameter("coef0", 0.0)), float(saved.parameter("degree", 3))
    if kernel == "linear" and support is not None:
        products = [beta @ support[part] for beta, part in zip(duals, parts, strict=True)]
        coef = np.asarray(joined([product.T for product in products]).T if slices else products[0])
        return lambda given: np.asarray(given.matrix() @ coef.T + intercept, dtype=np.float64)
    spec = core.KernelSpec(
        core.KernelKind[kernel], gamma=float(saved.record["scalars"]["gamma_"]), coef0=coef0, degree=degree
    )

    def values(given: Given) -> Floats:
        block = given.matrix()
        if kernel in ("chi2", "intersection") and (block < 0).any():
            raise InputError(f"X holds a negative number; the kernel {kernel!r} needs numbers ≥ 0")
        block = block.astype(np.result_type(block.dtype, dtype), copy=False)
        rows = core.dense_points(block) if support is not None else _csr(block)
        threads = threads_for(saved.parameter("n_jobs"))
        own = [points(part, block.dtype) for part in parts]
        sums = [
            core.kernel_decision(rows, others, beta, kernel=spec, threads=threads)
            if beta.shape[1]
            else np.zeros((given.n, len(beta)))
            for others, beta in zip(own, duals, strict=True)
        ]
        return np.asarray((joined(sums) if slices else sums[0]) + intercept)

    return values


def _support(
    saved: Saved, parts: list[slice]
) -> tuple[Callable[[slice, Any], core.Points], NDArray[Any] | None, np.dtype[Any]]:
    """Return the support vectors as the core takes them, and as a dense array if they are one."""
    if saved.parameter("kernel") == "precomputed":
        raise FaultError("its kernel is precomputed, which a Predictor does not serve", "Use margrove.load.")
    if saved.record["arrays"]["support_vectors_"] in ("C", "F"):
        dense = saved.array("support_vectors_")
        return lambda part, dtype: core.dense_points(np.ascontiguousarray(dense[part], dtype)), dense, dense.dtype
    data, column, start = (saved.tensors[f"{saved.prefix}support_vectors_.{part}"] for part in _PARTS)

    def points(part: slice, dtype: Any) -> core.Points:
        at = start[part.start : part.stop + 1].astype(np.int64)
        cells = slice(int(at[0]), int(at[-1]))
        return core.csr_points(
            data[cells].astype(dtype), column[cells].astype(np.int32), at - at[0], saved.record["n_features_in"]
        )

    return points, None, data.dtype


def _csr(block: NDArray[Any]) -> core.Points:
    """Return a dense array as sparse rows."""
    row, column = np.nonzero(block)
    start = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(block)))]).astype(np.int64)
    return core.csr_points(block[row, column], column.astype(np.int32), start, block.shape[1])
