"""X² of tables whose sums are given: how it is distributed if the rows are dealt to the classes at random.

By draws, or by the gamma distribution that has X²'s exact mean and variance: n/(n−1) (B−1)(K−1), and Dawson's formula
(J. E. Dawson, Biometrika 41, 1954; also J. B. S. Haldane, 1940), which of each margin only needs how many sums it has
and Σ 1/sum. In the limit of many rows both are χ² with (B − 1)(K − 1) degrees of freedom.
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
    """X² of random tables with these sums, ascending."""
    tables = stats.random_table.rvs(rows, columns, size=DRAWS, method="patefield", random_state=SEED)
    squares = (tables**2 / np.outer(rows, columns)).sum(axis=(1, 2))
    return np.sort(sum(rows) * (squares - 1))


@dataclass(frozen=True)
class Margin:
    """What the moments of X² need of one margin of a table."""

    size: float  # how many sums
    inverse: float  # Σ 1/sum


def margin_of(sums: NDArray[np.float64]) -> Margin:
    """Of sums that are all above 0."""
    return Margin(len(sums), float((1 / sums).sum()))


def gamma_tail(statistic: float, n: float, rows: Margin, columns: Margin) -> float:
    """P(G ≥ statistic) for the gamma distribution G with X²'s mean and variance over all tables with these sums."""
    if n <= 3:  # larger than 2 × 2, and of three rows: every table with these sums has the same X²
        return 1.0
    mean, variance = _moments(n, rows, columns)
    if variance <= EQUAL_TABLES * mean:
        return 1.0
    return float(special.gammaincc(mean**2 / variance, max(statistic, 0.0) * mean / variance))


def permutation_moments(rows: NDArray[np.float64], columns: NDArray[np.float64]) -> tuple[float, float]:
    """The exact mean and variance of X² over all permutations of more than three rows, given the sums of the table.

    Examples
    --------
    Each class once: X² is the same however they are dealt.

    >>> import numpy as np
    >>> from margrove.tree.contingency import permutation_moments
    >>> permutation_moments(np.array([2.0, 2.0]), np.ones(4))
    (4.0, 0.0)
    """
    return _moments(float(rows.sum()), margin_of(rows), margin_of(columns))


def _moments(n: float, rows: Margin, columns: Margin) -> tuple[float, float]:
    mean = n / (n - 1) * (rows.size - 1) * (columns.size - 1)
    (v, w), (v_, w_) = _dawson(n, rows), _dawson(n, columns)
    return mean, 2 * n / (n - 3) * (v - w) * (v_ - w_) + n**2 / (n - 1) * w * w_


def _dawson(n: float, margin: Margin) -> tuple[float, float]:
    """The two terms of one margin in Dawson's formula."""
    size = margin.size
    return (size - 1) * (n - size) / (n - 1), (n * margin.inverse - size**2) / (n - 2)
