"""A tree as rules that a person can follow: nested, as on a blackboard, or one line for each leaf.

A leaf's *support* is its number of training rows, its *share* their part of the weight of all, its *confidence* the
share of its class in their weight: where rows weigh differently both are said to be "by weight", being no shares of
rows. Its *p-value* asks whether the leaf's classes could be a draw from the root's:

    χ² = Σ_k (O_k − E_k)² / E_k,    O_k = n p_k(leaf),  E_k = n p_k(root),    K − 1 degrees of freedom (THEORY T8)

with n rows in the leaf, over the K classes that occur. The approximation is good where every E_k is at least about 5.
The tree chose this leaf among many to be extreme: read the p-value as a measure of evidence, not as the probability of
an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2

from margrove.errors import InputError, check_choice, check_whole
from margrove.tree.model import TreeModel
from margrove.tree.words import MOST_LEVELS, Allowed, Place, labels_of, places, plain, rounded, shares
from margrove.visible import visible

Style = Literal["nested", "lines"]
STYLES: tuple[Style, ...] = ("nested", "lines")
_INDENT = "    "
_ROUNDING = 1e-9  # of a value: less is no spread
_SMALLEST_P = 1e-300  # below it a float64 is near its end


@dataclass(frozen=True, repr=False)
class Rule:
    """What leads to a leaf, and what it says."""

    node: int
    conditions: tuple[Allowed, ...]  # of each column at most one
    prediction: str | int | float | bool
    support: int
    share: float
    confidence: float | None  # None for regression
    p_value: float | None
    nodes_below: int  # > 0 where the tree goes on deeper than was asked
    is_weighted: bool = False  # whether rows have different weights, so that shares are no shares of rows
    spread: float | None = None  # of regression: how far the rows lie from the value

    def outcome(self) -> str:
        """What it predicts."""
        said = rounded(self.prediction) if isinstance(self.prediction, float) else visible(str(self.prediction))
        if self.spread is None or self.support == 1:
            return said
        is_rounding = self.spread <= _ROUNDING * abs(float(self.prediction))
        return f"{said} ± {0 if is_rounding else self.spread:.3g}"

    def sure(self) -> str:
        """Its confidence in words; nothing for regression."""
        return "" if self.confidence is None else self._percent(self.confidence)

    def _percent(self, share: float) -> str:
        return f"{_percent(share)} by weight" if self.is_weighted else _percent(share)

    def data(self) -> dict[str, Any]:
        """As plain values, ready for JSON."""
        return {
            "node": self.node,
            "conditions": [_condition_data(condition) for condition in self.conditions],
            "prediction": self.prediction,
            "support": self.support,
            "share": self.share,
            "confidence": self.confidence,
            "p_value": self.p_value,
            "spread": self.spread,
            "nodes_below": self.nodes_below,
        }

    def line(self, max_levels: int | None = MOST_LEVELS) -> str:
        """All on one line; of a longer list of levels only so many are named, None means all."""
        asked = _joined(self.conditions, " AND ", max_levels)
        facts = [f"support {self.support:,}", f"share {self._percent(self.share)}"]
        if self.confidence is not None:
            facts.append(f"confidence {self._percent(self.confidence)}")
        if self.p_value is not None:
            facts.append(p_words(self.p_value))
        rule = f"IF {asked} THEN {self.outcome()}" if asked else f"ALWAYS {self.outcome()}"
        return f"{rule} ({', '.join(facts)}){_more(self.nodes_below)}"

    def __str__(self) -> str:
        return self.line()

    __repr__ = __str__  # a person at the prompt wants to read it


@dataclass(frozen=True, repr=False)
class Rules:
    """The rules of a tree, one for each leaf; ``str`` and ``repr`` write them in their style.

    Attributes
    ----------
    rules : tuple of Rule
        By support, the largest first; of equals the first in the tree.
    style : {"nested", "lines"}
    text : str
    max_levels : int or None
        How many levels of a list the text names; ``data`` has them all.
    """

    rules: tuple[Rule, ...]
    style: Style
    text: str
    max_levels: int | None = MOST_LEVELS

    def __len__(self) -> int:
        return len(self.rules)

    def data(self) -> list[dict[str, Any]]:
        """One plain dict for each rule: conditions, prediction, support, share, confidence, p_value, spread,
        nodes_below."""
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
    p_values: NDArray[np.float64] | None = None,
    spread: NDArray[np.float64] | None = None,
    max_levels: int | None = MOST_LEVELS,
) -> Rules:
    """The rules of a tree.

    Parameters
    ----------
    model : TreeModel
    classes : labels of shape (K,), or None for regression
    style : {"nested", "lines"}
        If and else, one inside the other; or a line for each leaf, conditions on the same column merged.
    max_depth : int, optional
        Go no deeper; a rule that is cut short says how many nodes are below it.
    p_values : array of shape (m,), optional
        Of each node. If left out, the χ² test at the head of this module; regression has none then.
    spread : array of shape (m,), optional
        Of regression, how far the rows of each node lie from its value: said as value ± spread.
    max_levels : int, default=10
        Of a longer list of levels only so many are named, and the others counted; None means all.

    Returns
    -------
    Rules

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.tree.rules import tree_rules
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> from margrove.tree.reference import grow
    >>> columns = TreeColumn("weight", has_missing=False), TreeColumn("ripe", "multiway", ("no", "yes"))
    >>> weight, ripe = np.array([15.0, 16, 19, 22, 27, 29]), np.array([1, 0, 1, 1, 0, 1], dtype=np.int32)
    >>> cells = Cells(columns, 6, (weight, ripe))
    >>> tree = grow(TreeProblem(cells, np.array([0, 0, 0, 1, 0, 1], dtype=np.int32), n_classes=2))
    >>> print(tree_rules(tree, ["stay", "go"]))
    if weight ≤ 20.5: stay (3 rows, 100 %)
    else (weight > 20.5):
        if ripe = no: stay (1 row, 100 %)
        else (ripe = yes or missing): go (2 rows, 100 %)
    >>> print(tree_rules(tree, ["stay", "go"], style="lines"))
    IF weight ≤ 20.5 THEN stay (support 3, share 50 %, confidence 100 %, p = 0.22)
    IF weight > 20.5 AND (ripe = yes or missing) THEN go (support 2, share 33.3 %, confidence 100 %, p = 0.046)
    IF weight > 20.5 AND ripe = no THEN stay (support 1, share 16.7 %, confidence 100 %, p = 0.48)
    """
    check_choice("style", style, STYLES)
    if max_depth is not None:
        check_whole("max_depth", max_depth, least=0, cure="None means all.")
    if max_levels is not None:
        check_whole("max_levels", max_levels, least=1, cure="None means all.")
    labels = labels_of(model, classes)
    p_of_node = _p_values(model, labels is None, p_values)
    share_of_class = shares(model) if labels is not None else None
    is_weighted = not np.allclose(model.weight, model.n_rows * (model.weight[0] / model.n_rows[0]), rtol=1e-9, atol=0)
    rules, written = [], []
    for place in places(model, max_depth):
        node = place.node
        is_end = model.feature[node] < 0 or model.depth[node] == max_depth
        rule = None
        if is_end:
            k = int(model.value[node].argmax())
            rule = Rule(
                node=node,
                conditions=tuple(allowed for allowed in place.path.values() if not allowed.is_everything),
                prediction=float(model.value[node, 0]) if labels is None else labels[k],
                support=int(model.n_rows[node]),
                share=float(model.weight[node] / model.weight[0]),
                confidence=None if share_of_class is None else float(share_of_class[node, k]),
                p_value=None if p_of_node is None else float(p_of_node[node]),
                nodes_below=int(model.end[node]) - node - 1,
                is_weighted=is_weighted,
                spread=None if spread is None else float(spread[node]),
            )
            rules.append(rule)
        if style == "nested":
            written.append(_nested_line(model, place, rule, max_levels))
    rules.sort(key=lambda rule: -rule.support)
    lines = [rule.line(max_levels) for rule in rules] if style == "lines" else [line for line in written if line]
    return Rules(tuple(rules), style, "\n".join(lines), max_levels)


def rules_text(model: TreeModel, classes: ArrayLike | None = None, **options: Any) -> str:
    """`tree_rules` as text."""
    return str(tree_rules(model, classes, **options))


def root_p_values(model: TreeModel) -> NDArray[np.float64]:
    """For each node, the p-value of its classes against the root's; see the head of this module. 1 at the root."""
    share = shares(model)
    occurs = share[0] > 0
    n = model.n_rows[:, None].astype(np.float64)
    expected = n * share[0, occurs]
    statistic = ((n * share[:, occurs] - expected) ** 2 / expected).sum(axis=1)
    # χ² with no degree of freedom is always 0: one class only is no evidence of anything.
    freedom = int(occurs.sum()) - 1
    return np.asarray(chi2.sf(statistic, freedom)) if freedom else np.ones(model.n_nodes)


def p_words(p_value: float) -> str:
    """A p-value as people write it."""
    return f"p < {_SMALLEST_P:g}" if p_value < _SMALLEST_P else f"p = {p_value:.2g}"


def _p_values(model: TreeModel, is_regression: bool, given: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    if given is None:
        return None if is_regression else root_p_values(model)
    if np.shape(given) != (model.n_nodes,):
        raise InputError(f"p_values has the shape {np.shape(given)}; one for each of {model.n_nodes} nodes was wanted")
    return np.asarray(given, np.float64)


def _nested_line(model: TreeModel, place: Place, rule: Rule | None, max_levels: int | None) -> str:
    """The line of a node: its branch of its parent, and what it predicts if the rule ends here."""
    said = "" if rule is None else _said(rule)
    if place.branch is None:
        return said
    node = place.node
    branch, last = int(model.branch[node]), len(model.children(int(model.parent[node]))) - 1
    asked = place.branch.words(most=max_levels)
    asked = f"if {asked}" if branch == 0 else f"else if {asked}" if branch < last else f"else ({asked})"
    return f"{_INDENT * (int(model.depth[node]) - 1)}{asked}: {said}".rstrip()


def _said(rule: Rule) -> str:
    rows = f"{rule.support:,} {'row' if rule.support == 1 else 'rows'}"
    sure = f", {rule.sure()}" if rule.sure() else ""
    return f"{rule.outcome()} ({rows}{sure}){_more(rule.nodes_below)}"


def _more(nodes_below: int) -> str:
    return f" … {nodes_below:,} nodes below not shown" if nodes_below else ""


def _joined(conditions: tuple[Allowed, ...], and_: str, max_levels: int | None) -> str:
    """All of them, in brackets where an "or" would stand between the "and"s."""
    words = [condition.words(most=max_levels) for condition in conditions]
    return words[0] if len(words) == 1 else and_.join(f"({each})" if " or " in each else each for each in words)


def _percent(share: float) -> str:
    """One digit behind the point where it is not 0; 100 % and 0 % only if it is all or nothing."""
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
        found["above"], found["at_most"] = (
            None if not np.isfinite(bound) else bound for bound in (condition.low, condition.high)
        )
    elif column.test == "intervals":
        found["intervals"] = [
            [bound if np.isfinite(bound) else None for bound in stretch] for stretch in condition.runs()
        ]
    else:
        found["levels"] = [plain(column.levels[code]) for code in sorted(condition.codes)]
        found["unseen"] = condition.unseen
    return found


def _cells(rule: Rule, max_levels: int | None) -> tuple[str, ...]:
    asked = _joined(rule.conditions, " and ", max_levels) or "always"
    p_value = "" if rule.p_value is None else p_words(rule.p_value).removeprefix("p = ").removeprefix("p ")
    outcome = f"{rule.outcome()}{_more(rule.nodes_below)}"
    return asked, outcome, f"{rule.support:,}", _percent(rule.share), rule.sure(), p_value


def _html_row(cells: tuple[str, ...], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
