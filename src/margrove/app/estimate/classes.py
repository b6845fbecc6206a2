"""The task of predicting classes, scored by accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from margrove.app.estimate.intervals import Interval, share_interval
from margrove.app.estimate.task import Estimate, Labels, Predicted, Rows, Task
from margrove.app.models import last_step_of
from margrove.data import Table

NO_BETTER = "No better than the baseline:"
NEARLY_PERFECT = 0.999  # an accuracy from which on a tenth of a per cent is too coarse


class _Classes(Task):
    name, measure, is_number = "classify", "accuracy", False
    too_few = "at least two classes need two or more rows each"
    splitter = StratifiedKFold
    sampled = ", stratified by class"
    not_below = "accuracy below is not"
    heading = "Accuracy on unseen {}s"
    prefix = "accuracy "
    columns, size_column = ("accuracy in %\n(95 % interval)",), "size"
    without_estimate = "Accuracy"
    useless = ""
    searched = "are compared with default parameters; `margrove train` searches C, and gamma for svm."

    def most_folds(self, labels: Labels) -> int:
        """Return the size of the second largest class, so that each round has two classes to learn."""
        sizes = np.sort(np.unique(labels, return_counts=True)[1])
        return int(sizes[-2]) if len(sizes) > 1 else 0

    def fold_count(self, labels: Labels, wanted: int) -> tuple[int, tuple[str, ...]]:
        most = self.most_folds(labels)
        if most < 2:
            return 0, (f"not estimated: {self.too_few}",)
        n_folds = min(wanted, most)
        notes = [f"{n_folds} folds, because a class has only {n_folds} rows"] if n_folds < wanted else []
        n_small = int(np.sum(np.unique(labels, return_counts=True)[1] < n_folds))
        if n_small:
            words = "1 class has" if n_small == 1 else f"{n_small} classes have"
            notes.append(f"{words} fewer rows than there are folds, so not every fold tests them")
        return n_folds, tuple(notes)

    def draw(self, labels: Labels, most: int, rng: np.random.Generator) -> Rows:
        """Draw of each class in its proportion, and at least two rows, if it has them: one to train on, one to test."""
        own = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        counts = [min(len(rows), max(2, round(most * len(rows) / len(labels)))) for rows in own]
        return np.concatenate([rng.choice(rows, n, replace=False) for rows, n in zip(own, counts, strict=True)])

    def score(self, truth: Labels, predicted: NDArray[Any], learned: Labels) -> float:
        return float(np.mean(predicted == truth))

    def resolution(self, n_rows: int) -> float:
        """Return half a row: folds differ in size by a row, so that the same number of errors gives other means."""
        return 0.5 / max(1, n_rows)

    def is_perfect(self, score: float, n_rows: int) -> bool:
        return score >= 1 - self.resolution(n_rows)

    def beside(self, model: Any, asked: Table, labels: Labels, learned: Labels, has_scores: bool) -> dict[str, Any]:
        return {"scores": _scores_of(model, asked, np.unique(labels))} if has_scores else {}

    def scored(self, labels: Labels, parts: Sequence[Predicted], n_rounds: int, seed: int) -> dict[str, Any]:
        classes, counts = np.unique(labels, return_counts=True)
        largest = int(np.argmax(counts))
        baseline = {"baseline": float(counts[largest] / len(labels)), "baseline_class": classes[largest].item()}
        if not parts:
            return baseline
        right = [part.values == labels[part.rows] for part in parts]
        accuracies = tuple(float(np.mean(each)) for each in right)
        n_right, n_tested = sum(int(each.sum()) for each in right), sum(map(len, right))
        interval = share_interval(n_right, n_tested, n_rounds, len(labels))
        return {"rounds": accuracies, "value": float(np.mean(accuracies)), "interval": interval, **baseline}

    def details(self, estimate: Estimate) -> dict[str, Any]:
        return {
            "accuracies": list(estimate.rounds),
            "mean": estimate.value,
            "baseline": estimate.baseline,
            "baseline_class": estimate.baseline_class,
        }

    def number(self, score: float, decimals: int = 1) -> str:
        return f"{100 * score:.{decimals}f} %"

    def words(self, estimate: Estimate, decimals: int | None = None) -> str:
        """Return the value with two decimals where one would round to perfection, or with ``decimals``."""
        if estimate.value is None:
            return "-"
        d = decimals_of(estimate) if decimals is None else decimals
        ends = "" if estimate.interval is None else f", 95 % interval {_ends(estimate.interval, d)} %"
        return f"{self.number(estimate.value, d)}{ends}"

    def cells(self, estimate: Estimate, decimals: int) -> tuple[str, ...]:
        if estimate.value is None or estimate.interval is None:
            return ("-",)
        return (f"{100 * estimate.value:.{decimals}f} ({_ends(estimate.interval, decimals)})",)

    def rank(self, estimate: Estimate) -> tuple[float, ...]:
        assert estimate.value is not None
        return (round(estimate.value, 12),)

    def context(self, estimate: Estimate) -> list[str]:
        baseline = self.number(estimate.baseline)
        return [f"Baseline: {baseline} by always predicting {str(estimate.baseline_class)!r}"]

    def baseline_words(self, estimate: Estimate) -> str:
        label = repr(str(estimate.baseline_class))
        return f", on unseen rows; always predicting {label} scores {self.number(estimate.baseline)}"

    def uselessness(self, estimate: Estimate, noun: str = "row") -> str:
        if estimate.value is None or estimate.value > estimate.baseline:
            return ""
        where = "these columns. Try `margrove compare`."
        if noun == "picture":
            where = "these pictures. Try another --model, or another --network."
        return f"{NO_BETTER} this learner finds no signal in {where}"


def _scores_of(model: Any, table: Table, classes: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return a column of scores for each class: probabilities where the model has them, else decision values, else
    None; for a class that the model has not met, the least there is."""
    own, least = last_step_of(model).classes_, 0.0
    if hasattr(model, "predict_proba"):
        values = np.asarray(model.predict_proba(table), np.float64)
    elif not hasattr(model, "decision_function"):
        return None
    else:
        values = np.asarray(model.decision_function(table), np.float64)
        if values.ndim == 1:
            values = np.column_stack([-values, values])
        least = float(values.min(initial=0.0))
    scores = np.full((len(values), len(classes)), least)
    scores[:, np.searchsorted(classes, own)] = values
    return scores


def _ends(interval: Interval, decimals: int) -> str:
    return " … ".join(f"{100 * end:.{decimals}f}" for end in interval)


def decimals_of(estimate: Estimate) -> int:
    """Return the decimals of per cent: one, or two where one would round to perfection."""
    return 2 if estimate.value is not None and estimate.value >= NEARLY_PERFECT else 1


CLASSES = _Classes()
