"""An honest estimate where the target is a number: how far off a model is on rows that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from margrove.boost.learners import is_plain_tree
from margrove.boost.regressor import AdaBoostRegressor
from margrove.data import Table
from margrove.errors import ParameterError
from margrove.surface.answers import Answers
from margrove.surface.display import part_of
from margrove.surface.meter import Meter
from margrove.surface.models import learner_of
from margrove.surface.screen import Screen
from margrove.surface.validation import Folds, ModelMaker, refuse_interrupted


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
    >>> from margrove.surface.regression import deviation_of
    >>> deviation_of(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.5]), 2.0)
    Deviation(r2=0.875, mean_absolute_error=0.16666666666666666)
    """
    off, spread = truth - estimates, float(((truth - mean) ** 2).sum())
    return Deviation(1 - float((off**2).sum()) / spread if spread > 0 else None, float(np.abs(off).mean()))


@dataclass(frozen=True)
class NumberEstimate:
    """What cross-validation says of a regression, each row estimated by a model that has not seen it.

    ``baseline`` is the mean absolute error of always answering the median of the other rows. No folds: no estimate, and
    why.
    """

    overall: Deviation | None
    errors: tuple[float, ...]  # the mean absolute error of each fold
    baseline: float | None
    notes: tuple[str, ...] = ()
    answers: Answers | None = None  # of all rows

    @property
    def words(self) -> str:
        """In one line; a dash without an estimate."""
        if self.overall is None:
            return "-"
        return f"{self.overall.words} ± {np.std(self.errors):.2g}"

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        overall = self.overall
        return {
            "method": "none" if overall is None else "cross-validation",
            "folds": len(self.errors),
            "r2": None if overall is None else overall.r2,
            "mean_absolute_error": None if overall is None else overall.mean_absolute_error,
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

    if wanted < 0 or wanted == 1:
        raise ParameterError(f"--folds is {wanted}; it must be at least 2, or 0 for no cross-validation.")
    if wanted == 0:
        return Folds((), ("not estimated, as asked (--folds 0)",))
    n_folds = min(wanted, table.n_rows)
    if n_folds < 2:
        return Folds((), ("not estimated: there is a single row",))
    notes = [f"{n_folds} folds, since there are only {n_folds} rows"] if n_folds < wanted else []
    splitter = KFold(n_folds, shuffle=True, random_state=seed)
    return Folds(tuple(test for _, test in splitter.split(np.zeros(table.n_rows))), tuple(notes))


def cross_validate_numbers(make_model: ModelMaker, table: Table, folds: Folds, meter: Meter) -> NumberEstimate:
    """Train on all folds but one, estimate that one, for each fold."""
    if not folds.tests:
        return NumberEstimate(None, (), None, folds.notes)
    truth = np.asarray(table.labels(), np.float64)
    estimates, means, medians = np.empty(len(truth)), np.empty(len(truth)), np.empty(len(truth))
    for number, test in enumerate(folds.tests, start=1):
        meter.begin(f"cross-validation, fold {number} of {len(folds.tests)}")
        train = np.setdiff1d(np.arange(len(truth)), test, assume_unique=True)
        model = make_model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
            model.fit(table.take(train), truth[train])
            refuse_interrupted(model)
            estimates[test] = model.predict(table.take(test))
        means[test], medians[test] = truth[train].mean(), np.median(truth[train])
        meter.advance()
    off = np.abs(truth - estimates)
    return NumberEstimate(
        overall=deviation_of(truth, estimates, means),
        errors=tuple(float(off[test].mean()) for test in folds.tests),
        baseline=float(np.abs(truth - medians).mean()),
        notes=folds.notes,
        answers=Answers(np.arange(len(truth)), estimates, None, type(learner_of(model)).__name__, means),
    )


def tell_number_estimate(screen: Screen, estimate: NumberEstimate) -> None:
    """Print how far off the model is, what that means, and how far off knowing nothing would be."""
    screen.heading("How far off it is on rows it has not seen")
    overall, n = estimate.overall, len(estimate.errors)
    if overall is not None:
        how = (
            f"± standard deviation of {n} rounds: each learns from the other rows and is tested on its own {part_of(n)}"
        )
        screen.say(Text.assemble((estimate.words, "bold"), f"  ({how})"), indent=2)
    for note in estimate.notes:
        screen.say(note, indent=2)
    if overall is None or estimate.baseline is None:
        return
    screen.say("R² is the share of the squared deviations from the mean that it explains: 1 is perfect", indent=2)
    screen.say(f"{estimate.baseline:.4g} would be the error of always answering the median", indent=2)
    if overall.r2 is not None and overall.r2 <= 0:
        text = "It is no better than the mean: this learner finds nothing in these columns."
        screen.say(text, style="yellow", indent=2)
