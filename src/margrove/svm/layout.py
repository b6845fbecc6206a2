"""The code matrix of several classes, and the layout of the machines' coefficients in ``dual_coef_``.

A *code matrix* has shape (K classes, machines): +1 for the classes on its positive side, −1
for those on its negative side, 0 for those it never sees.

==============  ========================================  =================================================
multiclass      code                                      ``dual_coef_``
==============  ========================================  =================================================
two classes     the second class is +1                    (1, s)
"ovo"           a column per pair i < j, with i as +1     (K − 1, s): of the pair (i, j), the β of class i
                                                          are in row j − 1, those of class j in row i
"ovr"           a column per class, against the rest      (K, s)
a code matrix   as given                                  (machines, s)
==============  ========================================  =================================================

The s support vectors stand class by class, as LIBSVM has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.errors import ParameterError, check_choice, listed, shown

MULTICLASS = ("ovo", "ovr")


def pairs_of(n_classes: int) -> Iterator[tuple[int, int]]:
    """Return the pairs of classes in LIBSVM's order."""
    return combinations(range(n_classes), 2)


def code_matrix(multiclass: Any, n_classes: int) -> NDArray[np.int8]:
    """Return the code matrix of "ovo", "ovr", or the one that was given, shape (K, machines)."""
    if not isinstance(multiclass, str):
        return np.asarray(multiclass, dtype=np.float64).astype(np.int8)
    if n_classes == 2:
        return np.array([[-1], [1]], np.int8)
    if multiclass == "ovr":
        return np.where(np.eye(n_classes) > 0, 1, -1).astype(np.int8)
    code = np.zeros((n_classes, n_classes * (n_classes - 1) // 2), np.int8)
    first, second = np.triu_indices(n_classes, 1)  # as `pairs_of` has them
    machines = np.arange(len(first))
    code[first, machines], code[second, machines] = 1, -1
    return code


def check_multiclass(name: str, multiclass: Any) -> None:
    """Raise `ParameterError` unless it is a known name or looks like a code matrix."""
    if isinstance(multiclass, str):
        return check_choice(name, multiclass, MULTICLASS, also="a code matrix")
    try:
        code = np.asarray(multiclass, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        code = np.empty(0)
    if code.ndim != 2 or 0 in code.shape:
        raise ParameterError(
            f"{name} is {type(multiclass).__name__} of shape {code.shape}; it must be 'ovo', 'ovr' or a code "
            "matrix of shape (classes, machines)."
        )
    strange = ~np.isin(code, (-1, 0, 1))
    if strange.any():
        raise ParameterError(f"{name} contains {shown(code[strange][0])}; a code matrix may contain only +1, −1 and 0.")


def check_code(code: NDArray[np.int8], classes: NDArray[Any]) -> None:
    """Raise `ParameterError` unless every machine has two sides and some machine separates any two classes."""
    if len(code) != len(classes):
        raise ParameterError(
            f"multiclass has {len(code)} rows; y has {len(classes)} classes; each needs a row: {listed(classes[:8])}."
        )
    check_sides(code)
    wide = code.astype(np.int64)
    for i, j in pairs_of(len(classes)):
        if not (wide[i] * wide[j] < 0).any():
            words = "have the same code word" if (wide[i] == wide[j]).all() else "have opposite signs in no column"
            raise ParameterError(
                f"multiclass: the classes {shown(classes[i])} and {shown(classes[j])} {words}, so no machine "
                "separates them."
            )


def check_sides(code: NDArray[np.int8]) -> None:
    """Raise `ParameterError` unless every machine has two sides."""
    for name, is_there in (("+1", (code > 0).any(axis=0)), ("−1", (code < 0).any(axis=0))):
        if not is_there.all():
            raise ParameterError(f"multiclass: column {int(np.argmin(is_there))} has no {name}.")


def machine_names(classes: NDArray[Any], code: NDArray[np.int8]) -> tuple[str, ...]:
    """Return the names of the machines: the classes that each one separates."""
    return tuple(_name(classes, column) for column in code.T)


def _name(classes: NDArray[Any], column: NDArray[np.int8]) -> str:
    positive, negative = classes[column > 0], classes[column < 0]
    if len(positive) == 1 and len(negative) > 1 and len(negative) == len(classes) - 1:
        return f"{positive[0]} vs rest"
    return " vs ".join("|".join(str(label) for label in side) for side in (positive, negative))


def lies_by_pairs(multiclass: Any, n_classes: int) -> bool:
    """Return whether ``dual_coef_`` has LIBSVM's layout (K − 1, s)."""
    return isinstance(multiclass, str) and multiclass == "ovo" and n_classes > 2


def class_slices(n_support: Any) -> list[slice]:
    """Return the columns of the support vectors of each class."""
    ends = np.cumsum(n_support)
    return [slice(int(end - count), int(end)) for end, count in zip(ends, n_support, strict=True)]


def unpacked(dual_coef: Any, n_support: Any) -> NDArray[np.float64]:
    """Return β of each pair, shape (pairs, s), from LIBSVM's (K − 1, s)."""
    dual, slices = dense(dual_coef), class_slices(n_support)
    beta = np.zeros((len(slices) * (len(slices) - 1) // 2, dual.shape[1]))
    for machine, (i, j) in enumerate(pairs_of(len(slices))):
        beta[machine, slices[i]] = dual[j - 1, slices[i]]
        beta[machine, slices[j]] = dual[i, slices[j]]
    return beta


def dense(dual_coef: Any) -> NDArray[np.float64]:
    """Return ``dual_coef_`` as an array: scikit-learn's is sparse after a sparse fit."""
    return np.asarray(dual_coef.toarray() if hasattr(dual_coef, "toarray") else dual_coef, dtype=np.float64)


def coefficients_of(model: Any) -> NDArray[np.float64]:
    """Return β of each machine of a fitted classifier, Margrove's or scikit-learn's, shape (machines, s)."""
    if lies_by_pairs(getattr(model, "multiclass", "ovo"), len(model.classes_)):
        return unpacked(model.dual_coef_, model.n_support_)
    return dense(model.dual_coef_)


def code_of(model: Any) -> NDArray[np.int8]:
    """Return the code matrix of a fitted classifier, Margrove's or scikit-learn's."""
    return code_matrix(getattr(model, "multiclass", "ovo"), len(model.classes_))


def votes_of(is_won: NDArray[np.bool_], code: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the number of machines that decide for each class, shape (n, K): with w = 1 where the positive side of a
    machine wins, class k has Σ w over the machines where it is +1, and Σ (1 − w) over those where it is −1."""
    signs = code.T.astype(np.float32)
    return np.asarray(is_won.astype(np.float32) @ signs + (signs < 0).sum(axis=0, dtype=np.float32))


def scores_of_votes(
    values: NDArray[np.float64], is_won: NDArray[np.bool_], code: NDArray[np.int8]
) -> NDArray[np.float64]:
    """Return the votes of each class, and less than a vote that breaks ties: t/(3 (|t| + 1)), t its values' sum."""
    total = values @ code.T.astype(np.float64)
    return np.asarray(votes_of(is_won, code) + total / (3 * (np.abs(total) + 1)))


def joined(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the sums of the pairs, (…, K (K − 1)/2), from each class's share in its pairs, (…, K − 1)."""
    k = len(parts)
    sums = np.empty((parts[0].shape[0], k * (k - 1) // 2))
    for machine, (i, j) in enumerate(pairs_of(k)):
        sums[:, machine] = parts[i][:, j - 1] + parts[j][:, i]
    return sums


def scores_of(values: NDArray[np.float64], n_classes: int, multiclass: Any, shape: str) -> NDArray[np.float64]:
    """Return the score of each class from the machines' values; see `SVC.decision_function`."""
    is_word = isinstance(multiclass, str)
    if n_classes == 2:
        if values.shape[1] == 1 and is_word:
            return values.ravel()
        scores = _code_scores(values, code_matrix(multiclass, 2))
        return np.asarray(scores[:, 1] - scores[:, 0])
    if not is_word:
        return _code_scores(values, code_matrix(multiclass, n_classes))
    if multiclass != "ovo" or shape == "ovo":
        return values
    return scores_of_votes(values, values >= 0, code_matrix("ovo", n_classes))


def decided(
    values: NDArray[np.float64],
    n_classes: int,
    multiclass: Any,
    shape: str,
    break_ties: bool,
    order: NDArray[np.int32] | None = None,
) -> NDArray[np.intp]:
    """Return the place of the predicted class from the machines' values. ``order``: of a LIBSVM model, its labels in
    the order it knew them, which decides ties."""
    if order is not None:
        values = _away_from_zero(values, order, code_matrix(multiclass, n_classes))
    if n_classes > 2 and isinstance(multiclass, str) and multiclass == "ovo" and not break_ties:
        votes = votes_of(values > 0, code_matrix("ovo", n_classes))
        return np.asarray(votes.argmax(axis=1) if order is None else order[votes[:, order].argmax(axis=1)])
    scores = scores_of(values, n_classes, multiclass, shape)
    # LIBSVM gives a row on the boundary to the second class.
    return (scores >= 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def _code_scores(values: NDArray[np.float64], code: NDArray[np.int8]) -> NDArray[np.float64]:
    signs = code.T.astype(np.float64)
    return np.asarray(-(np.maximum(0, 1 - values) @ (signs > 0) + np.maximum(0, 1 + values) @ (signs < 0)))


def _away_from_zero(
    values: NDArray[np.float64], order: NDArray[np.int32], code: NDArray[np.int8]
) -> NDArray[np.float64]:
    """Replace f = 0 by ±1: LIBSVM gives a row on the boundary to the second label of the pair, in its own order."""
    place = np.argsort(order)
    positive, negative = code.argmax(axis=0), code.argmin(axis=0)
    return np.where(values == 0, np.where(place[positive] > place[negative], 1.0, -1.0), values)
