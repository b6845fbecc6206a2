"""A test and its branches in words, and the cells that a path through a tree lets through.

A path of tests restricts the cell of each column to a set: an interval of numbers, some codes, and perhaps a missing
cell. `Allowed` is such a set; a branch narrows it, so that x > 1 and then x > 3 is x > 3. Words, rules and exported
code are all written from these sets.

To stay readable, the words leave out some cases:

- "or missing" is written at the branch of missing cells only if they can reach the test and some training cell of the
  column was missing (`TreeColumn.has_missing`).
- "or other" is written at the branch of levels that occurred in training, can reach the test and did not occur there. A
  level unknown in training takes the same branch, the heaviest, without mention.

Numbers are rounded to six digits, to the nearest. If that is above θ, x ≤ θ is written with < instead of ≤. So a value
of at most six digits is always on the side that is written: between θ and the rounded number there is none, and the
number itself is on its side. Integers up to 10⁹ have all their digits, separated as in 12,345. Code (`export`) has
every digit.

Dates are cut off at the day, or at the second where the column has times. No cell of such a column lies between that
and θ, so x ≤ θ means on that day or before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from margrove.data.dates import IN_CALENDAR
from margrove.data.formats import DateFormat, Format, NumberFormat
from margrove.errors import InputError
from margrove.tree.model import TreeModel
from margrove.tree.problem import TreeColumn
from margrove.visible import visible

_ALL_DIGITS = 1e9  # below it, numbers of more than six digits before the point keep them
_SEPARATED = 1e4  # from it on thousands are separated; below it a number may be a year
MOST_LEVELS = 10  # of a list for people; the others are counted
_LISTED = 4  # levels; where a branch has more, and fewer are left out, these are named instead


@dataclass(frozen=True)
class Allowed:
    """The cells of one column that reach a node of a tree."""

    column: TreeColumn
    low: float = -inf  # of thresholds: low < x ≤ high
    high: float = inf
    codes: frozenset[int] = frozenset()  # of levels or intervals
    named: frozenset[int] = frozenset()  # those of them that occurred in training, test by test
    unseen: bool = False  # whether levels belong to it that training did not know
    missing: bool = True

    @property
    def has_numbers(self) -> bool:
        """Return whether any number belongs to a set of numbers."""
        return self.low < self.high

    @property
    def is_everything(self) -> bool:
        """Return whether no cell is left out."""
        if self.column.test == "threshold":
            return self.missing and self.low == -inf and self.high == inf
        return self.missing and self.has_all_codes and (self.unseen or self.column.test == "intervals")

    @property
    def has_all_codes(self) -> bool:
        """Return whether no code is left out."""
        return len(self.codes) == self.column.n_codes

    @property
    def excluded(self) -> frozenset[int]:
        """Return the codes that do not belong to the set."""
        return frozenset(range(self.column.n_codes)) - self.codes

    def runs(self) -> list[tuple[float, float]]:
        """Return the stretches [from, to) of a set of intervals, neighbours joined."""
        bounds = (-inf, *self.column.cuts, inf)
        stretches: list[tuple[float, float]] = []
        for code in sorted(self.codes):
            if stretches and stretches[-1][1] == bounds[code]:
                stretches[-1] = (stretches[-1][0], bounds[code + 1])
            else:
                stretches.append((bounds[code], bounds[code + 1]))
        return stretches

    def words(self, *, name: bool = True, most: int | None = None) -> str:
        """Return the set as a condition: ``island in {Dream, Torgersen}``, ``x ≤ 3 or missing``; without its name
        ``Dream, Torgersen``, ``≤ 3 or missing``. At most ``most`` levels are listed."""
        subject = visible(self.column.name) if name else ""
        if self.is_everything:
            return f"{subject} is anything".strip()
        if self.column.test == "threshold":
            text = self._number_words(subject)
        elif self.column.test == "intervals":
            text = "" if self.has_all_codes else _run_words(subject, self.runs(), self.column.format)
        else:
            text = self._level_words(subject, most)
        if not text:
            is_absent = self.missing and not (self.has_numbers if self.column.test == "threshold" else self.codes)
            text = ("is missing" if is_absent else "is present") if name else "missing" if is_absent else "present"
            return f"{subject} {text}".strip()
        return f"{text} or missing" if self.missing and self.column.has_missing else text

    def _number_words(self, subject: str) -> str:
        if not self.has_numbers:
            return ""
        form = self.column.format
        above, below = ("" if abs(bound) == inf else number_text(bound, form) for bound in (self.low, self.high))
        is_cut = isinstance(form, DateFormat)  # and never above the bound
        is_above, is_below = (is_cut or float(rounded(bound)) <= bound for bound in (self.low, self.high))
        if above and below:
            return f"{above} {'<' if is_above else '≤'} {subject or 'x'} {'≤' if is_below else '<'} {below}"
        if above:
            return f"{subject} {'>' if is_above else '≥'} {above}".strip()
        return f"{subject} {'≤' if is_below else '<'} {below}".strip() if below else ""

    def _level_words(self, subject: str, most: int | None) -> str:
        if self.has_all_codes and self.unseen:
            return ""
        if not self.named:
            return f"{subject} is other".strip() if self.codes or self.unseen else ""
        levels, excluded = self.column.levels, sorted(self.excluded) if self.unseen else []
        is_shorter_without = len(self.named) > _LISTED and 0 < len(excluded) < len(self.named)
        shown = excluded if is_shorter_without else sorted(self.named)
        if self.column.date_part:
            shown = sorted(shown, key=lambda code: IN_CALENDAR.get(levels[code], code))
        texts = [level_text(levels[code]) for code in shown[:most]]
        if len(shown) > len(texts):
            texts.append(f"… {len(shown) - len(texts):,} more")
        listing = ", ".join(texts)
        if len(shown) == 1:
            text = f"{subject} {'≠' if is_shorter_without else '='} {listing}"
        else:
            text = f"{subject} {'not in' if is_shorter_without else 'in'} {{{listing}}}"
        if not subject:
            text = f"not {listing}" if is_shorter_without else listing
        has_others = not is_shorter_without and self.codes > self.named
        return f"{text} or other" if has_others else text


def _run_words(subject: str, runs: list[tuple[float, float]], form: Format | None) -> str:
    def shown(bound: float) -> str:
        if form is None or abs(bound) == inf:
            return exact(bound)
        # A whole day lies before noon of a day exactly if it lies before the next day.
        is_day = isinstance(form, DateFormat) and not form.has_time
        return form.show(ceil(bound) if is_day else bound)

    text = []
    for low, high in runs:
        if low == -inf:
            text.append(f"{subject} < {shown(high)}".strip())
        elif high == inf:
            text.append(f"{subject} ≥ {shown(low)}".strip())
        else:
            text.append(f"{shown(low)} ≤ {subject or 'x'} < {shown(high)}")
    return " or ".join(text)


def number_text(number: float, form: Format | None) -> str:
    """Return a number of a column for people: as a date, with its unit, or plain; see the head of this module."""
    if form is None:
        text = rounded(number)
        return f"{float(text):,.10g}" if _SEPARATED <= abs(number) < _ALL_DIGITS else text
    return form.show(number if isinstance(form, DateFormat) else float(rounded(number)))


def amount_text(number: float, form: Format | None = None, digits: int = 3) -> str:
    """Return an amount of a column with a few digits and its unit: 9,630, 0.0123, 21,900 €; of dates in days."""
    rough = float(f"{number:.{digits}g}")
    text = f"{rough:,.0f}" if 1e3 <= abs(rough) < 1e15 else f"{rough:.{digits}g}"
    if isinstance(form, NumberFormat):
        return form.with_unit(text)
    return f"{text} days" if isinstance(form, DateFormat) else text


def rounded(number: float) -> str:
    """Return a number with six digits; see the head of this module."""
    text = f"{number:.0f}" if 1e6 <= abs(number) < _ALL_DIGITS else f"{number:.6g}"
    return "0" if text == "-0" else text


def exact(number: float) -> str:
    """Return the fewest digits that give the same float64."""
    return repr(float(number)).removesuffix(".0")


def level_text(level: object) -> str:
    """Return a level as it is written in a list: quoted where it would be ambiguous."""
    text = exact(level) if isinstance(level, float) else str(level)
    is_plain = text and text == text.strip() and text.isprintable() and not set(text) & set(",{}")
    return text if is_plain else repr(text)


def anything(column: TreeColumn) -> Allowed:
    """Return the set of all cells, which reaches the root."""
    codes = frozenset(range(column.n_codes))
    return Allowed(column, codes=codes, named=codes, unseen=column.test not in ("threshold", "intervals"))


def narrowed(model: TreeModel, node: int, branch: int, before: Allowed) -> Allowed:
    """Return the cells that take this branch, of those that reach the node."""
    missing = before.missing and int(model.missing_branch[node]) == branch
    if before.column.test == "threshold":
        theta = float(model.threshold[node])
        if branch == 0:
            return replace(before, high=min(before.high, theta), missing=missing)
        return replace(before, low=max(before.low, theta), missing=missing)
    levels = model.levels(node)
    here = frozenset(np.flatnonzero(levels == branch).tolist())
    codes, named = before.codes & here, before.named & here
    is_default = int(model.default_branch[node]) == branch
    if is_default:
        codes = before.codes - frozenset(np.flatnonzero((levels >= 0) & (levels != branch)).tolist())
    return replace(before, codes=codes, named=named, unseen=before.unseen and is_default, missing=missing)


Step = str | tuple[Any, ...]  # a line of code, or a node with the other arguments of its writer


def written(write: Callable[..., Iterable[Step]], *root: Any) -> list[str]:
    """Return the lines of a tree: ``write`` yields those of a node, and a step for each child. Needs no recursion."""
    lines: list[str] = []
    waiting: list[Step] = [root]
    while waiting:
        step = waiting.pop()
        if isinstance(step, str):
            lines.append(step)
        else:
            waiting += list(write(*step))[::-1]
    return lines


def branches_in_code(model: TreeModel, node: int) -> tuple[list[tuple[int, Allowed]], int]:
    """Return the children that code tests for, with the cells that go to each, and the child of all other cells."""
    column, children = model.columns[int(model.feature[node])], model.children(node).tolist()
    *tested, last = range(len(children))
    if column.test != "threshold":
        last = int(model.default_branch[node])
        tested = [b for b in range(len(children)) if b != last]
    reaching = anything(column)
    return [(children[b], narrowed(model, node, b, reaching)) for b in tested], children[last]


def branch_of_codes(model: TreeModel, node: int) -> list[int]:
    """Return the branch of every code of the node's column, those that did not occur there included."""
    levels = model.levels(node)
    branches: list[int] = np.where(levels >= 0, levels, model.default_branch[node]).tolist()
    return branches


def stretch(v: str, low: float, high: float, and_: str, literal: Callable[[Any], str]) -> str:
    """Return low ≤ v < high as code; false if v is NaN."""
    bounds = [f"{v} >= {literal(low)}"] if low > -inf else []
    bounds += [f"{v} < {literal(high)}"] if high < inf else []
    return f"({f' {and_} '.join(bounds)})" if len(bounds) > 1 else (bounds or [f"{v} == {v}"])[0]


@dataclass(frozen=True)
class Place:
    """A node, the cells that reach it by column, and the condition of its branch in the test above."""

    node: int
    path: dict[int, Allowed]  # only the columns that were tested
    branch: Allowed | None  # None at the root; levels and missing cells as they reach the test, numbers as they are


def places(model: TreeModel, max_depth: int | None = None) -> Iterator[Place]:
    """Yield every node down to a depth, in the model's order, with what leads to it. Needs no recursion."""
    waiting = [Place(0, {}, None)]
    while waiting:
        place = waiting.pop()
        yield place
        node, j = place.node, int(model.feature[place.node])
        if j < 0 or (max_depth is not None and model.depth[node] >= max_depth):
            continue
        reaching = place.path.get(j) or anything(model.columns[j])
        unbounded = replace(reaching, low=-inf, high=inf)
        below = []
        for branch, child in enumerate(model.children(node).tolist()):
            path = {**place.path, j: narrowed(model, node, branch, reaching)}
            below.append(Place(child, path, narrowed(model, node, branch, unbounded)))
        waiting += below[::-1]


def labels_of(model: TreeModel, classes: ArrayLike | None) -> list[str | int | float | bool] | None:
    """Return the class labels as plain values, or None for regression."""
    if classes is None:
        if model.value.shape[1] != 1:
            raise InputError(f"classes is None, and the tree has {model.value.shape[1]} classes; pass their labels")
        return None
    labels = [plain(label) for label in np.asarray(classes).ravel()]
    if len(labels) != model.value.shape[1]:
        raise InputError(f"classes holds {len(labels)} labels; the tree has {model.value.shape[1]} classes")
    return labels


def plain(value: object) -> str | int | float | bool:
    """Return a label or level as a Python value. Only text, numbers and booleans can be written in rules and code."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (str, int, float)) or (isinstance(value, float) and not np.isfinite(value)):
        raise InputError(
            f"{value!r} is of type {type(value).__name__}; labels and levels in code must be text or finite numbers",
            cure="Use such labels, or convert them with str().",
        )
    return value


def shares(model: TreeModel) -> NDArray[np.float64]:
    """Return the share of each class in each node, (m, K)."""
    return np.asarray(model.value / model.value.sum(axis=1, keepdims=True))
