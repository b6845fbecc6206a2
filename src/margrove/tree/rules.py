"""A tree as rules that a person can follow: nested, or one line for each leaf.

A leaf's *support* is its number of training rows, its *share* their part of the weight of all, its *confidence* the
share of its class in their weight. Where rows weigh differently, both are marked "by weight": they are no shares of
rows. Its *p-value* tests whether the leaf's classes could be a draw from the root's:

    χ² = Σ_k (O_k − E_k)² / E_k,    O_k = n p_k(leaf),  E_k = n p_k(root),    K − 1 degrees of freedom

with n rows in the leaf, over the K classes that occur. The approximation is good where every E_k is at least about 5.
The tree chose this leaf among many to be extreme: read the p-value as a measure of evidence, not as the probability of
an error.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from margrove.data.formats import Format
from margrove.errors import check_choice, check_whole
from margrove.tree.model import TreeModel
from margrove.tree.words import MOST_LEVELS, Allowed, Place, amount_text, labels_of, number_text, places, plain, shares
from margrove.visible import visible

Style = Literal["nested", "lines"]
STYLES: tuple[Style, ...] = ("nested", "lines")
_INDENT = "    "
_NO_DATA = ("is_weighted", "form")  # fields of a rule that only its words need
_ROUNDING = 1e-9  # of a value: less is no spread
_SMALLEST_P = 1e-300  # below it a float64 is near its end


@dataclass(frozen=True, repr=False)
class Rule:
    """The conditions that lead to a leaf, and its prediction."""

    node: int
    conditions: tuple[Allowed, ...]  # of each column at most one
    prediction: str | int | float | bool
    support: int
    share: float
    confidence: float | None  # None for regression
    p_value: float | None
    spread: float | None  # of regression: how far the rows lie from the value
    nodes_below: int  # > 0 where the rule ends above max_depth
    is_weighted: bool  # rows have different weights, so shares are no shares of rows
    form: Format | None = None  # of regression: how the target is written

    def condition(self, max_levels: int | None) -> str:
        """Return all conditions in words."""
        return _joined(self.conditions, " and ", max_levels) if self.conditions else "always"

    def outcome(self) -> str:
        """Return the prediction in words."""
        if not isinstance(self.prediction, float):
            return visible(str(self.prediction))
        value = number_text(self.prediction, self.form)
        if self.spread is None or self.support == 1:
            return value
        is_rounding = self.spread <= _ROUNDING * abs(self.prediction)
        return f"{value} ± {amount_text(0 if is_rounding else self.spread, self.form)}"

    def sure(self) -> str:
        """Return the confidence in words; "" for regression."""
        return "" if self.confidence is None else self._percent(self.confidence)

    def _percent(self, share: float) -> str:
        return f"{_percent(share)} by weight" if self.is_weighted else _percent(share)

    def data(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name not in _NO_DATA}
        return values | {"conditions": [_condition_data(condition) for condition in self.conditions]}

    def line(self, max_levels: int | None = MOST_LEVELS) -> str:
        """Return the rule on one line. At most ``max_levels`` levels of a list are named; None names all."""
        condition = _joined(self.conditions, " AND ", max_levels)
        facts = [f"support {self.support:,}", f"share {self._percent(self.share)}"]
        if self.confidence is not None:
            facts.append(f"confidence {self._percent(self.confidence)}")
        if self.p_value is not None:
            facts.append(p_words(self.p_value))
        rule = f"IF {condition} THEN {self.outcome()}" if condition else f"ALWAYS {self.outcome()}"
        return f"{rule} ({', '.join(facts)}){_more(self.nodes_below)}"

    def __str__(self) -> str:
        return self.line()

    __repr__ = __str__  # readable at the prompt


@dataclass(frozen=True, repr=False)
class Rules:
    """The rules of a tree, one for each leaf; ``str`` and ``repr`` write them in their style."""

    rules: tuple[Rule, ...]  # by support, the largest first; of equals the first in the tree
    style: Style
    text: str
    max_levels: int | None = MOST_LEVELS  # how many levels of a list the text names; ``data`` has them all

    def __len__(self) -> int:
        return len(self.rules)

    def data(self) -> list[dict[str, Any]]:
        """Return one plain dict for each rule."""
        return [rule.data() for rule in self.rules]

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.style == "nested":
            return f"<pre>{escape(self.text)}</pre>"
        heads = ("if", "then", "support", "share", "confidence", "p-value")
        lines = [_html_row(heads, "th"), *(_html_row(_cells(rule, self.max_levels), "td") for rule in self.rules)]
        return f"<table>{''.join(lines)}</table>"


def tree_rules(
    model: TreeModel,
    classes: ArrayLike | None = None,
    *,
    style: Style = "nested",
    max_depth: int | None = None,
    spread: NDArray[np.float64] | None = None,
    max_levels: int | None = MOST_LEVELS,
    form: Format | None = None,
) -> Rules:
    """Return the rules of a tree: in the style "nested" if and else, one inside the other; in "lines" a line for each
    leaf, with the conditions on one column merged.

    ``classes`` is None for regression; ``spread`` is then how far the rows of each node lie from its value, and
    ``form`` how the target is written. Nodes below ``max_depth`` are counted instead of shown.
    """
    check_choice("style", style, STYLES)
    for name, limit, least in (("max_depth", max_depth, 0), ("max_levels", max_levels, 1)):
        if limit is not None:
            check_whole(name, limit, least=least, cure="None means all.")
    labels = labels_of(model, classes)
    p_of_node = None if labels is None else root_p_values(model)
    share_of_class = None if labels is None else shares(model)
    rules, written = [], []
    for place in places(model, max_depth):
        node = place.node
        rule = None
        if model.feature[node] < 0 or model.depth[node] == max_depth:
            k = int(model.value[node].argmax())
            rule = Rule(
                node=node,
                conditions=tuple(allowed for allowed in place.path.values() if not allowed.is_everything),
                prediction=float(model.value[node, 0]) if labels is None else labels[k],
                support=int(model.n_rows[node]),
                share=float(model.weight[node] / model.weight[0]),
                confidence=None if share_of_class is None else float(share_of_class[node, k]),
                p_value=None if p_of_node is None else float(p_of_node[node]),
                spread=None if spread is None else float(spread[node]),
                nodes_below=int(model.end[node]) - node - 1,
                is_weighted=model.is_weighted,
                form=form,
            )
            rules.append(rule)
        if style == "nested":
            written.append(_nested_line(model, place, rule, max_levels))
    rules.sort(key=lambda rule: -rule.support)
    lines = [rule.line(max_levels) for rule in rules] if style == "lines" else [line for line in written if line]
    return Rules(tuple(rules), style, "\n".join(lines), max_levels)


def root_p_values(model: TreeModel) -> NDArray[np.float64]:
    """Return the p-value of each node's classes against the root's (see the head of this module); 1 at the root."""
    share = shares(model)
    occurs = share[0] > 0
    n = model.n_rows[:, None].astype(np.float64)
    expected = n * share[0, occurs]
    statistic = ((n * share[:, occurs] - expected) ** 2 / expected).sum(axis=1)
    # χ² with no degree of freedom is always 0: one class only is no evidence of anything.
    freedom = int(occurs.sum()) - 1
    return np.asarray(chi2.sf(statistic, freedom)) if freedom else np.ones(model.n_nodes)


def p_words(p_value: float) -> str:
    """Return a p-value in words."""
    return f"p < {_SMALLEST_P:g}" if p_value < _SMALLEST_P else f"p = {p_value:.2g}"


def _nested_line(model: TreeModel, place: Place, rule: Rule | None, max_levels: int | None) -> str:
    """Return the line of a node: its branch of its parent, and its prediction if the rule ends there."""
    prediction = "" if rule is None else _prediction(rule)
    if place.branch is None:
        return prediction
    node = place.node
    branch, last = int(model.branch[node]), len(model.children(int(model.parent[node]))) - 1
    condition = place.branch.words(most=max_levels)
    condition = f"if {condition}" if branch == 0 else f"else if {condition}" if branch < last else f"else ({condition})"
    return f"{_INDENT * (int(model.depth[node]) - 1)}{condition}: {prediction}".rstrip()


def _prediction(rule: Rule) -> str:
    rows = f"{rule.support:,} {'row' if rule.support == 1 else 'rows'}"
    sure = f", {rule.sure()}" if rule.sure() else ""
    return f"{rule.outcome()} ({rows}{sure}){_more(rule.nodes_below)}"


def _more(nodes_below: int) -> str:
    return f" … {nodes_below:,} nodes below not shown" if nodes_below else ""


def _joined(conditions: tuple[Allowed, ...], and_: str, max_levels: int | None) -> str:
    """Join conditions, in brackets where an "or" is between the "and"s."""
    words = [condition.words(most=max_levels) for condition in conditions]
    return words[0] if len(words) == 1 else and_.join(f"({each})" if " or " in each else each for each in words)


def _percent(share: float) -> str:
    """Return a share with one digit after the point where it is not 0; 100 % and 0 % only if it is all or nothing."""
    text = f"{100 * share:.1f}".removesuffix(".0")
    if text == "100" and share < 1:
        text = "> 99.9"
    if text == "0" and share > 0:
        text = "< 0.1"
    return f"{text} %"


def _condition_data(condition: Allowed) -> dict[str, Any]:
    column = condition.column
    found: dict[str, Any] = {"column": column.name, "words": condition.words(), "missing": condition.missing}
    if column.test == "threshold":
        found["above"], found["at_most"] = _finite(condition.low, condition.high)
    elif column.test == "intervals":
        found["intervals"] = [_finite(*run) for run in condition.runs()]
    else:
        found["levels"] = [plain(column.levels[code]) for code in sorted(condition.codes)]
        found["unseen"] = condition.unseen
    return found


def _finite(*bounds: float) -> list[float | None]:
    return [bound if np.isfinite(bound) else None for bound in bounds]


def _cells(rule: Rule, max_levels: int | None) -> tuple[str, ...]:
    condition = rule.condition(max_levels)
    p_value = "" if rule.p_value is None else p_words(rule.p_value).removeprefix("p = ").removeprefix("p ")
    outcome = f"{rule.outcome()}{_more(rule.nodes_below)}"
    return condition, outcome, f"{rule.support:,}", _percent(rule.share), rule.sure(), p_value


def _html_row(cells: tuple[str, ...], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
