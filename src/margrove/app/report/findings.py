"""The findings that the sections of a report are written from: the score of a model, on rows that it has not seen where
there are any, and the importance of columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from margrove.app.history import RecordedEstimate, ScoredRows
from margrove.app.report.held_out import N_FOLDS, ReportFolds
from margrove.app.report.importance import Importances
from margrove.app.report.measures import Quality, quality_of
from margrove.app.report.model_on_table import Subject
from margrove.app.report.plain_words import sentence
from margrove.explanation import counted
from margrove.tree.words import amount_text


@dataclass(frozen=True, eq=False)
class Evidence:
    """The score of a model, the rows it was measured on, and the method.

    ``origin`` is "table" if the rows of the table are new to the model, "record" if rows were held out in training,
    "folds" if they were held out for this report, and "training" if there are only the training rows.
    """

    origin: Literal["table", "record", "folds", "training"]
    quality: Quality
    description: str
    scored: ScoredRows | None  # the rows, or some of them, if they are known
    on_training: Quality | None = None  # for comparison: the score on the training rows
    n_tested: int | None = None  # the number of rows that the score was measured on, if it is known

    @property
    def is_unbiased(self) -> bool:
        """True if the rows were new to the model that was tested."""
        return self.origin != "training"

    @property
    def is_partial(self) -> bool:
        """True if the predictions are kept for some of the tested rows only."""
        return self.scored is not None and self.n_tested is not None and self.n_tested > len(self.scored.truth)

    @property
    def rows_words(self) -> str:
        """The number of rows whose predictions are kept, and the number of tested rows if it is larger."""
        n = 0 if self.scored is None else len(self.scored.truth)
        if self.is_partial:
            return f"{n:,} of the {self.n_tested:,} held-out rows, chosen at even intervals"
        return counted(n, "row")


@dataclass(frozen=True, eq=False)
class Findings:
    """A model on a table, its score, and the importance of its columns, as far as they are known."""

    subject: Subject
    evidence: Evidence | None = None
    importances: Importances | None = None


def evidence_of(subject: Subject, folds: ReportFolds) -> Evidence | None:
    """Return the best evidence available; None if neither the table nor the training record has any."""
    scored, recorded = subject.scored, subject.history.estimate
    metric = subject.metric
    on_table = None if scored is None else quality_of(scored, metric=metric)
    if scored is not None and not subject.is_training:
        if subject.are_few and recorded is not None:
            return _beside_few(subject, scored, recorded)
        if on_table is not None:
            n, trained = len(scored.truth), subject.n_training_rows
            of = "" if trained is None else f" of {trained:,} rows"
            sample = "" if subject.is_whole else f", a sample of the {subject.table.n_rows:,} in the table"
            words = (
                f"Evaluated on {counted(n, 'row')}{sample}. This is not the table{of} that the model was trained on. "
                "If they have rows in common, the score is slightly too optimistic."
            )
            return Evidence("table", on_table, words, scored, n_tested=n)
    if recorded is not None:
        return _recorded(subject, recorded, on_table)
    if scored is None or on_table is None:
        return None
    found = folds.scored()
    quality = None if found is None else quality_of(found, N_FOLDS, metric)
    if found is not None and quality is not None:
        return Evidence("folds", quality, folds.words, found, on_table, len(found.truth))
    sample = "" if subject.is_whole else f"a sample of {len(subject.rows):,} of "
    if subject.is_training_known:
        words = (
            f"These are {sample}the rows that the model was trained on; no other rows were held out. On new rows the "
            "score will be lower, by an unknown amount."
        )
    else:
        words = (
            f"Evaluated on {sample}this table, which has as many rows as the training data. The model does not record "
            "whether they are the same rows: if they are, the score on new rows will be lower, by an unknown amount."
        )
    return Evidence("training", on_table, words, scored, n_tested=len(scored.truth))


def _beside_few(subject: Subject, scored: ScoredRows, recorded: RecordedEstimate) -> Evidence:
    """Return the score found in training, with a remark on the rows of the table, which are too few for a score."""
    n = len(scored.truth)
    did = f"it was off by {amount_text(float(np.abs(scored.truth - scored.predicted).mean()), subject.form)} on average"
    if scored.classes is not None:
        did = f"it predicted {int(scored.is_right.sum()):,} of {n:,} correctly"
    found = _recorded(subject, recorded, None)
    # The rows held out in training are not of this table.
    held_out = None if found.scored is None else replace(found.scored, rows=None)
    words = (
        f"Estimated during training, as this table has only {counted(n, 'row')} with a known true value, too few to "
        f"measure how good the model is ({did}). {found.description}"
    )
    return replace(found, scored=held_out, description=words)


def _recorded(subject: Subject, found: RecordedEstimate, on_table: Quality | None) -> Evidence:
    held_out = found.held_out
    scored = None if held_out is None or held_out.classes != subject.classes else held_out  # or of another model
    ours = None if scored is None else quality_of(scored, metric=subject.metric)
    trained_by, given = subject.history.metric, subject.metric
    if ours is not None and subject.classes and trained_by is not None and trained_by.name != given.name:
        quality = ours
    else:
        noted = {name: getattr(found, name) for name in ("low", "high", "baseline", "baseline_class")}
        noted |= {"typical_error": found.mean_absolute_error, "baseline_error": None}
        filled = {name: getattr(ours, name, None) if value is None else value for name, value in noted.items()}
        quality = Quality(found.measure, found.value, **filled, other={} if ours is None else ours.other)
    words = sentence(found.words) or "Estimated during training, on rows that the tested model had not seen."
    return Evidence("record", quality, words, scored, on_table, found.n_tested)
