"""Which columns matter: by what shuffling them costs, by the model's own weights or gains, by each one's own gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.data.columns import clip
from margrove.errors import MargroveError
from margrove.surface.learned import learned
from margrove.surface.models import features_of, is_boosted, is_tree
from margrove.surface.report.cells import with_column
from margrove.surface.report.measures import quality_of
from margrove.surface.report.subject import Judged, Subject

_ROWS = 1_000  # that are judged again with a column shuffled; to a tenth of a per cent
_JUDGEMENTS = 150_000  # of all columns and repetitions together
_KERNEL_VALUES = 200_000_000  # the same of a kernel machine, which compares each row with all that it remembers
_LEAST_ROWS = 200
_REPEATS = 3
_MOST_COLUMNS = 200  # beyond it nothing is shuffled or scored: there would be nothing to read
_NOTHING = 5e-4  # of accuracy or R²: less is no loss


@dataclass(frozen=True)
class ColumnWorth:
    """What is known of the worth of one column; None where that measure does not apply."""

    name: str
    loss: float | None = None  # of accuracy or R² when its cells are shuffled
    own: float | None = None  # its share in the model: of a tree's gains, or of a linear model's weights
    gain: float | None = None  # bits that it alone tells of the class
    gain_ratio: float | None = None
    p_value: float | None = None  # of that gain


@dataclass(frozen=True)
class Worth:
    """The worth of all columns, the largest first, and what ``share`` of each is a share of."""

    columns: tuple[ColumnWorth, ...]
    by: str  # "loss", "own" or "gain": what the order and the shares are by
    n_rows: int  # that were judged again

    def share(self, column: ColumnWorth) -> float:
        """Its worth beside the largest."""
        values = [getattr(other, self.by) or 0.0 for other in self.columns]
        return max(0.0, (getattr(column, self.by) or 0.0) / max(values))

    @property
    def words(self) -> str:
        """What the shares mean."""
        return {
            "loss": "How much worse the answers get when the cells of a column are shuffled among the rows, so that it "
            "tells nothing any more. Columns that tell the same can stand in for each other, and then each seems to "
            "matter little.",
            "own": "How much of what the model decides by rests on each column.",
            "gain": "How much each column by itself tells of the answer.",
        }[self.by]


def worth_of(subject: Subject) -> Worth | None:
    """Measure every column in every way that applies; None where nothing tells one from another."""
    names = list(subject.sample.names)
    is_many = len(names) > _MOST_COLUMNS or subject.sample.sparse is not None
    own = own_shares(subject)
    losses, n_rows = ({}, 0) if is_many else _losses(subject)
    gains, ratios, p_values = ({}, {}, {}) if is_many else _gains(subject)
    columns = [
        ColumnWorth(name, losses.get(name), own.get(name), gains.get(name), ratios.get(name), p_values.get(name))
        for name in (own if is_many else names)
    ]
    for by in ("loss", "own", "gain"):
        values = [getattr(column, by) or 0.0 for column in columns]
        if max(values, default=0.0) > (_NOTHING if by == "loss" else 0.0):
            columns.sort(key=lambda column: -(getattr(column, by) or 0.0))
            return Worth(tuple(columns), by, n_rows)
    return None


def own_shares(subject: Subject) -> dict[str, float]:
    """The share of each column in the model itself: in the gains of trees, in the weights of a linear model."""
    model = subject.model
    if is_tree(model) or (is_boosted(model) and subject.learner.model_ is not None):
        found = learned(model)
        asked = found.tree or found.vote
        return {} if asked is None else dict(asked.importances)
    learner = subject.learner
    if not hasattr(learner, "coef_"):
        return {}
    weights = np.abs(np.atleast_2d(_dense(learner.coef_))) * deviations(subject.encoded())
    total = weights.sum(axis=0)
    shares: dict[str, float] = {}
    for name, weight in zip(encoded_names(subject), total.tolist(), strict=True):
        shares[name] = shares.get(name, 0.0) + weight
    whole = sum(shares.values())
    if not whole or not np.isfinite(whole):
        return {}
    return {name: share / whole for name, share in sorted(shares.items(), key=lambda pair: -pair[1])}


def encoded_names(subject: Subject, *, words: bool = True) -> list[str]:
    """The column of the table, or the word of a text, that each encoded column stands for."""
    from margrove.surface.models import encoder_of

    encoder = encoder_of(subject.model)
    if encoder is None:
        return list(subject.sample.names)
    origins = encoder.output_origins()
    return [
        f"{clip(str(o.level), 30)!r} in {o.column}" if o.is_word and words and o.level is not None else o.column
        for o in origins
    ]


def deviations(encoded: Any) -> NDArray[np.float64]:
    """The standard deviation of each encoded column, sparse or not."""
    mean = np.asarray(encoded.mean(axis=0), np.float64).ravel()
    squares = encoded.multiply(encoded) if hasattr(encoded, "multiply") else np.square(encoded)
    return np.sqrt(np.maximum(np.asarray(squares.mean(axis=0), np.float64).ravel() - mean**2, 0.0))


def _dense(weights: Any) -> NDArray[np.float64]:
    return np.asarray(weights.toarray() if hasattr(weights, "toarray") else weights, np.float64)


def _losses(subject: Subject) -> tuple[dict[str, float], int]:
    """What shuffling each column costs, and on how many rows that was found."""
    judged = subject.judged
    if judged is None:
        return {}, 0
    table = subject.sample.take(subject.judged_places)
    generator = np.random.default_rng(0)
    judgements = min(_JUDGEMENTS, _KERNEL_VALUES // max(1, len(getattr(subject.learner, "support_", ()))))
    n = min(len(judged.truth), _ROWS, max(_LEAST_ROWS, judgements // (_REPEATS * table.n_columns)))
    chosen = generator.permutation(len(judged.truth))[:n]
    table, truth = table.take(chosen), judged.truth[chosen]
    before = quality_of(Judged(judged.classes, truth, judged.predicted[chosen]))
    if before is None:
        return {}, 0
    losses = {}
    for column in table:
        after = []
        for _ in range(_REPEATS):
            shuffled = with_column(table, column.name, column.values[generator.permutation(n)])
            said = np.asarray(subject.model.predict(features_of(subject.model, shuffled)))
            after.append(_value(subject, judged, truth, said))
        losses[column.name] = before.value - float(np.mean(after))
    return losses, n


def _value(subject: Subject, judged: Judged, truth: NDArray[Any], said: NDArray[Any]) -> float:
    if judged.classes is None:
        spread = float(((truth - truth.mean()) ** 2).sum())
        return 1 - float(((truth - said) ** 2).sum()) / spread
    return float(np.mean(subject.learner.classes_[truth] == said))


def _gains(subject: Subject) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Information gain, gain ratio and p-value of each column by itself; nothing for numbers."""
    from margrove.select.scores import gain_ratio, information_gain

    judged = subject.judged
    if judged is None or judged.classes is None or len(np.unique(judged.truth)) < 2:
        return {}, {}, {}
    table = subject.sample.take(subject.judged_places)
    names = list(table.names)
    try:
        gains, p_values = information_gain(table, judged.truth)
        ratios, _ = gain_ratio(table, judged.truth)
    except MargroveError:  # columns that no tree could read: free text of as many levels as rows
        return {}, {}, {}
    found = (dict(zip(names, values.tolist(), strict=True)) for values in (gains, ratios, p_values))
    first, second, third = found
    return first, second, third
