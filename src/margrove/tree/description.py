"""The description length of a tree and of the target given the tree, in bits.

A sender and a receiver have the rows' columns; the sender encodes the target by way of a tree:

===============  ======================================================================================================
every node       1: leaf or split
a split          log2 d for the column of d, and log2 c for the test of the c that the column offers there
a leaf           ½ (its parameters) · log2 n for its prediction, n the weight of its rows (Rissanen: a parameter
                 estimated from n rows is encoded to a precision of 1/√n), and then its rows' targets
===============  ======================================================================================================

The first two and the leaf's parameters are the *model* bits, the targets the *data* bits.

- Classes: K − 1 parameters, K the classes present at the root; the targets take n H bits, H the leaf's entropy,
  whatever criterion the tree was grown by.
- Numbers: two parameters, mean and spread. The targets take the bits of the normal density, Σ −log2 φ((y − μ)/σ)/σ, in
  units of the root's standard deviation σ₀; for the criterion absolute_error those of the Laplace density
  exp(−|y − median|/s)/(2s), in units of the root's mean distance s₀. The precision of a density adds the same bits to
  every tree of the same rows and is left out, so data bits can be negative. The encoded spread counts the root's as one
  more row, σ² = (n σ_leaf² + σ₀²)/(n + 1) and s alike: else one row alone would have none and take −∞ bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margrove.tree.impurity import entropy
from margrove.tree.model import TreeModel
from margrove.tree.problem import VALUE_CRITERIA, Criterion
from margrove.tree.significance import target_variance

NODE_BITS = 1.0  # leaf or split
PARAMETERS_OF_NUMBERS = 2  # mean and spread


def description_length(model: TreeModel, *, criterion: Criterion = "gini") -> tuple[float, float]:
    """Return the model bits and the data bits of a tree: see the head of this module."""
    model_bits, data_bits = subtree_bits(model, criterion=criterion)
    return float(model_bits[0]), float(data_bits[0])


def subtree_bits(model: TreeModel, *, criterion: Criterion = "gini") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the model bits and the data bits of the subtree of each node, (m,) each."""
    as_leaf, targets = leaf_bits(model, criterion=criterion)
    own = np.where(model.is_leaf, as_leaf, split_bits(model))
    return sums_of_subtrees(model, own), sums_of_subtrees(model, np.where(model.is_leaf, targets, 0.0))


def split_bits(model: TreeModel) -> NDArray[np.float64]:
    """Return the bits of each split without those below it, (m,): 1 + log2 d + log2 c. At a leaf, the 1 bit."""
    naming = np.log2(max(len(model.columns), 1)) + np.log2(np.maximum(model.n_tests, 1))
    return np.where(model.is_leaf, NODE_BITS, NODE_BITS + naming)


def leaf_bits(model: TreeModel, *, criterion: Criterion = "gini") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the model bits and the data bits of each node as if it were a leaf, (m,) each."""
    if criterion in VALUE_CRITERIA:
        n_parameters, targets = PARAMETERS_OF_NUMBERS, _bits_of_numbers(model, criterion)
    else:
        n_parameters, targets = int(np.count_nonzero(model.value[0] > 0)) - 1, model.weight * entropy(model.value)
    return NODE_BITS + n_parameters / 2 * np.log2(np.maximum(model.weight, 1)), targets


def sums_of_subtrees(model: TreeModel, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each node the sum of ``own`` over its subtree, itself included."""
    total = own.copy()
    parent = model.parent.tolist()
    for node in range(model.n_nodes - 1, 0, -1):  # children come after their parent
        total[parent[node]] += total[node]
    return total


def _bits_of_numbers(model: TreeModel, criterion: Criterion) -> NDArray[np.float64]:
    """Return n/2 log2 2πσ² + n σ_leaf²/σ² ½ log2 e, or n log2 2s + n s_leaf/s log2 e, in the root's units."""
    is_laplace = criterion == "absolute_error"
    spread = model.impurity if is_laplace else target_variance(model, criterion)
    n = model.weight
    if not spread[0] > 0:  # all targets are equal
        return np.zeros(model.n_nodes)
    relative = spread / spread[0]
    encoded = (n * relative + 1) / (n + 1)
    if is_laplace:
        return np.asarray(n * (np.log2(2 * encoded) + relative / encoded / np.log(2)))
    return np.asarray(n / 2 * (np.log2(2 * np.pi * encoded) + relative / encoded / np.log(2)))
