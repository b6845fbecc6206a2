"""The explanation of a forest: how many trees, which columns matter, and the trees' predictions for one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.explanation import Explanation, ForestSummary, Inputs, ModelSummary, RowVoter, counted
from margrove.forest.out_of_bag import measure_of
from margrove.tree.explain import named_kinds, shares_of_gain

_SHOWN_SHARES = 5  # classes


class ForestExplanation(Explanation):
    """The explanation of a forest."""

    is_probable = True
    has_rules = True  # of each of its trees

    def columns(self) -> list[dict[str, Any]]:
        return named_kinds(self.model.model_.tree(0))

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        model, trees = self.model, self.model.estimators_
        importances = shares_of_gain(model, model.model_.tree(0))
        low, high = np.quantile(model.importances_by_tree(), [0.05, 0.95], axis=0).tolist()
        names = [column.name for column in model.model_.columns]
        spread = dict(zip(names, zip(low, high, strict=True), strict=True))
        score = getattr(model, "oob_score_", None)
        forest = ForestSummary(
            "the estimate" if self.classes is None else "separating the classes",
            float(np.mean([tree.get_n_leaves() for tree in trees])),
            float(np.mean([tree.get_depth() for tree in trees])),
            importances,
            {name: spread[name] for name in importances},
            "" if score is None else measure_of(model),
            score,
        )
        return ModelSummary("trees", (), len(trees), n_training_rows=int(model.n_rows_), forest=forest)

    def description(self) -> str:
        n, rows = self.model.model_.n_trees, "rows drawn at random" if self.model.bootstrap else "all rows"
        mean = "the mean of what they estimate" if self.classes is None else "the mean of their class shares"
        return f"A forest of {counted(n, 'tree')}, each grown from {rows}; the prediction is {mean}."

    def importances(self, names: Sequence[str], deviations: Callable[[], NDArray[np.float64]]) -> dict[str, float]:
        return shares_of_gain(self.model, self.model.model_.tree(0))

    def votes(self, row: Any) -> tuple[tuple[RowVoter, ...], tuple[tuple[str, float], ...]]:
        """Return no single trees, since all count the same, and the mean share of each class."""
        if self.classes is None:
            return (), ()
        shares = np.asarray(self.model.predict_proba(row))[0]
        largest = np.argsort(-shares, kind="stable")[:_SHOWN_SHARES]
        return (), tuple((self.classes[k], float(shares[k])) for k in largest if shares[k])
