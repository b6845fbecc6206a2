"""Kernel machines as operators: f(x) = Σ β_i K(x_i, x) + b, in float64.

Kernels of products (linear, poly, sigmoid, rbf) are a product of matrices and a function of each value. Those of single
columns (laplacian, chi2, intersection) are summed up column by column in a loop, so that no more than (rows, support
vectors) numbers are held at once. The formulas are those of `margrove.svm.kernels`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.store.fault import FaultError
from margrove.store.onnx_answer import Answer, decided
from margrove.store.onnx_graph import Graph, check_size, described
from margrove.store.onnx_linear import plane
from margrove.svm.kernels import Kernel, kernel_of
from margrove.svm.layout import class_slices, dense, lies_by_pairs, pairs_of

_MOST_WEIGHTS = 1 << 24  # of all machines of a linear kernel: beyond, support vectors take less room


def machine_values(graph: Graph, model: Any, points: str) -> str:
    """f(x) of every machine, (n, machines), in the order of ``intercept_``."""
    kernel = kernel_of(model)
    if kernel.name in ("callable", "precomputed"):
        what = "a function" if kernel.name == "callable" else "precomputed, and made from rows that it does not know"
        raise FaultError(
            f"the kernel of {type(model).__name__} is {what}, and has no form in ONNX",
            Advice("Fit it with a kernel by name, such as ", Setting("kernel", "rbf"), "."),
        )
    d, support = int(model.n_features_in_), model.support_vectors_
    by_pairs = hasattr(model, "n_support_") and lies_by_pairs(
        getattr(model, "multiclass", "ovr"), len(getattr(model, "classes_", ()))
    )
    is_narrow = len(model.intercept_) * d <= _MOST_WEIGHTS
    if kernel.name == "linear" and (is_narrow or not by_pairs) and hasattr(model, "coef_"):
        return plane(graph, points, model.coef_, model.intercept_)
    if support.shape[0] == 0:
        return plane(graph, points, np.zeros((len(model.intercept_), d)), model.intercept_)
    check_size(8 * support.shape[0] * d)
    values = kernel_values(graph, kernel, points, dense(support))
    sums = _pair_sums(graph, model, values) if by_pairs else graph.op("MatMul", values, dense(model.dual_coef_).T)
    return graph.op("Add", sums, np.asarray(model.intercept_, dtype=np.float64))


def kernel_perceptron(graph: Graph, model: Any, points: str) -> Answer:
    """`KernelPerceptron`."""
    return decided(graph, model.classes_, machine_values(graph, model, points))


def kernel_regression(graph: Graph, model: Any, points: str) -> Answer:
    """`SVR` and `NuSVR`."""
    return Answer(value=machine_values(graph, model, points))


def one_class(graph: Graph, model: Any, points: str) -> Answer:
    """`OneClassSVM`: inside, +1, where f(x) > 0."""
    return decided(graph, np.array([-1, 1]), machine_values(graph, model, points))


def _pair_sums(graph: Graph, model: Any, values: str) -> str:
    """Σ β K of each pair (i, j): what the support vectors of i have for j, and those of j for i. LIBSVM's layout has
    K − 1 coefficients for each support vector, a fraction of one for each pair."""
    dual, k = dense(model.dual_coef_), len(model.classes_)
    parts = []
    for rows in class_slices(model.n_support_):
        if rows.start == rows.stop:
            parts.append(graph.op("MatMul", values, np.zeros((dual.shape[1], k - 1))))
            continue
        ends = np.array([rows.start]), np.array([rows.stop]), np.array([1])
        parts.append(graph.op("MatMul", graph.op("Slice", values, *ends), dual[:, rows].T))
    together = graph.joined(parts)
    first = [i * (k - 1) + j - 1 for i, j in pairs_of(k)]
    second = [j * (k - 1) + i for i, j in pairs_of(k)]
    return graph.op("Add", graph.columns(together, first), graph.columns(together, second))


def kernel_values(graph: Graph, kernel: Kernel, points: str, support: NDArray[np.float64]) -> str:
    """K(x, x_i), shape (n, support vectors)."""
    if kernel.name in _BY_COLUMN:
        return _by_column(graph, kernel, points, support)
    if kernel.name == "rbf":
        # ‖x − z‖² = ‖x‖² + ‖z‖² − 2 x·z, about the centre of the support vectors: there fewer digits are lost.
        centre = support.mean(axis=0)
        points, support = graph.op("Sub", points, centre[None]), support - centre
        own = graph.op("ReduceSum", graph.op("Mul", points, points), np.array([1]))
        sizes = graph.op("Add", own, (support**2).sum(axis=1)[None])
        squared = graph.op("Max", graph.op("Add", sizes, graph.op("MatMul", points, -2 * support.T)), 0.0)
        return graph.op("Exp", graph.op("Mul", squared, -kernel.gamma))
    if kernel.name == "linear":
        return graph.op("MatMul", points, support.T)
    # γ goes into the constant: beside a product onnxruntime makes a float32 of a single number.
    inner = graph.op("Add", graph.op("MatMul", points, kernel.gamma * support.T), kernel.coef0)
    if kernel.name == "sigmoid":
        return graph.op("Tanh", inner)
    return graph.op("Pow", inner, kernel.degree)


def _manhattan(body: Graph, x: str, z: str) -> str:
    return body.op("Abs", body.op("Sub", x, z))


def _chi2(body: Graph, x: str, z: str) -> str:
    """(x − z)²/(x + z), 0 where both are."""
    apart, total = body.op("Sub", x, z), body.op("Add", x, z)
    is_there = body.op("Greater", total, 0.0)
    safe = body.op("Where", is_there, total, 1.0)
    return body.op("Where", is_there, body.op("Div", body.op("Mul", apart, apart), safe), 0.0)


def _intersection(body: Graph, x: str, z: str) -> str:
    return body.op("Min", x, z)


_BY_COLUMN: dict[str, Callable[[Graph, str, str], str]] = {
    "laplacian": _manhattan,
    "chi2": _chi2,
    "intersection": _intersection,
}


def _by_column(graph: Graph, kernel: Kernel, points: str, support: NDArray[np.float64]) -> str:
    """A sum over columns: the loop holds what it comes to so far, (n, s), and takes one column of both at a time."""
    s = len(support)
    body = graph.body("columns")
    so_far, x, z = (body.fresh(word) for word in ("so_far", "x", "z"))
    row = body.op("Unsqueeze", x, np.array([1]))
    total = body.op("Add", so_far, _BY_COLUMN[kernel.name](body, row, z))
    loop = body.proto(
        kernel.name,
        [described(so_far, "double", [None, s]), described(x, "double", [None]), described(z, "double", [s])],
        [described(total, "double", [None, s])],
    )
    # Zeros of shape (n, s), made of the points: their number is known only then.
    d = support.shape[1]
    start = graph.op("MatMul", points, np.zeros((d, 1)))
    start = graph.op("MatMul", start, np.zeros((1, s)))
    columns = graph.op("Transpose", points, perm=[1, 0])
    summed = graph.op("Scan", start, columns, np.ascontiguousarray(support.T), body=loop, num_scan_inputs=2)
    if kernel.name == "intersection":
        return summed
    return graph.op("Exp", graph.op("Mul", summed, -kernel.gamma))
