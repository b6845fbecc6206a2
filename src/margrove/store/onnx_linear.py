"""Linear machines as operators: f(x) = X wᵀ + b, a product and a sum."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.store.onnx_answer import Answer, decided, sigmoid, softmax
from margrove.store.onnx_graph import Graph, check_size
from margrove.svm.layout import dense

_BYTES = 8  # of a double


def plane(graph: Graph, points: str, coef: Any, intercept: Any) -> str:
    """X wᵀ + b of each machine, (n, machines)."""
    check_size(_BYTES * int(np.prod(coef.shape)))
    weights = np.atleast_2d(dense(coef))
    return graph.op("Add", graph.op("MatMul", points, weights.T), np.atleast_1d(np.asarray(intercept, np.float64)))


def linear_classifier(graph: Graph, model: Any, points: str) -> Answer:
    """The basic linear classifier, least squares, perceptrons and `LinearSVC`."""
    if getattr(model, "variant", "last") == "voted":
        return decided(graph, model.classes_, _votes(graph, model, points))
    return decided(graph, model.classes_, plane(graph, points, model.coef_, model.intercept_))


def softmax_classifier(graph: Graph, model: Any, points: str) -> Answer:
    """`SoftmaxClassifier`: of two classes σ(−f) and σ(f), of more the softmax of the scores."""
    answer = decided(graph, model.classes_, plane(graph, points, model.coef_, model.intercept_))
    scores = str(answer.scores)
    if len(model.classes_) > 2:
        return replace(answer, probabilities=softmax(graph, scores))
    sides = [sigmoid(graph, graph.op("Neg", scores)), sigmoid(graph, scores)]
    return replace(answer, probabilities=graph.joined(sides))


def linear_regression(graph: Graph, model: Any, points: str) -> Answer:
    """`LinearSVR`."""
    return Answer(value=plane(graph, points, model.coef_, model.intercept_))


def _votes(graph: Graph, model: Any, points: str) -> str:
    """Of the voted perceptron: Σ votes · sign(x·w + b) / Σ votes over the vectors that it passed through."""
    all_votes: NDArray[np.int64] = model.votes_
    machines = []
    for start, stop in pairwise(model.starts_.tolist()):
        w, votes = model.prototypes_[start:stop], all_votes[start:stop].astype(np.float64)
        if len(w) == 0:  # it never made a mistake, and has no vector
            w, votes = np.zeros((1, model.n_features_in_ + 1)), np.ones(1)
        sides = graph.op("Sign", plane(graph, points, w[:, :-1], w[:, -1]))
        machines.append(graph.op("MatMul", sides, votes[:, None] / max(1.0, votes.sum())))
    return graph.joined(machines)
