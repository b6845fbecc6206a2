"""Boosted learners as operators. Trees of ours are one ``TreeEnsemble`` in which each adds its vote; of other learners
each is written by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from margrove.boost.problem import EQUAL_VOTES
from margrove.store.onnx_answer import Answer, decided, one_hot, softmax
from margrove.store.onnx_graph import Graph
from margrove.store.onnx_table import Columns
from margrove.store.onnx_tree import Ensemble

Written = Callable[[Graph, Any, Columns], Answer]  # `onnx_model.written`, for learners within learners


def boosted_classes(graph: Graph, model: Any, columns: Columns, written: Written) -> Answer:
    """`AdaBoostClassifier`."""
    k, all_votes = len(model.classes_), float(model.estimator_weights_.sum())
    if model.model_ is not None:
        grove = model.model_.grove
        ensemble = Ensemble(grove.columns)
        for t in range(grove.n_trees):
            tree = grove.tree(t)
            vote = np.full(tree.n_nodes, model.estimator_weights_[t])
            ensemble.add(tree, tree.value.argmax(axis=1), vote)
        votes = ensemble.into(graph, columns, k)
    else:
        votes = _votes_of_each(graph, model, columns, written)
    share = graph.op("Div", votes, all_votes)
    top = graph.op("ReduceMax", share, np.array([1]))
    is_top = graph.op("GreaterOrEqual", share, graph.op("Sub", top, EQUAL_VOTES))
    share = graph.op("Where", is_top, top, share)
    if k == 2:
        lead = graph.op("Sub", graph.columns(share, [1]), graph.columns(share, [0]))
        scores = graph.op("Mul", lead, 2.0)
        both = graph.op("Mul", scores, np.array([[-0.5, 0.5]]))
        return replace(decided(graph, model.classes_, scores), probabilities=softmax(graph, both))
    scores = graph.op("Div", graph.op("Sub", graph.op("Mul", share, float(k)), 1.0), k - 1.0)
    probabilities = softmax(graph, graph.op("Div", scores, k - 1.0))
    return replace(decided(graph, model.classes_, scores), probabilities=probabilities)


def _votes_of_each(graph: Graph, model: Any, columns: Columns, written: Written) -> str:
    """Σ a_t over the learners that say k, (n, K)."""
    total = None
    for estimator, vote in zip(model.estimators_, model.estimator_weights_.tolist(), strict=True):
        answer = written(graph, estimator, columns)
        assert answer.place is not None
        assert answer.classes is not None
        place = graph.op("Gather", np.searchsorted(model.classes_, answer.classes), answer.place)
        said = graph.cast(one_hot(graph, place, len(model.classes_)), "double")
        votes = graph.op("Mul", said, vote)
        total = votes if total is None else graph.op("Add", total, votes)
    assert total is not None
    return total


def boosted_numbers(graph: Graph, model: Any, columns: Columns, written: Written) -> Answer:
    """`AdaBoostRegressor`: the median of what the learners predict, weighted by their votes."""
    n_learners = len(model.estimator_weights_)
    if model.model_ is not None:
        grove = model.model_.grove
        ensemble = Ensemble(grove.columns)
        for t in range(grove.n_trees):
            tree = grove.tree(t)
            ensemble.add(tree, np.full(tree.n_nodes, t), tree.value[:, 0])
        predicted = ensemble.into(graph, columns, n_learners)
    else:
        predicted = graph.joined([str(written(graph, each, columns).value) for each in model.estimators_])
    ascending, order = graph.ops("TopK", 2, predicted, np.array([n_learners]), axis=1, largest=0)
    votes = graph.op("Gather", model.estimator_weights_, order)
    so_far = graph.op("CumSum", votes, 1)
    half = graph.op("Mul", graph.columns(so_far, [n_learners - 1]), 0.5)
    is_half = graph.cast(graph.op("GreaterOrEqual", so_far, half), "int64")
    place = graph.op("ArgMax", is_half, axis=1, keepdims=1)
    return Answer(value=graph.op("GatherElements", ascending, place, axis=1))
