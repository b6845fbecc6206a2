"""The explanation of AdaBoost: the vote of its learners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.formats import Format
from margrove.explanation import Explanation, Inputs, ModelSummary, RowVoter, Vote, Voter, counted, leads
from margrove.tree.explain import named_kinds, shares_of_gain
from margrove.tree.model import TreeModel
from margrove.tree.words import MOST_LEVELS, number_text, places

_SHOWN_VOTERS = 5
_SHOWN_SHARES = 5  # classes


def explain_vote(model: Any) -> Explanation:
    """Explain a vote of trees, or of other learners."""
    return LearnersThatVote(model) if model.model_ is None else TreesThatVote(model)


class LearnersThatVote(Explanation):
    """The explanation of a vote of learners of any kind."""

    is_vote = True
    noun = "learners"

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        return ModelSummary(self.noun, (), int(self.model.n_estimators_), int(self.model.n_rows_))

    def description(self) -> str:
        n = self.model.n_estimators_
        size = counted(n, "tree" if self.has_rules else "learner")
        return f"A vote of {size}, each focused on the rows that the ones before got wrong (AdaBoost)."

    def scores(self, rows: Any) -> tuple[tuple[str, ...], NDArray[np.float64]] | None:
        if self.classes is None:
            return None
        return self._of_classes("votes"), vote_shares(np.asarray(self.model.decision_function(rows)))

    def lead(self, rows: Any, code: int, other: int) -> NDArray[np.float64]:
        if self.classes is None:
            return super().lead(rows, code, other)
        shares = vote_shares(np.asarray(self.model.decision_function(rows), np.float64))
        return np.asarray(shares[:, code] - shares[:, other])


class TreesThatVote(LearnersThatVote):
    """The explanation of a vote of trees."""

    has_rules = True
    noun = "trees"

    def columns(self) -> list[dict[str, Any]]:
        return named_kinds(self.model.model_.grove.tree(0))

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        model, grove, classes = self.model, self.model.model_.grove, self.classes
        form = getattr(model, "target_format_", None)
        trees = [grove.tree(t) for t in range(grove.n_trees)]
        alphas = model.alphas_.tolist() if classes is not None else [None] * len(trees)
        errors, votes = model.estimator_errors_.tolist(), model.estimator_weights_.tolist()
        voters = [
            Voter(t, _first_test(tree, classes, form), tree.n_leaves, error, vote, alpha)
            for t, (tree, error, vote, alpha) in enumerate(zip(trees, errors, votes, alphas, strict=True), start=1)
        ]
        n_done = model.rounds_.n_rounds if classes is not None else len(trees)
        purpose = "the estimate" if classes is None else "separating the classes"
        vote = Vote(tuple(voters), n_done, shares_of_gain(model, trees[0]), purpose)
        return ModelSummary("trees", (), len(trees), n_training_rows=int(model.n_rows_), vote=vote)

    def importances(self, names: Sequence[str], deviations: Callable[[], NDArray[np.float64]]) -> dict[str, float]:
        return shares_of_gain(self.model, self.model.model_.grove.tree(0))

    def votes(self, row: Any) -> tuple[tuple[RowVoter, ...], tuple[tuple[str, float], ...]]:
        classes = self.classes
        if classes is None:
            return (), ()
        weights = np.asarray(self.model.estimator_weights_, np.float64)
        weights = weights / weights.sum()
        codes = [int(np.asarray(tree.predict_proba(row))[0].argmax()) for tree in self.model.estimators_]
        heaviest = np.argsort(-weights, kind="stable")[:_SHOWN_VOTERS]
        voters = tuple(RowVoter(int(t) + 1, classes[codes[t]], float(weights[t])) for t in heaviest)
        shares = np.bincount(codes, weights, minlength=len(classes))
        largest = np.argsort(-shares, kind="stable")[:_SHOWN_SHARES]
        return voters, tuple((classes[k], float(shares[k])) for k in largest if shares[k])


def _first_test(tree: TreeModel, classes: list[str] | None, form: Format | None) -> str:
    """Return the first test of a tree; of a stump with two branches, the predictions too."""

    def prediction(node: int) -> str:
        value = tree.value[node]
        return number_text(float(value[0]), form) if classes is None else classes[int(value.argmax())]

    if tree.n_nodes == 1:
        return f"always {prediction(0)}"
    first = list(places(tree, max_depth=1))[1:]
    test = "" if first[0].branch is None else first[0].branch.words(most=MOST_LEVELS)
    if tree.n_nodes > 3:
        return test
    return f"{test}: {prediction(first[0].node)}, else {prediction(first[1].node)}"


def vote_shares(decision: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares s_k, where f_k = (K s_k − 1)/(K − 1); of two classes f = 2 (s_1 − s_0)."""
    if decision.ndim == 1:
        second = (2 + decision) / 4
        return np.column_stack([1 - second, second])
    n_classes = decision.shape[1]
    return np.asarray((1 + (n_classes - 1) * decision) / n_classes)


def vote_margins(decision: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the share of votes for the true class of each row less that for the strongest other."""
    return leads(vote_shares(decision), codes)
