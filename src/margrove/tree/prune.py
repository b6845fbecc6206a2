"""Pruning rules. Each is a function from the grown tree to a mask for `TreeModel.cut`; none moves a subtree up into its
parent's place (C4.5's subtree raising).

All rules work from the leaves up. Four of them compare two costs, that of the node as a leaf and that of its subtree
as pruned so far, and cut if the leaf costs no more. The result has the least cost of all trees that cutting can give:

=================  ====================================================================================================
rule               cost
=================  ====================================================================================================
pessimistic        n U(e, n): n rows, e errors on them, and the upper limit U of the error rate (Quinlan, "C4.5", 1993)
mdl                bits of the description: `margrove.tree.description`
reduced_error      errors on held-out rows that the tree was not grown from (Quinlan, 1987)
cost_complexity    R(t) + α: `margrove.tree.path`
=================  ====================================================================================================

Two are tests:

=================  ====================================================================================================
chi2               cut a split that is not significant and has no significant one below: `margrove.tree.significance`
binomial_test      cut a subtree whose predictions are not significantly better than the leaf's: the sign test (McNemar,
                   1947). Of the training rows that only one of the two gets right, let b be the subtree's and c the
                   leaf's. Were neither better, b would be Binomial(b + c, ½); p = P(B ≥ b)
=================  ====================================================================================================

Errors are weights of rows, and n is the weight of all; with whole weights they count as repeated rows. Pessimistic and
binomial_test count errors and are for classes only.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from margrove.errors import ParameterError, check_choice, check_number, check_share
from margrove.tree.description import leaf_bits, split_bits, sums_of_subtrees
from margrove.tree.model import TreeModel
from margrove.tree.path import cost_complexity_path
from margrove.tree.problem import EQUAL_GAIN, VALUE_CRITERIA, Criterion
from margrove.tree.significance import is_significant

Rule = Literal["chi2", "binomial_test", "pessimistic", "mdl", "reduced_error", "cost_complexity"]
RULES: tuple[Rule, ...] = ("chi2", "binomial_test", "pessimistic", "mdl", "reduced_error", "cost_complexity")
DEFAULT_LEVEL = {"chi2": 0.05, "binomial_test": 0.05, "pessimistic": 0.25}  # C4.5's CF is 0.25


def prune(
    model: TreeModel,
    rule: Rule,
    *,
    level: float | None = None,
    criterion: Criterion = "gini",
    correct: bool = True,
    alpha: float = 0.0,
    held_out: NDArray[np.float64] | None = None,
) -> TreeModel:
    """Return the tree, pruned by a rule: see the head of this module.

    ``level`` is the significance level of chi2 (corrected for the tests a node chose from if ``correct``) and
    binomial_test, or the confidence of pessimistic; ``held_out`` is `held_out_sums`.
    """
    check_choice("rule", rule, RULES)
    if level is None:
        level = DEFAULT_LEVEL.get(rule, 0.0)
    if rule == "chi2":
        return model.cut(chi2(model, level, criterion=criterion, correct=correct))
    if rule == "binomial_test":
        return model.cut(binomial_test(model, level, criterion=criterion))
    if rule == "pessimistic":
        return model.cut(pessimistic(model, level, criterion=criterion))
    if rule == "mdl":
        return model.cut(mdl(model, criterion=criterion))
    if rule == "cost_complexity":
        return model.cut(cost_complexity(model, alpha))
    if held_out is None:
        raise ParameterError("held_out is None; the rule reduced_error needs held-out rows. Pass held_out_sums(...).")
    return model.cut(reduced_error(model, held_out, criterion=criterion))


def chi2(
    model: TreeModel, level: float = 0.05, *, criterion: Criterion = "gini", correct: bool = True
) -> NDArray[np.bool_]:
    """Cut every split that is not significant and has no significant one below it; for numbers, by the F test."""
    is_kept = is_significant(model, level, criterion=criterion, correct=correct)
    n_kept = np.concatenate([[0], np.cumsum(is_kept)])  # a subtree is one run of nodes
    return np.asarray((n_kept[model.end] == n_kept[:-1]) & ~model.is_leaf)


def binomial_test(model: TreeModel, level: float = 0.05, *, criterion: Criterion = "gini") -> NDArray[np.bool_]:
    """Cut every subtree that is not significantly better than a leaf on the training rows, by the sign test."""
    check_share("level", level)
    _check_classes("binomial_test", criterion)
    label = np.argmax(model.value, axis=1)
    nodes = np.arange(model.n_nodes)
    right_as_leaf = np.zeros_like(model.value)  # of each class, the weight a node gets right as a leaf
    right_as_leaf[nodes, label] = model.value[nodes, label]
    right = np.zeros_like(model.value)  # the same for its subtree, as pruned so far
    cut = np.zeros(model.n_nodes, dtype=bool)
    is_leaf, parent = model.is_leaf, model.parent.tolist()
    for node in range(model.n_nodes - 1, -1, -1):  # children come after their parent
        if not is_leaf[node]:
            # Of the leaf's own class the subtree can only lose rows, of the others only win.
            lost = right_as_leaf[node, label[node]] - right[node, label[node]]
            won = right[node].sum() - right[node, label[node]]
            # P(B ≥ won) for B ~ Binomial(won + lost, ½), by the incomplete beta function: weights may be fractions.
            cut[node] = (special.betainc(won, lost + 1, 0.5) if won > 0 else 1.0) > level
        if is_leaf[node] or cut[node]:
            right[node] = right_as_leaf[node]
        if node:
            right[parent[node]] += right[node]
    return cut


def pessimistic(model: TreeModel, confidence: float = 0.25, *, criterion: Criterion = "gini") -> NDArray[np.bool_]:
    """Cut every subtree whose pessimistic errors, summed over its leaves, are not fewer than those of a leaf."""
    check_share("confidence", confidence)
    _check_classes("pessimistic", criterion)
    errors = model.weight - model.value.max(axis=1)
    cost = model.weight * upper_error_rate(np.maximum(errors, 0), model.weight, confidence)
    return _cheapest(model, cost)


def upper_error_rate(
    errors: NDArray[np.float64] | float, n: NDArray[np.float64] | float, confidence: float = 0.25
) -> NDArray[np.float64]:
    """Return the rate q at which P(E ≤ errors; n, q) is the confidence, for fractions of rows as well: Clopper and
    Pearson's exact upper limit. C4.5's program uses an approximation of it for errors > 0."""
    errors, n = np.asarray(errors, dtype=np.float64), np.asarray(n, dtype=np.float64)
    right = np.maximum(n - errors, 0)
    is_all = right <= 0
    return np.where(is_all, 1.0, special.betaincinv(errors + 1, np.where(is_all, 1.0, right), 1 - confidence))


def mdl(model: TreeModel, *, criterion: Criterion = "gini") -> NDArray[np.bool_]:
    """Cut every subtree that takes no fewer bits than a leaf: see `margrove.tree.description`."""
    if criterion == "poisson":
        raise ParameterError("prune is 'mdl', which encodes no counts; with criterion='poisson' use 'cost_complexity'.")
    as_leaf, targets = leaf_bits(model, criterion=criterion)
    return _cheapest(model, as_leaf + targets, split_bits(model))


def reduced_error(
    model: TreeModel, held_out: NDArray[np.float64], *, criterion: Criterion = "gini"
) -> NDArray[np.bool_]:
    """Cut every subtree that makes no fewer errors on held-out rows than a leaf; numbers have squared errors."""
    if criterion in VALUE_CRITERIA:
        weight, total, squares = held_out.T
        value = model.value[:, 0] - model.value[0, 0]
        return _cheapest(model, np.maximum(squares - 2 * value * total + value**2 * weight, 0))
    label = np.argmax(model.value, axis=1)
    return _cheapest(model, held_out.sum(axis=1) - held_out[np.arange(model.n_nodes), label])


def held_out_sums(
    model: TreeModel,
    leaf: NDArray[Any],
    target: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    *,
    criterion: Criterion = "gini",
) -> NDArray[np.float64]:
    """Return the sums over each node's rows, which end in these leaves: (m, K), the weight of each class; for numbers
    (m, 3), Σw, Σwz, Σwz² of z = y − the root's value, so that a large mean does not hide small differences."""
    w = np.ones(len(leaf)) if weight is None else weight
    if criterion in VALUE_CRITERIA:
        distance = target - model.value[0, 0]
        at_leaves = [np.bincount(leaf, w * distance**power, model.n_nodes) for power in (0, 1, 2)]
    else:
        at_leaves = [np.bincount(leaf, w * (target == k), model.n_nodes) for k in range(model.value.shape[1])]
    return sums_of_subtrees(model, np.stack(at_leaves, axis=1).astype(np.float64))


def cost_complexity(model: TreeModel, alpha: float) -> NDArray[np.bool_]:
    """Cut every node whose effective α is at most this one; at 0 nothing is cut, as in scikit-learn."""
    check_number("alpha", alpha, least=0, cure="It is the penalty per leaf.")
    return cost_complexity_path(model).cut_at(alpha) if alpha > 0 else np.zeros(model.n_nodes, dtype=bool)


def _check_classes(rule: str, criterion: Criterion) -> None:
    if criterion in VALUE_CRITERIA:
        raise ParameterError(
            f"rule is {rule!r}, which counts classification errors; the criterion {criterion!r} is for regression. "
            "Use 'chi2', 'mdl', 'reduced_error' or 'cost_complexity'."
        )


def _cheapest(
    model: TreeModel, leaf_cost: NDArray[np.float64], split_cost: NDArray[np.float64] | None = None
) -> NDArray[np.bool_]:
    """Cut where a leaf costs no more than the cheapest pruned subtree, the costs of its leaves and of its splits."""
    leaf = leaf_cost.tolist()
    below = [0.0] * model.n_nodes if split_cost is None else split_cost.tolist()
    cut, is_leaf, parent = np.zeros(model.n_nodes, dtype=bool), model.is_leaf.tolist(), model.parent.tolist()
    for node in range(model.n_nodes - 1, -1, -1):  # children come after their parent
        cost = below[node]
        if is_leaf[node] or leaf[node] <= cost + EQUAL_GAIN * abs(cost):  # equal but for rounding is equal
            cost, cut[node] = leaf[node], not is_leaf[node]
        if node:
            below[parent[node]] += cost
    return cut
