"""A tree as code of another kind: Python, SQL, C, or a data frame of its nodes.

The code gives the tree's own predictions for every row: missing cells (None or NaN, NULL, NaN) take their branch, and
levels unknown in training take the heaviest. Thresholds have all their digits. A comparison x ≤ θ is made in double
precision on the value as it is given: a tree that was trained on float32 columns must be given the float32 values (as
doubles), not the decimals they were rounded from, and integers beyond 2^53 must be given as the doubles that tables
make of them. Text must be given as tables read it: without spaces around it.

Small trees become nested conditions, which a person can read. Large ones become a table of nodes with a loop over it
(in SQL, which has no loop, one flat condition for each leaf), because parsers and compilers limit nesting. A test below
which all leaves predict the same is left out.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from margrove.data.formats import DateFormat
from margrove.errors import MissingExtraError, ParameterError, check_choice
from margrove.tree import c_source, python_source
from margrove.tree.model import TreeModel
from margrove.tree.sql_source import DIALECTS, Dialect, flat_case, nested_case
from margrove.tree.words import labels_of, places, shares

_PYTHON_DEPTH = 90  # Python's tokenizer stops at 100 levels of indentation
_PYTHON_NODES = 5_000  # more of them are slow to compile as statements
_C_DEPTH = 100  # C99 promises 127 levels of blocks
_C_NODES = 2_000
_C_LEVELS = 20_000  # comparisons with levels, of all nodes
_SQL_DEPTH = 12  # nested CASE expressions: SQLite's parser gives up not far above 20
_LIBRARIES = ("pandas", "polars", "pyarrow")
_INDENT = "    "


def to_python(model: TreeModel, classes: ArrayLike | None = None, name: str = "predict") -> str:
    """Return the source of a Python function that predicts one row, with nothing but the standard library.

    It takes a mapping from column names to cells, or keyword arguments. None and NaN are missing. A column that is not
    tested on the way may be left out; one that is tested raises KeyError.
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ParameterError(f"name is {name!r}; it must be a valid name for a Python function.")
    model, outcomes = _decisive(model, _outcomes(model, classes, python_source.literal))
    head = [
        *(f"# {line}" for line in _dates(model)),
        f"def {name}(row=None, /, **cells):",
        f'{_INDENT}"""Predict one row: a mapping of column names to cells, or keywords; None and NaN are missing."""',
        f"{_INDENT}row = cells if row is None else row",
    ]
    if model.max_depth <= _PYTHON_DEPTH and model.n_nodes <= _PYTHON_NODES:
        return "\n".join([*head, *python_source.nested(model, outcomes)]) + "\n"
    table = f"_{name}_nodes"
    return "\n".join(
        [*python_source.node_table(model, outcomes, table), "", "", *head, python_source.LOOP.format(table=table)]
    )


def to_sql(
    model: TreeModel,
    classes: ArrayLike | None = None,
    table: str | Sequence[str] | None = None,
    dialect: Dialect = "standard",
) -> str:
    """Return a CASE expression that predicts a row; with a table, the SELECT statement that predicts all its rows.

    NULL is missing. Columns are those of the training table, by name. The database compares text in its own way: with a
    collation that ignores case 'a' is 'A'. ``table`` is a name, or a sequence for a name with its schema. PostgreSQL,
    SQLite, DuckDB, Snowflake and Oracle use the standard dialect.
    """
    check_choice("dialect", dialect, DIALECTS)
    writer = DIALECTS[dialect]
    model, outcomes = _decisive(model, _outcomes(model, classes, writer.literal))
    case = (nested_case if model.max_depth <= _SQL_DEPTH else flat_case)(model, outcomes, writer)
    case = "".join(f"-- {line}\n" for line in _dates(model)) + case
    if table is None:
        return case
    parts = [table] if isinstance(table, str) else list(table)
    name = ".".join(writer.identifier(part) for part in parts)
    return f"SELECT *,\n{case} AS {writer.identifier('prediction')}\nFROM {name}"


def to_c(model: TreeModel, classes: ArrayLike | None = None, name: str = "predict") -> str:
    """Return the source of a C99 function ``int predict(const double *x)``, the position of the class, or a double.

    ``x`` has one number for each column, in their order: for a category the code that a comment in the source lists,
    any other number being a level unknown in training. NaN is missing.
    """
    check_c_name(name)
    labels = labels_of(model, classes)
    kind = "double" if labels is None else "int"
    numbers = None if labels is None else range(len(labels))
    model, outcomes = _decisive(model, _outcomes(model, numbers, c_source.number if labels is None else str))
    head = [*c_source.comment(model, labels), "#include <math.h>", ""]
    return "\n".join([*head, *c_function(model, f"{kind} {name}", outcomes), ""])


def c_function(model: TreeModel, head: str, outcomes: list[str]) -> list[str]:
    """Return a C function of ``x``, which begins so: its type and its name. ``outcomes`` is what each node returns."""
    kind = head.split()[-2]
    is_small = model.max_depth <= _C_DEPTH and model.n_nodes <= _C_NODES and len(model.level_branch) <= _C_LEVELS
    body = c_source.nested(model, outcomes) if is_small else c_source.node_table(model, kind, outcomes)
    unused = [f"{_INDENT}(void)x;"] if model.n_nodes == 1 else []
    return [f"{head}(const double *x)", "{", *unused, *body, "}"]


def check_c_name(name: str) -> None:
    """Raise an error unless a C function can have this name."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in c_source.KEYWORDS:
        raise ParameterError(f"name is {name!r}; it must be a valid name for a C function.")


def node_columns(model: TreeModel, classes: ArrayLike | None = None) -> dict[str, list[Any]]:
    """Return columns with one entry for each node; None where a node has none, as the root's parent."""
    labels = labels_of(model, classes)
    branches = [place.branch for place in places(model)]
    names = [model.columns[j].name if j >= 0 else None for j in model.feature.tolist()]
    found: dict[str, list[Any]] = {
        "node": list(range(model.n_nodes)),
        "parent": [None if parent < 0 else parent for parent in model.parent.tolist()],
        "depth": model.depth.tolist(),
        "branch": [None if allowed is None else allowed.words() for allowed in branches],
        "test": names,
        "threshold": [None if np.isnan(theta) else theta for theta in model.threshold.tolist()],
        "n": model.n_rows.tolist(),
        "weight": model.weight.tolist(),
        "impurity": model.impurity.tolist(),
        "gain": [None if np.isnan(gain) else gain for gain in model.gain.tolist()],
    }
    if labels is None:
        return {**found, "value": model.value[:, 0].tolist()}
    found["class"] = [labels[k] for k in model.value.argmax(axis=1)]
    return found | {f"share {label}": share.tolist() for label, share in zip(labels, shares(model).T, strict=True)}


def to_dataframe(model: TreeModel, classes: ArrayLike | None = None, library: str = "pandas") -> Any:
    """Return `node_columns` as a data frame of this library; only pyarrow is always installed."""
    check_choice("library", library, _LIBRARIES)
    import narwhals as nw

    try:
        return nw.from_dict(node_columns(model, classes), backend=import_module(library)).to_native()
    except ImportError as error:
        raise MissingExtraError(
            f"{library} is not installed: pip install {library}, or use library='pyarrow'"
        ) from error


def _dates(model: TreeModel) -> list[str]:
    """Return lines about the columns in use that a caller must compute from dates."""
    lines = []
    for j in np.unique(model.feature[model.feature >= 0]).tolist():
        column = model.columns[j]
        name = " ".join(column.name.split())
        if column.date_part:
            how = "0 to 23" if column.date_part[1] == "hour" else "its English name"
            lines.append(f"{name}: the {column.date_part[1]} of {' '.join(column.date_part[0].split())} ({how})")
        elif isinstance(column.format, DateFormat):
            lines.append(f"{name}: days since 1970-01-01 in UTC, as a number")
    return lines


def _outcomes(model: TreeModel, classes: ArrayLike | None, literal: Callable[[Any], str]) -> list[str]:
    """Return what each node would predict, as code."""
    labels = labels_of(model, classes)
    if labels is None:
        return [literal(value) for value in model.value[:, 0].tolist()]
    literals = [literal(label) for label in labels]
    return [literals[k] for k in model.value.argmax(axis=1)]


def _decisive(model: TreeModel, outcomes: list[str]) -> tuple[TreeModel, list[str]]:
    """Return the tree without tests below which all leaves predict the same, and the prediction of each node."""
    predicted, is_settled = list(outcomes), model.is_leaf.copy()
    for node in np.flatnonzero(~model.is_leaf)[::-1].tolist():  # a child comes after its parent
        children = model.children(node).tolist()
        if all(is_settled[child] and predicted[child] == predicted[children[0]] for child in children):
            is_settled[node], predicted[node] = True, predicted[children[0]]
    return model.cut(is_settled), [predicted[node] for node in np.flatnonzero(model.kept(is_settled))]
