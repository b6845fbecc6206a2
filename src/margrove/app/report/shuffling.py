"""What each column is worth to a model: how much worse its answers get when the column's cells are shuffled.

On rows that the model has learned from, a column that names them would seem to matter most: it is known by heart. So
where the table is that of the training, models of the same settings are asked instead, on rows that they have not seen.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import features_of
from margrove.app.report.cells import with_column
from margrove.app.report.held_out import N_FOLDS, Folds, Part
from margrove.app.report.model_on_table import Subject, codes_of

_ROWS = 1_000  # that are judged again; to a tenth of a per cent
_LEAST_ROWS = 200
_JUDGEMENTS = 150_000  # of all columns and repetitions together
_KERNEL_VALUES = 200_000_000  # the same of a kernel machine, which compares each row with all that it remembers
_REPEATS = 3


@dataclass(frozen=True)
class Losses:
    """What accuracy or R² loses by each column."""

    of_column: dict[str, float]
    n_rows: int  # that were judged again
    is_new: bool  # whether the models had not seen them


def losses_of(subject: Subject, folds: Folds) -> Losses | None:
    """Shuffle each column a few times; None where there are no answers to compare with."""
    judged = subject.judged
    if judged is None:
        return None
    table = subject.sample
    judgements = min(_JUDGEMENTS, _KERNEL_VALUES // max(1, len(getattr(subject.learner, "support_", ()))))
    most = min(_ROWS, max(_LEAST_ROWS, judgements // (_REPEATS * table.n_columns)))
    parts = _new_parts(folds, most) if subject.is_training else []
    is_new = bool(parts) or not subject.is_training
    if not parts:
        places = np.random.default_rng(0).permutation(len(judged.truth))[:most]
        rows = table.take(subject.judged_places[places])
        parts = [Part(subject.model, rows, judged.truth[places], np.arange(len(places)))]
    truth = np.concatenate([part.truth for part in parts])
    spread = float(((truth - truth.mean()) ** 2).sum()) if judged.classes is None else 1.0
    if spread == 0:
        return None

    def worth(said: list[NDArray[Any]]) -> float:
        answers = np.concatenate(said)
        if judged.classes is None:
            return 1 - float(((truth - answers) ** 2).sum()) / spread
        return float(np.mean(truth == codes_of(answers, judged.classes)))

    before = worth([_said(part, part.table) for part in parts])
    generator = np.random.default_rng(0)
    losses = {}
    for name in (name for name in table.names if name not in subject.dropped):
        after = []
        for _ in range(_REPEATS):
            said = []
            for part in parts:
                cells = part.table[name].values
                said.append(_said(part, with_column(part.table, name, cells[generator.permutation(len(cells))])))
            after.append(worth(said))
        losses[name] = before - float(np.mean(after))
    return Losses(losses, len(truth), is_new)


def _said(part: Part, table: Any) -> NDArray[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels that these models have not seen
        return np.asarray(part.model.predict(features_of(part.model, table)))


def _new_parts(folds: Folds, most: int) -> list[Part]:
    """Models with rows that are new to them, as many as there are rows wanted; none where one could not be fitted."""
    parts: list[Part] = []
    left = most
    for number in range(N_FOLDS):
        part = folds.fitted(number)
        if part is None:
            return []
        n = min(left, len(part.truth))
        parts.append(Part(part.model, part.table.take(np.arange(n)), part.truth[:n], part.places[:n]))
        left -= n
        if left == 0:
            break
    return parts
