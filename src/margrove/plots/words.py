"""The word of each training point of a support vector machine: easy, marginal or hard (THEORY M4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.rows import Matrix
from margrove.data.sample import read_points

if TYPE_CHECKING:
    from margrove.svm.machine import SupportVectorMachine

#: From the points that do not matter to those that matter most, with what α says of them.
MEANINGS = {"easy": "α = 0", "marginal": "0 < α < C", "hard": "α = C"}


def words_of(learner: Any, rows: Any) -> NDArray[np.str_] | None:
    """The word of each row, the hardest of all machines; "" for a row that has no part.

    None where nobody can say: the learner has no words, or these are not the rows that it was fitted on.
    """
    if not hasattr(learner, "kkt_") or not _are_its_own(learner, read_points(learner, rows)):
        return None
    return hardest_words(learner)


def hardest_words(learner: SupportVectorMachine) -> NDArray[np.str_]:
    """The word of each row that a support vector machine was fitted on, the hardest of all machines."""
    words = learner.kkt_
    if words.ndim == 1:
        return np.asarray(words)
    hardest = np.full(len(words), "", dtype=words.dtype)
    for word in MEANINGS:
        hardest[(words == word).any(axis=1)] = word
    return hardest


def _are_its_own(learner: SupportVectorMachine, rows: Matrix) -> bool:
    if rows.shape[0] != learner.n_rows_:
        return False
    if learner.kernel == "precomputed":
        return bool(rows.shape[1] == rows.shape[0])
    if not len(learner.support_):
        return True
    return bool(abs(rows[learner.support_] - learner.support_vectors_).max() == 0)
