"""Words of a column that are spelled in several ways: joined to one spelling, and dashes among them left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from margrove.advice import Advice, Setting
from margrove.data.columns import MISSING, Column, category_column, named, some
from margrove.data.written import DASHES, is_absent

_MOST_JOINED = 10_000  # levels among which spellings are compared
_ANSWERS = ("y", "n", "j", "m", "f", "w", "t")  # letters for yes, no, true, false, male and female


def as_trained_spelling(column: Column, trained: tuple[str, ...]) -> tuple[Column, list[str]]:
    """Return words that differ from a trained one only in case or blanks in the trained spelling, with a note."""
    if column.kind != "category":
        return column, []
    known: dict[str, list[str]] = defaultdict(list)
    for level in trained:
        known[fold(level)].append(level)
    column, dashes = without_dashes(column, trained)
    spelling = {
        str(level): known[fold(str(level))][0]
        for level in column.levels
        if level not in trained and len(known.get(fold(str(level)), ())) == 1
    }
    if not spelling:
        return column, dashes
    pairs = [f"{given!r} as {level!r}" for given, level in spelling.items()]
    levels = [spelling.get(str(level), level) for level in column.levels]
    note = f"Column {column.name!r}: read {some(pairs, 3)}."
    return category_column(column.name, column.values, levels), [*dashes, note]


def without_dashes(column: Column, trained: tuple[str, ...] = ()) -> tuple[Column, list[str]]:
    """Return words with missing cells in place of dashes and of errors of spreadsheets, with a note. Beside "+", or a
    single word, "-" is a class, as it is where training knew it as one."""
    dashes = DASHES if set(DASHES).isdisjoint(trained) else ()
    missing = [level for level in map(str, column.levels) if level in dashes or is_absent(level)]
    n_words = len(trained) or len(column.levels) - len(missing)
    kept_dashes = [level for level in missing if level in DASHES] if n_words < 2 and not trained else []
    if "+" in (trained or column.levels) or n_words < 2:
        missing = [level for level in missing if level not in DASHES]
    missing = [level for level in missing if level not in trained]
    if not missing:
        mark = next(iter(kept_dashes), "")
        words = (
            f"Column {column.name!r}: {mark!r} is kept as a word beside a single other. If it marks missing cells, set "
        )
        return column, [Advice(words, Setting("missing", mark), ".")] if mark and n_words else []
    kept = [level for level in column.levels if level not in missing]
    place = {level: code for code, level in enumerate(kept)}
    recode = np.array([*(place.get(level, MISSING) for level in column.levels), MISSING], dtype=np.int32)
    verb = "is" if len(missing) == 1 else "are"
    note = f"Column {column.name!r}: {named(missing)} {verb} read as missing."
    return Column(column.name, "category", recode[column.values], tuple(kept)), [note]


def joined(column: Column) -> tuple[Column, list[str]]:
    """Return the column with spellings that differ only in case or blanks joined to the most frequent, and a note."""
    levels = [str(level) for level in column.levels]
    if len(levels) > _MOST_JOINED or len(levels) > max(100, len(column) // 2):
        return column, []
    groups: dict[str, list[int]] = defaultdict(list)
    for code, level in enumerate(levels):
        groups[fold(level)].append(code)
    if len(groups) == len(levels):
        return column, []
    counts = np.bincount(column.values[column.values >= 0], minlength=len(levels))
    codes, firsts = np.unique(column.values, return_index=True)
    first = np.full(len(levels), len(column))
    first[codes[codes >= 0]] = firsts[codes >= 0]
    spelling, pairs = list(levels), []
    for group in groups.values():
        best = min(group, key=lambda code: (-counts[code], first[code]))
        rest = [code for code in group if code != best]
        if _may_differ(levels[best], [levels[code] for code in rest]) and counts[rest].sum() * 4 > counts[group].sum():
            continue
        for code in group if rest else ():
            spelling[code] = " ".join(levels[best].split())
        pairs += [f"{levels[code]!r} becomes {spelling[code]!r}" for code in group if spelling[code] != levels[code]]
    if not pairs:
        return column, []
    note = f"Column {column.name!r}: spellings that differ only in case or spaces are joined: {some(pairs, 3)}."
    return category_column(column.name, column.values, spelling), [note]


def _may_differ(word: str, others: Sequence[str]) -> bool:
    """Return whether words that differ only in case may mean different things, as the genotypes AA, Aa and aa do."""
    is_odd = any(other[0].islower() and other[-1].isupper() for other in (word, *others))  # aB
    return len(word) <= 2 and word.casefold() not in _ANSWERS and (len(set(word.casefold())) == 1 or is_odd)


def fold(level: str) -> str:
    """Return the form in which spellings are compared: lower case, single blanks."""
    return " ".join(level.casefold().split())
