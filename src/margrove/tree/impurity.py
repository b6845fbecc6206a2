"""Impurities of the rows of a node. Zero where all are alike, but for the Gaussian entropy.

Of class weights w_k, along the last axis of an array of any shape, with W = Σ w_k and p_k = w_k/W:

    entropy −Σ p_k log2 p_k · gini Σ p_k (1 − p_k) · error 1 − max p_k

Of a target y with weights w, mean μ and variance σ²:

    squared_error σ² · gaussian_entropy ½ (1 + ln 2π + ln σ²), σ² at least a floor · absolute_error Σ w |y − median| / W

All are concave in the distribution of the target, so a split never has a negative gain; only the floor of the Gaussian
entropy can break that, near the floor. The complements W − w_k are taken before dividing: of a node with one odd row
among a million the impurity still has all its digits.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.tree.problem import Criterion

_HALF = 0.5 * (1 - 1e-12)  # of the weight: where the median is reached, up to rounding of the sum


def entropy(class_weight: ArrayLike) -> NDArray[np.float64]:
    """Return −Σ p_k log2 p_k, in bits."""
    p, rest = _shares(class_weight)
    near_one = -np.log1p(-np.minimum(rest, 0.5)) / np.log(2)  # −log2 p by its complement, which has more digits
    surprise = np.where(p > 0.5, near_one, -np.log2(np.where(p > 0, p, 1.0)))
    return np.asarray((p * surprise).sum(axis=-1) + 0.0)


def gini(class_weight: ArrayLike) -> NDArray[np.float64]:
    """Return Σ p_k (1 − p_k): how often two rows drawn at random are of different classes."""
    p, rest = _shares(class_weight)
    return np.asarray((p * rest).sum(axis=-1))


def error(class_weight: ArrayLike) -> NDArray[np.float64]:
    """Return 1 − max p_k: the share of rows that are not of the largest class."""
    p, rest = _shares(class_weight)
    return np.where(p.any(axis=-1), rest.min(axis=-1), 0.0)


def class_impurity(criterion: Criterion, class_weight: ArrayLike) -> NDArray[np.float64]:
    """Return one of the three by its name."""
    return {"entropy": entropy, "gini": gini, "error": error}[criterion](class_weight)


def squared_error(y: ArrayLike, w: ArrayLike | None = None) -> float:
    """Return the variance."""
    return moments(y, w)[1]


def gaussian_entropy(y: ArrayLike, w: ArrayLike | None = None, floor: float = 0.0) -> float:
    """Return ½ (1 + ln 2π + ln σ²), in nats: the entropy of the normal distribution fitted to y. It may be negative."""
    return float(gaussian_entropy_of_variance(moments(y, w)[1], floor))


def gaussian_entropy_of_variance(variance: ArrayLike, floor: float) -> NDArray[np.float64]:
    """Return the same of variances; those below the floor (or the smallest positive number) count as the floor."""
    floored = np.maximum(variance, max(floor, float(np.finfo(np.float64).tiny)))
    return np.asarray(0.5 * (1 + np.log(2 * np.pi) + np.log(floored)))


def absolute_error(y: ArrayLike, w: ArrayLike | None = None) -> float:
    """Return the mean distance from the median."""
    y, w = _values(y, w)
    return float(w @ np.abs(y - median(y, w)) / w.sum())


def moments(y: ArrayLike, w: ArrayLike | None = None) -> tuple[float, float]:
    """Return mean and variance, around one of the numbers: far from zero the mean itself has too few digits."""
    y, w = _values(y, w)
    total, centred = w.sum(), y - y[0]
    mean = w @ centred / total
    return float(y[0] + mean), float(w @ (centred - mean) ** 2 / total)


def median(y: ArrayLike, w: ArrayLike | None = None) -> float:
    """Return the value below and above which lies half of the weight; of two such values their mean."""
    y, w = _values(y, w)
    order = np.argsort(y, kind="stable")
    reached = np.cumsum(w[order])
    first, last = np.searchsorted(reached, reached[-1] * np.array([_HALF, 1 - _HALF]))
    return _between(float(y[order[first]]), float(y[order[last]]))


def _between(low: float, high: float) -> float:
    """Return the mean of two numbers, whose sum may be beyond the largest float."""
    return low if low == high else low / 2 + high / 2


def running_absolute_error(
    y: NDArray[np.float64], w: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `absolute_error` and `median` of the first 1, 2, …, n rows.

    The rows so far lie in two heaps. Invariant: ``low`` holds the lower median and all values below it, so its weight
    reaches half of all and would not without its top; ``high`` holds the rest.
    """
    errors, medians = np.empty(len(y)), np.empty(len(y))
    low: list[tuple[float, float]] = []  # (−y, w): the largest on top
    high: list[tuple[float, float]] = []  # (y, w): the smallest on top
    weight_low = weight_high = sum_low = sum_high = 0.0
    centre = median(y, w)
    for i, (value, weight) in enumerate(zip((y - centre).tolist(), w.tolist(), strict=True)):
        if low and value > -low[0][0]:
            heappush(high, (value, weight))
            weight_high, sum_high = weight_high + weight, sum_high + weight * value
        else:
            heappush(low, (-value, weight))
            weight_low, sum_low = weight_low + weight, sum_low + weight * value
        half = _HALF * (weight_low + weight_high)
        while weight_low < half:
            moved, weight = heappop(high)
            heappush(low, (-moved, weight))
            weight_low, sum_low = weight_low + weight, sum_low + weight * moved
            weight_high, sum_high = weight_high - weight, sum_high - weight * moved
        while len(low) > 1 and weight_low - low[0][1] >= half:
            negative, weight = heappop(low)
            heappush(high, (-negative, weight))
            weight_low, sum_low = weight_low - weight, sum_low + weight * negative
            weight_high, sum_high = weight_high + weight, sum_high - weight * negative
        middle = -low[0][0]
        distance = (sum_high - middle * weight_high) + (middle * weight_low - sum_low)
        is_even = high and weight_low <= (1 - _HALF) * (weight_low + weight_high)
        errors[i] = max(0.0, distance) / (weight_low + weight_high)
        medians[i] = centre + (_between(middle, high[0][0]) if is_even else middle)
    return errors, medians


def _shares(class_weight: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return p_k and 1 − p_k; of no weight at all, zeros."""
    weight = np.asarray(class_weight, dtype=np.float64)
    total = weight.sum(axis=-1, keepdims=True)
    safe = np.where(total > 0, total, 1.0)
    return weight / safe, np.maximum(total - weight, 0.0) / safe


def _values(y: ArrayLike, w: ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    y = np.asarray(y, dtype=np.float64)
    return y, np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
