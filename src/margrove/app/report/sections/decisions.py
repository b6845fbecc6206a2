"""The section "Predictions explained": the reasons for a few predictions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from margrove.app.report.blocks import Bar, Bars, Block, Card, Folded, Grid, Section, Words, bars_of, note
from margrove.app.report.charts import unit_of
from margrove.app.report.explain import ExplainedRow, examples
from margrove.app.report.findings import Findings
from margrove.app.report.model_on_table import Subject
from margrove.app.report.plain_words import estimate_text, more_columns, share_words, signed
from margrove.data.target import UNLABELLED_LEFT_OUT
from margrove.explanation import counted
from margrove.tree.words import number_text

_TITLES = {
    "confident": "A confident prediction",
    "borderline": "A borderline prediction",
    "wrong": "A wrong prediction",
    "other": "A prediction of another class",
    "best": "The best estimate",
    "typical": "A typical estimate: half of the errors are smaller, half are larger",
    "worst": "The worst estimate",
}
_MOST_CELLS = 40
_NOTHING_ALONE = "No single column decides: the usual value in any one of them would not change the prediction."
_NOTHING_USUAL = (
    "An explanation compares the row with the usual value of each column, and this table has too few rows to know it. "
    "A report on a table with more rows shows the effect of each column."
)


def decisions_section(found: Findings) -> Section | None:
    """Write up to three examples; None where there is no prediction to explain."""
    subject = found.subject
    shown = examples(subject)
    if not shown:
        return None
    blocks: list[Block] = [Words(_introduction(subject, shown))]
    blocks += [Card(_TITLES[example.kind], _blocks(subject, example)) for example in shown]
    scored = subject.scored
    has_wrong = any(example.kind == "wrong" for example in shown)
    if scored is not None and scored.classes is not None and len(scored.truth) > 1 and not has_wrong:
        none = f"All {len(scored.truth):,} rows are predicted correctly, so there is no mistake to explain."
        seen = "has seen" if subject.is_training_known else "may have seen"
        unfair = f" The model {seen} them in training: on new rows it may be wrong." if subject.is_training else ""
        blocks.append(note(f"{none}{unfair}"))
    return Section("examples", "Predictions explained", blocks, {"examples": [_data(example) for example in shown]})


def _introduction(subject: Subject, found: list[ExplainedRow]) -> str:
    rows = "this table" if subject.is_whole else f"a sample of {len(subject.rows):,} rows of this table"
    n = {1: "One row", 2: "Two rows", 3: "Three rows"}[len(found)]
    text = f"{n} of {rows}, and the reasons for the prediction{'s' if len(found) > 1 else ''}."
    if any(note.endswith(UNLABELLED_LEFT_OUT) for note in subject.table.notes):
        text += " Rows without a target were left out and are not counted, so row numbers in the file are higher."
    return text


def _data(example: ExplainedRow) -> dict[str, Any]:
    record = asdict(example)
    record["row"] += 1  # as everywhere in the report, the first row is row 1
    record["cells"] = dict(example.cells)
    record["shares"] = dict(example.shares)
    for neighbour in record["neighbours"]:
        neighbour["row"] += 1
    return record


def _blocks(subject: Subject, example: ExplainedRow) -> list[Block]:
    blocks: list[Block] = [Words(_verdict(subject, example), "lead")]
    if example.path:
        rows = [[str(i), test.condition, test.cell, test.training_rows] for i, test in enumerate(example.path, start=1)]
        outcome = "their estimate" if subject.classes is None else "their most common class"
        text = f"Beside each condition: the training rows that satisfy all conditions up to it, and {outcome}."
        blocks.append(Words(f"The tree applies a sequence of tests. This row satisfies these conditions. {text}"))
        blocks.append(Grid(["", "condition", "this row", "training rows"], rows, numeric=frozenset({0})))
    if example.shares:
        bars = [Bar(name, share, f"{100 * share:.1f} %") for name, share in example.shares]
        is_vote = bool(example.voters)
        caption = (
            "Share of the trees' votes for each class" if is_vote else "Share of each class, averaged over the trees"
        )
        blocks.append(Bars(bars, caption))
    if example.contributions:
        blocks.append(_contributions(subject, example))
        if example.base is not None and not example.is_linear:
            blocks.append(note(_ordinary(subject, example)))
    elif example.base is not None and not example.is_linear:
        is_unknown = subject.are_few and not subject.is_training
        blocks.append(note(_NOTHING_USUAL if is_unknown else _NOTHING_ALONE))
    if example.neighbours:
        blocks.append(_neighbours(subject, example))
    if example.cells:
        caption = more_columns(max(0, len(example.cells) - _MOST_CELLS))
        blocks.append(Folded("The whole row", [Grid(["column", "value"], example.cells[:_MOST_CELLS], caption)]))
    return blocks


def _verdict(subject: Subject, example: ExplainedRow) -> str:
    row = f"Row {example.row + 1:,}"
    if subject.classes is None:
        known = "" if example.truth is None else f", true value {number_text(float(example.truth), subject.form)}"
        return f"{row}: estimated {estimate_text(float(example.predicted), subject.form)}{known}."
    sure = "" if example.probability is None else f" (probability {100 * example.probability:.0f} %)"
    if example.probability is not None and example.path:  # a share of few rows is no reliable probability
        sure = f", the class of {share_words(example.probability)} of the training rows in the same leaf"
    if example.kind == "wrong":
        return f"{row} is {example.truth!r}, but the model predicts {example.predicted!r}{sure}."
    known = " The prediction is correct." if example.truth is not None else ""
    close = f"; the second most likely class is {example.rival!r}" if example.kind == "borderline" else ""
    return f"{row}: the model predicts {example.predicted!r}{sure}{close}.{known}"


def _ordinary(subject: Subject, example: ExplainedRow) -> str:
    """Describe the prediction for a row with typical cells."""
    base = example.base or 0.0
    if subject.classes is None:
        return f"A row with the usual value in every column would be estimated at {estimate_text(base, subject.form)}."
    if base > 0:
        named = f"also be predicted as {example.predicted!r} rather than {example.rival!r}"
    else:
        named = f"be predicted as {example.rival!r} rather than {example.predicted!r}"
    return f"A row with the usual value in every column would {named}."


def _contributions(subject: Subject, example: ExplainedRow) -> Bars:
    shown = {}
    for each in example.contributions:
        usual = f" ({each.compared})" if each.compared and each.usual != each.cell else ""
        shown[f"{each.column}{f' = {each.cell}' if each.cell else ''}{usual}"] = each.amount
    lead, base = example.lead or 0.0, example.base or 0.0
    if example.is_linear:
        if example.n_others:
            rest = lead - base - sum(shown.values())
            others = "column" if example.n_others == 1 else counted(example.n_others, "column")
            shown[f"the other {others}"] = rest
        if subject.classes is not None:
            shown = {"an average row": base, **shown, "total": lead}
    most = max(abs(amount) for amount in shown.values()) or 1.0
    unit = unit_of(subject.form) if subject.classes is None else ""
    bars = bars_of(shown, lambda amount: _amount(example, amount, most))
    right = "raises it" if subject.classes is None else f"for {example.predicted!r}"
    left = "lowers it" if subject.classes is None else f"for {example.rival!r}"
    return Bars(bars, f"{_contributions_caption(subject, example, most)}{unit}", left=left, right=right)


def _amount(example: ExplainedRow, amount: float, most: float) -> str:
    """Return an amount, in points of all votes or in the units of the decision function."""
    return f"{signed(100 * amount, 10)} points" if example.shares else signed(amount, most)


def _contributions_caption(subject: Subject, example: ExplainedRow, most: float) -> str:
    lead, base = example.lead or 0.0, example.base or 0.0
    if example.is_linear and subject.classes is None:
        ends = [estimate_text(number, subject.form) for number in (base, lead)]
        return f"Effect of each column, from {ends[0]} (an average row) to {ends[1]} (this row)"
    if example.is_linear:
        return "Effect of each column, compared with an average row; the total decides"
    usual = "usual value in this table" if subject.are_few and not subject.is_training else "usual value"
    if subject.classes is None:
        return f"Effect of each column on the estimate, compared with its {usual}"
    over = f"How much of the lead over {example.rival!r} would be lost if the column had its {usual}"
    text = _amount(example, lead, most).removeprefix("+")
    return f"{over}; the lead is {text if any(digit in text for digit in '123456789') else 'close to zero'}"


def _neighbours(subject: Subject, example: ExplainedRow) -> Folded:
    truth, most = "value" if subject.classes is None else "class", max(abs(n.influence) for n in example.neighbours)
    header = ["training row", f"its {truth}", "similarity", "influence"]
    rows = [[f"{n.row + 1:,}", n.label, f"{n.similarity:.3g}", signed(n.influence, most)] for n in example.neighbours]
    towards = "raises the estimate" if subject.classes is None else f"supports {example.predicted!r}"
    words = (
        "The model compares the row with training rows that it keeps (support vectors). These have the most influence "
        f"for and against; the sum over all of them decides. An influence above 0 {towards}."
    )
    found = Grid(header, rows, numeric=frozenset({0, 2, 3}))
    return Folded("Training rows it is compared with", [Words(words), found])
