"""The 95 % interval of a score on rows that the model has not seen.

The share of correct predictions of one model on rows set aside is a share like any other: Wilson's interval.

In k rounds, each of which predicts the m rows that it has not learned from, the predictions are not independent: the
rounds learn from mostly the same rows, so they are lucky or unlucky together. Nadeau and Bengio (2003) put that into
the variance of the mean of the rounds,

    σ² (1/k + m/n),   σ² the variance of one round, n the rows that it learned from,

where independent rounds would have σ²/k. With σ² = p (1 − p)/m, as it is of m predictions, that is p (1 − p)/(km) times
1 + km/n: of 5 folds 2.25. So it is Wilson's interval of km/(1 + km/n) rows. An interval of R² is made longer by the
square root of the same factor. In the simulation of tests/app/test_intervals.py, pure noise of 60 rows, Wilson's
interval of all rows covers the truth in 88 of 100 cases, Nadeau and Bengio's with the variance of five folds for σ² in
94, and this one in 99: it is rather too wide than too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

WITHIN = 1.959964  # 95 % of a normal distribution lie within so many standard deviations
_RESAMPLES, _LEAST_RESAMPLES = 1000, 200
_DRAWN_ROWS = 10_000_000  # in all resamples together, so that they take a second
WIDENED = "the interval is widened because the rounds share most of their training rows"

MAYBE_NO_BETTER = "The interval includes the baseline, so the model may be no better."

Interval = tuple[float, float]


def wilson(n_right: float, n: float) -> Interval:
    """Return the 95 % interval of a share of which ``n_right`` of ``n`` were seen (Wilson 1927).

    (p + z²/2n ± z √(p (1 − p)/n + z²/4n²)) / (1 + z²/n); it never leaves 0 … 1, and is no point where all were
    right."""
    p, z2 = n_right / n, WITHIN * WITHIN
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = WITHIN / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # At 0 and 1 one end is p itself, but for rounding.
    return min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half))


def excess(n_tested: int, n_rounds: int, n_rows: int) -> float:
    """Return the variance of so many predictions, made in so many rounds, divided by that of independent ones."""
    if n_rounds <= 1:
        return 1.0
    return 1 + n_tested / max(1.0, n_rows - n_tested / n_rounds)


def share_interval(n_right: int, n_tested: int, n_rounds: int, n_rows: int) -> Interval:
    """Return the interval of a share of ``n_tested`` of ``n_rows`` rows, in ``n_rounds`` rounds; 1 is a hold-out."""
    factor = excess(n_tested, n_rounds, n_rows)
    return wilson(n_right / factor, n_tested / factor)


def bootstrap_interval(
    value: float,
    again: Callable[[NDArray[np.intp]], float],
    sizes: Sequence[int],
    *,
    n_rounds: int,
    n_rows: int,
    n_columns: int = 1,
    most: float = math.inf,
    seed: int = 0,
) -> Interval | None:
    """Return the interval of a score without one in closed form. ``again`` scores the rows at these places again, NaN
    where it cannot; ``sizes`` are the numbers of rows of each part, which are drawn apart, and ``n_columns`` that of
    numbers which the score of a row takes. None if not finite."""
    n, rng = sum(sizes), np.random.default_rng(seed)
    starts = np.cumsum([0, *sizes[:-1]])
    drawn = []
    for _ in range(min(_RESAMPLES, max(_LEAST_RESAMPLES, _DRAWN_ROWS // (n * n_columns)))):
        score = again(np.concatenate([start + rng.integers(0, m, m) for start, m in zip(starts, sizes, strict=True)]))
        if math.isfinite(score):
            drawn.append(score)
    longer = math.sqrt(excess(n, n_rounds, n_rows))
    low, high = (value + longer * (float(end) - value) for end in np.quantile(drawn or [math.nan], [0.025, 0.975]))
    return (min(low, value), min(most, max(high, value))) if math.isfinite(low + high) else None
