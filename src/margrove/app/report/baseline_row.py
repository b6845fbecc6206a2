"""The average row that the columns of a linear model are compared with: that of the training rows as far as the model
keeps it, so that the explanation of a row does not depend on the other rows of its table.

The encoder centres numbers, so their average is 0. Of a category it keeps the deviation d of each level, and a level of
share p has d² = p (1 − p): p is (1 − √(1 − 4 d²))/2, or 1 less that. Only one level can have more than a half, the one
of the largest share, and all shares sum to 1, which settles the choice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import encoder_of
from margrove.app.report.model_on_table import Subject


def average_row(subject: Subject, encoded: Any) -> NDArray[np.float64]:
    """Return the mean of each encoded column over the training rows; over ``encoded``, the rows of the table, where the
    model does not keep it."""
    mean = np.array(encoded.mean(axis=0), np.float64).ravel()
    encoder = encoder_of(subject.model)
    is_exact = subject.is_training and not subject.n_unanswered and subject.is_whole
    if is_exact or encoder is None or subject.sample.sparse is not None or not hasattr(encoder, "deviations_"):
        return mean
    kinds = {description["name"]: description["kind"] for description in encoder.columns_}
    places: dict[str, list[int]] = {}
    for place, origin in enumerate(encoder.output_origins()):
        if kinds[origin.column] == "numeric" and not origin.is_missing and encoder.standardise:
            mean[place] = 0.0
        elif kinds[origin.column] == "category":
            places.setdefault(origin.column, []).append(place)
    found = np.asarray(encoder.deviations_, np.float64)
    for levels in places.values():
        mean[levels] = level_shares(found[levels])
    return mean


def level_shares(deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of each level of a category, from the deviations of its columns of 0 and 1."""
    shares = (1 - np.sqrt(np.maximum(1 - 4 * deviations**2, 0.0))) / 2  # as if none had more than a half
    largest = int(shares.argmax())
    others = float(shares.sum() - shares[largest])
    if others < 0.5:
        shares[largest] = 1 - others
    return shares
