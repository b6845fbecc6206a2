"""The explanation of a forest: how many trees, which columns matter, and the trees' predictions for one row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.explanation import Explanation, Inputs, ModelSummary, RowVoter, counted
from margrove.tree.explain import named_kinds, shares_of_gain

_SHOWN_SHARES = 5  # classes


class ForestExplanation(Explanation):
    """The explanation of a forest."""

    is_probable = True
    has_rules = True  # of each of its trees

    def columns(self) -> list[dict[str, Any]]:
        return named_kinds(self.model.model_.tree(0))

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        return ModelSummary("trees", (), int(self.model.model_.n_trees), n_training_rows=int(self.model.n_rows_))

    def description(self) -> str:
        size, of_rows = counted(self.model.model_.n_trees, "tree"), "drawn rows" if self.model.bootstrap else "all rows"
        average = "numbers" if self.classes is None else "class shares"
        return f"A forest: the mean of the {average} that {size} predict, each grown from {of_rows} and drawn columns."

    def importances(self, names: Sequence[str], deviations: Callable[[], NDArray[np.float64]]) -> dict[str, float]:
        return shares_of_gain(self.model, self.model.model_.tree(0))

    def votes(self, row: Any) -> tuple[tuple[RowVoter, ...], tuple[tuple[str, float], ...]]:
        """Return no single trees, since all count the same, and the mean share of each class."""
        if self.classes is None:
            return (), ()
        shares = np.asarray(self.model.predict_proba(row))[0]
        largest = np.argsort(-shares, kind="stable")[:_SHOWN_SHARES]
        return (), tuple((self.classes[k], float(shares[k])) for k in largest if shares[k])
