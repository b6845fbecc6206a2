"""Explanations of predictions for single rows: by columns, by the path through a tree, by votes, by support vectors.

The *lead* of a prediction is its score less that of the strongest other class; of a number it is the number itself. A
column's *contribution* is how much of the lead is lost when the column is set to its typical value (the median, or the
most frequent level). Of a linear model contributions are exact and add up: w·(x − mean), summed over encoded columns.
The names of the fields below are keys of the report as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrove.app.report.model_on_table import FEW_ROWS, Subject
from margrove.data import Column, Table
from margrove.data.columns import MISSING, clip
from margrove.errors import InputError, ParameterError
from margrove.explanation import RowVoter, counted, leads, summed
from margrove.tree.words import amount_text, number_text, rounded

_MOST_COLUMNS = 200  # beyond it columns are not changed one by one
_MOST_CONTRIBUTIONS = 8  # effects shown for a row
_NEIGHBOURS = 4
_EXAMPLES = 3
Places = Sequence[int] | NDArray[np.intp]  # of rows in the sample
_LONGEST_CELL = 60  # letters
_USUAL = 0.1  # of the rows, at least, have what is called usual
_IN_PHRASE = 3  # columns
_NOTHING = "no column stands out"
_AS_TYPICAL = "as for a typical row"  # of a prediction that no column speaks for
_NOTABLE = 0.2  # of the largest contribution: smaller ones are not in a phrase
_MOST_CHANGED = 50_000  # rows that are predicted at a time, each with some column changed
_TIE = 1e-9  # less than two shares of a leaf can differ by, unless they are equal


@dataclass(frozen=True)
class Contribution:
    """The effect of one column: for the prediction above 0, against it below."""

    column: str
    cell: str
    amount: float
    usual: str = ""  # the typical cell
    compared: str = ""  # the same, and how typical it is


@dataclass(frozen=True)
class PathTest:
    """One condition on the path through a tree, the cell of the row, and the training rows that it holds for."""

    condition: str
    cell: str
    training_rows: str


@dataclass(frozen=True)
class Neighbour:
    """A support vector, its kernel value, and its term of the decision function: for the prediction above 0."""

    row: int
    label: str
    similarity: float
    influence: float


@dataclass(frozen=True)
class ExplainedRow:
    """One prediction with its reasons."""

    kind: str  # "confident", "borderline", "wrong", "other"; of numbers "best", "typical", "worst"
    row: int  # of the table, from 0
    truth: str | None
    predicted: str
    rival: str | None  # the strongest other class
    confidence: float | None  # of classes: its score less that of the rival
    probability: float | None
    cells: tuple[tuple[str, str], ...]
    contributions: tuple[Contribution, ...] = ()
    path: tuple[PathTest, ...] = ()
    voters: tuple[RowVoter, ...] = ()
    shares: tuple[tuple[str, float], ...] = ()  # of a vote: of each class
    neighbours: tuple[Neighbour, ...] = ()
    is_linear: bool = False
    base: float | None = None  # the lead of a row with typical cells; of a linear model, of an average row
    lead: float | None = None  # of the row itself
    n_others: int = 0  # columns of a linear model with smaller contributions


def examples(subject: Subject) -> list[ExplainedRow]:
    """Explain a confident, a borderline and a wrong prediction, or more confident ones where none is wrong; of a
    regressor the best, a typical and the worst one."""
    return [_explained(subject, kind, place) for kind, place in _choose(subject)]


def _choose(subject: Subject) -> list[tuple[str, int]]:
    """Return the kinds of rows and their places in the sample."""
    scored = subject.scored
    places = np.arange(len(subject.rows)) if scored is None else subject.scored_places
    if subject.explanation.task == "numbers" and scored is not None:
        order = np.argsort(np.abs(scored.truth - scored.predicted), kind="stable")
        kinds = {"best": order[0], "typical": order[len(order) // 2], "worst": order[-1]}
        return [(kind, int(places[at])) for kind, at in kinds.items()]
    if subject.scores is None:
        return []
    # Of equally confident predictions, one of the leaf with most training rows.
    lead = leads(subject.scores[places], subject.predicted[places])
    lead = lead + _TIE * subject.explanation.share_alike(subject.encoded(places))
    is_right = np.ones(len(places), bool) if scored is None else scored.is_right
    chosen: list[tuple[str, int]] = []
    if is_right.any():
        sure = int(np.where(is_right, lead, -np.inf).argmax())
        borderline = int(np.where(is_right, lead, np.inf).argmin())
        chosen.append(("confident", int(places[sure])))
        if lead[borderline] < lead[sure] - 2 * _TIE:
            chosen.append(("borderline", int(places[borderline])))
    while is_right.all() and len(chosen) < _EXAMPLES:  # instead of a mistake, rows of other classes
        is_other = ~np.isin(subject.predicted[places], [int(subject.predicted[place]) for _, place in chosen])
        if not is_other.any():
            break
        chosen.append(("other", int(places[np.where(is_other, lead, -np.inf).argmax()])))
    if not is_right.all():
        # The most confident mistake teaches most; one that is merely borderline is like the row before.
        chosen.append(("wrong", int(places[np.where(is_right, -np.inf, lead).argmax()])))
    return chosen


def _explained(subject: Subject, kind: str, place: int) -> ExplainedRow:
    table, explanation, classes = subject.sample, subject.explanation, subject.classes
    row, scored, truth = int(subject.rows[place]), subject.scored, None
    if scored is not None and scored.rows is not None and row in scored.rows:
        true = scored.truth[int(np.searchsorted(scored.rows, row))]
        truth = rounded(float(true)) if scored.classes is None else scored.classes[int(true)]
    rival = confidence = probability = None
    code = other = 0
    if classes is None:
        predicted = rounded(float(f"{subject.predicted[place]:.6g}"))
    else:
        assert subject.scores is not None
        code, scores = int(subject.predicted[place]), subject.scores[place]
        has_probability = hasattr(subject.model, "predict_proba") and not explanation.mere_shares
        probability = float(scores[code]) if has_probability else None
        other = int(np.where(np.arange(len(scores)) == code, -np.inf, scores).argmax())
        if truth is not None and truth in classes and classes.index(truth) != code:
            other = classes.index(truth)  # of a mistake: why not the truth
        confidence = float(scores[code] - scores[other])
        predicted, rival = classes[code], classes[other]
    encoded = subject.encoded([place])
    found: dict[str, Any] = {}
    steps = explanation.path_tests(encoded)
    if steps is not None:
        found["path"] = tuple(
            PathTest(condition, _cell(subject, column, place), rows) for column, condition, rows in steps
        )
    else:
        found.update(_contributions(subject, [place], code, other)[0])
        found["voters"], found["shares"] = explanation.votes(encoded)
        found["neighbours"] = _neighbours(subject, place, code, other)
    cells = () if table.sparse is not None else tuple((c.name, cell_text(c, place)) for c in table)
    return ExplainedRow(kind, row, truth, predicted, rival, confidence, probability, cells, **found)


def _cell(subject: Subject, name: str, place: int, present: Set[str] | None = None) -> str:
    """Return the text of a cell, or of a word of a text whether it is ``present``."""
    if name in subject.sample:
        return cell_text(subject.sample[name], place)
    return "" if present is None else "yes" if name in present else "no"


def reasons(subject: Subject) -> list[str]:
    """Return why each row of the sample is predicted as it is, in a phrase: the conditions on the path through a tree,
    else the columns that contribute most. Raise `ParameterError` for a model that cannot tell."""
    explanation, n = subject.explanation, len(subject.rows)
    met = explanation.conditions_met(subject.encoded())
    if met is not None:
        return met
    codes = others = np.zeros(n, np.intp)
    if subject.scores is not None:
        codes, scores = subject.predicted, subject.scores.copy()
        scores[np.arange(n), codes] = -np.inf
        others = scores.argmax(axis=1)
    is_exact = explanation.weights(int(codes[0]), int(others[0])) is not None
    is_wide = subject.sample.sparse is not None or subject.sample.n_columns > _MOST_COLUMNS
    if explanation.task == "novelty" or (subject.classes and subject.scores is None) or (is_wide and not is_exact):
        of_wide = " from so many columns" if is_wide else ""
        raise ParameterError(f"--explain: {explanation.called} cannot explain its predictions{of_wide}.")
    kept = None
    if not is_exact and subject.are_few and not subject.is_training:
        kept = subject.history.typical  # of the training rows
        if any(name not in kept for name in subject.sample.names):
            raise InputError(
                f"{counted(n, 'row')} {'is' if n == 1 else 'are'} too few for --explain, which compares each row with "
                "typical values, and this model does not keep those of its training rows",
                file=subject.table.source,
                cure=f"Give at least {FEW_ROWS} rows, or train the model again.",
            )
    phrases = [""] * n
    for code, other in {*zip(codes.tolist(), others.tolist(), strict=True)}:
        places = np.flatnonzero((codes == code) & (others == other))
        for block in np.array_split(places, 1 + len(places) * (subject.sample.n_columns + 2) // _MOST_CHANGED):
            for place, found in zip(block.tolist(), _contributions(subject, block, code, other, kept), strict=True):
                phrases[place] = _phrase(subject, found["contributions"])
    return phrases


def _phrase(subject: Subject, contributions: tuple[Contribution, ...]) -> str:
    """Return the few largest contributions in words: to a number with amounts; to a class the columns that speak for
    it, and the strongest against it if that is nearly as strong."""
    most = max((abs(each.amount) for each in contributions), default=0.0)
    large = [each for each in contributions if abs(each.amount) >= _NOTABLE * most > 0]
    if subject.classes is None:
        amounts = [f"{'+' if each.amount > 0 else '−'}{amount_text(abs(each.amount), subject.form)}" for each in large]
        named = [f"{_named(each)} ({amount})" for each, amount in zip(large, amounts, strict=True)]
        return ", ".join(named[:_IN_PHRASE]) or _NOTHING
    for_it = [_named(each) for each in large if each.amount > 0][:_IN_PHRASE]
    against = [f"despite {_named(each)}" for each in large if each.amount < 0][:1]
    if against and not for_it:
        return f"{_AS_TYPICAL}, {against[0]}"
    return "; ".join(filter(None, [", ".join(for_it), *against])) or _NOTHING


def _named(contribution: Contribution) -> str:
    return f"{contribution.column} = {contribution.cell}" if contribution.cell else contribution.column


def _contributions(
    subject: Subject, places: Places, code: int, other: int, kept: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the contributions to the lead of one class over another, for each of some rows. Typical cells are those of
    the table, or those that were ``kept``."""
    weights = subject.explanation.weights(code, other)
    if weights is not None:
        return _exact_contributions(subject, places, *weights)
    table = subject.sample
    if table.sparse is not None or table.n_columns > _MOST_COLUMNS:
        return [{}] * len(places)
    own = [(c, typical(c)) if kept is None else _with_cell(c, kept[c.name]) for c in table]
    usual, width = [cell for _, cell in own], table.n_columns + 2
    # Each row as it is, then with each column in turn set to its typical value, at last with all of them.
    columns = []
    for j, (column, _) in enumerate(own):
        cells = np.repeat(column.values[places][:, None], width, axis=1)
        cells[:, [j + 1, -1]] = usual[j]
        columns.append(replace(column, values=cells.ravel()))
    changed = Table(columns, source=table.source, absent_is_zero=table.absent_is_zero)
    leads_of = subject.explanation.lead(subject.encode(changed), code, other).reshape(len(places), width)
    words = [(value_text(c, value), typical_words(c, value)) for c, value in own]
    found = []
    for place, lead in zip(places, leads_of, strict=True):
        contributions = [
            Contribution(c.name, cell_text(c, place), float(lead[0] - after), *of_usual)
            for c, after, of_usual in zip(table, lead[1:-1], words, strict=True)
        ]
        found.append({"contributions": _largest(contributions), "base": float(lead[-1]), "lead": float(lead[0])})
    return found


def _largest(contributions: list[Contribution]) -> tuple[Contribution, ...]:
    """Return the contributions that matter, the largest first."""
    most = max((abs(each.amount) for each in contributions), default=0.0)
    kept = [each for each in contributions if abs(each.amount) > 0.01 * most]
    return tuple(sorted(kept, key=lambda each: -abs(each.amount))[:_MOST_CONTRIBUTIONS])


def _exact_contributions(
    subject: Subject, places: Places, weights: NDArray[np.float64], b: float
) -> list[dict[str, Any]]:
    encoded, names, found = subject.encoded(), subject.input_names, []
    mean = average_row(subject, encoded)
    for place in places:
        row = encoded[[place]]
        x = np.asarray(row.toarray() if hasattr(row, "toarray") else row, np.float64).ravel()
        amounts = summed(names, weights * (x - mean))
        largest = sorted(amounts, key=lambda name: -abs(amounts[name]))[: 2 * _MOST_CONTRIBUTIONS]
        present = {name for name, value in zip(names, x, strict=True) if value}
        shown = _largest([Contribution(name, _cell(subject, name, place, present), amounts[name]) for name in largest])
        found.append(
            {
                "contributions": shown,
                "base": float(weights @ mean + b),
                "lead": float(weights @ x + b),
                "n_others": sum(amount != 0 for amount in amounts.values()) - len(shown),
                "is_linear": True,
            }
        )
    return found


def _neighbours(subject: Subject, place: int, code: int, other: int) -> tuple[Neighbour, ...]:
    """Return the support vectors with the largest terms for and against the prediction, where the table has them."""
    is_training = subject.is_training and subject.is_training_known
    support = subject.explanation.support(subject.encoded([place]), code, other) if is_training else None
    if support is None:
        return ()
    order = np.argsort(-np.abs(support.terms), kind="stable")
    order = order[support.rows[order] != subject.rows[place]]
    order = np.concatenate([order[sign * support.terms[order] > 0][: _NEIGHBOURS // 2] for sign in (1, -1)])
    rows, target = support.rows[order], subject.table.target
    if not subject.has_at(rows, support.vectors[order]):  # the same rows in another order
        return ()
    truths = ["" if target is None else cell_text(target, int(row)) for row in rows]
    return tuple(
        Neighbour(int(row), truth, float(support.kernel[i]), float(support.terms[i]))
        for row, truth, i in zip(rows, truths, order, strict=True)
    )


def average_row(subject: Subject, encoded: Any) -> NDArray[np.float64]:
    """Return the mean of each encoded column over the training rows, as far as the encoder keeps it, so that the
    explanation of a row does not depend on the other rows of its table; else the mean over these, ``encoded``.

    The encoder centres numbers, so their mean is 0. Of each level of a category it keeps the deviation.
    """
    mean = np.array(encoded.mean(axis=0), np.float64).ravel()
    encoder = subject.encoder
    is_exact = subject.is_training and not subject.n_unlabelled and subject.is_whole
    if is_exact or encoder is None or subject.sample.sparse is not None or not hasattr(encoder, "deviations_"):
        return mean
    kinds = {description["name"]: description["kind"] for description in encoder.columns_}
    places: dict[str, list[int]] = {}
    for place, origin in enumerate(encoder.output_origins()):
        if kinds[origin.column] == "numeric" and not origin.is_missing and encoder.standardise:
            mean[place] = 0.0
        elif kinds[origin.column] == "category":
            places.setdefault(origin.column, []).append(place)
    found = np.asarray(encoder.deviations_, np.float64)
    for levels in places.values():
        mean[levels] = level_shares(found[levels])
    return mean


def level_shares(deviations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share p of each level of a category from the deviation d of its column of 0 and 1.

    d² = p (1 − p), so p is (1 − √(1 − 4 d²))/2, or 1 less that: of the largest level if all others sum to less than ½.
    """
    shares = (1 - np.sqrt(np.maximum(1 - 4 * deviations**2, 0.0))) / 2  # as if none were above ½
    largest = int(shares.argmax())
    others = float(shares.sum() - shares[largest])
    if others < 0.5:
        shares[largest] = 1 - others
    return shares


def typical(column: Column) -> Any:
    """Return the median of numbers, or the most frequent level or truth value, as the column stores it; missing if that
    is more frequent than any level, or than all numbers."""
    present, n_missing = column.values[~column.is_missing], column.n_missing
    most = len(present) if column.kind == "numeric" else np.bincount(present, minlength=1).max()
    if n_missing > most:
        return column.values[column.is_missing][0]
    if column.kind == "numeric":
        # Of an even number of cells the lower middle: a value that occurs, so 0.5 children are never typical.
        return np.sort(present)[(len(present) - 1) // 2]
    return np.bincount(present).argmax()


def typical_cells(table: Table) -> dict[str, float | str | None]:
    """Return the typical cell of each column as a plain value, None for a missing one; nothing of very wide tables."""
    if table.sparse is not None or table.block is not None or table.n_columns > _MOST_COLUMNS:
        return {}
    found = {column.name: (column, typical(column)) for column in table}
    return {name: None if _is_missing(c, v) else _level(c, v) for name, (c, v) in found.items()}


def _level(column: Column, value: Any) -> float | str:
    return str(column.levels[int(value)]) if column.kind == "category" else float(value)


def _with_cell(column: Column, cell: float | str | None) -> tuple[Column, Any]:
    """Return a column that may have this plain value, and the value as the column stores it; a missing cell in place of
    a value of another kind."""
    levels = [str(level) for level in column.levels]
    if column.kind == "category" and isinstance(cell, str):
        known = column if cell in levels else replace(column, levels=(*column.levels, cell))
        return known, [*levels, cell].index(cell)
    is_number = column.kind != "category" and isinstance(cell, float)
    return column, cell if is_number else np.nan if column.kind == "numeric" else MISSING


def cell_text(column: Column, row: int) -> str:
    """Return the text of a cell."""
    return value_text(column, column.values[row])


def value_text(column: Column, value: Any) -> str:
    """Return the text of a value that the column stores."""
    if _is_missing(column, value):
        return "missing"
    if column.kind == "numeric":
        return number_text(float(value), column.format)
    if column.kind == "boolean":
        return "yes" if value else "no"
    return clip(str(column.levels[int(value)]), _LONGEST_CELL)


def typical_words(column: Column, value: Any) -> str:
    """Describe the typical value of a column: "usually" only where a tenth of the rows have it."""
    text = value_text(column, value)
    has_it = column.is_missing if _is_missing(column, value) else column.values == value
    if has_it.mean() >= _USUAL:
        return f"usually {text}"
    return f"median {text}" if column.kind == "numeric" else f"compared with {text}"


def _is_missing(column: Column, value: Any) -> bool:
    return bool(np.isnan(value) if column.kind == "numeric" else value < 0)
