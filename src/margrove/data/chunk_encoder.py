"""A `TableEncoder` learned from chunks of a table: as it would be from the whole, with impute="mean"."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from margrove.data.columns import Column, Kind, Level, named
from margrove.data.encoder import TableEncoder
from margrove.data.encoding import Description, category_description, number_description, numbers_of, writing_of
from margrove.data.formats import DateFormat, Format
from margrove.data.inspection import LEAST_ROWS, MOSTLY_DISTINCT, is_free_text
from margrove.data.table import Table
from margrove.data.text import MOST_WORDS, check_text_columns, text_description, text_names
from margrove.errors import DataWarning, InputError, level_of_caller

MOST_LEVELS = 100_000  # of a category; one with more names its rows


@dataclass
class _Statistics:
    """The statistics of a column over the chunks so far."""

    name: str
    kind: Kind
    levels: set[Level] = field(default_factory=set)
    n_missing: int = 0
    n_present: int = 0
    moments: StandardScaler = field(default_factory=StandardScaler)  # mean and variance, without missing cells
    least: float = np.inf
    most: float = -np.inf
    is_text: bool = False  # whose words are to be numbers
    looks_like_text: bool = False
    format: Format | None = None
    date_part: tuple[str, ...] = ()

    def add(self, column: Column) -> None:
        if not (isinstance(self.format, DateFormat) and self.format.has_time):  # if any chunk has times, all have
            self.format = column.format
        n_missing = column.n_missing
        self.n_missing += n_missing
        n = len(column) - n_missing
        if self.is_text:
            self.n_present += n
            return
        if self.kind == "category":
            self.looks_like_text = self.looks_like_text or is_free_text(column)
            if len(self.levels) <= MOST_LEVELS:
                self.levels |= {column.levels[code] for code in column.present()}
        elif n:
            numbers = numbers_of(column).astype(np.float64)
            self.moments.partial_fit(numbers[:, None])
            self.least, self.most = min(self.least, np.nanmin(numbers)), max(self.most, np.nanmax(numbers))
        self.n_present += n

    def why_dropped(self) -> str | None:
        if self.n_present == 0:
            return "constant"
        if self.is_text:
            return None
        if self.kind != "category":
            return "constant" if self.least == self.most and self.n_missing == 0 else None
        if len(self.levels) == 1 and self.n_missing == 0:
            return "constant"
        is_many = self.n_present >= LEAST_ROWS and len(self.levels) > MOSTLY_DISTINCT * self.n_present
        return "identifier" if is_many or len(self.levels) > MOST_LEVELS else None

    def description(self, index: int) -> Description:
        if self.is_text:
            return text_description(self.name, index, "hashing", MOST_WORDS)
        if self.kind == "category":
            return category_description(self.name, index, sorted(self.levels, key=str), self.n_missing > 0)
        mean = float(self.moments.mean_[0])
        if self.kind == "boolean":
            return number_description(self.name, index, self.kind, mean)
        # Missing cells become the mean.
        deviation = float(np.sqrt(self.moments.var_[0] * self.n_present / (self.n_present + self.n_missing)))
        return number_description(self.name, index, self.kind, mean, mean, deviation or 1.0) | writing_of(self)


def learn_encoder(chunks: Iterable[Table], text: str | Sequence[str] | None = None) -> TableEncoder:
    """Learn levels, fills, means and scales in one pass. Words of ``text`` are hashed: tf-idf would need all rows at
    once."""
    known: list[_Statistics] = []
    texts = text_names(text)
    source, target = "chunks", None
    for table in chunks:
        if table.sparse is not None:
            raise InputError("the table is sparse and already numeric", file=table.source, cure="Leave encoded() out.")
        source, target = table.source, table.target
        if not known:
            check_text_columns(table, texts)
            known = [_Statistics(column.name, column.kind, is_text=column.name in texts) for column in table]
        for column, own in zip(table, known, strict=True):
            own.add(column)
    kept: list[Description] = []
    dropped: list[dict[str, Any]] = []
    for index, own in enumerate(known):
        why = own.why_dropped()
        if why is None:
            kept.append(own.description(index))
        else:
            dropped.append({"name": own.name, "index": index, "why": why})
    if not kept:
        raise InputError("no column is left to learn from: each is constant or an identifier", file=source)
    _warn_dropped(source, [column["name"] for column in dropped], [own.name for own in known if own.looks_like_text])
    features = "hashing" if texts else "tfidf"
    encoder = TableEncoder(impute="mean", text=list(texts) or None, text_features=features)
    encoder.columns_, encoder.dropped_, encoder.n_features_in_ = kept, dropped, len(known)
    encoder.feature_names_in_ = np.array([own.name for own in known], dtype=object)
    encoder.target_ = None if target is None else target.name
    return encoder


def _warn_dropped(source: str, names: list[str], texts: list[str]) -> None:
    """Warn of columns that are left out, and of those that hold text, left out or not."""
    others = [name for name in names if name not in texts]
    if others:
        message = f"{source}: columns that are constant or identifiers are left out: {named(others)}."
        warnings.warn(message, DataWarning, stacklevel=level_of_caller())
    for name in texts:
        fate = "is left out" if name in names else "each whole text is used as a category"
        message = f"{source}: column {name!r} looks like free text, and {fate}; use its words with "
        warnings.warn(f"{message}encoded(text={name!r}).", DataWarning, stacklevel=level_of_caller())
