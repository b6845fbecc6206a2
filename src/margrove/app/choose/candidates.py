"""What ``--model auto`` tries: the candidates in the order in which they are tried, the cheap ones first, so that any
budget gives something. A new candidate is one more line.

Every candidate is cross-validated on the same folds. Those that are searched first look for their C (and γ) on the same
rows; votes grow by doubling while that helps. `margrove.app.choose.contest` spends the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from margrove.app.choose import in_digits
from margrove.app.options.menu import LEARNERS, Learner, learner_of_numbers


@dataclass(frozen=True)
class Candidate:
    """One learner with its settings, or with a ladder of them.

    Parameters
    ----------
    name : str
        Its own, among the candidates.
    learner : Learner
    complexity : int
        Its rank for ``--prefer simple``: how much there is to understand, 1 is the least.
    title : str
        What it is called; a place such as ``{n_estimators}`` takes a parameter.
    words : str
        What it does, for a reader who knows no mathematics.
    params : mapping
        What is settled beforehand.
    is_searched : bool
        Whether C, and γ where it has one, are searched.
    rounds : tuple of int
        Of a vote: the sizes that are scored, ascending; the vote grows from one to the next.
    growth : float
        The power of the rows that a fit's time grows with, at most: above 1 it is measured.
    proof, most_proof : float
        What the certificate costs, in fits, and at most in seconds; measured on adult and covtype (33,000 and 93,000
        rows).
    after : str
        A vote of smaller trees: only if it did better than those of trees smaller still, or a single tree did better
        than it, are larger ones tried.
    most_rows : int, optional
        With more it is not tried.
    """

    name: str
    learner: Learner
    complexity: int
    title: str
    words: str
    params: Mapping[str, Any] = field(default_factory=dict)
    is_searched: bool = False
    rounds: tuple[int, ...] = ()
    growth: float = 1.0
    proof: float = 1.0
    most_proof: float = math.inf
    after: str = ""
    most_rows: int | None = None

    def proof_seconds(self, fit: float) -> float:
        """What the certificate takes after a fit of so many seconds."""
        return min(self.most_proof, self.proof * fit)

    def titled(self, params: Mapping[str, Any]) -> str:
        """Its title with these parameters, those that are settled beforehand among them."""
        known = {**self.params, **params}
        shown = {name: in_digits(value) if isinstance(value, float) else str(value) for name, value in known.items()}
        if self.is_searched:
            found = [f"{name}={shown[name]}" for name in ("C", "gamma", "epsilon") if name in shown]
            return f"{self.title} ({', '.join(found)})" if found else self.title
        return " ".join(self.title.format(**{"n_estimators": "", **shown}).split())


def _vote(depth: int, complexity: int, rounds: tuple[int, ...], after: str, learner: Learner, words: str) -> Candidate:
    trees = "stumps" if depth == 1 else f"trees of depth {depth}"
    return Candidate(
        f"adaboost-{depth}",
        learner,
        complexity,
        f"AdaBoost of {{n_estimators}} {trees}",
        words,
        {"estimator__max_depth": depth},
        rounds=rounds,
        proof=2.5,
        after=after,
    )


# Doubled while that helps: on adult depth 3 has 86.6 % of the test rows right with 100 rounds, 86.8 with 200 and 86.9
# with 400; stumps still gain a little beyond, but a longer vote takes longer to certify, too.
_ROUNDS = (25, 50, 100, 200, 400)
_DEEP_ROUNDS = (25, 50, 100, 200)
_BOOST = LEARNERS["adaboost"]
_TREE_PROOF = 10.0  # seconds: of a large tree only some splits are searched anew

_CLASSIFIERS: tuple[Candidate, ...] = (
    Candidate(
        "basic",
        LEARNERS["basic"],
        1,
        "basic linear classifier",
        "goes to the class whose mean is nearer",
        proof=3.0,
    ),
    Candidate(
        "perceptron",
        LEARNERS["perceptron"],
        2,
        "perceptron",
        "adds up a weight for each column, learned from its mistakes",
        proof=4.5,
    ),
    Candidate(
        "linear",
        LEARNERS["linear"],
        3,
        "linear support vector machine",
        "adds up a weight for each column, with the widest margin between the classes",
        is_searched=True,
    ),
    # Two trees: the price on questions that the command line takes as its default, and none, only pruning. Without a
    # price it is the better of the two where rows are many and noise is little (letter, covtype).
    Candidate(
        "tree",
        LEARNERS["tree"],
        4,
        "decision tree",
        "asks one question after the other",
        proof=30.0,
        most_proof=_TREE_PROOF,
    ),
    Candidate(
        "tree-large",
        LEARNERS["tree"],
        5,
        "larger decision tree",
        "asks one question after the other, also small ones",
        {"complexity": 0.0},
        proof=30.0,
        most_proof=_TREE_PROOF,
    ),
    _vote(1, 6, _ROUNDS, "", _BOOST, "many single questions vote, each on what the ones before got wrong"),
    # The whole grid is searched on few rows, so that it comes before votes, which learn from all of them.
    Candidate(
        "svm",
        LEARNERS["svm"],
        9,
        "support vector machine",
        "compares a row with the hard cases among those it learned from",
        is_searched=True,
        growth=1.6,
        proof=1.5,
    ),
    _vote(3, 8, _ROUNDS, "", _BOOST, "many trees of three questions vote"),
    _vote(2, 7, _ROUNDS, "", _BOOST, "many trees of two questions vote"),
    # Of 26 letters three questions cannot tell more than eight apart.
    _vote(6, 10, _DEEP_ROUNDS, "adaboost-3", _BOOST, "many trees of six questions vote"),
    _vote(10, 11, _DEEP_ROUNDS, "adaboost-6", _BOOST, "many trees of ten questions vote"),
)

_LINEAR = learner_of_numbers(LEARNERS["linear"])
_TREE = learner_of_numbers(LEARNERS["tree"])
_BOOST_OF_NUMBERS = learner_of_numbers(_BOOST)
# Not among --model's choices for numbers: its C and ε are in the unit of the target, and only a search knows them.
_SVR = Learner("svm", "SVR", "the flattest surface that leaves small errors alone")

_REGRESSORS: tuple[Candidate, ...] = (
    Candidate("linear", _LINEAR, 1, "linear machine", "adds up a weight for each column"),
    Candidate(
        "linear-gentle",
        _LINEAR,
        1,
        "linear machine with small weights (C={C})",
        "adds up a weight for each column, and keeps the weights small",
        {"C": 0.01},
    ),
    Candidate(
        "tree",
        _TREE,
        2,
        "regression tree",
        "asks one question after the other, then answers a mean",
        proof=30.0,
        most_proof=_TREE_PROOF,
    ),
    _vote(6, 3, (50, 200), "", _BOOST_OF_NUMBERS, "the median of many trees of six questions"),
    # Its time grows with the square of the rows, and of its three parameters there are many cells.
    Candidate(
        "svm",
        _SVR,
        4,
        "support vector regression",
        "compares a row with those it learned from, and leaves small errors alone",
        is_searched=True,
        growth=1.6,
        proof=1.5,
        most_rows=5_000,
    ),
    _vote(10, 5, (50, 200), "adaboost-6", _BOOST_OF_NUMBERS, "the median of many trees of ten questions"),
)

CANDIDATES = {"classify": _CLASSIFIERS, "regress": _REGRESSORS}  # for each task
