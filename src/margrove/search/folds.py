"""The folds of a cross-validation, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from margrove.data.sample import Sample
from margrove.errors import InputError, shown

Splits: TypeAlias = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]  # rows to train on, rows held out


def splits_of(cv: Any, X: Any, y: Any, groups: Any, *, is_classifier: bool) -> Splits:
    """Return the folds that ``cv``, an int, a splitter or an iterable, makes of the rows."""
    n = len(np.asarray(y))
    try:
        given = [(train, test) for train, test in check_cv(cv, y, classifier=is_classifier).split(X, y, groups)]
    except (TypeError, ValueError) as error:
        raise InputError(f"cv is {cv!r:.80}, which cannot split these {n} rows: {error}") from error
    splits = [(_rows(train, n), _rows(test, n)) for train, test in given]
    if not splits:
        raise InputError("cv produces no folds")
    for number, (train, test) in enumerate(splits):
        if len(train) == 0 or len(test) == 0:
            raise InputError(f"fold {number} has {len(train)} training rows and {len(test)} test rows")
    return splits


def _rows(given: Any, n: int) -> NDArray[np.int64]:
    """Return row numbers from what a splitter gives: numbers, perhaps counted from the end, or a mask."""
    rows = np.asarray(given)
    if rows.dtype.kind == "b" and rows.shape == (n,):
        return np.flatnonzero(rows)
    is_numbers = rows.ndim == 1 and (rows.size == 0 or rows.dtype.kind in "iu")
    if not is_numbers or (rows.size and not (-n <= int(rows.min()) and int(rows.max()) < n)):
        raise InputError(f"cv gives {rows!r:.80} for the rows of a fold", cure=f"Give row numbers below {n}.")
    rows = rows.astype(np.int64)
    return np.where(rows < 0, rows + n, rows)


def check_classes_of_folds(sample: Sample, splits: Splits) -> None:
    """Raise `InputError` for a fold that has one class to train on."""
    for number, (train, _) in enumerate(splits):
        weight = None if sample.weight is None else sample.weight[train]
        mass = np.bincount(sample.codes[train], weights=weight, minlength=len(sample.classes))
        if (mass > 0).sum() < 2:
            raise InputError(
                f"fold {number} trains on only one class, {shown(sample.classes[int(np.argmax(mass))])}",
                cure="Use stratified folds (an int for cv), or fewer of them.",
            )


def check_held_out(weight: NDArray[np.float64] | None, splits: Splits) -> None:
    """Raise `InputError` for a fold whose held-out rows all have the weight 0: it has no score."""
    for number, (_, test) in enumerate(splits):
        if weight is not None and not weight[test].any():
            raise InputError(
                f"all test rows of fold {number} have weight 0, so it has no score",
                cure="Remove rows of weight 0 from X, or use fewer folds.",
            )


def weight_in_fold(share: NDArray[np.float64], train: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """Return the weight of each of n rows from the shares of the rows that a fold trains on, some perhaps twice."""
    weight = np.zeros(n)
    np.add.at(weight, train, share)
    return weight
