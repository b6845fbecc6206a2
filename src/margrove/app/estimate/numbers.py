"""The task of predicting numbers, scored by R² or another metric, and described by R² and the mean absolute error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from margrove.app.estimate.intervals import bootstrap_interval, excess
from margrove.app.estimate.metrics import R2, Judged, Metric, metric_named
from margrove.app.estimate.relation import relation_of_numbers
from margrove.app.estimate.task import Deviation, Estimate, Labels, Predicted, Rows, Task
from margrove.data import Table
from margrove.data.formats import Format
from margrove.tree.words import amount_text

_SAME = 5e-4  # R² are printed with three digits
_NO_ERROR = 1e-9  # of R²


def deviation_of(judged: Judged, form: Format | None = None) -> Deviation:
    """Return how far the estimates are off; R² compares them with the means."""
    r2 = R2.score(judged)
    return Deviation(None if np.isnan(r2) else r2, float(np.abs(judged.truth - judged.values).mean()), form=form)


class Numbers(Task):
    """Predicting numbers, written in a format."""

    name, is_number, value_name = "regress", True, "R²"

    def __init__(self, metric: Metric, form: Format | None = None) -> None:
        super().__init__(metric)
        self.form = form
        self.is_other = metric.name not in ("r2", "mae")  # than those that are always shown
        error = metric.words if self.is_other else "mean absolute error"
        self.columns = ("R²\n(95 % interval)", error.replace(" ", "\n"))

    too_few = "there are too few rows"
    splitter = KFold
    sampled = ""
    not_below = "errors below are not"
    heading = "Error on unseen {}s"
    prefix = ""
    size_column = "size"
    without_estimate = "Errors:"
    searched = "is compared with default parameters; `margrove train` searches its C."
    useless = "None is useful: the best is no better than predicting the mean or the median."

    def labels(self, table: Table) -> NDArray[Any]:
        return np.asarray(table.labels(), np.float64)

    def most_folds(self, labels: Labels) -> int:
        """Return folds of two rows each: one alone has no R²."""
        return len(labels) // 2

    def fold_count(self, labels: Labels, wanted: int) -> tuple[int, tuple[str, ...]]:
        n_folds = min(wanted, len(labels))
        if n_folds < 2:
            return 0, ("not estimated: there is a single row",)
        return n_folds, (f"{n_folds} folds, because there are only {n_folds} rows",) if n_folds < wanted else ()

    def draw(self, labels: Labels, most: int, rng: np.random.Generator) -> Rows:
        return rng.choice(len(labels), most, replace=False)

    def score(self, labels: Labels, part: Predicted) -> float:
        return self._score(Judged(labels[part.rows], part.values, means=part.means))

    def _score(self, judged: Judged) -> float:
        score = self.metric.score(judged)
        return 0.0 if np.isnan(score) else score

    def resolution(self, n_rows: int) -> float:
        return _SAME if self.metric is R2 else 0.0

    def is_perfect(self, score: float, n_rows: int) -> bool:
        return score >= (1 - _NO_ERROR if self.metric is R2 else 0.0)

    def beside(self, model: Any, asked: Table, labels: Labels, learned: Labels, has_scores: bool) -> dict[str, Any]:
        n = asked.n_rows
        return {"means": np.full(n, learned.mean()), "medians": np.full(n, np.median(learned))}

    def scored(self, labels: Labels, parts: Sequence[Predicted], n_rounds: int, seed: int) -> dict[str, Any]:
        if not parts:
            return {}
        truth, values, means, medians = (
            np.concatenate(columns)
            for columns in zip(*((labels[p.rows], p.values, p.means, p.medians) for p in parts), strict=True)
        )
        n, judged = len(truth), Judged(truth, values, means=means)
        off, overall = np.abs(truth - values), deviation_of(judged, self.form)
        widened = np.sqrt(excess(n, n_rounds, len(labels)) / n)
        deviation = replace(
            overall, standard_error=float(off.std() * widened), of_median=float(np.abs(truth - medians).mean())
        )
        errors = tuple(float(np.abs(labels[part.rows] - part.values).mean()) for part in parts)
        found = {"rounds": errors, "value": overall.r2, "deviation": deviation, "score": self._score(judged)}
        if overall.r2 is None:
            return found
        counts = {"n_rounds": n_rounds, "n_rows": len(labels)}
        interval = bootstrap_interval(
            overall.r2, lambda rows: R2.score(judged.take(rows)), [n], **counts, most=1.0, seed=seed
        )
        relation = relation_of_numbers(truth, values, seed) if overall.r2 <= 0 else ""
        return {**found, "interval": interval, "relation": relation}

    def details(self, estimate: Estimate) -> dict[str, Any]:
        off = estimate.deviation
        return {
            "metric": self.metric.name,
            "score": None if estimate.score is None else self.metric.natural(estimate.score),
            "r2": estimate.value,
            "mean_absolute_error": None if off is None else off.mean_absolute_error,
            "standard_error": None if off is None else off.standard_error,
            "mean_absolute_errors": list(estimate.rounds),
            "baseline_mean_absolute_error": None if off is None else off.of_median,
        }

    def number(self, score: float, decimals: int = 1) -> str:
        return self.value_text(score) if self.metric is R2 else amount_text(-score, self.form)

    def natural(self, value: float) -> float:
        return value  # R²

    def value_text(self, value: float) -> str:
        return f"{value:.3f}"

    def words(self, estimate: Estimate, decimals: int | None = None) -> str:
        if estimate.deviation is None:
            return "-" if estimate.value is None else f"R² {estimate.value:.3f}"
        error = f"mean absolute error {estimate.deviation.error_text}"
        if estimate.score is not None and self.is_other:
            error = f"{self.named(estimate.score)}; {error}"
        if estimate.value is None:
            return error
        ends = "" if estimate.interval is None else ", 95 % interval {:.3f} … {:.3f}".format(*estimate.interval)
        return f"R² {estimate.value:.3f}{ends}; {error}"

    def cells(self, estimate: Estimate, decimals: int) -> tuple[str, ...]:
        if estimate.deviation is None or estimate.score is None:
            return "-", "-"
        ends = "" if estimate.interval is None else " ({:.3f} … {:.3f})".format(*estimate.interval)
        r2 = "-" if estimate.value is None else f"{estimate.value:.3f}{ends}"
        return r2, self.number(estimate.score) if self.is_other else estimate.deviation.error_text

    def rank(self, estimate: Estimate) -> tuple[float, ...]:
        """Order by the score, or where the target does not vary by the error."""
        assert estimate.deviation is not None
        return round(estimate.score or 0.0, 12), -estimate.deviation.mean_absolute_error

    def context(self, estimate: Estimate) -> list[str]:
        if not estimate.rounds:
            return []
        lines = ["R² is the share of the variance that the model explains; 1 is perfect"]
        if estimate.deviation is not None:
            lines.append(f"Baseline: error {estimate.deviation.baseline_text} by always predicting the median")
        return lines

    def baseline_words(self, estimate: Estimate) -> str:
        assert estimate.deviation is not None
        return f", on unseen rows; always predicting the median has error {estimate.deviation.baseline_text}"

    def uselessness(self, estimate: Estimate, noun: str = "row") -> str:
        off, cure = estimate.deviation, "Try `margrove compare`."
        if off is not None and off.r2 is not None and off.r2 <= 0:
            return f"It is no better than predicting the mean. {estimate.relation or cure}"
        if off is not None and off.mean_absolute_error >= off.of_median:
            words = "Its mean absolute error is not below the median's; R² is better as it weights large deviations."
            return f"{words} {cure}"
        return ""


@cache
def numbers_by(metric: str, form: Format | None = None) -> Task:
    """Return the task of predicting numbers of this format, scored by this metric."""
    return Numbers(metric_named(metric), form)


NUMBERS = Numbers.usual = numbers_by(R2.name)
