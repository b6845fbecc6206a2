"""The task of predicting classes, scored by accuracy or another metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from margrove.app.estimate.intervals import Interval, bootstrap_interval, share_interval
from margrove.app.estimate.metrics import ACCURACY, Judged, Metric, metric_named, scores_of
from margrove.app.estimate.relation import relation_of_classes
from margrove.app.estimate.task import Estimate, Labels, Predicted, Rows, Task
from margrove.data import Table

NEARLY_PERFECT = 0.999  # an accuracy from which on a tenth of a per cent is too coarse


class Classes(Task):
    name, is_number = "classify", False
    too_few = "at least two classes need two or more rows each"
    splitter = StratifiedKFold
    sampled = ", stratified by class"
    size_column = "size"
    useless = ""
    searched = "are compared with default parameters; `margrove train` searches C, and gamma for svm."

    def __init__(self, metric: Metric) -> None:
        super().__init__(metric)
        self.value_name = metric.words
        unit = f"{metric.words}{' in %' if metric.is_share else ''}"
        self.not_below = f"{metric.words} below is not"
        self.heading, self.without_estimate = f"{metric.title} on unseen {{}}s", metric.title
        self.prefix, self.columns = f"{metric.words} ", (f"{unit}\n(95 % interval)",)

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

    def score(self, labels: Labels, part: Predicted) -> float:
        return self.metric.score(Judged.of(labels, labels[part.rows], part.values, part.scores))

    def resolution(self, n_rows: int) -> float:
        """Return half a row: folds differ in size by a row, so that the same number of errors gives other means."""
        return 0.5 / max(1, n_rows)

    def is_perfect(self, score: float, n_rows: int) -> bool:
        return self.metric.natural(score) == 0 if self.metric.is_loss else score >= 1 - self.resolution(n_rows)

    def beside(self, model: Any, asked: Table, labels: Labels, learned: Labels, has_scores: bool) -> dict[str, Any]:
        return {"scores": scores_of(model, asked, np.unique(labels))} if has_scores else {}

    def scored(self, labels: Labels, parts: Sequence[Predicted], n_rounds: int, seed: int) -> dict[str, Any]:
        judged = [Judged.of(labels, labels[part.rows], part.values, part.scores) for part in parts]
        found = self.judged(judged, Judged.of(labels, labels, labels), n_rounds, seed)
        if parts and found["value"] <= found["baseline"]:
            found["relation"] = relation_of_classes(judged, seed)
        return found

    def judged(self, parts: Sequence[Judged], whole: Judged, n_rounds: int, seed: int = 0) -> dict[str, Any]:
        """Return the scores of the parts of all rows, with their interval, and that of the best constant."""
        constant, label = self.metric.constant(whole)
        found: dict[str, Any] = {"baseline": constant, "baseline_class": label.item()}
        if not parts:
            return found
        n_rows, sizes = len(whole.truth), [len(each.truth) for each in parts]
        rounds, table = tuple(self.metric.score(each) for each in parts), sum(each.table[0] for each in parts)
        value = float(np.mean(rounds))
        found["accuracy"] = float(np.mean([np.mean(each.truth == each.values) for each in parts]))
        if self.metric is ACCURACY:
            interval: Interval | None = share_interval(int(np.trace(table)), sum(sizes), n_rounds, n_rows)
        else:
            again, counts = self._again(parts), {"n_rounds": n_rounds, "n_rows": n_rows, "n_columns": len(table)}
            interval = bootstrap_interval(value, again, sizes, **counts, most=1.0, seed=seed)
        is_never = (table.sum(axis=1) > 0) & (table.sum(axis=0) == 0)
        never = tuple(whole.classes[is_never].astype(str).tolist())
        return {**found, "rounds": rounds, "value": value, "interval": interval, "never": never}

    def _again(self, judged: Sequence[Judged]) -> Callable[[NDArray[np.intp]], float]:
        """Return a function that scores some rows of each part again, by their places in all parts."""
        ends = np.cumsum([0, *(len(each.truth) for each in judged)])

        def again(rows: NDArray[np.intp]) -> float:
            drawn = np.split(rows, ends[1:-1])
            parts = zip(judged, drawn, ends[:-1], strict=True)
            return float(np.mean([self.metric.score(each.take(own - start)) for each, own, start in parts]))

        return again

    def details(self, estimate: Estimate) -> dict[str, Any]:
        return {
            "metric": self.metric.name,
            "scores": [self.natural(score) for score in estimate.rounds],
            "mean": None if estimate.value is None else self.natural(estimate.value),
            "accuracy": estimate.accuracy,
            "baseline": self.natural(estimate.baseline),
            "baseline_class": estimate.baseline_class,
            "never_predicted": list(estimate.never),
        }

    def words(self, estimate: Estimate, decimals: int | None = None) -> str:
        """Return the value with two decimals where one would round to perfection, or with ``decimals``."""
        if estimate.value is None:
            return "-"
        d = decimals_of(estimate) if decimals is None else decimals
        ends = "" if estimate.interval is None else f", 95 % interval {self._ends(estimate.interval, d)}"
        return f"{self.number(estimate.value, d)}{ends}{' %' if ends and self.metric.is_share else ''}"

    def cells(self, estimate: Estimate, decimals: int) -> tuple[str, ...]:
        if estimate.value is None or estimate.interval is None:
            return ("-",)
        value = self.number(estimate.value, decimals).removesuffix(" %")
        return (f"{value} ({self._ends(estimate.interval, decimals)})",)

    def rank(self, estimate: Estimate) -> tuple[float, ...]:
        assert estimate.value is not None
        return (round(estimate.value, 12),)

    def context(self, estimate: Estimate) -> list[str]:
        lines = [f"Baseline: {self.number(estimate.baseline)} by {self._constant(estimate)}"]
        if self.metric is not ACCURACY and estimate.accuracy is not None:
            lines.append(f"Accuracy: {ACCURACY.show(estimate.accuracy)}")
        return lines

    def _constant(self, estimate: Estimate) -> str:
        if self.needs_scores:
            return "always giving each class its share of the rows"
        return f"always predicting {str(estimate.baseline_class)!r}"

    def baseline_words(self, estimate: Estimate) -> str:
        return f", on unseen rows; {self._constant(estimate)} scores {self.number(estimate.baseline)}"

    def uselessness(self, estimate: Estimate, noun: str = "row") -> str:
        if estimate.value is None or estimate.value > estimate.baseline:
            return ""
        cure = "Try another --model, or another --network." if noun == "picture" else "Try `margrove compare`."
        return f"Its {self.measure} is no better than the baseline. {estimate.relation or cure}"

    def _ends(self, interval: Interval, decimals: int) -> str:
        ends = sorted(interval, key=self.metric.natural)
        return " … ".join(self.number(end, decimals).removesuffix(" %") for end in ends)


def decimals_of(estimate: Estimate) -> int:
    """Return the decimals of per cent: one, or two where one would round to perfection."""
    return 2 if estimate.value is not None and NEARLY_PERFECT <= estimate.value < 1 else 1


@cache
def classes_by(metric: str) -> Classes:
    """Return the task of predicting classes, scored by this metric."""
    return Classes(metric_named(metric))


CLASSES = Classes.usual = classes_by(ACCURACY.name)
