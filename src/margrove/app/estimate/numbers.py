"""An honest estimate where the target is a number: how far off a model is on rows that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from margrove.app.estimate.classes import Folds, ModelMaker, check_folds, refuse_interrupted
from margrove.app.estimate.intervals import WIDENED, Interval, excess, r2_interval
from margrove.app.estimate.predictions import Answers, joined
from margrove.app.models import learner_of
from margrove.app.screen.console import Screen
from margrove.app.screen.display import part_of
from margrove.app.screen.progress import Meter
from margrove.boost.learners import is_plain_tree
from margrove.boost.regressor import AdaBoostRegressor
from margrove.data import Table
from margrove.errors import ParameterError


@dataclass(frozen=True)
class Deviation:
    """How far estimates are from the truth.

    ``r2`` is 1 − Σ(y − ŷ)²/Σ(y − m)², m the mean of the rows that were learned from: 1 is perfect, 0 no better than
    that. None where all y are m.
    """

    r2: float | None
    mean_absolute_error: float

    @property
    def words(self) -> str:
        """Both, to three digits."""
        r2 = "" if self.r2 is None else f"R² {self.r2:.3f}, "
        return f"{r2}mean absolute error {self.mean_absolute_error:.4g}"


def deviation_of(truth: NDArray[np.float64], estimates: NDArray[np.float64], mean: Any) -> Deviation:
    """How far the estimates are off; ``mean`` is what they are compared with.

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.app.estimate.numbers import deviation_of
    >>> deviation_of(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.5]), 2.0)
    Deviation(r2=0.875, mean_absolute_error=0.16666666666666666)
    """
    off, spread = truth - estimates, float(((truth - mean) ** 2).sum())
    return Deviation(1 - float((off**2).sum()) / spread if spread > 0 else None, float(np.abs(off).mean()))


@dataclass(frozen=True)
class NumberEstimate:
    """What cross-validation says of a regression, each row estimated by a model that has not seen it.

    ``baseline`` is the mean absolute error of always answering the median of the other rows. ``method`` is as in
    `Estimate`, ``interval`` the 95 % interval of R². No folds: no estimate, and why.
    """

    overall: Deviation | None
    errors: tuple[float, ...]  # the mean absolute error of each fold
    baseline: float | None
    notes: tuple[str, ...] = ()
    method: str = "cross-validation"
    n_tested: int = 0  # rows
    standard_error: float = 0.0  # of the mean absolute error
    answers: Answers | None = None  # of the rows tested
    interval: Interval | None = None  # 95 %, of R²

    @property
    def words(self) -> str:
        """In one line; a dash without an estimate."""
        if self.overall is None:
            return "-"
        off = f"mean absolute error {self.overall.mean_absolute_error:.4g}"
        if self.overall.r2 is None:
            return off
        ends = "" if self.interval is None else ", 95 % interval {:.3f} … {:.3f}".format(*self.interval)
        return f"R² {self.overall.r2:.3f}{ends}; {off}"

    @property
    def is_of_use(self) -> bool:
        """Whether it is off by less than the median is, and explains something; True without an estimate."""
        if self.overall is None or self.baseline is None:
            return True
        return self.overall.mean_absolute_error < self.baseline and (self.overall.r2 is None or self.overall.r2 > 0)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        overall = self.overall
        return {
            "method": "none" if overall is None else self.method,
            "folds": len(self.errors),
            "r2": None if overall is None else overall.r2,
            "low": None if self.interval is None else self.interval[0],
            "high": None if self.interval is None else self.interval[1],
            "mean_absolute_error": None if overall is None else overall.mean_absolute_error,
            "standard_error": None if overall is None else self.standard_error,
            "mean_absolute_errors": list(self.errors),
            "baseline_mean_absolute_error": self.baseline,
            "notes": list(self.notes),
        }


def check_vote_of_numbers(learner: Any, table: Table, params: Iterable[str]) -> None:
    """Refuse trees that are pruned, tested or drawn at random where a vote of numbers has categories: they are grown
    each by itself, on rows that are drawn, some without all levels, and so are no vote on the same columns.

    Raises
    ------
    ParameterError
    """
    if not isinstance(learner, AdaBoostRegressor) or is_plain_tree(learner.estimator, learner.engine):
        return
    if table.sparse is not None or table.block is not None:
        return
    name = next((column.name for column in table if column.kind == "category"), None)
    if name is not None:
        typed = ", ".join(param for param in params if param.startswith(("estimator", "engine")))
        raise ParameterError(
            f"--param {typed}: such a tree is grown from the rows drawn for it alone, which may lack levels of the "
            f"category {name!r}, so that the trees are no vote on the same columns. Leave it out, or use --model tree."
        )


def plain_folds(table: Table, wanted: int, seed: int) -> Folds:
    """Folds of rows in a random order; fewer where there are fewer rows.

    Raises
    ------
    ParameterError
        If ``wanted`` is negative or 1.
    """
    from sklearn.model_selection import KFold

    check_folds(wanted)
    if wanted == 0:
        return Folds((), ("not estimated, as asked (--folds 0)",))
    n_folds = min(wanted, table.n_rows)
    if n_folds < 2:
        return Folds((), ("not estimated: there is a single row",))
    notes = [f"{n_folds} folds, since there are only {n_folds} rows"] if n_folds < wanted else []
    splitter = KFold(n_folds, shuffle=True, random_state=seed)
    return Folds(tuple(test for _, test in splitter.split(np.zeros(table.n_rows))), tuple(notes))


def cross_validate_numbers(
    make_model: ModelMaker, table: Table, folds: Folds, meter: Meter, title: str = "cross-validation"
) -> NumberEstimate:
    """Train on all folds but one, estimate that one, for each fold."""
    truth = np.asarray(table.labels(), np.float64)
    rounds = []
    for number, test in enumerate(folds.tests, start=1):
        meter.begin(f"{title}, fold {number} of {len(folds.tests)}")
        train = np.setdiff1d(np.arange(len(truth)), test, assume_unique=True)
        model = make_model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
            model.fit(table.take(train), truth[train])
            refuse_interrupted(model)
            rounds.append(NumberRound.of(model, table, train, test))
        meter.advance()
    return estimate_of(rounds, folds.notes, n_rows=len(truth))


@dataclass(frozen=True)
class NumberRound:
    """What one round said of its rows, and the numbers that it had learned from."""

    rows: NDArray[np.int64]  # of the table
    truth: NDArray[np.float64]
    estimates: NDArray[np.float64]
    learned_from: NDArray[np.float64]
    learner: str  # that estimated

    @classmethod
    def of(cls, model: Any, table: Table, train: NDArray[np.int64], test: NDArray[np.int64]) -> Self:
        """What a model, fitted to the rows ``train``, says of the rows ``test``."""
        truth = np.asarray(table.labels(), np.float64)
        estimates = np.asarray(model.predict(table.take(test)))
        return cls(test, truth[test], estimates, truth[train], type(learner_of(model)).__name__)

    @property
    def answers(self) -> Answers:
        """As whoever judges it keeps them."""
        means = np.full(len(self.rows), self.learned_from.mean())
        return Answers(self.rows, self.estimates, None, self.learner, means)

    @property
    def off(self) -> NDArray[np.float64]:
        """How far each estimate is from the truth."""
        return np.abs(self.truth - self.estimates)


def estimate_of(
    rounds: Sequence[NumberRound], notes: tuple[str, ...], method: str = "cross-validation", *, n_rows: int
) -> NumberEstimate:
    """What the rounds come to, on a table of so many rows."""
    if not rounds:
        return NumberEstimate(None, (), None, notes, "none")
    truth, estimates, off = (
        np.concatenate([getattr(each, name) for each in rounds]) for name in ("truth", "estimates", "off")
    )
    sizes = [len(each.truth) for each in rounds]
    means = np.repeat([each.learned_from.mean() for each in rounds], sizes)
    medians = np.repeat([np.median(each.learned_from) for each in rounds], sizes)
    return NumberEstimate(
        overall=deviation_of(truth, estimates, means),
        errors=tuple(float(each.off.mean()) for each in rounds),
        baseline=float(np.abs(truth - medians).mean()),
        notes=notes,
        method=method,
        n_tested=len(truth),
        standard_error=float(off.std() * np.sqrt(excess(len(off), len(rounds), n_rows) / len(off))),
        answers=joined([each.answers for each in rounds]),
        interval=r2_interval(truth, estimates, means, n_rounds=len(rounds), n_rows=n_rows),
    )


def tell_number_estimate(screen: Screen, estimate: NumberEstimate) -> None:
    """Print how far off the model is, what that means, and how far off knowing nothing would be."""
    screen.heading("How far off it is on rows it has not seen")
    overall = estimate.overall
    if overall is not None:
        screen.say(Text.assemble((estimate.words, "bold"), f"  ({how_numbers_words(estimate)})"), indent=2)
    for note in estimate.notes:
        screen.say(note, indent=2)
    if overall is None or estimate.baseline is None:
        return
    screen.say("R² is the share of the squared deviations from the mean that it explains: 1 is perfect", indent=2)
    screen.say(f"{estimate.baseline:.4g} would be the error of always answering the median", indent=2)
    if not estimate.is_of_use:
        screen.say(f"{_no_use(estimate)} Try `margrove compare`.", style="yellow", indent=2)


def how_numbers_words(estimate: NumberEstimate) -> str:
    """What was done to get the numbers, so that nobody takes them for others."""
    n = len(estimate.errors)
    if estimate.method == "hold-out":
        rows = f"{estimate.n_tested:,} row{'' if estimate.n_tested == 1 else 's'}"
        return f"a final hold-out: {rows} that neither the search nor the fit tested here saw"
    rounds = f"{n} rounds"
    if estimate.method == "nested":
        return (
            f"nested, {rounds}: each searches the other rows anew, learns from them and is tested on its own "
            f"{part_of(n)}; {WIDENED}"
        )
    return f"{rounds}: each learns from the other rows and is tested on its own {part_of(n)}; {WIDENED}"


def _no_use(estimate: NumberEstimate) -> str:
    """Which of two simple answers it does not beat."""
    assert estimate.overall is not None
    if estimate.overall.r2 is not None and estimate.overall.r2 <= 0:
        return "It is no better than the mean: this learner finds nothing in these columns."
    return "It is further off than the median, though it follows the large deviations, which R² counts most."
