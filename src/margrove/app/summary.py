"""What a fitted model learned, as plain data and in an analyst's words."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import encoder_of, is_boosted, is_classifier, is_coded, is_tree, learner_of
from margrove.data import Table
from margrove.status import Status
from margrove.svm.layout import code_of, coefficients_of
from margrove.tree.model import TreeModel
from margrove.tree.words import MOST_LEVELS, places, rounded

SHOWN_PER_CLASS = 5  # columns; the weights fall off quickly and nobody reads more
LEAST_SHOWN = 0.05  # of the strongest weight: below, a column hardly matters
MOST_RULE_LINES = 30  # of a tree's rules: what somebody reads without scrolling


_NOUNS = {
    "weights": "column",
    "rows": "row",
    "votes": "weight vector",
    "rules": "rule",
    "machines": "machine",
    "trees": "tree",
}


@dataclass(frozen=True)
class Evidence:
    """One column that speaks for a class: which, in words, and how strongly (1 is the strongest of that class). A word
    of a text may speak against it."""

    column: str
    words: str
    weight: float
    is_against: bool = False


@dataclass(frozen=True)
class Lesson:
    """What one machine learned: the class it speaks for, and on what grounds."""

    about: str
    against: str
    evidence: tuple[Evidence, ...] = ()
    n_rows_for: int | None = None  # of a kernel machine: rows that carry the decision
    n_rows_against: int | None = None
    n_voters: int | None = None  # of a voted perceptron: weight vectors that vote


@dataclass(frozen=True)
class Questions:
    """What a tree asks."""

    purpose: str  # what the questions are for
    depth: int
    n_leaves_grown: int  # before pruning
    importances: dict[str, float]  # share of each column that is asked for in what all questions gain
    text: str  # as nested if and else, as deep as fits in `MOST_RULE_LINES`
    is_whole: bool  # whether that is all of it
    rules: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Voter:
    """One tree of a vote."""

    round: int  # from 1
    test: str  # what it asks: of a stump all of it, of a larger tree the first question
    n_leaves: int
    error: float  # on the weights of its round
    vote: float  # as scikit-learn has it
    alpha: float | None  # as the textbook has it; None for numbers


@dataclass(frozen=True)
class Vote:
    """What trees that vote ask."""

    voters: tuple[Voter, ...]
    n_rounds_done: int  # those that early stopping gave up included
    importances: dict[str, float]  # share of each column that is asked for in what all questions gain, by vote
    purpose: str  # what the questions are for


@dataclass(frozen=True)
class Learned:
    """What a model learned: ``kind`` is "weights", "rows", "votes", "rules", "machines" or "trees"."""

    kind: str
    lessons: tuple[Lesson, ...]
    size: int  # weights per machine, rows, weight vectors, leaves, machines, or trees
    n_training_rows: int | None = None
    unit: str = ""  # of weights: a change of what they are the weight of; of machines: the learner that they are
    support: dict[str, int] | None = None  # of a support vector classifier: rows of each class that carry the decision
    loo_bound: float | None = None  # the leave-one-out error is at most this,
    xi_alpha_bound: float | None = None  # and at most this
    tree: Questions | None = None
    vote: Vote | None = None

    @property
    def size_words(self) -> str:
        """How large the model is, in a word or two."""
        noun = _NOUNS[self.kind]
        return f"{self.size:,} {noun}{'' if self.size == 1 else 's'}"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, without the parts that do not apply."""
        record = asdict(self)
        record["lessons"] = [_without_gaps(lesson) for lesson in record["lessons"]]
        return _without_gaps(record) | {"n_training_rows": self.n_training_rows}


def _without_gaps(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}


def learned(model: Any, table: Table | None = None) -> Learned:
    """Read what a fitted model, or a pipeline that ends in one, has learned.

    A column's weight is that of one standard deviation over the training rows, so that a rare category counts for
    little. Given the table it was fitted on, the encoder is made to remember these, and a file that is written later
    tells the same. Where it does not, and no table is given, a category's weight is that of yes against no.
    """
    learner = learner_of(model)
    if is_tree(model):
        return _of_tree(learner)
    if is_coded(model):
        return _of_code(learner)
    if is_boosted(model):
        return _of_vote(learner)
    sides = _sides(learner)
    if hasattr(learner, "prototypes_"):
        voters = np.diff(learner.starts_)
        lessons = [Lesson(*side, n_voters=int(n)) for side, n in zip(sides, voters, strict=True)]
        return Learned("votes", tuple(lessons), int(voters.sum()))
    if hasattr(learner, "coef_"):
        return replace(_of_weights(model, learner, sides, table), **_carriers(learner))
    betas = coefficients_of(learner) if _is_support_vector_classifier(learner) else learner.dual_coef_
    lessons = [
        Lesson(*side, n_rows_for=int((beta > 0).sum()), n_rows_against=int((beta < 0).sum()))
        for side, beta in zip(sides, betas, strict=True)
    ]
    rows = Learned("rows", tuple(lessons), len(learner.support_), learner.n_rows_)
    return replace(rows, **_carriers(learner))


def _of_code(scheme: Any) -> Learned:
    lessons = tuple(Lesson(*side) for side in _sides_of_code(scheme.code_, [str(label) for label in scheme.classes_]))
    of = type(learner_of(scheme.estimators_[0])).__name__
    return Learned("machines", lessons, len(lessons), unit=of)


def _of_tree(tree: Any) -> Learned:
    # The line of a node stands at its depth; the root has none, unless it is all there is.
    lines = np.cumsum(np.bincount(tree.tree_.depth)) - 1
    depth = max(1, int(np.searchsorted(lines, MOST_RULE_LINES, side="right")) - 1)
    questions = Questions(
        purpose="telling them apart" if is_classifier(tree) else "the estimate",
        depth=tree.get_depth(),
        n_leaves_grown=tree.grown_.n_leaves,
        importances=_importances(tree, tree.tree_),
        text=str(tree.rules(max_depth=depth)),
        is_whole=tree.get_depth() <= depth,
        rules=tuple(tree.rules().data()),
    )
    n_rows = int(tree.tree_.n_rows[0])
    return Learned("rules", (), tree.get_n_leaves(), n_training_rows=n_rows, tree=questions)


def _importances(learner: Any, tree: TreeModel) -> dict[str, float]:
    """Of each column that is asked for, the largest first."""
    names = [column.name for column in tree.columns]
    shares = sorted(zip(names, learner.feature_importances_.tolist(), strict=True), key=lambda pair: -pair[1])
    return {name: share for name, share in shares if share > 0}


def _of_vote(learner: Any) -> Learned:
    grove = learner.model_.grove
    trees = [grove.tree(t) for t in range(grove.n_trees)]
    labels = [str(label) for label in learner.classes_] if is_classifier(learner) else None
    alphas = learner.alphas_.tolist() if labels is not None else [None] * len(trees)
    errors, votes = learner.estimator_errors_.tolist(), learner.estimator_weights_.tolist()
    voters = [
        Voter(t, _asked(tree, labels), tree.n_leaves, error, vote, alpha)
        for t, (tree, error, vote, alpha) in enumerate(zip(trees, errors, votes, alphas, strict=True), start=1)
    ]
    n_done = learner.rounds_.n_rounds if hasattr(learner, "rounds_") else len(trees)
    purpose = "the estimate" if labels is None else "telling them apart"
    vote = Vote(tuple(voters), n_done, _importances(learner, trees[0]), purpose)
    return Learned("trees", (), len(trees), n_training_rows=int(learner.n_rows_), vote=vote)


def _asked(tree: TreeModel, labels: list[str] | None) -> str:
    """What a small tree asks first; of a stump with two branches, its answers too."""

    def answer(node: int) -> str:
        value = tree.value[node]
        return rounded(float(value[0])) if labels is None else labels[int(value.argmax())]

    if tree.n_nodes == 1:
        return f"always {answer(0)}"
    first = list(places(tree, max_depth=1))[1:]
    asked = "" if first[0].branch is None else first[0].branch.words(most=MOST_LEVELS)
    if tree.n_nodes > 3:
        return asked
    return f"{asked}: {answer(first[0].node)}, else {answer(first[1].node)}"


def _carriers(learner: Any) -> dict[str, Any]:
    """What only a support vector classifier knows: whose rows carry the decision, and how far it can be trusted."""
    if not _is_support_vector_classifier(learner):
        return {}
    counts = zip(learner.classes_, learner.n_support_, strict=True)
    support = {str(label): int(count) for label, count in counts}
    bounds = {}
    if learner.status_ is Status.CONVERGED:  # they are of the optimum, and of nothing else
        bounds = {"loo_bound": learner.loo_bound_, "xi_alpha_bound": learner.xi_alpha_bound_}
    return {"n_training_rows": learner.n_rows_, "support": support, **bounds}


def _is_support_vector_classifier(learner: Any) -> bool:
    return hasattr(learner, "loo_bound_")


def _of_weights(model: Any, learner: Any, sides: list[tuple[str, str]], table: Table | None) -> Learned:
    weights = np.atleast_2d(learner.coef_)  # a regression has one row of them
    names = _columns(model, weights.shape[1])
    unit = ", per standard deviation of a number, yes against no of a category"
    if any(name.is_word for name in names):
        unit += ", that word alone against none of a text"
    encoder = encoder_of(model)
    if encoder is not None and not encoder.standardise:
        unit = ""
    if encoder is not None and table is not None and not hasattr(encoder, "deviations_"):
        encoder.remember_deviations(encoder.transform(table))
    if encoder is not None and hasattr(encoder, "deviations_"):
        unit, weights = " of one standard deviation", weights * np.asarray(encoder.deviations_)
    lessons = [Lesson(*side, evidence=_evidence(w, names)) for side, w in zip(sides, weights, strict=True)]
    return Learned("weights", tuple(lessons), len(names), unit=unit)


def _sides(learner: Any) -> list[tuple[str, str]]:
    """The class each machine speaks for, and what it speaks against."""
    if not is_classifier(learner):
        return [("inside", "outside") if hasattr(learner, "offset_") else ("a high value", "a low one")]
    classes = [str(label) for label in learner.classes_]
    if not _is_support_vector_classifier(learner):
        return [(classes[1], classes[0])] if len(classes) == 2 else [(label, "the rest") for label in classes]
    return _sides_of_code(code_of(learner), classes)


def _sides_of_code(code: NDArray[np.int8], classes: list[str]) -> list[tuple[str, str]]:
    sides = []
    for column in code.T:
        for_it, against = ([label for label, side in zip(classes, column, strict=True) if side == s] for s in (1, -1))
        is_rest = len(for_it) == 1 and len(against) == len(classes) - 1 > 1
        sides.append(("|".join(for_it), "the rest" if is_rest else "|".join(against)))
    return sides


@dataclass(frozen=True)
class _Encoded:
    """A column of the encoded table: of a number, of one level of a category, or of a word of a text."""

    column: str
    level: str | None
    is_word: bool = False

    def words(self, weight: float) -> str:
        if self.is_word:
            return f"{self.level!r} in {self.column}"
        if self.level is None:
            return f"{'high' if weight > 0 else 'low'} {self.column}"
        return f"{self.column} {'is' if weight > 0 else 'is not'} {self.level}"


def _columns(model: Any, width: int) -> list[_Encoded]:
    encoder = encoder_of(model)
    if encoder is not None:
        return [
            _Encoded(origin.column, "missing" if origin.is_missing else _text(origin.level), origin.is_word)
            for origin in encoder.output_origins()
        ]
    first = model[0] if hasattr(model, "steps") else model
    if hasattr(first, "network_digest_"):  # of pictures: the maps of a network
        names = first.get_feature_names_out()
    else:
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(width)])
    return [_Encoded(str(name), None) for name in names]


def _text(level: Any) -> str | None:
    return None if level is None else str(level)


def _evidence(w: NDArray[np.float64], names: list[_Encoded]) -> tuple[Evidence, ...]:
    """The strongest weights. Only their ratios mean anything: a perceptron's w may have any length."""
    strongest = float(np.abs(w).max(initial=0.0))
    if strongest == 0 or not np.isfinite(strongest):
        return ()
    shares = w / strongest
    # Words that speak against it are listed by themselves, or those that speak for it could leave no room for them.
    is_against = np.array([name.is_word for name in names]) & (shares < 0)
    found = []
    for side in (False, True):
        own = np.flatnonzero((is_against == side) & (np.abs(shares) >= LEAST_SHOWN))
        order = own[np.argsort(-np.abs(shares[own]), kind="stable")][:SHOWN_PER_CLASS]
        found += [Evidence(names[j].column, names[j].words(shares[j]), float(shares[j]), side) for j in order]
    return tuple(found)
