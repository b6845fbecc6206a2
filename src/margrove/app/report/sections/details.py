"""The details of every model: its data, its training, its mistakes, the scores of its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from margrove.app.history import Contender, History, ScoredRows
from margrove.app.models import columns_of, plain_parameters
from margrove.app.report.blocks import Bars, Block, Folded, Grid, Listing, Matrix, Section, Words, bars_of, note
from margrove.app.report.charts import (
    calibration_chart,
    digits,
    leaderboard_chart,
    learning_chart,
    percent,
    pr_chart,
    residual_chart,
    roc_chart,
    score_text,
    truth_chart,
)
from margrove.app.report.findings import Findings
from margrove.app.report.importance import ColumnImportance
from margrove.app.report.measures import calibration, class_qualities, confusion, rankings
from margrove.app.report.model_on_table import Subject
from margrove.app.report.plain_words import more_columns, p_text, sentence, status_words
from margrove.app.report.proof import claims_grid, leave_one_out
from margrove.data.columns import clip
from margrove.explanation import counted
from margrove.status import Status

_MOST_COLUMNS = 60  # of a summary or a table of scores
_MOST_CLASSES = 30  # of a matrix, and of bars
_FEW_CLASSES = 12  # whose bars are shown at once
_SHORT_REMARK = 12  # letters that fit beside a score on a phone
_LONGEST = 60  # letters of an example
_NO_CALIBRATION = (
    "The probabilities predicted for these rows were not saved, so this report cannot show whether they match reality "
    "(calibration). A report on rows that are new to the model can."
)
_KINDS = {"boolean": "yes/no"}  # the other kinds are named as they are called


def data_section(found: Findings) -> Section:
    """Describe the columns and the balance of the target."""
    subject = found.subject
    table = subject.table
    blocks: list[Block] = [Words(_extent(subject)), *(Words(text, "warning") for text in subject.warnings)]
    columns: list[dict[str, Any]] = []
    if table.sparse is None:
        columns = [column.summary() for _, column in zip(range(_MOST_COLUMNS), table, strict=False)]
        rows, texts = [], {c["name"] for c in columns_of(subject.model) or () if c["kind"] == "text"}
        for c in columns:
            kind = "text" if c["name"] in texts else _KINDS.get(c["kind"], c["kind"])
            if c["name"] in subject.dropped:
                kind = f"{subject.dropped[c['name']]}: left out"
            missing = f"{c['missing']:,} ({_part(c['missing'] / table.n_rows)})" if c["missing"] else "none"
            rows.append([c["name"], kind, missing, f"{c['distinct']:,}", clip(c["example"], _LONGEST)])
        header, more = ["column", "type", "missing", "distinct", "range or examples"], table.n_columns - len(columns)
        blocks.append(Grid(header, rows, more_columns(more), frozenset({2, 3}), long=frozenset({4})))
    target, classes = table.target, dict[str, int]()
    if target is not None and subject.classes is not None:
        labels, counts = np.unique(target.take(~target.is_missing).labels().astype(str), return_counts=True)
        classes = dict(zip(labels.tolist(), counts.tolist(), strict=True))
    if classes:
        whole, most_frequent = sum(classes.values()), sorted(classes, key=lambda name: -classes[name])
        shown = {name: classes[name] for name in most_frequent[:_MOST_CLASSES]}
        bars = bars_of(shown, lambda n: f"{n:,} ({percent(n / whole)})")
        balance = Bars(bars, f"Rows of each class of {subject.target!r}")
        title = f"Rows of each of {len(classes):,} classes"
        blocks.append(balance if len(bars) <= _FEW_CLASSES else Folded(title, [balance]))
    data = {
        "source": table.source,
        "rows": table.n_rows,
        "columns": columns,
        "classes": [{"label": name, "rows": n} for name, n in classes.items()],
        "unused_columns": list(subject.unused),
        "notes": list(table.notes),
        "warnings": subject.warnings,
    }
    return Section("data", "The data", blocks, data)


def _part(share: float) -> str:
    """Return a share without decimals; 0 % and 100 % only if it is nothing or all."""
    if 0 < share < 0.005:
        return "below 1 %"
    return "above 99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def _extent(subject: Subject) -> str:
    table = subject.table
    columns = counted(subject.n_columns, "column")
    text = f"{subject.source}: {counted(table.n_rows, 'row')}, {columns} used by the model"
    for name, why in subject.dropped.items():
        text += f"; {name!r} is left out ({f'{why}; --text uses its words' if why == 'free text' else why})"
    if subject.unused:
        named = [f"{clip(name, 30)!r}{why and f' ({why})'}" for name, why in subject.unused.items()]
        names = ", ".join(named[:8])
        text += f"; left out: {names}{' …' if len(subject.unused) > 8 else ''}"
    text += "."
    if not subject.is_whole:
        text += f" This report examines a sample of {len(subject.rows):,} rows."
    return text


def training_section(found: Findings) -> Section | None:
    """Describe the learners that were tried, and the choice."""
    history, measure = found.subject.history, found.subject.measure
    contenders, curve = history.leaderboard, history.learning_curve
    if not contenders and not curve:
        return None
    blocks: list[Block] = []
    if history.choice:
        blocks.append(Words(sentence(history.choice)))
    if contenders:
        blocks.append(_leaderboard(history, contenders, measure))
        if sum(c.score is not None for c in contenders) > 1:
            blocks.append(leaderboard_chart(contenders, measure))
    if len(curve) > 1:
        blocks.append(learning_chart(curve, measure))
    blocks += [Words(text, "warning") for text in history.warnings]
    data = {
        "leaderboard": [asdict(c) for c in contenders],
        "choice": history.choice,
        "learning_curve": [asdict(point) for point in curve],
        "seconds": history.seconds,
        "warnings": history.warnings,
    }
    return Section("training", "How it was chosen", blocks, data)


def _leaderboard(history: History, contenders: list[Contender], measure: str) -> Grid:
    score = score_text(measure)
    has_rows = len({c.rows for c in contenders if c.rows is not None}) > 1  # scores on different rows
    rows = []
    for c in contenders:
        error, seconds = "" if c.error is None else f"± {score(c.error)}", f"{c.seconds:.1f} s" if c.seconds else ""
        n_rows = ["" if c.rows is None else f"{c.rows:,}"] if has_rows else []
        rows.append([c.title, score(c.score), error, *n_rows, seconds, _remark(c)])
    header = ["learner", measure, "standard error", *(["rows"] if has_rows else []), "time", ""]
    caption = sentence(history.subsample) if history.subsample else "Cross-validated"
    strong = frozenset(i for i, c in enumerate(contenders) if c.is_chosen)
    has_remarks = any(len(row[-1]) > _SHORT_REMARK for row in rows)
    long = frozenset({len(header) - 1}) if has_remarks else frozenset[int]()
    return Grid(header, rows, caption, frozenset(range(1, len(header) - 1)), strong, long)


def _remark(contender: Contender) -> str:
    """Return the remark on a line of the leaderboard."""
    is_noted = bool(contender.note) and contender.score is not None  # then the note has the status
    is_usual = contender.status in ("", Status.CONVERGED)
    ended = "" if is_usual or is_noted else status_words(contender.status)
    return "; ".join(filter(None, ("chosen" if contender.is_chosen else "", ended, contender.note)))


def mistakes_section(found: Findings) -> Section | None:
    """Describe the mistakes: by class, by threshold, by probability; of a regressor the residuals."""
    subject, evidence = found.subject, found.evidence
    scored = None if evidence is None else evidence.scored
    if evidence is None or scored is None:
        return None
    held_out = {"record": "rows held out in training", "folds": "rows held out for this report"}
    on = held_out.get(evidence.origin, "this table")
    rows = evidence.rows_words if evidence.is_partial else f"{evidence.rows_words} ({on})"
    warning = [] if evidence.is_unbiased else [Words(evidence.description, "warning")]
    if scored.classes is None:
        truth, predicted = scored.truth, scored.predicted
        form = subject.form
        charts = [truth_chart(truth, predicted, subject.target, form), residual_chart(truth, predicted, form)]
        off = np.abs(truth - predicted)
        data: dict[str, Any] = {"on": on, "rows": len(off), "rows_tested": evidence.n_tested}
        data |= {"mean_absolute_error": float(off.mean()), "largest_error": float(off.max())}
        return Section("mistakes", "Errors of the estimates", [Words(f"Evaluated on {rows}."), *warning, *charts], data)
    blocks, data = _of_classes(scored, rows, subject.explanation.mere_shares)
    if evidence.origin == "record" and hasattr(subject.model, "predict_proba") and not scored.has_probabilities:
        blocks.append(note(_NO_CALIBRATION))
    if evidence.is_partial:
        warning.append(note(f"This section covers {rows}."))
    data = {"on": on, "rows_tested": evidence.n_tested, **data}
    return Section("mistakes", "Correct and wrong predictions", [*warning, *blocks], data)


def _of_classes(scored: ScoredRows, rows_words: str, mere_shares: str) -> tuple[list[Block], dict[str, Any]]:
    assert scored.classes is not None
    classes, counts = scored.classes, confusion(scored)
    blocks: list[Block] = []
    if len(classes) <= _MOST_CLASSES:
        caption = f"Each row of the matrix is a true class, each column a predicted class; {rows_words}"
        blocks.append(Matrix(classes, counts.tolist(), caption))
    by_class = class_qualities(scored)
    rows = [[q.name, f"{q.n_rows:,}", percent(q.recall), percent(q.precision)] for q in by_class]
    header = ["class", "rows", "found (recall)", "correct when predicted (precision)"]
    blocks.append(Grid(header, rows[:_MOST_COLUMNS], "", frozenset({1, 2, 3})))
    ranked = rankings(scored)
    if ranked:
        blocks += [roc_chart(ranked, len(classes)), pr_chart(ranked)]
    bins = calibration(scored)
    if len(bins) > 1:
        blocks.append(calibration_chart(bins))
        if mere_shares:
            blocks.append(note(f"These probabilities are {mere_shares}, which are not calibrated."))
    data = {
        "rows": len(scored.truth),
        "confusion": {"classes": classes, "counts": counts.tolist()},
        "classes": [asdict(q) for q in by_class],
        "rankings": [{"class": r.name, "auc": r.auc, "average_precision": r.average_precision} for r in ranked],
        "calibration": [asdict(b) for b in bins],
    }
    return blocks, data


def scores_section(found: Findings) -> Section | None:
    """Return a table of the importance of each column by each measure."""
    importances = found.importances
    if importances is None:
        return None
    measures: list[tuple[str, Callable[[ColumnImportance], str]]] = [
        ("shuffled", lambda c: "" if c.loss is None else importances.loss_text(c.loss)),
        ("in the model", lambda c: percent(c.own)),
        ("gain (bits)", lambda c: digits(c.gain, 3)),
        ("gain ratio", lambda c: digits(c.gain_ratio, 3)),
        ("p-value", lambda c: p_text(c.p_value)),
    ]
    shown = [(name, text) for name, text in measures if any(text(column) for column in importances.columns)]
    rows = [[column.name, *(text(column) for _, text in shown)] for column in importances.columns[:_MOST_COLUMNS]]
    more = len(importances.columns) - len(rows)
    words = []
    if any(c.loss is not None for c in importances.columns):
        shuffled = f"when the column's values are shuffled, on {importances.rows_words}"
        words.append(f"Shuffled: how much {importances.falls} {shuffled}.")
    if any(c.own is not None for c in importances.columns):
        words.append("In the model: the share of a tree's gains, or of a linear model's standardised weights.")
    if any(c.gain is not None for c in importances.columns):
        words.append(
            "Gain: the information about the class, in bits, from the best split of this column alone; the gain ratio "
            "penalises many branches."
        )
    blocks: list[Block] = [
        Grid(["column", *(name for name, _ in shown)], rows, more_columns(more), frozenset(range(1, len(shown) + 1))),
        note(" ".join(words)),
    ]
    return Section("scores", "Scores of each column", blocks, {"columns": [asdict(c) for c in importances.columns]})


def certificate_section(found: Findings) -> Section | None:
    """Return a table of the claims with their numbers."""
    certificate = found.subject.certificate
    if certificate is None:
        return None
    blocks: list[Block] = [
        Folded("Every claim, with its numbers", [claims_grid(certificate), *leave_one_out(found.subject.learner)]),
        Words("To recompute it from the model and the rows it was trained on:"),
        Listing("margrove certify MODEL FILE"),
    ]
    return Section("certificate", "The certificate", blocks, certificate.to_dict())


def about_section(found: Findings) -> Section:
    """Describe the parameters, the versions and the sample."""
    subject = found.subject
    learner = subject.learner
    parameters = plain_parameters(learner)
    how = f"Made by Margrove {version('margrove')} from the model and {subject.source}."
    if not subject.is_whole:
        how += f" It examines a sample of {len(subject.rows):,} of {subject.table.n_rows:,} rows, always the same ones."
    engine, status = subject.explanation.engine, subject.explanation.status
    solved = f"{type(learner).__name__}{'' if engine is None else f', engine {engine}'}."
    ended = "" if status is None else f" How training ended: {status_words(status)}."
    parameters_grid = Grid(["parameter", "value"], [[name, str(value)] for name, value in parameters.items()])
    blocks: list[Block] = [Words(how), Words(f"{solved}{ended}"), Folded("All parameters", [parameters_grid])]
    data = {
        "margrove": version("margrove"),
        "class": type(learner).__name__,
        "engine": engine,
        "status": status,
        "parameters": parameters,
        "sampled_rows": None if subject.is_whole else len(subject.rows),
    }
    return Section("about", "About this report", blocks, data)
