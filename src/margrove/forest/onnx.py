"""Forests as ONNX operators: one ``TreeEnsemble`` gives the leaf of each row in each tree, whose predictions are
averaged."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.errors import InputError
from margrove.forest.model import ForestModel
from margrove.onnx.graph import GraphValue, check_size
from margrove.onnx.prediction import Prediction, largest
from margrove.onnx.table import Columns
from margrove.tree.onnx import TreeEnsemble

_BYTES = 8  # of a double


def forest_of_classes(model: Any, columns: Columns) -> Prediction:
    """`RandomForestClassifier` and `ExtraTreesClassifier`."""
    shares = _mean(model, columns)
    return Prediction(model.classes_, largest(shares), probabilities=shares)


def forest_of_numbers(model: Any, columns: Columns) -> Prediction:
    """`RandomForestRegressor` and `ExtraTreesRegressor`."""
    return Prediction(value=_mean(model, columns))


def _mean(model: Any, columns: Columns) -> GraphValue:
    """The mean of what the trees predict, (n, K) or (n, 1)."""
    if model.n_outputs_ > 1:
        problem = f"ONNX takes one target, and this forest has {model.n_outputs_}"
        raise InputError(problem, cure="Fit one forest for each target.")
    forest: ForestModel = model.model_
    ensemble, values, n_before = TreeEnsemble(forest.columns), [], 0
    for t in range(forest.n_trees):
        tree, of_leaves = forest.tree(t), forest.leaf_values(t)
        place = np.zeros(tree.n_nodes)
        place[forest.leaf_nodes(t)] = n_before + np.arange(len(of_leaves))
        ensemble.add(tree, np.full(tree.n_nodes, t), place)
        values.append(of_leaves)
        n_before += len(of_leaves)
    table = np.concatenate(values)
    check_size(_BYTES * table.size)
    places = ensemble.into(columns, forest.n_trees).cast("int64")  # (n, T): sums of one whole number each
    predicted = columns.graph.op("Gather", table, places, axis=0)  # (n, T, K)
    return predicted.op("ReduceMean", np.array([1]), keepdims=0)
