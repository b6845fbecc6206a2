"""Folds of the rows under several machines, for searches and for probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from margrove.data.sample import Sample, check_class_weight
from margrove.search.folds import Splits, weight_in_fold
from margrove.svm.search_problem import DualVariables, Fold, SearchProblem
from margrove.svm.solving import kernel_cache
from margrove.svm.training import TrainingData, rows_of_machines


def machines_of(code: NDArray[np.int8], codes: NDArray[np.int32]) -> tuple[DualVariables, ...]:
    """Return the variables of the machine of each column of a code matrix, over the rows of its classes."""
    rows = rows_of_machines(code, codes, np.arange(len(codes)))
    return tuple(DualVariables(sign, -np.ones(len(own)), own) for own, sign in rows)


def search_order(sample: Sample, splits: Splits) -> tuple[NDArray[np.int64], Splits]:
    """Return an order that groups the rows by the fold that holds them out, and then by class if a machine sees only
    some of the classes; and the splits with the rows held out in that order. Kernel values are then copied in long
    pieces, or not at all."""
    held_by = np.full(len(sample.codes), len(splits))
    for number, (_, test) in enumerate(splits):
        held_by[test] = number
    by_class = (sample.codes,) if len(sample.classes) > 2 else ()
    order = np.lexsort((*by_class, held_by)).astype(np.int64)
    place = np.argsort(order)
    return order, [(train, test[np.argsort(place[test], kind="stable")]) for train, test in splits]


def folds_of(
    sample: Sample, class_weight: Any, sample_weight: Any, splits: Splits, order: NDArray[np.int64]
) -> tuple[Fold, ...]:
    """Return the folds, with the rows in ``order``. "balanced" balances the rows that a fold trains on."""
    n = len(sample.codes)
    own = np.ones(n) if sample_weight is None else np.maximum(np.asarray(sample_weight, dtype=np.float64), 0.0)
    if isinstance(class_weight, Mapping):
        own = own * np.array([check_class_weight(class_weight, label) for label in sample.classes])[sample.codes]
    place = np.argsort(order)
    folds = []
    for train, test in splits:
        share = own[train]
        if isinstance(class_weight, str):
            share = share * compute_sample_weight("balanced", sample.codes[train])
        folds.append(Fold(weight_in_fold(share, train, n)[order], place[test]))
    return tuple(folds)


def posed_search(
    model: Any,
    data: TrainingData,
    order: NDArray[np.int64],
    machines: tuple[DualVariables, ...],
    folds: tuple[Fold, ...],
) -> SearchProblem:
    """Return the machines on the folds, without units, as a problem whose rows are in ``order``."""
    points = data.points
    if not np.array_equal(order, np.arange(len(order))):
        points = points[np.ix_(order, order)] if data.solver_kernel.name == "precomputed" else points[order]
    return SearchProblem(
        points,
        (data.solver_kernel,),
        machines,
        folds,
        tol=float(model.tol),
        max_iter=int(model.max_iter),
        cache_bytes=kernel_cache(model.cache_size),
        precision=model.precision,
    )
