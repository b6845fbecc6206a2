"""A tree as statements of Python, or as a table with a loop over it.

A comparison with NaN is False and one with None an error, so a condition tests for None first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from margrove.tree.model import TreeModel
from margrove.tree.words import Allowed, Step, branch_of_codes, branches_in_code, plain, stretch, written

_INDENT = "    "


def literal(value: object) -> str:
    """Return a label, level or number as Python writes it."""
    is_infinite = isinstance(value, float) and abs(value) == inf
    return f"float({str(value)!r})" if is_infinite else repr(plain(value))


def nested(model: TreeModel, outcomes: list[str]) -> list[str]:
    """Return the body of the function as nested conditions."""

    def write(node: int, depth: int) -> Iterator[Step]:
        indent, j = _INDENT * depth, int(model.feature[node])
        if j < 0:
            yield f"{indent}return {outcomes[node]}"
            return
        yield f"{indent}v = row[{model.columns[j].name!r}]"
        tested, last = branches_in_code(model, node)
        for child, allowed in tested:
            yield f"{indent}if {_condition(allowed)}:"
            yield child, depth + 1
        # Every branch returns, so many branches need no chain of elifs, which the compiler would nest.
        is_pair = len(tested) == 1
        yield f"{indent}else:" if is_pair else f"{indent}# any other"
        yield last, depth + is_pair

    return written(write, 0, 1)


def _condition(allowed: Allowed) -> str:
    if allowed.is_everything:
        return "True"
    if allowed.column.test == "threshold":
        theta = literal(allowed.high if allowed.high < inf else allowed.low)
        if not allowed.has_numbers:
            return "v is None or v != v"
        if allowed.low == -inf and allowed.high == inf:
            return "v is not None and v == v"
        is_below = allowed.low == -inf
        if allowed.missing:
            return f"v is None or not v {'>' if is_below else '<='} {theta}"
        return f"v is not None and v {'<=' if is_below else '>'} {theta}"
    if allowed.column.test == "intervals":
        pieces = [stretch("v", low, high, "and", literal) for low, high in allowed.runs()]
        if allowed.missing:
            return " or ".join(["v is None or v != v", *pieces])
        return f"v is not None and ({' or '.join(pieces)})" if pieces else "False"
    levels = [literal(allowed.column.levels[code]) for code in sorted(allowed.codes)]
    pieces = [f"v == {levels[0]}" if len(levels) == 1 else f"v in ({', '.join(levels)})"] if levels else []
    return " or ".join([*(["v is None or v != v"] if allowed.missing else []), *pieces]) or "False"


LOOP = """\
    node = {table}[0]
    while len(node) > 1:
        name, test, missing, other, children = node
        v = row[name]
        if v is None or v != v:
            branch = missing
        elif isinstance(test, dict):
            branch = test.get(v, other)
        elif isinstance(test, tuple):
            branch = test[1][sum(v >= cut for cut in test[0])]
        else:
            branch = 0 if v <= test else 1
        node = {table}[children[branch]]
    return node[0]
"""


def node_table(model: TreeModel, outcomes: list[str], table: str) -> list[str]:
    """Return the nodes as a tuple of tuples, which the comment in it explains."""
    lines = [
        "# A node: (column, test, branch of missing cells, branch of other levels, children); a leaf: (prediction,).",
        "# The test: x <= number takes branch 0, else 1; {level: branch}; or (cut points, branch of each interval).",
        f"{table} = (",
    ]
    for node in range(model.n_nodes):
        j = int(model.feature[node])
        if j < 0:
            lines.append(f"{_INDENT}({outcomes[node]},),")
            continue
        column, levels = model.columns[j], model.levels(node).tolist()
        if column.test == "threshold":
            test = literal(float(model.threshold[node]))
        elif column.test == "intervals":
            test = repr((tuple(map(float, column.cuts)), tuple(branch_of_codes(model, node))))
        else:
            pairs = [f"{literal(column.levels[code])}: {b}" for code, b in enumerate(levels) if b >= 0]
            test = f"{{{', '.join(pairs)}}}"
        missing, other = int(model.missing_branch[node]), int(model.default_branch[node])
        lines.append(
            f"{_INDENT}({column.name!r}, {test}, {missing}, {other}, {tuple(model.children(node).tolist())!r}),"
        )
    return [*lines, ")"]
