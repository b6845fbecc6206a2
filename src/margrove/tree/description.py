"""How long a tree is to tell (THEORY T9): minimum description length, in bits.

Two people have the rows' columns; one of them also has the target and tells it to the other by way of a tree:

===============  ======================================================================================================
every node       1: leaf or split
a split          log2 d for the column of d, and log2 c for the test of the c that the column offers there
a leaf           ½ (its parameters) · log2 n for what it predicts, n the weight of its rows (Rissanen: a parameter
                 estimated from n rows is worth telling to a precision of 1/√n), and then its rows' targets
===============  ======================================================================================================

The first two and the leaf's parameters are the *model* bits, the targets the *data* bits.

- Classes: K − 1 parameters, K the classes present at the root; the targets take n H bits, H the leaf's entropy,
  whatever criterion the tree was grown by.
- Numbers: two parameters, mean and spread. The targets take the bits of the normal density, Σ −log2 φ((y − μ)/σ)/σ, in
  units of the root's standard deviation σ₀; for the criterion absolute_error those of the Laplace density
  exp(−|y − median|/s)/(2s), in units of the root's mean distance s₀. A density is told to some precision; it adds the
  same bits to every tree of the same rows and is left out, so data bits can be negative. The spread that is told counts
  the root's as one more row, σ² = (n σ_leaf² + σ₀²)/(n + 1) and s alike: else one row alone would have none and take
  −∞ bits.
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
    """The bits of the tree, and the bits of the target told by it: see the head of this module.

    Parameters
    ----------
    model : TreeModel
        A grown tree.
    criterion : str
        What the tree's impurity is. It tells numbers from classes, and how to read a node's spread.

    Examples
    --------
    Sixteen rows, eight of each class. A leaf: 1 bit, its share of classes to ½ log2 16 = 2 bits, 16 rows of 1 bit. A
    split into pure leaves: 3 nodes, no choice of tests, and twice ½ log2 8 bits.

    >>> from margrove.tree.by_hand import by_hand
    >>> from margrove.tree.description import description_length
    >>> description_length(by_hand([8, 8]))
    (3.0, 16.0)
    >>> description_length(by_hand(([8, 0], [0, 8])))
    (6.0, 0.0)
    """
    model_bits, data_bits = subtree_bits(model, criterion=criterion)
    return float(model_bits[0]), float(data_bits[0])


def subtree_bits(model: TreeModel, *, criterion: Criterion = "gini") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Model bits and data bits of the subtree that begins at each node, (m,) each.

    Examples
    --------
    >>> from margrove.tree.by_hand import by_hand
    >>> from margrove.tree.description import subtree_bits
    >>> subtree_bits(by_hand(([8, 0], [0, 8])))
    (array([6. , 2.5, 2.5]), array([0., 0., 0.]))
    """
    told_at_leaf, targets = leaf_bits(model, criterion=criterion)
    own = np.where(model.is_leaf, told_at_leaf, split_bits(model))
    return sums_of_subtrees(model, own), sums_of_subtrees(model, np.where(model.is_leaf, targets, 0.0))


def split_bits(model: TreeModel) -> NDArray[np.float64]:
    """What each split takes by itself, without what is below it, (m,): 1 + log2 d + log2 c. At a leaf, the 1 bit.

    Examples
    --------
    >>> from margrove.tree.by_hand import by_hand
    >>> from margrove.tree.description import split_bits
    >>> split_bits(by_hand(([8, 0], [0, 8]), n_columns=4, n_tests=8))
    array([6., 1., 1.])
    """
    naming = np.log2(max(len(model.columns), 1)) + np.log2(np.maximum(model.n_tests, 1))
    return np.where(model.is_leaf, NODE_BITS, NODE_BITS + naming)


def leaf_bits(model: TreeModel, *, criterion: Criterion = "gini") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Model bits and data bits of each node as if it were a leaf, (m,) each.

    Examples
    --------
    >>> from margrove.tree.by_hand import by_hand
    >>> from margrove.tree.description import leaf_bits
    >>> leaf_bits(by_hand(([8, 0], [0, 8])))
    (array([3. , 2.5, 2.5]), array([16.,  0.,  0.]))
    """
    if criterion in VALUE_CRITERIA:
        n_parameters, targets = PARAMETERS_OF_NUMBERS, _bits_of_numbers(model, criterion)
    else:
        n_parameters, targets = int(np.count_nonzero(model.value[0] > 0)) - 1, model.weight * entropy(model.value)
    return NODE_BITS + n_parameters / 2 * np.log2(np.maximum(model.weight, 1)), targets


def sums_of_subtrees(model: TreeModel, own: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each node the sum over its subtree, itself included, of what each node has of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.tree.by_hand import by_hand
    >>> from margrove.tree.description import sums_of_subtrees
    >>> sums_of_subtrees(by_hand(([1, 0], ([0, 1], [1, 0]))), np.ones(5))
    array([5., 1., 3., 1., 1.])
    """
    total = own.copy()
    parent = model.parent.tolist()
    for node in range(model.n_nodes - 1, 0, -1):  # children stand behind their parent
        total[parent[node]] += total[node]
    return total


def _bits_of_numbers(model: TreeModel, criterion: Criterion) -> NDArray[np.float64]:
    """n/2 log2 2πσ² + n σ_leaf²/σ² ½ log2 e, or for Laplace n log2 2s + n s_leaf/s log2 e, in the root's units."""
    is_laplace = criterion == "absolute_error"
    spread = model.impurity if is_laplace else target_variance(model, criterion)
    n = model.weight
    if not spread[0] > 0:  # all targets are equal: nothing to tell
        return np.zeros(model.n_nodes)
    relative = spread / spread[0]
    told = (n * relative + 1) / (n + 1)
    if is_laplace:
        return np.asarray(n * (np.log2(2 * told) + relative / told / np.log(2)))
    return np.asarray(n / 2 * (np.log2(2 * np.pi * told) + relative / told / np.log(2)))
