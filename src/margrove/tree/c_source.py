"""A tree as statements of C99, or as arrays with a loop over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

import numpy as np

from margrove.tree.model import TreeModel
from margrove.tree.words import Allowed, Step, branches_in_code, exact, plain, stretch, written

# fmt: off
KEYWORDS = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while",
))
# fmt: on
_INDENT = "    "
_INTEGERS = ("child_start", "child", "level_start", "level_branch", "missing_branch")


def number(value: float) -> str:
    """Return the number exactly, as a hexadecimal float."""
    return ("INFINITY" if value > 0 else "-INFINITY") if abs(value) == inf else float(value).hex()


def comment(model: TreeModel, labels: list[str | int | float | bool] | None) -> list[str]:
    """Return a comment on what x holds and what the int means. Nothing in a name can end the comment."""
    lines = ["/* x[j] is the cell of column j, NaN if it is missing; for a category, the code of its level:", " *"]
    for j, column in enumerate(model.columns):
        lines.append(f" * x[{j}]  {_in_comment(column.name)}")
        lines += [f" *     {code} = {_in_comment(plain(level))}" for code, level in enumerate(column.levels)]
    if labels is not None:
        lines += [" *", " * The return value is the code of a class:", " *"]
        lines += [f" *     {k} = {_in_comment(label)}" for k, label in enumerate(labels)]
    return [*lines, " */"]


def _in_comment(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    # Neither "*/" nor "/*", no backslash at the end of a line and no trigraph can be left.
    escaped = text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
    quoted = escaped.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?")
    return f'"{quoted}"' if isinstance(value, str) else quoted


def nested(model: TreeModel, outcomes: list[str]) -> list[str]:
    """Return the body of the function as nested conditions."""

    def write(node: int, depth: int) -> Iterator[Step]:
        indent, v = _INDENT * depth, f"x[{int(model.feature[node])}]"
        if model.feature[node] < 0:
            yield f"{indent}return {outcomes[node]};"
            return
        tested, last = branches_in_code(model, node)
        for child, allowed in tested:
            yield f"{indent}if ({_condition(allowed, v)}) {{"
            yield child, depth + 1
            yield f"{indent}}}"
        yield last, depth  # every branch returns

    return written(write, 0, 1)


def _condition(allowed: Allowed, v: str) -> str:
    """Return the condition on ``v``. A comparison with NaN is false."""
    if allowed.is_everything:
        return "1"
    is_nan = [f"isnan({v})"] if allowed.missing else []
    if allowed.column.test == "threshold":
        if not allowed.has_numbers:
            return f"isnan({v})"
        if allowed.low == -inf and allowed.high == inf:
            return f"!isnan({v})"
        is_below = allowed.low == -inf
        theta = allowed.high if is_below else allowed.low
        pieces = [f"{v} {'<=' if is_below else '>'} {number(theta)} /* {exact(theta)} */"]
    elif allowed.column.test == "intervals":
        pieces = [stretch(v, low, high, "&&", number) for low, high in allowed.runs()]
    else:
        pieces = [f"{v} == {code}" for code in sorted(allowed.codes)]
    return " || ".join([*is_nan, *pieces]) or "0"


_LOOP = """\
    int node = 0;
    while (feature[node] >= 0) {
        const int j = feature[node];
        const double v = x[j];
        int branch = other_branch[node];
        if (isnan(v)) {
            branch = missing_branch[node];
        } else if (is_number[j]) {
            branch = v <= threshold[node] ? 0 : 1;
        } else {
            const int n_cuts = cut_start[j + 1] - cut_start[j];
            double code = v;
            if (n_cuts > 0) { /* the number of the interval */
                int k = 0;
                while (k < n_cuts && v >= cut[cut_start[j] + k])
                    ++k;
                code = k;
            }
            if (code >= 0 && code < level_start[node + 1] - level_start[node] && code == (int)code) {
                const int known = level_branch[level_start[node] + (int)code];
                branch = known >= 0 ? known : branch;
            }
        }
        node = child[child_start[node] + branch];
    }
    return prediction[node];"""


def node_table(model: TreeModel, kind: str, outcomes: list[str]) -> list[str]:
    """Return the body of the function as the arrays of `TreeModel` and a loop over them."""
    cuts = [column.cuts for column in model.columns]
    threshold = np.where(np.isnan(model.threshold), 0.0, model.threshold)
    return [
        _array("int", "is_number", (str(int(column.test == "threshold")) for column in model.columns)),
        _array("int", "cut_start", map(str, np.cumsum([0, *map(len, cuts)]))),
        _array("double", "cut", (number(cut) for each in cuts for cut in each)),
        _array("int", "feature", map(str, model.feature)),
        _array("double", "threshold", map(number, threshold)),
        *(_array("int", name, map(str, getattr(model, name))) for name in _INTEGERS),
        _array("int", "other_branch", map(str, model.default_branch)),
        _array(kind, "prediction", outcomes),
        _LOOP,
    ]


def _array(kind: str, name: str, items: Iterable[str]) -> str:
    """Return an array of C. Of no items it has one: C has no empty arrays."""
    texts = list(items) or ["0"]
    lines = [", ".join(texts[start : start + 16]) for start in range(0, len(texts), 16)]
    return f"{_INDENT}static const {kind} {name}[] = {{\n{2 * _INDENT}" + f",\n{2 * _INDENT}".join(lines) + "};"
