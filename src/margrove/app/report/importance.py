"""Which columns matter: by what shuffling them costs, by the model's own weights or gains, by each one's own gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.models import encoder_of, is_boosted, is_tree
from margrove.app.report.held_out import Folds
from margrove.app.report.model_on_table import Subject
from margrove.app.report.shuffling import Losses, losses_of
from margrove.app.summary import learned
from margrove.data.columns import clip
from margrove.errors import MargroveError

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
    shuffled: Losses | None = None  # how the losses were found

    def share(self, column: ColumnWorth) -> float:
        """Its worth beside the largest."""
        values = [getattr(other, self.by) or 0.0 for other in self.columns]
        return max(0.0, (getattr(column, self.by) or 0.0) / max(values))

    @property
    def rows_words(self) -> str:
        """On which rows columns were shuffled."""
        if self.shuffled is None:
            return ""
        new = "that the models asked had not seen" if self.shuffled.is_new else "that the model has learned from"
        return f"{self.shuffled.n_rows:,} rows {new}"

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


def worth_of(subject: Subject, folds: Folds) -> Worth | None:
    """Measure every column in every way that applies; None where nothing tells one from another."""
    names = [name for name in subject.sample.names if name not in subject.dropped]
    is_many = len(names) > _MOST_COLUMNS or subject.sample.sparse is not None
    own = own_shares(subject)
    shuffled = None if is_many else losses_of(subject, folds)
    losses = {} if shuffled is None else shuffled.of_column
    gains, ratios, p_values = ({}, {}, {}) if is_many else _gains(subject)
    columns = [
        ColumnWorth(name, losses.get(name), own.get(name), gains.get(name), ratios.get(name), p_values.get(name))
        for name in (own if is_many else names)
    ]
    for by in ("loss", "own", "gain"):
        values = [getattr(column, by) or 0.0 for column in columns]
        if max(values, default=0.0) > (_NOTHING if by == "loss" else 0.0):
            columns.sort(key=lambda column: -(getattr(column, by) or 0.0))
            return Worth(tuple(columns), by, shuffled)
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
