"""The section "Decisions explained": the reasons for a few predictions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from margrove.app.report.blocks import Bar, Bars, Block, Card, Folded, Grid, Section, Words, bars_of, note
from margrove.app.report.explain import ExplainedRow, examples
from margrove.app.report.findings import Findings
from margrove.app.report.model_on_table import Subject
from margrove.app.report.plain_words import estimate_text, more_columns, share_words, signed
from margrove.data.target import UNLABELLED_LEFT_OUT
from margrove.explanation import counted

_TITLES = {
    "sure": "One it is sure of",
    "borderline": "A borderline one: right, but the least sure",
    "wrong": "One it gets wrong",
    "other": "One of another class",
    "near": "One it estimates well",
    "usual": "A usual one: half of the rows are closer, half further off",
    "far": "The one it is furthest off",
}
_MOST_CELLS = 40
_NOTHING_ALONE = "It is so sure that no column by itself, were it as usual, would change anything."
_NOTHING_USUAL = (
    "An explanation compares the row with what is usual, and this table has too few rows to tell what that is. A "
    "report on a table with more rows shows what each column did."
)


def decisions_section(found: Findings) -> Section | None:
    """Write up to three examples; None where there is no prediction to explain."""
    subject = found.subject
    shown = examples(subject)
    if not shown:
        return None
    blocks: list[Block] = [Words(_introduction(subject, shown))]
    blocks += [Card(_TITLES[example.kind], _blocks(subject, example)) for example in shown]
    judged = subject.judged
    has_wrong = any(example.kind == "wrong" for example in shown)
    if judged is not None and judged.classes is not None and len(judged.truth) > 1 and not has_wrong:
        none = f"None of the {len(judged.truth):,} rows looked at is judged wrongly, so there is no mistake to explain."
        seen = "has seen" if subject.is_training_known else "may have seen"
        unfair = f" But it {seen} them in training: on new rows it may make mistakes." if subject.is_training else ""
        blocks.append(note(f"{none}{unfair}"))
    return Section("examples", "Decisions explained", blocks, {"examples": [_data(example) for example in shown]})


def _introduction(subject: Subject, found: list[ExplainedRow]) -> str:
    rows = "this table" if subject.is_whole else f"a sample of {len(subject.rows):,} rows of this table"
    n = {1: "One row", 2: "Two rows", 3: "Three rows"}[len(found)]
    text = f"{n} of {rows}, and how the model came to its answer."
    if any(note.endswith(UNLABELLED_LEFT_OUT) for note in subject.table.notes):
        text += (
            " Rows are counted without those that have no answer and were left out, so in the file they stand further "
            "down."
        )
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
    if example.questions:
        rows = [[str(i), q.asked, q.cell, q.after] for i, q in enumerate(example.questions, start=1)]
        outcome = "the estimate from them" if subject.classes is None else "their largest share"
        header = ["", "what holds for this row", "its cell", f"training rows like it, and {outcome}"]
        blocks.append(Words("The tree asks one question after the other; these answers lead to its leaf:"))
        blocks.append(Grid(header, rows, numeric=frozenset({0}), long=frozenset({1})))
    if example.shares:
        bars = [Bar(name, share, f"{100 * share:.1f} %") for name, share in example.shares]
        blocks.append(Bars(bars, "Share of the votes of all trees for each class"))
    if example.pushes:
        blocks.append(_pushes(subject, example))
        if example.base is not None and not example.is_linear:
            blocks.append(note(_ordinary(subject, example)))
    elif example.base is not None and not example.is_linear:
        is_unknown = subject.are_few and not subject.is_training
        blocks.append(note(_NOTHING_USUAL if is_unknown else _NOTHING_ALONE))
    if example.neighbours:
        blocks.append(_neighbours(subject, example))
    if example.cells:
        caption = more_columns(max(0, len(example.cells) - _MOST_CELLS))
        blocks.append(Folded("The whole row", [Grid(["column", "cell"], example.cells[:_MOST_CELLS], caption)]))
    return blocks


def _verdict(subject: Subject, example: ExplainedRow) -> str:
    row = f"Row {example.row + 1:,}"
    if subject.classes is None:
        return f"{row}: estimated {estimate_text(float(example.predicted))}, truly {example.truth}."
    sure = "" if example.probability is None else f" ({100 * example.probability:.0f} % sure)"
    if example.probability is not None and example.questions:  # a share of few rows is no certainty
        sure = f", as {share_words(example.probability)} of the training rows like it are"
    if example.kind == "wrong":
        return f"{row} is {example.truth!r}, but the model says {example.predicted!r}{sure}."
    known = " It is right." if example.truth is not None else ""
    close = f", next comes {example.rival!r}" if example.kind == "borderline" else ""
    return f"{row}: the model says {example.predicted!r}{sure}{close}.{known}"


def _ordinary(subject: Subject, example: ExplainedRow) -> str:
    """Describe the prediction for a row with typical cells."""
    base = example.base or 0.0
    if subject.classes is None:
        return f"A row with every column as usual would be estimated {estimate_text(base)}."
    if base > 0:
        named = f"also be called {example.predicted!r} rather than {example.rival!r}"
    else:
        named = f"be called {example.rival!r} rather than {example.predicted!r}"
    return f"A row with every column as usual would {named}."


def _pushes(subject: Subject, example: ExplainedRow) -> Bars:
    shown = {}
    for push in example.pushes:
        usual = f" ({push.compared})" if push.compared and push.usual != push.cell else ""
        shown[f"{push.column}{f' = {push.cell}' if push.cell else ''}{usual}"] = push.amount
    lead, base = example.lead or 0.0, example.base or 0.0
    if example.is_linear:
        if example.n_others:
            rest = lead - base - sum(shown.values())
            shown[f"the other {counted(example.n_others, 'column')}"] = rest
        if subject.classes is not None:
            shown = {"an average row starts with": base, **shown, "in all": lead}
    most = max(abs(amount) for amount in shown.values()) or 1.0
    bars = bars_of(shown, lambda amount: _amount(example, amount, most))
    right = "raises it" if subject.classes is None else f"for {example.predicted!r}"
    left = "lowers it" if subject.classes is None else f"for {example.rival!r}"
    return Bars(bars, _pushes_caption(subject, example, most), left=left, right=right)


def _amount(example: ExplainedRow, amount: float, most: float) -> str:
    """Return an amount, in points of all votes or in the units of the decision function."""
    return f"{signed(100 * amount, 10)} points" if example.shares else signed(amount, most)


def _pushes_caption(subject: Subject, example: ExplainedRow, most: float) -> str:
    lead, base = example.lead or 0.0, example.base or 0.0
    if example.is_linear and subject.classes is None:
        return f"What each column adds to the {estimate_text(base)} of an average row, to make {estimate_text(lead)}"
    if example.is_linear:
        return "What each column adds to what an average row has; the sum decides"
    usual = "as usual in this table" if subject.are_few and not subject.is_training else "as usual"
    if subject.classes is None:
        return f"By how much the estimate would change, were the column {usual}"
    over = f"How much of the lead over {example.rival!r} would be lost, were the column {usual}"
    text = _amount(example, lead, most).removeprefix("+")
    return f"{over}; the lead is {text if any(digit in text for digit in '123456789') else 'next to nothing'}"


def _neighbours(subject: Subject, example: ExplainedRow) -> Folded:
    header, most = ["training row", "its answer", "likeness", "pull"], max(abs(n.pull) for n in example.neighbours)
    rows = [[f"{n.row + 1:,}", n.answer, f"{n.likeness:.3g}", signed(n.pull, most)] for n in example.neighbours]
    towards = "raises the estimate" if subject.classes is None else f"is for {example.predicted!r}"
    words = (
        "The machine compares the row with training rows it remembers (support vectors). These pull hardest; a pull "
        f"above 0 {towards}."
    )
    found = Grid(header, rows, numeric=frozenset({0, 2, 3}))
    return Folded("Training rows it was compared with", [Words(words), found])
