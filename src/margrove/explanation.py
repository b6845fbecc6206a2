"""The explanation of a fitted model as plain data: a summary of what it learned, and the reasons for a prediction.

`Explanation` serves any model. A family has its own (in its module ``explain``, or `Weights` here) and names it in its
descriptions (`margrove.learner`, field ``explain``). Command line, reports and plots call `explanation_of` and know no
family.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrove.learner import learner_of, loaded

SHOWN_PER_CLASS = 5  # columns; the other weights are usually small
LEAST_SHOWN = 0.05  # relative to the strongest weight; columns with smaller weights are not listed
HIGH = "a high value"  # the side of a regression's weights above 0

_NOUNS = {"weights": "column", "votes": "weight vector"}  # other kinds: the kind without its plural s


@dataclass(frozen=True)
class WeightedColumn:
    """A column and its weight for a class, relative to the strongest weight of that class."""

    column: str
    description: str
    weight: float
    is_against: bool = False  # a level or a word that counts against the class


@dataclass(frozen=True)
class MachineSummary:
    """The classes that one machine separates, and the columns with the largest weights."""

    positive: str  # the class or classes with scores above 0
    negative: str  # those with scores below 0
    evidence: tuple[WeightedColumn, ...] = ()
    n_rows_positive: int | None = None  # of a kernel machine: support vectors
    n_rows_negative: int | None = None
    n_voters: int | None = None  # of a voted perceptron: weight vectors that vote


@dataclass(frozen=True)
class TreeSummary:
    """The tests of a tree."""

    purpose: str  # what the tests are for
    depth: int
    n_leaves_grown: int  # before pruning
    importances: dict[str, float]  # share of each column in the gain of all tests
    text: str  # nested if and else, as deep as fits
    is_whole: bool  # True if the text contains all tests
    rules: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class Voter:
    """One tree of a vote."""

    round: int  # from 1
    test: str  # of a stump all of it, of a larger tree the first test
    n_leaves: int
    error: float  # on the weights of its round
    vote: float  # as in scikit-learn
    alpha: float | None  # as in the textbook; None for regression


@dataclass(frozen=True)
class Vote:
    """The trees of a vote."""

    voters: tuple[Voter, ...]
    n_rounds_done: int  # including those that early stopping dropped
    importances: dict[str, float]  # share of each column in the gain of all tests, by vote
    purpose: str  # what the tests are for


@dataclass(frozen=True)
class ForestSummary:
    """The trees of a forest."""

    purpose: str  # what the tests are for
    n_leaves: float  # of a tree, on average
    depth: float
    importances: dict[str, float]  # the mean over the trees of the share of each column in the gain of all tests
    spread: dict[str, tuple[float, float]]  # between which that share lies in nine of ten trees
    measure: str = ""  # "accuracy" or "R²"
    out_of_bag: float | None = None  # by the trees that have not seen a row


@dataclass(frozen=True)
class ModelSummary:
    """A summary of a model. ``kind`` names its parts: "weights", "rows", "votes", "rules", "machines", "trees",
    "learners", or another plural; "columns" for a model without an explanation."""

    kind: str
    machines: tuple[MachineSummary, ...]  # one for each machine
    size: int  # the number of weights per machine, rows, weight vectors, leaves, machines or trees
    n_training_rows: int | None = None
    unit: str = ""  # of weights: the change of a column that they refer to; of machines: the class of the learner
    support: dict[str, int] | None = None  # of a support vector classifier: support vectors of each class
    loo_bound: float | None = None  # the leave-one-out error is at most this,
    xi_alpha_bound: float | None = None  # and at most this
    tree: TreeSummary | None = None
    vote: Vote | None = None
    forest: ForestSummary | None = None

    @property
    def size_words(self) -> str:
        """The size with its noun."""
        return counted(self.size, _NOUNS.get(self.kind, self.kind.removesuffix("s")))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values, without the parts that do not apply."""
        record = asdict(self)
        record["machines"] = [_without_gaps(machine) for machine in record["machines"]]
        return _without_gaps(record) | {"n_training_rows": self.n_training_rows}


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _without_gaps(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}


@dataclass(frozen=True)
class InputColumn:
    """An encoded column: a number, one level of a category, or one word of a text."""

    column: str
    level: str | None = None
    is_word: bool = False
    is_date: bool = False

    def words(self, weight: float) -> str:
        """Describe the cells for which the weight raises the score; of a level or a word, the cells that have it."""
        if self.is_word:
            return f"{self.level!r} in {self.column}"
        if self.level is None:
            high, low = ("late", "early") if self.is_date else ("high", "low")
            return f"{high if weight > 0 else low} {self.column}"
        return f"{self.column} is {self.level}"


@dataclass(frozen=True, eq=False)
class Inputs:
    """All encoded columns, the factor of each weight, and the unit of the product."""

    columns: list[InputColumn]
    factors: NDArray[np.float64] | float = 1.0
    unit: str = ""


@dataclass(frozen=True)
class RowVoter:
    """The vote of one tree for a row."""

    round: int
    predicts: str  # the class
    weight: float  # its share of all votes


@dataclass(frozen=True, eq=False)
class Support:
    """The support vectors that a row is compared with: kernel values, and terms of the decision function."""

    rows: NDArray[np.intp]  # (s,) training rows
    vectors: Any  # (s, d)
    kernel: NDArray[np.float64]  # (s,)
    terms: NDArray[np.float64]  # (s,) β K, above 0 for the class


class Explanation:
    """The explanation of any fitted model. ``rows`` are rows as the model's ``predict`` takes them."""

    is_vote = False  # ``predict_proba`` returns shares of votes
    is_probable = False  # its scores are probabilities
    has_rules = False  # it consists of trees whose rules can be read
    is_convex = False  # a duality gap bounds the objective of any other model of its kind
    parts: Sequence[Any] = ()  # the models that it consists of and that receive the rows; they may be pipelines

    def __init__(self, model: Any) -> None:
        self.model = model
        classes = getattr(model, "classes_", None)
        self.classes = None if classes is None else [str(label) for label in classes]
        self.engine: str | None = getattr(model, "engine_", None)
        # Trees predict from a table without an encoder in front.
        self.takes_tables = self.has_rules and hasattr(model, "feature_names_in_")

    @property
    def mere_shares(self) -> str:
        """The numbers that ``predict_proba`` returns, in words, where they are no probabilities."""
        if self.is_vote:
            return "shares of votes"
        is_weighted = self.is_probable and getattr(self.model, "class_weight", None) is not None
        return "shares of rows by class weight" if is_weighted else ""

    @property
    def called(self) -> str:
        """The name in plain language; the name of the class if the description has none."""
        described = learner_of(self.model)
        return (described.called if described is not None else "") or type(self.model).__name__

    @property
    def task(self) -> Literal["classes", "numbers", "novelty"]:
        """The kind of prediction."""
        if self.classes is not None:
            return "classes"
        return "novelty" if hasattr(self.model, "offset_") else "numbers"

    @property
    def status(self) -> str | None:
        """The status of the solve, from the model or its certificate; None if neither has one."""
        found = getattr(self.model, "status_", None) or getattr(self.model, "certificate_", None)
        return None if found is None else str(getattr(found, "status", found))

    @property
    def has_margins(self) -> bool:
        """True if f/‖w‖ exists: for linear and kernel machines, but not for votes, nor for trees."""
        is_machine = any(hasattr(self.model, mark) for mark in ("norm_", "coef_", "dual_coef_"))
        return is_machine and hasattr(self.model, "decision_function")

    @property
    def kernel(self) -> str | None:
        """The kernel with its fitted parameters."""
        return None

    @property
    def loo_bounds(self) -> tuple[float, float] | None:
        """Upper bounds on the leave-one-out error: the share of support vectors, and the ξα-estimate."""
        return None

    def solve(self) -> dict[str, Any] | None:
        """Return the solver, the relative duality gap and the margin widths of a linear SVM."""
        return None

    def columns(self) -> list[dict[str, Any]] | None:
        """Return the name and kind of each input column; None if the model does not store them."""
        return None

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        """Return the summary of the model."""
        return ModelSummary("columns", (), int(self.model.n_features_in_))

    def description(self) -> str:
        """Describe the kind of model in a sentence."""
        return f"{self.called[:1].upper()}{self.called[1:]}."

    def importances(self, names: Sequence[str], deviations: Callable[[], NDArray[np.float64]]) -> dict[str, float]:
        """Return the share of each column in the decisions, the largest first; empty if it is unknown. ``names``
        are the columns of the table, and ``deviations()`` the standard deviations, of the encoded columns."""
        return {}

    def class_scores(self, rows: Any) -> NDArray[np.float64] | None:
        """Return the probability or decision value of each class, (n, K); None if it has none."""
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(rows), np.float64)
        if not hasattr(self.model, "decision_function"):
            return None
        decision = np.asarray(self.model.decision_function(rows), np.float64)
        if decision.ndim == 1:
            return np.column_stack([-decision, decision])
        return decision if decision.shape[1] == len(self.model.classes_) else None

    def scores(self, rows: Any) -> tuple[tuple[str, ...], NDArray[np.float64]] | None:
        """Return names and scores, (n, k): the decision value of each machine, or the probability or share of votes of
        each class; None for a model that only predicts values."""
        model = self.model
        if self.is_probable and self.classes is not None:
            return self._of_classes("share by weight" if self.mere_shares else "probability"), np.asarray(
                model.predict_proba(rows)
            )
        if not hasattr(model, "decision_function"):
            return None
        # With several classes, the decision_function of a support vector classifier counts votes.
        decide = model.machine_decision if hasattr(model, "machine_decision") else model.decision_function
        decision = np.asarray(decide(rows))
        decision = decision[:, None] if decision.ndim == 1 else decision
        machines = model.certificate_.machines
        is_joint = len(machines) == 1 and self.classes is not None and len(self.classes) > 2
        names = self._of_classes("score") if is_joint else tuple(f"score {machine}" for machine in machines)
        return names, decision

    def _of_classes(self, what: str) -> tuple[str, ...]:
        return tuple(f"{what} {label}" for label in self.classes or ())

    def lead(self, rows: Any, code: int, other: int) -> NDArray[np.float64]:
        """Return the score of one class minus that of another; for a regressor, the prediction."""
        if self.classes is None:
            return np.asarray(self.model.predict(rows), np.float64)
        scores = self.class_scores(rows)
        assert scores is not None
        return np.asarray(scores[:, code] - scores[:, other])

    def weights(self, code: int, other: int) -> tuple[NDArray[np.float64], float] | None:
        """Return w and b of the difference between the scores of two classes; None unless the model is linear."""
        return None

    def path_tests(self, row: Any) -> list[tuple[str, str, str]] | None:
        """Return the path of one row from the root of a tree to its leaf, as (column, condition that holds, training
        rows that it holds for); None unless the model is a tree."""
        return None

    def conditions_met(self, rows: Any) -> list[str] | None:
        """Return the conditions that lead each row to its leaf, in words; None unless the model is a tree."""
        return None

    def votes(self, row: Any) -> tuple[tuple[RowVoter, ...], tuple[tuple[str, float], ...]]:
        """Return the heaviest voters on one row, and the share of votes of each class, the largest first."""
        return (), ()

    def support(self, row: Any, code: int, other: int) -> Support | None:
        """Return the support vectors that separate two classes, with their kernel values at one row."""
        return None

    def grades(self) -> NDArray[np.str_] | None:
        """Return "easy", "marginal" or "hard" for each training row: the hardest grade that any machine gives it."""
        return None

    def share_alike(self, rows: Any) -> NDArray[np.float64] | float:
        """Return the share of training rows with the same explanation as each row; 0 if it is unknown."""
        return 0.0

    def is_trained_on(self, rows: Any) -> bool | None:
        """Return whether these are the training rows, as far as the model stores them; None if it stores none."""
        return None

    def _sides(self) -> list[tuple[str, str]]:
        """Return the class that each machine scores, and its opposite."""
        if self.classes is None:
            return [("inside", "outside") if self.task == "novelty" else (HIGH, "a low one")]
        if len(self.classes) == 2:
            return [(self.classes[1], self.classes[0])]
        return [(label, "the rest") for label in self.classes]


def explanation_of(model: Any) -> Explanation:
    """Explain a fitted model, or the one at the end of a pipeline.

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.explanation import explanation_of
    >>> tree = DecisionTreeClassifier(max_depth=1).fit([[0.0], [1.0]], ["a", "b"])
    >>> explanation_of(tree).description()
    'A decision tree: a sequence of tests that ends at one of 2 rules.'
    """
    learner = model[-1] if hasattr(model, "steps") else model
    described = learner_of(learner)
    explain = None if described is None else described.explain
    return Explanation(learner) if explain is None else loaded(explain)(learner)


def sides_of_code(code: NDArray[np.int8], classes: list[str]) -> list[tuple[str, str]]:
    """Return the classes on both sides of each column of a code matrix."""
    sides = []
    for column in code.T:
        for_it, against = ([label for label, side in zip(classes, column, strict=True) if side == s] for s in (1, -1))
        is_rest = len(for_it) == 1 and len(against) == len(classes) - 1 > 1
        sides.append(("|".join(for_it), "the rest" if is_rest else "|".join(against)))
    return sides


def leads(scores: NDArray[np.float64], codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the score of the class of each row minus the largest other score."""
    rows, others = np.arange(len(scores)), scores.copy()
    others[rows, codes] = -np.inf
    return np.asarray(scores[rows, codes] - others.max(axis=1))


def summed(names: Sequence[str], amounts: NDArray[np.float64]) -> dict[str, float]:
    """Sum the amounts of each name."""
    found: dict[str, float] = {}
    for name, amount in zip(names, amounts.tolist(), strict=True):
        found[name] = found.get(name, 0.0) + amount
    return found


class Weights(Explanation):
    """The explanation of a linear model, with a row of ``coef_`` for each machine."""

    @property
    def _coef(self) -> NDArray[np.float64]:
        coef = self.model.coef_
        return np.atleast_2d(np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, np.float64))

    def data(self, inputs: Callable[[], Inputs]) -> ModelSummary:
        found = inputs()
        weights = zip(self._sides(), _centred(self._coef, found.columns) * found.factors, strict=True)
        machines = [MachineSummary(*side, evidence=_strongest(w, found.columns)) for side, w in weights]
        return ModelSummary("weights", tuple(machines), len(found.columns), unit=found.unit)

    def description(self) -> str:
        shape = "A weighted sum" if self.task == "numbers" else "A straight boundary"
        return f"{shape}: it adds up the columns, each with its own weight ({self.called})."

    def importances(self, names: Sequence[str], deviations: Callable[[], NDArray[np.float64]]) -> dict[str, float]:
        shares = summed(names, (np.abs(self._coef) * deviations()).sum(axis=0))
        whole = sum(shares.values())
        if not whole or not np.isfinite(whole):
            return {}
        return {name: share / whole for name, share in sorted(shares.items(), key=lambda pair: -pair[1])}

    def weights(self, code: int, other: int) -> tuple[NDArray[np.float64], float] | None:
        coef = self._coef
        b = np.broadcast_to(np.asarray(self.model.intercept_, np.float64).ravel(), len(coef))
        if len(coef) == 1:
            sign = -1 if self.classes is not None and code == 0 else 1
            return np.asarray(sign * coef[0]), float(sign * b[0])
        if self.classes is None or len(coef) != len(self.classes):
            return None
        return np.asarray(coef[code] - coef[other]), float(b[code] - b[other])


def _centred(coef: NDArray[np.float64], columns: list[InputColumn]) -> NDArray[np.float64]:
    """Return the weights less the mean over the levels of their category. Each row has one of the levels, so a constant
    in the weights of all is an intercept and explains nothing. Of two levels the higher gets the difference, and the
    other, which says the same, gets 0."""
    levels: dict[str, list[int]] = {}
    for j, column in enumerate(columns):
        if column.level is not None and not column.is_word:
            levels.setdefault(column.column, []).append(j)
    centred = coef.copy()
    for places in (places for places in levels.values() if len(places) > 1):
        w = coef[:, places]
        centred[:, places] = w - (w.min(axis=1, keepdims=True) if len(places) == 2 else w.mean(axis=1, keepdims=True))
    return centred


def _strongest(w: NDArray[np.float64], columns: list[InputColumn]) -> tuple[WeightedColumn, ...]:
    """Return the strongest weights. Only their ratios mean anything: a perceptron's w may have any length."""
    strongest = float(np.abs(w).max(initial=0.0))
    if strongest == 0 or not np.isfinite(strongest):
        return ()
    shares = w / strongest
    # Words that count against the class are listed separately: otherwise words for the class could crowd them out.
    is_apart = np.array([column.is_word for column in columns]) & (shares < 0)
    found = []
    for side in (False, True):
        own = np.flatnonzero((is_apart == side) & (np.abs(shares) >= LEAST_SHOWN))
        for j in own[np.argsort(-np.abs(shares[own]), kind="stable")][:SHOWN_PER_CLASS].tolist():
            column, share = columns[j], float(shares[j])
            is_against = column.level is not None and share < 0
            found.append(WeightedColumn(column.column, column.words(share), share, is_against))
    return tuple(found)
