"""Kernel machines as ONNX operators: f(x) = Σ β_i K(x_i, x) + b, in float64, the decision of the machines of `SVC`
and `NuSVC` together, and their probabilities.

Kernels of products (linear, poly, sigmoid, rbf) are a product of matrices and a function of each value. Those of single
columns (laplacian, chi2, intersection) are summed up column by column in a loop, so that no more than (rows, support
vectors) numbers are held at once. The formulas are those of `margrove.svm.kernels`, `margrove.svm.classifier` and
`margrove.svm.probability`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.advice import Advice, Setting
from margrove.onnx.graph import GraphValue, check_size, described
from margrove.onnx.prediction import (
    Prediction,
    by_sides,
    decided,
    largest,
    log_sigmoid,
    one_hot,
    plane,
    shares,
    sigmoid,
    softmax,
)
from margrove.onnx.table import Columns
from margrove.store.fault import FaultError
from margrove.svm.kernels import Kernel, kernel_of
from margrove.svm.layout import class_slices, code_of, dense, lies_by_pairs, pairs_of
from margrove.svm.probability import ON_TOP, RIDGE

_MOST_WEIGHTS = 1 << 24  # of all machines of a linear kernel: beyond, support vectors take less room


def support_vector_classifier(model: Any, columns: Columns) -> Prediction:
    """`SVC` and `NuSVC`."""
    values, k = machine_values(model, columns.numbers()), len(model.classes_)
    place = _place(model, values)
    prediction = Prediction(model.classes_, place, *_scores(model, values))
    if not model._is_calibrated or model._calibration is None:
        return prediction
    sides = positive_sides(model, values)
    if lies_by_pairs(model.multiclass, k):
        p = coupled(sigmoid(sides), k)
    else:  # proportional to the product of what the machines give to the side of a class
        p = softmax(by_sides(log_sigmoid(sides), log_sigmoid(-sides), code_of(model)))
    return replace(prediction, probabilities=with_law(p, place, k))


def kernel_regression(model: Any, columns: Columns) -> Prediction:
    """`SVR` and `NuSVR`."""
    return Prediction(value=machine_values(model, columns.numbers()))


def one_class(model: Any, columns: Columns) -> Prediction:
    """`OneClassSVM`: inside, +1, where f(x) > 0."""
    return decided(np.array([-1, 1]), machine_values(model, columns.numbers()))


def machine_values(model: Any, points: GraphValue) -> GraphValue:
    """f(x) of every machine, (n, machines), in the order of ``intercept_``."""
    kernel = kernel_of(model)
    if kernel.name in ("callable", "precomputed"):
        what = "a function" if kernel.name == "callable" else "precomputed from rows that the model does not contain"
        raise FaultError(
            f"the kernel of {type(model).__name__} is {what}, which ONNX cannot represent",
            Advice("Fit it with a named kernel, such as ", Setting("kernel", "rbf"), "."),
        )
    d, support = int(model.n_features_in_), model.support_vectors_
    by_pairs = hasattr(model, "n_support_") and lies_by_pairs(
        getattr(model, "multiclass", "ovr"), len(getattr(model, "classes_", ()))
    )
    is_narrow = len(model.intercept_) * d <= _MOST_WEIGHTS
    if kernel.name == "linear" and (is_narrow or not by_pairs) and hasattr(model, "coef_"):
        return plane(points, dense(model.coef_), model.intercept_)
    if support.shape[0] == 0:
        return plane(points, np.zeros((len(model.intercept_), d)), model.intercept_)
    check_size(8 * support.shape[0] * d)
    values = _kernel_values(kernel, points, dense(support))
    sums = _pair_sums(model, values) if by_pairs else values @ dense(model.dual_coef_).T
    return sums + np.asarray(model.intercept_, dtype=np.float64)


def _pair_sums(model: Any, values: GraphValue) -> GraphValue:
    """Σ β K of each pair (i, j): what the support vectors of i have for j, and those of j for i. LIBSVM's layout has
    K − 1 coefficients for each support vector, a fraction of one for each pair."""
    dual, k = dense(model.dual_coef_), len(model.classes_)
    parts = []
    for rows in class_slices(model.n_support_):
        if rows.start == rows.stop:
            parts.append(values @ np.zeros((dual.shape[1], k - 1)))
        else:
            parts.append(values.slice(rows.start, rows.stop) @ dual[:, rows].T)
    together = values.graph.joined(parts)
    first = [i * (k - 1) + j - 1 for i, j in pairs_of(k)]
    second = [j * (k - 1) + i for i, j in pairs_of(k)]
    return together.columns(first) + together.columns(second)


def _kernel_values(kernel: Kernel, points: GraphValue, support: NDArray[np.float64]) -> GraphValue:
    """K(x, x_i), shape (n, support vectors)."""
    if kernel.name in _BY_COLUMN:
        return _by_column(kernel, points, support)
    if kernel.name == "rbf":
        # ‖x − z‖² = ‖x‖² + ‖z‖² − 2 x·z, about the centre of the support vectors: there fewer digits are lost.
        centre = support.mean(axis=0)
        points, support = points - centre[None], support - centre
        sizes = (points * points).sum() + (support**2).sum(axis=1)[None]
        squared: GraphValue = (sizes + points @ (-2 * support.T)).op("Max", 0.0)
        return (squared * -kernel.gamma).exp()
    if kernel.name == "linear":
        return points @ support.T
    # γ goes into the constant: beside a product onnxruntime makes a float32 of a single number.
    inner = points @ (kernel.gamma * support.T) + kernel.coef0
    return inner.op("Tanh") if kernel.name == "sigmoid" else inner.op("Pow", kernel.degree)


def _chi2(x: GraphValue, z: GraphValue) -> GraphValue:
    """(x − z)²/(x + z), 0 where both are."""
    apart, total = x - z, x + z
    is_there = total > 0.0
    return is_there.where(apart * apart / is_there.where(total, 1.0), 0.0)


_BY_COLUMN: dict[str, Callable[[GraphValue, GraphValue], GraphValue]] = {
    "laplacian": lambda x, z: (x - z).op("Abs"),
    "chi2": _chi2,
    "intersection": lambda x, z: x.op("Min", z),
}


def _by_column(kernel: Kernel, points: GraphValue, support: NDArray[np.float64]) -> GraphValue:
    """A sum over columns: the loop holds what it comes to so far, (n, s), and takes one column of both at a time."""
    s, d = support.shape
    body = points.graph.body("columns")
    so_far, x, z = (GraphValue(body, body.fresh(word)) for word in ("so_far", "x", "z"))
    total = so_far + _BY_COLUMN[kernel.name](x.upright(), z)
    loop = body.proto(
        kernel.name,
        [
            described(str(so_far), "double", [None, s]),
            described(str(x), "double", [None]),
            described(str(z), "double", [s]),
        ],
        [described(str(total), "double", [None, s])],
    )
    # Zeros of shape (n, s), made of the points: their number is known only then.
    start = points @ np.zeros((d, 1)) @ np.zeros((1, s))
    columns = np.ascontiguousarray(support.T)
    summed = start.op("Scan", points.turned(1, 0), columns, body=loop, num_scan_inputs=2)
    return summed if kernel.name == "intersection" else (summed * -kernel.gamma).exp()


def _scores(model: Any, values: GraphValue) -> tuple[GraphValue, int]:
    """`decision_function`, and how many columns it has."""
    k, n_machines = len(model.classes_), len(model.intercept_)
    is_named = isinstance(model.multiclass, str)
    if k == 2:
        if n_machines == 1 and is_named:
            return values, 1
        scores = _code_scores(model, values)
        return scores.columns([1]) - scores.columns([0]), 1
    if not is_named:
        return _code_scores(model, values), k
    if model.multiclass != "ovo" or model.decision_function_shape == "ovo":
        return values, n_machines
    return scores_of_votes(values, values >= 0.0, code_of(model)), k


def votes_of(is_won: GraphValue, code: NDArray[np.int8]) -> GraphValue:
    """Return the number of machines that decide for each class."""
    n_negative: NDArray[np.float64] = (code < 0).sum(axis=1).astype(np.float64)
    return is_won.cast("double") @ code.T.astype(np.float64) + n_negative


def scores_of_votes(values: GraphValue, is_won: GraphValue, code: NDArray[np.int8]) -> GraphValue:
    """Return the votes of each class, and less than a vote that breaks ties."""
    total = values @ code.T.astype(np.float64)
    return votes_of(is_won, code) + total / ((total.op("Abs") + 1.0) * 3.0)


def _code_scores(model: Any, values: GraphValue) -> GraphValue:
    """Minus the hinge losses of each class's word."""
    return -by_sides((1.0 - values).op("Max", 0.0), (values + 1.0).op("Max", 0.0), code_of(model))


def _place(model: Any, values: GraphValue) -> GraphValue:
    """The place of the label: most votes (one-vs-one), or the highest score."""
    order, k = getattr(model, "label_order_", None), len(model.classes_)
    if order is not None:
        values = _away_from_zero(model, values, order)
    if k > 2 and lies_by_pairs(model.multiclass, k) and not model.break_ties:
        votes = votes_of(values > 0.0, code_of(model))
        if order is None:
            return largest(votes)
        return values.graph.op("Gather", order.astype(np.int64), largest(votes.columns(order.tolist())))
    place = decided(model.classes_, _scores(model, values)[0], is_zero_second=True).place
    assert place is not None
    return place


def _away_from_zero(model: Any, values: GraphValue, order: NDArray[np.int32]) -> GraphValue:
    """f = 0 as the side of the label that LIBSVM knew as the second of the two."""
    place, code = np.argsort(order), code_of(model)
    sides = np.where(place[code.argmax(axis=0)] > place[code.argmin(axis=0)], 1.0, -1.0)
    return values.op("Equal", 0.0).where(sides[None], values)


def positive_sides(model: Any, values: GraphValue) -> GraphValue:
    """−(A f + B) of each machine: the log-odds of its positive side."""
    a, b = model._calibration
    sides: GraphValue = values * -a - b
    return sides


def coupled(pairs: GraphValue, k: int) -> GraphValue:
    """p of each class from r_ij of the pairs: Q p = 1, then p ≥ 0 and Σp = 1.

    Rows of the table come last, in shape (K, K, n), so that every operator runs along them.
    """
    first, second = np.triu_indices(k, 1)
    place = np.zeros((k, k), dtype=np.int64)  # of r_ij among the pairs, those turned round, and a zero
    place[first, second] = np.arange(len(first))
    place[second, first] = len(first) + np.arange(len(first))
    np.fill_diagonal(place, 2 * len(first))
    cells = pairs.graph.joined([pairs, 1.0 - pairs, pairs @ np.zeros((len(first), 1))])
    r = cells.turned(1, 0).op("Gather", place, axis=0)
    squares = (r * r).sum(axis=0)  # (1, K, n): Σ_j r_ji²
    Q = -(r * r.turned(1, 0, 2)) + (squares + RIDGE) * np.eye(k)[:, :, None]
    right = (squares * 0.0 + 1.0).turned(1, 0, 2)  # (K, 1, n)
    return shares(_solved(pairs.graph.joined([Q, right]), k).turned(1, 0).op("Max", 0.0))


def _solved(system: GraphValue, k: int) -> GraphValue:
    """The solution (K, n) of systems (K, K + 1, n), the right side as last column: by elimination, without an exchange
    of rows, as the matrices are symmetric and positive definite. Each step leaves a row, and a system smaller by one.
    """
    rows = []  # of step i the row (1, K − i, n): x_i + Σ_j row_j x_{i+1+j} = row_last
    for size in range(k, 0, -1):
        head = system.slice(0, 1, axis=0)
        rows.append(head.slice(1, size + 1) / head.slice(0, 1))
        if size > 1:
            below = system.slice(1, size, axis=0)
            system = below.slice(1, size + 1) - below.slice(0, 1) * rows[-1]
    found = rows.pop()  # (1, K − i, n): x_i and those after it
    for known, row in enumerate(reversed(rows), start=1):
        sum_of_known = (row.slice(0, known) * found).sum()
        found = system.graph.joined([row.slice(known, known + 1) - sum_of_known, found])
    return found.op("Squeeze", np.array([0]))


def with_law(p: GraphValue, predicted: GraphValue, k: int) -> GraphValue:
    """The nearest probabilities in which ``predicted`` is on top: see `margrove.svm.probability.with_law`."""
    is_own = one_hot(predicted, k)
    own = is_own.where(p, 0.0).sum()
    ranked, _ = p.graph.ops("TopK", 2, is_own.where(-np.inf, p), np.array([k]), axis=1)
    following = ranked.slice(1, k)  # the last of all is the own one: −∞
    sums = ranked.slice(0, k - 1).op("CumSum", 1) + own
    mean = sums / np.arange(2.0, k + 1)[None]
    place = (following <= mean).cast("int64").op("ArgMax", axis=1, keepdims=1)
    shared = mean.op("GatherElements", place, axis=1)
    lifted = is_own.where(shared * (1 + ON_TOP), p.op("Min", shared))
    is_right = largest(p).op("Equal", predicted).upright()
    return is_right.where(p, shares(lifted))
