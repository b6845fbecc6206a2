"""The explanation of a decision tree by its tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import clip
from margrove.data.encoding import writing_of
from margrove.data.formats import DateFormat
from margrove.explanation import Explanation, Inputs, ModelSummary, TreeSummary, counted
from margrove.tree.model import TreeModel
from margrove.tree.words import MOST_LEVELS, number_text, places

MOST_RULE_LINES = 30  # of a tree's rules, to be read without scrolling


class TreeExplanation(Explanation):
    """The explanation of a decision tree."""

    has_rules = True
    is_probable = True

    def columns(self) -> list[dict[str, Any]]:
        return named_kinds(self.model.nodes_)

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        tree = self.model
        # A node has one line, at its depth; the root has none, unless it is the only node.
        lines = np.cumsum(np.bincount(tree.nodes_.depth)) - 1
        depth = max(1, int(np.searchsorted(lines, MOST_RULE_LINES, side="right")) - 1)
        summary = TreeSummary(
            purpose="the estimate" if self.classes is None else "separating the classes",
            depth=tree.get_depth(),
            n_leaves_grown=tree.grown_.n_leaves,
            importances=shares_of_gain(tree, tree.nodes_),
            text=str(tree.rules(max_depth=depth)),
            is_whole=tree.get_depth() <= depth,
            rules=tuple(tree.rules().data()),
        )
        return ModelSummary("rules", (), tree.get_n_leaves(), int(tree.nodes_.n_rows[0]), tree=summary)

    def description(self) -> str:
        n = self.model.get_n_leaves()
        if n == 1:
            return "A decision tree without any test: it predicts the same for every row."
        return f"A decision tree: a sequence of tests that ends at one of {n:,} rules."

    def importances(self, names: Sequence[str], deviations: Callable[[], NDArray[np.float64]]) -> dict[str, float]:
        return shares_of_gain(self.model, self.model.nodes_)

    def path_tests(self, row: Any) -> list[tuple[str, str, str]]:
        tree = self.model.nodes_
        node = int(np.asarray(self.model.apply(row))[0])
        path = [node]
        while (node := int(tree.parent[node])) >= 0:
            path.append(node)
        branches = {place.node: place.branch for place in places(tree)}
        return [
            (branch.column.name, branch.words(most=MOST_LEVELS), self._rows_words(node))
            for node in path[::-1]
            if (branch := branches[node]) is not None
        ]

    def conditions_met(self, rows: Any) -> list[str]:
        words = {rule.node: rule.condition(MOST_LEVELS) for rule in self.model.rules().rules}
        return [words[leaf] for leaf in np.asarray(self.model.apply(rows)).tolist()]

    def _rows_words(self, node: int) -> str:
        """Return the number of training rows of a node, and the prediction for them."""
        tree = self.model.nodes_
        n = counted(int(tree.n_rows[node]), "row")
        if self.classes is None:
            return f"{n}, {number_text(float(tree.value[node, 0]), getattr(self.model, 'target_format_', None))}"
        shares = tree.value[node] / tree.value[node].sum()
        best = int(shares.argmax())
        by_weight = " by weight" if tree.is_weighted else ""
        return f"{n}, {100 * shares[best]:.0f} % {clip(self.classes[best], 30)!r}{by_weight}"

    def share_alike(self, rows: Any) -> NDArray[np.float64]:
        n_rows = self.model.nodes_.n_rows
        return np.asarray(n_rows[np.asarray(self.model.apply(rows))] / n_rows[0])

    def is_trained_on(self, rows: Any) -> bool:
        tree = self.model.nodes_
        counts = np.bincount(np.asarray(self.model.apply(rows)), minlength=tree.n_nodes)
        return bool((counts == np.where(tree.is_leaf, tree.n_rows, 0)).all())


def named_kinds(tree: TreeModel) -> list[dict[str, Any]]:
    """Return the name, kind and levels of each column of a tree, and how it is written where it is not plain."""
    found = []
    for column in tree.columns:
        kind = "boolean" if column.levels == (False, True) else "category"
        if column.test in ("threshold", "intervals"):
            kind = "date" if isinstance(column.format, DateFormat) else "numeric"
        found.append({"name": column.name, "kind": kind, "levels": column.levels, **writing_of(column)})
    return found


def shares_of_gain(model: Any, tree: TreeModel) -> dict[str, float]:
    """Return the importance of each column that is tested, the largest first."""
    names = [column.name for column in tree.columns]
    shares = sorted(zip(names, model.feature_importances_.tolist(), strict=True), key=lambda pair: -pair[1])
    return {name: share for name, share in shares if share > 0}
