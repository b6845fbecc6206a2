"""The candidates of ``--model auto``, in the order in which they are tried: the cheap ones first, so that any budget
gives something. A new candidate is one more line.

Every candidate is cross-validated on the same folds. Those that are searched first look for their C (and γ) on the same
rows; votes grow by doubling while that helps. `margrove.app.choose.contest` spends the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from margrove.app.choose import in_digits
from margrove.app.options.menu import Choice, choice_of
from margrove.data import Table
from margrove.learner import learners

if TYPE_CHECKING:
    from margrove.app.options.training import Training

LEAST_LIMIT = 1e-2  # seconds: a time limit must be above 0


@dataclass(frozen=True)
class Candidate:
    """One learner with its settings, or with several sizes of a vote."""

    name: str  # its own, among the candidates
    learner: Choice
    complexity: int  # its rank for ``--prefer simple``: how much there is to understand, 1 is the least
    title: str  # a place such as ``{n_estimators}`` takes a parameter
    words: str  # what it does, for a reader who knows no mathematics
    params: Mapping[str, Any] = field(default_factory=dict)  # settled beforehand
    is_searched: bool = False  # C, and γ where it has one
    rounds: tuple[int, ...] = ()  # of a vote: the sizes that are scored, ascending; it grows from one to the next
    is_forest: bool = False  # a fit that is stopped in time has fewer trees, and is hardly worse
    growth: float = 1.0  # the power of the rows that a fit's time grows with, at most: above 1 it is measured
    # What the certificate costs, in fits and at most in seconds, measured on adult and covtype (33,000, 93,000 rows).
    proof: float = 1.0
    most_proof: float = math.inf
    # Of a vote of larger trees: tried only if this vote did better than those of trees smaller still, or worse than a
    # single tree.
    after: str = ""
    most_rows: int | None = None  # with more it is not tried

    def build(
        self,
        training: Training,
        table: Table,
        params: Mapping[str, Any],
        seconds: float | None = None,
        *,
        is_trial: bool = False,
    ) -> Any:
        """Return an unfitted model for the table, whose fit may take so many seconds; for a trial without calibration,
        which `TrialData.scores` does at once for all folds."""
        limits = [limit for limit in (training.time_limit, seconds) if limit is not None]
        preparation = training.preparation.for_table(self.learner, table)
        training = training.bare if is_trial else training.of(self.learner)
        out_of_bag = {"oob_score": False} if is_trial and self.is_forest else {}  # the folds judge it
        given = {**self.params, **params, **out_of_bag}
        own = replace(training, taken=self.learner, params=given, preparation=preparation)
        return replace(own, time_limit=max(LEAST_LIMIT, min(limits)) if limits else None).build()

    def proof_seconds(self, fit: float) -> float:
        """Return what the certificate takes after a fit of so many seconds."""
        return min(self.most_proof, self.proof * fit)

    def titled(self, params: Mapping[str, Any]) -> str:
        """Return the title with these parameters and those that are settled beforehand."""
        known = {**self.params, **params}
        shown = {name: in_digits(value) if isinstance(value, float) else str(value) for name, value in known.items()}
        if self.is_searched:
            found = [f"{name}={shown[name]}" for name in ("C", "gamma", "epsilon") if name in shown]
            return f"{self.title} ({', '.join(found)})" if found else self.title
        return " ".join(self.title.format(**{"n_estimators": "", **shown}).split())


def _vote(
    learner: Choice, depth: int, complexity: int, rounds: tuple[int, ...], words: str, after: str = ""
) -> Candidate:
    trees, params = "stumps" if depth == 1 else f"trees of depth {depth}", {"estimator__max_depth": depth}
    title = f"AdaBoost of {{n_estimators}} {trees}"
    return Candidate(
        f"adaboost-{depth}", learner, complexity, title, words, params, rounds=rounds, proof=2.5, after=after
    )


def _forests(forest: Choice, extra: Choice, complexity: int) -> tuple[Candidate, ...]:
    words = "many trees, each grown from rows and columns drawn at random, predict together"
    random = "many trees whose tests are drawn at random predict together"
    title = "forest of {n_estimators} trees"
    return (
        Candidate("forest", forest, complexity, f"random {title}", words, forest.defaults, **_FOREST),
        Candidate("extra-trees", extra, complexity + 1, f"extremely random {title}", random, extra.defaults, **_FOREST),
    )


# Doubled while that helps: on adult depth 3 has 86.6 % of the test rows right with 100 rounds, 86.8 with 200 and 86.9
# with 400; stumps still gain a little beyond, but a longer vote takes longer to certify, too.
_ROUNDS = (25, 50, 100, 200, 400)
_TREE_PROOF: dict[str, Any] = {"proof": 30.0, "most_proof": 4.0}  # of a large tree some splits are searched again
_FOREST: dict[str, Any] = {"is_forest": True, "growth": 1.2, "proof": 30.0, "most_proof": 8.0}
_KERNEL: dict[str, Any] = {"is_searched": True, "growth": 1.6, "proof": 1.5}
_TESTS = "applies a sequence of tests"
_ADDS = "adds up a weight for each column"


def _classifiers() -> tuple[Candidate, ...]:
    names = ("basic", "perceptron", "linear", "tree", "forest", "extra-trees", "adaboost", "svm")
    basic, perceptron, linear, tree, forest, extra, boost, svm = (_OFFERED[name, "classify"] for name in names)
    margin = f"{_ADDS}, with the widest margin between the classes"
    small = f"{_TESTS}, a longer one"
    hard = "compares a row with the hard cases among the training rows"
    return (
        Candidate("basic", basic, 1, "basic linear classifier", "predicts the class whose mean is nearest", proof=3.0),
        Candidate("perceptron", perceptron, 2, "perceptron", f"{_ADDS}, learned from its mistakes", proof=4.5),
        Candidate("linear", linear, 3, "linear support vector machine", margin, is_searched=True),
        # Two trees: the cost of tests that the command line takes as its default, and none, only pruning. Without
        # a cost it is the better of the two where rows are many and noise is little (letter, covtype).
        Candidate("tree", tree, 4, "decision tree", _TESTS, **_TREE_PROOF),
        Candidate("tree-large", tree, 5, "larger decision tree", small, {"complexity": 0.0}, **_TREE_PROOF),
        *_forests(forest, extra, 12),
        # Where few of many columns matter, a node that examines √d of them often sees none (madelon).
        Candidate(
            "forest-wide",
            forest,
            14,
            "random forest of {n_estimators} trees, half of the columns in each node",
            "many trees, each grown from rows and columns drawn at random, predict together",
            {**forest.defaults, "max_features": 0.5},
            **_FOREST,
        ),
        _vote(boost, 1, 6, _ROUNDS, "many single tests vote, each correcting the errors of those before"),
        # The whole grid is searched on few rows, so that it comes before votes, which learn from all of them.
        Candidate("svm", svm, 9, "support vector machine", hard, **_KERNEL),
        _vote(boost, 3, 8, _ROUNDS, "many trees of depth 3 vote"),
        _vote(boost, 2, 7, _ROUNDS, "many trees of depth 2 vote"),
        # A tree of depth 3 predicts at most eight of the 26 letters.
        _vote(boost, 6, 10, _ROUNDS[:-1], "many trees of depth 6 vote", "adaboost-3"),
        _vote(boost, 10, 11, _ROUNDS[:-1], "many trees of depth 10 vote", "adaboost-6"),
    )


def _regressors() -> tuple[Candidate, ...]:
    names = ("linear", "tree", "forest", "extra-trees", "adaboost", "svm")
    linear, tree, forest, extra, boost, svm = (_OFFERED[name, "regress"] for name in names)
    near = "compares a row with the training rows, and ignores small errors"
    small, words = "linear model with small weights (C={C})", f"{_ADDS}, and keeps the weights small"
    return (
        Candidate("linear", linear, 1, "linear model", _ADDS),
        Candidate("linear-gentle", linear, 1, small, words, {"C": 0.01}),
        Candidate("tree", tree, 2, "regression tree", f"{_TESTS}, then predicts a mean", **_TREE_PROOF),
        *_forests(forest, extra, 6),
        _vote(boost, 6, 3, (50, 200), "the median of many trees of depth 6"),
        # Its time grows with the square of the rows, and of its three parameters there are many cells.
        Candidate("svm", svm, 4, "support vector regression", near, **_KERNEL, most_rows=5_000),
        _vote(boost, 10, 5, (50, 200), "the median of many trees of depth 10", "adaboost-6"),
    )


_OFFERED = {(offer.name, offer.task): choice_of(learner) for learner in learners() if (offer := learner.offer)}
CANDIDATES = {"classify": _classifiers(), "regress": _regressors()}
