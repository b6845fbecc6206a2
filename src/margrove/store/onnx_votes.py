"""How the machines of `SVC` and `NuSVC` decide together, and what their probabilities are, as operators.

The formulas are those of `margrove.svm.classifier` and `margrove.svm.probability`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store.onnx_answer import Answer, decided, largest, log_sigmoid, one_hot, shares, sigmoid, softmax
from margrove.store.onnx_graph import Graph
from margrove.store.onnx_kernel import machine_values
from margrove.svm.layout import code_of, lies_by_pairs
from margrove.svm.probability import ON_TOP, RIDGE


def support_vector_classifier(graph: Graph, model: Any, points: str) -> Answer:
    """`SVC` and `NuSVC`."""
    values = machine_values(graph, model, points)
    scores, n_scores = _scores(graph, model, values)
    answer = Answer(model.classes_, _place(graph, model, values), scores, n_scores)
    if not (model._is_calibrated and hasattr(model, "probA_")):
        return answer
    sides = positive_sides(graph, model, values)
    if lies_by_pairs(model.multiclass, len(model.classes_)):
        p = coupled(graph, sigmoid(graph, sides), len(model.classes_))
    else:
        p = _by_code(graph, sides, code_of(model))
    assert answer.place is not None
    return replace(answer, probabilities=with_law(graph, p, answer.place, len(model.classes_)))


def positive_sides(graph: Graph, model: Any, values: str) -> str:
    """−(A f + B) of each machine: the log-odds of its positive side."""
    return graph.op("Sub", graph.op("Mul", values, -model.probA_[None]), model.probB_[None])


def _scores(graph: Graph, model: Any, values: str) -> tuple[str, int]:
    """`decision_function`, and how many columns it has."""
    k, n_machines = len(model.classes_), len(model.intercept_)
    is_named = isinstance(model.multiclass, str)
    if k == 2:
        if n_machines == 1 and is_named:
            return values, 1
        scores = _code_scores(graph, model, values)
        return graph.op("Sub", graph.columns(scores, [1]), graph.columns(scores, [0])), 1
    if not is_named:
        return _code_scores(graph, model, values), k
    if model.multiclass != "ovo" or model.decision_function_shape == "ovo":
        return values, n_machines
    code = code_of(model).T.astype(np.float64)
    total = graph.op("MatMul", values, code)
    share = graph.op("Mul", graph.op("Add", graph.op("Abs", total), 1.0), 3.0)
    votes = _votes(graph, graph.op("GreaterOrEqual", values, 0.0), code)
    return graph.op("Add", votes, graph.op("Div", total, share)), k


def _votes(graph: Graph, is_for_first: str, code: NDArray[np.float64]) -> str:
    """How many pairs each class wins."""
    won = graph.op("MatMul", graph.cast(is_for_first, "double"), code)
    return graph.op("Add", won, (code < 0).sum(axis=0).astype(np.float64)[None])


def _code_scores(graph: Graph, model: Any, values: str) -> str:
    """Minus the hinge losses of each class's word."""
    code = code_of(model).T
    for_it = graph.op("Max", graph.op("Sub", 1.0, values), 0.0)
    against = graph.op("Max", graph.op("Add", values, 1.0), 0.0)
    paid = graph.op(
        "Add",
        graph.op("MatMul", for_it, (code > 0).astype(np.float64)),
        graph.op("MatMul", against, (code < 0).astype(np.float64)),
    )
    return graph.op("Neg", paid)


def _place(graph: Graph, model: Any, values: str) -> str:
    """The place of the label: most votes (one-vs-one), or the highest score."""
    order, k = getattr(model, "label_order_", None), len(model.classes_)
    if order is not None:
        values = _away_from_zero(graph, model, values, order)
    if k > 2 and lies_by_pairs(model.multiclass, k) and not model.break_ties:
        votes = _votes(graph, graph.op("Greater", values, 0.0), code_of(model).T.astype(np.float64))
        if order is None:
            return largest(graph, votes)
        return graph.op("Gather", order.astype(np.int64), largest(graph, graph.columns(votes, order.tolist())))
    scores, _ = _scores(graph, model, values)
    place = decided(graph, model.classes_, scores, is_zero_second=True).place
    assert place is not None
    return place


def _away_from_zero(graph: Graph, model: Any, values: str, order: NDArray[np.int32]) -> str:
    """f = 0 as the side of the label that LIBSVM knew as the second of the two."""
    place, code = np.argsort(order), code_of(model)
    sides = np.where(place[code.argmax(axis=0)] > place[code.argmin(axis=0)], 1.0, -1.0)
    return graph.op("Where", graph.op("Equal", values, 0.0), sides[None], values)


# ---- probabilities


def _by_code(graph: Graph, sides: str, code: NDArray[np.int8]) -> str:
    """p of each class, proportional to the product of what the machines give to its side."""
    likely = graph.op(
        "Add",
        graph.op("MatMul", log_sigmoid(graph, sides), (code.T > 0).astype(np.float64)),
        graph.op("MatMul", log_sigmoid(graph, graph.op("Neg", sides)), (code.T < 0).astype(np.float64)),
    )
    return softmax(graph, likely)


def coupled(graph: Graph, pairs: str, k: int) -> str:
    """p of each class from r_ij of the pairs: Q p = 1, then p ≥ 0 and Σp = 1.

    Rows of the table come last, in shape (K, K, n), so that every operator runs along them.
    """
    first, second = np.triu_indices(k, 1)
    place = np.zeros((k, k), dtype=np.int64)  # of r_ij among the pairs, those turned round, and a zero
    place[first, second] = np.arange(len(first))
    place[second, first] = len(first) + np.arange(len(first))
    np.fill_diagonal(place, 2 * len(first))
    nothing = graph.op("MatMul", pairs, np.zeros((len(first), 1)))
    cells = graph.joined([pairs, graph.op("Sub", 1.0, pairs), nothing])
    by_pair = graph.op("Transpose", cells, perm=[1, 0])
    r = graph.op("Gather", by_pair, place, axis=0)
    beside = graph.op("Neg", graph.op("Mul", r, graph.op("Transpose", r, perm=[1, 0, 2])))
    squares = graph.op("ReduceSum", graph.op("Mul", r, r), np.array([0]))  # (1, K, n): Σ_j r_ji²
    diagonal = graph.op("Mul", graph.op("Add", squares, RIDGE), np.eye(k)[:, :, None])
    Q = graph.op("Add", beside, diagonal)
    ones = graph.op("Add", graph.op("Mul", squares, 0.0), 1.0)
    right = graph.op("Transpose", ones, perm=[1, 0, 2])  # (K, 1, n)
    p = _solved(graph, graph.op("Concat", Q, right, axis=1), k)
    return shares(graph, graph.op("Max", graph.op("Transpose", p, perm=[1, 0]), 0.0))


def _solved(graph: Graph, system: str, k: int) -> str:
    """The solution (K, n) of systems (K, K + 1, n), the right side as last column: by elimination, without an exchange
    of rows, as the matrices are symmetric and positive definite. Each step leaves a row, and a system smaller by one.
    """
    rows = []  # of step i the row (1, K − i, n): x_i + Σ_j row_j x_{i+1+j} = row_last
    for size in range(k, 0, -1):
        head = graph.op("Slice", system, [0], [1], [0])
        pivot, rest = _parted(graph, head, 1, size + 1)
        rows.append(graph.op("Div", rest, pivot))
        if size > 1:
            below = graph.op("Slice", system, [1], [size], [0])
            factor, others = _parted(graph, below, 1, size + 1)
            system = graph.op("Sub", others, graph.op("Mul", factor, rows[-1]))
    found = rows.pop()  # (1, K − i, n): x_i and those after it
    for known, row in enumerate(reversed(rows), start=1):
        weights, value = _parted(graph, row, known, known + 1)
        sum_of_known = graph.op("ReduceSum", graph.op("Mul", weights, found), np.array([1]))
        found = graph.op("Concat", graph.op("Sub", value, sum_of_known), found, axis=1)
    return graph.op("Squeeze", found, np.array([0]))


def _parted(graph: Graph, block: str, at: int, end: int) -> tuple[str, str]:
    """The columns before ``at`` and from there on, along the second axis."""
    return graph.op("Slice", block, [0], [at], [1]), graph.op("Slice", block, [at], [end], [1])


def with_law(graph: Graph, p: str, predicted: str, k: int) -> str:
    """The nearest probabilities in which ``predicted`` is on top: see `margrove.svm.probability.with_law`."""
    is_own = one_hot(graph, predicted, k)
    own = graph.op("ReduceSum", graph.op("Where", is_own, p, 0.0), np.array([1]))
    others = graph.op("Where", is_own, -np.inf, p)
    ranked, _ = graph.ops("TopK", 2, others, np.array([k]), axis=1)
    following = graph.op("Slice", ranked, [1], [k], [1])  # the last of all is the own one: −∞
    ranked = graph.op("Slice", ranked, [0], [k - 1], [1])
    sums = graph.op("Add", graph.op("CumSum", ranked, 1), own)
    mean = graph.op("Div", sums, np.arange(2.0, k + 1)[None])
    enough = graph.cast(graph.op("LessOrEqual", following, mean), "int64")
    place = graph.op("ArgMax", enough, axis=1, keepdims=1)
    shared = graph.op("GatherElements", mean, place, axis=1)
    lifted = graph.op("Where", is_own, graph.op("Mul", shared, 1 + ON_TOP), graph.op("Min", p, shared))
    is_right = graph.op("Unsqueeze", graph.op("Equal", largest(graph, p), predicted), np.array([1]))
    return graph.op("Where", is_right, p, shares(graph, lifted))
