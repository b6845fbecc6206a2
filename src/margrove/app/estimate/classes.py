"""An honest estimate: the accuracy on rows that the model has not seen, by stratified folds."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.app.estimate.intervals import Interval, share_interval
from margrove.app.estimate.predictions import Answers, answered, joined
from margrove.app.models import learner_of
from margrove.app.screen.progress import Meter
from margrove.data import Table
from margrove.errors import InfeasibleError, ParameterError
from margrove.status import Status

ModelMaker = Callable[[], Any]


@dataclass(frozen=True)
class Estimate:
    """Accuracies of the folds, beside what answering the largest class would score. No folds: no estimate, and why.

    ``method`` is "cross-validation" where nothing is searched, "nested" where each fold searches anew, "hold-out" where
    there is one search and ``n_tested`` rows that it did not see, and "none".
    """

    accuracies: tuple[float, ...]
    baseline: float
    baseline_class: Any
    notes: tuple[str, ...] = ()
    method: str = "cross-validation"
    n_tested: int = 0
    answers: Answers | None = None  # of all rows that were tested, where they were kept
    interval: Interval | None = None  # 95 %; see `margrove.app.estimate.intervals`

    @property
    def mean(self) -> float:
        """The mean accuracy over the folds."""
        return float(np.mean(self.accuracies))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        is_there = bool(self.accuracies)
        return {
            "method": self.method if is_there else "none",
            "folds": len(self.accuracies),
            "accuracies": list(self.accuracies),
            "mean": self.mean if is_there else None,
            "low": None if self.interval is None else self.interval[0],
            "high": None if self.interval is None else self.interval[1],
            "baseline": self.baseline,
            "baseline_class": self.baseline_class,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Folds:
    """Which rows are held back in each round; the same for every learner that is compared."""

    tests: tuple[np.ndarray, ...]
    notes: tuple[str, ...] = ()


def check_folds(wanted: int) -> None:
    """Raise `ParameterError` if ``wanted`` is negative or 1."""
    if wanted < 0 or wanted == 1:
        raise ParameterError(f"--folds is {wanted}; it must be at least 2, or 0 for no cross-validation.")


def stratified_folds(table: Table, wanted: int, seed: int) -> Folds:
    """Folds that hold each class in its proportion; fewer, or none, where a class is too small, and that is said.

    Raises
    ------
    ParameterError
        If ``wanted`` is negative or 1.
    """
    from sklearn.model_selection import StratifiedKFold

    check_folds(wanted)
    if wanted == 0:
        return Folds((), ("not estimated, as asked (--folds 0)",))
    labels = table.labels()
    sizes = sorted(Counter(labels.tolist()).values(), reverse=True)
    if sizes[1] < 2:
        return Folds((), ("not estimated: all classes but one have a single row",))
    # The second largest class, so that each round has two classes to learn; smaller classes miss some rounds.
    n_folds = min(wanted, sizes[1])
    notes = [f"{n_folds} folds, since a class has only {n_folds} rows"] if n_folds < wanted else []
    if sizes[-1] < n_folds:
        n_small = sum(size < n_folds for size in sizes)
        words = "1 class has" if n_small == 1 else f"{n_small} classes have"
        notes.append(f"{words} fewer rows than there are folds, so not every fold tests them")
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's word on small classes: said above
        tests = tuple(test for _, test in splitter.split(np.zeros(len(labels)), labels))
    return Folds(tests, tuple(notes))


def cross_validate(
    make_model: ModelMaker, table: Table, folds: Folds, meter: Meter, title: str, *, keeps_answers: bool = False
) -> Estimate:
    """Train on all folds but one, test on that one, for each fold."""
    labels = table.labels()
    accuracies: list[float] = []
    answers: list[Answers] = []
    for number, test in enumerate(folds.tests, start=1):
        meter.begin(f"{title}, fold {number} of {len(folds.tests)}")
        train = np.setdiff1d(np.arange(len(labels)), test, assume_unique=True)
        model = make_model()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit on all rows gives the same warnings once
            try:
                model.fit(table.take(train), labels[train])
            except InfeasibleError:  # the fit on all rows says why, and names rows of the table
                notes = (*folds.notes, f"not estimated: without fold {number} the problem has no solution")
                return Estimate((), *baseline_of(labels), notes)
            refuse_interrupted(model)
            asked = table.take(test)
            said = model.predict(asked)
            accuracies.append(float(np.mean(said == labels[test])))
            if keeps_answers:
                answers.append(answered(model, asked, test, said, labels))
        meter.advance()
    kept = joined(answers) if answers else None
    ends = interval_of(accuracies, folds, len(labels))
    return Estimate(tuple(accuracies), *baseline_of(labels), folds.notes, answers=kept, interval=ends)


def interval_of(accuracies: Sequence[float], folds: Folds, n_rows: int) -> Interval | None:
    """The 95 % interval of the accuracy that the first folds came to, one for each number; None without any."""
    sizes = [len(test) for test in folds.tests[: len(accuracies)]]
    if not sizes:
        return None
    n_right = sum(round(share * size) for share, size in zip(accuracies, sizes, strict=True))
    return share_interval(n_right, sum(sizes), len(sizes), n_rows)


def baseline_of(labels: np.ndarray) -> tuple[float, Any]:
    """What answering the largest class would score, and that class."""
    values, counts = np.unique(labels, return_counts=True)
    largest = int(np.argmax(counts))
    return float(counts[largest] / len(labels)), values[largest].item()


def refuse_interrupted(model: Any) -> None:
    """A solver answers Ctrl-C by keeping what it has; in a fold that is no estimate, so the Ctrl-C goes on."""
    if learner_of(model).status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt
