"""The task of predicting numbers, scored by R² or another metric, and described by R² and the mean absolute error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from margrove.app.estimate.intervals import excess, r2_interval
from margrove.app.estimate.metrics import R2, Judged, metric_named
from margrove.app.estimate.relation import relation_of_numbers
from margrove.app.estimate.task import Deviation, Estimate, Labels, Predicted, Rows, Task, error_text
from margrove.data import Table

_SAME = 5e-4  # R² are printed with three digits
_NO_ERROR = 1e-9  # of R²


def deviation_of(truth: NDArray[np.float64], estimates: NDArray[np.float64], mean: Any) -> Deviation:
    """Return how far the estimates are off; R² compares them with ``mean``."""
    off, spread = truth - estimates, float(((truth - mean) ** 2).sum())
    return Deviation(1 - float((off**2).sum()) / spread if spread > 0 else None, float(np.abs(off).mean()))


class _Numbers(Task):
    name, is_number, value_name = "regress", True, "R²"
    too_few = "there are too few rows"
    splitter = KFold
    sampled = ""
    not_below = "errors below are not"
    heading = "Error on unseen {}s"
    prefix = ""
    columns, size_column = ("R²\n(95 % interval)", "mean absolute\nerror"), "size"
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
        return self._score(labels[part.rows], part.values, part.means)

    def _score(self, truth: Labels, values: NDArray[Any], means: Any) -> float:
        if self.metric is R2:
            return deviation_of(truth, values, means).r2 or 0.0
        return self.metric.score(Judged(truth, values))

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
        off, overall = np.abs(truth - values), deviation_of(truth, values, means)
        widened = np.sqrt(excess(len(off), n_rounds, len(labels)) / len(off))
        deviation = replace(
            overall, standard_error=float(off.std() * widened), of_median=float(np.abs(truth - medians).mean())
        )
        interval = r2_interval(truth, values, means, n_rounds=n_rounds, n_rows=len(labels), seed=seed)
        errors = tuple(float(np.abs(labels[part.rows] - part.values).mean()) for part in parts)
        found: dict[str, Any] = {"rounds": errors, "value": overall.r2, "interval": interval, "deviation": deviation}
        if overall.r2 is not None and overall.r2 <= 0:
            found["relation"] = relation_of_numbers(truth, values, seed)
        return {**found, "score": self._score(truth, values, means)}

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
        return self.value_text(score) if self.metric is R2 else error_text(-score)

    def natural(self, value: float) -> float:
        return value  # R²

    def value_text(self, value: float) -> str:
        return f"{value:.3f}"

    def words(self, estimate: Estimate, decimals: int | None = None) -> str:
        if estimate.deviation is None:
            return "-" if estimate.value is None else f"R² {estimate.value:.3f}"
        error = f"mean absolute error {error_text(estimate.deviation.mean_absolute_error)}"
        if estimate.score is not None and self.metric.name not in ("r2", "mae"):
            error = f"{self.named(estimate.score)}; {error}"
        if estimate.value is None:
            return error
        ends = "" if estimate.interval is None else ", 95 % interval {:.3f} … {:.3f}".format(*estimate.interval)
        return f"R² {estimate.value:.3f}{ends}; {error}"

    def cells(self, estimate: Estimate, decimals: int) -> tuple[str, ...]:
        if estimate.deviation is None:
            return "-", "-"
        ends = "" if estimate.interval is None else " ({:.3f} … {:.3f})".format(*estimate.interval)
        r2 = "-" if estimate.value is None else f"{estimate.value:.3f}{ends}"
        return r2, error_text(estimate.deviation.mean_absolute_error)

    def rank(self, estimate: Estimate) -> tuple[float, ...]:
        """Order by the score, or where the target does not vary by the error."""
        assert estimate.deviation is not None
        return round(estimate.score or 0.0, 12), -estimate.deviation.mean_absolute_error

    def context(self, estimate: Estimate) -> list[str]:
        if not estimate.rounds:
            return []
        lines = ["R² is the share of the variance that the model explains; 1 is perfect"]
        if estimate.deviation is not None:
            lines.append(f"Baseline: error {error_text(estimate.deviation.of_median)} by always predicting the median")
        return lines

    def baseline_words(self, estimate: Estimate) -> str:
        assert estimate.deviation is not None
        return f", on unseen rows; always predicting the median has error {error_text(estimate.deviation.of_median)}"

    def uselessness(self, estimate: Estimate, noun: str = "row") -> str:
        off, cure = estimate.deviation, "Try `margrove compare`."
        if off is not None and off.r2 is not None and off.r2 <= 0:
            return f"It is no better than predicting the mean. {estimate.relation or cure}"
        if off is not None and off.mean_absolute_error >= off.of_median:
            words = "Its mean absolute error is not below the median's; R² is better as it weights large deviations."
            return f"{words} {cure}"
        return ""


@cache
def numbers_by(metric: str) -> Task:
    """Return the task of predicting numbers, scored by this metric."""
    return _Numbers(metric_named(metric))


NUMBERS = _Numbers.usual = numbers_by(R2.name)
