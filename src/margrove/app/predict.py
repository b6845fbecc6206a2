"""``margrove predict``: predict the rows of a table by a saved model."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.estimate.classes import classes_by
from margrove.app.estimate.metrics import Judged, Metric
from margrove.app.estimate.numbers import deviation_of, numbers_by
from margrove.app.files import check_output, write_content
from margrove.app.history import History
from margrove.app.images.models import opened
from margrove.app.models import features_of, format_of, is_classifier, last_step_of, target_of
from margrove.app.options.table import STANDARD_STREAM, Reading
from margrove.app.options.typed import WantedOptions
from margrove.app.screen.advice import in_shell, warnings_told
from margrove.app.screen.console import Screen, put
from margrove.app.screen.display import percent
from margrove.app.screen.progress import metered
from margrove.app.show import expectation_words, history_of
from margrove.certificate import at_the_end
from margrove.data import Table
from margrove.data.dialect import EVIDENT
from margrove.data.formats import Format
from margrove.errors import ParameterError
from margrove.explanation import counted, explanation_of
from margrove.transfer.pictures import PictureFolder

UNNAMED_TARGET = "prediction"  # the column's name where the model does not know its target's
# Text that a spreadsheet reads as a formula, which can start programs. Signed numbers are not formulas.
_FORMULA = re.compile(r"(?s)(?![+-][\d.,]+(?:[eE][+-]?\d+)?\Z)[=+\-@\t\r\n].")


@dataclass(frozen=True)
class Predictions:
    """One label per row and, where asked for, the decision value of each machine, or the probability of each class."""

    target: str
    labels: NDArray[Any]  # (n,)
    scores: NDArray[np.float64] | None  # (n, machines)
    score_names: tuple[str, ...]  # of each column of scores
    kept: Mapping[str, list[Any]]  # columns that stand in front, as they are written
    reasons: list[str] | None = None  # why each row is predicted so
    measures: Mapping[str, float | None] = field(default_factory=lambda: {"accuracy": None})
    words: str = ""  # about them, where the table holds the right labels
    is_of_training: bool = False  # whether these are the rows that the model learned from

    @property
    def header(self) -> list[str]:
        name = f"predicted {self.target}" if self.target in self.kept else self.target
        why = () if self.reasons is None else ("why",)
        return [*self.kept, name, *(self.score_names if self.scores is not None else ()), *why]

    def rows(self) -> list[list[Any]]:
        beside = [] if self.scores is None else self.scores.T.tolist()
        beside += [] if self.reasons is None else [self.reasons]
        return [list(cells) for cells in zip(*self.kept.values(), self.labels.tolist(), *beside, strict=True)]

    def to_csv(self, *, is_raw: bool = False) -> bytes:
        """Return the CSV file, in UTF-8; unless raw, nothing in it is a formula."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        for row in (self.header, *self.rows()):
            # Text that a spreadsheet would run gets an apostrophe in front.
            is_formula = [not is_raw and isinstance(cell, str) and _FORMULA.match(cell) for cell in row]
            writer.writerow([f"'{cell}" if runs else cell for cell, runs in zip(row, is_formula, strict=True)])
        return text.getvalue().encode()


def predict(screen: Screen, model_path: str, reading: Reading, output: str, wanted: WantedOptions) -> None:
    """Read model and table, predict, write."""
    if wanted.scores and wanted.probabilities:
        raise ParameterError("--scores and --probabilities exclude each other; give one of them.")
    check_output(output, "predictions.csv", model_path, reading.file)
    model, pictures, reading = opened(model_path, reading)
    notes: list[str] = []
    with warnings_told(screen) as messages, metered(screen, "predicting"):
        if pictures is None:
            table, kept = reading.unlabelled_with(wanted.columns)
            notes = [in_shell(note) for note in table.notes if not note.startswith(EVIDENT)]
            predictions = _predicted(model, table, kept, wanted)
        else:
            if wanted.keep != "none":
                raise ParameterError(
                    f"--keep {wanted.keep}: pictures have no columns; their file names are always written."
                )
            if wanted.explain:
                raise ParameterError("--explain: pictures have no columns; `margrove report` shows examples of them.")
            predictions = _predicted_pictures(model, pictures, wanted)
    for note in notes:
        screen.say(note, style="dim")
    is_file = output != STANDARD_STREAM
    if is_file or not screen.is_json:
        content = predictions.to_csv(is_raw=wanted.raw)
        if is_file:
            write_content(content, output)
        else:
            put(content)
    if is_file:
        screen.say(f"Wrote {len(predictions.labels):,} predictions of {predictions.target!r} to {output}")
    if predictions.words:
        screen.say(predictions.words)
    history = history_of(model)
    if predictions.is_of_training and history is not None:
        screen.say(expectation_words(history, format_of(model)))
    screen.document(
        {
            "command": "predict",
            "model": model_path,
            "target": predictions.target,
            "columns": predictions.header,
            "rows": predictions.rows(),
            **predictions.measures,
            "is_of_training": predictions.is_of_training,
            "output": output if is_file else None,
            "warnings": messages,
        }
    )


def _predicted(model: Any, table: Table, kept: Mapping[str, list[Any]], wanted: WantedOptions) -> Predictions:
    target, history = target_of(model), History(history_of(model))
    truth, is_of_training = None, False
    if target is not None and target in table:
        truth, table = table[target], table.without(target)
        is_of_training = history.has_rows_of(table.with_target(truth)) is True
    table = table.select([name for name in table.names if name not in history.left_out])
    features = features_of(model, table)
    labels = np.asarray(model.predict(features))
    names, scores = _beside(model, features, wanted)
    reasons = _reasons(model, table) if wanted.explain else None
    predictions = Predictions(target or UNNAMED_TARGET, labels, scores, names, kept, reasons)
    if truth is None:
        return predictions
    known = ~truth.is_missing
    predictions = replace(predictions, is_of_training=is_of_training)
    n, has = int(known.sum()), f"Compared with {target!r} in the table: "
    if n and is_classifier(last_step_of(model)):
        # As text: a file of zeros and ones may be numbers here and yes/no there.
        found, values = truth.take(known).labels().astype(str), labels[known].astype(str)
        judged = Judged.of(np.concatenate([found, last_step_of(model).classes_.astype(str)]), found, values)
        accuracy = float(np.mean(found == values))
        words = f"{percent(accuracy)} of {counted(n, 'prediction')} {'is' if n == 1 else 'are'} correct"
        words = f"{has}{_by_metric(history.metric, judged)}{words}"
        return replace(predictions, measures={"accuracy": accuracy}, words=words)
    if n and truth.kind == "numeric" and not hasattr(last_step_of(model), "offset_"):
        numbers = np.asarray(truth.values[known], np.float64)
        judged = Judged(numbers, np.asarray(labels[known], np.float64), means=numbers.mean())
        off = deviation_of(judged, truth.format)
        measures = {"accuracy": None, "r2": off.r2, "mean_absolute_error": off.mean_absolute_error}
        words = f"{has}{_by_metric(history.metric, judged, truth.format)}{off.words} over {counted(n, 'row')}"
        return replace(predictions, measures=measures, words=words)
    return predictions


def _by_metric(metric: Metric | None, judged: Judged, form: Format | None = None) -> str:
    """Return the score by the metric of the training; nothing if it is shown anyway, or needs more than predictions."""
    if metric is None or metric.name in ("accuracy", "r2", "mae") or not metric.can_score(judged):
        return ""
    task = numbers_by(metric.name, form) if metric.is_of_numbers else classes_by(metric.name)
    return f"{task.named(metric.score(judged))}; "


def _reasons(model: Any, table: Table) -> list[str]:
    """Return the reason for the prediction of each row."""
    from margrove.app.report.explain import reasons
    from margrove.app.report.model_on_table import MOST_ROWS, Subject

    parts = np.array_split(np.arange(table.n_rows), -(-table.n_rows // MOST_ROWS))
    return [reason for rows in parts for reason in reasons(Subject(model, table.take(rows)))]


def _predicted_pictures(model: Any, pictures: PictureFolder, wanted: WantedOptions) -> Predictions:
    """Predict the class of each picture, beside the folder it lies in where that is the name of a class."""
    labels = np.asarray(model.predict(pictures))
    names, scores = _beside(model, pictures, wanted)
    files = [str(path.relative_to(pictures.root)) for path in pictures]
    predictions = Predictions("class", labels, scores, names, {"file": files})
    is_known = np.isin(pictures.labels, last_step_of(model).classes_.astype(str))
    if not is_known.any():
        return predictions
    accuracy = float(np.mean(labels[is_known].astype(str) == pictures.labels[is_known]))
    words = f"{percent(accuracy)} of the {is_known.sum():,} pictures in folders of classes are predicted correctly"
    return replace(predictions, measures={"accuracy": accuracy}, words=words)


def _beside(model: Any, features: Any, wanted: WantedOptions) -> tuple[tuple[str, ...], NDArray[np.float64] | None]:
    """Return the names and columns that were asked for beside the predictions."""
    learner = last_step_of(model)
    if wanted.scores:
        found = explanation_of(learner).scores(at_the_end(model, features)[1])
        if found is None:
            raise ParameterError(f"--scores: {type(learner).__name__} predicts numbers and has no scores.")
        return found
    if not wanted.probabilities:
        return (), None
    if not is_classifier(learner) or not hasattr(model, "predict_proba"):
        problem = f"--probabilities: this {type(learner).__name__} has none."
        raise ParameterError(f"{problem} Train it with --probabilities, or use --scores.")
    shares = explanation_of(learner).mere_shares
    if shares:
        problem = f"--probabilities: this {type(learner).__name__} has only {shares}, not calibrated"
        raise ParameterError(f"{problem}. Train it with --probabilities, or use --scores.")
    names = tuple(f"probability {label}" for label in learner.classes_)
    return names, np.asarray(model.predict_proba(features), np.float64)
