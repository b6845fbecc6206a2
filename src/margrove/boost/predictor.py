"""AdaBoost in a program that only predicts: the core adds up the votes. The formulas serve the estimators too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove import _core as core
from margrove.boost.problem import EQUAL_VOTES
from margrove.boost.r2 import weighted_median
from margrove.data.given import Given
from margrove.run.threads import threads_for
from margrove.store.saved import Rule, Saved
from margrove.tree.grove import Grove
from margrove.tree.predictor import cells_for_core, leaves_of, table_names, trees_for_core

Floats = NDArray[np.float64]


def decided(votes: Floats, all_votes: float) -> Floats:
    """f_k = Σ_t a_t (1 if T_t predicts k, else −1/(K − 1)) / Σ_t a_t, scikit-learn's scale: of two classes their
    difference f_1 − f_0. Sums of votes that are equal but for rounding are made so."""
    n_classes = votes.shape[1]
    share = votes / all_votes
    largest = share.max(axis=1, keepdims=True)
    share = np.where(share >= largest - EQUAL_VOTES, largest, share)
    if n_classes == 2:
        return np.asarray(2 * (share[:, 1] - share[:, 0]))
    return np.asarray((share * n_classes - 1) / max(1, n_classes - 1))  # 0 for one class


def probable(decision: Floats, n_classes: int) -> Floats:
    """softmax(f/(K − 1)), Zhu and others, equation 15."""
    decision = np.column_stack([-decision, decision]) / 2 if n_classes == 2 else decision / max(1, n_classes - 1)
    power = np.exp(decision - decision.max(axis=1, keepdims=True))
    return np.asarray(power / power.sum(axis=1, keepdims=True))


def chosen(decision: Floats) -> NDArray[np.intp]:
    """Return the place of the class with the most votes, the first of equals."""
    return (decision > 0).astype(np.intp) if decision.ndim == 1 else np.argmax(decision, axis=1)


def boosted(saved: Saved) -> Rule:
    """Return the rule of boosted trees of classes or of numbers."""
    own, layouts, n_jobs = saved.within("grove"), saved.record["grove"], saved.parameter("n_jobs")
    grove = Grove((), **{name: own.array(name, layouts) for name in layouts})
    vote = np.ascontiguousarray(saved.array("vote")[: grove.n_trees])
    cells, names = cells_for_core(saved), table_names(saved)
    if saved.record.get("labels") is None:
        parts = [(trees_for_core(tree), tree.value[:, 0]) for tree in grove.trees]

        def numbers(given: Given) -> Floats:
            rows, threads = cells(given), threads_for(n_jobs)
            return weighted_median(np.column_stack([v[leaves_of(tree, rows, threads)] for tree, v in parts]), vote)

        return saved.rule(numbers, names=names)
    trees, classes = trees_for_core(grove, grove.n_trees), saved.classes

    def decision_function(given: Given) -> Floats:
        rows = cells(given)
        count: Any = core.votes_of_rows if "points" in rows else core.votes_of_columns
        whose = {"start": grove.start, "label": grove.label, "vote": vote, "n_classes": len(classes)}
        return decided(count(trees, **rows, **whose, threads=threads_for(n_jobs)), float(vote.sum()))

    return saved.rule(
        lambda given: np.asarray(classes[chosen(decision_function(given))]),
        decision_function,
        lambda given: probable(decision_function(given), len(classes)),
        classes=classes,
        names=names,
    )
