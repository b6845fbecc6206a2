"""Boosted learners as ONNX operators. Trees of ours are one ``TreeEnsemble`` in which each adds its vote; of other
learners each is written by itself."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from margrove.boost.problem import EQUAL_VOTES
from margrove.onnx.graph import GraphValue
from margrove.onnx.model import written
from margrove.onnx.prediction import Prediction, decided, one_hot, softmax
from margrove.onnx.table import Columns
from margrove.tree.onnx import TreeEnsemble


def boosted_classes(model: Any, columns: Columns) -> Prediction:
    """`AdaBoostClassifier`."""
    k, weights = len(model.classes_), model.estimator_weights_
    if model.model_ is not None:
        ensemble = TreeEnsemble(model.model_.grove.columns)
        for tree, weight in zip(model.model_.grove.trees, weights, strict=True):
            ensemble.add(tree, tree.value.argmax(axis=1), np.full(tree.n_nodes, weight))
        votes = ensemble.into(columns, k)
    else:
        pairs = zip(model.estimators_, weights.tolist(), strict=True)
        votes = reduce(add, [_vote(model, each, columns) * weight for each, weight in pairs])
    share = votes / float(weights.sum())
    top = share.op("ReduceMax", np.array([1]))
    share = (share >= top - EQUAL_VOTES).where(top, share)
    if k == 2:
        scores = (share.columns([1]) - share.columns([0])) * 2.0
        both = scores * np.array([[-0.5, 0.5]])
        return replace(decided(model.classes_, scores), probabilities=softmax(both))
    scale = max(1.0, k - 1.0)
    scores = (share * float(k) - 1.0) / scale
    return replace(decided(model.classes_, scores), probabilities=softmax(scores / scale))


def _vote(model: Any, estimator: Any, columns: Columns) -> GraphValue:
    """1 for the class that a learner predicts, else 0, (n, K)."""
    prediction = written(estimator, columns)
    assert prediction.classes is not None
    place = columns.graph.op("Gather", np.searchsorted(model.classes_, prediction.classes), prediction.place)
    return one_hot(place, len(model.classes_)).cast("double")


def boosted_numbers(model: Any, columns: Columns) -> Prediction:
    """`AdaBoostRegressor`: the median of what the learners predict, weighted by their votes."""
    graph, n_learners = columns.graph, len(model.estimator_weights_)
    if model.model_ is not None:
        ensemble = TreeEnsemble(model.model_.grove.columns)
        for t, tree in enumerate(model.model_.grove.trees):
            ensemble.add(tree, np.full(tree.n_nodes, t), tree.value[:, 0])
        predicted = ensemble.into(columns, n_learners)
    else:
        predicted = graph.joined([v for each in model.estimators_ if (v := written(each, columns).value) is not None])
    ascending, order = graph.ops("TopK", 2, predicted, np.array([n_learners]), axis=1, largest=0)
    so_far = graph.op("Gather", model.estimator_weights_, order).op("CumSum", 1)
    is_half = so_far >= so_far.columns([n_learners - 1]) * 0.5
    place = is_half.cast("int64").op("ArgMax", axis=1, keepdims=1)
    return Prediction(value=ascending.op("GatherElements", place, axis=1))
