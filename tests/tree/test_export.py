"""Exported code is run, on missing cells, unseen levels and numbers on and next to every threshold."""

from __future__ import annotations

import ctypes
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, make_classification
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.tree.trees_at_hand import Node, from_sklearn, random_cells, random_tree, tree_of

from margrove.errors import InputError, MissingExtraError, ParameterError
from margrove.tree.export import node_columns, to_c, to_dataframe, to_python, to_sql
from margrove.tree.model import TreeModel
from margrove.tree.problem import Cells, Growth, TreeColumn, TreeProblem
from margrove.tree.reference import grow

LABELS = {
    "text": np.array(["it's", 'say "no"', "back\\slash ü */"], dtype=object),
    "whole": np.array([-7, 0, 2**40]),
    "real": np.array([-0.1, 1e-300, 2.5]),
    "truth": np.array([False, True]),
}


def chain(depth: int) -> TreeModel:
    """A tree of one leaf after the other, 0, 1, 2, …: as deep as it has tests."""
    node = Node([float(depth)], n_rows=1)
    for level in reversed(range(depth)):
        leaf = Node([float(level)], n_rows=1)
        node = Node([0.5], [leaf, node], feature=0, threshold=level + 0.1, missing=1, default=0, n_rows=1)
    return tree_of(node, [TreeColumn("x")])


def grown(seed: int = 0) -> tuple[TreeModel, np.ndarray]:
    """A tree grown to the end on noise: some 5,000 nodes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8_000, 4)).astype(np.float32)
    fitted = DecisionTreeClassifier(random_state=0, splitter="random").fit(X, rng.integers(0, 2, len(X)))
    return from_sklearn(fitted, list("abcd")), X[:400].astype(np.float64)


def expected(model: TreeModel, classes: np.ndarray | None, cells: Cells) -> list[Any]:
    leaf = model.apply(cells)
    return model.value[leaf, 0].tolist() if classes is None else classes[model.value[leaf].argmax(axis=1)].tolist()


def run_python(source: str, names: list[str], rows: list[list[Any]]) -> list[Any]:
    namespace: dict[str, Any] = {"__builtins__": {"float": float, "isinstance": isinstance, "dict": dict, "sum": sum}}
    namespace["__builtins__"] |= {"tuple": tuple, "len": len}
    exec(compile(source, "exported", "exec"), namespace)
    return [namespace["predict"](dict(zip(names, row, strict=True))) for row in rows]


def run_sql(source: str, names: list[str], rows: list[list[Any]], table: str) -> list[Any]:
    with sqlite3.connect(":memory:") as base:
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        base.execute(f"CREATE TABLE {table} ({', '.join(quoted)})")
        base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)
        return [row[-1] for row in base.execute(source)]


@pytest.fixture
def run_c(tmp_path: Path) -> Any:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def run(source: str, cells: Cells, kind: Any) -> list[Any]:
        (tmp_path / "tree.c").write_text(source, encoding="utf-8")
        flags = ["-std=c99", "-pedantic", "-O0", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, "tree.c", "-o", "tree.so"], cwd=tmp_path, check=True)
        function = ctypes.CDLL(str(tmp_path / "tree.so")).predict
        function.restype, function.argtypes = kind, [ctypes.POINTER(ctypes.c_double)]
        numbers = [
            np.where(values == -1, np.nan, values) if values.dtype.kind == "i" else values for values in cells.values
        ]
        rows = np.ascontiguousarray(np.column_stack(numbers))
        return [function(row.ctypes.data_as(ctypes.POINTER(ctypes.c_double))) for row in rows]

    return run


def names_of(model: TreeModel) -> list[str]:
    return [column.name for column in model.columns]


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("seed", range(8))
def test_python_predicts_as_the_tree(seed, labels):
    classes = LABELS[labels]
    model = random_tree(seed, n_classes=len(classes))
    cells, rows = random_cells(model, 400, seed)
    found = run_python(to_python(model, classes), names_of(model), rows)
    assert found == expected(model, classes, cells)
    assert {type(label) for label in found} == {type(classes.tolist()[0])}
    as_nan = [[float("nan") if cell is None else cell for cell in row] for row in rows]
    assert run_python(to_python(model, classes), names_of(model), as_nan) == found


@pytest.mark.parametrize("seed", range(4))
def test_python_sql_and_c_predict_as_a_regression_tree_to_the_last_bit(seed, run_c):
    model = random_tree(seed, n_classes=0, n_nodes=80)
    cells, rows = random_cells(model, 400, seed)
    wanted = expected(model, None, cells)
    assert run_python(to_python(model), names_of(model), rows) == wanted
    assert run_c(to_c(model), cells, ctypes.c_double) == wanted
    assert run_sql(to_sql(model, table="t"), names_of(model), rows, "t") == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("labels", ["text", "whole", "real"])
@pytest.mark.parametrize("seed", range(8))
def test_sql_predicts_as_the_tree(seed, labels, flat, monkeypatch):
    monkeypatch.setattr("margrove.tree.export._SQL_DEPTH", -1 if flat else 99)
    classes = LABELS[labels]
    model = random_tree(seed, n_nodes=40, n_classes=len(classes))
    cells, rows = random_cells(model, 400, seed)
    found = run_sql(to_sql(model, classes, table='odd "name"'), names_of(model), rows, '"odd ""name"""')
    assert found == expected(model, classes, cells)


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_c_compiles_without_a_warning_and_predicts_as_the_tree(seed, table, run_c, monkeypatch):
    if table:
        monkeypatch.setattr("margrove.tree.export._C_NODES", 0)
    model = random_tree(seed, n_nodes=80)
    cells, _ = random_cells(model, 400, seed)
    assert run_c(to_c(model, LABELS["text"]), cells, ctypes.c_int) == expected(model, np.arange(3), cells)


@pytest.mark.parametrize("seed", range(4))
def test_the_table_of_python_predicts_as_its_statements(seed, monkeypatch):
    model = random_tree(seed, n_nodes=80)
    cells, rows = random_cells(model, 400, seed)
    monkeypatch.setattr("margrove.tree.export._PYTHON_NODES", 0)
    source = to_python(model, LABELS["text"])
    assert "while" in source
    assert run_python(source, names_of(model), rows) == expected(model, LABELS["text"], cells)


@pytest.mark.parametrize("seed", range(3))
def test_code_and_rules_of_a_grown_tree_agree_with_it(seed, run_c):
    """As trees are: every branch has rows, and the words name what they had."""
    cells, _ = random_cells(random_tree(seed), 300, seed)
    known = [
        values if j in (0, 3, 5) else np.minimum(values, cells.columns[j].n_codes - 1)
        for j, values in enumerate(cells.values)
    ]
    trained = Cells(cells.columns, 300, tuple(known))
    target = np.random.default_rng(seed).integers(0, 3, 300).astype(np.int32)
    model = grow(TreeProblem(trained, target, n_classes=3, growth=Growth(max_depth=6)))
    new, rows = random_cells(model, 300, seed + 50)
    wanted = expected(model, np.arange(3), new)
    assert run_python(to_python(model, [0, 1, 2]), names_of(model), rows) == wanted
    assert run_sql(to_sql(model, [0, 1, 2], table="t"), names_of(model), rows, "t") == wanted
    assert run_c(to_c(model, [0, 1, 2]), new, ctypes.c_int) == wanted
    words = node_columns(model, [0, 1, 2])["branch"][1:]
    assert len(words) > 30
    assert not [said for said in words if said.endswith(("is other", "is anything"))]


@pytest.mark.parametrize("depth", [89, 90, 91, 3_000])
def test_a_deep_tree_is_exported_without_a_limit(depth, run_c):
    model = chain(depth)
    values = np.array([-1.0, 0.1, 45.0, 88.1, 89.2, depth + 3.0, np.nan])
    cells = Cells(model.columns, len(values), (values,))
    rows = [[None if np.isnan(value) else float(value)] for value in values]
    wanted = expected(model, None, cells)
    assert run_python(to_python(model), ["x"], rows) == wanted
    assert run_sql(to_sql(model, table="t"), ["x"], rows, "t") == wanted
    assert run_c(to_c(model), cells, ctypes.c_double) == wanted


def test_a_tree_of_five_thousand_nodes_is_exported_without_a_limit(run_c):
    model, X = grown()
    assert model.n_nodes > 5_000  # a table in Python and in C
    cells = Cells(model.columns, len(X), tuple(X.T))
    wanted = expected(model, np.array([10, 20]), cells)
    assert run_python(to_python(model, [10, 20]), list("abcd"), X.tolist()) == wanted
    assert run_sql(to_sql(model, [10, 20], table="t"), list("abcd"), X.tolist(), "t") == wanted
    assert [[10, 20][k] for k in run_c(to_c(model, [10, 20]), cells, ctypes.c_int)] == wanted


@pytest.mark.parametrize("fan", [2, 3, 1_500])
def test_many_branches_are_exported_without_a_limit(fan, run_c):
    column = TreeColumn("city", "multiway", tuple(f"c{k}" for k in range(fan)))
    leaves = [Node([float(k)], n_rows=1) for k in range(fan)]
    root = Node([0.0], leaves, feature=0, levels=range(fan), missing=1, default=0, n_rows=fan)
    model = tree_of(root, [column])
    cells, rows = random_cells(model, 300, 0)
    wanted = expected(model, None, cells)
    assert run_python(to_python(model), ["city"], rows) == wanted
    assert run_sql(to_sql(model, table="t"), ["city"], rows, "t") == wanted
    assert run_c(to_c(model), cells, ctypes.c_double) == wanted


def test_a_tree_of_one_leaf_is_a_constant(run_c):
    model = tree_of(Node([1.0, 3.0]), [TreeColumn("x")])
    cells = Cells(model.columns, 1, (np.array([np.nan]),))
    assert run_python(to_python(model, ["a", "b"]), ["x"], [[None]]) == ["b"]
    assert to_sql(model, ["a", "b"]) == "'b'"
    assert run_c(to_c(model, ["a", "b"]), cells, ctypes.c_int) == [1]


def test_python_takes_keywords_and_needs_only_the_columns_on_its_path():
    data = load_iris()
    names = ["sl", "sw", "pl", "pw"]
    model = from_sklearn(DecisionTreeClassifier(max_depth=2, random_state=0).fit(data.data, data.target), names)
    namespace: dict[str, Any] = {}
    exec(to_python(model, data.target_names, name="kind_of"), namespace)
    assert namespace["kind_of"](pw=0.2) == "setosa"
    with pytest.raises(KeyError, match="pw"):
        namespace["kind_of"](sl=1.0)


def test_sql_dialects_quote_in_their_own_way():
    column = TreeColumn('a`]"', "one_vs_rest", ("x\\", "y"))
    root = Node([1, 1], [Node([1, 0]), Node([0, 1])], feature=0, levels=[0, 1], missing=1, default=1)
    model = tree_of(root, [column])
    assert 'WHEN "a`]""" = \'x\\\' THEN FALSE' in to_sql(model, [False, True])
    assert "WHEN `a``]\"` = 'x\\\\' THEN FALSE" in to_sql(model, [False, True], dialect="mysql")
    assert "WHEN [a`]]\"] = N'x\\' THEN 0" in to_sql(model, [False, True], dialect="sqlserver")
    assert to_sql(model, [1, 2], table=("my schema", "t")).endswith('FROM "my schema"."t"')


def test_one_level_is_compared_and_several_are_looked_up():
    column = TreeColumn("town", "subset", ("a", "b", "c"))

    def code(branches):
        root = Node([1, 2], [Node([1, 0]), Node([0, 2])], feature=0, levels=branches, missing=1, default=1)
        model = tree_of(root, [column])
        return to_python(model, ["no", "yes"]), to_sql(model, ["no", "yes"])

    python, sql = code([0, 1, 1])
    assert "if v == 'a':" in python
    assert """WHEN "town" = 'a' THEN""" in sql
    python, sql = code([0, 0, 1])
    assert "if v in ('a', 'b'):" in python
    assert """WHEN "town" IN ('a', 'b') THEN""" in sql


def test_code_leaves_out_the_tests_that_decide_nothing():
    left = Node([5, 1], [Node([3, 0]), Node([2, 1])], feature=1, threshold=7.0, missing=0, default=0)
    right = Node([1, 5], [Node([0, 5]), Node([1, 0])], feature=1, threshold=9.0, missing=0, default=0)
    root = Node([6, 6], [left, right], feature=0, threshold=1.0, missing=0, default=0)
    model, classes = tree_of(root, [TreeColumn("x"), TreeColumn("y")]), np.array(["no", "yes"])
    for source in (to_python(model, classes), to_sql(model, classes), to_c(model, classes)):
        assert "9" in source  # there both answers can be given
        assert "7" not in source  # there both branches say no
    rows = [[x, y] for x in (0.0, 2.0) for y in (6.0, 8.0, 10.0)]
    cells = Cells(model.columns, len(rows), tuple(np.array(rows).T))
    assert run_python(to_python(model, classes), ["x", "y"], rows) == expected(model, classes, cells)


def test_a_tree_whose_leaves_all_predict_the_same_is_a_constant():
    root = Node([5, 1], [Node([3, 0]), Node([2, 1])], feature=0, threshold=7.0, missing=0, default=0)
    assert to_sql(tree_of(root, [TreeColumn("x")]), ["no", "yes"]) == "'no'"


def test_thresholds_are_written_to_the_last_bit():
    theta = 0.1 + 0.2
    root = Node([0.0], [Node([0.0], n_rows=1), Node([1.0], n_rows=1)], 0, theta, missing=1, default=0, n_rows=2)
    model = tree_of(root, [TreeColumn("x")])
    assert "v <= 0.30000000000000004" in to_python(model)
    assert "<= 0.30000000000000004E0" in to_sql(model)
    assert theta.hex() in to_c(model)


def test_values_that_cannot_be_written_are_refused_by_name():
    model = tree_of(Node([1.0, 3.0]), [TreeColumn("x")])
    for name in ("", "1st", "class", "a b"):
        with pytest.raises(ParameterError, match="name is"):
            to_python(model, ["a", "b"], name=name)
    with pytest.raises(ParameterError, match="name is 'double'"):
        to_c(model, ["a", "b"], name="double")
    with pytest.raises(ParameterError, match="dialect is 'oracle'"):
        to_sql(model, ["a", "b"], dialect="oracle")
    with pytest.raises(InputError, match="NUL"):
        to_sql(model, ["a\0b", "c\0d"])
    with pytest.raises(InputError, match="type tuple"):
        to_python(model, np.array([(1, 2), None], dtype=object))
    with pytest.raises(InputError, match="3 labels; the tree has 2"):
        to_python(model, ["a", "b", "c"])
    with pytest.raises(InputError, match="classes is None"):
        to_python(model)


def test_the_frame_has_a_line_for_each_node_in_every_library():
    X, y = make_classification(200, 5, random_state=0)
    model = from_sklearn(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y), list("abcde"))
    columns = node_columns(model, ["no", "yes"])
    frame = to_dataframe(model, ["no", "yes"])
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(to_dataframe(model, ["no", "yes"], library="polars"), pl.DataFrame)
    assert to_dataframe(model, ["no", "yes"], library="pyarrow").to_pydict() == columns
    assert isinstance(to_dataframe(model, ["no", "yes"], library="pyarrow"), pa.Table)
    assert len(frame) == model.n_nodes
    assert_array_equal(frame["share no"] + frame["share yes"], 1.0)
    inner = frame.dropna(subset="test")
    # Each inner node's impurity is its gain and what is left in its children.
    for node, line in inner.iterrows():
        below = frame[frame["parent"] == node]
        left = (below["weight"] * below["impurity"]).sum() / line["weight"]
        assert line["gain"] == pytest.approx(line["impurity"] - left)
        assert [words.split()[0] for words in below["branch"]] == [line["test"]] * 2
    with pytest.raises(ParameterError, match="library is 'dask'"):
        to_dataframe(model, ["no", "yes"], library="dask")


def test_the_frame_of_a_regression_tree_has_its_values():
    X, _ = make_classification(100, 5, random_state=0)
    model = from_sklearn(DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, X[:, 0]), list("abcde"))
    assert_array_equal(to_dataframe(model)["value"], model.value[:, 0])


def test_a_library_that_is_not_installed_is_named_with_its_cure(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match="pip install polars"):
        to_dataframe(replace(chain(1)), library="polars")
