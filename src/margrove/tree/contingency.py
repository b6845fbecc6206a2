"""The distribution of X² of tables with given sums, if the rows are dealt to the classes at random.

By draws, or by the gamma distribution with the exact mean and variance of X²: n/(n−1) (B−1)(K−1), and Dawson's formula
(J. E. Dawson, Biometrika 41, 1954; also J. B. S. Haldane, 1940), which of each margin only needs the number of sums and
Σ 1/sum. In the limit of many rows both are χ² with (B − 1)(K − 1) degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

DRAWS = 999
SEED = 20261115
EQUAL_TABLES = 1e-7  # tables whose probability differs by less are equally probable: rounding


def draw_statistics(rows: tuple[int, ...], columns: tuple[int, ...]) -> NDArray[np.float64]:
    """Return X² of random tables with these sums, ascending."""
    tables = stats.random_table.rvs(rows, columns, size=DRAWS, method="patefield", random_state=SEED)
    squares = (tables**2 / np.outer(rows, columns)).sum(axis=(1, 2))
    return np.sort(sum(rows) * (squares - 1))


@dataclass(frozen=True)
class Margin:
    """The number of sums of one margin of a table, and Σ 1/sum: all that the moments of X² need."""

    size: float
    inverse: float


def margin_of(sums: NDArray[np.float64]) -> Margin:
    """Return the margin of sums that are all above 0."""
    return Margin(len(sums), float((1 / sums).sum()))


def gamma_tail(statistic: float, n: float, rows: Margin, columns: Margin) -> float:
    """Return P(G ≥ statistic) for the gamma distribution G with the mean and variance of X² over all tables with these
    sums."""
    if n <= 3:  # larger than 2 × 2, and of three rows: every table with these sums has the same X²
        return 1.0
    mean, variance = permutation_moments(n, rows, columns)
    if variance <= EQUAL_TABLES * mean:
        return 1.0
    return float(special.gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))


def permutation_moments(n: float, rows: Margin, columns: Margin) -> tuple[float, float]:
    """Return the exact mean and variance of X² over all permutations of n > 3 rows."""
    mean = n / (n - 1) * (rows.size - 1) * (columns.size - 1)
    (v, w), (v_, w_) = _dawson(n, rows), _dawson(n, columns)
    return mean, 2 * n / (n - 3) * (v - w) * (v_ - w_) + n**2 / (n - 1) * w * w_


def _dawson(n: float, margin: Margin) -> tuple[float, float]:
    """Return the two terms of one margin in Dawson's formula."""
    size = margin.size
    return (size - 1) * (n - size) / (n - 1), (n * margin.inverse - size**2) / (n - 2)
