"""Minimal cost-complexity pruning (Breiman, Friedman, Olshen, Stone, "Classification and Regression Trees", 1984,
chapters 3 and 10).

The cost of a node is R(t) = w(t)/w · imp(t), that of a tree R(T) = Σ_leaves R(t), and with a penalty α for each leaf

    R_α(T) = R(T) + α |leaves of T|.

The smallest subtree T(α) of the grown tree that has the least R_α shrinks as α grows. A node t becomes a leaf when it
costs no more than the subtree left below it, L leaves of cost R_below in all, at the *effective* α

    α_t = (R(t) − R_below) / (L − 1).

Cutting where α_t is least, again and again (the weakest link), takes a pass over the whole tree for each cut. Here each
node's α_t is found once, from the leaves to the root: the cuts below t are kept in a heap, the latest first. With all
of them done L is the number of t's branches; while the latest cut comes no earlier than α_t, t is cut before it: undo
it, and look again. Cuts that are undone belong to t's own cut, so every cut enters and leaves a heap at most once.

As in scikit-learn's ``cost_complexity_pruning_path``: one cut for each step, of several with the same α the first node
in order, and a node before those below it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.tree.model import TreeModel
from margrove.tree.problem import EQUAL_GAIN


@dataclass(frozen=True, eq=False)
class CostComplexityPath:
    """The nested trees, from the grown one to the root alone."""

    ccp_alphas: NDArray[np.float64]  # (steps,): from which α on each tree is the best one; 0 for the grown tree
    impurities: NDArray[np.float64]  # (steps,): R(T) of each tree
    n_leaves: NDArray[np.int64]  # (steps,): of each tree
    nodes: NDArray[np.int32]  # (steps,): the node of the grown tree that became a leaf at each step; -1 at the first
    n_nodes: int  # of the grown tree

    def cut_at_step(self, step: int) -> NDArray[np.bool_]:
        """Return the nodes cut by this step, as a mask for `TreeModel.cut`."""
        mask = np.zeros(self.n_nodes, dtype=bool)
        mask[self.nodes[1 : step + 1]] = True
        return mask

    def cut_at(self, alpha: float) -> NDArray[np.bool_]:
        """Return the nodes whose effective α is at most this one, as a mask for `TreeModel.cut`."""
        return self.cut_at_step(int(np.searchsorted(self.ccp_alphas, alpha, side="right")) - 1)


def cost_complexity_path(model: TreeModel) -> CostComplexityPath:
    """Return all trees that are the best for some α: see the head of this module."""
    cost = (model.weight * model.impurity / model.weight[0]).tolist()
    children = np.split(model.child, model.child_start[1:-1])
    cuts: list[list[_Cut]] = [[] for _ in range(model.n_nodes)]  # of each subtree, a heap, the latest first
    for node in np.flatnonzero(~model.is_leaf)[::-1].tolist():  # children come after their parent
        branches = children[node].tolist()
        below = _merged([cuts[branch] for branch in branches])
        cost_below, n_leaves = sum(cost[branch] for branch in branches), len(branches)
        while True:
            alpha = max((cost[node] - cost_below) / (n_leaves - 1), 0.0)  # rounding apart, no split costs
            if not below or -below[0][0] < alpha * (1 - EQUAL_GAIN):
                break
            _, _, rise, fewer = heapq.heappop(below)
            cost_below, n_leaves = cost_below - rise, n_leaves + fewer
        heapq.heappush(below, (-alpha, -node, cost[node] - cost_below, n_leaves - 1))
        cuts[node] = below
    steps = sorted(cuts[0], reverse=True)
    leaves_cost = sum(cost[leaf] for leaf in np.flatnonzero(model.is_leaf).tolist())
    return CostComplexityPath(
        ccp_alphas=np.array([0.0] + [-minus_alpha for minus_alpha, _, _, _ in steps]),
        impurities=leaves_cost + np.cumsum([0.0] + [rise for _, _, rise, _ in steps]),
        n_leaves=model.n_leaves - np.cumsum([0] + [fewer for _, _, _, fewer in steps]),
        nodes=np.array([-1] + [-minus_node for _, minus_node, _, _ in steps], dtype=np.int32),
        n_nodes=model.n_nodes,
    )


_Cut = tuple[float, int, float, int]  # -α, -node, by how much the cost rises, by how many the leaves fall


def _merged(heaps: list[list[_Cut]]) -> list[_Cut]:
    """Return one heap of several: the smaller ones go into the largest, so a cut moves only when its heap doubles."""
    heaps = sorted(heaps, key=len)
    largest = heaps.pop()
    for heap in heaps:
        for cut in heap:
            heapq.heappush(largest, cut)
    return largest


def candidate_alphas(ccp_alphas: ArrayLike) -> NDArray[np.float64]:
    """Return an α for each tree of a path, inside its stretch, as CART does: √(α_k α_{k+1}); the root's own is last."""
    alphas = np.unique(np.asarray(ccp_alphas, dtype=np.float64))
    return np.append(np.sqrt(alphas[:-1] * alphas[1:]), alphas[-1])


def choose_alpha(alphas: ArrayLike, scores: ArrayLike) -> float:
    """Return the α of the best mean score, of scores (alphas, folds); of equals the largest, for the smaller tree."""
    mean = np.asarray(scores, dtype=np.float64).mean(axis=1)
    best = mean.max()
    # Means that differ by rounding are equal.
    return float(np.asarray(alphas)[mean >= best - EQUAL_GAIN * max(abs(best), 1.0)].max())
