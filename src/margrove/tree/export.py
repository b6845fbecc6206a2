"""A tree as code of another kind: Python, SQL, C, or a data frame of its nodes.

The code gives the tree's own predictions for every row: missing cells (None or NaN, NULL, NaN) take their branch, and
levels that training did not know take the heaviest. Thresholds have all their digits. A comparison x ≤ θ is made in
double precision on the value as it is given: a tree that was trained on float32 columns must be given the float32
values (as doubles), not the decimals they were rounded from, and whole numbers beyond 2^53 must be given as the doubles
that tables make of them. Text must be given as tables read it: without spaces around it.

Small trees become nested conditions, which a person can read; large ones a table of nodes with a loop over it (in SQL,
which has no loop, one flat condition for each leaf), as parsers and compilers limit how deep things may nest. A test
below which all leaves predict the same decides nothing, and is left out.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

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
    """The source of a Python function that predicts one row; it needs nothing but Python.

    It takes a mapping from column names to cells, or keyword arguments. None and NaN are missing. A column that is not
    asked on the way may be left out; one that is raises KeyError.

    Parameters
    ----------
    model : TreeModel
    classes : labels of shape (K,), or None for regression
    name : str, default="predict"
        Of the function.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.tree.export import to_python
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> from margrove.tree.reference import grow
    >>> columns = TreeColumn("weight", has_missing=False), TreeColumn("ripe", "multiway", ("no", "yes"))
    >>> weight, ripe = np.array([15.0, 16, 19, 22, 27, 29]), np.array([1, 0, 1, 1, 0, 1], dtype=np.int32)
    >>> cells = Cells(columns, 6, (weight, ripe))
    >>> tree = grow(TreeProblem(cells, np.array([0, 0, 0, 1, 0, 1], dtype=np.int32), n_classes=2))
    >>> namespace = {}
    >>> exec(to_python(tree, ["stay", "go"]), namespace)
    >>> namespace["predict"]({"weight": 27.0, "ripe": "yes"}), namespace["predict"](weight=15.0)
    ('go', 'stay')
    """
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ParameterError(f"name is {name!r}; it must be a name that a Python function can have.")
    model, outcomes = _decisive(model, _outcomes(model, classes, python_source.literal))
    head = [
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
    """A CASE expression that predicts a row; with a table, the SELECT statement that predicts all its rows.

    NULL is missing. Columns are those of the training table, by name; text is compared as the database compares it, so
    that with a collation that ignores case 'a' is 'A'.

    Parameters
    ----------
    model : TreeModel
    classes : labels of shape (K,), or None for regression
    table : str or sequence of str, optional
        The table's name; a sequence is a name with its schema, as ("sales", "customers").
    dialect : {"standard", "mysql", "sqlserver"}
        How names are quoted and text is escaped. PostgreSQL, SQLite, DuckDB, Snowflake and Oracle take the standard.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.tree.export import to_sql
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> from margrove.tree.reference import grow
    >>> columns = TreeColumn("weight", has_missing=False), TreeColumn("ripe", "multiway", ("no", "yes"))
    >>> weight, ripe = np.array([15.0, 16, 19, 22, 27, 29]), np.array([1, 0, 1, 1, 0, 1], dtype=np.int32)
    >>> cells = Cells(columns, 6, (weight, ripe))
    >>> tree = grow(TreeProblem(cells, np.array([0, 0, 0, 1, 0, 1], dtype=np.int32), n_classes=2))
    >>> print(to_sql(tree, ["stay", "go"], table="fruit"))
    SELECT *,
    CASE
      WHEN ("weight" <= 20.5E0 OR "weight" IS NULL) THEN 'stay'
      ELSE CASE
        WHEN "ripe" = 'no' THEN 'stay'
        ELSE 'go'
      END
    END AS "prediction"
    FROM "fruit"
    """
    check_choice("dialect", dialect, DIALECTS)
    writer = DIALECTS[dialect]
    model, outcomes = _decisive(model, _outcomes(model, classes, writer.literal))
    case = (nested_case if model.max_depth <= _SQL_DEPTH else flat_case)(model, outcomes, writer)
    if table is None:
        return case
    parts = [table] if isinstance(table, str) else list(table)
    name = ".".join(writer.identifier(part) for part in parts)
    return f"SELECT *,\n{case} AS {writer.identifier('prediction')}\nFROM {name}"


def to_c(model: TreeModel, classes: ArrayLike | None = None, name: str = "predict") -> str:
    """The source of a C99 function that predicts one row: ``int predict(const double *x)``; regression gives a double.

    ``x`` has one number for each column, in their order: of a category its code, which a comment in the source lists;
    any other number is a level that training did not know. NaN is missing. The int is the place of the class in
    ``classes``.

    Parameters
    ----------
    model : TreeModel
    classes : labels of shape (K,), or None for regression
    name : str, default="predict"
        Of the function.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from margrove.tree.export import to_c
    >>> from margrove.tree.problem import Cells, TreeColumn, TreeProblem
    >>> from margrove.tree.reference import grow
    >>> columns = TreeColumn("weight", has_missing=False), TreeColumn("ripe", "multiway", ("no", "yes"))
    >>> weight, ripe = np.array([15.0, 16, 19, 22, 27, 29]), np.array([1, 0, 1, 1, 0, 1], dtype=np.int32)
    >>> cells = Cells(columns, 6, (weight, ripe))
    >>> tree = grow(TreeProblem(cells, np.array([0, 0, 0, 1, 0, 1], dtype=np.int32), n_classes=2))
    >>> print(to_c(tree, ["stay", "go"]).partition("<math.h>")[2].strip())
    int predict(const double *x)
    {
        if (isnan(x[0]) || x[0] <= 0x1.4800000000000p+4 /* 20.5 */) {
            return 0;
        }
        if (x[1] == 0) {
            return 0;
        }
        return 1;
    }
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in c_source.KEYWORDS:
        raise ParameterError(f"name is {name!r}; it must be a name that a C function can have.")
    labels = labels_of(model, classes)
    kind = "double" if labels is None else "int"
    if labels is None:
        outcomes = [c_source.number(value) for value in model.value[:, 0]]
    else:
        outcomes = [str(k) for k in model.value.argmax(axis=1)]
    model, outcomes = _decisive(model, outcomes)
    is_small = model.max_depth <= _C_DEPTH and model.n_nodes <= _C_NODES and len(model.level_branch) <= _C_LEVELS
    body = c_source.nested(model, outcomes) if is_small else c_source.node_table(model, kind, outcomes)
    unused = [f"{_INDENT}(void)x;"] if model.n_nodes == 1 else []
    head = [*c_source.comment(model, labels), "#include <math.h>", ""]
    return "\n".join([*head, f"{kind} {name}(const double *x)", "{", *unused, *body, "}", ""])


def node_columns(model: TreeModel, classes: ArrayLike | None = None) -> dict[str, list[Any]]:
    """One entry for each node: node, parent, depth, branch in words, test (its column), threshold, n, weight, impurity,
    gain, class and the share of each class, or value. What a node lacks is None: the root's parent, a leaf's gain.

    Parameters
    ----------
    model : TreeModel
    classes : labels of shape (K,), or None for regression

    Returns
    -------
    dict of lists
    """
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
    """`node_columns` as a data frame.

    Parameters
    ----------
    model : TreeModel
    classes : labels of shape (K,), or None for regression
    library : {"pandas", "polars", "pyarrow"}
        Whose frame. pyarrow is always there; the others must be installed.

    Returns
    -------
    DataFrame of pandas or polars, or Table of pyarrow
    """
    check_choice("library", library, _LIBRARIES)
    import importlib

    import narwhals.stable.v1 as nw

    try:
        namespace = importlib.import_module(library)
    except ImportError as error:
        raise MissingExtraError(
            f"{library} is not installed: pip install {library}, or say library='pyarrow'"
        ) from error
    return nw.from_dict(node_columns(model, classes), native_namespace=namespace).to_native()


def _outcomes(model: TreeModel, classes: ArrayLike | None, literal: Callable[[Any], str]) -> list[str]:
    """What each node would predict, as code."""
    labels = labels_of(model, classes)
    if labels is None:
        return [literal(value) for value in model.value[:, 0].tolist()]
    written = [literal(label) for label in labels]
    return [written[k] for k in model.value.argmax(axis=1)]


def _decisive(model: TreeModel, outcomes: list[str]) -> tuple[TreeModel, list[str]]:
    """The tree without the tests below which all leaves predict the same, and what each of its nodes predicts."""
    said, is_settled = list(outcomes), model.is_leaf.copy()
    for node in np.flatnonzero(~model.is_leaf)[::-1].tolist():  # a child stands behind its parent
        children = model.children(node).tolist()
        if all(is_settled[child] and said[child] == said[children[0]] for child in children):
            is_settled[node], said[node] = True, said[children[0]]
    is_kept = np.ones(model.n_nodes, dtype=bool)
    for node in np.flatnonzero(is_settled & ~model.is_leaf):
        is_kept[node + 1 : model.end[node]] = False
    return model.cut(is_settled), [said[node] for node in np.flatnonzero(is_kept)]
