"""The sections for everybody: the purpose of the model, its score, the columns that matter, the proof."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from margrove.app.estimate.intervals import MAYBE_NO_BETTER
from margrove.app.estimate.metrics import BALANCED
from margrove.app.estimate.words import never_words
from margrove.app.history import ScoredRows
from margrove.app.report.blocks import Bar, Bars, Block, Figure, Folded, Headline, Section, Words, note
from margrove.app.report.findings import Evidence, Findings
from margrove.app.report.importance import MEANINGS, ColumnImportance, Importances
from margrove.app.report.measures import Quality, confusion
from margrove.app.report.model_on_table import Subject
from margrove.app.report.plain_words import listed, share_words
from margrove.app.report.proof import certificate_words
from margrove.app.screen.display import verdict_words
from margrove.data.formats import Format
from margrove.explanation import counted
from margrove.tree.words import amount_text

_SHOWN_COLUMNS = 8
_NAMED_COLUMNS = 3  # in the summary
_BALANCED_WORDS = (
    "Balanced accuracy is the mean over the classes of the share of their rows that is predicted correctly, so a rare "
    "class counts as much as a frequent one."
)
_LEAST_SHARE = 0.01  # of the largest importance: less is not named


def summary_section(found: Findings) -> Section:
    """Summarise the report in a few sentences."""
    subject, evidence, importances = found.subject, found.evidence, found.importances
    blocks: list[Block] = [Words(_purpose(subject), "lead")]
    if evidence is not None and evidence.scored is not None and evidence.scored.never:
        blocks.append(Words(never_words(evidence.scored.never), "warning"))
    elif subject.scored is not None and subject.scored.never and not subject.are_few:
        blocks.append(Words(never_words(subject.scored.never, "rows"), "warning"))
    if subject.explanation.task == "novelty":
        n_unusual = int((subject.predicted < 0).sum())
        sample = "" if subject.is_whole else f", a sample of the {subject.table.n_rows:,} in the table,"
        blocks.append(Words(f"Of {counted(len(subject.rows), 'row')}{sample} {n_unusual:,} are unusual.", "lead"))
    if evidence is not None:
        blocks.append(Words(_quality_words(evidence.quality, subject.form), "lead"))
        if not evidence.is_unbiased:
            blocks.append(Words(evidence.description, "warning"))
    if subject.interruption is not None:
        blocks.append(Words(subject.interruption, "warning"))
    if importances is not None:
        names = [
            column.name for column in importances.columns[:_NAMED_COLUMNS] if importances.share(column) > _LEAST_SHARE
        ]
        blocks.append(Words(f"The most important columns: {listed(names, 'and')}."))
    blocks.append(Words(subject.explanation.description()))
    certificate = subject.certificate
    if certificate is not None:
        blocks.append(Words(f"{verdict_words(certificate, is_saved=True)}."))
    data = {
        "target": subject.target,
        "classes": subject.classes,
        "model": type(subject.learner).__name__,
        "status": subject.explanation.status,
        "is_interrupted": subject.interruption is not None,
        "columns": subject.n_columns,
        "trained_on_rows": subject.n_training_rows,
        "table": subject.table.source,
        "table_rows": subject.table.n_rows,
        "rows_looked_at": len(subject.rows),
        "table_is_training_data": subject.is_training if subject.is_training_known else None,
    }
    return Section("summary", "In short", blocks, data)


def _purpose(subject: Subject) -> str:
    columns = counted(subject.n_columns, "column")
    trained = subject.n_training_rows
    learned = "" if trained is None else f" It was trained on {counted(trained, 'row')}."
    if subject.explanation.task == "novelty":
        return f"This model finds rows that differ from those it was trained on, using {columns}.{learned}"
    if subject.classes is None:
        return f"This model estimates the number {subject.target!r} from {columns}.{learned}"
    return f"This model predicts {subject.target!r} ({listed(subject.classes)}) from {columns}.{learned}"


def _quality_words(quality: Quality, form: Format | None) -> str:
    if quality.measure == "R²":
        explained = max(0.0, quality.value)
        text = f"It explains {share_words(explained)} of the variance of the target (R² {quality.value:.2f}"
        text += f"; 95 % interval {quality.interval_words})." if quality.low is not None else ")."
        if quality.typical_error is not None and quality.baseline_error is not None:
            off, usual = amount_text(quality.typical_error, form), amount_text(quality.baseline_error, form)
            text += f" Its mean absolute error is {off}; always predicting the median would have {usual}."
        text += "".join(f" Its {name} is {amount_text(value, form)}." for name, value in quality.other.items())
        return text
    if quality.measure != "accuracy":
        ends = f" (95 % interval: {quality.interval_words})" if quality.low is not None else ""
        text = f"Its {quality.measure} is {_value_text(quality, quality.value)}{ends}."
        constant = (
            ""
            if quality.baseline is None
            else f"; that of a constant prediction is {_value_text(quality, quality.baseline)}"
        )
        return f"{text[:-1]}{constant}."
    text = f"It predicts {share_words(quality.value)} of rows correctly"
    if quality.low is not None:
        text += f" (95 % interval: {quality.interval_words})"
    if quality.baseline is None:
        return f"{text}."
    guess = "the same class" if quality.baseline_class is None else repr(quality.baseline_class)
    text += f". Always predicting {guess} (the baseline) would be correct for {share_words(quality.baseline)}."
    if quality.baseline == 1:
        text += " All these rows are of one class, so this says little about how good it is."
    elif quality.value <= quality.baseline:
        text += " So its accuracy is no better than that."
    elif quality.low is not None and quality.low <= quality.baseline:
        text += f" {MAYBE_NO_BETTER}"
    return text


def quality_section(found: Findings) -> Section | None:
    """Describe the score with its interval, beside that of a constant prediction; and the most common mistake."""
    subject, evidence = found.subject, found.evidence
    if evidence is None:
        return None
    quality = evidence.quality
    blocks = _score_blocks(quality, subject.form)
    scored = evidence.scored
    if scored is not None and scored.classes is not None:
        if quality.measure != "accuracy":
            share = share_words(float(scored.is_right.mean()))
            blocks.append(Words(f"Of {evidence.rows_words}, {share} are predicted correctly (accuracy)."))
        if quality.measure == BALANCED.words:
            blocks.append(Words(_BALANCED_WORDS))
        blocks.append(Words(_mistakes(evidence, scored)))
    blocks.append(Words(evidence.description, "note" if evidence.is_unbiased else "warning"))
    seen = evidence.on_training
    if seen is not None and evidence.is_unbiased:
        on = "them" if subject.is_whole else f"a sample of {len(subject.rows):,} of them"
        measured = f"On {on} its {seen.measure} is {_value_text(seen, seen.value)}"
        text = (
            f"This table contains the training rows. {measured}. A score on rows whose true values a model has seen is "
            "usually too optimistic."
        )
        blocks.append(note(text))
    left_out = {"of classes that the model has never seen": subject.n_unknown_class}
    left_out["without a true value"] = subject.n_unlabelled
    blocks += [note(f"Left out: {counted(n, 'row')} {reason}.") for reason, n in left_out.items() if n]
    source = {"origin": evidence.origin, "is_unbiased": evidence.is_unbiased, "description": evidence.description}
    data = {**source, **asdict(quality)}
    data["rows_tested"] = evidence.n_tested
    data["on_training_rows"] = None if seen is None else asdict(seen)
    return Section("quality", "How good is it?", blocks, data)


def _score_blocks(quality: Quality, form: Format | None) -> list[Block]:
    """Return the score in large figures and as bars, beside that of a constant prediction."""
    interval = f"95 % interval: {quality.interval_words}" if quality.low is not None else ""
    if quality.measure != "R²" and not quality.is_share:
        figures = [Figure(quality.measure, _value_text(quality, quality.value), interval)]
        if quality.baseline is not None:
            figures.append(Figure("of a constant prediction", _value_text(quality, quality.baseline), is_faint=True))
        return [Headline(figures)]
    if quality.is_share:
        value = share_words(quality.value)
        what = "correct predictions (accuracy)" if quality.measure == "accuracy" else quality.measure
        figures = [Figure(what, value, interval)]
        bars = [Bar("this model", quality.value, value, quality.low, quality.high)]
        if quality.baseline is not None:
            guess = "baseline" if quality.baseline_class is None else f"always {quality.baseline_class!r}"
            figures.append(Figure("the same, always the same class", share_words(quality.baseline), is_faint=True))
            bars.append(Bar(guess, quality.baseline, share_words(quality.baseline), is_faint=True))
        what = "Share of rows predicted correctly" if quality.measure == "accuracy" else "Mean over the classes"
        caption = f"{what}; the thin line is the 95 % interval"
        return [Headline(figures), Bars(bars, caption)]
    ours, usual = quality.typical_error, quality.baseline_error
    if ours is None or usual is None:
        return []
    figures = [
        Figure("R²: share of the variance explained", f"{quality.value:.2f}", interval),
        Figure("mean absolute error", amount_text(ours, form)),
        Figure("the same, always the median", amount_text(usual, form), is_faint=True),
        *(Figure(name, amount_text(value, form)) for name, value in quality.other.items()),
    ]
    most = max(ours, usual) or 1.0
    bars = [
        Bar("this model", ours / most, amount_text(ours, form)),
        Bar("always the median", usual / most, amount_text(usual, form), is_faint=True),
    ]
    return [Headline(figures), Bars(bars, "Mean absolute error; shorter is better")]


def _value_text(quality: Quality, value: float) -> str:
    return share_words(value) if quality.is_share else f"{value:.2f}" if quality.measure == "R²" else f"{value:.3f}"


def _mistakes(evidence: Evidence, scored: ScoredRows) -> str:
    assert scored.classes is not None
    counts = confusion(scored)
    n_wrong = int(counts.sum() - np.trace(counts))
    among = f"Among {evidence.rows_words}," if evidence.is_partial else f"Of {evidence.rows_words},"
    if n_wrong == 0:
        return f"{among} none was predicted incorrectly."
    off = counts.copy()
    np.fill_diagonal(off, 0)
    truth, predicted = np.unravel_index(int(off.argmax()), off.shape)
    worst, of_all = int(off[truth, predicted]), int(counts[truth].sum())
    return (
        f"{among} {n_wrong:,} {'was' if n_wrong == 1 else 'were'} predicted incorrectly. The most common mistake: "
        f"{scored.classes[truth]!r} was predicted as "
        f"{scored.classes[predicted]!r} for {worst:,} of {of_all:,} rows."
    )


def matters_section(found: Findings) -> Section | None:
    """Draw the importance of the columns."""
    subject, importances = found.subject, found.importances
    if importances is None:
        return None
    shown = [column for column in importances.columns[:_SHOWN_COLUMNS] if importances.share(column) > _LEAST_SHARE]
    bars = [Bar(c.name, importances.share(c), _importance_text(importances, c)) for c in shown]
    more = len(importances.columns) - len(shown)
    captions = {
        "loss": f"How much {importances.falls} without each column",
        "own": "Share of each column in the model's decisions",
        "gain": "What each column alone tells about the target",
    }
    blocks: list[Block] = [Bars(bars, captions[importances.by])]
    if importances.by == "loss" and shown:
        text = f"Without {shown[0].name!r} {importances.falls} by {bars[0].text}."
        blocks.insert(0, Words(text))
    if more:
        others = f"The other {counted(more, 'column')} matter less or not at all."
        blocks.append(Words(others if more > 1 else "The other column matters less or not at all."))
    if subject.dropped:
        blocks.append(note(f"Left out: {listed([f'{name} ({why})' for name, why in subject.dropped.items()], 'and')}."))
    rows = f" Measured on {importances.rows_words}." if importances.by == "loss" else ""
    blocks.append(note(f"{MEANINGS[importances.by]}{rows}"))
    data: dict[str, Any] = {"by": importances.by, "columns": [asdict(column) for column in importances.columns]}
    return Section("what_matters", "What matters", blocks, data)


def _importance_text(importances: Importances, column: ColumnImportance) -> str:
    value = float(getattr(column, importances.by) or 0.0)
    if importances.by == "loss":
        return importances.loss_text(value)
    return f"{100 * value:.1f} %" if importances.by == "own" else f"{value:.3f} bits"


def proof_section(found: Findings) -> Section | None:
    """Explain the certificate, and its limits."""
    subject, certificate = found.subject, found.subject.certificate
    if certificate is None:
        return None
    verdict, words = verdict_words(certificate, is_saved=True), certificate_words(subject.learner)
    what, how = "the predictions are correct", "the score above shows how often they are"
    if subject.explanation.task == "numbers":
        what, how = "the estimates are correct", "the score above shows how far off they are"
    known = "only rows with known true values can show that" if found.evidence is None else how
    details: list[Block] = [*map(Words, words), *map(note, filter(None, [subject.history.certifying]))]
    blocks: list[Block] = [Words(f"{verdict}."), *([Folded("What was checked", details)] if details else [])]
    blocks.append(note(f"It does not prove that {what}: {known}."))
    return Section(
        "proof", "What is proven", blocks, {"holds": certificate.holds, "verdict": verdict, "description": words}
    )
