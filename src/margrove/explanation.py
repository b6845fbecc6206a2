"""The explanation of a fitted model, as plain data: what it learned, and why it predicts what it predicts for a row.

`Explanation` says what can be said of any model. A family's explanations (its module ``explain``, or `Weights` here)
say more, and its descriptions name them (`margrove.learner`, field ``explain``). Command line, reports and plots ask
`explanation_of` and know no family. How explanations are drawn is not told here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from margrove.learner import learner_of, loaded

SHOWN_PER_CLASS = 5  # columns; the weights fall off quickly and nobody reads more
LEAST_SHOWN = 0.05  # of the strongest weight: below, a column hardly matters

_NOUNS = {"weights": "column", "votes": "weight vector"}  # of other kinds the kind itself


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
    n_rows_for: int | None = None  # of a kernel machine: support vectors
    n_rows_against: int | None = None
    n_voters: int | None = None  # of a voted perceptron: weight vectors that vote


@dataclass(frozen=True)
class Questions:
    """What a tree asks."""

    purpose: str  # what the questions are for
    depth: int
    n_leaves_grown: int  # before pruning
    importances: dict[str, float]  # share of each column that is asked for in what all questions gain
    text: str  # as nested if and else, as deep as fits
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
    """What a model learned: ``kind`` says what it is made of: "weights", "rows", "votes", "rules", "machines",
    "trees", "learners", or another plural; of a model that explains nothing, "columns"."""

    kind: str
    lessons: tuple[Lesson, ...]
    size: int  # how many of them: weights per machine, rows, weight vectors, leaves, machines, trees
    n_training_rows: int | None = None
    unit: str = ""  # of weights: a change of what they are the weight of; of machines: the learner that they are
    support: dict[str, int] | None = None  # of a support vector classifier: support vectors of each class
    loo_bound: float | None = None  # the leave-one-out error is at most this,
    xi_alpha_bound: float | None = None  # and at most this
    tree: Questions | None = None
    vote: Vote | None = None

    @property
    def size_words(self) -> str:
        """How large the model is, in a word or two."""
        return counted(self.size, _NOUNS.get(self.kind, self.kind.removesuffix("s")))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values, without the parts that do not apply."""
        record = asdict(self)
        record["lessons"] = [_without_gaps(lesson) for lesson in record["lessons"]]
        return _without_gaps(record) | {"n_training_rows": self.n_training_rows}


def counted(n: int, noun: str) -> str:
    """A number and its noun."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _without_gaps(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if value is not None}


@dataclass(frozen=True)
class InputColumn:
    """A column as the learner gets it: of a number, of one level of a category, or of a word of a text."""

    column: str
    level: str | None = None
    is_word: bool = False

    def words(self, weight: float) -> str:
        """What a weight speaks for, or against."""
        if self.is_word:
            return f"{self.level!r} in {self.column}"
        if self.level is None:
            return f"{'high' if weight > 0 else 'low'} {self.column}"
        return f"{self.column} {'is' if weight > 0 else 'is not'} {self.level}"


@dataclass(frozen=True, eq=False)
class Inputs:
    """All columns as the learner gets them, the factor of each weight, and what a weight then is the weight of."""

    columns: list[InputColumn]
    factors: NDArray[np.float64] | float = 1.0
    unit: str = ""


@dataclass(frozen=True)
class Step:
    """One question on the way of a row through a tree, and what is known of the training rows of its answer."""

    column: str
    asked: str
    after: str


@dataclass(frozen=True)
class RowVoter:
    """One tree of a vote on a row."""

    round: int
    says: str
    weight: float  # its share of all votes


@dataclass(frozen=True, eq=False)
class Support:
    """The support vectors that a row is compared with: kernel values, and terms of the sum that decides."""

    rows: NDArray[np.intp]  # their places among the training rows
    vectors: Any  # (s, d)
    kernel: NDArray[np.float64]  # (s,)
    terms: NDArray[np.float64]  # (s,) β K, above 0 for the class


class Explanation:
    """What can be said of any fitted model. Rows are as the model itself takes them."""

    is_vote = False  # whether its probabilities are made of shares of votes
    is_probable = False  # whether its scores are probabilities
    has_rules = False  # whether it is made of trees whose rules can be read

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def called(self) -> str:
        """What people call it; the name of its class where nobody says."""
        described = learner_of(self.model)
        return (described.called if described is not None else "") or type(self.model).__name__

    @property
    def classes(self) -> list[str] | None:
        """The names of the classes; None where there are none."""
        classes = getattr(self.model, "classes_", None)
        return None if classes is None else [str(label) for label in classes]

    @property
    def task(self) -> Literal["classes", "numbers", "novelty"]:
        """What it predicts."""
        if self.classes is not None:
            return "classes"
        return "novelty" if hasattr(self.model, "offset_") else "numbers"

    @property
    def status(self) -> str | None:
        """How the learning ended, by the model or its certificate, where they say so."""
        found = getattr(self.model, "status_", None) or getattr(self.model, "certificate_", None)
        return None if found is None else str(getattr(found, "status", found))

    @property
    def engine(self) -> str | None:
        """The engine that fitted it, where there is one."""
        engine: str | None = getattr(self.model, "engine_", None)
        return engine

    @property
    def parts(self) -> Sequence[Any]:
        """The models that it is made of and that read the rows for it, perhaps pipelines."""
        return ()

    @property
    def takes_tables(self) -> bool:
        """Whether it predicts from a table as it is, without an encoder in front."""
        return False

    @property
    def has_margins(self) -> bool:
        """Whether f/‖w‖ exists: for linear and kernel machines, but not for votes, nor for trees."""
        is_machine = any(hasattr(self.model, mark) for mark in ("norm_", "coef_", "dual_coef_"))
        return is_machine and hasattr(self.model, "decision_function")

    @property
    def is_convex(self) -> bool:
        """Whether a duality gap bounds what any other model of its kind could do better."""
        return False

    @property
    def kernel(self) -> str | None:
        """The kernel, with the numbers that `fit` settled, of a model that has one."""
        return None

    def solve(self) -> dict[str, Any] | None:
        """The solver, relative gap and widths of the margins of a linear model that was solved to a gap."""
        return None

    def columns(self) -> list[dict[str, Any]] | None:
        """The name and kind of each column that it takes, where it keeps them."""
        return None

    def data(self, inputs: Callable[[], Inputs]) -> Learned:
        """What it learned."""
        return Learned("columns", (), int(self.model.n_features_in_))

    def in_words(self) -> str:
        """What kind of model it is, in a sentence."""
        return f"{self.called[:1].upper()}{self.called[1:]}."

    def importances(self, names: Sequence[str], deviations: Callable[[], NDArray[np.float64]]) -> dict[str, float]:
        """The share of each column in what it decides by, the largest first; nothing where that is not known.

        ``names`` are the columns of the table that its input columns come from; ``deviations`` returns the standard
        deviation of each input column.
        """
        return {}

    def class_scores(self, rows: Any) -> NDArray[np.float64] | None:
        """A number for each class, (n, K): its probability, or its decision value; None where there are none."""
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(rows), np.float64)
        if not hasattr(self.model, "decision_function"):
            return None
        decision = np.asarray(self.model.decision_function(rows), np.float64)
        if decision.ndim == 1:
            return np.column_stack([-decision, decision])
        return decision if decision.shape[1] == len(self.model.classes_) else None

    def scores(self, rows: Any) -> tuple[tuple[str, ...], NDArray[np.float64]] | None:
        """What it decides by, named, (n, k): the decision value of each machine, or of each class its probability or
        share of votes. None of a model that predicts values and has no others."""
        model = self.model
        if self.is_probable and self.classes is not None:
            return self._of_classes("probability"), np.asarray(model.predict_proba(rows))
        if not hasattr(model, "decision_function"):
            return None
        # Of several classes a support vector classifier's decision_function counts votes.
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
        """How far one class is ahead of another; of numbers, the numbers themselves."""
        if self.classes is None:
            return np.asarray(self.model.predict(rows), np.float64)
        scores = self.class_scores(rows)
        assert scores is not None
        return np.asarray(scores[:, code] - scores[:, other])

    def weights(self, code: int, other: int) -> tuple[NDArray[np.float64], float] | None:
        """w and b of "this class rather than that one" of a linear model; None of another."""
        return None

    def questions(self, row: Any) -> tuple[Step, ...] | None:
        """The way of one row through a tree, from the root to its leaf; None where nothing is asked."""
        return None

    def votes(self, row: Any) -> tuple[tuple[RowVoter, ...], tuple[tuple[str, float], ...]]:
        """The heaviest voters on one row, and the share of votes of each class, the largest first."""
        return (), ()

    def support(self, row: Any, code: int, other: int) -> Support | None:
        """The support vectors that one row is compared with, to tell one class from another."""
        return None

    @property
    def loo_bounds(self) -> tuple[float, float] | None:
        """What the share of rows that would be misjudged, each left out in turn, is at most; and by the ξα-estimate."""
        return None

    def grades(self) -> NDArray[np.str_] | None:
        """Whether each training row is easy, marginal or hard, the hardest of all machines."""
        return None

    def share_alike(self, rows: Any) -> NDArray[np.float64] | float:
        """The share of training rows that are treated exactly as each row is, where that is known."""
        return 0.0

    def is_trained_on(self, rows: Any) -> bool | None:
        """Whether these seem to be the training rows, by what the model keeps of them; None if it keeps nothing."""
        return None

    def _sides(self) -> list[tuple[str, str]]:
        """The class that each machine speaks for, and what it speaks against."""
        if self.classes is None:
            return [("inside", "outside") if self.task == "novelty" else ("a high value", "a low one")]
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
    >>> explanation_of(tree).in_words()
    'A decision tree: it asks one question after the other and ends at one of 2 rules.'
    """
    learner = model[-1] if hasattr(model, "steps") else model
    described = learner_of(learner)
    explain = None if described is None else described.explain
    return Explanation(learner) if explain is None else loaded(explain)(learner)


def sides_of_code(code: NDArray[np.int8], classes: list[str]) -> list[tuple[str, str]]:
    """The classes that the machine of each column of a code matrix tells from others."""
    sides = []
    for column in code.T:
        for_it, against = ([label for label, side in zip(classes, column, strict=True) if side == s] for s in (1, -1))
        is_rest = len(for_it) == 1 and len(against) == len(classes) - 1 > 1
        sides.append(("|".join(for_it), "the rest" if is_rest else "|".join(against)))
    return sides


def summed(names: Sequence[str], amounts: NDArray[np.float64]) -> dict[str, float]:
    """The sum of the amounts of each name."""
    found: dict[str, float] = {}
    for name, amount in zip(names, amounts.tolist(), strict=True):
        found[name] = found.get(name, 0.0) + amount
    return found


class Weights(Explanation):
    """A linear model, one row of ``coef_`` for each machine."""

    @property
    def _coef(self) -> NDArray[np.float64]:
        coef = self.model.coef_
        return np.atleast_2d(np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef, np.float64))

    def data(self, inputs: Callable[[], Inputs]) -> Learned:
        found = inputs()
        machines = zip(self._sides(), self._coef * found.factors, strict=True)
        lessons = [Lesson(*side, evidence=_evidence(w, found.columns)) for side, w in machines]
        return Learned("weights", tuple(lessons), len(found.columns), unit=found.unit)

    def in_words(self) -> str:
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


def _evidence(w: NDArray[np.float64], columns: list[InputColumn]) -> tuple[Evidence, ...]:
    """The strongest weights. Only their ratios mean anything: a perceptron's w may have any length."""
    strongest = float(np.abs(w).max(initial=0.0))
    if strongest == 0 or not np.isfinite(strongest):
        return ()
    shares = w / strongest
    # Words that speak against it are listed by themselves, or those that speak for it could leave no room for them.
    is_against = np.array([column.is_word for column in columns]) & (shares < 0)
    found = []
    for side in (False, True):
        own = np.flatnonzero((is_against == side) & (np.abs(shares) >= LEAST_SHOWN))
        order = own[np.argsort(-np.abs(shares[own]), kind="stable")][:SHOWN_PER_CLASS]
        found += [Evidence(columns[j].column, columns[j].words(shares[j]), float(shares[j]), side) for j in order]
    return tuple(found)


class Kernels(Explanation):
    """A kernel machine, f(x) = Σ β K(x, support vector) + b."""

    def data(self, inputs: Callable[[], Inputs]) -> Learned:
        lessons = [
            Lesson(*side, n_rows_for=int((beta > 0).sum()), n_rows_against=int((beta < 0).sum()))
            for side, beta in zip(self._sides(), self._betas(), strict=True)
        ]
        return Learned("rows", tuple(lessons), len(self.model.support_), self.model.n_rows_)

    def in_words(self) -> str:
        of_all = f" of {self.model.n_rows_:,}" if self.model.n_rows_ else ""
        shape = "A boundary that bends, with as wide a margin as possible"
        if self.task == "numbers":
            shape = "A curve that may bend"
        return (
            f"{shape}: it compares a row with the {len(self.model.support_):,}{of_all} training rows that it remembers "
            f"({self.called})."
        )

    def support(self, row: Any, code: int, other: int) -> Support | None:
        machine, sign = self._machine(code, other)
        if callable(self.model.kernel) or self.model.kernel == "precomputed" or machine is None:
            return None
        vectors = self.model.support_vectors_
        kernel = np.asarray(self._kernel(row, vectors), np.float64).ravel()
        return Support(np.asarray(self.model.support_), vectors, kernel, sign * self._betas()[machine] * kernel)

    def _kernel(self, rows: Any, vectors: Any) -> NDArray[np.float64]:
        raise NotImplementedError

    def _betas(self) -> NDArray[np.float64]:
        """β of each machine."""
        return np.asarray(self.model.dual_coef_, np.float64)

    def _machine(self, code: int, other: int) -> tuple[int | None, int]:
        """The machine that speaks for the class, and on which of its sides that is."""
        n_machines = len(self._betas())
        if n_machines == 1:
            return 0, 1 if self.classes is None or code == 1 else -1
        return (code, 1) if n_machines == len(self.model.classes_) else (None, 1)
