"""Why the model answers as it does for one row: what pushed it, which questions it asked, who voted, which rows it
remembered.

The *lead* of an answer is its score less that of the strongest other class; of a number it is the number itself. A
column's *push* is how much of the lead is lost when the column is set to its typical value (the median, the most
frequent level). Of a linear model pushes are exact and add up: w·(x − mean), summed over what the column became.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import features_of, is_boosted, is_coded, is_tree
from margrove.app.predict import vote_shares
from margrove.app.report.baseline_row import average_row
from margrove.app.report.cells import cell_text, each_typical, typical, typical_words, value_text
from margrove.app.report.importance import encoded_names
from margrove.app.report.model_on_table import Subject, class_scores
from margrove.certificate import at_the_end
from margrove.data.columns import clip
from margrove.svm.kernels import kernel_of
from margrove.svm.layout import code_of, coefficients_of
from margrove.tree.words import MOST_LEVELS, places, rounded

_MOST_COLUMNS = 200  # beyond it columns are not changed one by one
_MOST_PUSHES = 8  # that somebody reads
_NEIGHBOURS = 4
_EXAMPLES = 3
_SHOWN_VOTERS = 5
_TIE = 1e-9  # less than two shares of a leaf can differ by, unless they are equal

Lead = Callable[[Any], NDArray[np.float64]]


@dataclass(frozen=True)
class Push:
    """What one column does for the answer: for it above 0, against it below."""

    column: str
    cell: str
    amount: float
    usual: str = ""  # the typical cell it was compared with
    compared: str = ""  # the same in words, which say how typical it is


@dataclass(frozen=True)
class Question:
    """One question on the way through a tree, the row's own cell, and what the answer leads to."""

    asked: str
    cell: str
    after: str


@dataclass(frozen=True)
class Voter:
    """One tree of a vote on this row."""

    round: int
    says: str
    weight: float  # its share of all votes


@dataclass(frozen=True)
class Neighbour:
    """A training row that a kernel machine remembers, how alike it is, and how it pulls: towards the answer above 0."""

    row: int
    answer: str
    likeness: float
    pull: float


@dataclass(frozen=True)
class Example:
    """One decision, explained."""

    kind: str  # "sure", "borderline", "wrong", "other"; of numbers "near", "usual", "far"
    row: int  # its place in the table, from 0
    truth: str | None
    predicted: str
    rival: str | None  # the strongest other class
    sureness: float | None  # of classes: its score less that of the rival
    probability: float | None
    cells: tuple[tuple[str, str], ...]
    pushes: tuple[Push, ...] = ()
    questions: tuple[Question, ...] = ()
    voters: tuple[Voter, ...] = ()
    shares: tuple[tuple[str, float], ...] = ()  # of a vote: of each class
    neighbours: tuple[Neighbour, ...] = ()
    is_linear: bool = False
    base: float | None = None  # the lead of a row with every column as usual: of a linear model, of an average row
    lead: float | None = None  # that of the row itself, of which the pushes are parts
    n_others: int = 0  # columns of a linear model that push too, but less than those shown


def examples(subject: Subject) -> list[Example]:
    """One sure, one borderline, one wrong; of numbers one near, one usual, one far off.

    Where no row is wrong, sure ones of other classes; fewer where there are none.
    """
    return [_explained(subject, kind, place) for kind, place in _choose(subject)]


def _choose(subject: Subject) -> list[tuple[str, int]]:
    """Places in the sample."""
    judged = subject.judged
    places = np.arange(len(subject.rows)) if judged is None else subject.judged_places
    if hasattr(subject.learner, "offset_"):
        return []
    if subject.classes is None:
        if judged is None:
            return []
        order = np.argsort(np.abs(judged.truth - judged.predicted), kind="stable")
        kinds = {"near": order[0], "usual": order[len(order) // 2], "far": order[-1]}
        return [(kind, int(places[at])) for kind, at in kinds.items()]
    if subject.scores is None:
        return []
    lead = _leads(subject.scores[places], subject.predicted[places])
    if is_tree(subject.model):  # of rows that are equally sure, one of the leaf with most training rows
        leaf = np.asarray(subject.learner.apply(subject.encoded(places)))
        lead = lead + _TIE * subject.learner.tree_.n_rows[leaf] / subject.learner.tree_.n_rows[0]
    is_right = np.ones(len(places), bool) if judged is None else judged.is_right
    chosen: list[tuple[str, int]] = []
    if is_right.any():
        sure = int(np.where(is_right, lead, -np.inf).argmax())
        borderline = int(np.where(is_right, lead, np.inf).argmin())
        chosen.append(("sure", int(places[sure])))
        if lead[borderline] < lead[sure] - 2 * _TIE:
            chosen.append(("borderline", int(places[borderline])))
    said = subject.predicted[places]
    while is_right.all() and len(chosen) < _EXAMPLES:  # instead of a mistake, rows of other classes
        is_other = ~np.isin(said, [int(subject.predicted[place]) for _, place in chosen])
        if not is_other.any():
            break
        chosen.append(("other", int(places[np.where(is_other, lead, -np.inf).argmax()])))
    if not is_right.all():
        # The surest mistake teaches most; one that is merely borderline is like the row before.
        chosen.append(("wrong", int(places[np.where(is_right, -np.inf, lead).argmax()])))
    return chosen


def _leads(scores: NDArray[np.float64], predicted: NDArray[np.intp]) -> NDArray[np.float64]:
    """By how much the predicted class is ahead of the next."""
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, predicted] = -np.inf
    return np.asarray(scores[rows, predicted] - others.max(axis=1))


def _explained(subject: Subject, kind: str, place: int) -> Example:
    table, model = subject.sample, subject.model
    row = int(subject.rows[place])
    classes = subject.classes
    truth = _truth(subject, row)
    rival = sureness = probability = None
    code = other = 0
    if classes is None:
        predicted = rounded(float(f"{subject.predicted[place]:.6g}"))
    else:
        assert subject.scores is not None
        code = int(subject.predicted[place])
        scores = subject.scores[place].copy()
        sureness = float(_leads(scores[None], np.array([code]))[0])
        # Shares of votes are no probabilities: those of AdaBoost are shown as what they are.
        has_probability = hasattr(model, "predict_proba") and not is_boosted(model)
        probability = float(scores[code]) if has_probability else None
        scores[code] = -np.inf
        other = int(scores.argmax())
        if truth is not None and truth in classes and classes.index(truth) != code:
            other = classes.index(truth)  # of a mistake: why not the truth
            sureness = float(subject.scores[place, code] - subject.scores[place, other])
        predicted, rival = classes[code], classes[other]
    found: dict[str, Any] = {}
    if is_tree(model):
        found["questions"] = _questions(subject, place)
    else:
        found.update(_pushes(subject, place, code, other))
        if is_boosted(model) and subject.learner.model_ is not None and classes is not None:
            found["voters"], found["shares"] = _votes(subject, place, classes)
        if hasattr(subject.learner, "support_vectors_") and not hasattr(subject.learner, "coef_"):
            found["neighbours"] = _neighbours(subject, place, code, other)
    cells = () if table.sparse is not None else tuple((c.name, cell_text(c, place)) for c in table)
    return Example(kind, row, truth, predicted, rival, sureness, probability, cells, **found)


def _truth(subject: Subject, row: int) -> str | None:
    judged = subject.judged
    if judged is None or judged.rows is None or row not in judged.rows:
        return None
    answer = judged.truth[int(np.searchsorted(judged.rows, row))]
    return rounded(float(answer)) if judged.classes is None else judged.classes[int(answer)]


def _pushes(subject: Subject, place: int, code: int, other: int) -> dict[str, Any]:
    weights = _weights(subject, code, other)
    if weights is not None:
        return _exact_pushes(subject, place, *weights)
    table = subject.sample
    if table.sparse is not None or table.n_columns > _MOST_COLUMNS:
        return {}
    usual = [typical(column) for column in table]
    lead = _lead(subject, code, other)
    values = lead(features_of(subject.model, each_typical(table, place, usual)))
    changed = [
        Push(
            column.name,
            cell_text(column, place),
            float(values[0] - values[j + 1]),
            value_text(column, usual[j]),
            typical_words(column, usual[j]),
        )
        for j, column in enumerate(table)
    ]
    return {"pushes": _largest(changed), "base": float(values[-1]), "lead": float(values[0])}


def _largest(pushes: list[Push]) -> tuple[Push, ...]:
    """Those that matter, the largest first."""
    most = max((abs(push.amount) for push in pushes), default=0.0)
    kept = [push for push in pushes if abs(push.amount) > 0.01 * most]
    return tuple(sorted(kept, key=lambda push: -abs(push.amount))[:_MOST_PUSHES])


def _weights(subject: Subject, code: int, other: int) -> tuple[NDArray[np.float64], float] | None:
    """w and b of "this class rather than that one", where the model is linear; None where it is not."""
    learner = subject.learner
    if not hasattr(learner, "coef_") or hasattr(learner, "prototypes_"):
        return None
    found = learner.coef_
    weights = np.atleast_2d(np.asarray(found.toarray() if hasattr(found, "toarray") else found, np.float64))
    b = np.broadcast_to(np.asarray(learner.intercept_, np.float64).ravel(), len(weights))
    n_classes = 0 if subject.classes is None else len(subject.classes)
    if len(weights) == 1:
        sign = -1 if n_classes and code == 0 else 1
        return np.asarray(sign * weights[0]), float(sign * b[0])
    if hasattr(learner, "n_support_"):
        machine, sign = _pair(code_of(learner), code, other)
        if machine is not None:
            return np.asarray(sign * weights[machine]), float(sign * b[machine])
    if len(weights) != n_classes:
        return None
    return np.asarray(weights[code] - weights[other]), float(b[code] - b[other])


def _pair(matrix: NDArray[np.int8], code: int, other: int) -> tuple[int | None, int]:
    """The machine that only tells these two classes apart, and on which side the first is."""
    used = np.abs(matrix).sum(axis=0) == 2
    alone = np.flatnonzero(used & (matrix[code] != 0) & (matrix[other] != 0))
    return (int(alone[0]), int(matrix[code, alone[0]])) if len(alone) else (None, 1)


def _exact_pushes(subject: Subject, place: int, weights: NDArray[np.float64], b: float) -> dict[str, Any]:
    encoded = subject.encoded()
    row = encoded[[place]]
    x = np.asarray(row.toarray() if hasattr(row, "toarray") else row, np.float64).ravel()
    mean = average_row(subject, encoded)
    amounts: dict[str, float] = {}
    for name, amount in zip(encoded_names(subject), (weights * (x - mean)).tolist(), strict=True):
        amounts[name] = amounts.get(name, 0.0) + amount
    table = subject.sample

    def cell(name: str) -> str:
        return cell_text(table[name], place) if name in table else ""

    largest = sorted(amounts, key=lambda name: -abs(amounts[name]))[: 2 * _MOST_PUSHES]
    shown = _largest([Push(name, cell(name), amounts[name]) for name in largest])
    return {
        "pushes": shown,
        "base": float(weights @ mean + b),
        "lead": float(weights @ x + b),
        "n_others": sum(amount != 0 for amount in amounts.values()) - len(shown),
        "is_linear": True,
    }


def _lead(subject: Subject, code: int, other: int) -> Lead:
    """How far the class is ahead of the other, as a function of rows."""
    model, learner = subject.model, subject.learner
    if subject.classes is None:
        return lambda rows: np.asarray(model.predict(rows), np.float64)
    n_classes = len(subject.classes)
    if is_boosted(model):

        def by_votes(rows: Any) -> NDArray[np.float64]:
            shares = vote_shares(np.asarray(model.decision_function(rows), np.float64))
            return np.asarray(shares[:, code] - shares[:, other])

        return by_votes
    if hasattr(learner, "n_support_") and n_classes > 2:
        machine, sign = _pair(code_of(learner), code, other)
        if machine is not None:
            before = model[:-1] if hasattr(model, "steps") else None

            def by_pair(rows: Any) -> NDArray[np.float64]:
                ready = rows if before is None else before.transform(rows)
                return np.asarray(sign * np.asarray(learner.machine_decision(ready))[:, machine])

            return by_pair

    def by_scores(rows: Any) -> NDArray[np.float64]:
        scores = class_scores(model, rows, n_classes)
        assert scores is not None
        return np.asarray(scores[:, code] - scores[:, other])

    return by_scores


def _questions(subject: Subject, place: int) -> tuple[Question, ...]:
    """The way of a row through a tree, from the root to its leaf."""
    learner, tree = subject.learner, subject.learner.tree_
    encoded = subject.encoded([place])
    leaf = int(np.asarray(learner.apply(encoded))[0])
    way = []
    node = leaf
    while node >= 0:
        way.append(node)
        node = int(tree.parent[node])
    asked = {place.node: place.branch for place in places(tree) if place.node in set(way)}
    found = []
    for node in way[::-1][1:]:
        branch = asked[node]
        assert branch is not None
        name = branch.column.name
        cell = cell_text(subject.sample[name], place) if name in subject.sample else ""
        found.append(Question(branch.words(most=MOST_LEVELS), cell, _after(subject, node)))
    return tuple(found)


def _after(subject: Subject, node: int) -> str:
    """What the training rows of a node say."""
    tree, classes = subject.learner.tree_, subject.classes
    n = f"{int(tree.n_rows[node]):,} row{'' if tree.n_rows[node] == 1 else 's'}"
    if classes is None:
        return f"{n}, {rounded(float(tree.value[node, 0]))}"
    shares = tree.value[node] / tree.value[node].sum()
    best = int(shares.argmax())
    return f"{n}, {100 * shares[best]:.0f} % {clip(classes[best], 30)!r}"


def _votes(subject: Subject, place: int, classes: list[str]) -> tuple[tuple[Voter, ...], tuple[tuple[str, float], ...]]:
    """The heaviest voters on a row, and the share of votes of each class."""
    learner = subject.learner
    row = subject.encoded([place])
    worth = np.asarray(learner.estimator_weights_, np.float64)
    worth = worth / worth.sum()
    codes = [int(np.asarray(tree.predict_proba(row))[0].argmax()) for tree in learner.estimators_]
    order = np.argsort(-worth, kind="stable")[:_SHOWN_VOTERS]
    voters = tuple(Voter(int(t) + 1, classes[codes[t]], float(worth[t])) for t in order)
    shares = np.bincount(codes, worth, minlength=len(classes))
    return voters, tuple((classes[k], float(shares[k])) for k in np.argsort(-shares, kind="stable")[:5] if shares[k])


def _neighbours(subject: Subject, place: int, code: int, other: int) -> tuple[Neighbour, ...]:
    """The remembered rows that pull hardest; only where the table has them."""
    learner, table = subject.learner, subject.table
    is_training = subject.is_training and subject.is_training_known
    if not is_training or callable(learner.kernel) or learner.kernel == "precomputed" or is_coded(learner):
        return ()
    support = np.asarray(learner.support_)
    beta, sign = _pulls(subject, code, other)
    if beta is None:
        return ()
    encoded = subject.encoded([place])
    likeness = np.asarray(kernel_of(learner).matrix(encoded, learner.support_vectors_), np.float64).ravel()
    pull = sign * beta * likeness
    order = np.argsort(-np.abs(pull), kind="stable")
    order = order[(np.abs(pull[order]) > 0) & (support[order] != subject.rows[place])][:_NEIGHBOURS]
    remembered = at_the_end(subject.model, features_of(subject.model, table.take(support[order]).with_target(None)))[1]
    if abs(remembered - learner.support_vectors_[order]).max() > 0:  # the same rows in another order
        return ()
    target = table.target
    answers = ["" if target is None else cell_text(target, int(row)) for row in support[order]]
    return tuple(
        Neighbour(int(row), answer, float(likeness[i]), float(pull[i]))
        for row, answer, i in zip(support[order], answers, order, strict=True)
    )


def _pulls(subject: Subject, code: int, other: int) -> tuple[NDArray[np.float64] | None, int]:
    """β of the machine that tells the two classes apart, and on which side the answer is."""
    learner = subject.learner
    if subject.classes is None:
        return np.asarray(learner.dual_coef_, np.float64)[0], 1
    if not hasattr(learner, "n_support_"):  # a kernel perceptron: its machines are one against the rest
        betas = np.asarray(learner.dual_coef_, np.float64)
        return (betas[0], 1 if code == 1 else -1) if len(betas) == 1 else (betas[code], 1)
    betas = coefficients_of(learner)
    if len(betas) == 1:
        return betas[0], 1 if code == 1 else -1
    machine, sign = _pair(code_of(learner), code, other)
    if machine is not None:
        return betas[machine], sign
    return (betas[code], 1) if len(betas) == len(subject.classes) else (None, 1)
